//! Budget fair queueing, reduced, as in Linux 7.1.
//!
//! # Rule
//!
//! Each process has a queue for its synchronous requests: reads, and writes that a client waits for. For asynchronous
//! requests, all processes share one queue per class. Queues are served one after the other, each in a slot.
//!
//! - **Order of queues.** B-WF2Q+. Virtual time of a class advances by the sectors served, divided by the sum of
//!   weights. A queue has a virtual start and a virtual finish: start plus budget by weight. A queue is eligible if its
//!   start has come. The eligible queue with the smallest finish goes next. Real-time goes first and idle last, but the
//!   idle class gets a turn each 200 ms.
//! - **Coming back.** A queue comes back on time if its request comes within three times `slice_idle` of its last
//!   completion, and budget is left. The queue then takes up where it left off, and may take the disk at once. Queues
//!   of a higher class or weight may also take the disk. If the queue in service is not worth a wait, any queue may.
//! - **Slot.** The slot of a queue ends in four cases. The next request exceeds the budget; `timeout_sync` is over; the
//!   queue is empty and not worth a wait; or a wait ends without a request. A used-up budget grows by four, and a
//!   timeout doubles it. A wait in vain makes the budget smaller. A queue that ran empty gets the sectors of this slot as
//!   its next budget. The largest budget is `timeout_sync` of reading, at the rate that the drive is measured to have.
//! - **Time in place of sectors.** Slow slots are charged by time. A slot of a seeky queue is slow. So is a slot of more
//!   than 20 ms that served less than half of the largest budget. A timeout is slow if a third of the budget is left. A
//!   slot of less than 1 ms counts 8 ms.
//! - **Within a queue.** A sweep: the request that is next to the last request handed out. A seek back costs
//!   `back_seek_penalty` times a seek ahead, up to `back_seek_max`. Once per slot, behind its first request, the oldest
//!   request goes if it has expired.
//! - **Waiting.** The disk is kept free for the empty queue in service if the wait gives throughput, or if the queue
//!   needs it for its share. Throughput: the queue streams, or the drive does not queue, and no raised queue is busy.
//!   Share: the queue is raised and others are not, several classes are busy, or no other queue is busy. The wait is
//!   `slice_idle` from the queue's last completion, 2 ms if the queue is seeky, 20 ms or more if the queue is raised.
//! - **Seeky.** More than 19 of the queue's last 32 requests start over 800 sectors from the end of the request before.
//! - **Weight raising** (`low_latency`). A queue that is new, or had no request for two seconds, has 30 times the
//!   weight and the timeout. Raising ends after 10.5 s (less on a fast drive, more on a slow drive) or 58.6 MiB. Eight or
//!   more queues created at most 180 ms apart are not raised.
//! - **Merging.** A queue merges into the queue in service, or into a queue that waits, if their next requests are within
//!   8192 sectors and neither queue is seeky. Time for this is up to 100 ms after the queue is first served. If the
//!   shared queue turns seeky, its processes get their queues back.
//! - **Merging for good.** A queue that was created within 180 ms behind another is tested once, at an age of 600 ms or
//!   more. If a wait for the queue gives no throughput, the queue merges into the other one for good. Processes that
//!   begin together and are raised therefore share a queue from then on.
//! - **Does the drive queue?** Unknown at first, which counts as yes. After 33 completions with more than three requests
//!   queued or in the drive, the drive queues if more than three requests were in it at once.
//!
//! "In the drive" means handed out and not come back. If all requests have one origin, as at most storage targets, only
//! one queue exists. BFQ is then a sweep.
//!
//! # Bound
//!
//! None. A queue gets its turn after about a slot of each other busy queue of its class, 30 times as late if those are
//! raised. Within a queue, a sweep can starve a request for as long as the expiry finds older ones.
//!
//! # Tunables
//!
//! The files of `/sys/block/*/queue/iosched` of these names; see [`BfqConfig`].
//!
//! # What is left out
//!
//! - Injection: serving other queues while the disk is kept free.
//! - Soft real-time raising, and raising of asynchronous queues.
//! - Control groups, and the limits on the request pool by kind of request.
//!
//! # What is simplified
//!
//! - Every process has the default priority of its class (4; the idle class 7). A process with requests of several classes
//!   has a queue for each. Metadata is not distinguished. The disk rotates. Processes do not exit.
//! - Requests of two processes are never merged into one, even in a queue that the processes share. A process that gets its
//!   queue back finds the statistics that the queue had when it merged.
//! - Times are exact. The kernel counts some in timer ticks and charges whole milliseconds.
//! - Of two queues that wait close by, the nearer is merged into. The original takes the queue that its tree finds first.
//! - A completion that comes very late does not end an observation of the drive's rate.
//! - The budget of a queue that waits for its turn stays if a larger request becomes the next one.
//! - Choosing the next queue looks at all queues that wait. The original keeps them in trees.
//! - `max_budget` counts at once, and so does the measured rate from the eleventh slot on.
//! - An expiry counts from the arrival of a request. In the kernel, this is the time of insertion.
//! - Above 4096 processes, a process is remembered only while it has requests or shares its queue.
//! - A drained scheduler starts anew as a whole. Commands that are in the drive then do not count.
//! - A forced dispatch in front of a flush sits a wait out.
//!
//! # Source
//!
//! Linux 7.1, `block/bfq-iosched.c` and `block/bfq-wf2q.c`. P. Valente and F. Checconi, "High throughput disk scheduling
//! with fair bandwidth distribution", IEEE Transactions on Computers 59(9), 2010, for the order of queues.
//!
//! # When not to use it
//!
//! If requests do not name their process: BFQ depends on the queues of processes.

mod config;
mod drive;
mod id;
mod merging;
mod order;
mod queue;
mod raise;
mod raising;
mod service;
mod share;
mod slot;

#[cfg(test)]
mod tests;

pub use config::BfqConfig;

use crate::level::{LEVELS, Level};
use crate::nearest::LookBack;
use crate::policy::{Built, Parts, PolicyInfo, Slices};
use crate::sweep::Sweeps;
use crate::waits::Waits;
use crate::{Dispatch, Request, Scheduler, Tag, WaitStats};
use alloc::vec::Vec;
use drive::BfqDrive;
use headtime_units::{Lba, Nanos, Sectors, Time};
use id::{BfqQueueId, Name, since};
use queue::BfqQueues;
use raise::Burst;
use slot::{BfqSlot, End};

pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "bfq",
    idea: "budgets for processes, by weight",
    bound: "none; usually a slot of each busy queue",
    source: "Linux 7.1 block/bfq-iosched.c",
    avoid: "requests do not say which process asks",
    options: &BfqConfig::OPTIONS,
    waits: true,
    slices: Slices::ToProcesses("timeout_sync"),
    ..PolicyInfo::PLAIN
};

pub(crate) fn build<P>(parts: Parts<'_, P>) -> Built {
    Built::scheduler(Bfq::new(BfqConfig::from_options(&parts.options)))
}

/// Time after which the scheduler wants to be asked again while it waits for a completion. The completion ends the wait
/// earlier. An answer without a request must name a time.
const COMPLETION_WAIT: Nanos = Nanos::from_secs(1);

/// Number of waits after a completion within which a queue comes back on time.
const ON_TIME_WAITS: u64 = 3;

/// Budget fair queueing; see the [module](self).
#[derive(Clone, Debug)]
pub struct Bfq {
    config: BfqConfig,
    sweeps: Sweeps<BfqQueueId>,
    queues: BfqQueues,
    slot: Option<BfqSlot>,
    /// Number of slots so far.
    slots: u64,
    /// Number of busy queues of each level.
    busy: [u64; LEVELS],
    /// Number of busy queues that are raised.
    raised_busy: u64,
    burst: Burst,
    /// Queue that later queues may merge into for good.
    elder: Option<Name>,
    drive: BfqDrive,
    waits: Waits,
    /// The queue that the disk was last held for.
    held_for: Option<BfqQueueId>,
}

impl Bfq {
    /// Builds a scheduler without requests, with the head at sector 0.
    ///
    /// # Panics
    ///
    /// If `back_seek_penalty` is 0.
    pub fn new(config: BfqConfig) -> Bfq {
        assert!(config.back_seek_penalty > 0, "seeks back cost something");
        let back = LookBack {
            most: Sectors::new(config.back_seek_max.saturating_mul(2)),
            penalty: config.back_seek_penalty,
        };
        let budget = match config.max_budget {
            0 => slot::BUDGET_AT_FIRST,
            given => given,
        };
        Bfq {
            config,
            sweeps: Sweeps::new(back, true),
            queues: BfqQueues::new(2 * budget / 3),
            slot: None,
            slots: 0,
            busy: [0; LEVELS],
            raised_busy: 0,
            burst: Burst::default(),
            elder: None,
            drive: BfqDrive::new(),
            waits: Waits::default(),
            held_for: None,
        }
    }

    fn busy_queues(&self) -> u64 {
        self.busy.iter().sum()
    }

    /// Returns the own queue of the request's process, which may be new.
    fn own_queue(&mut self, now: Time, request: &Request) -> BfqQueueId {
        let (level, process) = (Level::of(request.class), request.origin.process);
        if !request.is_sync() {
            return BfqQueueId::shared(level);
        }
        self.queues.find(process, level).unwrap_or_else(|| {
            let budget = 2 * self.max_budget() / 3;
            let id = self.queues.add(process, level, now, budget);
            self.note_elder(now, id);
            self.note_burst(now, id);
            id
        })
    }

    /// Returns the queue for a request of this queue's process: the own queue, or a shared queue.
    fn queue_for(&mut self, now: Time, own: BfqQueueId, start: Lba) -> BfqQueueId {
        if !self.queues[own].is_sync() {
            return own;
        }
        self.split(now, own);
        let id = self.queues.target(own);
        let partner = self.partner(now, id, own, start);
        if let Some(into) = partner {
            self.merge(id, into);
        }
        partner.unwrap_or(id)
    }

    /// Lets a queue that has got its first request wait for its turn, or gives the queue the disk at once
    /// (bfq_bfqq_handle_idle_busy_switch).
    fn becomes_busy(&mut self, now: Time, id: BfqQueueId, own: BfqQueueId) {
        let charge = self.next_charge(id).expect("it has a request");
        let was_raised = self.queues[id].raise.is_on;
        self.raise(now, id, own);
        let window = self.config.slice_idle.saturating_mul(ON_TIME_WAITS);
        let max = self.max_budget();
        let queue = &mut self.queues[id];
        let share = &mut queue.share;
        let in_time = now <= queue.history.last_completion.saturating_add(window);
        let on_time = core::mem::take(&mut queue.ran_dry) && in_time && share.left() > 0;
        share.budget = match on_time {
            true => share.left().min(queue.max_budget),
            false => queue.max_budget.max(charge),
        };
        if queue.raise.is_on && !was_raised {
            share.budget = share.budget.min(2 * slot::min_budget(max));
        }
        share.served = 0;
        queue.first_io = None;
        queue.busy = true;
        let (level, factor) = (queue.level, queue.raise.factor());
        self.busy[level.index()] += 1;
        self.raised_busy += u64::from(queue.raise.is_on);
        self.queues.activate(id, on_time);
        let Some(slot) = self.slot else { return };
        let (queue, active) = (&self.queues[id], &self.queues[slot.queue]);
        let claims = on_time && factor >= active.raise.factor();
        let heavier = level == active.level && queue.share.weight > active.share.weight;
        if claims || heavier || level < active.level || !self.wait_pays(slot.queue) {
            self.expire(now, End::Preempted);
        }
    }

    /// Hands out a request of the queue in service (bfq_dispatch_rq_from_bfqq).
    fn hand_out(&mut self, now: Time, id: BfqQueueId) -> Request {
        let charge = self.next_charge(id).expect("it has a request");
        self.queues.serve(id, charge);
        let queue = &mut self.queues[id];
        queue.first_io.get_or_insert(now);
        queue.raise.served += charge;
        let tag = queue.sweep.next().expect("it has a request");
        let request = self.sweeps.hand_out(&mut queue.sweep, tag);
        queue.in_drive += 1;
        let level = queue.level.index();
        self.drive.hand_out(now, request.extent, level);
        let slot = self.slot.as_mut().expect("a slot is under way");
        slot.last = request.extent.end();
        slot.timer = None;
        let queue = &mut self.queues[id];
        let expire = self.config.fifo_expire[usize::from(queue.is_sync())];
        if !core::mem::replace(&mut slot.fifo_tested, true)
            && let Some(oldest) = queue.sweep.oldest()
            && since(now, self.sweeps.pool.get(oldest).arrival) >= expire
        {
            self.sweeps.set_next(&mut queue.sweep, Some(oldest));
        }
        self.end_raise(now, id);
        if self.queues[id].level == Level::Idle && self.busy_queues() > 1 {
            self.expire(now, End::Exhausted);
        }
        request
    }
}

impl Default for Bfq {
    /// Returns a scheduler with the settings that Linux starts with.
    fn default() -> Bfq {
        Bfq::new(BfqConfig::default())
    }
}

impl Scheduler for Bfq {
    fn insert(&mut self, now: Time, request: Request) {
        self.run_timer(now, false);
        let own = self.own_queue(now, &request);
        let id = self.queue_for(now, own, request.extent.start);
        let queue = &mut self.queues[id];
        queue.observe(now, request.extent, self.config.slice_idle);
        self.sweeps.insert(&mut queue.sweep, request, id);
        if !queue.busy {
            self.becomes_busy(now, id, own);
        }
        // The request ends the wait for it.
        if let Some(slot) = self.slot.as_mut().filter(|slot| slot.queue == id) {
            slot.timer = None;
        }
    }

    fn dispatch(&mut self, now: Time) -> Dispatch {
        self.run_timer(now, true);
        let full = self.config.strict_guarantees && self.drive.requests() > 0;
        let chosen = if full { None } else { self.select(now) };
        if let Some(id) = chosen {
            // The queue was empty at the beginning of the wait, so its request came meanwhile.
            self.waits.end(self.held_for == Some(id));
            return Dispatch::Request(self.hand_out(now, id));
        }
        if self.queued() == 0 {
            self.waits.end(false);
            return Dispatch::Empty;
        }
        let timer = self.slot.and_then(|slot| slot.timer);
        if !full {
            self.held_for = self.slot.map(|slot| slot.queue);
            self.waits.hold();
        }
        Dispatch::IdleUntil(timer.unwrap_or(now.saturating_add(COMPLETION_WAIT)))
    }

    fn dispatch_forced(&mut self, now: Time) -> Dispatch {
        self.dispatch(now)
    }

    fn completed(&mut self, now: Time, request: &Request) {
        self.run_timer(now, false);
        // Requests that another scheduler handed out before this one took over do not count.
        let Some(id) = self.sweeps.pool.finish(request.tag) else {
            return;
        };
        let active = self.slot.map(|slot| &self.queues[slot.queue]);
        let active = active.filter(|queue| queue.history.thinks_briefly(self.config.slice_idle));
        let own = active.map(|queue| queue.sweep.len() as u64 + queue.in_drive);
        let (queued, level) = (self.queued() as u64, self.queues[id].level.index());
        self.drive.complete(now, level, queued, own);
        let queue = &mut self.queues[id];
        queue.in_drive -= 1;
        queue.history.last_completion = now;
        let (empty, in_drive) = (queue.is_empty(), queue.in_drive);
        if in_drive == 0 && !queue.busy {
            queue.quiet_since = Some(now);
        }
        let Some(slot) = self.slot.filter(|slot| slot.queue == id) else {
            return;
        };
        if empty && self.wait_pays(id) {
            if in_drive == 0 {
                self.wait(now);
            }
        } else if self.may_time_out(now, &slot) {
            self.expire(now, End::Timeout);
        } else if empty {
            self.expire(now, End::NoMore);
        }
    }

    fn may_merge(&self, queued: Tag, new: &Request) -> bool {
        let level = Level::of(new.class);
        let own = match new.is_sync() {
            true => self.queues.find(new.origin.process, level),
            false => Some(BfqQueueId::shared(level)),
        };
        // A queued request may be in a queue that its process no longer uses.
        let of_new = self.sweeps.pool.find(new.tag);
        let of_new = of_new.or_else(|| own.map(|own| self.queues.target(own)));
        let pool = &self.sweeps.pool;
        of_new == Some(pool.owner(queued))
            && self.merge_key(pool.get(queued)) == self.merge_key(new)
    }

    fn merge_key(&self, request: &Request) -> u64 {
        // Asynchronous requests belong to no process.
        match request.is_sync() {
            true => 1 + u64::from(request.origin.process),
            false => 0,
        }
    }

    fn merged(&mut self, grown: &Request) {
        let id = self.sweeps.pool.owner(grown.tag);
        let queue = &mut self.queues[id];
        self.sweeps.merged(&mut queue.sweep, grown);
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        let id = self.sweeps.pool.owner(gone);
        let queue = &mut self.queues[id];
        self.sweeps.fused(&mut queue.sweep, kept, gone);
    }

    /// A queue that is left empty loses its place, unless it is in service.
    fn withdraw(&mut self, tag: Tag) -> Request {
        let id = self.sweeps.pool.owner(tag);
        let queue = &mut self.queues[id];
        let request = self.sweeps.withdraw(&mut queue.sweep, tag);
        if queue.is_empty() && self.slot.is_none_or(|slot| slot.queue != id) {
            let quiet = queue.history.last_completion;
            self.rest(quiet, id, false);
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
        *self = Bfq {
            waits,
            ..Bfq::new(self.config)
        };
        all
    }

    fn waits(&self) -> WaitStats {
        self.waits.stats()
    }
}
