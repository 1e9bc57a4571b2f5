//! The file in which a scrub's progress is kept.
//!
//! ```text
//! 12 KiB     what is scrubbed and how, as JSON, written once
//! 4 KiB      sectors that were found and are in no line, since there are too many: `beyond UNREADABLE CHANGED`
//! 4 KiB ..   a bit for each block of the disk, set if the block is done; block n is bit n % 8 of byte n / 8
//! the rest   what else happened, one line each: `unreadable START LEN`, `readable START LEN`, `changed START LEN`, `state running|paused`, `state done DATE`,
//!            `promise SPAN DATE P99` (nanoseconds, milliseconds since 1970 when that was promised, `+5%`; `-` for none of it), `verdict WHAT DATE`
//! ```
//!
//! Pages of bits are written as they are, whenever blocks were done: the kernel has them then, whatever becomes of the server. A
//! line counts once its end is there. Which blocks of a copy are done say the marks of its [`Watch`](super::watch::Watch), and no bits.

use super::blocks::Keeps;
use super::byte_range::ByteRange;
use super::files::{self, DurableFile, HEADER, PAGE};
use super::identity::{Identity, ProgressError, same_disk};
use super::pages::Pages;
use super::promises::Promises;
use super::status::{FoundSectors, ScrubState};
use headtime_engine::Verdict;
use headtime_linux::clock::Wall;
use headtime_units::{Extent, Lba, Nanos, Sectors};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where those are counted that are in no line.
const BEYOND: u64 = (HEADER - PAGE) as u64;

const WHAT: &str = "the progress of a scrub";

const FORMAT: &str = "headtime scrub 1";

/// What is scrubbed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// The disk.
    pub identity: Identity,
    /// What is read: whole blocks, but for the end of the disk.
    pub range: Extent,
    /// What was asked for, which need not be whole blocks; it is what an image has.
    pub part: ByteRange,
    /// Sectors of a block.
    pub block: Sectors,
    /// After how long without requests idle time is used, if it is; as usual if nobody has said.
    pub idle: Option<Option<Nanos>>,
    /// What is kept of blocks, and where, if anything is.
    pub keeps: Option<(Keeps, PathBuf)>,
    /// What is promised of it, which may change while it reads.
    pub promises: Promises,
}

/// What a file says that was there.
#[derive(Debug)]
pub(super) struct Restored {
    /// What is scrubbed.
    pub plan: Plan,
    /// The blocks that are done, as bits.
    pub done: Vec<u64>,
    /// In what state the scrub was.
    pub state: ScrubState,
    /// What could not be read.
    pub unreadable: FoundSectors,
    /// What was not what it was to be.
    pub changed: FoundSectors,
    /// What was last said of its promises, and when.
    pub verdict: Option<(Verdict, Wall)>,
    /// When it was done, if it is.
    pub done_at: Option<Wall>,
}

/// A file of progress.
#[derive(Debug)]
pub(super) struct ProgressFile {
    path: PathBuf,
    file: File,
    pages: Pages,
    /// Pages that are not as the scrub is.
    dirty: BTreeSet<usize>,
    /// All lines, and how many bytes of them are in the file. What was found and pauses may not be there yet: no page of bits is written
    /// before them.
    lines: String,
    written: usize,
    /// Sectors of which the file says that they are in no line, unreadable and changed; `None` if it may say nothing.
    beyond: Option<(u64, u64)>,
}

fn to_json(plan: &Plan) -> Value {
    let mut about = files::about(FORMAT, &plan.identity);
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
    about
}

fn from_json(about: &Value) -> Result<Plan, String> {
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
    // That of a copy is kept; what else was asked for than whole blocks nobody needs to know.
    let sector = u64::from(identity.sector_bytes);
    let blocks = ByteRange {
        start: start * sector,
        end: (start + len) * sector,
    };
    let part = files::part_of(about)?.unwrap_or(blocks);
    if part.start < blocks.start || part.end > blocks.end {
        return Err(format!("{part} are copied, and {blocks} read"));
    }
    Ok(Plan {
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

impl Plan {
    /// Returns true if what is read is copied.
    pub fn is_copy(&self) -> bool {
        matches!(self.keeps, Some((Keeps::Image, _)))
    }

    /// What is copied, if that is not all of the disk.
    pub fn copied_part(&self) -> Option<ByteRange> {
        let is_part = self.is_copy() && self.part != ByteRange::whole(&self.identity);
        is_part.then_some(self.part)
    }

    /// Blocks of which anything is read.
    pub fn range_blocks(&self) -> Range<u64> {
        let block = self.block.get();
        self.range.start.get() / block..self.range.end().get().div_ceil(block)
    }

    /// After how long without requests idle time is used, if it is.
    pub fn idle(&self) -> Option<Nanos> {
        let usual = self.promises.usual_idle();
        self.idle.unwrap_or(Some(usual))
    }

    /// Blocks of the disk.
    pub fn blocks(&self) -> u64 {
        self.identity.capacity.get().div_ceil(self.block.get())
    }

    fn pages(&self) -> Pages {
        Pages::new(HEADER as u64, self.blocks())
    }
}

impl ProgressFile {
    /// A file for a scrub that begins, in place of one that is over. A scrub that begins anew may have found changes before.
    pub fn create(
        path: &Path,
        plan: &Plan,
        changed: &FoundSectors,
        state: &ScrubState,
    ) -> Result<ProgressFile, ProgressError> {
        let failed = |error| files::failed(path, error);
        let file = files::create_beside(path)?;
        let header = files::header(&to_json(plan)).map_err(failed)?;
        let mut progress = ProgressFile {
            path: path.to_owned(),
            file,
            pages: plan.pages(),
            dirty: BTreeSet::new(),
            lines: String::new(),
            written: 0,
            beyond: None,
        };
        let written = (|| {
            progress.file.write_all_at(&header, 0)?;
            files::make_room(&progress.file, progress.pages.end())?;
            for extent in changed.extents() {
                progress.found(Finding::Changed, extent)?;
            }
            progress.beyond(0, changed.beyond())?;
            if *state == ScrubState::Paused {
                progress.state(state.name())?;
            }
            if plan.promises.any() {
                progress.promise(plan.promises)?;
            }
            files::put_in_place(&progress.file, path)
        })();
        written.map_err(|error| {
            files::remove_beside(path);
            failed(error)
        })?;
        Ok(progress)
    }

    /// The file of a scrub of this disk; `None` if there is none.
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
        let about = files::read_header(&file, path, (FORMAT, WHAT))?;
        let mut plan = from_json(&about).map_err(format)?;
        same_disk(path, &plan.identity, disk)?;
        let lines_at = plan.pages().end();
        if length < lines_at {
            return Err(format("it was cut short".to_owned()));
        }
        let done = plan.pages().read(&file).map_err(failed)?;
        let mut text = vec![0; (length - lines_at) as usize];
        file.read_exact_at(&mut text, lines_at).map_err(failed)?;
        // Half a line is none.
        let whole = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        text.truncate(whole);
        let lines = String::from_utf8(text).map_err(|error| format(error.to_string()))?;
        let (mut state, mut verdict, mut done_at) = (ScrubState::Running, None, None);
        let (mut unreadable, mut changed) = (FoundSectors::default(), FoundSectors::default());
        for line in lines.lines() {
            let mut words = line.split(' ');
            let first = words.next();
            let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
            match first {
                Some(what @ ("unreadable" | "readable" | "changed")) => {
                    match (number(), number()) {
                        (Some(start), Some(len)) => {
                            let extent = Extent::new(Lba::new(start), Sectors::new(len));
                            match what {
                                "changed" => changed.add(extent),
                                "readable" => unreadable.remove(extent),
                                _ => unreadable.add(extent),
                            };
                        }
                        _ => return Err(format(line.to_owned())),
                    }
                }
                Some("state") => {
                    state = match words.next() {
                        Some("running") => ScrubState::Running,
                        Some("paused") => ScrubState::Paused,
                        Some("done") => {
                            let at = words.next().map(str::parse).transpose();
                            let at = at.map_err(|_| format(line.to_owned()))?;
                            done_at = at.map(Wall);
                            ScrubState::Done
                        }
                        _ => return Err(format(line.to_owned())),
                    }
                }
                Some("promise") => match Promises::of_words(words) {
                    // Nothing has been said of these.
                    Some(promises) => (plan.promises, verdict) = (promises, None),
                    None => return Err(format(line.to_owned())),
                },
                Some("verdict") => {
                    let name = words.next();
                    let mut said = Verdict::ALL.into_iter();
                    let said = said.find(|verdict| Some(verdict.name()) == name);
                    let at = words.next().and_then(|word| word.parse().ok());
                    match said.zip(at) {
                        Some((said, at)) => verdict = Some((said, Wall(at))),
                        None => return Err(format(line.to_owned())),
                    }
                }
                _ => return Err(format(line.to_owned())),
            }
        }
        let text = files::read_text(&file, BEYOND).map_err(failed)?;
        let mut beyond = text.split_whitespace().skip(1).map(str::parse::<u64>);
        for found in [&mut unreadable, &mut changed] {
            match beyond.next() {
                Some(Ok(sectors)) => found.add_beyond(sectors),
                Some(Err(_)) => return Err(format(text.clone())),
                None => {}
            }
        }
        file.set_len(lines_at + whole as u64).map_err(failed)?;
        let progress = ProgressFile {
            path: path.to_owned(),
            file,
            pages: plan.pages(),
            dirty: BTreeSet::new(),
            written: lines.len(),
            lines,
            beyond: Some((unreadable.beyond(), changed.beyond())),
        };
        let restored = Restored {
            plan,
            done,
            state,
            unreadable,
            changed,
            verdict,
            done_at,
        };
        Ok(Some((progress, restored)))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What makes it durable, on another thread.
    pub fn durable(&self) -> io::Result<Arc<DurableFile>> {
        Ok(DurableFile::of(self.file.try_clone()?, self.path.clone()))
    }

    /// All of it is to be written again, each line where it was.
    pub fn all_changed(&mut self) {
        self.dirty.extend(0..self.pages.count());
        (self.written, self.beyond) = (0, None);
    }

    /// Whether a block is done has changed.
    pub fn changed(&mut self, block: u64) {
        self.dirty.insert(Pages::page_of(block));
    }

    /// Returns true if there is something to write.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty() || self.is_behind()
    }

    /// Returns true if something was found, or a pause begun, that could not be written down yet.
    pub fn is_behind(&self) -> bool {
        self.written < self.lines.len()
    }

    /// Writes the lines that could not be written before.
    pub fn catch_up(&mut self) -> io::Result<()> {
        let lacking = &self.lines.as_bytes()[self.written..];
        let end = self.pages.end() + self.written as u64;
        self.file.write_all_at(lacking, end)?;
        self.written = self.lines.len();
        Ok(())
    }

    /// Writes what has changed. `word` says which of the blocks from 64 times its number on are done.
    pub fn write(&mut self, word: impl Fn(usize) -> u64) -> io::Result<()> {
        self.catch_up()?;
        while let Some(number) = self.dirty.first().copied() {
            self.pages.write(&self.file, number, &word)?;
            self.dirty.remove(&number);
        }
        Ok(())
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        self.catch_up()?;
        self.lines.push_str(text);
        // Who asked says it again, if it is still so.
        let before = self.written;
        self.catch_up().inspect_err(|_| self.lines.truncate(before))
    }

    /// These sectors were found. What cannot be written is written later ([`ProgressFile::catch_up`]).
    pub fn found(&mut self, what: Finding, extent: Extent) -> io::Result<()> {
        let what = match what {
            Finding::Unreadable => "unreadable",
            Finding::Readable => "readable",
            Finding::Changed => "changed",
        };
        let (start, len) = (extent.start.get(), extent.len.get());
        self.lines.push_str(&format!("{what} {start} {len}\n"));
        self.catch_up()
    }

    /// So many sectors were found that cannot be read, and that have changed, and are in no line. It is written if the file does not say so.
    pub fn beyond(&mut self, unreadable: u64, changed: u64) -> io::Result<()> {
        if self.beyond != Some((unreadable, changed)) {
            let text = format!("beyond {unreadable} {changed}\n");
            files::write_text(&self.file, &text, BEYOND)?;
            self.beyond = Some((unreadable, changed));
        }
        Ok(())
    }

    /// The scrub is paused, or runs. What cannot be written is written later.
    pub fn state(&mut self, state: &str) -> io::Result<()> {
        self.lines.push_str(&format!("state {state}\n"));
        self.catch_up()
    }

    /// The scrub is done, at this time.
    pub fn done(&mut self, at: Wall) -> io::Result<()> {
        self.line(&format!("state done {}\n", at.0))
    }

    /// Something else is promised.
    pub fn promise(&mut self, promises: Promises) -> io::Result<()> {
        self.line(&format!("promise {}\n", promises.to_line()))
    }

    /// Something else is said of what is promised.
    pub fn verdict(&mut self, verdict: Verdict, at: Wall) -> io::Result<()> {
        self.line(&format!("verdict {} {}\n", verdict.name(), at.0))
    }

    /// The scrub is given up.
    pub fn remove(&self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }
}

/// What is found of sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// They cannot be read.
    Unreadable,
    /// They could not be read before, and can be now.
    Readable,
    /// They are not what they were, and nobody has written to them.
    Changed,
}

impl Drop for ProgressFile {
    /// Who makes it durable may have it for longer, and is not to keep the next one out.
    fn drop(&mut self) {
        files::unlock(&self.file);
    }
}

#[cfg(test)]
mod tests;
