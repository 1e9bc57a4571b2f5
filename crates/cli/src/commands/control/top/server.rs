//! Requests of `headtime top` to its server.

use super::super::{done, unanswered};
use headtime_lab::fault::Fault;
use headtime_linux::shown::PathShown as _;
use headtime_serve::http::client::ask_within;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Time between two states.
pub(super) const EVERY: Duration = Duration::from_secs(1);

/// Longest time for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Asks the server for its state.
pub(super) fn state(socket: &Path) -> Result<Value, Fault> {
    let json = ask(socket, "GET", "/status", "")?;
    let state: Option<Value> = serde_json::from_str(&json).ok();
    let of_disks = |state: &Value| state["uptime_s"].is_f64() && state["disks"].is_array();
    state.filter(of_disks).ok_or_else(|| {
        let problem = "the answer is no state of disks";
        Fault::Check(format!("{}: {problem}", socket.shown()))
    })
}

/// Sends a request to the server, and returns the text of its answer.
pub(super) fn ask(socket: &Path, method: &str, target: &str, body: &str) -> Result<String, Fault> {
    let answer = ask_within(ANSWER_WITHIN, socket, method, target, body);
    done(socket, answer.map_err(|error| unanswered(socket, &error))?)
}
