//! Disks in memory, mounted.

use crate::memory::Memory;
use headtime_attach::fuse::{self, Mounted};
use headtime_linux::clock::Clock;
use headtime_sched::{Class, Noop, WorkConserving};
use headtime_serve::disk::{Disk, Export, Options};
use headtime_serve::faulty::{Faulty, Switch};
use headtime_units::{Nanos, Sectors};
use std::convert::Infallible;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Returns true if this machine can mount. Otherwise prints why the test is skipped.
pub fn can_mount(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    let there = Path::new("/dev/fuse").exists() && (root || has("fusermount3"));
    if !there {
        println!("{test}: skipped, as there is no FUSE here");
    }
    there
}

/// Returns true if this process can use loop devices. Otherwise prints why the test is skipped.
pub fn can_loop(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    let there = root && Path::new("/dev/loop-control").exists();
    if !there {
        println!("{test}: skipped, as it takes root and loop devices");
    }
    there && can_mount(test)
}

/// Returns true if a program is installed.
pub fn has(program: &str) -> bool {
    Command::new(program)
        .arg("--help")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
}

/// Returns true if a program is installed. Otherwise prints why the test is skipped.
pub fn needs(test: &str, program: &str) -> bool {
    let there = has(program);
    if !there {
        println!("{test}: skipped, as {program} is not installed");
    }
    there
}

/// Runs a program. If it fails, panics with its output.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}\n{said}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    said
}

/// Directory that is removed at the end.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("headtime-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory in the temporary one");
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // The directory is removed only if it is empty, so that a mount that is left there keeps its files.
        let _ = fs::remove_dir(&self.0);
    }
}

/// Properties of a test's disk.
#[derive(Clone, Copy)]
pub struct Kind {
    pub bytes: u64,
    pub sector_bytes: u32,
    pub depth: u32,
    pub delay: Nanos,
    pub discards: bool,
    /// Number of requests in the disk's queue.
    pub queue: usize,
    /// Most requests that the mount lets through at a time.
    pub requests: u32,
}

impl Default for Kind {
    fn default() -> Kind {
        Kind {
            bytes: 64 << 20,
            sector_bytes: 512,
            depth: 64,
            delay: Nanos::ZERO,
            discards: true,
            queue: 1024,
            requests: 1024,
        }
    }
}

pub fn disk(name: &str, kind: Kind) -> Disk {
    let build = || Box::new(WorkConserving::new(Noop::new())) as Box<_>;
    let mut options = Options::new(name, Clock::start(), ("noop".to_owned(), Box::new(build)));
    options.engine.depth = kind.depth;
    options.exports = 2;
    options.real_time = false;
    options.queue = kind.queue;
    Disk::start(options, move || {
        let sectors = Sectors::new(kind.bytes / u64::from(kind.sector_bytes));
        let device = Memory::new(sectors, kind.sector_bytes, kind.delay, kind.discards);
        Ok::<_, Infallible>(Box::new(device) as Box<_>)
    })
    .expect("starts")
}

/// Disk of 64 MiB that fails on request.
pub fn faulty() -> (Disk, Arc<Switch>) {
    let build = || Box::new(WorkConserving::new(Noop::new())) as Box<_>;
    let options = Options::new(
        "disk0",
        Clock::start(),
        ("noop".to_owned(), Box::new(build)),
    );
    let switch = Arc::new(Switch::default());
    let of_device = Arc::clone(&switch);
    let disk = Disk::start(options, move || {
        let memory = Memory::new(Sectors::new(1 << 17), 512, Nanos::ZERO, true);
        Ok::<_, Infallible>(Box::new(Faulty::new(memory, of_device)) as Box<_>)
    });
    (disk.expect("starts"), switch)
}

pub fn export(name: &str, number: u16, disk: &Disk) -> Export {
    Export {
        name: name.to_owned(),
        number,
        class: Class::default(),
        read_only: false,
        addresses: disk.addresses(),
        program: 0,
        limits: Default::default(),
        disk: disk.clone(),
    }
}

/// One disk, mounted as `disk0`.
pub struct One {
    // The order matters: the directory is removed after the mount has ended.
    pub mounted: Mounted,
    pub disk: Disk,
    _directory: Directory,
}

impl One {
    pub fn new(name: &str, kind: Kind) -> One {
        let directory = Directory::new(name);
        let disk = disk("disk0", kind);
        let exports = vec![export("disk0", 0, &disk)];
        let options = fuse::Options {
            requests: kind.requests,
            ..fuse::Options::default()
        };
        let mounted = fuse::mount(&directory.0, exports, &options);
        One {
            mounted: mounted.expect("mounts"),
            disk,
            _directory: directory,
        }
    }

    pub fn file(&self) -> PathBuf {
        self.mounted.file("disk0")
    }

    pub fn path(&self) -> String {
        self.file().to_str().expect("made of ASCII").to_owned()
    }

    /// Unmounts and stops the disk. Both have to succeed.
    pub fn end(mut self) {
        unmount(&mut self.mounted);
        self.disk.stop().expect("stops");
    }
}

/// Unmounts after the test has closed its files. Another test's thread may be starting a program: until the child has executed the program,
/// it also has all files of this process open.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing says when the other thread's child is a program of its own"
)]
pub fn unmount(mounted: &mut Mounted) {
    const TRIES: u32 = 1_000;
    for _ in 0..TRIES {
        match mounted.unmount() {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                std::thread::sleep(Duration::from_millis(5));
            }
            ended => return ended.expect("unmounts"),
        }
    }
    panic!("a file is open");
}

/// Runs a future to its end.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
        .block_on(future)
}

/// Requests that the disk has finished: reads, writes, flushes, discards.
pub fn requests(one: &One) -> [u64; 4] {
    wait(one.disk.snapshot()).expect("runs").metrics.exports[0].requests
}
