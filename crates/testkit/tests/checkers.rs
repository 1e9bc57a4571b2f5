//! Checkers, tried on policies that are known to be broken. Scenarios, checked for enough merges, withdrawals and
//! waits.

use headtime_engine::SharedCell;
use headtime_sched::{Clook, Deadline, DeadlineConfig, Dispatch, Scheduler, Sstf, WorkConserving};
use headtime_testkit::{
    Broken, BrokenWaiter, Fault, Rule, Scenario, ToyAnticipator, Violation, WaitFault, check,
    check_elevator, check_waits, plain_scenarios, scenarios, starving,
};
use headtime_units::{Nanos, Time};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

/// A runner that tries the same scenarios every time.
fn runner(cases: u32) -> TestRunner {
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 100_000,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    TestRunner::new_with_rng(config, rng)
}

/// Scenarios without withdrawals. Failures shrink further, since leaving out a request does not change which others
/// are withdrawn.
fn calm_scenarios() -> impl Strategy<Value = Scenario> {
    scenarios().prop_map(|scenario| Scenario {
        withdraw_every: None,
        ..scenario
    })
}

/// Violation that the check finds, in calm scenarios if possible, else in scenarios of all kinds.
fn found_anywhere(
    check: impl Fn(&Scenario) -> Result<(), Violation> + Copy,
) -> Option<(Violation, Scenario)> {
    found(calm_scenarios(), check).or_else(|| found(scenarios(), check))
}

/// Violation that the check finds in some scenario, with the scenario shrunk as far as possible.
fn found(
    scenarios: impl Strategy<Value = Scenario>,
    check: impl Fn(&Scenario) -> Result<(), Violation>,
) -> Option<(Violation, Scenario)> {
    let judge = |scenario: Scenario| {
        check(&scenario).map_err(|violation| TestCaseError::fail(violation.to_string()))
    };
    match runner(2_000).run(&scenarios, judge) {
        Ok(()) => None,
        Err(TestError::Fail(_, scenario)) => {
            let violation = check(&scenario).expect_err("it failed before");
            Some((violation, scenario))
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn every_fault_of_an_elevator_is_found() {
    for (fault, rules) in [
        (Fault::Drops, &[Rule::Conserved, Rule::Peek][..]),
        (Fault::Loses, &[Rule::Peek, Rule::Live]),
        (Fault::Duplicates, &[Rule::Peek, Rule::Once]),
        (Fault::ClaimsBound, &[Rule::Bounded]),
        (Fault::PeekRemembers, &[Rule::Peek]),
        (Fault::AskedInVain, &[Rule::Peek]),
        (Fault::PeekDisagrees, &[Rule::Peek]),
        (Fault::IgnoresFused, &[Rule::Conserved]),
        (Fault::IgnoresMerged, &[Rule::Once]),
        (Fault::ForgetsPlace, &[Rule::Once, Rule::Drain]),
        (Fault::DrainsByAddress, &[Rule::Drain]),
        (Fault::DrainsPartly, &[Rule::Drain]),
        (Fault::Shy, &[Rule::Peek]),
        (Fault::KeepsWithdrawn, &[Rule::Conserved]),
        (Fault::ForgetsExpiry, &[Rule::Expires]),
        (Fault::ExpiresLate, &[Rule::Expires]),
        (Fault::ExpiresInVain, &[Rule::Expires]),
    ] {
        let broken = || Broken::new(fault);
        let by_elevator = |scenario: &Scenario| check_elevator(broken, scenario).map(drop);
        let found = found_anywhere(by_elevator);
        let (violation, scenario) = found.unwrap_or_else(|| panic!("{fault:?} passed"));
        assert!(rules.contains(&violation.rule), "{fault:?}: {violation}");
        let arrivals = scenario.arrivals.len();
        assert!(
            arrivals <= 16,
            "{fault:?} needs {arrivals} arrivals: {scenario:#?}"
        );
    }
}

#[test]
fn faults_that_do_not_need_a_peek_are_found_in_a_scheduler() {
    for (fault, rules) in [
        (Fault::Drops, &[Rule::Conserved, Rule::Live][..]),
        (Fault::Loses, &[Rule::Conserved, Rule::Live]),
        (Fault::Duplicates, &[Rule::Conserved, Rule::Once]),
        (Fault::ClaimsBound, &[Rule::Bounded]),
        (Fault::IgnoresFused, &[Rule::Conserved]),
        (Fault::IgnoresMerged, &[Rule::Once]),
        (Fault::ForgetsPlace, &[Rule::Once, Rule::Drain]),
        (Fault::DrainsByAddress, &[Rule::Drain]),
        (Fault::DrainsPartly, &[Rule::Drain]),
        (Fault::Shy, &[Rule::Live]),
        (Fault::KeepsWithdrawn, &[Rule::Conserved]),
    ] {
        let broken = || WorkConserving::new(Broken::new(fault));
        let found = found_anywhere(|scenario| check(broken, scenario).map(drop));
        let (violation, _) = found.unwrap_or_else(|| panic!("{fault:?} passed"));
        assert!(rules.contains(&violation.rule), "{fault:?}: {violation}");
    }
}

#[test]
fn what_has_no_fault_passes() {
    let check = |scenario: &Scenario| {
        check_elevator(|| Broken::new(Fault::None), scenario)?;
        check(|| WorkConserving::new(Broken::new(Fault::None)), scenario).map(drop)
    };
    assert_eq!(
        found(scenarios(), check).map(|(violation, _)| violation),
        None
    );
}

#[test]
fn every_wrong_wait_is_found() {
    for (fault, rule) in [
        (WaitFault::Forever, Rule::Live),
        (WaitFault::UntilNow, Rule::Live),
        (WaitFault::SaysEmpty, Rule::Live),
        (WaitFault::ForWithdrawn, Rule::Live),
        (WaitFault::HandsOutWithdrawn, Rule::Once),
    ] {
        let waits = |scenario: &Scenario| check(|| BrokenWaiter::new(fault), scenario).map(drop);
        let (violation, scenario) =
            found_anywhere(waits).unwrap_or_else(|| panic!("{fault:?} passed"));
        assert_eq!(violation.rule, rule, "{fault:?}: {violation}");
        assert!(scenario.arrivals.len() <= 4, "{fault:?}: {scenario:#?}");
    }
}

/// Expiries short enough that the toy disk reaches them.
const SHORT: DeadlineConfig = DeadlineConfig {
    read_expire: Nanos::from_millis(2),
    write_expire: Nanos::from_millis(6),
    fifo_batch: 2,
    writes_starved: 1,
    front_merges: true,
};

/// A deadline elevator with one configuration, and the promises of another.
struct Promises(Deadline, Deadline);

impl headtime_sched::BoundsWaits for Promises {
    fn wait_max(
        &self,
        request: &headtime_sched::Request,
        ahead: usize,
    ) -> Option<headtime_sched::WaitBound> {
        self.1.wait_max(request, ahead)
    }
}

impl headtime_sched::Elevator for Promises {
    fn insert(&mut self, now: Time, request: headtime_sched::Request) {
        self.0.insert(now, request);
    }
    fn peek(
        &self,
        now: Time,
        head: &headtime_sched::HeadState,
    ) -> Option<headtime_sched::Candidate> {
        self.0.peek(now, head)
    }
    fn expires(&self, now: Time) -> Option<Time> {
        self.0.expires(now)
    }
    fn take(
        &mut self,
        now: Time,
        head: &headtime_sched::HeadState,
    ) -> Option<headtime_sched::Request> {
        self.0.take(now, head)
    }
    fn withdraw(&mut self, tag: headtime_sched::Tag) -> headtime_sched::Request {
        self.0.withdraw(tag)
    }
    fn merged(&mut self, grown: &headtime_sched::Request) {
        self.0.merged(grown);
    }
    fn fused(&mut self, kept: headtime_sched::Tag, gone: headtime_sched::Tag) {
        self.0.fused(kept, gone);
    }
    fn overtake_max(&self) -> Option<usize> {
        self.0.overtake_max()
    }
    fn queued(&self) -> usize {
        self.0.queued()
    }
    fn drain(&mut self) -> Vec<headtime_sched::Request> {
        self.0.drain()
    }
}

#[test]
fn promises_in_time_that_are_not_kept_are_found() {
    let late = DeadlineConfig {
        read_expire: Nanos::from_secs(3_600),
        ..SHORT
    };
    let liar = || Promises(Deadline::new(late), Deadline::new(SHORT));
    let violation = check_waits(liar, &starving(200)).expect_err("it starves the request");
    assert_eq!(violation.rule, Rule::InTime, "{violation}");
    check_waits(|| Deadline::new(SHORT), &starving(200)).expect("it keeps its own promise");

    let sstf = || Broken::new(Fault::ClaimsTime);
    let violation = check_waits(sstf, &starving(200)).expect_err("it starves the request");
    assert_eq!(violation.rule, Rule::InTime, "{violation}");

    // Random scenarios: the elevator promises an expiry of 2 ms with batches of 2, and serves batches of 16.
    let long = DeadlineConfig {
        fifo_batch: 16,
        ..SHORT
    };
    let liar = || Promises(Deadline::new(long), Deadline::new(SHORT));
    let check = |scenario: &Scenario| check_waits(liar, scenario).map(drop);
    let (violation, _) = found(plain_scenarios(), check).expect("some scenario shows it");
    assert_eq!(violation.rule, Rule::InTime, "{violation}");
}

#[test]
fn a_closed_batch_bounds_overtaking_and_an_open_sweep_does_not() {
    let served = check_elevator(|| Clook::new(0), &starving(100)).expect("it claims no bound");
    let behind = served
        .iter()
        .position(|served| served.request.extent.start.get() == 0);
    assert_eq!(
        behind,
        Some(served.len() - 1),
        "the open sweep passes sector 0 over to the end"
    );
    let served = check_elevator(|| Clook::new(4), &starving(100)).expect("its bound holds");
    let behind = served
        .iter()
        .position(|served| served.request.extent.start.get() == 0);
    assert!(behind < Some(9), "{behind:?}");
}

/// Counters of a scheduler's calls.
#[derive(Default)]
struct Counts {
    merged: usize,
    fused: usize,
    drained: usize,
    withdrawn: usize,
    /// Number of withdrawals in the middle of a wait.
    withdrawn_waiting: usize,
    idled: usize,
    /// True while the scheduler waits.
    waits: bool,
    deep: usize,
}

struct Counting<S>(S, SharedCell<Counts>);

impl<S: Scheduler> Scheduler for Counting<S> {
    fn insert(&mut self, now: Time, request: headtime_sched::Request) {
        self.0.insert(now, request);
        let mut counts = self.1.lock();
        counts.deep = counts.deep.max(self.0.queued());
    }
    fn dispatch(&mut self, now: Time) -> Dispatch {
        let dispatch = self.0.dispatch(now);
        let mut counts = self.1.lock();
        counts.waits = matches!(dispatch, Dispatch::IdleUntil(_));
        counts.idled += usize::from(counts.waits);
        dispatch
    }
    fn dispatch_forced(&mut self, now: Time) -> Dispatch {
        self.0.dispatch_forced(now)
    }
    fn completed(&mut self, now: Time, request: &headtime_sched::Request) {
        self.0.completed(now, request);
    }
    fn withdraw(&mut self, tag: headtime_sched::Tag) -> headtime_sched::Request {
        let mut counts = self.1.lock();
        counts.withdrawn += 1;
        counts.withdrawn_waiting += usize::from(counts.waits);
        self.0.withdraw(tag)
    }
    fn may_merge(&self, queued: headtime_sched::Tag, new: &headtime_sched::Request) -> bool {
        self.0.may_merge(queued, new)
    }
    fn merged(&mut self, grown: &headtime_sched::Request) {
        self.1.lock().merged += 1;
        self.0.merged(grown);
    }
    fn fused(&mut self, kept: headtime_sched::Tag, gone: headtime_sched::Tag) {
        self.1.lock().fused += 1;
        self.0.fused(kept, gone);
    }
    fn overtake_max(&self) -> Option<usize> {
        self.0.overtake_max()
    }
    fn queued(&self) -> usize {
        self.0.queued()
    }
    fn drain(&mut self) -> Vec<headtime_sched::Request> {
        let all = self.0.drain();
        self.1.lock().drained += all.len();
        all
    }
}

#[test]
fn the_scenarios_try_what_there_is_to_try() {
    let (mut runner, counts) = (runner(1), SharedCell::new(Counts::default()));
    for _ in 0..512 {
        let scenario = scenarios()
            .new_tree(&mut runner)
            .expect("nothing is filtered");
        let make = || Counting(ToyAnticipator::new(Sstf::new()), counts.clone());
        check(make, &scenario.current()).expect("it has no fault");
    }
    let counts = counts.lock();
    for (what, count, least) in [
        ("merges", counts.merged, 100),
        ("fusions", counts.fused, 10),
        ("requests drained in flight", counts.drained, 100),
        ("requests withdrawn", counts.withdrawn, 100),
        (
            "requests withdrawn during a wait",
            counts.withdrawn_waiting,
            10,
        ),
        ("waits", counts.idled, 10),
        ("requests queued at once", counts.deep, 20),
    ] {
        assert!(count >= least, "{what}: only {count}");
    }
}
