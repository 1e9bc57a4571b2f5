//! A start that fails leaves everything as it was.

use super::common::{Server, run, scratch};
use super::nbd::{Ask, Client};
use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;

const CONFIG: &str = r#"
[[disk]]
name = "drive"
emulate = "atlas10k"
store = "store.img"
size = "64MiB"
create = true
scheduler = "deadline"
[[disk]]
name = "file"
device = "disk.img"
size = "1MiB"
create = true
direct = false
scheduler = "noop"
[listen]
nbd = "unix:nbd.sock"
"#;

/// The names in a directory, in order.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> = entries
        .map(|entry| name(entry).to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// Runs a server that cannot start. Returns its error and the files in its directory afterwards.
fn fails(directory: &Path, config: &str, code: i32) -> (String, Vec<String>) {
    fs::write(directory.join("serve.toml"), config).unwrap();
    let args = ["serve", "serve.toml", "--ready", "--log", "events.log"];
    let output = run(directory, &args);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert!(output.stdout.is_empty(), "{error}");
    assert!(!error.contains("requests"), "nothing was served: {error}");
    (error, names(directory))
}

/// The second disk cannot be had, so the first is given back, and nothing listens.
#[test]
fn all_or_nothing() {
    let directory = scratch("undone");
    fs::write(directory.join("disk.img"), [0; 512]).unwrap();
    let (error, left) = fails(&directory, CONFIG, 3);
    let expected = "error: serve.toml:11: disk[1].device: ";
    assert!(error.contains(expected), "{error}");
    assert_eq!(left, ["disk.img", "serve.toml"]);
    fs::remove_dir_all(&directory).unwrap();
}

/// All disks are there, and a socket is not to be had.
#[test]
fn what_was_made_goes_and_what_was_there_stays() {
    let directory = scratch("sockets");
    let config = CONFIG.replacen("nbd.sock", "no/nbd.sock", 1);
    let (error, left) = fails(&directory, &config, 4);
    let expected = "error: serve.toml: listen.nbd: unix:no/nbd.sock: ";
    assert!(error.contains(expected), "{error}");
    assert_eq!(left, ["serve.toml"]);
    // Files of an earlier run, which never wrote the second file.
    let image = fs::File::create(directory.join("disk.img")).unwrap();
    image.set_len(1 << 20).unwrap();
    let mut content = vec![0; 64 << 20];
    content[4096] = 7;
    fs::write(directory.join("store.img"), &content).unwrap();
    fs::write(directory.join("events.log.drive"), "an earlier run's").unwrap();
    let (_, left) = fails(&directory, &config, 4);
    let there = ["disk.img", "events.log.drive", "serve.toml", "store.img"];
    assert_eq!(left, there);
    assert!(fs::read(directory.join("store.img")).unwrap() == content);
    let log = fs::read_to_string(directory.join("events.log.drive")).unwrap();
    assert_eq!(log, "an earlier run's");
    fs::remove_dir_all(&directory).unwrap();
}

/// A second start does not spoil the first server's log.
#[test]
fn a_log_is_one_servers() {
    let config =
        CONFIG
            .replacen("\"store.img\"", "\"memory\"", 1)
            .replacen("create = true\n", "", 1);
    let mut server = Server::start("logs", &config, &["--log", "events.log"]);
    let mut client = Client::connect(&server.path("nbd.sock"), "drive").unwrap();
    assert_eq!(client.ask(Ask::Write, 0, &mut [1; 512]).unwrap(), 0);
    drop(client);
    let (error, _) = fails(&server.directory, &config, 4);
    let expected = "events.log.drive: another server writes its log there";
    assert!(error.contains(expected), "{error}");
    assert_eq!(server.terminate(), Some(0));
    let replayed = run(
        &server.directory,
        &["sim", "replay-log", "events.log.drive"],
    );
    let out = String::from_utf8_lossy(&replayed.stdout);
    assert!(out.contains("identical"), "{out}");
    // The next run's log takes the place of this one's.
    let before = fs::read_to_string(server.path("events.log.drive")).unwrap();
    let mut command = super::common::headtime(
        &server.directory,
        &["serve", "serve.toml", "--ready", "--log", "events.log"],
    );
    let mut again = Server::spawn(server.directory.clone(), &mut command);
    assert_eq!(again.terminate(), Some(0));
    let after = fs::read_to_string(again.path("events.log.drive")).unwrap();
    assert!(after.len() < before.len(), "{before}\nthen\n{after}");
}

/// As a service manager does: a client connects to the socket before there is a server.
#[test]
fn an_inherited_socket_is_served_and_its_file_stays() {
    let directory = scratch("inherited");
    let config = CONFIG.replace("nbd = \"unix:nbd.sock\"", "control = \"unix:control.sock\"");
    fs::write(directory.join("serve.toml"), config).unwrap();
    let socket = directory.join("manager.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let early = UnixStream::connect(&socket).unwrap();
    // The process identity is the server's, which takes the place of the shell.
    let script = "exec 3<&0 0</dev/null; LISTEN_FDS=1 LISTEN_FDNAMES=headtime.socket LISTEN_PID=$$ exec \"$@\"";
    let mut command = Command::new("sh");
    command
        .args(["-c", script, "sh", env!("CARGO_BIN_EXE_headtime")])
        .args(["serve", "serve.toml", "--ready"])
        .current_dir(&directory)
        .stdin(OwnedFd::from(listener));
    let mut server = Server::spawn(directory, &mut command);
    let ready = format!(
        "ready nbd=unix:{} control=unix:control.sock\n",
        socket.display()
    );
    assert_eq!(server.ready, ready);
    let mut greeting = [0; 8];
    (&early).read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"NBDMAGIC");
    assert_eq!(Client::connect(&socket, "file").unwrap().bytes, 1 << 20);
    drop(early);
    assert_eq!(server.terminate(), Some(0));
    assert!(socket.exists(), "it is the manager's");
}
