//! What a volume of several passes on to its members beside requests.

use crate::world::arrival;
use headtime_engine::log::Writer;
use headtime_engine::{
    Asked, Broken, Config, Core, Done, DriveTag, Engine, Finished, GaveUp, Late, Member, Plug,
    World,
};
use headtime_sched::{Backlog, Foretold, Noop, Op, Origin, Request, Scheduler, WorkConserving};
use headtime_testkit::Striped;
use headtime_units::{Extent, Time};

const STRIPE: u64 = 8;

/// One client that asks once, or only says that it will; devices that take commands and keep them.
#[derive(Default)]
struct Once {
    asks: Option<Asked>,
    foretold: Option<Foretold>,
    sent: Vec<(Time, Member)>,
}

impl World for Once {
    type Error = Broken;

    fn next_device(&self) -> Time {
        Time::NEVER
    }

    fn completed(&mut self, _: Time) -> Option<Done> {
        None
    }

    fn next_arrival(&self) -> Option<Time> {
        self.asks.map(|_| Time::ZERO)
    }

    fn arrived(&mut self, _: Time) -> Result<Option<Asked>, Broken> {
        Ok(self.asks.take())
    }

    fn foretell(&mut self) -> Option<Foretold> {
        self.foretold.take()
    }

    fn submit(&mut self, now: Time, member: Member, _: &Request<DriveTag>, _: &Engine) -> bool {
        self.sent.push((now, member));
        true
    }

    fn give_up(&mut self, _: Time, _: &Late<'_>) -> GaveUp {
        unreachable!("there is no timeout")
    }

    fn finished(&mut self, _: Time, done: &Finished) -> Result<(), Broken> {
        unreachable!("{done:?}: the devices complete nothing")
    }

    fn backlog(&mut self, _: Time, _: Member, _: Backlog) {}
}

/// Runs three members with `config` until nothing is due, at most a few steps.
fn run(world: &mut Once, config: Config) -> String {
    let noop = || Box::new(WorkConserving::new(Noop::new())) as Box<dyn Scheduler>;
    let engines = (0..3).map(|_| Engine::new(config, noop()).expect("valid"));
    let map = Striped {
        members: 3,
        stripe: STRIPE,
        stripes: 1000,
    };
    let mut log = String::new();
    let mut write = |piece: &str| log.push_str(piece);
    let write: &mut dyn FnMut(&str) = &mut write;
    let writer = Some(Writer::new(&[], write));
    let mut core = Core::of_volume(engines.collect(), Box::new(map), writer);
    for _ in 0..10 {
        let due = core.due(world);
        let Some(next) = due.at() else { break };
        core.step(world, &due, next).expect("promises are kept");
    }
    assert_eq!(core.due(world).at(), None, "nothing is due any more");
    core.take_log().expect("there is one").finish();
    log
}

#[test]
fn a_plug_on_a_later_member_opens_when_its_time_has_come() {
    let mut world = Once {
        asks: Some(Asked::Request(arrival(1, Op::Read, 2 * STRIPE, STRIPE, 0))),
        ..Once::default()
    };
    let config = Config {
        plug: Some(Plug::LINUX_2_6),
        ..Config::default()
    };
    run(&mut world, config);
    assert_eq!(world.sent.len(), 1);
    let (at, member) = world.sent[0];
    assert_eq!(member, Member(2));
    assert_eq!(at, Time::ZERO + Plug::LINUX_2_6.timeout);
}

#[test]
fn each_member_is_foretold_its_own_sectors() {
    let mut world = Once {
        // What is foretold is asked for after an event.
        asks: Some(Asked::Unplugged),
        foretold: Some(Foretold {
            at: Time::from_nanos(77),
            op: Op::Read,
            extent: Extent::at(4, 14),
            origin: Origin::default(),
        }),
        ..Once::default()
    };
    let log = run(&mut world, Config::default());
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
