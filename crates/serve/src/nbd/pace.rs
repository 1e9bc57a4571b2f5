//! The pace of a client. A client that asks at once finds the task awake, and a client that is behind with reading gets
//! its replies together.
//!
//! To wake a task, and to read a single reply, take a client and the server more time than a short request.

use headtime_units::{Nanos, Time};

/// Replies, and their bytes, that are written together at most. Measured with fio at depth 32: 4 replies make 192,000
/// requests per second, 8 make 216,000, 16 make 224,000 and 31 make 220,000.
const TOGETHER: usize = 16;
const TOGETHER_BYTES: usize = 64 << 10;

/// Longest time that a reply waits for others. A client reads 16 replies in about this time.
const REPLY_WAIT: Nanos = Nanos::from_micros(50);

/// Gap between a client's requests, and the wait of a reply.
#[derive(Debug)]
pub(super) struct Pace {
    /// Longest gap in which the task watches the socket and does not sleep.
    watch: Nanos,
    /// Time since which the client has all replies and has sent no request.
    quiet_since: Option<Time>,
    last_gap: Nanos,
    /// Time since which a reply waits.
    waits_since: Option<Time>,
}

impl Pace {
    /// Pace of a new client, which may be slow.
    pub fn new(watch: Nanos) -> Pace {
        Pace {
            watch,
            quiet_since: None,
            last_gap: watch,
            waits_since: None,
        }
    }

    /// Returns true if the next request is expected soon: the last gap was short, and so is the present one.
    pub fn is_quick(&mut self, now: Time) -> bool {
        let since = *self.quiet_since.get_or_insert(now);
        self.last_gap.max(now.saturating_since(since)) < self.watch
    }

    /// Notes that the client has sent a request.
    pub fn asked(&mut self, now: Time) {
        if let Some(since) = self.quiet_since.take() {
            self.last_gap = now.saturating_since(since);
        }
    }

    /// Returns true if these replies wait for more, because the client has replies that it has not read. A reply waits for a
    /// limited time.
    pub fn may_wait(
        &mut self,
        now: Time,
        replies: impl Iterator<Item = usize>,
        has_unread: impl FnOnce() -> bool,
    ) -> bool {
        let (mut count, mut bytes) = (0, 0);
        for len in replies.take(TOGETHER) {
            (count, bytes) = (count + 1, bytes + len);
        }
        let few = (1..TOGETHER).contains(&count) && bytes < TOGETHER_BYTES;
        let since = *self.waits_since.get_or_insert(now);
        let waits = few
            && self.watch > Nanos::ZERO
            && now.saturating_since(since) < REPLY_WAIT
            && has_unread();
        if !waits {
            self.waits_since = None;
        }
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1_000)
    }

    #[test]
    fn a_client_is_quick_after_a_short_gap_and_until_a_long_one() {
        let mut pace = Pace::new(Nanos::from_micros(50));
        assert!(!pace.is_quick(at(0)), "nothing is known");
        pace.asked(at(30));
        assert!(pace.is_quick(at(40)));
        assert!(pace.is_quick(at(89)));
        assert!(!pace.is_quick(at(90)), "the gap is long");
        pace.asked(at(95));
        assert!(!pace.is_quick(at(100)), "the last gap was long");
        pace.asked(at(149));
        assert!(pace.is_quick(at(150)));
        // Requests that come while others are unanswered end no gap.
        pace.asked(at(160));
        pace.asked(at(900));
        assert!(pace.is_quick(at(901)));
    }

    #[test]
    fn without_a_watch_nothing_waits() {
        let mut pace = Pace::new(Nanos::ZERO);
        assert!(!pace.is_quick(at(0)));
        pace.asked(at(0));
        assert!(!pace.is_quick(at(0)));
        assert!(!pace.may_wait(at(0), std::iter::once(16), || true));
    }

    #[test]
    fn replies_wait_while_they_are_few_and_the_client_is_behind() {
        let mut pace = Pace::new(Nanos::from_micros(50));
        let mut waits = |now, replies: &[usize], behind| {
            pace.may_wait(at(now), replies.iter().copied(), || behind)
        };
        assert!(!waits(0, &[], true), "no reply");
        assert!(!waits(1, &[4096], false), "the client waits");
        assert!(waits(2, &[4096], true));
        assert!(waits(40, &[4096; 15], true));
        assert!(!waits(41, &[4096; 16], true), "enough");
        assert!(waits(42, &[4096], true));
        assert!(!waits(92, &[4096], true), "long enough");
        assert!(waits(93, &[4096], true));
        assert!(!waits(94, &[4096, 61_440], true), "many bytes");
    }
}
