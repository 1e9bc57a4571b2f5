//! Files that a server opens, and files that it refuses.

use crate::support::{Loop, Mounted, Place, discard, disk, pattern, read, run, write};
use headtime_disk::profile::by_name;
use headtime_sched::Flags;
use headtime_serve::device::Device;
use headtime_serve::emulated::{self, StoreSpec};
use headtime_serve::file::{self, OpenError, Use};
use headtime_serve::request::Kind;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

const MIB: u64 = 1 << 20;

fn refusal(options: &file::FileOptions) -> OpenError {
    match file::open(options) {
        Ok(file) => panic!("{file:?} was opened"),
        Err(error) => error,
    }
}

fn message(path: impl AsRef<Path>) -> String {
    refusal(&file::FileOptions::new(path.as_ref())).to_string()
}

#[test]
fn only_files_and_block_devices() {
    let place = Place::new("kinds");
    let fifo = place.path("fifo");
    assert!(run("mkfifo", &[fifo.to_str().expect("ASCII")]).is_some());
    let socket = place.path("socket");
    let _listener = UnixListener::bind(&socket).expect("binds");
    let tail = "; allowed is a regular file or a block device";
    for (path, is) in [
        (place.path("."), "a directory"),
        (fifo, "a pipe"),
        (socket, "a socket"),
        ("/dev/zero".into(), "a character device"),
    ] {
        assert_eq!(message(&path), format!("{} is {is}{tail}", path.display()));
    }
    let missing = place.path("missing");
    assert_eq!(
        message(&missing),
        format!(
            "{} is not there; with size = \"4GiB\" and create = true a file is made",
            missing.display()
        )
    );
}

#[test]
fn a_file_is_a_disk_from_one_byte_on() {
    let place = Place::new("sizes");
    let mut options = file::FileOptions::new(place.file("odd", 1000));
    options.direct = false;
    let file = file::open(&options).expect("two sectors are a disk");
    assert_eq!((file.geometry().capacity.get(), file.bytes()), (2, 1000));
    options.path = place.file("empty", 0);
    assert!(matches!(refusal(&options), OpenError::Nothing { .. }));
    options.path = place.file("one", 512);
    let file = file::open(&options).expect("one sector is a disk");
    assert_eq!(file.geometry().capacity.get(), 1);
    options.depth = 257;
    assert!(matches!(refusal(&options), OpenError::Depth(257)));
}

#[test]
fn links_lead_to_files() {
    let place = Place::new("links");
    let path = place.file("disk", MIB);
    let link = place.path("link");
    symlink(&path, &link).expect("links");
    let disk = disk(&file::FileOptions::new(&link));
    write(&disk, 0, &pattern(1, 4096), Flags::NONE).expect("writes");
    assert!(fs::read(&path).expect("reads")[..4096] == pattern(1, 4096));
    disk.stop().expect("stops");
}

#[test]
fn one_writer_or_many_readers() {
    let place = Place::new("lock");
    let mut options = file::FileOptions::new(place.file("disk", MIB));
    let writer = file::open(&options).expect("opens");
    let claimed = |options: &file::FileOptions| {
        let error = refusal(options);
        matches!(error, OpenError::Locked { .. })
    };
    assert!(claimed(&options));
    options.read_only = true;
    assert!(claimed(&options));
    options.force = true;
    drop(file::open(&options).expect("only reads"));
    options.read_only = false;
    assert!(claimed(&options), "two would write");
    (options.force, options.read_only) = (false, true);
    drop(writer);
    let reader = file::open(&options).expect("opens");
    let other = file::open(&options).expect("opens");
    options.read_only = false;
    assert!(claimed(&options));
    drop((reader, other));
    drop(file::open(&options).expect("nobody else is there"));
}

#[test]
fn what_is_read_only_is_not_written() {
    let place = Place::new("read-only");
    let mut options = file::FileOptions::new(place.file("disk", MIB));
    options.read_only = true;
    let disk = disk(&options);
    assert!(disk.geometry().read_only && !disk.geometry().discards);
    for refused in [
        write(&disk, 0, &[1; 4096], Flags::NONE),
        discard(&disk, 0, 4096),
    ] {
        assert_eq!(refused.expect_err("read-only").kind, Kind::ReadOnly);
    }
    assert!(read(&disk, 0, 1).is_ok());
    assert!(!disk.has_failed(), "nothing has gone wrong");
    disk.stop().expect("stops");
}

#[test]
fn a_file_behind_a_loop_device() {
    let place = Place::new("behind");
    let path = place.file("disk", MIB);
    let Some(device) = Loop::over(&path, &[]) else {
        return;
    };
    let name = device.0.trim_start_matches("/dev/").to_owned();
    let mut options = file::FileOptions::new(&path);
    assert_eq!(
        refusal(&options).to_string(),
        format!(
            "{} is in use: it is behind {name}; `force` opens it all the same",
            path.display()
        )
    );
    options.read_only = true;
    drop(file::open(&options).expect("reading does no harm"));
    options.read_only = false;
    options.force = true;
    drop(file::open(&options).expect("forced"));
    options.force = false;
    // The file cannot be the store of an emulated drive, either.
    let drive = by_name("wd5000aaks").expect("it is shipped");
    let mut store = emulated::EmulatedOptions::new(drive, StoreSpec::File(path.clone()));
    store.size = Some(MIB);
    assert_eq!(
        emulated::open(store.clone())
            .err()
            .map(|error| error.to_string()),
        Some(format!("{} is in use: it is behind {name}", path.display()))
    );
    drop(device);
    drop(file::open(&options).expect("no longer in use"));
    drop(emulated::open(store).expect("no longer in use"));
}

#[test]
fn a_block_device_for_oneself() {
    let place = Place::new("block");
    let Some(device) = Loop::over(&place.file("disk", 4 * MIB), &["--sector-size=4096"]) else {
        return;
    };
    let options = file::FileOptions::new(device.path());
    let file = file::open(&options).expect("opens");
    let geometry = file.geometry();
    assert_eq!(geometry.sector_bytes, 4096);
    assert_eq!(geometry.capacity.get(), 1024);
    assert!(file.allocation().is_none());
    assert!(matches!(
        refusal(&options),
        OpenError::InUse {
            what: Use::Claimed,
            ..
        }
    ));
}

#[test]
fn mounted_swapped_and_partitioned_devices_are_refused() {
    let place = Place::new("used");
    let Some(device) = Loop::over(&place.file("disk", 32 * MIB), &["--partscan"]) else {
        return;
    };
    let name = device.0.trim_start_matches("/dev/").to_owned();
    let options = file::FileOptions::new(device.path());
    let used = || match refusal(&options) {
        OpenError::InUse { what, .. } => what,
        other => panic!("{other}"),
    };
    if run("mkfs.ext4", &["-q", "-F", &device.0]).is_some()
        && let Some(mounted) = Mounted::on(place.path("a place with blanks"), &[&device.0])
    {
        let at = mounted.0.clone();
        let what = name.clone();
        assert_eq!(used(), Use::Mounted { what, at });
        let mut reading = options.clone();
        reading.read_only = true;
        drop(file::open(&reading).expect("reading does no harm"));
    }
    if run("mkswap", &[&device.0]).is_some() && run("swapon", &[&device.0]).is_some() {
        let found = used();
        run("swapoff", &[&device.0]);
        assert_eq!(found, Use::Swap { what: name.clone() });
    }
    drop(file::open(&options).expect("no longer in use"));
    let table = place.path("table");
    fs::write(&table, "label: dos\n2048,8192,83\n12288,,83\n").expect("writes");
    let script = format!("sfdisk --quiet {} < {}", device.0, table.display());
    if run("sh", &["-c", &script]).is_none() || !Path::new(&format!("{}p1", device.0)).exists() {
        println!("skipped, as there are no partitions");
        return;
    }
    let first = format!("{name}p1");
    let partitioned = Use::Partitioned { first, count: 2 };
    assert_eq!(used(), partitioned);
    let mut forced = options.clone();
    forced.force = true;
    drop(file::open(&forced).expect("forced"));
    // A partition may be a disk, unless it is mounted; then its disk is as well.
    let partition = format!("{}p2", device.0);
    let file = file::open(&file::FileOptions::new(&partition)).expect("opens");
    assert!(file.geometry().discards);
    drop(file);
    if run("mkfs.ext4", &["-q", "-F", &partition]).is_some()
        && let Some(mounted) = Mounted::on(place.path("on"), &[&partition])
    {
        let at = mounted.0.clone();
        let what = format!("{name}p2");
        assert_eq!(used(), Use::Mounted { what, at });
        assert!(message(&partition).contains("is mounted on"));
    }
}
