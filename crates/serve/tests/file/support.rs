//! Disks on files of this machine, with helpers for tests.

use crate::common::{Inbox, submission, submit};
use headtime_engine::EngineSpec;
use headtime_linux::clock::{Clock, timespec};
use headtime_sched::{Flags, Knowledge, NoPositioning, Op, Scheduler, ServiceCurve, Spec};
use headtime_serve::device::Device;
use headtime_serve::disk::{BuildScheduler, Disk, Options};
use headtime_serve::file;
use headtime_serve::request::{Data, Failure, Submission};
use headtime_units::{Extent, Lba, Nanos, Sectors};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

pub fn scheduler(text: &str) -> (String, BuildScheduler) {
    let spec: Spec = text.parse().expect("a scheduler");
    let build = move || -> Box<dyn Scheduler> {
        // From 5 ms next door to 15 ms at the other end.
        let points = [(0, 5), (1 << 12, 10), (1 << 20, 15)]
            .map(|(sectors, millis)| (Sectors::new(sectors), Nanos::from_millis(millis)));
        let curve = ServiceCurve::new(points.to_vec(), ServiceCurve::BACKWARD).expect("a curve");
        let knowledge = Knowledge {
            positioning: None::<NoPositioning>,
            curve: Some(Arc::new(curve)),
            ..Knowledge::default()
        };
        spec.build(knowledge).expect("needs no positioning")
    };
    (text.to_owned(), Box::new(build))
}

/// A disk before a device, at the depth that the device takes.
pub fn disk_of<D, E>(
    text: &str,
    engine: EngineSpec,
    open: impl FnOnce() -> Result<D, E> + Send + 'static,
) -> Disk
where
    D: Device + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    let mut options = Options::new("test", Clock::start(), scheduler(text));
    options.engine = engine;
    Disk::start(options, move || {
        open().map(|device| Box::new(device) as Box<dyn Device>)
    })
    .unwrap_or_else(|error| panic!("{error}"))
}

/// A disk on a file, eight deep.
pub fn disk(options: &file::FileOptions) -> Disk {
    let options = options.clone();
    let engine = EngineSpec {
        depth: 8,
        ..EngineSpec::default()
    };
    disk_of("deadline", engine, move || file::open(&options))
}

/// A request for whole sectors; a read's buffer is of its size, a write brings its own data.
pub fn request(
    disk: &Disk,
    cookie: u64,
    op: Op,
    start: u64,
    len: u64,
    to: &Arc<Inbox>,
) -> Submission {
    let data = match op {
        Op::Read => {
            let mut buffer = disk
                .pool()
                .take((len * u64::from(disk.sector_bytes())) as usize);
            // The pattern differs from old data, so that bytes that were not read show.
            buffer.fill(0xee);
            Data::Buffer(buffer)
        }
        _ => Data::None,
    };
    let extent = Extent::new(Lba::new(start), Sectors::new(len));
    submission(disk, cookie, op, extent, data, Arc::clone(to) as Arc<_>)
}

/// One request at a time.
pub fn read(disk: &Disk, start: u64, len: u64) -> Result<Vec<u8>, Failure> {
    let inbox = Inbox::new(1);
    submit(disk, request(disk, 0, Op::Read, start, len, &inbox));
    let done = inbox.wait();
    let buffer = done.data.into_buffer().expect("the buffer comes back");
    done.result.map(|()| buffer.to_vec())
}

pub fn write(disk: &Disk, start: u64, bytes: &[u8], flags: Flags) -> Result<(), Failure> {
    let mut buffer = disk.pool().take(bytes.len());
    buffer.copy_from_slice(bytes);
    change(
        disk,
        Op::Write,
        start,
        bytes.len(),
        Data::Buffer(buffer),
        flags,
    )
}

pub fn zero(disk: &Disk, start: u64, len: usize, may_punch: bool) -> Result<(), Failure> {
    let data = Data::Zeroes { may_punch };
    change(disk, Op::Write, start, len, data, Flags::NONE)
}

pub fn discard(disk: &Disk, start: u64, len: usize) -> Result<(), Failure> {
    change(disk, Op::Discard, start, len, Data::None, Flags::NONE)
}

pub fn flush(disk: &Disk) -> Result<(), Failure> {
    change(disk, Op::Flush, 0, 0, Data::None, Flags::NONE)
}

fn change(
    disk: &Disk,
    op: Op,
    start: u64,
    bytes: usize,
    data: Data,
    flags: Flags,
) -> Result<(), Failure> {
    let inbox = Inbox::new(1);
    let len = bytes as u64 / u64::from(disk.sector_bytes());
    let submission = Submission {
        data,
        flags,
        ..request(disk, 0, op, start, len, &inbox)
    };
    submit(disk, submission);
    inbox.wait().result
}

/// A directory of one test, that goes with it.
pub struct Place(PathBuf);

impl Place {
    pub fn new(name: &str) -> Place {
        Place::within(Path::new(env!("CARGO_TARGET_TMPDIR")), name)
    }

    pub fn within(parent: &Path, name: &str) -> Place {
        static PLACES: AtomicU32 = AtomicU32::new(0);
        let number = PLACES.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("file-{name}-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a place for files");
        Place(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A sparse file with this size.
    pub fn file(&self, name: &str, bytes: u64) -> PathBuf {
        let path = self.path(name);
        let file = File::create_new(&path).expect("creates");
        file.set_len(bytes).expect("grows");
        path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a program; `None`, with a line that says so, if it is not there or fails.
pub fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let told = Command::new(program).args(arguments).output();
    match told {
        Ok(told) if told.status.success() => {
            Some(String::from_utf8_lossy(&told.stdout).trim().to_owned())
        }
        Ok(told) => {
            let why = String::from_utf8_lossy(&told.stderr);
            println!("{program} {arguments:?} failed: {}", why.trim());
            None
        }
        Err(error) => {
            println!("there is no {program}: {error}");
            None
        }
    }
}

/// A loop device, detached with this.
pub struct Loop(pub String);

impl Loop {
    /// `None`, with a line that says so, where there are none or one is not allowed to.
    pub fn over(file: &Path, arguments: &[&str]) -> Option<Loop> {
        let file = file.to_str()?;
        let arguments = [&["--find", "--show"], arguments, &[file]].concat();
        let device = run("losetup", &arguments);
        if device.is_none() {
            println!("skipped, as there is no loop device");
        }
        device.map(Loop)
    }

    pub fn path(&self) -> PathBuf {
        PathBuf::from(&self.0)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        run("losetup", &["--detach", &self.0]);
    }
}

/// A file system that is mounted, until this goes.
pub struct Mounted(pub PathBuf);

impl Mounted {
    /// `None`, with a line that says so, where one is not allowed to.
    pub fn on(at: PathBuf, arguments: &[&str]) -> Option<Mounted> {
        fs::create_dir_all(&at).expect("a place to mount on");
        let arguments = [arguments, &[at.to_str()?]].concat();
        if run("mount", &arguments).is_none() {
            println!("skipped, as nothing can be mounted");
            return None;
        }
        Some(Mounted(at))
    }
}

impl Drop for Mounted {
    /// The kernel closes the disk's files some time after the disk is gone.
    fn drop(&mut self) {
        let at = self.0.to_str().unwrap_or_default();
        for _ in 0..20 {
            if run("umount", &[at]).is_some() {
                return;
            }
            let _ = rustix::event::poll(&mut [], Some(&timespec(Nanos::from_millis(50))));
        }
        // No process sees the file system any more, and it goes with its last holder.
        run("umount", &["--lazy", at]);
    }
}

/// Bytes that differ from place to place.
pub fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() < len {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
