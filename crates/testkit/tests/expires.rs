//! Time at which a candidate becomes urgent. Each elevator's statement is compared with peeks at every time at which
//! the candidate could become urgent.

use headtime_sched::{
    Class, Deadline, DeadlineConfig, Elevator, HeadState, MqDeadline, Op, Request, Tag, policies,
};
use headtime_testkit::ToyMechanics;
use headtime_units::{Extent, Nanos, Time};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

static POSITIONS: LazyLock<Arc<ToyMechanics>> = LazyLock::new(|| Arc::new(ToyMechanics::new()));

/// A step of a test, some time after the step before.
#[derive(Clone, Debug)]
enum Step {
    /// A request is inserted, `held` nanoseconds after its arrival.
    Insert {
        op: Op,
        lba: u64,
        class: u8,
        held: u64,
    },
    Take,
    Withdraw(prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let op = prop_oneof![Just(Op::Read), Just(Op::Write)];
    let step = prop_oneof![
        4 => (op, 0..60_u64, 0..3_u8, prop_oneof![2 => Just(0), 1 => 0..8_u64]).prop_map(
            |(op, lba, class, held)| Step::Insert { op, lba, class, held },
        ),
        2 => Just(Step::Take),
        1 => any::<prop::sample::Index>().prop_map(Step::Withdraw),
    ];
    prop::collection::vec((0..4_u64, step), 1..40)
}

/// Runs the steps. After each step the elevator's statement must match its peeks. The peeks are at all times at which
/// a queued request has one of these ages, one tick before, and one tick after.
fn hold(elevator: &mut dyn Elevator, steps: Vec<(u64, Step)>, ages: &[Nanos]) {
    const TICK: Nanos = Nanos::from_nanos(1);
    // The time is late enough for requests that were held back.
    let (mut now, mut head) = (Time::from_nanos(100), HeadState::START);
    let mut queued: Vec<Request> = Vec::new();
    for (tag, (after, step)) in (0..).zip(steps) {
        now = Time::from_nanos(now.as_nanos() + after);
        match step {
            Step::Insert {
                op,
                lba,
                class,
                held,
            } => {
                let arrival = now.saturating_sub(Nanos::from_nanos(held));
                let request = Request {
                    class: Class(class),
                    ..Request::new(Tag(tag), op, Extent::at(lba, 1), arrival)
                };
                elevator.insert(now, request);
                queued.push(request);
            }
            Step::Take => {
                if let Some(request) = elevator.take(now, &head) {
                    head = HeadState::behind(&request);
                    queued.retain(|other| other.tag != request.tag);
                }
            }
            Step::Withdraw(which) if !queued.is_empty() => {
                let request = queued.swap_remove(which.index(queued.len()));
                assert_eq!(elevator.withdraw(request.tag), request);
            }
            Step::Withdraw(_) => {}
        }
        let of_an_age = queued
            .iter()
            .flat_map(|request| ages.iter().map(|age| request.arrival.saturating_add(*age)));
        let times: BTreeSet<Time> = of_an_age
            .flat_map(|at| [at.saturating_sub(TICK), at, at.saturating_add(TICK)])
            .chain([now, Time::LATEST])
            .filter(|at| (now..=Time::LATEST).contains(at))
            .collect();
        let urgent = |at: &Time| {
            let candidate = elevator.peek(*at, &head);
            candidate.is_some_and(|candidate| candidate.urgent)
        };
        let urgent: Vec<(Time, bool)> = times.into_iter().map(|at| (at, urgent(&at))).collect();
        for (place, (at, _)) in urgent.iter().enumerate() {
            let first = urgent[place..].iter().find(|(_, urgent)| *urgent);
            let first = first.map(|(at, _)| *at);
            assert_eq!(elevator.expires(*at), first, "at {at}, with {queued:?}");
        }
    }
}

fn configs() -> impl Strategy<Value = DeadlineConfig> {
    let expire = || prop_oneof![8 => 0..30_u64, 1 => Just(u64::MAX)].prop_map(Nanos::from_nanos);
    (expire(), expire(), 0..4_u64, 0..3_u64).prop_map(
        |(read_expire, write_expire, fifo_batch, writes_starved)| DeadlineConfig {
            read_expire,
            write_expire,
            fifo_batch,
            writes_starved,
            front_merges: true,
        },
    )
}

proptest! {
    #[test]
    fn deadline_says_when_its_candidate_expires(config in configs(), steps in steps()) {
        // A candidate expires at these ages.
        let ages = [config.read_expire, config.write_expire];
        hold(&mut Deadline::new(config), steps, &ages);
    }

    #[test]
    fn mq_deadline_says_when_its_candidate_expires(
        config in configs(),
        aging in prop_oneof![0..40_u64, Just(u64::MAX)],
        steps in steps(),
    ) {
        let aging = Nanos::from_nanos(aging);
        let ages = [config.read_expire, config.write_expire, aging];
        hold(&mut MqDeadline::new(config, aging), steps, &ages);
    }

    #[test]
    fn every_elevator_says_when_its_candidate_expires(steps in steps()) {
        // Values of time options. The defaults are some seconds.
        let ages = [500, 5_000, 10_000].map(Nanos::from_millis);
        for info in policies().filter(|info| !info.waits) {
            let number = info.number.map_or(String::new(), |number| number.example.to_string());
            let spec: headtime_sched::Spec = format!("{}{number}", info.name).parse().expect("a policy");
            let built = spec.build_elevator(Some(POSITIONS.clone()));
            hold(&mut *built.expect("it has positions"), steps.clone(), &ages);
        }
    }
}

/// An aged class takes the place of an urgent request of a higher class, and is not urgent itself.
#[test]
fn in_mq_deadline_what_is_urgent_can_give_way_to_what_is_not() {
    let config = DeadlineConfig {
        read_expire: Nanos::from_nanos(5),
        write_expire: Nanos::from_nanos(1_000),
        ..DeadlineConfig::DEFAULT
    };
    let mut elevator = MqDeadline::new(config, Nanos::from_nanos(10));
    let at = Time::from_nanos;
    for (tag, op, class) in [(0, Op::Read, Class::REAL_TIME), (1, Op::Write, Class::IDLE)] {
        let request = Request::new(Tag(tag), op, Extent::at(8, 1), at(0));
        elevator.insert(at(0), Request { class, ..request });
    }
    let ahead = [0, 5, 9, 10, 999, 1_000].map(|now| elevator.expires(at(now)));
    let expected = [5, 5, 9, 1_000, 1_000, 1_000].map(|then| Some(at(then)));
    assert_eq!(ahead, expected);
}
