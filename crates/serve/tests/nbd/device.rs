//! A device in memory that tests control.

use headtime_engine::DriveTag;
use headtime_linux::clock::Clock;
use headtime_sched::{Flags, Op, Request};
use headtime_serve::device::{Aborted, Allocation, Device, Done, Geometry, Parts};
use headtime_serve::request::{Data, Failure, Kind};
use headtime_units::{Extent, Lba, Sectors, Time};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a sector.
pub const SECTOR: usize = 512;

/// A command that the device was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub op: Op,
    pub extent: Extent,
    pub flags: Flags,
    pub export: u16,
    pub class: u8,
    /// Permission of a write of zeroes to punch holes. `None` for other commands.
    pub may_punch: Option<bool>,
}

/// Waits until something is so; not for ever.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let clock = Clock::start();
    while !is_so() {
        assert!(
            clock.now() < Time::from_nanos(20_000_000_000),
            "waits for {what}"
        );
        std::thread::yield_now();
    }
}

#[derive(Debug, Default)]
pub struct Inside {
    pub bytes: Vec<u8>,
    /// By sector.
    pub allocated: Vec<bool>,
    pub seen: Vec<Seen>,
    /// True to keep commands instead of completing them.
    pub hold: bool,
    /// True to complete the last command first.
    pub reverse: bool,
    /// Reads and writes of this sector fail with this kind of error.
    pub bad: Option<(Lba, Kind)>,
    /// For each command, true if the disk's thread handed it over.
    pub by_the_disk: Vec<bool>,
    /// True if the next command meets a bug of the device.
    pub panics: bool,
}

/// Handle of a test to the device.
#[derive(Debug)]
pub struct Memory {
    inside: Mutex<Inside>,
    bell: OwnedFd,
}

impl Memory {
    pub fn new(sectors: usize) -> Arc<Memory> {
        Arc::new(Memory {
            inside: Mutex::new(Inside {
                bytes: vec![0; sectors * SECTOR],
                allocated: vec![false; sectors],
                ..Inside::default()
            }),
            bell: eventfd(0, EventfdFlags::NONBLOCK).expect("a file descriptor"),
        })
    }

    pub fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn hold(&self) {
        self.inside().hold = true;
    }

    /// Completes the held commands and stops holding.
    pub fn release(&self) {
        self.inside().hold = false;
        rustix::io::write(&self.bell, &1u64.to_ne_bytes()).expect("rings");
    }

    /// Waits until the device has been given a number of commands.
    pub fn wait_for(&self, commands: usize) {
        wait_until("the commands", || self.inside().seen.len() >= commands);
    }

    pub fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.inside().seen)
    }
}

impl Allocation for Memory {
    fn status(&self, offset: u64, len: u64) -> io::Result<(bool, u64)> {
        let inside = self.inside();
        let sectors = &inside.allocated[offset as usize / SECTOR..];
        let alike = sectors.iter().take_while(|one| **one == sectors[0]).count();
        let alike = (alike * SECTOR) as u64 - offset % SECTOR as u64;
        Ok((sectors[0], alike.min(len)))
    }
}

/// The device of a [`Memory`].
#[derive(Debug)]
pub struct MemoryDevice {
    pub memory: Arc<Memory>,
    pub depth: u32,
    done: VecDeque<Done>,
}

impl MemoryDevice {
    pub fn new(memory: Arc<Memory>, depth: u32) -> MemoryDevice {
        MemoryDevice {
            memory,
            depth,
            done: VecDeque::new(),
        }
    }
}

fn range(extent: Extent) -> std::ops::Range<usize> {
    extent.start.get() as usize * SECTOR..extent.end().get() as usize * SECTOR
}

fn sectors(extent: Extent) -> std::ops::Range<usize> {
    extent.start.get() as usize..extent.end().get() as usize
}

impl Device for MemoryDevice {
    fn geometry(&self) -> Geometry {
        Geometry {
            capacity: Sectors::new(self.memory.inside().allocated.len() as u64),
            sector_bytes: SECTOR as u32,
            depth: self.depth,
            read_only: false,
            discards: true,
        }
    }

    fn submit(&mut self, now: Time, command: &Request<DriveTag>, mut parts: Parts) {
        let mut inside = self.memory.inside();
        let inside = &mut *inside;
        let thread = std::thread::current();
        let of_disk = thread.name().is_some_and(|name| name.starts_with("disk-"));
        inside.by_the_disk.push(of_disk);
        if inside.panics {
            panic!("a device with a bug");
        }
        inside.seen.push(Seen {
            op: command.op,
            extent: command.extent,
            flags: command.flags,
            export: command.origin.export,
            class: command.class.0,
            may_punch: parts.iter().find_map(|part| match part.data {
                Data::Zeroes { may_punch } => Some(may_punch),
                _ => None,
            }),
        });
        let mut result = Ok(());
        if let Some((at, kind)) = inside.bad
            && command.extent.contains(at)
        {
            result = Err(Failure {
                kind,
                at: Some(at),
                errno: None,
            });
        }
        if result.is_ok() {
            for part in &mut parts {
                let (bytes, allocated) = (range(part.extent), sectors(part.extent));
                match (command.op, &mut part.data) {
                    (Op::Read, Data::Buffer(buffer)) => {
                        buffer.copy_from_slice(&inside.bytes[bytes]);
                    }
                    (Op::Write, Data::Buffer(buffer)) => {
                        inside.bytes[bytes].copy_from_slice(buffer);
                        inside.allocated[allocated].fill(true);
                    }
                    (Op::Write, Data::Zeroes { may_punch }) => {
                        inside.bytes[bytes].fill(0);
                        inside.allocated[allocated].fill(!*may_punch);
                    }
                    (Op::Discard, _) => {
                        inside.bytes[bytes].fill(0);
                        inside.allocated[allocated].fill(false);
                    }
                    _ => {}
                }
            }
        }
        self.done.push_back(Done {
            tag: command.tag,
            at: now,
            result,
            parts,
        });
    }

    fn poll(&mut self, now: Time) -> Option<Done> {
        let (hold, reverse) = {
            let inside = self.memory.inside();
            (inside.hold, inside.reverse)
        };
        if hold {
            return None;
        }
        let mut done = match reverse {
            true => self.done.pop_back(),
            false => self.done.pop_front(),
        };
        match &mut done {
            Some(done) => done.at = now,
            None => {
                // Rung or not.
                let _ = rustix::io::read(&self.memory.bell, &mut [0; 8]);
            }
        }
        done
    }

    fn ready_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.memory.bell.as_fd())
    }

    fn abort(&mut self, _now: Time, _tag: DriveTag) -> Aborted {
        Aborted::No
    }

    fn allocation(&self) -> Option<Arc<dyn Allocation>> {
        Some(Arc::clone(&self.memory) as _)
    }
}
