//! Tests of the rules of the policy, by subject. This file holds their shared helpers.

mod budgets;
mod drive;
mod loads;
mod merging;
mod order;
mod raising;
mod seams;
mod waits;

use super::*;
use crate::Class;
use crate::tests::{at, class, of, read, write};
use headtime_units::Extent;
use std::collections::VecDeque;
use std::vec::Vec;

fn config() -> BfqConfig {
    BfqConfig::default()
}

/// A scheduler without weight raising.
fn fair() -> Bfq {
    Bfq::new(BfqConfig {
        low_latency: false,
        ..config()
    })
}

/// A read of this many sectors that arrives at `ms`.
fn long(tag: u32, lba: u64, sectors: u64, ms: u64) -> Request {
    Request {
        extent: Extent::at(lba, sectors),
        ..read(tag, lba, ms)
    }
}

/// Returns the request that is handed out now; `None` if the scheduler waits, or nothing is queued.
fn next(sched: &mut Bfq, now: Time) -> Option<Request> {
    match sched.dispatch(now) {
        Dispatch::Request(request) => Some(request),
        Dispatch::IdleUntil(until) => {
            assert!(until > now);
            None
        }
        Dispatch::Empty => None,
    }
}

/// Returns the time until which the disk is kept free.
fn idle_until(sched: &mut Bfq, now: Time) -> Option<Time> {
    match sched.dispatch(now) {
        Dispatch::IdleUntil(until) => Some(until),
        _ => None,
    }
}

/// Hands out a request, which must have this tag, and completes it.
fn serve(sched: &mut Bfq, tag: u32, from: Time, to: Time) {
    let request = next(sched, from).expect("it has a request to serve");
    assert_eq!(request.tag, Tag(tag));
    sched.completed(to, &request);
}

/// Returns the own queue of a process.
fn queue(sched: &Bfq, process: u32) -> &queue::BfqQueue {
    let id = sched.queues.find(process, Level::BestEffort);
    &sched.queues[id.expect("the process has come")]
}

fn queue_mut(sched: &mut Bfq, process: u32) -> &mut queue::BfqQueue {
    let id = sched.queues.find(process, Level::BestEffort);
    &mut sched.queues[id.expect("the process has come")]
}

/// The process in service.
fn in_service(sched: &Bfq) -> Option<u32> {
    sched.queues[sched.slot?.queue].process
}

/// A process that reads.
#[derive(Clone, Copy, Debug)]
struct Reader {
    begins: Time,
    start: u64,
    sectors: u64,
    /// True for addresses in no order.
    random: bool,
    outstanding: usize,
    think: Nanos,
}

impl Reader {
    /// A scan in requests of 128 KiB, two at a time.
    fn scan(start: u64) -> Reader {
        Reader {
            begins: Time::ZERO,
            start,
            sectors: 256,
            random: false,
            outstanding: 2,
            think: Nanos::from_micros(100),
        }
    }

    /// Random reads of 4 KiB, one at a time.
    fn random() -> Reader {
        Reader {
            sectors: 8,
            random: true,
            outstanding: 1,
            ..Reader::scan(1_000_000_000)
        }
    }
}

/// A request that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Done {
    at: Time,
    reader: usize,
    sectors: u64,
}

/// Megabytes per second of a reader between two seconds.
fn rate(done: &[Done], reader: usize, from: u64, to: u64) -> u64 {
    let within = done.iter().filter(|done| {
        done.reader == reader && at(1_000 * from) <= done.at && done.at < at(1_000 * to)
    });
    within.map(|done| done.sectors * 512).sum::<u64>() / (to - from) / 1_000_000
}

/// Requests per second of a reader between two seconds.
fn iops(done: &[Done], reader: usize, from: u64, to: u64) -> u64 {
    let within = done.iter().filter(|done| {
        done.reader == reader && at(1_000 * from) <= done.at && done.at < at(1_000 * to)
    });
    within.count() as u64 / (to - from)
}

/// Runs readers for some seconds on a drive of 150 MB/s, which serves up to eight requests in order. A seek takes 6 to
/// 18 ms. Completions precede arrivals, and arrivals precede the ends of waits.
fn run(sched: &mut Bfq, readers: &[Reader], seconds: u64) -> Vec<Done> {
    const DEPTH: usize = 8;
    let mut places: Vec<u64> = readers.iter().map(|reader| reader.start).collect();
    let mut arrivals: Vec<(Time, usize)> = readers
        .iter()
        .enumerate()
        .flat_map(|(at, reader)| (0..reader.outstanding).map(move |_| (reader.begins, at)))
        .collect();
    let mut drive: VecDeque<(Time, Request)> = VecDeque::new();
    let mut free: Vec<u32> = (0..arrivals.len() as u32).rev().collect();
    let (mut end, mut seed, mut last) = (Time::ZERO, 1_u64, 0);
    let (mut wakes, mut done, mut now) = (Time::NEVER, Vec::new(), Time::ZERO);
    let mut draw = || {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        seed >> 33
    };
    while now < at(1_000 * seconds) {
        let first = arrivals.iter().enumerate().min_by_key(|(_, (at, _))| *at);
        let first = first.map(|(place, (at, _))| (place, *at));
        let arrives = first.map_or(Time::NEVER, |(_, at)| at);
        let completes = drive.front().map_or(Time::NEVER, |(at, _)| *at);
        now = completes.min(arrives).min(wakes);
        wakes = Time::NEVER;
        if completes == now {
            let (_, request) = drive.pop_front().expect("there is one");
            sched.completed(now, &request);
            let reader = request.origin.process as usize - 1;
            let sectors = request.extent.len.get();
            done.push(Done {
                at: now,
                reader,
                sectors,
            });
            free.push(request.tag.0);
            arrivals.push((now + readers[reader].think, reader));
        } else if arrives == now {
            let (_, reader) = arrivals.swap_remove(first.expect("it arrives").0);
            let Reader {
                sectors, random, ..
            } = readers[reader];
            let lba = match random {
                true => draw() % 100_000_000 * 8,
                false => places[reader],
            };
            places[reader] += sectors;
            let tag = free.pop().expect("there are as many as requests");
            let request = Request {
                arrival: now,
                ..of(reader as u32 + 1, long(tag, lba, sectors, 0))
            };
            sched.insert(now, request);
        }
        while drive.len() < DEPTH {
            match sched.dispatch(now) {
                Dispatch::Request(request) => {
                    let start = request.extent.start.get();
                    let seek = match start == last {
                        true => 0,
                        false => 6_000 + draw() % 12_000,
                    };
                    let transfer = request.extent.len.get() * 512 * 1_000 / 150_000;
                    last = request.extent.end().get();
                    end = now.max(end)
                        + Nanos::from_micros(seek)
                        + Nanos::from_nanos(transfer * 1_000);
                    drive.push_back((end, request));
                }
                Dispatch::IdleUntil(until) => {
                    wakes = until;
                    break;
                }
                Dispatch::Empty => break,
            }
        }
    }
    done
}
