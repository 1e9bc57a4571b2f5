//! A served disk that is known by probing it alone: through its own socket, or through the server's interface to its devices.

use super::common::{Server, run};
use super::nbd::{Ask, Client};
use headtime_disk::profile::{Preseek, by_name};
use headtime_probe::extract::{Extraction, Stage};
use headtime_serve::emulated::{self, EmulatedOptions, StoreSpec};
use headtime_serve::probed::Probed;
use headtime_units::Nanos;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// A drive whose sectors pass in a quarter of a millisecond. This time is several times the jitter of two processes.
const DRIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/coarse.toml");
const LOAD: u64 = 16;

fn config(drive: &str, scheduler: &str) -> String {
    format!(
        "[[disk]]\nname = \"disk0\"\nemulate = \"{drive}\"\nstore = \"memory\"\n{scheduler}\n\
         [listen]\nnbd = \"unix:nbd.sock\"\n"
    )
}

/// Requests per second of random 4 KiB reads with a fixed number outstanding.
fn iops(socket: &Path, time: Duration) -> f64 {
    let mut client = Client::connect(socket, "disk0").unwrap();
    let pages = client.bytes / 4096;
    let mut draw = 1_u64;
    let mut send = |client: &mut Client, cookie| {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let page = (draw >> 33) % pages;
        client
            .send(Ask::Read, cookie, page * 4096, 4096, &[])
            .unwrap();
    };
    for cookie in 0..LOAD {
        send(&mut client, cookie);
    }
    let (since, mut answered) = (Instant::now(), 0);
    while since.elapsed() < time {
        let answer = client.answer(&mut [0; 4096]).unwrap();
        assert_eq!(answer.error, 0);
        answered += 1;
        send(&mut client, answer.cookie);
    }
    f64::from(answered) / since.elapsed().as_secs_f64()
}

/// Requests per second of the same load in a simulation.
fn simulated(drive: &str, directory: &Path) -> f64 {
    let scenario = format!(
        "schedulers = [\"sptf\"]\n[drive]\nprofile = \"{drive}\"\nbelief = \"learned.toml\"\n[engine]\ndepth = 2\n\
         [[workload]]\nprocesses = {LOAD}\nsize = \"4KiB\"\n[run]\nwarm_up = \"1s\"\nduration = \"121s\"\n"
    );
    fs::write(directory.join("sim.toml"), scenario).unwrap();
    let output = run(directory, &["sim", "run", "sim.toml", "--format", "json"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    value["runs"][0]["iops"].as_f64().unwrap()
}

#[test]
#[ignore = "two minutes of real time, and a machine that is not busy; .ci/nightly has it"]
fn a_disk_that_is_probed_through_its_own_socket_is_scheduled_as_in_simulation() {
    let mut server = Server::start("probed-noop", &config(DRIVE, "scheduler = \"noop\""), &[]);
    let probe = [
        "drive",
        "probe",
        "nbd.sock",
        "--time",
        "75s",
        "--out",
        "learned.toml",
    ];
    let output = run(&server.directory, &probe);
    let page = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    // The remaining time may not suffice for the reads that check the profile.
    assert!(
        matches!(output.status.code(), Some(0 | 5)),
        "{said}\n{page}"
    );
    let learned = fs::read_to_string(server.path("learned.toml"));
    let learned = learned.unwrap_or_else(|_| panic!("no profile: {said}\n{page}"));
    assert_eq!(server.terminate(), Some(0));

    is_scheduled_as_in_simulation(DRIVE, "probed-sptf", &learned, &page);
}

/// Serves a drive with `learned` as assumed profile under `sptf`, two deep. The rate must match a simulation with the
/// same assumed profile.
fn is_scheduled_as_in_simulation(drive: &str, name: &str, learned: &str, page: &str) -> f64 {
    let scheduler = "scheduler = \"sptf\"\ndepth = 2\nbelief = \"learned.toml\"";
    let directory = super::common::scratch(name);
    fs::write(directory.join("serve.toml"), config(drive, scheduler)).unwrap();
    fs::write(directory.join("learned.toml"), learned).unwrap();
    let simulated = simulated(drive, &directory);
    let mut command = super::common::headtime(&directory, &["serve", "serve.toml", "--ready"]);
    let mut server = Server::spawn(directory, &mut command);
    let live = iops(&server.path("nbd.sock"), Duration::from_secs(60));
    assert_eq!(server.terminate(), Some(0));
    println!("{live:.1} a second live, {simulated:.1} simulated\n{page}");
    let off = (live / simulated - 1.0).abs();
    assert!(
        off < 0.03,
        "{live:.1} a second live, {simulated:.1} simulated\n{page}"
    );
    live
}

/// The probe has the emulated disk to itself, in real time, as the server has its devices. Answers carry the model's time.
#[test]
#[ignore = "ten minutes of real time; .ci/nightly has it"]
fn a_disk_that_is_probed_through_the_servers_device_is_scheduled_as_in_simulation() {
    // As the paper's host has it: on a bus of 80 MB/s, and with a queue.
    let shipped = by_name("atlas10k").unwrap();
    let truth = shipped.with(|spec| {
        spec.bus.interface_sector = Nanos::from_nanos(6_400);
        spec.queue.depth = 16;
        spec.queue.preseek = Preseek::AtMediaEnd;
    });
    let truth = truth.unwrap();
    let path = super::common::scratch("probed-truth").join("drive.toml");
    fs::write(&path, truth.to_toml()).unwrap();
    let drive = path.to_str().unwrap();
    let options = EmulatedOptions::new(truth.clone(), StoreSpec::Memory);
    let device = emulated::open(options).unwrap();
    let mut probe = Probed::new("atlas10k".to_owned(), device);
    let mut extraction = Extraction::new(&probe, 1);
    let begun = Instant::now();
    while extraction.stage() != Stage::Done {
        extraction.step_or_stay(&mut probe).unwrap();
        assert!(
            begun.elapsed() < Duration::from_secs(1_200),
            "{:?}",
            extraction.stage()
        );
    }
    let learned = extraction.profile().unwrap();
    assert_eq!(learned.geometry.heads, truth.geometry.heads);
    let [within_50, ..] = extraction.held.shares();
    assert!(within_50 > 0.95, "{:?}", extraction.held);
    let said = format!(
        "learned in {:.0} s, {:.1} % of other reads within 50 us",
        extraction.spent.as_secs_f64(),
        100.0 * within_50
    );
    let live = is_scheduled_as_in_simulation(drive, "probed-device", &learned.to_toml(), &said);
    // And as by the truth.
    let true_belief = truth.to_toml();
    let known = is_scheduled_as_in_simulation(drive, "known-device", &true_belief, "the truth");
    assert!((live / known - 1.0).abs() < 0.03, "{live:.1} {known:.1}");
}

#[test]
fn what_is_no_nbd_server_or_has_no_such_export_is_said() {
    let mut server = Server::start("probed-wrong", &config(DRIVE, "scheduler = \"noop\""), &[]);
    let probe = |args: &[&str]| {
        let output = run(&server.directory, &[&["drive", "probe"], args].concat());
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, said) = probe(&["nbd.sock", "--export", "disk7"]);
    assert!(
        code == Some(4) && said.contains("the export `disk7` cannot be had"),
        "{said}"
    );
    let (code, said) = probe(&["nbd.sock", "--export", "disk7", "--quick"]);
    assert!(
        code == Some(4) && said.contains("the export `disk7` cannot be had"),
        "{said}"
    );
    // Somebody else, who says nothing of use and goes.
    let other = std::os::unix::net::UnixListener::bind(server.path("other.sock")).unwrap();
    let talk = std::thread::spawn(move || {
        let (mut socket, _) = other.accept().unwrap();
        std::io::Write::write_all(&mut socket, b"220 mail.example.org ESMTP\r\n").unwrap();
    });
    let (code, said) = probe(&["other.sock"]);
    assert!(code == Some(4) && said.contains("no NBD server"), "{said}");
    talk.join().unwrap();
    // Nobody, behind a socket that was left.
    let (code, said) = probe(&["other.sock"]);
    assert!(code == Some(4) && said.contains("other.sock: "), "{said}");
    // If the server ends during a probe, the probe reports that with the results so far.
    let path = server.path("state");
    let mut child = super::common::headtime(
        &server.directory,
        &["drive", "probe", "nbd.sock", "--state", "state"],
    )
    .stdout(std::process::Stdio::piped())
    .stderr(std::process::Stdio::piped())
    .spawn()
    .unwrap();
    super::common::wait_until(
        || {
            fs::metadata(&path).is_ok_and(|found| found.len() > 0)
                || child.try_wait().unwrap().is_some()
        },
        || "there is no state".to_owned(),
    );
    assert_eq!(server.terminate(), Some(0));
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(1) && said.contains("was not learned: "),
        "{said}"
    );
}

#[test]
fn two_minutes_are_told_of_a_served_disk_too() {
    let mut server = Server::start("probed-quick", &config(DRIVE, "scheduler = \"noop\""), &[]);
    let probe = ["drive", "probe", "nbd.sock", "--export", "disk0", "--quick"];
    let output = run(&server.directory, &probe);
    let said = String::from_utf8(output.stderr).unwrap();
    // It was asked how large it is, and that is too little to have an arm.
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("disk0 of nbd.sock was not learned: it has 4249600 bytes"),
        "{said}"
    );
    assert_eq!(server.terminate(), Some(0));
}

/// The server adds tens of microseconds to each read, and the machine may be busy: only commands that the arm serves are judged.
#[test]
fn an_emulated_disk_is_checked_against_its_profile_and_against_another() {
    let text = config("wd5000aaks", "scheduler = \"noop\"");
    let mut server = Server::start("checked", &text, &[]);
    let check = |more: &[&str]| {
        let args = [&["drive", "check", "nbd.sock"], more].concat();
        let output = run(&server.directory, &args);
        let text = String::from_utf8(output.stdout).unwrap();
        (
            output.status.code(),
            text,
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, text, said) = check(&["wd5000aaks", "--reads", "60", "--format", "json"]);
    assert_eq!(code, Some(0), "{said}");
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let jobs = value["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 12);
    // The busy machine may be late with answers; reads of one half of the disk's size are off by a fifth on another drive.
    let ratio = |jobs: &serde_json::Value| jobs[0]["ratio"].as_f64().unwrap();
    let own = (ratio(&value["jobs"]) - 1.0).abs();
    assert!(own < 0.25, "{text}");
    let (code, text, said) = check(&["exos-x18", "--reads", "50"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("the jobs stay within the smaller"), "{said}");
    assert!(text.contains(" of 12 jobs agree."), "{text}");
    let (code, _, said) = check(&["exos-x18-4kn"]);
    assert!(
        code == Some(3) && said.contains("sectors of 512 bytes and the model of 4096"),
        "{said}"
    );
    let (code, _, said) = check(&["wd5000aaks", "--export", "none"]);
    assert!(code == Some(4) && said.contains("none"), "{said}");
    assert_eq!(server.terminate(), Some(0));
}
