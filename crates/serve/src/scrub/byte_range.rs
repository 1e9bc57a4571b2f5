//! Which bytes of a disk an image has.

use super::identity::Identity;
use headtime_units::Bytes;
use std::fmt;
use std::ops::Range;

/// The bytes of a disk that an image has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteRange {
    /// The first one.
    pub start: u64,
    /// The one behind the last.
    pub end: u64,
}

impl ByteRange {
    /// All of a disk.
    pub fn whole(disk: &Identity) -> ByteRange {
        let end = disk.bytes();
        ByteRange { start: 0, end }
    }

    /// How many they are.
    pub fn len(self) -> u64 {
        self.end - self.start
    }

    /// Those of so many bytes of the disk that are among them: where they begin in the image, and which of the bytes they are.
    pub fn within(self, at: u64, len: u64) -> Option<(u64, Range<usize>)> {
        let (from, to) = (at.max(self.start), (at + len).min(self.end));
        let bytes = || (from - at) as usize..(to - at) as usize;
        (from < to).then(|| (from - self.start, bytes()))
    }
}

impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", Bytes(self.start), Bytes(self.end))
    }
}
