//! Conflicting requests with all kinds of events. The requests start in the order of the plain rule, and the engine
//! keeps its promises.

use super::*;
use crate::audit::Audit;
use crate::order::Precedence;
use crate::{Arrival, Outcome, Plug};
use headtime_sched::{Deadline, DeadlineConfig, Flags, Noop, Op, Origin, WorkConserving};
use headtime_units::Nanos;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Arrive {
        op: Op,
        at: (u64, u64),
        flags: Flags,
    },
    /// A command in the drive ends: with success, with an error, or by a timeout.
    Complete(prop::sample::Index, Outcome),
    /// Time passes, in this amount.
    Pass(u64),
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        8 => Just(Outcome::Done),
        1 => Just(Outcome::MediumError),
        1 => Just(Outcome::TimedOut),
        1 => Just(Outcome::DeviceError),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let load = (1..20_u32, 0..20_u32, 0..6_u32, 1..40_u32, 1..64_u64);
    load.prop_flat_map(|(reads, writes, others, completions, spread)| {
        let op = prop_oneof![
            reads => Just(Op::Read),
            writes => Just(Op::Write),
            others => Just(Op::Discard),
            // Flushes are rare, since no request overtakes a flush.
            1 => Just(Op::Flush),
        ];
        let at = prop_oneof![
            // Adjacent blocks, so that requests merge, and arbitrary extents.
            4 => (0..spread.min(4)).prop_map(|block| (8 * block, 8)),
            3 => (0..spread, 1..20_u64),
            1 => Just((0, 80)),
        ];
        let flags = prop_oneof![
            20 => Just(Flags::NONE),
            2 => Just(Flags::FUA),
            2 => Just(Flags::SYNC),
            1 => Just(Flags::PREFLUSH),
            1 => Just(Flags::PREFLUSH.with(Flags::FUA)),
        ];
        let step = prop_oneof![
            20 => (op, at, flags).prop_map(|(op, at, flags)| Step::Arrive { op, at, flags }),
            completions => (any::<prop::sample::Index>(), outcome())
                .prop_map(|(which, outcome)| Step::Complete(which, outcome)),
            2 => (0..3_000_u64).prop_map(Step::Pass),
        ];
        proptest::collection::vec(step, 1..250)
    })
}

fn config() -> impl Strategy<Value = Config> {
    let plug = proptest::option::of(Just(Plug::LINUX_2_6));
    (1..10_u32, any::<bool>(), 1..60_u64, any::<bool>(), plug).prop_map(
        |(depth, merge, most, commit_ahead, plug)| Config {
            depth,
            merge,
            merge_sectors_max: Sectors::new(most),
            commit_ahead,
            plug,
            ..Config::default()
        },
    )
}

struct World<S> {
    engine: Engine<S>,
    audit: Audit,
    now: Time,
    in_drive: Vec<DriveTag>,
    ids: u64,
}

impl<S: Scheduler> World<S> {
    fn new(config: Config, scheduler: S) -> World<S> {
        let mut engine = Engine::new(config, scheduler).expect("in range");
        engine.order = Precedence::against_the_plain_rule();
        World {
            engine,
            audit: Audit::new(),
            now: Time::ZERO,
            in_drive: Vec::new(),
            ids: 0,
        }
    }

    fn event(&mut self, event: Event) {
        self.audit.event(&event).expect("an event that can be");
        self.engine.handle(self.now, event);
        while let Some(command) = self.engine.poll(self.now) {
            let kept = self.audit.command(&self.engine, &command);
            kept.expect("the engine's promises");
            if let Command::Issue(request) = command {
                self.in_drive.push(request.tag);
            }
        }
        let (engine, full) = (
            &self.engine,
            self.in_drive.len() as u32 == self.engine.config().depth,
        );
        match engine.backlog() {
            Backlog::Nothing => assert_eq!(engine.waiting(), 0),
            Backlog::Busy => assert!(full && engine.waiting() > 0),
            Backlog::Chosen => assert!(!full && engine.lanes[0].idle_until.is_some()),
            Backlog::Held => {
                assert!(
                    engine.waiting() > engine.scheduler().queued()
                        || engine.lanes[0].plugged_until.is_some()
                );
            }
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Arrive { op, at, flags } => {
                let (extent, flags) = match op {
                    Op::Flush => (Extent::at(0, 0), Flags::NONE),
                    Op::Write => (Extent::at(at.0, at.1), *flags),
                    _ => (Extent::at(at.0, at.1), Flags::NONE),
                };
                let id = self.ids;
                self.ids += 1;
                self.event(Event::Arrived(Arrival {
                    id: RequestId::Client(id),
                    op: *op,
                    extent,
                    flags,
                    origin: Origin::default(),
                    class: Class::default(),
                    since: None,
                }));
            }
            Step::Complete(which, outcome) if !self.in_drive.is_empty() => {
                let tag = self.in_drive.swap_remove(which.index(self.in_drive.len()));
                let outcome = *outcome;
                self.event(Event::Completed { tag, outcome });
            }
            Step::Complete(..) => self.event(Event::Woke),
            Step::Pass(us) => {
                self.now += Nanos::from_micros(*us);
                self.event(Event::Woke);
            }
        }
    }

    fn run(mut self, steps: &[Step]) {
        for step in steps {
            self.step(step);
        }
        while !self.engine.is_idle() {
            self.now += Nanos::from_millis(5);
            let tag = self.in_drive.pop();
            let outcome = Outcome::Done;
            self.event(tag.map_or(Event::Woke, |tag| Event::Completed { tag, outcome }));
        }
        assert_eq!(self.audit.unfinished(), 0);
        assert_eq!(self.engine.waiting(), 0);
    }
}

proptest! {
    #[test]
    fn those_that_wait_are_let_go_in_the_order_of_the_plain_rule(
        steps in steps(),
        config in config(),
    ) {
        World::new(config, WorkConserving::new(Noop::new())).run(&steps);
        let deadline = Deadline::new(DeadlineConfig::default());
        World::new(config, WorkConserving::new(deadline)).run(&steps);
    }
}
