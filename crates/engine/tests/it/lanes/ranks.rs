//! A gate with ranks: what waits for whom, and reserved tags.

use crate::rig::{Rig, Sent, config};
use crate::world::arrival;
use headtime_engine::{Arrival, Config, Event, Gate, GateOrder, Outcome, RequestId};
use headtime_sched::{Class, Op};
use headtime_testkit::AgedRanks;
use headtime_units::Nanos;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Arrive(Op, u64, u64, bool),
    Complete(prop::sample::Index, bool),
    Order(GateOrder),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let op = prop_oneof![
        8 => Just(Op::Read),
        8 => Just(Op::Write),
        1 => Just(Op::Flush),
    ];
    let step = prop_oneof![
        10 => (op, 0..60_u64, 1..12_u64, any::<bool>())
            .prop_map(|(op, start, len, high)| Step::Arrive(op, start, len, high)),
        8 => (any::<prop::sample::Index>(), prop::bool::weighted(0.9))
            .prop_map(|(which, good)| Step::Complete(which, good)),
        1 => (2..6_u32).prop_map(|depth| Step::Order(GateOrder::Depth(depth))),
        1 => (0..6_u64).prop_map(|age| Step::Order(GateOrder::Age(age))),
    ];
    prop::collection::vec(step, 1..120)
}

/// A plain model of dependencies. It finds the requests that a request waits for, and those that could go.
struct Model {
    /// In order of arrival.
    pending: Vec<Arrival>,
}

impl Model {
    fn waits_for(later: &Arrival, earlier: &Arrival) -> bool {
        later.op == Op::Flush
            || earlier.op == Op::Flush
            || (later.op.changes() || earlier.op.changes()) && later.extent.overlaps(earlier.extent)
    }

    /// Requests that could go now and that a request of the high rank waits for, or that have the high rank.
    fn due(&self, sent: &[Sent]) -> Vec<RequestId> {
        let there = |id| sent.iter().any(|sent| sent.parts.contains(&id));
        let mut needed = vec![false; self.pending.len()];
        for (at, one) in self.pending.iter().enumerate().rev() {
            needed[at] |= one.class == Class::REAL_TIME;
            for (before, earlier) in self.pending[..at].iter().enumerate() {
                needed[before] |= needed[at] && Model::waits_for(one, earlier);
            }
        }
        let pending = self.pending.iter().enumerate();
        let due = pending.filter(|(at, one)| {
            let mut before = self.pending[..*at].iter();
            needed[*at] && !there(one.id) && !before.any(|other| Model::waits_for(one, other))
        });
        due.map(|(_, one)| one.id).collect()
    }
}

/// Runs the steps, and says which requests waited behind refused ones of a lower rank.
fn run(inherits: bool, config: Config, steps: &[Step]) -> Vec<RequestId> {
    // The gate starts with a depth of three. Orders set two to five.
    let mut gate = AgedRanks::new(3, 4);
    gate.inherits = inherits;
    let mut rig = Rig::new(config, gate.clone());
    let mut model = Model {
        pending: Vec::new(),
    };
    let mut wrong = Vec::new();
    for (id, step) in (0..).zip(steps) {
        let begun = rig.sent.len();
        rig.now += Nanos::from_micros(1);
        match step {
            Step::Arrive(op, start, len, high) => {
                let len = if *op == Op::Flush { 0 } else { *len };
                let mut new = arrival(id, *op, *start, len, 0);
                if *high {
                    new.class = Class::REAL_TIME;
                }
                model.pending.push(new);
                rig.arrive(new);
            }
            Step::Complete(which, good) => {
                if rig.in_drive.is_empty() {
                    continue;
                }
                let at = which.index(rig.in_drive.len());
                gate.returned(rig.now, rig.in_drive[at].request.tag);
                rig.complete(
                    at,
                    match good {
                        true => Outcome::Done,
                        false => Outcome::MediumError,
                    },
                );
            }
            Step::Order(order) => {
                gate.obey(rig.now, order);
                rig.event(Event::Ordered(*order));
            }
        }
        for sent in &rig.sent[begun..] {
            gate.taken(rig.now, &sent.request, AgedRanks::HIGH);
        }
        let ended = &rig.ended;
        model
            .pending
            .retain(|one| !ended.iter().any(|(id, _)| *id == one.id));
        if gate.admits(AgedRanks::HIGH) {
            wrong.extend(model.due(&rig.in_drive));
        }
    }
    rig.finish();
    wrong
}

proptest! {
    /// The gate refuses either rank now and then, for its age or for the reserved tag; order has requests wait
    /// for others, merged or not, and for flushes.
    #[test]
    fn no_request_of_the_higher_rank_waits_behind_a_refused_lower_one(
        steps in steps(),
        merge in any::<bool>(),
    ) {
        let config = Config { merge, ..config(6) };
        prop_assert_eq!(run(true, config, &steps), vec![]);
    }
}

/// Low requests have all tags except the reserved one. The next low request waits for the gate, and a request of the
/// high rank waits for this one.
fn behind_a_refused_one(op: Op) -> Vec<Step> {
    let mut steps: Vec<Step> = (0..3)
        .map(|n| Step::Arrive(Op::Read, 100 * n, 8, false))
        .collect();
    let len = if op == Op::Flush { 0 } else { 8 };
    steps.push(Step::Arrive(op, 204, len, true));
    steps
}

#[test]
fn an_overlap_hands_on_rank() {
    assert_eq!(run(true, config(6), &behind_a_refused_one(Op::Write)), []);
    let wrong = run(false, config(6), &behind_a_refused_one(Op::Write));
    assert_eq!(wrong, [RequestId::Client(2)]);
}

#[test]
fn a_flush_hands_on_rank() {
    assert_eq!(run(true, config(6), &behind_a_refused_one(Op::Flush)), []);
    let wrong = run(false, config(6), &behind_a_refused_one(Op::Flush));
    assert_eq!(wrong, [RequestId::Client(2)]);
}

#[test]
fn a_flush_of_the_low_rank_hands_on_that_of_those_behind_it() {
    let mut steps = behind_a_refused_one(Op::Read);
    steps[3] = Step::Arrive(Op::Flush, 0, 0, false);
    assert_eq!(run(false, config(6), &steps), [], "nobody outranks it");
    steps.push(Step::Arrive(Op::Read, 900, 8, true));
    assert_eq!(run(true, config(6), &steps), []);
    assert_eq!(run(false, config(6), &steps), [RequestId::Client(2)]);
}

#[test]
fn one_tag_is_kept_for_the_higher_rank() {
    let mut rig = Rig::new(config(3), AgedRanks::new(3, 100));
    for id in 0..5 {
        rig.arrive(arrival(id, Op::Read, id * 100, 8, 0));
    }
    assert_eq!(rig.in_drive.len(), 2);
    assert_eq!(rig.engine.waiting(), 3);
    let mut high = arrival(5, Op::Read, 900, 8, 0);
    high.class = Class::REAL_TIME;
    rig.arrive(high);
    assert_eq!(rig.in_drive.len(), 3);
    rig.arrive(Arrival {
        id: RequestId::Client(6),
        ..high
    });
    assert_eq!(rig.in_drive.len(), 3, "the drive is full");
    rig.complete(0, Outcome::Done);
    let sent = rig.finish();
    let ids: Vec<_> = sent.iter().map(|sent| sent.parts[0]).collect();
    assert_eq!(ids, [0, 1, 5, 6, 2, 3, 4].map(RequestId::Client));
}

#[test]
fn nothing_goes_while_a_command_is_late() {
    let mut rig = Rig::new(config(4), AgedRanks::new(4, 2));
    for id in 0..12 {
        rig.arrive(arrival(id, Op::Read, id * 100, 8, 0));
    }
    // The first stays; of the others each lets another in, until the first is late.
    for others in [3, 3, 3, 2] {
        assert_eq!(rig.in_drive.len(), others);
        rig.complete(1, Outcome::Done);
    }
    rig.event(Event::Ordered(GateOrder::Age(4)));
    assert_eq!(rig.in_drive.len(), 3, "the order lets it be later");
    rig.complete(0, Outcome::Done);
    assert_eq!(rig.in_drive.len(), 3);
    rig.finish();
}

#[test]
fn requests_that_touch_merge_within_a_lane_only() {
    let mut rig = Rig::new(config(2), AgedRanks::new(2, 100));
    let mut new = arrival(0, Op::Read, 900, 8, 0);
    rig.arrive(new);
    for (id, start, class) in [
        (1, 0, Class::BEST_EFFORT),
        (2, 8, Class::BEST_EFFORT),
        (3, 16, Class::IDLE),
    ] {
        new = arrival(id, Op::Read, start, 8, 0);
        new.class = class;
        rig.arrive(new);
    }
    assert_eq!(rig.engine.stats().merged_back, 1);
    assert_eq!(rig.engine.waiting(), 2);
    rig.finish();
}
