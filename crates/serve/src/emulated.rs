//! Emulates a drive in real time. The model ([`headtime_disk::Drive`]) decides when things happen.
//! A store ([`StoreSpec`]) holds the bytes.
//!
//! # Writes, and what a power cut takes back
//!
//! The bytes of a write go to the store when it is submitted, so that running out of space is an
//! error of that write and of no later one. Memory keeps the bytes that they replace until the
//! model says that the arm has written those sectors. A power cut writes them back. So the drive's
//! buffer and the commands in the drive bound this memory.
//!
//! - After a power cut a sector holds what is on the medium by the model: what was flushed or written
//!   with FUA, or something newer. A write that the arm was in the middle of is there as far as whole
//!   sectors had passed under the head.
//! - Discards and writes of zeroes change the store when they complete, and a power cut does not take
//!   them back from then on; one that has not completed has not happened. Real drives may lose them
//!   as they lose data. Their size costs no memory.
//! - A flush, and a write with FUA, has completed when the model says so *and* the store's files are
//!   synced. That is done by a thread of its own, while other things go on in model time; what it
//!   takes beyond the model's time is lateness, and counted as such. For memory it is nothing.
//!   If that never ends, the command can be given up on ([`Device::abort`]), and the store's files
//!   stay open until the kernel is done.
//! - Reads and writes of the store are made by the disk's thread itself. They are of the page cache;
//!   where the kernel keeps one waiting, as on a file system that is frozen, the disk waits.
//! - If the process is killed, a store in files has everything that was ever submitted, in whole
//!   sectors.
//!
//! Reads are copied out of the store when they complete.
//!
//! # Time
//!
//! Completions carry the model's time. Lateness of this machine does not change it. A command
//! starts in the model when it was submitted; if it waited in the engine, that is when the command
//! before it completed in the model. The platters' angle is zero at time zero.

mod bytes;
mod error;
mod pieces;
mod places;
mod power;
mod store;
mod sync;
#[cfg(test)]
mod tests;
mod undo;

use crate::backing::{Lost, Made};
use crate::device::{Aborted, Allocation, Control, ControlError, Device, Done, Geometry, Parts};
use crate::request::{Failure, Kind};
use headtime_disk::drive::Fault;
use headtime_disk::ledger::HeadTime;
use headtime_disk::{Command, Completion, Drive, Profile};
use headtime_engine::DriveTag;
use headtime_sched::{Backlog, Class, Flags, Op, Request};
use headtime_units::{Nanos, Sectors, Time};
use pieces::Pieces;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;
use store::Store;
use store::failure;
use sync::{Syncer, Ticket};
use undo::Undo;

pub use error::EmulateError;
pub use store::FILE_BYTES_MAX;

/// A drive that is told to stall for longer does so for a year.
const STALL_MAX: Nanos = Nanos::from_secs(365 * 24 * 60 * 60);

/// Where the bytes of an emulated drive lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreSpec {
    /// In memory, as much of it as is written; gone with the server.
    Memory,
    /// In a sparse file; beyond [`FILE_BYTES_MAX`], in further ones beside it: `PATH.1` and so on.
    File(PathBuf),
}

/// What to emulate.
#[derive(Clone, Debug)]
pub struct EmulatedOptions {
    pub profile: Profile,
    /// Where its bytes lie.
    pub store: StoreSpec,
    /// Bytes of the volume: whole sectors, at most the drive's capacity, which is what it has if
    /// nothing is said.
    pub size: Option<u64>,
    /// Whether the store's files are made if they are not there. Never under `/dev`, `/proc` or `/sys`.
    pub create: bool,
    /// From which what varies between units of a drive, and from command to command, is drawn.
    pub seed: u64,
}

impl EmulatedOptions {
    /// All of a drive, seed 1; nothing is made.
    pub fn new(profile: Profile, store: StoreSpec) -> EmulatedOptions {
        EmulatedOptions {
            profile,
            store,
            size: None,
            create: false,
            seed: 1,
        }
    }
}

/// A command in the drive.
#[derive(Debug)]
struct InFlight {
    op: Op,
    fua: bool,
    parts: Parts,
}

/// A command that the model is done with.
#[derive(Debug)]
struct Ready {
    done: Done,
    op: Op,
    /// To be synced before it is handed out.
    durable: bool,
}

/// A command that the model is done with, and the store's files are not.
#[derive(Debug)]
struct Syncing {
    ticket: Ticket,
    done: Done,
    /// It was given up on: nobody waits for it but [`Device::abandoned`].
    abandoned: bool,
}

/// An emulated drive.
#[derive(Debug)]
pub struct Emulated {
    drive: Drive,
    geometry: Geometry,
    store: Arc<Store>,
    /// None for a store that has nothing to sync.
    syncer: Option<Syncer>,
    undo: Undo,
    /// By tag.
    in_flight: Vec<Option<InFlight>>,
    /// In order of time.
    ready: VecDeque<Ready>,
    /// In order of time.
    syncing: VecDeque<Syncing>,
    has_power: bool,
    /// The latest time of a call.
    now: Time,
    /// Scratch.
    before: Vec<u8>,
}

/// Starts to emulate a drive.
///
/// # Errors
///
/// If the size does not fit the drive, or the store cannot be opened, belongs to a volume of another
/// size, or is in use.
pub fn open(options: EmulatedOptions) -> Result<Emulated, EmulateError> {
    Emulated::open(&options, FILE_BYTES_MAX)
}

/// Checks that the drive could be emulated, as far as possible without opening its store for
/// writing. Returns its bytes.
///
/// # Errors
///
/// As [`open`], as far as that shows.
pub fn look(options: &EmulatedOptions) -> Result<u64, EmulateError> {
    let bytes = options.bytes()?;
    if let Some(pieces) = options.pieces(bytes, FILE_BYTES_MAX) {
        pieces.look()?;
    }
    Ok(bytes)
}

impl EmulatedOptions {
    /// The volume's bytes, if they fit the drive.
    fn bytes(&self) -> Result<u64, EmulateError> {
        let profile = &self.profile;
        let sector_bytes = profile.geometry.sector_bytes;
        let capacity = profile.geometry.capacity.bytes(sector_bytes);
        let size = self.size.unwrap_or(capacity);
        if size == 0 || !size.is_multiple_of(u64::from(sector_bytes)) {
            return Err(EmulateError::Size { size, sector_bytes });
        }
        if size > capacity {
            return Err(EmulateError::Capacity {
                size,
                capacity,
                drive: profile.name.clone(),
            });
        }
        Ok(size)
    }

    /// The files that it is to be in, if any.
    fn pieces(&self, bytes: u64, file_bytes: u64) -> Option<Pieces<'_>> {
        match &self.store {
            StoreSpec::Memory => None,
            StoreSpec::File(path) => Some(Pieces {
                path,
                bytes,
                file_bytes,
                create: self.create,
            }),
        }
    }
}

impl Emulated {
    fn open(options: &EmulatedOptions, file_bytes: u64) -> Result<Emulated, EmulateError> {
        let profile = &options.profile;
        let sector_bytes = profile.geometry.sector_bytes;
        let size = options.bytes()?;
        let store = Arc::new(match options.pieces(size, file_bytes) {
            None => Store::memory(size, file_bytes)?,
            Some(pieces) => Store::file(&pieces)?,
        });
        let syncer = match store.in_memory() {
            true => None,
            false => Some(Syncer::start(Arc::clone(&store)).map_err(|error| {
                store.made().remove();
                EmulateError::Thread(error)
            })?),
        };
        let mut drive = Drive::new(profile, options.seed);
        drive.record_written(Time::ZERO, true);
        Ok(Emulated {
            geometry: Geometry {
                capacity: Sectors::new(size / u64::from(sector_bytes)),
                sector_bytes,
                depth: drive.depth(),
                read_only: false,
                discards: true,
            },
            drive,
            store,
            syncer,
            undo: Undo::new(sector_bytes),
            in_flight: Vec::new(),
            ready: VecDeque::new(),
            syncing: VecDeque::new(),
            has_power: true,
            now: Time::ZERO,
            before: Vec::new(),
        })
    }

    /// Bytes of memory that keep what a power cut would restore.
    pub fn undo_bytes(&self) -> usize {
        self.undo.bytes()
    }

    /// Commands that the model is done with and that wait for the store's files to be synced.
    pub fn unsynced(&self) -> usize {
        self.syncing.len()
    }

    /// Lets the model come up to `now`, or to the latest time that it has been asked for, and says
    /// which that is.
    ///
    /// However late that is, it comes there event by event: what the arm has written by the time at
    /// which a write completes are the data before it, what is said then are its own.
    fn advance(&mut self, now: Time) -> Time {
        let mut at = self.now;
        self.now = at.max(now);
        loop {
            let next = self.drive.next_event().filter(|next| *next <= self.now);
            at = at.max(next.unwrap_or(self.now));
            self.account(at);
            while let Some(completion) = self.drive.poll(at) {
                self.completed(&completion);
                self.account(at);
            }
            if next.is_none() {
                return self.now;
            }
        }
    }

    /// Notes which sectors have reached the medium.
    fn account(&mut self, now: Time) {
        for (_, extent) in self.drive.take_written(now) {
            self.undo.on_medium(extent);
        }
    }

    /// The model is done with a command.
    fn completed(&mut self, completion: &Completion) {
        let slot = &mut self.in_flight[completion.tag as usize];
        let command = slot.take().expect("a command completes once");
        let mut result = Ok(());
        if let Err(error) = completion.result {
            result = Err(Failure {
                at: Some(error.lba),
                ..Failure::new(Kind::Medium)
            });
        }
        match (command.op, result) {
            (Op::Write, Ok(())) => {
                for part in command.parts.iter().filter(|part| part.has_bytes()) {
                    self.undo.completed(part.extent);
                }
            }
            (Op::Write, Err(_)) => self.take_back(&command.parts, None),
            (Op::Flush, Ok(())) => self.undo.flushed(),
            _ => {}
        }
        self.ready.push_back(Ready {
            durable: command.op == Op::Flush || command.op == Op::Write && command.fua,
            op: command.op,
            done: Done {
                tag: DriveTag(completion.tag),
                at: completion.at,
                result,
                parts: command.parts,
            },
        });
    }

    /// Fails a command at once.
    fn refuse(&mut self, at: Time, command: &Request<DriveTag>, parts: Parts, failure: Failure) {
        self.ready.push_back(Ready {
            done: Done {
                tag: command.tag,
                at,
                result: Err(failure),
                parts,
            },
            op: command.op,
            durable: false,
        });
    }
}

impl Device for Emulated {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn discards_to_zeroes(&self) -> bool {
        true
    }

    fn in_model_time(&self) -> bool {
        true
    }

    fn submit(&mut self, now: Time, command: &Request<DriveTag>, parts: Parts) {
        let now = self.advance(now);
        if !self.has_power {
            return self.refuse(now, command, parts, Failure::new(Kind::Offline));
        }
        if command.op == Op::Write
            && let Err(failure) = self.put(&parts)
        {
            return self.refuse(now, command, parts, failure);
        }
        let fua = command.flags.has(Flags::FUA);
        let index = command.tag.index();
        if self.in_flight.len() <= index {
            self.in_flight.resize_with(index + 1, || None);
        }
        assert!(self.in_flight[index].is_none(), "a tag is in use");
        self.in_flight[index] = Some(InFlight {
            op: command.op,
            fua,
            parts,
        });
        self.drive.submit(
            now,
            Command {
                tag: command.tag.0,
                op: command.op,
                extent: command.extent,
                fua,
                high: command.class == Class::REAL_TIME,
            },
        );
    }

    fn poll(&mut self, now: Time) -> Option<Done> {
        self.advance(now);
        loop {
            if let Some(done) = self.synced() {
                return Some(done);
            }
            self.ready.front().filter(|ready| ready.done.at <= now)?;
            let Ready {
                mut done,
                op,
                durable,
            } = self.ready.pop_front()?;
            if done.result.is_ok() {
                done.result = self.settle(op, &mut done.parts);
            }
            match &self.syncer {
                Some(syncer) if durable && done.result.is_ok() => {
                    self.syncing.push_back(Syncing {
                        ticket: syncer.ask(),
                        done,
                        abandoned: false,
                    });
                }
                _ => return Some(done),
            }
        }
    }

    fn next_event(&self) -> Option<Time> {
        let synced = match (self.syncing.front(), &self.syncer) {
            (Some(first), Some(syncer)) if syncer.is_done(first.ticket) => Some(first.done.at),
            _ => None,
        };
        let ready = self.ready.front().map(|ready| ready.done.at);
        let times = [synced, ready, self.drive.next_event()];
        times.into_iter().flatten().min()
    }

    fn ready_fd(&self) -> Option<BorrowedFd<'_>> {
        self.syncer.as_ref().map(Syncer::ready_fd)
    }

    fn kick(&mut self) {
        if let Some(syncer) = &self.syncer {
            syncer.hush();
        }
    }

    fn abort(&mut self, now: Time, tag: DriveTag) -> Aborted {
        let now = self.advance(now);
        let waits = self.in_flight.get(tag.index()).is_some_and(Option::is_some);
        if !waits {
            return self.abandon(tag);
        }
        if !self.drive.abort(now, tag.0) {
            return Aborted::No;
        }
        let command = self.in_flight[tag.index()].take();
        let command = command.expect("it is in the drive");
        if command.op == Op::Write {
            self.take_back(&command.parts, None);
        }
        Aborted::Undone(command.parts)
    }

    fn abandoned(&self) -> usize {
        let syncing = self.syncing.iter();
        syncing.filter(|syncing| syncing.abandoned).count()
    }

    fn head_time(&mut self, now: Time) -> Option<HeadTime> {
        let now = self.advance(now);
        Some(self.drive.head_time(now))
    }

    fn note_pending(&mut self, now: Time, backlog: Backlog) {
        let now = self.advance(now);
        self.drive.note_pending(now, backlog);
    }

    fn control(&mut self, now: Time, what: &Control) -> Result<Sectors, ControlError> {
        match *what {
            Control::PowerCut => self.power_cut(now),
            Control::PowerOn => {
                self.power_on(now)?;
                Ok(Sectors::ZERO)
            }
            Control::Fault(fault) => {
                let capacity = self.geometry.capacity;
                if let Fault::Unreadable { extent, .. } = fault
                    && extent
                        .start
                        .get()
                        .checked_add(extent.len.get())
                        .is_none_or(|end| end > capacity.get())
                {
                    return Err(ControlError::Outside { extent, capacity });
                }
                let fault = match fault {
                    // So that times stay within 64 bits.
                    Fault::Stall(span) => Fault::Stall(span.min(STALL_MAX)),
                    other => other,
                };
                let now = self.advance(now);
                self.drive.inject(now, fault);
                Ok(Sectors::ZERO)
            }
        }
    }

    fn allocation(&self) -> Option<Arc<dyn Allocation>> {
        Some(Arc::clone(&self.store) as Arc<_>)
    }

    fn made(&self) -> Made {
        self.store.made()
    }

    fn check_backing(&self) -> Result<(), Lost> {
        self.store.check()
    }
}

impl Emulated {
    /// A command whose sync is over, and that somebody waits for.
    fn synced(&mut self) -> Option<Done> {
        let syncer = self.syncer.as_ref()?;
        loop {
            let first = self.syncing.front();
            first.filter(|first| syncer.is_done(first.ticket))?;
            let Syncing {
                ticket,
                mut done,
                abandoned,
            } = self.syncing.pop_front()?;
            if let Err(errno) = syncer.result(ticket) {
                done.result = Err(failure(errno));
            }
            if !abandoned {
                return Some(done);
            }
            match done.result {
                Ok(()) => tracing::warn!("a sync of the store that was given up on has ended"),
                Err(failure) => {
                    tracing::error!("a sync of the store that was given up on failed: {failure}");
                }
            }
        }
    }

    /// Aborts a command that the model has completed while the store's files are still being synced
    /// for it. Its bytes are in the store, and nobody knows whether they are safe there.
    fn abandon(&mut self, tag: DriveTag) -> Aborted {
        let Some(syncer) = &self.syncer else {
            return Aborted::No;
        };
        let waits = |syncing: &&mut Syncing| {
            !syncing.abandoned && syncing.done.tag == tag && !syncer.is_done(syncing.ticket)
        };
        match self.syncing.iter_mut().find(waits) {
            None => Aborted::No,
            Some(syncing) => {
                syncing.abandoned = true;
                // The kernel has a copy.
                syncing.done.parts.clear();
                Aborted::Abandoned
            }
        }
    }
}
