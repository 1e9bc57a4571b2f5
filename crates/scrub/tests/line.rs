//! The line of a copy, with the order of events in the test's hand.

use headtime_engine::{Arrival, Background, Config, Engine, Finished, Outcome, RequestId};
use headtime_sched::noop::Noop;
use headtime_sched::{Op, Request, Scheduler, WorkConserving};
use headtime_scrub::{MakeJob, ScrubAsk, ScrubState, Scrubs, Served};
use headtime_testkit::Folder;
use headtime_units::{Nanos, Sectors, Time};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const BLOCK: u64 = 16;
const BLOCKS: u64 = 8;

/// A disk that serves nobody, and leaves its job to the test.
#[derive(Clone, Default)]
struct Idle(Arc<Mutex<Option<MakeJob>>>);

impl std::fmt::Debug for Idle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Idle")
    }
}

impl Served for Idle {
    fn name(&self) -> &str {
        "one"
    }

    fn capacity(&self) -> Sectors {
        Sectors::new(BLOCK * BLOCKS)
    }

    fn sector_bytes(&self) -> u32 {
        512
    }

    fn members(&self) -> usize {
        1
    }

    fn depth(&self) -> u32 {
        32
    }

    fn has_failed(&self) -> bool {
        false
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn run_job(&self, job: MakeJob) {
        *self.0.lock().unwrap() = Some(job);
    }

    fn end_job(&self) {}

    fn ask_job(&self) {}
}

/// Ends a read of the job.
fn end(job: &mut dyn Background, now: Time, read: &Arrival, outcome: Outcome) {
    let RequestId::Background(id) = read.id else {
        panic!("a client's request: {read:?}");
    };
    let done = Finished {
        id,
        outcome,
        request: Request::new((), Op::Read, read.extent, now),
        issued: now,
        surprise: None,
    };
    let data = vec![1; read.extent.len.bytes(512) as usize];
    job.finished(now, &done, (outcome == Outcome::Done).then_some(&data));
}

#[test]
fn a_copy_ends_though_a_block_was_written_whose_read_fails_behind_the_line() {
    let (folder, disk) = (Folder::new(), Idle::default());
    let scrubs = Scrubs::new(disk.clone(), "null", None, Some(&folder.join("progress")));
    let ask = ScrubAsk {
        block: Some(BLOCK * 512),
        copy: Some(folder.join("copy")),
        ..ScrubAsk::default()
    };
    scrubs.begin(&ask).unwrap();
    let make = disk.0.lock().unwrap().take().expect("a job");
    let mut job = make();
    let noop: Box<dyn Scheduler> = Box::new(WorkConserving::new(Noop::new()));
    let engine = Engine::new(Config::default(), noop).unwrap();
    let status = || scrubs.status().expect("a scrub");
    let mut now = Time::ZERO + Nanos::from_secs(60);
    let mut reads: Vec<Arrival> = Vec::new();
    let mut has_failed = false;
    for _ in 0..3_000 {
        now += Nanos::from_millis(10);
        while let Some((read, ..)) = job.joins(now, &engine, None) {
            reads.push(read);
        }
        let is_drawn = status().copy.expect("a copy").is_settled;
        match reads.pop() {
            Some(read) if is_drawn && !has_failed => {
                let write = Arrival {
                    id: RequestId::Client(1),
                    op: Op::Write,
                    ..read
                };
                job.arrives(now, &write);
                end(&mut *job, now, &read, Outcome::MediumError);
                has_failed = true;
            }
            Some(read) => end(&mut *job, now, &read, Outcome::Done),
            // Other threads write the copy and make it durable.
            None => std::thread::park_timeout(Duration::from_millis(10)),
        }
        if status().state == ScrubState::Done {
            break;
        }
    }
    assert!(has_failed);
    assert_eq!(status().state, ScrubState::Done, "{:?}", status());
}
