//! A simulated disk: takes commands and returns completions.
//!
//! [`Drive`] combines the layout of sectors ([`crate::layout`]), the movements of the arm
//! ([`crate::mechanics`]), the buffer, the bus and the firmware's queue. It has no clock: time is
//! an argument and never goes backwards. Each call computes the events since the previous call. An
//! idle drive therefore costs nothing, however long it reads ahead or destages.
//!
//! ```text
//! submit(now, command) ──► next_event() ──► poll(next) = Some(completion)
//!                                                      = None: ask for the next event again
//! ```
//!
//! Every parameter of DiskSim 4.0's disk module has the behaviour that its manual describes. For
//! what drives have learned since (write-back that outlasts other commands, reordering) see
//! `docs/design/2026-11-21-drive-model.md`.

mod ahead;
mod arm;
pub(crate) mod bus;
mod choice;
mod clock;
mod command;
mod depart;
mod destage;
mod event;
mod fault;
mod hold;
mod media;
mod noise;
mod read;
mod switch;
mod write;
mod written;

use crate::cache::{Cache, SegmentId};
use crate::layout::Layout;
use crate::ledger::{HeadTime, Ledger, Span};
use crate::mechanics::Mechanics;
use crate::profile::{Profile, Spec};
use crate::queue::Queue;
use arm::{Ahead, Going, LastTrack, Record, Writing};
use bus::Bus;
use clock::Clock;
use fault::Faults;
use headtime_sched::{Backlog, Ending, Op};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time, Track};
use hold::Streams;
use noise::Noise;
use std::collections::VecDeque;
use std::sync::Arc;

pub use command::{Breakdown, Command, Completion, Hit, TAGS_MAX};
pub use fault::{Fault, MediumError};

/// A command in the drive.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    command: Command,
    submitted: Time,
    /// Time at which the drive has received the command.
    arrived: Time,
    /// Time at which the command has been processed far enough for the arm to move.
    ready: Time,
    /// Time from which the command is off the bus, if it had to disconnect.
    disconnected: Time,
    /// Time at which the data of a write that waits for the arm have come, if they were fetched.
    fetched: Option<Time>,
    /// True if the command never completes.
    lost: bool,
    /// The segment that the command uses until it completes.
    segment: Option<SegmentId>,
    breakdown: Breakdown,
    hit: Hit,
    /// Start and end of the data on the bus.
    data: (Time, Time),
    result: Result<(), MediumError>,
}

/// A simulated disk.
///
/// Invariants: times of `planned` descend, and times of `finished` ascend; `free_slots` has the indices of the slots
/// without a command; `now` never falls.
#[derive(Clone, Debug)]
pub struct Drive {
    profile: Profile,
    layout: Arc<Layout>,
    mechanics: Mechanics,
    unit_turn: Nanos,
    cache: Cache,
    queue: Queue,
    bus: Bus,
    noise: Noise,
    clock: Clock,
    faults: Faults,
    ledger: Ledger,
    slots: Vec<InFlight>,
    free_slots: Vec<u16>,
    /// Commands whose completion is planned, the earliest last.
    planned: Vec<(Time, u16)>,
    /// Commands that have completed and not been polled.
    finished: VecDeque<(Time, u16)>,
    /// Time of the last call.
    now: Time,
    /// Track of the arm, or the destination of its present work.
    track: Track,
    /// Time at which the arm can begin something else. Reading ahead can be interrupted before.
    arm_free: Time,
    /// Time since which the drive has had no work but destaging.
    idle_since: Time,
    ahead: Option<Ahead>,
    /// Time at which the head last finished reading for a command, and the sector behind.
    read_last: (Time, Lba),
    /// Addresses of the track on which the last read that the arm served ended.
    read_track: Extent,
    /// Time at which the head last finished writing, and the sector behind.
    write_last: (Time, Lba),
    /// Time at which dirty data last went first for their age.
    aged: Time,
    going: Going,
    streams: Streams,
    /// Choices of the arm since the last that could be the oldest command's.
    choices: u32,
    writing: Option<Writing>,
    /// For each command for which the arm writes, but the last: the time at which its sectors are
    /// written, and the sector behind.
    parts: VecDeque<(Time, Lba)>,
    last_was_read: bool,
    backlog: Backlog,
    /// Flushes that wait. No new write gets into the buffer before them.
    flushes: u32,
    /// True if all waiting commands are writes for which there is no room until a command
    /// completes.
    no_room: bool,
    last_track: LastTrack,
    written: Record,
}

/// The buffer of a drive as it is switched on.
fn empty_cache(profile: &Profile, layout: &Layout) -> Cache {
    let per = u64::from(profile.geometry.sectors_per_physical());
    Cache::new(&profile.cache, layout.capacity().get(), per)
}

impl Drive {
    /// A drive at rest, heads over cylinder 0, head 0, angle zero at time zero, its buffer empty.
    /// The variations between units and from command to command are drawn from `seed`.
    pub fn new(profile: &Profile, seed: u64) -> Drive {
        let layout = Arc::new(Layout::new(profile));
        Drive::with_layout(profile, layout, seed)
    }

    /// Like [`Drive::new`], with a layout that several drives share.
    ///
    /// # Panics
    ///
    /// If the layout is of another capacity.
    pub fn with_layout(profile: &Profile, layout: Arc<Layout>, seed: u64) -> Drive {
        assert_eq!(
            layout.capacity(),
            profile.geometry.capacity,
            "layout of another drive"
        );
        let mut noise = Noise::new(&profile.noise, seed);
        let turn = noise.turn(profile.rotation.turn());
        let clock = Clock::new(&profile.noise, || noise.uniform());
        let depth = profile.queue.depth.min(TAGS_MAX);
        Drive {
            mechanics: Mechanics::new(profile).with_turn(clock.turn(turn)),
            unit_turn: turn,
            clock,
            cache: empty_cache(profile, &layout),
            queue: Queue::new(profile.queue.policy, depth),
            bus: Bus::default(),
            noise,
            faults: Faults::default(),
            ledger: Ledger::default(),
            slots: Vec::with_capacity(depth as usize),
            free_slots: Vec::with_capacity(depth as usize),
            planned: Vec::with_capacity(depth as usize),
            finished: VecDeque::with_capacity(depth as usize),
            now: Time::ZERO,
            track: layout.home(),
            arm_free: Time::ZERO,
            idle_since: Time::ZERO,
            ahead: None,
            read_last: (Time::ZERO, Lba::ZERO),
            read_track: Extent::at(0, 0),
            write_last: (Time::ZERO, Lba::ZERO),
            aged: Time::ZERO,
            going: Going::default(),
            streams: Streams::new(profile.queue.stream_hold),
            choices: 0,
            writing: None,
            parts: VecDeque::new(),
            last_was_read: true,
            backlog: Backlog::Nothing,
            flushes: 0,
            no_room: false,
            last_track: LastTrack::default(),
            written: Record::default(),
            layout,
            profile: profile.clone(),
        }
    }

    /// The description of the drive.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Layout of the sectors.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Addresses of the drive: 0 up to this.
    pub fn capacity(&self) -> Sectors {
        self.layout.capacity()
    }

    /// Commands that the drive takes at a time.
    pub fn depth(&self) -> u32 {
        self.profile.queue.depth.min(TAGS_MAX)
    }

    /// Commands in the drive: submitted and not polled.
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free_slots.len()
    }

    /// Mean duration of a turn of this unit.
    pub fn turn(&self) -> Nanos {
        self.unit_turn
    }

    fn spec(&self) -> &Spec {
        &self.profile
    }

    /// Takes a command.
    ///
    /// # Panics
    ///
    /// If the drive holds [`Drive::depth`] commands already, the extent is empty (but for a flush)
    /// or leaves the disk, or time goes backwards.
    pub fn submit(&mut self, now: Time, command: Command) {
        self.take(self.clock.own(now), command);
    }

    /// Takes a command. `now` is the drive's own time.
    #[inline(always)]
    fn take(&mut self, now: Time, command: Command) {
        assert!(
            command.op == Op::Flush
                || (!command.extent.is_empty()
                    && command.extent.end() <= Lba::ZERO + self.layout.capacity()),
            "extent {} not on the disk",
            command.extent
        );
        assert!(
            self.in_flight() < self.depth() as usize,
            "more commands than the drive takes"
        );
        self.advance(now);
        let arrived = self.faults.after_stall(now) + self.spec().overhead.per_command;
        let slot = InFlight {
            command,
            submitted: now,
            arrived,
            ready: arrived,
            disconnected: arrived,
            fetched: None,
            lost: false,
            segment: None,
            breakdown: Breakdown::default(),
            hit: Hit::NoData,
            data: (arrived, arrived),
            result: Ok(()),
        };
        let index = match self.free_slots.pop() {
            Some(index) => {
                self.slots[usize::from(index)] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u16
            }
        };
        if self.faults.loses_next() {
            self.slots[usize::from(index)].lost = true;
            return;
        }
        self.receive(index);
    }

    /// The next time at which [`Drive::poll`] may return a completion, if no command comes before.
    /// `None` if it will not.
    pub fn next_event(&self) -> Option<Time> {
        self.next().map(|own| self.clock.host(own))
    }

    fn next(&self) -> Option<Time> {
        if let Some(&(at, _)) = self.finished.front() {
            return Some(at);
        }
        let planned = self.planned.last().map(|&(at, _)| at);
        let arm = self.has_work().then_some(self.arm_free.max(self.now));
        match (planned, arm) {
            (Some(planned), Some(arm)) => Some(planned.min(arm)),
            (planned, arm) => planned.or(arm),
        }
    }

    /// The next command that has completed by `now`, the earliest first.
    ///
    /// # Panics
    ///
    /// If time goes backwards.
    pub fn poll(&mut self, now: Time) -> Option<Completion> {
        let mut done = self.done(self.clock.own(now))?;
        done.at = self.clock.host(done.at);
        done.data = (self.clock.host(done.data.0), self.clock.host(done.data.1));
        Some(done)
    }

    #[inline(always)]
    fn done(&mut self, now: Time) -> Option<Completion> {
        self.advance(now);
        let (at, index) = self.finished.pop_front()?;
        self.free_slots.push(index);
        self.note_completed(index);
        let slot = &self.slots[usize::from(index)];
        debug_assert_eq!(slot.breakdown.total(), at - slot.submitted, "{slot:?}");
        Some(Completion {
            tag: slot.command.tag,
            at,
            result: slot.result,
            data: slot.data,
            breakdown: slot.breakdown,
            hit: slot.hit,
        })
    }

    /// Tells the drive why the host keeps back requests. The account of the time in which the arm
    /// is at rest uses it.
    ///
    /// # Panics
    ///
    /// If time goes backwards.
    #[inline]
    pub fn note_pending(&mut self, now: Time, backlog: Backlog) {
        if backlog != self.backlog {
            self.change_backlog(now, backlog);
        }
    }

    #[inline(never)]
    fn change_backlog(&mut self, now: Time, backlog: Backlog) {
        let now = self.clock.own(now);
        self.advance(now);
        self.settle(now);
        self.backlog = backlog;
    }

    /// Division of the arm's time since time zero.
    ///
    /// # Panics
    ///
    /// If time goes backwards.
    pub fn head_time(&mut self, now: Time) -> HeadTime {
        let own = self.clock.own(now);
        self.advance(own);
        self.settle(own);
        self.clock.head_time(now, self.ledger.total())
    }

    /// Starts or stops recording the activities of the arm, for plots. Off at first, since the
    /// record takes memory.
    ///
    /// # Panics
    ///
    /// If time goes backwards.
    pub fn record_spans(&mut self, now: Time, on: bool) {
        let now = self.clock.own(now);
        self.advance(now);
        self.settle(now);
        self.ledger.record(on);
    }

    /// The spans recorded since the last call up to `now`, without gaps between them.
    ///
    /// # Panics
    ///
    /// If time goes backwards.
    pub fn take_spans(&mut self, now: Time) -> Vec<Span> {
        let now = self.clock.own(now);
        self.advance(now);
        self.settle(now);
        let mut spans = self.ledger.take_spans();
        for span in &mut spans {
            (span.from, span.to) = (self.clock.host(span.from), self.clock.host(span.to));
        }
        spans
    }

    /// End of a command, and how the buffer serves the command. `None` while the command waits, and for unknown tags.
    pub(crate) fn planned_end(&self, tag: u32) -> Option<Ending> {
        let slot = |index: u16| &self.slots[usize::from(index)];
        let mut planned = self.planned.iter();
        let (at, index) = planned.find(|(_, index)| slot(*index).command.tag == tag)?;
        let (done, is_hit) = (self.clock.host(*at), slot(*index).hit == Hit::Full);
        Some(Ending { done, is_hit })
    }

    /// Returns true if all written sectors are on the medium.
    ///
    /// # Panics
    ///
    /// If time goes backwards.
    pub fn is_clean(&mut self, now: Time) -> bool {
        let now = self.clock.own(now);
        self.advance(now);
        self.cache.is_clean()
    }

    /// The number of dirty sectors in the buffer, which a power cut would lose. Sectors that the
    /// arm is writing for a command count until the arm has written the last sector, even if the
    /// command completes only then. A write that waits for room does not count. Zero if and only if
    /// [`Drive::is_clean`].
    ///
    /// # Panics
    ///
    /// If time goes backwards.
    pub fn dirty_sectors(&mut self, now: Time) -> Sectors {
        let now = self.clock.own(now);
        self.advance(now);
        Sectors::new(self.dirty().map(|extent| extent.len.get()).sum())
    }

    /// Injects a fault, which lasts from now on.
    ///
    /// # Panics
    ///
    /// If time goes backwards, or sectors are named that the disk does not have.
    pub fn inject(&mut self, now: Time, fault: Fault) {
        let now = self.clock.own(now);
        self.advance(now);
        match fault {
            Fault::Unreadable { extent, retries } => {
                assert!(extent.end() <= Lba::ZERO + self.layout.capacity());
                if extent.len > Sectors::ZERO {
                    self.faults.spoil(extent, retries);
                    self.drop_copies(extent);
                    self.keep_ahead_readable();
                    self.no_room = false;
                }
            }
            Fault::Stall(span) => {
                let until = now + span;
                self.faults.stalled_until = self.faults.stalled_until.max(until);
                self.arm_free = self.arm_free.max(until);
            }
            Fault::LoseNext => self.faults.lose += 1,
        }
    }

    /// Aborts a command that waits or was lost. Returns false if there is none: a command that the
    /// drive works on completes.
    ///
    /// # Panics
    ///
    /// If time goes backwards.
    pub fn abort(&mut self, now: Time, tag: u32) -> bool {
        self.give_up(self.clock.own(now), tag)
    }

    fn give_up(&mut self, now: Time, tag: u32) -> bool {
        self.advance(now);
        let found = (0..self.slots.len() as u16).find(|index| {
            let slot = &self.slots[usize::from(*index)];
            slot.command.tag == tag && !self.free_slots.contains(index)
        });
        let Some(index) = found else { return false };
        if self.slot(index).lost {
            self.free_slots.push(index);
            return true;
        }
        let Some(waiting) = self.queue.cancel(index) else {
            return false;
        };
        self.flushes -= u32::from(waiting.op == Op::Flush);
        self.free_slots.push(index);
        // Writes may have waited for this command.
        self.no_room = false;
        self.admit(now);
        true
    }

    /// Returns true if the arm has something to do for the commands that wait.
    fn has_work(&self) -> bool {
        !self.queue.is_empty() && !self.no_room
    }

    fn slot(&mut self, index: u16) -> &mut InFlight {
        &mut self.slots[usize::from(index)]
    }
}
