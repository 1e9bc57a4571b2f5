//! Replay of a log: feeds its events to new engines and compares their decisions.

use super::{Decision, LogError, Record, read, write_decision};
use crate::{Config, DriveTag, Engine, Event, Gate, GateSpec, Lane, Member, Outcome, RequestId};
use headtime_sched::Scheduler;
use headtime_units::Time;

/// Counts of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Events fed to the engine.
    pub events: u64,
    /// Decisions that matched the log.
    pub decisions: u64,
    /// Times that the scheduler of a lane was swapped in flight.
    pub swaps: u64,
    /// Times that a gate was swapped in flight, and the schedulers of all lanes with it.
    pub gate_swaps: u64,
    /// Events that drained a lane into another.
    pub drains: u64,
    /// The time of the last event or swap.
    pub until: Time,
}

/// Error that stopped a replay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The engine's decision differs from the log.
    #[error("line {line}: the log has {}, the engine {}", show(.logged), show(.decided))]
    Differs {
        /// The line of the log, counted from 1; one past the end if the log is over.
        line: usize,
        /// The decision in the log.
        logged: Option<Decision>,
        /// The decision of the engine.
        decided: Option<Decision>,
    },
    /// The log swaps to a scheduler that the caller cannot build.
    #[error("line {line}: there is no scheduler \"{scheduler}\" to swap to")]
    NoScheduler {
        /// The line of the log, counted from 1.
        line: usize,
        /// The text in the log.
        scheduler: String,
    },
    /// The log swaps to a gate that the caller cannot build, or that has another number of lanes.
    #[error("line {line}: there is no gate \"{gate}\" with {lanes} lanes to swap to")]
    NoGate {
        /// The line of the log, counted from 1.
        line: usize,
        /// The text in the log.
        gate: String,
        /// Number of schedulers that the log names for the gate.
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
    /// The log contains an invalid completion.
    #[error("line {line}: tag {} completes and is not in the drive", .tag.0)]
    Impossible {
        /// The line of the log, counted from 1.
        line: usize,
        /// The command's tag, counted from 0.
        tag: DriveTag,
    },
    /// In the log a request joins a staged request, but the replay has none that it may join.
    #[error("line {line}: request {id} joins a staged one, and there is none that it may join")]
    NotStaged {
        /// The line of the log, counted from 1.
        line: usize,
        /// The request.
        id: RequestId,
    },
}

/// Returns a decision for messages: the line of a log without its time.
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

/// Feeds a log to engines record by record, and compares their decisions with the log.
#[derive(Debug)]
pub struct Replay<S> {
    /// By member.
    engines: Vec<Engine<S>>,
    /// By member: time of the engine's last event.
    until: Vec<Time>,
    done: Replayed,
    /// Commands in the drive, each with the time of its issue.
    in_drive: Vec<(Member, DriveTag, Time)>,
    gates: BuildGate,
}

/// Function that builds a gate from its text, for an engine of this configuration.
type BuildGate = fn(&str, &Config) -> Option<Box<dyn Gate>>;

fn named(text: &str, config: &Config) -> Option<Box<dyn Gate>> {
    let spec: GateSpec = text.parse().ok()?;
    spec.build_in_flight(config).ok()
}

impl<S: Scheduler> Replay<S> {
    /// Creates a replay with a new engine of the logged engine's configuration.
    pub fn new(engine: Engine<S>) -> Replay<S> {
        Replay::of_volume(vec![engine])
    }

    /// Creates a replay with new engines for a volume's members, each of the logged engine's configuration.
    pub fn of_volume(engines: Vec<Engine<S>>) -> Replay<S> {
        Replay {
            until: vec![Time::ZERO; engines.len()],
            engines,
            done: Replayed::default(),
            in_drive: Vec::new(),
            gates: named,
        }
    }

    /// Sets the function that builds swapped-in gates from their text. By default, a [`GateSpec`] builds them.
    pub fn with_gates(self, gates: BuildGate) -> Replay<S> {
        Replay { gates, ..self }
    }

    /// Replays a whole log in memory. `build` makes swapped-in schedulers from their text.
    ///
    /// # Errors
    ///
    /// At the first line that cannot be read, or at the first decision that differs.
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

    /// Returns the counts so far.
    pub fn done(&self) -> &Replayed {
        &self.done
    }

    /// Fails if a member's engine makes a decision now that the log does not have.
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

    /// Replays the record of a line. `build` makes swapped-in schedulers from their text.
    ///
    /// # Errors
    ///
    /// If a decision differs, if there is no such scheduler, gate, lane or member, or if the log contains an impossible
    /// event. After an error the engines are in an undefined state.
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
                    // A foretold request comes between the end of a request and the next decision.
                    Event::Foretold(_) => true,
                    Event::Completed { tag, outcome } => {
                        let mut drive = self.in_drive.iter();
                        let ours = |(of, other, _): &_| (*of, *other) == (member, tag);
                        let Some(at) = drive.position(ours) else {
                            return Err(ReplayError::Impossible { line, tag });
                        };
                        let (_, _, issued) = self.in_drive.swap_remove(at);
                        // A command that times out at the time of its issue never went to the drive, and its end comes
                        // between two decisions. A command that the drive completes at once ends after all decisions.
                        // Do not poll between two decisions, since polling may commit the engine to a request.
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

    /// Ends the replay of a complete log with `lines` lines.
    ///
    /// # Errors
    ///
    /// If an engine makes a further decision.
    pub fn end(&mut self, lines: usize) -> Result<Replayed, ReplayError> {
        for member in 0..self.engines.len() {
            self.undecided(lines + 1, Member(member as u16))?;
        }
        Ok(self.done)
    }

    /// Ends the replay of a log whose writer may have been interrupted at any place. Also returns the next decision at
    /// the last time of the log that the log no longer contains.
    pub fn end_cut(mut self) -> (Replayed, Option<Decision>) {
        let mut members = self.engines.iter_mut().zip(self.until);
        let next = members.find_map(|(engine, until)| engine.poll(until));
        (self.done, next.map(|command| Decision::from(&command)))
    }
}

/// Feeds the events of a log to `engine` and compares its decisions with the log.
///
/// The engine must be new and have the logged engine's configuration. `build` makes swapped-in schedulers from their
/// text.
///
/// # Errors
///
/// At the first line that cannot be read, or at the first decision that differs.
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
/// As for [`replay`], and if the log names a member that does not exist.
pub fn replay_volume<S: Scheduler>(
    text: &str,
    engines: Vec<Engine<S>>,
    build: impl FnMut(&str) -> Option<S>,
) -> Result<Replayed, ReplayError> {
    Replay::of_volume(engines).all(text, build)
}
