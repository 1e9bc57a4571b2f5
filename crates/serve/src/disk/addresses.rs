//! Bytes of a disk that a client can address.

use crate::request::Cut;
use headtime_units::{Bytes, Extent, Lba, Sectors};

/// Consecutive bytes of a disk that a client addresses from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    first: u64,
    end: u64,
    sector_bytes: u32,
}

/// Bytes that a disk cannot give to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PartError {
    /// The part begins or ends within a sector.
    #[error("{0} is within a sector; allowed are multiples of the disk's sectors of {1}B")]
    Sector(Bytes, u32),
    /// The part ends beyond the disk.
    #[error("ends beyond the disk, which has {0}")]
    Beyond(Bytes),
    /// The part has no bytes.
    #[error("has no bytes; its first byte is before its end")]
    Empty,
}

impl Addresses {
    /// All bytes of a disk. The last sector may have fewer than the others.
    pub const fn whole(bytes: u64, sector_bytes: u32) -> Addresses {
        Addresses {
            first: 0,
            end: bytes,
            sector_bytes,
        }
    }

    /// Returns the part of these bytes from byte `start` up to byte `end`. The part consists of whole sectors. Only
    /// the last sector of these bytes may be short.
    ///
    /// # Errors
    ///
    /// If the bytes are not whole sectors of the disk.
    pub fn part(self, start: u64, end: u64) -> Result<Addresses, PartError> {
        let sector = u64::from(self.sector_bytes);
        if end > self.bytes() {
            return Err(PartError::Beyond(Bytes(self.bytes())));
        }
        if start >= end {
            return Err(PartError::Empty);
        }
        let within = |at: &u64| *at != self.bytes() && !at.is_multiple_of(sector);
        match [start, end].into_iter().find(within) {
            Some(at) => Err(PartError::Sector(Bytes(at), self.sector_bytes)),
            None => Ok(Addresses {
                first: self.first + start,
                end: self.first + end,
                ..self
            }),
        }
    }

    /// Number of bytes.
    pub const fn bytes(self) -> u64 {
        self.end - self.first
    }

    /// Bytes of a sector; a power of two of at most 4096.
    pub const fn sector_bytes(self) -> u32 {
        self.sector_bytes
    }

    /// The byte of the disk that a client sees as `offset`.
    pub const fn on_disk(self, offset: u64) -> u64 {
        self.first + offset
    }

    /// Extent of a flush: no sectors, at the first sector. In a volume the place decides which members the flush concerns.
    pub fn flush(self) -> (Extent, Cut) {
        let first = Lba::new(self.first / u64::from(self.sector_bytes));
        (Extent::new(first, Sectors::ZERO), Cut::NONE)
    }

    /// Returns the sectors of the disk that contain bytes `offset` to `offset + len`, and the cut of these sectors.
    /// `len` is at least 1, and the bytes lie within [`Addresses::bytes`]. If the bytes end with the disk, the cut has
    /// no tail, since there is nothing to preserve after the disk's end.
    pub fn span(self, offset: u64, len: u64) -> (Extent, Cut) {
        let sector = u64::from(self.sector_bytes);
        let (start, end) = (self.on_disk(offset), self.on_disk(offset) + len);
        let first = start / sector;
        let extent = Extent::new(Lba::new(first), Sectors::new(end.div_ceil(sector) - first));
        // A part ends with a sector or with the disk.
        let behind = end.next_multiple_of(sector) - end;
        let cut = Cut {
            head: (start % sector) as u32,
            tail: if end == self.end { 0 } else { behind as u32 },
        };
        (extent, cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_whole_sectors_of_the_disk() {
        let disk = Addresses::whole(10_000, 4096);
        for (start, end, part) in [
            (0, 4096, Ok(4096)),
            (4096, 10_000, Ok(5904)),
            (0, 10_000, Ok(10_000)),
            (4096, 4096, Err(PartError::Empty)),
            (8192, 4096, Err(PartError::Empty)),
            (512, 4096, Err(PartError::Sector(Bytes(512), 4096))),
            (0, 9_999, Err(PartError::Sector(Bytes(9_999), 4096))),
            (0, 12_288, Err(PartError::Beyond(Bytes(10_000)))),
            (
                u64::MAX - 1,
                u64::MAX,
                Err(PartError::Beyond(Bytes(10_000))),
            ),
        ] {
            let found = disk.part(start, end).map(Addresses::bytes);
            assert_eq!(found, part, "{start}..{end}");
        }
    }

    #[test]
    fn requests_to_a_part_lie_on_sectors_of_the_disk() {
        let cut = |head, tail| Cut { head, tail };
        let middle = Addresses::whole(10_000, 512).part(1024, 2048).unwrap();
        assert_eq!(middle.span(0, 1024), (Extent::at(2, 2), Cut::NONE));
        assert_eq!(middle.span(100, 412), (Extent::at(2, 1), cut(100, 0)));
        assert_eq!(middle.span(1023, 1), (Extent::at(3, 1), cut(511, 0)));
        // The last sector of the disk has 272 bytes.
        let last = Addresses::whole(10_000, 512).part(9728, 10_000).unwrap();
        assert_eq!(last.span(0, 272), (Extent::at(19, 1), Cut::NONE));
        assert_eq!(last.span(0, 271), (Extent::at(19, 1), cut(0, 241)));
    }
}
