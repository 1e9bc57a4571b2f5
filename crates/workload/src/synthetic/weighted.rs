//! Values with weights: text and random draws.

use crate::Random;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;

/// A text that is not a distribution.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{found}` is no distribution: {problem}; allowed are {allowed}")]
pub struct DistributionError {
    pub found: String,
    /// The problem, and the allowed values.
    pub problem: String,
    pub allowed: &'static str,
}

/// Reads `VALUE/WEIGHT:VALUE/WEIGHT`. Weights are whole numbers from 1 on.
pub(super) fn weighted<T>(text: &str) -> Result<Arc<[(T, u32)]>, String>
where
    T: FromStr<Err: fmt::Display>,
{
    let entry = |entry: &str| {
        let (value, weight) = entry
            .split_once('/')
            .ok_or_else(|| format!("`{entry}` has no / before its weight"))?;
        let value = value.trim().parse::<T>();
        let value = value.map_err(|problem| problem.to_string())?;
        match weight.trim().parse::<u32>() {
            Ok(weight @ 1..) => Ok((value, weight)),
            _ => Err(format!(
                "the weight `{weight}` is no whole number from 1 on"
            )),
        }
    };
    text.split(':').map(entry).collect()
}

/// Writes the notation that [`weighted`] reads.
pub(super) fn write_weighted<T: fmt::Display>(
    entries: &[(T, u32)],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    for (number, (value, weight)) in entries.iter().enumerate() {
        let between = if number > 0 { ":" } else { "" };
        write!(f, "{between}{value}/{weight}")?;
    }
    Ok(())
}

/// Values, each with the sum of the weights up to and including its own.
#[derive(Clone, Debug)]
pub(super) struct Weights<T>(Arc<[(u64, T)]>);

impl<T: Copy> Weights<T> {
    /// Creates a table to draw from. Returns `None` if all weights are zero.
    pub(super) fn new(entries: impl IntoIterator<Item = (T, u32)>) -> Option<Weights<T>> {
        let mut sum = 0;
        let entries = entries.into_iter().map(|(value, weight)| {
            sum += u64::from(weight);
            (sum, value)
        });
        let entries: Arc<[(u64, T)]> = entries.collect();
        (sum > 0).then_some(Weights(entries))
    }

    pub(super) fn draw(&self, stream: &mut Random) -> T {
        let (sum, _) = self.0[self.0.len() - 1];
        let drawn = stream.below(sum);
        self.0[self.0.partition_point(|(upto, _)| *upto <= drawn)].1
    }
}
