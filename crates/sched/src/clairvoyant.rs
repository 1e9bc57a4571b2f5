//! Greedy foresight: waits for the next request, one request ahead.
//!
//! # Rule
//!
//! A simulation announces requests that are certain to come, with time and place
//! ([`Scheduler::foretold`](crate::Scheduler::foretold)). When the request handed out last is done, the
//! scheduler looks for the foretold request that would be served soonest. It holds the disk for that
//! request if serving it ends sooner than serving the elevator's choice:
//!
//! ```text
//! (arrival − now) + service(head, foretold) < service(head, pending)
//! ```
//!
//! The request goes when it comes, past the elevator. Nothing is decided ahead: while the drive is busy,
//! no second request is sent, since the requests after a completion are foretold only then. If a request
//! comes meanwhile and is nearer than the elevator's choice, it takes the place of that choice. A foretold
//! request that has not come at its time is forgotten.
//!
//! Slices and expired requests are as in [`stream`](crate::stream), which shares that part. Each choice of
//! the elevator begins a slice.
//!
//! # Bound
//!
//! The elevator's bound for a request that expires. Without expiry, each run ahead may take a slice, and
//! the wait has no bound.
//!
//! # Tunables
//!
//! - `slice` (duration; default 124ms): how long one run of requests is waited for while others are
//!   pending. Higher gives more throughput, lower makes the others wait less. 0 never waits.
//!
//! # Source
//!
//! The inequality of [`stream`](crate::stream) (FAST 2011, section 2.1), with knowledge in place of
//! prediction. The scheduler is greedy, one decision at a time. Its service times come from a curve, which
//! does not model the drive's buffer. So its result is no bound, not even for schedulers that predict by
//! the same rule: some of them do better. `headtime-bound` computes a bound for every scheduler.
//!
//! # When not to use it
//!
//! Anywhere but in a simulation. On a live disk no request is foretold. The scheduler is then its elevator
//! with one command at a time.

use crate::policy::{Built, Needs, OptionInfo, Parts, PolicyInfo, Slices};
use crate::stream::frame::{Anticipating, Foresight, HELD_AT_A_STRETCH};
use crate::{Elevator, Foretold, Op, Request, ServiceCurve, Tag};
use alloc::sync::Arc;
use alloc::vec::Vec;
use headtime_units::{Lba, Nanos, Time};

pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "clairvoyant",
    idea: "greedy foresight: waits for what comes",
    bound: "the elevator's, for what expires",
    source: "FAST'11, the inequality of section 2.1",
    avoid: "the disk is real: nobody knows what comes",
    options: &OPTIONS,
    needs: Needs {
        curve: true,
        foresight: true,
        ..Needs::NOTHING
    },
    inner: Some("deadline"),
    waits: true,
    slices: Slices::ToStreams("slice"),
    ..PolicyInfo::PLAIN
};

static OPTIONS: [OptionInfo; 1] = [OptionInfo::duration(
    "slice",
    Nanos::from_millis(124),
    "how long one run of requests is waited for while others are pending; higher is more \
     throughput, lower makes the others wait less; 0 never waits",
)];

pub(crate) fn build<P>(parts: Parts<'_, P>) -> Built {
    let elevator = parts.inner.expect("it wraps one");
    let curve = parts.curve.expect("it needs one");
    Built::scheduler(Clairvoyant::new(
        elevator,
        parts.options.duration("slice"),
        curve,
    ))
}

/// An elevator that waits for foretold requests; see the [module](self).
pub type Clairvoyant<E> = Anticipating<E, Foreknowledge>;

impl<E: Elevator> Clairvoyant<E> {
    /// Wraps this elevator, which must be empty.
    pub fn new(elevator: E, slice: Nanos, curve: Arc<ServiceCurve>) -> Clairvoyant<E> {
        Anticipating::with(elevator, Foreknowledge::new(curve), slice, None)
    }
}

/// Largest number of foretold requests that are remembered. Beyond this number, the earliest request is
/// forgotten.
const TOLD_MAX: usize = 4096;

/// Requests that are certain to come; the foresight of [`Clairvoyant`].
#[derive(Clone, Debug)]
pub struct Foreknowledge {
    curve: Arc<ServiceCurve>,
    told: Vec<Foretold>,
    /// The end of the request handed out last.
    head: Lba,
    /// Tag of that request, while the request is in the drive.
    in_drive: Option<Tag>,
    /// Operation and address that the disk is held for.
    awaited: Option<(Op, Lba)>,
    /// Tag and address of the awaited request that came, until a request is handed out.
    came: Option<(Tag, Lba)>,
    runs: u64,
}

impl Foreknowledge {
    fn new(curve: Arc<ServiceCurve>) -> Foreknowledge {
        Foreknowledge {
            curve,
            told: Vec::new(),
            head: Lba::ZERO,
            in_drive: None,
            awaited: None,
            came: None,
            runs: 0,
        }
    }

    fn awaits_this(&self, request: &Request) -> bool {
        self.in_drive.is_none() && self.awaited == Some((request.op, request.extent.start))
    }
}

impl Foresight for Foreknowledge {
    fn arrived(&mut self, now: Time, request: &Request, pending: impl Fn() -> Option<Lba>) -> bool {
        let start = request.extent.start;
        let is_it =
            |told: &Foretold| told.at <= now && told.op == request.op && told.extent.start == start;
        let known = (0..self.told.len())
            .filter(|at| is_it(&self.told[*at]))
            .min_by_key(|at| self.told[*at].at);
        if let Some(at) = known {
            self.told.swap_remove(at);
        }
        let service = |to| self.curve.service(self.head, to);
        let next = match self.in_drive {
            None => self.awaits_this(request),
            // The request is nearer than the next choice, so it need not wait in the elevator.
            Some(_) => {
                let held = self.came.map(|(_, start)| start);
                let ahead =
                    |other: Option<Lba>| other.is_none_or(|other| service(start) < service(other));
                ahead(held) && ahead(pending())
            }
        };
        if next {
            self.awaited = None;
            self.came = Some((request.tag, start));
        }
        next
    }

    fn awaits(&self, _: Time, request: &Request, _: impl Fn() -> Option<Lba>) -> bool {
        self.awaits_this(request)
    }

    fn handed_out(&mut self, _: Time, request: &Request) -> u64 {
        let came = self.came.take();
        if came.is_none_or(|(tag, _)| tag != request.tag) {
            self.runs += 1;
        }
        self.awaited = None;
        self.in_drive = Some(request.tag);
        self.head = request.extent.end();
        self.runs
    }

    fn completed(&mut self, _: Time, request: &Request, _: impl Fn() -> Option<Lba>) {
        if self.in_drive == Some(request.tag) {
            self.in_drive = None;
        }
    }

    fn hold(&mut self, now: Time, next: &Request, _: bool) -> Option<Time> {
        self.awaited = None;
        if self.in_drive.is_some() {
            return Some(now.saturating_add(HELD_AT_A_STRETCH));
        }
        self.told.retain(|told| told.at >= now);
        let service = |to| self.curve.service(self.head, to);
        let cost = |told: &Foretold| (told.at - now).saturating_add(service(told.extent.start));
        let best = self
            .told
            .iter()
            .min_by_key(|told| (cost(told), told.at, told.extent.start))?;
        if cost(best) >= service(next.extent.start) {
            return None;
        }
        self.awaited = Some((best.op, best.extent.start));
        // A request that is due now comes within this instant.
        Some(best.at.max(now + Nanos::from_nanos(1)))
    }

    fn fused(&mut self, _: Tag, gone: Tag) {
        self.withdrawn(gone);
    }

    fn withdrawn(&mut self, tag: Tag) {
        self.came = self.came.filter(|(came, _)| *came != tag);
    }

    fn foretold(&mut self, now: Time, request: &Foretold) {
        self.told.retain(|told| told.at >= now);
        if self.told.len() == TOLD_MAX {
            let first = (0..TOLD_MAX).min_by_key(|at| self.told[*at].at);
            self.told.swap_remove(first.expect("it is full"));
        }
        self.told.push(*request);
    }

    fn reset(&mut self) {
        self.told.clear();
        (self.in_drive, self.awaited, self.came) = (None, None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::tests::{World, curve};
    use crate::tests::{at, read};
    use crate::{Dispatch, Noop, Origin, Scheduler};
    use headtime_units::Extent;

    fn world(slice_ms: u64) -> World<Clairvoyant<Noop>> {
        let slice = Nanos::from_millis(slice_ms);
        World::new(Clairvoyant::new(Noop::new(), slice, curve()))
    }

    fn told(lba: u64, ms: u64) -> Foretold {
        Foretold {
            at: at(ms),
            op: Op::Read,
            extent: Extent::at(lba, 8),
            origin: Origin::default(),
        }
    }

    /// Runs a read at 0 that is done at 1 ms, and a read 10 ms away that waits. The requests `come` are
    /// foretold at 1 ms and then arrive.
    fn after_one(slice_ms: u64, come: &[(u32, u64, u64)]) -> std::string::String {
        let mut world = world(slice_ms);
        world.arrive(at(0), &[read(0, 0, 0), read(1, 500_000, 0)]);
        world.tell_at = std::vec![(
            at(1),
            come.iter().map(|(_, lba, ms)| told(*lba, *ms)).collect()
        )];
        world.through(come)
    }

    #[test]
    fn what_is_known_to_come_in_time_is_waited_for() {
        // Arrival and service together must be shorter than the 10 ms of the other request.
        assert_eq!(after_one(124, &[(2, 8, 6)]), "0@0 1-6 2@6 1@7");
        assert_eq!(after_one(124, &[(2, 8, 9)]), "0@0 1-9 2@9 1@10");
        assert_eq!(after_one(124, &[(2, 8, 10)]), "0@0 1@1 2@11");
        // The request that is done first goes first, 7 ms from now, although the other request is nearer.
        assert_eq!(
            after_one(124, &[(2, 1_008, 3), (3, 8, 8)]),
            "0@0 1-3 2@3 3@8 1@15.500"
        );
    }

    #[test]
    fn nothing_known_is_the_elevator_alone() {
        assert_eq!(after_one(0, &[(2, 8, 6)]), "0@0 1@1 2@11");
        let mut world = world(124);
        world.arrive(at(0), &[read(0, 0, 0), read(1, 500_000, 0)]);
        assert_eq!(world.through(&[(2, 8, 6)]), "0@0 1@1 2@11");
    }

    #[test]
    fn what_came_and_is_withdrawn_is_not_waited_for_again() {
        let mut world = world(124);
        world.arrive(at(0), &[read(0, 0, 0), read(1, 500_000, 0)]);
        world.tell_at = std::vec![(at(1), std::vec![told(8, 6)])];
        world.run(at(5));
        let mut sched = world.sched;
        assert_eq!(sched.dispatch(at(5)), Dispatch::IdleUntil(at(6)));
        sched.insert(at(6), read(2, 8, 6));
        assert_eq!(sched.withdraw(Tag(2)), read(2, 8, 6));
        assert_eq!(
            sched.dispatch(at(6)),
            Dispatch::Request(read(1, 500_000, 0))
        );
        let waits = sched.waits();
        assert_eq!((waits.waits, waits.waits_won, waits.waits_lost), (1, 0, 1));
    }

    #[test]
    fn what_came_is_forgotten_when_it_is_served_elsewhere_or_part_of_another() {
        let came = Some((Tag(1), Lba::ZERO));
        let after = |change: fn(&mut Foreknowledge)| {
            let mut known = Foreknowledge::new(curve());
            known.came = came;
            change(&mut known);
            known.came
        };
        assert_eq!(after(|known| known.withdrawn(Tag(2))), came);
        assert_eq!(after(|known| known.withdrawn(Tag(1))), None);
        assert_eq!(after(|known| known.fused(Tag(1), Tag(2))), came);
        assert_eq!(after(|known| known.fused(Tag(2), Tag(1))), None);
    }

    #[test]
    fn a_slice_ends_although_more_is_known() {
        // The slice began at 0, with the first choice of the elevator.
        assert_eq!(after_one(4, &[(2, 8, 6)]), "0@0 1-4 1@4 2@14");
    }

    #[test]
    fn nothing_gets_in_behind_a_request_in_the_drive() {
        let mut world = world(124);
        world.depth = 4;
        world.arrive(at(0), &[read(0, 0, 0), read(1, 500_000, 0)]);
        world.tell_at = std::vec![(at(1), std::vec![told(8, 3)])];
        assert_eq!(world.through(&[(2, 8, 3)]), "0@0 0-3 2@3 3-4 1@4");
    }

    #[test]
    fn what_did_not_come_is_forgotten() {
        let mut world = world(124);
        world.arrive(at(0), &[read(0, 0, 0), read(1, 500_000, 0)]);
        world.tell_at = std::vec![(at(1), std::vec![told(8, 3)])];
        assert_eq!(world.through(&[]), "0@0 1-3 1@3");
    }

    #[test]
    fn memory_is_bounded() {
        let mut sched = Clairvoyant::new(Noop::new(), Nanos::from_secs(1), curve());
        for ms in 0..2 * TOLD_MAX as u64 {
            sched.foretold(at(0), &told(8 * ms, 1 + ms));
        }
        assert_eq!(sched.foresight.told.len(), TOLD_MAX);
        let first = sched.foresight.told.iter().map(|told| told.at).min();
        assert_eq!(first, Some(at(1 + TOLD_MAX as u64)));
    }
}
