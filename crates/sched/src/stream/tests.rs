mod directives;
mod followers;

use super::*;
use crate::deadline::{Deadline, DeadlineConfig};
use crate::tests::{at, grown, read};
use crate::{Dispatch, Foretold, HeadState, Noop, Scheduler, Value};
use headtime_units::{Extent, Sectors};
use std::format;
use std::string::String;
use std::vec;

/// Returns a curve: 1 ms up to 100 sectors away, 5 ms at 1,000, 10 ms from 100,000 on. The mean is near 12 ms.
pub fn curve() -> Arc<ServiceCurve> {
    let points = vec![
        (Sectors::new(0), Nanos::from_millis(1)),
        (Sectors::new(100), Nanos::from_millis(1)),
        (Sectors::new(1_000), Nanos::from_millis(5)),
        (Sectors::new(100_000), Nanos::from_millis(10)),
        (Sectors::new(2_000_000), Nanos::from_millis(10)),
    ];
    Arc::new(ServiceCurve::new(points, ServiceCurve::BACKWARD).expect("a curve"))
}

/// Drives a scheduler with a disk that follows the curve, at a depth, in order. Requests come at given times. The steps
/// are recorded as text: `3@12` means that request 3 was handed out at 12 ms, `12-15` that the disk was held from 12 to
/// 15 ms.
pub struct World<S> {
    pub sched: S,
    pub depth: usize,
    /// Foretold requests by time. They are announced before any other decision at that time.
    pub tell_at: Vec<(Time, Vec<Foretold>)>,
    curve: Arc<ServiceCurve>,
    head: Lba,
    now: Time,
    /// Requests in the drive, with their completion times.
    drive: Vec<(Time, Request)>,
    pub held: Option<(Time, Time)>,
    /// Time of each access beyond the curve.
    slow: Nanos,
    steps: String,
}

impl<S: Scheduler> World<S> {
    pub fn new(sched: S) -> World<S> {
        World {
            sched,
            depth: 1,
            tell_at: Vec::new(),
            curve: curve(),
            head: Lba::ZERO,
            now: Time::ZERO,
            drive: Vec::new(),
            held: None,
            slow: Nanos::ZERO,
            steps: String::new(),
        }
    }

    fn note(&mut self, step: &str) {
        if !self.steps.is_empty() {
            self.steps.push(' ');
        }
        self.steps.push_str(step);
    }

    fn held_until_now(&mut self) {
        if let Some((since, _)) = self.held.take()
            && since < self.now
        {
            let step = format!("{}-{}", ms(since), ms(self.now));
            self.note(&step);
        }
    }

    fn ask(&mut self) {
        for (at, told) in &self.tell_at {
            if *at == self.now {
                told.iter()
                    .for_each(|told| self.sched.foretold(self.now, told));
            }
        }
        self.tell_at.retain(|(at, _)| *at > self.now);
        while self.drive.len() < self.depth {
            match self.sched.dispatch(self.now) {
                Dispatch::Request(request) => {
                    self.held_until_now();
                    let step = format!("{}@{}", request.tag.0, ms(self.now));
                    self.note(&step);
                    let start = self.drive.last().map_or(self.now, |(done, _)| *done);
                    let service = self.curve.service(self.head, request.extent.start);
                    self.head = request.extent.end();
                    self.drive.push((start + service + self.slow, request));
                }
                Dispatch::IdleUntil(until) => {
                    assert!(until > self.now);
                    let since = self.held.map_or(self.now, |(since, _)| since);
                    self.held = Some((since, until));
                    return;
                }
                Dispatch::Empty => {
                    assert_eq!(self.sched.queued(), 0);
                    self.held_until_now();
                    return;
                }
            }
        }
    }

    /// Runs until `until`, then inserts these requests.
    pub fn arrive(&mut self, until: Time, requests: &[Request]) {
        self.run(until);
        for request in requests {
            self.sched.insert(self.now, *request);
        }
        self.ask();
    }

    pub fn run(&mut self, until: Time) {
        loop {
            let done = self.drive.first().map_or(Time::NEVER, |(done, _)| *done);
            let wake = self.held.map_or(Time::NEVER, |(_, until)| until);
            let next = done.min(wake);
            if next > until {
                break;
            }
            self.now = next;
            if done == next {
                let (_, request) = self.drive.remove(0);
                self.sched.completed(self.now, &request);
            }
            self.ask();
        }
        self.now = self.now.max(until);
    }

    /// Runs through requests: tag, address, and arrival in milliseconds.
    pub fn through(mut self, arrivals: &[(u32, u64, u64)]) -> String {
        for (tag, lba, ms) in arrivals {
            self.arrive(at(*ms), &[read(*tag, *lba, *ms)]);
        }
        self.run(at(100_000));
        assert_eq!(self.sched.queued(), 0, "{}", self.steps);
        self.steps
    }
}

fn ms(time: Time) -> String {
    let us = time.as_nanos() / 1_000;
    match us % 1_000 {
        0 => format!("{}", us / 1_000),
        part => format!("{}.{part:03}", us / 1_000),
    }
}

fn noop(config: StreamConfig) -> World<Stream<Noop>> {
    World::new(Stream::new(Noop::new(), config, curve()))
}

/// A sequential stream from 500,000 on. Each request comes 1 ms after the completion of the preceding one. A request at
/// 0 comes while the fourth is served.
const STREAM: [(u32, u64, u64); 8] = [
    (10, 500_000, 0),
    (11, 500_008, 11),
    (12, 500_016, 13),
    (13, 500_024, 15),
    (1, 0, 15),
    (14, 500_032, 17),
    (15, 500_040, 19),
    (16, 500_048, 21),
];

#[test]
fn an_established_stream_is_waited_for() {
    // The wait for the fifth request: 15 ms backward from 16 ms on, less the 1 ms that a child takes itself.
    assert_eq!(
        noop(StreamConfig::DEFAULT).through(&STREAM[..5]),
        "10@0 11@11 12@13 13@15 16-30 1@30"
    );
    assert_eq!(
        noop(StreamConfig::DEFAULT).through(&STREAM[..6]),
        "10@0 11@11 12@13 13@15 16-17 14@17 18-32 1@32"
    );
}

#[test]
fn with_a_timer_a_wait_and_a_slice_end_at_ticks() {
    let steps = |per_second, slice_ms| {
        let config = StreamConfig {
            hz: Hz::new(per_second),
            slice: Nanos::from_millis(slice_ms),
            ..StreamConfig::DEFAULT
        };
        noop(config).through(&STREAM[..5])
    };
    // 14 ms are three ticks of 4 ms, or 14 ticks of 1 ms. They are one tick of 10 ms, and 6 ms of this tick have passed
    // at 16 ms.
    assert_eq!(steps(250, 124), "10@0 11@11 12@13 13@15 16-28 1@28");
    assert_eq!(steps(100, 124), "10@0 11@11 12@13 13@15 16-20 1@20");
    assert_eq!(steps(1_000, 124), "10@0 11@11 12@13 13@15 16-30 1@30");
    // The slice of 23 ms since 0 ends after five ticks.
    assert_eq!(steps(250, 23), "10@0 11@11 12@13 13@15 16-20 1@20");
}

#[test]
fn a_stream_below_the_threshold_is_not() {
    let config = StreamConfig {
        threshold: 5,
        ..StreamConfig::DEFAULT
    };
    assert_eq!(
        noop(config).through(&STREAM[..5]),
        "10@0 11@11 12@13 13@15 1@16"
    );
}

#[test]
fn a_long_stream_gets_a_second_chance() {
    // 6 requests: 15 ms by half again, from 20 ms on, less 1 ms.
    assert_eq!(
        noop(StreamConfig::DEFAULT).through(&STREAM[..7]),
        "10@0 11@11 12@13 13@15 16-17 14@17 18-19 15@19 20-41.500 1@41.500"
    );
    let config = StreamConfig {
        tolerance: Millionths::ZERO,
        ..StreamConfig::DEFAULT
    };
    assert_eq!(
        noop(config).through(&STREAM[..7]),
        "10@0 11@11 12@13 13@15 16-17 14@17 18-19 15@19 20-34 1@34"
    );
    // A child of the second chance has size 5, since its parent fell back to 4. So its own wait has no second chance.
    let mut late = STREAM;
    late[7].2 = 40;
    assert_eq!(
        noop(StreamConfig::DEFAULT).through(&late),
        "10@0 11@11 12@13 13@15 16-17 14@17 18-19 15@19 20-40 16@40 41-55 1@55"
    );
}

#[test]
fn a_slice_ends_also_while_waiting() {
    let config = StreamConfig {
        slice: Nanos::from_millis(12),
        ..StreamConfig::DEFAULT
    };
    // The slice began at 0 with the first request of the stream.
    assert_eq!(
        noop(config).through(&STREAM[..6]),
        "10@0 11@11 12@13 13@15 1@16 14@31"
    );
    let config = StreamConfig {
        slice: Nanos::from_millis(20),
        ..StreamConfig::DEFAULT
    };
    assert_eq!(
        noop(config).through(&STREAM[..6]),
        "10@0 11@11 12@13 13@15 16-17 14@17 18-20 1@20"
    );
    let never = StreamConfig {
        slice: Nanos::ZERO,
        ..StreamConfig::DEFAULT
    };
    assert_eq!(
        noop(never).through(&STREAM[..5]),
        "10@0 11@11 12@13 13@15 1@16"
    );
}

#[test]
fn what_expires_goes_at_once() {
    let world = || {
        let deadline = Deadline::new(DeadlineConfig {
            read_expire: Nanos::from_millis(4),
            ..DeadlineConfig::DEFAULT
        });
        World::new(Stream::new(deadline, StreamConfig::DEFAULT, curve()))
    };
    let steps = world().through(&STREAM[..6]);
    assert_eq!(steps, "10@0 11@11 12@13 13@15 16-17 14@17 18-19 1@19");
    // The wait ends at the exact nanosecond.
    let mut world = world();
    for (tag, lba, ms) in &STREAM[..5] {
        world.arrive(at(*ms), &[read(*tag, *lba, *ms)]);
    }
    world.run(at(16));
    let expires = at(19) + Nanos::from_nanos(1);
    assert_eq!(world.held, Some((at(16), expires)));
}

#[test]
fn a_wait_runs_from_completion() {
    let steps = |depth, slow_ms| {
        let config = StreamConfig {
            threshold: 1,
            tolerance: Millionths::ZERO,
            ..StreamConfig::DEFAULT
        };
        let mut world = noop(config);
        world.depth = depth;
        world.arrive(at(0), &[read(10, 500_000, 0)]);
        world.run(at(11));
        world.slow = Nanos::from_millis(slow_ms);
        world.arrive(at(11), &[read(1, 0, 11), read(11, 500_008, 11)]);
        world.through(&[])
    };
    // Request 11 is in the drive from 11 ms on. It takes 1 ms by the curve and 1 or 3 in truth. Request 1 is 15 ms
    // away, less the 1 ms that a child takes.
    for (slow_ms, until) in [(0, 26), (2, 28)] {
        for depth in [1, 2, 8] {
            // If the drive has room, the request is also held back from the drive.
            let from = if depth == 1 { 12 + slow_ms } else { 11 };
            assert_eq!(
                steps(depth, slow_ms),
                format!("10@0 11@11 {from}-{until} 1@{until}"),
                "at depth {depth}"
            );
        }
    }
}

#[test]
fn with_nothing_pending_a_child_beats_the_mean() {
    let config = StreamConfig {
        threshold: 1,
        tolerance: Millionths::ZERO,
        ..StreamConfig::DEFAULT
    };
    // Done at 1 ms; a request that takes 7 ms comes at 7 ms, and the mean is 12.
    let steps = noop(config).through(&[(10, 0, 0), (1, 40_606, 7)]);
    let mean = curve().mean();
    assert!(mean < Nanos::from_millis(13), "{mean}");
    let until = ms(at(1) + mean - Nanos::from_millis(1));
    assert_eq!(steps, format!("10@0 7-{until} 1@{until}"));
}

#[test]
fn a_request_extends_the_nearest_stream() {
    let mut parents = Parents::new(StreamRule::new(curve(), 4, Millionths::ZERO), None);
    let parent = |turn, end, since, size| Parent {
        turn,
        tag: Tag(turn as u32),
        end: Lba::new(end),
        since: at(since),
        limit: Some(Nanos::from_millis(10)),
        size,
        stream: turn,
        deadline: Time::NEVER,
    };
    parents.push(parent(1, 0, 5, 7));
    parents.push(parent(2, 500, 0, 1));
    let nearest = |parents: &Parents, lba| {
        let at = parents.nearest(at(6), Lba::new(lba), |_| unreachable!("all have a limit"));
        at.map(|at| parents.get(at).turn)
    };
    // A child of both is the child of the nearer parent, even if that parent is older and its stream shorter.
    assert_eq!(nearest(&parents, 510), Some(2));
    assert_eq!(nearest(&parents, 10), Some(1));
    // 6 ms after the second parent, a request that takes 5 ms is a child of the first.
    assert_eq!(nearest(&parents, 1_500), Some(1));
    // Too far for both.
    assert_eq!(nearest(&parents, 500_000), None);
    // As near as the first parent, within 100 sectors: the longer stream, then the later parent.
    parents.push(parent(3, 50, 5, 8));
    assert_eq!(nearest(&parents, 60), Some(3));
    parents.push(parent(4, 40, 5, 8));
    assert_eq!(nearest(&parents, 60), Some(4));
}

#[test]
fn what_is_waited_for_takes_others_in_and_joins_nobody() {
    let mut world = noop(StreamConfig::DEFAULT);
    for (tag, lba, ms) in &STREAM[..5] {
        world.arrive(at(*ms), &[read(*tag, *lba, *ms)]);
    }
    world.run(at(16));
    // A request that is not awaited may join a queued request. An awaited request may not.
    let sched = &mut world.sched;
    assert!(sched.may_merge(Tag(1), &read(2, 8, 16)));
    let child = read(14, 500_032, 17);
    assert!(!sched.may_merge(Tag(1), &child));
    sched.insert(at(17), child);
    // Others may join the held request, except for queued ones. The held request may join no other.
    assert!(sched.may_merge(Tag(14), &read(3, 500_040, 17)));
    assert!(!sched.may_merge(Tag(14), &read(1, 0, 15)));
    assert!(!sched.may_merge(Tag(1), &child));
    sched.merged(&grown(child, 500_032, 16));
    assert_eq!(sched.queued(), 2);
    match sched.dispatch(at(17)) {
        Dispatch::Request(request) => assert_eq!(request.extent, Extent::at(500_032, 16)),
        other => panic!("{other:?}"),
    }
}

/// Two windows of read-ahead. The second joins the first, which waits since its reader's slice has ended. It is not
/// held as a child of another reader's request that happens to be near.
#[test]
fn what_continues_a_queued_request_and_not_the_tail_joins_it() {
    let mut world = noop(StreamConfig {
        threshold: 1,
        slice: Nanos::from_millis(15),
        ..StreamConfig::DEFAULT
    });
    for (turn, ms) in [0, 11, 13, 15].into_iter().enumerate() {
        let lba = 10_000 + 8 * turn as u64;
        world.arrive(at(ms), &[read(10 + turn as u32, lba, ms)]);
    }
    let others = [read(1, 0, 15), read(2, 90_000, 15)];
    world.arrive(at(15), &others);
    world.arrive(at(15), &[read(14, 10_032, 15)]);
    world.run(at(17));
    let sched = &mut world.sched;
    // Request 1 is in the drive, and the pending request is farther from its end than this request. By the inequality,
    // this request would be a child of request 1.
    let second = read(15, 10_040, 17);
    let next = || Some(Lba::new(90_000));
    assert!(sched.foresight.awaits(at(17), &second, next));
    assert!(!sched.may_merge(Tag(2), &second));
    assert!(sched.may_merge(Tag(14), &second));
    // The answer is the same once the queued request has grown and ends elsewhere.
    sched.merged(&grown(read(14, 10_032, 15), 10_032, 16));
    assert!(!sched.may_merge(Tag(14), &second));
    assert!(sched.may_merge(Tag(14), &read(16, 10_048, 17)));
    // If the queued request and the tail end at the same address, the new request continues the tail.
    sched.merged(&read(14, 0, 15));
    assert!(!sched.may_merge(Tag(14), &read(3, 8, 17)));
}

#[test]
fn what_is_held_is_drained_with_the_rest_in_order_of_arrival() {
    let mut world = noop(StreamConfig::DEFAULT);
    for (tag, lba, ms) in &STREAM[..5] {
        world.arrive(at(*ms), &[read(*tag, *lba, *ms)]);
    }
    world.run(at(16));
    let sched = &mut world.sched;
    sched.insert(at(17), read(14, 500_032, 17));
    sched.insert(at(17), read(2, 900_000, 17));
    assert_eq!(sched.elevator().queued(), 2);
    let tags: Vec<u32> = sched.drain().iter().map(|request| request.tag.0).collect();
    assert_eq!(tags, [1, 14, 2]);
    assert_eq!((sched.queued(), sched.open().count()), (0, 0));
    assert_eq!(sched.dispatch(at(18)), Dispatch::Empty);
}

#[test]
fn without_time_to_lose_the_disk_is_never_held() {
    let mut world = noop(StreamConfig {
        lost: Millionths(0),
        ..StreamConfig::DEFAULT
    });
    for (tag, lba, ms) in &STREAM[..5] {
        world.arrive(at(*ms), &[read(*tag, *lba, *ms)]);
    }
    world.run(at(1_000));
    assert_eq!(world.sched.waits().waits, 0);
}

#[test]
fn a_held_request_that_is_withdrawn_has_ended_the_wait() {
    let mut world = noop(StreamConfig::DEFAULT);
    for (tag, lba, ms) in &STREAM[..5] {
        world.arrive(at(*ms), &[read(*tag, *lba, *ms)]);
    }
    world.run(at(16));
    let mut sched = world.sched;
    assert_eq!(sched.dispatch(at(16)), Dispatch::IdleUntil(at(30)));
    let child = read(14, 500_032, 17);
    sched.insert(at(17), child);
    assert_eq!(sched.withdraw(Tag(14)), child);
    assert_eq!(sched.queued(), 1);
    // A reused tag is a new request.
    assert!(sched.may_merge(Tag(1), &read(14, 8, 17)));
    assert_eq!(sched.dispatch(at(17)), Dispatch::Request(read(1, 0, 15)));
    let waits = sched.waits();
    assert_eq!((waits.waits, waits.waits_won, waits.waits_lost), (1, 0, 1));
}

#[test]
fn a_wait_goes_on_as_it_was_when_what_it_has_to_beat_is_withdrawn() {
    let mut world = noop(StreamConfig::DEFAULT);
    for (tag, lba, ms) in &STREAM[..5] {
        world.arrive(at(*ms), &[read(*tag, *lba, *ms)]);
    }
    world.run(at(16));
    let mut sched = world.sched;
    // The service time of request 2 equals that of request 1, so request 2 is no child.
    sched.insert(at(16), read(2, 100_000, 16));
    assert_eq!(sched.withdraw(Tag(1)), read(1, 0, 15));
    assert_eq!(sched.dispatch(at(16)), Dispatch::IdleUntil(at(30)));
    // The child wins the wait, whatever other requests leave. Then nothing is left to hold back.
    let child = read(14, 500_032, 17);
    sched.insert(at(17), child);
    sched.withdraw(Tag(2));
    assert_eq!(sched.dispatch(at(17)), Dispatch::Request(child));
    assert_eq!(sched.dispatch(at(17)), Dispatch::Empty);
    let waits = sched.waits();
    assert_eq!((waits.waits, waits.waits_won, waits.waits_lost), (1, 1, 0));
}

#[test]
fn a_follower_that_is_withdrawn_is_not_looked_for_in_the_elevator() {
    let mut world = noop(StreamConfig {
        threshold: 1,
        ..StreamConfig::DEFAULT
    });
    // Two windows that may not merge, and another request between them.
    let requests = [read(1, 0, 0), read(2, 90_000, 0), read(3, 8, 0)];
    world.arrive(at(0), &requests);
    assert_eq!(world.sched.foresight.follower(), Some(Tag(3)));
    assert_eq!(world.sched.withdraw(Tag(3)), requests[2]);
    assert_eq!(world.sched.foresight.follower(), None);
    let third = read(4, 16, 0);
    assert_eq!(world.sched.foresight.bursts.continued_by(&third), None);
    world.sched.completed(at(1), &requests[0]);
    // The second window is gone. The scheduler waits for a child.
    assert!(matches!(
        world.sched.dispatch(at(1)),
        Dispatch::IdleUntil(_)
    ));
}

#[test]
fn the_queue_of_parents_is_bounded() {
    let mut sched = Stream::new(Noop::new(), StreamConfig::DEFAULT, curve());
    // Each request lies before the preceding one, at more than the mean service time.
    let read = |tag: u32| read(tag, 1_000_000_000 * u64::from(400 - tag), 0);
    for tag in 0..400 {
        sched.insert(at(0), read(tag));
        sched.dispatch(at(0));
    }
    assert_eq!(sched.open().count(), parents::PARENTS_MAX);
    for tag in 0..400 {
        sched.completed(at(1), &read(tag));
    }
    let mut left: Vec<u32> = sched.open().map(|open| open.tag.0).collect();
    left.sort_unstable();
    assert_eq!(left, (144..400).collect::<Vec<u32>>(), "the oldest went");
    sched.insert(at(1_000), read(0));
    assert_eq!(sched.open().count(), 0);
}

#[test]
fn two_readers_in_turn_are_not_each_others_stream() {
    // A driver that commits one request ahead has nothing pending when one reader's request comes while the other
    // reader's is in the drive. Without the strict limit, a request nearer than the mean would count as the other
    // reader's child, and no stream would ever be established.
    let mut sched = Stream::new(Noop::new(), StreamConfig::DEFAULT, curve());
    let place = |turn: u64| 20_000 * (turn % 2) + 8 * (turn / 2);
    let mut first = |turn: u64| {
        let request = read(turn as u32, place(turn), 0);
        sched.insert(at(0), request);
        assert_eq!(sched.dispatch(at(0)), Dispatch::Request(request));
        request
    };
    let (mut in_drive, mut committed) = (first(0), first(1));
    for turn in 2..12 {
        let ms = 10 * turn;
        sched.completed(at(ms), &in_drive);
        let request = read((turn % 2) as u32, place(turn), ms);
        sched.insert(at(ms), request);
        in_drive = committed;
        match sched.dispatch(at(ms)) {
            Dispatch::Request(handed_out) => committed = handed_out,
            Dispatch::IdleUntil(_) => {
                assert!(turn >= 6, "four requests make a stream");
                return;
            }
            Dispatch::Empty => panic!("one is queued"),
        }
    }
    panic!("they go on in turn");
}

#[test]
fn without_a_slice_it_is_its_elevator() {
    let config = StreamConfig {
        threshold: 1,
        slice: Nanos::ZERO,
        ..StreamConfig::DEFAULT
    };
    // Request 11 is the child of 10, and nothing is pending when it comes. Request 2 comes after it.
    let arrivals = [(10, 500_000, 0), (11, 500_008, 3), (2, 0, 4)];
    assert_eq!(noop(config).through(&arrivals), "10@0 11@10 2@11");
}

#[test]
fn every_word_of_an_option_is_read_as_what_it_says() {
    let read = |given: &[(&'static str, Value)]| {
        StreamConfig::from_options(&Options::new(&INFO, None, given))
    };
    assert_eq!(read(&[]), StreamConfig::DEFAULT);
    for (word, hz) in [("exact", None), ("250", Hz::new(250))] {
        let config = read(&[("hz", Value::Choice(word))]);
        assert_eq!(config.hz, hz, "{word}");
    }
}

#[test]
fn what_was_waited_for_goes_past_the_elevator_up_to_the_end_of_the_slice() {
    let config = StreamConfig {
        slice: Nanos::from_millis(20),
        ..StreamConfig::DEFAULT
    };
    let mut world = noop(config);
    for (tag, lba, ms) in &STREAM[..5] {
        world.arrive(at(*ms), &[read(*tag, *lba, *ms)]);
    }
    world.run(at(16));
    // The slice began at 0.
    let last = at(20).saturating_sub(Nanos::from_nanos(1));
    for (now, in_elevator) in [(last, 1), (at(20), 2)] {
        let mut sched = world.sched.clone();
        let child = Request {
            arrival: now,
            ..read(14, 500_032, 0)
        };
        assert_eq!(sched.may_merge(Tag(1), &child), in_elevator == 2, "{now}");
        sched.insert(now, child);
        assert_eq!(sched.elevator().queued(), in_elevator, "{now}");
    }
}

#[test]
fn of_two_that_fuse_the_longer_stream_goes_on_and_else_that_of_the_kept_one() {
    let mut sched = Stream::new(Noop::new(), StreamConfig::DEFAULT, curve());
    sched.insert(at(0), read(0, 500_000, 0));
    assert!(matches!(sched.dispatch(at(0)), Dispatch::Request(_)));
    // The second request is a child of the one in the drive; the others have no parent.
    for (tag, lba) in [(1, 0), (2, 500_050), (3, 1_000_000)] {
        sched.insert(at(1), read(tag, lba, 1));
    }
    let of = |sched: &Stream<Noop>, tag: usize| {
        let Membership {
            size,
            stream,
            is_queued,
        } = sched.foresight.queued[tag];
        (size, stream, is_queued)
    };
    assert_eq!(of(&sched, 1), (1, 2, true));
    assert_eq!(of(&sched, 2), (2, 1, true));
    assert_eq!(of(&sched, 3), (1, 3, true));
    let mut equal = sched.clone();
    equal.fused(Tag(1), Tag(3));
    assert_eq!(of(&equal, 1), (1, 2, true));
    assert!(!of(&equal, 3).2);
    let mut longer = sched.clone();
    longer.fused(Tag(1), Tag(2));
    assert_eq!(of(&longer, 1), (2, 1, true));
    let mut shorter = sched;
    shorter.fused(Tag(2), Tag(1));
    assert_eq!(of(&shorter, 2), (2, 1, true));
    assert_eq!((shorter.queued(), of(&shorter, 1).2), (2, false));
}

#[test]
fn a_request_that_has_grown_is_continued_where_it_ends_now() {
    let mut sched = Stream::new(Noop::new(), StreamConfig::DEFAULT, curve());
    sched.insert(at(0), read(1, 100, 0));
    sched.merged(&grown(read(1, 100, 0), 100, 16));
    let bursts = &sched.foresight.bursts;
    assert_eq!(bursts.continued_by(&read(2, 116, 0)), Some(Tag(1)));
    assert_eq!(bursts.continued_by(&read(2, 108, 0)), None);
}

/// A request that the drive's buffer serves leaves the head at its place. The stream continues at the end of the
/// request nevertheless.
#[test]
fn what_is_foreseen_goes_by_what_was_handed_out_wherever_the_head_is() {
    let new = || Stream::new(Noop::new(), StreamConfig::DEFAULT, curve());
    let (mut plain, mut told) = (new(), new());
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut ends = [0, 1_000_000, 2_000_000];
    let (mut in_drive, mut now, mut held) = (None, 0, 0);
    for step in 0..3_000_u32 {
        now += random(3);
        if plain.queued() < 8 {
            // Three streams of 8 sectors.
            let stream = random(3) as usize;
            let request = read(step, ends[stream], now);
            ends[stream] += 8;
            for front in [false, true] {
                let partners = plain.partners(&request, front);
                assert_eq!(partners, told.partners(&request, front), "step {step}");
            }
            plain.insert(at(now), request);
            told.insert(at(now), request);
        }
        if let Some(request) = in_drive.take() {
            plain.completed(at(now), &request);
            told.completed(at(now), &request);
        }
        told.head_is(&HeadState::at(Lba::new(random(3_000_000))));
        let next = plain.dispatch(at(now));
        assert_eq!(next, told.dispatch(at(now)), "step {step}");
        match next {
            Dispatch::Request(request) => in_drive = Some(request),
            Dispatch::IdleUntil(_) => held += 1,
            Dispatch::Empty => {}
        }
    }
    assert!(held > 100, "{held}");
}
