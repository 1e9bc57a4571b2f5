//! Handling of the data that a scrub reads, and of writes that make such data stale.

use super::super::hashes::HashFile;
use super::super::progress::{Finding, LineCounts};
use super::super::sink::{Sunk, Whole};
use super::super::watch::tell_damage;
use super::Scrub;
use headtime_sched::Passing;
use headtime_units::{Extent, Lba, Time};
use std::sync::atomic::Ordering;

impl<P: Passing> Scrub<P> {
    /// Hands the data of a read to the sink. Returns false if there is no sink or there are no data.
    pub(super) fn hand_over(
        &mut self,
        (extent, read): (Extent, u64),
        data: Option<&[u8]>,
        blocks: &[Lba],
    ) -> bool {
        let (Some(_), Some(data)) = (&self.sink, data) else {
            return false;
        };
        if self.sink_has_failed {
            // A failed sink takes no data. These blocks are read again after `resume`.
            for block in blocks {
                self.want_again(self.number(*block));
            }
            return true;
        }
        if self.plan.is_copy() {
            for block in blocks {
                self.can_be_read(self.scan.wanted().block_at(*block));
            }
        }
        let Some(sink) = &self.sink else { return false };
        let wholes = blocks.iter().map(|block| {
            let number = self.number(*block);
            Whole {
                number,
                read,
                extent: self.scan.wanted().block_at(*block),
                is_known: sink.watch().knows(number),
            }
        });
        let wholes: Vec<Whole> = wholes.collect();
        self.sinking
            .extend(wholes.iter().map(|whole| (whole.number, read)));
        sink.data(extent, data, wholes);
        true
    }

    /// Handles the results of the data that were handed to the sink.
    pub(super) fn take_sunk(&mut self, now: Time) {
        let Some(sink) = &self.sink else { return };
        let (sunk, problem) = sink.take();
        if sunk.is_empty() && problem.is_none() {
            return;
        }
        for sunk in sunk {
            self.is_sunk(sunk);
        }
        if let Some(problem) = problem {
            (self.sink_has_failed, self.waits_for_sink) = (true, false);
            // These blocks are read again after `resume`.
            for (number, _) in std::mem::take(&mut self.sinking) {
                self.want_again(number);
            }
            if self.plan.is_copy() {
                // The sink may have lost parts of these blocks, too.
                for (number, _) in std::mem::take(&mut self.bad) {
                    self.want_again(number);
                }
                self.parts.clear();
                self.call_off();
            }
            if let Some(sink) = self.sink.as_ref().filter(|_| problem.is_loss) {
                sink.watch().lose(problem.text.clone());
            }
            self.hold_until_mended(&problem.text);
        }
        self.publish(now);
    }

    fn is_sunk(&mut self, sunk: Sunk) {
        match sunk {
            Sunk::Synced(nth) => self.ending = self.ending.synced(nth),
            Sunk::Again => self.waits_for_sink = false,
            Sunk::Damaged { number } => self.is_damaged(number),
            Sunk::Kept {
                number,
                read,
                compared,
            } => {
                if self.sinking.get(&number) != Some(&read) {
                    return;
                }
                self.sinking.remove(&number);
                self.compared += u64::from(compared);
                let sink = self.sink.as_ref();
                // Only lines name the holes of a copy. The next server reads such a block again, in case a line is damaged.
                let is_listed = self.plan.is_copy()
                    && self.face.status().unreadable.within(self.extent_of(number)) > 0;
                let learns = !is_listed && !self.rewritten.contains(&number);
                if let Some(sink) = sink.filter(|_| learns) {
                    sink.watch().learn(number);
                }
                self.close(number);
            }
            Sunk::Changed { number, read, hash } => {
                if self.sinking.get(&number) == Some(&read) {
                    self.is_changed((number, read), hash);
                }
            }
        }
    }

    /// Notes that the page with the hash of this block is damaged. All blocks on the page are hashed anew.
    fn is_damaged(&mut self, number: u64) {
        let Some(sink) = &self.sink else { return };
        let (blocks, block) = (HashFile::beside(number), self.plan.block.get());
        let capacity = self.plan.identity.capacity.get();
        let (start, end) = (blocks.start * block, (blocks.end * block).min(capacity));
        let extent = Extent::at(start, end - start);
        if self
            .face
            .status()
            .damage
            .sectors
            .within(self.extent_of(number))
            > 0
        {
            // The status lists this page already.
            return;
        }
        tell_damage(self.disk.name(), sink.watch().blocks().path(), extent);
        self.face.status().damage.add(extent);
    }

    /// Notes that a block's contents differ from its hash. The change is recorded before the sink overwrites the old hash.
    fn is_changed(&mut self, (number, read): (u64, u64), hash: u64) {
        let extent = self.extent_of(number);
        let disk = self.disk.name();
        tracing::warn!(disk, sectors = %extent, "the scrub finds another content, though nobody has written");
        let is_new = self.face.status().changed.add(extent);
        self.is_found(is_new, Finding::Changed, extent);
        self.keep_counts();
        match &self.sink {
            Some(sink) if self.held.is_none() => sink.keep(number, read, hash),
            _ => {
                self.sinking.remove(&number);
                self.want_again(number);
            }
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

    /// Sectors of a block.
    pub(super) fn extent_of(&self, number: u64) -> Extent {
        let start = Lba::new(number * self.plan.block.get());
        self.scan.wanted().block_at(start)
    }

    /// Makes a block wanted again that was requested and is not done after all.
    pub(super) fn want_again(&mut self, number: u64) {
        self.open.remove(&number);
        self.rewritten.remove(&number);
        self.scan.want(self.extent_of(number));
    }

    /// Handles a write that is about to start.
    pub(super) fn is_written(&mut self, now: Time, extent: Extent) {
        for watch in &self.watches {
            watch.forget(extent);
        }
        if self.plan.is_copy() {
            self.want_written(now, extent);
        } else if self.sink.is_some() {
            let block = self.plan.block.get();
            let (first, last) = (extent.start.get() / block, (extent.end().get() - 1) / block);
            let open = self.open.range(first..=last);
            self.rewritten.extend(open.map(|(number, _)| *number));
        }
    }

    /// Holds the scrub if its watch or its progress file is lost. Hashes and copies mean nothing without a watch, so the scrub can only
    /// begin anew.
    pub(super) fn look_at_watches(&mut self, now: Time) {
        self.watches.iter().for_each(|watch| watch.look_at_disk());
        let why = match (&self.is_gone, &self.sink) {
            (Some(why), _) => why.clone(),
            (None, Some(sink)) if sink.watch().is_lost() => sink.watch().lost().unwrap_or_default(),
            _ => return,
        };
        if !self.face.must_begin_anew.swap(true, Ordering::SeqCst) {
            self.hold(format!("{why}; `headtime scrub .. resume` begins anew"));
            self.publish(now);
        }
        let under_way = self.scan.in_flight() > 0 || self.part.is_some();
        if !under_way && !self.is_stopped() {
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
