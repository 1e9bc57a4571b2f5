//! Helpers for tests of disks.

#![allow(dead_code, reason = "each test takes what it needs")]

use crossbeam_queue::ArrayQueue;
use headtime_linux::clock::Clock;
use headtime_sched::{Class, Flags, NoPositioning, Op, Origin, Scheduler, Spec};
use headtime_serve::disk::{Disk, Refused};
use headtime_serve::request::{Completer, Completion, Cut, Data, Submission};
use headtime_units::{Extent, Nanos, Time};
use std::io;
use std::sync::{Arc, Mutex};
use std::thread::yield_now;

/// Keeps completions until they are asked for.
#[derive(Debug)]
pub struct Inbox(ArrayQueue<Completion>);

impl Completer for Inbox {
    fn complete(&self, completion: Completion) {
        self.0
            .push(completion)
            .expect("room for what was submitted");
    }
}

impl Inbox {
    /// An inbox with room for a number of completions.
    pub fn new(room: usize) -> Arc<Inbox> {
        Arc::new(Inbox(ArrayQueue::new(room)))
    }

    /// A completion, if one is there.
    pub fn poll(&self) -> Option<Completion> {
        self.0.pop()
    }

    /// The next completion. A test that waited for ever could leave a file system frozen behind.
    pub fn wait(&self) -> Completion {
        let clock = Clock::start();
        loop {
            match self.poll() {
                Some(completion) => return completion,
                None => yield_now(),
            }
            assert!(
                clock.now() < Time::ZERO + Nanos::from_secs(60),
                "no answer in a minute"
            );
        }
    }
}

/// A log in memory.
#[derive(Clone, Default)]
pub struct Tape(Arc<Mutex<Vec<u8>>>);

impl io::Write for Tape {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Tape {
    /// The log so far.
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no panic").clone()).expect("text")
    }
}

/// The scheduler of this text, which needs to know nothing of the drive.
pub fn scheduler(text: &str) -> Box<dyn Scheduler> {
    let spec: Spec = text.parse().expect("registered");
    spec.build(None::<NoPositioning>).expect("needs nothing")
}

/// A request without flags.
pub fn submission(
    disk: &Disk,
    cookie: u64,
    op: Op,
    extent: Extent,
    data: Data,
    to: Arc<dyn Completer>,
) -> Submission {
    Submission {
        cookie,
        op,
        extent,
        cut: Cut::NONE,
        flags: Flags::NONE,
        origin: Origin::default(),
        class: Class::default(),
        arrived: disk.now(),
        data,
        to,
    }
}

/// A request for 8 sectors of 512 bytes; a flush is for none.
pub fn request(disk: &Disk, cookie: u64, op: Op, lba: u64, to: Arc<dyn Completer>) -> Submission {
    let (sectors, data) = match op {
        Op::Read | Op::Write => (8, Data::Buffer(disk.pool().take(4096))),
        Op::Discard => (8, Data::None),
        Op::Flush => (0, Data::None),
    };
    submission(disk, cookie, op, Extent::at(lba, sectors), data, to)
}

/// Hands a request over as soon as there is room.
pub fn submit(disk: &Disk, mut submission: Submission) {
    loop {
        match disk.submit(submission) {
            Ok(()) => return,
            Err(Refused::Full(back)) => {
                submission = back;
                yield_now();
            }
            Err(Refused::Stopped(_)) => panic!("the disk has stopped"),
        }
    }
}

/// Waits for a future. Returns its result.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.build().expect("a runtime").block_on(future)
}
