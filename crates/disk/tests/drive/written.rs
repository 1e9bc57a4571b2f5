//! What the drive says of what is on the medium.

use crate::common::{Trouble, command, make_room, ms, runs, troubles, wait};
use headtime_disk::profile::{NoiseSpec, RequestedData, WriteBack, by_name};
use headtime_disk::{Command, Drive, Fault, Hit};
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn sectors(extent: Extent) -> std::ops::Range<u64> {
    extent.start.get()..extent.end().get()
}

/// Keeps account of what was written, as whoever emulates a disk has to.
#[derive(Default)]
struct Account {
    in_flight: BTreeMap<u32, Command>,
    /// Sectors of writes that were ever submitted.
    submitted: BTreeSet<u64>,
    /// Sectors of completed writes that have not been reported since.
    volatile: BTreeSet<u64>,
    /// What was volatile when a flush was submitted and has not been written again since, by its
    /// tag.
    flushes: BTreeMap<u32, BTreeSet<u64>>,
    last: Time,
}

impl Account {
    fn submit(&mut self, drive: &mut Drive, now: Time, command: Command) {
        self.catch_up(drive, now);
        match command.op {
            Op::Write => {
                self.written_again(command.extent);
                self.submitted.extend(sectors(command.extent));
            }
            Op::Flush => {
                self.flushes.insert(command.tag, self.volatile.clone());
            }
            _ => {}
        }
        self.in_flight.insert(command.tag, command);
        drive.submit(now, command);
    }

    /// A flush under way says nothing of these any more.
    fn written_again(&mut self, extent: Extent) {
        for before in self.flushes.values_mut() {
            before.retain(|sector| !sectors(extent).contains(sector));
        }
    }

    /// Takes everything that has happened by `now`, and checks the law.
    fn catch_up(&mut self, drive: &mut Drive, now: Time) {
        loop {
            self.take(drive, now);
            let Some(completion) = drive.poll(now) else {
                break;
            };
            let command = self.in_flight.remove(&completion.tag).expect("submitted");
            match command.op {
                Op::Write => {
                    self.written_again(command.extent);
                    self.volatile.extend(sectors(command.extent));
                }
                Op::Flush => {
                    let before = self.flushes.remove(&completion.tag).expect("a flush");
                    let left: BTreeSet<_> = before.intersection(&self.volatile).collect();
                    assert!(left.is_empty(), "{left:?} not reported before a flush");
                }
                _ => {}
            }
        }
        let dirty: Vec<u64> = drive.dirty_extents(now).flat_map(sectors).collect();
        assert_eq!(Sectors::new(dirty.len() as u64), drive.dirty_sectors(now));
        let dirty: BTreeSet<u64> = dirty.into_iter().collect();
        let lost: BTreeSet<_> = self.volatile.difference(&dirty).collect();
        assert!(
            lost.is_empty(),
            "{lost:?} are not dirty and were not reported"
        );
        assert!(dirty.is_subset(&self.submitted));
        if self.in_flight.is_empty() {
            assert_eq!(self.volatile, dirty);
        }
    }

    fn take(&mut self, drive: &mut Drive, now: Time) {
        let written: Vec<(Time, Extent)> = drive.take_written(now).collect();
        for (at, extent) in written {
            assert!(at <= now);
            self.reported(at, extent);
        }
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
        }
    }

    /// Lets time pass up to `until`, event by event.
    fn pass(&mut self, drive: &mut Drive, until: Time) {
        while let Some(next) = drive.next_event().filter(|next| *next <= until) {
            self.catch_up(drive, next);
        }
        self.catch_up(drive, until);
    }

    /// The power fails: what is volatile is lost, what is in flight is open.
    fn power_cycle(&mut self, drive: &mut Drive, now: Time) {
        self.catch_up(drive, now);
        drive.power_cycle(now);
        self.take(drive, now);
        self.in_flight.clear();
        self.flushes.clear();
        self.volatile.clear();
        self.submitted.clear();
    }
}

#[test]
fn a_write_is_reported_when_the_arm_has_written_it() {
    let profile = by_name("wd5000aaks").unwrap();
    let mut drive = Drive::new(&profile, 0);
    drive.record_written(Time::ZERO, true);
    let extent = Extent::at(700_000_000, 8);
    drive.submit(Time::ZERO, command(1, Op::Write, 700_000_000, 8));
    let completed = wait(&mut drive).at;
    assert_eq!(
        drive.take_written(completed).len(),
        0,
        "it is in the buffer"
    );
    assert_eq!(drive.dirty_extents(completed).collect::<Vec<_>>(), [extent]);
    let begun = completed + profile.cache.destage_delay;
    assert_eq!(drive.take_written(begun).len(), 0, "the arm is on its way");
    let later = begun + ms(40);
    let written: Vec<_> = drive.take_written(later).collect();
    assert_eq!(written.len(), 1);
    assert_eq!(written[0].1, extent);
    assert!(written[0].0 > begun && written[0].0 < later);
    assert_eq!(drive.take_written(later).len(), 0, "once");
}

#[test]
fn a_forced_write_is_reported_before_it_completes_and_again_then() {
    let profile = by_name("wd5000aaks").unwrap();
    let mut drive = Drive::new(&profile, 0);
    drive.record_written(Time::ZERO, true);
    let forced = Command {
        fua: true,
        ..command(1, Op::Write, 600_000_000, 8)
    };
    drive.submit(Time::ZERO, forced);
    let completed = wait(&mut drive).at;
    let written: Vec<_> = drive.take_written(completed).collect();
    assert_eq!(written.len(), 2, "{written:?}");
    assert!(written.iter().all(|(_, extent)| *extent == forced.extent));
    assert!(written[0].0 <= completed);
    assert_eq!(written[1].0, completed);
}

#[test]
fn nothing_is_recorded_unless_asked_for() {
    let profile = by_name("wd5000aaks").unwrap();
    let mut drive = Drive::new(&profile, 0);
    let write = |drive: &mut Drive, now, tag| {
        let forced = Command {
            fua: true,
            ..command(tag, Op::Write, 0, 8)
        };
        drive.submit(now, forced);
        wait(drive).at
    };
    let now = write(&mut drive, Time::ZERO, 1);
    assert_eq!(drive.take_written(now).len(), 0);
    drive.record_written(now, true);
    let now = write(&mut drive, now, 2);
    drive.record_written(now, false);
    assert_eq!(drive.take_written(now).len(), 0, "dropped");
}

/// A drive that loses its power in the middle of a write of half a track has written the sectors
/// that had passed, and no part of one.
#[test]
fn a_write_that_is_cut_off_is_on_the_medium_in_part() {
    let profile = by_name("exos-x18")
        .unwrap()
        .with(|spec| {
            spec.noise = NoiseSpec::default();
            spec.cache.write_back = WriteBack::Off;
            spec.access.zero_latency_write = false;
        })
        .unwrap();
    let per = u64::from(profile.geometry.sectors_per_physical());
    assert!(per > 1);
    let whole = Extent::at(80_000, 1_000);
    let cut = |at: Time| {
        let mut drive = Drive::new(&profile, 0);
        drive.record_written(Time::ZERO, true);
        drive.submit(
            Time::ZERO,
            command(1, Op::Write, whole.start.get(), whole.len.get()),
        );
        assert_eq!(drive.poll(at), None);
        drive.power_cycle(at);
        assert_eq!((drive.in_flight(), drive.next_event()), (0, None));
        assert!(drive.is_clean(at));
        let written: Vec<(Time, Extent)> = drive.take_written(at).collect();
        written
            .iter()
            .map(|(_, extent)| extent.len.get())
            .sum::<u64>()
    };
    let mut drive = Drive::new(&profile, 0);
    drive.record_written(Time::ZERO, true);
    drive.submit(
        Time::ZERO,
        command(1, Op::Write, whole.start.get(), whole.len.get()),
    );
    let completed = wait(&mut drive).at;
    let (end, _) = drive.take_written(completed).next().unwrap();
    // Until just before it completes, which is when it has been written.
    let got: Vec<u64> = (1..200)
        .rev()
        .map(|step| cut(Time::from_nanos(end.as_nanos() - 20_000 * step + 19_999)))
        .collect();
    assert!(got.is_sorted(), "{got:?}");
    assert_eq!(got[0], 0);
    let parts: BTreeSet<u64> = got
        .iter()
        .copied()
        .filter(|len| (1..1_000).contains(len))
        .collect();
    assert!(parts.len() > 10, "{parts:?}");
    assert!(parts.iter().all(|len| len % per == 0), "{parts:?}");
}

#[test]
fn a_power_cycle_forgets_everything_but_the_medium() {
    let profile = by_name("wd5000aaks").unwrap();
    let mut drive = Drive::new(&profile, 0);
    let bad = Extent::at(5_000, 2);
    drive.inject(
        Time::ZERO,
        Fault::Unreadable {
            extent: bad,
            retries: 1,
        },
    );
    drive.inject(Time::ZERO, Fault::LoseNext);
    drive.inject(Time::ZERO, Fault::LoseNext);
    for (tag, op) in [Op::Read, Op::Write, Op::Read, Op::Flush]
        .into_iter()
        .enumerate()
    {
        drive.submit(Time::ZERO, command(tag as u32, op, 100_000, 8));
    }
    drive.inject(Time::ZERO, Fault::Stall(ms(10_000)));
    let now = Time::ZERO + ms(30);
    drive.power_cycle(now);
    assert_eq!((drive.in_flight(), drive.next_event()), (0, None));
    assert_eq!(drive.poll(now), None);
    assert!(drive.is_clean(now));
    drive.submit(now, command(1, Op::Read, 100_000, 8));
    let read = wait(&mut drive);
    assert_eq!(read.hit, headtime_disk::Hit::Miss, "the buffer is empty");
    assert!(read.at < now + ms(40), "{read:?}");
    drive.submit(read.at, command(2, Op::Read, 4_996, 8));
    let failed = wait(&mut drive);
    assert_eq!(failed.result.unwrap_err().lba, Lba::new(5_000));
    assert_eq!(drive.head_time(failed.at).total(), failed.at - Time::ZERO);
}

/// The arm writes 0 to 277; a read of sector 259 comes from the buffer meanwhile, and the drive drops
/// what has been read. A write of sector 0 has to wait all the same: of what the arm is writing there
/// is no other copy, and what it says of sector 0 then is not about the new data.
#[test]
fn a_write_over_what_the_arm_writes_waits_although_a_read_has_had_what_is_behind() {
    let profile = by_name("cheetah9lp")
        .unwrap()
        .with(|spec| {
            let cache = &mut spec.cache;
            cache.write_back = WriteBack::Full;
            cache.segments = 3;
            cache.write_segments = 2;
            cache.read_hits_on_write_data = true;
            cache.sneaky_full_read_hits = true;
            cache.requested_data = RequestedData::Dropped;
            spec.queue.depth = 2;
        })
        .unwrap();
    let mut drive = Drive::new(&profile, 0);
    drive.record_written(Time::ZERO, true);
    let first = Extent::at(0, 278);
    drive.submit(Time::ZERO, command(1, Op::Write, 0, 278));
    let begun = wait(&mut drive).at;
    drive.submit(begun, command(2, Op::Read, 259, 1));
    let read = wait(&mut drive);
    assert_eq!(read.hit, Hit::Full);
    drive.submit(read.at, command(3, Op::Write, 0, 1));
    let new = wait(&mut drive);
    assert_eq!(new.hit, Hit::Buffered);
    let written: Vec<_> = drive.take_written(new.at).collect();
    assert_eq!(written.len(), 1, "{written:?}");
    assert_eq!(written[0].1, first);
    assert!(written[0].0 > read.at && written[0].0 < new.at);
    let dirty: Vec<_> = drive.dirty_extents(new.at).collect();
    assert_eq!(dirty, [Extent::at(0, 1)], "the new data alone");
}

/// What happens at a time between commands.
#[derive(Clone, Debug)]
enum Between {
    Trouble(Trouble),
    PowerCycle,
}

fn between() -> impl Strategy<Value = Between> {
    prop_oneof![
        20 => troubles().prop_map(Between::Trouble),
        1 => Just(Between::PowerCycle),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// At any time, the sectors of completed writes that were not reported since are among those that
    /// the drive counts as dirty, and are all of them when nothing is in flight; what was written
    /// before a flush is reported before it completes; nothing is reported that nobody wrote.
    #[test]
    fn what_is_not_reported_is_dirty(
        (profile, commands, depth, seed) in runs(),
        between in prop::collection::vec(between(), 60),
    ) {
        let mut drive = Drive::new(&profile, seed);
        drive.record_written(Time::ZERO, true);
        let mut account = Account::default();
        let mut now = Time::ZERO;
        for ((tag, &(kind, start, len, fua, pause)), between) in (0..).zip(&commands).zip(&between) {
            make_room(
                (&mut drive, &mut now),
                depth,
                &mut account,
                |account| &mut account.in_flight,
                |drive, now, account| account.catch_up(drive, now),
            );
            let op = match kind {
                0 => Op::Flush,
                1 => Op::Discard,
                2..=6 => Op::Read,
                _ => Op::Write,
            };
            if let Between::Trouble(Trouble::Inject(fault)) = *between {
                drive.inject(now, fault);
            }
            account.submit(&mut drive, now, Command { fua, ..command(tag, op, start, len) });
            now += Nanos::from_nanos(pause);
            account.pass(&mut drive, now);
            match between {
                Between::Trouble(Trouble::Abort(which)) if !account.in_flight.is_empty() => {
                    let index = which.index(account.in_flight.len());
                    let tag = *account.in_flight.keys().nth(index).unwrap();
                    if drive.abort(now, tag) {
                        account.in_flight.remove(&tag);
                        account.flushes.remove(&tag);
                    }
                }
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
            account.submit(&mut drive, now, command(tag, Op::Flush, 0, 0));
        }
        account.pass(&mut drive, now + ms(1_000));
        now += ms(1_000);
        prop_assert!(account.volatile.is_empty() && drive.is_clean(now));
        prop_assert_eq!(drive.head_time(now).total(), now - Time::ZERO);
    }
}
