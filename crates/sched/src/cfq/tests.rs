//! Tests of the rules of the policy, by subject. This file holds their shared helpers.

mod classes;
mod cooperation;
mod drive;
mod order;
mod queues;
mod turns;
mod waits;

use super::*;
use crate::tests::{at, class, grown, of, read, write};
use crate::{Class, Flags, Hz, Op};
use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

const HZ_1000: Hz = Hz::new(1_000).expect("it is allowed");

/// Builds a scheduler with ticks of a millisecond, so that times are as written.
fn fine() -> Cfq {
    Cfq::new(CfqConfig {
        hz: HZ_1000,
        ..CfqConfig::DEFAULT
    })
}

fn sync(request: Request) -> Request {
    let flags = Flags::SYNC;
    Request { flags, ..request }
}

/// Returns the request that is handed out now; `None` if the scheduler waits, or nothing is queued.
fn next(sched: &mut Cfq, now: Time) -> Option<Request> {
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
fn idle_until(sched: &mut Cfq, now: Time) -> Option<Time> {
    match sched.dispatch(now) {
        Dispatch::IdleUntil(until) => Some(until),
        _ => None,
    }
}

/// Hands out a request, which must have this tag, and completes it.
fn serve(sched: &mut Cfq, tag: u32, from: Time, to: Time) {
    let request = next(sched, from).expect("it has a request to serve");
    assert_eq!(request.tag, Tag(tag));
    sched.completed(to, &request);
}

/// A process that reads or writes, one request after the other.
#[derive(Clone, Copy, Debug)]
struct Program {
    process: u32,
    op: Op,
    start: u64,
    /// Distance from the start of one request to the start of the next.
    stride: u64,
    think: Nanos,
}

impl Program {
    fn reader(process: u32, start: u64) -> Program {
        Program {
            process,
            op: Op::Read,
            start,
            stride: 256,
            think: Nanos::from_micros(50),
        }
    }
}

/// A request that was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Given {
    at: Time,
    process: u32,
}

/// Runs programs for `length` on a drive that takes `depth` requests and completes one after the
/// other, each in 2 ms. Returns the requests handed out. Completions precede arrivals, and arrivals
/// precede the ends of waits. The drive asks for requests after each event.
fn run(sched: &mut Cfq, programs: &[Program], depth: usize, length: Nanos) -> Vec<Given> {
    const SERVICE: Nanos = Nanos::from_millis(2);
    const SECTORS: u64 = 256;
    let end = Time::ZERO + length;
    let mut arrivals: Vec<(Time, u64)> = programs.iter().map(|p| (Time::ZERO, p.start)).collect();
    let mut drive: VecDeque<(Time, Request)> = VecDeque::new();
    let (mut wakes, mut given, mut now) = (Time::NEVER, Vec::new(), Time::ZERO);
    while now < end {
        let arrival = arrivals.iter().enumerate().min_by_key(|(_, (at, _))| *at);
        let (who, (arrives, lba)) = arrival.map(|(who, next)| (who, *next)).expect("programs");
        let done = drive.front().map_or(Time::NEVER, |(done, _)| *done);
        now = done.min(arrives).min(wakes);
        wakes = Time::NEVER;
        if done == now {
            let (_, request) = drive.pop_front().expect("there is one");
            sched.completed(now, &request);
            let who = request.tag.index();
            let lba = request.extent.start.get() + programs[who].stride;
            arrivals[who] = (now + programs[who].think, lba);
        } else if arrives == now {
            let request = Request {
                op: programs[who].op,
                extent: Extent::at(lba, SECTORS),
                arrival: now,
                ..of(programs[who].process, read(who as u32, 0, 0))
            };
            arrivals[who].0 = Time::NEVER;
            sched.insert(now, request);
        }
        while drive.len() < depth {
            match sched.dispatch(now) {
                Dispatch::Request(request) => {
                    let start = drive.back().map_or(now, |(done, _)| *done);
                    drive.push_back((start + SERVICE, request));
                    let process = request.origin.process;
                    given.push(Given { at: now, process });
                }
                Dispatch::IdleUntil(until) => {
                    wakes = until;
                    break;
                }
                Dispatch::Empty => break,
            }
        }
    }
    given
}

/// Runs of one process: process, start, and number of requests.
fn turns(given: &[Given]) -> Vec<(u32, Time, usize)> {
    let mut turns: Vec<(u32, Time, usize)> = Vec::new();
    for one in given {
        match turns.last_mut() {
            Some((process, _, count)) if *process == one.process => *count += 1,
            _ => turns.push((one.process, one.at, 1)),
        }
    }
    turns
}

/// Serves a process whose requests are far from each other, while another process has a request
/// waiting. The last completion is at 41 ms.
fn seek(sched: &mut dyn Scheduler) {
    for (i, ms, done) in [(0, 0, 10), (1, 11, 21), (2, 22, 32), (7, 33, 41)] {
        let request = of(0, read(0, 10_000_000 * i, ms));
        sched.insert(at(ms), request);
        assert_eq!(sched.dispatch(at(ms)), Dispatch::Request(request));
        if done == 41 {
            sched.insert(at(40), of(1, read(1, 90_000_000, 40)));
        }
        sched.completed(at(done), &request);
    }
}

fn seeking(mut sched: Cfq, drive_queues: bool) -> Cfq {
    sched.drive.queues = drive_queues;
    seek(&mut sched);
    sched
}
