//! Tests of pauses, in which a program or all programs make no requests.

use super::*;

/// Serves a program during `times`, with a request of 64 sectors every `step` ms.
fn serve(planner: &mut Planner, number: u16, times: std::ops::Range<u64>, step: usize) {
    for ms in times.clone().step_by(step) {
        planner.asked(at(ms), 0, number, Op::Read, Extent::at(ms * 64, 64));
        planner.done(at(ms + 1), 0, number, 64 * u64::from(SECTOR));
        orders(planner, at(ms + 1));
    }
    orders(planner, at(times.end));
}

/// A second of requests, five of computing, and a second of requests, at twice the I/O time. Another program is never without requests.
fn computing() -> Planner {
    let setting = Load::new(1, 64, 1, false).profile().setting;
    let mut recorder = Recorder::new(setting, SECTOR, at(0)).expect("it is allowed");
    for ms in (0..1000).chain(6000..7000) {
        recorder.request(at(ms), 0, Op::Read, Extent::at(ms * 64, 64));
        recorder.busy(at(ms), at(ms + 1));
    }
    let profile = recorder.finish(at(7000)).expect("there are requests");
    let profiles = std::slice::from_ref(&profile);
    let trained = Model::train(profiles, None, &TrainOptions::default());
    let model = Arc::new(trained.expect("there are epochs").model);
    let aim = Aim::new(&profile, model, MS * 9000, at(0), SECTOR).expect("it is possible");
    let goals = [Some(aim), None];
    let programs = (1..).zip(goals);
    let programs = programs.map(|(number, goal)| Planned { number, goal });
    let mut planner = Planner::new(Planning::default(), programs.collect(), at(0));
    orders(&mut planner, at(0));
    planner.asked(at(0), 0, 2, Op::Read, Extent::at(0, 64));
    planner
}

#[test]
fn computing_as_in_the_profile_or_for_longer_is_no_delay() {
    let mut planner = computing();
    // Half of the bytes in two seconds: the goal's pace.
    serve(&mut planner, 1, 0..2000, 2);
    for pause in [2, 7, 20] {
        orders(&mut planner, at(pause * 1000));
        assert_eq!(planner.programs[1].behind, Nanos::ZERO, "{pause} s");
    }
    // The pause is no time in hand either: at half of the pace the delay grows.
    serve(&mut planner, 1, 20_000..22_000, 4);
    let behind = planner.programs[1].behind;
    assert!(MS * 900 < behind && behind <= MS * 1000, "{behind}");
}

#[test]
fn a_delay_outlives_the_time_in_which_a_program_computes() {
    let mut planner = computing();
    // A quarter of the pace.
    serve(&mut planner, 1, 0..2000, 8);
    let behind = planner.programs[1].behind;
    assert!(behind > MS * 1400, "{behind}");
    orders(&mut planner, at(9000));
    assert_eq!(planner.programs[1].behind, behind);
}

#[test]
fn a_request_after_a_pause_does_not_count_in_the_epochs_before_it() {
    for pause in [700, 1700, 2700, 60_700] {
        let mut planner = planner(&[Load::new(1, 64, 10_000, false)], &[Some(2.0)]);
        orders(&mut planner, at(0));
        serve(&mut planner, 1, 0..1000, 2);
        let (lost, clock) = (planner.programs[1].lost, planner.programs[1].clock);
        let extent = Extent::at(0, 64);
        planner.asked(at(1_050 + pause), 0, 1, Op::Read, extent);
        let program = &planner.programs[1];
        assert_eq!((program.lost, program.required), (lost, 0), "{pause} ms");
        assert!(program.clock <= clock + MS * 100, "{pause} ms");
    }
}

#[test]
fn traffic_before_a_pause_is_measured_in_its_own_period() {
    let mut planner = planner(&[Load::new(1, 64, 10_000, false)], &[Some(2.0)]);
    orders(&mut planner, at(0));
    serve(&mut planner, 1, 0..1500, 2);
    serve(&mut planner, 1, 50_200..50_202, 2);
    let program = &planner.programs[1];
    assert_eq!(program.served, 64 * u64::from(SECTOR));
    // The last plan's window is in force.
    assert_eq!(program.windows[0], program.windows[1]);
    assert_eq!(program.starts[0].as_nanos() / 1_000_000_000, 50);
}

#[test]
fn after_a_pause_programs_have_the_lanes_of_the_last_plan() {
    let loads = [1, 2].map(|number| Load::new(number, 64, 1_000, false));
    let mut planner = planner(&loads, &[Some(4.0), Some(4.0)]);
    orders(&mut planner, at(0));
    // The next plan has the program in the shared window, without one of its own.
    planner.programs[1].shares = [false, false, true];
    planner.programs[1].windows[1] = Nanos::ZERO;
    planner.asked(at(9_500), 0, 1, Op::Read, Extent::at(0, 64));
    let found = orders(&mut planner, at(9_500));
    let (of, lane) = (1, Lane(0));
    assert_eq!(found.first(), Some(&GateOrder::Assign { of, lane }));
    let windows = found.iter().filter_map(|order| match order {
        GateOrder::Window { lane, from, .. } => Some((lane.0, from.as_nanos() / 1_000_000_000)),
        _ => None,
    });
    let windows: Vec<(u8, u64)> = windows.collect();
    assert_eq!(windows, [(0, 9), (2, 9), (0, 10), (2, 10)]);
}

#[test]
fn a_program_without_its_goal_has_a_window_and_no_loss() {
    let mut planner = computing();
    // Far behind its bound and its course.
    serve(&mut planner, 1, 0..3500, 50);
    assert!(planner.programs[1].loss() > MS * 1000);
    planner.set_goal(1, None);
    let mut windows = Vec::new();
    for ms in (3500..8000).step_by(50) {
        serve(&mut planner, 1, ms..ms + 1, 1);
        windows.push(
            planner
                .programs
                .iter()
                .map(|one| one.windows[1])
                .collect::<Vec<_>>(),
        );
        assert_eq!(
            planner.states().next().map(|state| state.lost),
            Some(Nanos::ZERO)
        );
    }
    for sizes in &windows {
        assert_eq!(
            sizes.iter().copied().sum::<Nanos>(),
            MS * 1000,
            "{windows:?}"
        );
    }
    assert_eq!(windows.last().unwrap()[1..], [MS * 500; 2], "equal parts");
}

#[test]
fn what_a_goal_demanded_is_no_loss_of_the_next_one() {
    let mut planner = computing();
    serve(&mut planner, 1, 0..2800, 50);
    assert!(planner.programs[1].required > 10 * planner.programs[1].served);
    let aim = planner.programs[1].goal.clone();
    let aim = aim.map(|aim| Aim {
        start: at(2_850),
        ..aim
    });
    planner.set_goal(1, aim);
    orders(&mut planner, at(3_000));
    assert_eq!(planner.programs[1].loss(), Nanos::ZERO);
}
