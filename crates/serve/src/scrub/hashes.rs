//! A hash of each block of a disk, in a file.
//!
//! ```text
//! 16 KiB     which disk and which blocks, as JSON, written once
//! 4 KiB      the watch that this is of
//! 4 KiB ..   511 hashes, XXH64 of a block each, and the XXH64 of those
//! ```
//!
//! Which of them are still to be those of the disk is no business of this file ([`Watch`](super::watch::Watch)).

use super::files::{self, FileId, HEADER, PAGE};
use super::identity::{Identity, ProgressError, same_disk};
use headtime_units::Sectors;
use serde_json::json;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use twox_hash::XxHash64;

const FORMAT: &str = "headtime hashes 1";
const WHAT: &str = "the hashes of a scrub";

/// Hashes of a page; behind them is one of them all.
const HASHES: u64 = (PAGE / 8 - 1) as u64;

/// A file of hashes.
#[derive(Debug)]
pub(super) struct HashFile {
    path: PathBuf,
    file: File,
    id: FileId,
}

/// The hash of some bytes.
pub(super) fn hash_of(bytes: &[u8]) -> u64 {
    XxHash64::oneshot(0, bytes)
}

impl HashFile {
    /// The hashes of a disk in blocks of this size; without any, if the file is not there.
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

    /// The hashes of a disk, which are to be there.
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
        let about = files::read_header(&file, path, (FORMAT, WHAT))?;
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
        if len == at(0) {
            // Nothing came behind its being emptied.
            file.set_len(end(blocks)).map_err(failed)?;
        } else if len < end(blocks) {
            return Err(wrong("it was cut short".to_owned()));
        }
        HashFile::of(path, file)
    }

    fn create(path: &Path, disk: &Identity, block: Sectors) -> Result<HashFile, ProgressError> {
        let failed = |error| files::failed(path, error);
        let mut about = files::about(FORMAT, disk);
        about["block"] = json!(block.get());
        let header = files::header(&about).map_err(failed)?;
        let file = files::create(path)?;
        let blocks = disk.capacity.get().div_ceil(block.get());
        let made = (|| {
            file.set_len(end(blocks))?;
            file.write_all_at(&header, 0)?;
            file.sync_all()?;
            files::sync_folder(path)
        })();
        match made {
            Ok(()) => HashFile::of(path, file),
            Err(error) => {
                // There is nothing in it.
                let _ = std::fs::remove_file(path);
                Err(failed(error))
            }
        }
    }

    fn of(path: &Path, file: File) -> Result<HashFile, ProgressError> {
        let id = FileId::of(&file).map_err(|error| files::failed(path, error))?;
        Ok(HashFile {
            path: path.to_owned(),
            file,
            id,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn id(&self) -> FileId {
        self.id
    }

    /// The watch that it is of.
    pub fn watch(&self) -> io::Result<String> {
        files::read_text(&self.file, HEADER as u64)
    }

    /// It is of another one from now on. What it has is forgotten, and so are pages that are damaged.
    pub fn set_watch(&self, name: &str) -> io::Result<()> {
        files::write_text(&self.file, name, HEADER as u64)?;
        // Before that, what it has may count.
        self.file.sync_all()?;
        let len = self.file.metadata()?.len();
        self.file.set_len(at(0))?;
        self.file.set_len(len)?;
        self.file.sync_all()
    }

    /// The page in which the hash of a block is.
    fn page(&self, block: u64) -> io::Result<[u8; PAGE]> {
        let mut page = [0; PAGE];
        self.file.read_exact_at(&mut page, at(block))?;
        let (hashes, check) = page.split_at(PAGE - 8);
        // One that was never written to is a hole.
        let is_new = page.iter().all(|byte| *byte == 0);
        match is_new || check == hash_of(hashes).to_le_bytes() {
            true => Ok(page),
            false => Err(io::Error::new(
                ErrorKind::InvalidData,
                format!("it is damaged at byte {}", at(block)),
            )),
        }
    }

    /// The hash of a block.
    pub fn hash(&self, block: u64) -> io::Result<u64> {
        let page = self.page(block)?;
        let bytes = &page[(block % HASHES) as usize * 8..][..8];
        Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    }

    /// Another one.
    pub fn set(&self, block: u64, hash: u64) -> io::Result<()> {
        let mut page = self.page(block)?;
        page[(block % HASHES) as usize * 8..][..8].copy_from_slice(&hash.to_le_bytes());
        let check = hash_of(&page[..PAGE - 8]);
        page[PAGE - 8..].copy_from_slice(&check.to_le_bytes());
        self.file.write_all_at(&page, at(block))
    }

    /// Lets another one have it.
    pub fn unlock(&self) {
        files::unlock(&self.file);
    }

    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

/// Where the page of a block begins.
fn at(block: u64) -> u64 {
    (HEADER + PAGE) as u64 + block / HASHES * PAGE as u64
}

/// The bytes of a file of so many hashes.
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
    fn hashes_are_kept_and_a_damaged_page_is_named() {
        let folder = Folder::new();
        let path = folder.join("hashes");
        let block = Sectors::new(8);
        let hashes = HashFile::open_or_create(&path, &disk(), block).expect("new");
        for number in [0, 510, 511, 2047] {
            assert_eq!(hashes.hash(number).expect("a hole"), 0);
            hashes.set(number, number + 7).expect("room");
        }
        drop(hashes);
        let hashes = HashFile::open(&path, &disk(), block).expect("there");
        for number in [0, 510, 511, 2047] {
            assert_eq!(hashes.hash(number).expect("kept"), number + 7);
        }
        hashes.file.write_all_at(b"x", at(511) + 100).expect("room");
        let problem = hashes.hash(600).expect_err("damaged").to_string();
        assert_eq!(problem, "it is damaged at byte 24576");
        // The others are not made good by one that is new.
        assert!(hashes.set(600, 1).is_err());
        assert!(hashes.hash(0).is_ok());
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
        let whole = std::fs::metadata(&path).expect("there").len();
        let file = File::options().write(true).open(&path).expect("there");
        file.set_len(whole - 1).expect("shorter");
        assert!(refused(&path, &disk(), 8).contains("it was cut short"));
    }
}
