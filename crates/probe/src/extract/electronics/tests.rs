mod judged;

use super::*;
use crate::extract::holdout;
use crate::extract::rotation::{Mark, Spindle};
use crate::extract::turns::part;
use crate::{Guarded, Modelled, ProbeError};
use headtime_disk::Profile;
use headtime_disk::profile::{FirmwarePolicy, ReadAhead, WriteBack, by_name};
use headtime_disk::{Layout, Mechanics};
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos};
use judged::{Outcome, compare, count, shipped_names, table};
use proptest::prelude::*;

/// Knowledge about a drive before its electronics are learned: here the truth.
struct Given {
    layout: Layout,
    mechanics: Mechanics,
    spindle: Spindle,
    processing: f64,
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
            let angle = layout.locate(lba).angle.turns();
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
            varies: 0.0,
        };
        Given {
            mechanics: Mechanics::new(truth),
            layout,
            spindle,
            processing: KnownDrive::processing(&truth.overhead),
            scratch: Some(Extent::at(capacity / 2, capacity / 6)),
            unit: u64::from(truth.geometry.sectors_per_physical()),
        }
    }

    fn known_drive(&self) -> KnownDrive<'_> {
        KnownDrive {
            layout: &self.layout,
            mechanics: &self.mechanics,
            turn: self.spindle.turn,
            processing: self.processing,
            scratch: self.scratch,
            unit: self.unit,
        }
    }
}

/// Learns the electronics of a drive with known layout.
fn learn(truth: &Profile, seed: u64) -> (Electronics, Modelled, Nanos) {
    let mut probe = Modelled::new(truth, seed);
    let given = Given::of(truth, &probe);
    let mut electronics = Electronics::default();
    let begin = probe.now();
    let mut number = 0;
    loop {
        number += 1;
        // Writes outside the scratch range fail.
        let mut guarded = Guarded::new(&mut probe, given.scratch);
        let mut bench = Bench::new(&mut guarded, seed ^ (number << 32));
        bench.lock(&given.spindle).unwrap();
        let more = electronics.step(&mut bench, &given.known_drive()).unwrap();
        if !more {
            break;
        }
    }
    let spent = probe.now() - begin;
    (electronics, probe, spent)
}

/// Result of the test for zero-latency reads.
fn zero_latency(truth: &Profile) -> Option<bool> {
    let mut probe = Modelled::new(truth, 5);
    let given = Given::of(truth, &probe);
    let mut bench = Bench::new(&mut probe, 5);
    bench.lock(&given.spindle).unwrap();
    let predictor = holdout::Predictor::new(truth, given.spindle.turn);
    holdout::zero_latency(&mut bench, &predictor).unwrap()
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
fn the_order_is_told_for_two_to_thirty_two_commands() {
    for name in ["exos-x18", "wd5000aaks", "plausible-55"] {
        let truth = by_name(name).unwrap();
        let (electronics, _, _) = learn(&truth, 11);
        let orders = &electronics.queueing.orders_of;
        let told = orders.iter().map(|order| (order.commands, order.choices));
        let expected = [
            ([2, 2], 30),
            ([3, 4], 60),
            ([5, 8], 120),
            ([9, 16], 240),
            ([17, 31], 450),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected, "{name}");
        for (at, order) in orders.iter().enumerate() {
            let of = |taken: u32| f64::from(taken) / f64::from(order.choices);
            assert!(of(order.soonest.unwrap()) > 0.9, "{name}: {order:?}");
            // With more commands the first and the nearest are less often the soonest.
            let [first, nearest] = [(0.8, 0.9), (0.6, 0.85), (0.4, 0.8), (0.25, 0.7), (0.2, 0.6)]
                .map(<[f64; 2]>::from)[at];
            assert!(of(order.first) < first, "{name}: {order:?}");
            assert!(of(order.nearest.unwrap()) < nearest, "{name}: {order:?}");
        }
        let said = electronics.lines();
        assert!(
            said.contains("Order: of 2, 3-4, 5-8, 9-16, 17-31 commands the soonest"),
            "{said}"
        );
    }
}

#[test]
fn the_order_is_told_for_as_many_commands_as_a_drive_takes() {
    for (depth, expected) in [
        (3, vec![([2, 2], 320)]),
        (5, vec![([2, 2], 192), ([3, 4], 384)]),
        (
            256,
            vec![
                ([2, 2], 30),
                ([3, 4], 60),
                ([5, 8], 120),
                ([9, 16], 240),
                ([17, 31], 450),
            ],
        ),
    ] {
        let deep = |spec: &mut Spec| spec.queue.depth = depth;
        let truth = by_name("exos-x18").unwrap().with(deep).unwrap();
        let (electronics, _, _) = learn(&truth, 11);
        let orders = &electronics.queueing.orders_of;
        let told = orders.iter().map(|order| (order.commands, order.choices));
        assert_eq!(told.collect::<Vec<_>>(), expected, "{depth}");
        assert_eq!(electronics.queueing.by_position, Some(true), "{depth}");
    }
}

/// The policy of a drive with two commands shows in the order of two commands behind a third.
#[test]
fn a_drive_that_takes_two_commands_is_told_by_which_goes_first() {
    let two = |spec: &mut Spec| spec.queue.depth = 2;
    let sptf = by_name("wd5000aaks").unwrap().with(two).unwrap();
    let fifo = |spec: &mut Spec| spec.queue.policy = FirmwarePolicy::Fifo;
    let fifo = sptf.with(fifo).unwrap();
    let (learned, _, _) = learn(&sptf, 11);
    assert_eq!(learned.queueing.by_position, Some(true));
    assert!(learned.told.knows("queue.policy") && !learned.told.knows("queue.margin"));
    let (learned, _, _) = learn(&fifo, 11);
    // The drive may have had no choice.
    assert_eq!(learned.queueing.orders, None);
    assert_eq!(learned.queueing.order_line(), None);
    assert!(!learned.told.knows("queue.policy"));
}

#[test]
fn a_drive_that_serves_commands_in_their_order_is_said_to() {
    let fifo = |spec: &mut Spec| spec.queue.policy = FirmwarePolicy::Fifo;
    let truth = by_name("wd5000aaks").unwrap().with(fifo).unwrap();
    let (electronics, _, _) = learn(&truth, 5);
    let said = electronics.queueing.order_line().unwrap();
    assert_eq!(
        said,
        "of 2, 3-4, 5-8, 9-16, 17-31 commands the first in 100, 100, 100, 100, 100 % of choices"
    );
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
        // Late reads would leave the age unknown.
        let truth = by_name(name).unwrap().with(|spec| {
            (spec.noise.retried_reads, spec.noise.long_waits) = (0.0, 0.0);
        });
        let truth = truth.unwrap();
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
fn without_a_scratch_range_nothing_is_written_and_the_write_cache_is_read() {
    let truth = by_name("wd5000aaks").unwrap();
    let mut probe = Modelled::new(&truth, 5);
    probe.record_written();
    let mut given = Given::of(&truth, &probe);
    given.scratch = None;
    let mut electronics = Electronics::default();
    for number in 0.. {
        let mut bench = Bench::new(&mut probe, number);
        bench.lock(&given.spindle).unwrap();
        if !electronics.step(&mut bench, &given.known_drive()).unwrap() {
            break;
        }
    }
    assert_eq!(probe.take_written(), []);
    assert!(electronics.told.knows("cache.write_back"));
    let others = write_cache::KEYS.iter();
    for key in others.filter(|key| **key != "cache.write_back") {
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
    assert!(electronics.write_cache.is_read);
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
            if !electronics.step(&mut bench, &given.known_drive()).unwrap() {
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

/// A drive with the format's default cache, which stores nothing.
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

/// A drive that fails after a number of commands.
struct Failing {
    drive: Modelled,
    left: u32,
}

impl crate::Layer for Failing {
    fn under(&self) -> &dyn Probe {
        &self.drive
    }

    fn under_mut(&mut self) -> &mut dyn Probe {
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
            let locked = bench.lock(&given.spindle);
            let result = locked.and_then(|()| electronics.step(&mut bench, &given.known_drive()));
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
            // Read-ahead is learned although its switch is off.
            assert_eq!(electronics.ahead.kind, Some(ReadAhead::SegmentFull));
            assert_eq!(electronics.segments.count, Some(6));
        }
    }
}

/// A drive with read-ahead off that refuses to turn it on.
struct Stubborn(Modelled);

impl crate::Layer for Stubborn {
    fn under(&self) -> &dyn Probe {
        &self.0
    }

    fn under_mut(&mut self) -> &mut dyn Probe {
        &mut self.0
    }

    fn set(&mut self, which: Switch, _on: bool) -> Result<(), ProbeError> {
        Err(ProbeError::Refused {
            which,
            source: "it is reserved".into(),
        })
    }
}

#[test]
fn a_drive_that_refuses_to_read_ahead_is_learned_as_it_is() {
    let truth = by_name("ibm18es").unwrap();
    let mut drive = Modelled::new(&truth, 5);
    drive.set(Switch::LookAhead, false).unwrap();
    let given = Given::of(&truth, &drive);
    let mut stubborn = Stubborn(drive);
    let mut electronics = Electronics::default();
    let mut number = 0;
    while electronics
        .step(&mut Bench::new(&mut stubborn, number), &given.known_drive())
        .unwrap()
    {
        number += 1;
    }
    assert_eq!(electronics.ahead.kind, Some(ReadAhead::Off));
    let said = electronics.lines();
    assert!(
        said.contains("When the probe began, look-ahead was off.\n"),
        "{said}"
    );
    assert!(
        said.contains("Learned as the drive is: look-ahead cannot be turned: it is reserved.\n"),
        "{said}"
    );
}

#[test]
fn the_write_cache_is_read_from_a_drive_that_may_not_be_written() {
    // The cache of an old drive may buffer sequential writes only, even when on.
    for (name, cached, known) in [
        ("wd5000aaks", Some(true), true),
        ("wd5000aaks", Some(false), false),
        ("wd5000aaks", None, false),
        ("atlas10k", Some(true), false),
    ] {
        let truth = by_name(name).unwrap();
        let mut probe = Modelled::new(&truth, 1);
        let mut given = Given::of(&truth, &probe);
        given.scratch = None;
        let reads = Reads {
            cached,
            hit: HitTime::default(),
            segment: Some(1_142),
            segments: Some(28),
        };
        let mut electronics = Electronics {
            hit: Some(HitTime::default()),
            ..Electronics::default()
        };
        electronics.ahead.segment = reads.segment;
        electronics.segments.count = reads.segments;
        let kind = write_cache::WriteQuestion::Kind;
        let bench = &mut Bench::new(&mut probe, 1);
        let told = &mut electronics.told;
        let cache = &mut electronics.write_cache;
        cache
            .ask(kind, bench, &given.known_drive(), reads, told)
            .unwrap();
        let learned = truth.with(|spec| {
            spec.trust.clear();
            electronics.apply(spec);
        });
        let learned = learned.unwrap();
        let full = learned.cache.write_back == WriteBack::Full;
        let marked = learned
            .trust
            .contains(&("cache.write_back".to_owned(), Trust::Read));
        assert_eq!((full, marked), (known, known), "{name} {cached:?}");
        let text = headtime_disk::Profile::from_toml("again", &learned.to_toml()).unwrap();
        assert_eq!(text.trust, learned.trust);
    }
}
