//! A copy of a disk in a sparse file.

use super::progress::{ProgressError, lock};
use rustix::fs::FallocateFlags;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The file.
#[derive(Debug)]
pub(super) struct Image {
    path: PathBuf,
    file: File,
    /// Whether its file system can take room back.
    punches: bool,
}

impl Image {
    /// A file that is not there yet, for a disk of so many bytes.
    pub fn create(path: &Path, bytes: u64) -> Result<Image, ProgressError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let made = options.open(path).and_then(|file| {
            file.set_len(bytes)?;
            Ok(file)
        });
        Image::of(path, made)
    }

    /// The file of an unfinished copy.
    pub fn open(path: &Path, bytes: u64) -> Result<Image, ProgressError> {
        let file = OpenOptions::new().read(true).write(true).open(path);
        let image = Image::of(path, file)?;
        let len = image.file.metadata().map(|metadata| metadata.len());
        match len {
            Ok(len) if len == bytes => Ok(image),
            Ok(len) => Err(ProgressError::Format {
                path: path.to_owned(),
                problem: format!("it has {len} bytes, and the disk {bytes}"),
            }),
            Err(error) => Image::of(path, Err(error)),
        }
    }

    fn of(path: &Path, file: io::Result<File>) -> Result<Image, ProgressError> {
        let path = path.to_owned();
        match file {
            Ok(file) => {
                lock(&file, &path)?;
                Ok(Image {
                    path,
                    file,
                    punches: true,
                })
            }
            Err(error) => Err(ProgressError::Io { path, error }),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes what was read at an offset; zeroes take no room.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let is_zero = data.iter().all(|byte| *byte == 0);
        if is_zero && self.punches {
            let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let punched = rustix::fs::fallocate(&self.file, how, offset, data.len() as u64);
            match punched {
                Ok(()) => return Ok(()),
                Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                    self.punches = false;
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.file.write_all_at(data, offset)
    }

    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}
