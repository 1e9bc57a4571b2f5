//! The queues and the order of their turns.

use crate::ages::AgeList;
use crate::lba_index::LbaGroups;
use crate::{Class, Tag};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use headtime_units::Lba;

/// Number of levels: real-time, best effort, idle.
pub(super) const LEVELS: usize = 3;

/// Level of a class in the rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    RealTime,
    BestEffort,
    Idle,
}

impl Level {
    /// Returns the level of a class. Classes below [`Class::IDLE`] count as idle.
    pub fn of(class: Class) -> Level {
        match class {
            Class::REAL_TIME => Level::RealTime,
            Class::BEST_EFFORT => Level::BestEffort,
            _ => Level::Idle,
        }
    }

    pub const fn index(self) -> usize {
        self as usize
    }

    /// The kernel's priority within the class: 0 is the highest, 7 the lowest. The default of a
    /// process is 4. The idle class uses 7.
    pub const fn priority(self) -> i64 {
        match self {
            Level::RealTime | Level::BestEffort => 4,
            Level::Idle => 7,
        }
    }
}

/// Identifier of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueueId(pub u32);

impl QueueId {
    /// Returns the queue of all asynchronous requests of a class.
    pub const fn shared(level: Level) -> QueueId {
        QueueId(level as u32)
    }
}

/// Place of a queue in the rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Standing {
    pub level: Level,
    /// In ticks. The lowest key of a class is next.
    pub key: i64,
    /// Order of insertion, which decides between equal keys.
    turn: u64,
    pub queue: QueueId,
}

/// A queue: the synchronous requests of one process and class, or all asynchronous requests of a
/// class.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub sync: bool,
    pub level: Level,
    pub by_lba: LbaGroups,
    /// Requests by age. The links are in the pool.
    pub fifo: AgeList,
    /// Next request of the sweep. Present if the queue has requests.
    pub next: Option<Tag>,
    /// Place in the rotation. Present if the queue has requests.
    pub standing: Option<Standing>,
    /// Address under which the queue is in the index of positions.
    pub listed: Option<Lba>,
    /// Time that an interrupted slice had left, in ticks, or negative overrun. It counts for the
    /// next place.
    pub rest: i64,
    /// Requests of the queue in the drive.
    pub in_drive: u64,
    /// True if a wait for the queue's process should pay.
    pub idles: bool,
    /// True if the queue had a turn by cooperation, and no regular turn since.
    pub cooperated: bool,
}

impl Queue {
    fn new(sync: bool, level: Level, by_lba: LbaGroups) -> Queue {
        Queue {
            sync,
            level,
            by_lba,
            fifo: AgeList::EMPTY,
            next: None,
            standing: None,
            listed: None,
            rest: 0,
            in_drive: 0,
            idles: sync && level != Level::Idle,
            cooperated: false,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.fifo.len() == 0
    }
}

/// All queues. The shared queues always exist.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    slots: Vec<Queue>,
    free: Vec<QueueId>,
}

impl Queues {
    pub fn new() -> Queues {
        let shared = [Level::RealTime, Level::BestEffort, Level::Idle];
        Queues {
            slots: shared
                .map(|level| Queue::new(false, level, LbaGroups::new()))
                .into(),
            free: Vec::new(),
        }
    }

    /// Adds a queue for a process's synchronous requests.
    pub fn add(&mut self, level: Level) -> QueueId {
        match self.free.pop() {
            Some(id) => {
                // The queue reuses the memory.
                let by_lba = core::mem::take(&mut self[id].by_lba);
                let fifo = core::mem::replace(&mut self[id].fifo, AgeList::EMPTY);
                self[id] = Queue {
                    fifo,
                    ..Queue::new(true, level, by_lba)
                };
                id
            }
            None => {
                self.slots.push(Queue::new(true, level, LbaGroups::new()));
                QueueId(self.slots.len() as u32 - 1)
            }
        }
    }

    /// Removes a queue without requests, here or in the drive.
    pub fn remove(&mut self, id: QueueId) {
        let queue = &self[id];
        assert!(
            queue.is_empty() && queue.in_drive == 0,
            "queue {} is in use",
            id.0
        );
        self.free.push(id);
    }
}

impl core::ops::Index<QueueId> for Queues {
    type Output = Queue;

    fn index(&self, id: QueueId) -> &Queue {
        &self.slots[id.0 as usize]
    }
}

impl core::ops::IndexMut<QueueId> for Queues {
    fn index_mut(&mut self, id: QueueId) -> &mut Queue {
        &mut self.slots[id.0 as usize]
    }
}

/// The queues that want a turn, in the order of their turns: by class, then by key.
///
/// Sorted in a ring. Changes are usually near the ends, and there few entries move.
#[derive(Clone, Debug, Default)]
pub(super) struct Rotation {
    standings: VecDeque<Standing>,
    turns: u64,
}

impl Rotation {
    pub fn len(&self) -> usize {
        self.standings.len()
    }

    pub fn is_empty(&self) -> bool {
        self.standings.is_empty()
    }

    pub fn first(&self) -> Option<Standing> {
        self.standings.front().copied()
    }

    pub fn last(&self) -> Option<Standing> {
        self.standings.back().copied()
    }

    /// Inserts a queue behind all queues of its class with a key that is not higher.
    pub fn insert(&mut self, level: Level, key: i64, queue: QueueId) -> Standing {
        let standing = Standing {
            level,
            key,
            turn: self.turns,
            queue,
        };
        self.turns += 1;
        let at = self.standings.partition_point(|other| *other < standing);
        self.standings.insert(at, standing);
        standing
    }

    pub fn remove(&mut self, standing: Standing) {
        let at = self.standings.binary_search(&standing);
        self.standings.remove(at.expect("it has that place"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn turns_go_by_class_then_key_then_who_came_first() {
        let mut rotation = Rotation::default();
        let standings: Vec<Standing> = [
            (Level::Idle, -5),
            (Level::BestEffort, 7),
            (Level::BestEffort, 3),
            (Level::RealTime, 99),
            (Level::BestEffort, 3),
            (Level::BestEffort, i64::MIN),
        ]
        .into_iter()
        .zip(0..)
        .map(|((level, key), queue)| rotation.insert(level, key, QueueId(queue)))
        .collect();
        rotation.remove(standings[1]);
        let mut order = Vec::new();
        while let Some(place) = rotation.first() {
            rotation.remove(place);
            order.push(place.queue.0);
        }
        assert_eq!(order, [3, 5, 2, 4, 0]);
    }

    #[test]
    fn a_queue_given_up_is_used_again_as_new() {
        let mut queues = Queues::new();
        let id = queues.add(Level::Idle);
        assert!(!queues[id].idles, "nobody waits for what has no class");
        queues[id].rest = 3;
        queues.remove(id);
        assert_eq!(queues.add(Level::BestEffort), id);
        assert!(queues[id].idles && queues[id].rest == 0);
        assert_ne!(queues.add(Level::BestEffort), id);
    }

    #[test]
    #[should_panic(expected = "is in use")]
    fn a_queue_in_use_stays() {
        let mut queues = Queues::new();
        let id = queues.add(Level::BestEffort);
        queues[id].in_drive = 1;
        queues.remove(id);
    }
}
