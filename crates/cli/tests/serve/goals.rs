//! Programs with goals on a server that runs.

use super::common::{Ended, Server, run, wait_until};
use super::nbd::{Ask, Client};
use serde_json::Value;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

pub const CONFIG: &str = r#"
[[disk]]
name = "disk0"
emulate = "atlas10k"
store = "memory"
size = "64MiB"
scheduler = "deadline"
gate = "windows:guard=5ms:period=200ms"
[[disk.export]]
name = "mail"
range = "0B..32MiB"
[[disk.export]]
name = "web"
range = "32MiB..64MiB"
[listen]
nbd = "unix:nbd.sock"
control = "unix:control.sock"
[[qos.program]]
name = "mail"
exports = ["mail"]
[[qos.program]]
name = "web"
exports = ["web"]
"#;

/// Reads a number of pages of an export at places far apart.
pub fn read(server: &Server, export: &str, pages: u64, end: &AtomicBool) {
    let mut client = Client::connect(&server.path("nbd.sock"), export).unwrap();
    let mut data = [0; 4096];
    for page in (0..pages).take_while(|_| !end.load(Ordering::Relaxed)) {
        let place = page * 7919 % 8192;
        assert_eq!(client.ask(Ask::Read, place * 4096, &mut data).unwrap(), 0);
    }
}

fn profile(server: &Server) -> String {
    server.told(&["qos", "profile", "mail", "start"]);
    assert_eq!(server.status()["programs"][0]["recording"], true);
    read(server, "mail", 60, &AtomicBool::new(false));
    // Notes are taken every 20 ms.
    wait_until(
        || server.status()["disks"][0]["exports"][0]["unfinished"] == 0,
        || "a request does not end".to_owned(),
    );
    server.told(&["qos", "profile", "mail", "stop"])
}

#[test]
fn a_profile_is_recorded_and_its_goal_is_kept_in_windows() {
    let server = Server::start("profile", CONFIG, &[]);
    let text = profile(&server);
    assert!(
        text.starts_with("headtime-profile 1\nsite = disk0\nprogram = mail\n"),
        "{text}"
    );
    let refused = server.control(&["qos", "goal", "mail", "3x"]);
    let why = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        why.contains("program mail: a goal needs a profile"),
        "{why}"
    );
    drop(server);

    let config = CONFIG.replacen(
        "exports = [\"mail\"]",
        "exports = [\"mail\"]\nprofile = \"mail.profile\"",
        1,
    );
    let (directory, file) = (super::common::scratch("goal"), "mail.profile");
    fs::write(directory.join(file), &text).unwrap();
    let at = format!("profile = {:?}", directory.join(file));
    let config = config.replacen("profile = \"mail.profile\"", &at, 1);
    let mut server = Server::start("goal-kept", &config, &["--log", "events.log"]);
    server.told(&["qos", "goal", "mail", "4x"]);
    assert_eq!(server.status()["programs"][0]["state"], "waiting");
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = Ended(&end);
        scope.spawn(|| read(&server, "web", 1_000_000, &end));
        let reads = scope.spawn(|| read(&server, "mail", 60, &end));
        let planned = || {
            let programs: Value = serde_json::from_str(&server.told(&["qos"])).unwrap();
            let is_run = ["running", "behind"].contains(&programs[0]["state"].as_str().unwrap());
            is_run && programs[0]["planned"]["window_ms"].as_f64() > Some(0.0)
        };
        wait_until(planned, || server.told(&["qos"]));
        reads.join().unwrap();
        let metrics = server.told(&["metrics"]);
        for name in [
            "headtime_program_window_seconds",
            "headtime_program_bound_bytes_per_second",
        ] {
            assert!(
                metrics.contains(&format!("{name}{{program=\"mail\"}} ")),
                "{metrics}"
            );
        }
        wait_until(
            || server.status()["programs"][0]["state"] == "met",
            || server.told(&["qos"]),
        );
    });
    server.wait_for("its goal is met");
    // A file with another goal changes nothing, and says what does.
    let other = config.replacen("[\"mail\"]", "[\"mail\"]\ngoal = \"5x\"", 1);
    fs::write(server.path("serve.toml"), other).unwrap();
    server.signal("HUP");
    server.wait_for("qos: program: another value takes a restart; `headtime control SOCKET qos goal` sets a goal");
    assert_eq!(server.terminate(), Some(0));
    let log = fs::read_to_string(server.path("events.log")).unwrap();
    for of in ["assign 1 1", "assign 2 2", "window 1 ", "window 2 "] {
        assert!(log.contains(of), "no {of}");
    }
    // Requests have the program's number.
    assert!(log.contains(" 8 0 0 1 0 1\n") && log.contains(" 8 0 0 2 1 1\n"));
    let output = run(&server.directory, &["sim", "replay-log", "events.log"]);
    assert!(output.status.success(), "{output:?}");
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_profile_of_something_else_is_refused_with_its_key() {
    let server = Server::start("profiles", CONFIG, &[]);
    let text = profile(&server);
    let with = |keys: &str| {
        CONFIG.replacen(
            "exports = [\"mail\"]",
            &format!("exports = [\"mail\"]\n{keys}"),
            1,
        )
    };
    let given = "profile = \"p\"";
    let check = |config: &str| {
        fs::write(server.path("other.toml"), config).unwrap();
        let output = run(&server.directory, &["serve", "other.toml", "--check"]);
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let write = |file: &str, text: &str| fs::write(server.path(file), text).unwrap();
    write("p", &text);
    assert_eq!(check(&with(given)), (Some(0), String::new()));
    let output = run(&server.directory, &["serve", "other.toml", "--check"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("\nprogram mail: mail\nprogram web: web\n"),
        "{text}"
    );
    for (config, error) in [
        (
            with("profile = \"none\""),
            "error: program mail: profile: none: cannot read: No such file or directory",
        ),
        (
            with(given).replacen("\"disk0\"", "\"disk1\"", 1),
            "qos.program[0].profile: program mail: site is `disk0`; `disk1` is needed",
        ),
        (
            with(given).replacen(
                "[[qos.program]]\nname = \"mail\"",
                "[[qos.program]]\nname = \"post\"",
                1,
            ),
            "program post: program is `mail`; `post` is needed",
        ),
        (
            with(&format!("{given}\ngoal = \"1ms\"")),
            "other.toml:22: qos.program[0].goal: program mail: the goal of 1ms is shorter than ",
        ),
        (
            with(&format!("{given}\ntree = \"p\"")),
            "other.toml:22: qos.program[0].tree: program mail: line 1: ",
        ),
    ] {
        let (code, found) = check(&config);
        assert_eq!(
            code,
            Some(if error.contains("No such") { 4 } else { 3 }),
            "{found}"
        );
        assert!(found.contains(error), "{found}");
    }
    write("p", &text[..text.len() / 2]);
    let (_, found) = check(&with(given));
    assert!(
        found.contains("qos.program[0].profile: program mail: line "),
        "{found}"
    );
}
