//! Goals of programs, by notes at times that the tests choose.

use super::feed::{Feed, feed};
use super::*;
use headtime_engine::GateSpec;
use headtime_engine::Lane;
use headtime_qos::{Model, Planning, TimeOfDay, TrainOptions};
use headtime_sched::Op;
use headtime_units::{Extent, Rate};
use std::sync::{Arc, OnceLock};

pub(super) const MS: Nanos = Nanos::from_millis(1);
pub(super) const BYTES: u64 = 64 << 10;

pub(super) fn at(ms: u64) -> Time {
    Time::ZERO + MS * ms
}

pub(super) fn until(_: TimeOfDay) -> Nanos {
    Nanos::from_secs(5)
}

pub(super) fn options(known: &[Option<Profiled>]) -> GoalsOptions {
    let programs = known.iter().zip(["mail", "web", "files"]);
    let disks = vec!["disk0".to_owned(), "disk1".to_owned()];
    GoalsOptions {
        programs: programs
            .map(|(known, name)| ProgramOptions {
                name: name.to_owned(),
                exports: vec![name.to_owned()],
                goal: None,
                known: known.clone(),
                p99: None,
            })
            .collect(),
        ..GoalsOptions::new(disks, &gate("windows"), None)
    }
}

pub(super) fn gate(text: &str) -> GateSpec {
    text.parse().expect("a gate")
}

pub(super) struct Rig {
    pub(super) goals: Goals,
    pub(super) feeds: Vec<Feed>,
    pub(super) orders: Vec<GateOrder>,
}

impl Rig {
    pub(super) fn new(options: GoalsOptions) -> Rig {
        let (feeds, notes) = options.disks.iter().map(|_| feed()).unzip();
        Rig {
            goals: Goals::new(options, notes),
            feeds,
            orders: Vec::new(),
        }
    }

    /// A request that a disk needs the millisecond from `ms` on for.
    fn request(&mut self, ms: u64, server: usize, program: u16) {
        let feed = &mut self.feeds[server];
        let extent = Extent::at(ms * 128, BYTES / 512);
        assert!(feed.asked(at(ms), program, Op::Read, extent, 512));
        feed.done(at(ms + 1), program, BYTES);
    }

    pub(super) fn tick(&mut self, ms: u64) {
        self.goals.tick(at(ms), &until, &mut self.orders);
    }

    /// Each disk serves a program in every millisecond of a time.
    fn serve(&mut self, program: u16, times: std::ops::Range<u64>) {
        for ms in times {
            self.request(ms, 0, program);
            self.request(ms, 1, program);
            if ms % 20 == 19 {
                self.tick(ms + 1);
            }
        }
    }

    /// Runs the first program so that a request is always outstanding and a request ends every 10 ms.
    fn slow(&mut self, times: std::ops::Range<u64>) {
        for ms in times {
            if ms % 10 == 0 {
                self.feeds[0].asked(at(ms), 1, Op::Read, Extent::at(ms * 128, 128), 512);
            }
            if ms % 10 == 9 {
                self.feeds[0].done(at(ms), 1, BYTES);
            }
            self.tick(ms);
        }
    }

    fn state(&self, program: usize) -> &'static str {
        self.goals.statuses()[program].state
    }

    /// Windows of a lane in the orders so far: starts and lengths.
    fn windows(&self, lane: u8) -> Vec<(Time, Nanos)> {
        let windows = self.orders.iter().filter_map(|order| match *order {
            GateOrder::Window {
                lane: of,
                from,
                span,
            } if of == Lane(lane) => Some((from, span)),
            _ => None,
        });
        windows.collect()
    }
}

/// The profile of two seconds in which both disks serve a program, with a pause of a second before the last 100 ms.
fn recorded() -> Profile {
    let mut rig = Rig::new(options(&[None, None]));
    rig.serve(1, 0..40);
    rig.goals.start_profile("mail").expect("nothing runs");
    rig.serve(1, 100..2000);
    rig.serve(1, 3000..3101);
    // The last notes are taken at the end.
    rig.goals.stop_profile("mail").expect("there are requests")
}

pub(super) fn known() -> Option<Profiled> {
    static KNOWN: OnceLock<Profiled> = OnceLock::new();
    let known = KNOWN.get_or_init(|| {
        let profile = recorded();
        let profiles = std::slice::from_ref(&profile);
        let trained = Model::train(profiles, None, &TrainOptions::default());
        let model = Arc::new(trained.expect("there are epochs").model);
        Profiled { profile, model }
    });
    Some(known.clone())
}

#[test]
fn a_profile_lasts_from_the_first_request_to_the_end_of_the_last() {
    let profile = recorded();
    assert_eq!((profile.run, profile.compute()), (MS * 3001, MS * 1000));
    let bytes: u64 = profile.rows.iter().map(|row| row.sums.bytes).sum();
    assert_eq!(bytes, 2 * 2001 * BYTES);
    assert_eq!(
        (&*profile.setting.site, profile.setting.servers),
        ("disk0+disk1", 2)
    );
    // It is a text that a configuration can name.
    assert_eq!(Profile::from_text(&profile.to_text()), Ok(profile));
}

#[test]
fn without_a_goal_there_are_no_windows() {
    let mut rig = Rig::new(options(&[known(), None]));
    rig.serve(1, 0..3000);
    rig.serve(2, 3000..3100);
    assert_eq!((rig.orders.len(), rig.state(0)), (0, "none"));
}

#[test]
fn a_goal_counts_from_the_first_request_and_is_met() {
    let mut rig = Rig::new(options(&[known(), None]));
    rig.goals
        .set_goal("mail", Some("2x".parse().unwrap()))
        .unwrap();
    rig.serve(2, 0..1000);
    assert_eq!((rig.orders.len(), rig.state(0)), (0, "waiting"));
    rig.serve(1, 1000..4000);
    assert_eq!(rig.state(0), "running");
    let status = &rig.goals.statuses()[0];
    // 6.002 s from 1 s on.
    assert_eq!(status.left_s, Some(3.002));
    let planned = status.planned.expect("it is planned for");
    assert!(
        planned.bound > Rate(0) && planned.served > planned.required,
        "{planned:?}"
    );
    // The first windows begin with the run. Each period has a window that was sent a period before.
    let windows = rig.windows(1);
    let periods: Vec<u64> = windows
        .iter()
        .map(|(from, _)| from.as_nanos() / 1_000_000_000)
        .collect();
    assert_eq!(periods, [1, 2, 3, 4, 5]);
    rig.tick(7002);
    assert_eq!(rig.state(0), "met");
    let sent = rig.orders.len();
    rig.serve(1, 7002..9000);
    assert_eq!((rig.orders.len(), rig.state(0)), (sent, "met"));
}

#[test]
fn a_run_that_goes_on_after_its_deadline_is_late_and_then_missed() {
    let mut rig = Rig::new(options(&[known(), None]));
    rig.goals
        .set_goal("mail", Some("3100ms".parse().unwrap()))
        .unwrap();
    rig.serve(1, 0..3300);
    assert_eq!(rig.state(0), "late");
    rig.tick(6299);
    assert_eq!(rig.state(0), "late");
    rig.tick(6300);
    let status = &rig.goals.statuses()[0];
    assert_eq!(status.state, "missed");
    assert_eq!(
        status.why.as_deref(),
        Some("the run took 3.3s, 200ms too long")
    );
}

#[test]
fn a_program_that_gets_too_little_is_behind() {
    // Without drift detection the planner assumes that the run is as in its profile.
    let options = || {
        let mut options = options(&[known(), None]);
        options.planning.drift = false;
        options
    };
    let mut rig = Rig::new(options());
    rig.goals
        .set_goal("mail", Some("4s".parse().unwrap()))
        .unwrap();
    let why = |rig: &Rig| {
        let status = &rig.goals.statuses()[0];
        assert_eq!(status.state, "behind");
        status.why.clone().unwrap()
    };
    rig.slow(0..1050);
    assert!(why(&rig).starts_with("set back by "), "{}", why(&rig));
    // The rest takes 2.9 s alone, and 2.8 s are left.
    rig.slow(1050..1200);
    let hopeless = "the goal can no longer be met; set back by ";
    assert!(why(&rig).starts_with(hopeless), "{}", why(&rig));
    rig.tick(3800);
    assert_eq!(rig.state(0), "behind");
    // The program is 7 s behind with less than 7 s left, but the rest takes only 2 s when it runs alone.
    let mut rig = Rig::new(options());
    rig.goals
        .set_goal("mail", Some("20s".parse().unwrap()))
        .unwrap();
    rig.slow(0..14_500);
    assert!(why(&rig).starts_with("set back by "), "{}", why(&rig));
    let lost = rig.goals.statuses()[0].planned.unwrap().lost;
    assert!(lost > MS * 5_500, "{lost}");
}

/// The rest of the profile would meet the goal, but the run's rest takes many times as long.
#[test]
fn a_run_that_leaves_its_profile_says_so_and_that_its_goal_is_impossible_within_two_seconds() {
    let mut rig = Rig::new(options(&[known(), None]));
    rig.goals
        .set_goal("mail", Some("6s".parse().unwrap()))
        .unwrap();
    rig.slow(0..2050);
    let status = &rig.goals.statuses()[0];
    let why = status.why.clone().unwrap();
    assert_eq!(status.state, "behind");
    assert!(why.starts_with("the goal can no longer be met; "), "{why}");
    assert!(
        why.contains("the run has left its profile: its requests take "),
        "{why}"
    );
}

#[test]
fn with_gates_of_constant_rates_a_goal_that_can_no_longer_be_met_is_said_at_once() {
    let mut rig = Rig::new(GoalsOptions {
        gate: gate("average"),
        ..options(&[known(), None])
    });
    rig.goals
        .set_goal("mail", Some("4s".parse().unwrap()))
        .unwrap();
    rig.slow(0..1000);
    assert_eq!(rig.state(0), "running");
    // The rest takes 2.9 s alone, and 2.8 s are left.
    rig.slow(1000..1200);
    let status = &rig.goals.statuses()[0];
    let why = status.why.as_deref();
    assert_eq!(
        (status.state, why),
        ("behind", Some("the goal can no longer be met"))
    );
}

/// Windows of 45 ms each 200 ms are 22.5 % of the time, and the goal of 3.2 s takes 91 %.
#[test]
fn a_promise_has_a_window_in_each_part_of_a_period_and_the_goal_gives_way_which_is_said_at_once() {
    let promising = || {
        let mut options = options(&[known(), None]);
        options.programs[1].p99 = Some(MS * 200);
        options
    };
    assert_eq!(promising().check_p99(), Ok(()));
    let run = |goal: &str| {
        let mut rig = Rig::new(promising());
        rig.goals
            .set_goal("mail", Some(goal.parse().unwrap()))
            .unwrap();
        rig.serve(1, 0..100);
        rig
    };
    let rig = run("3200ms");
    let windows = rig.windows(2);
    assert_eq!(windows[0], (at(0), MS * 45));
    for pair in windows.windows(2) {
        assert_eq!(pair[1].0 - pair[0].0, MS * 200, "{windows:?}");
    }
    let why = rig.goals.statuses()[0].why.clone().unwrap_or_default();
    let said = "the goals demand 91.0 % of the disks' time and the promises of p99 take 22.5 %: the goals give way";
    assert!(why.contains(said), "{why}");
    let why = run("6s").goals.statuses()[0].why.clone();
    assert!(!why.unwrap_or_default().contains("give way"));
    let mut short = promising();
    short.programs[1].p99 = Some(MS * 50);
    let problem = short.check_p99().unwrap_err();
    assert!(
        problem.starts_with("is 50ms; allowed is 91ms or more, with windows of 45ms or longer for 2 programs in a period of 1s. "),
        "{problem}"
    );
    let mut goals = Goals::new(promising(), Vec::new());
    let refused = goals
        .set_goal("web", Some("2x".parse().unwrap()))
        .unwrap_err();
    assert_eq!(refused, RefusedGoal::HasPromise("web".to_owned()));
}

#[test]
fn a_run_that_ends_with_fewer_bytes_than_its_profile_is_not_hopeless() {
    let mut rig = Rig::new(options(&[known(), None]));
    rig.goals
        .set_goal("mail", Some("3100ms".parse().unwrap()))
        .unwrap();
    rig.serve(1, 0..1500);
    for ms in [2000, 3050, 3150] {
        rig.tick(ms);
        let why = rig.goals.statuses()[0].why.clone().unwrap_or_default();
        assert!(!why.contains("no longer"), "{ms} ms: {why}");
    }
}

#[test]
fn a_program_that_asks_nothing_is_not_behind() {
    let mut rig = Rig::new(options(&[known(), None]));
    rig.goals
        .set_goal("mail", Some("10s".parse().unwrap()))
        .unwrap();
    rig.serve(1, 0..1000);
    rig.tick(4000);
    let status = &rig.goals.statuses()[0];
    assert_eq!(status.state, "running");
    assert_eq!(status.why.as_deref(), Some("no request for 3s"));
}

#[test]
fn orders_do_not_depend_on_when_notes_are_taken() {
    let orders = |every: u64| {
        let mut rig = Rig::new(options(&[known(), None]));
        rig.goals
            .set_goal("mail", Some("2x".parse().unwrap()))
            .unwrap();
        for ms in 0..4000 {
            rig.request(ms, 0, 1 + u16::from(ms % 3 == 0));
            if ms % every == every - 1 {
                rig.tick(ms + 1);
            }
        }
        [rig.windows(0), rig.windows(1), rig.windows(2)]
    };
    assert_eq!(orders(1), orders(50));
    assert!(!orders(50)[1].is_empty());
}

#[test]
fn each_plan_assigns_programs_to_lanes_anew() {
    let mut rig = Rig::new(options(&[known(), None]));
    rig.goals
        .set_goal("mail", Some("2x".parse().unwrap()))
        .unwrap();
    rig.serve(1, 0..1000);
    let before = rig.orders.len();
    rig.serve(1, 1000..2000);
    for (of, lane) in [(1, Lane(1)), (2, Lane(2))] {
        let assign = GateOrder::Assign { of, lane };
        assert!(rig.orders[before..].contains(&assign), "{assign:?}");
    }
}

#[test]
fn with_gates_of_constant_rates_a_run_has_a_rate_until_it_is_over() {
    let mut rig = Rig::new(GoalsOptions {
        gate: gate("average"),
        ..options(&[known(), None])
    });
    let goal = "6s".parse().unwrap();
    rig.goals.set_goal("mail", Some(goal)).unwrap();
    rig.serve(2, 0..100);
    let lane = Lane(1);
    let rate = known().unwrap().profile.bytes() / 512 / 2 / 6;
    let assign = GateOrder::Assign { of: 1, lane };
    let clear = GateOrder::Rate { lane, rate: 0 };
    assert_eq!(rig.orders, [assign, clear], "no run has started");
    rig.serve(1, 100..3000);
    assert_eq!(rig.orders[2..], [assign, GateOrder::Rate { lane, rate }]);
    assert_eq!(rig.state(0), "running");
    rig.tick(9500);
    assert_eq!(rig.state(0), "met");
    assert_eq!(rig.orders[4..], [assign, clear]);
}

#[test]
fn what_cannot_be_is_refused_by_program() {
    let mut rig = Rig::new(options(&[known(), None]));
    let mut set = |name: &str, goal: &str| {
        let refused = rig.goals.set_goal(name, Some(goal.parse().unwrap()));
        refused.map_err(|refused| refused.to_string())
    };
    let said = |result: Result<(), String>| result.unwrap_err();
    assert_eq!(
        said(set("mali", "2x")),
        "no program has this name; there are mail, web"
    );
    assert!(said(set("web", "2x")).starts_with("program web: a goal needs a profile; "));
    assert_eq!(
        said(set("mail", "900ms")),
        "program mail: the goal of 900ms is shorter than the compute time, 1s; the least possible is 3.001s"
    );
    assert!(said(set("mail", "2s")).ends_with("the least possible is 3.001s"));
    assert_eq!(set("mail", "by 06:00"), Ok(()));
    assert_eq!(
        rig.goals.stop_profile("web"),
        Err(RefusedGoal::NotRecording("web".to_owned()))
    );
    let refused = rig.goals.start_profile("web");
    assert_eq!(refused, Err(RefusedGoal::HasGoal("mail".to_owned())));
    rig.goals.set_goal("mail", None).unwrap();
    rig.goals.start_profile("web").unwrap();
    assert_eq!(
        rig.goals.start_profile("web"),
        Err(RefusedGoal::Recording("web".to_owned()))
    );
    let refused = rig.goals.set_goal("mail", Some("2x".parse().unwrap()));
    assert_eq!(refused, Err(RefusedGoal::Recording("web".to_owned())));
    let refused = rig.goals.stop_profile("web").unwrap_err();
    assert!(
        refused.to_string().contains("the profile is empty"),
        "{refused}"
    );
}

#[test]
fn a_time_of_day_that_comes_too_soon_is_refused_when_the_run_starts() {
    let mut rig = Rig::new(options(&[known(), None]));
    rig.goals
        .set_goal("mail", Some("by 06:00".parse().unwrap()))
        .unwrap();
    let soon = |_: TimeOfDay| Nanos::from_secs(2);
    rig.request(0, 0, 1);
    rig.goals.tick(at(1), &soon, &mut rig.orders);
    let status = &rig.goals.statuses()[0];
    assert_eq!((status.state, rig.orders.len()), ("refused", 0));
    let why = status.why.as_deref().unwrap();
    assert!(why.ends_with("the least possible is 3.001s"), "{why}");
}

/// The planner of a simulation sees each request when it comes.
#[test]
fn orders_are_those_of_a_planner_that_sees_each_request() {
    let options = || options(&[known(), None]);
    let goal = "2x".parse().unwrap();
    let mut rig = Rig::new(options());
    rig.goals.set_goal("mail", Some(goal)).unwrap();
    let programs = [1, 2].map(|number| Planned { number, goal: None });
    let mut planner = Planner::new(Planning::default(), programs.to_vec(), at(0));
    planner.set_goal(1, Some(options().aim(0, goal, at(0), &until).unwrap()));
    let mut expected = Vec::new();
    for ms in 0..5000 {
        let (server, program) = ((ms % 2) as usize, 1 + u16::from(ms % 5 == 4));
        expected.extend(std::iter::from_fn(|| planner.order(at(ms))));
        let extent = Extent::at(ms * 128, BYTES / 512);
        planner.asked(at(ms), server as u16, program, Op::Read, extent);
        planner.done(at(ms + 1), server as u16, program, BYTES);
        rig.request(ms, server, program);
        if ms % 70 == 69 {
            rig.tick(ms + 1);
        }
    }
    rig.tick(5000);
    let is_window = |order: &&GateOrder| matches!(order, GateOrder::Window { .. });
    let windows: Vec<GateOrder> = expected.iter().filter(is_window).copied().collect();
    let live: Vec<GateOrder> = rig.orders.iter().filter(is_window).copied().collect();
    assert!(windows.len() > 12, "{windows:?}");
    assert_eq!(live[..windows.len()], windows);
}
