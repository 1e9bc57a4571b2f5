//! A page of documentation that is written from a table of policies or gates.

use headtime_sched::{Counts, OptionInfo, PolicyInfo, Value};
use std::fmt::Write;
use std::path::Path;

/// Range of durations that the pages do not repeat.
const ANY: &str = "0ns to 86400s";

/// Parts of a page with a table of policies or gates.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The file in `docs`.
    pub file: &'a str,
    /// The crate whose test writes it.
    pub package: &'a str,
    /// Text ahead of the table.
    pub intro: &'a str,
    /// The heading of the column of bounds.
    pub bound: &'a str,
}

/// Compares a page of `docs` with its intended text. With `bless` the function writes the page anew instead.
///
/// # Panics
///
/// If the page is stale, or cannot be written.
pub fn written(file: &str, package: &str, page: &str, bless: bool) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let path = docs.join(file);
    if bless {
        std::fs::write(&path, page).expect("docs can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/{file} is stale; HEADTIME_BLESS=1 cargo test -p {package} writes it anew"
    );
}

impl Page<'_> {
    /// Compares the page with its table. With `bless` it is written anew instead.
    ///
    /// # Panics
    ///
    /// If it is stale, or cannot be written.
    pub fn check(&self, table: &[&'static PolicyInfo], bless: bool) {
        written(self.file, self.package, &self.text(table), bless);
    }

    fn text(&self, table: &[&'static PolicyInfo]) -> String {
        let mut page = String::from(self.intro);
        writeln!(page, "\n| name | idea | {} |", self.bound).expect("strings do not fail");
        page += "|---|---|---|\n";
        table.iter().for_each(|info| page += &row(info));
        for (number, info) in table.iter().enumerate() {
            page += &section(info, &table[..number]);
        }
        page
    }
}

fn row(info: &PolicyInfo) -> String {
    let names: Vec<String> = [format!("`{}`", info.title())]
        .into_iter()
        .chain(info.aliases.iter().map(|alias| format!("`{alias}`")))
        .collect();
    let row = [&names.join(", "), info.idea, info.bound];
    let row = row.map(|cell| cell.replace('|', "\\|"));
    format!("| {} |\n", row.join(" | "))
}

/// Section of a policy. Options that stand in the section of an earlier policy are named with a link.
fn section(info: &PolicyInfo, earlier: &[&'static PolicyInfo]) -> String {
    let mut text = format!("\n## {}\n\n", info.title());
    let needs = match (info.needs.positioning, info.needs.curve) {
        (true, _) => "Needs a drive profile to know where sectors are. ",
        (_, true) => "Needs a curve of service times. ",
        _ => "",
    };
    text += &format!("{needs}Avoid it where {}.\n", info.avoid);
    if let Some(number) = info.number {
        text += &format!(
            "\n`N`, {} to {}, as in `{}{}`: {}.\n",
            number.min, number.max, info.name, number.example, number.help
        );
    }
    let known = |option: &OptionInfo| {
        let has = |other: &&&PolicyInfo| {
            other
                .options
                .iter()
                .any(|same| (same.key, same.help) == (option.key, option.help))
        };
        earlier.iter().find(has)
    };
    for other in earlier {
        let shared: Vec<String> = info
            .options
            .iter()
            .filter(|option| known(option).is_some_and(|first| first.name == other.name))
            .map(|option| format!("`{}` ({})", option.key, option.default))
            .collect();
        if !shared.is_empty() {
            text += &format!(
                "\nAs in [{0}](#{0}): {1}.\n",
                other.title(),
                shared.join(", ")
            );
        }
    }
    let own: Vec<_> = info
        .options
        .iter()
        .filter(|option| known(option).is_none())
        .collect();
    if !own.is_empty() {
        text += "\n| option | default | allowed | meaning |\n|---|---|---|---|\n";
        for option in own {
            let (low, high) = option.range;
            let allowed = match option.default {
                Value::Flag(_) => String::new(),
                Value::Duration(_) if format!("{low} to {high}") == ANY => String::new(),
                Value::Choice(_) => option.words.join(", "),
                Value::Counts(_) => format!("1 to {} of {low} to {high}", Counts::MAX),
                _ => format!("{low} to {high}"),
            };
            text += &format!(
                "| `{}` | {} | {allowed} | {} |\n",
                option.key, option.default, option.help
            );
        }
    }
    text
}
