//! The parts of a profile that come from one block alone.

use super::ImportError;
use super::fields::Fields;
use crate::profile::{
    CacheSpec, EarlyDisconnect, OverheadSpec, ReadAhead, RequestedData, SeekCurve, WriteBack,
};
use headtime_units::Nanos;

/// Whether skews are parts of a turn; `None` if it is not said.
pub(super) fn skew_units(fields: &Fields) -> Result<Option<bool>, ImportError> {
    match fields.text("Skew units")? {
        None => Ok(None),
        Some("revolutions") => Ok(Some(true)),
        Some("sectors") => Ok(Some(false)),
        Some(other) => {
            let message = format!("{other} is not allowed; allowed are sectors and revolutions");
            Err(fields.error("Skew units", message))
        }
    }
}

pub(super) fn hpl(fields: &Fields, first_ten: bool) -> Result<SeekCurve, ImportError> {
    let key = "HPL seek equation values";
    // The last one may be -1, which stands for none.
    let values = fields.numbers(key, fields.required_list(key)?, -1.0)?;
    let &[
        split,
        root_base,
        root_factor,
        line_base,
        line_factor,
        single,
    ] = values.as_slice()
    else {
        let message = format!("{} values; there are six", values.len());
        return Err(fields.error(key, message));
    };
    if values[..5].iter().any(|&value| value < 0.0) {
        return Err(fields.error(key, "only the last value may be negative"));
    }
    if split > f64::from(1 << 24) || values[1..].iter().any(|&value| value > 4000.0) {
        return Err(fields.error(
            key,
            "cylinders up to 2^24 and milliseconds up to 4000 are allowed",
        ));
    }
    let first = if first_ten {
        let key = "First ten seek times";
        let times = fields.numbers(key, fields.required_list(key)?, 0.0)?;
        if times.len() != 10 || times.iter().any(|&time| time > 4000.0) {
            return Err(fields.error(key, "should be ten times of up to 4000 ms"));
        }
        times.into_iter().map(Nanos::from_millis_f64).collect()
    } else if single >= 0.0 {
        vec![Nanos::from_millis_f64(single)]
    } else {
        Vec::new()
    };
    Ok(SeekCurve::Hpl {
        split: split as u32,
        root_base: Nanos::from_millis_f64(root_base),
        root_factor: Nanos::from_millis_f64(root_factor),
        line_base: Nanos::from_millis_f64(line_base),
        line_factor: Nanos::from_millis_f64(line_factor),
        first,
    })
}

pub(super) fn cache(fields: &Fields) -> Result<CacheSpec, ImportError> {
    let segments = fields.count("Number of buffer segments", 1, 65_535)?;
    let segment_sectors = fields.count("Segment size (in blks)", 1, u32::MAX)?;
    let read_ahead = match fields.integer("Buffer continuous read", 0, 4)? {
        0 => ReadAhead::Off,
        1 => ReadAhead::TrackEnd,
        2 => ReadAhead::CylinderEnd,
        3 => ReadAhead::SegmentFull,
        _ => ReadAhead::NextTrack,
    };
    let min = fields.count("Minimum read-ahead (blks)", 0, segment_sectors)?;
    let max = fields.count("Maximum read-ahead (blks)", 0, segment_sectors)?;
    let off = read_ahead == ReadAhead::Off;
    Ok(CacheSpec {
        enabled: fields.integer("Enable caching in buffer", 0, 2)? != 0,
        segments,
        segment_sectors,
        write_segments: fields.count("Maximum number of write segments", 1, segments)?,
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
        destage_delay: Nanos::ZERO,
        combine_sequential_writes: fields.flag("Combine seq writes")?,
        stop_read_ahead_in_sector: fields.flag("Stop prefetch in sector")?,
        disconnect_write_in_seek: fields.flag("Disconnect write if seek")?,
        write_hit_stops_read_ahead: fields.flag("Write hit stop prefetch")?,
        read_direct_to_buffer: fields.flag("Read directly to buffer")?,
        send_partial_hit_at_once: fields.flag("Immed transfer partial hit")?,
        write_low_water: fields.required_number("Low (write) water mark", 0.0, 1.0)?,
        read_high_water: fields.required_number("High (read) water mark", 0.0, 1.0)?,
        water_by_request: fields.flag("Set watermark by reqsize")?,
    })
}

pub(super) fn overhead(fields: &Fields) -> Result<OverheadSpec, ImportError> {
    let scale = fields.required_number("Time scale for overheads", 0.0, 1000.0)?;
    let time = |key| {
        let millis = fields.required_number(key, 0.0, 4000.0)?;
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
