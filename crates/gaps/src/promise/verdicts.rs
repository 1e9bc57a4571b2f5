//! Reads that promises allow now, and verdicts on promises.

use super::{CHECKS_IN_ROW, ClientWaits, Outlook, Promise, Promised, Verdict};
use headtime_units::{Nanos, Time};

impl Promise {
    /// Returns true if idle time is used now.
    pub(in super::super) fn uses_idle(&self) -> bool {
        let waits = self.learns && self.promised.p99.is_some() && self.asked.is_some();
        self.uses_idle && !waits
    }

    /// Returns true if gap reads are made now.
    pub(in super::super) fn uses_gaps(&self) -> bool {
        self.uses_gaps
    }

    /// Returns true if the drive gets two commands at most.
    pub(in super::super) fn is_narrow(&self) -> bool {
        self.queue.is_short
    }

    /// Returns the time of the next check.
    pub(in super::super) fn next_look(&self) -> Time {
        self.next_look
    }

    pub(in super::super) fn waits(&self) -> ClientWaits {
        ClientWaits {
            requests: self.shadow.with.count(),
            p99: self.shadow.with.at(0.99),
            p99_without: self.shadow.without.at(0.99),
            looked: self.looked,
            asked: Nanos::from_millis_f64(self.sums.asked * 1e3),
            taken: self.sums.taken,
        }
    }

    /// Returns the verdicts, each with its time.
    pub(in super::super) fn changes(&self) -> &[(Time, Verdict)] {
        &self.changes
    }

    /// Returns the values that a status shows.
    pub(in super::super) fn outlook(&self) -> Outlook {
        Outlook {
            verdict: self.verdict,
            since: self.changes.last().map_or(Time::ZERO, |(at, _)| *at),
            ends: self.ends,
            waits: self.waits(),
            is_narrow: self.queue.is_short && !self.is_over,
        }
    }

    /// Returns the time just after the date; `None` without a date, or if the result for the date is known.
    pub(in super::super) fn due(&self) -> Option<Time> {
        let is_known = self.verdict.is_late() || self.is_over || self.heard.is_none();
        (!is_known && self.due < Time::NEVER).then(|| self.due.saturating_add(Nanos::from_nanos(1)))
    }

    /// Notes that the date has passed. Returns true if that is news.
    pub(in super::super) fn overdue(&mut self, now: Time) -> bool {
        let is_news = self.due().is_some_and(|due| now >= due);
        if is_news {
            self.set_verdict(now, self.verdict.and_late());
        }
        is_news
    }

    /// Notes that all blocks have been read, so the result is known. No check follows.
    pub(in super::super) fn end(&mut self, now: Time) {
        if self.began.is_none() || self.is_over {
            return;
        }
        (self.is_over, self.ends) = (true, Some(now));
        let verdict = Verdict::of(now > self.due, self.used() > 1.0);
        self.set_verdict(now, verdict);
    }

    fn set_verdict(&mut self, now: Time, verdict: Verdict) {
        self.said = (verdict, CHECKS_IN_ROW.1);
        if verdict != self.verdict {
            self.verdict = verdict;
            self.changes.push((now, verdict));
        }
    }

    pub(super) fn hear(&mut self, now: Time) -> Time {
        let Promised {
            finish_within,
            passed,
            ..
        } = self.promised;
        self.heard = Some(now);
        self.due = finish_within.map_or(Time::NEVER, |within| {
            now.saturating_add(within.saturating_sub(passed))
        });
        (self.verdict, self.said) = (Verdict::Unknown, (Verdict::Unknown, 0));
        self.changes.push((now, Verdict::Unknown));
        now
    }

    /// Counts the verdict of a check. Puts a verdict in force once enough checks in a row agree.
    pub(super) fn say(&mut self, now: Time, verdict: Verdict) {
        let (said, times) = self.said;
        let times = if said == verdict {
            times.saturating_add(1)
        } else {
            1
        };
        self.said = (verdict, times);
        let agree = match (self.verdict, verdict) {
            (Verdict::Unknown, Verdict::Holds) => 1,
            (Verdict::Unknown | Verdict::Holds, _) | (_, Verdict::Neither) => CHECKS_IN_ROW.0,
            _ => CHECKS_IN_ROW.1,
        };
        if times >= agree {
            self.set_verdict(now, verdict);
            self.said = (verdict, times);
        }
    }
}
