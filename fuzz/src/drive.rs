//! Checks on a drive made from any profile: whatever is read and accepted can be run.

use crate::parts::Draw;
use headtime_disk::{Command, Drive, Profile};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Time};
use std::collections::BTreeMap;

/// Commands in a run.
const COMMANDS: u32 = 24;
/// Calls of [`Drive::poll`] that all of them may need.
const POLLS_MAX: u32 = 10_000;

/// Reads `bytes` as a profile; if it is one, gives a few commands to its drive.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(profile) = Profile::from_toml("FILE", text) {
        run(&profile, &mut Draw::new(bytes));
    }
}

/// Every command completes once, not before it came, and the arm accounts for all of the time.
fn run(profile: &Profile, draw: &mut Draw) {
    let mut drive = Drive::new(profile, draw.below(1 << 32));
    let mut now = Time::ZERO;
    let mut waiting: BTreeMap<u32, Time> = BTreeMap::new();
    let mut next = 0;
    let mut last = Extent::at(0, 0);
    for _ in 0..POLLS_MAX {
        // Some come at once, some when the drive has long been idle.
        while next < COMMANDS && (waiting.len() as u32) < drive.depth() && draw.below(4) > 0 {
            last = extent(&drive, draw, last);
            let command = Command {
                tag: next,
                op: [Op::Read, Op::Read, Op::Write, Op::Write, Op::Flush][draw.below(5) as usize],
                extent: last,
                fua: draw.below(8) == 0,
                high: false,
            };
            drive.submit(now, command);
            waiting.insert(next, now);
            next += 1;
            if draw.below(3) == 0 {
                let most = 1 << draw.below(34);
                now += Nanos::from_nanos(draw.below(most));
                while let Some(done) = drive.poll(now) {
                    finish(&mut waiting, &done, now);
                }
            }
        }
        let Some(at) = drive.next_event() else {
            assert!(
                waiting.is_empty(),
                "commands are left, and nothing will come"
            );
            if next == COMMANDS {
                break;
            }
            continue;
        };
        now = now.max(at);
        while let Some(done) = drive.poll(now) {
            finish(&mut waiting, &done, now);
        }
    }
    assert!(next == COMMANDS && waiting.is_empty(), "still busy");
    now += Nanos::from_secs(3600);
    assert_eq!(drive.head_time(now).total(), now - Time::ZERO);
}

/// Where a command goes: on from the last one, near it, or anywhere.
fn extent(drive: &Drive, draw: &mut Draw, last: Extent) -> Extent {
    let capacity = drive.capacity().get();
    let start = match draw.below(4) {
        0 | 1 => last.end().get() % capacity,
        2 => last.start.get().saturating_sub(draw.below(64)),
        _ => draw.below(capacity),
    };
    let most = 1 << draw.below(13);
    let most = most.min(capacity - start);
    Extent::at(start, 1 + draw.below(most))
}

fn finish(waiting: &mut BTreeMap<u32, Time>, done: &headtime_disk::Completion, now: Time) {
    let submitted = waiting.remove(&done.tag).expect("it was submitted");
    assert!(submitted <= done.at && done.at <= now);
    assert_eq!(done.breakdown.total(), done.at - submitted);
    assert_eq!(done.result, Ok(()));
}
