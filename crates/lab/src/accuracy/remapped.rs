//! Drives with sectors whose data is elsewhere.

use headtime_disk::Layout;
use headtime_disk::profile::{Profile, Sparing};
use headtime_probe::random::Random;
use headtime_units::Lba;

/// The drive after some years: `count` physical sectors, drawn by `seed`, have gone bad. The data of these sectors is
/// in spare places of their zones. A zone without free spares gets no remaps.
pub fn remapped(truth: &Profile, count: usize, seed: u64) -> Profile {
    let layout = Layout::new(truth);
    let unit = u64::from(truth.geometry.sectors_per_physical());
    let mut random = Random::new(seed);
    let zones = &truth.layout.zones;
    let mut remaps: Vec<Vec<(u64, u64)>> = vec![Vec::new(); zones.len()];
    let capacity = layout.capacity().get();
    let mut made = 0;
    for _ in 0..count * 8 {
        let lba = Lba::new(random.up_to(capacity - 1) / unit * unit);
        let Some((index, from)) = layout.home_of(lba).filter(|_| made < count) else {
            break;
        };
        let zone = &zones[index];
        let is_spare = Layout::zone_spares(truth, zone);
        let places = layout.places_in_zone(index);
        // End of the area that contains the sector's spares.
        let area = match truth.layout.sparing {
            Sparing::RangeEnd { cylinders } => {
                u64::from(cylinders) * zone.sectors_per_cylinder(truth.geometry.heads)
            }
            _ => places,
        };
        let end = ((from / area + 1) * area).min(places);
        let begin = end
            .saturating_sub(zone.spares + zone.slips.len() as u64)
            .max(from + 1);
        let is_free = |to: u64| {
            let taken = |pair: &(u64, u64)| pair.0 == to || pair.1 == to;
            !remaps[index].iter().any(taken)
        };
        let whole = |place: u64| {
            place.is_multiple_of(unit)
                && place + unit <= end
                && (place..place + unit).all(|place| is_spare(place) && is_free(place))
        };
        let good = (from..from + unit).all(|place| !is_spare(place) && is_free(place));
        if let Some(to) = (begin..end)
            .find(|place| whole(*place))
            .filter(|_| good && from.is_multiple_of(unit))
        {
            remaps[index].extend((0..unit).map(|part| (from + part, to + part)));
            remaps[index].sort_unstable();
            made += 1;
        }
    }
    let bad = |spec: &mut headtime_disk::Spec| {
        for (zone, remaps) in spec.layout.zones.iter_mut().zip(remaps) {
            zone.remaps = remaps;
        }
    };
    truth.with(bad).expect("spare places that are free")
}

/// Addresses whose data is not at its place without remaps.
pub(super) fn moved(truth: &Profile, layout: &Layout) -> Vec<Lba> {
    if !layout.has_remaps() || truth.layout.zones.is_empty() {
        return Vec::new();
    }
    let plain = truth.with(|spec: &mut headtime_disk::Spec| {
        for zone in &mut spec.layout.zones {
            zone.remaps.clear();
        }
    });
    let plain = Layout::new(&plain.unwrap());
    let mut moved = Vec::new();
    for zone in truth
        .layout
        .zones
        .iter()
        .filter(|zone| !zone.remaps.is_empty())
    {
        let is_it =
            |info: &headtime_disk::layout::ZoneInfo| info.first_cylinder.0 == zone.first_cylinder;
        let Some(info) = layout.zones().find(is_it) else {
            continue;
        };
        let mut lba = info.extent.start;
        let end = info.extent.end().get().min(layout.capacity().get());
        // A limit, because a drive with millions of runs has more than a comparison needs.
        while lba.get() < end && moved.len() < 4_096 {
            let run = layout.run(lba);
            if run.len < 64 && plain.locate(lba) != layout.locate(lba) {
                moved.extend((0..u64::from(run.len)).map(|part| Lba::new(lba.get() + part)));
            }
            lba = run.end();
        }
    }
    moved
}
