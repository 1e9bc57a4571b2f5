//! The line at which a copy is the disk.
//!
//! A write wants its block again, and whatever is under way of the block counts no longer. So as soon as no block is wanted any more, each block is in
//! the image as it is on the disk, or a read of it is under way that is older than all writes to come: the engine has these wait for it. That is
//! the line. What is written from then on is no longer of this image. It is wanted all the same, and its marks are gone from their file: a read that
//! fails, or a server that is killed before all is durable, draws another line later.
//!
//! Beside clients who write all the time there is always something left. So the last reads are asked for at once, as any client's would be, and the
//! line is there when they are asked for, not when the last of them is done.

use super::Scrub;
use headtime_gaps::Demand;
use headtime_sched::{Class, Passing};
use headtime_units::{Extent, Sectors, Time};

/// So many blocks at most are asked for at once at the end: who asks for something then waits for no more of these reads than for as many other
/// clients, once.
const LAST_BLOCKS: u64 = 64;

/// So many bytes of them at most, which have to be in memory.
const LAST_BYTES: u64 = 16 << 20;

impl<P: Passing> Scrub<P> {
    /// Returns true if what is left of a copy is so little that it is read outright.
    pub(super) fn is_closing(&self) -> bool {
        let block = self.plan.block.bytes(self.plan.identity.sector_bytes);
        let most = LAST_BLOCKS.min(LAST_BYTES / block).max(1);
        self.plan.is_copy() && !self.has_line && self.scan.wanted().left() <= most
    }

    /// Asks for the last blocks at once, if it is time for that. While parts of blocks are still to be read there is no line to be had by it.
    pub(super) fn close_in(&mut self) {
        let closes = self.is_closing() && self.bad.is_empty();
        if closes == self.closes_in {
            return;
        }
        self.closes_in = closes;
        let demand = Demand {
            class: Class::default(),
            outstanding: LAST_BLOCKS as u32,
            piece: Sectors::new(1),
        };
        self.scan.set_demand(closes.then_some(demand));
    }

    /// Returns true if there is something left that would be asked for at once.
    pub(super) fn can_close_in(&self) -> bool {
        if !self.is_closing() || self.scan.in_flight() > 0 || self.part.is_some() {
            return false;
        }
        match self.bad.is_empty() {
            true => self.scan.wanted().left() > 0,
            false => !self.parts.is_empty(),
        }
    }

    /// Draws the line, if nothing is wanted any more.
    pub(super) fn look_for_line(&mut self, now: Time) {
        let is_there = self.plan.is_copy() && self.scan.wanted().left() == 0 && self.bad.is_empty();
        if self.has_line || !is_there || self.over || self.held.is_some() || self.is_stopped() {
            return;
        }
        self.has_line = true;
        self.scan.set_demand(None);
        self.closes_in = false;
        let disk = self.disk.name();
        tracing::info!(disk, "the copy is to be the disk as it is now");
        self.publish(now);
    }

    /// What was to be the image is not: what was written since the line is in it no more than what could not be read.
    pub(super) fn call_off(&mut self) {
        self.has_line = false;
        self.rewritten.clear();
        // Reads of blocks that are wanted again say nothing of them any more.
        let wanted = self.scan.wanted();
        let stale: Vec<u64> = (self.open.keys())
            .copied()
            .filter(|number| wanted.has(*number))
            .collect();
        for number in stale {
            self.forget_read(number);
        }
    }

    /// Returns true if nothing more is to be read or written, for what is to be at the end.
    pub(super) fn is_all_done(&self) -> bool {
        match self.plan.is_copy() {
            true => self.has_line && self.open.is_empty(),
            false => self.left() == 0,
        }
    }

    /// Sectors of a disk that is copied are about to be written to. Those outside of what is copied are nobody's business here.
    pub(super) fn want_written(&mut self, now: Time, extent: Extent) {
        let (block, range) = (self.plan.block.get(), self.plan.range);
        let start = extent.start.get().max(range.start.get());
        let end = extent.end().get().min(range.end().get());
        if start >= end {
            return;
        }
        let (first, last) = (start / block, (end - 1) / block);
        let end = ((last + 1) * block).min(self.plan.identity.capacity.get());
        let again = self
            .scan
            .want(Extent::at(first * block, end - first * block));
        if self.has_line {
            // What is being read and copied is from before the write, and is of the image.
            let open = self.open.range(first..=last);
            self.rewritten.extend(open.map(|(number, _)| *number));
            return;
        }
        self.again += again;
        self.scan.beside_writes(again);
        let open = self.open.range(first..=last);
        let open: Vec<u64> = open.map(|(number, _)| *number).collect();
        for number in open {
            self.forget_read(number);
        }
        if again > 0 {
            self.publish(now);
        }
    }

    /// What is under way of a block counts no longer.
    fn forget_read(&mut self, number: u64) {
        self.open.remove(&number);
        self.sinking.remove(&number);
        self.timeouts.remove(&number);
        self.forget_parts(number);
    }
}
