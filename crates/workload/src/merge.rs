//! Merges traces, and selects a part of a trace.

use crate::number::TIME_MAX;
use crate::numbered::Numbered;
use crate::reader::map_times;
use crate::{Part, Trace, TraceError};
use headtime_units::{Nanos, Time};
use std::collections::BTreeMap;

impl Trace {
    /// Merges traces into one, in order of arrival.
    ///
    /// Devices of one name become one device. A device without a name has its number as name. If times
    /// count from a calendar's zero, the traces keep their distance in time. Otherwise all traces count
    /// from one zero. A process has its name in the last trace that names it.
    ///
    /// # Errors
    ///
    /// If some traces count from a calendar's zero and others do not, and if arrivals lie more than 292
    /// years apart.
    ///
    /// # Panics
    ///
    /// If there is no trace.
    pub(crate) fn merged(traces: Vec<Trace>) -> Result<Trace, TraceError> {
        let is_dated = |trace: &&Trace| !trace.notes.base.is_zero();
        let dated = traces.iter().find(is_dated);
        let undated = traces.iter().find(|trace| !is_dated(trace));
        if let (Some(dated), Some(undated)) = (dated, undated) {
            return Err(TraceError::MixedClocks {
                dated: dated.notes.file.clone(),
                undated: undated.notes.file.clone(),
            });
        }
        let base = traces.iter().map(|trace| trace.notes.base).min();
        let base = base.expect("there is a trace");
        let mut devices: Numbered<String> = Numbered::default();
        let mut traces = traces.into_iter();
        let mut all = traces.next().expect("there is a trace");
        all.renumber(&mut devices);
        all.put_off(base)?;
        let mut names: BTreeMap<u32, String> = all.process_names.drain(..).collect();
        for mut trace in traces {
            trace.renumber(&mut devices);
            trace.put_off(base)?;
            names.extend(trace.process_names);
            all.requests.append(&mut trace.requests);
            all.notes.add(trace.notes);
        }
        all.notes.base = base;
        all.process_names = names.into_iter().collect();
        all.device_names = (0..).zip(devices.into_list()).collect();
        // A step back from one file to the next does not count as out of order.
        let counted = (all.notes.out_of_order, all.notes.step_back_max);
        all.sort(0);
        (all.notes.out_of_order, all.notes.step_back_max) = counted;
        Ok(all)
    }

    /// Renumbers devices by the numbers of their names in `devices`.
    fn renumber(&mut self, devices: &mut Numbered<String>) {
        let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
        for at in 0..self.requests.len() {
            let old = self.requests[at].device;
            let new = numbers.entry(old).or_insert_with(|| {
                let name = self.device_name(old).map(str::to_owned);
                let name = name.unwrap_or_else(|| old.to_string());
                devices.number(name.as_str(), || name.clone())
            });
            self.requests[at].device = *new;
        }
    }

    /// Makes times count from `base` in place of the trace's own base.
    fn put_off(&mut self, base: Nanos) -> Result<(), TraceError> {
        let later = self.notes.base.saturating_sub(base).as_nanos();
        let add = |time: Time| time.as_nanos().saturating_add(later);
        let latest = self.requests.iter().filter_map(|request| request.arrival);
        if latest.max().is_some_and(|latest| add(latest) > TIME_MAX) {
            return Err(TraceError::TooFar {
                file: self.notes.file.clone(),
                line: self.notes.lines,
                found: self.notes.base.to_string(),
                other: base.to_string(),
            });
        }
        map_times(&mut self.requests, |time| Time::from_nanos(add(time)));
        Ok(())
    }

    /// Removes the requests outside of a part.
    ///
    /// # Errors
    ///
    /// If the part has no request.
    pub(crate) fn keep(&mut self, part: Part) -> Result<(), TraceError> {
        let all = self.count();
        let mut arrivals = self.requests.iter().filter_map(|request| request.arrival);
        let first = arrivals.next();
        let mut duration = first.map(|first| arrivals.next_back().unwrap_or(first) - first);
        if let Some(filed) = &mut self.filed {
            duration = Some(filed.arrivals.1 - filed.arrivals.0);
            filed.keep(part.from, part.span, part.first);
        }
        if part.from.is_some() || part.span.is_some() {
            let from = part.from.unwrap_or(Nanos::ZERO);
            self.requests.retain(|request| {
                let (Some(arrival), Some(first)) = (request.arrival, first) else {
                    return false;
                };
                let since = arrival - first;
                since >= from && part.span.is_none_or(|span| since - from < span)
            });
        }
        if let Some(most) = part.first {
            self.requests
                .truncate(usize::try_from(most).unwrap_or(usize::MAX));
        }
        let left = self.count();
        self.notes.outside += all - left;
        if left == 0 {
            return Err(TraceError::EmptyPart {
                file: self.notes.file.clone(),
                requests: all as usize,
                duration,
            });
        }
        Ok(())
    }
}
