//! Division by a number that is known when a profile is loaded.

/// Divides by a constant with one multiplication.
#[derive(Clone, Copy, Debug)]
pub(super) struct Divider {
    by: u64,
    /// The binary logarithm of `by`, rounded down.
    shift: u32,
    /// (2^(64 + shift) − 1) / by, rounded down; between 2^63 and 2^64.
    reciprocal: u64,
}

impl Divider {
    /// Divides by `by`, which is not zero.
    pub(super) fn new(by: u64) -> Divider {
        assert!(by > 0);
        let shift = by.ilog2();
        let ones = (u128::from(u64::MAX) << shift) | ((1 << shift) - 1);
        Divider {
            by,
            shift,
            reciprocal: (ones / u128::from(by)) as u64,
        }
    }

    /// Quotient and remainder of a number below 2^63.
    ///
    /// Let k = 64 + shift, r = reciprocal and e = 2^k − r·by. Then e is between 1 and by, and by is below 2^(shift +
    /// 1). The product (n + 1)·r lies above 2^k·floor(n / by) as long as (n + 1)·e is at most 2^k. The product always
    /// lies below the next multiple. The test checks the corners.
    #[inline]
    pub(super) fn divide(&self, number: u64) -> (u64, u64) {
        debug_assert!(number < 1 << 63);
        let product = u128::from(number + 1) * u128::from(self.reciprocal);
        let quotient = ((product >> 64) as u64) >> self.shift;
        (quotient, number - quotient * self.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_divider_is_exact_at_the_corners() {
        let powers = (0..62).flat_map(|power| [(1_u64 << power) - 1, 1 << power, (1 << power) + 1]);
        for by in powers
            .chain([6, 13, 334, 75_040, 12_006_400])
            .filter(|by| *by > 0)
        {
            let divider = Divider::new(by);
            let last = (1 << 63) - 1;
            for multiple in [0, 1, 2, 1000, last / by] {
                for offset in [-1_i64, 0, 1] {
                    let exact = multiple.checked_mul(by);
                    let number = exact.and_then(|exact| exact.checked_add_signed(offset));
                    let Some(number) = number.filter(|number| *number <= last) else {
                        continue;
                    };
                    assert_eq!(divider.divide(number), (number / by, number % by));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn the_divider_divides_like_the_processor(number in 0_u64..1 << 63, by in 1_u64..1 << 44) {
            prop_assert_eq!(Divider::new(by).divide(number), (number / by, number % by));
        }
    }
}
