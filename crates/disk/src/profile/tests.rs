use super::*;
use crate::layout::{Layout, Slot};
use headtime_units::Lba;
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn profiles_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles")
}

#[test]
fn shipped_profiles_are_in_canonical_form() {
    for one in shipped() {
        if std::env::var_os("HEADTIME_BLESS").is_some() {
            let path = profiles_dir().join(format!("{}.toml", one.name));
            let text = std::fs::read_to_string(&path).unwrap();
            let profile = Profile::from_toml(one.name, &text).unwrap_or_else(|e| panic!("{e}"));
            std::fs::write(path, profile.to_toml()).unwrap();
            continue;
        }
        let profile = one.profile();
        assert_eq!(profile.name, one.name);
        assert_eq!(profile.to_toml(), one.text, "{}", one.name);
        assert!(!profile.provenance.is_empty() && !profile.trust.is_empty());
    }
}

/// The example of the documentation.
fn example() -> &'static str {
    let page = include_str!("../../../../docs/profile.md");
    let start = page.find("```toml\n").unwrap() + "```toml\n".len();
    let len = page[start..].find("```").unwrap();
    &page[start..start + len]
}

/// The example with the table of tracks from the same page in place of its layout.
fn mapped_example() -> String {
    let page = include_str!("../../../../docs/profile.md");
    let start = page.find("```toml\n[layout]\n").unwrap() + "```toml\n".len();
    let len = page[start..].find("```").unwrap();
    let (before, rest) = example().split_once("[layout]\n").unwrap();
    let (_, after) = rest.split_once("[seek]\n").unwrap();
    format!("{before}{}\n[seek]\n{after}", &page[start..start + len])
}

#[test]
fn the_documented_table_of_tracks_is_a_profile_with_every_key() {
    let example = mapped_example();
    let profile = Profile::from_toml("profile.md", &example).unwrap_or_else(|e| panic!("{e}"));
    let written = profile.to_toml();
    for line in written.lines().filter(|line| !line.starts_with("    [")) {
        let key = line.split(" = ").next().unwrap();
        assert!(example.contains(key), "{key} is not documented");
    }
    assert_eq!(Profile::from_toml("written", &written).unwrap(), profile);
    let layout = Layout::new(&profile);
    let at = |address| {
        let place = layout.locate(Lba::new(address));
        (place.track.cylinder.0, place.track.head.0, place.slot)
    };
    // Slot 40 of the first track is slipped, and address 100 is remapped. Address 383 is the first on the second head,
    // from the inside out.
    assert_eq!(
        [at(39), at(40), at(47)],
        [(0, 0, 39), (0, 0, 41), (1, 0, 0)]
    );
    assert_eq!(
        [at(100), at(101), at(102)],
        [(20, 1, 5), (20, 1, 6), (2, 0, 7)]
    );
    assert_eq!([at(383), at(735)], [(7, 1, 0), (8, 0, 0)]);
}

#[test]
fn errors_in_a_table_of_tracks_say_what_is_allowed() {
    for (from, to, at, error) in [
        (
            "[0, 8, 0, 0.35, 736, 1901, 0],",
            "[0, 8, 0, 0.35, 736, 1901],",
            "[0, 8, 0, 0.35, 736, 1901],",
            "layout.groups[1].strips[0]: has 6 values, but should be 9 numbers, [cylinder, step, \
             offset, skew, places, run, head, first slot, sectors per track], or 7, the last of which is a group in place of the track's",
        ),
        (
            "[0, 8, 0, 0.35, 736, 1901, 0],",
            "[0, 8, 0, 1.35, 736, 1901, 0],",
            "[0, 8, 0, 1.35, 736, 1901, 0],",
            "layout.groups[1].strips[0]: the value 1.35 in place 4 is out of range; allowed is 0 \
             to 1",
        ),
        (
            "[0, 8, 0, 0.35, 736, 1901, 0],",
            "[0, -99999999, 0, 0.35, 736, 1901, 0],",
            "[0, -99999999, 0, 0.35, 736, 1901, 0],",
            "layout.groups[1].strips[0]: the value -99999999 in place 2 is out of range; allowed \
             is -16777216 to 16777216",
        ),
        (
            "[0, 8, 0, 0.35, 736, 1901, 0],",
            "[0, 8, 0, 0.35, 736, 1901, 1],",
            "[0, 8, 0, 0.35, 736, 1901, 1],",
            "layout.groups[1].strips[0]: group 1 is not an earlier one; there are 1 before this",
        ),
        (
            "slips = [[40, 1]]",
            "slips = [40, 1]",
            "slips = [40, 1]",
            "layout.slips[0]: is the number 40, but should be a list of 2 values",
        ),
        (
            "remaps = [[100, 2, 20, 1, 5]]",
            "remaps = [[100, 2, 20, 1, 43]]",
            "remaps = [[100, 2, 20, 1, 43]]",
            "layout.remaps[0]: there are no such slots",
        ),
        (
            "spare_tracks = [[20, 1, 44, 0.5]]",
            "spare_tracks = [[20, 1, 44]]",
            "spare_tracks = [[20, 1, 44]]",
            "layout.spare_tracks[0]: has 3 values, but should be [cylinder, head, sectors per \
             track, offset]",
        ),
        (
            "order = \"mapped\"",
            "order = \"mapped\"\nsparing = \"zone-end\"",
            "sparing = ",
            "layout.sparing: means nothing with order = \"mapped\", which says where every track is",
        ),
        (
            "order = \"mapped\"",
            "order = \"serpentine\"\nsparing = \"zone-end\"",
            "[[layout.groups]]",
            "layout.groups: means something with order = \"mapped\" only",
        ),
        (
            "capacity_sectors = 1900",
            "capacity_sectors = 1901",
            "capacity_sectors = 1901",
            "geometry.capacity_sectors: 1901 is more than the map has room for, which is 1900",
        ),
    ] {
        let text = mapped_example();
        assert_eq!(text.matches(from).count(), 1, "{from}");
        let text = text.replace(from, to);
        let line = text.lines().position(|line| line.contains(at)).unwrap() + 1;
        let found = Profile::from_toml("f", &text).unwrap_err();
        assert_eq!(found.to_string(), format!("f:{line}: {error}"));
    }
}

#[test]
fn the_documented_example_is_a_profile_with_every_key() {
    let profile = Profile::from_toml("profile.md", example()).unwrap_or_else(|e| panic!("{e}"));
    // Writing leaves out only keys with their default values.
    let written = profile.to_toml();
    for line in written.lines() {
        let key = line.split(" = ").next().unwrap();
        assert!(example().contains(key), "{key} is not documented");
    }
    assert_eq!(Profile::from_toml("written", &written).unwrap(), profile);
    let layout = Layout::new(&profile);
    let moved = layout.locate(Lba::new(174));
    assert_eq!(
        (moved.track.cylinder.0, moved.track.head.0, moved.slot),
        (7, 0, 47)
    );
    assert_eq!(
        layout.slot(moved.track, 47),
        Some(Slot::Data(Lba::new(174)))
    );
}

/// The example with one change.
fn changed(from: &str, to: &str) -> Result<Profile, String> {
    let times = example().matches(from).count();
    assert_eq!(times, 1, "{from} occurs {times} times");
    Profile::from_toml("drive.toml", &example().replace(from, to)).map_err(|error| {
        // The line is checked on its own.
        let text = error.to_string();
        let line = error
            .line()
            .map_or(String::new(), |line| format!("{line}:"));
        text.replacen(&format!("drive.toml:{line} "), "", 1)
    })
}

#[test]
fn errors_say_what_is_allowed() {
    for (from, to, error) in [
        (
            "rpm = 7200",
            "rpm = -7200",
            "rotation.rpm: -7200 is out of range; allowed is 60 to 60000",
        ),
        (
            "slips_use_spares = true",
            "slips_use_spares = false",
            "layout.slips_use_spares: false means something with sparing = \"cylinder-end\", \
             \"cylinder-front\" or \"zone-end\" only",
        ),
        (
            "rpm = 7200",
            "rpm = \"fast\"",
            "rotation.rpm: is the string \"fast\", but should be a number from 60 to 60000",
        ),
        (
            "rpm = 7200",
            "",
            "rotation.rpm: missing; give a number from 60 to 60000",
        ),
        (
            "rpm = 7200",
            "rmp = 7200",
            "rotation.rmp: unknown key; did you mean `rpm`? Allowed here: rpm",
        ),
        (
            "segments = 4\n",
            "segments = 4\nsegmnets = 5\n",
            "cache.segmnets: unknown key; did you mean `segments`?",
        ),
        (
            "[noise]",
            "[nosie]",
            "nosie: unknown key; did you mean `noise`? Allowed here: access, bus, cache, geometry, layout, model, \
             name, noise, overhead, provenance, queue, rotation, seek, trust",
        ),
        (
            "offset = 3",
            "ofset = 3",
            "layout.zones[0].ofset: unknown key; did you mean `offset`? Allowed here: cylinder_skew, \
             cylinders, group_skew, offset, remaps, reserved, sectors_per_track, slips, spares, track_skew, tracks_per_surface",
        ),
        (
            "cylinders = [12, 23]",
            "cylinders = [11, 23]",
            "layout.zones[1].cylinders: [11, 23] overlaps zone 0, which ends at cylinder 11; zones \
             are listed in order and share no cylinder",
        ),
        (
            "cylinders = [12, 23]",
            "cylinders = [23, 12]",
            "layout.zones[1].cylinders: [23, 12] is not allowed; allowed is [first, last] with the \
             first not above the last",
        ),
        (
            "cylinders = [12, 23]",
            "cylinders = [12, 24]",
            "layout.zones[1].cylinders: [12, 24] is not allowed; allowed is cylinders 0 to 23 \
             (geometry.cylinders = 24)",
        ),
        (
            "cylinders = [12, 23]",
            "cylinders = [12]",
            "layout.zones[1].cylinders: has 1 value, but should be [first, last], two cylinders",
        ),
        (
            "capacity_sectors = 1900",
            "capacity_sectors = 2000",
            "geometry.capacity_sectors: 2000 is more than the zones have room for, which is 1980",
        ),
        (
            "head_switch = \"0.8ms\"",
            "head_switch = 0.8",
            "seek.head_switch: is the number 0.8, but should be a duration with its unit, such as \
             \"30ms\"",
        ),
        (
            "head_switch = \"0.8ms\"",
            "head_switch = \"0.8\"",
            "seek.head_switch: \"0.8\": a duration needs its unit: ns, us, ms, s, m, h or d, as in \
             30ms",
        ),
        (
            "head_switch = \"0.8ms\"",
            "head_switch = \"-0.8ms\"",
            "seek.head_switch: \"-0.8ms\": no number at the start; write for example 30ms or 4KiB",
        ),
        (
            "head_switch = \"0.8ms\"",
            "head_switch = \"8s\"",
            "seek.head_switch: 8s is not allowed; allowed is 0 to 4s",
        ),
        (
            "read_sector = \"1.7us\"",
            "read_sector = \"100.000001ms\"",
            "bus.read_sector: 100.000001ms is not allowed; allowed is 0 to 100ms",
        ),
        (
            "head_switch = \"0.8ms\"",
            "head_switch = \"213503d\"",
            "seek.head_switch: \"213503d\": a duration is at most 3650d",
        ),
        (
            "sector = \"512B\"\n# Bytes in a sector on",
            "sector = \"520B\"\n# Bytes in a sector on",
            "geometry.sector: 520B is not allowed; allowed is 256B, 512B or 4KiB",
        ),
        (
            "physical_sector = \"512B\"",
            "physical_sector = \"4KiB\"",
            "layout.zones[1].sectors_per_track: 36 is not allowed; allowed is a multiple of 8, since \
             sectors on the medium hold so many",
        ),
        (
            "order = \"surface-serpentine\"\n#",
            "order = \"spiral\"\n#",
            "layout.order: \"spiral\" is not allowed; allowed are \"cylinder-first\", \"serpentine\", \
             \"serpentine-throughout\", \"surface-serpentine\", \"mapped\"",
        ),
        (
            "order = \"surface-serpentine\"\n#",
            "order = \"serpentine\"\n#",
            "layout.tracks_per_surface: means something with order = \"surface-serpentine\" only",
        ),
        (
            "slips = [100, 101, 700]",
            "slips = [101, 100]",
            "layout.zones[0].slips: 101, 100 is not allowed; allowed is ascending numbers, each once",
        ),
        (
            "slips = [100, 101, 700]",
            "slips = [1, 2, 3, 4, 5]",
            "layout.zones[0].slips: 5 slips from 1 on share an area of 384 sectors with 4 spares; \
             there cannot be more slips than spares",
        ),
        (
            "remaps = [[200, 383]]",
            "remaps = [[200, 201]]",
            "layout.zones[0].remaps: [200, 201] is not allowed; allowed is a move to a spare place",
        ),
        (
            "remaps = [[200, 383]]",
            "remaps = [[200, 383], [383, 382]]",
            "layout.zones[0].remaps: pairs [from, to] are listed in ascending order of from, and no place \
             occurs twice",
        ),
        (
            "track_skew = 7",
            "track_skew = \"7\"",
            "layout.zones[0].track_skew: is the string \"7\", but should be a number of sectors, or a \
             part of a turn in quotes, as \"0.14 turns\"",
        ),
        (
            "group_skew = \"0.3 turns\"",
            "group_skew = \"1.3 turns\"",
            "layout.zones[0].group_skew: 1.3 is not allowed; allowed is 0 to 1",
        ),
        (
            "[8, 1500.5]",
            "[3, 1500.5]",
            "seek.read.table_us: 4, 3 is not allowed; allowed is ascending distances, each once",
        ),
        (
            "[8, 1500.5]",
            "[8, -1500.5]",
            "seek.read.table_us[3][1]: -1500.5 is out of range; allowed is 0 to 4000000",
        ),
        (
            "segment_sectors = 96\n",
            "segment_sectors = 99999\n",
            "cache.segment_sectors: 99999 is not allowed; allowed is 1 to 1900",
        ),
        (
            "enabled = true",
            "enabled = \"yes\"",
            "cache.enabled: is the string \"yes\", but should be true or false",
        ),
        (
            "enabled = true",
            "enabled = false",
            "cache.read_ahead: needs cache.enabled = true",
        ),
        (
            "write_low_water = 0.25",
            "write_low_water = nan",
            "cache.write_low_water: NaN is not allowed; allowed is 0 to 1",
        ),
        (
            "depth = 32",
            "depth = 0",
            "queue.depth: 0 is not allowed; allowed is 1 to 256",
        ),
        (
            "policy = \"sptf\"",
            "policy = \"fifo\"",
            "queue.margin: means something with policy = \"sptf\" only",
        ),
        (
            "ncq_prio = true",
            "ncq_prio = \"high\"",
            "queue.ncq_prio: is the string \"high\", but should be true or false",
        ),
        (
            "oldest_every = 16",
            "oldest_every = 65536",
            "queue.oldest_every: 65536 is not allowed; allowed is 0 to 65535",
        ),
        (
            "oldest_every = 16",
            "oldest_every = 0",
            "queue.oldest_age: is for oldest_every of 1 and more",
        ),
        (
            "oldest_age = \"50ms\"",
            "oldest_age = \"5s\"",
            "queue.oldest_age: 5s is not allowed; allowed is 0 to 4s",
        ),
        (
            "\"layout.zones\" = \"assumed\"",
            "\"layout.zones\" = \"guessed\"",
            "trust.layout.zones: \"guessed\" is not allowed; allowed are \"measured\", \
             \"learned\", \"read\", \"published\", \"derived\", \"calibrated\", \"assumed\"",
        ),
        (
            "room_sectors = 320",
            "room_sectors = 287",
            "cache.room_sectors: 287 is not allowed; allowed is 288 to 4294967295",
        ),
        (
            "second_read_ahead_min = 48",
            "second_read_ahead_min = 65536",
            "cache.second_read_ahead_min: 65536 is not allowed; allowed is 0 to 65535",
        ),
        (
            "name = \"example\"",
            "name = \"An Example\"",
            "name: \"An Example\" is not allowed; allowed is lower-case letters, digits, hyphens and points",
        ),
    ] {
        assert_eq!(changed(from, to).unwrap_err(), error);
    }
}

#[test]
fn an_error_names_file_line_and_key() {
    let line_of = |text: &str, what: &str| {
        let at = text.find(what).unwrap();
        text[..at].lines().count() + 1
    };
    for (from, to, what) in [
        ("rpm = 7200", "rpm = 1", "rpm = 1"),
        ("depth = 32", "depht = 32", "depht"),
        (
            "slips = [100, 101, 700]",
            "slips = [9999]",
            "slips = [9999]",
        ),
        (
            "cylinders = [12, 23]",
            "cylinders = [11, 23]",
            "cylinders = [11, 23]",
        ),
        // A missing key is reported at its table.
        ("rpm = 7200", "", "[rotation]"),
        ("name = \"example\"", "name = 'exam", "name = 'exam"),
        (
            "capacity_sectors = 1900",
            "capacity_sectors = 1e3",
            "capacity_sectors",
        ),
    ] {
        let text = example().replacen(from, to, 1);
        let error = Profile::from_toml("drive.toml", &text).unwrap_err();
        assert_eq!(error.line(), Some(line_of(&text, what)), "{to}: {error}");
        assert!(error.to_string().starts_with("drive.toml:"), "{error}");
    }
}

/// Cut off anywhere, a profile is an error or, where only keys that may be left out are gone, one.
#[test]
fn truncated_profiles_do_no_harm() {
    let text = example();
    let needed = text.find("3000]]").unwrap() + 6;
    for cut in (0..text.len()).filter(|&cut| text.is_char_boundary(cut)) {
        let result = Profile::from_toml("cut.toml", &text[..cut]);
        assert!(cut >= needed || result.is_err(), "cut at {cut}");
    }
}

/// A profile from another format or from a change must keep to the limits of the text form. Each of these profiles once
/// passed the check, or was written, and could not be read back.
#[test]
fn what_passes_the_check_reads_back() {
    let drive = by_name("atlas10k").unwrap();
    let far = |points: Vec<(u32, Nanos)>| {
        drive.with(|spec| {
            spec.seek.read = SeekCurve::Table {
                points,
                interpolation: Interpolation::Linear,
            };
        })
    };
    let ms = Nanos::from_millis(1);
    assert!(far(vec![(1, ms), (1 << 24, ms)]).is_ok());
    assert_eq!(
        far(vec![(1, ms), ((1 << 24) + 1, ms)])
            .unwrap_err()
            .to_string(),
        "seek.read.table_us: 16777217 is not allowed; allowed is distances of up to 16777216 \
         cylinders"
    );
    let error = drive.with(|spec| {
        spec.seek.read = SeekCurve::Hpl {
            split: (1 << 24) + 1,
            root_base: ms,
            root_factor: Nanos::ZERO,
            line_base: ms,
            line_factor: Nanos::ZERO,
            first: Vec::new(),
        };
    });
    assert_eq!(
        error.unwrap_err().to_string(),
        "seek.read.split: 16777217 is not allowed; allowed is 0 to 16777216"
    );
    let odd = drive
        .with(|spec| {
            spec.provenance = "One line,\r\nand \ranother.".to_string();
            let zone = &mut spec.layout.zones[0];
            zone.last_cylinder = (1 << 24) - 1;
            zone.spares = (1 << 32) + 1;
            spec.layout.zones.truncate(1);
            spec.geometry.cylinders = 1 << 24;
            spec.seek.read = SeekCurve::Constant(ms);
        })
        .unwrap();
    assert_eq!(Profile::from_toml("odd", &odd.to_toml()), Ok(odd));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let _ = Profile::from_toml("any", &text);
    }

    /// Any value in place of any other ends in a profile that works or in an error; a profile is
    /// read back as it was written.
    #[test]
    fn any_values_are_taken_or_refused(
        which in any::<prop::sample::Index>(),
        value in prop_oneof![
            any::<i64>().prop_map(|value| value.to_string()),
            any::<f64>().prop_map(|value| format!("{value:?}")),
            (0_i64..300).prop_map(|value| value.to_string()),
            prop::sample::select(vec![
                "true", "[]", "{}", "\"\"", "\"1ms\"", "\"0.5 turns\"", "[[1, 2]]", "[1, 2]", "1.5",
                "\"serpentine\"", "\"zone-end\"", "\"track-end\"", "\"tracks-at-zone-end\"",
                "\"cylinder-first\"", "\"disk-end\"", "\"cylinder-end\"", "\"cylinder-front\"",
                "\"serpentine-throughout\"", "\"-1ms\"", "1979-05-27",
            ]).prop_map(str::to_string),
        ],
    ) {
        let lines: Vec<&str> = example().lines().collect();
        let keys: Vec<usize> = (0..lines.len())
            .filter(|&at| !lines[at].starts_with('#') && lines[at].contains(" = "))
            .collect();
        let at = keys[which.index(keys.len())];
        let key = lines[at].split(" = ").next().unwrap();
        let changed = format!("{key} = {value}");
        let mut lines = lines;
        lines[at] = &changed;
        if let Ok(profile) = Profile::from_toml("any", &lines.join("\n")) {
            let again = Profile::from_toml("again", &profile.to_toml());
            prop_assert_eq!(again.as_ref(), Ok(&profile));
            let layout = Layout::new(&profile);
            crate::Mechanics::new(&profile);
            let last = Lba::new(layout.capacity().get() - 1);
            let place = layout.locate(last);
            prop_assert_eq!(layout.slot(place.track, place.slot), Some(Slot::Data(last)));
        }
    }
}
