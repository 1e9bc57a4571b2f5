//! The queue of requests that may yet have a child.

use super::rule::StreamRule;
use crate::Tag;
use crate::jiffies::Hz;
use alloc::vec::Vec;
use headtime_units::{Lba, Nanos, Time};

/// A request that was handed out and has no child so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parent {
    /// Its turn among those handed out.
    pub turn: u64,
    /// Its name, for as long as it is in the drive.
    pub tag: Tag,
    /// Behind its last sector, where the head is left.
    pub end: Lba,
    /// When it counts as completed; [`Time::NEVER`] until that is known, so that nothing has passed
    /// since.
    pub since: Time,
    /// The service time of what the elevator would have served instead of its child; not known
    /// while it is the tail and in the drive.
    pub limit: Option<Nanos>,
    /// How many requests its stream has, up to it.
    pub size: u64,
    /// Which stream that is.
    pub stream: u64,
    /// The end of the time in which a child can come, which [`Parents`] works out;
    /// [`Time::NEVER`] while it is not known when that begins.
    pub deadline: Time,
}

impl Parent {
    /// Works out the deadline. A request takes at least `least` itself. So one that comes in the
    /// last part of the limit cannot satisfy the inequality, wherever it is. With a timer that
    /// ticks, the time ends when the timer fires.
    fn schedule(&mut self, least: Nanos, hz: Option<Hz>) {
        self.deadline = match (self.limit, hz) {
            (Some(limit), Some(hz)) if self.since < Time::NEVER => {
                hz.fires(self.since, hz.ticks(limit.saturating_sub(least)))
            }
            (Some(limit), _) => self.since.saturating_add(limit.saturating_sub(least)),
            (None, _) => Time::NEVER,
        };
    }
}

/// Requests that may have a child, in order of deadline, the next one last.
#[derive(Clone, Debug)]
pub(crate) struct Parents {
    rule: StreamRule,
    hz: Option<Hz>,
    all: Vec<Parent>,
}

/// The most requests that may have a child. Those in the drive are among them, and a drive takes
/// 256 at most. If there are more, the one with the nearest deadline goes.
pub(crate) const PARENTS_MAX: usize = 256;

impl Parents {
    pub fn new(rule: StreamRule, hz: Option<Hz>) -> Parents {
        Parents {
            rule,
            hz,
            all: Vec::with_capacity(PARENTS_MAX),
        }
    }

    pub fn clear(&mut self) {
        self.all.clear();
    }

    pub fn rule(&self) -> &StreamRule {
        &self.rule
    }

    /// Returns true if the stream of a request is waited for.
    pub fn established(&self, parent: &Parent) -> bool {
        self.rule.is_established(parent.size)
    }

    /// Adds one that was handed out last.
    pub fn push(&mut self, mut parent: Parent) {
        if self.all.len() == PARENTS_MAX {
            self.all.pop();
        }
        parent.schedule(self.rule.least(), self.hz);
        self.place(parent);
    }

    /// Returns the place of this turn's parent.
    pub fn by_turn(&self, turn: u64) -> Option<usize> {
        self.all.iter().position(|parent| parent.turn == turn)
    }

    /// Returns the place of the parent with this tag that is still in the drive.
    pub fn in_flight(&self, tag: Tag) -> Option<usize> {
        let waits = |parent: &Parent| parent.since == Time::NEVER && parent.tag == tag;
        self.all.iter().position(waits)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Parent> {
        self.all.iter()
    }

    pub fn get(&self, at: usize) -> &Parent {
        &self.all[at]
    }

    pub fn remove(&mut self, at: usize) -> Parent {
        self.all.remove(at)
    }

    /// Changes one, whose deadline follows from the rest.
    pub fn change(&mut self, at: usize, change: impl FnOnce(&mut Parent)) {
        let mut parent = self.all.remove(at);
        change(&mut parent);
        parent.schedule(self.rule.least(), self.hz);
        self.place(parent);
    }

    /// Gives those whose time has passed their second chance, or lets them go.
    pub fn expire(&mut self, now: Time) {
        while let Some(first) = self.all.last()
            && first.deadline <= now
        {
            let mut parent = self.all.pop().expect("just looked");
            if self.second_chance(&mut parent) {
                self.place(parent);
            }
        }
    }

    /// The nearest of the possible parents of a request that comes at `start` now. `limit` stands
    /// for the tail's while it has none. Of two that are as near, the one with the longer stream is
    /// taken, then the later one.
    pub fn nearest(
        &self,
        now: Time,
        start: Lba,
        limit: impl Fn(&Parent) -> Nanos,
    ) -> Option<usize> {
        let mut nearest: Option<(Nanos, usize)> = None;
        for (at, parent) in self.all.iter().enumerate() {
            let service = self.rule.service(parent.end, start);
            let nearer = match nearest {
                None => true,
                Some((other, at)) if service == other => {
                    let other = &self.all[at];
                    (parent.size, parent.turn) > (other.size, other.turn)
                }
                Some((other, _)) => service < other,
            };
            if nearer {
                let elapsed = now.saturating_since(parent.since);
                let limit = parent.limit.unwrap_or_else(|| limit(parent));
                if elapsed.saturating_add(service) < limit {
                    nearest = Some((service, at));
                }
            }
        }
        nearest.map(|(_, at)| at)
    }

    /// Gives a stream that is longer than it need be more time once. The stream has to earn that
    /// again.
    fn second_chance(&self, parent: &mut Parent) -> bool {
        let Some(limit) = parent.limit else {
            return true;
        };
        let Some(longer) = self.rule.second_chance(parent.size, limit) else {
            return false;
        };
        parent.limit = Some(longer);
        parent.size = self.rule.threshold();
        parent.schedule(self.rule.least(), self.hz);
        true
    }

    fn place(&mut self, parent: Parent) {
        let key = |parent: &Parent| (parent.deadline, parent.turn);
        let later = self.all.iter().rposition(|other| key(other) > key(&parent));
        self.all.insert(later.map_or(0, |at| at + 1), parent);
    }
}
