//! Faults of the environment, drawn from one seed, while clients of NBD, HTTP and control go on.
//!
//! An oracle knows the writes that each sector may hold. A write that failed or was interrupted may have happened or not. Each error needs a
//! fault that explains the error. Limits of memory may end the server by an abort. Nothing else may.
//!
//! `HEADTIME_SWARM_SEED` and `HEADTIME_SWARM_STEPS` take the place of 1 and 2,000. With `HEADTIME_ALL_CASES` some stops last 10 s.

use super::common::{Server, scratch, wait_until};
use super::nbd::{Ask, Client};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Error, ErrorKind, PipeReader, Read, Result, Write, pipe};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

const CONFIG: &str = r#"
[[disk]]
name = "drive"
emulate = "wd5000aaks"
store = "small/store.img"
create = true
size = "2MiB"
scheduler = "deadline"
timeout = "2s"
faults = true

[[disk]]
name = "file"
device = "small/file.img"
create = true
direct = false
size = "2MiB"
scheduler = "stream(deadline)"
timeout = "2s"
[[disk.export]]
name = "file"
[[disk.export]]
name = "reader"
read_only = true

[listen]
nbd = "unix:nbd.sock"
metrics = "127.0.0.1:0"
control = "unix:control.sock"
"#;

const SECTOR: usize = 512;
const SECTORS: u64 = (2 << 20) / SECTOR as u64;
const DRIVE: usize = 0;
const FILE: usize = 1;
const DISKS: [usize; 2] = [DRIVE, FILE];

/// Bytes of the file system with stores and logs: room for both disks and some log.
const SMALL: u64 = 8 << 20;

/// Most unanswered requests of a disk's client.
const PENDING_MAX: usize = 4;

/// Numbers of a seed (xorshift64*).
struct Draws(u64);

impl Draws {
    /// The numbers of a step. They do not depend on answers to earlier steps.
    fn of_step(seed: u64, step: u64) -> Draws {
        let mixed = (seed << 32 ^ step).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Draws(mixed ^ mixed >> 32 | 1)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % limit
    }

    fn of<T: Copy, const N: usize>(&mut self, all: [T; N]) -> T {
        all[self.below(N as u64) as usize]
    }

    /// A run of sectors: short, or longer than a request of the engine.
    fn run(&mut self) -> (u64, u64) {
        let longest = self.of([8, 8, 200, 2000]);
        let count = 1 + self.below(longest);
        (self.below(SECTORS - count), count)
    }
}

/// Numbers of the writes that a sector may hold. Number 0 is zeroes.
#[derive(Clone)]
struct Sector {
    now: Vec<u32>,
    /// Numbers of the writes that may be left after a power cut or a kill.
    after: Vec<u32>,
}

fn add(writes: &mut Vec<u32>, write: u32) {
    if !writes.contains(&write) {
        writes.push(write);
    }
}

/// A request without an answer. No other request of its disk has any of its sectors.
struct Pending {
    ask: Ask,
    cookie: u64,
    at: u64,
    count: u64,
    write: u32,
}

/// A disk with its client, and the contents that the disk may have.
struct Disk {
    name: &'static str,
    client: Client,
    pending: Vec<Pending>,
    sectors: Vec<Sector>,
    /// True while a fault explains errors.
    excused: bool,
}

impl Disk {
    fn settle(&mut self, request: &Pending, error: u32, data: &[u8]) {
        match request.ask {
            Ask::Read if error == 0 => self.has_read(request.at, data),
            Ask::Read | Ask::Flush => {}
            Ask::Write | Ask::Zeroes => {
                let end = request.at + request.count;
                for sector in &mut self.sectors[request.at as usize..end as usize] {
                    if error == 0 {
                        sector.now.clear();
                    }
                    add(&mut sector.now, request.write);
                    add(&mut sector.after, request.write);
                }
            }
        }
    }

    /// Checks data that were read. From now on the disk holds them.
    fn has_read(&mut self, at: u64, data: &[u8]) {
        for (lba, bytes) in (at..).zip(data.chunks(SECTOR)) {
            let word = u64::from_be_bytes(bytes[..8].try_into().unwrap());
            let is_whole = bytes.chunks(8).all(|other| other == &bytes[..8]);
            assert!(is_whole, "{}: sector {lba} is torn", self.name);
            let (write, place) = ((word >> 32) as u32, word & u64::from(u32::MAX));
            let sector = &mut self.sectors[lba as usize];
            assert!(
                sector.now.contains(&write) && (write == 0 || place == lba),
                "{}: sector {lba} holds write {write} of sector {place}; allowed: {:?}",
                self.name,
                sector.now
            );
            sector.now = vec![write];
        }
    }

    fn crashed(&mut self) {
        for sector in &mut self.sectors {
            sector.now.clone_from(&sector.after);
        }
    }

    /// The contents are on the medium, except of these runs of sectors.
    fn flushed(&mut self, except: &[(u64, u64)]) {
        for (lba, sector) in (0..).zip(&mut self.sectors) {
            if !except.iter().any(|(at, end)| (*at..*end).contains(&lba)) {
                sector.after.clone_from(&sector.now);
            }
        }
    }

    /// Requests without an answer, which may have happened.
    fn interrupted(&mut self) {
        for request in std::mem::take(&mut self.pending) {
            self.settle(&request, EIO, &[]);
        }
    }
}

const EPERM: u32 = 1;
const EIO: u32 = 5;
const ENOSPC: u32 = 28;

fn data(write: u32, at: u64, count: u64) -> Vec<u8> {
    let word = |lba| u64::from(write) << 32 | lba;
    let sectors = (at..at + count).flat_map(|lba| [word(lba); SECTOR / 8]);
    sectors.flat_map(u64::to_be_bytes).collect()
}

/// A small file system, if this machine mounts one; else a directory.
struct Small {
    path: PathBuf,
    is_mounted: bool,
}

impl Small {
    fn new(path: PathBuf) -> Small {
        fs::create_dir_all(&path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={SMALL}"), "headtime"]);
        let is_mounted = succeeds(mount.arg(&path));
        if !is_mounted {
            println!("skipped: no tmpfs can be mounted, so no file system is full");
        }
        Small { path, is_mounted }
    }

    fn fill(&self) {
        if self.is_mounted {
            let mut ballast = File::create(self.path.join("ballast")).unwrap();
            while ballast.write_all(&[1; 4096]).is_ok() {}
        }
    }

    fn empty(&self) {
        let _ = fs::remove_file(self.path.join("ballast"));
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        if self.is_mounted {
            let _ = Command::new("umount").arg("-l").arg(&self.path).status();
        }
    }
}

fn succeeds(command: &mut Command) -> bool {
    let status = command.stdin(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Fails the test if an error says that no answer came in time.
fn no_hang(error: Error) -> Error {
    let is_late = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
    assert!(!is_late, "no answer in time");
    error
}

/// Sends a request of HTTP. Returns the status and the body.
fn http(
    mut stream: impl Read + Write,
    method: &str,
    path: &str,
    body: &str,
) -> Result<(u16, String)> {
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: h\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all((head + body).as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(no_hang)?;
    let status = answer.split(' ').nth(1).and_then(|text| text.parse().ok());
    let body = answer.split_once("\r\n\r\n");
    let broken = || {
        Error::new(
            ErrorKind::UnexpectedEof,
            format!("half an answer: {answer}"),
        )
    };
    let (status, (_, body)) = status.zip(body).ok_or_else(broken)?;
    Ok((status, body.to_owned()))
}

const PATIENCE: Option<Duration> = Some(Duration::from_secs(30));

struct Swarm {
    draws: Draws,
    small: Small,
    directory: PathBuf,
    /// True if a new server may have another monotonic clock, as after a new start of the machine.
    may_jump: bool,
    server: Option<Server>,
    /// Reader of standard error, if standard error is a pipe that nobody reads.
    unread: Option<PipeReader>,
    disks: Vec<Disk>,
    /// Number of the last write.
    write: u32,
    cookie: u64,
    /// Clients that do not read.
    idle: Vec<Client>,
    /// Connections that ask half a question.
    halves: Vec<UnixStream>,
    /// Sectors of the drive that are unreadable until they are written.
    unreadable: Vec<(u64, u64)>,
    /// True while the server may end.
    may_break: bool,
    /// True if a disk had a fault since the server's start.
    was_excused: bool,
    counts: BTreeMap<&'static str, u32>,
}

impl Swarm {
    fn start(seed: u64) -> Swarm {
        let directory = scratch("swarm");
        fs::write(directory.join("serve.toml"), CONFIG).unwrap();
        let may_jump = succeeds(Command::new("unshare").args(["--time", "true"]));
        if !may_jump {
            println!("skipped: no time namespace, so the clock does not jump");
        }
        let mut swarm = Swarm {
            draws: Draws::of_step(seed, 0),
            small: Small::new(directory.join("small")),
            directory,
            may_jump,
            server: None,
            unread: None,
            disks: Vec::new(),
            write: 0,
            cookie: 0,
            idle: Vec::new(),
            halves: Vec::new(),
            unreadable: Vec::new(),
            may_break: false,
            was_excused: false,
            counts: BTreeMap::new(),
        };
        swarm.serve();
        let zeroes = Sector {
            now: vec![0],
            after: vec![0],
        };
        for name in ["drive", "file"] {
            swarm.disks.push(Disk {
                name,
                client: swarm.connect(name),
                pending: Vec::new(),
                sectors: vec![zeroes.clone(); SECTORS as usize],
                excused: false,
            });
        }
        swarm
    }

    /// Starts the server, with a clock and a standard error that are drawn.
    fn serve(&mut self) {
        let (jump, error) = (self.draws.of([0, 0, 1, 100_000]), self.draws.below(5));
        let jump = format!("--monotonic={jump}");
        let mut words = Vec::new();
        if self.may_jump {
            words.extend(["unshare", "--time", &jump]);
        }
        if error == 0 {
            words.extend(["sh", "-c", "exec \"$0\" \"$@\" 2>&-"]);
        }
        words.extend([env!("CARGO_BIN_EXE_headtime"), "serve", "serve.toml"]);
        words.extend(["--ready", "--log", "small/events"]);
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(&self.directory);
        command.stdin(Stdio::null()).env("NO_COLOR", "1");
        for variable in ["HEADTIME_LOG", "NOTIFY_SOCKET", "RUST_BACKTRACE"] {
            command.env_remove(variable);
        }
        let directory = self.directory.clone();
        let _ = fs::remove_file(directory.join("messages"));
        self.unread = None;
        self.server = Some(match error {
            1 => {
                let full = File::options().write(true).open("/dev/full").unwrap();
                Server::spawn_telling(directory, &mut command, full)
            }
            2 | 3 => {
                let (reader, writer) = pipe().unwrap();
                self.unread = Some(reader).filter(|_| error == 2);
                Server::spawn_telling(directory, &mut command, writer)
            }
            _ => Server::spawn(directory, &mut command),
        });
        self.was_excused = false;
    }

    fn server(&mut self) -> &mut Server {
        self.server.as_mut().expect("runs")
    }

    fn limit(&mut self, option: &str) {
        assert!(self.server().limit(option), "prlimit(1) is needed");
    }

    fn connect(&self, export: &str) -> Client {
        Client::connect(&self.directory.join("nbd.sock"), export).unwrap()
    }

    fn control(&self) -> Result<UnixStream> {
        let stream = UnixStream::connect(self.directory.join("control.sock"))?;
        stream.set_read_timeout(PATIENCE)?;
        Ok(stream)
    }

    fn post(&self, path: &str, body: &str) -> (u16, String) {
        http(self.control().unwrap(), "POST", path, body).unwrap()
    }

    /// Sends a command that has to succeed, or has nothing to do.
    fn told(&self, path: &str) {
        let (status, text) = self.post(path, "");
        assert!(status == 200 || status == 409, "{path}: {status} {text}");
    }

    /// Waits until all other clients have gone, with their requests.
    fn has_only_clients_of_disks(&self) {
        wait_until(
            || {
                let (_, text) = http(self.control().unwrap(), "GET", "/metrics", "").unwrap();
                text.contains("\nheadtime_nbd_connections 2.0\n")
            },
            || "a client that has gone is still there".to_owned(),
        );
    }

    fn excuse(&mut self, disks: &[usize]) {
        for disk in disks {
            self.disks[*disk].excused = true;
        }
        self.was_excused = true;
    }

    fn send(&mut self, disk: usize, ask: Ask) {
        let (at, count) = self.draws.run();
        self.send_run(disk, ask, at, count);
    }

    fn send_run(&mut self, disk: usize, ask: Ask, at: u64, count: u64) {
        let overlaps = |other: &Pending| at < other.at + other.count && other.at < at + count;
        let pending = &self.disks[disk].pending;
        if pending.len() >= PENDING_MAX || pending.iter().any(overlaps) {
            self.collect(disk);
        }
        let (mut write, mut bytes) = (0, Vec::new());
        if matches!(ask, Ask::Write) {
            self.write += 1;
            write = self.write;
            bytes = data(write, at, count);
        }
        self.cookie += 1;
        let cookie = self.cookie;
        let disk = &mut self.disks[disk];
        disk.pending.push(Pending {
            ask,
            cookie,
            at,
            count,
            write,
        });
        let (offset, len) = (at * SECTOR as u64, count as u32 * SECTOR as u32);
        let sent = disk.client.send(ask, cookie, offset, len, &bytes);
        assert!(sent.is_ok() || self.may_break, "{sent:?}");
    }

    /// Takes the answers to all requests. Returns true if a flush among them succeeded.
    fn collect(&mut self, disk: usize) -> bool {
        let (disk, may_break) = (&mut self.disks[disk], self.may_break);
        let mut has_flushed = false;
        while !disk.pending.is_empty() {
            let mut data = Vec::new();
            let mut answer = || {
                let answer = disk.client.reply()?;
                let place = disk
                    .pending
                    .iter()
                    .position(|request| request.cookie == answer.cookie);
                let request = &disk.pending[place.expect("an answer to a request")];
                if matches!(request.ask, Ask::Read) && answer.error == 0 {
                    data.resize(request.count as usize * SECTOR, 0);
                    disk.client.read(&mut data)?;
                }
                Ok((place.unwrap(), answer.error))
            };
            match answer().map_err(no_hang) {
                Ok((place, error)) => {
                    let request = disk.pending.swap_remove(place);
                    disk.settle(&request, error, &data);
                    has_flushed |= matches!(request.ask, Ask::Flush) && error == 0;
                    let is_known = [EPERM, EIO, ENOSPC].contains(&error);
                    assert!(
                        error == 0 || is_known && disk.excused,
                        "{}: {:?} fails by error {error} without a reason",
                        disk.name,
                        request.ask
                    );
                }
                Err(error) => {
                    assert!(may_break, "{}: {error}", disk.name);
                    disk.interrupted();
                }
            }
        }
        has_flushed
    }

    /// A flush covers writes that were answered before.
    fn flush(&mut self, disk: usize) {
        let pending = self.disks[disk].pending.iter();
        let except: Vec<_> = pending
            .map(|request| (request.at, request.at + request.count))
            .collect();
        self.send_run(disk, Ask::Flush, 0, 0);
        if self.collect(disk) {
            self.disks[disk].flushed(&except);
        }
    }

    fn read_all(&mut self) {
        for disk in DISKS {
            for at in (0..SECTORS).step_by(2048) {
                self.send_run(disk, Ask::Read, at, 2048);
            }
            self.collect(disk);
        }
    }

    /// Ends all faults. From now on no error has a reason.
    fn mend(&mut self) {
        self.small.empty();
        self.limit("--fsize=unlimited:");
        self.told("/disks/drive/power-on");
        for disk in DISKS {
            self.collect(disk);
            let name = self.disks[disk].name;
            self.told(&format!("/disks/{name}/clear-failure"));
            self.disks[disk].client = self.connect(name);
            self.disks[disk].excused = false;
        }
        for (at, count) in std::mem::take(&mut self.unreadable) {
            self.send_run(DRIVE, Ask::Write, at, count);
        }
        for disk in DISKS {
            self.flush(disk);
        }
    }

    /// Ends the server amid writes, and starts another one.
    fn restart(&mut self, kills: bool) {
        // A client that does not read delays the end by ten seconds, and half a question by one.
        if self.draws.below(32) > 0 {
            self.idle.clear();
            self.halves.clear();
        }
        for disk in DISKS {
            self.send(disk, Ask::Write);
        }
        self.may_break = true;
        self.server().signal(if kills { "KILL" } else { "TERM" });
        for disk in DISKS {
            self.collect(disk);
        }
        let status = self.server().end_status();
        if kills {
            assert_eq!(status.signal(), Some(9));
        } else {
            let may_fail = self.was_excused && status.code() == Some(4);
            assert!(status.code() == Some(0) || may_fail, "{status}");
        }
        self.begin_anew(status.code() == Some(0));
    }

    /// Starts another server after the end of one.
    fn begin_anew(&mut self, has_flushed: bool) {
        self.check_messages();
        // The directory stays.
        self.server.take().expect("ran").keep();
        self.idle.clear();
        self.halves.clear();
        self.unreadable.clear();
        self.small.empty();
        self.serve();
        self.may_break = false;
        for disk in DISKS {
            let client = self.connect(self.disks[disk].name);
            let disk = &mut self.disks[disk];
            (disk.client, disk.excused) = (client, false);
            disk.interrupted();
            if has_flushed {
                disk.flushed(&[]);
            }
        }
        if !has_flushed {
            // The kernel has the contents of the file.
            self.disks[DRIVE].crashed();
        }
        self.read_all();
    }

    fn check_messages(&mut self) {
        let mut text = self.server().messages();
        if let Some(mut unread) = self.unread.take() {
            unread.read_to_string(&mut text).unwrap();
        }
        for line in text.lines() {
            // The last three are of Rust, when the server aborts.
            const BEGINS: [&str; 7] = [
                "20",
                "disk ",
                "warning: ",
                "error: ",
                "memory allocation of ",
                "note: run with `RUST_BACKTRACE=1`",
                "fatal runtime error: ",
            ];
            let is_message = BEGINS.iter().any(|begin| line.starts_with(begin));
            let is_plain = line.len() <= 4096 && !line.contains(char::is_control);
            assert!(is_message && is_plain, "{line:?} in:\n{text}");
            assert!(
                !line.contains("bug") && !line.contains("panicked"),
                "{text}"
            );
        }
    }

    fn get(&mut self) {
        let path = self.draws.of(["/status", "/metrics", "/nothing"]);
        let (status, text) = if self.draws.below(2) == 0 {
            http(self.control().unwrap(), "GET", path, "").unwrap()
        } else {
            let ready = self.server().ready.clone();
            let address = ready
                .split_whitespace()
                .find_map(|word| word.strip_prefix("metrics="));
            let stream = TcpStream::connect(address.expect("an address")).unwrap();
            stream.set_read_timeout(PATIENCE).unwrap();
            http(stream, "GET", path, "").unwrap()
        };
        assert_eq!(status == 200, path != "/nothing", "{path}: {status} {text}");
    }

    /// A client that goes amid its requests.
    fn vanish(&mut self, disk: usize) {
        self.idle.clear();
        self.halves.clear();
        self.has_only_clients_of_disks();
        self.send(disk, Ask::Write);
        self.send(disk, Ask::Read);
        self.disks[disk].client = self.connect(self.disks[disk].name);
        self.has_only_clients_of_disks();
        self.disks[disk].interrupted();
    }

    /// Stops the server for a while, amid requests.
    fn stop(&mut self) {
        let long = if std::env::var_os("HEADTIME_ALL_CASES").is_some() {
            10_000
        } else {
            100
        };
        let millis = self.draws.of([1, 1, 20, 20, 100, 100, 300, long]);
        let stop = format!(
            "kill -STOP $0; sleep {}; kill -CONT $0",
            millis as f64 / 1e3
        );
        let process = self.server().process().to_string();
        let mut stop = Command::new("sh")
            .args(["-c", &stop, &process])
            .spawn()
            .unwrap();
        for disk in DISKS {
            self.send(disk, Ask::Write);
            self.send(disk, Ask::Read);
        }
        self.get();
        for disk in DISKS {
            self.collect(disk);
        }
        assert!(stop.wait().unwrap().success());
    }

    /// A server without room for more files serves those who are connected, and the others afterwards.
    fn limit_of_files(&mut self) {
        self.limit("--nofile=12:");
        let path = self.directory.join("nbd.sock");
        let mut waiting = UnixStream::connect(path).unwrap();
        waiting.set_read_timeout(PATIENCE).unwrap();
        for disk in DISKS {
            self.send(disk, Ask::Write);
            self.send(disk, Ask::Read);
            self.flush(disk);
        }
        self.limit("--nofile=1024:");
        waiting.read_exact(&mut [0; 18]).unwrap();
    }

    /// Allocations fail. The server goes on, or aborts.
    fn limit_of_memory(&mut self) {
        self.excuse(&DISKS);
        self.may_break = true;
        let process = self.server().process();
        let pages = fs::read_to_string(format!("/proc/{process}/statm")).unwrap();
        // The whole address space, or data alone.
        let (limit, field) = self.draws.of([("as", 0), ("data", 5)]);
        let pages = pages.split_whitespace().nth(field).unwrap();
        let room = self.draws.of([0, 64 << 10, 1 << 20, 8 << 20]);
        let bytes = pages.parse::<u64>().unwrap() * 4096 + room;
        self.limit(&format!("--{limit}={bytes}:"));
        for disk in DISKS {
            self.send(disk, Ask::Write);
            self.send(disk, Ask::Read);
        }
        let stream = self.control();
        let _ = stream.and_then(|stream| http(stream, "POST", "/disks/file/scheduler", "cfq"));
        let socket = self.directory.join("nbd.sock");
        let connect = |_| Client::connect(&socket, "reader").map_err(no_hang);
        let _clients: Vec<_> = (0..16).map(connect).collect();
        for disk in DISKS {
            self.collect(disk);
        }
        self.limit(&format!("--{limit}=unlimited:"));
        let status = self
            .control()
            .and_then(|stream| http(stream, "GET", "/status", ""));
        if status.is_ok() {
            self.may_break = false;
            return self.mend();
        }
        const ABORT: i32 = 6;
        assert_eq!(self.server().end_status().signal(), Some(ABORT));
        *self.counts.entry("aborts").or_default() += 1;
        self.begin_anew(false);
    }

    fn step(&mut self) {
        let disk = self.draws.below(2) as usize;
        let act = self.draws.below(1000);
        let act = match act {
            0..280 => {
                self.send(disk, Ask::Write);
                "write"
            }
            280..320 => {
                self.send(disk, Ask::Zeroes);
                "zeroes"
            }
            320..540 => {
                self.send(disk, Ask::Read);
                "read"
            }
            540..610 => {
                self.flush(disk);
                "flush"
            }
            610..660 => {
                self.collect(disk);
                "wait"
            }
            660..730 => {
                self.get();
                "http"
            }
            730..760 => {
                let text = self.draws.of(["noop", "deadline", "cfq", "nonsense"]);
                let path = format!("/disks/{}/scheduler", self.disks[disk].name);
                let (status, answer) = self.post(&path, text);
                assert_eq!(
                    status,
                    if text == "nonsense" { 400 } else { 200 },
                    "{answer}"
                );
                "control"
            }
            760..790 => {
                if self.halves.len() >= 8 {
                    self.halves.clear();
                }
                let (socket, half) = self.draws.of([
                    (
                        "control.sock",
                        "POST /disks/drive/power-cut HTTP/1.1\r\ncontent-le",
                    ),
                    ("nbd.sock", "\0\0\0\x03IHAVE"),
                ]);
                let mut stream = UnixStream::connect(self.directory.join(socket)).unwrap();
                stream.write_all(half.as_bytes()).unwrap();
                self.halves.push(stream);
                "half a question"
            }
            790..810 => {
                if self.idle.len() >= 6 {
                    self.idle.clear();
                }
                let mut client = self.connect("reader");
                for cookie in 0..8 {
                    client.send(Ask::Read, cookie, 0, 1 << 20, &[]).unwrap();
                }
                self.idle.push(client);
                "a client that does not read"
            }
            810..825 => {
                self.vanish(disk);
                "a client that vanishes"
            }
            825..845 => {
                self.stop();
                "stop"
            }
            845..855 => {
                self.limit_of_files();
                "limit of open files"
            }
            855..862 => {
                self.limit_of_memory();
                "limit of memory"
            }
            862..872 => {
                self.excuse(&DISKS);
                self.limit("--fsize=4096:");
                "limit of file sizes"
            }
            872..887 => {
                self.excuse(&DISKS);
                self.small.fill();
                "full file system"
            }
            887..902 => {
                self.excuse(&[DRIVE]);
                let lba = self.draws.below(SECTORS - 8);
                self.told(&format!(
                    "/disks/drive/fault?kind=unreadable&lba={lba}&sectors=8"
                ));
                self.unreadable.push((lba, 8));
                "unreadable sectors"
            }
            902..910 => {
                self.told("/disks/drive/fault?kind=stall&for=50ms");
                "stall"
            }
            910..912 => {
                self.excuse(&[DRIVE]);
                self.told("/disks/drive/fault?kind=lose-next");
                self.send(DRIVE, Ask::Read);
                self.collect(DRIVE);
                "a lost command"
            }
            912..922 => {
                self.excuse(&[DRIVE]);
                self.told("/disks/drive/power-cut");
                self.collect(DRIVE);
                self.disks[DRIVE].crashed();
                "power cut"
            }
            922..932 => {
                self.server().signal("HUP");
                "reload"
            }
            932..940 => {
                self.restart(false);
                "end"
            }
            940..945 => {
                self.restart(true);
                "kill"
            }
            _ => {
                self.mend();
                "mend"
            }
        };
        *self.counts.entry(act).or_default() += 1;
    }
}

fn number(key: &str, usual: u64) -> u64 {
    let text = std::env::var(key).ok();
    text.map_or(usual, |text| text.parse().expect("a number"))
}

#[test]
fn random_faults_of_the_environment_lose_nothing_and_stop_nobody() {
    let seed = number("HEADTIME_SWARM_SEED", 1);
    let steps = number("HEADTIME_SWARM_STEPS", 2_000);
    let mut swarm = Swarm::start(seed);
    for step in 1..=steps {
        // A failed test shows the last of these lines.
        println!("HEADTIME_SWARM_SEED={seed}, step {step}");
        swarm.draws = Draws::of_step(seed, step);
        swarm.step();
    }
    swarm.mend();
    swarm.restart(false);
    println!("{:?}", swarm.counts);
    assert_eq!(swarm.server().terminate(), Some(0));
}
