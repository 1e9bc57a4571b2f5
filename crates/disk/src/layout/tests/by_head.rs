//! Zones whose tracks differ by head, and whose groups of cylinders differ from zone to zone.

use super::*;

/// A part of a turn as layouts count it, in 2^64ths.
fn turned(skew: Skew) -> u64 {
    match skew {
        Skew::Turns(turns) => super::super::place::fraction(turns),
        Skew::Sectors(sectors) => {
            assert_eq!(sectors, 0);
            0
        }
    }
}

/// A slot: its track, its number, the number of slots on the track, and the angle at which it
/// begins.
type Place = (Track, u32, u32, Angle);

/// All slots of a zone in the order of addresses, counted one by one.
fn places(spec: &Spec, zone: &Zone) -> Vec<Place> {
    let (mut places, mut turns) = (Vec::new(), 0_u64);
    for (track, skew) in tracks(spec, zone) {
        turns = turns.wrapping_add(turned(skew));
        let slots = zone.by_head[usize::from(track.head.0)];
        let zero = Angle::from_bits((turns >> 32) as u32);
        places.extend((0..slots).map(|slot| {
            let angle = zero + Angle::of_slot(u64::from(slot), slots);
            (track, slot, slots, angle)
        }));
    }
    places
}

fn specs() -> impl Strategy<Value = Spec> {
    let order = prop_oneof![
        Just(Order::CylinderFirst),
        Just(Order::Serpentine),
        Just(Order::SerpentineThroughout),
        (1_u32..5).prop_map(|tracks| Order::SurfaceSerpentine { tracks }),
    ];
    let sparing = prop_oneof![
        Just((Sparing::ZoneEnd, true)),
        Just((Sparing::ZoneEnd, false)),
        Just((Sparing::DiskEnd, true)),
    ];
    let zone = (
        (0_u32..2, 1_u32..9, prop::option::of(1_u32..6)),
        prop::collection::vec(1_u32..12, 4),
        prop::array::uniform4(0.0..1.0),
        (0_u64..6, 0_u64..6),
        prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        any::<prop::sample::Index>(),
    );
    (
        2_usize..5,
        order,
        sparing,
        prop::collection::vec(zone, 1..4),
    )
        .prop_map(|(heads, order, (sparing, slips_use_spares), parts)| {
            let mut zones = Vec::new();
            let mut next = 0;
            let by_surface = matches!(order, Order::SurfaceSerpentine { .. });
            for ((gap, cylinders, group), slots, skews, (reserved, spares), slips, _) in &parts {
                let first = next + gap;
                next = first + cylinders;
                let by_head = slots[..heads].to_vec();
                let longest = *by_head.iter().max().unwrap();
                let [offset, track_skew, cylinder_skew, group_skew] = skews.map(Skew::Turns);
                let mut zone = Zone {
                    by_head,
                    tracks_per_surface: group.filter(|_| by_surface),
                    offset,
                    track_skew,
                    cylinder_skew,
                    group_skew: Some(group_skew).filter(|_| by_surface),
                    reserved: *reserved,
                    ..super::zone([first, next - 1], longest)
                };
                let all = zone.sectors_per_cylinder(heads as u16) * u64::from(*cylinders);
                if sparing == Sparing::ZoneEnd {
                    zone.spares = (*spares).min(all - 1);
                }
                let mut places: Vec<u64> = slips
                    .iter()
                    .map(|at| at.index(all as usize) as u64)
                    .collect();
                places.sort_unstable();
                places.dedup();
                if sparing == Sparing::ZoneEnd && slips_use_spares {
                    places.truncate(zone.spares as usize);
                }
                zone.slips = places;
                zones.push(zone);
            }
            let mut spec = spec(heads as u16, order, sparing, zones);
            spec.layout.slips_use_spares = slips_use_spares;
            let mut spec = with_all_room(spec);
            // One address of each zone is remapped, if there is a spare for the address.
            for (index, (.., at)) in parts.iter().enumerate() {
                let zone = &spec.layout.zones[index];
                let all = zone.sectors_per_cylinder(heads as u16) * u64::from(zone.cylinders());
                if zone::capacity(&spec, zone) == 0 {
                    continue;
                }
                let is_spare = Layout::zone_spares(&spec, zone);
                let is_good = |place: &u64| !is_spare(*place) && !zone.slips.contains(place);
                let from: Vec<u64> = (0..all).filter(is_good).collect();
                let to = (0..all).find(|place| is_spare(*place));
                if let Some(to) = to.filter(|_| !from.is_empty()) {
                    spec.layout.zones[index].remaps = vec![(from[at.index(from.len())], to)];
                }
            }
            spec
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Against a walk along the slots: from address to position, and back.
    #[test]
    fn tracks_that_differ_by_head_are_where_counting_finds_them(spec in specs()) {
        let empty = |zone: &Zone| zone::capacity(&spec, zone) == 0;
        if spec.layout.zones.iter().any(empty) {
            prop_assert!(spec.check().is_err());
            return Ok(());
        }
        let profile = spec.clone().check().unwrap();
        let text = profile.to_toml();
        prop_assert_eq!(Profile::from_toml("again", &text).unwrap(), profile.clone());
        let layout = Layout::new(&profile);
        let mut address = 0;
        for zone in &spec.layout.zones {
            let places = places(&spec, zone);
            let mut left = zone::capacity(&spec, zone);
            let mut skipped = zone.reserved;
            let mut expected: Vec<Slot> = Vec::new();
            for place in 0..places.len() as u64 {
                expected.push(if zone.slips.contains(&place) {
                    Slot::Bad
                } else if skipped > 0 {
                    skipped -= 1;
                    Slot::Reserved
                } else if left > 0 {
                    left -= 1;
                    address += 1;
                    Slot::Data(Lba::new(address - 1))
                } else {
                    Slot::Spare
                });
            }
            prop_assert_eq!(left, 0);
            let unmoved = expected.clone();
            for &(from, to) in &zone.remaps {
                expected[to as usize] = expected[from as usize];
                expected[from as usize] = Slot::Bad;
            }
            for (&(track, slot, slots, angle), &content) in places.iter().zip(&expected) {
                prop_assert_eq!(layout.slot(track, slot), Some(content));
                prop_assert_eq!(layout.sectors_per_track(track), Some(slots));
                prop_assert_eq!(layout.slot_angle(track, slot), Some(angle));
                if let Slot::Data(lba) = content {
                    let place = layout.locate(lba);
                    prop_assert_eq!((place.track, place.slot, place.angle), (track, slot, angle));
                    let run = layout.run(lba);
                    prop_assert_eq!(run.sectors_per_track, slots);
                    // All of a run is on its track, in a row.
                    for sector in 0..run.len {
                        let there = Some(Slot::Data(lba + Sectors::new(u64::from(sector))));
                        prop_assert_eq!(layout.slot(track, slot + sector), there);
                    }
                    if let Some(whole) = layout.whole_track(lba) {
                        prop_assert_eq!((whole.track, whole.slot, whole.len), (track, 0, slots));
                        prop_assert_eq!(whole, layout.run(whole.start));
                    }
                }
            }
            // The track of each address without remaps.
            for (&(track, ..), content) in places.iter().zip(&unmoved) {
                let Slot::Data(lba) = *content else { continue };
                let on_track = places.iter().zip(&unmoved).filter(|((other, ..), _)| *other == track);
                let data: Vec<u64> = on_track
                    .filter_map(|(_, content)| match content {
                        Slot::Data(lba) => Some(lba.get()),
                        _ => None,
                    })
                    .collect();
                let extent = Extent::at(data[0], data.len() as u64);
                prop_assert_eq!(layout.track_extent_of(lba), extent);
                prop_assert_eq!(layout.track_extent(track), Some(extent));
                let end = layout.cylinder_end(lba).get();
                let last = match spec.layout.order {
                    Order::SurfaceSerpentine { .. } => extent.end().get(),
                    _ => {
                        let on = |((other, ..), content): (&Place, &Slot)| match content {
                            Slot::Data(lba) if other.cylinder == track.cylinder => Some(lba.get() + 1),
                            _ => None,
                        };
                        places.iter().zip(&unmoved).filter_map(on).max().unwrap()
                    }
                };
                prop_assert_eq!(end, last);
            }
        }
        prop_assert_eq!(layout.capacity().get(), address);
    }
}

fn one_zone(change: impl FnOnce(&mut Spec)) -> Result<Profile, String> {
    let zone = Zone {
        by_head: vec![40, 48],
        ..super::zone([0, 9], 48)
    };
    let order = Order::SurfaceSerpentine { tracks: 4 };
    let mut spec = spec(2, order, Sparing::ZoneEnd, vec![zone]);
    change(&mut spec);
    spec.check().map_err(|error| error.to_string())
}

#[test]
fn what_does_not_go_with_tracks_by_head_is_refused() {
    assert!(one_zone(|_| ()).is_ok());
    type Change = fn(&mut Spec);
    let cases: [(Change, &str); 6] = [
        (
            |spec| spec.layout.zones[0].by_head.push(8),
            "layout.zones[0].sectors_per_track: has a list of 3 numbers; allowed are one, or one for each of 2 heads",
        ),
        (
            |spec| spec.layout.zones[0].by_head = vec![0, 48],
            "layout.zones[0].sectors_per_track: 0 is not allowed; allowed is 1 to 65535",
        ),
        (
            |spec| spec.geometry.physical_sector_bytes = 4096,
            "layout.zones[0].sectors_per_track: 44 is not allowed; allowed is a multiple of 8, since \
             sectors on the medium hold so many",
        ),
        (
            |spec| spec.layout.sparing = Sparing::TrackEnd,
            "layout.zones[0].sectors_per_track: tracks differ by head with sparing = \"zone-end\" or \
             \"disk-end\" only",
        ),
        (
            |spec| spec.layout.zones[0].track_skew = Skew::Sectors(3),
            "layout.zones[0].track_skew: 3 is not allowed; allowed is a part of a turn, since tracks \
             differ by head",
        ),
        (
            |spec| {
                spec.layout.order = Order::Serpentine;
                spec.layout.zones[0].tracks_per_surface = Some(2);
            },
            "layout.zones[0].tracks_per_surface: means something with order = \"surface-serpentine\" only",
        ),
    ];
    for (number, (change, problem)) in cases.into_iter().enumerate() {
        let found = one_zone(|spec| {
            if number == 2 {
                spec.layout.zones[0].by_head = vec![44, 48];
            }
            change(spec);
        });
        assert_eq!(found.unwrap_err(), problem);
    }
}
