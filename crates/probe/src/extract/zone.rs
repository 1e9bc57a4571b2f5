//! A zone as it was found: where its sectors are expected.

use super::turns::part;
use serde::{Deserialize, Serialize};

/// Addresses on tracks of one length whose angles follow one rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundZone {
    /// The first address.
    pub start: u64,
    /// The address behind the last, once it is known.
    pub end: u64,
    /// Sectors on a track.
    pub sectors_per_track: u64,
    /// The slot of the first address on its track, which is track 0 of the zone.
    pub first_slot: u64,
    /// The angle of slot 0 of track 0.
    pub angle: f64,
    /// By how much each track is turned against the one before it.
    pub skew: f64,
    /// Where it is turned by more.
    pub extras: Vec<Extra>,
    /// Places that no address has: the first, counted from that of the first address, and how many.
    pub slips: Vec<(u64, u64)>,
}

/// A track that is turned by more than the skew, and every so many tracks the next such one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Extra {
    /// The first track, counted from track 0.
    pub at: u64,
    /// Tracks from one to the next; 0 if there is only one.
    pub every: u64,
    /// By how much more, in turns.
    pub skew: f64,
}

impl Extra {
    /// How many of them there are up to and with a track.
    pub fn count(&self, track: u64) -> u64 {
        match (track.checked_sub(self.at), self.every) {
            (None, _) => 0,
            (Some(_), 0) => 1,
            (Some(past), every) => 1 + past / every,
        }
    }
}

impl FoundZone {
    /// The place of an address, slot 0 of track 0 being place 0, and how many slips come before it.
    pub fn place(&self, lba: u64) -> (u64, u64) {
        let mut place = lba - self.start;
        let mut passed = 0;
        for &(first, count) in &self.slips {
            if first > place {
                break;
            }
            place += count;
            passed += count;
        }
        (place + self.first_slot, passed)
    }

    /// The address of a slot; `None` for a slipped one, and one outside the zone.
    pub fn address(&self, track: u64, slot: u64) -> Option<u64> {
        let place = (track * self.sectors_per_track + slot).checked_sub(self.first_slot)?;
        let mut passed = 0;
        for &(first, count) in &self.slips {
            if first > place {
                break;
            }
            if place < first + count {
                return None;
            }
            passed += count;
        }
        let lba = self.start + place - passed;
        (lba < self.end).then_some(lba)
    }

    /// The track of an address, and the slot on it.
    pub fn track(&self, lba: u64) -> (u64, u64) {
        let (place, _) = self.place(lba);
        (
            place / self.sectors_per_track,
            place % self.sectors_per_track,
        )
    }

    /// Where slot 0 of a track is.
    pub fn track_angle(&self, track: u64) -> f64 {
        let extras: f64 = self
            .extras
            .iter()
            .map(|extra| extra.skew * extra.count(track) as f64)
            .sum();
        part(self.angle + self.skew * track as f64 + extras)
    }

    /// The angle of an address.
    pub fn angle_of(&self, lba: u64) -> f64 {
        let (track, slot) = self.track(lba);
        part(self.track_angle(track) + slot as f64 / self.sectors_per_track as f64)
    }

    /// Adds a slip of `count` places in front of an address behind all others.
    pub fn slip(&mut self, lba: u64, count: u64) {
        let place = self.place(lba).0 - self.first_slot;
        match self.slips.last_mut() {
            Some(last) if last.0 + last.1 == place => last.1 += count,
            _ => self.slips.push((place, count)),
        }
    }

    /// Notes that a track is turned by more than it should be; one that was so before at the same
    /// angle makes it a rule.
    pub fn turn_more(&mut self, track: u64, skew: f64, tolerance: f64) {
        let same = |extra: &&mut Extra| {
            extra.every == 0
                && extra.at < track
                && super::turns::near(extra.skew - skew).abs() < tolerance
        };
        match self.extras.iter_mut().rev().find(same) {
            Some(before) => {
                before.every = track - before.at;
                before.skew = (before.skew + skew) / 2.0;
            }
            None => self.extras.push(Extra {
                at: track,
                every: 0,
                skew,
            }),
        }
    }
}
