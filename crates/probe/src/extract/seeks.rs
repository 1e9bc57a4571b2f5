//! Seek times by distance.

use super::bench::Bench;
use super::error::ExtractError;
use super::reach::{Aim, Reach};
use crate::random::Random;
use headtime_disk::Layout;
use headtime_disk::layout::Slot;
use headtime_sched::Op;
use headtime_units::{Cylinder, Extent, Head, Track};

/// Distances on which seeks are measured: the table of section 4.2 of the paper on drives of its
/// time, and beyond 500 cylinders at least twelve of each doubling on larger ones.
pub(super) fn distances(cylinders: u32) -> Vec<u32> {
    let mut distances = Vec::new();
    let mut at = 1;
    while at < cylinders {
        distances.push(at);
        let step = match at {
            0..10 => 1,
            10..20 => 2,
            20..50 => 5,
            50..100 => 10,
            100..500 => 25,
            _ => (at / 16).max(100),
        };
        at += if cylinders <= 16_384 && at >= 500 {
            100
        } else {
            step
        };
    }
    let last = cylinders.saturating_sub(1);
    if last > 0 && distances.last() != Some(&last) {
        distances.push(last);
    }
    distances
}

/// A layout in which places can be aimed at.
pub(super) struct Target<'l> {
    pub layout: &'l Layout,
    /// How much later than it begins a sector is answered, but for its own passing, in nanoseconds.
    pub tail: f64,
    pub cylinders: u32,
    pub heads: u16,
    /// The first and the last cylinder of each zone.
    pub zones: Vec<(u32, u32)>,
}

impl<'l> Target<'l> {
    /// To aim at what is answered as it passes.
    pub fn of(layout: &'l Layout) -> Target<'l> {
        Target {
            layout,
            tail: 0.0,
            cylinders: 0,
            heads: layout.heads(),
            zones: Vec::new(),
        }
    }

    /// A sector of a track to set out from.
    pub fn source(&self, track: Track) -> Option<u64> {
        // Early on the track: reading ahead stays on it as long as the next command needs.
        (0..16).find_map(|slot| match self.layout.slot(track, slot)? {
            Slot::Data(lba) => Some(lba.get()),
            _ => None,
        })
    }

    /// The first sector of a track that begins at an angle or behind it.
    pub fn aim(&self, track: Track, turn: f64, angle: f64) -> Option<Aim> {
        let per_track = self.layout.sectors_per_track(track)?;
        let zero = self.layout.slot_angle(track, 0)?.turns();
        let slots = f64::from(per_track);
        let first = libm::ceil(super::turns::part(angle - zero) * slots - 1e-6) as u32;
        (0..4).find_map(|more| {
            let slot = (first + more) % per_track;
            let Slot::Data(lba) = self.layout.slot(track, slot)? else {
                return None;
            };
            let begins = self.layout.slot_angle(track, slot)?.turns();
            let lead = turn / slots + self.tail;
            Some(Aim {
                lba: lba.get(),
                answered: begins + lead / turn,
                lead,
            })
        })
    }

    /// The least time after which a track can be read after a command; both are chosen anew for each
    /// trial. `None` if there are none, or the drive does not show it.
    pub fn least(
        &self,
        bench: &mut Bench<'_>,
        guess: f64,
        mut ways: impl FnMut(&mut Random) -> Option<(Op, Extent, Track)>,
    ) -> Result<Option<f64>, ExtractError> {
        let turn = bench.turn();
        Reach { bench }.search(guess, |reach, guess| {
            let Some((op, source, to)) = ways(&mut reach.bench.random) else {
                return Ok(None);
            };
            reach.trial(
                (op, source),
                (Op::Read, 1),
                |angle| self.aim(to, turn, angle),
                guess,
            )
        })
    }

    /// The least time from one track to another.
    pub fn between_tracks(
        &self,
        bench: &mut Bench<'_>,
        guess: f64,
        mut tracks: impl FnMut(&mut Random) -> (Track, Track),
    ) -> Result<Option<f64>, ExtractError> {
        self.least(bench, guess, |random| {
            let (from, to) = tracks(random);
            let source = self.source(from)?;
            Some((Op::Read, Extent::at(source, 1), to))
        })
    }

    /// The least time over so many cylinders on one surface, processing included.
    pub fn seek(
        &self,
        bench: &mut Bench<'_>,
        distance: u32,
        guess: f64,
    ) -> Result<Option<f64>, ExtractError> {
        let room = u64::from(self.cylinders - 1 - distance);
        let heads = u64::from(self.heads) - 1;
        self.between_tracks(bench, guess, |random| {
            let low = Cylinder(self.low(random, room, distance));
            let high = Cylinder(low.0 + distance);
            let head = Head(random.up_to(heads) as u16);
            let at = |cylinder| Track { cylinder, head };
            match random.up_to(1) {
                0 => (at(low), at(high)),
                _ => (at(high), at(low)),
            }
        })
    }

    /// The lower of two random cylinders so far apart, if possible of one zone: what stands between zones
    /// has no address, but takes time.
    fn low(&self, random: &mut Random, room: u64, distance: u32) -> u32 {
        let mut low = 0;
        for _ in 0..24 {
            low = random.up_to(room) as u32;
            let zone = self.zones.partition_point(|(_, last)| *last < low);
            if self
                .zones
                .get(zone)
                .is_some_and(|(_, last)| low + distance <= *last)
            {
                break;
            }
        }
        low
    }

    /// The least time to another surface of the same cylinder, processing included.
    pub fn switch(&self, bench: &mut Bench<'_>, guess: f64) -> Result<Option<f64>, ExtractError> {
        if self.heads < 2 {
            return Ok(None);
        }
        let (cylinders, heads) = (u64::from(self.cylinders) - 1, u64::from(self.heads) - 1);
        self.between_tracks(bench, guess, |random| {
            let cylinder = Cylinder(random.up_to(cylinders) as u32);
            let from = random.up_to(heads);
            let to = (from + 1 + random.up_to(heads - 1)) % (heads + 1);
            let at = |head: u64| Track {
                cylinder,
                head: Head(head as u16),
            };
            (at(from), at(to))
        })
    }
}

/// The same distances, some from all over first, so that few of them make a curve.
pub(super) fn coarse_first(distances: Vec<u32>) -> Vec<u32> {
    let mut order = Vec::with_capacity(distances.len());
    let mut stride = distances.len().next_power_of_two().max(1);
    let mut taken = vec![false; distances.len()];
    while stride > 0 {
        for at in (0..distances.len()).step_by(stride) {
            if !std::mem::replace(&mut taken[at], true) {
                order.push(distances[at]);
            }
        }
        stride /= 2;
    }
    order
}

/// What a curve says of a distance between its points; the nearest point beyond them.
pub(super) fn between(points: &[(u32, f64)], distance: u32) -> Option<f64> {
    let next = points.partition_point(|(other, _)| *other < distance);
    match (
        next.checked_sub(1).map(|before| points[before]),
        points.get(next),
    ) {
        (Some((low, from)), Some(&(high, to))) => {
            let part = f64::from(distance - low) / f64::from(high - low);
            Some(from + (to - from) * part)
        }
        (Some((_, time)), None) => Some(time),
        (None, Some(&(_, time))) => Some(time),
        (None, None) => None,
    }
}
