//! Groups of cylinders within which addresses go along a surface before the next.

use super::divider::Divider;

/// A track by its group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Along {
    /// Counted from the zone's first.
    pub group: u64,
    /// Cylinders of the group.
    pub length: u32,
    /// The surface, in the order of addresses.
    pub surface: u32,
    /// The number of the track on the surface, in the order of addresses.
    pub along: u32,
}

/// Groups of cylinders of an order by surfaces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Groups {
    /// Cylinders in a group.
    pub cylinders: u32,
    by_cylinders: Divider,
    by_tracks: Divider,
    /// Groups that are complete.
    complete: u64,
    /// Cylinders of the rest; at least 1, since the divider cannot divide by zero.
    rest: u32,
    by_rest: Divider,
}

impl Groups {
    /// Groups of `group` cylinders, in a zone of `cylinders` cylinders with `heads` heads.
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
    #[inline]
    pub fn of_track(&self, ordinal: u64) -> (u64, u64) {
        self.by_tracks.divide(ordinal)
    }

    /// A track by its group.
    #[inline]
    pub fn along(&self, ordinal: u64) -> Along {
        let (group, within) = self.of_track(ordinal);
        let (length, by) = self.length(group);
        let (surface, along) = by.divide(within);
        Along {
            group,
            length,
            surface: surface as u32,
            along: along as u32,
        }
    }

    /// The track's number in the order of addresses, on a disk with `heads` heads.
    #[inline]
    pub fn ordinal(&self, at: &Along, heads: u32) -> u64 {
        let surfaces = at.group * u64::from(self.cylinders) * u64::from(heads);
        surfaces + u64::from(at.surface) * u64::from(at.length) + u64::from(at.along)
    }

    /// The group of a cylinder, counted from the zone's first, and the cylinder's number in it.
    pub fn of_cylinder(&self, cylinder: u64) -> (u64, u64) {
        self.by_cylinders.divide(cylinder)
    }

    /// Cylinders of a group, and the divider by this number.
    #[inline]
    pub fn length(&self, group: u64) -> (u32, &Divider) {
        match group < self.complete {
            true => (self.cylinders, &self.by_cylinders),
            false => (self.rest, &self.by_rest),
        }
    }
}
