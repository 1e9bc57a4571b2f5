//! Order in which each policy serves the queue of the textbooks, and SPTF compared with the obvious search.

use headtime_sched::{Elevator, HeadState, Op, Positioning, Predicted, Request, Spec, Sptf, Tag};
use headtime_testkit::{ToyMechanics, ToyPlace};
use headtime_units::{Extent, Lba, Millionths, Nanos, Sectors, Time};
use proptest::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

/// Positions on a line, where seeking takes a microsecond per address. In a turn of 100 microseconds address 0 passes
/// at time 0, and each address one microsecond after the last.
#[derive(Clone, Copy, Debug)]
struct Line;

impl Positioning for Line {
    type Place = u64;

    fn start(&self, extent: Extent) -> u64 {
        extent.start.get()
    }

    fn end(&self, extent: Extent) -> u64 {
        extent.end().get()
    }

    fn predict(&self, now: Time, from: u64, to: u64, op: Op) -> Predicted {
        let seek = self.seek(from, to, op);
        let arrived = (now + seek).as_nanos() / 1_000 % 100;
        let rotation = (to + 100 - arrived) % 100;
        Predicted {
            seek,
            rotation: Nanos::from_micros(rotation),
        }
    }

    fn seek(&self, from: u64, to: u64, _: Op) -> Nanos {
        Nanos::from_micros(from.abs_diff(to))
    }
}

/// Order in which reads of one sector, queued at time 0, are served with the head at `head`. The elevator decides at
/// the end of each access, with the line's times.
fn order(spec: &str, head: u64, queue: &[u64]) -> Vec<u64> {
    let spec: Spec = spec.parse().expect(spec);
    let mut elevator = spec
        .build_elevator(Some(Line))
        .expect("there are positions");
    for (tag, lba) in queue.iter().enumerate() {
        let extent = Extent::at(*lba, 1);
        elevator.insert(
            Time::ZERO,
            Request::new(Tag(tag as u32), Op::Read, extent, Time::ZERO),
        );
    }
    let (mut now, mut head) = (Time::ZERO, Lba::new(head));
    let mut served = Vec::new();
    while let Some(request) = elevator.take(now, &HeadState::at(head)) {
        let lba = request.extent.start.get();
        let from = if head == Lba::ZERO { 0 } else { head.get() };
        now = now + Line.predict(now, from, lba, Op::Read).positioning() + Nanos::from_micros(1);
        head = request.extent.end();
        served.push(lba);
    }
    served
}

#[test]
fn the_queue_of_the_textbooks() {
    // In the textbooks the head stays at the sector that it read. Here it is one sector further, and so 98 is one
    // nearer to 67 than 37 is.
    let queue = [98, 183, 37, 122, 14, 124, 65, 67];
    for (policy, served) in [
        ("noop", [98, 183, 37, 122, 14, 124, 65, 67]),
        ("deadline", [98, 122, 124, 183, 37, 65, 67, 14]),
        ("mq-deadline", [14, 37, 65, 67, 98, 122, 124, 183]),
        ("clook", [65, 67, 98, 122, 124, 183, 14, 37]),
        ("clook:batch=1", [98, 183, 37, 122, 14, 124, 65, 67]),
        ("clook:batch=4", [98, 122, 183, 37, 65, 67, 124, 14]),
        ("sstf", [65, 67, 98, 122, 124, 183, 37, 14]),
    ] {
        assert_eq!(order(policy, 53, &queue), served, "{policy}");
    }
}

#[test]
fn sptf_weighs_rotation_and_its_variants_weigh_seek() {
    // Seek + rotation from 50 at time 0, in microseconds:
    //   30: 20 + 10      70: 20 + 50      85: 35 + 50      95: 45 + 50      60: 10 + 50
    let queue = [95, 85, 70, 60, 30];
    for (policy, first) in [
        ("sptf", 30),
        ("sptf-sw0", 30),
        ("sptf-sw60", 30),
        // 60 takes 60 microseconds, twice the least, and halves the seek.
        ("sptf-sw99", 30),
        ("sptf-sw100", 60),
        ("sstf", 60),
    ] {
        assert_eq!(order(policy, 50, &queue)[0], first, "{policy}");
    }
}

/// Positions whose distance is the request's length, as for a write that waits for its data.
#[derive(Clone, Copy, Debug)]
struct Lengths;

impl Positioning for Lengths {
    type Place = Nanos;

    fn start(&self, extent: Extent) -> Nanos {
        Nanos::from_micros(extent.len.get())
    }

    fn end(&self, _: Extent) -> Nanos {
        Nanos::ZERO
    }

    fn predict(&self, _: Time, _: Nanos, to: Nanos, _: Op) -> Predicted {
        Predicted {
            seek: Nanos::ZERO,
            rotation: to,
        }
    }

    fn seek(&self, _: Nanos, _: Nanos, _: Op) -> Nanos {
        Nanos::ZERO
    }
}

#[test]
fn sptf_predicts_anew_for_what_grows_at_its_back() {
    let mut sptf = Sptf::new(Lengths);
    for (tag, extent) in [Extent::at(100, 8), Extent::at(200, 16)]
        .into_iter()
        .enumerate()
    {
        let request = Request::new(Tag(tag as u32), Op::Write, extent, Time::ZERO);
        sptf.insert(Time::ZERO, request);
    }
    let first = |sptf: &Sptf<Lengths>| {
        sptf.peek(Time::ZERO, &HeadState::START)
            .map(|c| c.request.tag)
    };
    assert_eq!(first(&sptf), Some(Tag(0)));
    sptf.merged(&Request::new(
        Tag(0),
        Op::Write,
        Extent::at(100, 24),
        Time::ZERO,
    ));
    assert_eq!(first(&sptf), Some(Tag(1)));
}

#[test]
fn aged_sptf_weighs_what_was_waited() {
    // Seek + rotation from 50 at time 1000, and the time waited, in microseconds:
    //   60: 10 + 50, 0      70: 20 + 50, 100      30: 20 + 10, 0      250: 200 + 50, 1000
    let queue = [(60, 1_000), (70, 900), (30, 1_000), (250, 0)];
    for (policy, first) in [
        ("sptf", 30),
        ("sptf:age_weight=0", 30),
        ("sptf:age_weight=0.2", 30),
        // The wait of 250 makes up for 220 microseconds of positioning.
        ("sptf:age_weight=0.22", 250),
        ("sptf:age_weight=0.219999", 30),
        ("sptf:age_weight=1000", 250),
    ] {
        let spec: Spec = policy.parse().expect(policy);
        let mut elevator = spec
            .build_elevator(Some(Line))
            .expect("there are positions");
        for (tag, (lba, arrival_us)) in queue.into_iter().enumerate() {
            let arrival = Time::ZERO + Nanos::from_micros(arrival_us);
            let request = Request::new(Tag(tag as u32), Op::Read, Extent::at(lba, 1), arrival);
            elevator.insert(arrival.max(Time::from_nanos(1_000_000)), request);
        }
        let request = elevator.take(Time::from_nanos(1_000_000), &HeadState::at(Lba::new(50)));
        let lba = request.expect("something is queued").extent.start.get();
        assert_eq!(lba, first, "{policy}");
    }
}

/// Obvious search for the next request, which looks at all requests, oldest first.
fn obvious(
    disk: &ToyMechanics,
    percent: Option<u64>,
    queued: &[Request],
    now: Time,
    from: ToyPlace,
) -> Tag {
    let predict =
        |request: &Request| disk.predict(now, from, disk.start(request.extent), request.op);
    let soonest = |request: &Request| predict(request).positioning();
    let least = queued
        .iter()
        .map(soonest)
        .min()
        .expect("something is queued")
        .as_nanos();
    let within = |request: &&Request| match percent {
        None => soonest(request).as_nanos() == least,
        Some(percent) => soonest(request).as_nanos() * 100 <= least * (100 + percent),
    };
    let candidates = queued.iter().filter(within);
    let cost = |request: &&Request| match percent {
        None => (Nanos::ZERO, soonest(request)),
        Some(_) => (predict(request).seek, soonest(request)),
    };
    candidates
        .min_by_key(cost)
        .expect("the least is within")
        .tag
}

/// Obvious search for the next request of aged SPTF, which evaluates the formula for all requests.
fn obvious_aged(
    disk: &ToyMechanics,
    weight: Millionths,
    queued: &[Request],
    now: Time,
    from: ToyPlace,
) -> Tag {
    let cost = |request: &&Request| {
        let predicted = disk.predict(now, from, disk.start(request.extent), request.op);
        let waited = (now - request.arrival).as_nanos();
        i128::from(predicted.positioning().as_nanos()) * 1_000_000
            - i128::from(waited) * i128::from(weight.0)
    };
    let age = |request: &&Request| (request.arrival, request.tag);
    let least = queued
        .iter()
        .min_by_key(|request| (cost(request), age(request)));
    least.expect("something is queued").tag
}

/// Positions with a counter of predictions.
#[derive(Debug)]
struct Counting(ToyMechanics, AtomicU64);

impl Positioning for &Counting {
    type Place = ToyPlace;

    fn start(&self, extent: Extent) -> ToyPlace {
        self.0.start(extent)
    }

    fn end(&self, extent: Extent) -> ToyPlace {
        self.0.end(extent)
    }

    fn predict(&self, now: Time, from: ToyPlace, to: ToyPlace, op: Op) -> Predicted {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.predict(now, from, to, op)
    }

    fn seek(&self, from: ToyPlace, to: ToyPlace, op: Op) -> Nanos {
        self.0.seek(from, to, op)
    }

    fn seek_at_least(&self, from: ToyPlace, to: ToyPlace, lba: Lba) -> Nanos {
        self.0.seek_at_least(from, to, lba)
    }
}

#[test]
fn sptf_asks_about_one_of_many_requests_for_the_same() {
    let disk = Counting(ToyMechanics::new(), AtomicU64::new(0));
    for mut sptf in [
        Sptf::new(&disk),
        Sptf::seek_weighted(&disk, 60),
        Sptf::aged(&disk, Millionths(30_000)),
    ] {
        let places = [1_000_u64, 60_000_000, 119_000_000];
        for tag in 0..3_000_u32 {
            let extent = Extent::at(places[tag as usize % 3], 8);
            let request = Request::new(Tag(tag), Op::Read, extent, Time::ZERO);
            sptf.insert(Time::ZERO, request);
        }
        disk.1.store(0, Ordering::Relaxed);
        let mut head = Lba::ZERO;
        let mut last = [None; 3];
        while let Some(request) = sptf.take(Time::ZERO, &HeadState::at(head)) {
            head = request.extent.end();
            let of_place = &mut last[request.tag.index() % 3];
            assert!(*of_place < Some(request.tag), "the oldest goes first");
            *of_place = Some(request.tag);
        }
        // At most two questions for each of the three addresses: for the soonest, and for the seek.
        let asked = disk.1.load(Ordering::Relaxed);
        assert!(asked <= 6 * 3_000, "asked {asked} times");
    }
}

/// A step of a test on the queue of SPTF.
#[derive(Clone, Debug)]
enum Step {
    /// A request is inserted after it waited elsewhere for `held_us`.
    Insert {
        lba: u64,
        len: u64,
        held_us: u64,
    },
    /// A request grows at its back, by a part with this size and this much earlier arrival.
    Grow(prop::sample::Index, u64, u64),
    /// A request becomes part of another.
    Fuse(prop::sample::Index, prop::sample::Index),
    Take,
}

fn step() -> impl Strategy<Value = Step> {
    let held = prop_oneof![2 => Just(0), 3 => 0..5_000_u64];
    let index = any::<prop::sample::Index>;
    prop_oneof![
        8 => (0..4_u64, 1..3_u64, held).prop_map(|(place, len, held_us)| Step::Insert {
            lba: place * 30_000_000,
            len,
            held_us,
        }),
        1 => (index(), 1..3_u64, prop_oneof![Just(0), 1..3_000_u64])
            .prop_map(|(which, more, older_us)| Step::Grow(which, more, older_us)),
        1 => (index(), index()).prop_map(|(kept, gone)| Step::Fuse(kept, gone)),
        4 => Just(Step::Take),
    ]
}

static DISK: LazyLock<Arc<ToyMechanics>> = LazyLock::new(|| Arc::new(ToyMechanics::new()));

proptest! {
    #[test]
    fn sptf_finds_what_the_obvious_search_finds(
        // Some addresses occur several times and make ties.
        lbas in prop::collection::vec(
            prop_oneof![3 => 0..120_000_000_u64, 1 => (0..8_u64).prop_map(|i| i * 10_000_000)],
            1..400,
        ),
        percent in prop_oneof![Just(None), (0..200_u64).prop_map(Some)],
        think_us in 0..3_000_u64,
    ) {
        let disk = &*DISK;
        let mut sptf = match percent {
            None => Sptf::new(disk.clone()),
            Some(percent) => Sptf::seek_weighted(disk.clone(), percent as u32),
        };
        let mut queued = Vec::new();
        for (tag, lba) in lbas.iter().enumerate() {
            let extent = Extent::at(*lba, 8);
            let request = Request::new(Tag(tag as u32), Op::Read, extent, Time::ZERO);
            sptf.insert(Time::ZERO, request);
            queued.push(request);
        }
        let (mut now, mut head) = (Time::ZERO, Lba::ZERO);
        while let Some(request) = sptf.take(now, &HeadState::at(head)) {
            let from = match head.get() {
                0 => disk.start(Extent::at(0, 1)),
                head => disk.end(Extent::at(head - 1, 1)),
            };
            prop_assert_eq!(request.tag, obvious(disk, percent, &queued, now, from));
            queued.retain(|other| other.tag != request.tag);
            let to = disk.start(request.extent);
            let access = disk.predict(now, from, to, request.op).positioning();
            now = now + access + Nanos::from_micros(think_us);
            head = request.extent.end();
        }
        prop_assert!(queued.is_empty());
    }

    #[test]
    fn aged_sptf_finds_what_the_obvious_search_finds(
        // Some requests arrive together and some at the same address, which makes ties. The gaps reach from none,
        // with hundreds of requests queued, to the time of an access.
        arrivals in prop::collection::vec(
            (
                prop_oneof![3 => 0..120_000_000_u64, 1 => (0..8_u64).prop_map(|i| i * 10_000_000)],
                prop_oneof![2 => Just(0), 3 => 0..2_000_u64, 1 => 0..50_000_u64],
            ),
            1..300,
        ),
        weight in prop_oneof![0..20_u64, 0..300_000_u64, 0..=1_000_000_000_u64].prop_map(Millionths),
    ) {
        let disk = &*DISK;
        let mut sptf = Sptf::aged(disk.clone(), weight);
        let (mut now, mut head) = (Time::ZERO, Lba::ZERO);
        let mut came = Time::ZERO;
        let mut coming = arrivals.iter().enumerate().map(|(tag, (lba, gap_us))| {
            came += Nanos::from_micros(*gap_us);
            Request::new(Tag(tag as u32), Op::Read, Extent::at(*lba, 8), came)
        }).peekable();
        let mut queued: Vec<Request> = Vec::new();
        loop {
            if let (true, Some(next)) = (queued.is_empty(), coming.peek()) {
                now = now.max(next.arrival);
            }
            while let Some(request) = coming.next_if(|next| next.arrival <= now) {
                sptf.insert(request.arrival, request);
                queued.push(request);
            }
            let Some(request) = sptf.take(now, &HeadState::at(head)) else {
                break;
            };
            let from = match head.get() {
                0 => disk.start(Extent::at(0, 1)),
                head => disk.end(Extent::at(head - 1, 1)),
            };
            prop_assert_eq!(request.tag, obvious_aged(disk, weight, &queued, now, from));
            queued.retain(|other| other.tag != request.tag);
            now += disk.predict(now, from, disk.start(request.extent), request.op).positioning();
            head = request.extent.end();
        }
        prop_assert!(queued.is_empty() && coming.next().is_none());
    }

    #[test]
    fn sptf_finds_what_the_obvious_search_finds_among_many_for_the_same(
        steps in prop::collection::vec(step(), 1..300),
        rule in prop_oneof![
            Just((0, 0)),
            (1..200_u32).prop_map(|percent| (percent, 0)),
            (1..300_000_u64).prop_map(|weight| (0, weight)),
        ],
    ) {
        let disk = &*DISK;
        let mut sptf = match rule {
            (0, weight) => Sptf::aged(disk.clone(), Millionths(weight)),
            (percent, _) => Sptf::seek_weighted(disk.clone(), percent),
        };
        let mut now = Time::from_nanos(1_000_000_000);
        let mut head = Lba::ZERO;
        // Each request with its turn of insertion.
        let mut queued: Vec<(Request, u64)> = Vec::new();
        for (turn, step) in (0..).zip(steps.into_iter().chain(vec![Step::Take; 300])) {
            match step {
                Step::Insert { lba, len, held_us } => {
                    let arrival = Time::from_nanos(now.as_nanos() - 1_000 * held_us);
                    let tag = Tag(turn as u32);
                    let request = Request::new(tag, Op::Read, Extent::at(lba, len), arrival);
                    sptf.insert(now, request);
                    queued.push((request, turn));
                }
                Step::Grow(which, more, older_us) if !queued.is_empty() => {
                    let which = which.index(queued.len());
                    let (request, _) = &mut queued[which];
                    request.extent.len += Sectors::new(more);
                    let arrival = request.arrival.as_nanos().saturating_sub(1_000 * older_us);
                    request.arrival = Time::from_nanos(arrival);
                    sptf.merged(request);
                }
                Step::Fuse(kept, gone) if queued.len() > 1 => {
                    let kept = kept.index(queued.len());
                    let gone = (kept + 1 + gone.index(queued.len() - 1)) % queued.len();
                    let (other, of_other) = queued[gone];
                    let (request, turn) = &mut queued[kept];
                    if (other.arrival, of_other) < (request.arrival, *turn) {
                        (request.arrival, *turn) = (other.arrival, of_other);
                    }
                    request.extent.len += other.extent.len;
                    sptf.fused(request.tag, other.tag);
                    sptf.merged(request);
                    queued.remove(gone);
                }
                Step::Take => {
                    let from = match head.get() {
                        0 => disk.start(Extent::at(0, 1)),
                        head => disk.end(Extent::at(head - 1, 1)),
                    };
                    queued.sort_by_key(|(request, turn)| (request.arrival, *turn));
                    let by_age: Vec<Request> = queued.iter().map(|(request, _)| *request).collect();
                    let taken = sptf.take(now, &HeadState::at(head));
                    prop_assert_eq!(taken.is_none(), queued.is_empty());
                    let Some(taken) = taken else { continue };
                    let expected = match rule {
                        (0, 0) => obvious(disk, None, &by_age, now, from),
                        (0, weight) => {
                            // `obvious_aged` prefers the lowest tag, so the oldest request gets tag 0.
                            let renamed: Vec<Request> = (0..)
                                .zip(&by_age)
                                .map(|(tag, request)| Request { tag: Tag(tag), ..*request })
                                .collect();
                            let found = obvious_aged(disk, Millionths(weight), &renamed, now, from);
                            by_age[found.index()].tag
                        }
                        (percent, _) => obvious(disk, Some(u64::from(percent)), &by_age, now, from),
                    };
                    prop_assert_eq!(taken.tag, expected);
                    queued.retain(|(request, _)| request.tag != taken.tag);
                    now += Nanos::from_micros(700);
                    head = taken.extent.end();
                }
                Step::Grow(..) | Step::Fuse(..) => {}
            }
        }
        prop_assert!(queued.is_empty());
    }
}
