//! Traces: replayed, converted, looked at.

use super::common::{data, json, number, run, scratch, stdout};
use std::path::Path;

#[test]
fn a_trace_is_replayed_in_every_way() {
    let replay = |extra: &[&str]| {
        let mut args = vec![
            "trace",
            "replay",
            "tiny.trace",
            "-p",
            "atlas10k",
            "--format",
            "json",
        ];
        args.extend(extra);
        json(&args)["runs"][0].clone()
    };
    let open = replay(&[]);
    assert_eq!(open["requests"], 8);
    // The recorded arrivals span 41 ms.
    assert!(number(&open["simulated_s"]) > 0.041);
    let slow = replay(&["--speed", "0.5"]);
    assert!(number(&slow["simulated_s"]) > 0.082);
    let devices: Vec<&str> = open["per_origin"]
        .as_array()
        .unwrap()
        .iter()
        .map(|origin| origin["device"].as_str().unwrap())
        .collect();
    assert_eq!(devices, ["0", "1"]);
    assert_eq!(replay(&["--device", "1"])["requests"], 3);
    assert_eq!(replay(&["--device", "0,1", "--closed", "1"])["requests"], 8);
    let closed = replay(&["--closed", "1"]);
    assert_eq!(number(&closed["head_time"]["idle"]), 0.0);
    assert_eq!(number(&closed["queue_ms"]["max"]), 0.0);
    // In the scenario's own way, beside the scenario.
    let path = data().join("replay.toml");
    let report = json(&["sim", "run", path.to_str().unwrap(), "--format", "json"]);
    assert_eq!(report["runs"][0]["requests"], 8);
}

#[test]
fn a_depth_beyond_the_profile_is_said() {
    let output = run(&[
        "trace",
        "replay",
        "tiny.trace",
        "-p",
        "atlas10k",
        "--depth",
        "4",
    ]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("note: atlas10k: its profile says that it takes 1 commands at a time"),
        "{text}"
    );
}

#[test]
fn the_table_of_a_replay_does_not_call_the_trace_fair() {
    let replay = ["trace", "replay", "tiny.trace", "-p", "atlas10k"];
    assert!(!stdout(&replay).contains("fair"));
    assert!(stdout(&["sim", "run", "small.toml"]).contains("  fair  "));
}

#[test]
fn conversions_go_both_ways() {
    let directory = scratch("convert");
    let file = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let (csv, back) = (file("tiny.csv"), file("tiny.trace"));
    stdout(&["trace", "convert", "tiny.trace", &csv]);
    stdout(&["trace", "convert", &csv, &back]);
    let comment_free = |path: &str| -> String {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| format!("{line}\n"))
            .collect()
    };
    let original = data().join("tiny.trace");
    assert_eq!(
        comment_free(&back),
        comment_free(original.to_str().unwrap())
    );
    let infos = [
        json(&["trace", "info", "tiny.trace", "--format", "json"]),
        json(&["trace", "info", &csv, "--format", "json"]),
    ];
    assert_eq!(infos[0]["total"], infos[1]["total"]);
    assert_eq!(infos[0]["devices"], infos[1]["devices"]);
}

#[test]
fn a_conversion_is_compressed_if_its_name_says_so() {
    let directory = scratch("convert-packed");
    let file = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let plain = file("tiny.csv");
    stdout(&["trace", "convert", "tiny.trace", &plain]);
    let info = |path: &str| json(&["trace", "info", path, "--format", "json"]);
    for (name, format) in [("tiny.csv.gz", "csv"), ("tiny.trace.GZ", "disksim")] {
        let packed = file(name);
        stdout(&["trace", "convert", "tiny.trace", &packed]);
        let bytes = std::fs::read(&packed).unwrap();
        assert_eq!(bytes[..2], [0x1f, 0x8b], "{name}");
        let found = info(&packed);
        assert_eq!(found["compression"], "gzip");
        assert_eq!(found["format"], format);
        assert_eq!(found["total"], info(&plain)["total"]);
        stdout(&["trace", "convert", "tiny.trace", &packed]);
        assert_eq!(bytes, std::fs::read(&packed).unwrap());
    }
    let packed = file("tiny.trace.zst");
    let output = run(&["trace", "convert", "tiny.trace", &packed]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("allowed is .gz"), "{text}");
    assert!(!Path::new(&packed).exists());
}
