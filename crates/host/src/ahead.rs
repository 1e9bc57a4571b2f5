//! What a process will ask for next, told before it does.
//!
//! A process that is awake, or wakes at a known time, is followed through its coming steps, against
//! memory as it is, until it makes a request: that one is certain, unless another process changes
//! what is in memory before. If it comes to a page that is still being read it is not known when it
//! goes on; it is looked at again when something completes.

use crate::cache::PageId;
use crate::file::NONE;
use crate::host::Host;
use crate::process::Phase;
use crate::readahead::{Cause, Readahead};
use crate::spec::{FileId, PAGE, Step};
use headtime_sched::{Foretold, Op};
use headtime_units::{Extent, Nanos, Sectors, Time};

/// Whether a process is to be looked ahead of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// No: it sleeps, or its next request has been told.
    No,
    /// Yes, from this time on.
    From(Time),
    /// It was, and would sleep on what is being read.
    Stalled(Time),
}

/// So far a process is followed.
const AHEAD: Nanos = Nanos::from_secs(1);
const STEPS: usize = 4096;

/// How following a process ended.
enum End {
    /// It makes this request at this time.
    Asks(Time, Op, Extent),
    /// It sleeps until something completes.
    Sleeps,
    /// It cannot be known.
    Unknown,
}

/// A process as it is followed.
struct Shadow {
    process: u32,
    time: Time,
    until: Time,
    /// The state of readahead of the file read last.
    readahead: Option<(FileId, Readahead)>,
    /// A file that will have been forgotten, or [`NONE`].
    forgotten: u32,
}

/// How a followed process goes on.
type Followed = Result<(), End>;

impl Host {
    /// Looks ahead of all processes for which that is due.
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
                        let origin = self.origin(process);
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

    /// Notes that something has completed, for which a process may have been waiting.
    pub(crate) fn look_again(&mut self) {
        for process in &mut self.processes {
            if let Look::Stalled(from) = process.look {
                process.look = Look::From(from);
            }
        }
    }

    fn follow(&mut self, process: u32, from: Time) -> End {
        let this = &self.processes[process as usize];
        let mut shadow = Shadow {
            process,
            time: from,
            until: from + AHEAD,
            readahead: None,
            forgotten: NONE,
        };
        let range = Range {
            page: this.page,
            last: this.last,
            asked: this.asked,
        };
        let begun = match this.phase {
            Phase::Fetch | Phase::Finish => Ok(()),
            Phase::Begin => self.shadow_step(&mut shadow, this.step),
            Phase::Work => match this.step {
                Step::Read { file, .. } => self.shadow_read(&mut shadow, file, range),
                Step::ReadBlock(_) | Step::DirtyBlock(_) => {
                    self.shadow_step(&mut shadow, this.step)
                }
                // Its requests have completed.
                Step::Direct { .. } => Ok(()),
                _ => Err(End::Unknown),
            },
            Phase::Balance | Phase::Wait | Phase::Ended => Err(End::Unknown),
        };
        if let Err(end) = begun {
            return end;
        }
        for index in 0..STEPS {
            let step = self.processes[process as usize].peek(index);
            if let Err(end) = self.shadow_step(&mut shadow, step) {
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
            Step::Exit => return Err(End::Unknown),
            Step::Forget(file) => {
                if shadow.forgotten != NONE {
                    return Err(End::Unknown);
                }
                shadow.forgotten = self.data_of(file);
            }
            // Whether a worker is free then is not known.
            _ if served && this.worker.is_none() && !self.has_idle(shadow.process) => {
                return Err(End::Unknown);
            }
            Step::Read { file, offset, len } => {
                let size = self.files.data[self.data_of(file) as usize].size;
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
            Step::Write { file, offset, len } => self.shadow_write(shadow, file, offset, len)?,
            Step::ReadBlock(lba) => {
                let page = self.cache.known_block(lba.get() / self.page_sectors);
                let entry = page.map(|page| self.cache.get(page)).unwrap_or_default();
                if entry.reading() {
                    return Err(End::Sleeps);
                }
                if !entry.cached() {
                    let extent = Extent::new(lba, Sectors::new(self.page_sectors));
                    return Err(End::Asks(shadow.time, Op::Read, extent));
                }
            }
            Step::DirtyBlock(lba) => {
                let page = self.cache.known_block(lba.get() / self.page_sectors);
                if page.is_some_and(|page| self.cache.get(page).reading()) {
                    return Err(End::Sleeps);
                }
            }
            Step::Direct {
                op,
                file,
                offset,
                len,
            } => {
                if let Some(extent) = self.first_direct(op, file, offset, len) {
                    return Err(End::Asks(shadow.time, op, extent));
                }
            }
            Step::Sync(file) => {
                let data = &self.files.data[self.data_of(file) as usize];
                if data.dirty > 0 || data.writing > 0 {
                    return Err(End::Unknown);
                }
            }
        }
        Ok(())
    }

    fn shadow_read(&self, shadow: &mut Shadow, name: FileId, range: Range) -> Followed {
        let index = self.data_of(name);
        let data = &self.files.data[index as usize];
        if shadow.forgotten == index {
            return Err(End::Unknown);
        }
        let state = match shadow.readahead {
            Some((known, state)) if known == name => state,
            _ => self.files.names[name.0 as usize].readahead,
        };
        let (_, state) = shadow.readahead.insert((name, state));
        for page in range.page..range.last {
            let entry = self.cache.get(data.base + page);
            let cause = if !entry.cached() {
                Some(Cause::Missing)
            } else {
                entry.marked().then_some(Cause::Marked)
            };
            if let Some(cause) = cause {
                let cached = |page| self.has(data.base, data.room, page);
                let asked = u64::from(range.asked - page);
                let window = state.ask(cause, u64::from(page), asked, cached);
                let first = window.and_then(|window| {
                    let end = (window.start + window.pages).min(u64::from(data.pages()));
                    (window.start..end).find(|page| !cached(*page))
                });
                if let Some(first) = first {
                    let window = window.expect("it has a first page");
                    let end = (window.start + window.pages).min(u64::from(data.pages()));
                    let (start, until) = self.files.place(index, first as u32);
                    let until = until.min(end as u32).min(first as u32 + self.request_pages);
                    let pages = (first as u32..until)
                        .take_while(|page| !self.cache.get(data.base + page).cached())
                        .count();
                    let extent = Extent::new(start, Sectors::new(pages as u64 * self.page_sectors));
                    return Err(End::Asks(shadow.time, Op::Read, extent));
                }
            }
            if entry.reading() {
                return Err(End::Sleeps);
            }
            if !entry.cached() || shadow.time > shadow.until {
                return Err(End::Unknown);
            }
            shadow.time = shadow.time.saturating_add(self.spec.copy_per_page);
        }
        if range.last > range.page {
            state.call_ended(u64::from(range.last) - 1);
        }
        Ok(())
    }

    fn shadow_write(&self, shadow: &mut Shadow, name: FileId, offset: u64, len: u64) -> Followed {
        let index = self.data_of(name);
        let data = &self.files.data[index as usize];
        if shadow.forgotten == index {
            return Err(End::Unknown);
        }
        let end = offset.saturating_add(len).min(u64::from(data.room) * PAGE);
        for page in offset / PAGE..end.div_ceil(PAGE) {
            let entry = self.cache.get(data.base + page as PageId);
            let start = page * PAGE;
            let whole = offset <= start && end >= (start + PAGE).min(data.size);
            if entry.reading() {
                return Err(End::Sleeps);
            }
            if !entry.cached() && start < data.size && !whole {
                let (start, _) = self.files.place(index, page as u32);
                let extent = Extent::new(start, Sectors::new(self.page_sectors));
                return Err(End::Asks(shadow.time, Op::Read, extent));
            }
            if shadow.time > shadow.until {
                return Err(End::Unknown);
            }
            shadow.time = shadow.time.saturating_add(self.spec.copy_per_page);
        }
        Ok(())
    }
}

/// Pages of a call: the next, the one behind the last, the one behind the last asked for.
#[derive(Clone, Copy, Debug)]
struct Range {
    page: u32,
    last: u32,
    asked: u32,
}
