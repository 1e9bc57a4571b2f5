//! Counts of gap reads, and of the steps of their searches.

use core::ops::AddAssign;

/// Cause for which no gap read precedes a client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The drive's buffer may serve the request.
    Hit,
    /// The drive has more commands than can be predicted.
    Queue,
    /// The drive serves reads of clients at other times than predicted, or in another order.
    Order,
    /// The drive destages before many reads of clients, and the ration of gap reads is used up.
    Destaging,
    /// Clients would lose hits of the drive's buffer.
    LostHits,
}

impl Obstacle {
    /// Number of obstacles.
    pub const COUNT: usize = Obstacle::LostHits as usize + 1;
}

/// Counts of gaps, requests and blocks of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeblockStats {
    /// Clients' requests for which a gap read was searched.
    pub gaps: u64,
    /// Clients' requests for which gap reads were suspended, by [`Obstacle`].
    pub suspended: [u64; Obstacle::COUNT],
    /// Gap reads in commands of their own.
    pub before: u64,
    /// Gap reads at the front of a client's request.
    pub with: u64,
    /// Reads in idle time.
    pub alone: u64,
    /// Blocks read in idle time.
    pub blocks_alone: u64,
    /// Reads at clients' cost: queued like a client's request, or before a staged request.
    pub demanded: u64,
    /// Blocks read at clients' cost.
    pub blocks_demanded: u64,
    /// Blocks read in all of these ways.
    pub blocks: u64,
    /// Blocks that clients read.
    pub read_by_others: u64,
}

impl FreeblockStats {
    /// Returns the number of clients' requests for which gap reads were suspended by any obstacle.
    pub fn suspensions(&self) -> u64 {
        self.suspended.iter().sum()
    }
}

impl AddAssign for FreeblockStats {
    fn add_assign(&mut self, other: FreeblockStats) {
        let FreeblockStats {
            gaps,
            suspended,
            before,
            with,
            alone,
            blocks_alone,
            demanded,
            blocks_demanded,
            blocks,
            read_by_others,
        } = other;
        self.gaps += gaps;
        for (sum, more) in self.suspended.iter_mut().zip(suspended) {
            *sum += more;
        }
        self.before += before;
        self.with += with;
        self.alone += alone;
        self.blocks_alone += blocks_alone;
        self.demanded += demanded;
        self.blocks_demanded += blocks_demanded;
        self.blocks += blocks;
        self.read_by_others += read_by_others;
    }
}

impl AddAssign for Steps {
    fn add_assign(&mut self, other: Steps) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.max = self.max.max(other.max);
        self.sum += other.sum;
    }
}

/// Distribution of the number of steps of searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// Number of searches by the number of binary digits of their steps.
    counts: [u64; 65],
    /// Most steps of one search.
    pub max: u64,
    /// Steps of all searches.
    pub sum: u64,
}

impl Default for Steps {
    /// Returns the distribution of no search.
    fn default() -> Steps {
        Steps {
            counts: [0; 65],
            max: 0,
            sum: 0,
        }
    }
}

impl Steps {
    pub(super) fn add(&mut self, steps: u64) {
        self.counts[(u64::BITS - steps.leading_zeros()) as usize] += 1;
        self.max = self.max.max(steps);
        self.sum += steps;
    }

    /// Returns the number of searches.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the number of steps that a share of the searches (0 to 1) does not exceed. The number is rounded up to a power of two less
    /// one. It is 0 without searches.
    pub fn at(&self, share: f64) -> u64 {
        let least = (self.count() as f64 * share).ceil().max(1.0) as u64;
        let mut sum = 0;
        let digits = self.counts.iter().position(|count| {
            sum += count;
            sum >= least
        });
        let above = 1_u64.checked_shl(digits.unwrap_or(0) as u32);
        self.max.min(above.map_or(u64::MAX, |above| above - 1))
    }
}
