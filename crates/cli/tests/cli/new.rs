//! Profiles made of datasheets.

use super::common::{ended, headtime, json, number, run, scratch, stdout};
use std::fs;
use std::io::Write;
use std::process::Stdio;

/// A drive of 18 TB as its product page has it, after `drive new --from-datasheet`.
const PAGE: [&str; 10] = [
    "--capacity",
    "18TB",
    "--rpm",
    "7200",
    "--seek",
    "7.5ms",
    "--rate",
    "270MB/s",
    "--cache",
    "256MiB",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let start = ["drive", "new", "--from-datasheet"];
    start
        .into_iter()
        .chain(PAGE)
        .chain(more.iter().copied())
        .collect()
}

/// The page without one of its flags, and with others.
fn without<'a>(flag: &str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = with(more);
    let at = args.iter().position(|arg| *arg == flag).unwrap();
    args.drain(at..at + 2);
    args
}

#[test]
fn a_profile_of_a_datasheet_is_shown_with_what_the_sheet_says() {
    let directory = scratch("new-profile");
    let path = directory.join("exos.toml");
    let path = path.to_str().unwrap();
    let said = stdout(&with(&[
        "--platters",
        "9",
        "--sector",
        "4Kn",
        "--out",
        path,
    ]));
    assert_eq!(said, "");
    let shown = json(&["drive", "show", path, "--format", "json"]);
    assert_eq!(shown["name"], "exos");
    assert_eq!(shown["sectors"], 35_156_656_128_u64 / 8);
    assert_eq!(shown["capacity_bytes"], 18_000_207_937_536_u64);
    assert_eq!(
        (&shown["heads"], &shown["sector_bytes"]),
        (&18.into(), &4096.into())
    );
    assert_eq!(shown["cache_bytes"], 256 << 20);
    let mean = number(&shown["seek_ms"]["third"]);
    assert!((7.4..7.9).contains(&mean), "{mean}");
    let trust = shown["trust"].to_string();
    for mark in [
        "[\"geometry\",\"published\"]",
        "[\"geometry.cylinders\",\"derived\"]",
        "[\"layout.order\",\"assumed\"]",
    ] {
        assert!(trust.contains(mark), "{trust}");
    }
    let provenance = shown["provenance"].as_str().unwrap();
    assert!(
        provenance.starts_with("Made from a datasheet; nothing was measured."),
        "{provenance}"
    );
    // The standard output has the same text, except for the name.
    let printed = stdout(&with(&["--platters", "9", "--sector", "4Kn"]));
    let file = fs::read_to_string(path).unwrap();
    assert_eq!(printed.replacen("\"my-disk\"", "\"exos\"", 1), file);
}

#[test]
fn what_is_missing_where_nobody_can_be_asked_is_an_error_that_names_it() {
    let said = "error: missing of the datasheet: --seek (average seek, reading, as in 8.5ms)\n";
    assert_eq!(ended(&without("--seek", &[])), (2, said.to_owned()));
    let (code, said) = ended(&["drive", "new", "--from-datasheet"]);
    assert_eq!(code, 2);
    for flag in ["--capacity", "--rpm", "--seek", "--rate", "--cache"] {
        assert!(said.contains(&format!("{flag} (")), "{said}");
    }
    // A pipe counts as nobody, also if text comes through.
    let mut child = headtime(&without("--seek", &[]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut answers = child.stdin.take().unwrap();
    // It may have ended before.
    let _ = answers.write_all(b"8.5ms\n");
    drop(answers);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
}

#[test]
fn an_impossible_sheet_is_an_error_with_flag_value_and_what_is_allowed() {
    for (args, said) in [
        (
            with(&["--rate-inner", "300MB/s"]),
            "--rate-inner: 300MB/s is not allowed; allowed is 90MB/s to 270MB/s, a third to all of the outer rate",
        ),
        (
            with(&["--seek-maximum", "7ms"]),
            "--seek-maximum: 7ms is not allowed; allowed is 9.75ms to 30ms, 1.3 to 4 times the average seek of 7.5ms",
        ),
        (
            with(&["--platters", "200"]),
            "--heads, two for each of --platters: 400 is not allowed; allowed is 1 to 32",
        ),
        (
            without("--capacity", &["--capacity", "5GB"]),
            "--capacity: 5GB is not allowed; allowed is 25",
        ),
        (
            without("--cache", &["--cache", "1kB"]),
            "--cache: 1kB is not allowed; allowed is 64KiB to 16GiB",
        ),
        (
            with(&["--name", "My disk"]),
            "--name: `My disk` is not allowed; allowed is lower-case",
        ),
        (
            with(&["--sector", "520"]),
            "'--sector <FORMAT>': allowed is 512n, 512e or 4Kn",
        ),
        (
            without("--rate", &["--rate", "270"]),
            "'--rate <RATE>': a size needs its unit",
        ),
        (
            with(&["--sectors", "1000000"]),
            "'--capacity <SIZE>' cannot be used with '--sectors <N>'",
        ),
    ] {
        let (code, found) = ended(&args);
        assert_eq!(code, 2, "{found}");
        assert!(found.contains(said), "{found} instead of {said}");
    }
    let (code, said) = ended(&["drive", "new", "--rpm", "7200"]);
    assert!(code == 2 && said.contains("--from-datasheet"), "{said}");
}

#[test]
fn a_file_that_is_there_stays_unless_told_otherwise() {
    let directory = scratch("new-force");
    let path = directory.join("mine.toml");
    fs::write(&path, "precious").unwrap();
    let path = path.to_str().unwrap();
    let said = format!("error: {path}: is there already; --force replaces it\n");
    assert_eq!(ended(&with(&["--out", path])), (4, said));
    assert_eq!(fs::read_to_string(path).unwrap(), "precious");
    assert!(run(&with(&["--out", path, "--force"])).status.success());
    assert!(
        fs::read_to_string(path)
            .unwrap()
            .starts_with("name = \"mine\"\n")
    );
    // A sheet that is wrong leaves nothing behind.
    let other = directory.join("other.toml");
    let wrong = with(&["--rate-inner", "300MB/s", "--out", other.to_str().unwrap()]);
    assert_eq!(ended(&wrong).0, 2);
    let names = fs::read_dir(&directory).unwrap().count();
    assert_eq!(names, 1);
}
