//! Names of workloads and programs. Each has rows of its own in tables, CSV and pictures.

use headtime_config::parse;
use headtime_units::Bytes;
use headtime_workload::{ProcessSpec, SizeDistribution};
use serde::de::Deserializer;

/// The most letters of a name, which stands in front of a row.
const LETTERS_MAX: usize = 64;
/// Name of the row for the whole run.
pub const WHOLE: &str = "all";
/// Name of the row for pages that the host writes back on behalf of programs.
pub const WRITE_BACK: &str = "write-back";

/// Reads the name of a workload or program. The name must be readable in a table, and must not be a name that results use already.
pub(super) fn name<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    parse(from, "a string", |name| {
        check(name).map(|()| Some(name.to_owned()))
    })
}

/// Checks a name, see [`name`].
pub(super) fn check(name: &str) -> Result<(), String> {
    problem(name).map_or(Ok(()), Err)
}

/// Problem with a name, if there is one.
fn problem(name: &str) -> Option<String> {
    let letters = name.chars().count();
    if letters == 0 || letters > LETTERS_MAX {
        return Some(format!("allowed are 1 to {LETTERS_MAX} letters"));
    }
    if name.chars().any(is_invisible) {
        return Some("allowed are letters that can be seen, and single blanks".to_owned());
    }
    if name.trim() != name || name.contains("  ") {
        return Some("allowed are single blanks between words".to_owned());
    }
    let numbered = |kind: &str| {
        let rest = name
            .strip_prefix(kind)
            .and_then(|rest| rest.strip_prefix(' '));
        rest.is_some_and(|rest| rest.parse::<u64>().is_ok())
    };
    if [WHOLE, WRITE_BACK].contains(&name) || numbered("process") || numbered("device") {
        return Some("is what results call something else; allowed is any other".to_owned());
    }
    None
}

/// Letters that a terminal, a table or a picture does not show, or that turn others round.
fn is_invisible(letter: char) -> bool {
    letter.is_control()
        || (letter != ' ' && letter.is_whitespace())
        || matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Names of groups of processes. Each entry has its given name and the behaviour of its processes. Without a given name, the behaviour in
/// words is the name.
fn of_groups<'a>(groups: impl Iterator<Item = (Option<&'a str>, &'a ProcessSpec)>) -> Vec<String> {
    let wanted = groups.map(|(name, process)| match name {
        Some(name) => WantedName::Given(name.to_owned()),
        None => WantedName::Numbered(described(process), "#"),
    });
    different(wanted.collect())
}

/// Different names of groups of processes, and the place of each group's name among them. Groups of one name share a row of results.
pub(super) fn rows_of<'a>(
    groups: impl Iterator<Item = (Option<&'a str>, &'a ProcessSpec)>,
) -> (Vec<String>, Vec<usize>) {
    let (mut names, mut places): (Vec<String>, Vec<usize>) = (Vec::new(), Vec::new());
    for name in of_groups(groups) {
        let known = names.iter().position(|known| *known == name);
        places.push(known.unwrap_or(names.len()));
        if known.is_none() {
            names.push(name);
        }
    }
    (names, places)
}

/// Names of programs. Each entry has its given name, the name of its benchmark, and its number of programs.
pub fn of_programs(entries: &[(Option<&str>, &str, usize)]) -> Vec<String> {
    let mut wanted = Vec::new();
    for (name, benchmark, count) in entries {
        match name {
            Some(name) if *count == 1 => wanted.push(WantedName::Given((*name).to_owned())),
            Some(name) => {
                wanted.extend((0..*count).map(|_| WantedName::Numbered((*name).to_owned(), "")))
            }
            None => wanted
                .extend((0..*count).map(|_| WantedName::Numbered((*benchmark).to_owned(), ""))),
        }
    }
    different(wanted)
}

/// Wanted name of a workload or program.
enum WantedName {
    /// Exactly this name.
    Given(String),
    /// This name if no other entry wants it. Otherwise the name, this mark, and a number.
    Numbered(String, &'static str),
}

/// Names that differ from each other.
fn different(wanted: Vec<WantedName>) -> Vec<String> {
    let text = |one: &WantedName| match one {
        WantedName::Given(name) | WantedName::Numbered(name, _) => name.clone(),
    };
    let texts: Vec<String> = wanted.iter().map(text).collect();
    let given: Vec<String> = wanted
        .iter()
        .filter(|one| matches!(one, WantedName::Given(_)))
        .map(text)
        .collect();
    let mut names: Vec<String> = Vec::new();
    for (one, text) in wanted.iter().zip(&texts) {
        let name = match one {
            WantedName::Given(name) => name.clone(),
            WantedName::Numbered(name, _)
                if texts.iter().filter(|other| *other == text).count() == 1 =>
            {
                name.clone()
            }
            WantedName::Numbered(name, mark) => (1..)
                .map(|number| format!("{name} {mark}{number}"))
                .find(|name| !names.contains(name) && !given.contains(name))
                .expect("there are more numbers than names"),
        };
        names.push(name);
    }
    names
}

/// Behaviour of a process, in a few words.
fn described(process: &ProcessSpec) -> String {
    let shares = (process.sequential_share, process.local_share);
    let way = match shares {
        (0.0, 0.0) => "random",
        (1.0, _) => "sequential",
        (_, 1.0) => "local",
        _ => "mixed",
    };
    let short = |size: Bytes| size.to_string();
    let between = |from: Bytes, to: Bytes| format!("{}..{}", short(from), short(to));
    let size = match &process.size {
        SizeDistribution::Constant(size) => short(*size),
        SizeDistribution::Uniform(from, to) => between(*from, *to),
        SizeDistribution::Exponential(mean) => format!("~{}", short(*mean)),
        SizeDistribution::Table(sizes) => {
            let sizes = sizes.iter().map(|(size, _)| *size);
            let least = sizes.clone().min().unwrap_or_default();
            between(least, sizes.max().unwrap_or_default())
        }
    };
    let what = match process.read_share {
        1.0 => "reads",
        0.0 => "writes",
        _ => "reads and writes",
    };
    format!("{way} {size} {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: Option<&str>, change: impl Fn(&mut ProcessSpec)) -> (Option<&str>, ProcessSpec) {
        let mut process = ProcessSpec::default();
        change(&mut process);
        (name, process)
    }

    #[test]
    fn groups_without_a_name_are_called_by_what_they_do() {
        let groups = [
            group(None, |_| {}),
            group(Some("web"), |_| {}),
            group(None, |process| process.read_share = 0.5),
            group(None, |process| process.sequential_share = 1.0),
            group(None, |_| {}),
            group(None, |process| {
                process.local_share = 0.5;
                process.size = SizeDistribution::Exponential(Bytes(8192));
                process.read_share = 0.0;
            }),
            group(None, |process| {
                process.size = "64KiB/9:512B/10".parse().unwrap();
            }),
            // This given name takes number 2 of the first group's name.
            group(Some("random 4KiB reads #2"), |_| {}),
        ];
        assert_eq!(
            of_groups(groups.iter().map(|(name, process)| (*name, process))),
            [
                "random 4KiB reads #1",
                "web",
                "random 4KiB reads and writes",
                "sequential 4KiB reads",
                "random 4KiB reads #3",
                "mixed ~8KiB writes",
                "random 512B..64KiB reads",
                "random 4KiB reads #2",
            ]
        );
    }

    #[test]
    fn programs_that_are_several_are_numbered() {
        let names = of_programs(&[
            (None, "par-read", 2),
            (Some("mail"), "postmark", 2),
            (None, "grep", 1),
            (Some("mail 2"), "grep", 1),
            (None, "par-read", 1),
        ]);
        assert_eq!(
            names,
            [
                "par-read 1",
                "par-read 2",
                "mail 1",
                "mail 3",
                "grep",
                "mail 2",
                "par-read 3"
            ]
        );
    }

    #[test]
    fn names_that_are_none() {
        for name in ["web", "Ünïcode Größe", "a, \"b\"; c", "x"] {
            assert_eq!(problem(name), None, "{name}");
        }
        assert_eq!(problem(&"ü".repeat(64)), None);
        let long = "x".repeat(65);
        for name in [
            "",
            " ",
            "a ",
            " a",
            "a  b",
            "a\tb",
            "a\nb",
            "\u{7}",
            "a\u{200b}",
            "\u{202e}b",
            "a\u{a0}b",
            "all",
            "write-back",
            "process 12",
            "device 0",
            &long,
        ] {
            assert!(problem(name).is_some(), "{name:?}");
        }
        assert_eq!(problem("process mail"), None);
    }
}
