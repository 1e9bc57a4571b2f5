//! Several disks that one loop drives.

/// A disk of a volume, by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member(pub u16);

impl Member {
    /// Its number as an index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}
