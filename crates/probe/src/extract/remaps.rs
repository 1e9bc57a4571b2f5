//! Remapped sectors: facts about them, and their places in a profile.
//!
//! The probe samples again all sectors that the walk found odd, and all reads of the hold-out test that came late. A scan of the whole disk
//! is made only on request ([`super::comb`]).

use super::turns::near;
use headtime_disk::profile::Spec;
use headtime_disk::{Layout, Profile};
use headtime_units::{Extent, Lba, Nanos};
use serde::{Deserialize, Serialize};

/// A sector whose data is at another place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remapped {
    pub lba: u64,
    /// Angle of the answer, in turns, as for [`super::Mark`].
    pub angle: f64,
}

/// Progress of a scan that runs from the end of the disk to its beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CombPlace {
    /// Start of the part at the disk's end that was read completely.
    pub from: u64,
    /// Number of pieces that were read in front of `from`. Each track of the current block is cut into `of` pieces.
    pub pieces: u64,
    pub of: u64,
    /// For each track, the offset of its first piece from the first piece of the first track.
    #[serde(default)]
    pub farther: Vec<u64>,
}

/// A scan of the whole disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Combing {
    pub at: CombPlace,
    /// Estimated time of the scan, once known.
    #[serde(default)]
    pub takes: Option<Nanos>,
    pub spent: Nanos,
    /// Reason for an early end.
    #[serde(default)]
    pub ended: Option<String>,
}

/// Sectors that came late, and may include a remapped sector.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Suspect {
    /// First address and number of sectors.
    pub whole: (u64, u64),
    /// Pieces to sample, each with its first address and number of sectors. The last piece is next.
    pub pieces: Vec<(u64, u64)>,
    /// Number of reads after which the suspect is due, because the buffer has then forgotten its sectors.
    pub due: u64,
    pub looks: u64,
    /// Samples that the buffer answered.
    pub hits: u64,
    /// True if a sample in the current round was late. `rounds` counts rounds that found no remapped sector.
    pub late: bool,
    pub rounds: u64,
    /// Angle of the next sector when it was last sampled alone.
    pub seen: Option<f64>,
    /// Sectors that are in place, and sectors that are remapped.
    pub home: Vec<u64>,
    pub away: Vec<Remapped>,
}

/// Remapped sectors, and the progress of the search for them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Remaps {
    /// Remapped sectors in the order of addresses.
    pub found: Vec<Remapped>,
    /// Sectors that cannot be read, in the order of addresses.
    #[serde(default)]
    pub unreadable: Vec<u64>,
    /// Late reads that no single sectors explain.
    pub unclear: u64,
    /// Scan of the whole disk, if requested.
    pub combing: Option<Combing>,
    /// Suspects in the order in which they are sampled.
    pub(super) suspects: Vec<Suspect>,
    /// Reads so far.
    pub(super) reads: u64,
    /// Reads between two samples of a suspect.
    pub(super) wait: u64,
}

/// Deviation from the predicted time, in turns, above which a read is suspect.
pub(super) const SUSPECT_TURNS: f64 = 0.12;
/// Most suspects at a time.
pub(super) const MOST_SUSPECTS: usize = 512;
/// Most spare places of a zone that are tried for a sector.
const MOST_SPARES: usize = 65_536;
/// Most places behind a sector to search for the spares of its own area.
const AREA_PLACES_MAX: u64 = 65_536;
/// Most consecutive sectors that can be remapped.
const MOST_TOGETHER: u64 = 24;
/// Difference of angle, in sectors, within which a spare place matches.
const MATCHING_SECTORS: f64 = 0.5;
/// Multiple of the estimated time after which a scan ends, and an additional allowance.
const SCAN_TIME_FACTOR: u64 = 3;
const SCAN_TIME_ALLOWANCE: Nanos = Nanos::from_secs(600);
/// Most sectors that a profile names when it cannot express their places.
const MOST_NAMED: usize = 32;

impl Remaps {
    /// Adds sectors to the suspects, unless they are listed already or the list is full.
    pub(super) fn suspect(&mut self, start: u64, len: u64) {
        let known = |suspect: &Suspect| suspect.whole == (start, len);
        if self.suspects.len() < MOST_SUSPECTS && !self.suspects.iter().any(known) {
            self.suspects.push(Suspect {
                whole: (start, len),
                pieces: vec![(start, len)],
                due: self.reads + self.wait,
                ..Suspect::default()
            });
        }
    }

    /// Returns true if all sectors were read and no suspects are left.
    pub fn is_complete(&self) -> bool {
        let combing = self.combing.as_ref();
        combing.is_some_and(|combing| combing.at.from == 0) && self.suspects.is_empty()
    }

    /// Returns true if anything is left to sample.
    pub(super) fn has_work(&self) -> bool {
        !self.suspects.is_empty() || self.combing.as_ref().is_some_and(Combing::goes_on)
    }

    /// Adds remapped sectors.
    pub(super) fn note(&mut self, away: Vec<Remapped>) {
        self.found.extend(away);
        self.found.sort_by_key(|remapped| remapped.lba);
        self.found.dedup_by_key(|remapped| remapped.lba);
    }

    /// Adds a sector that cannot be read.
    pub(super) fn cannot_be_read(&mut self, lba: u64) {
        if let Err(place) = self.unreadable.binary_search(&lba) {
            self.unreadable.insert(place, lba);
        }
    }

    /// Unreadable sectors, joined to extents.
    pub fn unreadable_together(&self) -> Vec<Extent> {
        let together = self.unreadable.chunk_by(|one, next| one + 1 == *next);
        together
            .map(|sectors| Extent::at(sectors[0], sectors.len() as u64))
            .collect()
    }

    /// Puts the remapped sectors into a profile without remaps. Each sector gets the first free spare place of its zone with a matching
    /// angle, since its actual track is unknown. Returns the sectors without a matching spare place.
    pub(super) fn place(
        &self,
        spec: &mut Spec,
        plain: &Profile,
        late: impl Fn(u64) -> f64,
    ) -> Vec<Remapped> {
        let layout = Layout::new(plain);
        let mut left = Vec::new();
        for remapped in &self.found {
            let lba = Lba::new(remapped.lba);
            let Some((index, from)) = layout.home_of(lba) else {
                left.push(*remapped);
                continue;
            };
            let slots = u64::from(layout.run(lba).sectors_per_track);
            let begins = remapped.angle - late(slots);
            let is_spare = Layout::zone_spares(plain, &plain.layout.zones[index]);
            let zone = &mut spec.layout.zones[index];
            let end = layout.places_in_zone(index);
            let fits = |place: &u64| {
                let at = layout.place_in_zone(index, *place);
                let angle = at.map(|at| at.angle.turns());
                angle.is_some_and(|angle| {
                    near(angle - begins).abs() * (slots as f64) < MATCHING_SECTORS
                })
            };
            let is_taken = |place: &u64| zone.remaps.iter().any(|(_, to)| to == place);
            let behind = end.saturating_sub(zone.spares + zone.slips.len() as u64 + slots);
            // Spares of the sector's own area, and spares at the end of the zone.
            let places = (from..end.min(from + AREA_PLACES_MAX)).chain(behind.max(from)..end);
            let to = places
                .filter(|place| is_spare(*place))
                .take(MOST_SPARES)
                .find(|place| fits(place) && !is_taken(place));
            match to {
                Some(to) => {
                    zone.remaps.push((from, to));
                    zone.remaps.sort_unstable();
                }
                None => left.push(*remapped),
            }
        }
        left
    }

    /// Lines about the search and its results, for a profile. `left` are the sectors without a place in the profile.
    pub(super) fn lines(&self, capacity: u64, left: &[Remapped]) -> String {
        let mut text = match &self.combing {
            None => {
                "Sectors that are elsewhere were not looked for; those that were met are in it.\n"
                    .to_owned()
            }
            Some(combing) => {
                let share = 100.0 * combing.share(capacity);
                format!("Sectors that are elsewhere were looked for among {share:.1} % of all.\n")
            }
        };
        if !self.found.is_empty() {
            text += "Where they are is known by angle alone, not by track: of the spare places of their zone at that angle it is the first.\n";
        }
        for remapped in left.iter().take(MOST_NAMED) {
            text += &format!(
                "Sector {} is elsewhere, at {:.4} of a turn, where its zone has no spare place.\n",
                remapped.lba, remapped.angle
            );
        }
        if left.len() > MOST_NAMED {
            text += &format!("So are {} more.\n", left.len() - MOST_NAMED);
        }
        let unreadable = self.unreadable_together();
        for extent in unreadable.iter().take(MOST_NAMED) {
            text += &format!("{} cannot be read.\n", named(*extent));
        }
        if unreadable.len() > MOST_NAMED {
            text += &format!(
                "Nor can others at {} places.\n",
                unreadable.len() - MOST_NAMED
            );
        }
        text
    }
}

/// Name of an extent: "Sector 7", "Sectors 7 to 9".
fn named(extent: Extent) -> String {
    let last = extent.end().get() - 1;
    match extent.len.get() {
        1 => format!("Sector {last}"),
        _ => format!("Sectors {} to {last}", extent.start),
    }
}

impl Suspect {
    /// Returns true if the learned tracks are wrong here: both ends of many sectors are out of place, or many sectors in a row.
    pub fn is_other_tracks(&self) -> bool {
        let (start, len) = self.whole;
        let is_away = |lba: u64| self.away.iter().any(|away| away.lba == lba);
        let both = len > MOST_TOGETHER && is_away(start) && is_away(start + len - 1);
        let groups = self.away.chunk_by(|one, next| one.lba + 1 == next.lba);
        let together = groups.map(<[Remapped]>::len).max().unwrap_or(0);
        both || together as u64 > MOST_TOGETHER
    }
}

impl Combing {
    /// New scan of a disk with `capacity` sectors.
    pub(super) fn of(capacity: u64) -> Combing {
        Combing {
            at: CombPlace {
                from: capacity,
                ..CombPlace::default()
            },
            ..Combing::default()
        }
    }

    pub(super) fn goes_on(&self) -> bool {
        self.at.from > 0 && self.ended.is_none()
    }

    /// Ends the scan if it takes far longer than estimated.
    pub(super) fn give_up_if_slow(&mut self) {
        let takes = self.takes.unwrap_or_default();
        if self.goes_on() && self.spent > takes * SCAN_TIME_FACTOR + SCAN_TIME_ALLOWANCE {
            let why = format!("it took {SCAN_TIME_FACTOR} times as long as it should have taken");
            self.ended = Some(why);
        }
    }

    /// Share of the disk that was read.
    pub fn share(&self, capacity: u64) -> f64 {
        1.0 - self.at.from as f64 / capacity.max(1) as f64
    }
}
