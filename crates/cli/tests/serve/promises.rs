//! Scrubs with promises, as the command line has them.

use super::common::{Server, headtime, run};
use super::scrub::{FILE, config, done, refused, status};

#[test]
fn what_is_promised_is_said_everywhere_and_a_kill_leaves_the_date_where_it_was() {
    let config = config("scrub = \"state\"");
    let mut server = Server::start("scrub-promises", &config, &[]);
    let promises = ["--finish-within", "1h", "--p99", "+5%"];
    done(&server, &[&promises[..], &["--no-wait"]].concat());
    let table = done(&server, &["status"]);
    for row in [
        "\n  promise     not known yet, since 2",
        "\n  date        to be done by 2",
        "\n  p99         no requests so far; +5 % at most\n",
    ] {
        assert!(table.contains(row), "no {row} in\n{table}");
    }
    let metrics = server.told(&["metrics"]);
    for line in [
        "headtime_scrub_promise{disk=\"disk0\",verdict=\"unknown\"} 1.0",
        "headtime_scrub_promise{disk=\"disk0\",verdict=\"late\"} 0.0",
        "headtime_scrub_finish_by_timestamp_seconds{disk=\"disk0\"} ",
        "headtime_scrub_p99_promised_ratio{disk=\"disk0\"} 0.05",
    ] {
        assert!(metrics.contains(line), "no {line} in\n{metrics}");
    }
    let before = status(&server)["promise"].clone();
    assert_eq!(before["finish_within_s"], 3600.0);
    assert_eq!(server.status()["disks"][0]["scrub"]["promise"], before);
    server.signal("KILL");
    server.end();
    let mut again = headtime(&server.directory, &["serve", "serve.toml", "--ready"]);
    let mut next = Server::spawn(server.directory.clone(), &mut again);
    let after = status(&next)["promise"].clone();
    for key in ["finish_by", "finish_within_s", "p99_percent", "verdict"] {
        assert_eq!(after[key], before[key], "{key}");
    }
    // A repeated command waits for the scrub. Other promises change the scrub.
    done(&next, &[&promises[..], &["--no-wait"]].concat());
    assert_eq!(status(&next)["promise"]["finish_by"], before["finish_by"]);
    done(
        &next,
        &["--p99", "off", "--finish-within", "2h", "--no-wait"],
    );
    let changed = status(&next)["promise"].clone();
    assert_eq!(changed["p99_percent"], serde_json::Value::Null);
    assert!(changed["finish_by"].as_f64() > before["finish_by"].as_f64());
    let (exit, error) = refused(&next, &["--finish-within", "10ms"]);
    assert_eq!(exit, Some(1));
    assert!(
        error.contains("finish-within: 10ms: the assumed drive"),
        "{error}"
    );
    assert!(error.contains("at the least for"), "{error}");
    done(&next, &["--finish-within", "off", "--no-wait"]);
    assert_eq!(next.terminate(), Some(0));
}

#[test]
fn who_promises_both_of_a_disk_with_a_deep_queue_is_told_that_gaps_are_not_used() {
    let config = config("").replace("depth = 1", "depth = 32\noverride.queue.depth = 32");
    let mut server = Server::start("scrub-deep", &config, &[]);
    let promises = ["--finish-within", "1h", "--p99", "+5%", "--no-wait"];
    let mut all = vec!["scrub", "control.sock", "disk0"];
    all.extend(promises);
    let output = run(&server.directory, &all);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{told}");
    let note = "gaps are not used: the drive has more commands at a time";
    assert!(told.contains(note), "{told}");
    let table = done(&server, &["status"]);
    assert!(table.contains("\n  gaps        not used"), "{table}");
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn what_nobody_can_promise_is_refused_with_a_reason() {
    let mut server = Server::start("scrub-unpromised", &config(""), &[]);
    for (args, code, problem) in [
        (&["--finish-within", "0s"][..], 2, "more than no time"),
        (&["--finish-within=-1d"], 2, "no number at the start"),
        (&["--finish-within", "14"], 2, "needs its unit"),
        (&["--finish-within", "4000d"], 2, "at most 3650d"),
        (
            &["--finish-within", "99999999999999999999d"],
            2,
            "at most 3650d",
        ),
        (&["--p99", "5%"], 2, "as in +5%"),
        (&["--p99", "+5"], 2, "as in +5%"),
        (&["--p99", "+NaN%"], 2, "as in +5%"),
        (&["--p99=-5%"], 2, "as in +5%"),
        (&["--p99", "+1001%"], 2, "as in +5%"),
        (
            &["status", "--p99", "+5%"],
            2,
            "are for a scrub that begins",
        ),
        (&["--p99", "+5%", "--idle", "off"], 1, "takes idle time"),
        (&["--finish-within", "1s"], 1, "takes 3.245s"),
    ] {
        let (exit, error) = refused(&server, args);
        assert_eq!(exit, Some(code), "{args:?}: {error}");
        assert!(error.contains(problem), "{args:?}: {error}");
    }
    assert!(status(&server).is_null());
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_scrub_that_ended_after_its_date_ends_with_1_and_so_does_its_status() {
    let mut server = Server::start("scrub-late", FILE, &[]);
    let (exit, error) = refused(&server, &["--finish-within", "1ms"]);
    assert_eq!(exit, Some(1), "{error}");
    let problem = "error: disk disk0: all was read, but the date did not hold\n";
    assert!(error.contains(problem), "{error}");
    assert_eq!(server.terminate(), Some(0));
    // The next server reports the broken promise, too.
    let mut again = headtime(&server.directory, &["serve", "serve.toml", "--ready"]);
    let mut next = Server::spawn(server.directory.clone(), &mut again);
    let told = run(
        &next.directory,
        &["scrub", "control.sock", "disk0", "status"],
    );
    assert_eq!(told.status.code(), Some(1));
    let table = String::from_utf8_lossy(&told.stdout);
    assert!(
        table.contains("\n  promise     the date did not hold, since "),
        "{table}"
    );
    // A scrub that is done in time ends with 0.
    let out = done(&next, &["--finish-within", "1m"]);
    assert!(out.contains("\n  promise     held, since "), "{out}");
    assert_eq!(next.terminate(), Some(0));
}
