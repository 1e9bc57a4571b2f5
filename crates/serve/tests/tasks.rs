//! A task that writes a live disk in the background, beside clients that write it, too: what is on the disk in the end.

mod common;

use common::{Inbox, Tape, now, scheduler, submission, submit};
use headtime_disk::Model;
use headtime_disk::profile::{Preseek, Profile, WriteBack, by_name};
use headtime_engine::{
    Consumer, Engine, EngineSpec, FreeblockOptions, Idle, OnWrite, TaskId, TaskSpec, Tasks, Work,
    log,
};
use headtime_linux::clock::Clock;
use headtime_sched::{Op, Scheduler, Spec};
use headtime_serve::device::{Control, Device};
use headtime_serve::disk::{Disk, Options};
use headtime_serve::emulated::{self, StoreSpec};
use headtime_serve::request::{Completion, Data};
use headtime_units::{Extent, Nanos, Sectors, Time};
use headtime_workload::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::thread::yield_now;

const SECTORS: u64 = 1 << 14;
const BLOCK: u64 = 8;
const BYTES: usize = BLOCK as usize * 512;

/// What clients write has this in its first byte, what the task writes has not.
const CLIENT: u8 = 0x80;

/// What a task was told.
#[derive(Debug, Default)]
struct Told {
    /// What it has filled a block with last.
    filled: BTreeMap<u64, u64>,
    fills: u64,
    /// How often each block was written for it.
    written: BTreeMap<u64, u32>,
    done: bool,
}

#[derive(Clone, Debug, Default)]
struct Restore(Arc<Mutex<Told>>);

impl Consumer for Restore {
    fn piece(&mut self, _: Time, _: TaskId, extent: Extent, data: Option<&[u8]>) {
        assert_eq!(data, None, "nothing is read");
        let mut told = self.0.lock().expect("no panic");
        for block in blocks(extent) {
            *told.written.entry(block).or_default() += 1;
        }
    }

    fn fill(&mut self, _: TaskId, extent: Extent, data: &mut [u8]) {
        let mut told = self.0.lock().expect("no panic");
        for (block, part) in blocks(extent).zip(data.chunks_mut(BYTES)) {
            told.fills += 1;
            let number = told.fills;
            part.fill(0);
            part[1..9].copy_from_slice(&number.to_le_bytes());
            told.filled.insert(block, number);
        }
    }

    fn unreadable(&mut self, _: Time, _: TaskId, extent: Extent) {
        panic!("{extent} can be written");
    }

    fn done(&mut self, _: Time, _: TaskId) {
        self.0.lock().expect("no panic").done = true;
    }
}

fn blocks(extent: Extent) -> impl Iterator<Item = u64> {
    let start = extent.start.get();
    assert!(start.is_multiple_of(BLOCK) && extent.len.get().is_multiple_of(BLOCK));
    (start / BLOCK)..(extent.end().get() / BLOCK)
}

/// An Atlas 10K on a fast bus, without a write cache.
fn atlas() -> Profile {
    let shipped = by_name("atlas10k").expect("shipped");
    let changed = shipped.with(|spec| {
        spec.queue.preseek = Preseek::AtMediaEnd;
        spec.queue.depth = 2;
        spec.bus.interface_sector = Nanos::from_nanos(6_400);
        spec.cache.write_back = WriteBack::Off;
    });
    changed.expect("it can be")
}

fn spec() -> EngineSpec {
    EngineSpec {
        depth: 2,
        ..EngineSpec::default()
    }
}

fn build() -> Box<dyn Scheduler> {
    let spec: Spec = "sptf-sw60".parse().expect("registered");
    spec.build(Some(Arc::new(Model::new(&atlas()))))
        .expect("it is known")
}

fn disk(restore: &Restore) -> (Disk, Tape) {
    let log = Tape::default();
    let built = ("sptf-sw60".to_owned(), Box::new(build) as _);
    let mut options = Options::new("test", Clock::start(), built);
    options.engine = spec();
    options.audit = true;
    options.log = Some(Box::new(log.clone()));
    let restore = restore.clone();
    options.background = Some(Box::new(move |_| {
        let gaps = FreeblockOptions {
            block: Sectors::new(BLOCK),
            idle: Some(Idle {
                after: Nanos::from_millis(20),
                piece: Sectors::new(64),
            }),
            ..FreeblockOptions::default()
        };
        let model = Arc::new(Model::new(&atlas()));
        let mut tasks = Tasks::none(model, Sectors::new(SECTORS), gaps, restore.clone())?;
        let task = tasks.open(TaskSpec {
            priority: 0,
            work: Work::Write,
            ranges: vec![Extent::at(0, SECTORS)],
            block: Sectors::new(BLOCK),
            all: true,
            on_write: OnWrite::Satisfied,
            others_count: false,
        });
        task.expect("it fits");
        Some(Box::new(tasks))
    }));
    let disk = Disk::start(options, || {
        let options = emulated::EmulatedOptions {
            size: Some(SECTORS * 512),
            create: true,
            ..emulated::EmulatedOptions::new(atlas(), StoreSpec::Memory)
        };
        emulated::open(options).map(|drive| Box::new(drive) as Box<dyn Device>)
    });
    (disk.expect("starts"), log)
}

/// Clients that ask for random blocks, some at a time, and what they have written.
struct Clients<'a> {
    disk: &'a Disk,
    inbox: Arc<Inbox>,
    random: Random,
    next: u64,
    /// By cookie: the block, and whether it is written.
    asked: BTreeMap<u64, (u64, bool)>,
    /// By block: the cookie of the last write of which the client was told that it is done.
    wrote: BTreeMap<u64, u64>,
    /// Blocks of which nobody knows what is on them.
    unsure: BTreeSet<u64>,
}

impl Clients<'_> {
    fn ask(&mut self) {
        let cookie = self.next;
        self.next += 1;
        let block = self.random.below(SECTORS / BLOCK);
        // No two at a time for one block, so that the order of their answers is that of their writes.
        if self.asked.values().any(|(other, _)| *other == block) {
            return;
        }
        let writes = self.random.chance(0.5);
        let mut buffer = self.disk.pool().take(BYTES);
        buffer.fill(0);
        buffer[0] = CLIENT;
        buffer[1..9].copy_from_slice(&cookie.to_le_bytes());
        let op = if writes { Op::Write } else { Op::Read };
        let extent = Extent::at(block * BLOCK, BLOCK);
        let to = Arc::clone(&self.inbox) as Arc<_>;
        let data = Data::Buffer(buffer);
        self.asked.insert(cookie, (block, writes));
        submit(
            self.disk,
            submission(self.disk, cookie, op, extent, data, to),
        );
    }

    fn done(&mut self, done: &Completion) {
        let (block, writes) = self.asked.remove(&done.cookie).expect("it was asked for");
        match (writes, &done.result) {
            (false, _) => {}
            (true, Ok(())) => {
                self.wrote.insert(block, done.cookie);
                self.unsure.remove(&block);
            }
            (true, Err(_)) => {
                self.unsure.insert(block);
            }
        }
    }

    fn run(&mut self, requests: u64) {
        for _ in 0..requests {
            while self.asked.len() >= 6 {
                let done = self.inbox.wait();
                self.done(&done);
            }
            self.ask();
        }
    }

    fn rest(&mut self) {
        while !self.asked.is_empty() {
            let done = self.inbox.wait();
            self.done(&done);
        }
    }

    /// Everything that is on the disk.
    fn read(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for start in (0..SECTORS).step_by(1024) {
            let buffer = self.disk.pool().take(1024 * 512);
            let to = Arc::clone(&self.inbox) as Arc<_>;
            let extent = Extent::at(start, 1024);
            let data = Data::Buffer(buffer);
            submit(
                self.disk,
                submission(self.disk, 0, Op::Read, extent, data, to),
            );
            let done = self.inbox.wait();
            assert_eq!(done.result, Ok(()));
            let buffer = done.data.into_buffer().expect("it comes back");
            all.extend_from_slice(&buffer);
        }
        all
    }
}

#[test]
fn each_block_has_what_a_client_wrote_last_or_else_what_the_task_was_asked_for_last() {
    let restore = Restore::default();
    let (disk, log) = disk(&restore);
    let mut clients = Clients {
        disk: &disk,
        inbox: Inbox::new(64),
        random: Random::new(5, 0, 0),
        next: 0,
        asked: BTreeMap::new(),
        wrote: BTreeMap::new(),
        unsure: BTreeSet::new(),
    };
    clients.run(250);
    now(disk.control(Control::PowerCut))
        .expect("runs")
        .expect("it is on");
    clients.run(10);
    now(disk.control(Control::PowerOn))
        .expect("runs")
        .expect("it is off");
    // Writes that the power cut has failed have made the disk read-only.
    assert!(disk.has_failed());
    now(disk.clear_failure()).expect("runs").expect("clears");
    clients.run(250);
    clients.rest();
    let in_gaps = restore.0.lock().expect("no panic").written.len();
    let clock = Clock::start();
    while !restore.0.lock().expect("no panic").done {
        assert!(
            clock.now() < Time::ZERO + Nanos::from_secs(60),
            "it never ends"
        );
        yield_now();
    }
    let all = clients.read();
    let told = restore.0.lock().expect("no panic");
    assert!(in_gaps > 50, "{in_gaps}");
    let (mut by_clients, mut by_task) = (0, 0);
    for (block, data) in (0..).zip(all.chunks(BYTES)) {
        let number = u64::from_le_bytes(data[1..9].try_into().expect("eight"));
        assert!(data[9..].iter().all(|byte| *byte == 0), "{block}");
        if clients.unsure.contains(&block) {
            continue;
        }
        match clients.wrote.get(&block) {
            Some(cookie) => {
                assert_eq!((data[0], number), (CLIENT, *cookie), "block {block}");
                by_clients += 1;
            }
            None => {
                let filled = told.filled.get(&block).expect("the task has written it");
                assert_eq!((data[0], number), (0, *filled), "block {block}");
                assert_eq!(told.written[&block], 1, "block {block}");
                by_task += 1;
            }
        }
    }
    assert!(by_clients > 100 && by_task > 1000, "{by_clients} {by_task}");
    drop(told);
    disk.stop().expect("stops");
    let text = log.text();
    assert!(text.lines().any(|line| line.starts_with("J ")));
    let engine = Engine::new(spec().config(512), build()).expect("in range");
    if let Err(error) = log::replay(&text, engine, |text| Some(scheduler(text))) {
        panic!("{error}");
    }
}
