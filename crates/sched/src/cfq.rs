//! Completely fair queuing, as in Linux 2.6.31.
//!
//! # Rule
//!
//! Each process has a queue for its synchronous requests: reads, and writes that a client waits for. For
//! asynchronous requests, all processes share one queue per class. Queues take turns. The active queue, whose
//! turn it is, has the disk for a slice of time:
//!
//! - **Order of turns.** By class, real-time first and idle last. Within a class by a key in time, lowest
//!   first. The key is the current time, plus 80 ms for each other queue that has requests (140 ms for a
//!   shared queue), plus the rest of an interrupted slice. Equal queues take turns round robin. The sign is
//!   as in 2.6.31: time left delays a queue, and overrun brings a queue forward. A queue has a key only
//!   while it has requests. If the queue ran empty, its next request gives it a new key, also during its
//!   slice.
//! - **Slice.** `slice_sync` or `slice_async`, counted from the *first completion* in it. Four events can
//!   end the slice: a completion, a dispatch, the end of the wait below, and a request for another queue.
//!   A request that ends a slice goes first.
//! - **Within a queue.** A sweep: the request that is next from the end of the last request handed out (of any
//!   queue). A seek back costs `back_seek_penalty` times a seek ahead, up to `back_seek_max`. Once per slice,
//!   at its first request, the oldest goes instead if it has expired.
//! - **In the drive.** Up to `quantum` requests of a queue while another has requests, up to four
//!   times that while none has; of the idle class one. Asynchronous requests are held back while a
//!   synchronous one is in the drive, and their turn ends after 8 `slice_async_rq` requests if another
//!   queue has requests.
//! - **Waiting.** If a synchronous request completes, the active queue is empty and *nothing of any
//!   queue* is in the drive, the disk is kept free for `slice_idle`. The wait is 2 ms if the process is
//!   known to seek. The disk is also kept free while the queue's own requests are in the drive. CFQ does not
//!   wait for a process that thinks longer than `slice_idle`, or that seeks while the drive queues commands.
//! - **Cooperation.** An active queue that is empty gives way to a queue whose next request starts near the
//!   end of the last request. Near means within the mean seek distance of the process, or 8192 sectors until
//!   the mean is valid. After a turn by cooperation, a queue needs a regular turn before the next. While the
//!   disk is kept free, a request that near takes the disk over.
//! - **Preemption.** The disk goes at once to real-time queues, away from the idle class, and from
//!   asynchronous to synchronous requests.
//! - **Does the drive queue?** CFQ decides after every 51 completions with more than five requests queued
//!   or in the drive. The drive is assumed to queue if five or more requests were in it at once. The first
//!   assumption corresponds to samples while one queue keeps the device busy, such as the writes of a
//!   machine's files before the reads. So the drive is assumed to queue if it can hold five requests or
//!   more, or an unknown number.
//!
//! Think time and seek distance are averages per process over its requests in order of insertion. Each request
//! weighs 7/8 of the next. The averages are valid from the third sample on. Times are whole ticks of a timer
//! of `hz` per second.
//!
//! "In the drive" means handed out and not come back. A request that a driver takes beyond the room in the
//! drive counts.
//!
//! If all requests have one origin, as at most storage targets, only one queue exists. CFQ is then a sweep
//! with up to 16 requests in the drive, and checks the expiry once per slice.
//!
//! # Bound
//!
//! None. A queue gets its turn after about a slice of each other busy queue of its class. Requests close by
//! and a busy higher class delay the turn further. Within a queue, a sweep can starve a request for as long
//! as the expiry finds older ones.
//!
//! # Tunables
//!
//! The files of `/sys/block/*/queue/iosched`, and `hz`; see [`CfqConfig`]. A duration counts in whole ticks,
//! rounded down, and no less than one; but a `slice_idle` of 0 never waits.
//!
//! # What is simplified
//!
//! - A kernel that has just booted assumes that any drive queues. Here the kernel has been up for a while, and
//!   has sampled.
//! - Every process has the default priority of its class (4; the idle class has no priorities), so that all
//!   slices of a kind are equal. A process with requests of several classes has a queue for each, and one set
//!   of statistics. In the kernel a process has one class.
//! - Metadata is not distinguished. No request says that its process will not go on (as `fsync` does in the
//!   kernel). The disk rotates. Processes do not exit: a process that ended is waited for once more.
//! - A wait ends when the queue hands out a request, and after an expired request the sweep goes on
//!   from that one. Both are unverified in the original.
//! - Of two queues that are close by on either side, the nearer is taken (upward if equal). The original takes
//!   the queue that its tree finds first, and refreshes the tree only at times. Here the index is always up to
//!   date, and holds queues at equal addresses.
//! - Two requests of a queue that start at the same address are both queued, in order of insertion. The
//!   original hands the older one out at once.
//! - An expiry counts from the arrival of a request. In the kernel, this is the time of insertion.
//! - There are no limits of the request pool, and no exemption of the awaited process from them.
//! - Above 4096 processes, a process is remembered only while it has requests or the disk is kept free for it.
//!   The process idle for longest is forgotten first. A process that comes back starts anew.
//! - A drained scheduler starts anew as a whole. Commands that are in the drive then do not count.
//! - A forced dispatch in front of a flush sits a wait out. Linux hands everything out at once.
//!
//! # Source
//!
//! Linux 2.6.31, `block/cfq-iosched.c`, whose functions are named beside the rules. The design note
//! (`docs/design/2026-11-21-as-cfq.md`) derives the consequences.
//!
//! # When not to use it
//!
//! If requests do not name their process: CFQ depends on the queues of processes.

mod config;
mod process;
mod queue;
mod turn;

#[cfg(test)]
mod tests;

pub use config::CfqConfig;

use crate::jiffies::Jiffies;
use crate::level::Level;
use crate::nearest::LookBack;
use crate::policy::{Built, Parts, PolicyInfo, Slices};
use crate::sweep::Sweeps;
use crate::waits::Waits;
use crate::{Dispatch, Request, Scheduler, Tag, WaitStats};
use alloc::vec::Vec;
use config::CfqTicks;
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};
use process::{CfqContextId, CfqContexts, REMEMBERED_MAX};
use queue::{QueueId, Queues, Rotation};
use turn::{Drive, Slice};

pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "cfq",
    idea: "time slices for processes, in turn",
    bound: "none; usually a slice of each busy queue",
    source: "Linux 2.6.31 block/cfq-iosched.c",
    avoid: "requests do not say which process asks",
    options: &CfqConfig::OPTIONS,
    waits: true,
    slices: Slices::ToProcesses("slice_sync"),
    ..PolicyInfo::PLAIN
};

pub(crate) fn build<P>(parts: Parts<'_, P>) -> Built {
    let config = CfqConfig::from_options(&parts.options);
    Built::scheduler(Cfq::on(parts.handed_out_max, config))
}

/// A request of more sectors than this ends a wait by itself: more than a page.
const PAGE_SECTORS: Sectors = Sectors::new(8);

/// Time after which the scheduler wants to be asked again while it waits for a completion. The completion ends
/// the wait earlier. An answer without a request must name a time.
const COMPLETION_WAIT: Nanos = Nanos::from_secs(1);

/// Queue and process of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    queue: QueueId,
    context: CfqContextId,
}

/// Completely fair queuing; see the [module](self).
#[derive(Clone, Debug)]
pub struct Cfq {
    config: CfqConfig,
    ticks: CfqTicks,
    sweeps: Sweeps<Owner>,
    contexts: CfqContexts,
    queues: Queues,
    rotation: Rotation,
    slice: Option<Slice>,
    /// True if the drive was first assumed to queue.
    queued_at_first: bool,
    drive: Drive,
    waits: Waits,
    /// The queue that the disk was last held for.
    held_for: Option<QueueId>,
}

impl Cfq {
    /// Builds a scheduler without requests, with the head at sector 0, for a drive of unknown depth.
    ///
    /// # Panics
    ///
    /// If `quantum`, `slice_async_rq` or `back_seek_penalty` is 0.
    pub fn new(config: CfqConfig) -> Cfq {
        Cfq::on(None, config)
    }

    /// Builds a scheduler without requests, with the head at sector 0. `handed_out_max` is the largest number
    /// of requests that the device holds at once, if known.
    ///
    /// # Panics
    ///
    /// As [`Cfq::new`].
    pub fn on(handed_out_max: Option<u64>, config: CfqConfig) -> Cfq {
        // A queue without competitors has at most four quanta in the drive (cfq_dispatch_requests).
        let most = |depth: u64| depth.min(config.quantum.saturating_mul(4));
        let queued_at_first = handed_out_max.is_none_or(|depth| Drive::seems_to_queue(most(depth)));
        Cfq::with(config, queued_at_first)
    }

    fn with(config: CfqConfig, queued_at_first: bool) -> Cfq {
        let least = [
            config.quantum,
            config.slice_async_rq,
            config.back_seek_penalty,
        ];
        assert!(!least.contains(&0), "{config:?} would never do anything");
        let back = LookBack {
            most: Sectors::new(config.back_seek_max.saturating_mul(2)),
            penalty: config.back_seek_penalty,
        };
        Cfq {
            config,
            ticks: CfqTicks::of(&config),
            sweeps: Sweeps::new(back, false),
            contexts: CfqContexts::default(),
            queues: Queues::new(),
            rotation: Rotation::default(),
            slice: None,
            queued_at_first,
            drive: Drive::new(queued_at_first),
            waits: Waits::default(),
            held_for: None,
        }
    }

    /// Returns the process with this number, and remembers it if it is new.
    fn context_of(&mut self, now: Jiffies, process: u32) -> CfqContextId {
        if let Some(id) = self.contexts.find(process) {
            return id;
        }
        if self.contexts.len() >= REMEMBERED_MAX {
            self.forget_one();
        }
        self.contexts.add(process, now)
    }

    fn forget_one(&mut self) {
        let slice = self.slice;
        let in_turn = |contexts: &CfqContexts, id: CfqContextId| {
            slice.is_some_and(|slice| {
                slice.context == Some(id) || contexts[id].queues.contains(&Some(slice.queue))
            })
        };
        if let Some(id) = self.contexts.oldest_idle(in_turn) {
            for queue in self.contexts.remove(id).into_iter().flatten() {
                self.queues.remove(queue);
            }
        }
    }

    /// The queue of this request (cfq_get_queue).
    fn queue_of(&mut self, context: CfqContextId, request: &Request) -> QueueId {
        let level = Level::of(request.class);
        if !request.is_sync() {
            return QueueId::shared(level);
        }
        let queues = &mut self.queues;
        let own = &mut self.contexts[context].queues[level.index()];
        *own.get_or_insert_with(|| queues.add(level))
    }

    /// Gives a queue a place in the rotation, or a new place (cfq_service_tree_add). With `first`, the place
    /// is ahead of the queue's class.
    fn enrol(&mut self, now: Jiffies, id: QueueId, first: bool) {
        let now = now.get() as i64;
        let queue = &mut self.queues[id];
        let (level, old) = (queue.level, queue.standing);
        let others = self.rotation.len() - usize::from(old.is_some());
        let key = if level == Level::Idle {
            let last = self.rotation.last().filter(|last| last.queue != id);
            last.map_or(now, |last| last.key)
                .saturating_add(self.ticks.idle_class_delay)
        } else if first {
            i64::MIN
        } else {
            let offset = self.ticks.offset(queue.sync, level.priority());
            let rest = core::mem::take(&mut queue.rest);
            now + others as i64 * offset + rest
        };
        if let Some(old) = old {
            if old.key == key {
                return;
            }
            self.rotation.remove(old);
        }
        queue.standing = Some(self.rotation.insert(level, key, id));
    }

    /// Removes an empty queue from the rotation.
    fn left(&mut self, id: QueueId) {
        let queue = &mut self.queues[id];
        if queue.is_empty()
            && let Some(standing) = queue.standing.take()
        {
            self.rotation.remove(standing);
        }
    }

    /// Begins the turn of a queue.
    fn activate(&mut self, id: QueueId) {
        self.slice = Some(Slice::new(id));
    }

    /// Ends the turn of the active queue (__cfq_slice_expired). With `keep_rest`, the remaining or overrun
    /// time counts for the queue's next place.
    fn expire(&mut self, now: Jiffies, keep_rest: bool) {
        let Some(slice) = self.slice.take() else {
            return;
        };
        let queue = &mut self.queues[slice.queue];
        if keep_rest && let Some(end) = slice.end {
            queue.rest = end.get() as i64 - now.get() as i64;
        }
        if queue.standing.is_some() {
            self.enrol(now, slice.queue, false);
        }
    }

    /// Ends the wait of the active queue if its time has come (cfq_idle_slice_timer).
    ///
    /// If the wait ends exactly at `now`, other events at `now` precede its end. With `also_now`, no other
    /// event is due.
    fn run_timer(&mut self, now: Time, also_now: bool) {
        let Some(slice) = &mut self.slice else {
            return;
        };
        let Some(fires) = slice.timer else { return };
        if fires > now || (fires == now && !also_now) {
            return;
        }
        slice.timer = None;
        let then = self.config.hz.at(fires);
        let (slice, empty) = (*slice, self.queues[slice.queue].is_empty());
        let others_wait = empty && !self.rotation.is_empty();
        if !slice.must_dispatch && (slice.is_used(then) || others_wait) {
            self.expire(then, false);
        }
    }

    /// Returns true if an address is within the usual seek distance of the active process from the last
    /// request (cfq_rq_close). False before the first request of the slice was handed out.
    fn is_close(&self, lba: Lba) -> bool {
        let context = self.slice.and_then(|slice| slice.context);
        let close_by = context.map(|id| self.contexts[id].close_by());
        close_by.is_some_and(|close_by| self.sweeps.last.distance(lba).get() <= close_by)
    }

    /// Returns a queue to which the active, empty queue can give way (cfq_close_cooperator).
    fn cooperator(&self) -> Option<QueueId> {
        let slice = self.slice?;
        slice.context?;
        if self.queues[slice.queue].level == Level::Idle {
            return None;
        }
        let (positions, last) = (&self.sweeps.positions, self.sweeps.last);
        let (up, down) = (
            positions.first_at_or_after(last),
            positions.last_before(last),
        );
        let exact = up.filter(|up| up.lba == last);
        let close = exact.or_else(|| {
            let close = |entry: &crate::Entry| self.is_close(entry.lba);
            let (up, down) = (up.filter(close), down.filter(close));
            match (up, down) {
                (Some(up), Some(down)) => {
                    let nearer_below = last - down.lba < up.lba - last;
                    Some(if nearer_below { down } else { up })
                }
                (up, down) => up.or(down),
            }
        });
        let id = QueueId(close?.tag.0);
        (!self.queues[id].cooperated).then_some(id)
    }

    /// Returns true if a request of another queue takes the disk from the active queue (cfq_should_preempt).
    fn preempts(&self, now: Jiffies, id: QueueId, request: &Request) -> bool {
        let Some(slice) = self.slice else {
            return false;
        };
        let (active, new) = (&self.queues[slice.queue], &self.queues[id]);
        if slice.is_used(now) {
            return true;
        }
        if new.level == Level::Idle {
            return false;
        }
        active.level == Level::Idle
            || (new.sync && !active.sync)
            || (new.level == Level::RealTime && active.level != Level::RealTime)
            || (slice.waiting && self.is_close(request.extent.start))
    }

    /// Returns the queue to serve, or `None` to wait (cfq_select_queue).
    fn select(&mut self, now: Jiffies) -> Option<QueueId> {
        let first = self.rotation.first()?;
        if let Some(slice) = self.slice {
            let active = &self.queues[slice.queue];
            if slice.is_used(now) && !slice.must_dispatch {
                self.expire(now, false);
            } else if active.level != Level::RealTime && first.level == Level::RealTime {
                self.expire(now, true);
            } else if !active.is_empty() {
                return Some(slice.queue);
            } else if let Some(other) = self.cooperator() {
                self.expire(now, false);
                self.queues[other].cooperated = true;
                self.activate(other);
                return Some(other);
            } else if slice.timer.is_some() || (active.in_drive > 0 && active.idles) {
                return None;
            } else {
                self.expire(now, false);
            }
        }
        let id = self.rotation.first()?.queue;
        self.queues[id].cooperated = false;
        self.activate(id);
        Some(id)
    }

    /// Returns true if the queue has its largest number of requests in the drive (cfq_dispatch_requests).
    fn is_full(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        match queue.level {
            Level::Idle => queue.in_drive > 0,
            _ if self.rotation.len() > 1 => queue.in_drive >= self.config.quantum,
            _ => queue.in_drive >= 4 * self.config.quantum,
        }
    }

    /// Hands out a request of the active queue (cfq_dispatch_request).
    fn hand_out(&mut self, now: Jiffies, id: QueueId) -> Request {
        let queue = &mut self.queues[id];
        let slice = self.slice.as_mut().expect("a queue is active");
        let mut tag = queue.sweep.next().expect("it has requests");
        if !slice.fifo_tested {
            slice.fifo_tested = true;
            let oldest = queue.sweep.oldest().expect("it has requests");
            let arrival = self.config.hz.at(self.sweeps.pool.get(oldest).arrival);
            if now >= arrival + self.ticks.fifo_expire[usize::from(queue.sync)] {
                tag = oldest;
            }
        }
        let owner = self.sweeps.pool.owner(tag);
        slice.context.get_or_insert(owner.context);
        slice.handed_out += 1;
        slice.must_dispatch = false;
        slice.waiting = false;
        slice.timer = None;
        let handed_out = slice.handed_out;
        queue.in_drive += 1;
        let (sync, level) = (queue.sync, queue.level);
        self.drive.holds += 1;
        self.drive.sync += u64::from(sync);
        let request = self.sweeps.hand_out(&mut queue.sweep, tag);
        self.left(id);
        let turn_is_over = match level {
            Level::Idle => true,
            _ => !sync && handed_out >= self.async_max(level),
        };
        if turn_is_over && self.rotation.len() > 1 {
            self.expire(now, false);
        }
        request
    }

    /// Returns the largest number of asynchronous requests in one turn (cfq_prio_to_maxrq).
    fn async_max(&self, level: Level) -> u64 {
        let base = self.config.slice_async_rq;
        2 * (base + base * (7 - level.priority()) as u64)
    }

    /// Keeps the disk free for the active queue if a wait should pay (cfq_arm_slice_timer).
    fn wait(&mut self, now: Time) {
        let Some(slice) = &mut self.slice else {
            return;
        };
        let idles = self.queues[slice.queue].idles;
        let Some(context) = slice.context else {
            return;
        };
        if self.ticks.slice_idle == 0 || !idles || self.drive.holds > 0 {
            return;
        }
        let ticks = if self.contexts[context].is_surely_seeky() {
            self.ticks.seeky_idle
        } else {
            self.ticks.slice_idle
        };
        slice.waiting = true;
        slice.timer = Some(self.config.hz.fires(now, ticks));
    }

    /// Updates the statistics of a request's process, and decides if the queue is worth a wait
    /// (cfq_update_idle_window).
    fn judge(&mut self, now: Jiffies, owner: Owner, extent: Extent) {
        let slice_idle = self.ticks.slice_idle;
        let context = &mut self.contexts[owner.context];
        context.arrives(now, extent, slice_idle.saturating_mul(2));
        let queue = &mut self.queues[owner.queue];
        if !queue.sync || queue.level == Level::Idle {
            return;
        }
        if slice_idle == 0 || (self.drive.queues && context.is_seeky()) {
            queue.idles = false;
        } else if let Some(think) = context.think_mean() {
            queue.idles = think <= slice_idle;
        }
    }
}

impl Default for Cfq {
    /// Returns a scheduler with the settings that Linux starts with.
    fn default() -> Cfq {
        Cfq::new(CfqConfig::DEFAULT)
    }
}

/// Returns true if two requests belong to one queue.
fn same_queue(one: &Request, other: &Request) -> bool {
    let (sync, level) = (one.is_sync(), Level::of(one.class));
    sync == other.is_sync()
        && level == Level::of(other.class)
        && (!sync || one.origin.process == other.origin.process)
}

impl Scheduler for Cfq {
    fn insert(&mut self, now: Time, request: Request) {
        self.run_timer(now, false);
        let now = self.config.hz.at(now);
        let context = self.context_of(now, request.origin.process);
        let id = self.queue_of(context, &request);
        let owner = Owner { queue: id, context };
        self.contexts.begin(context);
        let queue = &mut self.queues[id];
        self.sweeps.insert(&mut queue.sweep, request, owner);
        if queue.standing.is_none() {
            self.enrol(now, id, false);
        }
        self.judge(now, owner, request.extent);
        match &mut self.slice {
            Some(slice) if slice.queue == id => {
                if slice.waiting {
                    slice.must_dispatch = true;
                    if request.extent.len > PAGE_SECTORS || self.rotation.len() > 1 {
                        slice.timer = None;
                    }
                }
            }
            _ => {
                if self.preempts(now, id, &request) {
                    self.expire(now, true);
                    self.enrol(now, id, true);
                }
            }
        }
    }

    fn dispatch(&mut self, now: Time) -> Dispatch {
        self.run_timer(now, true);
        if self.rotation.is_empty() {
            self.waits.end(false);
            return Dispatch::Empty;
        }
        let jiffies = self.config.hz.at(now);
        let completion = now.saturating_add(COMPLETION_WAIT);
        let Some(id) = self.select(jiffies) else {
            let timer = self.slice.and_then(|slice| slice.timer);
            self.held_for = self.slice.map(|slice| slice.queue);
            self.waits.hold();
            return Dispatch::IdleUntil(timer.unwrap_or(completion));
        };
        // The queue was empty at the beginning of the wait, so its request came meanwhile.
        self.waits.end(self.held_for == Some(id));
        let held_back = !self.queues[id].sync && self.drive.sync > 0;
        if held_back || self.is_full(id) {
            return Dispatch::IdleUntil(completion);
        }
        Dispatch::Request(self.hand_out(jiffies, id))
    }

    fn dispatch_forced(&mut self, now: Time) -> Dispatch {
        // Linux hands out everything at once when it is forced. Here a flush sits out the wait, which
        // `slice_idle` bounds.
        self.dispatch(now)
    }

    fn completed(&mut self, now: Time, request: &Request) {
        self.run_timer(now, false);
        // Requests that another scheduler handed out before this one took over do not count.
        let Some(owner) = self.sweeps.pool.finish(request.tag) else {
            return;
        };
        let jiffies = self.config.hz.at(now);
        self.drive.sample(self.sweeps.pool.queued());
        self.drive.holds -= 1;
        let queue = &mut self.queues[owner.queue];
        queue.in_drive -= 1;
        let (sync, level, empty) = (queue.sync, queue.level, queue.is_empty());
        self.drive.sync -= u64::from(sync);
        self.contexts.completes(owner.context, jiffies, sync);
        let Some(slice) = &mut self.slice else {
            return;
        };
        if slice.queue != owner.queue {
            return;
        }
        let length = self.ticks.slice(sync, level.priority()) as u64;
        slice.end.get_or_insert(jiffies + length);
        if slice.is_used(jiffies) || level == Level::Idle {
            self.expire(jiffies, true);
        } else if sync && empty && self.cooperator().is_none() {
            self.wait(now);
        }
    }

    fn may_merge(&self, queued: Tag, new: &Request) -> bool {
        same_queue(self.sweeps.pool.get(queued), new)
    }

    fn merge_key(&self, request: &Request) -> u64 {
        // Asynchronous requests belong to no process.
        match request.is_sync() {
            true => 1 + u64::from(request.origin.process),
            false => 0,
        }
    }

    fn merged(&mut self, grown: &Request) {
        let id = self.sweeps.pool.owner(grown.tag).queue;
        let queue = &mut self.queues[id];
        self.sweeps.merged(&mut queue.sweep, grown);
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        let owner = self.sweeps.pool.owner(gone);
        let queue = &mut self.queues[owner.queue];
        self.sweeps.fused(&mut queue.sweep, kept, gone);
        self.contexts.end(owner.context);
    }

    /// The disk is kept free for a queue, not for a request. A wait therefore goes on to the end of its timer.
    /// If the withdrawn request had already ended the wait, the wait stays ended. The turn ends if the active
    /// queue is empty and is not waited for.
    fn withdraw(&mut self, tag: Tag) -> Request {
        let owner = self.sweeps.pool.owner(tag);
        let queue = &mut self.queues[owner.queue];
        let request = self.sweeps.withdraw(&mut queue.sweep, tag);
        self.contexts.end(owner.context);
        self.left(owner.queue);
        if let Some(slice) = &mut self.slice
            && self.queues[slice.queue].is_empty()
        {
            // The request that came during the wait is gone.
            slice.must_dispatch = false;
        }
        request
    }

    /// Updates the statistics of processes, but not the turns.
    fn taken_by_another(&mut self, _: Time, tag: Tag) -> Request {
        let owner = self.sweeps.pool.owner(tag);
        let queue = &mut self.queues[owner.queue];
        queue.in_drive += 1;
        self.drive.holds += 1;
        self.drive.sync += u64::from(queue.sync);
        let request = self.sweeps.hand_out(&mut queue.sweep, tag);
        self.left(owner.queue);
        if let Some(slice) = &mut self.slice
            && self.queues[slice.queue].is_empty()
        {
            slice.must_dispatch = false;
        }
        request
    }

    fn overtake_max(&self) -> Option<usize> {
        None
    }

    fn queued(&self) -> usize {
        self.sweeps.pool.queued()
    }

    fn drain(&mut self) -> Vec<Request> {
        let all = self.sweeps.pool.drain();
        let mut waits = self.waits;
        waits.end(false);
        *self = Cfq {
            waits,
            ..Cfq::with(self.config, self.queued_at_first)
        };
        all
    }

    fn waits(&self) -> WaitStats {
        self.waits.stats()
    }
}
