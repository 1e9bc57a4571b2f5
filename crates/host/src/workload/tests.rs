//! Steps of each benchmark.

mod in_step;
mod parallel;
mod postmark;

use super::*;
use crate::layout::Written;
use crate::{File, FileId, HostSpec, Step};
use headtime_sched::Op;
use headtime_units::{Bytes, Extent, Nanos, Sectors, Time};
use headtime_workload::{Source, TimeDistribution};

/// 500 GB in sectors of 512 bytes.
const DISK: DiskSize = DiskSize {
    capacity: Sectors::new(976_773_168),
    sector_bytes: 512,
};

pub(super) fn builder() -> HostBuilder {
    HostBuilder::new(HostSpec::default(), DISK).expect("the defaults are allowed")
}

fn built(spec: &BenchmarkSpec, seed: u64) -> HostBuilder {
    let mut builder = builder();
    spec.add(&mut builder, seed, 1).expect("it fits");
    builder
}

/// All steps of each process, with the number of its program.
pub(super) fn steps(builder: &mut HostBuilder) -> Vec<(u32, Vec<Step>)> {
    builder
        .processes
        .iter_mut()
        .map(|process| {
            let mut steps = Vec::new();
            loop {
                let step = process.behaviour.next();
                if step == Step::Exit {
                    return (process.program, steps);
                }
                steps.push(step);
            }
        })
        .collect()
}

fn read_bytes(steps: &[Step]) -> u64 {
    steps
        .iter()
        .map(|step| match step {
            Step::Read { len, .. } | Step::Direct { len, .. } => *len,
            _ => 0,
        })
        .sum()
}

fn read(file: u32, offset: u64, len: u64) -> Step {
    let file = FileId(file);
    Step::Read { file, offset, len }
}

#[test]
fn proftpd_sends_each_client_its_file_in_moves_of_16_pages() {
    let mut builder = built(&BenchmarkSpec::ProFtpd(ProFtpdSpec::default()), 1);
    let extents = builder.files.iter().map(|file| file.extents[0]);
    let places: Vec<u64> = extents.map(|extent| extent.start.get() * 512).collect();
    let near = |place: u64, wanted: u64| place.abs_diff(wanted) < 4096;
    assert!((0..4).all(|number| near(places[number], number as u64 * 20_300_000_000)));
    let steps = steps(&mut builder);
    assert_eq!(steps.len(), 4);
    for (number, (program, steps)) in (0..).zip(&steps) {
        assert_eq!((*program, read_bytes(steps)), (number + 1, 300_000_000));
        assert_eq!(steps[1], read(number, 65_536, 65_536));
    }
}

#[test]
fn par_read_reads_files_from_beginning_to_end() {
    let think = Nanos::from_micros(7);
    let spec = ParReadSpec {
        think: TimeDistribution::Constant(think),
        ..ParReadSpec::default()
    };
    let mut builder = built(&BenchmarkSpec::ParRead(spec), 1);
    let places: Vec<(u64, u64)> = builder
        .files
        .iter()
        .map(|file| (file.extents[0].start.get() * 512, file.size))
        .collect();
    let gigabyte = 1_000_000_000;
    // Beginnings are moved up to whole pages, and 51 GB are 12,451,171.875 pages.
    assert_eq!(places[0], (0, gigabyte));
    assert_eq!(places[1], (12_451_172 * 4096, gigabyte));
    assert_eq!(places[3], (153 * gigabyte / 4096 * 4096 + 4096, gigabyte));
    let all = steps(&mut builder);
    assert_eq!(all.len(), 4);
    for (number, (program, steps)) in (0..).zip(&all) {
        assert_eq!(*program, number + 1);
        let first = [
            read(number, 0, 4096),
            Step::Think(think),
            read(number, 4096, 4096),
            Step::Think(think),
        ];
        assert_eq!(steps[..4], first);
        // 244,140 whole pages and 2,560 bytes; no thinking after the last.
        assert_eq!(steps.len(), 2 * 244_141 - 1);
        assert_eq!(steps.last(), Some(&read(number, 244_140 * 4096, 2560)));
        assert_eq!(read_bytes(steps), gigabyte);
    }
}

#[test]
fn par_read_that_sleeps_comes_late_by_the_slack_of_timers() {
    let thinks = |think, slack| {
        let spec = ParReadSpec {
            processes: 1,
            file: Bytes(12_288),
            think: TimeDistribution::Constant(Nanos::from_micros(think)),
            slack: Nanos::from_micros(slack),
            ..ParReadSpec::default()
        };
        let all = steps(&mut built(&BenchmarkSpec::ParRead(spec), 1));
        let spans = all[0].1.iter().filter_map(|step| match step {
            Step::Think(span) => Some(span.as_nanos() / 1000),
            _ => None,
        });
        spans.collect::<Vec<u64>>()
    };
    assert_eq!(thinks(200, 50), [250, 250]);
    assert_eq!(thinks(200, 0), [200, 200]);
    // A process that does not sleep sets no timer.
    assert_eq!(thinks(0, 50), []);
}

#[test]
fn par_read_that_thinks_at_random_draws_for_each_process_its_own_and_the_slack_on_top() {
    let thinks = |seed, slack| {
        let spec = ParReadSpec {
            processes: 2,
            file: Bytes(4096 * 10_001),
            think: "lognormal(900us..5.4ms)".parse().expect("a distribution"),
            slack: Nanos::from_micros(slack),
            ..ParReadSpec::default()
        };
        let all = steps(&mut built(&BenchmarkSpec::ParRead(spec), seed));
        let of = |(_, steps): &(u32, Vec<Step>)| {
            let spans = steps.iter().filter_map(|step| match step {
                Step::Think(span) => Some(*span),
                _ => None,
            });
            spans.collect::<Vec<Nanos>>()
        };
        all.iter().map(of).collect::<Vec<_>>()
    };
    let one = thinks(1, 0);
    assert_eq!(one, thinks(1, 0));
    assert_ne!(one, thinks(2, 0));
    assert_ne!(one[0], one[1]);
    for spans in &one {
        assert_eq!(spans.len(), 10_000);
        // Five standard errors of the share: 2.5 % and 1.5 %.
        let below = |us| {
            let below = spans.iter().filter(|span| **span < Nanos::from_micros(us));
            below.count()
        };
        assert!(below(900).abs_diff(5_000) < 250, "{}", below(900));
        assert!(below(5_400).abs_diff(9_000) < 150, "{}", below(5_400));
    }
    let late = thinks(1, 50);
    let slack = Nanos::from_micros(50);
    assert!(
        one[0]
            .iter()
            .zip(&late[0])
            .all(|(span, late)| *span + slack == *late)
    );
}

#[test]
fn multi_threads_meet_after_every_five_calls() {
    let buffered = MultiThreadsSpec {
        direct: false,
        ..MultiThreadsSpec::default()
    };
    let mut builder = built(&BenchmarkSpec::MultiThreads(buffered), 1);
    let places: Vec<u64> = builder
        .files
        .iter()
        .map(|file| file.extents[0].start.get() * 512 / 1_000_000)
        .collect();
    assert_eq!(
        places,
        [0, 100, 50_000, 50_100, 100_000, 100_100, 150_000, 150_100]
    );
    assert_eq!(builder.barriers, [2, 2, 2, 2]);
    let all = steps(&mut builder);
    for (number, (program, steps)) in (0..).zip(&all) {
        assert_eq!(*program, 1 + number / 2);
        let barrier = Step::Barrier(crate::BarrierId(number / 2));
        let segment = |at: u64| read(number, at * 16_384, 4096);
        let first = [
            segment(0),
            segment(1),
            segment(2),
            segment(3),
            segment(4),
            barrier,
            segment(5),
        ];
        assert_eq!(steps[..7], first);
        // 2,441 whole segments and one of 6,656 bytes; 488 meetings.
        let meetings = steps.iter().filter(|&&step| step == barrier).count();
        assert_eq!((steps.len() - meetings, meetings), (2442, 488));
        assert_eq!(read_bytes(steps), 2442 * 4096);
    }
    let direct = MultiThreadsSpec {
        together: 0,
        ..MultiThreadsSpec::default()
    };
    let mut builder = built(&BenchmarkSpec::MultiThreads(direct), 1);
    let all = steps(&mut builder);
    let second = Step::Direct {
        op: Op::Read,
        file: FileId(0),
        offset: 16_384,
        len: 4096,
    };
    assert_eq!(all[0].1[1], second);
    assert_eq!(all[0].1.len(), 2442);
}

#[test]
fn tpch_reads_one_table_and_then_the_other() {
    let mut builder = built(&BenchmarkSpec::TpcH(TpcHSpec::default()), 1);
    assert_eq!(builder.files.len(), 6);
    // Whole pages: 33.4 MB are 4,077.1, 878 MB are 107,177.7.
    assert_eq!(builder.files[0].size, 4078 * 8192);
    assert_eq!(builder.files[1].size, 107_178 * 8192);
    let start = |file: usize| builder.files[file].extents[0].start.get() * 512;
    let instance = 33_400_000 + 390_000_000 + 878_000_000 + 50_000_000_000_u64;
    assert!(start(2).abs_diff(instance) < 4096);
    assert!(start(3).abs_diff(instance + 423_400_000) < 4096);
    let all = steps(&mut builder);
    let (program, first) = &all[0];
    assert_eq!(*program, 1);
    let part = Step::Think(Nanos::from_micros(30));
    let lineitem = Step::Think(Nanos::from_micros(28));
    assert_eq!(first[..3], [read(0, 0, 8192), part, read(0, 8192, 8192)]);
    let there = 2 * 4078;
    assert_eq!(
        first[there - 1..there + 2],
        [part, read(1, 0, 8192), lineitem]
    );
    assert_eq!(read_bytes(first), (4078 + 107_178) * 8192);

    // A table of more than 1 GiB is divided into files that follow each other.
    let large = TpcHSpec {
        lineitem: Bytes(2_500_000_000),
        instances: 1,
        ..TpcHSpec::default()
    };
    let mut builder = built(&BenchmarkSpec::TpcH(large), 1);
    let sizes: Vec<u64> = builder.files[1..].iter().map(|file| file.size).collect();
    assert_eq!(sizes[..2], [1 << 30, 1 << 30]);
    for pair in builder.files[1..].windows(2) {
        assert!(pair[0].extents[0].is_followed_by(pair[1].extents[0]));
    }
    let all = steps(&mut builder);
    assert_eq!(
        read_bytes(&all[0].1),
        4078 * 8192 + sizes.iter().sum::<u64>()
    );
}

#[test]
fn grep_looks_up_each_file_and_reads_all_of_it() {
    let spec = GrepSpec {
        scale: 0.05,
        written: Written::Copied,
        ..GrepSpec::default()
    };
    let mut builder = built(&BenchmarkSpec::Grep(spec.clone()), 3);
    let all = steps(&mut builder);
    assert_eq!(all.len(), 2);
    let half = builder.files.len() / 2;
    assert_eq!(half, 1455);
    for (number, (program, steps)) in all.iter().enumerate() {
        assert_eq!(*program as usize, number + 1);
        let start = number as u64 * ((2 << 30) + 50_000_000_000) / 512;
        let partition = Extent::at(start, (2 << 30) / 512 + 8);
        let files = &builder.files[number * half..(number + 1) * half];
        // The tree's own directory: its inode, then its block or blocks.
        assert!(matches!(steps[0], Step::ReadBlock(_)) && matches!(steps[1], Step::ReadBlock(_)));
        let mut position = vec![0; half];
        let mut before = None;
        for step in steps {
            match *step {
                Step::ReadBlock(lba) => {
                    assert!(partition.contains(lba));
                    before = Some(lba);
                }
                Step::Read { file, offset, len } => {
                    let at = file.0 as usize - number * half;
                    assert!(before.is_some(), "a file without a lookup");
                    // In order, in whole buffers up to the end.
                    assert_eq!(offset, position[at]);
                    assert_eq!(len, (files[at].size - offset).min(32 << 10));
                    position[at] += len;
                }
                Step::Think(span) => assert!(span >= Nanos::from_nanos(1)),
                _ => panic!("{step:?}"),
            }
        }
        for (file, position) in files.iter().zip(&position) {
            assert_eq!(file.size, *position);
            assert!(file.extents.iter().all(|extent| partition.covers(*extent)));
        }
    }
    // Both copies are of one tree.
    let sizes = |files: &[File]| files.iter().map(|file| file.size).collect::<Vec<_>>();
    let (first, second) = builder.files.split_at(half);
    let (mut first, mut second) = (sizes(first), sizes(second));
    first.sort_unstable();
    second.sort_unstable();
    assert_eq!(first, second);
}

#[test]
fn grep_reads_an_indirect_block_before_it_needs_it() {
    // One directory with one file of about 300 KB.
    let spec = GrepSpec {
        instances: 1,
        files: 1,
        directories: 1,
        median: Bytes(300_000),
        spread: 0.0,
        ..GrepSpec::default()
    };
    let mut builder = built(&BenchmarkSpec::Grep(spec), 1);
    let extents = builder.files[0].extents.clone();
    assert_eq!(extents[0].len, Sectors::new(96));
    let indirect = extents[0].end();
    assert_eq!(extents[1].start.get(), indirect.get() + 8);
    let all = steps(&mut builder);
    let steps: Vec<Step> = all[0]
        .1
        .iter()
        .copied()
        .filter(|step| !matches!(step, Step::Think(_)))
        .collect();
    // Directory: inode, block; file: inode, first buffer of 8 blocks; the 13th block is in the second.
    assert_eq!(steps[3], read(0, 0, 32_768));
    assert_eq!(steps[4], Step::ReadBlock(indirect));
    assert_eq!(steps[5], read(0, 32_768, 32_768));
    // 32,768 bytes at 1 us for each KiB, 15 us for the file.
    assert_eq!(all[0].1[4], Step::Think(Nanos::from_micros(32 + 15)));
}

#[test]
fn mpi_io_keeps_one_process_of_a_program_busy() {
    let calm = MpiIoSpec {
        link_wait: Nanos::ZERO,
        ..MpiIoSpec::default()
    };
    let mut builder = built(&BenchmarkSpec::MpiIo(calm), 1);
    assert_eq!(builder.pools, [16]);
    // 15,258 whole blocks over eight servers: 1,908 on the first.
    assert_eq!(builder.files.len(), 4);
    assert!(builder.files.iter().all(|file| file.size == 1908 * 65_536));
    let distance = 1908 * 65_536 + 10_000_000_000_u64;
    let second = builder.files[1].extents[0].start.get() * 512;
    assert!(second.abs_diff(distance) < 4096);
    assert!(
        builder
            .processes
            .iter()
            .all(|process| process.served_by.is_some())
    );
    let all = steps(&mut builder);
    assert_eq!(all.len(), 4);
    for (number, (program, steps)) in (0..).zip(&all) {
        assert_eq!(*program, number + 1);
        let request = Step::Think(Nanos::from_micros(200));
        let answer = Step::Think(Nanos::from_micros(724));
        let first = [
            request,
            read(number, 0, 65_536),
            answer,
            request,
            read(number, 65_536, 65_536),
        ];
        assert_eq!(steps[..5], first);
        assert_eq!(steps.len(), 1908 * 3);
    }
}

#[test]
fn mpi_io_waits_for_the_link() {
    let mut builder = built(&BenchmarkSpec::MpiIo(MpiIoSpec::default()), 1);
    let answers: Vec<u64> = steps(&mut builder)[0]
        .1
        .iter()
        .filter_map(|step| match step {
            Step::Think(span) if *span != Nanos::from_micros(200) => Some(span.as_nanos()),
            _ => None,
        })
        .collect();
    assert_eq!(answers.len(), 1908);
    assert!(answers.iter().all(|&answer| answer >= 724_000));
    // 724 us and a mean of 400 us; five standard errors of an exponential.
    let mean = answers.iter().sum::<u64>() as f64 / 1908.0;
    assert!(
        (mean - 1_124_000.0).abs() < 5.0 * 400_000.0 / 1908_f64.sqrt(),
        "{mean}"
    );
}

#[test]
fn mpi_io_goes_elsewhere_when_processes_and_servers_differ() {
    let spec = MpiIoSpec {
        programs: 1,
        processes: 6,
        servers: 4,
        link_wait: Nanos::ZERO,
        file: Bytes(64 * 65_536),
        ..MpiIoSpec::default()
    };
    let mut builder = built(&BenchmarkSpec::MpiIo(spec), 1);
    let all = steps(&mut builder);
    // Process 0 has blocks 0, 6, 12, .., and the blocks 0, 12, 24, .. are on this server. Processes with odd numbers
    // have no blocks here.
    assert_eq!(all.len(), 3);
    let away = Step::Think(Nanos::from_micros(4924));
    let request = Step::Think(Nanos::from_micros(200));
    let answer = Step::Think(Nanos::from_micros(724));
    let first = [
        request,
        read(0, 0, 65_536),
        answer,
        away,
        request,
        read(0, 3 * 65_536, 65_536),
    ];
    assert_eq!(all[0].1[..6], first);
    let mut offsets: Vec<u64> = all
        .iter()
        .flat_map(|(_, steps)| steps)
        .filter_map(|step| match step {
            Step::Read { offset, .. } => Some(offset / 65_536),
            _ => None,
        })
        .collect();
    offsets.sort_unstable();
    assert_eq!(offsets, (0..16).collect::<Vec<u64>>());
}

/// Every benchmark that ends, at a small scale.
fn small() -> impl Iterator<Item = BenchmarkSpec> {
    let all = BenchmarkSpec::NAMES.map(|name| {
        let mut spec = BenchmarkSpec::from_name(name).expect("it is one of them");
        match &mut spec {
            BenchmarkSpec::ParRead(spec) => spec.scale = 0.005,
            BenchmarkSpec::Grep(spec) => spec.scale = 0.02,
            BenchmarkSpec::PostMark(spec) => spec.scale = 0.2,
            BenchmarkSpec::TpcH(spec) => spec.scale = 0.005,
            BenchmarkSpec::MultiThreads(spec) => spec.scale = 0.02,
            BenchmarkSpec::MpiIo(spec) => spec.scale = 0.02,
            BenchmarkSpec::ProFtpd(spec) => spec.scale = 0.02,
            BenchmarkSpec::Transactions(spec) => spec.scale = 0.1,
            BenchmarkSpec::Sysbench(spec) => spec.scale = 0.01,
            BenchmarkSpec::Bonnie(spec) => spec.scale = 0.01,
            BenchmarkSpec::Iozone(spec) => spec.file_low = spec.file_high,
            BenchmarkSpec::KernelCompile(spec) => spec.scale = 0.02,
            BenchmarkSpec::SmallFiles(spec) => spec.scale = 0.02,
            BenchmarkSpec::FullSeq(spec) => spec.size = Bytes(10 << 20),
            BenchmarkSpec::SeqRand(spec) => {
                (spec.size, spec.phase) = (Bytes(10 << 20), Bytes(2 << 20));
            }
            BenchmarkSpec::Backup(_) | BenchmarkSpec::Replay(_) => {}
            BenchmarkSpec::Ior(spec) => {
                (spec.size, spec.checkpoint) = (Bytes(1 << 20), Bytes(1 << 20));
            }
            BenchmarkSpec::Btio(spec) => spec.dumps = 1,
            BenchmarkSpec::S3aSim(spec) => {
                (spec.read, spec.written) = (Bytes(4_000_000), Bytes(2_000_000));
            }
        }
        spec
    });
    all.into_iter().filter(|spec| !spec.is_endless())
}

#[test]
fn names_lead_to_benchmarks_and_back() {
    for name in BenchmarkSpec::NAMES {
        assert_eq!(
            BenchmarkSpec::from_name(name).map(|spec| spec.name()),
            Ok(name)
        );
    }
    let error = BenchmarkSpec::from_name("par-reed")
        .unwrap_err()
        .to_string();
    assert!(error.ends_with("did you mean `par-read`?"), "{error}");
    let error = BenchmarkSpec::from_name("xyzzy").unwrap_err().to_string();
    assert!(error.ends_with("s3asim"), "{error}");
}

#[test]
fn the_same_seed_asks_the_same() {
    for spec in small() {
        let all = |seed| {
            let mut builder = built(&spec, seed);
            let steps = steps(&mut builder);
            (steps, builder.files)
        };
        assert!(all(1) == all(1), "{}", spec.name());
        let random = matches!(
            spec.name(),
            "grep"
                | "postmark"
                | "mpi-io-test"
                | "transactions"
                | "sysbench"
                | "bonnie"
                | "iozone"
                | "kernel-compile"
                | "small-files"
                | "seq-rand"
                | "s3asim"
        );
        assert_eq!(all(1) != all(2), random, "{}", spec.name());
    }
}

/// Runs on a disk that takes 100 us for each request.
#[test]
fn every_benchmark_ends_with_the_bytes_that_it_asked_for() {
    for spec in small() {
        let (mut read, mut written) = (0, 0);
        let mut asking = built(&spec, 1);
        for (_, steps) in steps(&mut asking) {
            read += read_bytes(&steps);
            for step in steps {
                if let Step::Write { len, .. } = step {
                    written += len;
                }
            }
        }
        let mut builder = builder();
        let behind = spec.add(&mut builder, 1, 5).unwrap();
        let mut host = builder.build(1).unwrap();
        let mut now = Time::ZERO;
        while !host.done() {
            while let Some(request) = host.poll(now) {
                assert!(request.extent.end().get() <= DISK.capacity.get());
                now += Nanos::from_micros(100);
                host.completed(now, request.cookie);
            }
            host.unplug();
            now = host.next_arrival().map_or(now, |at| at.max(now));
        }
        let outcome = host.outcome();
        let programs: Vec<u32> = outcome.iter().map(|program| program.program).collect();
        assert_eq!(
            programs,
            (5..behind).collect::<Vec<u32>>(),
            "{}",
            spec.name()
        );
        assert!(outcome.iter().all(|program| program.ended.is_some()));
        let sum = |of: fn(&crate::ProgramOutcome) -> u64| outcome.iter().map(of).sum::<u64>();
        assert_eq!(sum(|program| program.bytes_read), read, "{}", spec.name());
        assert_eq!(
            sum(|program| program.bytes_written),
            written,
            "{}",
            spec.name()
        );
    }
}

/// Checks this also behind the files of another benchmark, which shift the names.
#[test]
fn what_is_laid_once_is_the_same_on_every_host() {
    for spec in small() {
        let laid = spec.lay(DISK, 7).unwrap();
        let mut whole = builder();
        let first = spec.add(&mut whole, 7, 1).unwrap();
        let mut apart = builder();
        assert_eq!(spec.add_laid(&laid, &mut apart, 1), Ok(first));
        let mut twice = builder();
        let behind = spec.add_laid(&laid, &mut twice, 1).unwrap();
        spec.add_laid(&laid, &mut twice, behind).unwrap();
        assert_eq!(apart.files, whole.files, "{}", spec.name());
        let (files, barriers) = (whole.files.len() as u32, whole.barriers.len() as u32);
        let whole = steps(&mut whole);
        assert_eq!(steps(&mut apart), whole, "{}", spec.name());
        let twice = steps(&mut twice);
        let (one, other) = twice.split_at(whole.len());
        assert_eq!(one, whole, "{}", spec.name());
        let shifted = |step: &Step| match *step {
            Step::Read { file, offset, len } => read(file.0 + files, offset, len),
            Step::Write { file, offset, len } => Step::Write {
                file: FileId(file.0 + files),
                offset,
                len,
            },
            Step::Forget(file) => Step::Forget(FileId(file.0 + files)),
            Step::Barrier(barrier) => Step::Barrier(crate::BarrierId(barrier.0 + barriers)),
            other => other,
        };
        if matches!(laid.0, Lay::Grep(_) | Lay::Planned(..)) {
            let moved = whole.iter().map(|(_, steps)| steps.iter().map(shifted));
            let moved: Vec<Vec<Step>> = moved.map(Iterator::collect).collect();
            let other = other.iter().map(|(_, steps)| steps.clone());
            assert_eq!(other.collect::<Vec<_>>(), moved, "{}", spec.name());
        }
    }
}

#[test]
#[should_panic(expected = "laid for another benchmark than par-read")]
fn what_is_laid_for_another_is_refused() {
    let laid = GrepSpec {
        files: 10,
        directories: 2,
        ..GrepSpec::default()
    };
    let laid = BenchmarkSpec::Grep(laid).lay(DISK, 1).unwrap();
    let spec = BenchmarkSpec::ParRead(ParReadSpec::default());
    let _ = spec.add_laid(&laid, &mut builder(), 1);
}

/// Both benchmarks plan their steps, so only the name tells the layouts apart.
#[test]
#[should_panic(expected = "laid for another benchmark than kernel-compile")]
fn what_is_planned_for_another_is_refused() {
    let laid = PostMarkSpec {
        scale: 0.01,
        ..PostMarkSpec::default()
    };
    let laid = BenchmarkSpec::PostMark(laid).lay(DISK, 1).unwrap();
    let spec = BenchmarkSpec::KernelCompile(KernelCompileSpec::default());
    let _ = spec.add_laid(&laid, &mut builder(), 1);
}

#[test]
fn scale_shortens_what_is_read_and_moves_nothing() {
    let bytes = |scale| {
        let spec = ParReadSpec {
            scale,
            ..ParReadSpec::default()
        };
        let mut builder = built(&BenchmarkSpec::ParRead(spec), 1);
        let read: u64 = steps(&mut builder)
            .iter()
            .map(|(_, steps)| read_bytes(steps))
            .sum();
        (read, builder.files[3].extents[0].start)
    };
    let (whole, place) = bytes(1.0);
    assert_eq!(whole, 4_000_000_000);
    let (tenth, same) = bytes(0.1);
    assert!(tenth.abs_diff(400_000_000) < 4 * 4096);
    assert_eq!(place, same);
}

#[test]
fn numbers_out_of_range_are_named() {
    let refused = |spec: BenchmarkSpec| {
        let mut builder = builder();
        spec.add(&mut builder, 1, 1).unwrap_err().to_string()
    };
    let par_read = |change: fn(&mut ParReadSpec)| {
        let mut spec = ParReadSpec::default();
        change(&mut spec);
        refused(BenchmarkSpec::ParRead(spec))
    };
    assert_eq!(
        par_read(|spec| spec.scale = 0.0),
        "par-read: scale is 0; allowed is more than 0, at most 1"
    );
    let times =
        |from, to| TimeDistribution::Uniform(Nanos::from_micros(from), Nanos::from_micros(to));
    let spec = ParReadSpec {
        think: times(2, 1),
        ..ParReadSpec::default()
    };
    assert_eq!(
        refused(BenchmarkSpec::ParRead(spec)),
        "par-read: think is uniform(2us..1us); allowed is two ends of which the first is not the larger"
    );
    assert_eq!(
        par_read(|spec| spec.processes = 0),
        "par-read: processes is 0; allowed is 1 to 4096"
    );
    assert_eq!(
        par_read(|spec| spec.read = Bytes(0)),
        "par-read: read is 0B; allowed is 1B to 1GiB"
    );
    assert_eq!(
        par_read(|spec| spec.processes = 40),
        "par-read: the data ends at byte 511000002560, the disk at 500107862016"
    );
    let spec = MultiThreadsSpec {
        file_distance: Bytes(1),
        ..MultiThreadsSpec::default()
    };
    assert_eq!(
        refused(BenchmarkSpec::MultiThreads(spec)),
        "multi-threads: file_distance is 1B; allowed is at least a file"
    );
    let spec = MultiThreadsSpec {
        read: Bytes(5000),
        ..MultiThreadsSpec::default()
    };
    assert_eq!(
        refused(BenchmarkSpec::MultiThreads(spec)),
        "multi-threads: read is 5kB; allowed is whole sectors, since calls are direct"
    );
    let spec = PostMarkSpec {
        size_low: Bytes(20_000),
        ..PostMarkSpec::default()
    };
    assert_eq!(
        refused(BenchmarkSpec::PostMark(spec)),
        "postmark: size_low is 20kB; allowed is 1B to size_high"
    );
    let spec = GrepSpec {
        partition: Bytes(64 << 20),
        written: Written::Unpacked,
        ..GrepSpec::default()
    };
    let error = refused(BenchmarkSpec::Grep(spec));
    assert!(
        error.starts_with("grep: the file system has no free"),
        "{error}"
    );
    let spec = MpiIoSpec {
        block: Bytes(1000),
        ..MpiIoSpec::default()
    };
    assert_eq!(
        refused(BenchmarkSpec::MpiIo(spec)),
        "mpi-io-test: block is 1kB; allowed is a multiple of 4KiB, at most 1GiB"
    );
}

#[test]
fn what_would_take_too_much_to_plan_is_refused() {
    let refused = |spec: BenchmarkSpec, planned: u64| {
        let mut builder = builder();
        builder.planned = planned;
        let error = spec.add(&mut builder, 1, 1).expect_err("it is too much");
        error.to_string()
    };
    // Other programs are assumed to have planned nearly all steps. A file has more bytes than steps are left.
    let planned = PLANNED_MAX - 1_000;
    let grep = GrepSpec {
        read: Bytes(1),
        ..GrepSpec::default()
    };
    let expected = "grep: more than 134217728 calls to be planned; make fewer or larger ones, or scale it \
                    down";
    assert_eq!(refused(BenchmarkSpec::Grep(grep), planned), expected);
    let postmark = PostMarkSpec {
        transactions: 100_000_000,
        ..PostMarkSpec::default()
    };
    let expected = expected.replace("grep", "postmark");
    assert_eq!(
        refused(BenchmarkSpec::PostMark(postmark), planned),
        expected
    );

    let expected = expected.replace("postmark", "kernel-compile");
    let compile = KernelCompileSpec {
        scale: 0.02,
        ..KernelCompileSpec::default()
    };
    assert_eq!(
        refused(BenchmarkSpec::KernelCompile(compile), planned),
        expected
    );

    let threads = MultiThreadsSpec {
        processes: 4096,
        threads: 4096,
        file: Bytes(4096),
        file_distance: Bytes(4096),
        process_distance: Bytes(1 << 24),
        ..MultiThreadsSpec::default()
    };
    assert_eq!(
        refused(BenchmarkSpec::MultiThreads(threads), 0),
        "multi-threads: threads is 4096; allowed is at most 1000000 processes in all"
    );
    let mpi = MpiIoSpec {
        programs: 4096,
        processes: 4096,
        servers: 1,
        ..MpiIoSpec::default()
    };
    assert_eq!(
        refused(BenchmarkSpec::MpiIo(mpi), 0),
        "mpi-io-test: processes is 4096; allowed is at most 1000000 processes in all"
    );
}
