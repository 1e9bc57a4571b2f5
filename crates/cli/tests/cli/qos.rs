//! `headtime qos`: trees are trained and explained.

use super::common::{headtime, scratch};
use headtime_qos::{Recorder, Service, Setting};
use headtime_sched::Op;
use headtime_units::{Extent, Millionths, Time};
use std::fs;
use std::path::Path;

/// Profile of a program that reads in order for a second, and then at random for a second, and so on.
fn profile(program: &str, seed: u64) -> String {
    let setting = Setting {
        site: "lab".to_owned(),
        program: program.to_owned(),
        share: Millionths::ONE,
        epoch: Setting::EPOCH,
        service: Service::Program,
        servers: 1,
    };
    let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
    let mut recorder = Recorder::new(setting, 512, at(0)).unwrap();
    for nth in 0..2_000 {
        let (start, took) = match nth / 100 % 2 {
            0 => (nth * 128, 2),
            _ => (nth * (seed + 7_919_333) % 200_000_000, 9),
        };
        recorder.request(at(nth * 10), 0, Op::Read, Extent::at(start, 128));
        recorder.busy(at(nth * 10), at(nth * 10 + took));
    }
    recorder.finish(at(20_000)).unwrap().to_text()
}

/// Exit code, standard output and standard error.
fn run(directory: &Path, args: &[&str]) -> (i32, String, String) {
    let output = headtime(&[&["qos"], args].concat())
        .current_dir(directory)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn a_tree_is_trained_with_profiles_and_explained_by_its_questions() {
    let directory = scratch("qos");
    for (name, program, seed) in [("a", "ior", 1), ("b", "ior", 2), ("s", "synthetic", 3)] {
        fs::write(directory.join(name), profile(program, seed)).unwrap();
    }
    let (code, out, err) = run(
        &directory,
        &["train", "a", "b", "--synthetic", "s", "--out", "t"],
    );
    assert_eq!((code, err.as_str()), (0, ""));
    let rows: Vec<&str> = out
        .lines()
        .map(|line| line.split("  ").next().unwrap())
        .collect();
    assert!(
        rows.contains(&"sum of the servers") && rows.contains(&"training workload"),
        "{out}"
    );

    let first = fs::read(directory.join("t")).unwrap();
    run(
        &directory,
        &["train", "a", "b", "--synthetic", "s", "--out", "t"],
    );
    assert_eq!(
        fs::read(directory.join("t")).unwrap(),
        first,
        "equal profiles, equal bytes"
    );

    let (code, out, _) = run(
        &directory,
        &["explain", "t", "--features", "distance=0,size=64KiB"],
    );
    assert!(
        code == 0 && out.contains("distance <= ") && out.contains("32.8 MB/s by "),
        "{out}"
    );
    let (code, out, _) = run(&directory, &["explain", "t", "b"]);
    assert!(
        code == 0 && out.contains("distance >  ") && out.contains("epochs of servers, 90 % within"),
        "{out}"
    );
}

#[test]
fn wrong_files_and_features_are_named_with_a_remedy() {
    let directory = scratch("qos-wrong");
    let whole = profile("ior", 1);
    let write = |name: &str, text: &str| fs::write(directory.join(name), text).unwrap();
    write("a", &whole);
    write("other", &profile("btio", 1));
    write("cut", &whole[..whole.len() / 2]);
    write("damaged", &whole.replacen("65536", "65537", 1));
    let refused = |args: &[&str]| {
        let (code, out, err) = run(&directory, args);
        assert!(code != 0 && out.is_empty(), "{args:?}: {out}");
        (code, err)
    };
    let train = |profiles: &[&str]| refused(&[&["train"], profiles, &["--out", "none"]].concat());
    for (profiles, expected) in [
        (&["cut"][..], "cut: line "),
        (&["damaged"], "damaged: line "),
        (
            &["a", "other"],
            "other: profile 2: program is `btio`; `ior` is needed, as in the first profile",
        ),
        (
            &["a", "--segment", "10"],
            "a: program `ior`: 1 epochs with throughput are too few for cross-validation",
        ),
    ] {
        let (code, err) = train(profiles);
        assert!(code == 3 && err.contains(expected), "{profiles:?}: {err}");
    }
    let (code, err) = train(&["a", "--features", "distence"]);
    assert!(
        code == 2 && err.contains("`distence` is no feature; did you mean `distance`?"),
        "{err}"
    );
    assert_eq!(train(&["missing"]).0, 4);
    assert!(!directory.join("none").exists(), "nothing is written");

    assert_eq!(run(&directory, &["train", "a", "--out", "t"]).0, 0);
    let (code, err) = refused(&["explain", "t", "other"]);
    assert!(
        code == 3 && err.contains("other: program is `btio`; `ior` is needed by the tree"),
        "{err}"
    );
    let (code, err) = refused(&["explain", "a", "--features", "size=1"]);
    assert!(code == 3 && err.contains("a: line 1: no tree"), "{err}");
    for (features, expected) in [
        ("size=64KiB", "the tree asks for distance, which is missing"),
        (
            "distance=far",
            "distance is `far`; allowed are numbers, and sizes such as 32KiB",
        ),
        ("speed=1", "`speed` is no feature"),
    ] {
        let (code, err) = refused(&["explain", "t", "--features", features]);
        assert!(code == 2 && err.contains(expected), "{features}: {err}");
    }
    assert_eq!(refused(&["explain", "t"]).0, 2);
}
