//! The drive: its requests, its sequential rate, and the decision if it queues.

use super::id::since;
use super::queue::is_seek;
use crate::level::LEVELS;
use headtime_units::{Extent, Lba, Nanos, Time};

/// Rate that durations refer to, in sectors per second: 109.4 MB/s (`ref_rate`).
const REFERENCE_RATE: u64 = 213_623;

/// Length of an observation of the rate, and the shortest that counts (`BFQ_RATE_REF_INTERVAL`, `BFQ_RATE_MIN_INTERVAL`).
const OBSERVATION_TIME: Nanos = Nanos::from_secs(1);
const OBSERVATION_MIN: Nanos = Nanos::from_millis(300);

/// Fewest requests of an observation that counts (`BFQ_RATE_MIN_SAMPLES`).
const SAMPLES_MIN: u64 = 32;

/// Pause of the drive that ends an observation.
const OBSERVATION_PAUSE: Nanos = Nanos::from_millis(100);

/// Pause of the drive after which a request does not count as sequential (`BFQ_MIN_TT`).
const SEQUENTIAL_PAUSE: Nanos = Nanos::from_millis(2);

/// Number of requests above which a drive queues (`BFQ_HW_QUEUE_THRESHOLD`).
const QUEUEING_REQUESTS: u64 = 3;

/// Number of samples per decision about queueing, less one.
const QUEUEING_SAMPLES: u64 = 32;

/// Requests in the drive, its sequential rate, and the assumption if it queues.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BfqDrive {
    /// Requests handed out that have not come back, by level.
    pub by_level: [u64; LEVELS],
    /// Estimate of the rate, in sectors per second.
    rate: u64,
    /// Requests in this observation, and how many were sequential.
    samples: u64,
    sequential: u64,
    sectors: u64,
    begin: Time,
    last_handed_out: Time,
    last_completion: Time,
    last_end: Option<Lba>,
    /// True if the drive queues; `None` if that is unknown.
    pub queues: Option<bool>,
    queue_samples: u64,
    queue_peak: u64,
}

impl BfqDrive {
    /// Builds a drive before the first request, at two thirds of the reference rate.
    pub fn new() -> BfqDrive {
        BfqDrive {
            rate: REFERENCE_RATE * 2 / 3,
            ..BfqDrive::default()
        }
    }

    /// Returns the number of requests in the drive.
    pub fn requests(&self) -> u64 {
        self.by_level.iter().sum()
    }

    /// Returns true if the drive queues, or if that is unknown.
    pub fn queues(&self) -> bool {
        self.queues != Some(false)
    }

    /// Returns the sectors that the drive reads in this time, at least 1.
    pub fn sectors_in(&self, time: Nanos) -> u64 {
        let sectors = u128::from(self.rate) * u128::from(time.as_nanos()) / 1_000_000_000;
        (sectors as u64).max(1)
    }

    /// Returns the length of raising: 7 s for a drive of the reference rate, longer for a slower one.
    pub fn raising(&self) -> Nanos {
        Nanos::from_millis((7_000 * REFERENCE_RATE / self.rate).clamp(3_000, 25_000))
    }

    /// Notes a request that goes to the drive (bfq_update_peak_rate).
    pub fn hand_out(&mut self, now: Time, extent: Extent, level: usize) {
        let (requests, sectors) = (self.requests(), extent.len.get());
        let paused = requests == 0 && since(now, self.last_handed_out) > OBSERVATION_PAUSE;
        if self.samples > 0 && !paused {
            let streams = requests > 0 || since(now, self.last_completion) < SEQUENTIAL_PAUSE;
            self.sequential += u64::from(streams && !is_seek(self.last_end, extent));
            self.samples += 1;
            self.sectors = self.sectors.saturating_add(sectors);
            self.last_handed_out = now;
        }
        let length = since(self.last_handed_out, self.begin);
        if self.samples == 0 || paused || length >= OBSERVATION_TIME {
            self.conclude(length);
            (self.samples, self.sequential, self.sectors) = (1, 0, sectors);
            self.begin = now;
        }
        self.last_handed_out = now;
        self.last_end = Some(extent.end());
        self.by_level[level] += 1;
    }

    /// Takes an observation into the estimate, if it is long enough. A rate below the estimate counts only if three
    /// quarters of the requests were sequential (bfq_update_rate_reset).
    fn conclude(&mut self, length: Nanos) {
        if self.samples < SAMPLES_MIN || length < OBSERVATION_MIN {
            return;
        }
        let length = length.max(since(self.last_completion, self.begin));
        let length = u128::from(length.as_nanos());
        let rate = (u128::from(self.sectors) * 1_000_000_000 / length) as u64;
        if self.sequential < self.samples * 3 / 4 && rate <= self.rate {
            return;
        }
        let share = u128::from(9 * self.sequential / self.samples);
        let weight = share * length / u128::from(OBSERVATION_TIME.as_nanos());
        let divisor = 10 - weight.min(8) as u64;
        self.rate = (self.rate * (divisor - 1) / divisor + rate / divisor).max(1);
    }

    /// Notes a completion, which is a sample for the decision if the drive queues. `of_short_think` is the number of
    /// requests, here and in the drive, of the queue in service, if its process thinks briefly (bfq_update_hw_tag).
    pub fn complete(&mut self, now: Time, level: usize, queued: u64, of_short_think: Option<u64>) {
        let requests = self.requests();
        self.queue_peak = self.queue_peak.max(requests);
        let kept_short = requests < QUEUEING_REQUESTS
            && of_short_think.is_some_and(|own| own < QUEUEING_REQUESTS);
        if self.queues != Some(true) && requests + queued > QUEUEING_REQUESTS && !kept_short {
            self.queue_samples += 1;
            if self.queue_samples > QUEUEING_SAMPLES {
                self.queues = Some(self.queue_peak > QUEUEING_REQUESTS);
                (self.queue_samples, self.queue_peak) = (0, 0);
            }
        }
        self.by_level[level] -= 1;
        self.last_completion = now;
    }
}
