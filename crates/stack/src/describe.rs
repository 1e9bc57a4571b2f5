//! Complete description of a stack.

use crate::{Believed, Simulated};
use headtime_config::{Node, Table, Value, to_text};
use headtime_engine::EngineSpec;
use headtime_sched::Spec;
use serde::{Deserialize, Serialize};

/// The layers between the clients and a drive: a key for each option, in one table.
///
/// The drive itself is described elsewhere, since a scenario and a server have different kinds of drives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stack {
    /// The scheduler, which orders requests.
    pub scheduler: Spec,
    /// The engine, which merges requests, holds them back and issues commands.
    #[serde(rename = "+engine")]
    pub engine: EngineSpec,
    /// The drive that the scheduler assumes.
    #[serde(rename = "+believed")]
    pub believed: Believed,
    /// Changes to a simulated drive.
    #[serde(rename = "+simulated")]
    pub simulated: Simulated,
}

/// Returns the keys of a struct and their values, in the order of the fields. Fields that are `None` are left out.
///
/// # Panics
///
/// If the value is no struct, or has a field without a form in TOML. This is a bug of the type.
pub fn entries<T: Serialize>(of: &T) -> Vec<(String, Value)> {
    let text = to_text(of);
    let mut values = Table::parse("", &text).expect("it was written as TOML");
    let mut entries = Vec::new();
    for line in text.lines() {
        let key = match line.strip_prefix('[') {
            // A nested table, whose keys follow.
            Some(name) => name.split(['.', ']']).next(),
            None => line.split(" = ").next(),
        };
        if let Some((key, Node { value, .. })) = key.and_then(|key| Some((key, values.take(key)?)))
        {
            entries.push((key.to_owned(), value));
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_config::{Place, read};

    fn keys<T: Serialize>(of: &T) -> Vec<String> {
        entries(of).into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn entries_are_in_the_order_of_the_fields() {
        #[derive(Serialize)]
        struct Keys {
            second: u32,
            first: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            none: Option<u32>,
            last: &'static str,
        }
        let written = Keys {
            second: 2,
            first: true,
            none: None,
            last: "a = [b]",
        };
        assert_eq!(keys(&written), ["second", "first", "last"]);
        let of_engine = keys(&EngineSpec::default());
        assert!(
            of_engine.len() > 4 && of_engine[0] == "depth",
            "{of_engine:?}"
        );
        let overrides = "rotation.rpm = 1\ncache.enabled = false";
        let simulated = Simulated {
            overrides: Table::parse("s", overrides).unwrap(),
            ..Simulated::default()
        };
        assert_eq!(keys(&simulated), ["firmware", "noise", "override"]);
    }

    #[test]
    fn a_stack_is_written_as_the_keys_that_it_is_read_from() {
        let text = "scheduler = \"stream(deadline)\"\ndepth = 4\nbelief = \"atlas10k\"\n\
                    firmware = \"sptf\"\n[override]\ncache.enabled = false\n";
        let read = |text: &str| {
            let table = Table::parse("s.toml", text).unwrap();
            read::<Stack>(&table, &Place::BuiltIn)
        };
        let stack = read(text).unwrap();
        assert_eq!(stack.engine.depth, 4);
        assert_eq!(stack.believed.belief.as_deref(), Some("atlas10k"));
        assert_eq!(read(&to_text(&stack)), Ok(stack));
        let error = read(&text.replace("belief", "beleif")).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("s.toml:3: beleif: unknown key; did you mean `belief`?"));
        let error = read(&text.replace("= 4", "= 400")).unwrap_err();
        let expected = "s.toml:2: depth: 400 is out of range; allowed is 1 to 256";
        assert_eq!(error.to_string(), expected);
    }
}
