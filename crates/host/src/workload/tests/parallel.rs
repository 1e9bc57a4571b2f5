//! Parallel programs: what their processes read and write.

use super::{builder, read_bytes, steps};
use crate::Step;
use crate::workload::{BtioSpec, IorSpec, S3aSimSpec};
use headtime_units::Bytes;

#[test]
fn ior_reads_each_part_in_order_between_two_checkpoints() {
    let spec = IorSpec {
        processes: 2,
        size: Bytes(128 << 10),
        in_step: false,
        checkpoint: Bytes(3 * (64 << 10)),
        ..IorSpec::default()
    };
    let mut builder = builder();
    spec.add(&mut builder, 1).expect("it fits");
    let steps = steps(&mut builder);
    let of = |process: usize| -> Vec<String> {
        let step = |step: &Step| match *step {
            Step::Barrier(_) => "meet".to_owned(),
            Step::Write { file, offset, len } => format!("w{} {offset} {len}", file.0),
            Step::Read { file, offset, len } => format!("r{} {offset} {len}", file.0),
            other => panic!("{other:?}"),
        };
        steps[process].1.iter().map(step).collect()
    };
    let first = ["meet", "w1 0 65536", "meet", "w1 131072 65536", "meet"];
    let reads = ["r0 0 32768", "r0 32768 32768"];
    let last = ["meet", "w2 0 65536", "meet", "w2 131072 65536"];
    assert_eq!(of(0), [&first[..], &reads, &last].concat());
    let first = ["meet", "w1 65536 65536", "meet", "meet"];
    let reads = ["r0 65536 32768", "r0 98304 32768"];
    let last = ["meet", "w2 65536 65536", "meet"];
    assert_eq!(of(1), [&first[..], &reads, &last].concat());
}

#[test]
fn ior_in_step_has_all_processes_meet_before_each_call_also_those_with_a_shorter_part() {
    let spec = IorSpec {
        processes: 2,
        size: Bytes((64 << 10) + 1),
        checkpoint: Bytes(0),
        ..IorSpec::default()
    };
    let mut builder = builder();
    spec.add(&mut builder, 1).expect("it fits");
    let all = steps(&mut builder);
    let meetings = |of: usize| {
        let steps = all[of].1.iter();
        steps
            .filter(|step| matches!(step, Step::Barrier(_)))
            .count()
    };
    assert_eq!((meetings(0), meetings(1)), (3, 3));
    assert_eq!(
        read_bytes(&all[0].1) + read_bytes(&all[1].1),
        (64 << 10) + 1
    );
}

#[test]
fn ior_without_checkpoints_only_reads() {
    let spec = IorSpec {
        checkpoint: Bytes(0),
        ..IorSpec::default()
    };
    let mut builder = builder();
    spec.add(&mut builder, 1).expect("it fits");
    assert_eq!(builder.files.len(), 1);
    let all: u64 = (steps(&mut builder).iter())
        .map(|(_, steps)| read_bytes(steps))
        .sum();
    assert_eq!(all, 2 << 30);
}

#[test]
fn btio_writes_each_point_of_each_dump_once_in_rows_of_a_cell() {
    for (processes, calls) in [(1, 64 * 64), (4, 2_048), (16, 1_024)] {
        let spec = BtioSpec {
            processes,
            dumps: 2,
            ..BtioSpec::default()
        };
        let mut builder = builder();
        spec.add(&mut builder, 1).expect("it fits");
        let mut rows = Vec::new();
        for (_, steps) in steps(&mut builder) {
            let own: Vec<(u64, u64)> = (steps.iter())
                .filter_map(|step| match step {
                    Step::Write { offset, len, .. } => Some((*offset, *len)),
                    _ => None,
                })
                .collect();
            assert_eq!(own.len(), 2 * calls, "{processes}");
            rows.extend(own);
        }
        rows.sort_unstable();
        let mut end = 0;
        for (offset, len) in rows {
            assert_eq!(offset, end);
            end += len;
        }
        assert_eq!(end, 2 * 64 * 64 * 64 * 40);
    }
    let odd = BtioSpec {
        processes: 5,
        ..BtioSpec::default()
    };
    let error = odd.add(&mut builder(), 1).unwrap_err().to_string();
    assert!(error.contains("a square number"), "{error}");
}

#[test]
fn s3asim_reads_and_writes_what_it_is_to_and_the_results_lie_in_a_row() {
    let spec = S3aSimSpec::default();
    let mut builder = builder();
    spec.add(&mut builder, 3, 1).expect("it fits");
    let all = steps(&mut builder);
    let (mut read, mut written) = (0, Vec::new());
    for (process, (_, steps)) in all.iter().enumerate() {
        let meetings = steps.iter().filter(|step| matches!(step, Step::Barrier(_)));
        assert_eq!(meetings.count(), 12);
        assert!(process > 0 || steps.len() == 12, "the master has no I/O");
        read += read_bytes(steps);
        for step in steps {
            match *step {
                Step::Read { offset, len, .. } => assert!(offset + len <= 2_000_000_000),
                Step::Write { offset, len, .. } => written.push((offset, len)),
                _ => {}
            }
        }
    }
    assert!(read.abs_diff(368_000_000) < 2_000, "{read}");
    written.sort_unstable();
    assert_eq!(written.len(), 12 * 128);
    let mut end = 0;
    for (offset, len) in written {
        assert_eq!(offset, end);
        end += len;
    }
    assert!(end <= 184_000_000 && end > 183_990_000, "{end}");
}
