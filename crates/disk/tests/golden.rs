//! Small timelines, command by command, as text.
//!
//! `HEADTIME_BLESS=1 cargo test -p headtime-disk --test golden` writes them anew; a difference that
//! results is a change of simulated results and belongs into the change log with its reason.

use headtime_disk::profile::{FirmwarePolicy, by_name};
use headtime_disk::{Command, Drive, Part, Profile};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Time};
use std::fmt::Write;

/// A step: operation, first sector, number of sectors, and think time in milliseconds before it.
type Step = (char, u64, u64, u64);

fn ms(nanos: Nanos) -> f64 {
    nanos.as_millis_f64()
}

fn timeline(profile: &Profile, depth: usize, steps: &[Step]) -> String {
    let mut drive = Drive::new(profile, 7);
    let mut text = format!(
        "{}, depth {depth}\n  tag op       sector  len  complete  response  hit       queue overhead    seek  switch rotation transfer     bus\n",
        profile.name
    );
    let mut now = Time::ZERO;
    let mut waiting = (0..).zip(steps);
    let mut in_flight = 0;
    loop {
        while in_flight < depth {
            let Some((tag, &(op, start, len, think))) = waiting.next() else {
                break;
            };
            let (op, fua) = match op {
                'R' => (Op::Read, false),
                'W' => (Op::Write, false),
                'U' => (Op::Write, true),
                _ => (Op::Flush, false),
            };
            now += Nanos::from_millis(think);
            let extent = Extent::at(start, len);
            drive.submit(
                now,
                Command {
                    tag,
                    op,
                    extent,
                    fua,
                    high: false,
                },
            );
            in_flight += 1;
        }
        if in_flight == 0 {
            break;
        }
        let next = drive.next_event().expect("something is under way");
        now = now.max(next);
        let Some(done) = drive.poll(now) else {
            continue;
        };
        in_flight -= 1;
        let (op, start, len, _) = steps[done.tag as usize];
        let parts = done.breakdown;
        writeln!(
            text,
            "  {:>3} {op} {start:>12} {len:>4} {:>9.3} {:>9.3}  {:<8} {:>6.3} {:>8.3} {:>7.3} {:>7.3} {:>8.3} {:>8.3} {:>7.3}",
            done.tag,
            done.at.as_secs_f64() * 1e3,
            ms(parts.total()),
            format!("{:?}", done.hit),
            ms(parts.queue),
            ms(parts.overhead),
            ms(parts.seek),
            ms(parts.switch),
            ms(parts.rotation),
            ms(parts.transfer),
            ms(parts.bus),
        )
        .unwrap();
    }
    let end = now + Nanos::from_millis(100);
    text += "  arm:";
    for (part, time) in drive.head_time(end).iter() {
        if part == Part::Idle || !time.is_zero() {
            write!(text, " {} {:.3}", part.name(), ms(time)).unwrap();
        }
    }
    text += "\n\n";
    text
}

#[test]
fn timelines_of_commands_are_as_recorded() {
    let near: &[Step] = &[
        ('R', 4_583_176, 8, 0),
        ('R', 4_583_184, 8, 40),
        ('R', 4_583_100, 16, 40),
        ('W', 4_583_180, 4, 40),
        ('W', 4_583_184, 4, 0),
        ('R', 4_583_182, 12, 5),
        ('R', 4_583_500, 64, 20),
        ('W', 9_000_000, 32, 1),
        ('R', 12_000_000, 8, 0),
        ('R', 12_000_000, 8, 0),
    ];
    let old: Vec<Step> = near
        .iter()
        .map(|&(op, start, len, think)| (op, start / 10, len, think))
        .collect();
    let modern: &[Step] = &[
        ('W', 1_000_000, 8, 0),
        ('W', 900_000_000, 8, 0),
        ('R', 500_000_000, 256, 0),
        ('R', 500_000_256, 256, 0),
        ('U', 100_000_000, 16, 0),
        ('R', 900_000_000, 8, 0),
        ('R', 20_000_000, 8, 0),
        ('R', 510_000_000, 8, 0),
        ('F', 0, 0, 0),
        ('R', 800_000_000, 8, 100),
        ('W', 800_000_003, 2, 0),
        ('F', 0, 0, 0),
    ];
    let quiet = |name: &str| {
        let quiet = by_name(name)
            .unwrap()
            .with(|spec| spec.noise = Default::default());
        quiet.unwrap()
    };
    let atlas = quiet("atlas10k");
    let queued = atlas.with(|spec| {
        spec.queue.depth = 8;
        spec.queue.policy = FirmwarePolicy::Sptf {
            margin: Nanos::ZERO,
            age_cap: None,
        };
    });
    let text = [
        timeline(&atlas, 1, near),
        timeline(&queued.unwrap(), 4, near),
        timeline(&quiet("hp-c2247a"), 1, &old),
        timeline(&quiet("wd5000aaks"), 1, modern),
        timeline(&quiet("exos-x18"), 4, modern),
    ]
    .concat();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/drive.txt");
    if std::env::var_os("HEADTIME_BLESS").is_some() {
        std::fs::write(file, &text).unwrap();
    }
    let golden = std::fs::read_to_string(file).unwrap_or_default();
    for (number, (now, before)) in (1..).zip(text.lines().zip(golden.lines())) {
        assert_eq!(now, before, "line {number} of tests/golden/drive.txt");
    }
    assert_eq!(text.lines().count(), golden.lines().count());
}
