//! A replay that keeps the recorded arrivals.

use super::script::Cursor;
use super::{ReplayError, Script};
use crate::{NewRequest, Source};
use headtime_units::{Nanos, Time};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Replay that submits every request at its recorded arrival. The disk's speed does not matter.
///
/// An open replay measures response times under the recorded load. Its throughput is never higher than
/// recorded. If the disk cannot keep up, the queue grows without bound.
#[derive(Clone, Debug)]
pub struct OpenReplay {
    cursor: Cursor,
    speed: Speed,
    /// Recorded time that becomes the zero of the run.
    zero: Time,
}

/// Arrival of the first request of an open replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Start {
    /// At the start of the run.
    #[default]
    AtOnce,
    /// At its recorded time after the zero of the trace.
    AsRecorded,
}

/// Speed of a replay relative to the recording: 2 halves all times, 0.5 doubles them.
///
/// As text, a speed is a decimal number. The value is stored as a fraction over 2³², so that scaling is
/// exact and the same on all machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed(u64);

/// A text or number that is no [`Speed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("allowed is a speed from 0.0001 to 10000, where 1 is as recorded and 0.5 half as fast")]
pub struct SpeedError;

impl Speed {
    /// Speed of the recording.
    pub const AS_RECORDED: Speed = Speed(1 << 32);

    /// Creates the speed nearest to `factor`.
    ///
    /// # Errors
    ///
    /// If `factor` is not between 0.0001 and 10,000.
    pub fn new(factor: f64) -> Result<Speed, SpeedError> {
        if (1e-4..=1e4).contains(&factor) {
            Ok(Speed((factor * 4_294_967_296.0 + 0.5) as u64))
        } else {
            Err(SpeedError)
        }
    }

    /// Returns the replayed length of a recorded span, rounded down and at most [`Nanos::MAX`].
    pub fn scale(self, span: Nanos) -> Nanos {
        let scaled = (u128::from(span.as_nanos()) << 32) / u128::from(self.0);
        Nanos::from_nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}

impl Default for Speed {
    fn default() -> Speed {
        Speed::AS_RECORDED
    }
}

impl FromStr for Speed {
    type Err = SpeedError;

    fn from_str(text: &str) -> Result<Speed, SpeedError> {
        text.parse().map_err(|_| SpeedError).and_then(Speed::new)
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.0 as f64 / 4_294_967_296.0).fmt(f)
    }
}

impl OpenReplay {
    /// Replays the script at a speed.
    ///
    /// # Errors
    ///
    /// If a request has no arrival, or arrives too late for any run.
    pub fn new(script: Arc<Script>, speed: Speed, start: Start) -> Result<OpenReplay, ReplayError> {
        if let Some(index) = script.untimed() {
            return Err(ReplayError::NoArrival { request: index + 1 });
        }
        let zero = match start {
            Start::AtOnce => script.arrivals().map(|(first, _)| first),
            Start::AsRecorded => None,
        };
        let zero = zero.unwrap_or(Time::ZERO);
        let too_late = |arrival: Option<Time>| {
            let arrival = arrival.map(|at| speed.scale(at - zero));
            arrival.is_some_and(|arrival| Time::ZERO.saturating_add(arrival) > Time::LATEST)
        };
        // Requests are in order of arrival.
        if too_late(script.arrivals().map(|(_, last)| last)) {
            let in_time = script
                .iter()
                .take_while(|request| !too_late(request.arrival));
            return Err(ReplayError::TooLate {
                request: in_time.count() as u64 + 1,
            });
        }
        Ok(OpenReplay {
            speed,
            zero,
            cursor: Cursor::new(script),
        })
    }
}

impl Source for OpenReplay {
    fn next_arrival(&self) -> Option<Time> {
        let recorded = self.cursor.next()?.arrival?;
        Some(Time::ZERO.saturating_add(self.speed.scale(recorded - self.zero)))
    }

    fn poll(&mut self, now: Time) -> Option<NewRequest> {
        let arrival = self.next_arrival().filter(|arrival| *arrival <= now)?;
        Some(self.cursor.make(arrival))
    }

    fn completed(&mut self, _now: Time, cookie: u64) {
        self.cursor.completed(cookie);
    }

    fn done(&self) -> bool {
        self.cursor.done()
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::tests::{fitter, trace};
    use super::*;
    use crate::Fit;

    fn replay(speed: &str, start: Start) -> OpenReplay {
        let trace = trace(&[(5, 0, 0), (5, 0, 8), (8, 0, 16)]);
        let script = Script::new(&trace, &[], &fitter(Fit::Refuse)).unwrap();
        OpenReplay::new(Arc::new(script), speed.parse().unwrap(), start).unwrap()
    }

    fn ms(millis: u64) -> Time {
        Time::ZERO + Nanos::from_millis(millis)
    }

    #[test]
    fn an_open_replay_keeps_the_recorded_arrivals() {
        let mut replay = replay("1", Start::AtOnce);
        assert_eq!(replay.next_arrival(), Some(ms(0)));
        assert_eq!(replay.poll(ms(0)).unwrap().cookie, 0);
        assert_eq!(replay.poll(ms(0)).unwrap().cookie, 1);
        assert_eq!(replay.poll(ms(0)), None);
        assert_eq!(replay.next_arrival(), Some(ms(3)));
        assert_eq!(replay.poll(ms(2)), None);
        // A late poll returns the time at which the request was due.
        let last = replay.poll(ms(10)).unwrap();
        assert_eq!((last.cookie, last.arrival), (2, ms(3)));
        assert_eq!((replay.next_arrival(), replay.done()), (None, false));
        for cookie in [1, 0, 2] {
            replay.completed(ms(10), cookie);
        }
        assert!(replay.done());
    }

    #[test]
    fn an_open_replay_scales_arrivals_by_speed_and_start() {
        let mut half = replay("0.5", Start::AsRecorded);
        assert_eq!(half.next_arrival(), Some(ms(10)));
        half.poll(ms(10)).unwrap();
        half.poll(ms(10)).unwrap();
        assert_eq!(half.next_arrival(), Some(ms(16)));
        assert_eq!(Speed::new(1.0), Ok(Speed::AS_RECORDED));
        assert_eq!(Speed::AS_RECORDED.scale(Nanos::MAX), Nanos::MAX);
        assert_eq!(Speed::new(1e-4).unwrap().scale(Nanos::MAX), Nanos::MAX);
        for bad in ["0", "-1", "nan", "inf", "fast", "1e9"] {
            assert_eq!(bad.parse::<Speed>(), Err(SpeedError), "{bad}");
        }
    }

    #[test]
    fn an_arrival_that_no_run_comes_to_is_named() {
        let late = |nanos: u64, speed: f64| {
            let mut trace = trace(&[(5, 0, 0), (6, 0, 8), (7, 0, 16)]);
            for (request, at) in trace.requests.iter_mut().zip([7, nanos, nanos]) {
                request.arrival = Some(Time::from_nanos(at));
            }
            let script = Script::new(&trace, &[], &fitter(Fit::Refuse)).unwrap();
            let speed = Speed::new(speed).unwrap();
            OpenReplay::new(Arc::new(script), speed, Start::AtOnce).map(|_| ())
        };
        let latest = Time::LATEST.as_nanos();
        assert_eq!(late(latest + 7, 1.0), Ok(()));
        let second = Err(ReplayError::TooLate { request: 2 });
        assert_eq!(late(latest + 8, 1.0), second);
        assert_eq!(late(u64::MAX - 1, 1e-4), second);
        assert_eq!(late(latest / 9_999, 1e-4), second);
        assert_eq!(late(u64::MAX - 1, 1e4), Ok(()));
    }

    #[test]
    fn a_trace_without_arrivals_is_refused() {
        let mut trace = trace(&[(5, 0, 0), (6, 0, 8)]);
        trace.requests[1].arrival = None;
        let script = Script::new(&trace, &[], &fitter(Fit::Refuse)).unwrap();
        let error = OpenReplay::new(Arc::new(script), Speed::default(), Start::AtOnce).unwrap_err();
        assert_eq!(error, ReplayError::NoArrival { request: 2 });
    }
}
