//! Reading in the gaps of what others ask for: what is read, and what the others notice.

use headtime_disk::drive::{Drive, Fault};
use headtime_disk::profile::{self, Preseek, Profile, WriteBack};
use headtime_disk::{Layout, Model};
use headtime_engine::{
    Approach, Arrival, Background, Command, Config, Engine, Event, Finished, Freeblock,
    FreeblockOptions, FreeblockStats, Gap, Hits, Join, Lane, Limits, Member, Order, Outcome, Pick,
    Prefer, RequestId, Search, Seen, Wanted,
};
use headtime_sched::{Flags, Head, Op, Pass, Passing, Positioning, Spec, Track as Follow};
use headtime_sim::{Setup, run};
use headtime_units::{Bytes, Cylinder, Extent, Lba, Nanos, Sectors, Time, Track};
use headtime_workload::{
    Pacing, ProcessSpec, SizeDistribution, Synthetic, SyntheticSpec, TimeDistribution,
};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{RngCore, SeedableRng};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// An Atlas 10K as the paper's host has it, without noise.
fn atlas(firmware_depth: u32) -> Profile {
    let shipped = profile::by_name("atlas10k").expect("shipped");
    let changed = shipped.with(|spec| {
        spec.noise = Default::default();
        spec.queue.preseek = Preseek::AtMediaEnd;
        spec.queue.depth = firmware_depth;
        spec.bus.interface_sector = Nanos::from_nanos(6_400);
        spec.cache.write_back = WriteBack::Off;
    });
    changed.expect("it can be")
}

/// The same, whose seeks and overheads vary.
fn noisy() -> Profile {
    let changed = atlas(2).with(|spec| {
        spec.noise.seek_sd = Nanos::from_micros(20);
        spec.noise.overhead_sd = Nanos::from_micros(30);
    });
    changed.expect("it can be")
}

/// Blocks that cannot be read are wanted again so often.
const AGAIN: u32 = 2;

/// What became of a scan.
#[derive(Default)]
struct Read {
    /// How often each sector was delivered.
    times: BTreeMap<u64, u32>,
    unreadable: Vec<Lba>,
    wanted_again: u32,
    left: u64,
    stats: FreeblockStats,
}

/// A scan whose reads are counted.
struct Counted {
    scan: Freeblock<Arc<Model>>,
    read: Rc<RefCell<Read>>,
    /// How often more they are.
    again: u32,
}

impl Background for Counted {
    fn joins(
        &mut self,
        now: Time,
        engine: &Engine,
        approach: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        self.scan.joins(now, engine, approach)
    }

    fn tracker(&self) -> Option<Box<dyn Follow>> {
        self.scan.tracker()
    }

    fn seen(&mut self, now: Time, done: &Finished) {
        self.scan.seen(now, done);
        let mut read = self.read.borrow_mut();
        read.unreadable = self.scan.unreadable().collect();
        read.left = self.scan.wanted().left();
        read.stats = self.scan.stats();
    }

    fn finished(&mut self, now: Time, done: &Finished, data: Option<&[u8]>) {
        self.scan.finished(now, done, data);
        let mut read = self.read.borrow_mut();
        let unreadable: Vec<Lba> = self.scan.unreadable().collect();
        for block in unreadable.iter().filter(|_| self.again > 0) {
            assert_eq!(self.scan.want(self.scan.wanted().block_at(*block)), 1);
            assert!(!self.scan.is_unreadable(*block));
            read.wanted_again += 1;
        }
        self.again -= u32::from(self.again > 0 && !unreadable.is_empty());
        read.unreadable = self.scan.unreadable().collect();
        read.left = self.scan.wanted().left();
        read.stats = self.scan.stats();
        if done.outcome == Outcome::Done {
            let extent = done.request.extent;
            for sector in extent.start.get()..extent.end().get() {
                *read.times.entry(sector).or_default() += 1;
            }
        }
    }
}

/// Ten programs at work on the first `megabytes`, two reads for each write.
fn ten(seed: u64, count: u64, megabytes: u64) -> SyntheticSpec {
    let one = ProcessSpec {
        read_share: 0.667,
        range: Some((Bytes(0), Bytes(megabytes * 1_000_000))),
        pacing: Pacing::Closed {
            think: TimeDistribution::Constant(Nanos::ZERO),
            outstanding: 1,
        },
        ..ProcessSpec::default()
    };
    SyntheticSpec {
        count: Some(count),
        ..SyntheticSpec::alike(seed, 10, &one)
    }
}

fn config() -> Config {
    Config {
        depth: 2,
        commit_ahead: true,
        merge: false,
        ..Config::default()
    }
}

/// How each of the clients' requests went: when it was sent, when it ended, and how.
type Timeline = Vec<(u64, Time, Time, Outcome)>;

/// Runs the programs, with a scan of a range if one is asked for.
fn simulate(
    profile: &Profile,
    scheduler: &str,
    workload: &SyntheticSpec,
    scan: Option<(Extent, FreeblockOptions)>,
    change: impl FnOnce(&mut Setup<'_>),
) -> (Timeline, Rc<RefCell<Read>>) {
    let model = Arc::new(Model::new(profile));
    let spec: Spec = scheduler.parse().expect("registered");
    let built = spec.build(Some(Arc::clone(&model))).expect("built");
    let mut source = Synthetic::new(workload, profile.geometry.capacity, 512).expect("in range");
    let mut timeline = Vec::new();
    let mut watch = |now: Time, _: Member, seen: Seen<'_>| {
        if let Seen::Command(Command::Finish(done)) = seen {
            timeline.push((done.id, done.issued, now, done.outcome));
        }
    };
    let read = Rc::new(RefCell::new(Read::default()));
    let drive = Drive::new(profile, 1);
    let mut setup = Setup::new(drive, config(), built, &mut source);
    setup.audit = true;
    setup.observer = Some(&mut watch);
    if let Some((range, options)) = scan {
        let capacity = profile.geometry.capacity;
        let scan = Freeblock::new(model, capacity, range, options).expect("it turns");
        let read = Rc::clone(&read);
        let again = AGAIN;
        setup.stations[0].background = Some(Box::new(Counted { scan, read, again }));
    }
    change(&mut setup);
    run(setup).expect("runs");
    (timeline, read)
}

/// Blocks that were delivered more than once, or neither delivered nor said to be unreadable. What others have read is theirs.
fn wrong(read: &Read, range: Extent, theirs: &BTreeMap<u64, u32>) -> Vec<u64> {
    let unreadable = |sector: u64| read.unreadable.contains(&Lba::new(sector));
    let sectors = range.start.get()..range.end().get();
    let right = |sector: &u64| match read.times.get(sector) {
        None => theirs.contains_key(sector) || unreadable(*sector),
        Some(_) => true,
    };
    sectors.filter(|sector| !right(sector)).collect()
}

/// What clients get of a drive with its buffer on, in requests within ten seconds, alone and beside a scan of the whole disk.
fn with_its_buffer(
    drive: &str,
    scheduler: &str,
    depth: u32,
    each: &ProcessSpec,
    hits: Hits,
) -> ([usize; 2], FreeblockStats) {
    let profile = profile::by_name(drive).expect("shipped");
    let profile = profile
        .with(|spec| spec.queue.depth = spec.queue.depth.max(depth))
        .expect("it can be");
    let options = FreeblockOptions {
        block: Sectors::new(16),
        hits,
        ..FreeblockOptions::default()
    };
    let workload = SyntheticSpec {
        count: None,
        ..SyntheticSpec::alike(1, 3, each)
    };
    let whole = Extent::new(Lba::ZERO, profile.geometry.capacity);
    let counts = [None, Some((whole, options))].map(|scan| {
        let (timeline, read) = simulate(&profile, scheduler, &workload, scan, |setup| {
            setup.stations[0].engine.depth = depth;
            setup.audit = false;
            setup.limit = Some(Nanos::from_secs(10));
        });
        (timeline.len(), read.borrow().stats)
    });
    ([counts[0].0, counts[1].0], counts[1].1)
}

/// Clients that read in order have what the drive reads ahead for them, and those that write have its buffer: they lose little.
#[test]
fn what_the_buffer_serves_leaves_no_gap() {
    let in_order = ProcessSpec {
        sequential_share: 0.95,
        size: SizeDistribution::Constant(Bytes(32 << 10)),
        ..ProcessSpec::default()
    };
    let writing = ProcessSpec {
        read_share: 0.5,
        ..ProcessSpec::default()
    };
    for (drive, scheduler, depth, each, percent) in [
        ("wd5000aaks", "noop", 1, &in_order, 97),
        ("wd5000aaks", "noop", 2, &in_order, 97),
        ("wd5000aaks", "sptf", 1, &in_order, 97),
        ("exos-x18", "sptf", 2, &in_order, 97),
        // What the buffer has taken is written when the drive sees fit, and the read behind that comes late.
        ("exos-x18", "deadline", 1, &writing, 88),
        ("exos-x18", "sptf", 2, &writing, 97),
    ] {
        let ([alone, beside], stats) = with_its_buffer(drive, scheduler, depth, each, Hits::Spared);
        assert!(
            beside * 100 > alone * percent,
            "{drive}, {scheduler}, depth {depth}: {beside} of {alone}"
        );
        assert!(stats.spared > 0);
    }
    // What is to be spared is a lot.
    let ([alone, beside], stats) =
        with_its_buffer("wd5000aaks", "noop", 2, &in_order, Hits::Ignored);
    assert!(beside * 3 < alone * 2, "{beside} of {alone}");
    assert_eq!(stats.spared, 0);
}

/// Random reads are no hits.
#[test]
fn random_reads_have_all_their_gaps() {
    let random = ProcessSpec::default();
    for drive in ["wd5000aaks", "exos-x18"] {
        let (_, stats) = with_its_buffer(drive, "sptf", 1, &random, Hits::Spared);
        assert!(stats.gaps > 500, "{drive}: {stats:?}");
        assert!(stats.spared * 100 < stats.gaps, "{drive}: {stats:?}");
    }
}

#[test]
fn with_endless_conservatism_the_others_see_no_difference() {
    let endless = FreeblockOptions {
        conservatism: Nanos::from_secs(1),
        ..FreeblockOptions::default()
    };
    let whole = Extent::new(Lba::ZERO, noisy().geometry.capacity);
    for scheduler in ["sptf", "sptf-sw60", "sstf", "deadline", "noop"] {
        let workload = ten(3, 3_000, 5_000);
        let (alone, _) = simulate(&noisy(), scheduler, &workload, None, |_| {});
        let scan = Some((whole, endless));
        let (beside, read) = simulate(&noisy(), scheduler, &workload, scan, |_| {});
        assert_eq!(alone, beside, "{scheduler}");
        assert_eq!(read.borrow().stats.blocks, 0);
    }
}

#[test]
fn without_noise_no_request_is_later_for_what_is_read_before_it() {
    let whole = Extent::new(Lba::ZERO, atlas(2).geometry.capacity);
    let workload = ten(5, 3_000, 5_000);
    let (alone, _) = simulate(&atlas(2), "noop", &workload, None, |_| {});
    let (beside, read) = simulate(
        &atlas(2),
        "noop",
        &workload,
        Some((whole, FreeblockOptions::default())),
        |_| {},
    );
    let ends = |timeline: &Timeline| timeline.last().expect("some").2.as_nanos() as f64;
    let ratio = ends(&beside) / ends(&alone);
    assert!(ratio < 1.001, "{ratio}");
    let stats = read.borrow().stats;
    // A third of the time is rotation; some of it is used. No margin is left: a platter followed to some hundred
    // nanoseconds misses a sector now and then.
    assert!(stats.before > 1_000 && stats.blocks > 100_000, "{stats:?}");
}

#[test]
fn every_block_is_read_once_whatever_fails() {
    for (seed, block) in [
        (1, 1),
        (2, 1),
        (3, 16),
        (4, 1),
        (5, 1),
        (6, 1),
        (7, 1),
        (8, 1),
    ] {
        let range = Extent::at(1_000, 16_000);
        let options = FreeblockOptions {
            block: Sectors::new(block),
            ..FreeblockOptions::default()
        };
        let mut theirs = BTreeMap::new();
        let mut watch = |_: Time, _: Member, seen: Seen<'_>| {
            if let Seen::Command(Command::Finish(done)) = seen
                && done.request.op.is_read()
                && done.outcome == Outcome::Done
            {
                let extent = done.request.extent;
                for sector in extent.start.get()..extent.end().get() {
                    *theirs.entry(sector).or_default() += 1;
                }
            }
        };
        let at = |seconds: u64| Time::ZERO + Nanos::from_secs(seconds);
        let bad = |start, len| Fault::Unreadable {
            extent: Extent::at(start, len),
            retries: 2,
        };
        // The observer of `simulate` is replaced: this one counts.
        let profile = noisy();
        let model = Arc::new(Model::new(&profile));
        let spec: Spec = "sptf".parse().expect("registered");
        let built = spec.build(Some(Arc::clone(&model))).expect("built");
        let workload = SyntheticSpec {
            processes: ten(seed, 1, 64)
                .processes
                .into_iter()
                .map(|one| ProcessSpec {
                    read_share: 1.0,
                    ..one
                })
                .collect(),
            count: Some(30_000),
            seed,
        };
        let capacity = profile.geometry.capacity;
        let mut source = Synthetic::new(&workload, capacity, 512).expect("in range");
        let read = Rc::new(RefCell::new(Read::default()));
        let mut setup = Setup::new(Drive::new(&profile, 1), config(), built, &mut source);
        setup.audit = true;
        setup.timeout = Some(Nanos::from_millis(500));
        setup.observer = Some(&mut watch);
        setup.orders = vec![(
            at(5),
            Order::Swap {
                member: Member::default(),
                lane: Lane(0),
                text: "sstf".to_owned(),
                scheduler: "sstf"
                    .parse::<Spec>()
                    .unwrap()
                    .build(Some(Arc::clone(&model)))
                    .unwrap(),
            },
        )];
        setup.stations[0].faults = vec![
            (at(0), bad(2_000, 1)),
            (at(0), bad(7_777, 3)),
            (at(0), bad(16_990, 20)),
            (at(1), Fault::LoseNext),
            (at(2), Fault::Stall(Nanos::from_millis(900))),
            (at(3), Fault::LoseNext),
        ];
        let scan = Freeblock::new(model, capacity, range, options).expect("it turns");
        let counted = Counted {
            scan,
            read: Rc::clone(&read),
            again: 0,
        };
        setup.stations[0].background = Some(Box::new(counted));
        run(setup).expect("runs");
        let read = read.borrow();
        let stats = read.stats;
        if block == 1 {
            assert_eq!(read.left, 0, "{stats:?}");
            assert_eq!(wrong(&read, range, &theirs), Vec::<u64>::new());
            assert!(!read.unreadable.is_empty());
            let unreadable = read.unreadable.len() as u64;
            let counted = stats.blocks + stats.read_by_others + unreadable;
            assert_eq!(counted, range.len.get(), "each counts once: {stats:?}");
            for lba in &read.unreadable {
                let sector = lba.get();
                let bad = [2_000..2_001, 7_777..7_780, 16_990..17_010];
                assert!(bad.iter().any(|bad| bad.contains(&sector)), "{sector}");
            }
        } else {
            // Blocks on two tracks are left.
            assert!(read.left < 60, "{stats:?}");
        }
        assert!(stats.with > 0 && stats.before > 0, "{stats:?}");
    }
}

/// The front of a request has more than what is wanted. What cannot be read there need not be that.
#[test]
fn a_block_is_not_unreadable_for_what_is_read_along_with_it() {
    let (wanted, bad) = (Extent::at(100_000, 1), Extent::at(100_004, 1));
    let mut workload = ten(1, 2_000, 5_000);
    for one in &mut workload.processes {
        one.read_share = 1.0;
    }
    // Reads of the eight sectors from 100,016 on, and others.
    workload.processes[0].range = Some((Bytes(100_016 * 512), Bytes(100_024 * 512)));
    let options = FreeblockOptions {
        // They are hits from the second time on.
        hits: Hits::Ignored,
        ..FreeblockOptions::default()
    };
    let scan = Some((wanted, options));
    let (_, read) = simulate(&atlas(2), "noop", &workload, scan, |setup| {
        setup.stations[0].faults = vec![(
            Time::ZERO,
            Fault::Unreadable {
                extent: bad,
                retries: 0,
            },
        )];
    });
    let read = read.borrow();
    assert!(read.stats.with > 0 && read.left == 0, "{:?}", read.stats);
    assert_eq!(read.unreadable, []);
    assert_eq!(read.times.get(&100_000), Some(&1));
}

/// A sector that cannot be read can be when it has been written. It is not unreadable then, whether the scan reads it, because it
/// is wanted again, or somebody else.
#[test]
fn what_could_not_be_read_is_not_unreadable_when_it_has_been_read() {
    let bad = Extent::at(1_000, 8);
    let scan = Some((Extent::at(900, 1_000), FreeblockOptions::default()));
    let mended = ten(2, 40_000, 8);
    let faults = |setup: &mut Setup<'_>| {
        setup.stations[0].faults = vec![(
            Time::ZERO,
            Fault::Unreadable {
                extent: bad,
                retries: 0,
            },
        )];
    };
    let (_, read) = simulate(&atlas(2), "noop", &mended, scan, faults);
    let read = read.borrow();
    assert!(read.wanted_again > 0, "{:?}", read.stats);
    assert_eq!((read.left, &read.unreadable), (0, &vec![]));
    let counted = read.stats.blocks + read.stats.read_by_others;
    assert_eq!(counted, 1_000, "each counts once: {:?}", read.stats);
}

/// A gap somewhere: the head behind one request, and another one.
fn gap(
    model: &Model,
    random: &mut Pcg64,
    around: u64,
    reach: u64,
) -> Gap<<Model as Positioning>::Place> {
    let mut lba = || around + random.next_u64() % reach;
    let (from, to) = (Extent::at(lba(), 8), Extent::at(lba(), 16));
    let free = Time::from_nanos(1_000_000_000 + random.next_u64() % 6_000_000);
    let source = Head {
        place: model.left_by(from, Op::Read),
        free,
    };
    Gap {
        source,
        sent: free - Nanos::from_millis(2),
        then: free,
        op: if random.next_u64().is_multiple_of(3) {
            Op::Write
        } else {
            Op::Read
        },
        extent: to,
    }
}

/// The most wanted blocks of any track that can be read and left in time: all tracks are looked at, all pieces, and all ends.
fn most(
    model: &Model,
    wanted: &Wanted,
    gap: &Gap<<Model as Positioning>::Place>,
    margin: Nanos,
) -> u64 {
    let place = model.start(gap.extent);
    let (from, to) = (model.track(gap.source.place), model.track(place));
    let last = model.track(model.end(gap.extent));
    let own = model.predict_behind(&gap.source, gap.sent, place, gap.op);
    let begins = gap.source.free + own.positioning();
    let whole = model.follow(&gap.source, gap.sent, gap.extent, gap.op);
    if !whole.on_medium {
        return 0;
    }
    let alone = whole.head.free;
    let turn = model.turn().expect("it turns");
    let mut most = 0;
    for cylinder in 0..model.cylinders() {
        if wanted.most_on(Cylinder(cylinder)) == 0 {
            continue;
        }
        for head in 0..model.heads() {
            let track = Track {
                cylinder: Cylinder(cylinder),
                head: headtime_units::Head(head),
            };
            if track == from || (track == last && track != to) {
                continue;
            }
            let arrives = model.arrives(&gap.source, gap.sent, track, Op::Read) + margin;
            let mut passes: Vec<Pass> = Vec::new();
            if arrives < begins {
                let span = (begins - arrives).min(turn);
                model.passing(track, arrives, span, &mut |pass| passes.push(pass));
            }
            for pass in passes {
                if track == to {
                    if gap.op.is_read() && pass.extent.end() == gap.extent.start {
                        let here = wanted.within(pass.extent).map_or(0, |(count, _)| count);
                        most = most.max(here);
                    }
                    continue;
                }
                for len in 1..=pass.extent.len.get() {
                    let part = Extent::new(pass.extent.start, Sectors::new(len));
                    let Some((count, extent)) = wanted.within(part) else {
                        continue;
                    };
                    let first = model.follow(&gap.source, gap.sent, extent, Op::Read);
                    let comes = model.arrives(&first.head, gap.then, to, gap.op) + margin;
                    let then = model.follow(&first.head, gap.then, gap.extent, gap.op);
                    if comes <= begins && then.head.free <= alone {
                        most = most.max(count);
                    }
                }
            }
        }
    }
    most
}

/// Holds searches against all that there is: on a drive, for blocks of a size, of which pieces of some lengths are wanted within some
/// sectors. Returns how often something was found, and how often less than there was.
fn against_all(
    profile: &Profile,
    block: u64,
    (pieces, longest): (u32, u64),
    reach: u64,
    rounds: u64,
) -> (u32, u32) {
    let model = Model::new(profile);
    let capacity = profile.geometry.capacity;
    let mut random = Pcg64::seed_from_u64(11);
    let (mut found, mut less) = (0, 0);
    for round in 0..rounds {
        let around = random.next_u64() % (capacity.get() - 2 * reach);
        let mut wanted = Wanted::none(&model, capacity, Sectors::new(block));
        for _ in 0..pieces {
            let start = around + random.next_u64() % reach;
            wanted.add(&model, Extent::at(start, random.next_u64() % longest));
        }
        // Some of it has been read since.
        for _ in 0..pieces / 4 {
            let start = around + random.next_u64() % reach;
            wanted.take(&model, Extent::at(start, random.next_u64() % longest));
        }
        let gap = gap(&model, &mut random, around, reach);
        let margin = Nanos::from_micros(100 * (round % 4));
        let search = Search {
            model: &model,
            wanted: &wanted,
            conservatism: margin,
            limits: Limits::Outside,
            prefer: Prefer::Blocks,
            rest: false,
            merged_max: Sectors::new(4_096),
            turn: model.turn().expect("it turns"),
        };
        let (pick, steps) = search.find(&gap, u64::MAX);
        let got = pick.map_or(0, |pick| pick.blocks);
        let most = most(&model, &wanted, &gap, margin);
        assert!(got <= most, "{got} of {most}: {pick:?}");
        // A piece that does not fit is cut at its end until it does, which may be a sector too much.
        assert!(got + 2 >= most, "{got} of {most} after {steps}: {gap:?}");
        less += u32::from(got < most);
        found += u32::from(got > 0);
        // Who may take no step finds nothing, and who may take some finds no more than is there.
        assert!(
            search
                .find(&gap, 0)
                .0
                .is_none_or(|pick| pick.join == Join::With)
        );
    }
    (found, less)
}

#[test]
fn a_search_without_limits_finds_the_most_there_is() {
    // Scattered pieces not far from each other, here and there a whole track.
    let (found, less) = against_all(&atlas(2), 1, (12, 300), 300_000, 60);
    assert!(found > 25 && less < 10, "{found}, {less} with less");
}

#[test]
fn a_search_of_what_a_scan_has_left_finds_the_most_there_is() {
    let (found, less) = against_all(&atlas(2), 1, (400, 6), 2_000_000, 40);
    assert!(found > 25 && less < 4, "{found}, {less} with less");
}

#[test]
fn a_search_for_blocks_finds_the_most_there_is_on_other_drives() {
    let by_name = |name| profile::by_name(name).expect("there is such a one");
    let (found, less) = against_all(&atlas(2), 16, (100, 100), 1_000_000, 40);
    assert!(found > 20 && less < 6, "{found}, {less} with less");
    for name in ["hp-c2247a", "plausible-3", "plausible-8"] {
        let (found, less) = against_all(&by_name(name), 4, (60, 60), 200_000, 20);
        assert!(found > 8 && less < 5, "{name}: {found}, {less} with less");
    }
    let (found, less) = against_all(&by_name("exos-x18"), 128, (200, 1_000), 20_000_000, 14);
    assert!(found > 4 && less < 3, "{found}, {less} with less");
}

#[test]
fn a_search_finds_the_most_there_is_where_the_arm_waits_for_the_bus() {
    // The arm stays until all has been sent, five times as long as the sectors take to pass.
    let atlas = profile::by_name("atlas10k").expect("shipped");
    let (found, less) = against_all(&atlas, 1, (12, 300), 300_000, 30);
    assert!(found > 12 && less < 15, "{found}, {less} with less");
    let (found, less) = against_all(&atlas, 1, (400, 6), 2_000_000, 45);
    assert!(found > 15 && less < 6, "{found}, {less} with less");
}

#[test]
fn no_pick_is_alone_on_a_track_of_a_request_that_goes_over_the_end_of_one() {
    let model = Model::new(&atlas(2));
    let capacity = atlas(2).geometry.capacity;
    let mut random = Pcg64::seed_from_u64(13);
    let mut elsewhere = 0;
    for _ in 0..300 {
        let around = random.next_u64() % (capacity.get() - 400_000);
        let mut gap = gap(&model, &mut random, around, 300_000);
        let start = model.layout().track_extent_of(gap.extent.start).end();
        gap.extent = Extent::new(start - Sectors::new(8), Sectors::new(16));
        let last = model.track(model.end(gap.extent));
        // Nothing is wanted on its first track, all on its second one, and a little elsewhere.
        let mut wanted = Wanted::none(&model, capacity, Sectors::new(1));
        wanted.add(&model, model.addresses(last));
        wanted.add(&model, Extent::at(around + random.next_u64() % 300_000, 40));
        let search = Search {
            model: &model,
            wanted: &wanted,
            conservatism: Nanos::from_micros(100),
            limits: Limits::Outside,
            prefer: Prefer::Blocks,
            rest: false,
            merged_max: Sectors::new(4_096),
            turn: model.turn().expect("it turns"),
        };
        if let (Some(pick), _) = search.find(&gap, u64::MAX) {
            assert_ne!(model.track(model.start(pick.extent)), last, "{pick:?}");
            elsewhere += 1;
        }
    }
    assert!(elsewhere > 20, "{elsewhere}");
}

#[test]
fn there_is_no_gap_before_a_write_that_ends_in_the_drives_buffer() {
    let cached = atlas(2).with(|spec| spec.cache.write_back = WriteBack::Full);
    let (on_medium, cached) = (atlas(2), cached.expect("it can be"));
    let mut found = [0, 0];
    for (profile, found) in [&on_medium, &cached].into_iter().zip(&mut found) {
        let model = Model::new(profile);
        let capacity = profile.geometry.capacity;
        let mut wanted = Wanted::none(&model, capacity, Sectors::new(1));
        wanted.add(&model, Extent::new(Lba::ZERO, capacity));
        let mut random = Pcg64::seed_from_u64(14);
        for _ in 0..50 {
            let mut gap = gap(&model, &mut random, 0, capacity.get() - 16);
            gap.op = Op::Write;
            let search = Search {
                model: &model,
                wanted: &wanted,
                conservatism: Nanos::from_micros(300),
                limits: Limits::Outside,
                prefer: Prefer::Blocks,
                rest: false,
                merged_max: Sectors::new(4_096),
                turn: model.turn().expect("it turns"),
            };
            *found += u32::from(search.find(&gap, u64::MAX).0.is_some());
        }
    }
    assert!(found[0] > 20 && found[1] == 0, "{found:?}");
}

/// A pick's share of its track, in thousandths, with what it counts that nothing else is wanted there.
fn share(model: &Model, wanted: &Wanted, pick: Pick) -> u64 {
    let track = model.track(model.start(pick.extent));
    let whole = model.addresses(track).len.get();
    pick.blocks * 1_000 / whole
        + if pick.blocks == wanted.on_track(track) {
            20
        } else {
            0
        }
}

#[test]
fn who_prefers_tracks_gets_more_of_a_track_and_who_prefers_blocks_more_blocks() {
    let model = Model::new(&atlas(2));
    let capacity = atlas(2).geometry.capacity;
    let mut random = Pcg64::seed_from_u64(12);
    let (mut others, mut finished) = (0, 0);
    for _ in 0..400 {
        // Rests of tracks.
        let around = random.next_u64() % (capacity.get() - 400_000);
        let mut wanted = Wanted::none(&model, capacity, Sectors::new(1));
        for _ in 0..600 {
            let start = around + random.next_u64() % 300_000;
            wanted.add(&model, Extent::at(start, random.next_u64() % 12));
        }
        let gap = gap(&model, &mut random, around, 300_000);
        let find = |prefer| {
            let search = Search {
                model: &model,
                wanted: &wanted,
                conservatism: Nanos::from_micros(300),
                limits: Limits::Outside,
                prefer,
                rest: false,
                merged_max: Sectors::new(4_096),
                turn: model.turn().expect("it turns"),
            };
            search.find(&gap, u64::MAX).0
        };
        let (blocks, tracks) = (find(Prefer::Blocks), find(Prefer::Tracks));
        let (Some(blocks), Some(tracks)) = (blocks, tracks) else {
            assert_eq!(blocks, tracks);
            continue;
        };
        assert!(blocks.blocks >= tracks.blocks, "{blocks:?} {tracks:?}");
        let (less, more) = (
            share(&model, &wanted, blocks),
            share(&model, &wanted, tracks),
        );
        // Rounding.
        assert!(more + 1 >= less, "{blocks:?} {tracks:?}");
        let track = model.track(model.start(tracks.extent));
        finished += u64::from(tracks.blocks == wanted.on_track(track));
        others += u64::from(blocks.extent != tracks.extent);
    }
    assert!(others > 20 && finished > 50, "{others} {finished}");
}

#[test]
fn the_firmware_reads_on_both_sides_of_the_end_of_a_track_and_the_request_is_not_late() {
    let profile = atlas(2).with(|spec| {
        spec.access.on_track_at_once = true;
        spec.cache = Default::default();
        spec.bus = Default::default();
    });
    let model = Model::new(&profile.expect("it can be"));
    let capacity = atlas(2).geometry.capacity;
    let mut random = Pcg64::seed_from_u64(12);
    let mut gained = 0;
    for round in 0..100 {
        let around = random.next_u64() % (capacity.get() - 400_000);
        let gap = gap(&model, &mut random, around, 300_000);
        let alone = model.follow(&gap.source, gap.sent, gap.extent, gap.op);
        let picked = |commands: u32| {
            let mut wanted = Wanted::none(&model, capacity, Sectors::new(1));
            wanted.add(&model, Extent::at(around, 400_000));
            let (mut gap, mut sum) = (gap, 0);
            for command in 0..commands {
                let search = Search {
                    model: &model,
                    wanted: &wanted,
                    conservatism: Nanos::ZERO,
                    limits: Limits::Firmware,
                    prefer: Prefer::Blocks,
                    rest: command > 0,
                    merged_max: Sectors::new(4_096),
                    turn: model.turn().expect("it turns"),
                };
                let Some(pick) = search.find(&gap, u64::MAX).0 else {
                    break;
                };
                sum += pick.blocks;
                wanted.take(&model, pick.extent);
                if pick.join == Join::With {
                    let merged = pick.extent.len + gap.extent.len;
                    gap.extent = Extent::new(pick.extent.start, merged);
                } else {
                    let behind = model.follow(&gap.source, gap.sent, pick.extent, Op::Read);
                    gap.source = behind.head;
                    gap.then = gap.source.free;
                }
                if !pick.more {
                    break;
                }
            }
            let behind = model.follow(&gap.source, gap.sent, gap.extent, gap.op);
            assert!(behind.head.free <= alone.head.free, "{round}: {gap:?}");
            sum
        };
        gained += u32::from(picked(2) > picked(1));
    }
    // A gap is a part of a turn, and a track's end is somewhere.
    assert!(gained > 15, "{gained}");
}

#[test]
fn a_flush_does_not_wait_for_what_is_read_in_gaps() {
    let mut sync = ten(9, 2_000, 5_000);
    for one in &mut sync.processes[..3] {
        one.read_share = 0.0;
        one.write_flags = Flags::PREFLUSH;
    }
    let whole = Extent::new(Lba::ZERO, atlas(2).geometry.capacity);
    let (alone, _) = simulate(&atlas(2), "noop", &sync, None, |_| {});
    let scan = Some((whole, FreeblockOptions::default()));
    let (beside, read) = simulate(&atlas(2), "noop", &sync, scan, |_| {});
    let ends = |timeline: &Timeline| timeline.last().expect("some").2.as_nanos() as f64;
    let ratio = ends(&beside) / ends(&alone);
    assert!(ratio < 1.005, "{ratio}");
    assert!(read.borrow().stats.blocks > 0);
}

#[test]
fn in_the_firmware_more_is_read_than_from_outside() {
    let whole = Extent::new(Lba::ZERO, atlas(2).geometry.capacity);
    let workload = ten(7, 3_000, 5_000);
    let blocks = |limits, picks| {
        let options = FreeblockOptions {
            limits,
            picks,
            ..FreeblockOptions::default()
        };
        let (_, read) = simulate(
            &atlas(2),
            "sptf-sw60",
            &workload,
            Some((whole, options)),
            |_| {},
        );
        let stats = read.borrow().stats;
        assert!(stats.gaps >= stats.with && stats.gaps > 0);
        stats.blocks as f64
    };
    let outside = blocks(Limits::Outside, 1);
    assert!(blocks(Limits::Firmware, 1) > 1.05 * outside);
    // On a disk of which all is wanted the first pick leaves no time for another.
    assert!(blocks(Limits::Outside, 3) >= outside);
}

/// What the log has of a run with a scan makes the same run without one.
#[test]
fn picks_are_in_the_log() {
    let whole = Extent::new(Lba::ZERO, atlas(2).geometry.capacity);
    let mut joined = 0;
    let mut watch = |_: Time, _: Member, seen: Seen<'_>| {
        if let Seen::Event(Event::Joined { arrival, .. }) = seen {
            assert!(matches!(arrival.id, RequestId::Background(_)));
            joined += 1;
        }
    };
    let profile = atlas(2);
    let model = Arc::new(Model::new(&profile));
    let spec: Spec = "sptf".parse().expect("registered");
    let built = spec.build(Some(Arc::clone(&model))).expect("built");
    let workload = ten(1, 500, 5_000);
    let mut source = Synthetic::new(&workload, profile.geometry.capacity, 512).expect("in range");
    let mut setup = Setup::new(Drive::new(&profile, 1), config(), built, &mut source);
    setup.observer = Some(&mut watch);
    let capacity = profile.geometry.capacity;
    let scan = Freeblock::new(model, capacity, whole, FreeblockOptions::default()).expect("turns");
    setup.stations[0].background = Some(Box::new(scan));
    run(setup).expect("runs");
    assert!(joined > 300, "{joined}");
}

/// A Cheetah 18LP of which a sector is on a spare place elsewhere.
fn worn(sector: Lba) -> Profile {
    let shipped = profile::by_name("cheetah18lp").expect("shipped");
    let layout = Layout::new(&shipped);
    let (zone, from) = layout.home_of(sector).expect("at home");
    let is_spare = Layout::zone_spares(&shipped, &shipped.layout.zones[zone]);
    let to = (from + 1..layout.places_in_zone(zone)).find(|place| is_spare(*place));
    let to = to.expect("the zone has spares");
    let changed = shipped.with(|spec| spec.layout.zones[zone].remaps = vec![(from, to)]);
    changed.expect("the place is free")
}

/// A run of blocks that begins at a remapped one is not counted otherwise than one that begins before it.
#[test]
fn a_remapped_block_counts_alike_however_it_is_added_and_taken() {
    let sector = Lba::new(100_000);
    let profile = worn(sector);
    let model = Model::new(&profile);
    let track = |lba: Lba| model.track(model.start(Extent::new(lba, Sectors::new(1))));
    let home = track(sector - Sectors::new(1));
    assert_ne!(track(sector), home, "it is elsewhere");
    let before = Extent::at(sector.get() - 20, 20);
    let alone = Extent::new(sector, Sectors::new(1));
    let from = Extent::at(sector.get(), 20);
    let all = Extent::at(sector.get() - 20, 40);
    let addresses = model.addresses(home);
    let mut wanted = Wanted::none(&model, profile.geometry.capacity, Sectors::new(1));
    for (adds, takes) in [
        (&[all][..], &[from, before][..]),
        (&[from, before], &[all]),
        (&[all], &[alone, all]),
        (&[alone], &[all]),
        (&[all], &[before, alone, from]),
    ] {
        let steps = adds.iter().map(|add| (add, true));
        for (extent, on) in steps.chain(takes.iter().map(|take| (take, false))) {
            match on {
                true => wanted.add(&model, *extent),
                false => wanted.take(&model, *extent),
            };
            let here = wanted.blocks_in(addresses).count() as u64;
            assert_eq!(wanted.on_track(home), here, "{extent} {on}");
        }
        assert_eq!(wanted.left(), 0);
    }
}
