//! Programs that read in step, and a reader in the background.

use super::{DISK, builder, steps};
use crate::workload::{BackupSpec, BenchmarkSpec, FullSeqSpec, SeqRandSpec};
use crate::{ProcessSpec, Step};
use headtime_units::{Bytes, Nanos, Time};
use headtime_workload::Source;

const BLOCK: u64 = 64 << 10;

/// Blocks of the calls of each process; a meeting is before each.
fn calls(spec: &BenchmarkSpec) -> Vec<Vec<Option<u64>>> {
    let mut builder = builder();
    spec.add(&mut builder, 1, 1).expect("it fits");
    let calls = |(_, steps): (u32, Vec<Step>)| {
        let mut calls = Vec::new();
        for step in steps {
            match step {
                Step::Barrier(_) => calls.push(None),
                Step::Read { offset, len, .. } if len == BLOCK && offset % BLOCK == 0 => {
                    let met = calls.last_mut().expect("the processes met");
                    assert_eq!(
                        met.replace(offset / BLOCK),
                        None,
                        "one call after a meeting"
                    );
                }
                step => panic!("{step:?}"),
            }
        }
        calls
    };
    steps(&mut builder).into_iter().map(calls).collect()
}

#[test]
fn full_seq_reads_block_i_plus_jp_at_call_j_and_all_come_to_the_last_call() {
    let spec = BenchmarkSpec::FullSeq(FullSeqSpec {
        processes: 3,
        size: Bytes(8 * BLOCK),
        ..FullSeqSpec::default()
    });
    let some = |blocks: [u64; 3]| blocks.map(Some).to_vec();
    let last = vec![Some(2), Some(5), None];
    assert_eq!(calls(&spec), [some([0, 3, 6]), some([1, 4, 7]), last]);
}

#[test]
fn seq_rand_reads_every_second_phase_at_random() {
    let spec = BenchmarkSpec::SeqRand(SeqRandSpec {
        processes: 4,
        size: Bytes(400 * BLOCK),
        phase: Bytes(100 * BLOCK),
        ..SeqRandSpec::default()
    });
    let calls = calls(&spec);
    let mut in_place = [0; 4];
    for (process, calls) in calls.iter().enumerate() {
        assert_eq!(calls.len(), 100);
        for (nth, block) in calls.iter().enumerate() {
            let number = nth * 4 + process;
            let block = block.expect("each has as many calls") as usize;
            assert!(block < 400);
            in_place[number / 100] += u32::from(block == number);
        }
    }
    assert_eq!((in_place[0], in_place[2]), (100, 100));
    assert!(in_place[1] < 5 && in_place[3] < 5, "{in_place:?}");
}

#[test]
fn a_phase_has_a_block_at_least() {
    let spec = SeqRandSpec {
        phase: Bytes(BLOCK - 1),
        ..SeqRandSpec::default()
    };
    let error = spec.add(&mut builder(), 1, 1).unwrap_err();
    assert!(error.to_string().contains("phase"), "{error}");
}

#[test]
fn a_backup_reads_its_file_again_from_the_disk_until_the_others_have_ended() {
    let mut builder = builder();
    let backup = BackupSpec {
        size: Bytes(1 << 20),
        ..BackupSpec::default()
    };
    let next = backup.add(&mut builder, 1).expect("it fits");
    let think = Step::Think(Nanos::from_millis(100));
    let mut other = [think, Step::Exit].into_iter();
    builder.add_process(ProcessSpec {
        program: next,
        behaviour: Box::new(move || other.next().expect("not asked after the end")),
        served_by: None,
        start: Time::ZERO,
    });
    let mut host = builder.build(1).expect("it is allowed");
    let (mut now, mut sectors) = (Time::ZERO, 0);
    while !host.done() {
        while let Some(request) = host.poll(now) {
            assert!(request.extent.end().get() <= DISK.capacity.get());
            sectors += request.extent.len.get();
            now += Nanos::from_millis(1);
            host.completed(now, request.cookie);
        }
        host.unplug();
        now = host.next_arrival().map_or(now, |at| at.max(now));
    }
    let outcome = host.outcome();
    let [backup, other] = &outcome[..] else {
        panic!("{outcome:?}");
    };
    assert!(backup.ended >= other.ended && other.ended.is_some());
    // Eight requests of 128 KiB are a file.
    assert!(backup.bytes_read > 5 << 20, "{}", backup.bytes_read);
    assert!(sectors * 512 >= backup.bytes_read);
}
