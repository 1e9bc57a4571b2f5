//! Tests of the controller on a toy drive, and tests of the verdicts.

use super::*;
use headtime_sched::{Op, Request, Surprise};
use headtime_units::Extent;

const SECOND: Nanos = Nanos::from_secs(1);

fn at(seconds: u64) -> Time {
    Time::ZERO + SECOND.saturating_mul(seconds)
}

fn promised() -> Promised {
    Promised {
        finish_within: Some(SECOND.saturating_mul(100)),
        passed: Nanos::ZERO,
        p99: None,
        cycle: SECOND.saturating_mul(86_400),
        unit: Sectors::new(80),
        patience: Nanos::from_millis(2),
    }
}

/// Returns a controller for a drive that reads 100 blocks in a second.
fn promise(promised: Promised) -> Promise {
    Promise::new(promised, Some((Nanos::from_millis(8), 100.0)))
}

fn done(sent: Time, sectors: u64) -> Finished {
    Finished {
        id: 0,
        outcome: Outcome::Done,
        request: Request::new((), Op::Read, Extent::at(0, sectors), sent),
        issued: sent,
        surprise: Some(Surprise::None),
    }
}

/// A drive that serves one request after the other, each for `serves`.
struct Plant {
    promise: Promise,
    now: Time,
    serves: Nanos,
    /// Blocks that a request's gap brings, in thousandths.
    gap: u64,
    /// Pause of the clients after each request. No client waits then.
    pause: Nanos,
    /// Blocks read in gaps in thousandths, blocks read in idle time, and blocks left in thousandths.
    read: u64,
    idle: u64,
    left: u64,
}

impl Plant {
    fn new(promised: Promised, left: u64) -> Plant {
        Plant {
            promise: promise(promised),
            now: Time::ZERO,
            serves: Nanos::from_millis(10),
            gap: 0,
            pause: Nanos::ZERO,
            read: 0,
            idle: 0,
            left: left * 1_000,
        }
    }

    fn reads(&mut self, sectors: u64, idle: bool) {
        // Eight sectors a block, ten milliseconds each.
        let blocks = (sectors / 8).min(self.left / 1_000);
        let sent = self.now;
        self.now += Nanos::from_millis(10).saturating_mul(blocks);
        self.left -= blocks * 1_000;
        self.idle += if idle { blocks } else { 0 };
        let done = done(sent, sectors);
        self.promise
            .has_read(self.now, &done, idle, blocks as usize);
    }

    /// Runs until all blocks are read, or until the given second.
    fn run(&mut self, seconds: u64) {
        while self.left >= 1_000 && self.now < at(seconds) {
            let came = self.now;
            self.promise.arrives(came, Origin::default());
            let due = self.promise.sectors_due(self.now).get();
            if due > 0 {
                self.reads(due, false);
            }
            self.now += self.serves;
            self.promise.seen(self.now, &done(came, 8));
            let gap = self.gap.min(self.left);
            (self.read, self.left) = (self.read + gap, self.left - gap);
            let goes_on = self.now + self.pause;
            while self.now < goes_on && self.promise.uses_idle() && self.left >= 1_000 {
                self.reads(8, true);
            }
            self.now = self.now.max(goes_on);
            if self.now >= self.promise.next_look() {
                let blocks = Blocks {
                    gaps: self.read / 1_000,
                    idle: self.idle,
                    left: self.left / 1_000,
                    each: None,
                };
                self.promise
                    .look(self.now, false, QueueLength::Short, blocks);
            }
        }
        if self.left < 1_000 {
            self.promise.end(self.now);
        }
    }

    fn said(&self) -> Vec<Verdict> {
        let changes = self.promise.changes().iter();
        changes.map(|(_, verdict)| *verdict).collect()
    }
}

#[test]
fn a_date_is_kept_at_each_pace_and_the_share_taken_is_the_share_asked() {
    for percent in [10, 20, 40, 60, 80] {
        let mut plant = Plant::new(promised(), 100 * percent);
        plant.run(100);
        let waits = plant.promise.waits();
        let part = waits.taken.as_secs_f64() / waits.asked.as_secs_f64();
        assert!((part - 1.0).abs() < 0.1, "{percent}: {waits:?}");
        assert_eq!(
            plant.said(),
            [Verdict::Unknown, Verdict::Holds],
            "{percent}"
        );
        // The scan takes no more time than the date needs.
        assert!(plant.now > at(90), "{percent}: {:?}", plant.now);
    }
}

#[test]
fn what_gaps_and_idle_time_bring_is_not_taken_from_clients() {
    let taken = |gap, pause| {
        let mut plant = Plant::new(promised(), 3_000);
        (plant.gap, plant.pause) = (gap, pause);
        plant.run(100);
        assert_eq!(plant.left / 1_000, 0);
        plant.promise.waits().taken.as_secs_f64()
    };
    let none = taken(0, Nanos::ZERO);
    assert!((29.0..31.0).contains(&none), "{none}");
    // Ten blocks a second in gaps.
    let gaps = taken(140, Nanos::ZERO);
    assert!((18.0..24.0).contains(&gaps), "{gaps}");
    let all = taken(600, Nanos::ZERO);
    assert!(all < 1.0, "{all}");
    let idle = taken(0, Nanos::from_millis(50));
    assert!(idle < 1.0, "{idle}");
}

#[test]
fn a_date_without_a_bound_uses_all_idle_time_also_if_gaps_suffice() {
    let mut plant = Plant::new(promised(), 1_000);
    (plant.gap, plant.pause) = (500, Nanos::from_millis(20));
    plant.run(100);
    assert!(plant.now < at(25), "{:?}", plant.now);
}

#[test]
fn a_date_that_no_share_keeps_is_said_soon_and_read_for_as_fast_as_can_be() {
    let mut plant = Plant::new(promised(), 40_000);
    plant.run(300);
    let (said, verdict) = plant.promise.changes()[1];
    assert_eq!((verdict, plant.said().len()), (Verdict::Late, 2));
    assert!(said < at(3), "{said}");
    let read = 40_000 - plant.left / 1_000;
    assert!(read > 24_000, "{read}");
}

#[test]
fn the_level_sinks_and_rises_with_what_clients_wait_for() {
    let mut promise = promise(Promised {
        p99: Some(0.05),
        ..promised()
    });
    let mut step = |with: u64| {
        for _ in 0..100_000 {
            promise.shadow.with.add(Nanos::from_millis(with));
            promise.shadow.without.add(Nanos::from_millis(100));
        }
        promise.long = 0.01;
        promise.step();
        promise.level
    };
    assert!(step(100) > LEVELS.0);
    let low = (0..50).map(|_| step(120)).last();
    assert_eq!(low, Some(LEVELS.1));
    promise.long = 0.0;
    promise.step();
    assert_eq!(promise.level, LEVELS.1, "a calm time teaches nothing");
}

#[test]
fn below_the_first_level_gap_reads_are_made_in_a_part_of_the_looks() {
    let mut promise = promise(Promised {
        p99: Some(0.05),
        ..promised()
    });
    let mut looks = |level| {
        promise.level = level;
        let mut uses = || {
            promise.choose_ways(at(1), (1.0, 100.0), 1.0);
            promise.uses_gaps()
        };
        (0..1_000).filter(|_| uses()).count()
    };
    assert_eq!(looks(LEVELS.0), 1_000);
    assert!((240..260).contains(&looks(LEVELS.0 / 4.0)));
}

#[test]
fn the_share_asked_is_larger_by_the_part_that_reads_lose() {
    let mut promise = promise(promised());
    (promise.learns, promise.reads) = (false, SPEED_READS.1);
    let mut asked = |pace, reach| {
        promise.choose_ways(at(1), (pace, 100.0), reach);
        promise.share
    };
    assert_eq!(
        [1.0, 0.5, 0.4].map(|reach| asked(20.0, reach)),
        [0.2, 0.4, 0.5]
    );
    assert_eq!(asked(20.0, 0.0), 0.2 / REACH_LEAST);
    assert_eq!(asked(70.0, 0.5), SHARE_MAX);
}

#[test]
fn another_bound_starts_with_another_level() {
    let bounded = |p99| Promised {
        p99: Some(p99),
        ..promised()
    };
    let mut promise = promise(bounded(0.05));
    (promise.level, promise.binds) = (LEVELS.1, true);
    promise.change(bounded(0.05));
    assert_eq!((promise.level, promise.binds), (LEVELS.1, true));
    promise.change(bounded(0.5));
    assert_eq!((promise.level, promise.binds), (LEVELS.0, false));
}

/// Checks once a second, on a disk that no client uses.
fn looks(promise: &mut Promise, seconds: std::ops::Range<u64>, left: u64) {
    let blocks = Blocks {
        left,
        ..Blocks::default()
    };
    for second in seconds {
        promise.look(at(second), false, QueueLength::Short, blocks);
    }
}

fn said(promise: &Promise) -> Vec<(u64, Verdict)> {
    let changes = promise.changes().iter();
    let changes = changes.map(|(at, verdict)| (at.as_nanos() / 1_000_000_000, *verdict));
    changes.collect()
}

#[test]
fn what_became_of_a_date_is_said_when_all_has_been_read_and_once() {
    for (seconds, verdict) in [(99, Verdict::Holds), (101, Verdict::Late)] {
        let mut promise = promise(promised());
        looks(&mut promise, 0..1, 10);
        promise.end(at(seconds));
        // A second end, after a late read of unreadable blocks, changes nothing.
        promise.end(at(200));
        let last = promise.changes().last().map(|(_, verdict)| *verdict);
        assert_eq!((promise.changes().len(), last), (2, Some(verdict)));
    }
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
        let mut promise = promise(promised());
        for nth in 0..1_000 {
            let sent = at(nth);
            let done = |surprise| Finished {
                surprise: Some(surprise),
                ..done(sent, 8)
            };
            promise.arrives(sent, Origin::default());
            promise.gap_read(&done(surprise));
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

#[test]
fn what_clients_wait_for_is_not_known_before_a_cycle_or_half_of_the_time() {
    for (cycle, passed, knows) in [(20, 0, 20), (80, 0, 50), (80, 30, 20)] {
        let mut promise = promise(Promised {
            p99: Some(0.05),
            cycle: SECOND.saturating_mul(cycle),
            passed: SECOND.saturating_mul(passed),
            ..promised()
        });
        looks(&mut promise, 0..60, 10);
        let expected = [(0, Verdict::Unknown), (knows, Verdict::Holds)];
        assert_eq!(said(&promise), expected);
    }
    // A date that cannot hold is known before.
    let mut promise = promise(Promised {
        p99: Some(0.05),
        ..promised()
    });
    looks(&mut promise, 0..7, 100_000);
    assert_eq!(said(&promise), [(0, Verdict::Unknown), (5, Verdict::Late)]);
    // A bound without a date needs a whole cycle.
    promise.change(Promised {
        finish_within: None,
        p99: Some(0.05),
        cycle: SECOND.saturating_mul(20),
        ..promised()
    });
    looks(&mut promise, 7..60, 10);
    let last = [(7, Verdict::Unknown), (20, Verdict::Holds)];
    assert_eq!(said(&promise)[2..], last);
}

#[test]
fn a_date_of_which_a_part_is_over_is_as_near_as_that() {
    let mut promise = promise(Promised {
        passed: SECOND.saturating_mul(70),
        ..promised()
    });
    looks(&mut promise, 0..2, 10);
    assert_eq!(promise.due, at(30));
    assert_eq!(said(&promise)[1], (1, Verdict::Holds));
    promise.end(at(31));
    assert_eq!(said(&promise)[2], (31, Verdict::Late));
}

#[test]
fn other_promises_are_known_nothing_of_until_the_next_look_and_what_was_seen_counts() {
    let mut promise = promise(promised());
    looks(&mut promise, 0..10, 1_000);
    assert_eq!(said(&promise), [(0, Verdict::Unknown), (1, Verdict::Holds)]);
    promise.change(Promised {
        finish_within: Some(SECOND.saturating_mul(5)),
        ..promised()
    });
    looks(&mut promise, 10..15, 10_000);
    let now = [(10, Verdict::Unknown), (14, Verdict::Late)];
    assert_eq!(said(&promise)[2..], now);
    assert_eq!(promise.due, at(15));
}

#[test]
fn a_date_that_passes_is_said_at_once_and_also_when_nothing_is_left_to_be_asked_for() {
    let mut promise = self::promise(promised());
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
    // A check reports the missed date as soon.
    let mut promise = self::promise(promised());
    looks(&mut promise, 0..50, 10);
    looks(&mut promise, 101..102, 10);
    assert_eq!(said(&promise)[2], (101, Verdict::Late));
    // A scan that has ended in time is not late later.
    let mut promise = self::promise(promised());
    looks(&mut promise, 0..50, 10);
    promise.end(at(60));
    assert!(promise.due().is_none() && !promise.overdue(at(200)));
    assert_eq!(promise.outlook().verdict, Verdict::Holds);
}

#[test]
fn of_a_drive_of_which_nothing_is_known_nothing_is_said_before_a_few_reads_or_the_date() {
    let mut promise = Promise::new(promised(), None);
    looks(&mut promise, 0..90, 100_000);
    assert_eq!(said(&promise), [(0, Verdict::Unknown)]);
    assert!(promise.outlook().ends.is_none());
    assert!(
        promise.sectors_due(at(90)) > Sectors::ZERO,
        "a few reads show it"
    );
    looks(&mut promise, 90..102, 100_000);
    assert_eq!(said(&promise)[1], (101, Verdict::Late));
}

#[test]
fn blocks_that_clients_write_are_a_part_of_the_pace() {
    let share = |again| {
        let mut promise = promise(promised());
        for second in 0..50 {
            promise.beside_writes(again);
            looks(&mut promise, second..second + 1, 500);
            // The reads take the time owed.
            promise.owed.0 = 0.0;
        }
        promise.share
    };
    let (without, with) = (share(0), share(20));
    assert!((with - without - 0.2).abs() < 0.01, "{without} {with}");
}

#[test]
fn while_it_is_suspended_nothing_is_measured_and_the_time_goes_on() {
    let mut promise = promise(promised());
    looks(&mut promise, 0..10, 1_000);
    let looked = promise.waits().looked;
    let blocks = Blocks {
        left: 1_000,
        ..Blocks::default()
    };
    for second in 10..97 {
        promise.look(at(second), true, QueueLength::Short, blocks);
    }
    assert_eq!(promise.waits().looked, looked);
    let last = promise.changes().last().map(|(_, verdict)| *verdict);
    assert_eq!(last, Some(Verdict::Late));
}
