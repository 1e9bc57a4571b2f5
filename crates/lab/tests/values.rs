//! `docs/values.md` agrees with the catalogue of measured values.
//!
//! With `HEADTIME_BLESS=1` in the environment the page is written anew instead of compared.

use headtime_lab::report::catalogue::{Better, Measure, all};
use headtime_lab::scenario::Header;
use std::fmt::Write;

const INTRO: &str = "\
<!-- Written by crates/lab/tests/values.rs from the catalogue of measured values; HEADTIME_BLESS=1 writes it anew. -->
# Measured values

A value has one name everywhere: as a heading of CSV, in the results of a [sweep](sweep.md), after `--metric`, as `metric` of a
[figure](figures.md) and of an [invariant](sweep.md). JSON of `sim run` has more, in the shape of a run.

Figures judge a value if more or less is better. The N of a percentile is 1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99 or 999,
which is 99.9. A value that a run does not have is empty (null in JSON). Values that begin with `probe_` need the drive learned, which takes
seconds. The options of the [engine](scenario.md#keys) are columns too.
";

/// Rows of the table: values with one unit and direction, whose help begins alike.
#[derive(Clone)]
struct Row {
    names: Vec<&'static str>,
    unit: &'static str,
    better: &'static str,
    help: Vec<&'static str>,
}

/// Common beginning of two texts, up to a comma or a colon.
fn common<'a>(one: &'a str, other: &str) -> &'a str {
    let same = one.bytes().zip(other.bytes());
    let len = same.take_while(|(a, b)| a == b).count();
    let end = one[..len].rfind(", ").max(one[..len].rfind(": "));
    end.map_or("", |end| &one[..end + 2])
}

impl Row {
    fn of(measure: &'static Measure) -> Self {
        let better = match measure.better {
            Better::More => "more",
            Better::Less => "less",
            Better::Neither => "",
        };
        let name = match measure.is_column {
            true => measure.name,
            false => measure.family,
        };
        // The help of a percentile has its words for one number at the end.
        let help = match name.contains("_pN") {
            true => measure.help.rsplit_once(", ").map_or("", |(help, _)| help),
            false => measure.help,
        };
        Self {
            names: vec![name],
            unit: measure.unit,
            better,
            help: vec![help],
        }
    }

    /// The beginning of all texts.
    fn base(&self) -> &'static str {
        let rest = self.help.iter().skip(1);
        rest.fold(self.help[0], |base, help| common(base, help))
    }

    /// True if the row took the other in.
    fn took(&mut self, other: &Row) -> bool {
        let base = common(self.help[0], other.help[0]);
        let alike = self.unit == other.unit;
        let begins = match self.help.len() {
            1 => !base.is_empty(),
            _ => other.help[0].starts_with(self.base()),
        };
        if alike && begins {
            self.names.extend(&other.names);
            self.help.extend(&other.help);
        }
        alike && begins
    }

    fn text(&self) -> String {
        let names: Vec<String> = self.names.iter().map(|name| format!("`{name}`")).collect();
        // Names tell the values of one row apart.
        let help = match self.help.len() {
            1 => self.help[0],
            _ => self.base().trim_end_matches([' ', ',', ':']),
        };
        let Row { unit, .. } = self;
        // Most names end in their unit.
        let is_named = [("ms", "_ms"), ("s", "_s"), ("MB/s", "_mb_s"), ("us", "_us")]
            .iter()
            .any(|(known, end)| unit == known && self.names[0].ends_with(*end));
        let unit = if is_named { "" } else { *unit };
        format!("| {} | {unit} | {help} |\n", names.join(", "))
    }
}

fn table(page: &mut String, heading: &str, measures: impl Iterator<Item = &'static Measure>) {
    let all: Vec<Row> = measures.map(Row::of).collect();
    write!(
        page,
        "\n## {heading}\n\n| name | unit | what it is |\n|---|---|---|\n"
    )
    .expect("strings do not fail");
    for (better, title) in [
        ("more", "more is better"),
        ("less", "less is better"),
        ("", "neither"),
    ] {
        writeln!(page, "| **{title}** | | |").expect("strings do not fail");
        let mut rows: Vec<Row> = Vec::new();
        for row in all.iter().filter(|row| row.better == better) {
            if !rows.last_mut().is_some_and(|last| last.took(row)) {
                rows.push(row.clone());
            }
        }
        rows.iter().for_each(|row| page.push_str(&row.text()));
    }
}

#[test]
fn the_page_is_up_to_date() {
    let mut page = String::from(INTRO);
    let options = Header::names();
    let shown = || {
        all()
            .iter()
            .filter(|measure| !options.contains(&measure.name))
    };
    table(
        &mut page,
        "Columns of CSV",
        shown().filter(|measure| measure.is_column),
    );
    // A family has one row.
    let mut family = "";
    let others = shown().filter(|measure| !measure.is_column);
    let others =
        others.filter(|measure| std::mem::replace(&mut family, measure.family) != measure.family);
    table(&mut page, "Other values", others);
    let bless = std::env::var_os("HEADTIME_BLESS").is_some_and(|bless| bless == "1");
    headtime_testkit::written("values.md", "headtime-lab", &page, bless);
}
