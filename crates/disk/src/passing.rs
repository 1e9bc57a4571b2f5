//! What passes under a head that is over a track, by the model of a profile.

use crate::Model;
use crate::layout::Run;
use crate::positioning::ModelPlace;
use headtime_sched::{Head, Op, Pass, Passing};
use headtime_units::{Extent, Nanos, Sectors, Time, Track};

impl Passing for Model {
    fn cylinders(&self) -> u32 {
        self.profile().geometry.cylinders
    }

    fn heads(&self) -> u16 {
        self.layout().heads()
    }

    fn track(&self, place: ModelPlace) -> Track {
        place.track
    }

    fn addresses(&self, track: Track) -> Extent {
        self.layout().track_extent(track).unwrap_or_default()
    }

    fn way(&self, from: Track, to: Track, op: Op) -> Nanos {
        self.mechanics().reposition(from, to, op).total()
    }

    fn arrives(&self, head: &Head<ModelPlace>, sent: Time, track: Track, op: Op) -> Time {
        let way = self.way(head.place.track, track, op);
        self.ready_at(head, sent, track, way, op)
    }

    fn way_at_least(&self, cylinders: u32) -> Nanos {
        self.mechanics()
            .seek_at_least(cylinders.min(self.cylinders() - 1))
    }

    fn passing(&self, track: Track, from: Time, span: Nanos, each: &mut dyn FnMut(Pass)) {
        let window = Window {
            model: self,
            phase: self.mechanics().phase_at(from),
            span: span.min(self.mechanics().turn()),
        };
        let extent = self.addresses(track);
        let mut next = extent.start;
        while next < extent.end() {
            let run = self.layout().run(next);
            let left = (extent.end() - next).get();
            let run = run.truncated(left);
            next = run.end();
            // A remapped sector belongs to this track, and is on another one.
            if run.track == track {
                window.passing(&run, each);
            }
        }
    }
}

/// What passes from a point of the turn on, for less than a turn.
struct Window<'a> {
    model: &'a Model,
    phase: Nanos,
    span: Nanos,
}

impl Window<'_> {
    /// From the beginning of the window until a sector of a run begins next; `sector` may be how many it has.
    fn until(&self, run: &Run, sector: u32) -> Nanos {
        let mechanics = self.model.mechanics();
        mechanics.wait(self.phase, mechanics.phase(run.angle(sector)))
    }

    /// The same for where a sector ends that begins in the window.
    fn end_of(&self, run: &Run, sector: u32) -> Nanos {
        let begin = self.until(run, sector);
        let end = self.until(run, sector + 1);
        // It ends behind the window's turn, or a sector is a whole turn.
        if end > begin {
            end
        } else {
            end + self.model.mechanics().turn()
        }
    }

    /// Tells of the sectors of a run that pass whole: those behind the beginning of the window up to the end of the run,
    /// and those from the run's own beginning on that come a turn later.
    fn passing(&self, run: &Run, each: &mut dyn FnMut(Pass)) {
        // The first sector that begins less than a turn behind the run's own beginning, counted from the window's.
        let split = self.split(run);
        for (from, to) in [(split, run.len), (0, split)] {
            // In each part sectors begin, and end, one after the other.
            let (mut low, mut high) = (from, to);
            while low < high {
                let middle = low + (high - low) / 2;
                if self.end_of(run, middle) <= self.span {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            if low > from {
                each(Pass {
                    extent: Extent::new(
                        run.start + Sectors::new(u64::from(from)),
                        Sectors::new(u64::from(low - from)),
                    ),
                    begin: self.until(run, from),
                    end: self.end_of(run, low - 1),
                });
            }
        }
    }

    /// The first sector of a run that begins in the window's turn before the run's first sector does; `len` if none
    /// does.
    fn split(&self, run: &Run) -> u32 {
        let first = self.until(run, 0);
        let (mut low, mut high) = (0, run.len);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.until(run, middle) >= first {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}
