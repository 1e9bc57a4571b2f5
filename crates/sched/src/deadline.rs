//! Linux's deadline elevator of 2.6.28 to 2.6.31.
//!
//! # Rule
//!
//! Reads and writes are separate, each by address and by age. The elevator serves one direction at a
//! time, in batches of at most `fifo_batch` requests in address order. When it hands out a request, it
//! fixes the continuation of the batch: the request that follows in address order at that moment. A
//! request that arrives later in between is passed over in this sweep. If no request follows at that
//! moment, a later arrival does not revive the sweep. Between batches, and only there, the elevator
//! chooses
//!
//! 1. the direction: reads if there are any, unless writes wait and were passed over `writes_starved`
//!    times already;
//! 2. the start: the oldest request of the direction if it has expired or if the sweep has no
//!    continuation in this direction, otherwise the continuation.
//!
//! All operations except reads count as writes, also if a client waits for them.
//!
//! The original differs in three points. It counts time in timer ticks, which rounds an expiry by up to
//! 10 ms; here time is exact. It counts an expiry from the insertion of a request; here it counts from
//! the arrival. It hands the older of two requests of one direction out at once if they start at the
//! same address; here both are queued, in order of insertion.
//!
//! # Bound
//!
//! An expiry bounds the time at which a request is handed out, not the time at which it is done. The
//! bound is soft: an expired request waits for the rest of the running batch, for one batch for each
//! older request of its direction, and for the batches of the other direction in between.
//!
//! Let B = max(`fifo_batch`, 1), S = `writes_starved`, and k the number of older requests of the
//! direction. A read waits for at most B·(2 + k + ⌊k / S⌋) accesses (no bound with S = 0). A write waits
//! for at most B·(1 + k + S·(k + 1)) accesses. The number of times that a request is overtaken has no
//! bound.
//!
//! # Tunables
//!
//! - `read_expire` (duration; default 500ms): the age at which a read goes first between batches.
//!   Lower favours old reads over short seeks. Once most requests expire before they are served, the
//!   order is nearly that of arrival. 0 starts every batch at the oldest request.
//! - `write_expire` (duration; default 5s): the same for writes.
//! - `fifo_batch` (requests; default 16): the length of a batch. Higher gives more throughput, lower
//!   gives better latency. 1 checks expiry and direction for every request, and so does 0.
//! - `writes_starved` (batches; default 2): how many batches of reads may pass waiting writes.
//!   Higher favours reads. 0 always serves writes first, which can starve reads.
//! - `front_merges` (default true): whether a request may be merged in front of a queued one. `false`
//!   saves the attempt where requests never come in descending order.
//!
//! # Source
//!
//! Linux 2.6.31, `block/deadline-iosched.c` and `Documentation/block/deadline-iosched.txt`.
//!
//! # When not to use it
//!
//! For several streams of synchronous reads, unless a layer above waits for them. The continuation is
//! fixed early, so the next request of a stream is usually not served next.

use crate::bound::{BoundsWaits, WaitBound};
use crate::policy::{Built, OptionInfo, Options, Parts, PolicyInfo};
use crate::sorted::Sorted;
use crate::{Candidate, Elevator, HeadState, ListId, Op, Partners, Request, Tag};
use alloc::vec::Vec;
use headtime_units::{Nanos, Time};

pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "deadline",
    idea: "batched sweeps, expired requests between them",
    bound: "expiry + batches of older ones (wait_max)",
    source: "Linux 2.6.31 block/deadline-iosched.c",
    avoid: "several streams of synchronous reads share the disk",
    options: &DeadlineConfig::OPTIONS,
    ..PolicyInfo::PLAIN
};

pub(crate) fn build<P>(parts: Parts<'_, P>) -> Built {
    Built::elevator(Deadline::new(DeadlineConfig::from_options(&parts.options)))
}

/// The tunables of [`Deadline`] and of [`MqDeadline`](crate::MqDeadline); see the module's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadlineConfig {
    /// The age at which a read is put first between batches.
    pub read_expire: Nanos,
    /// The age at which a write is put first between batches.
    pub write_expire: Nanos,
    /// Largest number of requests of a batch; 0 acts as 1.
    pub fifo_batch: u64,
    /// Number of batches of reads that may pass waiting writes.
    pub writes_starved: u64,
    /// True if a request may be merged in front of a queued one.
    pub front_merges: bool,
}

impl DeadlineConfig {
    /// Linux's initial values.
    pub const DEFAULT: DeadlineConfig = DeadlineConfig {
        read_expire: Nanos::from_millis(500),
        write_expire: Nanos::from_secs(5),
        fifo_batch: 16,
        writes_starved: 2,
        front_merges: true,
    };

    pub(crate) const OPTIONS: [OptionInfo; 5] = [
        OptionInfo::duration(
            "read_expire",
            Self::DEFAULT.read_expire,
            "age at which a read goes first between batches; lower favours old reads over short \
             seeks; 0 starts every batch at the oldest",
        ),
        OptionInfo::duration(
            "write_expire",
            Self::DEFAULT.write_expire,
            "age at which a write goes first between batches; lower favours old writes over short \
             seeks; 0 starts every batch at the oldest",
        ),
        OptionInfo::count(
            "fifo_batch",
            Self::DEFAULT.fifo_batch,
            (0, 1_000_000),
            "requests of a batch; higher is more throughput, lower is better latency; 0 acts as 1: \
             expiry and direction are looked at for every request",
        ),
        OptionInfo::count(
            "writes_starved",
            Self::DEFAULT.writes_starved,
            (0, 1_000_000),
            "batches of reads that may pass waiting writes; higher favours reads; 0 always puts \
             writes first, which can starve reads",
        ),
        OptionInfo::flag(
            "front_merges",
            Self::DEFAULT.front_merges,
            "whether a request may be merged in front of a queued one; false saves the attempt \
             where requests never come in descending order",
        ),
    ];

    pub(crate) fn from_options(options: &Options<'_>) -> DeadlineConfig {
        DeadlineConfig {
            read_expire: options.duration("read_expire"),
            write_expire: options.duration("write_expire"),
            fifo_batch: options.count("fifo_batch"),
            writes_starved: options.count("writes_starved"),
            front_merges: options.flag("front_merges"),
        }
    }

    /// The age at which requests of this direction expire.
    pub(crate) fn expire(&self, direction: Direction) -> Nanos {
        match direction {
            Direction::Read => self.read_expire,
            Direction::Write => self.write_expire,
        }
    }

    /// Returns true unless the veto on front merges forbids that `new` joins `queued`.
    pub(crate) fn may_merge(&self, queued: &Request, new: &Request, new_is_queued: bool) -> bool {
        let front = new.extent.is_followed_by(queued.extent);
        self.front_merges || new_is_queued || !front
    }

    /// Returns the partners of a request, which is new or queued.
    pub(crate) fn partners(&self, is_queued: bool, front: bool) -> Partners {
        match self.front_merges || is_queued || !front {
            true => Partners::Any,
            false => Partners::NONE,
        }
    }

    /// Returns the bound of the module's page.
    pub(crate) fn wait_max(&self, request: &Request, ahead: usize) -> Option<WaitBound> {
        let direction = Direction::of(request.op);
        let (batch, starved) = (self.fifo_batch.max(1), self.writes_starved);
        let ahead = ahead as u64;
        let batches = match direction {
            Direction::Read => 2 + ahead + ahead.checked_div(starved)?,
            Direction::Write => 1 + ahead + starved * (ahead + 1),
        };
        Some(WaitBound {
            expire: self.expire(direction),
            accesses: batch * batches,
        })
    }
}

impl Default for DeadlineConfig {
    fn default() -> DeadlineConfig {
        DeadlineConfig::DEFAULT
    }
}

/// Reads, or everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

impl Direction {
    pub fn of(op: Op) -> Direction {
        if op.is_read() {
            Direction::Read
        } else {
            Direction::Write
        }
    }

    pub const fn index(self) -> usize {
        self as usize
    }

    const fn list(self) -> ListId {
        ListId(self as u8)
    }
}

/// Linux's deadline elevator of 2.6.28 to 2.6.31; see the [module](self).
#[derive(Clone, Debug)]
pub struct Deadline {
    config: DeadlineConfig,
    sorted: Sorted,
    /// The request that continues the sweep, and its direction.
    next: Option<(Direction, Tag)>,
    /// Requests handed out in the running batch.
    batch: u64,
    /// Batches of reads started while writes waited, since the last batch of writes.
    starved: u64,
}

/// A decision, and the counters after the decision.
struct Choice {
    tag: Tag,
    batch: u64,
    starved: u64,
}

impl Deadline {
    /// Builds an elevator without requests.
    pub fn new(config: DeadlineConfig) -> Deadline {
        Deadline {
            config,
            sorted: Sorted::new(2),
            next: None,
            batch: 0,
            starved: 0,
        }
    }

    fn expired(&self, now: Time, request: &Request) -> bool {
        // Strictly later, as in the original.
        now.saturating_since(request.arrival) > self.config.expire(Direction::of(request.op))
    }

    fn choose(&self, now: Time) -> Option<Choice> {
        if let Some((_, tag)) = self.next
            && self.batch < self.config.fifo_batch
        {
            let (batch, starved) = (self.batch + 1, self.starved);
            return Some(Choice {
                tag,
                batch,
                starved,
            });
        }
        let requests = self.sorted.requests();
        let waiting = |direction: Direction| requests.len_of(direction.list()) > 0;
        let mut starved = self.starved;
        let direction = match (waiting(Direction::Read), waiting(Direction::Write)) {
            (true, true) => {
                starved += 1;
                if self.starved >= self.config.writes_starved {
                    Direction::Write
                } else {
                    Direction::Read
                }
            }
            (true, false) => Direction::Read,
            (false, true) => Direction::Write,
            (false, false) => return None,
        };
        if direction == Direction::Write {
            starved = 0;
        }
        let oldest = requests.oldest(direction.list())?;
        let tag = match self.next {
            Some((of, next)) if of == direction && !self.expired(now, oldest) => next,
            _ => oldest.tag,
        };
        Some(Choice {
            tag,
            batch: 1,
            starved,
        })
    }

    /// The request that follows in address order, in the same direction.
    fn follower(&self, tag: Tag) -> Option<(Direction, Tag)> {
        let request = self.sorted.requests().get(tag);
        let direction = Direction::of(request.op);
        let index = self.sorted.by_lba(direction.list());
        let next = index.next_after(request.extent.start, tag)?;
        Some((direction, next.tag))
    }
}

impl Elevator for Deadline {
    fn insert(&mut self, _: Time, request: Request) {
        let direction = Direction::of(request.op);
        self.sorted.insert(direction.list(), request);
    }

    fn peek(&self, now: Time, _: &HeadState) -> Option<Candidate> {
        let request = *self.sorted.requests().get(self.choose(now)?.tag);
        let urgent = self.expired(now, &request);
        Some(Candidate { request, urgent })
    }

    fn expires(&self, now: Time) -> Option<Time> {
        // At the end of time the choice is the continuation of the batch, or the oldest request of the
        // direction. Other requests of that direction expire later.
        let request = self.sorted.requests().get(self.choose(Time::NEVER)?.tag);
        let age = self.config.expire(Direction::of(request.op));
        let expired = age.saturating_add(Nanos::from_nanos(1));
        let expires = request.arrival.saturating_add(expired);
        (expires < Time::NEVER).then_some(expires.max(now))
    }

    fn take(&mut self, now: Time, _: &HeadState) -> Option<Request> {
        let choice = self.choose(now)?;
        self.next = self.follower(choice.tag);
        let request = self.sorted.remove(choice.tag);
        (self.batch, self.starved) = (choice.batch, choice.starved);
        Some(request)
    }

    fn may_merge(&self, queued: Tag, new: &Request) -> bool {
        let requests = self.sorted.requests();
        let new_is_queued = requests.contains(new.tag);
        self.config
            .may_merge(requests.get(queued), new, new_is_queued)
    }

    fn partners(&self, request: &Request, front: bool) -> Partners {
        let is_queued = self.sorted.requests().contains(request.tag);
        self.config.partners(is_queued, front)
    }

    fn merged(&mut self, grown: &Request) {
        // The continuation stays the same request even if another is nearer now.
        self.sorted.merged(grown);
    }

    fn withdraw(&mut self, tag: Tag) -> Request {
        if self.next.is_some_and(|(_, next)| next == tag) {
            self.next = self.follower(tag);
        }
        self.sorted.remove(tag)
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        if self.next.is_some_and(|(_, next)| next == gone) {
            self.next = self.follower(gone);
        }
        self.sorted.fused(kept, gone);
    }

    fn overtake_max(&self) -> Option<usize> {
        None
    }

    fn queued(&self) -> usize {
        self.sorted.requests().len()
    }

    fn drain(&mut self) -> Vec<Request> {
        (self.next, self.batch, self.starved) = (None, 0, 0);
        self.sorted.drain()
    }
}

impl BoundsWaits for Deadline {
    fn wait_max(&self, request: &Request, ahead: usize) -> Option<WaitBound> {
        self.config.wait_max(request, ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{at, grown, insert_all, order, read, write};
    use headtime_units::Extent;
    use std::vec;

    fn deadline(config: DeadlineConfig) -> Deadline {
        Deadline::new(config)
    }

    #[test]
    fn a_sweep_starts_at_the_oldest_and_ends_without_wrapping_to_the_lowest() {
        let mut sched = deadline(DeadlineConfig::DEFAULT);
        insert_all(&mut sched, [98, 183, 37, 122, 14, 124, 65, 67]);
        assert_eq!(
            order(&mut sched, at(0)),
            [98, 122, 124, 183, 37, 65, 67, 14]
        );
    }

    #[test]
    fn an_arrival_before_the_continuation_is_passed_over() {
        let mut sched = deadline(DeadlineConfig::DEFAULT);
        sched.insert(at(0), read(0, 100, 0));
        sched.insert(at(0), read(1, 300, 0));
        assert_eq!(sched.take(at(0), &HeadState::START).unwrap().tag, Tag(0));
        // The follow-up of the first: nearer than the continuation, and not served next.
        sched.insert(at(1), read(2, 108, 1));
        assert_eq!(order(&mut sched, at(1)), [300, 108]);
    }

    #[test]
    fn an_arrival_ahead_does_not_revive_a_sweep_that_ended() {
        let mut sched = deadline(DeadlineConfig::DEFAULT);
        sched.insert(at(0), read(0, 200, 0));
        sched.insert(at(0), read(1, 500, 0));
        sched.insert(at(0), read(2, 100, 0));
        assert_eq!(
            sched.take(at(0), &HeadState::START).unwrap().extent,
            Extent::at(200, 8)
        );
        assert_eq!(
            sched.take(at(0), &HeadState::START).unwrap().extent,
            Extent::at(500, 8)
        );
        sched.insert(at(1), read(3, 600, 1));
        // A new batch begins at the oldest.
        assert_eq!(order(&mut sched, at(1)), [100, 600]);
    }

    /// Serves five reads. The second oldest is 10, which is below the first.
    fn served(fifo_batch: u64, now: Time) -> std::vec::Vec<u64> {
        let mut sched = deadline(DeadlineConfig {
            fifo_batch,
            ..DeadlineConfig::DEFAULT
        });
        for (tag, lba, ms) in [
            (0, 500, 0),
            (1, 600, 1),
            (2, 10, 1),
            (3, 700, 2),
            (4, 800, 2),
        ] {
            sched.insert(at(ms), read(tag, lba, ms));
        }
        order(&mut sched, now)
    }

    #[test]
    fn a_request_expires_strictly_later_than_its_expiry() {
        assert_eq!(served(2, at(500)), [500, 600, 700, 800, 10]);
        assert_eq!(served(2, at(501)), [500, 600, 700, 800, 10]);
        let late = at(501) + Nanos::from_nanos(1);
        assert_eq!(served(2, late), [500, 600, 10, 700, 800]);
    }

    #[test]
    fn expiry_is_looked_at_only_between_batches() {
        let late = at(600);
        assert_eq!(served(1, late), [500, 600, 10, 700, 800]);
        assert_eq!(served(3, late), [500, 600, 700, 10, 800]);
        assert_eq!(served(4, late), [500, 600, 700, 800, 10]);
        assert_eq!(served(0, late), served(1, late));
    }

    #[test]
    fn writes_get_a_batch_after_two_of_reads() {
        let config = DeadlineConfig {
            fifo_batch: 1,
            ..DeadlineConfig::DEFAULT
        };
        let mut sched = deadline(config);
        for tag in 0..6 {
            sched.insert(at(0), read(tag, 100 + u64::from(tag), 0));
            sched.insert(at(0), write(10 + tag, 500 + u64::from(tag), 0));
        }
        assert_eq!(
            order(&mut sched, at(0)),
            [100, 101, 500, 102, 103, 501, 104, 105, 502, 503, 504, 505]
        );
    }

    #[test]
    fn a_change_of_direction_restarts_at_the_oldest() {
        let mut sched = deadline(DeadlineConfig::DEFAULT);
        sched.insert(at(0), write(0, 900, 0));
        sched.insert(at(0), write(1, 100, 0));
        sched.insert(at(0), write(2, 950, 0));
        assert_eq!(sched.take(at(0), &HeadState::START).unwrap().tag, Tag(0));
        sched.insert(at(0), read(3, 5, 0));
        // The batch of writes goes on; then the read, then the oldest write and not the lowest.
        sched.insert(at(0), write(4, 50, 0));
        assert_eq!(order(&mut sched, at(0)), [950, 5, 100, 50]);

        // The result is the same if the sweep of writes was cut short and had a continuation.
        let mut sched = deadline(DeadlineConfig {
            fifo_batch: 1,
            ..DeadlineConfig::DEFAULT
        });
        for (tag, lba) in [(0, 900), (1, 100), (2, 950)] {
            sched.insert(at(0), write(tag, lba, 0));
        }
        assert_eq!(sched.take(at(0), &HeadState::START).unwrap().tag, Tag(0));
        sched.insert(at(0), read(3, 5, 0));
        assert_eq!(order(&mut sched, at(0)), [5, 100, 950]);
    }

    #[test]
    fn fusing_moves_the_continuation_on_and_keeps_the_older_place() {
        let mut sched = deadline(DeadlineConfig::DEFAULT);
        for (tag, lba) in [(0, 100), (1, 208), (2, 400), (3, 216)] {
            sched.insert(at(u64::from(tag)), read(tag, lba, u64::from(tag)));
        }
        assert_eq!(sched.take(at(5), &HeadState::START).unwrap().tag, Tag(0));
        // 208 is the continuation and becomes part of 216.
        sched.fused(Tag(3), Tag(1));
        sched.merged(&grown(read(3, 216, 1), 208, 16));
        let next = sched.peek(at(5), &HeadState::START).unwrap().request;
        assert_eq!((next.tag, next.arrival), (Tag(3), at(1)));
        assert_eq!(order(&mut sched, at(5)), [208, 400]);
    }

    #[test]
    fn front_merges_can_be_refused() {
        let config = DeadlineConfig {
            front_merges: false,
            ..DeadlineConfig::DEFAULT
        };
        let mut sched = deadline(config);
        sched.insert(at(0), read(0, 100, 0));
        let (front, back) = (read(1, 92, 0), read(2, 108, 0));
        assert!(!sched.may_merge(Tag(0), &front));
        assert!(sched.may_merge(Tag(0), &back));
        assert!(Deadline::new(DeadlineConfig::DEFAULT).config.front_merges);
        sched.insert(at(0), front);
        assert!(
            sched.may_merge(Tag(0), &front),
            "fusing is not a front merge"
        );
    }

    #[test]
    fn urgent_is_what_has_expired() {
        let mut sched = deadline(DeadlineConfig::DEFAULT);
        sched.insert(at(0), read(0, 100, 0));
        assert!(!sched.peek(at(500), &HeadState::START).unwrap().urgent);
        assert!(sched.peek(at(501), &HeadState::START).unwrap().urgent);
    }

    #[test]
    fn waits_are_bounded_unless_writes_always_go_first() {
        let config = DeadlineConfig::DEFAULT;
        let bounds = |config: DeadlineConfig| {
            vec![
                config.wait_max(&read(0, 0, 0), 0).map(|b| b.accesses),
                config.wait_max(&read(0, 0, 0), 5).map(|b| b.accesses),
                config.wait_max(&write(0, 0, 0), 5).map(|b| b.accesses),
            ]
        };
        assert_eq!(bounds(config), [Some(32), Some(144), Some(288)]);
        let config = DeadlineConfig {
            writes_starved: 0,
            ..config
        };
        assert_eq!(bounds(config), [None, None, Some(96)]);
    }
}
