//! A disk as front ends see it, before a device that answers at once.

use crossbeam_queue::ArrayQueue;
use headtime_sched::{Class, Flags, Noop, Op, Origin, WorkConserving};
use headtime_serve::clock::Clock;
use headtime_serve::disk::{Disk, Options, Refused, StartError};
use headtime_serve::null::Null;
use headtime_serve::request::{Completer, Completion, Data, Submission};
use headtime_units::{Extent, Lba, Sectors};
use std::convert::Infallible;
use std::sync::Arc;
use std::thread::yield_now;

/// Keeps completions until they are asked for.
#[derive(Debug)]
struct Inbox(ArrayQueue<Completion>);

impl Completer for Inbox {
    fn complete(&self, completion: Completion) {
        self.0
            .push(completion)
            .expect("room for what was submitted");
    }
}

impl Inbox {
    fn new(room: usize) -> Arc<Inbox> {
        Arc::new(Inbox(ArrayQueue::new(room)))
    }

    fn wait(&self) -> Completion {
        loop {
            match self.0.pop() {
                Some(completion) => return completion,
                None => yield_now(),
            }
        }
    }
}

fn options(clock: Clock) -> Options {
    let build = || Box::new(WorkConserving::new(Noop::new())) as Box<_>;
    Options::new("test", clock, ("noop".to_owned(), Box::new(build)))
}

fn null(options: Options, depth: u32) -> Result<Disk, StartError> {
    Disk::start(options, move || {
        Ok::<_, Infallible>(Box::new(Null::new(Sectors::new(1 << 20), depth)) as Box<_>)
    })
}

fn read(disk: &Disk, cookie: u64, lba: u64, to: &Arc<Inbox>) -> Submission {
    Submission {
        cookie,
        op: Op::Read,
        extent: Extent::new(Lba::new(lba), Sectors::new(8)),
        flags: Flags::NONE,
        origin: Origin::default(),
        class: Class::default(),
        arrived: disk.now(),
        data: Data::Buffer(disk.pool().take(4096)),
        to: Arc::clone(to) as Arc<_>,
    }
}

#[test]
fn every_request_comes_back_once() {
    let disk = null(options(Clock::start()), 32).expect("starts");
    let inbox = Inbox::new(64);
    let (mut submitted, mut back) = (0, vec![0; 10_000]);
    for cookie in 0..back.len() as u64 {
        let mut request = read(&disk, cookie, cookie * 8 % (1 << 19), &inbox);
        submitted += 1;
        while let Err(Refused::Full(full)) = disk.submit(request) {
            request = full;
            yield_now();
        }
        if submitted >= 64 {
            let done = inbox.wait();
            assert_eq!(done.result, Ok(()));
            assert_eq!(
                done.data.into_buffer().map(|buffer| buffer.len()),
                Some(4096)
            );
            back[done.cookie as usize] += 1;
            submitted -= 1;
        }
    }
    for _ in 0..submitted {
        back[inbox.wait().cookie as usize] += 1;
    }
    assert!(back.iter().all(|times| *times == 1));
    disk.stop().expect("stops");
    assert!(matches!(
        disk.submit(read(&disk, 0, 0, &inbox)),
        Err(Refused::Stopped(_))
    ));
}

#[test]
fn a_depth_that_the_device_does_not_take() {
    let mut options = options(Clock::start());
    options.engine.depth = 33;
    let error = null(options, 32).err().expect("too deep");
    assert_eq!(
        error.to_string(),
        "disk test: depth 33 is more than the 32 commands that the device takes at a time"
    );
}
