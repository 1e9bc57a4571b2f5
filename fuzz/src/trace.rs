//! Checks on the trace readers.

use headtime_sched::Op;
use headtime_units::{Sectors, Time};
use headtime_workload::{
    ADDRESS_END, ClosedPerProcess, ClosedReplay, Fit, Fitter, Format, OpenReplay, ReadOptions,
    Script, Source, Speed, Start, Trace,
};
use std::sync::Arc;

/// Reads `bytes` as a trace in a format, or in any. Compressed data is left to the latter: unpacking
/// megabytes of blank lines, which is what fuzzing makes of it, takes the time of thousands of lines
/// that say something.
pub fn check(bytes: &[u8], format: Option<Format>) {
    if format.is_some() && is_compressed(bytes) {
        return;
    }
    check_with(
        bytes,
        &ReadOptions {
            format,
            ..ReadOptions::default()
        },
    );
}

/// The first line describes columns or names a preset, the others are the file.
pub fn check_csv(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
    let (columns, file) = (parts.next().unwrap_or(b""), parts.next().unwrap_or(b""));
    if is_compressed(file) {
        return;
    }
    let Ok(columns) = std::str::from_utf8(columns) else {
        return;
    };
    let preset = columns.parse().ok();
    let preset = preset.filter(|format| matches!(format, Format::Preset(_)));
    let options = ReadOptions {
        format: Some(preset.unwrap_or(Format::Csv)),
        columns: if preset.is_some() {
            None
        } else {
            columns.parse().ok()
        },
        ..ReadOptions::default()
    };
    check_with(file, &options);
}

/// Whether the first bytes are those of gzip or of a Zstandard frame.
fn is_compressed(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
        || bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
        || bytes.get(1..4) == Some(&[0x2a, 0x4d, 0x18])
}

fn check_with(bytes: &[u8], options: &ReadOptions) {
    let trace = match Trace::read("FILE", bytes, options) {
        Ok(trace) => trace,
        Err(error) => {
            let text = error.to_string();
            assert!(text.starts_with("FILE: "), "{text}");
            assert!(!text.chars().any(|char| char.is_control()), "{text:?}");
            if !options.lenient {
                // Without the odd lines, the trace is the same.
                let lenient = ReadOptions {
                    lenient: true,
                    ..options.clone()
                };
                check_with(bytes, &lenient);
            }
            return;
        }
    };
    assert!(options.lenient || trace.notes.odd.count == 0);
    assert!(!trace.requests.is_empty());
    assert!(
        trace
            .requests
            .iter()
            .filter_map(|request| request.arrival)
            .is_sorted()
    );
    for request in &trace.requests {
        assert!(request.extent.end().get() <= ADDRESS_END);
        assert_eq!(request.extent.is_empty(), request.op == Op::Flush);
        if let (Some(arrival), Some(completion)) = (request.arrival, request.completion) {
            assert!(arrival <= completion);
        }
    }
    let info = trace.info();
    assert_eq!(info.total.requests(), trace.requests.len() as u64);

    // What is written is what was read.
    let mut text = Vec::new();
    trace.write_csv(&mut text).expect("a vector takes all");
    let again = Trace::read("AGAIN", &text[..], &ReadOptions::default()).expect("own output");
    if again.notes.base == trace.notes.base || again.notes.base.is_zero() {
        assert_eq!(again.requests, trace.requests);
    }
    for process in trace.requests.iter().filter_map(|request| request.process) {
        assert_eq!(again.process_name(process), trace.process_name(process));
    }

    replay(&trace);
}

/// Every replay that can be built makes every request.
fn replay(trace: &Trace) {
    if trace.devices().len() > usize::from(u16::MAX) {
        return;
    }
    let fitter = Fitter::new(Sectors::new(1_000), 4096, Fit::Wrap);
    let script = Arc::new(Script::new(trace, &[], &fitter).expect("wrapped"));
    drain(&mut ClosedReplay::new(script.clone(), 3));
    if let Ok(mut open) = OpenReplay::new(script.clone(), Speed::AS_RECORDED, Start::AtOnce) {
        drain(&mut open);
    }
    if let Ok(mut per_process) = ClosedPerProcess::new(script) {
        drain(&mut per_process);
    }
}

fn drain(source: &mut dyn Source) {
    let mut now = Time::ZERO;
    while let Some(next) = source.next_arrival() {
        now = now.max(next);
        let request = source.poll(now).expect("one is due");
        source.completed(now, request.cookie);
    }
    assert!(source.done());
}
