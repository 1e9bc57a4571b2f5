//! `headtime trace`

mod record;

pub(super) use record::record;

use super::compare::{Files, compare};
use super::context::Context;
use super::sim::{set, set_all, set_gates, set_schedulers};
use crate::args::{Convert, Info, ReadingOptions, ReplayArgs, TextFormat, To};
use crate::object::object;
use flate2::Compression;
use flate2::write::GzEncoder;
use headtime_config::{Node, Place, Table, Value};
use headtime_lab::fault::Fault;
use headtime_lab::files::Output;
use headtime_lab::output::{self, TableColumn, table};
use headtime_lab::prepare::{reading_notes, trace_fault};
use headtime_lab::report::round;
use headtime_lab::scenario::{Reading, Scenario};
use headtime_linux::shown::one_line;
use headtime_units::{Nanos, Time};
use headtime_workload::{Figures, ProcessInfo, Spread, Trace, TraceInfo, WriteError};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};

impl ReadingOptions {
    fn reading(&self) -> Reading {
        Reading {
            format: self.trace_format,
            time_unit: self.time_unit,
            arrival_event: self.arrival_event,
            columns: self.columns.clone(),
            lenient: self.lenient,
            from: self.from,
            span: self.span,
            first: self.first,
        }
    }
}

pub(super) fn open(paths: &[PathBuf], reading: &ReadingOptions) -> Result<Trace, Fault> {
    Trace::open_all(paths, &reading.reading().options()?).map_err(trace_fault)
}

pub(super) fn info(args: &Info, context: &mut Context<'_>) -> Result<(), Fault> {
    let trace = open(&args.trace, &args.reading)?;
    let info = trace.info();
    match args.format {
        TextFormat::Json => output::json(context.out, &json_of(&info)),
        TextFormat::Table => {
            for note in reading_notes(&trace) {
                context.note(&note);
            }
            let text = describe(&info, context);
            context.print(&text)
        }
    }
}

/// Describes a trace in lines, each with a name and a value.
fn describe(info: &TraceInfo, context: &Context<'_>) -> String {
    let (notes, total) = (&info.notes, &info.total);
    let mut lines: Vec<(&str, String)> = vec![("file", one_line(&notes.file))];
    for kind in notes.kinds() {
        let of = match notes.kinds() {
            [_] => String::new(),
            _ => format!(" ({})", one_line(&kind.file)),
        };
        let unit = kind.time_unit.map(|unit| format!(", times in {unit}"));
        let event = (kind.arrival_event).map(|event| format!(", arrivals are {event} events"));
        let (unit, event) = (unit.unwrap_or_default(), event.unwrap_or_default());
        lines.push(("format", format!("{}{unit}{event}{of}", kind.format)));
    }
    let compression = notes.of_kinds(|kind| Some(kind.compression));
    lines.push(("compression", compression.unwrap_or_default()));
    lines.push((
        "lines",
        format!("{}, {} without a request", notes.lines, notes.lines_ignored),
    ));
    if notes.odd.count > 0 {
        lines.push(("odd lines", format!("{}, passed over", notes.odd.count)));
    }
    lines.push((
        "requests",
        format!("{}: {}", total.requests(), kinds(total)),
    ));
    lines.push((
        "sequential",
        format!(
            "{:.1} % of reads and writes",
            100.0 * total.sequential_share()
        ),
    ));
    lines.push(("off 4 KiB", off_4k(total)));
    lines.push(("mean size", rounded_size(total.mean_size().0)));
    if let (Some(first), Some(last)) = (info.first, info.last) {
        let span = seconds(last - first);
        let rate = total.requests() as f64 / span;
        let rate = if span > 0.0 {
            format!(", {rate:.1} requests a second")
        } else {
            String::new()
        };
        lines.push(("duration", format!("{span:.3} s{rate}")));
    } else {
        lines.push(("duration", "not known: no arrivals".to_owned()));
    }
    for (name, spread) in [("gaps", &info.gaps), ("responses", &info.responses)] {
        if let Some(spread) = spread {
            lines.push((name, spread_text(spread)));
        }
    }
    let processes = match info.with_process {
        0 => "not known".to_owned(),
        with => format!("{}, known of {with} requests", info.processes),
    };
    lines.push(("processes", processes));
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 2;
    let mut text = String::new();
    for (name, value) in lines {
        text.push_str(&format!("{name:width$}{value}\n"));
    }
    text.push('\n');
    text.push_str(&table(&sizes(info), context.terminal));
    text.push('\n');
    text.push_str(&table(&devices(info), context.terminal));
    if !info.busiest.is_empty() {
        text.push('\n');
        text.push_str(&table(&busiest(info), context.terminal));
    }
    text
}

fn sizes(info: &TraceInfo) -> Vec<TableColumn> {
    let all: u64 = info.sizes.iter().map(|bin| bin.requests).sum();
    let bins = || info.sizes.iter();
    vec![
        TableColumn::numbers("size up to", bins().map(|bin| bin.up_to.to_string())),
        TableColumn::numbers("requests", bins().map(|bin| bin.requests.to_string())),
        TableColumn::numbers(
            "%",
            bins().map(|bin| format!("{:.1}", 100.0 * bin.requests as f64 / all.max(1) as f64)),
        ),
    ]
}

fn devices(info: &TraceInfo) -> Vec<TableColumn> {
    let name = |device: &headtime_workload::DeviceInfo| {
        device.name.as_ref().map_or_else(
            || device.device.to_string(),
            |name| format!("{} ({name})", device.device),
        )
    };
    let mut columns = vec![TableColumn::words("device", info.devices.iter().map(name))];
    columns.extend(figures(info.devices.iter().map(|device| &device.figures)));
    let ends = info.devices.iter().map(|device| device.end);
    columns.push(TableColumn::numbers(
        "reaches to",
        ends.map(|end| rounded_size(end.get().saturating_mul(512))),
    ));
    columns
}

/// The processes with most requests. Without any name there is no column for names.
fn busiest(info: &TraceInfo) -> Vec<TableColumn> {
    const SHOWN_MAX: usize = 10;
    let rows = || info.busiest.iter().take(SHOWN_MAX);
    let number = |process: &ProcessInfo| process.process.to_string();
    let name = |process: &ProcessInfo| process.name.clone().unwrap_or_default();
    let mut columns = vec![TableColumn::words("process", rows().map(number))];
    if rows().any(|process| process.name.is_some()) {
        columns.push(TableColumn::words("name", rows().map(name)));
    }
    columns.extend(figures(rows().map(|process| &process.figures)));
    columns
}

/// Columns that tables of devices and of processes share.
fn figures<'a>(rows: impl Iterator<Item = &'a Figures> + Clone) -> Vec<TableColumn> {
    fn percent(share: f64) -> String {
        format!("{:.1}", 100.0 * share)
    }
    let each = |show: fn(&Figures) -> String| rows.clone().map(show);
    vec![
        TableColumn::numbers("requests", each(|of| of.requests().to_string())),
        TableColumn::numbers("read %", each(|of| percent(of.read_share()))),
        TableColumn::numbers("sequential %", each(|of| percent(of.sequential_share()))),
        TableColumn::numbers("mean size", each(|of| rounded_size(of.mean_size().0))),
    ]
}

fn spread_text(spread: &Spread) -> String {
    let Spread {
        mean,
        variation,
        min,
        p50,
        p90,
        p99,
        max,
        ..
    } = spread;
    let ms = |span: &Nanos| format!("{:.3}", span.as_millis_f64());
    format!(
        "ms: mean {}, min {}, p50 {}, p90 {}, p99 {}, max {}; deviation/mean {variation:.2}",
        ms(mean),
        ms(min),
        ms(p50),
        ms(p90),
        ms(p99),
        ms(max)
    )
}

/// Formats a size with three or four digits.
fn rounded_size(bytes: u64) -> String {
    let (unit, scale) = match bytes {
        0..10_000 => return format!("{bytes} B"),
        10_000..10_000_000 => ("kB", 1e3),
        10_000_000..10_000_000_000 => ("MB", 1e6),
        _ => ("GB", 1e9),
    };
    let value = bytes as f64 / scale;
    if value < 100.0 {
        format!("{value:.1} {unit}")
    } else {
        format!("{value:.0} {unit}")
    }
}

fn seconds(span: Nanos) -> f64 {
    span.as_secs_f64()
}

/// `trace info` as JSON. Times in ms and s, sizes in bytes, as the names say.
fn json_of(info: &TraceInfo) -> impl Serialize {
    let notes = &info.notes;
    let ms = Nanos::as_millis_f64;
    let spread = |spread: &Spread| {
        object! {
            count: spread.count,
            mean: ms(spread.mean),
            variation: round(spread.variation, 6),
            min: ms(spread.min),
            p50: ms(spread.p50),
            p90: ms(spread.p90),
            p99: ms(spread.p99),
            max: ms(spread.max),
        }
    };
    let sizes = info.sizes.iter();
    let sizes = sizes.map(|bin| object! { up_to_bytes: bin.up_to.0, requests: bin.requests });
    let devices = info.devices.iter().map(|device| {
        object! {
            device: device.device,
            name: device.name.clone(),
            end_bytes: device.end.get().saturating_mul(512),
            #[serde(flatten)]
            figures: figures_json(&device.figures),
        }
    });
    let busiest = info.busiest.iter().map(|process| {
        object! {
            process: process.process,
            name: process.name.clone(),
            #[serde(flatten)]
            figures: figures_json(&process.figures),
        }
    });
    object! {
        file: notes.file.clone(),
        format: notes.of_kinds(|kind| Some(kind.format)),
        compression: notes.of_kinds(|kind| Some(kind.compression)),
        time_unit: notes.of_kinds(|kind| kind.time_unit.map(|note| note.unit)),
        arrival_event: notes.of_kinds(|kind| kind.arrival_event),
        lines: notes.lines,
        lines_ignored: notes.lines_ignored,
        out_of_order: notes.out_of_order,
        zero_length: notes.zero_length,
        unaligned: notes.unaligned,
        unpaired: notes.unpaired,
        failed: notes.failed,
        lost: notes.lost,
        odd_lines: notes.odd.count,
        first_s: info.first.map(Time::as_secs_f64),
        last_s: info.last.map(Time::as_secs_f64),
        total: figures_json(&info.total),
        gap_ms: info.gaps.as_ref().map(spread),
        response_ms: info.responses.as_ref().map(spread),
        processes: info.processes,
        requests_with_process: info.with_process,
        sizes: sizes.collect::<Vec<_>>(),
        devices: devices.collect::<Vec<_>>(),
        busiest_processes: busiest.collect::<Vec<_>>(),
    }
}

fn figures_json(figures: &Figures) -> impl Serialize + use<> {
    object! {
        requests: figures.requests(),
        reads: figures.reads,
        writes: figures.writes,
        flushes: figures.flushes,
        discards: figures.discards,
        read_bytes: figures.read_bytes,
        written_bytes: figures.written_bytes,
        mean_bytes: figures.mean_size().0,
        sequential_share: round(figures.sequential_share(), 6),
        reads_off_4k: figures.reads_off_4k,
        writes_off_4k: figures.writes_off_4k,
    }
}

/// Format and compression, by the name of an output file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OutName {
    /// Format, if the name determines one.
    to: Option<To>,
    /// True if the file is compressed.
    gzip: bool,
}

impl OutName {
    /// Reads the extensions of the name: `x.csv.gz` is compressed CSV.
    fn new(path: &Path) -> Result<OutName, Fault> {
        let ends_in = |path: &Path, ends: &[&str]| {
            let end = path.extension().unwrap_or_default();
            ends.iter().any(|one| end.eq_ignore_ascii_case(one))
        };
        if ends_in(path, &["zst", "zstd", "xz", "bz2", "lz4"]) {
            return Err(Fault::Usage(format!(
                "{}: this compression cannot be written; allowed is .gz, or no compression",
                path.display()
            )));
        }
        let gzip = ends_in(path, &["gz"]);
        let inner = if gzip {
            path.with_extension("")
        } else {
            path.to_owned()
        };
        let to = if ends_in(&inner, &["csv"]) {
            Some(To::Csv)
        } else if ends_in(&inner, &["trace", "disksim", "ascii"]) {
            Some(To::Disksim)
        } else {
            None
        };
        Ok(OutName { to, gzip })
    }

    /// Writes the output of `write`, compressed if the name demands compression.
    fn write<T>(
        self,
        out: &mut Output,
        write: impl FnOnce(&mut dyn Write) -> Result<T, WriteError>,
    ) -> Result<T, WriteError> {
        if !self.gzip {
            return write(out);
        }
        // The compressed file contains no name and no time. So the same trace always gives the same bytes.
        let mut packed = GzEncoder::new(out, Compression::default());
        let written = write(&mut packed)?;
        packed.finish()?;
        Ok(written)
    }
}

pub(super) fn convert(args: &Convert, context: &mut Context<'_>) -> Result<(), Fault> {
    let files = args
        .files
        .split_last()
        .filter(|(_, trace)| !trace.is_empty());
    let (out, trace_files) = files.ok_or_else(|| {
        let problem =
            "the file to write is missing; give the files of the trace, and last the file to write";
        Fault::Usage(problem.into())
    })?;
    let name = OutName::new(out)?;
    let to = args.to.or(name.to).ok_or_else(|| {
        Fault::Usage(format!(
            "{}: no format is known by this name; allowed are names that end in .csv (csv) or .trace, .disksim or \
             .ascii (disksim), perhaps with .gz behind; or say the format (--to csv or --to disksim)",
            out.display()
        ))
    })?;
    let mut output = Output::create(out)?;
    let trace = open(trace_files, &args.reading)?;
    for note in reading_notes(&trace) {
        context.note(&note);
    }
    let write = |out: &mut dyn Write| match to {
        To::Disksim => trace.write_disksim(out),
        To::Csv => trace.write_csv(out),
    };
    let written = name
        .write(&mut output, write)
        .map_err(|error| match error {
            WriteError::Io(error) => Fault::writing(out, &error),
            other => Fault::Input(format!("{}: {other}", trace.notes.file)),
        })?;
    output.finish()?;
    for (count, what) in [
        (written.left_out, "flushes and discards"),
        (written.completions_lost, "completions"),
        (written.processes_lost, "processes"),
        (written.names_lost, "names of processes"),
        (written.flags_lost, "flags (FUA, preflush, sync)"),
    ] {
        if count > 0 {
            let out = out.display();
            context.note(&format!(
                "{out}: the format has no place for {count} {what}"
            ));
        }
    }
    let (requests, out) = (written.requests, out.display());
    context.note(&format!("{out}: {requests} requests written"));
    Ok(())
}

/// Sets the keys of a scenario that name a trace and the way to read it. Returns the trace's name.
pub(super) fn set_trace(table: &mut Table, trace: &[PathBuf], reading: &ReadingOptions) -> String {
    let names = trace.iter().map(|path| match path.file_name() {
        Some(name) if name == "-" => "standard input".to_owned(),
        Some(name) => name.to_string_lossy().into_owned(),
        None => path.display().to_string(),
    });
    let name = names.collect::<Vec<_>>().join(", ");
    let files = trace.iter().map(|path| path.display().to_string());
    set(table, "TRACE", "trace.file", texts("TRACE", files));
    let reading = reading.reading();
    let format = reading.format.map(|format| format.to_string());
    let unit = reading.time_unit.map(|unit| unit.to_string());
    let event = reading.arrival_event.map(|event| event.to_string());
    for (option, key, value) in [
        ("--trace-format", "trace.format", format),
        ("--time-unit", "trace.time_unit", unit),
        ("--arrival-event", "trace.arrival_event", event),
        ("--columns", "trace.columns", reading.columns),
        (
            "--from",
            "trace.from",
            reading.from.map(|from| from.to_string()),
        ),
        (
            "--for",
            "trace.for",
            reading.span.map(|span| span.to_string()),
        ),
    ] {
        if let Some(value) = value {
            set(table, option, key, Value::Text(value));
        }
    }
    if let Some(first) = reading.first {
        set(
            table,
            "--first",
            "trace.first",
            Value::Integer(first as i64),
        );
    }
    if reading.lenient {
        set(table, "--lenient", "trace.lenient", Value::Flag(true));
    }
    name
}

/// A list of texts from an option.
pub(super) fn texts(option: &str, texts: impl Iterator<Item = String>) -> Value {
    let place = Place::Option(option.into());
    let node = |text| Node {
        value: Value::Text(text),
        place: place.clone(),
    };
    Value::List(texts.map(node).collect())
}

pub(super) fn replay(args: ReplayArgs, context: &mut Context<'_>) -> Result<(), Fault> {
    let mut table = Table::default();
    let name = set_trace(&mut table, &args.trace, &args.reading);
    let text = |text: &dyn ToString| Value::Text(text.to_string());
    let list = |option: &str, values: Vec<Value>| {
        let place = Place::Option(option.into());
        let node = |value| Node {
            value,
            place: place.clone(),
        };
        Value::List(values.into_iter().map(node).collect())
    };
    set_schedulers(&mut table, &args.scheduler);
    set_gates(&mut table, &args.gate);
    let seed = Value::Integer(args.seed as i64);
    set(&mut table, "--seed", "seed", seed);
    let firmware = args.firmware.iter().map(|order| text(&order.name()));
    let depths = args
        .depth
        .iter()
        .map(|depth| Value::Integer((*depth).into()));
    let texts = |texts: &[String]| texts.iter().map(|one| text(one)).collect::<Vec<_>>();
    for (option, key, values) in [
        ("--profile", "drive.profile", texts(&args.profile)),
        ("--firmware", "drive.firmware", firmware.collect()),
        ("--depth", "engine.depth", depths.collect()),
        ("--device", "trace.devices", texts(&args.device)),
    ] {
        if !values.is_empty() {
            set(&mut table, option, key, list(option, values));
        }
    }
    set(&mut table, "--fit", "trace.fit", text(&args.fit));
    let pace = if let Some(outstanding) = args.closed {
        let outstanding = Value::Integer(i64::from(outstanding));
        set(&mut table, "--closed", "trace.outstanding", outstanding);
        "closed"
    } else if args.closed_per_process {
        "closed-per-process"
    } else {
        if let Some(speed) = args.speed {
            let value = speed.to_string().parse();
            let value = Value::Float(value.expect("a speed is written as a number"));
            set(&mut table, "--speed", "trace.speed", value);
        }
        "open"
    };
    set(&mut table, "TRACE", "trace.replay", text(&pace));
    let how = match (pace, args.closed, &args.speed) {
        (_, Some(outstanding), _) => format!("{outstanding} outstanding"),
        ("closed-per-process", ..) => "closed per process".to_owned(),
        (_, _, Some(speed)) => format!("open, speed {speed}"),
        _ => "open".to_owned(),
    };
    let title = format!("Replay of {}, {how}", name);
    set(&mut table, "TRACE", "title", Value::Text(one_line(&title)));
    set_all(&mut table, &args.set)?;
    let place = Place::Option("trace replay".into());
    let scenario = Scenario::from_table(&table, place).map_err(Fault::from)?;
    if args.print_scenario {
        return context.print(&scenario.to_portable_toml());
    }
    let files = Files {
        log: args.log.as_deref(),
        ..Files::default()
    };
    compare(scenario, &table, &args.output, files, context)
}

/// Describes the number of requests that begin or end off the bounds of 4 KiB sectors, and the consequence.
fn off_4k(total: &Figures) -> String {
    let (reads, writes) = (total.reads_off_4k, total.writes_off_4k);
    if reads + writes == 0 {
        return "none: all reads and writes begin and end at multiples of it".to_owned();
    }
    let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    let first = match writes {
        0 => "",
        _ => "; a 512e one reads before it writes",
    };
    format!(
        "reads {reads} ({:.1} %), writes {writes} ({:.1} %): a 4Kn drive cannot take them as they are{first}",
        share(reads, total.reads),
        share(writes, total.writes)
    )
}

/// Describes the number of requests of each kind.
fn kinds(total: &Figures) -> String {
    let mut kinds = vec![
        format!("{} reads", total.reads),
        format!("{} writes", total.writes),
    ];
    for (count, what) in [(total.flushes, "flushes"), (total.discards, "discards")] {
        if count > 0 {
            kinds.push(format!("{count} {what}"));
        }
    }
    kinds.join(", ")
}
