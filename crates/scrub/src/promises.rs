//! Promises of a scrub: a date for its end, and a bound on clients' latencies.

use headtime_disk::Model;
use headtime_gaps::{ClientWaits, Verdict};
use headtime_linux::clock::Wall;
use headtime_units::{Bytes, Extent, MorePercent, Nanos};
use std::str::FromStr;

/// Default time without requests after which idle time begins. It is longer than a program that reads on thinks, and shorter than a person
/// does.
const IDLE_AFTER: Nanos = Nanos::from_millis(50);

/// Default for a scrub with promises, whose plan knows at which hours idle time costs nothing. It is longer than a request and its answer
/// take on their way.
const IDLE_AFTER_PROMISED: Nanos = Nanos::from_millis(2);

/// Invalid option, and the reason.
type WhyNot = (&'static str, String);

/// Promises of a scrub; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promises {
    /// Date at which the scrub has to be done.
    pub date: Option<FinishBy>,
    /// Largest allowed increase of the 99th percentile of the clients' latencies.
    pub p99: Option<MorePercent>,
}

/// Date of the end of a scrub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishBy {
    /// Time from the promise to the date.
    pub within: Nanos,
    /// Time of the promise.
    pub promised: Wall,
}

/// Status of a scrub's promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromiseStatus {
    /// Promises.
    pub promises: Promises,
    /// Verdict: whether the promises can be kept.
    pub verdict: Verdict,
    /// Date since which the verdict holds.
    pub since: Wall,
    /// Forecast of the scrub's end, if there is one.
    pub ends: Option<Wall>,
    /// True if, for the promises, the drive gets two commands at a time, fewer than without the scrub.
    pub short_queue: bool,
    /// Latencies of clients since the server started or the scrub began, and an estimate of the latencies without the scrub.
    pub waits: ClientWaits,
}

impl PromiseStatus {
    /// Status at the time `now`, for a scrub that no longer checks its promises. If the date has passed, the verdict says that the scrub is
    /// late.
    pub(super) fn unless_passed(self, now: Wall) -> PromiseStatus {
        match self.promises.date.map(|date| date.at()) {
            Some(since) if since < now && !self.verdict.is_late() => PromiseStatus {
                verdict: self.verdict.and_late(),
                since,
                ..self
            },
            _ => self,
        }
    }
}

impl FinishBy {
    /// Date at which the scrub has to be done.
    pub fn at(&self) -> Wall {
        self.promised.after(self.within)
    }

    /// Part of the time to the date that has passed; none if the clock was set back to before the promise.
    pub(super) fn passed(&self, now: Wall) -> Nanos {
        now.since(self.promised)
    }
}

impl Promises {
    /// Returns true if there is any promise.
    pub fn any(&self) -> bool {
        *self != Promises::default()
    }

    /// Default time without requests after which idle time is used.
    pub(super) fn usual_idle(&self) -> Nanos {
        match self.any() {
            true => IDLE_AFTER_PROMISED,
            false => IDLE_AFTER,
        }
    }

    /// Promises after a request. The outer `None` leaves a promise as it is, the inner one removes it. If the span is the same as before,
    /// the date stays where it is.
    pub(super) fn asked(
        self,
        finish_within: Option<Option<Nanos>>,
        p99: Option<Option<MorePercent>>,
        now: Wall,
    ) -> Promises {
        let before = |within| self.date.filter(|date| date.within == within);
        let date = |within| {
            before(within).unwrap_or(FinishBy {
                within,
                promised: now,
            })
        };
        Promises {
            date: match finish_within {
                None => self.date,
                Some(within) => within.map(date),
            },
            p99: p99.unwrap_or(self.p99),
        }
    }

    /// Checks the promises of a scrub that uses idle time after `idle` without requests, if at all. The error is the invalid option, and
    /// the reason.
    pub(super) fn may_be_made(&self, idle: Option<Nanos>) -> Result<(), WhyNot> {
        let refused = |key, problem: &str| Err((key, problem.to_owned()));
        if self.date.is_some_and(|date| date.within.is_zero()) {
            return refused("finish-within", "allowed is more than no time");
        }
        match self.any() && idle.is_none() {
            true => refused("idle", "what is promised takes idle time, which is off"),
            false => Ok(()),
        }
    }

    /// Writes the promises as words of a line: span in nanoseconds and time of the promise, or `- -`, and the allowed increase, or `-`.
    pub(super) fn to_line(self) -> String {
        let date = match self.date {
            Some(date) => format!("{} {}", date.within.as_nanos(), date.promised.0),
            None => "- -".to_owned(),
        };
        let p99 = self.p99.map_or("-".to_owned(), |p99| p99.to_string());
        format!("{date} {p99}")
    }

    /// Reads the promises from words of a line; `None` if the words are not valid.
    pub(super) fn of_words<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Promises> {
        let date = match (words.next()?, words.next()?) {
            ("-", "-") => None,
            (within, promised) => Some(FinishBy {
                within: Nanos::from_nanos(within.parse().ok()?),
                promised: Wall(promised.parse().ok()?),
            }),
        };
        let p99 = match words.next()? {
            "-" => None,
            text => Some(MorePercent::from_str(text).ok()?),
        };
        words.next().is_none().then_some(Promises { date, p99 })
    }

    /// Final status of the promises, from the last verdict and the date of the scrub's end.
    pub(super) fn became(
        self,
        said: Option<(Verdict, Wall)>,
        done: Option<Wall>,
    ) -> Option<PromiseStatus> {
        let (verdict, since) = said.unwrap_or_default();
        Some(PromiseStatus {
            verdict,
            ends: done,
            ..self.unknown(since)?
        })
    }

    /// Status of the promises before any forecast.
    pub(super) fn unknown(self, now: Wall) -> Option<PromiseStatus> {
        self.any().then_some(PromiseStatus {
            promises: self,
            verdict: Verdict::Unknown,
            since: now,
            ends: None,
            short_queue: false,
            waits: ClientWaits::default(),
        })
    }
}

/// Least time that a drive needs for this number of sectors of a range: as if the sectors lay in the fastest zones, and no seek were
/// needed.
fn takes_at_least(model: &Model, range: Extent, sectors: u64) -> Nanos {
    let (turn, bus) = (model.mechanics().turn(), model.profile().bus.sector(true));
    let zones = model.layout().zones().map(|zone| {
        let start = zone.extent.start.max(range.start);
        let end = zone.extent.end().min(range.end()).max(start);
        ((end - start).get(), zone.sectors_per_track)
    });
    let mut zones: Vec<_> = zones.collect();
    zones.sort_unstable_by_key(|(_, each)| std::cmp::Reverse(*each));
    let mut left = sectors;
    let mut seconds = 0.0;
    for (there, each) in zones {
        let here = there.min(left);
        let sector = turn.as_secs_f64() / f64::from(each.max(1));
        seconds += here as f64 * sector.max(bus.as_secs_f64());
        left -= here;
    }
    Nanos::from_millis_f64(seconds * 1e3)
}

/// Refuses a date if a drive cannot read this number of sectors of a range by then.
pub(super) fn may_be_kept(
    promises: &Promises,
    model: &Model,
    range: Extent,
    sectors: u64,
) -> Result<(), WhyNot> {
    let Some(date) = promises.date else {
        return Ok(());
    };
    let least = takes_at_least(model, range, sectors);
    if date.within >= least {
        return Ok(());
    }
    let bytes = sectors * u64::from(model.profile().geometry.sector_bytes);
    let rate = bytes as f64 / least.as_secs_f64() / 1e6;
    // The message shows no more digits than are significant.
    let least = match least.as_nanos() {
        ..10_000_000_000 => least.as_nanos().div_ceil(1_000_000) * 1_000_000,
        nanos => nanos.div_ceil(1_000_000_000) * 1_000_000_000,
    };
    let problem = format!(
        "{}: the assumed drive takes {} at the least for {}, at {rate:.1} MB/s",
        date.within,
        Nanos::from_nanos(least),
        Bytes(bytes),
    );
    Err(("finish-within", problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::profile::by_name;

    fn asked(
        before: Promises,
        finish_within: Option<Option<u64>>,
        p99: Option<Option<&str>>,
        now: u64,
    ) -> Promises {
        let span = finish_within.map(|span| span.map(Nanos::from_secs));
        let more = p99.map(|more| more.map(|text| text.parse().expect("percent")));
        before.asked(span, more, Wall(now))
    }

    #[test]
    fn the_same_span_leaves_the_date_and_another_one_counts_from_now() {
        let none = Promises::default();
        let first = asked(none, Some(Some(60)), None, 1_000);
        assert_eq!(first.date.map(|date| date.at()), Some(Wall(61_000)));
        assert_eq!(first.p99, None);
        let again = asked(first, Some(Some(60)), Some(Some("+5%")), 9_000);
        assert_eq!(again.date, first.date);
        assert_eq!(again.p99.map(MorePercent::percent), Some(5.0));
        let other = asked(again, Some(Some(30)), None, 9_000);
        assert_eq!(other.date.map(|date| date.at()), Some(Wall(39_000)));
        assert_eq!(other.p99, again.p99);
        assert_eq!(asked(other, None, None, 10_000), other);
        let off = asked(other, Some(None), Some(None), 10_000);
        assert!(!off.any() && off.unknown(Wall(0)).is_none());
    }

    #[test]
    fn promises_are_kept_as_a_line_and_read_as_they_were() {
        for (finish, p99) in [
            (Some(Some(1_209_600)), Some(Some("+5%"))),
            (Some(Some(1)), None),
            (None, Some(Some("+0.25%"))),
            (None, None),
        ] {
            let promises = asked(Promises::default(), finish, p99, 1_795_000_000_123);
            let line = promises.to_line();
            assert_eq!(
                Promises::of_words(line.split(' ')),
                Some(promises),
                "{line}"
            );
        }
        for line in [
            "",
            "- -",
            "1 - -",
            "- 1 -",
            "1 1 5%",
            "-1 1 -",
            "1 1 - 1",
            "x 1 -",
            "99999999999999999999 1 -",
        ] {
            assert_eq!(Promises::of_words(line.split(' ')), None, "{line}");
        }
    }

    #[test]
    fn a_clock_that_is_set_back_never_gives_more_time_than_was_promised() {
        let date = FinishBy {
            within: Nanos::from_secs(60),
            promised: Wall(100_000),
        };
        for (now, passed) in [(0, 0), (100_000, 0), (130_000, 30), (900_000, 800)] {
            assert_eq!(date.passed(Wall(now)), Nanos::from_secs(passed));
        }
    }

    #[test]
    fn a_date_that_has_passed_cannot_hold_whoever_looks() {
        let promises = asked(Promises::default(), Some(Some(60)), None, 1_000);
        let said = |verdict| PromiseStatus {
            verdict,
            ..promises
                .unknown(Wall(1_000))
                .expect("something is promised")
        };
        let at = |verdict, now| {
            let status = said(verdict).unless_passed(Wall(now));
            (status.verdict, status.since)
        };
        let before = (Verdict::Holds, Wall(1_000));
        assert_eq!(at(Verdict::Holds, 61_000), before);
        assert_eq!(at(Verdict::Holds, 61_001), (Verdict::Late, Wall(61_000)));
        assert_eq!(at(Verdict::Slow, 90_000), (Verdict::Neither, Wall(61_000)));
        assert_eq!(at(Verdict::Late, 90_000), (Verdict::Late, Wall(1_000)));
        let bound = asked(Promises::default(), None, Some(Some("+5%")), 1_000);
        let bound = bound.unknown(Wall(0)).expect("something is promised");
        assert_eq!(bound.unless_passed(Wall(u64::MAX)), bound);
    }

    #[test]
    fn no_drive_reads_faster_than_its_sectors_pass() {
        let model = Model::new(&by_name("exos-x18").expect("shipped"));
        let all = model.layout().capacity();
        let disk = Extent::new(headtime_units::Lba::ZERO, all);
        let whole = takes_at_least(&model, disk, all.get()).as_secs_f64();
        let gigabytes = all.bytes(model.profile().geometry.sector_bytes) as f64 / 1e9;
        // 18 TB at 270 MB/s outside and less than half of that inside.
        let rate = gigabytes * 1e3 / whole;
        assert!((150.0..270.0).contains(&rate), "{rate}");
        // A tenth of the disk may be the fastest one.
        let tenth = takes_at_least(&model, disk, all.get() / 10).as_secs_f64();
        assert!(
            tenth > whole * 0.05 && tenth < whole * 0.1,
            "{tenth} of {whole}"
        );
        let promise = |seconds| Promises {
            date: Some(FinishBy {
                within: Nanos::from_secs(seconds),
                promised: Wall(0),
            }),
            p99: None,
        };
        let problem = may_be_kept(&promise(3_600), &model, disk, all.get());
        let (key, problem) = problem.expect_err("it cannot be");
        assert_eq!(key, "finish-within");
        assert!(problem.starts_with("3600s: the assumed drive"), "{problem}");
        assert!(may_be_kept(&promise(whole as u64 + 1), &model, disk, all.get()).is_ok());
        assert!(may_be_kept(&Promises::default(), &model, disk, all.get()).is_ok());
    }
}
