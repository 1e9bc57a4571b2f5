//! Whether the drive keeps few commands, so that there are gaps, or as many as it is given otherwise.
//!
//! With many commands in it a drive serves more, and nobody knows what a request comes behind: there are no gaps. Which of the two is worth more
//! depends on what is asked for. A scan with a date takes the drive's queue away where it cannot end by its date in idle time alone, and gives it
//! back where it can.

use super::plan::{Goal, Plan};
use headtime_units::{Nanos, Time};

/// The queue is given back when idle time alone suffices in this share of the time that is left.
const EASILY: f64 = 0.8;
/// It is taken when so many looks agree, and given back when so many do.
const AGREE: (u32, u32) = (5, 60);

/// Which of the two it is, and what is known of the other one.
#[derive(Clone, Debug, Default)]
pub(super) struct Narrow {
    is_narrow: bool,
    since: Time,
    /// What was seen with the other queue: the load that clients make of the same requests is another one.
    other: Option<Box<Plan>>,
    /// How many looks in a row have said that it should be the other.
    agree: u32,
}

/// What is to be done at a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chosen {
    /// The queue stays as it is.
    Stays,
    /// It is too early to say anything of the other queue, or has just changed.
    Learns,
}

impl Narrow {
    /// Returns true if the drive is to keep few commands.
    pub fn is_narrow(&self) -> bool {
        self.is_narrow
    }

    /// Another cycle: what was seen is forgotten.
    pub fn forget(&mut self) {
        self.other = None;
    }

    /// Chooses. `plan` is what was seen with the queue as it is, and becomes that of the other one when it changes; `learns` is how long nothing is
    /// said of what was just changed.
    pub fn choose(
        &mut self,
        goal: &Goal,
        plan: &mut Plan,
        may: bool,
        seconds: f64,
        learns: Nanos,
    ) -> Chosen {
        let idle = Goal {
            outright: false,
            ..*goal
        };
        let any = f64::INFINITY;
        let changes = match (self.is_narrow, may) {
            (false, false) => false,
            (true, false) => {
                // Nobody wants it any more.
                self.agree = AGREE.1;
                true
            }
            (false, true) => !plan.suffices(&idle, any, seconds),
            (true, true) => {
                if goal.now < self.since.saturating_add(learns) {
                    return Chosen::Learns;
                }
                let other = self.other.as_ref();
                other.is_some_and(|plan| plan.suffices(&idle, any, seconds * EASILY))
            }
        };
        self.agree = if changes { self.agree + 1 } else { 0 };
        let agree = if self.is_narrow { AGREE.1 } else { AGREE.0 };
        match (changes, self.agree >= agree) {
            (true, true) => {
                let fresh = || Box::new(plan.of_same_cycle());
                let other = self.other.take().unwrap_or_else(fresh);
                self.other = Some(Box::new(std::mem::replace(plan, *other)));
                (self.is_narrow, self.since, self.agree) = (!self.is_narrow, goal.now, 0);
                Chosen::Learns
            }
            (true, false) if !self.is_narrow => Chosen::Learns,
            _ => Chosen::Stays,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Bound, Did, Sweeping};
    use super::*;

    const SECOND: Nanos = Nanos::from_secs(1);

    fn goal(now: u64, left: u64) -> Goal {
        Goal {
            now: Time::ZERO + SECOND.saturating_mul(now),
            left,
            all: 1_000_000,
            sweeping: Sweeping {
                blocks: 100.0,
                least: 50.0,
                each: 0.01,
            },
            bound: Bound::Now(f64::INFINITY),
            outright: true,
            lag: 0.0,
            again: 0.0,
        }
    }

    /// Of clients that need the drive for so many thousandths of the time.
    fn plan(busy: u64) -> Plan {
        let mut plan = Plan::new(SECOND.saturating_mul(86_400));
        let did = Did {
            span: SECOND,
            busy: Nanos::from_millis(busy),
            clients: busy,
            yielding: busy,
            ..Did::default()
        };
        plan.saw(Time::ZERO + SECOND, &did, 1.0);
        plan
    }

    #[test]
    fn the_queue_is_taken_where_idle_time_does_not_suffice_and_given_back_where_it_does() {
        let mut narrow = Narrow::default();
        // A second of a drive that is never idle.
        let mut seen = plan(1_000);
        for look in 0..5 {
            assert!(!narrow.is_narrow(), "{look}");
            let chosen = narrow.choose(&goal(look, 10_000), &mut seen, true, 500.0, SECOND);
            assert_eq!(chosen, Chosen::Learns, "nothing is said yet");
        }
        assert!(narrow.is_narrow());
        assert_ne!(seen, plan(1_000), "what was seen is of the other queue");
        let chosen = narrow.choose(&goal(4, 10_000), &mut seen, true, 500.0, SECOND);
        assert_eq!(chosen, Chosen::Learns);
        for look in 5..200 {
            let chosen = narrow.choose(&goal(look, 10_000), &mut seen, true, 500.0, SECOND);
            assert_eq!((chosen, narrow.is_narrow()), (Chosen::Stays, true));
        }
        // Nothing else is asked of it: at once.
        narrow.choose(&goal(200, 10_000), &mut seen, false, 500.0, SECOND);
        assert!(!narrow.is_narrow());
        assert_eq!(seen, plan(1_000));
    }

    #[test]
    fn the_queue_is_given_back_when_little_is_left() {
        let mut narrow = Narrow::default();
        let mut seen = plan(900);
        // A tenth of the time in which four fifths are used: eight blocks a second.
        for look in 0..5 {
            narrow.choose(&goal(look, 10_000), &mut seen, true, 500.0, SECOND);
        }
        assert!(narrow.is_narrow());
        let mut looks = |left, from: u64| {
            let mut looks = 0;
            for look in from..from + 100 {
                looks += u32::from(narrow.is_narrow());
                narrow.choose(&goal(look, left), &mut seen, true, 500.0, SECOND);
            }
            looks
        };
        assert_eq!(looks(3_500, 10), 100, "it would suffice, and not easily");
        assert_eq!(looks(2_000, 200), 60);
    }

    #[test]
    fn who_has_enough_idle_time_keeps_the_queue() {
        let mut narrow = Narrow::default();
        let mut seen = plan(900);
        for look in 0..100 {
            let chosen = narrow.choose(&goal(look, 3_500), &mut seen, true, 500.0, SECOND);
            assert_eq!((chosen, narrow.is_narrow()), (Chosen::Stays, false));
        }
        for look in 100..200 {
            narrow.choose(&goal(look, 10_000), &mut seen, false, 500.0, SECOND);
            assert!(!narrow.is_narrow(), "it may not");
        }
    }
}
