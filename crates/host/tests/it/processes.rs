//! Barriers, servers, and who is who.

use crate::disk::{builder, file, process, run};
use headtime_host::{FileId, ProcessSpec, Step};
use headtime_sched::Class;
use headtime_units::{Bytes, Nanos, Time};

const MS: Nanos = Nanos::from_millis(1);

fn at(micros: u64) -> Time {
    Time::ZERO + Nanos::from_micros(micros)
}

fn read(file: FileId, page: u64) -> Step {
    Step::Read {
        file,
        offset: page * 4096,
        len: 4096,
    }
}

#[test]
fn members_of_a_barrier_go_on_together() {
    let mut builder = builder(|_| {});
    let barrier = builder.add_barrier(3);
    let think = |micros| Step::Think(Nanos::from_micros(micros));
    // Twice: it can be used again at once.
    for (first, second) in [(100, 10), (50, 2000), (300, 700)] {
        let steps = [
            think(first),
            Step::Barrier(barrier),
            think(second),
            Step::Barrier(barrier),
        ];
        builder.add_process(process(steps));
    }
    // Not a member.
    builder.add_process(process([think(5000)]));
    let mut host = builder.build(1).unwrap();
    run(&mut host, MS);
    let ended: Vec<_> = host.outcome()[0]
        .processes
        .iter()
        .map(|p| p.ended.unwrap())
        .collect();
    assert_eq!(ended, [at(2300), at(2300), at(2300), at(5000)]);
}

#[test]
fn a_process_asks_in_the_class_it_chose_last_and_nobody_else_does() {
    let mut builder = builder(|spec| spec.read_ahead = Bytes(0));
    let file = file(&mut builder, 0, 100);
    let steps = [
        read(file, 10),
        Step::Ask(Class::REAL_TIME),
        read(file, 20),
        Step::Ask(Class::IDLE),
        read(file, 30),
    ];
    builder.set_class(Class::IDLE);
    builder.add_process(process(steps));
    builder.set_class(Class::BEST_EFFORT);
    builder.add_process(process([read(file, 50), read(file, 60)]));
    let mut host = builder.build(1).unwrap();
    let ran = run(&mut host, MS);
    let mut classes: Vec<(u64, Class)> = ran
        .served
        .iter()
        .map(|served| (served.request.extent.start.get() / 8, served.request.class))
        .collect();
    classes.sort_unstable();
    let (high, usual, low) = (Class::REAL_TIME, Class::BEST_EFFORT, Class::IDLE);
    let first = classes[0].0 - 10;
    let expected = [(10, low), (20, high), (30, low), (50, usual), (60, usual)];
    assert_eq!(classes, expected.map(|(page, class)| (first + page, class)));
    let calls: Vec<u64> = host.outcome()[0]
        .processes
        .iter()
        .map(|p| p.calls)
        .collect();
    assert_eq!(calls, [3, 2], "to choose a class is no call");
}

#[test]
fn processes_start_at_their_times_and_count_for_their_programs() {
    let mut builder = builder(|_| {});
    for (program, start) in [(7, 500), (3, 100), (7, 200)] {
        let mut one = process([Step::Think(MS)]);
        one.program = program;
        one.start = at(start);
        builder.add_process(one);
    }
    let mut host = builder.build(1).unwrap();
    let before = host.outcome();
    assert_eq!((before[1].started, before[1].ended), (at(200), None));
    run(&mut host, MS);
    let outcome = host.outcome();
    assert_eq!(outcome.len(), 2);
    let of = |index: usize| {
        (
            outcome[index].program,
            outcome[index].started,
            outcome[index].ended,
        )
    };
    assert_eq!(of(0), (3, at(100), Some(at(1100))));
    assert_eq!(of(1), (7, at(200), Some(at(1500))));
    assert_eq!(outcome[1].processes[1].process, 3);
}

/// Clients that read random pages of a file of their own, through a server.
fn clients(builder: &mut headtime_host::HostBuilder, workers: u32, clients: u64) {
    let pool = builder.add_pool(workers);
    for number in 0..clients {
        let data = file(builder, number * 1_000_000, 10_000);
        let steps = (1..40).map(move |step| read(data, step * 211));
        builder.add_process(ProcessSpec {
            program: number as u32 + 1,
            served_by: Some(pool),
            ..process(steps)
        });
    }
}

#[test]
fn workers_of_a_server_make_its_requests() {
    let mut builder = builder(|_| {});
    clients(&mut builder, 8, 4);
    let mut host = builder.build(1).unwrap();
    let ran = run(&mut host, MS);
    // Workers are numbered after the four clients. All workers serve each program.
    for program in 1..=4 {
        let mut workers: Vec<u32> = ran
            .served
            .iter()
            .filter(|served| served.request.origin.program == program)
            .map(|served| served.request.origin.process)
            .collect();
        assert_eq!(workers.len(), 39);
        workers.sort_unstable();
        workers.dedup();
        assert_eq!(workers, [5, 6, 7, 8, 9, 10, 11, 12]);
    }
    assert!(
        host.outcome()
            .iter()
            .all(|program| program.bytes_read == 39 * 4096)
    );
}

#[test]
fn clients_wait_for_a_worker() {
    let mut builder = builder(|_| {});
    clients(&mut builder, 2, 5);
    let mut host = builder.build(1).unwrap();
    let ran = run(&mut host, MS);
    assert_eq!(ran.served.len(), 5 * 39);
    assert_eq!(
        ran.depths.iter().max(),
        Some(&2),
        "two workers, two requests"
    );
    // Nobody is passed over: all five get on alike.
    for round in ran.served[20..100].windows(5) {
        let mut programs: Vec<u16> = round.iter().map(|s| s.request.origin.program).collect();
        programs.sort_unstable();
        assert_eq!(programs, [1, 2, 3, 4, 5]);
    }
}

#[test]
fn the_seed_decides_who_serves() {
    let ran = |seed| {
        let mut builder = builder(|_| {});
        clients(&mut builder, 8, 4);
        run(&mut builder.build(seed).unwrap(), MS).served
    };
    assert_eq!(ran(1), ran(1));
    assert_ne!(ran(1), ran(2));
}
