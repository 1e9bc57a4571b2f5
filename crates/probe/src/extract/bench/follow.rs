//! Finding and tracking the phase of the platters.

use super::super::error::ExtractError;
use super::super::phase::{Doubt, Phase};
use super::super::rotation::{LARGE_BUFFER_PLACES, Mark, Spindle};
use super::super::turns::{mean, near, part};
use super::{Bench, RELOCK};
use headtime_units::{Nanos, Time};

/// Residual, in turns, that lets the intervals between checks grow. Answers whose deviation is smaller count as exact.
const EXACT_RESIDUAL_MAX: f64 = 1e-5;
/// Largest deviation of answers, in turns, that counts as exact on drives with a large buffer and thousands of sectors per track.
const EXACT_RESIDUAL_LARGE: f64 = 2e-6;
/// Number of standard deviations by which a place may be off by chance.
const CHANCE_DEVIATIONS: f64 = 5.0;
/// Residual, in turns, beyond drift.
const DRIFT_RESIDUAL_MAX: f64 = 0.02;
/// Share of late answers of known places below which a drive is quiet.
const QUIET_LATE_SHARE: f64 = 0.005;
/// Largest residual, in turns, of a place that is on time.
const TIMELY_RESIDUAL_MAX: f64 = 5e-4;
/// Most places to read until two agree.
const MOST_PLACES: usize = 64;
/// Number of hits after which the sequence of places restarts at random.
const MOST_HITS: usize = 8;
/// Most rounds of a few known places to find the phase.
const LOCK_ROUNDS_MAX: usize = 8;
/// Number of consecutive places with equal residuals that establish the phase, however large the residual is.
const EQUAL_RESIDUALS: usize = 8;

impl Bench<'_> {
    /// Current rotation time in nanoseconds.
    pub fn turn(&self) -> f64 {
        self.phase.map_or(0.0, |phase| phase.turn)
    }

    /// Finds the phase of a drive with known rotation.
    pub fn lock(&mut self, spindle: &Spindle) -> Result<(), ExtractError> {
        self.places.clone_from(&spindle.places);
        self.hit_below = spindle.hit_below;
        self.linger = spindle.linger;
        self.holds_many = spindle.places.len() > LARGE_BUFFER_PLACES;
        let calm = if self.holds_many {
            EXACT_RESIDUAL_LARGE
        } else {
            EXACT_RESIDUAL_MAX
        };
        self.vary = match spindle.varies > calm {
            true => spindle.varies,
            false => 0.0,
        };
        // Where a second sample is expensive, a sample is a single read. There, many samples on separate tracks are combined.
        self.weighs = self.vary > 0.0 && !self.holds_many;
        // Where answers vary, late answers occur, too.
        self.quiet = spindle.astray < QUIET_LATE_SHARE && self.vary == 0.0;
        self.next_place = self.random.up_to(self.places.len() as u64 - 1) as usize;
        // The time since the last phase is unknown. The phase is the one with which most places agree.
        for round in 0..LOCK_ROUNDS_MAX {
            if round > 0 {
                // A large buffer may hold all recent places.
                self.next_place = self.random.up_to(self.places.len() as u64 - 1) as usize;
            }
            let mut seen: Vec<(Time, f64)> = Vec::new();
            for _ in 0..9 {
                let place = self.take_place();
                let answer = self.read(place.lba, 1)?;
                if !self.is_hit(&answer) {
                    seen.push((answer.at, place.angle));
                }
            }
            let Some(&(last, _)) = seen.last() else {
                continue;
            };
            let turn = spindle.turn;
            let now = |&(at, angle): &(Time, f64)| angle + (last - at).as_nanos() as f64 / turn;
            let candidates: Vec<f64> = seen.iter().map(now).collect();
            let agree = |angle: f64| {
                candidates
                    .iter()
                    .filter(move |other| near(*other - angle).abs() < DRIFT_RESIDUAL_MAX)
            };
            let best = candidates.iter().max_by_key(|angle| agree(**angle).count());
            let best = *best.expect("one was seen");
            let mut of: Vec<f64> = agree(best).map(|other| near(other - best)).collect();
            if of.len() * 2 > candidates.len() && of.len() >= 3 {
                let mean = match self.vary > 0.0 {
                    true => mean(&mut of, self.vary),
                    false => of.iter().sum::<f64>() / of.len() as f64,
                };
                self.phase = Some(Phase {
                    at: last,
                    angle: part(best + mean),
                    turn,
                    doubt: Doubt::after(of.len(), self.vary),
                });
                return Ok(());
            }
        }
        Err(ExtractError::PhaseLost)
    }

    fn take_place(&mut self) -> Mark {
        // Consecutive places are far from each other, and from the recent arm position and buffer contents.
        self.next_place = (self.next_place + self.places.len() / 3 + 1) % self.places.len();
        self.places[self.next_place]
    }

    /// Angle of the platters at a time, in turns.
    pub fn angle_at(&self, time: Time) -> f64 {
        let phase = self.phase.expect("locked");
        let since = if time >= phase.at {
            (time - phase.at).as_nanos() as f64
        } else {
            -((phase.at - time).as_nanos() as f64)
        };
        part(phase.angle + since / phase.turn)
    }

    /// Reads places with known angles and corrects the phase and the period. A single place is enough if it comes on time; otherwise two
    /// must agree. After long commands, a period error of some millionths makes the phase drift beyond these limits. Then many consecutive
    /// places must agree.
    fn relock(&mut self) -> Result<(), ExtractError> {
        let mut seen: Vec<f64> = Vec::new();
        let (mut in_a_row, mut hits) = (0, 0);
        let steady = f64::max(TIMELY_RESIDUAL_MAX, CHANCE_DEVIATIONS * self.vary);
        for _ in 0..MOST_PLACES {
            let place = self.take_place();
            let answer = self.read(place.lba, 1)?;
            if self.is_hit(&answer) {
                self.elsewhere(place.lba)?;
                hits += 1;
                if self.vary > 0.0 && hits % MOST_HITS == 0 {
                    // The buffer may hold all following places, since the step started at the same place and made few reads.
                    self.next_place = self.random.up_to(self.places.len() as u64 - 1) as usize;
                }
                continue;
            }
            let angle = self.angle_at(answer.at);
            let off = near(place.angle - angle);
            let is_same = |other: &f64| near(other - off).abs() < steady;
            in_a_row = match seen.last().is_some_and(is_same) {
                true => in_a_row + 1,
                false => 0,
            };
            let agrees = off.abs() < steady || seen.iter().any(is_same);
            let is_astray = off.abs() > DRIFT_RESIDUAL_MAX;
            if is_astray && in_a_row < EQUAL_RESIDUALS || !agrees {
                self.quiet &= !is_astray;
                seen.push(off);
                continue;
            }
            let phase = self.phase.as_mut().expect("locked");
            let turns = (answer.at - phase.at).as_nanos() as f64 / phase.turn;
            if self.vary > 0.0 {
                phase.follow(answer.at, off, self.vary);
            } else {
                // Most of the residual is a phase error; half of it may be a period error.
                if turns > 4.0 {
                    phase.turn *= turns / (turns + 0.5 * off);
                }
                phase.angle = part(angle + 0.9 * off);
                phase.at = answer.at;
            }
            if !is_astray {
                self.noise += (off.abs() - self.noise) / 8.0;
            }
            let next = self.relock_after.as_nanos();
            let next = if off.abs() > EXACT_RESIDUAL_MAX {
                next / 2
            } else {
                next * 5 / 4
            };
            self.relock_after = Nanos::from_nanos(next).clamp(RELOCK[0], RELOCK[1]);
            return Ok(());
        }
        Err(ExtractError::PhaseLost)
    }

    /// Measures the phase again if the last measurement is too old. Returns true in that case.
    pub fn keep_phase(&mut self) -> Result<bool, ExtractError> {
        let phase = self.phase.expect("locked");
        let is_due = self.probe.now().saturating_since(phase.at) > self.relock_after;
        if is_due {
            self.relock()?;
        }
        Ok(is_due)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::spindle;
    use super::*;
    use crate::Modelled;
    use crate::random::Random;
    use headtime_disk::profile::by_name;

    /// Situation after hours of other reads: the sequence of places starts where it started a few seconds ago.
    #[test]
    fn a_phase_is_found_though_the_buffer_holds_the_places_that_are_looked_at_first() {
        let drive = by_name("nearline-20tb").expect("shipped");
        let mut probe = Modelled::new(&drive, 3);
        let mut bench = Bench::new(&mut probe, 3);
        let spindle = spindle::find(&mut bench).expect("it turns");
        bench.places.clone_from(&spindle.places);
        bench.random = Random::new(5);
        bench.next_place = bench.random.up_to(bench.places.len() as u64 - 1) as usize;
        for _ in 0..4 * 9 {
            let place = bench.take_place();
            bench.read(place.lba, 1).expect("it can be read");
        }
        bench.random = Random::new(5);
        bench.lock(&spindle).expect("others are not held");
    }

    /// The period is off by 70 millionths, and the phase is checked only after commands of seconds.
    #[test]
    fn a_phase_that_has_run_away_is_found_where_many_places_agree() {
        let drive = by_name("atlas10k").expect("shipped");
        let mut probe = Modelled::new(&drive, 3);
        let mut bench = Bench::new(&mut probe, 3);
        let spindle = spindle::find(&mut bench).expect("it turns");
        bench.lock(&spindle).expect("its places are known");
        bench.phase.as_mut().expect("locked").turn *= 1.0 + 70e-6;
        for _ in 0..4 {
            bench.probe.pause(Nanos::from_secs(4));
            assert!(bench.keep_phase().expect("it is found"));
        }
        let phase = bench.phase.expect("locked");
        assert!((phase.turn / spindle.turn - 1.0).abs() < 20e-6, "{phase:?}");
        let place = spindle.places[5];
        let answer = bench.read(place.lba, 1).expect("it can be read");
        let off = near(bench.angle_at(answer.at) - place.angle);
        assert!(off.abs() < DRIFT_RESIDUAL_MAX / 4.0, "{off}");
    }
}
