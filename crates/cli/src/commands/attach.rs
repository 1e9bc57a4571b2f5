//! `headtime attach` and `headtime detach`

mod attached;
mod detach;

pub(super) use detach::detach;

use super::serve::{say_end, start};
use crate::args::Attach;
use crate::live::config::Config;
use crate::live::disks;
use crate::live::{messages, sockets};
use attached::Attached;
use headtime_lab::fault::Fault;

pub(super) fn attach(args: &Attach) -> Result<(), Fault> {
    let config = Config::open(&args.config)?;
    let prepared = disks::prepare(&config)?;
    // This check comes before anything is made.
    attached::hides_nothing(&args.mountpoint)?;
    let server = start(&config, sockets::inherited()?, prepared, &args.live)?;
    let attached = match Attached::begin(args, &server.running) {
        Ok(attached) => attached,
        Err(fault) => {
            disks::give_up(&server.running);
            return Err(fault);
        }
    };
    let text = attached.text();
    let (ended, result) = server.run_behind(attached.front(), &mut |ready| {
        messages::announce(&format!("{text}{ready}"));
    });
    say_end(&ended);
    result
}
