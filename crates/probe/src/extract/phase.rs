//! Phase of the platters, tracked through answers that vary.

use super::rotation::ROUNDS_PER_PLACE;
use super::turns::part;
use headtime_units::Time;

/// Variance of the relative change of speed per turn. The standard deviation within a second is about a millionth.
const SPEED_VARIANCE: f64 = 6e-15;
/// Distance in turns of two answers whose deviation sets the first uncertainty of the speed.
const FIRST_DISTANCE_TURNS: f64 = 100.0;
/// Number of standard deviations beyond which a residual is taken as real.
const REAL_DEVIATIONS: f64 = 5.0;

/// Phase of the platters at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase {
    pub at: Time,
    /// Angle in turns.
    pub angle: f64,
    /// Rotation time in nanoseconds.
    pub turn: f64,
    pub doubt: Doubt,
}

/// Uncertainty of a phase: variance of the angle in turns, variance of the relative speed, and their covariance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubt {
    angle: f64,
    both: f64,
    speed: f64,
}

impl Doubt {
    /// Uncertainty after a number of answers with the standard deviation `vary`, in turns.
    pub fn after(answers: usize, vary: f64) -> Doubt {
        Doubt {
            angle: of_place(vary) / answers.max(1) as f64,
            both: 0.0,
            speed: (vary / FIRST_DISTANCE_TURNS) * (vary / FIRST_DISTANCE_TURNS),
        }
    }

    /// Uncertainty after some more turns.
    fn later(self, turns: f64) -> Doubt {
        let Doubt { angle, both, speed } = self;
        Doubt {
            angle: angle + turns * (2.0 * both + turns * (speed + turns * SPEED_VARIANCE / 3.0)),
            both: both + turns * (speed + turns * SPEED_VARIANCE / 2.0),
            speed: speed + turns * SPEED_VARIANCE,
        }
    }
}

/// Variance of a known place's residual. The stored angle came from answers with the same deviation.
fn of_place(vary: f64) -> f64 {
    vary * vary * (1.0 + 1.0 / ROUNDS_PER_PLACE as f64)
}

impl Phase {
    /// Corrects the phase by the residual `off` of a known place (a Kalman filter). The gains of angle and speed depend on their
    /// uncertainty relative to the deviation of answers.
    pub fn follow(&mut self, at: Time, off: f64, vary: f64) {
        let turns = (at - self.at).as_nanos() as f64 / self.turn;
        let mut known = self.doubt.later(turns);
        if off * off > REAL_DEVIATIONS * REAL_DEVIATIONS * (known.angle + of_place(vary)) {
            known.angle = known.angle.max(off * off);
        }
        let all = known.angle + of_place(vary);
        let (angle, speed) = (known.angle / all, known.both / all);
        self.angle = part(self.angle + turns + angle * off);
        self.turn /= 1.0 + speed * off;
        self.at = at;
        self.doubt = Doubt {
            angle: known.angle * (1.0 - angle),
            both: known.both * (1.0 - angle),
            speed: known.speed - speed * known.both,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::turns::near;
    use crate::random::Random;

    const TURN: f64 = 6e6;

    /// Mean phase error over two hundred places, for answers with the standard deviation `vary` in turns.
    fn off(vary: f64) -> f64 {
        let mut random = Random::new(3);
        let mut phase = Phase {
            at: Time::ZERO,
            angle: 0.0,
            turn: TURN * (1.0 + vary / FIRST_DISTANCE_TURNS),
            doubt: Doubt::after(9, vary),
        };
        let mut sum = 0.0;
        for at in 1..=400_u32 {
            // A read every tenth of a second. A uniform distribution of width w has the variance w²/12.
            let at = Time::ZERO + headtime_units::Nanos::from_micros(u64::from(at) * 100_003);
            let turns = at.as_nanos() as f64 / TURN;
            let answer = turns + 12_f64.sqrt() * vary * (random.unit() - 0.5);
            let since = (at - phase.at).as_nanos() as f64 / phase.turn;
            phase.follow(at, near(answer - phase.angle - since), vary);
            if at > Time::ZERO + headtime_units::Nanos::from_secs(20) {
                sum += near(phase.angle - turns).abs() / 200.0;
            }
        }
        sum
    }

    #[test]
    fn a_phase_is_known_to_less_than_half_of_what_answers_vary_by() {
        for vary in [1e-4, 5e-4, 1e-3] {
            let off = off(vary);
            assert!(off < 0.5 * vary, "{off} of {vary}");
        }
    }
}
