//! Tests of the order of releases against the plain rule, and of the cost.

use super::*;
use headtime_sched::Op;
use headtime_testkit::steps;
use headtime_units::{Sectors, Time};
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};

fn request(tag: u32, op: Op, start: u64, len: u64) -> Request {
    Request::new(Tag(tag), op, Extent::at(start, len), Time::ZERO)
}

fn conflict(one: &Request, other: &Request) -> bool {
    (one.op.changes() || other.op.changes()) && one.extent.overlaps(other.extent)
}

/// The plain rule: a request starts when no earlier conflicting request is live.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    /// Live requests in order of arrival; true if the request has started.
    live: Vec<(Request, bool)>,
}

impl Plain {
    pub fn admit(&mut self, request: Request) -> bool {
        let starts = !self.live.iter().any(|(other, _)| conflict(&request, other));
        self.live.push((request, starts));
        starts
    }

    /// Removes a request. Returns the requests that start, in order.
    pub fn finish(&mut self, tag: Tag) -> Vec<Tag> {
        self.live.retain(|(request, _)| request.tag != tag);
        let mut freed = Vec::new();
        for at in 0..self.live.len() {
            let (request, started) = self.live[at];
            let free = |(earlier, _): &(Request, bool)| !conflict(&request, earlier);
            if !started && self.live[..at].iter().all(free) {
                self.live[at].1 = true;
                freed.push(request.tag);
            }
        }
        freed
    }

    pub fn held(&self) -> usize {
        self.live.iter().filter(|(_, started)| !started).count()
    }
}

impl Precedence {
    /// Creates an order that checks every result against the plain rule.
    pub(crate) fn against_the_plain_rule() -> Precedence {
        Precedence {
            plain: Some(Plain::default()),
            ..Precedence::default()
        }
    }
}

/// An order that is checked against the plain rule, with the free tags.
struct Both {
    order: Precedence,
    free: BTreeSet<u32>,
    tags: u32,
}

impl Both {
    fn new() -> Both {
        Both {
            order: Precedence::against_the_plain_rule(),
            free: BTreeSet::new(),
            tags: 0,
        }
    }

    fn plain(&self) -> &Plain {
        self.order.plain.as_ref().expect("it has one")
    }

    fn admit(&mut self, op: Op, start: u64, len: u64) {
        let tag = self.free.pop_last().unwrap_or_else(|| {
            self.tags += 1;
            self.tags - 1
        });
        self.order.admit(&request(tag, op, start, len));
        self.order.crowd.check();
    }

    /// Finishes one of the started requests.
    fn finish(&mut self, which: usize) {
        let started = self.plain().live.iter().filter(|(_, started)| *started);
        let started: Vec<Tag> = started.map(|(request, _)| request.tag).collect();
        let Some(which) = which.checked_rem(started.len()) else {
            return;
        };
        let tag = started[which];
        self.order.finish(tag);
        while self.order.next_freed().is_some() {}
        self.free.insert(tag.0);
        self.order.crowd.check();
    }
}

/// Extents that mostly overlap, at both ends of the address space.
fn extent() -> impl Strategy<Value = (u64, u64)> {
    let near = |base: u64| (0..64_u64, 1..24_u64).prop_map(move |(at, len)| (base + at, len));
    prop_oneof![
        3 => near(0),
        3 => near(1000),
        1 => near(u64::MAX - 100),
        4 => (0..3_u64).prop_map(|block| (8 * block, 8)),
        1 => (0..64_u64, 6..64_u32).prop_map(|(at, bits)| (at, (1_u64 << bits) - 1 - at)),
        1 => (0..1000_u64).prop_map(|cut| (cut, u64::MAX - 2 * cut)),
        1 => (0..1_u64 << 40, 1..1_u64 << 30),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Admit(Op, u64, u64),
    Finish(usize),
}

fn steps_of() -> impl Strategy<Value = Vec<Step>> {
    // Several loads in one sequence: loads that grow, shrink, mostly read, or only write.
    let run = (0..4_u32, 1..5_u32, 0..5_u32).prop_flat_map(|(reads, changes, finishes)| {
        let op = prop_oneof![
            4 * reads + 1 => Just(Op::Read),
            3 * changes => Just(Op::Write),
            1 => Just(Op::Discard),
        ];
        let step = prop_oneof![
            3 => (op, extent()).prop_map(|(op, (start, len))| Step::Admit(op, start, len)),
            finishes => any::<usize>().prop_map(Step::Finish),
        ];
        proptest::collection::vec(step, 0..120)
    });
    let reads = (extent(), 0..40_usize)
        .prop_map(|((start, len), many)| vec![Step::Admit(Op::Read, start, len); many]);
    let drain = Just(vec![Step::Finish(3); 200]);
    let part = prop_oneof![6 => run, 1 => reads, 1 => drain];
    proptest::collection::vec(part, 1..5).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn releases_are_those_of_the_plain_rule(steps in steps_of(), drain in any::<usize>()) {
        let mut both = Both::new();
        for step in steps {
            match step {
                Step::Admit(op, start, len) => both.admit(op, start, len),
                Step::Finish(which) => both.finish(which),
            }
        }
        let mut which = drain;
        while !both.plain().live.is_empty() {
            both.finish(which);
            which = which.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        }
        let Precedence { apart, crowd, changing, first_read, last_read, .. } = &both.order;
        prop_assert!(apart.is_empty() && crowd.is_empty() && *changing == 0);
        prop_assert_eq!((*first_read, *last_read), (NIL, NIL));
    }
}

/// Order in which started requests are finished.
#[derive(Clone, Copy, Debug)]
enum Finish {
    FirstStarted,
    LastStarted,
    /// Far from each other.
    Scattered,
}

/// A name, and a function that returns a given number of requests.
type Shape = (&'static str, fn(u64) -> Vec<(Op, u64, u64)>);

/// Request sequences with many overlaps.
const SHAPES: &[Shape] = &[
    ("overwrites of one block", |n| {
        (0..n).map(|_| (Op::Write, 64, 8)).collect()
    }),
    ("overwrites of two blocks", |n| {
        (0..n).map(|i| (Op::Write, 64 + i % 2 * 8, 8)).collect()
    }),
    ("overwrites of two blocks that begin anywhere", |n| {
        (0..n).map(|i| (Op::Write, 67 + i % 2 * 9, 9)).collect()
    }),
    ("reads of one block behind a write of it", |n| {
        (0..n)
            .map(|i| (if i == 0 { Op::Write } else { Op::Read }, 64, 8))
            .collect()
    }),
    ("reads of one block", |n| {
        (0..n).map(|_| (Op::Read, 64, 8)).collect()
    }),
    ("reads of one block, and a write of it behind them", |n| {
        (0..n)
            .map(|i| (if i + 1 == n { Op::Write } else { Op::Read }, 64, 8))
            .collect()
    }),
    ("writes of which each overlaps its neighbours", |n| {
        (0..n).map(|i| (Op::Write, 5 * i, 13)).collect()
    }),
    ("reads and writes in turn, of many lengths", |n| {
        let op = |i| if i % 2 == 0 { Op::Read } else { Op::Write };
        (0..n)
            .map(|i| (op(i), 7 * i % 4096, 1 + 31 * i % 500))
            .collect()
    }),
    ("a large write over small ones", |n| {
        let small = (0..n - 1).map(|i| (Op::Write, 8 * i, 8));
        small.chain([(Op::Write, 3, 8 * n - 5)]).collect()
    }),
    ("small writes over a large one", |n| {
        let small = (0..n - 1).map(|i| (Op::Write, 8 * i, 8));
        [(Op::Write, 3, 8 * n)].into_iter().chain(small).collect()
    }),
    ("large reads over small writes", |n| {
        let small = (0..n / 2).map(|i| (Op::Write, 8 * i, 8));
        let large = (0..n / 2).map(|i| (Op::Read, i % 77, 4 * n - i % 91));
        small.chain(large).collect()
    }),
    ("small writes over large reads", |n| {
        let large = (0..n / 2).map(|i| (Op::Read, i % 77, 4 * n - i % 91));
        let small = (0..n / 2).map(|i| (Op::Write, 8 * i, 8));
        large.chain(small).collect()
    }),
    (
        "small reads beside a large one, and a write elsewhere",
        |n| {
            let elsewhere = (Op::Write, 1 << 40, 8);
            let large = (Op::Read, 0, 1 << 39);
            let small = (0..n).map(|i| (Op::Read, (1 << 39) + 16 * i, 8));
            [elsewhere, large].into_iter().chain(small).collect()
        },
    ),
    ("discards of everything among small writes", |n| {
        (0..n)
            .map(|i| match i % 10 {
                0 => (Op::Discard, 0, 8 * n),
                _ => (Op::Write, 8 * (i * 7919 % n), 8),
            })
            .collect()
    }),
    ("writes that overlap nothing", |n| {
        (0..n).map(|i| (Op::Write, i * 7919 % n * 16, 8)).collect()
    }),
];

/// Admits all, then finishes all.
fn cost(requests: &[(Op, u64, u64)], finish: Finish) -> u64 {
    let mut order = Precedence::default();
    let mut started = VecDeque::new();
    let mut finished = 0;
    let steps = steps::of(|| {
        for (tag, (op, start, len)) in requests.iter().enumerate() {
            if order.admit(&request(tag as u32, *op, *start, *len)) {
                started.push_back(Tag(tag as u32));
            }
        }
        let mut turn = 0_usize;
        while !started.is_empty() {
            turn += 7919;
            let next = match finish {
                Finish::FirstStarted => started.pop_front(),
                Finish::LastStarted => started.pop_back(),
                Finish::Scattered => started.swap_remove_back(turn % started.len()),
            };
            order.finish(next.expect("it is not empty"));
            finished += 1;
            started.extend(std::iter::from_fn(|| order.next_freed()));
        }
    });
    assert_eq!(finished, requests.len());
    steps
}

#[test]
fn what_overlaps_costs_the_depth_of_the_tree_and_not_its_number() {
    for (name, shape) in SHAPES {
        for finish in [Finish::FirstStarted, Finish::LastStarted, Finish::Scattered] {
            let [few, many] = [2_000, 32_000].map(|n| cost(&shape(n), finish) as f64 / n as f64);
            // With 16 times as many requests, the tree is four levels deeper, and the largest requests have eight
            // pieces more. If each request were compared with all others, the cost would be 16 times as high.
            assert!(
                many <= 1.6 * few + 8.0 && many < 150.0,
                "{name}, {finish:?}: {few} steps a request with 2000, {many} with 32000"
            );
        }
    }
}

#[test]
fn reads_are_not_looked_at_while_nothing_changes() {
    let reads: Vec<(Op, u64, u64)> = (0..1_000).map(|i| (Op::Read, i % 7, 8)).collect();
    assert_eq!(cost(&reads, Finish::Scattered), 0);
}

#[test]
fn an_extent_at_the_end_of_all_addresses_is_one_like_others() {
    let mut both = Both::new();
    both.admit(Op::Write, u64::MAX - 1, 1);
    both.admit(Op::Discard, 0, u64::MAX);
    both.admit(Op::Read, u64::MAX - 1, 1);
    both.admit(Op::Write, 0, 1);
    for _ in 0..4 {
        both.finish(0);
    }
    assert!(both.plain().live.is_empty());
}

#[test]
#[should_panic(expected = "request 1 waits for others")]
fn what_waits_cannot_be_complete() {
    let mut order = Precedence::default();
    assert!(order.admit(&request(0, Op::Write, 0, 8)));
    assert!(!order.admit(&request(1, Op::Write, 0, 8)));
    order.finish(Tag(1));
}

#[test]
#[should_panic(expected = "request 0 is not live")]
fn what_is_complete_is_so_once() {
    let mut order = Precedence::default();
    order.admit(&request(0, Op::Write, 0, 8));
    order.finish(Tag(0));
    order.finish(Tag(0));
}

#[test]
fn pieces_are_aligned_and_at_most_two_of_each_size() {
    for (start, len) in [(0, 1), (3, 8), (63, 4096), (0, u64::MAX), (1, u64::MAX - 1)] {
        let end = Extent::at(start, len).end().get();
        let (mut at, mut levels) = (start, Vec::new());
        while at < end {
            let level = tree::level_of(at, end);
            assert!(at.is_multiple_of(1 << level));
            levels.push(level);
            at += 1 << level;
        }
        assert_eq!(at, end);
        let most = (0..64).map(|level| levels.iter().filter(|l| **l == level).count());
        assert!(most.max() <= Some(2), "{start}+{len}: {levels:?}");
        assert!(Sectors::new(levels.len() as u64) <= Sectors::new(126));
    }
}
