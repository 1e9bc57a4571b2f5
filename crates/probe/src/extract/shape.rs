//! Surfaces, groups and spares, as far as rows of tracks show.
//!
//! On an old drive a row is the tracks of a cylinder, and then the arm steps. On a new drive a row is the tracks that the arm passes along
//! a surface. If all surfaces of a group have the same skew, their tracks form a single row. Usually seeks decide which kind a row is
//! ([`super::surfaces`]). Sometimes the repetition decides: rows of other lengths on other heads, or a larger skew at regular intervals.

use super::zone::{FoundZone, Row};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// Distribution of tracks over the surfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Tracks in a row; 0 if all tracks have the same skew.
    pub row: u64,
    /// Number of surfaces.
    pub heads: u64,
    /// Consecutive tracks on a surface before the next surface; 1 if addresses fill a cylinder first.
    pub group: u64,
    /// True if every other cylinder runs backward.
    pub backward: bool,
    /// Location of spares.
    pub spared: Spared,
}

impl Shape {
    /// Returns true if the order of surfaces was seen, or if there is only one surface. Groups of tracks and alternating cylinders are
    /// visible. If all cylinders run forward, steps between cylinders take the same time either way.
    pub(super) fn shows_order(self) -> bool {
        self.heads == 1 || self.group > 1 || self.backward
    }
}

/// Location of the spare places that addresses skip.
///
/// The text form is a word. The word for a range includes its number of cylinders: `range-12`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spared {
    /// No spares within a zone.
    ZoneEnd,
    TrackEnd,
    CylinderEnd,
    CylinderFront,
    /// At the end of each range of this number of cylinders.
    Range(u32),
}

const WORDS: [(&str, Spared); 4] = [
    ("zone-end", Spared::ZoneEnd),
    ("track-end", Spared::TrackEnd),
    ("cylinder-end", Spared::CylinderEnd),
    ("cylinder-front", Spared::CylinderFront),
];
/// Prefix of the word for a range.
const RANGE: &str = "range-";

impl Serialize for Spared {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if let Spared::Range(cylinders) = self {
            return to.collect_str(&format_args!("{RANGE}{cylinders}"));
        }
        let word = WORDS.iter().find(|(_, spared)| spared == self);
        to.serialize_str(word.expect("all but ranges have a word").0)
    }
}

impl<'de> Deserialize<'de> for Spared {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Spared, D::Error> {
        let expected = "zone-end, track-end, cylinder-end, cylinder-front or range-CYLINDERS";
        headtime_config::parse(from, expected, |text| {
            let word = WORDS.iter().find(|(word, _)| *word == text);
            let range = || {
                let cylinders = text.strip_prefix(RANGE)?.parse().ok()?;
                (cylinders > 0).then_some(Spared::Range(cylinders))
            };
            word.map(|(_, spared)| *spared)
                .or_else(range)
                .ok_or_else(|| format!("allowed is {expected}"))
        })
    }
}

/// Conclusions from rows alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// The complete shape.
    Known(Shape),
    /// Rows of this number of tracks.
    Rows(u64),
    /// No rows: all tracks have the same skew.
    Even,
}

/// Conclusions from the rule that holds on most of the disk.
pub(super) fn pattern(zones: &[FoundZone]) -> Pattern {
    // Cycles with the same number of rows and the same longest row count together, because the start of a cycle is arbitrary.
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
            // The first or the last track of a cylinder is short. Behind a short track at the end, the larger skew follows.
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
        // Spares are whole tracks: the last cylinder of a range has fewer.
        [_, _, _, ..] if cycle.iter().filter(|row| row.tracks < most).count() == 1 => {
            known(most, 1, Spared::Range(cycle.len() as u32))
        }
        // A larger skew at regular intervals marks the next group.
        _ => {
            let merged =
                cycle.iter().filter(|row| row.tracks == most).count() == 1 && cycle.len() > 1;
            let group = cycle.iter().map(|row| row.tracks).min().unwrap_or(1);
            let heads = cycle.len() as u64 + u64::from(merged && most == 2 * group);
            known(heads, group, Spared::ZoneEnd)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Stage;
    use super::*;
    use headtime_config::{Place, Table, read, to_text};
    use headtime_disk::profile::{Destage, ReadAhead, RequestedData, WriteBack};
    use std::fmt::Debug;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Kept<T> {
        word: T,
    }

    fn from_text<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, String> {
        let table = Table::parse("f", text).unwrap();
        let kept = read::<Kept<T>>(&table, &Place::line("f", 1));
        kept.map(|kept| kept.word)
            .map_err(|error| error.to_string())
    }

    fn is_read_back<T: Serialize + for<'de> Deserialize<'de> + Debug + PartialEq>(
        all: impl IntoIterator<Item = T>,
    ) {
        for word in all {
            let kept = Kept { word };
            let text = to_text(&kept);
            assert_eq!(from_text(&text), Ok(kept.word), "{text}");
        }
    }

    #[test]
    fn every_word_that_a_kept_state_can_have_is_read_back() {
        is_read_back(WORDS.map(|(_, spared)| spared));
        is_read_back([1, 2, 4_000_000_000].map(Spared::Range));
        is_read_back([
            Stage::Rotation,
            Stage::Tracks,
            Stage::Surfaces,
            Stage::Bus,
            Stage::Gaps,
            Stage::Seeks,
            Stage::Writes,
            Stage::Access,
            Stage::HoldOut,
            Stage::Electronics,
            Stage::Remaps,
            Stage::Done,
        ]);
        is_read_back([
            ReadAhead::Off,
            ReadAhead::TrackEnd,
            ReadAhead::CylinderEnd,
            ReadAhead::SegmentFull,
            ReadAhead::NextTrack,
        ]);
        is_read_back([
            RequestedData::Dropped,
            RequestedData::Kept,
            RequestedData::Replaceable,
        ]);
        is_read_back([
            WriteBack::Off,
            WriteBack::Appending,
            WriteBack::Flushed,
            WriteBack::Full,
        ]);
        is_read_back([Destage::Segment, Destage::Sweep]);
    }

    #[test]
    fn spares_in_a_state_are_the_words_that_they_were_and_others_are_refused() {
        // Words of states from before ranges existed.
        for (text, spared) in WORDS {
            assert_eq!(from_text(&format!("word = \"{text}\"")), Ok(spared));
        }
        for word in [
            "range",
            "range-",
            "range-0",
            "range--1",
            "range-4294967296",
            "cylinder",
            "",
        ] {
            let error = from_text::<Spared>(&format!("word = \"{word}\"")).unwrap_err();
            assert_eq!(
                error,
                format!(
                    "f:1: word: \"{word}\": allowed is zone-end, track-end, cylinder-end, cylinder-front or range-CYLINDERS"
                )
            );
        }
    }
}
