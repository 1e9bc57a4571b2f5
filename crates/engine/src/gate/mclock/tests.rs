//! Tests of `mclock` with a drive that serves one command at a time, and with a second implementation.

use super::*;
use crate::gate::{GateSpec, LaneState};
use headtime_sched::{Flags, Op};
use headtime_units::{Extent, Lba, Sectors};
use proptest::prelude::*;
use std::collections::VecDeque;

const MS: Nanos = Nanos::from_millis(1);
/// Sectors of 1 MiB.
const MIB: u64 = 2048;

/// Requests that wait, by lane: their arrival and size in sectors.
struct Queues(Vec<VecDeque<(Time, u64)>>);

impl Lanes for Queues {
    fn state(&self, lane: Lane) -> LaneState {
        let waiting = &self.0[lane.index()];
        LaneState {
            queued: waiting.len(),
            ready: !waiting.is_empty(),
            ..LaneState::default()
        }
    }
}

/// A gate, and a drive with a queue of one command.
struct Bench {
    gate: MClock,
    queues: Queues,
    now: Time,
}

impl Bench {
    /// A gate with 100 MiB/s and 100 IOPS, so that a request costs 1 MiB at least. The clock starts at 1000 s.
    fn new(options: &str) -> Bench {
        let spec: GateSpec = format!("mclock:{options}").parse().unwrap();
        let gate = MClock::new(spec.options(), &Config::default());
        Bench {
            queues: Queues(vec![VecDeque::new(); gate.lanes()]),
            gate,
            now: Time::ZERO + Nanos::from_secs(1000),
        }
    }

    fn ask(&mut self, lane: usize, count: usize, sectors: u64) {
        self.queues.0[lane].extend([(self.now, sectors)].repeat(count));
        // The engine asks whenever a lane is ready, also if the drive is busy.
        self.gate.look(self.now, &self.queues);
    }

    /// Serves one command. Returns its lane, if one goes.
    fn serve(&mut self, time: Nanos) -> Option<usize> {
        let Next::Take(lane) = self.gate.next(self.now, &self.queues) else {
            return None;
        };
        let (arrival, sectors) = self.queues.0[lane.index()].pop_front()?;
        let command = Request {
            tag: DriveTag(0),
            op: Op::Read,
            extent: Extent::new(Lba::ZERO, Sectors::new(sectors)),
            arrival,
            origin: Origin::default(),
            class: Class::BEST_EFFORT,
            flags: Flags::NONE,
        };
        self.gate.taken(self.now, &command, lane);
        self.now += time;
        self.gate.returned(self.now, DriveTag(0));
        Some(lane.index())
    }

    /// Serves commands of 10 ms in turn, while each of these lanes always has requests. Returns the number of commands
    /// of each lane.
    fn served<const N: usize>(&mut self, sectors: [u64; N], commands: u64) -> [u64; N] {
        let mut served = [0; N];
        for (lane, sectors) in sectors.into_iter().enumerate() {
            self.ask(lane, 2, sectors);
        }
        for _ in 0..commands {
            let lane = self.serve(MS * 10).expect("a command goes");
            served[lane] += 1;
            self.ask(lane, 1, sectors[lane]);
        }
        served
    }
}

/// The rest of the options of [`Bench::new`].
const TEN_MS: &str = "bandwidth=100:iops=100";

#[test]
fn tags_grow_by_cost_over_reservation_and_by_cost_over_weight() {
    let mut bench = Bench::new(&format!("{TEN_MS}:reservations=0/10:weights=3/1"));
    let start = bench.now;
    bench.ask(0, 30, 8);
    bench.ask(1, 30, 8);
    let order: Vec<usize> = (0..22).map(|_| bench.serve(MS * 10).unwrap()).collect();
    // Lane 1 has R = 0, 100, 200 ms. In units of 1 MiB, P is 0, 1, 2.. in lane 1, and 0, 1/3, 2/3.. in lane 0.
    let expected = [
        1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0,
    ];
    assert_eq!(order, expected);
    let lane = bench.gate.clients[1];
    assert_eq!(lane.reserved, start + MS * 300);
    assert_eq!(lane.weighed, (6 * PARTS) << 20);
}

#[test]
fn a_reservation_is_kept_at_the_right_capacity_missed_at_half_and_exceeded_at_double() {
    // The drive serves 100 requests a second, and 40 % are reserved. The weight of lane 1 has next to no effect.
    let served = [50, 100, 200].map(|of| {
        let options = format!("bandwidth={of}:iops={of}:reservations=0/40:weights=1000");
        Bench::new(&options).served([8, 8], 1000)
    });
    let expected = [[800, 200], [600, 400], [200, 800]];
    assert_eq!(served, expected);
}

#[test]
fn reservations_beyond_the_capacity_exclude_lanes_without_one() {
    let mut bench = Bench::new("bandwidth=200:iops=200:reservations=0/40/60");
    // Both reservations are late all the time, so arrivals decide between the two.
    assert_eq!(bench.served([8, 8, 8], 1000), [0, 500, 500]);
}

#[test]
fn a_request_costs_its_bytes_and_no_less_than_bandwidth_over_iops() {
    let rate = GateOrder::Rate {
        lane: Lane(1),
        rate: 40 * MIB,
    };
    for (sectors, expected) in [(8, 400), (MIB, 400), (2 * MIB, 200), (4 * MIB, 100)] {
        let mut bench = Bench::new(&format!("{TEN_MS}:weights=1000"));
        bench.gate.obey(bench.now, &rate);
        let [_, served] = bench.served([8, sectors], 1000);
        assert!(served.abs_diff(expected) <= 1, "{served} of {sectors}");
    }
}

#[test]
fn a_lane_that_asks_for_nothing_keeps_its_credit_for_300_s_and_no_longer() {
    for (pause, expected) in [(299, 20), (301, 10)] {
        let mut bench = Bench::new(TEN_MS);
        bench.ask(1, 1, 8);
        bench.serve(MS);
        bench.ask(0, 1000, 8);
        for _ in 0..30 {
            bench.serve(MS);
        }
        bench.now += Nanos::from_secs(pause);
        bench.serve(MS);
        bench.ask(1, 100, 8);
        let ones: usize = (0..20).map(|_| bench.serve(MS).unwrap()).sum();
        assert_eq!(ones, expected, "{pause} s");
    }
}

/// A lane of a second implementation, which follows the description of dmClock. A request that becomes its lane's head
/// gets tags by its own arrival and cost.
#[derive(Clone, Default)]
struct Described {
    /// Arrivals.
    waiting: VecDeque<i128>,
    cost: i128,
    rate: i128,
    weight: i128,
    /// Tags R and P of the head and of the request before.
    head: [i128; 2],
    last: [i128; 2],
    delta: i128,
    seen: Option<i128>,
}

const SECOND: i128 = 1_000_000_000;

impl Described {
    /// Makes the tags of the head.
    fn tag(&mut self) {
        let arrival = self.waiting.front().copied().unwrap_or_default();
        let [r, p] = self.last;
        let r = match self.rate {
            0 => i128::MAX,
            rate => arrival.max(r + self.cost * SECOND / rate),
        };
        self.head = [r, arrival.max(p + self.cost * SECOND / self.weight)];
    }

    fn is_active(&self, now: i128) -> bool {
        !self.waiting.is_empty() || self.seen.is_some_and(|seen| now < seen + 300 * SECOND)
    }
}

fn arrive(lanes: &mut [Described], lane: usize, now: i128, count: usize) {
    if !lanes[lane].is_active(now) {
        let active = lanes.iter().filter(|lane| lane.is_active(now));
        let least = active.map(|lane| lane.head[1] + lane.delta).min();
        lanes[lane].delta = least.map_or(0, |least| least - now);
        lanes[lane].last = [0, 0];
    }
    lanes[lane].waiting.extend([now].repeat(count));
    lanes[lane].seen = Some(now);
    lanes[lane].tag();
}

/// Returns the lane that goes.
fn pull(lanes: &mut [Described], now: i128) -> Option<usize> {
    let with_requests = (0..lanes.len()).filter(|lane| !lanes[*lane].waiting.is_empty());
    let with_requests: Vec<usize> = with_requests.collect();
    for lane in &with_requests {
        lanes[*lane].seen = Some(now);
    }
    let first = with_requests
        .iter()
        .min_by_key(|lane| lanes[**lane].head[0])?;
    let is_due = lanes[*first].head[0] <= now;
    let weighed = |lane: &&usize| lanes[**lane].head[1] + lanes[**lane].delta;
    let lane = match is_due {
        true => *first,
        false => *with_requests.iter().min_by_key(weighed)?,
    };
    let served = &mut lanes[lane];
    served.waiting.pop_front();
    served.last = served.head;
    if !is_due && served.rate > 0 {
        served.last[0] -= served.cost * SECOND / served.rate;
    }
    served.tag();
    Some(lane)
}

proptest! {
    /// All requests of a lane have a size, and a lane without requests gets several at once. The gate then knows costs
    /// and arrivals in advance.
    #[test]
    fn a_second_implementation_decides_the_same(
        kinds in prop::collection::vec((0..70_u64, 0..3_u32, 1..5_000_u64), 2..5),
        steps in prop::collection::vec((0..4_usize, 1..8_usize, 0..8_usize, 1..40_u64, 0..12_u64), 1..150),
    ) {
        let list = |of: &dyn Fn(&(u64, u32, u64)) -> u64| {
            kinds.iter().map(|kind| of(kind).to_string()).collect::<Vec<_>>().join("/")
        };
        let (shares, weights) = (list(&|kind| kind.0), list(&|kind| 1 << kind.1));
        let mut bench = Bench::new(&format!("{TEN_MS}:reservations={shares}:weights={weights}"));
        let described = |kind: &(u64, u32, u64)| Described {
            cost: i128::from(kind.2 * 512).max(1 << 20),
            rate: i128::from(kind.0 << 20),
            weight: 1 << kind.1,
            ..Described::default()
        };
        let mut lanes: Vec<Described> = kinds.iter().map(described).collect();
        // The wall clock exceeds each cost over weight.
        let wall = |bench: &Bench| i128::from(bench.now.as_nanos()) + (1 << 80);
        for (lane, count, served, time, pause) in steps {
            let lane = lane % kinds.len();
            if lanes[lane].waiting.is_empty() {
                let now = wall(&bench);
                arrive(&mut lanes, lane, now, count);
                bench.ask(lane, count, kinds[lane].2);
            }
            for _ in 0..served {
                let now = wall(&bench);
                prop_assert_eq!(bench.serve(MS * time), pull(&mut lanes, now));
            }
            if pause == 0 {
                bench.now += Nanos::from_secs(200);
            }
        }
    }
}
