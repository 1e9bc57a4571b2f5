//! Promises of a scrub, in words.

use serde_json::Value;
use std::fmt::Write as _;

/// Rows of a table about the promises; empty without promises.
pub(super) fn rows(status: &Value) -> Vec<(&'static str, String)> {
    let promise = &status["promise"];
    if promise.is_null() {
        return Vec::new();
    }
    let mut text = verdict(status);
    if let Some(since) = promise["since"].as_f64() {
        let _ = write!(text, ", since {}", date(since));
    }
    let mut rows = vec![("promise", text)];
    if let Some(text) = by_when(status) {
        rows.push(("date", text));
    }
    rows.push(("p99", p99(promise)));
    rows
}

/// Promises in a line, for a command that waits for the scrub's end.
pub(super) fn said(status: &Value) -> Option<String> {
    let promise = &status["promise"];
    if promise.is_null() {
        return None;
    }
    let mut text = format!("what was promised: {}", verdict(status));
    if let Some(by_when) = by_when(status) {
        let _ = write!(text, "; {by_when}");
    }
    Some(text)
}

/// Reason of a failure, if a promise does not hold.
pub(super) fn broken(status: &Value) -> Option<String> {
    let is_broken = ["late", "slow", "neither"].contains(&name(status));
    is_broken.then(|| match status["state"].as_str() {
        Some("done") => format!("all was read, but {}", verdict(status)),
        _ => verdict(status),
    })
}

fn name(status: &Value) -> &str {
    status["promise"]["verdict"].as_str().unwrap_or_default()
}

/// Verdict on the promises, in words.
fn verdict(status: &Value) -> String {
    let is_done = status["state"] == "done";
    match name(status) {
        "holds" if is_done => "held".to_owned(),
        "late" if is_done => "the date did not hold".to_owned(),
        "slow" if is_done => "the p99 did not hold".to_owned(),
        "neither" if is_done => "neither date nor p99 held".to_owned(),
        _ => {
            let says = status["promise"]["says"].as_str();
            says.unwrap_or_default().to_owned()
        }
    }
}

/// Date by which the scrub must be done, and the forecast of its end.
fn by_when(status: &Value) -> Option<String> {
    let promise = &status["promise"];
    let by = promise["finish_by"].as_f64();
    let by = by.map(|by| format!("to be done by {}", date(by)));
    let end = promise["forecast_end"].as_f64().map(date);
    let end = end.map(|end| match status["state"].as_str() {
        Some("done") => format!("was done {end}"),
        _ => format!("forecast {end}"),
    });
    let short = promise["short_queue"].as_bool().unwrap_or(false);
    let short = short.then(|| "for which the drive gets two commands at a time".to_owned());
    let parts: Vec<String> = by.into_iter().chain(end).chain(short).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Client response times with the scrub and without it.
fn p99(promise: &Value) -> String {
    let millis = |key: &str| promise[key].as_f64();
    let requests = promise["requests"].as_u64().unwrap_or(0);
    let mut text = match (millis("p99_ms"), millis("p99_without_ms")) {
        (Some(with), Some(without)) => {
            let more = match without > 0.0 {
                true => format!(" ({:+.1} %)", (with / without - 1.0) * 100.0),
                false => String::new(),
            };
            format!(
                "{with:.1} ms of {requests} requests, {without:.1} ms without it, estimated{more}"
            )
        }
        _ => "no requests so far".to_owned(),
    };
    if let Some(percent) = promise["p99_percent"].as_f64() {
        let _ = write!(text, "; +{percent} % at most");
    }
    text
}

/// Seconds since 1970 as a date.
fn date(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let (mut year, mut rest) = (1970, days);
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    while rest >= 365 + u64::from(is_leap(year)) {
        rest -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if rest < days {
            break;
        }
        rest -= days;
        month += 1;
    }
    let day = rest + 1;
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0.0, "1970-01-01 00:00:00 UTC"),
            (951_782_400.0, "2000-02-29 00:00:00 UTC"),
            (1_704_067_199.9, "2023-12-31 23:59:59 UTC"),
            (1_735_689_599.0, "2024-12-31 23:59:59 UTC"),
            (1_795_000_000.0, "2026-11-18 11:06:40 UTC"),
            (4_107_542_400.0, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(date(seconds), text);
        }
    }

    #[test]
    fn what_was_promised_is_told_in_rows_and_by_the_exit_code() {
        assert!(rows(&json!({})).is_empty() && said(&json!({})).is_none());
        let status = |state: &str, verdict: &str| {
            json!({ "state": state, "promise": {
                "verdict": verdict, "says": "the date cannot hold", "since": 0.0, "finish_by": 60.0,
                "forecast_end": 90.0, "short_queue": verdict == "holds", "p99_percent": 5.0, "requests": 1200,
                "p99_ms": 10.4, "p99_without_ms": 10.0,
            }})
        };
        let late = status("running", "late");
        let expected = [
            (
                "promise",
                "the date cannot hold, since 1970-01-01 00:00:00 UTC",
            ),
            (
                "date",
                "to be done by 1970-01-01 00:01:00 UTC, forecast 1970-01-01 00:01:30 UTC",
            ),
            (
                "p99",
                "10.4 ms of 1200 requests, 10.0 ms without it, estimated (+4.0 %); +5 % at most",
            ),
        ];
        let told: Vec<(&str, String)> = rows(&late);
        let told: Vec<(&str, &str)> = told
            .iter()
            .map(|(key, text)| (*key, text.as_str()))
            .collect();
        assert_eq!(told, expected);
        assert_eq!(broken(&late).as_deref(), Some("the date cannot hold"));
        let holds = rows(&status("running", "holds"));
        let ends = "for which the drive gets two commands at a time";
        assert!(holds[1].1.ends_with(ends) && !told[1].1.ends_with(ends));
        let done = status("done", "late");
        assert_eq!(
            broken(&done).as_deref(),
            Some("all was read, but the date did not hold")
        );
        for fine in ["holds", "unknown"] {
            assert_eq!(broken(&status("done", fine)), None);
        }
    }
}
