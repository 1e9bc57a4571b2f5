//! Coordinators by exchanges at times that the tests choose; texts cross as they do over sockets.

use super::super::feed::Feed;
use super::super::tests::{BYTES, MS, Rig, at, gate, known, options, until};
use super::super::{GoalsOptions, RefusedGoal, Seeks};
use super::*;
use headtime_engine::Lane;
use headtime_sched::{Op, ServiceCurve};
use headtime_units::{Extent, Sectors};
use proptest::prelude::*;

/// A server, whose clock is behind the coordinator's.
struct Server {
    rig: Rig,
    behind: Nanos,
}

struct Site {
    servers: Vec<Server>,
    coordinator: Coordinator,
}

fn seeks() -> Seeks {
    let points = [
        (0, 1_000_000),
        (100_000, 4_000_000),
        (10_000_000, 12_000_000),
    ];
    let points = points.map(|(at, time)| (Sectors::new(at), Nanos::from_nanos(time)));
    let curve = ServiceCurve::new(points.to_vec(), ServiceCurve::BACKWARD).unwrap();
    Seeks::new(Arc::new(curve), 1)
}

/// A server of these disks, with two programs that have no profiles.
fn server(disks: &[&str], behind: u64) -> Server {
    let disks = disks.iter().map(|disk| (*disk).to_owned()).collect();
    let options = GoalsOptions {
        programs: options(&[None, None]).programs,
        ..GoalsOptions::new(disks, &gate("windows"), Some(seeks()))
    };
    Server {
        rig: Rig::new(options),
        behind: MS * behind,
    }
}

impl Server {
    fn time(&self, ms: u64) -> Time {
        Time::ZERO + at(ms).saturating_since(Time::ZERO + self.behind)
    }

    /// Answers a question, and passes orders on.
    fn answer(&mut self, ms: u64, question: &Question) -> Result<ServerAnswer, RefusedGoal> {
        let now = self.time(ms);
        let question = Question::from_text(&question.to_text()).unwrap();
        let answer = self.rig.goals.coordinate(now, question)?;
        self.rig.goals.tick(now, &until, &mut self.rig.orders);
        Ok(ServerAnswer::from_text(&answer.to_text()).unwrap())
    }

    /// A request that the server needs a millisecond for.
    fn request(&mut self, ms: u64, program: u16, start: u64) {
        let times = (self.time(ms), self.time(ms + 1));
        let feed: &mut Feed = &mut self.rig.feeds[0];
        let extent = Extent::at(start, BYTES / 512);
        assert!(feed.asked(times.0, program, Op::Read, extent, 512));
        feed.done(times.1, program, BYTES);
    }

    fn windows(&self) -> Vec<(u8, u64)> {
        let windows = self.rig.orders.iter().filter_map(|order| match order {
            GateOrder::Window { lane, from, .. } => Some((lane.0, from.as_nanos() / 1_000_000)),
            _ => None,
        });
        windows.collect()
    }
}

impl Site {
    /// A coordinator that knows the disks and programs of all servers. The first program has a goal.
    fn new(mut servers: Vec<Server>, goal: &str) -> Site {
        let first = Coordinator::first_question(7);
        let abouts = servers.iter_mut().zip(0..).map(|(server, number)| {
            let answer = server.answer(0, &first).unwrap();
            (format!("{number}.sock"), answer.started.unwrap())
        });
        let abouts: Vec<(String, About)> = abouts.collect();
        let disks = abouts.iter().flat_map(|(_, about)| about.disks.clone());
        let mut options = GoalsOptions {
            programs: options(&[known(), None]).programs,
            ..GoalsOptions::new(disks.collect(), &abouts[0].1.gate, abouts[0].1.seek.clone())
        };
        options.programs[0].goal = Some(goal.parse().unwrap());
        let goals = Arc::new(Mutex::new(Goals::new(options, Vec::new())));
        let coordinator = Coordinator::new(7, abouts, goals);
        Site {
            servers,
            coordinator,
        }
    }

    /// Makes an exchange that takes no time. The answer is lost unless `comes` is true.
    fn exchange(&mut self, server: usize, ms: u64, comes: bool) {
        let question = self.coordinator.question(server);
        let answer = self.servers[server].answer(ms, &question);
        let answer = match comes {
            true => answer.map_err(|refused| NoAnswer::Refused(refused.to_string())),
            false => Err(NoAnswer::Silent("lost".to_owned())),
        };
        self.coordinator.answered(server, at(ms), at(ms), answer);
        self.coordinator.tick(at(ms), &until);
    }

    fn fails(&mut self, server: usize, ms: u64) {
        self.coordinator.question(server);
        let why = NoAnswer::Silent("no server listens there".to_owned());
        self.coordinator.answered(server, at(ms), at(ms), Err(why));
        self.coordinator.tick(at(ms), &until);
    }

    fn status(&self, server: usize, ms: u64) -> ServerStatus {
        self.coordinator.statuses(at(ms)).swap_remove(server)
    }
}

/// Orders without assignments that change nothing, which come again with each plan, and without windows that come again after an
/// answer was lost.
fn effective(orders: &[GateOrder]) -> Vec<GateOrder> {
    let mut effective: Vec<GateOrder> = Vec::new();
    for order in orders {
        let same = |other: &&GateOrder| match (*order, **other) {
            (GateOrder::Assign { of, .. }, GateOrder::Assign { of: other, .. }) => of == other,
            (order, other) => order == other,
        };
        if effective.iter().rev().find(same) != Some(order) {
            effective.push(*order);
        }
    }
    effective
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// A pause in ms, a place, a program, and true if an exchange follows, whose answer may be lost.
    #[test]
    fn one_server_without_an_offset_gets_the_orders_of_a_planner_within(
        requests in prop::collection::vec((1_u64..30, 0_u64..1_000_000, 0_u16..3, any::<bool>(), any::<bool>()), 100..300),
        loses in any::<bool>(),
    ) {
        let disks = ["disk0", "disk1"];
        let mut site = Site::new(vec![server(&disks, 0)], "2x");
        let mut own = Rig::new(GoalsOptions {
            seek: Some(seeks()),
            ..options(&[known(), None])
        });
        own.goals.set_goal("mail", Some("2x".parse().unwrap())).unwrap();
        site.exchange(0, 0, true);
        let (mut ms, mut lost) = (0, false);
        for (pause, place, program, looks, comes) in requests {
            ms += pause;
            let disk = usize::from(place % 2 == 1);
            for feed in [&mut own.feeds[disk], &mut site.servers[0].rig.feeds[disk]] {
                prop_assert!(feed.asked(at(ms), program, Op::Read, Extent::at(place, BYTES / 512), 512));
                feed.done(at(ms + 1), program, BYTES);
            }
            ms += 1;
            if looks {
                own.tick(ms);
                lost = loses && !comes && !lost;
                site.exchange(0, ms, !lost);
            }
        }
        for _ in 0..2 {
            own.tick(ms);
            site.exchange(0, ms, true);
        }
        let ordered = &site.servers[0].rig.orders;
        prop_assert!(effective(ordered).len() > 5, "{ordered:?}");
        prop_assert_eq!(effective(ordered), effective(&own.orders));
    }
}

#[test]
fn a_server_that_dies_holds_nobody_up_and_gets_the_plan_when_it_is_back() {
    let behind = [20_000, 40_000];
    let servers = behind.map(|behind| server(&["disk0"], behind));
    let mut site = Site::new(servers.into(), "20s");
    // The clocks of servers have run for a while.
    let start = 50_000;
    let mut restarted = None;
    for ms in start..start + 14_000 {
        let since = ms - start;
        let is_dead = (3_000..9_000).contains(&since);
        if since == 9_000 {
            site.servers[1] = server(&["disk0"], ms - 5);
            restarted = Some(ms);
        }
        for (nth, server) in site.servers.iter_mut().enumerate() {
            if nth != 1 || !is_dead {
                server.request(ms, 1 + (ms % 3 == 0) as u16, ms * 128);
            }
        }
        if since == 2_999 {
            // The server dies with this request.
            let feed = &mut site.servers[1].rig.feeds[0];
            assert!(feed.asked(at(ms + 1 - 40_000), 1, Op::Read, Extent::at(1, 8), 512));
        }
        if ms % 50 == 49 {
            for nth in 0..2 {
                match nth == 1 && is_dead {
                    true => site.fails(nth, ms + 1),
                    false => site.exchange(nth, ms + 1, true),
                }
            }
        }
        if since == 5_000 {
            let status = site.status(1, ms + 1);
            assert!(!status.joined && status.why.as_deref() == Some("no server listens there"));
            assert_eq!(status.silent, Some(MS * 2001));
        }
    }
    let windows = site.servers[0].windows().into_iter();
    let own: Vec<u64> = windows
        .filter(|(lane, _)| *lane == 1)
        .map(|(_, from)| from + 20_000)
        .collect();
    assert_eq!(own.len(), 15, "{own:?}");
    // Each period has a window of the first lane in the server's time.
    let periods: Vec<u64> = own
        .iter()
        .map(|from| (from - own[0] / 50 * 50) / 1_000)
        .collect();
    assert_eq!(periods, (0..15).collect::<Vec<u64>>(), "{own:?}");
    // The plan in force came with the second question.
    let (restarted, windows) = (restarted.unwrap(), site.servers[1].windows());
    let first = windows.iter().find(|(lane, _)| *lane == 1).unwrap().1 + restarted - 5;
    assert!(first < restarted + 1_000, "{first} {restarted}");
    assert!(site.servers[1].rig.orders.contains(&GateOrder::Assign {
        of: 2,
        lane: Lane(2)
    }));
    let status = site.status(1, start + 14_000);
    assert_eq!((status.joined, status.why), (true, None));
    let (nanos, error) = status.offset.unwrap();
    assert_eq!(nanos, -i64::try_from((restarted - 5) * 1_000_000).unwrap());
    assert!(error < MS);
    // The request that was lost with the server does not prevent the end of the run.
    let goals = site.coordinator.goals();
    let mut goals = goals.lock().unwrap();
    goals.tick(at(start + 24_000), &until, &mut Vec::new());
    assert_eq!(goals.statuses()[0].state, "met");
}

#[test]
fn a_server_that_cannot_be_reached_for_a_while_loses_no_request_and_no_order() {
    let mut site = Site::new(vec![server(&["disk0"], 0), server(&["disk0"], 0)], "20s");
    for ms in 0..6_000 {
        for server in &mut site.servers {
            server.request(ms, 1, ms * 128);
            server.rig.tick(ms + 1);
        }
        match (ms % 50 == 49, (1_000..3_500).contains(&ms)) {
            (false, _) => {}
            (true, is_away) => {
                site.exchange(0, ms + 1, true);
                match is_away {
                    true => site.fails(1, ms + 1),
                    false => site.exchange(1, ms + 1, true),
                }
            }
        }
    }
    let orders = [0, 1].map(|nth| effective(&site.servers[nth].rig.orders));
    let windows = |orders: &[GateOrder]| {
        orders
            .iter()
            .filter(|order| matches!(order, GateOrder::Window { .. }))
            .count()
    };
    assert!(windows(&orders[0]) > 10, "{:?}", orders[0]);
    // Windows that ended before the server was back are missing.
    assert!(windows(&orders[1]) + 6 >= windows(&orders[0]));
    assert_eq!(orders[1].last(), orders[0].last());
    let remote = &site.coordinator.servers[1];
    let session = remote.session.as_ref().unwrap();
    // Both notes of all requests but the first 50, which came before the session.
    assert_eq!((remote.number, session.taken), (1, 2 * 5_950));
}

#[test]
fn a_session_ends_three_periods_after_the_last_question() {
    let mut server = server(&["disk0"], 0);
    let ask = |coordinator, session, number| Question {
        session,
        number,
        ..Coordinator::first_question(coordinator)
    };
    assert!(server.answer(0, &ask(1, 1, 1)).unwrap().started.is_some());
    let refused = server.answer(10, &ask(2, 1, 1)).unwrap_err();
    assert_eq!(refused, RefusedGoal::Coordinated(MS * 3000));
    let set = |server: &mut Server| server.rig.goals.set_goal("mail", None);
    assert_eq!(set(&mut server), Err(RefusedGoal::Coordinated(MS * 3000)));
    assert!(server.rig.goals.start_profile("mail").is_err());
    let why = server.rig.goals.statuses()[0].why.clone().unwrap();
    assert!(why.contains("a coordinator plans the windows"), "{why}");
    // An old question that comes late orders nothing.
    assert!(server.answer(20, &ask(1, 1, 3)).unwrap().started.is_none());
    let refused = server.answer(20, &ask(1, 1, 2)).unwrap_err().to_string();
    assert_eq!(refused, "question 2 was overtaken by question 3");
    // The coordinator starts another session.
    assert!(server.answer(30, &ask(1, 2, 4)).unwrap().started.is_some());
    server.rig.tick(3_029);
    assert!(set(&mut server).is_err());
    server.rig.tick(3_030);
    assert_eq!(set(&mut server), Ok(()));
    assert!(
        server
            .answer(3_040, &ask(2, 9, 1))
            .unwrap()
            .started
            .is_some()
    );
}

#[test]
fn a_server_with_a_planner_of_its_own_or_without_windows_is_not_coordinated() {
    let first = Coordinator::first_question(1);
    let mut own = Server {
        rig: Rig::new(options(&[known(), None])),
        behind: Nanos::ZERO,
    };
    own.rig
        .goals
        .set_goal("mail", Some("2x".parse().unwrap()))
        .unwrap();
    let refused = own.answer(1, &first).unwrap_err().to_string();
    assert!(refused.starts_with("program mail has a goal of this server; clear it (`headtime control SOCKET qos goal mail none`)"), "{refused}");
    own.rig.goals.set_goal("mail", None).unwrap();
    own.rig.goals.start_profile("web").unwrap();
    let refused = own.answer(1, &first).unwrap_err().to_string();
    assert!(
        refused.starts_with("the profile of program web is recorded by this server; stop that"),
        "{refused}"
    );
    let rates = GoalsOptions {
        gate: gate("average"),
        ..options(&[None, None])
    };
    let rig = Rig::new(rates);
    let refused = Server {
        rig,
        behind: Nanos::ZERO,
    }
    .answer(1, &first)
    .unwrap_err()
    .to_string();
    assert!(
        refused.contains("which has no windows; give gate = \"windows\""),
        "{refused}"
    );
}

#[test]
fn servers_that_have_no_plan_together_are_named() {
    let about = |gate_text: &str, programs: &[&str]| About {
        gate: gate(gate_text),
        disks: vec!["disk0".to_owned()],
        programs: programs.iter().map(|name| (*name).to_owned()).collect(),
        seek: None,
    };
    let both = ["mail".to_owned(), "web".to_owned()];
    let check = |other: About| {
        let servers = [
            ("a.sock".to_owned(), about("windows", &["mail", "web"])),
            ("b.sock".to_owned(), other),
        ];
        check_alike(&servers, &both)
    };
    assert_eq!(check(about("windows", &["mail", "web"])), Ok(()));
    let problem = check(about("windows:period=500ms", &["mail", "web"])).unwrap_err();
    assert!(problem.starts_with("b.sock: the gate of its disks is windows(depth):period=500ms, and a.sock has windows(depth); give all"), "{problem}");
    for (gate_text, problem) in [
        (
            "average",
            "b.sock: the gate of its disks is average, which has no windows; give gate = \"windows\"",
        ),
        (
            "windows:lanes=2",
            "b.sock: the gate of its disks is windows(depth):lanes=2: 2 programs take 3 lanes",
        ),
        (
            "windows:by=export",
            "b.sock: the gate of its disks is windows(depth):by=export: give gate",
        ),
        (
            "windows:period=10ms",
            "b.sock: the gate of its disks is windows(depth):period=10ms: its period is 10ms; allowed is 100ms or more",
        ),
    ] {
        let found = check(about(gate_text, &["mail", "web"])).unwrap_err();
        assert!(found.starts_with(problem), "{found}");
        let alone = [("b.sock".to_owned(), about(gate_text, &["mail", "web"]))];
        let found = check_alike(&alone, &both).unwrap_err();
        assert!(found.starts_with(problem), "{found}");
    }
    for count in [0, 65_535] {
        let mut other = about("windows", &["mail", "web"]);
        other.disks = vec!["disk".to_owned(); count];
        let found = check(other).unwrap_err();
        assert!(
            found.starts_with(&format!("b.sock: it has {count} disks with programs")),
            "{found}"
        );
    }
    for programs in [&["mail"][..], &["web", "mail"], &["mail", "web", "files"]] {
        let problem = check(about("windows", programs)).unwrap_err();
        assert!(
            problem.starts_with("b.sock: its programs are ")
                && problem.contains("mail, web; change [[qos.program]]"),
            "{problem}"
        );
    }
}

#[test]
fn answers_that_cannot_be_are_refused_and_a_new_session_starts() {
    let mut site = Site::new(vec![server(&["disk0"], 0)], "20s");
    site.exchange(0, 10, true);
    assert!(site.status(0, 10).joined);
    let note = |disk, program| {
        let what = What::Done { bytes: 1 };
        (
            disk,
            Note {
                at: at(1),
                program,
                what,
            },
        )
    };
    for (first, notes) in [
        (5, Vec::new()),
        (0, vec![note(1, 1)]),
        (0, vec![note(0, 3)]),
    ] {
        let question = site.coordinator.question(0);
        let mut answer = site.servers[0].answer(20, &question).unwrap();
        (answer.first, answer.notes) = (first, notes);
        site.coordinator.answered(0, at(20), at(20), Ok(answer));
        let why = site.status(0, 20).why.unwrap();
        assert!(
            why.starts_with("notes are missing, or of disks or programs that it does not have"),
            "{why}"
        );
        let session = question.session;
        site.exchange(0, 30, true);
        assert!(site.status(0, 30).joined && site.coordinator.question(0).session == session + 1);
    }
    // After a restart the server is another one.
    site.servers[0] = server(&["disk7"], 0);
    site.exchange(0, 40, true);
    let why = site.status(0, 40).why.unwrap();
    assert!(
        why.starts_with("its disks, gate or programs are not those from the start"),
        "{why}"
    );
}

#[test]
fn a_connection_that_is_too_slow_for_the_guard_is_told_of() {
    let mut site = Site::new(vec![server(&["disk0"], 0)], "20s");
    let question = site.coordinator.question(0);
    let answer = site.servers[0].answer(100, &question).unwrap();
    site.coordinator.answered(0, at(80), at(120), Ok(answer));
    let status = site.status(0, 120);
    assert_eq!((status.joined, status.offset), (true, Some((0, MS * 20))));
    assert!(
        status
            .why
            .unwrap()
            .starts_with("its clock is known to 20ms only")
    );
}
