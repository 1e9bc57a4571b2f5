//! A source of background reads that tries staged requests. Not for use.

use headtime_engine::{
    Approach, Arrival, Background, Engine, Finished, Join, Lane, RequestId, SharedCell,
};
use headtime_sched::{Class, Flags, Op, Origin, Scheduler};
use headtime_units::{Extent, Lba, Sectors, Time};
use std::collections::BTreeSet;

/// Reads a disk in the background, on the way to staged requests.
///
/// In turns it reads the sectors directly before a staged read, in the same command, and the next piece of the disk,
/// in a command that goes first. A scrub that is [offered](Scrub::offered) each request also queues reads, and reads
/// while no request waits.
#[derive(Debug)]
pub struct Scrub {
    piece: Sectors,
    capacity: Sectors,
    next: Lba,
    asked: u64,
    most: u64,
    offered: bool,
    /// The staged request at the time of the scrub's last own request.
    last: Option<Extent>,
    /// Requests of the scrub that are not finished.
    pub waits: BTreeSet<u64>,
    /// Number of finished requests of the scrub.
    pub finished: u64,
}

impl Scrub {
    /// A scrub of a disk of this capacity in pieces of this size, that ends after `most` requests.
    pub fn new(capacity: Sectors, piece: Sectors, most: u64) -> Scrub {
        Scrub {
            piece,
            capacity,
            next: Lba::ZERO,
            asked: 0,
            most,
            offered: false,
            last: None,
            waits: BTreeSet::new(),
            finished: 0,
        }
    }

    /// The scrub with `is_offered` on: the engine offers it each chosen request.
    pub fn offered(mut self) -> Scrub {
        self.offered = true;
        self
    }

    /// The request that the scrub wants now: at most one in each way for each staged request.
    pub fn joins<S: Scheduler>(&mut self, engine: &Engine<S>) -> Option<(Arrival, Lane, Join)> {
        let lane = Lane(0);
        let staged = engine.staged(lane).last().map(|staged| staged.extent);
        if self.asked == self.most || (staged.is_some() && self.last == staged) {
            return None;
        }
        let (join, start) = match staged {
            None if !self.offered || engine.in_flight() > 0 => return None,
            None => (Join::Alone, self.next),
            Some(staged) => {
                self.last = Some(staged);
                match self.asked % if self.offered { 3 } else { 2 } {
                    0 => {
                        let start = staged.start.get().checked_sub(self.piece.get())?;
                        (Join::With, Lba::new(start))
                    }
                    1 => (Join::Before, self.next),
                    _ => (Join::Queued, self.next),
                }
            }
        };
        let arrival = Arrival {
            id: RequestId::Background(self.asked),
            op: Op::Read,
            extent: Extent::new(start, self.piece),
            flags: Flags::NONE,
            origin: Origin::default(),
            class: Class::IDLE,
            since: None,
        };
        if !engine.may_join(&arrival, lane, join) {
            return None;
        }
        if join != Join::With {
            let end = arrival.extent.end();
            let fits = end + self.piece <= Lba::ZERO + self.capacity;
            self.next = if fits { end } else { Lba::ZERO };
        }
        self.waits.insert(self.asked);
        self.asked += 1;
        Some((arrival, lane, join))
    }

    /// Takes note of a finished request of this scrub.
    ///
    /// # Panics
    ///
    /// If the scrub did not ask for the request, or has seen its end already.
    pub fn finished(&mut self, done: &Finished) {
        assert!(self.waits.remove(&done.id), "{done:?} was not asked for");
        self.finished += 1;
    }
}

impl Background for Scrub {
    fn joins(
        &mut self,
        _: Time,
        engine: &Engine,
        _: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        Scrub::joins(self, engine)
    }

    fn is_offered(&self) -> bool {
        self.offered
    }

    fn finished(&mut self, _: Time, done: &Finished, _: Option<&[u8]>) {
        Scrub::finished(self, done);
    }
}

/// A scrub that tests can look at while it runs. Clones share one scrub.
#[derive(Clone, Debug)]
pub struct ShownScrub(SharedCell<Scrub>);

impl ShownScrub {
    /// Makes a scrub visible to the test.
    pub fn new(scrub: Scrub) -> ShownScrub {
        ShownScrub(SharedCell::new(scrub))
    }

    /// Returns true if all requests of the scrub are finished.
    pub fn waits_for_nothing(&self) -> bool {
        self.0.lock().waits.is_empty()
    }

    /// Number of finished requests of the scrub.
    pub fn finished(&self) -> u64 {
        self.0.lock().finished
    }
}

impl Background for ShownScrub {
    fn joins(
        &mut self,
        _: Time,
        engine: &Engine,
        _: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        self.0.lock().joins(engine)
    }

    fn is_offered(&self) -> bool {
        self.0.lock().offered
    }

    fn finished(&mut self, _: Time, done: &Finished, _: Option<&[u8]>) {
        self.0.lock().finished(done);
    }
}
