//! What is kept of a run beside its figures: the movements of the head and the times of requests.

use headtime_disk::{Part, Span};
use headtime_engine::Event;
use headtime_engine::log::{self, Decision, Record};
use headtime_units::Time;
use std::collections::BTreeMap;

/// Which of the head's movements are kept for a plot.
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

/// The requests of a log that are done, in the order in which they were.
pub(super) fn samples(tape: &str) -> Vec<Sample> {
    let mut arrived: BTreeMap<u64, Time> = BTreeMap::new();
    let mut issued: BTreeMap<u32, Time> = BTreeMap::new();
    let mut latest = None;
    let mut samples = Vec::new();
    for record in log::read(tape) {
        let (_, record) = record.expect("what the engine writes it reads");
        match record {
            Record::Event(now, Event::Arrived(new)) => {
                arrived.insert(new.id, now);
            }
            Record::Decision(now, Decision::Issue { tag, .. }) => {
                issued.insert(tag.0, now);
            }
            // All requests that this one was made of are done next.
            Record::Event(_, Event::Completed { tag, .. }) => latest = issued.remove(&tag.0),
            Record::Decision(now, Decision::Finish { id, .. }) => {
                if let (Some(arrived), Some(issued)) = (arrived.remove(&id), latest) {
                    samples.push(Sample {
                        arrived: arrived.as_secs_f64(),
                        issued: issued.as_secs_f64(),
                        done: now.as_secs_f64(),
                    });
                }
            }
            _ => {}
        }
    }
    samples
}
