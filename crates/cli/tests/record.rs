//! `headtime trace record` on a loop device, from the command line to a replay. The tests need root, tracefs and
//! losetup. Without these they print a message and pass.

use headtime_testkit::Folder;
use headtime_testkit::recorded::{Loop, instances};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const HEADTIME: &str = env!("CARGO_BIN_EXE_headtime");

/// Records reads of `dd` until the signal. Returns the process of `dd` and the messages of the recording. `None`
/// without tracefs.
fn record(disk: &Loop, signal: &str, out: &Path) -> Option<(u32, String)> {
    let mut recording = Command::new(HEADTIME)
        .args(["trace", "record"])
        .arg(&disk.device)
        .arg("-o")
        .arg(out)
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut said = BufReader::new(recording.stderr.take().expect("piped"));
    let mut first = String::new();
    said.read_line(&mut first).expect("it says something");
    if first.contains("tracefs is not mounted") || first.contains("needs root") {
        println!("SKIPPED: {first}");
        recording.wait().expect("it has ended");
        return None;
    }
    let start = format!("note: recording {}", disk.device.display());
    assert!(first.starts_with(&start), "{first}");
    let mut reading = Command::new("dd")
        .args([
            "of=/dev/null",
            "bs=8k",
            "count=25",
            "skip=3",
            "iflag=direct",
        ])
        .arg(format!("if={}", disk.device.display()))
        .stderr(Stdio::null())
        .spawn()
        .expect("dd is everywhere");
    let process = reading.id();
    assert!(reading.wait().expect("it ends").success());
    let sent = Command::new("kill")
        .args([format!("-{signal}"), recording.id().to_string()])
        .status();
    assert!(sent.expect("kill is everywhere").success());
    let mut rest = String::new();
    while said.read_line(&mut rest).expect("it says something") > 0 {}
    assert!(recording.wait().expect("it ends").success(), "{rest}");
    assert_eq!(instances(recording.id()), 0);
    Some((process, rest))
}

#[test]
fn what_is_recorded_replays() {
    let Some(disk) = Loop::new(8 << 20) else {
        return;
    };
    let folder = Folder::new();
    for (signal, name) in [("INT", "a.csv"), ("TERM", "b.csv.gz")] {
        let out = folder.join(name);
        let Some((process, said)) = record(&disk, signal, &out) else {
            return;
        };
        assert!(said.contains(&format!("dd-{process}: 25")), "{said}");
        let plain = folder.join("plain.csv");
        let converted = Command::new(HEADTIME)
            .args(["trace", "convert"])
            .args([&out, &plain])
            .output()
            .expect("it starts");
        assert!(converted.status.success());
        // Somebody else may look at a new device as well.
        let text = fs::read_to_string(&plain).expect("it is written");
        let of_dd: Vec<String> = text
            .lines()
            .map(|line| line.split(',').collect::<Vec<_>>())
            .filter(|columns| columns.get(6) == Some(&process.to_string().as_str()))
            .map(|columns| columns[2..6].join(","))
            .collect();
        let expected: Vec<String> = (3..28)
            .map(|block| format!("0,read,{},16", block * 16))
            .collect();
        assert_eq!(of_dd, expected);
        let replay = Command::new(HEADTIME)
            .args(["trace", "replay", "--closed-per-process", "--profile"])
            .args(["atlas10k", "--scheduler", "noop,deadline"])
            .arg(&out)
            .output()
            .expect("it starts");
        let errors = String::from_utf8_lossy(&replay.stderr);
        assert!(replay.status.success(), "{errors}");
    }
}
