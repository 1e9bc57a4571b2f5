//! Tracks that differ by head, as those of drives do that write as densely as each head can.

use super::divider::Divider;
use super::groups::Groups;
use super::place::step_of;

/// The tracks of a cylinder of a zone, head by head.
#[derive(Clone, Debug)]
pub(super) struct ByHead {
    heads: Vec<Tracks>,
    /// Slots on the tracks of a cylinder before each head's, and on all of them.
    forward: Vec<u64>,
    /// The same from the last head to the first.
    backward: Vec<u64>,
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

/// Sums of all that come before, and of all.
fn sums<'a>(slots: impl Iterator<Item = &'a u32>) -> Vec<u64> {
    let mut sums = vec![0];
    sums.extend(slots.scan(0, |sum, slots| {
        *sum += u64::from(*slots);
        Some(*sum)
    }));
    sums
}

impl ByHead {
    /// For groups of so many cylinders; `None` if there are no slots by head.
    pub fn of(slots: &[u32], cylinders: u32) -> Option<ByHead> {
        let forward = sums(slots.iter());
        let group = forward.last()? * u64::from(cylinders);
        let tracks = |&slots: &u32| Tracks {
            slots,
            by: Divider::new(u64::from(slots)),
            step: step_of(slots),
        };
        (!slots.is_empty()).then(|| ByHead {
            heads: slots.iter().map(tracks).collect(),
            forward,
            backward: sums(slots.iter().rev()),
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

    fn sums(&self, reversed: bool) -> &[u64] {
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

    /// The track of a place within a group, counted from the zone's first, and the slot there.
    pub fn track_at(&self, groups: &Groups, reversed: bool, group: u64, within: u64) -> (u64, u64) {
        let (length, by_length) = groups.length(group);
        let sums = self.sums(reversed);
        // A surface's tracks in the group are as many as a cylinder's slots are repeated.
        let along_cylinder = by_length.divide(within).0;
        let surface = sums.partition_point(|&before| before <= along_cylinder) - 1;
        let before = sums[surface] * u64::from(length);
        let (along, slot) = self.head(surface, reversed).by.divide(within - before);
        let tracks = group * u64::from(groups.cylinders) * self.heads.len() as u64;
        (tracks + surface as u64 * u64::from(length) + along, slot)
    }

    /// The first place of a track, by its number within a group.
    pub fn first_place(&self, groups: &Groups, reversed: bool, group: u64, within: u64) -> u64 {
        let (length, by_length) = groups.length(group);
        let (surface, along) = by_length.divide(within);
        let surface = surface as usize;
        let before = group * self.group + self.sums(reversed)[surface] * u64::from(length);
        match along {
            // Behind the last track there is no head.
            0 => before,
            _ => before + along * u64::from(self.head(surface, reversed).slots),
        }
    }
}
