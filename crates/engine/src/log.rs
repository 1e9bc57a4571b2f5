//! The log of events and decisions, and its replay.
//!
//! A log is text: a header line, settings, and then one line per event or command, in order. Numbers are decimal, times
//! are nanoseconds since the start of the run, below 2^63 ([`Time::LATEST`]).
//!
//! An example of each line:
//!
//! ```text
//! headtime-log 3
//! # scheduler deadline
//! # depth 1
//! A 0 17 R 2048 8 0 12 3 1 1       arrived: time id op lba sectors flags process program export class,
//!                                  and the beginning of its age, unless that is the arrival
//! I 0 0 R 2048 8                   issue:   time tag op lba sectors
//! C 5300000 0 ok                   completed: time tag outcome
//! F 5300000 17 ok                  finish:  time id outcome
//! W 9300000                        woke:    time
//! U 9300000                        unplugged: time
//! T 9300000 9400000 R 4096 8 12 3 1   foretold: time, when it comes, op lba sectors process program export
//! S 9400000 sstf                   swapped: time, the scheduler that came, and its lane if that is not lane 0
//! G 9400000 ranks noop sstf        gate swapped: time, the gate that came, and a scheduler for each of its lanes
//! J 9500000 b3 R 4088 8 0 0 0 0 2 0 with   joined: as arrived, then the lane, and `with` or `before`
//! J 9500000 b4 R 8192 8 0 0 0 0 2 0 alone  the same, of what goes alone
//! P 9500000 on                     offering: what is chosen is offered before it goes; or `off`
//! R 9500000 0                      offered: the lane whose staged request nothing more joins
//! O 9600000 depth 4                ordered: time, and what the gate was told: `depth N`, `age COMMANDS`,
//!                                  `window LANE FROM NANOSECONDS`, `assign PROGRAM LANE`, `keep LANE UNTIL`,
//!                                  `rate LANE SECTORS`
//! M 9600000 mark 17                directed: `mark ID`, `dedicate UNTIL` or `release`, by a conductor of the volume
//! B 9700000 12 3 1 0               behind:  time process program export class of what waits outside for a flush
//! D 9800000 1 0                    drained: time, the lane that is emptied, and the one that takes what was in it
//! ```
//!
//! In the log of a volume, a line of another member than the first begins with the member's number: `@2 W 9300000`.
//!
//! Operations are `R`, `W`, `F` (flush), `D` (discard); outcomes `ok`, `medium`, `timeout`,
//! `device`. Tags are the drive's ([`DriveTag`]). The id of a request in the background has a `b` before
//! its number: `b17`.
//!
//! A reader refuses unknown versions. Up to version 2, a tag was the engine's own index, and there were no background
//! jobs. The reader replaces these tags by drive tags, by the engine's rule (the lowest free tag), so that such logs
//! replay. Version 2 had one lane, and no `J`, `O`, `M`, `B`, `D` or `G`. Version 1 had no `U` and no `T` either.
//!
//! # Settings
//!
//! Lines `# key value` between the header and the first event describe the engine, so that it can be built again.
//! `headtime_stack`'s `LogSettings` writes and reads settings. The reader and the replay of this module ignore them.
//!
//! | key | value |
//! |---|---|
//! | `scheduler` | its text, as in a scenario |
//! | the keys of [`EngineSpec`](crate::EngineSpec) | as in a scenario, without quotes |
//! | `sector_bytes` | the size of a sector, which converts `merge_max` to sectors |
//! | `curve` | the assumed service times, if needed: factor of backward accesses in millionths, then points, sectors`:`nanoseconds |
//! | `belief` | the assumed drive, if a scheduler predicts positions; opaque here (`headtime_disk`'s `profile::Reference`) |
//!
//! An option that a log does not name did not exist when the log was written, and has its default. Up to version 2,
//! `merge_sectors_max` had a number of sectors in place of `merge_max`, and `plug` was `off`, or its requests and
//! timeout: `4 4ms`.
//!
//! The log of a volume has the settings of the first member. A setting that differs for another member is repeated,
//! with the member's number before the key: `# @2.scheduler noop`.
//!
//! A writer may add other settings, such as the program's `version`. They document the origin of the log, and a replay
//! does not need them. `# end` as the last line marks a complete log, whose writer was not interrupted.

mod read;
mod replay;
mod settings;
mod writer;

use crate::{Arrival, Command, DriveTag, Event, Join, Lane, Member, Outcome, RequestId};
use headtime_sched::{Directive, Op};
use headtime_units::{Extent, Time};
use std::fmt::Write as _;

pub use read::{LINE_MAX, Reader, read};
pub use replay::{Replay, ReplayError, Replayed, replay, replay_volume};
pub use settings::Setting;
pub use writer::{Sink, Writer};

/// The version that this code writes. The reader accepts this and all earlier versions.
pub const VERSION: u32 = 3;

const MAGIC: &str = "headtime-log";

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
    /// An event of the engine.
    Event(Time, Event),
    /// A decision of the engine.
    Decision(Time, Decision),
    /// The scheduler of a lane was swapped in flight for the scheduler of this text.
    Swapped(Time, Lane, String),
    /// The gate was swapped in flight for the gate of this text, with a scheduler for each lane.
    GateSwapped(Time, String, Vec<String>),
    /// A record of another member of a volume than the first.
    OfMember(Member, Box<Record>),
}

/// A decision of the engine: the part of a [`Command`] that the log contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// A command for the drive.
    Issue {
        /// The command's tag.
        tag: DriveTag,
        /// The operation.
        op: Op,
        /// The sectors.
        extent: Extent,
    },
    /// A request is over.
    Finish {
        /// The sender's name for the request.
        id: RequestId,
        /// Outcome of the request.
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
                id: RequestId::Client(done.id),
                outcome: done.outcome,
            },
            Command::Background(done) => Decision::Finish {
                id: RequestId::Background(done.id),
                outcome: done.outcome,
            },
        }
    }
}

/// Error of reading a log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The first line is not a log's header.
    #[error("line 1: not a log: it must begin with \"{MAGIC} {VERSION}\"")]
    NotALog,
    /// The log is of another version.
    #[error("line 1: version {0} is not known; this program reads up to {VERSION}")]
    Version(String),
    /// The input failed.
    #[error("line {line}: cannot read: {problem}")]
    Read {
        /// Counted from 1.
        line: usize,
        /// The system's error message.
        problem: String,
    },
    /// A line is invalid.
    #[error("line {line}: {problem}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// The problem, and the allowed values.
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

/// Writes the line that marks a complete log.
pub fn write_end(out: &mut String) {
    out.push_str("# end\n");
}

/// Writes the prefix of a member's line; nothing for the first member.
fn write_member(out: &mut String, member: Member) {
    if member.0 > 0 {
        let _ = write!(out, "@{} ", member.0);
    }
}

/// Writes an event.
pub fn write_event(out: &mut String, now: Time, event: &Event) {
    let now = now.as_nanos();
    // Writing to a string cannot fail.
    let _ = match event {
        Event::Arrived(new) => {
            let _ = write!(out, "A {now} ");
            write_arrival(out, new);
            match new.since {
                Some(since) => writeln!(out, " {}", since.as_nanos()),
                None => writeln!(out),
            }
        }
        Event::Joined {
            arrival,
            lane,
            join,
        } => {
            let _ = write!(out, "J {now} ");
            write_arrival(out, arrival);
            writeln!(out, " {} {}", lane.0, join_word(*join))
        }
        Event::Offering(on) => {
            writeln!(out, "P {now} {}", if *on { "on" } else { "off" })
        }
        Event::Offered(lane) => writeln!(out, "R {now} {}", lane.0),
        Event::Ordered(order) => writeln!(out, "O {now} {order}"),
        Event::Directed(directive) => match directive {
            Directive::Mark(id) => writeln!(out, "M {now} mark {id}"),
            Directive::Dedicate { until } => {
                writeln!(out, "M {now} dedicate {}", until.as_nanos())
            }
            Directive::Release => writeln!(out, "M {now} release"),
        },
        Event::Behind { origin, class } => writeln!(
            out,
            "B {now} {} {} {} {}",
            origin.process, origin.program, origin.export, class.0
        ),
        Event::Drained { from, to } => writeln!(out, "D {now} {} {}", from.0, to.0),
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

fn write_arrival(out: &mut String, new: &Arrival) {
    let _ = write!(
        out,
        "{} {} {} {} {} {} {} {} {}",
        new.id,
        op_letter(new.op),
        new.extent.start,
        new.extent.len,
        new.flags.bits(),
        new.origin.process,
        new.origin.program,
        new.origin.export,
        new.class.0
    );
}

fn join_word(join: Join) -> &'static str {
    match join {
        Join::Before => "before",
        Join::Outright => "outright",
        Join::With => "with",
        Join::Alone => "alone",
        Join::Queued => "queued",
    }
}

/// Writes that the scheduler of a lane was swapped for the scheduler of this text.
///
/// # Panics
///
/// If the text is not one word.
pub fn write_swap(out: &mut String, now: Time, lane: Lane, scheduler: &str) {
    let _ = write!(out, "S {} {}", now.as_nanos(), one_word(scheduler));
    let _ = match lane {
        Lane(0) => writeln!(out),
        Lane(lane) => writeln!(out, " {lane}"),
    };
}

/// Writes that the gate was swapped for the gate of this text, with these schedulers.
///
/// # Panics
///
/// If a text is not one word, or there is no scheduler.
pub fn write_gate_swap(out: &mut String, now: Time, gate: &str, schedulers: &[String]) {
    assert!(!schedulers.is_empty(), "a gate has a lane");
    let _ = write!(out, "G {} {}", now.as_nanos(), one_word(gate));
    for scheduler in schedulers {
        let _ = write!(out, " {}", one_word(scheduler));
    }
    out.push('\n');
}

fn one_word(text: &str) -> &str {
    let blank = |sign: char| sign.is_ascii_whitespace();
    assert!(!text.is_empty() && !text.contains(blank), "{text:?}");
    text
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

/// Writes a line that was read.
///
/// # Panics
///
/// As for the functions for each kind of line.
pub fn write_record(out: &mut String, record: &Record) {
    match record {
        Record::Setting { key, value } => write_setting(out, key, value),
        Record::Event(now, event) => write_event(out, *now, event),
        Record::Decision(now, decision) => write_decision(out, *now, decision),
        Record::Swapped(now, lane, scheduler) => write_swap(out, *now, *lane, scheduler),
        Record::GateSwapped(now, gate, schedulers) => {
            write_gate_swap(out, *now, gate, schedulers);
        }
        Record::OfMember(member, record) => {
            write_member(out, *member);
            write_record(out, record);
        }
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

#[cfg(test)]
mod tests;
