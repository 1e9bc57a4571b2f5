//! States of the arm: reading ahead, going on for a stream, or writing.

use crate::cache::SegmentId;
use crate::layout::Layout;
use crate::mechanics::{Mechanics, Step};
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos, Sectors, Time, Track};

/// The arm goes on reading behind a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    /// Segment that is filled.
    pub segment: SegmentId,
    /// Last known track of the arm, at the beginning or the end of a run of sectors.
    pub track: Track,
    /// Present track of the head.
    pub over: Track,
    pub at: Time,
    /// The first sector not read then.
    pub next: Lba,
    /// Limit of the read-ahead, in addition to the limits of the segment.
    pub stop: Lba,
    /// Time at which the head has been all around a track that the drive takes as a whole, and the
    /// first sector of the track.
    pub around: Option<(Time, Lba)>,
    /// True if all sectors up to the limit are read, and only the rest of the turn is left.
    pub reached: bool,
    pub known: CachedProgress,
}

/// Progress of reading ahead that has been computed already, each value with the limit for which it was computed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CachedProgress {
    /// Progress at a time.
    pub at: Option<(Time, Lba, Progress)>,
    /// Time at which the arm comes to the limit. The progress so far does not change this time.
    pub ends: Option<(Lba, Time)>,
    /// The step that follows from the last known position.
    pub step: Option<(Lba, Step)>,
}

impl Ahead {
    /// Works out reading ahead up to `now`, if it ends at `limit`. Returns its progress, and the
    /// first sector that is not read yet.
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

/// Progress of reading ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Reading ahead ended at this time.
    Finished(Time),
    /// The arm or the heads move until then.
    Moving(Time),
    /// The next sector comes round then.
    Rotating(Time),
    /// A sector passes under the head until then.
    Reading(Time),
}

/// State of the arm at the end of reading ahead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leave {
    /// Time at which the arm is free for something else.
    pub at: Time,
    /// True if the head reads on its track until then.
    pub reads: bool,
}

/// State of an arm that goes on with a stream, and of the commands for which it stops.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Going {
    /// Time at which the arm set out for the present stream.
    pub since: Time,
    /// Commands that came by this time have waited for too long and go first.
    pub overdue: Option<Time>,
    /// True if the arm goes on although no command waits for the sectors that it reads.
    pub alone: bool,
    /// Slot of the command for which the arm leaves as late as it comes in time.
    pub next: Option<u16>,
    /// Time until which runs go first, since writes have waited for too long or runs are old.
    pub destage_until: Time,
}

/// Place of the data that the arm writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A segment.
    Segment(SegmentId),
    /// The dirty runs.
    Runs,
    /// The host: the data go past the buffer.
    Host,
}

/// The arm writes sectors, for one command or for several that continue each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writing {
    /// Place of the dirty data.
    pub source: Source,
    /// The sectors that are not on the medium yet. A segment that is written for several commands
    /// keeps all its sectors until the last command is done: the segment is released as a whole.
    pub extent: Extent,
    /// Time at which the last sector is on the medium.
    pub until: Time,
}

/// A stretch of sectors as it passes under the writing head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passing {
    pub extent: Extent,
    /// Time at which the first sector begins.
    pub from: Time,
    /// Duration of the whole stretch.
    pub takes: Nanos,
}

/// The sectors that have been written since the caller last took them.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    pub on: bool,
    pub done: Vec<(Time, Extent)>,
    /// The steps of the present write. They are stored even if nothing is recorded, since they
    /// decide which unreadable sectors a power cut leaves.
    pub passing: Vec<Passing>,
}

impl Record {
    /// Notes sectors that pass under the writing head.
    pub fn passing(&mut self, passing: Passing) {
        self.passing.push(passing);
    }

    pub fn note(&mut self, at: Time, extent: Extent) {
        if self.on {
            self.done.push((at, extent));
        }
    }
}

/// Addresses of the track of the last query. One read asks several times, mostly for the same track.
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
