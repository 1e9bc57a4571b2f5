//! What the arm is doing: reading ahead, going on for a stream, or writing.

use crate::cache::SegmentId;
use crate::layout::Layout;
use crate::mechanics::{Mechanics, Step};
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos, Sectors, Time, Track};

/// The arm goes on reading behind a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    /// Into this segment.
    pub segment: SegmentId,
    /// Where it was last known to be, at the beginning of a run of sectors or the end of one.
    pub track: Track,
    /// Where the head is by now.
    pub over: Track,
    pub at: Time,
    /// The first sector not read then.
    pub next: Lba,
    /// Not beyond this, whatever the limits of the segment.
    pub stop: Lba,
    /// When the head has been all around a track that the drive takes as a whole, and the first
    /// sector of the track.
    pub around: Option<(Time, Lba)>,
    /// Only that is left to do.
    pub reached: bool,
    pub known: Known,
}

/// Results that have been worked out already, and the limit up to which each holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    /// Where it was at a time.
    pub at: Option<(Time, Lba, Progress)>,
    /// When it comes to the limit: the same however far it has come.
    pub ends: Option<(Lba, Time)>,
    /// The step that follows from where it was last known to be.
    pub step: Option<(Lba, Step)>,
}

impl Ahead {
    /// Works out reading ahead up to `now`, if it ends at `limit`. Returns its progress, and the
    /// sector behind those that it has read.
    pub fn follow(
        &mut self,
        mechanics: &Mechanics,
        layout: &Layout,
        limit: Lba,
        now: Time,
    ) -> (Progress, Lba) {
        while self.next < limit {
            let (track, at) = (self.track, self.at);
            let first = || {
                let extent = Extent::new(self.next, limit - self.next);
                let mut walk = mechanics.walk(layout, track, at, extent, Op::Read, false);
                walk.next().map(|step| (limit, step))
            };
            if self.known.step.is_none_or(|(until, _)| until != limit) {
                self.known.step = first();
            } else {
                debug_assert_eq!(self.known.step, first());
            }
            let Some((_, step)) = &self.known.step else {
                break;
            };
            let (begin, end) = (step.transfer_begin(), step.end());
            if now >= end {
                self.track = step.run.track;
                self.over = step.run.track;
                self.at = end;
                self.next = step.extent().end();
                self.known.step = None;
                continue;
            }
            if now >= begin {
                self.over = step.run.track;
                let passed = (now - begin).as_nanos();
                let mut done = (passed * u64::from(step.run.len) / step.transfer.as_nanos()) as u32;
                // Slots begin at whole nanoseconds, so that the division may be off by one.
                while step.sectors_end(done) > now {
                    done -= 1;
                }
                let mut end = step.sectors_end(done + 1);
                while end <= now {
                    done += 1;
                    end = step.sectors_end(done + 1);
                }
                let read = step.run.start + Sectors::new(u64::from(done));
                return (Progress::Reading(end), read);
            }
            let landed = step.begin + step.seek + step.switch;
            let progress = if now < landed {
                Progress::Moving(landed)
            } else {
                self.over = step.run.track;
                Progress::Rotating(begin)
            };
            return (progress, self.next);
        }
        (Progress::Finished(self.at), self.next)
    }
}

/// How far reading ahead has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It ended at this time.
    Finished(Time),
    /// The arm or the heads move until then.
    Moving(Time),
    /// The next sector comes round then.
    Rotating(Time),
    /// A sector passes under the head; it ends then.
    Reading(Time),
}

/// How the arm comes out of reading ahead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leave {
    /// When it can do something else.
    pub at: Time,
    /// Until then the head reads on its track.
    pub reads: bool,
}

/// How long the arm has gone on reading, and for which commands it stops.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Going {
    /// When it set out for what it goes on with.
    pub since: Time,
    /// Commands that had come by then have been kept waiting for too long and go first.
    pub overdue: Option<Time>,
    /// It goes on although no command waits for what it reads.
    pub alone: bool,
    /// Slot of the command for which the arm leaves as late as it comes in time.
    pub next: Option<u16>,
    /// Until then runs go first: writes have been kept waiting, or runs are old.
    pub destage_until: Time,
}

/// Where the data are that the arm writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// In a segment.
    Segment(SegmentId),
    /// Among the runs.
    Runs,
    /// They go past the buffer.
    Host,
}

/// The arm writes sectors, for one command or for several that continue each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writing {
    /// Where they are dirty.
    pub source: Source,
    /// The sectors that are not on the medium yet. A segment that is written for several commands
    /// keeps all of them until the last command is done: it is released as a whole.
    pub extent: Extent,
    /// When the last of them is on the medium.
    pub until: Time,
}

/// A stretch of sectors as it passes under the writing head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passing {
    pub extent: Extent,
    /// When its first sector begins.
    pub from: Time,
    /// How long all of it takes.
    pub takes: Nanos,
}

/// The sectors that have been written since the caller last took them.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    pub on: bool,
    pub done: Vec<(Time, Extent)>,
    /// The steps of the present write. Kept also if nothing is recorded, since they decide what a
    /// power cut leaves of unreadable sectors.
    pub passing: Vec<Passing>,
}

impl Record {
    /// Sectors pass under the writing head.
    pub fn passing(&mut self, passing: Passing) {
        self.passing.push(passing);
    }

    pub fn note(&mut self, at: Time, extent: Extent) {
        if self.on {
            self.done.push((at, extent));
        }
    }
}

/// The addresses of the track that was last asked for: one read asks several times, mostly for the same.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastTrack(Extent);

impl LastTrack {
    /// As [`Layout::track_extent_of`].
    #[inline]
    pub(super) fn of(&mut self, layout: &Layout, lba: Lba) -> Extent {
        if !self.0.contains(lba) {
            self.0 = layout.track_extent_of(lba);
        }
        self.0
    }
}
