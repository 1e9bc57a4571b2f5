//! The windows of a period once more, in floating point, from section 3.2.2 and the readings of the design note.

use headtime_qos::{Demand, Shortage, Size, sizes};
use headtime_units::Nanos;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const PERIOD: Nanos = Nanos::from_millis(1000);
const LEAST: Nanos = Nanos::from_millis(45);

fn number(span: Nanos) -> f64 {
    span.as_nanos() as f64
}

/// Takes `all` from `windows`, in parts proportional to `weights`, and leaves `floors`. Returns what could not be taken.
fn take(windows: &mut [f64], floors: &[f64], weights: &[f64], mut all: f64) -> f64 {
    let mut open: Vec<usize> = (0..windows.len()).filter(|at| weights[*at] > 0.0).collect();
    while all > 0.0 && !open.is_empty() {
        let total: f64 = open.iter().map(|at| weights[*at]).sum();
        let share = |at: usize| all * weights[at] / total;
        let full: Vec<usize> = open
            .iter()
            .copied()
            .filter(|at| share(*at) >= windows[*at] - floors[*at])
            .collect();
        if full.is_empty() {
            for at in open {
                windows[at] -= all * weights[at] / total;
            }
            return 0.0;
        }
        for at in full {
            all -= windows[at] - floors[at];
            windows[at] = floors[at];
            open.retain(|other| *other != at);
        }
    }
    all.max(0.0)
}

/// The rule of section 3.2.2: the window of each lane, in nanoseconds. The period has room for the least window of each lane that must have one, a lane is of best
/// effort, and a deadline is ahead.
fn formulas(demands: &[Demand]) -> Vec<f64> {
    let period = number(PERIOD);
    let floors: Vec<f64> = demands
        .iter()
        .map(|demand| if demand.must { number(LEAST) } else { 0.0 })
        .collect();
    let mut windows = floors.clone();
    let goals: Vec<usize> = (0..demands.len())
        .filter(|at| demands[*at].left.is_some())
        .collect();
    for at in &goals {
        let demand = &demands[*at];
        let (served, required) = (demand.served as f64, demand.required as f64);
        let mut window = number(demand.window);
        if demand.served > 0 && demand.required > 0 {
            // T_adjust; the window shrinks if it is negative.
            window += (required - served) / (served / window);
        }
        windows[*at] = window.min(period).max(floors[*at]);
    }
    let left = |at: usize| demands[at].left.map_or(0.0, number);
    let sum: f64 = windows.iter().sum();
    if sum > period {
        let weights: Vec<f64> = (0..demands.len()).map(left).collect();
        let more = take(&mut windows, &floors, &weights, sum - period);
        assert!(more < 1.0, "a deadline is ahead, and all floors fit");
        return windows;
    }
    let mut slack = period - sum;
    let mut urgent = goals.clone();
    urgent.sort_by(|one, other| left(*one).total_cmp(&left(*other)));
    for at in urgent {
        let demand = &demands[at];
        if demand.served == 0 {
            continue;
        }
        // Bytes that the bound moves in the lost time, over the throughput of the window.
        let bound = demand.required as f64 / period;
        let throughput = demand.served as f64 / number(demand.window);
        // The plan before, which counts in the next period, repays a part.
        let due = (number(demand.lost) - number(demand.repaying)).max(0.0);
        let given = (due * bound / throughput).min(slack);
        slack -= given;
        windows[at] += given;
    }
    // Best effort with requests takes the rest in equal parts. All have the least window already.
    let rest = demands
        .iter()
        .map(|demand| demand.must && demand.left.is_none());
    let count = rest.clone().filter(|takes| *takes).count();
    for (at, takes) in rest.enumerate() {
        windows[at] += if takes { slack / count as f64 } else { 0.0 };
    }
    windows
}

fn demand(goal: bool) -> impl Strategy<Value = Demand> {
    let span = |most: u64| (0..most).prop_map(Nanos::from_nanos);
    let bytes = || prop_oneof![1 => Just(0), 9 => 1_000_000..200_000_000_u64];
    let left = match goal {
        true => prop_oneof![1 => Just(Nanos::ZERO), 9 => span(100_000 * MS)]
            .prop_map(Some)
            .boxed(),
        false => Just(None).boxed(),
    };
    let window = (1_u64..600).prop_map(Nanos::from_millis);
    let lost = prop_oneof![1 => Just(Nanos::ZERO), 2 => span(20 * MS), 1 => span(5_000 * MS)];
    (left, window, bytes(), bytes(), lost, any::<bool>()).prop_map(
        |(left, window, served, required, lost, must)| Demand {
            left,
            window,
            served,
            required,
            lost,
            repaying: lost / 3,
            must,
            promised: 0,
        },
    )
}

/// Any demand, with times and bytes of all magnitudes.
fn extreme() -> impl Strategy<Value = Demand> {
    let number = || (0..64_u32, any::<u64>()).prop_map(|(less, of)| of >> less);
    let span = || number().prop_map(Nanos::from_nanos);
    (
        proptest::option::of(span()),
        span(),
        number(),
        number(),
        span(),
        any::<bool>(),
    )
        .prop_map(|(left, window, served, required, lost, must)| Demand {
            left,
            window,
            served,
            required,
            lost,
            repaying: lost / 2,
            must,
            promised: 0,
        })
}

fn sum(sizes: &[Size]) -> u128 {
    let windows = sizes.iter().map(|size| u128::from(size.window.as_nanos()));
    windows.sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn windows_are_those_of_the_formulas(
        goals in prop::collection::vec(demand(true), 0..7),
        rest in prop::collection::vec(demand(false), 1..4),
    ) {
        let mut demands = rest;
        demands[0].must = true;
        demands.extend(goals);
        let goals = || demands.iter().filter(|demand| demand.left.is_some());
        // The paper says nothing of deadlines that have passed.
        let passed = |demand: &Demand| demand.left == Some(Nanos::ZERO);
        prop_assume!(!goals().any(passed));
        let by_hand = formulas(&demands);
        let sizes = sizes(PERIOD, LEAST, Shortage::Deadline, &demands);
        let close = |one: f64, other: f64| (one - other).abs() < 2_000.0;
        for (at, size) in sizes.iter().enumerate() {
            let window = by_hand[at];
            prop_assert!(
                close(number(size.window), window),
                "window of {at}: {} by hand {window}\n{demands:#?}\n{sizes:#?}\n{by_hand:#?}", number(size.window)
            );
        }
    }

    #[test]
    fn any_windows_sum_to_the_period_and_leave_out_nobody_who_must_have_one(
        demands in prop::collection::vec(extreme(), 1..64),
    ) {
        let given = sizes(PERIOD, LEAST, Shortage::Deadline, &demands);
        prop_assert_eq!(given.len(), demands.len());
        prop_assert_eq!(sum(&given), u128::from(PERIOD.as_nanos()), "{:#?}", given);
        let must = demands.iter().filter(|demand| demand.must).count() as u64;
        let least = LEAST.min(PERIOD / must.max(1));
        for (demand, size) in demands.iter().zip(&given) {
            prop_assert!(
                !demand.must || size.window + Nanos::from_nanos(1) >= least,
                "{:?} {:?} of {} that must", demand, size, must
            );
        }
        prop_assert_eq!(sizes(PERIOD, LEAST, Shortage::Deadline, &demands), given, "equal demands give equal windows");
    }

    /// If all goals together ask for too much, those with a deadline that has passed give last.
    #[test]
    fn a_deadline_that_has_passed_gives_last(
        mut demands in prop::collection::vec(demand(true), 2..7),
    ) {
        demands[0].left = Some(Nanos::ZERO);
        let given = sizes(PERIOD, LEAST, Shortage::Deadline, &demands);
        let passed = |demand: &Demand| demand.left == Some(Nanos::ZERO);
        let mut both = demands.iter().zip(&given);
        if !both.any(|(demand, size)| passed(demand) && size.cut > Nanos::from_micros(10)) {
            return Ok(());
        }
        for (demand, size) in demands.iter().zip(&given) {
            let floor = if demand.must { LEAST } else { Nanos::ZERO };
            // A deadline within a millisecond is as good as passed.
            let ahead = demand.left > Some(Nanos::from_millis(1));
            prop_assert!(
                !ahead || size.window <= floor + Nanos::from_micros(10),
                "{:?} {:?}\n{:#?}\n{:#?}", demand, size, demands, given
            );
        }
    }
}

/// The weights of both are nearly 0. The loop over the cuts took them off by a nanosecond each time.
#[test]
fn programs_whose_deadlines_have_passed_give_equal_parts_at_once() {
    let late = Demand {
        left: Some(Nanos::ZERO),
        window: Nanos::from_millis(800),
        served: 100,
        required: 100,
        must: true,
        ..Demand::default()
    };
    let given = sizes(PERIOD, LEAST, Shortage::Deadline, &[late, late]);
    assert!(
        given
            .iter()
            .all(|size| size.window == Nanos::from_millis(500)),
        "{given:?}"
    );
}

/// Lanes without requests take nothing of the least windows of others.
#[test]
fn the_least_window_depends_on_the_lanes_that_must_have_one_only() {
    let busy = Demand {
        must: true,
        ..Demand::default()
    };
    let goal = Demand {
        left: Some(Nanos::from_secs(9)),
        window: Nanos::from_millis(1000),
        served: 100,
        required: 100,
        must: true,
        ..Demand::default()
    };
    let mut demands = vec![Demand::default(); 62];
    demands.extend([busy, goal]);
    let given = sizes(PERIOD, LEAST, Shortage::Deadline, &demands);
    assert_eq!(given[62].window, LEAST);
}
