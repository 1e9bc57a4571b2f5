//! Gates and jobs in the background in front of a live drive, under the audit: what each promises holds in the log, which
//! replays with identical decisions. Each is also tried with a promise broken, which the same look at the log finds.
//!
//! The volume of three is in `volume.rs`, what can happen to jobs in `background.rs`.

mod common;

use common::{Inbox, Tape, now, request, scheduler, submission, submit};
use headtime_disk::profile::by_name;
use headtime_engine::log::{self, Decision, Record};
use headtime_engine::{
    Approach, Arrival, Background, DriveTag, Engine, EngineSpec, Event, Finished, Gate, GateOrder,
    Join, Lane, Member,
};
use headtime_linux::clock::Clock;
use headtime_sched::{Class, Op, Request, Scheduler, Tag};
use headtime_serve::device::Device;
use headtime_serve::disk::{BuildJob, BuildScheduler, Disk, Options};
use headtime_serve::emulated::{self, StoreSpec};
use headtime_serve::metrics::Snapshot;
use headtime_serve::request::Data;
use headtime_testkit::{AgedRanks, Scrub, ToyGate, Windows};
use headtime_units::{Extent, Nanos, Sectors, Time};
use headtime_workload::Random;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// More than fits the drive's buffer.
const SECTORS: u64 = 1 << 18;

/// The depth of gates.
const DEPTH: u32 = 4;

fn spec(depth: u32) -> EngineSpec {
    EngineSpec {
        depth,
        merge: false,
        commit_ahead: true,
        ..EngineSpec::default()
    }
}

fn others() -> Vec<Box<dyn Scheduler>> {
    vec![scheduler("sstf")]
}

/// Serves requests with this gate, or this job. Returns the disk's last snapshot and its log, which is replayed.
fn run(
    engine: EngineSpec,
    gate: Option<(ToyGate, u32)>,
    job: Option<BuildJob>,
    ask: impl FnOnce(&Disk),
) -> (Box<Snapshot>, String) {
    let log = Tape::default();
    let build: BuildScheduler = Box::new(|| scheduler("noop"));
    let mut options = Options::new("test", Clock::start(), ("noop".to_owned(), build));
    let config = engine.config(512);
    options.engine = engine;
    options.audit = true;
    options.log = Some(Box::new(log.clone()));
    options.background = job;
    if let Some((gate, depth)) = gate {
        options.gate = Some(Box::new(move |_| (gate.build(depth), others())));
    }
    let disk = Disk::start(options, || {
        let profile = by_name("wd5000aaks").expect("it is shipped");
        let options = emulated::EmulatedOptions {
            size: Some(SECTORS * 512),
            create: true,
            ..emulated::EmulatedOptions::new(profile, StoreSpec::Memory)
        };
        emulated::open(options).map(|drive| Box::new(drive) as Box<dyn Device>)
    });
    let disk = disk.expect("starts");
    ask(&disk);
    let snapshot = now(disk.snapshot()).expect("runs");
    disk.stop().expect("stops");
    let text = log.text();
    let gated = || gate.map(|(gate, depth)| (gate.build(depth), others()));
    let again = |text: &str| {
        let engine = Engine::behind(config, scheduler("noop"), gated());
        let engine = engine.expect("in range");
        let mut replay = log::Replay::new(engine).with_gates(ToyGate::named);
        replay.all(text, |text| Some(scheduler(text)))
    };
    let replayed = again(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(replayed.decisions > 100, "{replayed:?}");
    (snapshot, text)
}

/// A log's events and decisions.
fn records(text: &str) -> impl Iterator<Item = Record> {
    log::read(text).map(|record| record.expect("a log").1)
}

/// Asks for reads of 4 KiB with these cookies at once, of places that do not overlap, every other one of the high rank.
fn reads(disk: &Disk, cookies: std::ops::Range<u64>) {
    let inbox = Inbox::new(cookies.clone().count());
    for cookie in cookies.clone() {
        let to = Arc::clone(&inbox) as Arc<_>;
        let mut new = request(disk, cookie, Op::Read, place(cookie), to);
        new.class = if cookie % 2 == 0 {
            Class::BEST_EFFORT
        } else {
            Class::REAL_TIME
        };
        submit(disk, new);
    }
    for _ in cookies {
        assert_eq!(inbox.wait().result, Ok(()));
    }
}

/// Where a request reads: here and there, over four times the drive's buffer. Hits in the buffer would end each request
/// before the next arrives.
fn place(cookie: u64) -> u64 {
    cookie * 37 % 256 * 500
}

/// Contradictions between the log of a disk with ranks and this gate: commands that the gate refuses, and requests of
/// the high rank that wait although they could go.
fn wrong_by_rank(text: &str, mut gate: AgedRanks) -> Vec<String> {
    let mut waiting: BTreeMap<u64, Lane> = BTreeMap::new();
    let mut wrong = Vec::new();
    for record in records(text) {
        match record {
            Record::Event(at, event) => {
                // All that followed from the event before has been decided.
                let high = waiting.values().any(|lane| *lane == AgedRanks::HIGH);
                if high && gate.admits(AgedRanks::HIGH) {
                    wrong.push(format!("{at}: one of the high rank waits"));
                }
                match event {
                    Event::Arrived(new) if new.op != Op::Flush => {
                        let lane = gate.lane(new.origin, new.class);
                        waiting.insert(new.extent.start.get(), lane);
                    }
                    Event::Completed { tag, .. } => gate.returned(at, tag),
                    Event::Ordered(order) => gate.obey(at, &order),
                    _ => {}
                }
            }
            Record::Decision(at, Decision::Issue { tag, op, extent }) => {
                let lane = waiting.remove(&extent.start.get());
                if let Some(lane) = lane.filter(|lane| op == Op::Read && !gate.admits(*lane)) {
                    wrong.push(format!("{at}: {extent} of {lane:?} goes"));
                }
                let command = Request::new(Tag(0), op, extent, at).tagged(tag);
                gate.taken(at, &command, lane.unwrap_or(AgedRanks::HIGH));
            }
            _ => {}
        }
    }
    wrong
}

#[test]
fn a_gate_with_ranks_and_a_reserved_tag_keeps_its_word_and_orders_to_it_in_a_live_disk() {
    let ask = |disk: &Disk| {
        reads(disk, 0..40);
        disk.order_gate(Member(0), GateOrder::Depth(3));
        reads(disk, 40..80);
        disk.order_gate(Member(0), GateOrder::Age(1));
        reads(disk, 80..120);
        disk.order_gate(Member(0), GateOrder::Depth(DEPTH));
        reads(disk, 120..160);
    };
    let (_, text) = run(spec(8), Some((ToyGate::Ranks(6), DEPTH)), None, ask);
    assert_eq!(text.matches("\nO ").count(), 3);
    assert_eq!(wrong_by_rank(&text, AgedRanks::new(DEPTH, 6)), [""; 0]);
    // Without the orders the gate would have said something else.
    let deaf: String = text
        .lines()
        .filter(|line| !line.starts_with("O "))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_ne!(wrong_by_rank(&deaf, AgedRanks::new(DEPTH, 6)), [""; 0]);
}

#[test]
fn a_gate_that_reserves_no_tag_or_forgets_who_is_late_is_found_out() {
    let ask = |disk: &Disk| reads(disk, 0..160);
    // One more for everybody is one more for the low rank, too.
    let (_, text) = run(spec(8), Some((ToyGate::Ranks(100), DEPTH + 1)), None, ask);
    let wrong = wrong_by_rank(&text, AgedRanks::new(DEPTH, 100));
    assert!(
        wrong.iter().any(|wrong| wrong.ends_with("goes")),
        "{wrong:?}"
    );
    let wrong = wrong_by_rank(&text, AgedRanks::new(DEPTH + 1, 0));
    assert!(
        wrong.iter().any(|wrong| wrong.ends_with("goes")),
        "{wrong:?}"
    );
    let wrong = wrong_by_rank(&text, AgedRanks::new(DEPTH + 2, 100));
    assert!(
        wrong.iter().any(|wrong| wrong.ends_with("waits")),
        "{wrong:?}"
    );
}

/// The audit looks on as requests of one rank wait for others by order, while lanes are drained, and gates and schedulers of lanes
/// are swapped.
#[test]
fn rank_is_handed_on_while_lanes_are_drained_and_gates_and_schedulers_swap_under_load_in_a_live_disk()
 {
    let swap = |disk: &Disk, gate: ToyGate| {
        disk.swap_scheduler("deadline", Box::new(|| scheduler("deadline")));
        disk.swap_gate(Member(0), &gate.text(DEPTH), move || gate.build(DEPTH));
    };
    let ask = |disk: &Disk| {
        let mut random = Random::new(5, 0, 0);
        let inbox = Inbox::new(300);
        for cookie in 0..300 {
            let op = match random.below(20) {
                0 => Op::Flush,
                1..10 => Op::Write,
                _ => Op::Read,
            };
            let lba = if op == Op::Flush { 0 } else { random.below(60) };
            let mut new = request(disk, cookie, op, lba, Arc::clone(&inbox) as Arc<_>);
            if random.below(3) == 0 {
                new.class = Class::REAL_TIME;
            }
            new.origin.program = (cookie % 2) as u16;
            submit(disk, new);
        }
        for done in 0..300 {
            assert_eq!(inbox.wait().result, Ok(()));
            match done {
                20 => disk.drain_lane(Member(0), AgedRanks::LOW, AgedRanks::HIGH),
                50 => swap(disk, ToyGate::Windows(Nanos::from_millis(3))),
                70 => disk.drain_lane(Member(0), Lane(0), Lane(1)),
                80 => disk.drain_lane(Member(0), Lane(0), Lane(2)),
                90 => swap(disk, ToyGate::Ranks(3)),
                100 => disk.drain_lane(Member(0), AgedRanks::HIGH, AgedRanks::LOW),
                _ => {}
            }
        }
    };
    let merging = EngineSpec {
        merge: true,
        ..spec(8)
    };
    let (snapshot, text) = run(merging, Some((ToyGate::Ranks(6), DEPTH)), None, ask);
    assert!(
        snapshot.whole.engine.raised > 10,
        "{:?}",
        snapshot.whole.engine
    );
    assert_eq!(snapshot.whole.scheduler, "deadline");
    let drains = text.lines().filter(|line| line.starts_with("D "));
    let drains: Vec<&str> = drains.map(|line| &line[line.len() - 3..]).collect();
    assert_eq!(drains, ["1 0", "0 1", "0 1"], "there is no lane 2");
    let swaps: Vec<&str> = text.lines().filter(|line| line.starts_with("G ")).collect();
    assert!(
        swaps[0].ends_with(" windows:4:3000000 deadline deadline"),
        "{swaps:?}"
    );
    assert!(
        swaps[1].ends_with(" ranks:4:3 deadline deadline"),
        "{swaps:?}"
    );
}

/// Extents that a scrub has read, with their bytes.
type Found = Arc<Mutex<Vec<(Extent, Vec<u8>)>>>;

/// A scrub that the test can look at afterwards, and that keeps its data.
struct Keeping {
    scrub: Arc<Mutex<Scrub>>,
    found: Found,
}

impl Background for Keeping {
    fn joins(
        &mut self,
        now: Time,
        engine: &Engine,
        approach: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        let mut scrub = self.scrub.lock().expect("no panic");
        Background::joins(&mut *scrub, now, engine, approach)
    }

    fn finished(&mut self, _: Time, done: &Finished, data: Option<&[u8]>) {
        self.scrub.lock().expect("no panic").finished(done);
        let data = data.expect("nothing fails").to_vec();
        let mut found = self.found.lock().expect("no panic");
        found.push((done.request.extent, data));
    }
}

/// Number of sectors of a scrubbed disk that are filled.
const FILLED: u64 = 1 << 17;

/// The byte that a sector is filled with.
fn byte(sector: u64) -> u8 {
    (sector % 251) as u8
}

/// Fills a disk with a pattern, except one sector with another byte. A job scrubs the disk while a client reads.
/// Returns the bytes of each piece.
fn scrubbed(odd: Option<u64>) -> Vec<(Extent, Vec<u8>)> {
    let scrub = Scrub::new(Sectors::new(FILLED), Sectors::new(8), 100);
    let (scrub, found) = (Arc::new(Mutex::new(scrub)), Found::default());
    let (seen, kept) = (Arc::clone(&scrub), Arc::clone(&found));
    let job: BuildJob = Box::new(move |_| {
        let (scrub, found) = (Arc::clone(&seen), Arc::clone(&kept));
        Some(Box::new(Keeping { scrub, found }))
    });
    let ask = |disk: &Disk| {
        let inbox = Inbox::new(200);
        let write = |extent: Extent, byte: fn(u64) -> u8| {
            let mut buffer = disk.pool().take(extent.len.get() as usize * 512);
            for (sector, bytes) in (extent.start.get()..).zip(buffer.chunks_mut(512)) {
                bytes.fill(byte(sector));
            }
            let to = Arc::clone(&inbox) as Arc<_>;
            submit(
                disk,
                submission(disk, 0, Op::Write, extent, Data::Buffer(buffer), to),
            );
            assert_eq!(inbox.wait().result, Ok(()));
        };
        for start in (0..FILLED).step_by(2048) {
            write(Extent::at(start, 2048), byte);
        }
        if let Some(odd) = odd {
            write(Extent::at(odd, 1), |_| 255);
        }
        for cookie in 0..150 {
            let to = Arc::clone(&inbox) as Arc<_>;
            submit(
                disk,
                request(disk, cookie, Op::Read, 1000 + place(cookie), to),
            );
        }
        for _ in 0..150 {
            assert_eq!(inbox.wait().result, Ok(()));
        }
    };
    let (snapshot, text) = run(spec(1), None, Some(job), ask);
    let scrub = scrub.lock().expect("no panic");
    assert!(scrub.waits.is_empty(), "{scrub:?}");
    assert_eq!(scrub.finished, snapshot.whole.engine.joined);
    assert!(text.contains(" with\n") && text.contains(" before\n"));
    // A log that lacks what has joined is of other decisions.
    let engine = Engine::new(spec(1).config(512), scheduler("noop")).expect("in range");
    let lines = text.lines().filter(|line| !line.starts_with("J "));
    let without: String = lines.map(|line| format!("{line}\n")).collect();
    log::replay(&without, engine, |_| None).expect_err("something is missing");
    found.lock().expect("no panic").clone()
}

/// The pieces that are not as they were written.
fn spoiled(found: &[(Extent, Vec<u8>)]) -> Vec<Extent> {
    let is_right = |(extent, data): &&(Extent, Vec<u8>)| {
        let sectors = (extent.start.get()..).zip(data.chunks(512));
        let mut right = sectors.map(|(sector, bytes)| bytes.iter().all(|is| *is == byte(sector)));
        data.len() as u64 == extent.len.get() * 512 && right.all(|right| right)
    };
    let spoiled = found.iter().filter(|piece| !is_right(piece));
    spoiled.map(|(extent, _)| *extent).collect()
}

#[test]
fn a_scrub_reads_on_the_way_to_what_a_client_of_a_live_disk_asks_for() {
    let found = scrubbed(None);
    assert_eq!(found.len(), 100);
    assert_eq!(spoiled(&found), []);
}

#[test]
fn a_scrub_that_reads_something_else_than_was_written_is_found_out() {
    let found = scrubbed(Some(21));
    assert_eq!(spoiled(&found), [Extent::at(16, 8)]);
}

const SPAN: Nanos = Nanos::from_millis(100);

/// Where a program reads in its half of the disk: each time far from before.
fn far(cookie: u64) -> u64 {
    cookie * 7919 % 16_000 * 8
}

/// Two programs with windows that orders set. One program has more requests than its windows have time for.
fn windows(from: Option<Time>) -> String {
    let ask = |disk: &Disk| {
        if let Some(from) = from {
            let (lane, span) = (Lane(0), SPAN);
            disk.order_gate(Member(0), GateOrder::Window { lane, from, span });
        }
        let inbox = Inbox::new(100);
        for cookie in 0..100 {
            // The first program has few, so that the drive is free in most of its windows.
            let program = u16::from(cookie >= 12);
            let lba = u64::from(program) * SECTORS / 2 + far(cookie);
            let mut new = request(disk, cookie, Op::Read, lba, Arc::clone(&inbox) as Arc<_>);
            new.origin.program = program;
            submit(disk, new);
        }
        for _ in 0..100 {
            assert_eq!(inbox.wait().result, Ok(()));
        }
    };
    let gate = Some((ToyGate::Windows(SPAN), 2));
    let mut engine = spec(2);
    engine.plug = false;
    run(engine, gate, None, ask).1
}

/// Commands outside of their program's window, and late first commands at edges. At such an edge the drive is free
/// and a request of the next program waits, so a command must go in that nanosecond. Returns also the number of
/// edges.
fn wrong_by_window(text: &str, gate: &Windows) -> (Vec<String>, u64) {
    let (mut wrong, mut edges) = (Vec::new(), 0);
    let mut waiting = [0_u64; 2];
    let mut in_drive: Vec<DriveTag> = Vec::new();
    let mut edge = gate.window(Time::ZERO).1;
    let mut went_at = Time::ZERO;
    // Edge that passed with a free drive and a waiting request.
    let mut owed: Option<Time> = None;
    for record in records(text) {
        let at = match &record {
            Record::Event(at, _) | Record::Decision(at, _) => *at,
            _ => continue,
        };
        while edge <= at {
            let (lane, end) = gate.window(edge);
            let lane = lane.expect("it has begun");
            if in_drive.is_empty() && waiting[lane.index()] > 0 {
                owed = Some(edge);
                edges += 1;
            }
            edge = end;
        }
        match record {
            Record::Event(_, Event::Arrived(new)) if new.op == Op::Read => {
                waiting[usize::from(new.origin.program)] += 1;
            }
            Record::Event(_, Event::Completed { tag, .. }) => {
                in_drive.retain(|other| *other != tag);
            }
            Record::Decision(_, Decision::Issue { tag, op, extent }) => {
                in_drive.push(tag);
                if op != Op::Read {
                    continue;
                }
                let lane = Lane(u8::from(extent.start.get() >= SECTORS / 2));
                waiting[lane.index()] -= 1;
                if gate.window(at).0 != Some(lane) {
                    wrong.push(format!("{at}: {lane:?} goes in the other's window"));
                }
                if let Some(edge) = owed.take().filter(|edge| *edge != at) {
                    wrong.push(format!("{at}: the first one after the edge at {edge}"));
                }
                went_at = at;
            }
            _ => {}
        }
    }
    assert!(went_at > Time::ZERO + SPAN, "the run has edges");
    (wrong, edges)
}

#[test]
fn windows_of_two_programs_have_exact_edges_in_a_live_disk() {
    let (wrong, edges) = wrong_by_window(&windows(None), &Windows::new(2, SPAN));
    assert_eq!(wrong, [""; 0]);
    assert!(edges > 1, "the drive was free at {edges} edges");
}

#[test]
fn windows_of_a_live_disk_that_are_off_by_a_nanosecond_are_found_out_at_every_edge() {
    let from = Time::from_nanos(1);
    let text = windows(Some(from));
    let (wrong, edges) = wrong_by_window(&text, &Windows::new(2, SPAN));
    assert!(
        edges > 1 && wrong.len() as u64 >= edges,
        "{edges}: {wrong:?}"
    );
    // They are as they were ordered.
    let mut ordered = Windows::new(2, SPAN);
    let (lane, span) = (Lane(0), SPAN);
    ordered.obey(Time::ZERO, &GateOrder::Window { lane, from, span });
    assert_eq!(wrong_by_window(&text, &ordered).0, [""; 0]);
}
