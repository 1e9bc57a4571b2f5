//! Policies that try the seam: one that waits, and one that vetoes merges. Not for use.

use headtime_sched::{
    Candidate, Dispatch, Elevator, HeadState, ListId, Request, Requests, Scheduler, Tag,
};
use headtime_units::{Lba, Nanos, Time};

/// How long [`ToyAnticipator`] waits.
const PATIENCE: Nanos = Nanos::from_millis(2);

/// Waits for the next request of a sequential stream.
///
/// After a read that continues the one completed before it, it holds the disk for up to 2 ms for a
/// request that starts where the stream stands. An urgent candidate of its elevator, or one that
/// continues the stream, goes at once.
#[derive(Debug)]
pub struct ToyAnticipator<E> {
    elevator: E,
    head: HeadState,
    /// Where the last completed read ended.
    last_end: Option<Lba>,
    /// What it waits for, and how long.
    awaited: Option<(Lba, Time)>,
}

impl<E: Elevator> ToyAnticipator<E> {
    /// One that orders like this elevator.
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
        // If it was this one, it has come.
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

/// One request per process in turn, in order of arrival within a process; never merges what comes
/// from two processes.
#[derive(Debug)]
pub struct ToyFair {
    requests: Requests,
    /// Whose turn was last.
    last: u32,
}

const ALL: ListId = ListId(0);

impl ToyFair {
    /// Without requests.
    pub fn new() -> ToyFair {
        ToyFair {
            requests: Requests::new(1),
            last: u32::MAX,
        }
    }

    fn next(&self) -> Option<Request> {
        // The process next in a circle after the last one; of its requests, the oldest.
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
