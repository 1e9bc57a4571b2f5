//! Readers of a disk: the length of their turns, and the gain of waiting.

use super::*;

/// A process that reads sequentially, 128 KiB at a time.
#[derive(Clone, Copy)]
struct Reader {
    process: u32,
    /// Address of the next read.
    at: u64,
    /// Time from the completion of a request to the next request.
    think: Nanos,
    /// Number of outstanding requests.
    ahead: usize,
}

/// Result of a run of readers on a disk. A request at the end of the last request takes
/// `sequential`, any other request takes 12 ms.
#[derive(Default)]
struct Outcome {
    /// Process and completion time of each request.
    served: Vec<(u32, Time)>,
    /// Number of times that the drive held requests of two processes.
    mixed: usize,
    /// Number of times that the drive was idle although requests were queued.
    waits: usize,
}

impl Outcome {
    /// Returns the lengths of the turns of the processes, without the first and the last turn.
    fn turns_ms(&self) -> Vec<u64> {
        let starts: Vec<Time> = (1..self.served.len())
            .filter(|at| self.served[*at].0 != self.served[*at - 1].0)
            .map(|at| self.served[at].1)
            .collect();
        let turns = starts.windows(2);
        turns
            .map(|turn| turn[1].saturating_since(turn[0]).as_nanos() / 1_000_000)
            .collect()
    }
}

/// Runs readers for two seconds.
fn run(config: AnticipatoryConfig, depth: usize, sequential: Nanos, readers: &[Reader]) -> Outcome {
    const SECTORS: u64 = 256;
    let end = at(2_000);
    let mut sched = Anticipatory::new(config);
    let mut readers = readers.to_vec();
    let mut due: Vec<(Time, usize)> = Vec::new();
    for (index, reader) in readers.iter().enumerate() {
        due.extend(vec![(at(1), index); reader.ahead]);
    }
    let mut free: Vec<u32> = (0..64).collect();
    // Reader of each request, by tag.
    let mut asked = vec![0; 64];
    let (mut drive, mut head, mut now) = (vec![], Lba::ZERO, at(1));
    let mut outcome = Outcome::default();
    while now < end {
        // A process that a completion wakes asks again after the next decision.
        while let Some(&(done, request)) = drive.first()
            && done <= now
        {
            drive.remove(0);
            sched.completed(now, &request);
            free.push(request.tag.0);
            let process = request.origin.process;
            outcome.served.push((process, now));
            let index = asked[request.tag.index()];
            due.push((now + readers[index].think, index));
        }
        let mut wake = None;
        loop {
            while drive.len() < depth {
                match sched.dispatch(now) {
                    Dispatch::Request(request) => {
                        let takes = match request.extent.start == head {
                            true => sequential,
                            false => Nanos::from_millis(12),
                        };
                        head = request.extent.end();
                        let starts = drive
                            .last()
                            .map_or(now, |(done, _): &(Time, Request)| *done);
                        drive.push((starts + takes, request));
                    }
                    Dispatch::IdleUntil(until) => {
                        wake = Some(until);
                        outcome.waits += usize::from(drive.is_empty());
                        break;
                    }
                    Dispatch::Empty => break,
                }
            }
            let process = |(_, request): &(Time, Request)| request.origin.process;
            let first = drive.first().map(process);
            outcome.mixed += usize::from(drive.iter().any(|d| Some(process(d)) != first));
            let Some(index) = due.iter().position(|(due, _)| *due <= now) else {
                break;
            };
            let (_, index) = due.remove(index);
            let reader = &mut readers[index];
            let tag = free.pop().expect("there are as many as requests");
            asked[tag as usize] = index;
            let request = Request::new(Tag(tag), Op::Read, Extent::at(reader.at, SECTORS), now);
            reader.at += SECTORS;
            sched.insert(now, of(reader.process, request));
            wake = None;
        }
        let events = due.iter().map(|(due, _)| *due);
        let events = events
            .chain(drive.first().map(|(done, _)| *done))
            .chain(wake);
        now = events.min().expect("the readers never stop");
    }
    outcome
}

/// Two readers, a tenth of a disk apart.
fn two(think: Nanos, ahead: usize) -> [Reader; 2] {
    [1, 2].map(|process| Reader {
        process,
        at: u64::from(process) * FAR,
        think,
        ahead,
    })
}

const THINK: Nanos = Nanos::from_micros(100);

/// Returns the turns of two readers. The first turns, with unknown processes, are left out.
fn turns(hz: u64, think: Nanos, ahead: usize) -> Vec<u64> {
    let readers = two(think, ahead);
    let turns = run(ticking(hz), 1, Nanos::from_millis(2), &readers).turns_ms();
    assert!(turns.len() > 7, "{turns:?}");
    turns[4..].to_vec()
}

#[test]
fn two_readers_take_turns_of_an_expiry() {
    // A request that came before the last check is always queued for each reader. It goes at every
    // check.
    for (hz, turn) in [(1_000, 125), (250, 124)] {
        for ms in turns(hz, THINK, 2) {
            assert!((turn..turn + 4).contains(&ms), "hz={hz}: {ms} ms");
        }
    }
    // With one request at a time, the other reader's request came in the tick of the last check. If
    // the next check is exactly one expiry later, the request has not expired, and the turn is twice
    // as long.
    let once_or_twice = |ms: u64| (125..129).contains(&ms) || (250..254).contains(&ms);
    let mixed = turns(1_000, THINK, 1);
    assert!(mixed.iter().all(|ms| once_or_twice(*ms)), "{mixed:?}");
    assert!(mixed.iter().any(|ms| *ms > 200) && mixed.iter().any(|ms| *ms < 200));
    // With ticks of 4 ms and requests of 2 ms the check is always exactly one expiry later.
    for ms in turns(250, Nanos::ZERO, 1) {
        assert!((248..252).contains(&ms), "{ms} ms");
    }
}

#[test]
fn a_wait_of_one_tick_is_cut_short_now_and_then() {
    // A reader thinks for a 40th of a tick, so about every 40th request comes after the current tick
    // and ends the turn. Here this is every 20th request, since the reader is in step with the
    // timer.
    for ms in turns(250, THINK, 1) {
        assert_eq!(ms, 52);
    }
}

#[test]
fn waiting_keeps_two_readers_sequential() {
    let throughput = |antic_expire| {
        let config = AnticipatoryConfig {
            antic_expire,
            ..ticking(1_000)
        };
        run(config, 1, Nanos::from_millis(2), &two(THINK, 1))
            .served
            .len()
    };
    // In 2 s: 952 requests of 2.1 ms at most, or 166 requests of 12 ms.
    let (waiting, not) = (throughput(DEFAULT.antic_expire), throughput(Nanos::ZERO));
    assert!(waiting > 850, "{waiting}");
    assert!(not < 170, "{not}");
}

#[test]
fn thinking_for_longer_than_the_wait_turns_waiting_off() {
    let waits = |think_ms| {
        let readers = two(Nanos::from_millis(think_ms), 1);
        let outcome = run(ticking(1_000), 1, Nanos::from_millis(2), &readers);
        (outcome.waits, outcome.served.len())
    };
    let (short, long) = (waits(3), waits(10));
    assert!(short.0 > 300, "{short:?}");
    // The scheduler waits only until the first think times are known.
    assert!(long.0 <= 6, "{long:?}");
}

#[test]
fn far_readers_are_never_in_the_drive_together() {
    for hz in [250, 1_000] {
        let outcome = run(ticking(hz), 4, Nanos::from_millis(2), &two(THINK, 2));
        assert!(outcome.served.len() > 500);
        // Exceptions are the first requests of each reader at 250 Hz, and requests served for their
        // age.
        let turns = outcome.turns_ms().len();
        assert!(
            outcome.mixed <= 4 * (turns + 4),
            "{} of {turns}",
            outcome.mixed
        );
        let mut near = two(THINK, 2);
        near[1].at = near[0].at + 4_000;
        let outcome = run(ticking(hz), 4, Nanos::from_millis(2), &near[..]);
        assert!(outcome.mixed > 100, "{}", outcome.mixed);
    }
}

#[test]
fn streams_of_one_process_are_not_waited_for() {
    let config = ticking(1_000);
    let known = run(config, 1, Nanos::from_millis(2), &two(THINK, 1));
    let mut readers = two(THINK, 1);
    for reader in &mut readers {
        reader.process = 0;
    }
    let hidden = run(config, 1, Nanos::from_millis(2), &readers);
    assert!(known.waits > 800 && known.served.len() > 850);
    // The other stream's request is always queued, 12 ms away.
    assert_eq!((hidden.waits, hidden.served.len()), (0, 166));
}
