//! What a scan does for what was promised of it.

use super::promise::{Outlook, Promise, Promised, QueueLength, Sweeping};
use super::{ClientWaits, DEPTH, DriveQueue, Freeblock, Idle, Verdict, arrival};
use headtime_engine::{Approach, Arrival, Engine, Finished, Join, Lane};
use headtime_sched::{Class, Flags, Passing};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};

/// Of so many places of a disk it is asked how long their tracks are.
const SAMPLES: u64 = 64;
/// So many pieces behind each of so many places ahead of a sweep say how much it reads. Gaps leave some parts of a disk with less than others.
const LOOKS_AHEAD: usize = 4;
const PLACES: u64 = 16;

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
        let drive = (self.wanted.tracks() > 1).then(|| (self.turn, self.mean_track()));
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
            promise.swept_besides(now, done, idle);
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
            .filter(|promise| promise.is_due(now))?;
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
        let (Some(promise), Some(Idle { piece, .. })) = (&mut self.promise, self.options.idle)
        else {
            return false;
        };
        if now < promise.next_look() {
            return false;
        }
        let last = self.wanted.last();
        let wanted = &self.wanted;
        let ahead = |last: Lba| {
            // It goes round.
            let from = if self.next_alone <= last {
                self.next_alone
            } else {
                Lba::ZERO
            };
            let span = last.get() - from.get();
            let places = (0..PLACES).map(|place| {
                let along = u128::from(span) * u128::from(place) / u128::from(PLACES);
                let place = Lba::new(from.get() + along as u64);
                let mut at = place;
                let pieces = core::iter::from_fn(move || {
                    // Nothing is looked for where nothing is wanted.
                    if at > last {
                        return None;
                    }
                    let next = wanted
                        .sweep(at, piece)
                        .filter(|(_, extent)| extent.start >= at)?;
                    at = next.1.end();
                    Some(next)
                });
                (place, pieces.take(LOOKS_AHEAD))
            });
            promise.ahead(places)
        };
        let queue = match (self.is_deep, self.options.queue) {
            (false, _) => QueueLength::Short,
            (true, DriveQueue::Promised) => QueueLength::DeepOrNot,
            (true, _) => QueueLength::Deep,
        };
        let ahead = last.and_then(ahead);
        let ahead = ahead.or_else(|| (blocks > 0).then(|| Sweeping::alone(each)));
        let swept = self.stats.blocks_alone + self.stats.blocks_demanded;
        let free = (self.stats.blocks + self.stats.read_by_others).saturating_sub(swept);
        let of = (left, self.all);
        let was_narrow = promise.is_narrow();
        promise.look(now, rests, queue, free, ahead.unwrap_or_default(), of);
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

    /// What is read before the request that is staged in a lane, which waits for it.
    pub(super) fn outright(
        &mut self,
        now: Time,
        engine: &Engine,
        lane: Lane,
    ) -> Option<(Arrival, Lane, Join)> {
        let promise = self.promise.as_ref()?;
        let is_asked = || self.in_flight.iter().any(|asked| asked.outright);
        if !promise.is_due(now) || is_asked() {
            return None;
        }
        let (id, request) = engine.joinable(lane)?;
        let pick = self.piece(Join::Outright, self.options.idle?.piece)?;
        let asked = arrival(self.next, self.op, pick.extent, Flags::NONE, Class::IDLE);
        if !engine.may_join(&asked, lane, pick.join) {
            return None;
        }
        self.next_alone = pick.extent.end();
        self.target = Some((id, request.arrival, u32::MAX, false));
        let asked = self.ask(pick, Flags::NONE, Class::IDLE, true);
        Some((asked, lane, pick.join))
    }
}
