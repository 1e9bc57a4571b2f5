//! Tasks in the background that begin, rest, are promoted and end at given times.

use headtime_disk::Model;
use headtime_disk::drive::Drive;
use headtime_disk::profile::{self, WriteBack};
use headtime_engine::{Config, Demand, FreeblockOptions, OnWrite, TaskError, TaskSpec, Work};
use headtime_sched::{Class, Spec};
use headtime_sim::{PlannedTasks, Setup, TaskChange, TaskOutcome, TaskPlan, run};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};
use headtime_workload::{ProcessSpec, Synthetic, SyntheticSpec};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

const BLOCK: Sectors = Sectors::new(16);

fn seconds(at: u64) -> Time {
    Time::ZERO + Nanos::from_secs(at)
}

fn reads(priority: u8, from: u64, sectors: u64) -> TaskSpec {
    TaskSpec {
        priority,
        work: Work::Read,
        ranges: vec![Extent::new(Lba::new(from), Sectors::new(sectors))],
        block: BLOCK,
        all: true,
        on_write: OnWrite::Nothing,
        others_count: true,
    }
}

/// A minute of ten clients all over an Atlas 10K beside tasks.
fn beside(read_share: f64, plan: TaskPlan) -> Vec<TaskOutcome> {
    let shipped = profile::by_name("atlas10k").expect("shipped");
    let changed = shipped.with(|spec| {
        spec.cache.write_back = WriteBack::Off;
        spec.queue.depth = 2;
    });
    let profile = changed.expect("it can be");
    let capacity = profile.geometry.capacity;
    let model = Arc::new(Model::new(&profile));
    let options = FreeblockOptions {
        block: BLOCK,
        ..FreeblockOptions::default()
    };
    let tasks = PlannedTasks::new(Arc::clone(&model), capacity, options, plan);
    let tasks = Rc::new(RefCell::new(tasks.expect("they fit").expect("it turns")));
    let one = ProcessSpec {
        read_share,
        ..ProcessSpec::default()
    };
    let workload = SyntheticSpec::alike(1, 10, &one);
    let mut source = Synthetic::new(&workload, capacity, 512).expect("in range");
    let config = Config {
        depth: 2,
        merge: false,
        ..Config::default()
    };
    let spec: Spec = "sptf-sw60".parse().expect("registered");
    let built = spec.build(Some(model)).expect("built");
    let mut setup = Setup::new(Drive::new(&profile, 1), config, built, &mut source);
    setup.audit = true;
    setup.limit = Some(Nanos::from_secs(60));
    setup.stations[0].background = Some(Box::new(Rc::clone(&tasks)));
    run(setup).expect("runs");
    let mut tasks = tasks.borrow_mut();
    tasks.outcomes()
}

#[test]
fn the_higher_priority_comes_first_and_who_rests_gets_nothing() {
    let disk = 17_938_986 / 16 * 16;
    let mut plan = TaskPlan::none();
    plan.add(reads(1, 0, disk), Time::ZERO, []);
    plan.add(
        reads(2, 0, disk / 2),
        seconds(10),
        [
            (seconds(20), TaskChange::Suspend),
            (seconds(40), TaskChange::Resume),
        ],
    );
    plan.add(reads(0, 0, disk), seconds(70), []);
    let all = beside(1.0, plan);
    let [low, high, never] = &all[..] else {
        unreachable!()
    };
    assert_eq!(
        (low.opened, high.opened, never.opened),
        (Some(Time::ZERO), Some(seconds(10)), None)
    );
    assert_eq!(
        (low.wanted, high.wanted.get()),
        (Sectors::new(disk), disk / 32 * 16)
    );
    for one in [low, high] {
        assert_eq!(one.served + one.left, one.wanted, "{one:?}");
        assert_eq!(
            (one.done, one.closed, one.failed),
            (None, None, Sectors::ZERO)
        );
    }
    // What is read for the one counts for the other; of 60 seconds it has 30.
    assert!(low.served > high.served, "{low:?} {high:?}");
    let alone = |change: &[(Time, TaskChange)]| {
        let mut plan = TaskPlan::none();
        plan.add(reads(2, 0, disk / 2), seconds(10), change.iter().copied());
        beside(1.0, plan)[0].served
    };
    let whole = alone(&[]);
    assert!(high.served < whole, "{} of {whole}", high.served);
    let closed = alone(&[(seconds(20), TaskChange::Close)]);
    assert!(closed.get() * 3 < whole.get(), "{closed} of {whole}");
}

#[test]
fn who_is_promoted_is_done_sooner_and_says_when() {
    let mut done = Vec::new();
    for promoted in [false, true] {
        let demand = Demand {
            class: Class::BEST_EFFORT,
            outstanding: 4,
            piece: Sectors::new(512),
        };
        let change = promoted.then_some((seconds(5), TaskChange::Promote(Some(demand))));
        let mut plan = TaskPlan::none();
        plan.add(reads(0, 1_000_000 / 16 * 16, 160_000), Time::ZERO, change);
        done.push(beside(1.0, plan)[0]);
    }
    let [beside, promoted] = done[..] else {
        unreachable!()
    };
    let at = promoted.done.expect("it is done");
    assert!(at > seconds(5), "{at}");
    assert!(
        beside.done.is_none_or(|done| done > at),
        "{beside:?} {promoted:?}"
    );
    assert_eq!(promoted.left, Sectors::ZERO);
    assert_eq!(promoted.served, promoted.wanted);
}

#[test]
fn a_task_of_what_is_written_follows_the_clients_writes() {
    let disk = 17_938_986 / 16 * 16;
    let written = TaskSpec {
        all: false,
        on_write: OnWrite::Again,
        others_count: false,
        ..reads(0, 0, disk)
    };
    let mut plan = TaskPlan::none();
    plan.add(written.clone(), Time::ZERO, []);
    let one = beside(0.5, plan)[0];
    assert_eq!(one.wanted, Sectors::ZERO);
    assert!(
        one.changed.get() > 10_000 && one.served.get() > 0,
        "{one:?}"
    );
    // Each block that was written is still wanted, or was read, or was written again meanwhile.
    assert!(one.served + one.left <= one.changed, "{one:?}");
    // Who only reads changes nothing.
    let mut plan = TaskPlan::none();
    plan.add(written, Time::ZERO, []);
    let none = beside(1.0, plan)[0];
    assert_eq!((none.changed, none.served), (Sectors::ZERO, Sectors::ZERO));
    assert_eq!(none.done, Some(Time::ZERO));
}

#[test]
fn a_task_that_leaves_the_disk_is_refused_with_its_number() {
    let profile = profile::by_name("atlas10k").expect("shipped");
    let model = Arc::new(Model::new(&profile));
    let mut plan = TaskPlan::none();
    plan.add(reads(0, 0, 160), Time::ZERO, []);
    plan.add(reads(0, 17_938_976, 160), seconds(100), []);
    let options = FreeblockOptions {
        block: BLOCK,
        ..FreeblockOptions::default()
    };
    let made = PlannedTasks::new(model, profile.geometry.capacity, options, plan);
    let Err((1, TaskError::Outside(..))) = made else {
        panic!("{made:?}");
    };
}
