//! A simple model of a scheduler's queue and of the engine's merging.

use headtime_sched::{Op, Request, Tag, WaitBound};
use headtime_units::{Extent, Time};
use std::collections::BTreeMap;

/// The most sectors of a merged request.
const MERGED_SECTORS_MAX: u64 = 64;

/// Promise of the policy to a request at its insertion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promise {
    /// Time of the insertion.
    pub since: Time,
    /// The longest wait, if there is a bound.
    pub bound: Option<WaitBound>,
}

/// A queued request.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    /// The request as the scheduler must hand it out.
    pub request: Request,
    /// The arrivals in it, by number.
    pub parts: Vec<usize>,
    /// Number of requests that were inserted before this one, or before the part whose place it has.
    pub turn: u64,
    /// Number of younger requests that were handed out ahead of this one.
    pub overtaken: usize,
    /// The promise in time, and the time from which it runs.
    pub promise: Promise,
}

impl Queued {
    /// Sort key of age: older requests have smaller keys.
    fn age(&self) -> (Time, u64) {
        (self.request.arrival, self.turn)
    }

    pub fn is_younger_than(&self, other: &Queued) -> bool {
        self.age() > other.age()
    }
}

/// How two requests would become one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// A new request joins a queued request, in front of it or after it.
    Join { front: bool },
    /// Two queued requests become one, after the first has grown.
    Fuse,
}

/// Result of merging a request.
pub(crate) struct Merge {
    /// The queued request that has grown, in its present state.
    pub grown: Request,
    /// The queued request that became part of the grown request.
    pub gone: Option<Tag>,
}

/// Queued requests by tag.
#[derive(Debug, Default)]
pub(crate) struct Model {
    queued: BTreeMap<Tag, Queued>,
}

impl Model {
    pub fn len(&self) -> usize {
        self.queued.len()
    }

    pub fn insert(&mut self, queued: Queued) {
        let before = self.queued.insert(queued.request.tag, queued);
        assert!(before.is_none(), "the checker gave a tag twice");
    }

    pub fn remove(&mut self, tag: Tag) -> Option<Queued> {
        self.queued.remove(&tag)
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Queued> {
        self.queued.values_mut()
    }

    pub fn tags(&self) -> impl Iterator<Item = Tag> {
        self.queued.keys().copied()
    }

    /// Number of queued requests with the same direction.
    pub fn ahead_of(&self, op: Op) -> usize {
        let same = |queued: &&Queued| queued.request.op.is_read() == op.is_read();
        self.queued.values().filter(same).count()
    }

    /// All requests, oldest first.
    pub fn by_age(&self) -> Vec<Request> {
        let mut all: Vec<&Queued> = self.queued.values().collect();
        all.sort_by_key(|queued| queued.age());
        all.into_iter().map(|queued| queued.request).collect()
    }

    /// Merges a new request, or one that has just grown, with a queued request that it touches. As in the engine,
    /// back merges precede front merges, the oldest request comes first, and the policy may veto.
    pub fn merge(
        &mut self,
        new: &Request,
        part: usize,
        may_merge: impl Fn(&Request, &Request, Way) -> bool,
    ) -> Option<Merge> {
        if !matches!(new.op, Op::Read | Op::Write) {
            return None;
        }
        let touching = |back: bool| {
            let fits = |queued: &&Queued| {
                let request = &queued.request;
                touches(request, new, back)
                    && alike(request, new)
                    && may_merge(request, new, Way::Join { front: !back })
            };
            let found = self.queued.values().filter(fits);
            found
                .min_by_key(|queued| queued.turn)
                .map(|queued| (queued.request.tag, back))
        };
        let (kept, back) = touching(true).or_else(|| touching(false))?;
        let grown = self.queued.get_mut(&kept).expect("found there");
        grown.parts.push(part);
        grown.request.extent = joined(grown.request.extent, new.extent);
        if new.arrival < grown.request.arrival {
            // The older part's place counts. No request has overtaken this place since the part came.
            grown.request.arrival = new.arrival;
            grown.overtaken = 0;
        }
        let grown = grown.request;
        let fits = |queued: &&Queued| {
            let other = &queued.request;
            other.tag != kept
                && touches(&grown, other, back)
                && alike(&grown, other)
                && may_merge(&grown, other, Way::Fuse)
        };
        let gone = self
            .queued
            .values()
            .filter(fits)
            .min_by_key(|queued| queued.turn);
        let gone = gone.map(|queued| queued.request.tag);
        if let Some(gone) = gone {
            self.fuse(kept, gone);
        }
        Some(Merge {
            grown: self.queued[&kept].request,
            gone,
        })
    }

    fn fuse(&mut self, kept: Tag, gone: Tag) {
        let gone = self.queued.remove(&gone).expect("found there");
        let kept = self.queued.get_mut(&kept).expect("found there");
        kept.request.extent = joined(kept.request.extent, gone.request.extent);
        kept.parts.extend(&gone.parts);
        if kept.is_younger_than(&gone) {
            // The older place counts, together with its number of overtakings and its promise.
            kept.request.arrival = gone.request.arrival;
            kept.turn = gone.turn;
            kept.overtaken = gone.overtaken;
            kept.promise = gone.promise;
        }
    }
}

/// Returns true if `new` continues `queued`, at its back or at its front.
fn touches(queued: &Request, new: &Request, back: bool) -> bool {
    if back {
        queued.extent.is_followed_by(new.extent)
    } else {
        new.extent.is_followed_by(queued.extent)
    }
}

fn alike(one: &Request, other: &Request) -> bool {
    one.op == other.op
        && one.flags == other.flags
        && one.class == other.class
        && one.extent.len.get() + other.extent.len.get() <= MERGED_SECTORS_MAX
}

fn joined(one: Extent, other: Extent) -> Extent {
    Extent::new(one.start.min(other.start), one.len + other.len)
}
