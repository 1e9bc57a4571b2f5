//! File with the hash or the contents of each block of a disk.

use super::byte_range::ByteRange;
use super::files::FileId;
use super::hashes::HashFile;
use super::identity::{Identity, ProgressError};
use super::image::ImageFile;
use headtime_units::Sectors;
use std::io;
use std::path::Path;

/// Kind of a blocks file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Keeps {
    /// A hash of each block, for comparison.
    Hashes,
    /// The contents of each block.
    Image,
}

impl Keeps {
    /// Name of the option, also used in the headers of files.
    pub fn key(self) -> &'static str {
        match self {
            Keeps::Hashes => "hash",
            Keeps::Image => "copy",
        }
    }

    /// Ending of the name of the watch's file.
    pub fn ending(self) -> &'static str {
        match self {
            Keeps::Hashes => "watch",
            Keeps::Image => "copy",
        }
    }

    /// Name of the watch's file, for messages.
    pub fn record(self) -> &'static str {
        match self {
            Keeps::Hashes => "the watch of a scrub",
            Keeps::Image => "the state of a copy",
        }
    }

    /// Consequence of unnoticed writes, for messages.
    pub fn loss(self) -> &'static str {
        match self {
            Keeps::Hashes => "nothing can be compared with the hashes made so far",
            Keeps::Image => "what was copied so far does not count",
        }
    }
}

/// File of hashes, or image.
#[derive(Debug)]
pub(super) enum BlocksFile {
    Hashes(HashFile),
    Image(ImageFile),
}

impl BlocksFile {
    /// Opens a file of a disk, or makes one. An image is of the bytes `part`. `ours` has the identity and the name of the file at the last
    /// run, if they are known.
    pub fn open_or_create(
        (keeps, path): (Keeps, &Path),
        disk: &Identity,
        part: ByteRange,
        block: Sectors,
        ours: Option<(FileId, String)>,
    ) -> Result<BlocksFile, ProgressError> {
        Ok(match keeps {
            Keeps::Hashes => BlocksFile::Hashes(HashFile::open_or_create(path, disk, block)?),
            Keeps::Image => BlocksFile::Image(ImageFile::create_or_empty(path, part, ours)?),
        })
    }

    /// Opens a file that has to exist.
    pub fn open(
        (keeps, path): (Keeps, &Path),
        disk: &Identity,
        part: ByteRange,
        block: Sectors,
    ) -> Result<BlocksFile, ProgressError> {
        Ok(match keeps {
            Keeps::Hashes => BlocksFile::Hashes(HashFile::open(path, disk, block)?),
            Keeps::Image => BlocksFile::Image(ImageFile::open(path, part)?),
        })
    }

    pub fn keeps(&self) -> Keeps {
        match self {
            BlocksFile::Hashes(_) => Keeps::Hashes,
            BlocksFile::Image(_) => Keeps::Image,
        }
    }

    /// Bytes of the disk in an image; `None` for hashes, which may be of any blocks.
    pub fn part(&self) -> Option<ByteRange> {
        match self {
            BlocksFile::Hashes(_) => None,
            BlocksFile::Image(image) => Some(image.part()),
        }
    }

    pub fn path(&self) -> &Path {
        match self {
            BlocksFile::Hashes(hashes) => hashes.path(),
            BlocksFile::Image(image) => image.path(),
        }
    }

    pub fn id(&self) -> FileId {
        match self {
            BlocksFile::Hashes(hashes) => hashes.id(),
            BlocksFile::Image(image) => image.id(),
        }
    }

    /// Name that distinguishes the file from another one at its place.
    pub fn name(&self) -> io::Result<String> {
        match self {
            BlocksFile::Hashes(hashes) => hashes.watch(),
            BlocksFile::Image(image) => image.made(),
        }
    }

    /// Empties the file. `new` is a unique name. Returns the name of the file from now on.
    pub fn begin(&self, new: &str) -> io::Result<String> {
        match self {
            BlocksFile::Hashes(hashes) => {
                // An earlier watch cannot use the hashes any more.
                hashes.set_watch(new)?;
                Ok(new.to_owned())
            }
            BlocksFile::Image(image) => {
                image.empty()?;
                image.made()
            }
        }
    }

    /// Removes a file that was made and is not used after all.
    pub fn give_up(&self) {
        match self {
            // A file without hashes may serve the next request.
            BlocksFile::Hashes(_) => {}
            BlocksFile::Image(image) => image.give_up(),
        }
    }

    /// Checks that an image is at its path.
    pub fn is_in_place(&self) -> io::Result<()> {
        match self {
            // The name of a hash file is checked when the file is opened.
            BlocksFile::Hashes(_) => Ok(()),
            BlocksFile::Image(image) => image.is_in_place(),
        }
    }

    /// Releases the lock of the file.
    pub fn unlock(&self) {
        match self {
            BlocksFile::Hashes(hashes) => hashes.unlock(),
            BlocksFile::Image(image) => image.unlock(),
        }
    }

    pub fn sync(&self) -> io::Result<()> {
        match self {
            BlocksFile::Hashes(hashes) => hashes.sync(),
            BlocksFile::Image(image) => image.sync(),
        }
    }
}
