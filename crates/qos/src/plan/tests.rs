//! Tests with simulated servers, each of which moves bytes at a constant rate, a millisecond at a time.

mod drift;
mod pauses;

use super::*;
use crate::{Model, Profile, Recorder, Service, TrainOptions};
use headtime_units::Millionths;
use std::sync::Arc;

const SERVERS: u16 = 3;
const SECTOR: u32 = 512;
const MS: Nanos = Nanos::from_millis(1);

fn at(ms: u64) -> Time {
    Time::ZERO + MS * ms
}

/// A program that moves some sectors a millisecond on each server, and ends after a time of service.
#[derive(Clone)]
struct Load {
    number: u16,
    /// Sectors a millisecond and server when the program is served.
    sectors: u64,
    /// Milliseconds of service.
    work: u64,
    /// True if each request is far from the last one.
    random: bool,
    served: u64,
    ended: Option<u64>,
}

impl Load {
    fn new(number: u16, sectors: u64, work: u64, random: bool) -> Load {
        Load {
            number,
            sectors,
            work,
            random,
            served: 0,
            ended: None,
        }
    }

    fn extent(&self) -> Extent {
        let step = if self.random { 1_000_003 } else { self.sectors };
        Extent::at(self.served * step % 100_000_000, self.sectors)
    }

    /// The profile of a run of the program without others.
    fn profile(&self) -> Profile {
        let setting = Setting {
            site: "test".to_owned(),
            program: format!("load-{}", self.number),
            share: Millionths::ONE,
            epoch: Setting::EPOCH,
            service: Service::Program,
            servers: SERVERS,
        };
        let mut recorder = Recorder::new(setting, SECTOR, at(0)).expect("it is allowed");
        let mut load = self.clone();
        for ms in 0..self.work {
            for server in 0..SERVERS {
                recorder.request(at(ms), server, Op::Read, load.extent());
            }
            load.served += 1;
            recorder.busy(at(ms), at(ms + 1));
        }
        recorder.finish(at(self.work)).expect("there are requests")
    }

    fn aim(&self, goal: f64) -> Aim {
        let profile = self.profile();
        let trained = Model::train(
            std::slice::from_ref(&profile),
            None,
            &TrainOptions::default(),
        );
        let model = Arc::new(trained.expect("there are epochs").model);
        let run = Nanos::from_nanos((profile.run.as_nanos() as f64 * goal) as u64);
        Aim::new(&profile, model, run, Time::ZERO, SECTOR).expect("it is possible")
    }
}

/// A planner of these programs.
fn planner(loads: &[Load], goals: &[Option<f64>]) -> Planner {
    let programs = loads.iter().zip(goals).map(|(load, goal)| Planned {
        number: load.number,
        goal: goal.map(|goal| load.aim(goal)),
    });
    Planner::new(Planning::default(), programs.collect(), at(0))
}

/// All orders that are due.
fn orders(planner: &mut Planner, now: Time) -> Vec<GateOrder> {
    std::iter::from_fn(|| planner.order(now)).collect()
}

/// Runs programs in the windows of a planner. Returns all orders.
fn run(loads: &mut [Load], goals: &[Option<f64>], until: u64) -> (Vec<GateOrder>, Planner) {
    run_in(planner(loads, goals), loads, until)
}

/// Runs programs in the windows of a given planner. Returns all orders.
fn run_in(mut planner: Planner, loads: &mut [Load], until: u64) -> (Vec<GateOrder>, Planner) {
    let mut orders = Vec::new();
    let mut windows: Vec<(Lane, Time, Time)> = Vec::new();
    for load in loads.iter() {
        for server in 0..SERVERS {
            planner.asked(at(0), server, load.number, Op::Read, load.extent());
        }
    }
    for ms in 0..until {
        let now = at(ms);
        while let Some(order) = planner.order(now) {
            if let GateOrder::Window { lane, from, span } = order {
                windows.push((lane, from, from + span));
            }
            orders.push(order);
        }
        windows.retain(|(.., end)| *end > now);
        let Some((lane, ..)) = windows.iter().find(|(_, from, _)| *from <= now) else {
            continue;
        };
        let Some(load) = loads.get_mut(usize::from(lane.0).wrapping_sub(1)) else {
            continue;
        };
        if load.ended.is_some() {
            continue;
        }
        let bytes = load.sectors * u64::from(SECTOR);
        load.served += 1;
        for server in 0..SERVERS {
            planner.done(now, server, load.number, bytes);
        }
        match load.served == load.work {
            true => load.ended = Some(ms),
            false => {
                for server in 0..SERVERS {
                    planner.asked(now, server, load.number, Op::Read, load.extent());
                }
            }
        }
    }
    (orders, planner)
}

#[test]
fn goals_are_met_and_best_effort_gets_the_rest() {
    // Each program takes 10 s alone. At 2.5 times that, both together need 80 % of the servers.
    let mut loads = [
        Load::new(1, 64, 10_000, false),
        Load::new(2, 8, 10_000, true),
        Load::new(3, 32, 1_000_000, false),
    ];
    let goals = [Some(2.5), Some(2.5), None];
    run(&mut loads, &goals, 26_500);
    for load in &loads[..2] {
        let ended = load.ended.expect("it ends");
        assert!(
            (23_000..26_250).contains(&ended),
            "{} ends at {ended} ms",
            load.number
        );
    }
    // A fifth of 25 s is left.
    assert!(
        loads[2].served > 4_000,
        "{} ms of best effort",
        loads[2].served
    );
}

#[test]
fn windows_of_a_period_sum_to_the_period_and_follow_each_other() {
    let mut loads = [Load::new(1, 64, 3_000, false), Load::new(2, 8, 5_000, true)];
    let (orders, _) = run(&mut loads, &[Some(3.0), None], 9_000);
    let windows = orders.iter().filter_map(|order| match order {
        GateOrder::Window { from, span, .. } => Some((*from, *span)),
        _ => None,
    });
    let mut next = at(0);
    for (from, span) in windows {
        assert_eq!(from, next);
        next = from + span;
    }
    assert_eq!(
        next,
        at(10_000),
        "the last plan is for the period after the next"
    );
}

#[test]
fn with_too_little_for_all_the_urgent_program_loses_least() {
    let mut loads = [
        Load::new(1, 64, 10_000, false),
        Load::new(2, 64, 30_000, false),
    ];
    // 56 and 74 % of the servers. If both gave the same, either would be 30 % late.
    run(&mut loads, &[Some(1.8), Some(1.35)], 50_000);
    let late = [(0, 18_000.0), (1, 40_500.0)]
        .map(|(at, goal): (usize, f64)| loads[at].ended.expect("it ends") as f64 / goal - 1.0);
    assert!(late[0] < 0.16, "{late:?}");
    assert!(
        late[1] < 0.10,
        "all the servers are left to the other: {late:?}"
    );
}

#[test]
fn same_events_give_the_same_plan() {
    let plan = || {
        let mut loads = [Load::new(1, 64, 3_000, false), Load::new(2, 8, 5_000, true)];
        run(&mut loads, &[Some(2.0), Some(3.0)], 5_000).0
    };
    assert_eq!(plan(), plan());
}

#[test]
fn a_program_without_requests_gives_up_its_window() {
    let mut loads = [
        Load::new(1, 64, 1_000, false),
        Load::new(2, 64, 50_000, false),
    ];
    let (orders, _) = run(&mut loads, &[Some(2.0), None], 12_000);
    let last = orders.iter().rev().find_map(|order| match order {
        GateOrder::Window { lane, span, .. } => Some((*lane, *span)),
        _ => None,
    });
    assert_eq!(last, Some((Lane(2), Nanos::from_millis(1000))));
}

#[test]
fn nothing_is_planned_while_nobody_asks_and_a_pause_is_left_out() {
    let mut loads = [Load::new(1, 64, 1_000, false)];
    let (_, mut planner) = run(&mut loads, &[Some(2.0)], 4_000);
    assert_eq!(planner.order(at(5_000)), None, "the run has ended");
    assert_eq!(planner.next_wakeup(), None);
    assert_eq!(planner.order(at(3_600_000)), None);
    planner.asked(at(3_600_500), 0, 1, Op::Read, loads[0].extent());
    let orders: Vec<GateOrder> = std::iter::from_fn(|| planner.order(at(3_600_500))).collect();
    let starts = orders.iter().filter_map(|order| match order {
        GateOrder::Window { from, .. } => Some(*from),
        _ => None,
    });
    let starts: Vec<Time> = starts.collect();
    assert_eq!(starts.first(), Some(&at(3_600_000)));
    assert!(starts.last() < Some(&at(3_602_000)), "{starts:?}");
    assert!(starts.len() <= 4, "{starts:?}");
}

#[test]
fn all_lanes_have_the_least_window_at_first_even_if_the_goals_demand_more_than_there_is() {
    let loads = [1, 2, 3, 4].map(|number| Load::new(number, 64, 1_000, false));
    let mut planner = planner(&loads, &[Some(1.2), Some(10.0), Some(1.2), None]);
    let least = planner.planning.least;
    let spans = orders(&mut planner, at(0)).into_iter();
    let spans = spans.filter_map(|order| match order {
        GateOrder::Window { from, span, .. } if from < at(1000) => Some(span),
        _ => None,
    });
    let spans: Vec<Nanos> = spans.collect();
    assert_eq!(spans.iter().copied().sum::<Nanos>(), MS * 1000);
    assert!(
        spans.len() == 5 && spans.iter().all(|span| *span >= least),
        "{spans:?}"
    );
}

#[test]
fn a_loss_outlives_a_pause_and_ends_with_the_goal() {
    let load = Load::new(1, 64, 1_000, false);
    let mut planner = planner(&[load], &[Some(2.0)]);
    (planner.programs[1].lost, planner.programs[1].repaying) = (MS * 700, MS * 300);
    orders(&mut planner, at(3_000));
    assert_eq!(planner.programs[1].lost, MS * 700);
    planner.programs[1].repaying = MS * 300;
    planner.set_goal(1, None);
    let of = &planner.programs[1];
    assert_eq!((of.lost, of.repaying), (Nanos::ZERO, Nanos::ZERO));
}

#[test]
fn a_program_that_comes_back_in_a_window_that_was_lent_gets_its_last_window() {
    let loads = [1, 2].map(|number| Load::new(number, 64, 1_000, false));
    let mut planner = planner(&loads, &[Some(2.0), None]);
    planner.asked(at(0), 0, 2, Op::Read, loads[1].extent());
    orders(&mut planner, at(3_050));
    for ms in [3_100, 3_110] {
        planner.asked(at(ms), 0, 1, Op::Read, loads[0].extent());
        planner.done(at(ms + 5), 0, 1, 32_768);
    }
    let lane = |order: &GateOrder| matches!(order, GateOrder::Window { lane: Lane(1), .. });
    let found = orders(&mut planner, at(4_000)).into_iter().find(lane);
    let (lane, from, span) = (Lane(1), at(5_000), MS * 500);
    assert_eq!(found, Some(GateOrder::Window { lane, from, span }));
}

/// A program that is assigned to a lane without windows is not served.
#[test]
fn a_program_changes_its_lane_when_the_lane_has_the_first_window() {
    let loads = [1, 2].map(|number| Load::new(number, 64, 1_000, false));
    // A seek takes no time: the programs should share a window.
    let mut planner =
        planner(&loads, &[Some(4.0), Some(4.0)]).with_seeks(Box::new(|_| Nanos::ZERO));
    let (mut moves, mut windows) = (Vec::new(), Vec::new());
    for now in (0..6_000).map(at) {
        for order in orders(&mut planner, now) {
            match order {
                GateOrder::Assign { lane, .. } if now > at(0) => moves.push((lane, now)),
                GateOrder::Window { lane, from, .. } => windows.push((lane, from)),
                _ => {}
            }
        }
        for load in &loads {
            planner.asked(now, 0, load.number, Op::Read, load.extent());
            planner.done(now, 0, load.number, 32_768);
        }
    }
    assert!(!moves.is_empty());
    for (to, now) in moves {
        let within =
            |(lane, from): &(Lane, Time)| *lane == to && (now..now + MS * 1000).contains(from);
        assert!(windows.iter().any(within), "{to:?} at {now:?}: {windows:?}");
    }
}
