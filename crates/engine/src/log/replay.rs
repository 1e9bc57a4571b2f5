//! Replays a log: feeds its events to new engines and compares what they decide.

use super::{Decision, LogError, Record, read, write_decision};
use crate::{Config, DriveTag, Engine, Event, Gate, GateSpec, Lane, Member, Outcome, RequestId};
use headtime_sched::Scheduler;
use headtime_units::Time;

/// How a replay went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Events fed to the engine.
    pub events: u64,
    /// Decisions, all as in the log.
    pub decisions: u64,
    /// Times that the scheduler of a lane was swapped in flight.
    pub swaps: u64,
    /// Times that a gate was swapped in flight, and the schedulers of all lanes with it.
    pub gate_swaps: u64,
    /// Those of the events by which a lane was drained into another.
    pub drains: u64,
    /// The time of the last event or swap.
    pub until: Time,
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
    /// The log swaps to a gate that the caller cannot build, or one of another number of lanes.
    #[error("line {line}: there is no gate \"{gate}\" with {lanes} lanes to swap to")]
    NoGate {
        /// The line of the log, counted from 1.
        line: usize,
        /// Its text.
        gate: String,
        /// How many schedulers the log has for it.
        lanes: usize,
    },
    /// The log names a lane that the engine does not have.
    #[error("line {line}: there is no lane {}", .lane.0)]
    NoLane {
        /// The line of the log, counted from 1.
        line: usize,
        /// Counted from 0, as in the log.
        lane: Lane,
    },
    /// The log names a member that the volume does not have.
    #[error("line {line}: there is no member {}", .member.0)]
    NoMember {
        /// The line of the log, counted from 1.
        line: usize,
        /// Counted from 0, as in the log.
        member: Member,
    },
    /// The log tells of a completion that cannot be.
    #[error("line {line}: tag {} completes and is not in the drive", .tag.0)]
    Impossible {
        /// The line of the log, counted from 1.
        line: usize,
        /// Of the command, counted from 0.
        tag: DriveTag,
    },
    /// The log has a request join another that is not there.
    #[error("line {line}: request {id} joins a staged one, and there is none that it may join")]
    NotStaged {
        /// The line of the log, counted from 1.
        line: usize,
        /// The request.
        id: RequestId,
    },
}

/// A decision as a message has it: the line of a log without its time.
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

/// Feeds a log to engines record by record, and compares what they decide with what the log has.
#[derive(Debug)]
pub struct Replay<S> {
    /// By member.
    engines: Vec<Engine<S>>,
    /// When a member's engine last got an event.
    until: Vec<Time>,
    done: Replayed,
    /// The commands that were issued and are not complete, and when they were.
    in_drive: Vec<(Member, DriveTag, Time)>,
    gates: BuildGate,
}

/// Makes a gate from its text, for an engine of this configuration.
type BuildGate = fn(&str, &Config) -> Option<Box<dyn Gate>>;

fn named(text: &str, config: &Config) -> Option<Box<dyn Gate>> {
    let spec: GateSpec = text.parse().ok()?;
    spec.build_in_flight(config).ok()
}

impl<S: Scheduler> Replay<S> {
    /// A replay with an engine that is built as the logged one was, and new.
    pub fn new(engine: Engine<S>) -> Replay<S> {
        Replay::of_volume(vec![engine])
    }

    /// A replay with the engines of a volume's members, each built as the logged one was, and new.
    pub fn of_volume(engines: Vec<Engine<S>>) -> Replay<S> {
        Replay {
            until: vec![Time::ZERO; engines.len()],
            engines,
            done: Replayed::default(),
            in_drive: Vec::new(),
            gates: named,
        }
    }

    /// With what makes the gates that are swapped in, from their text; else those that a [`GateSpec`] names.
    pub fn with_gates(self, gates: BuildGate) -> Replay<S> {
        Replay { gates, ..self }
    }

    /// Takes all of a log that is in memory. `build` makes the schedulers that are swapped in, from their text.
    ///
    /// # Errors
    ///
    /// At the first line that cannot be read, or where the decisions differ.
    pub fn all(
        &mut self,
        text: &str,
        mut build: impl FnMut(&str) -> Option<S>,
    ) -> Result<Replayed, ReplayError> {
        let mut last_line = 0;
        for record in read(text) {
            let (line, record) = record?;
            last_line = line;
            self.record(line, record, &mut build)?;
        }
        self.end(last_line)
    }

    /// The engines, by member.
    pub fn engines(&self) -> &[Engine<S>] {
        &self.engines
    }

    /// Returns how far the replay has come.
    pub fn done(&self) -> &Replayed {
        &self.done
    }

    /// Fails if a member's engine would decide something now that the log does not have.
    fn undecided(&mut self, line: usize, member: Member) -> Result<(), ReplayError> {
        match self.engines[member.index()].poll(self.until[member.index()]) {
            None => Ok(()),
            Some(command) => Err(ReplayError::Differs {
                line,
                logged: None,
                decided: Some((&command).into()),
            }),
        }
    }

    /// Fails if the engine at this index has no such lane.
    fn has_lane(&self, line: usize, index: usize, lane: Lane) -> Result<(), ReplayError> {
        match lane.index() < self.engines[index].schedulers().count() {
            true => Ok(()),
            false => Err(ReplayError::NoLane { line, lane }),
        }
    }

    /// Takes the record of a line. `build` makes the schedulers that are swapped in, from their
    /// text.
    ///
    /// # Errors
    ///
    /// If an engine decides otherwise, if there is no such scheduler, gate, lane or member, and if the log tells of
    /// what cannot be. After an error the engines are of no use.
    pub fn record(
        &mut self,
        line: usize,
        record: Record,
        mut build: impl FnMut(&str) -> Option<S>,
    ) -> Result<(), ReplayError> {
        let mut build = |scheduler: String| {
            build(&scheduler).ok_or(ReplayError::NoScheduler { line, scheduler })
        };
        let (member, record) = match record {
            Record::OfMember(member, record) => (member, *record),
            record => (Member::default(), record),
        };
        let index = member.index();
        if index >= self.engines.len() {
            return Err(ReplayError::NoMember { line, member });
        }
        match record {
            Record::Setting { .. } | Record::OfMember(..) => {}
            Record::Swapped(time, lane, text) => {
                self.undecided(line, member)?;
                let scheduler = build(text)?;
                self.has_lane(line, index, lane)?;
                (self.done.until, self.until[index]) = (time, time);
                self.done.swaps += 1;
                self.engines[index].replace_scheduler(time, lane, scheduler);
            }
            Record::GateSwapped(time, gate, texts) => {
                self.undecided(line, member)?;
                let lanes = texts.len();
                let built = (self.gates)(&gate, self.engines[index].config());
                let built = built.filter(|gate| gate.lanes() == lanes);
                let built = built.ok_or(ReplayError::NoGate { line, gate, lanes })?;
                let schedulers = texts.into_iter().map(&mut build);
                let schedulers = schedulers.collect::<Result<_, _>>()?;
                (self.done.until, self.until[index]) = (time, time);
                self.done.gate_swaps += 1;
                self.engines[index].replace_gate(time, built, schedulers);
            }
            Record::Event(time, event) => {
                let now = self.until[index];
                let between = match event {
                    // What is foretold comes between the end of one request and the next decision.
                    Event::Foretold(_) => true,
                    Event::Completed { tag, outcome } => {
                        let mut drive = self.in_drive.iter();
                        let ours = |(of, other, _): &_| (*of, *other) == (member, tag);
                        let Some(at) = drive.position(ours) else {
                            return Err(ReplayError::Impossible { line, tag });
                        };
                        let (_, _, issued) = self.in_drive.swap_remove(at);
                        // A command that is given up on in the moment it is issued never went to the
                        // drive, and its end comes between two decisions. One that the drive is done
                        // with at once ends after them: asking for decisions that there are none of
                        // may commit the engine to a request.
                        outcome == Outcome::TimedOut && issued == now && time == now
                    }
                    Event::Joined {
                        arrival,
                        lane,
                        join,
                    } => {
                        self.undecided(line, member)?;
                        if !self.engines[index].may_join(&arrival, lane, join) {
                            let id = arrival.id;
                            return Err(ReplayError::NotStaged { line, id });
                        }
                        false
                    }
                    Event::Arrived(_)
                    | Event::Woke
                    | Event::Unplugged
                    | Event::Offering(_)
                    | Event::Ordered(_)
                    | Event::Directed(_)
                    | Event::Behind { .. } => false,
                    Event::Offered(lane) => {
                        self.has_lane(line, index, lane)?;
                        false
                    }
                    Event::Drained { from, to } => {
                        self.has_lane(line, index, from)?;
                        self.has_lane(line, index, to)?;
                        self.done.drains += 1;
                        false
                    }
                };
                if !between {
                    self.undecided(line, member)?;
                }
                (self.done.until, self.until[index]) = (time, time);
                self.engines[index].handle(time, event);
                self.done.events += 1;
            }
            Record::Decision(time, logged) => {
                let now = self.until[index];
                let decided = (time == now)
                    .then(|| self.engines[index].poll(now))
                    .flatten()
                    .map(|command| Decision::from(&command));
                if decided != Some(logged) {
                    return Err(ReplayError::Differs {
                        line,
                        logged: Some(logged),
                        decided,
                    });
                }
                if let Decision::Issue { tag, .. } = logged {
                    self.in_drive.push((member, tag, now));
                }
                self.done.decisions += 1;
            }
        }
        Ok(())
    }

    /// Ends the replay of a log that is complete and has `lines` lines.
    ///
    /// # Errors
    ///
    /// If the engine decides something more.
    pub fn end(&mut self, lines: usize) -> Result<Replayed, ReplayError> {
        for member in 0..self.engines.len() {
            self.undecided(lines + 1, Member(member as u16))?;
        }
        Ok(self.done)
    }

    /// Ends the replay of a log whose writer may have been stopped at any place: also what the engine
    /// decides at the last time of the log, and the log does not have any more.
    pub fn end_cut(mut self) -> (Replayed, Option<Decision>) {
        let mut members = self.engines.iter_mut().zip(self.until);
        let next = members.find_map(|(engine, until)| engine.poll(until));
        (self.done, next.map(|command| Decision::from(&command)))
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
    engine: Engine<S>,
    build: impl FnMut(&str) -> Option<S>,
) -> Result<Replayed, ReplayError> {
    Replay::new(engine).all(text, build)
}

/// As [`replay`], for the engines of a volume's members.
///
/// # Errors
///
/// As [`replay`], and if the log names a member that there is not.
pub fn replay_volume<S: Scheduler>(
    text: &str,
    engines: Vec<Engine<S>>,
    build: impl FnMut(&str) -> Option<S>,
) -> Result<Replayed, ReplayError> {
    Replay::of_volume(engines).all(text, build)
}
