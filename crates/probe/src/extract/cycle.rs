//! Detection of repetition in rows of tracks.

use super::zone::{FoundZone, Row};

/// Rows at the front of a repetition that may be cut or belong to an earlier rule.
const LOOSE_ROWS: usize = 2;

/// Makes a cycle of the last rows of a zone if they repeat and the new row continues the repetition. Returns true in that case. `habit` is
/// the number of rows per cycle of the last rule, or 0.
///
/// A repetition must come twice. If the number of rows equals `habit`, once and one more row is enough. It must start with the first tracks
/// of this length, or a few equal rows among others would pass for a rule.
pub(super) fn adopt(zone: &mut FoundZone, habit: u64, tolerance: impl Fn(u64) -> f64) -> bool {
    let Some((open, closed)) = zone.rows.split_last() else {
        return false;
    };
    if zone.cycle > 0 {
        return false;
    }
    let first = closed.iter().position(|row| row.slots == open.slots);
    let Some(first) = first else { return false };
    let like = |one: &Row, other: &Row| one.is_like(other, tolerance(other.slots));
    for cycle in 1..=closed.len() {
        let needed = match habit == cycle as u64 && cycle > 1 {
            true => cycle + 1,
            false => 2 * cycle,
        };
        let Some(from) = closed.len().checked_sub(needed) else {
            break;
        };
        // The first row of all may be cut in front, and its rotation against the previous track is unknown.
        if from == 0 || !open.begins_like(&closed[closed.len() - cycle], tolerance(open.slots)) {
            continue;
        }
        // Extend the repetition to the front.
        let mut begin = closed.len() - cycle;
        while begin > 0 && like(&closed[begin - 1], &closed[begin - 1 + cycle]) {
            begin -= 1;
        }
        if begin <= from && begin <= first + cycle + LOOSE_ROWS {
            zone.rows.pop();
            zone.cycle = cycle as u64;
            return true;
        }
    }
    false
}
