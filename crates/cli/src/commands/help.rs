//! `headtime help`: long help of a command, and tables of the schedulers and gates.

use super::Context;
use crate::args::{Cli, Help, gates_help, schedulers_help};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use headtime_lab::fault::Fault;

/// Topics that are no commands.
const TOPICS: [&str; 2] = ["schedulers", "gates"];

pub(super) fn help(args: &Help, context: &mut Context<'_>) -> Result<(), Fault> {
    let topic: Vec<&str> = args.topic.iter().map(String::as_str).collect();
    let text = match topic[..] {
        ["schedulers"] => schedulers_help(),
        ["gates"] => gates_help(),
        _ => return of_command(&topic, context),
    };
    // clap wraps the text as in the help of a command.
    let page = Cli::command().help_template("{after-help}\n");
    let page = page.after_help(text).render_help();
    context.print(&page.to_string())
}

/// Prints what `COMMAND --help` prints.
fn of_command(path: &[&str], context: &mut Context<'_>) -> Result<(), Fault> {
    let words = [&["headtime"], path, &["--help"]].concat();
    let Err(help) = Cli::try_parse_from(words) else {
        return Err(unknown(path));
    };
    if help.kind() != ErrorKind::DisplayHelp {
        return Err(unknown(path));
    }
    context.print(&help.to_string())
}

fn unknown(path: &[&str]) -> Fault {
    Fault::Usage(format!(
        "help: {}: no such topic or command; allowed are {}, and each command of `headtime --help`",
        path.join(" "),
        TOPICS.join(", ")
    ))
}
