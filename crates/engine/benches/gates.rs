//! Cost of a gate for a request. The engine has depth 32, the drive completes its commands in any order, and as many
//! more requests wait. The price of a gate is its line less the line of `depth=32`, the default gate.
//!
//! ```text
//! cargo bench -p headtime-engine --bench gates
//! ```

use criterion::{Criterion, criterion_group, criterion_main};
use headtime_engine::{
    Arrival, Command, Config, DriveTag, Engine, Event, GateSpec, Outcome, RequestId,
};
use headtime_sched::{Class, Flags, Noop, Op, Origin, Scheduler, WorkConserving};
use headtime_units::{Extent, Nanos, Time};

const DEPTH: u32 = 32;

/// The last three close now and then. With three classes `rsd-priority` closes often: a command waits while one more urgent is
/// in the drive.
const GATES: &[&str] = &[
    "depth=32",
    "rsd:age_th=1000",
    "rsd-priority:age_th=1000:ranks=0/0/0",
    "rsd-priority:age_th=1000:ranks=0/0/0:queue=single",
    "iolatency",
    "windows",
    "head-time",
    "rsd:age_th=30",
    "rsd-priority:age_th=30:ranks=1/2/3",
];

/// An engine with a full drive.
struct Rig {
    engine: Engine,
    in_drive: Vec<DriveTag>,
    now: Time,
    id: u64,
    /// A state of Marsaglia's xorshift.
    random: u64,
    /// All requests are of one class.
    plain: bool,
}

impl Rig {
    fn new(gate: &str, plain: bool) -> Rig {
        let config = Config {
            depth: DEPTH,
            merge: false,
            ..Config::default()
        };
        let scheduler = || Box::new(WorkConserving::new(Noop::new())) as Box<dyn Scheduler>;
        let spec: GateSpec = gate.parse().expect("a gate");
        let gate = spec.build(&config).expect("it fits");
        let gated = gate.map(|gate| {
            let others = (1..gate.lanes()).map(|_| scheduler()).collect();
            (gate, others)
        });
        let mut rig = Rig {
            engine: Engine::behind(config, scheduler(), gated).expect("in range"),
            in_drive: Vec::with_capacity(DEPTH as usize),
            now: Time::ZERO,
            id: 0,
            random: 88_172_645_463_325_252,
            plain,
        };
        (0..2 * DEPTH).for_each(|_| rig.ask());
        rig
    }

    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn event(&mut self, event: Event) {
        self.now += Nanos::from_micros(50);
        self.engine.handle(self.now, event);
        while let Some(command) = self.engine.poll(self.now) {
            if let Command::Issue(request) = command {
                self.in_drive.push(request.tag);
            }
        }
    }

    fn ask(&mut self) {
        let class = match self.plain {
            true => Class::BEST_EFFORT,
            false => Class((self.next_random() % 3) as u8),
        };
        self.id += 1;
        self.event(Event::Arrived(Arrival {
            id: RequestId::Client(self.id),
            op: Op::Read,
            extent: Extent::at(self.id * 7919 % (1 << 24) * 16, 8),
            flags: Flags::NONE,
            origin: Origin::default(),
            class,
            since: None,
        }));
    }

    /// A command is done, and another request comes.
    fn turn(&mut self) {
        let place = self.next_random() as usize % self.in_drive.len();
        let tag = self.in_drive.swap_remove(place);
        let outcome = Outcome::Done;
        self.event(Event::Completed { tag, outcome });
        self.ask();
    }
}

fn gates(criterion: &mut Criterion) {
    for (name, plain) in [("one class", true), ("three classes", false)] {
        let mut group = criterion.benchmark_group(name);
        for gate in GATES {
            let mut rig = Rig::new(gate, plain);
            group.bench_function(*gate, |bencher| bencher.iter(|| rig.turn()));
        }
        group.finish();
    }
}

criterion_group!(benches, gates);
criterion_main!(benches);
