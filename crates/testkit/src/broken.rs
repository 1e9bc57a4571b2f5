//! Policies with a fault, which the checkers must find. A checker that passes a faulty policy is useless.

use headtime_sched::{
    BoundsWaits, Candidate, Dispatch, Elevator, HeadState, Request, Scheduler, Sstf, Tag, WaitBound,
};
use headtime_units::{Lba, Nanos, Time};
use std::cell::Cell;

/// Fault of a [`Broken`] elevator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No fault. The checkers must pass this elevator.
    None,
    /// Every third request taken is lost, and the next request is returned in its place.
    Drops,
    /// As `Drops`, and still counted as queued.
    Loses,
    /// Every third request is handed out twice.
    Duplicates,
    /// The policy says that nobody is overtaken more than four times.
    ClaimsBound,
    /// The policy says that nobody waits longer than 1 ms and two accesses.
    ClaimsTime,
    /// A peek moves the head, as it seems to the elevator.
    PeekRemembers,
    /// A call of `take` while nothing is queued moves the head, as it seems to the elevator.
    AskedInVain,
    /// The policy shows the oldest request and takes the nearest.
    PeekDisagrees,
    /// The policy ignores that a request became part of another.
    IgnoresFused,
    /// The policy ignores that a request grew.
    IgnoresMerged,
    /// The policy forgets that a fused request has the older arrival.
    ForgetsPlace,
    /// The policy drains in order of address.
    DrainsByAddress,
    /// The policy keeps a request back when drained.
    DrainsPartly,
    /// The policy returns nothing, every third time, although something is queued.
    Shy,
    /// The policy keeps a withdrawn request queued.
    KeepsWithdrawn,
    /// A request queued for 2 ms is urgent, but `expires` says that no request ever becomes urgent.
    ForgetsExpiry,
    /// A request queued for 2 ms is urgent, but `expires` names a time one nanosecond later.
    ExpiresLate,
    /// Requests never become urgent, but `expires` says that they do.
    ExpiresInVain,
}

/// Time in the queue after which a [`Broken`] elevator with a fault of expiry takes a request for urgent.
const PATIENCE: Nanos = Nanos::from_millis(2);

/// Shortest seek first, with a fault.
#[derive(Debug)]
pub struct Broken {
    fault: Fault,
    right: Sstf,
    /// In order of arrival, for the faults that need it.
    queue: Vec<Request>,
    taken: u64,
    lost: usize,
    again: Option<Request>,
    looks: Cell<u64>,
}

impl Broken {
    /// An elevator with this fault, without requests.
    pub fn new(fault: Fault) -> Broken {
        Broken {
            fault,
            right: Sstf::new(),
            queue: Vec::new(),
            taken: 0,
            lost: 0,
            again: None,
            looks: Cell::new(0),
        }
    }

    /// Head as it seems to the elevator after the counted looks.
    fn moved(&self, head: &HeadState) -> HeadState {
        match self.looks.get() {
            0 => *head,
            looks => HeadState::at(Lba::new(head.lba.get() + looks * 997)),
        }
    }

    fn remove(&mut self, now: Time, head: &HeadState) -> Option<Request> {
        let request = match self.fault {
            Fault::AskedInVain => self.right.take(now, &self.moved(head)),
            _ => self.right.take(now, head),
        }?;
        self.queue.retain(|queued| queued.tag != request.tag);
        Some(request)
    }
}

impl Elevator for Broken {
    fn insert(&mut self, now: Time, request: Request) {
        self.queue.push(request);
        self.right.insert(now, request);
    }

    fn peek(&self, now: Time, head: &HeadState) -> Option<Candidate> {
        match self.fault {
            Fault::PeekRemembers => {
                self.looks.set(self.looks.get() + 1);
                self.right.peek(now, &self.moved(head))
            }
            Fault::AskedInVain => self.right.peek(now, &self.moved(head)),
            Fault::PeekDisagrees => {
                let request = *self.queue.first()?;
                Some(Candidate {
                    request,
                    urgent: false,
                })
            }
            Fault::ForgetsExpiry | Fault::ExpiresLate => {
                let candidate = self.right.peek(now, head)?;
                let urgent = now >= candidate.request.arrival + PATIENCE;
                Some(Candidate {
                    urgent,
                    ..candidate
                })
            }
            _ => self.right.peek(now, head),
        }
    }

    fn expires(&self, now: Time) -> Option<Time> {
        let candidate = self.right.peek(now, &HeadState::START)?;
        let expires = now.max(candidate.request.arrival + PATIENCE);
        match self.fault {
            Fault::ExpiresLate => Some(expires + Nanos::from_nanos(1)),
            Fault::ExpiresInVain => Some(expires),
            _ => None,
        }
    }

    fn take(&mut self, now: Time, head: &HeadState) -> Option<Request> {
        if let Some(again) = self.again.take() {
            return Some(again);
        }
        self.taken += 1;
        let third = self.taken.is_multiple_of(3);
        match self.fault {
            Fault::Drops if third => {
                self.remove(now, head);
            }
            Fault::Loses if third => {
                self.lost += usize::from(self.remove(now, head).is_some());
            }
            Fault::Shy if third => return None,
            Fault::AskedInVain if self.queue.is_empty() => self.looks.set(self.looks.get() + 1),
            _ => {}
        }
        let request = self.remove(now, head);
        if self.fault == Fault::Duplicates && third {
            self.again = request;
        }
        request
    }

    fn withdraw(&mut self, tag: Tag) -> Request {
        if self.fault == Fault::KeepsWithdrawn {
            return self.of(tag);
        }
        self.queue.retain(|queued| queued.tag != tag);
        self.right.withdraw(tag)
    }

    fn merged(&mut self, grown: &Request) {
        if self.fault == Fault::IgnoresMerged {
            return;
        }
        let old = self.queue.iter_mut().find(|old| old.tag == grown.tag);
        let old = old.expect("only what is queued grows");
        let arrival = match self.fault {
            Fault::ForgetsPlace => old.arrival,
            _ => grown.arrival,
        };
        *old = Request { arrival, ..*grown };
        self.right.merged(old);
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        match self.fault {
            Fault::IgnoresFused => {}
            Fault::ForgetsPlace => {
                let (kept, gone) = (self.of(kept), self.of(gone));
                let mut all = self.right.drain();
                all.retain(|request| request.tag != gone.tag);
                self.queue.retain(|request| request.tag != gone.tag);
                assert!(all.contains(&kept));
                for request in all {
                    self.right.insert(request.arrival, request);
                }
            }
            _ => {
                let arrival = self.of(kept).arrival.min(self.of(gone).arrival);
                self.queue.retain(|request| request.tag != gone);
                let place = self.queue.iter_mut().find(|request| request.tag == kept);
                place.expect("only what is queued is fused").arrival = arrival;
                self.right.fused(kept, gone);
            }
        }
    }

    fn overtake_max(&self) -> Option<usize> {
        (self.fault == Fault::ClaimsBound).then_some(4)
    }

    fn queued(&self) -> usize {
        self.right.queued() + self.lost
    }

    fn drain(&mut self) -> Vec<Request> {
        self.queue.clear();
        let mut all = self.right.drain();
        match self.fault {
            Fault::DrainsByAddress => all.sort_by_key(|request| request.extent.start),
            Fault::DrainsPartly => {
                all.pop();
            }
            _ => {}
        }
        all
    }
}

impl Broken {
    fn of(&self, tag: Tag) -> Request {
        let found = self.queue.iter().find(|request| request.tag == tag);
        *found.expect("only what is queued is asked for")
    }
}

impl BoundsWaits for Broken {
    fn wait_max(&self, _: &Request, _: usize) -> Option<WaitBound> {
        (self.fault == Fault::ClaimsTime).then_some(WaitBound {
            expire: Nanos::from_millis(1),
            accesses: 2,
        })
    }
}

/// How a [`BrokenWaiter`] waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFault {
    /// The policy always waits another millisecond.
    Forever,
    /// The policy waits until now.
    UntilNow,
    /// The policy says that nothing is queued while it waits.
    SaysEmpty,
    /// The policy waits for a request that was withdrawn, until that comes.
    ForWithdrawn,
    /// The policy hands out a request that was withdrawn while it held the disk for it.
    HandsOutWithdrawn,
}

/// A scheduler that waits in a wrong way: once it has served three requests, or once a request is
/// withdrawn.
#[derive(Debug)]
pub struct BrokenWaiter {
    fault: WaitFault,
    right: Sstf,
    served: usize,
    withdrawn: Option<Request>,
}

impl BrokenWaiter {
    /// A scheduler with this fault, without requests.
    pub fn new(fault: WaitFault) -> BrokenWaiter {
        BrokenWaiter {
            fault,
            right: Sstf::new(),
            served: 0,
            withdrawn: None,
        }
    }
}

impl Scheduler for BrokenWaiter {
    fn insert(&mut self, now: Time, request: Request) {
        self.right.insert(now, request);
    }

    fn dispatch(&mut self, now: Time) -> Dispatch {
        let later = Dispatch::IdleUntil(now + Nanos::from_millis(1));
        let waits = self.served >= 3 && self.right.queued() > 0;
        match self.fault {
            WaitFault::Forever if waits => return later,
            WaitFault::UntilNow if waits => return Dispatch::IdleUntil(now),
            WaitFault::SaysEmpty if waits => return Dispatch::Empty,
            WaitFault::ForWithdrawn if self.withdrawn.is_some() => return later,
            WaitFault::HandsOutWithdrawn if let Some(request) = self.withdrawn.take() => {
                return Dispatch::Request(request);
            }
            _ => {}
        }
        self.served += 1;
        match self.right.take(now, &HeadState::START) {
            Some(request) => Dispatch::Request(request),
            None => Dispatch::Empty,
        }
    }

    fn dispatch_forced(&mut self, now: Time) -> Dispatch {
        self.dispatch(now)
    }

    fn withdraw(&mut self, tag: Tag) -> Request {
        let request = self.right.withdraw(tag);
        self.withdrawn = Some(request);
        request
    }

    fn may_merge(&self, queued: Tag, new: &Request) -> bool {
        self.right.may_merge(queued, new)
    }

    fn merged(&mut self, grown: &Request) {
        self.right.merged(grown);
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        self.right.fused(kept, gone);
    }

    fn overtake_max(&self) -> Option<usize> {
        None
    }

    fn queued(&self) -> usize {
        self.right.queued()
    }

    fn drain(&mut self) -> Vec<Request> {
        self.right.drain()
    }
}
