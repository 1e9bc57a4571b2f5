//! Recordings of a run beside its figures: movements of the head, and times of requests.

use headtime_disk::{Part, Span};
use headtime_engine::Finished;
use headtime_sched::{Op, Origin};
use headtime_units::{Extent, Time};

/// Head movements that a run records for a plot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keep {
    /// This number of transfers after the warm-up.
    Transfers(usize),
    /// A part of the time, in seconds.
    Window(f64, f64),
}

/// A stretch of time in which the head does one thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// Start, in seconds.
    pub from: f64,
    /// End, in seconds.
    pub to: f64,
    /// Place of the head, or place that the head moves to, in bytes from the start of the disk.
    pub address: f64,
    /// Activity of the head.
    pub part: Part,
}

/// Times of the events of a request, in seconds since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Sender of the request.
    pub origin: Origin,
    /// Operation.
    pub op: Op,
    /// Sectors of the request.
    pub extent: Extent,
    /// Arrival.
    pub arrived: f64,
    /// Dispatch to the drive, alone or as part of a merged request.
    pub issued: f64,
    /// Completion.
    pub done: f64,
}

impl Sample {
    pub(super) fn of(now: Time, done: &Finished) -> Sample {
        Sample {
            origin: done.request.origin,
            op: done.request.op,
            extent: done.request.extent,
            arrived: done.request.arrival.as_secs_f64(),
            issued: done.issued.as_secs_f64(),
            done: now.as_secs_f64(),
        }
    }
}

/// Spans that a plot may need, in the plot's units.
pub(super) fn marks(spans: &[Span], keep: Keep, warm_up: f64, sector_bytes: u32) -> Vec<Mark> {
    let (from, to) = match keep {
        Keep::Window(from, to) => (from, to),
        Keep::Transfers(_) => (warm_up, f64::INFINITY),
    };
    let mut left = match keep {
        Keep::Window(..) => usize::MAX,
        // The run with the most transfers sets the end of the plot. Other runs show no more than the plot.
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
            // The last span before the start shows where the head comes from.
            marks.clear();
        } else if span.part == Part::Transfer {
            left -= 1;
        }
        marks.push(mark);
    }
    marks
}
