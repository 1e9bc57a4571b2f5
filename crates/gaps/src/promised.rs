//! Promises of a scan: reads for promises, and checks of promises.

use super::promise::{Blocks, Outlook, Promise, Promised, QueueLength};
use super::{ClientWaits, DEPTH, DriveQueue, Freeblock, Idle, Verdict, arrival};
use headtime_engine::{Approach, Arrival, Engine, Finished, Join, Lane};
use headtime_sched::{Class, Flags, Passing};
use headtime_units::{Extent, Nanos, Sectors, Time};

/// Number of places of a disk at which track lengths are sampled.
const TRACK_SAMPLES: u64 = 64;
/// Turns for a track and the skew to the next track.
const TURNS_PER_TRACK: f64 = 1.1;

impl<P: Passing> Freeblock<P> {
    /// As [`Freeblock::keep_promise`], for a new scan.
    ///
    /// # Panics
    ///
    /// As [`Freeblock::keep_promise`].
    pub fn with_promise(mut self, promised: Promised, piece: Sectors) -> Freeblock<P> {
        self.keep_promise(promised, piece);
        self
    }

    /// Makes the scan keep promises from now on. The scan reads in idle time and at clients' cost as far as the promises need and allow. A
    /// read has at most `piece` sectors in whole blocks, and at least one block. Idle time is used after [`Promised::patience`], no longer
    /// as [`FreeblockOptions::idle`](super::FreeblockOptions::idle) says. Measurements of clients for earlier promises stay valid.
    ///
    /// # Panics
    ///
    /// If the job writes, since the cost of writes for clients is unknown.
    pub fn keep_promise(&mut self, promised: Promised, piece: Sectors) {
        assert!(!self.writes(), "promises are of scans that read");
        let block = self.wanted.block();
        let blocks = (piece.get() / block).max(1);
        self.options.idle = Some(Idle {
            after: promised.patience,
            piece: Sectors::new(blocks * block),
        });
        if let Some(promise) = &mut self.promise {
            return promise.change(promised);
        }
        // A model with one track shows no speed of the drive.
        let drive = (self.wanted.tracks() > 1).then(|| {
            let tracks = self.mean_track() / block as f64 / TURNS_PER_TRACK;
            (self.turn, tracks / self.turn.as_secs_f64())
        });
        self.promise = Some(Box::new(Promise::new(promised, drive)));
    }

    /// Returns the mean number of sectors of a track over the disk's capacity. The assumed profile may be of a larger drive.
    fn mean_track(&self) -> f64 {
        let capacity = self.wanted.end().get();
        let sum: u64 = (0..TRACK_SAMPLES)
            .map(|sample| {
                let at = (u128::from(capacity) * u128::from(2 * sample + 1)
                    / u128::from(2 * TRACK_SAMPLES)) as u64;
                let place = self.model.start(Extent::at(at, 1));
                self.model.addresses(self.model.track(place)).len.get()
            })
            .sum();
        (sum as f64 / TRACK_SAMPLES as f64).max(1.0)
    }

    /// Drops all promises. Idle time is then used as `idle` says.
    pub fn forget_promise(&mut self, idle: Option<Idle>) {
        self.promise = None;
        self.options.idle = idle;
    }

    /// Returns the waits of clients beside the scan, and the changes of the verdict with their times; `None` without promises.
    pub fn promise(&self) -> Option<(ClientWaits, &[(Time, Verdict)])> {
        let promise = self.promise.as_ref()?;
        Some((promise.waits(), promise.changes()))
    }

    /// Returns the outlook for the promises; `None` without promises.
    pub fn outlook(&self) -> Option<Outlook> {
        Some(self.promise.as_ref()?.outlook())
    }

    /// Returns true if the drive is to get two commands at most.
    pub(super) fn is_narrow(&self) -> bool {
        match self.options.queue {
            DriveQueue::Kept => false,
            DriveQueue::Promised => self
                .promise
                .as_ref()
                .is_some_and(|promise| promise.is_narrow()),
            DriveQueue::Short => true,
        }
    }

    /// Notes whether the drive's queue is too deep for gap reads, unless this scan limits the queue.
    pub(super) fn note_depth(&mut self, engine: &Engine) {
        if !self.is_narrow() {
            self.is_deep = engine.depth() > DEPTH;
        }
    }

    /// Returns the present use of idle time; `None` if idle time is not used.
    pub(super) fn idle(&self) -> Option<Idle> {
        match &self.promise {
            None => self.options.idle,
            Some(promise) => self.options.idle.filter(|_| promise.uses_idle()),
        }
    }

    /// Returns the number of blocks that are wanted or under way.
    pub fn unread(&self) -> u64 {
        let asked: usize = self.in_flight.iter().map(|asked| asked.blocks.len()).sum();
        self.wanted.left() + asked as u64
    }

    /// Makes the owner report the end of the scan ([`Freeblock::end_promise`]), such as when the read blocks are safe.
    pub fn with_end_told(mut self) -> Freeblock<P> {
        self.end_is_told = true;
        self
    }

    /// Sets the number of reads that the owner still has to make besides, and the time that each takes. These reads are a part of the
    /// promised work.
    pub fn read_besides(&mut self, blocks: u64, each: Nanos) {
        self.besides = (blocks, each);
    }

    /// Notes the end of a read that the owner made besides. `idle` is true if the read was made in idle time.
    pub fn finished_besides(&mut self, now: Time, done: &Finished, idle: bool) {
        self.accounts.passed(now, done);
        if let Some(promise) = &mut self.promise {
            promise.has_read(now, done, idle, 0);
        }
    }

    /// Returns the lane in which a read may now go before the staged request at clients' cost, if the promises need and allow such a read.
    pub fn outright_lane(
        &self,
        now: Time,
        engine: &Engine,
        approach: Option<&Approach>,
    ) -> Option<Lane> {
        self.promise
            .as_ref()
            .filter(|promise| promise.sectors_due(now) > Sectors::ZERO)?;
        self.lane_before(engine, approach)
    }

    /// Returns the lane in which a read of the scan may go directly before the staged request. The promises may need the read or not. `None`
    /// if no lane accepts such a read.
    pub fn lane_before(&self, engine: &Engine, approach: Option<&Approach>) -> Option<Lane> {
        // Without a tracker there is no approach.
        let lane = approach.map(|approach| approach.lane);
        let lane = lane.or_else(|| engine.unoffered())?;
        engine.joinable(lane).map(|_| lane)
    }

    /// Notes that clients have written to blocks that had been read. `blocks` of these blocks are wanted again.
    pub fn beside_writes(&mut self, blocks: u64) {
        if let Some(promise) = &mut self.promise {
            promise.beside_writes(blocks);
        }
    }

    /// Returns true if reads remain that are not under way. Otherwise there is nothing to forecast, and the date alone is watched.
    fn has_more(&self) -> bool {
        self.wanted.left() > 0 || self.besides.0 > 0
    }

    /// Returns the time of the next check of the promises. The check is due even if nothing happens, also on an unused disk.
    pub fn next_look(&self) -> Option<Time> {
        let promise = self.promise.as_ref()?;
        match self.has_more() {
            true => Some(promise.next_look()),
            false => promise.due(),
        }
    }

    /// Notes that the date has passed, if this is news. Returns true if it is news.
    pub fn overdue(&mut self, now: Time) -> bool {
        let promise = self.promise.as_mut();
        promise.is_some_and(|promise| promise.overdue(now))
    }

    /// Returns the time just after the promised date; `None` if the result is known or no date is promised.
    pub fn due(&self) -> Option<Time> {
        self.promise.as_ref()?.due()
    }

    /// Checks the promises if a check is due. Returns true if a check was due. `rests` is true while the owner suspends the scan: the time
    /// goes on, but nothing is measured.
    pub fn look(&mut self, now: Time, rests: bool) -> bool {
        let (blocks, each) = self.besides;
        if !self.has_more() {
            return self.overdue(now);
        }
        let left = self.unread() + blocks;
        let Some(promise) = &mut self.promise else {
            return false;
        };
        if now < promise.next_look() {
            return false;
        }
        let queue = match (self.is_deep, self.options.queue) {
            (false, _) => QueueLength::Short,
            (true, DriveQueue::Promised) => QueueLength::DeepOrNot,
            (true, _) => QueueLength::Deep,
        };
        let (idle, taken) = (self.stats.blocks_alone, self.stats.blocks_demanded);
        let read = Blocks {
            gaps: (self.stats.blocks + self.stats.read_by_others).saturating_sub(idle + taken),
            idle,
            left,
            each: (self.wanted.left() == 0).then_some(each),
        };
        let was_narrow = promise.is_narrow();
        promise.look(now, rests, queue, read);
        if promise.is_narrow() && !was_narrow {
            self.accounts.begin_narrow(now);
        }
        true
    }

    /// Notes that all blocks have been read, so the result of the promises is known.
    pub fn end_promise(&mut self, now: Time) {
        if let Some(promise) = &mut self.promise {
            promise.end(now);
        }
    }

    /// Returns a read at clients' cost before the request that is staged in a lane: the next piece of the units that are due.
    pub(super) fn outright(
        &mut self,
        now: Time,
        engine: &Engine,
        lane: Lane,
    ) -> Option<(Arrival, Lane, Join)> {
        let promise = self.promise.as_ref()?;
        let under_way = self.in_flight.iter().any(|asked| asked.outright);
        let (id, request) = engine.joinable(lane)?;
        let whose = (id, request.arrival);
        let left = match (self.unit, under_way) {
            (Some((of, left)), true) if of == whose => left,
            (_, true) => 0,
            (_, false) => promise.sectors_due(now).get(),
        };
        if left == 0 {
            return None;
        }
        let asked = self.before(engine, lane, Sectors::new(left))?;
        self.unit = Some((whose, left.saturating_sub(asked.0.extent.len.get())));
        Some(asked)
    }

    /// Returns true if all unread blocks were in reads that failed. Without a date such blocks are read in idle time only, which may never
    /// come.
    pub fn has_only_suspects(&self) -> bool {
        !self.suspects.is_empty() && self.unread() == self.suspects.len() as u64
    }

    /// Returns a read of the next block before the staged request, without regard to promises.
    pub fn block_before(
        &mut self,
        engine: &Engine,
        approach: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        let lane = self.lane_before(engine, approach)?;
        self.before(engine, lane, self.options.block)
    }

    /// Returns a read of up to `most` sectors before the request that is staged in a lane.
    fn before(
        &mut self,
        engine: &Engine,
        lane: Lane,
        most: Sectors,
    ) -> Option<(Arrival, Lane, Join)> {
        let (id, request) = engine.joinable(lane)?;
        let piece = self.options.idle?.piece.min(most);
        let next = self.piece(Join::Outright, piece)?;
        let asked = arrival(self.next, self.op, next.extent, Flags::NONE, Class::IDLE);
        if !engine.may_join(&asked, lane, next.join) {
            return None;
        }
        self.next_alone = next.extent.end();
        self.target = Some((id, request.arrival, u32::MAX, false));
        let asked = self.ask(next, Flags::NONE, Class::IDLE, true);
        Some((asked, lane, next.join))
    }
}
