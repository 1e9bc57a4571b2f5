//! The subject of a check: a scheduler, or an elevator that is peeked at.

use crate::counted::Counted;
use crate::violation::{Rule, Violation};
use headtime_sched::{Candidate, Dispatch, Elevator, HeadState, Partners, Request, Scheduler, Tag};
use headtime_units::{Lba, Nanos, Time};

/// A scheduler under a check, which may find a violation by itself.
pub(crate) trait Subject: Scheduler {
    /// Violation that the subject found at its last decision.
    fn found(&mut self) -> Option<Violation> {
        None
    }
}

impl<S: Scheduler> Subject for Counted<S> {}

/// Two equal elevators. The check peeks at the first on every occasion, and never at the second.
pub(crate) struct Twins<E> {
    peeked: E,
    unpeeked: E,
    head: HeadState,
    found: Option<Violation>,
}

impl<E: Elevator> Twins<E> {
    pub fn new(peeked: E, unpeeked: E) -> Twins<E> {
        Twins {
            peeked,
            unpeeked,
            head: HeadState::START,
            found: None,
        }
    }

    fn peek(&self, now: Time) -> Result<Option<Candidate>, Violation> {
        let first = self.peeked.peek(now, &self.head);
        for head in [
            HeadState::START,
            HeadState::at(Lba::new(u64::from(u32::MAX))),
            self.head,
        ] {
            let again = self.peeked.peek(now, &head);
            if head == self.head && again != first {
                let what = format!("{first:?} and, on looking again, {again:?}");
                return Err(wrong(now, what));
            }
        }
        Ok(first)
    }

    /// Checks at future times that the candidate becomes urgent when the elevator says so: near and far times, the
    /// stated time, and the nanosecond before.
    fn look_ahead(&self, now: Time) -> Result<(), Violation> {
        let urgent = |at| {
            let candidate = self.peeked.peek(at, &self.head);
            candidate.is_some_and(|candidate| candidate.urgent)
        };
        let says = self.peeked.expires(now);
        let wrong = |at| {
            let what = format!("at {at} urgent is {}, and it says {says:?}", urgent(at));
            Err(Violation {
                rule: Rule::Expires,
                at: now,
                what,
            })
        };
        let end = says.unwrap_or(Time::LATEST);
        if says.is_some() && !urgent(end) {
            return wrong(end);
        }
        let last = end.saturating_sub(Nanos::from_nanos(1));
        let ahead =
            (0..=20).map(|power| now.saturating_add(Nanos::from_nanos(8_u64.pow(power) - 1)));
        let mut early = ahead.chain([last]).filter(|at| now <= *at && *at < end);
        early.find(|at| urgent(*at)).map_or(Ok(()), wrong)
    }

    fn take(&mut self, now: Time) -> Result<Option<Request>, Violation> {
        self.look_ahead(now)?;
        let seen = self.peek(now)?.map(|candidate| candidate.request);
        let taken = self.peeked.take(now, &self.head);
        // An engine does not ask an empty scheduler that never waits.
        let blind = match self.unpeeked.queued() {
            0 => None,
            _ => self.unpeeked.take(now, &self.head),
        };
        if seen != taken {
            let what = format!("peek says {seen:?}, and taken is {taken:?}");
            return Err(wrong(now, what));
        }
        if blind != taken {
            let what = format!(
                "taken is {taken:?}, and {blind:?} if nobody looked or asked in vain before"
            );
            return Err(wrong(now, what));
        }
        Ok(taken)
    }
}

fn wrong(at: Time, what: String) -> Violation {
    Violation {
        rule: Rule::Peek,
        at,
        what,
    }
}

impl<E: Elevator> Scheduler for Twins<E> {
    fn insert(&mut self, now: Time, request: Request) {
        self.peeked.insert(now, request);
        self.unpeeked.insert(now, request);
        self.peeked.peek(now, &self.head);
    }

    fn dispatch(&mut self, now: Time) -> Dispatch {
        match self.take(now) {
            Ok(Some(request)) => {
                self.head = HeadState::behind(&request);
                Dispatch::Request(request)
            }
            Ok(None) => Dispatch::Empty,
            Err(violation) => {
                self.found = Some(violation);
                Dispatch::Empty
            }
        }
    }

    fn dispatch_forced(&mut self, now: Time) -> Dispatch {
        self.dispatch(now)
    }

    /// The disk serves the request past the elevator.
    fn withdraw(&mut self, tag: Tag) -> Request {
        self.unpeeked.withdraw(tag);
        let request = self.peeked.withdraw(tag);
        self.head = HeadState::behind(&request);
        request
    }

    fn completed(&mut self, now: Time, request: &Request) {
        self.head.completed(now, request);
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

    fn merged(&mut self, grown: &Request) {
        self.peeked.merged(grown);
        self.unpeeked.merged(grown);
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
}

impl<E: Elevator> Subject for Twins<E> {
    fn found(&mut self) -> Option<Violation> {
        self.found.take()
    }
}
