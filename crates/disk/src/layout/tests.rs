mod by_head;

use super::*;
use crate::profile::{self, LayoutSpec, Order, Skew, Sparing};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Any drive with another layout.
fn spec(heads: u16, order: Order, sparing: Sparing, zones: Vec<Zone>) -> Spec {
    let mut spec = Spec::clone(&profile::by_name("atlas10k").unwrap());
    spec.geometry.heads = heads;
    spec.geometry.cylinders = zones.last().map_or(1, |zone| zone.last_cylinder + 1);
    spec.layout = LayoutSpec {
        order,
        sparing,
        slips_use_spares: true,
        zones,
        map: None,
    };
    spec.cache = profile::CacheSpec::default();
    with_all_room(spec)
}

/// The spec with the full capacity of its zones.
fn with_all_room(mut spec: Spec) -> Spec {
    let zones = &spec.layout.zones;
    let capacity = zones.iter().map(|zone| zone::capacity(&spec, zone)).sum();
    spec.geometry.capacity = Sectors::new(capacity);
    spec
}

/// Places that share their spares.
fn area(spec: &Spec, zone: &Zone) -> u64 {
    let per_track = u64::from(zone.sectors_per_track);
    let per_cylinder = u64::from(spec.geometry.heads) * per_track;
    match spec.layout.sparing {
        Sparing::TrackEnd => per_track,
        Sparing::CylinderEnd | Sparing::CylinderFront => per_cylinder,
        Sparing::RangeEnd { cylinders } => u64::from(cylinders) * per_cylinder,
        Sparing::TracksAtZoneEnd => per_cylinder * u64::from(zone.cylinders()) / per_track,
        Sparing::DiskEnd | Sparing::ZoneEnd => per_cylinder * u64::from(zone.cylinders()),
    }
}

fn zone(cylinders: [u32; 2], sectors_per_track: u32) -> Zone {
    Zone {
        first_cylinder: cylinders[0],
        last_cylinder: cylinders[1],
        sectors_per_track,
        by_head: Vec::new(),
        tracks_per_surface: None,
        offset: Skew::Sectors(0),
        track_skew: Skew::Sectors(0),
        cylinder_skew: Skew::Sectors(0),
        group_skew: None,
        reserved: 0,
        spares: 0,
        slips: Vec::new(),
        remaps: Vec::new(),
    }
}

/// The tracks of a zone in the order of addresses, each with the skew against the one before.
fn tracks(spec: &Spec, zone: &Zone) -> Vec<(Track, Skew)> {
    let heads = u32::from(spec.geometry.heads);
    let track = |cylinder: u32, head: u32| Track {
        cylinder: Cylinder(zone.first_cylinder + cylinder),
        head: Head(head as u16),
    };
    let mut order: Vec<(Track, Skew)> = Vec::new();
    let length = match spec.layout.order {
        Order::SurfaceSerpentine { tracks } => zone.tracks_per_surface.unwrap_or(tracks),
        _ => 1,
    };
    let mut group = 0;
    while group * length < zone.cylinders() {
        let first = group * length;
        let cylinders: Vec<u32> = (first..zone.cylinders().min(first + length)).collect();
        for surface in 0..heads {
            let backward = match spec.layout.order {
                Order::CylinderFirst => false,
                Order::SerpentineThroughout => (zone.first_cylinder + group) % 2 == 1,
                _ => group % 2 == 1,
            };
            let head = if backward {
                heads - 1 - surface
            } else {
                surface
            };
            let mut along = cylinders.clone();
            if surface % 2 == 1 {
                along.reverse();
            }
            for (index, cylinder) in along.into_iter().enumerate() {
                let skew = match (index, surface, group) {
                    (0, 0, 0) => zone.offset,
                    (0, 0, _) => zone.group_skew.unwrap_or(zone.cylinder_skew),
                    (0, _, _) => zone.track_skew,
                    _ => zone.cylinder_skew,
                };
                order.push((track(cylinder, head), skew));
            }
        }
        group += 1;
    }
    order
}

/// Content of all slots without a formula: walks along the slots and hands out addresses.
struct Oracle {
    slots: BTreeMap<(Track, u32), (Slot, u32)>,
    places: Vec<(Track, u32)>,
}

impl Oracle {
    /// Applies remaps if `remapped` is true.
    fn new(spec: &Spec, remapped: bool) -> Oracle {
        let mut slots = BTreeMap::new();
        let mut places = Vec::new();
        for zone in &spec.layout.zones {
            let per_track = u64::from(zone.sectors_per_track);
            let tracks = tracks(spec, zone);
            let total = tracks.len() as u64 * per_track;
            let in_tracks = spec.layout.sparing == Sparing::TracksAtZoneEnd;
            let unit = if in_tracks { per_track } else { 1 };
            let area = area(spec, zone) * unit;
            let slips_use_spares = spec.layout.slips_use_spares;
            let spares = match spec.layout.sparing {
                Sparing::DiskEnd => zone.slips.len() as u64,
                _ => zone.spares * unit,
            };
            let at_front = spec.layout.sparing == Sparing::CylinderFront;
            // Content by place, before remaps.
            let mut content = Vec::new();
            let mut reserved = zone.reserved;
            let mut left = zone::capacity(spec, zone);
            for place in 0..total {
                let index = place / area;
                let whole = (index + 1) * area <= total;
                let mut usable = area - if whole { spares } else { 0 };
                let used = content[(index * area) as usize..]
                    .iter()
                    .filter(|slot| matches!(slot, Slot::Data(_) | Slot::Reserved))
                    .count() as u64;
                usable -= used;
                // Spares remain in front as far as slips have not used them.
                let within = place % area;
                let area_slips = zone
                    .slips
                    .iter()
                    .filter(|&&slip| slip / area == index)
                    .count() as u64;
                let passed = content[(index * area) as usize..]
                    .iter()
                    .filter(|slot| **slot == Slot::Spare)
                    .count() as u64;
                let is_spare = match (at_front, slips_use_spares) {
                    (true, true) => passed < spares - area_slips,
                    (true, false) => within < spares,
                    (false, true) => usable == 0,
                    (false, false) => within >= area - spares,
                };
                content.push(if zone.slips.contains(&(place / unit)) {
                    Slot::Bad
                } else if is_spare {
                    Slot::Spare
                } else if reserved > 0 {
                    reserved -= 1;
                    Slot::Reserved
                } else if left > 0 {
                    left -= 1;
                    let address = places.len() as u64;
                    let (track, _) = tracks[(place / per_track) as usize];
                    places.push((track, (place % per_track) as u32));
                    Slot::Data(Lba::new(address))
                } else {
                    Slot::Spare
                });
            }
            if !slips_use_spares {
                // Every place that is neither bad, spare nor reserved holds an address.
                let for_spares = |place: u64| {
                    let within = place % area;
                    if at_front {
                        within < spares
                    } else {
                        within >= area - spares
                    }
                };
                let idle = content
                    .iter()
                    .enumerate()
                    .filter(|(place, slot)| **slot == Slot::Spare && !for_spares(*place as u64));
                assert_eq!((idle.count(), left), (0, 0));
            }
            if remapped {
                for &(from, to) in &zone.remaps {
                    for slot in 0..unit {
                        let (from, to) = (from * unit + slot, to * unit + slot);
                        let moved = content[from as usize];
                        content[to as usize] = moved;
                        content[from as usize] = Slot::Bad;
                        if let Slot::Data(lba) = moved {
                            let (track, _) = tracks[(to / per_track) as usize];
                            places[lba.get() as usize] = (track, (to % per_track) as u32);
                        }
                    }
                }
            }
            let mut turned = 0;
            for (index, (track, skew)) in tracks.iter().enumerate() {
                let Skew::Sectors(skew) = skew else { panic!() };
                turned += u64::from(*skew);
                let first = index as u64 * per_track;
                let mut angle = turned;
                // Slips on earlier tracks, or earlier cylinders, turn a track.
                let turned_by = match spec.layout.sparing {
                    Sparing::TrackEnd => first,
                    Sparing::CylinderEnd | Sparing::CylinderFront => first - first % area,
                    _ => 0,
                };
                angle += zone.slips.iter().filter(|&&slip| slip < turned_by).count() as u64;
                for slot in 0..per_track {
                    let angle = ((angle + slot) % per_track) as u32;
                    slots.insert(
                        (*track, slot as u32),
                        (content[(first + slot) as usize], angle),
                    );
                }
            }
        }
        Oracle { slots, places }
    }
}

/// Zones with a few of everything; slips and remaps that fit.
fn specs() -> impl Strategy<Value = Spec> {
    let order = prop_oneof![
        Just(Order::CylinderFirst),
        Just(Order::Serpentine),
        Just(Order::SerpentineThroughout),
        (1_u32..4).prop_map(|tracks| Order::SurfaceSerpentine { tracks }),
    ];
    let sparing = prop_oneof![
        Just((Sparing::TracksAtZoneEnd, true)),
        Just((Sparing::TrackEnd, true)),
        Just((Sparing::DiskEnd, true)),
        (1_u32..4).prop_map(|cylinders| (Sparing::RangeEnd { cylinders }, true)),
        any::<bool>().prop_map(|used| (Sparing::CylinderEnd, used)),
        any::<bool>().prop_map(|used| (Sparing::CylinderFront, used)),
        any::<bool>().prop_map(|used| (Sparing::ZoneEnd, used)),
    ];
    let skews = [0_u32..20, 0..20, 0..20, 0..20];
    let zone = (
        (0_u32..2, 1_u32..8, 1_u32..12),
        skews,
        (0_u64..6, 0_u64..4, any::<bool>()),
        prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        prop::collection::vec(any::<[prop::sample::Index; 2]>(), 0..3),
    );
    (1_u16..4, order, sparing, prop::collection::vec(zone, 1..4)).prop_map(
        |(heads, order, (sparing, slips_use_spares), parts)| {
            let mut spec = spec(heads, order, sparing, Vec::new());
            spec.layout.slips_use_spares = slips_use_spares;
            let mut zones = Vec::new();
            let mut next = 0;
            for ((gap, cylinders, per_track), skews, (reserved, spares, grouped), slips, _) in
                &parts
            {
                let first = next + gap;
                next = first + cylinders;
                let mut zone = zone_with_skews([first, next - 1], *per_track, skews);
                zone.reserved = *reserved;
                zone.spares = *spares;
                if !grouped || !matches!(order, Order::SurfaceSerpentine { .. }) {
                    zone.group_skew = None;
                }
                let tracks = u64::from(zone.cylinders()) * u64::from(heads);
                let sectors = tracks * u64::from(*per_track);
                let unit = match sparing {
                    Sparing::TracksAtZoneEnd => tracks,
                    _ => sectors,
                };
                let area = area(&spec, &zone);
                if sparing == Sparing::DiskEnd {
                    zone.spares = 0;
                }
                zone.spares = zone.spares.min(area - 1);
                let mut places: Vec<u64> = slips
                    .iter()
                    .map(|at| at.index(unit as usize) as u64)
                    .collect();
                places.sort_unstable();
                places.dedup();
                for place in places {
                    let index = place / area;
                    let whole = (index + 1) * area <= unit;
                    let before = zone
                        .slips
                        .iter()
                        .filter(|&&slip| slip / area == index)
                        .count();
                    let fits = whole && (before as u64) < zone.spares || !slips_use_spares;
                    if sparing == Sparing::DiskEnd || fits {
                        zone.slips.push(place);
                    }
                }
                zones.push(zone);
            }
            spec.geometry.cylinders = zones.last().map_or(1, |zone| zone.last_cylinder + 1);
            spec.layout.zones = zones;
            let mut spec = with_all_room(spec);
            for (index, (.., remaps)) in parts.iter().enumerate() {
                let zone = &spec.layout.zones[index];
                let tracks = u64::from(zone.cylinders()) * u64::from(heads);
                let unit = if sparing == Sparing::TracksAtZoneEnd {
                    tracks
                } else {
                    tracks * u64::from(zone.sectors_per_track)
                };
                if zone::capacity(&spec, zone) == 0 {
                    continue;
                }
                let is_spare = Layout::zone_spares(&spec, zone);
                let spare = |place: &u64| is_spare(*place);
                let mut to: Vec<u64> = (0..unit).filter(spare).collect();
                let mut from: Vec<u64> = (0..unit)
                    .filter(|place| !spare(place) && !zone.slips.contains(place))
                    .collect();
                let mut pairs = Vec::new();
                for [a, b] in remaps {
                    if !from.is_empty() && !to.is_empty() {
                        let from = from.remove(a.index(from.len()));
                        pairs.push((from, to.remove(b.index(to.len()))));
                    }
                }
                pairs.sort_unstable();
                spec.layout.zones[index].remaps = pairs;
            }
            spec
        },
    )
}

fn zone_with_skews(cylinders: [u32; 2], per_track: u32, skews: &[u32; 4]) -> Zone {
    Zone {
        offset: Skew::Sectors(skews[0]),
        track_skew: Skew::Sectors(skews[1]),
        cylinder_skew: Skew::Sectors(skews[2]),
        group_skew: Some(Skew::Sectors(skews[3])),
        ..zone(cylinders, per_track)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Against a walk along the slots: every address, every slot, every angle, every run.
    #[test]
    fn a_layout_agrees_with_counting_slots(spec in specs()) {
        let oracle = Oracle::new(&spec, true);
        let Ok(profile) = spec.clone().check() else {
            // Zones can come out without any sector; everything else has to pass.
            let empty = spec.layout.zones.iter().any(|zone| {
                zone::capacity(&spec, zone) == 0
            });
            prop_assert!(empty, "{:?}", spec.check());
            return Ok(());
        };
        let layout = Layout::new(&profile);
        prop_assert_eq!(layout.capacity().get(), oracle.places.len() as u64);
        let unmoved = Oracle::new(&spec, false);
        for (address, &(track, slot)) in oracle.places.iter().enumerate() {
            let lba = Lba::new(address as u64);
            let place = layout.locate(lba);
            prop_assert_eq!((place.track, place.slot), (track, slot), "address {}", address);
            prop_assert_eq!(layout.slot(track, slot), Some(Slot::Data(lba)));
            let per_track = layout.sectors_per_track(track).unwrap();
            let index = oracle.slots[&(track, slot)].1;
            prop_assert_eq!(place.angle, Angle::of_slot(u64::from(index), per_track));

            let run = layout.run(lba);
            let next = |address: usize| oracle.places.get(address).copied();
            for sector in 0..run.len {
                let there = Some((track, slot + sector));
                prop_assert_eq!(next(address + sector as usize), there);
                let index = u64::from(index + sector);
                prop_assert_eq!(run.angle(sector), Angle::of_slot(index, per_track));
            }
            // A run may end early only before or behind a remapped sector.
            let end = address + run.len as usize;
            if next(end) == Some((track, slot + run.len)) {
                let moved = |at: usize| oracle.places[at] != unmoved.places[at];
                prop_assert!(moved(end) || moved(end - 1), "run of {} from {}", run.len, address);
            }

            if let Some((zone, place)) = layout.home_of(lba) {
                let home = layout.place_in_zone(zone, place).unwrap();
                prop_assert_eq!((home.track, home.slot), unmoved.places[address]);
                let places = layout.places_in_zone(zone);
                prop_assert!(place < places);
                prop_assert_eq!(layout.place_in_zone(zone, places), None);
            }

            let (home, _) = unmoved.places[address];
            let on_track = |at: &usize| unmoved.places[*at].0 == home;
            let first = (0..=address).rev().take_while(on_track).last().unwrap();
            let last = (address..unmoved.places.len()).take_while(on_track).last().unwrap();
            let extent = Extent::at(first as u64, (last + 1 - first) as u64);
            prop_assert_eq!(layout.track_extent_of(lba), extent);
            prop_assert_eq!(layout.track_extent(home), Some(extent));
            if let Some(whole) = layout.whole_track(lba) {
                prop_assert_eq!(whole, layout.run(extent.start));
                let slots = u64::from(per_track);
                prop_assert_eq!((u64::from(whole.len), extent.len.get()), (slots, slots));
            }
            let same = |at: &usize| match spec.layout.order {
                Order::SurfaceSerpentine { .. } => unmoved.places[*at].0 == home,
                _ => unmoved.places[*at].0.cylinder == home.cylinder,
            };
            let last = (address..unmoved.places.len()).take_while(same).last().unwrap();
            prop_assert_eq!(layout.cylinder_end(lba), Lba::new(last as u64 + 1));
        }
        for (&(track, slot), &(content, index)) in &oracle.slots {
            prop_assert_eq!(layout.slot(track, slot), Some(content));
            let per_track = layout.sectors_per_track(track).unwrap();
            let angle = Angle::of_slot(u64::from(index), per_track);
            prop_assert_eq!(layout.slot_angle(track, slot), Some(angle));
        }
    }

    /// On the drives that come with the program.
    #[test]
    fn addresses_of_shipped_layouts_round_trip(
        drive in 0..profile::shipped().len(),
        at in any::<prop::sample::Index>()) {
        let layout = &shipped_layouts()[drive];
        // An `Index` is 64 bits wide on the machines that matter; capacities are less.
        let lba = Lba::new(at.index(layout.capacity().get() as usize) as u64);
        check_round_trip(layout, lba);
    }
}

fn shipped_layouts() -> &'static [Layout] {
    static LAYOUTS: std::sync::OnceLock<Vec<Layout>> = std::sync::OnceLock::new();
    LAYOUTS.get_or_init(|| {
        let layout = |one: &profile::Shipped| Layout::new(&one.profile());
        profile::shipped().iter().map(layout).collect()
    })
}

fn check_round_trip(layout: &Layout, lba: Lba) {
    let place = layout.locate(lba);
    assert_eq!(layout.slot(place.track, place.slot), Some(Slot::Data(lba)));
    assert_eq!(
        layout.slot_angle(place.track, place.slot),
        Some(place.angle)
    );
    assert!(layout.track_extent_of(lba).contains(lba));
    let zone = layout.zone_of(lba);
    assert!(zone.extent.contains(lba));
    assert!(zone.first_cylinder <= place.track.cylinder);
    assert!(place.track.cylinder <= zone.last_cylinder);
}

/// Without slips all tracks but those at the ends of zones are whole, with spares among them none is said to be.
#[test]
fn tracks_are_whole_where_nothing_is_slipped_on_shipped_drives() {
    let names = profile::shipped().iter().map(|drive| drive.name);
    for (layout, name) in shipped_layouts().iter().zip(names) {
        let capacity = layout.capacity().get();
        let lbas = (0..1_000).map(|n| Lba::new(capacity / 1_000 * n));
        let whole = lbas.filter(|lba| {
            let run = layout.whole_track(*lba);
            run.is_some_and(|run| {
                let extent = layout.track_extent_of(*lba);
                assert_eq!(run, layout.run(extent.start), "{name}");
                assert_eq!(run.end(), extent.end(), "{name}");
                run.len == run.sectors_per_track
            })
        });
        let count = whole.count();
        match name {
            "wd5000aaks" | "exos-x18" => assert!(count > 950, "{name}: {count}"),
            "barracuda-st32171w" => assert_eq!(count, 0),
            _ => {}
        }
    }
}

/// The corners of the shipped drives: ends of zones, of tracks near them, and around every slip.
#[test]
fn shipped_layouts_round_trip_at_boundaries() {
    for (one, layout) in profile::shipped().iter().zip(shipped_layouts()) {
        let capacity = one.profile().geometry.capacity;
        assert_eq!(layout.capacity(), capacity, "{}", one.name);
        let mut next = Lba::ZERO;
        for zone in layout.zones() {
            assert_eq!(
                zone.extent.start, next,
                "{}: zones follow each other",
                one.name
            );
            next = zone.extent.end();
            let last = next - Sectors::new(1);
            for lba in [zone.extent.start, last] {
                let track = layout.track_extent_of(lba);
                check_round_trip(layout, lba);
                check_round_trip(layout, track.start);
                check_round_trip(layout, track.end() - Sectors::new(1));
                if lba != last {
                    check_round_trip(layout, track.end());
                    let second = layout.track_extent_of(track.end());
                    assert_ne!(layout.locate(second.start).track, layout.locate(lba).track);
                }
            }
        }
        assert_eq!(next, Lba::ZERO + capacity, "{}", one.name);
        let mut lba = Lba::ZERO;
        // All runs of a small drive; of a large one, as many as a test has time for.
        for _ in 0..300_000 {
            if lba >= next {
                break;
            }
            let run = layout.run(lba);
            check_round_trip(layout, lba);
            check_round_trip(layout, run.end() - Sectors::new(1));
            lba = run.end();
        }
    }
}

/// A map of a small zone in each order, drawn by hand: cylinder, then per head the addresses of
/// slots 0 on. `x` bad, `s` spare, `r` reserved.
#[test]
fn zone_maps() {
    let mut small = zone([0, 3], 4);
    small.reserved = 1;
    small.spares = 3;
    small.slips = vec![6, 20];
    small.remaps = vec![(9, 31)];
    let map = |order| {
        let layout = Layout::new(
            &spec(2, order, Sparing::ZoneEnd, vec![small.clone()])
                .check()
                .unwrap(),
        );
        let mut lines = Vec::new();
        for cylinder in 0..4 {
            let mut line = String::new();
            for head in 0..2 {
                for slot in 0..4 {
                    let track = Track {
                        cylinder: Cylinder(cylinder),
                        head: Head(head),
                    };
                    line += &match layout.slot(track, slot).unwrap() {
                        Slot::Data(lba) => format!("{lba:>3}"),
                        Slot::Bad => "  x".to_string(),
                        Slot::Spare => "  s".to_string(),
                        Slot::Reserved => "  r".to_string(),
                    };
                }
                line += if head == 0 { " |" } else { "" };
            }
            lines.push(line);
        }
        lines
    };
    assert_eq!(
        map(Order::CylinderFirst),
        [
            "  r  0  1  2 |  3  4  x  5",
            "  6  x  8  9 | 10 11 12 13",
            " 14 15 16 17 |  x 18 19 20",
            " 21 22 23 24 | 25 26 27  7",
        ]
    );
    assert_eq!(
        map(Order::Serpentine),
        [
            "  r  0  1  2 |  3  4  x  5",
            " 10 11 12 13 |  6  x  8  9",
            " 14 15 16 17 |  x 18 19 20",
            " 25 26 27  7 | 21 22 23 24",
        ]
    );
    assert_eq!(
        map(Order::SurfaceSerpentine { tracks: 2 }),
        [
            "  r  0  1  2 | 10 11 12 13",
            "  3  4  x  5 |  6  x  8  9",
            " 25 26 27  7 | 14 15 16 17",
            " 21 22 23 24 |  x 18 19 20",
        ]
    );
}

/// A zone of three cylinders under several sparing schemes: with spares in each cylinder, and with spares at the end of
/// the zone apart from slips. The maps are drawn by hand from the words of the manual. Two zones would show which
/// cylinders a serpentine turns back on.
#[test]
fn zone_maps_with_spares_in_cylinders() {
    let mut small = zone([1, 3], 3);
    small.reserved = 1;
    small.spares = 2;
    small.slips = vec![2, 8];
    let map = |order, sparing, slips_use_spares| {
        let mut spec = spec(2, order, sparing, vec![small.clone()]);
        spec.layout.slips_use_spares = slips_use_spares;
        let layout = Layout::new(&with_all_room(spec).check().unwrap());
        let mut lines = Vec::new();
        for cylinder in 1..4 {
            let slot = |head: u16, slot: u32| {
                let cylinder = Cylinder(cylinder);
                match layout
                    .slot(
                        Track {
                            cylinder,
                            head: Head(head),
                        },
                        slot,
                    )
                    .unwrap()
                {
                    Slot::Data(lba) => format!("{lba:>3}"),
                    Slot::Bad => "  x".to_string(),
                    Slot::Spare => "  s".to_string(),
                    Slot::Reserved => "  r".to_string(),
                }
            };
            let side = |head| (0..3).map(|at| slot(head, at)).collect::<String>();
            lines.push(format!("{} |{}", side(0), side(1)));
        }
        lines
    };
    let first = Order::CylinderFirst;
    // Scheme 2: the slip takes one of the cylinder's two spares.
    assert_eq!(
        map(first, Sparing::CylinderEnd, true),
        [
            "  r  0  x |  1  2  s",
            "  3  4  x |  5  6  s",
            "  7  8  9 | 10  s  s"
        ]
    );
    // Scheme 4: it takes none, and the zone holds two addresses less.
    assert_eq!(
        map(first, Sparing::CylinderEnd, false),
        [
            "  r  0  x |  1  s  s",
            "  2  3  x |  4  s  s",
            "  5  6  7 |  8  s  s"
        ]
    );
    // Scheme 5: data begins behind the spare that the slip leaves over.
    assert_eq!(
        map(first, Sparing::CylinderFront, true),
        [
            "  s  r  x |  0  1  2",
            "  s  3  x |  4  5  6",
            "  s  s  7 |  8  9 10"
        ]
    );
    // Scheme 6: behind both; places 2 and 8 are the first behind them.
    assert_eq!(
        map(first, Sparing::CylinderFront, false),
        [
            "  s  s  x |  r  0  1",
            "  s  s  x |  2  3  4",
            "  s  s  5 |  6  7  8"
        ]
    );
    // Schemes 9 and 10.
    assert_eq!(
        map(first, Sparing::ZoneEnd, true),
        [
            "  r  0  x |  1  2  3",
            "  4  5  x |  6  7  8",
            "  9 10 11 | 12 13 14"
        ]
    );
    assert_eq!(
        map(first, Sparing::ZoneEnd, false),
        [
            "  r  0  x |  1  2  3",
            "  4  5  x |  6  7  8",
            "  9 10 11 | 12  s  s"
        ]
    );
    // Mapping scheme 2: odd cylinders run backward, also the first of a zone. The slips are counted
    // along the addresses, so they are on other heads then.
    assert_eq!(
        map(Order::SerpentineThroughout, Sparing::CylinderEnd, true),
        [
            "  1  2  s |  r  0  x",
            "  3  4  x |  5  6  s",
            " 10  s  s |  7  8  9"
        ]
    );
}

/// The skews of 10 sectors per track, read off by hand: a head switch turns by 2, a cylinder by 3.
#[test]
fn skews_add_up_within_a_zone() {
    let mut first = zone([0, 1], 10);
    first.offset = Skew::Sectors(1);
    first.track_skew = Skew::Sectors(2);
    first.cylinder_skew = Skew::Sectors(3);
    let second = Zone {
        first_cylinder: 2,
        last_cylinder: 2,
        ..first.clone()
    };
    let spec = spec(
        3,
        Order::CylinderFirst,
        Sparing::ZoneEnd,
        vec![first, second],
    );
    let layout = Layout::new(&spec.check().unwrap());
    let starts: Vec<u32> = (0..9)
        .map(|track| layout.locate(Lba::new(track * 10)).angle.slot(10))
        .collect();
    assert_eq!(starts, [1, 3, 5, 8, 0, 2, 1, 3, 5]);
}

/// Skews given in turns are exact over many tracks, for any number of sectors.
#[test]
fn skews_in_turns_do_not_drift() {
    let mut wide = zone([0, 99_999], 7);
    wide.cylinder_skew = Skew::Turns(0.1417);
    let spec = spec(
        1,
        Order::SurfaceSerpentine { tracks: 100 },
        Sparing::ZoneEnd,
        vec![wide],
    );
    let layout = Layout::new(&spec.check().unwrap());
    for track in [0_u64, 1, 99, 100, 12_345, 99_999] {
        let angle = layout.locate(Lba::new(track * 7)).angle;
        let exact = Angle::from_turns((track as f64 * 0.1417).fract());
        let off = (angle - exact).to_bits() as i32;
        assert!(off.abs() < 64, "track {track}: {off} steps of 2^-32 turns");
    }
}

/// Skews of many turns count without their whole turns. Added up in full over four billion tracks, they once passed
/// 2^44, the limit of a division by the sectors per track.
#[test]
fn skews_of_many_turns_add_up() {
    let mut wide = zone([0, (1 << 24) - 1], 3);
    wide.offset = Skew::Sectors(65_535);
    wide.track_skew = Skew::Sectors(65_534);
    wide.cylinder_skew = Skew::Sectors(65_533);
    let mut spec = spec(255, Order::CylinderFirst, Sparing::ZoneEnd, vec![wide]);
    spec.seek.read = profile::SeekCurve::Constant(headtime_units::Nanos::from_millis(1));
    let layout = Layout::new(&spec.check().unwrap());
    let last = (255 << 24) - 1;
    for track in [0_u64, 1, 254, 255, last - 1, last] {
        let cylinder = track / 255;
        let turned = 65_535 + (track - cylinder) * 65_534 + cylinder * 65_533;
        let angle = layout.locate(Lba::new(track * 3)).angle;
        assert_eq!(u64::from(angle.slot(3)), turned % 3, "track {track}");
    }
}

/// A drive that offers less than its zones hold leaves the rest unused.
#[test]
fn capacity_may_be_less_than_the_room() {
    let mut spec = spec(
        1,
        Order::CylinderFirst,
        Sparing::ZoneEnd,
        vec![zone([0, 0], 5), zone([1, 1], 4), zone([3, 3], 3)],
    );
    spec.geometry.capacity = Sectors::new(7);
    let layout = Layout::new(&spec.check().unwrap());
    let track = |cylinder| Track {
        cylinder: Cylinder(cylinder),
        head: Head(0),
    };
    assert_eq!(layout.capacity(), Sectors::new(7));
    assert_eq!(layout.run(Lba::new(5)).len, 2);
    assert_eq!(layout.slot(track(1), 1), Some(Slot::Data(Lba::new(6))));
    assert_eq!(layout.slot(track(1), 2), Some(Slot::Spare));
    assert_eq!(layout.slot(track(3), 0), Some(Slot::Spare));
    assert_eq!(layout.slot(track(2), 0), None);
    assert_eq!(layout.track_extent(track(3)), Some(Extent::at(7, 0)));
}

#[test]
#[should_panic(expected = "past the end")]
fn addresses_past_the_end_are_a_bug() {
    let layout = &shipped_layouts()[0];
    layout.locate(Lba::ZERO + layout.capacity());
}
