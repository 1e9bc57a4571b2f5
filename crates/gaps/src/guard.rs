//! Hits of the drive's buffer that gap reads cost clients.
//!
//! While the head waits for a client's sector, many drives cache the sectors that pass in front. A gap read takes that wait, and a place in
//! the buffer. Clients that soon ask for near sectors lose hits. Each lost hit is an access of the arm.
//!
//! Two [accounts](super::buffer_accounts) follow the buffer: the first with gap reads, the second without. A read is a *lost* hit if the second
//! account alone serves the read and the medium served it. A read is a *won* hit if the first account alone serves the read and the buffer
//! served it.
//!
//! If lost hits exceed won hits by more than a 64th of the reads, gap reads are suspended. The first account then goes on as if gap reads
//! were made: blocks that would have been read count as read. If a read is a hit and the first account does not serve the read, gap reads
//! would have cost that hit. So the accounts show when gap reads cost nothing any more.
//!
//! A drive whose arm does not use the wait to read ahead caches the sectors directly in front of a client's sectors anyway. On such a drive
//! these sectors are still read, with the client's request, while gap reads are suspended.

use headtime_engine::Finished;
use headtime_sched::{Op, Surprise};
use headtime_units::{Extent, Lba, Nanos, Time};

/// Least number of lost hits that suspends gap reads. Fewer may be chance.
const LOST_HITS_MIN: u32 = 2;

/// Gap reads are suspended while more than one of this number of reads is a lost hit. With this limit clients lose about 1 % under
/// `sptf` and `deadline` (`docs/design/2026-11-23-freeblock.md`).
const LOST_HITS_PART: u32 = 64;

/// Reads over which lost hits are counted. A suspension lasts at least for this number of reads, or for four times this number of requests
/// of any kind.
const READS_COUNTED: u32 = 256;

/// Most clients' reads on the way that are noted. With more, the oldest is forgotten.
const COMING_MAX: usize = 8;

/// A client's read that goes to the drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coming {
    pub id: u64,
    pub arrival: Time,
    /// First sector that the drive caches in front of the read if no gap read takes the wait.
    pub front: Lba,
    /// Predicted wait of the head for the read if no gap read takes the wait; `None` without a prediction.
    pub waits: Option<Nanos>,
    /// True if a gap read precedes this read in the drive, or would precede it while gap reads are suspended.
    pub has_gap_read_ahead: bool,
    /// True if a gap read, in a command of its own or not, takes the wait, or would take the wait while gap reads are suspended.
    pub is_taken: bool,
    /// True if the buffer would serve this read had no gap been used.
    pub hit_without_gaps: bool,
    /// True if the buffer model, with gap reads, still expects a hit.
    pub hit_expected: bool,
    /// The gap read, or gap write, that was held back.
    pub held: Option<(Op, Extent)>,
    /// True if gap reads were suspended when this read went to the drive.
    pub rests: bool,
}

/// Suspends gap reads while they evict data that clients would have hit.
#[derive(Debug)]
pub(super) struct Guard {
    coming: Vec<Coming>,
    rests: bool,
    /// Clients' requests that ended since the last suspension started or ended.
    done: u32,
    /// Reads that were judged, and the number of lost hits among these reads. Both are halved once [`READS_COUNTED`] reads were judged.
    seen: u32,
    lost: u32,
}

impl Guard {
    /// Returns a guard that has seen no reads.
    pub fn new() -> Guard {
        Guard {
            coming: Vec::with_capacity(COMING_MAX),
            rests: false,
            done: 0,
            seen: 0,
            lost: 0,
        }
    }

    /// Returns true if gap reads are suspended, except for sectors that the drive caches anyway.
    pub fn rests(&self) -> bool {
        self.rests
    }

    /// Returns the note of the read that last went to the drive, if it is this read.
    pub fn last(&mut self, id: u64, arrival: Time) -> Option<&mut Coming> {
        let last = self.coming.last_mut();
        last.filter(|last| (last.id, last.arrival) == (id, arrival))
    }

    /// Notes a client's read that goes to the drive.
    pub fn note_read(&mut self, coming: Coming) {
        if self.coming.len() == COMING_MAX {
            self.coming.remove(0);
        }
        self.coming.push(coming);
    }

    /// Notes the end of a client's request. Returns the request's note.
    pub fn take(&mut self, done: &Finished) -> Option<Coming> {
        self.done = self.done.saturating_add(1);
        let is_it = |one: &Coming| (one.id, one.arrival) == (done.id, done.request.arrival);
        let at = self.coming.iter().position(is_it);
        at.map(|at| self.coming.remove(at))
    }

    /// Counts a read that is done. A read that went to the drive in the other state, suspended or not, is not counted: the expectation
    /// noted for the read was of that state.
    pub fn count(&mut self, coming: &Coming, surprise: Surprise) {
        if coming.rests != self.rests {
            return;
        }
        let is_hit = surprise == Surprise::Hit;
        self.seen += 1;
        match (coming.hit_without_gaps, coming.hit_expected) {
            (true, false) => self.lost += u32::from(is_hit == self.rests),
            (false, true) if is_hit && !self.rests => self.lost = self.lost.saturating_sub(1),
            _ => {}
        }
    }

    /// Starts or ends a suspension if the counts ask for a change. Returns true if the state changed.
    pub fn decide(&mut self) -> bool {
        let before = self.rests;
        let is_many = self.lost * LOST_HITS_PART > self.seen;
        let is_enough = self.seen >= READS_COUNTED || self.done >= 4 * READS_COUNTED;
        match self.rests {
            true if is_enough && !is_many => self.turn(),
            false if is_many && self.lost >= LOST_HITS_MIN => self.turn(),
            _ => {}
        }
        if self.seen >= READS_COUNTED {
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

    /// Judges a number of reads like this one.
    fn judge(
        guard: &mut Guard,
        times: u32,
        hit_without_gaps: bool,
        hit_expected: bool,
        surprise: Surprise,
    ) {
        for _ in 0..times {
            let coming = Coming {
                id: 0,
                arrival: Time::ZERO,
                front: Lba::ZERO,
                waits: None,
                has_gap_read_ahead: false,
                is_taken: false,
                hit_without_gaps,
                hit_expected,
                held: None,
                rests: guard.rests,
            };
            guard.done += 1;
            guard.count(&coming, surprise);
            guard.decide();
        }
    }

    /// Returns a guard that suspends gap reads.
    fn at_rest() -> Guard {
        let mut guard = Guard::new();
        judge(&mut guard, LOST_HITS_MIN, true, false, Surprise::None);
        assert!(guard.rests);
        guard
    }

    #[test]
    fn a_rest_ends_when_enough_reads_have_nothing_to_lose() {
        let mut guard = at_rest();
        judge(&mut guard, READS_COUNTED - 1, false, false, Surprise::None);
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
            has_gap_read_ahead: false,
            is_taken: false,
            hit_without_gaps: true,
            hit_expected: false,
            held: None,
            rests: false,
        };
        judge(&mut guard, LOST_HITS_MIN, true, false, Surprise::None);
        assert!(guard.rests);
        for _ in 0..100 {
            guard.count(&before, Surprise::Hit);
        }
        assert_eq!((guard.seen, guard.lost), (0, 0));
    }

    #[test]
    fn clients_who_only_write_have_nothing_to_lose() {
        let mut guard = at_rest();
        for nth in 1..=4 * READS_COUNTED {
            assert!(guard.rests, "{nth}");
            guard.done += 1;
            guard.decide();
        }
        assert!(!guard.rests);
    }

    #[test]
    fn hits_that_would_be_lost_keep_gaps_at_rest_until_there_are_none() {
        let mut guard = at_rest();
        judge(&mut guard, 10 * READS_COUNTED, true, false, Surprise::Hit);
        assert!(guard.rests);
        // The buffer has half of these reads anyway. The other half are not in the buffer in fact.
        let mut others = 0;
        while guard.rests && others < 10_000 {
            judge(&mut guard, 1, true, others % 2 == 0, Surprise::None);
            others += 1;
        }
        assert!(
            (2 * READS_COUNTED..8 * READS_COUNTED).contains(&others),
            "{others}"
        );
    }

    #[test]
    fn a_few_lost_hits_are_enough_and_those_that_are_brought_count_against_them() {
        let mut guard = Guard::new();
        judge(&mut guard, LOST_HITS_MIN - 1, true, false, Surprise::None);
        assert!(!guard.rests);
        judge(&mut guard, 1, true, false, Surprise::None);
        assert!(guard.rests);
        let mut guard = Guard::new();
        for _ in 0..1_000 {
            judge(&mut guard, 1, true, false, Surprise::None);
            judge(&mut guard, 1, false, true, Surprise::Hit);
        }
        assert!(!guard.rests);
        // The accounts expect lost hits here, but the reads were hits.
        judge(&mut guard, 1_000, true, false, Surprise::Hit);
        assert!(!guard.rests);
        // One lost hit of a hundred reads is below the limit.
        for _ in 0..100 {
            judge(&mut guard, 1, true, false, Surprise::None);
            judge(&mut guard, 99, false, false, Surprise::None);
        }
        assert!(!guard.rests);
    }
}
