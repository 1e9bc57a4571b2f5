//! A trace prepared for a drive.

use super::ReplayError;
use crate::scratch::{Filed, FiledRequests};
use crate::{Fitted, Fitter, NewRequest, PastTheEnd, Trace, TraceRequest};
use headtime_sched::{Class, Flags, Op, Origin};
use headtime_units::{Extent, Sectors, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Requests for the chosen devices of a trace, on sectors of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    formats: String,
    requests: Vec<ScriptRequest>,
    /// The trace if it is long; then `requests` is empty.
    filed: Option<Arc<Filed>>,
    fitter: Fitter,
    /// Program and class of processes, if the trace is long.
    assigned: BTreeMap<u32, (u16, Class)>,
    devices: Vec<u32>,
    count: u64,
    /// Arrivals of the first and the last request.
    arrivals: Option<(Time, Time)>,
    /// Index of the first request without an arrival.
    untimed: Option<u64>,
    widened: u64,
    moved: u64,
    /// Writes by their alignment: the exponent of a power of two.
    writes: [u64; 65],
}

/// A request of a [`Script`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptRequest {
    /// Recorded arrival.
    pub arrival: Option<Time>,
    /// Recorded completion.
    pub completion: Option<Time>,
    /// Operation of the request.
    pub op: Op,
    /// Sectors of the drive.
    pub extent: Extent,
    pub flags: Flags,
    /// True if the trace names the process. Process 0 may be a process or unknown.
    pub process_known: bool,
    /// Origin of the request: the recorded process, with the device as export. See [`Script::devices`].
    pub origin: Origin,
    /// Class of the request.
    pub class: Class,
}

impl ScriptRequest {
    /// Makes the request with arrival at `arrival`.
    pub(super) fn at(&self, cookie: u64, arrival: Time) -> NewRequest {
        NewRequest {
            cookie,
            arrival,
            op: self.op,
            extent: self.extent,
            flags: self.flags,
            origin: self.origin,
            class: self.class,
        }
    }
}

/// Steps through a script in order and counts the outstanding requests.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    script: Arc<Script>,
    /// Requests of a long trace, and the next request.
    filed: Option<(FiledRequests, Option<ScriptRequest>)>,
    next: u64,
    outstanding: u32,
}

impl Cursor {
    pub fn new(script: Arc<Script>) -> Cursor {
        let filed = script.filed.as_ref().map(|filed| {
            let mut requests = FiledRequests::new(filed);
            let first = script.next_of(&mut requests);
            (requests, first)
        });
        Cursor {
            script,
            filed,
            next: 0,
            outstanding: 0,
        }
    }

    /// Number of requests that were made and have not completed.
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Returns the next request, if any is left.
    pub fn next(&self) -> Option<&ScriptRequest> {
        match &self.filed {
            None => self.script.requests.get(self.next as usize),
            Some((_, next)) => next.as_ref(),
        }
    }

    /// Makes the next request.
    ///
    /// # Panics
    ///
    /// If no request is left.
    pub fn make(&mut self, arrival: Time) -> NewRequest {
        let request = self.next().expect("a request is left");
        let request = request.at(self.next, arrival);
        if let Some((requests, next)) = &mut self.filed {
            *next = self.script.next_of(requests);
        }
        self.next += 1;
        self.outstanding += 1;
        request
    }

    pub fn completed(&mut self, cookie: u64) {
        assert!(cookie < self.next, "completion of a request never made");
        self.outstanding = self
            .outstanding
            .checked_sub(1)
            .expect("a completion too many");
    }

    /// Returns true if every request was made and has completed.
    pub fn done(&self) -> bool {
        self.outstanding == 0 && self.next().is_none()
    }
}

impl Script {
    /// Gives a program and a class to the requests of processes that `fits` accepts, if the requests have no program yet.
    pub fn assign(&mut self, program: u16, class: Class, fits: impl Fn(u32) -> bool) {
        let mut known = BTreeMap::new();
        let mut is_chosen = |request: &ScriptRequest| {
            let process = request.origin.process;
            let is_free = request.process_known && request.origin.program == 0;
            is_free && *known.entry(process).or_insert_with(|| fits(process))
        };
        for request in &mut self.requests {
            if is_chosen(request) {
                request.origin.program = program;
                request.class = class;
            }
        }
        if self.filed.is_some() {
            let chosen = self.iter().filter(is_chosen);
            let processes: BTreeSet<u32> = chosen.map(|request| request.origin.process).collect();
            let assigned = processes.into_iter().map(|one| (one, (program, class)));
            self.assigned.extend(assigned);
        }
    }

    /// Creates a script from the requests for `devices`, or for all devices if `devices` is empty. All
    /// requests go to the `fitter`'s drive, in order of arrival.
    ///
    /// # Errors
    ///
    /// If a request does not fit the drive and wrapping is off, if a request is longer than drives
    /// accept, if a device has no request, and if there are more than 65,535 devices.
    pub fn new(trace: &Trace, devices: &[u32], fitter: &Fitter) -> Result<Script, ReplayError> {
        let present = trace.devices();
        if let Some(device) = devices.iter().find(|device| !present.contains(device)) {
            let present: Vec<String> = present.iter().map(u32::to_string).collect();
            return Err(ReplayError::NoSuchDevice {
                device: *device,
                present: present.join(", "),
            });
        }
        let mut chosen = if devices.is_empty() {
            present
        } else {
            devices.to_vec()
        };
        chosen.sort_unstable();
        chosen.dedup();
        if chosen.len() > usize::from(u16::MAX) {
            return Err(ReplayError::TooManyDevices {
                devices: chosen.len(),
            });
        }
        let keeps = trace.filed.is_none();
        let mut script = Script {
            formats: trace
                .notes
                .of_kinds(|kind| Some(kind.format))
                .unwrap_or_default(),
            requests: Vec::with_capacity(trace.requests.len()),
            filed: trace.filed.clone(),
            fitter: *fitter,
            assigned: BTreeMap::new(),
            devices: chosen,
            count: 0,
            arrivals: None,
            untimed: None,
            widened: 0,
            moved: 0,
            writes: [0; 65],
        };
        let (mut number, mut error) = (0, None);
        trace.iter().for_each(|request| {
            number += 1;
            if error.is_some() {
                return;
            }
            match script.of(number, &request) {
                Ok(Some((request, fitted))) => script.add(request, fitted, keeps),
                Ok(None) => {}
                Err(found) => error = Some(found),
            }
        });
        error.map_or(Ok(script), Err)
    }

    /// Counts a request, and keeps it.
    fn add(&mut self, request: ScriptRequest, fitted: Fitted, keeps: bool) {
        if request.arrival.is_none() {
            self.untimed.get_or_insert(self.count);
        }
        self.count += 1;
        if let Some(last) = request.arrival {
            let first = self.arrivals.map_or(last, |(first, _)| first);
            self.arrivals = Some((first, last));
        }
        self.widened += u64::from(fitted.widened);
        self.moved += u64::from(fitted.moved);
        if request.op == Op::Write {
            let ends = request.extent.start.get() | request.extent.end().get();
            self.writes[ends.trailing_zeros() as usize] += 1;
        }
        if keeps {
            self.requests.push(request);
        }
    }

    /// Returns a request of the trace on the drive, if the device is chosen. `number` is counted from 1.
    #[inline]
    fn of(
        &self,
        number: u64,
        request: &TraceRequest,
    ) -> Result<Option<(ScriptRequest, Fitted)>, ReplayError> {
        let Ok(rank) = self.devices.binary_search(&request.device) else {
            return Ok(None);
        };
        let fitter = &self.fitter;
        let mut fitted = Fitted::default();
        if request.op != Op::Flush {
            fitted = fitter.fit(request.extent).map_err(|extent| PastTheEnd {
                request: number,
                device: request.device,
                extent,
                sector_bytes: fitter.sector_bytes(),
                capacity: fitter.capacity(),
            })?;
            let moves = matches!(request.op, Op::Read | Op::Write);
            if moves && fitted.extent.len > Sectors::REQUEST_MAX {
                return Err(ReplayError::TooLong {
                    request: number,
                    extent: fitted.extent,
                    sector_bytes: fitter.sector_bytes(),
                });
            }
        }
        let process = request.process.unwrap_or(0);
        let assigned = request.process.and_then(|_| self.assigned.get(&process));
        let (program, class) = assigned.copied().unwrap_or_default();
        let request = ScriptRequest {
            arrival: request.arrival,
            completion: request.completion,
            op: request.op,
            extent: fitted.extent,
            flags: request.flags,
            process_known: request.process.is_some(),
            class,
            origin: Origin {
                process,
                program,
                export: rank as u16 + 1,
            },
        };
        Ok(Some((request, fitted)))
    }

    /// Returns the next request for a chosen device.
    fn next_of(&self, requests: &mut FiledRequests) -> Option<ScriptRequest> {
        requests.find_map(|request| {
            let made = self.of(0, &request);
            made.expect("every request was checked").map(|(one, _)| one)
        })
    }

    /// Returns all requests of any trace, in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = ScriptRequest> {
        let mut filed = self.filed.as_ref().map(FiledRequests::new);
        let rest = std::iter::from_fn(move || self.next_of(filed.as_mut()?));
        self.requests.iter().copied().chain(rest)
    }

    /// Number of requests.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Error that ended a replay too early.
    pub fn failure(&self) -> Option<&str> {
        self.filed.as_ref()?.failure()
    }

    /// The first and the latest arrival.
    pub fn arrivals(&self) -> Option<(Time, Time)> {
        self.arrivals
    }

    /// Index of the first request without an arrival.
    pub(super) fn untimed(&self) -> Option<u64> {
        self.untimed
    }

    /// Requests in order of arrival. Empty if the trace is long.
    pub fn requests(&self) -> &[ScriptRequest] {
        &self.requests
    }

    /// Formats of the trace.
    pub fn formats(&self) -> &str {
        &self.formats
    }

    /// Chosen devices, ascending. The first device has export 1 in the origin of its requests, the
    /// second has export 2. Export 0 would mean an unknown device.
    pub fn devices(&self) -> &[u32] {
        &self.devices
    }

    /// Counts all writes, and the writes that begin or end off a multiple of `sectors`.
    ///
    /// # Panics
    ///
    /// If `sectors` is not a power of two.
    pub fn partial_writes(&self, sectors: u64) -> (u64, u64) {
        assert!(sectors.is_power_of_two(), "{sectors} sectors");
        let partial = &self.writes[..sectors.trailing_zeros() as usize];
        (self.writes.iter().sum(), partial.iter().sum())
    }

    /// Number of requests that were widened to whole sectors of the drive.
    pub fn widened(&self) -> u64 {
        self.widened
    }

    /// Number of requests that were moved to fit the drive.
    pub fn moved(&self) -> u64 {
        self.moved
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Fit, TraceRequest};
    use headtime_units::Sectors;

    /// Arrival in ms, device, start.
    pub(crate) fn trace(requests: &[(u64, u32, u64)]) -> Trace {
        Trace::new(
            requests
                .iter()
                .map(|(arrival, device, start)| TraceRequest {
                    arrival: Some(Time::from_nanos(arrival * 1_000_000)),
                    completion: None,
                    device: *device,
                    op: Op::Read,
                    extent: Extent::at(*start, 8),
                    process: None,
                    flags: Flags::NONE,
                })
                .collect(),
        )
    }

    pub(crate) fn fitter(fit: Fit) -> Fitter {
        Fitter::new(Sectors::new(1000), 512, fit)
    }

    #[test]
    fn devices_of_a_trace_become_exports() {
        let trace = trace(&[(0, 7, 0), (1, 3, 8), (2, 7, 16), (3, 9, 24)]);
        let all = Script::new(&trace, &[], &fitter(Fit::Refuse)).unwrap();
        let exports = |script: &Script| -> Vec<u16> {
            script
                .requests()
                .iter()
                .map(|request| request.origin.export)
                .collect()
        };
        assert_eq!(all.devices(), [3, 7, 9]);
        assert_eq!(exports(&all), [2, 1, 2, 3]);
        let some = Script::new(&trace, &[9, 7, 9], &fitter(Fit::Refuse)).unwrap();
        assert_eq!(some.devices(), [7, 9]);
        assert_eq!(exports(&some), [1, 1, 2]);
        let error = Script::new(&trace, &[7, 8], &fitter(Fit::Refuse)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no request of the trace is for device 8; it has requests for 3, 7, 9"
        );
    }

    /// The number of an export has 16 bits. A trace may have more devices than that.
    #[test]
    fn more_devices_than_exports_are_refused_unless_some_are_chosen() {
        let most = u32::from(u16::MAX);
        let of = |devices: u32| {
            let requests = (0..devices).map(|device| (0, device, 8));
            trace(&requests.collect::<Vec<_>>())
        };
        let all = Script::new(&of(most), &[], &fitter(Fit::Refuse)).unwrap();
        assert_eq!(all.devices().len(), 65_535);
        let many = of(most + 1);
        let error = Script::new(&many, &[], &fitter(Fit::Refuse)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the trace is of 65536 devices; allowed are 65535; choose some"
        );
        assert!(Script::new(&many, &[7, most], &fitter(Fit::Refuse)).is_ok());
    }

    #[test]
    fn a_request_that_no_drive_takes_is_named_unless_it_takes_no_time() {
        let mut trace = trace(&[(0, 0, 0), (1, 0, 8)]);
        let fitter = Fitter::new(Sectors::new(1 << 32), 4096, Fit::Refuse);
        let most = 8 * Sectors::REQUEST_MAX.get();
        trace.requests[1].extent = Extent::at(8, most);
        assert!(Script::new(&trace, &[], &fitter).is_ok());
        trace.requests[1].extent = Extent::at(8, most + 1);
        assert_eq!(
            Script::new(&trace, &[], &fitter).unwrap_err().to_string(),
            "request 2 is a read or write of 8388609 sectors of 4096 bytes; allowed are 8388608"
        );
        trace.requests[1].op = Op::Discard;
        assert!(Script::new(&trace, &[], &fitter).is_ok());
    }

    #[test]
    fn the_first_request_past_the_end_is_named() {
        let trace = trace(&[(0, 0, 0), (1, 5, 995), (2, 5, 2000)]);
        assert_eq!(
            Script::new(&trace, &[], &fitter(Fit::Refuse))
                .unwrap_err()
                .to_string(),
            "request 2 of the trace (device 5, 995+8 in sectors of 512 bytes) ends past the last sector of the drive; \
             allowed are addresses below 1000, or wrap them (fit wrap)"
        );
        let wrapped = Script::new(&trace, &[], &fitter(Fit::Wrap)).unwrap();
        assert_eq!((wrapped.moved(), wrapped.widened()), (2, 0));
        // A request for a device that is not chosen need not fit the drive.
        assert!(Script::new(&trace, &[0], &fitter(Fit::Refuse)).is_ok());
    }
}
