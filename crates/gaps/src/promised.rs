//! What a scan does for what was promised of it.

use super::promise::{Blocks, Outlook, Promise, Promised, QueueLength};
use super::{ClientWaits, DEPTH, DriveQueue, Freeblock, Idle, Verdict, arrival};
use headtime_engine::{Approach, Arrival, Engine, Finished, Join, Lane};
use headtime_sched::{Class, Flags, Passing};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};

/// Of so many places of a disk it is asked how long their tracks are.
const SAMPLES: u64 = 64;
/// A track and the skew to the next one, in turns.
const SKEWED: f64 = 1.1;

impl<P: Passing> Freeblock<P> {
    /// As [`Freeblock::keep_promise`], from the beginning.
    ///
    /// # Panics
    ///
    /// As that does.
    pub fn with_promise(mut self, promised: Promised, piece: Sectors) -> Freeblock<P> {
        self.keep_promise(promised, piece);
        self
    }

    /// From now on it reads in idle time and at the cost of others as far as promises need and allow, in pieces of at most so many sectors,
    /// rounded up to a block. Idle time is used as they say and no longer as [`FreeblockOptions::idle`](super::FreeblockOptions::idle) does.
    /// What it has seen of clients for other promises counts on.
    ///
    /// # Panics
    ///
    /// If it writes: what that costs clients is not known.
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
        // A model with one track says nothing of a drive.
        let drive = (self.wanted.tracks() > 1).then(|| {
            let tracks = self.mean_track() / block as f64 / SKEWED;
            (self.turn, tracks / self.turn.as_secs_f64())
        });
        self.promise = Some(Box::new(Promise::new(promised, drive)));
    }

    /// How many sectors a track has, in the mean over the disk. The drive that is believed may be larger.
    fn mean_track(&self) -> f64 {
        let capacity = self.wanted.end().get();
        let sum: u64 = (0..SAMPLES)
            .map(|sample| {
                let at = (u128::from(capacity) * u128::from(2 * sample + 1)
                    / u128::from(2 * SAMPLES)) as u64;
                let place = self.model.start(Extent::at(at, 1));
                self.model.addresses(self.model.track(place)).len.get()
            })
            .sum();
        (sum as f64 / SAMPLES as f64).max(1.0)
    }

    /// Nothing is promised any more, and idle time is used as is said here.
    pub fn forget_promise(&mut self, idle: Option<Idle>) {
        self.promise = None;
        self.options.idle = idle;
    }

    /// What clients wait for beside it, and when what was said of its promises changed; `None` if nothing was promised.
    pub fn promise(&self) -> Option<(ClientWaits, &[(Time, Verdict)])> {
        let promise = self.promise.as_ref()?;
        Some((promise.waits(), promise.changes()))
    }

    /// What there is to be told of its promises; `None` if nothing was promised.
    pub fn outlook(&self) -> Option<Outlook> {
        Some(self.promise.as_ref()?.outlook())
    }

    /// Returns true if the drive is to keep few commands.
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

    /// Notes how many commands the drive gets, if that is not for this scan.
    pub(super) fn note_depth(&mut self, engine: &Engine) {
        if !self.is_narrow() {
            self.is_deep = engine.depth() > DEPTH;
        }
    }

    /// How idle time is used now, if it is.
    pub(super) fn idle(&self) -> Option<Idle> {
        match &self.promise {
            None => self.options.idle,
            Some(promise) => self.options.idle.filter(|_| promise.uses_idle()),
        }
    }

    /// Blocks that are wanted or on their way.
    pub fn unread(&self) -> u64 {
        let asked: usize = self.in_flight.iter().map(|asked| asked.blocks.len()).sum();
        self.wanted.left() + asked as u64
    }

    /// Somebody else says when it is over ([`Freeblock::end_promise`]), such as when what was read is safe.
    pub fn with_end_told(mut self) -> Freeblock<P> {
        self.end_is_told = true;
        self
    }

    /// Whoever has this scan still has to read so many blocks besides, each of which takes so long: they are a part of what is promised.
    pub fn read_besides(&mut self, blocks: u64, each: Nanos) {
        self.besides = (blocks, each);
    }

    /// A read of those is over. `idle` says whether it was made while nobody waited.
    pub fn finished_besides(&mut self, now: Time, done: &Finished, idle: bool) {
        self.kept.passed(now, done);
        if let Some(promise) = &mut self.promise {
            promise.has_read(now, done, idle, 0);
        }
    }

    /// Where something may be read before a request that is staged, though it waits for that: a lane, if promises need and allow it now.
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

    /// The same, whatever is promised.
    pub fn lane_before(&self, engine: &Engine, approach: Option<&Approach>) -> Option<Lane> {
        // Nobody may follow the head.
        let lane = approach.map(|approach| approach.lane);
        let lane = lane.or_else(|| engine.unoffered())?;
        engine.joinable(lane).map(|_| lane)
    }

    /// Clients have written to blocks that had been read, of which so many are wanted again.
    pub fn beside_writes(&mut self, blocks: u64) {
        if let Some(promise) = &mut self.promise {
            promise.beside_writes(blocks);
        }
    }

    /// True if reads remain that are not under way. Otherwise there is nothing to forecast, and the date alone is watched.
    fn has_more(&self) -> bool {
        self.wanted.left() > 0 || self.besides.0 > 0
    }

    /// When it has to see to its promises, also if nothing happens: a disk that nobody uses is looked at, too.
    pub fn next_look(&self) -> Option<Time> {
        let promise = self.promise.as_ref()?;
        match self.has_more() {
            true => Some(promise.next_look()),
            false => promise.due(),
        }
    }

    /// Says that its date has passed, if it has and that was not said. Returns true if it was said now.
    pub fn overdue(&mut self, now: Time) -> bool {
        let promise = self.promise.as_mut();
        promise.is_some_and(|promise| promise.overdue(now))
    }

    /// When its date passes, if that is still to come.
    pub fn due(&self) -> Option<Time> {
        self.promise.as_ref()?.due()
    }

    /// Sees to its promises. Returns true if it was time for that. A scan that `rests` is not asked for anything else at present, while the time goes on.
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
            self.kept.begin_narrow(now);
        }
        true
    }

    /// All has been read that is to be: what became of its promises is known.
    pub fn end_promise(&mut self, now: Time) {
        if let Some(promise) = &mut self.promise {
            promise.end(now);
        }
    }

    /// Reads the next piece of units of consecutive wanted blocks before the request that is staged in a lane.
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

    /// True if all blocks that are not read were in reads that failed. Without a date nothing but idle time may ever come for such blocks.
    pub fn has_only_suspects(&self) -> bool {
        let (left, block) = (self.wanted.left(), self.wanted.block());
        // Clients may have read some of the suspects.
        let is_wanted = |lba: &&Lba| self.wanted.has(lba.get() / block);
        (1..=self.suspects.len() as u64).contains(&left)
            && self.suspects.iter().filter(is_wanted).count() as u64 == left
    }

    /// Reads the next block before the request that is staged, whatever is promised.
    pub fn block_before(
        &mut self,
        engine: &Engine,
        approach: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        let lane = self.lane_before(engine, approach)?;
        self.before(engine, lane, self.options.block)
    }

    /// Reads up to this number of sectors before the request that is staged in a lane.
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
