//! Figures that describe a trace.

use crate::numbered::Numbered;
use crate::trace::TRACE_SECTOR;
use crate::{Notes, Trace, TraceRequest};
use headtime_sched::Op;
use headtime_units::{Bytes, Lba, Nanos, Time};
use std::cmp::Reverse;

/// Summary of a trace in figures.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceInfo {
    /// Notes on reading the trace.
    pub notes: Notes,
    /// Figures of all requests.
    pub total: Figures,
    /// Figures per device, ascending by device number.
    pub devices: Vec<DeviceInfo>,
    /// The first arrival.
    pub first: Option<Time>,
    /// The last arrival.
    pub last: Option<Time>,
    /// Times from each arrival to the next, over all devices.
    pub gaps: Option<Spread>,
    /// Times from arrival to completion, for requests with both.
    pub responses: Option<Spread>,
    /// Requests with a known process.
    pub with_process: u64,
    pub processes: u64,
    /// The [`BUSIEST_MAX`] processes with most requests, the busiest first.
    pub busiest: Vec<ProcessInfo>,
    /// Reads and writes by size, from the smallest size that occurs to the largest.
    pub sizes: Vec<SizeBin>,
}

/// Figures of one device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceInfo {
    pub device: u32,
    /// Name of the device, if the format names devices.
    pub name: Option<String>,
    /// Figures of the device's requests.
    pub figures: Figures,
    /// Address behind the last sector of 512 bytes that a request touches. A drive must be at least
    /// this large.
    pub end: Lba,
}

/// Largest number of processes in [`TraceInfo::busiest`].
pub const BUSIEST_MAX: usize = 1_000;

/// Figures of one process.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessInfo {
    pub process: u32,
    /// Name of the process, if it is known.
    pub name: Option<String>,
    /// Figures of the process's requests. A read or write is sequential if it begins where the previous
    /// one of the process ends, on the same device.
    pub figures: Figures,
}

/// Counts and sums over requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    pub discards: u64,
    /// Bytes read; at most 2⁶⁴ − 1.
    pub read_bytes: u64,
    /// Bytes written; at most 2⁶⁴ − 1.
    pub written_bytes: u64,
    /// Reads and writes that begin where the previous read or write on the same device ends.
    pub sequential: u64,
    /// Reads that begin or end off a multiple of 4 KiB.
    pub reads_off_4k: u64,
    /// Writes that begin or end off a multiple of 4 KiB. A drive with 4 KiB sectors that accepts
    /// sectors of 512 bytes (512e) first reads the rest of the sector at that end.
    pub writes_off_4k: u64,
}

/// Sectors of 512 bytes in 4 KiB.
const PER_4K: u64 = 8;

/// Distribution of a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub count: u64,
    /// Mean, rounded down.
    pub mean: Nanos,
    /// Standard deviation divided by the mean: 1 for random arrivals, more for bursts. 0 if the mean is
    /// 0.
    pub variation: f64,
    /// Smallest value.
    pub min: Nanos,
    /// Median.
    pub p50: Nanos,
    /// 90th percentile.
    pub p90: Nanos,
    /// 99th percentile.
    pub p99: Nanos,
    /// Largest value.
    pub max: Nanos,
}

/// Reads and writes of a range of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeBin {
    /// Upper bound of the sizes, a power of two. Sizes are at most this, and more than half of this.
    pub up_to: Bytes,
    pub requests: u64,
}

impl Figures {
    pub fn requests(&self) -> u64 {
        self.reads + self.writes + self.flushes + self.discards
    }

    /// Share of reads among reads and writes; 0 if there are none.
    pub fn read_share(&self) -> f64 {
        share(self.reads, self.reads + self.writes)
    }

    /// Share of [`Figures::sequential`] among reads and writes; 0 if there are none.
    pub fn sequential_share(&self) -> f64 {
        share(self.sequential, self.reads + self.writes)
    }

    /// Mean size of reads and writes, rounded down; 0 if there are none.
    pub fn mean_size(&self) -> Bytes {
        let sum = u128::from(self.read_bytes) + u128::from(self.written_bytes);
        let count = u128::from(self.reads + self.writes);
        // The mean is no larger than the largest request, which fits into 64 bits.
        Bytes(sum.checked_div(count).map_or(0, |mean| mean as u64))
    }

    fn add(&mut self, request: &TraceRequest, sequential: bool) {
        let bytes = request.extent.len.bytes(TRACE_SECTOR);
        let ends = [request.extent.start, request.extent.end()];
        let off = ends.iter().any(|end| end.get() % PER_4K != 0);
        match request.op {
            Op::Read => {
                self.reads += 1;
                self.reads_off_4k += u64::from(off);
                self.read_bytes = self.read_bytes.saturating_add(bytes);
            }
            Op::Write => {
                self.writes += 1;
                self.writes_off_4k += u64::from(off);
                self.written_bytes = self.written_bytes.saturating_add(bytes);
            }
            Op::Flush => self.flushes += 1,
            Op::Discard => self.discards += 1,
        }
        self.sequential += u64::from(sequential);
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

impl Spread {
    /// Summarises times in any order. Returns `None` if there are no times. A percentile is the
    /// smallest value that at least this share of the values does not exceed.
    fn new(mut spans: Vec<u64>) -> Option<Spread> {
        spans.sort_unstable();
        let (min, max) = (*spans.first()?, *spans.last()?);
        let count = spans.len();
        let sum: u128 = spans.iter().copied().map(u128::from).sum();
        let mean = sum as f64 / count as f64;
        let variance = spans
            .iter()
            .map(|span| (*span as f64 - mean) * (*span as f64 - mean))
            .sum::<f64>()
            / count as f64;
        let rank = |percent: usize| Nanos::from_nanos(spans[(count * percent).div_ceil(100) - 1]);
        Some(Spread {
            count: count as u64,
            mean: Nanos::from_nanos((sum / count as u128) as u64),
            variation: if mean > 0.0 {
                libm::sqrt(variance) / mean
            } else {
                0.0
            },
            min: Nanos::from_nanos(min),
            p50: rank(50),
            p90: rank(90),
            p99: rank(99),
            max: Nanos::from_nanos(max),
        })
    }
}

/// Figures of each process, in order of appearance.
#[derive(Default)]
struct Processes {
    numbers: Numbered<u32>,
    list: Vec<(u32, Figures)>,
    /// Device and end of each process's last read or write.
    ends: Vec<Option<(u32, Lba)>>,
}

impl Processes {
    fn add(&mut self, process: u32, request: &TraceRequest) {
        let index = self.numbers.number(&process, || process) as usize;
        if index == self.list.len() {
            self.list.push((process, Figures::default()));
            self.ends.push(None);
        }
        let moves_data = matches!(request.op, Op::Read | Op::Write);
        let start = Some((request.device, request.extent.start));
        self.list[index]
            .1
            .add(request, moves_data && self.ends[index] == start);
        if moves_data {
            self.ends[index] = Some((request.device, request.extent.end()));
        }
    }

    /// The processes with most requests. Of equally busy processes the lower number goes first.
    fn busiest(mut self, trace: &Trace) -> Vec<ProcessInfo> {
        self.list
            .sort_unstable_by_key(|(process, figures)| (Reverse(figures.requests()), *process));
        let busiest = self.list.into_iter().take(BUSIEST_MAX);
        let info = |(process, figures)| ProcessInfo {
            process,
            name: trace.process_name(process).map(str::to_owned),
            figures,
        };
        busiest.map(info).collect()
    }
}

impl Trace {
    /// Summarises the trace in figures.
    pub fn info(&self) -> TraceInfo {
        let numbers = self.devices();
        let mut total = Figures::default();
        let mut devices: Vec<DeviceInfo> = numbers
            .iter()
            .map(|device| DeviceInfo {
                device: *device,
                name: self.device_name(*device).map(str::to_owned),
                figures: Figures::default(),
                end: Lba::ZERO,
            })
            .collect();
        let mut ends = vec![None; numbers.len()];
        let (mut gaps, mut responses) = (Vec::new(), Vec::new());
        let mut processes = Processes::default();
        let mut with_process = 0;
        let (mut first, mut last) = (None, None::<Time>);
        // Bin n holds sizes of at most 2^n sectors, and more than 2^(n − 1).
        let mut bins = [0_u64; 33];
        for request in &self.requests {
            let index = numbers
                .binary_search(&request.device)
                .expect("all are listed");
            let device = &mut devices[index];
            let moves_data = matches!(request.op, Op::Read | Op::Write);
            let sequential = moves_data && ends[index] == Some(request.extent.start);
            total.add(request, sequential);
            device.figures.add(request, sequential);
            device.end = device.end.max(request.extent.end());
            if moves_data {
                ends[index] = Some(request.extent.end());
                let len = request.extent.len.get();
                bins[len.next_power_of_two().trailing_zeros() as usize] += 1;
            }
            if let Some(arrival) = request.arrival {
                if let Some(last) = last {
                    gaps.push(arrival.saturating_since(last).as_nanos());
                }
                first = first.or(Some(arrival));
                last = Some(arrival);
                if let Some(completion) = request.completion {
                    responses.push(completion.saturating_since(arrival).as_nanos());
                }
            }
            if let Some(process) = request.process {
                with_process += 1;
                processes.add(process, request);
            }
        }
        let occurring = || bins.iter().enumerate().filter(|(_, count)| **count > 0);
        let least = occurring().next().map_or(0, |(bin, _)| bin);
        let most = occurring().next_back().map_or(0, |(bin, _)| bin + 1);
        TraceInfo {
            notes: self.notes.clone(),
            total,
            devices,
            first,
            last,
            gaps: Spread::new(gaps),
            responses: Spread::new(responses),
            with_process,
            processes: processes.list.len() as u64,
            busiest: processes.busiest(self),
            sizes: (least..most)
                .map(|bin| SizeBin {
                    up_to: Bytes(u64::from(TRACE_SECTOR) << bin),
                    requests: bins[bin],
                })
                .collect(),
        }
    }
}

impl TraceInfo {
    /// Time from the first arrival to the last; zero if there are none.
    pub fn span(&self) -> Nanos {
        match (self.first, self.last) {
            (Some(first), Some(last)) => last.saturating_since(first),
            _ => Nanos::ZERO,
        }
    }

    /// Arrivals per second over the span. `None` if the span is empty.
    pub fn rate(&self) -> Option<f64> {
        let gaps = self.gaps?;
        let span = self.span().as_secs_f64();
        (span > 0.0).then(|| gaps.count as f64 / span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReadOptions;

    #[test]
    fn figures_of_a_small_trace() {
        let text = "\
0.0 1 100 8 1
1.0 2 100 8 0
2.0 1 108 16 1
4.0 1 124 3 0
8.0 1 0 1 1
";
        let info = Trace::read("t", text.as_bytes(), &ReadOptions::default())
            .unwrap()
            .info();
        assert_eq!(
            (info.total.reads, info.total.writes, info.total.sequential),
            (3, 2, 2)
        );
        assert_eq!(info.total.read_bytes, 25 * 512);
        // 100 and 1 are no multiples of 8. 0 is one.
        let off = (info.total.reads_off_4k, info.total.writes_off_4k);
        assert_eq!(off, (3, 2));
        assert_eq!(info.total.mean_size(), Bytes(36 * 512 / 5));
        assert_eq!(info.total.read_share(), 0.6);
        assert_eq!(info.devices.len(), 2);
        assert_eq!(info.devices[0].figures.sequential_share(), 0.5);
        assert_eq!(info.devices[0].end, Lba::new(127));
        assert_eq!(info.span(), Nanos::from_millis(8));
        assert_eq!(info.rate(), Some(500.0));
        let gaps = info.gaps.unwrap();
        assert_eq!((gaps.count, gaps.mean), (4, Nanos::from_millis(2)));
        assert_eq!(
            (gaps.min, gaps.max),
            (Nanos::from_millis(1), Nanos::from_millis(4))
        );
        assert_eq!(
            (gaps.p50, gaps.p90),
            (Nanos::from_millis(1), Nanos::from_millis(4))
        );
        assert!((gaps.variation - 1.5_f64.sqrt() / 2.0).abs() < 1e-12);
        let bins: Vec<(u64, u64)> = info
            .sizes
            .iter()
            .map(|bin| (bin.up_to.0, bin.requests))
            .collect();
        assert_eq!(bins, [(512, 1), (1024, 0), (2048, 1), (4096, 2), (8192, 1)]);
        assert_eq!((info.responses, info.processes), (None, 0));
        assert_eq!(info.busiest, []);
    }

    #[test]
    fn the_busiest_processes_go_first_with_their_own_figures() {
        let mut text = "\
8,0 1 1 0.1 9 Q R 100 + 8 [cat]
8,0 1 1 0.2 7 Q W 500 + 8 [dd]
8,0 1 1 0.3 9 Q R 108 + 8 [cat]
8,1 1 1 0.4 9 Q R 116 + 8 [cat]
8,0 1 1 0.5 7 Q W 508 + 16
"
        .to_owned();
        let read = |text: &str| {
            let trace = Trace::read("t", text.as_bytes(), &ReadOptions::default());
            trace.unwrap().info()
        };
        let info = read(&text);
        let busiest: Vec<_> = info
            .busiest
            .iter()
            .map(|process| {
                let (name, figures) = (process.name.as_deref(), process.figures);
                let counts = (figures.reads, figures.writes, figures.sequential);
                (process.process, name, counts, figures.mean_size().0)
            })
            .collect();
        let expected = [
            (9, Some("cat"), (3, 0, 1), 4096),
            (7, Some("dd"), (0, 2, 1), 6144),
        ];
        assert_eq!(busiest, expected);
        assert_eq!((info.processes, info.with_process), (2, 5));
        // No request follows the previous one of its device directly.
        assert_eq!(info.total.sequential, 0);
        for process in (0..2 * BUSIEST_MAX).rev() {
            text.push_str(&format!("8,0 1 1 0.6 {} Q R 8 + 8\n", 100 + process));
        }
        let info = read(&text);
        assert_eq!(info.processes as usize, 2 + 2 * BUSIEST_MAX);
        assert_eq!(info.busiest.len(), BUSIEST_MAX);
        let last = info.busiest.last().unwrap();
        assert_eq!(
            (last.process as usize, &last.name),
            (97 + BUSIEST_MAX, &None)
        );
    }

    #[test]
    fn nothing_known_is_nothing_said() {
        let info = Trace::new(Vec::new()).info();
        assert_eq!((info.gaps, info.rate(), info.sizes.len()), (None, None, 0));
        assert_eq!(info.total.mean_size(), Bytes(0));
        assert_eq!(info.total.read_share(), 0.0);
    }
}
