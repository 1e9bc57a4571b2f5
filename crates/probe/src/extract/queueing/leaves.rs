//! When the arm leaves a read for a command that waits.

use serde::{Deserialize, Serialize};

/// When the arm leaves a read for a command that waits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Leaves {
    /// So many nanoseconds after the last sector has passed, when the data are sent; `None` if it is for no answer.
    pub after: Option<f64>,
    /// Behind so many more sectors at least.
    pub read_on: u64,
}

impl Leaves {
    /// How long the head stays behind a sector, where one passes every `slot` nanoseconds.
    pub(in super::super) fn hold(self, slot: f64) -> f64 {
        // The sector that is passing is read to its end.
        match (self.after, self.read_on) {
            (None, read_on) => read_on.max(1) as f64 * slot,
            (Some(after), 0) => after + slot / 2.0,
            (Some(after), read_on) => f64::max(after, read_on as f64 * slot),
        }
    }

    /// Sectors that are read behind a read before the arm may leave, if that shows.
    pub fn read_on(self) -> Option<u64> {
        (self.after.is_none() || self.read_on > 0).then_some(self.read_on)
    }

    /// Of sectors that are held behind a read in two zones, each with the time of a sector.
    ///
    /// `None` if neither a number of them nor a time explains both.
    pub(super) fn of(held: [(u64, f64); 2]) -> Option<Leaves> {
        let [(few, long), (many, short)] = match held[0].1 > held[1].1 {
            true => held,
            false => [held[1], held[0]],
        };
        if few.max(many) <= 1 {
            return Some(Leaves {
                after: None,
                read_on: 0,
            });
        }
        // The sector that was passing is not held. How many are may be off by one.
        let (few, many) = (few as f64, many as f64);
        let from = f64::max(few * long, many * short);
        let to = f64::min((few + 1.0) * long, (many + 1.0) * short);
        let is_time = from < to + long;
        match (few == many, is_time) {
            (true, false) => Some(Leaves {
                after: None,
                read_on: many as u64,
            }),
            (false, true) => Some(Leaves {
                after: Some((from + to) / 2.0),
                read_on: 0,
            }),
            _ => None,
        }
    }
}
