//! Waits are counted, with their outcomes. Each step on the trace of the Stream Scheduling paper's first figure can
//! be followed by hand. All scenarios are checked from outside.

mod common;

use common::curve;
use headtime_sched::{
    Dispatch, Foretold, Knowledge, NoPositioning, Op, Origin, Request, Scheduler, ServiceCurve,
    Spec, Tag, WaitStats, policies,
};
use headtime_testkit::{CAPACITY, ToyDisk, check, scenarios};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn build(text: &str, curve: &Arc<ServiceCurve>) -> Box<dyn Scheduler> {
    let knowledge = Knowledge {
        positioning: None::<NoPositioning>,
        curve: Some(Arc::clone(curve)),
        ..Knowledge::default()
    };
    let spec: Spec = text.parse().expect("a scheduler");
    spec.build(knowledge).expect("it needs no positions")
}

/// A process that reads at these addresses. Each read begins this time after the last one is done.
struct Reader {
    lbas: &'static [u64],
    think: Nanos,
    next: usize,
}

/// Order of service of two readers under a scheduler at depth 1, with the scheduler's counts. Letters are the upper
/// reader's requests, and `-` is a wait.
fn two_readers(text: &str, tell: bool) -> (String, WaitStats) {
    let curve = curve();
    let mut sched = build(text, &curve);
    let mut readers = [
        Reader {
            lbas: &[100_000, 100_400, 101_000, 101_200, 101_900, 102_200],
            think: Nanos::from_millis(1),
            next: 0,
        },
        Reader {
            lbas: &[800_000, 1_300_000, 750_000, 1_350_000],
            think: Nanos::from_millis(8),
            next: 0,
        },
    ];
    let mut asks = [Some(Time::ZERO), Some(Time::ZERO + Nanos::from_millis(2))];
    let (mut head, mut drive, mut wait) = (Lba::new(700_000), None::<(Time, Request)>, None);
    let mut steps = String::new();
    loop {
        let done = drive.map(|(done, _)| done);
        let Some(now) = [done, asks[0], asks[1], wait].into_iter().flatten().min() else {
            break;
        };
        if let Some((done, request)) = drive
            && done == now
        {
            drive = None;
            sched.completed(now, &request);
            let who = request.tag.index();
            let reader = &readers[who];
            asks[who] = (reader.next < reader.lbas.len()).then(|| now + reader.think);
            if tell && let Some(at) = asks[who] {
                let told = Foretold {
                    at,
                    op: Op::Read,
                    extent: Extent::at(reader.lbas[reader.next], 8),
                    origin: request.origin,
                };
                sched.foretold(now, &told);
            }
        } else if let Some(who) = (0..2).find(|who| asks[*who] == Some(now)) {
            asks[who] = None;
            let reader = &mut readers[who];
            let extent = Extent::at(reader.lbas[reader.next], 8);
            reader.next += 1;
            let mut request = Request::new(Tag(who as u32), Op::Read, extent, now);
            request.origin = Origin {
                process: who as u32 + 1,
                ..Origin::default()
            };
            sched.insert(now, request);
        }
        if drive.is_some() {
            continue;
        }
        let before = sched.waits();
        let decision = sched.dispatch(now);
        let after = sched.waits();
        let under_way = after.waits - after.waits_won - after.waits_lost;
        assert!(after.waits <= before.waits + 1 && under_way <= 1);
        wait = None;
        match decision {
            Dispatch::Request(request) => {
                assert_eq!((under_way, after.waits), (0, before.waits));
                let who = request.tag.index();
                let names = ["123456", "abcd"][who];
                let number = readers[who].next - 1;
                steps += &names[number..=number];
                let service = curve.service(head, request.extent.start);
                drive = Some((now + service, request));
                head = request.extent.end();
            }
            Dispatch::IdleUntil(until) => {
                wait = Some(until);
                if after.waits > before.waits {
                    steps.push('-');
                }
            }
            Dispatch::Empty => assert_eq!(under_way, 0),
        }
    }
    (steps, sched.waits())
}

fn counts(waits: u64, waits_won: u64) -> WaitStats {
    WaitStats {
        waits,
        waits_won,
        waits_lost: waits - waits_won,
        ..WaitStats::default()
    }
}

#[test]
fn waits_are_counted_with_what_came_of_them() {
    for (text, tell, steps, waits) in [
        ("noop", false, "1a2b3c4d56", counts(0, 0)),
        ("clook", false, "1a2b3c4d56", counts(0, 0)),
        // Behind the fourth, won; the fifth, won; the sixth, which has no successor.
        ("stream(noop)", false, "1a2b3c4-5-6-d", counts(3, 2)),
        (
            "stream(noop):threshold=1",
            false,
            "1-2-3-4-5-6-abcd",
            counts(6, 5),
        ),
        ("stream(noop):slice=0ns", false, "1a2b3c4d56", counts(0, 0)),
        // Waits after `a` and 4 end before the process asks: a tick is 4 ms here.
        ("anticipatory", false, "1-2a-3b4-c5-6-d", counts(5, 2)),
        (
            "anticipatory:hz=1000",
            false,
            "1-2-3-4-5-6-abcd",
            counts(6, 5),
        ),
        (
            "anticipatory:antic_expire=0ns",
            false,
            "1a2b3c4d56",
            counts(0, 0),
        ),
        ("cfq", false, "1-2-3-4-5-6-abcd", counts(6, 5)),
        // All are raised, so that nobody is waited for.
        ("bfq", false, "1a2b3c4d56", counts(0, 0)),
        // The reader pauses for more than a fifth of the time, as is known at the sixth.
        ("bfq:low_latency=no", false, "1-2-3-4-5-6abcd", counts(5, 5)),
        // The scheduler is notified that no request follows the sixth, and does not wait there.
        ("clairvoyant(noop)", true, "1-2-3-4-5-6abcd", counts(5, 5)),
        ("clairvoyant(noop)", false, "1a2b3c4d56", counts(0, 0)),
    ] {
        let (got, stats) = two_readers(text, tell);
        assert_eq!(got, steps, "{text}");
        let streams = WaitStats {
            streams_established: 0,
            streams: 0,
            ..stats
        };
        assert_eq!(streams, waits, "{text}");
    }
}

#[test]
fn streams_are_counted_when_they_come_to_be_waited_for() {
    let streams = |text| {
        let (_, stats) = two_readers(text, false);
        (stats.streams_established, stats.streams)
    };
    // The lower reader's stream. It is over at the end.
    assert_eq!(streams("stream(noop)"), (1, 0));
    // With any slice. The stream's last request comes last then, and may still have a successor.
    assert_eq!(streams("stream(noop):slice=0ns"), (1, 1));
    assert_eq!(streams("stream(noop):threshold=7"), (0, 0));
    // The upper reader's requests are one each; the last may still go on.
    assert_eq!(streams("stream(noop):threshold=1"), (5, 1));
    assert_eq!(streams("cfq"), (0, 0));
}

/// A scheduler whose counts are checked from outside.
struct Watched {
    inner: Box<dyn Scheduler>,
    /// Requests that came since the disk may be held. `None` if it may not.
    came: Option<Vec<Tag>>,
    won: Arc<AtomicU64>,
    lost: Arc<AtomicU64>,
}

impl Watched {
    fn under_way(&self) -> u64 {
        let WaitStats {
            waits,
            waits_won,
            waits_lost,
            ..
        } = self.inner.waits();
        waits - waits_won - waits_lost
    }
}

impl Scheduler for Watched {
    fn insert(&mut self, now: Time, request: Request) {
        if let Some(came) = &mut self.came {
            came.push(request.tag);
        }
        self.inner.insert(now, request);
    }

    fn dispatch(&mut self, now: Time) -> Dispatch {
        let (before, waited) = (self.inner.waits(), self.under_way() > 0);
        let queued = self.inner.queued();
        let decision = self.inner.dispatch(now);
        let after = self.inner.waits();
        let began = after.waits - before.waits;
        let won = after.waits_won - before.waits_won;
        let lost = after.waits_lost - before.waits_lost;
        match decision {
            Dispatch::IdleUntil(_) => {
                // One may end, and another begin at once.
                assert!(began <= 1 && won + lost <= u64::from(waited));
                assert!(began == 0 || queued > 0, "nothing is held back");
                if began > 0 {
                    self.came = Some(Vec::new());
                }
            }
            Dispatch::Request(request) => {
                assert_eq!((began, won + lost), (0, u64::from(waited)));
                if won > 0 {
                    let came = self.came.as_ref().expect("it waited");
                    assert!(came.contains(&request.tag), "{request:?} was there before");
                }
                self.came = None;
            }
            Dispatch::Empty => assert_eq!((began, lost), (0, u64::from(waited))),
        }
        assert!(self.under_way() <= 1);
        assert!(after.streams <= after.streams_established);
        self.won.fetch_add(won, Ordering::Relaxed);
        self.lost.fetch_add(lost, Ordering::Relaxed);
        decision
    }

    fn dispatch_forced(&mut self, now: Time) -> Dispatch {
        self.inner.dispatch_forced(now)
    }

    fn dispatched(&mut self, now: Time, request: &Request) {
        self.inner.dispatched(now, request);
    }

    fn completed(&mut self, now: Time, request: &Request) {
        let before = self.inner.waits();
        self.inner.completed(now, request);
        let after = self.inner.waits();
        let waits = |stats: WaitStats| (stats.waits, stats.waits_won, stats.waits_lost);
        assert_eq!(waits(after), waits(before), "only who is asked waits");
    }

    fn may_merge(&self, queued: Tag, new: &Request) -> bool {
        self.inner.may_merge(queued, new)
    }

    fn merged(&mut self, grown: &Request) {
        self.inner.merged(grown);
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        if let Some(came) = &mut self.came
            && came.contains(&gone)
        {
            came.push(kept);
        }
        self.inner.fused(kept, gone);
    }

    fn withdraw(&mut self, tag: Tag) -> Request {
        if let Some(came) = &mut self.came {
            came.retain(|came| *came != tag);
        }
        self.inner.withdraw(tag)
    }

    fn overtake_max(&self) -> Option<usize> {
        self.inner.overtake_max()
    }

    fn queued(&self) -> usize {
        self.inner.queued()
    }

    fn drain(&mut self) -> Vec<Request> {
        let before = self.inner.waits();
        let all = self.inner.drain();
        let after = self.inner.waits();
        assert_eq!((self.under_way(), after.streams), (0, 0));
        assert_eq!(
            (after.waits, after.waits_won),
            (before.waits, before.waits_won)
        );
        assert_eq!(after.streams_established, before.streams_established);
        self.came = None;
        all
    }

    fn waits(&self) -> WaitStats {
        self.inner.waits()
    }
}

#[test]
fn the_counts_agree_with_what_is_seen_from_outside() {
    let time = |distance| ToyDisk::access_time(Lba::new(distance), Lba::ZERO, 8);
    let points = [0, 1, CAPACITY].map(|distance| (Sectors::new(distance), time(distance)));
    let curve = ServiceCurve::new(points.to_vec(), ServiceCurve::BACKWARD);
    let curve = Arc::new(curve.expect("a curve"));
    let waiting = policies().filter(|policy| policy.waits);
    // It waits where the load is sequential, for which it needs seconds unless told otherwise.
    let text = |name| match name {
        "nise" => "nise:th1=0ns:th2=0",
        name => name,
    };
    let mut texts: Vec<&str> = waiting.map(|policy| text(policy.name)).collect();
    texts.extend([
        "stream(noop):threshold=1",
        "stream(noop):threshold=2:slice=20ms",
        "anticipatory:hz=1000",
        "nise(noop,anticipatory@1):by=trial:turn=1ms:cost=0.5",
        "cfq:hz=1000",
    ]);
    for text in texts {
        let (won, lost) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        // With the file's name, a failure leaves its seed in a file next to this one.
        let mut runner = TestRunner::new(ProptestConfig::with_source_file(file!()));
        let kept = runner.run(&scenarios(), |scenario| {
            let make = || Watched {
                inner: build(text, &curve),
                came: None,
                won: Arc::clone(&won),
                lost: Arc::clone(&lost),
            };
            check(make, &scenario)
                .map(|_| ())
                .map_err(|violation| TestCaseError::fail(violation.to_string()))
        });
        if let Err(error) = kept {
            panic!("{text}: {error}");
        }
        // Nobody tells clairvoyant anything here.
        if text != "clairvoyant" {
            assert!(
                won.load(Ordering::Relaxed) > 0 && lost.load(Ordering::Relaxed) > 0,
                "{text} is tried too little"
            );
        }
    }
}
