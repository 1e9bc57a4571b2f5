//! The choice of a sweep between two requests, in the old Linux elevators.
//!
//! Both the anticipatory scheduler and CFQ weigh two addresses against the end of the last request.
//! A seek ahead costs its distance, and a short seek back costs a multiple of its distance. A
//! request farther behind is left for the next sweep.

use headtime_units::{Lba, Sectors};

/// Parameters of seeks back. Source: Linux 2.6.31, `block/as-iosched.c` and `block/cfq-iosched.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LookBack {
    /// Largest distance behind at which a request is still weighed, inclusive.
    pub most: Sectors,
    /// Factor of a distance behind.
    pub penalty: u64,
}

impl LookBack {
    /// Returns the cost of going from `last` to `to`, or `None` if `to` is left for the next sweep.
    pub fn cost(self, last: Lba, to: Lba) -> Option<u64> {
        let distance = to.distance(last);
        if to >= last {
            Some(distance.get())
        } else if distance <= self.most {
            Some(distance.get().saturating_mul(self.penalty))
        } else {
            None
        }
    }

    /// Returns true if a sweep that stands at `last` takes `other` rather than `one`.
    ///
    /// The lower cost wins, and of equal costs the higher address. If both are left for the next
    /// sweep, the lower address wins, since that sweep begins at the bottom. False for two equal
    /// addresses.
    pub fn prefers_other(self, last: Lba, one: Lba, other: Lba) -> bool {
        match (self.cost(last, one), self.cost(last, other)) {
            (Some(cost), Some(of_other)) if cost == of_other => other > one,
            (Some(cost), Some(of_other)) => of_other < cost,
            (Some(_), None) => false,
            (None, Some(_)) => true,
            (None, None) => other < one,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACK: LookBack = LookBack {
        most: Sectors::new(1_000),
        penalty: 2,
    };

    #[test]
    fn ahead_costs_the_distance_and_behind_twice_that() {
        let cost = |to| BACK.cost(Lba::new(5_000), Lba::new(to));
        let expected = [
            (5_000, Some(0)),
            (5_300, Some(300)),
            (900_000, Some(895_000)),
            (4_900, Some(200)),
            (4_000, Some(2_000)),
            (3_999, None),
            (0, None),
        ];
        for (to, expected) in expected {
            assert_eq!(cost(to), expected, "to {to}");
        }
    }

    #[test]
    fn the_cheaper_wins_and_of_equals_the_higher() {
        for (one, other, wins) in [
            (5_100, 5_200, 5_100),
            (5_200, 4_950, 4_950),
            // Both cost 200.
            (4_900, 5_200, 5_200),
            // However far ahead, it is nearer than the next sweep.
            (3_000, 900_000, 900_000),
            (3_000, 2_000, 2_000),
        ] {
            let take = |one, other| {
                let other_wins =
                    BACK.prefers_other(Lba::new(5_000), Lba::new(one), Lba::new(other));
                if other_wins { other } else { one }
            };
            assert_eq!(take(one, other), wins, "{one} or {other}");
            assert_eq!(take(other, one), wins, "{other} or {one}");
        }
        let at = Lba::new(7);
        assert!(!BACK.prefers_other(Lba::ZERO, at, at));
    }
}
