//! Queues of requests that are each served in a sweep, as CFQ and BFQ keep them.

use crate::ages::AgeList;
use crate::lba_index::{LbaGroups, Ties};
use crate::nearest::LookBack;
use crate::pool::Pool;
use crate::{LbaIndex, Request, Tag};
use headtime_units::Lba;

/// The requests of one queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sweep {
    by_lba: LbaGroups,
    /// Requests by age. The links are in the pool.
    fifo: AgeList,
    /// Next request of the sweep. Present if the queue has requests.
    next: Option<Tag>,
    /// Name of the queue in the index of positions. `None` if the queue is not in the index.
    name: Option<Tag>,
    /// Address under which the queue is in the index of positions.
    listed: Option<Lba>,
}

impl Sweep {
    /// Builds a queue without requests.
    pub const fn new(name: Option<Tag>) -> Sweep {
        Sweep {
            by_lba: LbaGroups::new(),
            fifo: AgeList::EMPTY,
            next: None,
            name,
            listed: None,
        }
    }

    /// Removes the memory of a queue without requests, for another queue.
    pub fn take(&mut self, name: Option<Tag>) -> Sweep {
        let empty = core::mem::replace(self, Sweep::new(None));
        assert!(empty.is_empty(), "the queue is in use");
        Sweep { name, ..empty }
    }

    pub fn len(&self) -> usize {
        self.fifo.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn next(&self) -> Option<Tag> {
        self.next
    }

    pub fn oldest(&self) -> Option<Tag> {
        self.fifo.oldest()
    }
}

/// The requests of all queues, each with its owner of type `O`.
#[derive(Clone, Debug)]
pub(crate) struct Sweeps<O> {
    pub pool: Pool<O>,
    /// Requests at equal addresses, for the queues' indexes.
    ties: Ties,
    /// Queues by their next request; tags are names of queues.
    pub positions: LbaIndex,
    back: LookBack,
    /// True if a sweep goes on from its own last request, false if from the last request of all queues.
    from_own: bool,
    /// End of the last request handed out.
    pub last: Lba,
}

impl<O: Copy> Sweeps<O> {
    pub fn new(back: LookBack, from_own: bool) -> Sweeps<O> {
        Sweeps {
            pool: Pool::default(),
            ties: Ties::default(),
            positions: LbaIndex::new(),
            back,
            from_own,
            last: Lba::ZERO,
        }
    }

    /// Queues a request.
    pub fn insert(&mut self, sweep: &mut Sweep, request: Request, owner: O) {
        let (tag, start) = (request.tag, request.extent.start);
        self.pool.insert(&mut sweep.fifo, request, owner);
        sweep.by_lba.insert(&mut self.ties, start, tag);
        self.consider(sweep, tag);
    }

    /// Removes a queued request for the drive. The sweep goes on from this request.
    pub fn hand_out(&mut self, sweep: &mut Sweep, tag: Tag) -> Request {
        let request = self.pool.hand_out(&mut sweep.fifo, tag);
        // The sweep chooses its next request before its position moves to the end of this request.
        self.left(sweep, &request, true);
        self.last = request.extent.end();
        request
    }

    /// Removes a queued request.
    pub fn withdraw(&mut self, sweep: &mut Sweep, tag: Tag) -> Request {
        let request = self.pool.withdraw(&mut sweep.fifo, tag);
        self.left(sweep, &request, false);
        request
    }

    /// Notes that a queued request has grown to `grown`.
    pub fn merged(&mut self, sweep: &mut Sweep, grown: &Request) {
        let (tag, start) = (grown.tag, grown.extent.start);
        let old = self.pool.grow(&mut sweep.fifo, grown);
        if old.start != start {
            let there = sweep.by_lba.remove(&mut self.ties, old.start, tag);
            assert!(there, "the index lost request {}", tag.0);
            sweep.by_lba.insert(&mut self.ties, start, tag);
            self.consider(sweep, tag);
        }
    }

    /// Removes `gone`, which became part of `kept`.
    pub fn fused(&mut self, sweep: &mut Sweep, kept: Tag, gone: Tag) {
        let gone = self.pool.fuse(&mut sweep.fifo, kept, gone);
        self.left(sweep, &gone, false);
    }

    /// Sets the next request of a sweep, and updates the index of positions.
    pub fn set_next(&mut self, sweep: &mut Sweep, next: Option<Tag>) {
        sweep.next = next;
        let Some(name) = sweep.name else { return };
        let listed = next.map(|tag| self.pool.get(tag).extent.start);
        if listed != sweep.listed {
            if let Some(lba) = sweep.listed {
                let there = self.positions.remove(lba, name);
                assert!(there, "the index lost queue {}", name.0);
            }
            if let Some(lba) = listed {
                self.positions.insert(lba, name);
            }
            sweep.listed = listed;
        }
    }

    /// Makes a request the next one of its sweep if that is better (cfq_choose_req, bfq_choose_req).
    fn consider(&mut self, sweep: &mut Sweep, tag: Tag) {
        let next = self.better(self.last, sweep.next, tag);
        self.set_next(sweep, Some(next));
    }

    /// Returns the better of the next request of a sweep that stands at `last`, and another request.
    fn better(&self, last: Lba, next: Option<Tag>, other: Tag) -> Tag {
        let Some(next) = next else { return other };
        let start = |tag| self.pool.get(tag).extent.start;
        match self.back.prefers_other(last, start(next), start(other)) {
            true => other,
            false => next,
        }
    }

    /// Notes that a request left its queue. If the request was taken or was next in the sweep, the sweep gets a new next
    /// request (cfq_find_next_rq, bfq_find_next_rq).
    fn left(&mut self, sweep: &mut Sweep, request: &Request, taken: bool) {
        let start = request.extent.start;
        let there = sweep.by_lba.remove(&mut self.ties, start, request.tag);
        assert!(there, "the index lost request {}", request.tag.0);
        if !taken && sweep.next != Some(request.tag) {
            return;
        }
        let last = if self.from_own { start } else { self.last };
        let by_lba = &sweep.by_lba;
        let after = by_lba.first_at_or_after(start).or(by_lba.first());
        let after = after.map(|entry| entry.tag);
        let next = match by_lba.last_before(start) {
            Some(before) => Some(self.better(last, after, before.tag)),
            None => after,
        };
        self.set_next(sweep, next);
    }
}
