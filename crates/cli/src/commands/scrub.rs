//! `headtime scrub`

mod promises;

use super::context::Context;
use super::control::{ask_server, disk_target};
use crate::args::{FinishWithin, P99More, Scrub, ScrubVerb, TextFormat};
use headtime_lab::fault::Fault;
use headtime_linux::shown::{PathShown as _, one_line};
use headtime_units::{Bytes, Nanos};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// Time between two queries of the progress.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Largest number of extents of unreadable sectors in a table. JSON lists all.
const LISTED_EXTENTS_MAX: usize = 1000;

pub(super) fn scrub(args: &Scrub, context: &mut Context<'_>) -> Result<(), Fault> {
    let target = disk_target(&args.disk, "scrub")?;
    let options = options(args)?;
    if args.verb != ScrubVerb::Begin && (!options.is_empty() || args.no_wait) {
        let problem = "--range, --block, --idle, --hash, --copy, --finish-within, --p99 and --no-wait are for a scrub that begins";
        return Err(Fault::Usage(problem.to_owned()));
    }
    let told = |verb: &str| ask_server(&args.socket, "POST", &format!("{target}/{verb}"), "");
    let answer = match args.verb {
        ScrubVerb::Begin => {
            let body = Value::Object(options).to_string();
            ask_server(&args.socket, "POST", &target, &body)?
        }
        ScrubVerb::Status => ask_server(&args.socket, "GET", &target, "")?,
        ScrubVerb::Pause => told("pause")?,
        ScrubVerb::Resume => told("resume")?,
        ScrubVerb::Stop => told("stop")?,
    };
    let mut status = parse(&answer)?;
    match args.verb {
        ScrubVerb::Begin => {
            let gaps = status["gaps"].as_str().unwrap_or_default();
            if gaps != "used" && status["state"] != "done" {
                context.note(&format!("gaps are {gaps}"));
            }
            if status["kept_in"].is_null() {
                context.note(
                    "its progress is not kept when the server ends; scrub = \"DIRECTORY\" in the configuration of the disk says where to",
                );
            }
            if let Some(said) = promises::said(&status) {
                context.note(&said);
            }
            if args.no_wait {
                return Ok(());
            }
            status = follow(args, &target, status, context)?;
            context.print(&shown(args, &status))?;
            ended(&args.disk, &status)
        }
        ScrubVerb::Status => {
            context.print(&shown(args, &status))?;
            well_so_far(&args.disk, &status)
        }
        ScrubVerb::Pause | ScrubVerb::Resume | ScrubVerb::Stop => Ok(()),
    }
}

/// Options to send to the server.
fn options(args: &Scrub) -> Result<Map<String, Value>, Fault> {
    let mut options = Map::new();
    if let Some(range) = args.range {
        options.insert("range".to_owned(), json!([range.first, range.end]));
    }
    if let Some(Bytes(block)) = args.block {
        options.insert("block".to_owned(), json!(block));
    }
    if let Some(idle) = args.idle {
        let span = idle.0.map(|span| span.as_nanos() as f64 / 1e6);
        options.insert("idle_ms".to_owned(), json!(span));
    }
    if let Some(FinishWithin(span)) = args.finish_within {
        let span = span.map(|span| span.to_string());
        options.insert("finish_within".to_owned(), json!(span));
    }
    if let Some(P99More(more)) = args.p99 {
        let more = more.map(|more| more.to_string());
        options.insert("p99".to_owned(), json!(more));
    }
    for (key, file) in [("hash", &args.hash), ("copy", &args.copy)] {
        if let Some(file) = file {
            options.insert(key.to_owned(), json!(path_of(key, file)?));
        }
    }
    Ok(options)
}

/// Path of a file in a form that a server in another directory understands.
fn path_of(key: &str, file: &Path) -> Result<String, Fault> {
    let path = std::path::absolute(file);
    let path = path.map_err(|error| Fault::File(format!("{}: {error}", file.shown())))?;
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Fault::Usage(format!("--{key}: {}: not UTF-8", path.shown())))
}

fn parse(answer: &str) -> Result<Value, Fault> {
    let problem = |error| Fault::File(format!("the server's answer: {error}"));
    serde_json::from_str(answer).map_err(problem)
}

/// Waits until the scrub has stopped and will not continue by itself.
#[allow(
    clippy::disallowed_methods,
    reason = "it waits for a server in real time"
)]
fn follow(
    args: &Scrub,
    target: &str,
    mut status: Value,
    context: &mut Context<'_>,
) -> Result<Value, Fault> {
    let bar = match context.progress {
        true => ProgressBar::new(1000),
        false => ProgressBar::hidden(),
    };
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {msg}") {
        bar.set_style(style);
    }
    while matches!(status["state"].as_str(), Some("running" | "paused")) {
        bar.set_position((status["share"].as_f64().unwrap_or(0.0) * 1000.0) as u64);
        bar.set_message(progress(&status));
        std::thread::sleep(LOOK_EVERY);
        let before = status["promise"]["verdict"].take();
        status = parse(&ask_server(&args.socket, "GET", target, "")?)?;
        if status["promise"]["verdict"] != before
            && let Some(said) = promises::said(&status)
        {
            bar.suspend(|| context.note(&said));
        }
    }
    bar.finish_and_clear();
    Ok(status)
}

/// Progress of the scrub, in a line.
fn progress(status: &Value) -> String {
    let percent = status["share"].as_f64().unwrap_or(0.0) * 100.0;
    let mut text = format!("{percent:.2} %");
    if status["state"] != "running" {
        let _ = write!(text, ", {}", status["state"].as_str().unwrap_or_default());
        return text;
    }
    if let Some(rate) = status["bytes_per_s"].as_f64() {
        let _ = write!(text, ", {:.1} MB/s", rate / 1e6);
    }
    let failing = status["failing"].as_u64().unwrap_or(0);
    match status["remaining_s"].as_f64() {
        None if failing >= 3 => {
            let _ = write!(text, ", the last {failing} reads failed");
        }
        Some(seconds) => {
            let _ = write!(text, ", {} to go", span(seconds));
        }
        None => text.push_str(", how long it takes is not known yet"),
    }
    if let sectors @ 1.. = unreadable(status) {
        let _ = write!(text, ", {} cannot be read", sectors_of(sectors));
    }
    text
}

/// Formats a span of time in its two largest units.
fn span(seconds: f64) -> String {
    let seconds = seconds.ceil() as u64;
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {seconds} s"),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// Number of sectors, in words.
fn sectors_of(count: u64) -> String {
    match count {
        1 => "1 sector".to_owned(),
        _ => format!("{count} sectors"),
    }
}

fn unreadable(status: &Value) -> u64 {
    status["unreadable_sectors"].as_u64().unwrap_or(0)
}

fn changed(status: &Value) -> u64 {
    status["changed_sectors"].as_u64().unwrap_or(0)
}

fn shown(args: &Scrub, status: &Value) -> String {
    match args.format {
        TextFormat::Json => format!("{status:#}\n"),
        TextFormat::Table => table(&args.disk, status),
    }
}

fn table(disk: &str, status: &Value) -> String {
    if status.is_null() {
        return format!("disk {disk}: no scrub so far\n");
    }
    if let Some(said) = obstacle(disk, status) {
        return format!("{said}\n");
    }
    let text = |key: &str| status[key].as_str().unwrap_or_default().to_owned();
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let bytes = |value: &Value| Bytes(number(value));
    let mut rows = vec![("state", text("state"))];
    if status["why"].is_string() {
        rows.push(("because", text("why")));
    }
    let range = &status["range"];
    rows.push((
        "range",
        format!("{}-{}", bytes(&range[0]), bytes(&range[1])),
    ));
    rows.push((
        "blocks",
        format!(
            "{} of {}, {} left",
            number(&status["blocks"]),
            bytes(&status["block"]),
            number(&status["left"])
        ),
    ));
    rows.push(("progress", progress(status)));
    let copied_to = status["copy"]["file"].as_str();
    let read = &status["read"];
    rows.push((
        "read",
        format!(
            "{} blocks in gaps, {} in idle time, {} by others{}, since the server started",
            number(&read["in_gaps"]),
            number(&read["in_idle_time"]),
            number(&read["by_others"]),
            match number(&read["outright"]) {
                blocks @ 1.. if copied_to.is_none() => format!(", {blocks} outright"),
                _ => String::new(),
            }
        ),
    ));
    rows.push(("gaps", text("gaps")));
    let idle = status["idle_ms"].as_f64();
    let idle = idle.map(|millis| Nanos::from_nanos((millis * 1e6) as u64));
    rows.push((
        "idle time",
        idle.map_or("not used".to_owned(), |idle| format!("used after {idle}")),
    ));
    rows.extend(promises::rows(status));
    let kept = status["kept_in"].as_str();
    rows.push(("kept in", kept.unwrap_or("nothing").to_owned()));
    if let errors @ 1.. = number(&status["errors"]) {
        rows.push((
            "errors",
            match number(&status["failing"]) {
                0..3 => format!("{errors} reads failed and were tried again"),
                row => format!(
                    "{errors} reads failed and are tried again, the last {row} in a row: the disk, or its file, does not \
                     have what it should; the server's messages say more"
                ),
            },
        ));
    }
    if let Some(file) = status["hashes"]["file"].as_str() {
        let compared = number(&status["hashes"]["compared"]);
        let mut text = format!("{compared} blocks were the same or are named below; {file}");
        if let Some(why) = status["hashes"]["why_not"].as_str() {
            text = format!(
                "nothing hashed before counts: {why}; this scrub hashes all, and the next one compares; {file}"
            );
        }
        rows.push(("compared", text));
    }
    let copy = &status["copy"];
    if let Some(file) = copied_to {
        rows.push(("copied", copied(status, file)));
        let again = number(&copy["again"]);
        let outright = number(&read["outright"]);
        rows.push((
            "again",
            format!("{again} blocks were wanted again by writes; {outright} were read outright at the end"),
        ));
    }
    if let Some(why) = copy["why_anew"].as_str() {
        rows.push((
            "anew",
            format!("what was copied before does not count: {why}"),
        ));
    }
    let mut out = format!("disk {disk}\n");
    for (key, value) in rows {
        // Some values contain names of files.
        let _ = writeln!(out, "  {key:<11} {}", one_line(&value));
    }
    let mut list = |key: &str, what: String| {
        let _ = writeln!(out, "  {key:<11} {what}");
        let extents = status[key].as_array();
        let extents = extents.map_or(&[][..], Vec::as_slice);
        for extent in extents.iter().take(LISTED_EXTENTS_MAX) {
            let (lba, sectors) = (number(&extent["lba"]), number(&extent["sectors"]));
            let _ = writeln!(out, "    lba {lba}, {}", sectors_of(sectors));
        }
        if let more @ 1.. = extents.len().saturating_sub(LISTED_EXTENTS_MAX) {
            let _ = writeln!(out, "    and {more} more; see --format json");
        }
    };
    list("unreadable", sectors_of(unreadable(status)));
    if let sectors @ 1.. = changed(status) {
        list("changed", sectors_of(sectors));
    }
    if let pages @ 1.. = number(&status["damaged_pages"]) {
        let pages = match pages {
            1 => "1 page or line".to_owned(),
            _ => format!("{pages} pages or lines"),
        };
        let what = match status["damaged"]
            .as_array()
            .is_some_and(|all| !all.is_empty())
        {
            true => "state of these sectors was damaged; they are read again",
            false => "what they said does not count",
        };
        list(
            "damaged",
            format!("{pages} of the server's own files: {what}"),
        );
    }
    out
}

/// State of the file to which a disk is copied, in words.
fn copied(status: &Value, file: &str) -> String {
    let bytes = &status["copy"]["bytes"];
    let what = match (bytes[0].as_u64(), bytes[1].as_u64()) {
        (Some(start), Some(end)) => format!("{}-{} of the disk", Bytes(start), Bytes(end)),
        _ => "the disk".to_owned(),
    };
    match status["state"].as_str() {
        Some("done") => format!("{file} is {what} as it was at one moment of the copy's end"),
        Some("stopped") => format!("{file} is no image of {what}"),
        _ if status["copy"]["settled"] == true => {
            format!("{file} is being made durable, and is no image of {what} yet")
        }
        _ => format!("{file} is no image of {what} yet"),
    }
}

/// Returns the reason why an earlier server's scrub does not continue, if there is one.
fn obstacle(disk: &str, status: &Value) -> Option<String> {
    let why = status["why"]
        .as_str()
        .filter(|_| status["state"] == "none")?;
    let why = one_line(why);
    Some(format!(
        "disk {disk}: the scrub of an earlier server does not go on: {why}"
    ))
}

/// Fails if sectors cannot be read or have changed, or if the scrub is held up.
fn well_so_far(disk: &str, status: &Value) -> Result<(), Fault> {
    match (obstacle(disk, status), status["state"].as_str()) {
        (Some(said), _) => Err(Fault::Check(said)),
        (_, Some("held")) => ended(disk, status),
        _ => all_well(disk, status),
    }
}

/// Fails if sectors cannot be read or have changed, or if a promise was broken.
fn all_well(disk: &str, status: &Value) -> Result<(), Fault> {
    let problem = match (unreadable(status), changed(status)) {
        (0, 0) => match promises::broken(status) {
            None => return Ok(()),
            Some(said) => said,
        },
        (unreadable, 0) => format!("{} cannot be read", sectors_of(unreadable)),
        (0, 1) => "1 sector has changed, though nobody has written to it".to_owned(),
        (0, changed) => format!(
            "{} have changed, though nobody has written to them",
            sectors_of(changed)
        ),
        (unreadable, changed) => format!(
            "{} cannot be read, and {changed} {} changed, though nobody has written there",
            sectors_of(unreadable),
            if changed == 1 { "has" } else { "have" }
        ),
    };
    Err(Fault::Check(format!("disk {disk}: {problem}")))
}

/// Fails unless the scrub has ended and found no problem.
fn ended(disk: &str, status: &Value) -> Result<(), Fault> {
    match status["state"].as_str() {
        Some("done") => all_well(disk, status),
        Some("held") => {
            let why = status["why"].as_str().unwrap_or_default();
            let problem = format!("disk {disk}: the scrub is held up: {why}");
            Err(Fault::Check(problem))
        }
        _ => Err(Fault::Check(format!("disk {disk}: the scrub was stopped"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_as_long_as_they_are() {
        let shown = [0.1, 59.0, 61.0, 3_600.0, 90_000.0].map(span);
        assert_eq!(shown, ["1 s", "59 s", "1 min 1 s", "1 h 0 min", "1 d 1 h"]);
    }

    #[test]
    fn who_waited_learns_whether_all_could_be_read() {
        let both = |state: &str, sectors: u64, changed: u64| {
            let status = json!({
                "state": state,
                "unreadable_sectors": sectors,
                "changed_sectors": changed,
                "why": "x: full",
            });
            match ended("d", &status) {
                Ok(()) => "fine".to_owned(),
                Err(fault) => fault.to_string(),
            }
        };
        let of = |state, sectors| both(state, sectors, 0);
        let text = "disk d: 2 sectors have changed, though nobody has written to them";
        assert_eq!(both("done", 0, 2), text);
        let text = "disk d: 1 sector has changed, though nobody has written to it";
        assert_eq!(both("done", 0, 1), text);
        assert!(both("done", 1, 2).contains("1 sector cannot be read, and 2 have changed"));
        assert!(both("done", 2, 1).contains("2 sectors cannot be read, and 1 has changed"));
        assert_eq!(of("done", 0), "fine");
        assert_eq!(of("done", 3), "disk d: 3 sectors cannot be read");
        assert_eq!(of("done", 1), "disk d: 1 sector cannot be read");
        assert_eq!(of("stopped", 0), "disk d: the scrub was stopped");
        assert!(of("held", 0).contains("x: full"));
    }
}
