//! Learned profiles against the drives that they were learned from.

use headtime_disk::profile::{Profile, SeekCurve, by_name};
use headtime_disk::{Layout, Mechanics};
use headtime_probe::extract::{Extraction, Held, Stage, skews};
use headtime_probe::{Modelled, Probe};
use headtime_sched::Op;
use headtime_units::{Lba, Nanos};

/// How well a drive was learned.
#[derive(Debug)]
struct Accuracy {
    /// The turn, in parts per million.
    turn_ppm: f64,
    /// Sectors of 10,000 whose track has the right length.
    lengths: u32,
    /// Sectors of 10,000 within 20 µs of their angle.
    angles: u32,
    /// The largest error of a skew, in sectors, of 10,000 sectors' zones.
    skew: f64,
    /// Borders of zones that are learned within a track, and all.
    borders: (usize, usize),
    /// Root mean square of the error of processing and seek, in microseconds, over the learned table.
    seeks: f64,
    held: Held,
    spent: Nanos,
}

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

/// Addresses from all over a drive.
fn addresses(capacity: u64) -> impl Iterator<Item = Lba> {
    let step = (capacity as f64 * 0.618_033_988_7) as u64 | 1;
    (0..10_000_u64).scan(capacity / 3, move |at, _| {
        *at = (*at + step) % capacity;
        Some(Lba::new(*at))
    })
}

fn compare(truth: &Profile, extraction: &Extraction, probe: &Modelled) -> Accuracy {
    let learned = extraction.profile().unwrap();
    let (ours, theirs) = (Layout::new(&learned), Layout::new(truth));
    assert_eq!(ours.capacity(), theirs.capacity());
    assert_eq!(learned.geometry.heads, truth.geometry.heads);
    let unit = probe.drive().turn().as_nanos() as f64;
    let (mut lengths, mut angles, mut skew) = (0, 0, 0.0);
    // Angle zero is where the probe began: the middle difference is no error.
    let zone_of = |profile: &Profile, lba: Lba| {
        let track = Layout::new(profile).locate(lba).track;
        let zones = &profile.layout.zones;
        let is_in = |zone: &&headtime_disk::profile::Zone| zone.last_cylinder >= track.cylinder.0;
        zones.iter().find(is_in).cloned().unwrap()
    };
    let mut offsets: Vec<i32> = addresses(probe.capacity().get())
        .map(|lba| {
            let bits = |layout: &Layout| layout.locate(lba).angle.to_bits();
            bits(&ours).wrapping_sub(bits(&theirs)) as i32
        })
        .collect();
    let first = offsets[0];
    offsets
        .iter_mut()
        .for_each(|offset| *offset = offset.wrapping_sub(first));
    let mut sorted = offsets.clone();
    sorted.sort_unstable();
    let middle = sorted[sorted.len() / 2];
    for (index, lba) in addresses(probe.capacity().get()).enumerate() {
        let of = |layout: &Layout| layout.sectors_per_track(layout.locate(lba).track).unwrap();
        let per_track = of(&theirs);
        lengths += u32::from(of(&ours) == per_track);
        let off = f64::from(offsets[index].wrapping_sub(middle)) / 4_294_967_296.0;
        angles += u32::from((off * unit).abs() < 20_000.0);
        if index % 50 == 0 {
            let (one, other) = (zone_of(&learned, lba), zone_of(truth, lba));
            for (one, other) in skews(&one).into_iter().zip(skews(&other)) {
                let off = (one - other) - (one - other).round();
                skew = f64::max(skew, off.abs() * f64::from(per_track));
            }
        }
    }
    let begins = |layout: &Layout| -> Vec<u64> {
        layout.zones().map(|zone| zone.extent.start.get()).collect()
    };
    let learned_begins = begins(&ours);
    let near = |begin: &&u64| {
        let per_track = theirs.zone_of(Lba::new(**begin)).sectors_per_track;
        learned_begins
            .iter()
            .any(|other| other.abs_diff(**begin) <= u64::from(per_track))
    };
    let all = begins(&theirs);
    let borders = (all.iter().filter(near).count(), all.len());
    let mechanics = Mechanics::new(truth);
    // What comes before the arm moves and what comes after the last sector have the same effect.
    let fixed = |profile: &Profile| {
        let overhead = &profile.overhead;
        let before = overhead.per_command + overhead.read_miss_after_read;
        (before + overhead.read_completion).as_nanos() as f64
    };
    let SeekCurve::Table { points, .. } = &learned.seek.read else {
        panic!("no table was learned");
    };
    let squares = points
        .iter()
        .filter(|(distance, _)| *distance < truth.geometry.cylinders);
    let squares = squares.map(|&(distance, time)| {
        let said = time.as_nanos() as f64 + fixed(&learned);
        let is = mechanics.seek(distance, Op::Read).as_nanos() as f64 + fixed(truth);
        (said - is) * (said - is)
    });
    let seeks = (squares.sum::<f64>() / points.len() as f64).sqrt() / 1_000.0;
    let turn = extraction.spindle.as_ref().unwrap().turn;
    Accuracy {
        turn_ppm: (turn / unit - 1.0) * 1e6,
        lengths,
        angles,
        skew,
        borders,
        seeks,
        held: extraction.held,
        spent: extraction.spent,
    }
}

/// What every drive must come to.
fn judge(name: &str, accuracy: &Accuracy, minutes: u64) {
    println!("{name}: {accuracy:?}");
    assert!(accuracy.turn_ppm.abs() < 5.0, "{name}: {accuracy:?}");
    assert!(accuracy.lengths >= 9_995, "{name}: {accuracy:?}");
    assert!(accuracy.angles >= 9_900, "{name}: {accuracy:?}");
    assert!(accuracy.skew < 1.0, "{name}: {accuracy:?}");
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
    let old = ["atlas10k", "cheetah9lp", "cheetah18lp", "ibm18es"];
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

/// One unit in a debug build, five in a release build.
fn seeds() -> std::ops::RangeInclusive<u64> {
    if cfg!(debug_assertions) { 1..=1 } else { 1..=5 }
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
    // Its tracks are not learned within 90 minutes: each look at the same track costs as many other reads.
    let truth = by_name("nearline-20tb").unwrap();
    let mut probe = Modelled::new(&truth, 3);
    let mut extraction = Extraction::new(&probe, 3);
    extraction.step(&mut probe).unwrap();
    assert_eq!(extraction.stage(), Stage::Tracks);
    let turn = extraction.spindle.as_ref().unwrap().turn;
    let unit = probe.drive().turn().as_nanos() as f64;
    assert!((turn / unit - 1.0).abs() < 5e-6, "{turn} of {unit}");
}
