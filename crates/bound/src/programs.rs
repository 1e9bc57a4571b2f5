//! Work that programs need from a disk, computed from their steps.
//!
//! The steps of a process depend only on the process, so they can be followed without a disk. Every run needs all the
//! work that is counted here:
//!
//! - A page comes from the disk if it is read or partly overwritten, and no process has written it before. So does a
//!   block of metadata.
//! - If a process alone uses a file and touches such a page, the process sleeps until a command for the page is done.
//!   The earliest time of sending the command is when a window of readahead can reach the page. This is two windows
//!   ahead of the page, or in the same call.
//! - A direct call takes the time of its commands.
//! - Pages of calls are copied. Processes think and meet.
//!
//! Three kinds of work are left out: reading evicted pages again, waiting for workers of a pool, and writing data from
//! the page cache to the disk.

use crate::array::{Array, largest_share, split};
use crate::chain::{Chain, Link};
use crate::command::{Commands, Floors, Load};
use crate::spans::Spans;
use headtime_host::{HostPlan, HostSpec, PAGE, Step};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Sectors, Time};
use std::collections::BTreeMap;

/// Largest number of programs' steps and touched pages for which a bound is computed. Each takes up to 40 bytes. Files
/// may have eight times as many pages.
pub const STEPS_MAX: u64 = 1 << 25;

/// User of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum User {
    #[default]
    Nobody,
    One(u32),
    Several,
}

impl User {
    fn add(&mut self, process: u32) {
        *self = match *self {
            User::Nobody => User::One(process),
            User::One(one) if one == process => User::One(one),
            _ => User::Several,
        };
    }
}

/// A set of pages.
#[derive(Debug, Default)]
struct Pages(Vec<u64>);

impl Pages {
    fn new(count: u64) -> Pages {
        Pages(vec![0; count.div_ceil(64) as usize])
    }

    fn has(&self, page: u64) -> bool {
        self.0[(page / 64) as usize] & 1 << (page % 64) != 0
    }

    fn add(&mut self, page: u64) {
        self.0[(page / 64) as usize] |= 1 << (page % 64);
    }

    fn remove(&mut self, page: u64) {
        self.0[(page / 64) as usize] &= !(1 << (page % 64));
    }
}

/// A file. In the sets of pages, the file's pages have the numbers from `base` on.
struct Data {
    base: u64,
    /// Pages and bytes at the start, and pages that the file's extents have room for.
    pages: u64,
    size: u64,
    room: u64,
    user: User,
    /// For each stretch of pages, the mark of the present process's first access to the stretch, or of a longer call
    /// that requested one of its pages. [`NEVER`] if there is none.
    asked: Vec<u32>,
    /// The mark of the last wait.
    since: Option<u32>,
}

/// No mark.
const NEVER: u32 = u32::MAX;

/// A block of metadata.
#[derive(Default)]
struct Block {
    number: u32,
    user: User,
    present: bool,
    needed: bool,
    written: bool,
}

/// Work of one process.
#[derive(Default)]
struct Needs {
    program: u32,
    /// Requests of direct calls.
    reads: Vec<Extent>,
    writes: Vec<Extent>,
    read_calls: u64,
    write_calls: u64,
    /// Range of sectors that the process's requests may touch: the first, and the one after the last.
    hull: Option<(u64, u64)>,
}

/// Work of a drive, for all processes.
pub(crate) struct Share {
    /// Sectors that must be read, and sectors that must be written.
    pub reads: Spans,
    pub writes: Spans,
    /// Sectors that may be written, so that a read need not come from the medium.
    pub maybe_written: Spans,
    pub load: Load,
}

/// Work of all processes together.
pub(crate) struct Needed {
    /// By drive.
    pub shares: Vec<Share>,
    pub chains: Vec<Chain>,
    pub barriers: Vec<u32>,
    /// Least time of fetching each resource.
    pub fetch: Vec<Nanos>,
    /// By process: the program, and by drive the sectors that must be read and that no other process uses.
    pub of_processes: Vec<(u32, Vec<Spans>)>,
}

/// State while the steps of the processes are followed, one process after the other.
///
/// Invariants:
///
/// - `data.len() = files.len()`; `data[i].base` = Σ of `room` of `data[..i]`.
/// - `present`, `needed` and `written` have a bit for each page of the sum of all `room`.
/// - Numbers of `blocks` are `data.len()..data.len() + blocks.len()`.
/// - `needed` ⇒ `present`, for each of `blocks`.
struct Walk<'a> {
    spec: &'a HostSpec,
    floors: &'a Floors,
    array: Option<&'a Array>,
    page_sectors: u64,
    files: &'a [headtime_host::File],
    data: Vec<Data>,
    blocks: BTreeMap<u64, Block>,
    present: Pages,
    needed: Pages,
    written: Pages,
    /// Pages of the longest readahead window.
    window: u64,
    process: u32,
    chain: Chain,
    needs: Needs,
}

/// Follows all steps of all processes. Every process must end. Returns `None` if there are too many steps.
pub(crate) fn needed(
    mut plan: HostPlan,
    floors: &Floors,
    merge: Option<Sectors>,
    array: Option<&Array>,
) -> Option<Needed> {
    let processes = std::mem::take(&mut plan.processes);
    let mut base = 0;
    let data: Vec<Data> = plan
        .files
        .iter()
        .map(|file| {
            let sectors: u64 = file.extents.iter().map(|extent| extent.len.get()).sum();
            let data = Data {
                base,
                pages: file.size.div_ceil(PAGE),
                size: file.size,
                room: sectors / plan.page_sectors,
                user: User::Nobody,
                asked: Vec::new(),
                since: None,
            };
            base += data.room;
            data
        })
        .collect();
    if base > 8 * STEPS_MAX {
        return None;
    }
    let mut left = STEPS_MAX;
    let names = |name| plan.file_of(name);
    let numbers = |barrier| plan.number_of(barrier);
    let mut walk = Walk {
        spec: &plan.spec,
        floors,
        array,
        page_sectors: plan.page_sectors,
        files: &plan.files,
        data,
        blocks: BTreeMap::new(),
        present: Pages::new(base),
        needed: Pages::new(base),
        written: Pages::new(base),
        window: plan.spec.read_ahead.0 / PAGE,
        process: 0,
        chain: Chain::default(),
        needs: Needs::default(),
    };
    let (mut chains, mut all) = (Vec::new(), Vec::new());
    for (number, mut process) in (0..).zip(processes) {
        walk.begin(number, process.program, process.start);
        loop {
            let step = process.behaviour.next();
            left = left.checked_sub(pages_of(&step))?;
            match step {
                Step::Exit => break,
                // The class does not change the work.
                Step::Ask(_) => {}
                Step::Read { file, offset, len } => walk.read(names(file), offset, len),
                Step::Write { file, offset, len } => walk.write(names(file), offset, len),
                Step::Direct {
                    op,
                    file,
                    offset,
                    len,
                } => walk.direct(op, names(file), offset, len),
                Step::Sync(file) => walk.data[names(file)].user.add(number),
                Step::Forget(file) => walk.forget(names(file)),
                Step::Think(span) => walk.chain.spend(span),
                Step::ReadBlock(lba) => walk.block(lba.get(), false),
                Step::DirtyBlock(lba) => walk.block(lba.get(), true),
                Step::Barrier(barrier) => {
                    walk.chain.push(Link::Meet(numbers(barrier) as u32));
                }
            }
        }
        let (chain, needs) = walk.end();
        chains.push(chain);
        all.push(needs);
    }
    Some(walk.sum_up(chains, all, plan.barriers().to_vec(), merge))
}

/// Returns the cost of a step here: 1, plus the number of pages that it may touch.
fn pages_of(step: &Step) -> u64 {
    match step {
        Step::Read { len, .. } | Step::Write { len, .. } => 1 + len / PAGE,
        _ => 1,
    }
}

impl Walk<'_> {
    fn begin(&mut self, process: u32, program: u32, start: Time) {
        self.process = process;
        self.chain = Chain::new(start);
        self.needs = Needs {
            program,
            ..Needs::default()
        };
        for data in &mut self.data {
            data.asked.clear();
            data.since = None;
        }
    }

    fn end(&mut self) -> (Chain, Needs) {
        (
            std::mem::take(&mut self.chain),
            std::mem::take(&mut self.needs),
        )
    }

    fn uses(&mut self, start: u64, end: u64) {
        let hull = self.needs.hull.get_or_insert((start, end));
        *hull = (hull.0.min(start), hull.1.max(end));
    }

    fn uses_file(&mut self, file: usize) {
        if self.data[file].user == User::One(self.process) {
            return;
        }
        self.data[file].user.add(self.process);
        let files = self.files;
        for extent in &files[file].extents {
            self.uses(extent.start.get(), extent.end().get());
        }
    }

    /// Follows a read call page by page.
    fn read(&mut self, file: usize, offset: u64, len: u64) {
        self.uses_file(file);
        let data = &self.data[file];
        let asked = offset.saturating_add(len);
        // The file may have grown, but it has at least its initial size.
        let end = asked.min(data.size);
        if end <= offset {
            return;
        }
        let (first, end, asked) = (offset / PAGE, end.div_ceil(PAGE), asked.div_ceil(PAGE));
        // A long call may request all its pages as one window.
        if asked - first > 2 * self.window && self.window > 0 {
            for page in (first..asked.min(end)).step_by(self.stretch() as usize) {
                self.ask(file, page);
            }
        }
        for page in first..end {
            self.touch(file, page, true);
            self.chain.spend(self.spec.copy_per_page);
        }
    }

    /// Returns the number of pages in a stretch: half a readahead window, at least 1. Each stretch of a file has only one
    /// mark, however many readahead requests begin there.
    fn stretch(&self) -> u64 {
        (self.window / 2).max(1)
    }

    /// Notes that readahead may be requested at this page or an earlier page of its stretch.
    fn ask(&mut self, file: usize, page: u64) {
        if self.window == 0 {
            return;
        }
        let at = (page / self.stretch()) as usize;
        let asked = &mut self.data[file].asked;
        if asked.len() <= at {
            asked.resize(at + 1, NEVER);
        }
        if asked[at] == NEVER {
            asked[at] = self.chain.mark();
        }
    }

    /// Notes that the process needs a page. If `asks` is true, the process requests readahead first.
    fn touch(&mut self, file: usize, page: u64, asks: bool) {
        let stretch = self.stretch();
        let data = &mut self.data[file];
        let id = data.base + page;
        if self.present.has(id) {
            if asks {
                self.ask(file, page);
            }
            return;
        }
        self.present.add(id);
        if !self.written.has(id) {
            self.needed.add(id);
        }
        // A request at a page reaches up to two windows beyond it. So no request has reached this page before the
        // earliest of these marks.
        let from = (page + 1).saturating_sub(2 * self.window) / stretch;
        let last = (page / stretch) as usize;
        let near = from as usize..data.asked.len().min(last + 1);
        let marks = data.asked.get(near).unwrap_or_default();
        let since = marks.iter().copied().min().filter(|mark| *mark != NEVER);
        let known = since.is_some() && since == data.since;
        if since.is_some() {
            data.since = since;
        }
        // Readahead is requested before the process waits.
        if asks {
            self.ask(file, page);
        }
        match since {
            None => self.chain.push(Link::Fetch(file as u32)),
            Some(mark) if !known => self.chain.push(Link::Since(file as u32, mark)),
            Some(_) => {}
        }
    }

    /// Follows a write call. Pages that the call overwrites only in part have to be read.
    fn write(&mut self, file: usize, offset: u64, len: u64) {
        self.uses_file(file);
        let data = &self.data[file];
        let (base, size) = (data.base, data.size);
        let end = offset.saturating_add(len).min(data.room * PAGE);
        if end <= offset {
            return;
        }
        for page in offset / PAGE..end.div_ceil(PAGE) {
            let start = page * PAGE;
            let part = offset > start || end < (start + PAGE).min(size);
            if start < size && part {
                self.touch(file, page, false);
            }
            self.present.add(base + page);
            self.written.add(base + page);
            self.chain.spend(self.spec.copy_per_page);
        }
    }

    fn direct(&mut self, op: Op, file: usize, offset: u64, len: u64) {
        let data = &self.data[file];
        let most = match op {
            Op::Read => data.size,
            _ => data.room * PAGE,
        };
        let end = offset.saturating_add(len).min(most);
        if end <= offset {
            return;
        }
        let sector_bytes = PAGE / self.page_sectors;
        let (mut sector, end) = (offset / sector_bytes, end.div_ceil(sector_bytes));
        let request_max = self.spec.request_max.0 / PAGE * self.page_sectors;
        let (reads, writes) = (self.needs.reads.len(), self.needs.writes.len());
        while sector < end {
            let extent = place(self.files, file, sector, (end - sector).min(request_max));
            sector += extent.len.get();
            self.uses(extent.start.get(), extent.end().get());
            match op {
                Op::Read => self.needs.reads.push(extent),
                Op::Write => self.needs.writes.push(extent),
                _ => {}
            }
        }
        match op {
            Op::Read => self.needs.read_calls += 1,
            Op::Write => self.needs.write_calls += 1,
            _ => {}
        }
        // Data of all requests share the bus. The other parts of the requests may overlap.
        let asked = match op {
            Op::Read => &self.needs.reads[reads..],
            _ => &self.needs.writes[writes..],
        };
        let share = largest_share(self.array, asked);
        self.chain.spend(self.floors.command(op, share));
    }

    fn forget(&mut self, file: usize) {
        self.uses_file(file);
        let data = &mut self.data[file];
        for page in data.base..data.base + data.room {
            self.present.remove(page);
        }
        data.asked.clear();
        data.since = None;
    }

    fn block(&mut self, lba: u64, dirty: bool) {
        let number = self.data.len() + self.blocks.len();
        self.uses(lba, lba + self.page_sectors);
        let block = self.blocks.entry(lba).or_insert_with(|| Block {
            number: number as u32,
            ..Block::default()
        });
        block.user.add(self.process);
        if dirty {
            block.written = true;
        } else if !block.present {
            block.needed |= !block.written;
            self.chain.push(Link::Fetch(block.number));
        }
        block.present = true;
    }

    fn sum_up(
        self,
        chains: Vec<Chain>,
        all: Vec<Needs>,
        barriers: Vec<u32>,
        merge: Option<Sectors>,
    ) -> Needed {
        // Two members may each hold half of a page.
        let page = match self.array {
            None => self.page_sectors,
            Some(_) => self.page_sectors.div_ceil(2),
        };
        let one_page = self.floors.command(Op::Read, Sectors::new(page));
        let alone = |user: User| match user {
            User::One(_) => one_page,
            _ => Nanos::ZERO,
        };
        let mut fetch: Vec<Nanos> = self.data.iter().map(|data| alone(data.user)).collect();
        fetch.resize(self.data.len() + self.blocks.len(), Nanos::ZERO);
        let mut own: Vec<Vec<Extent>> = vec![Vec::new(); all.len()];
        let (mut pages, mut maybe) = (Vec::new(), Vec::new());
        for (number, data) in self.data.iter().enumerate() {
            let shared = data.user == User::Several;
            let extents = &self.files[number].extents;
            let must = |page| {
                let id = data.base + page;
                self.needed.has(id) && !(shared && self.written.has(id))
            };
            let first = pages.len();
            runs(
                extents,
                self.page_sectors,
                data.room.min(data.pages),
                must,
                &mut pages,
            );
            if let User::One(process) = data.user {
                own[process as usize].extend(&pages[first..]);
            }
            let written = |page| self.written.has(data.base + page);
            runs(extents, self.page_sectors, data.room, written, &mut maybe);
        }
        for (lba, block) in &self.blocks {
            let extent = Extent::at(*lba, self.page_sectors);
            fetch[block.number as usize] = alone(block.user);
            if block.written {
                maybe.push(extent);
            }
            match block.user {
                User::One(process) if block.needed => {
                    own[process as usize].push(extent);
                    pages.push(extent);
                }
                _ if block.needed && !block.written => pages.push(extent),
                _ => {}
            }
        }
        let most = Sectors::new(self.spec.request_max.0 / PAGE * self.page_sectors);
        let most = most.max(merge.unwrap_or(Sectors::ZERO));
        // The member of a single request is unknown.
        let least = match self.array {
            None => one_by_one(&chains, &all, &fetch),
            Some(_) => [0, 0],
        };
        let direct = |of: fn(&Needs) -> &Vec<Extent>| {
            let requests = all.iter().flat_map(of).copied().collect();
            split(self.array, requests)
        };
        let (reads, writes) = (direct(|needs| &needs.reads), direct(|needs| &needs.writes));
        let buffered = split(self.array, pages).into_iter().map(Spans::of);
        let maybe = split(self.array, maybe).into_iter().map(Spans::of);
        let shares = reads.into_iter().zip(writes).zip(buffered).zip(maybe);
        let shares = shares.map(|(((reads, writes), buffered), maybe_written)| Share {
            reads: Spans::of(reads.iter().copied()).and(&buffered),
            writes: Spans::of(writes.iter().copied()),
            maybe_written,
            load: load([reads, writes], &buffered, least, most, merge),
        });
        let of_processes = all
            .iter()
            .zip(own)
            .map(|(needs, mut own)| {
                own.extend(&needs.reads);
                let own = split(self.array, own).into_iter().map(Spans::of);
                (needs.program, own.collect())
            })
            .collect();
        Needed {
            shares: shares.collect(),
            chains,
            barriers,
            fetch,
            of_processes,
        }
    }
}

/// Returns the least numbers of reads and of writes, since processes wait for some requests one by one.
///
/// If a process waits for a request and then sends the next, it needs two commands. Processes with disjoint ranges of
/// sectors share no command.
fn one_by_one(chains: &[Chain], all: &[Needs], fetch: &[Nanos]) -> [u64; 2] {
    let mut hulls: Vec<(u64, u64, usize)> = Vec::new();
    for (process, needs) in all.iter().enumerate() {
        hulls.extend(needs.hull.map(|(start, end)| (start, end, process)));
    }
    hulls.sort_unstable();
    let mut calls = [0, 0];
    let mut behind = 0;
    for (at, &(start, end, process)) in hulls.iter().enumerate() {
        let apart =
            (at == 0 || start > behind) && hulls.get(at + 1).is_none_or(|next| next.0 > end);
        behind = behind.max(end);
        if !apart {
            continue;
        }
        let is_fetch = |link: &&Link| matches!(link, Link::Fetch(resource) if !fetch[*resource as usize].is_zero());
        let fetches = chains[process].links.iter().filter(is_fetch).count() as u64;
        calls[0] += fetches + all[process].read_calls;
        calls[1] += all[process].write_calls;
    }
    calls
}

/// Returns the load of a drive by `direct` reads and writes and by `buffered` sectors.
///
/// No command has more than `most` sectors. The drive has at least `least` reads and writes.
fn load(
    direct: [Vec<Extent>; 2],
    buffered: &Spans,
    least: [u64; 2],
    most: Sectors,
    merge: Option<Sectors>,
) -> Load {
    let [reads, writes] = direct.map(|requests| Commands::of(requests, merge.map(|_| most)));
    // Readahead may read the sectors of a gap. Then one command spans the gap.
    let mut covered = 0;
    let mut commands = 0;
    for extent in buffered.extents() {
        let (start, end) = (extent.start.get().max(covered), extent.end().get());
        if start < end {
            let more = (end - start).div_ceil(most.get());
            commands += more;
            covered = start + more * most.get();
        }
    }
    Load {
        reads: Commands {
            count: reads.count.max(commands).max(least[0]),
            sectors: reads.sectors + buffered.sectors(),
            longest: most.get(),
        },
        writes: Commands {
            count: writes.count.max(least[1]),
            ..writes
        },
        others: 0,
    }
}

/// Returns the place of a file's sectors from `sector` on: `len` sectors, or fewer if they are not contiguous on the
/// disk.
fn place(files: &[headtime_host::File], file: usize, sector: u64, len: u64) -> Extent {
    let (mut before, mut found) = (0, None);
    for extent in &files[file].extents {
        match found {
            None if sector < before + extent.len.get() => {
                let skipped = sector - before;
                found = Some(Extent::at(
                    extent.start.get() + skipped,
                    (extent.len.get() - skipped).min(len),
                ));
            }
            None => before += extent.len.get(),
            // Adjacent extents form one piece.
            Some(piece) if piece.len.get() < len && piece.end() == extent.start => {
                let more = (len - piece.len.get()).min(extent.len.get());
                found = Some(Extent::new(piece.start, piece.len + Sectors::new(more)));
            }
            Some(_) => break,
        }
    }
    found.expect("a call ends within the file's extents")
}

/// Appends the sectors of all `wanted` pages among the first `pages` pages of a file to `into`.
fn runs(
    extents: &[Extent],
    page_sectors: u64,
    pages: u64,
    wanted: impl Fn(u64) -> bool,
    into: &mut Vec<Extent>,
) {
    let mut page = 0;
    for extent in extents {
        let count = (extent.len.get() / page_sectors).min(pages.saturating_sub(page));
        let mut at = 0;
        while at < count {
            let first = at;
            while at < count && wanted(page + at) {
                at += 1;
            }
            if at > first {
                let start = extent.start.get() + first * page_sectors;
                into.push(Extent::at(start, (at - first) * page_sectors));
            } else {
                at += 1;
            }
        }
        page += count;
    }
}
