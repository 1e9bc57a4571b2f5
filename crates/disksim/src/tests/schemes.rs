//! Layouts by zones: every scheme, and files that contradict themselves.

use super::*;
use headtime_disk::layout::Slot;
use headtime_disk::profile::Zone;
use headtime_units::{Cylinder, Head, Lba, Track};

/// Every mapping with every sparing scheme of the manual. Room, bad slots and spares were counted by hand. The
/// imported layout keeps the laws of a layout, also after a profile's text.
#[test]
fn every_mapping_and_sparing_scheme_imports_as_a_layout() {
    // The first zone has 5 cylinders of 20 places with 4 spares per area. In it, 3 places are reserved and 2 slipped.
    // The second zone has 64 places. Scheme 1 slips tracks, and has a track with one of these numbers. Place 50 is
    // moved to 99 if 99 is a spare.
    let rooms = [
        (0, 100 - 3 - 2, [2, 0]),
        (1, 100 - 3 - 4 * 10, [10, 4 * 10 - 10]),
        (2, 100 - 3 - 4 * 5, [3, 4 * 5 - 2 - 1]),
        (3, 100 - 3 - 4 * 10, [3, 4 * 10 - 2 - 1]),
        (4, 100 - 3 - 4 * 5 - 2, [3, 4 * 5 - 1]),
        (5, 100 - 3 - 4 * 5, [2, 4 * 5 - 2]),
        (6, 100 - 3 - 4 * 5 - 2, [2, 4 * 5]),
        (7, 100 - 3 - 2, [2, 0]),
        (8, 100 - 3 - 4 * 2, [2, 4 * 2 - 2]),
        (9, 100 - 3 - 4, [3, 4 - 2 - 1]),
        (10, 100 - 3 - 4 - 2, [3, 4 - 1]),
    ];
    for mapping in 0..3 {
        for (scheme, first_zone, [bad, spare]) in rooms {
            let files = Files::new()
                .with("mapping scheme = 1", &format!("mapping scheme = {mapping}"))
                .with("scheme used = 9", &format!("scheme used = {scheme}"))
                .with("Block count = 150", "Block count = 0");
            let import = files.import().unwrap_or_else(|e| panic!("{e}"));
            let counts = keeps_the_laws_of_a_layout(&import.profile);
            assert_eq!(
                counts,
                [first_zone + 64, bad, spare, 3],
                "{mapping}, {scheme}"
            );
        }
    }
}

/// Every address has a place of its own, and every slot with an address holds the address of its place. Cylinders
/// ascend with addresses. The profile's text makes the same layout.
///
/// Returns the number of slots for data, bad slots, spares and the drive's own slots.
pub(crate) fn keeps_the_laws_of_a_layout(profile: &Profile) -> [u64; 4] {
    let layout = headtime_disk::Layout::new(profile);
    let again = Profile::from_toml("again", &profile.to_toml()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(again, *profile);
    let again = headtime_disk::Layout::new(&again);
    let remaps = layout.has_remaps();
    let mut last = Cylinder(0);
    for address in 0..layout.capacity().get() {
        let lba = Lba::new(address);
        let place = layout.locate(lba);
        assert_eq!(layout.slot(place.track, place.slot), Some(Slot::Data(lba)));
        assert_eq!(
            layout.slot_angle(place.track, place.slot),
            Some(place.angle)
        );
        assert_eq!(again.locate(lba), place);
        let slack = Cylinder(last.0.saturating_sub(layout.group_cylinders() - 1));
        assert!(remaps || place.track.cylinder >= slack, "address {address}");
        last = last.max(place.track.cylinder);
    }
    let mut counts = [0; 4];
    for cylinder in 0..profile.geometry.cylinders {
        for head in 0..profile.geometry.heads {
            let track = Track {
                cylinder: Cylinder(cylinder),
                head: Head(head),
            };
            for content in (0..65_535).map_while(|slot| layout.slot(track, slot)) {
                counts[match content {
                    Slot::Data(_) => 0,
                    Slot::Bad => 1,
                    Slot::Spare => 2,
                    Slot::Reserved => 3,
                }] += 1;
            }
        }
    }
    assert_eq!(counts[0], layout.capacity().get());
    counts
}

/// A zone of a file, as strategies draw it: cylinders, slots of a track, skews, reserved places, spares,
/// slips and defects.
type Drawn = (u32, u32, [u32; 3], u64, u64, Vec<u64>, Vec<[u64; 2]>);

fn zones() -> impl Strategy<Value = Vec<Drawn>> {
    let places = || prop::collection::vec(0_u64..100, 0..6);
    let pairs = prop::collection::vec([0_u64..100, 0..100], 0..4);
    let zone = (
        1_u32..6,
        1_u32..12,
        [0_u32..12, 0..12, 0..12],
        0_u64..4,
        0_u64..4,
        places(),
        pairs,
    );
    prop::collection::vec(zone, 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Any zones with any scheme make a layout or an error. The error says that the zone has no room, or more spares
    /// than places.
    #[test]
    fn any_zones_with_any_scheme_are_a_layout_or_have_no_room(
        (mapping, scheme, range) in (0..3, 0..11, 1..4),
        heads in 1_u16..4,
        drawn in zones(),
    ) {
        let mut zones = String::new();
        let mut next = 0;
        for (cylinders, slots, [offset, track, cylinder], reserved, spares, slips, defects) in &drawn {
            let list = |numbers: &mut dyn Iterator<Item = u64>| {
                numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
            };
            let (slips, defects) = (
                list(&mut slips.iter().copied()),
                list(&mut defects.iter().flatten().copied()),
            );
            let last = next + cylinders - 1;
            zones += &format!(
                "dm_layout_g1_zone {{ First cylinder number = {next}, Last cylinder number = {last}, \
                 Blocks per track = {slots}, Offset of first block = {offset}, \
                 Empty space at zone front = {reserved}, Skew for track switch = {track}, \
                 Skew for cylinder switch = {cylinder}, Number of spares = {spares}, \
                 slips = [ {slips} ], defects = [ {defects} ] }},"
            );
            next = last + 1;
        }
        let layout = format!(
            "dm_layout_g1 {{ LBN-to-PBN mapping scheme = {mapping}, Sparing scheme used = {scheme}, \
             Rangesize for sparing = {range}, Zones = [ {} ] }}",
            zones.trim_end_matches(',')
        );
        let surfaces = format!("surfaces = {heads}");
        match with_layout(&layout, next, 0).with("surfaces = 2", &surfaces).import() {
            Ok(import) => {
                let profile = import.profile;
                let counts = keeps_the_laws_of_a_layout(&profile);
                let slots = drawn.iter().map(|(cylinders, slots, ..)| cylinders * slots * u32::from(heads));
                prop_assert_eq!(counts.iter().sum::<u64>(), u64::from(slots.sum::<u32>()));
                let unit = |zone: &Zone| match zone.sectors_per_track {
                    // Scheme 1 slips and moves tracks.
                    slots if scheme == 1 => u64::from(slots),
                    _ => 1,
                };
                let bad = |zone: &Zone| (zone.slips.len() + zone.remaps.len()) as u64 * unit(zone);
                prop_assert_eq!(counts[1], profile.layout.zones.iter().map(bad).sum::<u64>());
            }
            Err(error) => {
                let error = error.to_string();
                let room = ["spares", "reserved", "space at zone front", "no sector of the zone is left"];
                prop_assert!(room.iter().any(|words| error.contains(words)), "{}", error);
            }
        }
    }
}

#[test]
fn warns_where_files_contradict_themselves_and_says_what_is_believed() {
    let warnings = |from: &str, to: &str| {
        let import = Files::new().with(from, to).import().unwrap();
        assert_eq!(import.notes, [""; 0]);
        (import.profile.geometry, import.warnings)
    };
    let (geometry, found) = warnings("Block count = 150", "Block count = 200");
    assert_eq!(
        found,
        [
            "drive.model:5: `Block count` is 200, but the layout has room for 157 blocks; the layout is \
             believed"
        ]
    );
    assert_eq!(geometry.capacity.get(), 157);
    let (geometry, found) = warnings("Block count = 150", "Block count = 0");
    assert!(found[0].ends_with("the layout is believed"), "{found:?}");
    assert_eq!(geometry.capacity.get(), 157);
    assert_eq!(
        warnings("Block count = 150", "Block count = 157").1,
        [""; 0]
    );
    let less = "drive.model:5: `Block count` is 150, but the layout has room for 157 blocks; the block \
                count is believed, and the last 7 blocks stay unused";
    let (geometry, found) = warnings("Number of cylinders = 10", "Number of cylinders = 9");
    assert_eq!(
        found,
        [
            "drive.model:4: `Number of cylinders` is 9, but the layout reaches cylinder 9, which is believed",
            less
        ]
    );
    assert_eq!((geometry.capacity.get(), geometry.cylinders), (150, 10));
    let (_, found) = warnings(
        "Fast write level = 1,",
        "Fast write level = 0,\n  Fast write level = 1,",
    );
    assert_eq!(
        found,
        [
            "drive.diskspecs:20: `Fast write level` is given again later, which counts",
            less
        ]
    );
    let files = Files::new().with("scheme used = 9", "scheme used = 7");
    let found = files.import().unwrap().warnings;
    assert_eq!(
        found,
        [
            "drive.model:5: `Block count` is 150, but the layout has room for 159 blocks; the block count \
             is believed, and the last 9 blocks stay unused, as spares at the end of the disk"
        ]
    );
}

/// The model with another layout in place of its own.
pub(crate) fn with_layout(layout: &str, cylinders: u32, block_count: u64) -> Files {
    let (before, rest) = MODEL.split_once("Layout Model").unwrap();
    let (_, after) = rest.split_once("Mechanical Model").unwrap();
    let model = format!("{before}Layout Model = {layout},\n  Mechanical Model{after}");
    let model = model.replace(
        "Number of cylinders = 10",
        &format!("Number of cylinders = {cylinders}"),
    );
    Files {
        model: model.replace("Block count = 150", &format!("Block count = {block_count}")),
        ..Files::new()
    }
}
