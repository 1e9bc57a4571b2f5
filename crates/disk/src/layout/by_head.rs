//! Tracks that differ by head, as on drives that write as densely as each head can.

use super::divider::Divider;
use super::groups::{Along, Groups};
use super::place::step_of;

/// The tracks of a cylinder of a zone, head by head.
#[derive(Clone, Debug)]
pub(super) struct ByHead {
    heads: Vec<Tracks>,
    /// Slots on the tracks of a cylinder in front of each head's track, and on all tracks.
    forward: Sums,
    /// The sums of `forward` from the last head to the first.
    backward: Sums,
    /// Divides by the slots of a group.
    by_group: Divider,
    group: u64,
}

/// The tracks of a head.
#[derive(Clone, Copy, Debug)]
struct Tracks {
    slots: u32,
    by: Divider,
    /// 2^64 / slots, rounded down.
    step: u64,
}

/// Sums of numbers of slots: over the tracks in front of each track, and over all tracks.
#[derive(Clone, Debug)]
struct Sums {
    before: Vec<u64>,
    /// For each bucket of `1 << shift` slots, the number of sums after the first that come before the bucket. No track
    /// has fewer slots than a bucket. Within a bucket at most one more sum therefore comes before a slot.
    buckets: Vec<u16>,
    shift: u32,
}

impl Sums {
    fn new<'a>(slots: impl Iterator<Item = &'a u32> + Clone) -> Sums {
        let mut before = vec![0];
        before.extend(slots.clone().scan(0, |sum, slots| {
            *sum += u64::from(*slots);
            Some(*sum)
        }));
        let shift = slots.min().map_or(0, |least| least.ilog2());
        let all = before[before.len() - 1];
        let buckets = (0..=all >> shift).map(|bucket| {
            let until = before.partition_point(|&sum| sum < bucket << shift);
            until.saturating_sub(1) as u16
        });
        Sums {
            buckets: buckets.collect(),
            shift,
            before,
        }
    }

    fn all(&self) -> u64 {
        self.before[self.before.len() - 1]
    }

    /// Index, in the order of the sums, of the track that has the slot. The slot must exist.
    #[inline]
    fn of_slot(&self, slot: u64) -> usize {
        let least = usize::from(self.buckets[(slot >> self.shift) as usize]);
        least + usize::from(self.before[least + 1] <= slot)
    }
}

impl ByHead {
    /// Tracks by head for groups of `cylinders` cylinders. `None` if there are no slots by head.
    pub fn of(slots: &[u32], cylinders: u32) -> Option<ByHead> {
        if slots.is_empty() {
            return None;
        }
        let forward = Sums::new(slots.iter());
        let group = forward.all() * u64::from(cylinders);
        let tracks = |&slots: &u32| Tracks {
            slots,
            by: Divider::new(u64::from(slots)),
            step: step_of(slots),
        };
        Some(ByHead {
            heads: slots.iter().map(tracks).collect(),
            forward,
            backward: Sums::new(slots.iter().rev()),
            by_group: Divider::new(group),
            group,
        })
    }

    /// Slots of the tracks of a head, and 2^64 / slots.
    pub fn track(&self, head: u32) -> (u32, u64) {
        let tracks = &self.heads[head as usize];
        (tracks.slots, tracks.step)
    }

    /// The group of a place, and the place's number in it.
    pub fn group_of(&self, place: u64) -> (u64, u64) {
        self.by_group.divide(place)
    }

    fn sums(&self, reversed: bool) -> &Sums {
        match reversed {
            true => &self.backward,
            false => &self.forward,
        }
    }

    fn head(&self, surface: usize, reversed: bool) -> &Tracks {
        match reversed {
            true => &self.heads[self.heads.len() - 1 - surface],
            false => &self.heads[surface],
        }
    }

    /// The track of a place within a group, and the slot there.
    #[inline]
    pub fn track_at(
        &self,
        groups: &Groups,
        reversed: bool,
        group: u64,
        within: u64,
    ) -> (Along, u64) {
        let (length, by_length) = groups.length(group);
        let sums = self.sums(reversed);
        // The group has `length` tracks of each surface, so the sums of a cylinder count `length`
        // times.
        let surface = sums.of_slot(by_length.divide(within).0);
        let before = sums.before[surface] * u64::from(length);
        let (along, slot) = self.head(surface, reversed).by.divide(within - before);
        let along = Along {
            group,
            length,
            surface: surface as u32,
            along: along as u32,
        };
        (along, slot)
    }

    /// The first place of a track, by its number within a group.
    pub fn first_place(&self, groups: &Groups, reversed: bool, group: u64, within: u64) -> u64 {
        let (length, by_length) = groups.length(group);
        let (surface, along) = by_length.divide(within);
        let surface = surface as usize;
        let before = group * self.group + self.sums(reversed).before[surface] * u64::from(length);
        match along {
            // Behind the last track there is no head.
            0 => before,
            _ => before + along * u64::from(self.head(surface, reversed).slots),
        }
    }
}
