//! Hits of the drive's buffer that gap reads cost clients.
//!
//! While the head waits for a client's sector, many drives cache the sectors that pass in front of it. A gap read takes that wait and a place in the
//! buffer. Clients that soon ask for near sectors lose hits. Each lost hit is an access of the arm.
//!
//! Two [accounts](super::kept) follow the buffer: the first with gap reads, the second without. A read is a *lost* hit if the second account alone
//! serves it and the medium served it. A read is a *won* hit if the first account alone serves it and the buffer served it. When more hits are lost
//! than won, gap reads are suspended. The first account then goes on as if they were not: blocks that would have been read count as read. A read that
//! the first account does not serve, and that is a hit, is then a hit that gap reads would have cost. So the accounts show when gap reads cost nothing
//! any more.
//!
//! While gap reads are suspended, the sectors directly in front of a client's sectors are still read with them, if the drive caches those
//! anyway: if its arm does not use the wait to read ahead.

use headtime_engine::Finished;
use headtime_sched::{Op, Surprise};
use headtime_units::{Extent, Lba, Nanos, Time};

/// Fewer lost hits than these say nothing.
const FEW: u32 = 2;

/// Gaps rest when more than one of so many reads was a lost hit.
const MOST: u32 = 64;

/// So many of the last reads are judged, and for so many gaps rest, or for four times as many requests of any kind.
const LAST: u32 = 256;

/// Requests of clients that are on the way; of more the oldest is forgotten.
const ON_THE_WAY: usize = 8;

/// A client's read that goes to the drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coming {
    pub id: u64,
    pub arrival: Time,
    /// What the drive reads in front of it begins here if nothing is read in the gap.
    pub front: Lba,
    /// Predicted wait of the head for the read if nothing is read in the gap; `None` if nobody has predicted.
    pub waits: Option<Nanos>,
    /// True if a gap read is queued before this read, or would be if gap reads were not suspended.
    pub is_behind: bool,
    /// True if a gap read, in a command of its own or not, takes the wait, or would.
    pub is_taken: bool,
    /// Whether the buffer would serve it if nothing had been read in gaps.
    pub would: bool,
    /// Whether it may all the same.
    pub does: bool,
    /// What would have been read, or written, in the gap.
    pub held: Option<(Op, Extent)>,
    /// Whether gaps rested when it went.
    pub rests: bool,
}

/// Rests when picks cost clients hits.
#[derive(Debug)]
pub(super) struct Guard {
    coming: Vec<Coming>,
    rests: bool,
    /// Requests of clients that were done since it has rested.
    done: u32,
    /// Reads that were judged, and how many of them were lost hits; both are halved when they are enough.
    seen: u32,
    lost: u32,
}

impl Guard {
    /// One that has seen nothing.
    pub fn new() -> Guard {
        Guard {
            coming: Vec::with_capacity(ON_THE_WAY),
            rests: false,
            done: 0,
            seen: 0,
            lost: 0,
        }
    }

    /// Returns true if nothing is to be read in gaps but what the drive reads anyway.
    pub fn rests(&self) -> bool {
        self.rests
    }

    /// What was noted of the request that went last, if it is this one.
    pub fn last(&mut self, id: u64, arrival: Time) -> Option<&mut Coming> {
        let last = self.coming.last_mut();
        last.filter(|last| (last.id, last.arrival) == (id, arrival))
    }

    /// A client's read goes to the drive.
    pub fn comes(&mut self, coming: Coming) {
        if self.coming.len() == ON_THE_WAY {
            self.coming.remove(0);
        }
        self.coming.push(coming);
    }

    /// A client's request is done. Returns what was noted of it.
    pub fn take(&mut self, done: &Finished) -> Option<Coming> {
        self.done = self.done.saturating_add(1);
        let is_it = |one: &Coming| (one.id, one.arrival) == (done.id, done.request.arrival);
        let at = self.coming.iter().position(is_it);
        at.map(|at| self.coming.remove(at))
    }

    /// Counts a read that is done, unless gaps have begun or ended to rest since it went: what was to be expected of it
    /// was expected of the other state.
    pub fn count(&mut self, coming: &Coming, surprise: Surprise) {
        if coming.rests != self.rests {
            return;
        }
        let is_hit = surprise == Surprise::Hit;
        self.seen += 1;
        match (coming.would, coming.does) {
            (true, false) => self.lost += u32::from(is_hit == self.rests),
            (false, true) if is_hit && !self.rests => self.lost = self.lost.saturating_sub(1),
            _ => {}
        }
    }

    /// Begins to rest, or ends it. Returns true if it did either.
    pub fn decide(&mut self) -> bool {
        let before = self.rests;
        let is_many = self.lost * MOST > self.seen;
        let is_enough = self.seen >= LAST || self.done >= 4 * LAST;
        match self.rests {
            true if is_enough && !is_many => self.turn(),
            false if is_many && self.lost >= FEW => self.turn(),
            _ => {}
        }
        if self.seen >= LAST {
            self.seen /= 2;
            self.lost /= 2;
        }
        self.rests != before
    }

    fn turn(&mut self) {
        self.rests = !self.rests;
        (self.seen, self.lost, self.done) = (0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Judges so many reads that are as this one.
    fn judge(guard: &mut Guard, times: u32, would: bool, does: bool, surprise: Surprise) {
        for _ in 0..times {
            let coming = Coming {
                id: 0,
                arrival: Time::ZERO,
                front: Lba::ZERO,
                waits: None,
                is_behind: false,
                is_taken: false,
                would,
                does,
                held: None,
                rests: guard.rests,
            };
            guard.done += 1;
            guard.count(&coming, surprise);
            guard.decide();
        }
    }

    /// One that rests.
    fn at_rest() -> Guard {
        let mut guard = Guard::new();
        judge(&mut guard, FEW, true, false, Surprise::None);
        assert!(guard.rests);
        guard
    }

    #[test]
    fn a_rest_ends_when_enough_reads_have_nothing_to_lose() {
        let mut guard = at_rest();
        judge(&mut guard, LAST - 1, false, false, Surprise::None);
        assert!(guard.rests);
        judge(&mut guard, 1, false, false, Surprise::None);
        assert!(!guard.rests);
    }

    #[test]
    fn a_read_that_went_before_gaps_began_to_rest_is_not_judged_by_the_rest() {
        let mut guard = Guard::new();
        let before = Coming {
            id: 0,
            arrival: Time::ZERO,
            front: Lba::ZERO,
            waits: None,
            is_behind: false,
            is_taken: false,
            would: true,
            does: false,
            held: None,
            rests: false,
        };
        judge(&mut guard, FEW, true, false, Surprise::None);
        assert!(guard.rests);
        for _ in 0..100 {
            guard.count(&before, Surprise::Hit);
        }
        assert_eq!((guard.seen, guard.lost), (0, 0));
    }

    #[test]
    fn clients_who_only_write_have_nothing_to_lose() {
        let mut guard = at_rest();
        for nth in 1..=4 * LAST {
            assert!(guard.rests, "{nth}");
            guard.done += 1;
            guard.decide();
        }
        assert!(!guard.rests);
    }

    #[test]
    fn hits_that_would_be_lost_keep_gaps_at_rest_until_there_are_none() {
        let mut guard = at_rest();
        judge(&mut guard, 10 * LAST, true, false, Surprise::Hit);
        assert!(guard.rests);
        // The buffer has them anyway, or does not have them in fact.
        let mut others = 0;
        while guard.rests && others < 10_000 {
            judge(&mut guard, 1, true, others % 2 == 0, Surprise::None);
            others += 1;
        }
        assert!((2 * LAST..8 * LAST).contains(&others), "{others}");
    }

    #[test]
    fn a_few_lost_hits_are_enough_and_those_that_are_brought_count_against_them() {
        let mut guard = Guard::new();
        judge(&mut guard, FEW - 1, true, false, Surprise::None);
        assert!(!guard.rests);
        judge(&mut guard, 1, true, false, Surprise::None);
        assert!(guard.rests);
        let mut guard = Guard::new();
        for _ in 0..1_000 {
            judge(&mut guard, 1, true, false, Surprise::None);
            judge(&mut guard, 1, false, true, Surprise::Hit);
        }
        assert!(!guard.rests);
        // What was not lost in fact, whatever the accounts say.
        judge(&mut guard, 1_000, true, false, Surprise::Hit);
        assert!(!guard.rests);
        // A hundredth is little.
        for _ in 0..100 {
            judge(&mut guard, 1, true, false, Surprise::None);
            judge(&mut guard, 99, false, false, Surprise::None);
        }
        assert!(!guard.rests);
    }
}
