//! Virtual streams in the addresses of the array, and the physical streams that they have on each disk.

use headtime_engine::Member;
use headtime_sched::StreamRule;
use headtime_units::{Extent, Lba, Nanos, Time};

/// Most streams that are followed at a time. More requests without a parent are outstanding only with as many clients;
/// these go on without a stream.
pub(crate) const STREAMS_MAX: usize = 256;

/// Time for which a stream is unusable after one of its physical streams has broken. The paper has no end. Our choice:
/// without end, readers with 128 KiB of read-ahead lose a sixth.
const UNUSABLE: Nanos = Nanos::from_secs(1);

/// The newest request of a stream, and the stream's size.
///
/// `outstanding = 0` ⇒ `since` is the end of the newest request. `size = 0` ⇔ there is no stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tail {
    /// Behind the last sector of the newest request.
    end: Lba,
    /// Place of that sector on each disk.
    place: Lba,
    /// Requests that have not ended.
    pub outstanding: u32,
    /// End of the newest of the requests that have ended.
    since: Time,
    /// Steps so far: in the array each part is a step; on a disk, parts that come while none ends are one step.
    pub size: u64,
    /// True if a request has ended since the last step.
    ended: bool,
}

/// Relation of a request to the newest request of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Child {
    /// The child of the newest request.
    Yes,
    /// The child by the second chance, which begins when the first is over: the size falls back to the threshold.
    ByChance,
    No,
}

impl Tail {
    /// Returns true if a request at `start` continues an outstanding one.
    fn is_continued_by(&self, start: Lba) -> bool {
        self.outstanding > 0 && self.end == start
    }

    /// Weighs a request at `start` that comes `waited` after the newest request and takes `service`. `limit` is the
    /// service time to beat.
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

    /// Takes a request that ends at `end` as the newest. A child is a step if a request has ended since the last step, or
    /// if `each` is.
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

/// The part of a virtual stream on one disk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Physical {
    pub tail: Tail,
    /// Time for which the virtual stream had been outstanding when the newest request ended.
    outstanding_at: Nanos,
    /// Service time that the next request has to beat; `None` until the disk's next decision.
    pub limit: Option<Nanos>,
    /// True if the stream is served and the disk's last command was of the stream: the head is at the stream.
    pub has_head: bool,
}

impl Physical {
    /// Behind the last sector of the newest request.
    pub fn end(&self) -> Lba {
        self.tail.end
    }

    /// Gives the stream its second chance, if there is one.
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
    /// Number among all streams so far. A place in the table is used again.
    pub serial: u64,
    pub tail: Tail,
    /// By member.
    pub physical: Vec<Physical>,
    /// Time for which requests were outstanding, up to `outstanding_from`.
    outstanding: Nanos,
    outstanding_from: Time,
    pub unusable_until: Time,
    /// Beginning of the last slice.
    pub served: Option<Time>,
    /// When the last head came to the stream.
    heads_from: Time,
}

impl Stream {
    fn outstanding(&self, now: Time) -> Nanos {
        match self.tail.outstanding {
            0 => self.outstanding,
            _ => self.outstanding + now.saturating_since(self.outstanding_from),
        }
    }

    /// True if each head is at the stream, so that the actual time of an arrival counts. Before, the time in which
    /// requests of the stream are outstanding does not count.
    fn has_heads(&self) -> bool {
        self.physical.iter().all(|physical| physical.has_head)
    }

    /// Time since the newest request on a disk that is not counted as a wait.
    fn uncounted(&self, now: Time, physical: &Physical) -> Nanos {
        match self.has_heads() {
            true => self.heads_from.saturating_since(physical.tail.since),
            false => self
                .outstanding(now)
                .saturating_sub(physical.outstanding_at),
        }
    }

    /// End of the time in which the next request has to come on a disk, while the stream is served; `None` while there is
    /// none.
    pub fn deadline(&self, physical: &Physical, rule: &StreamRule) -> Option<Time> {
        let limit = physical.limit?;
        let tail = &physical.tail;
        if tail.outstanding > 0 || (self.tail.outstanding > 0 && !self.has_heads()) {
            return None;
        }
        let limit = limit.saturating_sub(rule.least());
        // Nothing is outstanding, or nothing goes uncounted.
        let limit = limit.saturating_add(self.uncounted(tail.since, physical));
        Some(tail.since.saturating_add(limit))
    }

    /// Takes a request's part on a member as the newest. Returns false if the physical stream on the member breaks.
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

    /// A part on a member has ended. `serves` is true while the stream is served and the
    /// last command of the member is of the stream. Returns true if no other part is
    /// outstanding on the member.
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
        self.unusable_until = now.saturating_add(UNUSABLE);
    }
}

/// All streams that are followed.
#[derive(Debug)]
pub(crate) struct Streams {
    all: Vec<Stream>,
    members: usize,
    longest: Nanos,
    serials: u64,
    /// Streams that reached the threshold so far.
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

    /// Places that were used so far.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    pub fn get_mut(&mut self, index: usize) -> &mut Stream {
        &mut self.all[index]
    }

    /// Takes a further part of a client's request: md of Linux 2.6.31 would have had a request for each part.
    pub fn further_part(&mut self, index: usize, rule: &StreamRule) {
        let tail = &mut self.all[index].tail;
        tail.size += 1;
        self.established += u64::from(tail.size == rule.threshold());
    }

    /// Takes a client's request. `pending` is the request that the disk would serve next to which the request goes first:
    /// address in the array, and stream. The place of the stream `held` is not used again. Returns the stream of the request;
    /// `None` if all places are taken.
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
