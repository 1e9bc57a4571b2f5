//! Questions and commands to a running server.

use super::common::{Server, wait_until};
use super::nbd::{Ask, Client};
use headtime_serve::http::client::ask;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

const CONFIG: &str = r#"
[[disk]]
name = "disk0"
emulate = "atlas10k"
store = "memory"
size = "64MiB"
scheduler = "deadline"
faults = true
[[disk]]
name = "disk1"
device = "null"
size = "1MiB"
scheduler = "noop"
[listen]
nbd = "unix:nbd.sock"
metrics = "127.0.0.1:0"
control = "unix:control.sock"
"#;

/// Sends an HTTP request over TCP, as a browser would.
fn get(server: &Server, request: &str) -> String {
    let address = server.ready.split_once("metrics=").unwrap().1;
    let address = address.split_whitespace().next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn metric(text: &str, key: &str) -> f64 {
    let line = text.lines().find(|line| line.starts_with(key));
    let line = line.unwrap_or_else(|| panic!("no {key} in:\n{text}"));
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

#[test]
fn metrics_status_and_what_only_the_owner_may() {
    let mut server = Server::start("control", CONFIG, &[]);
    let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    assert_eq!(client.bytes, 64 << 20);
    let mut written = [7; 8192];
    assert_eq!(client.ask(Ask::Write, 4096, &mut written).unwrap(), 0);
    assert_eq!(client.ask(Ask::Flush, 0, &mut []).unwrap(), 0);
    let mut read = [0; 8192];
    assert_eq!(client.ask(Ask::Read, 4096, &mut read).unwrap(), 0);
    assert_eq!(read, written);

    // There is no such export, so it is let go.
    assert!(Client::connect(&server.path("nbd.sock"), "disk2").is_err());
    const FAILED: &str = "headtime_nbd_connections_failed_total";
    wait_until(
        || metric(&get(&server, "GET /metrics"), FAILED) == 1.0,
        || "a connection that failed is not counted".to_owned(),
    );

    let text = get(&server, "GET /metrics");
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(text.contains("application/openmetrics-text"), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
    for (key, value) in [
        (
            "headtime_requests_total{disk=\"disk0\",export=\"disk0\",op=\"write\"}",
            1.0,
        ),
        (
            "headtime_requests_total{disk=\"disk0\",export=\"disk0\",op=\"flush\"}",
            1.0,
        ),
        (
            "headtime_data_bytes_total{disk=\"disk0\",export=\"disk0\",op=\"read\"}",
            8192.0,
        ),
        (
            "headtime_request_seconds_count{disk=\"disk0\",export=\"disk0\"}",
            3.0,
        ),
        ("headtime_lateness_seconds_count{disk=\"disk0\"}", 3.0),
        ("headtime_disk_failed{disk=\"disk1\"}", 0.0),
        ("headtime_nbd_connections", 1.0),
        ("headtime_nbd_connections_accepted_total", 2.0),
        ("headtime_nbd_connections_turned_away_total", 0.0),
        (FAILED, 1.0),
    ] {
        assert_eq!(metric(&text, key), value, "{key}");
    }
    assert!(
        metric(
            &text,
            "headtime_head_time_seconds_total{disk=\"disk0\",part=\"idle\"}"
        ) > 0.0
    );
    assert!(get(&server, "GET /status").contains("\"scheduler\": \"deadline\""));
    // Requests with an effect are not served over loopback.
    for request in [
        "POST /disks/disk0/power-cut",
        "GET /disks/disk0/power-cut",
        "GET /x",
    ] {
        assert!(
            get(&server, request).starts_with("HTTP/1.1 404"),
            "{request}"
        );
    }
    let mode = |name: &str| server.path(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("control.sock"), mode("nbd.sock")), (0o600, 0o600));

    let status = server.status();
    assert_eq!(status["disks"][0]["exports"][0]["requests"]["write"], 1);
    assert_eq!(status["disks"][1]["backend"], "null");
    assert_eq!(server.told(&["metrics"]).lines().last(), Some("# EOF"));
    assert_eq!(server.terminate(), Some(0));
    assert!(!server.path("control.sock").exists());
}

#[test]
fn faults_on_request() {
    let server = Server::start("faults", CONFIG, &[]);
    let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    let mut data = [1; 4096];
    assert_eq!(client.ask(Ask::Write, 0, &mut data).unwrap(), 0);
    assert_eq!(client.ask(Ask::Flush, 0, &mut []).unwrap(), 0);

    server.told(&[
        "fault",
        "unreadable",
        "disk0",
        "--lba",
        "1000",
        "--sectors",
        "8",
    ]);
    const EIO: u32 = 5;
    assert_eq!(
        client.ask(Ask::Read, 1003 * 512, &mut data[..512]).unwrap(),
        EIO
    );
    assert_eq!(
        client.ask(Ask::Read, 1008 * 512, &mut data[..512]).unwrap(),
        0
    );
    server.told(&["fault", "stall", "disk0", "--for", "100ms"]);

    server.told(&["power-cut", "disk0"]);
    assert_eq!(client.ask(Ask::Read, 0, &mut data).unwrap(), EIO);
    server.told(&["power-on", "disk0"]);
    let mut read = [0; 4096];
    assert_eq!(client.ask(Ask::Read, 0, &mut read).unwrap(), 0);
    assert_eq!(read, [1; 4096], "what was flushed is there");

    server.told(&["scheduler", "disk0", "sstf"]);
    assert_eq!(server.status()["disks"][0]["scheduler"], "sstf");
    for (args, code, error) in [
        (
            vec!["power-cut", "disk1"],
            1,
            "faults are not allowed on disk disk1; its configuration must say faults = true",
        ),
        (
            vec!["power-on", "disk1"],
            1,
            "only an emulated drive can do that",
        ),
        (vec!["power-cut", "a/b"], 2, "no disk can be called `a/b`"),
        (
            vec!["scheduler", "disk0", "dedline"],
            1,
            "did you mean \"deadline\"?",
        ),
        (
            vec!["scheduler", "disk1", "sptf"],
            1,
            "has to know the drive",
        ),
        (
            vec!["fault", "unreadable", "disk0", "--lba", "131072"],
            1,
            "allowed is a whole number, 0 to 131071",
        ),
        (
            vec!["fault", "stall", "disk1", "--for", "1s"],
            1,
            "faults are not allowed on disk disk1",
        ),
        // These command lines are wrong without any server.
        (vec!["power-on"], 2, "required arguments were not provided"),
        (vec!["power-of", "disk0"], 2, "unrecognized subcommand"),
        (
            vec!["fault", "stall", "disk0", "--for", "1"],
            2,
            "a duration needs its unit",
        ),
        (
            vec!["fault", "unreadable", "disk0", "--lba", "x"],
            2,
            "invalid digit",
        ),
        (vec!["scheduler", "", "noop"], 2, "no disk can be called ``"),
    ] {
        let output = server.control(&args);
        let found = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {found}");
        assert!(found.contains(error), "{args:?}: {found}");
    }
}

/// The server refuses a text that is too long for it, like other wrong texts.
#[test]
fn a_text_that_no_scheduler_has_ends_with_1() {
    let server = Server::start("long", CONFIG, &[]);
    let output = server.control(&["scheduler", "disk0", &"x".repeat(20 << 10)]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("length limit exceeded"), "{error}");
}

#[test]
fn a_disk_that_is_not_there_ends_with_1_for_every_verb_and_those_that_are_there_are_named() {
    let verbs: [&[&str]; 8] = [
        &["power-cut", "disk2"],
        &["power-on", "disk2"],
        &["clear-failure", "disk2"],
        &["scheduler", "disk2", "noop"],
        &["gate", "disk2", "rsd"],
        &["fault", "unreadable", "disk2", "--lba", "0"],
        &["fault", "stall", "disk2", "--for", "1ms"],
        &["fault", "lose-next", "disk2"],
    ];
    let two = Server::start("none-of-two", CONFIG, &[]);
    let (_, rest) = CONFIG.split_once("[[disk]]\nname = \"disk1\"").unwrap();
    let one = Server::start(
        "none-of-one",
        &format!("[[disk]]\nname = \"disk1\"{rest}"),
        &[],
    );
    for (server, there) in [(&two, "are disk0, disk1"), (&one, "is disk1")] {
        for verb in verbs {
            let output = server.control(verb);
            let error = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{verb:?}: {error}");
            assert_eq!(
                error,
                format!("error: no disk `disk2`; there {there}\n"),
                "{verb:?}"
            );
            assert!(output.stdout.is_empty(), "{verb:?}");
        }
    }
    // These are about all disks: another word is one too many.
    for verb in ["status", "metrics"] {
        let output = two.control(&[verb, "disk2"]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{verb}: {error}");
        assert!(
            error.contains("unexpected argument 'disk2'"),
            "{verb}: {error}"
        );
    }
}

/// Over HTTP a name may have any bytes.
#[test]
fn a_disk_that_is_not_there_is_not_found_over_http() {
    let server = Server::start("none-http", CONFIG, &[]);
    let socket = server.path("control.sock");
    for what in [
        "power-cut",
        "power-on",
        "clear-failure",
        "scheduler",
        "fault?kind=lose-next",
    ] {
        for (name, shown) in [("disk2", "disk2"), ("disk0%2F", "disk0/"), ("%20", " ")] {
            let target = format!("/disks/{name}/{what}");
            let answer = ask(&socket, "POST", &target, "noop").unwrap();
            let expected = format!("no disk `{shown}`; there are disk0, disk1\n");
            assert_eq!((answer.status, answer.body), (404, expected), "{target}");
        }
    }
}

#[test]
fn control_of_a_socket_without_a_server_is_an_error() {
    let server = Server::start("nobody", CONFIG, &[]);
    let output = super::common::run(&server.directory, &["control", "no.sock", "status"]);
    assert_eq!(output.status.code(), Some(4));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.starts_with("error: no.sock: "), "{error}");
    let expected = "no server listens there: give the path of `listen.control`";
    assert!(error.contains(expected), "{error}");
    // Clients' socket is another.
    let output = super::common::run(&server.directory, &["control", "nbd.sock", "status"]);
    assert_eq!(output.status.code(), Some(4));
    let error = String::from_utf8_lossy(&output.stderr);
    let expected = "the answer is not HTTP; give the path of `listen.control`";
    assert!(error.contains(expected), "{error}");
}
