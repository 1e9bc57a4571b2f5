//! Reports of a disk after a loss of acknowledged writes, and the end of its thread after a bug.

mod common;

use common::{Inbox, now, submit};
use headtime_disk::drive::Fault;
use headtime_disk::profile::by_name;
use headtime_engine::DriveTag;
use headtime_linux::clock::Clock;
use headtime_sched::{Flags, Noop, Op, Request, WorkConserving};
use headtime_serve::device::{Aborted, Control, ControlError, Device, Done, Geometry, Parts};
use headtime_serve::disk::{Disk, NotCleared, Options, Refused};
use headtime_serve::emulated::{self, StoreSpec};
use headtime_serve::faulty::{Faulty, Switch};
use headtime_serve::file;
use headtime_serve::null::Null;
use headtime_serve::request::{Completer, Completion, Kind, Submission};
use headtime_testkit::Folder;
use headtime_units::{Nanos, Sectors, Time};
use std::convert::Infallible;
use std::fs::{self, OpenOptions};
use std::path::Path;
use std::sync::Arc;

fn options() -> Options {
    let build = || Box::new(WorkConserving::new(Noop::new())) as Box<_>;
    Options::new("test", Clock::start(), ("noop".to_owned(), Box::new(build)))
}

fn start(options: Options, device: impl Device + 'static) -> Disk {
    Disk::start(options, move || {
        Ok::<_, Infallible>(Box::new(device) as Box<dyn Device>)
    })
    .expect("starts")
}

/// An emulated drive in memory that acknowledges writes from its buffer.
fn emulate(depth: u32) -> Disk {
    let profile = by_name("wd5000aaks").expect("it is shipped");
    let mut options = options();
    options.engine.depth = depth;
    Disk::start(options, move || {
        let drive = emulated::EmulatedOptions::new(profile, StoreSpec::Memory);
        emulated::open(drive).map(|drive| Box::new(drive) as Box<dyn Device>)
    })
    .expect("starts")
}

fn request(disk: &Disk, cookie: u64, op: Op, lba: u64, to: &Arc<dyn Completer>) -> Submission {
    common::request(disk, cookie, op, lba, Arc::clone(to))
}

/// Each from a client of its own.
fn ask(disk: &Disk, op: Op, lba: u64) -> Option<Kind> {
    let inbox = Inbox::new(1);
    let to: Arc<dyn Completer> = Arc::clone(&inbox) as Arc<_>;
    submit(disk, request(disk, 0, op, lba, &to));
    kind(&inbox.wait())
}

fn kind(done: &Completion) -> Option<Kind> {
    done.result.err().map(|failure| failure.kind)
}

fn control(disk: &Disk, what: Control) -> Result<Sectors, ControlError> {
    now(disk.control(what)).expect("runs")
}

fn failure(disk: &Disk) -> Option<String> {
    now(disk.snapshot()).expect("runs").failure
}

/// Stalls the arm, so that later acknowledged writes stay in the buffer.
fn stall(disk: &Disk) {
    let hour = Nanos::from_secs(3600);
    assert_eq!(
        control(disk, Control::Fault(Fault::Stall(hour))),
        Ok(Sectors::ZERO)
    );
}

#[test]
fn a_power_cut_that_loses_acknowledged_writes_fails_every_flush_and_write_until_it_is_cleared() {
    let disk = emulate(32);
    // The cut loses the writes that are still in the buffer.
    for block in 0..60 {
        assert_eq!(ask(&disk, Op::Write, block * 1_000_003 % (1 << 29)), None);
    }
    let lost = control(&disk, Control::PowerCut).expect("is cut");
    assert!(lost > Sectors::ZERO, "nothing was at stake");
    assert_eq!(control(&disk, Control::PowerOn), Ok(Sectors::ZERO));
    // Nothing has failed for any client, and the power is back.
    for _ in 0..2 {
        assert_eq!(ask(&disk, Op::Flush, 0), Some(Kind::Lost));
        assert_eq!(ask(&disk, Op::Write, 0), Some(Kind::ReadOnly));
        assert_eq!(ask(&disk, Op::Discard, 0), Some(Kind::ReadOnly));
        assert_eq!(ask(&disk, Op::Read, 0), None);
    }
    assert!(disk.has_failed());
    let told = failure(&disk).expect("says why");
    assert!(
        told.contains("the power was cut") && told.contains(&lost.to_string()),
        "{told}"
    );
    assert_eq!(now(disk.clear_failure()), Ok(Ok(())));
    assert_eq!(failure(&disk), None);
    assert_eq!(ask(&disk, Op::Write, 0), None);
    assert_eq!(ask(&disk, Op::Flush, 0), None);
    assert_eq!(now(disk.clear_failure()), Ok(Err(NotCleared::NotFailed)));
    disk.stop().expect("stops");
}

#[test]
fn a_disk_that_is_stopped_after_a_loss_says_so() {
    let disk = emulate(32);
    assert_eq!(ask(&disk, Op::Write, 0), None);
    assert!(control(&disk, Control::PowerCut).expect("is cut") > Sectors::ZERO);
    assert_eq!(control(&disk, Control::PowerOn), Ok(Sectors::ZERO));
    let error = disk.stop().expect_err("not all is there");
    assert!(error.to_string().contains("lost"), "{error}");
}

#[test]
fn what_had_come_before_a_loss_fails_too() {
    let disk = emulate(1);
    assert_eq!(ask(&disk, Op::Write, 1 << 20), None);
    stall(&disk);
    let inbox = Inbox::new(4);
    let to: Arc<dyn Completer> = Arc::clone(&inbox) as Arc<_>;
    // One request keeps the drive busy, and the others wait for it.
    for (cookie, op) in [(0, Op::Read), (1, Op::Write), (2, Op::Read), (3, Op::Flush)] {
        submit(&disk, request(&disk, cookie, op, (cookie + 1) << 24, &to));
    }
    let snapshot = now(disk.snapshot()).expect("runs");
    assert_eq!((snapshot.whole.in_flight, snapshot.whole.waiting), (1, 3));
    assert_eq!(control(&disk, Control::PowerCut), Ok(Sectors::new(8)));
    let mut kinds = [None; 4];
    for _ in 0..4 {
        let done = inbox.wait();
        kinds[done.cookie as usize] = kind(&done);
    }
    let offline = Some(Kind::Offline);
    let (refused, lost) = (Some(Kind::ReadOnly), Some(Kind::Lost));
    assert_eq!(kinds, [offline, refused, offline, lost]);
    assert_eq!(control(&disk, Control::PowerOn), Ok(Sectors::ZERO));
    assert_eq!(ask(&disk, Op::Flush, 0), Some(Kind::Lost));
}

#[test]
fn a_power_cut_that_loses_nothing_fails_nothing() {
    let disk = emulate(32);
    assert_eq!(ask(&disk, Op::Write, 0), None);
    assert_eq!(ask(&disk, Op::Flush, 0), None);
    assert_eq!(control(&disk, Control::PowerCut), Ok(Sectors::ZERO));
    assert_eq!(
        control(&disk, Control::PowerCut),
        Err(ControlError::PowerIsOff)
    );
    assert_eq!(control(&disk, Control::PowerOn), Ok(Sectors::ZERO));
    assert_eq!(
        control(&disk, Control::PowerOn),
        Err(ControlError::PowerIsOn)
    );
    assert!(!disk.has_failed());
    assert_eq!(ask(&disk, Op::Write, 0), None);
    assert_eq!(ask(&disk, Op::Flush, 0), None);
    disk.stop().expect("stops");
}

#[test]
fn the_return_of_the_power_clears_nothing() {
    let disk = emulate(32);
    assert_eq!(control(&disk, Control::PowerCut), Ok(Sectors::ZERO));
    assert_eq!(ask(&disk, Op::Write, 0), Some(Kind::Offline));
    assert_eq!(control(&disk, Control::PowerOn), Ok(Sectors::ZERO));
    assert_eq!(ask(&disk, Op::Write, 0), Some(Kind::ReadOnly));
    assert_eq!(ask(&disk, Op::Flush, 0), None, "nothing was lost");
    assert_eq!(now(disk.clear_failure()), Ok(Ok(())));
    assert_eq!(ask(&disk, Op::Write, 0), None);
    disk.stop().expect("stops");
}

/// A kernel reports only once that it could not write data back. Each of the two writes succeeds when it is tried
/// again alone.
#[test]
fn a_forced_write_that_failed_within_a_merged_one_fails_it_and_every_flush() {
    let mut options = options();
    options.engine.depth = 1;
    let switch = Arc::new(Switch::default());
    let null = Null::new(Sectors::new(1 << 20), 32);
    let disk = start(options, Faulty::new(null, Arc::clone(&switch)));
    assert_eq!(ask(&disk, Op::Write, 800), None);
    let pause = Nanos::from_millis(300);
    assert_eq!(
        control(&disk, Control::Fault(Fault::Stall(pause))),
        Ok(Sectors::ZERO)
    );
    let inbox = Inbox::new(3);
    let to: Arc<dyn Completer> = Arc::clone(&inbox) as Arc<_>;
    submit(&disk, request(&disk, 0, Op::Read, 1 << 18, &to));
    for cookie in 1..3 {
        let mut forced = request(&disk, cookie, Op::Write, cookie * 8, &to);
        forced.flags = Flags::FUA;
        submit(&disk, forced);
    }
    switch.fail_writes(1);
    let mut kinds = [None; 3];
    for _ in 0..3 {
        let done = inbox.wait();
        kinds[done.cookie as usize] = kind(&done);
    }
    let device = Some(Kind::Device);
    assert_eq!(kinds, [None, device, device]);
    assert_eq!(now(disk.snapshot()).expect("runs").whole.engine.split, 1);
    assert_eq!(ask(&disk, Op::Flush, 0), device);
    assert_eq!(ask(&disk, Op::Write, 0), Some(Kind::ReadOnly));
    assert!(disk.stop().is_err(), "not all is there");
}

/// It may happen later, to data that are written then.
#[test]
fn a_discard_that_was_given_up_on_makes_the_disk_read_only() {
    let mut options = options();
    options.timeout = Some(Nanos::from_millis(10));
    let switch = Arc::new(Switch::default());
    let null = Null::new(Sectors::new(1 << 20), 32);
    let disk = start(options, Faulty::new(null, Arc::clone(&switch)));
    switch.keep_lost(true);
    assert_eq!(
        control(&disk, Control::Fault(Fault::LoseNext)),
        Ok(Sectors::ZERO)
    );
    assert_eq!(ask(&disk, Op::Discard, 0), Some(Kind::TimedOut));
    assert_eq!(ask(&disk, Op::Write, 0), Some(Kind::ReadOnly));
    assert_eq!(now(disk.clear_failure()), Ok(Err(NotCleared::Abandoned(1))));
    switch.keep_lost(false);
    assert_eq!(now(disk.clear_failure()), Ok(Ok(())));
    assert_eq!(ask(&disk, Op::Write, 0), None);
    disk.stop().expect("stops");
}

/// 1 MiB in a file, served as it is and as the store of a drive.
fn on_a_file(test: impl Fn(&Disk, &Path)) {
    const BYTES: u64 = 1 << 20;
    let folder = Folder::new();
    let path = folder.join("device");
    let mut file = file::FileOptions::new(&path);
    // Not every file system that tests run on does without the page cache.
    (file.direct, file.create, file.size) = (false, true, Some(BYTES));
    let disk = Disk::start(options(), move || {
        file::open(&file).map(|file| Box::new(file) as Box<dyn Device>)
    });
    test(&disk.expect("starts"), &path);
    let path = folder.join("store");
    let profile = by_name("wd5000aaks").expect("it is shipped");
    let mut drive = emulated::EmulatedOptions::new(profile, StoreSpec::File(path.clone()));
    (drive.create, drive.size) = (true, Some(BYTES));
    let disk = Disk::start(options(), move || {
        emulated::open(drive).map(|drive| Box::new(drive) as Box<dyn Device>)
    });
    test(&disk.expect("starts"), &path);
}

fn cut_short(path: &Path) {
    let file = OpenOptions::new().write(true).open(path).expect("opens");
    file.set_len(1 << 19).expect("cuts");
}

fn lost_for(disk: &Disk, why: &str) {
    assert_eq!(ask(disk, Op::Flush, 0), Some(Kind::Lost), "{why}");
    assert_eq!(ask(disk, Op::Write, 0), Some(Kind::ReadOnly));
    let told = failure(disk).expect("says why");
    assert!(told.ends_with(why), "{told}");
    let cleared = now(disk.clear_failure()).expect("runs");
    assert!(
        matches!(&cleared, Err(NotCleared::Backing(lost)) if lost.to_string() == told),
        "{cleared:?}"
    );
    assert!(disk.stop().is_err(), "not all is there");
}

#[test]
fn no_flush_succeeds_over_a_file_that_was_deleted() {
    on_a_file(|disk, path| {
        assert_eq!(ask(disk, Op::Write, 0), None);
        fs::remove_file(path).expect("removes");
        lost_for(disk, " was deleted");
    });
}

#[test]
fn no_flush_succeeds_over_a_file_that_was_replaced() {
    on_a_file(|disk, path| {
        assert_eq!(ask(disk, Op::Write, 0), None);
        let other = path.with_extension("other");
        fs::write(&other, [0; 4096]).expect("writes");
        fs::rename(&other, path).expect("replaces");
        lost_for(disk, " is another file now");
    });
}

#[test]
fn no_flush_succeeds_over_a_file_that_was_cut_short() {
    on_a_file(|disk, path| {
        assert_eq!(ask(disk, Op::Write, 1024), None);
        cut_short(path);
        lost_for(disk, " has 524288 bytes, 1048576 were served");
    });
}

/// A write to the last sector would restore the file's length, with zeroes in place of lost data.
#[test]
fn a_write_to_the_last_sector_does_not_hide_that_a_file_was_cut_short() {
    on_a_file(|disk, path| {
        assert_eq!(ask(disk, Op::Write, 1024), None);
        cut_short(path);
        assert_eq!(ask(disk, Op::Write, 2048 - 8), Some(Kind::ReadOnly));
        lost_for(disk, " has 524288 bytes, 1048576 were served");
    });
}

#[test]
fn a_read_of_what_was_cut_off_ends_writes_without_a_flush() {
    on_a_file(|disk, path| {
        cut_short(path);
        assert!(ask(disk, Op::Read, 1024).is_some());
        assert!(disk.has_failed());
        assert_eq!(ask(disk, Op::Write, 0), Some(Kind::ReadOnly));
    });
}

#[test]
fn a_file_that_is_put_back_can_be_cleared_and_one_that_has_moved_is_no_loss() {
    on_a_file(|disk, path| {
        assert_eq!(ask(disk, Op::Write, 0), None);
        let other = path.with_extension("other");
        fs::rename(path, &other).expect("moves");
        assert_eq!(ask(disk, Op::Flush, 0), None, "all of it is there");
        assert_eq!(failure(disk), None);
        fs::write(path, [0; 4096]).expect("writes");
        assert_eq!(ask(disk, Op::Flush, 0), Some(Kind::Lost));
        fs::rename(&other, path).expect("moves back");
        assert_eq!(now(disk.clear_failure()), Ok(Ok(())));
        assert_eq!(ask(disk, Op::Write, 0), None);
        disk.stop().expect("stops");
    });
}

/// Holds all commands, and panics when there are `at` of them.
struct Bomb {
    null: Null,
    held: Vec<Parts>,
    at: usize,
}

impl Device for Bomb {
    fn geometry(&self) -> Geometry {
        self.null.geometry()
    }

    fn submit(&mut self, _: Time, _: &Request<DriveTag>, parts: Parts) {
        self.held.push(parts);
        assert!(self.held.len() < self.at, "one too many");
    }

    fn poll(&mut self, _: Time) -> Option<Done> {
        None
    }

    fn abort(&mut self, _: Time, _: DriveTag) -> Aborted {
        Aborted::No
    }
}

#[test]
fn a_thread_that_ends_by_a_bug_answers_what_it_holds_and_says_so() {
    let null = Null::new(Sectors::new(1 << 20), 4);
    let mut options = options();
    options.engine.depth = 4;
    options.engine.merge = false;
    let bomb = Bomb {
        null,
        held: Vec::new(),
        at: 4,
    };
    let disk = start(options, bomb);
    let inbox = Inbox::new(100);
    let to: Arc<dyn Completer> = Arc::clone(&inbox) as Arc<_>;
    let mut submitted = 0;
    // Some requests are in the device, some wait for it, some are in the queue, and some come too late.
    for cookie in 0..100 {
        match disk.submit(request(&disk, cookie, Op::Read, cookie * 80, &to)) {
            Ok(()) => submitted += 1,
            Err(Refused::Stopped(_)) => {}
            Err(Refused::Full(_)) => panic!("there is room for all"),
        }
    }
    for _ in 0..submitted {
        assert_eq!(kind(&inbox.wait()), Some(Kind::Device));
    }
    assert!(inbox.poll().is_none(), "each is answered once");
    let error = disk.stop().expect_err("it did not end well");
    assert!(error.to_string().contains("bug: one too many"), "{error}");
    assert!(disk.has_failed());
    assert!(now(disk.snapshot()).is_err(), "nobody waits for it");
    let late = disk.submit(request(&disk, 0, Op::Read, 0, &to));
    assert!(matches!(late, Err(Refused::Stopped(_))));
}

/// A front end with a bug.
#[derive(Debug)]
struct Hot;

impl Completer for Hot {
    fn complete(&self, _: Completion) {
        panic!("not now");
    }
}

#[test]
fn a_front_end_that_panics_costs_no_other_its_answers() {
    let switch = Arc::new(Switch::default());
    let null = Null::new(Sectors::new(1 << 20), 32);
    let disk = start(options(), Faulty::new(null, switch));
    let pause = Nanos::from_millis(200);
    assert_eq!(
        control(&disk, Control::Fault(Fault::Stall(pause))),
        Ok(Sectors::ZERO)
    );
    let inbox = Inbox::new(20);
    let good: Arc<dyn Completer> = Arc::clone(&inbox) as Arc<_>;
    let hot: Arc<dyn Completer> = Arc::new(Hot);
    for cookie in 0..20 {
        submit(&disk, request(&disk, cookie, Op::Read, cookie * 80, &good));
        submit(
            &disk,
            request(&disk, cookie, Op::Read, cookie * 80 + 40, &hot),
        );
    }
    for _ in 0..20 {
        let done = inbox.wait();
        let kind = kind(&done);
        assert!(matches!(kind, None | Some(Kind::Device)), "{kind:?}");
    }
    disk.stop().expect_err("it did not end well");
}
