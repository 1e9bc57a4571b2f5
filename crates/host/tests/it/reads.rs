//! Buffered and direct reads.

use crate::disk::{builder, file, process, run, sequential};
use headtime_host::Step;
use headtime_units::{Nanos, Time};

const MS: Nanos = Nanos::from_millis(1);

#[test]
fn a_reader_keeps_two_windows_outstanding() {
    let mut builder = builder(|_| {});
    let data = file(&mut builder, 1000, 1024);
    builder.add_process(process(sequential(data, 1024, 1, Nanos::ZERO)));
    let mut host = builder.build(1).unwrap();
    let ran = run(&mut host, MS);
    let sizes: Vec<u64> = ran.served.iter().map(|served| served.pages()).collect();
    assert_eq!(sizes[..6], [4, 8, 16, 32, 32, 32]);
    assert_eq!(sizes.iter().sum::<u64>(), 1024);
    // In the steady state the successor of a window is there when it completes.
    assert!(
        ran.depths[4..ran.depths.len() - 1]
            .iter()
            .all(|depth| *depth == 2)
    );
    // Copying hides behind the disk: 34 requests and the copies of the last two windows.
    let outcome = &host.outcome()[0];
    assert_eq!(outcome.bytes_read, 4 << 20);
    assert_eq!(outcome.calls, 1024);
    let ended = outcome.ended.unwrap().as_nanos() / 1000;
    let requests = ran.served.len() as u64;
    assert!(
        (requests * 1000..requests * 1000 + 100).contains(&ended),
        "{ended} us"
    );
}

#[test]
fn a_reader_sleeps_until_the_whole_request_is_in() {
    let mut builder = builder(|spec| spec.copy_per_page = Nanos::ZERO);
    let data = file(&mut builder, 1000, 64);
    let read = |page: u64, len| Step::Read {
        file: data,
        offset: page * 4096,
        len,
    };
    builder.add_process(process([read(0, 1), read(1, 1), read(5, 1)]));
    let mut host = builder.build(1).unwrap();
    let ran = run(&mut host, MS);
    // Touching page 1 asks for 8 more, touching one of them for 16 more.
    let asked: Vec<(u64, u64)> = ran
        .served
        .iter()
        .map(|s| (s.arrival_us(), s.pages()))
        .collect();
    assert_eq!(asked, [(0, 4), (1000, 8)]);
    assert_eq!(host.outcome()[0].ended, Some(Time::ZERO + MS * 2));
    assert_eq!(ran.unplugged, [Time::ZERO, Time::ZERO + MS]);
}
