//! Gates before served disks: in force, changed in flight, and the same in a replay.

use super::common::{Ended, Server, run, wait_until};
use super::nbd::{Ask, Client};
use headtime_engine::log::{Decision, Record, read};
use headtime_engine::{DelayCounts, DriveTag, Event};
use headtime_sched::Class;
use headtime_units::Extent;
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const CONFIG: &str = r#"
[[disk]]
name = "disk0"
emulate = "wd5000aaks"
store = "memory"
size = "1GiB"
firmware = "sptf"
scheduler = "deadline"
gate = "rsd-priority:ranks=1/4:age_th=5"
depth = 8
merge = false
[[disk.export]]
name = "vm"
class = "real-time"
[[disk.export]]
name = "bulk"
[[disk]]
name = "disk1"
device = "null"
size = "1MiB"
scheduler = "noop"
[listen]
nbd = "unix:nbd.sock"
control = "unix:control.sock"
[log]
events = "events.log"
"#;

/// Reads at random places through a number of connections to an export, until the end. No two connections read the
/// same place.
fn load(server: &Server, export: &str, first: u64, count: u64, end: &AtomicBool, done: &AtomicU64) {
    std::thread::scope(|scope| {
        for number in first..first + count {
            scope.spawn(move || {
                let mut client = Client::connect(&server.path("nbd.sock"), export).unwrap();
                let mut data = [0; 4096];
                for at in 0_u64.. {
                    if end.load(Ordering::Relaxed) {
                        break;
                    }
                    let place = (at * 7919 + number * 104_729) % 16_384 * 16 + number;
                    assert_eq!(client.ask(Ask::Read, place * 4096, &mut data).unwrap(), 0);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
}

/// Counts from a log of commands behind the first gate.
#[derive(Debug, Default)]
struct Seen {
    urgent: u64,
    others: u64,
    /// Commands of the lower class that went while one of the higher was in the drive.
    past_the_ceiling: u64,
    delay_count_max: u32,
    in_drive_max: usize,
}

/// Counts up to the first order to the gate.
fn seen(text: &str) -> Seen {
    let mut seen = Seen::default();
    let mut classes: BTreeMap<Extent, Class> = BTreeMap::new();
    let mut in_drive: BTreeMap<DriveTag, Class> = BTreeMap::new();
    let mut counts = DelayCounts::default();
    for record in read(text) {
        match record.expect("a log").1 {
            Record::Event(_, Event::Arrived(new)) => {
                classes.insert(new.extent, new.class);
            }
            Record::Event(_, Event::Completed { tag, .. }) => {
                in_drive.remove(&tag);
                seen.delay_count_max = seen.delay_count_max.max(counts.completed(tag));
            }
            Record::Event(_, Event::Ordered(_)) => break,
            Record::Decision(_, Decision::Issue { tag, extent, .. }) => {
                let class = classes[&extent];
                match class {
                    Class::REAL_TIME => seen.urgent += 1,
                    _ => {
                        seen.others += 1;
                        let urgent = in_drive.values().any(|class| *class == Class::REAL_TIME);
                        seen.past_the_ceiling += u64::from(urgent);
                    }
                }
                counts.issued(tag);
                in_drive.insert(tag, class);
                seen.in_drive_max = seen.in_drive_max.max(in_drive.len());
            }
            _ => {}
        }
    }
    seen
}

#[test]
fn a_gate_ranks_the_exports_of_a_served_disk_changes_in_flight_and_replays_identically() {
    let mut server = Server::start("gates", CONFIG, &[]);
    let (end, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let more = |count| {
        let target = done.load(Ordering::Relaxed) + count;
        wait_until(
            || done.load(Ordering::Relaxed) >= target,
            || "no answers come".to_owned(),
        );
    };
    let gate = |text: &str| {
        wait_until(
            || server.status()["disks"][0]["gate"] == text,
            || format!("the gate is not {text}"),
        );
    };
    let config = server.path("serve.toml");
    std::thread::scope(|scope| {
        let _ending = Ended(&end);
        scope.spawn(|| load(&server, "bulk", 1, 8, &end, &done));
        scope.spawn(|| load(&server, "vm", 9, 1, &end, &done));
        gate("rsd-priority:age_th=5:ranks=1/4");
        more(300);
        // Nothing but the threshold: an order.
        server.told(&["gate", "disk0", "rsd-priority:ranks=1/4:age_th=30"]);
        gate("rsd-priority:age_th=30:ranks=1/4");
        more(50);
        for text in ["depth=1", "depth", "rsd:age_th=20"] {
            server.told(&["gate", "disk0", text]);
            gate(text);
            more(50);
        }
        // All lanes have another scheduler.
        server.told(&["gate", "disk0", "rsd-priority:ranks=1/2/3"]);
        server.told(&["scheduler", "disk0", "cfq"]);
        more(50);
        // The file has another threshold than at first, and is not what runs.
        let text = CONFIG.replacen("age_th=5", "age_th=40", 1);
        fs::write(&config, text).unwrap();
        server.signal("HUP");
        gate("rsd-priority:age_th=40:ranks=1/4");
        more(50);
        let text = CONFIG.replacen("1/4:age_th=5", "1/4:age_th=50", 1);
        fs::write(&config, text.replacen("\"deadline\"", "\"cfq\"", 1)).unwrap();
        server.signal("HUP");
        gate("rsd-priority:age_th=50:ranks=1/4");
        more(50);
        // A number of ranks that does not fit the depth changes nothing.
        fs::write(&config, CONFIG.replacen("ranks=1/4", "ranks=1/8", 1)).unwrap();
        server.signal("HUP");
        server.wait_for(
            "nothing is changed: serve.toml:9: disk[0].gate: ranks is 1/8; allowed is less than the depth, which is 8",
        );
        gate("rsd-priority:age_th=50:ranks=1/4");
    });
    assert_eq!(server.terminate(), Some(0));
    let log = fs::read_to_string(server.path("events.log.disk0")).unwrap();
    let lines = |start: &str| log.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!((lines("O "), lines("G ")), (2, 5), "orders and swaps");
    let seen = seen(&log);
    assert!(seen.urgent > 20 && seen.others > 100, "{seen:?}");
    assert_eq!(seen.past_the_ceiling, 0, "{seen:?}");
    // An urgent command may be one more than the others leave free.
    assert!((4..=7).contains(&seen.in_drive_max), "{seen:?}");
    assert!(seen.delay_count_max < 5 + 8, "{seen:?}");

    let output = run(
        &server.directory,
        &["sim", "replay-log", "events.log.disk0"],
    );
    let out = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{out}{error}");
    assert!(
        out.contains("swaps of the scheduler, 5 swaps of the gate in ")
            && out.contains("identical"),
        "{out}"
    );
}

#[test]
fn a_gate_that_cannot_be_is_refused_with_what_is_allowed() {
    let server = Server::start("no-gate", CONFIG, &[]);
    for (args, code, error) in [
        (["gate", "disk0", "rdd"], 1, "did you mean \"rsd\"?"),
        (
            ["gate", "disk0", "rsd:age_th=x"],
            1,
            "gate \"rsd:age_th=x\": age_th is \"x\"; allowed is 0 to 1000000",
        ),
        (
            ["gate", "disk0", "rsd-priority:ranks=1/8"],
            1,
            "ranks is 1/8; allowed is less than the depth, which is 8",
        ),
        (
            ["gate", "disk2", "rsd"],
            1,
            "no disk `disk2`; there are disk0, disk1",
        ),
        (["gate", "", "rsd"], 2, "no disk can be called ``"),
    ] {
        let output = server.control(&args);
        let found = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {found}");
        assert!(found.contains(error), "{args:?}: {found}");
        assert_eq!(
            server.status()["disks"][0]["gate"],
            "rsd-priority:age_th=5:ranks=1/4"
        );
    }
    assert_eq!(server.status()["disks"][1]["gate"], "depth");
}

/// Numbers of overtaking commands and of starved commands by class, counted from a log by the definitions.
#[derive(Debug, Default, PartialEq)]
struct Counted {
    commands: [u64; 3],
    overtaken: [u64; 3],
    overtaken_max: [u64; 3],
    starved: [u64; 3],
}

fn counted(log: &str, age_th: usize) -> Counted {
    let mut counted = Counted::default();
    let mut classes: BTreeMap<Extent, Class> = BTreeMap::new();
    // Tag, class, delay count, and whether it starves; the oldest first.
    let mut in_drive: Vec<(DriveTag, usize, usize, bool)> = Vec::new();
    for record in read(log) {
        match record.expect("a log").1 {
            Record::Event(_, Event::Arrived(new)) => {
                classes.insert(new.extent, new.class);
            }
            Record::Decision(_, Decision::Issue { tag, extent, .. }) if extent.len.get() > 0 => {
                in_drive.push((tag, usize::from(classes[&extent].0), 0, false));
            }
            Record::Event(_, Event::Completed { tag, .. }) => {
                let place = in_drive.iter().position(|(other, ..)| *other == tag);
                // It was a flush.
                let Some(place) = place else { continue };
                let (_, class, overtaken, _) = in_drive.remove(place);
                counted.commands[class] += 1;
                counted.overtaken[class] += overtaken as u64;
                counted.overtaken_max[class] = counted.overtaken_max[class].max(overtaken as u64);
                in_drive[..place]
                    .iter_mut()
                    .for_each(|(_, _, count, _)| *count += 1);
                for (earlier, (_, class, count, starves)) in in_drive.iter_mut().enumerate() {
                    let is_late = *count > earlier + age_th;
                    counted.starved[*class] += u64::from(is_late && !*starves);
                    *starves |= is_late;
                }
            }
            _ => {}
        }
    }
    counted
}

#[test]
fn a_served_disk_tells_what_its_gate_refuses_which_classes_starve_and_how_often_commands_are_overtaken()
 {
    let config = CONFIG.replacen("rsd-priority:ranks=1/4:age_th=5", "rsd:age_th=3", 1);
    let mut server = Server::start("gate-metrics", &config, &[]);
    let (end, done) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _ending = Ended(&end);
        scope.spawn(|| load(&server, "bulk", 2, 14, &end, &done));
        scope.spawn(|| load(&server, "vm", 0, 2, &end, &done));
        wait_until(
            || done.load(Ordering::Relaxed) >= 400,
            || "no answers come".to_owned(),
        );
    });
    let status = server.status();
    let disk = &status["disks"][0];
    let metrics = server.told(&["metrics"]);
    assert_eq!(server.terminate(), Some(0));
    let log = fs::read_to_string(server.path("events.log.disk0")).unwrap();
    let expected = counted(&log, 3);
    let by_class = |of: &dyn Fn(&str) -> f64| ["real-time", "best-effort", "idle"].map(of);
    let of = |key: &str| by_class(&|class| disk["overtaken"][class][key].as_f64().unwrap());
    let gating = |key: &str| by_class(&|class| disk["gating"][key][class].as_f64().unwrap());
    let counts = of("count");
    let found = Counted {
        commands: counts.map(|count| count as u64),
        overtaken: [0, 1, 2].map(|class| (counts[class] * of("mean")[class]).round() as u64),
        overtaken_max: of("max").map(|max| max as u64),
        starved: gating("starved").map(|count| count as u64),
    };
    assert_eq!(found, expected);
    assert!(
        expected.commands[0] > 20 && expected.commands[1] > 100 && expected.starved[1] > 5,
        "{expected:?}"
    );
    // The drive is full or the gate is closed all the time, and closed no longer than commands starve.
    let plugged = disk["gating"]["plugged_s"].as_f64().unwrap();
    let starved: f64 = gating("starved_s").iter().sum();
    assert!(
        plugged > 0.01 && plugged <= starved,
        "{plugged} s of {starved} s"
    );
    assert!(gating("refused").iter().sum::<f64>() > 5.0, "{disk}");
    // Nothing of the other disk, before which there is the depth alone; and the page has the same.
    let other = &status["disks"][1]["gating"];
    assert_eq!(other["plugged_s"], 0.0);
    let line = |name: &str, class: &str, value: u64| {
        let line = format!("headtime_{name}{{disk=\"disk0\",class=\"{class}\"}} {value}");
        assert!(
            metrics.lines().any(|found| found == line),
            "no {line} in:\n{metrics}"
        );
    };
    line("commands_starved_total", "best-effort", expected.starved[1]);
    line("command_overtaken_count", "real-time", expected.commands[0]);
    line("gate_refusals_total", "idle", 0);
    assert!(metrics.contains("scheduler=\"deadline\",gate=\"rsd:age_th=3\""));
}
