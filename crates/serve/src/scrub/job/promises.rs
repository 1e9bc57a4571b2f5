//! What is promised of the scrub, and what is said of it.

use super::super::promises::{PromiseStatus, Promises};
use super::Scrub;
use super::heard::{Heard, OnFile};
use headtime_gaps::{Idle, Promised, Verdict};
use headtime_linux::clock::Wall;
use headtime_sched::Passing;
use headtime_units::{MorePercent, Nanos, Sectors, Time};

/// After so long the load repeats.
const DAY: Nanos = Nanos::from_secs(86_400);

impl<P: Passing> Scrub<P> {
    /// Hears of other promises, and looks at whether they can be kept, if it is time for that.
    pub(super) fn see_to_promises(&mut self, now: Time) {
        if let Some(promises) = self.face.promised() {
            self.promise(now, promises);
        }
        if self.over || self.is_stopped() {
            return;
        }
        let rests = self.paused || self.held.is_some();
        self.scan
            .read_besides(self.bad.len() as u64, self.bad_takes());
        let news = match self.has_line {
            // What is written from then on is nobody's business here.
            true => self.scan.overdue(now),
            false => self.scan.look(now, rests),
        };
        if news {
            self.tell_promises(now);
        }
    }

    /// How long it takes to find out which sectors of a block cannot be read, by what reads of parts have taken: two for each time that it is halved.
    fn bad_takes(&self) -> Nanos {
        let halved = u64::BITS - self.plan.block.get().leading_zeros();
        self.part_takes.saturating_mul(u64::from(2 * halved))
    }

    /// When the next look is due, also while it rests.
    pub(super) fn next_look(&self) -> Option<Time> {
        if self.over || self.is_stopped() {
            return None;
        }
        match self.has_line {
            true => self.scan.due(),
            false => self.scan.next_look(),
        }
    }

    /// Returns true if [nothing but parts](Scrub::has_only_parts) is left of a scrub. These are read at the cost of clients then: with a date as far
    /// as promises need and allow, without a date when they have waited.
    pub(super) fn hurries(&self) -> bool {
        let hurries = self.plan.promises.date.is_some() || self.parts_are_due;
        hurries && !self.plan.is_copy() && self.has_only_parts()
    }

    /// Something else is promised from now on.
    fn promise(&mut self, now: Time, promises: Promises) {
        if promises != self.plan.promises {
            (self.plan.promises, self.said) = (promises, None);
            self.keep_promises();
        }
        self.told_verdicts = 0;
        self.face.status().idle = self.plan.idle();
        self.heard = (promises.date).map(|date| Heard::of(self.heard, date, now, Wall::now()));
        if !promises.any() {
            let piece = self.piece;
            let idle = self.plan.idle().map(|after| Idle { after, piece });
            self.scan.forget_promise(idle);
            self.face.status().promise = None;
            return;
        }
        let passed = self.heard.map(|heard| heard.passed(now));
        let promised = Promised {
            finish_within: promises.date.map(|date| date.within),
            passed: passed.unwrap_or_default(),
            p99: promises.p99.map(MorePercent::share),
            cycle: DAY,
            unit: Sectors::new(Promised::UNIT_BYTES / u64::from(self.disk.sector_bytes())),
            patience: self.plan.idle().unwrap_or_default(),
        };
        self.told_verdicts = self.scan.promise().map_or(0, |(_, said)| said.len());
        self.scan.keep_promise(promised, self.piece);
    }

    /// It is done, and all of it is safe that has to be: what became of its promises is known. Returns the date.
    pub(super) fn end_promises(&mut self, now: Time) -> Wall {
        if self.scan.outlook().is_some() {
            self.scan.end_promise(now);
            self.tell_promises(now);
        }
        Wall::now()
    }

    /// Writes down what is promised and what is said of it, if the file has something else.
    pub(super) fn keep_promises(&mut self) {
        let now = OnFile {
            promises: self.plan.promises,
            said: self.said,
        };
        if now == self.on_file || self.held.is_some() {
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

    /// Tells whoever looks what there is to be told, and writes down what has changed.
    fn tell_promises(&mut self, now: Time) {
        let Some(outlook) = self.scan.outlook() else {
            return;
        };
        let date = Wall::now();
        let said = self.scan.promise().map_or(0, |(_, said)| said.len());
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
