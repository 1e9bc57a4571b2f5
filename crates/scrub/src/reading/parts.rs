//! Reads of parts of blocks that cannot be read as a whole.

use super::{PartOfBlock, Reading};
use headtime_engine::{Approach, Arrival, Engine, Finished, Join, Lane, RequestId};
use headtime_sched::{Class, Flags, Op, Origin, Passing};
use headtime_units::{Extent, Nanos, Sectors, Time};

/// Most blocks that are searched at a time. If there are more, all sectors of a further block count as unreadable.
const BAD_MAX: usize = 4096;

/// Wait before the first read of a part at clients' cost. A disk that is never idle would otherwise hide for ever which sectors cannot be
/// read. Parts are read at clients' cost only when all other blocks are done. The pause after each read is at least this time, and at least
/// [`PARTS_REST`] times the time that the read took. A drive may try for seconds to read a sector. With these pauses clients lose at most a
/// hundredth of the drive's time.
const PARTS_WAIT: Nanos = Nanos::from_secs(1);
const PARTS_REST: u64 = 99;

/// Reason to read parts at clients' cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// There is no reason. Parts are read in idle time only.
    None,
    /// Parts have waited long enough.
    Due,
    /// A promise decides how much is read.
    Promised,
    /// Only the last blocks of a copy are left.
    Closing,
}

impl<P: Passing> Reading<P> {
    /// Starts the search for the unreadable sectors of a block by halves. Returns false if too many blocks are searched, or the block is a
    /// single sector.
    pub fn search(&mut self, number: u64, read: u64) -> bool {
        let extent = self.extent_of(number);
        let may = self.bad.len() < BAD_MAX && extent.len > Sectors::new(1);
        if may {
            self.bad.insert(number, 1);
            self.halve(number, PartOfBlock { extent, read });
        }
        may
    }

    /// Continues the search in the halves of a part.
    pub fn halve(&mut self, number: u64, part: PartOfBlock) {
        if let Some(parts) = self.bad.get_mut(&number) {
            *parts += 1;
        }
        let Extent { start, len } = part.extent;
        let half = Sectors::new(len.get() / 2);
        for extent in [
            Extent::new(start + half, len - half),
            Extent::new(start, half),
        ] {
            self.parts.push(PartOfBlock { extent, ..part });
        }
    }

    /// Notes that a part is finished: the part was read, or is a single unreadable sector. Returns true if all parts of the block are.
    pub fn part_is_done(&mut self, number: u64) -> bool {
        let Some(parts) = self.bad.get_mut(&number) else {
            return false;
        };
        *parts -= 1;
        *parts == 0 && self.bad.remove(&number).is_some()
    }

    /// Sets the time of the next read at clients' cost. The read before took the time `took`.
    pub fn part_took(&mut self, now: Time, took: Nanos) {
        self.parts_due = now.saturating_add((took * PARTS_REST).max(PARTS_WAIT));
    }

    /// Tells the promises of the scan how long the search will take: two reads of parts for each halving of a block.
    pub fn tell_search(&mut self) {
        let halved = u64::BITS - self.block.leading_zeros();
        let takes = self.part_takes.saturating_mul(u64::from(2 * halved));
        self.scan.read_besides(self.bad.len() as u64, takes);
    }

    /// Time at which the next part may be read in idle time; `None` if there is no part or the disk is busy.
    pub fn next_part(&self, engine: &Engine, idle: Option<Nanos>) -> Option<Time> {
        let idle = idle.filter(|_| !self.parts.is_empty())?;
        let after = idle.max(self.scan.destages_in());
        Some(self.quiet_since(engine)?.saturating_add(after))
    }

    /// Returns true if only parts of blocks, or only blocks of failed reads, are left to read.
    pub fn has_only_parts(&self) -> bool {
        let parts = !self.parts.is_empty() && self.scan.unread() == 0;
        parts || self.scan.has_only_suspects()
    }

    /// Notes whether parts of blocks have waited long enough to be read at clients' cost.
    pub fn note_parts(&mut self, now: Time) {
        if !self.has_only_parts() {
            self.parts_due = now.saturating_add(PARTS_WAIT);
        }
        self.parts_are_due = !self.is_reading() && self.parts_due <= now;
    }

    /// Time at which the next part is read at clients' cost, if only parts are left and the disk is not idle before.
    pub fn next_part_beside(&self) -> Option<Time> {
        // While a read is under way, parts do not become due. A time in the past would keep the disk's clock from moving.
        let waits = self.has_only_parts() && !self.is_reading();
        waits.then_some(self.parts_due)
    }

    /// Requests the next part. `idle` is the time without requests after which idle time is used.
    pub fn read_part(
        &mut self,
        now: Time,
        (engine, approach): (&Engine, Option<&Approach>),
        (idle, urgency): (Option<Nanos>, Urgency),
    ) -> Option<(Arrival, Lane, Join)> {
        if self.part.is_some() || self.parts.is_empty() {
            return None;
        }
        let is_quiet = self.next_part(engine, idle).is_some_and(|at| at <= now);
        let before = match urgency {
            Urgency::Due if !is_quiet => self.scan.lane_before(engine, approach),
            Urgency::Promised if !is_quiet => self.scan.outright_lane(now, engine, approach),
            _ => None,
        };
        let (join, class) = match before {
            // The last blocks of a copy, and their parts, are read at clients' cost.
            _ if urgency == Urgency::Closing => (Join::Queued, Class::default()),
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
            since: None,
        };
        let lane = before.unwrap_or_else(|| engine.lane_of(arrival.origin, arrival.class));
        if !engine.may_join(&arrival, lane, join) {
            return None;
        }
        let part = self.parts.pop();
        self.part = part.map(|part| (part, join == Join::Alone));
        self.part_id += 1;
        Some((arrival, lane, join))
    }

    /// Notes the end of a read of a part. Returns the part and its block, unless a client has written the block since.
    pub fn part_finished(&mut self, now: Time, done: &Finished) -> Option<(PartOfBlock, u64)> {
        let (part, is_alone) = self.part.take()?;
        self.scan.finished_besides(now, done, is_alone);
        let took = now.saturating_since(done.issued);
        self.part_takes = (self.part_takes * 7 + took) / 8;
        self.part_took(now, took);
        let number = self.number(part.extent.start);
        (self.open.get(&number) == Some(&part.read)).then_some((part, number))
    }
}
