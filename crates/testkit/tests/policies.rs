//! The promises that all policies make. Every policy of the table is checked at its defaults, at the ends of its
//! ranges and with the options listed here.

use headtime_sched::{
    Deadline, DeadlineConfig, Elevator, Knowledge, MqDeadline, Noop, Op, PolicyInfo, Positioning,
    Scheduler, ServiceCurve, Spec, Sptf, Sstf, policies,
};
use headtime_testkit::{
    CAPACITY, Scenario, Served, ToyAnticipator, ToyDisk, ToyFair, ToyMechanics, Violation, check,
    check_elevator, check_patiently, check_waits, extreme_texts, plain_scenarios, plain_texts,
    scenarios, starving,
};
use headtime_units::{Extent, Lba, Millionths, Nanos, Sectors};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::sync::{Arc, LazyLock};

static POSITIONS: LazyLock<Arc<ToyMechanics>> = LazyLock::new(|| Arc::new(ToyMechanics::new()));

/// Service curve of the toy disk, for 8 sectors.
static CURVE: LazyLock<Arc<ServiceCurve>> = LazyLock::new(|| {
    let time = |distance| ToyDisk::access_time(Lba::new(distance), Lba::ZERO, 8);
    let points = [0, 1, CAPACITY].map(|distance| (Sectors::new(distance), time(distance)));
    let curve = ServiceCurve::new(points.to_vec(), ServiceCurve::BACKWARD);
    Arc::new(curve.expect("a curve"))
});

fn knowledge() -> Knowledge<Arc<ToyMechanics>> {
    Knowledge {
        positioning: Some(POSITIONS.clone()),
        curve: Some(CURVE.clone()),
        ..Knowledge::default()
    }
}

fn spec(text: &str) -> Spec {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn elevator(text: &str) -> Box<dyn Elevator> {
    let built = spec(text).build_elevator(knowledge());
    built.unwrap_or_else(|error| panic!("{error}"))
}

fn scheduler(text: &str) -> Box<dyn Scheduler> {
    let built = spec(text).build(knowledge());
    built.unwrap_or_else(|error| panic!("{error}"))
}

/// Checks a scheduler with the promises of all schedulers and, if it never waits, with the promises of elevators.
fn check_all(text: &str, scenario: &Scenario) -> Result<(), Violation> {
    if !spec(text).info().waits {
        check_elevator(|| elevator(text), scenario)?;
    }
    // Waits may last as long as the longest time option.
    let patience = spec(text).longest_option();
    check_patiently(patience, || scheduler(text), scenario)?;
    Ok(())
}

/// Checks every policy of the table with all its texts.
fn check_table(texts: fn(&PolicyInfo) -> Vec<String>) {
    for text in policies().flat_map(texts) {
        let config = Config {
            failure_persistence: None,
            ..Config::default()
        };
        let checked = TestRunner::new(config).run(&scenarios(), |scenario| {
            check_all(&text, &scenario)?;
            Ok(())
        });
        checked.unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}

#[test]
fn a_scheduler_says_that_it_never_waits_if_its_policy_does() {
    for policy in policies() {
        for text in plain_texts(policy) {
            assert_eq!(scheduler(&text).never_waits(), !policy.waits, "{text}");
        }
    }
}

#[test]
fn every_policy_at_its_defaults_keeps_the_promises() {
    check_table(plain_texts);
}

#[test]
fn every_policy_at_the_ends_of_its_ranges_keeps_the_promises() {
    check_table(extreme_texts);
}

macro_rules! keep_the_promises {
    ($($name:ident: $text:literal;)*) => {
        proptest! {
            $(
                #[test]
                fn $name(scenario in scenarios()) {
                    check_all($text, &scenario)?;
                }
            )*
        }
    };
}

keep_the_promises! {
    deadline_in_a_hurry: "deadline:read_expire=2ms:write_expire=5ms:fifo_batch=2";
    deadline_of_extremes: "deadline:read_expire=0ns:fifo_batch=0:writes_starved=0:front_merges=no";
    deadline_of_nanoseconds: "deadline:read_expire=1ns:write_expire=1ns";
    deadline_of_days: "deadline:read_expire=1d:write_expire=1d:fifo_batch=1000000:writes_starved=1000000";
    mq_deadline_of_days: "mq-deadline:read_expire=1d:write_expire=1d:prio_aging_expire=1d";
    mq_deadline_in_a_hurry: "mq-deadline:read_expire=2ms:fifo_batch=2:prio_aging_expire=8ms";
    clook_one_by_one: "clook:batch=1";
    clook_in_batches: "clook:batch=5";
    sptf_aged: "sptf:age_weight=0.03";
    anticipatory_of_fast_ticks: "as:hz=1000";
    anticipatory_in_a_hurry: "as:hz=1000:read_expire=2ms:write_expire=5ms:read_batch_expire=3ms:write_batch_expire=2ms:antic_expire=1ms";
    anticipatory_that_waits_long: "as:hz=1000:antic_expire=50ms";
    anticipatory_that_never_waits: "as:antic_expire=0ns:read_expire=0ns:read_batch_expire=0ns:write_batch_expire=0ns";
    anticipatory_of_nanoseconds: "as:hz=100:read_expire=1ns:write_expire=1ns:read_batch_expire=1ns:write_batch_expire=1ns:antic_expire=1ns";
    anticipatory_of_days: "as:read_expire=1d:write_expire=1d:read_batch_expire=1d:write_batch_expire=1d";
    cfq_of_nanoseconds: "cfq:hz=100:slice_sync=1ns:slice_async=1ns:slice_idle=1ns:fifo_expire_sync=1ns:fifo_expire_async=1ns";
    cfq_of_days: "cfq:quantum=1000000:slice_sync=1d:slice_async=1d:slice_async_rq=1000000:fifo_expire_sync=1d:fifo_expire_async=1d";
    cfq_of_fast_ticks: "cfq:hz=1000";
    cfq_in_a_hurry: "cfq:hz=1000:quantum=1:slice_sync=3ms:slice_async=2ms:slice_async_rq=1:slice_idle=1ms:fifo_expire_sync=2ms:fifo_expire_async=4ms";
    cfq_that_never_waits: "cfq:slice_idle=0ns:back_seek_max=0";
    bfq_of_nanoseconds: "bfq:slice_idle=1ns:timeout_sync=1ns:fifo_expire_sync=1ns:fifo_expire_async=1ns";
    bfq_of_days: "bfq:timeout_sync=1d:fifo_expire_sync=1d:fifo_expire_async=1d:max_budget=2147483647";
    bfq_of_one_sector: "bfq:max_budget=1:slice_idle=1ms";
    bfq_without_raising: "bfq:low_latency=no";
    bfq_that_is_strict: "bfq:strict_guarantees=yes:low_latency=no";
    bfq_that_is_strict_and_never_waits: "bfq:strict_guarantees=yes:slice_idle=0ns";
    bfq_that_never_waits: "bfq:slice_idle=0ns:back_seek_max=0";
    stream_of_noop: "stream(noop):threshold=2";
    stream_of_sstf: "stream(sstf):threshold=2";
    stream_of_clook: "stream(clook):threshold=3:tolerance=2";
    stream_that_always_waits: "stream(sptf-sw60):threshold=1:slice=10s";
    stream_that_never_waits: "stream(mq-deadline):slice=0ns:tolerance=0";
    stream_in_a_hurry: "stream(deadline:read_expire=2ms:write_expire=5ms:fifo_batch=2):threshold=2:slice=5ms";
    stream_of_classes_in_a_hurry: "stream(mq-deadline:read_expire=2ms:write_expire=5ms:fifo_batch=2:prio_aging_expire=4ms):threshold=1";
    stream_of_a_nanosecond: "stream(noop):threshold=1:slice=1ns:tolerance=100";
    stream_of_unbounded_waits: "stream:threshold=2:lost=1";
    stream_without_waits_of_clook: "stream(clook):threshold=1:slice=10s:lost=0";
    nise_of_three: "nise(noop,deadline:read_expire=2ms@4,as:hz=1000@1):th1=3ms:th2=9/30:alpha=1";
    nise_that_tries: "nise:by=trial:turn=2ms:cost=0.5";
    nise_that_tries_all_the_time: "nise(clook@2,as:antic_expire=50ms,mq-deadline):by=trial:turn=0ns:cost=0.5";
    nise_that_tries_what_waits: "nise(cfq,stream(sstf):threshold=1@3,as):by=trial:turn=1ms:cost=0.5";
    nise_that_tries_budgets: "nise(bfq@2,cfq,bfq:low_latency=no):by=trial:turn=3ms:cost=0.5";
    nise_that_tries_queues_of_processes: "nise(cfq:hz=1000@2,cfq:slice_sync=1ns):by=trial:turn=3ms:cost=0.5";
    clairvoyant_of_clook: "clairvoyant(clook):slice=3ms";
}

/// Expiries and batches short enough that the toy disk reaches them.
const SHORT: DeadlineConfig = DeadlineConfig {
    read_expire: Nanos::from_millis(2),
    write_expire: Nanos::from_millis(6),
    fifo_batch: 2,
    writes_starved: 1,
    front_merges: true,
};

/// Longest time by which a request came later than a request that it overtook.
fn latest_pass(served: &[Served]) -> Nanos {
    let by = |(at, later): (usize, &Served)| {
        let behind = served[at + 1..].iter();
        let by = behind.map(|earlier| {
            let earlier = earlier.request.arrival;
            later.request.arrival.saturating_since(earlier)
        });
        by.max()
    };
    let passes = served.iter().enumerate().filter_map(by);
    passes.max().unwrap_or(Nanos::ZERO)
}

/// Longest positioning time divided by the weight, for addresses of the scenarios.
fn window(weight: Millionths) -> Nanos {
    const TURN: Nanos = Nanos::from_nanos(8_333_333);
    let place = |lba| POSITIONS.start(Extent::at(lba, 1));
    let longest = POSITIONS.seek(place(0), place(CAPACITY), Op::Read) + TURN;
    Nanos::from_nanos(longest.as_nanos() * 1_000_000 / weight.0)
}

#[test]
fn the_window_is_seen_to_close() {
    let weight = Millionths(10_000_000);
    let latest = |sptf: Sptf<Arc<ToyMechanics>>| {
        let served = check_elevator(|| sptf.clone(), &starving(200));
        latest_pass(&served.expect("it keeps its other promises"))
    };
    assert!(latest(Sptf::new(POSITIONS.clone())) > window(weight));
    assert!(latest(Sptf::aged(POSITIONS.clone(), weight)) <= window(weight));
}

proptest! {
    #[test]
    fn deadline_serves_every_request_within_its_bound(scenario in plain_scenarios()) {
        check_waits(|| Deadline::new(SHORT), &scenario)?;
    }

    #[test]
    fn mq_deadline_keeps_its_time(scenario in plain_scenarios()) {
        check_waits(|| MqDeadline::new(SHORT, Nanos::from_secs(10)), &scenario)?;
    }

    #[test]
    fn aged_sptf_closes_its_window(
        scenario in plain_scenarios(),
        // Weights for windows of 33 ms, longer than most scenarios, down to 9 us.
        weight in prop_oneof![300_000..10_000_000_u64, 300_000..=1_000_000_000_u64]
            .prop_map(Millionths),
    ) {
        let served = check_elevator(|| Sptf::aged(POSITIONS.clone(), weight), &scenario)?;
        prop_assert!(latest_pass(&served) <= window(weight));
    }

    #[test]
    fn toy_anticipators_keep_the_promises(scenario in scenarios()) {
        check(|| ToyAnticipator::new(Sstf::new()), &scenario)?;
        check(|| ToyAnticipator::new(Deadline::new(SHORT)), &scenario)?;
        check(|| ToyAnticipator::new(Noop::new()), &scenario)?;
    }

    #[test]
    fn cfq_and_bfq_merge_what_is_read_for_one_process_only(scenario in scenarios()) {
        for text in ["cfq", "bfq"] {
            for served in check(|| scheduler(text), &scenario)? {
                let process = |part: &usize| scenario.arrivals[*part].process;
                let of = served.request.origin.process;
                let alone = served.parts.iter().all(|part| process(part) == of);
                prop_assert!(alone || !served.request.op.is_read());
            }
        }
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
