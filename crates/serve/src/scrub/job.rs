//! The scrub itself, on the thread of its disk.

mod data;
mod resting;

use super::progress::{Finding, Plan, ProgressFile, Restored};
use super::sink::Sink;
use super::status::{Gaps, ScrubState, ScrubStatus};
use super::watch::Watch;
use crate::disk::Disk;
use headtime_engine::{
    Approach, Arrival, Background, Engine, Finished, Freeblock, Join, Lane, Member, Outcome,
    RequestId, Rests,
};
use headtime_sched::{Class, Flags, Op, Origin, Passing, Track};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(super) use resting::Resting;

/// What the job and those who control it share.
#[derive(Debug)]
pub(super) struct Face {
    status: Mutex<ScrubStatus>,
    /// It is to rest.
    pub paused: AtomicBool,
    /// It is to go on, whatever held it.
    pub goes_on: AtomicBool,
    /// It is to end.
    pub stopped: AtomicBool,
    /// What it has done so far is not to be relied on: it can only begin anew.
    pub must_begin_anew: AtomicBool,
    /// The job has let go of all it had, though the scrub is not over.
    let_go: Mutex<bool>,
    lets_go: Condvar,
}

impl Face {
    pub fn new(status: ScrubStatus) -> Face {
        Face {
            paused: AtomicBool::new(status.state == ScrubState::Paused),
            goes_on: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            must_begin_anew: AtomicBool::new(false),
            let_go: Mutex::new(false),
            lets_go: Condvar::new(),
            status: Mutex::new(status),
        }
    }

    pub fn status(&self) -> MutexGuard<'_, ScrubStatus> {
        // It is whole between statements.
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_let_go(&self) {
        *self.let_go.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.lets_go.notify_all();
    }

    /// Waits for the job to let go of what it has, for a while. Returns true if it has.
    pub fn wait_for_job(&self, limit: Duration) -> bool {
        let let_go = self.let_go.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = (self.lets_go).wait_timeout_while(let_go, limit, |let_go| !*let_go);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// What was done reaches its file at least so often: half of what may be lost.
const KEEP_EVERY: Nanos = Nanos::from_millis(500);

/// A block that the drive does not answer for in time, so often, alone, counts as unreadable.
const TIMEOUTS: u8 = 3;

/// Blocks that are looked into at a time; of more the whole block is named.
const BAD_MAX: usize = 4096;

/// Numbers of reads of parts of blocks begin here; those of the scan begin at zero.
const PARTS_FROM: u64 = 1 << 63;

/// What a scrub has beside its disk.
pub(super) struct Files {
    pub progress: Option<ProgressFile>,
    /// Who is to be told of writes, whether or not this scrub hashes.
    pub watch: Option<Arc<Watch>>,
    /// Where data go, if anything is done with them.
    pub sink: Option<Sink>,
}

/// How far the end of a scrub is that does something with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// There is more to do.
    NotYet,
    /// What was done is being made durable.
    Syncs,
    /// It is.
    Synced,
    /// That it is done is being made durable.
    Says,
    /// It is.
    Said,
}

/// Reads a range of a disk block by block, in gaps and in idle time.
pub(super) struct Scrub<P: Passing> {
    scan: Freeblock<P>,
    plan: Plan,
    /// Whether gaps are looked for at all, and why not.
    may: Gaps,
    gaps: Gaps,
    face: Arc<Face>,
    disk: Disk,
    progress: Option<ProgressFile>,
    watch: Option<Arc<Watch>>,
    sink: Option<Sink>,
    /// It takes nothing until it is told to.
    sink_has_failed: bool,
    /// Blocks whose data have been handed over and are not done.
    sinking: BTreeSet<u64>,
    /// Blocks that were written to since they were asked for.
    rewritten: BTreeSet<u64>,
    compared: u64,
    ending: Ending,
    /// Sectors of which the file knows that they are in no line.
    beyond: (u64, u64),
    /// Makes what was written of the progress durable.
    syncs: Option<SyncSender<()>>,
    /// Blocks that were asked for and are not done.
    open: BTreeSet<u64>,
    /// Blocks that cannot be read as a whole, and how many parts of them are still to be read.
    bad: BTreeMap<u64, u32>,
    /// Those parts.
    parts: Vec<Extent>,
    /// The one that is being read.
    part: Option<Extent>,
    part_id: u64,
    /// How often the drive did not answer in time for a block alone.
    timeouts: BTreeMap<u64, u8>,
    /// The one of its reads that went alone, while that is under way.
    alone: Option<u64>,
    /// Blocks that were read in gaps, and in idle time.
    in_gaps: u64,
    in_idle_time: u64,
    quiet_from: Time,
    keep_at: Time,
    rests: Rests,
    errors: u64,
    paused: bool,
    held: Option<String>,
    over: bool,
}

impl<P: Passing> Scrub<P> {
    /// The rest of a scrub, which `restored` says what of is done. `may` says whether gaps can be looked for.
    pub fn new(
        mut scan: Freeblock<P>,
        plan: Plan,
        may: Gaps,
        disk: Disk,
        (files, restored): (Files, Option<&Restored>),
        face: Arc<Face>,
    ) -> io::Result<Scrub<P>> {
        if let Some(restored) = restored {
            skip_done(&mut scan, &plan, &restored.done);
        }
        let Files {
            progress,
            watch,
            sink,
        } = files;
        let beyond = {
            let mut status = face.status();
            status.left = scan.wanted().left();
            (status.unreadable.beyond(), status.changed.beyond())
        };
        let syncs = progress.as_ref().map(syncing).transpose()?;
        let paused = face.paused.load(Ordering::SeqCst);
        Ok(Scrub {
            scan,
            plan,
            may,
            gaps: may,
            face,
            disk,
            progress,
            watch,
            sink,
            sink_has_failed: false,
            sinking: BTreeSet::new(),
            rewritten: BTreeSet::new(),
            compared: 0,
            ending: Ending::NotYet,
            beyond,
            syncs,
            open: BTreeSet::new(),
            bad: BTreeMap::new(),
            parts: Vec::new(),
            part: None,
            part_id: PARTS_FROM,
            timeouts: BTreeMap::new(),
            alone: None,
            in_gaps: 0,
            in_idle_time: 0,
            quiet_from: Time::ZERO,
            keep_at: Time::ZERO,
            rests: Rests::default(),
            errors: 0,
            paused,
            held: None,
            over: false,
        })
    }

    /// Blocks that are not done.
    fn left(&self) -> u64 {
        self.scan.wanted().left() + self.open.len() as u64
    }

    fn number(&self, block: Lba) -> u64 {
        block.get() / self.plan.block.get()
    }

    /// Returns true if it asks for anything at present.
    fn reads(&self) -> bool {
        let goes_on = !self.over && !self.paused && self.held.is_none() && !self.is_stopped();
        goes_on && self.sink.as_ref().is_none_or(Sink::has_room)
    }

    fn is_stopped(&self) -> bool {
        self.face.stopped.load(Ordering::SeqCst)
    }

    /// Does what it was told meanwhile, and what is to be done from time to time.
    fn attend(&mut self, now: Time) {
        if self.over {
            return;
        }
        self.take_sunk(now);
        self.look_at_watch(now);
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
        if now >= self.keep_at {
            self.keep();
            self.keep_at = now.saturating_add(KEEP_EVERY);
        }
        self.end_if_over(now);
    }

    /// It is told to go on, whatever was in its way.
    fn goes_on(&mut self, now: Time) {
        // What it can only begin anew it does not go on with.
        if !self.face.must_begin_anew.load(Ordering::SeqCst) {
            (self.held, self.rests) = (None, Rests::default());
            if let Some(sink) = &self.sink {
                sink.again();
                self.sink_has_failed = false;
            }
        }
        self.publish(now);
    }

    /// Writes down what is done.
    fn keep(&mut self) {
        self.keep_marks();
        self.keep_beyond();
        let Some(progress) = self.progress.as_mut().filter(|kept| kept.is_dirty()) else {
            return;
        };
        let (wanted, open) = (self.scan.wanted().bits(), &self.open);
        let written = progress.write(|word| {
            let from = word as u64 * 64;
            let open = open.range(from..from + 64);
            let open = open.fold(0, |bits, block| bits | 1 << (block - from));
            !(wanted.get(word).copied().unwrap_or(u64::MAX) | open)
        });
        self.kept(Some(written));
        // If one is under way, the next time is soon enough.
        if let Some(Err(TrySendError::Disconnected(()))) =
            self.syncs.as_ref().map(|syncs| syncs.try_send(()))
        {
            self.syncs = None;
        }
    }

    /// Goes on if its progress could be written.
    fn kept(&mut self, written: Option<io::Result<()>>) {
        if let (Some(Err(error)), Some(progress)) = (written, &self.progress) {
            let problem = format!("{}: {error}", progress.path().display());
            self.hold(problem);
        }
    }

    fn hold(&mut self, problem: String) {
        tracing::error!(disk = self.disk.name(), "the scrub rests: {problem}");
        self.held = Some(problem);
        self.ending = Ending::NotYet;
    }

    /// A block is done.
    fn close(&mut self, block: u64) {
        self.open.remove(&block);
        self.rewritten.remove(&block);
        self.timeouts.remove(&block);
        self.changed(block, 1);
    }

    fn changed(&mut self, block: u64, blocks: u64) {
        if let Some(progress) = &mut self.progress {
            for block in (block..block + blocks)
                .step_by(64)
                .chain([block + blocks - 1])
            {
                progress.changed(block);
            }
        }
    }

    /// These sectors cannot be read.
    fn cannot_read(&mut self, extent: Extent) {
        tracing::warn!(disk = self.disk.name(), sectors = %extent, "the scrub cannot read");
        if self.face.status().unreadable.add(extent) {
            let progress = self.progress.as_mut();
            let written = progress.map(|kept| kept.found(Finding::Unreadable, extent));
            self.kept(written);
        }
    }

    /// A block cannot be read as a whole: which of its sectors cannot is found out while nobody asks for anything.
    fn look_into(&mut self, block: Lba) {
        let extent = self.scan.wanted().block_at(block);
        let number = self.number(block);
        let is_named = self.plan.idle.is_none() || self.bad.len() >= BAD_MAX;
        if is_named || extent.len == Sectors::new(1) {
            self.cannot_read(extent);
            self.close(number);
            return;
        }
        self.bad.insert(number, 2);
        self.parts.extend(halves(extent));
    }

    /// A part of a block was read, or cannot be read any smaller.
    fn part_done(&mut self, part: Extent) {
        let block = self.number(part.start);
        if let Some(parts) = self.bad.get_mut(&block) {
            *parts -= 1;
            if *parts == 0 {
                self.bad.remove(&block);
                self.close(block);
            }
        }
    }

    /// Since when nobody waits for anything, if that is so.
    fn quiet_since(&self, engine: &Engine) -> Option<Time> {
        let busy = self.part.is_some() || self.scan.in_flight() > 0 || engine.in_flight() > 0;
        (!busy && engine.is_quiet()).then_some(self.quiet_from)
    }

    /// When the next part may be read, if there are any and nobody waits for anything.
    fn next_part(&self, engine: &Engine) -> Option<Time> {
        let idle = self.plan.idle.filter(|_| !self.parts.is_empty())?;
        Some(self.quiet_since(engine)?.saturating_add(idle))
    }

    fn read_part(&mut self, now: Time, engine: &Engine) -> Option<(Arrival, Lane, Join)> {
        self.next_part(engine).filter(|at| *at <= now)?;
        let arrival = Arrival {
            id: RequestId::Background(self.part_id),
            op: Op::Read,
            extent: *self.parts.last()?,
            flags: Flags::NONE,
            origin: Origin::default(),
            class: Class::IDLE,
        };
        let lane = engine.lane_of(arrival.origin, arrival.class);
        if !engine.may_join(&arrival, lane, Join::Alone) {
            return None;
        }
        self.part = self.parts.pop();
        self.part_id += 1;
        Some((arrival, lane, Join::Alone))
    }

    fn part_finished(&mut self, now: Time, outcome: Outcome) {
        let Some(part) = self.part.take() else { return };
        match outcome {
            Outcome::Done => self.part_done(part),
            Outcome::MediumError | Outcome::TimedOut if part.len == Sectors::new(1) => {
                self.cannot_read(part);
                self.part_done(part);
            }
            Outcome::MediumError | Outcome::TimedOut => {
                if let Some(parts) = self
                    .bad
                    .get_mut(&(part.start.get() / self.plan.block.get()))
                {
                    *parts += 1;
                }
                self.parts.extend(halves(part));
            }
            _ => {
                self.parts.push(part);
                self.failed(now);
            }
        }
    }

    /// A read failed, and not for its sectors. Whatever is wrong, more reads do not help.
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
                // Whoever has told it to go on is not to see what was before.
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
        status.errors = self.errors;
        status.gaps = match self.gaps {
            Gaps::Used if self.scan.fails() => Gaps::Surprised,
            gaps => gaps,
        };
        if let Some(hashes) = &mut status.hashes {
            hashes.compared = self.compared;
        }
        status.pace.note(now, read);
    }

    /// Ends if there is nothing more to do and nothing under way.
    fn end_if_over(&mut self, now: Time) {
        let under_way = self.scan.in_flight() > 0 || self.part.is_some();
        let stopped = self.is_stopped();
        if self.over || under_way || !(stopped || self.left() == 0) {
            return;
        }
        // What could not be written is not tried at each event, but when somebody resumes.
        if self.held.is_some() && !stopped {
            return;
        }
        if stopped {
            let told = self.progress.as_ref().map(ProgressFile::remove);
            self.kept(told);
        } else if !self.is_written_down() {
            self.publish(now);
            return;
        }
        self.lets_go();
        self.publish(now);
        self.face.status().state = match stopped {
            true => ScrubState::Stopped,
            false => ScrubState::Done,
        };
        let unreadable = self.face.status().unreadable.sectors();
        self.face.has_let_go();
        match stopped {
            true => tracing::info!(disk = self.disk.name(), "the scrub was stopped"),
            false => {
                tracing::info!(disk = self.disk.name(), unreadable, "the scrub is done");
            }
        }
    }

    /// Writes down that all is done, which may take a while. Returns true if it is written down, and durable where it has to be.
    fn is_written_down(&mut self) -> bool {
        match self.ending {
            Ending::Syncs | Ending::Says => return false,
            Ending::Said => return true,
            Ending::NotYet => {
                self.keep();
                if self.held.is_some() {
                    return false;
                }
                if let Some(sink) = &self.sink {
                    sink.sync();
                    self.ending = Ending::Syncs;
                    return false;
                }
            }
            Ending::Synced => {}
        }
        let told = self.progress.as_mut().map(|kept| kept.state("done"));
        self.kept(told);
        if self.held.is_some() {
            return false;
        }
        match &self.sink {
            Some(sink) => {
                sink.sync();
                self.ending = Ending::Says;
                false
            }
            None => true,
        }
    }

    /// It is over, or can only begin anew: whoever comes behind it finds nothing of it in use. Writes are still noticed.
    fn lets_go(&mut self) {
        self.over = true;
        // The next one locks the file.
        (self.progress, self.syncs) = (None, None);
        let worker = self.sink.take().map(|sink| sink.thread());
        let worker = worker.unwrap_or_default();
        // Whoever sees that it is over may begin another one, which is to come behind this.
        match self.watch.clone().filter(|watch| !watch.is_lost()) {
            Some(watch) => self.disk.run_in_background(
                Member(0),
                Box::new(move || Box::new(Resting::new(watch, worker)) as Box<dyn Background>),
            ),
            None => self.disk.end_background(Member(0)),
        }
    }

    /// Whether gaps can be used behind what leads to a request.
    fn look_at(&mut self, engine: &Engine, approach: Option<&Approach>) {
        if !matches!(self.may, Gaps::Used) {
            return;
        }
        if !engine.platter_is_found() {
            self.gaps = Gaps::NotFound;
        } else if let Some(Approach { head, .. }) = approach {
            self.gaps = match head.free.or(head.due) {
                Some(_) => Gaps::Used,
                None => Gaps::OtherOrder,
            };
        } else if self.gaps == Gaps::NotFound {
            self.gaps = Gaps::Used;
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
        if !self.reads() || now < self.rests.until() {
            return None;
        }
        let asked = match approach {
            Some(_) if self.gaps != Gaps::Used => None,
            Some(_) => self.scan.joins(now, engine, approach),
            None => match self.read_part(now, engine) {
                Some(part) => return Some(part),
                None => self.scan.joins(now, engine, None),
            },
        };
        if let Some((arrival, _, join)) = &asked
            && let RequestId::Background(id) = arrival.id
        {
            if *join == Join::Alone {
                self.alone = Some(id);
            }
            let block = self.plan.block.get();
            let blocks = self.scan.asked(id).iter();
            self.open.extend(blocks.map(|lba| lba.get() / block));
        }
        asked
    }

    fn is_offered(&self) -> bool {
        self.reads() && matches!(self.gaps, Gaps::Used | Gaps::OtherOrder) && self.scan.is_offered()
    }

    fn next_wakeup(&self, engine: &Engine) -> Option<Time> {
        let dirty = self.progress.as_ref().is_some_and(ProgressFile::is_dirty);
        let dirty = dirty || self.watch.as_ref().is_some_and(|watch| watch.is_dirty());
        let keeps = (dirty && !self.over && self.held.is_none()).then_some(self.keep_at);
        let next = self.next_part(engine).into_iter();
        let next = next.chain(self.scan.next_wakeup(engine)).min();
        let reads = next.filter(|_| self.reads());
        let reads = reads.map(|at| at.max(self.rests.until()));
        keeps.into_iter().chain(reads).min()
    }

    fn tracker(&self) -> Option<Box<dyn Track>> {
        match self.may {
            Gaps::Used => self.scan.tracker(),
            _ => None,
        }
    }

    fn arrives(&mut self, _: Time, arrival: &Arrival) {
        if arrival.op.changes() && !arrival.extent.is_empty() {
            self.is_written(arrival.extent);
        }
    }

    fn seen(&mut self, now: Time, done: &Finished) {
        self.quiet_from = now;
        let before = self.scan.stats().read_by_others;
        // Of what others read there are no data.
        match self.reads() && self.sink.is_none() {
            true => self.scan.seen(now, done),
            false => {
                self.scan.disturbed(now);
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
            self.scan.passed(now, done);
            self.part_finished(now, done.outcome);
        } else {
            let blocks = self.scan.asked(done.id).to_vec();
            self.scan.finished(now, done, data);
            let is_alone = self.alone.take_if(|id| *id == done.id).is_some();
            if done.outcome == Outcome::Done {
                match is_alone {
                    true => self.in_idle_time += blocks.len() as u64,
                    false => self.in_gaps += blocks.len() as u64,
                }
            }
            let sinks =
                done.outcome == Outcome::Done && self.hand_over(done.request.extent, data, &blocks);
            for block in blocks.iter().filter(|_| !sinks) {
                let number = self.number(*block);
                if done.outcome == Outcome::Done {
                    self.close(number);
                } else if self.scan.is_unreadable(*block) {
                    self.look_into(*block);
                } else {
                    self.open.remove(&number);
                    self.rewritten.remove(&number);
                }
            }
            match (done.outcome, blocks.as_slice()) {
                (Outcome::Done, _) => self.rests.succeeded(),
                (Outcome::MediumError, _) => {}
                (Outcome::TimedOut, [block]) => {
                    self.failed(now);
                    self.timed_out(*block);
                }
                _ => self.failed(now),
            }
        }
        self.publish(now);
        self.attend(now);
    }
}

impl<P: Passing> Scrub<P> {
    /// The drive did not answer in time for a block alone.
    fn timed_out(&mut self, block: Lba) {
        let number = self.number(block);
        let times = self.timeouts.entry(number).or_default();
        *times += 1;
        if *times >= TIMEOUTS {
            let extent = self.scan.wanted().block_at(block);
            self.scan.skip(extent);
            self.cannot_read(extent);
            self.close(number);
        }
    }
}

impl<P: Passing> Drop for Scrub<P> {
    /// A server that ends loses nothing of it.
    fn drop(&mut self) {
        if !self.over {
            self.keep();
        }
        let sink = self.sink.take();
        if let Some(watch) = &self.watch {
            watch.ends_with_disk();
        }
        if self.disk.is_stopped()
            && let Some(worker) = sink.map(|sink| sink.thread())
        {
            // Nobody waits for this thread any more, and the hashes are to be whole before the server ends.
            worker.join();
        }
    }
}

/// What is done is not wanted.
fn skip_done<P: Passing>(scan: &mut Freeblock<P>, plan: &Plan, done: &[u64]) {
    let block = plan.block.get();
    let (first, last) = (
        plan.range.start.get() / block,
        plan.range.end().get().div_ceil(block),
    );
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

fn halves(extent: Extent) -> [Extent; 2] {
    let half = extent.len.get() / 2;
    [
        Extent::at(extent.start.get() + half, extent.len.get() - half),
        Extent::at(extent.start.get(), half),
    ]
}

/// Makes a file durable whenever it is told to, on a thread of its own, which ends with who tells it.
fn syncing(progress: &ProgressFile) -> io::Result<SyncSender<()>> {
    let file = progress.syncer()?;
    let path = progress.path().display().to_string();
    let (syncs, told) = sync_channel(1);
    std::thread::Builder::new()
        .name("scrub-sync".to_owned())
        .spawn(move || {
            while told.recv().is_ok() {
                if let Err(error) = file.sync_data() {
                    tracing::warn!("{path}: {error}");
                }
            }
        })?;
    Ok(syncs)
}
