//! A host that orders commands as the engine does for a device. Overlapping commands with a write are never in the
//! device together, and a flush is there alone.

#[path = "../common/exclusion.rs"]
mod exclusion;

use headtime_engine::{DriveTag, RequestId};
pub use headtime_testkit::Folder;

use exclusion::may_be_beside;
use headtime_disk::profile::{Profile, by_name};
use headtime_sched::{Flags, Op, Request};
use headtime_serve::buffer::Pool;
use headtime_serve::device::{Aborted, Control, Device, Done, Part};
use headtime_serve::emulated::{Emulated, EmulatedOptions, StoreSpec, open};
use headtime_serve::request::Data;
use headtime_units::{Extent, Nanos, Time};

/// Data in a folder.
pub fn store_in(folder: &Folder) -> StoreSpec {
    StoreSpec::File(folder.join("store"))
}

pub fn profile(name: &str) -> Profile {
    by_name(name).expect("it is shipped")
}

pub fn emulate(profile: &Profile, store: StoreSpec, sectors: u64) -> Emulated {
    let size = sectors * u64::from(profile.geometry.sector_bytes);
    open(EmulatedOptions {
        size: Some(size),
        create: true,
        ..EmulatedOptions::new(profile.clone(), store)
    })
    .expect("opens")
}

/// A device and the time that it has been told last.
pub struct Host {
    pub device: Emulated,
    pub now: Time,
    pub in_flight: Vec<Request<DriveTag>>,
    /// The tag of the last command given up on.
    pub aborted: DriveTag,
    free: Vec<u32>,
    pool: Pool,
}

impl Host {
    pub fn new(device: Emulated) -> Host {
        let depth = device.geometry().depth;
        Host {
            device,
            now: Time::ZERO,
            in_flight: Vec::new(),
            aborted: DriveTag(0),
            free: (0..depth).rev().collect(),
            pool: Pool::new(),
        }
    }

    pub fn sector_bytes(&self) -> usize {
        self.device.geometry().sector_bytes as usize
    }

    /// Returns true if the engine would hand this command to the device now.
    pub fn may_go(&self, op: Op, extent: Extent) -> bool {
        !self.free.is_empty() && may_be_beside(&self.in_flight, op, extent)
    }

    /// Hands a command over, in parts.
    pub fn submit(&mut self, op: Op, extent: Extent, flags: Flags, parts: Vec<Part>) -> DriveTag {
        assert!(self.may_go(op, extent));
        let tag = DriveTag(self.free.pop().expect("there is room"));
        let mut request = Request::new(tag, op, extent, self.now);
        request.flags = flags;
        self.device.submit(self.now, &request, parts);
        self.in_flight.push(request);
        tag
    }

    pub fn part(&self, extent: Extent, data: Data) -> Part {
        Part {
            id: RequestId::Client(extent.start.get()),
            extent,
            data,
        }
    }

    pub fn buffer(&self, extent: Extent) -> Data {
        let bytes = extent.len.get() as usize * self.sector_bytes();
        Data::Buffer(self.pool.take(bytes))
    }

    pub fn read(&mut self, start: u64, len: u64) -> DriveTag {
        let extent = Extent::at(start, len);
        let part = self.part(extent, self.buffer(extent));
        self.submit(Op::Read, extent, Flags::NONE, vec![part])
    }

    pub fn write(&mut self, start: u64, len: u64, byte: u8, flags: Flags) -> DriveTag {
        let extent = Extent::at(start, len);
        let mut data = self.buffer(extent);
        if let Data::Buffer(buffer) = &mut data {
            buffer.fill(byte);
        }
        let part = self.part(extent, data);
        self.submit(Op::Write, extent, flags, vec![part])
    }

    pub fn flush(&mut self) -> DriveTag {
        let nothing = Extent::at(0, 0);
        let part = self.part(nothing, Data::None);
        self.submit(Op::Flush, nothing, Flags::NONE, vec![part])
    }

    /// The next completion that is due, after the store has been synced.
    pub fn poll(&mut self) -> Option<Done> {
        let done = loop {
            match self.device.poll(self.now) {
                Some(done) => break done,
                None if self.device.unsynced() == 0 => return None,
                None => wait(&self.device),
            }
            self.device.kick();
        };
        assert!(done.at <= self.now);
        let place = self.in_flight.iter().position(|r| r.tag == done.tag);
        let request = self.in_flight.remove(place.expect("it was submitted"));
        let parts: u64 = done.parts.iter().map(|part| part.extent.len.get()).sum();
        assert_eq!(parts, request.extent.len.get());
        self.free.push(done.tag.0);
        Some(done)
    }

    /// Gives up on the command at a place of [`Host::in_flight`]. `None` if the command still completes.
    pub fn abort(&mut self, place: usize) -> Option<Vec<Part>> {
        let tag = self.in_flight[place].tag;
        match self.device.abort(self.now, tag) {
            Aborted::Undone(parts) => {
                self.in_flight.remove(place);
                self.free.push(tag.0);
                self.aborted = tag;
                Some(parts)
            }
            Aborted::Abandoned => panic!("an emulated drive knows what it has done"),
            Aborted::No => None,
        }
    }

    /// Lets time pass until the next command completes.
    pub fn next(&mut self) -> Done {
        assert!(!self.in_flight.is_empty(), "nothing will complete");
        loop {
            let next = self.device.next_event();
            assert!(
                next.is_some() || self.device.unsynced() > 0,
                "nothing happens"
            );
            self.now = self.now.max(next.unwrap_or(self.now));
            if let Some(done) = self.poll() {
                return done;
            }
        }
    }

    /// Lets everything complete.
    pub fn drain(&mut self) -> Vec<Done> {
        let mut all = Vec::new();
        while !self.in_flight.is_empty() {
            all.push(self.next());
        }
        all
    }

    pub fn pass(&mut self, span: Nanos) {
        self.now += span;
    }

    /// Returns how many sectors of completed writes are said to be lost.
    pub fn control(&mut self, what: Control) -> u64 {
        self.device.control(self.now, &what).expect("it can").get()
    }

    /// The bytes of sectors, read as a command of their own.
    pub fn contents(&mut self, start: u64, len: u64) -> Vec<u8> {
        assert!(self.in_flight.is_empty());
        self.read(start, len);
        let mut done = self.next();
        assert_eq!(done.result, Ok(()));
        let data = std::mem::take(&mut done.parts[0].data);
        data.into_buffer().expect("a read has one").to_vec()
    }
}

/// Waits for something that does not happen in model time.
fn wait(device: &Emulated) {
    use rustix::event::{PollFd, PollFlags, poll};
    let fd = device.ready_fd().expect("something will happen");
    poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], None).expect("polls");
}
