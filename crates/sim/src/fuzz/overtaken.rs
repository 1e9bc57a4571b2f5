//! Check that commands are not overtaken in the drive more often than a gate promises.

use headtime_engine::{Command, DelayCounts, DriveTag, Event, GateOrder, GateSpec, Outcome, Seen};
use headtime_units::Time;

/// Observer that finds a command that is overtaken in the drive more than age_th + depth - 1 times. Only commands that go to the drive and
/// complete between two changes of the gate count.
#[derive(Debug)]
pub(super) struct Overtaken {
    threshold: Option<u64>,
    depth: u32,
    counts: DelayCounts,
    /// Number of changes of the gate so far, and this number when each command went to the drive, by tag.
    changes: u32,
    went: [u32; DriveTag::DEPTH_MAX as usize],
    /// Description of the first command that was overtaken too often.
    pub found: Option<String>,
}

impl Overtaken {
    /// Returns an observer of an engine of this depth, with this gate at first.
    pub fn new(gate: &GateSpec, depth: u32) -> Overtaken {
        Overtaken {
            threshold: gate.age_th(),
            depth,
            counts: DelayCounts::default(),
            changes: 0,
            went: [0; DriveTag::DEPTH_MAX as usize],
            found: None,
        }
    }

    pub fn see(&mut self, now: Time, seen: Seen<'_>) {
        match seen {
            Seen::GateSwapped(text, _) => {
                let gate: GateSpec = text.parse().expect("it was written from a gate");
                self.threshold = gate.age_th();
                self.changes += 1;
            }
            Seen::Event(Event::Ordered(GateOrder::Age(age_th))) => {
                self.threshold = self.threshold.and(Some(*age_th));
                self.changes += 1;
            }
            Seen::Command(Command::Issue(request)) => {
                self.counts.issued(request.tag);
                self.went[request.tag.index()] = self.changes;
            }
            Seen::Event(Event::Completed { tag, outcome }) => {
                let count = self.counts.completed(*tag);
                let same_gate = self.went[tag.index()] == self.changes;
                let bound = self.threshold.filter(|_| same_gate);
                let bound = bound.filter(|_| *outcome != Outcome::TimedOut);
                let most = bound.map(|age_th| age_th + u64::from(self.depth) - 1);
                if let Some(most) = most.filter(|most| u64::from(count) > *most) {
                    self.found.get_or_insert_with(|| {
                        format!(
                            "at {now}: a command was overtaken {count} times, allowed is {most}"
                        )
                    });
                }
            }
            Seen::Event(_) | Seen::Command(_) | Seen::Swapped(..) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_sched::{Op, Request, Tag};
    use headtime_units::Extent;

    /// Returns the finding for a command that eight others overtake.
    fn found(between: Option<Seen<'_>>, outcome: Outcome, depth: u32) -> Option<String> {
        let mut looks = Overtaken::new(&"rsd:age_th=4".parse().unwrap(), depth);
        let mut see = |seen: Seen<'_>| looks.see(Time::from_nanos(9), seen);
        let issue = |tag| {
            let read = Request::new(Tag(0), Op::Read, Extent::at(0, 8), Time::ZERO);
            Command::Issue(read.tagged(DriveTag(tag)))
        };
        let completed = |tag, outcome| Event::Completed {
            tag: DriveTag(tag),
            outcome,
        };
        see(Seen::Command(&issue(0)));
        for _ in 0..8 {
            see(Seen::Command(&issue(1)));
            see(Seen::Event(&completed(1, Outcome::Done)));
        }
        if let Some(seen) = between {
            see(seen);
        }
        see(Seen::Event(&completed(0, outcome)));
        looks.found
    }

    #[test]
    fn a_command_that_is_overtaken_too_often_is_found_unless_the_gate_changed_or_it_was_given_up() {
        assert_eq!(
            found(None, Outcome::Done, 4).as_deref(),
            Some("at 9ns: a command was overtaken 8 times, allowed is 7")
        );
        assert_eq!(found(None, Outcome::Done, 5), None);
        assert_eq!(found(None, Outcome::TimedOut, 4), None);
        let order = Event::Ordered(GateOrder::Age(4));
        assert_eq!(found(Some(Seen::Event(&order)), Outcome::Done, 4), None);
        let swap = Seen::GateSwapped("rsd:age_th=4", &[]);
        assert_eq!(found(Some(swap), Outcome::Done, 4), None);
        let other = Seen::Event(&Event::Woke);
        assert!(found(Some(other), Outcome::Done, 4).is_some());
    }
}
