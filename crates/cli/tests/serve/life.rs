//! From the first request to the last, across signals.

use super::common::{Ended, Server, headtime, run, scratch, wait_until};
use super::nbd::{Ask, Client};
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CONFIG: &str = r#"
[[disk]]
name = "disk0"
emulate = "atlas10k"
store = "memory"
size = "256MiB"
scheduler = "deadline"
faults = true
[listen]
nbd = "unix:nbd.sock"
control = "unix:control.sock"
"#;

/// Reads and writes here and there, eight at a time, until told to end; how many were answered.
fn load(server: &Server, end: &AtomicBool, answered: &AtomicU64) {
    let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    let mut draw = 1_u64;
    let data = [0x5a; 4096];
    let mut is_read = [false; 8];
    let mut send = |client: &mut Client, is_read: &mut [bool; 8], cookie: u64| {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let offset = (draw >> 33) % (256 << 8) * 4096;
        is_read[cookie as usize] = draw >> 63 == 0;
        match is_read[cookie as usize] {
            true => client.send(Ask::Read, cookie, offset, 4096, &[]),
            false => client.send(Ask::Write, cookie, offset, 4096, &data),
        }
        .unwrap();
    };
    for cookie in 0..8 {
        send(&mut client, &mut is_read, cookie);
    }
    let mut out = 8;
    while out > 0 {
        let cookie = client.answer_of(&is_read);
        answered.fetch_add(1, Ordering::Relaxed);
        match end.load(Ordering::Relaxed) {
            false => send(&mut client, &mut is_read, cookie),
            true => out -= 1,
        }
    }
}

impl Client {
    /// The next answer, which must not be an error; reads are of 4096 bytes.
    fn answer_of(&mut self, is_read: &[bool; 8]) -> u64 {
        let answer = self.answer(&mut []).unwrap();
        assert_eq!(answer.error, 0);
        if is_read[answer.cookie as usize] {
            self.skip(4096);
        }
        answer.cookie
    }
}

#[test]
fn a_scheduler_is_swapped_under_load_and_the_log_replays() {
    let mut server = Server::start("swap", CONFIG, &["--log", "events.log"]);
    let (end, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    let more = |count: u64| {
        let target = answered.load(Ordering::Relaxed) + count;
        wait_until(
            || answered.load(Ordering::Relaxed) >= target,
            || "no answers come".to_owned(),
        );
    };
    let config = server.path("serve.toml");
    std::thread::scope(|scope| {
        let _ended = Ended(&end);
        scope.spawn(|| load(&server, &end, &answered));
        more(30);
        // A bad file changes nothing.
        fs::write(&config, CONFIG.replacen("deadline", "dedline", 1)).unwrap();
        server.signal("HUP");
        server.wait_for("nothing is changed: serve.toml:7: disk[0].scheduler: ");
        assert_eq!(server.status()["disks"][0]["scheduler"], "deadline");
        // A good one changes what can be, and says what cannot.
        let good = CONFIG
            .replacen("deadline", "stream(deadline):slice=50ms", 1)
            .replacen("faults = true", "timeout = \"5s\"\ndepth = 2", 1);
        fs::write(&config, good).unwrap();
        server.signal("HUP");
        server.wait_for("disk disk0: depth, faults: another value takes a restart");
        server.wait_for("the timeout is changed disk=\"disk0\" timeout=\"5s\"");
        wait_until(
            || server.status()["disks"][0]["scheduler"] == "stream(deadline):slice=50ms",
            || "the scheduler is not swapped".to_owned(),
        );
        more(30);
        server.told(&["scheduler", "disk0", "sptf"]);
        more(30);
        // The file is as it was, but not what runs.
        server.signal("HUP");
        wait_until(
            || server.status()["disks"][0]["scheduler"] == "stream(deadline):slice=50ms",
            || "what the file says is not in force".to_owned(),
        );
        assert!(!server.messages().contains("nothing to change"));
        // Nothing is new.
        server.signal("HUP");
        server.wait_for("nothing to change");
    });
    let answered = answered.load(Ordering::Relaxed);
    assert_eq!(server.terminate(), Some(0));
    let messages = server.messages();
    let summary = format!("disk disk0: {answered} requests, 0 failed; lateness p50 ");
    assert!(messages.contains(&summary), "{summary}: {messages}");

    let output = run(&server.directory, &["sim", "replay-log", "events.log"]);
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && out.contains("identical"),
        "{out}{err}"
    );
    // A log that was changed is noticed.
    let log = fs::read_to_string(server.path("events.log")).unwrap();
    let line = log
        .lines()
        .filter(|line| line.starts_with("I "))
        .nth(20)
        .unwrap();
    let (head, _) = line.rsplit_once(' ').unwrap();
    fs::write(
        server.path("other.log"),
        log.replacen(line, &format!("{head} 16"), 1),
    )
    .unwrap();
    let output = run(&server.directory, &["sim", "replay-log", "other.log"]);
    assert_eq!(output.status.code(), Some(1));
}

/// A server that ends with an error prints its summary, too.
#[test]
fn a_log_that_cannot_be_written_is_an_error_beside_the_summary() {
    let mut server = Server::start("full", CONFIG, &["--log", "/dev/full"]);
    let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    assert_eq!(client.ask(Ask::Write, 0, &mut [1; 512]).unwrap(), 0);
    assert_eq!(client.ask(Ask::Flush, 0, &mut []).unwrap(), 0);
    drop(client);
    assert_eq!(server.terminate(), Some(4));
    let messages = server.messages();
    let (before, error) = messages.split_once("error: disk disk0: ").expect(&messages);
    assert!(error.contains("No space left"), "{messages}");
    let summary = "disk disk0: 2 requests, 0 failed; lateness p50 ";
    assert!(before.contains(summary), "{messages}");
}

#[test]
fn what_was_asked_for_before_the_end_is_done() {
    let mut server = Server::start("drain", CONFIG, &[]);
    let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    const COUNT: u64 = 40;
    for cookie in 0..COUNT {
        let offset = (cookie * 7919 % 60_000) * 4096;
        client
            .send(Ask::Write, cookie, offset, 4096, &[9; 4096])
            .unwrap();
    }
    // The signal comes after the first answer.
    let mut answered = vec![client.answer(&mut []).unwrap()];
    server.signal("TERM");
    while let Ok(answer) = client.answer(&mut []) {
        answered.push(answer);
    }
    assert_eq!(server.end(), Some(0));
    // Requests that the server read are answered without an error. The server did not take the others.
    assert!(
        answered.iter().all(|answer| answer.error == 0),
        "{answered:?}"
    );
    let mut cookies: Vec<u64> = answered.iter().map(|answer| answer.cookie).collect();
    cookies.sort_unstable();
    cookies.dedup();
    assert_eq!(cookies.len(), answered.len());
    let summary = format!("disk disk0: {} requests, 0 failed", answered.len());
    assert!(
        server.messages().contains(&summary),
        "{summary}: {}",
        server.messages()
    );
    assert!(!server.path("nbd.sock").exists());
}

#[test]
fn a_second_signal_ends_at_once() {
    let mut server = Server::start("twice", CONFIG, &[]);
    let _client = server.stalled_read();
    server.signal("TERM");
    server.wait_for("ending");
    let begun = Instant::now();
    server.signal("INT");
    assert_eq!(server.end(), Some(5));
    assert!(begun.elapsed() < Duration::from_secs(5));
    let messages = server.messages();
    assert!(messages.contains("error: ended at once"), "{messages}");
}

#[test]
fn a_server_whose_only_disk_is_stuck_ends_in_its_stated_time() {
    let config = CONFIG.replacen("faults", "timeout = \"100ms\"\nfaults", 1);
    let mut server = Server::start("stuck", &config, &[]);
    let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    // Something to flush at the end.
    assert_eq!(client.ask(Ask::Write, 0, &mut [1; 512]).unwrap(), 0);
    server.told(&["fault", "stall", "disk0", "--for", "600s"]);
    drop(client);
    let begun = Instant::now();
    assert_eq!(server.terminate(), Some(5));
    // 15 seconds, and two to notice.
    assert!(begun.elapsed() >= Duration::from_secs(15));
    let messages = server.messages();
    assert!(
        messages.contains("is stuck, so the last flush is not waited for disk=\"disk0\""),
        "{messages}"
    );
    assert!(!server.path("control.sock").exists());
}

#[test]
fn requests_that_wait_for_a_stuck_drive_end_in_their_time() {
    let mut server = Server::start("expires", CONFIG, &[]);
    let mut client = server.stalled_read();
    // The drive takes one command at a time, and has the read's.
    let config = CONFIG.replacen("faults", "queue_timeout = \"100ms\"\nfaults", 1);
    fs::write(server.path("serve.toml"), config).unwrap();
    server.signal("HUP");
    server.wait_for(
        "the timeout of waiting requests is changed disk=\"disk0\" queue_timeout=\"100ms\"",
    );
    let full = || server.status()["disks"][0]["exports"][0]["expired"].as_u64();
    for cookie in 2..202 {
        client
            .send(Ask::Read, cookie, 4096 * cookie, 4096, &[])
            .unwrap();
    }
    let answer = client.answer(&mut []).unwrap();
    assert_eq!(answer.error, 5, "EIO");
    let mut other = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    assert_eq!(other.ask(Ask::Write, 0, &mut [1; 512]).unwrap(), 5, "EIO");
    assert!(full().is_some_and(|expired| expired >= 2));
    assert!(server.told(&["status"]).contains("expired"));
    assert!(
        server
            .told(&["metrics"])
            .contains("headtime_requests_expired_total{disk=\"disk0\",export=\"disk0\"} ")
    );
    server.signal("TERM");
    server.wait_for("ending");
    server.signal("TERM");
    assert_eq!(server.end(), Some(5));
}

#[test]
fn what_a_killed_server_leaves_behind_is_in_nobodys_way() {
    let mut server = Server::start("killed", CONFIG, &["--log", "events.log"]);
    let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    assert_eq!(client.ask(Ask::Write, 0, &mut [1; 512]).unwrap(), 0);
    server.signal("KILL");
    assert_eq!(server.end(), None);
    assert!(server.path("nbd.sock").exists() && server.path("control.sock").exists());
    let mut command = headtime(&server.directory, &["serve", "serve.toml", "--ready"]);
    let again = Server::spawn(server.directory.clone(), &mut command);
    assert_eq!(again.status()["disks"][0]["name"], "disk0");
}

#[test]
fn a_store_outlives_its_server() {
    let config = CONFIG.replacen("\"memory\"", "\"store.img\"\ncreate = true", 1);
    let mut server = Server::start("store", &config, &[]);
    let mut client = Client::connect(&server.path("nbd.sock"), "disk0").unwrap();
    assert_eq!(client.ask(Ask::Write, 8192, &mut [3; 512]).unwrap(), 0);
    drop(client);
    // Another server cannot have it meanwhile.
    let other = config
        .replace("nbd.sock", "b.sock")
        .replace("control.sock", "c.sock");
    fs::write(server.path("other.toml"), other).unwrap();
    let output = run(&server.directory, &["serve", "other.toml"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{error}");
    assert!(error.contains("other.toml:5: disk[0].store: "), "{error}");
    assert_eq!(server.terminate(), Some(0));
    let mut command = headtime(&server.directory, &["serve", "serve.toml", "--ready"]);
    let again = Server::spawn(server.directory.clone(), &mut command);
    let mut client = Client::connect(&again.path("nbd.sock"), "disk0").unwrap();
    let mut read = [0; 512];
    assert_eq!(client.ask(Ask::Read, 8192, &mut read).unwrap(), 0);
    assert_eq!(read, [3; 512]);
}

#[test]
fn the_service_manager_is_told() {
    let directory = scratch("notify");
    fs::write(directory.join("serve.toml"), CONFIG).unwrap();
    let socket = UnixDatagram::bind(directory.join("notify")).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let mut command = headtime(&directory, &["serve", "serve.toml", "--ready"]);
    command.env("NOTIFY_SOCKET", directory.join("notify"));
    let mut server = Server::spawn(directory, &mut command);
    let told = || {
        let mut text = [0; 64];
        let len = socket.recv(&mut text).unwrap();
        String::from_utf8_lossy(&text[..len]).into_owned()
    };
    assert_eq!(told(), "READY=1");
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(told(), "STOPPING=1");
}

#[test]
fn the_watchdog_is_told_as_long_as_the_server_runs() {
    let directory = scratch("watchdog");
    fs::write(directory.join("serve.toml"), CONFIG).unwrap();
    let socket = UnixDatagram::bind(directory.join("notify")).unwrap();
    let within = |time: u64| {
        socket
            .set_read_timeout(Some(Duration::from_millis(time)))
            .unwrap();
    };
    let mut command = headtime(&directory, &["serve", "serve.toml", "--ready"]);
    command.env("NOTIFY_SOCKET", directory.join("notify"));
    command.env("WATCHDOG_USEC", "200000");
    let mut server = Server::spawn(directory, &mut command);
    let told = || {
        let mut text = [0; 64];
        let len = socket.recv(&mut text).ok()?;
        Some(String::from_utf8_lossy(&text[..len]).into_owned())
    };
    within(30_000);
    let alive = || Some("WATCHDOG=1".to_owned());
    loop {
        let text = told();
        if text == Some("READY=1".to_owned()) {
            break;
        }
        assert_eq!(text, alive());
    }
    (0..4).for_each(|_| assert_eq!(told(), alive()));
    // A stopped server tells nothing. Only earlier messages are left.
    server.signal("STOP");
    within(2_000);
    let left = std::iter::from_fn(told).count();
    assert!(left < 10, "{left}");
    server.signal("CONT");
    assert_eq!(told(), alive());
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_watchdog_of_another_process_is_not_told() {
    let directory = scratch("watchdog-other");
    fs::write(directory.join("serve.toml"), CONFIG).unwrap();
    let socket = UnixDatagram::bind(directory.join("notify")).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let mut command = headtime(&directory, &["serve", "serve.toml", "--ready"]);
    command.env("NOTIFY_SOCKET", directory.join("notify"));
    command
        .env("WATCHDOG_USEC", "1000")
        .env("WATCHDOG_PID", "1");
    let mut server = Server::spawn(directory, &mut command);
    assert_eq!(server.terminate(), Some(0));
    for expected in ["READY=1", "STOPPING=1"] {
        let mut text = [0; 64];
        let len = socket.recv(&mut text).unwrap();
        assert_eq!(String::from_utf8_lossy(&text[..len]), expected);
    }
}

#[test]
fn messages_for_machines() {
    let mut server = Server::start("json", CONFIG, &["--log-format", "json"]);
    assert_eq!(server.terminate(), Some(0));
    let messages = server.messages();
    let ready = messages.lines().find(|line| line.contains("ready nbd="));
    let ready: serde_json::Value = serde_json::from_str(ready.expect("it says so")).unwrap();
    assert_eq!(ready["level"], "INFO");
}

/// Work that may block needs a thread. The runtime's threads used to end after ten seconds without work, and no other could be made at the
/// limit.
#[test]
fn a_server_that_cannot_make_threads_reads_its_configuration_and_ends() {
    let mut server = Server::start("threads", CONFIG, &[]);
    std::thread::sleep(Duration::from_secs(11));
    let sizes = fs::read_to_string(format!("/proc/{}/statm", server.process())).unwrap();
    let pages: u64 = sizes.split(' ').next().unwrap().parse().unwrap();
    if !server.limit(&format!("--as={}:", pages * 4096)) {
        return;
    }
    server.signal("HUP");
    server.wait_for("the configuration was read again");
    assert_eq!(server.terminate(), Some(0));
    assert!(!server.messages().contains("a bug"));
}
