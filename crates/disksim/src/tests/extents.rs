//! Layouts by lists of extents.

use super::schemes::{keeps_the_laws_of_a_layout, with_layout};
use super::*;
use headtime_disk::layout::Slot;
use headtime_units::{Cylinder, Head, Lba, Track};

const G2: &str = "dm_layout_g2 {
    Layout Map File = drive.map,
    Zones = [
      dm_layout_g2_zone { First cylinder number = 0, Last cylinder number = 1, First LBN = 0,
        Last LBN = 36, Blocks per track = 10, Zone Skew = 1, Skew for track switch = 2,
        Skew for cylinder switch = 3 },
      dm_layout_g2_zone { First cylinder number = 2, Last cylinder number = 3, First LBN = 37,
        Last LBN = 60, Blocks per track = 8, Skew units = revolutions, Zone Skew = 0.5,
        Skew for track switch = 0.25, Skew for cylinder switch = 0.125 }
    ]
  }";

/// Extents with a slipped sector on the second track and two counts in place of ends. The third track has a sector in
/// the middle that was moved to the last cylinder, the fourth one at the end.
const EXTENTS: &str = "A DRIVE
read by someone
4 cylinders, 7200 rot, 2 heads
lbn 0 --> cyl 0, head 0, sect 0, seqcnt 9
lbn 10 --> cyl 0, head 1, sect 0, seqcnt 3
lbn 14 --> cyl 0, head 1, sect 5, seqcnt 4
lbn 19 --> cyl 1, head 1, sect 1, seqcnt 3
lbn 23 --> cyl 3, head 1, sect 0, count 1
lbn 24 --> cyl 1, head 1, sect 6, seqcnt 3
lbn 28 --> cyl 1, head 0, sect 0, seqcnt 8
lbn 37 --> cyl 3, head 1, sect 2, seqcnt 0
lbn 38 --> cyl 2, head 0, sect 0, count 8
lbn 46 --> cyl 2, head 1, sect 0, count 8
Defect at cyl 0, head 1, sect 4
Defect at cyl 1, head 1, sect 5
";

fn track(cylinder: u32, head: u16) -> Track {
    Track {
        cylinder: Cylinder(cylinder),
        head: Head(head),
    }
}

/// The numbers of an extent's line: address, cylinder, head, sector and count.
fn numbers(line: &str) -> [u64; 5] {
    let numbers: Vec<u64> = line
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .collect();
    numbers.try_into().unwrap_or_else(|_| panic!("{line}"))
}

fn with_extents(layout: &str, extents: &str) -> Result<Import, ImportError> {
    let files = with_layout(layout, 4, 54);
    import_text(
        "My drive.parv",
        &files.run,
        &Choice::default(),
        |name| match name {
            "drive.map" => Ok(extents.to_string()),
            other => files.beside(other),
        },
    )
}

#[test]
fn a_list_of_extents_imports_with_what_is_slipped_and_moved() {
    let import = with_extents(G2, EXTENTS).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        (import.notes.len(), import.warnings.len()),
        (0, 0),
        "{import:?}"
    );
    let profile = import.profile;
    keeps_the_laws_of_a_layout(&profile);
    let layout = headtime_disk::Layout::new(&profile);
    for line in EXTENTS.lines().filter(|line| line.starts_with("lbn")) {
        let [address, cylinder, head, slot, count] = numbers(line);
        let count = count + u64::from(line.contains("seqcnt"));
        for along in 0..count {
            let place = layout.locate(Lba::new(address + along));
            assert_eq!(place.track, track(cylinder as u32, head as u16), "{line}");
            assert_eq!(u64::from(place.slot), slot + along, "{line}");
        }
    }
    // Bad places, and where the addresses of a track end although the last one is elsewhere.
    assert_eq!(layout.slot(track(0, 1), 4), Some(Slot::Bad));
    assert_eq!(layout.slot(track(1, 1), 5), Some(Slot::Bad));
    assert_eq!(layout.slot(track(1, 1), 0), Some(Slot::Spare));
    assert_eq!(
        layout.track_extent(track(1, 0)).unwrap().end(),
        Lba::new(38)
    );
    // Sector 0 of each track: the zone's skew, then a head's, a cylinder's, a head's; and again.
    let turns = |cylinder, head| layout.slot_angle(track(cylinder, head), 0).unwrap().turns();
    for (found, expected) in [
        (turns(0, 0), 0.1),
        (turns(0, 1), 0.3),
        (turns(1, 1), 0.6),
        (turns(1, 0), 0.8),
        (turns(2, 0), 0.5),
        (turns(2, 1), 0.75),
    ] {
        assert!((found - expected).abs() < 1e-8, "{found} {expected}");
    }
}

/// Extents of a drive with 64 sectors on each track. Slots 3 and 9 to 10 may be slipped. The last cylinder holds
/// moved sectors from the front, the middle and the end of tracks.
fn extents_of(tracks: &[(bool, bool, [u32; 3])]) -> (String, u64) {
    let (mut text, mut spare, mut address) =
        ("A\nB\n0 cylinders, 0 rot, 2 heads\n".to_string(), 0, 0);
    let last = tracks.len() as u32 / 2 + 1;
    let mut line = |cylinder: u32, head: u32, slot: u32, len: u32| {
        text +=
            &format!("lbn {address} --> cyl {cylinder}, head {head}, sect {slot}, count {len}\n");
        address += u64::from(len);
    };
    for (index, (one, two, moved)) in tracks.iter().enumerate() {
        let (cylinder, turn) = (index as u32 / 2, index as u32 % 2);
        let head = if cylinder % 2 == 0 { turn } else { 1 - turn };
        let mut slot = 0;
        while slot < 64 {
            let slipped = *one && slot == 3 || *two && (9..11).contains(&slot);
            let gone = match slot {
                0 => moved[0],
                5 => moved[1],
                62 => moved[2],
                _ => 0,
            };
            if slipped {
                slot += 1;
            } else if gone > 0 {
                // Each where no other is next to it.
                line(last + spare / 20, 0, spare % 20 * 3, gone);
                spare += 1;
                slot += gone;
            } else {
                let ends = [3, 5, 9, 62, 64];
                let end = ends.into_iter().find(|&end| end > slot).unwrap();
                line(cylinder, head, slot, end - slot);
                slot = end;
            }
        }
    }
    (text, address)
}

proptest! {
    /// For any slips and moves, each address is at its place in the list. A track's addresses are the same as without
    /// moves.
    #[test]
    fn any_list_of_extents_imports_with_its_tracks(
        tracks in prop::collection::vec((any::<bool>(), any::<bool>(), [0_u32..3, 0..3, 0..3]), 2..20),
    ) {
        let (text, capacity) = extents_of(&tracks);
        let cylinders = tracks.len() as u32 / 2 + 1 + 3 * tracks.len() as u32 / 20 + 1;
        let layout = format!(
            "dm_layout_g2 {{ Layout Map File = drive.map, Zones = [ dm_layout_g2_zone {{ \
             First cylinder number = 0, Last cylinder number = {}, First LBN = 0, Last LBN = 0, \
             Blocks per track = 64 }} ] }}",
            cylinders - 1
        );
        let files = with_layout(&layout, cylinders, capacity);
        let import = import_text("My drive.parv", &files.run, &Choice::default(), |name| match name {
            "drive.map" => Ok(text.clone()),
            other => files.beside(other),
        });
        let import = import.unwrap_or_else(|e| panic!("{e}\n{text}"));
        prop_assert_eq!(import.notes, [""; 0]);
        prop_assert_eq!(import.warnings, [""; 0]);
        keeps_the_laws_of_a_layout(&import.profile);
        let layout = headtime_disk::Layout::new(&import.profile);
        for line in text.lines().skip(3) {
            let [address, cylinder, head, slot, count] = numbers(line);
            for along in 0..count {
                let place = layout.locate(Lba::new(address + along));
                prop_assert_eq!(
                    (place.track, u64::from(place.slot)),
                    (track(cylinder as u32, head as u16), slot + along),
                    "{}", line
                );
            }
        }
        let mut next = 0;
        for (index, (one, two, _)) in tracks.iter().enumerate() {
            let len = 64 - u64::from(*one) - 2 * u64::from(*two);
            let (cylinder, turn) = (index as u32 / 2, index as u16 % 2);
            let head = if cylinder % 2 == 0 { turn } else { 1 - turn };
            let extent = headtime_units::Extent::at(next, len);
            prop_assert_eq!(layout.track_extent(track(cylinder, head)), Some(extent), "{}", text);
            next += len;
        }
    }
}

#[test]
fn what_is_wrong_in_a_list_of_extents_is_said_of_its_line() {
    for (from, to, error) in [
        (
            "lbn 10 -->",
            "lbn 11 -->",
            "drive.map:5: lbn 11 where 10 is next",
        ),
        (
            "lbn 10 -->",
            "10 -->",
            "drive.map:5: `10 --> cyl 0, head 1, sect 0, seqcnt 3` should be `lbn N --> cyl C, head H, \
             sect S, seqcnt N` or `.. count N`",
        ),
        (
            "cyl 1, head 0, sect 0, seqcnt 8",
            "cyl 1, head 0, sect 3, seqcnt 8",
            "drive.map:10: sectors 3 to 11 of a track, which has 10",
        ),
        (
            "cyl 2, head 1, sect 0, count 8",
            "cyl 0, head 0, sect 0, count 8",
            "drive.map:13: head 0 of cylinder 0 has other addresses, too",
        ),
        (
            "cyl 2, head 1, sect 0, count 8",
            "cyl 9, head 1, sect 0, count 8",
            "drive.map:13: cylinder 9 is in no zone",
        ),
        (
            "cyl 3, head 1, sect 0, count 1",
            "cyl 9, head 1, sect 0, count 1",
            "drive.map:8: cylinder 9 is in no zone",
        ),
    ] {
        let extents = EXTENTS.replacen(from, to, 1);
        assert_ne!(extents, EXTENTS, "{from}");
        assert_eq!(with_extents(G2, &extents).unwrap_err().to_string(), error);
    }
    let nothing = with_extents(G2, "a\nb\n1 cylinders, 1 rot, 1 heads\n").unwrap_err();
    assert_eq!(
        nothing.to_string(),
        "drive.model: layout.groups[0].strips: a group has at least one strip"
    );
    let lost = with_extents(&G2.replace("drive.map", "lost.map"), "").unwrap_err();
    assert_eq!(
        lost.to_string(),
        "drive.model:7: names a file that cannot be read: lost.map: no such file"
    );
}
