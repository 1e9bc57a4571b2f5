//! `headtime trace record`

use super::{OutName, kinds};
use crate::args::{Record, To};
use crate::commands::context::Context;
use crate::commands::signals::signals;
use headtime_lab::fault::Fault;
use headtime_lab::files::Output;
use headtime_linux::shown::PathShown as _;
use headtime_record::{Going, RecordError, RecordOptions, Recorder, Recording, Target};
use headtime_workload::WriteError;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Largest number of processes that are named in the file, and in the summary.
const NAMED_MAX: (usize, usize) = (100, 5);

/// Longest delay until a signal takes effect.
const SIGNAL_CHECK: Duration = Duration::from_millis(100);

/// Reason why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Time,
    Signal,
    Gone,
    Full,
}

pub(in crate::commands) fn record(args: &Record, context: &mut Context<'_>) -> Result<(), Fault> {
    let name = OutName::new(&args.out)?;
    if name.to != Some(To::Csv) {
        return Err(Fault::Usage(format!(
            "{}: a recording is csv, which alone has a place for processes and completions; name it .csv or .csv.gz",
            args.out.shown()
        )));
    }
    let target = Target::new(&args.device).map_err(fault)?;
    let mut output = Output::create(&args.out)?;
    let signals = signals()?;
    let options = RecordOptions {
        buffer: args.buffer,
        ..RecordOptions::default()
    };
    let mut recorder = Recorder::start(&target, &options).map_err(fault)?;
    let long = match args.span {
        Some(span) => format!("for {span}, or until Ctrl-C"),
        None => "until Ctrl-C".to_owned(),
    };
    context.note(&format!("recording {}, {long}", what(&target)));
    let end = record_until(&mut recorder, args, &signals).map_err(fault)?;
    let recording = recorder.finish().map_err(fault)?;
    match end {
        End::Time | End::Signal => {}
        End::Gone => context.note(&format!("{}: the device is gone", target.path())),
        End::Full => context.note(&format!(
            "ended after {} requests, the most that are recorded",
            options.requests_max
        )),
    }
    if recording.trace.requests.is_empty() {
        return Err(Fault::File(format!(
            "{}: nothing to write: {}",
            args.out.shown(),
            remainder(&recording).first().map_or_else(
                || format!("no request was made to {}", target.path()),
                |rest| format!("no request was both made and completed meanwhile; {rest}")
            )
        )));
    }
    write(&recording, &target, name, &args.out, &mut output)?;
    output.finish()?;
    summary(&recording, &args.out, context);
    Ok(())
}

fn fault(error: RecordError) -> Fault {
    Fault::File(error.to_string())
}

/// Describes the device and its recorded part.
fn what(target: &Target) -> String {
    let (major, minor) = target.numbers();
    let path = target.path();
    match target.part() {
        None => format!("{path} ({}, {major}:{minor})", target.disk()),
        Some(part) => format!(
            "{path} (sectors {} to {} of {}, {major}:{minor}, and its flushes)",
            part.start.get(),
            part.end().get() - 1,
            target.disk()
        ),
    }
}

/// Records until the time is over, a signal comes, the device is gone, or the largest allowed number of requests is reached.
#[allow(
    clippy::disallowed_types,
    reason = "a recording lasts as long as it is told, in the world's time"
)]
fn record_until(
    recorder: &mut Recorder,
    args: &Record,
    signals: &AtomicU32,
) -> Result<End, RecordError> {
    let begun = std::time::Instant::now();
    let span = args.span.map(|span| Duration::from_nanos(span.as_nanos()));
    loop {
        let left = span.map(|span| span.saturating_sub(begun.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(End::Time);
        }
        match recorder.step(left.map_or(SIGNAL_CHECK, |left| left.min(SIGNAL_CHECK)))? {
            Going::On => {}
            Going::Gone => return Ok(End::Gone),
            Going::Full => return Ok(End::Full),
        }
        if signals.load(Ordering::Relaxed) > 0 {
            return Ok(End::Signal);
        }
    }
}

/// Writes the recording, below comments about its processes.
fn write(
    recording: &Recording,
    target: &Target,
    name: OutName,
    path: &Path,
    output: &mut Output,
) -> Result<(), Fault> {
    let mut text = format!(
        "# {}, recorded by headtime {} in {:.3} s; process numbers are those of threads\n",
        what(target),
        env!("CARGO_PKG_VERSION"),
        recording.span.as_secs_f64()
    );
    for line in remainder(recording) {
        text.push_str(&format!("# {line}\n"));
    }
    for process in recording.processes.iter().take(NAMED_MAX.0) {
        text.push_str(&format!(
            "# process {}: {}, {} requests\n",
            process.id,
            process.name.escape_debug(),
            process.requests
        ));
    }
    let put = |out: &mut dyn Write| {
        out.write_all(text.as_bytes())?;
        recording.trace.write_csv(out)
    };
    match name.write(output, put) {
        Ok(_) => Ok(()),
        Err(WriteError::Io(error)) => Err(Fault::writing(path, &error)),
        Err(other) => Err(Fault::File(format!("{}: {other}", path.shown()))),
    }
}

/// Describes requests that the trace lacks, a line for each kind that occurs.
fn remainder(recording: &Recording) -> Vec<String> {
    [
        (
            recording.lost,
            "events were lost, as the kernel's buffer was full: requests are missing, and some may have a wrong \
             completion (--buffer makes it larger)",
        ),
        (
            recording.unfinished,
            "requests that were not complete at the end are left out",
        ),
        (
            recording.unpaired,
            "completions of requests made before the beginning are left out",
        ),
        (recording.failed, "requests ended with an error"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, text)| format!("{count} {text}"))
    .collect()
}

fn summary(recording: &Recording, out: &Path, context: &mut Context<'_>) {
    let total = recording.trace.info().total;
    context.note(&format!(
        "{}: {} requests in {:.3} s ({}) of {} threads",
        out.shown(),
        total.requests(),
        recording.span.as_secs_f64(),
        kinds(&total),
        recording.processes.len()
    ));
    for line in remainder(recording) {
        context.note(&line);
    }
    let busiest: Vec<String> = recording
        .processes
        .iter()
        .take(NAMED_MAX.1)
        .map(|process| {
            let name = process.name.escape_debug();
            format!("{name}-{}: {}", process.id, process.requests)
        })
        .collect();
    context.note(&format!("requests of {}", busiest.join(", ")));
}
