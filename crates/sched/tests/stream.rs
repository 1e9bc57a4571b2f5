//! Promises of Stream Scheduling around any elevator. The tests check every decision from outside, in the scenarios
//! of all policies.

use headtime_sched::{
    Clook, Deadline, DeadlineConfig, Dispatch, Elevator, HeadState, Hz, Noop, Op, Request,
    Scheduler, ServiceCurve, Sstf, Stream, StreamConfig, Tag,
};
use headtime_testkit::{Arrival, CAPACITY, Scenario, ToyDisk, check, scenarios};
use headtime_units::{Extent, Lba, Millionths, Nanos, Sectors, Time};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

/// Service curve of the toy disk, for 8 sectors.
static CURVE: LazyLock<Arc<ServiceCurve>> = LazyLock::new(|| {
    let time = |distance| ToyDisk::access_time(Lba::new(distance), Lba::ZERO, 8);
    let points = [0, 1, CAPACITY].map(|distance| (Sectors::new(distance), time(distance)));
    let curve = ServiceCurve::new(points.to_vec(), ServiceCurve::BACKWARD);
    Arc::new(curve.expect("a curve"))
});

/// Number of cases in all scenarios, so that a test can fail if a case never occurred.
#[derive(Debug, Default)]
struct Seen {
    waits: AtomicU64,
    children: AtomicU64,
    urgent: AtomicU64,
}

fn count(of: &AtomicU64) {
    of.fetch_add(1, Ordering::Relaxed);
}

/// A stream scheduler whose decisions are all checked.
struct Watched<E> {
    stream: Stream<E>,
    config: StreamConfig,
    seen: Arc<Seen>,
    head: Lba,
    /// The request handed out last, its time, and true while the drive has it.
    tail: Option<(Tag, Time, bool)>,
    /// Number of requests handed out.
    turn: u64,
    /// Time of the elevator's alternative when the tail was done.
    instead: Option<Nanos>,
}

impl<E: Elevator> Watched<E> {
    fn new(elevator: E, config: StreamConfig, seen: &Arc<Seen>) -> Watched<E> {
        Watched {
            stream: Stream::new(elevator, config, Arc::clone(&CURVE)),
            config,
            seen: Arc::clone(seen),
            head: Lba::ZERO,
            tail: None,
            turn: 0,
            instead: None,
        }
    }

    /// Longest time of a timer with this span. A timer with ticks fires late if the span is shorter than a tick, and
    /// never late otherwise.
    fn ticked(&self, span: Nanos) -> Nanos {
        match self.config.hz {
            Some(hz) if !span.is_zero() => {
                let tick = Nanos::from_nanos(1_000_000_000_u64.div_ceil(hz.get()));
                span.max(tick)
            }
            _ => span,
        }
    }

    /// Asserts that this wait is permitted.
    fn may_wait(&self, now: Time, until: Time) {
        let (tag, handed_out, in_drive) = self.tail.expect("something was handed out");
        let elevator = self.stream.elevator();
        assert!(elevator.queued() > 0, "nothing is held back");
        let came = self.stream.queued() - elevator.queued();
        assert_eq!(came, 0, "what was waited for has come");
        let tail = self.stream.open().find(|open| open.turn == self.turn);
        let tail = tail.expect("the tail can still have a child");
        assert_eq!((tail.tag, tail.end), (tag, self.head));
        assert!(tail.size >= self.config.threshold, "{tail:?} is too short");
        let slice = self.ticked(self.config.slice);
        assert!(until <= handed_out + slice, "the slice is over");
        match (tail.since, tail.limit) {
            // Behind a request in the drive, until it is done.
            (None, None) => {
                assert!(in_drive, "{tail:?} is done");
            }
            (Some(since), Some(limit)) => {
                // The nearest request that could come satisfies the inequality to the end.
                let least = CURVE.forward(Sectors::ZERO);
                assert!(least <= limit, "{tail:?} can have no child");
                assert!(
                    until <= since + self.ticked(limit - least),
                    "{tail:?} to {until}"
                );
                let longest = match self.instead {
                    // The inequality compares with the requests pending at that time alone.
                    Some(instead) => instead,
                    None => CURVE
                        .service(Lba::new(CAPACITY), Lba::ZERO)
                        .max(CURVE.mean()),
                };
                let most = 1_000_000 + self.config.tolerance.0;
                let most = longest.as_nanos() * most / 1_000_000;
                assert!(limit <= Nanos::from_nanos(most), "{tail:?} beats anything");
            }
            other => panic!("{other:?}"),
        }
        // Nothing expires while it waits.
        let span = (until - now).as_nanos();
        for part in 0..=8 {
            let at = now + Nanos::from_nanos((span - 1) * part / 8);
            let candidate = elevator
                .peek(at, &HeadState::at(self.head))
                .expect("something is queued");
            assert!(!candidate.urgent, "{candidate:?} at {at}");
        }
        count(&self.seen.waits);
    }
}

impl<E: Elevator> Scheduler for Watched<E> {
    fn insert(&mut self, now: Time, request: Request) {
        self.stream.insert(now, request);
    }

    fn dispatch(&mut self, now: Time) -> Dispatch {
        let candidate = self.stream.elevator().peek(now, &HeadState::at(self.head));
        let established = self
            .stream
            .open()
            .any(|open| open.size >= self.config.threshold);
        let decision = self.stream.dispatch(now);
        match decision {
            Dispatch::Request(request) => {
                if let Some(candidate) = candidate {
                    let chosen = candidate.request == request;
                    assert!(chosen || !candidate.urgent, "{candidate:?} is urgent");
                    if candidate.urgent {
                        count(&self.seen.urgent);
                    }
                    if !chosen {
                        count(&self.seen.children);
                    }
                }
                self.head = request.extent.end();
                self.tail = Some((request.tag, now, true));
                self.turn += 1;
                self.instead = None;
            }
            Dispatch::IdleUntil(until) => {
                assert!(established, "it waits without a stream");
                self.may_wait(now, until);
            }
            Dispatch::Empty => assert_eq!(candidate, None),
        }
        decision
    }

    fn dispatch_forced(&mut self, now: Time) -> Dispatch {
        self.stream.dispatch_forced(now)
    }

    fn completed(&mut self, now: Time, request: &Request) {
        if self.tail.is_some_and(|(tag, _, _)| tag == request.tag) {
            let candidate = self.stream.elevator().peek(now, &HeadState::at(self.head));
            self.instead = candidate.map(|pending| {
                let start = pending.request.extent.start;
                CURVE.service(self.head, start)
            });
        }
        self.stream.completed(now, request);
        if let Some((tag, _, in_drive)) = &mut self.tail
            && *tag == request.tag
        {
            *in_drive = false;
        }
    }

    fn may_merge(&self, queued: Tag, new: &Request) -> bool {
        self.stream.may_merge(queued, new)
    }

    fn merged(&mut self, grown: &Request) {
        self.stream.merged(grown);
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        self.stream.fused(kept, gone);
    }

    fn withdraw(&mut self, tag: Tag) -> Request {
        self.stream.withdraw(tag)
    }

    fn overtake_max(&self) -> Option<usize> {
        self.stream.overtake_max()
    }

    fn queued(&self) -> usize {
        self.stream.queued()
    }

    fn drain(&mut self) -> Vec<Request> {
        self.tail = None;
        self.stream.drain()
    }
}

fn configs() -> impl Strategy<Value = StreamConfig> {
    let slice_us = prop_oneof![Just(124_000_u64), 0..30_000_u64];
    let hz = prop_oneof![
        2 => Just(None),
        1 => (Hz::RANGE.0..=Hz::RANGE.1).prop_map(Hz::new),
        1 => Just(Hz::new(250)),
    ];
    let tolerance = prop_oneof![Just(500_000_u64), Just(0), 0..3_000_000_u64];
    (
        1..5_u64,
        tolerance,
        slice_us,
        any::<bool>(),
        hz,
        prop_oneof![Just(1_000_000_u64), 0..50_000_u64],
    )
        .prop_map(
            |(threshold, tolerance, slice_us, burst, hz, lost)| StreamConfig {
                threshold,
                tolerance: Millionths(tolerance),
                slice: Nanos::from_micros(slice_us),
                burst,
                hz,
                lost: Millionths(lost),
            },
        )
}

#[test]
fn it_waits_only_for_established_streams_and_never_past_an_expiry() {
    let seen = Arc::new(Seen::default());
    // With the file's name, a failure leaves its seed in a file next to this one.
    let mut runner = TestRunner::new(ProptestConfig::with_source_file(file!()));
    let hurried = DeadlineConfig {
        read_expire: Nanos::from_millis(8),
        write_expire: Nanos::from_millis(20),
        fifo_batch: 2,
        ..DeadlineConfig::DEFAULT
    };
    let kept = runner.run(&(scenarios(), configs()), |(scenario, config)| {
        check(
            || Watched::new(Deadline::new(hurried), config, &seen),
            &scenario,
        )?;
        check(|| Watched::new(Noop::new(), config, &seen), &scenario)?;
        check(|| Watched::new(Sstf::new(), config, &seen), &scenario)?;
        check(|| Watched::new(Clook::new(0), config, &seen), &scenario)?;
        Ok(())
    });
    if let Err(error) = kept {
        panic!("{error}");
    }
    let Seen {
        waits,
        children,
        urgent,
    } = &*seen;
    let tried = |of: &AtomicU64| of.load(Ordering::Relaxed) > 0;
    assert!(
        tried(waits) && tried(children) && tried(urgent),
        "the scenarios try too little: {seen:?}"
    );
}

/// A request whose time has been prolonged ends where the tail does, and its tag now belongs to the tail. The wait is
/// judged by the tail's limit, not by the prolonged request's.
#[test]
fn a_wait_behind_a_tag_given_again_is_judged_by_the_request_that_has_it_now() {
    let read = |at_us, start| {
        let at = Time::ZERO + Nanos::from_micros(at_us);
        Arrival::new(at, Op::Read, Extent::at(start, 8))
    };
    let scenario = Scenario {
        merge: false,
        ..Scenario::new(vec![
            read(0, 1_000),
            // Pending from the first to the last, and far: a child has to beat 4240 us.
            read(0, 90_000),
            // Two children. The second comes while the first is in the drive. It is done at 2361 us and the third of
            // its stream, so its time will be three times as long.
            read(1_000, 1_000),
            read(1_500, 1_000),
            // Too late and too far to be its child; behind the next one it is pending, and nearer.
            read(5_400, 50_000),
            // Too late to be its child, and goes when the slice ends, before its time has passed.
            read(6_380, 1_000),
        ])
    };
    let config = StreamConfig {
        threshold: 1,
        tolerance: Millionths(2_000_000),
        slice: Nanos::from_micros(6_400),
        burst: false,
        ..StreamConfig::DEFAULT
    };
    let seen = Arc::new(Seen::default());
    let served = check(|| Watched::new(Sstf::new(), config, &seen), &scenario);
    let served = served.expect("all is well");
    let order: Vec<(u64, u32, u64)> = served
        .iter()
        .map(|served| {
            let Request { tag, extent, .. } = served.request;
            (served.at.as_nanos() / 1_000, tag.0, extent.start.get())
        })
        .collect();
    let first = [(0, 0, 1_000), (1_000, 0, 1_000), (1_680, 2, 1_000)];
    assert_eq!(order[..3], first);
    // The last is done at 7080 us; its own child has to beat 2640 us, and takes 180 at least.
    assert_eq!(order[3..5], [(6_400, 2, 1_000), (9_540, 0, 50_000)]);
    assert_eq!((order[5].1, order[5].2), (1, 90_000));
}
