//! `headtime sim replay-log`

use super::context::Context;
use crate::args::ReplayLog;
use crate::fault::Fault;
use headtime_engine::Engine;
use headtime_engine::log::{
    Decision, LogError, Reader, Record, Replay, ReplayError, Replayed, write_decision,
};
use headtime_sched::Spec;
use headtime_stack::{Builder, Known, LogSettings, Unbuilt};
use headtime_units::Time;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader};

/// How many lines before a difference are shown.
const BEFORE: usize = 5;

pub(super) fn replay_log(args: &ReplayLog, context: &mut Context<'_>) -> Result<(), Fault> {
    let path = &args.file;
    if path.as_os_str() == "-" {
        return replay(io::stdin().lock(), "standard input", context);
    }
    let file = File::open(path).map_err(|error| Fault::reading(path, &error))?;
    let name = path.display().to_string();
    replay(BufReader::with_capacity(1 << 17, file), &name, context)
}

/// Builds the schedulers and the gate of a log, with the scheduler of this text.
fn builder(text: &str, known: &Known, settings: &LogSettings) -> Result<Builder, String> {
    let spec: Spec = text.parse().map_err(|error| format!("{error}"))?;
    let built = Builder::new(known, &spec, &settings.engine, settings.sector_bytes);
    built.map_err(|unbuilt| {
        let setting = match &unbuilt {
            Unbuilt::Positions(_) => "positions, and the log has no `belief`",
            Unbuilt::Curve(_) => "service times, and the log has no `curve`",
            _ => return unbuilt.to_string(),
        };
        format!("{spec} asks for {setting}")
    })
}

/// Reads a log, repeats it, and says how that went.
fn replay(input: impl BufRead, name: &str, context: &mut Context<'_>) -> Result<(), Fault> {
    let mut reader = Reader::new(input);
    let fault = |error: LogError| match error {
        LogError::Read { .. } => Fault::File(format!("{name}: {error}")),
        _ => Fault::Input(format!("{name}: {error}")),
    };
    let settings = reader.settings().map_err(fault)?;
    let bad = |problem: &dyn std::fmt::Display| Fault::Input(format!("{name}: {problem}"));
    let settings = LogSettings::from_settings(name, &settings).map_err(Fault::input)?;
    let known = Known::recorded(settings.belief.as_deref(), settings.curve.clone());
    let builder = |text: &str| builder(text, &known, &settings);
    let queue = builder(&settings.scheduler).map_err(|problem| bad(&problem))?;
    let engine = Engine::behind(settings.config(), queue.scheduler(), queue.gated());
    let mut engine = engine.map_err(|error| bad(&error))?;
    let mut replay = Replay::new(&mut engine);
    let mut before: VecDeque<String> = VecDeque::with_capacity(BEFORE + 1);
    let mut ended = false;
    while let Some((line, record)) = reader.next_record().map_err(fault)? {
        if let Record::Setting { key, .. } = &record {
            ended |= key == "end";
        }
        let mut unbuilt = None;
        let swapped = |text: &str| match builder(text) {
            Ok(queue) => Some(queue.scheduler()),
            Err(problem) => {
                unbuilt = Some(problem);
                None
            }
        };
        match replay.record(line, record, swapped) {
            Ok(()) => {}
            Err(ReplayError::Differs {
                line,
                logged,
                decided,
            }) => {
                let here = reader.line().into_owned();
                let difference = Difference {
                    line,
                    logged: logged.map(|_| here.clone()),
                    decided,
                    now: replay.done().until,
                    next: here,
                };
                return Err(difference.fault(name, &before, replay.done()));
            }
            Err(error) => {
                let reason = unbuilt.map_or_else(String::new, |problem| format!(": {problem}"));
                return Err(bad(&format!("{error}{reason}")));
            }
        }
        let mut text = match before.len() {
            BEFORE => before.pop_front().unwrap_or_default(),
            _ => String::new(),
        };
        text.clear();
        text.push_str(&reader.line());
        before.push_back(text);
    }
    let (cut, lines) = (reader.is_cut(), reader.number());
    let now = replay.done().until;
    let (done, more) = replay.end_cut();
    if let Some(decided) = more.filter(|_| ended) {
        let difference = Difference {
            line: lines + 1,
            logged: None,
            decided: Some(decided),
            now,
            next: "(the end of the log)".to_owned(),
        };
        return Err(difference.fault(name, &before, &done));
    }
    let identical = summary(name, &settings.scheduler, &done);
    context.print(&format!("{identical}, identical\n"))?;
    if cut {
        context.note(&format!(
            "{name} is cut off in line {}, which was left out",
            lines + 1
        ));
    } else if let Some(more) = more {
        context.note(&format!(
            "{name} ends before what was decided next: {}",
            line_of(now, &more)
        ));
    }
    Ok(())
}

/// What was repeated, in words.
fn summary(name: &str, scheduler: &str, done: &Replayed) -> String {
    let of = |what: &str, swaps| match swaps {
        0 => String::new(),
        1 => format!(", 1 swap of the {what}"),
        swaps => format!(", {swaps} swaps of the {what}"),
    };
    let swaps = of("scheduler", done.swaps) + &of("gate", done.gate_swaps);
    format!(
        "{name}: {scheduler}: {} events{swaps} in {:.3} s, {} decisions",
        done.events,
        done.until.as_secs_f64(),
        done.decisions
    )
}

/// A decision as a line of a log.
fn line_of(now: Time, decision: &Decision) -> String {
    let mut line = String::new();
    write_decision(&mut line, now, decision);
    line.trim_end().to_owned()
}

/// Where the engine decided otherwise.
struct Difference {
    line: usize,
    /// The line that has the decision, if there is one.
    logged: Option<String>,
    decided: Option<Decision>,
    now: Time,
    /// The line at which the difference shows.
    next: String,
}

impl Difference {
    fn fault(self, name: &str, before: &VecDeque<String>, done: &Replayed) -> Fault {
        let Difference {
            line,
            logged,
            decided,
            now,
            next,
        } = self;
        let mut text = format!(
            "{name}: line {line}: the decisions differ after {} events and {} decisions\n",
            done.events, done.decisions
        );
        for earlier in before {
            text += &format!("           {earlier}\n");
        }
        let none = |what: &str| format!("no decision{what}");
        let expected = logged.unwrap_or_else(|| none(&format!(", but: {next}")));
        let got = decided.map_or_else(|| none(""), |decided| line_of(now, &decided));
        text += &format!("  expected {expected}\n  got      {got}");
        Fault::Check(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_shown_with_what_came_before() {
        let before = VecDeque::from(["A 0 1 R 0 8 0 0 0 0 1".to_owned()]);
        let difference = Difference {
            line: 4,
            logged: None,
            decided: Some(Decision::Finish {
                id: headtime_engine::RequestId::Client(3),
                outcome: headtime_engine::Outcome::Done,
            }),
            now: Time::from_nanos(12),
            next: "W 17".to_owned(),
        };
        let fault = difference.fault("x.log", &before, &Replayed::default());
        assert_eq!(fault.exit_code(), 1);
        assert_eq!(
            fault.to_string(),
            "x.log: line 4: the decisions differ after 0 events and 0 decisions\n           \
             A 0 1 R 0 8 0 0 0 0 1\n  expected no decision, but: W 17\n  got      F 12 3 ok"
        );
    }
}
