//! A gate with a bound in time keeps it, whatever drive, firmware and bulk load: a command that has the promise is
//! done in time, counted from when it went to the drive. Without faults and flushes.

use headtime_disk::drive::Drive;
use headtime_disk::profile::{
    self, CacheSpec, Destage, FirmwarePolicy, Profile, ReadAhead, WriteBack,
};
use headtime_disk::{Layout, Longest};
use headtime_engine::{Command, Config, GateSpec, Member, Seen};
use headtime_sched::{Class, NoPositioning, Scheduler, Spec};
use headtime_sim::{Setup, run};
use headtime_units::{Bytes, Nanos, Sectors, Time};
use headtime_workload::{
    Pacing, ProcessSpec, SizeDistribution, Source, Synthetic, SyntheticSpec, TimeDistribution,
};
use proptest::prelude::*;
use std::sync::Arc;

const DRIVES: [&str; 4] = ["wd5000aaks", "exos-x18", "st3400620as", "cheetah9lp"];

/// What is drawn of a drive.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    drive: usize,
    fifo: bool,
    margin: u64,
    age_cap: Option<u64>,
    stream_cap: u64,
    stream_hold: u64,
    oldest: (u32, u64),
    ncq_prio: bool,
    cache: bool,
    read_ahead: bool,
    write_back: bool,
    sweep: bool,
}

impl Drawn {
    fn profile(self) -> Profile {
        let shipped = profile::by_name(DRIVES[self.drive]).expect("shipped");
        let changed = shipped.with(|spec| {
            spec.queue.depth = 32;
            spec.queue.stream_cap = Nanos::from_millis(self.stream_cap);
            if !self.fifo {
                spec.queue.stream_hold = Nanos::from_micros(self.stream_hold);
                spec.queue.ncq_prio = self.ncq_prio;
                spec.queue.oldest_every = self.oldest.0;
                spec.queue.oldest_age = Nanos::from_millis(self.oldest.1);
            }
            spec.queue.policy = match self.fifo {
                true => FirmwarePolicy::Fifo,
                false => FirmwarePolicy::Sptf {
                    margin: Nanos::from_micros(self.margin),
                    age_cap: self.age_cap.map(Nanos::from_millis),
                },
            };
            let cache = &mut spec.cache;
            cache.enabled = self.cache;
            if !self.cache || !self.read_ahead {
                cache.read_ahead = ReadAhead::Off;
                (cache.read_ahead_min, cache.read_ahead_max) = (0, 0);
            }
            if !self.cache || !self.write_back {
                cache.write_back = WriteBack::Off;
            }
            if !self.cache {
                cache.read_free_sectors = false;
            }
            if cache.write_back == WriteBack::Off || !self.sweep {
                cache.destage = Destage::Segment;
                let plain = CacheSpec::default();
                (cache.destage_runs, cache.destage_age) = (plain.destage_runs, plain.destage_age);
            }
        });
        changed.expect("in range")
    }
}

fn drives() -> impl Strategy<Value = Drawn> {
    let queue = (
        any::<bool>(),
        0..2_000_u64,
        prop::option::of(20..4_000_u64),
        0..4_000_u64,
    );
    let cache = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let hold = prop_oneof![Just(0_u64), 0..2_000_u64, Just(100_000)];
    let oldest = prop_oneof![Just((0, 0)), (1..20_u32, 0..200_u64)];
    let oldest = (oldest, any::<bool>());
    (0..DRIVES.len(), queue, cache, hold, oldest).prop_map(
        |(drive, (fifo, margin, age_cap, stream_cap), cache, stream_hold, (oldest, ncq_prio))| {
            Drawn {
                drive,
                fifo,
                margin,
                age_cap,
                stream_cap,
                stream_hold,
                oldest,
                ncq_prio,
                cache: cache.0,
                read_ahead: cache.1,
                write_back: cache.2,
                sweep: cache.3,
            }
        },
    )
}

/// A bulk load, as it is drawn.
#[derive(Clone, Copy, Debug)]
struct Bulk {
    processes: usize,
    outstanding: u32,
    kib: u64,
    sequential: f64,
    reads: f64,
}

fn bulks() -> impl Strategy<Value = Bulk> {
    let sizes = prop::sample::select(vec![4, 64, 128, 512]);
    let shares = (
        prop::sample::select(vec![0.0, 0.9, 1.0]),
        prop::sample::select(vec![0.0, 0.5, 1.0]),
    );
    (1..3_usize, 1..17_u32, sizes, shares).prop_map(
        |(processes, outstanding, kib, (sequential, reads))| Bulk {
            processes,
            outstanding,
            kib,
            sequential,
            reads,
        },
    )
}

fn scheduler(text: &str) -> Box<dyn Scheduler> {
    let spec: Spec = text.parse().expect("registered");
    spec.build(None::<NoPositioning>).expect("needs nothing")
}

/// Runs an urgent reader beside a bulk load and returns the longest time that a command with the promise was in the
/// drive, the longest response of an urgent request, and how many there were.
fn longest(
    profile: &Profile,
    layout: &Arc<Layout>,
    gate: &GateSpec,
    bulk: Bulk,
    urgent: usize,
    seed: u64,
) -> (Nanos, Nanos, u64) {
    let closed = |outstanding| Pacing::Closed {
        think: TimeDistribution::Constant(Nanos::ZERO),
        outstanding,
    };
    let one = ProcessSpec {
        class: Class::IDLE,
        pacing: closed(bulk.outstanding),
        read_share: bulk.reads,
        sequential_share: bulk.sequential,
        size: SizeDistribution::Constant(Bytes(bulk.kib << 10)),
        ..ProcessSpec::default()
    };
    let reader = ProcessSpec {
        class: Class::REAL_TIME,
        pacing: closed(1),
        ..ProcessSpec::default()
    };
    let mut processes = vec![reader; urgent];
    processes.resize(urgent + bulk.processes, one);
    let spec = SyntheticSpec {
        seed,
        count: None,
        processes,
    };
    let bytes = profile.geometry.sector_bytes;
    let mut source = Synthetic::new(&spec, profile.geometry.capacity, bytes).expect("in range");
    let source: &mut dyn Source = &mut source;
    let config = Config {
        depth: 32,
        ..Config::default()
    };
    let gate = gate
        .build(&config)
        .expect("fits")
        .expect("it is no plain depth");
    let others = (1..gate.lanes()).map(|_| scheduler("noop")).collect();
    let everyone = gate.lanes() == 1;
    let drive = Drive::with_layout(profile, Arc::clone(layout), seed);
    let mut worst = (Nanos::ZERO, Nanos::ZERO, 0);
    let mut observe = |now: Time, _: Member, seen: Seen<'_>| {
        if let Seen::Command(Command::Finish(done)) = seen {
            let is_urgent = done.request.class == Class::REAL_TIME;
            if is_urgent || everyone {
                worst.0 = worst.0.max(now - done.issued);
            }
            if is_urgent {
                worst.1 = worst.1.max(now - done.request.arrival);
                worst.2 += 1;
            }
        }
    };
    let mut setup = Setup::new(drive, config, scheduler("noop"), source);
    setup.stations[0].gate = Some((gate, others));
    setup.limit = Some(Nanos::from_secs(8));
    setup.observer = Some(&mut observe);
    run(setup).expect("runs");
    worst
}

/// How many worlds are drawn.
#[expect(
    clippy::disallowed_methods,
    reason = "a test that can be made longer by hand"
)]
fn cases() -> u32 {
    let cases = std::env::var("HEADTIME_BOUND_CASES");
    cases.map_or(200, |cases| cases.parse().expect("a number"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_bound_in_time_is_kept_on_any_drive_beside_any_load(
        drawn in drives(), bulk in bulks(), urgent in 1..4_usize, more in 0..8_u64, ranked in any::<bool>(), age_th in 1..200_u64, seed in any::<u32>(),
    ) {
        let profile = drawn.profile();
        let layout = Arc::new(Layout::new(&profile));
        let largest = Sectors::new((512 << 10) / u64::from(profile.geometry.sector_bytes));
        let told = Longest::of(&profile, &layout, largest);
        let name = if ranked { "rsd-priority" } else { "rsd" };
        // The pauses depend on the bound, which is long enough for them.
        let least = told.service * (2 + more);
        let bound = least + told.pauses_within(least * 2);
        let gate: GateSpec = format!("{name}:age_th={age_th}:bound={bound}").parse().expect("in range");
        let gate = gate.with_longest(told.service, told.pauses_within(bound).min(bound - least));
        let (in_drive, response, requests) = longest(&profile, &layout, &gate, bulk, urgent, u64::from(seed));
        prop_assert!(requests > 0);
        prop_assert!(in_drive <= bound, "{in_drive} in the drive, {told:?}, {gate}");
        if urgent == 1 && ranked {
            prop_assert!(response <= bound, "response {response}, {told:?}, {gate}");
        }
    }
}
