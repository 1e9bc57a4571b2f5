//! The promises of a scrub while it runs: checks, verdicts and reports.

use super::super::promises::{PromiseStatus, Promises};
use super::Scrub;
use super::promise_date::{OnFile, PromiseDate};
use super::state::State;
use headtime_gaps::{Idle, Promised, Verdict};
use headtime_linux::clock::Wall;
use headtime_sched::Passing;
use headtime_units::{MorePercent, Nanos, Sectors, Time};

/// Period after which the load is assumed to repeat.
const DAY: Nanos = Nanos::from_secs(86_400);

impl<P: Passing> Scrub<P> {
    /// Takes over changed promises, and checks whether the promises can be kept, if a check is due.
    pub(super) fn see_to_promises(&mut self, now: Time) {
        if let Some(promises) = self.face.promised() {
            self.promise(now, promises);
        }
        if self.state == State::Over || self.is_stopped() {
            return;
        }
        let rests = self.on_file.paused || self.state.problem().is_some();
        self.reading.tell_search();
        let news = match self.is_drawn() {
            // Writes after the line do not add work, so only the date matters now.
            true => self.reading.scan.overdue(now),
            false => self.reading.scan.look(now, rests),
        };
        if news {
            self.tell_promises(now);
        }
    }

    /// Time of the next check of the promises, also while the scrub is paused or held.
    pub(super) fn next_look(&self) -> Option<Time> {
        if self.state == State::Over || self.is_stopped() {
            return None;
        }
        match self.is_drawn() {
            true => self.reading.scan.due(),
            false => self.reading.scan.next_look(),
        }
    }

    /// Returns true if only parts are left to read, at clients' cost. With a date, promises decide how much is read. Without a date, parts
    /// have to have waited long enough.
    pub(super) fn hurries(&self) -> bool {
        let hurries = self.plan.promises.date.is_some() || self.reading.parts_are_due;
        hurries && !self.plan.is_copy() && self.reading.has_only_parts()
    }

    /// Time at which the next part is read at clients' cost, if the disk is not idle before.
    pub(super) fn next_part_beside(&self) -> Option<Time> {
        let waits = !self.hurries() && !self.plan.is_copy();
        self.reading.next_part_beside().filter(|_| waits)
    }

    /// Replaces the promises.
    fn promise(&mut self, now: Time, promises: Promises) {
        if promises != self.plan.promises {
            (self.plan.promises, self.said) = (promises, None);
            self.keep_promises();
        }
        self.told_verdicts = 0;
        self.face.status().idle = self.plan.idle();
        self.date_taken =
            (promises.date).map(|date| PromiseDate::of(self.date_taken, date, now, Wall::now()));
        if !promises.any() {
            let piece = self.piece;
            let idle = self.plan.idle().map(|after| Idle { after, piece });
            self.reading.scan.forget_promise(idle);
            self.face.status().promise = None;
            return;
        }
        let passed = self.date_taken.map(|date_taken| date_taken.passed(now));
        let promised = Promised {
            finish_within: promises.date.map(|date| date.within),
            passed: passed.unwrap_or_default(),
            p99: promises.p99.map(MorePercent::share),
            cycle: DAY,
            unit: Sectors::new(Promised::UNIT_BYTES / u64::from(self.disk.sector_bytes())),
            patience: self.plan.idle().unwrap_or_default(),
        };
        self.told_verdicts = self
            .reading
            .scan
            .promise()
            .map_or(0, |(_, said)| said.len());
        self.reading.scan.keep_promise(promised, self.piece);
    }

    /// Ends the promises of a scrub whose results are durable, and reports the final verdict. Returns the date.
    pub(super) fn end_promises(&mut self, now: Time) -> Wall {
        if self.reading.scan.outlook().is_some() {
            self.reading.scan.end_promise(now);
            self.tell_promises(now);
        }
        Wall::now()
    }

    /// Writes the promises and the verdict to the progress file, if the file has others.
    pub(super) fn keep_promises(&mut self) {
        let now = OnFile {
            promises: self.plan.promises,
            said: self.said,
            ..self.on_file
        };
        if now == self.on_file || self.state.problem().is_some() {
            return;
        }
        let Some(progress) = &mut self.progress else {
            return;
        };
        let mut written = Ok(());
        if now.promises != self.on_file.promises {
            written = progress.promise(now.promises);
        }
        if let (Ok(()), Some((verdict, since))) = (&written, now.said) {
            written = progress.verdict(verdict, since);
        }
        if written.is_ok() {
            self.on_file = now;
        }
        self.kept(Some(written));
        let synced = self.syncs.as_ref().map(|syncs| syncs.ask());
        self.kept(synced);
    }

    /// Updates the status, logs a new verdict and writes it to the progress file.
    fn tell_promises(&mut self, now: Time) {
        let Some(outlook) = self.reading.scan.outlook() else {
            return;
        };
        let date = Wall::now();
        let said = self
            .reading
            .scan
            .promise()
            .map_or(0, |(_, said)| said.len());
        let is_news = said != std::mem::replace(&mut self.told_verdicts, said);
        let ends = outlook.ends.map(|at| match at >= now {
            true => date.after(at.saturating_since(now)),
            false => date,
        });
        let was_short;
        let since = {
            let mut status = self.face.status();
            let before = status.promise.filter(|_| !is_news);
            let since = before.map_or(date, |before| before.since);
            was_short = status.promise.is_some_and(|before| before.short_queue);
            status.promise = Some(PromiseStatus {
                promises: self.plan.promises,
                verdict: outlook.verdict,
                since,
                ends,
                short_queue: outlook.is_narrow,
                waits: outlook.waits,
            });
            since
        };
        if was_short != outlook.is_narrow {
            let disk = self.disk.name();
            match outlook.is_narrow {
                true => tracing::info!(
                    disk,
                    "for the date of the scrub the drive gets two commands at a time"
                ),
                false => tracing::info!(
                    disk,
                    "the drive gets as many commands as without the scrub again"
                ),
            }
        }
        if !is_news {
            return;
        }
        let (disk, said) = (self.disk.name(), outlook.verdict.words());
        match outlook.verdict {
            Verdict::Unknown | Verdict::Holds => {
                tracing::info!(disk, "what the scrub promises: {said}");
            }
            Verdict::Late | Verdict::Slow | Verdict::Neither => {
                tracing::warn!(disk, "what the scrub promises: {said}");
            }
        }
        self.said = Some((outlook.verdict, since));
        self.keep_promises();
    }
}
