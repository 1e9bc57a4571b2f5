//! Format of messages. Each message is one short line, independent of its text.

use crate::object::object;
use headtime_linux::shown::{OneLine, is_plain};
use std::fmt::{self, Write as _};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{DefaultFields, Format, Json, Writer};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, format};
use tracing_subscriber::registry::LookupSpan;

/// Longest line in bytes, with its end. A pipe takes this number of bytes at once or not at all (`PIPE_BUF`, pipe(7)), even if other
/// processes write to the pipe.
pub(super) const LINE_BYTES: usize = 4096;

/// Bytes reserved around a message: for time, level and colours, or for the object of JSON.
const HEAD_BYTES: usize = 128;

/// Writes messages as lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines {
    /// True for objects for machines, false for text for people.
    pub(super) json: bool,
    /// True if the level of a text has a colour.
    pub(super) colour: bool,
}

impl Lines {
    /// Formats a message as a line, with its end.
    pub(super) fn line(self, level: Level, text: impl fmt::Display) -> String {
        let mut time = String::new();
        if SystemTime.format_time(&mut Writer::new(&mut time)).is_err() {
            time.push_str("<unknown time>");
        }
        let mut line = match self.json {
            false => {
                let (on, off) = match self.colour {
                    true => (colour(level), "\u{1b}[0m"),
                    false => ("", ""),
                };
                let head = format!("{time} {on}{level:>5}{off} ");
                head + &cut(text, LINE_BYTES - HEAD_BYTES)
            }
            true => {
                // Each byte may be a quote, which takes two bytes in JSON.
                let message = cut(text, (LINE_BYTES - HEAD_BYTES) / 2);
                let object = object! {
                    timestamp: &time,
                    level: level.as_str(),
                    fields: object! { message: message },
                };
                serde_json::to_string(&object).expect("text can be written as JSON")
            }
        };
        line.push('\n');
        line
    }
}

/// Puts a text on one line of at most `bytes` bytes.
fn cut(text: impl fmt::Display, bytes: usize) -> String {
    const CUT: &str = "...";
    let mut out = String::new();
    let mut line = OneLine::new(&mut out, bytes - CUT.len());
    // If formatting a value fails, the line has the text up to the failure.
    let _ = write!(line, "{text}");
    if line.is_cut() {
        out.push_str(CUT);
    }
    out
}

fn colour(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\u{1b}[31m",
        Level::WARN => "\u{1b}[33m",
        Level::INFO => "\u{1b}[32m",
        Level::DEBUG => "\u{1b}[34m",
        Level::TRACE => "\u{1b}[35m",
    }
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if self.json {
            let object: Format<Json> = format().json().with_target(false);
            let mut line = String::new();
            object.format_event(context, Writer::new(&mut line), event)?;
            let line = plain_json(&line);
            if line.len() <= LINE_BYTES {
                return writer.write_str(&line);
            }
        }
        let mut text = String::new();
        DefaultFields::new().format_fields(Writer::new(&mut text), event)?;
        writer.write_str(&self.line(*event.metadata().level(), text))
    }
}

/// Escapes further characters in a line of JSON, which JSON itself would not escape. Characters beyond ASCII occur in strings only.
fn plain_json(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    for char in line.chars() {
        match is_plain(char) || char == '\n' {
            true => plain.push(char),
            // Writing to a string cannot fail.
            false => {
                let _ = write!(plain, "\\u{:04x}", u32::from(char));
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::io;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Output for the messages that `says` emits.
    fn written(lines: Lines, says: impl FnOnce()) -> String {
        let written = Written::default();
        let sink = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || sink.clone())
            .event_format(lines)
            .finish();
        tracing::subscriber::with_default(subscriber, says);
        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    const TEXT: Lines = Lines {
        json: false,
        colour: false,
    };
    const JSON: Lines = Lines { json: true, ..TEXT };
    const COLOURS: Lines = Lines {
        colour: true,
        ..TEXT
    };

    const EVIL: &str = "x\n2026-11-22T00:00:00Z ERROR \u{1b}[31mforged\r\t\u{9b}\u{202e}\u{7f}\\";

    #[test]
    fn a_text_with_line_breaks_and_escapes_is_one_line() {
        let line = written(
            TEXT,
            || tracing::warn!(name = EVIL, shown = %EVIL, "named {EVIL}"),
        );
        let (time, rest) = line.split_once("Z  WARN ").unwrap();
        assert_eq!(time.len(), "2026-11-22T04:30:57.309074".len());
        let shown =
            "x\\n2026-11-22T00:00:00Z ERROR \\u{1b}[31mforged\\r\\t\\u{9b}\\u{202e}\\u{7f}\\";
        // tracing itself escapes a few characters in the message.
        let message = shown
            .replace("\\u{1b}", "\\x1b")
            .replace("\\u{7f}", "\\x7f");
        let debug = format!("{}\\", shown);
        let expected = format!("named {message} name=\"{debug}\" shown={shown}\n");
        assert_eq!(rest, expected);
    }

    #[test]
    fn json_with_line_breaks_and_escapes_is_one_line_and_says_the_same() {
        let line = written(JSON, || tracing::info!(name = EVIL, "named {EVIL}"));
        let whole = line.strip_suffix('\n').unwrap();
        assert!(whole.chars().all(is_plain), "{whole:?}");
        let value: Value = serde_json::from_str(whole).unwrap();
        assert_eq!(value["level"], "INFO");
        assert_eq!(value["fields"]["name"], EVIL);
        assert_eq!(value["fields"]["message"], format!("named {EVIL}"));
        assert!(line.starts_with("{\"timestamp\":\"20"), "{line}");
    }

    /// A terminal gets this program's escapes, and no escapes from a message.
    #[test]
    fn colours_are_of_the_level_alone() {
        for (level, colour) in [
            (Level::ERROR, "31"),
            (Level::WARN, "33"),
            (Level::INFO, "32"),
        ] {
            let line = match level {
                Level::ERROR => written(COLOURS, || tracing::error!("\u{1b}[0mx")),
                Level::WARN => written(COLOURS, || tracing::warn!("\u{1b}[0mx")),
                _ => written(COLOURS, || tracing::info!("\u{1b}[0mx")),
            };
            let expected = format!(" \u{1b}[{colour}m{level:>5}\u{1b}[0m \\x1b[0mx\n");
            assert!(line.ends_with(&expected), "{line:?}");
        }
    }

    #[test]
    fn a_message_that_is_too_long_is_cut_and_stays_what_it_is() {
        for evil in ["x", "\"", "\\", "\n", "\u{9b}", "磁", "\u{10ffff}"] {
            let long = evil.repeat(LINE_BYTES);
            let says = || tracing::error!(name = long, "{long}");
            for lines in [TEXT, COLOURS, JSON] {
                let line = written(lines, says);
                assert!(line.len() <= LINE_BYTES, "{evil:?}: {}", line.len());
                assert!(line.len() > LINE_BYTES / 4, "{evil:?}: {}", line.len());
                assert_eq!(line.find('\n'), Some(line.len() - 1));
                assert!(line.contains("..."), "{line}");
                if lines.json {
                    let value: Value = serde_json::from_str(&line).unwrap();
                    assert_eq!(value["level"], "ERROR");
                }
                let own = lines.line(Level::ERROR, &long);
                assert!(own.len() <= LINE_BYTES, "{evil:?}: {}", own.len());
            }
        }
    }

    #[test]
    fn a_line_of_our_own_looks_as_others_do() {
        let strip = |line: &str| {
            let at = line.find('Z').unwrap();
            line[at..].to_owned()
        };
        for lines in [TEXT, JSON, COLOURS] {
            let others = written(lines, || tracing::warn!("a \"b\""));
            let own = lines.line(Level::WARN, "a \"b\"");
            assert_eq!(strip(&own), strip(&others));
        }
    }
}
