//! The results of a sweep's runs.

use crate::report::Run;
use crate::report::catalogue::{Measure, columns};
use crate::report::field::Field;
use crate::report::row::Row;

/// Outcomes of all combinations, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Results(pub Vec<Outcome>);

/// Outcome of one combination.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Measured rows: the whole run, then its programs and origins if there are several.
    Rows(Vec<MeasuredRow>),
    /// Reason why nothing was measured.
    Failed(String),
}

/// One row of measured values.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredRow {
    /// Name of the row: the whole run, a workload, a program or an origin.
    pub origin: String,
    /// Number of the row's program; [`Field::Nothing`] if the row has no program.
    pub program: Field,
    /// One field for each column, see [`columns`]. In a run with invariants, the row of the whole run ends with the metric of each
    /// invariant.
    pub fields: Vec<Field>,
}

impl Outcome {
    /// Returns the rows of a run. With values that invariants judge, returns the row of the whole alone.
    pub fn of(run: &Run, judged: &[&'static Measure]) -> Outcome {
        let most = if judged.is_empty() { usize::MAX } else { 1 };
        let rows = Row::all(run).into_iter().take(most).map(|row| MeasuredRow {
            origin: row.name(),
            program: match row {
                Row::Named(_, named, _) if named.program > 0 => named.program.into(),
                Row::Origin(_, origin) if origin.program > 0 => u32::from(origin.program).into(),
                Row::Origin(..) | Row::Named(..) | Row::Member(..) | Row::Whole(_) => {
                    Field::Nothing
                }
            },
            fields: (columns().iter().chain(judged.iter().copied()))
                .map(|value| value.of(&row))
                .collect(),
        });
        Outcome::Rows(rows.collect())
    }

    /// True if nothing was measured.
    pub fn is_failure(&self) -> bool {
        matches!(self, Outcome::Failed(_))
    }

    /// A field of the row for the whole.
    pub fn whole(&self, column: &str) -> Option<&Field> {
        let Outcome::Rows(rows) = self else {
            return None;
        };
        let place = columns().iter().position(|other| other.name == column)?;
        rows.first()?.fields.get(place)
    }

    /// Returns the metric of an invariant, by its number.
    pub fn judged(&self, invariant: usize) -> Option<&Field> {
        let Outcome::Rows(rows) = self else {
            return None;
        };
        rows.first()?.fields.get(columns().len() + invariant)
    }
}

impl Results {
    /// Number of failed combinations.
    pub fn failed(&self) -> usize {
        self.0.iter().filter(|outcome| outcome.is_failure()).count()
    }
}
