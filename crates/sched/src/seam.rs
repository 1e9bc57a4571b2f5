//! The seam between the policies and whoever drives them: the engine, a test, another policy.

use crate::{HeadState, Op, Origin, Request, Tag, Track, WaitStats};
use alloc::boxed::Box;
use alloc::vec::Vec;
use headtime_units::{Extent, Time};

/// The request that an elevator would serve now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The request.
    pub request: Request,
    /// True if it has expired. A scheduler that holds the disk for another request must let it go at
    /// once.
    pub urgent: bool,
}

/// The queued requests with which another request may merge, as far as a policy can say without being
/// asked about each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partners {
    /// Any of them.
    Any,
    /// At most these.
    Only([Option<Tag>; 2]),
}

impl Partners {
    /// None of them.
    pub const NONE: Partners = Partners::Only([None; 2]);

    /// Returns true if this request may be one of them.
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
/// The engine finds requests that touch. The policy may veto a merge ([`Elevator::may_merge`]). What it
/// would veto in any case it says beforehand ([`Elevator::merge_key`], [`Elevator::partners`]), so that
/// the engine need not ask about each of thousands of requests that touch. The engine tells the policy
/// what it did: [`Elevator::merged`] if a queued request grew at either end, [`Elevator::fused`] if
/// growing closed the gap to a neighbour. After each `fused` comes a `merged` for the request that was
/// kept.
pub trait Elevator {
    /// Queues a request.
    fn insert(&mut self, now: Time, request: Request);

    /// Returns the request that it would serve now, with the head as it is, and whether that is urgent.
    /// `None` only if nothing is queued. Looking changes nothing.
    fn peek(&self, now: Time, head: &HeadState) -> Option<Candidate>;

    /// Returns the first time, `now` or later, at which the candidate is urgent if nothing is inserted,
    /// merged or removed before. `None` if it never is. A scheduler may hold the disk until then and not
    /// longer. Whether a candidate is urgent must not depend on the head.
    fn expires(&self, now: Time) -> Option<Time>;

    /// Removes and returns the request that `peek` shows with the same `now` and `head`.
    fn take(&mut self, now: Time, head: &HeadState) -> Option<Request>;

    /// Removes a queued request and returns it. Somebody else serves it: a scheduler that lets it go
    /// past its elevator, or another lane.
    ///
    /// # Panics
    ///
    /// If no request of this tag is queued.
    fn withdraw(&mut self, tag: Tag) -> Request;

    /// The drive has finished a request that was taken earlier.
    fn completed(&mut self, _now: Time, _request: &Request) {}

    /// Hands over what follows the head by the model that the policy decides by, once; `None` if it has no model, or no
    /// more.
    fn tracker(&mut self) -> Option<Box<dyn Track>> {
        None
    }

    /// Returns true if `new` may become part of the queued request `queued`. If `new` is queued itself,
    /// the two are about to be fused.
    fn may_merge(&self, _queued: Tag, _new: &Request) -> bool {
        true
    }

    /// Two requests merge only if their keys are equal. The key of a request must not change while it is
    /// queued. The engine itself compares operation, flags and class.
    fn merge_key(&self, _request: &Request) -> u64 {
        0
    }

    /// Returns the queued requests for which [`Elevator::may_merge`] can say yes to `request`. That is a
    /// new request, to be put in `front` of them or behind them, or a queued one that they would be fused
    /// with.
    fn partners(&self, _request: &Request, _front: bool) -> Partners {
        Partners::Any
    }

    /// A queued request has grown: it is `grown` now. Its arrival is that of its oldest part, which may
    /// be earlier than before if what joined it had been held back. Whatever counts from the arrival of
    /// the request counts from this one. Tag, operation, flags, origin and class stay as they were.
    fn merged(&mut self, grown: &Request);

    /// The queued request `gone` has become part of the queued request `kept`. In any order of arrival,
    /// the earlier place of the two counts.
    fn fused(&mut self, kept: Tag, gone: Tag);

    /// Returns how many later arrivals may be served ahead of a queued request. `None` if the policy
    /// gives no such bound.
    fn overtake_max(&self) -> Option<usize>;

    /// Returns the number of queued requests.
    fn queued(&self) -> usize;

    /// Removes all queued requests. Returns them in order of arrival: by arrival time, then by insertion.
    fn drain(&mut self) -> Vec<Request>;
}

/// What a scheduler wants done next.
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

/// A request that is certain to come, told ahead.
///
/// A simulation knows what a process does next; nobody knows it of a live disk. This is for policies that
/// show what perfect knowledge is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foretold {
    /// When it comes.
    pub at: Time,
    /// What it will do.
    pub op: Op,
    /// To which sectors.
    pub extent: Extent,
    /// Who will ask.
    pub origin: Origin,
}

/// An order to the scheduler of a disk, from whoever coordinates several disks. `N` names a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directive<N> {
    /// The queued request belongs to the stream that the disk serves while it is dedicated.
    Mark(N),
    /// Until this time, or [`Directive::Release`], serve marked requests only, in the order of their marks, and wait for
    /// them. Expired requests go at once. A flush ends the wait for as long as it waits itself. If the engine has several
    /// lanes, then this concerns the lanes of marked requests, and other lanes go on.
    Dedicate {
        /// Time at which the scheduler decides for itself again.
        until: Time,
    },
    /// Decide for yourself again. Marks are forgotten.
    Release,
}

/// Decides what the drive does next. May wait for a request that has not arrived.
pub trait Scheduler {
    /// Queues a request.
    fn insert(&mut self, now: Time, request: Request);

    /// Chooses the next step. Called whenever the drive has room.
    fn dispatch(&mut self, now: Time) -> Dispatch;

    /// Like [`Scheduler::dispatch`], while a flush waits for all that is queued. New arrivals queue
    /// behind the flush, so a scheduler should not hold the disk for one of them. (Linux 2.6 forces its
    /// elevators in front of a barrier.) If it says [`Dispatch::IdleUntil`] nevertheless, the flush
    /// waits too.
    fn dispatch_forced(&mut self, now: Time) -> Dispatch;

    /// A request that [`Scheduler::dispatch`] handed out has gone to the drive: usually at once, later if
    /// a driver commits to a request before the drive has room.
    fn dispatched(&mut self, _now: Time, _request: &Request) {}

    /// The drive has finished a request that was handed out earlier.
    fn completed(&mut self, _now: Time, _request: &Request) {}

    /// A request is certain to come, at `now` or later.
    fn foretold(&mut self, _now: Time, _request: &Foretold) {}

    /// Pending request that its elevator would serve now; `None` if nothing is queued, or of a scheduler that obeys no
    /// directive.
    fn candidate(&self, _now: Time) -> Option<Request> {
        None
    }

    /// Obeys a directive, as [`Stream`](crate::Stream) does. Others do nothing.
    fn directed(&mut self, _now: Time, _directive: &Directive<Tag>) {}

    /// As [`Elevator::tracker`]. Whoever has it tells the scheduler of the head ([`Scheduler::head_is`]) before each choice.
    fn tracker(&mut self) -> Option<Box<dyn Track>> {
        None
    }

    /// Where the head will be when the next request is served, by a tracker that sees all commands in the drive. It
    /// takes the place of what the scheduler itself knows of that.
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

    /// Removes a queued request, which moves to another lane, and returns it. The scheduler is not told
    /// of its dispatch and completion. Also in the middle of a wait: a scheduler that waits must be
    /// asked again, since what it said holds no longer. If it has been waiting for this very request,
    /// that has come, and the wait is over.
    ///
    /// # Panics
    ///
    /// If no request of this tag is queued.
    fn withdraw(&mut self, tag: Tag) -> Request;

    /// Another scheduler that has the same requests chose this one. Removes it and returns it, as [`Scheduler::withdraw`]
    /// does, but of this one the scheduler is told that it is dispatched and completed. One that learns from what it
    /// hands out does so here too.
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

    /// Returns the number of queued requests: inserted, and neither handed out nor withdrawn nor fused away.
    fn queued(&self) -> usize;

    /// Like [`Elevator::drain`], so that another scheduler can take over. Ends a wait. The counts of
    /// [`Scheduler::waits`] stay.
    fn drain(&mut self) -> Vec<Request>;

    /// Returns true if it never waits: it says [`Dispatch::IdleUntil`] never and [`Dispatch::Empty`] only if nothing is
    /// queued, and to be asked then changes nothing in it. So it need not be asked while nothing is queued. It says the
    /// same always.
    fn never_waits(&self) -> bool {
        false
    }

    /// Returns how often it has waited so far, and what came of it. All zero if it never waits.
    fn waits(&self) -> WaitStats {
        WaitStats::default()
    }

    /// Returns the number of commands that it wants in the drive at once; `None` if it leaves that to the engine, which it does
    /// always or never. It may change with every choice, and counts for the request that was chosen. The engine's
    /// own depth is the most.
    fn depth(&self) -> Option<u32> {
        None
    }
}

/// What elevators and schedulers have in common, by another one.
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

/// The rest of a scheduler by another one, but for what has to do with the head.
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

/// A scheduler that does not ask where the head is, with a tracker for whoever drives it: to know when the arm is free,
/// for example. It decides as it does alone.
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

/// Drives an elevator and never waits: serves at once whatever the elevator would serve.
///
/// Source: the definition of a work-conserving scheduler. Do not use it for streams of synchronous reads,
/// which it tears apart.
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
