//! Values of programs and of their calls, which the NCQ paper calls transactions.

use super::super::{ProgramRun, Run, SpreadValue};
use super::measure::{Better, Measure, whole};

/// From the start of the first program to the end of the last, in seconds, if all have ended.
pub(super) fn time(run: &Run) -> Option<f64> {
    let ends = run.programs.iter().map(|program| program.ended_s);
    let ended = ends.collect::<Option<Vec<f64>>>()?;
    let end = ended.into_iter().reduce(f64::max)?;
    let starts = run.programs.iter().map(|program| program.started_s);
    let start = starts.reduce(f64::min)?;
    (end > start).then_some(end - start)
}

pub(super) fn programs_mb_s(run: &Run) -> Option<f64> {
    let bytes = run.programs.iter().map(|one| one.read_mb + one.written_mb);
    time(run).map(|time| bytes.sum::<f64>() / time)
}

pub(super) fn programs_kb_s(run: &Run) -> Option<f64> {
    let rates = run.programs.iter().map(|one| one.throughput_mb_s);
    time(run).map(|_| rates.sum::<f64>() * 1e3)
}

/// Calls of all programs, which the NCQ paper calls transactions.
fn calls(run: &Run) -> f64 {
    run.programs.iter().map(|program| program.calls).sum()
}

/// Transactions over the time from the first start to the last end.
pub fn tx_per_s(run: &Run) -> Option<f64> {
    time(run).map(|time| calls(run) / time)
}

/// Commands of the drive for each transaction.
pub fn commands_per_tx(run: &Run) -> Option<f64> {
    let calls = calls(run);
    (calls > 0.0).then(|| run.commands.completed as f64 / f64::from(run.repeats) / calls)
}

/// A value of the responses of transactions.
pub(super) fn tx_response(run: &Run, value: SpreadValue) -> Option<f64> {
    run.transactions.map(|calls| value(&calls.response_ms))
}

/// Sum over all programs of the MB that each moved; `None` without programs.
pub(super) fn moved(run: &Run, value: fn(&ProgramRun) -> f64) -> Option<f64> {
    let sum: f64 = run.programs.iter().map(value).sum();
    (!run.programs.is_empty()).then_some(sum)
}

/// A value of one program.
type OfProgram = fn(&ProgramRun) -> Option<f64>;

/// Values of single programs of a run: better direction, name behind the program's number, unit, meaning.
const SINGLE: [(Better, &str, &str, &str, OfProgram); 9] = [
    (
        Better::Less,
        "run_s",
        "s",
        "time from the start of the N-th program to its end",
        |one| Some(one.ended_s? - one.started_s),
    ),
    (
        Better::Less,
        "goal_s",
        "s",
        "run time that the goal of the N-th program asks for",
        |one| one.goal_s,
    ),
    (
        Better::Less,
        "late",
        "% of the goal",
        "run time of the N-th program over its goal; below 0 if the program ended sooner",
        |one| one.late_percent,
    ),
    (
        Better::Less,
        "error_80",
        "%",
        "error of the N-th program's bounds that 80 % of the epochs of another run alone do not exceed; sum over the servers",
        |one| Some(one.bound_errors?.error_80_percent),
    ),
    (
        Better::Less,
        "error_90",
        "%",
        "error of the N-th program's bounds that 90 % of the epochs of another run alone do not exceed; sum over the servers",
        |one| Some(one.bound_errors?.error_90_percent),
    ),
    (
        Better::Less,
        "server_error_90",
        "%",
        "error of the N-th program's bounds that 90 % of the epochs of single servers do not exceed, in another run alone",
        |one| Some(one.bound_errors?.server_error_90_percent),
    ),
    (
        Better::Less,
        "seeks_longer",
        "% of periods",
        "periods in which seeks to other programs' data took longer than waits for the next request of the N-th program",
        |one| one.seeks_longer_percent,
    ),
    (
        Better::More,
        "shared",
        "% of periods",
        "periods in which the N-th program was served in the shared window",
        |one| one.shared_percent,
    ),
    (
        Better::More,
        "mb_s",
        "MB/s",
        "bytes that the N-th program read and wrote, over the time of the program",
        |one| Some(one.throughput_mb_s),
    ),
];

/// Programs that have values of their own.
const PROGRAMS: usize = 8;

/// Values of each of the first programs of a run.
pub(super) fn singles() -> impl Iterator<Item = Measure> {
    SINGLE
        .into_iter()
        .flat_map(|(better, value, unit, help, of)| {
            let family: &str = format!("programN_{value}").leak();
            (0..PROGRAMS).map(move |place| {
                let number = place + 1;
                let name = format!("program{number}_{value}").leak();
                let value = whole(move |run: &Run| of(run.programs.get(place)?));
                Measure {
                    family,
                    ..Measure::new(better, name, unit, help, value)
                }
            })
        })
}
