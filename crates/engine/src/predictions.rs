//! Errors of the predicted head times of commands.

use headtime_sched::{Predicting, Surprise};
use headtime_units::Nanos;

/// Step of the error histogram, in nanoseconds.
const ERROR_STEP_NS: i64 = 10_000;

/// Largest error of the histogram in steps, 20 ms. Larger errors count with it.
const ERROR_STEPS_MAX: i64 = 2_000;

/// Observed head times minus predicted ones, of one drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predictions {
    /// Number of commands by error, in steps of 10 us from -20 ms to 20 ms, rounded to the nearest.
    errors: Vec<u64>,
    /// All counts except `within`, which is computed from `errors`.
    counts: PredictionCounts,
    /// True if the last command was a surprise.
    surprised: bool,
}

/// The counts of [`Predictions`], cheap to copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PredictionCounts {
    /// Commands with a prediction.
    pub commands: u64,
    /// Commands that ended within [`PredictionCounts::WITHIN`] of the prediction.
    pub within: [u64; 3],
    /// Commands done at the predicted point of a turn, but whole turns later.
    pub turns_late: u64,
    /// As `turns_late`, while writes may have waited in the drive's buffer. Most likely the drive destaged some of
    /// these writes first.
    pub destaging: u64,
    /// Commands done at the predicted point of a turn, but whole turns earlier.
    pub turns_early: u64,
    /// Commands done from the drive's buffer.
    pub hits: u64,
    /// Commands done at another point of a turn.
    pub elsewhere: u64,
    /// Commands that followed a surprise.
    pub after_surprise: u64,
}

impl PredictionCounts {
    /// Tolerances of [`PredictionCounts::within`].
    pub const WITHIN: [Nanos; 3] = [
        Nanos::from_micros(50),
        Nanos::from_micros(150),
        Nanos::from_micros(300),
    ];
}

impl core::ops::AddAssign for PredictionCounts {
    /// Adds the counts of another drive.
    fn add_assign(&mut self, more: PredictionCounts) {
        self.commands += more.commands;
        for (count, more) in self.within.iter_mut().zip(more.within) {
            *count += more;
        }
        self.turns_late += more.turns_late;
        self.destaging += more.destaging;
        self.turns_early += more.turns_early;
        self.hits += more.hits;
        self.elsewhere += more.elsewhere;
        self.after_surprise += more.after_surprise;
    }
}

impl Default for Predictions {
    fn default() -> Predictions {
        Predictions {
            errors: vec![0; 2 * ERROR_STEPS_MAX as usize + 1],
            counts: PredictionCounts::default(),
            surprised: false,
        }
    }
}

impl core::ops::AddAssign<&Predictions> for Predictions {
    /// Adds the errors and counts of another drive.
    fn add_assign(&mut self, other: &Predictions) {
        for (count, more) in self.errors.iter_mut().zip(&other.errors) {
            *count += more;
        }
        self.counts += other.counts;
    }
}

impl Predictions {
    pub(crate) fn add(&mut self, predicting: &Predicting) {
        let counts = &mut self.counts;
        counts.commands += 1;
        let step = (predicting.error() + ERROR_STEP_NS / 2).div_euclid(ERROR_STEP_NS);
        self.errors[(step.clamp(-ERROR_STEPS_MAX, ERROR_STEPS_MAX) + ERROR_STEPS_MAX) as usize] +=
            1;
        counts.after_surprise += u64::from(self.surprised);
        let surprise = match predicting.surprise {
            Surprise::None => None,
            Surprise::Turns(turns) if turns > 0 => Some(&mut counts.turns_late),
            Surprise::Turns(_) => Some(&mut counts.turns_early),
            Surprise::Destaging(_) => Some(&mut counts.destaging),
            Surprise::Hit => Some(&mut counts.hits),
            Surprise::Elsewhere => Some(&mut counts.elsewhere),
        };
        self.surprised = surprise.is_some();
        if let Some(count) = surprise {
            *count += 1;
        }
    }

    /// The counts alone.
    pub fn counts(&self) -> PredictionCounts {
        PredictionCounts {
            within: PredictionCounts::WITHIN.map(|most| self.within(most)),
            ..self.counts
        }
    }

    /// Returns the number of commands that ended within `most` of the prediction, to 10 us.
    pub fn within(&self, most: Nanos) -> u64 {
        let steps = (most.as_nanos() as i64 / ERROR_STEP_NS).min(ERROR_STEPS_MAX);
        let from = (ERROR_STEPS_MAX - steps) as usize;
        self.errors[from..=(ERROR_STEPS_MAX + steps) as usize]
            .iter()
            .sum()
    }

    /// Returns errors in nanoseconds, to 10 us and ascending, each with the number of commands. Errors without a
    /// command are left out.
    pub fn errors(&self) -> impl Iterator<Item = (i64, u64)> {
        let steps = (-ERROR_STEPS_MAX..=ERROR_STEPS_MAX).zip(self.errors.iter().copied());
        steps.filter_map(|(step, count)| (count > 0).then_some((step * ERROR_STEP_NS, count)))
    }
}
