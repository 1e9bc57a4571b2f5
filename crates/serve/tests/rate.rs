//! A limit on the data that an export reads and writes in a second.

mod common;

use common::{Inbox, submission, submit};
use headtime_linux::clock::Clock;
use headtime_sched::{Class, Op, Origin};
use headtime_serve::device::Device;
use headtime_serve::disk::{Disk, ExportShare, Options, ShareBy};
use headtime_serve::null::Null;
use headtime_serve::request::{Completer, Completion, Data, Failure, Kind, Submission};
use headtime_units::{Extent, Nanos, Rate, Sectors};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const MIB: u64 = 1 << 20;

/// Bytes of a request.
const BYTES: u64 = 64 << 10;

/// A disk that answers at once. The first of the two exports has a rate.
fn disk(rate: u64, by: ShareBy) -> Disk {
    let build = || common::scheduler("deadline");
    let mut options = Options::new("test", Clock::start(), ("deadline".into(), Box::new(build)));
    options.exports = 2;
    options.shares = match by {
        ShareBy::None => Vec::new(),
        by => vec![ExportShare { weight: 1, by }; 2],
    };
    options.rates = vec![Some(Rate(rate)), None];
    let open =
        || Ok::<_, Infallible>(Box::new(Null::new(Sectors::new(1 << 20), 32)) as Box<dyn Device>);
    Disk::start(options, open).expect("starts")
}

fn of(disk: &Disk, export: u16, number: u64, op: Op, to: Arc<dyn Completer>) -> Submission {
    let extent = Extent::at(number % 1_000 * 128, 128);
    let data = Data::Buffer(disk.pool().take(BYTES as usize));
    let origin = Origin {
        export,
        ..Origin::default()
    };
    Submission {
        origin,
        ..submission(disk, number, op, extent, data, to)
    }
}

/// Time for requests of the limited export, which are all there from the beginning.
fn time(disk: &Disk, requests: u64, op: Op, class: Class) -> Nanos {
    let inbox = Inbox::new(requests as usize);
    let start = disk.now();
    for number in 0..requests {
        let request = of(disk, 0, number, op, Arc::clone(&inbox) as Arc<_>);
        submit(disk, Submission { class, ..request });
    }
    for number in 0..requests {
        let done = inbox.wait();
        assert_eq!((done.cookie, done.result), (number, Ok(())), "in order");
    }
    disk.now().saturating_since(start)
}

#[test]
fn an_export_has_its_rate_within_five_percent_whatever_its_class_and_share() {
    let cases = [
        (ShareBy::Export, Op::Read, Class::default()),
        (ShareBy::Peer, Op::Write, Class::default()),
        (ShareBy::None, Op::Read, Class::default()),
        (ShareBy::Export, Op::Write, Class::REAL_TIME),
    ];
    for (by, op, class) in cases {
        let disk = disk(20 * MIB, by);
        let requests = 20 * MIB / BYTES;
        // The first second begins with a tenth that was saved up. A busy machine may wake the thread too late.
        let mut attempts = (0..10).map(|_| time(&disk, requests, op, class).as_secs_f64());
        let within = |time: f64| {
            assert!(time > 0.89, "{by:?} {op:?}: {time}");
            (0.95..1.05).contains(&time)
        };
        assert!(attempts.any(within), "{by:?} {op:?}");
        disk.stop().expect("stops");
    }
}

#[test]
fn bytes_of_a_long_request_count_once() {
    let disk = disk(20 * MIB, ShareBy::Export);
    let mut attempts = (0..10).map(|_| {
        let (inbox, start) = (Inbox::new(1), disk.now());
        for number in 0..8 {
            let extent = Extent::at(number << 13, 1 << 13);
            let data = Data::Buffer(disk.pool().take(4 << 20));
            let to = Arc::clone(&inbox) as Arc<_>;
            submit(
                &disk,
                submission(&disk, number, Op::Write, extent, data, to),
            );
            assert_eq!(inbox.wait().result, Ok(()));
        }
        disk.now().saturating_since(start).as_secs_f64()
    });
    // Of 32 MiB, 2 MiB were saved up and the last request may exceed the rate.
    let within = |time: f64| {
        assert!(time > 1.2, "{time}");
        time < 1.7
    };
    assert!(attempts.any(within));
}

#[test]
fn another_export_does_not_wait_for_the_limited_one() {
    for class in [Class::default(), Class::REAL_TIME] {
        for by in [ShareBy::Export, ShareBy::None] {
            let disk = disk(MIB, by);
            let (limited, other) = (Inbox::new(400), Inbox::new(1));
            let start = disk.now();
            for number in 0..400 {
                let request = of(&disk, 0, number, Op::Read, Arc::clone(&limited) as Arc<_>);
                submit(&disk, Submission { class, ..request });
            }
            for number in 0..2_000 {
                let request = of(&disk, 1, number, Op::Read, Arc::clone(&other) as Arc<_>);
                submit(&disk, Submission { class, ..request });
                assert_eq!(other.wait().result, Ok(()));
            }
            // 400 requests of 64 KiB take 25 s, and 2,000 of the other export far less.
            let done = std::iter::from_fn(|| limited.poll()).count() as f64;
            let time = disk.now().saturating_since(start).as_secs_f64();
            assert!(time < 12.0, "{time}");
            let most = (time + 0.2) * 16.0 + 2.0;
            assert!(done <= most && done < 300.0, "{done} in {time} s");
            // The end does not wait for the rate, and answers all.
            disk.stop().expect("stops");
            let rest = std::iter::from_fn(|| limited.poll()).filter(|done| done.result.is_ok());
            assert_eq!(rest.count() as f64 + done, 400.0);
        }
    }
}

/// Counts its completions, and says that nobody waits for them.
#[derive(Debug, Default)]
struct Absent(AtomicU64);

impl Completer for Absent {
    fn is_gone(&self) -> bool {
        true
    }

    fn complete(&self, completion: Completion) {
        assert_eq!(completion.result, Err(Failure::new(Kind::ShuttingDown)));
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn requests_of_a_client_that_has_gone_take_none_of_the_rate() {
    let disk = disk(MIB, ShareBy::Export);
    let absent = Arc::new(Absent::default());
    for number in 0..400 {
        submit(
            &disk,
            of(&disk, 0, number, Op::Read, Arc::clone(&absent) as Arc<_>),
        );
    }
    assert!(time(&disk, 1, Op::Read, Class::default()) < Nanos::from_secs(12));
    assert_eq!(absent.0.load(Ordering::SeqCst), 400);
    disk.stop().expect("stops");
}
