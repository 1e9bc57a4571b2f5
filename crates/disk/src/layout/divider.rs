//! Division by a number that is known when a profile is loaded.

/// Divides by a constant with one multiplication.
#[derive(Clone, Copy, Debug)]
pub(super) struct Divider {
    by: u64,
    /// (2^64 − 1) / by, rounded down.
    reciprocal: u64,
}

impl Divider {
    /// Divides by `by`, which is not zero.
    pub(super) fn new(by: u64) -> Divider {
        assert!(by > 0);
        Divider {
            by,
            reciprocal: u64::MAX / by,
        }
    }

    /// Quotient and remainder of numbers below 2^44, by a divisor below 2^44.
    ///
    /// With r = reciprocal and e = 2^64 − r·by (between 1 and by), (n + 1)·r lies above
    /// 2^64·floor(n / by) as long as (n + 1)·e is less than 2^64, and below the next multiple
    /// always: see the test for the corners. Larger divisors fall back on the division itself.
    pub(super) fn divide(&self, number: u64) -> (u64, u64) {
        debug_assert!(number < 1 << 44);
        let quotient = if self.by < 1 << 19 {
            ((u128::from(number + 1) * u128::from(self.reciprocal)) >> 64) as u64
        } else {
            number / self.by
        };
        (quotient, number - quotient * self.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_divider_is_exact_at_the_corners() {
        for by in [
            1,
            2,
            3,
            5,
            6,
            7,
            13,
            334,
            4096,
            65_535,
            (1 << 19) - 1,
            1 << 19,
            1 << 40,
        ] {
            let divider = Divider::new(by);
            for multiple in [0, 1, 2, 1000, ((1 << 44) - 1) / by] {
                for offset in [-1_i64, 0, 1] {
                    let Some(number) = (multiple * by).checked_add_signed(offset) else {
                        continue;
                    };
                    if number < 1 << 44 {
                        assert_eq!(divider.divide(number), (number / by, number % by));
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn the_divider_divides_like_the_processor(number in 0_u64..1 << 44, by in 1_u64..1 << 20) {
            prop_assert_eq!(Divider::new(by).divide(number), (number / by, number % by));
        }
    }
}
