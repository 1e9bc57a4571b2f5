//! Detection of a queueing drive: the first assumption, the samples, and the consequences.

use super::*;

#[test]
fn a_new_one_believes_of_the_drive_what_its_device_would_have_shown() {
    use crate::{Knowledge, NoPositioning, Spec};
    // Options, the number of requests that the device takes at once plus one committed ahead, and
    // the assumption.
    for (options, handed_out_max, queues) in [
        ("", None, true),
        ("", Some(2), false),
        ("", Some(4), false),
        ("", Some(5), true),
        ("", Some(32), true),
        // A queue without competitors has at most four quanta in the drive.
        (":quantum=1", Some(32), false),
        (":quantum=2", Some(32), true),
    ] {
        let spec: Spec = std::format!("cfq{options}").parse().expect("a scheduler");
        let config = CfqConfig {
            quantum: match options {
                ":quantum=1" => 1,
                ":quantum=2" => 2,
                _ => 4,
            },
            ..CfqConfig::DEFAULT
        };
        let mut sched = Cfq::on(handed_out_max, config);
        assert_eq!(sched.drive.queues, queues, "{spec} {handed_out_max:?}");
        sched.drive.queues = !queues;
        sched.drain();
        assert_eq!(
            sched.drive.queues, queues,
            "{spec} {handed_out_max:?}, drained"
        );
        // The built scheduler makes the same assumption: it waits for a seeking process only if
        // the drive does not queue.
        let knowledge = Knowledge {
            handed_out_max,
            ..Knowledge::<NoPositioning>::default()
        };
        let mut built = spec.build(knowledge).expect("it needs nothing");
        seek(built.as_mut());
        let waits = matches!(built.dispatch(at(41)), Dispatch::IdleUntil(_));
        assert_eq!(waits, !queues, "{spec} {handed_out_max:?}");
    }
}

#[test]
fn who_seeks_is_not_waited_for_if_the_drive_queues() {
    let mut sched = seeking(fine(), true);
    assert_eq!(next(&mut sched, at(41)).map(|r| r.tag), Some(Tag(1)));
}

#[test]
fn whether_the_drive_queues_is_seen_in_51_completions() {
    let mut sched = fine();
    assert!(sched.drive.queues, "assumed at first");
    // Completes requests of one origin, with `queued` requests left at each completion.
    let complete = |sched: &mut Cfq, depth: u32, queued: u32, count: u32| {
        for tag in 0..depth + queued {
            sched.insert(at(0), read(tag, 1_000 * u64::from(tag), 0));
        }
        let mut drive = VecDeque::new();
        for _ in 0..count {
            while drive.len() < depth as usize {
                drive.push_back(next(sched, at(0)).expect("there is room"));
            }
            let request: Request = drive.pop_front().expect("there is one");
            sched.completed(at(0), &request);
            sched.insert(at(0), request);
        }
        for request in drive {
            sched.completed(at(0), &request);
        }
        sched.sweeps.pool.drain();
        let drive = sched.drive;
        *sched = fine();
        sched.drive = drive;
        sched.drive.queues
    };
    assert!(complete(&mut sched, 1, 4, 500), "too few to tell");
    assert!(complete(&mut sched, 1, 6, 50), "one less than it takes");
    assert!(!complete(&mut sched, 1, 6, 1));
    assert!(!complete(&mut sched, 4, 6, 200));
    assert!(complete(&mut sched, 5, 6, 60));
}

#[test]
fn a_drive_that_queues_is_taken_for_one_that_does_not() {
    // While a sequential reader has its slice, one request is in the drive and eight are queued.
    let mut programs = vec![Program::reader(0, 0)];
    programs.extend((1..9).map(|p| Program {
        stride: 7_000_000,
        ..Program::reader(p, 1_000_000_000 * u64::from(p))
    }));
    let mut sched = fine();
    let given = run(&mut sched, &programs, 31, Nanos::from_secs(4));
    assert!(!sched.drive.queues);
    // After the detection, seeking processes have slices too.
    let turns = turns(&given);
    let late = turns.iter().filter(|(_, from, _)| *from > at(1_000));
    let counts: Vec<usize> = late.map(|(_, _, count)| *count).collect();
    assert!(counts.len() > 20);
    assert!(
        counts[..counts.len() - 1]
            .iter()
            .all(|count| (48..=52).contains(count)),
        "{counts:?}"
    );
}
