//! B-WF2Q+: the order of queues by virtual times, one timeline per class (bfq-wf2q.c).
//!
//! Virtual time of a class advances by the sectors served, divided by the sum of all weights. Each queue has a virtual
//! start and finish. A queue is eligible if its start has come. The eligible queue with the smallest finish goes next.

use super::id::{BfqQueueId, since};
use super::queue::BfqQueues;
use super::share::{ClassShares, Virtual};
use crate::level::Level;
use headtime_units::{Nanos, Time};

/// Longest time between turns of the idle class, while that class has requests.
const IDLE_CLASS_TURN: Nanos = Nanos::from_millis(200);

/// Virtual time in which a queue of this weight is served this number of sectors.
fn delta(sectors: u64, weight: u64) -> Virtual {
    (Virtual::from(sectors) << 22) / Virtual::from(weight)
}

impl BfqQueues {
    fn class(&mut self, id: BfqQueueId) -> &mut ClassShares {
        let level = self[id].level;
        &mut self.classes[level.index()]
    }

    /// Makes a queue count with its weight of now. Virtual times that the queue has stay as they are.
    pub fn weigh(&mut self, id: BfqQueueId) {
        self.set_weight(id, self[id].weight());
    }

    fn set_weight(&mut self, id: BfqQueueId, weight: u64) {
        let before = core::mem::replace(&mut self[id].share.weight, weight);
        let class = self.class(id);
        class.weights = class.weights - before + weight;
    }

    /// Lets a queue that has got a request wait for its turn. With `on_time`, the queue takes up where it left off, even
    /// if its class has gone on since. A raised queue does not bear the whole loss.
    pub fn activate(&mut self, id: BfqQueueId, on_time: bool) {
        self.class(id).resting.retain(|other| *other != id);
        self.weigh(id);
        let now = self.class(id).now;
        let factor = self[id].raise.factor();
        let share = &mut self[id].share;
        let behind = on_time && now > share.finish;
        share.start = match behind {
            true => share.finish,
            false => share.finish.max(now),
        };
        share.finish = share.start + delta(share.budget, share.weight);
        if behind && now > share.finish {
            let loss = (now - share.finish) / Virtual::from(factor);
            share.start += loss;
            share.finish += loss;
        }
        self.class(id).waiting.push(id);
    }

    /// Lets the queue in service, which has a new budget, wait for its next turn.
    pub fn requeue(&mut self, id: BfqQueueId) {
        self.end_service(id);
        self.weigh(id);
        let share = &mut self[id].share;
        share.start = share.finish;
        share.finish = share.start + delta(share.budget, share.weight);
        self.class(id).waiting.push(id);
    }

    /// Notes that a queue has no more requests. Ends its service if `in_service`.
    pub fn retire(&mut self, id: BfqQueueId, in_service: bool) {
        if in_service {
            self.end_service(id);
        }
        let class = self.class(id);
        class.waiting.retain(|other| *other != id);
        class.resting.push(id);
        self.forget(self[id].level.index());
    }

    /// Makes a queue without requests not count.
    pub fn give_back(&mut self, id: BfqQueueId) {
        self.class(id).resting.retain(|other| *other != id);
        self.set_weight(id, 0);
    }

    /// Chooses the next queue and takes it into service. Higher classes go first, but the idle class gets a turn after
    /// [`IDLE_CLASS_TURN`].
    pub fn choose(&mut self, now: Time) -> Option<BfqQueueId> {
        let idle = Level::Idle.index();
        let mut first = 0;
        if since(now, self.idle_class_turn) > IDLE_CLASS_TURN {
            self.idle_class_turn = now;
            if !self.classes[idle].waiting.is_empty() {
                first = idle;
            }
        }
        let busy = |class: &ClassShares| !class.waiting.is_empty();
        let at = first + self.classes[first..].iter().position(busy)?;
        let waiting = || self.classes[at].waiting.iter().copied();
        let start = |id: &BfqQueueId| self[*id].share.start;
        let earliest = waiting().map(|id| start(&id)).min()?;
        let now = self.classes[at].now.max(earliest);
        let eligible = waiting().filter(|id| start(id) <= now);
        let id = eligible.min_by_key(|id| self[*id].share.finish)?;
        let class = &mut self.classes[at];
        class.now = now;
        class.waiting.retain(|other| *other != id);
        self.forget(at);
        Some(id)
    }

    /// Charges the queue in service for this number of sectors.
    pub fn serve(&mut self, id: BfqQueueId, sectors: u64) {
        self[id].share.served += sectors;
        let class = self.class(id);
        class.now += delta(sectors, class.weights);
        self.forget(self[id].level.index());
    }

    fn end_service(&mut self, id: BfqQueueId) {
        let share = &mut self[id].share;
        share.finish = share.start + delta(share.served, share.weight);
    }

    /// Makes the resting queues of a class whose finish has passed not count.
    fn forget(&mut self, at: usize) {
        let now = self.classes[at].now;
        for place in (0..self.classes[at].resting.len()).rev() {
            let id = self.classes[at].resting[place];
            if self[id].share.finish <= now {
                self.classes[at].resting.swap_remove(place);
                self.set_weight(id, 0);
            }
        }
    }
}
