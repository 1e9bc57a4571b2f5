//! Model of a drive without a profile.

use headtime_sched::{HeadAfter, Op, Pass, Passing, Positioning, Predicted, TrackPart};
use headtime_units::{Angle, Extent, Lba, Nanos, Sectors, Time, Track};

/// Drive with a known size and no profile: a single track with all sectors. The model suffices to record blocks, and has no gaps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flat(pub Sectors);

impl Positioning for Flat {
    type Place = ();

    fn start(&self, _: Extent) {}

    fn end(&self, _: Extent) {}

    fn turn(&self) -> Option<Nanos> {
        // The value does not matter, since no gap is looked for.
        Some(Nanos::from_millis(1))
    }

    fn predict(&self, _: Time, (): (), (): (), _: Op) -> Predicted {
        Predicted {
            seek: Nanos::ZERO,
            rotation: Nanos::ZERO,
        }
    }

    fn seek(&self, (): (), (): (), _: Op) -> Nanos {
        Nanos::ZERO
    }
}

impl Passing for Flat {
    fn cylinders(&self) -> u32 {
        1
    }

    fn heads(&self) -> u16 {
        1
    }

    fn track(&self, (): ()) -> Track {
        Track::default()
    }

    fn addresses(&self, _: Track) -> Extent {
        Extent::new(Lba::ZERO, self.0)
    }

    fn parts(&self, _: Track, _: &mut dyn FnMut(TrackPart)) {}

    fn angle_at(&self, _: Time) -> Angle {
        Angle::ZERO
    }

    fn way(&self, _: Track, _: Track, _: Op) -> Nanos {
        Nanos::ZERO
    }

    fn arrives(&self, _: &HeadAfter<()>, sent: Time, _: Track, _: Op) -> Time {
        sent
    }

    fn leaves(&self, _: Track, _: Time, _: Track, _: Time, _: Op) -> Option<Time> {
        None
    }

    fn way_at_least(&self, _: u32) -> Nanos {
        Nanos::ZERO
    }

    fn passing(&self, _: Track, _: Time, _: Nanos, _: &mut dyn FnMut(Pass)) {}
}
