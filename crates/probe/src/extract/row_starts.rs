//! Starts of rows: first address, track length, skew and angle of a new row, from samples on separate tracks ([`super::separate_tracks`]).

use super::error::ExtractError;
use super::solve::{Glance, Solved, likeliest, only, solve};
use super::turns::{near, part};
use super::walk::Walk;
use super::zone::Row;

/// Most slipped places before a track, in sectors of 512 bytes.
pub(super) const MOST_SLIPPED: u64 = 64;
/// Fewest samples of which a single sample may be ignored.
const SAMPLES_BUT_ONE_MIN: usize = 7;
/// Most samples that agree with neither of two rows.
const LATE_SAMPLES_MAX: usize = 6;
/// Upper limit of the tracks that a scratch crosses.
const SCRATCH_TRACKS_MAX: u64 = 10;
/// Track and position on the track for each sample of a row.
const SAMPLE_PLACES: [(u64, f64); 12] = [
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
/// Ranges for the ratio of track lengths of consecutive rows: first the narrow range, then the wide one.
pub(super) const LENGTH_RATIOS: [(f64, f64); 2] = [(0.84, 1.19), (0.55, 1.8)];

impl Walk<'_, '_> {
    /// Starts one of the expected rows behind the end of a track, if the samples agree. Returns true in that case.
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
                // The zone may end soon. Then the known skew and one more sample are enough.
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

    /// Returns true if samples farther on confirm the start of the row: its tracks start there, not earlier.
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

    /// Measures the row that starts in a range of addresses.
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

    /// Measures the row that starts in a range of addresses, with about `known` sectors per track.
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
        for (track, slot) in SAMPLE_PLACES {
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
            if let Some(solved) = self.row_explaining(&solved, noise) {
                return Ok(Some(solved));
            }
        }
        if self.bench.is_quiet() || looks.len() < SAMPLES_BUT_ONE_MIN {
            return Ok(None);
        }
        // A single answer may have come late.
        for late in 0..looks.len() {
            let mut others = looks.clone();
            others.remove(late);
            let solved = solve(&others, lengths.clone(), grain, start, limit);
            if let Some(solved) = self.row_explaining(&solved, noise) {
                return Ok(Some(solved));
            }
        }
        Ok(None)
    }

    /// The row that explains some samples, if they exclude all others.
    pub(super) fn row_explaining(&self, fits: &[Solved], noise: f64) -> Option<Solved> {
        match self.bench.vary > 0.0 {
            true => likeliest(fits, noise),
            false => only(fits, noise),
        }
    }

    /// Returns true if the tracks continue with an equal number of slipped places on each.
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

    /// Starts a row at the end of a track if the first tracks of the row have a scratch. Samples behind the scratch see the row start
    /// earlier by the slipped places. Returns true in that case.
    pub(super) fn scratched(&mut self, start: (u64, u64), end: u64) -> Result<bool, ExtractError> {
        let Some(border) = self.border(end, start.1) else {
            return Ok(false);
        };
        let most = self.bench.parts(MOST_SLIPPED);
        let front = (border.saturating_sub(most).max(1), start.1);
        let Some(solved) = self.measured(front, &[], LENGTH_RATIOS[0], SCRATCH_TRACKS_MAX)? else {
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

    /// First address of a row with otherwise known parameters, behind `low` and up to `high`. The end of a track is accepted if the skew
    /// there occurs elsewhere in the zone. Otherwise samples at possible starts of tracks decide.
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

    /// Returns true if the rotation of a new track against the previous track occurs elsewhere in the zone.
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

    /// Narrows the range of a row's start, within a track, by samples.
    fn started(&mut self, mut solved: Solved, border: Option<u64>) -> Result<Solved, ExtractError> {
        let capacity = self.bench.capacity();
        let tolerance = self.tolerance_of(solved.slots);
        if near(solved.skew).abs() < 3.0 * tolerance {
            return Ok(solved);
        }
        let unit = self.bench.unit();
        // The start usually is the end of a track after all.
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
            // If the row starts behind `middle`, this sample is on the previous track.
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
                // Angles refer to a row that starts at the first of these addresses.
                solved = solved.moved(first);
            }
        }
        Ok(solved)
    }

    /// First address of the row, out of candidates a track apart behind `low` and up to `high`. The old rule holds up to there.
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
                && late < LATE_SAMPLES_MAX
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

    /// Ends the rule before an address and starts a row there.
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
        self.note_row(start + solved.slots * solved.tracks.max(1));
        if self.zone().cycle == 0 {
            self.at.fitted = solved.tracks;
        }
    }

    /// First address of the next track behind `low`, if it is at most `high`.
    pub(super) fn border(&mut self, low: u64, high: u64) -> Option<u64> {
        let zone = self.zone();
        let spot = zone.spot_of(low);
        let border = low + zone.rows[spot.row].data - spot.slot;
        (border <= high).then_some(border)
    }

    /// Typical number of tracks in a row: the largest of the last eight rows, or 24 if unknown.
    fn most_tracks(&mut self) -> u64 {
        let zones = self.at.zones.iter().rev();
        let rows = zones.flat_map(|zone| zone.rows.iter().rev());
        let tracks = rows.map(|row| row.tracks).filter(|tracks| *tracks > 1);
        tracks.take(8).max().unwrap_or(24)
    }
}
