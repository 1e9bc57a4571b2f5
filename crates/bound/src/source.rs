//! Bounds for sources other than programs: traces and synthetic processes.

use crate::array::{Array, split};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Time};
use headtime_workload::Source;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Largest number of requests for which a bound is computed. Each takes about 100 bytes.
pub const REQUESTS_MAX: usize = 1 << 23;

/// The requests of a source, in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub reads: Vec<Extent>,
    pub writes: Vec<Extent>,
    /// Flushes and discards.
    pub others: u64,
}

impl Asked {
    fn count(&self) -> usize {
        self.reads.len() + self.writes.len() + self.others as usize
    }

    /// Returns the number of sectors of all reads and writes.
    pub fn sectors(&self) -> u64 {
        let extents = self.reads.iter().chain(&self.writes);
        extents.map(|extent| extent.len.get()).sum()
    }

    /// Splits all requests by drive. Flushes and discards count for a single drive only, since their members in an
    /// array are unknown.
    pub fn by_drive(self, array: Option<&Array>) -> Vec<Asked> {
        let others = match array {
            None => self.others,
            Some(_) => 0,
        };
        let (reads, writes) = (split(array, self.reads), split(array, self.writes));
        let shares = reads.into_iter().zip(writes);
        let shares = shares.map(|(reads, writes)| Asked {
            reads,
            writes,
            others,
        });
        shares.collect()
    }

    fn add(&mut self, op: Op, extent: Extent) {
        match op {
            Op::Read => self.reads.push(extent),
            Op::Write => self.writes.push(extent),
            Op::Flush | Op::Discard => self.others += 1,
        }
    }
}

/// Returns the earliest end of a source, and its requests. Each request takes `least`, and any number of requests runs
/// in parallel. Returns `None` if there are too many requests.
///
/// The time is a bound if earlier completions delay or change no request. This holds for all replays and synthetic
/// processes.
pub(crate) fn drain(
    source: &mut dyn Source,
    least: impl Fn(Op, Extent) -> Nanos,
) -> Option<(Time, Asked)> {
    let (mut now, mut asked) = (Time::ZERO, Asked::default());
    let mut under_way = UnderWay::default();
    loop {
        while let Some(request) = source.poll(now) {
            let least = least(request.op, request.extent);
            under_way.add(now, least, request.cookie);
            if asked.count() == REQUESTS_MAX {
                return None;
            }
            asked.add(request.op, request.extent);
        }
        let arrival = source.next_arrival().map(|at| at.max(now));
        let done = under_way.first();
        match (arrival, done) {
            (Some(at), done) if done.is_none_or(|(done, _)| at < done) => now = at,
            (_, Some((at, which))) => {
                now = at;
                if let Some(cookie) = under_way.take(which) {
                    source.completed(at, cookie);
                }
            }
            _ => return Some((now, asked)),
        }
    }
}

/// Outstanding requests by completion time and by cookie.
///
/// Among requests of equal duration, the first to arrive completes first.
#[derive(Debug, Default)]
struct UnderWay {
    /// A queue for each duration, with the completion time and the cookie of each request. The duration is the least
    /// time that these requests take.
    alike: Vec<(Nanos, VecDeque<(Time, u64)>)>,
    others: BinaryHeap<Reverse<(Time, u64)>>,
}

/// Number of durations with a queue. Requests of other durations are in a heap.
const DURATION_QUEUES: usize = 8;

impl UnderWay {
    /// Adds a request that takes `least` from `now` on. `now` never decreases.
    fn add(&mut self, now: Time, least: Nanos, cookie: u64) {
        let one = (now.saturating_add(least), cookie);
        let known = self.alike.iter().position(|(time, _)| *time == least);
        let place = known.unwrap_or_else(|| {
            if self.alike.len() < DURATION_QUEUES {
                self.alike.push((least, VecDeque::new()));
            }
            self.alike.len() - 1
        });
        let (time, queue) = &mut self.alike[place];
        if *time == least && queue.back().is_none_or(|last| *last <= one) {
            queue.push_back(one);
        } else {
            self.others.push(Reverse(one));
        }
    }

    /// Returns the time of the next completion, and the index of its queue in `alike`; `None` for a request in
    /// `others`.
    fn first(&self) -> Option<(Time, Option<usize>)> {
        let other = self.others.peek().map(|Reverse(one)| (*one, None));
        let alike = self.alike.iter().zip(0..);
        let fronts = alike.filter_map(|((_, queue), at)| Some((*queue.front()?, Some(at))));
        let first = fronts.chain(other).min_by_key(|(one, _)| *one);
        first.map(|((time, _), which)| (time, which))
    }

    /// Removes the request that [`UnderWay::first`] returned. Returns its cookie.
    fn take(&mut self, which: Option<usize>) -> Option<u64> {
        let one = match which {
            Some(at) => self.alike[at].1.pop_front(),
            None => self.others.pop().map(|Reverse(one)| one),
        };
        one.map(|(_, cookie)| cookie)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_done_in_order_of_time_and_name_however_many_times_there_are() {
        for kinds in [1, 2, 8, 9, 30] {
            let mut under_way = UnderWay::default();
            let mut expected = BinaryHeap::new();
            let mut now = Time::ZERO;
            for step in 0..3_000u64 {
                let draw = step.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) >> 8;
                // Cookies sometimes decrease while the time stays the same.
                let cookie = draw % 1_000_000;
                let least = Nanos::from_nanos(draw % kinds * 100);
                under_way.add(now, least, cookie);
                expected.push(Reverse((now + least, cookie)));
                while draw % 5 > 1 || expected.len() > 100 {
                    let Some(Reverse((at, cookie))) = expected.pop() else {
                        break;
                    };
                    let (time, which) = under_way.first().unwrap();
                    assert_eq!((time, under_way.take(which)), (at, Some(cookie)));
                    now = now.max(at);
                    if draw % 7 > 0 {
                        break;
                    }
                }
            }
            while let Some(Reverse((at, cookie))) = expected.pop() {
                let (time, which) = under_way.first().unwrap();
                assert_eq!((time, under_way.take(which)), (at, Some(cookie)));
            }
            assert_eq!(under_way.first(), None);
        }
    }
}
