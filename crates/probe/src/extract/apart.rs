//! Walks over drives whose buffer holds dozens of places: each look is at a track of its own.
//!
//! There, a second look at a track is answered by the buffer, and to drive a sector out takes as many
//! reads. So nothing is looked at twice: between two addresses any place on a track says whether the rule holds
//! there, halving stops at a track, and what begins behind it is solved from looks on other tracks
//! ([`super::solve`]). Rows end where a track does, which need not be looked at; where one does not, the turn
//! from track to track gives its place away on any track behind it.

use super::begun::{ALIKE, MOST_SLIPPED};
use super::bench::{AHEAD, MOST_TRACK};
use super::error::ExtractError;
use super::solve::{Glance, solve};
use super::turns::near;
use super::walk::Walk;
use super::zone::Row;

/// Places that are tried until one is not in the buffer.
const TRIES: usize = 12;
/// Sectors of 512 bytes that the first tracks may have.
const LENGTHS: [u64; 2] = [256, MOST_TRACK];
/// Looks from which the first tracks are solved.
const LEAST_FIRST: usize = 12;
const MOST_FIRST: usize = 32;
/// The first of so many parts of a track is where tracks of other lengths are alike.
const FRONT: u64 = 16;
/// Looks in a row that agree by chance, at most.
const MOST_DOUBTS: usize = 4;
/// How much farther the next look is at a row of which little was seen, where answers come when they should.
const FARTHER: u64 = 4;

/// A rule holds up to an address, and not at a look behind it.
struct Between {
    low: u64,
    high: Glance,
    /// Looks on the way, up to `low`, any of which may agree by chance: none where answers come when they should.
    agreed: Vec<Agreed>,
    /// Looks that agreed where another row would, too.
    unsure: usize,
}

/// A look that agreed with a rule, and what that was before it was made to go through the look.
struct Agreed {
    look: Glance,
    rows: Vec<Row>,
    fitted: u64,
}

impl Walk<'_, '_> {
    /// One step where looks are dear.
    pub(super) fn go_on_apart(&mut self) -> Result<(), ExtractError> {
        let capacity = self.bench.capacity();
        let good = self.at.upto - 1;
        let data = self.zone().row_of(good).data;
        let left = self.left_of_row(good).filter(|left| *left > 0);
        let end = left.map(|left| good + left - 1);
        let end = end.filter(|end| *end < capacity);
        // As far as the turn of the tracks is known.
        let reach = match self.zone().cycle {
            0 => good + data * (self.farther() - 1) * self.at.fitted.max(1),
            _ => good + self.at.step.max(data),
        };
        if let Some(end) = end.filter(|end| *end <= reach) {
            return self.row_ends(good, end);
        }
        let to = reach.min(capacity - 1);
        // Not on the track that was the last to be looked at, if there is another.
        let from = match to - good > 2 * data {
            true => to - data,
            false => good + 1,
        };
        match self.glance_within(from, to)? {
            None => self.at.upto = to + 1,
            Some(look) if self.agrees(look) => {
                self.note(look);
                // One place on the way, too, where the rule is not only this row's.
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

    /// Begins the first row of all, of which nothing is known. Returns false, having done nothing, if that cannot be said.
    pub(super) fn first_of_all(&mut self) -> Result<bool, ExtractError> {
        if self.first_apart()? {
            return Ok(true);
        }
        // Two of the places may have been on one track, and the drive may stay on it behind the second.
        self.bench.stays = true;
        self.bench.drive_out()?;
        let found = self.first_apart()?;
        self.bench.stays = found;
        self.at.stays = found;
        Ok(found)
    }

    /// Begins the first row of all: places on the way, as far apart that the drive has not
    /// read ahead from one to the next. Returns false, having done nothing, if they do not say what it is.
    fn first_apart(&mut self) -> Result<bool, ExtractError> {
        let capacity = self.bench.capacity();
        let unit = self.bench.unit();
        let noise = self.bench.look_noise();
        let grain = self.bench.grain();
        let fine = self.bench.fineness();
        let limit = |slots: u64| f64::max(0.3 * fine / slots as f64, 4.0 * noise);
        let [shortest, longest] = LENGTHS.map(|sectors| self.bench.parts(sectors));
        let mut looks: Vec<Glance> = Vec::new();
        let mut at = 0;
        while looks.len() < MOST_FIRST {
            at += 2 * AHEAD + self.bench.random.up_to(2 * AHEAD);
            let lba = at / unit * unit;
            if lba >= capacity || at > MOST_FIRST as u64 * 16 * AHEAD {
                break;
            }
            let angle = self.bench.glance(lba)?;
            looks.extend(angle.map(|angle| Glance { lba, angle }));
            if angle.is_none() || looks.len() < LEAST_FIRST || !looks.len().is_multiple_of(4) {
                continue;
            }
            let solved = solve(&looks, shortest..=longest, grain, (0, 0), limit);
            if let Some(solved) = self.told(&solved, noise) {
                self.take(0, solved);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A row is expected to end at an address: its last track is as it should be, the next one is not.
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
            // It is longer than the one before.
            self.at.upto = look.lba + 1;
            self.at.step = 2 * data;
            return Ok(());
        }
        self.begins(good, end, look, None).map(|_| ())
    }

    /// An address is not where the rule has it: finds the track behind which that is so, and why.
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
            // It agreed by chance.
            if let Some(last) = last {
                between.high = last.look;
                self.zone().rows = last.rows;
                self.at.fitted = last.fitted;
            }
            between.low = between.agreed.last().map_or(good, |agreed| agreed.look.lba);
        }
        Ok(())
    }

    /// Halves what is between two addresses down to a part of a track, or as long as something is there that is in no buffer.
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
                // It may be late. What cannot be asked again says nothing.
                let other = self.beside(look, between.high.lba)?;
                let Some(other) = other.filter(|other| other.lba > low) else {
                    return Ok(());
                };
                if self.agrees(other) {
                    (look, holds) = (other, true);
                }
            }
            let spot = self.zone().spot_of(look.lba);
            let is_front = spot.slot < self.zone().rows[spot.row].data / FRONT;
            match holds {
                // So would another row be.
                true if is_front && between.unsure < TRIES => between.unsure += 1,
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

    /// Between `low`, where the rule holds, and a look where it does not, something else begins: not before
    /// `end` is passed. Finds out what. `doubt` is the look at `low`, if that may agree by chance: returns false,
    /// having done nothing, if it does.
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
            // What is behind it is where it should be.
            self.at.odd.push(bad.lba);
            self.note(last);
            return Ok(true);
        }
        // Less than a sector is what the skew was not yet known to.
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
        for window in ALIKE {
            let solved = self.measured((low + 1, bad.lba), &seen, window, 0)?;
            if let (Some(solved), Some(look)) = (solved, doubt)
                && solved.goes_back_to(look, self.tolerance_of(solved.slots))
            {
                return Ok(false);
            }
            // Tracks as long that turn by some sectors more are those of a scratch.
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
        // Whatever it is, it is looked at the dear way.
        let (low, high) = self.narrow_from_above(low, bad.lba)?;
        self.at.upto = low + 1;
        self.break_at(high);
        self.row(high)?;
        Ok(true)
    }

    /// Returns true, having noted it, if some places are slipped in front of looks behind `low`. A scratch goes over
    /// more than one track, so that each look may have more of them in front.
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
                // As many sectors of the medium on each track, or twice that.
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
        // One that agrees as it is does so by chance.
        if counts == 0 && self.bench.vary > 0.0 {
            holds = 0;
        }
        let mut sure = holds > counts || holds > 2;
        if holds > 0 && !sure && self.bench.vary == 0.0 {
            // Another place on the last of these tracks. Where answers vary too many places agree by chance.
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

    /// Returns true, having noted it, if a look is where it should be with some places slipped behind `last`.
    fn slip_before(&mut self, last: u64, look: Glance) -> bool {
        let row = *self.zone().row_of(look.lba);
        let later = self.zone().later(last);
        let off = self.off_of(look);
        // By a slip, what was the end of a track may have come to the next one.
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

    /// A look at an address that is in no buffer, not before and not behind the given ones: where there is a choice far
    /// on a track, since tracks of other lengths begin alike.
    pub(super) fn glance_within(
        &mut self,
        from: u64,
        to: u64,
    ) -> Result<Option<Glance>, ExtractError> {
        let unit = self.bench.unit();
        for attempt in 0..TRIES {
            let lba = from + self.bench.random.up_to(to.saturating_sub(from));
            if !self.zone().rows.is_empty() {
                let spot = self.zone().spot_of(lba);
                let data = self.zone().rows[spot.row].data;
                let least = match to.saturating_sub(from) >= data / 2 && attempt < TRIES / 2 {
                    true => data / 2,
                    false => data / FRONT,
                };
                if attempt + 2 < TRIES && spot.slot < least {
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

    /// Another look beside one that was not where it should be, if answers may be late: a track on, if that is before an address,
    /// since what begins before a place has not ended there; else on the same track.
    fn beside(&mut self, look: Glance, upto: u64) -> Result<Option<Glance>, ExtractError> {
        let spot = self.zone().spot_of(look.lba);
        let data = self.zone().rows[spot.row].data;
        match look.lba + data + data / 8 < upto {
            true => self.glance_within(look.lba + data - data / 8, look.lba + data + data / 8),
            false => self.glance_within(look.lba - spot.slot.min(data / 4), look.lba),
        }
    }

    /// A turn that is known over some tracks is known well enough for so many times as many.
    fn farther(&self) -> u64 {
        match self.bench.vary > 0.0 {
            true => FARTHER / 2,
            false => FARTHER,
        }
    }

    /// The rule holds up to a look.
    fn note(&mut self, look: Glance) {
        let off = self.off_of(look);
        self.refine(look.lba, off);
        self.at.upto = look.lba + 1;
    }
}

/// The largest number of which both are multiples.
fn divisor(one: u64, other: u64) -> u64 {
    match one {
        0 => other,
        one => divisor(other % one, one),
    }
}
