//! Properties of hosts with any programs.

use crate::disk::{builder, file, process, run};
use headtime_host::{FileId, Host, HostBuilder, Step};
use headtime_sched::Op;
use headtime_units::{Bytes, Nanos};
use headtime_workload::Source;
use proptest::prelude::*;

/// Pages of each of the four files.
const PAGES: u64 = 300;

#[derive(Clone, Debug)]
pub enum Act {
    Read(usize, u64, u64),
    Write(usize, u64, u64),
    Direct(usize, u64, u64),
    Block(u64, bool),
    Sync(usize),
    Think(u64),
    Forget(usize),
}

pub fn act() -> impl Strategy<Value = Act> {
    let range = || {
        (
            0..4usize,
            0..PAGES * 4096,
            prop_oneof![1u64..5000, 1u64..400_000],
        )
    };
    prop_oneof![
        8 => range().prop_map(|(file, at, len)| Act::Read(file, at, len)),
        4 => range().prop_map(|(file, at, len)| Act::Write(file, at, len)),
        1 => range().prop_map(|(file, at, len)| Act::Direct(file, at, len)),
        2 => (0..40u64, any::<bool>()).prop_map(|(block, dirty)| Act::Block(block, dirty)),
        1 => (0..4usize).prop_map(Act::Sync),
        3 => (0..3_000_000u64).prop_map(Act::Think),
        1 => (0..4usize).prop_map(Act::Forget),
    ]
}

/// Nanoseconds.
fn time() -> impl Strategy<Value = u64> {
    let year = Nanos::LONGEST.as_nanos() / 10;
    prop::sample::select(vec![0, 1, 1_000, 1_000_000, 1_000_000_000, year])
}

fn step(act: &Act, files: [FileId; 4]) -> Step {
    match *act {
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
        Act::Direct(file, offset, len) => Step::Direct {
            op: Op::Read,
            file: files[file],
            offset,
            len,
        },
        Act::Block(block, true) => Step::DirtyBlock(headtime_units::Lba::new(63 + block * 8)),
        Act::Block(block, false) => Step::ReadBlock(headtime_units::Lba::new(63 + block * 8)),
        Act::Sync(file) => Step::Sync(files[file]),
        Act::Think(nanos) => Step::Think(Nanos::from_nanos(nanos)),
        Act::Forget(file) => Step::Forget(files[file]),
    }
}

/// Processes with these steps, all on the same files, with a page cache of `memory` bytes and perhaps through a
/// server.
pub fn host(programs: &[Vec<Act>], memory: u64, workers: u32) -> Host {
    let builder = builder(|spec| {
        spec.page_cache = Bytes(memory);
        spec.barriers = workers == 1;
    });
    build(builder, programs, workers)
}

fn build(mut builder: HostBuilder, programs: &[Vec<Act>], workers: u32) -> Host {
    let files = [0, 1, 2, 3].map(|number| file(&mut builder, 10_000 + number * 100_000, PAGES));
    let pool = (workers > 0).then(|| builder.add_pool(workers));
    for acts in programs {
        let steps: Vec<Step> = acts.iter().map(|act| step(act, files)).collect();
        let mut process = process(steps);
        process.served_by = pool;
        builder.add_process(process);
    }
    builder.build(1).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Every process ends with the bytes of its calls, beside any other processes. Another run makes the same
    /// requests. Looking ahead changes nothing, though foretold requests may come differently.
    #[test]
    fn every_process_ends_whatever_its_steps(
        programs in prop::collection::vec(prop::collection::vec(act(), 0..40), 1..6),
        memory in prop_oneof![Just(1u64 << 20), Just(64 << 20)],
        workers in 0u32..3,
    ) {
        let service = Nanos::from_micros(700);
        let mut first = host(&programs, memory, workers);
        let mut again = host(&programs, memory, workers);
        again.tell_ahead(true);
        let ran = run(&mut first, service);
        prop_assert_eq!(&run(&mut again, service).served, &ran.served);
        let outcome = first.outcome();
        prop_assert_eq!(&again.outcome(), &outcome);
        for (acts, process) in programs.iter().zip(&outcome[0].processes) {
            prop_assert!(process.ended.is_some_and(|ended| ended <= ran.end));
            let (mut read, mut written, mut calls) = (0, 0, 0);
            for act in acts {
                match *act {
                    Act::Read(_, at, len) | Act::Direct(_, at, len) => {
                        read += len.min(PAGES * 4096 - at);
                        calls += 1;
                    }
                    Act::Write(_, at, len) => {
                        written += len.min(PAGES * 4096 - at);
                        calls += 1;
                    }
                    Act::Sync(_) => calls += 1,
                    _ => {}
                }
            }
            prop_assert_eq!(process.bytes_read, read);
            prop_assert_eq!(process.bytes_written, written);
            prop_assert_eq!(process.calls, calls);
        }
        let sum: u64 = outcome[0].processes.iter().map(|process| process.bytes_read).sum();
        prop_assert_eq!(outcome[0].bytes_read, sum);
        prop_assert!(first.cached_bytes() <= memory.max(first.dirty_bytes()) + (8 << 20));
    }

    /// As above, with times of zero, of a nanosecond and of a year.
    #[test]
    fn every_process_ends_at_whatever_times(
        programs in prop::collection::vec(
            prop::collection::vec(prop_oneof![4 => act(), 1 => time().prop_map(Act::Think)], 0..20),
            1..4,
        ),
        copy in time(),
        flusher in (time(), time()),
        workers in 0u32..3,
    ) {
        let make = || {
            let builder = builder(|spec| {
                spec.page_cache = Bytes(1 << 20);
                spec.copy_per_page = Nanos::from_nanos(copy.min(1_000_000_000));
                // Of pages that are never old enough the flusher would look after each for ever.
                spec.writeback_interval = Nanos::from_nanos(flusher.0.max(1_000_000));
                spec.dirty_expire = Nanos::from_nanos(flusher.1).min(Nanos::from_secs(30));
            });
            build(builder, &programs, workers)
        };
        let service = Nanos::from_micros(700);
        let (mut first, mut again) = (make(), make());
        again.tell_ahead(true);
        let ran = run(&mut first, service);
        prop_assert_eq!(&run(&mut again, service).served, &ran.served);
        for process in &first.outcome()[0].processes {
            prop_assert!(process.ended.is_some_and(|ended| ended <= ran.end));
        }
    }

    /// While there is memory, no page is read twice, and none that was not asked for or near it.
    #[test]
    fn no_page_is_read_twice_while_memory_lasts(
        programs in prop::collection::vec(
            prop::collection::vec(
                act().prop_filter("no direct calls, nothing forgotten", |act| {
                    !matches!(act, Act::Direct(..) | Act::Forget(_))
                }),
                0..40,
            ),
            1..6,
        ),
    ) {
        let mut host = host(&programs, 64 << 20, 0);
        let ran = run(&mut host, Nanos::from_micros(700));
        let mut read: Vec<u64> = ran
            .served
            .iter()
            .filter(|served| !served.is_write())
            .flat_map(|served| {
                let start = served.request.extent.start.get();
                (0..served.pages()).map(move |page| start + page * 8)
            })
            .collect();
        let count = read.len();
        read.sort_unstable();
        read.dedup();
        prop_assert_eq!(read.len(), count);
    }

    /// Every changed page is written to the disk in time, and after its last change.
    #[test]
    fn what_is_dirty_is_written(
        programs in prop::collection::vec(
            prop::collection::vec(
                act().prop_filter("nothing forgotten", |act| !matches!(act, Act::Forget(_))),
                0..40,
            ),
            1..6,
        ),
        memory in prop_oneof![Just(1u64 << 20), Just(64 << 20)],
    ) {
        let mut programs = programs;
        programs[0].push(Act::Think(100_000_000_000));
        let mut host = host(&programs, memory, 0);
        let ran = run(&mut host, Nanos::from_micros(700));
        prop_assert_eq!(host.dirty_bytes(), 0);
        let mut written: Vec<u64> = ran
            .served
            .iter()
            .filter(|served| served.is_write())
            .flat_map(|served| {
                let start = served.request.extent.start.get();
                (0..served.pages()).map(move |page| start + page * 8)
            })
            .collect();
        written.sort_unstable();
        written.dedup();
        let mut changed: Vec<u64> = programs
            .iter()
            .flatten()
            .flat_map(|act| match *act {
                Act::Write(file, at, len) => {
                    let end = (at + len).min(PAGES * 4096);
                    let base = 10_000 + file as u64 * 100_000;
                    (at / 4096..end.div_ceil(4096)).map(|page| base + page * 8).collect()
                }
                Act::Block(block, true) => vec![63 + block * 8],
                _ => Vec::new(),
            })
            .collect();
        changed.sort_unstable();
        changed.dedup();
        prop_assert_eq!(written, changed);
    }

    /// Requests that are foretold for an undisturbed process arrive as foretold, and few others come.
    #[test]
    fn what_is_told_comes_true(
        programs in prop::collection::vec(prop::collection::vec(act(), 0..60), 1..5),
    ) {
        let mut programs = programs;
        for (index, acts) in programs.iter_mut().enumerate() {
            for act in acts {
                match act {
                    Act::Read(file, ..)
                    | Act::Write(file, ..)
                    | Act::Direct(file, ..)
                    | Act::Sync(file)
                    | Act::Forget(file) => *file = index,
                    Act::Block(block, _) => *block += 1000 * index as u64,
                    Act::Think(_) => {}
                }
            }
        }
        let mut host = host(&programs, 64 << 20, 0);
        host.tell_ahead(true);
        let ran = run(&mut host, Nanos::from_micros(700));
        for (when, told) in &ran.foretold {
            prop_assert!(ran.has_served(told), "{told:?}, told at {when}, did not come");
        }
        // Not told: the first of each process, what syncs and the flusher write, all but the first of
        // several at a time, and what comes after more than a second.
        let first = |index: usize| {
            let request = &ran.served[index].request;
            !ran.served[..index].iter().any(|before| {
                before.request.origin == request.origin
                    && before.request.arrival == request.arrival
            })
        };
        let reads = (0..ran.served.len())
            .filter(|index| !ran.served[*index].is_write() && first(*index))
            .count();
        let syncs = programs.iter().flatten().filter(|act| matches!(act, Act::Sync(_))).count();
        prop_assert!(ran.foretold.len() + programs.len() + syncs >= reads);
    }
}
