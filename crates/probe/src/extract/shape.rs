//! What the rows of tracks say of surfaces, groups and spares.
//!
//! On an old drive a row is the tracks of a cylinder, then the arm steps. On a new one it is the tracks
//! that the arm passes on a surface, or, if those of the next surface are turned by as much, of all
//! surfaces of a group. Which of these a row is, seeks say ([`super::surfaces`]), unless what repeats
//! says it: rows of other lengths on other heads, or every so many rows a larger turn.

use super::zone::{FoundZone, Row};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How tracks are spread over the surfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Tracks in a row; 0 if all tracks are turned by the same.
    pub row: u64,
    /// Surfaces.
    pub heads: u64,
    /// Tracks on a surface before the next one's turn; 1 if all of a cylinder come first.
    pub group: u64,
    /// Every other cylinder runs backward.
    pub backward: bool,
    /// Where spares are.
    pub spared: Spared,
}

/// Where spare places are that addresses pass over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spared {
    /// Nowhere within a zone.
    ZoneEnd,
    TrackEnd,
    CylinderEnd,
    CylinderFront,
    /// At the end of so many cylinders each.
    Range(u32),
}

/// What rows alone say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// Everything.
    Known(Shape),
    /// Rows of so many tracks.
    Rows(u64),
    /// Nothing: each track is turned by as much.
    Even,
}

/// What the rows that repeat on most of the disk say.
pub(super) fn pattern(zones: &[FoundZone]) -> Pattern {
    // Cycles of as many rows, the longest of as many tracks, count together: where in itself a cycle begins is
    // chance.
    let mut sectors: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let key = |zone: &FoundZone| {
        let cycle = zone.rows[zone.once()..].iter();
        (zone.cycle, cycle.map(|row| row.tracks).max().unwrap_or(0))
    };
    let with_rule = |zone: &&FoundZone| zone.cycle > 0 || zone.rows.len() == 1;
    for zone in zones.iter().filter(with_rule) {
        *sectors.entry(key(zone)).or_default() += zone.end - zone.start;
    }
    let most = sectors.into_iter().max_by_key(|(_, sectors)| *sectors);
    let zone = most.and_then(|(most, _)| zones.iter().find(|zone| key(zone) == most));
    match zone {
        Some(zone) if zone.cycle > 0 => of_cycle(&zone.rows[zone.once()..]),
        _ => Pattern::Even,
    }
}

fn of_cycle(cycle: &[Row]) -> Pattern {
    let most = cycle.iter().map(|row| row.tracks).max().unwrap_or(1);
    let known = |heads: u64, group: u64, spared: Spared| {
        let row = if group > 1 { group } else { heads };
        Pattern::Known(Shape {
            row,
            heads,
            group,
            backward: false,
            spared,
        })
    };
    let by_head = cycle.iter().any(|row| row.slots != cycle[0].slots);
    let short = cycle.iter().any(|row| row.data < row.slots);
    match cycle {
        _ if by_head => {
            let heads = cycle.len() as u64 / 2;
            known(heads.max(1), most, Spared::ZoneEnd)
        }
        [row] if short => known(row.tracks, 1, Spared::TrackEnd),
        _ if short => {
            // The first or the last track of a cylinder is short. Behind a short one at the end the turn is the
            // longer one.
            let all: u64 = cycle.iter().map(|row| row.tracks).sum();
            let at = cycle
                .iter()
                .position(|row| row.data < row.slots)
                .unwrap_or(0);
            let next = &cycle[(at + 1) % cycle.len()];
            let long = cycle.iter().find(|row| row.tracks > 1);
            if cycle.len() <= 2 {
                let at_end = long.is_none_or(|long| {
                    let off = |enter: f64| super::turns::near(enter - long.skew).abs();
                    off(cycle[at].enter) < off(next.enter)
                });
                let spared = if at_end {
                    Spared::CylinderEnd
                } else {
                    Spared::CylinderFront
                };
                return known(all, 1, spared);
            }
            let cylinders = all.div_ceil(most);
            known(most, 1, Spared::Range(cylinders as u32))
        }
        [row] => Pattern::Rows(row.tracks),
        // Every so many rows another turn: the next group.
        _ => {
            let merged =
                cycle.iter().filter(|row| row.tracks == most).count() == 1 && cycle.len() > 1;
            let group = cycle.iter().map(|row| row.tracks).min().unwrap_or(1);
            let heads = cycle.len() as u64 + u64::from(merged && most == 2 * group);
            known(heads, group, Spared::ZoneEnd)
        }
    }
}
