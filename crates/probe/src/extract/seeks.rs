//! Seek times by distance.

use super::bench::Bench;
use super::error::ExtractError;
use super::reach::{Aim, Reach};
use crate::random::Random;
use headtime_disk::Layout;
use headtime_disk::layout::Slot;
use headtime_sched::Op;
use headtime_units::{Cylinder, Extent, Head, Track};

/// Distances for seek measurements: the table of section 4.2 of the paper on drives of its time. Beyond 500 cylinders, larger drives get at
/// least twelve distances per doubling.
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

/// A layout for aiming at sectors.
pub(super) struct Target<'l> {
    pub layout: &'l Layout,
    /// Delay of the answer beyond the end of a sector, in nanoseconds.
    pub tail: f64,
    pub cylinders: u32,
    pub heads: u16,
    /// First and last cylinder of each zone.
    pub zones: Vec<(u32, u32)>,
}

impl<'l> Target<'l> {
    /// Target for sectors that count as answered when they have passed.
    pub fn of(layout: &'l Layout) -> Target<'l> {
        Target {
            layout,
            tail: 0.0,
            cylinders: 0,
            heads: layout.heads(),
            zones: Vec::new(),
        }
    }

    /// A sector of a track that can be the start of a movement.
    pub fn source(&self, track: Track) -> Option<u64> {
        // The sector is early on the track, which keeps read-ahead on the track until the next command.
        (0..16).find_map(|slot| match self.layout.slot(track, slot)? {
            Slot::Data(lba) => Some(lba.get()),
            _ => None,
        })
    }

    /// First sector of a track that starts at an angle or later.
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

    /// Least time after which a track can be read after a command. Each trial chooses both anew. `None` if there are no such pairs, or if
    /// the drive does not show the time.
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

    /// Least time from one track to another.
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

    /// Least time of a seek over a distance in cylinders on the same surface, processing included.
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

    /// Lower of two random cylinders at a distance, if possible in the same zone. Cylinders between zones have no addresses, but take time.
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

    /// Least time to another surface of the same cylinder, processing included.
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

/// Reorders distances. A coarse selection from the whole range comes first and already gives a curve.
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

/// Interpolates a curve at a distance. Beyond its points, the nearest point counts.
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
