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
//! section 4.2, where SPTF-SW60% keeps over 80 % of the free bandwidth of SSTF and costs 5 to 6 %
//! against SPTF.
//!
//! # When not to use it
//!
//! Without a profile of the drive that predicts to a fraction of a millisecond (take `clook`); behind
//! a drive's own queue, which then makes the decision; where anybody waits.

use crate::policy::{Built, NumberInfo, Parts, PolicyInfo};
use crate::sorted::Sorted;
use crate::{Candidate, Elevator, Entry, ListId, Op, Positioning, Request, Tag};
use alloc::vec::Vec;
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};

/// What is known of the plain one.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "sptf",
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
    number: Some(NumberInfo {
        min: 0,
        max: 10_000,
        example: 60,
        help: "percent by which positioning may exceed the shortest to save seek; higher leaves \
               more rotational latency for freeblock and less throughput; 0 only breaks ties",
    }),
    idea: "shortest seek among the soonest reached",
    source: "Lumb, Schindler, Ganger, FAST 2002, section 4.2",
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

/// Shortest positioning time first, plain or seek-weighted; see the [module](self).
#[derive(Clone, Debug)]
pub struct Sptf<P: Positioning> {
    positioning: P,
    /// The percentage of the seek-weighted variant.
    within_percent: Option<u32>,
    sorted: Sorted,
    /// Where queued requests are, and what they do, by tag.
    targets: Vec<Option<Target<P::Place>>>,
}

/// What a prediction needs of a request.
#[derive(Clone, Copy, Debug)]
struct Target<Place> {
    place: Place,
    op: Op,
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
            sorted: Sorted::new(1),
            targets: Vec::new(),
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
        let to = self.target(tag);
        self.positioning.seek(from, to.place, to.op)
    }

    fn predict(&self, now: Time, from: P::Place, tag: Tag) -> Nanos {
        let to = self.target(tag);
        let predicted = self.positioning.predict(now, from, to.place, to.op);
        predicted.positioning()
    }

    /// The request with the shortest positioning time; its cost has no seek.
    fn soonest(&self, now: Time, head: Lba, from: P::Place) -> Option<Best> {
        let mut best: Option<Best> = None;
        self.outward(head, |entry| {
            if let Some(best) = best
                && self.positioning.seek_at_least(from, entry.lba) > best.cost.1
            {
                return false;
            }
            let time = self.predict(now, from, entry.tag);
            self.improve(&mut best, entry.tag, (Nanos::ZERO, time));
            true
        });
        best
    }

    /// The request with the shortest seek of those within the limit, of which `best` is one.
    fn nearest(&self, now: Time, head: Lba, from: P::Place, limit: Nanos, best: Best) -> Tag {
        let mut best = Some(best);
        let shortest = |best: Option<Best>| best.map_or(Nanos::MAX, |best| best.cost.0);
        self.outward(head, |entry| {
            if self.positioning.seek_at_least(from, entry.lba) > shortest(best) {
                return false;
            }
            // The seek is the cheaper half of a prediction, and mostly settles it.
            let seek = self.seek(from, entry.tag);
            if seek <= shortest(best) {
                let time = self.predict(now, from, entry.tag);
                if time <= limit {
                    self.improve(&mut best, entry.tag, (seek, time));
                }
            }
            true
        });
        best.expect("it was given").tag
    }

    /// Replaces the best by a request that costs less, or the same and is older.
    fn improve(&self, best: &mut Option<Best>, tag: Tag, cost: (Nanos, Nanos)) {
        let requests = self.sorted.requests();
        let better = match best {
            None => true,
            Some(best) if cost == best.cost => requests.age(tag) < requests.age(best.tag),
            Some(best) => cost < best.cost,
        };
        if better {
            *best = Some(Best { tag, cost });
        }
    }

    /// Calls `look` for the queued requests, outward from the head to both sides in turn, until it
    /// returns false for a side. It pays to end early with as few as 16 requests, and to look at one
    /// in address order costs no more than in any other (measured: `benches/decide.rs`).
    fn outward(&self, head: Lba, mut look: impl FnMut(Entry) -> bool) {
        let index = self.sorted.by_lba(ALL);
        let (mut up, mut down) = (index.upward(head), index.downward(head));
        let (mut upward, mut downward) = (true, true);
        while upward || downward {
            upward = upward && up.next().is_some_and(&mut look);
            downward = downward && down.next().is_some_and(&mut look);
        }
    }

    fn target(&self, tag: Tag) -> &Target<P::Place> {
        let target = self.targets[tag.index()].as_ref();
        target.expect("located when it was inserted")
    }

    fn locate(&mut self, tag: Tag, op: Op, extent: Extent) {
        let place = self.positioning.start(extent);
        self.targets[tag.index()] = Some(Target { place, op });
    }
}

/// The longest positioning time within so many percent of the shortest.
fn within(shortest: Nanos, percent: u32) -> Nanos {
    let limit = u128::from(shortest.as_nanos()) * (100 + u128::from(percent)) / 100;
    Nanos::from_nanos(u64::try_from(limit).unwrap_or(u64::MAX))
}

impl<P: Positioning> Elevator for Sptf<P> {
    fn insert(&mut self, _: Time, request: Request) {
        let Request {
            tag, op, extent, ..
        } = request;
        self.sorted.insert(ALL, request);
        if tag.index() >= self.targets.len() {
            self.targets.resize(tag.index() + 1, None);
        }
        self.locate(tag, op, extent);
    }

    fn peek(&self, now: Time, head: Lba) -> Option<Candidate> {
        let request = *self.sorted.requests().get(self.choose(now, head)?);
        Some(Candidate {
            request,
            urgent: false,
        })
    }

    fn take(&mut self, now: Time, head: Lba) -> Option<Request> {
        let tag = self.choose(now, head)?;
        Some(self.sorted.remove(tag))
    }

    fn merged(&mut self, queued: Tag, extent: Extent) {
        if self.sorted.merged(queued, extent) {
            let op = self.sorted.requests().get(queued).op;
            self.locate(queued, op, extent);
        }
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        self.sorted.fused(kept, gone);
    }

    fn overtake_max(&self) -> Option<usize> {
        None
    }

    fn queued(&self) -> usize {
        self.sorted.requests().len()
    }

    fn drain(&mut self) -> Vec<Request> {
        self.sorted.drain()
    }
}
