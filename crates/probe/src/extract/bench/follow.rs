//! Finds the phase of the platters, and follows it.

use super::super::error::ExtractError;
use super::super::known::{MANY, Mark, Spindle};
use super::super::phase::{Doubt, Phase};
use super::super::turns::{mean, near, part};
use super::{Bench, RELOCK};
use headtime_units::{Nanos, Time};

/// A residual up to this part of a turn is steady enough for the longer of these.
const CALM: f64 = 1e-5;
/// The same where each look is one read, on tracks of thousands of sectors.
const STILL: f64 = 2e-6;
/// A place that is off by so many deviations of an answer may be so by chance.
const CHANCE: f64 = 5.0;
/// Residuals beyond this part of a turn are no drift.
const ASTRAY: f64 = 0.02;
/// A drive of which fewer known places than this came late is quiet.
const QUIET: f64 = 0.005;
/// Residuals below this are what a turn is measured to.
const STEADY: f64 = 5e-4;
/// Places that are looked at until two agree.
const MOST_PLACES: usize = 64;
/// So many places that are in the buffer are followed by another one anywhere.
const MOST_HITS: usize = 8;
/// Rounds of a few known places until the phase is found.
const LOCKS: usize = 8;
/// So many known places in a row that are off by the same say where the platters are, however far that is.
const IN_A_ROW: usize = 8;

impl Bench<'_> {
    /// The turn as it is now, in nanoseconds.
    pub fn turn(&self) -> f64 {
        self.phase.map_or(0.0, |phase| phase.turn)
    }

    /// Finds the phase of a drive whose rotation is known.
    pub fn lock(&mut self, spindle: &Spindle) -> Result<(), ExtractError> {
        self.places.clone_from(&spindle.places);
        self.hit_below = spindle.hit_below;
        self.linger = spindle.linger;
        self.holds_many = spindle.places.len() > MANY;
        let calm = if self.holds_many { STILL } else { CALM };
        self.vary = match spindle.varies > calm {
            true => spindle.varies,
            false => 0.0,
        };
        // Where to look twice is dear a look is one read; on tracks of their own many are weighed together.
        self.weighs = self.vary > 0.0 && !self.holds_many;
        // Where answers vary some come late, too.
        self.quiet = spindle.astray < QUIET && self.vary == 0.0;
        self.next_place = self.random.up_to(self.places.len() as u64 - 1) as usize;
        // Nothing is known of the time that passed: the phase on which most places agree.
        for round in 0..LOCKS {
            if round > 0 {
                // A large buffer may hold all those that were looked at not long ago.
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
                    .filter(move |other| near(*other - angle).abs() < ASTRAY)
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
        // Far from each other, so that none is where the arm or the buffer has just been.
        self.next_place = (self.next_place + self.places.len() / 3 + 1) % self.places.len();
        self.places[self.next_place]
    }

    /// The angle that passed at a time, in turns.
    pub fn angle_at(&self, time: Time) -> f64 {
        let phase = self.phase.expect("locked");
        let since = if time >= phase.at {
            (time - phase.at).as_nanos() as f64
        } else {
            -((phase.at - time).as_nanos() as f64)
        };
        part(phase.angle + since / phase.turn)
    }

    /// Reads places whose angles are known, and takes the phase and the period from them: one is
    /// enough if it comes when it should, else two must agree. After long commands a period that is off by some millionths
    /// has taken the phase farther than that: then many in a row must agree.
    fn relock(&mut self) -> Result<(), ExtractError> {
        let mut seen: Vec<f64> = Vec::new();
        let (mut in_a_row, mut hits) = (0, 0);
        let steady = f64::max(STEADY, CHANCE * self.vary);
        for _ in 0..MOST_PLACES {
            let place = self.take_place();
            let answer = self.read(place.lba, 1)?;
            if self.is_hit(&answer) {
                self.elsewhere(place.lba)?;
                hits += 1;
                if self.vary > 0.0 && hits % MOST_HITS == 0 {
                    // All those that come next may be in the buffer: few reads were needed since a step began at the same place.
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
            let is_astray = off.abs() > ASTRAY;
            if is_astray && in_a_row < IN_A_ROW || !agrees {
                self.quiet &= !is_astray;
                seen.push(off);
                continue;
            }
            let phase = self.phase.as_mut().expect("locked");
            let turns = (answer.at - phase.at).as_nanos() as f64 / phase.turn;
            if self.vary > 0.0 {
                phase.follow(answer.at, off, self.vary);
            } else {
                // Most of what the phase is off is so; half of it may be the period's.
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
            let next = if off.abs() > CALM {
                next / 2
            } else {
                next * 5 / 4
            };
            self.relock_after = Nanos::from_nanos(next).clamp(RELOCK[0], RELOCK[1]);
            return Ok(());
        }
        Err(ExtractError::PhaseLost)
    }

    /// Takes the phase anew if that is long ago. Returns true if it did.
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

    /// As after hours of reading in between, when the walk over the places begins where it did a few seconds before.
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

    /// A period that is off by 70 millionths, and commands of seconds after each of which the phase is looked at.
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
        assert!(off.abs() < ASTRAY / 4.0, "{off}");
    }
}
