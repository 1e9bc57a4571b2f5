//! Scrubs over HTTP.
//!
//! What is to be scrubbed is a JSON object, in which every key may be missing:
//!
//! ```text
//! {"range": [0, 1048576], "block": 65536, "idle_ms": 50}     bytes; "idle_ms": null for no idle time
//! ```

use super::status::scrub;
use super::{HttpRefusal, SiteState, Watched};
use crate::scrub::{ScrubAsk, ScrubError, Scrubs};
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use headtime_units::Nanos;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A day.
const IDLE_MS_MAX: f64 = 86_400_000.0;

/// Reads what is to be scrubbed. The error says what is wrong.
fn ask_of(body: &str) -> Result<ScrubAsk, String> {
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
            _ => return Err(format!("{key}: unknown; allowed are range, block, idle_ms")),
        }
    }
    Ok(ask)
}

impl Watched {
    fn scrub_refused(&self, error: &ScrubError) -> HttpRefusal {
        match error {
            ScrubError::Value { .. } => HttpRefusal(StatusCode::BAD_REQUEST, error.to_string()),
            _ => self.conflict(error),
        }
    }

    /// Files are read and much is counted: not on the thread that serves others.
    async fn scrubs(
        &self,
        what: impl FnOnce(&Scrubs) -> Result<(), ScrubError> + Send + 'static,
    ) -> Result<Response, HttpRefusal> {
        let scrubs = Arc::clone(&self.scrubs);
        let told = tokio::task::spawn_blocking(move || what(&scrubs)).await;
        let told = told.map_err(HttpRefusal::stopped)?;
        told.map_err(|error| self.scrub_refused(&error))?;
        Ok(self.scrub_status())
    }

    fn scrub_status(&self) -> Response {
        let sector_bytes = self.disk.sector_bytes();
        let status = self.scrubs.status();
        let status = status.map_or(Value::Null, |status| scrub(&status, sector_bytes));
        let text = format!("{status:#}\n");
        ([(header::CONTENT_TYPE, "application/json")], text).into_response()
    }
}

pub(super) async fn status(
    State(site): SiteState,
    Path(name): Path<String>,
) -> Result<Response, HttpRefusal> {
    Ok(site.find(&name)?.scrub_status())
}

pub(super) async fn begin(
    State(site): SiteState,
    Path(name): Path<String>,
    body: String,
) -> Result<Response, HttpRefusal> {
    let watched = site.find(&name)?;
    let ask = ask_of(&body).map_err(|problem| HttpRefusal(StatusCode::BAD_REQUEST, problem))?;
    tracing::info!(disk = name, ?ask, "a scrub is to begin or to go on");
    watched.scrubs(move |scrubs| scrubs.begin(&ask)).await
}

pub(super) async fn tell(
    State(site): SiteState,
    Path((name, verb)): Path<(String, String)>,
) -> Result<Response, HttpRefusal> {
    let watched = site.find(&name)?;
    let told = match verb.as_str() {
        "pause" => Scrubs::pause,
        "resume" => Scrubs::resume,
        "stop" => Scrubs::stop,
        _ => {
            let problem = "allowed are pause, resume and stop".to_owned();
            return Err(HttpRefusal(StatusCode::NOT_FOUND, problem));
        }
    };
    watched.scrubs(told).await
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
        };
        let text = r#"{"range": [0, 512], "block": 4096, "idle_ms": 1.5}"#;
        assert_eq!(ask_of(text), Ok(ask));
        for none in ["", "{}\n"] {
            assert_eq!(ask_of(none), Ok(ScrubAsk::default()));
        }
        let never = ScrubAsk {
            idle: Some(None),
            ..ScrubAsk::default()
        };
        assert_eq!(ask_of(r#"{"idle_ms": null}"#), Ok(never));
        for (text, key) in [
            (r#"{"range": [1]}"#, "range"),
            (r#"{"range": [-1, 2]}"#, "range"),
            (r#"{"range": "0"}"#, "range"),
            (r#"{"block": "4KiB"}"#, "block"),
            (r#"{"idle_ms": -1}"#, "idle_ms"),
            (r#"{"idle_ms": 1e300}"#, "idle_ms"),
            (r#"{"speed": 1}"#, "speed"),
        ] {
            let problem = ask_of(text).expect_err(text);
            assert!(problem.starts_with(key), "{problem}");
        }
        assert!(ask_of("[]").is_err());
    }
}
