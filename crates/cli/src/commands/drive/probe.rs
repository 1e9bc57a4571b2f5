//! `headtime drive probe`

mod device;
mod page;
mod quick;
mod sparse;
mod state;
mod whole;

use crate::args::Probe;
use crate::commands::context::Context;
use crate::fault::Fault;

pub(in crate::commands) fn probe(args: &Probe, context: &mut Context<'_>) -> Result<(), Fault> {
    match args.quick {
        true => quick::probe(args, context),
        false => whole::probe(args, context),
    }
}
