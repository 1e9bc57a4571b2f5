//! A program as a server sees it: its run, and the profile that is recorded.

use super::feed::SECTOR_BYTES;
use headtime_qos::{Aim, Drift, Goal, Profile, ProfileError, Recorder, Setting, State};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Rate, Time};

/// A run with a goal.
#[derive(Clone, Debug)]
pub(super) enum Run {
    /// There is no goal.
    None,
    /// The run starts with the next request.
    Armed,
    Running {
        start: Time,
        deadline: Time,
        /// Goal of a run without a planner.
        unplanned: Option<Box<Aim>>,
        /// True if the log says that the goal cannot be met.
        hopeless: bool,
        /// True if the log says that the run has left its profile.
        drifted: bool,
        /// Message that the goals give way, if goals and promises do not fit together.
        shortage: Option<String>,
    },
    Over {
        took: Nanos,
        /// Time between the deadline and the end of the last request.
        late: Nanos,
    },
    /// The goal was refused, with the reason.
    Refused(String),
}

#[derive(Clone, Debug)]
pub(super) struct Program {
    pub goal: Option<Goal>,
    pub run: Run,
    outstanding: u64,
    /// Start of the time in which requests have been outstanding.
    busy_from: Time,
    /// Time of the last request or of the end of a request.
    pub last: Time,
    /// Bytes served since the run started.
    pub progress: u64,
    /// The profile under way, from its first request on.
    pub recording: Option<Option<Recorder>>,
    /// Bytes that other programs moved since the recording started.
    pub others: u64,
}

impl Program {
    pub fn new(goal: Option<Goal>) -> Program {
        Program {
            goal,
            run: if goal.is_some() {
                Run::Armed
            } else {
                Run::None
            },
            outstanding: 0,
            busy_from: Time::ZERO,
            last: Time::ZERO,
            progress: 0,
            recording: None,
            others: 0,
        }
    }

    /// True if the program has a goal for its next run, or runs with a goal.
    pub fn has_goal(&self) -> bool {
        matches!(self.run, Run::Armed | Run::Running { .. })
    }

    /// True if a request is outstanding.
    pub fn is_busy(&self) -> bool {
        self.outstanding > 0
    }

    pub fn asked(
        &mut self,
        at: Time,
        server: u16,
        op: Op,
        extent: Extent,
        setting: &dyn Fn() -> Setting,
    ) {
        if let Some(recording) = &mut self.recording {
            if recording.is_none() {
                let recorder = Recorder::new(setting(), SECTOR_BYTES, at);
                *recording = Some(recorder.expect("the setting was checked"));
                (self.busy_from, self.others) = (at, 0);
            }
            if let Some(recorder) = recording {
                recorder.request(at, server, op, extent);
            }
        }
        if self.outstanding == 0 {
            self.busy_from = at;
        }
        self.outstanding += 1;
        self.last = at;
    }

    pub fn done(&mut self, at: Time, bytes: u64) {
        self.outstanding -= 1;
        self.progress += bytes;
        self.last = at;
        if self.outstanding == 0
            && let Some(Some(recorder)) = &mut self.recording
        {
            recorder.busy(self.busy_from, at);
        }
    }

    pub fn start_profile(&mut self) {
        self.recording = Some(None);
        self.others = 0;
    }

    /// Ends a recording, which is no longer under way.
    pub fn finish(&self, mut recorder: Recorder) -> Result<Profile, ProfileError> {
        if self.is_busy() {
            recorder.busy(self.busy_from, self.last);
        }
        recorder.finish(self.last)
    }

    /// True if nothing has happened for `rest`.
    pub fn is_idle(&self, now: Time, rest: Nanos) -> bool {
        !self.is_busy() && now.saturating_since(self.last) >= rest
    }

    /// State, and an explanation. After `rest` without a request a program is idle.
    pub fn state(
        &self,
        now: Time,
        rest: Nanos,
        planned: Option<&State>,
    ) -> (&'static str, Option<String>) {
        match &self.run {
            Run::None => ("none", None),
            Run::Armed => (
                "waiting",
                Some("the run starts with the next request".to_owned()),
            ),
            Run::Running { deadline, .. }
                if now > *deadline && (self.is_busy() || self.last > *deadline) =>
            {
                let late = shown(now - *deadline);
                let why = planned.and_then(behind).unwrap_or_default();
                ("late", Some(format!("the deadline passed {late} ago{why}")))
            }
            Run::Running { .. } if self.is_idle(now, rest) => {
                let idle = shown(now.saturating_since(self.last));
                ("running", Some(format!("no request for {idle}")))
            }
            Run::Running { hopeless: true, .. } => {
                let why = planned.and_then(behind).unwrap_or_default();
                let text = format!("the goal can no longer be met{why}");
                ("behind", Some(text))
            }
            Run::Running { .. } => match planned.and_then(behind) {
                None => ("running", None),
                Some(why) => ("behind", Some(why.trim_start_matches("; ").to_owned())),
            },
            Run::Over { took, late } if late.is_zero() => {
                ("met", Some(format!("the run took {}", shown(*took))))
            }
            Run::Over { took, late } => (
                "missed",
                Some(format!(
                    "the run took {}, {} too long",
                    shown(*took),
                    shown(*late)
                )),
            ),
            Run::Refused(why) => ("refused", Some(why.clone())),
        }
    }
}

/// A time in whole milliseconds, for people.
pub(super) fn shown(span: Nanos) -> Nanos {
    Nanos::from_millis(span.as_nanos() / 1_000_000)
}

fn mb_s(rate: Rate) -> String {
    format!("{:.1} MB/s", rate.0 as f64 / 1e6)
}

/// Explains how a run has left its profile. Returns `None` if the run has not.
pub(super) fn drifted(state: &State) -> Option<String> {
    state.drift.map(|drift| match drift {
        Drift::Slower(percent) => format!(
            "the run has left its profile: its requests take {percent} % of the time in the profile"
        ),
        Drift::More => "the run has left its profile: it has moved a sixteenth more data than the profile has, and how long the rest takes is not known".to_owned(),
    })
}

/// Explanation of a program that is behind; `None` for others.
fn behind(state: &State) -> Option<String> {
    (!state.lost.is_zero()).then(|| {
        format!(
            "; set back by {}: in the last period it had {} of {} in a window of {}",
            shown(state.lost),
            mb_s(state.served),
            mb_s(state.required),
            shown(state.window)
        )
    })
}
