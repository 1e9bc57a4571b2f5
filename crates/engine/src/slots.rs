//! The table of live requests, by tag.

use crate::{Lane, Outcome, RequestId};
use headtime_sched::{Request, Tag};
use headtime_units::Time;

/// Where a request is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The slot is free.
    Free,
    /// Waits for earlier requests that overlap it, or for a flush.
    Held,
    /// With the scheduler.
    Queued,
    /// Part of another request.
    Part,
    /// Chosen, and waiting for the gate.
    Staged,
    /// In the drive.
    InFlight,
}

/// One request that somebody waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// The caller's name for it.
    pub id: RequestId,
    /// As it arrived; its extent never changes.
    pub own: Request,
    /// As the scheduler and the drive see it: with the parts that were merged into it.
    pub merged: Request,
    pub stage: Stage,
    /// The lane that it belongs to.
    pub lane: Lane,
    /// The lane whose scheduler handed it out, if one did: the one to tell of what becomes of it.
    pub chosen_by: Option<Lane>,
    /// Whether it has been offered to those that may join it, since it was chosen.
    pub offered: bool,
    /// Whether it joined a request that was staged.
    pub joined: bool,
    /// Staged request of which this one is the [prefix](crate::Join::Before).
    pub prefix_of: Option<Tag>,
    /// Whether it must go alone: after an error of the request it was part of.
    pub alone: bool,
    /// The next part of the merged request that it belongs to.
    pub next: Option<Tag>,
    /// The last part of this merged request.
    pub last: Tag,
    /// What it is part of, which may be part of another; itself if it is no part.
    pub whole: Tag,
    pub issued: Time,
    /// How many commands had gone to the drive with it.
    pub issue: u64,
    /// How the flush that precedes it ended, if one did.
    pub preflush: Option<Outcome>,
}

impl Slot {
    /// Returns true if it was chosen, and nobody has been asked yet what joins it.
    #[inline]
    pub fn waits_for_offer(&self) -> bool {
        self.chosen_by.is_some() && !self.offered
    }

    /// Makes it a request of its own again, of the origin that the scheduler saw.
    pub fn unmerge(&mut self) {
        self.merged = Request {
            origin: self.merged.origin,
            ..self.own
        };
        (self.last, self.whole) = (self.own.tag, self.own.tag);
        (self.joined, self.chosen_by) = (false, None);
    }
}

/// A slab of slots: tags are dense, and the one freed last is used first.
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

    /// The live request of this id. The newest is looked at first, since most that are asked for have just arrived.
    pub fn by_id(&self, id: RequestId) -> Option<Tag> {
        let is_it = |slot: &&Slot| slot.id == id && slot.stage != Stage::Free;
        let newest = self.slots.get(self.newest.index()).filter(is_it);
        let found = newest.or_else(|| self.slots.iter().find(is_it));
        found.map(|slot| slot.own.tag)
    }

    /// A request and its parts, the first one first.
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

    /// The merged request that `tag` is part of, or itself.
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
