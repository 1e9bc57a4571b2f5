//! Runs the calls of processes, step by step.

use crate::cache::PageId;
use crate::file::NONE;
use crate::host::{Host, RUN_AHEAD_MAX};
use crate::io::Purpose;
use crate::process::{Look, Phase};
use crate::readahead::{Cause, Readahead, Window};
use crate::spec::{FileId, PAGE, Step};
use headtime_sched::{Flags, Op};
use headtime_units::{Extent, Lba, Sectors, Time};

/// Continuation of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// The process continues at once.
    On,
    /// The process continues when it is woken.
    Stop,
}

/// Most steps that a process may take while no time passes. A program that takes more is an endless loop.
///
/// A benchmark without processor time takes at most one step for each byte of two readahead windows, or all its planned
/// steps. Both numbers are smaller (see [`PLANNED_MAX`](crate::builder::PLANNED_MAX)).
const STEPS_MAX: u32 = if cfg!(test) { 1 << 20 } else { 1 << 28 };

/// Times of a running process: the time of its event, and the time up to which it has run ahead.
struct Clock {
    now: Time,
    own: Time,
}

impl Host {
    /// Lets a process run until it sleeps, ends, or must wait for its time to come.
    pub(crate) fn run(&mut self, process: u32, now: Time) {
        let mut clock = Clock { now, own: now };
        let this = &mut self.processes[process as usize];
        this.steps = 0;
        this.look = Look::No;
        while self.go_on(process, &mut clock) == Flow::On {}
    }

    fn go_on(&mut self, process: u32, clock: &mut Clock) -> Flow {
        let this = &mut self.processes[process as usize];
        let step = this.step;
        match this.phase {
            Phase::Fetch if this.handed => {
                self.hand_back(process, clock.own);
                Flow::Stop
            }
            Phase::Fetch => {
                if clock.own > clock.now + RUN_AHEAD_MAX {
                    return self.later(process, clock);
                }
                this.steps += 1;
                assert!(
                    this.steps < STEPS_MAX,
                    "process {} takes steps without end, and no time passes",
                    this.origin.process
                );
                this.step = match this.ahead.pop_front() {
                    _ if this.background && self.foreground == 0 => Step::Exit,
                    Some(step) => step,
                    None => this.behaviour.next(),
                };
                this.phase = Phase::Begin;
                this.called = clock.own;
                let step = this.step;
                self.begin(process, step, clock)
            }
            Phase::Begin => self.begin(process, step, clock),
            Phase::Work => match step {
                Step::Read { file, .. } => self.read(process, step, file, clock),
                Step::Write { file, .. } => self.write(process, file, clock),
                Step::ReadBlock(lba) => self.read_block(process, lba, clock),
                Step::DirtyBlock(lba) => match self.dirty_block(lba, clock.now) {
                    Ok(()) => self.finish(process),
                    Err(io) => {
                        self.sleep_on(process, io);
                        Flow::Stop
                    }
                },
                Step::Sync(file) => self.sync(process, file, clock.now),
                _ => self.finish(process),
            },
            Phase::Wait => match step {
                Step::Sync(file) => self.sync_wait(process, file, clock.now),
                _ => unreachable!("only a sync waits for pages"),
            },
            Phase::Balance => self.balance(process, clock),
            Phase::Finish => self.end_call(process, step, clock),
            Phase::Idle | Phase::Ended => Flow::Stop,
        }
    }

    /// Suspends a process until the time up to which it has run ahead.
    fn later(&mut self, process: u32, clock: &Clock) -> Flow {
        self.wake(process, clock.own);
        Flow::Stop
    }

    fn finish(&mut self, process: u32) -> Flow {
        self.processes[process as usize].phase = Phase::Finish;
        Flow::On
    }

    fn begin(&mut self, process: u32, step: Step, clock: &mut Clock) -> Flow {
        let this = &mut self.processes[process as usize];
        match step {
            Step::Think(span) => {
                clock.own = clock.own.saturating_add(span);
                if !span.is_zero() {
                    this.steps = 0;
                }
                this.phase = Phase::Fetch;
                return Flow::On;
            }
            Step::Ask(class) => {
                this.class = class;
                this.phase = Phase::Fetch;
                return Flow::On;
            }
            // A read that finds its pages in memory has no effect on others, so it may run ahead.
            Step::Read { .. } | Step::ReadBlock(_) if this.pool.is_none() => {}
            _ if clock.own > clock.now => return self.later(process, clock),
            _ => {}
        }
        if let Some(pool) = this.pool
            && this.worker.is_none()
            && !matches!(step, Step::Forget(_) | Step::Barrier(_) | Step::Exit)
        {
            let pool = &mut self.pools[pool as usize];
            match pool.take() {
                Some(worker) => this.worker = Some(worker),
                None => {
                    pool.waiters.push(&mut self.links, process);
                    return Flow::Stop;
                }
            }
        }
        this.phase = Phase::Work;
        match step {
            Step::Read { file, offset, len } => {
                let data = &self.files.data[self.files.names[file.0 as usize].data as usize];
                this.set_range(offset, len, data.size);
                return self.read(process, step, file, clock);
            }
            Step::Write { file, offset, len } => {
                let data = &self.files.data[self.files.names[file.0 as usize].data as usize];
                this.set_range(offset, len, u64::from(data.room) * PAGE);
            }
            Step::Direct {
                op,
                file,
                offset,
                len,
            } => return self.direct(process, op, file, offset, len, clock.now),
            Step::Sync(file) => {
                let data = &self.files.data[self.files.names[file.0 as usize].data as usize];
                (this.page, this.last) = data.busy;
                this.bytes = 0;
            }
            Step::Forget(file) => {
                self.forget(file);
                self.processes[process as usize].phase = Phase::Fetch;
            }
            Step::Barrier(barrier) => {
                this.phase = Phase::Fetch;
                return self.meet(process, barrier.0, clock.now);
            }
            Step::Exit => {
                this.phase = Phase::Ended;
                this.ended = Some(clock.now);
                self.alive -= 1;
                self.foreground -= u32::from(!this.background);
                return Flow::Stop;
            }
            Step::ReadBlock(_) | Step::DirtyBlock(_) | Step::Think(_) | Step::Ask(_) => {
                this.bytes = 0
            }
        }
        Flow::On
    }

    fn read(&mut self, process: u32, step: Step, name: FileId, clock: &mut Clock) -> Flow {
        let data = self.data_of(name);
        let this = &mut self.processes[process as usize];
        let base = self.files.data[data as usize].base;
        let previous = self.files.names[name.0 as usize].readahead.previous();
        let copy = self.spec.copy_per_page;
        let horizon = clock.now + RUN_AHEAD_MAX;
        while this.page < this.last {
            let id = base + this.page;
            if self.cache.get(id).plain() {
                // A page in which the previous call ended does not count as touched again.
                if previous != Some(u64::from(this.page)) {
                    self.cache.touch(id);
                }
                clock.own += copy;
                this.page += 1;
                if clock.own > horizon {
                    this.steps = 0;
                    return self.later(process, clock);
                }
                continue;
            }
            if clock.own > clock.now {
                return self.later(process, clock);
            }
            let (page, asked) = (this.page, this.asked);
            if !self.cache.get(id).cached() {
                self.read_ahead(process, name, Cause::Missing, page, asked, clock.now);
                if !self.cache.get(id).cached() {
                    // The window begins further on, where readahead expected a sequential reader, and leaves out this
                    // page. The page is read alone.
                    let window = Window {
                        start: u64::from(page),
                        pages: 1,
                        mark: None,
                    };
                    self.read_window(process, data, window, clock.now);
                }
            }
            if self.cache.get(id).marked() {
                self.cache.unmark(id);
                self.read_ahead(process, name, Cause::Marked, page, asked, clock.now);
            }
            if self.cache.get(id).reading() {
                let io = self.cache.get(id).io().expect("a request reads it");
                self.sleep_on(process, io);
                return Flow::Stop;
            }
            return Flow::On;
        }
        if this.bytes > 0 {
            if !copy.is_zero() {
                this.steps = 0;
            }
            self.files.names[name.0 as usize]
                .readahead
                .call_ended(u64::from(this.last) - 1);
        }
        this.phase = Phase::Finish;
        self.end_call(process, step, clock)
    }

    /// Asks readahead for a window, and makes the window's requests.
    fn read_ahead(
        &mut self,
        process: u32,
        name: FileId,
        cause: Cause,
        page: u32,
        asked: u32,
        at: Time,
    ) {
        let data = self.data_of(name);
        let file = &self.files.data[data as usize];
        let (base, room) = (file.base, u64::from(file.room));
        let cache = &self.cache;
        let window = self.files.names[name.0 as usize].readahead.ask(
            cause,
            u64::from(page),
            u64::from(asked - page),
            |page| page < room && cache.get(base + page as PageId).cached(),
        );
        if let Some(window) = window {
            self.read_window(process, data, window, at);
        }
    }

    /// Reads the pages of a window that are not cached, with one request for each run of sectors.
    fn read_window(&mut self, process: u32, data: u32, window: Window, at: Time) {
        let file = &self.files.data[data as usize];
        let base = file.base;
        let end = (window.start + window.pages).min(u64::from(file.pages())) as u32;
        let asker = self.asker(process);
        let mut page = window.start as u32;
        while page < end {
            if self.cache.get(base + page).cached() {
                page += 1;
                continue;
            }
            let (start, until) = self.files.place(data, page);
            let until = until.min(end).min(page + self.longest_pages(start));
            let io = self.ios.add(Purpose::Read);
            let first = page;
            while page < until && !self.cache.get(base + page).cached() {
                self.cache.insert(base + page);
                let mark = window.mark == Some(u64::from(page));
                self.cache.read(base + page, io, mark);
                page += 1;
            }
            let pages = page - first;
            let request = self.ios.get_mut(io);
            (request.first, request.pages) = (base + first, pages);
            let extent = Extent::new(start, Sectors::new(u64::from(pages) * self.page_sectors));
            self.submit(io, at, Op::Read, extent, Flags::NONE, asker);
        }
    }

    fn write(&mut self, process: u32, name: FileId, clock: &mut Clock) -> Flow {
        let data = self.data_of(name);
        let horizon = clock.now + RUN_AHEAD_MAX;
        loop {
            let this = &mut self.processes[process as usize];
            if this.page >= this.last {
                return self.finish(process);
            }
            if clock.own > horizon {
                return self.later(process, clock);
            }
            let (page, end) = (this.page, this.end);
            let offset = this.end - this.bytes;
            let file = &self.files.data[data as usize];
            let (base, size) = (file.base, file.size);
            let id = base + page;
            let entry = self.cache.get(id);
            let start = u64::from(page) * PAGE;
            if !entry.cached() {
                // A page that is overwritten only in part has to be read first.
                let whole = offset <= start && end >= (start + PAGE).min(size);
                if start < size && !whole && !self.is_hole(data, page) {
                    if clock.own > clock.now {
                        return self.later(process, clock);
                    }
                    let window = Window {
                        start: u64::from(page),
                        pages: 1,
                        mark: None,
                    };
                    self.read_window(process, data, window, clock.now);
                    continue;
                }
                self.cache.insert(id);
            } else if entry.reading() {
                if clock.own > clock.now {
                    return self.later(process, clock);
                }
                let io = entry.io().expect("a request reads it");
                self.sleep_on(process, io);
                return Flow::Stop;
            }
            self.cache.touch(id);
            self.dirty_page(data, page, clock.own);
            let file = &mut self.files.data[data as usize];
            file.size = file.size.max(end.min(start + PAGE));
            clock.own += self.spec.copy_per_page;
            let this = &mut self.processes[process as usize];
            if !self.spec.copy_per_page.is_zero() {
                this.steps = 0;
            }
            this.page += 1;
            this.dirtied += 1;
            if this.dirtied >= self.write_back.look_every() {
                this.phase = Phase::Balance;
                return Flow::On;
            }
        }
    }

    fn balance(&mut self, process: u32, clock: &Clock) -> Flow {
        if clock.own > clock.now {
            return self.later(process, clock);
        }
        match self.throttle(process, clock.now) {
            true => Flow::Stop,
            false => {
                self.processes[process as usize].balanced();
                Flow::On
            }
        }
    }

    fn read_block(&mut self, process: u32, lba: Lba, clock: &Clock) -> Flow {
        let id = self.cache.block(lba.get() / self.page_sectors);
        if self.cache.get(id).plain() {
            self.cache.touch(id);
            return self.finish(process);
        }
        if clock.own > clock.now {
            return self.later(process, clock);
        }
        let io = match self.cache.get(id).io() {
            Some(io) => io,
            None => {
                let io = self.ios.add(Purpose::Read);
                self.cache.insert(id);
                self.cache.read(id, io, false);
                let request = self.ios.get_mut(io);
                (request.first, request.pages) = (id, 1);
                let extent = Extent::new(lba, Sectors::new(self.page_sectors));
                let asker = self.asker(process);
                self.submit(io, clock.now, Op::Read, extent, Flags::SYNC, asker);
                io
            }
        };
        self.sleep_on(process, io);
        Flow::Stop
    }

    fn direct(
        &mut self,
        process: u32,
        op: Op,
        name: FileId,
        offset: u64,
        len: u64,
        at: Time,
    ) -> Flow {
        let size = self.files.data[self.data_of(name) as usize].size;
        let end = self.direct_end(op, name, offset, len, size);
        let bytes = end.saturating_sub(offset);
        self.processes[process as usize].bytes = bytes;
        if bytes == 0 {
            return Flow::On;
        }
        let data = self.data_of(name);
        if op != Op::Read {
            let size = &mut self.files.data[data as usize].size;
            *size = end.max(*size);
        }
        let asker = self.asker(process);
        let mut at_sector = offset / self.sector_bytes();
        while let Some(extent) = self.direct_extent(data, at_sector, end) {
            let io = self.ios.add(Purpose::Direct(process));
            self.submit(io, at, op, extent, Flags::SYNC, asker);
            self.processes[process as usize].pending += 1;
            at_sector += extent.len.get();
        }
        self.fell_asleep();
        Flow::Stop
    }

    fn sector_bytes(&self) -> u64 {
        PAGE / self.page_sectors
    }

    /// End in bytes of a direct call on a file of `size` bytes.
    fn direct_end(&self, op: Op, name: FileId, offset: u64, len: u64, size: u64) -> u64 {
        let room = match op {
            Op::Read => size,
            _ => u64::from(self.files.data[self.data_of(name) as usize].room) * PAGE,
        };
        offset.saturating_add(len).min(room)
    }

    /// Extent of the next request of a direct call that ends at byte `end`, from a sector of the file on. `None` if the
    /// call is complete.
    fn direct_extent(&self, data: u32, sector: u64, end: u64) -> Option<Extent> {
        let end = end.div_ceil(self.sector_bytes());
        (sector < end).then(|| {
            let extent = self.files.sectors(data, sector, end - sector);
            let most = self.longest_sectors(extent.start);
            Extent::new(extent.start, extent.len.min(Sectors::new(most)))
        })
    }

    /// Extent of the first request of a direct call on a file of `size` bytes, if the call makes one.
    pub(crate) fn first_direct(
        &self,
        op: Op,
        name: FileId,
        offset: u64,
        len: u64,
        size: u64,
    ) -> Option<Extent> {
        let end = self.direct_end(op, name, offset, len, size);
        let sector = offset / self.sector_bytes();
        self.direct_extent(self.data_of(name), sector, end)
    }

    /// Writes the dirty pages of a file, from the process's present page on.
    fn sync(&mut self, process: u32, name: FileId, at: Time) -> Flow {
        let data = self.data_of(name);
        let this = &self.processes[process as usize];
        let (page, last) = (this.page, this.last);
        let asker = self.asker(process);
        match self.write_for_sync(data, page, last, asker, at) {
            Ok(()) => {
                let this = &mut self.processes[process as usize];
                this.page = self.files.data[data as usize].busy.0;
                this.phase = Phase::Wait;
                Flow::On
            }
            // The page became dirty again while it is being written. The process sleeps on that request, and then
            // writes the page again.
            Err((page, io)) => {
                self.processes[process as usize].page = page;
                self.sleep_on(process, io);
                Flow::Stop
            }
        }
    }

    /// Waits for the pages of a file that are being written, one request after the other.
    fn sync_wait(&mut self, process: u32, name: FileId, at: Time) -> Flow {
        let data = self.data_of(name);
        let file = &self.files.data[data as usize];
        let this = &mut self.processes[process as usize];
        let end = this.last.min(file.busy.1);
        while file.writing > 0 && this.page < end {
            let entry = self.cache.get(file.base + this.page);
            if entry.writing() {
                let io = entry.io().expect("a request writes it");
                self.sleep_on(process, io);
                return Flow::Stop;
            }
            this.page += 1;
        }
        let file = &mut self.files.data[data as usize];
        if self.spec.barriers && file.unflushed {
            file.unflushed = false;
            let io = self.ios.add(Purpose::Flush(process));
            let asker = self.asker(process);
            self.submit(io, at, Op::Flush, Extent::at(0, 0), Flags::NONE, asker);
            let this = &mut self.processes[process as usize];
            this.pending += 1;
            this.phase = Phase::Finish;
            self.fell_asleep();
            return Flow::Stop;
        }
        self.finish(process)
    }

    fn forget(&mut self, name: FileId) {
        let data = self.data_of(name);
        let file = &self.files.data[data as usize];
        for page in file.base..file.base + file.room {
            self.cache.forget(page);
        }
        self.unlist(data);
        let file = &mut self.files.data[data as usize];
        (file.dirty, file.writing, file.unflushed) = (0, 0, false);
        file.rest();
        file.size = file.initial_size;
        let window = Readahead::new(self.spec.read_ahead.0 / PAGE);
        let mut at = file.names;
        while at != NONE {
            self.files.names[at as usize].readahead = window;
            at = self.files.names[at as usize].next;
        }
    }

    fn meet(&mut self, process: u32, index: u32, at: Time) -> Flow {
        let barrier = &mut self.barriers[index as usize];
        barrier.come += 1;
        if barrier.come < barrier.members {
            barrier.waiters.push(&mut self.links, process);
            return Flow::Stop;
        }
        barrier.come = 0;
        let mut waiters = std::mem::take(&mut barrier.waiters);
        while let Some(other) = waiters.pop(&self.links) {
            self.wake(other, at);
        }
        Flow::On
    }

    fn end_call(&mut self, process: u32, step: Step, clock: &Clock) -> Flow {
        let this = &mut self.processes[process as usize];
        if let Some(worker) = this.worker {
            if clock.own > clock.now {
                return self.later(process, clock);
            }
            this.worker = None;
            let pool = this.pool.expect("who has a worker has a pool");
            let pool = &mut self.pools[pool as usize];
            match pool.waiters.pop(&self.links) {
                Some(next) => {
                    self.processes[next as usize].worker = Some(worker);
                    self.wake(next, clock.now);
                }
                None => pool.give_back(worker),
            }
        }
        let this = &mut self.processes[process as usize];
        match step {
            Step::Read { .. } | Step::Direct { op: Op::Read, .. } => this.bytes_read += this.bytes,
            Step::Write { .. } | Step::Direct { .. } => this.bytes_written += this.bytes,
            _ => {}
        }
        this.phase = Phase::Fetch;
        if !matches!(step, Step::ReadBlock(_) | Step::DirtyBlock(_)) {
            this.calls += 1;
            self.returned.push(this.called, clock.own);
        }
        Flow::On
    }
}
