//! Every policy, with the promises that all of them make. A new policy is a line here.

use headtime_sched::{
    Deadline, DeadlineConfig, Elevator, MqDeadline, Noop, Scheduler, Spec, Sstf, policies,
};
use headtime_testkit::{
    ToyAnticipator, ToyFair, ToyMechanics, check, check_elevator, check_waits, plain_scenarios,
    scenarios,
};
use headtime_units::Nanos;
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};

static POSITIONS: LazyLock<Arc<ToyMechanics>> = LazyLock::new(|| Arc::new(ToyMechanics::new()));

fn spec(text: &str) -> Spec {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn elevator(text: &str) -> Box<dyn Elevator> {
    let built = spec(text).build_elevator(Some(POSITIONS.clone()));
    built.unwrap_or_else(|error| panic!("{error}"))
}

fn scheduler(text: &str) -> Box<dyn Scheduler> {
    let built = spec(text).build(Some(POSITIONS.clone()));
    built.unwrap_or_else(|error| panic!("{error}"))
}

macro_rules! every_policy {
    ($($name:ident: $text:literal;)*) => {
        /// The texts that are tried.
        const TRIED: &[&str] = &[$($text),*];

        proptest! {
            $(
                #[test]
                fn $name(scenario in scenarios()) {
                    check_elevator(|| elevator($text), &scenario)?;
                    check(|| scheduler($text), &scenario)?;
                }
            )*
        }
    };
}

every_policy! {
    noop: "noop";
    deadline: "deadline";
    deadline_in_a_hurry: "deadline:read_expire=2ms:write_expire=5ms:fifo_batch=2";
    deadline_of_extremes: "deadline:read_expire=0ns:fifo_batch=0:writes_starved=0:front_merges=no";
    mq_deadline: "mq-deadline";
    mq_deadline_in_a_hurry: "mq-deadline:read_expire=2ms:fifo_batch=2:prio_aging_expire=8ms";
    clook: "clook";
    clook_one_by_one: "clook:batch=1";
    clook_in_batches: "clook:batch=5";
    sstf: "sstf";
    sptf: "sptf";
    sptf_seek_weighted: "sptf-sw60";
    sptf_seek_weighted_by_nothing: "sptf-sw0";
}

#[test]
fn every_policy_is_tried() {
    for info in policies() {
        assert!(
            TRIED.iter().any(|text| spec(text).info() == info),
            "{} has no line above",
            info.name
        );
    }
}

/// Expiries and batches short enough that the toy disk reaches them.
const SHORT: DeadlineConfig = DeadlineConfig {
    read_expire: Nanos::from_millis(2),
    write_expire: Nanos::from_millis(6),
    fifo_batch: 2,
    writes_starved: 1,
    front_merges: true,
};

proptest! {
    #[test]
    fn deadline_keeps_its_time(scenario in plain_scenarios()) {
        check_waits(|| Deadline::new(SHORT), &scenario)?;
    }

    #[test]
    fn mq_deadline_keeps_its_time(scenario in plain_scenarios()) {
        check_waits(|| MqDeadline::new(SHORT, Nanos::from_secs(10)), &scenario)?;
    }

    #[test]
    fn toy_anticipators(scenario in scenarios()) {
        check(|| ToyAnticipator::new(Sstf::new()), &scenario)?;
        check(|| ToyAnticipator::new(Deadline::new(SHORT)), &scenario)?;
        check(|| ToyAnticipator::new(Noop::new()), &scenario)?;
    }

    #[test]
    fn a_fair_policy_with_a_veto(scenario in scenarios()) {
        for served in check_elevator(ToyFair::new, &scenario)? {
            let process = |part: &usize| scenario.arrivals[*part].process;
            let of = served.request.origin.process;
            prop_assert!(served.parts.iter().all(|part| process(part) == of));
        }
    }
}
