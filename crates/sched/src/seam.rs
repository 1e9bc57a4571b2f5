//! The interface between the policies and their drivers: the engine, a test, or another policy.

use crate::{HeadState, Op, Origin, Request, Tag, Track, WaitStats};
use alloc::boxed::Box;
use alloc::vec::Vec;
use headtime_units::{Extent, Time};

/// The request that an elevator would serve now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The request.
    pub request: Request,
    /// True if the request has expired. A scheduler that holds the disk for another request must then stop waiting at
    /// once.
    pub urgent: bool,
}

/// The queued requests with which another request may merge. A policy gives this answer without a question about each
/// request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partners {
    /// Any queued request.
    Any,
    /// At most these requests.
    Only([Option<Tag>; 2]),
}

impl Partners {
    /// No request.
    pub const NONE: Partners = Partners::Only([None; 2]);

    /// Returns true if this request may be a partner.
    pub fn include(self, tag: Tag) -> bool {
        match self {
            Partners::Any => true,
            Partners::Only(tags) => tags.contains(&Some(tag)),
        }
    }
}

/// Orders pending requests and never waits.
///
/// # Merging
///
/// The engine finds requests that touch. The policy may veto a merge ([`Elevator::may_merge`]). Vetoes that hold in any
/// case are known beforehand ([`Elevator::merge_key`], [`Elevator::partners`]). The engine therefore need not ask about
/// each of thousands of requests that touch. The engine notifies the policy of each merge: [`Elevator::merged`] if a
/// queued request grew at either end, [`Elevator::fused`] if growing closed the gap to a neighbour. After each `fused`
/// comes a `merged` for the request that remains.
pub trait Elevator: Send {
    /// Queues a request.
    fn insert(&mut self, now: Time, request: Request);

    /// Returns the request that the elevator would serve now, with the head as it is, and its urgency. `None` only if
    /// nothing is queued. The call changes nothing.
    fn peek(&self, now: Time, head: &HeadState) -> Option<Candidate>;

    /// Returns the first time, `now` or later, at which the candidate is urgent if nothing is inserted, merged or
    /// removed before. `None` if the candidate never becomes urgent. A scheduler may hold the disk until this time, but
    /// not longer. The urgency of a candidate must not depend on the head.
    fn expires(&self, now: Time) -> Option<Time>;

    /// Removes and returns the request that `peek` returns with the same `now` and `head`.
    fn take(&mut self, now: Time, head: &HeadState) -> Option<Request>;

    /// Removes a queued request and returns it. Another party serves the request: a scheduler that lets it overtake the
    /// elevator's order, or another lane.
    ///
    /// # Panics
    ///
    /// If no request of this tag is queued.
    fn withdraw(&mut self, tag: Tag) -> Request;

    /// Notes that the drive has finished a request that was taken earlier.
    fn completed(&mut self, _now: Time, _request: &Request) {}

    /// Hands over, once, a tracker of the head that uses the same model as the policy's decisions. `None` if the policy
    /// has no model, or has already handed over the tracker.
    fn tracker(&mut self) -> Option<Box<dyn Track>> {
        None
    }

    /// Returns true if `new` may become part of the queued request `queued`. If `new` is queued too, the engine is
    /// about to fuse the two.
    fn may_merge(&self, _queued: Tag, _new: &Request) -> bool {
        true
    }

    /// Returns the merge key of a request. Two requests merge only if their keys are equal. The key of a request must
    /// not change while the request is queued. The engine itself compares operation, flags and class.
    fn merge_key(&self, _request: &Request) -> u64 {
        0
    }

    /// Returns the queued requests for which [`Elevator::may_merge`] can return true with `request`. `request` is new,
    /// or is queued and about to be fused with a partner. `front` is true if `request` goes in front of the partner.
    fn partners(&self, _request: &Request, _front: bool) -> Partners {
        Partners::Any
    }

    /// Notes that a queued request has grown to `grown`. The arrival is the arrival of the oldest part. It may be
    /// earlier than before, if the part that joined had been held back. All ages and deadlines count from the new
    /// arrival. Tag, operation, flags, origin and class stay the same.
    fn merged(&mut self, grown: &Request);

    /// Notes that the queued request `gone` has become part of the queued request `kept`. In any order of arrival, the
    /// earlier place of the two counts.
    fn fused(&mut self, kept: Tag, gone: Tag);

    /// Returns the largest number of later arrivals that may be served ahead of a queued request. `None` if the policy
    /// gives no such bound.
    fn overtake_max(&self) -> Option<usize>;

    /// Returns the number of queued requests.
    fn queued(&self) -> usize;

    /// Removes all queued requests. Returns them in order of arrival: by arrival time, then by insertion.
    fn drain(&mut self) -> Vec<Request>;
}

/// The next step that a scheduler chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// Hand this request to the drive now.
    Request(Request),
    /// Requests are queued or expected, but waiting should pay. Ask again at this time, or earlier if
    /// a request is inserted, withdrawn or completed. Always later than the `now` passed in.
    IdleUntil(Time),
    /// Nothing is queued and nothing is expected.
    Empty,
}

/// A request that is certain to come, announced ahead.
///
/// A simulation knows the next request of a process. On a live disk, this knowledge does not exist. These requests
/// serve policies that show the value of perfect knowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foretold {
    /// Time at which the request comes.
    pub at: Time,
    /// The operation.
    pub op: Op,
    /// The sectors.
    pub extent: Extent,
    /// The process that will ask.
    pub origin: Origin,
}

/// An order to the scheduler of a disk, from a coordinator of several disks. `N` names a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directive<N> {
    /// The queued request belongs to the stream that the disk serves while the disk is dedicated.
    Mark(N),
    /// Until this time, or [`Directive::Release`], serve marked requests only, in the order of their marks, and wait
    /// for further marked requests. Expired requests go at once. While a flush waits, the scheduler does not wait. With
    /// several lanes in the engine, the directive concerns the lanes of marked requests, and other lanes go on.
    Dedicate {
        /// Time at which the scheduler decides for itself again.
        until: Time,
    },
    /// End the dedication and forget the marks.
    Release,
}

/// Decides the drive's next command. May wait for a request that has not arrived.
pub trait Scheduler: Send {
    /// Queues a request.
    fn insert(&mut self, now: Time, request: Request);

    /// Chooses the next step. Called whenever the drive has room.
    fn dispatch(&mut self, now: Time) -> Dispatch;

    /// Like [`Scheduler::dispatch`], while a flush waits for all queued requests. New arrivals queue behind the flush,
    /// so a scheduler should not hold the disk for one of them. (Linux 2.6 forces its elevators in front of a barrier.)
    /// If the scheduler returns [`Dispatch::IdleUntil`] nevertheless, the flush waits too.
    fn dispatch_forced(&mut self, now: Time) -> Dispatch;

    /// Notes that a request from [`Scheduler::dispatch`] has gone to the drive. This is usually at once. It is later if
    /// a driver commits to a request before the drive has room.
    fn dispatched(&mut self, _now: Time, _request: &Request) {}

    /// Notes that the drive has finished a request that was handed out earlier.
    fn completed(&mut self, _now: Time, _request: &Request) {}

    /// Announces a request that is certain to come, at `now` or later.
    fn foretold(&mut self, _now: Time, _request: &Foretold) {}

    /// Pending request that the scheduler's elevator would serve now. `None` if nothing is queued, or if the scheduler
    /// obeys no directives.
    fn candidate(&self, _now: Time) -> Option<Request> {
        None
    }

    /// Obeys a directive, as [`Stream`](crate::Stream) does. Other schedulers do nothing.
    fn directed(&mut self, _now: Time, _directive: &Directive<Tag>) {}

    /// Hands over a tracker, as [`Elevator::tracker`]. The holder of the tracker reports the head to the scheduler
    /// ([`Scheduler::head_is`]) before each choice.
    fn tracker(&mut self) -> Option<Box<dyn Track>> {
        None
    }

    /// Reports the head as it will be when the next request is served, from a tracker that sees all commands in the
    /// drive. The report replaces the scheduler's own knowledge of the head.
    fn head_is(&mut self, _head: &HeadState) {}

    /// As [`Elevator::may_merge`].
    fn may_merge(&self, queued: Tag, new: &Request) -> bool;

    /// As [`Elevator::merge_key`].
    fn merge_key(&self, _request: &Request) -> u64 {
        0
    }

    /// As [`Elevator::partners`].
    fn partners(&self, _request: &Request, _front: bool) -> Partners {
        Partners::Any
    }

    /// As [`Elevator::merged`].
    fn merged(&mut self, grown: &Request);

    /// Removes a queued request, which moves to another lane, and returns it. The scheduler is not notified of the
    /// request's dispatch and completion. The call may come in the middle of a wait. The caller must then ask the
    /// scheduler again, because its last answer no longer holds. If the scheduler has been waiting for this request,
    /// the wait is over.
    ///
    /// # Panics
    ///
    /// If no request of this tag is queued.
    fn withdraw(&mut self, tag: Tag) -> Request;

    /// Removes a request that another scheduler of the same requests has chosen, and returns it. Unlike with
    /// [`Scheduler::withdraw`], this scheduler is notified of the request's dispatch and completion. If a scheduler
    /// learns from the requests that it hands out, it also learns from this request.
    ///
    /// # Panics
    ///
    /// If no request of this tag is queued.
    fn taken_by_another(&mut self, _now: Time, tag: Tag) -> Request {
        self.withdraw(tag)
    }

    /// As [`Elevator::fused`].
    fn fused(&mut self, kept: Tag, gone: Tag);

    /// As [`Elevator::overtake_max`].
    fn overtake_max(&self) -> Option<usize>;

    /// Returns the number of queued requests: inserted, and neither handed out, withdrawn nor fused away.
    fn queued(&self) -> usize;

    /// Like [`Elevator::drain`], so that another scheduler can take over. Ends a wait. The counts of
    /// [`Scheduler::waits`] stay.
    fn drain(&mut self) -> Vec<Request>;

    /// Returns true if the scheduler never waits: it never returns [`Dispatch::IdleUntil`], and returns
    /// [`Dispatch::Empty`] only if nothing is queued. A call of `dispatch` then changes nothing in it. Callers
    /// therefore need not ask while nothing is queued. The answer never changes.
    fn never_waits(&self) -> bool {
        false
    }

    /// Returns the number of waits so far, and their outcomes. All zero if the scheduler never waits.
    fn waits(&self) -> WaitStats {
        WaitStats::default()
    }

    /// Returns the number of commands that the scheduler wants in the drive at once. `None` if the scheduler leaves the
    /// depth to the engine. A scheduler returns `None` always or never. The number may change with every choice, and
    /// counts for the request that was chosen. The engine's own depth is the upper limit.
    fn depth(&self) -> Option<u32> {
        None
    }
}

/// Methods that elevators and schedulers have in common, forwarded to another implementation.
macro_rules! forward_elevator {
    ($self:ident => $to:expr) => {
        fn insert(&mut $self, now: Time, request: Request) {
            $to.insert(now, request);
        }
        fn may_merge(&$self, queued: Tag, new: &Request) -> bool {
            $to.may_merge(queued, new)
        }
        fn merge_key(&$self, request: &Request) -> u64 {
            $to.merge_key(request)
        }
        fn partners(&$self, request: &Request, front: bool) -> Partners {
            $to.partners(request, front)
        }
        fn merged(&mut $self, grown: &Request) {
            $to.merged(grown);
        }
        fn fused(&mut $self, kept: Tag, gone: Tag) {
            $to.fused(kept, gone);
        }
        fn withdraw(&mut $self, tag: Tag) -> Request {
            $to.withdraw(tag)
        }
        fn overtake_max(&$self) -> Option<usize> {
            $to.overtake_max()
        }
        fn queued(&$self) -> usize {
            $to.queued()
        }
        fn drain(&mut $self) -> Vec<Request> {
            $to.drain()
        }
        fn completed(&mut $self, now: Time, request: &Request) {
            $to.completed(now, request);
        }
    };
}

/// The rest of a scheduler, forwarded to another one, except for the methods that concern the head.
macro_rules! forward_scheduler {
    ($self:ident => $to:expr) => {
        forward_elevator!($self => $to);
        fn dispatch(&mut $self, now: Time) -> Dispatch {
            $to.dispatch(now)
        }
        fn dispatch_forced(&mut $self, now: Time) -> Dispatch {
            $to.dispatch_forced(now)
        }
        fn dispatched(&mut $self, now: Time, request: &Request) {
            $to.dispatched(now, request);
        }
        fn foretold(&mut $self, now: Time, request: &Foretold) {
            $to.foretold(now, request);
        }
        fn candidate(&$self, now: Time) -> Option<Request> {
            $to.candidate(now)
        }
        fn directed(&mut $self, now: Time, directive: &Directive<Tag>) {
            $to.directed(now, directive);
        }
        fn taken_by_another(&mut $self, now: Time, tag: Tag) -> Request {
            $to.taken_by_another(now, tag)
        }
        fn never_waits(&$self) -> bool {
            $to.never_waits()
        }
        fn waits(&$self) -> WaitStats {
            $to.waits()
        }
        fn depth(&$self) -> Option<u32> {
            $to.depth()
        }
    };
}

impl<E: Elevator + ?Sized> Elevator for Box<E> {
    forward_elevator!(self => (**self));

    fn tracker(&mut self) -> Option<Box<dyn Track>> {
        (**self).tracker()
    }

    fn peek(&self, now: Time, head: &HeadState) -> Option<Candidate> {
        (**self).peek(now, head)
    }

    fn expires(&self, now: Time) -> Option<Time> {
        (**self).expires(now)
    }

    fn take(&mut self, now: Time, head: &HeadState) -> Option<Request> {
        (**self).take(now, head)
    }
}

impl<S: Scheduler + ?Sized> Scheduler for Box<S> {
    forward_scheduler!(self => (**self));

    fn tracker(&mut self) -> Option<Box<dyn Track>> {
        (**self).tracker()
    }

    fn head_is(&mut self, head: &HeadState) {
        (**self).head_is(head);
    }
}

/// A scheduler that does not use the head, with a tracker for its driver. The driver can use the tracker to know when
/// the arm is free, for example. The scheduler decides as it does alone.
pub struct WithTracker<S> {
    scheduler: S,
    tracker: Option<Box<dyn Track>>,
}

impl<S: Scheduler> WithTracker<S> {
    /// Hands out `tracker` beside `scheduler`.
    pub fn new(scheduler: S, tracker: Box<dyn Track>) -> WithTracker<S> {
        WithTracker {
            scheduler,
            tracker: Some(tracker),
        }
    }
}

impl<S: Scheduler> Scheduler for WithTracker<S> {
    forward_scheduler!(self => self.scheduler);

    fn tracker(&mut self) -> Option<Box<dyn Track>> {
        self.tracker.take()
    }
}

/// Drives an elevator and never waits: serves the elevator's candidate at once.
///
/// Source: the definition of a work-conserving scheduler. Do not use it for streams of synchronous reads: it
/// interleaves them request by request.
#[derive(Debug)]
pub struct WorkConserving<E> {
    elevator: E,
    head: HeadState,
}

impl<E: Elevator> WorkConserving<E> {
    /// A scheduler that never waits, with the head at sector 0.
    pub fn new(elevator: E) -> WorkConserving<E> {
        WorkConserving {
            elevator,
            head: HeadState::START,
        }
    }

    /// The elevator.
    pub fn elevator(&self) -> &E {
        &self.elevator
    }
}

impl<E: Elevator> Scheduler for WorkConserving<E> {
    fn insert(&mut self, now: Time, request: Request) {
        self.elevator.insert(now, request);
    }

    fn dispatch(&mut self, now: Time) -> Dispatch {
        match self.elevator.take(now, &self.head) {
            Some(request) => {
                self.head = HeadState::behind(&request);
                Dispatch::Request(request)
            }
            None => Dispatch::Empty,
        }
    }

    fn dispatch_forced(&mut self, now: Time) -> Dispatch {
        self.dispatch(now)
    }

    fn never_waits(&self) -> bool {
        true
    }

    fn tracker(&mut self) -> Option<Box<dyn Track>> {
        self.elevator.tracker()
    }

    fn head_is(&mut self, head: &HeadState) {
        self.head = *head;
    }

    fn withdraw(&mut self, tag: Tag) -> Request {
        self.elevator.withdraw(tag)
    }

    fn taken_by_another(&mut self, _: Time, tag: Tag) -> Request {
        let request = self.elevator.withdraw(tag);
        self.head = HeadState::behind(&request);
        request
    }

    fn completed(&mut self, now: Time, request: &Request) {
        self.head.completed(now, request);
        self.elevator.completed(now, request);
    }

    fn may_merge(&self, queued: Tag, new: &Request) -> bool {
        self.elevator.may_merge(queued, new)
    }

    fn merge_key(&self, request: &Request) -> u64 {
        self.elevator.merge_key(request)
    }

    fn partners(&self, request: &Request, front: bool) -> Partners {
        self.elevator.partners(request, front)
    }

    fn merged(&mut self, grown: &Request) {
        self.elevator.merged(grown);
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        self.elevator.fused(kept, gone);
    }

    fn overtake_max(&self) -> Option<usize> {
        self.elevator.overtake_max()
    }

    fn queued(&self) -> usize {
        self.elevator.queued()
    }

    fn drain(&mut self) -> Vec<Request> {
        self.elevator.drain()
    }
}
