//! Percentiles of distributions.

use super::super::field::Field;
use super::super::row::Row;
use super::super::{AtPercents, PERCENTS, Run, Spread};
use super::measure::{Better, Measure, whole};

/// A distribution whose percentiles are measured.
struct Shown {
    /// The beginning and the end of the names.
    name: (&'static str, &'static str),
    unit: &'static str,
    help: &'static str,
    values: fn(&Run) -> Option<&AtPercents>,
}

const DISTRIBUTIONS: [Shown; 5] = [
    Shown {
        name: ("response", "_ms"),
        unit: "ms",
        help: "arrival to completion",
        values: |run| Some(&run.percentiles.response),
    },
    Shown {
        name: ("service", "_ms"),
        unit: "ms",
        help: "drive to completion",
        values: |run| Some(&run.percentiles.device),
    },
    Shown {
        name: ("interval", "_ms"),
        unit: "ms",
        help: "from one completion of the drive to the next",
        values: |run| Some(&run.percentiles.interval),
    },
    Shown {
        name: ("tx_response", "_ms"),
        unit: "ms",
        help: "from a call to its return",
        values: |run| run.transactions.map(|_| &run.percentiles.calls),
    },
    Shown {
        name: ("delay", ""),
        unit: "commands",
        help: "by how many later commands one was overtaken in the drive",
        values: |run| Some(&run.percentiles.delay),
    },
];

/// A percentile in words.
fn words(percent: f64) -> String {
    match percent {
        1.0 => "1st percentile".to_owned(),
        50.0 => "median".to_owned(),
        whole if whole.fract() == 0.0 => format!("{whole}th percentile"),
        part => format!("what {part} % do not exceed"),
    }
}

/// Each of [`PERCENTS`] of each distribution.
pub(super) fn percentiles() -> impl Iterator<Item = Measure> {
    DISTRIBUTIONS.iter().flat_map(|shown| {
        let (begin, end) = shown.name;
        let family: &str = format!("{begin}_pN{end}").leak();
        PERCENTS.iter().enumerate().map(move |(place, percent)| {
            let digits = percent.to_string().replace('.', "");
            let name = format!("{begin}_p{digits}{end}").leak();
            let help = format!("{}, {}", shown.help, words(*percent)).leak();
            let value = move |run: &Run| Some((shown.values)(run)?[place]);
            Measure {
                family,
                ..Measure::new(Better::Less, name, shown.unit, help, whole(value))
            }
        })
    })
}

/// The percentile of this name.
pub(super) fn percentile(name: &str) -> Measure {
    let mut all = percentiles();
    all.find(|one| one.name == name)
        .expect("a column names a percentile that there is")
}

/// Mean, percentiles and longest value of a distribution that rows have as a [`Spread`].
pub(super) fn spread(
    name: &str,
    help: &'static str,
    of: fn(&Row<'_>) -> Option<Spread>,
) -> impl Iterator<Item = Measure> {
    Spread::VALUES.into_iter().map(move |(kind, value)| {
        let name = format!("{name}_{kind}_ms").leak();
        let which = match kind {
            "mean" => "mean".to_owned(),
            "max" => "longest".to_owned(),
            "p999" => words(99.9),
            percent => words(percent[1..].parse().expect("p and a number")),
        };
        let help = format!("{help}, {which}").leak();
        let of = move |row: &Row<'_>| {
            let spread = of(row).filter(|spread| !spread.is_empty);
            Field::from(spread.map(|spread| value(&spread)))
        };
        Measure::new(Better::Less, name, "ms", help, of)
    })
}
