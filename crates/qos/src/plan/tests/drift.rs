//! Runs that leave their profiles.

use super::*;

/// A planner of a program whose profile is of another load, beside a program of best effort.
fn of_other(profile: &Load, goal: f64) -> Planner {
    let programs = [(1, Some(profile.aim(goal))), (2, None)];
    let programs = programs.map(|(number, goal)| Planned { number, goal });
    Planner::new(Planning::default(), programs.into(), at(0))
}

/// State of the program after `until` milliseconds.
fn state_at(profile: &Load, run: &Load, goal: f64, until: u64) -> State {
    let mut loads = [run.clone(), Load::new(2, 32, 1_000_000, false)];
    let (_, planner) = run_in(of_other(profile, goal), &mut loads, until);
    planner.states().next().expect("a program")
}

#[test]
fn a_run_at_a_third_of_the_speed_is_noticed_within_two_seconds_and_an_impossible_goal_is_known_then()
 {
    let profile = Load::new(1, 48, 10_000, false);
    let run = Load::new(1, 16, 30_000, true);
    let state = state_at(&profile, &run, 2.0, 2_001);
    let Some(Drift::Slower(percent)) = state.drift else {
        panic!("{state:?}");
    };
    // The time that a window takes for its start and end is not counted.
    assert!((240..=300).contains(&percent), "{percent} %");
    // 18 s are left.
    assert!(state.rest > Nanos::from_secs(20), "{}", state.rest);
}

#[test]
fn a_run_as_in_its_profile_never_leaves_it() {
    let load = Load::new(1, 48, 10_000, false);
    for goal in [1.2, 2.5, 8.0] {
        let until = (10_000.0 * goal) as u64 - 500;
        let state = state_at(&load, &load, goal, until);
        assert_eq!(state.drift, None, "goal {goal}");
    }
}

#[test]
fn a_slower_run_gets_the_bound_that_its_rest_needs_and_ends_in_time() {
    let profile = Load::new(1, 48, 10_000, false);
    let mut loads = [
        Load::new(1, 16, 30_000, true),
        Load::new(2, 32, 1_000_000, false),
    ];
    let (_, planner) = run_in(of_other(&profile, 4.0), &mut loads, 40_500);
    let ended = loads[0].ended.expect("it ends");
    assert!((36_000..40_200).contains(&ended), "{ended} ms");
    let state = planner.states().next().expect("a program");
    assert!(state.drift.is_some());
}

#[test]
fn a_run_with_twice_the_data_is_noticed_within_two_seconds_after_a_sixteenth_more() {
    let profile = Load::new(1, 48, 4_000, false);
    let twice = Load::new(1, 48, 8_000, false);
    let after = |until: u64| {
        let mut loads = [twice.clone(), Load::new(2, 32, 1_000_000, false)];
        let (_, planner) = run_in(of_other(&profile, 2.0), &mut loads, until);
        let drift = planner.states().next().expect("a program").drift;
        (loads[0].served > 4_250, drift)
    };
    let states = (1..20).map(|second| after(second * 1_000 + 1));
    let states: Vec<(bool, Option<Drift>)> = states.collect();
    let left = states
        .iter()
        .position(|(left, _)| *left)
        .expect("it goes on");
    let noticed = states.iter().position(|(_, drift)| drift.is_some());
    let noticed = noticed.expect("it is noticed");
    assert_eq!(states[noticed].1, Some(Drift::More));
    assert!(left <= noticed && noticed < left + 2, "{left} {noticed}");
}
