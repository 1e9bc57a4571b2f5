//! Requests for a scrub as text: a JSON object, in which every key may be missing:
//!
//! ```text
//! {"range": [0, 1048576], "block": 65536, "idle_ms": 50}     bytes; "idle_ms": null for no idle time
//! {"hash": "/var/lib/x/disk.hash"}                           a file of the server's machine
//! {"copy": "/var/lib/x/disk.img"}                            another one
//! {"finish_within": "14d", "p99": "+5%"}                     promises; null for none
//! ```
//!
//! Only root and the server's own user may name a file. Other users who may connect must not make the server write
//! where they cannot write themselves.

use crate::scrub::ScrubAsk;
use headtime_units::{MorePercent, Nanos};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Longest idle time in milliseconds: a day.
const IDLE_MS_MAX: f64 = 86_400_000.0;

/// Reads a request for a scrub. The error names the problem.
pub(super) fn ask_of(body: &str) -> Result<ScrubAsk, String> {
    let body = if body.trim().is_empty() { "{}" } else { body };
    let keys: Map<String, Value> = serde_json::from_str(body).map_err(|error| error.to_string())?;
    let mut ask = ScrubAsk::default();
    for (key, value) in &keys {
        let problem = |allowed: &str| format!("{key}: {value}: allowed is {allowed}");
        match key.as_str() {
            "range" => {
                let numbers = value.as_array().into_iter().flatten();
                let numbers: Option<Vec<u64>> = numbers.map(Value::as_u64).collect();
                ask.range = match numbers.as_deref() {
                    Some([start, end]) => Some((*start, *end)),
                    _ => return Err(problem("[FIRST BYTE, BYTE BEHIND THE LAST]")),
                };
            }
            "block" => {
                let bytes = value.as_u64();
                ask.block = Some(bytes.ok_or_else(|| problem("a number of bytes"))?);
            }
            "idle_ms" if value.is_null() => ask.idle = Some(None),
            "idle_ms" => {
                let span = value.as_f64();
                let span = span.filter(|span| (0.0..=IDLE_MS_MAX).contains(span));
                let span = span.ok_or_else(|| problem("null, or 0 to a day in milliseconds"))?;
                ask.idle = Some(Some(Nanos::from_nanos((span * 1e6) as u64)));
            }
            "hash" | "copy" => {
                let path = value.as_str().map(PathBuf::from);
                let path = path.filter(|path| path.is_absolute());
                let path = Some(path.ok_or_else(|| problem("an absolute path"))?);
                match key.as_str() {
                    "hash" => ask.hash = path,
                    _ => ask.copy = path,
                }
            }
            "finish_within" if value.is_null() => ask.finish_within = Some(None),
            "finish_within" => {
                let span = value.as_str().and_then(|text| text.parse::<Nanos>().ok());
                let span = span.filter(|span| !span.is_zero());
                let allowed = "null, or more than no time to ten years, as in \"14d\"";
                ask.finish_within = Some(Some(span.ok_or_else(|| problem(allowed))?));
            }
            "p99" if value.is_null() => ask.p99 = Some(None),
            "p99" => {
                let more = value.as_str().map(str::parse::<MorePercent>);
                let more = more.and_then(Result::ok);
                let more = more.ok_or_else(|| problem("null, or \"+0%\" to \"+1000%\""))?;
                ask.p99 = Some(Some(more));
            }
            _ => {
                return Err(format!(
                    "{key}: unknown; allowed are range, block, idle_ms, hash, copy, finish_within, p99"
                ));
            }
        }
    }
    Ok(ask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_scrubbed_is_read_and_what_cannot_be_says_why() {
        let ask = ScrubAsk {
            range: Some((0, 512)),
            block: Some(4096),
            idle: Some(Some(Nanos::from_micros(1_500))),
            hash: Some(PathBuf::from("/h")),
            copy: Some(PathBuf::from("/c")),
            finish_within: Some(Some(Nanos::from_secs(1_209_600))),
            p99: Some("+5%".parse().ok()),
        };
        let text = r#"{"range": [0, 512], "block": 4096, "idle_ms": 1.5, "hash": "/h", "copy": "/c",
            "finish_within": "14d", "p99": "+5%"}"#;
        assert_eq!(ask_of(text), Ok(ask));
        for none in ["", "{}\n"] {
            assert_eq!(ask_of(none), Ok(ScrubAsk::default()));
        }
        let never = ScrubAsk {
            idle: Some(None),
            ..ScrubAsk::default()
        };
        assert_eq!(ask_of(r#"{"idle_ms": null}"#), Ok(never));
        let nothing = ScrubAsk {
            finish_within: Some(None),
            p99: Some(None),
            ..ScrubAsk::default()
        };
        let text = r#"{"finish_within": null, "p99": null}"#;
        assert_eq!(ask_of(text), Ok(nothing));
        for (text, key) in [
            (r#"{"range": [1]}"#, "range"),
            (r#"{"range": [-1, 2]}"#, "range"),
            (r#"{"range": "0"}"#, "range"),
            (r#"{"block": "4KiB"}"#, "block"),
            (r#"{"idle_ms": -1}"#, "idle_ms"),
            (r#"{"idle_ms": 1e300}"#, "idle_ms"),
            (r#"{"hash": "h"}"#, "hash"),
            (r#"{"copy": 1}"#, "copy"),
            (r#"{"finish_within": "0s"}"#, "finish_within"),
            (r#"{"finish_within": "-1d"}"#, "finish_within"),
            (r#"{"finish_within": "3651d"}"#, "finish_within"),
            (
                r#"{"finish_within": "99999999999999999999d"}"#,
                "finish_within",
            ),
            (r#"{"finish_within": 14}"#, "finish_within"),
            (r#"{"p99": 5}"#, "p99"),
            (r#"{"p99": "5%"}"#, "p99"),
            (r#"{"p99": "+NaN%"}"#, "p99"),
            (r#"{"p99": "-5%"}"#, "p99"),
            (r#"{"speed": 1}"#, "speed"),
        ] {
            let problem = ask_of(text).expect_err(text);
            assert!(problem.starts_with(key), "{problem}");
        }
        assert!(ask_of("[]").is_err());
    }
}
