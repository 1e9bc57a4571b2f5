//! Programs on a host.

use crate::draw::{Random, SEEDS, World, array, world};
use headtime_bound::Term;
use headtime_host::workload::{
    BenchmarkSpec, GrepSpec, MpiIoSpec, MultiThreadsSpec, ParReadSpec, PostMarkSpec, TpcHSpec,
};
use headtime_host::{
    BarrierId, DiskSize, File, FileId, HostBuilder, HostSpec, PoolId, ProcessSpec, Step,
};
use headtime_sched::Op;
use headtime_units::{Bytes, Extent, Lba, Nanos, Time};
use headtime_workload::TimeDistribution;

/// A step of a process on its files.
#[derive(Clone, Copy, Debug)]
enum Act {
    Read(usize, u64, u64),
    Write(usize, u64, u64),
    Direct(Op, usize, u64, u64),
    Block(u64, bool),
    Sync(usize),
    Think(u64),
    Forget(usize),
    Meet,
}

/// A host that can be built any number of times.
#[derive(Debug)]
struct Plan {
    spec: HostSpec,
    /// By file: extents, and size in bytes at the start.
    files: Vec<(Vec<Extent>, u64)>,
    /// True if each process has its own files. The acts then refer to these files.
    own: bool,
    processes: Vec<(Vec<Act>, u64)>,
    workers: Option<u32>,
    meets: u32,
}

const FILE_PAGES: u64 = 400;

fn plan(random: &mut Random, capacity: u64) -> Plan {
    let read_ahead = *random.pick(&[0, 4 << 10, 16 << 10, 128 << 10, 128 << 10, 1 << 20]);
    // If the requested pages exceed the memory, pages evict each other without end.
    let least = 8 * (read_ahead + (512 << 10));
    let spec = HostSpec {
        read_ahead: Bytes(read_ahead),
        page_cache: Bytes(*random.pick(&[least, 64 << 20])),
        copy_per_page: Nanos::from_nanos(*random.pick(&[0, 1200, 40_000])),
        request_max: Bytes(*random.pick(&[16 << 10, 512 << 10])),
        writeback_interval: Nanos::from_millis(*random.pick(&[20, 5000])),
        dirty_expire: Nanos::from_millis(*random.pick(&[0, 50, 30_000])),
        barriers: random.chance(30),
        ..HostSpec::default()
    };
    let own = random.chance(60);
    let count = 1 + random.below(4);
    let each = 1 + random.below(3);
    let files = (0..if own { count * each } else { each })
        .map(|_| {
            let pieces = *random.pick(&[1, 1, 4, 40]);
            let near = random.below(capacity - 200_000) / 8 * 8;
            // Some files overlap.
            let near = if random.chance(10) { 8000 } else { near };
            let extents = (0..pieces)
                .map(|_| {
                    let start = near + random.below(20_000) / 8 * 8;
                    Extent::at(start, FILE_PAGES / pieces * 8)
                })
                .collect();
            // Shared files have their full size, so that no process drops pages beyond the first size while another
            // reads them.
            let size = match own {
                true => *random.pick(&[FILE_PAGES * 4096, FILE_PAGES * 2048 + 77, 0]),
                false => FILE_PAGES * 4096,
            };
            (extents, size)
        })
        .collect();
    let processes = (0..count)
        .map(|_| {
            let calls = random.below(40);
            let onward = random.below(101);
            let direct = *random.pick(&[0, 5, 90]);
            let mut at = 0;
            let acts = (0..calls).map(|_| {
                let file = random.below(each) as usize;
                let len = *random.pick(&[4096, 5000, 100_000, 700_000]);
                let offset = match random.chance(onward) {
                    true => at,
                    false => random.below(FILE_PAGES * 4096) / 512 * 512,
                };
                at = (offset + len) % (FILE_PAGES * 4096);
                if random.chance(direct) {
                    let op = if random.chance(70) {
                        Op::Read
                    } else {
                        Op::Write
                    };
                    return Act::Direct(op, file, offset / 512 * 512, len / 512 * 512);
                }
                match random.below(20) {
                    0..10 => Act::Read(file, offset, len),
                    10..12 => Act::Write(file, offset, len),
                    12 => Act::Block(random.below(40), random.chance(50)),
                    13 => Act::Sync(file),
                    14 => Act::Forget(file),
                    15..18 => Act::Think(random.below(3_000_000)),
                    _ => Act::Meet,
                }
            });
            (acts.collect(), random.below(3) * 1_000_000)
        })
        .collect();
    Plan {
        spec,
        files,
        own,
        processes,
        workers: random.chance(20).then(|| 1 + random.below(3) as u32),
        meets: 0,
    }
    .with_meetings(random)
}

impl Plan {
    /// Makes all processes meet equally often, so that no process waits without end.
    fn with_meetings(mut self, random: &mut Random) -> Plan {
        self.meets = self.processes.len() as u32;
        let together = random.chance(50);
        let each = random.below(3);
        for (acts, _) in &mut self.processes {
            if !together {
                acts.retain(|act| !matches!(act, Act::Meet));
                continue;
            }
            acts.retain(|act| !matches!(act, Act::Meet));
            for number in 0..each {
                let at = (number as usize * 7).min(acts.len());
                acts.insert(at, Act::Meet);
            }
        }
        self
    }

    fn builder(&self, world: &World) -> HostBuilder {
        let geometry = &world.profile.geometry;
        let disk = DiskSize {
            capacity: geometry.capacity,
            sector_bytes: geometry.sector_bytes,
        };
        let mut builder = HostBuilder::new(self.spec.clone(), disk).expect("in range");
        let mut files: Vec<FileId> = Vec::new();
        for (extents, size) in &self.files {
            let room = extents.iter().map(|extent| extent.len.get()).sum::<u64>() * 512;
            let file = File {
                extents: extents.clone(),
                size: (*size).min(room),
            };
            files.push(builder.add_file(file).expect("it fits"));
        }
        let barrier = builder.add_barrier(self.meets);
        let pool = self.workers.map(|workers| builder.add_pool(workers));
        let each = match self.own {
            true => files.len() / self.processes.len(),
            false => 0,
        };
        for (number, (acts, start)) in self.processes.iter().enumerate() {
            let files: Vec<FileId> = match each {
                0 => files.clone(),
                each => files[number * each..(number + 1) * each].to_vec(),
            };
            builder.add_process(process(number, acts, *start, files, barrier, pool));
        }
        builder
    }
}

fn process(
    number: usize,
    acts: &[Act],
    start: u64,
    files: Vec<FileId>,
    barrier: BarrierId,
    pool: Option<PoolId>,
) -> ProcessSpec {
    let steps: Vec<Step> = acts
        .iter()
        .map(|act| match *act {
            Act::Read(file, offset, len) => Step::Read {
                file: files[file],
                offset,
                len,
            },
            Act::Write(file, offset, len) => Step::Write {
                file: files[file],
                offset,
                len,
            },
            Act::Direct(op, file, offset, len) => Step::Direct {
                op,
                file: files[file],
                offset,
                len,
            },
            Act::Block(block, true) => Step::DirtyBlock(Lba::new(64 + block * 8)),
            Act::Block(block, false) => Step::ReadBlock(Lba::new(64 + block * 8)),
            Act::Sync(file) => Step::Sync(files[file]),
            Act::Think(nanos) => Step::Think(Nanos::from_nanos(nanos)),
            Act::Forget(file) => Step::Forget(files[file]),
            Act::Meet => Step::Barrier(barrier),
        })
        .collect();
    let mut steps = steps.into_iter();
    ProcessSpec {
        program: number as u32 / 2 + 1,
        behaviour: Box::new(move || steps.next().unwrap_or(Step::Exit)),
        served_by: pool,
        start: Time::from_nanos(start),
    }
}

/// Runs programs and checks their bound. Returns the binding term, and the bound as a share of the run's time.
fn hold(seed: u64, world: &World, build: impl Fn() -> HostBuilder, told: &str) -> (Term, f64) {
    let bound = world.machine().programs(build()).expect("few");
    let mut host = build().build(1).expect("it can be built");
    let report = world.run(&mut host);
    let ended = host
        .outcome()
        .iter()
        .filter_map(|program| program.ended)
        .max();
    let took = ended.expect("they end") - Time::ZERO;
    assert!(
        bound.time() <= took,
        "seed {seed}: {:?} binds at {}, the programs took {took}: {}, {told}",
        bound.binds(),
        bound.time(),
        world.told,
    );
    assert!(took <= report.simulated);
    // Rate of each program over its own time.
    let outcome = host.outcome();
    let bytes = |number: u32| {
        let of = outcome.iter().find(|program| program.program == number);
        of.map_or(0, |program| program.bytes_read + program.bytes_written)
    };
    let rates: f64 = outcome
        .iter()
        .map(|program| {
            let took = program.ended.expect("it ended") - Time::ZERO;
            let bytes = program.bytes_read + program.bytes_written;
            bytes as f64 / took.as_secs_f64().max(1e-9)
        })
        .sum();
    let most = bound.sum_of_rates(bytes).expect("there are programs");
    assert!(
        rates <= most * (1.0 + 1e-12),
        "seed {seed}: rates of {rates}, at most {most}: {}, {told}",
        world.told
    );
    let near = bound.time().as_secs_f64() / took.as_secs_f64().max(1e-9);
    (bound.binds(), near)
}

#[test]
fn no_programs_are_faster_than_their_bound() {
    programs_of(world, SEEDS);
}

#[test]
fn no_programs_on_an_array_are_faster_than_their_bound() {
    programs_of(array, SEEDS / 3);
}

fn programs_of(world: fn(&mut Random) -> World, seeds: u64) {
    let mut binds = [0; Term::ALL.len()];
    for seed in 0..seeds {
        let mut random = Random::new(seed ^ 0x9409);
        let world = world(&mut random);
        let plan = plan(&mut random, world.profile.geometry.capacity.get());
        let (term, _) = hold(seed, &world, || plan.builder(&world), &format!("{plan:?}"));
        binds[term as usize] += 1;
    }
    assert!(
        binds[..3].iter().all(|count| *count > seeds / 15),
        "{binds:?}"
    );
}

/// The benchmarks of the figures, at a small size.
#[test]
fn no_benchmark_is_faster_than_its_bound() {
    for seed in 0..SEEDS / 5 {
        let mut random = Random::new(seed ^ 0xbe9c);
        let mut world = world(&mut random);
        while world.profile.geometry.capacity.get() < 300_000_000 {
            world = crate::draw::world(&mut random);
        }
        let kind = random.below(6);
        let scale = *random.pick(&[0.002, 0.01]);
        let think = Nanos::from_micros(*random.pick(&[0, 100, 1000]));
        let think = match random.below(3) {
            0 => TimeDistribution::Exponential(think),
            1 if think > Nanos::ZERO => TimeDistribution::Lognormal(think, think + think + think),
            _ => TimeDistribution::Constant(think),
        };
        let direct = random.chance(50);
        let build = || {
            let geometry = &world.profile.geometry;
            let disk = DiskSize {
                capacity: geometry.capacity,
                sector_bytes: geometry.sector_bytes,
            };
            let mut builder = HostBuilder::new(HostSpec::default(), disk).expect("in range");
            let gap = Bytes(20_000_000_000);
            let benchmark = match kind {
                0 => BenchmarkSpec::ParRead(ParReadSpec {
                    think,
                    scale,
                    gap,
                    ..ParReadSpec::default()
                }),
                1 => BenchmarkSpec::Grep(GrepSpec {
                    scale,
                    gap,
                    ..GrepSpec::default()
                }),
                2 => BenchmarkSpec::PostMark(PostMarkSpec {
                    scale,
                    gap,
                    ..PostMarkSpec::default()
                }),
                3 => BenchmarkSpec::TpcH(TpcHSpec {
                    scale,
                    gap,
                    ..TpcHSpec::default()
                }),
                4 => BenchmarkSpec::MultiThreads(MultiThreadsSpec {
                    scale,
                    direct,
                    process_distance: gap,
                    ..MultiThreadsSpec::default()
                }),
                _ => BenchmarkSpec::MpiIo(MpiIoSpec {
                    scale: scale * 10.0,
                    processes: if direct { 8 } else { 12 },
                    ..MpiIoSpec::default()
                }),
            };
            benchmark.add(&mut builder, 1, 1).expect("it fits");
            builder
        };
        hold(
            seed,
            &world,
            build,
            &format!("benchmark {kind}, scale {scale}, think {think}"),
        );
    }
}
