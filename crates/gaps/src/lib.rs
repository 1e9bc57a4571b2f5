//! Reads or writes a disk in the rotational gaps of clients' requests.
//!
//! The head waits for a foreground request's first sector. Until then the head can read other sectors on the way, if it is back in time. This is
//! freeblock scheduling from outside the drive (Lumb, Schindler and Ganger, FAST 2002, sections 3 and 4). [`Freeblock`] looks before each chosen
//! request for the most wanted blocks that fit. Blocks on the destination track become the front of the request's own command. Blocks on other
//! tracks are read by commands of their own. The search goes from the tracks of head and destination to ever farther ones.
//!
//! The crate has no data, no files and no clock.

#![warn(missing_docs)]

mod arcs;
mod bits;
mod buffer;
mod guard;
mod kept;
mod on_tracks;
mod options;
mod parts;
mod promise;
mod promised;
mod rests;
mod search;
mod stats;
mod unwritten;
mod wanted;

use headtime_engine::{
    Approach, Arrival, Background, Engine, Finished, Join, Lane, Outcome, RequestId,
};
use headtime_sched::{Class, Flags, Op, Origin, Passing, Track, Tracker};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};
use kept::Kept;
pub use options::{Demand, DriveQueue, FreeblockOptions, Hits, Idle, Limits, Prefer};
use parts::Parts;
use promise::Promise;
pub use promise::{ClientWaits, Outlook, Promised, Verdict};
pub use rests::Rests;
pub use search::{Gap, Pick, Search};
pub use stats::{FreeblockStats, Obstacle, Steps};
use std::collections::BTreeSet;
use std::fmt;
use unwritten::Unwritten;
pub use wanted::Wanted;

/// With so many commands in the drive there are gaps: one is served, and the next is known.
const DEPTH: u32 = 2;

/// A request of the job.
fn arrival(id: u64, op: Op, extent: Extent, flags: Flags, class: Class) -> Arrival {
    Arrival {
        id: RequestId::Background(id),
        op,
        extent,
        flags,
        origin: Origin::default(),
        class,
    }
}

/// A pick that is on its way.
struct Picked {
    id: u64,
    /// The blocks that were wanted, by their first sectors; others between them are read along.
    blocks: Vec<Lba>,
    /// How it went.
    join: Join,
    /// Whether it takes the clients' time, for a promise.
    outright: bool,
}

/// Reads each wanted block of a disk once, in gaps alone; or [writes](Freeblock::writing) each.
///
/// What somebody else reads counts as read, also in parts as far as there is room to know of them. A block of which the drive says that it cannot be read is asked for once more, alone,
/// and then no longer ([`Freeblock::unreadable`]), until it is [wanted](Freeblock::want) again. Anything else that fails is wanted again.
pub struct Freeblock<P: Passing> {
    model: P,
    options: FreeblockOptions,
    /// Whether it reads or writes what is wanted.
    op: Op,
    wanted: Wanted,
    /// What others have read of wanted blocks.
    parts: Parts,
    turn: Nanos,
    demand: Option<Demand>,
    promise: Option<Box<Promise>>,
    /// What whoever has this scan still has to read besides: blocks, and how long each takes.
    besides: (u64, Nanos),
    /// Whether somebody else says when it is over.
    end_is_told: bool,
    /// The request before which a unit goes at clients' cost, and what is left of the unit.
    unit: Option<((RequestId, Time), u64)>,
    next: u64,
    /// The request before which it looks, by name and arrival, how many picks it has, and whether the last of them has a rest.
    target: Option<(RequestId, Time, u32, bool)>,
    in_flight: Vec<Picked>,
    /// What is known of the drive's buffer.
    kept: Kept,
    /// Whether the drive gets more commands at a time without this scan than leave gaps.
    is_deep: bool,
    /// When a client's request last ended.
    quiet_from: Time,
    /// Writes of clients that the drive has to destage before idle reads.
    unwritten: Unwritten,
    /// Where the next read is while nobody waits.
    next_alone: Lba,
    /// Kept for their memory.
    spare: Vec<Vec<Lba>>,
    /// First sectors of blocks that were in a command of which the drive could not read all.
    suspects: BTreeSet<Lba>,
    unreadable: BTreeSet<Lba>,
    stats: FreeblockStats,
    steps: Steps,
    /// How many blocks were wanted at first.
    all: u64,
    tenths: [Time; 10],
}

impl<P: Passing> Freeblock<P> {
    /// A scan of what is in `range` of a disk of this capacity; `None` if the model does not know where the platter is.
    ///
    /// # Panics
    ///
    /// If a block has no sectors, or the range leaves the disk.
    pub fn new(
        model: P,
        capacity: Sectors,
        range: Extent,
        options: FreeblockOptions,
    ) -> Option<Freeblock<P>> {
        Freeblock::of(model, capacity, [range], options)
    }

    /// The same of several ranges.
    ///
    /// # Panics
    ///
    /// If a block has no sectors, or a range leaves the disk.
    pub fn of(
        model: P,
        capacity: Sectors,
        ranges: impl IntoIterator<Item = Extent>,
        options: FreeblockOptions,
    ) -> Option<Freeblock<P>> {
        let turn = model.turn()?;
        let mut wanted = Wanted::none(&model, capacity, options.block);
        let mut first = None;
        for range in ranges {
            assert!(
                range.end() <= Lba::ZERO + capacity,
                "{range} leaves the disk"
            );
            wanted.add(&model, range);
            first = first.or(Some(range.start));
        }
        Some(Freeblock {
            all: wanted.left(),
            steps: Steps::default(),
            tenths: [Time::NEVER; 10],
            op: Op::Read,
            wanted,
            parts: Parts::of(options.block.get()),
            turn,
            kept: Kept::new(&model, &options),
            is_deep: false,
            model,
            options,
            demand: None,
            promise: None,
            besides: (0, Nanos::ZERO),
            end_is_told: false,
            unit: None,
            next: 0,
            target: None,
            in_flight: Vec::new(),
            quiet_from: Time::ZERO,
            unwritten: Unwritten::default(),
            next_alone: first.unwrap_or(Lba::ZERO),
            spare: Vec::new(),
            suspects: BTreeSet::new(),
            unreadable: BTreeSet::new(),
            stats: FreeblockStats::default(),
        })
    }

    /// It writes each wanted block once, in place of reading it, and nothing else: in gaps only where the drive's writes end on the
    /// medium, and in commands of their own. They bypass the drive's buffer (FUA), so what is written is durable. What somebody else
    /// writes whole counts as written.
    ///
    /// # Panics
    ///
    /// If it has promised anything: what writes cost clients is not known.
    pub fn writing(mut self) -> Freeblock<P> {
        assert!(self.promise.is_none(), "promises are of scans that read");
        self.op = Op::Write;
        self
    }

    /// Returns true if it writes what is wanted.
    pub fn writes(&self) -> bool {
        !self.op.is_read()
    }

    /// Those of a request of its own command.
    fn flags(&self) -> Flags {
        match self.writes() {
            true => Flags::FUA,
            false => Flags::NONE,
        }
    }

    /// From now on it also reads at the cost of others, or no longer.
    pub fn set_demand(&mut self, demand: Option<Demand>) {
        self.demand = demand;
    }

    /// How its gaps are used.
    pub fn options(&self) -> &FreeblockOptions {
        &self.options
    }

    /// When each tenth of what was wanted was first read; [`Time::NEVER`] if that is still to come.
    pub fn tenths(&self) -> [Time; 10] {
        self.tenths
    }

    /// The distribution of the steps of its searches.
    pub fn steps(&self) -> &Steps {
        &self.steps
    }

    /// What was done so far.
    pub fn stats(&self) -> FreeblockStats {
        self.stats
    }

    /// How many blocks were wanted at first.
    pub fn wanted_at_first(&self) -> u64 {
        self.all
    }

    /// The blocks that are still wanted.
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// The first sectors of blocks that cannot be read.
    pub fn unreadable(&self) -> impl Iterator<Item = Lba> + '_ {
        self.unreadable.iter().copied()
    }

    /// Returns true if the block that begins at a sector cannot be read.
    pub fn is_unreadable(&self, block: Lba) -> bool {
        self.unreadable.contains(&block)
    }

    /// The blocks that one of its requests is to read, by their first sectors; none if it is not under way.
    pub fn asked(&self, id: u64) -> &[Lba] {
        let asked = self.in_flight.iter().find(|asked| asked.id == id);
        asked.map_or(&[], |asked| &asked.blocks)
    }

    /// The blocks that all of its requests under way are to read.
    pub fn all_asked(&self) -> impl Iterator<Item = Lba> + '_ {
        self.in_flight
            .iter()
            .flat_map(|asked| &asked.blocks)
            .copied()
    }

    /// Requests that are under way.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// The blocks that lie whole in an extent are wanted, also if they have been read, or could not be. Returns how many were not.
    pub fn want(&mut self, extent: Extent) -> u64 {
        self.forget_unreadable(extent);
        self.parts.forget(self.wanted.whole(extent));
        self.wanted.add(&self.model, extent)
    }

    /// Somebody has read (or written, where that counts) an extent. Returns how many wanted blocks have all been read by that, in however many
    /// requests.
    fn take_parts(&mut self, extent: Extent) -> u64 {
        let end = self.wanted.end().get();
        let mut taken = 0;
        for number in self.parts.of_extent(extent, end) {
            if self.wanted.has(number) {
                let block = self.wanted.block_at(Lba::new(number * self.wanted.block()));
                if self.parts.read(number, block.len.get(), extent) {
                    taken += self.wanted.take(&self.model, block);
                }
            }
        }
        taken
    }

    /// The blocks that lie whole in an extent count as readable. Returns how many did not.
    fn forget_unreadable(&mut self, extent: Extent) -> u64 {
        if self.unreadable.is_empty() {
            return 0;
        }
        let before = self.unreadable.len();
        let wanted = &self.wanted;
        self.unreadable.retain(|block| {
            let block = wanted.block_at(*block);
            block.start < extent.start || block.end() > extent.end()
        });
        (before - self.unreadable.len()) as u64
    }

    /// The blocks that lie whole in an extent are not wanted. Returns how many were.
    pub fn skip(&mut self, extent: Extent) -> u64 {
        self.wanted.take(&self.model, extent)
    }

    /// Notes a request of a client that is done, where [`Background::seen`] does not tell.
    pub fn noticed(&mut self, now: Time, done: &Finished) {
        let idle = done.request.arrival.saturating_since(self.quiet_from);
        self.unwritten.idle(idle, self.turn);
        self.unwritten.noticed(now, done, self.turn);
        self.disturbed(now);
        let reads = self.unread() > 0;
        if let Some(promise) = self.promise.as_mut().filter(|_| reads) {
            promise.seen(now, done);
        }
        self.kept.noticed(now, done);
    }

    /// Somebody's request was over at this time, which is all that is to be known of it: what it read does not count.
    pub fn disturbed(&mut self, now: Time) {
        self.quiet_from = now;
    }

    /// As much of a pick as has no block that may be unreadable, or one such block alone. Nothing that may be unreadable goes in the
    /// command of somebody else, and what is not wanted since it cannot be read is not read along.
    fn without_suspects(&self, pick: Pick) -> Option<Pick> {
        let Extent { start, .. } = pick.extent;
        let end = pick.extent.end();
        let block = self.options.block;
        let sets = [&self.suspects, &self.unreadable];
        let within = sets.map(|blocks| blocks.range(start..end));
        let last = within
            .clone()
            .into_iter()
            .filter_map(|mut it| it.next_back());
        let first = within.into_iter().filter_map(|mut it| it.next());
        let extent = match (pick.join, first.min(), last.max()) {
            (_, None, _) => return Some(pick),
            (join, Some(first), _) if join != Join::With && *first == start => {
                Extent::new(start, block.min(pick.extent.len))
            }
            (join, Some(first), _) if join != Join::With => Extent::new(start, *first - start),
            (_, Some(first), last) => {
                let after = *last.unwrap_or(first) + block;
                Extent::new(after, end.max(after) - after)
            }
        };
        let (blocks, within) = self.wanted.within(extent)?;
        let extent = match pick.join {
            Join::Before | Join::Outright | Join::Alone | Join::Queued => within,
            Join::With => Extent::new(within.start, end - within.start),
        };
        Some(Pick {
            extent,
            blocks,
            ..pick
        })
    }

    /// What is asked for to read this, which may join.
    fn ask(&mut self, pick: Pick, flags: Flags, class: Class, outright: bool) -> Arrival {
        let mut blocks = self.spare.pop().unwrap_or_default();
        blocks.clear();
        blocks.extend(self.wanted.blocks_in(pick.extent));
        let taken = self.wanted.take(&self.model, pick.extent);
        debug_assert_eq!(taken, pick.blocks);
        self.stats.blocks += taken;
        match pick.join {
            _ if outright => {
                self.stats.demanded += 1;
                self.stats.blocks_demanded += taken;
            }
            Join::Before => self.stats.before += 1,
            Join::With => self.stats.with += 1,
            Join::Alone => {
                self.stats.alone += 1;
                self.stats.blocks_alone += taken;
            }
            Join::Outright | Join::Queued => {
                self.stats.demanded += 1;
                self.stats.blocks_demanded += taken;
            }
        }
        self.in_flight.push(Picked {
            id: self.next,
            blocks,
            join: pick.join,
            outright,
        });
        let arrival = arrival(self.next, self.op, pick.extent, flags, class);
        self.next += 1;
        arrival
    }

    /// What goes with the request that is staged at the end of an approach.
    fn in_gap(
        &mut self,
        now: Time,
        engine: &Engine,
        approach: &Approach,
    ) -> Option<(Arrival, Lane, Join)> {
        let lane = approach.lane;
        let (id, request) = engine.joinable(lane)?;
        let (picks, rest) = match self.target {
            Some((last, arrival, picks, rest)) if (last, arrival) == (id, request.arrival) => {
                (picks, rest)
            }
            _ => (0, false),
        };
        let urgent = request.class < Class::BEST_EFFORT;
        let is_bounded = |promise: &Promise| !promise.uses_gaps();
        let urgent = urgent || self.promise.as_deref().is_some_and(is_bounded);
        if urgent || (picks >= self.options.picks && !rest) || self.wanted.left() == 0 {
            return None;
        }
        let behind = approach.head.op.is_some_and(Op::is_read);
        let behind = behind.then_some(approach.head.lba);
        let is_hit = request.op.is_read() && self.kept.may_serve(now, request.extent, behind);
        // A request that has a gap read is paid for.
        let is_allowed = picks > 0 || !self.options.hits.counts() || self.kept.allows();
        let obstacle = match () {
            () if is_hit => Some(Obstacle::Hit),
            // Nobody knows in which order a drive serves a gap read, its request, and more.
            () if engine.depth() > DEPTH => Some(Obstacle::Queue),
            () if self.fails() => Some(Obstacle::Order),
            () if !is_allowed => Some(Obstacle::Destaging),
            () => None,
        };
        let searches = obstacle.is_none();
        let whose = (id, request.arrival);
        let notes = self.kept.notes(id, request.arrival, request.op);
        let begun = (searches || notes && self.kept.needs_waits()).then(|| {
            let gap = self.gap(now, approach, request.op, request.extent);
            (gap, gap.begins(&self.model))
        });
        if notes {
            let waits = begun.filter(|_| self.kept.needs_waits());
            let waits = waits.map(|(_, (place, predicted))| {
                let track = self.model.addresses(self.model.track(place));
                (predicted.rotation, track, self.turn)
            });
            self.kept.comes(now, whose, request.extent, is_hit, waits);
        }
        self.target = Some((id, request.arrival, u32::MAX, false));
        let Some((gap, begins)) = begun.filter(|_| searches) else {
            if let Some(obstacle) = obstacle.filter(|_| picks == 0) {
                self.stats.suspended[obstacle as usize] += 1;
            }
            return None;
        };
        let search = Search {
            model: &self.model,
            wanted: &self.wanted,
            op: self.op,
            conservatism: self.options.conservatism,
            limits: self.options.limits,
            prefer: self.options.prefer,
            rest,
            merged_max: engine.config().merge_sectors_max,
            turn: self.turn,
        };
        let (pick, steps) = search.find_from(&gap, begins, self.options.steps);
        self.steps.add(steps);
        let pick = pick.and_then(|pick| self.without_suspects(pick));
        let flags = |pick: &Pick| match pick.join {
            Join::With => request.flags,
            Join::Before | Join::Outright | Join::Alone | Join::Queued => self.flags(),
        };
        let pick = pick.filter(|pick| {
            let asked = arrival(self.next, self.op, pick.extent, flags(pick), Class::IDLE);
            engine.may_join(&asked, lane, pick.join)
        });
        let flags = pick.as_ref().map(flags);
        if self.kept.holds(whose, self.op, pick.as_ref()) {
            self.stats.suspended[Obstacle::LostHits as usize] += u64::from(picks == 0);
            return None;
        }
        self.stats.gaps += u64::from(picks == 0);
        let (pick, flags) = (pick?, flags?);
        if picks == 0 {
            self.kept.pay();
        }
        let picks = picks + u32::from(!rest);
        self.target = Some((id, request.arrival, picks, pick.more));
        Some((self.ask(pick, flags, Class::IDLE, false), lane, pick.join))
    }

    /// Returns true if predictions fail, and gaps rest.
    pub fn fails(&self) -> bool {
        self.options.hits.counts() && self.kept.surprises()
    }

    /// Returns true if gap reads are rationed, since the drive often destages between a gap read and its request.
    pub fn is_rationed(&self) -> bool {
        self.options.hits.counts() && self.kept.rations()
    }

    /// Returns true if picks would cost clients hits of the drive's buffer, and gaps rest.
    pub fn is_costly(&self) -> bool {
        self.kept.rests()
    }

    /// Returns true if the drive gets more commands than leave gaps, and gaps rest.
    pub fn is_deep(&self) -> bool {
        self.is_deep && !self.is_narrow()
    }

    /// Since when nobody but this job has waited for anything, if that is so.
    fn quiet_since(&self, engine: &Engine) -> Option<Time> {
        let nobody = engine.in_flight() == 0 && self.in_flight.is_empty() && engine.is_quiet();
        (nobody && self.wanted.left() > 0).then_some(self.quiet_from)
    }

    /// Idle time that the drive needs to destage the writes of clients.
    pub fn destages_in(&self) -> Nanos {
        self.unwritten.takes(self.turn)
    }

    /// Time from which idle reads may go to the drive, unless a client asks for something before.
    fn idle_from(&self, engine: &Engine) -> Option<Time> {
        let after = self.idle()?.after.max(self.destages_in());
        Some(self.quiet_since(engine)?.saturating_add(after))
    }

    /// What is read while nobody waits for anything.
    fn alone(&mut self, now: Time, engine: &Engine) -> Option<(Arrival, Lane, Join)> {
        let idle = self.idle()?;
        if now < self.idle_from(engine)? {
            return None;
        }
        self.in_order(engine, Join::Alone, idle.piece, Class::IDLE)
    }

    /// What is read though others wait.
    fn demanded(&mut self, engine: &Engine) -> Option<(Arrival, Lane, Join)> {
        let queued = self.in_flight.iter();
        let queued = queued.filter(|asked| asked.join == Join::Queued).count();
        let more = |demand: &Demand| queued < demand.outstanding as usize;
        let demand = self.demand.filter(more)?;
        self.in_order(engine, Join::Queued, demand.piece, demand.class)
    }

    /// The next piece in order of address.
    fn piece(&self, join: Join, most: Sectors) -> Option<Pick> {
        // Who has promised a date leaves nothing behind: what is not wanted passes under the head anyway.
        let (blocks, extent) = match self.promise {
            Some(_) => self.wanted.sweep(self.next_alone, most)?,
            None => self.wanted.next(self.next_alone, most)?,
        };
        self.without_suspects(Pick {
            extent,
            join,
            blocks,
            more: false,
        })
    }

    /// Asks for the next piece in order of address.
    fn in_order(
        &mut self,
        engine: &Engine,
        join: Join,
        piece: Sectors,
        class: Class,
    ) -> Option<(Arrival, Lane, Join)> {
        let pick = self.piece(join, piece)?;
        let lane = engine.lane_of(Origin::default(), class);
        let flags = self.flags();
        let asked = arrival(self.next, self.op, pick.extent, flags, class);
        if !engine.may_join(&asked, lane, join) {
            return None;
        }
        self.next_alone = pick.extent.end();
        Some((self.ask(pick, flags, class, false), lane, join))
    }

    /// Notes that some of what was wanted has been read.
    fn note_read(&mut self, now: Time) {
        let read = self.all.saturating_sub(self.unread());
        for (tenth, at) in (1..).zip(&mut self.tenths) {
            if *at == Time::NEVER && u128::from(read) * 10 >= u128::from(self.all) * tenth {
                *at = now;
            }
        }
        if self.unread() == 0 && !self.end_is_told {
            self.end_promise(now);
        }
    }

    fn gap(&self, now: Time, approach: &Approach, op: Op, extent: Extent) -> Gap<P::Place> {
        let source = approach.head.by(&self.model, now);
        let sent = approach.room.unwrap_or(now).max(now) + approach.head.ahead;
        Gap {
            source,
            sent,
            then: (!approach.serial).then(|| source.free.max(sent)),
            op,
            extent,
        }
    }
}

impl<P: Passing + Clone + 'static> Background for Freeblock<P> {
    fn tracker(&self) -> Option<Box<dyn Track>> {
        Some(Box::new(Tracker::new(self.model.clone())))
    }

    fn joins(
        &mut self,
        now: Time,
        engine: &Engine,
        approach: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        self.note_depth(engine);
        self.look(now, false);
        self.demanded(engine).or_else(|| match approach {
            Some(approach) => {
                let asked = self.outright(now, engine, approach.lane);
                asked.or_else(|| self.in_gap(now, engine, approach))
            }
            None => {
                // Nobody follows the head.
                let lane = engine.unoffered();
                let asked = lane.and_then(|lane| self.outright(now, engine, lane));
                asked.or_else(|| self.alone(now, engine))
            }
        })
    }

    fn is_offered(&self) -> bool {
        self.wanted.left() > 0
    }

    fn depth(&self) -> Option<u32> {
        (self.wanted.left() > 0 && self.is_narrow()).then_some(DEPTH)
    }

    fn is_over(&self) -> bool {
        self.wanted.left() == 0 && self.in_flight.is_empty()
    }

    fn next_wakeup(&self, engine: &Engine) -> Option<Time> {
        // A disk that nobody uses is looked at, too.
        [self.idle_from(engine), self.next_look()]
            .into_iter()
            .flatten()
            .min()
    }

    fn arrives(&mut self, now: Time, arrival: &Arrival) {
        let reads = self.unread() > 0;
        if let Some(promise) = self.promise.as_mut().filter(|_| reads) {
            promise.arrives(now, arrival.origin);
        }
    }

    fn seen(&mut self, now: Time, done: &Finished) {
        self.noticed(now, done);
        let counts = match self.writes() {
            true => done.request.op.changes(),
            false => done.request.op.is_read(),
        };
        if counts && done.outcome == Outcome::Done {
            let extent = done.request.extent;
            // What could not be read may have been written since.
            let whole = self.wanted.take(&self.model, extent) + self.forget_unreadable(extent);
            let taken = whole + self.take_parts(extent);
            self.stats.read_by_others += taken;
            if taken > 0 {
                self.note_read(now);
            }
        }
    }

    fn finished(&mut self, now: Time, done: &Finished, _data: Option<&[u8]>) {
        let at = self.in_flight.iter().position(|asked| asked.id == done.id);
        let picked = self.in_flight.swap_remove(at.expect("it was asked for"));
        match picked.join {
            Join::Before | Join::With => self.kept.picked(now, done),
            Join::Outright | Join::Alone | Join::Queued => self.kept.passed(now, done),
        }
        let Picked {
            blocks,
            join,
            outright,
            ..
        } = picked;
        if let Some(promise) = &mut self.promise {
            match join {
                Join::Outright => promise.has_read(now, done, false, blocks.len()),
                Join::Before => promise.gap_read(done),
                Join::With | Join::Queued => {}
                Join::Alone => promise.has_read(now, done, true, blocks.len()),
            }
        }
        let before = self.stats.blocks;
        match (done.outcome, blocks.as_slice()) {
            (Outcome::Done, _) => {
                if !self.suspects.is_empty() {
                    for block in &blocks {
                        self.suspects.remove(block);
                    }
                }
            }
            // Of more than the block it may be something else that cannot be read.
            (Outcome::MediumError, [block])
                if done.request.extent == self.wanted.block_at(*block) =>
            {
                self.stats.blocks -= 1;
                self.suspects.remove(block);
                self.unreadable.insert(*block);
            }
            (outcome, _) => {
                // What takes a drive too long may be one block of many, too.
                if matches!(outcome, Outcome::MediumError | Outcome::TimedOut) {
                    self.suspects.extend(&blocks);
                }
                for block in &blocks {
                    let extent = self.wanted.block_at(*block);
                    self.stats.blocks -= self.wanted.add(&self.model, extent);
                }
            }
        }
        let back = before - self.stats.blocks;
        match join {
            _ if outright => self.stats.blocks_demanded -= back,
            Join::Alone => self.stats.blocks_alone -= back,
            Join::Queued => self.stats.blocks_demanded -= back,
            Join::Before | Join::Outright | Join::With => {}
        }
        self.spare.push(blocks);
        self.note_read(now);
    }
}

impl<P: Passing> fmt::Debug for Freeblock<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Freeblock")
            .field("options", &self.options)
            .field("left", &self.wanted.left())
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}
