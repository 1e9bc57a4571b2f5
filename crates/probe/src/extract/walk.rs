//! Walks over the addresses: predicts, tries ever farther ahead, and where a prediction fails, looks
//! at what is there.
//!
//! Tracks are seen by their skews (Wong; see also DIG, which calls for the same of each track). What
//! is predicted is the angle of a sector. It holds up to some address; as long as it does, the next
//! step is twice as long. If it does not, a search between finds the first address where it fails:
//!
//! * a *slip*: the sectors from there on are some sectors later than expected;
//! * a *turn*: a track begins there that is turned by more than those before it: the next cylinder,
//!   or the next group of tracks. The second that is equal makes it a rule;
//! * else another *zone*, whose track length is found anew.

use super::bench::Bench;
use super::error::ExtractError;
use super::turns::near;
use super::zone::FoundZone;
use crate::Probe;
use serde::{Deserialize, Serialize};

/// How far the walk has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Walked {
    /// What was found, in order; the last one is not complete until the walk is.
    pub zones: Vec<FoundZone>,
    /// Up to here, exclusively, predictions hold.
    pub upto: u64,
    /// Sectors of the next step.
    pub step: u64,
    /// The farthest track of the last zone from which its skew is known.
    fitted: u64,
    /// Sectors whose angle fits to nothing around them.
    pub odd: Vec<u64>,
}

/// Slipped places in a row that are looked for.
const MOST_SLIPPED: u64 = 24;

/// Angles that are known to no better than this part of a turn are not worth a walk.
const MOST_NOISE: f64 = 0.01;
/// Looks at a sector until two agree, at most.
const MOST_LOOKS: usize = 6;
/// Looks at the same sector differ by less than this part of a turn, as long as nothing is late.
const SAME: f64 = 1e-3;

/// A walk that goes on.
pub(super) struct Walk<'b, 'a, P: ?Sized> {
    pub bench: &'b mut Bench<'a, P>,
    pub at: &'b mut Walked,
}

impl<P: Probe + ?Sized> Walk<'_, '_, P> {
    /// One step. Returns true if the end of the drive is reached.
    pub fn step(&mut self) -> Result<bool, ExtractError> {
        let capacity = self.bench.capacity();
        if self.at.zones.is_empty() {
            self.begin_zone(0)?;
        }
        if self.at.upto < capacity {
            let good = self.at.upto - 1;
            let to = (good + self.at.step.max(1)).min(capacity - 1);
            if self.holds_to(good, to)? {
                self.at.upto = to + 1;
                self.at.step *= 2;
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

    fn zone(&mut self) -> &mut FoundZone {
        self.at.zones.last_mut().expect("begun")
    }

    /// How far off a prediction of the last zone may be.
    fn tolerance(&mut self) -> f64 {
        let per_track = self.zone().sectors_per_track as f64;
        self.tolerance_of(per_track)
    }

    /// The same for so many sectors on a track: a third of a sector, unless angles are not known to that.
    fn tolerance_of(&self, per_track: f64) -> f64 {
        f64::max(0.35 / per_track, (4.0 * self.bench.noise).min(MOST_NOISE))
    }

    /// How far an address is from where it is expected, in turns. What is far is looked at again:
    /// one late answer is no other angle.
    fn off(&mut self, lba: u64) -> Result<f64, ExtractError> {
        let expected = self.zone().angle_of(lba);
        let tolerance = self.tolerance();
        let mut seen: Vec<f64> = Vec::new();
        loop {
            let off = near(self.bench.angle(lba)? - expected);
            let agrees = |other: &f64| near(other - off).abs() < tolerance;
            if off.abs() < tolerance || seen.iter().any(agrees) || seen.len() == MOST_LOOKS {
                return Ok(off);
            }
            seen.push(off);
        }
    }

    /// The angle of an address of which nothing is expected: two looks must agree.
    fn sure(&mut self, lba: u64) -> Result<f64, ExtractError> {
        let mut seen: Vec<f64> = Vec::new();
        loop {
            let angle = self.bench.angle(lba)?;
            let agrees = |other: &f64| near(other - angle).abs() < SAME;
            if seen.iter().any(agrees) || seen.len() == MOST_LOOKS {
                return Ok(angle);
            }
            seen.push(angle);
        }
    }

    fn holds(&mut self, lba: u64) -> Result<bool, ExtractError> {
        Ok(self.off(lba)?.abs() < self.tolerance())
    }

    /// Returns true if an address is where it is expected, and so is another one before it, behind
    /// `good`: one alone may be there by chance.
    fn holds_to(&mut self, good: u64, lba: u64) -> Result<bool, ExtractError> {
        let off = self.off(lba)?;
        if off.abs() >= self.tolerance() {
            return Ok(false);
        }
        if lba - good > 1 {
            let within = (lba - good - 1).min(self.zone().sectors_per_track);
            let other = lba - 1 - self.bench.random.up_to(within - 1);
            if !self.holds(other)? {
                return Ok(false);
            }
        }
        self.refine(lba, off);
        Ok(true)
    }

    /// Takes the skew from a sector farther on than all before.
    fn refine(&mut self, lba: u64, off: f64) {
        let (track, _) = self.zone().track(lba);
        if track > self.at.fitted {
            self.zone().skew += off / track as f64;
            self.at.fitted = track;
        }
    }

    /// Narrows the gap between a good and a bad address to at most `width`.
    fn narrow(&mut self, good: u64, bad: u64, width: u64) -> Result<(u64, u64), ExtractError> {
        let (mut low, mut high) = (good, bad);
        while high - low > width.max(1) {
            let middle = low + (high - low) / 2;
            if self.holds_to(low, middle)? {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok((low, high))
    }

    /// Finds out what begins between a good address and one that is not where it is expected.
    fn turned(&mut self, good: u64, bad: u64) -> Result<(), ExtractError> {
        let per_track = self.zone().sectors_per_track;
        // Within a track the buffer is in the way, and it matters little where a slip is.
        let (low, high) = self.narrow(good, bad, per_track / 16)?;
        // Less than a sector is neither a slip nor a turn, but what the skew was not yet known to.
        let off = self.off(high)?;
        if off.abs() < f64::max(0.65 / per_track as f64, 1.5 * self.tolerance()) {
            self.refine(high, off);
            self.at.upto = high + 1;
            return Ok(());
        }
        if self.slip(low, high)? || self.turn(low, high)? {
            return Ok(());
        }
        let (low, high) = self.narrow(low, high, 1)?;
        self.at.upto = low + 1;
        // A remapped sector: those behind it are where they should be.
        if self.all_hold(&[high + 1, high + 2, high + 9])? {
            self.at.odd.push(high);
            self.at.upto = high + 1;
            return Ok(());
        }
        self.begin_zone(high)
    }

    /// Returns true, having noted them, if some places are slipped between a good and a bad address.
    fn slip(&mut self, low: u64, high: u64) -> Result<bool, ExtractError> {
        let per_track = self.zone().sectors_per_track;
        let tolerance = self.tolerance();
        let off = self.off(high)?;
        let angle = self.zone().angle_of(high) + off;
        let mut counts: Vec<u64> = (1..=MOST_SLIPPED).collect();
        // Where tracks are slipped, it is whole ones.
        let boundary = self.boundary(low, high);
        if boundary.is_some() {
            counts.extend([per_track, 2 * per_track]);
        }
        for count in counts {
            let at = match boundary {
                Some(boundary) if count >= per_track => boundary,
                _ => high,
            };
            let mut slipped = self.zone().clone();
            slipped.slip(at, count);
            if near(angle - slipped.angle_of(high)).abs() >= tolerance {
                continue;
            }
            let before = std::mem::replace(self.zone(), slipped);
            let (_, slot) = self.zone().track(high);
            let next = high + per_track - slot;
            let mut tries = vec![high + 5, high + 11];
            if count > 3 {
                tries.extend([next + 1, next + per_track / 2]);
            }
            if self.all_hold(&tries)? {
                self.at.upto = high + 1;
                self.at.step = (self.at.step / 4).max(per_track / 2);
                return Ok(true);
            }
            *self.zone() = before;
        }
        Ok(false)
    }

    /// The first address of a track between two addresses, the second included.
    fn boundary(&mut self, low: u64, high: u64) -> Option<u64> {
        let zone = self.zone();
        let (track, slot) = zone.track(high);
        // Slips on this track make it shorter.
        let mut first = high - slot.min(high - low);
        while first < high && zone.track(first).0 < track {
            first += 1;
        }
        (first > low && zone.track(first) == (track, 0)).then_some(first)
    }

    /// Returns true, having noted it, if the track that begins between a good and a bad address is
    /// turned by more than expected.
    fn turn(&mut self, low: u64, high: u64) -> Result<bool, ExtractError> {
        let per_track = self.zone().sectors_per_track;
        let tolerance = self.tolerance();
        let Some(first) = self.boundary(low, high) else {
            return Ok(false);
        };
        let (track, _) = self.zone().track(first);
        let off = self.off(high)?;
        let before = self.zone().clone();
        self.zone().turn_more(track, off, tolerance);
        let tries = [
            first,
            first + per_track / 3,
            first + per_track - 1,
            first + per_track + 1,
        ];
        let mut holds = self.all_hold(&tries)?;
        if holds && first - 1 > low {
            holds = self.holds(first - 1)?;
        }
        if holds {
            self.at.upto = high + 1;
            self.at.step = (self.at.step / 4).max(2 * per_track);
        } else {
            *self.zone() = before;
        }
        Ok(holds)
    }

    /// Returns true if all of these addresses, as far as there are such, are where they are expected.
    fn all_hold(&mut self, addresses: &[u64]) -> Result<bool, ExtractError> {
        let capacity = self.bench.capacity();
        for lba in addresses {
            if *lba < capacity && !self.holds(*lba)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Begins a zone at an address: finds the length of its tracks, where the next one begins, and
    /// how much it is turned.
    fn begin_zone(&mut self, start: u64) -> Result<(), ExtractError> {
        let capacity = self.bench.capacity();
        if let Some(last) = self.at.zones.last_mut() {
            last.end = start;
        }
        let first = self.sure(start)?;
        // A rate, in sectors a turn, from ever longer distances.
        let (mut reach, mut rate) = (0, 0.0);
        let mut slip: Option<(u64, u64)> = None;
        let mut distance = 2_u64;
        let mut bad = None;
        while start + distance < capacity {
            let passed = near(self.sure(start + distance)? - first);
            if reach == 0 {
                let ahead = if passed < 0.0 { passed + 1.0 } else { passed };
                rate = distance as f64 / ahead;
            } else {
                let off = near(passed - distance as f64 / rate);
                if off.abs() > self.tolerance_of(rate).max(1e-4 * distance as f64 / rate) {
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
        let per_track = libm::round(rate).max(1.0) as u64;
        let mut zone = FoundZone {
            start,
            end: capacity,
            sectors_per_track: per_track,
            first_slot: 0,
            angle: first,
            skew: 0.0,
            extras: Vec::new(),
            slips: Vec::new(),
        };
        let line = |distance: u64| first + distance as f64 / per_track as f64;
        let Some(mut high) = bad else {
            return self.enter(zone, start + 1, 1);
        };
        let mut low = reach;
        let tolerance = self.tolerance_of(per_track as f64);
        let mut jump;
        loop {
            let passed = slip.map_or(0, |(_, count)| count);
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                let off = near(self.sure(start + middle)? - line(middle + passed));
                if off.abs() < tolerance {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            jump = near(self.sure(start + high)? - line(high + passed));
            let sectors = jump * per_track as f64;
            let whole = libm::round(sectors);
            let is_slip =
                slip.is_none() && (1.0..=4.0).contains(&whole) && (sectors - whole).abs() < 0.35;
            if !is_slip {
                break;
            }
            slip = Some((high, whole as u64));
            // The end of the track is still to be found.
            low = high;
            high = low + 1;
            while start + high < capacity {
                let passed = whole as u64;
                let off = near(self.sure(start + high)? - line(high + passed));
                if off.abs() >= tolerance {
                    break;
                }
                low = high;
                high += (high - slip.map_or(0, |(at, _)| at)).max(1);
            }
        }
        let passed = slip.map_or(0, |(_, count)| count);
        zone.slips.extend(slip);
        zone.first_slot = (per_track - (high + passed) % per_track) % per_track;
        zone.angle = first - zone.first_slot as f64 / per_track as f64;
        zone.skew = jump;
        self.enter(zone, start + high + 1, 1)
    }

    fn enter(&mut self, zone: FoundZone, upto: u64, fitted: u64) -> Result<(), ExtractError> {
        self.at.step = zone.sectors_per_track;
        self.at.upto = upto;
        self.at.fitted = fitted;
        self.at.zones.push(zone);
        Ok(())
    }
}
