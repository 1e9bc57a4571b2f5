//! Scrubs, as the command line has them.

use super::common::{Server, headtime, run, scratch, wait_until};
use super::nbd::{Ask, Client};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

pub fn config(more: &str) -> String {
    format!(
        r#"
[[disk]]
name = "disk0"
emulate = "atlas10k"
store = "disk0.img"
create = true
size = "16MiB"
scheduler = "deadline"
depth = 1
faults = true
{more}
[listen]
nbd = "unix:nbd.sock"
control = "unix:control.sock"
"#
    )
}

fn scrub(server: &Server, args: &[&str]) -> Output {
    let mut all = vec!["scrub", "control.sock", "disk0"];
    all.extend(args);
    run(&server.directory, &all)
}

pub fn done(server: &Server, args: &[&str]) -> String {
    let output = scrub(server, args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

pub fn refused(server: &Server, args: &[&str]) -> (Option<i32>, String) {
    let output = scrub(server, args);
    let error = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), error)
}

pub fn status(server: &Server) -> Value {
    let output = scrub(server, &["status", "--format", "json"]);
    serde_json::from_slice(&output.stdout).unwrap()
}

pub fn left(server: &Server) -> u64 {
    status(server)["left"].as_u64().unwrap()
}

#[test]
fn the_status_names_the_damage_that_keeps_a_scrub_from_going_on() {
    let directory = scratch("scrub-damage");
    let file = directory.join("state/disk0.scrub");
    std::fs::create_dir(directory.join("state")).unwrap();
    std::fs::write(&file, [b'x'; 1 << 15]).unwrap();
    std::fs::write(directory.join("serve.toml"), config("scrub = \"state\"")).unwrap();
    let mut command = headtime(&directory, &["serve", "serve.toml", "--ready"]);
    let mut server = Server::spawn(directory, &mut command);
    let says = "disk disk0: the scrub of an earlier server does not go on: state/disk0.scrub: not the progress of a scrub: \
                its beginning, the first 12288 bytes, is damaged";
    let (code, error) = refused(&server, &["status"]);
    assert_eq!(code, Some(1));
    assert!(error.contains(says), "{error}");
    assert!(error.contains("move it away to begin anew"), "{error}");
    assert_eq!(status(&server)["state"], "none");
    // The user follows the message.
    std::fs::remove_file(&file).unwrap();
    done(&server, &["--idle", "1ms"]);
    assert_eq!(status(&server)["state"], "done");
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_scrub_lists_the_sectors_that_cannot_be_read_and_ends_with_1() {
    let mut server = Server::start("scrub-lists", &config(""), &[]);
    assert!(done(&server, &["status"]).contains("no scrub so far"));
    server.told(&[
        "fault",
        "unreadable",
        "disk0",
        "--lba",
        "4097",
        "--sectors",
        "2",
        "--retries",
        "0",
    ]);
    let output = scrub(&server, &["--idle", "1ms"]);
    let (out, error) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(out.contains("\n    lba 4097, 2 sectors\n"), "{out}");
    assert!(error.contains("2 sectors cannot be read"), "{error}");
    assert!(error.contains("progress is not kept"), "{error}");
    let metrics = server.told(&["metrics"]);
    for line in [
        "headtime_scrub_running{disk=\"disk0\"} 0.0",
        "headtime_scrub_blocks{disk=\"disk0\"} 2048.0",
        "headtime_scrub_blocks_left{disk=\"disk0\"} 0.0",
        "headtime_scrub_unreadable_sectors{disk=\"disk0\"} 2.0",
        "headtime_scrub_blocks_read_total{disk=\"disk0\",when=\"idle\"} 2047",
        "headtime_scrub_errors_total{disk=\"disk0\"} 0",
    ] {
        assert!(metrics.contains(line), "no {line} in\n{metrics}");
    }
    assert_eq!(server.status()["disks"][0]["scrub"]["state"], "done");
    // Written sectors become readable again.
    let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    let mut data = [7; 4096];
    assert_eq!(client.ask(Ask::Write, 4096 * 512, &mut data).unwrap(), 0);
    let out = done(&server, &["--idle", "1ms", "--range", "2MiB-3MiB"]);
    assert!(out.contains("\n  unreadable  0 sectors\n"), "{out}");
    drop(client);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_server_that_is_killed_goes_on_with_its_scrub_and_loses_a_second_at_most() {
    let config = config("scrub = \"state\"");
    let mut server = Server::start("scrub-killed", &config, &[]);
    done(&server, &["--idle", "1ms", "--block", "4KiB", "--no-wait"]);
    let blocks = 4096;
    // More than a second of the scrub is done then.
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    let before = status(&server);
    let (left_before, rate) = (
        before["left"].as_u64().unwrap(),
        before["bytes_per_s"].as_f64().unwrap() / 4096.0,
    );
    assert!(left_before > 0 && left_before < blocks, "{before:#}");
    server.signal("KILL");
    server.end();
    let mut again = headtime(&server.directory, &["serve", "serve.toml", "--ready"]);
    let mut next = Server::spawn(server.directory.clone(), &mut again);
    let after = left(&next);
    let lost = after.saturating_sub(left_before) as f64;
    assert!(
        after < blocks && lost <= rate,
        "{left_before}, then {after}"
    );
    // A repeated command waits for the rest of the scrub.
    let out = done(&next, &[]);
    assert!(out.contains("\n  state       done\n"), "{out}");
    assert_eq!(status(&next)["read"]["in_gaps"], 0);
    assert_eq!(next.terminate(), Some(0));
}

/// Sectors past the new end are not bad sectors. The scrub reports the missing end, tries again, and ends when the
/// sectors are back.
#[test]
fn a_disk_that_shrinks_under_a_scrub_has_no_bad_sectors_for_that() {
    let config = config("scrub = \"state\"")
        .replace(
            "emulate = \"atlas10k\"\nstore = \"disk0.img\"",
            "device = \"disk0.img\"\ndirect = false",
        )
        .replace("faults = true\n", "");
    let mut server = Server::start("scrub-shrinks", &config, &[]);
    // The scrub reads nothing within a second of a client's request.
    done(&server, &["--idle", "1s", "--no-wait"]);
    done(&server, &["pause"]);
    let image = std::fs::File::options()
        .write(true)
        .open(server.path("disk0.img"))
        .unwrap();
    image.set_len(8 << 20).unwrap();
    done(&server, &["resume"]);
    let errors = || status(&server)["errors"].as_u64().unwrap();
    wait_until(|| errors() > 2, || format!("{:#}", status(&server)));
    let said = done(&server, &["status"]);
    for line in [
        "\n  state       running\n",
        "\n  unreadable  0 sectors\n",
        "does not have what it should",
    ] {
        assert!(said.contains(line), "no {line} in\n{said}");
    }
    // Sectors past the new end are left.
    assert!(left(&server) >= 1024, "{said}");
    server.wait_for("has 8388608 bytes, 16777216 were served");
    image.set_len(16 << 20).unwrap();
    let whole = || status(&server)["state"] == "done";
    wait_until(whole, || format!("{:#}", status(&server)));
    let said = done(&server, &["status"]);
    assert!(said.contains("\n  unreadable  0 sectors\n"), "{said}");
    assert_eq!(left(&server), 0);
    server.terminate();
}

#[test]
fn a_scrub_is_paused_resumed_stopped_and_what_cannot_be_says_why() {
    let mut server = Server::start("scrub-told", &config("scrub = \"state\""), &[]);
    assert_eq!(
        refused(&server, &["pause"]),
        (
            Some(1),
            "error: disk disk0: no scrub is under way\n".to_owned()
        )
    );
    for (args, code, problem) in [
        (&["--range", "1MiB-20MiB"][..], 1, "allowed is a part"),
        (&["--block", "3KiB"], 1, "powers of two"),
        (&["--range", "2MiB-1MiB"], 2, "before the end"),
        (&["--idle", "5"], 2, "or off"),
        (
            &["stop", "--block", "4KiB"],
            2,
            "are for a scrub that begins",
        ),
    ] {
        let (exit, error) = refused(&server, args);
        assert_eq!(exit, Some(code), "{error}");
        assert!(error.contains(problem), "{args:?}: {error}");
    }
    let none = run(&server.directory, &["scrub", "control.sock", "disk9"]);
    assert_eq!(none.status.code(), Some(1));
    done(&server, &["--idle", "1ms", "--no-wait"]);
    done(&server, &["pause"]);
    wait_until(
        || status(&server)["state"] == "paused",
        || "it does not rest".to_owned(),
    );
    let (exit, error) = refused(&server, &["--block", "64KiB"]);
    assert_eq!(exit, Some(1));
    assert!(error.contains("another block"), "{error}");
    done(&server, &["resume"]);
    wait_until(|| left(&server) < 2_048, || "it does not go on".to_owned());
    done(&server, &["stop"]);
    wait_until(
        || status(&server)["state"] == "stopped",
        || "it does not stop".to_owned(),
    );
    assert!(!server.path("state/disk0.scrub").exists());
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_scrub_of_another_disk_is_left_alone_and_the_disk_serves() {
    let config = config("scrub = \"state\"");
    let mut server = Server::start("scrub-other", &config, &[]);
    done(&server, &["--idle", "1ms", "--no-wait"]);
    assert_eq!(server.terminate(), Some(0));
    std::fs::rename(server.path("disk0.img"), server.path("whole.img")).unwrap();
    let smaller = config.replace("16MiB", "8MiB");
    std::fs::write(server.path("serve.toml"), smaller).unwrap();
    let mut again = headtime(&server.directory, &["serve", "serve.toml", "--ready"]);
    let mut next = Server::spawn(server.directory.clone(), &mut again);
    next.wait_for("its scrub does not go on");
    next.wait_for("it has shrunk from 16777216 bytes to 8388608");
    let (exit, error) = refused(&next, &[]);
    assert_eq!(exit, Some(1));
    assert!(error.contains("of another disk"), "{error}");
    assert_eq!(next.terminate(), Some(0));
}

/// Waits until its scrub is in a state.
#[track_caller]
pub fn reaches(server: &Server, state: &str) {
    wait_until(
        || status(server)["state"] == state,
        || format!("{:#}", status(server)),
    );
}

/// A server whose files may become limited in length, as by a file system that is full.
pub fn limited(name: &str, config: &str) -> Server {
    let directory = scratch(name);
    std::fs::write(directory.join("serve.toml"), config).unwrap();
    again_limited(directory)
}

fn again_limited(directory: PathBuf) -> Server {
    let program = env!("CARGO_BIN_EXE_headtime");
    // A process that exceeds the limit must get an error instead of a signal.
    let line = format!("trap '' XFSZ; exec {program} serve serve.toml --ready");
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).current_dir(&directory);
    shell.stdin(Stdio::null()).env("NO_COLOR", "1");
    shell.env_remove("HEADTIME_LOG").env_remove("NOTIFY_SOCKET");
    Server::spawn(directory, &mut shell)
}

pub const FILE: &str = r#"
[[disk]]
name = "disk0"
device = "disk0.img"
direct = false
create = true
size = "4MiB"
scheduler = "deadline"
scrub = "state"
sole_writer = true
[listen]
nbd = "unix:nbd.sock"
control = "unix:control.sock"
"#;

#[test]
fn a_block_that_changed_behind_the_server_is_named_also_after_a_kill_and_one_that_was_written_to_is_not()
 {
    let mut server = Server::start("scrub-hash", FILE, &[]);
    let hash = ["--hash", "hashes", "--idle", "1ms"];
    let out = done(&server, &hash);
    assert!(out.contains("\n  state       done\n"), "{out}");
    let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    let mut data = [7; 4096];
    assert_eq!(client.ask(Ask::Write, 1 << 20, &mut data).unwrap(), 0);
    // Acknowledged, and nobody has had time for anything.
    server.signal("KILL");
    server.end();
    let image = std::fs::OpenOptions::new()
        .write(true)
        .open(server.path("disk0.img"));
    std::os::unix::fs::FileExt::write_all_at(&image.unwrap(), b"x", 3 << 20).unwrap();
    let mut again = headtime(&server.directory, &["serve", "serve.toml", "--ready"]);
    let mut next = Server::spawn(server.directory.clone(), &mut again);
    let output = scrub(&next, &hash);
    let (out, error) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        out.contains("\n  changed     16 sectors\n    lba 6144, 16 sectors\n"),
        "{out}"
    );
    assert!(out.contains("\n  compared    511 blocks"), "{out}");
    assert!(error.contains("16 sectors have changed"), "{error}");
    let metrics = next.told(&["metrics"]);
    for line in [
        "headtime_scrub_changed_sectors{disk=\"disk0\"} 16.0",
        "headtime_scrub_blocks_compared_total{disk=\"disk0\"} 511",
    ] {
        assert!(metrics.contains(line), "no {line} in\n{metrics}");
    }
    assert_eq!(next.terminate(), Some(0));
}

#[test]
fn a_pass_that_is_killed_again_and_again_while_clients_write_names_nothing_falsely() {
    let mut server = Server::start("scrub-kills", FILE, &[]);
    // The first one has the directory.
    let mut killed = Vec::new();
    let hash = ["--hash", "hashes", "--idle", "1ms", "--block", "4KiB"];
    done(&server, &hash);
    let mut nth = 0_u64;
    for round in 0..6 {
        done(&server, &[&hash[..], &["--no-wait"]].concat());
        let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
        for _ in 0..20 + round * 7 {
            nth += 1;
            let mut data = [nth as u8; 4096];
            let at = nth * 7919 % 1024 * 4096;
            assert_eq!(client.ask(Ask::Write, at, &mut data).unwrap(), 0);
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
        server.signal("KILL");
        server.end();
        let mut again = headtime(&server.directory, &["serve", "serve.toml", "--ready"]);
        let next = Server::spawn(server.directory.clone(), &mut again);
        killed.push(std::mem::replace(&mut server, next));
    }
    // The rest of the last scrub, and another scrub that compares all hashes.
    for _ in 0..2 {
        let out = done(&server, &hash);
        assert!(!out.contains("changed"), "{out}");
    }
    let all = status(&server)["hashes"]["compared"].as_u64();
    assert_eq!(all, Some(1024));
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn hashes_that_find_no_room_hold_the_scrub_and_nothing_is_lost_of_it() {
    let config = config("scrub = \"state\"");
    let mut server = limited("scrub-full", &config);
    server.told(&[
        "fault",
        "unreadable",
        "disk0",
        "--lba",
        "17",
        "--retries",
        "0",
    ]);
    let hash = ["--hash", "hashes", "--idle", "1ms", "--block", "4KiB"];
    done(&server, &[&hash[..], &["--no-wait"]].concat());
    // The file of hashes is 56 KiB.
    if !server.limit_files("32768") {
        return;
    }
    reaches(&server, "held");
    let held = status(&server);
    let why = held["why"].as_str().unwrap();
    assert!(why.contains("hashes: File too large"), "{why}");
    let said = scrub(&server, &["status"]);
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    let said = String::from_utf8_lossy(&said.stderr);
    assert!(said.contains("the scrub is held up: "), "{said}");
    assert!(held["left"].as_u64().unwrap() > 2_500, "{held:#}");
    // Without room `resume` fails, the scrub is held again, and clients are served.
    let resumed = scrub(&server, &["resume"]);
    assert_eq!(resumed.status.code(), Some(1), "{resumed:?}");
    let said = String::from_utf8_lossy(&resumed.stderr);
    assert!(said.contains("hashes: File too large"), "{said}");
    reaches(&server, "held");
    let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    let mut data = [0; 4096];
    assert_eq!(client.ask(Ask::Read, 0, &mut data).unwrap(), 0);
    server.limit_files("unlimited");
    // The scrub reads blocks without a hash again, also blocks that came back while the scrub was held. The unreadable sector
    // is known.
    done(&server, &["resume"]);
    reaches(&server, "done");
    assert_eq!(status(&server)["unreadable_sectors"], 1);
    let (exit, error) = refused(&server, &hash);
    assert_eq!(exit, Some(1));
    assert!(!error.contains("changed"), "{error}");
    let all = status(&server)["hashes"]["compared"].as_u64();
    assert_eq!(all, Some(4_095));
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_bad_sector_for_whose_line_there_is_no_room_is_not_forgotten() {
    let config = config("scrub = \"state\"");
    let mut server = limited("scrub-no-line", &config);
    // The last of its block, so that nothing of that is left to be read.
    let bad = ["--lba", "23", "--retries", "0"];
    server.told(&[&["fault", "unreadable", "disk0"], &bad[..]].concat());
    // There is room for 4,096 blocks, and for no line behind them.
    const BITS: u64 = 16 << 10;
    if !server.limit_files("20480") {
        return;
    }
    done(&server, &["--idle", "1ms", "--block", "4KiB", "--no-wait"]);
    reaches(&server, "held");
    let held = status(&server);
    let why = held["why"].as_str().unwrap();
    assert!(why.contains("File too large"), "{why}");
    assert_eq!(held["unreadable_sectors"], 1);
    // The block of the bad sector is not marked as done in any saved state.
    let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    for _ in 0..15 {
        let mut data = [0; 4096];
        assert_eq!(client.ask(Ask::Read, 1 << 20, &mut data).unwrap(), 0);
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let mut files = std::fs::read_dir(server.path("state")).unwrap();
    let file = files.next().unwrap().unwrap().path();
    let kept = || std::fs::read(&file).unwrap();
    assert_eq!(kept()[BITS as usize] & 1 << (23 / 8), 0, "{file:?}");
    server.limit_files("unlimited");
    done(&server, &["resume"]);
    reaches(&server, "done");
    assert_eq!(status(&server)["unreadable_sectors"], 1);
    let kept = kept();
    let lines = String::from_utf8_lossy(&kept[20_480..]);
    assert!(lines.contains("unreadable 23 1 "), "{lines}");
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_write_that_cannot_be_noted_is_done_and_nothing_is_compared_ever_after() {
    let config = config("scrub = \"state\"\nsole_writer = true")
        .replace("store = \"disk0.img\"\ncreate = true", "store = \"memory\"");
    let mut server = limited("scrub-unnoted", &config);
    let hash = ["--hash", "hashes", "--idle", "1ms", "--block", "64KiB"];
    done(&server, &hash);
    let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    // Writes to the disk succeed, but the watch's file cannot have more than 8192 bytes.
    if !server.limit_files("8192") {
        return;
    }
    let mut data = [7; 4096];
    assert_eq!(client.ask(Ask::Write, 0, &mut data).unwrap(), 0);
    let mut back = [0; 4096];
    assert_eq!(client.ask(Ask::Read, 0, &mut back).unwrap(), 0);
    assert_eq!(back, data);
    server.limit_files("unlimited");
    drop(client);
    server.signal("KILL");
    server.end();
    let mut next = again_limited(server.directory.clone());
    // All that was written is gone with the memory, and would be named if it were compared.
    let out = done(&next, &hash);
    assert!(!out.contains("changed"), "{out}");
    assert!(out.contains("nothing hashed before counts"), "{out}");
    assert_eq!(status(&next)["hashes"]["compared"], 0);
    assert_eq!(next.terminate(), Some(0));
}

#[test]
fn hashes_are_refused_where_it_is_not_kept_what_was_written() {
    let mut server = Server::start("scrub-unkept", &config(""), &[]);
    let (exit, error) = refused(&server, &["--hash", "hashes"]);
    assert_eq!(exit, Some(1));
    assert!(error.contains("--hash takes scrub = "), "{error}");
    let (exit, error) = refused(&server, &["status", "--hash", "hashes"]);
    assert_eq!(exit, Some(2), "{error}");
    assert!(!server.path("hashes").exists());
    assert_eq!(server.terminate(), Some(0));
}
