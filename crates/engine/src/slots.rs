//! The table of live requests, by tag.

use crate::{DriveTag, Lane, Outcome, RequestId};
use headtime_sched::{Request, Tag};
use headtime_units::Time;

/// Stage of a request in the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The slot is free.
    Free,
    /// Held back: the request waits for earlier overlapping requests, or for a flush.
    Held,
    /// The scheduler has the request.
    Queued,
    /// The request is part of a merged request.
    Part,
    /// The scheduler has chosen the request, and the request waits for the gate.
    Staged,
    /// In the drive.
    InFlight,
}

/// A live request.
///
/// Invariants: `own.tag` is the index of the slot; `whole` is `own.tag` unless the stage is `Part`; `last` of a
/// request that is no part ends its chain of `next`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// The sender's name for the request.
    pub id: RequestId,
    /// The request as it arrived. The extent never changes.
    pub own: Request,
    /// The request as scheduler and drive see it, including merged parts.
    pub merged: Request,
    pub stage: Stage,
    /// The request's lane.
    pub lane: Lane,
    /// The lane whose scheduler chose the request, if one did. This scheduler is notified of dispatch and completion.
    pub chosen_by: Option<Lane>,
    /// True if the request has been offered to jobs since it was chosen.
    pub offered: bool,
    /// True if the request joined a staged request.
    pub joined: bool,
    /// The staged request whose [prefix](crate::Join::Before) this request is.
    pub prefix_of: Option<Tag>,
    /// True if the request must go alone, after an error of the merged request that contained it.
    pub alone: bool,
    /// The next part of the same merged request.
    pub next: Option<Tag>,
    /// The last part of this merged request.
    pub last: Tag,
    /// The request that contains this one, which may itself be a part. The request itself if it is no part.
    pub whole: Tag,
    /// Time at which the engine got the request, or the first of the merged requests. The age may have begun before.
    pub came: Time,
    pub issued: Time,
    /// Number of commands that had gone to the drive before.
    pub issue: u64,
    /// Outcome of the flush before this write, if it has ended.
    pub preflush: Option<Outcome>,
}

impl Slot {
    /// The request as the drive and the gate get it.
    #[inline]
    pub fn command(&self, tag: DriveTag) -> Request<DriveTag> {
        Request {
            arrival: self.came,
            ..self.merged.tagged(tag)
        }
    }

    /// Returns true if the request was chosen, and has not been offered to jobs yet.
    #[inline]
    pub fn waits_for_offer(&self) -> bool {
        self.chosen_by.is_some() && !self.offered
    }

    /// Makes a part a separate request again, with the origin that the scheduler saw.
    pub fn unmerge(&mut self) {
        self.merged = Request {
            origin: self.merged.origin,
            ..self.own
        };
        (self.last, self.whole) = (self.own.tag, self.own.tag);
        self.came = self.came.max(self.own.arrival);
        (self.joined, self.chosen_by) = (false, None);
    }
}

/// A slab of slots. Tags are dense, and the tag freed last is used first.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    free: Vec<Tag>,
    /// The slot that was added last.
    newest: Tag,
}

impl Slots {
    #[inline]
    pub fn add(&mut self, id: RequestId, lane: Lane, mut request: Request) -> Tag {
        let tag = self.free.pop().unwrap_or(Tag(self.slots.len() as u32));
        request.tag = tag;
        self.newest = tag;
        let slot = Slot {
            id,
            own: request,
            merged: request,
            stage: Stage::Held,
            lane,
            chosen_by: None,
            offered: false,
            joined: false,
            prefix_of: None,
            alone: false,
            next: None,
            last: tag,
            whole: tag,
            came: request.arrival,
            issued: request.arrival,
            issue: 0,
            preflush: None,
        };
        match self.slots.get_mut(tag.index()) {
            Some(place) => *place = slot,
            None => self.slots.push(slot),
        }
        tag
    }

    pub fn remove(&mut self, tag: Tag) {
        let slot = &mut self.slots[tag.index()];
        assert!(slot.stage != Stage::Free, "tag {} freed twice", tag.0);
        slot.stage = Stage::Free;
        self.free.push(tag);
    }

    /// Returns the live request of this id. Checks the newest request first, since most callers ask for a request that
    /// has just arrived.
    pub fn by_id(&self, id: RequestId) -> Option<Tag> {
        let is_it = |slot: &&Slot| slot.id == id && slot.stage != Stage::Free;
        let newest = self.slots.get(self.newest.index()).filter(is_it);
        let found = newest.or_else(|| self.slots.iter().find(is_it));
        found.map(|slot| slot.own.tag)
    }

    /// Returns a request and its parts in order.
    pub fn chain(&self, whole: Tag) -> impl Iterator<Item = &Slot> {
        core::iter::successors(Some(&self[whole]), |slot| slot.next.map(|tag| &self[tag]))
    }

    /// Puts a request and all of its parts into a lane.
    pub fn set_lane(&mut self, whole: Tag, lane: Lane) {
        let mut part = Some(whole);
        while let Some(tag) = part {
            let slot = &mut self[tag];
            slot.lane = lane;
            part = slot.next;
        }
    }

    /// Makes `gone`, with all of its parts, part of `kept`.
    pub fn append_parts(&mut self, kept: Tag, gone: Tag) {
        let tail = self[kept].last;
        self[tail].next = Some(gone);
        self[kept].last = self[gone].last;
        let slot = &mut self[gone];
        (slot.stage, slot.whole) = (Stage::Part, kept);
    }

    /// Returns the merged request that contains `tag`, or `tag` itself.
    pub fn whole(&self, tag: Tag) -> Tag {
        let above = |tag: &Tag| Some(self[*tag].whole).filter(|whole| whole != tag);
        core::iter::successors(Some(tag), above)
            .last()
            .unwrap_or(tag)
    }

    /// The slots of all live requests.
    pub fn live(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.stage != Stage::Free)
    }
}

impl core::ops::Index<Tag> for Slots {
    type Output = Slot;

    fn index(&self, tag: Tag) -> &Slot {
        &self.slots[tag.index()]
    }
}

impl core::ops::IndexMut<Tag> for Slots {
    fn index_mut(&mut self, tag: Tag) -> &mut Slot {
        &mut self.slots[tag.index()]
    }
}
