//! Angles as parts of a turn.

/// What is farther than so many deviations from the middle one of some answers came late.
pub(super) const LATE: f64 = 4.0;

/// The part of a turn, 0 to less than 1, that is left of so many turns.
pub(super) fn part(turns: f64) -> f64 {
    let part = turns - libm::floor(turns);
    if part >= 1.0 { 0.0 } else { part }
}

/// The same angle as the nearest one to zero: −0.5 to 0.5.
pub(super) fn near(turns: f64) -> f64 {
    turns - libm::round(turns)
}

/// The middle one of some numbers; `None` of none.
pub(super) fn median(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    Some(quantile(values, 0.5))
}

/// The number that a part of some numbers, from 0 to 1, are below.
///
/// # Panics
/// If there are none.
pub(super) fn quantile(values: &mut [f64], part: f64) -> f64 {
    let at = (values.len() as f64 * part) as usize;
    let at = at.min(values.len() - 1);
    *values.select_nth_unstable_by(at, f64::total_cmp).1
}

/// The mean of what did not come late, for answers that vary by so much.
pub(super) fn mean(offs: &mut [f64], vary: f64) -> f64 {
    let middle = median(offs).unwrap_or(0.0);
    let close = offs
        .iter()
        .filter(|off| (*off - middle).abs() <= LATE * vary);
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
        // Of two that differ one is taken, until a third agrees with one of them.
        let mut offs = [0.0, 0.3];
        assert_eq!(mean(&mut offs, 1e-4), 0.3);
    }
}
