//! Shortest positioning time first, its aged variant, and its seek-weighted variant.
//!
//! # Rule
//!
//! `sptf`: the request whose first sector the head reaches soonest goes next. The [`Positioning`] predicts seek and
//! rotational latency together, behind the commands in the drive. A [`Tracker`] follows the head by the same model, and
//! corrects the platter's angle and period at each completion. If two times are equal, the older request goes.
//!
//! `sptf` with an `age_weight` W above 0 (aged SPTF): the request with the least positioning time minus W times its
//! wait so far goes next. If two values are equal, the older request goes.
//!
//! `sptf-swN` (seek-weighted): of the requests whose positioning time is at most N % longer than the shortest, the one
//! with the shortest seek goes next. Its rotational latency is the longest within this limit, and freeblock scheduling
//! fills the latency. Of equal seeks the shorter positioning time goes, then the older request.
//!
//! `sptf` with `runs`, the default, has two more rules for requests that the drive's buffer serves in a row. `runs=false` leaves both out,
//! as the sources do, whose drives have no buffer.
//!
//! - A request that continues the request before has a positioning time of 0 and goes next. Such a run ends at 2,048 sectors, but not
//!   before four requests. Without a buffer such a read comes a moment too late and waits a turn.
//! - A request waits while an older request that ends at its start is queued. Else a sequence breaks into pieces, since each next request
//!   has just passed, and the drive reads ahead for none of them.
//!
//! With a buffer, four sequential readers have 1.0 to 1.8 times the throughput of `runs=false`. The gain grows with queued requests and
//! their size.
//!
//! A request is located once, when it is inserted or grows. Of several requests for the same sectors only the oldest is
//! considered, since no variant takes another before it.
//!
//! # Bound
//!
//! No bound without an `age_weight`: a request far from a steady load is never the nearest.
//!
//! With W, let P be the longest positioning time that is ever predicted, about a seek over the whole disk and a turn. A
//! request that goes before another gains at most P, so it came at most P / W later. From P / W after its arrival on,
//! no new arrival passes a request. It then waits only for the requests that are queued at that moment and for the
//! access under way:
//!
//! ```text
//! wait <= P / W + (requests then queued) x (slowest access)
//! ```
//!
//! The number of queued requests depends on the clients. So neither a count of overtakings nor a
//! [`WaitBound`](crate::WaitBound) follows, and `overtake_max` is `None`. On a disk with P = 17 ms, W = 0.03 closes the
//! window after 0.6 s. A queue of 10 requests turns over long before, and measured waits there are far shorter.
//!
//! # Tunables
//!
//! - `age_weight` of `sptf` (ms of positioning per ms waited, to six decimals; default 0): how much a
//!   waiting request gains. Higher shortens the longest waits and costs throughput, up to first come,
//!   first served. 0 is plain SPTF. With ten requests pending on a 10,000 rpm drive of 1999, 0.03 cuts
//!   the longest response to well under half for 1 % of the throughput, and 0.1 to a quarter for 12 %
//!   (`docs/experiments.md`).
//! - The N of `sptf-swN` (percent; customary 60): higher gains rotational latency and loses throughput,
//!   up to shortest seek first. 0 is `sptf` that breaks ties by seek.
//! - `runs` of `sptf` (true, false; default true): true serves sequential requests at the speed of the medium, and other requests wait
//!   behind a run. false goes by position alone, as the sources do.
//!
//! # Source
//!
//! SPTF: Seltzer, Chen and Ousterhout, USENIX Winter 1990; Jacobson and Wilkes, HPL-CSP-91-7, who
//! also subtract a weighted wait. DiskSim has the same rule with a weight a thousand times ours: its
//! 30 is our 0.03.
//! SPTF-SWn%: Lumb, Schindler and Ganger, "Freeblock Scheduling Outside of Disk Firmware", FAST 2002,
//! section 4.2, where SPTF-SW60% keeps over 80 % of the free bandwidth of SSTF and costs 5 to 6 %
//! against SPTF.
//!
//! # When not to use it
//!
//! Without a profile that predicts the drive to a fraction of a millisecond: use `clook`. Behind a drive's own queue,
//! which then decides. Without an `age_weight`, wherever a client waits.

mod oldest;
mod run;

use self::oldest::Oldest;
use self::run::Run;
use crate::policy::{Built, Needs, OptionInfo, Parts, PolicyInfo};
use crate::{
    Candidate, Elevator, Entry, HeadAfter, HeadState, ListId, Op, Positioning, Request, Requests,
    Tag, Track, Tracker,
};
use alloc::boxed::Box;
use alloc::vec::Vec;
use headtime_units::{Extent, Lba, Millionths, Nanos, Time};

/// Far above any use. With this weight, an arrival 20 us earlier outweighs any positioning time.
const AGE_WEIGHT_MAX: Millionths = Millionths(1_000 * Millionths::ONE.0);

/// The record of plain and aged SPTF.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "sptf",
    idea: "request with the shortest positioning time",
    bound: "none: can starve; with age_weight W, none that came longest positioning / W later passes",
    source: "Seltzer, Chen, Ousterhout, USENIX 1990; Jacobson, Wilkes, HPL-CSP-91-7",
    avoid: "there is no accurate profile of the drive, the drive holds several commands that were sent \
            at once (it orders them itself, and each was chosen too early: up to a third less; with issue = late \
            two cost nothing), or, with age_weight 0, anybody waits for \
            distant requests",
    options: &[
        OptionInfo::weight(
            "age_weight",
            Millionths::ZERO,
            AGE_WEIGHT_MAX,
            "milliseconds of positioning that a request gains per millisecond waited; higher shortens \
             the longest waits and costs throughput, up to first come first served; 0 is plain SPTF",
        ),
        OptionInfo::flag(
            "runs",
            true,
            "true: a request that continues the request before goes next if the drive's buffer serves it, up to 1 MiB or four requests in \
             a row; sequential requests have the speed of the medium, and other requests wait behind the run. false: position alone, as \
             in the sources",
        ),
    ],
    needs: Needs {
        positioning: true,
        ..Needs::NOTHING
    },
    ..PolicyInfo::PLAIN
};

pub(crate) fn build<P: Positioning + Clone + 'static>(parts: Parts<'_, P>) -> Built {
    let weight = parts.options.weight("age_weight");
    let sptf = Sptf::aged(positioning(parts.positioning), weight);
    let run = parts.options.flag("runs").then(Run::default);
    Built::elevator(Sptf { run, ..sptf }.tracked())
}

/// Returns the positioning of a policy that needs one.
pub(crate) fn positioning<P>(given: Option<P>) -> P {
    given.expect("policies that need positions are built with some")
}

const ALL: ListId = ListId(0);

type MakeTracker<P> = fn(&P) -> Box<dyn Track>;

/// Shortest positioning time first, plain, aged or seek-weighted; see the [module](self).
#[derive(Clone, Debug)]
pub struct Sptf<P: Positioning> {
    positioning: P,
    /// Builds the tracker for the driver of this elevator, once.
    tracker: Option<MakeTracker<P>>,
    rule: Rule,
    requests: Requests,
    by_lba: Oldest,
    /// Places and operations of queued requests, by tag.
    located: Vec<Option<Located<P::Place>>>,
    /// The requests handed out last. `None` if position alone counts.
    run: Option<Run>,
}

/// Rule for the choice of the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Plain,
    Aged(Millionths),
    /// With the percentage N.
    SeekWeighted(u32),
}

/// Properties of a request for predictions.
#[derive(Clone, Copy, Debug)]
struct Located<Place> {
    place: Place,
    op: Op,
}

/// The head, and the time at which the next command is sent, by the clock of the predictor.
#[derive(Clone, Copy, Debug)]
struct Behind<Place> {
    lba: Lba,
    head: HeadAfter<Place>,
    sent: Time,
}

/// The best request so far and its cost. The cost is a pair (seek or zero, then positioning time) or an aged value.
#[derive(Clone, Copy, Debug)]
struct Best<C> {
    tag: Tag,
    cost: C,
}

/// Seek, or zero if the seek does not count by itself, then positioning time.
type Times = (Nanos, Nanos);

/// Positioning time less the weighted wait, in femtoseconds (nanoseconds times millionths). It counts from the value
/// for no positioning time and the wait of the oldest request. As a difference it does not depend on the time of the
/// decision, and is never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Aged(u128);

impl Aged {
    fn new(weight: Millionths, positioning: Nanos, younger: Nanos) -> Aged {
        let unit = u128::from(Millionths::ONE.0);
        let positioning = u128::from(positioning.as_nanos()) * unit;
        Aged(positioning + u128::from(younger.as_nanos()) * u128::from(weight.0))
    }
}

impl<P: Positioning> Sptf<P> {
    /// Builds plain SPTF without requests.
    pub fn new(positioning: P) -> Sptf<P> {
        Sptf {
            positioning,
            tracker: None,
            rule: Rule::Plain,
            requests: Requests::new(1),
            by_lba: Oldest::default(),
            located: Vec::new(),
            run: None,
        }
    }

    /// Builds SPTF in which a request gains `weight` times its wait, without requests. Plain with a weight of 0.
    ///
    /// # Panics
    ///
    /// If the weight is above 1000.
    pub fn aged(positioning: P, weight: Millionths) -> Sptf<P> {
        assert!(weight <= AGE_WEIGHT_MAX, "a weight of {weight} is too high");
        let rule = match weight {
            Millionths::ZERO => Rule::Plain,
            weight => Rule::Aged(weight),
        };
        Sptf {
            rule,
            ..Sptf::new(positioning)
        }
    }

    /// Builds seek-weighted SPTF without requests: the shortest seek among the requests that take at most `percent`
    /// percent longer than the shortest.
    pub fn seek_weighted(positioning: P, percent: u32) -> Sptf<P> {
        Sptf {
            rule: Rule::SeekWeighted(percent),
            ..Sptf::new(positioning)
        }
    }

    /// Adds a tracker that follows the head by the same predictor.
    #[must_use]
    pub fn tracked(mut self) -> Sptf<P>
    where
        P: Clone + 'static,
    {
        self.tracker = Some(|positioning| Box::new(Tracker::new(positioning.clone())));
        self
    }

    /// Returns the predictor.
    pub fn positioning(&self) -> &P {
        &self.positioning
    }

    fn choose(&self, now: Time, head: &HeadState) -> Option<Tag> {
        let from = &self.from(now, head);
        match self.rule {
            Rule::Plain => match self.continuing() {
                None => Some(self.soonest(from)?.tag),
                next => next,
            },
            Rule::Aged(weight) => self.soonest_aged(from, self.continuing(), weight),
            Rule::SeekWeighted(percent) => {
                let soonest = self.soonest(from)?;
                let limit = within(soonest.cost.1, percent);
                let best = Best {
                    cost: (self.seek(from, soonest.tag), soonest.cost.1),
                    ..soonest
                };
                Some(self.nearest(from, limit, best))
            }
        }
    }

    /// The head as the predictor sees it.
    fn from(&self, now: Time, head: &HeadState) -> Behind<P::Place> {
        Behind {
            lba: head.lba,
            sent: now + head.ahead,
            head: head.by(&self.positioning, now),
        }
    }

    /// Returns the oldest request that continues the run, if the drive's buffer serves the request.
    fn continuing(&self) -> Option<Tag> {
        let (end, op) = self.run.as_ref()?.goes_on()?;
        if !self.positioning.serves_runs(op) {
            return None;
        }
        let here = self.by_lba.index().upward(end);
        let here = here.take_while(|entry| entry.lba == end);
        here.map(|entry| entry.tag)
            .filter(|tag| self.located(*tag).op == op)
            .min_by_key(|tag| self.requests.age(*tag))
    }

    fn seek(&self, from: &Behind<P::Place>, tag: Tag) -> Nanos {
        let to = self.located(tag);
        self.positioning.seek(from.head.place, to.place, to.op)
    }

    /// Returns a lower bound of the seek to a queued request and to all requests farther on its side.
    fn seek_at_least(&self, from: &Behind<P::Place>, entry: &Entry) -> Nanos {
        let to = self.located(entry.tag).place;
        let from = from.head.place;
        self.positioning.seek_at_least(from, to, entry.lba)
    }

    fn predict(&self, from: &Behind<P::Place>, tag: Tag) -> Nanos {
        let to = self.located(tag);
        let Behind { head, sent, .. } = from;
        let predicted = self
            .positioning
            .predict_behind(head, *sent, to.place, to.op);
        predicted.positioning()
    }

    /// Returns the request with the shortest positioning time. The returned cost has no seek.
    fn soonest(&self, from: &Behind<P::Place>) -> Option<Best<Times>> {
        let mut best: Option<Best<Times>> = None;
        self.outward(from.lba, |entry| {
            if let Some(best) = best
                && self.seek_at_least(from, &entry) > best.cost.1
            {
                return false;
            }
            let time = self.predict(from, entry.tag);
            self.improve(&mut best, entry.tag, (Nanos::ZERO, time));
            true
        });
        best
    }

    /// Returns true if the request before in address order is older and ends at the start of this request, and the drive's buffer serves the
    /// two in a row.
    fn follows(&self, tag: Tag) -> bool {
        if self.run.is_none() || !self.positioning.serves_runs(self.located(tag).op) {
            return false;
        }
        let start = self.requests.get(tag).extent.start;
        let before = self.by_lba.index().last_before(start);
        before.is_some_and(|before| {
            let is_older = self.requests.age(before.tag) < self.requests.age(tag);
            is_older && self.requests.get(before.tag).extent.end() == start
        })
    }

    /// Returns the request with the least positioning time less weighted wait. The request that continues a run has the time 0.
    fn soonest_aged(
        &self,
        from: &Behind<P::Place>,
        continuing: Option<Tag>,
        weight: Millionths,
    ) -> Option<Tag> {
        let oldest = self.requests.oldest(ALL)?;
        let aged = |tag: Tag, time: Nanos| {
            let arrival = self.requests.get(tag).arrival;
            let younger = arrival.saturating_since(oldest.arrival);
            Aged::new(weight, time, younger)
        };
        let cost = |tag: Tag| aged(tag, self.predict(from, tag));
        // The oldest request has the longest wait. A side of the search therefore ends if the seek alone, less the
        // oldest request's wait, costs more than the best request. The search begins with the oldest request. Otherwise
        // it would cover the whole disk as soon as that wait weighs more than a long seek.
        let mut best = Some(Best {
            tag: oldest.tag,
            cost: cost(oldest.tag),
        });
        if let Some(tag) = continuing {
            self.improve(&mut best, tag, aged(tag, Nanos::ZERO));
        }
        self.outward(from.lba, |entry| {
            let seek = self.seek_at_least(from, &entry);
            let least = Aged::new(weight, seek, Nanos::ZERO);
            if best.is_some_and(|best| least > best.cost) {
                return false;
            }
            self.improve(&mut best, entry.tag, cost(entry.tag));
            true
        });
        best.map(|best| best.tag)
    }

    /// Returns the request with the shortest seek among those within the limit, including `best`.
    fn nearest(&self, from: &Behind<P::Place>, limit: Nanos, best: Best<Times>) -> Tag {
        let mut best = Some(best);
        let shortest = |best: Option<Best<Times>>| best.map_or(Nanos::MAX, |best| best.cost.0);
        self.outward(from.lba, |entry| {
            if self.seek_at_least(from, &entry) > shortest(best) {
                return false;
            }
            // The seek is the cheaper half of a prediction, and mostly settles it.
            let seek = self.seek(from, entry.tag);
            if seek <= shortest(best) {
                let time = self.predict(from, entry.tag);
                if time <= limit {
                    self.improve(&mut best, entry.tag, (seek, time));
                }
            }
            true
        });
        best.expect("it was given").tag
    }

    /// Replaces the best request by a request that costs less, or costs the same and is older, unless the request waits for an older one.
    fn improve<C: Copy + Ord>(&self, best: &mut Option<Best<C>>, tag: Tag, cost: C) {
        let requests = &self.requests;
        let better = match best {
            None => true,
            Some(best) if cost == best.cost => requests.age(tag) < requests.age(best.tag),
            Some(best) => cost < best.cost,
        };
        if better && !self.follows(tag) {
            *best = Some(Best { tag, cost });
        }
    }

    /// Calls `look` for the queued requests, outward from the head to both sides in turn, until it returns false for a
    /// side. An early end pays with as few as 16 requests. A step in address order costs no more than a step in any
    /// other order (measured: `benches/decide.rs`).
    fn outward(&self, head: Lba, mut look: impl FnMut(Entry) -> bool) {
        let (mut down, mut up) = self.by_lba.index().around(head);
        let (mut upward, mut downward) = (true, true);
        while upward || downward {
            upward = upward && up.next().is_some_and(&mut look);
            downward = downward && down.next().is_some_and(&mut look);
        }
    }

    fn located(&self, tag: Tag) -> &Located<P::Place> {
        let located = self.located[tag.index()].as_ref();
        located.expect("located when it was inserted")
    }

    fn locate(&mut self, tag: Tag, op: Op, extent: Extent) {
        let place = self.positioning.start(extent);
        self.located[tag.index()] = Some(Located { place, op });
    }
}

/// Returns the longest positioning time within `percent` percent of the shortest.
fn within(shortest: Nanos, percent: u32) -> Nanos {
    let limit = u128::from(shortest.as_nanos()) * (100 + u128::from(percent)) / 100;
    Nanos::from_nanos(u64::try_from(limit).unwrap_or(u64::MAX))
}

impl<P: Positioning> Elevator for Sptf<P> {
    fn insert(&mut self, _: Time, request: Request) {
        let Request {
            tag, op, extent, ..
        } = request;
        self.requests.insert(ALL, request);
        self.by_lba.insert(&self.requests, tag);
        if tag.index() >= self.located.len() {
            self.located.resize(tag.index() + 1, None);
        }
        self.locate(tag, op, extent);
    }

    fn peek(&self, now: Time, head: &HeadState) -> Option<Candidate> {
        let request = *self.requests.get(self.choose(now, head)?);
        Some(Candidate {
            request,
            urgent: false,
        })
    }

    fn expires(&self, _: Time) -> Option<Time> {
        None
    }

    fn take(&mut self, now: Time, head: &HeadState) -> Option<Request> {
        let tag = self.choose(now, head)?;
        let request = self.withdraw(tag);
        if let Some(run) = &mut self.run {
            run.add(&request);
        }
        Some(request)
    }

    fn withdraw(&mut self, tag: Tag) -> Request {
        self.by_lba.remove(&self.requests, tag);
        self.requests.remove(tag)
    }

    fn merged(&mut self, grown: &Request) {
        self.by_lba.remove(&self.requests, grown.tag);
        self.requests.grow(grown);
        self.by_lba.insert(&self.requests, grown.tag);
        // The place is located even if the start is unchanged: some predictions depend on the transfer time of a write.
        self.locate(grown.tag, grown.op, grown.extent);
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        // The ages of `kept`, and of the requests after `kept` in the index, may change.
        for tag in [kept, gone] {
            self.by_lba.remove(&self.requests, tag);
        }
        self.requests.fuse(kept, gone);
        self.by_lba.insert(&self.requests, kept);
    }

    fn tracker(&mut self) -> Option<Box<dyn Track>> {
        let make = self.tracker.take()?;
        Some(make(&self.positioning))
    }

    fn overtake_max(&self) -> Option<usize> {
        None
    }

    fn queued(&self) -> usize {
        self.requests.len()
    }

    fn drain(&mut self) -> Vec<Request> {
        self.by_lba.clear();
        self.requests.drain()
    }
}
