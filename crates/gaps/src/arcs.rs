//! Parts of a turn as bits, to exclude sectors of a track that cannot pass in time.

use headtime_units::{Angle, Nanos};

/// A set of the equal arcs into which a turn is divided, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arcs(u16);

/// Number of bits of an angle, in 2^64ths of a turn, that count within an arc.
const ARC_BITS: u32 = u64::BITS - 4;

/// Greatest rounding error of angles and times together.
const ROUNDING_MAX: Nanos = Nanos::from_nanos(8);

impl Arcs {
    /// All arcs of a turn.
    pub(super) const ALL: Arcs = Arcs(u16::MAX);

    /// Size of an arc in 2^64ths of a turn.
    pub(super) const SIZE: u64 = 1 << ARC_BITS;

    pub(super) fn from_bits(bits: u16) -> Arcs {
        Arcs(bits)
    }

    /// Returns one bit for each arc.
    pub(super) fn to_bits(self) -> u16 {
        self.0
    }

    /// Returns the arc of an angle in 2^64ths of a turn.
    pub(super) fn at(angle: u64) -> Arcs {
        Arcs(1 << (angle >> ARC_BITS))
    }

    /// Returns the arcs that pass, in whole or in part, during `span` from an angle on. The platter turns by `per_nano` 2^64ths of a turn
    /// in a nanosecond.
    pub(super) fn passing(from: Angle, span: Nanos, per_nano: u64) -> Arcs {
        let rounded = ROUNDING_MAX.as_nanos() * per_nano;
        let first = (u64::from(from.to_bits()) << 32).wrapping_sub(rounded);
        let turned = u128::from(span.as_nanos()) * u128::from(per_nano) + 2 * u128::from(rounded);
        if turned >= u128::from(u64::MAX - Arcs::SIZE) {
            return Arcs::ALL;
        }
        Arcs::between(first, first.wrapping_add(turned as u64))
    }

    /// Returns the arcs in which consecutive items begin. The first one begins at an angle in 2^64ths of a turn. An item has the `size` of
    /// an arc or less, and all items together have a turn at most.
    pub(super) fn of_items(first: u64, size: u64, count: u64) -> Arcs {
        let span = size.saturating_mul(count - 1);
        if span >= u64::MAX - Arcs::SIZE {
            return Arcs::ALL;
        }
        Arcs::between(first, first.wrapping_add(span))
    }

    /// Returns the arcs from an angle on to another, both in 2^64ths of a turn. Angles in the same arc have that arc alone.
    fn between(first: u64, last: u64) -> Arcs {
        let more = ((last >> ARC_BITS).wrapping_sub(first >> ARC_BITS) % 16) as u32;
        Arcs((u16::MAX >> (15 - more)).rotate_left((first >> ARC_BITS) as u32))
    }

    /// Returns the number of arcs.
    pub(super) fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Returns the arcs that are in both sets.
    pub(super) fn and(self, other: Arcs) -> Arcs {
        Arcs(self.0 & other.0)
    }

    /// Returns the arcs that are in either set.
    pub(super) fn or(self, other: Arcs) -> Arcs {
        Arcs(self.0 | other.0)
    }

    /// Returns the greatest number of consecutive items of a size, in 2^64ths of a turn, that can begin in an arc.
    pub(super) fn most(size: u64) -> u64 {
        (Arcs::SIZE - 1) / size.max(1) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// An angle that passes in a window lies in one of the window's arcs, and there are not many more arcs.
        #[test]
        fn the_arcs_of_a_window_are_those_where_something_passes(
            from: u32,
            turn in 1_000_000_u64..20_000_000,
            span in 0_u64..30_000_000,
            along in 0.0..=1.0,
        ) {
            let per_nano = u64::MAX / turn;
            let arcs = Arcs::passing(Angle::from_bits(from), Nanos::from_nanos(span), per_nano);
            let passes = (span as f64 * along) as u64;
            let angle = (u64::from(from) << 32).wrapping_add(passes.wrapping_mul(per_nano));
            let (arc, rest) = (Arcs::at(angle), Arcs::SIZE - angle % Arcs::SIZE);
            prop_assert_eq!(arcs.and(arc), arc);
            prop_assert_eq!(Arcs::at(angle.wrapping_add(rest - 1)), arc);
            prop_assert_ne!(Arcs::at(angle.wrapping_add(rest)), arc);
            let least = span * 16 / turn;
            prop_assert!(u64::from(arcs.count()) <= least + 3, "{} of {least}", arcs.count());
        }

        /// The arcs of consecutive items are those in which any of the items begins.
        #[test]
        fn the_arcs_of_items_are_those_in_which_an_item_begins(
            first: u64,
            size in Arcs::SIZE / 50..=Arcs::SIZE,
            share in 0.0..1.0,
        ) {
            let count = 1 + (share * (u64::MAX / size) as f64) as u64;
            let begins = (0..count).map(|item| first.wrapping_add(item * size));
            let naive = begins.fold(Arcs::default(), |arcs, begin| arcs.or(Arcs::at(begin)));
            prop_assert_eq!(Arcs::of_items(first, size, count), naive);
        }

        #[test]
        fn no_more_things_begin_in_an_arc_than_may(begin: u64, size in Arcs::SIZE / 50..u64::MAX / 2) {
            let first = Arcs::at(begin);
            let mut count = 0;
            let mut at = begin;
            while count < 60 && Arcs::at(at) == first {
                count += 1;
                at = match at.checked_add(size) {
                    Some(next) => next,
                    None => break,
                };
            }
            prop_assert!(count <= Arcs::most(size), "{count} of {}", Arcs::most(size));
        }
    }
}
