//! `headtime drive probe`

use super::common::{ended, run, scratch, stdout};
use headtime_probe::Learned;
use serde_json::Value;
use std::fs;

const QUICK: [&str; 5] = ["drive", "probe", "--quick", "--time", "30s"];

fn emulate<'a>(drive: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&QUICK, &["--emulate", drive][..], more].concat()
}

#[test]
fn the_page_says_what_a_disk_is() {
    let text = stdout(&emulate("wd5000aaks", &[]));
    for part in [
        "wd5000aaks · 500 GB · ",
        "\nrotation    7200.00 turns a minute, 8.3333 ms each",
        "\nsequential  9",
        " of 4 KiB a second one at a time",
        " of 4 KiB a second 32 at a time: 1.",
        "\nSequential bandwidth by place\n",
        "\nTime of a read of 4 KiB by its distance from the one before\n",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert_eq!(
        text,
        stdout(&emulate("wd5000aaks", &[])),
        "the same each time"
    );
}

#[test]
fn json_and_picture_have_all_that_was_learned() {
    let directory = scratch("probe-picture");
    let picture = directory.join("disk.svg");
    let more = ["--format", "json", "--plot", picture.to_str().unwrap()];
    let json: Value = serde_json::from_str(&stdout(&emulate("atlas10k", &more))).unwrap();
    let rpm = json["rotation"]["rpm"].as_f64().unwrap();
    assert!((rpm - 10_025.0).abs() < 1.0, "{rpm}");
    assert_eq!(json["obstacle"], Value::Null);
    assert!(json["bandwidth"].as_array().unwrap().len() >= 17);
    assert_eq!(json["random_4kib"][0]["depth"], 1);
    assert!(json["curve"].as_array().unwrap().len() >= 12);
    assert!(json["took_s"].as_f64().unwrap() <= 30.0);
    let text = fs::read_to_string(picture).unwrap();
    for part in ["atlas10k", ">Sequential bandwidth<", ">Service time<"] {
        assert!(text.contains(part), "no {part}");
    }
}

#[test]
fn other_programs_get_what_they_take() {
    let ceph = stdout(&emulate("wd5000aaks", &["--emit", "ceph"]));
    assert!(
        ceph.contains("\n[osd.ID]\nosd_mclock_max_capacity_iops_hdd = "),
        "{ceph}"
    );
    let output = run(&emulate("wd5000aaks", &["--emit", "iocost"]));
    let line = String::from_utf8(output.stdout).unwrap();
    assert!(
        line.starts_with("MAJ:MIN ctrl=user model=linear rbps="),
        "{line}"
    );
    assert_eq!(line.lines().count(), 1, "the kernel takes no comments");
    let notes = String::from_utf8(output.stderr).unwrap();
    for note in [
        "note: measured: ",
        "note: predicted: ",
        "note: MAJ:MIN stands for",
    ] {
        assert!(notes.contains(note), "{notes}");
    }
    let curve = stdout(&emulate("wd5000aaks", &["--emit", "curve"]));
    let learned = Learned::from_toml("curve.toml", &curve).unwrap();
    assert_eq!(learned.origin().drive, "wd5000aaks");
}

#[test]
fn what_cannot_be_learned_is_said_with_what_is_known() {
    let directory = scratch("probe-file");
    let path = directory.join("tiny");
    fs::write(&path, vec![0; 4096]).unwrap();
    let name = path.to_str().unwrap();
    let output = run(&[&QUICK[..], &[name]].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    // Not every file system has direct reads.
    if output.status.code() == Some(4) && said.contains("direct") {
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains(" was not learned: it has 4096 bytes; "),
        "{said}"
    );
    let page = String::from_utf8(output.stdout).unwrap();
    assert!(
        page.contains("\nNot all was learned: it has 4096 bytes"),
        "{page}"
    );
    assert_eq!(fs::read(&path).unwrap(), vec![0; 4096]);
}

#[test]
fn what_is_asked_wrongly_is_said() {
    for (args, code, said) in [
        (vec!["drive", "probe", "--quick"], 2, "--emulate"),
        (
            emulate("atlas10k", &["/dev/null"]),
            2,
            "cannot be used with",
        ),
        (emulate("no-such-drive", &[]), 3, "no-such-drive"),
        (emulate("atlas10k", &["--plot", "disk.png"]), 2, "svg"),
        (
            vec![
                "drive",
                "probe",
                "--quick",
                "--emulate",
                "atlas10k",
                "--time",
                "29s",
            ],
            2,
            "allowed is 30s to 1h",
        ),
        (
            [&QUICK[..], &["/no/such/device"]].concat(),
            4,
            "No such file",
        ),
        (
            [&QUICK[..], &["/dev/null"]].concat(),
            4,
            "regular file or a block device",
        ),
    ] {
        let (found, text) = ended(&args);
        assert_eq!(found, code, "{args:?}: {text}");
        assert!(text.contains(said), "{args:?}: {text}");
    }
}
