//! Several tasks that read or write one disk in the background, each at its own rank.
//!
//! A task says what it wants, and not in which order; whoever gives it is told of each piece as it comes: the interface of
//! Thereska, Schindler, Bucy, Salmon, Lumb and Ganger (FAST 2004), whose sessions are tasks here. Tasks of one priority are
//! served as one set of blocks: what several want is read once. Those of a lower one have the gaps in which nothing of the
//! higher ones passes; what is read for others and is wanted counts for all. A task that writes is served by itself, since
//! each has data of its own; what they are is asked when they are written.

mod spec;

use super::bits::Bits;
use super::kept::Kept;
use super::parts::Parts;
use super::{Demand, Freeblock, FreeblockOptions, Rests};
use crate::{Approach, Arrival, Background, Engine, Finished, Join, Lane, Outcome, RequestId};
use core::ops::Range;
use headtime_sched::{Passing, Track, Tracker};
use headtime_units::{Extent, Lba, Sectors, Time};
pub use spec::{Consumer, OnWrite, TaskError, TaskId, TaskSpec, Work};
use std::fmt;

struct Task {
    id: TaskId,
    spec: TaskSpec,
    /// Block numbers, in order, apart from each other.
    ranges: Vec<Range<u64>>,
    wanted: Bits,
    suspended: bool,
    demand: Option<Demand>,
}

impl Task {
    /// What serves it: those of a priority are read together, one that is promoted or writes is served by itself.
    fn served_by(&self) -> Serves {
        match (self.demand, self.spec.work) {
            (None, Work::Read) => Serves::All(self.spec.priority),
            (Some(_), _) | (_, Work::Write) => Serves::One(self.id),
        }
    }

    /// The parts of a run of blocks that are in its ranges.
    fn within(&self, run: &Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let from = self.ranges.partition_point(|range| range.end <= run.start);
        let run = run.clone();
        let ranges = self.ranges[from..].iter();
        let parts = ranges.map(move |range| range.start.max(run.start)..range.end.min(run.end));
        parts.take_while(|part| part.start < part.end)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Serves {
    /// The tasks of a priority that read.
    All(u8),
    /// One that is promoted, or writes.
    One(TaskId),
}

struct Scan<P: Passing> {
    serves: Serves,
    priority: u8,
    /// The numbers of its requests have this in their upper bits.
    number: u64,
    of: Freeblock<P>,
}

/// Requests of a scan.
const IDS: u32 = 40;

/// Has several tasks read and write in the gaps of what clients ask for, in idle time, and where they are promoted at the cost of
/// others.
///
/// Each sector that a task wants is delivered to it once; again only if it was written meanwhile and the task asks for that
/// ([`OnWrite::Again`]). Each priority in use, and each task that is promoted or writes, has an account of its own of all blocks and tracks, and each
/// task a bit for each block; a change of what is asked for goes through them. What fails for anything but its sectors is tried again, after a rest.
pub struct Tasks<P: Passing, C> {
    model: P,
    capacity: Sectors,
    options: FreeblockOptions,
    /// Those of a higher priority first.
    scans: Vec<Scan<P>>,
    tasks: Vec<Task>,
    /// What clients have read of blocks that a task wants for which that counts.
    parts: Parts,
    consumer: C,
    next_task: u32,
    next_scan: u64,
    /// The request before which picks are, by name and arrival, and the number of the scan whose they are.
    gap: Option<(RequestId, Time, u64)>,
    /// When a client's request last ended.
    quiet_from: Time,
    rests: Rests,
    /// What is known of the drive's buffer, whichever scan is asked.
    kept: Kept,
    /// Kept for its memory.
    asked: Vec<Lba>,
}

impl<P: Passing + Clone, C: Consumer> Tasks<P, C> {
    /// No tasks; `None` if the model does not know where the platter is. Tasks are read in the blocks of `options`.
    ///
    /// # Panics
    ///
    /// If a block has no sectors.
    pub fn none(
        model: P,
        capacity: Sectors,
        options: FreeblockOptions,
        consumer: C,
    ) -> Option<Tasks<P, C>> {
        assert!(options.block > Sectors::ZERO, "a block has sectors");
        model.turn()?;
        Some(Tasks {
            kept: Kept::new(&model, &options),
            model,
            capacity,
            options,
            scans: Vec::new(),
            tasks: Vec::new(),
            parts: Parts::of(options.block.get()),
            consumer,
            next_task: 0,
            next_scan: 0,
            gap: None,
            quiet_from: Time::ZERO,
            rests: Rests::default(),
            asked: Vec::new(),
        })
    }

    /// A task begins.
    ///
    /// # Errors
    ///
    /// If it does not fit the disk.
    pub fn open(&mut self, spec: TaskSpec) -> Result<TaskId, TaskError> {
        let ranges = self.ranges(&spec)?;
        let Some(next) = self.next_task.checked_add(1) else {
            return Err(TaskError::TooMany(u32::MAX));
        };
        let id = TaskId(std::mem::replace(&mut self.next_task, next));
        let mut wanted = Bits::none(self.blocks());
        if spec.all {
            for range in &ranges {
                wanted.set(range.clone(), true);
            }
        }
        let task = Task {
            id,
            ranges: apart(ranges),
            wanted,
            suspended: false,
            demand: None,
            spec,
        };
        self.tasks.push(task);
        self.enter(self.tasks.len() - 1);
        Ok(id)
    }

    /// The ranges of a task in blocks, before it begins.
    ///
    /// # Errors
    ///
    /// If it does not fit the disk.
    pub fn ranges(&self, spec: &TaskSpec) -> Result<Vec<Range<u64>>, TaskError> {
        let base = self.options.block;
        if spec.block == Sectors::ZERO || !spec.block.get().is_multiple_of(base.get()) {
            return Err(TaskError::Block(spec.block, base));
        }
        let mut ranges = Vec::new();
        for &range in &spec.ranges {
            let Some(end) = range.start.get().checked_add(range.len.get()) else {
                return Err(TaskError::Outside(range, self.capacity));
            };
            if end > self.capacity.get() {
                return Err(TaskError::Outside(range, self.capacity));
            }
            let whole = |at: u64| at.is_multiple_of(base.get());
            if !whole(range.start.get()) || !(whole(end) || end == self.capacity.get()) {
                return Err(TaskError::Parts(range, base));
            }
            ranges.push(range.start.get() / base.get()..end.div_ceil(base.get()));
        }
        Ok(ranges)
    }

    /// Nothing more is read for a task until it is resumed. Does nothing if there is none.
    pub fn suspend(&mut self, task: TaskId) {
        self.change(task, |task| task.suspended = true);
    }

    /// A task goes on. Does nothing if there is none.
    pub fn resume(&mut self, task: TaskId) {
        self.change(task, |task| task.suspended = false);
    }

    /// A task is read at the cost of others, or only beside them again. Does nothing if there is none.
    pub fn promote(&mut self, task: TaskId, demand: Option<Demand>) {
        self.change(task, |task| task.demand = demand);
    }

    /// A task ends; what it still wants is not read for it. Returns how many blocks those are; `None` if there is none.
    pub fn close(&mut self, task: TaskId) -> Option<u64> {
        let at = self.tasks.iter().position(|one| one.id == task)?;
        let task = self.tasks.remove(at);
        self.leave(&task.wanted);
        Some(task.wanted.count())
    }

    /// How many blocks, of those in which all tasks are read, a task still wants; `None` if there is none.
    pub fn left(&self, task: TaskId) -> Option<u64> {
        Some(self.task(task)?.wanted.count())
    }

    /// Who has them done.
    pub fn consumer(&mut self) -> &mut C {
        &mut self.consumer
    }

    fn task(&self, task: TaskId) -> Option<&Task> {
        self.tasks.iter().find(|one| one.id == task)
    }

    fn change(&mut self, task: TaskId, change: impl FnOnce(&mut Task)) {
        let Some(at) = self.tasks.iter().position(|one| one.id == task) else {
            return;
        };
        let task = &mut self.tasks[at];
        let before = (!task.suspended).then(|| task.served_by());
        change(task);
        let after = (!task.suspended).then(|| task.served_by());
        if after.is_some() && after != before {
            self.enter(at);
        }
        if let Some(scan) = self
            .scans
            .iter_mut()
            .find(|scan| Some(scan.serves) == after)
        {
            scan.of.set_demand(self.tasks[at].demand);
        }
        if before.is_some() && after != before {
            let wanted = self.tasks[at].wanted.clone();
            self.leave(&wanted);
        }
    }

    fn extent(&self, run: &Range<u64>) -> Extent {
        let base = self.options.block.get();
        let end = (run.end * base).min(self.capacity.get());
        let start = run.start * base;
        Extent::new(Lba::new(start), Sectors::new(end - start))
    }

    /// The blocks that lie whole in an extent.
    fn whole(&self, extent: Extent) -> Range<u64> {
        let base = self.options.block.get();
        let (start, end) = (extent.start.get(), extent.end().get());
        let last = match end >= self.capacity.get() {
            true => self.capacity.get().div_ceil(base),
            false => end / base,
        };
        let first = start.div_ceil(base);
        first..last.max(first)
    }

    /// The blocks that an extent touches.
    fn touched(&self, extent: Extent) -> Range<u64> {
        let base = self.options.block.get();
        let end = extent.end().get().min(self.capacity.get());
        extent.start.get() / base..end.div_ceil(base)
    }

    /// The scan of a task wants what the task wants and is not on its way already.
    fn enter(&mut self, at: usize) {
        let task = &self.tasks[at];
        let (serves, priority, work) = (task.served_by(), task.spec.priority, task.spec.work);
        let at_scan = self.scans.iter().position(|scan| scan.serves == serves);
        let at_scan = at_scan.unwrap_or_else(|| self.add_scan(serves, priority, work));
        let mut from = 0;
        while let Some(run) = self.tasks[at].wanted.next_run(from..self.blocks()) {
            from = run.end;
            let extent = self.extent(&run);
            self.scans[at_scan].of.want(extent);
            // What was read before this task went on is not read for it.
            self.parts.forget(run);
        }
        let scan = &mut self.scans[at_scan].of;
        scan.set_demand(self.tasks[at].demand);
        let asked: Vec<Lba> = scan.all_asked().collect();
        for block in asked {
            let block = scan.wanted().block_at(block);
            scan.skip(block);
        }
    }

    /// A task that wanted so much is not a scan's any longer.
    fn leave(&mut self, wanted: &Bits) {
        let mut from = 0;
        while let Some(run) = wanted.next_run(from..self.blocks()) {
            from = run.end;
            self.trim(&run);
        }
        self.forget_idle_scans();
    }

    fn blocks(&self) -> u64 {
        self.capacity.get().div_ceil(self.options.block.get())
    }

    fn add_scan(&mut self, serves: Serves, priority: u8, work: Work) -> usize {
        let number = self.next_scan;
        self.next_scan += 1;
        let nothing = Extent::new(Lba::ZERO, Sectors::ZERO);
        let of = Freeblock::new(self.model.clone(), self.capacity, nothing, self.options);
        let of = of.expect("the model knows where the platter is");
        let mut of = match work {
            Work::Read => of,
            Work::Write => of.writing(),
        };
        of.kept = Kept::nothing();
        of.disturbed(self.quiet_from);
        let scan = Scan {
            serves,
            priority,
            number,
            of: of.with_ids_from(number << IDS),
        };
        let behind = |other: &Scan<P>| other.priority >= priority;
        let at = self.scans.partition_point(behind);
        self.scans.insert(at, scan);
        at
    }

    /// A scan that no task has, and nothing under way, takes memory.
    fn forget_idle_scans(&mut self) {
        let tasks = &self.tasks;
        self.scans.retain(|scan| {
            scan.of.in_flight() > 0 || tasks.iter().any(|task| task.served_by() == scan.serves)
        });
    }

    /// Scans do not want what no task of theirs wants, of a run of blocks.
    fn trim(&mut self, run: &Range<u64>) {
        for at in 0..self.scans.len() {
            let serves = self.scans[at].serves;
            let mut from = run.start;
            while from < run.end {
                // As far as it is the same for all blocks.
                let own = |task: &&Task| task.served_by() == serves && !task.suspended;
                let mut end = run.end;
                let mut needed = false;
                for task in self.tasks.iter().filter(own) {
                    match task.wanted.next_run(from..run.end) {
                        Some(next) if next.start == from => {
                            needed = true;
                            end = end.min(next.end);
                        }
                        Some(next) => end = end.min(next.start),
                        None => {}
                    }
                }
                if !needed {
                    let extent = self.extent(&(from..end));
                    self.scans[at].of.skip(extent);
                }
                from = end;
            }
        }
    }

    /// A run of blocks was read or written: each task that wants some of them has them. `counts` says which tasks' it is.
    fn deliver(
        &mut self,
        now: Time,
        run: Range<u64>,
        data: Option<(&[u8], Extent)>,
        counts: impl Fn(&Task) -> bool,
    ) {
        for at in 0..self.tasks.len() {
            if self.tasks[at].suspended || !counts(&self.tasks[at]) {
                continue;
            }
            let mut from = run.start;
            while let Some(got) = self.tasks[at].wanted.next_run(from..run.end) {
                from = got.end;
                let extent = self.extent(&got);
                let data = data.map(|(data, of)| part(data, of, extent));
                let id = self.tasks[at].id;
                self.consumer.piece(now, id, extent, data);
                self.settle(now, at, got);
            }
        }
        self.trim(&run);
    }

    /// A client has read an extent, which may have the rest of blocks of which clients have read a part.
    fn read_in_part(&mut self, now: Time, extent: Extent, counts: impl Fn(&Task) -> bool) {
        for number in self.parts.of_extent(extent, self.capacity.get()) {
            let run = number..number + 1;
            let wants = |task: &Task| counts(task) && !task.wanted.has_none(run.clone());
            let len = self.extent(&run).len.get();
            if self.tasks.iter().any(wants) && self.parts.read(number, len, extent) {
                self.deliver(now, run, None, &counts);
            }
        }
    }

    /// A task wants a run of blocks no longer, all of which it wanted.
    fn settle(&mut self, now: Time, at: usize, run: Range<u64>) {
        let base = self.options.block.get();
        let task = &mut self.tasks[at];
        task.wanted.set(run.clone(), false);
        let (id, each) = (task.id, task.spec.block.get() / base);
        for number in run.start / each..run.end.div_ceil(each) {
            let block = number * each..(number * each + each).min(self.blocks());
            if self.tasks[at].wanted.has_none(block.clone()) {
                let extent = self.extent(&block);
                self.consumer.block(now, id, extent);
            }
        }
        if self.tasks[at].wanted.count() == 0 {
            self.consumer.done(now, id);
        }
    }

    /// Somebody wrote: a client, or one of these tasks.
    fn written(&mut self, now: Time, done: &Finished, is_client: bool) {
        let (whole, touched) = (
            self.whole(done.request.extent),
            self.touched(done.request.extent),
        );
        for at in 0..self.tasks.len() {
            // Two that each wrote after the other would never end.
            if !is_client && self.tasks[at].spec.work == Work::Write {
                continue;
            }
            match self.tasks[at].spec.on_write {
                OnWrite::Nothing => {}
                // Nobody knows what a write that failed has left.
                OnWrite::Satisfied if done.outcome != Outcome::Done => {}
                OnWrite::Satisfied => {
                    let mut from = whole.start;
                    while let Some(got) = self.tasks[at].wanted.next_run(from..whole.end) {
                        from = got.end;
                        self.settle(now, at, got);
                    }
                    if self.tasks[at].spec.work == Work::Write {
                        self.written_in_part(now, at, done.request.extent);
                    }
                }
                OnWrite::Again => self.want_again(now, at, &touched),
            }
        }
        self.trim(&touched);
    }

    /// A task that is to write to blocks hears of what somebody has written to parts of them.
    fn written_in_part(&mut self, now: Time, at: usize, extent: Extent) {
        let touched = self.touched(extent);
        let mut from = touched.start;
        while let Some(run) = self.tasks[at].wanted.next_run(from..touched.end) {
            from = run.end;
            let blocks = self.extent(&run);
            let (start, end) = (
                blocks.start.max(extent.start),
                blocks.end().min(extent.end()),
            );
            let id = self.tasks[at].id;
            self.consumer
                .changed(now, id, Extent::new(start, end - start));
        }
    }

    fn want_again(&mut self, now: Time, at: usize, touched: &Range<u64>) {
        let task = &self.tasks[at];
        let (id, serves, suspended) = (task.id, task.served_by(), task.suspended);
        let parts: Vec<_> = task.within(touched).collect();
        for part in parts {
            let extent = self.extent(&part);
            self.parts.forget(part.clone());
            self.tasks[at].wanted.set(part, true);
            self.consumer.changed(now, id, extent);
            let scan = self.scans.iter_mut().find(|scan| scan.serves == serves);
            if let Some(scan) = scan.filter(|_| !suspended) {
                scan.of.want(extent);
            }
        }
    }

    /// Of a read that failed, what cannot be read; the rest its scan wants again.
    fn not_read(&mut self, now: Time, at: usize) {
        for index in 0..self.asked.len() {
            let block = self.asked[index];
            let number = block.get() / self.options.block.get();
            let run = number..number + 1;
            if self.scans[at].of.is_unreadable(block) {
                let serves = self.scans[at].serves;
                let extent = self.extent(&run);
                for task in 0..self.tasks.len() {
                    let one = &self.tasks[task];
                    let wants = one.served_by() == serves && !one.suspended;
                    if wants && !one.wanted.has_none(run.clone()) {
                        let id = one.id;
                        self.consumer.unreadable(now, id, extent);
                        self.settle(now, task, run.clone());
                    }
                }
            }
            // Its task may have ended meanwhile.
            self.trim(&run);
        }
    }
}

/// Has a scan do something with what is known of the drive, which is one for all of them.
fn lent<P: Passing, T>(
    kept: &mut Kept,
    scan: &mut Freeblock<P>,
    does: impl FnOnce(&mut Freeblock<P>) -> T,
) -> T {
    std::mem::swap(kept, &mut scan.kept);
    let done = does(scan);
    std::mem::swap(kept, &mut scan.kept);
    done
}

/// Puts ranges in order, and those that touch together.
fn apart(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, last| {
        let touches = next.start <= last.end;
        if touches {
            last.end = last.end.max(next.end);
        }
        touches
    });
    ranges
}

/// The data of a part of an extent.
fn part(data: &[u8], of: Extent, part: Extent) -> &[u8] {
    let sector = data.len() / (of.len.get() as usize).max(1);
    let from = (part.start - of.start).get() as usize * sector;
    &data[from..from + part.len.get() as usize * sector]
}

impl<P: Passing + Clone + 'static, C: Consumer> Background for Tasks<P, C> {
    fn joins(
        &mut self,
        now: Time,
        engine: &Engine,
        approach: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        if now < self.rests.until() {
            return None;
        }
        let target = approach.and_then(|approach| engine.joinable(approach.lane));
        let target = target.map(|(id, request)| (id, request.arrival));
        // A gap is one scan's, which knows how many picks there may be.
        let whose = match (self.gap, target) {
            (Some((id, arrival, scan)), Some(same)) if (id, arrival) == same => Some(scan),
            _ => None,
        };
        let kept = &mut self.kept;
        let mut found = self.scans.iter_mut().filter_map(|scan| {
            let approach = approach.filter(|_| whose.is_none_or(|whose| whose == scan.number));
            let asked = lent(kept, &mut scan.of, |of| of.joins(now, engine, approach))?;
            Some((scan.number, asked))
        });
        let (scan, asked) = found.next()?;
        if let (Join::Before | Join::Outright | Join::With, Some((id, arrival))) = (asked.2, target)
        {
            self.gap = Some((id, arrival, scan));
        }
        Some(asked)
    }

    fn is_offered(&self) -> bool {
        self.scans.iter().any(|scan| scan.of.is_offered())
    }

    fn depth(&self) -> Option<u32> {
        self.scans.iter().filter_map(|scan| scan.of.depth()).min()
    }

    fn next_wakeup(&self, engine: &Engine) -> Option<Time> {
        let scans = self.scans.iter();
        let wakes = scans.filter_map(|scan| scan.of.next_wakeup(engine));
        // Who reads at the cost of others waits for nothing but the end of a rest.
        let demands = self.scans.iter().any(|scan| scan.of.demands());
        let rests = demands.then_some(self.rests.until());
        Some(wakes.chain(rests).min()?.max(self.rests.until()))
    }

    fn is_over(&self) -> bool {
        let left = |task: &Task| !task.suspended && task.wanted.count() > 0;
        !self.tasks.iter().any(left) && self.scans.iter().all(|scan| scan.of.in_flight() == 0)
    }

    fn tracker(&self) -> Option<Box<dyn Track>> {
        Some(Box::new(Tracker::new(self.model.clone())))
    }

    fn seen(&mut self, now: Time, done: &Finished) {
        self.quiet_from = now;
        for scan in &mut self.scans {
            scan.of.disturbed(now);
        }
        self.kept.noticed(now, done);
        if done.request.op.changes() {
            self.written(now, done, true);
        } else if done.request.op.is_read() && done.outcome == Outcome::Done {
            let run = self.whole(done.request.extent);
            let counts = |task: &Task| task.spec.others_count && task.spec.work == Work::Read;
            self.deliver(now, run, None, counts);
            self.read_in_part(now, done.request.extent, counts);
        }
    }

    fn fill(&mut self, id: u64, data: &mut [u8]) {
        let scan = self.scans.iter().find(|scan| scan.number == id >> IDS);
        let scan = scan.expect("a scan with something under way is kept");
        let Serves::One(task) = scan.serves else {
            unreachable!("who writes is served alone");
        };
        let asked = scan.of.asked(id);
        let (first, last) = (asked[0], asked[asked.len() - 1]);
        let end = scan.of.wanted().block_at(last).end();
        self.consumer
            .fill(task, Extent::new(first, end - first), data);
    }

    fn finished(&mut self, now: Time, done: &Finished, data: Option<&[u8]>) {
        let own = |scan: &Scan<P>| scan.number == done.id >> IDS;
        let at = self.scans.iter().position(own);
        let at = at.expect("a scan with something under way is kept");
        let mut asked = std::mem::take(&mut self.asked);
        asked.clear();
        asked.extend(self.scans[at].of.asked(done.id));
        self.asked = asked;
        lent(&mut self.kept, &mut self.scans[at].of, |of| {
            of.finished(now, done, data)
        });
        let serves = self.scans[at].serves;
        let wrote = done.request.op.changes();
        match done.outcome {
            Outcome::Done => {
                self.rests.succeeded();
                let run = self.whole(done.request.extent);
                let data = data.map(|data| (data, done.request.extent));
                self.deliver(now, run, data, |task| match wrote {
                    true => task.served_by() == serves,
                    false => task.spec.work == Work::Read,
                });
            }
            outcome => {
                self.not_read(now, at);
                if outcome == Outcome::DeviceError {
                    self.rests.failed(now);
                }
            }
        }
        if wrote {
            self.written(now, done, false);
        }
        self.forget_idle_scans();
    }
}

impl<P: Passing, C> fmt::Debug for Tasks<P, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = |task: &Task| (task.id, task.wanted.count());
        f.debug_struct("Tasks")
            .field("left", &self.tasks.iter().map(left).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
