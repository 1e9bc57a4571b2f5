//! One order for the events of several processors.

use headtime_workload::RingEvent;

/// Events that have come, and go on in order of time.
///
/// Each processor's events come in order, the processors one after the other, in rounds that take all
/// there is. What happened before the latest event of one round was there by the end of it, on whichever
/// processor, so the next round has taken it: up to that time the order is known.
#[derive(Debug, Default)]
pub(crate) struct Order {
    events: Vec<RingEvent>,
    /// The latest time that was seen.
    seen: u64,
    /// The same, before this round.
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

    /// Ends a round and hands out what is in order. If not all there was has been taken, `cut` is the
    /// earliest time from which something may be missing.
    pub(crate) fn round(&mut self, cut: Option<u64>, each: impl FnMut(&RingEvent)) {
        let until = self.before.min(cut.unwrap_or(u64::MAX));
        self.before = self.seen;
        self.hand_out(until, each);
    }

    /// Hands out what is left, when no more will come.
    pub(crate) fn rest(&mut self, each: impl FnMut(&RingEvent)) {
        self.hand_out(u64::MAX, each);
    }

    fn hand_out(&mut self, until: u64, each: impl FnMut(&RingEvent)) {
        // Stable: a processor's own order stays where times are equal.
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
        // The first processor's, then the second's; the first may have had more by then.
        assert!(round(&mut order, &[10, 30, 20, 40], None).is_empty());
        assert_eq!(round(&mut order, &[35, 60, 50], None), [10, 20, 30, 35, 40]);
        // The first has too much to take at once.
        assert_eq!(round(&mut order, &[70, 55], Some(50)), [50]);
        assert_eq!(round(&mut order, &[], None), [55, 60, 70]);
        assert!(round(&mut order, &[80], None).is_empty());
        let mut rest = Vec::new();
        order.rest(|event| rest.push(event.time));
        assert_eq!(rest, [80]);
    }
}
