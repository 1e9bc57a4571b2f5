//! A flush of a volume, and the rank of requests that wait for it. Both are the same with any number of members.

use headtime_engine::log::{self, Replay, Writer};
use headtime_engine::{
    Arrival, Asked, Broken, Command, Config, Core, Done, DriveTag, Engine, Event, Finished, Gate,
    GaveUp, Late, Member, Order, Outcome, RequestId, Seen, World, earliest,
};
use headtime_sched::{Backlog, Class, Flags, Noop, Op, Origin, Request, Scheduler, WorkConserving};
use headtime_testkit::{FlushLook, Striped, ToyGate};
use headtime_units::{Extent, Nanos, Time};
use std::collections::VecDeque;

const LOW: Class = Class::BEST_EFFORT;
const HIGH: Class = Class::REAL_TIME;
/// Two tags. The second is reserved for the high rank.
const DEPTH: u32 = 2;
/// When the devices begin to complete commands.
const FROM: u64 = 1000;
const STRIPE: u64 = 8;

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn noop() -> Box<dyn Scheduler> {
    Box::new(WorkConserving::new(Noop::new()))
}

fn ranks() -> Box<dyn Gate> {
    ToyGate::Ranks(100).build(DEPTH)
}

fn config() -> Config {
    Config {
        depth: DEPTH,
        merge: false,
        ..Config::default()
    }
}

fn engines(members: u16) -> Vec<Engine> {
    let engine = |_| Engine::with_gate(config(), ranks(), vec![noop(), noop()]);
    (0..members)
        .map(|member| engine(member).expect("in range"))
        .collect()
}

/// Devices that do nothing until a time, and then complete one command after the other, the oldest first.
struct Waiting {
    members: u16,
    arrivals: VecDeque<(u64, Op, Class)>,
    orders: VecDeque<(Time, Order)>,
    arrived: u64,
    in_device: VecDeque<(Member, DriveTag)>,
    next_end: u64,
    sent: Vec<(Time, Member, Op, Class)>,
    finished: u64,
    /// Check of flushes on a volume of several members. A single member holds back requests after a flush by itself.
    look: Option<FlushLook>,
}

impl World for Waiting {
    type Error = Broken;

    fn next_order(&self) -> Time {
        self.orders.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    fn order(&mut self, _: Time) -> Option<Order> {
        self.orders.pop_front().map(|(_, order)| order)
    }

    fn next_device(&self) -> Time {
        earliest(&self.in_device, |_| Some(at(self.next_end)))
    }

    fn completed(&mut self, now: Time) -> Option<Done> {
        let (member, tag) = self.in_device.pop_front()?;
        self.next_end += 10;
        Some(Done {
            member,
            tag,
            at: now,
            outcome: Outcome::Done,
        })
    }

    fn next_arrival(&self) -> Option<Time> {
        self.arrivals.front().map(|(due, ..)| at(*due))
    }

    fn arrived(&mut self, _: Time) -> Result<Option<Asked>, Broken> {
        let Some((_, op, class)) = self.arrivals.pop_front() else {
            return Ok(None);
        };
        // Each has a stripe on every member, and none overlaps another.
        let len = STRIPE * u64::from(self.members);
        self.arrived += 1;
        let extent = match op {
            Op::Flush => Extent::default(),
            _ => Extent::at(self.arrived * len, len),
        };
        Ok(Some(Asked::Request(Arrival {
            id: RequestId::Client(self.arrived),
            op,
            extent,
            flags: Flags::NONE,
            // A window of the odd programs comes late.
            origin: Origin {
                program: 1,
                ..Origin::default()
            },
            class,
            since: None,
        })))
    }

    fn submit(
        &mut self,
        now: Time,
        member: Member,
        request: &Request<DriveTag>,
        _: &Engine,
    ) -> bool {
        self.in_device.push_back((member, request.tag));
        self.sent.push((now, member, request.op, request.class));
        true
    }

    fn give_up(&mut self, _: Time, _: &Late<'_>) -> GaveUp {
        unreachable!("there is no timeout")
    }

    fn finished(&mut self, _: Time, done: &Finished) -> Result<(), Broken> {
        assert_eq!(done.outcome, Outcome::Done);
        self.finished += 1;
        Ok(())
    }

    fn backlog(&mut self, _: Time, _: Member, _: Backlog) {}

    fn seen(&mut self, _: Time, member: Member, seen: Seen<'_>) {
        if let Some(look) = &mut self.look {
            look.see(member, seen).expect("nothing passes a flush");
        }
    }
}

/// Runs a volume under the audit until all requests have ended. The log must replay.
fn run(
    members: u16,
    arrivals: &[(u64, Op, Class)],
    orders: impl IntoIterator<Item = (Time, Order)>,
) -> (Waiting, String) {
    let mut world = Waiting {
        members,
        arrivals: arrivals.iter().copied().collect(),
        orders: orders.into_iter().collect(),
        arrived: 0,
        in_device: VecDeque::new(),
        next_end: FROM,
        sent: Vec::new(),
        finished: 0,
        look: (members > 1).then(|| FlushLook::new(members)),
    };
    let mut log = String::new();
    let mut write = |piece: &str| log.push_str(piece);
    let write: &mut dyn FnMut(&str) = &mut write;
    let writer = Some(Writer::new(&[], write));
    let map = Striped {
        members,
        stripe: STRIPE,
        stripes: 1000,
        parity: false,
    };
    let mut several = engines(members);
    let mut core = match members {
        1 => Core::new(several.remove(0), writer),
        _ => Core::of_volume(several, Box::new(map.map()), writer),
    };
    core.audit();
    loop {
        let due = core.due(&world);
        let Some(next) = due.at() else { break };
        let stepped = core.step(&mut world, &due, next);
        stepped.unwrap_or_else(|broken| panic!("{members} members: {broken}"));
    }
    assert!(core.is_idle());
    core.take_log().expect("there is one").finish();
    assert_eq!(world.finished, arrivals.len() as u64);
    let again = engines(members);
    let mut replay = Replay::of_volume(again).with_gates(ToyGate::named);
    if let Err(error) = replay.all(&log, |_| Some(noop())) {
        panic!("{error}\n{log}");
    }
    (world, log)
}

/// When reads of the low rank went to the drive, by member.
fn low_reads(world: &Waiting, member: u16) -> Vec<u64> {
    let of_low = |(_, of, op, class): &&(Time, Member, Op, Class)| {
        (*of, *op, *class) == (Member(member), Op::Read, LOW)
    };
    let sent = world.sent.iter().filter(of_low);
    sent.map(|(at, ..)| at.as_nanos()).collect()
}

#[test]
fn what_a_flush_waits_for_inherits_the_rank_of_what_waits_behind_it_on_every_member() {
    for members in 1..=3 {
        let arrivals = [
            (0, Op::Read, LOW),
            (1, Op::Read, LOW),
            (2, Op::Flush, LOW),
            (3, Op::Read, LOW),
            (4, Op::Read, HIGH),
        ];
        let (world, _) = run(members, &arrivals, []);
        for member in 0..members {
            let sent = low_reads(&world, member);
            assert_eq!(sent[..2], [0, 4], "member {member} of {members}");
        }
    }
}

#[test]
fn what_waits_behind_a_second_flush_hands_its_rank_on_after_the_first() {
    for members in 1..=3 {
        let arrivals = [
            (0, Op::Read, LOW),
            (1, Op::Flush, LOW),
            (2, Op::Read, LOW),
            (3, Op::Read, LOW),
            (4, Op::Flush, LOW),
            (5, Op::Read, HIGH),
        ];
        let (world, _) = run(members, &arrivals, []);
        for member in 0..members {
            let of_member = world
                .sent
                .iter()
                .filter(|(_, of, ..)| *of == Member(member));
            let ops: Vec<Op> = of_member.map(|(_, _, op, _)| *op).collect();
            let (read, flush) = (Op::Read, Op::Flush);
            assert_eq!(ops, [read, flush, read, read, flush, read]);
            // A request that waits for a command goes later.
            let sent = low_reads(&world, member);
            assert_eq!(sent[1], sent[2], "member {member} of {members}");
        }
    }
}

#[test]
fn rank_is_handed_on_anew_when_the_gate_of_a_member_is_swapped() {
    for members in 1..=3 {
        let arrivals = [
            (0, Op::Read, LOW),
            (1, Op::Read, LOW),
            (3, Op::Flush, LOW),
            (4, Op::Read, HIGH),
        ];
        let order = |member, gate: ToyGate| Order::SwapGate {
            member,
            text: gate.text(DEPTH),
            gate: gate.build(DEPTH),
            schedulers: ["noop", "noop"]
                .map(|text| (text.to_owned(), noop()))
                .into(),
        };
        let all = |gate: ToyGate, time| {
            let members = (0..members).map(Member);
            members.map(move |member| (at(time), order(member, gate)))
        };
        // Windows have no ranks, and no request of this test is of the even programs.
        let windows = all(ToyGate::Windows(Nanos::from_secs(1)), 2);
        let ranks = all(ToyGate::Ranks(100), 6);
        let (world, _) = run(members, &arrivals, windows.chain(ranks));
        for member in 0..members {
            let sent = low_reads(&world, member);
            assert_eq!(sent, [0, 6], "member {member} of {members}");
        }
    }
}

#[test]
fn a_member_is_told_only_of_a_rank_that_is_new_to_its_flush() {
    let told = |members, arrivals: &[(u64, Op, Class)]| {
        let (_, log) = run(members, arrivals, []);
        let records = log::read(&log).map(|record| record.expect("a log").1);
        let told = |record: &log::Record| {
            let mut line = String::new();
            log::write_record(&mut line, record);
            line.trim_start_matches(|sign: char| "@0123456789 ".contains(sign))
                .starts_with('B')
        };
        records.filter(told).count()
    };
    let begin = [
        (0, Op::Read, LOW),
        (1, Op::Read, LOW),
        (2, Op::Flush, LOW),
        (3, Op::Read, LOW),
    ];
    assert_eq!(told(3, &begin), 0);
    let twice = [
        begin.as_slice(),
        &[(4, Op::Read, HIGH), (5, Op::Read, HIGH)],
    ]
    .concat();
    assert_eq!(told(3, &twice), 3);
    assert_eq!(told(1, &twice), 0, "a volume of one holds nothing back");
    let alone = [(0, Op::Flush, LOW), (1, Op::Read, HIGH)];
    assert_eq!(told(3, &alone), 0, "the flush waits for nothing");
}

/// A volume that breaks its promise: each member keeps its flushes for itself.
struct Torn {
    engines: Vec<Engine>,
    look: FlushLook,
}

impl Torn {
    /// Passes an event to a member. Returns the tags of commands for its drive.
    fn event(&mut self, member: u16, event: Event) -> Result<Vec<DriveTag>, String> {
        let engine = &mut self.engines[usize::from(member)];
        let member = Member(member);
        self.look.see(member, Seen::Event(&event))?;
        engine.handle(at(0), event);
        let mut sent = Vec::new();
        while let Some(command) = engine.poll(at(0)) {
            self.look.see(member, Seen::Command(&command))?;
            if let Command::Issue(request) = command {
                sent.push(request.tag);
            }
        }
        Ok(sent)
    }

    fn arrive(&mut self, member: u16, id: u64, op: Op) -> Result<Vec<DriveTag>, String> {
        let extent = match op {
            Op::Flush => Extent::default(),
            _ => Extent::at(id * STRIPE, STRIPE),
        };
        let arrival = Arrival {
            id: RequestId::Client(id),
            op,
            extent,
            flags: Flags::NONE,
            origin: Origin::default(),
            class: HIGH,
            since: None,
        };
        self.event(member, Event::Arrived(arrival))
    }
}

#[test]
fn a_part_that_passes_a_flush_on_one_member_is_found() {
    let mut torn = Torn {
        engines: engines(2),
        look: FlushLook::new(2),
    };
    assert_eq!(torn.arrive(0, 1, Op::Read).unwrap().len(), 1);
    assert_eq!(torn.arrive(0, 2, Op::Flush).unwrap(), [], "it waits");
    let sent = torn.arrive(1, 3, Op::Flush).unwrap();
    let done = Event::Completed {
        tag: sent[0],
        outcome: Outcome::Done,
    };
    torn.event(1, done).unwrap();
    let error = torn.arrive(1, 4, Op::Read).unwrap_err();
    let expected = "part 4 reaches member 1 after flush 1, which has not ended on member 0";
    assert_eq!(error, expected);
}
