//! Least time after which the head can read at another place.
//!
//! A read that is sent after the previous completion reaches its sector in time, or a turn later. A sector that is just caught therefore
//! shows the total time without rotational delay: processing plus arm movement. This is the minimum of MTBRC (Worthington et al.), which
//! DIXtrac searches for, with angles instead of distances in sectors.

use super::bench::Bench;
use super::error::ExtractError;
use super::turns::part;
use headtime_sched::Op;
use headtime_units::{Extent, Nanos};

/// A target sector, and the angle of its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aim {
    pub lba: u64,
    pub answered: f64,
    /// Time from the start of the sector to the answer, in nanoseconds.
    pub lead: f64,
}

/// Trials of the bisection, checks of its result, and trials of the stochastic search.
const BISECTION_TRIALS: u32 = 18;
const CHECK_TRIALS: u32 = 4;
const SEARCH_TRIALS: u32 = 24;
/// Change of the result, in first steps, above which the search restarts; and the most searches.
const RESTART_STEPS: f64 = 3.0;
const SEARCHES_MAX: u32 = 4;
/// Target precision in nanoseconds.
const PRECISION_NS: f64 = 6_000.0;

/// A search for the least time between two places.
pub(super) struct Reach<'b, 'a> {
    pub bench: &'b mut Bench<'a>,
}

impl Reach<'_, '_> {
    /// Makes a trial: the command `source`, then an operation on `count` sectors. The first sector comes from `aim`, for the angle that
    /// passes `guess` nanoseconds later. Returns the time that would have been enough; a turn less was not enough.
    ///
    /// `None` if the buffer or a disturbance spoiled the trial.
    pub fn trial(
        &mut self,
        source: (Op, Extent),
        (op, count): (Op, u64),
        aim: impl Fn(f64) -> Option<Aim>,
        guess: f64,
    ) -> Result<Option<f64>, ExtractError> {
        self.bench.keep_phase()?;
        let answer = self.bench.command(source.0, source.1)?;
        if source.0.is_read() && self.bench.is_hit(&answer) {
            return Ok(None);
        }
        self.bench.linger();
        let turn = self.bench.turn();
        let now = self.bench.probe.now();
        let angle = self.bench.angle_at(now);
        let Some(aim) = aim(part(angle + guess / turn)) else {
            return Ok(None);
        };
        // Wait until the sector starts `guess` after the command is sent.
        let begins = part(aim.answered - aim.lead / turn - angle - guess / turn) * turn;
        if begins < turn / 2.0 {
            self.bench.probe.pause(Nanos::from_nanos(begins as u64));
        }
        let answer = self.bench.command(op, Extent::at(aim.lba, count))?;
        if op.is_read() && self.bench.is_hit(&answer) {
            return Ok(None);
        }
        let off = super::turns::near(self.bench.angle_at(answer.at) - aim.answered);
        let took = (answer.at - answer.sent).as_nanos() as f64 - aim.lead;
        let is_disturbed = off.abs() > 0.01 || took > guess + 1.5 * turn;
        Ok((!is_disturbed).then_some(took))
    }

    /// Searches near `guess` for the time that is enough in half of the trials.
    ///
    /// A drive that retries a sector is a turn late, as if the time had been too short. The retry misleads the bisection.
    pub fn search(
        &mut self,
        guess: f64,
        mut trial: impl FnMut(&mut Self, f64) -> Result<Option<f64>, ExtractError>,
    ) -> Result<Option<f64>, ExtractError> {
        let mut found = guess;
        for _ in 0..SEARCHES_MAX {
            match self.search_once(found, &mut trial)? {
                Some((time, true)) => return Ok(Some(time)),
                Some((time, false)) => found = time,
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }

    /// Makes a single search. Returns the time, and true if the stochastic search stayed near the bisection's result.
    fn search_once(
        &mut self,
        guess: f64,
        trial: &mut impl FnMut(&mut Self, f64) -> Result<Option<f64>, ExtractError>,
    ) -> Result<Option<(f64, bool)>, ExtractError> {
        let turn = self.bench.turn();
        let (mut low, mut high) = (0.0, f64::INFINITY);
        let (mut at, mut step) = (guess, 60_000.0);
        let mut failures = 0;
        let mut halvings = 0;
        while halvings < BISECTION_TRIALS && high - low > PRECISION_NS {
            let Some(took) = trial(self, at)? else {
                failures += 1;
                if failures > 24 {
                    return Ok(None);
                }
                continue;
            };
            halvings += 1;
            high = high.min(took);
            low = f64::max(low, took - turn);
            if high <= low {
                break;
            }
            // While only one side is near, the search goes on from there in growing steps.
            at = if high > at + step {
                step *= 2.0;
                f64::min(at + step, (low + high) / 2.0)
            } else if low < at - step {
                step *= 2.0;
                f64::max(at - step, (low + high) / 2.0)
            } else {
                (low + high) / 2.0
            };
        }
        let mut middle = if high.is_finite() {
            (low + high) / 2.0
        } else {
            at
        };
        let mut steady = high > low;
        for check in 0..CHECK_TRIALS {
            let beside = if check % 2 == 0 {
                2.0 * PRECISION_NS
            } else {
                -2.0 * PRECISION_NS
            };
            if let Some(took) = trial(self, middle + beside)? {
                let enough = took < middle + beside + turn / 2.0;
                steady &= enough == (beside > 0.0);
            }
        }
        if steady {
            return Ok(Some((middle, true)));
        }
        // Noise: ever shorter steps toward the time at which half of the trials succeed (Robbins and Monro).
        let width = f64::max(40_000.0, 0.02 * middle);
        let (first, mut sum, mut count) = (middle, 0.0, 0.0);
        for round in 0..SEARCH_TRIALS {
            if let Some(took) = trial(self, middle)? {
                let enough = took < middle + turn / 2.0;
                let step = width / libm::sqrt(f64::from(round + 1));
                middle += if enough { -step } else { step };
            }
            if round >= SEARCH_TRIALS / 3 {
                sum += middle;
                count += 1.0;
            }
        }
        let time = sum / count;
        Ok(Some((time, (time - first).abs() < RESTART_STEPS * width)))
    }
}
