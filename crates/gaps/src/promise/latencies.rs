//! A distribution of latencies of fixed size.

use headtime_units::Nanos;

/// Counts of each octave: steps of under 0.8 %.
const STEPS: usize = 128;
/// The finest step is 2 to the power of this many nanoseconds.
const FINEST_STEP_BITS: u32 = 10;
/// Octaves of the distribution. Latencies above some 39 hours count as 39 hours.
const OCTAVES: usize = 31;

/// Latencies in steps of 1.024 us, and above 131 us in steps of less than 0.8 %. The size is fixed, so every request can be counted.
#[derive(Clone)]
pub(super) struct Latencies {
    counts: Box<[u64]>,
    count: u64,
}

impl Default for Latencies {
    /// Returns an empty distribution.
    fn default() -> Latencies {
        Latencies {
            counts: vec![0; STEPS * OCTAVES].into(),
            count: 0,
        }
    }
}

/// Returns the step in which a latency is counted.
fn index(latency: Nanos) -> usize {
    let steps = latency.as_nanos() >> FINEST_STEP_BITS;
    let octave = ((steps / STEPS as u64) | 1).ilog2() as usize;
    // The first two octaves have the same steps.
    let octave = octave + usize::from(steps >= STEPS as u64);
    let shift = octave.saturating_sub(1);
    let at = octave * STEPS + ((steps >> shift) as usize % STEPS);
    at.min(STEPS * OCTAVES - 1)
}

/// Returns the least latency of a step, in nanoseconds.
fn least(index: usize) -> u64 {
    let (octave, within) = (index / STEPS, (index % STEPS) as u64);
    match octave {
        0 => within << FINEST_STEP_BITS,
        octave => (within + STEPS as u64) << (octave as u32 - 1 + FINEST_STEP_BITS),
    }
}

impl Latencies {
    pub(super) fn add(&mut self, latency: Nanos) {
        self.counts[index(latency)] += 1;
        self.count += 1;
    }

    /// Returns the number of latencies.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the latency that a share (0 to 1) of the latencies does not exceed; zero if there are none.
    pub(super) fn at(&self, share: f64) -> Nanos {
        let wanted = ((share * self.count as f64).ceil() as u64).max(1);
        let mut below = 0;
        for (index, count) in self.counts.iter().enumerate() {
            if below + count >= wanted {
                let (from, to) = (least(index), least(index + 1));
                // The latencies of a step are taken as evenly spread.
                let along = (to - from) as f64 * (wanted - below) as f64 / *count as f64;
                return Nanos::from_nanos(from + along as u64);
            }
            below += count;
        }
        Nanos::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_is_counted_where_its_step_begins_or_above() {
        let mut last = 0;
        for bits in 0..48 {
            for add in [0_u64, 1, 1_000, 77_777] {
                let nanos = (1_u64 << bits) + add;
                let at = index(Nanos::from_nanos(nanos));
                if at == STEPS * OCTAVES - 1 {
                    continue;
                }
                assert!(least(at) <= nanos && nanos < least(at + 1), "{nanos}");
            }
            let at = index(Nanos::from_nanos(1 << bits));
            assert!(at >= last);
            last = at;
        }
        let steps = (STEPS..STEPS * OCTAVES - 1).map(|at| least(at + 1) as f64 / least(at) as f64);
        assert!(steps.fold(0.0, f64::max) <= 1.0 + 1.0 / STEPS as f64);
    }

    #[test]
    fn percentiles_are_right_within_a_step() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.at(0.99), Nanos::ZERO);
        for us in 1..=100_000_u64 {
            latencies.add(Nanos::from_micros(us));
        }
        assert_eq!(latencies.count(), 100_000);
        for share in [0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let off = latencies.at(share).as_micros_f64() / (share * 1e5) - 1.0;
            assert!(off.abs() < 0.008, "{share}: {off}");
        }
    }
}
