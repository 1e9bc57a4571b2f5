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
[figure](experiments.md#a-figure-is-data) and of an [invariant](sweep.md). JSON of `sim run` has more, in the shape of a run.

Values marked CSV have a column. Figures judge a value where *better* says `more` or `less`. The N of a percentile is 1, 5, 10, 20, 30, 40, 50,
60, 70, 80, 90, 95, 99 or 999, which is 99.9. A value that a run does not have is empty (null in JSON). Values that begin with `probe_` need the
drive learned, which takes seconds. The options of the [engine](scenario.md#keys) are columns too.

| name | unit | CSV | better | what it is |
|---|---|---|---|---|
";

fn row(page: &mut String, measure: &Measure) {
    let better = match measure.better {
        Better::More => "more",
        Better::Less => "less",
        Better::Neither => "",
    };
    let (name, csv) = match measure.is_column {
        true => (measure.name, "CSV"),
        false => (measure.family, ""),
    };
    // The help of a percentile has its words for one number at the end.
    let help = match name.contains("_pN") {
        true => measure.help.rsplit_once(", ").map_or("", |(help, _)| help),
        false => measure.help,
    };
    let unit = measure.unit;
    writeln!(page, "| `{name}` | {unit} | {csv} | {better} | {help} |")
        .expect("strings do not fail");
}

#[test]
fn the_page_is_up_to_date() {
    let mut page = String::from(INTRO);
    let options = Header::names();
    let shown = all().iter();
    let shown = shown.filter(|measure| !options.contains(&measure.name));
    let mut family = "";
    for measure in shown {
        // A family has one row for those without a column.
        if measure.is_column || measure.family != family {
            row(&mut page, measure);
        }
        if !measure.is_column {
            family = measure.family;
        }
    }
    let bless = std::env::var_os("HEADTIME_BLESS").is_some_and(|bless| bless == "1");
    headtime_testkit::written("values.md", "headtime-lab", &page, bless);
}
