//! Trials keep the better choice within their budget.

use super::*;
use crate::{Flags, Op, Tag};
use headtime_units::Extent;

const TURN: Nanos = Nanos::from_millis(100);

/// A drive that serves one request of 8 sectors after the other.
struct World {
    trials: Trials,
    now: Time,
    lba: u64,
    /// Time for which each choice was active.
    had: Vec<Nanos>,
}

impl World {
    fn new(count: usize, cost: u64) -> World {
        World {
            trials: Trials::new(count, TURN, Millionths(cost)),
            now: Time::ZERO,
            lba: 0,
            had: alloc::vec![Nanos::ZERO; count],
        }
    }

    fn request(&mut self, tag: u32, load: Load) -> Request {
        self.lba += if load == Load::Random { 1_000_003 } else { 8 };
        let op = match load {
            Load::Writes => Op::Write,
            _ => Op::Read,
        };
        Request::new(Tag(tag), op, Extent::at(self.lba, 8), self.now)
    }

    /// Serves for `seconds`. A request takes `takes` microseconds under each choice. Returns the number of requests.
    fn serve(&mut self, seconds: u64, load: Load, takes: &[u64]) -> u64 {
        let end = self.now + Nanos::from_secs(seconds);
        let mut served = 0;
        while self.now < end {
            let request = self.request(0, load);
            self.arrived(&request);
            let active = self.trials.choose(self.now);
            self.trials.handed_out(self.now, 0);
            let took = Nanos::from_micros(takes[active]);
            self.now += took;
            self.had[active] += took;
            self.completed(&request);
            served += 1;
        }
        served
    }

    fn arrived(&mut self, request: &Request) {
        let at = request.tag.index();
        self.trials.arrived(self.now, at, request.is_sync());
        if request.is_sync() {
            self.trials.seen(request);
        }
    }

    fn completed(&mut self, request: &Request) {
        let sectors = request.extent.len;
        self.trials
            .completed(self.now, request.tag.index(), sectors);
    }

    fn kept(&mut self) -> usize {
        self.trials.known[self.trials.load as usize].kept
    }
}

#[test]
fn what_serves_most_is_kept_and_trials_cost_no_more_than_they_may() {
    for (takes, best) in [
        ([1_000, 2_000, 4_000], 0),
        ([2_000, 1_000, 4_000], 1),
        ([1_200, 1_100, 1_000], 2),
    ] {
        let mut world = World::new(3, 10_000);
        let served = world.serve(100, Load::Random, &takes);
        assert_eq!(world.kept(), best, "{takes:?}");
        // 1 % for trials, and as much again for the first trial of each and for the beginning.
        assert!(
            served >= 98_000 * 1_000 / takes[best],
            "{takes:?}: {served}"
        );
    }
}

#[test]
fn a_choice_that_becomes_better_is_found() {
    let mut world = World::new(2, 10_000);
    world.serve(20, Load::Random, &[1_000, 1_500]);
    assert_eq!(world.kept(), 0);
    world.serve(60, Load::Random, &[1_000, 800]);
    assert_eq!(world.kept(), 1);
}

#[test]
fn a_sudden_fall_is_followed_by_a_trial_at_once() {
    // Trials cost half of the time each, and the budget is empty.
    let mut world = World::new(2, 0);
    world.serve(10, Load::Random, &[1_000, 3_000]);
    assert_eq!(world.kept(), 0);
    world.serve(2, Load::Random, &[8_000, 3_000]);
    assert_eq!(world.kept(), 1);
    // The change ends as suddenly. For the choice now in force this is no fall, so the way back needs the budget.
    let served = world.serve(1, Load::Random, &[1_000, 3_000]);
    assert!(served < 500, "{served}");
    // A second fall comes too soon, and the next one does not.
    world.serve(1, Load::Random, &[1_000, 20_000]);
    assert_eq!(world.kept(), 1);
    world.serve(6, Load::Random, &[1_000, 3_000]);
    world.serve(2, Load::Random, &[1_000, 20_000]);
    assert_eq!(world.kept(), 0);
}

#[test]
fn the_first_trial_waits_until_a_load_has_lasted() {
    let mut world = World::new(2, 1_000_000);
    world.serve(1, Load::Sequential, &[1_000, 1_000]);
    assert_eq!(world.had[0], Nanos::ZERO);
    world.serve(1, Load::Sequential, &[1_000, 1_000]);
    assert!(world.had[0] > Nanos::ZERO);
}

#[test]
fn a_load_that_comes_back_is_known_at_once() {
    let mut world = World::new(2, 10_000);
    let (random, sequential) = ([1_000, 1_300], [2_000, 1_000]);
    for _ in 0..2 {
        world.serve(20, Load::Random, &random);
        world.serve(20, Load::Sequential, &sequential);
    }
    for (load, takes, best) in [(Load::Random, random, 0), (Load::Sequential, sequential, 1)] {
        world.had.fill(Nanos::ZERO);
        let soon = world.serve(1, load, &takes);
        assert!(world.had[best] > Nanos::from_millis(850), "{:?}", world.had);
        let served = soon + world.serve(19, load, &takes);
        assert!(served > 19_600, "{served}");
    }
}

#[test]
fn writes_that_nobody_waits_for_are_a_load_of_their_own() {
    let mut world = World::new(2, 10_000);
    world.serve(10, Load::Random, &[1_000, 2_000]);
    world.serve(10, Load::Writes, &[2_000, 1_000]);
    assert_eq!((world.trials.load, world.kept()), (Load::Writes, 1));
    // The first read ends the load of writes.
    world.serve(1, Load::Random, &[1_000, 2_000]);
    assert_eq!((world.trials.load, world.kept()), (Load::Random, 0));
}

/// Serves for `seconds`. While the disk may wait, it is held for `held` microseconds before each request.
fn wait(
    trials: &mut Trials,
    now: &mut Time,
    seconds: u64,
    [serve, held, near]: [u64; 3],
) -> [Nanos; 2] {
    let end = *now + Nanos::from_secs(seconds);
    let mut had = [Nanos::ZERO; 2];
    while *now < end {
        trials.arrived(*now, 0, true);
        trials.choose(*now);
        let (from, waits) = (*now, trials.waits());
        if waits {
            trials.held(*now, Some(Nanos::from_micros(serve)));
            *now += Nanos::from_micros(held);
            trials.waited(*now, near < serve);
        }
        trials.handed_out(*now, 0);
        *now += Nanos::from_micros(if waits { near } else { serve });
        trials.completed(*now, 0, Sectors::new(8));
        had[usize::from(waits)] += now.saturating_since(from);
    }
    had
}

#[test]
fn waits_that_lose_stop_and_begin_again_when_they_gain() {
    let (mut trials, mut now) = (Trials::of_waits(Millionths(30_000)), Time::ZERO);
    let had = wait(&mut trials, &mut now, 100, [50, 9_000, 50]);
    assert!(had[1] < Nanos::from_secs(2), "{had:?}");
    assert!(!trials.waits());
    wait(&mut trials, &mut now, 20, [9_000, 1_000, 500]);
    let had = wait(&mut trials, &mut now, 100, [9_000, 1_000, 500]);
    assert!(had[0] < Nanos::from_secs(2), "{had:?}");
}

#[test]
fn waits_within_their_share_are_not_tried_and_those_of_a_whole_share_never() {
    for (share, held) in [(30_000, 25), (1_000_000, 9_000)] {
        let (mut trials, mut now) = (Trials::of_waits(Millionths(share)), Time::ZERO);
        let had = wait(&mut trials, &mut now, 100, [100, held, 1_000]);
        assert_eq!(had[0], Nanos::ZERO, "{share}");
    }
}

#[test]
fn a_turn_begins_when_the_commands_of_the_choice_before_are_out_of_the_drive() {
    let mut world = World::new(2, 10_000);
    world.serve(1, Load::Random, &[1_000, 2_000]);
    let held = world.request(1, Load::Random);
    world.arrived(&held);
    world.trials.handed_out(world.now, 1);
    // With a command of another turn in the drive nothing is measured, so the turn cannot end.
    world.trials.begin(Phase::Tried(1));
    world.trials.since = Span::default();
    world.serve(5, Load::Random, &[1_000, 2_000]);
    assert_eq!(world.trials.phase, Phase::Tried(1));
    world.completed(&held);
    world.serve(1, Load::Random, &[1_000, 2_000]);
    assert_ne!(world.trials.phase, Phase::Tried(1));
}

#[test]
fn counts_of_what_is_there_follow_merges_withdrawals_swaps_and_foreign_commands() {
    let mut world = World::new(2, 10_000);
    for tag in 0..4 {
        let request = world.request(tag, Load::Random);
        world.arrived(&request);
    }
    let write = Request {
        flags: Flags::NONE,
        ..world.request(4, Load::Writes)
    };
    world.arrived(&write);
    assert_eq!(world.trials.here, [1, 4]);
    world.trials.withdrawn(1);
    world.trials.withdrawn(0);
    world.trials.withdrawn(4);
    assert_eq!(world.trials.here, [0, 2]);
    world.trials.handed_out(world.now, 2);
    world.trials.cleared();
    assert_eq!((world.trials.here, world.trials.in_drive), ([0, 0], 0));
    // The first request was handed out before the swap, and the second by another scheduler.
    let request = world.request(2, Load::Random);
    world.completed(&request);
    let request = world.request(900, Load::Random);
    world.completed(&request);
    assert_eq!((world.trials.here, world.trials.in_drive), ([0, 0], 0));
}
