//! Which queued requests touch.

use headtime_sched::{LbaIndex, Request, Tag};
use headtime_units::{Extent, Lba, Sectors};

/// The queued requests by their two ends.
///
/// Source of the rules: the request queue of Linux 2.6 (`elv_merge`, `elv_try_merge`): a back merge
/// is tried before a front merge, and a request that grew is fused with the neighbour it now
/// touches.
#[derive(Debug, Default)]
pub(crate) struct Touching {
    by_start: LbaIndex,
    by_end: LbaIndex,
}

impl Touching {
    pub fn insert(&mut self, tag: Tag, extent: Extent) {
        self.by_start.insert(extent.start, tag);
        self.by_end.insert(extent.end(), tag);
    }

    pub fn remove(&mut self, tag: Tag, extent: Extent) {
        let there =
            self.by_start.remove(extent.start, tag) && self.by_end.remove(extent.end(), tag);
        assert!(there, "request {} is not queued at {extent}", tag.0);
    }

    /// The queued requests that end at `lba`, oldest first.
    pub fn ending_at(&self, lba: Lba) -> impl Iterator<Item = Tag> {
        self.by_end
            .upward(lba)
            .take_while(move |entry| entry.lba == lba)
            .map(|entry| entry.tag)
    }

    /// The queued requests that start at `lba`, oldest first.
    pub fn starting_at(&self, lba: Lba) -> impl Iterator<Item = Tag> {
        self.by_start
            .upward(lba)
            .take_while(move |entry| entry.lba == lba)
            .map(|entry| entry.tag)
    }
}

/// Whether two requests that touch are alike enough to become one of at most `most` sectors.
pub(crate) fn alike(one: &Request, other: &Request, most: Sectors) -> bool {
    one.op == other.op
        && one.flags == other.flags
        && one.class == other.class
        && one.extent.len + other.extent.len <= most
}
