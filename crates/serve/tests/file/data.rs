//! Reads return written data, and errors belong to the request that met them.

use crate::common::{Inbox, submit};
use crate::support::{
    Loop, Mounted, Place, discard, disk, disk_of, flush, pattern, read, request, run, write, zero,
};
use headtime_engine::EngineSpec;
use headtime_sched::{Flags, Op};
use headtime_serve::file;
use headtime_serve::request::{Data, Kind};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};

const MIB: u64 = 1 << 20;

#[test]
fn what_is_written_is_read() {
    let place = Place::new("round-trip");
    let path = place.file("disk", 4 * MIB);
    for direct in [true, false] {
        let mut options = file::FileOptions::new(&path);
        options.direct = direct;
        let disk = disk(&options);
        assert_eq!(disk.bytes(), 4 * MIB);
        let sector = disk.sector_bytes() as usize;
        for (start, sectors, flags) in [
            (0, 1, Flags::NONE),
            (7, 3, Flags::FUA),
            (40, 256, Flags::NONE),
            (4 * MIB / sector as u64 - 1, 1, Flags::FUA),
        ] {
            let bytes = pattern(start + 1, sectors * sector);
            write(&disk, start, &bytes, flags).expect("writes");
            assert!(read(&disk, start, sectors as u64) == Ok(bytes.clone()));
            flush(&disk).expect("flushes");
            let mut there = vec![0; bytes.len()];
            let file = fs::File::open(&path).expect("opens");
            file.read_exact_at(&mut there, start * sector as u64)
                .expect("reads");
            assert!(there == bytes, "sector {start} of the file");
        }
        disk.stop().expect("stops");
    }
}

#[test]
fn zeroes_and_discards_give_space_back() {
    let place = Place::new("holes");
    let path = place.file("disk", 8 * MIB);
    let disk = disk(&file::FileOptions::new(&path));
    let sector = u64::from(disk.sector_bytes());
    let blocks = || fs::metadata(&path).expect("is there").blocks() * 512;
    write(&disk, 0, &pattern(1, 8 << 20), Flags::FUA).expect("writes");
    assert!(blocks() >= 8 * MIB);
    zero(&disk, 0, 2 << 20, true).expect("punches");
    let punched = blocks();
    assert!(punched <= 6 * MIB + 65536, "{punched}");
    zero(&disk, 2 * MIB / sector, 2 << 20, false).expect("zeroes");
    assert!(blocks() >= punched, "the sectors stay the disk's own");
    discard(&disk, 4 * MIB / sector, 2 << 20).expect("discards");
    assert!(blocks() <= 4 * MIB + 65536, "{}", blocks());
    let zeroes = vec![0; 2 << 20];
    for start in [0, 2, 4] {
        let there = read(&disk, start * MIB / sector, 2 * MIB / sector);
        assert!(there.as_ref() == Ok(&zeroes), "{start} MiB");
    }
    assert!(
        read(&disk, 6 * MIB / sector, 2 * MIB / sector).expect("reads")
            == pattern(1, 8 << 20)[6 << 20..]
    );

    let allocation = disk.allocation().expect("a file knows");
    let mut at = 0;
    let mut allocated = Vec::new();
    while at < 8 * MIB {
        let (yes, len) = allocation.status(at, 8 * MIB - at).expect("tells");
        assert!(len > 0 && at + len <= 8 * MIB);
        if yes {
            allocated.push((at, len));
        }
        at += len;
    }
    assert_eq!(allocated, [(6 * MIB, 2 * MIB)]);
    assert_eq!(
        allocation.status(7 * MIB, 4096).expect("tells"),
        (true, 4096)
    );
    assert_eq!(allocation.status(0, 4096).expect("tells"), (false, 4096));
    disk.stop().expect("stops");
}

#[test]
fn zeroes_are_written_where_they_cannot_be_made() {
    // The kernel makes no zeroes in files of tmpfs, and can only punch.
    let place = Place::new("tmpfs");
    let Some(mounted) = Mounted::on(place.path("on"), &["-t", "tmpfs", "-o", "size=16M", "none"])
    else {
        return;
    };
    let files = Place::within(&mounted.0, "disk");
    let mut options = file::FileOptions::new(files.file("disk", 8 * MIB));
    options.direct = false;
    let disk = disk(&options);
    write(&disk, 0, &pattern(1, 4 << 20), Flags::NONE).expect("writes");
    // More than the zeroes that the device has at hand.
    zero(&disk, 8, 3 << 20, false).expect("writes zeroes");
    let there = read(&disk, 0, 4 * MIB / 512).expect("reads");
    let mut expected = pattern(1, 4 << 20);
    expected[4096..4096 + (3 << 20)].fill(0);
    assert!(there == expected);
    zero(&disk, 0, 1 << 20, true).expect("punches");
    assert!(read(&disk, 0, MIB / 512) == Ok(vec![0; 1 << 20]));
    disk.stop().expect("stops");
    drop(files);
}

#[test]
fn parts_of_one_command_may_be_zeroes_and_more_than_one_call_takes() {
    // 2000 requests of a sector become one command, every third one of zeroes.
    let place = Place::new("many-parts");
    let mut options = file::FileOptions::new(place.file("disk", 4 * MIB));
    options.direct = false;
    let engine = EngineSpec {
        merge_max: headtime_units::Bytes(4096 * 512),
        ..EngineSpec::default()
    };
    let opened = options.clone();
    let disk = disk_of("noop", engine, move || file::open(&opened));
    write(&disk, 0, &pattern(9, 4 << 20), Flags::NONE).expect("writes");
    let inbox = Inbox::new(2048);
    // Keeps the device busy while the others come.
    submit(&disk, request(&disk, 9999, Op::Flush, 0, 0, &inbox));
    for sector in 0..2000u64 {
        let mut new = request(&disk, sector, Op::Write, sector, 1, &inbox);
        new.data = match sector % 3 {
            0 => Data::Zeroes { may_punch: true },
            _ => {
                let mut buffer = disk.pool().take(512);
                buffer.copy_from_slice(&pattern(sector, 512));
                Data::Buffer(buffer)
            }
        };
        submit(&disk, new);
    }
    for _ in 0..2001 {
        assert_eq!(inbox.wait().result, Ok(()));
    }
    let there = read(&disk, 0, 2001).expect("reads");
    for (sector, bytes) in there.chunks(512).enumerate().take(2000) {
        let expected = match sector % 3 {
            0 => vec![0; 512],
            _ => pattern(sector as u64, 512),
        };
        assert!(bytes == expected, "sector {sector}");
    }
    assert!(there[2000 * 512..] == pattern(9, 4 << 20)[2000 * 512..2001 * 512]);
    disk.stop().expect("stops");
}

#[test]
fn a_file_cut_short_gives_errors_and_not_zeroes() {
    let place = Place::new("cut");
    let path = place.file("disk", 4 * MIB);
    for direct in [true, false] {
        let file = OpenOptions::new().write(true).open(&path).expect("opens");
        file.set_len(4 * MIB).expect("grows");
        let mut options = file::FileOptions::new(&path);
        options.direct = direct;
        let disk = disk(&options);
        let sector = u64::from(disk.sector_bytes());
        let bytes = pattern(3, 4 << 20);
        write(&disk, 0, &bytes, Flags::NONE).expect("writes");
        // In the middle of a sector.
        file.set_len(MIB + 100).expect("shrinks");
        assert!(read(&disk, 0, MIB / sector).as_deref() == Ok(&bytes[..1 << 20]));
        for (start, len) in [
            (MIB / sector, 1),
            (MIB / sector - 1, 2),
            (0, 4 * MIB / sector),
            (2 * MIB / sector, 8),
        ] {
            let failure = read(&disk, start, len).expect_err("nothing is there");
            assert_eq!(failure.kind, Kind::Device);
            let first = start.max(MIB / sector);
            assert_eq!(failure.at.map(|at| at.get()), Some(first));
        }
        disk.stop().expect_err("what was written is lost");
    }
}

#[test]
fn a_full_file_system_is_an_error_of_the_write() {
    let place = Place::new("full");
    let small = place.file("small", 16 * MIB);
    if run("mkfs.ext4", &["-q", "-F", small.to_str().expect("ASCII")]).is_none() {
        println!("skipped, as there is no ext4");
        return;
    }
    let Some(device) = Loop::over(&small, &[]) else {
        return;
    };
    let Some(mounted) = Mounted::on(place.path("on"), &[&device.0]) else {
        return;
    };
    let files = Place::within(&mounted.0, "full");
    let disk = disk(&file::FileOptions::new(files.file("disk", 64 * MIB)));
    let sector = u64::from(disk.sector_bytes());
    let mut written = Vec::new();
    let failure = loop {
        let start = written.len() as u64 * MIB;
        assert!(start < 64 * MIB, "more fits than there is");
        let bytes = pattern(start, 1 << 20);
        match write(&disk, start / sector, &bytes, Flags::NONE) {
            Ok(()) => written.push(bytes),
            Err(failure) => break failure,
        }
    };
    assert_eq!(failure.kind, Kind::NoSpace);
    assert_eq!(failure.errno, Some(28));
    assert!(disk.has_failed());
    let refused = write(&disk, 0, &pattern(0, 4096), Flags::NONE).expect_err("latched");
    assert_eq!(refused.kind, Kind::ReadOnly);
    for (index, bytes) in written.iter().enumerate() {
        let there = read(&disk, index as u64 * MIB / sector, MIB / sector);
        assert!(there.as_ref() == Ok(bytes), "{index} MiB");
    }
    disk.stop().expect("what was written is flushed");
    drop(files);
}
