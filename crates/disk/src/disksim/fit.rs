//! Slips and remaps that do not fit.
//!
//! DiskSim takes any, and computes nonsense for the few sectors concerned; a profile refuses them.

use crate::layout::Layout;
use crate::profile::{Sparing, Spec, Zone};
use std::collections::BTreeSet;

/// Leaves out slips that their area has no spares for, and remaps that do not lead to a spare place;
/// says so in the notes.
pub(super) fn fit(spec: &mut Spec, notes: &mut Vec<String>) {
    for index in 0..spec.layout.zones.len() {
        let zone = &spec.layout.zones[index];
        let slips = fitting_slips(spec, zone);
        let dropped = zone.slips.len() - slips.len();
        spec.layout.zones[index].slips = slips;
        if dropped > 0 {
            notes.push(format!(
                "zone {index}: {dropped} slips have no spare to slip into and were left out"
            ));
        }
        // After the slips, which decide what is spare.
        let zone = &spec.layout.zones[index];
        let remaps = fitting_remaps(spec, zone);
        let dropped = zone.remaps.len() - remaps.len();
        spec.layout.zones[index].remaps = remaps;
        if dropped > 0 {
            notes.push(format!(
                "zone {index}: {dropped} defects are not moved to a spare place and were left out"
            ));
        }
    }
}

/// Places that slips and remaps can name, and how many of them share their spares.
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
    let mut taken = BTreeSet::new();
    let mut last = None;
    let fits = |&(from, to): &(u64, u64)| {
        let fits = from < places
            && to < places
            && last != Some(from)
            && !taken.contains(&to)
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
