//! Promises of every drive, for every load.

use crate::common::{
    Trouble, at_least, command, commands, make_room, ms, profiles, runs, troubles, wait,
};
use headtime_disk::{Command, Drive};
use headtime_sched::{Backlog, Op};
use headtime_units::{Nanos, Sectors, Time};
use proptest::prelude::*;

/// Takes commands that have completed by `now` out of `waiting`, which has tags and submission times.
fn collect(drive: &mut Drive, now: Time, waiting: &mut std::collections::BTreeMap<u32, Time>) {
    while let Some(completion) = drive.poll(now) {
        let submitted = waiting.remove(&completion.tag).expect("completed once");
        assert_eq!(completion.breakdown.total(), completion.at - submitted);
        assert_eq!(completion.result, Ok(()));
    }
}

proptest! {
    #![proptest_config(at_least(400))]

    /// Every command completes once, in order of time, and the parts of its time add up to the whole. The parts of
    /// the arm's time add up to all of the time. A flush leaves no earlier write dirty.
    #[test]
    fn every_command_completes_once(
        profile in profiles(),
        commands in commands(),
        depth in 1_usize..8,
        seed in any::<u64>(),
    ) {
        let mut drive = Drive::new(&profile, seed);
        drive.record_spans(Time::ZERO, true);
        let mut now = Time::ZERO;
        let mut waiting = std::collections::BTreeMap::new();
        let mut last = Time::ZERO;
        let mut take = |drive: &mut Drive, waiting: &mut std::collections::BTreeMap<u32, Time>| {
            let completion = wait(drive);
            let submitted = waiting.remove(&completion.tag).expect("completed once");
            assert!(completion.at >= last && completion.at >= submitted);
            assert_eq!(completion.breakdown.total(), completion.at - submitted);
            assert_eq!(completion.result, Ok(()));
            last = completion.at;
            completion
        };
        for (tag, &(kind, start, len, fua, pause)) in (0..).zip(&commands) {
            let op = match kind {
                0 => Op::Flush,
                1 => Op::Discard,
                2..=10 => Op::Read,
                _ => Op::Write,
            };
            if waiting.len() >= depth {
                now = now.max(take(&mut drive, &mut waiting).at);
            }
            now += Nanos::from_nanos(pause);
            let backlog = [Backlog::Nothing, Backlog::Busy, Backlog::Chosen, Backlog::Held];
            drive.note_pending(now, backlog[kind as usize % 4]);
            while drive.next_event().is_some_and(|at| at <= now) {
                if let Some(completion) = drive.poll(now) {
                    let submitted = waiting.remove(&completion.tag).expect("completed once");
                    prop_assert_eq!(completion.breakdown.total(), completion.at - submitted);
                }
            }
            drive.submit(now, Command { fua, ..command(tag, op, start, len) });
            waiting.insert(tag, now);
        }
        while !waiting.is_empty() {
            now = now.max(take(&mut drive, &mut waiting).at);
        }
        prop_assert_eq!(drive.in_flight(), 0);
        let end = now + ms(500);
        prop_assert_eq!(drive.head_time(end).total(), end - Time::ZERO);
        let spans = drive.take_spans(end);
        prop_assert_eq!(spans.first().map(|span| span.from), Some(Time::ZERO));
        prop_assert_eq!(spans.last().map(|span| span.to), Some(end));
        prop_assert!(spans.windows(2).all(|pair| pair[0].to == pair[1].from));
        drive.submit(end, command(0, Op::Flush, 0, 0));
        let flushed = wait(&mut drive).at;
        prop_assert!(drive.is_clean(flushed));
    }

    /// Asking more often changes nothing.
    #[test]
    fn time_may_pass_in_any_steps(
        profile in profiles(),
        commands in commands(),
        steps in prop::collection::vec(1_u64..3_000_000, 1..20),
    ) {
        let times = |often: bool| {
            let mut drive = Drive::new(&profile, 3);
            let mut now = Time::ZERO;
            let mut times = Vec::new();
            for (tag, &(kind, start, len, fua, pause)) in (0..).zip(&commands) {
                let op = if kind < 10 { Op::Read } else { Op::Write };
                drive.submit(now, Command { fua, ..command(tag, op, start, len) });
                let mut step = steps.iter().cycle();
                let completion = loop {
                    let next = drive.next_event().unwrap();
                    if often {
                        let early = now + Nanos::from_nanos(*step.next().unwrap());
                        if early < next {
                            now = early;
                            drive.head_time(now);
                            prop_assert!(drive.poll(now).is_none());
                            continue;
                        }
                    }
                    now = next;
                    if let Some(completion) = drive.poll(now) {
                        break completion;
                    }
                };
                times.push((completion, drive.head_time(now)));
                let after = now + Nanos::from_nanos(pause);
                if often {
                    let half = now + Nanos::from_nanos(pause / 2);
                    drive.head_time(half);
                }
                now = after;
            }
            Ok(times)
        };
        prop_assert_eq!(times(false)?, times(true)?);
    }
}

proptest! {
    // Troubles are rare, so more cases are drawn.
    #![proptest_config(at_least(2000))]

    /// With stalled, lost and aborted commands, the other commands complete once. Aborted commands do not complete. A
    /// flush still leaves nothing dirty.
    #[test]
    fn what_is_given_up_is_in_nobodys_way(
        (profile, commands, depth, seed) in runs(),
        troubles in prop::collection::vec(troubles(), 60),
    ) {
        let mut drive = Drive::new(&profile, seed);
        let mut now = Time::ZERO;
        let mut waiting = std::collections::BTreeMap::new();
        for ((tag, &(kind, start, len, fua, pause)), trouble) in (0..).zip(&commands).zip(&troubles) {
            make_room((&mut drive, &mut now), depth, &mut waiting, |waiting| waiting, collect);
            let op = match kind {
                0..=2 => Op::Flush,
                3 => Op::Discard,
                4..=9 => Op::Read,
                _ => Op::Write,
            };
            if let Trouble::Inject(fault) = *trouble {
                drive.inject(now, fault);
            }
            drive.submit(now, Command { fua, ..command(tag, op, start, len) });
            waiting.insert(tag, now);
            now += Nanos::from_nanos(pause);
            collect(&mut drive, now, &mut waiting);
            if let Trouble::Abort(which) = trouble && !waiting.is_empty() {
                let tag = *waiting.keys().nth(which.index(waiting.len())).unwrap();
                if drive.abort(now, tag) {
                    waiting.remove(&tag);
                    prop_assert!(!drive.abort(now, tag));
                }
            }
            prop_assert_eq!(drive.in_flight(), waiting.len());
            prop_assert_eq!(drive.dirty_sectors(now) == Sectors::ZERO, drive.is_clean(now));
        }
        while let Some(next) = drive.next_event() {
            now = now.max(next);
            collect(&mut drive, now, &mut waiting);
        }
        for tag in waiting.into_keys() {
            prop_assert!(drive.abort(now, tag), "{} neither completes nor is lost", tag);
        }
        prop_assert_eq!(drive.in_flight(), 0);
        // A lost command may be outstanding.
        for tag in 0..2 {
            drive.submit(now, command(tag, Op::Flush, 0, 0));
        }
        while let Some(next) = drive.next_event() {
            now = now.max(next);
            drive.poll(now);
        }
        prop_assert!(drive.is_clean(now));
        prop_assert_eq!(drive.head_time(now).total(), now - Time::ZERO);
    }
}
