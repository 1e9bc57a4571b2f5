//! Keeps the drive from taking more commands than it can serve in time.

use super::registration::GateProblem;
use crate::in_drive::InDrive;
use crate::names::DriveTag;
use headtime_sched::{OptionInfo, Options};
use headtime_units::{Nanos, Time};

/// A bound on the time that commands spend in the drive.
///
/// A command cannot be taken back from the drive, and the drive serves its commands in any order. So one of n
/// commands is done after n of the longest service times, if no other comes. A command may go if all that have
/// the promise, and it, are then done within the bound.
#[derive(Clone, Debug)]
pub(super) struct InTime {
    /// Zero for no bound.
    bound: Nanos,
    /// The longest service of a command.
    longest: Nanos,
    /// How long the drive may serve none of its commands, in all, within the bound.
    pause: Nanos,
    /// Commands in the drive.
    active: u64,
    /// The commands that have the promise, and when they went to the drive.
    promised: InDrive,
    since: [Time; DriveTag::DEPTH_MAX as usize],
}

/// The options that all gates with a bound have.
pub(super) const BOUND: OptionInfo = OptionInfo::duration(
    "bound",
    Nanos::ZERO,
    "how long a command (of `rsd-priority`: of the most urgent level) may be in the drive; lower lets fewer \
     commands go there. 0s is no bound",
);
pub(super) const LONGEST: OptionInfo = OptionInfo::duration(
    "longest",
    Nanos::ZERO,
    "with a bound: the longest service of a command of up to `merge_max`; 0s is that of the drive's profile",
);
pub(super) const PAUSE: OptionInfo = OptionInfo::duration(
    "pause",
    Nanos::ZERO,
    "with a bound: how long the drive may in all serve no command within it, as it writes out its buffer; with \
     `longest` of the profile, as the profile says",
);

/// Checks that a bound leaves time for so many commands, as soon as it is known how long one takes.
pub(super) fn check(options: Options<'_>, commands: u64) -> Result<(), GateProblem> {
    let bound = options.duration("bound");
    let longest = options.duration("longest");
    let least = options.duration("pause") + longest * commands;
    match bound.is_zero() || longest.is_zero() || bound >= least {
        true => Ok(()),
        false => Err(GateProblem::BoundShort {
            bound,
            least,
            commands,
        }),
    }
}

impl InTime {
    pub fn new(options: Options<'_>) -> InTime {
        let [bound, longest, pause] =
            ["bound", "longest", "pause"].map(|key| options.duration(key));
        InTime::of(bound, longest, pause)
    }

    pub const fn of(bound: Nanos, longest: Nanos, pause: Nanos) -> InTime {
        InTime {
            bound,
            longest,
            pause,
            active: 0,
            promised: InDrive::EMPTY,
            since: [Time::ZERO; DriveTag::DEPTH_MAX as usize],
        }
    }

    /// Returns true if so many commands more leave time for all that have the promise, and for themselves. Of those that
    /// have it, the one that went to the drive first has the least time left.
    #[inline]
    pub fn has_time(&self, now: Time, more: u64) -> bool {
        if self.bound.is_zero() {
            return true;
        }
        let lasts = self.pause + self.longest * (self.active + more);
        let in_time = |tag: DriveTag| now + lasts <= self.since[tag.index()] + self.bound;
        lasts <= self.bound && self.promised.first().is_none_or(in_time)
    }

    /// The most commands that an empty drive gets so that each leaves time for so many, itself included.
    pub fn most(&self, more: u64) -> u32 {
        let all = self.bound.saturating_sub(self.pause).as_nanos();
        match all.checked_div(self.longest.as_nanos()) {
            Some(all) if !self.bound.is_zero() => {
                u32::try_from((all + 1).saturating_sub(more)).unwrap_or(u32::MAX)
            }
            _ => u32::MAX,
        }
    }

    /// Notes that a command goes to the drive, and whether it has the promise.
    pub fn assign(&mut self, now: Time, tag: DriveTag, is_promised: bool) {
        self.active += 1;
        if is_promised {
            self.promised.insert(tag);
            self.since[tag.index()] = now;
        }
    }

    /// Notes that the drive is done with a command.
    pub fn free(&mut self, tag: DriveTag) {
        self.active -= 1;
        self.promised.remove(tag);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Gate, GateSpec, Lane, LaneState, Lanes, Next, Rsd};
    use super::*;
    use crate::config::Config;
    use headtime_sched::{Class, Flags, Op, Origin, Request};
    use headtime_units::{Extent, Lba, Sectors};
    use proptest::prelude::*;

    /// Requests wait in every lane of these.
    struct Ready(&'static [u8]);

    impl Lanes for Ready {
        fn state(&self, lane: Lane) -> LaneState {
            LaneState {
                ready: self.0.contains(&lane.0),
                ..LaneState::default()
            }
        }
    }

    const MILLI: Nanos = Nanos::from_millis(1);

    fn config() -> Config {
        Config {
            depth: 32,
            ..Config::default()
        }
    }

    fn gate(text: &str) -> Box<dyn Gate> {
        let spec: GateSpec = text.parse().unwrap();
        spec.build(&config()).unwrap().unwrap()
    }

    fn command(tag: DriveTag, op: Op) -> Request<DriveTag> {
        Request {
            tag,
            op,
            extent: Extent::new(Lba::ZERO, Sectors::new(8)),
            arrival: Time::ZERO,
            origin: Origin::default(),
            class: Class::default(),
            flags: Flags::NONE,
        }
    }

    /// Sends what may go from these lanes, and returns how many commands that were.
    fn send(gate: &mut dyn Gate, now: Time, lanes: &'static [u8], first: u32) -> u32 {
        let mut tags = first..;
        while let Next::Take(lane) = gate.next(now, &Ready(lanes)) {
            let tag = DriveTag(tags.next().unwrap());
            gate.taken(now, &command(tag, Op::Read), lane);
        }
        tags.start - first
    }

    #[test]
    fn no_more_go_to_an_empty_drive_than_it_serves_within_the_bound() {
        let mut gate = gate("rsd:bound=100ms:longest=20ms:pause=10ms");
        assert_eq!(send(&mut *gate, Time::ZERO, &[0], 0), 4);
    }

    #[test]
    fn as_many_go_to_an_empty_drive_as_is_said_and_a_request_follows_its_pick_if_that_leaves_time()
    {
        for (text, bound, pause, lane, more, follows) in [
            ("rsd", 0, 0, 0, 1, true),
            (
                "rsd:bound=100ms:longest=20ms:pause=10ms",
                100,
                10,
                0,
                1,
                true,
            ),
            ("rsd:bound=50ms:longest=20ms:pause=10ms", 50, 10, 0, 1, true),
            (
                "rsd:bound=49ms:longest=20ms:pause=10ms",
                49,
                10,
                0,
                1,
                false,
            ),
            (
                "rsd-priority:ranks=0/0:bound=40ms:longest=20ms",
                40,
                0,
                0,
                1,
                true,
            ),
            (
                "rsd-priority:ranks=0/0:bound=40ms:longest=20ms",
                40,
                0,
                1,
                2,
                false,
            ),
            (
                "rsd-priority:ranks=0/0:bound=60ms:longest=20ms",
                60,
                0,
                1,
                2,
                true,
            ),
        ] {
            let in_time = InTime::of(MILLI * bound, MILLI * 20, MILLI * pause);
            let mut gate = gate(text);
            let lanes: &[u8] = if lane == 0 { &[0] } else { &[1] };
            assert_eq!(gate.follows(Lane(lane), Class(lane)), follows, "{text}");
            let sent = send(&mut *gate, Time::ZERO, lanes, 0);
            assert_eq!(in_time.most(more).clamp(1, 32), sent, "{text}");
        }
        // What reserves tags for others does not part a request from its pick.
        let mut one = gate("rsd-priority:ranks=0/31");
        assert!(one.follows(Lane(1), Class(1)));
        assert_eq!(send(&mut *one, Time::ZERO, &[1], 0), 1);
    }

    #[test]
    fn while_an_old_command_needs_the_time_that_is_left_nothing_goes() {
        let mut gate = gate("rsd:bound=100ms:longest=20ms:pause=10ms");
        send(&mut *gate, Time::ZERO, &[0], 0);
        // 40 ms have passed, and three commands take 60 ms.
        let now = Time::ZERO + MILLI * 40;
        gate.returned(now, DriveTag(1));
        assert_eq!(send(&mut *gate, now, &[0], 4), 0);
        gate.returned(now, DriveTag(0));
        gate.returned(now, DriveTag(2));
        gate.returned(now, DriveTag(3));
        assert_eq!(send(&mut *gate, now, &[0], 4), 4);
    }

    #[test]
    fn less_urgent_commands_leave_time_for_an_urgent_one_that_comes_the_moment_after() {
        let mut gate = gate("rsd-priority:bound=100ms:longest=20ms:ranks=0/0");
        assert_eq!(send(&mut *gate, Time::ZERO, &[1], 0), 4);
        assert_eq!(send(&mut *gate, Time::ZERO, &[0, 1], 4), 1);
    }

    #[test]
    fn less_urgent_commands_have_no_promise_and_keep_no_urgent_one_out_by_their_age() {
        let mut gate = gate("rsd-priority:bound=100ms:longest=20ms:ranks=0/0");
        send(&mut *gate, Time::ZERO, &[1], 0);
        let now = Time::ZERO + MILLI * 5_000;
        assert_eq!(send(&mut *gate, now, &[0, 1], 4), 1);
    }

    #[test]
    fn a_flush_that_lasts_closes_nothing_for_what_comes_after_it() {
        for text in ["rsd", "rsd-priority:ranks=0/0"] {
            let mut gate = gate(&format!("{text}:bound=100ms:longest=20ms"));
            gate.taken(Time::ZERO, &command(DriveTag(0), Op::Flush), Lane(0));
            let now = Time::ZERO + MILLI * 5_000;
            assert_eq!(send(&mut *gate, now, &[0], 1), 4, "{text}");
        }
    }

    #[test]
    fn a_bound_that_nobody_could_keep_is_refused_with_what_is_allowed() {
        let refused = |text: &str| {
            let spec: GateSpec = text.parse().unwrap();
            spec.build(&config())
                .map(|_| ())
                .unwrap_err()
                .problem
                .to_string()
        };
        assert_eq!(
            refused("rsd-priority:bound=50ms:longest=30ms"),
            "bound is 50ms; allowed is 0s, which is none, or 60ms and more, for 2 of the longest commands and the \
             pauses of the drive"
        );
        assert_eq!(
            refused("rsd:bound=50ms:longest=45ms:pause=6ms"),
            "bound is 50ms; allowed is 0s, which is none, or 51ms and more, for 1 of the longest commands and the \
             pauses of the drive"
        );
        assert_eq!(
            refused("rsd:bound=50ms"),
            "longest is missing, and there is no profile of the drive that would tell; bound needs it, as in \
             longest=60ms"
        );
    }

    #[test]
    fn a_gate_that_is_told_how_long_commands_take_says_so_in_its_text() {
        let spec: GateSpec = "rsd:bound=200ms".parse().unwrap();
        assert_eq!(spec.lacks_longest(), Some(MILLI * 200));
        let told = spec.with_longest(MILLI * 30, MILLI * 7);
        assert_eq!(told.to_string(), "rsd:bound=200ms:longest=30ms:pause=7ms");
        assert_eq!(told.lacks_longest(), None);
        let own: GateSpec = "rsd:bound=200ms:pause=0s".parse().unwrap();
        let told = own.with_longest(MILLI * 30, MILLI * 7);
        assert_eq!(told.to_string(), "rsd:bound=200ms:longest=30ms:pause=0ns");
        let unbound: GateSpec = "rsd".parse().unwrap();
        assert_eq!(unbound.lacks_longest(), None);
    }

    proptest! {
        /// Against a drive that serves one command at a time, in any order, each for up to `longest`.
        #[test]
        fn every_command_is_done_within_the_bound_whatever_the_order(
            more in 0..9_u64, slack in 0..20_000_u64, pause in 0..50_000_u64,
            served in prop::collection::vec((any::<u8>(), 0..=10_000_u64), 1..300), at in 0..300_usize,
        ) {
            let [longest, slack, pause] = [10_000, slack, pause].map(Nanos::from_micros);
            let bound = pause + longest * (1 + more) + slack;
            let mut gate = Rsd::new(&config(), 1_000_000).within(InTime::of(bound, longest, pause));
            let (mut now, mut drive, mut next) = (Time::ZERO, Vec::new(), 0);
            for (step, (place, service)) in served.into_iter().enumerate() {
                while let Next::Take(lane) = gate.next(now, &Ready(&[0])) {
                    let tag = DriveTag(next % 256);
                    next += 1;
                    gate.taken(now, &command(tag, Op::Read), lane);
                    drive.push((tag, now));
                }
                // The pause comes once.
                now += Nanos::from_micros(service) + if step == at { pause } else { Nanos::ZERO };
                let (tag, since) = drive.remove(usize::from(place) % drive.len());
                gate.returned(now, tag);
                prop_assert!(now - since <= bound, "{} in the drive, bound {bound}", now - since);
            }
        }
    }
}
