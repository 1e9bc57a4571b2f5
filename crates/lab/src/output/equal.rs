//! Reasons for equal rows of a table, which readers would take for a mistake of the program.
//!
//! Only reasons that the runs prove are given. A scheduler that never had a choice and never waited could not act otherwise. Schedulers
//! that serve in the order of arrival without waiting all act alike.

use std::collections::BTreeMap;

/// A row, with the values that matter here.
#[derive(Clone, Debug, PartialEq)]
pub struct Served {
    /// Name of the row in the sentence.
    pub name: String,
    /// Everything of the run but the scheduler. Only rows with equal text are compared.
    pub of: String,
    /// Requests in the drive at once.
    pub depth: u64,
    /// Times that the scheduler waited.
    pub idled: u64,
    /// Times that the scheduler had several requests to choose from.
    pub chosen: u64,
    /// Times that the scheduler served a request behind requests that came later.
    pub overtaken: u64,
    /// Figures that the table shows of the row.
    pub figures: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    NoChoice(u64),
    InOrder,
}

impl Served {
    fn reason(&self) -> Option<Reason> {
        match self {
            Served { idled: 1.., .. } => None,
            Served {
                chosen: 0, depth, ..
            } => Some(Reason::NoChoice(*depth)),
            Served { overtaken: 0, .. } => Some(Reason::InOrder),
            Served { .. } => None,
        }
    }
}

/// A sentence for each reason why rows are equal, in the order of the rows.
pub fn reasons(rows: &[Served]) -> Vec<String> {
    let mut groups: BTreeMap<(&str, &[String]), Vec<&Served>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.reason().is_some()) {
        groups.entry((&row.of, &row.figures)).or_default().push(row);
    }
    let mut said: BTreeMap<Reason, Vec<(usize, String)>> = BTreeMap::new();
    for group in groups.values().filter(|group| group.len() > 1) {
        let reasons: Vec<Reason> = group.iter().filter_map(|row| row.reason()).collect();
        // Rows with a choice and rows without share one reason: all kept the order.
        let reason = match reasons.iter().all(|reason| *reason == reasons[0]) {
            true => reasons[0],
            false => Reason::InOrder,
        };
        let names: Vec<&str> = group.iter().map(|row| row.name.as_str()).collect();
        let first = rows.iter().position(|row| row.name == names[0]);
        let text = match names.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
            None => continue,
        };
        said.entry(reason)
            .or_default()
            .push((first.unwrap_or(0), text));
    }
    let sentence = |(reason, mut names): (Reason, Vec<(usize, String)>)| {
        names.sort();
        let first = names[0].0;
        let names: Vec<String> = names.into_iter().map(|(_, name)| name).collect();
        let names = names.join("; ");
        let text = match reason {
            Reason::NoChoice(depth) => format!(
                "{names}: equal, as there was never more than one request to choose from at depth {depth}"
            ),
            Reason::InOrder => format!(
                "{names}: equal, as each served requests in the order in which they came, and none waited"
            ),
        };
        (first, text)
    };
    let mut sentences: Vec<(usize, String)> = said.into_iter().map(sentence).collect();
    sentences.sort();
    sentences.into_iter().map(|(_, text)| text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, [idled, chosen, overtaken]: [u64; 3], figure: &str) -> Served {
        Served {
            name: name.to_owned(),
            of: String::new(),
            depth: 8,
            idled,
            chosen,
            overtaken,
            figures: vec![figure.to_owned()],
        }
    }

    #[test]
    fn only_what_the_runs_prove_is_said() {
        // Different rows, with no equal pair.
        assert!(reasons(&[row("a", [0, 0, 0], "1"), row("b", [0, 0, 0], "2")]).is_empty());
        // Equal rows without a proven reason, since schedulers chose or waited.
        assert!(reasons(&[row("a", [0, 5, 3], "1"), row("b", [0, 5, 3], "1")]).is_empty());
        assert!(reasons(&[row("a", [2, 0, 0], "1"), row("b", [0, 0, 0], "1")]).is_empty());
        let none =
            "a, b and c: equal, as there was never more than one request to choose from at depth 8";
        let rows = ["a", "b", "c"].map(|name| row(name, [0, 0, 0], "1"));
        assert_eq!(reasons(&rows), [none]);
        let order =
            "equal, as each served requests in the order in which they came, and none waited";
        let rows = [
            row("x", [0, 4, 0], "1"),
            row("y", [0, 4, 0], "1"),
            row("z", [1, 4, 2], "2"),
        ];
        assert_eq!(reasons(&rows), [format!("x and y: {order}")]);
        // Several groups have one sentence, in the order of the table.
        let rows = [
            row("7", [0, 4, 0], "2"),
            row("8", [0, 4, 0], "2"),
            row("9", [0, 4, 0], "1"),
            row("10", [0, 4, 0], "1"),
        ];
        assert_eq!(reasons(&rows), [format!("7 and 8; 9 and 10: {order}")]);
        // If other things were run, equal rows are chance.
        let mut rows = [row("a", [0, 0, 0], "1"), row("b", [0, 0, 0], "1")];
        rows[1].of = "merge off".to_owned();
        assert!(reasons(&rows).is_empty());
    }
}
