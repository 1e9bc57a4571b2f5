//! Groups of cylinders within which addresses go along a surface before the next.

use super::divider::Divider;

/// Groups of cylinders of an order by surfaces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Groups {
    /// Cylinders in a group.
    pub cylinders: u32,
    by_cylinders: Divider,
    by_tracks: Divider,
    /// Groups that are complete.
    complete: u64,
    /// Cylinders of the rest, at least 1 to keep the divider happy.
    rest: u32,
    by_rest: Divider,
}

impl Groups {
    /// Groups of `group` cylinders, of so many in all with so many heads.
    pub fn new(group: u32, cylinders: u32, heads: u32) -> Groups {
        let rest = (cylinders % group).max(1);
        Groups {
            cylinders: group,
            by_cylinders: Divider::new(u64::from(group)),
            by_tracks: Divider::new(u64::from(group) * u64::from(heads)),
            complete: u64::from(cylinders / group),
            rest,
            by_rest: Divider::new(u64::from(rest)),
        }
    }

    /// The group of a track, counted in the order of addresses, and the track's number in it.
    pub fn of_track(&self, ordinal: u64) -> (u64, u64) {
        self.by_tracks.divide(ordinal)
    }

    /// The group of a cylinder, counted from the zone's first, and the cylinder's number in it.
    pub fn of_cylinder(&self, cylinder: u64) -> (u64, u64) {
        self.by_cylinders.divide(cylinder)
    }

    /// Cylinders of a group, and what divides by them.
    pub fn length(&self, group: u64) -> (u32, &Divider) {
        match group < self.complete {
            true => (self.cylinders, &self.by_cylinders),
            false => (self.rest, &self.by_rest),
        }
    }
}
