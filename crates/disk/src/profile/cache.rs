//! The buffer in a drive, as a profile says it.

use super::form;
use headtime_config::whole;
use headtime_units::Nanos;
use serde::{Deserialize, Serialize};

/// The buffer in the drive. Names in brackets are DiskSim's parameters.
///
/// Invariants, within a spec that [`Spec::check`](super::Spec::check) accepts:
///
/// - `1 ≤ write_segments ≤ segments ≤ 65535`; `dedicated_write_segment` ⇒ `segments ≥ 2`.
/// - `segment_sectors ≥ 1`; `room_sectors = 0` or `room_sectors ≥ segment_sectors (write_segments + 1)`.
/// - `read_ahead_min ≤ read_ahead_max ≤ segment_sectors`; `second_read_ahead_min ≤ 65535`.
/// - `read_ahead = Off` ⇒ `read_ahead_max = second_read_ahead_min = 0`.
/// - `!enabled` ⇒ `read_ahead = Off`, `write_back = Off` and `!read_free_sectors`.
/// - `1 ≤ destage_runs ≤ 65535`; `destage_age` and `destage_delay` are at most 4 s.
/// - `write_low_water` and `read_high_water` are in `0.0..=1.0`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default = "CacheSpec::unsaid")]
pub struct CacheSpec {
    /// Data stay in the buffer for later commands (`Enable caching in buffer`); else it only
    /// matches the speeds of bus and medium.
    pub enabled: bool,
    /// Segments, 1 to 65,535 (`Number of buffer segments`).
    #[serde(deserialize_with = "whole::<_, _, 1, 65535>")]
    pub segments: u32,
    /// Logical sectors in a segment, 1 to the capacity (`Segment size (in blks)`).
    #[serde(deserialize_with = "whole::<_, _, 1, 0xffff_ffff>")]
    pub segment_sectors: u32,
    /// Logical sectors that all segments hold together. The number of segments that hold data then follows the load:
    /// many short segments, or few full segments. Segments that commands need remain even beyond this room. Zero: as
    /// many sectors as fit into the segments. Not in DiskSim.
    #[serde(skip_serializing_if = "form::is_none")]
    pub room_sectors: u32,
    /// Most segments that may hold written data at a time, 1 to `segments`
    /// (`Maximum number of write segments`).
    pub write_segments: u32,
    /// One segment is for writes alone (`Use separate write segment`). Needs two segments.
    pub dedicated_write_segment: bool,
    /// End of the read-ahead behind a read (`Buffer continuous read`).
    pub read_ahead: ReadAhead,
    /// Sectors read ahead before another command may interrupt (`Minimum read-ahead (blks)`).
    pub read_ahead_min: u32,
    /// Sectors read ahead at most (`Maximum read-ahead (blks)`).
    #[serde(deserialize_with = "whole::<_, _, 0, 0xffff_fffe>")]
    pub read_ahead_max: u32,
    /// Sectors read ahead before another command may interrupt, behind a read on the track of the previous read. The
    /// end of the track ends this minimum. Zero: no such minimum. Not in DiskSim.
    #[serde(skip_serializing_if = "form::is_none")]
    pub second_read_ahead_min: u32,
    /// Fate of the data of the command itself (`Read-ahead over requested`).
    pub requested_data: RequestedData,
    /// A full hit starts reading ahead if the drive is idle (`Read-ahead on idle hit`).
    pub read_ahead_on_idle_hit: bool,
    /// Sectors in front of the first wanted sector are stored if they pass under the head while it
    /// waits (`Read any free blocks`).
    pub read_free_sectors: bool,
    /// A read whose first sector is just being read ahead is a partial hit
    /// (`Allow almost read hits`).
    pub almost_read_hits: bool,
    /// A full hit may use the bus while the arm is at work: for another command, or reading ahead in another segment.
    /// Otherwise a hit ends such a read-ahead (`Allow sneaky full read hits`).
    pub sneaky_full_read_hits: bool,
    /// A partial hit may use the bus in this way (`Allow sneaky partial read hits`).
    pub sneaky_partial_read_hits: bool,
    /// Queued reads are searched for hits whenever the bus is free
    /// (`Allow sneaky intermediate read hits`).
    pub sneaky_intermediate_read_hits: bool,
    /// Written data serve later reads (`Allow read hits on write data`).
    pub read_hits_on_write_data: bool,
    /// Data of queued writes are fetched while the bus is free (`Allow write prebuffering`).
    pub write_prebuffering: bool,
    /// Time at which a write completes (`Fast write level`).
    pub write_back: WriteBack,
    /// Idle time after which the drive destages dirty data, where nothing else makes the drive
    /// destage. Not in DiskSim; zero there.
    #[serde(skip_serializing_if = "form::is_zero")]
    pub destage_delay: Nanos,
    /// Storage and writing of dirty data if [`CacheSpec::write_back`] is full. Not in DiskSim.
    pub destage: Destage,
    /// The most runs of dirty sectors for [`Destage::Sweep`], 1 to 65,535.
    pub destage_runs: u32,
    /// The age at which dirty data go first, for [`Destage::Sweep`].
    pub destage_age: Nanos,
    /// Sequential writes share a segment (`Combine seq writes`).
    pub combine_sequential_writes: bool,
    /// Reading ahead stops within a sector, not only between two (`Stop prefetch in sector`).
    pub stop_read_ahead_in_sector: bool,
    /// The bus is given up if the arm still moves when all data of a write have come
    /// (`Disconnect write if seek`).
    pub disconnect_write_in_seek: bool,
    /// A write hit ends reading ahead (`Write hit stop prefetch`).
    pub write_hit_stops_read_ahead: bool,
    /// A sector needs its place in the segment before the head reads the sector
    /// (`Read directly to buffer`).
    pub read_direct_to_buffer: bool,
    /// The cached part of a partial hit is sent at once (`Immed transfer partial hit`); else only
    /// if there is more than the read water mark.
    pub send_partial_hit_at_once: bool,
    /// Part of dirty data below which a disconnected write asks for the bus again, 0 to 1
    /// (`Low (write) water mark`).
    pub write_low_water: f64,
    /// Part of the read data at which a disconnected read asks for the bus again, 0 to 1
    /// (`High (read) water mark`).
    pub read_high_water: f64,
    /// The water marks are parts of the request, else of a segment (`Set watermark by reqsize`).
    pub water_by_request: bool,
}

impl CacheSpec {
    /// The most runs of dirty sectors where a profile does not say.
    pub const DESTAGE_RUNS: u32 = 1024;

    /// The age at which dirty data go first where a profile does not say.
    pub const DESTAGE_AGE: Nanos = Nanos::from_millis(4_000);

    /// Returns true if dirty data are stored in runs of their own, not in segments.
    pub(crate) fn keeps_runs(&self) -> bool {
        self.write_back == WriteBack::Full && self.destage == Destage::Sweep
    }

    /// Number of sectors in the buffer at which a read of `len` sectors asks for the bus: at least 1, and sometimes more than `len`.
    pub fn read_water(&self, len: u64) -> u64 {
        let size = u64::from(self.segment_sectors);
        let mark = match self.water_by_request {
            true => size.min(len) as f64 * self.read_high_water,
            false => size as f64 * self.read_high_water + 0.999_999_999_9,
        };
        (mark as u64).max(1)
    }

    /// Returns true if the buffer takes an unforced write of `len` sectors without the arm.
    pub(crate) fn buffers(&self, len: u64) -> bool {
        let room = match self.destage {
            Destage::Segment => u64::from(self.segment_sectors),
            Destage::Sweep => self.write_room(),
        };
        self.write_back == WriteBack::Full && len <= room
    }

    /// Usual bound on the time for which written data wait for the arm. Runs wait for up to twice
    /// [`CacheSpec::destage_age`], since runs of that age go first, and longer where very many runs are so old.
    /// Segments wait until the drive is idle or flushes.
    pub(crate) fn holds_writes(&self) -> Nanos {
        match self.keeps_runs() {
            true => self.destage_age.saturating_add(self.destage_age),
            false => Nanos::MAX,
        }
    }

    /// The number of segments for written data.
    pub(crate) fn writable_segments(&self) -> u32 {
        match self.dedicated_write_segment {
            true => 1,
            false => self.write_segments,
        }
    }

    /// Sectors of written data that the buffer has room for.
    pub(crate) fn write_room(&self) -> u64 {
        u64::from(self.writable_segments()) * u64::from(self.segment_sectors)
    }

    /// Values of the keys that a text leaves out. Zero and the largest number mark keys without a
    /// value; a text must give the segments.
    const fn unsaid() -> CacheSpec {
        CacheSpec {
            segments: 0,
            segment_sectors: 0,
            read_ahead_max: u32::MAX,
            ..CacheSpec::plain()
        }
    }

    /// One small segment that does what most drives do, and no read-ahead or write-back.
    const fn plain() -> CacheSpec {
        CacheSpec {
            enabled: true,
            segments: 1,
            segment_sectors: 1,
            room_sectors: 0,
            write_segments: 1,
            dedicated_write_segment: false,
            read_ahead: ReadAhead::Off,
            read_ahead_min: 0,
            read_ahead_max: 0,
            second_read_ahead_min: 0,
            requested_data: RequestedData::Kept,
            read_ahead_on_idle_hit: false,
            read_free_sectors: false,
            almost_read_hits: false,
            sneaky_full_read_hits: false,
            sneaky_partial_read_hits: false,
            sneaky_intermediate_read_hits: false,
            read_hits_on_write_data: true,
            write_prebuffering: false,
            write_back: WriteBack::Off,
            destage_delay: Nanos::ZERO,
            destage: Destage::Segment,
            destage_runs: CacheSpec::DESTAGE_RUNS,
            destage_age: CacheSpec::DESTAGE_AGE,
            combine_sequential_writes: true,
            stop_read_ahead_in_sector: false,
            disconnect_write_in_seek: false,
            write_hit_stops_read_ahead: true,
            read_direct_to_buffer: true,
            send_partial_hit_at_once: true,
            write_low_water: 0.0,
            read_high_water: 0.0,
            water_by_request: true,
        }
    }
}

impl Default for CacheSpec {
    /// No cache: one buffer as large as a command may need.
    fn default() -> CacheSpec {
        CacheSpec {
            enabled: false,
            segment_sectors: 1024,
            ..CacheSpec::plain()
        }
    }
}

/// End of the read-ahead behind a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadAhead {
    /// Not at all (0).
    Off,
    /// To the end of the track of its last sector (1).
    TrackEnd,
    /// To the end of the cylinder of its last sector (2).
    CylinderEnd,
    /// Until the segment is full (3).
    SegmentFull,
    /// To the end of the next track if the track before was read not long ago. A client that reads
    /// sequentially then finds one track ready (4).
    NextTrack,
}

/// Fate of the data that a command asked for, while the drive reads ahead and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestedData {
    /// Dropped when the command completes (-1).
    Dropped,
    /// Kept: reading ahead ends when the segment is full (0).
    Kept,
    /// Sectors read ahead may take its place (1).
    Replaceable,
}

/// Time at which a write completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteBack {
    /// When the data are on the medium (0).
    Off,
    /// When the data are in the buffer, as long as each command is a write that appends to the last
    /// (1).
    Appending,
    /// As [`WriteBack::Appending`], but other commands may come between. The other commands wait
    /// until the dirty data are on the medium (2).
    Flushed,
    /// When the data of any write are in the buffer. Dirty segments are destaged while the drive is
    /// idle or needs room. Drives since about 2000 work like this. Not in DiskSim.
    Full,
}

/// Storage and writing of dirty data if writes complete in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Destage {
    /// Each write takes a segment unless the write continues another. A segment is written as a
    /// whole: the nearest first if firmware looks at positions, else the least recently used.
    Segment,
    /// Dirty data form runs, and the buffer gives up as many segments as the data fill. The runs are written by
    /// position. Writes that touch become one run. Reads go before runs.
    Sweep,
}

impl WriteBack {
    /// Returns true if the arm sets out with a write at once although that completes in the buffer.
    pub(crate) fn sets_out(self) -> bool {
        matches!(self, WriteBack::Appending | WriteBack::Flushed)
    }
}
