//! Reads or writes a disk in the rotational gaps of clients' requests.
//!
//! The head waits for a foreground request's first sector. If there is time, the head can read other sectors first and be back when that
//! sector comes. This is freeblock scheduling from outside the drive (Lumb, Schindler and Ganger, FAST 2002, sections 3 and 4). For each
//! chosen request [`Freeblock`] searches for the best gap read that fits. Blocks on the destination track become the front of the request's
//! own command. Blocks on other tracks are read by commands of their own. The search goes from the tracks of head and destination to ever
//! farther ones.
//!
//! The crate has no data, no files and no clock.

#![warn(missing_docs)]

mod arcs;
mod background;
mod bits;
mod buffer;
mod buffer_accounts;
mod failure_pause;
mod guard;
mod on_tracks;
mod options;
mod parts;
mod promise;
mod promised;
mod search;
mod stats;
mod unwritten;
mod wanted;

use buffer_accounts::BufferAccounts;
pub use failure_pause::FailurePause;
use headtime_engine::{Approach, Arrival, Engine, Finished, Join, Lane, RequestId};
use headtime_sched::{Class, Flags, Op, Origin, Passing};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};
pub use options::{Demand, DriveQueue, FreeblockOptions, Hits, Idle, Limits, Prefer};
use parts::Parts;
use promise::Promise;
pub use promise::{ClientWaits, Outlook, Promised, Verdict};
pub use search::{Gap, Pick, Search};
pub use stats::{FreeblockStats, Obstacle, Steps};
use std::collections::BTreeSet;
use std::fmt;
use unwritten::Unwritten;
pub use wanted::Wanted;

/// Most commands in the drive at which gaps can be computed: the command in service, and the next command.
const DEPTH: u32 = 2;

/// Returns the arrival of a request of this job.
fn arrival(id: u64, op: Op, extent: Extent, flags: Flags, class: Class) -> Arrival {
    Arrival {
        id: RequestId::Background(id),
        op,
        extent,
        flags,
        origin: Origin::default(),
        class,
        since: None,
    }
}

/// A request of the job that is under way.
struct Picked {
    id: u64,
    /// First sectors of the wanted blocks that the request reads. The request also covers unwanted blocks between them.
    blocks: Vec<Lba>,
    /// The relation to a client's request.
    join: Join,
    /// True if the request is made at clients' cost.
    outright: bool,
}

/// Job that reads each wanted block of a disk once, in rotational gaps; or [writes](Freeblock::writing) each block once. Idle time and
/// clients' time are used only if the options, a demand or promises say so.
///
/// A block that a client reads counts as read, also if several requests read its parts. Memory for such parts is limited. If a command
/// fails with a medium error or a timeout, its blocks are wanted again and read one by one. A block that fails alone with a medium error
/// counts as [unreadable](Freeblock::unreadable), and is not read until it is [wanted](Freeblock::want) again. After any other failure the
/// blocks are wanted again.
///
/// Invariant: times of `tenths` never descend, and [`Time::NEVER`] stands for tenths that are not reached.
pub struct Freeblock<P: Passing> {
    model: P,
    options: FreeblockOptions,
    /// Operation for wanted blocks: read or write.
    op: Op,
    wanted: Wanted,
    /// Parts of wanted blocks that clients have read.
    parts: Parts,
    turn: Nanos,
    demand: Option<Demand>,
    promise: Option<Box<Promise>>,
    /// Reads that the owner of this scan still has to make: their number, and the time that each takes.
    besides: (u64, Nanos),
    /// True if the owner reports the end of the scan ([`Freeblock::end_promise`]).
    end_is_told: bool,
    /// The request before which a unit is read at clients' cost, and the sectors that are left of the unit.
    unit: Option<((RequestId, Time), u64)>,
    next: u64,
    /// The request for which gap reads were last searched: its name, its arrival, and the number of its gap reads. The last value is true
    /// if the last gap read continues on the same track.
    target: Option<(RequestId, Time, u32, bool)>,
    in_flight: Vec<Picked>,
    /// Model of the drive's buffer.
    accounts: BufferAccounts,
    /// True if the drive's queue, without a limit for this scan, is too deep for gap reads.
    is_deep: bool,
    /// Time at which a client's request last ended.
    quiet_from: Time,
    /// Clients' writes that the drive has to destage before idle reads.
    unwritten: Unwritten,
    /// Address at which the next read outside of gaps starts.
    next_alone: Lba,
    /// Emptied vectors that are reused.
    spare: Vec<Vec<Lba>>,
    /// First sectors of blocks that were in a failed command and may be unreadable.
    suspects: BTreeSet<Lba>,
    unreadable: BTreeSet<Lba>,
    stats: FreeblockStats,
    steps: Steps,
    /// Number of blocks that were wanted at first.
    all: u64,
    tenths: [Time; 10],
}

impl<P: Passing> Freeblock<P> {
    /// Returns a scan of the blocks in `range` of a disk of this capacity. Returns `None` if the model does not know the platter's
    /// position.
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

    /// Returns a scan of several ranges. See [`Freeblock::new`].
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
            accounts: BufferAccounts::new(&model, &options),
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

    /// Makes the job write each wanted block once instead of reading the block. It writes in commands of its own, and in gaps only where
    /// the drive's writes end on the medium. The writes bypass the drive's buffer (FUA), so written blocks are durable. A block that a
    /// client writes whole, or in parts, counts as written.
    ///
    /// # Panics
    ///
    /// If the scan has promises, since the cost of writes for clients is unknown.
    pub fn writing(mut self) -> Freeblock<P> {
        assert!(self.promise.is_none(), "promises are of scans that read");
        self.op = Op::Write;
        self
    }

    /// Returns true if the job writes wanted blocks.
    pub fn writes(&self) -> bool {
        !self.op.is_read()
    }

    /// Returns the flags of a request in a command of its own.
    fn flags(&self) -> Flags {
        match self.writes() {
            true => Flags::FUA,
            false => Flags::NONE,
        }
    }

    /// Sets whether and how the scan also reads in competition with clients.
    pub fn set_demand(&mut self, demand: Option<Demand>) {
        self.demand = demand;
    }

    /// Returns the options of the scan.
    pub fn options(&self) -> &FreeblockOptions {
        &self.options
    }

    /// Returns for each tenth of the blocks the time at which that share was first read; [`Time::NEVER`] if the share is not reached.
    pub fn tenths(&self) -> [Time; 10] {
        self.tenths
    }

    /// Returns the distribution of the steps per search.
    pub fn steps(&self) -> &Steps {
        &self.steps
    }

    /// Returns the counts of gaps, requests and blocks so far.
    pub fn stats(&self) -> FreeblockStats {
        self.stats
    }

    /// Returns the number of blocks that were wanted at first.
    pub fn wanted_at_first(&self) -> u64 {
        self.all
    }

    /// Returns the blocks that are still wanted.
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Returns the first sectors of unreadable blocks.
    pub fn unreadable(&self) -> impl Iterator<Item = Lba> + '_ {
        self.unreadable.iter().copied()
    }

    /// Returns true if the block that begins at a sector is unreadable.
    pub fn is_unreadable(&self, block: Lba) -> bool {
        self.unreadable.contains(&block)
    }

    /// Returns the first sectors of the blocks that a request of the job is to read. Returns none if no such request is under way.
    pub fn asked(&self, id: u64) -> &[Lba] {
        let asked = self.in_flight.iter().find(|asked| asked.id == id);
        asked.map_or(&[], |asked| &asked.blocks)
    }

    /// Returns the first sectors of the blocks that all requests of the job are to read.
    pub fn all_asked(&self) -> impl Iterator<Item = Lba> + '_ {
        self.in_flight
            .iter()
            .flat_map(|asked| &asked.blocks)
            .copied()
    }

    /// Returns the number of the job's requests that are under way.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Makes the whole blocks of an extent wanted, also blocks that have been read or are unreadable. Returns the number of blocks that
    /// were not wanted.
    pub fn want(&mut self, extent: Extent) -> u64 {
        self.forget_unreadable(extent);
        self.parts.forget(self.wanted.whole(extent));
        self.wanted.add(&self.model, extent)
    }

    /// Notes that a client has read (or, if the job writes, written) an extent that may cover a block in part. Returns the number of wanted
    /// blocks that are complete by now.
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

    /// Counts the whole blocks of an extent as readable again. Returns the number of blocks that were unreadable.
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

    /// Makes the whole blocks of an extent unwanted. Returns the number of blocks that were wanted.
    pub fn skip(&mut self, extent: Extent) -> u64 {
        let skipped = self.wanted.take(&self.model, extent);
        self.keep_unread_suspects();
        skipped
    }

    /// Keeps those suspects that are wanted or on their way.
    fn keep_unread_suspects(&mut self) {
        let (wanted, in_flight) = (&self.wanted, &self.in_flight);
        self.suspects.retain(|block| {
            wanted.has(block.get() / wanted.block())
                || in_flight.iter().any(|asked| asked.blocks.contains(block))
        });
    }

    /// Notes a client's request that is done without counting its blocks as read. [`seen`](headtime_engine::Background::seen) includes this call.
    pub fn noticed(&mut self, now: Time, done: &Finished) {
        let idle = done.request.arrival.saturating_since(self.quiet_from);
        self.unwritten.idle(idle, self.turn);
        self.unwritten.noticed(now, done, self.turn);
        self.disturbed(now);
        let reads = self.unread() > 0;
        if let Some(promise) = self.promise.as_mut().filter(|_| reads) {
            promise.seen(now, done);
        }
        self.accounts.noticed(now, done);
    }

    /// Notes the end of a request of which nothing else is known. The request's blocks do not count as read.
    pub fn disturbed(&mut self, now: Time) {
        self.quiet_from = now;
    }

    /// Returns the part of a gap read in which no block may be unreadable, or one such block alone if the gap read begins there. A block
    /// that may be unreadable never goes into a client's command. Unreadable blocks are not wanted, and are not read along either.
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

    /// Returns the arrival that reads `pick`, and takes its blocks from the wanted ones. `outright` is true at clients' cost.
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

    /// Searches for a gap read to go with the request that is staged at the end of an approach.
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
        let is_hit = request.op.is_read() && self.accounts.may_serve(now, request.extent, behind);
        // The ration is charged once for each request, with its first gap read.
        let is_allowed = picks > 0 || !self.options.hits.counts() || self.accounts.allows();
        let obstacle = match () {
            () if is_hit => Some(Obstacle::Hit),
            // If the drive has more commands, its order of a gap read, the request and the others is unknown.
            () if engine.depth() > DEPTH => Some(Obstacle::Queue),
            () if self.fails() => Some(Obstacle::Order),
            () if !is_allowed => Some(Obstacle::Destaging),
            () => None,
        };
        let searches = obstacle.is_none();
        let whose = (id, request.arrival);
        let notes = self.accounts.is_unnoted(id, request.arrival, request.op);
        let begun = (searches || notes && self.accounts.needs_waits()).then(|| {
            let gap = self.gap(now, approach, request.op, request.extent);
            (gap, gap.begins(&self.model))
        });
        if notes {
            let waits = begun.filter(|_| self.accounts.needs_waits());
            let waits = waits.map(|(_, (place, predicted))| {
                let track = self.model.addresses(self.model.track(place));
                (predicted.rotation, track, self.turn)
            });
            self.accounts
                .note_read(now, whose, request.extent, is_hit, waits);
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
        if self.accounts.holds_back(whose, self.op, pick.as_ref()) {
            self.stats.suspended[Obstacle::LostHits as usize] += u64::from(picks == 0);
            return None;
        }
        self.stats.gaps += u64::from(picks == 0);
        let (pick, flags) = (pick?, flags?);
        if picks == 0 {
            self.accounts.pay();
        }
        let picks = picks + u32::from(!rest);
        self.target = Some((id, request.arrival, picks, pick.more));
        Some((self.ask(pick, flags, Class::IDLE, false), lane, pick.join))
    }

    /// Returns true if gap reads are suspended because predictions fail.
    pub fn fails(&self) -> bool {
        self.options.hits.counts() && self.accounts.surprises()
    }

    /// Returns true if gap reads are rationed, since the drive often destages between a gap read and its request.
    pub fn is_rationed(&self) -> bool {
        self.options.hits.counts() && self.accounts.rations()
    }

    /// Returns true if gap reads are suspended because they would cost clients hits of the drive's buffer.
    pub fn is_costly(&self) -> bool {
        self.accounts.rests()
    }

    /// Returns true if gap reads are suspended because the drive gets too many commands at a time.
    pub fn is_deep(&self) -> bool {
        self.is_deep && !self.is_narrow()
    }

    /// Returns the time since which the disk has been idle; `None` if the disk is busy or no block is wanted.
    fn quiet_since(&self, engine: &Engine) -> Option<Time> {
        let nobody = engine.in_flight() == 0 && self.in_flight.is_empty() && engine.is_quiet();
        (nobody && self.wanted.left() > 0).then_some(self.quiet_from)
    }

    /// Returns the idle time that the drive needs to destage clients' writes.
    pub fn destages_in(&self) -> Nanos {
        self.unwritten.takes(self.turn)
    }

    /// Returns the time from which idle reads may go to the drive, if no client's request arrives in the meantime.
    fn idle_from(&self, engine: &Engine) -> Option<Time> {
        let after = self.idle()?.after.max(self.destages_in());
        Some(self.quiet_since(engine)?.saturating_add(after))
    }

    /// Returns a read in idle time, if one may be made now.
    fn alone(&mut self, now: Time, engine: &Engine) -> Option<(Arrival, Lane, Join)> {
        let idle = self.idle()?;
        if now < self.idle_from(engine)? {
            return None;
        }
        self.in_order(engine, Join::Alone, idle.piece, Class::IDLE)
    }

    /// Returns a read that is queued beside clients' requests, if the demand asks for one.
    fn demanded(&mut self, engine: &Engine) -> Option<(Arrival, Lane, Join)> {
        let queued = self.in_flight.iter();
        let queued = queued.filter(|asked| asked.join == Join::Queued).count();
        let more = |demand: &Demand| queued < demand.outstanding as usize;
        let demand = self.demand.filter(more)?;
        self.in_order(engine, Join::Queued, demand.piece, demand.class)
    }

    /// Returns the next wanted blocks in order of address, in at most `most` sectors.
    fn piece(&self, join: Join, most: Sectors) -> Option<Pick> {
        // A scan with promises reads across unwanted blocks, which pass under the head anyway. So no wanted block is left behind.
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

    /// Notes the time of each tenth of the blocks that has been read, and the end of the scan.
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

impl<P: Passing> fmt::Debug for Freeblock<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Freeblock")
            .field("options", &self.options)
            .field("left", &self.wanted.left())
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}
