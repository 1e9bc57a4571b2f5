//! The state of a server as JSON.

use crate::goals::ProgramStatus;
use crate::goals::coordinator::ServerStatus;
use crate::metrics::{CLASS_NAMES, Labelled, MemberSnapshot, OPS, Page, Times};
use crate::nbd::Counts;
use crate::scrub::{FoundSectors, PromiseStatus, Promises, ScrubState, ScrubStatus};
use headtime_linux::clock::Wall;
use headtime_units::{MorePercent, Nanos};
use serde_json::{Map, Value, json};

/// Writes the state of a server. A disk that does not answer is listed by its name alone.
pub(super) fn render(page: &Page) -> String {
    let silent = page.silent.iter();
    let silent = silent.map(|name| json!({ "name": name, "up": false }));
    let disks = page.disks.iter();
    let disks = disks.map(|labelled| disk(labelled, page.nbd.as_deref()));
    let disks: Vec<Value> = disks.chain(silent).collect();
    let status = json!({
        "version": page.version,
        "uptime_s": page.uptime.as_secs_f64(),
        "log_messages_dropped": page.messages_dropped,
        "disks": disks,
        "programs": page.programs.as_ref().map(|(programs, _)| goals(programs)),
    });
    format!("{status:#}\n")
}

/// The state of programs with goals.
pub(super) fn goals(programs: &[ProgramStatus]) -> Value {
    let programs = programs.iter().map(|program| {
        let planned = program.planned.map(|planned| {
            json!({
                "lane": planned.lane,
                "bound": planned.bound.0,
                "required": planned.required.0,
                "served": planned.served.0,
                "window_ms": planned.window.as_nanos() as f64 / 1e6,
                "lost_s": planned.lost.as_secs_f64(),
                "left_profile": planned.drift.is_some(),
            })
        });
        json!({
            "name": program.name,
            "exports": program.exports,
            "goal": program.goal.map(|goal| goal.to_string()),
            "state": program.state,
            "why": program.why,
            "left_s": program.left_s,
            "planned": planned,
            "recording": program.recording,
        })
    });
    programs.collect()
}

/// Number of consecutive failed reads from which a scrub's remaining time is unknown.
const FAILING: u32 = 3;

/// The state of a coordinator.
pub(super) fn servers(servers: &[ServerStatus], programs: &[ProgramStatus]) -> Value {
    let servers = servers.iter().map(|server| {
        json!({
            "name": server.name,
            "joined": server.joined,
            "why": server.why,
            "offset_s": server.offset.map(|(nanos, _)| nanos as f64 / 1e9),
            "offset_error_s": server.offset.map(|(_, error)| error.as_secs_f64()),
            "silent_s": server.silent.map(Nanos::as_secs_f64),
            "unseen": server.unseen,
        })
    });
    json!({ "servers": servers.collect::<Vec<_>>(), "programs": goals(programs) })
}

fn disk(labelled: &Labelled, nbd: Option<&Counts>) -> Value {
    let snapshot = &labelled.snapshot;
    let metrics = &snapshot.metrics;
    let exports = labelled.exports.iter().zip(&metrics.exports);
    let exports: Vec<Value> = exports
        .map(|((name, addresses), export)| {
            let bytes = export
                .sectors
                .map(|sectors| sectors * u64::from(labelled.sector_bytes));
            json!({
                "name": name,
                "range": [addresses.on_disk(0), addresses.on_disk(addresses.bytes())],
                "requests": by_op(export.requests),
                "errors": by_op(export.failed),
                "refused": export.refused,
                "expired": export.expired,
                "unfinished": export.unfinished,
                "clients": nbd.map(|counts| counts.certified(name)),
                "rate": export.rate.map(|rate| rate.0),
                "bytes": { "read": bytes[0], "write": bytes[1] },
                "queue_ms": times(&export.queue.read()),
                "device_ms": times(&export.device.read()),
                "total_ms": times(&export.total.read()),
            })
        })
        .collect();
    let lateness = snapshot.in_model_time.then(|| {
        let mut lateness = times(&metrics.lateness.read());
        lateness["late_share"] = json!(metrics.late_share());
        lateness
    });
    let members = labelled.members.iter().zip(&snapshot.members);
    let members: Vec<Value> = members
        .map(|((name, backend), state)| {
            let mut member = device(state);
            member["name"] = json!(name);
            member["backend"] = json!(backend);
            member
        })
        .collect();
    let mut disk = device(&snapshot.whole);
    let own = json!({
        "name": labelled.disk,
        "up": true,
        "backend": labelled.backend,
        "overtaken": by_class(metrics.overtaken.each_ref().map(|of| counts(&of.read()))),
        "bytes": snapshot.capacity.get() * u64::from(labelled.sector_bytes),
        "failed": snapshot.failure.is_some(),
        "failure": snapshot.failure,
        "lateness_ms": lateness,
        "coordinated": snapshot.conducted.map(|all| json!({
            "streams": all.streams,
            "slices": all.slices,
            "broken": all.broken,
            "dedicated_s": all.dedicated.as_secs_f64(),
        })),
        "exports": exports,
        "scrub": labelled.scrub.as_ref().map(|status| scrub(status, labelled.sector_bytes)),
    });
    if let (Value::Object(disk), Value::Object(own)) = (&mut disk, own) {
        disk.extend(own);
    }
    if !members.is_empty() {
        disk["members"] = json!(members);
    }
    disk
}

/// The state of a device and its engine.
fn device(state: &MemberSnapshot) -> Value {
    let head_time = state.head_time.map(|head_time| {
        let parts = head_time.iter();
        let parts = parts.map(|(part, time)| (part.name().to_owned(), json!(time.as_secs_f64())));
        parts.collect::<Map<String, Value>>()
    });
    let estimated = state.head_time_estimated.map(|estimated| {
        let parts = estimated.iter();
        let parts = parts.map(|(part, time)| (part.name().to_owned(), json!(time.as_secs_f64())));
        parts.collect::<Map<String, Value>>()
    });
    let predictions = state.predictions.map(|all| {
        let [near, off, far] = all.within;
        json!({
            "commands": all.commands,
            "within_50us": near,
            "within_150us": off,
            "within_300us": far,
            "turn_late": all.turns_late,
            "destaging": all.destaging,
            "turn_early": all.turns_early,
            "hits": all.hits,
            "elsewhere": all.elsewhere,
            "after_surprise": all.after_surprise,
        })
    });
    json!({
        "scheduler": state.scheduler,
        "gate": state.gate,
        "gating": {
            "plugged_s": state.gating.plugged.as_secs_f64(),
            "refused": by_class(state.gating.refused),
            "starved": by_class(state.gating.starved),
            "starved_s": by_class(state.gating.starved_for.map(Nanos::as_secs_f64)),
        },
        "in_flight": state.in_flight,
        "waiting": state.waiting,
        "abandoned": state.abandoned,
        "errors": state.errors,
        "timeouts": state.timeouts,
        "engine": {
            "arrived": state.engine.arrived,
            "finished": state.engine.finished,
            "issued": state.engine.issued,
            "merged": state.engine.merged_back + state.engine.merged_front + state.engine.fused,
            "held": state.engine.held_overlap + state.engine.held_flush,
            "idled": state.engine.idled,
            "queued_max": state.engine.queued_max,
        },
        "waits": {
            "streams_established": state.waits.streams_established,
            "streams": state.waits.streams,
            "waits": state.waits.waits,
            "waits_won": state.waits.waits_won,
            "waits_lost": state.waits.waits_lost,
        },
        "head_time_s": head_time,
        "head_time_estimated_s": estimated,
        "predictions": predictions,
    })
}

/// The progress of a scrub. The range is in bytes: the first byte, and the end.
pub(super) fn scrub(status: &ScrubStatus, sector_bytes: u32) -> Value {
    let bytes = |sectors: u64| sectors * u64::from(sector_bytes);
    let block = bytes(status.block.get());
    let list = |sectors: &FoundSectors| {
        let extents = sectors.extents().into_iter();
        let extents =
            extents.map(|extent| json!({ "lba": extent.start.get(), "sectors": extent.len.get() }));
        extents.collect::<Vec<_>>()
    };
    let why = match &status.state {
        ScrubState::Held(why) => Some(why),
        _ => None,
    };
    json!({
        "state": status.state.name(),
        "why": why,
        "range": [bytes(status.range.start.get()), bytes(status.range.end().get())],
        "block": block,
        "blocks": status.blocks,
        "left": status.left,
        "share": status.share(),
        "bytes_per_s": status.pace.blocks_per_s().map(|rate| (rate * block as f64).round()),
        // While all reads fail, the remaining time is unknown.
        "remaining_s": status.remaining().filter(|_| status.failing < FAILING).map(Nanos::as_secs_f64),
        "read": {
            "in_gaps": status.in_gaps,
            "in_idle_time": status.in_idle_time,
            "by_others": status.by_others,
            "outright": status.outright,
        },
        "errors": status.errors,
        "failing": status.failing,
        "unreadable_sectors": status.unreadable.sectors(),
        "unreadable": list(&status.unreadable),
        "changed_sectors": status.changed.sectors(),
        "changed": list(&status.changed),
        "damaged_pages": status.damage.pages,
        "damaged": list(&status.damage.sectors),
        "hashes": status.hashes.as_ref().map(|hashes| json!({
            "file": hashes.file,
            "compared": hashes.compared,
            "why_not": hashes.why_not,
        })),
        "copy": status.copy.as_ref().map(|copy| json!({
            "file": copy.file,
            "bytes": copy.part.map(|(start, end)| [start, end]),
            "again": copy.again,
            "why_anew": copy.why_anew,
            "settled": copy.is_settled,
        })),
        "gaps": status.gaps.text(),
        "idle_ms": status.idle.map(|idle| idle.as_nanos() as f64 / 1e6),
        "kept_in": status.kept,
        "promise": status.promise.as_ref().map(promise),
    })
}

/// State of a scrub's promises. Dates are in seconds since 1970.
fn promise(status: &PromiseStatus) -> Value {
    let Promises { date, p99 } = status.promises;
    let waits = &status.waits;
    let millis = |span: Nanos| (waits.requests > 0).then(|| span.as_millis_f64());
    json!({
        "verdict": status.verdict.name(),
        "says": status.verdict.words(),
        "since": status.since.as_secs_f64(),
        "finish_by": date.map(|date| date.at().as_secs_f64()),
        "finish_within_s": date.map(|date| date.within.as_secs_f64()),
        "forecast_end": status.ends.map(Wall::as_secs_f64),
        "short_queue": status.short_queue,
        "p99_percent": p99.map(MorePercent::percent),
        "requests": waits.requests,
        "p99_ms": millis(waits.p99),
        "p99_without_ms": millis(waits.p99_without),
    })
}

fn by_op(counts: [u64; 4]) -> Map<String, Value> {
    let ops = OPS.into_iter().zip(counts);
    ops.map(|((_, op), count)| (op.to_owned(), json!(count)))
        .collect()
}

fn by_class<T: Into<Value>>(values: [T; CLASS_NAMES.len()]) -> Map<String, Value> {
    let classes = CLASS_NAMES.into_iter().zip(values);
    classes
        .map(|(class, value)| (class.to_owned(), value.into()))
        .collect()
}

/// Times in milliseconds.
fn times(times: &Times) -> Value {
    distribution(times, times.mean().as_nanos() as f64 / 1e6, |time| {
        json!(time.as_nanos() as f64 / 1e6)
    })
}

fn counts(counts: &Times) -> Value {
    let mean = counts.sum().as_nanos() as f64 / counts.len().max(1) as f64;
    distribution(counts, mean, |count| json!(count.as_nanos()))
}

fn distribution(times: &Times, mean: f64, shown: fn(Nanos) -> Value) -> Value {
    json!({
        "count": times.len(),
        "mean": mean,
        "p50": shown(times.quantile(0.5)),
        "p90": shown(times.quantile(0.9)),
        "p95": shown(times.quantile(0.95)),
        "p99": shown(times.quantile(0.99)),
        "p999": shown(times.quantile(0.999)),
        "max": shown(times.max()),
    })
}
