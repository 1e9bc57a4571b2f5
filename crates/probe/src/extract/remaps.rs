//! Sectors whose data is elsewhere: what is known of them, and their places in a profile.
//!
//! What was odd when tracks were walked over, and reads that were held out and came late, are looked at again. All of
//! the disk is read only if that is asked for ([`super::comb`]).

use super::turns::near;
use headtime_disk::profile::Spec;
use headtime_disk::{Layout, Profile};
use headtime_units::{Extent, Lba, Nanos};
use serde::{Deserialize, Serialize};

/// A sector that is not where it would be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remapped {
    pub lba: u64,
    /// The angle at which it is answered, in turns, as [`super::Mark`]s have it.
    pub angle: f64,
}

/// How far a disk was read from its end to its beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CombPlace {
    /// All from this address on was read.
    pub from: u64,
    /// And so many pieces of some tracks in front of it, each of which is cut into so many.
    pub pieces: u64,
    pub of: u64,
    /// By how many pieces the one read of each track is farther on it than that of the first.
    #[serde(default)]
    pub farther: Vec<u64>,
}

/// Reading all of a disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Combing {
    pub at: CombPlace,
    /// How long it takes, about, as far as that is known.
    #[serde(default)]
    pub takes: Option<Nanos>,
    pub spent: Nanos,
    /// Why it ended before all was read.
    #[serde(default)]
    pub ended: Option<String>,
}

/// Sectors that did not come in time, and may hold one that is elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Suspect {
    /// Its first address, and how many sectors.
    pub whole: (u64, u64),
    /// What is to be looked at, each its first address and how many sectors; the last of them is the next.
    pub pieces: Vec<(u64, u64)>,
    /// It is looked at when so many reads were made, so that the buffer has forgotten it.
    pub due: u64,
    pub looks: u64,
    /// Looks that the buffer answered.
    pub hits: u64,
    /// Whether a look since it was last looked at as a whole was late, and how often that led to nothing.
    pub late: bool,
    pub rounds: u64,
    /// Where the next sector was when it was looked at alone before.
    pub seen: Option<f64>,
    /// Sectors that are where they should be, and that are not.
    pub home: Vec<u64>,
    pub away: Vec<Remapped>,
}

/// Sectors whose data is elsewhere, as far as they were looked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Remaps {
    /// In the order of addresses.
    pub found: Vec<Remapped>,
    /// Sectors that cannot be read, in the order of addresses.
    #[serde(default)]
    pub unreadable: Vec<u64>,
    /// Late reads for which no single sectors gave a reason.
    pub unclear: u64,
    /// Reading all of the disk, if that is asked for.
    pub combing: Option<Combing>,
    /// In the order in which they are looked at.
    pub(super) suspects: Vec<Suspect>,
    /// Reads until now.
    pub(super) reads: u64,
    /// Reads between two looks at a suspect.
    pub(super) wait: u64,
}

/// A read that takes longer than predicted by more than this part of a turn is suspect.
pub(super) const LATE: f64 = 0.12;
/// Suspects at a time.
pub(super) const MOST_SUSPECTS: usize = 512;
/// As many spare places of a zone are tried as the place of a sector.
const MOST_SPARES: usize = 65_536;
/// An area with spares of its own is looked for its spares up to so far behind a sector.
const AREA: u64 = 65_536;
/// More sectors in a row than this are not elsewhere.
const MOST_TOGETHER: u64 = 24;
/// Places whose angles differ by less than this part of a sector are one.
const SAME: f64 = 0.5;
/// It may take so many times as long as was said, and so much more.
const PATIENCE: u64 = 3;
const GRACE: Nanos = Nanos::from_secs(600);
/// Sectors that are named in a profile which cannot say where they are.
const MOST_NAMED: usize = 32;

impl Remaps {
    /// Sectors are looked at, again.
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

    /// Whether all sectors were read.
    pub fn is_complete(&self) -> bool {
        let combing = self.combing.as_ref();
        combing.is_some_and(|combing| combing.at.from == 0) && self.suspects.is_empty()
    }

    /// Whether there is anything left to look at.
    pub(super) fn has_work(&self) -> bool {
        !self.suspects.is_empty() || self.combing.as_ref().is_some_and(Combing::goes_on)
    }

    /// Notes sectors that are elsewhere.
    pub(super) fn note(&mut self, away: Vec<Remapped>) {
        self.found.extend(away);
        self.found.sort_by_key(|remapped| remapped.lba);
        self.found.dedup_by_key(|remapped| remapped.lba);
    }

    /// Notes a sector that cannot be read.
    pub(super) fn cannot_be_read(&mut self, lba: u64) {
        if let Err(place) = self.unreadable.binary_search(&lba) {
            self.unreadable.insert(place, lba);
        }
    }

    /// The same as what stands together.
    pub fn unreadable_together(&self) -> Vec<Extent> {
        let together = self.unreadable.chunk_by(|one, next| one + 1 == *next);
        together
            .map(|sectors| Extent::at(sectors[0], sectors.len() as u64))
            .collect()
    }

    /// Puts them into a profile that has none: each into a spare place of its zone at whose angle it comes. Which of those
    /// that are at this angle is not known; it is the first. Returns those that fit to no spare place.
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
                angle.is_some_and(|angle| near(angle - begins).abs() * (slots as f64) < SAME)
            };
            let is_taken = |place: &u64| zone.remaps.iter().any(|(_, to)| to == place);
            let behind = end.saturating_sub(zone.spares + zone.slips.len() as u64 + slots);
            // Those of its own area, and those at the end of the zone.
            let places = (from..end.min(from + AREA)).chain(behind.max(from)..end);
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

    /// What was looked for and found, in lines for a profile; `left` are those that have no place in it.
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

/// "Sector 7", "Sectors 7 to 9".
fn named(extent: Extent) -> String {
    let last = extent.end().get() - 1;
    match extent.len.get() {
        1 => format!("Sector {last}"),
        _ => format!("Sectors {} to {last}", extent.start),
    }
}

impl Suspect {
    /// Whether the tracks are others than was learned: both ends of many sectors are elsewhere, or many in a row.
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
    /// Of a disk of so many sectors.
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

    /// Ends it if it takes far longer than was said.
    pub(super) fn give_up_if_slow(&mut self) {
        let takes = self.takes.unwrap_or_default();
        if self.goes_on() && self.spent > takes * PATIENCE + GRACE {
            let why = format!("it took {PATIENCE} times as long as it should have taken");
            self.ended = Some(why);
        }
    }

    /// The part of the disk that was read.
    pub fn share(&self, capacity: u64) -> f64 {
        1.0 - self.at.from as f64 / capacity.max(1) as f64
    }
}
