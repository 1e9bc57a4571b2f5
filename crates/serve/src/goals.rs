//! Goals of programs on a server, and the windows of time that meet the goals.
//!
//! ```text
//! disks' threads ──notes──> Goals ──> Planner ──orders──> gates of all disks
//! ```
//!
//! A program is a name for exports. A [`Goal`] is for one run of the program. The run starts with the first request
//! after the goal was set. The run is over when the deadline has passed and the program has asked for nothing for three
//! periods. While no run has a goal there are no windows, and gates serve all programs in turn. Under gates `average` a
//! goal becomes a constant rate, and there is no planner.
//!
//! There is no clock and no disk here. The caller of [`Goals::tick`] gives the time and passes the orders on.

mod coordinated;
pub mod coordinator;
pub mod exchange;
pub mod feed;
mod lease;
mod offset;
mod options;
mod program;

use feed::{Note, Notes, What};
use headtime_engine::{GateOrder, Lane};
use headtime_qos::{Goal, Planned, Planner, Profile, SettingError, State};
use headtime_units::{Nanos, Time};
use lease::Lease;
use options::IDLE_PERIODS;
pub use options::{GoalsOptions, Profiled, ProgramOptions, RefusedGoal, Seeks, Until, check_gate};
use program::{Program, Run, drifted, shown};

/// State of a program, for people and scripts.
#[derive(Clone, Debug)]
pub struct ProgramStatus {
    /// Name of the program.
    pub name: String,
    /// Names of the program's exports.
    pub exports: Vec<String>,
    /// Goal of the last run.
    pub goal: Option<Goal>,
    /// One of [`STATES`].
    pub state: &'static str,
    /// Explanation of the state, for people.
    pub why: Option<String>,
    /// Time to the deadline of the run; negative if that has passed, in seconds.
    pub left_s: Option<f64>,
    /// Bounds, windows and losses, while any program runs with a goal.
    pub planned: Option<State>,
    /// True while a profile is recorded.
    pub recording: bool,
}

/// States of a program. `none`: there is no goal. `waiting`: the run's first request has not come. `running`: the
/// program has all that its goal demands. `behind`: the program had less. `late`: the run goes on after its deadline.
/// `met` and `missed`: the run is over. `refused`: the goal could not be accepted.
pub const STATES: [&str; 8] = [
    "none", "waiting", "running", "behind", "late", "met", "missed", "refused",
];

/// Programs of a server and their goals.
pub struct Goals {
    options: GoalsOptions,
    programs: Vec<Program>,
    notes: Vec<Notes>,
    /// Notes of all disks, to be sorted.
    batch: Vec<(u16, Note)>,
    /// Time of the last note. Notes of several disks may come out of order.
    last: Time,
    /// While any run has a goal.
    planner: Option<Planner>,
    /// Lanes of programs.
    assigned: Vec<GateOrder>,
    /// Orders that the next tick passes on.
    orders: Vec<GateOrder>,
    /// While a coordinator plans.
    lease: Option<Lease>,
    unseen: u64,
}

impl Goals {
    /// Goals of programs, by the notes of disks. Disks without notes are elsewhere, and a coordinator brings their notes.
    ///
    /// # Panics
    ///
    /// If there are notes of more disks than the options have, or more than 63 programs.
    pub fn new(options: GoalsOptions, notes: Vec<Notes>) -> Goals {
        assert!(notes.len() <= options.disks.len(), "notes of other disks");
        assert!(options.programs.len() < 64, "more programs than lanes");
        let programs = options.programs.iter();
        Goals {
            programs: programs.map(|program| Program::new(program.goal)).collect(),
            options,
            notes,
            batch: Vec::new(),
            last: Time::ZERO,
            planner: None,
            assigned: Vec::new(),
            orders: Vec::new(),
            lease: None,
            unseen: 0,
        }
    }

    /// Brings a note of a disk for the next tick.
    pub(crate) fn bring(&mut self, disk: u16, note: Note) {
        self.batch.push((disk, note));
    }

    /// Takes the notes of the disks up to now, and appends orders to the gates of all disks.
    pub fn tick(&mut self, now: Time, until: Until<'_>, orders: &mut Vec<GateOrder>) {
        let mut batch = std::mem::take(&mut self.batch);
        for (server, notes) in (0..).zip(&self.notes) {
            batch.extend(notes.take().map(|note| (server, note)));
        }
        batch.sort_by_key(|(_, note)| note.at);
        self.pass_on(now, &batch);
        let sent = orders.len();
        for (server, note) in batch.drain(..) {
            self.last = self.last.max(note.at);
            self.plan(self.last, orders);
            self.note(server, &note, until);
        }
        self.batch = batch;
        self.last = self.last.max(now);
        self.plan(self.last, orders);
        // A gate that was swapped knows no lanes.
        if orders.len() > sent {
            orders.splice(sent..sent, self.assigned.iter().copied());
        }
        self.look_after();
        let unseen = self.notes.iter().map(Notes::unseen).sum();
        if unseen > std::mem::replace(&mut self.unseen, unseen) {
            tracing::warn!(
                "requests came faster than programs are planned for: {unseen} so far are in no bound"
            );
        }
        self.end_runs();
        orders.append(&mut self.orders);
    }

    /// Serves a program at a constant rate, for a run of this time; `None`: with what others leave.
    fn set_rate(&mut self, index: usize, run_time: Option<Nanos>) {
        if self.options.rates() {
            let of = index as u16 + 1;
            let lane = Lane(of as u8);
            let rate = run_time.map_or(0, |run_time| self.options.rate(index, run_time));
            self.orders.push(GateOrder::Assign { of, lane });
            self.orders.push(GateOrder::Rate { lane, rate });
        }
    }

    /// Takes the planner's orders up to `now`.
    fn plan(&mut self, now: Time, orders: &mut Vec<GateOrder>) {
        let Some(planner) = &mut self.planner else {
            return;
        };
        while let Some(order) = planner.order(now) {
            if let GateOrder::Assign { of, .. } = order {
                let is_of = |order: &GateOrder| matches!(order, GateOrder::Assign { of: other, .. } if *other == of);
                self.assigned.retain(|order| !is_of(order));
                self.assigned.push(order);
            }
            orders.push(order);
        }
    }

    fn note(&mut self, server: u16, note: &Note, until: Until<'_>) {
        let at = self.last;
        let index = usize::from(note.program).checked_sub(1);
        match note.what {
            What::Asked { op, extent } => {
                if let Some(index) = index {
                    if matches!(self.programs[index].run, Run::Armed) {
                        self.start(index, at, until);
                    }
                    self.programs[index]
                        .asked(at, server, op, extent, &|| self.options.setting(index));
                }
                if let Some(planner) = &mut self.planner {
                    planner.asked(at, server, note.program, op, extent);
                }
            }
            What::Done { bytes } => {
                if let Some(planner) = &mut self.planner {
                    planner.done(at, server, note.program, bytes);
                }
                for (other, program) in self.programs.iter_mut().enumerate() {
                    match Some(other) == index {
                        true => program.done(at, bytes),
                        false => program.others += bytes,
                    }
                }
            }
        }
    }

    /// Starts a run with its first request.
    fn start(&mut self, index: usize, at: Time, until: Until<'_>) {
        let name = &self.options.programs[index].name;
        let goal = self.programs[index].goal;
        let aim = goal.map(|goal| self.options.aim(index, goal, at, until));
        match aim {
            None => {}
            Some(Err(refused)) => {
                tracing::error!("{refused}; it is served as best effort");
                self.programs[index].run = Run::Refused(refused.to_string());
            }
            Some(Ok(aim)) => {
                let deadline = aim.deadline;
                let rates = self.options.rates();
                tracing::info!(
                    program = name,
                    "its run starts; {} are left",
                    shown(deadline - at)
                );
                self.programs[index].progress = 0;
                self.programs[index].run = Run::Running {
                    start: at,
                    deadline,
                    unplanned: rates.then(|| Box::new(aim.clone())),
                    hopeless: false,
                    drifted: false,
                    shortage: None,
                };
                if rates {
                    return self.set_rate(index, Some(deadline - at));
                }
                let programs =
                    (1..=self.programs.len() as u16).map(|number| Planned { number, goal: None });
                let planning = self.options.planning;
                let planner = self.planner.get_or_insert_with(|| {
                    let mut planner = Planner::new(planning, programs.collect(), at);
                    for (number, program) in (1..).zip(&self.options.programs) {
                        if let Some(p99) = program.p99 {
                            planner = planner.with_p99(number, p99);
                        }
                    }
                    match self.options.seek.clone() {
                        Some(seek) => {
                            planner.with_seeks(Box::new(move |sectors| seek.time(sectors)))
                        }
                        None => planner,
                    }
                });
                planner.set_goal(index as u16 + 1, Some(aim));
                let goals = planner.demanded();
                self.say_shortage(index, goals);
            }
        }
    }

    /// Reports that the goals give way, if the goals under way and the promises demand more than all the time of the
    /// disks. The program with this index has started its run.
    fn say_shortage(&mut self, index: usize, goals: f64) {
        let promised = self.options.promises();
        let promised = self.options.planning.promised_share(&promised);
        if let Run::Running { shortage, .. } = &mut self.programs[index].run
            && promised > 0.0
            && goals + promised > 1.0
        {
            let text = format!(
                "the goals demand {:.1} % of the disks' time and the promises of p99 take {:.1} %: the goals give way",
                goals * 100.0,
                promised * 100.0
            );
            tracing::warn!(program = self.options.programs[index].name, "{text}");
            *shortage = Some(text);
        }
    }

    /// Logs that a run leaves its profile, or that a goal can no longer be met.
    fn look_after(&mut self) {
        let mut states = self.planner.iter().flat_map(Planner::states);
        for (program, of) in self.programs.iter_mut().zip(&self.options.programs) {
            let (state, busy) = (states.next(), program.is_busy());
            let Run::Running {
                deadline,
                unplanned,
                hopeless,
                drifted: noted,
                ..
            } = &mut program.run
            else {
                continue;
            };
            if let Some(drift) = state.as_ref().and_then(drifted)
                && !*noted
            {
                *noted = true;
                tracing::warn!(program = of.name, "{drift}");
            }
            let rest = match (state, unplanned) {
                (Some(state), _) => state.rest,
                (None, Some(aim)) => aim.rest_of(program.progress),
                (None, None) => continue,
            };
            // A program that asks for nothing may be over.
            if !*hopeless && busy && self.last + rest > *deadline {
                *hopeless = true;
                tracing::warn!(
                    program = of.name,
                    "its goal can no longer be met: the rest takes {} or longer, and {} are left",
                    shown(rest),
                    shown(deadline.saturating_since(self.last))
                );
            }
        }
    }

    /// Time without a request after which a program is idle.
    fn rest(&self) -> Nanos {
        self.options.planning.period * IDLE_PERIODS
    }

    fn end_runs(&mut self) {
        let rest = self.rest();
        for index in 0..self.programs.len() {
            let (program, of) = (&mut self.programs[index], &self.options.programs[index]);
            let Run::Running {
                start, deadline, ..
            } = program.run
            else {
                continue;
            };
            if self.last < deadline || !program.is_idle(self.last, rest) {
                continue;
            }
            let (took, late) = (
                program.last.saturating_since(start),
                program.last.saturating_since(deadline),
            );
            match late.is_zero() {
                true => tracing::info!(program = of.name, "its goal is met: it ran for {took}"),
                false => tracing::warn!(
                    program = of.name,
                    "its goal is missed by {late}: it ran for {took}"
                ),
            }
            program.run = Run::Over { took, late };
            self.set_rate(index, None);
        }
        let runs = |program: &Program| matches!(program.run, Run::Running { .. });
        if !self.programs.iter().any(runs) {
            self.planner = None;
        }
    }

    /// Takes the notes of the disks while no program has a goal, so that no plan is made.
    fn take_notes(&mut self, now: Time) {
        let mut orders = Vec::new();
        self.tick(now, &|_| Nanos::ZERO, &mut orders);
        self.orders = orders;
    }

    fn find(&self, name: &str) -> Result<usize, RefusedGoal> {
        let mut programs = self.options.programs.iter();
        programs
            .position(|program| program.name == name)
            .ok_or_else(|| {
                let names: Vec<&str> = self
                    .options
                    .programs
                    .iter()
                    .map(|program| program.name.as_str())
                    .collect();
                RefusedGoal::NoProgram(names.join(", "))
            })
    }

    /// Sets or clears the goal of a program's next run, which starts with the next request.
    ///
    /// # Errors
    ///
    /// If there is no such program, if the goal cannot be accepted, or if any profile is recorded.
    pub fn set_goal(&mut self, name: &str, goal: Option<Goal>) -> Result<(), RefusedGoal> {
        let index = self.find(name)?;
        self.alone()?;
        if let Some(goal) = goal {
            if let Some(recording) = self
                .programs
                .iter()
                .position(|program| program.recording.is_some())
            {
                return Err(RefusedGoal::Recording(
                    self.options.programs[recording].name.clone(),
                ));
            }
            self.options.check(index, goal)?;
        }
        let program = &mut self.programs[index];
        program.goal = goal;
        program.run = if goal.is_some() {
            Run::Armed
        } else {
            Run::None
        };
        if let Some(planner) = &mut self.planner {
            planner.set_goal(index as u16 + 1, None);
        }
        self.set_rate(index, None);
        Ok(())
    }

    /// Starts to record a profile of a program: from the next request on.
    ///
    /// # Errors
    ///
    /// If there is no such program, if the program is recorded already, or if any program has a goal.
    pub fn start_profile(&mut self, name: &str) -> Result<(), RefusedGoal> {
        let index = self.find(name)?;
        self.alone()?;
        if let Some(other) = self.programs.iter().position(Program::has_goal) {
            let other = &self.options.programs[other].name;
            return Err(RefusedGoal::HasGoal(other.clone()));
        }
        self.take_notes(self.last);
        if self.programs[index].recording.is_some() {
            return Err(RefusedGoal::Recording(name.to_owned()));
        }
        self.options
            .setting(index)
            .check()
            .map_err(|error: SettingError| RefusedGoal::Profile(error.to_string()))?;
        self.programs[index].start_profile();
        Ok(())
    }

    /// Ends the recording of a profile with the last request that is over.
    ///
    /// # Errors
    ///
    /// If there is no such program, if none is recorded, or if no request came. The recording has ended then, too.
    pub fn stop_profile(&mut self, name: &str) -> Result<Profile, RefusedGoal> {
        let index = self.find(name)?;
        self.take_notes(self.last);
        let recording = self.programs[index].recording.take();
        let recording = recording.ok_or_else(|| RefusedGoal::NotRecording(name.to_owned()))?;
        let others = self.programs[index].others;
        if others > 0 {
            tracing::warn!(
                program = name,
                "others moved {} bytes while it was recorded: its profile is not of a run alone",
                others
            );
        }
        let empty = || {
            format!(
                "program `{name}`: the profile is empty: no read and no write came; profile a run with I/O"
            )
        };
        let recorder = recording.ok_or_else(|| RefusedGoal::Profile(empty()))?;
        let profile = self.programs[index].finish(recorder);
        profile.map_err(|error| RefusedGoal::Profile(error.to_string()))
    }

    /// Number of requests that disks' threads had no room to note.
    pub fn unseen(&self) -> u64 {
        self.unseen
    }

    /// States of all programs at the last tick.
    pub fn statuses(&self) -> Vec<ProgramStatus> {
        let rest = self.rest();
        let mut planned = self.planner.iter().flat_map(Planner::states);
        let programs = self.options.programs.iter().zip(&self.programs);
        let statuses = programs.map(|(of, program)| {
            let planned = planned.next();
            let (state, mut why) = program.state(self.last, rest, planned.as_ref());
            let shortage = match &program.run {
                Run::Running { shortage, .. } => shortage.clone(),
                _ => None,
            };
            let further = planned.as_ref().and_then(drifted);
            for text in further.into_iter().chain(shortage) {
                why = Some(why.map_or(text.clone(), |why| format!("{why}; {text}")));
            }
            if let Err(coordinated) = self.alone() {
                why = Some(coordinated.to_string());
            }
            ProgramStatus {
                name: of.name.clone(),
                exports: of.exports.clone(),
                goal: program.goal,
                state,
                why,
                left_s: match program.run {
                    Run::Running { deadline, .. } => {
                        Some(deadline.as_nanos() as f64 / 1e9 - self.last.as_nanos() as f64 / 1e9)
                    }
                    _ => None,
                },
                planned,
                recording: program.recording.is_some(),
            }
        });
        statuses.collect()
    }
}

impl std::fmt::Debug for Goals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Goals({:?})", self.options.programs)
    }
}

#[cfg(test)]
mod tests;
