//! Timed reads that show which sectors a drive's buffer holds.
//!
//! A sector is in the buffer if a read of it is answered too soon for the medium. If the medium answers the read, the buffer fills a
//! segment with sectors near it. Each test therefore has a place of its own.

use super::bench::Bench;
use super::error::ExtractError;
use super::turns::median;
use headtime_disk::Layout;
use headtime_units::{Extent, Lba, Nanos};
use serde::{Deserialize, Serialize};

/// Time of reads that the buffer answers, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HitTime {
    pub middle: f64,
    /// Upper limit of these times.
    pub limit: f64,
}

/// Number of reads that measure these times.
const HIT_READS: usize = 60;
/// Sectors at an end of a track that are left out.
pub(super) const EDGE_SECTORS: u64 = 4;
/// Most tracks to try until a suitable track is found.
const TRACK_TRIES: usize = 300;
/// Number of sampled tracks that determine the most common length.
const SAMPLED_TRACKS: usize = 96;

impl HitTime {
    /// Reads sectors twice. `None` if the second read is not faster.
    pub(super) fn measure(
        bench: &mut Bench<'_>,
        turn: f64,
    ) -> Result<Option<HitTime>, ExtractError> {
        let mut times = Vec::new();
        for _ in 0..HIT_READS {
            let lba = bench.random.up_to(bench.capacity() - 1);
            bench.read(lba, 1)?;
            let again = bench.read(lba, 1)?;
            times.push((again.at - again.sent).as_nanos() as f64);
        }
        let middle = median(&mut times).expect("some");
        // The medium answers a second read a turn later.
        if middle > 0.4 * turn {
            return Ok(None);
        }
        // Noise about zero is cut off below. Only times above the median show the spread.
        times.sort_unstable_by(f64::total_cmp);
        let spread = times[HIT_READS * 9 / 10] - middle;
        Ok(Some(HitTime {
            middle,
            limit: middle + 4.0 * spread + 15e3,
        }))
    }
}

/// Tests of the buffer of a drive with known tracks and known hit times.
pub(super) struct BufferProbe<'b, 'a, 'l> {
    pub bench: &'b mut Bench<'a>,
    pub layout: &'l Layout,
    /// Rotation time in nanoseconds.
    pub turn: f64,
    pub hit: HitTime,
    /// Number of segments of the buffer, once known.
    pub segments: Option<u64>,
    /// Zone that supplies the tracks.
    area: Extent,
    /// Most common number of sectors per track in the zone.
    pub per_track: u64,
}

impl<'b, 'a, 'l> BufferProbe<'b, 'a, 'l> {
    /// Prepares questions about tracks in the largest zone of a layout.
    pub fn new(
        bench: &'b mut Bench<'a>,
        layout: &'l Layout,
        turn: f64,
        hit: HitTime,
    ) -> BufferProbe<'b, 'a, 'l> {
        let zones = layout.zones().map(|zone| zone.extent);
        let area = zones
            .max_by_key(|extent| extent.len)
            .expect("a layout has zones");
        BufferProbe::in_zone(bench, layout, turn, hit, area)
    }

    /// Prepares questions about tracks in a given zone.
    pub fn in_zone(
        bench: &'b mut Bench<'a>,
        layout: &'l Layout,
        turn: f64,
        hit: HitTime,
        area: Extent,
    ) -> BufferProbe<'b, 'a, 'l> {
        let mut lengths: Vec<u64> = (0..SAMPLED_TRACKS)
            .map(|_| {
                let lba = area.start.get() + bench.random.up_to(area.len.get() - 1);
                layout.track_extent_of(Lba::new(lba)).len.get()
            })
            .collect();
        lengths.sort_unstable();
        let runs = lengths.chunk_by(|one, other| one == other);
        let per_track = runs.max_by_key(|run| run.len()).expect("some tracks")[0];
        BufferProbe {
            bench,
            layout,
            turn,
            hit,
            segments: None,
            area,
            per_track,
        }
    }

    /// Random track in the zone with `before` sectors before it and two similar tracks behind it, for which `good` is true.
    pub fn track(&mut self, before: u64, good: impl Fn(&Layout, Extent) -> bool) -> Option<Extent> {
        let area = self.area;
        let behind = |extent: Extent| self.layout.track_extent_of(extent.end());
        for round in 0..2 * TRACK_TRIES {
            // Where track lengths differ by head, no two neighbours are equal.
            let alike = match round < TRACK_TRIES {
                true => self.per_track,
                false => self.per_track * 8 / 10,
            };
            let lba = area.start.get() + self.bench.random.up_to(area.len.get() - 1);
            let track = self.layout.track_extent_of(Lba::new(lba));
            if track.len.get() != self.per_track
                || track.start.get() < area.start.get() + before
                || track.end().get() + 3 * self.per_track > area.end().get()
            {
                continue;
            }
            let next = behind(track);
            let whole = |extent: Extent| extent.len.get() >= alike;
            if whole(next) && whole(behind(next)) && good(self.layout, track) {
                return Some(track);
            }
        }
        None
    }

    /// Random track in the zone for which `good` is true, of any length.
    pub fn any_track(&mut self, good: impl Fn(&Layout, Extent) -> bool) -> Option<Extent> {
        let area = self.area;
        (0..TRACK_TRIES).find_map(|_| {
            let lba = area.start.get() + self.bench.random.up_to(area.len.get() - 1);
            let track = self.layout.track_extent_of(Lba::new(lba));
            let room = track.end().get() + 3 * self.per_track < area.end().get();
            (room && track.len.get() > 2 * EDGE_SECTORS && good(self.layout, track))
                .then_some(track)
        })
    }

    /// Random address far away from another address.
    pub fn far(&mut self, from: u64) -> u64 {
        let capacity = self.bench.capacity();
        let far = capacity / 8 + self.bench.random.up_to(capacity / 4 * 3);
        (from + far) % capacity
    }

    /// Reads a random sector far away.
    pub fn away(&mut self, from: u64) -> Result<(), ExtractError> {
        let lba = self.far(from);
        self.bench.read(lba, 1).map(|_| ())
    }

    /// Pauses for some turns.
    pub fn pause(&mut self, turns: f64) {
        self.bench
            .probe
            .pause(Nanos::from_nanos((turns * self.turn) as u64));
    }

    /// Pauses until the head has passed a number of sectors, with a margin.
    pub fn rest(&mut self, sectors: u64) {
        self.pause(1.3 + 1.4 * sectors as f64 / self.per_track as f64);
    }

    /// Returns true if the buffer answers a read of a sector.
    pub fn is_held(&mut self, lba: u64) -> Result<bool, ExtractError> {
        let answer = self.bench.read(lba, 1)?;
        Ok(((answer.at - answer.sent).as_nanos() as f64) < self.hit.limit)
    }

    /// Returns true if the buffer answers a read of a sector, asked with the arm elsewhere if the buffer has room for another segment. With
    /// the arm elsewhere no sector comes soon by chance. Else the question comes at a random angle.
    pub fn is_held_from_afar(&mut self, lba: u64) -> Result<bool, ExtractError> {
        let turns = self.bench.random.unit();
        if self.segments.is_some_and(|count| count >= 3) {
            self.away(lba)?;
            // The pause covers the least read-ahead at the far place.
            self.pause(1.0);
        } else {
            self.pause(turns);
        }
        self.is_held(lba)
    }

    /// Asks a question `count` times and counts the answers.
    pub fn votes(
        &mut self,
        count: u32,
        mut ask: impl FnMut(&mut Self) -> Result<Option<bool>, ExtractError>,
    ) -> Result<Votes, ExtractError> {
        let mut votes = Votes::default();
        for _ in 0..count {
            votes.note(ask(self)?);
        }
        Ok(votes)
    }

    /// Repeats a question until two answers agree, up to six times.
    pub fn likely(
        &mut self,
        mut ask: impl FnMut(&mut Self) -> Result<Option<bool>, ExtractError>,
    ) -> Result<Option<bool>, ExtractError> {
        let mut votes = Votes::default();
        for _ in 0..6 {
            votes.note(ask(self)?);
            if votes.yes.max(votes.no) >= 2 {
                return Ok(Some(votes.yes > votes.no));
            }
        }
        Ok(None)
    }

    /// Largest number up to `most` with the answer yes, if small numbers have the answer yes and large numbers no. Each number is asked
    /// once.
    pub fn about(
        &mut self,
        most: u64,
        mut ask: impl FnMut(&mut Self, u64) -> Result<Option<bool>, ExtractError>,
    ) -> Result<Option<u64>, ExtractError> {
        let (mut low, mut step) = (0, 1);
        let mut high = most + 1;
        while low < most && high > most {
            let at = (low + step).min(most);
            match ask(self, at)? {
                Some(true) => (low, step) = (at, step * 2),
                Some(false) => high = at,
                None => return Ok(None),
            }
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match ask(self, middle)? {
                Some(true) => low = middle,
                Some(false) => high = middle,
                None => return Ok(None),
            }
        }
        Ok(Some(low))
    }

    /// Largest number up to `most` with the answer yes, confirmed by repeated questions. `None` if the answers contradict each other;
    /// `most` if all are yes.
    pub fn largest(
        &mut self,
        most: u64,
        mut ask: impl FnMut(&mut Self, u64) -> Result<Option<bool>, ExtractError>,
    ) -> Result<Option<u64>, ExtractError> {
        for _ in 0..4 {
            let Some(low) = self.about(most, &mut ask)? else {
                return Ok(None);
            };
            if low == most {
                return Ok(Some(most));
            }
            let below = self.votes(3, |buffer| match low {
                0 => Ok(Some(true)),
                low => ask(buffer, low),
            })?;
            let behind = self.votes(3, |buffer| ask(buffer, low + 1))?;
            if below.no == 0 && behind.yes == 0 {
                return Ok(Some(low));
            }
        }
        Ok(None)
    }
}

/// Numbers of answers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Votes {
    pub yes: u32,
    pub no: u32,
}

impl Votes {
    fn note(&mut self, answer: Option<bool>) {
        self.yes += u32::from(answer == Some(true));
        self.no += u32::from(answer == Some(false));
    }

    /// Answer of at least five in six votes, if there are at least three votes.
    pub fn verdict(self) -> Option<bool> {
        let all = self.yes + self.no;
        match all >= 3 {
            true if self.no * 6 <= all => Some(true),
            true if self.yes * 6 <= all => Some(false),
            _ => None,
        }
    }
}
