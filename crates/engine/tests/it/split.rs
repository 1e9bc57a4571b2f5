//! Notifications that a volume passes on to its members, besides requests.

use crate::world::arrival;
use headtime_engine::log::Writer;
use headtime_engine::{
    self as engine, Arrival, Asked, Broken, Concat, Config, Core, Done, DriveTag, Engine, Finished,
    GaveUp, Late, Map, Member, Outcome, Plug, ReadFrom, World,
};
use headtime_sched::{
    Backlog, Flags, Foretold, Noop, Op, Origin, Request, Scheduler, WorkConserving,
};
use headtime_testkit::Striped;
use headtime_units::{Extent, Lba, Sectors, Time};
use std::collections::VecDeque;

const STRIPE: u64 = 8;

/// A client that asks a few times at once, or only says that it will; devices that take commands, and keep them or complete
/// them one by one.
#[derive(Default)]
struct Few {
    asks: VecDeque<Asked>,
    foretold: Option<Foretold>,
    answers: bool,
    in_device: VecDeque<(Member, DriveTag)>,
    sent: Vec<(Time, Member, Request<DriveTag>)>,
    finished: Vec<u64>,
}

impl World for Few {
    type Error = Broken;

    fn next_device(&self) -> Time {
        match self.answers && !self.in_device.is_empty() {
            true => Time::from_nanos(10),
            false => Time::NEVER,
        }
    }

    fn completed(&mut self, at: Time) -> Option<Done> {
        let (member, tag) = self.in_device.pop_front()?;
        let outcome = Outcome::Done;
        Some(Done {
            member,
            tag,
            at,
            outcome,
        })
    }

    fn next_arrival(&self) -> Option<Time> {
        self.asks.front().map(|_| Time::ZERO)
    }

    fn arrived(&mut self, _: Time) -> Result<Option<Asked>, Broken> {
        Ok(self.asks.pop_front())
    }

    fn foretell(&mut self) -> Option<Foretold> {
        self.foretold.take()
    }

    fn submit(
        &mut self,
        now: Time,
        member: Member,
        request: &Request<DriveTag>,
        _: &Engine,
    ) -> bool {
        self.in_device.push_back((member, request.tag));
        self.sent.push((now, member, *request));
        true
    }

    fn give_up(&mut self, _: Time, _: &Late<'_>) -> GaveUp {
        unreachable!("there is no timeout")
    }

    fn finished(&mut self, _: Time, done: &Finished) -> Result<(), Broken> {
        self.finished.push(done.id);
        Ok(())
    }

    fn backlog(&mut self, _: Time, _: Member, _: Backlog) {}
}

/// Runs three members with `config` under the audit until nothing is due, at most a few steps. Returns the log, and which
/// requests are not finished.
fn run(world: &mut Few, config: Config) -> (String, Vec<String>) {
    let map = Striped {
        members: 3,
        stripe: STRIPE,
        stripes: 1000,
        parity: false,
    };
    run_over(Box::new(map.map()), world, config)
}

/// Runs three members in another layout.
fn run_over(map: Box<dyn Map>, world: &mut Few, config: Config) -> (String, Vec<String>) {
    let noop = || Box::new(WorkConserving::new(Noop::new())) as Box<dyn Scheduler>;
    let engines = (0..3).map(|_| Engine::new(config, noop()).expect("valid"));
    let mut log = String::new();
    let mut write = |piece: &str| log.push_str(piece);
    let write: &mut dyn FnMut(&str) = &mut write;
    let writer = Some(Writer::new(&[], write));
    let mut core = Core::of_volume(engines.collect(), map, writer);
    core.audit();
    for _ in 0..30 {
        let due = core.due(world);
        let Some(next) = due.at() else { break };
        core.step(world, &due, next).expect("promises are kept");
    }
    assert_eq!(core.due(world).at(), None, "nothing is due any more");
    let unfinished = core.unfinished();
    let mut unfinished: Vec<String> = unfinished
        .map(|request| format!("{:?} {}", request.op, request.extent))
        .collect();
    unfinished.sort_unstable();
    core.take_log().expect("there is one").finish();
    (log, unfinished)
}

fn asks<const N: usize>(arrivals: [Arrival; N]) -> VecDeque<Asked> {
    arrivals.into_iter().map(Asked::Request).collect()
}

#[test]
fn a_plug_on_a_later_member_opens_when_its_time_has_come() {
    let mut world = Few {
        asks: asks([arrival(1, Op::Read, 2 * STRIPE, STRIPE, 0)]),
        ..Few::default()
    };
    let config = Config {
        plug: Some(Plug::LINUX_2_6),
        ..Config::default()
    };
    run(&mut world, config);
    assert_eq!(world.sent.len(), 1);
    let (at, member, _) = world.sent[0];
    assert_eq!(member, Member(2));
    assert_eq!(at, Time::ZERO + Plug::LINUX_2_6.timeout);
}

#[test]
fn a_sleeping_client_unplugs_the_members_that_its_map_names() {
    let config = Config {
        plug: Some(Plug::LINUX_2_6),
        ..Config::default()
    };
    let opened = |map: Box<dyn Map>, place: u64| -> Vec<u16> {
        let reads = [0, 8, 16].map(|start| arrival(start, Op::Read, start, 4, 0));
        let mut world = Few {
            asks: asks(reads),
            ..Few::default()
        };
        (world.asks).push_back(Asked::Unplugged(Lba::new(place)));
        run_over(map, &mut world, config);
        let at_once = world.sent.iter().filter(|(at, ..)| *at == Time::ZERO);
        at_once.map(|(_, member, _)| member.0).collect()
    };
    let sizes = [Sectors::new(STRIPE); 3];
    let concat = || Box::new(Concat::new(&sizes).expect("allowed"));
    assert_eq!(opened(concat(), 8), [1]);
    assert_eq!(opened(concat(), 0), [0]);
    let striped = engine::Striped::new(Sectors::new(STRIPE), &sizes).expect("allowed");
    assert_eq!(opened(Box::new(striped), 8), [0, 1, 2]);
}

#[test]
fn each_member_is_foretold_its_own_sectors() {
    let mut world = Few {
        // The engine asks for foretold requests after an event.
        asks: [Asked::Unplugged(Lba::ZERO)].into(),
        foretold: Some(Foretold {
            at: Time::from_nanos(77),
            op: Op::Read,
            extent: Extent::at(4, 14),
            origin: Origin::default(),
        }),
        ..Few::default()
    };
    let (log, _) = run(&mut world, Config::default());
    let foretold: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("T 0 77 R"))
        .collect();
    let expected = [
        "T 0 77 R 4 4 0 0 0",
        "@1 T 0 77 R 0 8 0 0 0",
        "@2 T 0 77 R 0 2 0 0 0",
    ];
    assert_eq!(foretold, expected);
}

#[test]
fn a_write_that_flushes_first_flushes_every_member_and_then_writes_without() {
    let forced = Arrival {
        flags: Flags::PREFLUSH.with(Flags::FUA),
        ..arrival(1, Op::Write, STRIPE, STRIPE, 0)
    };
    let mut world = Few {
        asks: asks([forced]),
        answers: true,
        ..Few::default()
    };
    let (_, unfinished) = run(&mut world, Config::default());
    let sent: Vec<_> = world
        .sent
        .iter()
        .map(|(_, member, request)| (member.0, request.op))
        .collect();
    assert_eq!(
        sent,
        [
            (0, Op::Flush),
            (1, Op::Flush),
            (2, Op::Flush),
            (1, Op::Write)
        ]
    );
    for (_, member, request) in &world.sent {
        assert_eq!(request.flags, Flags::FUA, "at {member:?}");
    }
    assert_eq!(world.finished, [1]);
    assert_eq!(unfinished, Vec::<String>::new());
}

#[test]
fn a_mirror_writes_on_every_member_and_reads_on_one() {
    let sizes = [Sectors::new(1000); 3];
    let map = engine::Striped::mirrored(ReadFrom::Nearest, &sizes).expect("allowed");
    let mut world = Few {
        asks: asks([
            arrival(1, Op::Write, 500, STRIPE, 0),
            arrival(2, Op::Read, 100, STRIPE, 0),
            arrival(3, Op::Flush, 0, 0, 0),
            arrival(4, Op::Discard, 0, 40, 0),
        ]),
        answers: true,
        ..Few::default()
    };
    let (_, unfinished) = run_over(Box::new(map), &mut world, Config::default());
    let of = |op| {
        let sent = world
            .sent
            .iter()
            .filter(move |(.., request)| request.op == op);
        sent.map(|(_, member, request)| (member.0, request.extent))
    };
    let on_all = |extent| [0, 1, 2].map(|member| (member, extent)).to_vec();
    assert_eq!(
        of(Op::Write).collect::<Vec<_>>(),
        on_all(Extent::at(500, STRIPE))
    );
    assert_eq!(of(Op::Read).count(), 1);
    assert_eq!(of(Op::Flush).count(), 3);
    assert_eq!(
        of(Op::Discard).collect::<Vec<_>>(),
        on_all(Extent::at(0, 40))
    );
    assert_eq!((world.finished.len(), unfinished.len()), (4, 0));
}

#[test]
fn what_is_unfinished_is_what_clients_asked_for_also_behind_a_flush() {
    let mut world = Few {
        // Over two members; on all; held back by the volume.
        asks: asks([
            arrival(1, Op::Write, 4, STRIPE, 0),
            arrival(2, Op::Flush, 0, 0, 0),
            arrival(3, Op::Read, 500, 1, 0),
        ]),
        ..Few::default()
    };
    let (_, unfinished) = run(&mut world, Config::default());
    assert_eq!(
        world.sent.len(),
        3,
        "both parts, and the flush of an idle member"
    );
    assert_eq!(unfinished, ["Flush 0+0", "Read 500+1", "Write 4+8"]);
}
