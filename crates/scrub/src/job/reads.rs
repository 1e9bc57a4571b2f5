//! Results of reads.

use super::super::progress::{Finding, ProgressFile};
use super::super::sink::Task;
use super::super::taker::Takes;
use super::Scrub;
use headtime_engine::{Finished, Outcome};
use headtime_sched::Passing;
use headtime_units::{Extent, Lba, Sectors, Time};

impl<P: Passing + Clone + 'static> Scrub<P> {
    /// Handles a finished read of the scan.
    pub(super) fn was_read(&mut self, now: Time, done: &Finished, data: Option<&[u8]>) {
        let has_date = self.plan.promises.date.is_some();
        let (asked, mut blocks) = self.reading.finished(now, done, data, has_date);
        let is_done = done.outcome == Outcome::Done;
        if !is_done && self.is_drawn() && !blocks.is_empty() {
            self.call_off();
            // Blocks that a client has written are wanted again. The result of this read does not count for them.
            blocks.retain(|block| self.reading.is_under_way(*block, done.id));
        }
        let of = (done.request.extent, done.id);
        let is_taken = is_done && self.hand_over(of, data, &blocks);
        for block in blocks.iter().filter(|_| !is_taken) {
            let number = self.reading.number(*block);
            if is_done {
                self.close(number);
            } else if self.reading.scan.is_unreadable(*block) {
                self.look_into(number, done.id);
            } else {
                self.reading.ends(number);
            }
        }
        match (done.outcome, asked.as_slice()) {
            (Outcome::Done, _) => self.reading.rests.succeeded(),
            (Outcome::MediumError, _) => {}
            (Outcome::TimedOut, [block]) => {
                self.reading.failed(now);
                if !blocks.is_empty()
                    && let Some(extent) = self.reading.timed_out(*block, done.id)
                {
                    self.cannot_read(extent);
                    self.parts_are_done(self.reading.number(*block), done.id);
                }
            }
            _ => self.reading.failed(now),
        }
    }

    /// Handles a finished read of a part of a block.
    pub(super) fn part_was_read(&mut self, now: Time, done: &Finished, data: Option<&[u8]>) {
        let Some((part, number)) = self.reading.part_finished(now, done) else {
            return;
        };
        let is_one = part.extent.len == Sectors::new(1);
        let is_finished = match done.outcome {
            Outcome::Done => {
                if let (Some(taker), Some(data), true) = (&self.taker, data, self.plan.is_copy()) {
                    taker.sink.part(part.extent, data);
                }
                true
            }
            Outcome::MediumError | Outcome::TimedOut if is_one => {
                self.cannot_read(part.extent);
                true
            }
            Outcome::MediumError | Outcome::TimedOut => {
                self.reading.halve(number, part);
                false
            }
            _ => {
                self.reading.parts.push(part);
                self.reading.failed(now);
                false
            }
        };
        if is_finished && self.reading.part_is_done(number) {
            self.parts_are_done(number, part.read);
        }
    }
}

impl<P: Passing> Scrub<P> {
    /// Records sectors as unreadable. In a copy they become a hole.
    fn cannot_read(&mut self, extent: Extent) {
        tracing::warn!(disk = self.disk.name(), sectors = %extent, "the scrub cannot read");
        let is_new = self.face.status().unreadable.add(extent);
        self.is_found(is_new, Finding::Unreadable, extent);
        if let Some(taker) = self.taker.as_ref().filter(|_| self.plan.is_copy()) {
            taker.sink.send(Task::Zero(extent));
        }
    }

    /// Removes sectors from the unreadable ones, since a later read or a new search replaces the earlier finding.
    pub(super) fn can_be_read(&mut self, extent: Extent) {
        let is_new = self.face.status().unreadable.remove(extent);
        self.is_found(is_new, Finding::Readable, extent);
    }

    /// Starts the search for the unreadable sectors of a block, in idle time.
    fn look_into(&mut self, number: u64, read: u64) {
        let extent = self.reading.extent_of(number);
        if self.plan.is_copy() {
            // The new findings replace earlier ones.
            self.can_be_read(extent);
        }
        if self.plan.idle().is_none() || !self.reading.search(number, read) {
            self.cannot_read(extent);
            self.parts_are_done(number, read);
        }
    }

    /// Finishes a block whose unreadable sectors are known.
    fn parts_are_done(&mut self, number: u64, read: u64) {
        if self.progress.as_ref().is_some_and(ProgressFile::is_behind) {
            // Otherwise the marks of a copy could list the block as done while no line names its holes. A server that is killed would then
            // lose the holes.
            self.reading.want_again(number);
            return;
        }
        match self.taker.as_mut().filter(|_| self.plan.is_copy()) {
            Some(taker) if taker.takes == Takes::Nothing => self.reading.want_again(number),
            Some(taker) => {
                taker.sinking.insert(number, read);
                taker.sink.send(Task::Close((number, read)));
            }
            None => self.close(number),
        }
    }

    /// Hands the data of a read to the taker. Returns false if there is no taker or there are no data.
    fn hand_over(&mut self, of: (Extent, u64), data: Option<&[u8]>, blocks: &[Lba]) -> bool {
        let (Some(taker), Some(data)) = (&self.taker, data) else {
            return false;
        };
        let has_failed = taker.takes == Takes::Nothing;
        for block in blocks {
            if has_failed {
                // These blocks are read again after `resume`.
                self.reading.want_again(self.reading.number(*block));
            } else if self.plan.is_copy() {
                self.can_be_read(self.reading.scan.wanted().block_at(*block));
            }
        }
        if let Some(taker) = self.taker.as_mut().filter(|_| !has_failed) {
            let numbers = blocks.iter().map(|block| self.reading.number(*block));
            let blocks = numbers.map(|number| (number, self.reading.extent_of(number)));
            taker.was_read(of, data, blocks);
        }
        true
    }

    /// Handles a write that is about to start.
    pub(super) fn will_be_written(&mut self, now: Time, extent: Extent) {
        for watch in &self.watches {
            watch.forget(extent);
        }
        let (Some(taker), Some(extent)) = (&mut self.taker, self.plan.in_range(extent)) else {
            return;
        };
        let open = self.reading.open_in(extent);
        let voids = taker.will_be_written();
        if !voids {
            self.reading.rewritten.extend(&open);
        }
        let Some(moment) = &mut taker.moment else {
            return;
        };
        let again = self.reading.want(extent);
        if !voids {
            return;
        }
        moment.again += again;
        self.reading.scan.beside_writes(again);
        for number in open {
            self.forget_read(number);
        }
        if again > 0 {
            self.publish(now);
        }
    }

    /// Voids reads and data of a block that are under way.
    pub(super) fn forget_read(&mut self, number: u64) {
        self.reading.forget_read(number);
        if let Some(taker) = &mut self.taker {
            taker.sinking.remove(&number);
        }
    }
}
