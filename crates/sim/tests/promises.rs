//! Scans with promises: the estimated p99 without the scan, the blocks read by a date, and the verdict.

use headtime_disk::Model;
use headtime_disk::drive::{Drive, Fault};
use headtime_disk::profile::{self, Profile};
use headtime_engine::{
    Approach, Arrival, Background, BackgroundLayer, Command, Config, Engine, Finished, Join, Lane,
    Member, Outcome, Seen, SharedCell,
};
use headtime_gaps::{
    ClientWaits, DriveQueue, Freeblock, FreeblockOptions, FreeblockStats, Prefer, Promised, Verdict,
};
use headtime_sched::Spec;
use headtime_sim::{Setup, run};
use headtime_testkit::cases;
use headtime_units::{Bytes, Extent, Lba, Nanos, Sectors, Time};
use headtime_workload::{Pacing, ProcessSpec, Synthetic, SyntheticSpec, TimeDistribution};
use std::sync::Arc;

/// No retried reads, and no long waits.
const NONE: [f64; 2] = [0.0; 2];

/// Shares of retried reads and of long waits in the shipped profile.
const LATE: [f64; 2] = [0.015, 0.0005];

/// The drive with shares of retried reads and of long waits.
fn drive(late: [f64; 2]) -> Profile {
    let changed = profile::by_name("exos-x18").expect("shipped").with(|spec| {
        [spec.noise.retried_reads, spec.noise.long_waits] = late;
    });
    changed.expect("it can be")
}

/// Arrival process of the clients.
#[derive(Clone, Copy, Debug)]
enum Load {
    /// Requests per second in all, at any speed of the disk.
    Open(f64),
    /// Number of clients, and their mean think time in milliseconds.
    Closed(u32, u64),
}

fn clients(load: Load, seed: u64) -> SyntheticSpec {
    let (count, pacing) = match load {
        Load::Open(rate) => {
            let mean = Nanos::from_millis_f64(8.0e3 / rate);
            let gap = TimeDistribution::Exponential(mean);
            (
                8,
                Pacing::Open {
                    gap,
                    outstanding: None,
                },
            )
        }
        Load::Closed(count, think) => {
            let think = match think {
                0 => TimeDistribution::Constant(Nanos::ZERO),
                think => TimeDistribution::Exponential(Nanos::from_millis(think)),
            };
            let outstanding = 1;
            (count, Pacing::Closed { think, outstanding })
        }
    };
    let each = ProcessSpec {
        pacing,
        ..ProcessSpec::default()
    };
    SyntheticSpec::alike(seed, count, &each)
}

/// Results of a scan.
#[derive(Clone, Debug, Default, PartialEq)]
struct Read {
    /// The blocks that were delivered, by their first sectors, in their order.
    blocks: Vec<u64>,
    stats: FreeblockStats,
    waits: ClientWaits,
    changes: Vec<(Time, Verdict)>,
    left: u64,
    /// Time at which the last block was read; [`Time::NEVER`] if some block was not read.
    ended: Time,
    /// Blocks that could not be read, and commands for them after that was known.
    unreadable: usize,
    in_vain: u64,
}

struct Watched {
    scan: SharedCell<Freeblock<Arc<Model>>>,
    blocks: SharedCell<Vec<u64>>,
    /// True once the engine has asked the scan. Each scan is woken once, so that scans with and without promises are
    /// offered the same requests.
    is_awake: bool,
    in_vain: SharedCell<u64>,
}

impl BackgroundLayer for Watched {
    type Under = SharedCell<Freeblock<Arc<Model>>>;

    fn under(&self) -> &Self::Under {
        &self.scan
    }

    fn under_mut(&mut self) -> &mut Self::Under {
        &mut self.scan
    }

    fn joins(
        &mut self,
        now: Time,
        engine: &Engine,
        approach: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        self.is_awake = true;
        let asked = self.scan.joins(now, engine, approach)?;
        let extent = asked.0.extent;
        let is_known = |block: Lba| extent.contains(block);
        *self.in_vain.lock() += u64::from(self.scan.lock().unreadable().any(is_known));
        Some(asked)
    }

    fn next_wakeup(&self, engine: &Engine) -> Option<Time> {
        match self.is_awake {
            false => Some(Time::ZERO),
            true => self.scan.next_wakeup(engine),
        }
    }

    fn finished(&mut self, now: Time, done: &Finished, data: Option<&[u8]>) {
        if done.outcome == Outcome::Done {
            let scan = self.scan.lock();
            let blocks = scan.asked(done.id).iter().map(|lba| lba.get());
            self.blocks.lock().extend(blocks);
        }
        self.scan.finished(now, done, data);
    }
}

/// A run.
#[derive(Clone, Copy)]
struct Run {
    load: Load,
    /// Shares of retried reads and of long waits.
    late: [f64; 2],
    seed: u64,
    scheduler: &'static str,
    depth: u32,
    seconds: u64,
    /// Size of the wanted pieces in GB, and the promise of the scan. `None` without a scan.
    scan: Option<(u64, Option<Promised>)>,
    /// True if a sector in every hundred blocks is unreadable.
    is_worn: bool,
    queue: DriveQueue,
}

/// Number, end and latency of each request, in order of completion.
type Timeline = Vec<(u64, Time, Nanos)>;

impl Run {
    fn make(&self) -> (Read, Timeline) {
        let profile = drive(self.late);
        let model = Arc::new(Model::new(&profile));
        let spec: Spec = self.scheduler.parse().expect("registered");
        let built = spec.build(Some(Arc::clone(&model))).expect("built");
        let capacity = profile.geometry.capacity;
        let workload = clients(self.load, self.seed);
        let mut source = Synthetic::new(&workload, capacity, 512).expect("in range");
        let mut timeline = Vec::new();
        let config = Config {
            depth: self.depth,
            merge: false,
            ..Config::default()
        };
        let mut watch = |now: Time, _: Member, seen: Seen<'_>| {
            if let Seen::Command(Command::Finish(done)) = seen {
                timeline.push((done.id, now, now - done.request.arrival));
            }
        };
        let mut setup = Setup::new(Drive::new(&profile, 1), config, built, &mut source);
        setup.audit = true;
        setup.observer = Some(&mut watch);
        setup.limit = Some(Nanos::from_secs(self.seconds));
        let mut watched = None;
        if let Some((gigabytes, promised)) = self.scan {
            let options = FreeblockOptions {
                block: Sectors::new(128),
                prefer: Prefer::Tracks,
                queue: self.queue,
                ..FreeblockOptions::default()
            };
            // Pieces all over the disk, so that every gap has wanted blocks.
            let pieces: Vec<Extent> = (0..gigabytes * 10)
                .map(|piece| {
                    let at = capacity.get() / (gigabytes * 10) * piece / 128 * 128;
                    Extent::at(at, 100_000_000 / 512 / 128 * 128)
                })
                .collect();
            let worn: Vec<u64> = pieces
                .iter()
                .flat_map(|piece| (piece.start.get()..piece.end().get()).step_by(128 * 100))
                .map(|lba| lba + 128 * 50)
                .collect();
            let scan = Freeblock::of(model, capacity, pieces, options).expect("it turns");
            let scan = match promised {
                Some(promised) => scan.with_promise(promised, Sectors::new(2048)),
                None => scan,
            };
            let scan = SharedCell::new(scan);
            let blocks = SharedCell::new(Vec::new());
            let in_vain = SharedCell::new(0);
            watched = Some((scan.clone(), blocks.clone(), in_vain.clone()));
            if self.is_worn {
                let worn = worn.iter().map(|lba| Extent::at(*lba, 1));
                let worn = worn.map(|extent| Fault::Unreadable { extent, retries: 2 });
                setup.stations[0].faults = worn.map(|fault| (Time::ZERO, fault)).collect();
            }
            setup.stations[0].background = Some(Box::new(Watched {
                scan,
                blocks,
                is_awake: false,
                in_vain,
            }));
        }
        run(setup).expect("runs");
        let read = watched.map(|(scan, blocks, in_vain)| {
            let scan = scan.lock();
            let (waits, changes) = scan.promise().unwrap_or_default();
            Read {
                blocks: blocks.lock().clone(),
                stats: scan.stats(),
                waits,
                changes: changes.to_vec(),
                left: scan.wanted().left(),
                ended: scan.tenths()[9],
                unreadable: scan.unreadable().count(),
                in_vain: *in_vain.lock(),
            }
        });
        (read.unwrap_or_default(), timeline)
    }
}

fn promised(seconds: u64, p99: Option<f64>) -> Promised {
    Promised {
        finish_within: Some(Nanos::from_secs(seconds)),
        passed: Nanos::ZERO,
        p99,
        cycle: Nanos::from_secs(86_400),
        unit: Sectors::new(8_192),
        patience: Nanos::from_millis(2),
    }
}

/// Latency in ms that 99 % of the requests completed by `until` did not exceed.
fn p99(timeline: &Timeline, until: Time) -> f64 {
    let ended = timeline.iter().filter(|(_, at, _)| *at <= until);
    let mut latencies: Vec<Nanos> = ended.map(|(_, _, latency)| *latency).collect();
    latencies.sort_unstable();
    let at = (latencies.len() * 99).div_ceil(100) - 1;
    latencies[at].as_millis_f64()
}

/// docs/MODEL.md states the same tolerance.
#[test]
fn the_p99_without_a_scan_is_that_of_the_same_seed_without_one() {
    let all = [
        (NONE, Load::Open(20.0), "sptf-sw60", 2, 10, 3.0),
        (NONE, Load::Open(40.0), "deadline", 1, 8, 5.0),
        (NONE, Load::Open(40.0), "sptf-sw60", 2, 12, 5.0),
        (NONE, Load::Closed(4, 100), "sptf-sw60", 2, 8, 5.0),
        (NONE, Load::Closed(8, 0), "noop", 2, 25, 8.0),
        (LATE, Load::Open(20.0), "sptf-sw60", 2, 10, 3.0),
        (LATE, Load::Open(40.0), "deadline", 1, 8, 5.0),
        (LATE, Load::Open(40.0), "sptf-sw60", 2, 12, 5.0),
        (LATE, Load::Closed(4, 100), "sptf-sw60", 2, 8, 10.0),
        (LATE, Load::Closed(8, 0), "noop", 2, 25, 8.0),
    ];
    for (late, load, scheduler, depth, gigabytes, percent) in cases(6, all) {
        // The estimate is for scans with a bound.
        let scan = Some((gigabytes, Some(promised(200, Some(0.25)))));
        let run = Run {
            load,
            late,
            seed: 5,
            scheduler,
            depth,
            seconds: 200,
            scan,
            is_worn: false,
            queue: DriveQueue::Kept,
        };
        let (read, beside) = run.make();
        let (_, alone) = Run { scan: None, ..run }.make();
        let (with, without) = (p99(&beside, read.ended), p99(&alone, read.ended));
        let (said_with, said) = (read.waits.p99, read.waits.p99_without);
        let off = |said: Nanos, is: f64| 100.0 * (said.as_millis_f64() / is - 1.0);
        let text = format!(
            "{load:?} {scheduler}: {with} {without} {read_waits:?}",
            read_waits = read.waits
        );
        assert!(off(said_with, with).abs() < 1.0, "{text}");
        assert!(off(said, without).abs() < percent, "{text}");
        // There is something to be told apart.
        assert!(with > without * 1.06, "{text}");
    }
}

/// Ten gigabytes beside clients that always wait for something.
fn crowded(seconds: u64, p99: Option<f64>) -> Run {
    Run {
        load: Load::Closed(4, 20),
        late: NONE,
        seed: 7,
        scheduler: "sptf-sw60",
        depth: 2,
        seconds,
        scan: Some((10, Some(promised(seconds, p99)))),
        is_worn: false,
        queue: DriveQueue::Promised,
    }
}

#[test]
fn every_block_is_delivered_once_in_gaps_in_idle_time_and_outright() {
    let (read, _) = crowded(300, None).make();
    let stats = read.stats;
    assert!(
        stats.blocks_alone > 100 && stats.blocks_demanded > 1_000,
        "{stats:?}"
    );
    assert!(stats.before > 1_000, "{stats:?}");
    let mut blocks = read.blocks.clone();
    blocks.sort_unstable();
    blocks.dedup();
    assert_eq!(blocks.len(), read.blocks.len(), "one was delivered twice");
    let all = 10 * 10 * (100_000_000 / 512 / 128);
    // Blocks in the drive at the end are neither delivered nor left.
    let there = blocks.len() as u64 + read.left + stats.read_by_others;
    assert!(there <= all && there + 64 >= all, "{there} of {all}");
}

#[test]
fn a_promise_that_gaps_can_keep_leaves_the_clients_as_a_scan_without_one() {
    let run = Run {
        load: Load::Open(40.0),
        late: NONE,
        seconds: 60,
        scan: Some((5, None)),
        ..crowded(0, None)
    };
    let (unbound, timeline) = run.make();
    let month = Promised {
        cycle: Nanos::from_secs(60),
        ..promised(30 * 86_400, Some(0.05))
    };
    let bound = Run {
        scan: Some((5, Some(month))),
        ..run
    };
    let (read, beside) = bound.make();
    assert_eq!(read.stats, unbound.stats);
    assert!(read.blocks == unbound.blocks && timeline == beside);
    assert!(read.stats.blocks > 10_000);
}

#[test]
fn a_run_with_promises_comes_out_alike_each_time() {
    let run = crowded(40, Some(0.2));
    assert_eq!(run.make(), run.make());
}

#[test]
fn a_date_that_cannot_hold_is_said_at_once() {
    let (read, _) = crowded(20, None).make();
    // It learns for a hundredth of the time.
    let (at, verdict) = read.changes[1];
    assert_eq!(verdict, Verdict::Late, "{:?}", read.changes);
    assert!(at <= Time::ZERO + Nanos::from_millis(250), "{at}");
    assert!(read.left > 0);
}

#[test]
fn a_scan_that_ended_after_its_date_did_not_hold_it() {
    let run = Run {
        seconds: 400,
        scan: Some((2, Some(promised(10, None)))),
        ..crowded(0, None)
    };
    let (read, _) = run.make();
    assert!(read.ended < Time::ZERO + Nanos::from_secs(300));
    let (at, verdict) = read.changes.last().expect("it looked");
    assert_eq!(*verdict, Verdict::Late, "{:?}", read.changes);
    assert!(*at <= read.ended);
}

#[test]
fn what_is_known_to_be_unreadable_is_not_read_along() {
    let run = Run {
        is_worn: true,
        ..crowded(300, None)
    };
    let (read, _) = run.make();
    assert!(read.unreadable > 100 && read.stats.blocks_demanded > 1_000);
    assert_eq!(read.in_vain, 0, "of {}", read.unreadable);
}

#[test]
fn a_date_that_can_hold_does() {
    let run = Run {
        load: Load::Open(20.0),
        late: NONE,
        ..crowded(150, None)
    };
    let (read, _) = run.make();
    let verdicts: Vec<Verdict> = read.changes.iter().map(|(_, verdict)| *verdict).collect();
    assert_eq!(verdicts, [Verdict::Unknown, Verdict::Holds]);
    assert!(
        read.ended <= Time::ZERO + Nanos::from_secs(150),
        "{}",
        read.ended
    );
}

#[test]
fn clients_come_first_where_both_cannot_hold() {
    let (free, _) = crowded(200, None).make();
    let (bound, _) = crowded(200, Some(0.1)).make();
    let added = |read: &Read| {
        let ClientWaits {
            p99, p99_without, ..
        } = read.waits;
        p99.as_millis_f64() / p99_without.as_millis_f64() - 1.0
    };
    assert!(added(&free) > 0.3, "{}", added(&free));
    assert!(added(&bound) < 0.13, "{}", added(&bound));
    let said = |verdict| bound.changes.iter().any(|(_, said)| *said == verdict);
    assert!(
        said(Verdict::Late) || said(Verdict::Neither),
        "{:?}",
        bound.changes
    );
}

/// Ten gigabytes by a date beside clients of a drive that may have 32 commands.
fn deep(load: Load, p99: Option<f64>, seconds: u64, queue: DriveQueue) -> (Read, Timeline) {
    let run = Run {
        load,
        scheduler: "deadline",
        depth: 32,
        queue,
        ..crowded(seconds, p99)
    };
    run.make()
}

/// 50 MB/s are read beside the deep queue, 125 MB/s are not.
#[test]
fn for_a_date_that_reads_beside_a_deep_queue_do_not_keep_the_drive_has_few_commands() {
    let crowd = Load::Closed(12, 0);
    let (kept, busy) = deep(crowd, None, 200, DriveQueue::Kept);
    let (read, less) = deep(crowd, None, 200, DriveQueue::Promised);
    assert_eq!([kept.left, read.left], [0, 0]);
    assert!(kept.stats.before < 100, "{:?}", kept.stats);
    assert!(less.len() * 100 > busy.len() * 98, "{}", less.len());
    // Two commands at all times would cost clients a fifth of their rate.
    let (short, least) = deep(crowd, None, 200, DriveQueue::Short);
    assert!(short.stats.before > 3_000, "{:?}", short.stats);
    assert!(less.len() * 5 > least.len() * 6, "{}", least.len());

    let (kept, busy) = deep(crowd, None, 80, DriveQueue::Kept);
    assert!(kept.stats.before < 100, "{:?}", kept.stats);
    let (read, less) = deep(crowd, None, 80, DriveQueue::Promised);
    assert!(read.left == 0 && kept.left > 3_000, "{}", kept.left);
    // Which costs clients of their rate.
    assert!(less.len() * 10 < busy.len() * 9, "{}", less.len());
    // The drive has all its commands in the first half of the time.
    let before = |timeline: &Timeline| {
        let first = |(_, at, _): &&(u64, Time, Nanos)| *at < Time::ZERO + Nanos::from_secs(40);
        timeline.iter().take_while(first).count()
    };
    assert_eq!(before(&less), before(&busy));
}

#[test]
fn the_drive_keeps_its_queue_where_idle_time_suffices_or_nobody_may_wait_longer() {
    for (load, p99) in [
        (Load::Open(20.0), None),
        (Load::Closed(12, 0), Some(0.1)),
        (Load::Open(20.0), Some(0.1)),
    ] {
        let kept = deep(load, p99, 200, DriveQueue::Kept);
        assert!(
            deep(load, p99, 200, DriveQueue::Promised) == kept,
            "{load:?}"
        );
    }
}

/// Behind the commands of others a read gets less of the drive than its share.
#[test]
fn where_the_drive_keeps_its_queue_a_date_that_cannot_hold_is_said_soon() {
    let (read, _) = deep(Load::Closed(12, 0), Some(0.1), 200, DriveQueue::Promised);
    assert!(
        read.left > 0 && read.stats.blocks_demanded > 0,
        "{:?}",
        read.stats
    );
    let said: Vec<Verdict> = read.changes.iter().map(|(_, said)| *said).collect();
    let (first, _) = read.changes[1];
    assert!(!said.contains(&Verdict::Holds), "{:?}", read.changes);
    assert!(first < Time::ZERO + Nanos::from_secs(20), "{first}");
}

#[test]
#[ignore = "minutes; .ci/nightly"]
fn a_scan_that_is_over_gives_the_queue_back() {
    let crowd = Load::Closed(12, 0);
    let run = Run {
        load: crowd,
        scheduler: "deadline",
        depth: 32,
        queue: DriveQueue::Short,
        scan: Some((1, Some(promised(100, None)))),
        ..crowded(400, None)
    };
    let (read, timeline) = run.make();
    let (_, alone) = Run { scan: None, ..run }.make();
    assert_eq!(read.left, 0);
    let rate = |timeline: &Timeline, from: u64, to: u64| {
        let [from, to] = [from, to].map(|second| Time::ZERO + Nanos::from_secs(second));
        let there = timeline.iter().filter(|(_, at, _)| (from..to).contains(at));
        there.count() as f64 / (to - from).as_secs_f64()
    };
    let over = read.ended.as_nanos() / 1_000_000_000 + 2;
    assert!(over < 390, "{over}");
    let [before, after] = [(0, over - 4), (over, 400)]
        .map(|(from, to)| rate(&timeline, from, to) / rate(&alone, from, to));
    assert!(before < 0.8 && after > 0.95, "{before} {after}");
}

/// A thousandth of a drive, nearly without clients, and a generous date.
#[test]
fn a_disk_that_is_a_part_of_the_drive_that_is_believed_keeps_a_date_that_it_can() {
    let profile = drive(NONE);
    let model = Arc::new(Model::new(&profile));
    for (block, p99) in [(16, None), (128, None), (16, Some(0.05))] {
        let part = Sectors::new(profile.geometry.capacity.get() / 1_000 / 128 * 128);
        let options = FreeblockOptions {
            block: Sectors::new(block),
            ..FreeblockOptions::default()
        };
        let whole = Extent::new(Lba::ZERO, part);
        let scan = Freeblock::new(Arc::clone(&model), part, whole, options).expect("it turns");
        let scan = scan.with_promise(promised(1_200, p99), Sectors::new(2_048));
        let scan = SharedCell::new(scan);
        let mut workload = clients(Load::Open(0.05), 3);
        for one in &mut workload.processes {
            one.range = Some((Bytes(0), Bytes(1_000_000_000)));
        }
        let mut source = Synthetic::new(&workload, part, 512).expect("in range");
        let built = "sptf".parse::<Spec>().expect("registered");
        let built = built.build(Some(Arc::clone(&model))).expect("built");
        let config = Config {
            depth: 2,
            merge: false,
            ..Config::default()
        };
        let mut setup = Setup::new(Drive::new(&profile, 1), config, built, &mut source);
        setup.limit = Some(Nanos::from_secs(1_300));
        setup.stations[0].background = Some(Box::new(Watched {
            scan: scan.clone(),
            blocks: SharedCell::default(),
            is_awake: false,
            in_vain: SharedCell::default(),
        }));
        run(setup).expect("runs");
        let scan = scan.lock();
        let (_, changes) = scan.promise().expect("it was made");
        let text = format!("blocks of {block}, {p99:?}: {changes:?}");
        assert_eq!(scan.wanted().left(), 0, "{text}");
        let late = |(_, verdict): &(Time, Verdict)| verdict.is_late();
        assert!(!changes.iter().any(late), "{text}");
        // Nobody asks at first, so that nobody waits while it learns.
        let tenth = scan.tenths()[0];
        assert!(
            tenth < Time::ZERO + Nanos::from_secs(12 + 20),
            "{tenth} {text}"
        );
    }
}
