//! Linux's anticipatory scheduler of 2.6.31.
//!
//! # Rule
//!
//! The scheduler separates synchronous requests (reads, and writes that a client waits for) from
//! asynchronous requests. Each kind is sorted by address and by age, and is served in batches. A batch of
//! synchronous requests lasts while only this kind is queued, and then for `read_batch_expire`. A batch of
//! asynchronous requests lasts for `write_batch_expire` or a number of requests. This number adapts so that
//! both limits are reached at the same time. A new batch begins when the drive has finished all requests of
//! the old batch. If the drive is empty at the change, the new batch begins at the oldest request.
//!
//! Inside a batch, the next request is the cheapest one to reach from the end of the last request. A seek
//! ahead costs its distance. A seek of up to 512 MiB back costs twice its distance. A request farther
//! behind is left for the next sweep. At most once in `read_expire` (`write_expire`) the scheduler checks
//! the age of the oldest request, and serves it if it has expired.
//!
//! Before the scheduler serves a synchronous request, it considers the process whose synchronous request
//! was served last. It waits for the next request of that process, for up to `antic_expire` after the last
//! request is done, unless one of these holds:
//!
//! 1. The request to serve is from this process, or the process has another request queued.
//! 2. The scheduler has waited that long already.
//! 3. The request is close. The limit is 4 MiB ahead of the end of the last request or 2 MiB behind, and
//!    doubles during a wait with each tick since the completion. A request nearer than this process's mean
//!    seek distance is close too.
//! 4. The process thinks, on average, for longer than `antic_expire` before its next request.
//! 5. The oldest request has expired, and its age is due for a check. An expiry does not end a wait under
//!    way.
//!
//! While the request of the process is in the drive, the time limit does not run. It starts with the
//! completion. A request that arrives ends the wait if one of the conditions holds for it. After a wait in
//! vain, the next request of any process goes, and the request served last decides which process to wait
//! for next. A close request of another process counts for the statistics of the awaited process. The owner
//! of the close request is the next process to wait for.
//!
//! Processes are distinguished by [`Origin::process`](crate::Origin::process). If all synchronous requests
//! name one process, the scheduler holds back only writes of other processes. It is then a one-way elevator
//! with batches and expiries.
//!
//! Times are in ticks of a timer ([`Hz`]), with all consequences. At 250 ticks per second a wait ends with
//! the current tick, after 0 to 4 ms. Averages are integers with the kernel's rounding. The mean think time
//! of a process that never thinks starts at 4, 2, 1, 1, 1 and then 0 ticks. At 250 ticks per second, where
//! the limit is 1, the scheduler therefore does not wait for this process after its second and third
//! request.
//!
//! # Bound
//!
//! Soft, and in time: once per `read_expire` or `write_expire` the oldest request of its kind goes out of
//! turn. The number of times that a request is overtaken has no bound.
//!
//! # What is simplified
//!
//! - A request without room in the drive yet counts as started, as with a Linux driver that takes one
//!   request ahead. The state between handing out and starting does not exist.
//! - Processes do not exit. The kernel's statistics of exits have no effect until the first exit, and are
//!   left out. After its exit, a process is waited for once more, like a process that thinks.
//! - The scheduler remembers 4096 processes. Above this number, it forgets the process that has been
//!   without requests, queued or in the drive, for longest. The kernel remembers a process for as long as
//!   it lives.
//! - When two queued requests become one, no completion is counted for the owner of the absorbed request.
//!   The kernel counts a completion, for the owner's think time.
//! - Two requests of one kind that start at the same address are both queued. The kernel hands the older
//!   one out at once.
//! - An expiry counts from the arrival of a request, in the kernel from its insertion. The two differ for a
//!   request that overlaps another and is held back.
//! - Spans are rounded down to whole ticks, but not below one. The kernel rounds up values that are set by
//!   hand.
//! - In the kernel, the awaited process may queue a request although the queue is full. Queues are not
//!   limited here.
//! - The first tick of the run is the tick at which the scheduler was switched on.
//! - A forced dispatch in front of a flush sits a wait out. Linux hands everything out at once.
//!
//! # Tunables
//!
//! - `hz` (ticks per second, 100 to 1000; default 250): how often the kernel's timer ticks. Higher
//!   makes waits longer on average and more even: 6 ms at 1000, 0 to 4 ms at 250, 0 to 10 ms at 100.
//! - `read_expire` (duration; default 125ms): the age at which a synchronous request expires, and how
//!   often that is looked at. With several streams it acts as the time slice of each. Lower favours
//!   old requests over short seeks and over waiting. 0 serves in order of arrival once every request
//!   is more than a tick old.
//! - `write_expire` (duration; default 250ms): the same for asynchronous requests.
//! - `read_batch_expire` (duration; default 500ms): how long writes wait for a batch of reads. Higher
//!   favours reads. With 0 a batch ends with the tick.
//! - `write_batch_expire` (duration; default 125ms): how long reads wait for a batch of writes. Higher
//!   favours writes. With 0 a batch ends with the tick.
//! - `antic_expire` (duration; default 6667us): how long it waits. Higher holds the disk for
//!   processes that think for longer, and loses more when they do not come. 0 never waits.
//!
//! # Source
//!
//! Linux 2.6.31, `block/as-iosched.c` and `Documentation/block/as-iosched.txt`; Iyer, Druschel,
//! Anticipatory scheduling, SOSP 2001.
//!
//! # When not to use it
//!
//! If requests do not name their process, or if one process makes many requests at once: the scheduler is
//! then only an elevator. On a drive that orders deep queues itself: the scheduler keeps them shallow.

mod contexts;
#[cfg(test)]
mod tests;

use crate::nearest::LookBack;
use crate::policy::{Built, OptionInfo, Options, Parts, PolicyInfo};
use crate::sorted::Sorted;
use crate::waits::Waits;
use crate::{Dispatch, Entry, Hz, Jiffies, ListId, Request, Scheduler, Tag, WaitStats};
use alloc::vec::Vec;
use contexts::{ContextId, Contexts};
use headtime_units::{Lba, Nanos, Sectors, Time};

pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "anticipatory",
    aliases: &["as"],
    idea: "waits for a reader's next request",
    bound: "one expired request per expiry goes first",
    source: "Linux 2.6.31 block/as-iosched.c; Iyer, Druschel, SOSP 2001",
    avoid: "requests do not say which process they are of, or the drive orders deep queues itself",
    options: AnticipatoryConfig::OPTIONS,
    waits: true,
    ..PolicyInfo::PLAIN
};

pub(crate) fn build<P>(parts: Parts<'_, P>) -> Built {
    let config = AnticipatoryConfig::from_options(&parts.options);
    Built::scheduler(Anticipatory::new(config))
}

/// Reach of a sweep backwards: 512 MiB, at twice the cost.
const LOOK_BACK: LookBack = LookBack {
    most: Sectors::new(1 << 20),
    penalty: 2,
};

/// Distance ahead of the last request within which a request is close, in sectors. Half of this distance
/// counts behind.
const CLOSE_SECTORS: u64 = 8_192;

/// Interval after which the scheduler wants to be called again while it waits for a completion. The
/// completion ends the wait earlier.
const LOOK_AGAIN: Nanos = Nanos::from_secs(1);

/// Tunables of [`Anticipatory`]; the [module](self) explains them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnticipatoryConfig {
    /// Rate of the timer. All times are rounded to its ticks.
    pub hz: Hz,
    /// The age at which a synchronous request expires.
    pub read_expire: Nanos,
    /// The age at which an asynchronous request expires.
    pub write_expire: Nanos,
    /// Length of a batch of synchronous requests while asynchronous requests wait.
    pub read_batch_expire: Nanos,
    /// Length of a batch of asynchronous requests.
    pub write_batch_expire: Nanos,
    /// Longest wait for the next request of a process; 0 for no wait.
    pub antic_expire: Nanos,
}

impl AnticipatoryConfig {
    /// Linux's values. At any tick rate they equal the values that the kernel computes from that rate.
    pub const DEFAULT: AnticipatoryConfig = AnticipatoryConfig {
        hz: Hz::DEFAULT,
        read_expire: Nanos::from_millis(125),
        write_expire: Nanos::from_millis(250),
        read_batch_expire: Nanos::from_millis(500),
        write_batch_expire: Nanos::from_millis(125),
        // A 150th of a second.
        antic_expire: Nanos::from_micros(6_667),
    };

    pub(crate) const OPTIONS: &[OptionInfo] = &[
        OptionInfo::count(
            "hz",
            Self::DEFAULT.hz.get(),
            Hz::RANGE,
            "ticks per second of the timer that all times are rounded down to, but not below one \
             tick; higher makes waits longer on average and more even",
        ),
        OptionInfo::duration(
            "read_expire",
            Self::DEFAULT.read_expire,
            "age at which a synchronous request goes first, and how often that is looked at; with \
             several streams the time slice of each; lower favours old requests over short seeks \
             and waiting; 0 looks every time",
        ),
        OptionInfo::duration(
            "write_expire",
            Self::DEFAULT.write_expire,
            "the same for writes that nobody waits for",
        ),
        OptionInfo::duration(
            "read_batch_expire",
            Self::DEFAULT.read_batch_expire,
            "how long writes wait for a batch of reads; higher favours reads; 0 ends a batch with \
             the tick",
        ),
        OptionInfo::duration(
            "write_batch_expire",
            Self::DEFAULT.write_batch_expire,
            "how long reads wait for a batch of writes; higher favours writes; 0 ends a batch with \
             the tick",
        ),
        OptionInfo::duration(
            "antic_expire",
            Self::DEFAULT.antic_expire,
            "how long to wait for the next request of a process; higher holds the disk for those \
             that think longer and loses more when they do not come; 0 never waits",
        ),
    ];

    pub(crate) fn from_options(options: &Options<'_>) -> AnticipatoryConfig {
        AnticipatoryConfig {
            hz: Hz::new(options.count("hz")).expect("the option's range is that of Hz"),
            read_expire: options.duration("read_expire"),
            write_expire: options.duration("write_expire"),
            read_batch_expire: options.duration("read_batch_expire"),
            write_batch_expire: options.duration("write_batch_expire"),
            antic_expire: options.duration("antic_expire"),
        }
    }
}

impl Default for AnticipatoryConfig {
    fn default() -> AnticipatoryConfig {
        AnticipatoryConfig::DEFAULT
    }
}

/// A kind of request: synchronous if a client waits for the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Async,
    Sync,
}

impl Kind {
    const fn of(request: &Request) -> Kind {
        if request.is_sync() {
            Kind::Sync
        } else {
            Kind::Async
        }
    }

    const fn list(self) -> ListId {
        ListId(self as u8)
    }
}

/// A value for each kind of request.
#[derive(Clone, Copy, Debug)]
struct Each<T> {
    of_async: T,
    of_sync: T,
}

impl<T: Copy> Each<T> {
    const fn both(value: T) -> Each<T> {
        Each {
            of_async: value,
            of_sync: value,
        }
    }
}

impl<T> core::ops::Index<Kind> for Each<T> {
    type Output = T;

    fn index(&self, kind: Kind) -> &T {
        match kind {
            Kind::Async => &self.of_async,
            Kind::Sync => &self.of_sync,
        }
    }
}

impl<T> core::ops::IndexMut<Kind> for Each<T> {
    fn index_mut(&mut self, kind: Kind) -> &mut T {
        match kind {
            Kind::Async => &mut self.of_async,
            Kind::Sync => &mut self.of_sync,
        }
    }
}

/// The times of a configuration, in ticks.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    expire: Each<u64>,
    batch: Each<u64>,
    antic: u64,
    /// Number of ticks after a completion beyond which every request is close.
    close: u64,
}

/// Event that the scheduler waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// No event.
    Off,
    /// The completion of the process's request in the drive.
    Drive,
    /// The next request of the process, until this tick.
    Next(Jiffies),
    /// No event. A wait is over, and the next can begin only after a request is served.
    Finished,
}

/// Linux's anticipatory scheduler of 2.6.31; see the [module](self).
///
/// Invariants: `in_drive_count` is the number of `true` in `in_drive`; `draining` ⇒ `in_drive_count > 0`; `finished` is `Some` ⇒
/// `anticipated` is `Some`; `quota >= 1`.
#[derive(Clone, Debug)]
pub struct Anticipatory {
    hz: Hz,
    ticks: Ticks,
    /// Queued requests, with a list for each [`Kind`].
    sorted: Sorted,
    /// The request that continues the sweep.
    next: Each<Option<Tag>>,
    /// End of the last request.
    last: Each<Lba>,
    contexts: Contexts,
    /// True for each tag that was handed out here and has not come back.
    in_drive: Vec<bool>,
    in_drive_count: usize,
    waiting: Waiting,
    /// The process whose synchronous request was handed out last. `None` after an asynchronous request.
    anticipated: Option<ContextId>,
    /// Time at which the last request of that process came back, since then.
    finished: Option<Jiffies>,
    /// The kind of the batch.
    batch: Kind,
    batch_expires: Jiffies,
    /// True if the batch has changed and waits for the requests of the old batch to come back from the
    /// drive.
    draining: bool,
    /// True if the batch of reads has begun, but no request of the batch has come back. The batch's time does not run
    /// yet.
    fresh: bool,
    /// Last check for expired requests.
    checked: Each<Jiffies>,
    /// Writes left in the batch, out of `quota` per batch.
    writes_left: u64,
    quota: u64,
    /// True if the batch of writes had times without writes. The length of such a batch does not adapt the
    /// quota.
    idled: bool,
    waits: Waits,
    /// The awaited request that arrived during the wait.
    came: Option<Tag>,
}

impl Anticipatory {
    /// Builds a scheduler without requests.
    pub fn new(config: AnticipatoryConfig) -> Anticipatory {
        let hz = config.hz;
        let ticks = Ticks {
            expire: Each {
                of_async: hz.ticks(config.write_expire),
                of_sync: hz.ticks(config.read_expire),
            },
            batch: Each {
                of_async: hz.ticks(config.write_batch_expire),
                of_sync: hz.ticks(config.read_batch_expire),
            },
            antic: hz.ticks(config.antic_expire),
            close: hz.get() / 50,
        };
        Anticipatory {
            hz,
            ticks,
            sorted: Sorted::new(2),
            next: Each::both(None),
            last: Each::both(Lba::ZERO),
            // Thinking counts up to a fiftieth of a second, less a tick.
            contexts: Contexts::new(hz.get() / 50 - 1),
            in_drive: Vec::new(),
            in_drive_count: 0,
            waiting: Waiting::Off,
            anticipated: None,
            finished: None,
            // The first read ends a batch of no writes, as in the original.
            batch: Kind::Async,
            batch_expires: Jiffies::default() + ticks.batch[Kind::Sync],
            draining: false,
            fresh: false,
            checked: Each::both(Jiffies::default()),
            writes_left: 0,
            quota: (ticks.batch[Kind::Async] / 10).max(2),
            idled: false,
            waits: Waits::default(),
            came: None,
        }
    }

    fn count(&self, kind: Kind) -> usize {
        self.sorted.requests().len_of(kind.list())
    }

    fn oldest(&self, kind: Kind) -> &Request {
        let oldest = self.sorted.requests().oldest(kind.list());
        oldest.expect("there are requests of this kind")
    }

    /// Counts the beginning of a wait, unless a wait is already counted.
    fn begin_wait(&mut self) {
        if !self.waits.waiting() {
            self.came = None;
            self.waits.hold();
        }
    }

    /// Ends a wait whose time is over.
    fn time_out(&mut self, now: Jiffies) {
        if matches!(self.waiting, Waiting::Next(until) if until <= now) {
            self.waiting = Waiting::Finished;
        }
    }

    /// Returns true if a check is due and the oldest request of a kind has expired.
    fn overdue(&mut self, now: Jiffies, kind: Kind) -> bool {
        let expire = self.ticks.expire[kind];
        if now.since(self.checked[kind]) < expire {
            return false;
        }
        self.checked[kind] = now;
        let oldest = self.sorted.requests().oldest(kind.list());
        // Strictly later, as in the original.
        oldest.is_some_and(|oldest| now > self.hz.at(oldest.arrival) + expire)
    }

    fn batch_over(&self, now: Jiffies) -> bool {
        let out_of_writes = self.batch == Kind::Async && self.writes_left == 0;
        !self.draining && !self.fresh && (now > self.batch_expires || out_of_writes)
    }

    /// The request to hand out. `None` if nothing is queued or if waiting should pay.
    fn choose(&mut self, now: Jiffies) -> Option<Tag> {
        let reads = self.count(Kind::Sync) > 0;
        let writes = self.count(Kind::Async) > 0;
        if self.batch == Kind::Async && !reads && (self.writes_left == 0 || !writes) {
            self.idled = true;
        }
        let waits = matches!(self.waiting, Waiting::Drive | Waiting::Next(_));
        if !(reads || writes) || waits || self.draining {
            return None;
        }
        let batch = self.batch;
        if !(reads && writes && self.batch_over(now)) {
            let next = self.next[batch];
            if batch == Kind::Sync && self.ticks.antic > 0 {
                if self.overdue(now, Kind::Sync) {
                    return Some(self.oldest(Kind::Sync).tag);
                }
                if self.should_wait(now, next) {
                    self.waiting = match self.finished {
                        None => Waiting::Drive,
                        Some(finished) => Waiting::Next(finished + self.ticks.antic),
                    };
                    return None;
                }
            }
            if let Some(next) = next {
                if !writes {
                    // No writes are queued, so the batch of reads goes on.
                    self.batch_expires = now + self.ticks.batch[Kind::Sync];
                }
                let overdue = self.overdue(now, batch);
                return Some(if overdue {
                    self.oldest(batch).tag
                } else {
                    next
                });
            }
        }
        self.change_batch(now, reads, writes)
    }

    /// Begins a batch of the other kind, or lets the drive finish the old one first.
    fn change_batch(&mut self, now: Jiffies, reads: bool, writes: bool) -> Option<Tag> {
        let to = match self.batch {
            Kind::Async if reads => Kind::Sync,
            Kind::Sync if writes => Kind::Async,
            _ => unreachable!("a batch goes on while there is nothing else"),
        };
        self.batch = to;
        self.draining = true;
        self.checked[to] = now;
        if to == Kind::Async {
            self.fresh = false;
            self.idled = false;
            self.writes_left = self.quota;
        }
        if self.in_drive_count > 0 {
            return None;
        }
        self.draining = false;
        match to {
            Kind::Async => self.batch_expires = now + self.ticks.batch[to],
            Kind::Sync => self.fresh = true,
        }
        Some(self.oldest(to).tag)
    }

    /// Adapts the number of writes in a batch to the length of the last batch.
    fn adapt_quota(&mut self, now: Jiffies) {
        let batch = self.ticks.batch[Kind::Async];
        let took = (now + batch).since(self.batch_expires);
        if took > batch && !self.idled {
            self.quota = match took > batch.saturating_mul(3) {
                true => self.quota / 2,
                false => self.quota - 1,
            };
        } else if took < batch && self.writes_left == 0 {
            self.quota = match batch > took.saturating_mul(3) {
                true => self.quota.saturating_mul(2),
                false => self.quota + 1,
            };
        }
        self.quota = self.quota.max(1);
    }

    /// Returns true if the scheduler should wait rather than serve `next`, the next synchronous request, if
    /// any.
    fn should_wait(&mut self, now: Jiffies, next: Option<Tag>) -> bool {
        // The request handed out last may have been a write.
        let Some(process) = self.anticipated else {
            return false;
        };
        let next = next.map(|next| *self.sorted.requests().get(next));
        self.waiting != Waiting::Finished && !self.ends_wait(now, process, next.as_ref())
    }

    /// Returns true if this request makes a wait for the process pointless.
    fn ends_wait(&mut self, now: Jiffies, id: ContextId, request: Option<&Request>) -> bool {
        let context = self.contexts.get(id);
        if request.is_some_and(|request| request.origin.process == context.process) {
            return true;
        }
        let since = self.finished.map(|finished| now.since(finished));
        if since.is_some_and(|since| since >= self.ticks.antic) || context.queued > 0 {
            return true;
        }
        if let Some(request) = request
            && request.is_sync()
            && self.is_close(now, id, request)
        {
            self.contexts.learn(now, id, request);
            return true;
        }
        context.thinks_longer(self.ticks.antic, &self.contexts.newcomers)
    }

    /// Returns true if a request is near the place where the awaited process would read next.
    fn is_close(&self, now: Jiffies, id: ContextId, request: &Request) -> bool {
        let since = match (self.waiting, self.finished) {
            (Waiting::Off, _) | (_, None) => 0,
            (_, Some(finished)) => now.since(finished),
        };
        if since > 0 && (since > self.ticks.close || since > self.ticks.antic) {
            return true;
        }
        let (last, start) = (self.last[self.batch], request.extent.start);
        let distance = last.distance(start);
        let ahead = CLOSE_SECTORS << since;
        let within = if start < last { ahead / 2 } else { ahead };
        let context = self.contexts.get(id);
        distance.get() <= within || context.seeks_farther(distance, &self.contexts.newcomers)
    }

    /// Returns the cheaper of two requests to reach.
    fn cheaper(&self, kind: Kind, one: Option<Entry>, other: Option<Entry>) -> Option<Entry> {
        match (one, other) {
            (Some(one), Some(other)) => {
                let last = self.last[kind];
                let prefers_other = LOOK_BACK.prefers_other(last, one.lba, other.lba);
                Some(if prefers_other { other } else { one })
            }
            _ => one.or(other),
        }
    }

    /// Returns the request that continues the sweep after the removal of the request that started at `lba`.
    fn successor(&self, kind: Kind, lba: Lba) -> Option<Tag> {
        let index = self.sorted.by_lba(kind.list());
        let above = index.first_at_or_after(lba).or_else(|| index.first());
        let below = index.last_before(lba);
        self.cheaper(kind, above, below).map(|entry| entry.tag)
    }

    fn hand_out(&mut self, tag: Tag) -> Request {
        let request = self.sorted.remove(tag);
        let kind = Kind::of(&request);
        self.waits.end(self.came.take() == Some(tag));
        self.waiting = Waiting::Off;
        self.finished = None;
        self.last[kind] = request.extent.end();
        self.next[kind] = self.successor(kind, request.extent.start);
        let process = self.contexts.hand_out(&request);
        self.anticipated = match kind {
            Kind::Sync => Some(process),
            Kind::Async => {
                self.writes_left = self.writes_left.saturating_sub(1);
                None
            }
        };
        if self.in_drive.len() <= tag.index() {
            self.in_drive.resize(tag.index() + 1, false);
        }
        self.in_drive[tag.index()] = true;
        self.in_drive_count += 1;
        request
    }
}

impl Scheduler for Anticipatory {
    fn insert(&mut self, now: Time, request: Request) {
        let now = self.hz.at(now);
        self.time_out(now);
        let kind = Kind::of(&request);
        self.contexts.insert(now, &request, self.anticipated);
        self.sorted.insert(kind.list(), request);
        let entry = |tag: Tag| Entry {
            lba: self.sorted.requests().get(tag).extent.start,
            tag,
        };
        let (old, new) = (self.next[kind].map(entry), entry(request.tag));
        let next = self.cheaper(kind, old, Some(new));
        self.next[kind] = next.map(|next| next.tag);
        let process = self.anticipated.map(|id| self.contexts.get(id).process);
        if process == Some(request.origin.process) {
            self.came = Some(request.tag);
        }
        if let Waiting::Drive | Waiting::Next(_) = self.waiting
            && let Some(process) = self.anticipated
            && self.ends_wait(now, process, Some(&request))
        {
            self.waiting = Waiting::Finished;
        }
    }

    fn dispatch(&mut self, now: Time) -> Dispatch {
        let tick = self.hz.at(now);
        self.time_out(tick);
        match self.choose(tick) {
            Some(tag) => Dispatch::Request(self.hand_out(tag)),
            None if self.queued() == 0 => {
                self.waits.end(false);
                Dispatch::Empty
            }
            None => Dispatch::IdleUntil(match self.waiting {
                Waiting::Next(until) => {
                    self.begin_wait();
                    self.hz.time(until)
                }
                Waiting::Drive => {
                    self.begin_wait();
                    now + LOOK_AGAIN
                }
                Waiting::Off | Waiting::Finished => now + LOOK_AGAIN,
            }),
        }
    }

    fn dispatch_forced(&mut self, now: Time) -> Dispatch {
        // Linux hands out everything at once when it is forced. Here a flush sits out the wait, which
        // `antic_expire` bounds.
        self.dispatch(now)
    }

    fn completed(&mut self, now: Time, request: &Request) {
        // Requests that another scheduler handed out, before this one took over, do not count.
        let ours = self.in_drive.get_mut(request.tag.index());
        if !ours.is_some_and(core::mem::take) {
            return;
        }
        let now = self.hz.at(now);
        self.time_out(now);
        self.in_drive_count -= 1;
        if self.draining && self.in_drive_count == 0 {
            self.draining = false;
            self.batch_expires = now + self.ticks.batch[self.batch];
            self.fresh |= self.batch == Kind::Sync;
        }
        if self.fresh && self.batch == Kind::of(request) {
            self.adapt_quota(now);
            self.batch_expires = now + self.ticks.batch[Kind::Sync];
            self.fresh = false;
        }
        let process = self.contexts.completed(now, request);
        if self.anticipated == Some(process) {
            self.finished = Some(now);
            if self.waiting == Waiting::Drive {
                self.waiting = Waiting::Next(now + self.ticks.antic);
            }
        }
    }

    fn may_merge(&self, _: Tag, _: &Request) -> bool {
        true
    }

    fn merged(&mut self, grown: &Request) {
        // The next request of the sweep stays the same, even if another request is cheaper now.
        self.sorted.merged(grown);
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        let request = *self.sorted.requests().get(gone);
        let kind = Kind::of(&request);
        self.sorted.fused(kept, gone);
        self.contexts.left(&request);
        if self.came == Some(gone) {
            self.came = Some(kept);
        }
        if self.next[kind] == Some(gone) {
            self.next[kind] = self.successor(kind, request.extent.start);
        }
    }

    /// A wait goes on. The awaited process has nothing queued, so this request is not the awaited one. If a
    /// request ended a wait when it arrived, that wait stays ended.
    fn withdraw(&mut self, tag: Tag) -> Request {
        let request = self.sorted.remove(tag);
        let kind = Kind::of(&request);
        self.contexts.left(&request);
        self.came = self.came.filter(|came| *came != tag);
        if self.next[kind] == Some(tag) {
            self.next[kind] = self.successor(kind, request.extent.start);
        }
        request
    }

    /// Hands out the request even during a wait.
    fn taken_by_another(&mut self, _: Time, tag: Tag) -> Request {
        self.hand_out(tag)
    }

    fn overtake_max(&self) -> Option<usize> {
        None
    }

    fn queued(&self) -> usize {
        self.sorted.requests().len()
    }

    fn drain(&mut self) -> Vec<Request> {
        let requests = self.sorted.drain();
        self.next = Each::both(None);
        self.contexts.clear();
        self.in_drive.fill(false);
        self.in_drive_count = 0;
        (self.waiting, self.anticipated, self.finished) = (Waiting::Off, None, None);
        // As in the original, so that this batch does not affect the quota of the next batch of writes.
        self.batch = Kind::Sync;
        (self.draining, self.fresh) = (false, false);
        self.came = None;
        self.waits.end(false);
        requests
    }

    fn waits(&self) -> WaitStats {
        self.waits.stats()
    }
}
