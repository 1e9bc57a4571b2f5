//! Measurement of a row of tracks from its first address alone.

use super::error::ExtractError;
use super::turns::{near, part};
use super::walk::Walk;
use super::zone::Row;

/// Tolerance for equal angles on a track, in turns, while the rate is still uncertain.
const EQUAL_ANGLE_TURNS: f64 = 2e-3;
/// Divisors of the known track length for the distance of the first sample. Each divisor is an attempt at a row.
const FIRST_STEPS: [u64; 5] = [8, 64, 5, 1 << 32, 3];
/// Fewest sectors per track of any drive; early drives for small computers had 17.
const TRACK_SECTORS_MIN: u64 = 16;
/// Length, in sectors, from which a track counts as whole if its end is within two sectors.
const LONG_TRACK_SECTORS: u64 = 1_024;
/// Most sectors at the end of a track that are measured alone.
const MOST_ALONE: u32 = 4;
/// Longest slip on the first track that is measured.
const MOST_SLIPPED: f64 = 16.0;

/// Measurement of a track.
struct Track {
    /// Sectors that pass in a turn.
    slots: u64,
    /// Slip on the track: the address behind it, counted from the first address, and the number of places.
    slip: Option<(u64, u64)>,
    /// Addresses up to the first address of the next track.
    count: u64,
    /// True if enough of the track was seen to know `slots`.
    sure: bool,
}

impl Walk<'_, '_> {
    /// Starts a row at an address: measures the length of its tracks, the start of the next track, and its skew.
    pub(super) fn row(&mut self, start: u64) -> Result<(), ExtractError> {
        self.row_behind(start, 0)
    }

    /// Starts a row as [`Walk::row`] does. `alone` counts the sectors before `start` that were measured alone.
    fn row_behind(&mut self, start: u64, alone: u32) -> Result<(), ExtractError> {
        for first_step in FIRST_STEPS {
            if self.try_row(start, first_step)? {
                return Ok(());
            }
            self.bench.forget();
        }
        // The last sectors of a track do not show the track's length. Each of these sectors counts as a cut track.
        if let (Some(slots), true) = (self.slots_before(), alone < MOST_ALONE) {
            let angle = self.bench.look_closely(start)?;
            let enter = self.enter(start, angle);
            let tolerance = self.tolerance_of(slots);
            match self.zone().rows.last_mut() {
                Some(last)
                    if alone > 0
                        && near(enter - last.data as f64 / slots as f64).abs() < tolerance =>
                {
                    last.data += 1
                }
                _ => self.begin(
                    Row {
                        tracks: 1,
                        slots,
                        data: 1,
                        enter,
                        skew: 0.0,
                    },
                    start,
                    angle,
                ),
            }
            return self.row_behind(start + 1, alone + 1);
        }
        // No row fits. The measurement is accepted, and later samples will correct the row.
        self.try_row(start, 0).map(|_| ())
    }

    /// Measures a row once. Returns false, and changes nothing, if the samples contradict each other, for example by a late answer.
    fn try_row(&mut self, start: u64, first_step: u64) -> Result<bool, ExtractError> {
        let first = self.bench.look_closely(start)?;
        let enter = self.enter(start, first);
        for guess in self.guesses() {
            let row = Row {
                tracks: 0,
                enter,
                ..guess
            };
            if self.fits(&row, start, first)? {
                self.begin(row, start, first);
                self.note_row(start + row.data + 1);
                return Ok(true);
            }
        }
        let capacity = self.bench.capacity();
        let Track {
            slots,
            slip,
            count,
            sure,
        } = self.track(start, first, first_step.max(2))?;
        // The rate of thousands of sectors is not exact to a sector. Drives with such tracks have no spares at the end of a track.
        let slots = match slots >= LONG_TRACK_SECTORS && slots.abs_diff(count) <= 2 {
            true => count,
            false => slots,
        };
        // Round to whole physical sectors.
        let grain = self.bench.grain();
        let slots = ((slots + grain / 2) / grain * grain).max(grain);
        let count = match count.abs_diff(slots) < grain {
            true if grain > 1 => slots,
            _ => count,
        };
        let known = self.slots_before();
        let is_odd = |known: u64| !(0.6..1.6).contains(&(slots as f64 / known as f64));
        if first_step > 0 && (slots < TRACK_SECTORS_MIN || known.is_some_and(is_odd)) {
            return Ok(false);
        }
        let mut row = Row {
            tracks: 0,
            slots,
            data: count,
            enter,
            skew: 0.0,
        };
        let next = start + count;
        let mut upto = next.min(capacity);
        if next < capacity {
            row.skew = near(self.sure(next, slots)? - first);
            // A slip shortens the track by its places.
            row.data += slip.map_or(0, |(_, count)| count);
            upto = next + 1;
        }
        // A few sectors do not show the rate. At least the consecutive sectors pass in a turn.
        row.slots = slots.max(row.data.next_multiple_of(grain));
        // The end of a cut track is sampled again, because a single late answer looks like a cut.
        let passed = slip.map_or(0, |(_, count)| count);
        if count + passed != slots && next < capacity && !self.bench.is_dear() && first_step > 0 {
            let tolerance =
                self.tolerance_of(slots)
                    .max(if sure { 0.0 } else { EQUAL_ANGLE_TURNS });
            let [last, behind] = [count - 1, count].map(|at| (at + passed) as f64 / slots as f64);
            let last = near(self.again(next - 1)? - first - last);
            let behind = near(self.again(next)? - first - behind);
            if last.abs() > tolerance || behind.abs() < tolerance {
                return Ok(false);
            }
        }
        // Check two other places on the track.
        let tolerance = self
            .tolerance_of(slots)
            .max(if sure { 0.0 } else { EQUAL_ANGLE_TURNS });
        for (part, of) in [(5, 7), (3, 11)] {
            let at = count * part / of;
            let passed = slip.filter(|(slip, _)| *slip <= at);
            let at_slot = at + passed.map_or(0, |(_, count)| count);
            let expected = first + at_slot as f64 / slots as f64;
            let off = self.bench.look_against(start + at, expected, tolerance)?;
            if off.abs() > tolerance && first_step > 0 {
                return Ok(false);
            }
        }
        let is_cut = row.data * 5 < slots * 4 && next < capacity;
        if is_cut {
            row.tracks = 1;
        }
        self.begin(row, start, first);
        if let Some((at, count)) = slip {
            let later = self.zone().later(start);
            self.zone().fault(start + at, later + count, 0.0);
        }
        if is_cut {
            // A cut track says nothing about the tracks behind its end.
            self.at.upto = upto;
            self.row(next)?;
        } else {
            self.note_row(upto);
        }
        Ok(true)
    }

    /// Angle of an address, read again unless it was read often enough.
    fn again(&mut self, lba: u64) -> Result<f64, ExtractError> {
        match self.bench.varies() {
            false => self.bench.look_again(lba),
            true => self.bench.look_closely(lba),
        }
    }

    /// Angle of a track's first address. Unless answer times are exact, another address on the track must confirm the angle.
    fn sure(&mut self, lba: u64, slots: u64) -> Result<f64, ExtractError> {
        if self.bench.varies() {
            return self.bench.look_closely(lba);
        }
        let angle = self.look(lba)?;
        let beside = lba + slots / 3;
        if self.bench.is_quiet() || beside >= self.bench.capacity() {
            return Ok(angle);
        }
        let other = self.look(beside)? - (slots / 3) as f64 / slots as f64;
        match near(other - angle).abs() < self.tolerance_of(slots) {
            true => Ok(angle),
            false => self.bench.look_again(lba),
        }
    }

    /// Rotation against the previous track, for a track that starts at an address with an angle.
    pub(super) fn enter(&mut self, start: u64, angle: f64) -> f64 {
        if self.zone().rows.is_empty() {
            return 0.0;
        }
        let before = self.zone().spot_of(start - 1).zero;
        near(angle - before)
    }

    /// Rows to expect next: the row one cycle ago, the mirror image of an earlier row, and the last row.
    pub(super) fn guesses(&mut self) -> Vec<Row> {
        let habit = self.at.habit as usize;
        let zone = self.zone();
        let n = zone.rows.len();
        let mut guesses: Vec<Row> = Vec::new();
        if habit > 0 && n >= habit {
            guesses.push(zone.rows[n - habit]);
        }
        let longest = zone.rows.iter().map(|row| row.tracks).max().unwrap_or(0);
        if longest > 1 {
            // Outward on the surfaces that were passed inward: the last row, then the row before, ..
            let slots: Vec<u64> = zone.rows.iter().map(|row| row.slots).collect();
            let turn = (1..n).rev().find(|at| slots[*at] == slots[*at - 1]);
            let mirrored = turn.and_then(|turn| (2 * turn).checked_sub(n + 1));
            guesses.extend(mirrored.map(|at| zone.rows[at]));
        }
        guesses.extend(zone.rows.last());
        // From long to short, because read-ahead of one sample must not cover the next sample.
        guesses.sort_by_key(|row| std::cmp::Reverse(row.data));
        guesses.dedup();
        guesses
    }

    /// Returns true if the track at an address and the next track match a row.
    fn fits(&mut self, row: &Row, start: u64, first: f64) -> Result<bool, ExtractError> {
        let capacity = self.bench.capacity();
        let tolerance = self.tolerance_of(row.slots);
        let expected = |at: u64| {
            let (track, slot) = (at / row.data, at % row.data);
            part(first + row.skew * track as f64 + slot as f64 / row.slots as f64)
        };
        for at in [row.data, row.data - 1, row.data / 2, row.data / 5] {
            if start + at >= capacity {
                return Ok(false);
            }
            if self
                .bench
                .look_against(start + at, expected(at), tolerance)?
                .abs()
                > tolerance
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Measures the track at an address: sectors that pass in a turn, a slip, and addresses up to the next track.
    fn track(&mut self, start: u64, first: f64, first_step: u64) -> Result<Track, ExtractError> {
        let capacity = self.bench.capacity();
        // Consecutive tracks have similar lengths, which gives a first rate.
        let known = self.slots_before();
        let (mut reach, mut rate) = (0_u64, 0.0_f64);
        let mut distance = known.map_or(2, |slots| (slots / first_step).max(2));
        let mut bad = None;
        while start + distance < capacity {
            let passed = near(self.bench.look_closely(start + distance)? - first);
            if reach == 0 {
                let ahead = if passed < 0.0 { passed + 1.0 } else { passed };
                rate = distance as f64 / ahead;
                let odd = known.is_some_and(|slots| {
                    !(0.6..1.5).contains(&(rate / slots as f64)) && distance > 2
                });
                if odd || !rate.is_finite() {
                    // The track ends before this sample, or the time was wrong: restart close to the first address.
                    if distance <= 2 {
                        bad = Some(distance);
                        break;
                    }
                    distance = 2;
                    continue;
                }
            } else {
                let off = near(passed - distance as f64 / rate);
                // Uncertainty of the rate at this distance.
                let tolerance = self.tolerance_of(rate as u64 + 1);
                let unsure = tolerance * distance as f64 / reach as f64;
                if off.abs() > unsure.max(tolerance).min(0.05) {
                    bad = Some(distance);
                    break;
                }
                rate = distance as f64 / (distance as f64 / rate + off);
            }
            reach = distance;
            distance = if distance < 16 {
                distance * 2
            } else {
                distance + distance / 2
            };
            if distance as f64 > 4.0 * rate && reach > 64 {
                break;
            }
        }
        let Some(mut high) = bad else {
            let slots = libm::round(rate).max(1.0) as u64;
            return Ok(Track {
                slots,
                slip: None,
                count: capacity - start,
                sure: true,
            });
        };
        let mut low = reach;
        // A track with too few samples is assumed to be as long as the others.
        let seen = reach as f64 > rate / 6.0;
        let slots = match known {
            Some(slots) if !seen => slots,
            _ => libm::round(rate).max(1.0) as u64,
        };
        let tolerance = self
            .tolerance_of(slots)
            .max(if seen { 0.0 } else { EQUAL_ANGLE_TURNS });
        let line = |distance: u64| first + distance as f64 / slots as f64;
        let mut slip: Option<(u64, u64)> = None;
        loop {
            let passed = slip.map_or(0, |(_, count)| count);
            // Most tracks are whole.
            let whole = slots.saturating_sub(passed);
            if low < whole && whole <= high {
                for at in [whole, whole - 1] {
                    if at > low && at < high {
                        let off =
                            self.bench
                                .look_against(start + at, line(at + passed), tolerance)?;
                        match off.abs() < tolerance {
                            true => low = at,
                            false => high = at,
                        }
                    }
                }
            }
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                let off =
                    self.bench
                        .look_against(start + middle, line(middle + passed), tolerance)?;
                match off.abs() < tolerance {
                    true => low = middle,
                    false => high = middle,
                }
            }
            let jump = near(self.bench.look_closely(start + high)? - line(high + passed));
            let sectors = jump * slots as f64;
            let count = libm::round(sectors);
            let is_slip = slip.is_none()
                && high + 1 < slots
                && (1.0..=MOST_SLIPPED).contains(&count)
                && (sectors - count).abs() < 0.35;
            if !is_slip {
                break;
            }
            // Behind a slip the track continues up to its old end.
            let passed = count as u64;
            let end = slots.saturating_sub(passed);
            let holds = |off: f64| off.abs() < tolerance;
            let goes_on = end > high + 1
                && holds(self.bench.look_against(
                    start + end - 1,
                    line(end - 1 + passed),
                    tolerance,
                )?)
                && !holds(
                    self.bench
                        .look_against(start + end, line(end + passed), tolerance)?,
                );
            if !goes_on {
                break;
            }
            slip = Some((high, passed));
            (low, high) = (end - 1, end);
        }
        Ok(Track {
            slots,
            slip,
            count: high,
            sure: seen,
        })
    }
}
