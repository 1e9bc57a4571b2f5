//! Linux's mq-deadline elevator of today.
//!
//! # Rule
//!
//! Batches, directions and expiries are as in [`deadline`](crate::Deadline). Two things differ.
//!
//! The elevator looks up the continuation of a batch on demand: the first request that starts at or
//! after the start of the last one handed out. So a request that arrives ahead joins the sweep.
//!
//! Each class has its own queues. A lower class is served only while no higher class has a request
//! queued, with one exception. If the next request of a lower class is at least `prio_aging_expire` old,
//! it goes first. All classes share the direction, the length of the batch and the count of passed-over
//! writes. The search for an aged request may begin a new batch, as in the original. Classes below
//! [`Class::IDLE`] count as idle.
//!
//! The original differs in two points. There a class is empty when it has nothing queued and nothing in
//! the drive. This keeps lower classes out of the drive's own queue and leaves room there empty. Here a
//! class is empty when it has nothing queued. The original counts time in timer ticks; here time is
//! exact.
//!
//! # Bound
//!
//! Within one class, the bound of `deadline`. A lower class has no bound under a steady load of a higher
//! one, since aging considers only the request that the class would serve next.
//!
//! # Tunables
//!
//! The tunables of `deadline`, and:
//!
//! - `prio_aging_expire` (duration; default 10s): the age at which a request of a lower class goes
//!   first. Lower weakens classes. 0 reverses them: lower classes go first.
//!
//! # Source
//!
//! Linux 6.13, `block/mq-deadline.c`.
//!
//! # When not to use it
//!
//! For several streams of synchronous reads, as `deadline`. Here the next request of a stream is served
//! next if it comes in time.

use crate::bound::{BoundsWaits, WaitBound};
use crate::deadline::{DeadlineConfig, Direction};
use crate::policy::{Built, OptionInfo, Parts, PolicyInfo};
use crate::sorted::Sorted;
use crate::{Candidate, Class, Elevator, HeadState, ListId, Partners, Request, Tag};
use alloc::vec::Vec;
use headtime_units::{Lba, Nanos, Time};

const AGING_DEFAULT: Nanos = Nanos::from_secs(10);

const OPTIONS: [OptionInfo; 6] = {
    let [
        read_expire,
        write_expire,
        fifo_batch,
        writes_starved,
        front_merges,
    ] = DeadlineConfig::OPTIONS;
    [
        read_expire,
        write_expire,
        fifo_batch,
        writes_starved,
        front_merges,
        OptionInfo::duration(
            "prio_aging_expire",
            AGING_DEFAULT,
            "age at which a request of a lower class goes first; lower weakens classes; 0 serves \
             lower classes first",
        ),
    ]
};

pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "mq-deadline",
    idea: "deadline with fresh continuation, and classes",
    bound: "as deadline within a class; none below a busy one",
    source: "Linux 6.13 block/mq-deadline.c",
    avoid: "several streams of synchronous reads share the disk",
    options: &OPTIONS,
    ..PolicyInfo::PLAIN
};

pub(crate) fn build<P>(parts: Parts<'_, P>) -> Built {
    let config = DeadlineConfig::from_options(&parts.options);
    Built::elevator(MqDeadline::new(
        config,
        parts.options.duration("prio_aging_expire"),
    ))
}

/// Number of levels: real-time, best effort, idle.
const LEVELS: usize = 3;

/// Linux's mq-deadline elevator of today; see the [module](self).
#[derive(Clone, Debug)]
pub struct MqDeadline {
    config: DeadlineConfig,
    prio_aging_expire: Nanos,
    sorted: Sorted,
    /// Start of the last request handed out, by level and direction.
    latest: [[Lba; 2]; LEVELS],
    counters: Counters,
}

/// State that all levels share.
#[derive(Clone, Copy, Debug)]
struct Counters {
    direction: Direction,
    batch: u64,
    starved: u64,
}

impl Counters {
    const START: Counters = Counters {
        direction: Direction::Write,
        batch: 0,
        starved: 0,
    };
}

fn level(class: Class) -> usize {
    usize::from(class.0).min(LEVELS - 1)
}

fn list(level: usize, direction: Direction) -> ListId {
    ListId((2 * level + direction.index()) as u8)
}

impl MqDeadline {
    /// Builds an elevator without requests. `prio_aging_expire` is the age at which a request of a lower
    /// class goes first.
    pub fn new(config: DeadlineConfig, prio_aging_expire: Nanos) -> MqDeadline {
        MqDeadline {
            config,
            prio_aging_expire,
            sorted: Sorted::new(2 * LEVELS as u8),
            latest: [[Lba::ZERO; 2]; LEVELS],
            counters: Counters::START,
        }
    }

    fn age(now: Time, request: &Request) -> Nanos {
        now.saturating_since(request.arrival)
    }

    fn expired(&self, now: Time, request: &Request) -> bool {
        Self::age(now, request) >= self.config.expire(Direction::of(request.op))
    }

    fn queued_at(&self, level: usize) -> usize {
        let requests = self.sorted.requests();
        requests.len_of(list(level, Direction::Read))
            + requests.len_of(list(level, Direction::Write))
    }

    fn continuation(&self, level: usize, direction: Direction) -> Option<Tag> {
        let latest = self.latest[level][direction.index()];
        let index = self.sorted.by_lba(list(level, direction));
        Some(index.first_at_or_after(latest)?.tag)
    }

    /// Returns the next request of a level if it is at least `aged` old. The counters change in either
    /// case.
    fn choose_at(
        &self,
        level: usize,
        now: Time,
        aged: Nanos,
        counters: &mut Counters,
    ) -> Option<Tag> {
        let requests = self.sorted.requests();
        let tag = match self.continuation(level, counters.direction) {
            Some(next) if counters.batch < self.config.fifo_batch => next,
            _ => {
                let oldest = |direction| requests.oldest(list(level, direction));
                let (read, write) = (oldest(Direction::Read), oldest(Direction::Write));
                let passed_over = counters.starved;
                if read.is_some() && write.is_some() {
                    counters.starved += 1;
                }
                let (direction, oldest) = match (read, write) {
                    (Some(_), Some(write)) if passed_over >= self.config.writes_starved => {
                        (Direction::Write, write)
                    }
                    (Some(read), _) => (Direction::Read, read),
                    (None, Some(write)) => (Direction::Write, write),
                    (None, None) => return None,
                };
                if direction == Direction::Write {
                    counters.starved = 0;
                }
                counters.direction = direction;
                counters.batch = 0;
                match self.continuation(level, direction) {
                    Some(next) if !self.expired(now, oldest) => next,
                    _ => oldest.tag,
                }
            }
        };
        if Self::age(now, requests.get(tag)) < aged {
            return None;
        }
        counters.batch += 1;
        Some(tag)
    }

    fn choose(&self, now: Time) -> Option<(Tag, Counters)> {
        let mut counters = self.counters;
        let busy = (0..LEVELS).filter(|level| self.queued_at(*level) > 0);
        if busy.count() > 1 {
            for level in level(Class::BEST_EFFORT)..LEVELS {
                let aged = self.prio_aging_expire;
                if let Some(tag) = self.choose_at(level, now, aged, &mut counters) {
                    return Some((tag, counters));
                }
            }
        }
        let highest = (0..LEVELS).find(|level| self.queued_at(*level) > 0)?;
        let tag = self.choose_at(highest, now, Nanos::ZERO, &mut counters)?;
        Some((tag, counters))
    }
}

impl Default for MqDeadline {
    /// Returns an elevator with the settings that Linux starts with.
    fn default() -> MqDeadline {
        MqDeadline::new(DeadlineConfig::DEFAULT, AGING_DEFAULT)
    }
}

impl Elevator for MqDeadline {
    fn insert(&mut self, _: Time, request: Request) {
        let list = list(level(request.class), Direction::of(request.op));
        self.sorted.insert(list, request);
    }

    fn peek(&self, now: Time, _: &HeadState) -> Option<Candidate> {
        let request = *self.sorted.requests().get(self.choose(now)?.0);
        let urgent = self.expired(now, &request);
        Some(Candidate { request, urgent })
    }

    fn expires(&self, now: Time) -> Option<Time> {
        // The candidate and its urgency change only when one of these requests expires, or is old enough
        // to go before a higher class. A class that ages can take the place of an urgent request, so the
        // first time is not always the last one.
        let lists = (0..LEVELS).flat_map(|level| {
            [Direction::Read, Direction::Write].map(|direction| (level, direction))
        });
        let changes = lists.flat_map(|(level, direction)| {
            let requests = self.sorted.requests();
            let oldest = requests.oldest(list(level, direction));
            let next = self
                .continuation(level, direction)
                .map(|tag| requests.get(tag));
            let ages = [self.config.expire(direction), self.prio_aging_expire];
            let arrivals = [oldest, next].into_iter().flatten();
            arrivals.flat_map(move |request| ages.map(|age| request.arrival.saturating_add(age)))
        });
        let urgent = |at: &Time| {
            let choice = self.choose(*at);
            choice.is_some_and(|(tag, _)| self.expired(*at, self.sorted.requests().get(tag)))
        };
        let times = changes.chain([now]).filter(|at| *at >= now);
        times.filter(urgent).min()
    }

    fn take(&mut self, now: Time, _: &HeadState) -> Option<Request> {
        let (tag, counters) = self.choose(now)?;
        let request = self.sorted.remove(tag);
        let direction = Direction::of(request.op);
        self.latest[level(request.class)][direction.index()] = request.extent.start;
        self.counters = counters;
        Some(request)
    }

    fn may_merge(&self, queued: Tag, new: &Request) -> bool {
        let requests = self.sorted.requests();
        let queued = requests.get(queued);
        level(queued.class) == level(new.class)
            && self
                .config
                .may_merge(queued, new, requests.contains(new.tag))
    }

    fn partners(&self, request: &Request, front: bool) -> Partners {
        let is_queued = self.sorted.requests().contains(request.tag);
        self.config.partners(is_queued, front)
    }

    fn withdraw(&mut self, tag: Tag) -> Request {
        self.sorted.remove(tag)
    }

    fn merged(&mut self, grown: &Request) {
        self.sorted.merged(grown);
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        self.sorted.fused(kept, gone);
    }

    fn overtake_max(&self) -> Option<usize> {
        None
    }

    fn queued(&self) -> usize {
        self.sorted.requests().len()
    }

    fn drain(&mut self) -> Vec<Request> {
        self.latest = [[Lba::ZERO; 2]; LEVELS];
        self.counters = Counters::START;
        self.sorted.drain()
    }
}

impl BoundsWaits for MqDeadline {
    fn wait_max(&self, request: &Request, ahead: usize) -> Option<WaitBound> {
        self.config.wait_max(request, ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{at, insert_all, order, read, write};
    use std::vec::Vec;

    fn of_class(class: Class, request: Request) -> Request {
        Request { class, ..request }
    }

    #[test]
    fn the_first_sweep_starts_at_the_bottom() {
        let mut sched = MqDeadline::default();
        insert_all(&mut sched, [98, 183, 37, 122, 14, 124, 65, 67]);
        assert_eq!(
            order(&mut sched, at(0)),
            [14, 37, 65, 67, 98, 122, 124, 183]
        );
    }

    #[test]
    fn an_arrival_ahead_joins_the_sweep() {
        let mut sched = MqDeadline::default();
        sched.insert(at(0), read(0, 100, 0));
        sched.insert(at(0), read(1, 300, 0));
        assert_eq!(sched.take(at(0), &HeadState::START).unwrap().tag, Tag(0));
        sched.insert(at(1), read(2, 108, 1));
        assert_eq!(order(&mut sched, at(1)), [108, 300]);
        // The order is the same after the sweep had nothing left, from the start of the last request on.
        sched.insert(at(2), read(0, 200, 2));
        sched.insert(at(2), read(1, 300, 2));
        assert_eq!(order(&mut sched, at(2)), [300, 200]);
    }

    #[test]
    fn an_expired_request_starts_the_next_batch() {
        let config = DeadlineConfig {
            fifo_batch: 2,
            ..DeadlineConfig::DEFAULT
        };
        let served = |now: Time| {
            let mut sched = MqDeadline::new(config, AGING_DEFAULT);
            sched.insert(at(0), read(9, 500, 0));
            sched.take(at(0), &HeadState::START).unwrap();
            for (tag, lba, ms) in [(2, 10, 1), (1, 600, 2), (3, 700, 2), (4, 800, 2)] {
                sched.insert(at(ms), read(tag, lba, ms));
            }
            order(&mut sched, now)
        };
        let before = at(501).saturating_sub(Nanos::from_nanos(1));
        assert_eq!(served(before), [600, 700, 800, 10]);
        // Exactly at its expiry it counts as expired here.
        assert_eq!(served(at(501)), [600, 10, 700, 800]);
    }

    #[test]
    fn a_lower_class_waits_for_the_higher() {
        let mut sched = MqDeadline::default();
        sched.insert(at(0), of_class(Class::IDLE, read(0, 100, 0)));
        sched.insert(at(0), read(1, 200, 0));
        sched.insert(at(0), of_class(Class(7), read(2, 300, 0)));
        sched.insert(at(0), of_class(Class::REAL_TIME, write(3, 400, 0)));
        assert_eq!(order(&mut sched, at(0)), [400, 200, 100, 300]);
    }

    #[test]
    fn a_lower_class_is_served_once_it_is_ten_seconds_old() {
        let mut sched = MqDeadline::default();
        sched.insert(at(0), read(0, 100, 0));
        let mut served = Vec::new();
        for i in 0..2_000 {
            let (now, tag) = (at(10 * i), 1 + i as u32);
            let request = of_class(Class::REAL_TIME, read(tag, 5_000 + 8 * i, 10 * i));
            sched.insert(now, request);
            served.push(sched.take(now, &HeadState::START).unwrap().tag.0);
        }
        let when = served.iter().position(|tag| *tag == 0);
        assert_eq!(when, Some(1_000), "10 ms per request make 10 s");
        assert_eq!(sched.queued(), 1);
    }

    #[test]
    fn classes_do_not_merge_with_each_other() {
        let mut sched = MqDeadline::default();
        sched.insert(at(0), read(0, 100, 0));
        let follower = read(1, 108, 0);
        assert!(sched.may_merge(Tag(0), &follower));
        assert!(!sched.may_merge(Tag(0), &of_class(Class::IDLE, follower)));
    }
}
