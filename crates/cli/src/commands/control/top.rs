//! `headtime top`: the state of a server each second.

#[cfg_attr(
    not(feature = "top"),
    allow(dead_code, reason = "the screen uses all of it")
)]
mod page;
#[cfg(feature = "top")]
mod screen;
mod server;

use super::super::context::Context;
use crate::args::Top;
use headtime_lab::fault::Fault;
use page::{Figures, SortBy};
use server::{EVERY, state};
use std::io::{IsTerminal as _, stdin, stdout};
use std::path::Path;

/// Message of a program without the screen.
const WITHOUT_SCREEN: &str = "this program was built without the screen of top; --once prints one table, and `cargo install --path \
                              crates/cli --features top` builds the screen";

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
