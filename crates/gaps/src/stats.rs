//! What was done in gaps, and what looking for it took.

use core::ops::AddAssign;

/// Cause for which nothing is read before a request of a client.
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

/// Counts of gaps, and of requests and blocks of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeblockStats {
    /// Requests of clients before which something was looked for.
    pub gaps: u64,
    /// Requests of clients before which nothing was looked for, by [`Obstacle`].
    pub suspended: [u64; Obstacle::COUNT],
    /// Picks before a request, in commands of their own.
    pub before: u64,
    /// Picks at the front of a request.
    pub with: u64,
    /// Reads while nobody waited for anything.
    pub alone: u64,
    /// Blocks that were read by those.
    pub blocks_alone: u64,
    /// Reads that were queued as a client's.
    pub demanded: u64,
    /// Blocks that were read by those.
    pub blocks_demanded: u64,
    /// Blocks that were read in all of these ways.
    pub blocks: u64,
    /// Blocks that others read.
    pub read_by_others: u64,
}

impl FreeblockStats {
    /// Requests of clients before which nothing was looked for, whatever the obstacle.
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

/// How many searches took how many steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// By the number of binary digits of the steps.
    counts: [u64; 65],
    /// The most of one.
    pub max: u64,
    /// Of all.
    pub sum: u64,
}

impl Default for Steps {
    /// Of no search.
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

    /// How many searches there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The steps that a share of the searches (0 to 1) does not exceed, rounded up to a power of two less one; 0 if there were
    /// none.
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
