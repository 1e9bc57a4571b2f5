//! Drives a device in real time or in model time.

#[path = "../common/exclusion.rs"]
mod exclusion;

use headtime_engine::{DriveTag, RequestId};
pub use headtime_testkit::Folder;

use exclusion::may_be_beside;
use headtime_linux::clock::Clock;
use headtime_sched::{Flags, Op, Request};
use headtime_serve::buffer::Pool;
use headtime_serve::device::{Aborted, Device, Done, Part};
use headtime_serve::request::Data;
use headtime_units::{Extent, Nanos, Time};
use rustix::event::{PollFd, PollFlags, poll};

/// Longer than any of these commands takes: then it is taken to be lost.
const PATIENCE: Nanos = Nanos::from_secs(60);

/// A device under test.
pub struct Subject<'a> {
    /// Opens the device anew. It keeps its data in this folder.
    pub open: &'a dyn Fn(&Folder) -> Box<dyn Device>,
    /// True if the device forgets written data.
    pub forgets: bool,
}

pub struct Rig {
    pub device: Box<dyn Device>,
    pub in_flight: Vec<Request<DriveTag>>,
    free: Vec<u32>,
    clock: Clock,
    /// Current time of a device in model time.
    now: Time,
    pub pool: Pool,
    /// Dropped after the device.
    _folder: Folder,
}

impl Rig {
    pub fn new(subject: &Subject) -> Rig {
        let folder = Folder::new();
        let device = (subject.open)(&folder);
        Rig {
            in_flight: Vec::new(),
            free: (0..device.geometry().depth).rev().collect(),
            device,
            clock: Clock::start(),
            now: Time::ZERO,
            pool: Pool::new(),
            _folder: folder,
        }
    }

    pub fn now(&self) -> Time {
        match self.device.in_model_time() {
            true => self.now,
            false => self.clock.now(),
        }
    }

    pub fn sector_bytes(&self) -> u64 {
        u64::from(self.device.geometry().sector_bytes)
    }

    /// Returns true if the engine would hand this over now.
    pub fn may_go(&self, op: Op, extent: Extent) -> bool {
        !self.free.is_empty() && may_be_beside(&self.in_flight, op, extent)
    }

    pub fn submit(&mut self, op: Op, flags: Flags, parts: Vec<Part>) -> DriveTag {
        let (first, last) = (&parts[0], &parts[parts.len() - 1]);
        let start = first.extent.start;
        let extent = Extent::new(start, last.extent.end() - start);
        assert!(self.may_go(op, extent));
        let tag = DriveTag(self.free.pop().expect("there is room"));
        let now = self.now();
        let mut request = Request::new(tag, op, extent, now);
        request.flags = flags;
        self.device.submit(now, &request, parts);
        self.in_flight.push(request);
        tag
    }

    /// A part whose bytes are all `byte`.
    pub fn part(&self, id: u64, start: u64, len: u64, byte: u8) -> Part {
        let mut buffer = self.pool.take((len * self.sector_bytes()) as usize);
        buffer.fill(byte);
        Part {
            id: RequestId::Client(id),
            extent: Extent::at(start, len),
            data: Data::Buffer(buffer),
        }
    }

    pub fn without_data(&self, start: u64, len: u64, data: Data) -> Part {
        Part {
            id: RequestId::Client(0),
            extent: Extent::at(start, len),
            data,
        }
    }

    pub fn poll(&mut self) -> Option<Done> {
        let now = self.now();
        let done = self.device.poll(now)?;
        assert!(done.at <= now, "it is not done yet");
        let place = self.in_flight.iter().position(|r| r.tag == done.tag);
        self.in_flight.remove(place.expect("it was submitted"));
        self.free.push(done.tag.0);
        Some(done)
    }

    pub fn next(&mut self) -> Done {
        assert!(!self.in_flight.is_empty(), "nothing will complete");
        let until = self.clock.now() + PATIENCE;
        loop {
            self.device.kick();
            if let Some(at) = self.device.next_event() {
                assert!(self.device.in_model_time());
                self.now = self.now.max(at);
            }
            if let Some(done) = self.poll() {
                return done;
            }
            assert!(self.clock.now() < until, "a command never completes");
            if self.device.next_event().is_none() {
                self.wait();
            }
        }
    }

    /// Waits for something that does not happen in model time.
    fn wait(&mut self) {
        self.device.kick();
        let fd = self.device.ready_fd();
        let fd = fd.expect("a device that lets one wait says where");
        let timeout = headtime_linux::clock::timespec(Nanos::from_millis(100));
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        poll(&mut fds, Some(&timeout)).expect("polls");
    }

    pub fn drain(&mut self) -> Vec<Done> {
        let mut all = Vec::new();
        while !self.in_flight.is_empty() {
            all.push(self.next());
        }
        all
    }

    /// Gives up on a command; whether it is not polled any more.
    pub fn abort(&mut self, tag: DriveTag) -> bool {
        let now = self.now();
        let gone = match self.device.abort(now, tag) {
            Aborted::Undone(parts) => {
                assert!(!parts.is_empty());
                self.free.push(tag.0);
                true
            }
            // The tag may be used again, too.
            Aborted::Abandoned => {
                self.free.push(tag.0);
                true
            }
            Aborted::No => false,
        };
        if gone {
            self.in_flight.retain(|request| request.tag != tag);
        }
        gone
    }

    /// One command, to its end.
    pub fn one(&mut self, op: Op, flags: Flags, parts: Vec<Part>) -> Done {
        assert!(self.in_flight.is_empty());
        let tag = self.submit(op, flags, parts);
        let done = self.next();
        assert_eq!(done.tag, tag);
        done
    }

    pub fn write(&mut self, start: u64, len: u64, byte: u8, flags: Flags) {
        let part = self.part(0, start, len, byte);
        assert_eq!(self.one(Op::Write, flags, vec![part]).result, Ok(()));
    }

    /// The first byte of each sector; the others are the same.
    pub fn read(&mut self, start: u64, len: u64) -> Vec<u8> {
        let part = self.part(0, start, len, 0xee);
        let done = self.one(Op::Read, Flags::NONE, vec![part]);
        assert_eq!(done.result, Ok(()));
        let bytes = self.sector_bytes() as usize;
        first_bytes(&done.parts[0], bytes)
    }
}

pub fn first_bytes(part: &Part, sector_bytes: usize) -> Vec<u8> {
    let Data::Buffer(buffer) = &part.data else {
        panic!("a read has lost its buffer");
    };
    let sectors = buffer.chunks(sector_bytes);
    sectors
        .map(|sector| {
            assert!(sector.iter().all(|byte| *byte == sector[0]));
            sector[0]
        })
        .collect()
}
