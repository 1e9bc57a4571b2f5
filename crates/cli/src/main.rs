//! The command `headtime`.

use clap::Parser;
use headtime_cli::args::Cli;
use headtime_cli::commands::{self, Context};
use headtime_cli::live::messages;
use headtime_lab::fault::Fault;
use headtime_lab::output::Terminal;
use headtime_linux::shown::one_line;
use rustix::termios::tcgetwinsize;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

/// Writes the remaining messages when this value is dropped, even by a panic.
struct Messages;

impl Drop for Messages {
    fn drop(&mut self) {
        messages::end();
    }
}

/// Reads the command line. Errors show line breaks of arguments as escapes.
fn parse() -> Result<Cli, clap::Error> {
    Cli::try_parse().map_err(|error| {
        let arguments = std::env::args_os();
        let escaped = arguments.map(|argument| one_line(&argument.to_string_lossy()));
        let again = Cli::try_parse_from(escaped).err();
        (again.filter(|again| again.kind() == error.kind())).unwrap_or(error)
    })
}

fn main() -> ExitCode {
    let _messages = Messages;
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => {
            // A closed pipe under `--help` is no error. clap reports all other errors itself.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let (stdout, stderr) = (io::stdout(), io::stderr());
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let width = tcgetwinsize(&stdout).ok().map(|size| size.ws_col.into());
    let terminal = Terminal {
        colour: stdout.is_terminal() && !plain,
        width: width.filter(|width| *width > 0),
    };
    let progress = stderr.is_terminal();
    let colour_errors = progress && !plain;
    let mut out = BufWriter::new(stdout.lock());
    // Standard error is not locked, since other threads write progress to it.
    let mut err = stderr;
    let mut context = Context {
        out: &mut out,
        err: &mut err,
        terminal,
        progress,
    };
    let mut result = commands::run(cli, &mut context);
    if let Err(error) = out.flush()
        && result.is_ok()
    {
        result = Err(Fault::output(&error));
    }
    match result {
        Ok(()) | Err(Fault::Closed) => ExitCode::SUCCESS,
        Err(fault) => {
            let word = if colour_errors {
                "\u{1b}[1;31merror:\u{1b}[0m "
            } else {
                "error: "
            };
            messages::say(word, &fault.to_string());
            ExitCode::from(fault.exit_code())
        }
    }
}
