//! A replay that keeps a number of requests outstanding.

use super::Script;
use super::script::Cursor;
use crate::{NewRequest, Source};
use headtime_units::Time;
use std::sync::Arc;

/// Replay that submits requests in the order of the trace and keeps the same number outstanding. The
/// next request follows each completion at once. Recorded arrivals do not matter.
///
/// A closed replay measures throughput. Its response times belong to a load that waits for the disk.
/// The recorded load may not have waited.
#[derive(Clone, Debug)]
pub struct ClosedReplay {
    cursor: Cursor,
    depth: u32,
    /// Time of the last completion. Since this time another request may be made.
    room_since: Time,
}

impl ClosedReplay {
    /// Replays the script with `depth` requests outstanding from time zero on.
    ///
    /// # Panics
    ///
    /// If `depth` is zero.
    pub fn new(script: Arc<Script>, depth: u32) -> ClosedReplay {
        assert!(
            depth > 0,
            "a closed replay keeps at least one request outstanding"
        );
        ClosedReplay {
            cursor: Cursor::new(script),
            depth,
            room_since: Time::ZERO,
        }
    }
}

impl Source for ClosedReplay {
    fn next_arrival(&self) -> Option<Time> {
        let room = self.cursor.outstanding() < self.depth;
        self.cursor.next().filter(|_| room).map(|_| self.room_since)
    }

    fn poll(&mut self, now: Time) -> Option<NewRequest> {
        let arrival = self.next_arrival().filter(|arrival| *arrival <= now)?;
        Some(self.cursor.make(arrival))
    }

    fn completed(&mut self, now: Time, cookie: u64) {
        self.cursor.completed(cookie);
        self.room_since = now;
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

    #[test]
    fn a_completion_makes_room_for_one() {
        let trace = trace(&[(9, 0, 0), (9, 1, 8), (700, 0, 16), (800, 2, 24)]);
        let script = Script::new(&trace, &[], &fitter(Fit::Refuse)).unwrap();
        let mut replay = ClosedReplay::new(Arc::new(script), 2);
        let (start, later) = (Time::ZERO, Time::from_nanos(77));
        assert_eq!(replay.next_arrival(), Some(start));
        let cookies: Vec<u64> = std::iter::from_fn(|| replay.poll(start))
            .map(|request| request.cookie)
            .collect();
        assert_eq!(cookies, [0, 1]);
        assert_eq!(replay.next_arrival(), None);
        replay.completed(later, 1);
        assert_eq!(replay.next_arrival(), Some(later));
        let third = replay.poll(later).unwrap();
        assert_eq!((third.cookie, third.arrival), (2, later));
        assert_eq!(replay.poll(later), None);
        replay.completed(later, 0);
        replay.completed(later, 2);
        assert_eq!(replay.poll(later).unwrap().extent.start.get(), 24);
        assert_eq!((replay.poll(later), replay.done()), (None, false));
        replay.completed(later, 3);
        assert!(replay.done() && replay.next_arrival().is_none());
    }
}
