//! `headtime help`: long help of a command, and tables of the schedulers and gates.

use super::Context;
use crate::args::{Cli, Help, gates_help, schedulers_help};
use clap::Parser;
use clap::error::ErrorKind;
use headtime_lab::fault::Fault;

/// Columns of the longest line; as in the commands' own help.
const WIDTH: usize = 100;
/// Topics that are no commands.
const TOPICS: [&str; 2] = ["schedulers", "gates"];

pub(super) fn help(args: &Help, context: &mut Context<'_>) -> Result<(), Fault> {
    let topic: Vec<&str> = args.topic.iter().map(String::as_str).collect();
    let text = match topic[..] {
        ["schedulers"] => schedulers_help(),
        ["gates"] => gates_help(),
        _ => return of_command(&topic, context),
    };
    let width = context
        .terminal
        .width
        .map_or(WIDTH, |width| width.min(WIDTH));
    context.print(&wrapped(&text, width))
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

/// Breaks long lines between words. The rest of a line is indented as the line itself.
fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let mut column = 0;
        for word in line.split_inclusive(' ') {
            if column > indent && column + word.trim_end().chars().count() > width {
                out.truncate(out.trim_end().len());
                out.push('\n');
                out.push_str(&" ".repeat(indent));
                column = indent;
            }
            out.push_str(word);
            column += word.chars().count();
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_break_between_words_and_keep_their_indent() {
        let text = "short\n  one two three four\n  onelongwordwithoutaspace";
        assert_eq!(
            wrapped(text, 12),
            "short\n  one two\n  three four\n  onelongwordwithoutaspace\n"
        );
    }
}
