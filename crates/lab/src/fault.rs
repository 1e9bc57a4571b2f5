//! Errors of commands, and their exit codes.

use headtime_config::{Error as TreeError, Place};
use headtime_linux::shown::one_line;
use headtime_stack::StackError;
use headtime_units::nearest;
use std::fmt::Display;
use std::io;
use std::path::Path;

/// Why a command ended early. Messages have one line, but for [`Fault::Differs`].
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A check failed, or a server refused a command: exit code 1.
    #[error("{}", one_line(.0))]
    Check(String),
    /// As [`Fault::Check`], with lines that show the problem.
    #[error("{}", .0.iter().map(|line| one_line(line)).collect::<Vec<_>>().join("\n"))]
    Differs(Vec<String>),
    /// The command line is wrong: exit code 2.
    #[error("{}", one_line(.0))]
    Usage(String),
    /// A scenario, configuration, profile, trace or log is wrong: exit code 3.
    #[error("{}", one_line(.0))]
    Input(String),
    /// A key of a text is wrong, at a known place: exit code 3, or 2 for an option of the command line.
    #[error("{}", text_line(.0))]
    Text(Box<TreeError>),
    /// A file cannot be read or written, or a socket cannot be used: exit code 4.
    #[error("{}", one_line(.0))]
    File(String),
    /// Another server uses the file of a disk: exit code 4.
    #[error("{}", one_line(.0))]
    InUse(String),
    /// Told to end twice, or with a stuck disk, the command gave up its work: exit code 5.
    #[error("ended at once; what clients had not flushed may be lost")]
    Interrupted,
    /// Told to end, the command kept its finished work: exit code 5.
    #[error("{}", one_line(.0))]
    Stopped(String),
    /// Emulated drives were late where `serve --on-time` is given: exit code 6.
    #[error("{}", one_line(.0))]
    Late(String),
    /// The command of `serve --run` did not end with 0; with its exit code, which becomes the process's.
    #[error("the command of --run ended with exit code {0}")]
    Command(u8),
    /// The reader of the output has closed it, which is no error: exit code 0.
    #[error("the output was closed")]
    Closed,
}

/// The part of the help text that lists the exit codes; [`Fault::exit_code`] keeps to it.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  a check did not hold (reproduce --check, sim fuzz, sim replay-log), a combination of a
     sweep failed, control was refused, a scrub found what cannot be read, or a disk could not
     be learned
  2  the command line is wrong
  3  a scenario, configuration, profile, trace or log is wrong
  4  a file cannot be read or written or is in use by another server, a socket cannot be
     used, or a disk failed at the end of serve
  5  serve or attach was told to end a second time or had a stuck disk, and ended at once;
     or a sweep or a probe was told to end, or its time was over
  6  serve --on-time: the machine was too busy for an emulated drive";

impl Fault {
    /// The code that the process ends with.
    pub fn exit_code(&self) -> u8 {
        match self {
            Fault::Closed => 0,
            Fault::Command(code) => *code,
            Fault::Check(_) | Fault::Differs(_) => 1,
            Fault::Text(error) if matches!(error.place, Place::Option(_)) => 2,
            Fault::Usage(_) => 2,
            Fault::Input(_) | Fault::Text(_) => 3,
            Fault::File(_) | Fault::InUse(_) => 4,
            Fault::Interrupted | Fault::Stopped(_) => 5,
            Fault::Late(_) => 6,
        }
    }

    /// True if the input or the command line is wrong, rather than this machine.
    pub const fn is_about_input(&self) -> bool {
        matches!(self, Fault::Usage(_) | Fault::Input(_) | Fault::Text(_))
    }

    /// This fault with a name in front.
    #[must_use]
    pub fn of(self, name: &str) -> Fault {
        let with = |text: String| format!("{name}: {text}");
        match self {
            Fault::Check(text) => Fault::Check(with(text)),
            Fault::Differs(mut lines) => {
                lines[0] = with(std::mem::take(&mut lines[0]));
                Fault::Differs(lines)
            }
            Fault::Usage(text) => Fault::Usage(with(text)),
            Fault::Input(text) => Fault::Input(with(text)),
            Fault::Text(error) => Fault::Input(with(error.to_string())),
            Fault::File(text) => Fault::File(with(text)),
            Fault::InUse(text) => Fault::InUse(with(text)),
            Fault::Interrupted => Fault::Interrupted,
            Fault::Command(code) => Fault::Command(code),
            Fault::Stopped(text) => Fault::Stopped(with(text)),
            Fault::Late(text) => Fault::Late(with(text)),
            Fault::Closed => Fault::Closed,
        }
    }

    /// Fault for wrong input.
    pub fn input(error: impl Display) -> Fault {
        Fault::Input(error.to_string())
    }

    /// Fault for a wrong command line.
    pub fn usage(error: impl Display) -> Fault {
        Fault::Usage(error.to_string())
    }

    /// Fault for a file that cannot be read.
    pub fn reading(path: &Path, error: &io::Error) -> Fault {
        Fault::File(format!("{}: cannot read: {error}", name(path)))
    }

    /// Fault for a file that cannot be written.
    pub fn writing(path: &Path, error: &io::Error) -> Fault {
        Fault::File(format!("{}: cannot write: {error}", name(path)))
    }

    /// Fault for a standard output that accepts no more text.
    pub fn output(error: &io::Error) -> Fault {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Fault::Closed
        } else {
            Fault::File(format!("standard output: cannot write: {error}"))
        }
    }
}

/// End of a message about an unknown name: a question with the nearest of `names`, or `otherwise` if no name is near.
pub fn did_you_mean<'a>(
    name: &str,
    names: impl Iterator<Item = &'a str>,
    otherwise: &str,
) -> String {
    match nearest(name, names) {
        Some(guess) => format!("; did you mean `{guess}`?"),
        None => otherwise.to_owned(),
    }
}

fn text_line(error: &TreeError) -> String {
    one_line(&error.to_string())
}

/// Name of a file on one line. Names from configurations and traces may hold line breaks.
pub fn name(path: &Path) -> String {
    one_line(&path.to_string_lossy())
}

impl From<StackError> for Fault {
    fn from(error: StackError) -> Fault {
        match error {
            StackError::Input(text) => Fault::Input(text),
            StackError::File(text) => Fault::File(text),
        }
    }
}

impl From<TreeError> for Fault {
    fn from(error: TreeError) -> Fault {
        Fault::Text(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_one_line_unless_it_shows_a_difference() {
        let name = "a\nb".to_owned();
        for fault in [
            Fault::Check(name.clone()),
            Fault::Usage(name.clone()),
            Fault::Stopped(name.clone()),
        ] {
            assert_eq!(fault.of("c\nd").to_string(), "c\\nd: a\\nb");
        }
        let differs = Fault::Differs(vec![name.clone(), name]);
        assert_eq!(differs.of("c").to_string(), "c: a\\nb\na\\nb");
    }

    #[test]
    fn codes_are_as_documented() {
        for (fault, words) in [
            (Fault::Check(String::new()), "check"),
            (Fault::Usage(String::new()), "command line"),
            (Fault::Input(String::new()), "scenario"),
            (Fault::File(String::new()), "file"),
            (Fault::Interrupted, "second time"),
        ] {
            let line = format!("\n  {}  ", fault.exit_code());
            let (_, text) = EXIT_CODES.split_once(&line).unwrap();
            assert!(text.lines().next().unwrap().contains(words), "{text}");
        }
    }
}
