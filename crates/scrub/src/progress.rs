//! Progress file of a scrub.
//!
//! ```text
//! 12 KiB     extent and options of the scrub, as JSON, written once.
//! 4 KiB      the summary: `unreadable SECTORS beyond SECTORS changed SECTORS lines BYTES`. The numbers are: all unreadable sectors; the
//!            unreadable sectors in no line, since there are too many; all changed sectors; the bytes of all lines.
//! 4 KiB ..   a bit for each block of the disk. A bit is set if its block is done and no line names an unreadable sector of the block.
//! the rest   other events, one line each: `unreadable START LEN`, `readable START LEN`, `changed START LEN`, `state running|paused`,
//!            `state done DATE`, `promise SPAN DATE P99`, `verdict WHAT DATE`, `looked BLOCK SECTORS`, `compared BLOCKS WHY-NOT`.
//! ```
//!
//! SPAN is in nanoseconds, and P99 is a text such as `+5%`; `-` stands for no promise. DATE is in milliseconds since 1970. A `looked` line
//! says that a block is done, and gives the number of its sectors that lines name as unreadable.
//!
//! Each part and each page of bits ends with a checksum ([`Seal`]), and so does each line. Pages of bits are written whole, whenever blocks
//! were done. The kernel keeps these pages when the server is killed. If a page of bits is damaged, its blocks are read again. If a line is
//! damaged, its block is read again. A damaged file is written anew when it is opened. A copy does not use the bits: the marks of its
//! [`Watch`](super::watch::Watch) say which blocks are done.

mod lines;

use super::blocks::Keeps;
use super::byte_range::ByteRange;
use super::files::{self, DurableFile, FileId, HEADER};
use super::identity::{Identity, ProgressError, same_disk};
use super::pages::Pages;
use super::promises::Promises;
use super::seal::{PAGE, Seal, whole_lines};
use super::status::{Damage, FoundSectors, ScrubState};
use headtime_gaps::Verdict;
use headtime_linux::clock::Wall;
use headtime_linux::shown::one_line;
use headtime_units::{Extent, Nanos, Sectors};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Byte at which the summary begins.
const SUMMARY: u64 = (HEADER - PAGE) as u64;

const WHAT: &str = "the progress of a scrub";

const FORMAT: &str = "headtime scrub 2";

/// Extent and options of a scrub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScrubPlan {
    /// The disk.
    pub identity: Identity,
    /// Sectors to read: whole blocks, except at the end of the disk.
    pub range: Extent,
    /// Bytes of the request, which need not be whole blocks. An image has just these bytes.
    pub part: ByteRange,
    /// Sectors of a block.
    pub block: Sectors,
    /// Time without requests after which idle time is used. The outer `None` stands for the default, the inner one for no use of idle time.
    pub idle: Option<Option<Nanos>>,
    /// Hashes or image to make, and its path.
    pub keeps: Option<(Keeps, PathBuf)>,
    /// Promises, which may change while the scrub reads.
    pub promises: Promises,
}

/// State of a scrub in a file.
#[derive(Clone, Debug)]
pub(super) struct Restored {
    /// Extent and options of the scrub.
    pub plan: ScrubPlan,
    /// The blocks that are done, as bits.
    pub done: Vec<u64>,
    /// State of the scrub.
    pub state: ScrubState,
    /// Sectors that could not be read.
    pub unreadable: FoundSectors,
    /// Sectors whose contents have changed without a write.
    pub changed: FoundSectors,
    /// Last verdict about the promises, and its date.
    pub verdict: Option<(Verdict, Wall)>,
    /// Date of the scrub's end, if the scrub is done.
    pub done_at: Option<Wall>,
    /// Blocks that were compared until the end, and the reason if none could be.
    pub compared: Option<(u64, Option<String>)>,
    /// Damage that was found in the file.
    pub damage: Damage,
}

impl Restored {
    /// State of a scrub that begins. A scrub that begins anew may have found changes before.
    pub fn new(plan: ScrubPlan, changed: &FoundSectors, state: ScrubState) -> Restored {
        Restored {
            done: Vec::new(),
            plan,
            state,
            unreadable: FoundSectors::default(),
            changed: changed.clone(),
            verdict: None,
            done_at: None,
            compared: None,
            damage: Damage::default(),
        }
    }

    /// Returns true if a block is done.
    fn is_done(&self, number: u64) -> bool {
        let word = self.done.get((number / 64) as usize);
        word.is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    fn set_done(&mut self, number: u64) {
        if let Some(word) = self.done.get_mut((number / 64) as usize) {
            *word |= 1 << (number % 64);
        }
    }
}

/// A file of progress.
#[derive(Debug)]
pub(super) struct ProgressFile {
    path: PathBuf,
    file: File,
    id: FileId,
    plan: ScrubPlan,
    pages: Pages,
    /// Pages whose bits in the file are out of date.
    dirty: BTreeSet<usize>,
    /// All lines, and the number of their bytes that are in the file. Lines about findings and pauses may still be missing there. No page
    /// of bits is written before them.
    lines: String,
    written: usize,
    counts: LineCounts,
    /// The summary that the file has; `None` if it may have none.
    summary: Option<String>,
}

fn to_json(plan: &ScrubPlan) -> Result<Value, ProgressError> {
    let mut about = files::about(FORMAT, &plan.identity)?;
    about["start"] = json!(plan.range.start.get());
    about["len"] = json!(plan.range.len.get());
    about["block"] = json!(plan.block.get());
    if let Some(idle) = plan.idle {
        about["idle_ns"] = json!(idle.map(Nanos::as_nanos));
    }
    if let Some((keeps, path)) = &plan.keeps {
        about[keeps.key()] = json!(path);
    }
    if plan.is_copy() {
        files::set_part(&mut about, plan.part);
    }
    Ok(about)
}

fn from_json(about: &Value) -> Result<ScrubPlan, String> {
    let identity = files::disk_of(about)?;
    let number = |key: &str| files::number(about, key);
    let (capacity, block) = (identity.capacity.get(), number("block")?);
    let (start, len) = (number("start")?, number("len")?);
    let inside = start.checked_add(len).is_some_and(|end| end <= capacity);
    if !inside || block == 0 || len == 0 {
        return Err(format!(
            "{len} sectors from {start} on, in blocks of {block}, of {capacity}"
        ));
    }
    let range = Extent::at(start, len);
    // The bytes of a copy are in the file. For other scrubs the whole blocks suffice.
    let sector = u64::from(identity.sector_bytes);
    let blocks = ByteRange {
        start: start * sector,
        end: (start + len) * sector,
    };
    let part = files::part_of(about)?.unwrap_or(blocks);
    if part.start < blocks.start || part.end > blocks.end {
        return Err(format!("{part} are copied, and {blocks} read"));
    }
    Ok(ScrubPlan {
        identity,
        range,
        part,
        block: Sectors::new(block),
        idle: (about.get("idle_ns")).map(|idle| idle.as_u64().map(Nanos::from_nanos)),
        keeps: [Keeps::Hashes, Keeps::Image].into_iter().find_map(|keeps| {
            let path = about[keeps.key()].as_str()?;
            Some((keeps, PathBuf::from(path)))
        }),
        promises: Promises::default(),
    })
}

impl ScrubPlan {
    /// Returns true if the scrub copies.
    pub fn is_copy(&self) -> bool {
        matches!(self.keeps, Some((Keeps::Image, _)))
    }

    /// Bytes that are copied, if the copy is of a part of the disk.
    pub fn copied_part(&self) -> Option<ByteRange> {
        let is_part = self.is_copy() && self.part != ByteRange::whole(&self.identity);
        is_part.then_some(self.part)
    }

    /// Part of the sectors that the scrub reads; `None` if there is no such part.
    pub fn in_range(&self, extent: Extent) -> Option<Extent> {
        let start = extent.start.max(self.range.start);
        let end = extent.end().min(self.range.end());
        (start < end).then(|| Extent::new(start, end - start))
    }

    /// Blocks that lie in the range, wholly or in part.
    pub fn range_blocks(&self) -> Range<u64> {
        let block = self.block.get();
        self.range.start.get() / block..self.range.end().get().div_ceil(block)
    }

    /// Time without requests after which idle time is used; `None` if idle time is not used.
    pub fn idle(&self) -> Option<Nanos> {
        let usual = self.promises.usual_idle();
        self.idle.unwrap_or(Some(usual))
    }

    /// Blocks of the disk.
    pub fn blocks(&self) -> u64 {
        self.identity.capacity.get().div_ceil(self.block.get())
    }

    fn pages(&self, seal: Seal) -> Pages {
        Pages::new(HEADER as u64, self.blocks(), seal)
    }

    /// The sectors of a block.
    fn extent_of(&self, number: u64) -> Extent {
        let start = number * self.block.get();
        let left = self.identity.capacity.get().saturating_sub(start);
        Extent::at(start, self.block.get().min(left))
    }

    /// Bits of the 64 blocks from block `64 * word` on, set for blocks with any of these sectors.
    pub fn with_any(&self, sectors: &FoundSectors, word: usize) -> u64 {
        let first = word as u64 * 64;
        let all = Extent::at(first * self.block.get(), 64 * self.block.get());
        if sectors.within(all) == 0 {
            return 0;
        }
        let has = |bit: &u64| sectors.within(self.extent_of(first + bit)) > 0;
        (0..64).filter(has).fold(0, |bits, bit| bits | 1 << bit)
    }
}

impl ProgressFile {
    /// Makes a file with this state, in place of an earlier file.
    pub fn create(path: &Path, says: &Restored) -> Result<ProgressFile, ProgressError> {
        let failed = |error| files::failed(path, error);
        let (plan, changed, unreadable) = (&says.plan, &says.changed, &says.unreadable);
        let about = to_json(plan)?;
        let header = files::header(&about).map_err(failed)?;
        let seal = Seal::of(about["id"].as_str().unwrap_or_default());
        let file = files::create_beside(path)?;
        let mut progress = ProgressFile {
            path: path.to_owned(),
            id: FileId::of(&file).map_err(failed)?,
            file,
            plan: plan.clone(),
            pages: plan.pages(seal),
            dirty: BTreeSet::new(),
            lines: String::new(),
            written: 0,
            counts: LineCounts::of(unreadable, changed),
            summary: None,
        };
        let bit = |word: usize| {
            let done = says.done.get(word).copied().unwrap_or(0);
            done & !plan.with_any(unreadable, word)
        };
        let written = (|| {
            progress.file.write_all_at(&header, 0)?;
            files::make_room(&progress.file, progress.pages.end())?;
            progress.pages.write_all(&progress.file, bit)?;
            for extent in changed.extents() {
                progress.push(&format!("changed {}", words(extent)));
            }
            for extent in unreadable.extents() {
                progress.push(&format!("unreadable {}", words(extent)));
            }
            let block = plan.block.get();
            let blocks = unreadable
                .extents()
                .into_iter()
                .flat_map(|extent| extent.start.get() / block..extent.end().get().div_ceil(block));
            for number in blocks.collect::<BTreeSet<u64>>() {
                if says.is_done(number) {
                    progress.looked(number, unreadable)?;
                }
            }
            if plan.promises.any() {
                progress.push(&format!("promise {}", plan.promises.to_line()));
            }
            if let Some((verdict, at)) = says.verdict {
                progress.push(&format!("verdict {} {}", verdict.name(), at.0));
            }
            if let Some((compared, why_not)) = &says.compared {
                progress.push(&compared_line(*compared, why_not.as_deref()));
            }
            match (&says.state, says.done_at) {
                (ScrubState::Done, at) => progress.push(&done_line(at)),
                (ScrubState::Paused, _) => progress.push("state paused"),
                _ => {}
            }
            progress.catch_up()?;
            files::put_in_place(&progress.file, path)
        })();
        written.map_err(|error| {
            files::remove_beside(path);
            failed(error)
        })?;
        Ok(progress)
    }

    /// The file of a scrub of this disk; `None` if there is none. A damaged file is written anew.
    pub fn open(
        path: &Path,
        disk: &Identity,
    ) -> Result<Option<(ProgressFile, Restored)>, ProgressError> {
        let failed = |error| files::failed(path, error);
        let format = |problem| files::wrong(path, WHAT, problem);
        let Some(file) = files::open_if_there(path)? else {
            return Ok(None);
        };
        let length = file.metadata().map_err(failed)?.len();
        let (about, seal) = files::read_header(&file, path, (FORMAT, WHAT))?;
        let plan = from_json(&about).map_err(format)?;
        same_disk(path, &plan.identity, disk)?;
        let pages = plan.pages(seal);
        let (done, damaged) = pages.read(&file).map_err(failed)?;
        let mut says = Restored {
            done,
            ..Restored::new(plan, &FoundSectors::default(), ScrubState::Running)
        };
        for page in damaged {
            let extent = Pages::extent_of(page, says.plan.block, says.plan.identity.capacity);
            // A copy does not use the bits.
            let extent = if says.plan.is_copy() {
                Extent::at(0, 0)
            } else {
                extent
            };
            says.damage.add(extent);
        }
        let mut text = vec![0; length.saturating_sub(pages.end()) as usize];
        file.read_exact_at(&mut text, pages.end()).map_err(failed)?;
        let (lines, bad) = whole_lines(&text, pages.end(), seal);
        (0..bad).for_each(|_| says.damage.add(Extent::at(0, 0)));
        let mut looked = Vec::new();
        for line in lines.lines() {
            let line = line.rsplit_once(' ').map_or(line, |(line, _)| line);
            let block = says.take_line(line).map_err(|()| format(line.to_owned()))?;
            looked.extend(block);
        }
        for (number, sectors) in looked {
            // If the numbers differ, a line of the block is lost, and the block is read again.
            let listed = says.unreadable.within(says.plan.extent_of(number));
            if listed == sectors {
                says.set_done(number);
            }
        }
        let summary = files::read_text(&file, seal, SUMMARY).map_err(failed)?;
        let is_whole = says.take_summary(summary.as_deref(), lines.len() as u64);
        is_whole.map_err(|()| format(summary.unwrap_or_default()))?;
        says.resume_if_marks_are_lost();
        let counts = LineCounts::of(&says.unreadable, &says.changed);
        if says.damage.pages > 0 {
            // A whole file takes the place of the damaged file.
            return Ok(Some((ProgressFile::create(path, &says)?, says)));
        }
        file.set_len(pages.end() + lines.len() as u64)
            .map_err(failed)?;
        let progress = ProgressFile {
            path: path.to_owned(),
            id: FileId::of(&file).map_err(failed)?,
            file,
            plan: says.plan.clone(),
            pages,
            dirty: BTreeSet::new(),
            written: lines.len(),
            lines,
            counts,
            summary: None,
        };
        Ok(Some((progress, says)))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that the next server will find the file.
    pub fn is_in_place(&self) -> io::Result<()> {
        match self.id.is_at(&self.path) {
            true => Ok(()),
            false => Err(io::Error::new(
                io::ErrorKind::NotFound,
                "it was removed, or another file is in its place",
            )),
        }
    }

    /// Handle for making the file durable on another thread.
    pub fn durable(&self) -> io::Result<Arc<DurableFile>> {
        Ok(DurableFile::of(self.file.try_clone()?, self.path.clone()))
    }

    /// Marks all of the file as unwritten. Each line is written again at its place.
    pub fn all_changed(&mut self) {
        self.dirty.extend(0..self.pages.count());
        (self.written, self.summary) = (0, None);
    }

    /// Notes that a block has become done, or wanted again.
    pub fn changed(&mut self, block: u64) {
        self.dirty.insert(Pages::page_of(block));
    }

    /// Returns true if there is something to write.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty() || self.is_behind()
    }

    /// Returns true if lines about findings or pauses are not written yet.
    pub fn is_behind(&self) -> bool {
        self.written < self.lines.len()
    }

    /// Writes the lines that could not be written before, and then the summary.
    pub fn catch_up(&mut self) -> io::Result<()> {
        let lacking = &self.lines.as_bytes()[self.written..];
        let end = self.pages.end() + self.written as u64;
        self.file.write_all_at(lacking, end)?;
        self.written = self.lines.len();
        let LineCounts {
            all,
            beyond,
            changed,
        } = self.counts;
        let written = self.written;
        let summary = format!("unreadable {all} beyond {beyond} changed {changed} lines {written}");
        if self.summary.as_ref() != Some(&summary) {
            files::write_text(&self.file, self.pages.seal(), &summary, SUMMARY)?;
            self.summary = Some(summary);
        }
        Ok(())
    }

    /// Writes all changes. `word` gives the bits of the 64 blocks from 64 times its argument on: set if the block is done.
    pub fn write(&mut self, word: impl Fn(usize) -> u64) -> io::Result<()> {
        self.catch_up()?;
        while let Some(number) = self.dirty.first().copied() {
            self.pages.write(&self.file, number, &word)?;
            self.dirty.remove(&number);
        }
        Ok(())
    }

    /// Adds a line without writing it.
    fn push(&mut self, text: &str) {
        let at = self.pages.end() + self.lines.len() as u64;
        let check = self.pages.seal().check(at, text.as_bytes());
        self.lines.push_str(&format!("{text} {check:016x}\n"));
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        self.catch_up()?;
        // If the line cannot be written, the caller adds it again later.
        let before = self.written;
        self.push(text);
        self.catch_up().inspect_err(|_| {
            self.lines.truncate(before);
            self.written = self.written.min(before);
        })
    }

    /// Records a finding about sectors. A line that cannot be written is written later ([`ProgressFile::catch_up`]).
    pub fn found(&mut self, what: Finding, extent: Extent) -> io::Result<()> {
        let what = match what {
            Finding::Unreadable => "unreadable",
            Finding::Readable => "readable",
            Finding::Changed => "changed",
        };
        self.push(&format!("{what} {}", words(extent)));
        self.catch_up()
    }

    /// Records that a block with unreadable sectors is done. A line that cannot be written is written later.
    pub fn looked(&mut self, number: u64, unreadable: &FoundSectors) -> io::Result<()> {
        match unreadable.within(self.plan.extent_of(number)) {
            0 => Ok(()),
            sectors => {
                self.push(&format!("looked {number} {sectors}"));
                self.catch_up()
            }
        }
    }

    /// Writes numbers of sectors that were found, if the file has others.
    pub fn counts(&mut self, counts: LineCounts) -> io::Result<()> {
        self.counts = counts;
        self.catch_up()
    }

    /// Records that the scrub is paused or runs. A line that cannot be written is written later.
    pub fn state(&mut self, state: &str) -> io::Result<()> {
        self.push(&format!("state {state}"));
        self.catch_up()
    }

    /// Records that the scrub is done, at this date. `compared` is the number of blocks that were compared, and the reason if none could
    /// be.
    pub fn done(&mut self, at: Wall, compared: Option<(u64, Option<&str>)>) -> io::Result<()> {
        if let Some((compared, why_not)) = compared {
            self.line(&compared_line(compared, why_not))?;
        }
        self.line(&done_line(Some(at)))
    }

    /// Records new promises.
    pub fn promise(&mut self, promises: Promises) -> io::Result<()> {
        self.line(&format!("promise {}", promises.to_line()))
    }

    /// Records a new verdict about the promises.
    pub fn verdict(&mut self, verdict: Verdict, at: Wall) -> io::Result<()> {
        self.line(&format!("verdict {} {}", verdict.name(), at.0))
    }

    /// Removes the file of a scrub that was stopped. Another file in its place is left alone.
    pub fn remove(&self) -> io::Result<()> {
        match self.id.is_at(&self.path) {
            true => std::fs::remove_file(&self.path),
            false => Ok(()),
        }
    }
}

/// Numbers of sectors that were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineCounts {
    /// Number of sectors that cannot be read, and the part of this number that is in no line.
    all: u64,
    beyond: u64,
    changed: u64,
}

impl LineCounts {
    pub fn of(unreadable: &FoundSectors, changed: &FoundSectors) -> LineCounts {
        LineCounts {
            all: unreadable.sectors(),
            beyond: unreadable.beyond(),
            changed: changed.sectors(),
        }
    }
}

/// Finding about sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// The sectors cannot be read.
    Unreadable,
    /// The sectors could not be read before, and can be now.
    Readable,
    /// The contents of the sectors have changed without a write.
    Changed,
}

impl Drop for ProgressFile {
    /// Releases the lock. The thread that makes the file durable may keep the file open for longer, and must not keep out the next scrub.
    fn drop(&mut self) {
        files::unlock(&self.file);
    }
}

fn words(extent: Extent) -> String {
    format!("{} {}", extent.start.get(), extent.len.get())
}

fn done_line(at: Option<Wall>) -> String {
    match at {
        Some(at) => format!("state done {}", at.0),
        None => "state done".to_owned(),
    }
}

fn compared_line(compared: u64, why_not: Option<&str>) -> String {
    format!(
        "compared {compared} {}",
        one_line(why_not.unwrap_or_default())
    )
}

#[cfg(test)]
mod tests;
