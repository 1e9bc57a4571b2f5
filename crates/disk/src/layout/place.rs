//! The answers of a layout: positions, runs of sectors, slots and zones.

use headtime_units::{Angle, Cylinder, Extent, Lba, Sectors, Track};

/// The position of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Track of the sector.
    pub track: Track,
    /// Slot on the track, counted from the track's own first slot (not from the index mark).
    pub slot: u32,
    /// Angle at which the slot begins.
    pub angle: Angle,
}

/// Consecutive addresses in consecutive slots of one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first address.
    pub start: Lba,
    /// Number of addresses. At least 1, at most [`Run::sectors_per_track`].
    pub len: u32,
    /// The track.
    pub track: Track,
    /// The slot of the first address.
    pub slot: u32,
    /// Slots on the track, usable or not.
    pub sectors_per_track: u32,
    /// Sectors from the track's zero to the slot of the first address.
    pub(super) index: u32,
    /// The angle of the track's zero.
    pub(super) zero: Angle,
    /// 2^64 / `sectors_per_track`, rounded down.
    pub(super) step: u64,
}

impl Run {
    /// Angle at which the slot of address `start + sector` begins. If `sector` is `len`, the angle
    /// at which the last slot ends.
    pub fn angle(&self, sector: u32) -> Angle {
        debug_assert!(sector <= self.len);
        let mut index = self.index + sector;
        if index >= self.sectors_per_track {
            index -= self.sectors_per_track;
        }
        self.zero + slot_angle(index, self.step)
    }

    /// Angle from one slot to the next, in 2^64ths of a turn, rounded down; 0 for a single slot.
    pub(crate) fn step(&self) -> u64 {
        self.step
    }

    /// The address behind the last one.
    pub fn end(&self) -> Lba {
        self.start + Sectors::new(u64::from(self.len))
    }

    /// The run without the addresses behind its first `len`.
    pub fn truncated(mut self, len: u64) -> Run {
        self.len = self.len.min(u32::try_from(len).unwrap_or(u32::MAX));
        self
    }

    /// The run without its first `sectors` addresses.
    ///
    /// # Panics
    ///
    /// If nothing is left.
    pub fn skipped(mut self, sectors: u32) -> Run {
        assert!(sectors < self.len, "a run has at least one sector");
        self.start = self.start + Sectors::new(u64::from(sectors));
        self.len -= sectors;
        self.slot += sectors;
        self.index += sectors;
        if self.index >= self.sectors_per_track {
            self.index -= self.sectors_per_track;
        }
        self
    }
}

/// The angle of slot `index` counted from a track's zero, rounded up to the next step of an
/// [`Angle`]. `step` is 2^64 / slots. The result equals [`Angle::of_slot`], without a division.
pub(super) fn slot_angle(index: u32, step: u64) -> Angle {
    Angle::from_bits(((u64::from(index) * step).wrapping_add(0xFFFF_FFFF) >> 32) as u32)
}

/// 2^64 / slots, rounded down; 0 for a single slot.
pub(super) fn step_of(sectors_per_track: u32) -> u64 {
    match sectors_per_track {
        1 => 0,
        slots => ((1_u128 << 64) / u128::from(slots)) as u64,
    }
}

/// The content of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The sector of an address.
    Data(Lba),
    /// Nothing: a bad place that addresses pass over, or a place whose data is elsewhere.
    Bad,
    /// Nothing yet: a spare.
    Spare,
    /// A sector that the drive reserves for itself.
    Reserved,
}

/// A zone as the layout sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneInfo {
    /// The addresses of the zone.
    pub extent: Extent,
    /// The outermost cylinder.
    pub first_cylinder: Cylinder,
    /// The innermost cylinder.
    pub last_cylinder: Cylinder,
    /// Slots on each track.
    pub sectors_per_track: u32,
}

/// Turns without whole turns, in 2^64ths of a turn.
pub(super) fn fraction(turns: f64) -> u64 {
    ((turns - libm::floor(turns)) * 18_446_744_073_709_551_616.0) as u64
}
