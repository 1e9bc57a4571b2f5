//! Tests of what is said of promises.

use super::*;
use headtime_sched::{Op, Request, Surprise};

const SECOND: Nanos = Nanos::from_secs(1);

fn promise() -> Promise {
    let promised = Promised {
        finish_within: Some(SECOND.saturating_mul(100)),
        passed: Nanos::ZERO,
        p99: None,
        cycle: SECOND.saturating_mul(86_400),
        patience: Nanos::from_millis(2),
    };
    Promise::new(promised, Some((Nanos::from_millis(8), 1000.0)))
}

#[test]
fn a_pause_between_outright_reads_is_that_of_the_share_of_the_last_look() {
    let mut promise = promise();
    let ended = Time::ZERO + SECOND;
    let at = |millis| ended + Nanos::from_millis(millis);
    promise.last_outright = (Nanos::from_millis(10), ended);
    assert!(!promise.is_due(at(1_000_000)), "they have no share");
    promise.ways.share = 0.5;
    assert!(!promise.is_due(at(9)) && promise.is_due(at(10)));
    promise.ways.share = 0.1;
    assert!(!promise.is_due(at(89)) && promise.is_due(at(90)));
}

#[test]
fn the_bound_of_the_price_rises_only_while_it_binds() {
    let mut promise = promise();
    promise.promised.p99 = Some(0.05);
    (promise.bound, promise.price) = (0.1, 0.0);
    for _ in 0..REQUESTS_LEAST {
        promise.shadow.with.add(SECOND);
        promise.shadow.without.add(SECOND);
    }
    let mut bound = |price| {
        promise.price = price;
        promise.bound_price();
        promise.bound
    };
    assert_eq!(
        [bound(0.0), bound(0.09)],
        [0.1, 0.1],
        "nobody asks for more"
    );
    assert!(bound(0.1) > 0.1);
    for _ in 0..100_000 {
        bound(f64::INFINITY);
    }
    assert_eq!(bound(f64::INFINITY), PRICE_MOST);
}

#[test]
fn what_became_of_a_date_is_said_when_all_has_been_read_and_once() {
    for (seconds, verdict) in [(99, Verdict::Holds), (101, Verdict::Late)] {
        let mut promise = promise();
        promise.look(
            Time::ZERO,
            false,
            QueueLength::Short,
            0,
            Sweeping::default(),
            (10, 10),
        );
        promise.end(Time::ZERO + SECOND.saturating_mul(seconds));
        // Somebody reads again what could not be read.
        promise.end(Time::ZERO + SECOND.saturating_mul(200));
        let last = promise.changes().last().map(|(_, verdict)| *verdict);
        assert_eq!((promise.changes().len(), last), (2, Some(verdict)));
    }
}

fn sweeping() -> Sweeping {
    Sweeping {
        blocks: 100.0,
        least: 50.0,
        each: 0.01,
    }
}

/// Four pieces from a sector on, each of so many sectors and blocks, so far apart.
fn pieces(at: u64, (len, blocks): (u64, u64), apart: u64) -> impl Iterator<Item = (u64, Extent)> {
    (0..4).map(move |piece| (blocks, Extent::at(at + piece * apart, len)))
}

#[test]
fn a_forecast_goes_by_all_places_alike_and_not_by_that_with_most_pieces() {
    let promise = promise();
    // Of a disk of two halves one is whole; on the other one a block in 100,000 sectors is left, which takes a turn and more.
    let whole = || (Lba::ZERO, pieces(0, (2_000, 16), 2_000));
    let rests = || {
        let at = 50_000_000;
        let first = at + 100_000 - 125;
        (Lba::new(at), pieces(first, (125, 1), 100_000))
    };
    // In 100,000 sectors each: 800 blocks in 110 turns, and one in 1.1375.
    let seconds = |turns: f64| turns * 0.008;
    let expected = [
        (800.0, 110.0, 50.0),
        (1.0, 1.1375, 1.0),
        (801.0, 111.1375, 51.0),
    ];
    let aheads = [
        promise.ahead([whole()].into_iter()),
        promise.ahead([rests()].into_iter()),
        promise.ahead([whole(), rests()].into_iter()),
    ];
    for (ahead, (blocks, turns, reads)) in aheads.into_iter().zip(expected) {
        let ahead = ahead.expect("something is left");
        let near = |is: f64, expected: f64| (is / expected - 1.0).abs() < 1e-9;
        assert!(near(ahead.blocks, blocks / seconds(turns)), "{ahead:?}");
        assert!(near(ahead.each, seconds(turns) / reads), "{ahead:?}");
    }
    // Where nothing comes any more there is only the rest.
    let nothing = (Lba::ZERO, core::iter::empty::<(u64, Extent)>());
    assert_eq!(promise.ahead([nothing].into_iter()), None);
}

/// Each request follows a gap read, takes 10 ms, and is late by a turn of 8 ms if the gap read was.
#[test]
fn a_late_gap_read_lengthens_what_clients_wait_for_and_not_what_they_would_wait_for() {
    for (surprise, would) in [
        (Surprise::Turns(1), 10),
        (Surprise::Destaging(1), 10),
        (Surprise::None, 18),
        (Surprise::Turns(-1), 18),
    ] {
        let mut promise = promise();
        for nth in 0..1_000 {
            let sent = Time::ZERO + SECOND.saturating_mul(nth);
            let done = |surprise| Finished {
                id: nth,
                outcome: Outcome::Done,
                request: Request::new((), Op::Read, Extent::at(8 * nth, 8), sent),
                issued: sent,
                surprise: Some(surprise),
            };
            promise.arrives(sent, Origin::default());
            promise.pick(&done(surprise));
            promise.seen(sent + Nanos::from_millis(18), &done(Surprise::None));
        }
        let waits = promise.waits();
        let near = |is: Nanos, millis: f64| (is.as_millis_f64() / millis - 1.0).abs() < 0.02;
        assert!(near(waits.p99, 18.0), "{surprise:?}: {waits:?}");
        assert!(
            near(waits.p99_without, f64::from(would)),
            "{surprise:?}: {waits:?}"
        );
    }
}

/// Looks once a second, from a second to another one, at a disk that nobody uses.
fn looks(promise: &mut Promise, seconds: std::ops::Range<u64>, left: u64) {
    for second in seconds {
        let now = Time::ZERO + SECOND.saturating_mul(second);
        promise.look(now, false, QueueLength::Short, 0, sweeping(), (left, 100));
    }
}

fn said(promise: &Promise) -> Vec<(u64, Verdict)> {
    let changes = promise.changes().iter();
    let changes = changes.map(|(at, verdict)| (at.as_nanos() / 1_000_000_000, *verdict));
    changes.collect()
}

#[test]
fn what_clients_wait_for_is_not_known_before_a_cycle_or_half_of_the_time() {
    for (cycle, knows) in [(20, 20), (80, 50)] {
        let mut promise = promise();
        promise.change(Promised {
            p99: Some(0.05),
            cycle: SECOND.saturating_mul(cycle),
            ..promise.promised
        });
        looks(&mut promise, 0..60, 10);
        let expected = [(0, Verdict::Unknown), (knows, Verdict::Holds)];
        assert_eq!(said(&promise), expected);
    }
    // That the date cannot hold is known before.
    let mut promise = promise();
    promise.change(Promised {
        p99: Some(0.05),
        ..promise.promised
    });
    looks(&mut promise, 0..4, 100_000);
    assert_eq!(said(&promise), [(0, Verdict::Unknown), (1, Verdict::Late)]);
    // Alone it takes a whole cycle.
    promise.change(Promised {
        finish_within: None,
        p99: Some(0.05),
        cycle: SECOND.saturating_mul(20),
        ..promise.promised
    });
    looks(&mut promise, 4..60, 10);
    let last = [(4, Verdict::Unknown), (20, Verdict::Holds)];
    assert_eq!(said(&promise)[2..], last);
}

#[test]
fn a_date_of_which_a_part_is_over_is_as_near_as_that() {
    let mut promise = promise();
    promise.change(Promised {
        passed: SECOND.saturating_mul(70),
        ..promise.promised
    });
    looks(&mut promise, 0..2, 10);
    assert_eq!(promise.due, Time::ZERO + SECOND.saturating_mul(30));
    // Of thirty seconds it learns for a third of one.
    assert_eq!(said(&promise)[1], (1, Verdict::Holds));
    promise.end(Time::ZERO + SECOND.saturating_mul(31));
    assert_eq!(said(&promise)[2], (31, Verdict::Late));
    // One that is over is late at once, and so it stays.
    let mut promise = self::promise();
    promise.change(Promised {
        passed: SECOND.saturating_mul(1_000),
        ..promise.promised
    });
    looks(&mut promise, 0..100, 10);
    assert_eq!(said(&promise), [(0, Verdict::Unknown), (1, Verdict::Late)]);
    assert!(promise.outlook().ends.is_some());
}

#[test]
fn other_promises_are_known_nothing_of_until_the_next_look_and_what_was_seen_counts() {
    let mut promise = promise();
    looks(&mut promise, 0..10, 1_000);
    assert_eq!(said(&promise), [(0, Verdict::Unknown), (1, Verdict::Holds)]);
    let before = promise.plan.clone();
    promise.change(Promised {
        finish_within: Some(SECOND.saturating_mul(5)),
        ..promise.promised
    });
    assert_eq!(promise.plan, before);
    looks(&mut promise, 10..12, 1_000);
    let now = [(10, Verdict::Unknown), (10, Verdict::Late)];
    assert_eq!(said(&promise)[2..], now);
    // The time is gone, and there are still some to be read.
    assert_eq!(promise.due, Time::ZERO + SECOND.saturating_mul(15));
    let outlook = promise.outlook();
    assert_eq!(outlook.verdict, Verdict::Late);
    assert!(outlook.ends.is_some_and(|ends| ends > promise.due));
}

#[test]
fn a_date_that_passes_is_said_at_once_and_also_when_nothing_is_left_to_be_asked_for() {
    let mut promise = promise();
    let at = |seconds| Time::ZERO + SECOND.saturating_mul(seconds);
    assert_eq!(promise.due(), None, "nobody has heard of it");
    looks(&mut promise, 0..50, 10);
    let due = promise.due().expect("it is to come");
    assert_eq!(due, at(100) + Nanos::from_nanos(1));
    assert!(!promise.overdue(at(100)));
    assert_eq!(said(&promise).len(), 2);
    assert!(promise.overdue(due) && !promise.overdue(at(101)));
    assert_eq!(said(&promise)[2], (100, Verdict::Late));
    assert_eq!(promise.due(), None);
    promise.end(at(110));
    assert_eq!(said(&promise).len(), 3, "it stays");
    // A look says it as soon.
    let mut promise = self::promise();
    looks(&mut promise, 0..50, 10);
    looks(&mut promise, 101..102, 10);
    assert_eq!(said(&promise)[2], (101, Verdict::Late));
    // Who has ended in time is not late later.
    let mut promise = self::promise();
    looks(&mut promise, 0..50, 10);
    promise.end(at(60));
    assert!(promise.due().is_none() && !promise.overdue(at(200)));
    assert_eq!(promise.outlook().verdict, Verdict::Holds);
}

#[test]
fn of_a_drive_of_which_nothing_is_known_nothing_is_said_before_a_few_reads_or_the_date() {
    let mut promise = Promise::new(self::promise().promised, None);
    looks(&mut promise, 0..90, 100_000);
    assert_eq!(said(&promise), [(0, Verdict::Unknown)]);
    assert!(promise.outlook().ends.is_none());
    looks(&mut promise, 90..102, 100_000);
    assert_eq!(said(&promise)[1], (101, Verdict::Late));
}

#[test]
fn what_was_over_when_it_was_heard_of_is_a_part_of_the_half_after_which_the_p99_counts() {
    let mut promise = promise();
    promise.change(Promised {
        passed: SECOND.saturating_mul(30),
        p99: Some(0.05),
        ..promise.promised
    });
    looks(&mut promise, 0..30, 10);
    assert_eq!(
        said(&promise),
        [(0, Verdict::Unknown), (20, Verdict::Holds)]
    );
}

/// A drive with many commands serves an outright read behind those of others, so that the next one is due later.
#[test]
fn outright_reads_behind_the_commands_of_others_are_counted_on_as_far_as_they_get_the_drive() {
    let ends = |queue: QueueLength, lag: f64| {
        let mut promise = promise();
        promise.change(Promised {
            p99: Some(0.05),
            finish_within: Some(SECOND.saturating_mul(10_000)),
            ..promise.promised
        });
        (promise.lag, promise.bound) = (lag, PRICE_MOST);
        for second in 0..600 {
            let now = Time::ZERO + SECOND.saturating_mul(second);
            // Half of the time at work for clients, who let pass, so that idle time alone does not suffice.
            promise.shadow.busy = SECOND.saturating_mul(second) / 2;
            promise.yielding = 100 * second;
            promise.look(now, false, queue, 0, sweeping(), (600_000, 1_000_000));
        }
        promise
            .ends
            .map_or(f64::INFINITY, |at| at.as_nanos() as f64 / 1e9)
    };
    let short = ends(QueueLength::Short, 0.0);
    assert!(short.is_finite(), "{short}");
    // What was seen of a deep queue says nothing of a short one.
    assert_eq!(ends(QueueLength::Short, 0.3), short);
    assert_eq!(ends(QueueLength::Deep, 0.0), short);
    assert!(ends(QueueLength::Deep, 0.3) > 1.2 * short);
}

#[test]
fn blocks_that_are_wanted_again_are_expected_to_be_by_how_much_has_been_read() {
    let mut promise = promise();
    for second in 0..40 {
        // Half has been read, and ten a second of it are written to.
        promise.beside_writes(10);
        let now = Time::ZERO + SECOND.saturating_mul(second);
        promise.look(now, false, QueueLength::Short, 0, sweeping(), (500, 1_000));
    }
    assert!((promise.again - 20.0).abs() < 0.1, "{}", promise.again);
    for second in 40..400 {
        let now = Time::ZERO + SECOND.saturating_mul(second);
        promise.look(now, false, QueueLength::Short, 0, sweeping(), (500, 1_000));
    }
    assert!(promise.again < 1.0, "{}", promise.again);
}

#[test]
fn while_it_rests_nothing_is_learned_and_the_time_goes_on() {
    let mut promise = promise();
    looks(&mut promise, 0..10, 1_000);
    let before = promise.plan.clone();
    for second in 10..95 {
        let now = Time::ZERO + SECOND.saturating_mul(second);
        promise.look(now, true, QueueLength::Short, 0, sweeping(), (1_000, 1_000));
    }
    assert_eq!(promise.plan, before);
    let last = promise.changes().last().map(|(_, verdict)| *verdict);
    assert_eq!(last, Some(Verdict::Late));
}
