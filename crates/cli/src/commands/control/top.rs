//! `headtime top`: the state of a server each second.

mod page;
#[cfg(feature = "top")]
mod screen;
mod server;

use super::super::context::Context;
use crate::args::Top;
use headtime_lab::fault::Fault;
use page::Figures;
use server::{EVERY, state};

pub(in super::super) fn top(args: &Top, context: &mut Context<'_>) -> Result<(), Fault> {
    if !args.once {
        return on_screen(args);
    }
    let before = state(&args.socket)?;
    pause();
    let now = state(&args.socket)?;
    let figures = Figures::new(&now, Some(&before));
    context.print(&page::text(&figures, args.sort, context.terminal))
}

#[cfg(feature = "top")]
fn on_screen(args: &Top) -> Result<(), Fault> {
    use std::io::{IsTerminal as _, stdin, stdout};
    if stdin().is_terminal() && stdout().is_terminal() {
        return screen::run(&args.socket, args.sort);
    }
    let problem = "input and output are not a terminal; --once prints one table";
    Err(Fault::Usage(problem.to_owned()))
}

#[cfg(not(feature = "top"))]
fn on_screen(_args: &Top) -> Result<(), Fault> {
    let problem = "this program was built without the screen of top; --once prints one table, and `cargo install --path crates/cli \
                   --features top` builds the screen";
    Err(Fault::Usage(problem.to_owned()))
}

#[expect(
    clippy::disallowed_methods,
    reason = "rates are over a second of the server's time"
)]
fn pause() {
    std::thread::sleep(EVERY);
}
