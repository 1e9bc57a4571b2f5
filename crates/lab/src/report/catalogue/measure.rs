//! A measured value.

use super::super::field::Field;
use super::super::row::Row;
use super::super::{Run, round};
use crate::accuracy::Learning;
use std::fmt;

/// Better direction of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    More,
    /// Less is better.
    Less,
    /// The value describes a run. No figure and no invariant judges the value.
    Neither,
}

type OfRow = Box<dyn Fn(&Row<'_>) -> Field + Send + Sync>;

/// A value that is measured of a run.
pub struct Measure {
    /// Name: the heading in CSV, the key in a sweep's JSON, the `metric` of a figure.
    pub name: &'static str,
    /// Unit of the numbers; empty without a unit.
    pub unit: &'static str,
    /// Better direction.
    pub better: Better,
    /// Meaning, in a line.
    pub help: &'static str,
    /// True if CSV and sweeps have a column of the value.
    pub is_column: bool,
    /// Kind of learning that the value needs of the run's drive. Learning takes seconds, and longer if the whole drive is read.
    pub learning: Option<Learning>,
    /// Name shared by values that differ in a number alone, such as `response_pN_ms`.
    pub family: &'static str,
    /// Decimal places of the column in rows of runs; `None` if the value is rounded already.
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

/// Takes a value of a run as a whole. Other rows have none.
pub(super) fn whole<T: Into<Field>>(
    value: impl Fn(&Run) -> T + Send + Sync + 'static,
) -> impl Fn(&Row<'_>) -> Field + Send + Sync {
    move |row| row.whole().map(&value).into()
}

/// Takes a value of a run for each of its rows.
pub(super) fn described<T: Into<Field>>(
    value: impl Fn(&Run) -> T + Send + Sync + 'static,
) -> impl Fn(&Row<'_>) -> Field + Send + Sync {
    move |row| value(row.run()).into()
}

/// Entries: better direction, name, unit, meaning, and the function that takes the value of a row.
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

    /// Value of a row; [`Field::Nothing`] if the row has none.
    pub fn of(&self, row: &Row<'_>) -> Field {
        match ((self.of)(row), self.places, row) {
            (Field::Number(number), Some(places), Row::Whole(_) | Row::Member(..)) => {
                Field::Number(round(number, places))
            }
            (field, ..) => field,
        }
    }

    /// Number of a run as a whole, not rounded; `None` if the run has none.
    pub fn of_run(&self, run: &Run) -> Option<f64> {
        (self.of)(&Row::Whole(run)).number()
    }

    /// True if figures and invariants can judge the value.
    pub fn is_judged(&self) -> bool {
        self.better != Better::Neither
    }

    /// Share of the best value that any scheduler could have, in %. Rates and times of the whole work have a share if the run has a bound.
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
