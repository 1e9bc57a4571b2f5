//! A page of documentation that is written from a table of policies or gates.

use headtime_sched::{Counts, PolicyInfo, Value};
use std::fmt::Write;
use std::path::Path;

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
        writeln!(
            page,
            "\n| name | idea | {} | options | source |",
            self.bound
        )
        .expect("strings do not fail");
        page += "|---|---|---|---|---|\n";
        table.iter().for_each(|info| page += &row(info));
        table.iter().for_each(|info| page += &section(info));
        page
    }
}

fn row(info: &PolicyInfo) -> String {
    let names: Vec<String> = [format!("`{}`", info.title())]
        .into_iter()
        .chain(info.aliases.iter().map(|alias| format!("`{alias}`")))
        .collect();
    let number = info.number.map(|_| "`N`".to_string());
    let keys = info
        .options
        .iter()
        .map(|option| format!("`{}`", option.key));
    let options: Vec<String> = number.into_iter().chain(keys).collect();
    let options = if options.is_empty() {
        "none".to_string()
    } else {
        options.join(", ")
    };
    let row = [
        &names.join(", "),
        info.idea,
        info.bound,
        &options,
        info.source,
    ];
    let row = row.map(|cell| cell.replace('|', "\\|"));
    format!("| {} |\n", row.join(" | "))
}

fn section(info: &PolicyInfo) -> String {
    let mut text = format!("\n## {}\n\n", info.title());
    let needs = match (info.needs.positioning, info.needs.curve) {
        (true, _) => " Needs a drive profile to know where sectors are.",
        (_, true) => " Needs a curve of service times.",
        _ => "",
    };
    let mut idea: Vec<char> = info.idea.chars().collect();
    idea[0] = idea[0].to_ascii_uppercase();
    let idea: String = idea.into_iter().collect();
    text += &format!("{idea}.{needs} Avoid it where {}.\n", info.avoid);
    if let Some(number) = info.number {
        text += &format!(
            "\n`N`, {} to {}, as in `{}{}`: {}.\n",
            number.min, number.max, info.name, number.example, number.help
        );
    }
    if !info.options.is_empty() {
        text += "\n| option | default | allowed | meaning |\n|---|---|---|---|\n";
        for option in info.options {
            let (low, high) = option.range;
            let allowed = match option.default {
                Value::Flag(_) => format!("{low}, {high}"),
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
