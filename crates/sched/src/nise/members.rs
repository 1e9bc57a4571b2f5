//! Several schedulers with the same requests. One of the schedulers is active.

use crate::{Dispatch, Foretold, HeadState, Partners, Request, Scheduler, Tag, Track, WaitStats};
use alloc::boxed::Box;
use alloc::vec::Vec;
use headtime_units::Time;

/// A scheduler, and the number of commands that it wants in the drive.
pub(super) struct Member {
    pub scheduler: Box<dyn Scheduler>,
    pub depth: u32,
}

/// Schedulers that each have every queued request. A request that one hands out counts as
/// handed out for all.
///
/// Two requests merge if all schedulers agree.
pub(super) struct Members {
    all: Vec<Member>,
}

impl Members {
    /// # Panics
    ///
    /// If `all` is empty.
    pub fn new(all: Vec<Member>) -> Members {
        assert!(!all.is_empty(), "there is nothing to choose among");
        Members { all }
    }

    pub fn count(&self) -> usize {
        self.all.len()
    }

    pub fn depth(&self, active: usize) -> u32 {
        self.all[active].depth
    }

    fn each(&mut self) -> impl Iterator<Item = &mut Box<dyn Scheduler>> {
        self.all.iter_mut().map(|member| &mut member.scheduler)
    }

    fn first(&self) -> &dyn Scheduler {
        &*self.all[0].scheduler
    }

    /// Returns one tracker for all schedulers, since all have the same assumed profile.
    pub fn tracker(&mut self) -> Option<Box<dyn Track>> {
        let trackers: Vec<_> = self.each().filter_map(|one| one.tracker()).collect();
        trackers.into_iter().next()
    }

    pub fn head_is(&mut self, head: &HeadState) {
        self.each().for_each(|one| one.head_is(head));
    }

    pub fn insert(&mut self, now: Time, request: Request) {
        self.each().for_each(|one| one.insert(now, request));
    }

    /// Returns the choice of the active scheduler.
    pub fn dispatch(&mut self, now: Time, active: usize, forced: bool) -> Dispatch {
        let empty = self.queued() == 0;
        let scheduler = &mut self.all[active].scheduler;
        let answer = match forced {
            true => scheduler.dispatch_forced(now),
            false => scheduler.dispatch(now),
        };
        for (at, member) in self.all.iter_mut().enumerate() {
            if at == active {
                continue;
            }
            match answer {
                Dispatch::Request(request) => {
                    let same = member.scheduler.taken_by_another(now, request.tag);
                    debug_assert_eq!(same.extent, request.extent);
                }
                // The others learn that nothing is left, and end their waits.
                _ if empty => {
                    member.scheduler.dispatch(now);
                }
                _ => {}
            }
        }
        answer
    }

    pub fn dispatched(&mut self, now: Time, request: &Request) {
        self.each().for_each(|one| one.dispatched(now, request));
    }

    pub fn completed(&mut self, now: Time, request: &Request) {
        self.each().for_each(|one| one.completed(now, request));
    }

    pub fn foretold(&mut self, now: Time, request: &Foretold) {
        self.each().for_each(|one| one.foretold(now, request));
    }

    pub fn may_merge(&self, queued: Tag, new: &Request) -> bool {
        let mut all = self.all.iter();
        all.all(|member| member.scheduler.may_merge(queued, new))
    }

    /// Mixes all keys. If two schedulers' keys happen to mix to the same value, `may_merge`
    /// decides.
    pub fn merge_key(&self, request: &Request) -> u64 {
        let keys = self.all.iter().map(|m| m.scheduler.merge_key(request));
        keys.fold(0, |mixed: u64, key| {
            mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(key)
        })
    }

    pub fn partners(&self, request: &Request, front: bool) -> Partners {
        let each = self.all.iter();
        let each = each.map(|member| member.scheduler.partners(request, front));
        each.fold(Partners::Any, |all, one| match (all, one) {
            (Partners::Any, one) => one,
            (all, Partners::Any) => all,
            (Partners::Only(tags), one) => {
                Partners::Only(tags.map(|tag| tag.filter(|tag| one.include(*tag))))
            }
        })
    }

    pub fn merged(&mut self, grown: &Request) {
        self.each().for_each(|one| one.merged(grown));
    }

    pub fn fused(&mut self, kept: Tag, gone: Tag) {
        self.each().for_each(|one| one.fused(kept, gone));
    }

    pub fn withdraw(&mut self, tag: Tag) -> Request {
        let mut each = self.each();
        let first = each.next().expect("there is one");
        let request = first.withdraw(tag);
        each.for_each(|one| {
            one.withdraw(tag);
        });
        request
    }

    pub fn drain(&mut self) -> Vec<Request> {
        let mut each = self.each();
        let first = each.next().expect("there is one");
        let requests = first.drain();
        each.for_each(|one| {
            one.drain();
        });
        requests
    }

    pub fn queued(&self) -> usize {
        self.first().queued()
    }

    pub fn waits(&self) -> WaitStats {
        let each = self.all.iter();
        each.fold(WaitStats::default(), |mut sum, member| {
            sum += member.scheduler.waits();
            sum
        })
    }
}
