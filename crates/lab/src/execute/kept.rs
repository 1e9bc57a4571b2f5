//! What a run keeps beside its figures: the movements of the head, and the times of requests.

use headtime_disk::{Part, Span};
use headtime_engine::Finished;
use headtime_units::Time;

/// Which of the head's movements a run keeps for a plot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keep {
    /// So many transfers after the warm-up.
    Transfers(usize),
    /// A part of the time, in seconds.
    Window(f64, f64),
}

/// A stretch of time in which the head does one thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// Its beginning, in seconds.
    pub from: f64,
    /// Its end, in seconds.
    pub to: f64,
    /// Where the head is or goes to, in bytes from the start of the disk.
    pub address: f64,
    /// What it does.
    pub part: Part,
}

/// When something happened to a request, in seconds since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// It came.
    pub arrived: f64,
    /// It went to the drive, alone or as part of a merged one.
    pub issued: f64,
    /// It was done.
    pub done: f64,
}

impl Sample {
    pub(super) fn of(now: Time, done: &Finished) -> Sample {
        Sample {
            arrived: done.request.arrival.as_secs_f64(),
            issued: done.issued.as_secs_f64(),
            done: now.as_secs_f64(),
        }
    }
}

/// The spans that a plot may need, in its units.
pub(super) fn marks(spans: &[Span], keep: Keep, warm_up: f64, sector_bytes: u32) -> Vec<Mark> {
    let (from, to) = match keep {
        Keep::Window(from, to) => (from, to),
        Keep::Transfers(_) => (warm_up, f64::INFINITY),
    };
    let mut left = match keep {
        Keep::Window(..) => usize::MAX,
        // The run with most transfers sets the end; the others show no more than it does.
        Keep::Transfers(transfers) => transfers + 2,
    };
    let mut marks: Vec<Mark> = Vec::new();
    for span in spans {
        let mark = Mark {
            from: span.from.as_secs_f64(),
            to: span.to.as_secs_f64(),
            address: span.lba.get() as f64 * f64::from(sector_bytes),
            part: span.part,
        };
        if mark.from >= to || left == 0 {
            break;
        }
        if mark.to <= from {
            // The last one before shows where the head comes from.
            marks.clear();
        } else if span.part == Part::Transfer {
            left -= 1;
        }
        marks.push(mark);
    }
    marks
}
