//! Rows that begin, by looks on tracks of their own ([`super::apart`]): which row it is, and where it begins.

use super::error::ExtractError;
use super::solve::{Glance, Solved, likeliest, only, solve};
use super::turns::{near, part};
use super::walk::Walk;
use super::zone::Row;

/// Slipped places before a track, at most, in sectors of 512 bytes.
pub(super) const MOST_SLIPPED: u64 = 64;
/// Looks at least of which one may be left out.
const LEAST_BUT_ONE: usize = 7;
/// Looks that agree with neither of two rows, at most.
const LATE: usize = 6;
/// A scratch goes over fewer tracks than this.
const SCRATCH: u64 = 10;
/// The tracks of a row's looks, and where on them.
const LOOKS: [(u64, f64); 12] = [
    (0, 0.15),
    (1, 0.55),
    (2, 0.9),
    (3, 0.35),
    (5, 0.75),
    (7, 0.1),
    (4, 0.6),
    (10, 0.45),
    (6, 0.25),
    (13, 0.85),
    (9, 0.3),
    (16, 0.65),
];
/// Tracks of one row and of the next are alike to these parts.
pub(super) const ALIKE: [(f64, f64); 2] = [(0.84, 1.19), (0.55, 1.8)];

impl Walk<'_, '_> {
    /// Returns true, having begun it, if one of the rows that may come has the looks behind a track's end.
    pub(super) fn goes_on_as(
        &mut self,
        low: u64,
        end: u64,
        seen: &[Glance],
    ) -> Result<bool, ExtractError> {
        let Some(border) = self.border(low.max(end), seen[0].lba) else {
            return Ok(false);
        };
        for guess in self.guesses() {
            let mut solved = Solved::of(&guess, border, seen[0]);
            let tolerance = self.tolerance_of(guess.slots);
            let fits = |solved: &Solved, look: Glance| {
                near(look.angle - solved.angle(look.lba, border)).abs() < tolerance
            };
            let zero = solved.zero(border);
            if !seen.iter().all(|look| fits(&solved, *look)) {
                // A zone may end soon behind: then the turn and one look more say it.
                if !self.enters_as_known(border, zero) {
                    continue;
                }
                let left = border + guess.slots - seen[0].lba.min(border + guess.slots);
                let mut other = seen[1..]
                    .iter()
                    .rfind(|look| fits(&solved, **look))
                    .copied();
                if other.is_none() && left > self.bench.parts(64) {
                    let (from, to) = (seen[0].lba + left / 4, seen[0].lba + left - 1);
                    let look = self.glance_within(from, to)?;
                    other = look.filter(|look| fits(&solved, *look));
                }
                if let Some(look) = other {
                    self.take(border, solved);
                    self.at.upto = look.lba + 1;
                    return Ok(true);
                }
                continue;
            }
            let mut far = seen[0];
            let most = self.most_tracks();
            for (track, slot) in [(most / 4, 0.9), (most / 2, 0.2)] {
                let at = border + ((track as f64 + slot) * guess.slots as f64) as u64;
                let spread = guess.slots / 12;
                let Some(look) = self.glance_within(at - spread, at + spread)? else {
                    continue;
                };
                if fits(&solved, look) {
                    far = look;
                }
            }
            if far == seen[0] {
                continue;
            }
            if !self.enters_as_known(border, zero) && !self.begins_at(border, &solved)? {
                continue;
            }
            let off = near(far.angle - solved.angle(far.lba, border));
            let tracks = (far.lba - border) / guess.slots;
            if tracks > 1 {
                solved.skew += off / tracks as f64;
            }
            solved.tracks = tracks;
            self.take(border, solved);
            return Ok(true);
        }
        Ok(false)
    }

    /// Returns true if tracks begin at a row's start and not before, as looks farther on say.
    fn begins_at(&mut self, start: u64, solved: &Solved) -> Result<bool, ExtractError> {
        let tolerance = self.tolerance_of(solved.slots);
        let unit = self.bench.unit();
        for (track, back) in [(3, 0), (5, unit), (2, 0), (6, unit)] {
            let lba = start + track * solved.slots - back;
            let Some(angle) = self.bench.glance(lba)? else {
                continue;
            };
            if near(angle - solved.angle(lba, start)).abs() > tolerance {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The row that begins at one of some addresses, measured.
    pub(super) fn measured(
        &mut self,
        start: (u64, u64),
        seen: &[Glance],
        (shortest, longest): (f64, f64),
        skip: u64,
    ) -> Result<Option<Solved>, ExtractError> {
        let Some(known) = self.slots_before() else {
            return Ok(None);
        };
        self.measured_near(known, start, seen, (shortest, longest), skip)
    }

    /// The same, of tracks of about so many sectors.
    fn measured_near(
        &mut self,
        known: u64,
        start: (u64, u64),
        seen: &[Glance],
        (shortest, longest): (f64, f64),
        skip: u64,
    ) -> Result<Option<Solved>, ExtractError> {
        let capacity = self.bench.capacity();
        let lengths = (known as f64 * shortest) as u64..=(known as f64 * longest) as u64;
        let most = self.most_tracks();
        let noise = self.bench.look_noise();
        let grain = self.bench.grain();
        let fine = self.bench.fineness();
        let limit = |slots: u64| f64::max(0.3 * fine / slots as f64, 4.0 * noise);
        let mut looks: Vec<Glance> = seen.to_vec();
        looks.retain(|look| look.lba >= start.1);
        for (track, slot) in LOOKS {
            if track > most / 2 {
                continue;
            }
            let at = start.1 + (((skip + track) as f64 + slot) * known as f64) as u64;
            let spread = known / 12;
            if at + spread < capacity {
                looks.extend(self.glance_within((at - spread).max(start.1), at + spread)?);
            }
            if looks.len() < 6 {
                continue;
            }
            let solved = solve(&looks, lengths.clone(), grain, start, limit);
            if let Some(solved) = self.told(&solved, noise) {
                return Ok(Some(solved));
            }
        }
        if self.bench.is_quiet() || looks.len() < LEAST_BUT_ONE {
            return Ok(None);
        }
        // One may have come late.
        for late in 0..looks.len() {
            let mut others = looks.clone();
            others.remove(late);
            let solved = solve(&others, lengths.clone(), grain, start, limit);
            if let Some(solved) = self.told(&solved, noise) {
                return Ok(Some(solved));
            }
        }
        Ok(None)
    }

    /// The row that some looks are of, if they tell it from all others.
    pub(super) fn told(&self, fits: &[Solved], noise: f64) -> Option<Solved> {
        match self.bench.vary > 0.0 {
            true => likeliest(fits, noise),
            false => only(fits, noise),
        }
    }

    /// Returns true if tracks go on as they were but for as many slipped places on each.
    pub(super) fn is_scratch(&mut self, low: u64, solved: &Solved) -> bool {
        let row = *self.zone().row_of(low);
        let grain = self.bench.grain() as f64;
        let more = near(solved.skew - row.skew) * row.slots as f64 / grain;
        let whole = libm::round(more);
        solved.slots == row.slots
            && whole > 0.0
            && (more - whole).abs() < 0.1
            && whole * grain < self.bench.parts(MOST_SLIPPED) as f64
    }

    /// Returns true, having begun it, if a row begins at a track's end whose first tracks have a scratch: looks behind
    /// that see it begin as many places before.
    pub(super) fn scratched(&mut self, start: (u64, u64), end: u64) -> Result<bool, ExtractError> {
        let Some(border) = self.border(end, start.1) else {
            return Ok(false);
        };
        let most = self.bench.parts(MOST_SLIPPED);
        let front = (border.saturating_sub(most).max(1), start.1);
        let Some(solved) = self.measured(front, &[], ALIKE[0], SCRATCH)? else {
            return Ok(false);
        };
        let solved = self.started(solved, Some(border))?;
        let slots = solved.slots;
        let count = (border + slots - solved.start.0 % slots) % slots;
        if count == 0 || count > most.min(border) {
            return Ok(false);
        }
        let begin = border - count;
        let solved = solved.again_at(begin);
        let zero = solved.zero(begin);
        if !self.enters_as_known(border, zero) {
            return Ok(false);
        }
        self.take(border, solved.again_from(border));
        let later = self.zone().later(border);
        self.zone().fault(border + slots, later + count, 0.0);
        Ok(true)
    }

    /// The address at which a row begins of which all else is known, behind `low` and up to `high`: at a track's end, if
    /// that is turned as others were; else each look at a place where a track may begin says whether it does
    /// before.
    pub(super) fn start_of(
        &mut self,
        solved: Solved,
        border: Option<u64>,
        low: u64,
        high: u64,
    ) -> Result<u64, ExtractError> {
        let (first, last) = solved.start;
        if let Some(border) = border {
            let off = border.abs_diff(first) % solved.slots;
            let off = match border < first {
                true => (solved.slots - off) % solved.slots,
                false => off,
            };
            if off <= last - first
                && self.enters_as_known(border, solved.again_at(border).zero(border))
            {
                return Ok(border);
            }
        }
        let solved = self.started(solved, border)?;
        self.first_of(solved, low, high)
    }

    /// Returns true if a track that begins at an address with an angle is turned as others of the zone were.
    fn enters_as_known(&mut self, start: u64, zero: f64) -> bool {
        let before = self.zone().spot_of(start - 1);
        let tolerance = self.tolerance_at(start - 1);
        let turned = near(zero - before.zero);
        let zone = self.zone();
        let first = zone.rows.len().saturating_sub(64);
        zone.rows[first..].iter().enumerate().any(|(index, row)| {
            let is = |other: f64| near(turned - other).abs() < tolerance;
            is(row.skew) || first + index > 0 && is(row.enter)
        })
    }

    /// The same, by looks, within a track.
    fn started(&mut self, mut solved: Solved, border: Option<u64>) -> Result<Solved, ExtractError> {
        let capacity = self.bench.capacity();
        let tolerance = self.tolerance_of(solved.slots);
        if near(solved.skew).abs() < 3.0 * tolerance {
            return Ok(solved);
        }
        let unit = self.bench.unit();
        // Most often it is a track's end after all.
        let slots = solved.slots;
        let likely = border.map(|border| border % slots);
        let mut likely = likely
            .into_iter()
            .flat_map(|at| [(at + slots).saturating_sub(unit), at]);
        let mut next = None;
        let mut track = 0;
        let mut tries = 0;
        while solved.start.0 < solved.start.1 && tries < 64 {
            tries += 1;
            let (first, last) = solved.start;
            next = next.or_else(|| likely.next());
            let hint =
                next.map(|at| first + (at + solved.slots - first % solved.slots) % solved.slots);
            let middle = match hint {
                Some(hint) if hint < last => hint,
                _ => {
                    next = None;
                    let middle = first + (last - first) / 2;
                    match middle / unit * unit {
                        whole if whole >= first => whole,
                        _ => middle,
                    }
                }
            };
            track = track % (self.most_tracks() / 2).max(1) + 1;
            // A look here is on the track before if the row begins behind `middle`.
            let lba = middle + track * solved.slots;
            if lba >= capacity {
                break;
            }
            let Some(angle) = self.bench.glance(lba)? else {
                continue;
            };
            let here = near(angle - solved.angle(lba, middle)).abs();
            let behind = near(angle - solved.angle(lba, middle + 1)).abs();
            if f64::min(here, behind) > 2.0 * tolerance {
                continue;
            }
            next = None;
            if here < behind {
                solved.start = (first, middle);
            } else {
                solved.start = (middle + 1, last);
                // Angles are those of a row that begins at the first of these.
                solved = solved.moved(first);
            }
        }
        Ok(solved)
    }

    /// Where the row begins, of addresses a track apart behind `low` up to `high`: up to there the old rule holds.
    fn first_of(&mut self, solved: Solved, low: u64, high: u64) -> Result<u64, ExtractError> {
        let (mut first, slots) = (solved.start.0, solved.slots);
        while first > low + slots {
            first -= slots;
        }
        let mut late = 0;
        while first + slots <= high {
            let mut look = self.glance_within(first, first + slots - 1)?;
            if look.is_none() {
                let lba = first + slots / 2;
                let angle = self.look(lba)?;
                look = Some(Glance { lba, angle });
            }
            let look = look.expect("looked");
            let new = near(look.angle - solved.angle(look.lba, solved.start.0)).abs();
            let old = self.off_of(look).abs();
            if !self.bench.is_quiet()
                && f64::min(new, old) > 2.0 * self.tolerance_of(slots)
                && late < LATE
            {
                late += 1;
                continue;
            }
            if new < old {
                break;
            }
            first += slots;
        }
        Ok(first)
    }

    /// Ends the rule before an address and begins a row there.
    pub(super) fn take(&mut self, start: u64, solved: Solved) {
        let zero = part(solved.zero(start));
        if !self.zone().rows.is_empty() {
            self.break_at(start);
        }
        let enter = self.enter(start, zero);
        let row = Row {
            tracks: 0,
            slots: solved.slots,
            data: solved.slots,
            enter,
            skew: near(solved.skew),
        };
        self.begin(row, start, zero);
        self.begun(start + solved.slots * solved.tracks.max(1));
        if self.zone().cycle == 0 {
            self.at.fitted = solved.tracks;
        }
    }

    /// The first address of a track behind `low`, up to `high`.
    pub(super) fn border(&mut self, low: u64, high: u64) -> Option<u64> {
        let zone = self.zone();
        let spot = zone.spot_of(low);
        let border = low + zone.rows[spot.row].data - spot.slot;
        (border <= high).then_some(border)
    }

    /// Tracks that rows have at least, as far as is known.
    fn most_tracks(&mut self) -> u64 {
        let zones = self.at.zones.iter().rev();
        let rows = zones.flat_map(|zone| zone.rows.iter().rev());
        let tracks = rows.map(|row| row.tracks).filter(|tracks| *tracks > 1);
        tracks.take(8).max().unwrap_or(24)
    }
}
