//! Simulates the runs of a scenario, several at a time, and sums up the repeats of each.

mod bound;
mod by_name;
mod goals;
mod kept;
mod load;
mod lone;
mod queue;
mod repeat;
mod requests;
mod seed;
mod sums;
mod training;
mod windows;

pub(crate) use by_name::Names;
pub use goals::{Demanded, demands, profile};
pub use kept::{Keep, Mark, Sample};
pub use load::fits;
pub use repeat::{MadeRepeat, Wanted, With, check, make};
pub use sums::sum_up;

use crate::batch;
use crate::fault::Fault;
use crate::files::Output;
use crate::prepare::Prepared;
use crate::report::Run;
use crate::scenario::{Header, cells, short};
use headtime_units::Nanos;

/// How to make the runs of a scenario.
#[derive(Debug, Default)]
pub struct Execution {
    /// Runs made at a time; as many as there are processors if absent.
    pub jobs: Option<u16>,
    /// Head movements to record for a plot, and the number of first runs to record them for.
    pub marks: Option<(Keep, usize)>,
    /// File for the log of the only run.
    pub log: Option<Output>,
    /// File for a row of each request of the only run.
    pub requests: Option<Output>,
    /// True to record when each request came, was issued and was done.
    pub record: bool,
}

/// The results of all runs of a scenario.
#[derive(Debug)]
pub struct Executed {
    /// The runs, in the order of the matrix.
    pub runs: Vec<Run>,
    /// Recorded head movements of each run; empty without recording.
    pub marks: Vec<Vec<Mark>>,
    /// Recorded requests of each run, in the order of completion; empty without recording.
    pub samples: Vec<Vec<Sample>>,
    /// Requests simulated, repeats and warm-up included.
    pub simulated: u64,
    /// The time simulated, warm-up included, of the longest run.
    pub longest: Nanos,
}

/// Makes all runs.
///
/// # Errors
///
/// The first fault in the order of the matrix, whichever came first in time.
pub fn execute(prepared: &Prepared, mut how: Execution, with: With<'_>) -> Result<Executed, Fault> {
    let progress = with.progress;
    let cells = cells(&prepared.scenario);
    let repeats = prepared.scenario.run.repeats as usize;
    let tasks: Vec<(usize, u32)> = (0..cells.len())
        .flat_map(|cell| (0..repeats as u32).map(move |repeat| (cell, repeat)))
        .collect();
    let (mut log, mut requests) = (how.log.take(), how.requests.take());
    for (option, file) in [("--log", &log), ("--requests", &requests)] {
        if file.is_some() && tasks.len() > 1 {
            return Err(Fault::Usage(format!(
                "{option} is for one run, and these are {}; choose one scheduler, one drive, one depth, one array.coordinate, run.repeats = 1",
                tasks.len()
            )));
        }
    }
    progress.begin(tasks.len() as u64);
    let make = |(cell, repeat): (usize, u32), [log, requests]: [Option<&mut Output>; 2]| {
        let what = Wanted {
            // Records only the first repeat of drawn runs, since spans of a long run take much memory.
            marks: how
                .marks
                .filter(|(_, runs)| cell < *runs && repeat == 0)
                .map(|(keep, _)| keep),
            record: how.record && repeat == 0,
            log,
            requests,
        };
        make(prepared, &cells[cell], repeat, what, with)
    };
    let made: Vec<Result<MadeRepeat, Fault>> = match (&mut log, &mut requests) {
        (None, None) => batch::all(how.jobs, tasks, |task| make(task, [None, None]))?,
        (log, requests) => vec![make((0, 0), [log.as_mut(), requests.as_mut()])],
    };
    progress.end();
    let mut made = made
        .into_iter()
        .collect::<Result<Vec<MadeRepeat>, Fault>>()?;
    for file in [log, requests].into_iter().flatten() {
        file.finish()?;
    }
    let simulated = made.iter().map(|made| made.report.engine.finished).sum();
    let longest = made.iter().map(|made| made.report.simulated).max();
    let mut marks = Vec::new();
    if how.marks.is_some() {
        // The first repeat stands for all.
        marks.extend(
            made.iter_mut()
                .step_by(repeats)
                .map(|made| std::mem::take(&mut made.marks)),
        );
    }
    let samples = made.iter_mut().step_by(repeats);
    let samples = samples.map(|made| std::mem::take(&mut made.samples));
    let samples = samples.collect();
    let runs = cells
        .iter()
        .zip(made.chunks(repeats))
        .map(|(cell, made)| sum_up(prepared, cell, made));
    let mut runs: Vec<Run> = runs.collect();
    label(&mut runs);
    Ok(Executed {
        runs,
        marks,
        samples,
        simulated,
        longest: longest.unwrap_or_default(),
    })
}

/// Labels each run with its scheduler, and with every option in which runs differ.
fn label(runs: &mut [Run]) {
    let differ = |value: &dyn Fn(&Run) -> String| {
        runs.windows(2)
            .any(|pair| value(&pair[0]) != value(&pair[1]))
    };
    let drive = differ(&|run| run.drive.clone());
    let names = Header::names().into_iter();
    let differing = names.filter(|name| differ(&|run| run.header.text(name)));
    let differing: Vec<&str> = differing.collect();
    for run in runs {
        let mut label = run.schedulers();
        for name in &differing {
            let value = run.header.text(name);
            label.push_str(&match (*name, value.as_str()) {
                ("depth", depth) => format!(" @{depth}"),
                ("firmware", order) => format!(" {order} drive"),
                ("merge", "false") => " unmerged".to_owned(),
                ("merge", _) | (_, "false") => String::new(),
                (switch, "true") => format!(" {}", short(switch)),
                (count, value) => format!(" {} {value}", short(count)),
            });
        }
        if drive {
            label = format!("{} {label}", run.drive);
        }
        run.label = label;
    }
}
