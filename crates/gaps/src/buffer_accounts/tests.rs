//! Tests of the two accounts of a drive's buffer.

use super::*;
use headtime_sched::Request;
use headtime_units::Sectors;

/// A drive on which a sector passes in 10 us, and a track has a thousand sectors.
const DRIVE: Buffering = Buffering {
    segments: 8,
    ahead: Sectors::ZERO,
    sector: Nanos::from_micros(10),
    processing: Nanos::from_millis(1),
    stays: Nanos::ZERO,
    telling: [Nanos::ZERO; 2],
    front: true,
};

const TURN: Nanos = Nanos::from_millis(10);

/// A drive that has one command at a time, and takes 20 ms for each.
struct Rig {
    accounts: BufferAccounts,
    now: Time,
    next: u64,
}

impl Rig {
    fn of(drive: Buffering) -> Rig {
        Rig {
            accounts: BufferAccounts::of(Some(drive), true),
            now: Time::ZERO,
            next: 0,
        }
    }

    fn command(&mut self, op: Op, extent: Extent, surprise: Option<Surprise>) -> Finished {
        let issued = self.now;
        self.now += Nanos::from_millis(20);
        Finished {
            id: self.next,
            outcome: Outcome::Done,
            request: Request::new((), op, extent, Time::ZERO),
            issued,
            surprise,
        }
    }

    /// Chooses a client's read for which the head waits for 3 ms. Returns true if the gap read before the client's read is held back.
    fn chooses(&mut self, start: u64, pick: Option<(Op, Join, Extent)>) -> bool {
        self.next += 1;
        let whose = (RequestId::Client(self.next), Time::ZERO);
        assert!(self.accounts.is_unnoted(whose.0, whose.1, Op::Read));
        let extent = Extent::at(start, 8);
        let hit_expected = self.accounts.may_serve(self.now, extent, None);
        let track = Extent::at(start / 1000 * 1000, 1000);
        let waits = Some((Nanos::from_millis(3), track, TURN));
        self.accounts
            .note_read(self.now, whose, extent, hit_expected, waits);
        assert!(
            !self.accounts.is_unnoted(whose.0, whose.1, Op::Read),
            "once is enough"
        );
        let op = pick.map_or(Op::Read, |(op, ..)| op);
        let pick = pick.map(|(_, join, extent)| Pick {
            extent,
            join,
            blocks: 1,
            more: false,
        });
        self.accounts.holds_back(whose, op, pick.as_ref())
    }

    /// Ends the client's read that was chosen.
    fn ends(&mut self, start: u64, surprise: Surprise) {
        let done = self.command(Op::Read, Extent::at(start, 8), Some(surprise));
        self.accounts.noticed(self.now, &done);
    }

    /// Chooses and ends a client's read. The gap read is made unless it is held back.
    fn reads(&mut self, start: u64, pick: Option<Extent>, surprise: Surprise) {
        let pick = pick.map(|extent| (Op::Read, Join::Before, extent));
        if !self.chooses(start, pick)
            && let Some((_, _, extent)) = pick
        {
            self.picks(Op::Read, extent);
        }
        self.ends(start, surprise);
    }

    /// Ends a gap read of any scan.
    fn picks(&mut self, op: Op, extent: Extent) {
        let done = self.command(op, extent, None);
        self.accounts.picked(self.now, &done);
    }

    fn with(&self, extent: Extent) -> bool {
        self.accounts.with.has(self.now, extent)
    }

    fn without(&self, extent: Extent) -> bool {
        let (_, without) = self.accounts.guard.as_ref().expect("it guards");
        without.has(self.now, extent)
    }

    fn in_fact(&self, extent: Extent) -> bool {
        self.accounts.in_fact().has(self.now, extent)
    }
}

/// Returns a rig in which gap reads are suspended. Two gap reads each took a wait in which the drive would have cached the sectors of a
/// later read.
fn at_rest() -> Rig {
    let mut rig = Rig::of(DRIVE);
    for track in [1_000, 2_000] {
        assert!(!rig.accounts.rests());
        rig.reads(
            track + 500,
            Some(Extent::at(90_000 + track, 8)),
            Surprise::None,
        );
        rig.reads(track + 400, None, Surprise::None);
    }
    assert!(rig.accounts.rests());
    rig
}

/// Makes reads without a hit to lose, until the suspension ends. The gap read `held` is held back before each read.
fn until_it_ends(rig: &mut Rig, held: Extent) {
    let mut nth = 0;
    while rig.accounts.rests() {
        nth += 1;
        assert!(nth < 10_000);
        rig.reads(1_000_000 + nth * 1_000, Some(held), Surprise::None);
    }
}

#[test]
fn a_pick_of_any_scan_is_in_the_account_with_picks_alone_and_other_reads_are_in_both() {
    let mut rig = Rig::of(DRIVE);
    let [pick, other] = [Extent::at(5_000, 100), Extent::at(7_000, 100)];
    rig.picks(Op::Read, pick);
    assert!(rig.with(pick) && !rig.without(pick));
    let done = rig.command(Op::Read, other, None);
    rig.accounts.passed(rig.now, &done);
    assert!(rig.with(other) && rig.without(other));
}

#[test]
fn what_passes_in_front_of_a_read_is_lost_to_the_account_with_picks_if_there_is_one() {
    let mut rig = Rig::of(DRIVE);
    rig.reads(1_500, None, Surprise::None);
    let front = Extent::at(1_200, 308);
    assert!(rig.with(front) && rig.without(front));
    rig.reads(2_500, Some(Extent::at(90_000, 8)), Surprise::None);
    let front = Extent::at(2_200, 308);
    assert!(!rig.with(front) && rig.without(front));
    // A gap read in its request's command is read with the sectors that pass in front of both.
    assert!(!rig.chooses(3_500, Some((Op::Read, Join::With, Extent::at(3_400, 100)))));
    let now = rig.now;
    rig.picks(Op::Read, Extent::at(3_400, 100));
    rig.now = now;
    rig.ends(3_500, Surprise::None);
    let front = Extent::at(3_200, 308);
    assert!(rig.with(front) && rig.without(front));
}

#[test]
fn a_drive_that_keeps_nothing_in_front_has_no_front() {
    let mut rig = Rig::of(Buffering {
        front: false,
        ..DRIVE
    });
    assert!(!rig.accounts.needs_waits());
    rig.reads(1_500, None, Surprise::None);
    assert!(rig.with(Extent::at(1_500, 8)) && !rig.with(Extent::at(1_499, 8)));
}

#[test]
fn while_gaps_rest_what_was_picked_before_is_in_the_buffer_in_fact() {
    let mut rig = Rig::of(DRIVE);
    let [before, on_its_way, held] = [91_000, 60_000, 70_000].map(|start| Extent::at(start, 8));
    rig.reads(1_500, Some(before), Surprise::None);
    rig.reads(1_400, None, Surprise::None);
    rig.reads(2_500, None, Surprise::None);
    // A second lost hit suspends gap reads while a gap read is in the drive.
    rig.reads(3_500, Some(Extent::at(92_000, 8)), Surprise::None);
    rig.chooses(3_400, None);
    rig.ends(3_400, Surprise::None);
    assert!(rig.accounts.rests());
    rig.picks(Op::Read, on_its_way);
    for extent in [before, on_its_way, Extent::at(2_200, 308)] {
        assert!(rig.in_fact(extent), "{extent}");
    }
    assert!(!rig.in_fact(Extent::at(3_450, 8)), "a pick was read then");
    rig.reads(4_500, Some(held), Surprise::None);
    assert!(!rig.in_fact(held) && rig.with(held));
    assert!(rig.in_fact(Extent::at(4_200, 308)), "the head did wait");
}

#[test]
fn when_a_rest_ends_what_was_held_is_not_in_the_buffer() {
    let mut rig = at_rest();
    let held = Extent::at(70_000, 8);
    // This read goes to the drive during the suspension and is done after the suspension's end.
    assert!(rig.chooses(500, Some((Op::Read, Join::Before, Extent::at(71_000, 8)))));
    let late = rig.next;
    until_it_ends(&mut rig, held);
    assert!(!rig.with(held) && !rig.in_fact(held));
    rig.next = late;
    rig.ends(500, Surprise::None);
    assert!(!rig.with(Extent::at(71_000, 8)));
    assert!(rig.with(Extent::at(200, 308)), "the head did wait");
}

#[test]
fn a_read_that_the_buffer_has_of_a_pick_is_no_surprise_in_a_rest() {
    let mut rig = at_rest();
    for _ in 0..64 {
        rig.reads(92_000, None, Surprise::Hit);
    }
    assert!(rig.accounts.rests() && !rig.accounts.surprises());
}

#[test]
fn a_pick_that_is_held_counts_as_read_and_one_that_would_write_as_written() {
    let mut rig = at_rest();
    let held = Extent::at(70_000, 8);
    let of_a_writer = Extent::at(72_000, 8);
    assert!(rig.chooses(5_500, Some((Op::Read, Join::Before, held))));
    // Only the first gap read that is held back for a request counts.
    let second = (RequestId::Client(rig.next), Time::ZERO);
    let pick = Pick {
        extent: Extent::at(73_000, 8),
        join: Join::Before,
        blocks: 1,
        more: false,
    };
    assert!(rig.accounts.holds_back(second, Op::Read, Some(&pick)));
    rig.ends(5_500, Surprise::None);
    assert!(rig.with(held) && !rig.with(pick.extent));
    assert!(rig.chooses(6_500, Some((Op::Write, Join::Before, of_a_writer))));
    rig.ends(6_500, Surprise::None);
    assert!(!rig.with(of_a_writer), "writes are not read");
    assert!(
        !rig.with(Extent::at(6_200, 8)),
        "the head would have been away"
    );
}

#[test]
fn in_a_rest_a_pick_goes_in_the_command_of_a_request_that_is_no_hit() {
    let mut rig = at_rest();
    let with = |start: u64| Some((Op::Read, Join::With, Extent::at(start - 8, 8)));
    assert!(!rig.chooses(5_500, with(5_500)));
    rig.ends(5_500, Surprise::None);
    // The account without gap reads has the sectors. The account with gap reads has not, since a gap read took the wait.
    assert!(rig.chooses(6_500, Some((Op::Read, Join::Before, Extent::at(70_000, 8)))));
    rig.ends(6_500, Surprise::None);
    assert!(rig.chooses(6_400, with(6_400)));
    // No gap read was found.
    assert!(rig.chooses(7_500, None));
}

#[test]
fn without_a_guard_nothing_is_noted_or_held() {
    let mut accounts = BufferAccounts::of(Some(DRIVE), false);
    let whose = (RequestId::Client(1), Time::ZERO);
    assert!(!accounts.is_unnoted(whose.0, whose.1, Op::Read));
    let waits = None;
    accounts.note_read(Time::ZERO, whose, Extent::at(0, 8), false, waits);
    assert!(!accounts.holds_back(whose, Op::Read, None) && !accounts.rests());
}

#[test]
fn writes_and_jobs_are_not_noted() {
    let mut accounts = BufferAccounts::of(Some(DRIVE), true);
    assert!(!accounts.is_unnoted(RequestId::Client(1), Time::ZERO, Op::Write));
    assert!(!accounts.is_unnoted(RequestId::Background(1), Time::ZERO, Op::Read));
}

/// Returns a rig after 1,024 reads. Before `wrote` of the reads the drive destaged, before the read itself or before the read's gap read.
fn behind_writes(wrote: u64, before_pick: bool) -> Rig {
    let mut rig = Rig::of(DRIVE);
    for nth in 0..1024 {
        let start = 1_000_000 + nth * 1_000;
        let destaging = nth * wrote % 1024 < wrote;
        let surprise = |is_there| match destaging && is_there {
            true => Surprise::Destaging(1),
            false => Surprise::None,
        };
        let pick = Extent::at(start + 500_000_000, 8);
        let done = rig.command(Op::Read, pick, Some(surprise(before_pick)));
        rig.accounts.picked(rig.now, &done);
        rig.ends(start, surprise(!before_pick));
    }
    rig
}

#[test]
fn gap_reads_are_rationed_where_the_drive_destages_before_more_than_one_of_fifty_reads() {
    for before_pick in [false, true] {
        assert!(!behind_writes(20, before_pick).accounts.rations());
        let mut rig = behind_writes(21, before_pick);
        assert!(rig.accounts.rations(), "{before_pick}");
        // Rationing ends when fewer of the last reads follow a destage.
        for nth in 0..60 {
            rig.ends(nth * 1_000, Surprise::None);
        }
        assert!(!rig.accounts.rations(), "{before_pick}");
        // A read without a prediction does not count, nor does a destage before the read's gap read.
        let mut rig = behind_writes(20, before_pick);
        let pick = rig.command(Op::Read, Extent::at(9, 1), Some(Surprise::Destaging(1)));
        rig.accounts.picked(rig.now, &pick);
        let write = rig.command(Op::Write, Extent::at(99, 1), Some(Surprise::None));
        rig.accounts.noticed(rig.now, &write);
        let unpredicted = rig.command(Op::Read, Extent::at(700_000_000, 1), None);
        rig.accounts.noticed(rig.now, &unpredicted);
        rig.ends(800_000_000, Surprise::None);
        assert!(!rig.accounts.rations(), "{before_pick}");
        // The counts start anew when the drive gets few commands for a scan.
        let mut rig = behind_writes(500, before_pick);
        rig.accounts.begin_narrow(rig.now);
        assert!(!rig.accounts.rations());
    }
}

#[test]
fn one_of_fifty_reads_comes_behind_a_destage_and_a_gap_read() {
    for wrote in [0, 20, 64, 100, 128, 500] {
        let mut rig = behind_writes(wrote, false);
        // Credit from before is used up first.
        while (21..129).contains(&wrote) && rig.accounts.allows() {
            rig.accounts.pay();
        }
        let mut made = 0_u64;
        for nth in 0..10_240_u64 {
            if rig.accounts.allows() {
                rig.accounts.pay();
                made += 1;
            }
            let destaging = nth * wrote % 1024 < wrote;
            let surprise = match destaging {
                true => Surprise::Destaging(1),
                false => Surprise::None,
            };
            rig.ends(2_000_000_000 + nth * 1_000, surprise);
        }
        let expected = match wrote {
            ..=20 => 10_240,
            // More than an eighth of the reads follow a destage.
            129.. => 0,
            wrote => 10_240 * 1024 / (wrote * 50),
        };
        assert!(
            made.abs_diff(expected) <= expected / 50 + 2,
            "{wrote}: {made} of {expected}"
        );
    }
}

#[test]
fn a_drive_that_destages_is_no_drive_that_surprises() {
    let mut rig = behind_writes(1024, false);
    assert!(!rig.accounts.surprises());
    for nth in 0..64 {
        rig.ends(nth * 1_000_000, Surprise::Turns(1));
    }
    assert!(rig.accounts.surprises());
}

#[test]
fn some_destages_among_the_first_reads_suspend_gap_reads() {
    let mut rig = Rig::of(DRIVE);
    for nth in 0..9 {
        assert!(rig.accounts.allows(), "{nth}");
        rig.ends(nth * 1_000_000, Surprise::Destaging(1));
    }
    assert!(!rig.accounts.allows());
}
