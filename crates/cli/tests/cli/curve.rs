//! `headtime drive curve`

use super::common::{run, scratch, stdout};
use headtime_probe::Learned;

#[test]
fn a_table_shows_the_range_of_distances() {
    let text = stdout(&["drive", "curve", "wd5000aaks"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("wd5000aaks · ")
            && lines[0].ends_with(" distances, 200 reads of 4KiB each · seed 1"),
        "{text}"
    );
    assert!(
        text.contains("distance    sectors  mean ms  sd ms  curve ms"),
        "{text}"
    );
    assert!(text.contains("\n     0 B          0    "), "{text}");
    assert!(text.contains("Backward accesses count 1.5 times as much."));
    let rows = lines
        .iter()
        .filter(|line| line.contains(" kB ") || line.contains(" GB "));
    assert!((10..40).contains(&rows.count()));
}

#[test]
fn csv_and_json_have_all_distances() {
    let args = [
        "drive",
        "curve",
        "atlas10k",
        "--samples",
        "20",
        "--seed",
        "7",
    ];
    let csv = stdout(&[&args[..], &["--format", "csv"]].concat());
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("distance_sectors,distance_bytes,mean_ms,sd_ms,samples,curve_ms")
    );
    let rows: Vec<Vec<f64>> = lines
        .map(|line| {
            line.split(',')
                .map(|field| field.parse().unwrap())
                .collect()
        })
        .collect();
    assert!(rows.len() > 80);
    assert_eq!(rows[0][0], 0.0);
    for pair in rows.windows(2) {
        assert!(pair[0][0] < pair[1][0], "distances rise");
        assert!(pair[0][5] <= pair[1][5], "the curve never falls");
    }
    assert!(rows.iter().all(|row| row[1] == row[0] * 512.0));

    let json: serde_json::Value =
        serde_json::from_str(&stdout(&[&args[..], &["--format", "json"]].concat())).unwrap();
    assert_eq!(json["drive"], "atlas10k");
    assert_eq!((&json["samples"], &json["seed"]), (&20.into(), &7.into()));
    assert_eq!(json["points"].as_array().unwrap().len(), rows.len());
    for (point, row) in json["points"].as_array().unwrap().iter().zip(&rows) {
        assert_eq!(point["mean_ms"].as_f64(), Some(row[2]));
        assert_eq!(point["curve_ms"].as_f64(), Some(row[5]));
    }
    // A repeated command prints equal bytes, and another seed other bytes.
    assert_eq!(csv, stdout(&[&args[..], &["--format", "csv"]].concat()));
    let other = [
        "drive",
        "curve",
        "atlas10k",
        "--samples",
        "20",
        "--format",
        "csv",
    ];
    assert_ne!(csv, stdout(&other));
}

#[test]
fn a_saved_curve_is_the_one_that_is_shown() {
    let directory = scratch("curve");
    let (file, picture) = (directory.join("curve.toml"), directory.join("curve.svg"));
    let csv = stdout(&[
        "drive",
        "curve",
        "barracuda-7200.10-160",
        "--samples",
        "50",
        "--format",
        "csv",
        "--out",
        file.to_str().unwrap(),
        "--plot",
        picture.to_str().unwrap(),
    ]);
    let text = std::fs::read_to_string(&file).unwrap();
    let learned = Learned::from_toml("curve.toml", &text).unwrap();
    assert_eq!(learned.origin().drive, "barracuda-7200.10-160");
    for (point, line) in learned.points().iter().zip(csv.lines().skip(1)) {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields[0], point.distance.get().to_string());
        let curve: f64 = fields[5].parse().unwrap();
        assert!((curve - point.fit.as_millis_f64()).abs() < 1e-9);
    }
    assert_eq!(learned.points().len() + 1, csv.lines().count());
    let drawn = std::fs::read_to_string(&picture).unwrap();
    assert!(drawn.starts_with("<svg ") && drawn.contains("barracuda-7200.10-160 · "));
}

#[test]
fn a_profile_of_ones_own_will_do() {
    let directory = scratch("curve-own");
    let path = directory.join("own.toml");
    let profile = stdout(&["drive", "show", "hp-c2247a", "--format", "toml"]);
    std::fs::write(&path, profile.replace("\"hp-c2247a\"", "\"own\"")).unwrap();
    let text = stdout(&["drive", "curve", path.to_str().unwrap(), "--samples", "8"]);
    assert!(text.starts_with("own · "), "{text}");
}

#[test]
fn what_cannot_be_done_is_refused_at_once() {
    let directory = scratch("curve-refused");
    let out = directory.join("curve.toml");
    let out = out.to_str().unwrap();
    for (args, code, words) in [
        (vec!["atlas10k", "--samples", "7"], 2, "8..=100000"),
        (
            vec!["atlas10k", "--plot", "curve.png", "--out", out],
            2,
            "ends in .svg",
        ),
        (vec!["atlas10"], 3, "did you mean `atlas10k`?"),
        (
            vec!["atlas10k", "--out", "no-such-directory/a.toml"],
            4,
            "cannot write",
        ),
    ] {
        let output = run(&[&["drive", "curve"], &args[..]].concat());
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
        assert!(text.contains(words), "{args:?}: {text}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
}
