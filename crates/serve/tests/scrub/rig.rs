//! Disks of tests, with their scrubs.

use crate::common::{Inbox, Tape, now, scheduler, submission, submit};
use headtime_disk::drive::Fault;
use headtime_disk::ledger::HeadTime;
use headtime_disk::profile::by_name;
use headtime_engine::{DriveTag, Engine, EngineSpec, log};
use headtime_linux::clock::Clock;
use headtime_sched::{Backlog, Op, Request};
use headtime_serve::backing::Lost;
use headtime_serve::device::{Aborted, Control, ControlError, Device, Done, Geometry, Parts};
use headtime_serve::disk::{Disk, Options};
use headtime_serve::emulated::{self, StoreSpec};
use headtime_serve::request::Data;
use headtime_serve::scrub::{ScrubAsk, ScrubState, ScrubStatus, Scrubs};
use headtime_testkit::Folder;
use headtime_units::{Extent, Nanos, Sectors, Time};
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};
use twox_hash::XxHash64;

pub const DRIVE: &str = "atlas10k";

/// A disk under the audit, its log, and its scrubs.
pub struct Rig {
    pub disk: Disk,
    pub log: Tape,
    pub scrubs: Scrubs,
}

/// How a disk of a test is.
#[derive(Clone, Copy)]
pub struct Of<'a> {
    pub sectors: u64,
    pub depth: u32,
    pub believes: bool,
    pub device: &'a str,
    pub folder: Option<&'a Folder>,
    /// Where its data are; in memory if nothing is said.
    pub store: Option<&'a Path>,
    pub sole_writer: bool,
    /// Sees each command before the drive does.
    pub hook: Option<&'a Hook>,
}

/// Callback for each command.
pub type Hook = Arc<dyn Fn(&Request<DriveTag>) + Send + Sync>;

pub const USUAL: Of<'static> = Of {
    sectors: 1 << 15,
    depth: 1,
    believes: true,
    device: "a drive",
    folder: None,
    store: None,
    sole_writer: false,
    hook: None,
};

pub fn options(depth: u32, audit: bool) -> (Options, Tape) {
    let log = Tape::default();
    let build = Box::new(|| scheduler("deadline"));
    let mut options = Options::new("disk0", Clock::start(), ("deadline".to_owned(), build));
    options.engine = EngineSpec {
        depth,
        ..EngineSpec::default()
    };
    options.audit = audit;
    options.log = Some(Box::new(log.clone()));
    (options, log)
}

impl Rig {
    pub fn emulated(of: Of<'_>) -> Rig {
        Rig::timed(of, None)
    }

    pub fn timed(of: Of<'_>, timeout: Option<Nanos>) -> Rig {
        let (mut options, log) = options(of.depth, true);
        options.timeout = timeout;
        let store = of.store.map(|path| StoreSpec::File(path.to_owned()));
        let (store, sectors) = (store.unwrap_or(StoreSpec::Memory), of.sectors);
        let (hook, depth) = (of.hook.cloned(), of.depth);
        let disk = Disk::start(options, move || {
            // As shipped it takes one command at a time.
            let profile = by_name(DRIVE).expect("it is shipped");
            let profile = profile.with(|spec| spec.queue.depth = spec.queue.depth.max(depth));
            let profile = profile.expect("it is as the one that is shipped");
            let options = emulated::EmulatedOptions {
                size: Some(sectors * 512),
                create: true,
                ..emulated::EmulatedOptions::new(profile, store)
            };
            let hook = hook.unwrap_or_else(|| Arc::new(|_| {}));
            emulated::open(options).map(|drive| Box::new(Seen(drive, hook)) as Box<dyn Device>)
        });
        let disk = disk.expect("starts");
        let belief = of
            .believes
            .then(|| by_name(DRIVE).expect("shipped").clone());
        let folder = of.folder.map(|folder| folder.join("state"));
        let scrubs = Scrubs::new(disk.clone(), of.device, belief, folder.as_deref())
            .with_sole_writer(of.sole_writer);
        Rig { disk, log, scrubs }
    }

    pub fn begin(&self, ask: &ScrubAsk) {
        self.scrubs.begin(ask).expect("it begins");
    }

    pub fn status(&self) -> ScrubStatus {
        self.scrubs.status().expect("there is one")
    }

    pub fn wait(&self, mut until: impl FnMut(&ScrubStatus) -> bool) -> ScrubStatus {
        let since = Instant::now();
        loop {
            let status = self.status();
            if until(&status) {
                return status;
            }
            let waited = since.elapsed();
            assert!(waited < Duration::from_secs(60), "{status:?}");
            sleep(Duration::from_millis(2));
        }
    }

    pub fn to_the_end(&self) -> ScrubStatus {
        self.wait(|status| status.state == ScrubState::Done)
    }

    pub fn inject(&self, what: Control) {
        now(self.disk.control(what)).expect("runs").expect("can");
    }

    /// Stops the disk; its log must be whole and replay.
    pub fn stop(self) -> String {
        self.disk.stop().expect("stops");
        let text = self.log.text();
        assert!(text.ends_with("# end\n"));
        let spec = EngineSpec {
            depth: self.disk.engine_config().depth,
            ..EngineSpec::default()
        };
        let engine = Engine::new(spec.config(512), scheduler("deadline")).expect("in range");
        if let Err(error) = log::replay(&text, engine, |text| Some(scheduler(text))) {
            panic!("{error}\n{text}");
        }
        text
    }
}

pub fn soon() -> ScrubAsk {
    ScrubAsk {
        idle: Some(Some(Nanos::from_millis(1))),
        ..ScrubAsk::default()
    }
}

pub fn unreadable(lba: u64, sectors: u64, retries: u32) -> Control {
    Control::Fault(Fault::Unreadable {
        extent: Extent::at(lba, sectors),
        retries,
    })
}

/// A drive with a callback before each command.
struct Seen<D>(D, Hook);

impl<D: Device> Device for Seen<D> {
    fn geometry(&self) -> Geometry {
        self.0.geometry()
    }

    fn submit(&mut self, now: Time, command: &Request<DriveTag>, parts: Parts) {
        (self.1)(command);
        self.0.submit(now, command, parts);
    }

    fn poll(&mut self, now: Time) -> Option<Done> {
        self.0.poll(now)
    }

    fn in_model_time(&self) -> bool {
        self.0.in_model_time()
    }

    fn next_event(&self) -> Option<Time> {
        self.0.next_event()
    }

    fn ready_fd(&self) -> Option<BorrowedFd<'_>> {
        self.0.ready_fd()
    }

    fn kick(&mut self) {
        self.0.kick();
    }

    fn abort(&mut self, now: Time, tag: DriveTag) -> Aborted {
        self.0.abort(now, tag)
    }

    fn abandoned(&self) -> usize {
        self.0.abandoned()
    }

    fn head_time(&mut self, now: Time) -> Option<HeadTime> {
        self.0.head_time(now)
    }

    fn note_pending(&mut self, now: Time, backlog: Backlog) {
        self.0.note_pending(now, backlog);
    }

    fn control(&mut self, now: Time, what: &Control) -> Result<Sectors, ControlError> {
        self.0.control(now, what)
    }

    fn discards_to_zeroes(&self) -> bool {
        self.0.discards_to_zeroes()
    }

    fn check_backing(&self) -> Result<(), Lost> {
        self.0.check_backing()
    }
}

impl Rig {
    /// Fills 8 sectors with a byte, and waits until that is done.
    pub fn write(&self, lba: u64, byte: u8) {
        let inbox = Inbox::new(1);
        let mut buffer = self.disk.pool().take(4096);
        buffer.fill(byte);
        let extent = Extent::at(lba, 8);
        let to = Arc::clone(&inbox) as Arc<_>;
        let data = Data::Buffer(buffer);
        submit(
            &self.disk,
            submission(&self.disk, 0, Op::Write, extent, data, to),
        );
        assert_eq!(inbox.wait().result, Ok(()));
    }
}

/// Writes a page of text into a file of a scrub, with the checksum that a server would give it.
pub fn write_page(path: &Path, text: &str, at: u64) {
    let bytes = std::fs::read(path).expect("there");
    let header = bytes.split(|byte| *byte == 0).next().expect("there");
    let header: serde_json::Value = serde_json::from_slice(header).expect("JSON");
    let id = header["id"].as_str().expect("a name");
    let mut page = [0; 4096];
    page[..text.len()].copy_from_slice(text.as_bytes());
    let seed = XxHash64::oneshot(1, id.as_bytes()).wrapping_add(at);
    close(&mut page, seed);
    let file = File::options().write(true).open(path).expect("there");
    file.write_all_at(&page, at).expect("written");
}

/// Writes the checksum of a page into its end.
pub fn close(page: &mut [u8], seed: u64) {
    let (body, check) = page.split_at_mut(page.len() - 8);
    check.copy_from_slice(&XxHash64::oneshot(seed, body).to_le_bytes());
}
