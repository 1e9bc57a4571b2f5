//! Position of the head and the request that left it there, as far as a scheduler can know.

use crate::{HeadAfter, Op, Positioning, Request, Tag};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};

/// The state of the head behind the request that was handed out last.
///
/// The driver of an elevator maintains this state: with [`HeadState::behind`] for each request that goes to the drive,
/// and with [`HeadState::completed`] for each request that comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadState {
    /// The address behind the last sector of that request; sector 0 before the first request.
    pub lba: Lba,
    /// The operation of that request; `None` before the first request.
    pub op: Option<Op>,
    /// Time at which that request was done; `None` while it is in the drive.
    pub free: Option<Time>,
    /// Time at which the head should be free for another request, while that request is in the drive. `None` without a
    /// prediction.
    pub due: Option<Time>,
    /// Lead of the [`Positioning`](crate::Positioning)'s clock over the time that schedulers use. Zero unless a tracker
    /// follows the platter.
    pub ahead: Nanos,
    in_drive: Option<Tag>,
}

impl HeadState {
    /// The head before the first request.
    pub const START: HeadState = HeadState::at(Lba::ZERO);

    /// A head that has been at rest at this address from the start. No request left it there.
    pub const fn at(lba: Lba) -> HeadState {
        HeadState {
            lba,
            op: None,
            free: Some(Time::ZERO),
            due: None,
            ahead: Nanos::ZERO,
            in_drive: None,
        }
    }

    /// The head behind a request that goes to the drive.
    pub fn behind(request: &Request) -> HeadState {
        HeadState {
            lba: request.extent.end(),
            op: Some(request.op),
            free: None,
            due: None,
            ahead: Nanos::ZERO,
            in_drive: Some(request.tag),
        }
    }

    /// A head that a tracker follows, behind the request that left it there. If `is_busy` is false, that request has
    /// been done since `free`. If `is_busy` is true, that request should be done by `free`, as far as the tracker
    /// knows.
    pub const fn tracked(
        lba: Lba,
        op: Option<Op>,
        free: Option<Time>,
        is_busy: bool,
        ahead: Nanos,
    ) -> HeadState {
        let (free, due) = match is_busy {
            true => (None, free),
            false => (free, None),
        };
        HeadState {
            lba,
            op,
            free,
            due,
            ahead,
            in_drive: None,
        }
    }

    /// Converts the head to the terms and the clock of a model. If the time at which the head is free is unknown, the
    /// head counts as free at `now`.
    pub fn by<P: Positioning>(&self, model: &P, now: Time) -> HeadAfter<P::Place> {
        const ONE: Sectors = Sectors::new(1);
        let last = |lba| Extent::new(lba - ONE, ONE);
        let place = match self.op {
            _ if self.lba == Lba::ZERO => model.start(Extent::new(self.lba, ONE)),
            Some(op) => model.left_by(last(self.lba), op),
            None => model.end(last(self.lba)),
        };
        let free = self.free.or(self.due).unwrap_or(now);
        HeadAfter {
            place,
            free: free + self.ahead,
        }
    }

    /// Notes that the drive finished a request. The head becomes free if that request was the last one handed out.
    pub fn completed(&mut self, now: Time, request: &Request) {
        if self.in_drive == Some(request.tag) {
            self.in_drive = None;
            self.free = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::tests::curve;
    use crate::tests::{at, read, write};
    use crate::{
        Candidate, Dispatch, Elevator, Noop, Scheduler, Stream, StreamConfig, WorkConserving,
    };
    use alloc::boxed::Box;
    use alloc::sync::Arc;
    use std::sync::Mutex;
    use std::vec::Vec;

    /// The head that an elevator saw last.
    type Seen = Arc<Mutex<HeadState>>;

    /// First come, first served. Records the head that it saw when it last handed out a request.
    struct Sees(Noop, Seen);

    impl Elevator for Sees {
        fn insert(&mut self, now: Time, request: Request) {
            self.0.insert(now, request);
        }
        fn peek(&self, now: Time, head: &HeadState) -> Option<Candidate> {
            self.0.peek(now, head)
        }
        fn expires(&self, now: Time) -> Option<Time> {
            self.0.expires(now)
        }
        fn take(&mut self, now: Time, head: &HeadState) -> Option<Request> {
            *self.1.lock().expect("no panic") = *head;
            self.0.take(now, head)
        }
        fn withdraw(&mut self, tag: Tag) -> Request {
            self.0.withdraw(tag)
        }
        fn merged(&mut self, grown: &Request) {
            self.0.merged(grown);
        }
        fn fused(&mut self, kept: Tag, gone: Tag) {
            self.0.fused(kept, gone);
        }
        fn overtake_max(&self) -> Option<usize> {
            self.0.overtake_max()
        }
        fn queued(&self) -> usize {
            self.0.queued()
        }
        fn drain(&mut self) -> Vec<Request> {
            self.0.drain()
        }
    }

    /// Both schedulers that drive an elevator, and the records of their elevators.
    fn drivers() -> [(Box<dyn Scheduler>, Seen); 2] {
        let sees = || {
            let seen = Arc::new(Mutex::new(HeadState::START));
            (Sees(Noop::new(), Arc::clone(&seen)), seen)
        };
        let ((plain, of_plain), (inner, of_stream)) = (sees(), sees());
        let stream = Stream::new(inner, StreamConfig::DEFAULT, curve());
        [
            (Box::new(WorkConserving::new(plain)), of_plain),
            (Box::new(stream), of_stream),
        ]
    }

    #[test]
    fn an_elevator_sees_what_left_the_head_where_and_since_when_that_is_done() {
        for (mut scheduler, seen) in drivers() {
            let requests = [write(0, 100, 0), read(1, 500, 0), read(2, 900, 0)];
            for request in requests {
                scheduler.insert(at(0), request);
            }
            let next = |scheduler: &mut dyn Scheduler, now, request| {
                assert_eq!(scheduler.dispatch(now), Dispatch::Request(request));
                let head = *seen.lock().expect("no panic");
                (head.lba.get(), head.op, head.free)
            };
            let scheduler = &mut *scheduler;
            let first = next(scheduler, at(0), requests[0]);
            assert_eq!(first, (0, None, Some(at(0))));
            let behind_first = next(scheduler, at(1), requests[1]);
            assert_eq!(behind_first, (108, Some(Op::Write), None));
            scheduler.completed(at(2), &requests[0]);
            scheduler.completed(at(3), &requests[1]);
            let later = next(scheduler, at(4), requests[2]);
            assert_eq!(later, (508, Some(Op::Read), Some(at(3))));
        }
    }

    #[test]
    fn a_head_is_free_when_the_last_request_is_done_and_not_before() {
        let (first, last) = (write(0, 100, 0), read(1, 500, 0));
        let mut head = HeadState::behind(&last);
        assert_eq!((head.lba, head.op), (Lba::new(508), Some(Op::Read)));
        head.completed(at(3), &first);
        assert_eq!(head.free, None);
        head.completed(at(5), &last);
        assert_eq!(head.free, Some(at(5)));
        // The tag is reused, and another party serves that request.
        head.completed(at(9), &last);
        assert_eq!(head.free, Some(at(5)));
    }
}
