//! Strategies for what arrives at a scheduler.

use headtime_sched::{Class, Flags, Op, Origin, Request, Tag};
use headtime_units::{Extent, Lba, Nanos, Time};
use proptest::prelude::*;

/// Sectors of the toy disk. Every arrival is below this address.
pub const CAPACITY: u64 = 100_000;

/// Most gestures of a scenario.
const GESTURES_MAX: usize = 7;
/// Most arrivals of a gesture.
const GESTURE_MAX: usize = 11;

/// A request that is going to arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time of the arrival.
    pub at: Time,
    /// Time for which the engine holds the request back before the scheduler sees it, as with an overlap.
    pub held: Nanos,
    /// Operation.
    pub op: Op,
    /// Sectors that the request addresses.
    pub extent: Extent,
    pub process: u32,
    pub class: Class,
}

impl Arrival {
    /// A best-effort request of process 0 that is not held back.
    pub fn new(at: Time, op: Op, extent: Extent) -> Arrival {
        Arrival {
            at,
            held: Nanos::ZERO,
            op,
            extent,
            process: 0,
            class: Class::BEST_EFFORT,
        }
    }

    /// Time at which the scheduler sees the request.
    pub fn inserted(&self) -> Time {
        self.at + self.held
    }

    /// The arrival as a request with this tag.
    pub fn request(&self, tag: Tag) -> Request {
        Request {
            tag,
            op: self.op,
            extent: self.extent,
            flags: Flags::NONE,
            origin: Origin {
                process: self.process,
                ..Origin::default()
            },
            class: self.class,
            arrival: self.at,
        }
    }
}

/// Arrivals and the settings with which a checker tries a scheduler.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Requests in the order in which the scheduler sees them.
    pub arrivals: Vec<Arrival>,
    /// Number of requests that the disk takes at once, at least 1.
    pub depth: usize,
    /// True if the checker merges requests that touch.
    pub merge: bool,
    /// Number of arrivals after which the scheduler is drained and another takes over.
    pub swap_after: Option<usize>,
    /// Number of occasions without a withdrawal before the checker withdraws a queued request. Decisions, arrivals
    /// and all other events are occasions.
    pub withdraw_every: Option<usize>,
}

impl Scenario {
    /// A scenario with these arrivals, at depth 1 and with merging.
    pub fn new(mut arrivals: Vec<Arrival>) -> Scenario {
        arrivals.sort_by_key(Arrival::inserted);
        Scenario {
            arrivals,
            depth: 1,
            merge: true,
            swap_after: None,
            withdraw_every: None,
        }
    }
}

/// Scenarios with arrivals of all kinds: bursts, sequential runs, the same address many times and overlapping
/// requests. They have up to four processes, three classes, and requests that are held back. The depth is 1 to 4, and
/// some scenarios swap the scheduler. Most start at time 0 and some near the end of time.
pub fn scenarios() -> impl Strategy<Value = Scenario> {
    let held = prop_oneof![9 => Just(0_u64), 1 => 0..30_000_u64];
    let class = prop_oneof![6 => Just(1_u8), 1 => Just(0), 1 => Just(2)];
    with_extras(held, class)
}

/// As [`scenarios`], but of one class, with nothing held back and without a swap. Bounds in time are stated for such
/// scenarios.
pub fn plain_scenarios() -> impl Strategy<Value = Scenario> {
    with_extras(Just(0), Just(1)).prop_map(|scenario| Scenario {
        swap_after: None,
        withdraw_every: None,
        ..scenario
    })
}

fn with_extras(
    held_us: impl Strategy<Value = u64>,
    class: impl Strategy<Value = u8>,
) -> impl Strategy<Value = Scenario> {
    // Each arrival can be left out by itself, so that a failure shrinks to the few that matter.
    let kept = prop::bool::weighted(0.97);
    let arrival = (held_us, class, kept);
    let gesture = (0..25_000_u64, gesture()).prop_map(shifted);
    let arrivals = prop::collection::vec(gesture, 1..=GESTURES_MAX).prop_map(|all| all.concat());
    let extras = prop::collection::vec(arrival, GESTURES_MAX * GESTURE_MAX);
    (
        arrivals,
        extras,
        1..5_usize,
        any::<bool>(),
        prop::option::of(0..60_usize),
        begins(),
        prop::option::weighted(0.3, 1..6_usize),
    )
        .prop_map(
            |(arrivals, extras, depth, merge, swap_after, begins, withdraw_every)| {
                let arrivals = arrivals
                    .into_iter()
                    .zip(extras)
                    .filter(|(_, (_, _, kept))| *kept)
                    .map(|(arrival, (held, class, _))| Arrival {
                        at: arrival.at + begins,
                        held: Nanos::from_micros(held),
                        class: Class(class),
                        ..arrival
                    })
                    .collect();
                let scenario = Scenario::new(arrivals);
                Scenario {
                    depth,
                    merge,
                    // The number is limited to the arrivals, so that a shrunk scenario still has a swap.
                    swap_after: swap_after.map(|after| after.min(scenario.arrivals.len())),
                    withdraw_every,
                    ..scenario
                }
            },
        )
}

/// Time at which a scenario begins. From an hour before the latest permitted time there is room for the whole
/// scenario.
fn begins() -> impl Strategy<Value = Nanos> {
    const LATE: Nanos = Nanos::from_nanos(Time::LATEST.as_nanos() - 3_600_000_000_000);
    let other = [Nanos::from_nanos(1), Nanos::from_secs(90_000), LATE];
    prop_oneof![
        9 => Just(Nanos::ZERO),
        1 => prop::sample::select(other.to_vec()),
    ]
}

fn shifted((by_us, mut arrivals): (u64, Vec<Arrival>)) -> Vec<Arrival> {
    for arrival in &mut arrivals {
        arrival.at += Nanos::from_micros(by_us);
    }
    arrivals
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![6 => Just(Op::Read), 4 => Just(Op::Write), 1 => Just(Op::Discard)]
}

/// Some arrivals that belong together, from time 0 on.
fn gesture() -> impl Strategy<Value = Vec<Arrival>> {
    let len = prop_oneof![Just(1_u64), Just(8), 1..32_u64];
    let common = (op(), 0..CAPACITY - 2_000, len, 0..4_u32);
    (common, 1..=GESTURE_MAX as u64, 0..3_000_u64, shape()).prop_map(
        |((op, start, len, process), count, gap_us, shape)| {
            let place = |index: u64| match shape {
                Shape::Sequential => start + index * len,
                Shape::Descending => start + (count - index) * len,
                Shape::Same => start,
                // Every second piece first, and then the gaps between them.
                Shape::Gaps if index < count.div_ceil(2) => start + 2 * index * len,
                Shape::Gaps => start + (2 * (index - count.div_ceil(2)) + 1) * len,
                Shape::Overlapping => start + index * len.div_ceil(2),
                Shape::Every(step) => (start + index * step) % (CAPACITY - 32),
            };
            (0..count)
                .map(|index| Arrival {
                    process,
                    ..Arrival::new(
                        Time::ZERO + Nanos::from_micros(gap_us * index),
                        op,
                        Extent::at(place(index), len),
                    )
                })
                .collect()
        },
    )
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    Sequential,
    Descending,
    Gaps,
    Same,
    Overlapping,
    Every(u64),
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        2 => Just(Shape::Sequential),
        1 => Just(Shape::Descending),
        2 => Just(Shape::Gaps),
        1 => Just(Shape::Same),
        1 => Just(Shape::Overlapping),
        4 => (1..CAPACITY).prop_map(Shape::Every),
    ]
}

/// A steady load ahead of the head, which leaves one request behind for as long as the policy permits. A policy that
/// starves requests shows it in this scenario.
///
/// The request left behind is a read of sector 0, the second arrival. After this read come `count` ascending reads,
/// each at the end of the last but one.
pub fn starving(count: u64) -> Scenario {
    const STEP: u64 = 16;
    let gap = crate::ToyDisk::access_time(Lba::new(STEP), Lba::ZERO, 8);
    let ahead = (0..count).map(|index| {
        let at = Time::ZERO + gap * index.saturating_sub(2);
        Arrival::new(at, Op::Read, Extent::at(1_000 + index * STEP, 8))
    });
    let behind = Arrival::new(Time::from_nanos(1), Op::Read, Extent::at(0, 8));
    Scenario::new(ahead.chain([behind]).collect())
}
