//! Values with a column in CSV and sweeps, in the order of the columns.

use super::super::field::Field;
use super::super::row::{Kind, Row};
use super::super::{Confidence, HeadTime, KindRun, ProgramRun, Run, key, round};
use super::measure::{Better, Measure, described, measures, whole};
use super::percentiles::{percentile, spread};
use super::programs::{commands_per_tx, moved, programs_mb_s, time, tx_per_s, tx_response};
use super::values::{busy_share, predicted};
use crate::scenario::Header;
use headtime_disk::Part;

/// Decimal places of computed values.
const PLACES: i32 = 6;
/// Decimal places of times and MB of programs: whole nanoseconds and bytes.
const EXACT: i32 = 9;

/// A value of all rows except rows of disks.
macro_rules! every {
    ($field:ident) => {
        |row: &Row<'_>| match row {
            Row::Whole(run) => run.$field.into(),
            Row::Origin(_, origin) => origin.$field.into(),
            Row::Named(_, named, _) => named.$field.into(),
            Row::Member(..) => Field::Nothing,
        }
    };
}

/// All columns.
pub(super) fn columns() -> Vec<Measure> {
    let mut all = described_columns();
    all.extend(measured());
    all.extend(spread("response", "arrival to completion", |row| {
        Some(match row {
            Row::Whole(run) => run.response_ms,
            Row::Origin(_, origin) => origin.response_ms,
            Row::Named(_, named, _) => named.response_ms,
            Row::Member(..) => return None,
        })
    }));
    all.extend(of_kind("read", Kind::Reads));
    all.extend(of_kind("write", Kind::Writes));
    all.extend(spread("queue", "arrival to drive", |row| {
        Some(row.whole()?.queue_ms)
    }));
    all.extend(spread("device", "drive to completion", |row| {
        Some(row.whole()?.device_ms)
    }));
    all.extend(head("s", "s", "seconds", HeadTime::get));
    all.extend(counted());
    all.extend(confidence());
    let computed = computed().into_iter().map(|measure| Measure {
        places: Some(PLACES),
        ..measure
    });
    all.extend(computed);
    all.extend(of_programs());
    let shares = head("pct", "%", "share of all head time", HeadTime::share);
    all.extend(shares.map(|share| Measure {
        places: Some(3),
        ..share
    }));
    all
}

/// Columns that describe the run.
fn described_columns() -> Vec<Measure> {
    let mut all = measures! {
        Neither "scheduler", "", "scheduler, with its options; `coordinated` behind it if a coordinator has the disks of an array", described(|run| Field::from(&run.schedulers()));
        Neither "drive", "", "drive", described(|run| Field::from(&run.drive));
    };
    all.extend(Header::names().into_iter().map(|name| {
        let of = described(move |run| Field::from(run.header.get(name)));
        Measure::new(
            Better::Neither,
            name,
            "",
            "option of the engine or the drive",
            of,
        )
    }));
    all.extend(measures! {
        Neither "repeats", "", "runs that differ in their seed", described(|run| run.repeats);
        Neither "warm_up_s", "s", "time before anything is measured", described(|run| run.warm_up_s);
    });
    all
}

/// Columns of requests and rates.
fn measured() -> Vec<Measure> {
    measures! {
        More "requests", "", "requests that were completed", every!(requests);
        More "reads", "", "reads that were completed", |row| match row {
            Row::Whole(run) => run.reads.into(),
            Row::Named(..) => row.kind(Kind::Reads).map_or(0, |reads| reads.requests).into(),
            Row::Origin(..) | Row::Member(..) => Field::Nothing,
        };
        Less "failed", "", "requests that failed", whole(|run| run.failed);
        Less "unfinished", "", "requests that had not been completed at the end", every!(unfinished);
        Less "oldest_unfinished_ms", "ms", "time for which the oldest unfinished request had waited", every!(oldest_unfinished_ms);
        Neither "simulated_s", "s", "time that was simulated, in all repeats", whole(|run| run.simulated_s);
        More "throughput_mb_s", "MB/s", "bytes that the disk moved for requests, per second of the run", every!(throughput_mb_s);
        More "iops", "1/s", "requests per second", |row| match row {
            Row::Whole(run) => run.iops.into(),
            Row::Named(_, named, _) => named.iops.into(),
            Row::Origin(..) | Row::Member(..) => Field::Nothing,
        };
        More "fairness", "", "Jain's index of the origins' throughputs", whole(|run| run.fairness);
        More "bound_share", "%", "least time that any scheduler needs for the same requests, of the time that they took",
            whole(|run| run.bound.map(|bound| bound.share));
        Neither "bound_by", "", "largest part of the least time: `arm`, `command`, `chain`",
            whole(|run| run.bound.map(|bound| bound.by));
        Neither "bound_s", "s", "least time that any scheduler needs, over all repeats", whole(|run| run.bound.map(|bound| bound.time_s));
    }
}

/// Columns of the counts of the engine and the scheduler.
fn counted() -> Vec<Measure> {
    measures! {
        Neither "issued", "", "commands that went to the drive", |row| match row {
            Row::Member(_, _, member) => member.issued.into(),
            row => row.whole().map(|run| run.engine.issued).into(),
        };
        Neither "merged", "", "requests that joined the command of another", whole(|run| run.engine.merged);
        Neither "held", "", "requests that waited for one that they overlap, or for a flush", whole(|run| run.engine.held);
        Neither "idled", "", "times at which the scheduler held the disk though it had requests", whole(|run| run.engine.idled);
        Neither "queued_max", "", "requests in the scheduler, at most", whole(|run| run.engine.queued_max);
        Neither "chosen", "", "requests that the scheduler chose", whole(|run| run.engine.chosen);
        Neither "overtaken", "", "requests that a later one was chosen before", whole(|run| run.engine.overtaken);
        Neither "streams_established", "", "streams that the scheduler found", whole(|run| run.waits.streams_established);
        Neither "streams", "", "streams that the scheduler had at the end", whole(|run| run.waits.streams);
        Neither "waits", "", "times that the scheduler waited for a request to come", whole(|run| run.waits.waits);
        Neither "waits_won", "", "waits in which the request came", whole(|run| run.waits.waits_won);
        Neither "waits_lost", "", "waits in which the time ran out", whole(|run| run.waits.waits_lost);
    }
}

/// Half the widths of 95 % confidence intervals over the repeats.
fn confidence() -> impl Iterator<Item = Measure> {
    type Half = fn(Confidence) -> f64;
    let halves: [(&str, &'static str, Half); 4] = [
        ("throughput_mb_s", "MB/s", |half| half.throughput_mb_s),
        ("iops", "1/s", |half| half.iops),
        ("response_mean_ms", "ms", |half| half.response_mean_ms),
        ("response_p99_ms", "ms", |half| half.response_p99_ms),
    ];
    halves.into_iter().map(|(of, unit, half)| {
        let (name, help) = (
            format!("{of}_ci95").leak(),
            format!("half the width of the 95 % confidence interval of `{of}`, with repeats")
                .leak(),
        );
        let of = whole(move |run| run.ci95.map(half));
        Measure::new(Better::Neither, name, unit, help, of)
    })
}

/// Columns that are computed from the results of a run.
fn computed() -> Vec<Measure> {
    let mut all = measures! {
        Less "quiet_mean_ms", "ms", "from the dispatch of the last request that a process has queued to its next one, mean",
            whole(|run| run.quiet_ms.mean);
        Less "quiet_p90_ms", "ms", "from the dispatch of the last request that a process has queued to its next one, of which nine in ten are at most as long", whole(|run| run.quiet_ms.p90);
        Less "rotation_share", "%", "rotational latency as a share of the time in which the arm is busy",
            whole(|run| busy_share(run, Part::Rotation));
        Less "response_max_mean_ms", "ms", "arrival to completion, longest of each repeat, in the mean",
            whole(|run| run.response_ms.max_mean);
        More "tx_per_s", "Tx/s", "calls of all programs, from the start of the first to the end of the last", whole(tx_per_s);
        Less "commands_per_tx", "", "commands that the drive completed, for each call", whole(commands_per_tx);
        Less "tx_response_mean_ms", "ms", "from a call to its return, mean", whole(|run| tx_response(run, |calls| calls.mean));
    };
    all.extend(["tx_response_p50_ms", "tx_response_p99_ms"].map(percentile));
    all.extend(measures! {
        Less "tx_response_max_ms", "ms", "from a call to its return, longest", whole(|run| tx_response(run, |calls| calls.max));
        Less "tx_response_max_mean_ms", "ms", "from a call to its return, longest of each repeat, in the mean",
            whole(|run| tx_response(run, |calls| calls.max_mean));
        More "commands_per_s", "IO/s", "commands that the drive completed, per second", whole(|run| run.commands.per_s);
        Less "page_share", "% of commands", "commands of 4 KiB at most", whole(|run| run.commands.page_share);
        More "large_share", "% of commands", "commands of more than 50 sectors", whole(|run| run.commands.large_share);
        More "sequentiality_p50", "sectors", "NISE's metric, whatever the scheduler is, median",
            whole(|run| run.commands.sequentiality[1]);
    });
    all.extend(["delay_p50", "delay_p99"].map(percentile));
    all.extend(measures! {
        Less "delay_max", "commands", "by how many later commands one was overtaken in the drive, at most",
            whole(|run| run.commands.delay_count.max);
        Less "interval_mean_ms", "ms", "from one completion of the drive to the next, mean",
            whole(|run| run.commands.interval_ms.mean);
        Less "interrupts", "", "completion notifications of the drive", whole(|run| run.commands.interrupts as f64);
        More "tags_in_use", "", "tags of the drive in use, in the mean over the time", whole(|run| run.commands.tags_in_use);
        Less "full_share", "%", "time in which no tag of the drive was free", whole(|run| run.commands.full_share);
        More "predicted_50us", "%", "commands whose head time was predicted to 50 us",
            whole(|run| Some(predicted(run)?.within_50us));
    });
    all
}

/// Takes a value of all programs, and of each program that has a row.
fn of_program(
    all: fn(&Run) -> Option<f64>,
    own: fn(&ProgramRun) -> Option<f64>,
) -> impl Fn(&Row<'_>) -> Field + Send + Sync {
    move |row| match row {
        Row::Named(_, _, Some(program)) => own(program).map(|own| round(own, EXACT)).into(),
        row => row.whole().and_then(all).into(),
    }
}

/// Columns of runs with programs.
fn of_programs() -> Vec<Measure> {
    let rates = measures! {
        Less "time_s", "s", "from the start of the first program to the end of the last",
            of_program(time, |program| program.ended_s.map(|end| end - program.started_s));
        More "programs_mb_s", "MB/s", "bytes that all programs read and wrote, over `time_s`",
            of_program(programs_mb_s, |program| Some(program.throughput_mb_s));
    };
    let bytes = measures! {
        Neither "read_mb", "MB", "bytes that programs read, by their own account",
            of_program(|run| moved(run, |program| program.read_mb), |program| Some(program.read_mb));
        Neither "written_mb", "MB", "bytes that programs wrote, by their own account",
            of_program(|run| moved(run, |program| program.written_mb), |program| Some(program.written_mb));
    };
    let rounded = |measures: Vec<Measure>, places| {
        let measures = measures.into_iter();
        measures.map(move |measure| Measure {
            places: Some(places),
            ..measure
        })
    };
    rounded(rates, PLACES)
        .chain(rounded(bytes, EXACT))
        .collect()
}

/// The columns of one kind of request.
fn of_kind(name: &str, kind: Kind) -> Vec<Measure> {
    let value = move |better, ending: &str, unit, help: &str, value: fn(&KindRun) -> f64| {
        let (name, help) = (
            format!("{name}_{ending}").leak(),
            format!("{name}s alone: {help}").leak(),
        );
        let of = move |row: &Row<'_>| row.kind(kind).map(value).into();
        Measure::new(better, name, unit, help, of)
    };
    let response = |ending, help, of| {
        let ending = format!("response_{ending}_ms");
        let help = format!("arrival to completion, {help}");
        value(Better::Less, &ending, "ms", &help, of)
    };
    vec![
        value(Better::More, "iops", "1/s", "requests per second", |of| {
            of.iops
        }),
        value(Better::More, "mb_s", "MB/s", "bytes per second", |of| {
            of.throughput_mb_s
        }),
        response("mean", "mean", |of| of.response_ms.mean),
        response("p50", "median", |of| of.response_ms.p50),
        response("p99", "99th percentile", |of| of.response_ms.p99),
        response("max", "longest", |of| of.response_ms.max),
    ]
}

/// A column for each part of the head time.
fn head(
    ending: &str,
    unit: &'static str,
    what: &str,
    value: fn(&HeadTime, Part) -> f64,
) -> [Measure; Part::ALL.len()] {
    Part::ALL.map(|part| {
        let (name, help) = (
            format!("head_{}_{ending}", key(part)).leak(),
            format!("head time, {}: {what}", part.name()).leak(),
        );
        let of = move |row: &Row<'_>| row.head_time().map(|time| value(time, part)).into();
        Measure::new(Better::Neither, name, unit, help, of)
    })
}
