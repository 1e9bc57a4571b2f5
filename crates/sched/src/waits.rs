//! Counts of waits and of what came of them.

/// The counts of a scheduler that may wait.
///
/// A wait begins when the scheduler has requests queued and answers
/// [`Dispatch::IdleUntil`](crate::Dispatch::IdleUntil) for the sake of one that has not arrived. It ends
/// when the scheduler next hands out a request, or has none. It is won if that request is one that the
/// scheduler waited for and that came meanwhile, else lost. A policy that holds requests back for other
/// reasons (a limit on what is in the drive, a batch that has to end) does not wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitStats {
    /// Streams that were established, so that they are waited for. Zero if the policy forms no streams.
    pub streams_established: u64,
    /// How many of them may still go on, as of the last time that something happened.
    pub streams: u64,
    /// Waits that began. As many as were won and lost, and one more during one.
    pub waits: u64,
    /// Waits in which the request came and was served.
    pub waits_won: u64,
    /// Waits that ended otherwise.
    pub waits_lost: u64,
}

impl core::ops::AddAssign for WaitStats {
    fn add_assign(&mut self, other: WaitStats) {
        self.streams_established += other.streams_established;
        self.streams += other.streams;
        self.waits += other.waits;
        self.waits_won += other.waits_won;
        self.waits_lost += other.waits_lost;
    }
}

/// Counts the waits of one scheduler.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waits {
    begun: u64,
    won: u64,
    lost: u64,
}

impl Waits {
    /// Returns true if a wait is under way.
    pub fn waiting(&self) -> bool {
        self.begun > self.won + self.lost
    }

    /// Begins a wait: requests are queued, and the disk is held for another.
    pub fn hold(&mut self) {
        if !self.waiting() {
            self.begun += 1;
        }
    }

    /// Ends the wait, if there is one. `won` says whether the request that goes now was waited for.
    pub fn end(&mut self, won: bool) {
        if self.waiting() {
            self.won += u64::from(won);
            self.lost += u64::from(!won);
        }
    }

    /// The counts, of a policy that forms no streams.
    pub fn stats(&self) -> WaitStats {
        WaitStats {
            waits: self.begun,
            waits_won: self.won,
            waits_lost: self.lost,
            ..WaitStats::default()
        }
    }
}
