//! How far runs are, for whoever shows that.

use headtime_units::{Nanos, Time};
use std::fmt;

/// Steps of a run.
pub const STEPS: u64 = 1000;

/// A place where progress is shown.
pub trait Bar: Send + Sync {
    /// So many [steps](STEPS) begin.
    fn begin(&self, steps: u64);

    /// Says what is done, or how far the runs are in words.
    fn say(&self, text: &str);

    /// So many more steps are done.
    fn advance(&self, steps: u64);

    /// All is done; nothing stays on the screen.
    fn end(&self);
}

/// Progress of all runs together; by default nobody sees it.
#[derive(Default)]
pub struct Progress(Option<Box<dyn Bar>>);

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.0.is_some()).finish()
    }
}

/// By what one can tell how far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// It ends at this time.
    Time(Nanos),
    /// It has so many requests.
    Requests(u64),
    /// Not at all.
    Unknown,
}

/// One run.
pub struct Task<'a> {
    bar: Option<&'a dyn Bar>,
    goal: Goal,
    shown: u64,
}

impl Progress {
    /// Progress that is shown here.
    pub fn new(bar: Box<dyn Bar>) -> Progress {
        Progress(Some(bar))
    }

    /// True if somebody sees it.
    pub fn is_shown(&self) -> bool {
        self.0.is_some()
    }

    /// So many runs begin.
    pub fn begin(&self, runs: u64) {
        if let Some(bar) = &self.0 {
            bar.begin(runs * STEPS);
        }
    }

    /// Says what is done, or how far it is in words.
    pub fn say(&self, text: &str) {
        if let Some(bar) = &self.0 {
            bar.say(text);
        }
    }

    /// A run begins.
    pub fn task(&self, goal: Goal) -> Task<'_> {
        Task {
            bar: self.0.as_deref(),
            goal,
            shown: 0,
        }
    }

    /// All are done.
    pub fn end(&self) {
        if let Some(bar) = &self.0 {
            bar.end();
        }
    }
}

impl Task<'_> {
    /// The run has come to `now`, with so many requests finished.
    pub fn note(&mut self, now: Time, finished: u64) {
        let (part, whole) = match self.goal {
            Goal::Time(end) => (now.as_nanos(), end.as_nanos()),
            Goal::Requests(all) => (finished, all),
            Goal::Unknown => return,
        };
        let step = (u128::from(part) * u128::from(STEPS) / u128::from(whole.max(1))) as u64;
        self.advance(step.min(STEPS));
    }

    /// The run is over.
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
