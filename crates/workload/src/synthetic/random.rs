//! Random numbers whose values are a promise.
//!
//! The generator is PCG XSL RR 128/64 (LCG), "Pcg64" of the `rand_pcg` crate, which documents it as
//! deterministic and portable; its version is pinned in `Cargo.lock`, its first outputs by a test.
//! What is drawn from it is computed here: the distributions of general crates may change their
//! values from version to version, and the logarithm of the platform's maths library may differ in
//! the last bit.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::RngCore;

/// A stream of random numbers that does not depend on any other.
#[derive(Clone, Debug)]
pub(crate) struct Stream(Pcg64);

impl Stream {
    /// The stream of one purpose of one process. Different arguments give unrelated streams.
    pub(crate) fn new(seed: u64, process: u32, purpose: u32) -> Stream {
        // SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): its output function is a bijection that
        // mixes well, so chaining it over the three numbers gives unrelated states.
        let mut state = mix(mix(seed) ^ (u64::from(process) << 32 | u64::from(purpose)));
        let mut draw = || {
            state = state.wrapping_add(GOLDEN);
            u128::from(mix(state))
        };
        let (high, low, stream_high, stream_low) = (draw(), draw(), draw(), draw());
        Stream(Pcg64::new(high << 64 | low, stream_high << 64 | stream_low))
    }

    /// Uniform over 0 to `count` − 1.
    ///
    /// # Panics
    ///
    /// If `count` is zero.
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        assert!(count > 0, "no value lies below zero");
        // Multiply and keep the high half; the few low halves that would favour some values are
        // drawn again (Lemire, ACM TOMACS 29(1), 2019).
        let reject = count.wrapping_neg() % count;
        loop {
            let product = u128::from(self.0.next_u64()) * u128::from(count);
            if product as u64 >= reject {
                return (product >> 64) as u64;
            }
        }
    }

    /// Uniform over the 2⁵³ multiples of 2⁻⁵³ from 0 on, below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// True with this probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Exponential with mean 1; at most 36.8.
    pub(crate) fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(GOLDEN);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, every simulated result changes: the generator has to be pinned back, or the
    /// change announced. The values were checked against an implementation of their own.
    #[test]
    fn first_outputs_are_pinned() {
        let mut stream = Stream::new(1, 0, 0);
        let raw: Vec<u64> = (0..4).map(|_| stream.0.next_u64()).collect();
        assert_eq!(
            raw,
            [
                2991947868751810744,
                9388822488227177820,
                14601269072263086814,
                8075791214502817528
            ]
        );
        let mut stream = Stream::new(1, 0, 0);
        let below: Vec<u64> = (0..4).map(|_| stream.below(1000)).collect();
        assert_eq!(below, [162, 508, 791, 437]);
        let mut stream = Stream::new(1, 0, 0);
        let bits: Vec<u64> = (0..4).map(|_| stream.exponential().to_bits()).collect();
        assert_eq!(
            bits,
            [
                4595543982196260913,
                4604581573746247058,
                4609740421726369295,
                4603362276244845599
            ]
        );
    }

    #[test]
    fn streams_differ() {
        let first = |seed, process, purpose| Stream::new(seed, process, purpose).0.next_u64();
        let mut seen: Vec<u64> = Vec::new();
        for seed in 0..10 {
            for process in 0..10 {
                for purpose in 0..4 {
                    seen.push(first(seed, process, purpose));
                }
            }
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 400);
    }

    #[test]
    fn distributions_have_their_moments() {
        let mut stream = Stream::new(42, 3, 1);
        let count = 200_000;
        let mean = |draw: &mut dyn FnMut() -> f64| {
            (0..count).map(|_| draw()).sum::<f64>() / f64::from(count)
        };
        // Five standard errors.
        let unit = mean(&mut || stream.unit());
        assert!(
            (unit - 0.5).abs() < 5.0 * 0.29 / f64::from(count).sqrt(),
            "{unit}"
        );
        let exponential = mean(&mut || stream.exponential());
        assert!(
            (exponential - 1.0).abs() < 5.0 / f64::from(count).sqrt(),
            "{exponential}"
        );
        let below = mean(&mut || stream.below(7) as f64);
        assert!(
            (below - 3.0).abs() < 5.0 * 2.0 / f64::from(count).sqrt(),
            "{below}"
        );
    }
}
