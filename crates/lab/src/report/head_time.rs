//! Head time of a run, by activity of the arm.

use headtime_disk::Part;
use serde::{Serialize, Serializer};

/// Seconds that the arm spent on each activity. The parts cover the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HeadTime([f64; Part::ALL.len()]);

impl HeadTime {
    /// Makes a head time with this time for each part.
    pub fn of(time: impl FnMut(Part) -> f64) -> HeadTime {
        HeadTime(Part::ALL.map(time))
    }

    /// The time of one part.
    pub fn get(&self, part: Part) -> f64 {
        self.0[part as usize]
    }

    /// Sum of all parts.
    pub fn total(&self) -> f64 {
        self.0.iter().sum()
    }

    /// Share of a part in the sum, in %; 0 if the sum is 0.
    pub fn share(&self, part: Part) -> f64 {
        let total = self.total();
        match total > 0.0 {
            true => 100.0 * self.get(part) / total,
            false => 0.0,
        }
    }
}

impl Serialize for HeadTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Part::ALL.map(|part| (key(part), self.get(part))))
    }
}

/// The name of a part as a key and in the names of columns.
pub fn key(part: Part) -> String {
    part.name().replace('-', "_")
}
