//! Account of a gate: requests that the gate refused, and commands that starved in the drive.

use crate::names::DriveTag;
use crate::tags::TagSet;
use headtime_sched::Class;
use headtime_units::{Nanos, Time};

/// Number of classes in counts by class. Further classes count with the last.
pub const CLASSES: usize = 3;

/// Returns the index of a class in counts by class.
#[inline]
pub fn class_index(class: Class) -> usize {
    usize::from(class.0).min(CLASSES - 1)
}

/// Counts and times of the gates of an engine. All are zero with the default gate, which limits the depth alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gating {
    /// Time during which the gate alone held requests back: a lane was ready, and the drive had room.
    pub plugged: Nanos,
    /// By class: commands that the gate alone refused before they went to the drive.
    pub refused: [u64; CLASSES],
    /// By class: commands that came to starve in the drive, by the gate's own measure ([`Gate::starved`](super::Gate::starved)).
    pub starved: [u64; CLASSES],
    /// By class: time during which at least one command starved.
    pub starved_for: [Nanos; CLASSES],
}

impl core::ops::AddAssign for Gating {
    /// Adds the counts and times of another engine's gates.
    fn add_assign(&mut self, other: Gating) {
        self.plugged += other.plugged;
        for class in 0..CLASSES {
            self.refused[class] += other.refused[class];
            self.starved[class] += other.starved[class];
            self.starved_for[class] += other.starved_for[class];
        }
    }
}

/// Keeps account of a gate; see [`Gating`].
#[derive(Clone, Debug)]
pub(crate) struct Account {
    /// Counts and times up to `at`.
    sums: Gating,
    at: Time,
    plugged: bool,
    /// Tags of starving commands, their number, and their number by class.
    starving: TagSet,
    count: usize,
    of_class: [u32; CLASSES],
    /// By tag of a starving command: index of its class.
    classes: [u8; DriveTag::DEPTH_MAX as usize],
    /// True if the set of starving commands may have changed without a completion.
    anew: bool,
}

impl Default for Account {
    fn default() -> Account {
        Account {
            sums: Gating::default(),
            at: Time::ZERO,
            plugged: false,
            starving: TagSet::EMPTY,
            count: 0,
            of_class: [0; CLASSES],
            classes: [0; DriveTag::DEPTH_MAX as usize],
            anew: false,
        }
    }
}

impl Account {
    /// Returns the counts and times up to `now`.
    pub fn read(&self, now: Time) -> Gating {
        let mut sums = self.sums;
        let span = now.saturating_since(self.at);
        if self.plugged {
            sums.plugged += span;
        }
        for (time, count) in sums.starved_for.iter_mut().zip(self.of_class) {
            if count > 0 {
                *time += span;
            }
        }
        sums
    }

    fn pass(&mut self, now: Time) {
        self.sums = self.read(now);
        self.at = now;
    }

    /// Counts a command that the gate refused before the command went to the drive.
    pub fn refused(&mut self, class: Class) {
        self.sums.refused[class_index(class)] += 1;
    }

    /// Notes that the gate was replaced or has another threshold.
    pub fn changed(&mut self) {
        self.anew = true;
    }

    /// Notes that the drive is done with a command.
    #[inline]
    pub fn returned(&mut self, now: Time, tag: DriveTag) {
        if self.count > 0 {
            self.starves_no_more(now, tag);
        }
    }

    fn starves_no_more(&mut self, now: Time, tag: DriveTag) {
        if self.starving.has(tag) {
            self.pass(now);
            self.starving.remove(tag);
            self.count -= 1;
            self.of_class[usize::from(self.classes[tag.index()])] -= 1;
        }
    }

    /// Notes the state from `now` on. `starved` is [`Gate::starved`](super::Gate::starved) with the command's class. A
    /// starving command starves until it is done, and newly starving commands come after it in the gate's order. If the
    /// gate has [changed](Account::changed), any command may starve.
    #[inline]
    pub fn settle(
        &mut self,
        now: Time,
        plugged: bool,
        starved: impl Fn(usize) -> Option<(DriveTag, Class)>,
    ) {
        if self.plugged || self.count > 0 {
            self.pass(now);
        }
        (self.at, self.plugged) = (now, plugged);
        let mut before = TagSet::EMPTY;
        if core::mem::take(&mut self.anew) {
            before = core::mem::take(&mut self.starving);
            (self.count, self.of_class) = (0, [0; CLASSES]);
        }
        while let Some((tag, class)) = starved(self.count) {
            let class = class_index(class);
            assert!(
                !self.starving.has(tag),
                "the gate names tag {} a second time among those that starve",
                tag.0
            );
            self.starving.insert(tag);
            self.count += 1;
            self.of_class[class] += 1;
            self.classes[tag.index()] = class as u8;
            self.sums.starved[class] += u64::from(!before.has(tag));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Events at one time, `millis` ms after the previous step.
    #[derive(Clone, Debug)]
    struct Step {
        millis: u64,
        /// A starving command that is done.
        done: Option<prop::sample::Index>,
        /// The commands that starve from now on under a new gate.
        anew: Option<Vec<(u8, u8)>>,
        /// Commands that start to starve, in order after the already starving ones.
        more: Vec<(u8, u8)>,
        plugged: bool,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let commands = || prop::collection::vec((0..12_u8, 0..5_u8), 0..4);
        let done = prop::option::of(any::<prop::sample::Index>());
        let anew = prop::option::weighted(0.1, commands());
        let step = (0..50_u64, done, anew, commands(), any::<bool>());
        let step = step.prop_map(|(millis, done, anew, more, plugged)| Step {
            millis,
            done,
            anew,
            more,
            plugged,
        });
        prop::collection::vec(step, 1..40)
    }

    #[test]
    #[should_panic(expected = "names tag 3 a second time")]
    fn a_gate_that_always_names_one_command_is_a_bug_and_not_a_loop_without_end() {
        Account::default().settle(Time::ZERO, false, |_| Some((DriveTag(3), Class::IDLE)));
    }

    proptest! {
        /// Compares with a plain account of the state between steps.
        #[test]
        fn times_and_counts_are_those_of_what_was_so_between_events(steps in steps()) {
            let mut account = Account::default();
            let (mut now, mut plain) = (Time::ZERO, Gating::default());
            let (mut plugged, mut starving) = (false, Vec::<(DriveTag, Class)>::new());
            for step in steps {
                let span = Nanos::from_millis(step.millis);
                now += span;
                plain.plugged += if plugged { span } else { Nanos::ZERO };
                for class in 0..CLASSES {
                    let starves = starving.iter().any(|(_, other)| class_index(*other) == class);
                    plain.starved_for[class] += if starves { span } else { Nanos::ZERO };
                }
                prop_assert_eq!(account.read(now), plain);
                if let (Some(done), false) = (step.done, starving.is_empty()) {
                    let (tag, _) = starving.remove(done.index(starving.len()));
                    account.returned(now, tag);
                }
                // A command that does not starve.
                account.returned(now, DriveTag(200));
                let before = starving.clone();
                let mut come = step.more;
                if let Some(anew) = step.anew {
                    starving.clear();
                    come.splice(0..0, anew);
                    account.changed();
                }
                for (tag, class) in come {
                    let old = before.iter().find(|(other, _)| other.0 == u32::from(tag));
                    let command = (DriveTag(u32::from(tag)), old.map_or(Class(class), |old| old.1));
                    if starving.iter().all(|(other, _)| *other != command.0) {
                        starving.push(command);
                        plain.starved[class_index(command.1)] += u64::from(old.is_none());
                    }
                }
                plugged = step.plugged;
                account.settle(now, plugged, |nth| starving.get(nth).copied());
            }
        }
    }

    #[test]
    fn classes_beyond_the_last_that_is_told_apart_count_with_it() {
        assert_eq!(
            [0, 1, 2, 3, 255].map(|class| class_index(Class(class))),
            [0, 1, 2, 2, 2]
        );
    }

    #[test]
    fn what_the_gates_of_two_engines_did_is_the_sum_of_all_that_is_counted() {
        let of = |base: u64| Gating {
            plugged: Nanos::from_nanos(base),
            refused: [base + 1, base + 2, base + 3],
            starved: [base + 4, base + 5, base + 6],
            starved_for: [base + 7, base + 8, base + 9].map(Nanos::from_nanos),
        };
        let mut sum = of(100);
        sum += of(1000);
        let both = |first: u64| [first, first + 2, first + 4];
        let expected = Gating {
            plugged: Nanos::from_nanos(1100),
            refused: both(1102),
            starved: both(1108),
            starved_for: both(1114).map(Nanos::from_nanos),
        };
        assert_eq!(sum, expected);
    }
}
