//! A measured value.

use super::super::field::Field;
use super::super::row::Row;
use super::super::{Run, round};
use headtime_probe::accuracy::Learning;
use std::fmt;

/// Which way a value is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    More,
    /// Less is better.
    Less,
    /// The value describes a run; no figure and no invariant judges it.
    Neither,
}

type OfRow = Box<dyn Fn(&Row<'_>) -> Field + Send + Sync>;

/// A value that is measured of a run.
pub struct Measure {
    /// Its name: the heading in CSV, the key in a sweep's JSON, the `metric` of a figure.
    pub name: &'static str,
    /// The unit of its numbers; empty if they have none.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
    /// What it is, in a line.
    pub help: &'static str,
    /// True if CSV and sweeps have a column of it.
    pub is_column: bool,
    /// How the drive of a run has to be learned for it, if it has. That takes seconds, and longer where all of it is read.
    pub learning: Option<Learning>,
    /// Its name among those that differ in a number alone, such as `response_pN_ms`.
    pub family: &'static str,
    /// Decimal places of a column, where the value has more.
    pub(super) places: Option<i32>,
    pub(super) of: OfRow,
}

impl fmt::Debug for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Measure").field(&self.name).finish()
    }
}

impl PartialEq for Measure {
    fn eq(&self, other: &Measure) -> bool {
        self.name == other.name
    }
}

/// A value of a run as a whole; other rows have none.
pub(super) fn whole<T: Into<Field>>(
    value: impl Fn(&Run) -> T + Send + Sync + 'static,
) -> impl Fn(&Row<'_>) -> Field + Send + Sync {
    move |row| row.whole().map(&value).into()
}

/// A value of a run that all its rows have.
pub(super) fn described<T: Into<Field>>(
    value: impl Fn(&Run) -> T + Send + Sync + 'static,
) -> impl Fn(&Row<'_>) -> Field + Send + Sync {
    move |row| value(row.run()).into()
}

/// Entries: which way is better, name, unit, what the value is, and how it is taken of a row.
macro_rules! measures {
    ($($better:ident $name:expr, $unit:expr, $help:expr, $of:expr;)+) => {
        vec![$(Measure::new(Better::$better, $name, $unit, $help, $of)),+]
    };
}
pub(super) use measures;

impl Measure {
    pub(super) fn new(
        better: Better,
        name: &'static str,
        unit: &'static str,
        help: &'static str,
        of: impl Fn(&Row<'_>) -> Field + Send + Sync + 'static,
    ) -> Measure {
        Measure {
            name,
            unit,
            better,
            help,
            is_column: false,
            learning: None,
            family: name,
            places: None,
            of: Box::new(of),
        }
    }

    /// The value in a row; nothing if the row has none.
    pub fn of(&self, row: &Row<'_>) -> Field {
        match ((self.of)(row), self.places) {
            (Field::Number(number), Some(places)) => Field::Number(round(number, places)),
            (field, _) => field,
        }
    }

    /// The number that a run as a whole has, with all its digits; nothing if the run has none.
    pub fn of_run(&self, run: &Run) -> Option<f64> {
        (self.of)(&Row::Whole(run)).number()
    }

    /// Returns true if figures and invariants can judge it.
    pub fn is_judged(&self) -> bool {
        self.better != Better::Neither
    }

    /// What it is of the best that any scheduler could have, in %: of rates and of times of the whole work, where a run has a bound.
    pub fn share_of_bound(&self, run: &Run) -> Option<f64> {
        let bound = run.bound?;
        match self.name {
            "throughput_mb_s" | "iops" | "time_s" | "programs_mb_s" => Some(bound.share),
            "programs_kb_s" => {
                let most = bound.programs_kb_s.filter(|most| *most > 0.0)?;
                self.of_run(run).map(|value| 100.0 * value / most)
            }
            _ => None,
        }
    }
}
