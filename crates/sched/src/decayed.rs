//! A mean that forgets, as the Linux schedulers keep of think times and seeks.

/// Weight above which a mean is valid. The third sample reaches 84.
const VALID_ABOVE: u64 = 80;

/// A mean in which each sample weighs 7/8 of the next, in integers like the kernel's.
///
/// Sums are scaled by 256. `samples` goes 32, 60, 84, .. towards 256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decayed {
    pub samples: u64,
    pub total: u64,
    pub mean: u64,
}

impl Decayed {
    /// Adds a sample. `rounding` returns a term for the number of samples, which is added to the sum
    /// before the division.
    pub fn add(&mut self, value: u64, rounding: impl Fn(u64) -> u64) {
        self.samples = (7 * self.samples + 256) / 8;
        let scaled = value.saturating_mul(256);
        self.total = (self.total.saturating_mul(7).saturating_add(scaled)) / 8;
        self.mean = self.total.saturating_add(rounding(self.samples)) / self.samples;
    }

    pub fn is_valid(self) -> bool {
        self.samples > VALID_ABOVE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn the_third_sample_makes_a_mean_valid() {
        let mut decayed = Decayed::default();
        let mut seen = Vec::new();
        for _ in 0..5 {
            decayed.add(0, |_| 128);
            seen.push((decayed.samples, decayed.mean, decayed.is_valid()));
        }
        // With few samples, the mean of zero think times is above zero.
        let expected = [
            (32, 4, false),
            (60, 2, false),
            (84, 1, true),
            (105, 1, true),
            (123, 1, true),
        ];
        assert_eq!(seen, expected);
    }
}
