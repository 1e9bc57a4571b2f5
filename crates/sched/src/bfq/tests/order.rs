//! B-WF2Q+, by hand and against a second implementation.

use super::*;
use proptest::prelude::*;

/// Queues of processes with these numbers of a class.
fn queues(levels: &[Level]) -> (BfqQueues, Vec<BfqQueueId>) {
    let mut queues = BfqQueues::new(0);
    let ids = levels.iter().zip(0..);
    let ids = ids.map(|(level, process)| queues.add(process, *level, Time::ZERO, 0));
    let ids: Vec<BfqQueueId> = ids.collect();
    (queues, ids)
}

fn activate(queues: &mut BfqQueues, id: BfqQueueId, budget: u64, on_time: bool) {
    queues[id].share.budget = budget;
    queues[id].share.served = 0;
    queues.activate(id, on_time);
}

/// Serves the next queue up to its budget, and requeues it. Returns the queue.
fn turn(queues: &mut BfqQueues) -> BfqQueueId {
    let id = queues.choose(at(0)).expect("a queue waits");
    let budget = queues[id].share.budget;
    queues.serve(id, budget);
    queues[id].share.served = budget;
    queues.requeue(id);
    queues[id].share.served = 0;
    id
}

#[test]
fn a_raised_queue_gets_thirty_turns_to_one() {
    let (mut queues, ids) = queues(&[Level::BestEffort; 2]);
    queues[ids[0]].raise.is_on = true;
    activate(&mut queues, ids[0], 1_000, false);
    activate(&mut queues, ids[1], 1_000, false);
    let turns = (0..3_100).filter(|_| turn(&mut queues) == ids[0]).count();
    assert!((2_999..=3_001).contains(&turns), "{turns}");
}

#[test]
fn a_small_budget_goes_first_and_gets_no_more() {
    let (mut queues, ids) = queues(&[Level::BestEffort; 2]);
    activate(&mut queues, ids[0], 8_000, false);
    activate(&mut queues, ids[1], 1_000, false);
    let turns: Vec<bool> = (0..18).map(|_| turn(&mut queues) == ids[1]).collect();
    assert!(turns[0], "the smaller budget has the smaller finish");
    assert_eq!(turns.iter().filter(|small| **small).count(), 16);
}

#[test]
fn classes_go_in_order_but_the_idle_class_gets_a_turn_each_fifth_of_a_second() {
    let levels = [Level::Idle, Level::BestEffort, Level::RealTime];
    let (mut queues, ids) = queues(&levels);
    for id in &ids {
        activate(&mut queues, *id, 100, false);
    }
    let mut turn = |ms| {
        let id = queues.choose(at(ms)).expect("all wait");
        queues.serve(id, 1);
        queues.requeue(id);
        queues[id].level
    };
    let (idle, first) = (Level::Idle, Level::RealTime);
    assert_eq!([0, 200, 201].map(&mut turn), [first, first, idle]);
    assert_eq!([202, 401, 402].map(&mut turn), [first, first, idle]);
}

#[test]
fn a_queue_on_time_takes_up_where_it_left_off_and_another_does_not() {
    // The second queue is served 500 of 1000 sectors, and the first then goes on alone.
    let first_after_break = |on_time| {
        let (mut queues, ids) = queues(&[Level::BestEffort; 2]);
        activate(&mut queues, ids[1], 1_000, false);
        activate(&mut queues, ids[0], 1_100, false);
        assert_eq!(queues.choose(at(0)), Some(ids[1]));
        queues.serve(ids[1], 500);
        queues.retire(ids[1], true);
        assert_eq!(queues.choose(at(0)), Some(ids[0]));
        queues.serve(ids[0], 900);
        queues.requeue(ids[0]);
        queues[ids[0]].share.served = 0;
        activate(&mut queues, ids[1], 500, on_time);
        queues.choose(at(0))
    };
    let (_, ids) = queues(&[Level::BestEffort; 2]);
    // On time: finish at 500 + 500. Else: at least where the class stands.
    assert_eq!(first_after_break(true), Some(ids[1]));
}

#[test]
fn weights_of_queues_without_requests_count_until_their_finish() {
    let (mut queues, ids) = queues(&[Level::BestEffort; 2]);
    activate(&mut queues, ids[0], 1_000, false);
    activate(&mut queues, ids[1], 1_000, false);
    assert_eq!(queues.choose(at(0)), Some(ids[0]));
    queues.serve(ids[0], 400);
    // Finish is at 400 of weight 40, and the class is at 400 of weight 80.
    queues.retire(ids[0], true);
    assert_eq!(queues[ids[0]].share.weight, 40);
    assert_eq!(queues.choose(at(0)), Some(ids[1]));
    queues.serve(ids[1], 360);
    assert_eq!(queues[ids[0]].share.weight, 40);
    queues.serve(ids[1], 40);
    assert_eq!(queues[ids[0]].share.weight, 0);
}

/// A queue of the second implementation.
#[derive(Clone, Copy, Debug, Default)]
struct Plain {
    start: u128,
    finish: u128,
    budget: u64,
    served: u64,
    weight: u64,
    /// Order of arrival among the queues that wait; 0 if the queue does not wait.
    waits: u64,
}

/// B-WF2Q+ of one class, written from its description, without sums and lists that have to be kept.
#[derive(Clone, Debug, Default)]
struct PlainOrder {
    now: u128,
    queues: Vec<Plain>,
    active: Option<usize>,
    arrivals: u64,
}

impl PlainOrder {
    fn share(sectors: u64, weight: u64) -> u128 {
        u128::from(sectors) * 4_194_304 / u128::from(weight)
    }

    /// Weights of the queues that wait, of the queue in service, and of the empty queues whose finish is to come.
    fn weights(&self) -> u64 {
        let counts = |(at, queue): &(usize, &Plain)| {
            queue.waits > 0 || self.active == Some(*at) || queue.finish > self.now
        };
        let all = self.queues.iter().enumerate().filter(counts);
        all.map(|(_, queue)| queue.weight).sum()
    }

    fn join(&mut self, at: usize, start: u128) {
        self.arrivals += 1;
        let queue = &mut self.queues[at];
        queue.start = start;
        queue.finish = start + PlainOrder::share(queue.budget, queue.weight);
        queue.waits = self.arrivals;
    }

    fn arrive(&mut self, at: usize, budget: u64, weight: u64, on_time: bool) {
        let (now, old) = (self.now, self.queues[at].finish);
        self.queues[at].budget = budget;
        self.queues[at].served = 0;
        self.queues[at].weight = weight;
        self.join(at, if on_time { old } else { old.max(now) });
        let queue = &mut self.queues[at];
        if on_time && now > old && now > queue.finish {
            let shift = (now - queue.finish) / if weight > 40 { 30 } else { 1 };
            queue.start += shift;
            queue.finish += shift;
        }
    }

    fn choose(&mut self) -> Option<usize> {
        let waiting = |order: &PlainOrder| {
            let all = order.queues.clone().into_iter().enumerate();
            all.filter(|(_, queue)| queue.waits > 0).collect::<Vec<_>>()
        };
        let all = waiting(self);
        if all.iter().all(|(_, queue)| queue.start > self.now) {
            self.now = all.iter().map(|(_, queue)| queue.start).min()?;
        }
        let ready = all.iter().filter(|(_, queue)| queue.start <= self.now);
        let (at, _) = ready.min_by_key(|(_, queue)| (queue.finish, queue.waits))?;
        self.queues[*at].waits = 0;
        self.active = Some(*at);
        self.active
    }

    fn serve(&mut self, sectors: u64) {
        self.now += PlainOrder::share(sectors, self.weights());
        let at = self.active.expect("a queue is in service");
        self.queues[at].served += sectors;
    }

    /// Ends the slot. A backlogged queue has a new budget.
    fn end(&mut self, budget: Option<u64>, weight: u64) {
        let at = self.active.take().expect("a queue is in service");
        let queue = &mut self.queues[at];
        queue.finish = queue.start + PlainOrder::share(queue.served, queue.weight);
        if let Some(budget) = budget {
            queue.budget = budget;
            queue.served = 0;
            queue.weight = weight;
            let start = queue.finish;
            self.join(at, start);
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive {
        at: usize,
        budget: u64,
        on_time: bool,
    },
    Serve(u64),
    End(Option<u64>),
    Raise(usize, bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let budget = 1..20_000_u64;
    let step = prop_oneof![
        3 => (0..6_usize, budget.clone(), any::<bool>())
            .prop_map(|(at, budget, on_time)| Step::Arrive { at, budget, on_time }),
        4 => (1..5_000_u64).prop_map(Step::Serve),
        4 => prop::option::of(budget).prop_map(Step::End),
        1 => (0..6_usize, any::<bool>()).prop_map(|(at, on)| Step::Raise(at, on)),
    ];
    prop::collection::vec(step, 1..120)
}

proptest! {
    #[test]
    fn the_order_is_that_of_the_description(steps in steps()) {
        let (mut queues, ids) = queues(&[Level::BestEffort; 6]);
        let mut plain = PlainOrder {
            queues: [Plain { weight: 40, ..Plain::default() }; 6].to_vec(),
            ..PlainOrder::default()
        };
        for step in steps {
            if plain.active.is_none() {
                let chosen = queues.choose(at(0));
                let expected = plain.choose().map(|at| ids[at]);
                prop_assert_eq!(chosen, expected);
            }
            match step {
                Step::Arrive { at, budget, on_time } => {
                    let is_empty = plain.queues[at].waits == 0 && plain.active != Some(at);
                    if is_empty {
                        activate(&mut queues, ids[at], budget, on_time);
                        plain.arrive(at, budget, queues[ids[at]].weight(), on_time);
                    }
                }
                Step::Serve(sectors) => {
                    if let Some(at) = plain.active {
                        queues.serve(ids[at], sectors);
                        plain.serve(sectors);
                    }
                }
                Step::End(budget) => {
                    if let Some(at) = plain.active {
                        let id = ids[at];
                        match budget {
                            Some(budget) => {
                                queues[id].share.budget = budget;
                                queues.requeue(id);
                                queues[id].share.served = 0;
                            }
                            None => queues.retire(id, true),
                        }
                        plain.end(budget, queues[id].weight());
                    }
                }
                // The weight follows when the queue next waits.
                Step::Raise(at, on) => queues[ids[at]].raise.is_on = on,
            }
        }
    }
}
