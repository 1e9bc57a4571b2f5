//! A file that has something of each block of a disk: its hash, or all that is in it.

use super::byte_range::ByteRange;
use super::files::FileId;
use super::hashes::HashFile;
use super::identity::{Identity, ProgressError};
use super::image::ImageFile;
use headtime_units::Sectors;
use std::io;
use std::path::Path;

/// What is kept of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Keeps {
    /// A hash, with which the block is compared.
    Hashes,
    /// The block.
    Image,
}

impl Keeps {
    /// The option that asks for it, and its name in files.
    pub fn key(self) -> &'static str {
        match self {
            Keeps::Hashes => "hash",
            Keeps::Image => "copy",
        }
    }

    /// The ending of the name of a watch of it.
    pub fn ending(self) -> &'static str {
        match self {
            Keeps::Hashes => "watch",
            Keeps::Image => "copy",
        }
    }

    /// Name of the file that has the marks, for messages.
    pub fn record(self) -> &'static str {
        match self {
            Keeps::Hashes => "the watch of a scrub",
            Keeps::Image => "the state of a copy",
        }
    }

    /// What it means that writes may have gone unnoticed.
    pub fn loss(self) -> &'static str {
        match self {
            Keeps::Hashes => "nothing can be compared with the hashes made so far",
            Keeps::Image => "what was copied so far does not count",
        }
    }
}

/// Where it is kept.
#[derive(Debug)]
pub(super) enum BlocksFile {
    Hashes(HashFile),
    Image(ImageFile),
}

impl BlocksFile {
    /// A file of a disk, or of this part of it if it is an image, which may be there or not; `ours` is which one it was when it was last written to, and its name.
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

    /// One that is to be there.
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

    /// Which bytes of the disk an image has. Hashes are of blocks, wherever these are.
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

    /// What tells it from one that has taken its place.
    pub fn name(&self) -> io::Result<String> {
        match self {
            BlocksFile::Hashes(hashes) => hashes.watch(),
            BlocksFile::Image(image) => image.made(),
        }
    }

    /// Forgets what it has; `new` is a name that nothing else has. Returns that by which it is known from now on.
    pub fn begin(&self, new: &str) -> io::Result<String> {
        match self {
            BlocksFile::Hashes(hashes) => {
                // Whoever had these hashes before has them no longer.
                hashes.set_watch(new)?;
                Ok(new.to_owned())
            }
            BlocksFile::Image(image) => {
                image.empty()?;
                image.made()
            }
        }
    }

    /// Nobody is to know it after all: what was made for that is removed.
    pub fn give_up(&self) {
        match self {
            // One that has nothing yet is good for whoever asks again.
            BlocksFile::Hashes(_) => {}
            BlocksFile::Image(image) => image.give_up(),
        }
    }

    /// Makes sure that it is where whoever asked for it looks for it, as far as that has to be.
    pub fn is_in_place(&self) -> io::Result<()> {
        match self {
            // Whoever opens it looks whether it is the one.
            BlocksFile::Hashes(_) => Ok(()),
            BlocksFile::Image(image) => image.is_in_place(),
        }
    }

    /// Lets another one have it.
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
