//! Layouts by tables of tracks.

use super::schemes::{keeps_the_laws_of_a_layout, with_layout};
use headtime_units::Lba;

/// Two heads whose tracks have different numbers of sectors, inward on one head and outward on the other. The pattern
/// takes three cylinders and repeats three times, as on the drives of 2005.
const G4: &str = "dm_layout_g4 {
    TP = [ 0, 9, 10, 0, 7, 8, 1, 6, 9 ],
    IDX = [
      [ # lbn, cyl, off, len, cyllen, alen, runlen, cylrunlen, child
        0,  0, 0.0, 10, 1, 0.25, 30,  3, TRACK, 0, 0,
        30, 2, 0.5,  8, 1, 0.125, 24, -3, TRACK, 1, 1
      ],
      [ 0, 0, 0.0, 54, 3, 0.75, 150, 9, IDX, 0,
        150, 9, 0.0, 6, 1, 0.0, 6, 1, TRACK, 2, 0 ]
    ],
    Slips = [ 60, 2, 12, 1 ],
    Remaps = [ 20, 2, 9, 0, 7, 9, 100, 1, 9, 1, 3, 8 ]
  }";

#[test]
fn a_track_on_which_a_zone_ends_is_no_full_one() {
    let layout = G4.replace("1, 6, 9 ]", "0, 2, 3 ]").replace(
        "150, 9, 0.0, 6, 1, 0.0, 6, 1, TRACK",
        "150, 9, 0.0, 3, 1, 0.0, 3, 1, TRACK",
    );
    let layout = &with_layout(&layout, 10, 0).import().unwrap().profile.layout;
    assert_eq!(layout.sectors_per_track(), [3, 10]);
    assert_eq!(layout.sectors_per_full_track(2), [8, 10]);
    // If no length has more tracks than that, all count.
    assert_eq!(layout.sectors_per_full_track(9), [3, 10]);
}

#[test]
fn a_table_of_tracks_imports_with_its_lists_slips_and_remaps() {
    let import = with_layout(G4, 10, 0)
        .import()
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(import.notes, [""; 0]);
    assert_eq!(
        import.warnings,
        [
            "drive.model:5: `Block count` is 0, but the layout has room for 153 blocks; the layout is believed"
        ]
    );
    let profile = import.profile;
    keeps_the_laws_of_a_layout(&profile);
    let map = profile.layout.map.as_ref().unwrap();
    assert_eq!(map.slips, [(12, 1), (60, 2)]);
    let spare = map.spare_tracks[0];
    assert_eq!(
        (
            map.spare_tracks.len(),
            spare.cylinder,
            spare.head,
            spare.sectors_per_track
        ),
        (1, 9, 1, 8)
    );
    let layout = headtime_disk::Layout::new(&profile);
    let at = |address| {
        let place = layout.locate(Lba::new(address));
        let track = (place.track.cylinder.0, place.track.head.0);
        // A thousandth of a turn is less than a sector.
        (track, place.slot, libm::round(place.angle.turns() * 1000.0))
    };
    // Place 12 is slipped: address 12 is at place 13, slot 3 of the second track, which is turned by a
    // quarter.
    assert_eq!(at(12), ((1, 0), 3, 550.0));
    // Place 30, on the third cylinder: half a turn.
    assert_eq!(at(29), ((2, 1), 0, 500.0));
    // Place 54 begins the second repetition, turned by three quarters.
    assert_eq!(at(53), ((3, 0), 0, 750.0));
    // Addresses 20 and 21 are on the last cylinder, whose slot 1 is where its sectors begin.
    assert_eq!(at(20).0, (9, 0));
    assert_eq!((at(21).1, at(147)), (8, ((9, 0), 1, 0.0)));
    assert_eq!(at(100), ((9, 1), 3, 375.0));
}

/// As DiskSim's own tools write the last list of the disk, to make room for slips; and a slip of nothing,
/// as its code puts before the first one.
#[test]
fn a_last_list_with_more_sectors_than_tracks_ends_with_its_tracks() {
    let reaching = |last: &str, slips: &str| {
        let layout = G4
            .replace(
                "54, 3, 0.75, 150, 9, IDX, 0,\n        150, 9, 0.0, 6, 1, 0.0, 6, 1, TRACK, 2, 0",
                last,
            )
            .replace("60, 2, 12, 1", slips);
        with_layout(&layout, 10, 0).import()
    };
    let import =
        reaching("58, 3, 0.75, 58, 3, IDX, 0", "0, 0, 12, 1").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        import.notes,
        [
            "drive.model: the last 4 sectors of `IDX` are on no track and were left out",
            "drive.model: 1 remaps of the layout do not fit and were left out"
        ]
    );
    let map = import.profile.layout.map.as_ref().unwrap();
    assert_eq!(map.slips, [(12, 1)]);
    assert_eq!(keeps_the_laws_of_a_layout(&import.profile)[0], 53);
    // In the middle of the disk there is no telling what such a list means.
    let error = reaching("58, 3, 0.75, 116, 6, IDX, 0", "12, 1").unwrap_err();
    assert_eq!(
        error.to_string(),
        "drive.model: layout.groups[1].strips[0]: repetitions of 58 places of group 0, which has 54"
    );
}

#[test]
fn what_is_wrong_in_a_table_of_tracks_is_said_of_its_line() {
    for (from, to, error) in [
        (
            "0, 9, 10, 0",
            "0, 10, 10, 0",
            "drive.model:7: TP: 10 is not allowed; allowed are integers from 0 to 9",
        ),
        (
            "1, 6, 9 ]",
            "1, 6 ]",
            "drive.model:7: TP: should be threes of a lowest and a highest sector and the track's sectors",
        ),
        (
            "TRACK, 1, 1",
            "TRACK, 3, 1",
            "drive.model:11: IDX: 3 is not allowed; allowed are integers from 0 to 2",
        ),
        (
            "TRACK, 1, 1",
            "track, 1, 1",
            "drive.model:11: IDX: should be lbn, cyl, off, len, cyllen, alen, runlen, cylrunlen and then \
             TRACK, a track pattern and a head, or IDX and a list",
        ),
        (
            "30, 2, 0.5,  8,",
            "30, 2, 0.5,  9,",
            "drive.model:11: IDX: 9 sectors on a track whose pattern has 8 of them",
        ),
        (
            "30, 2, 0.5,  8,",
            "31, 2, 0.5,  8,",
            "drive.model:11: IDX: begins at lbn 31, where the ones before it end at 30",
        ),
        (
            "IDX, 0,",
            "IDX, 1,",
            "drive.model:13: IDX: holds itself, by way of the lists that it names",
        ),
        (
            "60, 2, 12, 1",
            "60, 2, 12",
            "drive.model:16: Slips: should be pairs of a place and a number of places",
        ),
        (
            "60, 2, 12, 1",
            "60, -2",
            "drive.model:16: Slips: -2 is not allowed; allowed are integers from 0 to 281474976710656",
        ),
        (
            "54, 3, 0.75",
            "55, 3, 0.75",
            "drive.model: layout.groups[1].strips[0]: repetitions of 55 places of group 0, which has 54",
        ),
        (
            "150, 9, IDX",
            "150, -9, IDX",
            "drive.model: layout.groups[0].strips[0]: head 0, cylinders -3 to -1; the disk has heads below \
             2 and cylinders below 16777216",
        ),
        (
            "TRACK, 1, 1",
            "TRACK, 1, 0",
            "drive.model: layout.groups: two strips have the track of head 0 on cylinder 0",
        ),
    ] {
        let layout = G4.replacen(from, to, 1);
        assert_ne!(layout, G4, "{from}");
        assert_eq!(with_layout(&layout, 10, 0).error(), error);
    }
}

#[test]
fn what_a_table_of_tracks_cannot_hold_is_noted_and_what_it_exceeds_warned_of() {
    let layout = G4
        .replace("60, 2, 12, 1", "60, 2, 61, 4, 155, 2, 12, 1")
        .replace(
            "100, 1, 9, 1, 3, 8",
            "100, 1, 0, 0, 3, 10, 21, 1, 9, 0, 0, 9",
        );
    let import = with_layout(&layout, 9, 1000)
        .import()
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        import.notes,
        [
            "drive.model: 2 slips of the layout do not fit and were left out",
            "drive.model: 2 remaps of the layout do not fit and were left out"
        ]
    );
    assert_eq!(
        import.warnings,
        [
            "drive.model:4: `Number of cylinders` is 9, but the layout reaches cylinder 9, which is believed",
            "drive.model:5: `Block count` is 1000, but the layout has room for 153 blocks; the layout is \
             believed"
        ]
    );
    keeps_the_laws_of_a_layout(&import.profile);
    // Lists may name later ones, as long as the last is the disk.
    let (lists, rest) = G4.split_once("      [ 0, 0, 0.0, 54").unwrap();
    let first = &lists[lists.find("      [ #").unwrap()..];
    let moved = G4
        .replace(first, "      [ 0, 0, 0.0, 54, 3, 0.0, 54, 3, IDX, 1 ],\n")
        .replace(&format!("      [ 0, 0, 0.0, 54{rest}"), "")
        + first
        + &format!("      [ 0, 0, 0.0, 54{rest}");
    let whole = with_layout(&moved, 10, 0)
        .import()
        .unwrap_or_else(|e| panic!("{e}"));
    let plain = with_layout(G4, 10, 0).import().unwrap();
    assert_eq!(whole.profile.geometry, plain.profile.geometry);
    let layouts = [&whole, &plain].map(|import| headtime_disk::Layout::new(&import.profile));
    for address in 0..153 {
        let lba = Lba::new(address);
        assert_eq!(layouts[0].locate(lba), layouts[1].locate(lba));
    }
}
