//! The tables of a state, with rates since the state before.

use super::super::status::{of_programs, scaled, span, word};
use crate::args::SortBy;
use headtime_lab::output::{TableColumn, Terminal, table};
use headtime_linux::shown::one_line;
use serde_json::Value;
use std::cmp::Reverse;
use std::fmt::Write as _;

/// A state of a server, and the state before.
pub(super) struct Figures<'a> {
    now: &'a Value,
    before: Option<&'a Value>,
    /// Time between the states. Rates are missing if no time has passed, or the server is another one.
    seconds: Option<f64>,
}

/// A part of a state, and the same part before.
#[derive(Clone, Copy)]
pub(super) struct Figure<'a> {
    now: &'a Value,
    before: Option<&'a Value>,
    seconds: Option<f64>,
}

impl<'a> Figures<'a> {
    pub fn new(now: &'a Value, before: Option<&'a Value>) -> Figures<'a> {
        let up = |state: &Value| state["uptime_s"].as_f64();
        let seconds = before.and_then(|before| Some(up(now)? - up(before)?));
        Figures {
            now,
            before,
            seconds: seconds.filter(|seconds| *seconds > 0.0),
        }
    }

    /// Disks of the server.
    pub fn disks(&self) -> Vec<Figure<'a>> {
        let Figures { now, seconds, .. } = *self;
        let whole = Figure {
            now,
            before: self.before,
            seconds,
        };
        whole.each("disks")
    }

    /// Arms whose time is known: their names, and their time by part since the state before.
    pub fn arms(&self) -> Vec<(String, Vec<(&'a str, f64)>)> {
        let engines = self.disks().into_iter().flat_map(Figure::engines);
        engines.filter_map(Figure::arm).collect()
    }
}

impl<'a> Figure<'a> {
    /// The items of a list, each with the item of the same name before.
    fn each(self, list: &str) -> Vec<Figure<'a>> {
        let items = self.now[list].as_array().map_or(&[][..], Vec::as_slice);
        let old = self.before.and_then(|before| before[list].as_array());
        let of = |now: &'a Value| {
            let mut old = old.into_iter().flatten();
            Figure {
                now,
                before: old.find(|before| before["name"] == now["name"]),
                ..self
            }
        };
        items.iter().map(of).collect()
    }

    /// The disk, or the members of the array. A disk that does not answer has none.
    fn engines(self) -> Vec<Figure<'a>> {
        match (self.now["up"] == Value::Bool(false), self.each("members")) {
            (true, _) => Vec::new(),
            (false, members) if members.is_empty() => vec![self],
            (false, members) => members,
        }
    }

    fn arm(self) -> Option<(String, Vec<(&'a str, f64)>)> {
        let (key, note) = match self.now["head_time_s"].is_object() {
            true => ("head_time_s", ""),
            false => ("head_time_estimated_s", " (estimated)"),
        };
        self.seconds?;
        let before = self.before?;
        let parts = self.now[key].as_object()?.iter();
        let parts = parts.filter_map(|(part, time)| {
            let time = time.as_f64()? - before[key][part].as_f64()?;
            Some((part.as_str(), time.max(0.0)))
        });
        Some((self.word("/name") + note, parts.collect()))
    }

    /// A text that the state has; empty if absent.
    pub fn word(self, path: &str) -> String {
        self.now.pointer(path).map_or_else(String::new, word)
    }

    /// A number that the state has; empty if absent.
    fn number(self, path: &str, factor: f64, places: usize) -> String {
        let number = self.now.pointer(path);
        number.map_or_else(String::new, |number| scaled(number, factor, places))
    }

    /// Growth of a count since the state before. An object is the sum of its counts.
    fn grown(self, path: &str) -> Option<f64> {
        let sum = |state: &Value| match state.pointer(path)? {
            Value::Object(all) => Some(all.values().filter_map(Value::as_f64).sum()),
            one => one.as_f64(),
        };
        Some(sum(self.now)? - sum(self.before?)?)
    }

    fn rate(self, path: &str) -> Option<f64> {
        Some(self.grown(path)? / self.seconds?)
    }
}

fn shown(number: Option<f64>, places: usize) -> String {
    number.map_or_else(String::new, |number| format!("{number:.places$}"))
}

/// All tables.
pub(super) fn text(figures: &Figures<'_>, sort: SortBy, terminal: Terminal) -> String {
    let up = figures.now["uptime_s"].as_f64().unwrap_or_default();
    let version = word(&figures.now["version"]);
    let mut text = format!("headtime {version}, up {}", span(up));
    if let Some(seconds) = figures.seconds {
        let _ = write!(text, "; rates of {seconds:.1} s");
    }
    text.push_str("; p50, p99 and worst since the start\n");
    let disks = figures.disks();
    let engines: Vec<_> = disks.iter().copied().flat_map(Figure::engines).collect();
    for disk in &disks {
        let name = disk.word("/name");
        if disk.now["up"] == Value::Bool(false) {
            let _ = writeln!(text, "disk {name} does not answer");
        }
        if let Some(failure) = disk.now["failure"].as_str() {
            let failure = one_line(failure);
            let _ = writeln!(
                text,
                "disk {name} takes no writes until clear-failure: {failure}"
            );
        }
    }
    let mut exports: Vec<_> = disks.iter().flat_map(|disk| disk.each("exports")).collect();
    let key = |export: &Figure<'_>| match sort {
        SortBy::Place => None,
        SortBy::Bytes => export.rate("/bytes"),
        SortBy::Requests => export.rate("/requests"),
        SortBy::P99 => export.now["total_ms"]["p99"].as_f64(),
    };
    // Whole numbers have a total order. Equal exports stay in their order.
    exports.sort_by_key(|export| Reverse(key(export).map(|key| (key * 1e3) as u64)));
    let scrubs = disks.iter().filter(|disk| disk.now["scrub"].is_object());
    let scrubs: Vec<_> = scrubs.copied().collect();
    let programs = figures.now["programs"]
        .as_array()
        .filter(|all| !all.is_empty());
    let tables = [
        of_engines(&engines),
        of_arms(&figures.arms()),
        of_exports(&exports),
        of_scrubs(&scrubs),
        programs.map_or_else(Vec::new, |all| of_programs(all)),
    ];
    for columns in tables {
        if columns.first().is_some_and(|names| !names.cells.is_empty()) {
            text.push('\n');
            text.push_str(&table(&columns, terminal));
        }
    }
    text
}

fn of_engines(engines: &[Figure<'_>]) -> Vec<TableColumn> {
    let words = |name: &str, path: &str| {
        TableColumn::words(name, engines.iter().map(|engine| engine.word(path)))
    };
    let of = |name: &str, cell: &dyn Fn(&Figure<'_>) -> String| {
        TableColumn::numbers(name, engines.iter().map(cell))
    };
    let percent = |path: &'static str, of: &'static str| {
        move |engine: &Figure<'_>| {
            let whole = engine.grown(of).filter(|whole| *whole > 0.0);
            let share = engine.grown(path).zip(whole);
            shown(share.map(|(part, whole)| part / whole * 100.0), 0)
        }
    };
    vec![
        words("disk", "/name"),
        of("waiting", &|engine| engine.number("/waiting", 1.0, 0)),
        of("in drive", &|engine| engine.number("/in_flight", 1.0, 0)),
        of("commands/s", &|engine| {
            shown(engine.rate("/engine/issued"), 0)
        }),
        of("streams", &|engine| engine.number("/waits/streams", 1.0, 0)),
        of("waits/s", &|engine| shown(engine.rate("/waits/waits"), 1)),
        of("won %", &percent("/waits/waits_won", "/waits/waits")),
        of("gate holds %", &|engine| {
            let plugged = engine.rate("/gating/plugged_s");
            shown(plugged.map(|share| share * 100.0), 0)
        }),
        of("refused/s", &|engine| {
            shown(engine.rate("/gating/refused"), 1)
        }),
        of("late/s", &|engine| shown(engine.rate("/gating/starved"), 1)),
        of("timeouts", &|engine| engine.number("/timeouts", 1.0, 0)),
        words("scheduler", "/scheduler"),
        words("gate", "/gate"),
    ]
}

fn of_arms(arms: &[(String, Vec<(&str, f64)>)]) -> Vec<TableColumn> {
    let names = arms.iter().map(|(name, _)| name.clone());
    let mut columns = vec![TableColumn::words("time of the arm, %", names)];
    let mut parts: Vec<&str> = Vec::new();
    for (part, _) in arms.iter().flat_map(|(_, parts)| parts) {
        if !parts.contains(part) {
            parts.push(part);
        }
    }
    for part in parts {
        let cells = arms.iter().map(|(_, parts)| {
            let all: f64 = parts.iter().map(|(_, time)| time).sum();
            let own = parts.iter().find(|(of, _)| *of == part);
            let own = own.filter(|_| all > 0.0);
            shown(own.map(|(_, time)| time / all * 100.0), 0)
        });
        columns.push(TableColumn::numbers(part, cells));
    }
    columns
}

fn of_exports(exports: &[Figure<'_>]) -> Vec<TableColumn> {
    let of = |name: &str, cell: &dyn Fn(&Figure<'_>) -> String| {
        TableColumn::numbers(name, exports.iter().map(cell))
    };
    let data = |path: &'static str| {
        move |export: &Figure<'_>| shown(export.rate(path).map(|rate| rate * 1e-6), 1)
    };
    let time = |path: &'static str| move |export: &Figure<'_>| export.number(path, 1.0, 1);
    let names = exports.iter().map(|export| export.word("/name"));
    let mut columns = vec![
        TableColumn::words("export", names),
        of("reads/s", &|export| shown(export.rate("/requests/read"), 0)),
        of("writes/s", &|export| {
            shown(export.rate("/requests/write"), 0)
        }),
        of("MB/s read", &data("/bytes/read")),
        of("MB/s written", &data("/bytes/write")),
        of("p50 ms", &time("/total_ms/p50")),
        of("p99 ms", &time("/total_ms/p99")),
        of("worst ms", &time("/total_ms/max")),
        of("under way", &|export| export.number("/unfinished", 1.0, 0)),
        of("errors/s", &|export| shown(export.rate("/errors"), 1)),
    ];
    if exports.iter().any(|export| export.now["rate"].is_u64()) {
        columns.push(of("MB/s at most", &|export| {
            export.number("/rate", 1e-6, 1)
        }));
    }
    columns
}

fn of_scrubs(disks: &[Figure<'_>]) -> Vec<TableColumn> {
    let words =
        |name: &str, path: &str| TableColumn::words(name, disks.iter().map(|disk| disk.word(path)));
    let numbers = |name: &str, path: &str, factor: f64| {
        TableColumn::numbers(name, disks.iter().map(|disk| disk.number(path, factor, 1)))
    };
    vec![
        words("scrub of", "/name"),
        words("state", "/scrub/state"),
        numbers("done %", "/scrub/share", 100.0),
        numbers("MB/s", "/scrub/bytes_per_s", 1e-6),
        numbers("left h", "/scrub/remaining_s", 1.0 / 3_600.0),
        numbers("unreadable sectors", "/scrub/unreadable_sectors", 1.0),
    ]
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    /// A state at a time, with this many requests of each export so far.
    pub(in super::super) fn state(up: f64, requests: [u64; 2]) -> Value {
        let export = |name: &str, requests: u64, p99: f64| {
            json!({
                "name": name,
                "requests": { "read": requests, "write": 0 },
                "bytes": { "read": requests * 1_000_000, "write": 0 },
                "errors": { "read": 0 },
                "total_ms": { "p50": 1.0, "p99": p99, "max": 30.0 },
                "unfinished": 2,
                "rate": null,
            })
        };
        json!({
            "version": "0.1.0",
            "uptime_s": up,
            "disks": [{
                "name": "disk0", "up": true, "scheduler": "noop", "gate": "depth",
                "waiting": 5, "in_flight": 3, "timeouts": 0,
                "engine": { "issued": requests[0] + requests[1] },
                "waits": { "streams": 1, "waits": requests[0], "waits_won": requests[0] / 2 },
                "gating": { "plugged_s": up / 4.0, "refused": {}, "starved": {} },
                "head_time_s": { "seek": up * 0.75, "idle": up * 0.25 },
                "exports": [export("one", requests[0], 5.0), export("two", requests[1], 9.0)],
            }, { "name": "disk1", "up": false }],
            "programs": null,
        })
    }

    #[test]
    fn rates_are_those_between_two_states() {
        let (before, now) = (state(10.0, [100, 1_000]), state(12.0, [140, 1_020]));
        let figures = Figures::new(&now, Some(&before));
        let text = text(&figures, SortBy::Place, Terminal::default());
        let expected = "\
headtime 0.1.0, up 12.0 s; rates of 2.0 s; p50, p99 and worst since the start
disk disk1 does not answer

disk   waiting  in drive  commands/s  streams  waits/s  won %  gate holds %  refused/s  late/s  timeouts  scheduler  gate
disk0        5         3          30        1     20.0     50            25        0.0     0.0         0  noop       depth

time of the arm, %  idle  seek
disk0                 25    75

export  reads/s  writes/s  MB/s read  MB/s written  p50 ms  p99 ms  worst ms  under way  errors/s
one          20         0       20.0           0.0     1.0     5.0      30.0          2       0.0
two          10         0       10.0           0.0     1.0     9.0      30.0          2       0.0
";
        assert_eq!(text, expected);
    }

    #[test]
    fn exports_are_sorted_by_the_largest_first() {
        let two_first = |requests| {
            let (before, now) = (state(10.0, [100, 100]), state(11.0, requests));
            let figures = Figures::new(&now, Some(&before));
            let text = |sort| text(&figures, sort, Terminal::default());
            let first = |sort| text(sort).find("\ntwo ") < text(sort).find("\none ");
            [SortBy::Place, SortBy::Bytes, SortBy::Requests, SortBy::P99].map(first)
        };
        assert_eq!(two_first([140, 120]), [false, false, false, true]);
        assert_eq!(two_first([120, 140]), [false, true, true, true]);
    }

    #[test]
    fn the_state_of_another_server_has_no_rates() {
        let (before, now) = (state(10.0, [100, 100]), state(1.0, [1, 1]));
        let figures = Figures::new(&now, Some(&before));
        let text = text(&figures, SortBy::Bytes, Terminal::default());
        assert!(!text.contains("rates of") && !text.contains('-'), "{text}");
        assert!(figures.arms().is_empty());
    }
}
