//! Logical and physical addresses on a disk.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// Address of one logical sector of a disk.
///
/// A sector has the size that the disk gives it, 512 or 4096 bytes. Traces and kernel interfaces always
/// count in 512 bytes; their readers convert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lba(u64);

/// A count of logical sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sectors(u64);

/// A run of consecutive sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// The first sector.
    pub start: Lba,
    /// Number of sectors.
    pub len: Sectors,
}

/// A cylinder: the tracks of all surfaces at one arm position. 0 is the outermost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cylinder(pub u32);

/// A head, that is, a surface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Head(pub u16);

/// One circle on one surface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Track {
    /// Where the arm is.
    pub cylinder: Cylinder,
    /// Which surface.
    pub head: Head,
}

impl Cylinder {
    /// Cylinders between two arm positions.
    pub const fn distance(self, other: Cylinder) -> u32 {
        self.0.abs_diff(other.0)
    }
}

impl Lba {
    /// The first sector of a disk.
    pub const ZERO: Lba = Lba(0);

    /// The sector numbered `sector`.
    pub const fn new(sector: u64) -> Lba {
        Lba(sector)
    }

    /// The number of the sector.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Sectors between two addresses, in either direction.
    pub const fn distance(self, other: Lba) -> Sectors {
        Sectors(self.0.abs_diff(other.0))
    }
}

impl Sectors {
    /// No sectors.
    pub const ZERO: Sectors = Sectors(0);
    /// Largest read or write that a drive is given: 2²³ sectors, or 4 GiB in sectors of 512 bytes, as the largest
    /// request of Linux. With this limit a bound on the time per sector bounds the time of a request.
    pub const REQUEST_MAX: Sectors = Sectors(1 << 23);

    /// `count` sectors.
    pub const fn new(count: u64) -> Sectors {
        Sectors(count)
    }

    /// The count.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Bytes in these sectors, with `sector_bytes` bytes each.
    pub const fn bytes(self, sector_bytes: u32) -> u64 {
        self.0 * sector_bytes as u64
    }

    /// `self − other`, at least zero.
    pub const fn saturating_sub(self, other: Sectors) -> Sectors {
        Sectors(self.0.saturating_sub(other.0))
    }
}

impl Extent {
    /// `len` sectors from `start` on.
    pub const fn new(start: Lba, len: Sectors) -> Extent {
        Extent { start, len }
    }

    /// `len` sectors from sector `start` on.
    pub const fn at(start: u64, len: u64) -> Extent {
        Extent {
            start: Lba(start),
            len: Sectors(len),
        }
    }

    /// The address behind the last sector.
    ///
    /// # Panics
    ///
    /// If it leaves 64 bits.
    pub fn end(self) -> Lba {
        self.start + self.len
    }

    /// Returns true if the two share a sector. An empty extent shares none.
    pub fn overlaps(self, other: Extent) -> bool {
        self.start.max(other.start) < self.end().min(other.end())
    }

    /// Returns true if `lba` is one of the sectors.
    pub fn contains(self, lba: Lba) -> bool {
        self.start <= lba && lba < self.end()
    }

    /// Returns true if every sector of `other` is one of these.
    pub fn covers(self, other: Extent) -> bool {
        self.start <= other.start && other.end() <= self.end()
    }

    /// Returns true if `next` begins where this extent ends.
    pub fn is_followed_by(self, next: Extent) -> bool {
        self.end() == next.start
    }

    /// Returns true if there are no sectors.
    pub const fn is_empty(self) -> bool {
        self.len.0 == 0
    }
}

impl Add<Sectors> for Lba {
    type Output = Lba;

    /// # Panics
    ///
    /// If the sum leaves 64 bits.
    fn add(self, len: Sectors) -> Lba {
        Lba(self.0.checked_add(len.0).expect("address overflow"))
    }
}

impl Sub<Sectors> for Lba {
    type Output = Lba;

    /// # Panics
    ///
    /// If the result lies before sector 0.
    fn sub(self, len: Sectors) -> Lba {
        Lba(self.0.checked_sub(len.0).expect("address before sector 0"))
    }
}

impl Sub for Lba {
    type Output = Sectors;

    /// # Panics
    ///
    /// If `lower` is higher than `self`.
    fn sub(self, lower: Lba) -> Sectors {
        Sectors(
            self.0
                .checked_sub(lower.0)
                .expect("negative count of sectors"),
        )
    }
}

impl Add for Sectors {
    type Output = Sectors;

    /// # Panics
    ///
    /// If the sum leaves 64 bits.
    fn add(self, other: Sectors) -> Sectors {
        Sectors(self.0.checked_add(other.0).expect("sector count overflow"))
    }
}

impl Sub for Sectors {
    type Output = Sectors;

    /// # Panics
    ///
    /// If `other` is more than `self`.
    fn sub(self, other: Sectors) -> Sectors {
        Sectors(
            self.0
                .checked_sub(other.0)
                .expect("negative count of sectors"),
        )
    }
}

impl AddAssign for Sectors {
    fn add_assign(&mut self, other: Sectors) {
        *self = *self + other;
    }
}

impl fmt::Display for Lba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Sectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Writes `start+len`.
impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.start, self.len)
    }
}

/// Writes `cylinder/head`.
impl fmt::Display for Track {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.cylinder.0, self.head.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_touch_or_overlap() {
        let a = Extent::at(10, 5);
        assert!(a.is_followed_by(Extent::at(15, 1)));
        assert!(!a.overlaps(Extent::at(15, 1)));
        assert!(a.overlaps(Extent::at(14, 1)));
        assert!(a.overlaps(Extent::at(0, 100)));
        assert!(!a.overlaps(Extent::at(12, 0)) && !Extent::at(12, 0).overlaps(a));
        assert!(a.contains(Lba::new(14)) && !a.contains(Lba::new(15)));
        assert!(a.covers(Extent::at(11, 4)) && !a.covers(Extent::at(11, 5)));
        assert_eq!(a.end() - a.start, Sectors::new(5));
    }

    #[test]
    #[should_panic(expected = "address overflow")]
    fn addresses_do_not_wrap() {
        let _ = Lba::new(u64::MAX) + Sectors::new(1);
    }
}
