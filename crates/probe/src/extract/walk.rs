//! Walk over all addresses: predicts angles, doubles its steps, and measures anew where a prediction fails.
//!
//! Tracks are found by their skews (Wong; see also DIG, which asks for the skew of each track). The walk predicts the angle of a sector.
//! While the predictions hold, each step is twice as long as the last. If a prediction fails, a search finds the first address that is not
//! where the rule expects:
//!
//! * a *slip*: the sectors from there on lie some sectors later than expected;
//! * a *turn*: a new row starts there, on the next cylinder or surface, whose first track has a different skew;
//! * else a *row* of other tracks, whose length is measured anew ([`super::rows`]).
//!
//! Rows that repeat make a rule ([`super::cycle`]), and the walk continues by this rule.

use super::bench::{Bench, READ_AHEAD_MAX, SLOTS};
use super::cycle;
use super::error::ExtractError;
use super::turns::{near, part};
use super::zone::{FoundZone, Row};
use serde::{Deserialize, Serialize};

/// Progress of the walk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Walked {
    /// Zones in the order of addresses; the last zone is incomplete until the walk ends.
    pub zones: Vec<FoundZone>,
    /// Address before which all predictions hold.
    pub upto: u64,
    /// Sectors of the next step.
    pub step: u64,
    /// Farthest track used to measure the skew, counted from the start of the cycle or, without a cycle, of the last row.
    pub(super) fitted: u64,
    /// Rows per cycle of the last rule; 0 before the first rule.
    pub(super) habit: u64,
    /// Sectors whose angle fits neither the rule before them nor the rule behind them.
    pub odd: Vec<u64>,
    /// True if two consecutive reads on the same track make the drive read on before any other work.
    #[serde(default)]
    pub(super) stays: bool,
    /// True if [`super::prefetch_trap`] has determined `stays`.
    #[serde(default)]
    pub(super) asked: bool,
    /// Smallest difference in track length that shows, in sectors. 0 unless answer times vary and each sample is a single read.
    #[serde(default)]
    pub(super) coarse: f64,
}

/// Longest run of slipped places that the walk looks for.
const MOST_SLIPPED: u64 = 24;
/// Largest extra rotation of a track, in sectors, that is attributed to unseen slips.
const MOST_TURNED: u64 = 4;
/// Most rows into which a broken rule is written out. A rule that held for fewer rows may be part of a longer rule.
const SHORT_RULE: u64 = 64;
/// Largest number of spare areas on a drive for which the walk stops at the end of each area.
const MOST_AREAS: u64 = 8_192;
/// Most rows of a zone without a rule; a new zone starts beyond them.
const MOST_ROWS: usize = 512;

/// Distances before a border, in sixteenths of a track, at which the old rule is checked again.
const CHANCE_PARTS: [u64; 4] = [3, 8, 13, 23];
/// Deviation, in sectors, below which there is neither a slip nor a turn.
const UNTURNED_SECTORS: f64 = 0.65;
/// Deviation, in sectors, below which a sample of several reads agrees with the prediction.
const AGREEING_SECTORS: f64 = 0.5;
/// Most samples of a sector whose samples all disagree; the last sample then counts.
const MOST_LOOKS: usize = 6;

/// A walk in progress.
pub(super) struct Walk<'b, 'a> {
    pub bench: &'b mut Bench<'a>,
    pub at: &'b mut Walked,
}

impl Walk<'_, '_> {
    /// Makes one step. Returns true if the end of the drive is reached. A step that fails changes nothing.
    pub fn step(&mut self) -> Result<bool, ExtractError> {
        let before = self.at.clone();
        self.bench.stays = self.at.stays;
        self.at.coarse = match self.bench.is_coarse() {
            true => self.bench.coarseness(),
            false => 0.0,
        };
        let slots = self.slots_before();
        self.bench.slots = slots.unwrap_or(SLOTS);
        let result = self.go_on();
        if result.is_err() {
            *self.at = before;
        }
        result
    }

    /// Sectors that pass in a turn on the tracks of the last row.
    pub(super) fn slots_before(&self) -> Option<u64> {
        let zones = self.at.zones.iter().rev();
        let mut rows = zones.filter_map(|zone| zone.rows.last());
        rows.next().map(|row| row.slots)
    }

    fn go_on(&mut self) -> Result<bool, ExtractError> {
        let capacity = self.bench.capacity();
        if self.at.zones.is_empty() {
            let angle = self.bench.look_closely(0)?;
            self.at.zones.push(FoundZone {
                start: 0,
                end: capacity,
                angle,
                rows: Vec::new(),
                cycle: 0,
                faults: Vec::new(),
            });
            if !self.bench.holds_many() || !self.first_of_all()? {
                self.row(0)?;
            }
        }
        if self.at.upto < capacity && self.bench.holds_many() {
            self.step_on_separate_tracks()?;
        } else if self.at.upto < capacity {
            let good = self.at.upto - 1;
            let to = (good + self.at.step.max(1)).min(capacity - 1);
            // Slips that end at the spares of an area can only be seen within the area.
            let to = match self.zone().area(good + 1) {
                Some(area) if area.end > good + 1 && capacity / area.len() <= MOST_AREAS => {
                    to.min(area.end - 1)
                }
                _ => to,
            };
            let to = match self.row_end(good) {
                Some(end) if end <= to => {
                    // The sector behind the row's end is read first, because the other order would find it in the buffer.
                    if end + 1 < capacity {
                        self.look(end + 1)?;
                    }
                    end
                }
                _ => self.bench.fresh(to, good + 1 + (to - good) / 2),
            };
            if self.holds_to(good, to)? {
                self.at.upto = to + 1;
                self.at.step = (to - good) * 2;
            } else {
                self.turned(good, to)?;
            }
        }
        let done = self.at.upto >= capacity;
        if done {
            self.zone().end = capacity;
        }
        Ok(done)
    }

    pub(super) fn zone(&mut self) -> &mut FoundZone {
        self.at.zones.last_mut().expect("begun")
    }

    /// Next address to look at near the expected end of the current row: the last address of the row, or the next row's first. The row is
    /// assumed to be as long as its counterpart one cycle earlier.
    fn row_end(&mut self, good: u64) -> Option<u64> {
        let left = self.left_of_row(good)?;
        Some(good + if left > 1 { left - 1 } else { 1 })
    }

    /// Places from an address up to the end of its row, and 0 behind the row. The row is assumed to be as long as its counterpart one cycle
    /// earlier. Returns `None` within a rule, and behind that end.
    pub(super) fn left_of_row(&mut self, good: u64) -> Option<u64> {
        let habit = self.at.habit as usize;
        let zone = self.zone();
        let n = zone.rows.len();
        if zone.cycle > 0 {
            return None;
        }
        let before = match n.checked_sub(1 + habit) {
            Some(before) if habit > 0 => before,
            _ => n.checked_sub(2)?,
        };
        let tracks = zone.rows[before].tracks;
        let (place, _) = zone.place(good);
        let spot = zone.spot(place);
        let data = zone.rows[spot.row].data;
        (tracks * data).checked_sub(spot.track * data + spot.slot)
    }

    /// Largest deviation from a prediction that counts as agreement, in turns, on tracks of `slots` sectors.
    pub(super) fn tolerance_of(&self, slots: u64) -> f64 {
        self.bench.tolerance_of(self.bench.fineness(), slots)
    }

    pub(super) fn tolerance_at(&mut self, lba: u64) -> f64 {
        let slots = self.zone().row_of(lba).slots;
        self.tolerance_of(slots)
    }

    /// The angle of an address. An address that was sampled before is not read again.
    pub(super) fn look(&mut self, lba: u64) -> Result<f64, ExtractError> {
        self.bench.look(lba)
    }

    /// Deviation of an address from its expected angle, in turns. A single late answer also looks like another angle. A large deviation is
    /// therefore checked by another read, if possible of a neighbour that is not in the buffer.
    fn off(&mut self, lba: u64) -> Result<f64, ExtractError> {
        let expected = self.zone().angle_of(lba);
        let tolerance = self.tolerance_at(lba);
        if self.bench.is_sure(lba) {
            return Ok(near(self.look(lba)? - expected));
        }
        if self.bench.varies() {
            return self.bench.look_against(lba, expected, tolerance);
        }
        let off = near(self.look(lba)? - expected);
        if off.abs() < tolerance || self.bench.is_quiet() {
            return Ok(off);
        }
        if let Some(before) = lba.checked_sub(1).filter(|lba| *lba >= self.zone().start) {
            let other = near(self.look(before)? - self.zone().angle_of(before));
            if near(other - off).abs() < tolerance {
                self.bench.make_sure(lba);
                return Ok(off);
            }
        }
        let mut seen = vec![off];
        loop {
            let off = near(self.bench.look_again(lba)? - expected);
            let agrees = |other: &f64| near(other - off).abs() < tolerance;
            if off.abs() < tolerance || seen.iter().any(agrees) || seen.len() == MOST_LOOKS {
                self.bench.make_sure(lba);
                return Ok(off);
            }
            seen.push(off);
        }
    }

    /// Returns true if a sector is at the angle that the rows predict.
    fn has_expected_angle(&mut self, lba: u64) -> Result<bool, ExtractError> {
        Ok(self.off(lba)?.abs() < self.tolerance_at(lba))
    }

    /// Returns true if two addresses behind `good` have the expected angle: `lba` itself, and a random address some distance below. A
    /// single address may agree by chance, and then its neighbours agree, too.
    fn holds_to(&mut self, good: u64, lba: u64) -> Result<bool, ExtractError> {
        let off = self.off(lba)?;
        if off.abs() >= self.tolerance_at(lba) {
            return Ok(false);
        }
        if lba - good > 1 {
            let within = (lba - good - 1).min(2 * self.zone().row_of(lba).data);
            let beside = within / 4;
            let other = lba - 1 - beside - self.bench.random.up_to(within - beside - 1);
            let other = self.bench.fresh(other, lba - within);
            if !self.has_expected_angle(other)? {
                return Ok(false);
            }
        }
        self.refine(lba, off);
        Ok(true)
    }

    /// Corrects the skew by the deviation of a sector that is farther on than all before.
    pub(super) fn refine(&mut self, lba: u64, off: f64) {
        let fitted = self.at.fitted;
        let zone = self.zone();
        let spot = zone.spot_of(lba);
        let is_last = zone.cycle > 0 || spot.row + 1 == zone.rows.len();
        if is_last && spot.passed > fitted {
            zone.refine(spot.passed, off);
            self.at.fitted = spot.passed;
        }
    }

    /// Narrows the interval between a good and a bad address to at most `width`.
    fn narrow(&mut self, good: u64, bad: u64, width: u64) -> Result<(u64, u64), ExtractError> {
        let (mut low, mut high) = (good, bad);
        while high - low > width.max(1) {
            let middle = low + (high - low) / 2;
            let middle = match width {
                0..=1 => middle,
                _ => self.bench.fresh(middle, low + (high - low) / 4 + 1),
            };
            if self.holds_to(low, middle)? {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok((low, high))
    }

    /// Narrows the interval between a good and a bad address to a single step, downwards where possible. Sectors behind a sample may be in
    /// the buffer by read-ahead.
    pub(super) fn narrow_from_above(
        &mut self,
        good: u64,
        bad: u64,
    ) -> Result<(u64, u64), ExtractError> {
        let (mut low, mut high) = (good, bad);
        while high - low > 1 {
            let step = ((high - low) / 8).max(1);
            loop {
                let middle = high.saturating_sub(step).max(low);
                if middle == low {
                    break;
                }
                if self.has_expected_angle(middle)? {
                    low = middle;
                    break;
                }
                high = middle;
            }
        }
        Ok((low, high))
    }

    /// Explains a deviation at `bad`, and continues the walk by the explanation. `good` is the last address that agrees.
    fn turned(&mut self, good: u64, bad: u64) -> Result<(), ExtractError> {
        let slots = self.zone().row_of(good).slots;
        if self.bench.varies() {
            // Within half a sector the deviation can be neither a slip nor a turn. Addresses between these two would be no clearer.
            self.bench.look_closely(bad)?;
            let off = self.off(bad)?;
            if off.abs() < AGREEING_SECTORS / self.zone().row_of(bad).slots as f64 {
                self.refine(bad, off);
                self.at.upto = bad + 1;
                return Ok(());
            }
        }
        // Within a track the search would run into the buffer, and the exact place of a slip matters little.
        let (low, high) = self.narrow(good, bad, slots / 16)?;
        self.bench.look_closely(high)?;
        // An inexact skew moves both addresses by the same part of a sector. Behind a border only `high` may be that close, by chance.
        let off = self.off(high)?;
        let slots = self.zone().row_of(high).slots;
        let less = f64::max(
            UNTURNED_SECTORS / slots as f64,
            1.5 * self.tolerance_at(high),
        );
        if off.abs() < less && near(off - self.off(low)?).abs() < less / 2.0 {
            self.refine(high, off);
            self.at.upto = high + 1;
            self.at.step = (self.at.step / 2).max(1);
            return Ok(());
        }
        if self.slip(low, high)? || self.turn(low, high)? {
            return Ok(());
        }
        let (low, high) = match self.bench.is_dear() {
            true => self.narrow_from_above(low, high)?,
            false => self.narrow(low, high, 1)?,
        };
        if let Some(before) = self.border_before(good, low)? {
            return self.turned(good, before);
        }
        self.at.upto = low + 1;
        if let Some(behind) = self.goes_on_behind(high)? {
            self.at.odd.push(high);
            self.at.upto = behind;
            return Ok(());
        }
        self.break_at(high);
        self.row(high)
    }

    /// Returns an address before `low` whose angle is unexpected, if there is such an address on the last two tracks behind `good`. Then
    /// `low` is behind a border and agrees with the old rule by chance.
    fn border_before(&mut self, good: u64, low: u64) -> Result<Option<u64>, ExtractError> {
        let data = self.zone().row_of(low).data;
        for part in CHANCE_PARTS {
            let back = data * part / 16;
            match low.checked_sub(back).filter(|before| *before > good) {
                Some(before) if !self.has_expected_angle(before)? => return Ok(Some(before)),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Returns the first address behind the remapped sector at `high`, if the addresses from there on have their expected angles. A
    /// physical sector that is remapped takes all of its addresses with it.
    fn goes_on_behind(&mut self, high: u64) -> Result<Option<u64>, ExtractError> {
        // Sample behind the largest physical sector. A new row has nothing at the expected angle there.
        if !self.all_hold(&[high + 9])? {
            return Ok(None);
        }
        if self.all_hold(&[high + 2, high + 1])? {
            return Ok(Some(high + 1));
        }
        let unit = self.bench.unit();
        let may_be_whole = unit > 1 && high.is_multiple_of(unit);
        let behind = [high + unit + 2, high + unit];
        if !may_be_whole || !self.all_hold(&behind)? {
            return Ok(None);
        }
        // The whole physical sector is remapped only if all of its addresses have the same deviation.
        let off = self.off(high)?;
        let tolerance = self.tolerance_at(high);
        for part in [unit - 1, unit / 2] {
            if near(self.off(high + part)? - off).abs() >= tolerance {
                return Ok(None);
            }
        }
        Ok(Some(high + unit))
    }

    /// Looks for slipped places between a good and a bad address, or for spare places that end an earlier shift. Notes them and returns
    /// true if they explain the samples.
    fn slip(&mut self, low: u64, high: u64) -> Result<bool, ExtractError> {
        let row = *self.zone().row_of(high);
        let later = self.zone().later(high);
        let area = self.zone().area(high);
        // Candidates: the change in places, and the extra rotation of the tracks in sectors.
        let mut faults: Vec<(i64, u64)> = Vec::new();
        let boundary = self.boundary(low, high);
        if boundary.is_some() {
            // Behind an area with spares, addresses are back where they would be without slips.
            if later > 0 {
                let back = -(later.min(1 << 20) as i64);
                faults.extend([(back, later), (back, 0)]);
            }
            // Slips of entire tracks.
            if self.zone().cycle > 0 {
                faults.extend([row.data, 2 * row.data].map(|places| (places as i64, 0)));
            }
            if self.zone().cycle > 0 {
                faults.extend((1..=MOST_TURNED).map(|turned| (0, turned)));
            }
        }
        faults.extend((1..=MOST_SLIPPED).map(|count| (count as i64, 0)));
        let angle = self.zone().angle_of(high) + self.off(high)?;
        for (count, turned) in faults {
            let slips = turned == 0 && count > 0 && (count as u64) < row.data;
            let at = match boundary {
                Some(boundary) if !slips => boundary,
                _ => high,
            };
            let places = later.wrapping_add_signed(count);
            let mut faulty = self.zone().clone();
            match area {
                Some(area) if slips && area.has_room_for(places) => {
                    faulty.slip_in(area, at, places);
                }
                _ => faulty.fault(at, places, turned as f64 / row.slots as f64),
            }
            if near(angle - faulty.angle_of(high)).abs() >= self.tolerance_of(row.slots) {
                continue;
            }
            let before = std::mem::replace(self.zone(), faulty);
            // Samples behind `high` go from far to near, because read-ahead fills the buffer behind each sample.
            let spot = self.zone().spot_of(high);
            let row = self.zone().rows[spot.row];
            let left = row.data - spot.slot;
            let next = high + left;
            let mut tries = Vec::new();
            if count.unsigned_abs() > 3 || turned > 0 {
                tries.extend([next + row.data / 16, next + 1, next - 1]);
            }
            // The samples stay close to `high`, because a scratch crosses more than one track.
            if left > 16 {
                let near = match left / 4 > READ_AHEAD_MAX {
                    true => READ_AHEAD_MAX + 1,
                    false => left / 8,
                };
                tries.extend([high + 2 * near, high + near]);
            } else {
                tries.extend([high + left / 2, high + 1]);
            }
            if !slips {
                tries.push(at);
            }
            if self.all_hold(&tries)? && !(slips && self.goes_straight_on(high, next)?) {
                self.at.upto = high + 1;
                self.at.step = (self.at.step / 4).max(row.slots / 2);
                return Ok(true);
            }
            *self.zone() = before;
        }
        Ok(false)
    }

    /// Returns true if the medium continues at `next`, where the track with the assumed slip should end. Then no place was slipped: a cut
    /// track ended, and the next track starts, by chance, at the angle of the missing rest. This can happen only before a rule is known, on
    /// a drive whose tracks are cut within a rule.
    fn goes_straight_on(&mut self, behind: u64, next: u64) -> Result<bool, ExtractError> {
        let has_areas = |zone: &FoundZone| zone.area(zone.end - 1).is_some();
        let may_be_cut = self.zone().cycle == 0 && self.at.zones.iter().any(has_areas);
        if !may_be_cut || next >= self.bench.capacity() || self.has_expected_angle(next)? {
            return Ok(false);
        }
        let slots = self.zone().row_of(behind).slots;
        let passed = part((next - behind) as f64 / slots as f64);
        let straight = self.zone().angle_of(behind) + passed;
        Ok(near(self.bench.look_closely(next)? - straight).abs() < self.tolerance_of(slots))
    }

    /// First address of the track of `high`, if the track starts behind `low`.
    fn boundary(&mut self, low: u64, high: u64) -> Option<u64> {
        let zone = self.zone();
        let spot = zone.spot_of(high);
        // Slips on this track make the track shorter.
        let mut first = high - spot.slot.min(high - low);
        let is_before = |first: u64| {
            let other = zone.spot_of(first);
            (other.times, other.row, other.track) < (spot.times, spot.row, spot.track)
        };
        while first < high && is_before(first) {
            first += 1;
        }
        (first > low && zone.spot_of(first).slot == 0).then_some(first)
    }

    /// Looks for a new row between a good and a bad address, with tracks as long as before. Notes the row and returns true if the samples
    /// agree.
    fn turn(&mut self, low: u64, high: u64) -> Result<bool, ExtractError> {
        let Some(first) = self.boundary(low, high) else {
            return Ok(false);
        };
        let off = self.off(high)?;
        let row = *self.zone().row_of(high);
        let spot = self.zone().spot_of(first);
        let before = self.at.clone();
        // A track within a row is rotated by the skew, and the first track of a row by `enter`.
        let expected = if spot.track == 0 { row.enter } else { row.skew };
        let goes_on = near(expected + off - row.data as f64 / row.slots as f64).abs();
        if goes_on < self.tolerance_of(row.slots) {
            // The medium continues: this track is longer than the earlier tracks.
            let begin = first - row.data.min(first - self.zone().start);
            if begin == self.zone().start || spot.track == 0 {
                return Ok(false);
            }
            self.break_at(begin);
            self.row(begin)?;
            return Ok(true);
        }
        if first - 1 > low && !self.has_expected_angle(first - 1)? {
            return Ok(false);
        }
        self.break_at(first);
        let begun = Row {
            tracks: 0,
            enter: expected + off,
            ..row
        };
        self.begin(begun, first, spot.zero + off);
        let holds = self.all_hold(&[first + row.data - 1, first + row.data / 3, first])?;
        if holds {
            self.note_row(first + row.data);
        } else {
            *self.at = before;
        }
        Ok(holds)
    }

    /// Ends the current rule before an address, and starts a new zone if the zone has too many rows.
    pub(super) fn break_at(&mut self, lba: u64) {
        if !self.zone().break_at(lba, SHORT_RULE) || self.zone().rows.len() > MOST_ROWS {
            self.zone().end = lba;
            let capacity = self.bench.capacity();
            self.at.zones.push(FoundZone {
                start: lba,
                end: capacity,
                angle: 0.0,
                rows: Vec::new(),
                cycle: 0,
                faults: Vec::new(),
            });
        }
    }

    /// Starts a row at an address whose angle is known.
    pub(super) fn begin(&mut self, row: Row, first: u64, angle: f64) {
        let zone = self.zone();
        if zone.rows.is_empty() {
            debug_assert_eq!(zone.start, first);
            zone.angle = angle;
        }
        zone.rows.push(row);
    }

    /// Records that a new row holds up to an address, and adopts a rule if the row completes a repetition.
    pub(super) fn note_row(&mut self, upto: u64) {
        let habit = self.at.habit;
        let bench = &*self.bench;
        let zone = self.at.zones.last_mut().expect("begun");
        let data = zone.rows.last().expect("begun").data;
        if cycle::adopt(zone, habit, |slots| {
            bench.tolerance_of(bench.coarseness(), slots)
        }) {
            let cycle = zone.cycle;
            self.at.habit = cycle;
        }
        self.at.upto = upto;
        self.at.step = data;
        self.at.fitted = 0;
    }

    /// Returns true if each address has the expected angle. Addresses behind the end of the drive are ignored.
    fn all_hold(&mut self, addresses: &[u64]) -> Result<bool, ExtractError> {
        let capacity = self.bench.capacity();
        for lba in addresses {
            if *lba < capacity && !self.has_expected_angle(*lba)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
