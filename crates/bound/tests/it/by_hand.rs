//! Bounds that can be computed by hand.

use crate::draw::replay;
use headtime_bound::{Array, Machine, REQUESTS_MAX, Term};
use headtime_disk::drive::{Command, Drive};
use headtime_disk::profile::{self, NoiseSpec, OverheadSpec, Profile, ReadAhead};
use headtime_disk::{Layout, Mechanics};
use headtime_host::workload::ParReadSpec;
use headtime_host::{DiskSize, File, HostBuilder, HostSpec, ProcessSpec, Step};
use headtime_sched::{Class, Flags, Op, Origin};
use headtime_units::{Bytes, Extent, Lba, Nanos, Sectors, Time};
use headtime_workload::{
    ClosedReplay, Fit, Fitter, NewRequest, OpenReplay, Script, Source, Speed, Start, Trace,
    TraceRequest,
};
use std::num::NonZero;
use std::sync::Arc;

fn calm() -> Profile {
    let drive = profile::by_name("wd5000aaks").expect("shipped");
    let calm = drive.with(|spec| {
        spec.noise = NoiseSpec::default();
        // Otherwise, commands that the buffer answers overlap with commands of the arm.
        spec.cache.sneaky_full_read_hits = false;
        spec.overhead = OverheadSpec {
            per_command: Nanos::from_micros(200),
            ..OverheadSpec::default()
        };
    });
    calm.expect("in range")
}

fn machine<'a>(profile: &'a Profile, layout: &'a Layout) -> Machine<'a> {
    Machine {
        array: None,
        profile,
        layout,
        depth: 1,
        merge: Some(Sectors::new(1024)),
    }
}

fn builder(profile: &Profile) -> HostBuilder {
    let disk = DiskSize {
        capacity: profile.geometry.capacity,
        sector_bytes: profile.geometry.sector_bytes,
    };
    HostBuilder::new(HostSpec::default(), disk).expect("in range")
}

/// Two members with chunks of 16 sectors on each in turn.
fn two_members(bus: u64) -> Array {
    Array::new(2, NonZero::new(bus), |extent| {
        let (chunk, within) = (extent.start.get() / 16, extent.start.get() % 16);
        let len = extent.len.get().min(16 - within);
        ((chunk % 2) as u16, Extent::at(chunk / 2 * 16 + within, len))
    })
}

#[test]
fn the_bound_of_an_array_is_that_of_the_member_with_the_most_or_of_the_bus() {
    let profile = calm();
    let layout = Layout::new(&profile);
    let one = machine(&profile, &layout);
    let of = |machine: &Machine<'_>, extents: &[Extent]| {
        let asked: Vec<(Op, Extent)> = extents.iter().map(|extent| (Op::Read, *extent)).collect();
        machine
            .source(&mut replay(&profile, &asked, 1))
            .expect("few")
    };
    // Five chunks in two requests. Member 0 has the first, third and fifth chunk, which are adjacent there.
    let asked = [Extent::at(0, 48), Extent::at(48, 32)];
    let largest = of(&one, &[Extent::at(0, 32), Extent::at(32, 16)]);
    let on = |bus| {
        let array = two_members(bus);
        of(
            &Machine {
                array: Some(&array),
                ..one
            },
            &asked,
        )
    };
    let array = on(0);
    for term in [Term::Arm, Term::Command] {
        assert!(array.term(term) > Nanos::ZERO);
        assert_eq!(array.term(term), largest.term(term), "{term:?}");
    }
    // The process waits for 32 sectors and 16 sectors, one after the other.
    assert_eq!(array.term(Term::Chain), largest.term(Term::Chain));
    assert!(of(&one, &asked).time() > array.time());
    // 80 sectors of 512 bytes.
    assert_eq!(on(1_000_000).time(), Nanos::from_nanos(40_960_000));
    assert_eq!(on(1_000_000).binds(), Term::Command);
}

#[test]
fn programs_on_an_array_need_the_time_of_the_member_with_the_most_or_of_the_bus() {
    let profile = calm();
    let layout = Layout::new(&profile);
    let one = machine(&profile, &layout);
    let reader = |sectors: u64| {
        let mut programs = builder(&profile);
        let file = File {
            extents: vec![Extent::at(0, sectors)],
            size: sectors * 512,
        };
        let file = programs.add_file(file).expect("it fits");
        let mut steps = [Step::Read {
            file,
            offset: 0,
            len: sectors * 512,
        }]
        .into_iter();
        programs.add_process(ProcessSpec {
            program: 1,
            behaviour: Box::new(move || steps.next().unwrap_or(Step::Exit)),
            served_by: None,
            start: Time::ZERO,
        });
        programs
    };
    let alone = one.programs(reader(8_000)).expect("few");
    let on = |bus| {
        let array = two_members(bus);
        let of = Machine {
            array: Some(&array),
            ..one
        };
        of.programs(reader(16_000)).expect("few")
    };
    assert_eq!(on(0).term(Term::Arm), alone.term(Term::Arm));
    let bytes = |_| 16_000 * 512;
    let (twice, once) = (
        on(0).sum_of_rates(bytes),
        alone.sum_of_rates(|_| 8_000 * 512),
    );
    // Both drives read for the program, which copies twice as much.
    assert!(twice > once && twice < once.map(|rate| 2.01 * rate));
    assert_eq!(on(1_000_000).time(), Nanos::from_millis(8_192));
}

/// The paper's four readers: the time of the bound, and the time of reading the files in the order of addresses.
#[test]
fn par_read_of_the_paper() {
    let profile = calm();
    let layout = Layout::new(&profile);
    let mut programs = builder(&profile);
    ParReadSpec::default()
        .add(&mut programs, 1, 1)
        .expect("it fits");
    let bound = machine(&profile, &layout).programs(programs).expect("few");
    assert_eq!(bound.binds(), Term::Arm);
    let rate = |time: Nanos| 4e9 / time.as_secs_f64() / 1e6;

    // Files of 1 GB at a distance of 51 GB, in whole pages.
    let sectors = 1_000_000_000u64.div_ceil(4096) * 8;
    let files =
        (0..4).map(|file| Extent::at((file * 51_000_000_000u64).div_ceil(4096) * 8, sectors));
    let mechanics = Mechanics::new(&profile);
    let (mut passing, mut in_order, mut tracks) = (Nanos::ZERO, Nanos::ZERO, 0);
    for file in files {
        let at_first = layout.run(file.start).track;
        let walk = mechanics.walk(&layout, at_first, Time::ZERO, file, Op::Read, false);
        for (number, step) in walk.enumerate() {
            passing += step.transfer;
            in_order += step.transfer;
            if number > 0 {
                in_order += step.seek + step.switch + step.rotation;
            }
            tracks += 1;
        }
    }
    // A movement between neighbouring tracks takes 1.1 ms, to another head or another cylinder. From file to file the
    // arm crosses at least 14,000 cylinders. The first command is received before any movement.
    assert_eq!(
        (mechanics.head_switch(), mechanics.seek(1, Op::Read)),
        (Nanos::from_micros(1100), Nanos::from_micros(1100))
    );
    let long = bound.term(Term::Arm)
        - passing
        - Nanos::from_micros(1100) * (tracks - 4)
        - profile.overhead.per_command;
    let way = long.as_millis_f64() / 3.0;
    assert!((5.4..5.6).contains(&way), "{way} ms from file to file");
    let near = |value: f64, wanted: f64| (value - wanted).abs() < 0.05;
    assert!(near(rate(passing), 102.07), "{}", rate(passing));
    assert!(near(rate(bound.time()), 90.13), "{}", rate(bound.time()));
    // In the order of addresses the head waits for the skew, 1.33 ms at each track. A drive may read in another order.
    assert!(near(rate(in_order), 88.0), "{}", rate(in_order));

    // A change of file after each 124 ms takes 5.5 ms. Continuing takes 1.1 ms, or 1.33 ms in order.
    let slice = Nanos::from_millis(124);
    let with_slices = bound.with_slices(slice).expect("files apart");
    assert!(near(rate(with_slices), 87.1), "{}", rate(with_slices));
    let change = way - 1.333;
    let in_order = rate(in_order) * 124.0 / (124.0 + change);
    assert!(near(in_order, 85.1), "{in_order}");
}

/// Requests for whole tracks, two at a time. The drive begins to read at any sector, buffers a whole track, and does
/// not read ahead. This drive does not wait for the skew, so a bound must not include the skew.
#[test]
fn whole_tracks_are_read_faster_than_in_the_order_of_addresses() {
    let roomy = calm().with(|spec| {
        spec.cache.segment_sectors = 1750;
        (spec.cache.read_ahead_min, spec.cache.read_ahead_max) = (0, 0);
        spec.cache.read_ahead = ReadAhead::Off;
    });
    let profile = roomy.expect("in range");
    let layout = Arc::new(Layout::new(&profile));
    let tracks = 60;
    let mut extents = Vec::new();
    let mut at = Lba::new(1_000_000);
    for _ in 0..tracks {
        let track = layout.track_extent_of(at);
        extents.push(track);
        at = track.end();
    }
    extents.remove(0);
    let mut drive = Drive::with_layout(&profile, Arc::clone(&layout), 1);
    let mut left = extents.iter().enumerate();
    let submit = |drive: &mut Drive, now, next: Option<(usize, &Extent)>| {
        if let Some((tag, extent)) = next {
            let command = Command {
                tag: tag as u32,
                op: Op::Read,
                extent: *extent,
                fua: false,
                high: false,
            };
            drive.submit(now, command);
        }
    };
    submit(&mut drive, Time::ZERO, left.next());
    submit(&mut drive, Time::ZERO, left.next());
    let mut now = Time::ZERO;
    while let Some(at) = drive.next_event() {
        now = at;
        if drive.poll(now).is_some() {
            submit(&mut drive, now, left.next());
        }
    }
    let took = now - Time::ZERO;
    let mechanics = Mechanics::new(&profile);
    let all = Extent::new(extents[0].start, at - extents[0].start);
    let way = mechanics.reposition(layout.home(), layout.run(all.start).track, Op::Read);
    let in_order = mechanics.access(
        &layout,
        layout.run(all.start).track,
        Time::ZERO,
        all,
        Op::Read,
        false,
    );
    let machine = Machine {
        array: None,
        depth: 2,
        ..machine(&profile, &layout)
    };
    let bound = machine
        .source(&mut closed(&profile, &extents, 2))
        .expect("few")
        .time();
    assert!(
        took < way.total() + in_order.total() - in_order.rotation,
        "{took}, {in_order:?}"
    );
    let near = bound.as_secs_f64() / took.as_secs_f64();
    assert!(near <= 1.0 && near > 0.99, "{bound}, {took}: {near}");
}

fn closed(profile: &Profile, extents: &[Extent], outstanding: u32) -> ClosedReplay {
    let asked: Vec<_> = extents.iter().map(|extent| (Op::Read, *extent)).collect();
    replay(profile, &asked, outstanding)
}

/// Builds a program with a process for each list of steps, on files of `pages` pages each.
fn programs(profile: &Profile, steps: &[Vec<Act>], pages: u64, read_ahead: u64) -> HostBuilder {
    let mut builder = builder(profile);
    let spec = HostSpec {
        read_ahead: Bytes(read_ahead),
        ..builder.spec().clone()
    };
    builder = HostBuilder::new(spec, builder.disk()).expect("in range");
    let barrier = builder.add_barrier(steps.len() as u32);
    for (number, acts) in steps.iter().enumerate() {
        let file = File {
            extents: vec![Extent::at(number as u64 * 10_000_000, pages * 8)],
            size: pages * 4096,
        };
        let file = builder.add_file(file).expect("it fits");
        let steps: Vec<Step> = acts
            .iter()
            .map(|act| match *act {
                Act::Read(page) => Step::Read {
                    file,
                    offset: page * 4096,
                    len: 4096,
                },
                Act::Direct(page) => Step::Direct {
                    op: Op::Read,
                    file,
                    offset: page * 4096,
                    len: 4096,
                },
                Act::Think(micros) => Step::Think(Nanos::from_micros(micros)),
                Act::Meet => Step::Barrier(barrier),
            })
            .collect();
        let mut steps = steps.into_iter();
        builder.add_process(ProcessSpec {
            program: number as u32 + 1,
            behaviour: Box::new(move || steps.next().unwrap_or(Step::Exit)),
            served_by: None,
            start: Time::ZERO,
        });
    }
    builder
}

#[derive(Clone, Copy)]
enum Act {
    Read(u64),
    Direct(u64),
    Think(u64),
    Meet,
}

/// Time of a command for a page in nanoseconds: 200 us, and 8 sectors of 1.71 us on the bus.
const PAGE: u64 = 213_680;

#[test]
fn a_direct_reader_pays_for_each_request_one_after_the_other() {
    let profile = calm();
    let layout = Layout::new(&profile);
    let acts: Vec<Act> = (0..10)
        .flat_map(|page| [Act::Direct(page * 4), Act::Think(1000)])
        .collect();
    let bound = machine(&profile, &layout)
        .programs(programs(&profile, &[acts], 100, 128 << 10))
        .expect("few");
    assert_eq!(bound.binds(), Term::Chain);
    assert_eq!(bound.time(), Nanos::from_nanos(10 * (PAGE + 1_000_000)));
    // The requests cannot be merged, since there are gaps between them.
    assert_eq!(bound.term(Term::Command), Nanos::from_nanos(10 * PAGE));
}

#[test]
fn who_meets_others_waits_for_the_slowest_of_each_part() {
    let profile = calm();
    let layout = Layout::new(&profile);
    let slow_first = vec![Act::Think(5000), Act::Meet, Act::Direct(0)];
    let slow_last = vec![Act::Direct(0), Act::Meet, Act::Think(7000)];
    let steps = [slow_first, slow_last];
    let bound = machine(&profile, &layout)
        .programs(programs(&profile, &steps, 100, 128 << 10))
        .expect("few");
    assert_eq!(bound.term(Term::Chain), Nanos::from_micros(12_000));
}

#[test]
fn a_buffered_reader_waits_once_for_each_two_windows_or_for_each_page_without_them() {
    let profile = calm();
    let layout = Layout::new(&profile);
    let chain = |acts: Vec<Act>, read_ahead| {
        let builder = programs(&profile, &[acts], 1000, read_ahead);
        let bound = machine(&profile, &layout).programs(builder).expect("few");
        bound.term(Term::Chain).as_nanos()
    };
    let in_order: Vec<Act> = (0..1000).map(Act::Read).collect();
    let copies = 1000 * 1200;
    assert_eq!(chain(in_order.clone(), 0), copies + 1000 * PAGE);
    // Windows of 16 KiB: a page can have been requested at most 8 pages before. The bound has a mark for every second
    // page only, so it assumes at most 12 pages.
    let small = chain(in_order.clone(), 16 << 10);
    assert!(small <= copies + 1000 / 8 * PAGE, "{small}");
    assert!(small >= 1000 / 12 * (PAGE + 1200), "{small}");
    // Windows of 128 KiB: copying takes nearly as long as the command.
    let large = chain(in_order, 128 << 10);
    assert!(
        large >= copies + PAGE && large <= copies + 1000 / 64 * PAGE,
        "{large}"
    );
    // The process waits for each page if the pages are far apart.
    let apart: Vec<Act> = (0..10).rev().map(|page| Act::Read(page * 97)).collect();
    assert_eq!(chain(apart, 128 << 10), 10 * (1200 + PAGE));
}

/// The arm's term for reads, one at a time.
fn arm(profile: &Profile, extents: &[Extent]) -> u64 {
    let layout = Layout::new(profile);
    let mut replay = closed(profile, extents, 1);
    let bound = machine(profile, &layout).source(&mut replay).expect("few");
    bound.term(Term::Arm).as_nanos()
}

#[test]
fn a_gap_is_passed_over_or_left_and_come_back_to_and_the_longest_is_neither() {
    let profile = calm();
    // The first track, where the arm starts, has 1750 slots of 4.76 us. The arm moves after 200 us.
    let slots = |count: u64| count * 8_333_333 / 1750;
    let near = |extents: &[(u64, u64)], wanted: u64| {
        let extents: Vec<Extent> = extents
            .iter()
            .map(|(at, len)| Extent::at(*at, *len))
            .collect();
        let found = arm(&profile, &extents);
        assert!(
            found.abs_diff(200_000 + wanted) < 10,
            "{extents:?}: {found}, {wanted}"
        );
    };
    near(&[(100, 8)], slots(8));
    near(&[(100, 8), (116, 8)], slots(24));
    // The gap across the end of the track is shorter: 2 slots after the second extent, 4 before the first.
    near(&[(4, 8), (1740, 8)], slots(8 + 2 + 4 + 8));
    // Each gap is longer than a movement to another track.
    near(&[(0, 8), (875, 8)], slots(16) + 1_100_000);
    near(&[(0, 8), (600, 8), (1200, 8)], slots(24) + 2 * 1_100_000);
    near(&[(0, 1750)], 8_333_333);
    // The second extent is on the next track, which takes one movement.
    near(&[(0, 1750), (1750, 8)], 8_333_333 + 1_100_000 + slots(8));
}

#[test]
fn units_that_turn_faster_are_allowed_for() {
    let nominal = calm();
    let fast = nominal
        .with(|spec| spec.noise.speed_ppm = 2000)
        .expect("in range");
    let reads = [Extent::at(0, 1_000_000)];
    let (nominal, fast) = (arm(&nominal, &reads), arm(&fast, &reads));
    // The turns take 0.2 % less. The movements do not change.
    let turns = 1_000_000 * 8_333_333 / 1750;
    let saved = nominal - fast;
    assert!(
        saved >= turns / 1_002 * 2 - 1000 && saved < turns / 490,
        "{saved}, {turns}"
    );
}

#[test]
fn what_somebody_else_may_have_fetched_or_written_is_not_waited_for() {
    let profile = calm();
    let layout = Layout::new(&profile);
    // Two processes on the same sectors: with one shared file, or with two files. With two files, one may be written.
    let bound = |two_files: bool, writes: bool| {
        let mut builder = builder(&profile);
        let file = || File {
            extents: vec![Extent::at(8_000, 80)],
            size: 40_960,
        };
        let first = builder.add_file(file()).expect("it fits");
        let second = match two_files {
            true => builder.add_file(file()).expect("it fits"),
            false => first,
        };
        let write = Step::Write {
            file: second,
            offset: 0,
            len: 40_960,
        };
        let read = |file| Step::Read {
            file,
            offset: 0,
            len: 4096,
        };
        let other = if writes { write } else { read(second) };
        for step in [read(first), other] {
            let mut steps = [step].into_iter();
            builder.add_process(ProcessSpec {
                program: 1,
                behaviour: Box::new(move || steps.next().unwrap_or(Step::Exit)),
                served_by: None,
                start: Time::ZERO,
            });
        }
        machine(&profile, &layout).programs(builder).expect("few")
    };
    let chain = |two_files, writes| bound(two_files, writes).term(Term::Chain);
    assert_eq!(
        chain(true, false),
        Nanos::from_nanos(PAGE + 1200),
        "each fetches its own"
    );
    assert_eq!(
        chain(false, false),
        Nanos::from_nanos(1200),
        "either may have fetched it"
    );
    let arm = |two_files, writes| bound(two_files, writes).term(Term::Arm);
    assert!(arm(true, false) > Nanos::ZERO);
    assert_eq!(
        arm(true, true),
        Nanos::ZERO,
        "the drive's buffer may have it"
    );
    assert_eq!(
        arm(false, true),
        Nanos::ZERO,
        "it may never come from the disk"
    );
}

#[test]
fn a_window_may_bring_pages_that_are_apart() {
    let profile = calm();
    let layout = Layout::new(&profile);
    let acts = vec![Act::Read(0), Act::Read(5)];
    let bound = machine(&profile, &layout)
        .programs(programs(&profile, &[acts], 100, 128 << 10))
        .expect("few");
    // One command with 16 sectors on the bus.
    assert_eq!(
        bound.term(Term::Command),
        Nanos::from_nanos(200_000 + 16 * 1710)
    );
}

#[test]
fn what_comes_when_it_comes_ends_no_sooner_than_the_last_arrival() {
    let profile = calm();
    let layout = Layout::new(&profile);
    let requests = (0..5).map(|number| TraceRequest {
        arrival: Some(Time::ZERO + Nanos::from_millis(100 * number)),
        completion: None,
        device: 0,
        op: Op::Read,
        extent: Extent::at(number * 1000, 8),
        process: None,
        flags: Flags::NONE,
    });
    let geometry = &profile.geometry;
    let fitter = Fitter::new(geometry.capacity, geometry.sector_bytes, Fit::Refuse);
    let script = Script::new(&Trace::new(requests.collect()), &[], &fitter).expect("it fits");
    let replay = OpenReplay::new(Arc::new(script), Speed::default(), Start::AtOnce);
    let bound = machine(&profile, &layout)
        .source(&mut replay.expect("arrivals"))
        .expect("few");
    assert_eq!(
        (bound.binds(), bound.time()),
        (Term::Chain, Nanos::from_nanos(400_000_000 + PAGE))
    );
}

#[test]
fn work_without_requests_takes_no_time() {
    let profile = calm();
    let layout = Layout::new(&profile);
    let bound = machine(&profile, &layout).source(&mut Nobody).expect("few");
    assert_eq!(bound.time(), Nanos::ZERO);
    assert_eq!(bound.sum_of_rates(|_| 1), None);
    let idle = programs(&profile, &[Vec::new()], 1, 0);
    let bound = machine(&profile, &layout).programs(idle).expect("few");
    assert_eq!(
        (bound.time(), bound.with_slices(Nanos::from_millis(1))),
        (Nanos::ZERO, None)
    );
}

/// A source without requests.
struct Nobody;

impl Source for Nobody {
    fn next_arrival(&self) -> Option<Time> {
        None
    }

    fn poll(&mut self, _now: Time) -> Option<NewRequest> {
        None
    }

    fn completed(&mut self, _now: Time, _cookie: u64) {}

    fn done(&self) -> bool {
        true
    }
}

/// A source with a number of requests for single sectors, all at time zero.
struct Many(u64);

impl Source for Many {
    fn next_arrival(&self) -> Option<Time> {
        (self.0 > 0).then_some(Time::ZERO)
    }

    fn poll(&mut self, _now: Time) -> Option<NewRequest> {
        self.0 = self.0.checked_sub(1)?;
        Some(NewRequest {
            cookie: self.0,
            op: Op::Read,
            extent: Extent::at(self.0 % 1000, 1),
            arrival: Time::ZERO,
            flags: Flags::NONE,
            origin: Origin::default(),
            class: Class::default(),
        })
    }

    fn completed(&mut self, _now: Time, _cookie: u64) {}

    fn done(&self) -> bool {
        self.0 == 0
    }
}

#[test]
fn of_more_than_fits_nothing_is_said() {
    let profile = calm();
    let layout = Layout::new(&profile);
    let machine = machine(&profile, &layout);
    assert!(machine.source(&mut Many(1_000)).is_some());
    assert_eq!(machine.source(&mut Many(REQUESTS_MAX as u64 + 1)), None);
    // The bound gives up on a process that never ends.
    let mut builder = builder(&profile);
    let file = File {
        extents: vec![Extent::at(0, 8_000)],
        size: 4_096_000,
    };
    let file = builder.add_file(file).expect("it fits");
    builder.add_process(ProcessSpec {
        program: 1,
        behaviour: Box::new(move || Step::Read {
            file,
            offset: 0,
            len: 4_096_000,
        }),
        served_by: None,
        start: Time::ZERO,
    });
    assert_eq!(machine.programs(builder), None);
}
