//! Starts servers, and ends them in every case.

use super::nbd::{Ask, Client};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A directory of a test's own, empty. Not below the target directory: a socket's path has to be
/// short.
pub fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("headtime-serve-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("the directory for temporary files can be written to");
    path
}

/// The command, run in a directory.
pub fn headtime(directory: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headtime"));
    command
        .args(args)
        .current_dir(directory)
        .stdin(Stdio::null())
        .env("NO_COLOR", "1")
        .env_remove("HEADTIME_LOG")
        .env_remove("NOTIFY_SOCKET");
    command
}

/// Runs the command to its end.
pub fn run(directory: &Path, args: &[&str]) -> Output {
    headtime(directory, args)
        .output()
        .expect("the command can be started")
}

/// A server that is ready.
pub struct Server {
    pub directory: PathBuf,
    child: Child,
    /// True if the directory outlives the server.
    keeps: bool,
    /// The server's line on standard output.
    pub ready: String,
}

impl Server {
    /// Starts a server of a configuration, with further arguments.
    pub fn start(name: &str, config: &str, args: &[&str]) -> Server {
        let (directory, mut command) = Server::command(name, config, args);
        Server::spawn(directory, &mut command)
    }

    pub fn spawn(directory: PathBuf, command: &mut Command) -> Server {
        let messages = fs::File::create(directory.join("messages")).unwrap();
        Server::spawn_telling(directory, command, messages)
    }

    /// With its messages going elsewhere.
    pub fn start_telling(name: &str, config: &str, to: impl Into<Stdio>, args: &[&str]) -> Server {
        let (directory, mut command) = Server::command(name, config, args);
        Server::spawn_telling(directory, &mut command, to)
    }

    fn command(name: &str, config: &str, args: &[&str]) -> (PathBuf, Command) {
        let directory = scratch(name);
        fs::write(directory.join("serve.toml"), config).unwrap();
        let mut all = vec!["serve", "serve.toml", "--ready"];
        all.extend(args);
        let command = headtime(&directory, &all);
        (directory, command)
    }

    pub fn spawn_telling(
        directory: PathBuf,
        command: &mut Command,
        to: impl Into<Stdio>,
    ) -> Server {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(to)
            .spawn()
            .expect("the command can be started");
        let mut ready = String::new();
        let stdout = child.stdout.as_mut().expect("it is piped");
        BufReader::new(stdout).read_line(&mut ready).unwrap();
        let server = Server {
            directory,
            child,
            keeps: false,
            ready,
        };
        assert!(server.ready.starts_with("ready "), "{}", server.messages());
        server
    }

    /// Ends the server, and leaves the directory for another one.
    pub fn keep(mut self) {
        self.keeps = true;
    }

    /// Number of its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The server's messages on standard error, if they go to a file.
    pub fn messages(&self) -> String {
        let messages = fs::read(self.path("messages")).unwrap_or_default();
        String::from_utf8(messages).unwrap()
    }

    /// Waits until its messages have a text.
    pub fn wait_for(&self, text: &str) {
        wait_until(
            || self.messages().contains(text),
            || format!("no `{text}` in:\n{}", self.messages()),
        );
    }

    pub fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        let status = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(status.success());
    }

    /// From now on it may make files this long and no longer. Returns false if the machine has nothing that says so.
    pub fn limit_files(&self, bytes: &str) -> bool {
        self.limit(&format!("--fsize={bytes}:unlimited"))
    }

    /// Sets a limit of its process, as an option of prlimit(1).
    pub fn limit(&self, option: &str) -> bool {
        let mut limit = Command::new("prlimit");
        limit.arg(format!("--pid={}", self.child.id()));
        limit.arg(option);
        match limit.status() {
            Ok(status) => {
                assert!(status.success());
                true
            }
            Err(error) => {
                println!("skipped: no prlimit: {error}");
                false
            }
        }
    }

    /// Waits for its end; the exit code.
    pub fn end(&mut self) -> Option<i32> {
        self.end_status().code()
    }

    /// Waits for its end.
    pub fn end_status(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until(
            || {
                status = self.child.try_wait().unwrap();
                status.is_some()
            },
            || "the server does not end".to_owned(),
        );
        status.expect("it has ended")
    }

    /// Tells it to end, and waits.
    pub fn terminate(&mut self) -> Option<i32> {
        self.signal("TERM");
        self.end()
    }

    /// `headtime control`, with the server's socket.
    pub fn control(&self, args: &[&str]) -> Output {
        let mut all = vec!["control", "control.sock"];
        all.extend(args);
        run(&self.directory, &all)
    }

    /// Sends a command that has to succeed. Returns its output.
    pub fn told(&self, args: &[&str]) -> String {
        let output = self.control(args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn status(&self) -> serde_json::Value {
        serde_json::from_str(&self.told(&["status", "--json"])).unwrap()
    }

    /// A client whose read is in the first drive and stays there.
    pub fn stalled_read(&self) -> Client {
        let mut client = Client::connect(&self.path("nbd.sock"), "disk0").unwrap();
        self.told(&["fault", "stall", "disk0", "--for", "600s"]);
        client.send(Ask::Read, 1, 0, 4096, &[]).unwrap();
        wait_until(
            || self.status()["disks"][0]["in_flight"] == 1,
            || "the request does not reach the drive".to_owned(),
        );
        client
    }
}

/// A failed test leaves no server running, and a passed one no files.
impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(stdout) = &mut self.child.stdout {
            let mut rest = String::new();
            let _ = stdout.read_to_string(&mut rest);
        }
        if std::thread::panicking() {
            eprintln!("{}", self.messages());
        } else if !self.keeps {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// Tells threads of a test to end, also if the test fails. A scope would wait for them for ever.
pub struct Ended<'a>(pub &'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Waits, half a minute at most, until something holds.
pub fn wait_until(mut holds: impl FnMut() -> bool, what: impl Fn() -> String) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{}", what());
        std::thread::sleep(Duration::from_millis(10));
    }
}
