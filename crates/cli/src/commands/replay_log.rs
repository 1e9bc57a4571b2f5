//! `headtime sim replay-log`

use super::context::Context;
use crate::args::ReplayLog;
use headtime_engine::log::{
    Decision, LogError, Reader, Record, Replay, ReplayError, Replayed, write_header, write_record,
};
use headtime_engine::{Engine, Member};
use headtime_lab::fault::Fault;
use headtime_linux::shown::PathShown as _;
use headtime_sched::{Scheduler, Spec};
use headtime_stack::{Builder, Known, LogSettings, Unbuilt};
use headtime_units::Time;
use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};
use std::fs::File;
use std::io::{self, BufRead, BufReader};

/// Number of lines that are shown before a difference.
const LINES_BEFORE: usize = 5;

pub(super) fn replay_log(args: &ReplayLog, context: &mut Context<'_>) -> Result<(), Fault> {
    let path = &args.file;
    if path.as_os_str() == "-" {
        return replay(io::stdin().lock(), "standard input", context);
    }
    let file = File::open(path).map_err(|error| Fault::reading(path, &error))?;
    let name = path.shown().to_string();
    replay(BufReader::with_capacity(1 << 17, file), &name, context)
}

/// Builds the schedulers and the gate of a log, with the scheduler that `text` names.
fn builder(text: &str, known: &Known, settings: &LogSettings) -> Result<Builder, String> {
    let spec: Spec = text.parse().map_err(|error| format!("{error}"))?;
    let built = Builder::new(known, &spec, &settings.engine, settings.sector_bytes);
    built.map_err(|unbuilt| {
        let setting = match &unbuilt {
            Unbuilt::Positions(_) => "positions, and the log has no `belief`",
            Unbuilt::Late => {
                return "issue = late asks when the arm is free, and the log has no `belief`"
                    .to_owned();
            }
            Unbuilt::Curve(_) => "service times, and the log has no `curve`",
            _ => return unbuilt.to_string(),
        };
        format!("{spec} asks for {setting}")
    })
}

/// Reads a log, repeats it, and reports the outcome. Each member of a volume has a log and an engine of its own.
fn replay(input: impl BufRead, name: &str, context: &mut Context<'_>) -> Result<(), Fault> {
    let mut reader = Reader::new(input);
    let fault = |error: LogError| match error {
        LogError::Read { .. } => Fault::File(format!("{name}: {error}")),
        _ => Fault::Input(format!("{name}: {error}")),
    };
    let mut header = String::new();
    write_header(&mut header);
    let settings = match reader.settings() {
        Err(LogError::NotALog) if reader.is_cut() && header.starts_with(&*reader.line()) => {
            return nothing(name, context);
        }
        settings => settings.map_err(fault)?,
    };
    let bad = |problem: &dyn std::fmt::Display| Fault::Input(format!("{name}: {problem}"));
    let of = |member| {
        let own = LogSettings::of_member(&settings, member);
        LogSettings::from_settings(name, &own)
    };
    let first = match of(Member(0)) {
        Ok(settings) => Repeated::new(settings),
        // If no record follows, settings may be missing.
        Err(error) => match reader.next_record().map_err(fault)? {
            None => return nothing(name, context),
            Some(_) => return Err(Fault::input(error)),
        },
    };
    // The lines of a log tell its members. The first member may have no line, so it is added here.
    let mut members = BTreeMap::new();
    members.insert(Member(0), first.map_err(|problem| bad(&problem))?);
    let mut ended = false;
    while let Some((line, record)) = reader.next_record().map_err(fault)? {
        if let Record::Setting { key, .. } = &record {
            ended |= key == "end";
            continue;
        }
        let (member, record) = match record {
            Record::OfMember(member, record) => (member, *record),
            record => (Member(0), record),
        };
        let of_member = match members.entry(member) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(place) => {
                let repeated = Repeated::new(of(member).map_err(Fault::input)?);
                place.insert(repeated.map_err(|problem| bad(&problem))?)
            }
        };
        let mut unbuilt = None;
        let (known, settings) = (&of_member.known, &of_member.settings);
        let swapped = |text: &str| match builder(text, known, settings) {
            Ok(queue) => Some(queue.scheduler()),
            Err(problem) => {
                unbuilt = Some(problem);
                None
            }
        };
        match of_member.replay.record(line, record, swapped) {
            Ok(()) => {}
            Err(ReplayError::Differs {
                line,
                logged,
                decided,
            }) => {
                let here = reader.line().into_owned();
                let difference = Difference {
                    line,
                    member,
                    logged: logged.map(|_| here.clone()),
                    decided,
                    now: of_member.replay.done().until,
                    next: here,
                };
                let done = of_member.replay.done();
                return Err(difference.fault(name, &of_member.before, done));
            }
            Err(error) => {
                let reason = unbuilt.map_or_else(String::new, |problem| format!(": {problem}"));
                return Err(bad(&format!("{error}{reason}")));
            }
        }
        of_member.note(&reader.line());
    }
    let (cut, lines) = (reader.is_cut(), reader.number());
    let volume = members.len() > 1;
    let mut notes = Vec::new();
    for (member, of_member) in members {
        let now = of_member.replay.done().until;
        let (done, more) = of_member.replay.end_cut();
        match more {
            Some(decided) if ended => {
                let difference = Difference {
                    line: lines + 1,
                    member,
                    logged: None,
                    decided: Some(decided),
                    now,
                    next: "(the end of the log)".to_owned(),
                };
                return Err(difference.fault(name, &of_member.before, &done));
            }
            Some(more) if !cut => notes.push(format!(
                "{name} ends before what was decided next: {}",
                line_of(now, member, more)
            )),
            _ => {}
        }
        let of = match volume {
            true => format!("{name}: member {}", member.0),
            false => name.to_owned(),
        };
        let identical = summary(&of, &of_member.settings.scheduler, &done);
        context.print(&format!("{identical}, identical\n"))?;
    }
    if cut {
        notes.push(format!(
            "{name} is cut off in line {}, which was left out",
            lines + 1
        ));
    }
    for note in notes {
        context.note(&note);
    }
    Ok(())
}

/// Reports the log of a server that was stopped before any event.
fn nothing(name: &str, context: &mut Context<'_>) -> Result<(), Fault> {
    context.print(&format!("{name}: 0 events, 0 decisions, identical\n"))?;
    context.note(&format!(
        "{name} ends before the first event: whoever wrote it was stopped before anything happened"
    ));
    Ok(())
}

/// Replay of a member's log, up to the last repeated record.
struct Repeated {
    settings: LogSettings,
    known: Known,
    replay: Replay<Box<dyn Scheduler>>,
    /// Last lines that were repeated.
    before: VecDeque<String>,
}

impl Repeated {
    fn new(settings: LogSettings) -> Result<Repeated, String> {
        let known = Known::recorded(settings.belief.as_deref(), settings.curve.clone());
        let queue = builder(&settings.scheduler, &known, &settings)?;
        let engine = Engine::behind(settings.config(), queue.scheduler(), queue.gated());
        Ok(Repeated {
            replay: Replay::new(engine.map_err(|error| error.to_string())?),
            settings,
            known,
            before: VecDeque::with_capacity(LINES_BEFORE),
        })
    }

    fn note(&mut self, line: &str) {
        let mut text = match self.before.len() {
            LINES_BEFORE => self.before.pop_front().unwrap_or_default(),
            _ => String::new(),
        };
        text.clear();
        text.push_str(line);
        self.before.push_back(text);
    }
}

/// Summary of the repeated records, in words.
fn summary(name: &str, scheduler: &str, done: &Replayed) -> String {
    let of = |one: &str, many: &str, count| match count {
        0 => String::new(),
        1 => format!(", 1 {one}"),
        count => format!(", {count} {many}"),
    };
    let changes = [
        of(
            "swap of the scheduler",
            "swaps of the scheduler",
            done.swaps,
        ),
        of("swap of the gate", "swaps of the gate", done.gate_swaps),
        of("lane drained", "lanes drained", done.drains),
    ];
    format!(
        "{name}: {scheduler}: {} events{} in {:.3} s, {} decisions",
        done.events,
        changes.concat(),
        done.until.as_secs_f64(),
        done.decisions
    )
}

/// Formats a decision as a line of a log.
fn line_of(now: Time, member: Member, decision: Decision) -> String {
    let record = Record::Decision(now, decision);
    let record = match member {
        Member(0) => record,
        member => Record::OfMember(member, Box::new(record)),
    };
    let mut line = String::new();
    write_record(&mut line, &record);
    line.trim_end().to_owned()
}

/// First point at which the engine decided differently.
struct Difference {
    line: usize,
    /// Member whose engine decided.
    member: Member,
    /// Line with the decision, if there is one.
    logged: Option<String>,
    decided: Option<Decision>,
    now: Time,
    /// Line at which the difference appears.
    next: String,
}

impl Difference {
    fn fault(self, name: &str, before: &VecDeque<String>, done: &Replayed) -> Fault {
        let of_member = match self.member {
            Member(0) => String::new(),
            Member(number) => format!(" of member {number}"),
        };
        let mut lines = vec![format!(
            "{name}: line {}: the decisions{of_member} differ after {} events and {} decisions",
            self.line, done.events, done.decisions
        )];
        let earlier = before.iter().map(|line| format!("           {line}"));
        lines.extend(earlier);
        let none = |what: &str| format!("no decision{what}");
        let next = self.next;
        let expected = self
            .logged
            .unwrap_or_else(|| none(&format!(", but: {next}")));
        let got = self.decided;
        let got = got.map_or_else(|| none(""), |one| line_of(self.now, self.member, one));
        lines.push(format!("  expected {expected}"));
        lines.push(format!("  got      {got}"));
        Fault::Differs(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_shown_with_what_came_before() {
        let before = VecDeque::from(["@2 A 0 1 R 0 8 0 0 0 0 1".to_owned()]);
        let difference = Difference {
            line: 4,
            member: Member(2),
            logged: None,
            decided: Some(Decision::Finish {
                id: headtime_engine::RequestId::Client(3),
                outcome: headtime_engine::Outcome::Done,
            }),
            now: Time::from_nanos(12),
            next: "@2 W 17".to_owned(),
        };
        let fault = difference.fault("x.log", &before, &Replayed::default());
        assert_eq!(fault.exit_code(), 1);
        assert_eq!(
            fault.to_string(),
            "x.log: line 4: the decisions of member 2 differ after 0 events and 0 decisions\n           \
             @2 A 0 1 R 0 8 0 0 0 0 1\n  expected no decision, but: @2 W 17\n  got      @2 F 12 3 ok"
        );
    }
}
