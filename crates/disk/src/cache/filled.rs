//! Counts the sectors in all segments, for a drive with more segments than room to fill them.

use super::segment::{Segment, State};
use crate::profile::CacheSpec;

/// Number of sectors in each segment and in all. Nothing is counted if all segments may be full.
#[derive(Clone, Debug)]
pub(super) struct Filled {
    /// By segment; empty if nothing is counted.
    sectors: Vec<u32>,
    sum: u64,
    room: u64,
    full: u32,
}

impl Filled {
    /// Nothing is held.
    pub fn new(spec: &CacheSpec) -> Filled {
        let counted = match spec.room_sectors {
            0 => 0,
            _ => spec.segments as usize,
        };
        Filled {
            sectors: vec![0; counted],
            sum: 0,
            room: u64::from(spec.room_sectors),
            full: spec.segment_sectors,
        }
    }

    /// The segment at a place may hold more or less than before.
    #[inline]
    pub fn count(&mut self, index: usize, segment: &Segment) {
        if !self.sectors.is_empty() {
            self.count_one(index, segment);
        }
    }

    #[inline(never)]
    fn count_one(&mut self, index: usize, segment: &Segment) {
        let counted = &mut self.sectors[index];
        let now = match segment.state {
            State::Empty => 0,
            // A lent segment is given up as a whole.
            State::Lent => self.full,
            State::Clean | State::Reading | State::Dirty | State::Writing => {
                (segment.end - segment.start) as u32
            }
        };
        self.sum = self.sum + u64::from(now) - u64::from(*counted);
        *counted = now;
    }

    /// Returns true if the segments hold more than there is room for.
    #[inline]
    pub fn is_over(&self) -> bool {
        !self.sectors.is_empty() && self.sum > self.room
    }
}
