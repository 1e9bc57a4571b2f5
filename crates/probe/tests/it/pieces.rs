//! Zones that once came apart: slips beside each other at the end of a track, borders that look like the next track, and spares by ranges.

use headtime_disk::profile::{Profile, Skew, Sparing, Zone, by_name};
use headtime_disk::{Layout, Spec};
use headtime_lab::accuracy::{Accuracy, compare};
use headtime_probe::extract::{Extraction, Worth};
use headtime_probe::{Modelled, Probe};
use headtime_units::{Nanos, Sectors};

/// Cylinders, sectors on a track, skews of tracks and cylinders, spares, and slipped places.
type Tracks = (u32, u32, u32, u32, u64, Vec<u64>);

/// A Cheetah 9LP with other zones.
fn drive(heads: u16, sparing: Sparing, zones: Vec<Tracks>) -> Profile {
    let plain = by_name("cheetah9lp").unwrap();
    let zoned = |spec: &mut Spec| {
        spec.geometry.heads = heads;
        spec.layout.sparing = sparing;
        let mut first = 0;
        let zone = |(cylinders, slots, track, cylinder, spares, slips): Tracks| {
            let zone = Zone {
                first_cylinder: first,
                last_cylinder: first + cylinders - 1,
                sectors_per_track: slots,
                by_head: Vec::new(),
                tracks_per_surface: None,
                offset: Skew::Sectors(0),
                track_skew: Skew::Sectors(track),
                cylinder_skew: Skew::Sectors(cylinder),
                group_skew: None,
                reserved: 0,
                spares,
                slips,
                remaps: Vec::new(),
            };
            first += cylinders;
            zone
        };
        spec.layout.zones = zones.into_iter().map(zone).collect();
        spec.geometry.cylinders = first;
        let room = spec.layout.zones.iter();
        let room = room.map(|zone| Layout::zone_capacity(spec, zone)).sum();
        spec.geometry.capacity = Sectors::new(room);
    };
    plain.with(zoned).unwrap()
}

fn learn(truth: &Profile, seed: u64) -> (Extraction, Accuracy) {
    let mut probe = Modelled::new(truth, seed);
    let mut extraction = Extraction::new(&probe, seed);
    let long = Nanos::from_millis(90 * 60_000);
    extraction.run(&mut probe, long).unwrap();
    assert_eq!(probe.capacity(), extraction.capacity());
    let accuracy = compare(truth, &extraction, &probe);
    (extraction, accuracy)
}

fn is_whole(truth: &Profile, seed: u64) {
    let (extraction, accuracy) = learn(truth, seed);
    let learned = extraction.profile().unwrap();
    let zones = [&learned, truth].map(|of| of.layout.zone_count());
    assert_eq!(zones[0], zones[1], "{seed}: {accuracy:?}");
    assert_eq!(accuracy.cylinders.0, accuracy.cylinders.1, "{seed}");
    let held = accuracy.held;
    assert!(held.within[0] * 100 >= held.reads * 95, "{seed}: {held:?}");
    assert_eq!(extraction.contradictions, Vec::<String>::new(), "{seed}");
}

#[test]
fn slips_around_the_end_of_a_track_leave_a_zone_whole() {
    // One before the last two sectors of a track, and one early on the next.
    let slips = vec![533 * 195 + 192, 534 * 195 + 12];
    let zones = vec![
        (600, 238, 70, 81, 300, vec![]),
        (600, 195, 58, 67, 238, slips),
        (500, 180, 53, 62, 0, vec![]),
    ];
    let truth = drive(2, Sparing::ZoneEnd, zones);
    (1..=12).for_each(|seed| is_whole(&truth, seed));
}

#[test]
fn spares_by_range_are_learned_where_a_zone_begins_as_the_one_before_would_go_on() {
    // The first six sectors of the second zone are where the first zone would have them. It ends amid a range.
    let zones = vec![
        (750, 300, 66, 90, 88, vec![]),
        (771, 272, 48, 72, 88, vec![]),
        (600, 261, 61, 81, 88, vec![]),
    ];
    let truth = drive(10, Sparing::RangeEnd { cylinders: 12 }, zones);
    (1..=12).for_each(|seed| is_whole(&truth, seed));
}

#[test]
fn spares_that_are_more_than_a_track_are_learned() {
    let zones = vec![
        (480, 186, 37, 52, 200, vec![]),
        (300, 170, 33, 47, 200, vec![]),
    ];
    let truth = drive(5, Sparing::RangeEnd { cylinders: 12 }, zones);
    is_whole(&truth, 1);
}

#[test]
fn ranges_that_come_apart_predict_as_zones_and_are_reported() {
    let zones = vec![
        (460, 126, 31, 42, 88, vec![]),
        (652, 113, 21, 26, 88, vec![]),
    ];
    let truth = drive(4, Sparing::RangeEnd { cylinders: 12 }, zones);
    let (extraction, accuracy) = learn(&truth, 1);
    let held = accuracy.held;
    assert!(held.within[0] * 100 >= held.reads * 95, "{held:?}");
    assert_eq!(extraction.verdict().worth, Worth::Predicts);
    let said = extraction.contradictions.join("\n");
    assert!(said.contains("zones were learned in pieces"), "{said}");
    assert!(said.contains("probe again with another --seed"), "{said}");
    let confidence = extraction.confidence();
    let of = |key: &str| confidence.iter().find(|(known, _)| known == key);
    for key in ["layout.zones", "geometry.heads"] {
        assert!(of(key).unwrap().1 <= 0.3, "{confidence:?}");
    }
    let provenance = &extraction.profile().unwrap().provenance;
    assert!(provenance.contains("Contradiction: "), "{provenance}");
}
