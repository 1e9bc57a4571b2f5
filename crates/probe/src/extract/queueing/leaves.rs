//! Time at which the arm leaves a read for a waiting command.

use serde::{Deserialize, Serialize};

/// Time at which the arm leaves a read for a waiting command.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Leaves {
    /// Nanoseconds from the end of the last sector until the data are sent and the arm may leave. `None` if the arm does not wait for the
    /// answer.
    pub after: Option<f64>,
    /// Least number of sectors behind the read that the head also reads.
    pub read_on: u64,
}

impl Leaves {
    /// Time that the head stays behind a sector, in nanoseconds, with a sector every `slot` nanoseconds.
    pub(in super::super) fn hold(self, slot: f64) -> f64 {
        // The current sector is read to its end.
        match (self.after, self.read_on) {
            (None, read_on) => read_on.max(1) as f64 * slot,
            (Some(after), 0) => after + slot / 2.0,
            (Some(after), read_on) => f64::max(after, read_on as f64 * slot),
        }
    }

    /// Sectors that are read behind a read before the arm may leave, if measurable.
    pub fn read_on(self) -> Option<u64> {
        (self.after.is_none() || self.read_on > 0).then_some(self.read_on)
    }

    /// Explains the numbers of sectors that are held behind a read in two zones. Each number comes with the time of a sector.
    ///
    /// `None` if neither a fixed number of sectors nor a fixed time explains both.
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
        // The sector under the head is not held, and the numbers may be off by one.
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
