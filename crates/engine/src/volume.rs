//! Several disks behind one address space.
//!
//! A [`Volume`] has an engine for each member. A [`Map`] assigns sectors to members. A client's request becomes one
//! request for each run of sectors on a member; these parts have ids of their own. Log, audit and replay work with
//! parts and members. The client's request ends when all its parts have, with the worst outcome. In a volume of one
//! there are no parts: requests pass as they are.
//!
//! # Order
//!
//! A sector lies on one member, and parts reach their engines in the order in which clients' requests arrived. So
//! each engine's promise about overlaps holds for each sector of the volume.
//!
//! A layout with parity adds accesses to a write ([`Map::add_to_write`]). The sectors are written when the added reads
//! have ended. So a later write may overtake such a write where both overlap, and writes of a row do not wait for each
//! other. Only simulations have such volumes. No data can be wrong there.
//!
//! A mirror ([`Map::mirror`]) has each sector on all members. A write has a part on each member, and a read on one. Writes
//! that overlap reach all members in the same order.
//!
//! A flush goes to the members that it concerns ([`Map::concerned`]): all members of a stripe, one of a [`Concat`](crate::Concat).
//! The volume holds later requests for these members until the flush has ended on all members. A request
//! behind a held request is held too, if both concern the same member. So nothing passes a flush on a member that the flush
//! concerns, and a flush of one part does not hold up the others. A write with [`Flags::PREFLUSH`] is a flush of its
//! members followed by the write.
//!
//! The members are notified of the rank of held requests ([`Event::Behind`]). The requests that the flush waits for
//! inherit this rank, as in a single engine.

mod mirror;

use crate::few::Few;
use crate::map::{Added, MEMBERS_MAX, Map, Member};
use crate::{Arrival, Engine, Event, Finished, Outcome, RequestId};
use headtime_sched::{Class, Flags, Foretold, Op, Origin, Request};
use headtime_units::{Extent, Lba, Sectors, Time};
use mirror::Mirror;
use std::collections::VecDeque;

/// A part of a client's request on a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The part's name: the client's [`RequestId::Client`] number at the member.
    pub id: u64,
    /// The client's request.
    pub of: u64,
    /// Distance from the start of the client's request to the start of the part.
    pub offset: Sectors,
    /// The part's sectors on its member.
    pub extent: Extent,
    /// Read or write of an access that the layout adds to a write, such as of parity; `None` for the client's sectors.
    pub added: Option<Op>,
}

/// A client's request that has parts.
#[derive(Clone, Copy, Debug)]
struct Whole {
    id: u64,
    request: Request<()>,
    /// [`Arrival::since`] of the parts.
    since: Option<Time>,
    /// Parts that have not ended.
    left: u32,
    outcome: Outcome,
    /// Time when the last part went to a drive.
    issued: Time,
    phase: SplitPhase,
}

/// Phase of a client's request: the purpose of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SplitPhase {
    /// Flushes before a write.
    Flush,
    /// Reads for parity.
    Read,
    /// The client's access, and writes of parity. No phase follows.
    Last,
}

/// The engines of a volume, and the clients' requests that have parts on them.
pub(crate) struct Volume {
    engines: Few<Engine>,
    /// State for several members; `None` in a volume of one member.
    split: Option<Box<Split>>,
}

/// State of a volume of several members, in addition to the engines.
///
/// Invariants: `wakes` and `polled` have an entry for each member; `told` is at most the number of held requests;
/// `blocked` has the members of all `flushes` and of all held requests.
struct Split {
    map: Box<dyn Map>,
    /// State of a mirror; `None` for other layouts.
    mirror: Option<Mirror>,
    /// By the number that parts refer to.
    wholes: Vec<Whole>,
    free_wholes: Vec<u32>,
    /// By part id: number of the client's request in `wholes`.
    parts: Vec<u32>,
    free_parts: Vec<u32>,
    /// Accesses that the layout adds to the write at hand; empty between calls.
    added: Vec<Added>,
    /// Flushes that have not ended, each with its members as bits. No member belongs to two flushes.
    flushes: Vec<(u32, u64)>,
    /// Requests that are held behind a flush, with the times of their arrivals.
    behind: VecDeque<(Time, Arrival)>,
    /// Members of all flushes and of all held requests, as bits.
    blocked: u64,
    /// Number of held requests, from the first, whose rank the members know or need not know.
    told: usize,
    /// Events that members have not been notified of yet.
    inbox: VecDeque<(Member, Event, Option<Part>)>,
    /// Members that may have commands.
    to_poll: VecDeque<Member>,
    /// By member: wake-up time of the engine, as of the last poll. Read before each event.
    wakes: Vec<Time>,
    /// By member: true if it was polled since [`Volume::take_polled`].
    polled: Vec<bool>,
}

impl Volume {
    /// Creates a volume of one member.
    pub fn one(engine: Engine) -> Volume {
        Volume {
            engines: Few::one(engine),
            split: None,
        }
    }

    /// Creates a volume of these members, in order.
    ///
    /// # Panics
    ///
    /// If the map has another number of members, or more than [`MEMBERS_MAX`].
    pub fn new(engines: Vec<Engine>, map: Box<dyn Map>) -> Volume {
        assert_eq!(
            engines.len(),
            usize::from(map.members()),
            "the map is of another number of members"
        );
        assert!(engines.len() <= MEMBERS_MAX, "too many members");
        let mirror = map.mirror().map(|from| Mirror::new(from, engines.len()));
        let split = Split {
            map,
            mirror,
            wholes: Vec::new(),
            free_wholes: Vec::new(),
            parts: Vec::new(),
            free_parts: Vec::new(),
            added: Vec::new(),
            flushes: Vec::new(),
            behind: VecDeque::new(),
            blocked: 0,
            told: 0,
            inbox: VecDeque::new(),
            to_poll: VecDeque::new(),
            wakes: vec![Time::NEVER; engines.len()],
            polled: vec![true; engines.len()],
        };
        Volume {
            engines: Few::from(engines),
            split: Some(Box::new(split)),
        }
    }

    #[inline]
    pub fn engines(&self) -> &Few<Engine> {
        &self.engines
    }

    #[inline]
    pub fn engine(&mut self, member: Member) -> &mut Engine {
        &mut self.engines[member.index()]
    }

    /// Returns true if nothing is queued, held or in flight on any member.
    pub fn is_idle(&self) -> bool {
        self.engines.iter().all(Engine::is_idle)
            && (self.split.as_ref()).is_none_or(|split| split.behind.is_empty())
    }

    /// Returns the clients' unfinished requests as they arrived, in no particular order.
    pub fn unfinished(&self) -> impl Iterator<Item = Request<()>> {
        let one = match self.split {
            None => self.engines.only(),
            Some(_) => None,
        };
        let split = self.split.iter();
        one.into_iter()
            .flat_map(Engine::unfinished)
            .filter(|(id, _)| matches!(id, RequestId::Client(_)))
            .map(|(_, request)| request)
            .chain(split.flat_map(|split| split.unfinished()))
    }

    /// Returns true if there is one member, whose events and commands are the volume's.
    #[inline]
    pub fn is_one(&self) -> bool {
        self.split.is_none()
    }

    /// Returns the member with the earliest wake-up, the first of several; the first member if none waits.
    #[inline(always)]
    pub fn wakes(&self) -> Member {
        if self.split.is_none() {
            return Member(0);
        }
        let times = self.split.iter().flat_map(|split| &split.wakes);
        let first = (0..).zip(times).min_by_key(|(_, at)| **at);
        Member(first.map_or(0, |(member, _)| member))
    }

    /// Returns the earliest wake-up of an engine; [`Time::NEVER`] if there is none.
    #[inline(always)]
    pub fn next_wakeup(&self) -> Time {
        match &self.split {
            None => self.engines.earliest(Engine::next_wakeup),
            Some(split) => split.wakes.iter().copied().fold(Time::NEVER, Time::min),
        }
    }

    /// Notes that a member has been polled until it had no more commands.
    pub fn polled(&mut self, member: Member) {
        if let Some(split) = &mut self.split {
            let wakes = self.engines[member.index()].next_wakeup();
            split.wakes[member.index()] = wakes.unwrap_or(Time::NEVER);
            split.polled[member.index()] = true;
        }
    }

    /// Returns true, once, if a member was polled. A volume of one member always returns true.
    #[inline(always)]
    pub fn take_polled(&mut self, index: usize) -> bool {
        let split = self.split.as_mut();
        split.is_none_or(|split| std::mem::take(&mut split.polled[index]))
    }

    #[inline(always)]
    pub fn handle(&mut self, now: Time, member: Member, event: &Event) {
        self.engines[member.index()].note(now, event);
        if let Some(split) = &mut self.split {
            split.to_poll.push_back(member);
        }
    }

    /// Polls a member after its scheduler or its gate was swapped.
    pub fn swapped(&mut self, member: Member) {
        if let Some(split) = &mut self.split {
            // A new gate may have other lanes, so the members have to be notified again.
            split.told = 0;
            split.to_poll.push_back(member);
        }
    }

    /// Returns the next member that may have commands.
    pub fn next_to_poll(&mut self) -> Option<Member> {
        self.split.as_mut()?.to_poll.pop_front()
    }

    /// Takes an event of clients. Each member gets its events by [`Volume::next_event`].
    pub fn ask(&mut self, now: Time, event: Event) {
        let Some(split) = &mut self.split else {
            return;
        };
        match event {
            Event::Arrived(arrival) => split.arrived(now, arrival),
            // A mirror chooses the member when the request arrives.
            Event::Foretold(_) if split.mirror.is_some() => {}
            Event::Foretold(request) => {
                let mut rest = request.extent;
                while let Some((member, extent)) = take_first(&*split.map, &mut rest) {
                    let event = Event::Foretold(Foretold { extent, ..request });
                    split.inbox.push_back((member, event, None));
                }
            }
            event => unreachable!("clients do not cause {event:?}"),
        }
    }

    /// Takes the end of a burst of a client whose part of the volume begins at `place`.
    pub fn unplug(&mut self, place: Lba) {
        if let Some(split) = &mut self.split {
            let members = split.map.concerned(place).map(Member);
            let events = members.map(|member| (member, Event::Unplugged, None));
            split.inbox.extend(events);
        }
    }

    /// Returns the next event for a member. Call this when [`Volume::next_to_poll`] has returned `None`, and poll again
    /// after each event.
    pub fn next_event(&mut self) -> Option<(Member, Event, Option<Part>)> {
        let split = self.split.as_mut()?;
        if let Some(event) = split.inbox.pop_front() {
            return Some(event);
        }
        let (member, event) = split.hand_on_rank(&self.engines)?;
        Some((member, event, None))
    }

    /// Returns the client's request that a part belongs to.
    pub fn whole_of(&self, part: &Part) -> Option<&Request<()>> {
        let split = self.split.as_ref()?;
        let whole = *split.parts.get(part.id as usize)?;
        Some(&split.wholes[whole as usize].request)
    }

    /// Returns origin and class of each request that waits in the volume for a flush.
    pub fn behind(&self) -> impl Iterator<Item = (Origin, Class)> {
        let behind = self.split.iter().flat_map(|split| &split.behind);
        behind.map(|(_, arrival)| (arrival.origin, arrival.class))
    }

    /// Notes the end of a part at a member. Returns the end of the client's request if this was the last part.
    pub fn finished(&mut self, member: Member, done: &Finished) -> Option<Finished> {
        self.split.as_mut()?.finished(member, done)
    }
}

/// The bit of a member; 0 beyond [`MEMBERS_MAX`].
fn bit(member: u16) -> u64 {
    1_u64.checked_shl(member.into()).unwrap_or_default()
}

/// Takes the first run of sectors on one member off `rest`.
fn take_first(map: &dyn Map, rest: &mut Extent) -> Option<(Member, Extent)> {
    if rest.is_empty() {
        return None;
    }
    let (member, there) = map.first(*rest);
    assert!(
        !there.is_empty() && there.len <= rest.len && member.0 < map.members(),
        "the map puts {rest} at {there} of member {}",
        member.0
    );
    rest.start = rest.start + there.len;
    rest.len = Sectors::new(rest.len.get() - there.len.get());
    Some((member, there))
}

/// Returns the worse of two outcomes. A medium error is the least bad, since its effect is known. A timeout is the
/// worst, since the command may still take effect.
fn worse(one: Outcome, other: Outcome) -> Outcome {
    let rank = |outcome| match outcome {
        Outcome::Done => 0,
        Outcome::MediumError => 1,
        Outcome::DeviceError => 2,
        Outcome::TimedOut => 3,
    };
    core::cmp::max_by_key(one, other, |outcome| rank(*outcome))
}

/// A client's request as it arrived.
fn request(arrived: Time, arrival: &Arrival) -> Request<()> {
    Request {
        tag: (),
        op: arrival.op,
        extent: arrival.extent,
        flags: arrival.flags,
        origin: arrival.origin,
        class: arrival.class,
        arrival: arrival.since.unwrap_or(arrived),
    }
}

/// Removes the flag for a flush before a write. The volume does these flushes itself, since they may concern several
/// members.
fn without_preflush(flags: Flags) -> Flags {
    let bits = flags.bits() & !Flags::PREFLUSH.bits();
    Flags::from_bits(bits).unwrap_or(Flags::NONE)
}

impl Split {
    fn unfinished(&self) -> impl Iterator<Item = Request<()>> {
        let begun = self.wholes.iter().filter(|whole| whole.left > 0);
        let behind = self.behind.iter();
        begun
            .map(|whole| whole.request)
            .chain(behind.map(|(arrived, arrival)| request(*arrived, arrival)))
    }

    /// Returns an event that notifies a member of a request that waits here for the flush. The request outranks all
    /// requests that the member knows to wait for the flush.
    fn hand_on_rank(&mut self, engines: &Few<Engine>) -> Option<(Member, Event)> {
        if self.told < self.behind.len() && !engines.iter().any(Engine::may_lend) {
            self.told = self.behind.len();
        }
        while let Some((_, arrival)) = self.behind.get(self.told) {
            let (origin, class, own) = (arrival.origin, arrival.class, self.members_of(arrival));
            let all = (0..).map(Member).zip(engines);
            let mut members = all.filter(|(member, _)| own & bit(member.0) != 0);
            if let Some((member, _)) = members.find(|(_, engine)| engine.lends(origin, class)) {
                return Some((member, Event::Behind { origin, class }));
            }
            self.told += 1;
        }
        None
    }

    fn arrived(&mut self, now: Time, arrival: Arrival) {
        let own = match self.blocked {
            0 => 0,
            _ => self.members_of(&arrival),
        };
        match self.blocked & own {
            0 => self.admit(now, arrival),
            _ => {
                self.blocked |= own;
                self.behind.push_back((now, arrival));
            }
        }
    }

    /// Returns the members that a request concerns, as bits: all members from the first sector's to the last sector's.
    fn members_of(&self, arrival: &Arrival) -> u64 {
        let extent = arrival.extent;
        let first = self.map.concerned(extent.start);
        let last = match extent.is_empty() {
            true => first.clone(),
            false => self.map.concerned(extent.end() - Sectors::new(1)),
        };
        (first.start.min(last.start)..first.end.max(last.end))
            .fold(0, |all, member| all | bit(member))
    }

    /// Admits held requests that no flush blocks any longer, in order of arrival.
    fn release(&mut self) {
        self.told = 0;
        let of_flushes = self.flushes.iter();
        self.blocked = of_flushes.fold(0, |all, (_, members)| all | members);
        let all = bit(self.map.members()).wrapping_sub(1);
        let mut next = 0;
        while self.blocked != all
            && let Some((_, arrival)) = self.behind.get(next)
        {
            let own = self.members_of(arrival);
            if self.blocked & own != 0 {
                self.blocked |= own;
                next += 1;
            } else if let Some((arrived, arrival)) = self.behind.remove(next) {
                self.admit(arrived, arrival);
            }
        }
    }

    fn admit(&mut self, arrived: Time, arrival: Arrival) {
        let RequestId::Client(id) = arrival.id else {
            panic!(
                "a job in the background asks a member, not the volume: {}",
                arrival.id
            );
        };
        let request = request(arrived, &arrival);
        let preflush = arrival.op != Op::Flush && arrival.flags.has(Flags::PREFLUSH);
        let whole = Whole {
            id,
            request,
            since: arrival.since,
            left: 0,
            outcome: Outcome::Done,
            issued: arrived,
            phase: if preflush {
                SplitPhase::Flush
            } else {
                SplitPhase::Last
            },
        };
        let number = match self.free_wholes.pop() {
            Some(number) => {
                self.wholes[number as usize] = whole;
                number
            }
            None => {
                self.wholes.push(whole);
                self.wholes.len() as u32 - 1
            }
        };
        if preflush || arrival.op == Op::Flush {
            let members = self.members_of(&arrival);
            self.flushes.push((number, members));
            self.blocked |= members;
            for member in (0..self.map.members()).filter(|member| members & bit(*member) != 0) {
                self.add_part(number, Member(member), Op::Flush, Extent::default(), None);
            }
        } else {
            self.begin(number, SplitPhase::Read);
        }
    }

    /// Adds the parts of a phase behind the flush. A phase of reads without reads is skipped.
    fn begin(&mut self, number: u32, phase: SplitPhase) {
        let Request { op, extent, .. } = self.wholes[number as usize].request;
        let mut added = std::mem::take(&mut self.added);
        if op == Op::Write {
            self.map.add_to_write(extent, &mut added);
        }
        let reads = phase == SplitPhase::Read && self.add_more(number, Op::Read, &added);
        if !reads {
            self.add_parts(number);
            self.add_more(number, Op::Write, &added);
        }
        self.wholes[number as usize].phase = match reads {
            true => SplitPhase::Read,
            false => SplitPhase::Last,
        };
        added.clear();
        self.added = added;
    }

    /// Adds a part for each of these accesses that does `op`. Returns true if there is one.
    fn add_more(&mut self, number: u32, op: Op, added: &[Added]) -> bool {
        let mut any = false;
        for access in added.iter().filter(|access| access.op == op) {
            any = true;
            self.add_part(number, access.member, op, access.extent, None);
        }
        any
    }

    fn add_parts(&mut self, number: u32) {
        let Request { op, extent, .. } = self.wholes[number as usize].request;
        if let Some(mirror) = &mut self.mirror {
            let members = match op {
                Op::Read => {
                    let member = mirror.choose(extent).0;
                    member..member + 1
                }
                _ => 0..self.map.members(),
            };
            for member in members {
                self.add_part(number, Member(member), op, extent, Some(Sectors::ZERO));
            }
            return;
        }
        let mut rest = extent;
        let mut offset = Sectors::ZERO;
        while let Some((member, there)) = take_first(&*self.map, &mut rest) {
            self.add_part(number, member, op, there, Some(offset));
            offset += there.len;
        }
    }

    /// Adds a part. `offset` is its distance from the start of the client's request; `None` for a flush and for an access
    /// that the layout adds.
    fn add_part(
        &mut self,
        number: u32,
        member: Member,
        op: Op,
        extent: Extent,
        offset: Option<Sectors>,
    ) {
        if let Some(mirror) = &mut self.mirror {
            mirror.begins(member, extent);
        }
        let whole = &mut self.wholes[number as usize];
        whole.left += 1;
        let id = match self.free_parts.pop() {
            Some(id) => {
                self.parts[id as usize] = number;
                id
            }
            None => {
                self.parts.push(number);
                self.parts.len() as u32 - 1
            }
        };
        let request = whole.request;
        let part = Part {
            id: u64::from(id),
            of: whole.id,
            offset: offset.unwrap_or_default(),
            extent,
            added: (offset.is_none() && op != Op::Flush).then_some(op),
        };
        let event = Event::Arrived(Arrival {
            id: RequestId::Client(part.id),
            op,
            extent,
            flags: match part.added {
                Some(Op::Read) => Flags::NONE,
                _ => without_preflush(request.flags),
            },
            origin: request.origin,
            class: request.class,
            since: whole.since,
        });
        self.inbox.push_back((member, event, Some(part)));
    }

    fn finished(&mut self, member: Member, done: &Finished) -> Option<Finished> {
        if let Some(mirror) = &mut self.mirror {
            mirror.ends(member, done.request.extent);
        }
        let number = self.parts[done.id as usize];
        self.free_parts.push(done.id as u32);
        let whole = &mut self.wholes[number as usize];
        whole.left -= 1;
        whole.outcome = worse(whole.outcome, done.outcome);
        whole.issued = whole.issued.max(done.issued);
        if whole.left > 0 {
            return None;
        }
        let whole = *whole;
        let goes_on = whole.phase != SplitPhase::Last && whole.outcome == Outcome::Done;
        match whole.phase {
            SplitPhase::Flush if goes_on => self.begin(number, SplitPhase::Read),
            SplitPhase::Read if goes_on => self.begin(number, SplitPhase::Last),
            _ => self.free_wholes.push(number),
        }
        let flush = self.flushes.iter().position(|(flush, _)| *flush == number);
        if let Some(flush) = flush {
            self.flushes.swap_remove(flush);
            self.release();
        }
        (!goes_on).then_some(Finished {
            id: whole.id,
            outcome: whole.outcome,
            request: whole.request,
            issued: whole.issued,
            surprise: None,
        })
    }
}
