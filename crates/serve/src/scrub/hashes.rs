//! A hash of each block of a disk, and whether it is still to be that of the block.
//!
//! ```text
//! 16 KiB      which disk, as JSON, written once
//! 4 KiB       `clean`, or `open` and the boot of the machine in which it was opened
//! 4 KiB ..    a bit for each block, set if nothing was written to the block since it was hashed
//! 8 B ..      the hashes, XXH64
//! ```
//!
//! A block's bit is cleared before a write to it may reach the disk, so it never says too much: not when the server is killed, since the
//! kernel has the page then; and if the machine went down, all bits are taken for cleared.

use super::pages::Pages;
use super::progress::{HEADER, Identity, ProgressError, header, lock, read_header, same_disk};
use headtime_units::Sectors;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

const FORMAT: &str = "headtime hashes 1";

/// Bytes of the page that says whether it was closed.
const STATE: usize = 4096;

/// A file of hashes.
#[derive(Debug)]
pub(super) struct Hashes {
    path: PathBuf,
    file: File,
    pages: Pages,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    bits: Vec<u64>,
    /// Pages of which the file knows fewer.
    dirty: BTreeSet<usize>,
    /// Those who see to it that writes are noticed.
    watchers: u32,
}

/// The machine's boot; two of which nothing is known are not the same.
fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map(|id| id.trim().to_owned()).unwrap_or_default()
}

impl Hashes {
    /// The hashes of a disk in blocks of this size; none so far, if the file is not there. `misses_nothing` says that the disk has been
    /// written to by nobody since the file was closed, through this server.
    pub fn open(
        path: &Path,
        disk: &Identity,
        block: Sectors,
        misses_nothing: bool,
    ) -> Result<Hashes, ProgressError> {
        let failed = |error| ProgressError::Io {
            path: path.to_owned(),
            error,
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.mode(0o600).open(path).map_err(failed)?;
        lock(&file, path)?;
        let blocks = disk.capacity.get().div_ceil(block.get());
        let pages = Pages::new((HEADER + STATE) as u64, blocks);
        let is_new = file.metadata().map_err(failed)?.len() == 0;
        if is_new {
            let about = json!({
                "format": FORMAT,
                "device": disk.device,
                "sectors": disk.capacity.get(),
                "sector_bytes": disk.sector_bytes,
                "block": block.get(),
            });
            let header = header(&about).map_err(failed)?;
            // The header last: without it the file is none of ours.
            let made = file.set_len(pages.end() + blocks * 8);
            let made = made.and_then(|()| file.write_all_at(b"clean\n", HEADER as u64));
            let made = made.and_then(|()| file.write_all_at(&header, 0));
            made.map_err(failed)?;
        }
        let about = read_header(&file, path, FORMAT)?;
        same_disk(path, &about, disk)?;
        let format = |problem| ProgressError::Format {
            path: path.to_owned(),
            problem,
        };
        if about["block"] != block.get() {
            return Err(format(format!(
                "it is of blocks of {} sectors, and {block} are asked for",
                about["block"]
            )));
        }
        if file.metadata().map_err(failed)?.len() < pages.end() + blocks * 8 {
            return Err(format("it was cut short".to_owned()));
        }
        let mut state = [0; 64];
        file.read_exact_at(&mut state, HEADER as u64)
            .map_err(failed)?;
        let state = String::from_utf8_lossy(&state).into_owned();
        let state = state.lines().next().unwrap_or_default();
        let mut bits = pages.read(&file).map_err(failed)?;
        let mut dirty = BTreeSet::new();
        let boot = boot();
        let was_down = state != "clean" && (boot.is_empty() || state != format!("open {boot}"));
        if !is_new && (was_down || !misses_nothing) {
            let why = match was_down {
                true => "the machine went down while it was in use",
                false => "nobody has noticed writes of late",
            };
            let path = path.display();
            tracing::warn!("{path}: {why}: nothing is compared with these hashes");
            dirty.extend((0..blocks).step_by(64).map(Pages::page_of));
            bits.fill(0);
        }
        let hashes = Hashes {
            path: path.to_owned(),
            file,
            pages,
            known: Mutex::new(Known {
                bits,
                dirty,
                watchers: 0,
            }),
        };
        hashes.write().map_err(failed)?;
        Ok(hashes)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// From now on somebody notices writes.
    pub fn watch(&self) -> io::Result<()> {
        let mut known = self.known();
        known.watchers += 1;
        self.say(&format!("open {}\n", boot()))
    }

    /// Somebody does so no longer.
    pub fn unwatch(&self) -> io::Result<()> {
        {
            let mut known = self.known();
            known.watchers -= 1;
            if known.watchers > 0 {
                return Ok(());
            }
        }
        self.write()?;
        self.file.sync_data()?;
        self.say("clean\n")
    }

    fn say(&self, state: &str) -> io::Result<()> {
        let mut page = [0; 64];
        page[..state.len()].copy_from_slice(state.as_bytes());
        self.file.write_all_at(&page, HEADER as u64)
    }

    /// Returns true if the hash of a block is to be that of what it has.
    pub fn is_known(&self, block: u64) -> bool {
        self.known().bits[(block / 64) as usize] >> (block % 64) & 1 == 1
    }

    /// A block is what its hash says.
    pub fn learn(&self, block: u64) {
        let mut known = self.known();
        known.bits[(block / 64) as usize] |= 1 << (block % 64);
        known.dirty.insert(Pages::page_of(block));
    }

    /// Blocks are about to be written to.
    pub fn forget(&self, blocks: std::ops::RangeInclusive<u64>) -> io::Result<()> {
        let mut any = false;
        {
            let mut known = self.known();
            for block in blocks {
                let (word, bit) = ((block / 64) as usize, 1 << (block % 64));
                if known.bits[word] & bit != 0 {
                    known.bits[word] &= !bit;
                    known.dirty.insert(Pages::page_of(block));
                    any = true;
                }
            }
        }
        match any {
            true => self.write(),
            false => Ok(()),
        }
    }

    /// Returns true if the file knows less than is known.
    pub fn is_dirty(&self) -> bool {
        !self.known().dirty.is_empty()
    }

    /// Writes down what is known.
    pub fn write(&self) -> io::Result<()> {
        let mut known = self.known();
        while let Some(page) = known.dirty.first().copied() {
            let bits = &known.bits;
            self.pages.write(&self.file, page, |word| {
                bits.get(word).copied().unwrap_or(0)
            })?;
            known.dirty.remove(&page);
        }
        Ok(())
    }

    /// The hash of a block.
    pub fn hash(&self, block: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.file
            .read_exact_at(&mut bytes, self.pages.end() + block * 8)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Another one.
    pub fn set(&self, block: u64, hash: u64) -> io::Result<()> {
        let at = self.pages.end() + block * 8;
        self.file.write_all_at(&hash.to_le_bytes(), at)
    }

    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}
