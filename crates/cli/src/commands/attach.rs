//! `headtime attach` and `headtime detach`

mod attached;
mod detach;

pub(super) use detach::detach;

use super::Context;
use super::serve::settle;
use crate::args::Attach;
use crate::fault::Fault;
use crate::live::config::Config;
use crate::live::disks::{self, How};
use crate::live::messages;
use crate::live::server::Server;
use attached::Attached;
use headtime_serve::clock::Clock;

pub(super) fn attach(args: &Attach, context: &mut Context<'_>) -> Result<(), Fault> {
    let config = Config::open(&args.config)?;
    let prepared = disks::prepare(&config)?;
    messages::begin(&config.log, args.log_format)?;
    settle();
    let how = How {
        clock: Clock::start(),
        force: args.force,
        log: args.log.clone().or_else(|| config.log.events.clone()),
    };
    let running = disks::start(prepared, &how)?;
    let attached = match Attached::begin(args, &running) {
        Ok(attached) => attached,
        Err(fault) => {
            // Nothing was written; the first fault is the one to report.
            let _ = disks::stop(&running);
            return Err(fault);
        }
    };
    let text = attached.text();
    let server = Server {
        file: args.config.clone(),
        listen: config.listen.clone(),
        clock: how.clock,
        running,
    };
    let ended = server.run_behind(attached.front(), &mut |ready| {
        context.print(&format!("{text}{ready}\n"))?;
        context.out.flush().map_err(|error| Fault::output(&error))
    })?;
    // A lost summary does not matter.
    let _ = context.err.write_all(ended.summary().as_bytes());
    Ok(())
}
