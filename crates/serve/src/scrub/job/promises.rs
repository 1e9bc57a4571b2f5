//! What is promised of the scrub, and what is said of it.

use super::super::promises::{PromiseStatus, Promises};
use super::Scrub;
use headtime_engine::{Promised, Verdict};
use headtime_linux::clock::Wall;
use headtime_sched::Passing;
use headtime_units::{MorePercent, Nanos, Time};

/// After so long the load repeats.
const DAY: Nanos = Nanos::from_secs(86_400);

impl<P: Passing> Scrub<P> {
    /// Hears of other promises, and looks at whether they can be kept, if it is time for that.
    pub(super) fn see_to_promises(&mut self, now: Time) {
        if let Some(promises) = self.face.promised() {
            self.promise(promises);
        }
        let rests = self.paused || self.held.is_some();
        if self.looks() && self.scan.look(now, rests) {
            self.tell_promises(now);
        }
    }

    /// Whether looks are taken at all.
    fn looks(&self) -> bool {
        !self.over && !self.has_line && !self.is_stopped()
    }

    /// When the next look is due, also while it rests.
    pub(super) fn next_look(&self) -> Option<Time> {
        self.scan.next_look().filter(|_| self.looks())
    }

    /// Returns true if nothing is left of a scrub with a date but parts of blocks that cannot be read as a whole, which do not wait for idle
    /// time then.
    pub(super) fn hurries(&self) -> bool {
        let has_date = self.plan.promises.date.is_some();
        has_date && !self.plan.is_copy() && self.scan.unread() == 0
    }

    /// Something else is promised from now on.
    fn promise(&mut self, promises: Promises) {
        if promises != self.plan.promises {
            let told = self.progress.as_mut().map(|kept| kept.promise(promises));
            self.kept(told);
            let synced = self.syncs.as_ref().map(|syncs| syncs.ask());
            self.kept(synced);
            self.plan.promises = promises;
        }
        self.told_verdicts = 0;
        if !promises.any() {
            self.scan.forget_promise(self.idle);
            self.face.status().promise = None;
            return;
        }
        let now = Wall::now();
        let promised = Promised {
            finish_within: promises.date.map(|date| date.within),
            passed: promises.date.map_or(Nanos::ZERO, |date| date.passed(now)),
            p99: promises.p99.map(MorePercent::share),
            cycle: DAY,
            patience: self.plan.idle.unwrap_or_default(),
        };
        self.told_verdicts = self.scan.promise().map_or(0, |(_, said)| said.len());
        self.scan.keep_promise(promised, self.piece);
    }

    /// All has been read: what became of its promises is known.
    pub(super) fn end_promises(&mut self, now: Time) {
        if self.scan.outlook().is_some() {
            self.scan.end_promise(now);
            self.tell_promises(now);
        }
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
        let told = self.progress.as_mut();
        let told = told.map(|kept| kept.verdict(outlook.verdict, since));
        self.kept(told);
    }
}
