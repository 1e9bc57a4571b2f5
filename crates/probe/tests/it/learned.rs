//! Learned profiles against the drives that they were learned from.

use headtime_disk::Layout;
use headtime_disk::profile::{Profile, by_name, plausible};
use headtime_lab::accuracy::{Accuracy, compare, remapped};
use headtime_probe::extract::{Extraction, Stage, Worth, skews};
use headtime_probe::{Layer, Modelled, Probe, ProbeError};
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos};

/// A drive like a shipped one, as a unit whose speed, seeks and processing vary.
fn varied(name: &str) -> Profile {
    let varied = |spec: &mut headtime_disk::Spec| {
        spec.noise.speed_ppm = 1_000;
        spec.noise.seek_sd = Nanos::from_micros(20);
        spec.noise.seek_sd_relative = 0.01;
        spec.noise.overhead_sd = Nanos::from_micros(30);
    };
    by_name(name).unwrap().with(varied).unwrap()
}

fn learn(truth: &Profile, seed: u64) -> (Extraction, Modelled) {
    let mut probe = Modelled::new(truth, seed);
    let mut extraction = Extraction::new(&probe, seed);
    extraction
        .run(&mut probe, Nanos::from_millis(90 * 60_000))
        .unwrap();
    assert_eq!(extraction.stage(), Stage::Done);
    (extraction, probe)
}

/// Judges the accuracy that every drive must reach.
fn judge(name: &str, accuracy: &Accuracy, minutes: u64) {
    println!("{name}: {accuracy:?}");
    let (heads, is) = accuracy.heads;
    assert_eq!(heads, is, "{name}: {accuracy:?}");
    assert!(accuracy.turn_ppm.abs() < 5.0, "{name}: {accuracy:?}");
    assert!(accuracy.lengths >= 9_995, "{name}: {accuracy:?}");
    assert!(accuracy.angles >= 9_900, "{name}: {accuracy:?}");
    assert!(accuracy.skewed >= 9_950, "{name}: {accuracy:?}");
    // Behind a scratch a zone may come apart into pieces shorter than a group.
    let grouped = if name.starts_with("nearline") {
        9_990
    } else {
        10_000
    };
    assert!(accuracy.grouped >= grouped, "{name}: {accuracy:?}");
    assert_eq!(
        accuracy.borders.0, accuracy.borders.1,
        "{name}: {accuracy:?}"
    );
    assert!(accuracy.seeks < 50.0, "{name}: {accuracy:?}");
    assert!(
        accuracy.held.within[0] >= accuracy.held.reads * 95 / 100,
        "{name}: {accuracy:?}"
    );
    assert!(
        accuracy.spent < Nanos::from_millis(minutes * 60_000),
        "{name}: {accuracy:?}"
    );
}

#[test]
fn the_atlas_10k_is_learned_with_cache_and_read_ahead_on() {
    let truth = by_name("atlas10k").unwrap();
    let (extraction, probe) = learn(&truth, 7);
    judge("atlas10k", &compare(&truth, &extraction, &probe), 10);
}

#[test]
fn shipped_drives_are_learned_as_units_that_vary() {
    let old = [
        "atlas10k",
        "cheetah9lp",
        "cheetah18lp",
        "ibm18es",
        "barracuda-st32171w",
    ];
    let old = old.map(|name| (name, 10));
    let new = [
        "wd5000aaks",
        "st3400620as",
        "barracuda-7200.10-160",
        "exos-x18",
    ];
    let new = new.map(|name| (name, 90));
    for (name, minutes) in old.into_iter().chain(new) {
        for seed in seeds() {
            let truth = varied(name);
            let (extraction, probe) = learn(&truth, seed);
            judge(name, &compare(&truth, &extraction, &probe), minutes);
        }
    }
}

#[test]
fn slips_that_the_spares_of_a_range_end_are_found_in_each_range() {
    // Of 857 ranges of six cylinders 9 have slips, which move only later sectors of the range.
    let truth = by_name("barracuda-st32171w").unwrap();
    let (extraction, _) = learn(&truth, 7);
    let slips = |profile: &Profile| -> Vec<usize> {
        let zones = profile.layout.zones.iter();
        zones.take(10).map(|zone| zone.slips.len()).collect()
    };
    let learned = extraction.profile().unwrap();
    assert_eq!(slips(&learned), slips(&truth));
}

#[test]
fn a_drive_whose_buffer_holds_hundreds_of_places_is_learned_too() {
    // 168 zones, tracks by head, groups by zone, slips and scratches: nothing on it is looked at twice.
    let truth = by_name("nearline-20tb").unwrap();
    for seed in seeds() {
        let (extraction, probe) = learn(&truth, seed);
        judge("nearline-20tb", &compare(&truth, &extraction, &probe), 90);
        let [ours, theirs] =
            [&extraction.profile().unwrap(), &truth].map(|of| of.layout.zones[0].by_head.clone());
        assert_eq!(ours, theirs);
    }
}

#[test]
fn the_same_drive_is_learned_where_its_sectors_are_those_of_the_host() {
    // Tracks of 300 to 650 sectors, which differ by one or two from head to head; a defect is one sector.
    let truth = by_name("nearline-20tb-4kn").unwrap();
    for seed in seeds() {
        let (extraction, probe) = learn(&truth, seed);
        judge(
            "nearline-20tb-4kn",
            &compare(&truth, &extraction, &probe),
            90,
        );
        let [ours, theirs] =
            [&extraction.profile().unwrap(), &truth].map(|of| of.layout.zones[0].by_head.clone());
        assert_eq!(ours, theirs);
    }
}

/// One unit in a debug build, five in a release build.
fn seeds() -> std::ops::RangeInclusive<u64> {
    if cfg!(debug_assertions) { 1..=1 } else { 1..=5 }
}

#[test]
fn a_drive_that_asks_for_its_bus_late_is_predicted_for_reads_of_any_size() {
    // The drive's bus is slower than its medium. The drive asks for the bus when three quarters of a read have
    // passed.
    let truth = varied("hp-c2247a");
    for seed in seeds() {
        let (extraction, probe) = learn(&truth, seed);
        judge("hp-c2247a", &compare(&truth, &extraction, &probe), 10);
        let transfer = extraction.transfer.unwrap();
        assert_eq!(transfer.water, truth.cache.read_high_water, "{transfer:?}");
        let learned = extraction.profile().unwrap();
        assert_eq!(learned.cache.read_high_water, truth.cache.read_high_water);
        let [ours, theirs] = [&learned, &truth].map(|of| of.seek.head_switch);
        // Tracks are turned so that reading across their ends loses no turn.
        let skew = least_skew(&truth);
        assert!(ours >= theirs && ours <= skew, "{ours} of {theirs}");
        assert_eq!(extraction.verdict().worth, Worth::Predicts);
    }
}

/// The least time that passes between two tracks of a cylinder.
fn least_skew(truth: &Profile) -> Nanos {
    let turn = truth.rotation.turn();
    let zones = truth.layout.zones.iter();
    let skews = zones.map(|zone| skews(zone)[0]);
    // Units differ in speed.
    Nanos::from_nanos((turn.as_nanos() as f64 * 1.01 * skews.fold(1.0, f64::min)) as u64)
}

/// Learns a drive for a number of minutes, which end within the walk over its tracks.
fn walked(truth: &Profile, minutes: u64) -> Extraction {
    let mut probe = Modelled::new(truth, 7);
    let mut extraction = Extraction::new(&probe, 7);
    let budget = Nanos::from_millis(minutes * 60_000);
    extraction.run(&mut probe, budget).unwrap();
    assert_eq!(extraction.stage(), Stage::Tracks);
    extraction
}

#[test]
fn a_drive_that_stays_on_a_track_behind_a_second_read_of_it_is_begun() {
    // The drive reads on to the end of the track before it answers. The buffer holds hundreds of places.
    let truth = plausible(125);
    assert!(truth.cache.second_read_ahead_min > 4_248);
    let walked = walked(&truth, 3).walked;
    assert!(walked.upto > truth.geometry.capacity.get() / 100);
    assert!(walked.zones.len() < 10, "{} zones", walked.zones.len());
    let slots: Vec<u64> = walked.zones[0].rows.iter().map(|row| row.slots).collect();
    assert!(slots.iter().all(|slots| *slots == 4_248), "{slots:?}");
}

#[test]
fn an_answer_at_the_wrong_time_makes_no_tracks_of_three_sectors() {
    // The second timed read hits the buffer, but is later than true hits.
    let truth = plausible(138);
    let walked = walked(&truth, 5).walked;
    assert!(walked.upto > 0);
    assert_eq!(walked.zones[0].rows[0].slots, 529);
}

/// Learns a drive and reads all of its sectors.
fn comb(truth: &Profile, seed: u64) -> (Extraction, Accuracy) {
    let mut probe = Modelled::new(truth, seed);
    let mut extraction = Extraction::new(&probe, seed).with_remaps();
    let long = Nanos::from_secs(12 * 3_600);
    extraction.run(&mut probe, long).unwrap();
    assert_eq!(extraction.stage(), Stage::Done);
    let accuracy = compare(truth, &extraction, &probe);
    (extraction, accuracy)
}

#[test]
fn sectors_that_are_elsewhere_are_found_where_all_are_read() {
    for seed in seeds() {
        let truth = remapped(&varied("cheetah18lp"), 12, seed);
        let (extraction, accuracy) = comb(&truth, seed);
        let combing = extraction.remaps.combing.as_ref().unwrap();
        assert!(extraction.remaps.is_complete(), "{combing:?}");
        assert_eq!(accuracy.remaps, (12, 12), "{accuracy:?}");
        assert_eq!(accuracy.not_remapped, 0, "{accuracy:?}");
        // The spares are more than a track at the end of each zone, so that every angle has a spare.
        assert_eq!(accuracy.placed, 12, "{accuracy:?}");
        assert_eq!(extraction.profile().unwrap().layout.remapped(), 12);
        let takes = combing.takes.unwrap();
        let said = combing.spent.as_secs_f64() / takes.as_secs_f64();
        assert!((0.8..1.25).contains(&said), "{combing:?}");
    }
}

#[test]
fn sectors_that_cannot_be_read_are_named_and_do_not_keep_those_elsewhere_from_being_found() {
    // The unreadable sectors are single ones, a row over a track's end, neighbours of remapped sectors, and the first
    // and last sector. The drive tries each sector of the row for two turns.
    let truth = remapped(&varied("cheetah18lp"), 12, 4);
    let (all_good, _) = comb(&truth, 4);
    let elsewhere: Vec<u64> = all_good
        .remaps
        .found
        .iter()
        .map(|found| found.lba)
        .collect();
    assert_eq!(elsewhere.len(), 12);
    assert!(all_good.remaps.unreadable.is_empty());
    let layout = Layout::new(&truth);
    let last = layout.capacity().get() - 1;
    let end_of = |lba: u64| layout.track_extent_of(Lba::new(lba)).end().get();
    let over_end = |lba: u64| Extent::at(end_of(lba) - 3, 7);
    let one = |lba: u64| Extent::at(lba, 1);
    let all = [
        vec![one(12_345_678)],
        vec![one(0), one(5_000_000), one(5_000_002), one(last)],
        vec![over_end(9_000_000), over_end(9_500_000)],
        vec![
            one(elsewhere[3] + 1),
            one(elsewhere[7] - 1),
            Extent::at(elsewhere[9] + 2, 30),
        ],
    ];
    for bad in all {
        let extraction = comb_spoiled(&truth, 4, &bad);
        let remaps = &extraction.remaps;
        let found: Vec<u64> = remaps.found.iter().map(|found| found.lba).collect();
        assert_eq!(found, elsewhere, "{bad:?}");
        let named = extraction.profile().unwrap().provenance.clone();
        for extent in bad {
            let start = extent.start.get();
            let name = match extent.len.get() {
                1 => format!("Sector {start} cannot be read."),
                len => format!("Sectors {start} to {} cannot be read.", start + len - 1),
            };
            assert!(named.contains(&name), "{name} in {named}");
        }
    }
}

/// Learns a drive, has it lose sectors, and reads all.
fn comb_spoiled(truth: &Profile, seed: u64, bad: &[Extent]) -> Extraction {
    let (extraction, mut probe) = learn(truth, seed);
    bad.iter().for_each(|extent| probe.spoil(*extent, 2));
    let mut extraction = extraction.with_remaps();
    let long = Nanos::from_secs(12 * 3_600);
    extraction.run(&mut probe, long).unwrap();
    assert_eq!(extraction.stage(), Stage::Done);
    assert!(extraction.remaps.is_complete(), "{:?}", extraction.remaps);
    assert_eq!(extraction.remaps.unreadable_together(), bad);
    extraction
}

#[test]
fn sectors_that_cannot_be_read_are_named_where_tracks_are_read_in_pieces() {
    let truth = varied("hp-c2247a");
    let layout = Layout::new(&truth);
    let end = layout.track_extent_of(Lba::new(1_000_000)).end().get();
    let bad = [Extent::at(300_000, 1), Extent::at(end - 2, 5)];
    let extraction = comb_spoiled(&truth, 4, &bad);
    assert!(extraction.remaps.found.is_empty());
}

#[test]
fn sectors_that_are_elsewhere_are_found_behind_a_bus_that_is_slower_than_the_medium() {
    // The first drive's buffer also holds sectors in front of a read, and the second drive's spares lie near.
    for (name, all) in [("hp-c2247a", 0), ("barracuda-st32171w", 12)] {
        let truth = remapped(&varied(name), 12, 5);
        let (_, accuracy) = comb(&truth, 5);
        let (found, is) = accuracy.remaps;
        assert_eq!(is, all, "{name}: {accuracy:?}");
        assert!(found + 1 >= all, "{name}: {accuracy:?}");
        assert_eq!(accuracy.not_remapped, 0, "{name}: {accuracy:?}");
    }
}

#[test]
fn what_is_learned_of_a_drive_is_the_same_with_many_sectors_elsewhere() {
    for name in ["cheetah18lp", "barracuda-st32171w"] {
        let plain = varied(name);
        let mut marks = [&plain, &remapped(&plain, 1_000, 3)].map(|truth| {
            let (extraction, probe) = learn(truth, 3);
            let found = compare(truth, &extraction, &probe);
            let profile = extraction.profile().unwrap();
            let zones = profile.layout.zones.iter();
            let tracks: Vec<_> = zones
                .map(|zone| (zone.cylinders(), zone.sectors_per_track, zone.slips.len()))
                .collect();
            // Of 10,000 sectors a few are elsewhere.
            assert!(found.angles >= 9_920, "{name}: {found:?}");
            (found.lengths, found.borders, found.heads, tracks)
        });
        let cylinders = |tracks: &mut Vec<(u32, u32, usize)>| {
            // Between zones seeks say how many there are, which varies.
            tracks.retain(|(cylinders, ..)| *cylinders > 1);
        };
        marks.iter_mut().for_each(|marks| cylinders(&mut marks.3));
        assert_eq!(marks[0], marks[1], "{name}");
    }
}

#[test]
fn a_sector_that_is_met_and_is_elsewhere_is_told_without_reading_all() {
    // The number is so large that the walk or test reads meet some remapped sectors.
    let truth = remapped(&varied("cheetah18lp"), 3_000, 3);
    let (extraction, probe) = learn(&truth, 3);
    let found = compare(&truth, &extraction, &probe);
    assert!(extraction.remaps.combing.is_none());
    assert!(found.remaps.0 >= 3, "{found:?}");
    assert!(found.placed >= 3, "{found:?}");
    let remapped = extraction.profile().unwrap().layout.remapped();
    assert!(remapped >= 3, "{remapped}");
}

/// Notes which single sectors are read.
struct Noting {
    drive: Modelled,
    read: Vec<u64>,
}

impl Layer for Noting {
    fn under(&self) -> &dyn Probe {
        &self.drive
    }

    fn under_mut(&mut self) -> &mut dyn Probe {
        &mut self.drive
    }

    fn send(&mut self, tag: u16, op: Op, extent: Extent) -> Result<(), ProbeError> {
        self.read.push(extent.start.get());
        Probe::send(&mut self.drive, tag, op, extent)
    }
}

/// The drive with eight sectors elsewhere, which share a sector of the medium with `lba`. `None` if the eight are not
/// on one track.
fn with_eight_elsewhere(plain: &Profile, lba: u64) -> Option<Profile> {
    let layout = Layout::new(plain);
    let (zone, first) = layout.home_of(Lba::new(lba / 8 * 8)).unwrap();
    let is_spare = Layout::zone_spares(plain, &plain.layout.zones[zone]);
    // A sector of the medium is on one track.
    let track = |place: u64| layout.place_in_zone(zone, place).map(|place| place.track);
    let spares = (first + 8..layout.places_in_zone(zone)).filter(|place| is_spare(*place));
    let spares = spares.skip_while(|place| track(*place) != track(place + 7));
    let remaps: Vec<(u64, u64)> = (first..first + 8).zip(spares).collect();
    let remap = |spec: &mut headtime_disk::Spec| spec.layout.zones[zone].remaps = remaps;
    (track(first) == track(first + 7)).then(|| plain.with(remap).unwrap())
}

#[test]
fn eight_sectors_that_are_elsewhere_together_begin_no_row_where_the_walk_lands_on_one() {
    let plain = by_name("cheetah18lp").unwrap();
    let mut noting = Noting {
        drive: Modelled::new(&plain, 3),
        read: Vec::new(),
    };
    let mut extraction = Extraction::new(&noting, 3);
    while extraction.stage() <= Stage::Tracks {
        extraction.step(&mut noting).unwrap();
    }
    let rows = |extraction: &Extraction| -> usize {
        extraction
            .walked
            .zones
            .iter()
            .map(|zone| zone.rows.len())
            .sum()
    };
    let rows_of_plain = rows(&extraction);
    // Reads past the first zones. Reads that clear the buffer go anywhere.
    let capacity = plain.geometry.capacity.get();
    let looks: Vec<u64> = noting
        .read
        .into_iter()
        .filter(|lba| *lba > capacity / 4)
        .collect();
    let (mut met, mut most) = (0, 0);
    for look in looks.iter().step_by(looks.len() / 300) {
        let Some(truth) = with_eight_elsewhere(&plain, *look) else {
            continue;
        };
        let mut probe = Modelled::new(&truth, 3);
        let mut extraction = Extraction::new(&probe, 3);
        while extraction.stage() <= Stage::Tracks {
            extraction.step(&mut probe).unwrap();
        }
        let odd = &extraction.walked.odd;
        if odd.iter().any(|odd| odd / 8 == look / 8) {
            met += 1;
            most = most.max(rows(&extraction));
        }
    }
    assert!(met >= 20, "{met}");
    // A different timed read after the sector may add one row. As rows of their own the sectors made up to 175.
    assert!(most <= rows_of_plain + 1, "{most} of {rows_of_plain}");
}

#[test]
fn cylinders_that_are_left_out_between_zones_are_found() {
    let truth = by_name("cheetah9lp").unwrap();
    let (extraction, _) = learn(&truth, 3);
    let first = |profile: &Profile| -> Vec<u32> {
        let zones = profile.layout.zones.iter();
        zones.map(|zone| zone.first_cylinder).collect()
    };
    assert_eq!(first(&extraction.profile().unwrap()), first(&truth));
}

#[test]
fn the_turn_of_a_drive_whose_buffer_holds_hundreds_of_places_is_found() {
    // The tracks take longer than 90 minutes, since each timed read of the same track costs as many other reads.
    let truth = by_name("nearline-20tb").unwrap();
    let mut probe = Modelled::new(&truth, 3);
    let mut extraction = Extraction::new(&probe, 3);
    extraction.step(&mut probe).unwrap();
    assert_eq!(extraction.stage(), Stage::Tracks);
    let turn = extraction.spindle.as_ref().unwrap().turn;
    let unit = probe.drive().turn().as_nanos() as f64;
    assert!((turn / unit - 1.0).abs() < 5e-6, "{turn} of {unit}");
}

/// Seeds of drives, each with a feature that shipped drives lack.
const PLAUSIBLE: [(u64, &str); 5] = [
    (
        22,
        "a turn at the next surface that is not that of the next cylinder",
    ),
    (
        25,
        "skews that are those of what repeats, not of what was seen first",
    ),
    (32, "the same, and groups that zones cut short"),
    (
        74,
        "behind two reads of a track it reads on before it does anything else",
    ),
    (
        119,
        "cylinders that are turned by twice as much as tracks, as if a track were passed over; spares by range",
    ),
];

#[test]
fn drives_that_could_have_been_are_learned_row_by_row() {
    for (seed, has) in PLAUSIBLE {
        let truth = plausible(seed);
        let (extraction, probe) = learn(&truth, 7);
        judge(has, &compare(&truth, &extraction, &probe), 90);
    }
}

#[test]
fn tracks_are_found_where_a_hit_is_as_late_as_a_miss() {
    // After each read the drive reads on for up to a third of a turn before any other work, hits included.
    let truth = plausible(2);
    let (extraction, probe) = learn(&truth, 7);
    let accuracy = compare(&truth, &extraction, &probe);
    assert!(extraction.spindle.unwrap().linger > 0.0);
    assert_eq!(accuracy.heads, (20, 20), "{accuracy:?}");
    assert_eq!(accuracy.lengths, 10_000, "{accuracy:?}");
    assert!(accuracy.angles >= 9_900, "{accuracy:?}");
}
