//! A link that several drives share.

use headtime_units::{Nanos, Time};
use std::collections::VecDeque;
use std::num::NonZero;

/// A link between the host and all drives of a volume, such as the slot of a RAID card.
///
/// The link carries one transfer at a time at its full rate, first come, first served. DiskSim 4.0 models an exclusive
/// bus with that arbitration in the same way. Three choices are ours:
///
/// - A transfer comes when its drive is done with the command. The transfer takes all free time of the link since its data
///   began on the drive's own interface.
/// - The host learns of a command as late as the link is behind the drive's interface.
/// - The adapter takes data that wait for the link, so that no drive waits. A write's wait delays the answer, not the arm.
///
/// A drive alone on a link that is faster than its interface never waits. Transfers do not overlap on the interface, so each
/// finds free time on the link.
#[derive(Debug)]
pub(crate) struct Bus {
    bytes_per_s: NonZero<u64>,
    /// Stretches of time that are taken, in order, apart from each other or touching.
    taken: VecDeque<(Time, Time)>,
    /// All time before this counts as taken.
    forgotten: Time,
}

/// Stretches that are remembered: a second of five drives with 200 commands each.
const STRETCHES_MAX: usize = 1024;

impl Bus {
    pub fn new(bytes_per_s: NonZero<u64>) -> Bus {
        Bus {
            bytes_per_s,
            taken: VecDeque::with_capacity(STRETCHES_MAX + 1),
            forgotten: Time::ZERO,
        }
    }

    /// Carries data that are there from `from` on. Returns the time at which the last byte is across.
    pub fn carry(&mut self, from: Time, bytes: u64) -> Time {
        let nanos = (u128::from(bytes) * 1_000_000_000).div_ceil(self.bytes_per_s.get().into());
        let length = Nanos::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        if length.is_zero() {
            return from;
        }
        let from = from.max(self.forgotten);
        let first = self.taken.partition_point(|(_, end)| *end < from);
        let (mut begin, mut end) = (from, from.saturating_add(length));
        let mut behind = first;
        // The transfer fills the free time between the stretches that it meets. The stretches become one.
        while let Some(&(start, stop)) = self.taken.get(behind)
            && start < end
        {
            begin = begin.min(start);
            end = end.saturating_add(stop.saturating_since(start.max(from)));
            behind += 1;
        }
        self.taken.drain(first..behind);
        self.taken.insert(first, (begin, end));
        if self.taken.len() > STRETCHES_MAX
            && let Some((_, end)) = self.taken.pop_front()
        {
            self.forgotten = end;
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(nanos: usize) -> Time {
        Time::from_nanos(nanos as u64)
    }

    proptest! {
        /// Compares the link with a table of all nanoseconds.
        #[test]
        fn a_transfer_takes_the_free_time_from_its_beginning_on(
            transfers in prop::collection::vec((0_usize..200, 0_u64..90), 1..40),
        ) {
            // Three bytes in a nanosecond.
            let mut bus = Bus::new(NonZero::new(3_000_000_000).expect("not zero"));
            let mut taken = vec![false; 2_000];
            for (from, bytes) in transfers {
                let mut end = from;
                for _ in 0..bytes.div_ceil(3) {
                    end += taken[end..].iter().position(|taken| !taken).expect("room");
                    taken[end] = true;
                    end += 1;
                }
                prop_assert_eq!(bus.carry(at(from), bytes), at(end));
                let all: u64 = bus.taken.iter().map(|(from, to)| (*to - *from).as_nanos()).sum();
                prop_assert_eq!(all, taken.iter().filter(|taken| **taken).count() as u64);
            }
        }
    }

    #[test]
    fn what_is_forgotten_counts_as_taken() {
        let mut bus = Bus::new(NonZero::new(1_000_000_000).expect("not zero"));
        for number in 0..2 * STRETCHES_MAX {
            assert_eq!(bus.carry(at(number * 10), 5), at(number * 10 + 5));
        }
        assert_eq!(bus.taken.len(), STRETCHES_MAX);
        let forgotten = (STRETCHES_MAX - 1) * 10 + 5;
        assert_eq!(bus.carry(at(0), 3), at(forgotten + 3));
    }
}
