//! File with a hash of each block of a disk.
//!
//! ```text
//! 16 KiB     which disk and which blocks, as JSON, written once
//! 4 KiB      name of the watch that uses the hashes
//! 4 KiB ..   511 hashes, XXH64 of a block each; zero stands for no hash
//! ```
//!
//! Each page ends with a checksum ([`Seal`]). The checksum of a page of hashes depends on the name of the watch. Pages that were never
//! written are holes.
//!
//! The [`Watch`](super::watch::Watch) says which of the hashes are current.

use super::files::{self, FileId, HEADER};
use super::identity::{Identity, ProgressError, same_disk};
use super::seal::{BODY, PAGE, Seal};
use headtime_units::Sectors;
use serde_json::json;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use twox_hash::XxHash64;

const FORMAT: &str = "headtime hashes 2";
const WHAT: &str = "the hashes of a scrub";

/// Number of hashes in a page.
const HASHES: u64 = (BODY / 8) as u64;

/// File of hashes.
#[derive(Debug)]
pub(super) struct HashFile {
    path: PathBuf,
    file: File,
    id: FileId,
    /// Seal of the page that names the watch, and seal of the pages of hashes.
    seal: Seal,
    hashes: Mutex<Seal>,
}

/// Hash of some bytes, which is never zero.
pub(super) fn hash_of(bytes: &[u8]) -> u64 {
    XxHash64::oneshot(0, bytes).max(1)
}

impl HashFile {
    /// Opens the hashes of a disk in blocks of this size. If there is no file, makes one without hashes.
    pub fn open_or_create(
        path: &Path,
        disk: &Identity,
        block: Sectors,
    ) -> Result<HashFile, ProgressError> {
        match files::open_if_there(path)? {
            Some(file) => HashFile::check(path, file, disk, block),
            None => HashFile::create(path, disk, block),
        }
    }

    /// Opens the hashes of a disk, whose file has to exist.
    pub fn open(path: &Path, disk: &Identity, block: Sectors) -> Result<HashFile, ProgressError> {
        HashFile::check(path, files::open(path)?, disk, block)
    }

    fn check(
        path: &Path,
        file: File,
        disk: &Identity,
        block: Sectors,
    ) -> Result<HashFile, ProgressError> {
        let failed = |error| files::failed(path, error);
        let wrong = |problem: String| files::wrong(path, WHAT, problem);
        let (about, seal) = files::read_header(&file, path, (FORMAT, WHAT))?;
        same_disk(path, &files::disk_of(&about).map_err(wrong)?, disk)?;
        let has = files::number(&about, "block").map_err(wrong)?;
        if has != block.get() {
            let bytes =
                |sectors: u64| headtime_units::Bytes(sectors * u64::from(disk.sector_bytes));
            return Err(ProgressError::OtherBlocks {
                path: path.to_owned(),
                has: bytes(has).to_string(),
                asked: bytes(block.get()).to_string(),
            });
        }
        let blocks = disk.capacity.get().div_ceil(block.get());
        let len = file.metadata().map_err(failed)?.len();
        if len < end(blocks) {
            // The missing pages become holes. A compare notices a hole in place of a hash.
            file.set_len(end(blocks)).map_err(failed)?;
        }
        HashFile::of(path, file, seal)
    }

    fn create(path: &Path, disk: &Identity, block: Sectors) -> Result<HashFile, ProgressError> {
        let failed = |error| files::failed(path, error);
        let mut about = files::about(FORMAT, disk)?;
        about["block"] = json!(block.get());
        let header = files::header(&about).map_err(failed)?;
        let seal = Seal::of(about["id"].as_str().unwrap_or_default());
        let file = files::create(path)?;
        let blocks = disk.capacity.get().div_ceil(block.get());
        let made = (|| {
            file.set_len(end(blocks))?;
            file.write_all_at(&header, 0)?;
            files::write_text(&file, seal, "", HEADER as u64)?;
            file.sync_all()?;
            files::sync_folder(path)
        })();
        match made {
            Ok(()) => HashFile::of(path, file, seal),
            Err(error) => {
                // The file is still empty.
                let _ = std::fs::remove_file(path);
                Err(failed(error))
            }
        }
    }

    fn of(path: &Path, file: File, seal: Seal) -> Result<HashFile, ProgressError> {
        let failed = |error| files::failed(path, error);
        let hashes = HashFile {
            path: path.to_owned(),
            id: FileId::of(&file).map_err(failed)?,
            file,
            seal,
            hashes: Mutex::new(seal),
        };
        let watch = files::read_text(&hashes.file, seal, HEADER as u64).map_err(failed)?;
        // If the name of the watch is damaged, no page of hashes fits its checksum.
        *hashes.sealed() = seal.and(&watch.unwrap_or_default());
        Ok(hashes)
    }

    fn sealed(&self) -> MutexGuard<'_, Seal> {
        self.hashes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn id(&self) -> FileId {
        self.id
    }

    /// Name of the watch. Fails if the page of the name is damaged.
    pub fn watch(&self) -> io::Result<String> {
        let text = files::read_text(&self.file, self.seal, HEADER as u64)?;
        text.ok_or_else(|| io::Error::other(files::damaged_page()))
    }

    /// Gives the file to another watch. All hashes and damaged pages are removed.
    pub fn set_watch(&self, name: &str) -> io::Result<()> {
        files::write_text(&self.file, self.seal, name, HEADER as u64)?;
        *self.sealed() = self.seal.and(name);
        // Until this sync is done, the old hashes may still count.
        self.file.sync_all()?;
        let len = self.file.metadata()?.len();
        self.file.set_len(at(0))?;
        self.file.set_len(len)?;
        self.file.sync_all()
    }

    /// Reads the page with the hash of a block. The flag is true if the page is damaged. A damaged page counts as empty, and a page that
    /// was never written is a hole.
    fn page(&self, block: u64) -> io::Result<([u8; PAGE], bool)> {
        let mut page = [0; PAGE];
        match self.file.read_exact_at(&mut page, at(block)) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return Ok(([0; PAGE], false));
            }
            read => read?,
        }
        let is_whole = self.sealed().fits(at(block), &page) || page == [0; PAGE];
        Ok(if is_whole {
            (page, false)
        } else {
            ([0; PAGE], true)
        })
    }

    /// Hash of a block, if there is one.
    pub fn hash(&self, block: u64) -> io::Result<Option<u64>> {
        let (page, _) = self.page(block)?;
        let bytes = &page[(block % HASHES) as usize * 8..][..8];
        let hash = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        Ok(Some(hash).filter(|hash| *hash != 0))
    }

    /// Sets the hash of a block. Returns true if the page was damaged. The other blocks on a damaged page lose their hashes.
    pub fn set(&self, block: u64, hash: u64) -> io::Result<bool> {
        let (mut page, is_damaged) = self.page(block)?;
        page[(block % HASHES) as usize * 8..][..8].copy_from_slice(&hash.to_le_bytes());
        self.sealed().close(at(block), &mut page);
        self.file.write_all_at(&page, at(block))?;
        Ok(is_damaged)
    }

    /// Blocks whose hashes are on the same page as the block's.
    pub fn beside(block: u64) -> Range<u64> {
        let first = block / HASHES * HASHES;
        first..first + HASHES
    }

    /// Writes the page of a block as it is, as a test for room.
    pub fn write_again(&self, block: u64) -> io::Result<()> {
        let (page, _) = self.page(block)?;
        self.file.write_all_at(&page, at(block))
    }

    /// Releases the lock of the file.
    pub fn unlock(&self) {
        files::unlock(&self.file);
    }

    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

/// Byte at which the page of a block begins.
fn at(block: u64) -> u64 {
    (HEADER + PAGE) as u64 + block / HASHES * PAGE as u64
}

/// Bytes of a file with this number of hashes.
fn end(blocks: u64) -> u64 {
    at(blocks.saturating_sub(1)) + PAGE as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_testkit::Folder;

    fn disk() -> Identity {
        Identity {
            device: "a drive".to_owned(),
            capacity: Sectors::new(1 << 14),
            sector_bytes: 512,
        }
    }

    #[test]
    fn hashes_are_those_that_everybody_else_has() {
        assert_eq!(hash_of(b""), 0xEF46_DB37_51D8_E999);
        assert_eq!(hash_of(b"abc"), 0x44BC_2CF5_AD77_0999);
    }

    #[test]
    fn hashes_are_kept_and_a_damaged_page_costs_its_blocks_alone() {
        let folder = Folder::new();
        let path = folder.join("hashes");
        let block = Sectors::new(8);
        let hashes = HashFile::open_or_create(&path, &disk(), block).expect("new");
        hashes.set_watch("first").expect("room");
        let has = |hashes: &HashFile, number| hashes.hash(number).expect("can be read");
        assert_eq!(has(&hashes, 0), None, "a hole");
        for number in [0, 510, 511, 2047] {
            assert!(!hashes.set(number, number + 7).expect("room"));
        }
        drop(hashes);
        let hashes = HashFile::open(&path, &disk(), block).expect("there");
        for number in [0, 510, 511, 2047] {
            assert_eq!(has(&hashes, number), Some(number + 7));
        }
        assert_eq!(has(&hashes, 1), None);
        let page = |number| at(number) as usize..at(number) as usize + PAGE;
        let before = std::fs::read(&path).expect("there");
        let place = |bytes: &[u8], at| hashes.file.write_all_at(bytes, at).expect("room");
        place(b"x", at(511) + 100);
        assert_eq!((has(&hashes, 600), has(&hashes, 511)), (None, None));
        assert_eq!(has(&hashes, 0), Some(7));
        // A new hash does not bring back the others.
        assert!(hashes.set(600, 1).expect("room"));
        assert_eq!((has(&hashes, 600), has(&hashes, 511)), (Some(1), None));
        // A page that lies at the place of another page does not count.
        place(&before[page(0)], at(511));
        assert_eq!(has(&hashes, 511), None);
        assert!(hashes.set(511, 5).expect("room"));
        // A page from before the file was given to a new watch does not count.
        hashes.set_watch("second").expect("room");
        place(&before[page(0)], at(0));
        assert_eq!(has(&hashes, 0), None);
        assert!(hashes.set(0, 5).expect("room"));
    }

    #[test]
    fn another_file_is_left_alone_and_said_what_it_is() {
        let folder = Folder::new();
        let path = folder.join("hashes");
        let refused = |path: &Path, disk: &Identity, block| {
            let refused = HashFile::open_or_create(path, disk, Sectors::new(block));
            refused.expect_err("refused").to_string()
        };
        for mine in [&b""[..], b"mine", &[0; 1 << 16]] {
            std::fs::write(&path, mine).expect("room");
            let text = refused(&path, &disk(), 8);
            assert!(text.contains("not the hashes of a scrub"), "{text}");
            assert_eq!(std::fs::read(&path).expect("there"), mine);
        }
        std::fs::remove_file(&path).expect("there");
        drop(HashFile::open_or_create(&path, &disk(), Sectors::new(8)).expect("new"));
        let text = refused(&path, &disk(), 16);
        assert!(
            text.contains("blocks of 4KiB, and 8KiB are asked for"),
            "{text}"
        );
        let smaller = Identity {
            capacity: Sectors::new(1 << 13),
            ..disk()
        };
        assert!(refused(&path, &smaller, 8).contains("it has shrunk"));
        let link = folder.join("link");
        std::os::unix::fs::symlink(&path, &link).expect("room");
        assert!(refused(&link, &disk(), 8).contains("a symbolic link"));
        assert!(refused(&folder.join("."), &disk(), 8).contains("directory"));
        // A file of an earlier version has no checksums.
        let text = std::fs::read(&path).expect("there");
        let older = String::from_utf8_lossy(&text).replace("hashes 2", "hashes 1");
        std::fs::write(&path, older.as_bytes()).expect("room");
        let text = refused(&path, &disk(), 8);
        assert!(text.contains("of another version of headtime"), "{text}");
        assert!(text.contains("move it away to begin anew"), "{text}");
    }
}
