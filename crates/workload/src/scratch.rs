//! Requests of a long trace, in a scratch file.

use crate::TraceRequest;
use headtime_sched::{Flags, Op};
use headtime_units::{Extent, Nanos, Time};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, OnceLock};

/// Place for the requests of a long trace.
#[derive(Clone, Copy, Debug)]
pub struct Scratch {
    /// Opens an empty file that nothing else uses.
    pub file: fn() -> io::Result<File>,
    /// Number of requests in memory at which requests begin to go to the file. The reader sorts this
    /// many requests at a time.
    pub from: usize,
}

/// Number of words of a request.
const WORDS: usize = 5;
const BYTES: usize = 8 * WORDS;
/// Bit of the last word: the process is known.
const PROCESS_KNOWN: u64 = 1 << 7;

impl TraceRequest {
    /// The request as numbers, equal on all machines. An unknown time is the largest number, and an
    /// unknown process is 0.
    pub fn words(&self) -> [u64; WORDS] {
        [
            self.arrival.map_or(u64::MAX, Time::as_nanos),
            self.completion.map_or(u64::MAX, Time::as_nanos),
            u64::from(self.device) << 32 | u64::from(self.process.unwrap_or(0)),
            self.extent.start.get(),
            self.extent.len.get() << 16 | (self.op as u64) << 8 | u64::from(self.flags.bits()),
        ]
    }

    fn to_bytes(self) -> [u8; BYTES] {
        let mut words = self.words();
        words[WORDS - 1] |= u64::from(self.process.is_some()) * PROCESS_KNOWN;
        let mut bytes = [0; BYTES];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    #[inline]
    fn from_bytes(bytes: &[u8]) -> TraceRequest {
        const OPS: [Op; 4] = [Op::Read, Op::Write, Op::Flush, Op::Discard];
        const _: () = assert!(OPS[1] as usize == 1 && OPS[2] as usize == 2 && OPS[3] as usize == 3);
        let word = |at: usize| {
            let bytes = bytes[8 * at..8 * at + 8].try_into();
            u64::from_le_bytes(bytes.expect("eight bytes"))
        };
        let time = |word: u64| (word != u64::MAX).then(|| Time::from_nanos(word));
        let (who, what) = (word(2), word(4));
        TraceRequest {
            arrival: time(word(0)),
            completion: time(word(1)),
            device: (who >> 32) as u32,
            op: OPS[(what >> 8) as usize & 3],
            extent: Extent::at(word(3), what >> 16),
            process: (what & PROCESS_KNOWN != 0).then_some(who as u32),
            flags: Flags::from_bits(what as u8 & 7).expect("three bits"),
        }
    }
}

/// Writes requests to a scratch file, in order of arrival.
pub(crate) struct Spill {
    output: BufWriter<File>,
    written: u64,
    /// Arrivals of the first and the last request that was written.
    arrivals: Option<(Time, Time)>,
}

impl Spill {
    pub fn new(scratch: Scratch) -> io::Result<Spill> {
        Ok(Spill {
            output: BufWriter::with_capacity(1 << 16, (scratch.file)()?),
            written: 0,
            arrivals: None,
        })
    }

    /// Writes sorted requests. If a request has no arrival, or arrives before the last request in the file, the
    /// function writes nothing and returns `false`.
    pub fn write(&mut self, requests: &[TraceRequest]) -> io::Result<bool> {
        let (Some(first), Some(last)) = (requests.first(), requests.last()) else {
            return Ok(true);
        };
        let (Some(first), Some(last)) = (first.arrival, last.arrival) else {
            return Ok(false);
        };
        if self.arrivals.is_some_and(|(_, written)| first < written) {
            return Ok(false);
        }
        for request in requests {
            self.output.write_all(&request.to_bytes())?;
        }
        self.written += requests.len() as u64;
        let start = self.arrivals.map_or(first, |(first, _)| first);
        self.arrivals = Some((start, last));
        Ok(true)
    }

    /// Returns the file.
    pub fn finish(self) -> io::Result<Filed> {
        Ok(Filed {
            file: self.output.into_inner()?,
            part: 0..self.written,
            arrivals: self.arrivals.unwrap_or_default(),
            base: Nanos::ZERO,
            devices: Vec::new(),
            present: OnceLock::new(),
            failure: OnceLock::new(),
        })
    }
}

/// Requests in a file, in order of arrival. Each has an arrival.
#[derive(Debug)]
pub(crate) struct Filed {
    file: File,
    /// Requests of the file that belong to the trace.
    part: Range<u64>,
    /// First and last arrival in the file.
    pub arrivals: (Time, Time),
    /// Time to subtract from all times in the file.
    pub base: Nanos,
    /// Numbers of devices, by their numbers in the file. If empty, the numbers are the same.
    pub devices: Vec<u32>,
    /// Devices that have requests, once they were asked for.
    present: OnceLock<Vec<u32>>,
    /// The first error of reading. Readers end there.
    failure: OnceLock<String>,
}

/// Two files are never the same.
impl PartialEq for Filed {
    fn eq(&self, other: &Filed) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Filed {}

impl Filed {
    pub fn len(&self) -> u64 {
        self.part.end - self.part.start
    }

    /// Devices that have requests. `find` finds them.
    pub fn present(&self, find: impl FnOnce() -> Vec<u32>) -> Vec<u32> {
        self.present.get_or_init(find).clone()
    }

    /// Error of a reader that could not go on.
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Keeps the requests from a time after the first on, for a time, and at most `first`.
    pub fn keep(
        self: &mut Arc<Filed>,
        from: Option<Nanos>,
        span: Option<Nanos>,
        first: Option<u64>,
    ) {
        let begin = self.arrivals.0.saturating_sub(self.base);
        let begin = begin.saturating_add(from.unwrap_or(Nanos::ZERO));
        let end = span.map(|span| begin.saturating_add(span));
        let (mut before, mut within) = (0, 0);
        if from.is_some() || span.is_some() {
            for request in FiledRequests::new(self) {
                if request.arrival < Some(begin) {
                    before += 1;
                } else if end.is_none_or(|end| request.arrival < Some(end)) {
                    within += 1;
                } else {
                    break;
                }
            }
        } else {
            within = self.len();
        }
        let filed = Arc::get_mut(self).expect("nobody reads yet");
        let start = filed.part.start + before;
        filed.part = start..start + within.min(first.unwrap_or(u64::MAX));
    }
}

/// Reads the requests of a file.
#[derive(Clone, Debug)]
pub(crate) struct FiledRequests {
    filed: Arc<Filed>,
    /// Request of the file that is read next.
    next: u64,
    buffer: Vec<u8>,
    at: usize,
}

impl FiledRequests {
    const AT_ONCE: u64 = 1024;

    pub fn new(filed: &Arc<Filed>) -> FiledRequests {
        FiledRequests {
            filed: Arc::clone(filed),
            next: filed.part.start,
            buffer: Vec::with_capacity(Self::AT_ONCE as usize * BYTES),
            at: 0,
        }
    }

    /// Reads more requests. Returns `None` at the end.
    #[cold]
    fn fill(&mut self) -> Option<()> {
        let left = self.filed.part.end - self.next;
        let count = left.min(Self::AT_ONCE);
        self.buffer.resize(count as usize * BYTES, 0);
        self.at = 0;
        let from = self.next * BYTES as u64;
        if let Err(error) = self.filed.file.read_exact_at(&mut self.buffer, from) {
            self.filed.failure.get_or_init(|| error.to_string());
            self.next = self.filed.part.end;
            self.buffer.clear();
            return None;
        }
        self.next += count;
        (count > 0).then_some(())
    }

    /// The request of a record.
    #[inline]
    fn request(&self, bytes: &[u8]) -> TraceRequest {
        let mut request = TraceRequest::from_bytes(bytes);
        let Filed { base, devices, .. } = &*self.filed;
        if !base.is_zero() {
            let since = |time: Time| time.saturating_sub(*base);
            request.arrival = request.arrival.map(since);
            request.completion = request.completion.map(since);
        }
        if let Some(device) = devices.get(request.device as usize) {
            request.device = *device;
        }
        request
    }
}

impl Iterator for FiledRequests {
    type Item = TraceRequest;

    #[inline]
    fn next(&mut self) -> Option<TraceRequest> {
        if self.at == self.buffer.len() {
            self.fill()?;
        }
        let from = self.at;
        self.at += BYTES;
        Some(self.request(&self.buffer[from..self.at]))
    }

    fn fold<B, F: FnMut(B, TraceRequest) -> B>(mut self, first: B, mut add: F) -> B {
        let mut sum = first;
        loop {
            for bytes in self.buffer[self.at..].chunks_exact(BYTES) {
                sum = add(sum, self.request(bytes));
            }
            if self.fill().is_none() {
                return sum;
            }
        }
    }
}
