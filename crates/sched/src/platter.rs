//! Tracker of the platter: its phase and its period, from the times at which requests end.
//!
//! A transfer ends when its last sector has passed, wherever it began. So the end of a request shows the phase of the
//! platter, whatever the arm did before (Lumb, Schindler and Ganger, FAST 2002, sections 3.3 and 5.2). The model
//! predicts the point of the turn. The difference, less whole turns, is the error of the phase.
//!
//! The phase follows a share of each error, the period a smaller share: a loop of the second order. The shares begin at
//! one and fall while the platter is being found.

use headtime_units::{Nanos, Time};

/// Largest error in nanoseconds that counts once the platter is found. A larger error has another cause.
const ERROR_NS_MAX: i64 = 300_000;

/// Growth of the window in nanoseconds per second without an error that counted: a drift of 100 ppm.
const WINDOW_PER_SECOND: i64 = 100_000;

/// Number of errors until the shares have fallen.
const FINDING_ERRORS: u32 = 16;

/// Divisor of an error for the phase, once the platter is found. With an eighth for the phase and a 256th for the period, 1,000 ppm are
/// found to 5 us within 300 errors (`docs/design/2026-11-23-predict.md`).
const ANGLE_PART: i64 = 8;

/// Divisor of an error for the period.
const PERIOD_PART: i64 = 256;

/// Number of successive errors that agree with each other but not with the phase. The phase is then lost.
const LOST_ERRORS: u32 = 8;

/// Largest deviation of the period from the model's: 2,000 ppm.
const RATE_MAX: i64 = 2_000_000;

/// Lead of a model's clock, and the rate of its change.
#[derive(Clone, Copy, Debug)]
pub struct Platter {
    turn: i64,
    /// From 0 to less than a turn, at `since`.
    ahead: i64,
    /// Rate of change, in nanoseconds per second.
    rate: i64,
    since: Time,
    /// Errors that counted, up to [`FINDING_ERRORS`].
    seen: u32,
    /// Successive errors since then that did not count, and the last of them.
    strange: u32,
    strange_error: i64,
}

impl Platter {
    /// Builds a platter with the model's phase, which holds until the first error.
    ///
    /// # Panics
    ///
    /// If a turn takes no time.
    pub fn new(turn: Nanos) -> Platter {
        assert!(!turn.is_zero(), "a platter turns");
        Platter {
            turn: turn.as_nanos() as i64,
            ahead: 0,
            rate: 0,
            since: Time::ZERO,
            seen: 0,
            strange: 0,
            strange_error: 0,
        }
    }

    /// Returns the lead of the model's clock at `now`: 0 to less than a turn.
    pub fn ahead(&self, now: Time) -> Nanos {
        let elapsed = now.saturating_since(self.since).as_nanos() as i64;
        let drift = match self.rate.checked_mul(elapsed) {
            Some(product) => product / 1_000_000_000,
            // Overflow after an hour without a request.
            None => (i128::from(self.rate) * i128::from(elapsed) / 1_000_000_000) as i64,
        };
        let ahead = self.ahead + drift;
        let ahead = match (0..self.turn).contains(&ahead) {
            true => ahead,
            false => ahead.rem_euclid(self.turn),
        };
        Nanos::from_nanos(ahead as u64)
    }

    /// Returns true if the platter has been found and not lost since.
    pub fn is_found(&self) -> bool {
        self.seen >= FINDING_ERRORS
    }

    /// Divides the lateness of a request (negative if early) into whole turns and the rest. The rest is at most half a
    /// turn.
    pub fn divide(&self, late: i64) -> (i64, i64) {
        // A command may be as late as the longest run. Only the rest is certain to fit.
        let turns = (late.saturating_add(self.turn.div_euclid(2))).div_euclid(self.turn);
        (turns, late.wrapping_sub(turns.wrapping_mul(self.turn)))
    }

    /// Returns the largest error of the phase at `now` that can come from the platter.
    pub fn window(&self, now: Time) -> i64 {
        let elapsed = now.saturating_since(self.since).as_nanos() as i64;
        let drift = (elapsed / 1_000_000).saturating_mul(WINDOW_PER_SECOND / 1_000);
        ERROR_NS_MAX.saturating_add(drift).min(self.turn / 2)
    }

    /// Returns true if an error can come from the platter. Any error can until the platter has been found once.
    pub fn fits(&self, now: Time, late: i64) -> bool {
        self.seen == 0 || late.abs() <= self.window(now)
    }

    /// Follows an error of the phase: the lateness of a request against its point of the turn. Returns true if the
    /// error counts.
    pub fn follow(&mut self, now: Time, late: i64) -> bool {
        let elapsed = now.saturating_since(self.since).as_nanos() as i64;
        if !self.fits(now, late) && !self.is_elsewhere(late) {
            return false;
        }
        // A late request means a smaller lead of the model's clock.
        let angle_part = i64::from(self.seen + 1).min(ANGLE_PART);
        let ahead = self.ahead(now).as_nanos() as i64 - late / angle_part;
        if self.seen > 0 && elapsed > 0 {
            let part = (i64::from(self.seen) * 8).min(PERIOD_PART);
            let rate = (-late).saturating_mul(1_000_000_000) / elapsed.max(1_000_000) / part;
            self.rate = (self.rate + rate).clamp(-RATE_MAX, RATE_MAX);
        }
        self.ahead = ahead.rem_euclid(self.turn);
        self.since = now;
        self.seen = (self.seen + 1).min(FINDING_ERRORS);
        self.strange = 0;
        true
    }

    /// Notes an error that does not fit. After [`LOST_ERRORS`] errors that fit each other, the search for the platter starts
    /// anew.
    fn is_elsewhere(&mut self, late: i64) -> bool {
        let fits = (late - self.strange_error).abs() <= ERROR_NS_MAX;
        self.strange = if fits { self.strange + 1 } else { 1 };
        self.strange_error = late;
        if self.strange < LOST_ERRORS {
            return false;
        }
        (self.seen, self.rate) = (0, 0);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: Nanos = Nanos::from_nanos(5_985_000);

    /// Follows a platter that turns slower by `ppm` parts per million and started at `at`. A request ends every `every`
    /// nanoseconds, `ends` times. Returns the last error.
    fn last_error(platter: &mut Platter, ppm: i64, at: i64, every: i64, ends: i64) -> i64 {
        let turn = TURN.as_nanos() as i64;
        let mut error = 0;
        let from = platter.since.as_nanos() as i64;
        for end in 1..=ends {
            // The platter is at the point that a slow clock with a lead of `at` shows.
            let now = from + end * every;
            let truth = (now - now / 1_000_000 * ppm + at).rem_euclid(turn);
            let now = Time::from_nanos(now as u64);
            let expected = (now + platter.ahead(now)).as_nanos() as i64 % turn;
            // A sector predicted at `expected` is still at `truth`: it comes later by the difference.
            (_, error) = platter.divide(expected - truth);
            platter.follow(now, error);
        }
        error
    }

    #[test]
    fn any_lateness_is_turns_and_half_a_turn_at_most() {
        let turn = TURN.as_nanos() as i64;
        let platter = Platter::new(TURN);
        for late in [i64::MAX, i64::MAX - turn, turn, 1, 0, -1, -turn, -i64::MAX] {
            let (turns, rest) = platter.divide(late);
            assert!(rest.abs() <= turn, "{late}: {rest}");
            let sum = i128::from(turns) * i128::from(turn) + i128::from(rest);
            assert_eq!(sum, i128::from(late));
        }
        assert_eq!(platter.divide(turn / 2 + 1), (1, -turn / 2 + 1 - turn % 2));
    }

    #[test]
    fn a_platter_is_found_at_once_and_its_drift_followed() {
        for (ppm, at) in [(0, 0), (0, 3_000_000), (100, 700_000), (-1_000, 5_000_000)] {
            let mut platter = Platter::new(TURN);
            assert!(!platter.is_found());
            last_error(&mut platter, ppm, at, 9_700_000, 300);
            assert!(platter.is_found());
            let after = last_error(&mut platter, ppm, at, 9_700_000, 1);
            assert!(after.abs() < 5_000, "{ppm} ppm: {after} ns off");
            // Error of the found period, in parts of 10^9.
            let off = -platter.rate - ppm * 1_000;
            assert!(
                off.abs() < 20_000,
                "{ppm} ppm: the period is off by {off} ppb"
            );
        }
    }

    #[test]
    fn a_second_without_ends_is_bridged_by_the_period() {
        let mut platter = Platter::new(TURN);
        last_error(&mut platter, 300, 1_000_000, 9_700_000, 600);
        let after = last_error(&mut platter, 300, 1_000_000, 1_000_000_000, 1);
        assert!(after.abs() < 30_000, "{after} ns off");
    }

    #[test]
    fn hours_without_ends_are_bridged_to_the_nanosecond() {
        for hours in [1, 2, 1_000] {
            let mut platter = Platter::new(TURN);
            (platter.ahead, platter.rate) = (5, RATE_MAX);
            let seconds = 3_600 * hours;
            let ahead = (5 + RATE_MAX * seconds) % TURN.as_nanos() as i64;
            let now = Time::ZERO + Nanos::from_secs(seconds as u64);
            assert_eq!(platter.ahead(now).as_nanos() as i64, ahead, "{hours} h");
            platter.rate = -RATE_MAX;
            let ahead = (5 - RATE_MAX * seconds).rem_euclid(TURN.as_nanos() as i64);
            assert_eq!(platter.ahead(now).as_nanos() as i64, ahead, "{hours} h");
        }
    }

    #[test]
    fn an_error_that_stands_alone_moves_nothing_and_eight_that_agree_move_the_platter() {
        let mut platter = Platter::new(TURN);
        last_error(&mut platter, 0, 0, 10_000_000, 50);
        let (before, at) = (platter.ahead(platter.since), platter.since);
        for nth in 1..LOST_ERRORS as u64 {
            let now = at + Nanos::from_millis(10 * nth);
            assert!(!platter.follow(now, 1_500_000), "error {nth}");
            assert_eq!(platter.ahead(now), before);
        }
        let now = at + Nanos::from_millis(80);
        assert!(platter.follow(now, 1_500_000));
        assert!(!platter.is_found());
        let moved = (before.as_nanos() as i64 - 1_500_000).rem_euclid(TURN.as_nanos() as i64);
        assert_eq!(platter.ahead(now).as_nanos() as i64, moved);
    }

    #[test]
    fn an_error_is_divided_into_whole_turns_and_half_a_turn_at_most() {
        let platter = Platter::new(Nanos::from_nanos(1_000));
        let divided =
            [-1_600, -1_000, -500, -499, 0, 499, 500, 2_100].map(|late| platter.divide(late));
        let expected = [
            (-2, 400),
            (-1, 0),
            (0, -500),
            (0, -499),
            (0, 0),
            (0, 499),
            (1, -500),
            (2, 100),
        ];
        assert_eq!(divided, expected);
    }
}
