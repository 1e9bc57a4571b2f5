//! A server in a thread of its own.

pub use headtime_testkit::Folder;

use crate::device::{Memory, MemoryDevice, wait_until};
use headtime_linux::clock::Clock;
use headtime_sched::{Class, Noop, WorkConserving};
use headtime_serve::disk::{Disk, Export, ExportLimits, Options};
use headtime_serve::metrics::Snapshot;
use headtime_serve::nbd::{Counts, Limits, Listen, Network, Server};
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// How the server is to be.
pub struct Setup {
    pub sectors: usize,
    pub limits: Limits,
    /// Limits of each export.
    pub export: ExportLimits,
    /// Length of the disk's queue.
    pub queue: usize,
    pub depth: u32,
    /// Range of bytes that the export `urgent` has; the whole disk if absent.
    pub part: Option<(u64, u64)>,
    /// Protection of addresses.
    pub network: Network,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            sectors: 1 << 17,
            limits: Limits::default(),
            export: ExportLimits::default(),
            queue: 1024,
            depth: 32,
            part: None,
            network: Network::default(),
        }
    }
}

pub struct Fixture {
    pub folder: Folder,
    pub memory: Arc<Memory>,
    pub disk: Disk,
    pub counts: Arc<Counts>,
    pub listens: Vec<Listen>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

pub fn noop() -> Options {
    let build = || Box::new(WorkConserving::new(Noop::new())) as Box<_>;
    Options::new("test", Clock::start(), ("noop".to_owned(), Box::new(build)))
}

impl Fixture {
    /// Exports `disk`, `urgent` (class 0) and `fixed` (read-only) of one disk.
    pub fn new(setup: Setup) -> Fixture {
        Fixture::listening(setup, |folder| vec![Listen::unix(folder.join("nbd"))])
    }

    pub fn listening(setup: Setup, listen: impl FnOnce(&Folder) -> Vec<Listen>) -> Fixture {
        let folder = Folder::new();
        let memory = Memory::new(setup.sectors);
        let mut options = noop();
        options.queue = setup.queue;
        options.exports = 3;
        options.engine.depth = setup.depth;
        // Tests count commands.
        options.engine.merge = false;
        let device = MemoryDevice::new(Arc::clone(&memory), setup.depth);
        let disk = Disk::start(options, move || {
            Ok::<_, Infallible>(Box::new(device) as Box<_>)
        })
        .expect("starts");
        let export = |number: u16, name: &str, class| Export {
            name: name.to_owned(),
            number,
            class: Class(class),
            read_only: name == "fixed",
            addresses: match setup.part {
                Some((start, end)) if name == "urgent" => {
                    disk.addresses().part(start, end).expect("fits")
                }
                _ => disk.addresses(),
            },
            program: number,
            limits: setup.export,
            disk: disk.clone(),
        };
        let exports = vec![
            export(0, "disk", 1),
            export(1, "urgent", 0),
            export(2, "fixed", 2),
        ];
        let listen = listen(&folder);
        let server = Server::bind_to(setup.network, &listen, exports, setup.limits);
        let server = server.expect("binds");
        let counts = server.counts();
        let listens = server.listens().cloned().collect();
        let (end, ends) = oneshot::channel();
        let thread = std::thread::spawn(move || run(server, ends));
        Fixture {
            folder,
            memory,
            disk,
            counts,
            listens,
            end: Some(end),
            thread: Some(thread),
        }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.join("nbd")
    }

    /// State of the disk.
    pub fn snapshot(&self) -> Box<Snapshot> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let snapshot = runtime.expect("a runtime").block_on(self.disk.snapshot());
        snapshot.expect("runs")
    }

    /// Asks the server to end.
    pub fn shut_down(&mut self) {
        let _ = self.end.take().expect("once").send(());
    }

    /// Waits until the server has ended.
    pub fn ended(&mut self) {
        self.thread.take().expect("once").join().expect("no panic");
    }

    /// Waits until no client is connected.
    pub fn all_gone(&self) {
        wait_until("the clients to go", || self.counts.connected() == 0);
    }
}

fn run(server: Server, ends: oneshot::Receiver<()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(server.run(async {
            let _ = ends.await;
        }))
        .expect("serves");
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.memory.release();
        if self.end.is_some() {
            self.shut_down();
        }
        if self.thread.is_some() && !std::thread::panicking() {
            self.ended();
        }
        if !std::thread::panicking() {
            // A write that failed makes the last flush fail, or not; both are fine here.
            let _ = self.disk.stop();
        }
    }
}
