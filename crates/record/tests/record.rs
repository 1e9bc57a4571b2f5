//! Recordings of a loop device: every request, with its thread. The tests need root, tracefs and losetup. If
//! one of these is missing, the tests print that and pass.

#![allow(
    clippy::disallowed_types,
    reason = "recorded times are held against the time that it took"
)]

use headtime_record::{Going, RecordError, RecordOptions, Recorder, Recording, Target};
use headtime_sched::Op;
use headtime_testkit::recorded::{Loop, instances};
use headtime_units::{Bytes, Extent};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Runs one test at a time. Tests check for leftovers, and expect no other load.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    // The failure of another test does not count.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a loop device of 16 MiB; `None`, with a printed reason, if there can be none.
fn loop_device() -> Option<Loop> {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: recording needs root");
        return None;
    }
    Loop::new(16 << 20)
}

/// Returns a recorder of a device; `None`, with a printed reason, if tracefs is not available.
fn start(device: &Path, options: &RecordOptions) -> Option<Recorder> {
    let target = Target::new(device).expect("a loop device");
    match Recorder::start(&target, options) {
        Ok(recorder) => Some(recorder),
        Err(error @ RecordError::NoTracefs { .. }) => {
            println!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Bytes at an address that is suitable for direct reads.
struct Aligned {
    bytes: Vec<u8>,
    from: usize,
}

impl Aligned {
    fn new(bytes: usize) -> Aligned {
        let bytes = vec![7; bytes + 4096];
        let from = bytes.as_ptr().align_offset(4096);
        Aligned { bytes, from }
    }

    fn get(&mut self, len: usize) -> &mut [u8] {
        &mut self.bytes[self.from..self.from + len]
    }
}

fn direct(device: &Path) -> File {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(device)
        .expect("a loop device")
}

/// An operation of a thread: the thread's number, the operation, the sectors.
type Done = (u32, Op, Extent);

/// Reads and writes from this thread, in an order that depends on `seed`.
fn work(device: &Path, seed: u64, count: u64, from: u64, sectors: u64) -> Vec<Done> {
    let file = direct(device);
    let mut buffer = Aligned::new(64 << 10);
    let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let mut state = seed;
    let mut done = Vec::new();
    for number in 0..count {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let len = 8 << (state >> 33 & 3);
        let start = from + (state >> 40) % ((sectors - len) / 8) * 8;
        let bytes = buffer.get(len as usize * 512);
        let op = if number % 3 == 2 {
            file.write_all_at(bytes, start * 512)
                .expect("it is written");
            Op::Write
        } else {
            file.read_exact_at(bytes, start * 512).expect("it is read");
            Op::Read
        };
        done.push((thread, op, Extent::at(start, len)));
    }
    done
}

/// Returns the requests of a recording that are of a thread, in order.
fn recorded_of(recording: &Recording, thread: u32) -> Vec<Done> {
    recording
        .trace
        .requests
        .iter()
        .filter(|request| request.process == Some(thread))
        .map(|request| (thread, request.op, request.extent))
        .collect()
}

#[test]
fn every_request_is_there_with_its_thread() {
    let _alone = alone();
    const EACH: u64 = 300;
    let Some(disk) = loop_device() else {
        return;
    };
    // Requests before the recording, and requests to another device, are not recorded.
    work(&disk.device, 3, 20, 0, 32_768);
    let Some(other) = loop_device() else {
        return;
    };
    // An instance that a killed process left. Process 1 did not start at that time.
    let stale = Path::new("/sys/kernel/tracing/instances/headtime-1-999999999-0");
    let left = fs::create_dir(stale).is_ok();
    let Some(mut recorder) = start(&disk.device, &RecordOptions::default()) else {
        return;
    };
    assert!(!left || !stale.exists(), "a stale instance is removed");
    let began = Instant::now();
    let threads: Vec<_> = (0..3)
        .map(|number| {
            let device = disk.device.clone();
            thread::spawn(move || work(&device, number, EACH, 0, 32_768))
        })
        .collect();
    work(&other.device, 9, 50, 0, 32_768);
    let flusher = {
        let device = disk.device.clone();
        thread::spawn(move || {
            direct(&device).sync_all().expect("it flushes");
            rustix::thread::gettid().as_raw_nonzero().get() as u32
        })
    };
    while threads.iter().any(|thread| !thread.is_finished()) {
        let going = recorder.step(Duration::from_millis(20)).expect("it reads");
        assert_eq!(going, Going::On);
    }
    let flusher = flusher.join().expect("it flushes");
    let recording = recorder.finish().expect("it ends");
    let took = began.elapsed();
    assert_eq!((recording.lost, recording.unpaired), (0, 0));
    assert_eq!((recording.unfinished, recording.failed), (0, 0));

    let mut total = 0;
    for thread in threads {
        let done = thread.join().expect("it works");
        assert_eq!(recorded_of(&recording, done[0].0), done);
        total += done.len();
    }
    assert_eq!(total as u64, 3 * EACH);
    assert_eq!(
        recorded_of(&recording, flusher),
        [(flusher, Op::Flush, Extent::default())]
    );
    // There are no other requests: the device was new, and udev leaves it alone while it is open.
    let others = recording.trace.requests.len() - total - 1;
    assert!(others < 100, "{others} requests of others");
    let mut longest = Duration::ZERO;
    for request in &recording.trace.requests {
        let arrival = request.arrival.expect("it has one");
        let completion = request.completion.expect("it has one");
        longest = longest.max(Duration::from_nanos((completion - arrival).as_nanos()));
    }
    assert!(Duration::ZERO < longest && longest < took, "{longest:?}");
    assert!(recording.span.as_nanos() <= took.as_nanos() as u64);
    let busiest = &recording.processes[0];
    assert_eq!(busiest.requests, EACH);
    assert!(!busiest.name.is_empty());
    let name = recording.trace.process_name(busiest.id);
    assert_eq!(name, Some(busiest.name.as_str()));
    assert_eq!(instances(std::process::id()), 0);
}

#[test]
fn of_a_partition_only_its_own() {
    let _alone = alone();
    let Some(disk) = loop_device() else {
        return;
    };
    // The kernel is notified of the partition, since not every kernel reads every kind of table: 8192 sectors
    // from 2048 on.
    let added = Command::new("addpart")
        .arg(&disk.device)
        .args(["1", "2048", "8192"])
        .output();
    let partition = PathBuf::from(format!("{}p1", disk.device.display()));
    if !added.is_ok_and(|output| output.status.success()) || !partition.exists() {
        println!("SKIPPED: no partition on a loop device can be made");
        return;
    }
    let target = Target::new(&partition).expect("it is there");
    assert_eq!(target.part(), Some(Extent::at(2048, 8192)));
    assert_eq!(
        format!("/dev/{}", target.disk()),
        disk.device.display().to_string()
    );
    let Some(mut recorder) = start(&partition, &RecordOptions::default()) else {
        return;
    };
    let device = disk.device.clone();
    let through = thread::spawn(move || work(&partition, 1, 30, 0, 8192));
    let through = through.join().expect("it works");
    // Requests to the same sectors through the disk are recorded. Requests before and after the partition are
    // not.
    let inside = thread::spawn({
        let device = device.clone();
        move || work(&device, 2, 30, 2048, 8192)
    });
    let inside = inside.join().expect("it works");
    let outside = thread::spawn(move || {
        let mut done = work(&device, 3, 30, 0, 2048);
        done.extend(work(&device, 4, 30, 10_240, 10_000));
        done
    });
    let outside = outside.join().expect("it works");
    recorder.step(Duration::ZERO).expect("it reads");
    let recording = recorder.finish().expect("it ends");
    // Addresses count from the start of the disk.
    let moved: Vec<Done> = through
        .iter()
        .map(|(thread, op, extent)| {
            let start = extent.start.get() + 2048;
            (*thread, *op, Extent::at(start, extent.len.get()))
        })
        .collect();
    assert_eq!(recorded_of(&recording, through[0].0), moved);
    assert_eq!(recorded_of(&recording, inside[0].0), inside);
    assert_eq!(recorded_of(&recording, outside[0].0), []);
    assert_eq!((recording.unpaired, recording.unfinished), (0, 0));
}

/// A disk of compressed memory. Like device mapper it works without a request queue.
struct Zram(String);

impl Zram {
    fn new() -> Option<Zram> {
        let Ok(number) = fs::read_to_string("/sys/class/zram-control/hot_add") else {
            println!("SKIPPED: no zram");
            return None;
        };
        let zram = Zram(number.trim().to_owned());
        let size = format!("/sys/block/zram{}/disksize", zram.0);
        fs::write(size, "16M").expect("a new one has no size");
        Some(zram)
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        let _ = fs::write(format!("/sys/block/zram{}/reset", self.0), "1");
        let _ = fs::write("/sys/class/zram-control/hot_remove", &self.0);
    }
}

#[test]
fn of_a_device_without_a_request_queue() {
    let _alone = alone();
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: recording needs root");
        return;
    }
    let Some(disk) = Zram::new() else {
        return;
    };
    let device = PathBuf::from(format!("/dev/zram{}", disk.0));
    let Some(recorder) = start(&device, &RecordOptions::default()) else {
        return;
    };
    let worker = thread::spawn(move || work(&device, 1, 100, 0, 32_768));
    let done = worker.join().expect("it works");
    let recording = recorder.finish().expect("it ends");
    assert_eq!(recorded_of(&recording, done[0].0), done);
    assert_eq!((recording.unpaired, recording.unfinished), (0, 0));
}

#[test]
fn what_is_lost_is_said() {
    let _alone = alone();
    let Some(disk) = loop_device() else {
        return;
    };
    // The smallest buffers, without a reader.
    let options = RecordOptions {
        buffer: Bytes(1),
        ..RecordOptions::default()
    };
    let Some(recorder) = start(&disk.device, &options) else {
        return;
    };
    let done = work(&disk.device, 5, 4000, 0, 32_768);
    let recording = recorder.finish().expect("it ends");
    assert!(recording.lost > 0);
    let there = recording.trace.requests.len();
    assert!(there < done.len(), "{there} of {}", done.len());
    // Every request has two events, so no more are missing than events were lost.
    let missing = done.len() - recorded_of(&recording, done[0].0).len();
    assert!(missing as u64 <= recording.lost, "{missing}");
}

#[test]
fn the_end_comes_when_the_device_goes_or_there_is_enough() {
    let _alone = alone();
    let Some(disk) = loop_device() else {
        return;
    };
    let options = RecordOptions {
        requests_max: 50,
        ..RecordOptions::default()
    };
    let Some(mut recorder) = start(&disk.device, &options) else {
        return;
    };
    let until = |recorder: &mut Recorder, end: Going| {
        for _ in 0..200 {
            if recorder.step(Duration::from_millis(10)).expect("it reads") == end {
                return;
            }
        }
        panic!("{end:?} did not come");
    };
    work(&disk.device, 5, 60, 0, 32_768);
    until(&mut recorder, Going::Full);
    drop(recorder);
    let mut recorder = start(&disk.device, &RecordOptions::default()).expect("as before");
    work(&disk.device, 5, 10, 0, 32_768);
    assert!(disk.detach());
    until(&mut recorder, Going::Gone);
    let recording = recorder.finish().expect("it ends");
    assert!(recording.trace.requests.len() >= 10);
}
