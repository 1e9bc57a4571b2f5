//! Walk over the tracks of a drive whose buffer holds dozens of segments: each sample is on a track of its own.
//!
//! On such a drive the buffer answers a second sample of a track, and evicting a sector takes dozens of reads. The walk therefore never
//! samples a place twice. Any place on a track between two addresses shows if the rule holds there. Halving stops at a track, and the row
//! behind it is solved from samples on other tracks ([`super::solve`]).
//!
//! Rows are assumed to end with a track, without a sample at the end. If a row ends within a track, the skew from track to track reveals
//! the place on any later track.

use super::bench::{MOST_TRACK, READ_AHEAD_MAX};
use super::error::ExtractError;
use super::row_starts::{LENGTH_RATIOS, MOST_SLIPPED};
use super::solve::{Glance, solve};
use super::turns::near;
use super::walk::Walk;
use super::zone::Row;

/// Attempts to find a place that is not in the buffer.
const PLACE_TRIES: usize = 12;
/// Range of lengths of the drive's first tracks, in sectors of 512 bytes.
const FIRST_LENGTHS: [u64; 2] = [256, MOST_TRACK];
/// Fewest and most samples for a solution of the first tracks.
const LEAST_FIRST: usize = 12;
const MOST_FIRST: usize = 32;
/// Divisor: in the first `1 / FRONT_PART` of a track, tracks of different lengths look alike.
const FRONT_PART: u64 = 16;
/// Most samples in a row that are discarded as chance agreement.
const MOST_DOUBTS: usize = 4;
/// Distance of the next sample, as a multiple of the tracks over which the skew is known. Half of it where answer times vary.
const REACH_FACTOR: u64 = 4;

/// Interval in which a rule ends: the rule holds at `low` and fails at `high`.
struct Between {
    low: u64,
    high: Glance,
    /// Samples up to `low` that agree, possibly by chance. Empty where answer times are exact.
    agreed: Vec<Agreed>,
    /// Number of agreeing samples that other rows would match, too.
    unsure: usize,
}

/// A sample that agreed with a rule, and the rows and fit before they were adjusted to the sample.
struct Agreed {
    look: Glance,
    rows: Vec<Row>,
    fitted: u64,
}

impl Walk<'_, '_> {
    /// Makes one step with each sample on a track of its own.
    pub(super) fn step_on_separate_tracks(&mut self) -> Result<(), ExtractError> {
        let capacity = self.bench.capacity();
        let good = self.at.upto - 1;
        let data = self.zone().row_of(good).data;
        let left = self.left_of_row(good).filter(|left| *left > 0);
        let end = left.map(|left| good + left - 1);
        let end = end.filter(|end| *end < capacity);
        // The reach of a row is limited by the tracks over which its skew is known.
        let reach = match self.zone().cycle {
            0 => good + data * (self.farther() - 1) * self.at.fitted.max(1),
            _ => good + self.at.step.max(data),
        };
        if let Some(end) = end.filter(|end| *end <= reach) {
            return self.row_ends(good, end);
        }
        let to = reach.min(capacity - 1);
        // Avoids the track that was sampled last, if there is another.
        let from = match to - good > 2 * data {
            true => to - data,
            false => good + 1,
        };
        match self.glance_within(from, to)? {
            None => self.at.upto = to + 1,
            Some(look) if self.agrees(look) => {
                self.note(look);
                // A rule that covers several rows is also sampled halfway.
                let middle = good + (to - good) / 2;
                if self.zone().cycle > 0 && middle - good > data {
                    let (from, to) = (middle - data / 2, middle + data / 2);
                    if let Some(look) = self.glance_within(from, to)?
                        && !self.agrees(look)
                    {
                        self.at.upto = good + 1;
                        return self.breaks(good, look);
                    }
                }
                self.at.step = (look.lba - good) * 2;
            }
            Some(look) if self.bench.is_quiet() => self.breaks(good, look)?,
            Some(look) => match self.beside(look, capacity)? {
                Some(other) if self.agrees(other) => self.note(other),
                _ => self.breaks(good, look)?,
            },
        }
        Ok(())
    }

    /// Starts the first row of the drive without any prior knowledge. Returns false if no row explains the samples.
    pub(super) fn first_of_all(&mut self) -> Result<bool, ExtractError> {
        if self.first_on_separate_tracks()? {
            return Ok(true);
        }
        // Two of the places may have been on one track, and the drive may read on there behind the second.
        self.bench.stays = true;
        self.bench.drive_out()?;
        let found = self.first_on_separate_tracks()?;
        self.bench.stays = found;
        self.at.stays = found;
        Ok(found)
    }

    /// Starts the first row of the drive from samples that are farther apart than the drive reads ahead. Returns false, and changes
    /// nothing, if no row explains the samples.
    fn first_on_separate_tracks(&mut self) -> Result<bool, ExtractError> {
        let capacity = self.bench.capacity();
        let unit = self.bench.unit();
        let noise = self.bench.look_noise();
        let grain = self.bench.grain();
        let fine = self.bench.fineness();
        let limit = |slots: u64| f64::max(0.3 * fine / slots as f64, 4.0 * noise);
        let [shortest, longest] = FIRST_LENGTHS.map(|sectors| self.bench.parts(sectors));
        let mut looks: Vec<Glance> = Vec::new();
        let mut at = 0;
        while looks.len() < MOST_FIRST {
            at += 2 * READ_AHEAD_MAX + self.bench.random.up_to(2 * READ_AHEAD_MAX);
            let lba = at / unit * unit;
            if lba >= capacity || at > MOST_FIRST as u64 * 16 * READ_AHEAD_MAX {
                break;
            }
            let angle = self.bench.glance(lba)?;
            looks.extend(angle.map(|angle| Glance { lba, angle }));
            if angle.is_none() || looks.len() < LEAST_FIRST || !looks.len().is_multiple_of(4) {
                continue;
            }
            let solved = solve(&looks, shortest..=longest, grain, (0, 0), limit);
            if let Some(solved) = self.row_explaining(&solved, noise) {
                self.take(0, solved);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Checks an expected end of a row: a sample on its last track must agree with the rule, and a sample on the next track must not.
    fn row_ends(&mut self, good: u64, end: u64) -> Result<(), ExtractError> {
        let capacity = self.bench.capacity();
        let data = self.zone().row_of(good).data;
        let mut good = good;
        if end > good + 1
            && let Some(look) =
                self.glance_within((end + 1).saturating_sub(data).max(good + 1), end)?
        {
            if !self.agrees(look) {
                return self.breaks(good, look);
            }
            self.note(look);
            good = look.lba;
        }
        self.at.upto = end + 1;
        if end + 1 >= capacity {
            return Ok(());
        }
        let to = (end + data).min(capacity - 1);
        let look = match self.glance_within(end + 1, to)? {
            Some(look) => look,
            None => {
                let lba = end + 1 + (to - end - 1) * 3 / 4;
                let angle = self.look(lba)?;
                Glance { lba, angle }
            }
        };
        if self.agrees(look) {
            // The row is longer than the previous row.
            self.at.upto = look.lba + 1;
            self.at.step = 2 * data;
            return Ok(());
        }
        self.begins(good, end, look, None).map(|_| ())
    }

    /// Explains a sample that contradicts the rule: finds the track behind which the rule fails, and the row that starts there.
    fn breaks(&mut self, good: u64, bad: Glance) -> Result<(), ExtractError> {
        let mut between = Between {
            low: good,
            high: bad,
            agreed: Vec::new(),
            unsure: 0,
        };
        for doubts in 0.. {
            self.halve(&mut between)?;
            let Between { low, high, .. } = between;
            self.at.upto = low + 1;
            let last = between.agreed.pop().filter(|_| doubts < MOST_DOUBTS);
            let doubt = last.as_ref().map(|agreed| agreed.look);
            if self.begins(low, low, high, doubt)? {
                break;
            }
            // No row fits behind the last sample that agreed: it agreed by chance.
            if let Some(last) = last {
                between.high = last.look;
                self.zone().rows = last.rows;
                self.at.fitted = last.fitted;
            }
            between.low = between.agreed.last().map_or(good, |agreed| agreed.look.lba);
        }
        Ok(())
    }

    /// Halves the interval down to a part of a track, or until all places in it may be in the buffer.
    fn halve(&mut self, between: &mut Between) -> Result<(), ExtractError> {
        loop {
            let low = between.low;
            let data = self.zone().row_of(low).data;
            let width = between.high.lba - low;
            if width <= data / 2 {
                return Ok(());
            }
            let spread = (width / 8).min(data / 2).max(1);
            let mut look = None;
            for part in [4, 2, 6] {
                if look.is_none() {
                    let middle = low + width * part / 8;
                    look = self.glance_within(middle - spread, middle + spread)?;
                }
            }
            let Some(mut look) = look else {
                return Ok(());
            };
            let mut holds = self.agrees(look);
            if !holds && !self.bench.is_quiet() {
                // The answer may have been late. Without a second sample nothing is known.
                let other = self.beside(look, between.high.lba)?;
                let Some(other) = other.filter(|other| other.lba > low) else {
                    return Ok(());
                };
                if self.agrees(other) {
                    (look, holds) = (other, true);
                }
            }
            let spot = self.zone().spot_of(look.lba);
            let is_front = spot.slot < self.zone().rows[spot.row].data / FRONT_PART;
            match holds {
                // Another row would agree at the front of a track, too.
                true if is_front && between.unsure < PLACE_TRIES => between.unsure += 1,
                true if is_front => return Ok(()),
                true => {
                    if !self.bench.is_quiet() {
                        between.agreed.push(Agreed {
                            look,
                            rows: self.zone().rows.clone(),
                            fitted: self.at.fitted,
                        });
                    }
                    self.note(look);
                    between.low = look.lba;
                }
                false => between.high = look,
            }
        }
    }

    /// Finds the row or slip that starts between `low`, where the rule holds, and the sample `bad`, where it fails. The start is behind
    /// `end`. `doubt` is the sample at `low`, if this sample may agree by chance. Returns false if it probably does.
    fn begins(
        &mut self,
        low: u64,
        end: u64,
        bad: Glance,
        doubt: Option<Glance>,
    ) -> Result<bool, ExtractError> {
        let capacity = self.bench.capacity();
        let slots = self.zone().row_of(low).slots;
        let mut seen = vec![bad];
        for track in 1..=4 {
            let from = bad.lba + slots * track - slots / 3;
            let to = (from + 2 * slots / 3).min(capacity - 1);
            if from < to && seen.len() < 3 {
                seen.extend(self.glance_within(from, to)?);
            }
        }
        let tolerance = self.tolerance_of(slots);
        let offs: Vec<f64> = seen.iter().map(|look| self.off_of(*look)).collect();
        let last = *seen.last().expect("one");
        if offs.len() > 1 && offs[1..].iter().all(|off| off.abs() < tolerance) {
            // The samples behind `bad` are in place.
            self.at.odd.push(bad.lba);
            self.note(last);
            return Ok(true);
        }
        // A deviation of less than a sector comes from an inexact skew.
        let small = f64::max(0.65 * self.bench.fineness() / slots as f64, 1.5 * tolerance);
        if offs.iter().all(|off| off.abs() < small) && low == end {
            for look in seen {
                self.note(look);
            }
            self.at.step = (self.at.step / 2).max(1);
            return Ok(true);
        }
        if self.slipped(low, &seen, false)? {
            return Ok(true);
        }
        if self.goes_on_as(low, end, &seen)? {
            return Ok(true);
        }
        for window in LENGTH_RATIOS {
            let solved = self.measured((low + 1, bad.lba), &seen, window, 0)?;
            if let (Some(solved), Some(look)) = (solved, doubt)
                && solved.goes_back_to(look, self.tolerance_of(solved.slots))
            {
                return Ok(false);
            }
            // Tracks of the same length with an extra skew of some sectors belong to a scratch.
            if let Some(solved) = solved.filter(|solved| !self.is_scratch(low, solved)) {
                let border = self.border(low.max(end), bad.lba);
                let start = self.start_of(solved, border, low, bad.lba)?;
                self.take(start, solved.again_at(start));
                return Ok(true);
            }
        }
        if self.slipped(low, &seen, true)? {
            return Ok(true);
        }
        if self.scratched((low + 1, bad.lba), low.max(end))? {
            return Ok(true);
        }
        if doubt.is_some() {
            return Ok(false);
        }
        // No explanation fits: the border is searched with repeated reads, at their cost.
        let (low, high) = self.narrow_from_above(low, bad.lba)?;
        self.at.upto = low + 1;
        self.break_at(high);
        self.row(high)?;
        Ok(true)
    }

    /// Returns true, and notes the slips, if slipped places behind `low` explain the samples `seen`. A scratch crosses more than one track,
    /// and each sample may then have more slips in front.
    fn slipped(&mut self, low: u64, seen: &[Glance], scratch: bool) -> Result<bool, ExtractError> {
        let before = self.zone().clone();
        let mut last = low;
        let (mut holds, mut counts) = (0, 0);
        let (mut places, mut common, mut most) = (self.zone().later(low), 0, 0);
        for look in seen {
            if !self.agrees(*look) {
                let faults = self.zone().faults.clone();
                if counts == 1 && !scratch || !self.slip_before(last, *look) {
                    break;
                }
                // A scratch slips the same number of places on each track, or twice that number.
                let more = self.zone().later(look.lba).abs_diff(places);
                places = self.zone().later(look.lba);
                (common, most) = (divisor(common, more), most.max(more));
                if most > 2 * common {
                    self.zone().faults = faults;
                    break;
                }
                counts += 1;
            }
            holds += 1;
            last = look.lba;
        }
        // Where answers vary, samples that agree without a slip may do so by chance.
        if counts == 0 && self.bench.vary > 0.0 {
            holds = 0;
        }
        let mut sure = holds > counts || holds > 2;
        if holds > 0 && !sure && self.bench.vary == 0.0 {
            // Check another place on the last of these tracks. Where answers vary, too many places agree by chance.
            let spot = self.zone().spot_of(last);
            let left = self.zone().rows[spot.row].data - spot.slot;
            if left > self.bench.parts(64)
                && let Some(look) = self.glance_within(last + left / 4, last + left - 1)?
            {
                sure = self.agrees(look);
            }
        }
        if !sure {
            *self.zone() = before;
            return Ok(false);
        }
        self.at.upto = last + 1;
        self.at.step = self.zone().row_of(last).data;
        Ok(true)
    }

    /// Returns true, and notes the slip, if slipped places behind `last` explain a sample.
    fn slip_before(&mut self, last: u64, look: Glance) -> bool {
        let row = *self.zone().row_of(look.lba);
        let later = self.zone().later(last);
        let off = self.off_of(look);
        // A slip may move sectors from the end of a track to the next track.
        let grain = self.bench.grain() as f64;
        let counts = [off, off - row.skew, off - row.enter]
            .map(|off| (libm::round(near(off) * row.slots as f64 / grain) * grain) as i64);
        let back = -(later.min(1 << 20) as i64);
        let most = self.bench.parts(MOST_SLIPPED) as i64;
        for count in counts.into_iter().chain([back]) {
            let places = later as i64 + count;
            if count == 0 || count > most || count < -most.max(-back) || places < 0 {
                continue;
            }
            let faults = self.zone().faults.clone();
            self.zone().fault(last + 1, places as u64, 0.0);
            if self.agrees(look) {
                return true;
            }
            self.zone().faults = faults;
        }
        false
    }

    /// Samples a random address in `from..=to` that is not in the buffer. Prefers places far along a track, since tracks of different
    /// lengths look alike at their start.
    pub(super) fn glance_within(
        &mut self,
        from: u64,
        to: u64,
    ) -> Result<Option<Glance>, ExtractError> {
        let unit = self.bench.unit();
        for attempt in 0..PLACE_TRIES {
            let lba = from + self.bench.random.up_to(to.saturating_sub(from));
            if !self.zone().rows.is_empty() {
                let spot = self.zone().spot_of(lba);
                let data = self.zone().rows[spot.row].data;
                let least = match to.saturating_sub(from) >= data / 2 && attempt < PLACE_TRIES / 2 {
                    true => data / 2,
                    false => data / FRONT_PART,
                };
                if attempt + 2 < PLACE_TRIES && spot.slot < least {
                    continue;
                }
            }
            let lba = match lba / unit * unit {
                whole if whole >= from => whole,
                _ => lba,
            };
            if let Some(angle) = self.bench.glance(lba)? {
                return Ok(Some(Glance { lba, angle }));
            }
        }
        Ok(None)
    }

    pub(super) fn off_of(&mut self, look: Glance) -> f64 {
        near(look.angle - self.zone().angle_of(look.lba))
    }

    pub(super) fn agrees(&mut self, look: Glance) -> bool {
        self.off_of(look).abs() < self.tolerance_at(look.lba)
    }

    /// Samples another place near one with an unexpected angle, in case its answer was late. The place is one track on, if that is before
    /// `upto`, because a row that starts before `look` has not ended there. Else it is on the same track.
    fn beside(&mut self, look: Glance, upto: u64) -> Result<Option<Glance>, ExtractError> {
        let spot = self.zone().spot_of(look.lba);
        let data = self.zone().rows[spot.row].data;
        match look.lba + data + data / 8 < upto {
            true => self.glance_within(look.lba + data - data / 8, look.lba + data + data / 8),
            false => self.glance_within(look.lba - spot.slot.min(data / 4), look.lba),
        }
    }

    /// Factor by which the walk may go beyond the tracks over which the skew is known.
    fn farther(&self) -> u64 {
        match self.bench.vary > 0.0 {
            true => REACH_FACTOR / 2,
            false => REACH_FACTOR,
        }
    }

    /// Records that the rule holds up to a sample, and refines the skew by it.
    fn note(&mut self, look: Glance) {
        let off = self.off_of(look);
        self.refine(look.lba, off);
        self.at.upto = look.lba + 1;
    }
}

/// Greatest common divisor.
fn divisor(one: u64, other: u64) -> u64 {
    match one {
        0 => other,
        one => divisor(other % one, one),
    }
}
