//! How long reads of a sweep take.

use headtime_units::{Extent, Lba, Nanos};

/// What was seen of so many of its own reads says how long others take.
const OWN_READS: u64 = 512;
/// Fewer say nothing.
const READS_LEAST: u64 = 16;

/// How long reads of a sweep take: a turn where they do not follow the last one, and the turns that they cover. What was seen of them
/// corrects that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sweep {
    /// Seconds.
    pub turn: f64,
    /// Sectors, in the mean.
    track: f64,
    /// What is seen corrects it by no more than this.
    bounds: (f64, f64),
    is_believed: bool,
    reads: u64,
    /// How long they took, and would have taken.
    took: f64,
    would: f64,
    /// Where the last one ended.
    end: Lba,
}

/// A drive of which nothing is known turns at 7200 rpm and reads 126 MB/s, until it is seen what it does.
const ANY_TURN: f64 = 60.0 / 7200.0;
const ANY_TRACK: f64 = 2048.0;

impl Sweep {
    /// Of a drive that turns in so long, with so many sectors on a track in the mean; `None` if nobody knows.
    pub fn new(drive: Option<(Nanos, f64)>) -> Sweep {
        let (turn, track, bounds) = match drive {
            Some((turn, track)) => (turn.as_secs_f64(), track.max(1.0), (0.5, 4.0)),
            None => (ANY_TURN, ANY_TRACK, (1e-3, 1e3)),
        };
        Sweep {
            turn,
            track,
            bounds,
            is_believed: drive.is_some(),
            reads: 0,
            took: 0.0,
            would: 0.0,
            end: Lba::ZERO,
        }
    }

    pub fn takes(&self, at: Lba, extent: Extent) -> f64 {
        let away = extent.start.get().abs_diff(at.get()) as f64;
        // What passes under the head until then takes its time, too.
        let until = (away / self.track).min(1.0);
        // A track and the skew to the next one.
        (until + 1.1 * extent.len.get() as f64 / self.track) * self.turn
    }

    pub fn read(&mut self, extent: Extent, took: Nanos) {
        if self.reads == OWN_READS {
            (self.reads, self.took, self.would) =
                (OWN_READS / 2, self.took / 2.0, self.would / 2.0);
        }
        self.reads += 1;
        self.took += took.as_secs_f64();
        self.would += self.takes(self.end, extent);
        self.end = extent.end();
    }

    /// Returns true if it is known how long reads take.
    pub fn is_known(&self) -> bool {
        self.is_believed || self.reads >= READS_LEAST
    }

    pub fn factor(&self) -> f64 {
        match self.reads >= READS_LEAST {
            true => (self.took / self.would).clamp(self.bounds.0, self.bounds.1),
            false => 1.0,
        }
    }
}
