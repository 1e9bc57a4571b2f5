//! Least read-ahead before another command is served.

use super::super::buffer_probe::BufferProbe;
use super::super::error::ExtractError;
use super::super::learned_keys::LearnedKeys;
use super::{Ahead, SEGMENT_SECTORS_MAX, VOTES_PER_DECISION, anywhere, early};

impl Ahead {
    /// Sends the drive away `after` nanoseconds after a read, or after a `second` read on the track. Returns true if the sector `count`
    /// behind the read is then held.
    fn interrupted(
        buffer: &mut BufferProbe<'_, '_, '_>,
        into: u64,
        count: u64,
        (after, second): (f64, bool),
    ) -> Result<Option<bool>, ExtractError> {
        let Some(track) = buffer.track(0, anywhere) else {
            return Ok(None);
        };
        let mut lba = track.start.get() + into;
        buffer.away(lba)?;
        buffer.bench.read(lba, 1)?;
        if second {
            lba += 1;
            buffer.bench.read(lba, 1)?;
        }
        buffer.pause(after / buffer.turn);
        buffer.away(lba)?;
        buffer.rest(0);
        buffer.is_held(lba + count).map(Some)
    }

    /// Approximate number of sectors that are held behind the interrupted read.
    fn passed(
        buffer: &mut BufferProbe<'_, '_, '_>,
        (into, most): (u64, u64),
        after: (f64, bool),
    ) -> Result<Option<u64>, ExtractError> {
        buffer.about(most, |buffer, count| {
            buffer.likely(|buffer| Ahead::interrupted(buffer, into, count, after))
        })
    }

    /// Returns true if the number is always exactly `count`.
    fn is_exact(
        buffer: &mut BufferProbe<'_, '_, '_>,
        into: u64,
        count: u64,
        after: (f64, bool),
    ) -> Result<bool, ExtractError> {
        let mut ask = |count| {
            buffer.votes(VOTES_PER_DECISION, |buffer| {
                Ahead::interrupted(buffer, into, count, after)
            })
        };
        Ok((count == 0 || ask(count)?.verdict() == Some(true))
            && ask(count + 1)?.verdict() == Some(false))
    }

    pub(super) fn least(
        &mut self,
        buffer: &mut BufferProbe<'_, '_, '_>,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        let key = "cache.read_ahead_min";
        if buffer.segments.is_none_or(|count| count < 2) {
            learned.doubt(
                key,
                "the buffer forgets what was read when another command comes",
            );
            return Ok(());
        }
        let into = early(buffer.per_track);
        let most = buffer.per_track - into - 2;
        let slot = buffer.turn / buffer.per_track as f64;
        let more = f64::max(4.0 * slot, 150e3);
        let mut held = [0; 2];
        for (held, after) in held.iter_mut().zip([0.0, more]) {
            let found = Ahead::passed(buffer, (into, most), (after, false))?;
            let Some(found) = found.filter(|found| *found < most) else {
                learned.doubt(key, "a track passes while a command is processed");
                return Ok(());
            };
            *held = found;
        }
        self.passing = Some(held[0]);
        let grown = held[1].saturating_sub(held[0]) as f64;
        // The mandatory read-ahead is the same number each time.
        let is_exact =
            grown < 0.5 * more / slot && Ahead::is_exact(buffer, into, held[0], (0.0, false))?;
        if is_exact {
            self.least = Some(held[0]);
            learned.know(key, 0.9);
        } else {
            let why = format!(
                "it does not show: about {} sectors pass while a command is processed",
                held[0]
            );
            learned.doubt(key, why);
        }
        Ok(())
    }

    /// Notes that `read_on` sectors are read behind a read before the arm leaves for a waiting command.
    pub(in super::super) fn note_least(&mut self, read_on: u64, learned: &mut LearnedKeys) {
        let key = "cache.read_ahead_min";
        match self.least {
            None => {
                self.least = Some(read_on);
                learned.know(key, 0.9);
            }
            Some(least) if least == read_on => {}
            Some(least) => {
                self.least = None;
                learned.doubt(
                    key,
                    format!("{least} sectors are read before a command that comes later, {read_on} before one that waits"),
                );
            }
        }
    }

    pub(super) fn second(
        &mut self,
        buffer: &mut BufferProbe<'_, '_, '_>,
        learned: &mut LearnedKeys,
    ) -> Result<(), ExtractError> {
        let key = "cache.second_read_ahead_min";
        let Some(passing) = self.passing else {
            learned.doubt(key, "how much is read before another command is not known");
            return Ok(());
        };
        let into = early(buffer.per_track);
        let room = self.segment.unwrap_or(u64::MAX).saturating_sub(4);
        let most = (buffer.per_track - into - 4).min(room);
        if most < passing * 2 + 16 {
            learned.doubt(key, "a track passes while a command is processed");
            return Ok(());
        }
        let found = Ahead::passed(buffer, (into, most), (0.0, true))?;
        // Reference: sectors that pass in the time of a second read, when no second read is sent.
        let gap = buffer.hit.middle;
        let passed = Ahead::passed(buffer, (into, most), (gap, false))?;
        match found.zip(passed) {
            Some((found, passed)) if found * 2 <= passed * 3 + 16 => {
                self.second = Some(0);
                learned.know(key, 0.8);
            }
            Some((found, _)) if found * 10 >= most * 9 => {
                self.second = Some(SEGMENT_SECTORS_MAX);
                learned.know(key, 0.9);
            }
            Some((found, _)) => {
                if Ahead::is_exact(buffer, into, found, (0.0, true))? {
                    self.second = Some(found);
                    learned.know(key, 0.7);
                } else {
                    learned.doubt(key, "it differs from read to read");
                }
            }
            None => learned.doubt(key, "it differs from read to read"),
        }
        Ok(())
    }
}
