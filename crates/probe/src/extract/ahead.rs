//! Extent of read-ahead behind a read, and its lifetime in the buffer.
//!
//! The questions follow DIXtrac (Schindler and Ganger, CMU-CS-99-176): read, wait, and see which sectors behind the read are held. Variants
//! cross the end of a track or cylinder, send another command at once, or look before the read.

mod least;

use super::buffer_probe::{BufferProbe, EDGE_SECTORS};
use super::error::ExtractError;
use super::learned_keys::LearnedKeys;
use headtime_disk::Layout;
use headtime_disk::profile::{CacheSpec, ReadAhead, RequestedData};
use headtime_units::{Extent, Lba, Nanos};
use serde::{Deserialize, Serialize};

/// Results about read-ahead. Numbers are sectors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ahead {
    pub kind: Option<ReadAhead>,
    /// Most sectors that are read ahead.
    pub most: Option<u64>,
    /// Capacity of a segment.
    pub segment: Option<u64>,
    pub requested: Option<RequestedData>,
    pub on_idle_hit: Option<bool>,
    pub free_sectors: Option<bool>,
    /// Least read-ahead before another command is served.
    pub least: Option<u64>,
    /// Sectors that pass under the head before another command is served, by obligation or during its processing.
    pub passing: Option<u64>,
    /// Least read-ahead behind a second read on a track.
    pub second: Option<u64>,
    /// True if the drive reads a whole track, starting anywhere.
    pub around: Option<bool>,
}

/// Largest segment that the questions look for.
const SEGMENT_SECTORS_MAX: u64 = 65_535;
/// Number of questions per decision.
const VOTES_PER_DECISION: u32 = 6;

/// Questions in their order.
#[derive(Clone, Copy, Debug)]
pub(super) enum AheadQuestion {
    Kind,
    Segment,
    Requested,
    IdleHit,
    Free,
    Least,
    Second,
}

pub(super) const QUESTIONS: [AheadQuestion; 7] = [
    AheadQuestion::Kind,
    AheadQuestion::Segment,
    AheadQuestion::Requested,
    AheadQuestion::IdleHit,
    AheadQuestion::Free,
    AheadQuestion::Least,
    AheadQuestion::Second,
];

/// Sectors from the start of a track to the end of a read that leaves most of the track behind.
fn early(per_track: u64) -> u64 {
    EDGE_SECTORS.min(per_track / 4).max(1)
}

fn anywhere(_: &Layout, _: Extent) -> bool {
    true
}

/// Returns true if the track is the first track of its cylinder.
fn first_of_cylinder(layout: &Layout, track: Extent) -> bool {
    let before = track.start.get().checked_sub(1);
    before.is_none_or(|before| layout.cylinder_end(Lba::new(before)) == track.start)
}

/// Returns true if the track is not the last track of its cylinder.
fn inside_cylinder(layout: &Layout, track: Extent) -> bool {
    layout.cylinder_end(track.start) > track.end()
}

impl Ahead {
    pub(super) fn ask(
        &mut self,
        question: AheadQuestion,
        buffer: &mut BufferProbe<'_, '_, '_>,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        match question {
            AheadQuestion::Kind => self.kind(buffer, learned),
            AheadQuestion::Segment => self.segment(buffer, learned),
            AheadQuestion::Free => self.free(buffer, learned),
            _ if self.kind == Some(ReadAhead::Off) => Ok(()),
            AheadQuestion::Requested => self.requested(buffer, learned),
            AheadQuestion::IdleHit => self.idle_hit(buffer, learned),
            AheadQuestion::Least => self.least(buffer, learned),
            AheadQuestion::Second => self.second(buffer, learned),
        }
    }

    /// Reads `len` sectors that end `into` sectors after the start of a track, and pauses for a read-ahead of at least `reach`. Returns
    /// true if the sector at `offset` from the last one is then held.
    fn behind(
        buffer: &mut BufferProbe<'_, '_, '_>,
        (len, into, reach): (u64, u64, u64),
        offset: i64,
        good: impl Fn(&Layout, Extent) -> bool,
    ) -> Result<Option<bool>, ExtractError> {
        let Some(track) = buffer.track(len, good) else {
            return Ok(None);
        };
        let end = track.start.get() + into;
        let Some(at) = (end as i64 - 1 + offset)
            .try_into()
            .ok()
            .filter(|at| *at < buffer.bench.capacity())
        else {
            return Ok(None);
        };
        buffer.away(end)?;
        buffer.bench.read(end - len, len)?;
        buffer.rest(reach.max(offset.unsigned_abs()));
        buffer.is_held_from_afar(at).map(Some)
    }

    /// Number of sectors that are held behind a read of `len`.
    fn held_behind(
        buffer: &mut BufferProbe<'_, '_, '_>,
        read: (u64, u64, u64),
        good: impl Fn(&Layout, Extent) -> bool + Copy,
    ) -> Result<Option<u64>, ExtractError> {
        buffer.largest(SEGMENT_SECTORS_MAX, |buffer, count| {
            Ahead::behind(buffer, read, count as i64, good)
        })
    }

    fn kind(
        &mut self,
        buffer: &mut BufferProbe<'_, '_, '_>,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        let per_track = buffer.per_track;
        let on = buffer.votes(VOTES_PER_DECISION, |buffer| {
            // A segment may be too small for the rest of the track.
            Ahead::behind(buffer, (1, per_track - EDGE_SECTORS, 1), 2, anywhere)
        })?;
        let key = "cache.read_ahead";
        match on.verdict() {
            Some(true) => {}
            Some(false) => {
                self.kind = Some(ReadAhead::Off);
                learned.know(key, 0.9);
                return Ok(());
            }
            None => {
                learned.doubt(
                    key,
                    "sectors behind a read are sometimes held and sometimes not",
                );
                return Ok(());
            }
        }
        let last = |layout: &Layout, track: Extent| !inside_cylinder(layout, track);
        let over_cylinder =
            buffer.votes(VOTES_PER_DECISION, |buffer| Ahead::over_end(buffer, last))?;
        let over_track = buffer.votes(VOTES_PER_DECISION, |buffer| {
            Ahead::over_end(buffer, inside_cylinder)
        })?;
        let borders = [over_track, over_cylinder].map(|votes| match votes.yes + votes.no {
            0 => None,
            _ => Some(votes.verdict()),
        });
        let kind = match borders {
            [Some(Some(true)), Some(Some(false))] => Some(ReadAhead::CylinderEnd),
            [Some(Some(true)), Some(Some(true)) | None] | [None, Some(Some(true))] => {
                Some(ReadAhead::SegmentFull)
            }
            // A read across a border distinguishes the remaining kinds.
            [Some(Some(false)), Some(Some(false)) | None] | [None, Some(Some(false))] => {
                let straddles =
                    buffer.votes(VOTES_PER_DECISION, |buffer| Ahead::over_border(buffer))?;
                match straddles.verdict() {
                    Some(true) => Some(ReadAhead::NextTrack),
                    Some(false) => Some(ReadAhead::TrackEnd),
                    None => None,
                }
            }
            _ => None,
        };
        self.kind = kind;
        let Some(kind) = kind else {
            learned.doubt(key, "where reading ahead stops differs from read to read");
            return Ok(());
        };
        learned.know(key, 0.9);
        if kind == ReadAhead::NextTrack {
            learned.doubt(
                "cache.read_ahead_max",
                "reading ahead stops at the end of a track whatever it is",
            );
            return Ok(());
        }
        let into = early(per_track);
        let most = Ahead::held_behind(buffer, (1, into, 1), |layout, track| {
            // The first track of a cylinder has the most sectors ahead.
            kind != ReadAhead::CylinderEnd || first_of_cylinder(layout, track)
        })?;
        let room = match kind {
            ReadAhead::TrackEnd => per_track - into,
            ReadAhead::CylinderEnd => buffer.track(0, first_of_cylinder).map_or(0, |track| {
                (buffer.layout.cylinder_end(track.start) - track.start).get() * 97 / 100
            }),
            _ => SEGMENT_SECTORS_MAX,
        };
        match most {
            None => learned.doubt("cache.read_ahead_max", "it differs from read to read"),
            Some(most) if most >= room => {
                learned.doubt(
                    "cache.read_ahead_max",
                    format!("nothing shows more than {room} sectors"),
                );
            }
            Some(most) => {
                self.most = Some(most);
                learned.know("cache.read_ahead_max", 0.9);
            }
        }
        Ok(())
    }

    /// Returns true if read-ahead from the end of a track crosses to the next track.
    fn over_end(
        buffer: &mut BufferProbe<'_, '_, '_>,
        good: impl Fn(&Layout, Extent) -> bool,
    ) -> Result<Option<bool>, ExtractError> {
        let Some(track) = buffer.any_track(good) else {
            return Ok(None);
        };
        let end = track.end().get();
        buffer.away(end)?;
        buffer.bench.read(end - EDGE_SECTORS, 1)?;
        buffer.rest(2 * EDGE_SECTORS);
        buffer.is_held_from_afar(end + 1).map(Some)
    }

    /// Returns true if read-ahead behind a read across two tracks continues to the end of the track after both.
    fn over_border(buffer: &mut BufferProbe<'_, '_, '_>) -> Result<Option<bool>, ExtractError> {
        let Some(track) = buffer.track(0, anywhere) else {
            return Ok(None);
        };
        let second = buffer.layout.track_extent_of(track.end());
        let third = buffer.layout.track_extent_of(second.end());
        buffer.away(track.start.get())?;
        buffer.bench.read(track.end().get() - 2, 4)?;
        buffer.rest(2 * buffer.per_track);
        // A segment may hold less than a track.
        buffer
            .is_held_from_afar(third.end().get() - EDGE_SECTORS)
            .map(Some)
    }

    /// Most sectors that the drive may read ahead behind a read.
    fn reach(&self, buffer: &mut BufferProbe<'_, '_, '_>) -> u64 {
        match (self.kind, self.most) {
            (Some(ReadAhead::Off), _) => 0,
            (_, Some(most)) => most,
            (Some(ReadAhead::CylinderEnd), None) => {
                buffer.any_track(first_of_cylinder).map_or(0, |track| {
                    (buffer.layout.cylinder_end(track.start) - track.start).get()
                })
            }
            _ => 2 * buffer.per_track,
        }
    }

    fn segment(
        &mut self,
        buffer: &mut BufferProbe<'_, '_, '_>,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        let key = "cache.segment_sectors";
        let into = early(buffer.per_track);
        let reach = self.reach(buffer);
        // Find a read that exceeds the segment: its first sector is lost.
        let mut len = 32;
        loop {
            let fits = buffer.votes(3, |buffer| {
                Ahead::behind(buffer, (len, into, reach), 1 - len as i64, anywhere)
            })?;
            match fits.verdict() {
                Some(false) => break,
                _ if len < SEGMENT_SECTORS_MAX => len = (len * 2).min(SEGMENT_SECTORS_MAX),
                _ => {
                    learned.doubt(
                        key,
                        format!("a segment holds {SEGMENT_SECTORS_MAX} sectors or more"),
                    );
                    return Ok(());
                }
            }
        }
        let behind = match self.kind {
            Some(ReadAhead::Off) => Some(0),
            // Read-ahead runs to the end of the next track, or a little farther.
            Some(ReadAhead::NextTrack) => {
                let least = 2 * buffer.per_track - into;
                let more = buffer.largest(buffer.per_track, |buffer, more| {
                    let offset = (least + more) as i64;
                    Ahead::behind(buffer, (len, into, reach), offset, anywhere)
                })?;
                more.map(|more| least + more)
            }
            _ => Ahead::held_behind(buffer, (len, into, len), anywhere)?,
        };
        let Some(behind) = behind.filter(|behind| *behind < SEGMENT_SECTORS_MAX) else {
            learned.doubt(
                key,
                "how much is held behind a long read differs from read to read",
            );
            return Ok(());
        };
        // First sector that is held, counted back from the last.
        let held = buffer.largest(len + behind, |buffer, back| {
            let offset = behind as i64 + 1 - back as i64;
            Ahead::behind(buffer, (len, into, reach.max(behind)), offset, anywhere)
        })?;
        match held {
            Some(held) if held > 0 && held < len + behind => {
                self.segment = Some(held);
                learned.know(key, 0.9);
            }
            _ => learned.doubt(key, "what is held of a long read differs from read to read"),
        }
        Ok(())
    }

    fn requested(
        &mut self,
        buffer: &mut BufferProbe<'_, '_, '_>,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        let key = "cache.requested_data";
        let (Some(segment), Some(kind)) = (self.segment, self.kind) else {
            learned.doubt(key, "the size of a segment is not known");
            return Ok(());
        };
        if kind == ReadAhead::NextTrack {
            learned.doubt(
                key,
                "reading ahead goes on to the end of a track, over whatever the segment holds",
            );
            return Ok(());
        }
        let (len, into) = (segment.saturating_sub(4).max(1), early(buffer.per_track));
        // The distance exceeds the least read-ahead.
        let more = self
            .most
            .unwrap_or(SEGMENT_SECTORS_MAX)
            .min(buffer.per_track - into)
            * 3
            / 4;
        if more < 8 {
            learned.doubt(key, "too little is read ahead to show it");
            return Ok(());
        }
        let over = buffer.votes(VOTES_PER_DECISION, |buffer| {
            Ahead::behind(buffer, (len, into, len), more as i64, anywhere)
        })?;
        match over.verdict() {
            Some(over) => {
                self.requested = Some(match over {
                    true => RequestedData::Replaceable,
                    false => RequestedData::Kept,
                });
                learned.know(key, 0.9);
            }
            None => learned.doubt(key, "it differs from read to read"),
        }
        Ok(())
    }

    fn idle_hit(
        &mut self,
        buffer: &mut BufferProbe<'_, '_, '_>,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        let key = "cache.read_ahead_on_idle_hit";
        let Some(most) = self.most else {
            learned.doubt(key, "reading ahead always comes to where it has to stop");
            return Ok(());
        };
        let into = early(buffer.per_track);
        if self.kind != Some(ReadAhead::SegmentFull) && into + most + 4 > buffer.per_track {
            learned.doubt(key, "reading ahead comes to where it has to stop");
            return Ok(());
        }
        let goes_on = buffer.votes(VOTES_PER_DECISION, |buffer| {
            let Some(track) = buffer.track(0, anywhere) else {
                return Ok(None);
            };
            let last = track.start.get() + into - 1 + most;
            buffer.away(last)?;
            buffer.bench.read(track.start.get() + into - 1, 1)?;
            buffer.rest(most);
            if !buffer.is_held(last)? {
                return Ok(None);
            }
            buffer.rest(4);
            buffer.is_held(last + 2).map(Some)
        })?;
        match goes_on.verdict() {
            Some(goes_on) => {
                self.on_idle_hit = Some(goes_on);
                learned.know(key, 0.9);
            }
            None => learned.doubt(key, "it differs from read to read"),
        }
        Ok(())
    }

    fn free(
        &mut self,
        buffer: &mut BufferProbe<'_, '_, '_>,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        let key = "cache.read_free_sectors";
        let before = buffer.votes(2 * VOTES_PER_DECISION, |buffer| {
            let Some(track) = buffer.track(0, anywhere) else {
                return Ok(None);
            };
            let lba = track.start.get() + buffer.per_track / 2;
            buffer.away(lba)?;
            buffer.bench.read(lba, 1)?;
            buffer.is_held(lba - 1).map(Some)
        })?;
        let Some(free) = before.verdict() else {
            learned.doubt(
                key,
                "sectors before a read are sometimes held and sometimes not",
            );
            return Ok(());
        };
        self.free_sectors = Some(free);
        learned.know(key, 0.9);
        if !free {
            return Ok(());
        }
        // A head that reads a track from any start has passed the whole track after a turn. A drive that reads ahead beyond the track has
        // left by then.
        if !matches!(self.kind, Some(ReadAhead::TrackEnd | ReadAhead::NextTrack)) {
            return Ok(());
        }
        let per_track = buffer.per_track;
        // Read-ahead during the pause must not evict the sectors in front.
        let room = self.segment.unwrap_or(0).saturating_sub(EDGE_SECTORS + 8);
        let room = room.min(per_track * 3 / 4);
        if room * 2 < per_track {
            return Ok(());
        }
        let all = buffer.votes(2 * VOTES_PER_DECISION, |buffer| {
            let Some(track) = buffer.track(0, anywhere) else {
                return Ok(None);
            };
            let lba = track.end().get() - EDGE_SECTORS;
            buffer.away(lba)?;
            buffer.bench.read(lba, 1)?;
            buffer
                .bench
                .probe
                .pause(Nanos::from_nanos((1.05 * buffer.turn) as u64));
            buffer.is_held(lba - room).map(Some)
        })?;
        self.around = match all.verdict() {
            Some(true) => Some(true),
            _ if all.no >= VOTES_PER_DECISION / 2 => Some(false),
            _ => None,
        };
        Ok(())
    }

    /// Copies the results to a profile.
    pub(super) fn apply(&self, cache: &mut CacheSpec) {
        if let Some(kind) = self.kind {
            cache.read_ahead = kind;
        }
        if cache.read_ahead == ReadAhead::Off {
            return;
        }
        let size = u64::from(cache.segment_sectors);
        let most = self.most.map_or(size, |most| most.min(size));
        cache.read_ahead_max = most as u32;
        cache.read_ahead_min = self.least.unwrap_or(0).min(most) as u32;
        cache.second_read_ahead_min = self.second.unwrap_or(0).min(65_535) as u32;
        cache.requested_data = self.requested.unwrap_or(RequestedData::Kept);
        cache.read_ahead_on_idle_hit = self.on_idle_hit.unwrap_or(false);
    }
}
