//! Requests of a random run.

use super::random::Random;
use headtime_sched::{Class, Flags, Op, Origin};
use headtime_units::{Extent, Nanos, Time};
use headtime_workload::NewRequest;

/// Delays all arrivals, by up to 80 years.
pub(super) fn begin_late(random: &mut Random, requests: &mut [(Time, NewRequest)]) {
    let late = *random.pick(&[
        Nanos::ZERO,
        Nanos::from_nanos(1),
        Nanos::from_secs(90_000),
        Nanos::LONGEST,
        Nanos::LONGEST * 8,
    ]);
    for (at, request) in requests {
        *at += late;
        request.arrival += late;
    }
}

/// Bursts and lulls of sequential, random and overlapping requests, with flushes among them.
pub(super) fn requests(random: &mut Random, capacity: u64) -> Vec<(Time, NewRequest)> {
    let count = 20 + random.below(300);
    let mean_gap_us = *random.pick(&[10, 300, 3_000, 20_000]);
    let (write_share, flush_share) = (random.below(101), random.below(6));
    let (hot_share, sequential_share) = (random.below(101), random.below(101));
    let hot_start = random.below(capacity - 256);
    let size_max = *random.pick(&[1, 8, 64, 512]);
    let mut streams: Vec<u64> = (0..4).map(|_| random.below(capacity / 2)).collect();
    let mut now = Time::ZERO;
    (0..count)
        .map(|cookie| {
            // A third of the requests arrives together with the preceding request.
            if !random.chance(33) {
                now += Nanos::from_micros(random.below(2 * mean_gap_us));
            }
            let process = random.below(4);
            let len = 1 + random.below(size_max);
            let stream = &mut streams[process as usize];
            let start = if random.chance(sequential_share) {
                *stream = (*stream + len) % (capacity - len);
                *stream
            } else if random.chance(hot_share) {
                hot_start + random.below(256)
            } else {
                random.below(capacity)
            };
            let mut flags = Flags::NONE;
            let op = if random.chance(flush_share) {
                Op::Flush
            } else if random.chance(write_share) {
                for (flag, percent) in [(Flags::FUA, 10), (Flags::PREFLUSH, 3), (Flags::SYNC, 30)] {
                    if random.chance(percent) {
                        flags = flags.with(flag);
                    }
                }
                if random.chance(4) {
                    Op::Discard
                } else {
                    Op::Write
                }
            } else {
                Op::Read
            };
            let extent = match op {
                Op::Flush => Extent::default(),
                _ => Extent::at(start.min(capacity - len), len),
            };
            let class = *random.pick(&[
                Class::BEST_EFFORT,
                Class::BEST_EFFORT,
                Class::REAL_TIME,
                Class::IDLE,
            ]);
            let origin = Origin {
                process: process as u32 + 1,
                ..Origin::default()
            };
            (
                now,
                NewRequest {
                    cookie,
                    arrival: now,
                    op,
                    extent,
                    flags,
                    origin,
                    class,
                },
            )
        })
        .collect()
}

/// Hundreds or thousands of requests to up to three places, most of them open at a time.
#[derive(Debug)]
pub(super) struct Crowd {
    count: u64,
    /// Number of places. A request begins less than `spread` sectors after its place, and has at most `size_max` sectors.
    places: u64,
    spread: u64,
    size_max: u64,
    write_share: u64,
    /// Discards among a hundred requests, and flushes among a thousand.
    discard_share: u64,
    flush_share: u64,
    /// Requests over all of the places, among a hundred.
    large_share: u64,
    mean_gap_us: u64,
    /// True if all requests have the same origin and class, and no flags.
    alike: bool,
}

impl Crowd {
    pub fn draw(random: &mut Random) -> Crowd {
        let more = *random.pick(&[300, 2_500]);
        Crowd {
            count: 200 + random.below(more),
            places: 1 + random.below(3),
            spread: *random.pick(&[1, 8, 64]),
            size_max: *random.pick(&[1, 8, 16, 64]),
            write_share: *random.pick(&[0, 1, 10, 50, 100]),
            discard_share: *random.pick(&[0, 5]),
            flush_share: *random.pick(&[0, 0, 2, 100]),
            large_share: *random.pick(&[0, 0, 3]),
            mean_gap_us: *random.pick(&[1, 100, 2_000]),
            alike: random.chance(50),
        }
    }

    pub fn requests(&self, random: &mut Random, capacity: u64) -> Vec<(Time, NewRequest)> {
        const BETWEEN: u64 = 512;
        let all = self.places * BETWEEN;
        let base = random.below(capacity - all);
        let fixed = random.chance(50);
        let mut now = Time::ZERO;
        let one = |cookie| {
            now += Nanos::from_micros(random.below(2 * self.mean_gap_us));
            let (mut op, mut flags) = (Op::Read, Flags::NONE);
            if random.below(1000) < self.flush_share {
                op = Op::Flush;
            } else if random.chance(self.discard_share) {
                op = Op::Discard;
            } else if random.chance(self.write_share) {
                op = Op::Write;
                if !self.alike && random.chance(20) {
                    flags = *random.pick(&[Flags::FUA, Flags::SYNC, Flags::PREFLUSH]);
                }
            }
            let len = match fixed {
                true => self.size_max,
                false => 1 + random.below(self.size_max),
            };
            let place = base + BETWEEN * random.below(self.places);
            let extent = match op {
                Op::Flush => Extent::default(),
                _ if random.chance(self.large_share) => Extent::at(base, all),
                _ => Extent::at(place + random.below(self.spread), len),
            };
            let mut process = 1;
            let mut class = Class::BEST_EFFORT;
            if !self.alike {
                process += random.below(40) as u32;
                class = Class(random.below(3) as u8);
            }
            let origin = Origin {
                process,
                ..Origin::default()
            };
            let request = NewRequest {
                cookie,
                arrival: now,
                op,
                extent,
                flags,
                origin,
                class,
            };
            (now, request)
        };
        (0..self.count).map(one).collect()
    }
}
