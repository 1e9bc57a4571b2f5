//! Merging of the requests of a lane.
//!
//! Source of the rules: the request queue of Linux 2.6; see [`Touching`](crate::merge::Touching).

use super::{Queue, Shared};
use crate::merge::{End, Likeness, alike};
use headtime_sched::{Op, Partners, Request, Scheduler, Tag};
use headtime_units::{Lba, Sectors};

impl<S: Scheduler> Queue<S> {
    /// Merges a new request into a queued request that it touches. Returns true on success.
    pub(super) fn try_merge(&mut self, tag: Tag, of: &mut Shared) -> bool {
        let new = of.slots[tag].merged;
        if !matches!(new.op, Op::Read | Op::Write) {
            return false;
        }
        let Shared {
            config,
            slots,
            stats,
            ..
        } = of;
        let most = config.merge_sectors_max;
        let may = |queued: Tag| {
            let queued_as = &slots[queued].merged;
            alike(queued_as, &new, most) && self.scheduler.may_merge(queued, &new)
        };
        let back = self.partner(End::Back, new.extent.start, &new, most, may);
        let front = match back {
            Some(_) => None,
            None => self.partner(End::Front, new.extent.end(), &new, most, may),
        };
        let Some(kept) = back.or(front) else {
            return false;
        };
        slots.append_parts(kept, tag);
        let mut extent = slots[kept].merged.extent;
        self.touching.remove(kept, extent);
        extent.len += new.extent.len;
        if back.is_some() {
            stats.merged_back += 1;
        } else {
            stats.merged_front += 1;
            extent.start = new.extent.start;
        }
        slots[kept].came = slots[kept].came.min(slots[tag].came);
        let merged = &mut slots[kept].merged;
        merged.extent = extent;
        // A request that was held back may be older than the request that it is merged into.
        merged.arrival = merged.arrival.min(new.arrival);
        let fused = self.try_fuse(kept, back.is_some(), of);
        let grown = of.slots[kept].merged;
        let scheduler = &self.scheduler;
        self.touching.insert(&grown, || scheduler.merge_key(&grown));
        if let Some(gone) = fused {
            self.queued -= 1;
            of.queued -= 1;
            self.scheduler.fused(kept, gone);
        }
        self.scheduler.merged(&grown);
        true
    }

    /// Merges `kept` with the queued neighbour that it now touches. `kept` is not in the index.
    fn try_fuse(&mut self, kept: Tag, at_end: bool, of: &mut Shared) -> Option<Tag> {
        let (grown, most) = (of.slots[kept].merged, of.config.merge_sectors_max);
        let may = |queued: Tag| {
            let queued_as = &of.slots[queued].merged;
            alike(&grown, queued_as, most) && self.scheduler.may_merge(kept, queued_as)
        };
        let gone = if at_end {
            self.partner(End::Front, grown.extent.end(), &grown, most, may)
        } else {
            self.partner(End::Back, grown.extent.start, &grown, most, may)
        }?;
        let other = of.slots[gone].merged;
        self.touching.remove(gone, other.extent);
        of.slots.append_parts(kept, gone);
        of.slots[kept].came = of.slots[kept].came.min(of.slots[gone].came);
        let kept = &mut of.slots[kept].merged;
        kept.extent.len += other.extent.len;
        kept.extent.start = kept.extent.start.min(other.extent.start);
        kept.arrival = kept.arrival.min(other.arrival);
        of.stats.fused += 1;
        Some(gone)
    }

    /// Returns the first queued request with this end at `lba` that `may` be merged with `request`, into at `most` this
    /// number of sectors.
    fn partner(
        &self,
        end: End,
        lba: Lba,
        request: &Request,
        most: Sectors,
        may: impl Fn(Tag) -> bool,
    ) -> Option<Tag> {
        let ends = self.touching.ends(end);
        let first = ends.first(lba)?;
        if may(first) {
            return Some(first);
        }
        if !ends.has_more(lba, first) {
            return None;
        }
        match self.scheduler.partners(request, end == End::Front) {
            Partners::Only(few) => few
                .into_iter()
                .flatten()
                .filter_map(|tag| Some((ends.turn(lba, tag)?, tag)))
                .filter(|(_, tag)| may(*tag))
                .min()
                .map(|(_, tag)| tag),
            Partners::Any => {
                let room = Sectors::new(most.get().checked_sub(request.extent.len.get())?);
                let like = Likeness::of(request, self.scheduler.merge_key(request));
                let mut from = 0;
                loop {
                    let (turn, tag) = ends.next_alike(lba, like, room, from)?;
                    if may(tag) {
                        return Some(tag);
                    }
                    from = turn + 1;
                }
            }
        }
    }
}
