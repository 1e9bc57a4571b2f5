//! Foretold requests arrive as foretold.

use crate::disk::{Ran, builder, file, process, run, sequential};
use headtime_host::{Host, Step};
use headtime_sched::Op;
use headtime_units::{Lba, Nanos, Time};
use headtime_workload::Source;

const MS: Nanos = Nanos::from_millis(1);

/// Runs a host. Returns the number of requests that were foretold, and the number of all requests.
fn told(host: &mut Host) -> (usize, usize, Ran) {
    host.tell_ahead(true);
    let ran = run(host, MS);
    let mut known = 0;
    for (when, told) in &ran.foretold {
        assert!(told.at >= *when, "{told:?} was told at {when}");
        assert!(
            ran.has_served(told),
            "{told:?}, told at {when}, did not come"
        );
        known += 1;
    }
    (known, ran.served.len(), ran)
}

#[test]
fn of_sequential_readers_every_request() {
    for think in [0, 40, 200] {
        let mut builder = builder(|_| {});
        for number in 0..3 {
            let data = file(&mut builder, number * 100_000, 512);
            let think = Nanos::from_micros(think);
            builder.add_process(process(sequential(data, 512, 1, think)));
        }
        let mut host = builder.build(1).unwrap();
        let (known, all, ran) = told(&mut host);
        // The first request runs before the world asks for foretold requests.
        assert_eq!(known, all - 1, "thinking {think} us");
        // Thinkers are told of long before.
        let before: Vec<Nanos> = ran
            .foretold
            .iter()
            .map(|(when, told)| told.at - *when)
            .collect();
        assert!(
            before
                .iter()
                .any(|span| *span > Nanos::from_micros(think * 8))
        );
    }
}

#[test]
fn writes_and_direct_calls_are_foretold_too() {
    let mut builder = builder(|_| {});
    let data = file(&mut builder, 1000, 512);
    let pause = Step::Think(MS * 3);
    let at = |page: u64| Step::Read {
        file: data,
        offset: page * 4096,
        len: 4096,
    };
    let part = Step::Write {
        file: data,
        offset: 5 * 4096 + 7,
        len: 100,
    };
    let direct = Step::Direct {
        op: Op::Read,
        file: data,
        offset: 1 << 20,
        len: 2 << 20,
    };
    let block = Step::ReadBlock(Lba::new(900_000));
    let steps = [
        at(300),
        pause,
        part,
        pause,
        block,
        pause,
        block,
        at(300),
        direct,
        pause,
        at(400),
    ];
    builder.add_process(process(steps));
    let mut host = builder.build(1).unwrap();
    let (known, all, ran) = told(&mut host);
    // The end of the file cuts the direct read: 1 MiB, two requests. The first is foretold.
    assert_eq!((known, all), (5 - 1, 6));
    assert_eq!(
        ran.foretold[0].1.at,
        Time::ZERO + MS * 4 + Nanos::from_nanos(1200)
    );
}

#[test]
fn of_a_writer_that_had_to_read() {
    let mut builder = builder(|_| {});
    let data = file(&mut builder, 1000, 512);
    let part = |page: u64| Step::Write {
        file: data,
        offset: page * 4096 + 7,
        len: 5000,
    };
    let forgotten = file(&mut builder, 10_000, 4);
    let all = Step::Write {
        file: forgotten,
        offset: 0,
        len: 4 * 4096,
    };
    let read = Step::Read {
        file: forgotten,
        offset: 0,
        len: 4 * 4096,
    };
    // Pages that a write has filled can be read without the disk.
    let steps = [
        part(7),
        Step::Forget(forgotten),
        all,
        read,
        part(90),
        part(300),
    ];
    builder.add_process(process(steps));
    let mut host = builder.build(1).unwrap();
    let (known, all, _) = told(&mut host);
    // Each write changes parts of two pages: both are read before.
    assert_eq!((known, all), (5, 6));
}

#[test]
fn nothing_changes_by_being_told() {
    let build = || {
        let mut builder = builder(|spec| spec.page_cache.0 = 1 << 20);
        for number in 0..3 {
            let data = file(&mut builder, number * 100_000, 512);
            let think = Nanos::from_micros(30 * number);
            builder.add_process(process(sequential(data, 512, 3, think)));
        }
        builder.build(1).unwrap()
    };
    let (mut one, mut other) = (build(), build());
    other.tell_ahead(true);
    assert_eq!(run(&mut one, MS).served, run(&mut other, MS).served);
    assert_eq!(one.outcome(), other.outcome());
}
