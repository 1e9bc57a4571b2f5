//! Guarantees for the emulator that keeps a drive's data, for all drives and loads.

use crate::common::{
    Asked, Trouble, any_drive, at_least, command, commands, make_room, ms, troubles,
};
use headtime_disk::profile::{Destage, WriteBack};
use headtime_disk::{Command, Completion, Drive, Fault, Hit, Profile};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Sectors, Time};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn sectors(extent: Extent) -> std::ops::Range<u64> {
    extent.start.get()..extent.end().get()
}

/// A command in the drive.
struct Flight {
    command: Command,
    /// For a flush or a read: sectors that were volatile at its submission, and that were neither reported nor
    /// written again since.
    before: BTreeSet<u64>,
    /// For a read: sectors that were unreadable at some time since its submission.
    bad: BTreeSet<u64>,
    /// For a read: sectors that were unreadable at its submission. The buffer lacks them, and no write has covered
    /// them since.
    failing: BTreeSet<u64>,
    /// True for a write that met another write of the same sectors in the drive.
    contended: bool,
}

/// Account of written data, as an emulator of a disk keeps it.
#[derive(Default)]
struct Account {
    in_flight: BTreeMap<u32, Flight>,
    /// Sectors of writes that were ever submitted.
    submitted: BTreeSet<u64>,
    /// Sectors of completed writes that have not been reported since.
    volatile: BTreeSet<u64>,
    /// Sectors that cannot be read.
    bad: BTreeSet<u64>,
    last: Time,
}

impl Account {
    /// Waits until the drive has room for one more command.
    fn make_room(&mut self, drive_and_now: (&mut Drive, &mut Time), depth: usize) {
        let catch_up = |drive: &mut Drive, now, account: &mut Account| account.catch_up(drive, now);
        make_room(
            drive_and_now,
            depth,
            self,
            |account| &mut account.in_flight,
            catch_up,
        );
    }

    fn submit(&mut self, drive: &mut Drive, now: Time, command: Command) {
        self.catch_up(drive, now);
        let mut flight = Flight {
            command,
            before: BTreeSet::new(),
            bad: BTreeSet::new(),
            failing: BTreeSet::new(),
            contended: false,
        };
        match command.op {
            Op::Write => {
                self.written_again(command.extent);
                self.submitted.extend(sectors(command.extent));
                for other in self.in_flight.values_mut() {
                    let other_write = other.command.op == Op::Write;
                    if other_write && other.command.extent.overlaps(command.extent) {
                        other.contended = true;
                        flight.contended = true;
                    }
                }
            }
            Op::Flush => flight.before.clone_from(&self.volatile),
            Op::Read => {
                let range = sectors(command.extent);
                flight.before = self.volatile.range(range.clone()).copied().collect();
                flight.bad = self.bad.range(range).copied().collect();
                flight.failing.clone_from(&flight.bad);
                let dirty: Vec<Extent> = drive.dirty_extents(now).collect();
                let writes = self.in_flight.values().map(|other| other.command);
                let writes = writes.filter(|write| write.op == Op::Write);
                for extent in writes.map(|write| write.extent).chain(dirty) {
                    flight
                        .failing
                        .retain(|sector| !sectors(extent).contains(sector));
                }
            }
            Op::Discard => {}
        }
        self.in_flight.insert(command.tag, flight);
        drive.submit(now, command);
    }

    fn inject(&mut self, drive: &mut Drive, now: Time, fault: Fault) {
        self.catch_up(drive, now);
        drive.inject(now, fault);
        if let Fault::Unreadable { extent, .. } = fault {
            self.bad.extend(sectors(extent));
            for flight in self.in_flight.values_mut() {
                flight.bad.extend(sectors(extent));
            }
        }
    }

    /// Commands under way say nothing of these any more.
    fn written_again(&mut self, extent: Extent) {
        for flight in self.in_flight.values_mut() {
            for account in [&mut flight.before, &mut flight.failing] {
                account.retain(|sector| !sectors(extent).contains(sector));
            }
        }
    }

    /// Takes everything that has happened by `now`, and checks the laws.
    fn catch_up(&mut self, drive: &mut Drive, now: Time) {
        self.take_written(drive, now);
        while let Some(completion) = drive.poll(now) {
            let flight = self.in_flight.remove(&completion.tag).expect("submitted");
            self.completed(drive, now, &flight, &completion);
        }
        let dirty: Vec<u64> = drive.dirty_extents(now).flat_map(sectors).collect();
        assert_eq!(Sectors::new(dirty.len() as u64), drive.dirty_sectors(now));
        assert_eq!(dirty.is_empty(), drive.is_clean(now));
        let counted = dirty.len();
        let dirty: BTreeSet<u64> = dirty.into_iter().collect();
        assert_eq!(dirty.len(), counted, "a sector is dirty twice");
        let lost: BTreeSet<_> = self.volatile.difference(&dirty).collect();
        assert!(
            lost.is_empty(),
            "{lost:?} are not dirty and were not reported"
        );
        assert!(dirty.is_subset(&self.submitted));
        for sector in dirty.difference(&self.volatile) {
            let mut writes = self.in_flight.values().map(|flight| flight.command);
            assert!(
                writes.any(|write| write.op == Op::Write && sectors(write.extent).contains(sector)),
                "{sector} is dirty, and nobody is writing it"
            );
        }
    }

    fn completed(
        &mut self,
        drive: &mut Drive,
        now: Time,
        flight: &Flight,
        completion: &Completion,
    ) {
        let Flight {
            command, before, ..
        } = flight;
        match command.op {
            Op::Write => {
                assert_eq!(completion.result, Ok(()));
                self.written_again(command.extent);
                self.volatile.extend(sectors(command.extent));
                let through = command.fua || drive.profile().cache.write_back == WriteBack::Off;
                assert!(!through || completion.hit == Hit::Through, "{completion:?}");
            }
            Op::Flush => {
                let left: BTreeSet<_> = before.intersection(&self.volatile).collect();
                assert!(left.is_empty(), "{left:?} not reported before a flush");
            }
            Op::Read => {
                if let Err(error) = completion.result {
                    let lba = error.lba.get();
                    assert!(sectors(command.extent).contains(&lba));
                    assert!(flight.bad.contains(&lba), "{lba} can be read");
                } else {
                    let failing = &flight.failing;
                    assert!(failing.is_empty(), "{failing:?} cannot be read");
                }
                assert!(!command.fua || completion.hit == Hit::Miss);
                let cache = &drive.profile().cache;
                let overlays = cache.write_back == WriteBack::Full
                    && cache.destage == Destage::Sweep
                    && completion.hit == Hit::Partial;
                if completion.hit != Hit::Full && !overlays {
                    assert!(before.is_empty(), "{before:?} are in the buffer alone");
                }
            }
            Op::Discard => {}
        }
        // The arm has written nothing more since the last time; this is about the command.
        self.take(drive, now);
        if completion.hit == Hit::Through && !flight.contended {
            let mut left = self.volatile.range(sectors(command.extent));
            assert_eq!(left.next(), None, "{completion:?} is not on the medium");
        }
    }

    /// Takes the writes that reached the medium by `now`.
    fn take_written(&mut self, drive: &mut Drive, now: Time) {
        for sector in self.take(drive, now).into_iter().flat_map(sectors) {
            self.bad.remove(&sector);
            for flight in self.in_flight.values_mut() {
                flight.failing.remove(&sector);
            }
        }
    }

    fn take(&mut self, drive: &mut Drive, now: Time) -> Vec<Extent> {
        let written: Vec<(Time, Extent)> = drive.take_written(now).collect();
        for &(at, extent) in &written {
            assert!(at <= now);
            self.reported(at, extent);
        }
        written.into_iter().map(|(_, extent)| extent).collect()
    }

    fn reported(&mut self, at: Time, extent: Extent) {
        assert!(at >= self.last, "reports are in order of time");
        assert!(!extent.is_empty());
        self.last = at;
        for sector in sectors(extent) {
            assert!(
                self.submitted.contains(&sector),
                "{sector} was never written"
            );
            self.volatile.remove(&sector);
            for flight in self.in_flight.values_mut() {
                flight.before.remove(&sector);
            }
        }
    }

    /// Lets time pass up to `until`, event by event.
    fn pass(&mut self, drive: &mut Drive, until: Time) {
        while let Some(next) = drive.next_event().filter(|next| *next <= until) {
            self.catch_up(drive, next);
        }
        self.catch_up(drive, until);
    }

    fn abort(&mut self, drive: &mut Drive, now: Time, which: &prop::sample::Index) {
        if self.in_flight.is_empty() {
            return;
        }
        let index = which.index(self.in_flight.len());
        let tag = *self.in_flight.keys().nth(index).unwrap();
        if drive.abort(now, tag) {
            self.in_flight.remove(&tag);
        }
    }

    /// Cuts the power. Volatile sectors are lost, and commands in flight end without a result.
    fn power_cycle(&mut self, drive: &mut Drive, now: Time) {
        self.catch_up(drive, now);
        drive.power_cycle(now);
        self.take_written(drive, now);
        self.in_flight.clear();
        self.volatile.clear();
        self.submitted.clear();
        assert_eq!((drive.in_flight(), drive.next_event()), (0, None));
    }
}

/// An event between commands.
#[derive(Clone, Debug)]
enum Between {
    Trouble(Trouble),
    Unreadable(Extent, u32),
    PowerCycle,
}

fn between() -> impl Strategy<Value = Between> {
    let bad = (
        prop_oneof![0_u64..1_200, 100_000_u64..101_200],
        1_u64..20,
        0_u32..3,
    );
    prop_oneof![
        20 => troubles().prop_map(Between::Trouble),
        1 => bad.prop_map(|(start, len, turns)| {
            Between::Unreadable(Extent::at(start, len), turns)
        }),
        1 => Just(Between::PowerCycle),
    ]
}

/// Runs in which reads, writes and flushes are about as frequent as they are said to be: of twenty.
fn operation(kind: u8) -> Op {
    match kind {
        0 => Op::Flush,
        1 => Op::Discard,
        2..=6 => Op::Read,
        _ => Op::Write,
    }
}

/// A few sectors, over and over.
fn crowded() -> impl Strategy<Value = Vec<Asked>> {
    let pause = prop_oneof![
        6 => Just(0_u64),
        3 => 0_u64..2_000_000,
        1 => 0_u64..80_000_000,
    ];
    let asked = (
        0_u8..20,
        0_u64..40,
        1_u64..24,
        prop::bool::weighted(0.1),
        pause,
    );
    prop::collection::vec(asked, 1..60)
}

proptest! {
    #![proptest_config(at_least(1500))]

    /// At any time, the drive counts the sectors of completed, unreported writes as dirty, each once. Sectors of
    /// writes in the drive are exempt. Writes before a flush are reported before the flush completes, and forced
    /// writes when they complete. A read of data that only the buffer has comes from the buffer. Reports cover
    /// written sectors only.
    #[test]
    fn what_is_not_reported_is_dirty(
        profile in any_drive(),
        commands in prop_oneof![commands(), crowded()],
        depth in 1_usize..=32,
        seed in any::<u64>(),
        between in prop::collection::vec(between(), 60),
    ) {
        let mut drive = Drive::new(&profile, seed);
        let depth = depth.min(drive.depth() as usize);
        drive.record_written(Time::ZERO, true);
        let mut account = Account::default();
        let mut now = Time::ZERO;
        for ((tag, &(kind, start, len, fua, pause)), between) in (0..).zip(&commands).zip(&between) {
            account.make_room((&mut drive, &mut now), depth);
            match *between {
                Between::Trouble(Trouble::Inject(fault)) => account.inject(&mut drive, now, fault),
                Between::Unreadable(extent, retries) => {
                    account.inject(&mut drive, now, Fault::Unreadable { extent, retries });
                }
                _ => {}
            }
            let asked = Command { fua, ..command(tag, operation(kind), start, len) };
            account.submit(&mut drive, now, asked);
            now += Nanos::from_nanos(pause);
            account.pass(&mut drive, now);
            match between {
                Between::Trouble(Trouble::Abort(which)) => account.abort(&mut drive, now, which),
                Between::PowerCycle => account.power_cycle(&mut drive, now),
                _ => {}
            }
            account.catch_up(&mut drive, now);
        }
        account.pass(&mut drive, now + ms(5_000));
        now += ms(5_000);
        for tag in std::mem::take(&mut account.in_flight).into_keys() {
            prop_assert!(drive.abort(now, tag));
        }
        account.catch_up(&mut drive, now);
        for tag in 0..2 {
            account.make_room((&mut drive, &mut now), depth);
            account.submit(&mut drive, now, command(tag, Op::Flush, 0, 0));
        }
        account.pass(&mut drive, now + ms(1_000));
        now += ms(1_000);
        prop_assert!(account.volatile.is_empty() && drive.is_clean(now));
        prop_assert_eq!(drive.head_time(now).total(), now - Time::ZERO);
    }

    /// Recording does not change the drive's behaviour.
    #[test]
    fn a_drive_that_records_spans_does_the_same(
        profile in any_drive(),
        commands in prop_oneof![commands(), crowded()],
        depth in 1_usize..=32,
        seed in any::<u64>(),
        between in prop::collection::vec(between(), 60),
    ) {
        let completions = |on| completions((&profile, depth, seed), &commands, &between, on);
        prop_assert_eq!(completions(false), completions(true));
    }
}

/// Completions of a run with or without recording, with their times.
fn completions(
    (profile, depth, seed): (&Profile, usize, u64),
    commands: &[Asked],
    between: &[Between],
    on: bool,
) -> (Vec<Completion>, Nanos) {
    let mut drive = Drive::new(profile, seed);
    drive.record_written(Time::ZERO, on);
    let depth = depth.min(drive.depth() as usize);
    let mut now = Time::ZERO;
    let mut state = (BTreeMap::new(), Vec::new());
    let collect = |drive: &mut Drive, now, state: &mut (BTreeMap<u32, ()>, Vec<Completion>)| {
        while let Some(completion) = drive.poll(now) {
            state.0.remove(&completion.tag);
            state.1.push(completion);
            drop(drive.take_written(now));
        }
    };
    for ((tag, &(kind, start, len, fua, pause)), between) in (0..).zip(commands).zip(between) {
        make_room(
            (&mut drive, &mut now),
            depth,
            &mut state,
            |state| &mut state.0,
            collect,
        );
        match *between {
            Between::Trouble(Trouble::Inject(fault)) => drive.inject(now, fault),
            Between::Unreadable(extent, retries) => {
                drive.inject(now, Fault::Unreadable { extent, retries });
            }
            _ => {}
        }
        let asked = command(tag, operation(kind), start, len);
        drive.submit(now, Command { fua, ..asked });
        state.0.insert(tag, ());
        now += Nanos::from_nanos(pause);
        collect(&mut drive, now, &mut state);
        match between {
            Between::Trouble(Trouble::Abort(which)) if !state.0.is_empty() => {
                let tag = *state.0.keys().nth(which.index(state.0.len())).unwrap();
                if drive.abort(now, tag) {
                    state.0.remove(&tag);
                }
            }
            Between::PowerCycle => {
                drive.power_cycle(now);
                drop(drive.take_written(now));
                state.0.clear();
            }
            _ => {}
        }
    }
    now += ms(5_000);
    collect(&mut drive, now, &mut state);
    (state.1, drive.head_time(now).total())
}
