//! Angles as a fraction of a turn.

use crate::Nanos;
use core::ops::{Add, Sub};

/// An angle on the platter: a 32-bit fraction of a turn, which wraps by itself.
///
/// Zero is the index mark: sector 0 of cylinder 0, head 0, unless the layout says otherwise. The
/// angle under the heads grows with time. One step is 2 ps at 7200 rpm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Angle(u32);

impl Angle {
    /// The index mark.
    pub const ZERO: Angle = Angle(0);

    /// The angle of `bits` 2^32nds of a turn.
    pub const fn from_bits(bits: u32) -> Angle {
        Angle(bits)
    }

    /// The angle in 2^32nds of a turn.
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// Where slot `index` of a track of `per_track` slots begins, rounded up so that the slot of an
    /// angle is never the one before; whole turns are dropped.
    ///
    /// # Panics
    ///
    /// If `per_track` is zero.
    pub const fn of_slot(index: u64, per_track: u32) -> Angle {
        let index = index % per_track as u64;
        Angle((index << 32).div_ceil(per_track as u64) as u32)
    }

    /// The slot of a track of `per_track` slots in which this angle lies.
    pub const fn slot(self, per_track: u32) -> u32 {
        ((self.0 as u64 * per_track as u64) >> 32) as u32
    }

    /// The angle that the platter has turned by in the time `phase`, at `turn` per revolution.
    ///
    /// # Panics
    ///
    /// If `turn` is zero or 4.29 s and more.
    pub fn turned(phase: Nanos, turn: Nanos) -> Angle {
        assert!(
            turn.as_nanos() < 1 << 32,
            "a revolution takes less than 4.29 s"
        );
        Angle((((phase.as_nanos() % turn.as_nanos()) << 32) / turn.as_nanos()) as u32)
    }

    /// Time in which the platter turns by this angle, at `turn` per revolution. The result is rounded to the nearest
    /// nanosecond and at most a revolution.
    pub const fn time(self, turn: Nanos) -> Nanos {
        Nanos::from_nanos((self.0 as u64 * turn.as_nanos() + (1 << 31)) >> 32)
    }

    /// The angle nearest to a fraction of a turn; whole turns are dropped.
    pub fn from_turns(turns: f64) -> Angle {
        // `floor` is not in `core`; an integer cast truncates toward zero.
        let whole = turns as i64 as f64;
        let part = turns - whole;
        let part = if part < 0.0 { part + 1.0 } else { part };
        Angle((part * 4_294_967_296.0 + 0.5) as u64 as u32)
    }

    /// As a fraction of a turn, 0 to 1.
    pub fn turns(self) -> f64 {
        f64::from(self.0) / 4_294_967_296.0
    }
}

impl Add for Angle {
    type Output = Angle;

    fn add(self, other: Angle) -> Angle {
        Angle(self.0.wrapping_add(other.0))
    }
}

impl Sub for Angle {
    type Output = Angle;

    /// Angle from `from` to `self`, in the direction of the turn.
    fn sub(self, from: Angle) -> Angle {
        Angle(self.0.wrapping_sub(from.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TURN: Nanos = Nanos::from_nanos(8_333_333);

    #[test]
    fn quarters_of_a_turn_add_up() {
        let quarter = Angle::of_slot(1, 4);
        assert_eq!(quarter + quarter + quarter + quarter, Angle::ZERO);
        assert_eq!(quarter.time(TURN), Nanos::from_nanos(2_083_333));
        assert_eq!(
            Angle::turned(TURN * 5 + TURN / 4, TURN).time(TURN),
            TURN / 4
        );
        assert_eq!((Angle::ZERO - quarter).turns(), 0.75);
        assert_eq!(Angle::from_turns(-0.25).turns(), 0.75);
    }

    proptest! {
        #[test]
        fn slots_round_trip(per_track in 1_u32..10_000, index in 0_u32..10_000) {
            let index = index % per_track;
            prop_assert_eq!(Angle::of_slot(u64::from(index), per_track).slot(per_track), index);
        }

        #[test]
        fn waiting_takes_less_than_a_turn(bits in any::<u32>()) {
            prop_assert!(Angle::from_bits(bits).time(TURN) <= TURN);
        }

        #[test]
        fn time_and_angle_agree(phase in 0_u64..8_333_333) {
            let angle = Angle::turned(Nanos::from_nanos(phase), TURN);
            prop_assert_eq!(angle.time(TURN), Nanos::from_nanos(phase));
        }
    }
}
