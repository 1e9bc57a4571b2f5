//! Records the requests of a block device with their processes.
//!
//! The kernel's block layer reports submissions and completions through tracing events (linux:
//! Documentation/trace/events.rst). A [`Recorder`] creates an instance of its own in tracefs, so
//! that it disturbs nobody else's tracing. It records events of one device only, reads the raw
//! buffers, and puts the events of all processors in one order. [`Pairing`] finds the events that
//! belong to one request. Recording needs neither a kernel module nor blktrace, and works on a loop
//! device.
//!
//! A recorded request begins where a thread submits it to the block layer (`block_bio_queue`),
//! before merging and scheduling. It ends where it completes (`block_rq_complete`, or
//! `block_bio_complete` for drivers without requests such as device mapper). Reads served from the
//! page cache are not recorded. A write of the page cache belongs to the thread that writes it
//! back.
//!
//! The instance is called `headtime-PID-START-N`; PID and START name its process. A recorder
//! removes its instance at the end, also after an error. If the process is killed, the next
//! recorder removes the instance.

mod error;
mod order;
mod target;
mod tracefs;

pub use error::RecordError;
pub use target::Target;

use headtime_sched::Op;
use headtime_units::{Bytes, Extent, Nanos, Time};
use headtime_workload::{
    ArrivalEvent, BLOCK_EVENTS, NAME_MAX, Pairing, RingEvent, RingReader, Trace, TraceRequest,
};
use order::Order;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::time::Duration;
use tracefs::Instance;

/// Most processes whose names are kept. Requests of further processes are recorded without names.
const PROCESSES_MAX: usize = 65_536;

/// Most pages that are taken from one processor before the next processor's turn, 64 MiB.
const PAGES_MAX: usize = 16_384;

/// Options of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordOptions {
    /// Size of the kernel's buffer for each processor, at least 16 KiB. The buffer is read ten times a second
    /// and whenever half of it is full. An event takes about 70 bytes, and a request has two events. Default:
    /// 8 MiB.
    pub buffer: Bytes,
    /// Most requests that are recorded. Each takes about 100 bytes until the end. Default: 8,000,000.
    pub requests_max: usize,
}

impl Default for RecordOptions {
    fn default() -> RecordOptions {
        RecordOptions {
            buffer: Bytes(8 << 20),
            requests_max: 8_000_000,
        }
    }
}

/// A recording under way.
#[derive(Debug)]
pub struct Recorder {
    // Dropped before the instance, which cannot be removed while these files are open.
    processors: Vec<Processor>,
    instance: Instance,
    target: Target,
    reader: RingReader,
    page: Vec<u8>,
    order: Order,
    requests_max: usize,
    taken: Taken,
}

/// The buffer of a processor.
#[derive(Debug)]
struct Processor {
    pages: File,
    statistics: String,
}

/// Results of the events so far.
#[derive(Debug)]
struct Taken {
    pairing: Pairing,
    processes: BTreeMap<u32, (String, u64)>,
    events: u64,
    failed: u64,
}

/// State of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Going {
    /// The recording can go on.
    On,
    /// The device is gone.
    Gone,
    /// The recording has [`RecordOptions::requests_max`] requests.
    Full,
}

/// Results of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Requests that were submitted and completed during the recording. The first one begins at time zero. Every
    /// request has its arrival, completion and process (the thread's number), and is for device 0. The trace has the
    /// names of these threads. Addresses count from the start of the whole disk. Requests without sectors are left
    /// out unless they are flushes, since a trace cannot hold them.
    pub trace: Trace,
    /// Requests that were submitted and did not complete before the end. They are not in the trace.
    pub unfinished: u64,
    /// Completions of requests that were submitted before the recording, or whose submission was lost.
    pub unpaired: u64,
    /// Requests that ended with an error. They are in the trace.
    pub failed: u64,
    /// Events that the kernel lost because its buffer was full. At most this number of requests is missing,
    /// and other requests may have a wrong completion.
    pub lost: u64,
    /// Number of recorded events.
    pub events: u64,
    /// Time from the first request to the last completion.
    pub span: Nanos,
    /// Threads that submitted requests, the busiest first.
    pub processes: Vec<Process>,
}

/// A thread that submitted requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub id: u32,
    /// Name of the thread at its last request, at most 15 bytes.
    pub name: String,
    /// Number of the thread's requests, complete or not.
    pub requests: u64,
}

impl Recorder {
    /// Starts a recording.
    ///
    /// # Errors
    ///
    /// If tracefs is not available, does not permit tracing (which usually takes root), or lacks the events.
    pub fn start(target: &Target, options: &RecordOptions) -> Result<Recorder, RecordError> {
        let instance = Instance::new()?;
        let formats =
            BLOCK_EVENTS.map(|name| instance.read_optional(&format!("events/block/{name}/format")));
        let [queue, complete, unqueued] = &formats;
        let reader = RingReader::new(
            &instance.read_root("events/header_page")?,
            [queue.as_deref(), complete.as_deref(), unqueued.as_deref()],
        )?;
        // The times of all processors are comparable in this clock. A change of the clock empties the buffer.
        instance.write("trace_clock", "mono")?;
        let kib = options.buffer.0.div_ceil(1024).max(16);
        instance.write("buffer_size_kb", &kib.to_string())?;
        let filter = target.filter();
        for (name, format) in BLOCK_EVENTS.iter().zip(&formats) {
            if format.is_some() {
                instance.write(&format!("events/block/{name}/filter"), &filter)?;
            }
        }
        let page = instance.page_bytes().max(reader.page_bytes());
        let processors = instance
            .processors()?
            .into_iter()
            .map(|name| {
                Ok(Processor {
                    pages: instance.open(&format!("per_cpu/{name}/trace_pipe_raw"))?,
                    statistics: format!("per_cpu/{name}/stats"),
                })
            })
            .collect::<Result<Vec<Processor>, RecordError>>()?;
        // Completions are enabled first. A completion without its submission is only counted. A submission
        // without its completion would leave a request open.
        for (name, format) in BLOCK_EVENTS.iter().zip(&formats).rev() {
            if format.is_some() {
                instance.write(&format!("events/block/{name}/enable"), "1")?;
            }
        }
        Ok(Recorder {
            processors,
            instance,
            target: target.clone(),
            reader,
            page: vec![0; page],
            order: Order::new(),
            requests_max: options.requests_max,
            taken: Taken {
                pairing: Pairing::new(Some(ArrivalEvent::Queue)),
                processes: BTreeMap::new(),
                events: 0,
                failed: 0,
            },
        })
    }

    /// Waits until a buffer is half full, for `most` and 100 ms at most. Then takes the events in the
    /// buffers.
    ///
    /// # Errors
    ///
    /// If the buffers cannot be read.
    pub fn step(&mut self, most: Duration) -> Result<Going, RecordError> {
        let most = most.min(Duration::from_millis(100));
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(most.subsec_nanos()),
        };
        let mut waiting: Vec<PollFd<'_>> = self
            .processors
            .iter()
            .map(|processor| PollFd::new(&processor.pages, PollFlags::IN))
            .collect();
        match poll(&mut waiting, Some(&timeout)) {
            // Signals are handled elsewhere.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                return Err(RecordError::Tracefs {
                    what: "wait for",
                    file: "per_cpu/*/trace_pipe_raw".to_owned(),
                    source: error.into(),
                });
            }
        }
        drop(waiting);
        self.take()?;
        Ok(if self.taken.pairing.held() >= self.requests_max {
            Going::Full
        } else if self.target.is_gone() {
            Going::Gone
        } else {
            Going::On
        })
    }

    /// Takes the events in the buffers. Returns true if all events were taken.
    fn take(&mut self) -> Result<bool, RecordError> {
        let mut cut = None;
        for processor in &mut self.processors {
            let mut last = 0;
            let mut pages = 0;
            loop {
                let bytes = match processor.pages.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(bytes) => bytes,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(source) => {
                        return Err(RecordError::Tracefs {
                            what: "read",
                            file: processor.statistics.replace("stats", "trace_pipe_raw"),
                            source,
                        });
                    }
                };
                let (order, dev) = (&mut self.order, self.target.dev());
                self.reader.page(&self.page[..bytes], |event| {
                    last = event.time;
                    // The filter excludes other devices, except in events from before the filter was set.
                    if event.dev == dev {
                        order.add(event);
                    }
                })?;
                pages += 1;
                if pages == PAGES_MAX {
                    cut = Some(cut.map_or(last, |cut: u64| cut.min(last)));
                    break;
                }
            }
        }
        let taken = &mut self.taken;
        self.order.round(cut, |event| taken.event(event));
        Ok(cut.is_none())
    }

    /// Ends the recording and removes the instance.
    ///
    /// # Errors
    ///
    /// If the buffers cannot be read to their end.
    pub fn finish(mut self) -> Result<Recording, RecordError> {
        self.instance.write("tracing_on", "0")?;
        while !self.take()? {}
        let taken = &mut self.taken;
        self.order.rest(|event| taken.event(event));
        let mut lost = 0;
        for processor in &self.processors {
            lost += tracefs::lost(&self.instance.read(&processor.statistics)?);
        }
        self.processors.clear();
        drop(self.instance);
        Ok(self.taken.finish(lost))
    }
}

impl Taken {
    fn event(&mut self, event: &RingEvent) {
        self.events += 1;
        self.failed += u64::from(event.failed);
        let Some(block) = &event.event else {
            return;
        };
        if let (Some(name), Some(id)) = (event.name, block.request.process) {
            self.process(id, &name);
        }
        self.pairing.event(self.events, block);
    }

    fn process(&mut self, id: u32, name: &[u8; NAME_MAX]) {
        let end = name
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(name.len());
        let name = &name[..end];
        if let Some((known, requests)) = self.processes.get_mut(&id) {
            *requests += 1;
            if known.as_bytes() != name {
                // A thread may change its name, and its number may be used again.
                *known = String::from_utf8_lossy(name).into_owned();
            }
        } else if self.processes.len() < PROCESSES_MAX {
            let name = String::from_utf8_lossy(name).into_owned();
            self.processes.insert(id, (name, 1));
        }
    }

    fn finish(self, lost: u64) -> Recording {
        let paired = self.pairing.finish();
        let mut requests: Vec<_> = paired
            .requests
            .into_iter()
            .map(|(_, request)| request)
            .filter_map(for_trace)
            .collect();
        let first = requests.iter().filter_map(|request| request.arrival).min();
        let base = first.unwrap_or(Time::ZERO) - Time::ZERO;
        let mut span = Nanos::ZERO;
        for request in &mut requests {
            request.arrival = request.arrival.map(|time| time.saturating_sub(base));
            request.completion = request.completion.map(|time| time.saturating_sub(base));
            let end = request.completion.unwrap_or(Time::ZERO);
            span = span.max(end - Time::ZERO);
        }
        let mut processes: Vec<Process> = self
            .processes
            .into_iter()
            .map(|(id, (name, requests))| Process { id, name, requests })
            .collect();
        processes.sort_by_key(|process| std::cmp::Reverse(process.requests));
        let names = processes.iter();
        let names = names.map(|process| (process.id, &process.name));
        Recording {
            trace: Trace::new(requests).with_process_names(names),
            unfinished: paired.unfinished,
            unpaired: paired.unpaired,
            failed: self.failed,
            lost,
            events: self.events,
            span,
            processes,
        }
    }
}

/// Returns a complete request in the form of a trace. A flush has no sectors, and every other request has
/// some.
fn for_trace(mut request: TraceRequest) -> Option<TraceRequest> {
    request.completion?;
    if request.op == Op::Flush {
        request.extent = Extent::default();
    } else if request.extent.is_empty() {
        return None;
    }
    Some(request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_sched::Flags;
    use headtime_workload::{BlockAction, BlockEvent, Level};

    fn event(time: u64, process: u32, name: &[u8]) -> RingEvent {
        let mut padded = [0; NAME_MAX];
        padded[..name.len()].copy_from_slice(name);
        RingEvent {
            time,
            kind: 0,
            dev: 0,
            event: Some(BlockEvent {
                action: BlockAction::Queue,
                request: TraceRequest {
                    arrival: Some(Time::from_nanos(time)),
                    completion: None,
                    device: 0,
                    op: Op::Read,
                    extent: Extent::at(time, 8),
                    process: Some(process),
                    flags: Flags::NONE,
                },
            }),
            failed: false,
            name: Some(padded),
        }
    }

    fn nothing_yet() -> Taken {
        Taken {
            pairing: Pairing::new(Some(ArrivalEvent::Queue)),
            processes: BTreeMap::new(),
            events: 0,
            failed: 0,
        }
    }

    /// If events that no kernel should send got into a trace, the trace could not be read again.
    #[test]
    fn what_no_trace_has_a_place_for_is_left_out() {
        let mut taken = nothing_yet();
        let requests = [
            (Op::Read, Extent::at(0, 0)),
            (Op::Flush, Extent::at(8, 8)),
            (Op::Read, Extent::at(16, 8)),
        ];
        for (time, complete) in [(10, false), (20, true)] {
            for (op, extent) in requests {
                let mut event = event(time, 1, b"dd");
                let block = event.event.as_mut().expect("one for sectors");
                (block.request.op, block.request.extent) = (op, extent);
                if complete {
                    block.action = BlockAction::Complete(Level::Both);
                }
                taken.event(&event);
            }
        }
        let recording = taken.finish(0);
        assert_eq!(recording.unfinished, 0);
        let requests = recording.trace.requests.iter();
        let requests: Vec<_> = requests
            .map(|request| (request.op, request.extent))
            .collect();
        assert_eq!(
            requests,
            [
                (Op::Flush, Extent::default()),
                (Op::Read, Extent::at(16, 8))
            ]
        );
    }

    #[test]
    fn processes_are_those_that_asked() {
        let mut taken = nothing_yet();
        taken.event(&event(10, 7, b"dd"));
        taken.event(&event(20, 9, b"fifteen-letters"));
        // The name leaves no byte for a zero at the end.
        taken.event(&event(30, 9, b"sixteen--letters"));
        let recording = taken.finish(3);
        assert_eq!(recording.unfinished, 3);
        assert_eq!((recording.lost, recording.events), (3, 3));
        assert!(recording.trace.requests.is_empty());
        assert_eq!(recording.trace.process_name(7), Some("dd"));
        assert_eq!(recording.trace.process_name(9), Some("sixteen--letters"));
        let processes: Vec<_> = recording
            .processes
            .iter()
            .map(|process| (process.id, process.name.as_str(), process.requests))
            .collect();
        assert_eq!(processes, [(9, "sixteen--letters", 2), (7, "dd", 1)]);
    }
}
