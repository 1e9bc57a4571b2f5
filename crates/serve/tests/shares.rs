//! Clients of a disk share its head time: one request does not wait behind hundreds of another client.

mod common;

use common::{Inbox, now, submission};
use headtime_disk::profile::by_name;
use headtime_linux::clock::Clock;
use headtime_sched::{Class, Noop, Op, Origin, WorkConserving};
use headtime_serve::disk::{Disk, ExportShare, Options, ShareBy};
use headtime_serve::emulated::{self, StoreSpec};
use headtime_serve::request::{Completer, Completion, Data, Failure, Kind, Submission};
use headtime_units::{Extent, Lba, Sectors};
use headtime_workload::Random;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Requests that the rival has asked for before the other client comes.
const RIVALS: u64 = 400;

/// A drive with two exports that share.
fn disk(by: ShareBy) -> Disk {
    let build = || Box::new(WorkConserving::new(Noop::new())) as Box<_>;
    let mut options = Options::new("test", Clock::start(), ("noop".into(), Box::new(build)));
    options.engine.depth = 32;
    options.exports = 2;
    options.shares = vec![ExportShare { weight: 1, by }; 2];
    let profile = by_name("wd5000aaks").expect("it is shipped");
    Disk::start(options, move || {
        let mut options = emulated::EmulatedOptions::new(profile, StoreSpec::Memory);
        options.create = true;
        emulated::open(options).map(|device| Box::new(device) as Box<_>)
    })
    .expect("starts")
}

/// A read of an export at a random place of the disk.
fn read(disk: &Disk, export: u16, random: &mut Random, to: Arc<dyn Completer>) -> Submission {
    let sectors = disk.geometry().capacity.get();
    let extent = Extent::new(Lba::new(random.below(sectors - 8)), Sectors::new(8));
    let data = Data::Buffer(disk.pool().take(4096));
    let origin = Origin {
        export,
        ..Origin::default()
    };
    Submission {
        origin,
        ..submission(disk, 0, Op::Read, extent, data, to)
    }
}

/// The rival's completions before that of one read of another client, which comes after 40 of them. The rival has 400
/// requests from the beginning.
fn overtaken(by: ShareBy, class: Class) -> u64 {
    let disk = disk(by);
    let mut random = Random::new(5, 0, 0);
    let rival = Inbox::new(RIVALS as usize);
    for _ in 0..RIVALS {
        let read = read(&disk, 0, &mut random, Arc::clone(&rival) as Arc<_>);
        disk.submit(read).expect("there is room");
    }
    for _ in 0..40 {
        assert_eq!(rival.wait().result, Ok(()));
    }
    let one = Inbox::new(1);
    let read = read(&disk, 1, &mut random, Arc::clone(&one) as Arc<_>);
    disk.submit(Submission { class, ..read })
        .expect("there is room");
    assert_eq!(one.wait().result, Ok(()));
    let mut before = 0;
    while rival.poll().is_some() {
        before += 1;
    }
    disk.stop().expect("stops");
    before
}

#[test]
fn one_read_does_not_wait_behind_hundreds_of_another_export() {
    // A quarter of a second are some 40 reads, and the drive has 32 in its own order.
    let shared = overtaken(ShareBy::Export, Class::default());
    assert!((1..120).contains(&shared), "{shared}");
    let alone = overtaken(ShareBy::None, Class::default());
    assert!(alone > 250, "{alone}");
}

#[test]
fn reads_of_one_client_go_between_the_steps_of_large_requests_of_another() {
    let disk = disk(ShareBy::Export);
    let mut random = Random::new(7, 0, 0);
    let rival = Inbox::new(64);
    for at in 0..64 {
        let extent = Extent::at(at << 16, 1 << 16);
        let data = Data::Zeroes { may_punch: false };
        let to = Arc::clone(&rival) as Arc<_>;
        let write = submission(&disk, at, Op::Write, extent, data, to);
        disk.submit(write).expect("there is room");
    }
    let one = Inbox::new(1);
    for _ in 0..10 {
        let read = read(&disk, 1, &mut random, Arc::clone(&one) as Arc<_>);
        disk.submit(read).expect("there is room");
        assert_eq!(one.wait().result, Ok(()));
    }
    // In the time of a write of 32 MiB the drive serves more than ten reads and steps of 1 MiB.
    let mut before = 0;
    while rival.poll().is_some() {
        before += 1;
    }
    assert!(before <= 2, "{before}");
    // The steps of one write after another.
    assert_eq!(rival.wait().cookie, before);
}

/// Counts its completions, and says that nobody waits for them.
#[derive(Debug, Default)]
struct Gone {
    gone: AtomicBool,
    done: AtomicU64,
    dropped: AtomicU64,
}

impl Completer for Gone {
    fn is_gone(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }

    fn complete(&self, completion: Completion) {
        let count = match completion.result {
            Ok(()) => &self.done,
            Err(failure) => {
                assert_eq!(failure, Failure::new(Kind::ShuttingDown));
                &self.dropped
            }
        };
        count.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn requests_of_a_client_that_has_gone_are_dropped() {
    let disk = disk(ShareBy::Export);
    let mut random = Random::new(6, 0, 0);
    let rival = Arc::new(Gone::default());
    for _ in 0..RIVALS {
        let read = read(&disk, 0, &mut random, Arc::clone(&rival) as Arc<_>);
        disk.submit(read).expect("there is room");
    }
    rival.gone.store(true, Ordering::SeqCst);
    let one = Inbox::new(1);
    let read = read(&disk, 1, &mut random, Arc::clone(&one) as Arc<_>);
    disk.submit(read).expect("there is room");
    assert_eq!(one.wait().result, Ok(()));
    disk.stop().expect("stops");
    let [done, dropped] = [&rival.done, &rival.dropped].map(|of| of.load(Ordering::SeqCst));
    assert_eq!(done + dropped, RIVALS);
    // Only requests that the engine had already are served.
    assert!(done < 100, "{done} done");
}

#[test]
fn a_long_request_whose_client_goes_while_it_waits_keeps_nobody_out() {
    let disk = disk(ShareBy::Export);
    let write = |export: u16, to: Arc<dyn Completer>| {
        let data = Data::Zeroes { may_punch: false };
        let write = submission(&disk, 0, Op::Write, Extent::at(0, 1 << 14), data, to);
        let origin = Origin {
            export,
            ..Origin::default()
        };
        let write = Submission { origin, ..write };
        disk.submit(write).expect("there is room");
    };
    let (one, other) = (Inbox::new(2), Arc::new(Gone::default()));
    write(0, Arc::clone(&one) as Arc<_>);
    // Waits for the first write.
    write(1, Arc::clone(&other) as Arc<_>);
    now(disk.snapshot()).expect("runs");
    other.gone.store(true, Ordering::SeqCst);
    write(0, Arc::clone(&one) as Arc<_>);
    (0..2).for_each(|_| assert_eq!(one.wait().result, Ok(())));
    disk.stop().expect("stops");
    let [done, dropped] = [&other.done, &other.dropped].map(|of| of.load(Ordering::SeqCst));
    assert_eq!(done + dropped, 1);
}
