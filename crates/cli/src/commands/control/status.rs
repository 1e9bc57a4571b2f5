//! State of a server for people, from the server's JSON.

use headtime_lab::output::{TableColumn, Terminal, table};
use headtime_linux::shown::one_line;
use headtime_units::Bytes;
use serde_json::Value;
use std::fmt::Write as _;

/// Least share of a disk's time, in percent, that is shown.
const SHARE_MIN: f64 = 0.5;

/// Text for people. Returns `None` if the answer is no state that this version knows; the caller prints the JSON then.
pub(super) fn text(json: &str, terminal: Terminal) -> Option<String> {
    let status: Value = serde_json::from_str(json).ok()?;
    let mut text = String::new();
    if let Some(servers) = status["servers"].as_array() {
        let of = |name: &str, cell: &dyn Fn(&Value) -> String| {
            TableColumn::words(name, servers.iter().map(cell))
        };
        let columns = [
            of("server", &|server| word(&server["name"])),
            of("joined", &|server| yes(&server["joined"])),
            of("clock ms", &|server| scaled(&server["offset_s"], 1e3, 3)),
            of("why", &|server| word(&server["why"])),
        ];
        text.push_str(&table(&columns, terminal));
    } else {
        let up = status["uptime_s"].as_f64()?;
        let _ = writeln!(
            text,
            "headtime {}, up {}",
            word(&status["version"]),
            span(up)
        );
        for disk in status["disks"].as_array()? {
            text.push('\n');
            self::disk(&mut text, disk, terminal);
        }
        if let Some(lost) = status["log_messages_dropped"]
            .as_u64()
            .filter(|lost| *lost > 0)
        {
            let _ = writeln!(
                text,
                "\n{lost} messages were dropped: standard error is not read"
            );
        }
    }
    if let Some(programs) = status["programs"].as_array().filter(|all| !all.is_empty()) {
        text.push('\n');
        text.push_str(&table(&of_programs(programs), terminal));
    }
    Some(text)
}

fn disk(text: &mut String, disk: &Value, terminal: Terminal) {
    let name = word(&disk["name"]);
    if disk["up"] == Value::Bool(false) {
        let _ = writeln!(text, "disk {name} does not answer");
        return;
    }
    let size = Bytes(disk["bytes"].as_u64().unwrap_or_default());
    let _ = writeln!(text, "disk {name}: {}, {size}", word(&disk["backend"]));
    match disk["members"].as_array() {
        None => engine(text, "  ", disk),
        Some(members) => {
            for member in members {
                let backend = word(&member["backend"]);
                let _ = writeln!(text, "  disk {}: {backend}", word(&member["name"]));
                engine(text, "    ", member);
            }
        }
    }
    if let Some(failure) = disk["failure"].as_str() {
        let _ = writeln!(
            text,
            "  takes no writes until clear-failure: {}",
            one_line(failure)
        );
    }
    let late = disk["lateness_ms"]["late_share"]
        .as_f64()
        .unwrap_or_default();
    if late > headtime_serve::metrics::LATE_SHARE_MAX {
        let _ = writeln!(
            text,
            "  {:.1} % of completions were more than 0.5 ms late: the machine is too busy for an emulated drive",
            late * 100.0
        );
    }
    if let Some(all) = disk["coordinated"].as_object() {
        let _ = writeln!(
            text,
            "  coordinated: {} streams, {} slices, {} broken off",
            all["streams"], all["slices"], all["broken"]
        );
    }
    if let Some(scrub) = disk["scrub"].as_object() {
        let _ = writeln!(
            text,
            "  scrub {}: headtime scrub SOCKET {name} status",
            scrub.get("state").map_or_else(String::new, word)
        );
    }
    let exports = disk["exports"].as_array().map_or(&[][..], Vec::as_slice);
    for line in table(&of_exports(exports), terminal).lines() {
        let _ = writeln!(text, "  {line}");
    }
}

/// Lines of an engine: scheduler, gate, queue, and shares of the head's time.
fn engine(text: &mut String, indent: &str, engine: &Value) {
    let gate = word(&engine["gate"]);
    let gate = match gate.as_str() {
        "depth" => String::new(),
        gate => format!(", gate {gate}"),
    };
    let _ = writeln!(
        text,
        "{indent}{}{gate}; {} waiting, {} in the drive, {} timeouts",
        word(&engine["scheduler"]),
        engine["waiting"],
        engine["in_flight"],
        engine["timeouts"],
    );
    let own = engine["head_time_s"].as_object();
    let (parts, what) = match own {
        Some(parts) => (Some(parts), "head time"),
        None => (
            engine["head_time_estimated_s"].as_object(),
            "head time, estimated",
        ),
    };
    let Some(parts) = parts else {
        return;
    };
    let all: f64 = parts.values().filter_map(Value::as_f64).sum();
    let shares = parts.iter().filter_map(|(part, time)| {
        let share = time.as_f64()? / all * 100.0;
        (share >= SHARE_MIN).then(|| format!("{part} {share:.0} %"))
    });
    let shares: Vec<String> = shares.collect();
    let _ = writeln!(text, "{indent}{what}: {}", shares.join(", "));
}

fn of_exports(exports: &[Value]) -> Vec<TableColumn> {
    let of = |name: &str, cell: &dyn Fn(&Value) -> String| {
        TableColumn::numbers(name, exports.iter().map(cell))
    };
    let time = |quantile: &'static str| {
        move |export: &Value| scaled(&export["total_ms"][quantile], 1.0, 1)
    };
    let mut columns = vec![
        TableColumn::words("export", exports.iter().map(|export| word(&export["name"]))),
        of("reads", &|export| export["requests"]["read"].to_string()),
        of("writes", &|export| export["requests"]["write"].to_string()),
        of("MB read", &|export| {
            scaled(&export["bytes"]["read"], 1e-6, 1)
        }),
        of("MB written", &|export| {
            scaled(&export["bytes"]["write"], 1e-6, 1)
        }),
        of("p50 ms", &time("p50")),
        of("p99 ms", &time("p99")),
        of("max ms", &time("max")),
        of("under way", &|export| export["unfinished"].to_string()),
        of("errors", &|export| {
            let errors = export["errors"].as_object();
            let errors = errors.map_or(0, |all| all.values().filter_map(Value::as_u64).sum());
            errors.to_string()
        }),
    ];
    if exports.iter().any(|export| export["rate"].is_u64()) {
        columns.push(of("MB/s at most", &|export| {
            scaled(&export["rate"], 1e-6, 1)
        }));
    }
    let expired = |export: &Value| export["expired"].as_u64().unwrap_or_default();
    if exports.iter().any(|export| expired(export) > 0) {
        columns.push(of("expired", &|export| expired(export).to_string()));
    }
    let clients = |export: &Value| {
        let clients = export["clients"].as_object().into_iter().flatten();
        let clients = clients.map(|(name, count)| format!("{} ({count})", one_line(name)));
        clients.collect::<Vec<_>>().join(", ")
    };
    if exports.iter().any(|export| !clients(export).is_empty()) {
        columns.push(TableColumn::words("clients", exports.iter().map(clients)));
    }
    columns
}

pub(super) fn of_programs(programs: &[Value]) -> Vec<TableColumn> {
    let of = |name: &str, cell: &dyn Fn(&Value) -> String| {
        TableColumn::words(name, programs.iter().map(cell))
    };
    vec![
        of("program", &|program| word(&program["name"])),
        of("goal", &|program| word(&program["goal"])),
        of("state", &|program| word(&program["state"])),
        of("left s", &|program| scaled(&program["left_s"], 1.0, 1)),
        of("window ms", &|program| {
            scaled(&program["planned"]["window_ms"], 1.0, 0)
        }),
        of("why", &|program| word(&program["why"])),
    ]
}

/// A word of the server, on one line; empty if absent.
pub(super) fn word(value: &Value) -> String {
    value.as_str().map_or_else(String::new, one_line)
}

fn yes(value: &Value) -> String {
    let is = value.as_bool().unwrap_or_default();
    if is { "yes" } else { "no" }.to_owned()
}

/// A number times `factor`; empty if absent.
pub(super) fn scaled(value: &Value, factor: f64, places: usize) -> String {
    let number = value.as_f64();
    number.map_or_else(String::new, |number| {
        format!("{:.places$}", number * factor)
    })
}

/// Seconds for people.
pub(super) fn span(seconds: f64) -> String {
    let whole = seconds as u64;
    match whole {
        0..60 => format!("{seconds:.1} s"),
        60..3_600 => format!("{} min {} s", whole / 60, whole % 60),
        3_600..86_400 => format!("{} h {} min", whole / 3_600, whole / 60 % 60),
        _ => format!("{} days {} h", whole / 86_400, whole / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_servers_answer_is_no_state() {
        assert_eq!(text("no JSON", Terminal::default()), None);
        assert_eq!(text("{\"disks\": []}", Terminal::default()), None);
    }

    #[test]
    fn spans_have_two_units() {
        let spans = [0.25, 59.9, 61.0, 3_700.0, 100_000.0].map(span);
        assert_eq!(
            spans,
            ["0.2 s", "59.9 s", "1 min 1 s", "1 h 1 min", "1 days 3 h"]
        );
    }
}
