//! The results of a sweep's runs.

use crate::report::Run;
use crate::report::catalogue::{Measure, columns};
use crate::report::field::Field;
use crate::report::row::Row;

/// What came of every combination, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Results(pub Vec<Outcome>);

/// What came of one combination.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// What was measured: the whole, then its programs and origins where there are several.
    Rows(Vec<MeasuredRow>),
    /// Why nothing was.
    Failed(String),
}

/// One row of what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredRow {
    /// Whose figures they are.
    pub origin: String,
    /// Of which program; nothing if of none.
    pub program: Field,
    /// One field for each column, see [`columns`]. The whole of a run with invariants has the metric of each invariant behind.
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

    /// Whether nothing was measured.
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
    /// How many combinations failed.
    pub fn failed(&self) -> usize {
        self.0.iter().filter(|outcome| outcome.is_failure()).count()
    }
}
