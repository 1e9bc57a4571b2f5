//! Emulates a drive in real time. The model ([`headtime_disk::Drive`]) decides the times of all events. A store
//! ([`StoreSpec`]) holds the bytes.
//!
//! # Writes, and what a power cut takes back
//!
//! The bytes of a write go to the store at submission. A lack of space is therefore an error of this write and not of a
//! later write. Memory retains the bytes that the write replaces, until the model says that the arm has written those
//! sectors. A power cut restores the retained bytes. The sizes of the drive's buffer and of the commands in the drive
//! bound this memory.
//!
//! - After a power cut a sector holds the data that are on the medium according to the model. These are the data that
//!   were flushed or written with FUA, or newer data. If the cut interrupts the arm during a write, the write is there
//!   as far as whole sectors had passed under the head.
//! - Discards and writes of zeroes change the store when they complete. A power cut before that prevents them, and a
//!   power cut after that does not undo them. A real drive may lose them like data. Memory does not grow with their
//!   size, as it holds no bytes for them.
//! - A flush, or a write with FUA, completes when the model has completed it *and* the store's files are synced. A
//!   separate thread syncs the files while other commands go on in model time. The time by which a sync exceeds the
//!   model's time counts as lateness. A store in memory needs no sync. If a sync never ends, the command can be given
//!   up on ([`Device::abort`]), and the store's files stay open until the kernel is done.
//! - The disk's thread itself reads and writes the store, through the page cache. If the kernel blocks such a call, as
//!   on a frozen file system, the disk waits.
//! - If the process is killed, a store in files holds every submitted write, in whole sectors.
//!
//! Reads are copied out of the store when they complete.
//!
//! # Time
//!
//! Completions carry the model's time. Lateness of this machine does not change the model's time. A command starts in
//! the model at its submission. If the command has waited in the engine, this is the time at which the command before
//! completed in the model. The platters' angle is zero at time zero.

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

/// Longest stall of a drive: a year. Longer stalls are shortened to this.
const STALL_MAX: Nanos = Nanos::from_secs(365 * 24 * 60 * 60);

/// Store of an emulated drive's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreSpec {
    /// Memory, which holds only written sectors and ends with the server.
    Memory,
    /// A sparse file. A larger drive than [`FILE_BYTES_MAX`] has further files, `PATH.1` and so on.
    File(PathBuf),
}

/// Options of an emulated drive.
#[derive(Clone, Debug)]
pub struct EmulatedOptions {
    pub profile: Profile,
    /// Store of the drive's bytes.
    pub store: StoreSpec,
    /// Bytes of the volume, in whole sectors and at most the drive's capacity. `None` means the drive's capacity.
    pub size: Option<u64>,
    /// True if missing files of the store are made. No file is made under `/dev`, `/proc` or `/sys`.
    pub create: bool,
    /// Seed of the random differences between units of a drive and between commands.
    pub seed: u64,
}

impl EmulatedOptions {
    /// Options of a whole drive with seed 1, without making files.
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

/// A command that the model has completed.
#[derive(Debug)]
struct Ready {
    done: Done,
    op: Op,
    /// True if the store has to be synced before the completion is handed out.
    durable: bool,
}

/// A command that the model has completed, and that waits for a sync of the store's files.
#[derive(Debug)]
struct Syncing {
    ticket: Ticket,
    done: Done,
    /// True if the command was given up on. The disk does not get its completion. [`Device::abandoned`] counts the
    /// command until the sync ends.
    abandoned: bool,
}

/// An emulated drive.
#[derive(Debug)]
pub struct Emulated {
    drive: Drive,
    geometry: Geometry,
    store: Arc<Store>,
    /// Thread that syncs the store; `None` for a store in memory.
    syncer: Option<Syncer>,
    undo: Undo,
    /// Commands in the drive, by tag.
    in_flight: Vec<Option<InFlight>>,
    /// In order of time.
    ready: VecDeque<Ready>,
    /// In order of time.
    syncing: VecDeque<Syncing>,
    has_power: bool,
    /// Latest time of a call.
    now: Time,
    /// Scratch buffer for the bytes that a write replaces.
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

/// Checks that the drive could be emulated, as far as possible without opening the store for writing. Returns the bytes
/// of the drive.
///
/// # Errors
///
/// As [`open`], as far as the errors show without writing.
pub fn look(options: &EmulatedOptions) -> Result<u64, EmulateError> {
    let bytes = options.bytes()?;
    if let Some(pieces) = options.pieces(bytes, FILE_BYTES_MAX) {
        pieces.look()?;
    }
    Ok(bytes)
}

impl EmulatedOptions {
    /// Returns the volume's bytes if they fit the drive.
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

    /// Returns the files of the store; `None` for a store in memory.
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

    /// Bytes of memory that retain the data a power cut would restore.
    pub fn undo_bytes(&self) -> usize {
        self.undo.bytes()
    }

    /// Number of commands that the model has completed and that wait for a sync of the store's files.
    pub fn unsynced(&self) -> usize {
        self.syncing.len()
    }

    /// Advances the model to `now`, or to the latest time of a call if that is later. Returns the time reached.
    ///
    /// The model advances event by event, even if the call is late. Sectors that the arm has written before a write
    /// completes count as older data. Sectors that the model reports afterwards count as the write's own data.
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

    /// Handles a command that the model has completed.
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
                    // The bound keeps times within 64 bits.
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
    /// Returns a command whose sync is over and that was not given up on.
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

    /// Aborts a command that the model has completed and that still waits for a sync. The command's bytes are in the
    /// store, but may not be on stable storage.
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
                // The kernel has a copy of the data.
                syncing.done.parts.clear();
                Aborted::Abandoned
            }
        }
    }
}
