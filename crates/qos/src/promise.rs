//! Promises beside goals: 99 % of a program's requests are done within a time.
//!
//! A period has equal parts, each at most as long as the shortest promise. Each part begins with a window of each program
//! with a promise. Goals give way to promises.

use crate::plan::Planning;
use headtime_units::Nanos;

/// Reads the time of a promise: 99 % of a program's requests must be done within this time.
///
/// # Errors
///
/// If the text is no time above zero. The error describes the allowed times.
pub fn p99(text: &str) -> Result<Nanos, String> {
    let text = text.trim();
    if text.ends_with('%') {
        return Err(
            "a share has no measure: while windows are planned nobody knows the p99 without windows; give a time (`200ms`)"
                .to_owned(),
        );
    }
    match text.parse::<Nanos>() {
        Ok(Nanos::ZERO) => Err("it is zero; give a time (`200ms`)".to_owned()),
        Ok(time) => Ok(time),
        Err(problem) => Err(problem.to_string()),
    }
}

impl Planning {
    /// Number of parts of a period, each at most as long as the shortest promise. Each part has a window of each program with
    /// a promise.
    pub(crate) fn parts(&self, p99: Nanos) -> u64 {
        let period = self.period.as_nanos();
        period.div_ceil(p99.as_nanos().clamp(1, period))
    }

    /// Share of the servers' time that promises of these times take.
    pub fn promised_share(&self, p99: &[Nanos]) -> f64 {
        let parts = p99.iter().min().map_or(0, |least| self.parts(*least));
        let windows = self.least * parts * p99.len() as u64;
        windows.as_secs_f64() / self.period.as_secs_f64()
    }

    /// Checks promises of these times, among `programs` that share the servers. Each part of a period needs room for the
    /// least window of each promise and of one other program. A period needs room for the least windows of all programs.
    ///
    /// # Errors
    ///
    /// If a time is too short.
    pub fn check_p99(&self, programs: usize, p99: &[Nanos]) -> Result<(), String> {
        let Some(shortest) = p99.iter().min() else {
            return Ok(());
        };
        let (count, others) = (p99.len() as u64, (programs + 1 - p99.len()) as u64);
        let (period, least) = (self.period.as_nanos(), self.least.as_nanos().max(1));
        let most = (period / (least * (count + 1)))
            .min(period.saturating_sub(least * others) / (least * count));
        if most > 0 && self.parts(*shortest) <= most {
            return Ok(());
        }
        let allowed = match most {
            0 => "nothing: give the gate a longer period".to_owned(),
            most => format!(
                "{} or more",
                Nanos::from_millis(period.div_ceil(most).div_ceil(1_000_000))
            ),
        };
        Err(format!(
            "is {shortest}; allowed is {allowed}, with windows of {} or longer for {programs} programs in a period of {}. Requests that have to be faster go through an export of class real-time",
            self.least, self.period
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_is_a_time_and_a_share_is_refused_with_the_reason() {
        assert_eq!(p99("200ms"), Ok(Nanos::from_millis(200)));
        assert!(
            p99("+10%")
                .unwrap_err()
                .starts_with("a share has no measure")
        );
        assert!(p99("0s").is_err() && p99("soon").is_err());
    }

    #[test]
    fn a_promise_is_refused_where_a_part_of_a_period_has_no_room_for_another_program() {
        let planning = Planning::default();
        let check = |programs, times: &[u64]| {
            let times: Vec<Nanos> = times.iter().map(|ms| Nanos::from_millis(*ms)).collect();
            planning.check_p99(programs, &times)
        };
        assert_eq!(check(2, &[]), Ok(()));
        assert_eq!(check(2, &[91]), Ok(()));
        assert!(
            check(2, &[90])
                .unwrap_err()
                .contains("allowed is 91ms or more")
        );
        // Two promises: three windows of 45 ms in each part.
        assert_eq!(check(3, &[143, 500]), Ok(()));
        assert!(
            check(3, &[142, 500])
                .unwrap_err()
                .contains("allowed is 143ms or more")
        );
        // The least windows of 19 others take 855 ms, and three windows fit.
        assert!(
            check(19, &[200])
                .unwrap_err()
                .contains("allowed is 334ms or more")
        );
        assert!(
            check(23, &[900])
                .unwrap_err()
                .contains("allowed is nothing")
        );
    }

    #[test]
    fn promises_take_a_window_of_each_in_each_part() {
        let planning = Planning::default();
        let share = |times: &[u64]| {
            let times: Vec<Nanos> = times.iter().map(|ms| Nanos::from_millis(*ms)).collect();
            planning.promised_share(&times)
        };
        assert_eq!(share(&[]), 0.0);
        assert_eq!(share(&[200]), 0.225);
        // Six parts of 167 ms.
        assert_eq!(share(&[170, 500]), 0.54);
    }
}
