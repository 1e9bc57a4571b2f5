//! The gates that serve programs apart: `windows` and `average`.

use crate::gates::Rig;
use crate::rig::{at, config};
use crate::world::arrival;
use headtime_engine::{Arrival, Event, GateOrder, GateSpec, Join, Lane, RequestId};
use headtime_sched::{Class, Directive, Op};
use headtime_units::{Nanos, Time};

const MS: Nanos = Nanos::from_millis(1);

fn window(lane: u8, from: u64, span: u64) -> GateOrder {
    GateOrder::Window {
        lane: Lane(lane),
        from: at(from),
        span: MS * span,
    }
}

/// Programs 1 and 2 have the lanes 1 and 2, with windows of 100 ms each from 100 ms on.
fn rig(depth: u32, gate: &str) -> Rig {
    let mut rig = Rig::new(config(depth), gate, "noop");
    for number in [1, 2] {
        rig.order(GateOrder::Assign {
            of: number,
            lane: Lane(number as u8),
        });
    }
    rig.order(window(1, 100, 100));
    rig.order(window(2, 200, 100));
    rig
}

fn read(rig: &mut Rig, program: u16) -> u64 {
    rig.read_by(program, Class::BEST_EFFORT, 8)
}

/// Lets time pass, with the wake-ups that the engine asks for.
fn pass(rig: &mut Rig, until: Time) {
    while let Some(wake) = rig.engine.next_wakeup().filter(|wake| *wake <= until) {
        rig.now = rig.now.max(wake);
        rig.event(Event::Woke);
    }
    rig.now = until;
}

#[test]
fn before_the_first_window_all_lanes_share_the_drive() {
    let mut rig = rig(3, "windows");
    let sent = [2, 0, 1].map(|program| read(&mut rig, program));
    assert_eq!(rig.sent(), sent);
}

#[test]
fn in_a_window_only_its_lane_goes_and_the_next_one_begins_on_time() {
    let mut rig = rig(2, "windows");
    rig.now = at(180);
    let own = read(&mut rig, 1);
    let other = read(&mut rig, 2);
    assert_eq!(rig.sent(), [own]);
    rig.now = at(185);
    rig.complete(own);
    pass(&mut rig, at(199));
    assert_eq!(rig.sent(), []);
    pass(&mut rig, at(200));
    assert_eq!(rig.sent(), [other]);
}

#[test]
fn a_command_that_would_not_be_done_in_time_does_not_go() {
    let mut rig = rig(2, "windows:guard=15ms:lend=1s");
    rig.now = at(186);
    let late = read(&mut rig, 1);
    assert_eq!(rig.sent(), [], "the window ends in 14 ms");
    pass(&mut rig, at(299));
    assert_eq!(rig.sent(), []);
    pass(&mut rig, at(300));
    assert_eq!(
        rig.sent(),
        [late],
        "the plan is over, and is repeated from 1,100 ms on"
    );
}

#[test]
fn slow_services_widen_the_guard() {
    let mut rig = rig(4, "windows:guard=1ms");
    rig.order(window(1, 1000, 1000));
    rig.now = at(1000);
    for _ in 0..20 {
        let id = read(&mut rig, 1);
        rig.now += MS * 30;
        rig.complete(id);
    }
    rig.now = at(1000 + 1000 - 70);
    // Means of 27 ms or more: two commands fit into 70 ms, a third does not.
    let sent = [read(&mut rig, 1), read(&mut rig, 1)];
    read(&mut rig, 1);
    assert_eq!(rig.sent(), sent);
}

#[test]
fn the_first_command_of_a_window_waits_for_those_of_the_last() {
    let mut rig = rig(2, "windows");
    rig.now = at(110);
    let slow = read(&mut rig, 1);
    pass(&mut rig, at(200));
    let next = read(&mut rig, 2);
    assert_eq!(rig.sent(), [slow]);
    rig.now = at(210);
    rig.complete(slow);
    assert_eq!(rig.sent(), [next]);
}

/// The last command that went to the drive is of the lane whose window begins, and an earlier one is not.
#[test]
fn the_first_command_of_a_window_waits_for_each_of_other_lanes() {
    let mut rig = rig(4, "windows");
    rig.now = at(80);
    let [other, own] = [2, 1].map(|program| read(&mut rig, program));
    pass(&mut rig, at(100));
    let next = read(&mut rig, 1);
    assert_eq!(rig.sent(), [other, own]);
    rig.now = at(105);
    rig.complete(other);
    assert_eq!(rig.sent(), [own, next]);
}

#[test]
fn the_first_service_of_a_lane_widens_the_guard_as_it_is() {
    let mut rig = rig(4, "windows:guard=1ms");
    rig.now = at(100);
    let slow = read(&mut rig, 1);
    rig.now = at(140);
    rig.complete(slow);
    rig.now = at(161);
    let late = read(&mut rig, 1);
    assert_eq!(rig.sent(), [], "a service of 40 ms does not fit into 39 ms");
    rig.now = at(1100);
    rig.event(Event::Woke);
    assert_eq!(rig.sent(), [late]);
}

#[test]
fn a_lane_that_keeps_its_windows_lends_none_until_then() {
    let mut rig = rig(4, "windows:lend=20ms");
    let (lane, until) = (Lane(1), at(150));
    rig.order(GateOrder::Keep { lane, until });
    rig.now = at(110);
    let other = read(&mut rig, 2);
    pass(&mut rig, at(149));
    assert_eq!(rig.sent(), []);
    pass(&mut rig, at(150));
    assert_eq!(rig.sent(), [other]);
}

#[test]
fn a_lane_without_requests_lends_its_window() {
    let mut rig = rig(4, "windows:lend=20ms");
    rig.now = at(110);
    let others = [2, 2, 0].map(|program| read(&mut rig, program));
    pass(&mut rig, at(119));
    assert_eq!(rig.sent(), []);
    pass(&mut rig, at(120));
    assert_eq!(rig.sent(), [others[0]], "one command at a time");
    let own = read(&mut rig, 1);
    assert_eq!(rig.sent(), [others[0]]);
    rig.now = at(125);
    rig.complete(others[0]);
    assert_eq!(rig.sent(), [own]);
    rig.now = at(130);
    rig.complete(own);
    pass(&mut rig, at(150));
    assert_eq!(rig.sent(), [others[1]], "20 ms after its last command");
}

#[test]
fn a_plan_repeats_three_times_and_then_all_share() {
    let mut rig = rig(2, "windows:period=200ms:lend=1s");
    for repeat in 1..=3 {
        pass(&mut rig, at(200 * repeat + 110));
        let other = read(&mut rig, 2);
        let own = read(&mut rig, 1);
        assert_eq!(rig.sent(), [own], "repeat {repeat}");
        rig.complete(own);
        pass(&mut rig, at(200 * repeat + 200));
        rig.complete(other);
    }
    pass(&mut rig, at(910));
    let both = [read(&mut rig, 2), read(&mut rig, 1)];
    assert_eq!(rig.sent(), both);
}

#[test]
fn a_later_order_replaces_what_the_plan_has_from_its_start_on() {
    let mut rig = rig(1, "windows");
    rig.order(window(2, 150, 100));
    pass(&mut rig, at(140));
    let own = read(&mut rig, 2);
    assert_eq!(rig.sent(), []);
    pass(&mut rig, at(150));
    assert_eq!(rig.sent(), [own]);
    rig.complete(own);
    // Windows of one lane without a gap are one.
    rig.order(window(2, 250, 100));
    pass(&mut rig, at(245));
    let own = read(&mut rig, 2);
    assert_eq!(rig.sent(), [own]);
}

#[test]
fn what_waits_moves_with_its_program_to_another_lane() {
    let mut rig = rig(2, "windows");
    rig.now = at(100);
    let moved = read(&mut rig, 2);
    read(&mut rig, 0);
    assert_eq!(rig.sent(), []);
    rig.order(GateOrder::Assign {
        of: 2,
        lane: Lane(1),
    });
    assert_eq!(rig.sent(), [moved]);
}

#[test]
fn lanes_windows_and_rates_outlive_a_swap_of_the_gate() {
    let mut rig = rig(1, "windows");
    rig.now = at(110);
    rig.swap("windows:lend=20ms", "noop");
    read(&mut rig, 2);
    let own = read(&mut rig, 1);
    assert_eq!(rig.sent(), [own], "the window of lane 1");

    let mut rig = Rig::new(config(1), "average", "noop");
    let lane = Lane(1);
    rig.order(GateOrder::Assign { of: 1, lane });
    rig.order(GateOrder::Rate { lane, rate: 8000 });
    rig.now = at(100);
    rig.swap("average", "noop");
    rig.now = at(110);
    let first = read(&mut rig, 0);
    let (_, behind) = (read(&mut rig, 0), read(&mut rig, 1));
    rig.complete(first);
    assert_eq!(rig.sent(), [behind], "the lane with a rate");
}

#[test]
fn the_gate_inside_decides_within_a_window() {
    let mut rig = rig(4, "windows(depth=2)");
    rig.now = at(110);
    let sent = [read(&mut rig, 1), read(&mut rig, 1)];
    read(&mut rig, 1);
    assert_eq!(rig.sent(), sent);
    let spec: GateSpec = "windows(rsd-priority:ranks=1/2)"
        .parse()
        .expect("it is read");
    let error = spec.build(&config(4)).expect_err("it has lanes of its own");
    assert!(
        error.to_string().contains("a gate with queue=single"),
        "{error}"
    );
}

#[test]
fn the_lane_goes_that_is_furthest_behind_its_rate() {
    let mut rig = Rig::new(config(1), "average", "noop");
    for (number, rate) in [(1, 8000), (2, 16_000)] {
        let lane = Lane(number as u8);
        rig.order(GateOrder::Assign { of: number, lane });
        rig.order(GateOrder::Rate { lane, rate });
    }
    // Each program always has a request of 8 sectors. The drive serves one request in 0.2 ms, and the orders promise
    // 0.6 ms of each millisecond.
    let mut served = [0; 3];
    let mut waiting = [0, 1, 2].map(|program| read(&mut rig, program));
    for _ in 0..5000 {
        let sent = rig.sent()[0];
        rig.now += Nanos::from_micros(200);
        let program = waiting.iter().position(|id| *id == sent).expect("it waits");
        served[program] += 1;
        rig.complete(sent);
        waiting[program] = read(&mut rig, program as u16);
    }
    assert_eq!(served, [2000, 1000, 2000]);
}

#[test]
fn a_lane_that_asked_for_nothing_has_no_more_than_a_second_of_its_rate_to_catch_up() {
    let mut rig = Rig::new(config(1), "average", "noop");
    let lane = Lane(1);
    rig.order(GateOrder::Assign { of: 1, lane });
    rig.order(GateOrder::Rate { lane, rate: 8000 });
    rig.now = at(10_000);
    let mut order = Vec::new();
    let mut waiting = [0, 1].map(|program| read(&mut rig, program));
    for _ in 0..1200 {
        let sent = rig.sent()[0];
        let program = waiting.iter().position(|id| *id == sent).expect("it waits");
        order.push(program);
        rig.now += Nanos::from_micros(100);
        waiting[program] = read(&mut rig, program as u16);
        rig.complete(sent);
    }
    // The first was sent before the other came. Of 1 s behind, each request takes 1 ms less the 0.1 ms of its service.
    let behind = order[1..]
        .iter()
        .take_while(|program| **program == 1)
        .count();
    assert_eq!(behind, 1112);
}

/// An inner gate that decides by chosen requests once waited for ever for an empty lane. Expected: the lane that the
/// gate asks chooses a request.
#[test]
fn a_gate_inside_sees_what_the_lane_chooses_that_may_go() {
    let mut rig = rig(2, "windows(rsd-priority:queue=single:ranks=0)");
    let first = read(&mut rig, 0);
    rig.complete(first);
    let next = read(&mut rig, 2);
    assert_eq!(rig.sent(), [next]);
}

#[test]
fn an_urgent_request_goes_first_in_the_window_of_another_lane() {
    let mut rig = rig(1, "windows");
    rig.now = at(110);
    let first = read(&mut rig, 1);
    let own = read(&mut rig, 1);
    let urgent = rig.read_by(2, Class::REAL_TIME, 8);
    rig.complete(first);
    assert_eq!(rig.sent(), [urgent]);
    rig.complete(urgent);
    assert_eq!(rig.sent(), [own]);
    // Where no other request would be done in time, too.
    rig.now = at(199);
    rig.complete(own);
    let urgent = rig.read_by(0, Class::REAL_TIME, 8);
    assert_eq!(rig.sent(), [urgent]);
}

#[test]
fn an_urgent_command_in_the_drive_keeps_no_window_closed() {
    let mut rig = rig(2, "windows");
    rig.now = at(110);
    let urgent = rig.read_by(2, Class::REAL_TIME, 8);
    let own = read(&mut rig, 1);
    assert_eq!(rig.sent(), [urgent, own]);
}

/// A gap read took the last room of a window, and its request waited for the next window.
#[test]
fn a_request_follows_the_prefix_before_it_at_the_end_of_a_window() {
    let mut rig = rig(1, "windows(rsd-priority:queue=single:ranks=0)");
    rig.now = at(183);
    let first = read(&mut rig, 1);
    let next = read(&mut rig, 1);
    rig.event(Event::Joined {
        arrival: Arrival {
            id: RequestId::Background(1),
            class: Class::IDLE,
            ..arrival(0, Op::Read, 5_000, 8, 0)
        },
        lane: Lane(1),
        join: Join::Before,
    });
    rig.now = at(184);
    rig.complete(first);
    assert_eq!(rig.sent(), [1_000_001]);
    rig.now = at(187);
    rig.complete(1_000_001);
    assert_eq!(rig.sent(), [next]);
}

/// A slice of an array's coordinator blocked urgent requests, and the windows of other programs.
#[test]
fn a_dedication_concerns_the_lanes_of_marked_requests_alone() {
    let mut rig = Rig::new(config(1), "rsd-priority:ranks=0/0", "stream(noop)");
    let first = read(&mut rig, 0);
    let marked = read(&mut rig, 0);
    rig.event(Event::Directed(Directive::Dedicate { until: at(100) }));
    rig.event(Event::Directed(Directive::Mark(RequestId::Client(marked))));
    let urgent = rig.read_by(0, Class::REAL_TIME, 8);
    let other = read(&mut rig, 0);
    rig.complete(first);
    assert_eq!(rig.sent(), [urgent]);
    rig.complete(urgent);
    assert_eq!(rig.sent(), [marked]);
    rig.complete(marked);
    assert_eq!(
        rig.sent(),
        [],
        "the lane of the stream waits for its next request"
    );
    rig.event(Event::Directed(Directive::Release));
    assert_eq!(rig.sent(), [other]);
}
