//! A profile from what a datasheet says.
//!
//! A datasheet has capacity, speed, a few seek times, the sustained rate at one or both ends. The rest of a
//! [`Profile`] follows from these by rules, or is what drives of the class have. The provenance of the
//! profile names the rule of each key, and its trust marks tell what was given from what was not.
//!
//! What is derived matches the sheet: the capacity to a sector, the sustained rates at both ends and the
//! mean seeks between random sectors to 1 %. Of the shape between and of the firmware a datasheet says nothing.

mod prose;
mod seeks;
mod tracks;

use crate::profile::{
    AccessSpec, BusSpec, CacheSpec, Destage, FirmwarePolicy, Geometry, LayoutSpec, NoiseSpec,
    OverheadSpec, Preseek, Profile, QueueSpec, ReadAhead, RequestedData, Rotation, SeekSpec,
    Sparing, Spec, WriteBack,
};
use headtime_units::{Bytes, Nanos, Sectors, SignedNanos};
use seeks::Seeks;
use std::fmt::Display;
use tracks::LaidTracks;

/// What a datasheet says of a drive. What may be missing from one is an option.
#[derive(Clone, Debug, PartialEq)]
pub struct Datasheet {
    /// Short name of the profile: lower-case letters, digits, hyphens and points.
    pub name: String,
    /// Vendor, model, capacity, for people.
    pub model: Option<String>,
    /// How much it holds.
    pub capacity: Capacity,
    /// Sectors, logical and on the medium.
    pub sector: Option<SectorFormat>,
    /// Revolutions per minute.
    pub rpm: f64,
    /// Mean seek between random sectors, reading.
    pub seek: Nanos,
    /// The same, writing.
    pub seek_write: Option<Nanos>,
    /// From a track to the next, reading.
    pub track: Option<Nanos>,
    /// The same, writing.
    pub track_write: Option<Nanos>,
    /// Over the whole stroke, reading.
    pub maximum: Option<Nanos>,
    /// The same, writing.
    pub maximum_write: Option<Nanos>,
    /// Sustained transfer at the outer edge, in bytes a second.
    pub rate: u64,
    /// The same at the inner edge.
    pub rate_inner: Option<u64>,
    /// Size of the buffer.
    pub cache: Bytes,
    /// Surfaces with data.
    pub heads: Option<u16>,
    /// Commands that the drive takes at a time.
    pub queue: Option<u32>,
    /// Between drive and host, in bytes a second.
    pub interface: Option<u64>,
}

/// How a datasheet or a label says how much a drive holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// As it is sold: so many bytes, rounded. See [`Capacity::sectors`].
    Nominal(Bytes),
    /// Logical sectors, which labels call LBA.
    Sectors(u64),
}

/// The sectors of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectorFormat {
    /// 512 bytes.
    Native512,
    /// 512 bytes for the host, 4096 on the medium.
    Emulated512,
    /// 4096 bytes.
    Native4K,
}

impl SectorFormat {
    /// Bytes in a logical sector.
    pub const fn bytes(self) -> u32 {
        match self {
            SectorFormat::Native512 | SectorFormat::Emulated512 => 512,
            SectorFormat::Native4K => 4096,
        }
    }

    /// Bytes in a sector on the medium.
    pub const fn physical_bytes(self) -> u32 {
        match self {
            SectorFormat::Native512 => 512,
            SectorFormat::Emulated512 | SectorFormat::Native4K => 4096,
        }
    }
}

const GB: u64 = 1_000_000_000;

impl Capacity {
    /// Logical sectors of `sector_bytes`.
    ///
    /// Vendors agreed on how many those of a nominal capacity are: from 50 GB on, 97,696,368 sectors of
    /// 512 bytes and 1,953,504 for each GB above 50 (IDEMA LBA1-03); from 8 TB on, the bytes rounded up to
    /// 2^21 such sectors, as drives report. Bytes that are no whole number of GB, or fewer than 50, are meant
    /// literally, and a last sector that they do not fill does not count.
    pub fn sectors(self, sector_bytes: u32) -> u64 {
        let bytes = match self {
            Capacity::Sectors(sectors) => return sectors,
            Capacity::Nominal(Bytes(bytes)) => bytes,
        };
        let gb = bytes / GB;
        let in_512 = if !bytes.is_multiple_of(GB) || gb < 50 {
            bytes / 512
        } else if gb < 8_000 {
            97_696_368 + 1_953_504 * (gb - 50)
        } else {
            (bytes / 512).next_multiple_of(1 << 21)
        };
        in_512 / u64::from(sector_bytes / 512)
    }
}

/// A sheet that no drive has: what of it, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{item}: {value} is not allowed; allowed is {allowed}")]
pub struct SheetError {
    /// The name of the item, as an option of a command has it.
    pub item: &'static str,
    /// What the sheet says.
    pub value: String,
    /// What it may say.
    pub allowed: String,
}

impl SheetError {
    fn new(item: &'static str, value: impl Display, allowed: impl Display) -> SheetError {
        SheetError {
            item,
            value: value.to_string(),
            allowed: allowed.to_string(),
        }
    }
}

/// How old a drive is, which decides what a sheet does not say. Told by the sectors on its outermost track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Age {
    Before2005,
    Desktop,
    Nearline,
}

impl Age {
    /// Of a drive with so many sectors of 512 bytes on the outermost track.
    ///
    /// The drives of 1999 have 334 at most. The Maxtor Atlas 10K V of 2004 has 1170, and the order of addresses that
    /// drives have since. The desktop drives of 2006 to 2009 have up to 2340, nearline drives 3000 and more.
    fn of(sectors: f64) -> Age {
        if sectors < 1000.0 {
            Age::Before2005
        } else if sectors < 2500.0 {
            Age::Desktop
        } else {
            Age::Nearline
        }
    }
}

/// A share of a time: factors of a rule.
fn part(time: Nanos, part: f64) -> Nanos {
    Nanos::from_millis_f64(time.as_millis_f64() * part)
}

fn megabytes(rate: u64) -> String {
    format!("{}MB/s", rate as f64 / 1e6)
}

impl Datasheet {
    /// The profile that follows.
    ///
    /// # Errors
    ///
    /// The first item that no drive can have, or none together with the others.
    pub fn profile(&self) -> Result<Profile, SheetError> {
        self.check()?;
        let sector = self.sector_format();
        let seeks = Seeks::of(self)?;
        let tracks = LaidTracks::lay(self, &seeks)?;
        let interface = self.interface_rate();
        let model = self.model.clone();
        let spec = Spec {
            name: self.name.clone(),
            model: model.unwrap_or_else(|| prose::model(self)),
            provenance: prose::provenance(self, &tracks, &seeks),
            trust: prose::trust(self),
            geometry: Geometry {
                capacity: Sectors::new(tracks.capacity),
                cylinders: tracks.cylinders,
                heads: tracks.heads,
                sector_bytes: sector.bytes(),
                physical_sector_bytes: sector.physical_bytes(),
            },
            rotation: Rotation { rpm: self.rpm },
            layout: LayoutSpec {
                order: tracks.order,
                sparing: Sparing::ZoneEnd,
                slips_use_spares: true,
                zones: tracks.zones.clone(),
                map: None,
            },
            seek: SeekSpec {
                read: tracks.read.clone(),
                write: Some(tracks.write.clone()),
                head_switch: seeks.head_switch,
                write_settle: SignedNanos::from_nanos(seeks.settle.as_nanos() as i64),
            },
            access: AccessSpec {
                zero_latency_read: true,
                zero_latency_write: true,
            },
            cache: self.cache_spec(&tracks),
            overhead: OverheadSpec {
                per_command: Nanos::from_micros(200),
                ..OverheadSpec::default()
            },
            bus: BusSpec {
                interface_sector: Nanos::from_millis_f64(
                    f64::from(sector.bytes()) * 1e3 / interface as f64,
                ),
                ..BusSpec::default()
            },
            queue: self.queue_spec(tracks.age),
            noise: NoiseSpec {
                seek_sd: Nanos::from_micros(20),
                seek_sd_relative: 0.01,
                overhead_sd: Nanos::from_micros(30),
                speed_ppm: 0,
            },
        };
        // What can be wrong with a sheet was said; the rest follows.
        Ok(spec.check().expect("what is derived fits together"))
    }

    /// The format of the sectors: 4 KiB on the medium from about 1 TB on, where nothing is said.
    fn sector_format(&self) -> SectorFormat {
        self.sector.unwrap_or_else(|| {
            match self.capacity.sectors(512) > Capacity::Nominal(Bytes(1_000 * GB)).sectors(512) {
                true => SectorFormat::Emulated512,
                false => SectorFormat::Native512,
            }
        })
    }

    /// The slowest of the interfaces of disks that is twice as fast as the medium, where nothing is said.
    fn interface_rate(&self) -> u64 {
        const SPEEDS: [u64; 6] = [40, 80, 150, 300, 600, 1200];
        self.interface.unwrap_or_else(|| {
            let mut speeds = SPEEDS.iter().map(|speed| speed * 1_000_000);
            let fast = speeds.find(|&speed| speed >= 2 * self.rate);
            fast.unwrap_or(2 * self.rate)
        })
    }

    fn inner(&self) -> u64 {
        self.rate_inner.unwrap_or(self.rate / 2)
    }

    /// What is wrong with single items, and with rates and times beside each other.
    fn check(&self) -> Result<(), SheetError> {
        let named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
        if self.name.is_empty() || !self.name.chars().all(named) {
            let allowed = "lower-case letters, digits, hyphens and points";
            return Err(SheetError::new("name", format!("`{}`", self.name), allowed));
        }
        if !(3_000.0..=20_000.0).contains(&self.rpm) {
            return Err(SheetError::new("rpm", self.rpm, "3000 to 20000"));
        }
        let least = Nanos::from_micros(500);
        let most = Nanos::from_millis(50);
        time("seek", self.seek, least, most, "")?;
        let of_seek = format!("the average seek of {}", self.seek);
        if let Some(write) = self.seek_write {
            let most = self.seek * 2;
            time(
                "seek-write",
                write,
                self.seek,
                most,
                &format!("1 to 2 times {of_seek}"),
            )?;
        }
        if let Some(track) = self.track {
            let (least, most) = (part(self.seek, 0.01), part(self.seek, 0.4));
            time(
                "seek-track",
                track,
                least,
                most,
                &format!("0.01 to 0.4 times {of_seek}"),
            )?;
        }
        if let Some(full) = self.maximum {
            let (least, most) = (part(self.seek, 1.3), self.seek * 4);
            time(
                "seek-maximum",
                full,
                least,
                most,
                &format!("1.3 to 4 times {of_seek}"),
            )?;
        }
        // Twice the fastest drive there is, which has two arms.
        let rates = [1_000_000, GB];
        if !(rates[0]..=rates[1]).contains(&self.rate) {
            let allowed = format!("{} to {}", megabytes(rates[0]), megabytes(rates[1]));
            return Err(SheetError::new("rate", megabytes(self.rate), allowed));
        }
        // A third of the outer rate is less than any drive has; a half is usual.
        let least = self.rate.div_ceil(3);
        let inner = self.inner();
        if !(least..=self.rate).contains(&inner) {
            let allowed = format!(
                "{} to {}, a third to all of the outer rate",
                megabytes(least),
                megabytes(self.rate)
            );
            return Err(SheetError::new("rate-inner", megabytes(inner), allowed));
        }
        let buffer = [Bytes(64 << 10), Bytes(16 << 30)];
        if !(buffer[0]..=buffer[1]).contains(&self.cache) {
            let allowed = format!("{} to {}", buffer[0], buffer[1]);
            return Err(SheetError::new("cache", self.cache, allowed));
        }
        if let Some(heads) = self
            .heads
            .filter(|heads| !(1..=tracks::MOST_HEADS).contains(heads))
        {
            let allowed = format!("1 to {}", tracks::MOST_HEADS);
            return Err(SheetError::new("heads", heads, allowed));
        }
        if let Some(depth) = self.queue.filter(|depth| !(1..=256).contains(depth)) {
            return Err(SheetError::new("queue", depth, "1 to 256"));
        }
        match self.interface {
            Some(rate) if !(self.rate..=100 * GB).contains(&rate) => {
                let allowed = format!("the outer rate of {} to 100000MB/s", megabytes(self.rate));
                Err(SheetError::new("interface", megabytes(rate), allowed))
            }
            _ => Ok(()),
        }
    }

    /// Segments: 16 of up to 8 MB, 32 of up to 64 MB, else 64. Reading ahead goes on for as much as the outermost
    /// track holds, and half of the segments may be dirty.
    fn cache_spec(&self, tracks: &LaidTracks) -> CacheSpec {
        const MIB: u64 = 1 << 20;
        let sector = self.sector_format();
        let Bytes(bytes) = self.cache;
        let segments: u32 = match bytes {
            0..=0x80_0000 => 16,
            0x80_0001..=0x400_0000 => 32,
            _ => 64,
        };
        let room = bytes / u64::from(segments) / u64::from(sector.physical_bytes());
        let per_physical = u64::from(sector.physical_bytes() / sector.bytes());
        let sectors = (room.max(1) * per_physical).min(tracks.capacity);
        let segment_sectors = u32::try_from(sectors).expect("a buffer has 16 GiB at most");
        CacheSpec {
            enabled: true,
            segments,
            segment_sectors,
            write_segments: segments / 2,
            read_ahead: ReadAhead::SegmentFull,
            read_ahead_max: segment_sectors.min(tracks.zones[0].sectors_per_track),
            requested_data: RequestedData::Replaceable,
            read_free_sectors: true,
            write_back: WriteBack::Full,
            destage_delay: Nanos::from_millis(50),
            destage: Destage::Sweep,
            destage_runs: (16 * bytes / MIB).clamp(16, 8192) as u32,
            ..CacheSpec::default()
        }
    }

    /// What the firmware does with a queue, by how old the drive is.
    fn queue_spec(&self, age: Age) -> QueueSpec {
        let depth = self.queue.unwrap_or(match age {
            Age::Before2005 => 1,
            Age::Desktop | Age::Nearline => 32,
        });
        let (margin, stream_cap) = match age {
            Age::Before2005 => (Nanos::from_micros(100), Nanos::ZERO),
            Age::Desktop => (Nanos::from_micros(1_300), Nanos::from_millis(100)),
            Age::Nearline => (Nanos::from_micros(150), Nanos::from_millis(1_000)),
        };
        let policy = match depth {
            1 => FirmwarePolicy::Fifo,
            _ => FirmwarePolicy::Sptf {
                margin,
                age_cap: Some(Nanos::from_millis(4_000)),
            },
        };
        QueueSpec {
            depth,
            policy,
            stream_cap: match depth {
                1 => QueueSpec::STREAM_CAP,
                _ => stream_cap,
            },
            preseek: Preseek::AtMediaEnd,
            ..QueueSpec::default()
        }
    }
}

/// A time of a sheet, which is from `least` to `most`; `why` says where those come from.
fn time(
    item: &'static str,
    value: Nanos,
    least: Nanos,
    most: Nanos,
    why: &str,
) -> Result<(), SheetError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let why = match why {
        "" => String::new(),
        why => format!(", {why}"),
    };
    Err(SheetError::new(
        item,
        value,
        format!("{least} to {most}{why}"),
    ))
}
