//! The log of events and decisions, and its replay.
//!
//! A log is text: a header line, settings, and then one line per event or command, in the order in
//! which they passed through the engine. Numbers are decimal, times are nanoseconds since the start
//! of the run, below 2^63.
//!
//! ```text
//! headtime-log 2
//! # scheduler deadline
//! # depth 1
//! A 0 17 R 2048 8 0 12 3 1 1       arrived: time id op lba sectors flags process program export class
//! I 0 0 R 2048 8                   issue:   time tag op lba sectors
//! C 5300000 0 ok                   completed: time tag outcome
//! F 5300000 17 ok                  finish:  time id outcome
//! W 9300000                        woke:    time
//! U 9300000                        unplugged: time
//! T 9300000 9400000 R 4096 8 12 3 1   foretold: time, when it comes, op lba sectors process program export
//! S 9400000 sstf                   swapped: time, and the scheduler that came
//! ```
//!
//! Operations are `R`, `W`, `F` (flush), `D` (discard); outcomes `ok`, `medium`, `timeout`,
//! `device`. Settings are for whoever rebuilds the engine; the log does not interpret them. A
//! reader refuses a version it does not know. Version 1 had no `U` and no `T`.

use crate::{Arrival, Command, Engine, Event, Outcome};
use headtime_sched::{Class, Flags, Foretold, Op, Origin, Scheduler, Tag};
use headtime_units::{Extent, Time};
use std::fmt::Write as _;

/// The version that this code writes. It reads this one and those before.
pub const VERSION: u32 = 2;

const MAGIC: &str = "headtime-log";

/// The latest time of a log, 292 years: later ones leave no room to add what a scheduler waits for.
const LATEST: Time = Time::from_nanos(i64::MAX as u64);

/// One line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A setting of the engine or its surroundings, such as the depth.
    Setting {
        /// One word.
        key: String,
        /// The rest of the line.
        value: String,
    },
    /// Something that happened to the engine.
    Event(Time, Event),
    /// Something that the engine decided.
    Decision(Time, Decision),
    /// The scheduler was swapped in flight for the one of this text.
    Swapped(Time, String),
}

/// What the engine decided: a [`Command`] as far as it is a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// A command for the drive.
    Issue {
        /// Its tag.
        tag: Tag,
        /// What to do.
        op: Op,
        /// To which sectors.
        extent: Extent,
    },
    /// A request is over.
    Finish {
        /// The caller's name for it.
        id: u64,
        /// How it ended.
        outcome: Outcome,
    },
}

impl From<&Command> for Decision {
    fn from(command: &Command) -> Decision {
        match command {
            Command::Issue(request) => Decision::Issue {
                tag: request.tag,
                op: request.op,
                extent: request.extent,
            },
            Command::Finish(done) => Decision::Finish {
                id: done.id,
                outcome: done.outcome,
            },
        }
    }
}

/// Why a log cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The first line is not a log's.
    #[error("line 1: not a log: it must begin with \"{MAGIC} {VERSION}\"")]
    NotALog,
    /// The log is of another version.
    #[error("line 1: version {0} is not known; this program reads up to {VERSION}")]
    Version(String),
    /// A line is not as it should be.
    #[error("line {line}: {problem}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong and what is allowed.
        problem: String,
    },
}

/// Writes the header line.
pub fn write_header(out: &mut String) {
    let _ = writeln!(out, "{MAGIC} {VERSION}");
}

/// Writes a setting.
///
/// # Panics
///
/// If the key is not one word, or the value more than one line.
pub fn write_setting(out: &mut String, key: &str, value: &str) {
    assert!(!key.is_empty() && !key.contains(char::is_whitespace) && !value.contains('\n'));
    let _ = writeln!(out, "# {key} {value}");
}

/// Writes an event.
pub fn write_event(out: &mut String, now: Time, event: &Event) {
    let now = now.as_nanos();
    // Writing to a string cannot fail.
    let _ = match event {
        Event::Arrived(new) => writeln!(
            out,
            "A {now} {} {} {} {} {} {} {} {} {}",
            new.id,
            op_letter(new.op),
            new.extent.start,
            new.extent.len,
            new.flags.bits(),
            new.origin.process,
            new.origin.program,
            new.origin.export,
            new.class.0
        ),
        Event::Completed { tag, outcome } => {
            writeln!(out, "C {now} {} {}", tag.0, outcome_word(*outcome))
        }
        Event::Woke => writeln!(out, "W {now}"),
        Event::Unplugged => writeln!(out, "U {now}"),
        Event::Foretold(request) => writeln!(
            out,
            "T {now} {} {} {} {} {} {} {}",
            request.at.as_nanos(),
            op_letter(request.op),
            request.extent.start,
            request.extent.len,
            request.origin.process,
            request.origin.program,
            request.origin.export,
        ),
    };
}

/// Writes that the scheduler was swapped for the one of this text.
///
/// # Panics
///
/// If the text is not one word.
pub fn write_swap(out: &mut String, now: Time, scheduler: &str) {
    let blank = |sign: char| sign.is_ascii_whitespace();
    assert!(!scheduler.is_empty() && !scheduler.contains(blank));
    let _ = writeln!(out, "S {} {scheduler}", now.as_nanos());
}

/// Writes a decision.
pub fn write_decision(out: &mut String, now: Time, decision: &Decision) {
    let now = now.as_nanos();
    let _ = match decision {
        Decision::Issue { tag, op, extent } => {
            writeln!(
                out,
                "I {now} {} {} {} {}",
                tag.0,
                op_letter(*op),
                extent.start,
                extent.len
            )
        }
        Decision::Finish { id, outcome } => {
            writeln!(out, "F {now} {id} {}", outcome_word(*outcome))
        }
    };
}

/// Reads a log line by line.
///
/// # Errors
///
/// Each error names the line. Reading goes on behind a bad line if the caller wants to.
pub fn read(text: &str) -> impl Iterator<Item = Result<(usize, Record), LogError>> {
    let mut seen_header = false;
    let mut last = Time::ZERO;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if !seen_header {
            seen_header = true;
            let header = line.trim_end().split_once(char::is_whitespace);
            return match header.map(|(magic, version)| (magic, version.trim_start())) {
                Some((MAGIC, "1" | "2")) => None,
                Some((MAGIC, version)) => Some(Err(LogError::Version(version.to_owned()))),
                _ => Some(Err(LogError::NotALog)),
            };
        }
        if line.trim().is_empty() {
            return None;
        }
        let record = read_line(line).and_then(|record| {
            if let Record::Event(now, _) | Record::Decision(now, _) | Record::Swapped(now, _) =
                &record
            {
                if *now < last {
                    return Err(format!(
                        "time {} lies before the line above",
                        now.as_nanos()
                    ));
                }
                last = *now;
            }
            Ok(record)
        });
        Some(
            record
                .map(|record| (index + 1, record))
                .map_err(|problem| LogError::Line {
                    line: index + 1,
                    problem,
                }),
        )
    })
}

fn read_line(line: &str) -> Result<Record, String> {
    if let Some(setting) = line.strip_prefix('#') {
        let setting = setting.trim();
        let (key, value) = setting
            .split_once(char::is_whitespace)
            .unwrap_or((setting, ""));
        if key.is_empty() {
            return Err("the name of the setting is missing".into());
        }
        return Ok(Record::Setting {
            key: key.to_owned(),
            value: value.trim().to_owned(),
        });
    }
    let mut fields = Fields(line.split_ascii_whitespace());
    let kind = fields.word("kind of line")?;
    let record = match kind {
        "A" => {
            let now = fields.time()?;
            let id = fields.number("id")?;
            let op = fields.op()?;
            let extent = fields.extent()?;
            if extent.is_empty() != (op == Op::Flush) {
                return Err("only a flush has 0 sectors, and it has no more".into());
            }
            let bits = fields.number("flags")?;
            let flags = u8::try_from(bits)
                .ok()
                .and_then(Flags::from_bits)
                .ok_or_else(|| format!("flags are {bits}; allowed are 0 to 7"))?;
            let origin = fields.origin()?;
            let class = Class(fields.small("class")?);
            Record::Event(
                now,
                Event::Arrived(Arrival {
                    id,
                    op,
                    extent,
                    flags,
                    origin,
                    class,
                }),
            )
        }
        "C" => Record::Event(
            fields.time()?,
            Event::Completed {
                tag: fields.tag()?,
                outcome: fields.outcome()?,
            },
        ),
        "W" => Record::Event(fields.time()?, Event::Woke),
        "U" => Record::Event(fields.time()?, Event::Unplugged),
        "T" => Record::Event(
            fields.time()?,
            Event::Foretold(Foretold {
                at: fields.time()?,
                op: fields.op()?,
                extent: fields.extent()?,
                origin: fields.origin()?,
            }),
        ),
        "S" => Record::Swapped(fields.time()?, fields.word("scheduler")?.to_owned()),
        "I" => Record::Decision(
            fields.time()?,
            Decision::Issue {
                tag: fields.tag()?,
                op: fields.op()?,
                extent: fields.extent()?,
            },
        ),
        "F" => Record::Decision(
            fields.time()?,
            Decision::Finish {
                id: fields.number("id")?,
                outcome: fields.outcome()?,
            },
        ),
        other => {
            return Err(format!(
                "\"{other}\" is no kind of line; allowed are A, C, W, U, T, S, I, F and #"
            ));
        }
    };
    match fields.0.next() {
        Some(more) => Err(format!("\"{more}\" is one field too many")),
        None => Ok(record),
    }
}

struct Fields<'a>(std::str::SplitAsciiWhitespace<'a>);

impl<'a> Fields<'a> {
    fn word(&mut self, name: &str) -> Result<&'a str, String> {
        self.0
            .next()
            .ok_or_else(|| format!("the {name} is missing"))
    }

    fn number(&mut self, name: &str) -> Result<u64, String> {
        let word = self.word(name)?;
        word.parse()
            .map_err(|_| format!("the {name} is \"{word}\"; it must be a whole number"))
    }

    fn origin(&mut self) -> Result<Origin, String> {
        Ok(Origin {
            process: self.small("process")?,
            program: self.small("program")?,
            export: self.small("export")?,
        })
    }

    fn small<T: TryFrom<u64>>(&mut self, name: &str) -> Result<T, String> {
        let number = self.number(name)?;
        T::try_from(number).map_err(|_| format!("the {name} is {number}, which is too large"))
    }

    fn time(&mut self) -> Result<Time, String> {
        let time = self.number("time").map(Time::from_nanos)?;
        if time > LATEST {
            let (time, latest) = (time.as_nanos(), LATEST.as_nanos());
            return Err(format!("the time is {time}; allowed is up to {latest}"));
        }
        Ok(time)
    }

    fn tag(&mut self) -> Result<Tag, String> {
        self.small("tag").map(Tag)
    }

    fn extent(&mut self) -> Result<Extent, String> {
        let (start, len) = (self.number("address")?, self.number("number of sectors")?);
        match start.checked_add(len) {
            Some(_) => Ok(Extent::at(start, len)),
            None => Err(format!("{start}+{len} leaves 64 bits")),
        }
    }

    fn op(&mut self) -> Result<Op, String> {
        let word = self.word("operation")?;
        OPS.into_iter()
            .find(|(letter, _)| *letter == word)
            .map(|(_, op)| op)
            .ok_or_else(|| format!("\"{word}\" is no operation; allowed are R, W, F and D"))
    }

    fn outcome(&mut self) -> Result<Outcome, String> {
        let word = self.word("outcome")?;
        OUTCOMES
            .into_iter()
            .find(|(name, _)| *name == word)
            .map(|(_, outcome)| outcome)
            .ok_or_else(|| {
                format!("\"{word}\" is no outcome; allowed are ok, medium, timeout and device")
            })
    }
}

const OPS: [(&str, Op); 4] = [
    ("R", Op::Read),
    ("W", Op::Write),
    ("F", Op::Flush),
    ("D", Op::Discard),
];

const OUTCOMES: [(&str, Outcome); 4] = [
    ("ok", Outcome::Done),
    ("medium", Outcome::MediumError),
    ("timeout", Outcome::TimedOut),
    ("device", Outcome::DeviceError),
];

fn op_letter(op: Op) -> &'static str {
    match op {
        Op::Read => "R",
        Op::Write => "W",
        Op::Flush => "F",
        Op::Discard => "D",
    }
}

fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "ok",
        Outcome::MediumError => "medium",
        Outcome::TimedOut => "timeout",
        Outcome::DeviceError => "device",
    }
}

/// How a replay went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Events fed to the engine.
    pub events: u64,
    /// Decisions, all as in the log.
    pub decisions: u64,
}

/// Why a replay stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The engine decided otherwise.
    #[error("line {line}: the log has {}, the engine {}", show(.logged), show(.decided))]
    Differs {
        /// The line of the log, counted from 1; one past the end if the log is over.
        line: usize,
        /// What the log has at that place.
        logged: Option<Decision>,
        /// What the engine decided.
        decided: Option<Decision>,
    },
    /// The log swaps to a scheduler that the caller cannot build.
    #[error("line {line}: there is no scheduler \"{scheduler}\" to swap to")]
    NoScheduler {
        /// The line of the log, counted from 1.
        line: usize,
        /// Its text.
        scheduler: String,
    },
    /// The log tells of a completion that cannot be.
    #[error("line {line}: tag {} completes and is not in the drive", .tag.0)]
    Impossible {
        /// The line of the log, counted from 1.
        line: usize,
        /// The tag.
        tag: Tag,
    },
}

fn show(decision: &Option<Decision>) -> String {
    match decision {
        None => "no decision".into(),
        Some(decision) => {
            let mut line = String::new();
            write_decision(&mut line, Time::ZERO, decision);
            let words: Vec<&str> = line.split_whitespace().collect();
            format!("\"{} {}\"", words[0], words[2..].join(" "))
        }
    }
}

/// Feeds the events of a log to `engine` and compares what it decides with what the log has.
///
/// The engine must be built as the logged one was, and new. `build` makes the schedulers that are
/// swapped in, from their text.
///
/// # Errors
///
/// At the first line that cannot be read, or where the decisions differ.
pub fn replay<S: Scheduler>(
    text: &str,
    engine: &mut Engine<S>,
    mut build: impl FnMut(&str) -> Option<S>,
) -> Result<Replayed, ReplayError> {
    let mut done = Replayed::default();
    let mut in_drive = Vec::new();
    let mut now = Time::ZERO;
    let mut last_line = 0;
    let differs = |line, logged, decided| {
        Err(ReplayError::Differs {
            line,
            logged,
            decided,
        })
    };
    for record in read(text) {
        let (line, record) = record?;
        last_line = line;
        match record {
            Record::Setting { .. } => {}
            Record::Swapped(time, text) => {
                if let Some(command) = engine.poll(now) {
                    return differs(line, None, Some((&command).into()));
                }
                let Some(scheduler) = build(&text) else {
                    return Err(ReplayError::NoScheduler {
                        line,
                        scheduler: text,
                    });
                };
                now = time;
                engine.replace_scheduler(now, scheduler);
            }
            Record::Event(time, event) => {
                // What is foretold comes between the end of one request and the next decision.
                if !matches!(event, Event::Foretold(_))
                    && let Some(command) = engine.poll(now)
                {
                    return differs(line, None, Some((&command).into()));
                }
                if let Event::Completed { tag, .. } = event {
                    let Some(at) = in_drive.iter().position(|other| *other == tag) else {
                        return Err(ReplayError::Impossible { line, tag });
                    };
                    in_drive.swap_remove(at);
                }
                now = time;
                engine.handle(now, event);
                done.events += 1;
            }
            Record::Decision(time, logged) => {
                let decided = (time == now)
                    .then(|| engine.poll(now))
                    .flatten()
                    .map(|command| Decision::from(&command));
                if decided != Some(logged) {
                    return differs(line, Some(logged), decided);
                }
                if let Decision::Issue { tag, .. } = logged {
                    in_drive.push(tag);
                }
                done.decisions += 1;
            }
        }
    }
    match engine.poll(now) {
        Some(command) => differs(last_line + 1, None, Some((&command).into())),
        None => Ok(done),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_lines_are_named() {
        let problem = |text: &str| {
            read(text)
                .find_map(Result::err)
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        for (text, expected) in [
            ("", ""),
            (
                "hello",
                "line 1: not a log: it must begin with \"headtime-log 2\"",
            ),
            (
                "headtime-log 3",
                "line 1: version 3 is not known; this program reads up to 2",
            ),
            (
                "headtime-log 1\nX 1",
                "line 2: \"X\" is no kind of line; allowed are A, C, W, U, T, S, I, F and #",
            ),
            (
                "headtime-log1",
                "line 1: not a log: it must begin with \"headtime-log 2\"",
            ),
            (
                "headtime-log 1\n# ",
                "line 2: the name of the setting is missing",
            ),
            ("headtime-log 1\nW", "line 2: the time is missing"),
            (
                "headtime-log 1\nW -3",
                "line 2: the time is \"-3\"; it must be a whole number",
            ),
            (
                "headtime-log 1\nW 9223372036854775808",
                "line 2: the time is 9223372036854775808; allowed is up to 9223372036854775807",
            ),
            (
                "headtime-log 1\nW 3 4",
                "line 2: \"4\" is one field too many",
            ),
            (
                "headtime-log 1\nW 3\nW 2",
                "line 3: time 2 lies before the line above",
            ),
            (
                "headtime-log 1\nC 3 0 fine",
                "line 2: \"fine\" is no outcome; allowed are ok, medium, timeout and device",
            ),
            (
                "headtime-log 1\nA 3 0 R 0 0 0 0 0 0 1",
                "line 2: only a flush has 0 sectors, and it has no more",
            ),
            (
                "headtime-log 1\nA 3 0 R 0 8 9 0 0 0 1",
                "line 2: flags are 9; allowed are 0 to 7",
            ),
            (
                "headtime-log 1\nA 3 0 R 0 8 0 0 70000 0 1",
                "line 2: the program is 70000, which is too large",
            ),
            (
                "headtime-log 1\nI 3 0 R 18446744073709551615 1",
                "line 2: 18446744073709551615+1 leaves 64 bits",
            ),
        ] {
            assert_eq!(problem(text), expected, "{text}");
        }
    }

    #[test]
    fn lines_round_trip() {
        let mut text = String::new();
        write_header(&mut text);
        write_setting(&mut text, "scheduler", "deadline:fifo_batch=8");
        let records = [
            Record::Setting {
                key: "scheduler".into(),
                value: "deadline:fifo_batch=8".into(),
            },
            Record::Event(
                Time::from_nanos(1),
                Event::Arrived(Arrival {
                    id: u64::MAX,
                    op: Op::Write,
                    extent: Extent::at(1, 2),
                    flags: Flags::FUA.with(Flags::SYNC),
                    origin: Origin {
                        process: 3,
                        program: 4,
                        export: 5,
                    },
                    class: Class::IDLE,
                }),
            ),
            Record::Decision(
                Time::from_nanos(1),
                Decision::Issue {
                    tag: Tag(7),
                    op: Op::Write,
                    extent: Extent::at(1, 2),
                },
            ),
            Record::Event(
                Time::from_nanos(9),
                Event::Completed {
                    tag: Tag(7),
                    outcome: Outcome::MediumError,
                },
            ),
            Record::Decision(
                Time::from_nanos(9),
                Decision::Finish {
                    id: u64::MAX,
                    outcome: Outcome::MediumError,
                },
            ),
            Record::Event(Time::from_nanos(10), Event::Woke),
            Record::Event(Time::from_nanos(10), Event::Unplugged),
            Record::Event(
                Time::from_nanos(10),
                Event::Foretold(Foretold {
                    at: Time::from_nanos(12),
                    op: Op::Write,
                    extent: Extent::at(7, 3),
                    origin: Origin {
                        process: 5,
                        program: 6,
                        export: 7,
                    },
                }),
            ),
            Record::Swapped(Time::from_nanos(11), "sptf-sw60".into()),
        ];
        for record in &records {
            match record {
                Record::Setting { .. } => {}
                Record::Event(now, event) => write_event(&mut text, *now, event),
                Record::Decision(now, decision) => write_decision(&mut text, *now, decision),
                Record::Swapped(now, scheduler) => write_swap(&mut text, *now, scheduler),
            }
        }
        let read: Vec<Record> = read(&text)
            .map(|line| line.expect("as written").1)
            .collect();
        assert_eq!(read, records);
    }
}
