//! Calls of one kind at random places of the whole device.

use super::site::{BenchmarkError, Site, add_process, pair, scaled_count};
use crate::spec::PAGE;
use crate::{Behaviour, FileId, HostBuilder, Step};
use headtime_sched::Class;
use headtime_units::{Bytes, Nanos};
use headtime_workload::{Random, SizeDistribution, Sizes, TimeDistribution};

/// Separates the random numbers of this benchmark from all others.
const PURPOSE: u64 = 65;

/// `transactions`: processes that each make calls at random pages of the device, one after the other, through the page
/// cache.
///
/// Rests on: Yu, Shin, Eom, Yeom, NCQ vs. I/O Scheduler (ACM TOS 6(1), 2010), section 3.1. The tool opens a device and
/// forks `processes` (p). Each process reads `size` bytes (s) at a random page, `transactions` times (r), without
/// thinking. Section 6.3 describes shares of writes, sizes around a mean, and thinking. Section 6.4 describes
/// priorities drawn at random. The paper calls a call a transaction. Trust: high. Open: whether the processes share one
/// open file (`shared`).
///
/// The device is a file whose pages are read one by one, so readahead makes a request for each page. To reproduce the
/// paper's measurements, `request_max` of the host has to be 4 KiB.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct TransactionsSpec {
    /// Processes of one program; 1 to 4096, default 32.
    pub processes: u32,
    /// Calls of each process; 1 to 16,777,216, default 100.
    pub transactions: u32,
    /// Bytes of each call, at most 1 GiB; default 4,000 B, which is a page. Drawn sizes are multiples of 4 KiB.
    pub size: SizeDistribution,
    /// Share of the calls that read, 0 to 1; default 1. The other calls write, and return when the data is in memory.
    pub read_share: f64,
    /// Time between two calls of a process; default 0.
    pub think: TimeDistribution,
    /// Share of the calls in the real-time class, 0 to 1; default 0. The class is drawn for each call. The other calls
    /// are in the best-effort class.
    pub high_share: f64,
    /// True if the processes share one open file and its readahead state, as forked processes do; default false. If
    /// false, each process opens the file itself.
    pub shared: bool,
    /// Factor for the number of calls, more than 0 to 1; default 1.
    pub scale: f64,
}

impl Default for TransactionsSpec {
    fn default() -> TransactionsSpec {
        TransactionsSpec {
            processes: 32,
            transactions: 100,
            size: SizeDistribution::Constant(Bytes(4000)),
            read_share: 1.0,
            high_share: 0.0,
            think: TimeDistribution::Constant(Nanos::ZERO),
            shared: false,
            scale: 1.0,
        }
    }
}

impl TransactionsSpec {
    /// Adds the device and the processes to a host; the program's number is `program`. Returns the next number. The
    /// seed fixes places, sizes, operations, and times.
    ///
    /// # Errors
    ///
    /// If a number is out of range, or the device is smaller than a call.
    pub fn add(
        &self,
        builder: &mut HostBuilder,
        seed: u64,
        program: u32,
    ) -> Result<u32, BenchmarkError> {
        let site = Site::new("transactions", builder.disk());
        site.check_count("processes", self.processes)?;
        let calls = (1..=1 << 24).contains(&self.transactions);
        site.check(calls, "transactions", self.transactions, "1 to 16777216")?;
        for (key, share) in [
            ("read_share", self.read_share),
            ("high_share", self.high_share),
        ] {
            site.check((0.0..=1.0).contains(&share), key, share, "0 to 1")?;
        }
        if let Some(allowed) = self.think.problem() {
            site.check(false, "think", self.think, allowed)?;
        }
        site.check_scale(self.scale)?;
        let device = site.capacity.bytes(site.sector_bytes) / PAGE * PAGE;
        let most = Bytes(device.min(1 << 30));
        let sizes = match self.size.sizes(Bytes(PAGE), most) {
            Ok(sizes) => sizes,
            Err(allowed) => return Err(site.refused("size", &self.size, allowed)),
        };
        let file = site.add_file(builder, 0, device)?;
        for number in 0..self.processes {
            let opened = match self.shared || number == 0 {
                true => file,
                false => site.reopen(builder, file)?,
            };
            let behaviour = Calls {
                file: opened,
                pages: device / PAGE,
                sizes: sizes.clone(),
                read_share: self.read_share,
                high_share: self.high_share,
                think: self.think,
                random: Random::keyed(seed, pair(program, number), PURPOSE),
                left: scaled_count(self.transactions, self.scale),
                thinks: false,
                ranked: self.high_share == 0.0,
            };
            add_process(builder, program, behaviour);
        }
        Ok(program + 1)
    }
}

/// Calls at random pages.
struct Calls {
    file: FileId,
    pages: u64,
    sizes: Sizes,
    read_share: f64,
    high_share: f64,
    think: TimeDistribution,
    random: Random,
    left: u32,
    /// True if the process thinks before the next call.
    thinks: bool,
    /// True if the class of the next call is set.
    ranked: bool,
}

impl Behaviour for Calls {
    fn next(&mut self) -> Step {
        if self.left == 0 {
            return Step::Exit;
        }
        if self.thinks {
            self.thinks = false;
            let think = self.think.draw(&mut self.random);
            if !think.is_zero() {
                return Step::Think(think);
            }
        }
        if !self.ranked {
            self.ranked = true;
            return Step::Ask(match self.random.chance(self.high_share) {
                true => Class::REAL_TIME,
                false => Class::BEST_EFFORT,
            });
        }
        self.ranked = self.high_share == 0.0;
        self.left -= 1;
        self.thinks = true;
        let len = self.sizes.draw(&mut self.random).0;
        let places = self.pages - len.div_ceil(PAGE) + 1;
        let (file, offset) = (self.file, self.random.below(places) * PAGE);
        match self.random.chance(self.read_share) {
            true => Step::Read { file, offset, len },
            false => Step::Write { file, offset, len },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DiskSize, HostSpec, ProcessSpec};
    use headtime_units::Sectors;

    /// A little more than 1,000 pages.
    const DISK: DiskSize = DiskSize {
        capacity: Sectors::new(8_001),
        sector_bytes: 512,
    };

    fn builder() -> HostBuilder {
        HostBuilder::new(HostSpec::default(), DISK).expect("the defaults are allowed")
    }

    /// The steps of all processes.
    fn steps(spec: &TransactionsSpec) -> Vec<Vec<Step>> {
        let mut builder = builder();
        assert_eq!(spec.add(&mut builder, 7, 3), Ok(4));
        let processes = builder.processes.iter_mut();
        let all = |process: &mut ProcessSpec| {
            assert_eq!(process.program, 3);
            let next = || Some(process.behaviour.next()).filter(|step| *step != Step::Exit);
            std::iter::from_fn(next).collect()
        };
        processes.map(all).collect()
    }

    #[test]
    fn each_process_makes_so_many_calls_at_pages_of_the_device() {
        let spec = TransactionsSpec {
            size: SizeDistribution::Exponential(Bytes(8192)),
            read_share: 0.5,
            ..TransactionsSpec::default()
        };
        let all = steps(&spec);
        assert_eq!((all.len(), all[0].len()), (32, 100));
        assert!(all[0] != all[1], "each process draws its own");
        let (mut reads, mut bytes) = (0, 0);
        for step in all.iter().flatten() {
            let (offset, len) = match step {
                Step::Read { offset, len, .. } => (offset, len),
                Step::Write { offset, len, .. } => (offset, len),
                other => panic!("{other:?}"),
            };
            reads += u32::from(matches!(step, Step::Read { .. }));
            bytes += len;
            assert!(
                offset.is_multiple_of(PAGE)
                    && len.is_multiple_of(PAGE)
                    && offset + len <= 1_000 * PAGE
            );
        }
        assert!((1_500..1_700).contains(&reads), "{reads} of 3200");
        assert!((7_700..8_700).contains(&(bytes / 3_200)), "{bytes}");
    }

    #[test]
    fn each_call_is_in_a_class_that_is_drawn_for_it_alone() {
        let spec = TransactionsSpec {
            high_share: 0.1,
            ..TransactionsSpec::default()
        };
        let all = steps(&spec);
        let pairs = all.iter().flat_map(|steps| steps.chunks(2));
        let high = pairs.map(|pair| match pair {
            [Step::Ask(class), Step::Read { .. }] => u32::from(*class == Class::REAL_TIME),
            other => panic!("{other:?}"),
        });
        let high: u32 = high.sum();
        assert!((270..370).contains(&high), "{high} of 3200");
        let asks = |steps: &Vec<Step>| steps.iter().any(|step| matches!(step, Step::Ask(_)));
        assert!(!self::steps(&TransactionsSpec::default()).iter().any(asks));
    }

    #[test]
    fn processes_think_between_calls_and_share_a_file_if_told_to() {
        let think = TimeDistribution::Constant(Nanos::from_millis(30));
        let spec = TransactionsSpec {
            processes: 2,
            transactions: 3,
            think,
            shared: true,
            ..TransactionsSpec::default()
        };
        let all = steps(&spec);
        let thinks = |step: &Step| *step == Step::Think(Nanos::from_millis(30));
        let pattern = [false, true, false, true, false];
        assert!(all.iter().all(|steps| steps.iter().map(thinks).eq(pattern)));
        let files = |spec: &TransactionsSpec| {
            let all = steps(spec);
            let mut files: Vec<FileId> = all
                .iter()
                .flatten()
                .filter_map(|step| match step {
                    Step::Read { file, .. } => Some(*file),
                    _ => None,
                })
                .collect();
            files.dedup();
            files.len()
        };
        let alone = TransactionsSpec {
            shared: false,
            ..spec.clone()
        };
        assert_eq!((files(&spec), files(&alone)), (1, 2));
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        let refused = |change: fn(&mut TransactionsSpec)| {
            let mut spec = TransactionsSpec::default();
            change(&mut spec);
            let error = spec.add(&mut builder(), 1, 1).unwrap_err();
            error.to_string()
        };
        assert_eq!(
            refused(|spec| spec.transactions = 0),
            "transactions: transactions is 0; allowed is 1 to 16777216"
        );
        assert_eq!(
            refused(|spec| spec.read_share = f64::NAN),
            "transactions: read_share is NaN; allowed is 0 to 1"
        );
        assert_eq!(
            refused(|spec| spec.high_share = 1.5),
            "transactions: high_share is 1.5; allowed is 0 to 1"
        );
        let sizes = "allowed is 1B to 4000KiB; multiples of 4KiB, the first not the larger, where it varies";
        assert_eq!(
            refused(|spec| spec.size = SizeDistribution::Constant(Bytes(5_000_000))),
            format!("transactions: size is 5MB; {sizes}")
        );
        assert_eq!(
            refused(|spec| spec.size = SizeDistribution::Constant(Bytes(0))),
            format!("transactions: size is 0B; {sizes}")
        );
        assert_eq!(
            refused(|spec| spec.size = SizeDistribution::Uniform(Bytes(512), Bytes(8192))),
            format!("transactions: size is uniform(512B..8KiB); {sizes}")
        );
    }
}
