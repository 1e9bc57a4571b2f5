//! The options of a run, as results show them.

use headtime_config::Value;
use headtime_engine::EngineSpec;
use headtime_stack::entries;
use headtime_units::{Bytes, Nanos};
use serde::{Serialize, Serializer};
use std::sync::LazyLock;

/// Switches, counts and names of an engine that has them all. Scenarios may compare these options, and results have a column of each.
/// Sizes, durations, and options of some engines only are left out.
static OPTIONS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let all = entries(&EngineSpec::default()).into_iter();
    let plain = all.filter(|(_, value)| match value {
        Value::Flag(_) | Value::Integer(_) => true,
        Value::Text(text) => text.parse::<Bytes>().is_err() && text.parse::<Nanos>().is_err(),
        _ => false,
    });
    plain.map(|(key, _)| key).collect()
});

/// The keys of `[engine]` that may list several values in a scenario. Each value makes a run. The last key varies fastest.
pub fn options() -> impl Iterator<Item = &'static str> {
    OPTIONS.iter().map(String::as_str)
}

/// The options of a run, as columns in the order of results.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// The engine.
    pub engine: EngineSpec,
    columns: Vec<(&'static str, Value)>,
}

impl Default for Header {
    fn default() -> Header {
        Header::new(&EngineSpec::default(), "")
    }
}

impl Header {
    /// Header of a run with this engine, on a drive with this order of its firmware.
    pub fn new(engine: &EngineSpec, firmware: &str) -> Header {
        let all = entries(engine);
        let value = |key: &str| all.iter().find(|(own, _)| own == key);
        let columns = options().filter_map(|key| Some((key, value(key)?.1.clone())));
        let mut columns: Vec<(&'static str, Value)> = columns.collect();
        // The firmware stands behind the depth, which is the number of commands that the firmware chooses from.
        let at = columns.len().min(1);
        columns.insert(at, ("firmware", Value::Text(firmware.to_owned())));
        Header {
            engine: engine.clone(),
            columns,
        }
    }

    /// The names of the columns.
    pub fn names() -> Vec<&'static str> {
        let header = Header::default();
        header.columns.iter().map(|(name, _)| *name).collect()
    }

    /// The columns and their values.
    pub fn columns(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.columns.iter().map(|(name, value)| (*name, value))
    }

    /// The value of a column.
    pub fn get(&self, column: &str) -> Option<&Value> {
        let mut columns = self.columns();
        columns
            .find(|(name, _)| *name == column)
            .map(|(_, value)| value)
    }

    /// The value of a column as text; empty if there is none.
    pub fn text(&self, column: &str) -> String {
        self.get(column).map(Value::text).unwrap_or_default()
    }

    /// Switches and their values.
    pub fn switches(&self) -> impl Iterator<Item = (&'static str, bool)> {
        self.columns().filter_map(|(name, value)| match value {
            Value::Flag(on) => Some((name, *on)),
            _ => None,
        })
    }

    /// Options of the engine that have words as values: the gate, the time at which a command is chosen.
    pub fn words(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.columns().filter_map(|(name, value)| match value {
            Value::Text(text) if name != "firmware" => Some((name, text.as_str())),
            _ => None,
        })
    }
}

impl Serialize for Header {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.columns())
    }
}

/// A key for a narrow column: `ahead` of `commit_ahead`.
pub fn short(key: &str) -> &str {
    key.rsplit('_').next().unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_the_switches_and_counts_of_every_engine() {
        let names = Header::names();
        assert_eq!(names[..3], ["depth", "firmware", "gate"]);
        for (key, value) in entries(&EngineSpec::default()) {
            let is_plain = matches!(value, Value::Flag(_) | Value::Integer(_))
                || ["gate", "issue"].contains(&&*key);
            assert_eq!(names.contains(&&*key), is_plain, "{key}");
        }
        let header = Header::default();
        let usual: Vec<_> = header.words().collect();
        assert_eq!(usual, [("gate", "depth"), ("issue", "at-once")]);
        // A plug has further keys, which no column shows.
        let engine = EngineSpec::linux_2_6().complete().unwrap();
        let header = Header::new(&engine, "fifo");
        assert_eq!(
            header.columns().map(|(name, _)| name).collect::<Vec<_>>(),
            names
        );
        assert_eq!(
            (header.text("plug"), header.text("firmware")),
            ("true".into(), "fifo".into())
        );
        assert_eq!(short("commit_ahead"), "ahead");
    }
}
