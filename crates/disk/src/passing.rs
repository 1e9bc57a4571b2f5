//! Sectors that pass under a head over a track, by the model of a profile.

use crate::Model;
use crate::layout::Run;
use crate::positioning::ModelPlace;
use crate::profile::{Preseek, ReadAhead};
use headtime_sched::{Buffering, HeadAfter, Op, Pass, Passing, TrackPart};
use headtime_units::{Angle, Extent, Nanos, Sectors, Time, Track};

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

    fn arrives(&self, head: &HeadAfter<ModelPlace>, sent: Time, track: Track, op: Op) -> Time {
        let way = self.way(head.place.track, track, op);
        self.ready_at(head, sent, track, way, op)
    }

    fn way_at_least(&self, cylinders: u32) -> Nanos {
        self.mechanics()
            .seek_at_least(cylinders.min(self.cylinders() - 1))
    }

    fn leaves(&self, from: Track, sent: Time, to: Track, by: Time, op: Op) -> Option<Time> {
        self.busy_until(sent, self.way(from, to, op), by, op)
    }

    fn lingers(&self) -> Nanos {
        self.lingers
    }

    fn pace(&self) -> Nanos {
        self.pace
    }

    fn buffering(&self) -> Option<Buffering> {
        let (cache, passes) = (&self.profile().cache, self.sector_passes);
        let segment = u64::from(cache.segment_sectors);
        let ahead = match cache.read_ahead {
            ReadAhead::Off => 0,
            _ => segment
                .max(cache.room_sectors.into())
                .min(cache.read_ahead_max.into()),
        };
        let bus = self.profile().bus.sector(true);
        let stays = match self.profile().queue.preseek {
            Preseek::JustInTime => self.mechanics().turn(),
            _ => Nanos::ZERO,
        };
        cache.enabled.then(|| Buffering {
            segments: cache.segments,
            ahead: Sectors::new(ahead),
            sector: passes.max(Nanos::from_nanos(1)),
            processing: self.reads[2],
            stays,
            telling: [
                bus + self.profile().overhead.read_completion,
                bus.saturating_sub(passes),
            ],
            front: cache.read_free_sectors,
        })
    }

    fn angle_at(&self, now: Time) -> Angle {
        let mechanics = self.mechanics();
        Angle::turned(mechanics.phase_at(now), mechanics.turn())
    }

    fn parts(&self, track: Track, each: &mut dyn FnMut(TrackPart)) {
        self.runs_on(track, |run| {
            each(TrackPart {
                extent: Extent::new(run.start, Sectors::new(u64::from(run.len))),
                begin: run.angle(0),
                step: run.step(),
            });
        });
    }

    fn passing(&self, track: Track, from: Time, span: Nanos, each: &mut dyn FnMut(Pass)) {
        let window = Window {
            model: self,
            phase: self.mechanics().phase_at(from),
            span: span.min(self.mechanics().turn()),
        };
        self.runs_on(track, |run| window.passing(run, each));
    }
}

impl Model {
    /// The runs of a track's addresses that are on it.
    fn runs_on(&self, track: Track, mut each: impl FnMut(&Run)) {
        let extent = self.addresses(track);
        let mut next = extent.start;
        while next < extent.end() {
            let run = self.layout().run(next);
            let left = (extent.end() - next).get();
            let run = run.truncated(left);
            next = run.end();
            // A remapped sector belongs to this track, but is on another track.
            if run.track == track {
                each(&run);
            }
        }
    }
}

/// A window of time from a point of the turn on, at most a turn long.
struct Window<'a> {
    model: &'a Model,
    phase: Nanos,
    span: Nanos,
}

impl Window<'_> {
    /// Time from the beginning of the window until a sector of a run next begins. `sector` may equal the length of the
    /// run.
    fn until(&self, run: &Run, sector: u32) -> Nanos {
        let mechanics = self.model.mechanics();
        mechanics.wait(self.phase, mechanics.phase(run.angle(sector)))
    }

    /// Time from the beginning of the window until a sector ends that begins in the window.
    fn end_of(&self, run: &Run, sector: u32) -> Nanos {
        let begin = self.until(run, sector);
        let end = self.until(run, sector + 1);
        // The sector ends after the window's turn, or it is a whole turn long.
        if end > begin {
            end
        } else {
            end + self.model.mechanics().turn()
        }
    }

    /// Reports the sectors of a run that pass whole, in up to two parts. The first part goes from [`Window::split`] to
    /// the end of the run. The second part goes from the beginning of the run to the split.
    fn passing(&self, run: &Run, each: &mut dyn FnMut(Pass)) {
        // The sectors from the split on come first in the window.
        let split = self.split(run);
        for (from, to) in [(split, run.len), (0, split)] {
            if from == to {
                continue;
            }
            let begin = self.until(run, from);
            if begin > self.span {
                continue;
            }
            // Within each part the sectors begin and end in order.
            let end = from + self.whole_slots(run, self.span - begin);
            let end = first(from, to, end, |sector| self.end_of(run, sector) > self.span);
            if end > from {
                each(Pass {
                    extent: Extent::new(
                        run.start + Sectors::new(u64::from(from)),
                        Sectors::new(u64::from(end - from)),
                    ),
                    begin,
                    end: self.end_of(run, end - 1),
                });
            }
        }
    }

    /// The first sector of a run that begins in the window's turn before the run's first sector does; `len` if none
    /// does.
    fn split(&self, run: &Run) -> u32 {
        let zero = self.until(run, 0);
        let around = self.whole_slots(run, self.model.mechanics().turn() - zero);
        first(0, run.len, around, |sector| self.until(run, sector) < zero)
    }

    /// Number of slots of a run that pass in a time, give or take one.
    fn whole_slots(&self, run: &Run, time: Nanos) -> u32 {
        let turn = self.model.mechanics().turn().as_nanos();
        (time.as_nanos() * u64::from(run.sectors_per_track) / turn) as u32
    }
}

/// The first number of `from..to` for which `is_past` is true; `to` if there is none. `is_past` must be true for all later
/// numbers too. The search begins at `guess`.
fn first(from: u32, to: u32, guess: u32, is_past: impl Fn(u32) -> bool) -> u32 {
    let mut at = guess.clamp(from, to);
    while at > from && is_past(at - 1) {
        at -= 1;
    }
    while at < to && !is_past(at) {
        at += 1;
    }
    at
}
