//! Tests of the file itself.

use crate::common::{
    Directory, Kind, One, can_mount, disk, export, faulty, needs, requests, run, unmount, wait,
};
use headtime_attach::fuse::{self, MountError};
use headtime_attach::loopdev;
use headtime_disk::drive::Fault;
use headtime_linux::mounts;
use headtime_sched::Op;
use headtime_serve::device::Control;
use headtime_units::{Extent, Nanos};
use rustix::fs::{FallocateFlags, SeekFrom};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn open(one: &One) -> File {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(one.file())
        .expect("opens")
}

fn read(file: &File, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0xEE; len];
    let read = file.read_at(&mut bytes, offset).expect("reads");
    bytes.truncate(read);
    bytes
}

/// Bytes that depend on their offset.
fn pattern(offset: u64, len: usize) -> Vec<u8> {
    (offset..)
        .map(|at| (at * 31 + at / 251) as u8)
        .take(len)
        .collect()
}

#[test]
fn a_file_as_long_as_the_disk() {
    if !can_mount("a_file_as_long_as_the_disk") {
        return;
    }
    let one = One::new("long", Kind::default());
    let meta = fs::metadata(one.file()).expect("is there");
    assert_eq!(meta.len(), 64 << 20);
    assert_eq!(meta.mode() & 0o7777, 0o600);
    let names: Vec<_> = fs::read_dir(one.mounted.mountpoint())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(names, ["disk0"]);
    let mountpoint = one.mounted.mountpoint().to_owned();
    let other = File::create(mountpoint.join("other"));
    assert_eq!(
        other.expect_err("refused").kind(),
        ErrorKind::PermissionDenied
    );
    let removed = fs::remove_file(one.file()).expect_err("refused");
    assert_eq!(removed.kind(), ErrorKind::PermissionDenied);
    assert!(!mountpoint.join("none").exists());

    let mount = mounts::at(&mountpoint).expect("/proc").expect("is mounted");
    let server = mount.server().expect("one of ours");
    assert_eq!(server.pid as u32, std::process::id());
    assert!(server.lives());
    assert_eq!(loopdev::backed_by(&mountpoint).expect("/sys"), []);
    let again = fuse::mount(&mountpoint, Vec::new(), &fuse::Options::default());
    assert!(matches!(again, Err(MountError::Mounted(_))), "{again:?}");
    one.end();
    assert_eq!(mounts::at(&mountpoint).expect("/proc"), None);
}

#[test]
fn reads_and_writes_of_any_bytes() {
    if !can_mount("reads_and_writes_of_any_bytes") {
        return;
    }
    for sector_bytes in [512, 4096] {
        let kind = Kind {
            sector_bytes,
            ..Kind::default()
        };
        let one = One::new("bytes", kind);
        let file = open(&one);
        let mut image = vec![0; 1 << 20];
        file.write_all_at(&image, 0).expect("writes");
        // Within a sector, over one boundary, over several, aligned at one end, at both.
        let mut writes = vec![(10, 5), (510, 4), (4090, 10), (3, 20_000), (512, 100)];
        writes.extend([
            (700, 324),
            (8192, 8192),
            (4095, 1),
            (4096, 1),
            (100_001, 300_001),
        ]);
        for (offset, len) in writes {
            let bytes = pattern(offset, len);
            assert_eq!(file.write_at(&bytes, offset).expect("writes"), len);
            image[offset as usize..offset as usize + len].copy_from_slice(&bytes);
            let around = offset.saturating_sub(5000) as usize..offset as usize + len + 5000;
            assert_eq!(
                read(&file, around.start as u64, around.len()),
                image[around]
            );
        }
        assert_eq!(read(&file, 0, image.len()), image);
        for (offset, len) in [(1, 1), (511, 2), (4097, 3), (999, 12_345)] {
            let expected = &image[offset..offset + len];
            assert_eq!(read(&file, offset as u64, len), expected);
        }
        drop(file);
        one.end();
    }
}

#[test]
fn the_end_of_the_file() {
    if !can_mount("the_end_of_the_file") {
        return;
    }
    let one = One::new("end", Kind::default());
    let file = open(&one);
    let end = 64 << 20;
    assert_eq!(read(&file, end - 100, 4096).len(), 100);
    assert!(read(&file, end, 4096).is_empty());
    assert!(read(&file, end + 12345, 10).is_empty());
    let bytes = pattern(end - 100, 4096);
    assert_eq!(file.write_at(&bytes, end - 100).expect("in part"), 100);
    assert_eq!(read(&file, end - 100, 4096), bytes[..100]);
    for offset in [end, end + 4096] {
        let error = file.write_at(&bytes, offset).expect_err("no space");
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    }
    assert_eq!(file.metadata().expect("is there").len(), end);
    let error = file.set_len(end / 2).expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    // As with a block device, opening does not truncate.
    let mut truncating = File::create(one.file()).expect("opens");
    truncating.write_all(&[7; 512]).expect("writes");
    assert_eq!(truncating.metadata().expect("is there").len(), end);
    assert_eq!(read(&file, end - 100, 4096), bytes[..100]);
    drop((file, truncating));
    one.end();
}

#[test]
fn system_calls_are_the_requests_that_they_should_be() {
    if !can_mount("system_calls_are_the_requests_that_they_should_be") {
        return;
    }
    let one = One::new("calls", Kind::default());
    let file = open(&one);
    file.write_all_at(&[1; 8192], 0).expect("writes");
    assert_eq!(requests(&one), [0, 1, 0, 0]);
    file.sync_all().expect("flushes");
    file.sync_data().expect("flushes");
    assert_eq!(requests(&one), [0, 1, 2, 0]);
    // Closing the file causes no flush.
    drop(file);
    let file = open(&one);
    assert_eq!(requests(&one), [0, 1, 2, 0]);
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&file, punch, 4096, 4096).expect("discards");
    assert_eq!(requests(&one), [0, 1, 2, 1]);
    rustix::fs::fallocate(&file, FallocateFlags::ZERO_RANGE, 8192, 3 << 20).expect("zeroes");
    // Three steps of 1 MiB are one request.
    assert_eq!(requests(&one), [0, 2, 2, 1]);
    assert_eq!(read(&file, 0, 8192)[..4096], [1; 4096]);
    assert_eq!(requests(&one), [1, 2, 2, 1]);
    // A write of part of a sector also reads the sector, and is one request.
    file.write_all_at(&[2; 10], 100).expect("writes");
    assert_eq!(requests(&one), [1, 3, 2, 1]);
    // A megabyte and a half at once is two requests.
    assert_eq!(read(&file, 0, 3 << 19).len(), 3 << 19);
    assert_eq!(requests(&one), [3, 3, 2, 1]);
    drop(file);
    let synchronous = OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_DSYNC | libc::O_DIRECT)
        .open(one.file())
        .expect("opens");
    synchronous.write_all_at(&[3; 512], 0).expect("writes");
    let [_, writes, flushes, _] = requests(&one);
    // The write is durable by itself. A kernel that flushes in addition does no harm.
    assert_eq!(writes, 4);
    assert!(flushes >= 2);
    drop(synchronous);
    one.end();
}

#[test]
fn holes_read_as_zeroes() {
    if !can_mount("holes_read_as_zeroes") {
        return;
    }
    let one = One::new("holes", Kind::default());
    let file = open(&one);
    let mut image = pattern(0, 4 << 20);
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    for how in [punch, FallocateFlags::ZERO_RANGE] {
        file.write_all_at(&image, 0).expect("writes");
        for (offset, len) in [
            (4096, 4096),
            (10_000, 3),
            (20_001, 511),
            (1 << 20, 2 << 20),
            (30_000, 100_000),
        ] {
            rustix::fs::fallocate(&file, how, offset as u64, len as u64).expect("zeroes");
            image[offset..offset + len].fill(0);
            assert_eq!(read(&file, 0, image.len()), image, "{how:?} {offset} {len}");
        }
        image = pattern(7, 4 << 20);
    }
    // All space is allocated already, so allocation is not supported.
    let error = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 4096);
    assert_eq!(error, Err(rustix::io::Errno::OPNOTSUPP));
    drop(file);
    one.end();
}

#[test]
fn holes_can_be_looked_for() {
    if !can_mount("holes_can_be_looked_for") {
        return;
    }
    let one = One::new("seek", Kind::default());
    let file = open(&one);
    file.write_all_at(&[1; 1 << 16], 1 << 20).expect("writes");
    let seek = |from| rustix::fs::seek(&file, from);
    assert_eq!(seek(SeekFrom::Data(0)), Ok(1 << 20));
    assert_eq!(seek(SeekFrom::Hole(0)), Ok(0));
    assert_eq!(seek(SeekFrom::Hole(1 << 20)), Ok((1 << 20) + (1 << 16)));
    assert_eq!(seek(SeekFrom::Data(5 << 20)), Err(rustix::io::Errno::NXIO));
    assert_eq!(seek(SeekFrom::Data(1 << 40)), Err(rustix::io::Errno::NXIO));
    drop(file);
    one.end();
}

/// Neighbours write to the same sectors, byte by byte. No writer's bytes may be lost.
#[test]
fn writes_of_parts_of_a_sector_do_not_lose_others() {
    if !can_mount("writes_of_parts_of_a_sector_do_not_lose_others") {
        return;
    }
    const WRITERS: u64 = 6;
    const EACH: u64 = 100;
    let one = One::new("parts", slow());
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let file = open(&one);
            scope.spawn(move || {
                for turn in 0..200 {
                    let offset = (turn * WRITERS + writer) * EACH;
                    let bytes = pattern(offset, EACH as usize);
                    assert_eq!(
                        file.write_at(&bytes, offset).expect("writes"),
                        EACH as usize
                    );
                }
            });
        }
    });
    let file = open(&one);
    let all = (200 * WRITERS * EACH) as usize;
    assert_eq!(read(&file, 0, all), pattern(0, all));
    drop(file);
    one.end();
}

/// Disk that is slow enough for requests to overlap.
fn slow() -> Kind {
    Kind {
        delay: Nanos::from_micros(100),
        ..Kind::default()
    }
}

/// One thread writes and zeroes a whole sector, while other threads write its first bytes. Only the first thread writes the last bytes,
/// which must be as this thread has left them.
#[test]
fn a_whole_sector_is_not_overwritten_by_writes_of_its_parts() {
    if !can_mount("a_whole_sector_is_not_overwritten_by_writes_of_its_parts") {
        return;
    }
    let one = One::new("whole", slow());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for first in [0, 50] {
            let (file, done) = (open(&one), &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    file.write_all_at(&[0xFF; 50], first).expect("writes");
                }
            });
        }
        let file = open(&one);
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        for turn in 0..1000 {
            let byte = (turn % 255) as u8;
            let result = match byte {
                0 => rustix::fs::fallocate(&file, punch, 0, 512).map_err(Into::into),
                _ => file.write_all_at(&[byte; 512], 0),
            };
            let tail = read(&file, 256, 256);
            if result.is_err() || tail != [byte; 256] {
                done.store(true, Ordering::Relaxed);
                panic!("turn {turn}: {result:?}, {:?}", &tail[..8]);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    one.end();
}

#[test]
fn two_exports_of_one_disk_and_one_that_is_not_written_to() {
    if !can_mount("two_exports_of_one_disk_and_one_that_is_not_written_to") {
        return;
    }
    let directory = Directory::new("two");
    let disk = disk("disk0", Kind::default());
    let mut guest = export("guest", 1, &disk);
    guest.read_only = true;
    let exports = vec![export("host", 0, &disk), guest];
    let mut mounted =
        fuse::mount(&directory.0, exports, &fuse::Options::default()).expect("mounts");
    let host = OpenOptions::new()
        .write(true)
        .open(mounted.file("host"))
        .expect("opens");
    host.write_all_at(b"seen by both", 1000).expect("writes");
    let guest = File::open(mounted.file("guest")).expect("opens");
    assert_eq!(read(&guest, 1000, 12), b"seen by both");
    let mode = guest.metadata().expect("is there").mode();
    assert_eq!(mode & 0o7777, 0o400);
    let refused = OpenOptions::new().write(true).open(mounted.file("guest"));
    let refused = refused.expect_err("not to be written to").raw_os_error();
    assert!([Some(libc::EROFS), Some(libc::EACCES)].contains(&refused));
    let snapshot = wait(disk.snapshot()).expect("runs");
    let [host_metrics, guest_metrics] = &snapshot.metrics.exports[..] else {
        panic!("two exports");
    };
    assert_eq!(host_metrics.requests[Op::Write as usize], 1);
    assert_eq!(guest_metrics.requests[Op::Read as usize], 1);

    // With a file open the directory stays mounted.
    let busy = mounted.unmount().expect_err("files are open");
    assert_eq!(busy.raw_os_error(), Some(libc::EBUSY));
    assert!(!mounted.is_gone());
    drop((host, guest));
    unmount(&mut mounted);
    assert!(mounted.is_gone());
    disk.stop().expect("stops");
}

#[test]
fn a_file_that_is_a_part_of_a_disk() {
    if !can_mount("a_file_that_is_a_part_of_a_disk") {
        return;
    }
    let directory = Directory::new("part");
    let disk = disk("disk0", Kind::default());
    let mut part = export("part", 1, &disk);
    part.addresses = disk.addresses().part(1 << 20, 3 << 20).expect("fits");
    let exports = vec![export("whole", 0, &disk), part];
    let mut mounted =
        fuse::mount(&directory.0, exports, &fuse::Options::default()).expect("mounts");
    let open = |name| {
        let both = OpenOptions::new()
            .read(true)
            .write(true)
            .open(mounted.file(name));
        both.expect("opens")
    };
    let (part, whole) = (open("part"), open("whole"));
    assert_eq!(part.metadata().expect("is there").len(), 2 << 20);
    part.write_all_at(&[1; 1 << 16], 1 << 20).expect("writes");
    assert_eq!(read(&whole, (2 << 20) - 1, 2), [0, 1]);
    let beyond = part.write_at(&[1], 2 << 20).expect_err("behind the end");
    assert_eq!(beyond.raw_os_error(), Some(libc::ENOSPC));
    whole.write_all_at(&[2; 4096], 3 << 20).expect("writes");
    assert_eq!(read(&part, (2 << 20) - 1, 2), [0]);
    let seek = |from| rustix::fs::seek(&part, from);
    assert_eq!(seek(SeekFrom::Data(0)), Ok(1 << 20));
    assert_eq!(seek(SeekFrom::Hole(1 << 20)), Ok((1 << 20) + (1 << 16)));
    assert_eq!(seek(SeekFrom::Data(3 << 19)), Err(rustix::io::Errno::NXIO));
    rustix::fs::fallocate(
        &part,
        FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
        0,
        4 << 20,
    )
    .expect("punches");
    assert_eq!(read(&whole, 2 << 20, 2), [0, 0]);
    assert_eq!(read(&whole, 3 << 20, 2), [2, 2]);
    drop((part, whole));
    unmount(&mut mounted);
    disk.stop().expect("stops");
}

#[test]
fn names_that_cannot_be_files() {
    let disk = disk("disk0", Kind::default());
    let directory = Directory::new("names");
    for name in ["", ".", "..", "a/b", "a\0b", &"x".repeat(256)] {
        let exports = vec![export(name, 0, &disk)];
        let error = fuse::mount(&directory.0, exports, &fuse::Options::default());
        assert!(matches!(error, Err(MountError::Name(_))), "{name:?}");
    }
    let exports = vec![export("a", 0, &disk), export("a", 1, &disk)];
    let error = fuse::mount(&directory.0, exports, &fuse::Options::default());
    assert!(matches!(error, Err(MountError::Twice(_))));
    disk.stop().expect("stops");
}

/// Tests of other ends of a mount: unmounted by another process, with a file open and without, and a disk stopped under a mount.
#[test]
fn ends_that_are_not_ours() {
    if !can_mount("ends_that_are_not_ours") {
        return;
    }
    let one = One::new("foreign", Kind::default());
    let mountpoint = one.mounted.mountpoint().to_owned();
    mounts::unmount(&mountpoint, false).expect("nothing is open");
    wait(one.mounted.gone());
    one.end();

    let one = One::new("lazy", Kind::default());
    let mountpoint = one.mounted.mountpoint().to_owned();
    let file = open(&one);
    file.write_all_at(&[5; 4096], 0).expect("writes");
    // After an unmount of our own, the open file stays open and is served.
    let One { mounted, disk, .. } = one;
    assert!(!mounted.end());
    assert_eq!(mounts::at(&mountpoint).expect("/proc"), None);
    assert_eq!(read(&file, 0, 4096), [5; 4096]);
    disk.stop().expect("stops");
    let error = file.read_at(&mut [0; 512], 0).expect_err("has stopped");
    assert_eq!(error.raw_os_error(), Some(libc::EIO));
}

#[test]
fn as_many_in_flight_as_a_program_asks_for() {
    let test = "as_many_in_flight_as_a_program_asks_for";
    if !can_mount(test) || !needs(test, "fio") {
        return;
    }
    for engine in ["io_uring", "libaio"] {
        let kind = Kind {
            delay: Nanos::from_millis(5),
            ..Kind::default()
        };
        let one = One::new(engine, kind);
        let mut most = 0;
        std::thread::scope(|scope| {
            let path = one.path();
            let fio = scope.spawn(move || {
                run(
                    "fio",
                    &[
                        "--name=depth",
                        &format!("--filename={path}"),
                        &format!("--ioengine={engine}"),
                        "--rw=randread",
                        "--bs=4k",
                        "--direct=1",
                        "--iodepth=32",
                        "--time_based",
                        "--runtime=2",
                    ],
                )
            });
            while !fio.is_finished() {
                let snapshot = wait(async {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    one.disk.snapshot().await
                });
                most = most.max(snapshot.expect("runs").whole.in_flight);
            }
            fio.join().expect("fio is content");
        });
        assert!(most > 24, "{engine}: {most} in flight");
        one.end();
    }
}

#[test]
fn fio_reads_what_it_wrote() {
    let test = "fio_reads_what_it_wrote";
    if !can_mount(test) || !needs(test, "fio") {
        return;
    }
    for (name, options) in [
        (
            "direct",
            ["--ioengine=io_uring", "--direct=1", "--bsrange=512-256k"],
        ),
        (
            "buffered",
            ["--ioengine=psync", "--direct=0", "--bsrange=100-64k"],
        ),
        (
            "large",
            ["--ioengine=libaio", "--direct=1", "--bsrange=4k-4m"],
        ),
    ] {
        let one = One::new(name, Kind::default());
        let filename = format!("--filename={}", one.path());
        let mut arguments = vec!["--name=verify", &filename, "--rw=randwrite"];
        arguments.extend(options);
        arguments.extend(["--iodepth=32", "--size=24m", "--verify=crc32c"]);
        arguments.extend(["--fsync=64", "--randseed=7", "--verify_fatal=1"]);
        arguments.push("--verify_state_save=0");
        if name == "buffered" {
            arguments.push("--bs_unaligned");
        }
        run("fio", &arguments);
        one.end();
    }
}

/// Both the disk's queue and the mount's are full all the time.
#[test]
fn requests_beyond_a_full_queue_are_all_answered() {
    let test = "requests_beyond_a_full_queue_are_all_answered";
    if !can_mount(test) || !needs(test, "fio") {
        return;
    }
    for (name, queue, requests) in [("queue", 1, 1024), ("requests", 1024, 2), ("both", 1, 1)] {
        let kind = Kind {
            delay: Nanos::from_micros(20),
            queue,
            requests,
            ..Kind::default()
        };
        let one = One::new(name, kind);
        let filename = format!("--filename={}", one.path());
        run(
            "fio",
            &[
                "--name=full",
                &filename,
                "--rw=randrw",
                "--ioengine=io_uring",
                "--direct=1",
                "--bsrange=512-16k",
                "--iodepth=32",
                "--size=8m",
                "--verify=crc32c",
                "--verify_fatal=1",
                "--verify_state_save=0",
            ],
        );
        one.end();
    }
}

#[test]
fn programs_are_told_what_went_wrong() {
    if !can_mount("programs_are_told_what_went_wrong") {
        return;
    }
    let directory = Directory::new("faults");
    let (disk, switch) = faulty();
    let exports = vec![export("disk0", 0, &disk)];
    let options = fuse::Options::default();
    let mut mounted = fuse::mount(&directory.0, exports, &options).expect("mounts");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(mounted.file("disk0"))
        .expect("opens");
    let unreadable = Fault::Unreadable {
        extent: Extent::at(100, 1),
        retries: 1,
    };
    wait(disk.control(Control::Fault(unreadable)))
        .expect("runs")
        .expect("can go wrong");
    let code = |result: std::io::Result<usize>| result.expect_err("fails").raw_os_error();
    let mut bytes = [0; 4096];
    assert_eq!(code(file.read_at(&mut bytes, 99 * 512)), Some(libc::EIO));
    // A part of this sector cannot be written, since the rest of the sector is not known.
    assert_eq!(code(file.write_at(&[1; 10], 100 * 512)), Some(libc::EIO));
    assert_eq!(file.read_at(&mut bytes, 0).expect("reads"), 4096);
    file.write_all_at(&[1; 512], 0).expect("writes");
    switch.fail_flushes(1);
    let flush = file.sync_all().expect_err("fails").raw_os_error();
    assert_eq!(flush, Some(libc::EIO));
    // From then on writes are refused until the failure is cleared.
    assert_eq!(code(file.write_at(&[1; 512], 0)), Some(libc::EROFS));
    wait(disk.clear_failure()).expect("runs").expect("clears");
    file.write_all_at(&[2; 512], 0).expect("writes");
    drop(file);
    unmount(&mut mounted);
    disk.stop().expect("stops");
}

/// A program that is killed while the disk has its request ends when the request does. Other programs are not affected.
#[test]
fn a_program_that_is_killed() {
    let test = "a_program_that_is_killed";
    if !can_mount(test) || !needs(test, "dd") {
        return;
    }
    let kind = Kind {
        delay: Nanos::from_millis(200),
        ..Kind::default()
    };
    let one = One::new("killed", kind);
    let mut dd = Command::new("dd")
        .args(["bs=64k", "of=/dev/null", &format!("if={}", one.path())])
        .stderr(Stdio::null())
        .spawn()
        .expect("runs");
    wait(async {
        loop {
            let snapshot = one.disk.snapshot().await.expect("runs");
            if snapshot.whole.in_flight > 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    dd.kill().expect("is ours");
    let killed = dd.wait().expect("is waited for");
    assert!(!killed.success());
    assert_eq!(read(&open(&one), 0, 512), [0; 512]);
    one.end();
}
