//! Lines and summary of a file of progress.

use super::Restored;
use crate::promises::Promises;
use crate::status::ScrubState;
use headtime_gaps::Verdict;
use headtime_linux::clock::Wall;
use headtime_units::Extent;

impl Restored {
    /// Takes over a line. For a `looked` line, returns the block that is done, and the number of its sectors that lines name as unreadable.
    /// Fails on a line that no server writes.
    pub(super) fn take_line(&mut self, line: &str) -> Result<Option<(u64, u64)>, ()> {
        let mut words = line.split(' ');
        let first = words.next();
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
        match first {
            Some(what @ ("unreadable" | "readable" | "changed" | "looked")) => {
                let (start, len) = number().zip(number()).ok_or(())?;
                if what == "looked" {
                    return Ok(Some((start, len)));
                }
                let extent = Extent::at(start, len);
                match what {
                    "changed" => self.changed.add(extent),
                    "readable" => self.unreadable.remove(extent),
                    _ => self.unreadable.add(extent),
                };
            }
            Some("state") => {
                self.state = match words.next() {
                    Some("running") => ScrubState::Running,
                    Some("paused") => ScrubState::Paused,
                    Some("done") => {
                        let at = words.next().map(str::parse).transpose();
                        self.done_at = at.map_err(|_| ())?.map(Wall);
                        ScrubState::Done
                    }
                    _ => return Err(()),
                }
            }
            Some("promise") => {
                // There is no verdict about the new promises yet.
                self.verdict = None;
                self.plan.promises = Promises::of_words(words).ok_or(())?;
            }
            Some("verdict") => {
                let name = words.next();
                let said = (Verdict::ALL.into_iter()).find(|said| Some(said.name()) == name);
                let at = words.next().and_then(|word| word.parse().ok());
                let (said, at) = said.zip(at).ok_or(())?;
                self.verdict = Some((said, Wall(at)));
            }
            Some("compared") => {
                let compared = number().ok_or(())?;
                let why_not: Vec<&str> = words.collect();
                let why_not = Some(why_not.join(" ")).filter(|why| !why.is_empty());
                self.compared = Some((compared, why_not));
            }
            _ => return Err(()),
        }
        Ok(None)
    }

    /// Takes over the numbers of sectors that no line names, or that lost lines have named. Fails on a summary that no server writes.
    pub(super) fn take_summary(&mut self, summary: Option<&str>, lines: u64) -> Result<(), ()> {
        let Some(summary) = summary else {
            self.damage.add(Extent::at(0, 0));
            if self.unreadable.is_full() {
                // More sectors may have been found, at unknown addresses.
                self.done.fill(0);
                self.damage.add(self.plan.range);
            }
            return Ok(());
        };
        let numbers: Vec<u64> = (summary.split(' ').skip(1).step_by(2))
            .map(|word| word.parse().map_err(|_| ()))
            .collect::<Result<_, _>>()?;
        let [all, beyond, changed, written] = numbers[..] else {
            return Err(());
        };
        self.unreadable.add_beyond(beyond);
        if self.state == ScrubState::Done && self.plan.is_copy() {
            // A finished copy does not read these sectors again, and their addresses are lost.
            let lost = all.saturating_sub(self.unreadable.sectors());
            self.unreadable.add_beyond(lost);
        }
        let lost = changed.saturating_sub(self.changed.sectors());
        self.changed.add_beyond(lost);
        // A server that was killed may have written lines and no new summary, so more lines than in the summary are no damage.
        if lines < written && self.damage.pages == 0 {
            self.damage.add(Extent::at(0, 0));
        }
        Ok(())
    }

    /// Sets a finished scrub back to running if damage to the progress file has cost the mark of a finished block. A finished copy stays
    /// finished, since a copy does not use these marks.
    pub(super) fn resume_if_marks_are_lost(&mut self) {
        if self.damage.pages == 0 {
            return;
        }
        let lacks = |number: u64| !self.is_done(number);
        if self.state == ScrubState::Done
            && !self.plan.is_copy()
            && self.plan.range_blocks().any(lacks)
        {
            (self.state, self.done_at, self.compared) = (ScrubState::Running, None, None);
        }
    }
}
