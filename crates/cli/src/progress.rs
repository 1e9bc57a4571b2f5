//! Shows the progress of runs on standard error, if that is a terminal.

use headtime_lab::progress::{Bar, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// Time before which no progress is shown, since a run that ends sooner shows nothing readable.
const SHOWN_AFTER: Duration = Duration::from_millis(400);

/// Returns a progress bar if `shown`, or else a progress that shows nothing.
pub(crate) fn progress(shown: bool) -> Progress {
    if !shown {
        return Progress::default();
    }
    let hidden = ProgressDrawTarget::hidden();
    Progress::new(Box::new(Shown(ProgressBar::with_draw_target(None, hidden))))
}

struct Shown(ProgressBar);

impl Bar for Shown {
    fn begin(&self, steps: u64) {
        self.0.set_length(steps);
        let style = ProgressStyle::with_template(
            "{bar:40} {percent:>3} %  {msg}{elapsed} gone, {eta} to go",
        );
        if let Ok(style) = style {
            self.0.set_style(style);
        }
    }

    fn say(&self, text: &str) {
        self.0.set_message(format!("{text}, "));
    }

    fn advance(&self, steps: u64) {
        self.0.inc(steps);
        if self.0.is_hidden() && self.0.elapsed() > SHOWN_AFTER {
            self.0.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    fn end(&self) {
        self.0.finish_and_clear();
    }
}
