//! The scrub job, which runs on the thread of its disk.

mod data;
mod ending;
mod face;
mod heard;
mod line;
mod parts;
mod promises;
mod reads;
mod resting;
mod syncs;

use super::files::DurableFile;
use super::progress::{Plan, ProgressFile, Restored};
use super::served::Served;
use super::sink::Sink;
use super::status::{Gaps, ScrubState};
use super::watch::Watch;
use headtime_engine::{Approach, Arrival, Background, Engine, Finished, Join, Lane, RequestId};
use headtime_gaps::{Freeblock, Rests, Verdict};
use headtime_linux::clock::Wall;
use headtime_linux::shown::PathShown as _;
use headtime_sched::{Passing, Track};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};
use heard::{Heard, OnFile};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use syncs::{Ending, Syncs};

pub(crate) use face::Face;
pub(crate) use resting::Resting;

/// Longest time between two writes of the progress to its file. A machine that goes down may lose the progress of twice this time.
const KEEP_EVERY: Nanos = Nanos::from_millis(500);

/// Number of timeouts, each of a read of one block alone, after which the block counts as unreadable.
const TIMEOUTS: u8 = 3;

/// Assumed time of a read of a part of a block, before any such read has been timed: a few turns.
const PART_TAKES: Nanos = Nanos::from_millis(50);

/// First id of the reads of parts of blocks. The ids of the scan's reads start at zero.
const PARTS_FROM: u64 = 1 << 63;

/// Files and threads that a scrub uses in addition to its disk.
pub(super) struct Files {
    /// Progress file, and the handle through which other threads make the file durable.
    pub progress: Option<(ProgressFile, Arc<DurableFile>)>,
    /// Watches to notify of writes, also if this scrub neither hashes nor copies.
    pub watches: Vec<Arc<Watch>>,
    /// Receiver of the data, if the scrub hashes or copies them.
    pub sink: Option<Sink>,
}

/// A part of a block that cannot be read as a whole.
#[derive(Clone, Copy, Debug)]
struct PartOfBlock {
    extent: Extent,
    /// Id of the read of the whole block that failed.
    read: u64,
}

/// Reads a range of a disk block by block, in gaps and in idle time.
pub(super) struct Scrub<P: Passing> {
    scan: Freeblock<P>,
    plan: Plan,
    /// `Used` if the scrub may look for gaps, else the reason why not. `gaps` is the state at present.
    may: Gaps,
    gaps: Gaps,
    /// True once a client's request has shown whether there are gaps.
    has_shown: bool,
    /// Largest read in idle time or at foreground priority.
    piece: Sectors,
    /// Promises and verdict as the progress file has them. `said` is the present verdict and its date.
    on_file: OnFile,
    said: Option<(Verdict, Wall)>,
    heard: Option<Heard>,
    /// Number of verdicts at the last report about promises.
    told_verdicts: usize,
    face: Arc<Face>,
    disk: Arc<dyn Served>,
    progress: Option<ProgressFile>,
    watches: Vec<Arc<Watch>>,
    sink: Option<Sink>,
    /// True if the sink has failed. A failed sink takes no data until `resume`.
    sink_has_failed: bool,
    /// True while a caller of `resume` waits until both the job and the sink have tried to write.
    is_asked: bool,
    waits_for_sink: bool,
    /// Message if the progress file was removed or replaced.
    is_gone: Option<String>,
    /// Blocks whose data the sink has and has not finished, with the id of the read.
    sinking: BTreeMap<u64, u64>,
    /// Blocks that a client wrote after the scrub had requested them, and whose data count nevertheless.
    rewritten: BTreeSet<u64>,
    compared: u64,
    /// Number of times that a write made a block of a copy wanted again.
    again: u64,
    /// True once the line is drawn: the image will have the disk's contents of that moment.
    has_line: bool,
    /// True while the last blocks of a copy are read at foreground priority.
    closes_in: bool,
    /// Ids of the reads at foreground priority, and number of blocks that such reads have read.
    outright: BTreeSet<u64>,
    read_outright: u64,
    ending: Ending,
    asked_syncs: u64,
    /// Thread that makes the progress file durable.
    syncs: Option<Syncs>,
    /// Blocks that were requested and are not done, with the id of the read. The result of a read that is not in this map is ignored.
    open: BTreeMap<u64, u64>,
    /// Blocks that cannot be read as a whole, with the number of their parts that are still to be read.
    bad: BTreeMap<u64, u32>,
    /// Parts of such blocks that are still to be read.
    parts: Vec<PartOfBlock>,
    /// Part that is being read.
    part: Option<PartOfBlock>,
    part_id: u64,
    /// True if the part was requested in idle time.
    part_alone: bool,
    /// Moving average of the time that a read of a part takes.
    part_takes: Nanos,
    /// Number of timeouts of each block, counted for reads of one block alone.
    timeouts: BTreeMap<u64, u8>,
    /// Id of the scan's read in idle time that is under way.
    alone: Option<u64>,
    /// Number of blocks that were read in gaps, and in idle time.
    in_gaps: u64,
    in_idle_time: u64,
    quiet_from: Time,
    /// Earliest time of reads of parts at clients' cost, if only parts are left to read. `parts_are_due` is true once that time has come.
    parts_due: Time,
    parts_are_due: bool,
    keep_at: Time,
    rests: Rests,
    errors: u64,
    paused: bool,
    held: Option<String>,
    over: bool,
}

impl<P: Passing> Scrub<P> {
    /// Makes the job for the blocks that `restored` does not list as done. `may` is `Used` if gaps can be looked for, else the reason why
    /// not.
    pub fn new(
        mut scan: Freeblock<P>,
        plan: Plan,
        may: Gaps,
        disk: Arc<dyn Served>,
        (files, restored): (Files, Option<&Restored>),
        (face, piece): (Arc<Face>, Sectors),
    ) -> io::Result<Scrub<P>> {
        let Files {
            progress,
            watches,
            sink,
        } = files;
        match (&sink, restored) {
            (Some(sink), _) if plan.is_copy() => skip_done(&mut scan, &plan, &sink.watch().marks()),
            (_, Some(restored)) => skip_done(&mut scan, &plan, &restored.done),
            (_, None) => {}
        }
        face.status().left = scan.wanted().left();
        let (progress, durable) = progress.unzip();
        let syncs = durable.map(Syncs::begin).transpose()?;
        let (paused, gaps) = (face.paused.load(Ordering::SeqCst), face.status().gaps);
        if plan.promises.any() {
            face.promise(plan.promises);
        }
        Ok(Scrub {
            piece,
            on_file: OnFile {
                promises: plan.promises,
                said: restored.and_then(|restored| restored.verdict),
            },
            said: restored.and_then(|restored| restored.verdict),
            heard: None,
            told_verdicts: 0,
            scan,
            plan,
            may,
            gaps,
            has_shown: false,
            face,
            disk,
            progress,
            watches,
            sink,
            sink_has_failed: false,
            is_asked: false,
            waits_for_sink: false,
            is_gone: None,
            sinking: BTreeMap::new(),
            rewritten: BTreeSet::new(),
            compared: 0,
            again: 0,
            has_line: false,
            closes_in: false,
            outright: BTreeSet::new(),
            read_outright: 0,
            ending: Ending::NotYet,
            asked_syncs: 0,
            syncs,
            open: BTreeMap::new(),
            bad: BTreeMap::new(),
            parts: Vec::new(),
            part: None,
            part_id: PARTS_FROM,
            part_alone: false,
            part_takes: PART_TAKES,
            timeouts: BTreeMap::new(),
            alone: None,
            in_gaps: 0,
            in_idle_time: 0,
            quiet_from: Time::ZERO,
            parts_due: Time::ZERO,
            parts_are_due: false,
            keep_at: Time::ZERO,
            rests: Rests::default(),
            errors: 0,
            paused,
            held: None,
            over: false,
        })
    }

    /// Makes each block of a copy wanted that is neither marked as copied nor wanted. A client may have written such a block while the job
    /// was being made.
    pub fn misses_nothing(&mut self) {
        let Some(sink) = self.sink.as_ref().filter(|_| self.plan.is_copy()) else {
            return;
        };
        let words = sink.watch().marks().into_iter().zip(0..);
        let wanted = self.scan.wanted().bits();
        let lacking = words.flat_map(|(marks, word)| {
            let wanted = wanted.get(word).copied().unwrap_or(u64::MAX);
            let lacking = !(marks | wanted);
            let bits = (0..64).filter(move |bit| lacking >> bit & 1 == 1);
            bits.map(move |bit| word as u64 * 64 + bit)
        });
        let blocks = self.plan.range_blocks();
        let lacking: Vec<u64> = lacking.filter(|number| blocks.contains(number)).collect();
        for number in lacking {
            self.scan.want(self.extent_of(number));
        }
    }

    /// Number of blocks that are not done.
    fn left(&self) -> u64 {
        match self.has_line {
            true => self.open.len() as u64,
            false => self.scan.wanted().left() + self.open.len() as u64,
        }
    }

    fn number(&self, block: Lba) -> u64 {
        block.get() / self.plan.block.get()
    }

    /// Returns true if the scrub may request reads at present.
    fn reads(&self) -> bool {
        let goes_on = !self.over && !self.paused && self.held.is_none() && !self.is_stopped();
        let reads = goes_on && !self.has_line;
        reads && self.sink.as_ref().is_none_or(Sink::has_room)
    }

    fn is_stopped(&self) -> bool {
        self.face.stopped.load(Ordering::SeqCst)
    }

    /// Handles orders of the controlling threads and results of the sink, and does the periodic work that is due.
    fn attend(&mut self, now: Time) {
        if self.over {
            return;
        }
        self.take_sunk(now);
        self.look_at_watches(now);
        self.look_for_line(now);
        let paused = self.face.paused.load(Ordering::SeqCst);
        if paused != self.paused {
            self.paused = paused;
            let state = if paused { "paused" } else { "running" };
            let told = self.progress.as_mut().map(|kept| kept.state(state));
            self.kept(told);
            self.face.status().pace.forget();
            self.publish(now);
        }
        if self.face.goes_on.swap(false, Ordering::SeqCst) {
            self.goes_on(now);
        }
        self.see_to_promises(now);
        if now >= self.keep_at {
            self.keep();
            self.keep_at = now.saturating_add(KEEP_EVERY);
        }
        self.end_if_over(now);
        if self.is_asked && !self.waits_for_sink {
            self.is_asked = false;
            self.face.answers();
        }
    }

    /// Handles `resume`: clears errors and tries all writes again.
    fn goes_on(&mut self, now: Time) {
        self.is_asked = true;
        // A scrub that can only begin anew does not continue.
        if !self.face.must_begin_anew.load(Ordering::SeqCst) {
            (self.held, self.rests) = (None, Rests::default());
            if self
                .syncs
                .as_ref()
                .is_some_and(|syncs| syncs.durable.again())
                && let Some(progress) = &mut self.progress
            {
                // The kernel does not retry a failed write by itself.
                progress.all_changed();
            }
            if let Some(sink) = &self.sink {
                sink.again();
                (self.sink_has_failed, self.waits_for_sink) = (false, true);
            }
            self.keep();
        }
        self.publish(now);
    }

    /// Writes the progress to its files.
    fn keep(&mut self) {
        self.keep_marks();
        self.keep_counts();
        self.keep_promises();
        let Some(progress) = self.progress.as_mut().filter(|kept| kept.is_dirty()) else {
            return;
        };
        if let Err(error) = progress.is_in_place() {
            self.is_gone = Some(format!("{}: {error}", progress.path().shown()));
            return;
        }
        let unreadable = self.face.status().unreadable.clone();
        let (wanted, open) = (self.scan.wanted().bits(), &self.open);
        let plan = &self.plan;
        let written = progress.write(|word| {
            let from = word as u64 * 64;
            let open = open.range(from..from + 64);
            let open = open.fold(0, |bits, (block, _)| bits | 1 << (block - from));
            // For blocks with unreadable sectors, lines and not bits say that they are done.
            let listed = plan.with_any(&unreadable, word);
            !(wanted.get(word).copied().unwrap_or(u64::MAX) | open | listed)
        });
        self.kept(Some(written));
        let synced = self.syncs.as_ref().map(Syncs::ask);
        self.kept(synced);
    }

    /// Holds the scrub if its progress could not be written.
    fn kept(&mut self, written: Option<io::Result<()>>) {
        if let (Some(Err(error)), Some(progress)) = (written, &self.progress) {
            let problem = format!("{}: {error}", progress.path().shown());
            self.hold_until_mended(&problem);
        }
    }

    fn hold_until_mended(&mut self, problem: &str) {
        self.hold(format!(
            "{problem}; mend that, and `headtime scrub .. resume` goes on"
        ));
    }

    fn hold(&mut self, problem: String) {
        tracing::error!(disk = self.disk.name(), "the scrub rests: {problem}");
        self.held = Some(problem);
        self.ending = Ending::NotYet;
    }

    /// Notes that a block is done.
    fn close(&mut self, block: u64) {
        self.open.remove(&block);
        self.rewritten.remove(&block);
        self.timeouts.remove(&block);
        let progress = self.progress.as_mut().filter(|_| !self.plan.is_copy());
        let written = progress.map(|kept| kept.looked(block, &self.face.status().unreadable));
        self.kept(written);
        self.changed(block, 1);
    }

    fn changed(&mut self, block: u64, blocks: u64) {
        // The marks of a copy's watch say which blocks are done.
        let progress = self.progress.as_mut().filter(|_| !self.plan.is_copy());
        if let Some(progress) = progress {
            for block in (block..block + blocks)
                .step_by(64)
                .chain([block + blocks - 1])
            {
                progress.changed(block);
            }
        }
    }

    /// Notes a read that failed for another reason than unreadable sectors. Reads are suspended for a while, since more reads would not
    /// help.
    fn failed(&mut self, now: Time) {
        self.errors += 1;
        self.rests.failed(now);
    }

    fn publish(&mut self, now: Time) {
        let left = self.left();
        let mut status = self.face.status();
        if !self.over {
            let is_told = self.face.goes_on.load(Ordering::SeqCst);
            let paused = self.face.paused.load(Ordering::SeqCst);
            status.state = match &self.held {
                // A caller of `resume` must not see the state from before the call.
                _ if is_told => ScrubState::Running,
                Some(why) => ScrubState::Held(why.clone()),
                None if paused => ScrubState::Paused,
                None => ScrubState::Running,
            };
        }
        let read = status.blocks.saturating_sub(left);
        status.left = left;
        status.in_gaps = self.in_gaps;
        status.in_idle_time = self.in_idle_time;
        status.by_others = self.scan.stats().read_by_others;
        status.outright = self.read_outright;
        status.errors = self.errors;
        status.failing = self.rests.in_a_row();
        status.gaps = match self.gaps {
            Gaps::Used if self.scan.is_rationed() => Gaps::WritesBack,
            Gaps::Used if self.scan.fails() => Gaps::Surprised,
            Gaps::Used if self.scan.is_costly() => Gaps::Costly,
            gaps => gaps,
        };
        if let Some(hashes) = &mut status.hashes {
            hashes.compared = self.compared;
        }
        if let Some(copy) = &mut status.copy {
            (copy.again, copy.is_settled) = (self.again, self.has_line);
        }
        status.pace.note(now, read);
    }

    /// Updates `gaps`: whether gap reads are possible before the staged request.
    fn look_at(&mut self, engine: &Engine, approach: Option<&Approach>) {
        if !matches!(self.may, Gaps::Used) {
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
}

impl<P: Passing + Clone + 'static> Background for Scrub<P> {
    fn joins(
        &mut self,
        now: Time,
        engine: &Engine,
        approach: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        self.attend(now);
        self.look_at(engine, approach);
        self.note_parts(now);
        if !self.reads() || now < self.rests.until() {
            return None;
        }
        self.close_in();
        let in_gaps = approach.filter(|_| self.gaps == Gaps::Used);
        let part = match approach.is_none() || self.is_closing() || self.hurries() {
            true => self.read_part(now, engine, approach),
            false => None,
        };
        if part.is_some() {
            return part;
        }
        // For a date the scrub reads at foreground priority, even if gaps cannot be used.
        let in_order = self.closes_in || self.plan.promises.any();
        let asked = match approach.is_some() && in_gaps.is_none() && !in_order {
            true => None,
            false => self.scan.joins(now, engine, in_gaps),
        };
        let is_due = self.hurries() && !self.plan.promises.any() && self.scan.has_only_suspects();
        let asked = asked.or_else(|| match is_due {
            true => self.scan.block_before(engine, approach),
            false => None,
        });
        if let Some((arrival, _, join)) = &asked
            && let RequestId::Background(id) = arrival.id
        {
            match join {
                Join::Alone => self.alone = Some(id),
                Join::Queued | Join::Outright => _ = self.outright.insert(id),
                Join::Before | Join::With => {}
            }
            let block = self.plan.block.get();
            let blocks = self.scan.asked(id).iter();
            self.open.extend(blocks.map(|lba| (lba.get() / block, id)));
            // The line has to be drawn before another write can arrive.
            self.look_for_line(now);
        }
        asked
    }

    fn is_offered(&self) -> bool {
        let may = matches!(self.gaps, Gaps::Used | Gaps::OtherOrder) || self.plan.promises.any();
        self.reads() && may && (self.scan.is_offered() || self.hurries())
    }

    fn depth(&self) -> Option<u32> {
        self.scan.depth().filter(|_| self.reads())
    }

    fn next_wakeup(&self, engine: &Engine) -> Option<Time> {
        let dirty = self.progress.as_ref().is_some_and(ProgressFile::is_dirty);
        let dirty = dirty || self.watches.iter().any(|watch| watch.is_dirty());
        let keeps = (dirty && !self.over && self.held.is_none()).then_some(self.keep_at);
        let next = self.next_part(engine).into_iter();
        let next = next.chain(self.next_part_beside());
        let next = next.chain(self.scan.next_wakeup(engine));
        let next = next.chain(self.can_close_in().then_some(Time::ZERO)).min();
        let reads = next.filter(|_| self.reads());
        let reads = reads.map(|at| at.max(self.rests.until()));
        keeps.into_iter().chain(reads).chain(self.next_look()).min()
    }

    fn tracker(&self) -> Option<Box<dyn Track>> {
        match self.may {
            Gaps::Used => self.scan.tracker(),
            _ => None,
        }
    }

    fn arrives(&mut self, now: Time, arrival: &Arrival) {
        self.scan.arrives(now, arrival);
        if arrival.op.changes() && !arrival.extent.is_empty() {
            self.is_written(now, arrival.extent);
        }
    }

    fn seen(&mut self, now: Time, done: &Finished) {
        self.quiet_from = now;
        let before = self.scan.stats().read_by_others;
        // The data of clients' reads do not reach the scrub, so a scrub with a sink cannot use these reads.
        match self.reads() && self.sink.is_none() {
            true => self.scan.seen(now, done),
            false => {
                self.scan.noticed(now, done);
            }
        }
        if self.scan.stats().read_by_others > before {
            let block = self.plan.block.get();
            let Extent { start, len } = done.request.extent;
            let first = start.get() / block;
            let last = (start.get() + len.get() - 1) / block;
            self.changed(first, last - first + 1);
            self.publish(now);
            self.end_if_over(now);
        }
    }

    fn finished(&mut self, now: Time, done: &Finished, data: Option<&[u8]>) {
        if done.id >= PARTS_FROM {
            self.part_finished(now, done, data);
        } else {
            self.is_read(now, done, data);
        }
        self.publish(now);
        self.attend(now);
    }
}

impl<P: Passing> Drop for Scrub<P> {
    /// Writes the progress, so that the end of a server loses nothing.
    fn drop(&mut self) {
        if !self.over {
            self.keep();
        }
        let sink = self.sink.take();
        for watch in &self.watches {
            watch.ends_with_disk();
        }
        if self.disk.is_stopped()
            && let Some(worker) = sink.map(|sink| sink.thread())
        {
            // No other thread joins the sink's thread any more. The hashes have to be complete before the server ends.
            worker.join();
        }
    }
}

/// Removes the blocks that are done from the scan.
fn skip_done<P: Passing>(scan: &mut Freeblock<P>, plan: &Plan, done: &[u64]) {
    let block = plan.block.get();
    let (first, last) = (plan.range_blocks().start, plan.range_blocks().end);
    let mut skip = |from: u64, to: u64| {
        let (start, end) = (from * block, (to * block).min(plan.range.end().get()));
        scan.skip(Extent::at(start, end - start));
    };
    let mut from = None;
    for number in first..last {
        let is_done = done[(number / 64) as usize] >> (number % 64) & 1 == 1;
        match (is_done, from) {
            (true, None) => from = Some(number),
            (false, Some(begun)) => {
                skip(begun, number);
                from = None;
            }
            _ => {}
        }
    }
    if let Some(begun) = from {
        skip(begun, last);
    }
}
