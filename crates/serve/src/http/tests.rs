//! Tests of slow, idle and too many clients, over real sockets.

use super::*;
use crate::disk::Options;
use crate::listen::Listen;
use crate::null::Null;
use headtime_sched::{Noop, WorkConserving};
use headtime_units::Sectors;
use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;

/// Longest time of a read. Longer than any test, so that hanging reads fail.
const PATIENCE: Duration = Duration::from_secs(20);

/// A time without effect in any test.
const AGES: Duration = Duration::from_secs(3600);

const SOON: Duration = Duration::from_millis(200);

struct Fixture {
    folder: PathBuf,
    metrics: SocketAddr,
    disk: Disk,
    end: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Fixture {
    fn new(limits: HttpLimits) -> Fixture {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("headtime-http-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).expect("makes a folder");
        let build = || Box::new(WorkConserving::new(Noop::new())) as Box<_>;
        let mut options = Options::new("one", Clock::start(), ("noop".into(), Box::new(build)));
        // The state of this many exports does not fit in a socket's buffer.
        options.exports = 1000;
        let disk = Disk::start(options, || {
            Ok::<_, Infallible>(Box::new(Null::new(Sectors::new(64), 32)) as Box<_>)
        })
        .expect("starts");
        let site = Arc::new(Site {
            disks: vec![Watched {
                disk: disk.clone(),
                backend: "null".to_owned(),
                exports: (0..1000)
                    .map(|number| (format!("export{number}"), disk.addresses()))
                    .collect(),
                members: vec![WatchedMember {
                    name: "one".to_owned(),
                    backend: "null".to_owned(),
                    faults: false,
                    parse_scheduler: Arc::new(|text| Err(format!("`{text}`: no such scheduler"))),
                }],
                scrubs: Arc::new(Scrubs::new(disk.clone(), "null", None, None)),
            }],
            nbd: None,
            goals: None,
            messages_dropped: Arc::default(),
            clock: Clock::start(),
            version: "0".to_owned(),
        });
        let (end, ended) = watch::channel(false);
        let (bound, binds) = std::sync::mpsc::channel();
        let control = folder.join("control");
        let thread = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime")
                .block_on(async {
                    let any = "127.0.0.1:0".parse().expect("an address");
                    let sockets =
                        Sockets::bind(Some(Listen::Tcp(any)), Some(Listen::unix(control))).await;
                    let sockets = sockets.expect("binds").with_limits(limits);
                    bound.send(sockets.metrics()).expect("somebody waits");
                    sockets.serve(site, ended).await;
                });
        });
        let metrics = binds.recv().expect("binds").expect("a port");
        Fixture {
            folder,
            metrics,
            disk,
            end,
            thread: Some(thread),
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("control")
    }

    fn watcher(&self) -> TcpStream {
        let stream = TcpStream::connect(self.metrics).expect("connects");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    fn controller(&self) -> UnixStream {
        let stream = UnixStream::connect(self.socket()).expect("connects");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// Waits for the end of the server.
    fn ended(&mut self) {
        self.end.send(true).expect("it runs");
        self.thread.take().expect("once").join().expect("no panic");
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.end.send(true);
        if let Some(thread) = self.thread.take()
            && !std::thread::panicking()
        {
            thread.join().expect("no panic");
        }
        let _ = self.disk.stop();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Reads until the server closes. The server may close before it has read the whole request.
fn rest(stream: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    if let Err(error) = stream.read_to_end(&mut bytes) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
    }
    String::from_utf8(bytes).expect("text")
}

/// Sends a request, and reads until the server closes.
fn ask(stream: &mut (impl Read + Write), request: &str) -> String {
    stream.write_all(request.as_bytes()).expect("asks");
    rest(stream)
}

const METRICS: &str = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

#[test]
fn a_connection_is_for_one_answer() {
    let fixture = Fixture::new(HttpLimits {
        whole: AGES,
        ..HttpLimits::default()
    });
    let answer = ask(&mut fixture.watcher(), METRICS);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert!(answer.ends_with("# EOF\n"), "{answer}");
    let mode = std::fs::metadata(fixture.socket()).expect("is there");
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
}

#[test]
fn who_asks_nothing_is_cut_off_and_the_next_is_heard() {
    let fixture = Fixture::new(HttpLimits {
        connections: 2,
        head: SOON,
        whole: AGES,
        ..HttpLimits::default()
    });
    let mut silent = fixture.watcher();
    let mut slow = fixture.watcher();
    slow.write_all(b"GET /metrics HTTP/1.1\r\nHost:")
        .expect("asks");
    // This client has to wait until the server cuts off one of the others.
    let answer = ask(&mut fixture.watcher(), METRICS);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    for stream in [&mut silent, &mut slow] {
        let rest = rest(stream);
        assert!(!rest.contains("200 OK"), "{rest}");
    }
}

#[test]
fn who_does_not_end_what_it_says_is_cut_off() {
    let fixture = Fixture::new(HttpLimits {
        connections: 1,
        head: AGES,
        whole: SOON,
        ..HttpLimits::default()
    });
    let mut slow = fixture.controller();
    let request =
        "POST /disks/one/scheduler HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nstream";
    assert_eq!(ask(&mut slow, request), "");
    let answer = client::ask(&fixture.socket(), "POST", "/disks/one/scheduler", "x");
    let answer = answer.expect("is heard");
    assert_eq!(
        (answer.status, &*answer.body),
        (400, "`x`: no such scheduler\n")
    );
}

#[test]
fn who_does_not_take_the_answer_is_cut_off() {
    let fixture = Fixture::new(HttpLimits {
        connections: 1,
        whole: SOON,
        ..HttpLimits::default()
    });
    let mut deaf = fixture.controller();
    deaf.write_all(b"GET /status HTTP/1.1\r\nHost: x\r\n\r\n")
        .expect("asks");
    // There is one slot, so the server accepts this client when the other one is gone.
    let answer = client::ask(&fixture.socket(), "POST", "/disks/one/scheduler", "x");
    assert_eq!(answer.expect("is heard").status, 400);
    let answer = rest(&mut deaf);
    let (head, body) = answer.split_once("\r\n\r\n").expect("a part of an answer");
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .expect("a length");
    assert!(body.len() < length.parse().expect("a number"), "{length}");
}

#[test]
fn those_who_watch_do_not_keep_out_those_who_control() {
    let fixture = Fixture::new(HttpLimits {
        connections: 1,
        head: AGES,
        whole: AGES,
        ..HttpLimits::default()
    });
    let _idle: Vec<TcpStream> = (0..5).map(|_| fixture.watcher()).collect();
    let answer = client::ask(&fixture.socket(), "GET", "/metrics", "").expect("is heard");
    assert_eq!(answer.status, 200);
}

#[test]
fn goals_of_a_server_without_programs_are_refused() {
    let fixture = Fixture::new(HttpLimits::default());
    for request in [
        "GET /qos",
        "POST /qos/mail/goal",
        "POST /qos/mail/profile/stop",
    ] {
        let head = format!("{request} HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n10s");
        let answer = ask(&mut fixture.controller(), &head);
        assert!(answer.starts_with("HTTP/1.1 409 "), "{answer}");
        assert!(
            answer.ends_with("no programs: the configuration has no [[qos.program]]\n"),
            "{answer}"
        );
    }
    // Watching clients cannot read or set goals.
    let answer = ask(
        &mut fixture.watcher(),
        "GET /qos HTTP/1.1\r\nHost: x\r\n\r\n",
    );
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
}

#[test]
fn what_is_too_long_is_refused() {
    let fixture = Fixture::new(HttpLimits::default());
    let long = "x".repeat(BODY_MAX + 1);
    let answer = client::ask(&fixture.socket(), "POST", "/disks/one/scheduler", &long);
    assert_eq!(answer.expect("is heard").status, 413);
    let mut request = "GET /metrics HTTP/1.1\r\nHost: x\r\n".to_owned();
    request.push_str(&format!("X: {}\r\n\r\n", "x".repeat(64 << 10)));
    let answer = ask(&mut fixture.watcher(), &request);
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[test]
fn the_end_waits_for_nobody_long() {
    let mut fixture = Fixture::new(HttpLimits {
        head: AGES,
        whole: AGES,
        drain: SOON,
        ..HttpLimits::default()
    });
    let mut silent = fixture.watcher();
    let mut slow = fixture.controller();
    slow.write_all(b"GET /metrics").expect("asks");
    fixture.ended();
    assert_eq!(rest(&mut silent), "");
    assert_eq!(rest(&mut slow), "");
    assert!(!fixture.socket().exists());
}

#[tokio::test]
async fn where_others_could_come_in_nothing_listens() {
    let address = "192.0.2.1:80".parse().expect("an address");
    let error = Sockets::bind(Some(Listen::Tcp(address)), None).await;
    let error = error.expect_err("not loopback");
    assert!(
        error.to_string().starts_with("tcp:192.0.2.1:80: only"),
        "{error}"
    );
}
