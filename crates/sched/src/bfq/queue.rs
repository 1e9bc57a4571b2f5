//! The queues, by number and by process.

use super::id::{BfqQueueId, Name, since};
use super::raise::Raise;
use super::share::{ClassShares, Share};
use crate::decayed::Decayed;
use crate::level::{LEVELS, Level};
use crate::sweep::Sweep;
use crate::{SortedMap, Tag};
use alloc::vec::Vec;
use headtime_units::{Extent, Lba, Nanos, Time};

/// Number of queues that are remembered. Above this number, only queues in use are remembered.
pub(super) const REMEMBERED_MAX: usize = 4_096;

/// Distance in sectors above which a request is a seek (`BFQQ_SEEK_THR`).
const SEEK_SECTORS: u64 = 800;

/// Number of seeks among the last 32 requests above which a queue is seeky (`BFQQ_SEEKY`).
const SEEKS_MAX: u32 = 19;

/// Length of the window in which pauses count.
const PAUSE_WINDOW: Nanos = Nanos::from_millis(200);

/// Returns true if a request is a seek behind a request that ended at `last`.
pub(super) fn is_seek(last: Option<Lba>, extent: Extent) -> bool {
    last.is_some_and(|last| last.distance(extent.start).get() > SEEK_SECTORS)
}

/// Statistics of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct History {
    /// Last 32 requests, a bit each: 1 for a seek.
    pub seeks: u32,
    /// End of the last request.
    last_end: Option<Lba>,
    pub think: Decayed,
    /// Time of the last completion. At first, the time at which the queue came.
    pub last_completion: Time,
    window_begin: Time,
    /// Time in the window without requests, here or in the drive.
    paused: Nanos,
    /// True if the queue paused for more than a fifth of the window.
    pub pauses: bool,
}

impl History {
    pub fn is_seeky(&self) -> bool {
        self.seeks.count_ones() > SEEKS_MAX
    }

    /// Returns true if the queue's process thinks for at most half of a wait.
    pub fn thinks_briefly(&self, slice_idle: Nanos) -> bool {
        !self.think.is_valid() || self.think.mean <= slice_idle.as_nanos() / 2
    }

    /// Returns true if the queue streams, so that its next request is near and comes soon.
    pub fn streams(&self, slice_idle: Nanos) -> bool {
        !self.is_seeky() && !self.pauses && self.thinks_briefly(slice_idle)
    }
}

/// A queue: the synchronous requests of one process and class, or all asynchronous requests of a class.
///
/// Invariants:
///
/// - `!sweep.is_empty()` ⇒ `busy`.
/// - `sharers` = number of queues whose `merged_into` is this queue.
/// - `splits` ⇒ `sharers > 0`.
/// - `process.is_none()` ⇒ `merged_into.is_none()` and `sharers = 0`.
/// - `quiet_since.is_none()` ⇒ `busy`, or `in_drive > 0`, or the queue has had no request.
#[derive(Clone, Debug, Default)]
pub(super) struct BfqQueue {
    /// Process of a synchronous queue.
    pub process: Option<u32>,
    pub level: Level,
    pub sweep: Sweep,
    pub share: Share,
    pub history: History,
    pub raise: Raise,
    /// Requests of the queue in the drive.
    pub in_drive: u64,
    /// True if the queue, possibly empty, is in service or waits for its turn.
    pub busy: bool,
    /// Budget of the next slot, in sectors.
    pub max_budget: u64,
    /// True if the last slot ended for lack of requests, before budget and time.
    pub ran_dry: bool,
    pub created: Time,
    /// Time since which the queue has had no request, here or in the drive. `None` for a new queue.
    pub quiet_since: Option<Time>,
    /// True from the first request on.
    pub is_known: bool,
    pub in_large_burst: bool,
    /// First hand-out since the queue last became busy.
    pub first_io: Option<Time>,
    /// Queue that gets the requests of this queue's process.
    pub merged_into: Option<BfqQueueId>,
    /// Number of queues that merged into this queue.
    pub sharers: u32,
    /// True if the processes that share the queue get their own queues back.
    pub splits: bool,
    /// True if the process never gets its own queue back.
    pub merged_for_good: bool,
    /// Queue that this queue may merge into for good.
    pub elder: Option<Name>,
    pub split_at: Option<Time>,
}

impl BfqQueue {
    fn new(
        process: Option<u32>,
        level: Level,
        sweep: Sweep,
        now: Time,
        max_budget: u64,
    ) -> BfqQueue {
        BfqQueue {
            process,
            level,
            sweep,
            max_budget,
            created: now,
            history: History {
                seeks: 1,
                last_completion: now,
                window_begin: now,
                ..History::default()
            },
            ..BfqQueue::default()
        }
    }

    pub fn is_sync(&self) -> bool {
        self.process.is_some()
    }

    pub fn is_empty(&self) -> bool {
        self.sweep.is_empty()
    }

    /// Weight without raising.
    pub fn base_weight(&self) -> u64 {
        10 * (8 - self.level.priority().unsigned_abs())
    }

    /// Weight with raising.
    pub fn weight(&self) -> u64 {
        self.base_weight() * self.raise.factor()
    }

    /// Updates the statistics with a request that arrives now.
    pub fn observe(&mut self, now: Time, extent: Extent, slice_idle: Nanos) {
        let rests = self.is_empty() && self.in_drive == 0;
        let history = &mut self.history;
        let pause = since(now, history.last_completion);
        if rests && !self.busy {
            let think = pause.min(slice_idle.saturating_mul(2));
            history.think.add(think.as_nanos(), |_| 128);
        }
        if rests {
            history.paused = history.paused.saturating_add(pause);
        }
        let length = since(now, history.window_begin);
        history.pauses = self.is_known && history.paused.saturating_mul(5) > length;
        if length > PAUSE_WINDOW {
            let half = |span: Nanos| Nanos::from_nanos(span.as_nanos() / 2);
            history.window_begin = now.saturating_sub(half(length));
            history.paused = half(history.paused);
        }
        let seek = is_seek(history.last_end, extent);
        history.seeks = history.seeks << 1 | u32::from(seek);
        history.last_end = Some(extent.end());
    }
}

/// All queues. The shared queues always exist.
#[derive(Clone, Debug)]
pub(super) struct BfqQueues {
    slots: Vec<BfqQueue>,
    by_process: SortedMap<(u32, Level), BfqQueueId>,
    pub classes: [ClassShares; LEVELS],
    /// Time at which the idle class was last looked after.
    pub idle_class_turn: Time,
}

impl BfqQueues {
    /// Builds the shared queues, with this budget.
    pub fn new(budget: u64) -> BfqQueues {
        let shared = [Level::RealTime, Level::BestEffort, Level::Idle];
        let shared =
            shared.map(|level| BfqQueue::new(None, level, Sweep::new(None), Time::ZERO, budget));
        BfqQueues {
            slots: shared.into(),
            by_process: SortedMap::new(),
            classes: Default::default(),
            idle_class_turn: Time::ZERO,
        }
    }

    /// Returns the own queue of a process.
    pub fn find(&self, process: u32, level: Level) -> Option<BfqQueueId> {
        self.by_process.get(&(process, level))
    }

    /// Returns the queue of this name, unless the queue was forgotten.
    pub fn named(&self, (id, created): Name) -> Option<BfqQueueId> {
        (self[id].created == created).then_some(id)
    }

    /// Returns the queue that gets the requests of a queue's process.
    pub fn target(&self, mut id: BfqQueueId) -> BfqQueueId {
        while let Some(into) = self[id].merged_into {
            id = into;
        }
        id
    }

    /// Adds the queue of a process. If too many are remembered, the queue that has been quiet for longest makes room.
    pub fn add(&mut self, process: u32, level: Level, now: Time, max_budget: u64) -> BfqQueueId {
        let slot = match self.by_process.len() >= REMEMBERED_MAX {
            true => self.forget_one(),
            false => None,
        };
        let id = slot.unwrap_or(BfqQueueId(self.slots.len() as u32));
        let name = (level != Level::Idle).then_some(Tag(id.0));
        let sweep = match slot {
            Some(id) => self[id].sweep.take(name),
            None => Sweep::new(name),
        };
        let queue = BfqQueue::new(Some(process), level, sweep, now, max_budget);
        match slot {
            Some(id) => self[id] = queue,
            None => self.slots.push(queue),
        }
        self.by_process.insert((process, level), id);
        id
    }

    fn forget_one(&mut self) -> Option<BfqQueueId> {
        let unused = self.by_process.iter().filter(|(_, id)| {
            let queue = &self[*id];
            !queue.busy && queue.in_drive == 0 && queue.sharers == 0
        });
        let (key, id) = unused.min_by_key(|(_, id)| self[*id].quiet_since)?;
        self.by_process.remove(&key);
        self.give_back(id);
        if let Some(into) = self[id].merged_into {
            self.leave(into);
        }
        Some(id)
    }

    /// Notes that a queue no longer shares the queue `into`.
    pub fn leave(&mut self, into: BfqQueueId) {
        let queue = &mut self[into];
        queue.sharers -= 1;
        queue.splits &= queue.sharers > 0;
    }
}

impl core::ops::Index<BfqQueueId> for BfqQueues {
    type Output = BfqQueue;

    fn index(&self, id: BfqQueueId) -> &BfqQueue {
        &self.slots[id.0 as usize]
    }
}

impl core::ops::IndexMut<BfqQueueId> for BfqQueues {
    fn index_mut(&mut self, id: BfqQueueId) -> &mut BfqQueue {
        &mut self.slots[id.0 as usize]
    }
}
