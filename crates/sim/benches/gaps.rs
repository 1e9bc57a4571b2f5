//! Durations of searches for gap reads, over a whole scan.
//!
//! Ten random readers and writers ("Freeblock Scheduling Outside of Disk Firmware", section 5.3) keep a drive busy. A
//! scan reads the whole drive in their gaps. The benchmark times each search for a gap read. The cost depends on the
//! number and the place of wanted blocks. The times are therefore reported by tenths of the scan, as mean, median, 99
//! % and maximum. On a busy machine interrupted searches take too long, which spoils the mean. The processor time of
//! the whole run does not suffer from interruptions and is reported, too.
//!
//! ```text
//! cargo bench -p headtime-sim --bench gaps                          # atlas10k, sptf-sw60, blocks of a sector
//! cargo bench -p headtime-sim --bench gaps -- PROFILE SCHEDULER SECTORS blocks|tracks [REQUESTS]
//! ```

#![expect(clippy::disallowed_types, reason = "a benchmark measures time")]

use hdrhistogram::Histogram;
use headtime_disk::Model;
use headtime_disk::drive::Drive;
use headtime_disk::profile::{self, Preseek, Profile, WriteBack};
use headtime_engine::{
    Approach, Arrival, Background, BackgroundLayer, Config, Engine, Join, Lane, SharedCell,
};
use headtime_gaps::{Freeblock, FreeblockOptions, Prefer};
use headtime_sched::Spec;
use headtime_sim::{Setup, run};
use headtime_units::{Bytes, Extent, Lba, Nanos, Sectors, Time};
use headtime_workload::{
    Pacing, ProcessSpec, SizeDistribution, Synthetic, SyntheticSpec, TimeDistribution,
};
use std::sync::Arc;
use std::time::Instant;

/// The searches of a tenth of a scan.
struct Tenth {
    nanos: Histogram<u64>,
    steps: u64,
    /// When the last one was made.
    until: Time,
}

impl Default for Tenth {
    fn default() -> Tenth {
        Tenth {
            nanos: Histogram::new(3).expect("three digits can be"),
            steps: 0,
            until: Time::ZERO,
        }
    }
}

/// A scan whose searches are timed.
struct Timed {
    scan: Freeblock<Arc<Model>>,
    tenths: SharedCell<Vec<Tenth>>,
}

impl BackgroundLayer for Timed {
    type Under = Freeblock<Arc<Model>>;

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
        let (searches, steps) = (self.scan.steps().count(), self.scan.steps().sum);
        let begin = Instant::now();
        let joined = self.scan.joins(now, engine, approach);
        let took = begin.elapsed();
        if self.scan.steps().count() > searches {
            let all = self.scan.wanted_at_first();
            let read = all - self.scan.wanted().left().min(all);
            let tenth = &mut self.tenths.lock()[(read * 10 / all).min(9) as usize];
            let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
            tenth.nanos.record(nanos).expect("it grows");
            tenth.steps += self.scan.steps().sum - steps;
            tenth.until = now;
        }
        joined
    }
}

/// A drive as the paper's host has it, with what varies in it.
fn drive(name: &str) -> Profile {
    let shipped = profile::by_name(name).expect("a shipped profile");
    let changed = shipped.with(|spec| {
        spec.noise.seek_sd = Nanos::from_micros(20);
        spec.noise.overhead_sd = Nanos::from_micros(30);
        spec.queue.preseek = Preseek::AtMediaEnd;
        spec.queue.depth = 16;
        spec.bus.interface_sector = spec.bus.interface_sector.min(Nanos::from_nanos(6_400));
        spec.cache.write_back = WriteBack::Off;
    });
    changed.expect("it can be")
}

/// The processor time of this thread, where the system tells it.
fn processor_time() -> Option<Nanos> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos = told.split_whitespace().next()?.parse().ok()?;
    Some(Nanos::from_nanos(nanos))
}

fn main() {
    // Cargo passes an option of its own.
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"))
        .collect();
    let word = |at: usize, default: &str| words.get(at).map_or(default, String::as_str).to_owned();
    let (name, scheduler) = (word(0, "atlas10k"), word(1, "sptf-sw60"));
    let block: u64 = word(2, "1").parse().expect("sectors of a block");
    let prefer = match word(3, "blocks").as_str() {
        "tracks" => Prefer::Tracks,
        _ => Prefer::Blocks,
    };
    let most: Option<u64> = words
        .get(4)
        .map(|word| word.parse().expect("how many requests"));

    let profile = drive(&name);
    let capacity = profile.geometry.capacity;
    let model = Arc::new(Model::new(&profile));
    let options = FreeblockOptions {
        block: Sectors::new(block),
        prefer,
        ..FreeblockOptions::default()
    };
    let whole = Extent::new(Lba::ZERO, capacity);
    let begin = Instant::now();
    let scan = Freeblock::new(Arc::clone(&model), capacity, whole, options).expect("it turns");
    println!("{name}, {scheduler}, blocks of {block} sectors, {prefer:?} preferred");
    println!("  set up in {:.2} s", begin.elapsed().as_secs_f64());
    let one = ProcessSpec {
        read_share: 0.667,
        size: SizeDistribution::Exponential(Bytes(8_192)),
        pacing: Pacing::Closed {
            think: TimeDistribution::Constant(Nanos::ZERO),
            outstanding: 1,
        },
        ..ProcessSpec::default()
    };
    let workload = SyntheticSpec {
        count: most,
        ..SyntheticSpec::alike(1, 10, &one)
    };
    let sector_bytes = profile.geometry.sector_bytes;
    let mut source = Synthetic::new(&workload, capacity, sector_bytes).expect("in range");
    let spec: Spec = scheduler.parse().expect("a scheduler");
    let built = spec.build(Some(model)).expect("built");
    let config = Config {
        depth: 2,
        merge: false,
        ..Config::default()
    };
    let mut setup = Setup::new(Drive::new(&profile, 1), config, built, &mut source);
    let mut tenths = Vec::new();
    tenths.resize_with(10, Tenth::default);
    let tenths = SharedCell::new(tenths);
    setup.stations[0].background = Some(Box::new(Timed {
        scan,
        tenths: tenths.clone(),
    }));
    setup.until_jobs = most.is_none();
    let (begin, used) = (Instant::now(), processor_time());
    run(setup).expect("runs");
    let took = begin.elapsed().as_secs_f64();
    let used = used.and_then(|used| Some(processor_time()?.saturating_sub(used)));

    println!("  tenth    gaps   mean us  median     99 %    most   steps   until s");
    let mut all = Histogram::<u64>::new(3).expect("three digits can be");
    let line = |name: &str, nanos: &Histogram<u64>, steps: u64, until: Time| {
        let us = |nanos: f64| nanos / 1e3;
        println!(
            "  {name:>5} {:>7} {:>9.2} {:>7.2} {:>8.2} {:>7.0} {:>7.1} {:>9.0}",
            nanos.len(),
            us(nanos.mean()),
            us(nanos.value_at_quantile(0.5) as f64),
            us(nanos.value_at_quantile(0.99) as f64),
            us(nanos.max() as f64),
            steps as f64 / nanos.len().max(1) as f64,
            until.as_secs_f64(),
        );
    };
    let (mut steps, mut until) = (0, Time::ZERO);
    for (number, tenth) in (1..).zip(tenths.lock().iter()) {
        if tenth.nanos.is_empty() {
            continue;
        }
        line(&format!("{number}"), &tenth.nanos, tenth.steps, tenth.until);
        all.add(&tenth.nanos).expect("they are alike");
        (steps, until) = (steps + tenth.steps, tenth.until);
    }
    line("all", &all, steps, until);
    let gaps = all.len() as f64;
    println!(
        "  {:.2} % of a core at {:.0} gaps a second; {took:.1} s of wall time",
        all.mean() * gaps / until.as_secs_f64() / 1e7,
        gaps / until.as_secs_f64(),
    );
    if let Some(used) = used {
        println!(
            "  {:.1} s of processor time, {:.1} us a request with all that is simulated",
            used.as_secs_f64(),
            used.as_micros_f64() / gaps
        );
    }
}
