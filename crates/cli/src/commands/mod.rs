//! The commands, one module for each verb.

mod array;
#[cfg(feature = "fuse")]
mod attach;
mod columnar;
mod compare;
mod context;
mod control;
mod coordinate;
mod drive;
mod examples;
mod generate;
mod help;
mod judging;
mod qos;
mod replay_log;
mod report;
mod reproduce;
mod scrub;
mod serve;
mod signals;
mod sim;
mod sweep;
mod trace;

use crate::args::{Cli, DriveVerb, SimVerb, TraceVerb, Verb};
use headtime_lab::fault::Fault;

pub use context::Context;

/// Runs a command.
///
/// # Errors
///
/// The fault of the command; [`Fault::exit_code`] gives the exit code.
pub fn run(cli: Cli, context: &mut Context<'_>) -> Result<(), Fault> {
    match cli.verb {
        Verb::Sim(SimVerb::Run(args)) => sim::run(args, context),
        Verb::Sim(SimVerb::Fuzz(args)) => sim::fuzz(&args, context),
        Verb::Sim(SimVerb::ReplayLog(args)) => replay_log::replay_log(&args, context),
        Verb::Sweep(args) => sweep::sweep(*args, context),
        Verb::Report(args) => report::report(*args, context),
        Verb::Trace(TraceVerb::Info(args)) => trace::info(&args, context),
        Verb::Trace(TraceVerb::Convert(args)) => trace::convert(&args, context),
        Verb::Trace(TraceVerb::Replay(args)) => trace::replay(*args, context),
        Verb::Trace(TraceVerb::Record(args)) => trace::record(&args, context),
        Verb::Drive(DriveVerb::List(args)) => drive::list(&args, context),
        Verb::Drive(DriveVerb::Show(args)) => drive::show(&args, context),
        Verb::Drive(DriveVerb::New(args)) => drive::new(&args, context),
        Verb::Drive(DriveVerb::Import(args)) => drive::import(&args, context),
        Verb::Drive(DriveVerb::Validate(args)) => drive::validate(&args, context),
        Verb::Drive(DriveVerb::Check(args)) => drive::check(&args, context),
        Verb::Drive(DriveVerb::Curve(args)) => drive::curve(&args, context),
        Verb::Drive(DriveVerb::Probe(args)) => drive::probe(&args, context),
        Verb::Serve(args) => serve::serve(&args, context),
        #[cfg(feature = "fuse")]
        Verb::Attach(args) => attach::attach(&args),
        #[cfg(feature = "fuse")]
        Verb::Detach(args) => attach::detach(&args, context),
        Verb::Array(verb) => array::array(&verb, context),
        Verb::Control(args) => control::control(&args, context),
        Verb::Top(args) => control::top(&args, context),
        Verb::Scrub(args) => scrub::scrub(&args, context),
        Verb::Qos(verb) => qos::qos(&verb, context),
        Verb::Reproduce(args) => reproduce::reproduce(&args, context),
        Verb::Generate(args) => generate::generate(&args),
        Verb::Help(args) => help::help(&args, context),
    }
}
