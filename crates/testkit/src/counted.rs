//! A scheduler that counts how it is used.

use headtime_sched::{Dispatch, Foretold, Partners, Request, Scheduler, Tag, WaitStats};
use headtime_units::Time;
use std::cell::Cell;

/// A scheduler with counters. They count the questions whether two requests may be merged, and the questions for the
/// next request.
#[derive(Debug)]
pub struct Counted<S> {
    scheduler: S,
    asked: Cell<u64>,
    dispatches: u64,
}

impl<S> Counted<S> {
    /// A scheduler without calls so far.
    pub fn new(scheduler: S) -> Counted<S> {
        Counted {
            scheduler,
            asked: Cell::new(0),
            dispatches: 0,
        }
    }

    /// The calls of [`Scheduler::may_merge`] so far.
    pub fn asked(&self) -> u64 {
        self.asked.get()
    }

    /// The calls of [`Scheduler::dispatch`] and [`Scheduler::dispatch_forced`] so far.
    pub fn dispatches(&self) -> u64 {
        self.dispatches
    }
}

impl<S: Scheduler> Scheduler for Counted<S> {
    fn insert(&mut self, now: Time, request: Request) {
        self.scheduler.insert(now, request);
    }

    fn dispatch(&mut self, now: Time) -> Dispatch {
        self.dispatches += 1;
        self.scheduler.dispatch(now)
    }

    fn dispatch_forced(&mut self, now: Time) -> Dispatch {
        self.dispatches += 1;
        self.scheduler.dispatch_forced(now)
    }

    fn dispatched(&mut self, now: Time, request: &Request) {
        self.scheduler.dispatched(now, request);
    }

    fn completed(&mut self, now: Time, request: &Request) {
        self.scheduler.completed(now, request);
    }

    fn foretold(&mut self, now: Time, request: &Foretold) {
        self.scheduler.foretold(now, request);
    }

    fn may_merge(&self, queued: Tag, new: &Request) -> bool {
        self.asked.set(self.asked.get() + 1);
        self.scheduler.may_merge(queued, new)
    }

    fn merge_key(&self, request: &Request) -> u64 {
        self.scheduler.merge_key(request)
    }

    fn partners(&self, request: &Request, front: bool) -> Partners {
        self.scheduler.partners(request, front)
    }

    fn merged(&mut self, grown: &Request) {
        self.scheduler.merged(grown);
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        self.scheduler.fused(kept, gone);
    }

    fn withdraw(&mut self, tag: Tag) -> Request {
        self.scheduler.withdraw(tag)
    }

    fn overtake_max(&self) -> Option<usize> {
        self.scheduler.overtake_max()
    }

    fn queued(&self) -> usize {
        self.scheduler.queued()
    }

    fn drain(&mut self) -> Vec<Request> {
        self.scheduler.drain()
    }

    fn never_waits(&self) -> bool {
        self.scheduler.never_waits()
    }

    fn waits(&self) -> WaitStats {
        self.scheduler.waits()
    }
}
