//! Computes, in order, the events between two calls.

use super::arm::{Progress, Source};
use super::choice::Next;
use super::read::Taken;
use super::{Command, Drive, Hit};
use crate::ledger::Part;
use crate::queue::{Target, Waiting};
use headtime_sched::{Backlog, Op};
use headtime_units::{Extent, Time, Track};

/// The next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The data that the arm was writing are on the medium.
    Written,
    /// A command completes.
    Completed,
    /// The arm is free for a waiting command.
    ArmFree,
    /// The drive has been idle for long enough to destage.
    Idle,
}

impl Drive {
    /// Runs all events up to `now`.
    pub(super) fn advance(&mut self, now: Time) {
        assert!(now >= self.now, "time went backwards");
        while let Some((at, event)) = self.upcoming(now).filter(|&(at, _)| at <= now) {
            self.now = at;
            match event {
                Event::Written => self.written(at),
                Event::Completed => self.completed(),
                Event::ArmFree => self.dispatch(at),
                Event::Idle => {
                    self.bring_ahead(at);
                    if let Some(what) = self.destage_due(at).or_else(|| self.next_destage(at)) {
                        self.destage(what, at);
                    }
                }
            }
        }
        self.now = now;
    }

    /// The next event and its time, if that is by `until`. Among events at the same time, the first
    /// in the order of [`Event`].
    fn upcoming(&mut self, until: Time) -> Option<(Time, Event)> {
        let mut next = (Time::NEVER, Event::Idle);
        if let Some(&(at, _)) = self.planned.last() {
            next = (at, Event::Completed);
        }
        if let Some(writing) = &self.writing {
            let written = self.parts.front().map_or(writing.until, |&(at, _)| at);
            next = next.min((written, Event::Written));
        }
        if self.has_work() {
            next = next.min((self.arm_free.max(self.now), Event::ArmFree));
        } else if self.queue.is_empty() && self.writing.is_none() && !self.cache.is_clean() {
            let quiet = self.quiet_from(until);
            next = next.min((quiet.max(self.arm_free).max(self.now), Event::Idle));
        }
        (next.0 < Time::NEVER).then_some(next)
    }

    /// Accounts for the time up to `now`.
    pub(super) fn settle(&mut self, now: Time) {
        self.ledger.settle(now);
        if self.ledger.settled() >= now {
            return;
        }
        if self.bring_ahead(now).is_some() {
            self.ledger.rest(now, Part::ReadAhead);
        }
        let part = match self.backlog {
            Backlog::Nothing => Part::Idle,
            Backlog::Busy => Part::Overhead,
            Backlog::Chosen => Part::Waiting,
            Backlog::Held => Part::Held,
        };
        self.ledger.rest(now, part);
    }

    /// Accounts for the time up to `now` and drops the plan from there on.
    pub(super) fn replan(&mut self, now: Time) {
        self.settle(now);
        self.ledger.replan();
    }

    /// Plans that a command completes.
    pub(super) fn complete(&mut self, index: u16, at: Time) {
        let place = self.planned.partition_point(|&(other, _)| other > at);
        self.planned.insert(place, (at, index));
    }

    fn completed(&mut self) {
        let (at, index) = self.planned.pop().expect("a command completes");
        let slot = self.slot(index);
        let (segment, extent) = (slot.segment.take(), slot.command.extent);
        let is_read = slot.command.op.is_read();
        if let Some(id) = segment {
            self.cache.drop_user(id);
            if is_read {
                self.cache.completed_read(id, extent);
            }
        }
        self.finished.push_back((at, index));
        self.no_room = false;
        self.admit(at);
        self.append_waiting(at);
    }

    /// The bus is free: writes at the front of the queue that continue the data that the arm is writing are added to
    /// these data.
    fn append_waiting(&mut self, now: Time) {
        while self.writing.is_some() && !self.queue.is_empty() {
            let waiting = self.queue.take(0);
            let appended = waiting.op == Op::Write && self.append_write(waiting.slot, now, true);
            if !appended {
                self.queue.put_back(0, waiting);
                return;
            }
        }
    }

    fn written(&mut self, at: Time) {
        let mut writing = self.writing.take().expect("sectors are written");
        if let Some((_, end)) = self.parts.pop_front() {
            let rest = writing.extent.end();
            let start = writing.extent.start;
            self.note_written(at, Extent::new(start, end - start));
            writing.extent = Extent::new(end, rest - end);
            self.writing = Some(writing);
            return;
        }
        self.note_written(at, writing.extent);
        match writing.source {
            Source::Segment(id) => self.cache.end_destage(id, writing.extent.end().get()),
            Source::Runs => self.cache.end_run(),
            Source::Host => return,
        }
        self.admit(at);
    }

    /// Returns true if a write need not wait for the arm.
    pub(super) fn is_buffered(&self, command: &Command) -> bool {
        let len = command.extent.len.get();
        command.op == Op::Write && !command.fua && self.cache.spec().buffers(len)
    }

    /// A command has come.
    pub(super) fn receive(&mut self, index: u16) {
        let command = self.slots[usize::from(index)].command;
        self.no_room = false;
        // The present activity of the drive decides. The time that the drive takes to receive a
        // command only makes everything later.
        let now = self.now;
        match command.op {
            Op::Flush => {
                if self.queue.is_empty() && self.cache.is_clean() {
                    self.finish_without_data(index, now);
                } else {
                    self.flushes += 1;
                    self.wait(index, None);
                }
            }
            Op::Discard => {
                self.drop_copies(command.extent);
                self.finish_without_data(index, now);
            }
            Op::Read => {
                if self.is_free_for(&command, now) {
                    if !self.serve_read(index, now, Taken::Connected) {
                        self.wait_for_arm(index);
                    }
                } else if !self.serve_hit(index, now) {
                    self.wait_for_arm(index);
                }
            }
            Op::Write => {
                if self.is_buffered(&command) {
                    if self.flushes > 0 || !self.buffer_write(index, now) {
                        self.wait_for_arm(index);
                    }
                } else if self.queue.is_empty() && self.append_write(index, now, false) {
                    // The write is added to the data that the arm is writing.
                } else if self.is_free_for(&command, now) {
                    if !self.serve_write(index, now, true) {
                        self.wait_for_arm(index);
                    }
                } else {
                    self.wait_for_arm(index);
                    self.prebuffer_write(index, now);
                }
            }
        }
    }

    /// Returns true if the arm and the bus can take up a command at once.
    fn is_free_for(&mut self, command: &Command, now: Time) -> bool {
        if !self.queue.is_empty() || self.arm_free > now || self.bus.free() > now {
            return false;
        }
        if self.streams.keep_from(command, now) {
            return false;
        }
        if self.ahead.is_none() {
            return true;
        }
        let progress = self.bring_ahead(now);
        let extent = command.extent;
        let continues = command.op.is_read()
            && !command.fua
            && self.ahead.is_some_and(|ahead| {
                let segment = self.cache.get(ahead.segment);
                segment.start <= extent.start.get() && extent.start.get() < segment.end
            });
        if continues {
            return true;
        }
        if self.may_leave_later() && !self.may_have(command) {
            return false;
        }
        if let Some(until) = self.ahead_bound_until(now) {
            self.arm_free = until;
            return false;
        }
        // Some drives do not take up a command until the arm or the sector has come to its end.
        let spec = self.cache.spec();
        if spec.disconnect_write_in_seek {
            let until = match progress {
                Some(Progress::Moving(until)) => until,
                Some(Progress::Reading(until)) if !spec.stop_read_ahead_in_sector => until,
                _ => return true,
            };
            self.arm_free = until;
            return until <= now;
        }
        true
    }

    /// Lets a command wait for the arm, off the bus.
    fn wait_for_arm(&mut self, index: u16) {
        let command = self.slots[usize::from(index)].command;
        let (overhead, disconnect) = self.waiting_overheads(&command);
        let slot = self.slot(index);
        slot.ready = slot.arrived + overhead;
        slot.disconnected = slot.ready + disconnect;
        let lba = command.extent.start;
        let op = command.op;
        let target = Target::new(&self.layout, &self.mechanics, lba, op);
        self.wait(index, Some(target));
    }

    fn wait(&mut self, index: u16, target: Option<Target>) {
        let slot = &self.slots[usize::from(index)];
        let Command {
            op,
            extent,
            fua,
            high,
            ..
        } = slot.command;
        let high = high && self.profile.queue.ncq_prio;
        let needs_arm = op != Op::Flush && !self.is_buffered(&slot.command);
        let held = op == Op::Read
            && !fua
            && self.is_choosing()
            && (self.cache.may_hold(extent) || self.cache.runs_serve(extent));
        self.queue.push(Waiting {
            slot: index,
            op,
            extent,
            fua,
            high,
            needs_arm,
            held,
            arrived: slot.arrived,
            target,
        });
        if self.going.alone {
            // The arm may go on for this command.
            self.arm_free = self.now;
        }
    }

    fn finish_without_data(&mut self, index: u16, now: Time) {
        let arrived = self.slots[usize::from(index)].arrived;
        let at = now.max(arrived) + self.spec().overhead.write_completion;
        let slot = self.slot(index);
        slot.hit = Hit::NoData;
        slot.breakdown.queue = now.saturating_since(slot.arrived);
        slot.breakdown.overhead = at - slot.submitted - slot.breakdown.queue;
        self.complete(index, at);
    }

    /// The arm is free and commands wait: serves a command, or destages data for waiting commands.
    fn dispatch(&mut self, now: Time) {
        let now = self.faults.after_stall(now);
        if now > self.now {
            self.arm_free = now;
            return;
        }
        self.bring_ahead(now);
        if let Some(until) = self.ahead_bound_until(now) {
            self.arm_free = until;
            return;
        }
        if self.flushes > 0 && self.cache.is_clean() {
            let place = self
                .queue
                .iter()
                .position(|waiting| waiting.op == Op::Flush);
            let waiting = self.queue.take(place.expect("a flush waits"));
            self.flushes -= 1;
            self.finish_without_data(waiting.slot, now);
            if self.flushes == 0 {
                self.admit(now);
            }
            return;
        }
        let (place, through) = match self.choose(now) {
            Next::Serve { place, through } => (place, through),
            Next::Destage(what) => {
                self.destage(what, now);
                return;
            }
            Next::GoOn(until) => {
                self.arm_free = until;
                return;
            }
            Next::Nothing => {
                // Only writes wait, and nothing is dirty: reads that have not completed hold every
                // segment, or held one until just now.
                self.no_room = !self.admit(now);
                assert!(
                    !self.no_room || !self.planned.is_empty(),
                    "nobody holds a segment, and there is none to be had"
                );
                return;
            }
        };
        let choosing = self.is_choosing();
        let waiting = self.queue.take(place);
        let served = match waiting.op {
            Op::Read => self.serve_read(waiting.slot, now, Taken::Queued { through }),
            _ => self.serve_write(waiting.slot, now, false),
        };
        if !served {
            self.queue.put_back(place, waiting);
        } else if choosing && self.slots[usize::from(waiting.slot)].hit != Hit::Full {
            self.note_choice();
        }
    }

    /// Takes writes into the buffer that found no room on arrival. Returns true if there was any.
    pub(super) fn admit(&mut self, now: Time) -> bool {
        let mut any = false;
        if self.flushes > 0 || self.queue.is_empty() {
            return any;
        }
        loop {
            let next = self.queue.iter().position(|waiting| {
                self.is_buffered(&self.slots[usize::from(waiting.slot)].command)
            });
            let Some(place) = next else { return any };
            let waiting = self.queue.take(place);
            if !self.buffer_write(waiting.slot, now) {
                self.queue.put_back(place, waiting);
                return any;
            }
            any = true;
        }
    }

    /// Track of the arm, as of the last update of reading ahead.
    pub(super) fn arm_track(&self) -> Track {
        self.ahead.map_or(self.track, |ahead| ahead.over)
    }
}
