//! `headtime serve --run`: a command that runs beside the server, and the state for people.

use super::common::{Server, headtime, run, scratch, wait_until};
use super::nbd::{Ask, Client};
use std::fs;
use std::process::Output;
use std::time::Duration;

const DISK: &str =
    "[[disk]]\nname = \"disk0\"\ndevice = \"null\"\nsize = \"1GiB\"\nscheduler = \"noop\"\n";

/// Serves a null device beside a command, to the end of both.
fn beside(name: &str, config: &str, command: &str) -> Output {
    let directory = scratch(name);
    fs::write(directory.join("serve.toml"), config).unwrap();
    let output = run(&directory, &["serve", "serve.toml", "--run", command]);
    let _ = fs::remove_dir_all(&directory);
    output
}

fn words(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn a_server_ends_with_its_command_and_has_its_exit_code() {
    let config = format!("{DISK}[listen]\nnbd = \"unix:a b.sock\"\ncontrol = \"unix:c.sock\"\n");
    let command = "test -S \"$unixsocket\" && echo \"$uri $HEADTIME_CONTROL\"";
    let (code, out, error) = words(&beside("run-done", &config, command));
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(out, "nbd+unix:///disk0?socket=a%20b.sock c.sock\n");
    assert!(error.contains("disk disk0: 0 requests"), "{error}");
    let (code, _, error) = words(&beside("run-failed", &config, "exit 17"));
    assert_eq!(code, Some(17), "{error}");
    let said = "the command of --run ended with exit code 17";
    assert!(error.contains(said), "{error}");
    let (code, _, error) = words(&beside("run-killed", &config, "kill -KILL $$"));
    assert_eq!(code, Some(137), "{error}");
    let (code, _, error) = words(&beside("run-missing", &config, "no-such-command"));
    assert_eq!(code, Some(127), "{error}");
    // The server has stopped its disk first.
    assert!(error.contains("disk disk0: 0 requests"), "{error}");
}

#[test]
fn a_command_beside_several_exports_finds_the_first_by_name_and_the_others_at_the_socket() {
    let exports = "[[disk.export]]\nname = \"one\"\n[[disk.export]]\nname = \"two\"\n";
    let config = format!("{DISK}{exports}[listen]\nnbd = \"unix:n.sock\"\n");
    let command = "echo \"$uri $nbd\"";
    let (code, out, error) = words(&beside("run-exports", &config, command));
    assert_eq!(code, Some(0), "{error}");
    let nbd = "nbd:unix:n.sock:exportname=one";
    assert_eq!(out, format!("nbd+unix:///one?socket=n.sock {nbd}\n"));
}

#[test]
fn a_command_finds_a_socket_that_no_configuration_names() {
    let command = "test -S \"$unixsocket\" && echo \"$unixsocket\"";
    let (code, out, error) = words(&beside("run-nameless", DISK, command));
    assert_eq!(code, Some(0), "{error}");
    let socket = std::path::Path::new(out.trim_end());
    assert_eq!(socket.file_name().unwrap(), "nbd.sock");
    // The directory goes with the server.
    assert!(!socket.parent().unwrap().exists(), "{out}");
}

#[test]
fn a_server_that_is_told_to_end_ends_its_command() {
    let config = format!("{DISK}[listen]\nnbd = \"unix:nbd.sock\"\n");
    let arguments = ["--run", "touch up; exec sleep 60"];
    let mut server = Server::start("run-told", &config, &arguments);
    wait_until(|| server.path("up").exists(), || server.messages());
    // SIGTERM ends the command, too.
    assert_eq!(server.terminate(), Some(143), "{}", server.messages());
}

#[test]
fn late_completions_of_a_drive_end_with_an_exit_code_of_their_own() {
    let drive = "[[disk]]\nname = \"disk0\"\nemulate = \"wd5000aaks\"\nstore = \"memory\"\nsize = \"4GiB\"\nscheduler = \"noop\"\n";
    let config = format!("{drive}[listen]\nnbd = \"unix:nbd.sock\"\n");
    for (name, arguments, code) in [
        ("late", &["--on-time"][..], 6),
        ("late-warning", &[][..], 0),
    ] {
        let mut server = Server::start(name, &config, arguments);
        let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
        // The drive takes more than a second, and the server stands still meanwhile.
        for read in 0..400 {
            client
                .send(Ask::Read, read, (read * 37 % 64) << 26, 4096, &[])
                .unwrap();
        }
        server.signal("STOP");
        std::thread::sleep(Duration::from_millis(100));
        server.signal("CONT");
        for _ in 0..400 {
            assert_eq!(client.answer(&mut [0; 4096]).unwrap().error, 0);
        }
        drop(client);
        assert_eq!(server.terminate(), Some(code), "{}", server.messages());
        let late = "of completions were more than 0.5 ms late";
        assert!(server.messages().contains(late), "{}", server.messages());
    }
}

#[test]
fn a_check_runs_no_command() {
    let directory = scratch("run-check");
    let arguments = ["serve", "serve.toml", "--check", "--run", "touch up"];
    let output = headtime(&directory, &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(!directory.join("up").exists());
    let _ = fs::remove_dir_all(&directory);
}

#[test]
fn the_state_is_a_table_for_people_and_json_for_programs() {
    let listen = "[listen]\nnbd = \"unix:nbd.sock\"\ncontrol = \"unix:control.sock\"\n";
    let server = Server::start("state", &format!("{DISK}{listen}"), &[]);
    let state = server.told(&["status"]);
    let lines: Vec<&str> = state.lines().collect();
    assert!(
        lines[0].starts_with("headtime 0.") && lines[0].contains(", up "),
        "{state}"
    );
    assert_eq!(lines[2], "disk disk0: null, 1GiB", "{state}");
    let queue = "; 0 waiting, 0 in the drive, 0 timeouts";
    assert!(lines[3].ends_with(queue), "{state}");
    assert!(lines[4].starts_with("  export  reads  writes"), "{state}");
    assert!(lines[5].starts_with("  disk0       0       0"), "{state}");
    assert_eq!(server.status()["disks"][0]["name"], "disk0");
}
