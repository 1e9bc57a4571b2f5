//! A server serves and ends as it should when its output is blocked or lost.

use super::common::{Server, headtime, run, scratch, wait_until};
use super::nbd::{Ask, Client};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write, pipe};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const CONFIG: &str = r#"
[[disk]]
name = "disk0"
emulate = "atlas10k"
store = "store.img"
create = true
size = "64MiB"
scheduler = "deadline"
faults = true
[listen]
nbd = "unix:nbd.sock"
metrics = "127.0.0.1:0"
control = "unix:control.sock"
"#;

/// Number of messages that is more than a pipe and the server's buffer can hold.
const REFUSED: usize = 8000;

fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

/// Each refused connection makes a message, since there is no such export.
fn refused(server: &Server, count: usize) {
    for _ in 0..count {
        assert!(Client::connect(&server.path("nbd.sock"), "disk1").is_err());
    }
}

fn dropped(server: &Server) -> u64 {
    let dropped = server.status()["log_messages_dropped"].as_u64().unwrap();
    let line = format!("headtime_log_messages_dropped_total {dropped}");
    let metrics = server.told(&["metrics"]);
    assert!(metrics.lines().any(|found| found == line), "{metrics}");
    dropped
}

/// The server answers every client, and the written data are there after its end.
fn serves_and_flushes(server: &mut Server, draw: u8) {
    let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    let mut data = [draw; 4096];
    assert_eq!(client.ask(Ask::Write, 8192, &mut data).unwrap(), 0);
    assert_eq!(client.ask(Ask::Read, 8192, &mut [0; 512]).unwrap(), 0);
    dropped(server);
    drop(client);
    assert_eq!(server.terminate(), Some(0));
    let mut command = headtime(&server.directory, &["serve", "serve.toml", "--ready"]);
    let again = Server::spawn(server.directory.clone(), &mut command);
    let mut client = Client::connect(&again.path("nbd.sock"), "disk0").unwrap();
    let mut read = [0; 4096];
    assert_eq!(client.ask(Ask::Read, 8192, &mut read).unwrap(), 0);
    assert_eq!(read, data);
}

#[test]
fn a_server_whose_messages_find_a_full_file_system_serves_and_flushes() {
    let mut server = Server::start_telling("messages-full", CONFIG, full(), &[]);
    refused(&server, 20);
    serves_and_flushes(&mut server, 1);
}

#[test]
fn a_server_whose_messages_reader_has_gone_serves_and_flushes() {
    let (reader, writer) = pipe().unwrap();
    let mut server = Server::start_telling("messages-gone", CONFIG, writer, &[]);
    drop(reader);
    refused(&server, 20);
    serves_and_flushes(&mut server, 2);
}

#[test]
fn a_server_whose_messages_nobody_reads_serves_and_flushes() {
    let (reader, writer) = pipe().unwrap();
    let mut server = Server::start_telling("messages-unread", CONFIG, writer, &[]);
    refused(&server, REFUSED);
    assert!(dropped(&server) > 0);
    serves_and_flushes(&mut server, 3);
    drop(reader);
}

#[test]
fn a_second_signal_ends_a_server_whose_messages_nobody_reads() {
    let (reader, writer) = pipe().unwrap();
    let mut server = Server::start_telling("messages-twice", CONFIG, writer, &[]);
    refused(&server, 2000);
    let _client = server.stalled_read();
    server.signal("TERM");
    // It takes no clients any more.
    wait_until(
        || UnixStream::connect(server.path("nbd.sock")).is_err(),
        || "it does not end".to_owned(),
    );
    let begun = Instant::now();
    server.signal("TERM");
    assert_eq!(server.end(), Some(5));
    assert!(begun.elapsed() < Duration::from_secs(5));
    drop(reader);
}

/// A reader who resumes reading finds the place and number of missing messages, and the messages after them.
#[test]
fn a_reader_who_comes_back_is_told_what_is_missing() {
    let (reader, writer) = pipe().unwrap();
    let mut server = Server::start_telling("messages-back", CONFIG, writer, &[]);
    refused(&server, REFUSED);
    let missing = dropped(&server);
    assert!(missing > 0);
    let mut lines = BufReader::new(reader).lines().map(Result::unwrap);
    let refused_line = |line: &str| line.contains("there is no export \"disk1\"");
    let mut seen = 0;
    let told = loop {
        let line = lines.next().unwrap();
        if line.contains("were dropped") {
            break line;
        }
        // Each line is whole.
        let is_first = seen == 0 && !refused_line(&line);
        let closed =
            line.ends_with("WARN a connection was closed: handshake: there is no export \"disk1\"");
        assert!(is_first || closed, "{line}");
        seen += usize::from(refused_line(&line));
    };
    let expected =
        format!("Z  WARN {missing} messages were dropped here: standard error did not take them");
    assert!(told.ends_with(&expected), "{told}");
    assert_eq!(seen + missing as usize, REFUSED);
    assert_eq!(dropped(&server), missing);
    // From here on no message is dropped.
    refused(&server, 1);
    assert!(refused_line(&lines.next().unwrap()));
    server.signal("TERM");
    let rest: Vec<String> = lines.collect();
    assert!(rest[0].contains("ending"), "{rest:?}");
    assert!(rest.last().unwrap().starts_with("disk disk0: "), "{rest:?}");
    assert_eq!(server.end(), Some(0));
}

/// A limit of files' sizes ends a process by a signal, if it does not ignore that.
#[test]
fn a_server_whose_messages_are_a_file_at_its_limit_serves() {
    let directory = scratch("messages-limit");
    // A store in memory is a file for the kernel.
    let emulated = "emulate = \"atlas10k\"\nstore = \"store.img\"\ncreate = true";
    let config = CONFIG.replacen(emulated, "device = \"null\"", 1);
    fs::write(directory.join("serve.toml"), config).unwrap();
    let shell = "ulimit -f 0 && exec \"$0\" serve serve.toml --ready";
    let own = env!("CARGO_BIN_EXE_headtime");
    let mut command = Command::new("sh");
    command
        .args(["-c", shell, own])
        .current_dir(&directory)
        .stdin(Stdio::null())
        .env_remove("HEADTIME_LOG");
    let mut server = Server::spawn(directory, &mut command);
    refused(&server, 20);
    let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    assert_eq!(client.ask(Ask::Write, 8192, &mut [1; 512]).unwrap(), 0);
    drop(client);
    assert_eq!(server.messages(), "");
    assert_eq!(server.terminate(), Some(0));
}

/// Waits until a server that prints nothing accepts connections.
fn is_up(directory: &Path) {
    wait_until(
        || UnixStream::connect(directory.join("nbd.sock")).is_ok(),
        || "no server".to_owned(),
    );
}

/// Signals the server, which is the child or a process of its own. Returns the child's exit code. A child that does
/// not end is killed.
fn ends(child: &mut Child, server: &str) -> Option<i32> {
    let told = Command::new("kill")
        .args(["-TERM", server])
        .status()
        .unwrap();
    assert!(told.success());
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(30) {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    panic!("it does not end: {:?}", child.wait());
}

/// Clients may be there before who waits for the line.
#[test]
fn a_server_that_cannot_say_that_it_is_ready_serves_and_says_why() {
    let (reader, gone) = pipe().unwrap();
    drop(reader);
    for (name, to, error) in [
        ("ready-full", Stdio::from(full()), "No space left on device"),
        ("ready-gone", Stdio::from(gone), "Broken pipe"),
    ] {
        let directory = scratch(name);
        fs::write(directory.join("serve.toml"), CONFIG).unwrap();
        let messages = File::create(directory.join("messages")).unwrap();
        let mut child = headtime(&directory, &["serve", "serve.toml", "--ready"])
            .stdout(to)
            .stderr(messages)
            .spawn()
            .unwrap();
        is_up(&directory);
        let mut client = Client::connect(&directory.join("nbd.sock"), "disk0").unwrap();
        assert_eq!(client.ask(Ask::Write, 0, &mut [7; 512]).unwrap(), 0);
        drop(client);
        let pid = child.id().to_string();
        assert_eq!(ends(&mut child, &pid), Some(0));
        let said = fs::read_to_string(directory.join("messages")).unwrap();
        let expected = format!("standard output: cannot write that the server is ready: {error}");
        assert!(said.contains(&expected), "{said}");
        let kept = fs::read(directory.join("store.img")).unwrap();
        assert_eq!(kept[..512], [7; 512]);
        fs::remove_dir_all(&directory).unwrap();
    }
}

#[test]
fn a_server_whose_ready_line_nobody_takes_serves() {
    let directory = scratch("ready-stuck");
    fs::write(directory.join("serve.toml"), CONFIG).unwrap();
    let (reader, mut writer) = pipe().unwrap();
    // The pipe is full to the last byte, since a pipe takes at most a page whole or not at all.
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    for piece in [4096, 1] {
        while writer.write(&vec![b'x'; piece]).is_ok() {}
    }
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
    let mut child = headtime(&directory, &["serve", "serve.toml", "--ready"])
        .stdout(writer)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    is_up(&directory);
    let mut client = Client::connect(&directory.join("nbd.sock"), "disk0").unwrap();
    assert_eq!(client.ask(Ask::Write, 0, &mut [7; 512]).unwrap(), 0);
    drop(client);
    let pid = child.id().to_string();
    assert_eq!(ends(&mut child, &pid), Some(0));
    drop(reader);
    fs::remove_dir_all(&directory).unwrap();
}

const FORGED: &str =
    "x\"\n2026-11-22T00:00:00.000000Z ERROR \u{1b}[31mdisk disk0: all is lost\r\u{9b}2K\u{202e}";

#[test]
fn an_export_name_with_line_breaks_and_escapes_stays_one_message_in_text_and_json() {
    let mut long = FORGED.to_owned();
    long.extend(std::iter::repeat_n('\n', 4096 - FORGED.len()));
    for (name, args) in [
        ("forged-text", vec![]),
        ("forged-json", vec!["--log-format", "json"]),
    ] {
        let mut server = Server::start(name, CONFIG, &args);
        for name in [FORGED, &long] {
            assert!(Client::connect(&server.path("nbd.sock"), name).is_err());
        }
        assert_eq!(server.terminate(), Some(0));
        let messages = server.messages();
        let escapes = |char: char| char.is_control() && char != '\n' || char == '\u{202e}';
        assert!(!messages.contains(escapes), "{messages:?}");
        let lines: Vec<&str> = messages.lines().collect();
        let about = lines.iter().filter(|line| line.contains("all is lost"));
        assert_eq!(about.clone().count(), 2, "{messages}");
        for line in about {
            assert!(line.contains("a connection was closed: handshake: there is no export"));
            assert!(line.len() < 1000, "{line}");
        }
        assert!(!messages.contains("\n2026-11-22T00:00:00.000000Z"));
        let times = lines.iter().filter(|line| {
            line.starts_with("20") || serde_json::from_str::<serde_json::Value>(line).is_ok()
        });
        // All but the summary.
        assert_eq!(times.count() + 1, lines.len(), "{messages}");
    }
}

/// Text of the configuration appears in errors, and a terminal must not obey it.
#[test]
fn an_error_about_a_configuration_with_escapes_is_one_line() {
    let directory = scratch("forged-error");
    let config = CONFIG.replacen("\"deadline\"", "\"dead\\nerror: \\u001b[31mline\"", 1);
    fs::write(directory.join("serve.toml"), config).unwrap();
    let output = run(&directory, &["serve", "serve.toml"]);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(!said.trim_end().contains(char::is_control), "{said:?}");
    assert!(said.contains("dead\\nerror: \\u{1b}[31mline"), "{said}");
    // Names of files are escaped, too.
    let config = CONFIG.replacen("\"store.img\"", "\"store\\ncontrol at x\"", 1);
    fs::write(directory.join("serve.toml"), config).unwrap();
    let output = run(&directory, &["serve", "serve.toml", "--check"]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(
        told.starts_with("disk disk0: atlas10k in store\\ncontrol at x, 64MiB"),
        "{told}"
    );
    assert_eq!(told.lines().count(), 5, "{told}");
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_disk_that_is_not_there_is_no_message() {
    let mut server = Server::start("forged-disk", CONFIG, &[]);
    let mut stream = UnixStream::connect(server.path("control.sock")).unwrap();
    let request = "POST /disks/x%0Aforged%1B%5B0m/power-on HTTP/1.1\r\nHost: x\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    let why = "\r\n\r\nno disk `x\\nforged\\u{1b}[0m`; there is disk0\n";
    assert!(answer.ends_with(why), "{answer}");
    assert_eq!(server.terminate(), Some(0));
    assert!(
        !server.messages().contains("forged"),
        "{}",
        server.messages()
    );
}

/// Runs a shell's text on a terminal of its own; `None` if there is no program for that.
fn on_a_terminal(directory: &Path, shell: &str) -> Option<Command> {
    if Command::new("script").arg("--version").output().is_err() {
        println!("skipped: there is no script(1)");
        return None;
    }
    fs::write(directory.join("serve.toml"), CONFIG).unwrap();
    let mut command = Command::new("script");
    command
        .args(["-qefc", shell, "/dev/null"])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .env("SHELL", "/bin/sh")
        .env_remove("NO_COLOR")
        .env_remove("HEADTIME_LOG");
    Some(command)
}

#[test]
fn on_a_terminal_the_level_has_a_colour() {
    let directory = scratch("terminal");
    let own = env!("CARGO_BIN_EXE_headtime");
    let shell = format!("echo $$ > pid && exec {own} serve serve.toml");
    let Some(mut command) = on_a_terminal(&directory, &shell) else {
        return;
    };
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines.find_map(|line| line.ok().filter(|line| line.contains("ready nbd=")));
    let pid = fs::read_to_string(directory.join("pid")).unwrap();
    assert_eq!(ends(&mut child, pid.trim()), Some(0));
    let ready = ready.expect("it says so");
    let colours = "Z \u{1b}[32m INFO\u{1b}[0m ready nbd=unix:nbd.sock";
    assert!(ready.contains(colours), "{ready:?}");
    fs::remove_dir_all(&directory).unwrap();
}

/// The terminal stops background processes that write, unless they ignore the signal.
#[test]
fn in_the_background_of_a_terminal_that_stops_writers_a_server_serves() {
    let directory = scratch("background");
    let own = env!("CARGO_BIN_EXE_headtime");
    let shell = format!("set -m; stty tostop; {own} serve serve.toml & echo $! > pid; wait $!");
    let Some(mut command) = on_a_terminal(&directory, &shell) else {
        return;
    };
    let mut child = command.env("NO_COLOR", "1").spawn().unwrap();
    is_up(&directory);
    let mut client = Client::connect(&directory.join("nbd.sock"), "disk0").unwrap();
    assert_eq!(client.ask(Ask::Write, 0, &mut [7; 512]).unwrap(), 0);
    drop(client);
    let pid = fs::read_to_string(directory.join("pid")).unwrap();
    assert_eq!(ends(&mut child, pid.trim()), Some(0));
    let kept = fs::read(directory.join("store.img")).unwrap();
    assert_eq!(kept[..512], [7; 512]);
    fs::remove_dir_all(&directory).unwrap();
}

/// A directory of a configuration and of a pipe.
fn with_pipe(name: &str) -> PathBuf {
    let directory = scratch(name);
    fs::write(directory.join("serve.toml"), CONFIG).unwrap();
    let pipe = directory.join("events");
    let made = Command::new("mkfifo").arg(pipe).status().unwrap();
    assert!(made.success());
    directory
}

/// A pipe that is opened at once, as somebody has both ends.
fn both_ends(directory: &Path) -> File {
    let pipe = directory.join("events");
    File::options().read(true).write(true).open(pipe).unwrap()
}

#[test]
fn a_log_to_a_pipe_that_nobody_reads_is_refused() {
    let directory = with_pipe("log-nobody");
    let (tell, told) = mpsc::channel();
    let there = directory.clone();
    std::thread::spawn(move || {
        let output = run(&there, &["serve", "serve.toml", "--log", "events"]);
        tell.send(output).unwrap();
    });
    let output = told.recv_timeout(Duration::from_secs(30));
    let output = output.expect("it is not waited for who might read it");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    let expected = "error: events: is a pipe that nobody reads, or a socket\n";
    assert!(said.ends_with(expected), "{said}");
    assert!(!directory.join("store.img").exists());
    fs::remove_dir_all(&directory).unwrap();
}

/// The log ends, and says so; neither the disk nor the server do.
#[test]
fn a_log_that_is_not_read_any_more_ends_alone() {
    let directory = with_pipe("log-unread");
    let reader = both_ends(&directory);
    rustix::pipe::fcntl_setpipe_size(&reader, 4096).unwrap();
    let args = ["serve", "serve.toml", "--ready", "--log", "events"];
    let mut command = headtime(&directory, &args);
    let mut server = Server::spawn(directory, &mut command);
    let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    for number in 0..500 {
        assert_eq!(
            client.ask(Ask::Read, number * 512, &mut [0; 512]).unwrap(),
            0
        );
    }
    assert_eq!(client.ask(Ask::Write, 0, &mut [7; 512]).unwrap(), 0);
    drop(client);
    // It waits ten seconds for its log.
    assert_eq!(server.terminate(), Some(4));
    let messages = server.messages();
    assert!(
        messages.contains("ERROR the log ends here: nothing of it was taken for 10 s"),
        "{messages}"
    );
    assert!(
        messages.contains("disk disk0: 501 requests, 0 failed"),
        "{messages}"
    );
    let expected = "error: disk disk0: the log: nothing of it was taken for 10 s\n";
    assert!(messages.ends_with(expected), "{messages}");
    assert_eq!(fs::read(server.path("store.img")).unwrap()[..512], [7; 512]);
    drop(reader);
}

#[test]
fn a_log_to_a_pipe_that_is_read_replays() {
    let directory = with_pipe("log-pipe");
    let first = both_ends(&directory);
    let args = ["serve", "serve.toml", "--ready", "--log", "events"];
    let mut command = headtime(&directory, &args);
    let mut server = Server::spawn(directory, &mut command);
    // From now on it is open for writing by the server alone.
    let reader = File::open(server.path("events")).unwrap();
    drop(first);
    let reads = std::thread::spawn(move || {
        let mut log = String::new();
        { reader }.read_to_string(&mut log).unwrap();
        log
    });
    let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    for number in 0..500 {
        assert_eq!(
            client.ask(Ask::Read, number * 512, &mut [0; 512]).unwrap(),
            0
        );
    }
    drop(client);
    assert_eq!(server.terminate(), Some(0));
    fs::write(server.path("copy"), reads.join().unwrap()).unwrap();
    let output = run(&server.directory, &["sim", "replay-log", "copy"]);
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(out.contains("identical"), "{out}");
}
