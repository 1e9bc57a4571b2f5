//! A profile made from the values of a datasheet.
//!
//! A datasheet has capacity, speed, a few seek times, the sustained rate at one or both ends. The rest of a [`Profile`]
//! follows from these by rules, or has the usual values of the drive's class. The provenance of the profile names the
//! rule of each key. Trust marks tell the given values from all others.
//!
//! The derived values match the sheet: the capacity to a sector, the sustained rates at both ends and the mean seeks
//! between random sectors to 1 %. A datasheet says nothing about the shape between these values, nor about the
//! firmware.

mod prose;
mod seeks;
mod sheet;
mod tracks;

use crate::profile::{
    AccessSpec, BusSpec, CacheSpec, Destage, FirmwarePolicy, Geometry, LayoutSpec, NoiseSpec,
    OverheadSpec, Preseek, Profile, QueueSpec, ReadAhead, RequestedData, Rotation, SeekSpec,
    Sparing, Spec, WriteBack,
};
use headtime_units::{Bytes, Nanos, Sectors, SignedNanos};
use seeks::Seeks;
use sheet::Age;
pub use sheet::{Capacity, Datasheet, SectorFormat, SheetError};
use tracks::LaidTracks;

impl Datasheet {
    /// The profile that follows from the sheet.
    ///
    /// # Errors
    ///
    /// The first item that no drive can have, alone or together with the other items.
    pub fn profile(&self) -> Result<Profile, SheetError> {
        self.check()?;
        let sector = self.sector_format();
        let seeks = Seeks::of(self)?;
        let tracks = LaidTracks::lay(self, &seeks)?;
        let interface = self.interface_rate();
        let model = self.model.clone();
        let nearline = tracks.age == Age::Nearline;
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
                ..AccessSpec::default()
            },
            cache: self.cache_spec(&tracks),
            overhead: OverheadSpec::of_hits_and_misses(),
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
                retried_reads: if nearline { 0.015 } else { 0.0 },
                long_waits: if nearline { 0.0005 } else { 0.0 },
                ..NoiseSpec::default()
            },
        };
        // All errors of a sheet have been reported by now.
        Ok(spec.check().expect("what is derived fits together"))
    }

    /// Segments: 16 in a buffer of up to 8 MiB, 32 up to 64 MiB, else 64. Half of the segments may be dirty. Reading
    /// ahead goes on for at most the sectors of the outermost track.
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
            sneaky_full_read_hits: tracks.age != Age::Before2005,
            write_back: WriteBack::Full,
            destage_delay: Nanos::from_millis(50),
            destage: Destage::Sweep,
            destage_runs: (16 * bytes / MIB).clamp(16, 8192) as u32,
            ..CacheSpec::default()
        }
    }

    /// The firmware's handling of a queue, by the age of the drive.
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
            stream_hold: match (depth, age) {
                (1, _) | (_, Age::Before2005) => Nanos::ZERO,
                _ => Nanos::from_micros(500),
            },
            stream_cap: match depth {
                1 => QueueSpec::STREAM_CAP,
                _ => stream_cap,
            },
            preseek: match age {
                Age::Before2005 => Preseek::AtMediaEnd,
                Age::Desktop | Age::Nearline => Preseek::JustInTime,
            },
            ..QueueSpec::default()
        }
    }
}
