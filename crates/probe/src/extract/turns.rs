//! Angles as parts of a turn.

/// Number of standard deviations from the median beyond which an answer is late.
pub(super) const LATE_DEVIATIONS: f64 = 4.0;

/// Fractional part of a number of turns, 0 to less than 1.
pub(super) fn part(turns: f64) -> f64 {
    let part = turns - libm::floor(turns);
    if part >= 1.0 { 0.0 } else { part }
}

/// Equivalent angle nearest to zero: −0.5 to 0.5.
pub(super) fn near(turns: f64) -> f64 {
    turns - libm::round(turns)
}

/// Median of some numbers; `None` if there are none.
pub(super) fn median(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    Some(quantile(values, 0.5))
}

/// Quantile of some numbers; `part` is 0 to 1.
///
/// # Panics
/// If there are no numbers.
pub(crate) fn quantile(values: &mut [f64], part: f64) -> f64 {
    let at = (values.len() as f64 * part) as usize;
    let at = at.min(values.len() - 1);
    *values.select_nth_unstable_by(at, f64::total_cmp).1
}

/// Mean of the answers that are not late, for answers with the standard deviation `vary`.
pub(super) fn mean(offs: &mut [f64], vary: f64) -> f64 {
    let middle = median(offs).unwrap_or(0.0);
    let close = offs
        .iter()
        .filter(|off| (*off - middle).abs() <= LATE_DEVIATIONS * vary);
    let (count, sum) = close.fold((0.0, 0.0), |(count, sum), off| (count + 1.0, sum + off));
    sum / f64::max(count, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_leaves_out_what_came_late() {
        let mut offs = [0.0, 1e-4, 0.3, -1e-4, 2e-4];
        assert!((mean(&mut offs, 1e-4) - 5e-5).abs() < 1e-12);
        assert_eq!(mean(&mut [], 1e-4), 0.0);
        // Two different answers: the median rule takes one, until a third answer agrees with either.
        let mut offs = [0.0, 0.3];
        assert_eq!(mean(&mut offs, 1e-4), 0.3);
    }
}
