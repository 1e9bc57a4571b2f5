//! Search for a gap read or gap write that fits in while the head would wait.
//!
//! The cost of a search is the number of tracks whose passing sectors the model computes. So the search applies bounds first, each cheaper
//! than the next.
//!
//! 1. Cylinders without a track that has enough wanted blocks are skipped. [`Wanted`] counts the blocks.
//! 2. A cylinder's window, from the arm movements there and back, bounds the number of sectors that can pass.
//! 3. The [arcs](super::arcs) of that window bound the number of a track's wanted blocks in the window.
//!
//! Only then does the model compute the sectors that pass.

use super::arcs::Arcs;
use super::wanted::{Around, Wanted};
use super::{Limits, Prefer};
use headtime_engine::Join;
use headtime_sched::{HeadAfter, Op, Pass, Passing, Predicted};
use headtime_units::{Angle, Cylinder, Extent, Lba, Nanos, Sectors, Time, Track};
use std::ops::Range;

/// A foreground request that is chosen and not sent, and the head before the request. All times are by the model's clock.
#[derive(Clone, Copy, Debug)]
pub struct Gap<Place> {
    /// The head after all preceding commands.
    pub source: HeadAfter<Place>,
    /// Time at which the drive gets the next command.
    pub sent: Time,
    /// Time at which the drive gets the command after the next. `None` if the drive has one command at a time and gets the second when the
    /// first is done.
    pub then: Option<Time>,
    /// Operation of the foreground request.
    pub op: Op,
    /// Sectors of the foreground request.
    pub extent: Extent,
}

impl<Place> Gap<Place> {
    /// Returns the place where the request begins, and the predicted time of the head to that place.
    pub(super) fn begins<P: Passing<Place = Place>>(&self, model: &P) -> (Place, Predicted)
    where
        Place: Copy,
    {
        let place = model.start(self.extent);
        let predicted = model.predict_behind(&self.source, self.sent, place, self.op);
        (place, predicted)
    }
}

/// A gap read, or gap write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Extent to read.
    pub extent: Extent,
    /// Relation to the foreground request.
    pub join: Join,
    /// Number of wanted blocks in the extent.
    pub blocks: u64,
    /// True if another piece of the same track passes later and in time. The end of the track separates the two pieces.
    pub more: bool,
}

/// Settings of a search.
#[derive(Debug)]
pub struct Search<'a, P: Passing> {
    /// Model of the drive.
    pub model: &'a P,
    /// Wanted blocks.
    pub wanted: &'a Wanted,
    /// [`Op::Read`] or [`Op::Write`]. Reads may cover unwanted blocks, writes never do.
    pub op: Op,
    /// Margin that is added to each seek that the foreground request alone would not make.
    pub conservatism: Nanos,
    /// Rule for a second command on a track.
    pub limits: Limits,
    /// Measure of the best gap read.
    pub prefer: Prefer,
    /// True if the first piece of a track was picked and the search is only for the next piece. The head is then on that track.
    pub rest: bool,
    /// Most sectors of a command that holds both the gap read and the foreground request.
    pub merged_max: Sectors,
    /// Time of one turn of the platter.
    pub turn: Nanos,
}

/// Number of lengths that are tried for a piece. The number suffices to find the longest in-time part of some thousand sectors.
const PIECE_LENGTHS: usize = 14;

/// Worth of a whole track, which takes one turn, for [`Prefer::Tracks`].
const TRACK_WORTH: u64 = 1_000_000;

/// Additional worth for [`Prefer::Tracks`] if no block of a track is wanted afterwards: a fiftieth of a turn.
const FINISHED_TRACK_WORTH: u64 = TRACK_WORTH / 50;

/// Precision of the time that a foreground write needs between the gap read and its first sector.
const LEAD_PRECISION: Nanos = Nanos::from_nanos(100);

/// Number of consecutive cylinders without enough time after which a direction is given up. One such cylinder is not enough, since learned
/// seek times need not rise with each cylinder.
const CYLINDERS_IN_VAIN_MAX: u32 = 8;

/// The foreground request without a gap read.
struct Alone {
    track: Track,
    /// Track of the request's last sector.
    last: Track,
    from: Track,
    /// Time at which the request's first sector comes.
    begins: Time,
    /// Time at which the head is free after the request.
    free: Time,
}

impl<P: Passing> Search<'_, P> {
    /// Returns the best gap read for a gap, and the number of steps of the search. A step examines a cylinder or a track. The search ends
    /// after `most` steps with the best gap read so far.
    pub fn find(&self, gap: &Gap<P::Place>, most: u64) -> (Option<Pick>, u64) {
        self.find_from(gap, gap.begins(self.model), most)
    }

    /// As [`Search::find`], with the known result of [`Gap::begins`].
    pub(super) fn find_from(
        &self,
        gap: &Gap<P::Place>,
        (place, predicted): (P::Place, Predicted),
        most: u64,
    ) -> (Option<Pick>, u64) {
        let whole = self.model.follow(&gap.source, gap.sent, gap.extent, gap.op);
        if !whole.on_medium {
            // The drive takes the write into its buffer and destages at an unknown time, so there is no gap.
            return (None, 0);
        }
        let writes = !self.op.is_read();
        if writes {
            let ours = self
                .model
                .follow(&gap.source, gap.sent, gap.extent, self.op);
            if !ours.on_medium {
                return (None, 0);
            }
        }
        let bound = |of_a_read| if writes { Nanos::ZERO } else { of_a_read };
        let alone = Alone {
            track: self.model.track(place),
            last: self.model.track(self.model.end(gap.extent)),
            from: self.model.track(gap.source.place),
            begins: gap.source.free.max(gap.sent) + predicted.positioning(),
            free: whole.head.free,
        };
        let mut hunt = Hunt {
            search: self,
            gap,
            alone: &alone,
            best: None,
            worth: 0,
            slack: alone.begins.saturating_since(gap.source.free.max(gap.sent)),
            angle: self.model.angle_at(alone.begins),
            per_nano: u64::MAX / self.turn.as_nanos().max(1),
            then: gap.then.unwrap_or(gap.sent),
            lag: Nanos::ZERO,
            lingers: bound(self.model.lingers()),
            pace: bound(self.model.pace()),
            steps: 0,
            most,
        };
        if gap.op.is_read() && !writes {
            hunt.in_front();
        }
        // A write that waits in the drive gets its data when the arm is free.
        if gap.then.is_none() || !gap.op.is_read() {
            hunt.lag = hunt.processed();
        }
        if hunt.may_be_late() {
            match self.rest {
                true => hunt.rest(),
                false => hunt.outward(),
            }
        }
        (hunt.best, hunt.steps)
    }
}

/// State of a search.
///
/// Invariant: `worth` is 0 if and only if there is no `best`.
struct Hunt<'a, P: Passing> {
    search: &'a Search<'a, P>,
    gap: &'a Gap<P::Place>,
    alone: &'a Alone,
    best: Option<Pick>,
    /// Worth of the best gap read. If a track is read in several pieces, this is the worth of all pieces.
    worth: u64,
    /// Time from the head's release until the request's first sector comes.
    slack: Nanos,
    /// Angle under the heads when the request's first sector comes.
    angle: Angle,
    /// Turn of the platter per nanosecond, in 2^64ths of a turn.
    per_nano: u64,
    /// Earliest time at which the drive gets the request after a gap read.
    then: Time,
    /// Time between the end of a gap read and the request. For a foreground read: the drive's processing before the arm leaves, if the
    /// drive gets the read only at the end of the gap read. For a foreground write: until the drive has the data.
    lag: Nanos,
    /// See [`Passing::lingers`].
    lingers: Nanos,
    /// See [`Passing::pace`].
    pace: Nanos,
    steps: u64,
    most: u64,
}

impl<P: Passing> Hunt<'_, P> {
    /// Returns the worth of reading `blocks` blocks on a track with `wanted` wanted blocks.
    fn worth(&self, blocks: u64, wanted: u64, around: &Around) -> u64 {
        match self.search.prefer {
            Prefer::Blocks => blocks,
            Prefer::Tracks if blocks == 0 => 0,
            Prefer::Tracks => {
                let share = blocks * self.search.wanted.block() * TRACK_WORTH;
                let finished = if blocks >= wanted {
                    FINISHED_TRACK_WORTH
                } else {
                    0
                };
                share / u64::from(around.longest.max(1)) + finished
            }
        }
    }

    /// Returns the least number of blocks that may be worth more than the best gap read so far.
    fn least(&self, around: &Around) -> u64 {
        let more = self.worth + 1;
        match self.search.prefer {
            Prefer::Blocks => more,
            Prefer::Tracks => {
                let share = more.saturating_sub(FINISHED_TRACK_WORTH) * u64::from(around.longest);
                share
                    .div_ceil(self.search.wanted.block() * TRACK_WORTH)
                    .max(1)
            }
        }
    }

    /// Takes a gap read if it is worth more than the best so far.
    fn take(&mut self, pick: Pick, worth: u64) {
        if worth > self.worth {
            (self.best, self.worth) = (Some(pick), worth);
        }
    }

    /// Returns true if a track may have a gap read of more worth than the best, if only blocks that begin in `arcs` pass.
    fn may_be_better(&self, track: Track, arcs: Arcs, around: &Around) -> bool {
        let wanted = self.search.wanted;
        let most = wanted.on_track_within(track, arcs, around);
        self.worth(most, wanted.on_track(track), around) > self.worth
    }

    /// Tries the sectors that pass on the destination track directly before the request. They go in the request's command (section 4.3).
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
        // If the head arrives too late for the front, the front comes one turn later.
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
            let around = wanted.around(alone.track.cylinder);
            let worth = self.worth(blocks, wanted.on_track(alone.track), &around);
            let join = Join::With;
            self.take(
                Pick {
                    extent: front,
                    join,
                    blocks,
                    more: false,
                },
                worth,
            );
        }
    }

    /// Returns true if the request ends as early when the head arrives just in time for the request's first sector. A drive that begins in
    /// the middle of a request ends earlier with an early head. A write ends later if its data come too late.
    fn may_be_late(&self) -> bool {
        let model = self.search.model;
        let (gap, alone) = (self.gap, self.alone);
        let track = alone.track;
        let Some(latest) = self.leaves(track, alone.begins) else {
            return false;
        };
        let head = self.in_front_of_it(latest);
        let then = model.follow(&head, gap.then.unwrap_or(head.free), gap.extent, gap.op);
        then.head.free <= alone.free
    }

    /// Returns the head after a gap read that ends directly before the request's first sector. `free` is the end of that gap read.
    fn in_front_of_it(&self, free: Time) -> HeadAfter<P::Place> {
        let first = Extent::new(self.gap.extent.start, Sectors::new(1));
        HeadAfter {
            place: self.search.model.left_by(first, self.search.op),
            free,
        }
    }

    /// Computes [`Hunt::lag`].
    fn processed(&self) -> Nanos {
        let &Search { model, turn, .. } = self.search;
        let (gap, begins) = (self.gap, self.alone.begins);
        if gap.op.is_read() {
            let head = self.in_front_of_it(begins);
            let arrives = |sent| model.arrives(&head, sent, self.alone.track, gap.op);
            return arrives(begins) - arrives(begins.saturating_sub(turn));
        }
        // The data that the drive must have before the first sector comes are known only from a prediction.
        let to = model.start(gap.extent);
        let is_late = |lag: Nanos| {
            let head = self.in_front_of_it(begins.saturating_sub(lag));
            let sent = gap.then.map_or(head.free, |then| then.min(head.free));
            let predicted = model.predict_behind(&head, sent, to, gap.op);
            head.free + predicted.positioning() > begins
        };
        let (mut short, mut long) = (Nanos::ZERO, turn);
        while long - short > LEAD_PRECISION {
            let half = short + (long - short) / 2;
            match is_late(half) {
                true => short = half,
                false => long = half,
            }
        }
        long
    }

    /// Returns the latest time until which a gap read on `track` may keep the head busy, so that the head is at the request by `by`.
    fn leaves(&self, track: Track, by: Time) -> Option<Time> {
        let (gap, to) = (self.gap, self.alone.track);
        let model = self.search.model;
        let leaves = model.leaves(track, self.then, to, by, gap.op)?;
        // The data of a write come while the arm moves.
        Some(match gap.op.is_read() {
            true => leaves.saturating_sub(self.lag),
            false => leaves.min(self.alone.begins.saturating_sub(self.lag)),
        })
    }

    /// Searches ever farther tracks from the source and the destination: from each towards the other, and away from it.
    fn outward(&mut self) {
        let (from, to) = (self.alone.from.cylinder.0, self.alone.track.cylinder.0);
        let (near, far) = (from.min(to), from.max(to));
        let apart = far - near;
        let reach = self.reach(apart);
        let cylinders = self.search.model.cylinders();
        let middle = near + apart / 2;
        let below = near.saturating_sub(reach)..near;
        let above = far + 1..far.saturating_add(reach).saturating_add(1).min(cylinders);
        let mut directions = [
            Direction::new(near, near..middle + 1, true),
            Direction::new(far, middle + 1..far + 1, false),
            Direction::new(near, below, false),
            Direction::new(far, above, true),
        ];
        for direction in &mut directions {
            self.advance(direction);
        }
        loop {
            let nearest = directions
                .iter_mut()
                .filter_map(|direction| Some((direction.distance()?, direction)))
                .min_by_key(|(distance, _)| *distance);
            let Some((_, direction)) = nearest else {
                return;
            };
            let Some(cylinder) = direction.next.map(Cylinder) else {
                return;
            };
            // A better gap read may have been found since this cylinder was chosen.
            let wanted = self.search.wanted;
            if wanted.most_on(cylinder) >= self.least(&wanted.around(cylinder)) {
                if self.steps >= self.most {
                    return;
                }
                self.steps += 1;
                direction.in_vain = match self.cylinder(cylinder) {
                    true => 0,
                    false => direction.in_vain + 1,
                };
            }
            self.advance(direction);
        }
    }

    /// Advances a direction to the next cylinder that has a track with enough wanted blocks.
    fn advance(&self, direction: &mut Direction) {
        let rest = direction.rest.clone();
        let (wanted, enough) = (self.search.wanted, |around: &Around| self.least(around));
        direction.next = match direction.upward {
            _ if direction.in_vain >= CYLINDERS_IN_VAIN_MAX => None,
            true => wanted.lowest(rest, enough),
            false => wanted.highest(rest, enough),
        };
        match (direction.next, direction.upward) {
            (Some(next), true) => direction.rest.start = next + 1,
            (Some(next), false) => direction.rest.end = next,
            (None, _) => direction.rest.end = direction.rest.start,
        }
    }

    /// Returns the number of cylinders, beyond source and destination, on which a gap read may be in time.
    fn reach(&self, apart: u32) -> u32 {
        let (model, slack) = (self.search.model, self.slack);
        let margin = self.search.conservatism + self.lingers;
        let in_time = |distance: u32| {
            let there = model.way_at_least(distance);
            let back = model.way_at_least(distance.saturating_add(apart));
            there + back + margin < slack
        };
        // The bounds rise with the distance, so bisection finds the limit.
        let (mut low, mut high) = (0, model.cylinders());
        while low < high {
            let middle = low + (high - low) / 2;
            if in_time(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Returns true if enough blocks for a better gap read may pass in `time`, on a track of these cylinders.
    fn fits_more(&self, time: Nanos, around: &Around) -> bool {
        let sectors = self.least(around) * self.search.wanted.block();
        let needed = u128::from(sectors) * u128::from(self.search.turn.as_nanos());
        let passes = u128::from(time.as_nanos()) * u128::from(around.longest) >= needed;
        let paced = u128::from(sectors) * u128::from(self.pace.as_nanos());
        passes && u128::from(time.as_nanos()) >= paced
    }

    /// Returns the part of an extent that one command takes, and its wanted blocks. A read takes all from the first wanted block to the
    /// last. A write takes the longest run of wanted blocks.
    fn piece(&self, extent: Extent) -> Option<(u64, Extent)> {
        match self.search.op.is_read() {
            true => self.search.wanted.within(extent),
            false => self.search.wanted.longest_run(extent),
        }
    }

    /// Returns the part of a pass with wanted blocks that the drive may complete within a window.
    fn in_time(&self, pass: Pass, span: Nanos) -> Option<(u64, Extent)> {
        let (blocks, extent) = self.piece(pass.extent)?;
        let begin = pass.ended((extent.start - pass.extent.start).get());
        let left = span.saturating_sub(begin).as_nanos();
        match left.checked_div(self.pace.as_nanos()) {
            Some(most) if most < extent.len.get() => {
                self.piece(Extent::new(extent.start, Sectors::new(most)))
            }
            _ => Some((blocks, extent)),
        }
    }

    /// Returns the time from which the head can be on a track, and the duration, with the margin on both ways.
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
        let arrives = model.arrives(&gap.source, gap.sent, track, self.search.op);
        let from = arrives + margin(alone.from);
        let by = alone.begins.saturating_sub(margin(alone.track));
        let until = self.leaves(track, by)?.saturating_sub(self.lingers);
        (from < until).then(|| (from, until - from))
    }

    /// As [`Hunt::window`], for all tracks of a cylinder without source and destination. The result contains each track's window.
    fn window_of(&self, cylinder: Cylinder) -> Option<(Time, Nanos)> {
        let &Search {
            model,
            conservatism,
            ..
        } = self.search;
        let (gap, alone) = (self.gap, self.alone);
        let beside = |one: Track| Track {
            cylinder,
            head: one.head,
        };
        let there = beside(alone.from);
        let from = model.arrives(&gap.source, gap.sent, there, self.search.op) + conservatism;
        let by = alone.begins.saturating_sub(conservatism);
        let leaves = self.leaves(beside(alone.track), by)?;
        let until = leaves.saturating_sub(self.lingers);
        (from < until).then(|| (from, until - from))
    }

    /// Returns the arcs in which blocks begin that pass in a window, on a track of these cylinders.
    fn arcs(&self, (from, span): (Time, Nanos), around: &Around) -> Arcs {
        let all = self.search.wanted.block() * self.search.turn.as_nanos();
        let block = Nanos::from_nanos(all / u64::from(around.longest.max(1)));
        let before = (self.alone.begins - from).as_nanos();
        let back = before.wrapping_mul(self.per_nano) >> 32;
        let from = self.angle - Angle::from_bits(back as u32);
        Arcs::passing(from, span.saturating_sub(block), self.per_nano)
    }

    /// Searches the track where the head is.
    fn rest(&mut self) {
        if self.steps < self.most {
            self.steps += 1;
            self.track(self.alone.from);
        }
    }

    /// Searches the tracks of a cylinder. Returns false if there is no time for a better gap read.
    fn cylinder(&mut self, cylinder: Cylinder) -> bool {
        let &Search { wanted, .. } = self.search;
        let (from, to) = (self.alone.from.cylinder, self.alone.track.cylinder);
        let around = wanted.around(cylinder);
        let mut arcs = None;
        if cylinder != from && cylinder != to {
            let Some(window) = self.window_of(cylinder) else {
                return false;
            };
            if !self.fits_more(window.1, &around) {
                return false;
            }
            arcs = Some(self.arcs(window, &around));
        }
        for head in 0..self.search.model.heads() {
            let track = Track {
                cylinder,
                head: headtime_units::Head(head),
            };
            let within = arcs.unwrap_or(Arcs::ALL);
            if !self.may_be_better(track, within, &around) {
                continue;
            }
            let ends = [self.alone.from, self.alone.track, self.alone.last];
            let same = ends.contains(&track);
            if same && !self.search.limits.same_track() {
                continue;
            }
            self.steps += 1;
            self.track(track);
        }
        true
    }

    /// Searches a track for sectors that pass between the head's arrival and its departure for the foreground request.
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
        let around = wanted.around(track.cylinder);
        let arcs = self.arcs((from, span), &around);
        if !self.may_be_better(track, arcs, &around) {
            return;
        }
        let before = |extent, blocks| Pick {
            extent,
            join: Join::Before,
            blocks,
            more: false,
        };
        let addresses = model.addresses(track);
        let over_end = wanted.over_end(addresses);
        // The two pieces with the most wanted blocks. A track without skipped slots has no more pieces.
        let mut pieces = [(0, Extent::default()); 2];
        let mut over = None;
        let mut first: Option<(Nanos, Pick)> = None;
        let mut sum = 0;
        model.passing(track, from, span, &mut |pass: Pass| {
            if let Some(block) = over_end.filter(|_| pass.extent.end() == addresses.end())
                && block.start >= pass.extent.start
            {
                let first = wanted.within(pass.extent);
                let first = first.map_or(block.start, |(_, extent)| extent.start);
                over = Some((first, block));
            }
            let Some((blocks, extent)) = self.in_time(pass, span) else {
                return;
            };
            sum += blocks;
            if first.is_none_or(|(begin, _)| pass.begin < begin) {
                first = Some((pass.begin, before(extent, blocks)));
            }
            if blocks > pieces[0].0 {
                pieces = [(blocks, extent), pieces[0]];
            } else if blocks > pieces[1].0 {
                pieces[1] = (blocks, extent);
            }
        });
        let margin = match track == alone.track {
            true => Nanos::ZERO,
            false => conservatism,
        };
        // The end of the track separates the pieces, and one command reads one piece. If a second command on the track does no harm, a
        // second gap read takes the other piece.
        if let (true, Some((_, pick))) = (self.search.limits.same_track(), first) {
            let worth = self.worth(sum, wanted.on_track(track), &around);
            if sum > pick.blocks && worth > self.worth && self.late(pick.extent, margin).is_zero() {
                self.take(Pick { more: true, ..pick }, worth);
                return;
            }
        }
        if let Some(over) = over {
            self.over_end(over, track, margin, &around);
        }
        // Both pieces are tried, since the piece that passes last may be cut the most.
        for (blocks, piece) in pieces {
            if self.worth(blocks, wanted.on_track(track), &around) > self.worth {
                self.longest(piece, track, margin, &around);
            }
        }
    }

    /// Tries the wanted block that begins at the end of a track and ends on the next track, together with the wanted blocks that pass
    /// before. Takes the result if all can be read in time and is worth more than the best gap read so far.
    fn over_end(
        &mut self,
        (first, block): (Lba, Extent),
        track: Track,
        margin: Nanos,
        around: &Around,
    ) {
        let &Search {
            model,
            wanted,
            conservatism,
            ..
        } = self.search;
        let last = model.track(model.end(block));
        let ends = [self.alone.from, self.alone.track, self.alone.last];
        // A command that ends on a track counts as a command on that track.
        if ends.contains(&last) && !self.search.limits.same_track() {
            return;
        }
        let margin = match last == self.alone.track {
            true => margin,
            false => conservatism,
        };
        // With all wanted blocks that pass before the block, or the block alone.
        for start in [first, block.start] {
            let all = Extent::new(start, block.end() - start);
            let Some((blocks, extent)) = self.piece(all) else {
                continue;
            };
            // A write takes the longest run of wanted blocks, which need not include the block.
            if extent.end() != block.end() {
                continue;
            }
            let worth = self.worth(blocks, wanted.on_track(track), around);
            if worth > self.worth && self.late(extent, margin).is_zero() {
                let join = Join::Before;
                let more = false;
                self.take(
                    Pick {
                        extent,
                        join,
                        blocks,
                        more,
                    },
                    worth,
                );
            }
        }
    }

    /// Takes the longest front part of a piece of a track that can be read in time, if it is worth more than the best gap read so far.
    fn longest(&mut self, all: Extent, track: Track, margin: Nanos, around: &Around) {
        let &Search { model, wanted, .. } = self.search;
        let most = model.addresses(track).len.get().max(1);
        let sector = (self.search.turn.as_nanos() / most).max(self.pace.as_nanos());
        // Least length that is too long, and greatest length that is in time or worth too little.
        let (mut long, mut short) = (all.len.get() + 1, 0);
        let mut next = all.len.get();
        for _ in 0..PIECE_LENGTHS {
            let part = self.piece(Extent::new(all.start, Sectors::new(next)));
            let (blocks, extent) = part.unwrap_or_default();
            let worth = self.worth(blocks, wanted.on_track(track), around);
            let late = match worth > self.worth {
                true => self.late(extent, margin),
                false => Nanos::ZERO,
            };
            if late.is_zero() {
                let join = Join::Before;
                self.take(
                    Pick {
                        extent,
                        join,
                        blocks,
                        more: false,
                    },
                    worth,
                );
                short = next;
            } else {
                long = extent.len.get();
            }
            if long <= short + 1 {
                return;
            }
            // The drive may have to read on, or to answer, before the arm leaves. At the end of a track the drive switches to the next
            // track first. One sector less saves that. Otherwise the lateness shows the number of sectors to leave out.
            let less = match late.as_nanos() {
                late if late > 0 && extent == all => Some(1),
                late if late > 0 => Some(late.div_ceil(sector.max(1))),
                _ => None,
            };
            let guess = less.and_then(|less| long.checked_sub(less));
            next = match guess {
                Some(guess) if guess > short => guess,
                _ => short + (long - short) / 2,
            };
        }
    }

    /// Returns the time by which the head is late at the foreground request if it reads `extent` before; zero if it is in time.
    fn late(&self, extent: Extent, margin: Nanos) -> Nanos {
        let &Search { model, .. } = self.search;
        let (gap, alone) = (self.gap, self.alone);
        let first = model.follow(&gap.source, gap.sent, extent, self.search.op);
        let sent = gap.then.unwrap_or(first.done);
        let comes = model.arrives(&first.head, sent, alone.track, gap.op) + margin;
        if comes > alone.begins {
            return comes - alone.begins;
        }
        let then = model.follow(&first.head, sent, gap.extent, gap.op);
        then.head.free.saturating_since(alone.free)
    }
}

/// The cylinders on one side of the source or the destination.
struct Direction {
    from: u32,
    /// Cylinders that are not searched yet.
    rest: Range<u32>,
    upward: bool,
    /// Nearest of the remaining cylinders with a track that may have enough wanted blocks.
    next: Option<u32>,
    /// Number of consecutive cylinders without enough time.
    in_vain: u32,
}

impl Direction {
    fn new(from: u32, rest: Range<u32>, upward: bool) -> Direction {
        Direction {
            from,
            rest,
            upward,
            next: None,
            in_vain: 0,
        }
    }

    fn distance(&self) -> Option<u32> {
        self.next.map(|next| next.abs_diff(self.from))
    }
}
