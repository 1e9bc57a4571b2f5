//! Finds what to read while the head would wait.

use super::Limits;
use super::wanted::Wanted;
use crate::Join;
use headtime_sched::{Head, Op, Pass, Passing};
use headtime_units::{Cylinder, Extent, Nanos, Sectors, Time, Track};

/// A foreground request that is chosen and not yet sent, and the head in front of it. All times are by the clock of the
/// model.
#[derive(Clone, Copy, Debug)]
pub struct Gap<Place> {
    /// The head behind all that goes before.
    pub source: Head<Place>,
    /// When the drive gets what is sent next.
    pub sent: Time,
    /// When it gets what is sent after that.
    pub then: Time,
    /// The foreground request.
    pub op: Op,
    /// Its sectors.
    pub extent: Extent,
}

/// What can be read in a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// What to read.
    pub extent: Extent,
    /// How it goes with the foreground request.
    pub join: Join,
    /// How many wanted blocks it has.
    pub blocks: u64,
}

/// What a search may do.
#[derive(Debug)]
pub struct Search<'a, P: Passing> {
    /// What is known of the drive.
    pub model: &'a P,
    /// What is to be read.
    pub wanted: &'a Wanted,
    /// Added to each seek that the foreground alone would not make.
    pub conservatism: Nanos,
    /// Where picks may be.
    pub limits: Limits,
    /// The most sectors of a command that both go in.
    pub merged_max: Sectors,
    /// A turn of the platter.
    pub turn: Nanos,
}

/// A pick that does not fit is cut so often.
const CUTS: usize = 4;

/// A direction in which so many cylinders in a row leave no time is given up. Learned seek times need not rise with each
/// cylinder.
const IN_VAIN: u32 = 8;

/// What the foreground request is like without anything before it.
struct Alone {
    track: Track,
    from: Track,
    /// When its first sector comes.
    begins: Time,
    /// When the head is free behind it.
    free: Time,
}

impl<P: Passing> Search<'_, P> {
    /// The best pick for a gap, and the steps that it took to find: a step is a look at a cylinder or at a track. Ends after
    /// `most` steps with the best so far.
    pub fn find(&self, gap: &Gap<P::Place>, most: u64) -> (Option<Pick>, u64) {
        let place = self.model.start(gap.extent);
        let predicted = self
            .model
            .predict_behind(&gap.source, gap.sent, place, gap.op);
        let alone = Alone {
            track: self.model.track(place),
            from: self.model.track(gap.source.place),
            begins: gap.source.free.max(gap.sent) + predicted.positioning(),
            free: self
                .model
                .follow(&gap.source, gap.sent, gap.extent, gap.op)
                .head
                .free,
        };
        let mut hunt = Hunt {
            search: self,
            gap,
            alone: &alone,
            best: None,
            slack: alone.begins.saturating_since(gap.source.free.max(gap.sent)),
            steps: 0,
            most,
        };
        if gap.op.is_read() {
            hunt.in_front();
        }
        hunt.outward();
        (hunt.best, hunt.steps)
    }
}

/// A search that goes on.
struct Hunt<'a, P: Passing> {
    search: &'a Search<'a, P>,
    gap: &'a Gap<P::Place>,
    alone: &'a Alone,
    best: Option<Pick>,
    /// From when the head is free until the request's first sector comes.
    slack: Nanos,
    steps: u64,
    most: u64,
}

impl<P: Passing> Hunt<'_, P> {
    fn blocks(&self) -> u64 {
        self.best.map_or(0, |best| best.blocks)
    }

    /// What passes on the destination track directly before the request, which goes in its command (section 4.3).
    fn in_front(&mut self) {
        self.steps += 1;
        let &Search {
            model,
            wanted,
            conservatism,
            merged_max,
            ..
        } = self.search;
        let (gap, alone) = (self.gap, self.alone);
        // Who comes too late for the front reads it a turn later.
        let from = model.arrives(&gap.source, gap.sent, alone.track, gap.op) + conservatism;
        if from >= alone.begins {
            return;
        }
        let mut best = None;
        model.passing(alone.track, from, alone.begins - from, &mut |pass: Pass| {
            if pass.extent.end() == gap.extent.start {
                best = wanted.within(pass.extent);
            }
        });
        let Some((blocks, extent)) = best else { return };
        let front = Extent::new(extent.start, gap.extent.start - extent.start);
        let merged = Extent::new(front.start, front.len + gap.extent.len);
        if merged.len > merged_max {
            return;
        }
        let both = model.follow(&gap.source, gap.sent, merged, gap.op);
        if both.head.free <= alone.free {
            self.best = Some(Pick {
                extent: front,
                join: Join::With,
                blocks,
            });
        }
    }

    /// Tracks ever farther from the source and the destination: from each towards the other, and away from it.
    fn outward(&mut self) {
        let model = self.search.model;
        let (from, to) = (self.alone.from.cylinder.0, self.alone.track.cylinder.0);
        let (near, far) = (from.min(to), from.max(to));
        let apart = far - near;
        // How many cylinders in a row did not pay, in each direction; none after that of one that ends before.
        let mut in_vain = [0_u32; 4];
        let mut distance = 0;
        loop {
            let between = distance <= apart / 2 && self.pays(distance, apart - distance);
            let beyond = self.pays(distance, apart.saturating_add(distance));
            if !between {
                (in_vain[0], in_vain[1]) = (IN_VAIN, IN_VAIN);
            }
            if !beyond {
                (in_vain[2], in_vain[3]) = (IN_VAIN, IN_VAIN);
            }
            if in_vain.iter().all(|vain| *vain >= IN_VAIN) {
                return;
            }
            let above = far.checked_add(distance);
            let outer = |at: Option<u32>| at.filter(|_| distance > 0);
            let mut four = [
                Some(near + distance.min(apart)),
                Some(far - distance.min(apart)),
                outer(near.checked_sub(distance)),
                outer(above.filter(|at| *at < model.cylinders())),
            ];
            if four[0] == four[1] {
                four[1] = None;
            }
            for (cylinder, vain) in four.into_iter().zip(&mut in_vain) {
                let Some(cylinder) = cylinder.filter(|_| *vain < IN_VAIN) else {
                    continue;
                };
                if self.search.wanted.most_around(cylinder) <= self.blocks() {
                    continue;
                }
                if self.steps >= self.most {
                    return;
                }
                self.steps += 1;
                *vain = match self.cylinder(Cylinder(cylinder)) {
                    true => 0,
                    false => *vain + 1,
                };
            }
            distance += 1;
        }
    }

    /// Returns true if more than the best so far may be read so many cylinders from the one and from the other.
    fn pays(&self, one: u32, other: u32) -> bool {
        let model = self.search.model;
        let ways = model.way_at_least(one) + model.way_at_least(other);
        self.slack > ways + self.search.conservatism
            && self.fits_more(
                self.slack - ways - self.search.conservatism,
                self.search.wanted.longest(),
            )
    }

    /// Returns true if more blocks than those of the best so far may pass in a time, on a track of so many sectors.
    fn fits_more(&self, time: Nanos, sectors: u64) -> bool {
        let needed = u128::from((self.blocks() + 1) * self.search.wanted.block())
            * u128::from(self.search.turn.as_nanos());
        u128::from(time.as_nanos()) * u128::from(sectors) >= needed
    }

    /// From when to when the head can be on a track, with the conservatism on both ways.
    fn window(&self, track: Track) -> Option<(Time, Nanos)> {
        let &Search {
            model,
            conservatism,
            ..
        } = self.search;
        let (gap, alone) = (self.gap, self.alone);
        let margin = |one: Track| match one == track {
            true => Nanos::ZERO,
            false => conservatism,
        };
        let arrives = model.arrives(&gap.source, gap.sent, track, Op::Read);
        let from = arrives + margin(alone.from);
        let way = model.way(track, alone.track, gap.op) + margin(alone.track);
        let until = alone.begins.saturating_sub(way);
        (from < until).then(|| (from, until - from))
    }

    /// Looks at the tracks of a cylinder. Returns false if there is no time for more than the best so far.
    fn cylinder(&mut self, cylinder: Cylinder) -> bool {
        let &Search { wanted, .. } = self.search;
        if wanted.on_cylinder(cylinder) <= self.blocks() {
            return true;
        }
        let (from, to) = (self.alone.from.cylinder, self.alone.track.cylinder);
        if cylinder != from && cylinder != to {
            // It is as far to each of its tracks.
            let first = Track {
                cylinder,
                head: headtime_units::Head(0),
            };
            let longest = wanted.longest();
            let fits = |(_, span)| self.fits_more(span, longest);
            if !self.window(first).is_some_and(fits) {
                return false;
            }
        }
        for head in 0..self.search.model.heads() {
            let track = Track {
                cylinder,
                head: headtime_units::Head(head),
            };
            let same = track == self.alone.from || track == self.alone.track;
            if (same && !self.search.limits.same_track()) || wanted.on_track(track) <= self.blocks()
            {
                continue;
            }
            self.steps += 1;
            self.track(track);
        }
        true
    }

    /// What passes on a track between coming there and having to leave for the foreground request.
    fn track(&mut self, track: Track) {
        let &Search {
            model,
            wanted,
            conservatism,
            ..
        } = self.search;
        let alone = self.alone;
        let Some((from, span)) = self.window(track) else {
            return;
        };
        if !self.fits_more(span, model.addresses(track).len.get()) {
            return;
        }
        let mut best: Option<(u64, Extent)> = None;
        model.passing(track, from, span, &mut |pass: Pass| {
            if let Some((blocks, extent)) = wanted.within(pass.extent)
                && best.is_none_or(|(most, _)| blocks > most)
            {
                best = Some((blocks, extent));
            }
        });
        // The drive may have to read on, or to answer, before the arm leaves. At the end of a track it goes on to the next
        // one first: a sector less saves that.
        let all = model.addresses(track).len.get().max(1);
        let sector = (self.search.turn.as_nanos() / all).max(1);
        for cut in 0..CUTS {
            let Some((blocks, extent)) = best else { return };
            if blocks <= self.blocks() {
                return;
            }
            let margin = match track == alone.track {
                true => Nanos::ZERO,
                false => conservatism,
            };
            let late = self.late(extent, margin);
            if late.is_zero() {
                self.best = Some(Pick {
                    extent,
                    join: Join::Before,
                    blocks,
                });
                return;
            }
            let less = match cut {
                0 => 1,
                _ => late.as_nanos().div_ceil(sector),
            };
            let Some(len) = extent.len.get().checked_sub(less) else {
                return;
            };
            best = wanted.within(Extent::new(extent.start, Sectors::new(len)));
        }
    }

    /// How much too late the head is at the foreground request if it reads this before.
    fn late(&self, extent: Extent, margin: Nanos) -> Nanos {
        let &Search { model, .. } = self.search;
        let (gap, alone) = (self.gap, self.alone);
        let first = model.follow(&gap.source, gap.sent, extent, Op::Read);
        let comes = model.arrives(&first.head, gap.then, alone.track, gap.op) + margin;
        if comes > alone.begins {
            return comes - alone.begins;
        }
        let then = model.follow(&first.head, gap.then, gap.extent, gap.op);
        then.head.free.saturating_since(alone.free)
    }
}
