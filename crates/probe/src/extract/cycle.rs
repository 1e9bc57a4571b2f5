//! Finds what repeats in rows of tracks.

use super::zone::{FoundZone, Row};

/// Rows at the front of what repeats that may be cut, or left from before.
const LOOSE: usize = 2;

/// Makes a cycle of the last rows of a zone, if they repeat and the row that has just begun goes on with
/// that. Returns true if it did. `habit` is the number of rows that repeated before, or 0.
///
/// What repeats has come twice; once and a row more if as many rows did so before. It begins where the
/// tracks of this length do, so that a few like rows amid others are not taken for all.
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
        // The first row of all may be cut in front, and nothing is known of how it is entered.
        if from == 0 || !open.begins_like(&closed[closed.len() - cycle], tolerance(open.slots)) {
            continue;
        }
        // As far to the front as it repeats.
        let mut begin = closed.len() - cycle;
        while begin > 0 && like(&closed[begin - 1], &closed[begin - 1 + cycle]) {
            begin -= 1;
        }
        if begin <= from && begin <= first + cycle + LOOSE {
            zone.rows.pop();
            zone.cycle = cycle as u64;
            return true;
        }
    }
    false
}
