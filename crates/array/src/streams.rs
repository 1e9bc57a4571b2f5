//! Virtual streams in the addresses of the array, and their physical streams on each disk.

use headtime_engine::Member;
use headtime_sched::StreamRule;
use headtime_units::{Extent, Lba, Nanos, Time};

/// Largest number of streams that are followed at a time. If more clients have requests without a parent outstanding,
/// the further requests have no stream.
pub(crate) const STREAMS_MAX: usize = 256;

/// Time for which a stream is unusable after one of its physical streams has broken. The paper gives no end to this
/// state. Without an end, readers with 128 KiB of read-ahead lose a sixth of their throughput.
const UNUSABLE_FOR: Nanos = Nanos::from_secs(1);

/// Newest request of a stream, and the stream's size.
///
/// `outstanding = 0` ⇒ `since` is the end of the newest request. `size = 0` ⇔ there is no stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tail {
    /// Address behind the last sector of the newest request.
    end: Lba,
    /// Place of `end` on each disk.
    place: Lba,
    /// Number of requests that have not ended.
    pub outstanding: u32,
    /// Time at which the newest of the ended requests ended.
    since: Time,
    /// Number of steps. In the array each part is a step. On a disk, parts that arrive while none ends are one step.
    pub size: u64,
    /// True if a request has ended since the last step.
    ended: bool,
}

/// Relation of a request to the newest request of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Child {
    /// The request is the child of the newest request.
    Yes,
    /// The request is a child by the second chance, which begins when the first is over. The size falls back to the
    /// threshold.
    ByChance,
    No,
}

impl Tail {
    /// Returns true if a request at `start` continues an outstanding request.
    fn is_continued_by(&self, start: Lba) -> bool {
        self.outstanding > 0 && self.end == start
    }

    /// Decides if a request at `start` is a child. The request comes `waited` after the newest request and takes
    /// `service`. The sum of both must stay below `limit`, unless the request continues an outstanding request or gets
    /// the second chance.
    fn weigh(
        &self,
        rule: &StreamRule,
        start: Lba,
        (waited, service): (Nanos, Nanos),
        limit: Nanos,
    ) -> Child {
        let cost = waited.saturating_add(service);
        if cost < limit || self.is_continued_by(start) {
            return Child::Yes;
        }
        let is_over = waited >= limit.saturating_sub(rule.least());
        match rule.second_chance(self.size, limit) {
            Some(longer) if is_over && cost < longer => Child::ByChance,
            _ => Child::No,
        }
    }

    /// Makes a request that ends at address `end` the newest. A child counts as a step if a request has ended since the
    /// last step, or if `each` is true.
    fn extend(&mut self, rule: &StreamRule, child: Child, end: Lba, each: bool) {
        match child {
            Child::Yes => {}
            Child::ByChance => self.size = rule.threshold(),
            Child::No => (self.size, self.ended) = (1, false),
        }
        let ended = std::mem::take(&mut self.ended);
        self.size += u64::from(ended || (each && child != Child::No));
        (self.end, self.place) = (end, rule.place(end));
    }

    fn done(&mut self, now: Time) {
        self.outstanding -= 1;
        (self.ended, self.since) = (true, now);
    }
}

/// Part of a virtual stream on one disk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Physical {
    pub tail: Tail,
    /// Total time with requests of the virtual stream outstanding on any disk, up to the newest completion on this disk.
    outstanding_at: Nanos,
    /// Upper limit of the cost of the next request. `None` until the disk's next decision.
    pub limit: Option<Nanos>,
    /// True if the stream is served and the disk's last command was of the stream. The head is then at the stream.
    pub has_head: bool,
}

impl Physical {
    /// Address behind the last sector of the newest request.
    pub fn end(&self) -> Lba {
        self.tail.end
    }

    /// Gives the stream its second chance, if the stream has one. Returns true in that case.
    pub fn second_chance(&mut self, rule: &StreamRule) -> bool {
        let limit = self.limit.unwrap_or_default();
        let longer = rule.second_chance(self.tail.size, limit);
        if longer.is_some() {
            (self.limit, self.tail.size) = (longer, rule.threshold());
        }
        longer.is_some()
    }
}

/// A stream in the addresses of the array.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    /// Number of the stream among all streams so far. An index in the table is reused.
    pub serial: u64,
    pub tail: Tail,
    /// Physical stream on each member.
    pub physical: Vec<Physical>,
    /// Total time with requests outstanding, up to `outstanding_from`.
    outstanding: Nanos,
    outstanding_from: Time,
    pub unusable_until: Time,
    /// Start of the last slice.
    pub served: Option<Time>,
    /// Time at which the last head came to the stream.
    heads_from: Time,
}

impl Stream {
    fn outstanding(&self, now: Time) -> Nanos {
        match self.tail.outstanding {
            0 => self.outstanding,
            _ => self.outstanding + now.saturating_since(self.outstanding_from),
        }
    }

    /// True if each head is at the stream. Arrivals then count at their actual times. Before, the time with requests of
    /// the stream outstanding does not count as a wait.
    fn has_heads(&self) -> bool {
        self.physical.iter().all(|physical| physical.has_head)
    }

    /// Time since the newest request on a disk that does not count as a wait.
    fn uncounted(&self, now: Time, physical: &Physical) -> Nanos {
        match self.has_heads() {
            true => self.heads_from.saturating_since(physical.tail.since),
            false => self
                .outstanding(now)
                .saturating_sub(physical.outstanding_at),
        }
    }

    /// Latest time for the next request on a disk while the stream is served. `None` if there is no such limit yet.
    pub fn deadline(&self, physical: &Physical, rule: &StreamRule) -> Option<Time> {
        let limit = physical.limit?;
        let tail = &physical.tail;
        if tail.outstanding > 0 || (self.tail.outstanding > 0 && !self.has_heads()) {
            return None;
        }
        let limit = limit.saturating_sub(rule.least());
        // Either nothing is outstanding, or all time counts as a wait.
        let limit = limit.saturating_add(self.uncounted(tail.since, physical));
        Some(tail.since.saturating_add(limit))
    }

    /// Makes a request's part on a member the newest. Returns false if the physical stream on the member breaks.
    pub fn part(
        &mut self,
        now: Time,
        rule: &StreamRule,
        (member, extent): (Member, Extent),
        pending: Option<Lba>,
    ) -> bool {
        let physical = &self.physical[member.index()];
        let tail = &physical.tail;
        let (waited, limit) = match tail.outstanding {
            0 => {
                let waited = now.saturating_since(tail.since);
                let waited = waited.saturating_sub(self.uncounted(now, physical));
                let limit = physical
                    .limit
                    .unwrap_or_else(|| rule.limit(tail.end, pending));
                (waited, limit)
            }
            _ => (Nanos::ZERO, rule.limit_in_flight(tail.end, pending)),
        };
        let child = match tail.size {
            0 => Child::No,
            _ => {
                let service = rule.service(tail.place, extent.start);
                tail.weigh(rule, extent.start, (waited, service), limit)
            }
        };
        let breaks = child == Child::No && tail.size > 0;
        let physical = &mut self.physical[member.index()];
        physical.tail.extend(rule, child, extent.end(), false);
        physical.tail.outstanding += 1;
        physical.limit = None;
        if self.tail.outstanding == 0 {
            self.outstanding_from = now;
        }
        self.tail.outstanding += 1;
        !breaks
    }

    /// Notes that a part on a member has ended. `serves` is true while the stream is served and the member's last
    /// command is of the stream. Returns true if no other part is outstanding on the member.
    pub fn part_done(&mut self, now: Time, member: Member, serves: bool) -> bool {
        let outstanding = self.outstanding(now);
        self.tail.done(now);
        if self.tail.outstanding == 0 {
            self.outstanding = outstanding;
        }
        let physical = &mut self.physical[member.index()];
        let comes = serves && !physical.has_head;
        physical.has_head = serves;
        physical.tail.done(now);
        physical.outstanding_at = outstanding;
        let is_last = physical.tail.outstanding == 0;
        if comes && self.has_heads() {
            self.heads_from = now;
        }
        is_last
    }

    /// Returns true if each disk has a physical stream.
    pub fn is_ready(&self, now: Time, whole: &StreamRule, disk: &StreamRule) -> bool {
        let established = |physical: &Physical| disk.is_established(physical.tail.size);
        whole.is_established(self.tail.size)
            && now >= self.unusable_until
            && self.physical.iter().all(established)
    }

    pub fn make_unusable(&mut self, now: Time) {
        self.unusable_until = now.saturating_add(UNUSABLE_FOR);
    }
}

/// All streams that are followed.
#[derive(Debug)]
pub(crate) struct Streams {
    all: Vec<Stream>,
    members: usize,
    longest: Nanos,
    serials: u64,
    /// Number of streams that reached the threshold so far.
    pub established: u64,
}

impl Streams {
    pub fn new(members: usize, rule: &StreamRule) -> Streams {
        let longest = rule.longest();
        let longest = rule.second_chance(u64::MAX, longest).unwrap_or(longest);
        Streams {
            all: Vec::with_capacity(STREAMS_MAX),
            members,
            longest,
            serials: 0,
            established: 0,
        }
    }

    pub fn get(&self, index: usize) -> &Stream {
        &self.all[index]
    }

    /// Number of table entries used so far.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    pub fn get_mut(&mut self, index: usize) -> &mut Stream {
        &mut self.all[index]
    }

    /// Counts a further part of a client's request. md of Linux 2.6.31 would have had a request for each part.
    pub fn further_part(&mut self, index: usize, rule: &StreamRule) {
        let tail = &mut self.all[index].tail;
        tail.size += 1;
        self.established += u64::from(tail.size == rule.threshold());
    }

    /// Takes a client's request. The request goes to some disk first. `pending` is the request that this disk would
    /// serve next: its address in the array, and its stream. The entry of the stream `held` is not reused. Returns the
    /// stream of the request, or `None` if all entries are in use.
    pub fn request(
        &mut self,
        now: Time,
        rule: &StreamRule,
        extent: Extent,
        pending: Option<(Lba, Option<usize>)>,
        held: Option<usize>,
    ) -> Option<usize> {
        let start = extent.start;
        let place = rule.place(start);
        let pending = pending.map(|(at, of)| (rule.place(at), of));
        let (mut nearest, mut free) = (None, None);
        for (index, stream) in self.all.iter().enumerate() {
            let tail = &stream.tail;
            let waited = match tail.outstanding {
                0 => now.saturating_since(tail.since),
                _ => Nanos::ZERO,
            };
            if waited > self.longest {
                free = free.or(Some(index).filter(|_| held != Some(index)));
                continue;
            }
            let service = rule.service(tail.place, place);
            let order = (service, u64::MAX - tail.size, u64::MAX - stream.serial);
            if nearest.is_some_and(|(other, _, _)| order > other) {
                continue;
            }
            let own = pending.is_some_and(|(_, of)| of == Some(index));
            let to_beat = pending.filter(|_| !own).map(|(at, _)| at);
            let limit = match tail.outstanding > 0 && !own {
                true => rule.limit_in_flight(tail.place, to_beat),
                false => rule.limit(tail.place, to_beat),
            };
            let child = tail.weigh(rule, start, (waited, service), limit);
            if child != Child::No {
                nearest = Some((order, index, child));
            }
        }
        if let Some((_, index, child)) = nearest {
            let tail = &mut self.all[index].tail;
            let before = rule.is_established(tail.size);
            tail.extend(rule, child, extent.end(), true);
            self.established += u64::from(!before && rule.is_established(tail.size));
            return Some(index);
        }
        let index = match free {
            Some(index) => index,
            None if self.all.len() < STREAMS_MAX => {
                self.all.push(Stream::default());
                self.all.len() - 1
            }
            None => return None,
        };
        self.serials += 1;
        let stream = &mut self.all[index];
        let mut physical = std::mem::take(&mut stream.physical);
        physical.clear();
        physical.resize(self.members, Physical::default());
        *stream = Stream {
            serial: self.serials,
            physical,
            ..Stream::default()
        };
        stream.tail.extend(rule, Child::No, extent.end(), true);
        Some(index)
    }
}
