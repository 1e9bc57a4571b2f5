//! `headtime drive probe`

pub(super) mod device;
mod inside;
mod page;
mod quick;
mod sparse;
mod state;
mod tracks;
mod whole;

use crate::args::Probe;
use crate::commands::context::Context;
use crate::file_identity::are_apart;
use headtime_lab::fault::Fault;
use std::path::Path;

pub(in crate::commands) fn probe(args: &Probe, context: &mut Context<'_>) -> Result<(), Fault> {
    let record = args.state.as_deref().map(state::record_beside);
    let profile = args.emulate.as_deref().map(Path::new);
    // Files that are read or written, with the options that name them.
    let files = [
        ("DEVICE", args.device.as_deref()),
        ("--emulate", profile.filter(|path| path.is_file())),
        ("--state", args.state.as_deref()),
        ("the switches of --state", record.as_deref()),
        ("--out", args.out.as_deref()),
        ("--plot", args.plot.as_deref()),
        ("--emulate-switches", args.emulate_switches.as_deref()),
    ];
    let files = files
        .into_iter()
        .filter_map(|(how, path)| Some((how, path?)));
    are_apart(&files.collect::<Vec<_>>())?;
    match args.quick {
        true => quick::probe(args, context),
        false => whole::probe(args, context),
    }
}
