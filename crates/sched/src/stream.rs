//! Stream Scheduling: makes any elevator wait for the requests that a stream promises.
//!
//! # Rule
//!
//! A request *R* that was served can have a *child*: a request that comes soon after *R* and near its end. The
//! condition: to wait for the child and to serve it takes less time than to serve the elevator's choice:
//!
//! ```text
//! (arrival − completion of R) + service(end of R, child) < service(end of R, pending)
//! ```
//!
//! A request without a parent is a stream of size 1. A child's size is its parent's size plus one. A stream of
//! `threshold` requests is established: the disk is held behind its newest request until the child is there or can no
//! longer come. The child then goes at once, past the elevator. A stream of `1 + tolerance` times the threshold gets a
//! second chance, once: the service time that its child has to beat is multiplied by `1 + tolerance`, and the size
//! falls back to the threshold.
//!
//! While other requests are pending, a stream is served for `slice` at most. Then the elevator's choice goes, and the
//! first request of another stream begins a new slice. A request that expires in the elevator goes at once, also in the
//! middle of a wait.
//!
//! Streams form whether or not the disk waits for them: every request that is handed out may have a child. The disk
//! waits only for established streams, and only while a request is pending.
//!
//! Service times come from a [`ServiceCurve`]: by distance alone, from the end of *R*, where the head is, to the start
//! of the other request.
//!
//! # Readings
//!
//! The paper leaves some things open. Here they are settled as follows.
//!
//! - The position of *R* is its end. The paper says the address of its data. But a request leaves the head behind its
//!   last sector, so that its sequential successor is at distance 0.
//! - A request has one parent: the nearest of all requests whose child it could be. The other parents stay in the
//!   queue, with the tail that the disk is held behind. As printed, the loop takes all parents out of the queue. The
//!   request then has the size of a child of the last parent, or 1 if it is not its child.
//! - The wait ends before the service time has passed, by the shortest service time of the curve. A later request
//!   cannot satisfy the inequality at any address. So the disk is not held if a pending request has the shortest
//!   possible service time.
//! - In the paper a child comes after its parent's completion, and the tail counts as completed while the drive works
//!   on it (section 3.2). So a request that comes meanwhile can be its child, such as the next window of read-ahead. If
//!   nothing is pending then, the child has to be as near as random requests are in one case of 1000. Otherwise two
//!   readers in turn would take each other's requests for children.
//! - The decision is always on the tail, the request handed out last: the head will be there. The wait runs from the
//!   tail's completion. Until then an established stream holds the disk, and a request that comes counts as coming at
//!   once.
//! - If nothing is pending when the tail completes, a child has to beat the mean service time over random pairs of
//!   addresses.
//! - Requests that continue each other while they are queued are one step of their stream (`burst`). A request that
//!   continues a queued request belongs to the same stream and has the same size. If the request is also the child of
//!   an earlier request of that stream, its size is one more. In an established stream, such requests go one behind the
//!   other, past the elevator. A further child goes right behind the next of them, and the disk is not held for the
//!   child again.
//! - As printed, the second of two such requests has no parent, since the first has not been served, and starts a new
//!   stream. A reader with two windows that may not merge then never has a stream.
//! - Writes and discards form streams as reads do.
//! - A request that merges into a queued request is no request of its own and forms no stream. As in Linux, merging
//!   comes first. But a request that the disk is held for does not merge into a request that waits in the elevator,
//!   unless it continues that request and not the tail. A reader's second window belongs to its first, not to another
//!   reader's request. Other requests may merge into a held request until it is handed out.
//! - When two queued requests become one, the larger size counts.
//!
//! # Bound
//!
//! The elevator's bound for a request that expires: the disk is not held past an expiry. Without expiry, each stream
//! ahead may take a slice, and the wait has no bound.
//!
//! # Tunables
//!
//! - `threshold` (requests; default 4): the size at which the disk begins to wait for a stream. Lower waits sooner and
//!   more often in vain. 1 waits behind every request.
//! - `tolerance` (default 0.5): the excess over the threshold that earns a second chance, and the prolongation of the
//!   wait. Both are relative. Higher gives fewer and longer second chances. 0 gives none.
//! - `slice` (duration; default 124ms): how long a stream is served while others are pending. Higher gives more
//!   throughput, lower makes the others wait less. 0 never waits.
//! - `burst` (default true): whether requests that continue each other while they are queued are one step. `false` is
//!   the rule as printed.
//! - `hz` (default `exact`): ticks per second of the timer that ends waits and slices. With a timer a wait ends up to a
//!   tick earlier or, if it is shorter than a tick, later.
//! - `lost` (share of the time; default 0.02): for how long the disk may be held without evidence that waiting pays.
//!   Beyond this, waiting and the elevator are tried in turn, and the one that serves more sectors in the same time is
//!   in force (`trials.rs`). Streams form in either case. 1 is the paper's rule: the disk waits wherever a child may be
//!   worth the wait.
//!
//! # Source
//!
//! Y. Xu and S. Jiang, "A Scheduling Framework that Makes any Disk Schedulers Non-work-conserving
//! solely based on Request Characteristics", FAST 2011: sections 2.1 (figures 1 and 2) and 3.2.
//!
//! # When not to use it
//!
//! If requests are independent of each other: no stream forms, and the scheduler is its elevator with a little more
//! work. Four requests that happen to be near each other make it wait in vain.
//!
//! On a drive that takes many requests at once and orders them itself: the head may not be where this scheduler assumes
//! it.

mod bursts;
mod dedication;
pub mod frame;
mod parents;
mod rule;
#[cfg(test)]
pub(crate) mod tests;

use self::bursts::Bursts;
use self::frame::{Anticipating, Foresight, HELD_AT_A_STRETCH};
use self::parents::{Parent, Parents};
pub use self::rule::StreamRule;
use crate::jiffies::Hz;
use crate::policy::{Built, Needs, OptionInfo, Options, Parts, PolicyInfo, Slices};
use crate::{Elevator, Request, ServiceCurve, Spec, Tag, Trials};
use alloc::sync::Arc;
use alloc::vec::Vec;
use headtime_units::{Lba, Millionths, Nanos, Time};

pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "stream",
    idea: "waits for requests that streams promise",
    bound: "the elevator's, for what expires",
    source: "FAST'11, Stream Scheduling, sections 2.1 and 3.2",
    avoid: "requests do not depend on each other",
    options: &StreamConfig::OPTIONS,
    needs: Needs {
        curve: true,
        ..Needs::NOTHING
    },
    inner: Some("deadline"),
    waits: true,
    slices: Slices::ToStreams("slice"),
    ..PolicyInfo::PLAIN
};

pub(crate) fn build<P>(parts: Parts<'_, P>) -> Built {
    let config = StreamConfig::from_options(&parts.options);
    let elevator = parts.inner.expect("it wraps one");
    let curve = parts.curve.expect("it needs one");
    Built::scheduler(Stream::new(elevator, config, curve))
}

/// The tunables of [`Stream`]; see the module's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamConfig {
    /// Number of requests at which the disk begins to wait for a stream.
    pub threshold: u64,
    /// Relative excess over the threshold that earns a second chance, and relative prolongation of the wait.
    pub tolerance: Millionths,
    /// Longest time for which a stream is served while other requests are pending.
    pub slice: Nanos,
    /// True if requests that continue each other while they are queued are one step of their stream.
    pub burst: bool,
    /// Tick rate of the timer that ends waits and slices; `None` for exact ends.
    pub hz: Option<Hz>,
    /// Share of the time for which the disk may be held without a gain.
    pub lost: Millionths,
}

impl StreamConfig {
    /// Options of the paper's measurements, except for `lost`.
    pub const DEFAULT: StreamConfig = StreamConfig {
        threshold: 4,
        tolerance: Millionths(500_000),
        slice: Nanos::from_millis(124),
        burst: true,
        hz: None,
        lost: Millionths(20_000),
    };

    const OPTIONS: [OptionInfo; 6] = [
        OptionInfo::count(
            "threshold",
            Self::DEFAULT.threshold,
            (1, 1_000_000),
            "requests from which on a stream is waited for; lower waits sooner and more often in \
             vain; 1 waits behind every request",
        ),
        OptionInfo::weight(
            "tolerance",
            Self::DEFAULT.tolerance,
            Millionths(100_000_000),
            "how much longer than the threshold a stream must be for a second chance, and by how \
             much the wait is prolonged then; higher gives fewer and longer second chances; 0 gives \
             none",
        ),
        OptionInfo::duration(
            "slice",
            Self::DEFAULT.slice,
            "how long a stream is served while others are pending; higher is more throughput, lower \
             makes the others wait less; 0 never waits",
        ),
        OptionInfo::flag(
            "burst",
            Self::DEFAULT.burst,
            "whether requests that continue each other while they are queued are one step of their \
             stream, and go together; without it, as the paper has it, each is a step of its own, and the \
             second finds its parent queued and has none",
        ),
        OptionInfo::choice(
            "hz",
            &["exact", "100", "250", "300", "1000"],
            "ticks per second of the timer that ends waits and slices, as in the kernels that have such \
             a timer: a wait then ends with a tick, up to one tick before its time or, if it is shorter \
             than a tick, after it",
        ),
        OptionInfo::weight(
            "lost",
            Self::DEFAULT.lost,
            Millionths::ONE,
            "share of the time for which the disk may be held where nothing has shown that this pays; beyond \
             it, waiting and the elevator are tried in turn, and what serves more is in force; 0 never holds the \
             disk; 1 waits wherever a child may be worth it, as the paper has it",
        ),
    ];

    /// Returns the tunables in a specification; `None` for another policy.
    pub fn of(spec: &Spec) -> Option<StreamConfig> {
        let is_stream = core::ptr::eq(spec.info(), &INFO);
        is_stream.then(|| StreamConfig::from_options(&spec.values()))
    }

    fn from_options(options: &Options<'_>) -> StreamConfig {
        StreamConfig {
            threshold: options.count("threshold"),
            tolerance: options.weight("tolerance"),
            slice: options.duration("slice"),
            burst: options.flag("burst"),
            hz: options.choice("hz").parse().ok().and_then(Hz::new),
            lost: options.weight("lost"),
        }
    }

    /// Trials of waiting, if waits are bounded.
    pub fn trials(&self) -> Option<Trials> {
        (self.lost < Millionths::ONE).then(|| Trials::of_waits(self.lost))
    }
}

impl Default for StreamConfig {
    fn default() -> StreamConfig {
        StreamConfig::DEFAULT
    }
}

/// An elevator that waits for streams; see the [module](self).
pub type Stream<E> = Anticipating<E, Streams>;

impl<E: Elevator> Stream<E> {
    /// Wraps this elevator, which must be empty.
    pub fn new(elevator: E, config: StreamConfig, curve: Arc<ServiceCurve>) -> Stream<E> {
        Anticipating::with(
            elevator,
            Streams::new(config, curve),
            config.slice,
            config.hz,
        )
    }
}

/// A request that may yet have a child, for observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// Position in the order of handing out, from 1 on. A drain takes a turn too. A tag is reused once its request is
    /// done, so only the turn distinguishes requests of one tag.
    pub turn: u64,
    /// Tag of the request while it was queued or in the drive.
    pub tag: Tag,
    /// End of the request, from which the distance to a child counts.
    pub end: Lba,
    /// Time at which the request counts as completed; `None` until this is known.
    pub since: Option<Time>,
    /// Upper limit of the wait for a child plus its service time. `None` while the pending request behind this one is
    /// not known.
    pub limit: Option<Nanos>,
    /// Size of the stream up to this request.
    pub size: u64,
}

impl<E> Stream<E> {
    /// The requests that may yet have a child. The request with the latest deadline is first.
    pub fn open(&self) -> impl Iterator<Item = Open> + '_ {
        self.foresight.parents.iter().map(|parent| Open {
            turn: parent.turn,
            tag: parent.tag,
            end: parent.end,
            since: (parent.since != Time::NEVER).then_some(parent.since),
            limit: parent.limit,
            size: parent.size,
        })
    }
}

/// Stream of a queued request, and the stream's size up to this request.
#[derive(Clone, Copy, Debug)]
struct Membership {
    size: u64,
    stream: u64,
    is_queued: bool,
}

/// The streams that form; the foresight of [`Stream`].
#[derive(Clone, Debug)]
pub struct Streams {
    config: StreamConfig,
    parents: Parents,
    /// Memberships of queued requests, by tag.
    queued: Vec<Membership>,
    /// Empty if bursts do not count.
    bursts: Bursts,
    /// The queued request that continues the tail.
    follower: Option<Tag>,
    /// The turn of the request handed out last; turns begin with 1.
    tail: u64,
    /// The stream of that request.
    last: u64,
    streams: u64,
    established: u64,
    /// Trials of waiting, if waits are bounded.
    trials: Option<Trials>,
}

impl Streams {
    fn new(config: StreamConfig, curve: Arc<ServiceCurve>) -> Streams {
        Streams {
            config,
            parents: Parents::new(
                StreamRule::new(curve, config.threshold, config.tolerance),
                config.hz,
            ),
            queued: Vec::new(),
            bursts: Bursts::default(),
            follower: None,
            tail: 0,
            last: 0,
            streams: 0,
            established: 0,
            trials: config.trials(),
        }
    }

    /// Returns true if the disk is held for streams now. Streams form in either case.
    fn waits(&self) -> bool {
        self.trials.as_ref().is_none_or(Trials::waits)
    }

    /// Returns the parent of a request that arrives now, and true if the disk may be held for the request.
    fn parent_of(
        &self,
        now: Time,
        start: Lba,
        pending: impl Fn() -> Option<Lba>,
    ) -> Option<(usize, bool)> {
        let parents = &self.parents;
        // Only the tail has no limit yet. A child of the tail would go before the request that is pending now.
        let at = parents.nearest(now, start, |tail| {
            parents.rule().limit_in_flight(tail.end, pending())
        })?;
        let parent = parents.get(at);
        Some((at, parent.turn == self.tail && parents.established(parent)))
    }
}

impl Foresight for Streams {
    /// Figure 2, the procedure upon arrival.
    fn arrived(&mut self, now: Time, request: &Request, pending: impl Fn() -> Option<Lba>) -> bool {
        self.parents.expire(now);
        let start = request.extent.start;
        let mut parent = self.parent_of(now, start, pending);
        // The nearest request is the one that it continues, unless its parent ends there too.
        let continued = match parent {
            Some((at, _)) if self.parents.get(at).end == start => None,
            _ if self.config.burst => self.bursts.continued_by(request),
            _ => None,
        };
        let burst = continued.map(|before| self.queued[before.index()]);
        if let (Some(burst), Some((at, _))) = (burst, parent)
            && self.parents.get(at).stream != burst.stream
        {
            // The parent is of another stream, which goes on waiting for its own child.
            parent = None;
        }
        let awaited = self.waits() && burst.is_none() && parent.is_some_and(|(_, awaited)| awaited);
        let next = parent.map(|(at, _)| {
            let parent = self.parents.remove(at);
            Membership {
                size: parent.size + 1,
                stream: parent.stream,
                is_queued: true,
            }
        });
        let member = match (next, burst) {
            (Some(next), Some(burst)) if next.size < burst.size => burst,
            (Some(next), _) => next,
            (None, Some(burst)) => burst,
            (None, None) => {
                self.streams += 1;
                Membership {
                    size: 1,
                    stream: self.streams,
                    is_queued: true,
                }
            }
        };
        // Sizes rise one by one, and never fall below the threshold again.
        let grown = burst.is_none_or(|burst| member.size > burst.size);
        self.established += u64::from(grown && member.size == self.config.threshold);
        if self.config.burst {
            self.bursts.insert(request, continued);
        }
        let at = request.tag.index();
        if at >= self.queued.len() {
            self.queued.resize(at + 1, member);
        }
        self.queued[at] = member;
        if let Some(trials) = &mut self.trials {
            trials.arrived(now, at, request.is_sync());
            trials.choose(now);
        }
        awaited
    }

    fn awaits(&self, now: Time, request: &Request, pending: impl Fn() -> Option<Lba>) -> bool {
        let parent = self.parent_of(now, request.extent.start, pending);
        self.waits() && parent.is_some_and(|(_, awaited)| awaited)
    }

    /// Figure 2, the procedure upon completion, to the extent that section 3.2 moves it here.
    fn handed_out(&mut self, now: Time, request: &Request) -> u64 {
        let start = request.extent.start;
        // The request that went behind the tail is the selected request of the paper.
        if let Some(at) = self.parents.by_turn(self.tail)
            && self.parents.get(at).limit.is_none()
        {
            let limit = self.parents.rule().service(self.parents.get(at).end, start);
            self.parents.change(at, |parent| parent.limit = Some(limit));
        }
        let member = &mut self.queued[request.tag.index()];
        member.is_queued = false;
        let Membership { size, stream, .. } = *member;
        if let Some(trials) = &mut self.trials {
            trials.waited(now, stream == self.last);
            trials.handed_out(now, request.tag.index());
        }
        self.last = stream;
        self.follower = self.bursts.remove(request.tag);
        self.tail += 1;
        let end = request.extent.end();
        self.parents.expire(now);
        self.parents.push(Parent {
            turn: self.tail,
            tag: request.tag,
            end,
            since: Time::NEVER,
            limit: None,
            size,
            stream,
            deadline: Time::NEVER,
        });
        stream
    }

    fn completed(&mut self, now: Time, request: &Request, pending: impl Fn() -> Option<Lba>) {
        if let Some(trials) = &mut self.trials {
            trials.completed(now, request.tag.index(), request.extent.len);
        }
        let Some(at) = self.parents.in_flight(request.tag) else {
            return;
        };
        let parent = self.parents.get(at);
        let limit = match parent.limit {
            Some(limit) => limit,
            None => self.parents.rule().limit(parent.end, pending()),
        };
        self.parents.change(at, |parent| {
            (parent.since, parent.limit) = (now, Some(limit));
        });
    }

    fn hold(&mut self, now: Time, next: &Request, came: bool) -> Option<Time> {
        self.parents.expire(now);
        // A child that came beside a follower went behind the follower. The disk has already waited for this child.
        if came || self.follower.is_some() || !self.waits() {
            return None;
        }
        let at = self.parents.by_turn(self.tail)?;
        let tail = self.parents.get(at);
        if !self.parents.established(tail) {
            return None;
        }
        let known = tail.limit;
        let (limit, until) = match known {
            Some(limit) => (limit, tail.deadline),
            None => {
                let service = self.parents.rule().service(tail.end, next.extent.start);
                (service, now.saturating_add(HELD_AT_A_STRETCH))
            }
        };
        if !self.parents.rule().leaves_room(limit) {
            return None;
        }
        if let Some(trials) = &mut self.trials
            && until > now
        {
            trials.held(now, known);
        }
        Some(until)
    }

    fn follower(&self) -> Option<Tag> {
        let established = |tag: &Tag| self.queued[tag.index()].size >= self.config.threshold;
        self.follower.filter(|tag| self.waits() && established(tag))
    }

    fn merged(&mut self, grown: &Request) {
        self.bursts.grown(grown.tag, grown.extent);
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        let other = self.queued[gone.index()];
        self.withdrawn(gone);
        let member = &mut self.queued[kept.index()];
        if other.size > member.size {
            *member = other;
        }
    }

    fn withdrawn(&mut self, tag: Tag) {
        self.bursts.remove(tag);
        self.follower = self.follower.filter(|follower| *follower != tag);
        let member = &mut self.queued[tag.index()];
        member.is_queued = false;
        if let Some(trials) = &mut self.trials {
            trials.withdrawn(tag.index());
        }
    }

    fn reset(&mut self) {
        self.parents.clear();
        self.queued.clear();
        self.tail += 1;
        if let Some(trials) = &mut self.trials {
            trials.cleared();
        }
        self.bursts.clear();
        self.follower = None;
    }

    fn streams(&self) -> (u64, u64) {
        // A stream may have several requests that can have a child, and further queued requests.
        let parents = self
            .parents
            .iter()
            .map(|parent| (parent.size, parent.stream));
        let queued = self.queued.iter().filter(|member| member.is_queued);
        let queued = queued.map(|member| (member.size, member.stream));
        let established = |(size, _): &(u64, u64)| *size >= self.config.threshold;
        let all = parents.chain(queued).filter(established);
        let mut live: Vec<u64> = all.map(|(_, stream)| stream).collect();
        live.sort_unstable();
        live.dedup();
        (self.established, live.len() as u64)
    }
}
