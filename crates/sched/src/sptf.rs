//! Shortest positioning time first, and its seek-weighted variant.
//!
//! # Rule
//!
//! `sptf`: the request whose first sector the head reaches soonest goes next, seek and rotational
//! latency together, as the [`Positioning`] predicts them for a head that is free to move at the
//! moment of the decision. `sptf-swN`: among the requests whose positioning time is at most N % longer
//! than the shortest, the one with the shortest seek, since its rotational latency is the longest
//! that the percentage buys, and that is what freeblock scheduling fills. Ties go to the shorter
//! positioning time, then to the older request.
//!
//! Where a request is gets computed once, when it is inserted or grows at its front.
//!
//! # Bound
//!
//! None: a request far from a steady load is never the nearest.
//!
//! # Tunables
//!
//! None but the N of the name (percent; customary 60): raising it gains rotational latency and loses
//! throughput, up to shortest seek first; 0 breaks ties by seek and is `sptf` otherwise.
//!
//! # Source
//!
//! SPTF: Seltzer, Chen and Ousterhout, USENIX Winter 1990; Jacobson and Wilkes, HPL-CSP-91-7.
//! SPTF-SWn%: Lumb, Schindler and Ganger, "Freeblock Scheduling Outside of Disk Firmware", FAST 2002,
//! section 4, where SPTF-SW60% keeps over 80 % of the free bandwidth of SSTF and costs 5 to 6 %
//! against SPTF.
//!
//! # When not to use it
//!
//! Without a profile of the drive that predicts to a fraction of a millisecond (take `clook`); behind
//! a drive's own queue, which then makes the decision; where anybody waits.

use crate::policy::{Built, NumberInfo, Parts, PolicyInfo};
use crate::{Candidate, Elevator, LbaIndex, ListId, Op, Positioning, Request, Requests, Tag};
use alloc::vec::Vec;
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};

/// What is known of the plain one.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "sptf",
    aliases: &["satf"],
    idea: "what the head reaches soonest",
    bound: "none: can starve",
    source: "Seltzer, Chen, Ousterhout, USENIX 1990; Jacobson, Wilkes, HPL-CSP-91-7",
    avoid: "there is no accurate profile of the drive, or anybody waits for distant requests",
    needs_positioning: true,
    ..PolicyInfo::PLAIN
};

/// What is known of the seek-weighted one.
pub(crate) static SEEK_WEIGHTED_INFO: PolicyInfo = PolicyInfo {
    name: "sptf-sw",
    aliases: &[],
    number: Some(NumberInfo {
        min: 0,
        max: 10_000,
        example: 60,
        help: "percent by which positioning may exceed the shortest to save seek; higher leaves \
               more rotational latency for freeblock and less throughput; 0 only breaks ties",
    }),
    idea: "shortest seek among the soonest reached",
    source: "Lumb, Schindler, Ganger, FAST 2002, section 4",
    avoid: "nothing uses the rotational latency that it leaves",
    ..INFO
};

pub(crate) fn build<P: Positioning + 'static>(parts: Parts<'_, P>) -> Built {
    Built::elevator(Sptf::new(positioning(parts.positioning)))
}

pub(crate) fn build_seek_weighted<P: Positioning + 'static>(parts: Parts<'_, P>) -> Built {
    let percent = parts.options.number() as u32;
    let positioning = positioning(parts.positioning);
    Built::elevator(Sptf::seek_weighted(positioning, percent))
}

fn positioning<P>(given: Option<P>) -> P {
    given.expect("policies that need positions are built with some")
}

const ALL: ListId = ListId(0);

/// From how many requests on the search goes outward from the head and ends early. Below, looking at
/// every request is faster than keeping them in address order (measured: `benches/decide.rs`).
const OUTWARD_FROM: usize = 128;

/// Shortest positioning time first, plain or seek-weighted; see the [module](self).
#[derive(Clone, Debug)]
pub struct Sptf<P: Positioning> {
    positioning: P,
    /// The percentage of the seek-weighted variant.
    within_percent: Option<u32>,
    requests: Requests,
    by_lba: LbaIndex,
    /// What the search reads, densely packed, in no particular order.
    pending: Vec<Pending<P::Place>>,
    /// Where in `pending` a request is, by tag.
    slots: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Pending<Place> {
    place: Place,
    op: Op,
    tag: Tag,
}

/// The best request so far, and by what it is compared: seek or nothing, then positioning time.
#[derive(Clone, Copy, Debug)]
struct Best {
    tag: Tag,
    cost: (Nanos, Nanos),
}

impl<P: Positioning> Sptf<P> {
    /// Plain SPTF, without requests.
    pub fn new(positioning: P) -> Sptf<P> {
        Sptf {
            positioning,
            within_percent: None,
            requests: Requests::new(1),
            by_lba: LbaIndex::new(),
            pending: Vec::new(),
            slots: Vec::new(),
        }
    }

    /// The shortest seek among those that take at most `percent` percent longer than the shortest,
    /// without requests.
    pub fn seek_weighted(positioning: P, percent: u32) -> Sptf<P> {
        Sptf {
            within_percent: Some(percent),
            ..Sptf::new(positioning)
        }
    }

    /// What predicts for it.
    pub fn positioning(&self) -> &P {
        &self.positioning
    }

    fn choose(&self, now: Time, head: Lba) -> Option<Tag> {
        let from = self.place_of(head);
        let soonest = self.soonest(now, head, from)?;
        let Some(percent) = self.within_percent else {
            return Some(soonest.tag);
        };
        let limit = within(soonest.cost.1, percent);
        let seek = self.seek(from, soonest.tag);
        Some(self.nearest(
            now,
            head,
            from,
            limit,
            Best {
                cost: (seek, soonest.cost.1),
                ..soonest
            },
        ))
    }

    /// Where the head is if it has just passed the sector before `head`.
    fn place_of(&self, head: Lba) -> P::Place {
        const ONE: Sectors = Sectors::new(1);
        if head == Lba::ZERO {
            self.positioning.start(Extent::new(head, ONE))
        } else {
            self.positioning.end(Extent::new(head - ONE, ONE))
        }
    }

    fn seek(&self, from: P::Place, tag: Tag) -> Nanos {
        let to = self.of(tag);
        self.positioning.seek(from, to.place, to.op)
    }

    /// The request with the shortest positioning time; its cost has no seek.
    fn soonest(&self, now: Time, head: Lba, from: P::Place) -> Option<Best> {
        let mut best: Option<Best> = None;
        self.each(head, |pending, bound| {
            if let Some(lba) = bound
                && let Some(best) = best
                && self.positioning.seek_at_least(from, lba) > best.cost.1
            {
                return false;
            }
            let predicted = self
                .positioning
                .predict(now, from, pending.place, pending.op);
            self.improve(
                &mut best,
                pending.tag,
                (Nanos::ZERO, predicted.positioning()),
            );
            true
        });
        best
    }

    /// The request with the shortest seek of those within the limit, of which `best` is one.
    fn nearest(&self, now: Time, head: Lba, from: P::Place, limit: Nanos, best: Best) -> Tag {
        let mut best = Some(best);
        let shortest = |best: Option<Best>| best.map_or(Nanos::MAX, |best| best.cost.0);
        self.each(head, |pending, bound| {
            if let Some(lba) = bound
                && self.positioning.seek_at_least(from, lba) > shortest(best)
            {
                return false;
            }
            // The seek is the cheaper half of a prediction, and mostly settles it.
            let seek = self.positioning.seek(from, pending.place, pending.op);
            if seek <= shortest(best) {
                let predicted = self
                    .positioning
                    .predict(now, from, pending.place, pending.op);
                let time = predicted.positioning();
                if time <= limit {
                    self.improve(&mut best, pending.tag, (seek, time));
                }
            }
            true
        });
        best.expect("it was given").tag
    }

    /// Replaces the best by a request that costs less, or the same and is older.
    fn improve(&self, best: &mut Option<Best>, tag: Tag, cost: (Nanos, Nanos)) {
        let better = match best {
            None => true,
            Some(best) if cost == best.cost => self.requests.age(tag) < self.requests.age(best.tag),
            Some(best) => cost < best.cost,
        };
        if better {
            *best = Some(Best { tag, cost });
        }
    }

    /// Calls `look` for the pending requests. If there are many, outward from the head with the
    /// address, until it returns false for a side.
    fn each(&self, head: Lba, mut look: impl FnMut(&Pending<P::Place>, Option<Lba>) -> bool) {
        if self.pending.len() < OUTWARD_FROM {
            for pending in &self.pending {
                look(pending, None);
            }
            return;
        }
        let (mut up, mut down) = (self.by_lba.upward(head), self.by_lba.downward(head));
        let (mut upward, mut downward) = (true, true);
        while upward || downward {
            upward = upward
                && up
                    .next()
                    .is_some_and(|entry| look(self.of(entry.tag), Some(entry.lba)));
            downward = downward
                && down
                    .next()
                    .is_some_and(|entry| look(self.of(entry.tag), Some(entry.lba)));
        }
    }

    fn of(&self, tag: Tag) -> &Pending<P::Place> {
        &self.pending[self.slots[tag.index()] as usize]
    }

    fn remove(&mut self, tag: Tag) -> Request {
        let request = self.requests.remove(tag);
        self.forget(&request);
        request
    }

    /// Removes what the search knows of a request.
    fn forget(&mut self, request: &Request) {
        let there = self.by_lba.remove(request.extent.start, request.tag);
        assert!(there, "the index lost request {}", request.tag.0);
        let slot = self.slots[request.tag.index()];
        self.pending.swap_remove(slot as usize);
        if let Some(moved) = self.pending.get(slot as usize) {
            self.slots[moved.tag.index()] = slot;
        }
    }
}

/// The longest positioning time within so many percent of the shortest.
fn within(shortest: Nanos, percent: u32) -> Nanos {
    let limit = u128::from(shortest.as_nanos()) * (100 + u128::from(percent)) / 100;
    Nanos::from_nanos(u64::try_from(limit).unwrap_or(u64::MAX))
}

impl<P: Positioning> Elevator for Sptf<P> {
    fn insert(&mut self, _: Time, request: Request) {
        let (tag, op, extent) = (request.tag, request.op, request.extent);
        self.requests.insert(ALL, request);
        self.by_lba.insert(extent.start, tag);
        if tag.index() >= self.slots.len() {
            self.slots.resize(tag.index() + 1, 0);
        }
        self.slots[tag.index()] = self.pending.len() as u32;
        let place = self.positioning.start(extent);
        self.pending.push(Pending { place, op, tag });
    }

    fn peek(&self, now: Time, head: Lba) -> Option<Candidate> {
        let request = *self.requests.get(self.choose(now, head)?);
        Some(Candidate {
            request,
            urgent: false,
        })
    }

    fn take(&mut self, now: Time, head: Lba) -> Option<Request> {
        let tag = self.choose(now, head)?;
        Some(self.remove(tag))
    }

    fn merged(&mut self, queued: Tag, extent: Extent) {
        let old = self.requests.set_extent(queued, extent);
        if old.start != extent.start {
            self.by_lba.remove(old.start, queued);
            self.by_lba.insert(extent.start, queued);
            let slot = self.slots[queued.index()] as usize;
            self.pending[slot].place = self.positioning.start(extent);
        }
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        let gone = self.requests.fuse(kept, gone);
        self.forget(&gone);
    }

    fn overtake_max(&self) -> Option<usize> {
        None
    }

    fn queued(&self) -> usize {
        self.requests.len()
    }

    fn drain(&mut self) -> Vec<Request> {
        self.by_lba.clear();
        self.pending.clear();
        self.requests.drain()
    }
}
