//! Disks behind one address space.

use crate::describe::entries;
use headtime_config::{Many, parse, whole};
use headtime_engine::{MEMBERS_MAX, MapError, ReadFrom, Striped};
use headtime_units::{Bytes, Rate, Sectors};
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};

/// An array of disks as in configuration files: one key for each field. A scenario gives the number of equal disks, a
/// server the names of its disks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "M: ArrayMembers"))]
pub struct ArraySpec<M = u16> {
    /// Layout of the array's sectors.
    #[serde(default)]
    pub level: Level,
    /// The disks, 2 to 64.
    #[serde(deserialize_with = "M::read")]
    pub members: M,
    /// Bytes on a disk before the next disk's turn; default 64 KiB (mdadm up to 3.1). A multiple of 4 KiB.
    #[serde(default = "chunk", deserialize_with = "chunks")]
    pub chunk: Bytes,
    /// Choice of the disk for a read of a mirror.
    #[serde(default, skip_serializing_if = "is_nearest")]
    pub reads: ReadFrom,
    /// True if a coordinator makes all disks serve the same stream at a time; default false. A scenario may list
    /// several values to compare.
    #[serde(default = "alone", skip_serializing_if = "is_alone")]
    pub coordinate: Many<bool>,
    /// Rate of a link that all disks share, such as a RAID card's; no link if absent. 1 MB/s to 1 TB/s.
    #[serde(default, deserialize_with = "bus")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus: Option<Rate>,
}

/// Layout of an array's sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Chunks on each disk in turn, without parity.
    #[default]
    Raid0,
    /// A mirror: all sectors on each disk.
    Raid1,
    /// As RAID 0, with a chunk of parity in each row, left-symmetric.
    Raid5,
}

/// Bytes of a page. No chunk splits a page.
const PAGE: u64 = 4 << 10;

fn alone() -> Many<bool> {
    Many(vec![false])
}

fn is_alone(coordinate: &Many<bool>) -> bool {
    coordinate == &alone()
}

fn is_nearest(reads: &ReadFrom) -> bool {
    *reads == ReadFrom::Nearest
}

fn chunk() -> Bytes {
    Bytes(64 << 10)
}

fn chunks<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
    parse(from, "a size, such as \"64KiB\"", |text| {
        let chunk: Bytes = text.parse().map_err(|error| format!("{error}"))?;
        match chunk.0 > 0 && chunk.0.is_multiple_of(PAGE) && chunk.0 <= 64 << 20 {
            true => Ok(chunk),
            false => Err("allowed is a multiple of 4KiB up to 64MiB".to_owned()),
        }
    })
}

fn bus<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Rate>, D::Error> {
    parse(from, "a rate, such as \"400MB/s\"", |text| {
        match text.parse() {
            Ok(rate) if (Rate(1_000_000)..=Rate(1_000_000_000_000)).contains(&rate) => {
                Ok(Some(rate))
            }
            _ => Err("allowed is 1MB/s to 1TB/s".to_owned()),
        }
    })
}

/// Disks of an array, as a description gives them.
pub trait ArrayMembers: Sized {
    /// Reads the members.
    ///
    /// # Errors
    ///
    /// If the number of members is not allowed.
    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error>;

    /// Number of disks.
    fn count(&self) -> u16;
}

impl ArrayMembers for u16 {
    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<u16, D::Error> {
        whole::<_, _, 2, 64>(from)
    }

    fn count(&self) -> u16 {
        *self
    }
}

impl ArrayMembers for Vec<String> {
    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
        let names = Vec::<String>::deserialize(from)?;
        match names.len() {
            2..=MEMBERS_MAX => Ok(names),
            count => Err(D::Error::custom(format!(
                "{count} disks; allowed are 2 to {}",
                MEMBERS_MAX
            ))),
        }
    }

    fn count(&self) -> u16 {
        self.len() as u16
    }
}

impl<M: ArrayMembers> ArraySpec<M> {
    /// Lays the array over disks of these sizes.
    ///
    /// # Errors
    ///
    /// If a disk has no whole chunk, or all disks together have too many sectors, or the level needs more disks.
    pub fn over(&self, sizes: &[Sectors], sector_bytes: u32) -> Result<Striped, MapError> {
        // A page is a multiple of a sector, and a chunk is a multiple of a page.
        let chunk = Sectors::new(self.chunk.0 / u64::from(sector_bytes));
        match self.level {
            Level::Raid0 => Striped::new(chunk, sizes),
            Level::Raid1 => Striped::mirrored(self.reads, sizes),
            Level::Raid5 => Striped::with_parity(chunk, sizes),
        }
    }

    /// Returns keys and values of the array as settings of a log (`array.chunk`). They are for information. A replay
    /// ignores them.
    pub fn log_settings(&self) -> impl Iterator<Item = (String, String)> + use<M>
    where
        M: Serialize,
    {
        let entries = entries(self).into_iter();
        entries.map(|(key, value)| (format!("array.{key}"), value.text()))
    }

    /// Returns the least read-ahead of a host above the array: two stripes of data, as md sets it. A mirror has no stripes.
    pub fn read_ahead(&self) -> Bytes {
        let data = match self.level {
            Level::Raid0 => self.members.count(),
            Level::Raid1 => 0,
            Level::Raid5 => self.members.count() - 1,
        };
        Bytes(2 * u64::from(data) * self.chunk.0)
    }
}

impl ArraySpec {
    /// Lays the array over disks of `capacity` sectors with `sector_bytes` bytes.
    ///
    /// # Errors
    ///
    /// If a disk has no whole chunk, or all disks together have too many sectors.
    pub fn build(&self, capacity: Sectors, sector_bytes: u32) -> Result<Striped, MapError> {
        self.over(&vec![capacity; usize::from(self.members)], sector_bytes)
    }
}
