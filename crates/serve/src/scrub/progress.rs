//! The file in which a scrub's progress is kept.
//!
//! ```text
//! 16 KiB     what is scrubbed and how, as JSON, written once
//! 4 KiB ..   a bit for each block of the disk, set if the block is done; block n is bit n % 8 of byte n / 8
//! the rest   what else happened, one line each: `unreadable START LEN`, `state running|paused|done`
//! ```
//!
//! Pages of bits are written as they are, whenever blocks were done: the kernel has them then, whatever becomes of the server. A
//! line counts once its end is there.

use super::status::{ScrubState, Unreadable};
use headtime_units::{Extent, Lba, Nanos, Sectors};
use rustix::fs::FlockOperation;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes of the beginning.
const HEADER: usize = 16 << 10;

/// Bytes of a page of bits, and words.
const PAGE: usize = 4096;
const WORDS: usize = PAGE / 8;

const FORMAT: &str = "headtime scrub 1";

/// Which disk it is, as far as that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// What is behind it: a serial number, or the path of a device or a store.
    pub device: String,
    /// Its sectors.
    pub capacity: Sectors,
    /// Bytes of a sector.
    pub sector_bytes: u32,
}

/// What is scrubbed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// The disk.
    pub identity: Identity,
    /// What is read: whole blocks, but for the end of the disk.
    pub range: Extent,
    /// Sectors of a block.
    pub block: Sectors,
    /// After how long without requests idle time is used, if it is.
    pub idle: Option<Nanos>,
}

/// Why the progress of a scrub cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ProgressError {
    /// The file cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        error: io::Error,
    },
    /// Another server has it.
    #[error("{}: in use by another server", .0.display())]
    InUse(PathBuf),
    /// It is something else.
    #[error("{}: not the progress of a scrub: {problem}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// It is of another disk.
    #[error("{}: of another disk: {problem}; move it away, or scrub that disk", path.display())]
    OtherDisk {
        /// The file.
        path: PathBuf,
        /// In what they differ.
        problem: String,
    },
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
    pub unreadable: Unreadable,
}

/// A file of progress.
#[derive(Debug)]
pub(super) struct ProgressFile {
    path: PathBuf,
    file: File,
    pages: usize,
    /// Pages that are not as the scrub is.
    dirty: BTreeSet<usize>,
    /// Where the next line begins.
    end: u64,
}

fn to_json(plan: &Plan) -> Value {
    json!({
        "format": FORMAT,
        "device": plan.identity.device,
        "sectors": plan.identity.capacity.get(),
        "sector_bytes": plan.identity.sector_bytes,
        "start": plan.range.start.get(),
        "len": plan.range.len.get(),
        "block": plan.block.get(),
        "idle_ns": plan.idle.map(Nanos::as_nanos),
    })
}

fn from_json(text: &[u8]) -> Result<Plan, String> {
    let end = text.iter().position(|byte| *byte == 0);
    let text = &text[..end.unwrap_or(text.len())];
    let value: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let number = |key: &str| {
        let number = value[key].as_u64();
        number.ok_or_else(|| format!("`{key}` is no number"))
    };
    if value["format"] != FORMAT {
        return Err(format!("its format is not \"{FORMAT}\""));
    }
    let (capacity, block) = (number("sectors")?, number("block")?);
    let (start, len) = (number("start")?, number("len")?);
    let inside = start.checked_add(len).is_some_and(|end| end <= capacity);
    if !inside || block == 0 || len == 0 {
        return Err(format!(
            "{len} sectors from {start} on, in blocks of {block}, of {capacity}"
        ));
    }
    Ok(Plan {
        identity: Identity {
            device: value["device"].as_str().unwrap_or_default().to_owned(),
            capacity: Sectors::new(capacity),
            sector_bytes: u32::try_from(number("sector_bytes")?).map_err(|e| e.to_string())?,
        },
        range: Extent::at(start, len),
        block: Sectors::new(block),
        idle: value["idle_ns"].as_u64().map(Nanos::from_nanos),
    })
}

impl Plan {
    /// Blocks of the disk.
    fn blocks(&self) -> u64 {
        self.identity.capacity.get().div_ceil(self.block.get())
    }

    fn pages(&self) -> usize {
        (self.blocks() as usize).div_ceil(PAGE * 8)
    }

    /// In what a disk differs from the one of this plan, if it does.
    pub fn differs(&self, disk: &Identity) -> Option<String> {
        let (then, now) = (&self.identity, disk);
        let bytes = |identity: &Identity| identity.capacity.bytes(identity.sector_bytes);
        if then.device != now.device {
            return Some(format!("it was {}, and is {}", then.device, now.device));
        }
        if then.sector_bytes != now.sector_bytes {
            let (then, now) = (then.sector_bytes, now.sector_bytes);
            return Some(format!("its sectors had {then} bytes, and have {now}"));
        }
        let how = match then.capacity.cmp(&now.capacity) {
            std::cmp::Ordering::Equal => return None,
            std::cmp::Ordering::Greater => "shrunk",
            std::cmp::Ordering::Less => "grown",
        };
        let (then, now) = (bytes(then), bytes(now));
        Some(format!("it has {how} from {then} bytes to {now}"))
    }
}

impl ProgressFile {
    /// A file for a scrub that begins, in place of one that is over.
    pub fn create(path: &Path, plan: &Plan) -> Result<ProgressFile, ProgressError> {
        let failed = |error| ProgressError::Io {
            path: path.to_owned(),
            error,
        };
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let file = options.mode(0o600).open(&new).map_err(failed)?;
        lock(&file, path)?;
        let mut header = to_json(plan).to_string().into_bytes();
        if header.len() >= HEADER {
            return Err(failed(ErrorKind::InvalidFilename.into()));
        }
        header.resize(HEADER, 0);
        let end = (HEADER + plan.pages() * PAGE) as u64;
        let written = (|| {
            file.write_all_at(&header, 0)?;
            file.set_len(end)?;
            file.sync_all()?;
            std::fs::rename(&new, path)
        })();
        written.map_err(failed)?;
        Ok(ProgressFile {
            path: path.to_owned(),
            file,
            pages: plan.pages(),
            dirty: BTreeSet::new(),
            end,
        })
    }

    /// The file of a scrub of this disk; `None` if there is none.
    pub fn open(
        path: &Path,
        disk: &Identity,
    ) -> Result<Option<(ProgressFile, Restored)>, ProgressError> {
        let failed = |error| ProgressError::Io {
            path: path.to_owned(),
            error,
        };
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        lock(&file, path)?;
        let format = |problem| ProgressError::Format {
            path: path.to_owned(),
            problem,
        };
        let length = file.metadata().map_err(failed)?.len();
        let mut header = vec![0; HEADER];
        match file.read_exact_at(&mut header, 0) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return Err(format("it is too short".to_owned()));
            }
            read => read.map_err(failed)?,
        }
        let plan = from_json(&header).map_err(format)?;
        if let Some(problem) = plan.differs(disk) {
            return Err(ProgressError::OtherDisk {
                path: path.to_owned(),
                problem,
            });
        }
        let lines_at = (HEADER + plan.pages() * PAGE) as u64;
        if length < lines_at {
            return Err(format("it was cut short".to_owned()));
        }
        let mut bits = vec![0; plan.pages() * PAGE];
        file.read_exact_at(&mut bits, HEADER as u64)
            .map_err(failed)?;
        let words = bits.chunks_exact(8);
        let done = words
            .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
            .collect();
        let mut text = vec![0; (length - lines_at) as usize];
        file.read_exact_at(&mut text, lines_at).map_err(failed)?;
        let whole = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let (mut state, mut unreadable) = (ScrubState::Running, Unreadable::default());
        for line in String::from_utf8_lossy(&text[..whole]).lines() {
            let mut words = line.split(' ');
            let first = words.next();
            let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
            match first {
                Some("unreadable") => match (number(), number()) {
                    (Some(start), Some(len)) => {
                        unreadable.add(Extent::new(Lba::new(start), Sectors::new(len)));
                    }
                    _ => return Err(format(line.to_owned())),
                },
                Some("state") => {
                    state = match words.next() {
                        Some("running") => ScrubState::Running,
                        Some("paused") => ScrubState::Paused,
                        Some("done") => ScrubState::Done,
                        _ => return Err(format(line.to_owned())),
                    }
                }
                _ => return Err(format(line.to_owned())),
            }
        }
        let end = lines_at + whole as u64;
        // Half a line is none.
        file.set_len(end).map_err(failed)?;
        let progress = ProgressFile {
            path: path.to_owned(),
            file,
            pages: plan.pages(),
            dirty: BTreeSet::new(),
            end,
        };
        let restored = Restored {
            plan,
            done,
            state,
            unreadable,
        };
        Ok(Some((progress, restored)))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What makes it durable, on another thread.
    pub fn syncer(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Whether a block is done has changed.
    pub fn changed(&mut self, block: u64) {
        self.dirty.insert((block / 64) as usize / WORDS);
    }

    /// Returns true if there is something to write.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Writes what has changed. `word` says which of the blocks from 64 times its number on are done.
    pub fn write(&mut self, word: impl Fn(usize) -> u64) -> io::Result<()> {
        let mut page = [0; PAGE];
        while let Some(number) = self.dirty.first().copied() {
            for (index, bytes) in page.chunks_exact_mut(8).enumerate() {
                bytes.copy_from_slice(&word(number * WORDS + index).to_le_bytes());
            }
            debug_assert!(number < self.pages);
            self.file
                .write_all_at(&page, (HEADER + number * PAGE) as u64)?;
            self.dirty.remove(&number);
        }
        Ok(())
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all_at(text.as_bytes(), self.end)?;
        self.end += text.len() as u64;
        Ok(())
    }

    /// These sectors cannot be read.
    pub fn unreadable(&mut self, extent: Extent) -> io::Result<()> {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "unreadable {} {}",
            extent.start.get(),
            extent.len.get()
        );
        self.line(&text)
    }

    /// The scrub is in another state.
    pub fn state(&mut self, state: &str) -> io::Result<()> {
        self.line(&format!("state {state}\n"))
    }

    /// The scrub is given up.
    pub fn remove(&self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }
}

impl Drop for ProgressFile {
    /// Who makes it durable may have it for longer, and is not to keep the next one out.
    fn drop(&mut self) {
        // It is not locked for ever: the lock ends with the process, too.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

/// One server at a time.
fn lock(file: &File, path: &Path) -> Result<(), ProgressError> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(ProgressError::InUse(path.to_owned())),
        Err(error) => Err(ProgressError::Io {
            path: path.to_owned(),
            error: error.into(),
        }),
    }
}
