//! Byte range of a disk that an image has.

use super::identity::Identity;
use headtime_units::Bytes;
use std::fmt;
use std::ops::Range;

/// Bytes of a disk that an image has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteRange {
    /// First byte.
    pub start: u64,
    /// Byte behind the last.
    pub end: u64,
}

impl ByteRange {
    /// All bytes of a disk.
    pub fn whole(disk: &Identity) -> ByteRange {
        let end = disk.bytes();
        ByteRange { start: 0, end }
    }

    /// Number of bytes.
    pub fn len(self) -> u64 {
        self.end - self.start
    }

    /// Part of the `len` bytes from `at` on that lies in the range; `None` if no byte does. Returns the place in the image, and the indices
    /// of these bytes.
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
