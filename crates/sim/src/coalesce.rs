//! Completions that a host adapter holds back, to interrupt its host less often.

use headtime_units::{Nanos, Time};
use std::collections::VecDeque;

/// Rule for the interrupts of an adapter: command completion coalescing, as in AHCI. Source: Yu et al., NCQ vs. I/O
/// Scheduler, ACM TOS 6(1), 2010, section 2: coalescing threshold and timeout value.
///
/// The paper counts the timeout from "the previous completion of another request". Here the timeout counts from the first completion that
/// the host does not know. So no completion is held back for longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coalesce {
    /// Number of completions that cause an interrupt at once. With 1 each completion causes an interrupt.
    pub commands: u32,
    /// Time after which a completion causes an interrupt, with fewer completions too.
    pub timeout: Nanos,
}

/// Completions that an adapter holds back, in order of arrival.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    rule: Coalesce,
    completions: VecDeque<T>,
    /// Arrival of the first of the completions.
    since: Time,
    /// True while the host is being notified after an interrupt.
    told: bool,
}

impl<T> Kept<T> {
    pub fn new(rule: Coalesce) -> Kept<T> {
        Kept {
            rule,
            completions: VecDeque::new(),
            since: Time::ZERO,
            told: false,
        }
    }

    /// Notes that the drive is done with a command.
    pub fn push(&mut self, now: Time, completion: T) {
        if self.completions.is_empty() {
            self.since = now;
        }
        self.completions.push_back(completion);
    }

    /// Returns the time at which the host is to be notified. A time in the past means at once.
    pub fn due(&self) -> Option<Time> {
        let full = self.completions.len() >= self.rule.commands as usize;
        match self.completions.is_empty() {
            true => None,
            false if self.told || full => Some(self.since),
            false => Some(self.since.saturating_add(self.rule.timeout)),
        }
    }

    /// Returns the next completion of which the host is notified, and true if it is the first since the interrupt.
    pub fn tell(&mut self, now: Time) -> Option<(T, bool)> {
        if self.due()? > now {
            return None;
        }
        let first = !self.told;
        let completion = self.completions.pop_front()?;
        self.told = !self.completions.is_empty();
        Some((completion, first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The adapter is asked when the adapter or the drive has an event, as in the world.
        #[test]
        fn a_completion_is_told_once_in_order_when_enough_are_there_or_the_timeout_is_over(
            gaves in prop::collection::vec(0..2_000_u64, 0..200),
            commands in 1..40_u32,
            timeout in 0..3_000_u64,
        ) {
            let timeout = Nanos::from_nanos(timeout);
            let mut kept = Kept::new(Coalesce { commands, timeout });
            let mut at = Time::ZERO;
            let comes: Vec<Time> = gaves
                .iter()
                .map(|gap| {
                    at += Nanos::from_nanos(*gap);
                    at
                })
                .collect();
            let (mut next, mut told, mut interrupts) = (0, Vec::new(), 0_u32);
            let (mut of_one, mut most) = (0, 0);
            let mut clock = Time::ZERO;
            loop {
                let drive = comes.get(next).copied();
                let Some(due) = kept.due().into_iter().chain(drive).min() else {
                    break;
                };
                let now = due.max(clock);
                clock = now;
                // A due interrupt comes before the drive's next event.
                match kept.tell(now) {
                    Some((number, first)) => {
                        of_one = if first { 1 } else { of_one + 1 };
                        most = most.max(of_one);
                        interrupts += u32::from(first);
                        told.push((number, now));
                    }
                    None => {
                        kept.push(now, next);
                        next += 1;
                    }
                }
                prop_assert!(kept.completions.len() <= commands as usize);
            }
            // No completion is lost, reported twice or overtaken.
            let numbers: Vec<usize> = told.iter().map(|(number, _)| *number).collect();
            prop_assert_eq!(numbers, (0..comes.len()).collect::<Vec<_>>());
            for (number, at) in &told {
                let came = comes[*number];
                prop_assert!(*at >= came && *at - came <= timeout, "{number}");
                // Once this number of completions has arrived, there are enough.
                let enough = comes.get(number + commands as usize - 1);
                prop_assert!(enough.is_none_or(|enough| at <= enough), "{number}");
            }
            prop_assert!(most <= commands && (commands > 1 || interrupts as usize == comes.len()));
            prop_assert!(comes.len() as u32 <= interrupts * commands);
        }
    }

    #[test]
    fn what_waits_goes_with_the_first_when_its_timeout_is_over() {
        let ms = |ms| Time::ZERO + Nanos::from_millis(ms);
        let rule = Coalesce {
            commands: 3,
            timeout: Nanos::from_millis(5),
        };
        let mut kept = Kept::new(rule);
        kept.push(ms(1), 'a');
        kept.push(ms(4), 'b');
        assert_eq!((kept.tell(ms(5)), kept.due()), (None, Some(ms(6))));
        assert_eq!(kept.tell(ms(6)), Some(('a', true)));
        assert_eq!(kept.tell(ms(6)), Some(('b', false)));
        assert_eq!((kept.tell(ms(6)), kept.due()), (None, None));
        // The number of completions causes an interrupt at once. A new timeout begins with the next completion.
        ['c', 'd', 'e']
            .into_iter()
            .for_each(|one| kept.push(ms(7), one));
        let told = std::iter::from_fn(|| kept.tell(ms(7)));
        let told: Vec<(char, bool)> = told.collect();
        assert_eq!(told, [('c', true), ('d', false), ('e', false)]);
        kept.push(ms(8), 'f');
        assert_eq!(kept.due(), Some(ms(13)));
    }
}
