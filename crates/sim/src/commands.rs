//! Measurements of the commands in a drive.

use crate::distribution::{Distribution, HISTOGRAM_STEP};
use headtime_engine::{CLASSES, DelayCounts, DriveTag, class_index};
use headtime_sched::nise::Metric;
use headtime_sched::{NiseConfig, Op, Request};
use headtime_units::{Nanos, Sectors, Time};

/// Commands that drives completed after the warm-up, of all members together.
///
/// Several requests can be merged into one command. For a drive with one command at a time, delay counts, intervals and tags in use would
/// be trivial, so they are not recorded.
#[derive(Clone, Debug)]
pub struct Commands {
    /// Number of commands.
    pub completed: u64,
    /// Sectors of these commands.
    pub sectors: u64,
    /// Commands of at most 4 KiB.
    pub one_page: u64,
    /// Commands of more than 50 sectors, which NISE calls large.
    pub large: u64,
    /// NISE's metric for loads in sectors, at each completion. It is recorded for every scheduler.
    pub sequentiality: Counted,
    /// Number of later commands that overtook each command.
    pub delays: Counted,
    /// Time from one completion of a drive to the next.
    pub intervals: Distribution,
    /// Time from a command's arrival in the drive to its completion, by class of request.
    pub service: [Distribution; CLASSES],
    /// Completion notifications, also of flushes. Each notification is an interrupt of the host. Commands that were given up had none.
    pub interrupts: u64,
    /// Tags in use, summed over every nanosecond.
    pub in_use: u128,
    /// Time with all tags of the engine in use, and the measured time.
    pub full: (Nanos, Nanos),
    /// Among the first hundred windows of 10 ms: windows in which at some time no tag was free, and all windows.
    pub full_windows: (u32, u32),
}

/// Sectors above which NISE calls a command large.
const LARGE_SECTORS: u64 = 50;

/// Length of the windows, and the number of windows in which tags in use are checked.
const WINDOW_LENGTH: Nanos = Nanos::from_millis(10);
const WINDOWS: u64 = 100;

/// Distribution of counts. A count is recorded as a number of smallest steps of a [`Distribution`].
#[derive(Clone, Debug)]
pub struct Counted(Distribution);

impl Counted {
    fn new() -> Counted {
        Counted(Distribution::new(3))
    }

    fn record(&mut self, count: u32) {
        self.0
            .record(HISTOGRAM_STEP.saturating_mul(u64::from(count)));
    }

    /// Returns the count that `percent` of all counts do not exceed.
    pub fn percentile(&self, percent: f64) -> f64 {
        let [value] = self.percentiles([percent]);
        value
    }

    /// Returns several percentiles, of rising percents, in one pass.
    pub fn percentiles<const N: usize>(&self, percents: [f64; N]) -> [f64; N] {
        let ms = self.0.percentiles_ms(percents);
        ms.map(|ms| ms * 1e6 / HISTOGRAM_STEP.as_nanos() as f64)
    }

    /// Returns the mean; zero if there are no counts.
    pub fn mean(&self) -> f64 {
        self.0.mean_ms() * 1e6 / HISTOGRAM_STEP.as_nanos() as f64
    }

    /// Returns the largest count; zero if there are no counts.
    pub fn max(&self) -> u64 {
        self.0.max().as_nanos() / HISTOGRAM_STEP.as_nanos()
    }

    /// Returns the distribution as points: a count, and the share of all counts (0 to 1) that do not exceed it.
    pub fn cumulative(&self) -> Vec<(f64, f64)> {
        let points = self.0.cumulative().into_iter();
        points
            .map(|(ms, share)| ((ms * 1e6 / HISTOGRAM_STEP.as_nanos() as f64).round(), share))
            .collect()
    }

    /// Adds the counts of another distribution.
    pub fn add(&mut self, other: &Counted) {
        self.0.add(&other.0);
    }
}

impl Commands {
    pub(crate) fn new() -> Commands {
        Commands {
            completed: 0,
            sectors: 0,
            one_page: 0,
            large: 0,
            sequentiality: Counted::new(),
            delays: Counted::new(),
            intervals: Distribution::new(3),
            service: [(); CLASSES].map(|()| Distribution::new(3)),
            interrupts: 0,
            in_use: 0,
            full: (Nanos::ZERO, Nanos::ZERO),
            full_windows: (0, 0),
        }
    }

    /// Adds the commands of another repeat.
    pub fn add(&mut self, other: &Commands) {
        self.completed += other.completed;
        self.sectors += other.sectors;
        self.one_page += other.one_page;
        self.large += other.large;
        self.sequentiality.add(&other.sequentiality);
        self.delays.add(&other.delays);
        self.intervals.add(&other.intervals);
        for (own, other) in self.service.iter_mut().zip(&other.service) {
            own.add(other);
        }
        self.interrupts += other.interrupts;
        self.in_use += other.in_use;
        self.full.0 += other.full.0;
        self.full.1 += other.full.1;
        self.full_windows.0 += other.full_windows.0;
        self.full_windows.1 += other.full_windows.1;
    }

    /// Returns the share (0 to 1) of the first hundred windows of 10 ms in which at some time no tag was free.
    pub fn full_windows_share(&self) -> f64 {
        let (full, all) = self.full_windows;
        f64::from(full) / f64::from(all.max(1))
    }

    /// Returns the mean number of tags in use over the measured time; zero if no time was measured.
    pub fn tags_in_use(&self) -> f64 {
        match self.full.1 {
            Nanos::ZERO => 0.0,
            all => self.in_use as f64 / all.as_nanos() as f64,
        }
    }

    /// Returns the share of the time (0 to 1) in which no tag was free; zero if no time was measured.
    pub fn full_share(&self) -> f64 {
        match self.full.1 {
            Nanos::ZERO => 0.0,
            all => self.full.0.as_secs_f64() / all.as_secs_f64(),
        }
    }
}

/// A command in the drive.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    at: Time,
    sectors: Sectors,
    class: u8,
    flush: bool,
}

/// Observer of one drive's commands.
#[derive(Debug)]
pub(crate) struct CommandWatch {
    depth: u32,
    sector_bytes: u32,
    sent: Vec<Sent>,
    in_drive: u32,
    counts: DelayCounts,
    metric: Metric,
    /// Time of the last completion.
    completed: Option<Time>,
    /// Time up to which tags in use are summed.
    summed: Time,
    /// Time since which all tags are in use; `None` if a tag is free.
    full_since: Option<Time>,
    /// A bit for each window of [`WINDOW_LENGTH`] in which at some time no tag was free.
    full_windows: u128,
}

impl CommandWatch {
    pub fn new(depth: u32, sector_bytes: u32) -> CommandWatch {
        CommandWatch {
            depth,
            sector_bytes,
            sent: vec![Sent::default(); depth as usize],
            in_drive: 0,
            counts: DelayCounts::default(),
            metric: Metric::default(),
            completed: None,
            summed: Time::ZERO,
            full_since: None,
            full_windows: 0,
        }
    }

    /// Adds the tags that were in use since the last sum.
    #[inline]
    fn sum(&mut self, now: Time, from: Time, all: &mut Commands) {
        let span = now.saturating_since(self.summed.max(from)).as_nanos();
        all.in_use += u128::from(span) * u128::from(self.in_drive);
        self.summed = now;
    }

    /// Notes that no tag was free from one time to another.
    fn full(&mut self, since: Time, until: Time, from: Time, all: &mut Commands) {
        let since = since.max(from);
        all.full.0 += until.saturating_since(since);
        let window = |at: Time| at.saturating_since(from).as_nanos() / WINDOW_LENGTH.as_nanos();
        for window in window(since)..=window(until).min(WINDOWS - 1) {
            self.full_windows |= 1 << window;
        }
    }

    #[inline]
    pub fn issued(
        &mut self,
        now: Time,
        request: &Request<DriveTag>,
        from: Time,
        all: &mut Commands,
    ) {
        self.sent[request.tag.index()] = Sent {
            at: now,
            sectors: request.extent.len,
            class: class_index(request.class) as u8,
            flush: request.op == Op::Flush,
        };
        if request.op != Op::Flush {
            let sectors = request.extent.len.get();
            self.metric.update(sectors, NiseConfig::DEFAULT.alpha);
        }
        if self.depth > 1 {
            self.sum(now, from, all);
        }
        self.in_drive += 1;
        if self.depth > 1 {
            self.counts.issued(request.tag);
            if self.in_drive == self.depth {
                self.full_since = Some(now);
            }
        }
    }

    /// Returns the bytes of a command that was issued and has not completed.
    pub fn bytes(&self, tag: DriveTag) -> u64 {
        self.sent[tag.index()].sectors.bytes(self.sector_bytes)
    }

    /// Notes that the drive is done with a command. The command counts if it ends at `from` or later.
    #[inline]
    pub fn completed(&mut self, now: Time, tag: DriveTag, from: Time, all: &mut Commands) {
        let sent = self.sent[tag.index()];
        if self.depth > 1 {
            self.sum(now, from, all);
        }
        self.in_drive -= 1;
        let counts = now >= from;
        if self.depth > 1 {
            let overtaken = self.counts.completed(tag);
            let last = self.completed.replace(now);
            if let Some(since) = self.full_since.take()
                && counts
            {
                self.full(since, now, from, all);
            }
            if counts && !sent.flush {
                all.delays.record(overtaken);
                if let Some(last) = last.filter(|last| *last >= from) {
                    all.intervals.record(now - last);
                }
                all.service[usize::from(sent.class)].record(now - sent.at);
            }
        }
        if !counts || sent.flush {
            return;
        }
        all.completed += 1;
        all.sectors += sent.sectors.get();
        let bytes = sent.sectors.bytes(self.sector_bytes);
        all.one_page += u64::from(bytes <= 4096);
        all.large += u64::from(bytes > LARGE_SECTORS * 512);
        // Sizes of requests fit into 32 bits.
        all.sequentiality.record(self.metric.sectors() as u32);
    }

    /// Ends the measurement.
    pub fn close(&mut self, from: Time, until: Time, all: &mut Commands) {
        if self.depth == 1 {
            return;
        }
        self.sum(until, from, all);
        if let Some(since) = self.full_since.take() {
            self.full(since, until, from, all);
        }
        let measured = until.saturating_since(from);
        all.full.1 += measured;
        let windows = measured
            .as_nanos()
            .div_ceil(WINDOW_LENGTH.as_nanos())
            .min(WINDOWS);
        all.full_windows.0 += self.full_windows.count_ones();
        all.full_windows.1 += windows as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_units::Extent;

    fn at(ms: u64) -> Time {
        Time::ZERO + Nanos::from_millis(ms)
    }

    fn request(tag: u32, sectors: u64) -> Request<DriveTag> {
        let plain = Request::new(
            headtime_sched::Tag(0),
            Op::Read,
            Extent::at(0, sectors),
            Time::ZERO,
        );
        plain.tagged(DriveTag(tag))
    }

    #[test]
    fn commands_are_counted_from_the_end_of_the_warm_up() {
        let (mut watch, mut all) = (CommandWatch::new(2, 512), Commands::new());
        let from = at(10);
        watch.issued(at(0), &request(0, 8), from, &mut all);
        watch.completed(at(5), DriveTag(0), from, &mut all);
        watch.issued(at(6), &request(0, 8), from, &mut all);
        watch.issued(at(7), &request(1, 256), from, &mut all);
        watch.completed(at(12), DriveTag(1), from, &mut all);
        watch.completed(at(20), DriveTag(0), from, &mut all);
        watch.close(from, at(20), &mut all);
        assert_eq!(
            (all.completed, all.sectors, all.one_page, all.large),
            (2, 264, 1, 1)
        );
        assert_eq!((all.delays.max(), all.delays.mean()), (1, 0.5));
        assert_eq!(all.intervals.max(), Nanos::from_millis(8));
        assert_eq!(all.service[1].max(), Nanos::from_millis(14));
        // Two tags were in use from 10 ms to 12 ms, and one to 20 ms.
        assert_eq!(all.tags_in_use(), 1.2);
        // Two tags were in use from 7 ms to 12 ms. The last 2 ms of these count.
        assert_eq!(all.full, (Nanos::from_millis(2), Nanos::from_millis(10)));
        assert_eq!(all.full_share(), 0.2);
        // One window of one, since the measurement is 10 ms long.
        assert_eq!((all.full_windows, all.full_windows_share()), ((1, 1), 1.0));
        let mut twice = all.clone();
        twice.add(&all);
        assert_eq!(twice.full_windows, (2, 2));
        assert_eq!(
            (twice.completed, twice.delays.cumulative().last()),
            (4, Some(&(1.0, 1.0)))
        );
    }

    /// NISE's own metric, recorded for every scheduler.
    #[test]
    fn the_sequentiality_of_what_was_sent_follows_the_sizes() {
        let (mut watch, mut all) = (CommandWatch::new(1, 512), Commands::new());
        let mut send = |sectors, ms| {
            watch.issued(at(ms), &request(0, sectors), Time::ZERO, &mut all);
            watch.completed(at(ms), DriveTag(0), Time::ZERO, &mut all);
        };
        // 256 (1 - (127/128)^28) is above 50, and with 27 commands it is not.
        (0..28).for_each(|ms| send(256, ms));
        (28..1_000).for_each(|ms| send(8, ms));
        let above = |percent| all.sequentiality.percentile(percent) >= 50.0;
        assert_eq!(all.sequentiality.max(), 50);
        assert!(!above(99.0) && above(100.0));
        // 8 (1 - ..) from above.
        assert!((7.0..=9.0).contains(&all.sequentiality.percentile(40.0)));
    }

    #[test]
    fn windows_without_a_free_tag_are_counted_in_the_first_second() {
        let (mut watch, mut all) = (CommandWatch::new(2, 512), Commands::new());
        let mut full = |from: u64, until: u64| {
            watch.issued(at(from), &request(0, 8), at(1000), &mut all);
            watch.issued(at(from), &request(1, 8), at(1000), &mut all);
            watch.completed(at(until), DriveTag(0), at(1000), &mut all);
            watch.completed(at(until), DriveTag(1), at(1000), &mut all);
        };
        // A span before the end of the warm-up; windows 0 and 1 after it; window 3 twice; window 99 and a time after the last window.
        for (from, until) in [
            (0, 900),
            (999, 1015),
            (1030, 1032),
            (1034, 1036),
            (1995, 2500),
        ] {
            full(from, until);
        }
        watch.close(at(1000), at(3000), &mut all);
        assert_eq!(all.full_windows, (4, 100));
    }

    #[test]
    fn of_one_command_at_a_time_no_more_than_counts_are_recorded() {
        let (mut watch, mut all) = (CommandWatch::new(1, 4096), Commands::new());
        watch.issued(at(0), &request(0, 1), Time::ZERO, &mut all);
        watch.completed(at(5), DriveTag(0), Time::ZERO, &mut all);
        watch.close(Time::ZERO, at(5), &mut all);
        assert_eq!((all.completed, all.one_page), (1, 1));
        assert_eq!((all.delays.cumulative().len(), all.full_share()), (0, 0.0));
    }
}
