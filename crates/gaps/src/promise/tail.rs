//! How many latencies are long, coarsely.

use headtime_units::Nanos;

/// A quarter of an octave each, from 1 ms to 68 s.
const STEPS: usize = 64;
/// The first of them, as a power of two of nanoseconds, less the two bits of a quarter.
const FINEST: u32 = 18;

/// Latencies by quarters of octaves, with weights: 512 bytes for a part of a cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tail {
    counts: [f64; STEPS],
    count: f64,
}

impl Default for Tail {
    /// Of nothing.
    fn default() -> Tail {
        Tail {
            counts: [0.0; STEPS],
            count: 0.0,
        }
    }
}

/// Where a latency is counted. What is shorter than 1 ms counts as that, what is longer than a minute as that.
fn index(latency: Nanos) -> usize {
    let steps = (latency.as_nanos() >> FINEST).max(4);
    let octave = steps.ilog2() - 2;
    let quarter = (steps >> octave) as usize - 4;
    (octave as usize * 4 + quarter).min(STEPS - 1)
}

impl Tail {
    pub(super) fn add(&mut self, latency: Nanos) {
        self.counts[index(latency)] += 1.0;
        self.count += 1.0;
    }

    pub(super) fn add_all(&mut self, other: &Tail) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.count += other.count;
    }

    pub(super) fn halve(&mut self) {
        for count in &mut self.counts {
            *count /= 2.0;
        }
        self.count /= 2.0;
    }

    /// How many there are.
    pub(super) fn count(&self) -> f64 {
        self.count
    }

    /// How many are as long as this, or by less than a quarter shorter.
    pub(super) fn from(&self, limit: Nanos) -> f64 {
        self.counts[index(limit)..].iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_as_long_as_a_limit_counts_and_what_is_a_quarter_shorter_does_not() {
        let ms = Nanos::from_millis_f64;
        for limit in [1.1, 2.0, 3.3, 8.0, 118.0, 1_000.0, 60_000.0] {
            let mut tail = Tail::default();
            for _ in 0..3 {
                tail.add(ms(limit * 0.75));
            }
            assert_eq!(
                tail.from(ms(limit)),
                if limit < 1.4 { 3.0 } else { 0.0 },
                "{limit}"
            );
            tail.add(ms(limit));
            tail.add(ms(limit * 100.0));
            assert!(tail.from(ms(limit)) >= 2.0, "{limit}");
            let (count, from) = (tail.count(), tail.from(ms(limit)));
            let twice = tail;
            tail.add_all(&twice);
            tail.halve();
            assert_eq!((tail.count(), tail.from(ms(limit))), (count, from));
        }
    }
}
