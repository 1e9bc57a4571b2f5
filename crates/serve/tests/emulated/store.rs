//! Where the bytes lie.

use crate::host::{Folder, Host, emulate, profile, store_in};
use headtime_sched::{Flags, Op};
use headtime_serve::backing::Lost;
use headtime_serve::device::{Control, Device};
use headtime_serve::emulated::{EmulatedOptions, FILE_BYTES_MAX, StoreSpec, look, open};
use headtime_serve::request::{Data, Kind};
use headtime_units::{Extent, Sectors};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

const SECTORS: u64 = 1 << 20;

/// A profile of 20 TB, by making a drive of today have larger sectors.
fn twenty_terabytes() -> headtime_disk::Profile {
    let profile = profile("exos-x18");
    let more = profile.with(|spec| {
        for zone in &mut spec.layout.zones {
            zone.sectors_per_track += zone.sectors_per_track / 4 / 8 * 8;
        }
        spec.geometry.capacity = Sectors::new(20_000_588_955_648 / 512);
    });
    more.expect("there is room on the tracks")
}

#[test]
fn twenty_terabytes_cost_what_is_written() {
    let profile = twenty_terabytes();
    let folder = Folder::new();
    for store in [StoreSpec::Memory, store_in(&folder)] {
        let options = EmulatedOptions {
            create: true,
            ..EmulatedOptions::new(profile.clone(), store)
        };
        let mut host = Host::new(open(options).expect("opens"));
        let sectors = host.device.geometry().capacity.get();
        assert_eq!(sectors, 20_000_588_955_648 / 512);
        // Over the edge of two files, too.
        let edge = FILE_BYTES_MAX / 512;
        for at in [0, edge - 4, 2 * edge - 4, sectors - 8] {
            host.write(at, 8, 9, Flags::NONE);
            host.next();
            assert_eq!(host.contents(at, 8), [9; 4096]);
        }
        let allocation = host.device.allocation().expect("it can tell");
        let bytes = sectors * 512;
        let (mut at, mut allocated) = (0, 0);
        while at < bytes {
            let (is_allocated, len) = allocation.status(at, bytes - at).expect("it can tell");
            allocated += if is_allocated { len } else { 0 };
            at += len;
        }
        assert!((4 * 4096..=8 * 4096).contains(&allocated), "{allocated}");
    }
    let mut blocks = 0;
    for name in ["store", "store.1", "store.2"] {
        let file = folder.join(name).metadata().expect("it was made");
        blocks += file.blocks() * 512;
    }
    assert!(blocks < 1 << 20, "{blocks} bytes on disk");
    assert!(!folder.join("store.3").exists());
}

#[test]
fn a_file_keeps_what_was_written_and_is_for_one_at_a_time() {
    let folder = Folder::new();
    let profile = profile("wd5000aaks");
    let mut host = Host::new(emulate(&profile, store_in(&folder), SECTORS));
    host.write(77, 3, 4, Flags::NONE);
    host.next();
    let again = |sectors: u64| {
        let options = EmulatedOptions {
            size: Some(sectors * 512),
            ..EmulatedOptions::new(profile.clone(), store_in(&folder))
        };
        open(options)
            .map(Host::new)
            .map_err(|error| error.to_string())
    };
    let path = folder.join("store");
    let shown = path.display();
    assert_eq!(
        again(SECTORS).err(),
        Some(format!("{shown} is in use by another server"))
    );
    drop(host);
    assert_eq!(
        again(SECTORS / 2).err(),
        Some(format!(
            "{shown} is a store of 536870912 bytes, not of 268435456"
        ))
    );
    // It ended without having been asked to: that is no power cut of the drive.
    let mut host = again(SECTORS).expect("nobody has it");
    assert_eq!(host.contents(77, 3), [4; 3 * 512]);
    // An image like any other.
    let image = std::fs::read(&path).expect("it is a file");
    assert_eq!(
        image[77 * 512 - 1..78 * 512],
        [&[0][..], &[4; 512]].concat()
    );
}

#[test]
fn a_store_of_which_a_file_is_gone_is_lost() {
    let folder = Folder::new();
    let path = |name: &str| folder.join(name);
    let options = EmulatedOptions {
        create: true,
        ..EmulatedOptions::new(twenty_terabytes(), store_in(&folder))
    };
    assert_eq!(look(&options).ok(), Some(20_000_588_955_648));
    let drive = open(options.clone()).expect("is made");
    assert_eq!(drive.check_backing(), Ok(()));
    for name in ["store", "store.1", "store.2"] {
        std::fs::rename(path(name), path("other")).expect("is there");
        let lost = Lost::Moved { path: path(name) };
        assert_eq!(drive.check_backing(), Err(lost));
        std::fs::rename(path("other"), path(name)).expect("moves back");
        assert_eq!(drive.check_backing(), Ok(()));
    }
    // In memory there is nothing that somebody could take away.
    let memory = EmulatedOptions::new(profile("wd5000aaks"), StoreSpec::Memory);
    assert_eq!(open(memory).expect("opens").check_backing(), Ok(()));

    // All files that this process made are removed, except a file that another process has replaced.
    std::fs::rename(path("store.1"), path("other")).expect("is there");
    std::fs::write(path("store.1"), "data").expect("writes");
    drive.made().remove();
    assert!(!path("store").exists() && !path("store.2").exists());
    assert_eq!(std::fs::read(path("store.1")).expect("is there"), b"data");
    assert!(path("other").exists());
}

/// A file system of a few pages, unmounted with the test.
struct Tmpfs(Folder);

impl Tmpfs {
    /// `None` without permission to mount.
    fn mount(bytes: u64) -> Option<Tmpfs> {
        let folder = Folder::new();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "headtime"])
            .arg(&*folder)
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Tmpfs(folder)),
            other => {
                println!("skipped: no tmpfs can be mounted: {other:?}");
                None
            }
        }
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).output();
    }
}

#[test]
fn a_full_file_system_fails_the_write_that_finds_it_full() {
    let Some(tmpfs) = Tmpfs::mount(1 << 20) else {
        return;
    };
    let profile = profile("wd5000aaks");
    let store = StoreSpec::File(tmpfs.path().join("store"));
    let mut host = Host::new(emulate(&profile, store, SECTORS));
    let mut written = 0;
    let failure = loop {
        host.write(written * 48, 48, 1 + written as u8, Flags::NONE);
        match host.next().result {
            Ok(()) => written += 1,
            Err(failure) => break failure,
        }
    };
    assert_eq!(failure.kind, Kind::NoSpace);
    assert_eq!(
        failure.to_string(),
        "no space is left to store what was written: No space left on device (os error 28)"
    );
    assert!((30..=42).contains(&written), "{written} of 24 KiB in 1 MiB");
    // A failed write leaves the old data.
    assert_eq!(host.contents(written * 48, 48), [0; 48 * 512]);
    // Acknowledged writes can be flushed and overwritten, and survive.
    host.flush();
    assert_eq!(host.next().result, Ok(()));
    for at in 0..written {
        host.write(at * 48, 48, 100 + at as u8, Flags::NONE);
        assert_eq!(host.next().result, Ok(()));
    }
    host.control(Control::PowerCut);
    host.control(Control::PowerOn);
    let (mut old, mut new) = (0, 0);
    for at in 0..written {
        for sector in host.contents(at * 48, 48).chunks(512) {
            match sector[0] {
                byte if byte == 1 + at as u8 => old += 1,
                byte if byte == 100 + at as u8 => new += 1,
                byte => panic!("{byte} in {at}"),
            }
            assert!(sector.iter().all(|byte| *byte == sector[0]));
        }
    }
    assert!(old > 0 && old + new == written * 48, "{old} {new}");
    // Zeroes for which there is no space either, unless they may be a hole.
    let extent = Extent::at(written * 48, 48);
    for (may_punch, result) in [(false, Err(Kind::NoSpace)), (true, Ok(()))] {
        let part = host.part(extent, Data::Zeroes { may_punch });
        host.submit(Op::Write, extent, Flags::NONE, vec![part]);
        assert_eq!(host.next().result.map_err(|failure| failure.kind), result);
        assert_eq!(host.contents(written * 48, 48), [0; 48 * 512]);
    }
    // Space that is given back can be had again.
    let extent = Extent::at(0, 48);
    let part = host.part(extent, Data::None);
    host.submit(Op::Discard, extent, Flags::NONE, vec![part]);
    assert_eq!(host.next().result, Ok(()));
    host.write(written * 48, 48, 7, Flags::NONE);
    assert_eq!(host.next().result, Ok(()));
    drop(host);
}
