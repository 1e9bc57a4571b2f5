//! Results of the taker, and the watches that writes make stale.

use super::super::hashes::HashFile;
use super::super::progress::{Finding, LineCounts};
use super::super::sink::{BlockRead, Sunk, Task};
use super::super::taker::Takes;
use super::super::watch::tell_damage;
use super::Scrub;
use super::state::State;
use headtime_sched::Passing;
use headtime_units::{Extent, Time};
use std::sync::atomic::Ordering;

impl<P: Passing> Scrub<P> {
    /// Handles the results of the data that were handed to the taker.
    pub(super) fn take_results(&mut self, now: Time) {
        let Some(taker) = &self.taker else { return };
        let (results, problem) = taker.sink.take();
        if results.is_empty() && problem.is_none() {
            return;
        }
        for result in results {
            self.is_sunk(result);
        }
        if let (Some(taker), Some(problem)) = (&mut self.taker, problem) {
            taker.takes = Takes::Nothing;
            // These blocks are read again after `resume`.
            for (number, _) in std::mem::take(&mut taker.sinking) {
                self.reading.want_again(number);
            }
            if self.plan.is_copy() {
                // The sink may have lost parts of these blocks, too.
                for (number, _) in std::mem::take(&mut self.reading.bad) {
                    self.reading.want_again(number);
                }
                self.reading.parts.clear();
                self.call_off();
            }
            if let Some(taker) = self.taker.as_ref().filter(|_| problem.is_loss) {
                taker.sink.watch().lose(problem.text.clone());
            }
            self.hold_until_mended(&problem.text);
        }
        self.publish(now);
    }

    fn is_sunk(&mut self, sunk: Sunk) {
        let Some(taker) = &mut self.taker else { return };
        match sunk {
            Sunk::Synced(nth) => self.state.synced(nth),
            Sunk::Again if taker.takes == Takes::Tries => taker.takes = Takes::All,
            Sunk::Again => {}
            Sunk::Damaged(number) => self.is_damaged(number),
            Sunk::Kept(block @ (number, _), compared) if taker.waits_for(block) => {
                // Only lines name the holes of a copy. The next server reads such a block again, in case a line is damaged.
                let extent = self.reading.extent_of(number);
                let is_listed =
                    self.plan.is_copy() && self.face.status().unreadable.within(extent) > 0;
                let is_current = !is_listed && !self.reading.rewritten.contains(&number);
                taker.has_taken(number, compared, is_current);
                self.close(number);
            }
            Sunk::Changed(block, hash) if taker.waits_for(block) => self.is_changed(block, hash),
            Sunk::Kept(..) | Sunk::Changed(..) => {}
        }
    }

    /// Notes that the page with the hash of this block is damaged. All blocks on the page are hashed anew.
    fn is_damaged(&mut self, number: u64) {
        let Some(taker) = &self.taker else { return };
        let (blocks, block) = (HashFile::beside(number), self.plan.block.get());
        let capacity = self.plan.identity.capacity.get();
        let (start, end) = (blocks.start * block, (blocks.end * block).min(capacity));
        let extent = Extent::at(start, end - start);
        if self
            .face
            .status()
            .damage
            .sectors
            .within(self.reading.extent_of(number))
            > 0
        {
            // The status lists this page already.
            return;
        }
        tell_damage(self.disk.name(), taker.sink.watch().blocks().path(), extent);
        self.face.status().damage.add(extent);
    }

    /// Notes that a block's contents differ from its hash. The change is recorded before the sink overwrites the old hash.
    fn is_changed(&mut self, (number, read): BlockRead, hash: u64) {
        let extent = self.reading.extent_of(number);
        let disk = self.disk.name();
        tracing::warn!(disk, sectors = %extent, "the scrub finds another content, though nobody has written");
        let is_new = self.face.status().changed.add(extent);
        self.is_found(is_new, Finding::Changed, extent);
        self.keep_counts();
        match &mut self.taker {
            Some(taker) if self.state.problem().is_none() => {
                taker.sink.send(Task::Keep((number, read), hash))
            }
            Some(taker) => {
                taker.sinking.remove(&number);
                self.reading.want_again(number);
            }
            None => {}
        }
    }

    /// Records a finding if it is new, and findings that could not be recorded before.
    pub(super) fn is_found(&mut self, is_new: bool, what: Finding, extent: Extent) {
        let progress = self.progress.as_mut();
        let written = progress.map(|kept| match is_new {
            true => kept.found(what, extent),
            false => kept.catch_up(),
        });
        self.kept(written);
    }

    /// Holds the scrub if its watch or its progress file is lost. Hashes and copies mean nothing without a watch, so the scrub can only
    /// begin anew.
    pub(super) fn look_at_watches(&mut self, now: Time) {
        self.watches.iter().for_each(|watch| watch.look_at_disk());
        let watch = self.taker.as_ref().map(|taker| taker.sink.watch());
        let why = match (&self.is_gone, watch) {
            (Some(why), _) => why.clone(),
            (None, Some(watch)) if watch.is_lost() => watch.lost().unwrap_or_default(),
            _ => return,
        };
        if !matches!(self.state, State::Lost(_)) {
            self.face.must_begin_anew.store(true, Ordering::SeqCst);
            self.hold(format!("{why}; `headtime scrub .. resume` begins anew"));
            self.state.lose();
            self.publish(now);
        }
        if !self.reading.is_reading() && !self.is_stopped() {
            self.keep();
            self.lets_go();
            self.face.has_let_go();
        }
    }

    /// Writes the marks: which blocks have current hashes, or are copied.
    pub(super) fn keep_marks(&mut self) {
        for watch in &self.watches {
            if watch.is_dirty()
                && let Err(error) = watch.write()
            {
                watch.lose(error.to_string());
            }
        }
    }

    /// Writes the numbers of unreadable and changed sectors.
    pub(super) fn keep_counts(&mut self) {
        let counts = {
            let status = self.face.status();
            LineCounts::of(&status.unreadable, &status.changed)
        };
        let written = self.progress.as_mut().map(|kept| kept.counts(counts));
        self.kept(written);
    }
}
