//! How far the runs are, on standard error and only when that is a terminal.

use headtime_units::{Nanos, Time};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// Runs that end sooner show nothing: what flashes up cannot be read.
const QUIET: Duration = Duration::from_millis(400);
/// Steps of the bar per run.
const STEPS: u64 = 1000;

/// A bar for all runs together.
#[derive(Debug)]
pub struct Progress(Option<ProgressBar>);

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
#[derive(Debug)]
pub struct Task<'a> {
    bar: Option<&'a ProgressBar>,
    goal: Goal,
    shown: u64,
}

impl Progress {
    /// A bar if `shown`, else nothing.
    pub fn new(shown: bool) -> Progress {
        Progress(shown.then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden())))
    }

    /// Whether there is one to see.
    pub fn is_shown(&self) -> bool {
        self.0.is_some()
    }

    /// So many runs begin.
    pub fn begin(&self, runs: u64) {
        if let Some(bar) = &self.0 {
            bar.set_length(runs * STEPS);
            let style = ProgressStyle::with_template(
                "{bar:40} {percent:>3} %  {msg}{elapsed} gone, {eta} to go",
            );
            if let Ok(style) = style {
                bar.set_style(style);
            }
        }
    }

    /// Says what is done, or how far it is in words.
    pub fn say(&self, text: &str) {
        if let Some(bar) = &self.0 {
            bar.set_message(format!("{text}, "));
        }
    }

    /// A run begins.
    pub fn task(&self, goal: Goal) -> Task<'_> {
        Task {
            bar: self.0.as_ref(),
            goal,
            shown: 0,
        }
    }

    /// All are done; nothing stays on the screen.
    pub fn end(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
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
        let Some(bar) = self.bar else { return };
        if step > self.shown {
            bar.inc(step - self.shown);
            self.shown = step;
        }
        if bar.is_hidden() && bar.elapsed() > QUIET {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}
