//! Image of a disk or of a part of a disk: a file in which zeroes are holes.
//!
//! The file has the bytes of the part and nothing else. The [`Watch`](super::watch::Watch) says which of the blocks are current. The first
//! pass of a copy makes the file. An existing file is left alone, unless it is known to be the image of an unfinished copy. Otherwise a new
//! copy could overwrite an older, finished image.

mod line;

use super::byte_range::ByteRange;
use super::files::{self, FileId};
use super::identity::ProgressError;
use headtime_linux::shown::PathShown as _;
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

pub(super) use line::{Line, Moment};

/// Bytes that are checked for zeroes together: the unit of a file system's holes.
const ZERO_UNIT_BYTES: usize = 4096;

/// Zeroes to write at a time where a file system has no holes.
static ZEROES: [u8; 64 << 10] = [0; 64 << 10];

/// Image of a disk or of a part of a disk.
#[derive(Debug)]
pub(super) struct ImageFile {
    path: PathBuf,
    file: File,
    id: FileId,
    part: ByteRange,
    /// True if this scrub has made the file, and the file is empty.
    is_new: bool,
}

impl ImageFile {
    /// Opens or makes an image of a part of a disk. A new image is all holes. `ours` names the file of an unfinished copy, and the time at
    /// which the file was made. Only this file may be overwritten.
    ///
    /// # Errors
    ///
    /// If another file exists, or none can be made.
    pub fn create_or_empty(
        path: &Path,
        part: ByteRange,
        ours: Option<(FileId, String)>,
    ) -> Result<ImageFile, ProgressError> {
        if let Some(ours) = ours.filter(|(id, _)| id.is_at(path)) {
            let image = ImageFile::of(path, files::open(path)?, part)?;
            let made = image.made().map_err(|error| files::failed(path, error))?;
            // The image may have been removed, and its inode number reused for another file.
            return match ours == (image.id, made) {
                true => Ok(image),
                false => Err(there_already(path)),
            };
        }
        if path.symlink_metadata().is_ok() {
            return Err(there_already(path));
        }
        let file = files::create(path)?;
        let made = (|| {
            file.set_len(part.len())?;
            file.sync_all()?;
            files::sync_folder(path)
        })();
        if let Err(error) = made {
            // The file is still empty.
            let _ = std::fs::remove_file(path);
            return Err(files::failed(path, error));
        }
        let mut image = ImageFile::of(path, file, part)?;
        image.is_new = true;
        Ok(image)
    }

    /// Opens an image that has to exist.
    pub fn open(path: &Path, part: ByteRange) -> Result<ImageFile, ProgressError> {
        let image = ImageFile::of(path, files::open(path)?, part)?;
        image
            .is_whole()
            .map_err(|error| files::failed(path, error))?;
        Ok(image)
    }

    fn is_whole(&self) -> io::Result<()> {
        let (has, copied) = (self.file.metadata()?.len(), self.part.len());
        match has == copied {
            true => Ok(()),
            false => Err(io::Error::new(
                ErrorKind::InvalidData,
                format!("it has {has} bytes, and what is copied {copied}"),
            )),
        }
    }

    /// Checks that this image is at its path, and has its full length.
    pub fn is_in_place(&self) -> io::Result<()> {
        match self.id.is_at(&self.path) {
            true => self.is_whole(),
            false => Err(io::Error::new(
                ErrorKind::NotFound,
                "it was removed, or another file is in its place",
            )),
        }
    }

    /// Removes an image that this scrub has made and does not use after all. Another file in its place is left alone.
    pub fn give_up(&self) {
        if self.is_new
            && self.id.is_at(&self.path)
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::warn!("{}: {error}", self.path.shown());
        }
    }

    fn of(path: &Path, file: File, part: ByteRange) -> Result<ImageFile, ProgressError> {
        let id = FileId::of(&file).map_err(|error| files::failed(path, error))?;
        Ok(ImageFile {
            path: path.to_owned(),
            file,
            id,
            part,
            is_new: false,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the disk in the image.
    pub fn part(&self) -> ByteRange {
        self.part
    }

    pub fn id(&self) -> FileId {
        self.id
    }

    /// Time at which the file was made, since an inode number may be reused. If the file system does not record the time, the result is a
    /// unique name, which never matches later.
    pub fn made(&self) -> io::Result<String> {
        let made = self.file.metadata()?.created();
        let made = made.ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        match made {
            Some(at) => Ok(at.as_nanos().to_string()),
            None => files::unique().map_err(io::Error::other),
        }
    }

    /// Empties the image.
    pub fn empty(&self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.set_len(self.part.len())?;
        self.file.sync_all()
    }

    /// Writes data that the disk has from a byte on. Bytes outside the part are left out.
    pub fn write(&self, at: u64, data: &[u8]) -> io::Result<()> {
        match self.part.within(at, data.len() as u64) {
            Some((at, bytes)) => self.write_at(at, &data[bytes]),
            None => Ok(()),
        }
    }

    /// Writes data from a byte of the image on.
    fn write_at(&self, mut at: u64, mut data: &[u8]) -> io::Result<()> {
        while !data.is_empty() {
            // The first piece ends where a hole may begin.
            let unit = ZERO_UNIT_BYTES - (at % ZERO_UNIT_BYTES as u64) as usize;
            let zero = is_zero(&data[..unit.min(data.len())]);
            let mut len = unit.min(data.len());
            while len < data.len()
                && is_zero(&data[len..data.len().min(len + ZERO_UNIT_BYTES)]) == zero
            {
                len = data.len().min(len + ZERO_UNIT_BYTES);
            }
            match zero {
                true => self.zero_at(at, len as u64)?,
                false => self.file.write_all_at(&data[..len], at)?,
            }
            (at, data) = (at + len as u64, &data[len..]);
        }
        Ok(())
    }

    /// Writes zeroes, as a hole if possible, for bytes of the disk that are zero or cannot be read.
    pub fn zero(&self, at: u64, len: u64) -> io::Result<()> {
        match self.part.within(at, len) {
            Some((at, bytes)) => self.zero_at(at, bytes.len() as u64),
            None => Ok(()),
        }
    }

    fn zero_at(&self, at: u64, len: u64) -> io::Result<()> {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&self.file, hole, at, len) {
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                self.write_zeroes(at, len)
            }
            punched => Ok(punched?),
        }
    }

    fn write_zeroes(&self, mut at: u64, mut len: u64) -> io::Result<()> {
        while len > 0 {
            let part = len.min(ZEROES.len() as u64);
            self.file.write_all_at(&ZEROES[..part as usize], at)?;
            (at, len) = (at + part, len - part);
        }
        Ok(())
    }

    /// Writes zeroes at the place of a block that is to be copied again, as a test for room.
    pub fn try_room(&self, at: u64, len: u64) -> io::Result<()> {
        match self.part.within(at, len) {
            Some((at, bytes)) => self.write_zeroes(at, bytes.len() as u64),
            None => Ok(()),
        }
    }

    /// Releases the lock of the file.
    pub fn unlock(&self) {
        files::unlock(&self.file);
    }

    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

fn there_already(path: &Path) -> ProgressError {
    files::failed(
        path,
        io::Error::new(
            ErrorKind::AlreadyExists,
            "it is there already, and is no unfinished copy of this disk; a copy is made into a new file",
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_testkit::Folder;
    use std::os::unix::fs::MetadataExt;

    /// All bytes of a disk with this number of sectors.
    fn disk(sectors: u64) -> ByteRange {
        let (start, end) = (0, sectors * 512);
        ByteRange { start, end }
    }

    #[test]
    fn zeroes_are_holes_also_where_there_was_something_else() {
        let folder = Folder::new();
        let path = folder.join("image");
        let image = ImageFile::create_or_empty(&path, disk(2048), None).expect("new");
        let allocated = || std::fs::metadata(&path).expect("there").blocks() * 512;
        assert_eq!(
            (allocated(), path.metadata().expect("there").len()),
            (0, 1 << 20)
        );
        let mut data = vec![0; 64 << 10];
        data[10_000..30_000].fill(7);
        data[65_535] = 1;
        // The data begin within a page and end in another one.
        image.write(1536, &data).expect("room");
        let mut expected = vec![0; 1 << 20];
        expected[1536..1536 + data.len()].copy_from_slice(&data);
        assert_eq!(std::fs::read(&path).expect("there"), expected);
        let some = allocated();
        assert!((20_000..48 << 10).contains(&some), "{some}");
        image.write(1536, &vec![0; data.len()]).expect("room");
        assert_eq!(std::fs::read(&path).expect("there"), vec![0; 1 << 20]);
        assert!(allocated() <= 8192, "{}", allocated());
    }

    #[test]
    fn what_is_there_already_is_left_alone_unless_it_is_known_to_be_ours() {
        let folder = Folder::new();
        let path = folder.join("image");
        std::fs::write(&path, vec![9; 1 << 20]).expect("room");
        let link = folder.join("link");
        std::os::unix::fs::symlink(folder.join("nothing"), &link).expect("room");
        for path in [&path, &link, &folder.join(".")] {
            let refused = ImageFile::create_or_empty(path, disk(2048), None);
            let text = refused.expect_err("it is there").to_string();
            assert!(text.contains("it is there already"), "{text}");
        }
        assert_eq!(std::fs::read(&path).expect("there"), vec![9; 1 << 20]);
        std::fs::remove_file(&path).expect("there");
        let image = ImageFile::create_or_empty(&path, disk(2048), None).expect("new");
        image.write(0, &[1; 512]).expect("room");
        let ours = (image.id(), image.made().expect("there"));
        // The image is in use.
        let refused = ImageFile::create_or_empty(&path, disk(2048), Some(ours.clone()));
        let text = refused.expect_err("in use").to_string();
        assert!(text.contains("in use"), "{text}");
        drop(image);
        // The inode number belonged to another file before.
        let before = (ours.0, "1".to_owned());
        let refused = ImageFile::create_or_empty(&path, disk(2048), Some(before));
        let text = refused.expect_err("another one").to_string();
        assert!(text.contains("it is there already"), "{text}");
        assert_eq!(std::fs::read(&path).expect("there")[..512], [1; 512]);
        let image = ImageFile::create_or_empty(&path, disk(2048), Some(ours)).expect("ours");
        image.empty().expect("room");
        assert_eq!(std::fs::read(&path).expect("there"), vec![0; 1 << 20]);
        drop(image);
        let refused = ImageFile::open(&path, disk(4096)).expect_err("another size");
        let text = refused.to_string();
        assert!(
            text.contains("it has 1048576 bytes, and what is copied 2097152"),
            "{text}"
        );
    }

    #[test]
    fn an_image_of_a_part_begins_where_the_part_does_and_has_nothing_of_what_is_beside() {
        let folder = Folder::new();
        let path = folder.join("image");
        // Both ends lie within a page and within a sector.
        let part = ByteRange {
            start: 10_001,
            end: 99_999,
        };
        let image = ImageFile::create_or_empty(&path, part, None).expect("new");
        let disk: Vec<u8> = (0..200_000_u32).map(|at| (at % 249) as u8 + 1).collect();
        let copied = || std::fs::read(&path).expect("there");
        // Writes before the part, over each end, inside, and after the part.
        for (from, to) in [
            (0, 10_001),
            (8_192, 20_000),
            (20_000, 90_000),
            (90_000, 110_000),
            (99_999, 200_000),
        ] {
            image
                .write(from as u64, &disk[from..to])
                .expect("room for it");
            assert_eq!(copied().len(), 89_998, "{from}-{to}");
        }
        assert_eq!(copied(), disk[10_001..99_999]);
        for (at, len) in [(0, 10_001), (9_000, 2_000), (99_998, 5_000), (99_999, 5)] {
            image.zero(at, len).expect("room for it");
        }
        let mut expected = disk[10_001..99_999].to_vec();
        expected[..999].fill(0);
        expected[89_997] = 0;
        assert_eq!(copied(), expected);
        image.write(0, &disk).expect("room for it");
        assert_eq!(copied(), disk[10_001..99_999]);
        drop(image);
        ImageFile::open(&path, part).expect("as long as the part");
    }

    #[test]
    fn where_there_can_be_no_holes_zeroes_are_written() {
        let folder = Folder::new();
        let path = folder.join("image");
        let image = ImageFile::create_or_empty(&path, disk(2048), None).expect("new");
        image.write(0, &[7; 200_000]).expect("room");
        image.write_zeroes(1000, 150_000).expect("room");
        let expected = [vec![7; 1000], vec![0; 150_000], vec![7; 49_000]].concat();
        assert_eq!(std::fs::read(&path).expect("there")[..200_000], expected);
    }
}
