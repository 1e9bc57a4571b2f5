use super::*;
use std::vec::Vec;

/// Four readers that always ask for more, at a disk whose service depends on the rule in force.
struct World {
    trials: Trials,
    now: Time,
    /// Of those queued, the turns.
    queue: Vec<u64>,
    sectors: u64,
    /// How long it did not wait.
    rested: Nanos,
    random: u64,
}

/// How long a request of 256 sectors takes: the wait, and the service.
type Rule = fn(waits: bool) -> (Nanos, Nanos);

const SECTORS: u64 = 256;

const fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

impl World {
    fn new() -> World {
        let mut world = World {
            trials: Trials::new(),
            now: Time::ZERO,
            queue: Vec::new(),
            sectors: 0,
            rested: Nanos::ZERO,
            random: 1,
        };
        for _ in 0..4 {
            let turn = world.trials.arrived(world.now);
            world.queue.push(turn);
        }
        world
    }

    /// From 50 to 150 percent.
    fn uneven(&mut self, time: Nanos) -> Nanos {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let part = 50 + (self.random >> 33) % 101;
        Nanos::from_nanos(time.as_nanos() / 100 * part)
    }

    /// Sectors per second over a time.
    fn run(&mut self, time: Nanos, rule: Rule) -> u64 {
        let (from, before) = (self.now, self.sectors);
        while self.now - from < time {
            let waits = self.trials.waits();
            let start = self.now;
            let (wait, service) = rule(waits);
            if waits && wait > Nanos::ZERO {
                self.trials.held(self.now);
                self.now += wait;
            }
            let turn = self.queue.remove(0);
            self.trials.handed_out(self.now, turn);
            let service = self.uneven(service);
            self.now += service;
            self.trials.completed(self.now, Sectors::new(SECTORS));
            self.sectors += SECTORS;
            let turn = self.trials.arrived(self.now);
            self.queue.push(turn);
            if !waits {
                self.rested += self.now - start;
            }
        }
        (self.sectors - before) * 1_000_000_000 / (self.now - from).as_nanos()
    }
}

/// Sectors per second of requests that take so long in the mean.
fn rate(time: Nanos) -> u64 {
    SECTORS * 1_000_000_000 / time.as_nanos()
}

/// Waiting serves 0.7 of what not waiting does.
fn bad(waits: bool) -> (Nanos, Nanos) {
    if waits {
        (ms(9), ms(1))
    } else {
        (ms(0), ms(7))
    }
}

/// Waiting serves 4 times what not waiting does.
fn good(waits: bool) -> (Nanos, Nanos) {
    if waits {
        (ms(1), ms(1))
    } else {
        (ms(0), ms(8))
    }
}

#[test]
fn where_waiting_serves_less_it_stops_within_a_second_and_hardly_tries_again() {
    let mut world = World::new();
    let first = world.run(ms(1_000), bad);
    assert!(first * 100 > rate(ms(10)) * 95, "{first}");
    assert!(!world.trials.waits());
    let then = world.run(Nanos::from_secs(200), bad);
    assert!(then * 100 > rate(ms(7)) * 98, "{then} of {}", rate(ms(7)));
}

#[test]
fn where_waiting_serves_four_times_as_much_trials_cost_one_part_of_a_hundred() {
    let mut world = World::new();
    let all = world.run(Nanos::from_secs(200), good);
    assert!(all * 100 > rate(ms(2)) * 98, "{all} of {}", rate(ms(2)));
    assert!(world.rested > Nanos::ZERO, "it never tried");
}

#[test]
fn when_what_is_better_changes_it_learns_that_within_a_minute() {
    let mut world = World::new();
    world.run(Nanos::from_secs(60), bad);
    world.run(Nanos::from_secs(60), good);
    let all = world.run(Nanos::from_secs(60), good);
    assert!(all * 100 > rate(ms(2)) * 97, "{all} of {}", rate(ms(2)));
    world.run(Nanos::from_secs(60), bad);
    let all = world.run(Nanos::from_secs(60), bad);
    assert!(all * 100 > rate(ms(7)) * 97, "{all} of {}", rate(ms(7)));
}

#[test]
fn where_the_disk_hardly_waits_nothing_is_tried() {
    let mut world = World::new();
    world.run(Nanos::from_secs(60), |_| (Nanos::from_micros(10), ms(5)));
    assert_eq!(world.rested, Nanos::ZERO);
    // Also if it never waits.
    let mut world = World::new();
    world.run(Nanos::from_secs(60), |_| (Nanos::ZERO, ms(5)));
    assert_eq!(world.rested, Nanos::ZERO);
}

#[test]
fn a_trial_of_waits_that_do_not_come_leaves_waiting_on() {
    let mut world = World::new();
    world.run(Nanos::from_secs(5), bad);
    assert!(!world.trials.waits());
    world.run(Nanos::from_secs(200), |_| (Nanos::ZERO, ms(7)));
    assert!(world.trials.waits());
}

#[test]
fn time_in_which_nobody_asks_counts_only_at_its_beginning() {
    let mut trials = Trials::new();
    for second in 0..10 {
        let now = Time::ZERO + Nanos::from_secs(second);
        let turn = trials.arrived(now);
        trials.handed_out(now, turn);
        trials.completed(now + ms(5), Sectors::new(8));
    }
    let known = trials.kept.nanos + trials.round.nanos;
    // Ten requests of 5 ms and nine gaps; what was known before the first wait is forgotten by rounds.
    assert!(known <= 10 * 5_000_000 + 9 * 10_000_000, "{known}");
    assert_eq!(trials.kept.waiting + trials.round.waiting, 0);
}

#[test]
fn what_became_part_of_another_or_was_taken_away_ends_a_round_all_the_same() {
    let mut trials = Trials::new();
    let mut now = Time::ZERO;
    let turns: Vec<u64> = (0..3).map(|_| trials.arrived(now)).collect();
    trials.begin(Phase::Kept);
    assert_eq!((trials.queued, trials.left), (3, 3));
    trials.withdrawn(turns[1]);
    trials.handed_out(now, turns[0]);
    assert_eq!((trials.queued, trials.left), (1, 1));
    trials.cleared();
    assert_eq!((trials.queued, trials.left), (0, 0));
    // One that another scheduler handed out.
    now += ms(60);
    trials.completed(now, Sectors::new(8));
    trials.completed(now, Sectors::new(8));
    assert_eq!(trials.in_drive, 0);
    assert_eq!(trials.round.nanos, 0, "a new round has begun");
}
