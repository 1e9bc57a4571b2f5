use super::*;
use crate::extract::holdout;
use crate::extract::known::{Mark, Spindle};
use crate::extract::queueing::Leaves;
use crate::extract::turns::part;
use crate::{Guarded, Modelled, ProbeError};
use headtime_disk::Profile;
use headtime_disk::profile::{
    FirmwarePolicy, Order, Preseek, ReadAhead, RequestedData, WriteBack, by_name, shipped,
};
use headtime_disk::{Layout, Mechanics};
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// What is known of a drive when its electronics are asked for: here the truth.
struct Given {
    layout: Layout,
    mechanics: Mechanics,
    spindle: Spindle,
    scratch: Option<Extent>,
    unit: u64,
}

impl Given {
    fn of(truth: &Profile, probe: &Modelled) -> Given {
        let layout = Layout::new(truth);
        let turn = probe.drive().turn().as_nanos() as f64;
        let tail = (truth.bus.sector(true) + truth.overhead.read_completion).as_nanos() as f64;
        let capacity = truth.geometry.capacity.get();
        let place = |index: u64| {
            let lba = Lba::new(capacity / 257 * (index + 1));
            let run = layout.run(lba);
            let angle = f64::from(layout.locate(lba).angle.to_bits()) / 4_294_967_296.0;
            Mark {
                lba: lba.get(),
                angle: part(angle + 1.0 / f64::from(run.sectors_per_track) + tail / turn),
            }
        };
        let spindle = Spindle {
            turn,
            astray: 0.0,
            places: (0..256).map(place).collect(),
            hit_below: turn / 8.0,
            linger: 0.0,
        };
        Given {
            mechanics: Mechanics::new(truth),
            layout,
            spindle,
            scratch: Some(Extent::at(capacity / 2, capacity / 6)),
            unit: u64::from(truth.geometry.sectors_per_physical()),
        }
    }

    fn ground(&self) -> Ground<'_> {
        Ground {
            layout: &self.layout,
            mechanics: &self.mechanics,
            turn: self.spindle.turn,
            scratch: self.scratch,
            unit: self.unit,
        }
    }
}

/// What is learned of a drive whose layout is known.
fn learn(truth: &Profile, seed: u64) -> (Electronics, Modelled, Nanos) {
    let mut probe = Modelled::new(truth, seed);
    let given = Given::of(truth, &probe);
    let mut electronics = Electronics::default();
    let begin = probe.now();
    let mut number = 0;
    loop {
        number += 1;
        // What is written outside fails.
        let mut guarded = Guarded::new(&mut probe, given.scratch);
        let mut bench = Bench::new(&mut guarded, seed ^ (number << 32));
        bench.lock(&given.spindle).unwrap();
        let more = electronics.step(&mut bench, &given.ground()).unwrap();
        if !more {
            break;
        }
    }
    let spent = probe.now() - begin;
    (electronics, probe, spent)
}

/// What the times of reads of whole tracks tell.
fn zero_latency(truth: &Profile) -> Option<bool> {
    let mut probe = Modelled::new(truth, 5);
    let given = Given::of(truth, &probe);
    let mut bench = Bench::new(&mut probe, 5);
    bench.lock(&given.spindle).unwrap();
    let predictor = holdout::Predictor::new(truth, given.spindle.turn);
    holdout::zero_latency(&mut bench, &predictor).unwrap()
}

/// How a key came out.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Right,
    Unknown,
    Wrong,
}

/// A key, how it came out, and what was said of it.
type Judged = (&'static str, Outcome, String);

fn judge<T: std::fmt::Debug>(
    key: &'static str,
    said: Option<T>,
    is: impl std::fmt::Debug,
    right: impl Fn(&T) -> bool,
) -> Judged {
    let outcome = match &said {
        None => Outcome::Unknown,
        Some(said) if right(said) => Outcome::Right,
        Some(_) => Outcome::Wrong,
    };
    (key, outcome, format!("{said:?} of {is:?}"))
}

/// What is learned against what is true. Values that come to the same in every answer of the drive are the same.
fn compare(truth: &Profile, e: &Electronics) -> Vec<Judged> {
    let c = &truth.cache;
    let reads = u64::from(c.segments - u32::from(c.dedicated_write_segment));
    let size = u64::from(c.segment_sectors);
    // Where a cylinder's tracks do not follow each other, it ends with the track.
    let alone =
        truth.geometry.heads == 1 || matches!(truth.layout.order, Order::SurfaceSerpentine { .. });
    let ends = |kind: ReadAhead| match kind {
        ReadAhead::CylinderEnd if alone => ReadAhead::TrackEnd,
        other => other,
    };
    let most = u64::from(c.read_ahead_max);
    let most = match c.requested_data {
        RequestedData::Kept => most.min(size - 1),
        _ => most,
    };
    let room = u64::from(c.room_sectors);
    let (is_sptf, margin, age) = match truth.queue.policy {
        FirmwarePolicy::Sptf { margin, age_cap } => (
            true,
            margin.as_nanos() as f64,
            age_cap.map_or(0.0, |cap| cap.as_nanos() as f64),
        ),
        FirmwarePolicy::Fifo => (false, 0.0, 0.0),
    };
    let cap = truth.queue.stream_cap.as_nanos() as f64;
    let within = |said: u64, is: u64, part: f64| said.abs_diff(is) as f64 <= part * is as f64;
    // The model does the same for both.
    let same = |kind: WriteBack| match kind {
        WriteBack::Appending => WriteBack::Flushed,
        other => other,
    };
    let writable = u64::from(if c.dedicated_write_segment {
        1
    } else {
        c.write_segments
    });
    let knows = |key: &str| e.told.knows(key);
    vec![
        judge("segments (read)", e.segments.count, reads, |said| {
            *said == reads
        }),
        judge("segment_sectors", e.ahead.segment, size, |said| {
            *said == size
        }),
        judge(
            "room_sectors",
            knows("cache.room_sectors").then_some(e.segments.room.unwrap_or(0)),
            room,
            |said| within(*said, room, 0.02),
        ),
        judge("read_ahead", e.ahead.kind, c.read_ahead, |said| {
            ends(*said) == ends(c.read_ahead)
        }),
        judge("read_ahead_max", e.ahead.most, most, |said| *said == most),
        judge("read_ahead_min", e.ahead.least, c.read_ahead_min, |said| {
            // The sector that is passing is read to its end in any case.
            *said == u64::from(c.read_ahead_min) || (*said).max(u64::from(c.read_ahead_min)) == 1
        }),
        judge(
            "second_read_ahead_min",
            e.ahead.second,
            c.second_read_ahead_min,
            |said| *said == u64::from(c.second_read_ahead_min),
        ),
        judge(
            "requested_data",
            e.ahead.requested,
            c.requested_data,
            |said| *said == c.requested_data,
        ),
        judge(
            "read_ahead_on_idle_hit",
            e.ahead.on_idle_hit,
            c.read_ahead_on_idle_hit,
            |said| *said == c.read_ahead_on_idle_hit,
        ),
        judge(
            "read_free_sectors",
            e.ahead.free_sectors,
            c.read_free_sectors,
            |said| *said == c.read_free_sectors,
        ),
        judge(
            "policy",
            knows("queue.policy").then_some(e.queueing.by_position == Some(true)),
            truth.queue.policy,
            |said| *said == is_sptf,
        ),
        judge(
            "preseek",
            knows("queue.preseek")
                .then_some(e.queueing.leaves)
                .flatten(),
            truth.queue.preseek,
            |said| {
                let bus = truth.bus.sector(true) + truth.overhead.read_completion;
                let per_track = truth.layout.sectors_per_track()[0].max(1);
                // Nothing passes until the data are sent.
                let slot = truth.rotation.turn() / u64::from(per_track);
                let at_once = bus < slot.max(Nanos::from_micros(25));
                match said {
                    Leaves::AtMediaEnd { .. } => {
                        at_once || truth.queue.preseek == Preseek::AtMediaEnd
                    }
                    Leaves::Later { after, .. } => {
                        let off = (after - bus.as_nanos() as f64).abs();
                        truth.queue.preseek != Preseek::AtMediaEnd && off < 40e3
                    }
                }
            },
        ),
        judge("margin (80 us)", e.queueing.margin, margin, |said| {
            (*said - margin).abs() < 80e3
        }),
        judge(
            "age_cap (20 ms)",
            knows("queue.age_cap").then_some(e.queueing.age_cap.unwrap_or(0.0)),
            age,
            |said| (*said - age).abs() < 20e6,
        ),
        judge("stream_cap (20 ms)", e.queueing.stream_cap, cap, |said| {
            (*said - cap).abs() < 20e6
        }),
        judge(
            "sneaky_full_read_hits",
            e.queueing.hits_pass,
            c.sneaky_full_read_hits,
            |said| *said == c.sneaky_full_read_hits,
        ),
        judge(
            "write_back",
            e.write_cache.write_back,
            c.write_back,
            |said| same(*said) == same(c.write_back),
        ),
        judge(
            "write_segments",
            e.write_cache.write_segments,
            c.write_segments,
            |said| said.abs_diff(writable) as f64 <= 0.1 * writable as f64,
        ),
        judge(
            "destage",
            knows("cache.destage").then_some(e.write_cache.destage),
            c.destage,
            |said| *said == Some(c.destage),
        ),
        judge(
            "destage_runs (10 %)",
            knows("cache.destage_runs").then_some(e.write_cache.runs.unwrap_or(0)),
            c.destage_runs,
            |said| within(*said, u64::from(c.destage_runs), 0.1),
        ),
        judge(
            "destage_delay (6 ms)",
            e.write_cache.delay,
            c.destage_delay,
            |said| (said - c.destage_delay.as_nanos() as f64).abs() < 6e6,
        ),
        judge(
            "destage_age (30 ms)",
            e.write_cache.age,
            c.destage_age,
            |said| (said - c.destage_age.as_nanos() as f64).abs() < 30e6,
        ),
        judge(
            "read_hits_on_write_data",
            e.write_cache.serves_reads,
            c.read_hits_on_write_data,
            |said| *said == c.read_hits_on_write_data,
        ),
        judge(
            "dedicated_write_segment",
            e.write_cache.dedicated,
            c.dedicated_write_segment,
            |said| *said == c.dedicated_write_segment,
        ),
        judge(
            "zero_latency_read",
            zero_latency(truth).or(e.ahead.around),
            truth.access.zero_latency_read,
            |said| *said == truth.access.zero_latency_read,
        ),
    ]
}

/// How many keys came out how, by key.
type Counts = BTreeMap<&'static str, [u32; 3]>;

/// Counts how keys come out on drives; the longest times, and what was wrong.
fn count(names: impl Iterator<Item = String>) -> (Counts, Vec<(Nanos, String)>, Vec<String>) {
    let mut counts = Counts::new();
    let mut times: Vec<(Nanos, String)> = Vec::new();
    let mut wrong = Vec::new();
    for name in names {
        let truth = by_name(&name).unwrap();
        let (electronics, _, spent) = learn(&truth, 5);
        times.push((spent, name.clone()));
        for (key, outcome, said) in compare(&truth, &electronics) {
            counts.entry(key).or_default()[outcome as usize] += 1;
            if outcome == Outcome::Wrong {
                wrong.push(format!("{name}: {key}: {said}"));
            }
        }
        let told = &electronics.told;
        for key in Electronics::keys() {
            let unknown = told.unknown.iter().filter(|(other, _)| other == key);
            let said = usize::from(told.knows(key)) + unknown.count();
            assert!(said == 1, "{name}: {key} is said {said} times");
        }
    }
    times.sort();
    times.reverse();
    (counts, times, wrong)
}

fn table(names: impl Iterator<Item = String>) {
    let (counts, times, wrong) = count(names);
    println!("{:<26}{:>7}{:>9}{:>7}", "", "right", "unknown", "wrong");
    for (key, [right, unknown, wrong]) in counts {
        println!("{key:<26}{right:>7}{unknown:>9}{wrong:>7}");
    }
    println!("longest: {:?}\n{wrong:#?}", &times[..6]);
}

fn shipped_names() -> impl Iterator<Item = String> {
    shipped().iter().map(|shipped| shipped.name.to_owned())
}

#[test]
#[ignore = "prints a table"]
fn table_of_shipped_drives() {
    table(shipped_names());
}

#[test]
#[ignore = "prints a table"]
fn table_of_drawn_drives() {
    table((0..50).map(|seed| format!("plausible-{seed}")));
}

#[test]
#[ignore = "prints a table"]
fn table_of_held_out_drives() {
    for seeds in [50..150, 350..450] {
        println!("{seeds:?}");
        table(seeds.map(|seed| format!("plausible-{seed}")));
    }
}

#[test]
fn segments_and_reading_ahead_of_shipped_drives_are_found_or_said_to_be_unknown() {
    let (counts, times, wrong) = count(shipped_names());
    assert_eq!(wrong, Vec::<String>::new());
    for key in [
        "segments (read)",
        "segment_sectors",
        "read_ahead",
        "read_free_sectors",
    ] {
        assert_eq!(counts[key], [11, 0, 0], "{key}");
    }
    for (spent, name) in times {
        let most = if by_name(&name).unwrap().geometry.cylinders > 400_000 {
            600
        } else {
            120
        };
        assert!(spent < Nanos::from_secs(most), "{name}: {spent}");
    }
}

#[test]
fn the_order_of_waiting_commands_of_shipped_drives_is_found() {
    for name in ["wd5000aaks", "exos-x18", "barracuda-7200.10-160"] {
        let truth = by_name(name).unwrap();
        let (electronics, _, _) = learn(&truth, 11);
        for (key, outcome, said) in compare(&truth, &electronics) {
            if [
                "policy",
                "margin (80 us)",
                "age_cap (20 ms)",
                "stream_cap (20 ms)",
            ]
            .contains(&key)
            {
                assert_eq!(outcome, Outcome::Right, "{name}: {key}: {said}");
            }
        }
    }
}

#[test]
fn a_drive_that_serves_commands_in_their_order_is_said_to() {
    let fifo = |spec: &mut Spec| spec.queue.policy = FirmwarePolicy::Fifo;
    let truth = by_name("wd5000aaks").unwrap().with(fifo).unwrap();
    let (electronics, _, _) = learn(&truth, 5);
    assert_eq!(electronics.queueing.orders, Some(false));
    assert!(electronics.told.knows("queue.policy"));
    assert!(!electronics.told.knows("queue.age_cap"));
}

#[test]
fn a_drive_in_which_no_command_is_too_old_is_said_to_have_no_cap() {
    let never = |spec: &mut Spec| {
        let margin = Nanos::from_micros(600);
        spec.queue.policy = FirmwarePolicy::Sptf {
            margin,
            age_cap: None,
        };
        spec.queue.stream_cap = Nanos::from_millis(300);
    };
    let truth = by_name("exos-x18").unwrap().with(never).unwrap();
    let (electronics, _, _) = learn(&truth, 5);
    for (key, outcome, said) in compare(&truth, &electronics) {
        if ["margin (80 us)", "age_cap (20 ms)", "stream_cap (20 ms)"].contains(&key) {
            assert_eq!(outcome, Outcome::Right, "{key}: {said}");
        }
    }
}

#[test]
fn the_write_cache_of_shipped_drives_is_found() {
    for name in ["wd5000aaks", "exos-x18", "atlas10k", "hp-c2247a"] {
        let truth = by_name(name).unwrap();
        let (electronics, _, _) = learn(&truth, 23);
        let judged = compare(&truth, &electronics);
        let is = |key: &str| judged.iter().find(|(other, _, _)| *other == key).unwrap();
        for key in ["write_back", "dedicated_write_segment"] {
            assert_eq!(is(key).1, Outcome::Right, "{name}: {:?}", is(key));
        }
        let full = truth.cache.write_back == WriteBack::Full;
        let expected = if full {
            Outcome::Right
        } else {
            Outcome::Unknown
        };
        for key in [
            "write_segments",
            "destage",
            "destage_runs (10 %)",
            "destage_delay (6 ms)",
            "destage_age (30 ms)",
        ] {
            assert_eq!(is(key).1, expected, "{name}: {:?}", is(key));
        }
    }
}

#[test]
fn without_a_scratch_range_nothing_is_written_and_the_write_cache_is_not_known() {
    let truth = by_name("wd5000aaks").unwrap();
    let mut probe = Modelled::new(&truth, 5);
    probe.record_written();
    let mut given = Given::of(&truth, &probe);
    given.scratch = None;
    let mut electronics = Electronics::default();
    for number in 0.. {
        let mut bench = Bench::new(&mut probe, number);
        bench.lock(&given.spindle).unwrap();
        if !electronics.step(&mut bench, &given.ground()).unwrap() {
            break;
        }
    }
    assert_eq!(probe.take_written(), []);
    for key in write_cache::KEYS {
        let why = electronics
            .told
            .unknown
            .iter()
            .find(|(other, _)| other == key);
        assert_eq!(
            why.unwrap().1,
            "nothing may be written without a scratch range",
            "{key}"
        );
    }
    assert_eq!(electronics.write_cache, WriteCache::default());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn writes_stay_in_any_scratch_range(
        name in prop::sample::select(&["wd5000aaks", "hp-c2247a", "plausible-15", "plausible-4"][..]),
        (start, part) in (0.0..1.0_f64, 1e-6..1.0_f64),
        seed in any::<u64>(),
    ) {
        let truth = by_name(name).unwrap();
        let mut probe = Modelled::new(&truth, seed);
        probe.record_written();
        let mut given = Given::of(&truth, &probe);
        let capacity = truth.geometry.capacity.get() as f64;
        let first = (start * capacity) as u64;
        let len = ((part * capacity) as u64).clamp(1, truth.geometry.capacity.get() - first);
        let scratch = Extent::at(first, len);
        given.scratch = Some(scratch);
        let written = steps().iter().position(|step| matches!(step, Step::Written(_)));
        let mut electronics = Electronics { at: written.unwrap(), ..Electronics::default() };
        electronics.ahead.segment = Some(u64::from(truth.cache.segment_sectors));
        electronics.segments.count = Some(u64::from(truth.cache.segments));
        loop {
            let mut bench = Bench::new(&mut probe, seed ^ electronics.at as u64);
            if !electronics.step(&mut bench, &given.ground()).unwrap() {
                break;
            }
        }
        for extent in probe.take_written() {
            prop_assert!(scratch.start <= extent.start && extent.end() <= scratch.end(), "{extent} outside {scratch}");
        }
    }
}

#[test]
fn drives_that_could_have_been_have_nothing_wrong() {
    let (_, _, wrong) = count((0..12).map(|seed| format!("plausible-{seed}")));
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_drive_that_reads_nothing_ahead_is_said_to_and_has_segments_all_the_same() {
    let plain = |spec: &mut Spec| {
        spec.cache.read_ahead = ReadAhead::Off;
        spec.cache.read_ahead_max = 0;
    };
    let truth = by_name("atlas10k").unwrap().with(plain).unwrap();
    let (electronics, _, _) = learn(&truth, 5);
    assert_eq!(electronics.ahead.kind, Some(ReadAhead::Off));
    assert_eq!(electronics.segments.count, Some(10));
    assert_eq!(electronics.ahead.segment, Some(374));
    for key in Electronics::keys() {
        let unknown = electronics
            .told
            .unknown
            .iter()
            .any(|(other, _)| other == key);
        assert!(electronics.told.knows(key) != unknown, "{key}");
    }
}

/// A drive without a buffer that keeps anything, as the format's default is.
#[test]
fn a_drive_without_a_buffer_is_said_to_have_none() {
    let bare = |spec: &mut Spec| spec.cache = CacheSpec::default();
    let truth = by_name("atlas10k").unwrap().with(bare).unwrap();
    let (electronics, _, _) = learn(&truth, 5);
    assert_eq!(electronics.hit, None);
    for key in BUFFER {
        assert!(!electronics.told.knows(key), "{key}");
    }
}

/// A drive that fails after so many commands.
struct Failing {
    drive: Modelled,
    left: u32,
}

impl crate::Layer for Failing {
    type Under = Modelled;

    fn under(&self) -> &Modelled {
        &self.drive
    }

    fn under_mut(&mut self) -> &mut Modelled {
        &mut self.drive
    }

    fn send(&mut self, tag: u16, op: Op, extent: Extent) -> Result<(), ProbeError> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or(ProbeError::NotScratch(extent))?;
        self.drive.send(tag, op, extent)
    }
}

#[test]
fn switches_are_as_they_were_after_each_step_and_after_any_failure() {
    let (none, one, many) = (u32::MAX, "ibm18es", "wd5000aaks");
    let runs = [
        (one, false, none),
        (one, true, none),
        (one, false, 150),
        (one, false, 700),
        // While commands wait.
        (many, false, none),
        (many, false, 2_200),
        (many, false, 3_010),
        (many, false, 3_333),
    ];
    for (name, look_ahead, left) in runs {
        let truth = by_name(name).unwrap();
        let mut drive = Modelled::new(&truth, 5);
        drive.set(Switch::LookAhead, look_ahead).unwrap();
        let given = Given::of(&truth, &drive);
        let mut failing = Failing { drive, left };
        failing.set(Switch::WriteCache, look_ahead).unwrap();
        let before = Switch::ALL.map(|which| failing.switch(which));
        let mut electronics = Electronics::default();
        let mut failed = false;
        for number in 0.. {
            let mut bench = Bench::new(&mut failing, number);
            let result = electronics.step(&mut bench, &given.ground());
            let after = Switch::ALL.map(|which| failing.switch(which));
            assert_eq!(after, before, "{name}: step {number} of {left} commands");
            assert_eq!(failing.drive.drive().in_flight(), 0, "{name}: {left}");
            match result {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => {
                    failed = true;
                    break;
                }
            }
        }
        assert_eq!(failed, left < none, "{name}: {left}");
        if !failed && name == one {
            // What is switched off is learned all the same.
            assert_eq!(electronics.ahead.kind, Some(ReadAhead::SegmentFull));
            assert_eq!(electronics.segments.count, Some(6));
        }
    }
}
