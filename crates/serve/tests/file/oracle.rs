//! Random requests in any order against a plain vector of bytes.

use crate::common::{Inbox, submit};
use crate::support::{Loop, Place, Random, disk_of, pattern, read, request};
use headtime_engine::EngineSpec;
use headtime_sched::{Flags, Op};
use headtime_serve::disk::Disk;
use headtime_serve::file;
use headtime_serve::request::{Completion, Data, Submission};
use std::sync::Arc;

/// Number of requests under way.
const OUT: usize = 24;

/// Expected data of a request. A read has the bytes at its submission, since overlapping requests keep their order.
struct Expected {
    start: usize,
    bytes: Option<Vec<u8>>,
}

struct Run<'a> {
    disk: &'a Disk,
    model: Vec<u8>,
    random: Random,
    inbox: Arc<Inbox>,
    out: Vec<Option<Expected>>,
    /// End of the last request. Many requests continue there, so that some merge.
    last_end: u64,
}

impl Run<'_> {
    fn submission(&mut self, cookie: usize) -> (Submission, Expected) {
        let sector = self.disk.sector_bytes() as usize;
        let sectors = (self.model.len() / sector) as u64;
        let most = match self.random.below(8) {
            0 => 256,
            1..=3 => 32,
            _ => 4,
        };
        let len = 1 + self.random.below(most);
        let start = match self.random.below(2) {
            0 => self.last_end % (sectors - len),
            _ => self.random.below(sectors - len),
        };
        let choice = self.random.below(100);
        let op = match choice {
            0..45 => Op::Read,
            45..90 => Op::Write,
            90..97 => Op::Discard,
            _ => Op::Flush,
        };
        let (start, len) = if op == Op::Flush {
            (0, 0)
        } else {
            (start, len)
        };
        self.last_end = start + len;
        let to = Arc::clone(&self.inbox);
        let mut submission = request(self.disk, cookie as u64, op, start, len, &to);
        let range = start as usize * sector..(start + len) as usize * sector;
        let mut expected = Expected {
            start: range.start,
            bytes: None,
        };
        match op {
            Op::Read => expected.bytes = Some(self.model[range].to_vec()),
            Op::Write => {
                if choice.is_multiple_of(5) {
                    submission.flags = Flags::FUA;
                }
                if choice.is_multiple_of(7) {
                    submission.flags = submission.flags.with(Flags::PREFLUSH);
                }
                submission.data = match choice % 4 {
                    0 => {
                        self.model[range].fill(0);
                        let may_punch = self.random.below(2) == 0;
                        Data::Zeroes { may_punch }
                    }
                    _ => {
                        let bytes = pattern(self.random.next(), range.len());
                        let mut buffer = self.disk.pool().take(bytes.len());
                        buffer.copy_from_slice(&bytes);
                        self.model[range].copy_from_slice(&bytes);
                        Data::Buffer(buffer)
                    }
                };
            }
            Op::Discard => self.model[range].fill(0),
            Op::Flush => {}
        }
        (submission, expected)
    }

    fn arrived(&mut self, done: Completion) {
        let cookie = done.cookie as usize;
        let expected = self.out[cookie].take().expect("it was out");
        assert_eq!(done.result, Ok(()));
        if let Some(bytes) = expected.bytes {
            let buffer = done.data.into_buffer().expect("a read has a buffer");
            assert!(
                buffer[..] == bytes[..],
                "{} bytes at {} differ, the first at {:?}",
                bytes.len(),
                expected.start,
                buffer
                    .iter()
                    .zip(&bytes)
                    .position(|(got, want)| got != want)
            );
        }
    }

    fn go(&mut self, requests: u32) {
        let mut free: Vec<usize> = (0..OUT).collect();
        for _ in 0..requests {
            let cookie = free.pop().expect("one is free");
            let (submission, expected) = self.submission(cookie);
            self.out[cookie] = Some(expected);
            submit(self.disk, submission);
            // Sometimes the queue runs empty, mostly it is full.
            let keep = match self.random.below(50) {
                0 => OUT,
                _ => 1,
            };
            while free.len() < keep {
                let done = self.inbox.wait();
                free.push(done.cookie as usize);
                self.arrived(done);
            }
        }
        while free.len() < OUT {
            let done = self.inbox.wait();
            free.push(done.cookie as usize);
            self.arrived(done);
        }
    }
}

/// Random requests, then everything is read back, and once more from a new disk.
fn check(options: &file::FileOptions, scheduler: &str, seed: u64, requests: u32) {
    let start = || {
        let engine = EngineSpec {
            depth: 8,
            ..EngineSpec::default()
        };
        let options = options.clone();
        disk_of(scheduler, engine, move || file::open(&options))
    };
    let disk = start();
    assert!(
        disk.geometry().discards && disk.discards_to_zeroes() || options.path.starts_with("/dev")
    );
    let bytes = disk.bytes() as usize;
    let mut run = Run {
        disk: &disk,
        model: Vec::new(),
        random: Random(seed),
        inbox: Inbox::new(OUT),
        out: (0..OUT).map(|_| None).collect(),
        last_end: 0,
    };
    let all = |disk: &Disk| {
        let chunk = 1 << 20;
        let sectors = chunk / u64::from(disk.sector_bytes());
        (0..bytes as u64 / chunk)
            .flat_map(|index| read(disk, index * sectors, sectors).expect("reads"))
            .collect::<Vec<u8>>()
    };
    run.model = all(&disk);
    run.go(requests);
    let model = run.model;
    assert!(
        all(&disk) == model,
        "{scheduler}, seed {seed}: as the disk is"
    );
    disk.stop().expect("stops");
    let disk = start();
    assert!(all(&disk) == model, "{scheduler}, seed {seed}: as it stays");
    disk.stop().expect("stops");
}

const SCHEDULERS: [&str; 7] = [
    "noop",
    "deadline",
    "clook",
    "sstf",
    "cfq",
    "bfq",
    "stream(deadline):threshold=4",
];

#[test]
fn direct_io_agrees_with_a_vector() {
    let place = Place::new("oracle-direct");
    for (seed, scheduler) in SCHEDULERS.into_iter().enumerate() {
        let path = place.file(&format!("{seed}"), 4 << 20);
        check(&file::FileOptions::new(path), scheduler, seed as u64, 2000);
    }
}

#[test]
fn the_page_cache_agrees_with_a_vector() {
    let place = Place::new("oracle-cached");
    for (seed, scheduler) in SCHEDULERS.into_iter().enumerate() {
        let mut options = file::FileOptions::new(place.file(&format!("{seed}"), 4 << 20));
        options.direct = false;
        check(&options, scheduler, 100 + seed as u64, 2000);
    }
}

#[test]
fn a_loop_device_agrees_with_a_vector() {
    let place = Place::new("oracle-loop");
    for (seed, sector) in [512, 4096].into_iter().enumerate() {
        let path = place.file(&format!("{sector}"), 4 << 20);
        let sector = format!("--sector-size={sector}");
        let Some(device) = Loop::over(&path, &[&sector]) else {
            return;
        };
        let options = file::FileOptions::new(device.path());
        check(&options, "deadline", 200 + seed as u64, 2000);
    }
}
