//! Background reading: the blocks that are wanted, under way, or cannot be read as a whole.
//!
//! This module knows no file, and no use of the data.

mod parts;

use super::progress::ScrubPlan;
use super::status::{Gaps, ScrubStatus};
use headtime_engine::{Approach, Arrival, Background, Engine, Finished, Join, Outcome, RequestId};
use headtime_gaps::{FailurePause, Freeblock};
use headtime_sched::Passing;
use headtime_units::{Extent, Lba, Nanos, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};

pub(super) use parts::Urgency;

/// Number of timeouts, each of a read of one block alone, after which the block counts as unreadable.
const TIMEOUTS_MAX: u8 = 3;

/// Assumed time of a read of a part of a block, before any such read has been timed: a few turns.
const PART_TAKES: Nanos = Nanos::from_millis(50);

/// First id of the reads of parts of blocks. The ids of the scan's reads start at zero.
pub(super) const PARTS_FROM: u64 = 1 << 63;

/// A part of a block that cannot be read as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartOfBlock {
    pub extent: Extent,
    /// Id of the read of the whole block that failed.
    pub read: u64,
}

/// Reads of the blocks of a scrub.
///
/// Invariants:
///
/// - `rewritten` is a subset of the keys of `open`.
/// - `id < PARTS_FROM ≤ part_id` for each read `id` in `open`, `outright` and `alone`.
/// - `bad[block] ≥ 1`; `timeouts[block] ≥ 1`.
/// - `may ≠ Used` ⇒ `gaps` keeps its first value.
pub(super) struct Reading<P: Passing> {
    pub scan: Freeblock<P>,
    /// Suspends reads after failures.
    pub rests: FailurePause,
    /// Sectors of a block.
    block: u64,
    /// `Used` if the scrub may look for gaps, else the reason why not. `gaps` is the state at present.
    pub may: Gaps,
    pub gaps: Gaps,
    /// True once a client's request has shown whether there are gaps.
    has_shown: bool,
    /// Blocks that were requested and are not done, with the id of the read. The result of a read that is not in this map is ignored.
    pub open: BTreeMap<u64, u64>,
    /// Blocks of `open` that a client wrote since the request. Their data count nevertheless.
    pub rewritten: BTreeSet<u64>,
    /// Blocks that cannot be read as a whole, with the number of their parts that are still to be read.
    pub bad: BTreeMap<u64, u32>,
    /// Parts of such blocks that are still to be read.
    pub parts: Vec<PartOfBlock>,
    /// Part that is being read, and true if it was requested in idle time.
    part: Option<(PartOfBlock, bool)>,
    part_id: u64,
    /// Moving average of the time that a read of a part takes.
    part_takes: Nanos,
    /// Earliest time of reads of parts at clients' cost, if only parts are left to read. `parts_are_due` is true once that time has come.
    parts_due: Time,
    pub parts_are_due: bool,
    /// Number of timeouts of each block, counted for reads of one block alone.
    timeouts: BTreeMap<u64, u8>,
    /// Id of the scan's read in idle time that is under way.
    alone: Option<u64>,
    /// Ids of the reads at foreground priority.
    outright: BTreeSet<u64>,
    /// Number of blocks that were read at foreground priority, in gaps, and in idle time.
    read_outright: u64,
    in_gaps: u64,
    in_idle_time: u64,
    errors: u64,
    quiet_from: Time,
}

impl<P: Passing> Reading<P> {
    /// `may` is `Used` if gaps can be looked for, else the reason why not. `gaps` is the expected use of gaps.
    pub fn new(scan: Freeblock<P>, plan: &ScrubPlan, (may, gaps): (Gaps, Gaps)) -> Reading<P> {
        Reading {
            scan,
            rests: FailurePause::default(),
            block: plan.block.get(),
            may,
            gaps,
            has_shown: false,
            open: BTreeMap::new(),
            rewritten: BTreeSet::new(),
            bad: BTreeMap::new(),
            parts: Vec::new(),
            part: None,
            part_id: PARTS_FROM,
            part_takes: PART_TAKES,
            parts_due: Time::ZERO,
            parts_are_due: false,
            timeouts: BTreeMap::new(),
            alone: None,
            outright: BTreeSet::new(),
            read_outright: 0,
            in_gaps: 0,
            in_idle_time: 0,
            errors: 0,
            quiet_from: Time::ZERO,
        }
    }

    /// Removes the blocks that are done from the scan.
    pub fn skip_done(&mut self, plan: &ScrubPlan, done: &[u64]) {
        let is_done = |number: &u64| done[(number / 64) as usize] >> (number % 64) & 1 == 1;
        let Range { mut start, end } = plan.range_blocks();
        while let Some(from) = (start..end).find(is_done) {
            start = (from..end).find(|number| !is_done(number)).unwrap_or(end);
            let (from, to) = (from * self.block, start * self.block);
            let to = to.min(plan.range.end().get());
            self.scan.skip(Extent::at(from, to - from));
        }
    }

    /// Makes each block wanted that is neither `done` nor wanted.
    pub fn want_all_but(&mut self, plan: &ScrubPlan, done: Vec<u64>) {
        let blocks = plan.range_blocks();
        for (word, done) in done.into_iter().enumerate() {
            let lacking = !(done | self.undone(word));
            let bits = (0..64).filter(|bit| lacking >> bit & 1 == 1);
            for number in bits.map(|bit| word as u64 * 64 + bit) {
                if blocks.contains(&number) {
                    self.scan.want(self.extent_of(number));
                }
            }
        }
    }

    /// Number of blocks that are still to be requested.
    pub fn wanted(&self) -> u64 {
        self.scan.wanted().left()
    }

    /// Returns true if a read is under way, also of a block whose result does not count.
    pub fn is_reading(&self) -> bool {
        self.part.is_some() || self.scan.in_flight() > 0
    }

    /// Bits of the 64 blocks from block `64 * word` on, set for blocks that are not done.
    pub fn undone(&self, word: usize) -> u64 {
        let from = word as u64 * 64;
        let open = self.open.range(from..from + 64);
        let open = open.fold(0, |bits, (block, _)| bits | 1 << (block - from));
        let wanted = self.scan.wanted().bits().get(word);
        wanted.copied().unwrap_or(u64::MAX) | open
    }

    /// Number of the block of a sector.
    pub fn number(&self, block: Lba) -> u64 {
        block.get() / self.block
    }

    /// Numbers of the blocks of sectors.
    pub fn numbers(&self, extent: Extent) -> RangeInclusive<u64> {
        let (start, end) = (extent.start.get(), extent.end().get());
        start / self.block..=(end - 1) / self.block
    }

    /// Sectors of a block.
    pub fn extent_of(&self, number: u64) -> Extent {
        let start = Lba::new(number * self.block);
        self.scan.wanted().block_at(start)
    }

    /// Blocks of sectors that were requested and are not done.
    pub fn open_in(&self, extent: Extent) -> Vec<u64> {
        let open = self.open.range(self.numbers(extent));
        open.map(|(number, _)| *number).collect()
    }

    /// Returns true if a block was requested by this read, and its result counts.
    pub fn is_under_way(&self, block: Lba, read: u64) -> bool {
        self.open.get(&self.number(block)) == Some(&read)
    }

    /// Blocks that are under way and wanted, too.
    pub fn stale(&self) -> Vec<u64> {
        let (open, wanted) = (self.open.keys().copied(), self.scan.wanted());
        open.filter(|number| wanted.has(*number)).collect()
    }

    /// Makes the blocks of sectors wanted. Returns the number of blocks that were not wanted.
    pub fn want(&mut self, extent: Extent) -> u64 {
        let (first, last) = self.numbers(extent).into_inner();
        let (start, end) = (self.extent_of(first).start, self.extent_of(last).end());
        self.scan.want(Extent::new(start, end - start))
    }

    /// Makes a block wanted again that was requested and is not done after all.
    pub fn want_again(&mut self, number: u64) {
        self.ends(number);
        self.scan.want(self.extent_of(number));
    }

    /// Notes that no read of a block is under way any more.
    pub fn ends(&mut self, number: u64) {
        self.open.remove(&number);
        self.rewritten.remove(&number);
    }

    /// Notes that a block is done.
    pub fn close(&mut self, number: u64) {
        self.ends(number);
        self.timeouts.remove(&number);
    }

    /// Voids reads of a block that are under way.
    pub fn forget_read(&mut self, number: u64) {
        self.close(number);
        if self.bad.remove(&number).is_some() {
            let extent = self.extent_of(number);
            self.parts
                .retain(|part| !extent.contains(part.extent.start));
        }
    }

    /// Counts a timeout of a read of one block alone. After [`TIMEOUTS_MAX`] timeouts, returns the sectors of the block, which count as
    /// unreadable.
    pub fn timed_out(&mut self, block: Lba, read: u64) -> Option<Extent> {
        let number = self.number(block);
        let times = self.timeouts.entry(number).or_default();
        *times = times.saturating_add(1);
        if *times < TIMEOUTS_MAX {
            return None;
        }
        let extent = self.scan.wanted().block_at(block);
        self.scan.skip(extent);
        self.open.insert(number, read);
        Some(extent)
    }

    /// Notes a read that failed for another reason than unreadable sectors. Reads are suspended for a while, since more reads would not
    /// help.
    pub fn failed(&mut self, now: Time) {
        self.errors += 1;
        self.rests.failed(now);
    }

    /// Notes a request of the scan.
    pub fn has_asked(&mut self, arrival: &Arrival, join: Join) {
        let RequestId::Background(id) = arrival.id else {
            return;
        };
        match join {
            Join::Alone => self.alone = Some(id),
            Join::Queued | Join::Outright => _ = self.outright.insert(id),
            Join::Before | Join::With => {}
        }
        let blocks = self.scan.asked(id).iter();
        self.open
            .extend(blocks.map(|lba| (lba.get() / self.block, id)));
    }

    /// Updates `gaps`: whether gap reads are possible before the staged request.
    pub fn look_at(&mut self, engine: &Engine, approach: Option<&Approach>) {
        if self.may != Gaps::Used {
            return;
        }
        let expected = self.may.at_depth(engine.depth());
        if !engine.platter_is_found() {
            self.gaps = match expected {
                Gaps::Used => Gaps::NotFound,
                // At this depth the angle of the platter makes no difference.
                deep => deep,
            };
        } else if let Some(Approach { head, .. }) = approach {
            self.has_shown = true;
            self.gaps = match head.free.or(head.due) {
                Some(_) => Gaps::Used,
                None => Gaps::OtherOrder,
            };
        } else if self.gaps == Gaps::NotFound || !self.has_shown {
            self.gaps = expected;
        }
    }

    /// Writes counts and the use of gaps into a status.
    pub fn tell(&self, status: &mut ScrubStatus) {
        status.in_gaps = self.in_gaps;
        status.in_idle_time = self.in_idle_time;
        status.by_others = self.by_others();
        status.outright = self.read_outright;
        status.errors = self.errors;
        status.failing = self.rests.in_a_row();
        status.gaps = match self.gaps {
            Gaps::Used if self.scan.is_rationed() => Gaps::WritesBack,
            Gaps::Used if self.scan.fails() => Gaps::Surprised,
            Gaps::Used if self.scan.is_costly() => Gaps::Costly,
            gaps => gaps,
        };
    }

    fn by_others(&self) -> u64 {
        self.scan.stats().read_by_others
    }

    /// Time since which the disk has been idle; `None` if it is busy.
    fn quiet_since(&self, engine: &Engine) -> Option<Time> {
        let busy = self.is_reading() || engine.in_flight() > 0;
        (!busy && engine.is_quiet()).then_some(self.quiet_from)
    }
}

impl<P: Passing + Clone + 'static> Reading<P> {
    /// Notes the end of a client's request. Returns true if the request has read wanted blocks and `counts` for them.
    pub fn seen(&mut self, now: Time, done: &Finished, counts: bool) -> bool {
        self.quiet_from = now;
        let before = self.by_others();
        match counts {
            true => self.scan.seen(now, done),
            false => {
                self.scan.noticed(now, done);
            }
        }
        self.by_others() > before
    }

    /// Notes the end of a read of the scan. With a `date`, promises decide when parts are read. Returns the blocks of the read, and those
    /// blocks that no client has written since. The result counts for these.
    pub fn finished(
        &mut self,
        now: Time,
        done: &Finished,
        data: Option<&[u8]>,
        date: bool,
    ) -> (Vec<Lba>, Vec<Lba>) {
        let asked = self.scan.asked(done.id).to_vec();
        self.scan.finished(now, done, data);
        let is_done = done.outcome == Outcome::Done;
        let (blocks, stale): (Vec<Lba>, Vec<Lba>) = asked
            .iter()
            .partition(|block| self.is_under_way(**block, done.id));
        if !is_done {
            for block in &stale {
                self.scan.want(self.scan.wanted().block_at(*block));
            }
        }
        let is_alone = self.alone.take_if(|id| *id == done.id).is_some();
        let is_outright = self.outright.remove(&done.id);
        if is_outright && !date {
            self.part_took(now, now.saturating_since(done.issued));
        }
        if is_done {
            *match (is_alone, is_outright) {
                (true, _) => &mut self.in_idle_time,
                (false, true) => &mut self.read_outright,
                (false, false) => &mut self.in_gaps,
            } += asked.len() as u64;
        }
        (asked, blocks)
    }
}
