//! A drive as a position-aware policy believes it to be.

use crate::layout::Layout;
use crate::mechanics::Mechanics;
use crate::profile::Profile;
use headtime_sched::{Op, Positioning, Predicted};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time, Track};
use std::sync::Arc;

/// Layout and mechanics of a profile, to predict positioning times with.
///
/// Its platter is at angle zero at time zero; a live scheduler shifts its clock accordingly. What
/// it predicts is the profile's truth, not the drive's: give a policy a profile of its own.
#[derive(Clone, Debug)]
pub struct Model {
    profile: Profile,
    layout: Arc<Layout>,
    mechanics: Arc<Mechanics>,
}

/// A track and a point of the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelPlace {
    /// The track.
    pub track: Track,
    /// When in a turn the sector begins (or, for where a head is left, ends).
    pub phase: Nanos,
}

impl Model {
    /// The model of a profile.
    pub fn new(profile: &Profile) -> Model {
        Model {
            profile: profile.clone(),
            layout: Arc::new(Layout::new(profile)),
            mechanics: Arc::new(Mechanics::new(profile)),
        }
    }

    /// The profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Its layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Its mechanics.
    pub fn mechanics(&self) -> &Mechanics {
        &self.mechanics
    }

    fn clamp(&self, lba: Lba) -> Lba {
        lba.min(Lba::ZERO + self.layout.capacity() - Sectors::new(1))
    }
}

impl Positioning for Model {
    type Place = ModelPlace;

    fn start(&self, extent: Extent) -> ModelPlace {
        let place = self.layout.locate(self.clamp(extent.start));
        ModelPlace {
            track: place.track,
            phase: self.mechanics.phase(place.angle),
        }
    }

    fn end(&self, extent: Extent) -> ModelPlace {
        let last = extent.end().max(extent.start + Sectors::new(1)) - Sectors::new(1);
        let run = self.layout.run(self.clamp(last));
        ModelPlace {
            track: run.track,
            phase: self.mechanics.phase(run.angle(1)),
        }
    }

    fn predict(&self, now: Time, from: ModelPlace, to: ModelPlace, op: Op) -> Predicted {
        let seek = self.seek(from, to, op);
        let arrival = self.mechanics.phase_at(now + seek);
        Predicted {
            seek,
            rotation: self.mechanics.wait(arrival, to.phase),
        }
    }

    fn seek(&self, from: ModelPlace, to: ModelPlace, op: Op) -> Nanos {
        self.mechanics.reposition(from.track, to.track, op).total()
    }

    fn seek_at_least(&self, from: ModelPlace, lba: Lba) -> Nanos {
        if self.layout.has_remaps() {
            // The spare that holds a far address may be near.
            return Nanos::ZERO;
        }
        let there = self.layout.locate(self.clamp(lba)).track.cylinder;
        // Within a group of cylinders, a higher address may be on a lower cylinder.
        let slack = self.layout.group_cylinders() - 1;
        let distance = from.track.cylinder.distance(there).saturating_sub(slack);
        self.mechanics.seek_at_least(distance)
    }
}
