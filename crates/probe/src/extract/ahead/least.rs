//! Least read-ahead before another command is served.

use super::super::desk::Desk;
use super::super::error::ExtractError;
use super::super::told::Told;
use super::{Ahead, MOST, VOTES, anywhere, early};

impl Ahead {
    /// Sends the drive away `after` nanoseconds after a read, or after a `second` read on the track. Returns true if the sector `count`
    /// behind the read is then held.
    fn interrupted(
        desk: &mut Desk<'_, '_, '_>,
        into: u64,
        count: u64,
        (after, second): (f64, bool),
    ) -> Result<Option<bool>, ExtractError> {
        let Some(track) = desk.track(0, anywhere) else {
            return Ok(None);
        };
        let mut lba = track.start.get() + into;
        desk.away(lba)?;
        desk.bench.read(lba, 1)?;
        if second {
            lba += 1;
            desk.bench.read(lba, 1)?;
        }
        desk.pause(after / desk.turn);
        desk.away(lba)?;
        desk.rest(0);
        desk.is_held(lba + count).map(Some)
    }

    /// Approximate number of sectors that are held behind the interrupted read.
    fn passed(
        desk: &mut Desk<'_, '_, '_>,
        (into, most): (u64, u64),
        after: (f64, bool),
    ) -> Result<Option<u64>, ExtractError> {
        desk.about(most, |desk, count| {
            desk.likely(|desk| Ahead::interrupted(desk, into, count, after))
        })
    }

    /// Returns true if the number is always exactly `count`.
    fn is_exact(
        desk: &mut Desk<'_, '_, '_>,
        into: u64,
        count: u64,
        after: (f64, bool),
    ) -> Result<bool, ExtractError> {
        let mut ask =
            |count| desk.votes(VOTES, |desk| Ahead::interrupted(desk, into, count, after));
        Ok((count == 0 || ask(count)?.verdict() == Some(true))
            && ask(count + 1)?.verdict() == Some(false))
    }

    pub(super) fn least(
        &mut self,
        desk: &mut Desk<'_, '_, '_>,
        told: &mut Told,
    ) -> Result<(), ExtractError> {
        let key = "cache.read_ahead_min";
        if desk.segments.is_none_or(|count| count < 2) {
            told.doubt(
                key,
                "the buffer forgets what was read when another command comes",
            );
            return Ok(());
        }
        let into = early(desk.per_track);
        let most = desk.per_track - into - 2;
        let slot = desk.turn / desk.per_track as f64;
        let more = f64::max(4.0 * slot, 150e3);
        let mut held = [0; 2];
        for (held, after) in held.iter_mut().zip([0.0, more]) {
            let found = Ahead::passed(desk, (into, most), (after, false))?;
            let Some(found) = found.filter(|found| *found < most) else {
                told.doubt(key, "a track passes while a command is processed");
                return Ok(());
            };
            *held = found;
        }
        self.passing = Some(held[0]);
        let grown = held[1].saturating_sub(held[0]) as f64;
        // The mandatory read-ahead is the same number each time.
        let is_exact =
            grown < 0.5 * more / slot && Ahead::is_exact(desk, into, held[0], (0.0, false))?;
        if is_exact {
            self.least = Some(held[0]);
            told.know(key, 0.9);
        } else {
            let why = format!(
                "it does not show: about {} sectors pass while a command is processed",
                held[0]
            );
            told.doubt(key, why);
        }
        Ok(())
    }

    /// Notes that `read_on` sectors are read behind a read before the arm leaves for a waiting command.
    pub(in super::super) fn note_least(&mut self, read_on: u64, told: &mut Told) {
        let key = "cache.read_ahead_min";
        match self.least {
            None => {
                self.least = Some(read_on);
                told.know(key, 0.9);
            }
            Some(least) if least == read_on => {}
            Some(least) => {
                self.least = None;
                told.doubt(
                    key,
                    format!("{least} sectors are read before a command that comes later, {read_on} before one that waits"),
                );
            }
        }
    }

    pub(super) fn second(
        &mut self,
        desk: &mut Desk<'_, '_, '_>,
        told: &mut Told,
    ) -> Result<(), ExtractError> {
        let key = "cache.second_read_ahead_min";
        let Some(passing) = self.passing else {
            told.doubt(key, "how much is read before another command is not known");
            return Ok(());
        };
        let into = early(desk.per_track);
        let room = self.segment.unwrap_or(u64::MAX).saturating_sub(4);
        let most = (desk.per_track - into - 4).min(room);
        if most < passing * 2 + 16 {
            told.doubt(key, "a track passes while a command is processed");
            return Ok(());
        }
        let found = Ahead::passed(desk, (into, most), (0.0, true))?;
        // Reference: sectors that pass in the time of a second read, when no second read is sent.
        let gap = desk.hit.middle;
        let passed = Ahead::passed(desk, (into, most), (gap, false))?;
        match found.zip(passed) {
            Some((found, passed)) if found * 2 <= passed * 3 + 16 => {
                self.second = Some(0);
                told.know(key, 0.8);
            }
            Some((found, _)) if found * 10 >= most * 9 => {
                self.second = Some(MOST);
                told.know(key, 0.9);
            }
            Some((found, _)) => {
                if Ahead::is_exact(desk, into, found, (0.0, true))? {
                    self.second = Some(found);
                    told.know(key, 0.7);
                } else {
                    told.doubt(key, "it differs from read to read");
                }
            }
            None => told.doubt(key, "it differs from read to read"),
        }
        Ok(())
    }
}
