//! What is checked: a scheduler as it is, or an elevator that is peeked at.

use crate::violation::{Rule, Violation};
use headtime_sched::{Candidate, Dispatch, Elevator, Partners, Request, Scheduler, Tag};
use headtime_units::{Extent, Lba, Time};

/// A scheduler under a check, which may find something by itself.
pub(crate) trait Subject {
    fn insert(&mut self, now: Time, request: Request);
    fn dispatch(&mut self, now: Time) -> Result<Dispatch, Violation>;
    fn dispatched(&mut self, now: Time, request: &Request);
    fn completed(&mut self, now: Time, request: &Request);
    fn may_merge(&self, queued: Tag, new: &Request) -> bool;
    fn merge_key(&self, request: &Request) -> u64;
    fn partners(&self, request: &Request, front: bool) -> Partners;
    fn merged(&mut self, queued: Tag, extent: Extent, arrival: Time);
    fn fused(&mut self, kept: Tag, gone: Tag);
    fn overtake_max(&self) -> Option<usize>;
    fn queued(&self) -> usize;
    fn drain(&mut self) -> Vec<Request>;

    /// Takes a queued request out of its turn, if that can be asked for.
    fn withdraw(&mut self, _tag: Tag) -> Option<Request> {
        None
    }
}

/// A scheduler as it is.
pub(crate) struct Plain<S>(pub S);

impl<S: Scheduler> Subject for Plain<S> {
    fn insert(&mut self, now: Time, request: Request) {
        self.0.insert(now, request);
    }

    fn dispatch(&mut self, now: Time) -> Result<Dispatch, Violation> {
        Ok(self.0.dispatch(now))
    }

    fn dispatched(&mut self, now: Time, request: &Request) {
        self.0.dispatched(now, request);
    }

    fn completed(&mut self, now: Time, request: &Request) {
        self.0.completed(now, request);
    }

    fn may_merge(&self, queued: Tag, new: &Request) -> bool {
        self.0.may_merge(queued, new)
    }

    fn merge_key(&self, request: &Request) -> u64 {
        self.0.merge_key(request)
    }

    fn partners(&self, request: &Request, front: bool) -> Partners {
        self.0.partners(request, front)
    }

    fn merged(&mut self, queued: Tag, extent: Extent, arrival: Time) {
        self.0.merged(queued, extent, arrival);
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

/// Two of the same elevator, of which one is peeked at whenever there is an occasion.
pub(crate) struct Twins<E> {
    peeked: E,
    unpeeked: E,
    head: Lba,
}

impl<E: Elevator> Twins<E> {
    pub fn new(peeked: E, unpeeked: E) -> Twins<E> {
        Twins {
            peeked,
            unpeeked,
            head: Lba::ZERO,
        }
    }

    fn peek(&self, now: Time) -> Result<Option<Candidate>, Violation> {
        let first = self.peeked.peek(now, self.head);
        for head in [Lba::ZERO, Lba::new(u64::from(u32::MAX)), self.head] {
            let again = self.peeked.peek(now, head);
            if head == self.head && again != first {
                let what = format!("{first:?} and, on looking again, {again:?}");
                return Err(Violation {
                    rule: Rule::Peek,
                    at: now,
                    what,
                });
            }
        }
        Ok(first)
    }
}

impl<E: Elevator> Subject for Twins<E> {
    fn insert(&mut self, now: Time, request: Request) {
        self.peeked.insert(now, request);
        self.unpeeked.insert(now, request);
        self.peeked.peek(now, self.head);
    }

    fn dispatch(&mut self, now: Time) -> Result<Dispatch, Violation> {
        let seen = self.peek(now)?.map(|candidate| candidate.request);
        let taken = self.peeked.take(now, self.head);
        let blind = self.unpeeked.take(now, self.head);
        let wrong = match () {
            () if seen != taken => Some(format!("peek says {seen:?}, and taken is {taken:?}")),
            () if blind != taken => Some(format!(
                "taken is {taken:?}, and {blind:?} if nobody looked before"
            )),
            () => None,
        };
        if let Some(what) = wrong {
            return Err(Violation {
                rule: Rule::Peek,
                at: now,
                what,
            });
        }
        Ok(match taken {
            Some(request) => {
                self.head = request.extent.end();
                Dispatch::Request(request)
            }
            None => Dispatch::Empty,
        })
    }

    fn dispatched(&mut self, _: Time, _: &Request) {}

    fn completed(&mut self, now: Time, request: &Request) {
        self.peeked.completed(now, request);
        self.unpeeked.completed(now, request);
    }

    fn may_merge(&self, queued: Tag, new: &Request) -> bool {
        let may = self.peeked.may_merge(queued, new);
        assert_eq!(
            may,
            self.unpeeked.may_merge(queued, new),
            "twins differ about a merge"
        );
        may
    }

    fn merge_key(&self, request: &Request) -> u64 {
        self.peeked.merge_key(request)
    }

    fn partners(&self, request: &Request, front: bool) -> Partners {
        self.peeked.partners(request, front)
    }

    fn merged(&mut self, queued: Tag, extent: Extent, arrival: Time) {
        self.peeked.merged(queued, extent, arrival);
        self.unpeeked.merged(queued, extent, arrival);
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        self.peeked.fused(kept, gone);
        self.unpeeked.fused(kept, gone);
    }

    fn overtake_max(&self) -> Option<usize> {
        self.peeked.overtake_max()
    }

    fn queued(&self) -> usize {
        self.peeked.queued()
    }

    fn drain(&mut self) -> Vec<Request> {
        self.unpeeked.drain();
        self.peeked.drain()
    }

    fn withdraw(&mut self, tag: Tag) -> Option<Request> {
        self.unpeeked.withdraw(tag);
        let request = self.peeked.withdraw(tag);
        self.head = request.extent.end();
        Some(request)
    }
}
