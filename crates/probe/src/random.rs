//! Random numbers: PCG XSL RR 128/64 (O'Neill 2014), pinned by `rand_pcg`.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{RngCore, SeedableRng};

/// Sequence of random numbers that a seed determines.
#[derive(Clone, Debug)]
pub struct Random(Pcg64);

impl Random {
    /// Starts the sequence of a seed.
    pub fn new(seed: u64) -> Random {
        Random(Pcg64::seed_from_u64(seed))
    }

    /// Draws an integer from 0 to `most`.
    ///
    /// The number is the high half of a product, with a bias below `most` / 2^64.
    pub fn up_to(&mut self, most: u64) -> u64 {
        let product = u128::from(self.0.next_u64()) * (u128::from(most) + 1);
        (product >> 64) as u64
    }

    /// Draws a number from 0 to less than 1.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_range_and_pinned() {
        let mut random = Random::new(1);
        for most in [0, 1, 9, u64::MAX] {
            for _ in 0..1000 {
                assert!(random.up_to(most) <= most);
            }
        }
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.unit())));
        let mut random = Random::new(7);
        let first: Vec<u64> = (0..4).map(|_| random.up_to(999)).collect();
        assert_eq!(
            first,
            [0, 231, 901, 835],
            "another generator changes every curve"
        );
    }
}
