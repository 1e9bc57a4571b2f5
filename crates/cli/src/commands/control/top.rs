//! `headtime top`: the state of a server each second.

mod page;
#[cfg(feature = "top")]
mod screen;

use super::super::context::Context;
use super::{done, unanswered};
use crate::args::Top;
use headtime_lab::fault::Fault;
use headtime_linux::shown::PathShown as _;
use headtime_serve::http::client::ask_within;
use page::{Figures, SortBy};
use serde_json::Value;
use std::io::{IsTerminal as _, stdin, stdout};
use std::path::Path;
use std::time::Duration;

/// Time between two states.
const EVERY: Duration = Duration::from_secs(1);

/// Message of a program without the screen.
const WITHOUT_SCREEN: &str = "this program was built without the screen of top; --once prints one table, and `cargo install --path \
                              crates/cli --features top` builds the screen";

/// Longest time for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

pub(in super::super) fn top(args: &Top, context: &mut Context<'_>) -> Result<(), Fault> {
    if !args.once {
        if !cfg!(feature = "top") {
            return Err(Fault::Usage(WITHOUT_SCREEN.to_owned()));
        }
        if !(stdin().is_terminal() && stdout().is_terminal()) {
            let problem = "input and output are not a terminal; --once prints one table";
            return Err(Fault::Usage(problem.to_owned()));
        }
        return on_screen(&args.socket);
    }
    let before = state(&args.socket)?;
    pause();
    let now = state(&args.socket)?;
    let figures = Figures::new(&now, Some(&before));
    context.print(&page::text(&figures, SortBy::default(), context.terminal))
}

#[cfg(feature = "top")]
fn on_screen(socket: &Path) -> Result<(), Fault> {
    screen::run(socket)
}

#[cfg(not(feature = "top"))]
fn on_screen(_socket: &Path) -> Result<(), Fault> {
    Err(Fault::Usage(WITHOUT_SCREEN.to_owned()))
}

#[expect(
    clippy::disallowed_methods,
    reason = "rates are over a second of the server's time"
)]
fn pause() {
    std::thread::sleep(EVERY);
}

/// Asks the server for its state.
fn state(socket: &Path) -> Result<Value, Fault> {
    let json = ask(socket, "GET", "/status", "")?;
    let state: Option<Value> = serde_json::from_str(&json).ok();
    let of_disks = |state: &Value| state["uptime_s"].is_f64() && state["disks"].is_array();
    state.filter(of_disks).ok_or_else(|| {
        let problem = "the answer is no state of disks";
        Fault::Check(format!("{}: {problem}", socket.shown()))
    })
}

fn ask(socket: &Path, method: &str, target: &str, body: &str) -> Result<String, Fault> {
    let answer = ask_within(ANSWER_WITHIN, socket, method, target, body);
    done(socket, answer.map_err(|error| unanswered(socket, &error))?)
}
