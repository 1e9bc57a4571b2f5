//! Writes a row for each request of a run, as CSV. The columns follow Table I of the NCQ paper, with the state of the
//! drive's queue.

use headtime_engine::{Command, DelayCounts, DriveTag, Event, Finished, Outcome, Seen};
use headtime_sched::nise::Metric;
use headtime_sched::{Class, NiseConfig, Op};
use headtime_units::Time;
use std::fmt::Write as _;
use std::io::{self, Write};

/// The headings.
pub const HEADING: &str = "tag,delay_count,priority,issue_s,dispatch_s,complete_s,op,lba,sectors,process,program,outcome,\
                           command,tags_in_use,sequentiality\n";

/// A command in the drive, or the last command of a tag.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    command: u64,
    tags_in_use: u32,
    sequentiality: u64,
    delay_count: u32,
}

/// Watches what passes through an engine, and writes a row for each request that is over.
///
/// A request has the tag of the command that carried it. After several tries, the last command's tag counts. Merged requests have the same
/// tag.
#[derive(Debug)]
pub struct Requests<W> {
    to: W,
    sent: Vec<Sent>,
    commands: u64,
    in_drive: u32,
    delays: DelayCounts,
    metric: Metric,
    /// The command whose completion is being handled.
    completed: DriveTag,
    row: String,
}

impl<W: Write> Requests<W> {
    /// Begins with the headings.
    pub fn new(mut to: W) -> io::Result<Requests<W>> {
        to.write_all(HEADING.as_bytes())?;
        Ok(Requests {
            to,
            sent: vec![Sent::default(); DriveTag::DEPTH_MAX as usize],
            commands: 0,
            in_drive: 0,
            delays: DelayCounts::default(),
            metric: Metric::default(),
            completed: DriveTag(0),
            row: String::new(),
        })
    }

    /// Takes what passes through the engine.
    pub fn seen(&mut self, now: Time, seen: Seen<'_>) -> io::Result<()> {
        match seen {
            Seen::Command(Command::Issue(request)) => {
                if request.op != Op::Flush {
                    let sectors = request.extent.len.get();
                    self.metric.update(sectors, NiseConfig::DEFAULT.alpha);
                }
                self.in_drive += 1;
                self.delays.issued(request.tag);
                self.sent[request.tag.index()] = Sent {
                    command: self.commands,
                    tags_in_use: self.in_drive,
                    sequentiality: self.metric.sectors(),
                    delay_count: 0,
                };
                self.commands += 1;
            }
            Seen::Event(Event::Completed { tag, .. }) => {
                self.in_drive -= 1;
                self.sent[tag.index()].delay_count = self.delays.completed(*tag);
                self.completed = *tag;
            }
            Seen::Command(Command::Finish(done)) => return self.write(now, done),
            _ => {}
        }
        Ok(())
    }

    fn write(&mut self, now: Time, done: &Finished) -> io::Result<()> {
        let Requests { row, sent, .. } = self;
        let tag = self.completed.index();
        let Sent {
            command,
            tags_in_use,
            sequentiality,
            delay_count,
        } = sent[tag];
        let request = &done.request;
        row.clear();
        let written = write!(
            row,
            "{tag},{delay_count},{},{},{},{},{},{},{},{},{},{},{command},{tags_in_use},{sequentiality}",
            priority(request.class),
            seconds(request.arrival),
            seconds(done.issued),
            seconds(now),
            op(request.op),
            request.extent.start.get(),
            request.extent.len.get(),
            request.origin.process,
            request.origin.program,
            outcome(done.outcome),
        );
        written.expect("a text takes what is written to it");
        row.push('\n');
        self.to.write_all(row.as_bytes())
    }
}

fn seconds(time: Time) -> String {
    let nanos = (time - Time::ZERO).as_nanos();
    let (whole, part) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    format!("{whole}.{part:09}")
}

fn priority(class: Class) -> String {
    match class {
        Class::REAL_TIME => "real-time".to_owned(),
        Class::BEST_EFFORT => "best-effort".to_owned(),
        Class::IDLE => "idle".to_owned(),
        Class(other) => other.to_string(),
    }
}

fn op(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
        Op::Discard => "discard",
    }
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "done",
        Outcome::MediumError => "medium-error",
        Outcome::TimedOut => "timed-out",
        Outcome::DeviceError => "device-error",
    }
}
