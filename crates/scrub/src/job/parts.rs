//! Search for the unreadable sectors of blocks that cannot be read as a whole.

use super::super::progress::{Finding, ProgressFile};
use super::{PartOfBlock, Scrub, TIMEOUTS};
use headtime_engine::{Approach, Arrival, Engine, Finished, Join, Lane, Outcome, RequestId};
use headtime_sched::{Class, Flags, Op, Origin, Passing};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};

/// Most blocks that are searched at a time. If there are more, all sectors of a further block count as unreadable.
const BAD_MAX: usize = 4096;

/// Wait before the first read of a part at clients' cost. A disk that is never idle would otherwise hide for ever which sectors cannot be
/// read. Parts are read at clients' cost only when all other blocks are done. The pause after each read is at least this time, and at least
/// [`PARTS_REST`] times the time that the read took. A drive may try for seconds to read a sector. With these pauses clients lose at most a
/// hundredth of the drive's time.
const PARTS_WAIT: Nanos = Nanos::from_secs(1);
const PARTS_REST: u64 = 99;

impl<P: Passing> Scrub<P> {
    /// Records sectors as unreadable. In a copy they become a hole.
    fn cannot_read(&mut self, extent: Extent) {
        tracing::warn!(disk = self.disk.name(), sectors = %extent, "the scrub cannot read");
        let is_new = self.face.status().unreadable.add(extent);
        self.is_found(is_new, Finding::Unreadable, extent);
        if self.plan.is_copy()
            && let Some(sink) = &self.sink
        {
            sink.zero(extent);
        }
    }

    /// Removes sectors from the unreadable ones, since a later read or a new search replaces the earlier finding.
    pub(super) fn can_be_read(&mut self, extent: Extent) {
        let is_new = self.face.status().unreadable.remove(extent);
        self.is_found(is_new, Finding::Readable, extent);
    }

    /// Starts the search for the unreadable sectors of a block by halves, in idle time.
    pub(super) fn look_into(&mut self, block: Lba, read: u64) {
        let extent = self.scan.wanted().block_at(block);
        let number = self.number(block);
        if self.plan.is_copy() {
            // The new findings replace earlier ones.
            self.can_be_read(extent);
        }
        let is_named = self.plan.idle().is_none() || self.bad.len() >= BAD_MAX;
        if is_named || extent.len == Sectors::new(1) {
            self.cannot_read(extent);
            self.parts_are_done(number, read);
            return;
        }
        self.bad.insert(number, 2);
        let parts = halves(extent).map(|extent| PartOfBlock { extent, read });
        self.parts.extend(parts);
    }

    /// Notes that a part of a block is finished: the part was read, or is a single unreadable sector.
    fn part_done(&mut self, part: PartOfBlock) {
        let block = self.number(part.extent.start);
        if let Some(parts) = self.bad.get_mut(&block) {
            *parts -= 1;
            if *parts == 0 {
                self.bad.remove(&block);
                self.parts_are_done(block, part.read);
            }
        }
    }

    /// Finishes a block whose unreadable sectors are known.
    fn parts_are_done(&mut self, number: u64, read: u64) {
        if self.progress.as_ref().is_some_and(ProgressFile::is_behind) {
            // Otherwise the marks of a copy could list the block as done while no line names its holes. A server that is killed would then
            // lose the holes.
            self.want_again(number);
            return;
        }
        match &self.sink {
            Some(_) if self.plan.is_copy() && self.sink_has_failed => self.want_again(number),
            Some(sink) if self.plan.is_copy() => {
                self.sinking.insert(number, read);
                sink.close(number, read);
            }
            _ => self.close(number),
        }
    }

    /// Drops the parts of a block that is wanted again.
    pub(super) fn forget_parts(&mut self, number: u64) {
        if self.bad.remove(&number).is_some() {
            let extent = self.extent_of(number);
            self.parts
                .retain(|part| !extent.contains(part.extent.start));
        }
    }

    /// Time since which the disk has been idle; `None` if it is busy.
    fn quiet_since(&self, engine: &Engine) -> Option<Time> {
        let busy = !self.reads_nothing() || engine.in_flight() > 0;
        (!busy && engine.is_quiet()).then_some(self.quiet_from)
    }

    /// Time at which the next part may be read in idle time; `None` if there is no part or the disk is busy.
    pub(super) fn next_part(&self, engine: &Engine) -> Option<Time> {
        let idle = self.plan.idle().filter(|_| !self.parts.is_empty())?;
        let after = idle.max(self.scan.destages_in());
        Some(self.quiet_since(engine)?.saturating_add(after))
    }

    /// Returns true if only parts of blocks, or only blocks of failed reads, are left to read.
    pub(super) fn has_only_parts(&self) -> bool {
        let parts = !self.parts.is_empty() && self.scan.unread() == 0;
        parts || self.scan.has_only_suspects()
    }

    /// Notes whether parts of blocks have waited long enough to be read at clients' cost.
    pub(super) fn note_parts(&mut self, now: Time) {
        if !self.has_only_parts() {
            self.parts_due = now.saturating_add(PARTS_WAIT);
        }
        self.parts_are_due = self.reads_nothing() && self.parts_due <= now;
    }

    /// Returns true if no read of the scrub is under way.
    fn reads_nothing(&self) -> bool {
        self.part.is_none() && self.scan.in_flight() == 0
    }

    /// Time at which the next part is read at clients' cost, if the disk is not idle before.
    pub(super) fn next_part_beside(&self) -> Option<Time> {
        // While a read is under way, parts do not become due. A time in the past would keep the disk's clock from moving.
        let waits = self.has_only_parts() && self.reads_nothing() && !self.hurries();
        (waits && !self.plan.is_copy()).then_some(self.parts_due)
    }

    pub(super) fn read_part(
        &mut self,
        now: Time,
        engine: &Engine,
        approach: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        if self.part.is_some() || self.parts.is_empty() {
            return None;
        }
        let is_quiet = self.next_part(engine).is_some_and(|at| at <= now);
        let before = match self.hurries() && !is_quiet {
            true if !self.plan.promises.any() => self.scan.lane_before(engine, approach),
            true => self.scan.outright_lane(now, engine, approach),
            false => None,
        };
        let (join, class) = match before {
            // The last blocks of a copy, and their parts, are read at clients' cost.
            _ if self.is_closing() => (Join::Queued, Class::default()),
            _ if is_quiet => (Join::Alone, Class::IDLE),
            Some(_) => (Join::Outright, Class::IDLE),
            None => return None,
        };
        let arrival = Arrival {
            id: RequestId::Background(self.part_id),
            op: Op::Read,
            extent: self.parts.last()?.extent,
            flags: Flags::NONE,
            origin: Origin::default(),
            class,
        };
        let lane = before.unwrap_or_else(|| engine.lane_of(arrival.origin, arrival.class));
        if !engine.may_join(&arrival, lane, join) {
            return None;
        }
        self.part = self.parts.pop();
        self.part_alone = join == Join::Alone;
        self.part_id += 1;
        Some((arrival, lane, join))
    }

    /// Sets the time of the next read at clients' cost. The read before took the time `took`.
    pub(super) fn part_took(&mut self, now: Time, took: Nanos) {
        self.parts_due = now.saturating_add((took * PARTS_REST).max(PARTS_WAIT));
    }

    pub(super) fn part_finished(&mut self, now: Time, done: &Finished, data: Option<&[u8]>) {
        let Some(part) = self.part.take() else { return };
        self.scan.finished_besides(now, done, self.part_alone);
        let took = now.saturating_since(done.issued);
        self.part_takes = (self.part_takes * 7 + took) / 8;
        self.part_took(now, took);
        let outcome = done.outcome;
        let block = self.number(part.extent.start);
        if self.open.get(&block) != Some(&part.read) {
            // A client has written the block since, and the block is wanted again.
            return;
        }
        let is_one = part.extent.len == Sectors::new(1);
        match outcome {
            Outcome::Done => {
                if let (Some(sink), Some(data), true) = (&self.sink, data, self.plan.is_copy()) {
                    sink.part(part.extent, data);
                }
                self.part_done(part);
            }
            Outcome::MediumError | Outcome::TimedOut if is_one => {
                self.cannot_read(part.extent);
                self.part_done(part);
            }
            Outcome::MediumError | Outcome::TimedOut => {
                if let Some(parts) = self.bad.get_mut(&block) {
                    *parts += 1;
                }
                let parts = halves(part.extent);
                let read = part.read;
                self.parts
                    .extend(parts.map(|extent| PartOfBlock { extent, read }));
            }
            _ => {
                self.parts.push(part);
                self.failed(now);
            }
        }
    }

    /// Counts a timeout of a read of one block alone. A block with [`TIMEOUTS`] timeouts counts as unreadable.
    pub(super) fn timed_out(&mut self, block: Lba, read: u64) {
        let number = self.number(block);
        let times = self.timeouts.entry(number).or_default();
        *times += 1;
        if *times >= TIMEOUTS {
            let extent = self.scan.wanted().block_at(block);
            self.scan.skip(extent);
            self.open.insert(number, read);
            self.cannot_read(extent);
            self.parts_are_done(number, read);
        }
    }
}

fn halves(extent: Extent) -> [Extent; 2] {
    let half = extent.len.get() / 2;
    [
        Extent::at(extent.start.get() + half, extent.len.get() - half),
        Extent::at(extent.start.get(), half),
    ]
}
