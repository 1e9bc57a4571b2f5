//! The queues and the order of their turns.

use crate::Tag;
use crate::level::Level;
use crate::sweep::Sweep;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Identifier of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueueId(pub u32);

impl QueueId {
    /// Returns the queue of all asynchronous requests of a class.
    pub const fn shared(level: Level) -> QueueId {
        QueueId(level as u32)
    }

    /// Name of the queue in the index of positions, which has no queue of the idle class.
    fn name(self, level: Level) -> Option<Tag> {
        (level != Level::Idle).then_some(Tag(self.0))
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
    pub sweep: Sweep,
    /// Place in the rotation. Present if the queue has requests.
    pub standing: Option<Standing>,
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
    fn new(sync: bool, level: Level, sweep: Sweep) -> Queue {
        Queue {
            sync,
            level,
            sweep,
            standing: None,
            rest: 0,
            in_drive: 0,
            idles: sync && level != Level::Idle,
            cooperated: false,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.sweep.is_empty()
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
        let shared = shared.map(|level| {
            let name = QueueId::shared(level).name(level);
            Queue::new(false, level, Sweep::new(name))
        });
        Queues {
            slots: shared.into(),
            free: Vec::new(),
        }
    }

    /// Adds a queue for a process's synchronous requests.
    pub fn add(&mut self, level: Level) -> QueueId {
        match self.free.pop() {
            Some(id) => {
                let sweep = self[id].sweep.take(id.name(level));
                self[id] = Queue::new(true, level, sweep);
                id
            }
            None => {
                let id = QueueId(self.slots.len() as u32);
                let sweep = Sweep::new(id.name(level));
                self.slots.push(Queue::new(true, level, sweep));
                id
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
