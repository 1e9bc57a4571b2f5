//! Puts the events of several processors in one order.

use headtime_workload::RingEvent;

/// Holds back events until their order is known, and passes them on in order of time.
///
/// The events of each processor come in order. A round takes all events of one processor after the
/// other. An event before the latest event of a round was in some processor's buffer by the end of
/// that round, so the next round takes the event. After that next round the order is known up to
/// that time.
#[derive(Debug, Default)]
pub(crate) struct Order {
    events: Vec<RingEvent>,
    /// Latest time of all events.
    seen: u64,
    /// Latest time of all events before this round.
    before: u64,
}

impl Order {
    pub(crate) fn new() -> Order {
        Order::default()
    }

    pub(crate) fn add(&mut self, event: RingEvent) {
        self.seen = self.seen.max(event.time);
        self.events.push(event);
    }

    /// Ends a round and passes on the events whose order is known. If events were left in the
    /// buffers, `cut` is the earliest time of an event that may be missing.
    pub(crate) fn round(&mut self, cut: Option<u64>, each: impl FnMut(&RingEvent)) {
        let until = self.before.min(cut.unwrap_or(u64::MAX));
        self.before = self.seen;
        self.hand_out(until, each);
    }

    /// Passes on the remaining events, when no more events will come.
    pub(crate) fn rest(&mut self, each: impl FnMut(&RingEvent)) {
        self.hand_out(u64::MAX, each);
    }

    fn hand_out(&mut self, until: u64, each: impl FnMut(&RingEvent)) {
        // The sort is stable, so events of one processor with equal times keep their order.
        self.events.sort_by_key(|event| event.time);
        let count = self.events.partition_point(|event| event.time <= until);
        self.events[..count].iter().for_each(each);
        self.events.drain(..count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time: u64) -> RingEvent {
        RingEvent {
            time,
            kind: 0,
            dev: 0,
            event: None,
            failed: false,
            name: None,
        }
    }

    fn round(order: &mut Order, times: &[u64], cut: Option<u64>) -> Vec<u64> {
        for time in times {
            order.add(event(*time));
        }
        let mut out = Vec::new();
        order.round(cut, |event| out.push(event.time));
        out
    }

    #[test]
    fn what_may_still_come_is_waited_for() {
        let mut order = Order::new();
        // Events of the first processor, then of the second. The first may have had more events by then.
        assert!(round(&mut order, &[10, 30, 20, 40], None).is_empty());
        assert_eq!(round(&mut order, &[35, 60, 50], None), [10, 20, 30, 35, 40]);
        // The first processor has too many events for one round.
        assert_eq!(round(&mut order, &[70, 55], Some(50)), [50]);
        assert_eq!(round(&mut order, &[], None), [55, 60, 70]);
        assert!(round(&mut order, &[80], None).is_empty());
        let mut rest = Vec::new();
        order.rest(|event| rest.push(event.time));
        assert_eq!(rest, [80]);
    }
}
