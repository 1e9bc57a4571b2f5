//! Windows of time for programs.

use crate::rig::{Rig, at, config};
use crate::world::arrival;
use headtime_engine::{Arrival, Engine, Event, Gate, GateOrder, Lane, Outcome, RequestId};
use headtime_sched::{Op, Sstf};
use headtime_testkit::{ToyAnticipator, Windows};
use headtime_units::{Nanos, Time};

const SPAN: Nanos = Nanos::from_millis(100);

fn of(program: u16, id: u64) -> Arrival {
    let mut new = arrival(id, Op::Read, id * 1000, 8, 0);
    new.origin.program = program;
    new
}

/// Serves two programs with `many` requests outstanding each, at 7 ms a command. Returns programs and times of the
/// commands.
fn run(gate: Windows, many: [u64; 2], until: Time) -> Vec<(u16, Time)> {
    let mut rig = Rig::new(config(2), gate);
    let mut ids = 0..;
    for (program, many) in (0..).zip(many) {
        for _ in 0..many {
            rig.arrive(of(program, ids.next().unwrap()));
        }
    }
    let mut sent = Vec::new();
    let mut owners: Vec<(RequestId, u16)> = Vec::new();
    let mut seen = 0;
    loop {
        for new in &rig.sent[seen..] {
            sent.push((new.request.origin.program, new.at));
            owners.push((new.parts[0], new.request.origin.program));
        }
        seen = rig.sent.len();
        let done = rig
            .in_drive
            .first()
            .map(|sent| sent.at + Nanos::from_millis(7));
        let next = done.into_iter().chain(rig.engine.next_wakeup()).min();
        rig.now = next.expect("something happens");
        if rig.now >= until {
            rig.finish();
            return sent;
        }
        if done == next {
            let program = rig.in_drive[0].request.origin.program;
            rig.complete(0, Outcome::Done);
            rig.arrive(of(program, ids.next().unwrap()));
        } else {
            rig.event(Event::Woke);
        }
    }
}

/// Commands outside of their program's window, and edges without a command.
fn wrong(sent: &[(u16, Time)], edges: u64) -> Vec<(u16, Time)> {
    let mut wrong: Vec<(u16, Time)> = sent
        .iter()
        .filter(|(program, at)| at.as_nanos() / SPAN.as_nanos() % 2 != u64::from(*program))
        .copied()
        .collect();
    for edge in 1..edges {
        let (program, at) = ((edge % 2) as u16, Time::ZERO + SPAN * edge);
        // Two commands of 7 ms at a time: 98 ms from one edge, and a free drive at the next.
        if !sent.contains(&(program, at)) {
            wrong.push((program, at));
        }
    }
    wrong
}

#[test]
fn edges_of_windows_are_exact() {
    // The programs have so few requests that the drive is free at each edge.
    let sent = run(Windows::new(2, SPAN), [1, 1], at(1000));
    assert_eq!(wrong(&sent, 10), []);
    // A command that began in the window may end in the next one: the drive is full at the edge.
    let busy = run(Windows::new(2, SPAN), [40, 40], at(1000));
    assert_eq!(wrong(&busy, 1), []);
    assert!(busy.len() > 250, "{}", busy.len());
    let switches: Vec<Time> = busy
        .windows(2)
        .filter(|pair| pair[0].0 != pair[1].0)
        .map(|pair| pair[1].1)
        .collect();
    assert_eq!(switches.len(), 9);
    for (edge, switch) in (1..).zip(switches) {
        let late = switch - (Time::ZERO + SPAN * edge);
        assert!(late < Nanos::from_millis(7), "{late} after edge {edge}");
    }
}

#[test]
fn a_drive_that_is_free_at_an_edge_gets_the_next_command_in_that_nanosecond() {
    let from = Time::from_nanos(12_345);
    let mut gate = Windows::new(1, SPAN);
    let order = GateOrder::Window {
        lane: Lane(0),
        from,
        span: SPAN,
    };
    gate.obey(Time::ZERO, &order);
    for (edge, program) in [(0, 0), (1, 1), (2, 0), (3, 1)] {
        let mut rig = Rig::new(config(1), gate.clone());
        rig.now = from + SPAN * edge - Nanos::from_nanos(1);
        if edge == 0 {
            rig.now = Time::ZERO;
        }
        rig.arrive(of(program, 0));
        assert_eq!(rig.sent.len(), 0, "edge {edge}");
        assert_eq!(rig.engine.next_wakeup(), Some(from + SPAN * edge));
        let sent = rig.finish();
        assert_eq!(sent[0].at, from + SPAN * edge);
    }
}

/// Program of a command, and its time.
type Went = (u16, Time);

/// Edges without a command, and all commands. The windows begin at `from` with this program's.
fn missed(program: u8, from: Time) -> (Vec<Went>, Vec<Went>) {
    let mut gate = Windows::new(2, SPAN);
    gate.obey(
        Time::ZERO,
        &GateOrder::Window {
            lane: Lane(program),
            from,
            span: SPAN,
        },
    );
    let sent = run(gate, [1, 1], at(1000));
    (wrong(&sent, 10), sent)
}

#[test]
fn windows_that_are_off_by_a_nanosecond_miss_every_edge_and_exact_ones_none() {
    let nano = Nanos::from_nanos(1);
    let edges = |offset: fn(Time, Nanos) -> Time| -> Vec<(u16, Time)> {
        let edge = |edge: u64| ((edge % 2) as u16, offset(Time::ZERO + SPAN * edge, nano));
        (1..10).map(edge).collect()
    };
    assert_eq!(missed(0, Time::ZERO).0, []);
    // The windows are late by a nanosecond: each command that misses an edge goes in the next nanosecond.
    let (late, sent) = missed(0, Time::ZERO + nano);
    assert_eq!(late, edges(|edge, _| edge));
    for there in edges(|edge, nano| edge + nano) {
        assert!(sent.contains(&there), "{there:?}");
    }
    // Early windows let commands go in the other program's window, also before the tenth edge, at which the run ends.
    let (early, _) = missed(1, Time::ZERO + SPAN - nano);
    let mut expected = edges(|edge, nano| edge - nano);
    expected.push((0, at(1000) - nano));
    expected.extend(edges(|edge, _| edge));
    assert_eq!(early, expected);
}

/// A wait that was over while the gate held woke the engine for ever, at a time that had passed. Expected: it
/// sleeps until the gate is to be asked again.
#[test]
fn a_wait_that_ends_while_the_gate_holds_wakes_the_engine_once() {
    let schedulers = (0..2).map(|_| Box::new(ToyAnticipator::new(Sstf::new())) as Box<_>);
    let gate = Windows::new(2, SPAN);
    let engine = Engine::with_gate(config(2), Box::new(gate.clone()), schedulers.collect());
    let mut rig = Rig::around(engine.expect("in range"), gate);
    // A stream, and after it a far request.
    for (id, start) in [(0, 0), (1, 8), (2, 5000)] {
        let new = arrival(id, Op::Read, start, 8, 0);
        if id == 2 {
            rig.now = at(99);
            rig.arrive(new);
        } else {
            rig.arrive(new);
            rig.now = at(99);
            rig.complete(0, Outcome::Done);
        }
    }
    assert_eq!(rig.in_drive.len(), 0, "it waits for the stream to go on");
    for ms in [100, 101] {
        assert_eq!(rig.engine.next_wakeup(), Some(at(ms)));
        rig.now = at(ms);
        rig.event(Event::Woke);
    }
    assert_eq!(rig.engine.next_wakeup(), Some(at(200)), "its next window");
    rig.now = at(200);
    rig.event(Event::Woke);
    assert_eq!(rig.in_drive.len(), 1);
}

#[test]
fn windows_are_moved_by_an_order_in_the_middle_of_one() {
    let mut rig = Rig::new(config(1), Windows::new(1, SPAN));
    rig.now = at(10);
    rig.arrive(of(1, 0));
    assert_eq!(rig.engine.next_wakeup(), Some(at(100)));
    let from = at(40) + Nanos::from_nanos(7);
    rig.event(Event::Ordered(GateOrder::Window {
        lane: Lane(1),
        from,
        span: Nanos::from_millis(5),
    }));
    assert_eq!(rig.engine.next_wakeup(), Some(from));
    assert_eq!(rig.finish()[0].at, from);
}
