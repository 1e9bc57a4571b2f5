//! Checks on running a scenario: whatever is read and accepted comes to an end, with a report or an
//! error.

use crate::around::Around;
use crate::parts::split;
use headtime_config::{Place, Table};
use headtime_disk::profile::by_name;
use headtime_disk::{Drive, Layout, Model, Profile};
use headtime_engine::Map;
use headtime_host::workload::BenchmarkSpec;
use headtime_host::{DiskSize, HostBuilder};
use headtime_lab::prepare::synthetic;
use headtime_lab::scenario::{Programs, Scenario, Workload};
use headtime_sched::{Foretold, Knowledge, ServiceCurve, Spec};
use headtime_sim::{RunError, Setup, Station, run};
use headtime_stack::changed;
use headtime_units::{Lba, Nanos, Sectors, Time};
use headtime_workload::{NewRequest, Source, Synthetic};
use std::sync::{Arc, LazyLock};

/// Requests in a run.
const REQUESTS: u64 = 300;
/// How often it may be looked for another.
const LOOKS: u64 = 50_000;

/// A drive with room for what programs read.
static DRIVE: LazyLock<Profile> = LazyLock::new(|| by_name("wd5000aaks").expect("shipped"));
static LAYOUT: LazyLock<Arc<Layout>> = LazyLock::new(|| Arc::new(Layout::new(&DRIVE)));
static KNOWN: LazyLock<Knowledge<Arc<Model>>> = LazyLock::new(|| {
    let end = DRIVE.geometry.capacity;
    let points = [(0, 500), (end.get() / 1_000, 8_000), (end.get(), 16_000)];
    let points = points.map(|(at, us)| (Sectors::new(at), Nanos::from_micros(us)));
    let curve = ServiceCurve::new(points.to_vec(), ServiceCurve::BACKWARD);
    Knowledge {
        positioning: Some(Arc::new(Model::new(&DRIVE))),
        curve: Some(Arc::new(curve.expect("a curve"))),
        handed_out_max: None,
    }
});

/// An input is as for the scenario's own target; the first of its schedulers is run, on one drive, or on what a part
/// `around` says, under the audit; then the log is replayed.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (text, parts) = split(text);
    let Ok(mut table) = Table::parse("FILE", text) else {
        return;
    };
    let (around, parts): (Vec<_>, Vec<_>) =
        parts.into_iter().partition(|(name, _)| *name == "around");
    let around = around.first().map(|(_, text)| Around::read(text));
    for line in parts.iter().flat_map(|(_, text)| text.lines()) {
        if let Some((key, value)) = line.split_once('=') {
            let _ = table.set("--set", key, value);
        }
    }
    if let Ok(scenario) = Scenario::from_table(&table, Place::BuiltIn) {
        one(&scenario, around);
    }
}

fn one(scenario: &Scenario, around: Option<Around>) {
    let simulated = &scenario.drives[0].simulated;
    let changed = match simulated.overrides.is_empty() {
        true => None,
        false => match changed(&DRIVE, &simulated.overrides, simulated.noise, "DRIVE") {
            Ok(profile) => Some(profile),
            Err(_) => return,
        },
    };
    let drive = |seed| match &changed {
        Some(profile) => Drive::new(profile, seed),
        None => Drive::with_layout(&DRIVE, LAYOUT.clone(), seed),
    };
    let first = drive(scenario.seed);
    let (capacity, sector_bytes) = (first.capacity(), first.profile().geometry.sector_bytes);
    let map = around.as_ref().map(|around| around.map(capacity));
    let Ok(map) = map.transpose().map(Option::flatten) else {
        return;
    };
    let capacity = map.as_ref().map_or(capacity, Map::capacity);
    let disk = DiskSize {
        capacity,
        sector_bytes,
    };
    let Some(source) = source(scenario, disk) else {
        return;
    };
    let mut source = Few {
        source,
        left: REQUESTS,
        looks: LOOKS,
        outstanding: 0,
    };
    let mut config = scenario.engines[0].config(sector_bytes);
    config.depth = config.depth.min(first.depth());
    let spec = &scenario.schedulers[0];
    let build = |spec: &Spec| spec.build(KNOWN.clone()).expect("nothing is missing");
    let mut text = String::new();
    let mut write = |piece: &str| text.push_str(piece);
    let mut setup = Setup::new(first, config, build(spec), &mut source);
    let mut around = around;
    if let Some(around) = &mut around {
        let members = map.as_ref().map_or(1, Map::members);
        let seeds = (0..members).map(|member| scenario.seed.wrapping_add(u64::from(member)));
        let stations = seeds.map(|seed| Station::new(drive(seed), config, build(spec)));
        around.into_setup(&mut setup, stations.collect(), spec, &build);
        setup.log = Some(&mut write);
    }
    setup.tell_ahead = spec.info().name == "clairvoyant";
    setup.warm_up = scenario.run.warm_up;
    setup.limit = scenario.run.duration;
    match run(setup) {
        Ok(report) => {
            if scenario.run.warm_up.is_zero() {
                let members = u64::from(map.as_ref().map_or(1, Map::members));
                assert_eq!(report.head_time.total(), report.simulated * members);
            }
            if let Some(around) = around.filter(|_| scenario.run.duration.is_none()) {
                around.check(&text, config, spec, &build);
            }
        }
        Err(error @ (RunError::Violation { .. } | RunError::Stuck { .. })) => panic!("{error}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn source(scenario: &Scenario, disk: DiskSize) -> Option<Box<dyn Source>> {
    match &scenario.workload {
        Workload::Synthetic(groups) => {
            let slots = groups.iter().map(|group| u64::from(group.processes));
            if slots.sum::<u64>() > 1_000 {
                return None;
            }
            let spec = synthetic(groups, scenario.run.requests, scenario.seed);
            let source = Synthetic::new(&spec, disk.capacity, disk.sector_bytes).ok()?;
            Some(Box::new(source))
        }
        Workload::Programs(programs) => host(programs, disk, scenario.seed),
        Workload::Replay(_) => None,
    }
}

fn host(programs: &Programs, disk: DiskSize, seed: u64) -> Option<Box<dyn Source>> {
    let mut builder = HostBuilder::new(programs.host.clone(), disk).ok()?;
    let mut next = 1;
    for program in &programs.entries {
        let benchmark = &program.benchmark;
        // What would take memory, or a while to work out, takes it in words of others too.
        if !is_small(benchmark) || next > 50 {
            return None;
        }
        builder.set_class(program.class);
        next = benchmark.add(&mut builder, seed, next).ok()?;
    }
    Some(Box::new(builder.build(seed).ok()?))
}

fn is_small(benchmark: &BenchmarkSpec) -> bool {
    const BYTES: u64 = 1 << 28;
    match benchmark {
        BenchmarkSpec::ParRead(spec) => spec.processes <= 8 && spec.file.0 <= BYTES,
        BenchmarkSpec::Grep(spec) => {
            let few = spec.instances <= 2 && spec.files <= 500 && spec.directories <= 50;
            few && spec.partition.0 <= BYTES && spec.median.0 <= 10_000 && spec.read.0 >= 512
        }
        BenchmarkSpec::PostMark(spec) => {
            let few = spec.instances <= 2 && spec.files <= 500 && spec.transactions <= 1_000;
            few && spec.partition.0 <= BYTES && spec.call.0 >= 512
        }
        BenchmarkSpec::TpcH(spec) => {
            spec.instances <= 4 && spec.part.0 <= BYTES && spec.lineitem.0 <= BYTES
        }
        BenchmarkSpec::MultiThreads(spec) => {
            spec.processes <= 8 && spec.threads <= 8 && spec.file.0 <= BYTES
        }
        BenchmarkSpec::MpiIo(spec) => {
            spec.programs <= 8 && spec.processes <= 16 && spec.file.0 <= BYTES
        }
        BenchmarkSpec::ProFtpd(spec) => spec.clients <= 8 && spec.file.0 <= BYTES,
        BenchmarkSpec::Sysbench(spec) => spec.threads <= 8 && spec.total.0 <= BYTES,
        BenchmarkSpec::Bonnie(spec) => {
            spec.instances <= 4 && spec.seekers <= 8 && spec.file.0 <= BYTES && spec.chunk.0 >= 512
        }
        BenchmarkSpec::Iozone(spec) => spec.instances <= 4 && spec.file_high.0 <= BYTES / 64,
        BenchmarkSpec::KernelCompile(spec) => {
            let few = spec.jobs <= 8 && spec.files <= 500 && spec.directories <= 50;
            let small = spec.median.0 <= 10_000 && spec.depends.0 <= 1 << 20;
            few && small && spec.partition.0 <= BYTES
        }
        BenchmarkSpec::SmallFiles(spec) => {
            let few = spec.tasks <= 8 && spec.directories <= 100 && spec.reads <= 1_000;
            few && spec.partition.0 <= BYTES
        }
        _ => false,
    }
}

/// The first requests of another source.
struct Few {
    source: Box<dyn Source>,
    left: u64,
    looks: u64,
    outstanding: u64,
}

impl Source for Few {
    fn next_arrival(&self) -> Option<Time> {
        match self.left.min(self.looks) {
            0 => None,
            _ => self.source.next_arrival(),
        }
    }

    fn poll(&mut self, now: Time) -> Option<NewRequest> {
        self.next_arrival()?;
        self.looks -= 1;
        let request = self.source.poll(now)?;
        self.left -= 1;
        self.outstanding += 1;
        Some(request)
    }

    fn unplug(&mut self) -> Option<Lba> {
        self.source.unplug()
    }

    fn tell_ahead(&mut self, ahead: bool) {
        self.source.tell_ahead(ahead);
    }

    fn foretell(&mut self) -> Option<Foretold> {
        self.source.foretell()
    }

    fn completed(&mut self, now: Time, cookie: u64) {
        self.outstanding -= 1;
        self.source.completed(now, cookie);
    }

    fn done(&self) -> bool {
        self.outstanding == 0 && (self.left.min(self.looks) == 0 || self.source.done())
    }
}
