//! Angles as parts of a turn.

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
