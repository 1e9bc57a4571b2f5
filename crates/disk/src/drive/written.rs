//! Reports the sectors that are on the medium and the sectors that a power cut loses.
//!
//! Callers that store the data of an emulated drive need this. The drive itself moves no data. It
//! only says which sectors have reached the medium.

use super::arm::{Going, Source, Writing};
use super::{Drive, empty_cache};
use crate::queue::Queue;
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Time};
use std::collections::VecDeque;

impl Drive {
    /// Starts recording the sectors that reach the medium, or stops and drops the record. Off at
    /// first. Recording does not change the drive's behaviour.
    ///
    /// If turned on during writes, it records the writes that end from then on.
    ///
    /// # Panics
    ///
    /// If time goes backwards.
    pub fn record_written(&mut self, now: Time, on: bool) {
        let now = self.clock.own(now);
        self.advance(now);
        self.written.on = on;
        if !on {
            self.written.done.clear();
        }
    }

    /// The stretches of sectors that the arm has finished writing by `now` since the last call,
    /// each with its time, in order of time. The stretches were destaged from the buffer or written
    /// through it. Empty unless [`Drive::record_written`] is on. The memory is reused.
    ///
    /// - A stretch is recorded when the arm has written its last sector, as
    ///   [`Drive::dirty_sectors`] counts. This holds even if the arm goes on with a write that
    ///   continues the stretch. If the power fails, the stretch is recorded up to the arm's
    ///   position.
    /// - When the completion of a write is polled, the write's sectors that are on the medium by then are recorded,
    ///   again or for the first time. A sector of such a write is therefore not on the medium as long as this method
    ///   has not returned the sector since the poll. A caller knows these sectors at any time if it leaves out no
    ///   [`Drive::next_event`] and calls this before and after each [`Drive::poll`].
    /// - A flush completes after all sectors of earlier writes are recorded.
    /// - Sectors may be recorded while a write to them is in the drive. Until that write completes, the medium may have
    ///   the earlier or the new data, as with a real drive.
    ///
    /// # Panics
    ///
    /// If time goes backwards.
    pub fn take_written(
        &mut self,
        now: Time,
    ) -> impl ExactSizeIterator<Item = (Time, Extent)> + '_ {
        let now = self.clock.own(now);
        self.advance(now);
        let clock = &self.clock;
        let done = self.written.done.drain(..);
        done.map(|(at, extent)| (clock.host(at), extent))
    }

    /// The sectors that [`Drive::dirty_sectors`] counts, in no order.
    ///
    /// # Panics
    ///
    /// If time goes backwards.
    pub fn dirty_extents(&mut self, now: Time) -> impl Iterator<Item = Extent> + '_ {
        let now = self.clock.own(now);
        self.advance(now);
        self.dirty()
    }

    pub(super) fn dirty(&self) -> impl Iterator<Item = Extent> + '_ {
        self.dirty_segments().chain(self.cache.runs().extents())
    }

    fn dirty_segments(&self) -> impl Iterator<Item = Extent> + '_ {
        self.cache.dirty_extents().map(|(id, extent)| {
            // The arm may have written the first sectors already.
            let source = Source::Segment(id);
            let writing = self.writing.filter(|writing| writing.source == source);
            writing.map_or(extent, |writing| {
                let start = writing.extent.start;
                Extent::new(start, extent.end() - start)
            })
        })
    }

    /// The power fails and is back at once. The buffer's data are lost, and so is every command: commands in the drive
    /// never complete, and completions that were not polled are never returned. A write that the power cut interrupts
    /// is on the medium as far as whole sectors of the medium had passed. [`Drive::take_written`] returns these sectors
    /// if recording is on.
    ///
    /// Unreadable sectors stay unreadable. A stall ends, and no further command is lost on request.
    /// The arm is at its position of time zero. The platters turn as if nothing had happened. The
    /// caller has to wait for the time that the drive takes to get ready.
    ///
    /// # Panics
    ///
    /// If time goes backwards.
    pub fn power_cycle(&mut self, now: Time) {
        let now = self.clock.own(now);
        self.advance(now);
        self.note_cut(now);
        self.replan(now);
        let depth = self.depth();
        self.cache = empty_cache(&self.profile, &self.layout);
        self.queue = Queue::new(self.profile.queue.policy, depth);
        self.bus = super::Bus::default();
        self.faults.power_cycle();
        self.slots.clear();
        self.free_slots.clear();
        self.planned.clear();
        self.finished = VecDeque::with_capacity(depth as usize);
        self.track = self.layout.home();
        self.arm_free = now;
        self.idle_since = now;
        self.ahead = None;
        self.read_last = (Time::ZERO, Lba::ZERO);
        self.read_track = Extent::at(0, 0);
        self.write_last = (Time::ZERO, Lba::ZERO);
        self.aged = Time::ZERO;
        self.going = Going::default();
        self.writing = None;
        self.parts.clear();
        self.last_was_read = true;
        self.flushes = 0;
        self.no_room = false;
    }

    /// The arm sets out to write something new.
    pub(super) fn begin_passing(&mut self) {
        debug_assert!(self.writing.is_none(), "there is one arm");
        self.written.passing.clear();
    }

    /// Sectors are on the medium.
    pub(super) fn note_written(&mut self, at: Time, extent: Extent) {
        self.faults.written(extent);
        self.written.note(at, extent);
    }

    /// The completion of a command is polled: its sectors that are no longer in the buffer are on
    /// the medium.
    pub(super) fn note_completed(&mut self, index: u16) {
        let command = self.slots[usize::from(index)].command;
        if !self.written.on || command.op != Op::Write {
            return;
        }
        let at = self.now;
        let (mut from, end) = (command.extent.start, command.extent.end());
        while from < end {
            let dirty = self
                .dirty_segments()
                .filter(|dirty| dirty.end() > from)
                .chain(self.cache.runs().first_dirty(from.get()))
                .min_by_key(|dirty| dirty.start);
            let until = dirty.map_or(end, |dirty| dirty.start.min(end));
            if from < until {
                let clean = Extent::new(from, until - from);
                self.written.done.push((at, clean));
            }
            from = dirty.map_or(end, |dirty| dirty.end());
        }
    }

    /// The arm loses its power while it writes.
    fn note_cut(&mut self, now: Time) {
        let Some(Writing { extent: wanted, .. }) = self.writing else {
            return;
        };
        let per = u64::from(self.profile.geometry.sectors_per_physical());
        let mut passing = std::mem::take(&mut self.written.passing);
        for step in passing.drain(..) {
            let passed = now.saturating_since(step.from).min(step.takes);
            if passed.is_zero() {
                continue;
            }
            let sectors = u128::from(step.extent.len.get()) * u128::from(passed.as_nanos())
                / u128::from(step.takes.as_nanos());
            let mut end = step.extent.start.get() + sectors as u64;
            if end < step.extent.end().get() {
                // One of the medium's sectors is written whole or not at all.
                end = end / per * per;
            }
            // If the medium's sectors are larger, more is written than the command asked for.
            let start = step.extent.start.max(wanted.start);
            let end = Lba::new(end).min(wanted.end());
            if start < end {
                self.note_written(now, Extent::new(start, end - start));
            }
        }
        self.written.passing = passing;
    }
}
