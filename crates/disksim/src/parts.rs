//! The parts of a profile that come from one block alone.

use crate::error::ImportError;
use crate::fields::Fields;
use crate::findings::Findings;
use headtime_disk::profile::{
    CacheSpec, EarlyDisconnect, OverheadSpec, ReadAhead, RequestedData, WriteBack,
};
use headtime_units::Nanos;

pub(crate) fn cache(fields: &Fields, found: &mut Findings) -> Result<CacheSpec, ImportError> {
    let segments = fields.count("Number of buffer segments", 1, 65_535)?;
    let segment_sectors = fields.count("Segment size (in blks)", 1, u32::MAX)?;
    let read_ahead = match fields.integer("Buffer continuous read", 0, 4)? {
        0 => ReadAhead::Off,
        1 => ReadAhead::TrackEnd,
        2 => ReadAhead::CylinderEnd,
        3 => ReadAhead::SegmentFull,
        _ => ReadAhead::NextTrack,
    };
    let segment = ("Segment size (in blks)", segment_sectors);
    let min = fields.count_up_to("Minimum read-ahead (blks)", 0, segment, found)?;
    let max = fields.count_up_to("Maximum read-ahead (blks)", 0, segment, found)?;
    let off = read_ahead == ReadAhead::Off;
    Ok(CacheSpec {
        enabled: fields.integer("Enable caching in buffer", 0, 2)? != 0,
        segments,
        segment_sectors,
        write_segments: fields.count_up_to(
            "Maximum number of write segments",
            1,
            ("Number of buffer segments", segments),
            found,
        )?,
        dedicated_write_segment: fields.flag("Use separate write segment")?,
        read_ahead,
        read_ahead_min: if off { 0 } else { min },
        read_ahead_max: if off { 0 } else { max.max(min) },
        requested_data: match fields.integer("Read-ahead over requested", -1, 1)? {
            -1 => RequestedData::Dropped,
            0 => RequestedData::Kept,
            _ => RequestedData::Replaceable,
        },
        read_ahead_on_idle_hit: fields.flag("Read-ahead on idle hit")?,
        read_free_sectors: fields.flag("Read any free blocks")?,
        almost_read_hits: fields.flag("Allow almost read hits")?,
        sneaky_full_read_hits: fields.flag("Allow sneaky full read hits")?,
        sneaky_partial_read_hits: fields.flag("Allow sneaky partial read hits")?,
        sneaky_intermediate_read_hits: fields.flag("Allow sneaky intermediate read hits")?,
        read_hits_on_write_data: fields.flag("Allow read hits on write data")?,
        write_prebuffering: fields.flag("Allow write prebuffering")?,
        write_back: match fields.integer("Fast write level", 0, 2)? {
            0 => WriteBack::Off,
            1 => WriteBack::Appending,
            _ => WriteBack::Flushed,
        },
        combine_sequential_writes: fields.flag("Combine seq writes")?,
        stop_read_ahead_in_sector: fields.flag("Stop prefetch in sector")?,
        disconnect_write_in_seek: fields.flag("Disconnect write if seek")?,
        write_hit_stops_read_ahead: fields.flag("Write hit stop prefetch")?,
        read_direct_to_buffer: fields.flag("Read directly to buffer")?,
        send_partial_hit_at_once: fields.flag("Immed transfer partial hit")?,
        write_low_water: fields.required_number("Low (write) water mark", 0.0, 1.0)?,
        read_high_water: fields.required_number("High (read) water mark", 0.0, 1.0)?,
        water_by_request: fields.flag("Set watermark by reqsize")?,
        // DiskSim has no other keys of the buffer.
        ..CacheSpec::default()
    })
}

pub(crate) fn overhead(fields: &Fields, found: &mut Findings) -> Result<OverheadSpec, ImportError> {
    let scale = fields.required_number("Time scale for overheads", 0.0, 1000.0)?;
    let mut time = |key| {
        let millis = fields.measured_millis(key, found)?;
        Ok::<_, ImportError>(Nanos::from_millis_f64(millis * scale))
    };
    let early = EarlyDisconnect {
        command: time("Extradisc command overhead")?,
        first_disconnect: time("Extradisc disconnect overhead")?,
        between: time("Extradisc inter-disconnect delay")?,
        second_disconnect: time("Extradisc 2nd disconnect overhead")?,
        seek_delay: time("Extradisc seek delta")?,
    };
    Ok(OverheadSpec {
        per_command: time("Per-request overhead time")?,
        read_hit_after_read: time("Read hit over. after read")?,
        read_hit_after_write: time("Read hit over. after write")?,
        read_miss_after_read: time("Read miss over. after read")?,
        read_miss_after_write: time("Read miss over. after write")?,
        write_hit_after_read: time("Write hit over. after read")?,
        write_hit_after_write: time("Write hit over. after write")?,
        write_miss_after_read: time("Write miss over. after read")?,
        write_miss_after_write: time("Write miss over. after write")?,
        read_completion: time("Read completion overhead")?,
        write_completion: time("Write completion overhead")?,
        data_preparation: time("Data preparation overhead")?,
        first_reselect: time("First reselect overhead")?,
        other_reselect: time("Other reselect overhead")?,
        read_disconnect_after_read: time("Read disconnect afterread")?,
        read_disconnect_after_write: time("Read disconnect afterwrite")?,
        write_disconnect: time("Write disconnect overhead")?,
        minimum_seek_delay: time("Minimum seek delay")?,
        early_write_disconnect: fields.flag("Extra write disconnect")?.then_some(early),
    })
}
