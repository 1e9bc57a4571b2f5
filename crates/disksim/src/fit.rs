//! Adapts what DiskSim accepts and a profile refuses.
//!
//! Slips and remaps that do not fit: DiskSim computes nonsense for the few sectors concerned. And
//! parameters of a buffer that is off, or that shut each other out.

use crate::findings::Findings;
use headtime_disk::layout::Layout;
use headtime_disk::profile::{ReadAhead, Sparing, Spec, WriteBack, Zone};
use std::collections::BTreeSet;

/// Leaves out slips that their area has no spares for, and remaps that do not lead to a spare place;
/// says so in the notes.
pub(crate) fn fit(spec: &mut Spec, found: &mut Findings) {
    for index in 0..spec.layout.zones.len() {
        let zone = &spec.layout.zones[index];
        let slips = fitting_slips(spec, zone);
        let dropped = zone.slips.len() - slips.len();
        spec.layout.zones[index].slips = slips;
        if dropped > 0 {
            found.note(format!(
                "zone {index}: {dropped} slips have no spare to slip into and were left out"
            ));
        }
        // Remaps come after slips, since slips decide which places are spare.
        let zone = &spec.layout.zones[index];
        let remaps = fitting_remaps(spec, zone);
        let dropped = zone.remaps.len() - remaps.len();
        spec.layout.zones[index].remaps = remaps;
        if dropped > 0 {
            found.note(format!(
                "zone {index}: {dropped} defects are not moved to a spare place and were left out"
            ));
        }
    }
}

/// Adapts values that the buffer model cannot have, and notes each change.
pub(crate) fn fit_cache(spec: &mut Spec, found: &mut Findings) {
    let cache = &mut spec.cache;
    let capacity = u32::try_from(spec.geometry.capacity.get()).unwrap_or(u32::MAX);
    if cache.segment_sectors > capacity && capacity > 0 {
        found.note(format!(
            "`Segment size (in blks)` is {}, more than the disk has; taken as {capacity}",
            cache.segment_sectors
        ));
        cache.segment_sectors = capacity;
        cache.read_ahead_max = cache.read_ahead_max.min(capacity);
        cache.read_ahead_min = cache.read_ahead_min.min(capacity);
    }
    if !cache.enabled {
        let uses = cache.read_ahead != ReadAhead::Off
            || cache.write_back != WriteBack::Off
            || cache.read_free_sectors;
        if uses {
            found.note(
                "`Enable caching in buffer` is 0; reading ahead, fast writes and free blocks were left \
                 out",
            );
        }
        cache.read_ahead = ReadAhead::Off;
        (cache.read_ahead_min, cache.read_ahead_max) = (0, 0);
        cache.write_back = WriteBack::Off;
        cache.read_free_sectors = false;
    }
    if cache.dedicated_write_segment && cache.segments < 2 {
        found.note(
            "`Use separate write segment` is 1, but there is only one segment; it was left out",
        );
        cache.dedicated_write_segment = false;
    }
    let sneaky = [
        &mut cache.sneaky_full_read_hits,
        &mut cache.sneaky_partial_read_hits,
        &mut cache.sneaky_intermediate_read_hits,
    ];
    if spec.bus.hold_for_read && sneaky.iter().any(|hits| **hits) {
        found.note("`Hold bus entire read xfer` is 1; sneaky read hits were left out");
        for hits in sneaky {
            *hits = false;
        }
    }
}

/// Number of places that slips and remaps can name, and number of places that share their spares.
fn places(spec: &Spec, zone: &Zone) -> (u64, u64) {
    let heads = u64::from(spec.geometry.heads);
    let tracks = u64::from(zone.cylinders()) * heads;
    let per_track = u64::from(zone.sectors_per_track);
    match spec.layout.sparing {
        Sparing::TracksAtZoneEnd => (tracks, tracks),
        Sparing::TrackEnd => (tracks * per_track, per_track),
        Sparing::CylinderEnd | Sparing::CylinderFront => (tracks * per_track, heads * per_track),
        Sparing::RangeEnd { cylinders } => {
            (tracks * per_track, u64::from(cylinders) * heads * per_track)
        }
        Sparing::ZoneEnd | Sparing::DiskEnd => (tracks * per_track, tracks * per_track),
    }
}

fn fitting_slips(spec: &Spec, zone: &Zone) -> Vec<u64> {
    let (places, area) = places(spec, zone);
    let unlimited = spec.layout.sparing == Sparing::DiskEnd || !spec.layout.slips_use_spares;
    let mut in_area = (0, 0);
    let fits = |slip: &u64| {
        if *slip >= places {
            return false;
        }
        let this = slip / area;
        let before = if in_area.0 == this { in_area.1 } else { 0 };
        in_area = (this, before + 1);
        let whole = (this + 1) * area <= places;
        unlimited || whole && before < zone.spares
    };
    zone.slips.iter().copied().filter(fits).collect()
}

fn fitting_remaps(spec: &Spec, zone: &Zone) -> Vec<(u64, u64)> {
    let (places, area) = places(spec, zone);
    if zone.spares >= area {
        // No layout can be made of this; the check of the profile says why.
        return zone.remaps.clone();
    }
    let is_spare = Layout::zone_spares(spec, zone);
    // A spare place with a defect of its own cannot take a moved sector.
    let defects: BTreeSet<u64> = zone.remaps.iter().map(|pair| pair.0).collect();
    let mut taken = BTreeSet::new();
    let mut last = None;
    let fits = |&(from, to): &(u64, u64)| {
        let fits = from < places
            && to < places
            && last != Some(from)
            && !taken.contains(&to)
            && !defects.contains(&to)
            && zone.slips.binary_search(&from).is_err()
            && is_spare(to);
        if fits {
            taken.insert(to);
            last = Some(from);
        }
        fits
    };
    zone.remaps.iter().copied().filter(fits).collect()
}
