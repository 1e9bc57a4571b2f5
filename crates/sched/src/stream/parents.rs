//! The queue of requests that may yet have a child.

use super::rule::StreamRule;
use crate::Tag;
use crate::jiffies::Hz;
use alloc::vec::Vec;
use headtime_units::{Lba, Nanos, Time};

/// A request that was handed out and has no child so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parent {
    /// Position in the order of handing out.
    pub turn: u64,
    /// Tag of the request, valid while the request is in the drive.
    pub tag: Tag,
    /// End of the request, where the head is left.
    pub end: Lba,
    /// Time at which the request counts as completed. [`Time::NEVER`] until this is known, so that
    /// no time has passed since.
    pub since: Time,
    /// Service time of the request that the elevator would have served instead of the child. `None`
    /// while this request is the tail and in the drive.
    pub limit: Option<Nanos>,
    /// Size of the stream up to this request.
    pub size: u64,
    /// Number of the stream.
    pub stream: u64,
    /// End of the time in which a child can come, computed by [`Parents`]. [`Time::NEVER`] while
    /// the start of this time is not known.
    pub deadline: Time,
}

impl Parent {
    /// Computes the deadline. A child takes at least `least` itself. A child that comes in the last
    /// part of the limit therefore cannot satisfy the inequality at any address. With a timer that
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

/// Requests that may have a child, in order of deadline. The earliest deadline is last.
#[derive(Clone, Debug)]
pub(crate) struct Parents {
    rule: StreamRule,
    hz: Option<Hz>,
    all: Vec<Parent>,
}

/// Largest number of requests that may have a child. Requests in the drive are among them, and a
/// drive takes 256 at most. If this number is exceeded, the request with the earliest deadline is
/// removed.
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

    /// Returns true if the stream of a request is established.
    pub fn established(&self, parent: &Parent) -> bool {
        self.rule.is_established(parent.size)
    }

    /// Adds the request that was handed out last.
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

    /// Changes a parent and recomputes its deadline.
    pub fn change(&mut self, at: usize, change: impl FnOnce(&mut Parent)) {
        let mut parent = self.all.remove(at);
        change(&mut parent);
        parent.schedule(self.rule.least(), self.hz);
        self.place(parent);
    }

    /// Gives parents with a past deadline their second chance, or removes them.
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

    /// Returns the nearest of the possible parents of a request that comes at `start` now. `limit` returns the tail's
    /// limit while the tail has none. Among equally near parents, the one with the longer stream is taken, then the
    /// later one.
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

    /// Grants a stream beyond the threshold more time once. The stream then has to earn the next
    /// chance again.
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
