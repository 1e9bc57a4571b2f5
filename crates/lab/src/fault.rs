//! What goes wrong in a command, and what its exit code is.

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
    /// A file cannot be read or written, or a socket not be used: exit code 4.
    #[error("{}", one_line(.0))]
    File(String),
    /// Told to end twice: what was under way was given up: exit code 5.
    #[error("ended at once; what clients had not flushed may be lost")]
    Interrupted,
    /// Told to end: what is done is kept: exit code 5.
    #[error("{}", one_line(.0))]
    Stopped(String),
    /// Nobody reads our output any more; no error: exit code 0.
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
  4  a file cannot be read or written, or a socket not be used
  5  serve or attach was told to end a second time, and did so at once; or a sweep or a
     probe was told to end, or its time was over";

impl Fault {
    /// The code that the process ends with.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Fault::Closed => 0,
            Fault::Check(_) | Fault::Differs(_) => 1,
            Fault::Usage(_) => 2,
            Fault::Input(_) => 3,
            Fault::File(_) => 4,
            Fault::Interrupted | Fault::Stopped(_) => 5,
        }
    }

    /// Whether what was asked for is wrong, and not what this machine makes of it.
    pub const fn is_about_input(&self) -> bool {
        matches!(self, Fault::Usage(_) | Fault::Input(_))
    }

    /// The same, with whom it befell in front.
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
            Fault::File(text) => Fault::File(with(text)),
            Fault::Interrupted => Fault::Interrupted,
            Fault::Stopped(text) => Fault::Stopped(with(text)),
            Fault::Closed => Fault::Closed,
        }
    }

    /// Something is wrong with what was read.
    pub fn input(error: impl Display) -> Fault {
        Fault::Input(error.to_string())
    }

    /// Something is wrong with what stands on the command line.
    pub fn usage(error: impl Display) -> Fault {
        Fault::Usage(error.to_string())
    }

    /// A file could not be read.
    pub fn reading(path: &Path, error: &io::Error) -> Fault {
        Fault::File(format!("{}: cannot read: {error}", name(path)))
    }

    /// A file could not be written.
    pub fn writing(path: &Path, error: &io::Error) -> Fault {
        Fault::File(format!("{}: cannot write: {error}", name(path)))
    }

    /// The standard output does not take more.
    pub fn output(error: &io::Error) -> Fault {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Fault::Closed
        } else {
            Fault::File(format!("standard output: cannot write: {error}"))
        }
    }
}

/// What to say behind "is called that" of a name that there is not: the one of `names` that it resembles, if any, else
/// `otherwise`.
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

/// A file's name on one line: a configuration may hold it, or a trace.
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

/// What is wrong on the command line is a usage fault, what is wrong in a file is not.
impl From<TreeError> for Fault {
    fn from(error: TreeError) -> Fault {
        match error.place {
            Place::Option(_) => Fault::usage(error),
            _ => Fault::input(error),
        }
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
