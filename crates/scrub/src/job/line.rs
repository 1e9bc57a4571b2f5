//! The *line* of a copy: the moment whose disk contents the finished image has.
//!
//! A write to a block makes the block wanted again, and voids a read of the block that is under way. The line is drawn as soon as no block
//! is wanted. At this moment the image has each block as the disk has it, or a read of the block is under way. The engine makes all later
//! writes wait for these reads. Later writes are therefore not in the image. A block that is written after the line still becomes wanted,
//! and its mark is cleared in the file. If a read fails or the server is killed before all is durable, a new line is drawn later.
//!
//! Clients that write all the time would leave some block wanted at any time. The last blocks are therefore requested all at once, at
//! foreground priority. The line is drawn as soon as these reads are requested. The reads may end later.

use super::Scrub;
use headtime_gaps::Demand;
use headtime_sched::{Class, Passing};
use headtime_units::{Extent, Sectors, Time};

/// Most blocks that are requested at once at the end. A client's request then waits, once, for no more reads than this number of other
/// clients would cause.
const LAST_BLOCKS: u64 = 64;

/// Most bytes of these blocks, since all the data have to be in memory.
const LAST_BYTES: u64 = 16 << 20;

impl<P: Passing> Scrub<P> {
    /// Returns true if so few blocks of a copy are left that they are read at foreground priority.
    pub(super) fn is_closing(&self) -> bool {
        let block = self.plan.block.bytes(self.plan.identity.sector_bytes);
        let most = LAST_BLOCKS.min(LAST_BYTES / block).max(1);
        self.plan.is_copy() && !self.has_line && self.scan.wanted().left() <= most
    }

    /// Starts or ends the reads of the last blocks at foreground priority. While parts of blocks are still to be read, such reads would not
    /// make the line possible.
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

    /// Returns true if blocks or parts are left that would be read at foreground priority.
    pub(super) fn can_close_in(&self) -> bool {
        if !self.is_closing() || self.scan.in_flight() > 0 || self.part.is_some() {
            return false;
        }
        match self.bad.is_empty() {
            true => self.scan.wanted().left() > 0,
            false => !self.parts.is_empty(),
        }
    }

    /// Draws the line, if no block is wanted.
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

    /// Takes the line back after a failure. Blocks that were written since the line, or could not be read, have to be copied again.
    pub(super) fn call_off(&mut self) {
        self.has_line = false;
        self.rewritten.clear();
        // Results of reads do not count for blocks that are wanted again.
        let wanted = self.scan.wanted();
        let stale: Vec<u64> = (self.open.keys())
            .copied()
            .filter(|number| wanted.has(*number))
            .collect();
        for number in stale {
            self.forget_read(number);
        }
    }

    /// Returns true if all blocks are done: for a copy, if the line is drawn and all reads from before the line are done.
    pub(super) fn is_all_done(&self) -> bool {
        match self.plan.is_copy() {
            true => self.has_line && self.open.is_empty(),
            false => self.left() == 0,
        }
    }

    /// Handles a write to a disk that is being copied, before the write starts. Sectors outside the copied part are ignored.
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
            // Data that are being read or copied are from before the write, and belong to the image.
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

    /// Voids reads and data of a block that are under way.
    fn forget_read(&mut self, number: u64) {
        self.open.remove(&number);
        self.sinking.remove(&number);
        self.timeouts.remove(&number);
        self.forget_parts(number);
    }
}
