use super::*;
use crate::Layout;
use crate::mechanics::Mechanics;
use crate::profile::{self, LayoutSpec, MapPart, Skew, Spec, Strip, Zone};
use headtime_sched::Op;
use headtime_units::{Sectors, Time};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Tracks of a head.
fn tracks(
    head: u16,
    cylinder: i32,
    step: i32,
    (places, run): (u64, u64),
    slots: [u32; 2],
) -> Strip {
    Strip {
        cylinder,
        step,
        offset: 0.0,
        skew: 0.0,
        places,
        run,
        of: MapPart::Track {
            head,
            first_slot: slots[0],
            sectors_per_track: slots[1],
        },
    }
}

fn parts(group: usize, cylinder: i32, step: i32, places: u64, run: u64) -> Strip {
    Strip {
        of: MapPart::Group(group),
        ..tracks(0, cylinder, step, (places, run), [0, 1])
    }
}

fn spec(map: MapSpec, cylinders: u32, heads: u16) -> Spec {
    let mut spec = Spec::clone(&profile::by_name("atlas10k").unwrap());
    spec.geometry.cylinders = cylinders;
    spec.geometry.heads = heads;
    spec.cache = profile::CacheSpec::default();
    spec.layout = LayoutSpec::mapped(map);
    let bare = MapSpec {
        remaps: Vec::new(),
        spare_tracks: Vec::new(),
        ..spec.layout.map.clone().unwrap()
    };
    let capacity = Layout::map_capacity(&spec, &bare, None).unwrap_or(1);
    spec.geometry.capacity = Sectors::new(capacity);
    spec
}

fn layout(spec: &Spec) -> Layout {
    Layout::new(&spec.clone().check().unwrap_or_else(|e| panic!("{e}")))
}

fn track(cylinder: u32, head: u16) -> Track {
    Track {
        cylinder: Cylinder(cylinder),
        head: Head(head),
    }
}

/// Two heads with tracks of 4 and of 3 places, three cylinders in and three out, twice over; the second
/// time is cut short before its last track.
fn small() -> MapSpec {
    MapSpec {
        groups: vec![
            vec![
                tracks(0, 0, 1, (4, 12), [0, 4]),
                tracks(1, 2, -1, (3, 9), [1, 5]),
            ],
            vec![parts(0, 0, 3, 21, 38)],
        ],
        slips: vec![(2, 2), (24, 1)],
        remaps: vec![
            MapRemap {
                address: 5,
                count: 1,
                cylinder: 1,
                head: 1,
                slot: 4,
            },
            MapRemap {
                address: 9,
                count: 2,
                cylinder: 7,
                head: 0,
                slot: 1,
            },
        ],
        spare_tracks: vec![SpareTrack {
            cylinder: 7,
            head: 0,
            sectors_per_track: 3,
            offset: 0.25,
        }],
    }
}

/// Content of all slots, drawn by hand: a line for each cylinder, and per head the addresses from slot 0 on. `x` bad,
/// `s` spare.
#[test]
fn a_map_drawn_by_hand() {
    let layout = layout(&spec(small(), 8, 2));
    let mut lines = Vec::new();
    for cylinder in 0..8 {
        let mut line = String::new();
        for head in 0..2 {
            for slot in 0..6 {
                line += &match layout.slot(track(cylinder, head), slot) {
                    Some(Slot::Data(lba)) => format!("{lba:>3}"),
                    Some(Slot::Bad) => "  x".to_string(),
                    Some(Slot::Spare) => "  s".to_string(),
                    Some(Slot::Reserved) => "  r".to_string(),
                    None => "  .".to_string(),
                };
            }
            line += if head == 0 { " |" } else { "" };
        }
        lines.push(line);
    }
    assert_eq!(
        lines,
        [
            "  0  1  x  x  .  . |  s 16 17 18  s  .",
            "  2  3  4  x  .  . |  s 13 14 15  5  .",
            "  6  7  8  x  .  . |  s  x 11 12  s  .",
            " 19 20 21  x  .  . |  .  .  .  .  .  .",
            " 22 23 24 25  .  . |  s 33 34  s  s  .",
            " 26 27 28 29  .  . |  s 30 31 32  s  .",
            "  .  .  .  .  .  . |  .  .  .  .  .  .",
            "  s  9 10  .  .  . |  .  .  .  .  .  .",
        ]
    );
    assert_eq!(layout.capacity(), Sectors::new(35));
    assert_eq!(layout.group_cylinders(), 3);
    // Slot 1 of the spare track, a third of a turn behind a quarter of one.
    let moved = layout.run(Lba::new(9));
    assert_eq!((moved.len, moved.sectors_per_track), (2, 3));
    assert!((moved.angle(0).turns() - (0.25 + 1.0 / 3.0)).abs() < 1e-8);
    assert_eq!(layout.run(Lba::new(10)).len, 1);
    assert_eq!(layout.track_extent(track(7, 0)), Some(Extent::at(35, 0)));
    assert_eq!(layout.track_extent(track(6, 0)), None);
    let strips: Vec<u64> = layout.zones().map(|zone| zone.extent.len.get()).collect();
    assert_eq!(strips, [10, 9, 11, 5]);
}

/// An error names the strip that does not fit.
#[test]
fn maps_that_do_not_fit_are_refused_with_the_strip_and_the_reason() {
    let error = |change: &dyn Fn(&mut MapSpec)| {
        let mut map = small();
        change(&mut map);
        spec(map, 8, 2).check().unwrap_err().to_string()
    };
    for (change, says) in [
        (
            &(|map: &mut MapSpec| map.groups.clear()) as &dyn Fn(&mut MapSpec),
            "layout.groups: a map has at least one group",
        ),
        (
            &|map| map.groups[0].clear(),
            "layout.groups[0].strips: a group has at least one strip",
        ),
        (
            &|map| map.groups[1][0].of = MapPart::Group(1),
            "layout.groups[1].strips[0]: group 1 is not an earlier one; there are 1 before this",
        ),
        (
            &|map| map.groups[1][0].places = 22,
            "layout.groups[1].strips[0]: repetitions of 22 places of group 0, which has 21",
        ),
        (
            &|map| map.groups[0][1].places = 5,
            "layout.groups[0].strips[1]: 5 places from slot 1 on; the track has 5 slots",
        ),
        (
            &|map| map.groups[0][1].run = 0,
            "layout.groups[0].strips[1]: 0 places; a strip has at least one",
        ),
        (
            &|map| map.groups[0][1].cylinder = 1,
            "layout.groups[0].strips[1]: head 1, cylinders 1 to -1; the disk has heads below 2 and \
             cylinders below 8",
        ),
        (
            &|map| map.groups[1][0].step = 2,
            "layout.groups: two strips have the track of head 0 on cylinder 2",
        ),
        (
            &|map| map.groups[0][0].run = 1 << 41,
            "layout.groups[0]: 2199023255561 places; there can be 1099511627776",
        ),
        (
            &|map| map.groups[0][0].skew = 1.5,
            "layout.groups[0].strips[0]: 1.5 is not allowed; allowed is 0 to 1",
        ),
        (
            &|map| map.slips[1] = (3, 1),
            "layout.slips[1]: slips are listed in the order of places, each with at least one",
        ),
        (
            &|map| map.slips[1] = (37, 2),
            "layout.slips[1]: there are no such places",
        ),
        (
            &|map| map.remaps[1].address = 4,
            "layout.remaps[1]: remaps are listed in the order of addresses, each with at least one",
        ),
        (
            &|map| map.remaps[1].address = 34,
            "layout.remaps[1]: there are no such addresses",
        ),
        (
            &|map| map.remaps[1].slot = 2,
            "layout.remaps[1]: there are no such slots",
        ),
        (
            &|map| map.remaps[0].slot = 3,
            "layout.remaps[0]: the slots hold addresses of their own",
        ),
        (
            &|map| {
                map.remaps[0] = MapRemap {
                    address: 5,
                    count: 1,
                    ..map.remaps[1]
                };
            },
            "layout.remaps[1]: the slots are another remap's, too",
        ),
        (
            &|map| map.spare_tracks[0].cylinder = 1,
            "layout.spare_tracks[0]: the track is in a strip",
        ),
        (
            &|map| map.spare_tracks[0].cylinder = 8,
            "layout.spare_tracks[0]: the disk has no such track",
        ),
        (
            &|map| map.spare_tracks.push(map.spare_tracks[0]),
            "layout.spare_tracks[1]: spare tracks are listed in the order of cylinders and heads, each \
             once",
        ),
    ] {
        assert_eq!(error(change), says);
    }
    let mut less = spec(small(), 8, 2);
    less.geometry.capacity = Sectors::new(36);
    assert_eq!(
        less.check().unwrap_err().to_string(),
        "geometry.capacity_sectors: 36 is more than the map has room for, which is 35"
    );
    let mut both = spec(small(), 8, 2);
    both.layout.zones = profile::by_name("atlas10k").unwrap().layout.zones.clone();
    assert_eq!(
        both.check().unwrap_err().to_string(),
        "layout: a layout is a map, or zones with an order and a sparing"
    );
}

/// Few lines can stand for more strips than there is memory for.
#[test]
fn repetitions_without_end_are_refused_before_they_are_written_out() {
    let mut groups = vec![vec![tracks(0, 0, 1, (1, 1), [0, 1])]];
    for _ in 0..6 {
        let size: u64 = groups.last().unwrap().iter().map(|strip| strip.run).sum();
        groups.push(vec![parts(groups.len() - 1, 0, 0, size, size * 20)]);
    }
    let map = MapSpec {
        groups,
        ..MapSpec::default()
    };
    assert_eq!(
        spec(map, 1 << 24, 1).check().unwrap_err().to_string(),
        "layout.groups: more than 2097152 strips with all repetitions"
    );
    let mut groups = vec![vec![tracks(0, 0, 1, (1, 1), [0, 1])]];
    for group in 0..100 {
        groups.push(vec![parts(group, 0, 0, 1, 1)]);
    }
    let map = MapSpec {
        groups,
        ..MapSpec::default()
    };
    let error = spec(map, 8, 1).check().unwrap_err().to_string();
    assert_eq!(
        error,
        "layout.groups[83]: groups in groups more than 16 deep"
    );
}

/// Position of every place without a search: writes out the map by its definition.
struct Oracle {
    /// Track, slot and angle in turns, by place.
    places: Vec<(Track, u32, f64)>,
    /// Places of addresses.
    homes: Vec<usize>,
}

impl Oracle {
    fn new(map: &MapSpec) -> Oracle {
        let mut oracle = Oracle {
            places: Vec::new(),
            homes: Vec::new(),
        };
        oracle.write(map, map.groups.len() - 1, 0, 0.0);
        let slipped = |place: &usize| {
            let place = *place as u64;
            map.slips
                .iter()
                .any(|&(from, count)| (from..from + count).contains(&place))
        };
        oracle.homes = (0..oracle.places.len())
            .filter(|place| !slipped(place))
            .collect();
        oracle
    }

    fn write(&mut self, map: &MapSpec, group: usize, cylinder: i32, turned: f64) {
        for strip in &map.groups[group] {
            let begin = self.places.len();
            let mut repetition = 0;
            while self.places.len() < begin + strip.run as usize {
                let cylinder = cylinder + strip.cylinder + repetition * strip.step;
                let turned = turned + strip.offset + f64::from(repetition) * strip.skew;
                match strip.of {
                    MapPart::Group(part) => {
                        let first = self.places.len();
                        self.write(map, part, cylinder, turned);
                        self.places.truncate(first + strip.places as usize);
                    }
                    MapPart::Track {
                        head,
                        first_slot,
                        sectors_per_track,
                    } => {
                        for at in 0..strip.places as u32 {
                            let turned = turned + f64::from(at) / f64::from(sectors_per_track);
                            let track = track(cylinder as u32, head);
                            self.places.push((track, first_slot + at, turned));
                        }
                    }
                }
                repetition += 1;
            }
            self.places.truncate(begin + strip.run as usize);
        }
    }
}

/// A drive of zones with 8 and 16 slots on a track, whose angles are the same with zones and with a
/// map.
fn zoned(heads: u16, cylinders: [u32; 2], skews: [u32; 3]) -> Spec {
    let mut spec = spec(small(), cylinders[0] + cylinders[1], heads);
    let zone = |first_cylinder: u32, cylinders: u32, sectors_per_track: u32| Zone {
        first_cylinder,
        last_cylinder: first_cylinder + cylinders - 1,
        sectors_per_track,
        by_head: Vec::new(),
        tracks_per_surface: None,
        offset: Skew::Sectors(skews[0]),
        track_skew: Skew::Sectors(skews[1]),
        cylinder_skew: Skew::Sectors(skews[2]),
        group_skew: None,
        reserved: 0,
        spares: 0,
        slips: Vec::new(),
        remaps: Vec::new(),
    };
    spec.layout.map = None;
    spec.layout.zones = vec![
        zone(0, cylinders[0], 16),
        zone(cylinders[0], cylinders[1], 8),
    ];
    let room = u64::from(heads) * u64::from(16 * cylinders[0] + 8 * cylinders[1]);
    spec.geometry.capacity = Sectors::new(room);
    spec
}

/// The tracks of zones without spares, as a table.
fn table_of(spec: &Spec) -> MapSpec {
    let heads = u64::from(spec.geometry.heads);
    let mut map = MapSpec::default();
    let mut disk = Vec::new();
    for zone in &spec.layout.zones {
        let slots = u64::from(zone.sectors_per_track);
        let turns = |sectors: u64| (sectors % slots) as f64 / slots as f64;
        let sectors = |skew: Skew| match skew {
            Skew::Sectors(sectors) => u64::from(sectors),
            Skew::Turns(_) => unreachable!("all skews are in sectors"),
        };
        let [offset, track, cylinder] =
            [zone.offset, zone.track_skew, zone.cylinder_skew].map(sectors);
        let head = |head: u64| Strip {
            offset: turns(head * track),
            ..tracks(
                head as u16,
                0,
                1,
                (slots, slots),
                [0, zone.sectors_per_track],
            )
        };
        map.groups.push((0..heads).map(head).collect());
        let size = heads * slots;
        let run = size * u64::from(zone.cylinders());
        disk.push(Strip {
            offset: turns(offset),
            skew: turns(cylinder + (heads - 1) * track),
            ..parts(
                map.groups.len() - 1,
                zone.first_cylinder as i32,
                1,
                size,
                run,
            )
        });
    }
    map.groups.push(disk);
    map
}

/// Groups of cylinders where each head has a strip of its own, up or down, with a length of its own. Some groups are
/// repeated. Then come single tracks. Slips, remaps and spare tracks are added as there is room.
fn maps() -> impl Strategy<Value = (MapSpec, u32, u16)> {
    let head = (
        1_u64..6,
        0_u32..3,
        0_u32..3,
        any::<bool>(),
        0_u32..8,
        0_u32..8,
    );
    let group = (
        prop::collection::vec(head, 1..4),
        1_i32..5,
        1_u64..4,
        any::<bool>(),
        any::<prop::sample::Index>(),
        0_u32..8,
    );
    let index = any::<prop::sample::Index>;
    (
        prop::collection::vec(group, 1..4),
        0_i32..4,
        prop::collection::vec((index(), 1_u64..4), 0..5),
        prop::collection::vec((index(), 1_u32..3, index()), 0..4),
    )
        .prop_map(|(groups, singles, slips, remaps)| {
            let turns = |eighths: u32| f64::from(eighths) / 8.0;
            let mut map = MapSpec::default();
            let mut disk = Vec::new();
            let (mut cylinder, mut heads) = (0, 0);
            for (parts_of, cylinders, times, inward, cut, turned) in groups {
                let mut strips = Vec::new();
                for (head, (places, first, rest, up, offset, skew)) in parts_of.iter().enumerate() {
                    let slots = [*first, first + *places as u32 + rest];
                    let (from, step) = if *up { (0, 1) } else { (cylinders - 1, -1) };
                    let run = (*places, places * cylinders as u64);
                    strips.push(Strip {
                        offset: turns(*offset),
                        skew: turns(*skew),
                        ..tracks(head as u16, from, step, run, slots)
                    });
                    heads = heads.max(head as u16 + 1);
                }
                let size: u64 = strips.iter().map(|strip| strip.run).sum();
                let run = size * times - cut.index(size as usize) as u64;
                let last = cylinder + (times as i32 - 1) * cylinders;
                let (from, step) = if inward {
                    (cylinder, cylinders)
                } else {
                    (last, -cylinders)
                };
                map.groups.push(strips);
                disk.push(Strip {
                    offset: turns(turned),
                    skew: turns(7 - turned),
                    ..parts(map.groups.len() - 1, from, step, size, run)
                });
                cylinder += times as i32 * cylinders;
            }
            // Addresses that go around the heads of each cylinder, as most old drives have them.
            for _ in 0..singles {
                for head in 0..heads {
                    disk.push(tracks(head, cylinder, 1, (3, 3), [0, 4]));
                }
                cylinder += 1;
            }
            // And one strip that leaves a cylinder out each time.
            disk.push(tracks(0, cylinder, 2, (2, 6), [0, 2]));
            map.groups.push(disk);
            map.spare_tracks.push(SpareTrack {
                cylinder: cylinder as u32 + 5,
                head: heads - 1,
                sectors_per_track: 4,
                offset: 0.625,
            });
            let cylinders = cylinder as u32 + 7;
            let total = Oracle::new(&map).places.len();
            let mut slips: Vec<(u64, u64)> = slips
                .iter()
                .map(|(at, count)| (at.index(total) as u64, *count))
                .collect();
            slips.sort_unstable();
            for (place, count) in slips {
                let end = map.slips.last().map_or(0, |&(place, count)| place + count);
                if place >= end && place + count < total as u64 {
                    map.slips.push((place, count));
                }
            }
            let capacity = Oracle::new(&map).homes.len() as u64;
            // Remaps to slots that hold nothing, as long as they fit.
            let mut asked: Vec<_> = remaps;
            asked.sort_unstable_by_key(|(at, ..)| at.index(capacity as usize));
            for (at, count, to) in asked {
                let bare = layout(&spec(map.clone(), cylinders, heads));
                let mut free = Vec::new();
                for cylinder in 0..cylinders {
                    for head in 0..heads {
                        let track = track(cylinder, head);
                        let slots = bare.sectors_per_track(track).unwrap_or(0);
                        let is_free = |slot: u32| {
                            matches!(bare.slot(track, slot), Some(Slot::Spare | Slot::Bad))
                        };
                        free.extend(
                            (0..slots)
                                .filter(|&slot| is_free(slot))
                                .map(|slot| (track, slot)),
                        );
                    }
                }
                let (track, slot) = free[to.index(free.len())];
                map.remaps.push(MapRemap {
                    address: at.index(capacity as usize) as u64,
                    count,
                    cylinder: track.cylinder.0,
                    head: track.head.0,
                    slot,
                });
                if spec(map.clone(), cylinders, heads).check().is_err() {
                    map.remaps.pop();
                }
            }
            (map, cylinders, heads)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// A table of the tracks that zones have: every address is in the same place, and accesses take the
    /// same time.
    #[test]
    fn a_table_of_the_tracks_of_zones_is_the_same_drive(
        heads in 1_u16..4,
        cylinders in [1_u32..6, 1..6],
        skews in [0_u32..16, 0..16, 0..16],
        accesses in prop::collection::vec((any::<prop::sample::Index>(), 1_u64..40, any::<bool>()), 1..20),
    ) {
        let zoned = zoned(heads, cylinders, skews);
        let mapped = spec(table_of(&zoned), cylinders[0] + cylinders[1], heads);
        prop_assert_eq!(mapped.geometry.capacity, zoned.geometry.capacity);
        let [one, other] = [zoned, mapped].map(|spec| spec.check().unwrap());
        let layouts = [&one, &other].map(Layout::new);
        let capacity = layouts[0].capacity().get();
        for address in 0..capacity {
            let lba = Lba::new(address);
            let [place, same] = [0, 1].map(|of| layouts[of].locate(lba));
            prop_assert_eq!(place, same);
            let [end, same] = [0, 1].map(|of| (
                layouts[of].run(lba).end(),
                layouts[of].track_extent_of(lba),
                layouts[of].cylinder_end(lba),
                layouts[of].slot(place.track, place.slot),
            ));
            prop_assert_eq!(end, same);
        }
        prop_assert_eq!(layouts[0].group_cylinders(), layouts[1].group_cylinders());
        let mechanics = [&one, &other].map(Mechanics::new);
        let mut states = [0, 1].map(|of| (layouts[of].home(), Time::ZERO));
        for (at, len, zero_latency) in accesses {
            let start = at.index(capacity as usize) as u64;
            let extent = Extent::at(start, len.min(capacity - start));
            for of in [0, 1] {
                let (from, now) = states[of];
                let access = mechanics[of].access(&layouts[of], from, now, extent, Op::Read, zero_latency);
                states[of] = (access.track, now + access.total());
            }
            prop_assert_eq!(states[0], states[1]);
        }
    }

    /// Against the map written out: every address, every slot, every angle, every run.
    #[test]
    fn agrees_with_writing_the_map_out((map, cylinders, heads) in maps()) {
        let oracle = Oracle::new(&map);
        let spec = spec(map.clone(), cylinders, heads);
        let layout = layout(&spec);
        let capacity = oracle.homes.len() as u64;
        prop_assert_eq!(layout.capacity().get(), capacity);
        let moved_to: BTreeMap<u64, (Track, u32)> = map
            .remaps
            .iter()
            .flat_map(|remap| (0..remap.count).map(move |along| (
                remap.address + u64::from(along),
                (track(remap.cylinder, remap.head), remap.slot + along),
            )))
            .collect();
        let home = |address: u64| oracle.places[oracle.homes[address as usize]];
        let at = |address: u64| match moved_to.get(&address) {
            Some(&there) => there,
            None => (home(address).0, home(address).1),
        };
        let elsewhere = moved_to.iter().filter(|&(&address, (track, _))| track.cylinder != home(address).0.cylinder);
        let strays: BTreeSet<u32> = elsewhere.map(|(_, (track, _))| track.cylinder.0).collect();
        prop_assert_eq!(layout.strays(), strays.into_iter().collect::<Vec<_>>());
        let mut contents = BTreeMap::new();
        let (mut strips, mut lowest) = (layout.zones(), 0);
        let mut strip = strips.next().unwrap();
        let mut highest = 0;
        for address in 0..capacity {
            let lba = Lba::new(address);
            let place = layout.locate(lba);
            prop_assert_eq!((place.track, place.slot), at(address), "address {}", address);
            contents.insert((place.track, place.slot), lba);
            let (home_track, _, turned) = home(address);
            if !moved_to.contains_key(&address) {
                let off = (place.angle.turns() - turned).rem_euclid(1.0);
                prop_assert!(!(1e-8..=1.0 - 1e-8).contains(&off), "address {address}: {off}");
            }
            prop_assert_eq!(layout.slot_angle(place.track, place.slot), Some(place.angle));

            // Runs: consecutive slots of a track, and as many as there are.
            let run = layout.run(lba);
            prop_assert_eq!((run.start, run.track, run.slot), (lba, place.track, place.slot));
            prop_assert_eq!(Some(run.sectors_per_track), layout.sectors_per_track(run.track));
            for sector in 0..run.len {
                let ahead = address + u64::from(sector);
                prop_assert_eq!(at(ahead), (run.track, run.slot + sector));
                let angle = layout.slot_angle(run.track, run.slot + sector);
                prop_assert_eq!(angle, Some(run.angle(sector)));
            }
            let end = address + u64::from(run.len);
            if end < capacity && at(end) == (run.track, run.slot + run.len) {
                let moved = |at: u64| moved_to.contains_key(&at);
                prop_assert!(moved(end) || moved(end - 1), "run of {} from {address}", run.len);
            }

            // Tracks and cylinders in the order of addresses, moved or not.
            let same = |other: &u64| home(*other).0 == home_track;
            let first = (0..=address).rev().take_while(same).last().unwrap();
            let last = (address..capacity).take_while(same).last().unwrap();
            let extent = Extent::at(first, last + 1 - first);
            prop_assert_eq!(layout.track_extent_of(lba), extent);
            prop_assert_eq!(layout.track_extent(home_track), Some(extent));
            let same = |other: &u64| home(*other).0.cylinder == home_track.cylinder;
            let last = (address..capacity).take_while(same).last().unwrap();
            prop_assert_eq!(layout.cylinder_end(lba), Lba::new(last + 1));

            // Strips follow each other, and say where their addresses are.
            while strip.extent.end() <= lba {
                prop_assert_eq!(strip.extent.start, Lba::new(lowest));
                lowest = strip.extent.end().get();
                strip = strips.next().unwrap();
            }
            prop_assert_eq!(layout.zone_of(lba), strip);
            prop_assert!(strip.extent.contains(lba));
            let cylinders = strip.first_cylinder..=strip.last_cylinder;
            prop_assert!(cylinders.contains(&home_track.cylinder));

            // No address is farther out than `group_cylinders` promises.
            let cylinder = home_track.cylinder.0;
            prop_assert!(cylinder + layout.group_cylinders() > highest);
            highest = highest.max(cylinder);
        }
        let places: BTreeMap<(Track, u32), usize> = oracle
            .places
            .iter()
            .enumerate()
            .map(|(place, &(track, slot, _))| ((track, slot), place))
            .collect();
        prop_assert_eq!(places.len(), oracle.places.len());
        for cylinder in 0..cylinders {
            for head in 0..heads {
                let track = track(cylinder, head);
                let slots = layout.sectors_per_track(track).unwrap_or(0);
                prop_assert_eq!(layout.slot(track, slots), None);
                prop_assert_eq!(layout.track_extent(track).is_some(), slots > 0);
                for slot in 0..slots {
                    let expected = match (contents.get(&(track, slot)), places.get(&(track, slot))) {
                        (Some(&lba), _) => Slot::Data(lba),
                        // Slipped, or moved away.
                        (None, Some(_)) => Slot::Bad,
                        (None, None) => Slot::Spare,
                    };
                    prop_assert_eq!(layout.slot(track, slot), Some(expected));
                }
            }
        }
        // The text of the profile gives the same map again.
        let profile = spec.check().unwrap();
        let again = crate::Profile::from_toml("again", &profile.to_toml());
        prop_assert_eq!(again.as_ref(), Ok(&profile));
    }
}
