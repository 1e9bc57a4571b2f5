//! Measured rates of clients and the drive: sums, and means per second.

use headtime_units::Nanos;

/// Blocks that a scan has read, and blocks that are left.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Blocks {
    /// Blocks that were read in gaps and by clients.
    pub gaps: u64,
    /// Blocks that were read in idle time.
    pub idle: u64,
    /// Blocks that are wanted or under way.
    pub left: u64,
    /// Time per block, if only blocks are left that are read one by one.
    pub each: Option<Nanos>,
}

/// Sums since the scan started.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub blocks: Blocks,
    /// Blocks that clients have written and that are wanted again.
    pub again: u64,
    /// Requests before which a read may go.
    pub yielding: u64,
    /// Drive time at clients' cost in seconds: asked for, and lost because no request let reads pass.
    pub asked: f64,
    pub lost: f64,
    /// Drive time taken at clients' cost.
    pub taken: Nanos,
}

/// Means per second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rates {
    /// Blocks in gaps, in idle time, and wanted again.
    pub gaps: f64,
    pub idle: f64,
    pub again: f64,
    /// Requests before which a read may go.
    pub yielding: f64,
    /// Shares of the time: asked for, lost, and allowed by the p99.
    pub asked: f64,
    pub lost: f64,
    pub level: f64,
}

impl Rates {
    /// Adds the sums of a span in seconds, with a weight in the means.
    pub(super) fn add(&mut self, (span, weight): (f64, f64), from: &Sums, to: &Sums, level: f64) {
        let note = |rate: &mut f64, sum: f64| *rate += (sum / span - *rate) * weight;
        // A failed read is subtracted, so a sum may shrink.
        let more = |to: u64, from: u64| to.saturating_sub(from) as f64;
        note(&mut self.gaps, more(to.blocks.gaps, from.blocks.gaps));
        note(&mut self.idle, more(to.blocks.idle, from.blocks.idle));
        note(&mut self.again, more(to.again, from.again));
        note(&mut self.yielding, more(to.yielding, from.yielding));
        note(&mut self.asked, to.asked - from.asked);
        note(&mut self.lost, to.lost - from.lost);
        note(&mut self.level, level * span);
    }

    /// Returns the part of the share asked for that reads get.
    pub(super) fn reach(&self, is_asked: bool) -> f64 {
        match () {
            // The ratio means something only above 1 % of the time.
            () if self.asked > 0.01 => (1.0 - self.lost / self.asked).clamp(0.0, 1.0),
            () if is_asked && self.yielding == 0.0 => 0.0,
            () => 1.0,
        }
    }
}
