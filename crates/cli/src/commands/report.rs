//! `headtime report`

use super::context::Context;
use super::sim::{open, set, set_all, text as text_of};
use super::trace::{open as open_trace, record, set_trace, texts};
use crate::advice::{Device, page, text};
use crate::args::{ReadingOptions, Record, Report, ReportFormat};
use crate::progress::progress;
use headtime_config::{Place, Table, Value};
use headtime_lab::advice::{DiskSetting, Mix, Question, advise, today};
use headtime_lab::execute::With;
use headtime_lab::fault::Fault;
use headtime_lab::files::{Output, is_special};
use headtime_lab::fio::{self, MeasuredJob};
use headtime_lab::output::json_text;
use headtime_lab::scenario::{RoleSpec, Scenario};
use headtime_lab::stock::Stock;
use headtime_linux::clock::Clock;
use headtime_linux::shown::PathShown as _;
use headtime_record::Target;
use headtime_units::Bytes;
use headtime_workload::ProcessInfo;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// Buffer of the kernel for each processor during a recording, as for `trace record`.
const BUFFER: Bytes = Bytes(8 << 20);
/// Requests of a trace that are replayed if no number is given.
const REQUESTS_DEFAULT: u64 = 50_000;
/// Most roles that are made by the names of processes.
const ROLES: usize = 5;
/// Setting that is assumed if none is known: Linux's for a SATA disk.
const TODAY_SCHEDULER: &str = "mq-deadline@32";

pub(super) fn report(args: Report, context: &mut Context<'_>) -> Result<(), Fault> {
    // The file is opened first, since a long answer that cannot be written is wasted.
    let mut page_file = args.out.as_deref().map(page_file).transpose()?;
    let device = device(&args)?;
    if args.profile.is_none() && (device.is_some() || args.like.is_some()) {
        return Err(no_drive());
    }
    // A wrong setting is an error before a recording of minutes.
    let of_device = match (&args.today, &device) {
        (None, Some((_, device))) => device.today()?,
        _ => None,
    };
    let is_assumed = args.today.is_none() && of_device.is_none();
    let Load {
        mut table,
        place,
        measured,
    } = match &device {
        Some((target, _)) => Load::of(recorded(&args, target, context)?),
        None => load(&args, context)?,
    };
    let device = device.map(|(_, device)| device);
    if let Some(profile) = &args.profile {
        set(
            &mut table,
            "--profile",
            "drive.profile",
            Value::Text(profile.clone()),
        );
    }
    if table.at("drive.profile").is_none() {
        return Err(no_drive());
    }
    if let Some(seed) = args.seed {
        set(&mut table, "--seed", "seed", Value::Integer(seed as i64));
    }
    set(
        &mut table,
        "report",
        "schedulers",
        Value::Text("noop".to_owned()),
    );
    set_all(&mut table, &args.set)?;
    let load = Scenario::from_table(&table, place).map_err(Fault::from)?;
    let now = match args.today.or(of_device) {
        Some(today) => today,
        None => today(TODAY_SCHEDULER)?,
    };
    let device = device.unwrap_or_default();
    if is_assumed {
        context.note(&format!(
            "today's setting is taken as {TODAY_SCHEDULER}; --today names another"
        ));
    }
    // A file is named by its whole path, so that a server anywhere finds it.
    let belief = load.drives[0].profile.clone();
    let belief = match Path::new(&belief).exists() {
        true => std::path::absolute(&belief).map_or(belief, |path| path.display().to_string()),
        false => belief,
    };
    let now = DiskSetting {
        read_ahead: DiskSetting::read_ahead_of(&load),
        ..now
    };
    let question = Question {
        load,
        today: now,
        seeds: args.seeds,
        jobs: args.jobs,
    };
    let stock = Stock::default();
    let progress = progress(context.progress);
    let with = With {
        stock: &stock,
        progress: &progress,
        stop: None,
    };
    let clock = Clock::start();
    let advice = advise(&question, with)?;
    for note in &advice.notes {
        context.note(note);
    }
    if context.progress {
        let seconds = clock.now().as_secs_f64();
        context.note(&format!("answered in {seconds:.1} s"));
    }
    let answer = match args.format {
        ReportFormat::Text => text(&advice, &measured, &device, context.terminal),
        ReportFormat::Json => json_text(&advice),
    };
    context.print(&answer)?;
    if let Some(file) = &mut page_file {
        let html = page(&advice, &measured, &device, &belief);
        let written = file.write_all(html.as_bytes());
        written.map_err(|error| Fault::writing(file.path(), &error))?;
    }
    page_file.map_or(Ok(()), Output::finish)
}

fn no_drive() -> Fault {
    let problem = "no drive is given; give --profile NAME|FILE, or its size and speed, as in --profile 18TB-7200";
    Fault::Usage(problem.to_owned())
}

/// The block device to record, if the load is one.
fn device(args: &Report) -> Result<Option<(Target, Device)>, Fault> {
    let [path] = &args.load[..] else {
        return Ok(None);
    };
    let is_device = fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
    if !is_device {
        return Ok(None);
    }
    let target = Target::new(path).map_err(|error| Fault::File(error.to_string()))?;
    let device = Device::read(target.disk(), target.numbers());
    Ok(Some((target, device)))
}

/// Records a device, and reads the recording as a load.
fn recorded(
    args: &Report,
    target: &Target,
    context: &mut Context<'_>,
) -> Result<(Table, Place), Fault> {
    let span = args.reading.span.ok_or_else(|| {
        Fault::Usage(format!(
            "{}: say how long to record the device, as in --for 60s",
            target.path()
        ))
    })?;
    let only_span = ReadingOptions {
        span: args.reading.span,
        ..ReadingOptions::default()
    };
    if args.reading != only_span {
        let problem = "options for reading a trace are not for a device, which is recorded; leave them out but --for";
        return Err(Fault::Usage(format!("{}: {problem}", target.path())));
    }
    let out = match args.out.as_ref().filter(|page| !is_special(page)) {
        Some(page) => page.with_extension("csv.gz"),
        None => PathBuf::from(format!("headtime-{}.csv.gz", target.disk())),
    };
    let recording = Record {
        device: args.load[0].clone(),
        out: out.clone(),
        span: Some(span),
        buffer: BUFFER,
    };
    record(&recording, context)?;
    trace(&[out], args, &ReadingOptions::default(), context)
}

/// Starts the file of a page.
fn page_file(path: &Path) -> Result<Output, Fault> {
    let is_page = path
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("html") || end.eq_ignore_ascii_case("htm"));
    if !is_page && !is_special(path) {
        return Err(Fault::Usage(format!(
            "--out {}: a report is HTML; allowed is a name that ends in .html",
            path.shown()
        )));
    }
    Output::create(path)
}

/// A load: the table of a scenario, its place, and what fio measured of the load.
struct Load {
    table: Table,
    place: Place,
    measured: Vec<MeasuredJob>,
}

impl Load {
    fn of((table, place): (Table, Place)) -> Load {
        Load {
            table,
            place,
            measured: Vec::new(),
        }
    }
}

/// Reads the load.
fn load(args: &Report, context: &mut Context<'_>) -> Result<Load, Fault> {
    let end = match &args.load[..] {
        [path] => path
            .extension()
            .map(|end| end.to_string_lossy().to_ascii_lowercase()),
        _ => None,
    };
    let kind = end.as_deref().unwrap_or_default();
    let is_trace = args.like.is_none() && !["toml", "fio", "json"].contains(&kind);
    if !is_trace && (!args.role.is_empty() || args.reading != ReadingOptions::default()) {
        let problem = "--role and the options for reading are for traces and devices; other loads have names, classes and lengths of their own";
        return Err(Fault::Usage(problem.to_owned()));
    }
    if let Some(name) = &args.like {
        let mix = Mix::find(name).expect("the command line allows only mixes that exist");
        return Ok(Load::of(mix.table()));
    }
    let path = &args.load[0];
    let name = path.display().to_string();
    match kind {
        "toml" => open(path).map(Load::of),
        "fio" => job(&name, &text_of(path)?, context).map(Load::of),
        "json" => {
            let wrong = |problem| Fault::Input(format!("{name}: {problem}"));
            let (text, measured) = fio::job(&text_of(path)?).map_err(wrong)?;
            Ok(Load {
                measured,
                ..Load::of(job(&name, &text, context)?)
            })
        }
        _ => trace(&args.load, args, &args.reading, context).map(Load::of),
    }
}

/// Reads a job file of fio.
fn job(name: &str, text: &str, context: &mut Context<'_>) -> Result<(Table, Place), Fault> {
    let (mut table, notes) = fio::table(name, text).map_err(Fault::from)?;
    for note in notes {
        context.note(&note);
    }
    // The drive of a job file's scenario is only a default.
    let _ = table.take("drive");
    Ok((table, Place::line(name, 1)))
}

/// Reads a trace as a table. Each process goes on after its think time, if the trace knows processes and completions.
fn trace(
    files: &[PathBuf],
    args: &Report,
    reading: &ReadingOptions,
    context: &mut Context<'_>,
) -> Result<(Table, Place), Fault> {
    let mut table = Table::default();
    let name = set_trace(&mut table, files, reading);
    let info = open_trace(files, reading)?.info();
    let total = info.total.requests();
    let completed = info.responses.as_ref().map_or(0, |spread| spread.count);
    let is_closed = completed == total && info.with_process == total;
    let pace = match is_closed {
        true => "closed-per-process",
        false => "open",
    };
    if !is_closed {
        context.note(
            "requests come at their recorded times, since the trace lacks processes or completions",
        );
    }
    set(
        &mut table,
        "TRACE",
        "trace.replay",
        Value::Text(pace.to_owned()),
    );
    set(
        &mut table,
        "TRACE",
        "trace.fit",
        Value::Text("wrap".to_owned()),
    );
    if total > REQUESTS_DEFAULT && reading.first.is_none() {
        context.note(&format!(
            "the first {REQUESTS_DEFAULT} of {total} requests are replayed; --first takes another number"
        ));
        set(
            &mut table,
            "TRACE",
            "trace.first",
            Value::Integer(REQUESTS_DEFAULT as i64),
        );
    }
    let busiest = info.devices.iter().max_by_key(|one| one.figures.requests());
    if let Some(busiest) = busiest.filter(|_| info.devices.len() > 1) {
        let device = busiest.device.to_string();
        context.note(&format!(
            "{} of {total} requests are for device {}; only these are replayed",
            busiest.figures.requests(),
            busiest.name.as_ref().unwrap_or(&device)
        ));
        set(&mut table, "TRACE", "trace.devices", Value::Text(device));
    }
    let roles = match args.role.is_empty() {
        true => roles_by_name(&info.busiest),
        false => args.role.clone(),
    };
    if !roles.is_empty() {
        let roles = texts("--role", roles.into_iter());
        set(&mut table, "--role", "trace.roles", roles);
    }
    set(
        &mut table,
        "TRACE",
        "title",
        Value::Text(headtime_linux::shown::one_line(&name).to_string()),
    );
    Ok((table, Place::Option("report".into())))
}

/// A role for each of the names with most requests.
fn roles_by_name(busiest: &[ProcessInfo]) -> Vec<String> {
    // By name: requests, and numbers of processes.
    let mut names: BTreeMap<String, (u64, Vec<String>)> = BTreeMap::new();
    for process in busiest {
        if let Some(name) = &process.name {
            // These letters mean something in the text of a role.
            let name = name.replace([':', '=', ','], "-");
            let (requests, numbers) = names.entry(name).or_default();
            *requests += process.figures.requests();
            numbers.push(process.process.to_string());
        }
    }
    let roles = names.into_iter();
    let roles = roles
        .map(|(name, (requests, numbers))| (requests, format!("{name}={}", numbers.join(","))));
    let mut roles: Vec<(u64, String)> = roles
        .filter(|(_, role)| role.parse::<RoleSpec>().is_ok())
        .collect();
    roles.sort_by(|(a, _), (b, _)| b.cmp(a));
    roles
        .into_iter()
        .take(ROLES)
        .map(|(_, role)| role)
        .collect()
}
