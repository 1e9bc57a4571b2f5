//! Tests of the messages of a whole process. Each test starts a process, since a process has one standard error and one hook for panics.

#![allow(
    clippy::disallowed_methods,
    reason = "a process takes the time it takes"
)]

use super::*;
use headtime_linux::clock::Clock;
use headtime_units::Time;
use serde_json::Value;
use std::io::pipe;
use std::process::{Command, Stdio};
use std::thread;

/// Environment variable that marks a process started by a test.
const CHILD: &str = "HEADTIME_TEST_MESSAGES";

fn is_child() -> bool {
    env::var_os(CHILD).is_some()
}

/// Command that runs one test in a process of its own.
fn child(test: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args([
            "--exact",
            &format!("live::messages::tests::{test}"),
            "--nocapture",
        ])
        .env(CHILD, "yes")
        .env("RUST_BACKTRACE", "0")
        .env_remove(LEVEL)
        .stdin(Stdio::null());
    command
}

fn begin_as(format: LogFormat) {
    begin(&LogConfig::default(), Some(format)).unwrap();
}

/// Panics with `what` in a thread of this name.
fn panics(name: &str, what: &'static str) {
    let thread = thread::Builder::new().name(name.to_owned());
    let panicked = thread.spawn(move || panic!("{what}")).unwrap().join();
    assert!(panicked.is_err());
}

const EVIL: &str = "x\n2026-11-22T00:00:00Z ERROR \u{1b}[31mforged";

#[test]
fn a_panic_is_one_message_among_others_and_has_no_line_breaks() {
    if is_child() {
        begin_as(LogFormat::Text);
        tracing::info!("before");
        panics("disk0", EVIL);
        tracing::info!("after");
        return end();
    }
    let test = "a_panic_is_one_message_among_others_and_has_no_line_breaks";
    let output = child(test).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert!(lines[0].ends_with("Z  INFO before"), "{said}");
    assert!(
        lines[1].contains("Z ERROR a bug: thread disk0 panicked at "),
        "{said}"
    );
    let what = ": x\\n2026-11-22T00:00:00Z ERROR \\u{1b}[31mforged";
    assert!(lines[1].ends_with(what), "{said}");
    assert!(lines[2].ends_with("Z  INFO after"), "{said}");
}

#[test]
fn a_panic_with_a_backtrace_is_a_message_for_each_line_in_json() {
    if is_child() {
        begin_as(LogFormat::Json);
        panics("disk0", EVIL);
        return end();
    }
    let test = "a_panic_with_a_backtrace_is_a_message_for_each_line_in_json";
    let output = child(test).env("RUST_BACKTRACE", "1").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let messages: Vec<Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    assert!(messages.len() > 5, "{said}");
    assert!(messages.iter().all(|message| message["level"] == "ERROR"));
    let first = messages[0]["fields"]["message"].as_str().unwrap();
    assert!(
        first.starts_with("a bug: thread disk0 panicked at "),
        "{first}"
    );
}

/// Without the hook, Rust would block in the first panic.
#[test]
fn panics_and_the_end_do_not_wait_for_who_does_not_read() {
    if is_child() {
        begin_as(LogFormat::Text);
        // More bytes than a pipe holds.
        (0..2000).for_each(|number| tracing::warn!("{number}: {}", "x".repeat(100)));
        (0..50).for_each(|_| panics("disk0", "x"));
        return end();
    }
    let (reader, writer) = pipe().unwrap();
    let test = "panics_and_the_end_do_not_wait_for_who_does_not_read";
    let mut command = child(test);
    let mut child = command
        .stderr(writer)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // The first panic waits for a second, and so does the end. Without the rule for a stuck sink, each panic would wait for a second.
    let clock = Clock::start();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if clock.now() > Time::from_nanos(25_000_000_000) {
            child.kill().unwrap();
        }
        thread::sleep(Duration::from_millis(5));
    };
    assert!(status.success(), "{status}");
    drop(reader);
}

#[test]
fn lines_that_are_said_before_messages_begin_are_written_at_once() {
    if is_child() {
        say("error: ", "one\ntwo \u{1b}[0m");
        begin_as(LogFormat::Text);
        say("", "three");
        // The process ends by `exit`, without returning from the test.
        end();
        std::process::exit(7);
    }
    let test = "lines_that_are_said_before_messages_begin_are_written_at_once";
    let output = child(test).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "error: one\ntwo \\u{1b}[0m\nthree\n");
    assert_eq!(output.status.code(), Some(7));
}
