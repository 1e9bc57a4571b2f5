//! The description of a drive.
//!
//! [`Spec`] is plain data. [`Profile`] is a spec that passed every check: parse, don't validate.
//! Read one with [`Profile::from_toml`], take a shipped one with [`by_name`], or change one with
//! [`Profile::with`], which checks again.
//!
//! The text form is TOML; `docs/profile.md` explains a complete one. Keys that end in their unit
//! (`read_us`) take bare numbers, every other duration is a string with its unit.
//!
//! The terms follow the DiskSim 4.0 reference manual (sections on `dm_layout_g1`, `dm_mech_g1` and
//! the disk module) where the manual has a term. Each field of [`CacheSpec`], [`OverheadSpec`] and
//! [`BusSpec`] names its parameter.

mod cache;
mod check;
mod form;
mod map;
mod native;
mod overhead;
mod plausible;
mod reference;
mod shipped;
#[cfg(test)]
mod tests;
mod text;

use headtime_config::{lines, number};
use headtime_units::{Nanos, Sectors, SignedNanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

pub use cache::{CacheSpec, Destage, ReadAhead, RequestedData, WriteBack};
pub use map::{MapPart, MapRemap, MapSpec, SpareTrack, Strip};
pub use overhead::{EarlyDisconnect, OverheadSpec};
pub use plausible::plausible;
pub use reference::{Reference, ReferenceError};
pub use shipped::{Shipped, by_name, shipped};

/// Error in a profile: the fault and the key at fault. The place in the text is known if the profile came from a text.
pub type ProfileError = headtime_config::Error;

/// A checked description of a drive; cheap to clone.
///
/// Reads like the [`Spec`] it holds: `profile.geometry.heads`.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile(Arc<Spec>);

impl Deref for Profile {
    type Target = Spec;

    fn deref(&self) -> &Spec {
        &self.0
    }
}

/// Everything that is known about a drive, unchecked.
///
/// Invariants of a spec that [`Spec::check`] accepts, besides those of its parts:
///
/// - `layout.map.is_some()` ⇔ `layout.zones.is_empty()`.
/// - `1 ≤ geometry.capacity ≤ 2^40`, and the zones or the map have room for as many sectors.
/// - `cache.enabled` ⇒ `cache.segment_sectors ≤ geometry.capacity`.
/// - A `cache.sneaky_..` hit is allowed ⇒ `!bus.hold_for_read`.
/// - `1 ≤ queue.depth ≤ 256`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Spec {
    /// Short name: lower-case letters, digits, hyphens and points.
    pub name: String,
    /// Vendor, model and capacity, for people.
    pub model: String,
    /// Origin of the values, in prose.
    #[serde(serialize_with = "lines", deserialize_with = "form::trimmed")]
    pub provenance: String,
    /// A key of the profile (`seek`, `layout.zones`) and the mark that holds for it.
    #[serde(default, with = "form::entries", skip_serializing_if = "Vec::is_empty")]
    pub trust: Vec<(String, Trust)>,
    /// Sizes.
    pub geometry: Geometry,
    /// Speed of the platters.
    pub rotation: Rotation,
    /// Positions of the sectors.
    pub layout: LayoutSpec,
    /// Movement of the arm.
    pub seek: SeekSpec,
    /// Order in which sectors are taken from a track.
    #[serde(default)]
    pub access: AccessSpec,
    /// The buffer in the drive.
    #[serde(default)]
    pub cache: CacheSpec,
    /// Time that commands cost.
    #[serde(default)]
    pub overhead: OverheadSpec,
    /// Path to the host.
    #[serde(default)]
    pub bus: BusSpec,
    /// Commands waiting in the drive.
    #[serde(default)]
    pub queue: QueueSpec,
    /// Random variation.
    #[serde(default, skip_serializing_if = "NoiseSpec::is_off")]
    pub noise: NoiseSpec,
}

/// Trust in a value, by its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// Measured on a real unit.
    Measured,
    /// Found out by timing commands to a unit, from outside.
    Learned,
    /// Read from a unit, which reports the value.
    Read,
    /// Printed by the vendor, a review or a paper.
    Published,
    /// Follows from measured or published values by arithmetic that the provenance states.
    Derived,
    /// Unknown, and set so that results which the provenance names come out as near as they can.
    Calibrated,
    /// Recalled but not checked against a document, or assumed: a prior, not a fact.
    Assumed,
}

/// Sizes of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Geometry {
    /// Logical sectors that the host can address, at most the addresses that the zones have room
    /// for. Further room in the zones stays unused.
    #[serde(rename = "capacity_sectors", with = "form::capacity")]
    pub capacity: Sectors,
    /// Cylinders, including cylinders outside of all zones. 1 to 2^24.
    pub cylinders: u32,
    /// Surfaces with data. 1 to 255.
    pub heads: u16,
    /// Bytes in a logical sector: 256, 512 or 4096.
    #[serde(rename = "sector", default = "form::sector", with = "form::bytes")]
    pub sector_bytes: u32,
    /// Bytes in a sector on the medium: the logical size (256, 512n, 4Kn) or 4096 (512e).
    #[serde(rename = "physical_sector", default, with = "form::bytes")]
    pub physical_sector_bytes: u32,
}

impl Geometry {
    /// Logical sectors in a sector on the medium: 1, or 8 for 512e.
    pub fn sectors_per_physical(&self) -> u32 {
        self.physical_sector_bytes / self.sector_bytes
    }
}

/// Speed of the platters.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct Rotation {
    /// Revolutions per minute, 60 to 60,000.
    #[serde(deserialize_with = "number::<_, _, 60, 60000>")]
    pub rpm: f64,
}

impl Rotation {
    /// Time of one revolution, rounded to a nanosecond (0.04 parts per million at 7200 rpm).
    pub fn turn(&self) -> Nanos {
        Nanos::from_millis_f64(60_000.0 / self.rpm)
    }
}

/// Positions of a drive's sectors.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutSpec {
    /// Order of logical addresses over tracks.
    pub order: Order,
    /// Place of the spare sectors.
    pub sparing: Sparing,
    /// True if slipped places use the spares of their area, so that the area does not become
    /// smaller. If false, the spares are for remaps alone. Every slip then moves all later
    /// addresses of the zone and makes the zone smaller. The end of the disk has the place for the
    /// lost addresses. Only [`Sparing::CylinderEnd`], [`Sparing::CylinderFront`] and
    /// [`Sparing::ZoneEnd`] have the choice.
    pub slips_use_spares: bool,
    /// The zones in order of their cylinders. Cylinders between zones hold no data.
    pub zones: Vec<Zone>,
    /// A table of tracks in place of all other fields, which then have the values that [`LayoutSpec::mapped`] gives
    /// them.
    pub map: Option<MapSpec>,
}

impl LayoutSpec {
    /// A layout by a table of tracks.
    pub fn mapped(map: MapSpec) -> LayoutSpec {
        LayoutSpec {
            order: Order::CylinderFirst,
            sparing: Sparing::DiskEnd,
            slips_use_spares: true,
            zones: Vec::new(),
            map: Some(map),
        }
    }

    /// The number of zones. For a map, the number of strips of the disk.
    pub fn zone_count(&self) -> usize {
        match &self.map {
            Some(map) => map.groups.last().map_or(0, Vec::len),
            None => self.zones.len(),
        }
    }

    /// The shortest and the longest track, in slots; 0 if there are no tracks.
    pub fn sectors_per_track(&self) -> [u32; 2] {
        let zones = self.zones.iter().flat_map(|zone| {
            let shortest = zone.by_head.iter().copied().min();
            [Some(zone.sectors_per_track), shortest]
        });
        let zones = zones.flatten();
        let strips = self.map.iter().flat_map(|map| map.groups.iter().flatten());
        let tracks = strips.filter_map(|strip| match strip.of {
            MapPart::Track {
                sectors_per_track, ..
            } => Some(sectors_per_track),
            MapPart::Group(_) => None,
        });
        let all = zones.chain(tracks);
        [all.clone().min(), all.max()].map(|slots| slots.unwrap_or(0))
    }

    /// The shortest and the longest full track, in slots. A table of tracks gives a track at the end of a zone only the
    /// slots of its part. A rare length does not count: more tracks than `heads` must have the length, unless every
    /// length is rare.
    pub fn sectors_per_full_track(&self, heads: u64) -> [u32; 2] {
        let Some(map) = &self.map else {
            return self.sectors_per_track();
        };
        // The number of tracks of each length, by group; the last group is the disk.
        let mut groups: Vec<BTreeMap<u32, u64>> = Vec::with_capacity(map.groups.len());
        for group in &map.groups {
            let mut tracks: BTreeMap<u32, u64> = BTreeMap::new();
            for strip in group {
                let times = strip.run.div_ceil(strip.places.max(1));
                let mut add = |slots: u32, count: u64| {
                    let sum = tracks.entry(slots).or_default();
                    *sum = sum.saturating_add(count.saturating_mul(times));
                };
                match strip.of {
                    MapPart::Track {
                        sectors_per_track, ..
                    } => add(sectors_per_track, 1),
                    MapPart::Group(of) => {
                        let inner = groups.get(of).into_iter().flatten();
                        inner.for_each(|(slots, count)| add(*slots, *count));
                    }
                }
            }
            groups.push(tracks);
        }
        let full = groups.last().into_iter().flatten();
        let full = full
            .filter(|(_, count)| **count > heads)
            .map(|(slots, _)| *slots);
        match (full.clone().min(), full.max()) {
            (Some(least), Some(most)) => [least, most],
            _ => self.sectors_per_track(),
        }
    }

    /// Places that are slipped: sectors, or tracks where slips count tracks.
    pub fn slipped(&self) -> u64 {
        let zones = self.zones.iter().map(|zone| zone.slips.len() as u64);
        let map = self.map.iter().flat_map(|map| &map.slips);
        zones.sum::<u64>() + map.map(|(_, count)| count).sum::<u64>()
    }

    /// Places whose data is elsewhere, in the unit of slips.
    pub fn remapped(&self) -> u64 {
        let zones = self.zones.iter().map(|zone| zone.remaps.len() as u64);
        let map = self.map.iter().flat_map(|map| &map.remaps);
        zones.sum::<u64>() + map.map(|remap| u64::from(remap.count)).sum::<u64>()
    }
}

/// Order of logical addresses over the tracks of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// All heads of a cylinder in turn, then the next cylinder, from head 0 again (DiskSim mapping
    /// scheme 0).
    CylinderFirst,
    /// As [`Order::CylinderFirst`], but every other cylinder of a zone runs from the last head to
    /// the first. The step to the next cylinder then needs no head switch (DiskSim mapping scheme
    /// 1).
    Serpentine,
    /// As [`Order::Serpentine`], but the cylinders with odd numbers run backward in every zone
    /// (DiskSim mapping scheme 2).
    SerpentineThroughout,
    /// `tracks` tracks on one surface, then as many back on the next surface, through all heads.
    /// The next group of cylinders has the reverse order of heads. Drives since about 2005 use this
    /// order.
    SurfaceSerpentine {
        /// Tracks on a surface before the next head's turn. At least 1.
        tracks: u32,
    },
}

/// Place in a zone of the spare sectors that replace bad sectors. It decides the unit of
/// [`Zone::spares`] and the end of a slip.
///
/// A slip moves every later address of its area by one place; a remap moves one address only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sparing {
    /// Whole tracks at the end of a zone; slips and remaps are counted in tracks (DiskSim
    /// scheme 1).
    TracksAtZoneEnd,
    /// Sectors at the end of each cylinder (schemes 2 and 4). Slips of earlier cylinders turn a track by
    /// as many sectors.
    CylinderEnd,
    /// Sectors at the front of each cylinder (schemes 5 and 6). Data begins behind the spares that no slip uses. Slips
    /// of earlier cylinders turn a track by as many sectors.
    CylinderFront,
    /// Sectors at the end of each track (scheme 3). Slips of earlier tracks turn a track by as many
    /// sectors.
    TrackEnd,
    /// Sectors at the end of the disk: no zone keeps any, and slips make a zone shorter (schemes 7, and
    /// 0 for none at all).
    DiskEnd,
    /// Sectors at the end of each range of `cylinders` cylinders, counted from the start of the
    /// zone (scheme 8). A last, shorter range has none.
    RangeEnd {
        /// Cylinders in a range. At least 1.
        cylinders: u32,
    },
    /// Sectors at the end of each zone (schemes 9 and 10).
    ZoneEnd,
}

/// Cylinders with the same number of sectors per track.
///
/// Invariants, within a spec that [`Spec::check`] accepts:
///
/// - `first_cylinder ≤ last_cylinder < geometry.cylinders`.
/// - `1 ≤ sectors_per_track ≤ 65535`, a multiple of the logical sectors in a sector on the medium.
/// - `by_head` is empty, or `by_head.len() = geometry.heads > 1` and `max(by_head) = sectors_per_track`.
/// - `group_skew` or `tracks_per_surface` is given ⇒ `layout.order` is [`Order::SurfaceSerpentine`].
/// - `layout.sparing = DiskEnd` ⇒ `spares = 0`.
/// - `reserved` is below the number of sectors in the zone.
/// - `slips` and the first places of `remaps` ascend, each once. No place of `remaps` occurs twice.
/// - `(from, to)` in `remaps` ⇒ `to` is a spare place, and `from` is not in `slips`.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    /// The outermost cylinder.
    pub first_cylinder: u32,
    /// The innermost cylinder, itself in the zone.
    pub last_cylinder: u32,
    /// Logical sectors on each track, usable or not. 1 to 65,535; a multiple of 8 for 512e. If tracks differ by head,
    /// the number on the longest.
    pub sectors_per_track: u32,
    /// Logical sectors on a track of each head, head 0 first, if heads differ. Empty if all heads are alike. If heads
    /// differ, skews are parts of a turn, and spares are at the end of the zone or the disk.
    pub by_head: Vec<u32>,
    /// Tracks on a surface before the next head's turn, for [`Order::SurfaceSerpentine`]; the number in the order if
    /// absent. At least 1.
    pub tracks_per_surface: Option<u32>,
    /// Angle at which slot 0 of the zone's first track begins.
    pub offset: Skew,
    /// Skew of a track against its predecessor on another head.
    pub track_skew: Skew,
    /// Skew of a track against its predecessor on the adjacent cylinder.
    pub cylinder_skew: Skew,
    /// Skew for the step to the next group of [`Order::SurfaceSerpentine`], which may be a long
    /// step. The cylinder skew if absent.
    pub group_skew: Option<Skew>,
    /// Places at the front of the zone that the host cannot address, in the unit in which addresses
    /// are counted before slips (sectors that could hold data).
    pub reserved: u64,
    /// Spares per area of the [`Sparing`]: tracks for [`Sparing::TracksAtZoneEnd`], else sectors.
    pub spares: u64,
    /// Bad places that addresses pass over, ascending: sectors counted from the first slot of the
    /// zone in the order of addresses, or tracks for [`Sparing::TracksAtZoneEnd`].
    pub slips: Vec<u64>,
    /// Bad places and where their data is instead, ascending, in the unit of the slips.
    pub remaps: Vec<(u64, u64)>,
}

impl Zone {
    /// Cylinders in the zone.
    pub fn cylinders(&self) -> u32 {
        self.last_cylinder - self.first_cylinder + 1
    }

    /// Slots on the tracks of a cylinder with `heads` heads.
    pub fn sectors_per_cylinder(&self, heads: u16) -> u64 {
        match self.by_head.is_empty() {
            true => u64::from(heads) * u64::from(self.sectors_per_track),
            false => self.by_head.iter().map(|slots| u64::from(*slots)).sum(),
        }
    }

    /// Cylinders within which addresses go along a surface before the next; 1 where they go along cylinders.
    pub(crate) fn group_cylinders(&self, order: Order) -> u32 {
        match order {
            Order::SurfaceSerpentine { tracks } => self.tracks_per_surface.unwrap_or(tracks),
            Order::CylinderFirst | Order::Serpentine | Order::SerpentineThroughout => 1,
        }
    }
}

/// An angle between tracks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Skew {
    /// A number of the zone's sectors.
    Sectors(u32),
    /// A fraction of a turn, 0 to 1.
    Turns(f64),
}

/// Movement and settling of the arm.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct SeekSpec {
    /// Time over distance, settled for reading.
    pub read: SeekCurve,
    /// Time over distance, settled for writing; the read curve if absent.
    pub write: Option<SeekCurve>,
    /// Switching heads on a cylinder. A move with a switch takes the longer of the two.
    pub head_switch: Nanos,
    /// Further settling before a write, after any move or switch. Negative if writes settle sooner than the reads of
    /// the curve; no movement then takes less than zero.
    #[serde(default)]
    pub write_settle: SignedNanos,
}

/// Seek time as a function of distance.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename = "$kind", rename_all = "kebab-case")]
pub enum SeekCurve {
    /// Points of (cylinders, time) with ascending distances from 1 up; the time may dip, as
    /// measured tables do. Beyond the last point the line through the last two goes on; before the
    /// first, the line from (0, 0).
    Table {
        /// Between points.
        #[serde(default)]
        interpolation: Interpolation,
        /// The points; at least one.
        #[serde(rename = "table_us", with = "form::points")]
        points: Vec<(u32, Nanos)>,
    },
    /// The three-part equation of Ruemmler and Wilkes ("An introduction to disk drive modeling",
    /// IEEE Computer, March 1994): `root_base + root_factor * sqrt(d)` below `split` cylinders,
    /// `line_base + line_factor * d` from there.
    Hpl {
        /// Distance at which the line begins.
        split: u32,
        /// Constant of the root part.
        root_base: Nanos,
        /// Factor of the root of the distance.
        root_factor: Nanos,
        /// Constant of the line.
        line_base: Nanos,
        /// Slope of the line per cylinder.
        line_factor: Nanos,
        /// Times of distances 1, 2, .. that replace the equation: none, one, or ten.
        #[serde(rename = "first_us", default, with = "form::times")]
        #[serde(skip_serializing_if = "Vec::is_empty")]
        first: Vec<Nanos>,
    },
    /// `single + a * (d - 1) + b * sqrt(d - 1)` through three given times (Lee's equation, DiskSim
    /// manual, "curve"). `average` is the mean time of random seeks over all cylinders.
    Curve {
        /// One cylinder.
        single: Nanos,
        /// Mean of random seeks.
        average: Nanos,
        /// All cylinders.
        full: Nanos,
    },
    /// Two lines: from `single` at 1 to `average` at a third of the cylinders, then to `full`.
    Linear {
        /// One cylinder.
        single: Nanos,
        /// A third of the cylinders.
        average: Nanos,
        /// All cylinders.
        full: Nanos,
    },
    /// One time for every distance but zero.
    #[serde(with = "form::constant")]
    Constant(Nanos),
}

/// Interpolation of a table between its points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interpolation {
    /// Along a line over the distance.
    #[default]
    Linear,
    /// Along a line over the logarithm of the distance: for tables with few points.
    Log,
}

/// Order in which sectors are taken from a track; the order of addresses if not given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct AccessSpec {
    /// Reads take sectors in the order in which they pass under the head (`Immediate buffer read`).
    pub zero_latency_read: bool,
    /// Writes take sectors in this order (`Immediate buffer write`).
    pub zero_latency_write: bool,
    /// A read on the head's present track begins with the next sector, as soon as the arm is free for the read. A
    /// drive's own firmware can do so for reads that the firmware chooses itself. If false, such a read takes no less
    /// time than a read elsewhere, see [`Mechanics::set_up`](crate::Mechanics::set_up).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub on_track_at_once: bool,
}

/// Path between drive and host. All times are per logical sector; all zero if not given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct BusSpec {
    /// A sector through the drive's own interface (`Bulk sector transfer time`).
    #[serde(skip_serializing_if = "form::is_zero")]
    pub interface_sector: Nanos,
    /// A sector over the bus toward the host (`Read block transfer time` of the bus; the controller's
    /// `Bulk sector transfer time` if that is longer).
    #[serde(skip_serializing_if = "form::is_zero")]
    pub read_sector: Nanos,
    /// A sector over the bus toward the drive (`Write block transfer time`).
    #[serde(skip_serializing_if = "form::is_zero")]
    pub write_sector: Nanos,
    /// Getting the bus (`Arbitration time`).
    #[serde(skip_serializing_if = "form::is_zero")]
    pub arbitration: Nanos,
    /// A read keeps the bus from its first data to its last (`Hold bus entire read xfer`).
    pub hold_for_read: bool,
    /// A write keeps the bus from its first data to its last (`Hold bus entire write xfer`).
    pub hold_for_write: bool,
    /// Every command keeps the bus from arrival to completion (`Never disconnect`).
    pub never_disconnect: bool,
}

impl BusSpec {
    /// Time for a logical sector between drive and host: the slower of interface and bus.
    pub fn sector(&self, is_read: bool) -> Nanos {
        let bus = if is_read {
            self.read_sector
        } else {
            self.write_sector
        };
        self.interface_sector.max(bus)
    }
}

/// Commands waiting in the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSpec {
    /// Commands that the drive takes at a time, 1 to 256 (`Max queue length`).
    pub depth: u32,
    /// Choice of the next command (`Scheduling policy`).
    pub policy: FirmwarePolicy,
    /// Earliest time at which the arm may leave for the next command (`Preseeking level`).
    pub preseek: Preseek,
    /// Longest time for which the arm goes on with consecutive reads while another command waits, where the policy
    /// looks at positions. Zero: the arm does not go on.
    pub stream_cap: Nanos,
    /// Longest wait of the arm for the next read of a stream after a read has completed. The arm waits only if the
    /// drive reads nothing ahead meanwhile and other commands wait. [`QueueSpec::stream_cap`] ends this wait too. Zero:
    /// no wait.
    pub stream_hold: Nanos,
    /// Commands of high priority go before others, where the policy looks at positions: the two levels of NCQ.
    pub ncq_prio: bool,
    /// Number of the arm's choices for each choice of the oldest command, where the policy looks at positions. 0: the
    /// oldest command gets no choice of its own.
    pub oldest_every: u32,
    /// Least age of a command that [`QueueSpec::oldest_every`] takes.
    pub oldest_age: Nanos,
}

impl QueueSpec {
    /// Cap on a stream where a profile gives none.
    pub const STREAM_CAP: Nanos = Nanos::from_millis(1_000);
}

impl Default for QueueSpec {
    /// One command at a time.
    fn default() -> QueueSpec {
        QueueSpec {
            depth: 1,
            policy: FirmwarePolicy::Fifo,
            preseek: Preseek::Off,
            stream_cap: QueueSpec::STREAM_CAP,
            stream_hold: Nanos::ZERO,
            ncq_prio: false,
            oldest_every: 0,
            oldest_age: Nanos::ZERO,
        }
    }
}

/// Policy by which a drive chooses the next of the waiting commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirmwarePolicy {
    /// The command that came first.
    Fifo,
    /// The command with the shortest positioning time.
    Sptf {
        /// Added to the estimate of a seek, so that arrivals that are too tight are not tried.
        margin: Nanos,
        /// A command that has waited this long in the drive goes first; never if absent.
        age_cap: Option<Nanos>,
    },
}

/// Earliest time at which the arm may leave for the next command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preseek {
    /// The arm leaves when the host has acknowledged the completion of the command before (0 in DiskSim).
    Off,
    /// The arm leaves when the drive has prepared the completion (1 in DiskSim).
    AtCompletion,
    /// The arm leaves when the last sector has passed the head (2 in DiskSim).
    AtMediaEnd,
    /// As late after the last sector as the arm still comes in time. Until then the drive reads ahead. Not in DiskSim.
    JustInTime,
}

/// Random variation, drawn from a seed by the drive that is built from the profile. All zero, that
/// is off, if not given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct NoiseSpec {
    /// Standard deviation of a seek is at least this; normal, cut at three deviations.
    #[serde(skip_serializing_if = "form::is_zero")]
    pub seek_sd: Nanos,
    /// Standard deviation of a seek as a part of its time, 0 to 1; the larger of the two counts.
    pub seek_sd_relative: f64,
    /// Standard deviation of a command's overhead beside `per_command`, cut at three deviations and at zero. Where a
    /// command has no other overhead, the variation can only add time.
    #[serde(skip_serializing_if = "form::is_zero")]
    pub overhead_sd: Nanos,
    /// A unit's speed differs from the nominal one by up to this many parts per million, uniform,
    /// and constant during a run if the speed does not wander. 0 to 100,000.
    pub speed_ppm: u32,
    /// Share of reads of the medium that the drive has to read again, 0 to 1: each attempt takes a turn, and one in four
    /// fails.
    #[serde(skip_serializing_if = "form::is_nil")]
    pub retried_reads: f64,
    /// Share of reads of the medium that wait for 30 to 100 ms, 0 to 1: for recovery, or since the drive scans its medium.
    #[serde(skip_serializing_if = "form::is_nil")]
    pub long_waits: f64,
    /// Amplitude of the slow sine in the speed, as with temperature, in parts per million. 0 to 10,000.
    #[serde(skip_serializing_if = "form::is_nought")]
    pub wander_ppm: u32,
    /// Period of this wander. The phase at which a unit begins is drawn. 1 s to 1 day if the speed
    /// wanders, else 0.
    #[serde(skip_serializing_if = "form::is_zero")]
    pub wander_period: Nanos,
}

impl NoiseSpec {
    /// Returns true if anything varies.
    pub fn is_off(&self) -> bool {
        *self == NoiseSpec::default()
    }
}
