//! Write-back: dirty pages reach the disk without a sync.
//!
//! The rules follow `mm/page-writeback.c` and `fs/fs-writeback.c` of Linux 2.6.31. A flusher wakes every
//! [`writeback_interval`](crate::HostSpec::writeback_interval) and writes the files that became dirty
//! [`dirty_expire`](crate::HostSpec::dirty_expire) ago. The file that was dirtied first comes first, with at most 1024
//! pages before the next file's turn. While more than the background share of memory is dirty, the flusher writes all
//! dirty data.
//!
//! A process that dirties pages checks the limit now and then. Above the limit, the process writes half again as many
//! pages as lie between two ordinary checks, or waits.
//!
//! The flusher stops while 113 write-back requests are outstanding (a congested queue), and continues below 103.
//! Processes wait for a free request out of 128. Blocks of metadata come after the files, in the order of their
//! addresses.

use crate::cache::{CHUNK, PageId};
use crate::file::{List, NONE};
use crate::flusher::TURN_PAGES;
use crate::host::{FLUSHER, Host, TICK};
use crate::io::Purpose;
use crate::process::Asker;
use headtime_sched::{Flags, Op};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};

/// Outstanding write-back requests at which the queue counts as congested, and below which the congestion ends.
const CONGESTED_REQUESTS: u32 = 113;
const RELIEVED_REQUESTS: u32 = 103;
/// Most outstanding write-back requests (`BLKDEV_MAX_RQ`).
const REQUESTS: u32 = 128;
/// Longest wait of a process that finds nothing to write (`congestion_wait`). The wait ends earlier if a write-back
/// request completes while the queue is not congested.
const CONGESTION_WAIT: Nanos = Nanos::from_millis(100);
/// File or blocks to write next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    File(u32),
    Blocks,
    Nobody,
}

/// Data that may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// All dirty data.
    All,
    /// Data that became dirty up to this time.
    Until(Time),
}

impl Host {
    /// Makes a page of a file dirty.
    pub(crate) fn dirty_page(&mut self, file: u32, page: u32, at: Time) {
        let data = &mut self.files.data[file as usize];
        if !self.cache.make_dirty(data.base + page) {
            return;
        }
        data.dirty += 1;
        data.is_busy(page);
        if data.list == List::None {
            data.dirtied = at;
            self.push(file, List::Dirty);
        }
        self.set_clock(at);
    }

    /// Makes a block of metadata dirty.
    ///
    /// # Errors
    ///
    /// The request that is reading the block. The caller has to wait for it.
    pub(crate) fn dirty_block(&mut self, lba: Lba, at: Time) -> Result<(), u32> {
        let id = self.cache.block(lba.get() / self.page_sectors);
        let entry = self.cache.get(id);
        if !entry.cached() {
            self.cache.insert(id);
        } else if entry.reading() {
            return Err(entry.io().expect("a request reads it"));
        }
        self.cache.touch(id);
        if self.cache.make_dirty(id) {
            if self.write_back.blocks.is_empty() {
                self.write_back.blocks_dirtied = at;
            }
            self.write_back.blocks.push(lba.get());
            self.set_clock(at);
        }
        Ok(())
    }

    /// Sets the flusher's clock to the next multiple of its interval, unless the clock is set.
    fn set_clock(&mut self, at: Time) {
        if self.write_back.ticking {
            return;
        }
        self.write_back.ticking = true;
        let interval = self.write_back.interval.as_nanos();
        let ticks = at.as_nanos() / interval + 1;
        let next = interval.saturating_mul(ticks);
        self.rouse(TICK, Time::from_nanos(next));
    }

    /// Handles a tick of the flusher's clock.
    pub(crate) fn tick(&mut self, at: Time) {
        self.write_back.ticking = false;
        if self.cache.dirty() == 0 {
            return;
        }
        if let Some(until) = at.as_nanos().checked_sub(self.write_back.expire.as_nanos()) {
            self.write_back.expired = Some(Time::from_nanos(until));
        }
        self.flush_on(at);
        self.set_clock(at);
    }

    /// Lets the flusher write until nothing is due or the queue is congested.
    pub(crate) fn flush_on(&mut self, at: Time) {
        let asker = self.write_back.asker;
        // A page that is changed while it is being written stays dirty. A round that writes nothing is therefore the
        // last.
        let mut round = 1;
        loop {
            if self.write_back.outstanding >= CONGESTED_REQUESTS {
                self.write_back.congested = true;
                return;
            }
            let what = if self.cache.dirty() > self.write_back.background {
                What::All
            } else if let Some(until) = self.write_back.expired {
                What::Until(until)
            } else {
                return;
            };
            if self.write_back.due.head == NONE {
                if round == 0 {
                    self.write_back.expired = None;
                    return;
                }
                round = 0;
            }
            match self.next_to_write(what) {
                Next::Nobody => {
                    self.write_back.expired = None;
                    if what != What::All {
                        return;
                    }
                }
                next => round += self.write_turn(next, TURN_PAGES, CONGESTED_REQUESTS, asker, at),
            }
        }
    }

    /// Makes a process that dirtied memory write some pages or wait. Returns true if the process sleeps, and has to
    /// repeat this when it wakes.
    pub(crate) fn throttle(&mut self, process: u32, at: Time) -> bool {
        // If a timer woke the process, the process is still in the list of waiters.
        let waiters = &mut self.write_back.for_relief;
        waiters.remove(&mut self.links, process);
        if self.write_share(process, at) {
            return true;
        }
        if self.cache.dirty() + self.cache.writing() < self.write_back.limit {
            self.write_back.exceeded = false;
        }
        if self.cache.dirty() > self.write_back.background && !self.write_back.congested {
            self.rouse(FLUSHER, at);
        }
        false
    }

    /// Writes the share of a process while the limit is exceeded. Returns true if the process sleeps, either for a free
    /// request or because nothing is left that it could write.
    fn write_share(&mut self, process: u32, at: Time) -> bool {
        let (background, limit) = (self.write_back.background, self.write_back.limit);
        let total = self.cache.dirty() + self.cache.writing();
        if total <= limit || total < (background + limit) / 2 {
            return false;
        }
        self.write_back.exceeded = true;
        let share = self.write_back.share();
        let asker = self.asker(process);
        let mut written = self.processes[process as usize].written;
        while written < share && self.cache.dirty() > limit {
            if self.write_back.outstanding >= REQUESTS {
                self.processes[process as usize].written = written;
                let waiters = &mut self.write_back.for_request;
                waiters.push(&mut self.links, process);
                self.fell_asleep();
                return true;
            }
            let next = self.next_to_write(What::All);
            let wrote = self.write_turn(next, share - written, REQUESTS, asker, at);
            if wrote == 0 && self.write_back.outstanding < REQUESTS {
                break;
            }
            written += wrote;
        }
        self.processes[process as usize].written = written;
        if self.cache.dirty() + self.cache.writing() <= limit || written >= share {
            return false;
        }
        let waiters = &mut self.write_back.for_relief;
        waiters.push(&mut self.links, process);
        self.wake(process, at + CONGESTION_WAIT);
        true
    }

    /// Notes that a write-back request is done. The request still concerned `pages` pages of `file`.
    pub(crate) fn written_back(&mut self, at: Time, file: u32, pages: u32) {
        self.pages_written(file, pages);
        let was = self.write_back.outstanding;
        self.write_back.outstanding = was - 1;
        let mut waiters = self.write_back.for_request;
        if was <= REQUESTS
            && let Some(process) = waiters.pop(&self.links)
        {
            self.wake(process, at);
        }
        self.write_back.for_request = waiters;
        if was > RELIEVED_REQUESTS {
            return;
        }
        let mut waiters = std::mem::take(&mut self.write_back.for_relief);
        while let Some(process) = waiters.pop(&self.links) {
            self.wake(process, at);
        }
        if std::mem::take(&mut self.write_back.congested) {
            self.rouse(FLUSHER, at);
        }
    }

    /// Notes that pages of a file are on the disk.
    pub(crate) fn pages_written(&mut self, file: u32, pages: u32) {
        if file == NONE {
            return;
        }
        let data = &mut self.files.data[file as usize];
        data.writing -= pages;
        data.unflushed = true;
        data.rest();
    }

    /// Writes the dirty pages `page..end` of a file, for a process that waits.
    ///
    /// # Errors
    ///
    /// The first page that became dirty again while it is being written, and the request that writes it.
    pub(crate) fn write_for_sync(
        &mut self,
        file: u32,
        mut page: u32,
        end: u32,
        asker: Asker,
        at: Time,
    ) -> Result<(), (u32, u32)> {
        let base = self.files.data[file as usize].base;
        while page < end && self.files.data[file as usize].dirty > 0 {
            let entry = self.cache.get(base + page);
            if !entry.dirty() {
                page += 1;
            } else if entry.writing() {
                let io = entry.io().expect("a request writes it");
                return Err((page, io));
            } else {
                let purpose = Purpose::Sync(file);
                page += self.write_run(file, page, end, purpose, Flags::SYNC, asker, at);
            }
        }
        let data = &self.files.data[file as usize];
        if data.dirty == 0 && data.list != List::None {
            self.unlist(file);
        }
        Ok(())
    }

    /// Makes one request for the dirty pages of a file from `page` on that are contiguous on the disk. Returns the
    /// number of pages.
    #[expect(
        clippy::too_many_arguments,
        reason = "what, where to, why, how, who, when"
    )]
    fn write_run(
        &mut self,
        file: u32,
        page: u32,
        end: u32,
        purpose: Purpose,
        flags: Flags,
        asker: Asker,
        at: Time,
    ) -> u32 {
        let (start, until) = self.files.place(file, page);
        let until = until.min(end).min(page + self.longest_pages(start));
        let base = self.files.data[file as usize].base;
        let io = self.ios.add(purpose);
        let mut pages = 0;
        while page + pages < until {
            let id = base + page + pages;
            let entry = self.cache.get(id);
            if !entry.dirty() || entry.writing() {
                break;
            }
            self.cache.write(id, io);
            pages += 1;
        }
        let data = &mut self.files.data[file as usize];
        data.dirty -= pages;
        data.writing += pages;
        self.request(io, base + page, pages, start, flags, asker, at);
        pages
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "which, what, where to, how, who, when"
    )]
    fn request(
        &mut self,
        io: u32,
        first: PageId,
        pages: u32,
        start: Lba,
        flags: Flags,
        asker: Asker,
        at: Time,
    ) {
        let request = self.ios.get_mut(io);
        (request.first, request.pages) = (first, pages);
        let extent = Extent::new(start, Sectors::new(u64::from(pages) * self.page_sectors));
        self.submit(io, at, Op::Write, extent, flags, asker);
    }

    /// Chooses the file or blocks to write next. If no file is due, the files that match `what` become due first.
    fn next_to_write(&mut self, what: What) -> Next {
        if self.write_back.due.head == NONE {
            self.write_back.turn = TURN_PAGES;
            while self.write_back.dirty.head != NONE {
                let file = self.write_back.dirty.head;
                if let What::Until(until) = what
                    && self.files.data[file as usize].dirtied > until
                {
                    break;
                }
                self.unlist(file);
                self.push(file, List::Due);
            }
        }
        let blocks = match what {
            What::All => true,
            What::Until(until) => self.write_back.blocks_dirtied <= until,
        };
        match self.write_back.due.head {
            NONE if blocks && !self.write_back.blocks.is_empty() => Next::Blocks,
            NONE => Next::Nobody,
            file => Next::File(file),
        }
    }

    /// Writes at most `most` pages of the file or blocks in `next`, until `full` requests are outstanding. Returns the
    /// number of pages.
    fn write_turn(&mut self, next: Next, most: u32, full: u32, asker: Asker, at: Time) -> u32 {
        match next {
            Next::File(file) => self.write_file(file, most, full, asker, at),
            Next::Blocks => self.write_blocks(most, full, asker, at),
            Next::Nobody => 0,
        }
    }

    fn write_file(&mut self, file: u32, most: u32, full: u32, asker: Asker, at: Time) -> u32 {
        let most = most.min(self.write_back.turn);
        let mut written = 0;
        let data = &self.files.data[file as usize];
        let (base, (first, last)) = (data.base, data.busy);
        let cursor = data.cursor.clamp(first, last);
        // From the cursor to the end, then from the beginning.
        for (from, to) in [(cursor, last), (first, cursor)] {
            let mut page = from;
            while page < to && written < most && self.files.data[file as usize].dirty > 0 {
                if self.write_back.outstanding >= full {
                    self.write_back.turn -= written;
                    self.files.data[file as usize].cursor = page;
                    return written;
                }
                let entry = self.cache.get(base + page);
                if !entry.dirty() || entry.writing() {
                    page += 1;
                    continue;
                }
                let end = to.min(page + (most - written));
                let purpose = Purpose::WriteBack(file);
                let pages = self.write_run(file, page, end, purpose, Flags::NONE, asker, at);
                self.write_back.outstanding += 1;
                written += pages;
                page += pages;
                self.files.data[file as usize].cursor = page;
            }
        }
        self.write_back.turn -= written;
        let data = &mut self.files.data[file as usize];
        let clean = data.dirty == 0;
        if clean || self.write_back.turn == 0 || written < most {
            let over = self.write_back.turn == 0;
            if !clean && !over {
                // The remaining dirty pages are being written, and became dirty again meanwhile.
                data.dirtied = at;
            }
            self.write_back.turn = TURN_PAGES;
            self.unlist(file);
            if !clean {
                self.push(file, if over { List::Due } else { List::Dirty });
            }
        }
        written
    }

    fn write_blocks(&mut self, most: u32, full: u32, asker: Asker, at: Time) -> u32 {
        let mut blocks = std::mem::take(&mut self.write_back.blocks);
        blocks.sort_unstable();
        let (mut done, mut kept) = (0, 0);
        let mut written = 0;
        while done < blocks.len() && written < most && self.write_back.outstanding < full {
            let lba = blocks[done];
            let id = self.known(lba);
            if self.cache.get(id).writing() {
                // The block stays dirty.
                blocks[kept] = lba;
                kept += 1;
                done += 1;
                continue;
            }
            let io = self.ios.add(Purpose::WriteBack(NONE));
            let most = self.longest_pages(Lba::new(lba));
            let mut pages = 0;
            while done < blocks.len()
                && pages < most
                && blocks[done] == lba + u64::from(pages) * self.page_sectors
                // The numbers of a chunk follow each other.
                && blocks[done] / self.page_sectors / CHUNK == lba / self.page_sectors / CHUNK
                && !self.cache.get(id + pages).writing()
            {
                self.cache.write(id + pages, io);
                pages += 1;
                done += 1;
            }
            self.write_back.outstanding += 1;
            written += pages;
            self.request(io, id, pages, Lba::new(lba), Flags::NONE, asker, at);
        }
        if done == blocks.len() {
            // The remaining blocks were changed while they are being written.
            self.write_back.blocks_dirtied = at;
        }
        blocks.drain(kept..done);
        self.write_back.blocks = blocks;
        written
    }

    /// Page number of a dirty block.
    fn known(&self, lba: u64) -> PageId {
        self.cache
            .known_block(lba / self.page_sectors)
            .expect("a dirty block is known")
    }

    /// Puts a file at the end of a list.
    fn push(&mut self, file: u32, list: List) {
        let queue = match list {
            List::Dirty => &mut self.write_back.dirty,
            List::Due => &mut self.write_back.due,
            List::None => return,
        };
        let tail = std::mem::replace(&mut queue.tail, file);
        if tail == NONE {
            queue.head = file;
        } else {
            self.files.data[tail as usize].next = file;
        }
        let data = &mut self.files.data[file as usize];
        (data.list, data.previous, data.next) = (list, tail, NONE);
    }

    /// Takes a file off its list.
    pub(crate) fn unlist(&mut self, file: u32) {
        if self.write_back.due.head == file {
            self.write_back.turn = TURN_PAGES;
        }
        let data = &mut self.files.data[file as usize];
        let (previous, next) = (data.previous, data.next);
        let queue = match std::mem::replace(&mut data.list, List::None) {
            List::Dirty => &mut self.write_back.dirty,
            List::Due => &mut self.write_back.due,
            List::None => return,
        };
        match previous {
            NONE => queue.head = next,
            previous => self.files.data[previous as usize].next = next,
        }
        match next {
            NONE => queue.tail = previous,
            next => self.files.data[next as usize].previous = previous,
        }
    }
}
