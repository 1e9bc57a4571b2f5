//! Two policies that try the scheduler interface: a waiting policy and a policy with a veto on merges. Not for use.

use headtime_sched::{
    Candidate, Dispatch, Elevator, HeadState, ListId, Request, Requests, Scheduler, Tag,
};
use headtime_units::{Lba, Nanos, Time};

/// Longest wait of [`ToyAnticipator`].
const PATIENCE: Nanos = Nanos::from_millis(2);

/// Waits for the next request of a sequential stream.
///
/// After a read that continues the last completed read, the policy holds the disk for up to 2 ms for the stream's
/// next request. An urgent candidate of its elevator goes at once. A candidate that continues the stream does, too.
#[derive(Debug)]
pub struct ToyAnticipator<E> {
    elevator: E,
    head: HeadState,
    /// End of the last completed read.
    last_end: Option<Lba>,
    /// Start of the awaited request, and the end of the wait.
    awaited: Option<(Lba, Time)>,
}

impl<E: Elevator> ToyAnticipator<E> {
    /// An anticipator that orders like this elevator.
    pub fn new(elevator: E) -> ToyAnticipator<E> {
        ToyAnticipator {
            elevator,
            head: HeadState::START,
            last_end: None,
            awaited: None,
        }
    }
}

impl<E: Elevator> Scheduler for ToyAnticipator<E> {
    fn insert(&mut self, now: Time, request: Request) {
        self.elevator.insert(now, request);
    }

    fn dispatch_forced(&mut self, now: Time) -> Dispatch {
        self.awaited = None;
        self.dispatch(now)
    }

    fn dispatch(&mut self, now: Time) -> Dispatch {
        let Some(candidate) = self.elevator.peek(now, &self.head) else {
            return Dispatch::Empty;
        };
        if let Some((start, until)) = self.awaited
            && now < until
            && !candidate.urgent
            && candidate.request.extent.start != start
        {
            return Dispatch::IdleUntil(until);
        }
        self.awaited = None;
        let request = self
            .elevator
            .take(now, &self.head)
            .expect("it was peeked at");
        self.head = HeadState::behind(&request);
        Dispatch::Request(request)
    }

    fn completed(&mut self, now: Time, request: &Request) {
        self.head.completed(now, request);
        self.elevator.completed(now, request);
        let end = request.extent.end();
        let continues = request.op.is_read() && self.last_end == Some(request.extent.start);
        self.awaited = continues.then(|| (end, now + PATIENCE));
        self.last_end = request.op.is_read().then_some(end);
    }

    fn may_merge(&self, queued: Tag, new: &Request) -> bool {
        self.elevator.may_merge(queued, new)
    }

    fn merged(&mut self, grown: &Request) {
        self.elevator.merged(grown);
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        self.elevator.fused(kept, gone);
    }

    fn withdraw(&mut self, tag: Tag) -> Request {
        let request = self.elevator.withdraw(tag);
        // If the withdrawn request is the awaited one, the wait is over.
        self.awaited = self
            .awaited
            .filter(|(start, _)| *start != request.extent.start);
        request
    }

    fn overtake_max(&self) -> Option<usize> {
        self.elevator.overtake_max()
    }

    fn queued(&self) -> usize {
        self.elevator.queued()
    }

    fn drain(&mut self) -> Vec<Request> {
        self.awaited = None;
        self.elevator.drain()
    }
}

/// One request per process in turn, in order of arrival within a process. The policy never merges requests of two
/// processes.
#[derive(Debug)]
pub struct ToyFair {
    requests: Requests,
    /// Process that was served last.
    last: u32,
}

const ALL: ListId = ListId(0);

impl ToyFair {
    /// A policy without requests.
    pub fn new() -> ToyFair {
        ToyFair {
            requests: Requests::new(1),
            last: u32::MAX,
        }
    }

    fn next(&self) -> Option<Request> {
        // The oldest request of the process that follows the last one in a circle.
        let after = |process: u32| process.wrapping_sub(self.last).wrapping_sub(1);
        let next = |request: &&Request| after(request.origin.process);
        self.requests.iter(ALL).min_by_key(next).copied()
    }
}

impl Default for ToyFair {
    fn default() -> ToyFair {
        ToyFair::new()
    }
}

impl Elevator for ToyFair {
    fn insert(&mut self, _: Time, request: Request) {
        self.requests.insert(ALL, request);
    }

    fn peek(&self, _: Time, _: &HeadState) -> Option<Candidate> {
        self.next().map(|request| Candidate {
            request,
            urgent: false,
        })
    }

    fn expires(&self, _: Time) -> Option<Time> {
        None
    }

    fn take(&mut self, _: Time, _: &HeadState) -> Option<Request> {
        let next = self.next()?;
        self.last = next.origin.process;
        Some(self.requests.remove(next.tag))
    }

    fn withdraw(&mut self, tag: Tag) -> Request {
        self.requests.remove(tag)
    }

    fn may_merge(&self, queued: Tag, new: &Request) -> bool {
        self.requests.get(queued).origin == new.origin
    }

    fn merged(&mut self, grown: &Request) {
        self.requests.grow(grown);
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        self.requests.fuse(kept, gone);
    }

    fn overtake_max(&self) -> Option<usize> {
        None
    }

    fn queued(&self) -> usize {
        self.requests.len()
    }

    fn drain(&mut self) -> Vec<Request> {
        self.requests.drain()
    }
}
