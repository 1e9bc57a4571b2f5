//! Progress of runs, for a caller that shows a bar.

use headtime_units::{Nanos, Time};
use std::fmt;

/// Steps of a run.
pub const STEPS: u64 = 1000;

/// A place where progress is shown.
pub trait Bar: Send + Sync {
    /// Starts a bar of `steps` [steps](STEPS).
    fn begin(&self, steps: u64);

    /// Shows `text` beside the bar.
    fn say(&self, text: &str);

    /// Adds `steps` steps that are done.
    fn advance(&self, steps: u64);

    /// Removes the bar.
    fn end(&self);
}

/// Progress of all runs together. The default shows nothing.
#[derive(Default)]
pub struct Progress(Option<Box<dyn Bar>>);

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.0.is_some()).finish()
    }
}

/// End of a run, for measuring its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The run ends at this time.
    Time(Nanos),
    /// The run ends with this number of requests.
    Requests(u64),
    /// The end is not known.
    Unknown,
}

/// Progress of a run.
pub struct Task<'a> {
    bar: Option<&'a dyn Bar>,
    goal: Goal,
    shown: u64,
}

impl Progress {
    /// Progress that `bar` shows.
    pub fn new(bar: Box<dyn Bar>) -> Progress {
        Progress(Some(bar))
    }

    /// True if a bar shows the progress.
    pub fn is_shown(&self) -> bool {
        self.0.is_some()
    }

    /// Starts `runs` runs.
    pub fn begin(&self, runs: u64) {
        if let Some(bar) = &self.0 {
            bar.begin(runs * STEPS);
        }
    }

    /// Shows `text` beside the bar.
    pub fn say(&self, text: &str) {
        if let Some(bar) = &self.0 {
            bar.say(text);
        }
    }

    /// Starts a run.
    pub fn task(&self, goal: Goal) -> Task<'_> {
        Task {
            bar: self.0.as_deref(),
            goal,
            shown: 0,
        }
    }

    /// Ends all runs.
    pub fn end(&self) {
        if let Some(bar) = &self.0 {
            bar.end();
        }
    }
}

impl Task<'_> {
    /// Notes that the run has come to `now` with `finished` requests.
    pub fn note(&mut self, now: Time, finished: u64) {
        let (part, whole) = match self.goal {
            Goal::Time(end) => (now.as_nanos(), end.as_nanos()),
            Goal::Requests(all) => (finished, all),
            Goal::Unknown => return,
        };
        let step = (u128::from(part) * u128::from(STEPS) / u128::from(whole.max(1))) as u64;
        self.advance(step.min(STEPS));
    }

    /// Ends the run.
    pub fn done(mut self) {
        self.advance(STEPS);
    }

    fn advance(&mut self, step: u64) {
        if let Some(bar) = self.bar.filter(|_| step > self.shown) {
            bar.advance(step - self.shown);
            self.shown = step;
        }
    }
}
