//! Watch of a disk: marks the blocks whose hash or copy is still current.
//!
//! ```text
//! 16 KiB     the disk, and the hash file or image, as JSON, written once.
//! 4 KiB      `watched BOOT`, `clean` or `lost WHY`.
//! 4 KiB ..   a mark for each block: a bit that is set if the file has the block's hash or copy, and no client has written the block since.
//! ```
//!
//! Each page ends with a checksum. The marks of a damaged page do not count. If the first or the second part is damaged, no mark counts.
//!
//! A mark is cleared in the file before a write to its block reaches the disk. The kernel keeps the marks of a killed server. If the
//! machine went down, no mark counts unless the disk had ended in order. So a mark never counts for a block that has changed.
//! docs/design/2026-11-23-scrub-hash.md goes through the cases.

use super::blocks::{BlocksFile, Keeps};
use super::byte_range::ByteRange;
use super::files::{self, FileId, HEADER};
use super::identity::{Identity, ProgressError, same_disk};
use super::pages::Pages;
use super::seal::{PAGE, Seal};
use super::served::Served;
use super::status::Damage;
use headtime_linux::shown::PathShown as _;
use headtime_units::{Extent, Sectors};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const FORMAT: &str = "headtime watch 2";

/// Reason why marks do not count without `sole_writer`.
const NOT_SOLE: &str = "the server did not run all the time since, and what others wrote meanwhile nobody has noticed; \
    if nobody does, say so: sole_writer = true in the configuration of the disk";

/// Watch of a disk with hashes, or an image: notices writes.
#[derive(Debug)]
pub(super) struct Watch {
    path: PathBuf,
    file: File,
    pages: Pages,
    block: Sectors,
    blocks: BlocksFile,
    disk: Arc<dyn Served>,
    known: Mutex<WatchMarks>,
    /// Damage of the file that was found when the file was read, until a scrub reports the damage.
    damage: Mutex<Damage>,
    is_lost: AtomicBool,
    /// True if the disk has ended in order, and the watch has noticed all writes until then.
    has_ended: AtomicBool,
}

/// Marks of written blocks, and the pages of marks that the file lacks.
#[derive(Debug)]
struct WatchMarks {
    /// Marks, a bit for each block.
    bits: Vec<u64>,
    /// Pages that are to be written, since the file has fewer marks there, or damage.
    dirty: BTreeSet<usize>,
    /// Reason why no mark counts.
    lost: Option<String>,
}

/// Outcome of the attempt to continue the watch of an earlier server.
#[derive(Debug)]
pub(super) enum Resumed {
    /// There was no watch.
    None,
    /// The watch continues.
    Watch(Arc<Watch>),
    /// The watch cannot continue, and its file says so.
    Lost(String),
}

impl Watch {
    /// Begins to notice writes, without any mark. The new file takes the place of an earlier watch's.
    pub fn begin(
        path: &Path,
        disk: (&Arc<dyn Served>, &Identity),
        block: Sectors,
        blocks: BlocksFile,
    ) -> Result<Watch, ProgressError> {
        let (disk, identity) = disk;
        match Watch::make(path, identity, block, &blocks) {
            Ok((file, pages)) => {
                let bits = vec![0; pages.words()];
                let marks = (pages, bits, Vec::new());
                Ok(Watch::of(path, file, marks, block, blocks, disk))
            }
            Err(error) => {
                // An image without a watch would be in the way of the next attempt.
                blocks.give_up();
                Err(error)
            }
        }
    }

    /// Makes the file of a watch without any mark.
    fn make(
        path: &Path,
        identity: &Identity,
        block: Sectors,
        blocks: &BlocksFile,
    ) -> Result<(File, Pages), ProgressError> {
        let failed = |error| files::failed(path, error);
        let name = blocks.begin(&files::unique()?);
        let name = name.map_err(|error| files::failed(blocks.path(), error))?;
        let key = blocks.keeps().key();
        let mut about = files::about(FORMAT, identity)?;
        about["block"] = json!(block.get());
        about[key] = json!(blocks.path());
        about[format!("{key}_device")] = json!(blocks.id().device);
        about[format!("{key}_inode")] = json!(blocks.id().inode);
        if let Some(part) = blocks.part() {
            files::set_part(&mut about, part);
        }
        about["name"] = json!(name);
        let header = files::header(&about).map_err(failed)?;
        let file = files::create_beside(path)?;
        let seal = Seal::of(about["id"].as_str().unwrap_or_default());
        let pages = pages(identity, block, seal);
        let made = (|| {
            files::make_room(&file, pages.end())?;
            file.write_all_at(&header, 0)?;
            pages.write_all(&file, |_| 0)?;
            write_text(&file, seal, &watched()?)?;
            files::put_in_place(&file, path)
        })();
        made.map_err(|error| {
            files::remove_beside(path);
            failed(error)
        })?;
        Ok((file, pages))
    }

    fn of(
        path: &Path,
        file: File,
        (pages, bits, damaged): Marks,
        block: Sectors,
        blocks: BlocksFile,
        disk: &Arc<dyn Served>,
    ) -> Watch {
        let mut damage = Damage::default();
        for page in &damaged {
            let extent = Pages::extent_of(*page, block, disk.capacity());
            damage.add(extent);
            tell_damage(disk.name(), path, extent);
        }
        Watch {
            path: path.to_owned(),
            file,
            pages,
            block,
            blocks,
            disk: Arc::clone(disk),
            known: Mutex::new(WatchMarks {
                bits,
                dirty: damaged.into_iter().collect(),
                lost: None,
            }),
            damage: Mutex::new(damage),
            is_lost: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
        }
    }

    /// Continues the watch of an earlier server. Call this before a client can write. `sole_writer` says that the server is the only writer
    /// to the disk.
    ///
    /// # Errors
    ///
    /// If the file is of another device, or in use by another server. The file is then left as it is. After any other problem the watch is
    /// lost, also for the next server.
    pub fn resume(
        (path, keeps): (&Path, Keeps),
        (disk, identity): (&Arc<dyn Served>, &Identity),
        sole_writer: bool,
    ) -> Result<Resumed, ProgressError> {
        let file = match files::open_if_there(path) {
            Ok(Some(file)) => file,
            Ok(None) => return Ok(Resumed::None),
            // The file is another server's.
            Err(error @ ProgressError::InUse { .. }) => return Err(error),
            // A watch that cannot be read now misses writes, so no later server may trust it.
            Err(error) => {
                remove(path);
                return Ok(Resumed::Lost(error.to_string()));
            }
        };
        let lost = |seal: Seal, why: String| {
            make_lost(path, &file, seal, &why);
            if let Err(error) = file.sync_all() {
                tracing::error!("{}: {error}", path.shown());
            }
            Ok(Resumed::Lost(why))
        };
        let (about, seal) = match files::read_header(&file, path, (FORMAT, keeps.record())) {
            Ok(read) => read,
            // The text of this error says that the file is left as it is, which is not so here.
            Err(ProgressError::Format { problem, .. }) => {
                let what = keeps.record();
                let why = format!("{}, {what}: {problem}", path.shown());
                return lost(Seal::HEADER, why);
            }
            Err(error) => return lost(Seal::HEADER, error.to_string()),
        };
        match files::disk_of(&about) {
            Ok(then) => {
                if let Err(other) = same_disk(path, &then, identity) {
                    // The watch of another device is left as it is. If the same device has another size now, its watch is lost.
                    return match then.device == identity.device {
                        true => lost(seal, other.to_string()),
                        false => Err(other),
                    };
                }
            }
            Err(problem) => return lost(seal, problem),
        }
        match Watch::trusted((path, keeps), &file, (&about, seal), identity, sole_writer) {
            Err(why) => lost(seal, why),
            Ok((marks, block, blocks)) => {
                let watch = Watch::of(path, file, marks, block, blocks, disk);
                Ok(Resumed::Watch(Arc::new(watch)))
            }
        }
    }

    /// Marks of a file, if they can be trusted. From then on the file says that writes are being noticed. The error is the reason why not.
    fn trusted(
        (path, keeps): (&Path, Keeps),
        file: &File,
        (about, seal): (&Value, Seal),
        disk: &Identity,
        sole_writer: bool,
    ) -> Result<(Marks, Sectors, BlocksFile), String> {
        let text = |error: io::Error| format!("{}: {error}", path.shown());
        let block = files::number(about, "block")?;
        if block == 0 {
            return Err(format!("{}: blocks of nothing", path.shown()));
        }
        let (block, pages) = (Sectors::new(block), pages(disk, Sectors::new(block), seal));
        let state = files::read_text(file, seal, HEADER as u64).map_err(text)?;
        let now = watched().map_err(text)?;
        match state.unwrap_or_default().as_str() {
            "clean" => {}
            state if state == now => {}
            state => {
                return Err(match state.split_once(' ') {
                    Some(("lost", why)) => why.to_owned(),
                    Some(("watched", _)) => {
                        "the machine went down while the disk was served".to_owned()
                    }
                    _ => format!("{}: {}", path.shown(), files::damaged_page()),
                });
            }
        }
        if !sole_writer {
            return Err(NOT_SOLE.to_owned());
        }
        let kept = about[keeps.key()].as_str().map(Path::new);
        let kept = kept.ok_or_else(|| format!("`{}` is no path", keeps.key()))?;
        // A file from before copies of parts existed is of the whole disk.
        let part = files::part_of(about)?.unwrap_or(ByteRange::whole(disk));
        let blocks = BlocksFile::open((keeps, kept), disk, part, block);
        let blocks = blocks.map_err(|error| error.to_string())?;
        let name = blocks.name();
        let name = name.map_err(|error| format!("{}: {error}", kept.shown()))?;
        if file_in(about, keeps)? != (blocks.id(), name) {
            return Err(format!("{}: another file than before", kept.shown()));
        }
        let (bits, damaged) = pages.read(file).map_err(text)?;
        // If the machine goes down from now on, the file must not say `clean`.
        write_text(file, seal, &now).map_err(text)?;
        file.sync_all().map_err(text)?;
        Ok(((pages, bits, damaged), block, blocks))
    }

    fn known(&self) -> MutexGuard<'_, WatchMarks> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// File of the hashes, or image.
    pub fn blocks(&self) -> &BlocksFile {
        &self.blocks
    }

    /// Identity and name of the hash file or image that a watch's file names, even if the marks cannot be trusted.
    pub fn file_of(path: &Path, keeps: Keeps, disk: &Identity) -> Option<(FileId, String)> {
        let file = File::open(path).ok()?;
        let (about, _) = files::read_header(&file, path, (FORMAT, keeps.record())).ok()?;
        // A file that was made for another disk must not be overwritten.
        same_disk(path, &files::disk_of(&about).ok()?, disk).ok()?;
        file_in(&about, keeps).ok()
    }

    /// Returns the damage of the file, once.
    pub fn take_damage(&self) -> Damage {
        let mut damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut damage)
    }

    /// Sectors of a block.
    pub fn block(&self) -> Sectors {
        self.block
    }

    /// Returns true if the watch is for the file at `path`, which is still in its place, and the block size is the same. An image also has
    /// to be of the bytes `part`.
    pub fn is_of(&self, (keeps, path): (Keeps, &Path), part: ByteRange, block: Sectors) -> bool {
        let blocks = &self.blocks;
        let same = blocks.keeps() == keeps && blocks.path() == path && self.block == block;
        let same = same && blocks.part().is_none_or(|has| has == part);
        same && blocks.id().is_at(path) && !self.is_lost()
    }

    /// Reason why no mark counts; `None` while the marks count. A mark says that the hash or copy of a block is current.
    pub fn lost(&self) -> Option<String> {
        self.known().lost.clone()
    }

    /// Returns true if the watch is lost for good.
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::SeqCst)
    }

    /// Marks, as bits.
    pub fn marks(&self) -> Vec<u64> {
        self.known().bits.clone()
    }

    /// Returns true if the block is marked: its contents have to match the hash.
    pub fn knows(&self, block: u64) -> bool {
        let known = self.known();
        known.lost.is_none() && known.bits[(block / 64) as usize] >> (block % 64) & 1 == 1
    }

    /// Marks a block whose hash or copy is current.
    pub fn learn(&self, block: u64) {
        let mut known = self.known();
        if known.lost.is_none() {
            known.bits[(block / 64) as usize] |= 1 << (block % 64);
            known.dirty.insert(Pages::page_of(block));
        }
    }

    /// Clears the marks of sectors before a write, in the file too. If the file cannot be written, the watch is lost.
    pub fn forget(&self, extent: Extent) {
        let mut known = self.known();
        if known.lost.is_some() || extent.is_empty() {
            return;
        }
        let block = self.block.get();
        let (first, last) = (extent.start.get() / block, (extent.end().get() - 1) / block);
        let mut cleared = BTreeSet::new();
        for block in first..=last {
            let (word, bit) = ((block / 64) as usize, 1 << (block % 64));
            if known.bits[word] & bit != 0 {
                known.bits[word] &= !bit;
                cleared.insert(Pages::page_of(block));
            }
        }
        if let Err(error) = self.write_pages(&mut known, &cleared) {
            let why = format!("{}: {error}", self.path.shown());
            self.lose_all(&mut known, why);
        }
    }

    fn write_pages(&self, known: &mut WatchMarks, pages: &BTreeSet<usize>) -> io::Result<()> {
        for page in pages {
            let bits = &known.bits;
            self.pages.write(&self.file, *page, |word| {
                bits.get(word).copied().unwrap_or(0)
            })?;
            known.dirty.remove(page);
        }
        Ok(())
    }

    /// Makes all marks invalid, in the file too.
    pub fn lose(&self, why: String) {
        self.lose_all(&mut self.known(), why);
    }

    fn lose_all(&self, known: &mut WatchMarks, why: String) {
        if known.lost.is_none() {
            let (disk, path) = (self.disk.name(), self.path.shown());
            let loss = self.blocks.keeps().loss();
            tracing::warn!(disk, "{path}: {loss}: {why}");
            make_lost(&self.path, &self.file, self.pages.seal(), &why);
            known.lost = Some(why);
            self.is_lost.store(true, Ordering::SeqCst);
        }
    }

    /// Loses the watch if the disk has failed, since a write may then have had another result than reported.
    pub fn look_at_disk(&self) {
        if self.disk.has_failed() && !self.is_lost() {
            self.lose("the disk has failed, and what it has is not known".to_owned());
        }
    }

    /// Returns true if pages are to be written.
    pub fn is_dirty(&self) -> bool {
        let known = self.known();
        !known.dirty.is_empty() && known.lost.is_none()
    }

    /// Writes the marks to the file.
    pub fn write(&self) -> io::Result<()> {
        let mut known = self.known();
        if known.lost.is_some() {
            return Ok(());
        }
        let dirty = known.dirty.clone();
        self.write_pages(&mut known, &dirty)
    }

    /// Makes the marks and the hashes or the image durable, which may take long.
    pub fn sync(&self) -> Result<(), (PathBuf, io::Error)> {
        let written = self.write().and_then(|()| self.file.sync_all());
        written.map_err(|error| (self.path.clone(), error))?;
        let synced = self.blocks.sync();
        synced.map_err(|error| (self.blocks.path().to_owned(), error))
    }

    /// Ends the watch when it is no longer needed, and removes its file.
    pub fn end(&self) {
        let mut known = self.known();
        if known.lost.is_none() {
            known.lost = Some("it is over".to_owned());
            self.is_lost.store(true, Ordering::SeqCst);
        }
        Watch::remove(&self.path);
    }

    /// Removes the file of a watch that must not be trusted, if the file exists.
    pub fn remove(path: &Path) {
        remove(path);
    }

    /// Notes that the job that notified the watch has ended. Returns true if the disk has ended in order with it, so that no write can
    /// follow.
    pub fn ends_with_disk(&self) -> bool {
        // The disk may have failed since the last check.
        self.look_at_disk();
        let disk = &self.disk;
        let in_order = disk.is_stopped() && !disk.has_failed() && !std::thread::panicking();
        self.has_ended.store(in_order, Ordering::SeqCst);
        in_order
    }
}

impl Drop for Watch {
    /// Closes the file as `clean` after the disk has ended in order. The disk's thread has ended, so no client waits for this.
    fn drop(&mut self) {
        if !self.has_ended.load(Ordering::SeqCst) || self.is_lost() {
            return;
        }
        let closed = self.sync().and_then(|()| {
            let said = write_text(&self.file, self.pages.seal(), "clean")
                .and_then(|()| self.file.sync_all());
            said.map_err(|error| (self.path.clone(), error))
        });
        if let Err((path, error)) = closed {
            make_lost(
                &self.path,
                &self.file,
                self.pages.seal(),
                &error.to_string(),
            );
            tracing::warn!("{}: {error}", path.shown());
        }
    }
}

/// Marks of a file, and numbers of the damaged pages.
type Marks = (Pages, Vec<u64>, Vec<usize>);

fn pages(disk: &Identity, block: Sectors, seal: Seal) -> Pages {
    let blocks = disk.capacity.get().div_ceil(block.get());
    Pages::new((HEADER + PAGE) as u64, blocks, seal)
}

/// Logs a warning about a damaged page, which had the state of these sectors.
pub(super) fn tell_damage(disk: &str, path: &Path, sectors: Extent) {
    let path = path.shown();
    tracing::warn!(disk, %sectors, "{path}: a page is damaged: state of these sectors; they are read again");
}

/// Identity and name of the hash file or image, from the header of a watch.
fn file_in(about: &Value, keeps: Keeps) -> Result<(FileId, String), String> {
    let key = keeps.key();
    let id = FileId {
        device: files::number(about, &format!("{key}_device"))?,
        inode: files::number(about, &format!("{key}_inode"))?,
    };
    let name = about["name"].as_str().ok_or("`name` is no text")?;
    Ok((id, name.to_owned()))
}

/// Text of a file whose watch notices writes: it names the boot of the machine.
fn watched() -> io::Result<String> {
    match files::boot() {
        Some(boot) => Ok(format!("watched {boot}")),
        None => Err(io::Error::other(
            "the machine does not say since when it is up",
        )),
    }
}

fn write_text(file: &File, seal: Seal, state: &str) -> io::Result<()> {
    files::write_text(file, seal, state, HEADER as u64)
}

/// Writes `lost` into a file. If that fails, empties the file, and if that fails too, removes it.
fn make_lost(path: &Path, file: &File, seal: Seal, why: &str) {
    if write_text(file, seal, &format!("lost {why}")).is_ok() || file.set_len(0).is_ok() {
        return;
    }
    remove(path);
}

fn remove(path: &Path) {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => tracing::error!(
            "{}: cannot be written or removed: {error}. Remove the file before the server starts again, or the server trusts an old state",
            path.shown()
        ),
        _ => {}
    }
}
