//! The loop around an engine: what comes first, who is told, and when a command is given up on.

use headtime_engine::log::{self, Writer};
use headtime_engine::{
    Approach, Arrival, Asked, Background, Broken, Config, Core, Done, DriveTag, Engine, Event,
    Finished, GateOrder, GaveUp, Join, Lane, Late, Member, Order, Outcome, RequestId, Seen, World,
    earliest,
};
use headtime_sched::{
    Backlog, Class, Flags, Foretold, Noop, Op, Origin, Request, Scheduler, WorkConserving,
};
use headtime_units::{Extent, Nanos, Time};
use std::collections::VecDeque;
use std::fmt::Write as _;

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn noop() -> Box<dyn Scheduler> {
    Box::new(WorkConserving::new(Noop::new()))
}

/// A device that takes as long as it is told to, and a list of requests.
#[derive(Default)]
struct Scripted {
    /// Duration of each command; `None` for a command without an answer.
    takes: VecDeque<Option<u64>>,
    arrivals: VecDeque<u64>,
    arrived: u64,
    orders: VecDeque<(Time, Order)>,
    tells: VecDeque<Foretold>,
    in_device: Vec<(Option<Time>, DriveTag)>,
    /// Answers of the device to an abort.
    gives_up: VecDeque<GaveUp>,
    refuses: bool,
    told: String,
    /// Log of the observed events and decisions.
    tape: String,
}

impl World for Scripted {
    type Error = Broken;

    fn next_order(&self) -> Time {
        self.orders.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    fn order(&mut self, _: Time) -> Option<Order> {
        self.orders.pop_front().map(|(_, order)| order)
    }

    fn next_device(&self) -> Time {
        earliest(&self.in_device, |(at, _)| *at)
    }

    fn completed(&mut self, now: Time) -> Option<Done> {
        let due = |(at, _): &(Option<Time>, DriveTag)| at.is_some_and(|at| at <= now);
        let first = self.in_device.iter().position(due)?;
        let (at, tag) = self.in_device.remove(first);
        Some(Done {
            member: Member::default(),
            tag,
            at: at?,
            outcome: Outcome::Done,
        })
    }

    fn next_arrival(&self) -> Option<Time> {
        self.arrivals.front().map(|due| at(*due))
    }

    fn arrived(&mut self, _: Time) -> Result<Option<Asked>, Broken> {
        self.arrived += 1;
        Ok(self.arrivals.pop_front().map(|_| {
            Asked::Request(Arrival {
                id: RequestId::Client(self.arrived),
                op: Op::Read,
                extent: Extent::at(self.arrived * 1000, 8),
                flags: Flags::NONE,
                origin: Origin::default(),
                class: Class::default(),
                since: None,
            })
        }))
    }

    fn foretell(&mut self) -> Option<Foretold> {
        self.tells.pop_front()
    }

    fn submit(
        &mut self,
        now: Time,
        _: Member,
        request: &Request<DriveTag>,
        engine: &Engine,
    ) -> bool {
        assert_eq!(engine.parts(request.tag).count(), 1);
        let takes = self.takes.pop_front().expect("a command is expected");
        let done = takes.map(|takes| now + Nanos::from_nanos(takes));
        self.in_device.push((done, request.tag));
        !self.refuses
    }

    fn give_up(&mut self, now: Time, late: &Late<'_>) -> GaveUp {
        let now = now.as_nanos();
        let _ = write!(self.told, "{now}: give up, {} promises; ", late.promises);
        let answer = self.gives_up.pop_front().expect("a timeout is expected");
        if answer == GaveUp::Yes {
            self.in_device.retain(|(_, other)| *other != late.tag);
        }
        answer
    }

    fn finished(&mut self, now: Time, done: &Finished) -> Result<(), Broken> {
        let now = now.as_nanos();
        let _ = write!(self.told, "{now}: {} {:?}; ", done.id, done.outcome);
        Ok(())
    }

    fn backlog(&mut self, _: Time, _: Member, _: Backlog) {}

    fn seen(&mut self, now: Time, _: Member, seen: Seen<'_>) {
        match seen {
            Seen::Event(event) => log::write_event(&mut self.tape, now, event),
            Seen::Command(command) => log::write_decision(&mut self.tape, now, &command.into()),
            Seen::Swapped(lane, text) => log::write_swap(&mut self.tape, now, lane, text),
            Seen::GateSwapped(gate, schedulers) => {
                log::write_gate_swap(&mut self.tape, now, gate, schedulers);
            }
        }
    }
}

/// Runs until nothing happens any more, and returns the log without its first and last lines.
fn run(world: &mut Scripted, depth: u32, timeout: Option<u64>) -> String {
    let config = Config {
        depth,
        ..Config::default()
    };
    let mut log = String::new();
    let mut sink = |piece: &str| log.push_str(piece);
    let sink: &mut dyn FnMut(&str) = &mut sink;
    let engine = Engine::new(config, noop()).expect("in range");
    let timeout = timeout.map(Nanos::from_nanos);
    let mut core = Core::new(engine, Some(Writer::new(&[], sink))).with_timeout(timeout);
    core.audit();
    assert_eq!(core.engines().iter().count(), 1);
    assert!(core.log().is_some_and(|log| !log.has_news()));
    loop {
        let due = core.due(world);
        let Some(next) = due.at() else { break };
        let now = next.max(core.now());
        core.step(world, &due, now)
            .expect("the engine keeps its promises");
    }
    core.take_log().expect("it is there").finish();
    let (_, rest) = log.split_once('\n').expect("a header");
    rest.strip_suffix("# end\n").expect("an end").to_owned()
}

#[test]
fn of_things_at_one_time_orders_come_first_then_devices_timeouts_and_arrivals() {
    let swap = Order::Swap {
        member: Member::default(),
        lane: Lane(0),
        text: "noop".into(),
        scheduler: noop(),
    };
    let mut world = Scripted {
        takes: [Some(10), None, Some(1)].into(),
        arrivals: [0, 0, 10].into(),
        orders: [(at(10), swap)].into(),
        gives_up: [GaveUp::Yes].into(),
        ..Scripted::default()
    };
    let log = run(&mut world, 2, Some(10));
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(" 10 ")).collect();
    let kinds: String = lines.iter().map(|line| &line[..1]).collect();
    assert_eq!(kinds, "SCFCFAI", "{log}");
    assert!(lines[1].ends_with("ok") && lines[3].ends_with("timeout"));
}

#[test]
fn observers_see_what_the_log_has() {
    let mut world = Scripted {
        takes: [Some(10), Some(3), Some(1)].into(),
        arrivals: [0, 0, 10].into(),
        ..Scripted::default()
    };
    let swap = Order::Swap {
        member: Member::default(),
        lane: Lane(0),
        text: "noop".into(),
        scheduler: noop(),
    };
    world.orders.push_back((at(5), swap));
    let log = run(&mut world, 2, None);
    assert_eq!(world.tape, log);
}

#[test]
fn what_the_world_foretells_is_an_event_of_its_own_told_once() {
    let foretold = |nanos, start| Foretold {
        at: at(nanos),
        op: Op::Read,
        extent: Extent::at(start, 8),
        origin: Origin::default(),
    };
    let mut world = Scripted {
        takes: [Some(10)].into(),
        arrivals: [0].into(),
        tells: [foretold(20, 2000), foretold(30, 3000)].into(),
        ..Scripted::default()
    };
    let log = run(&mut world, 1, None);
    let mut expected = String::new();
    for told in [foretold(20, 2000), foretold(30, 3000)] {
        log::write_event(&mut expected, at(0), &Event::Foretold(told));
    }
    assert!(log.contains(&expected), "{log}");
}

#[test]
fn a_device_that_asks_for_more_time_is_asked_again_after_another_timeout() {
    let mut world = Scripted {
        takes: [Some(12)].into(),
        arrivals: [0].into(),
        gives_up: [GaveUp::AskAgain, GaveUp::AskAgain].into(),
        ..Scripted::default()
    };
    run(&mut world, 1, Some(5));
    assert_eq!(
        world.told,
        "5: give up, 0 promises; 10: give up, 1 promises; 12: 1 Done; "
    );
}

#[test]
fn a_device_that_completes_at_once_is_not_asked_again() {
    let mut world = Scripted {
        takes: [Some(12)].into(),
        arrivals: [0].into(),
        gives_up: [GaveUp::Completes].into(),
        ..Scripted::default()
    };
    run(&mut world, 1, Some(5));
    assert_eq!(world.told, "5: give up, 0 promises; 12: 1 Done; ");
}

#[test]
fn a_command_that_never_reached_the_device_has_no_deadline() {
    let mut world = Scripted {
        takes: [Some(12)].into(),
        arrivals: [0].into(),
        refuses: true,
        ..Scripted::default()
    };
    run(&mut world, 1, Some(5));
    assert_eq!(world.told, "12: 1 Done; ");
}

#[test]
fn an_order_for_a_shorter_timeout_holds_for_commands_in_the_device() {
    let mut world = Scripted {
        takes: [None].into(),
        arrivals: [0].into(),
        orders: [(at(4), Order::Timeout(Some(Nanos::from_nanos(3))))].into(),
        gives_up: [GaveUp::Yes].into(),
        ..Scripted::default()
    };
    run(&mut world, 1, None);
    assert_eq!(world.told, "7: give up, 0 promises; 7: 1 TimedOut; ");
}

/// A job that limits the drive to two commands, and asks for nothing.
struct TwoDeep;

impl Background for TwoDeep {
    fn joins(
        &mut self,
        _: Time,
        _: &Engine,
        _: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        None
    }

    fn depth(&self) -> Option<u32> {
        Some(2)
    }

    fn finished(&mut self, _: Time, done: &Finished, _: Option<&[u8]>) {
        panic!("nobody asked for {done:?}");
    }
}

#[test]
fn a_depth_that_was_ordered_before_a_job_came_is_in_force_again_after_the_job() {
    let config = Config {
        depth: 8,
        ..Config::default()
    };
    let engine = Engine::new(config, noop()).expect("in range");
    let mut core: Core<&mut dyn FnMut(&str)> = Core::new(engine, None);
    let (world, member) = (&mut Scripted::default(), Member(0));
    let order = Order::Gate(member, GateOrder::Depth(4));
    core.obey(world, at(1), order).expect("goes on");
    core.run_in_background(member, Box::new(TwoDeep));
    core.ask_jobs(world, at(2)).expect("goes on");
    assert_eq!(core.engines()[0].depth(), 2);
    core.end_background(member);
    core.ask_jobs(world, at(3)).expect("goes on");
    assert_eq!(core.engines()[0].depth(), 4);
}
