//! Predicts the next request of a process.
//!
//! A process that is awake, or wakes at a known time, is followed through its coming steps, against
//! the present state of memory, until it makes a request. The prediction holds unless another
//! process changes memory first, or memory is so short that a page is evicted between being read
//! and being used. Changes by the process itself count as far as they decide whether it makes a
//! request. If the process comes to a page that is still being read, the time at which it continues
//! is unknown. The process is then followed again when a request completes.

use crate::cache::PageId;
use crate::changes::{Change, Changes};
use crate::host::Host;
use crate::process::{Look, Phase};
use crate::readahead::{Cause, Readahead, Window};
use crate::spec::{FileId, PAGE, Step};
use headtime_sched::{Foretold, Op};
use headtime_units::{Extent, Nanos, Sectors, Time};

/// Longest time for which a process is followed, and most steps.
const FOLLOWED_MAX: Nanos = Nanos::from_secs(1);
const STEPS_MAX: usize = 4096;

/// The end of following a process.
enum End {
    /// The process makes this request at this time.
    Asks(Time, Op, Extent),
    /// The process sleeps until a request completes.
    Sleeps,
    /// The next request cannot be known.
    Unknown,
}

/// A process that is being followed.
struct Shadow {
    process: u32,
    time: Time,
    until: Time,
    changes: Changes,
}

/// Predicted state of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shade {
    Missing,
    Reading,
    Marked,
    /// Marked, and being read.
    MarkedReading,
    Plain,
}

/// `Ok` if the followed process continues, else the end of following.
type Followed = Result<(), End>;

impl Host {
    /// Predicts the next request of each process for which a prediction is due.
    pub(crate) fn look_ahead(&mut self) {
        for process in 0..self.processes.len() as u32 {
            let Look::From(from) = self.processes[process as usize].look else {
                continue;
            };
            let look = match self.follow(process, from) {
                End::Asks(at, op, extent) => {
                    let told = Some((at, extent));
                    if self.processes[process as usize].told != told {
                        self.processes[process as usize].told = told;
                        let origin = self.asker(process).origin;
                        self.foretold.push_back(Foretold {
                            at,
                            op,
                            extent,
                            origin,
                        });
                    }
                    Look::No
                }
                End::Sleeps => Look::Stalled(from),
                End::Unknown => Look::No,
            };
            self.processes[process as usize].look = look;
        }
    }

    /// Notes that a request has completed. Processes that may have waited for the request are
    /// followed again.
    pub(crate) fn look_again(&mut self) {
        for process in &mut self.processes {
            if let Look::Stalled(from) = process.look {
                process.look = Look::From(from);
            }
        }
    }

    fn follow(&mut self, process: u32, from: Time) -> End {
        let mut shadow = Shadow {
            process,
            time: from,
            until: from.saturating_add(FOLLOWED_MAX),
            changes: std::mem::take(&mut self.changes),
        };
        shadow.changes.clear();
        let end = self.follow_shadow(&mut shadow);
        self.changes = shadow.changes;
        end
    }

    fn follow_shadow(&mut self, shadow: &mut Shadow) -> End {
        let process = shadow.process;
        let this = &self.processes[process as usize];
        let range = Range {
            page: this.page,
            last: this.last,
            asked: this.asked,
        };
        let begun = match this.phase {
            Phase::Fetch | Phase::Finish => Ok(()),
            Phase::Begin => self.shadow_step(shadow, this.step),
            Phase::Work => match this.step {
                Step::Read { file, .. } => self.shadow_read(shadow, file, range),
                Step::Write { file, offset, len } => {
                    self.shadow_write(shadow, file, offset, len, u64::from(this.page))
                }
                Step::ReadBlock(_) | Step::DirtyBlock(_) => self.shadow_step(shadow, this.step),
                // All requests of the call have completed.
                Step::Direct { .. } => Ok(()),
                _ => Err(End::Unknown),
            },
            Phase::Balance | Phase::Wait | Phase::Idle | Phase::Ended => Err(End::Unknown),
        };
        if let Err(end) = begun {
            return end;
        }
        for index in 0..STEPS_MAX {
            let step = self.processes[process as usize].peek(index);
            if let Err(end) = self.shadow_step(shadow, step) {
                return end;
            }
            if shadow.time > shadow.until {
                break;
            }
        }
        End::Unknown
    }

    fn shadow_step(&self, shadow: &mut Shadow, step: Step) -> Followed {
        let this = &self.processes[shadow.process as usize];
        let served = this.is_served();
        match step {
            Step::Think(span) => shadow.time = shadow.time.saturating_add(span),
            Step::Barrier(barrier) => {
                let barrier = &self.barriers[barrier.0 as usize];
                if barrier.come + 1 < barrier.members {
                    return Err(End::Unknown);
                }
            }
            // A foretold request carries no class.
            Step::Ask(_) => {}
            Step::Exit => return Err(End::Unknown),
            Step::Forget(file) => {
                let data = self.data_of(file);
                let fresh = Readahead::new(self.spec.read_ahead.0 / PAGE);
                for (name, state) in &mut shadow.changes.names {
                    if self.data_of(*name) == data {
                        *state = fresh;
                    }
                }
                shadow.changes.files.push(Change::Forgotten(data));
            }
            // No worker is free now. The time at which one becomes free is unknown.
            _ if served && this.worker.is_none() && !self.has_idle(shadow.process) => {
                return Err(End::Unknown);
            }
            Step::Read { file, offset, len } => {
                let size = self.shadow_size(shadow, self.data_of(file));
                let end = offset.saturating_add(len);
                let range = Range {
                    page: (offset / PAGE) as u32,
                    last: end.min(size).div_ceil(PAGE) as u32,
                    asked: u32::try_from(end.div_ceil(PAGE)).unwrap_or(u32::MAX),
                };
                if offset < size {
                    self.shadow_read(shadow, file, range)?;
                }
            }
            Step::Write { file, offset, len } => {
                self.shadow_write(shadow, file, offset, len, offset / PAGE)?;
            }
            Step::ReadBlock(lba) => {
                let page = self.cache.known_block(lba.get() / self.page_sectors);
                let entry = page.map(|page| self.cache.get(page)).unwrap_or_default();
                if entry.reading() {
                    return Err(End::Sleeps);
                }
                if !entry.cached() && !shadow.changes.blocks.contains(&lba) {
                    let extent = Extent::new(lba, Sectors::new(self.page_sectors));
                    return Err(End::Asks(shadow.time, Op::Read, extent));
                }
            }
            Step::DirtyBlock(lba) => {
                let page = self.cache.known_block(lba.get() / self.page_sectors);
                if page.is_some_and(|page| self.cache.get(page).reading()) {
                    return Err(End::Sleeps);
                }
                shadow.changes.blocks.push(lba);
            }
            Step::Direct {
                op,
                file,
                offset,
                len,
            } => {
                let size = self.shadow_size(shadow, self.data_of(file));
                if let Some(extent) = self.first_direct(op, file, offset, len, size) {
                    return Err(End::Asks(shadow.time, op, extent));
                }
            }
            Step::Sync(file) => {
                let index = self.data_of(file);
                let data = &self.files.data[index as usize];
                if data.dirty > 0 || data.writing > 0 || shadow.changes.dirty.contains(&index) {
                    return Err(End::Unknown);
                }
            }
        }
        Ok(())
    }

    /// Size of a file at the predicted time.
    fn shadow_size(&self, shadow: &Shadow, index: u32) -> u64 {
        let data = &self.files.data[index as usize];
        let changes = shadow.changes.files.iter();
        changes.fold(data.size, |size, change| match change {
            Change::Forgotten(file) if *file == index => data.initial_size,
            Change::Present {
                file, size: least, ..
            } if *file == index => size.max(*least),
            _ => size,
        })
    }

    /// State of a page of a file at the predicted time.
    fn shade(&self, changes: &[Change], index: u32, page: u64) -> Shade {
        for change in changes.iter().rev() {
            match *change {
                Change::Forgotten(file) if file == index => return Shade::Missing,
                Change::Present {
                    file,
                    pages: (first, end),
                    ..
                } if file == index && (first..end).contains(&page) => return Shade::Plain,
                _ => {}
            }
        }
        let data = &self.files.data[index as usize];
        if page >= u64::from(data.room) {
            return Shade::Missing;
        }
        let entry = self.cache.get(data.base + page as PageId);
        match (entry.cached(), entry.marked(), entry.reading()) {
            (false, ..) => Shade::Missing,
            (true, false, false) => Shade::Plain,
            (true, false, true) => Shade::Reading,
            (true, true, false) => Shade::Marked,
            (true, true, true) => Shade::MarkedReading,
        }
    }

    fn shadow_read(&self, shadow: &mut Shadow, name: FileId, range: Range) -> Followed {
        let index = self.data_of(name);
        let pages = self.shadow_size(shadow, index).div_ceil(PAGE);
        let changes = &mut shadow.changes;
        let known = changes.names.iter().position(|(other, _)| *other == name);
        let known = known.unwrap_or_else(|| {
            let state = match changes.forgets(index) {
                true => Readahead::new(self.spec.read_ahead.0 / PAGE),
                false => self.files.names[name.0 as usize].readahead,
            };
            changes.names.push((name, state));
            changes.names.len() - 1
        });
        for page in u64::from(range.page)..u64::from(range.last) {
            let shade = self.shade(&changes.files, index, page);
            let cause = match shade {
                Shade::Missing => Some(Cause::Missing),
                Shade::Marked | Shade::MarkedReading => Some(Cause::Marked),
                Shade::Reading | Shade::Plain => None,
            };
            if let Some(cause) = cause {
                let cached = |page| self.shade(&changes.files, index, page) != Shade::Missing;
                let asked = u64::from(range.asked) - page;
                let window = changes.names[known].1.ask(cause, page, asked, cached);
                let end = |window: &Window| (window.start + window.pages).min(pages);
                let first = window
                    .as_ref()
                    .and_then(|window| (window.start..end(window)).find(|page| !cached(*page)));
                if let (Some(window), Some(first)) = (&window, first) {
                    let (start, until) = self.files.place(index, first as u32);
                    let until = u64::from(until)
                        .min(end(window))
                        .min(first + u64::from(self.longest_pages(start)));
                    let count = (first..until).take_while(|page| !cached(*page)).count();
                    let sectors = Sectors::new(count as u64 * self.page_sectors);
                    return Err(End::Asks(
                        shadow.time,
                        Op::Read,
                        Extent::new(start, sectors),
                    ));
                }
                if cause == Cause::Missing {
                    // The page is read alone.
                    let (start, _) = self.files.place(index, page as u32);
                    let extent = Extent::new(start, Sectors::new(self.page_sectors));
                    return Err(End::Asks(shadow.time, Op::Read, extent));
                }
            }
            if matches!(shade, Shade::Reading | Shade::MarkedReading) {
                return Err(End::Sleeps);
            }
            if shade == Shade::Marked {
                changes.present(index, (page, page + 1), 0);
            }
            if shadow.time > shadow.until {
                return Err(End::Unknown);
            }
            shadow.time = shadow.time.saturating_add(self.spec.copy_per_page);
        }
        if range.last > range.page {
            let state = &mut changes.names[known].1;
            state.call_ended(u64::from(range.last) - 1);
        }
        Ok(())
    }

    /// Follows a write from its page `first` on.
    fn shadow_write(
        &self,
        shadow: &mut Shadow,
        name: FileId,
        offset: u64,
        len: u64,
        first: u64,
    ) -> Followed {
        let index = self.data_of(name);
        let room = u64::from(self.files.data[index as usize].room) * PAGE;
        let end = offset.saturating_add(len).min(room);
        if !shadow.changes.dirty.contains(&index) {
            shadow.changes.dirty.push(index);
        }
        for page in first..end.div_ceil(PAGE) {
            let shade = self.shade(&shadow.changes.files, index, page);
            if matches!(shade, Shade::Reading | Shade::MarkedReading) {
                return Err(End::Sleeps);
            }
            let start = page * PAGE;
            let size = self.shadow_size(shadow, index);
            let whole = offset <= start && end >= (start + PAGE).min(size);
            if shade == Shade::Missing
                && start < size
                && !whole
                && !self.is_hole(index, page as u32)
            {
                let (start, _) = self.files.place(index, page as u32);
                let extent = Extent::new(start, Sectors::new(self.page_sectors));
                return Err(End::Asks(shadow.time, Op::Read, extent));
            }
            if shadow.time > shadow.until {
                return Err(End::Unknown);
            }
            if shade == Shade::Missing || end > size {
                let least = end.min(start + PAGE);
                shadow.changes.present(index, (page, page + 1), least);
            }
            shadow.time = shadow.time.saturating_add(self.spec.copy_per_page);
        }
        Ok(())
    }
}

/// Pages of a call: the next page, the end of its pages, and the end of the pages asked for.
#[derive(Clone, Copy, Debug)]
struct Range {
    page: u32,
    last: u32,
    asked: u32,
}
