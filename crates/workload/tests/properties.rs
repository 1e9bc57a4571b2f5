//! Laws that hold for every trace, and for every text.

use headtime_sched::{Flags, Op};
use headtime_units::{Extent, Nanos, Sectors, Time};
use headtime_workload::{
    ADDRESS_END, ClosedPerProcess, ClosedReplay, Fit, Fitter, Format, OpenReplay, ReadOptions,
    Script, Source, Speed, Start, Trace, TraceRequest,
};
use proptest::prelude::*;
use std::sync::Arc;

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::Read),
        4 => Just(Op::Write),
        1 => Just(Op::Flush),
        1 => Just(Op::Discard),
    ]
}

prop_compose! {
    fn request(times: bool)(
        arrival in 0..1_u64 << 50,
        response in prop::option::of(0..1_u64 << 40),
        timed in prop::bool::weighted(if times { 1.0 } else { 0.8 }),
        device in 0..5_u32,
        op in op(),
        start in prop_oneof![0..5_000_u64, 0..ADDRESS_END - 5_000],
        len in 1..5_000_u64,
        process in prop::option::of(0..4_u32),
        flags in 0..8_u8,
    ) -> TraceRequest {
        TraceRequest {
            arrival: timed.then(|| Time::from_nanos(arrival)),
            completion: response
                .filter(|_| timed)
                .map(|response| Time::from_nanos(arrival + response)),
            device,
            op,
            extent: if op == Op::Flush { Extent::default() } else { Extent::at(start, len) },
            process,
            flags: Flags::from_bits(flags).expect("below 8"),
        }
    }
}

fn trace(times: bool) -> impl Strategy<Value = Trace> {
    prop::collection::vec(request(times), 1..80).prop_map(Trace::new)
}

/// Serves a source on a disk that takes `service` for each request, one at a time, the newest first
/// (to upset the order). Returns cookies in the order in which they were made.
fn drain(source: &mut dyn Source, service: Nanos) -> Vec<u64> {
    let (mut now, mut made, mut waiting) = (Time::ZERO, Vec::new(), Vec::new());
    loop {
        while let Some(request) = source.poll(now) {
            assert!(request.arrival <= now);
            made.push(request.cookie);
            waiting.push(request.cookie);
        }
        assert!(source.next_arrival().is_none_or(|next| next > now));
        if let Some(cookie) = waiting.pop() {
            now += service;
            source.completed(now, cookie);
        } else if let Some(next) = source.next_arrival() {
            now = next;
        } else {
            assert!(source.done());
            return made;
        }
        assert!(!source.done() || waiting.is_empty());
    }
}

fn script(trace: &Trace) -> Arc<Script> {
    let fitter = Fitter::new(Sectors::new(10_000), 512, Fit::Wrap);
    Arc::new(Script::new(trace, &[], &fitter).expect("wrapped"))
}

proptest! {
    #[test]
    fn a_trace_written_as_csv_is_read_back_whole(
        trace in trace(false),
        names in prop::collection::vec((0..4_u32, "[ -~]{0,20}|[ab,\"; ]{0,5}|\\PC{0,30}|<\\.\\.\\.>"), 0..9),
    ) {
        let trace = trace.with_process_names(names);
        let mut text = Vec::new();
        let written = trace.write_csv(&mut text).unwrap();
        prop_assert_eq!(written.requests, trace.requests.len() as u64);
        let again = Trace::read("t", &text[..], &ReadOptions::default()).unwrap();
        prop_assert_eq!(again.notes.format, Format::Csv);
        for process in trace.requests.iter().filter_map(|request| request.process) {
            prop_assert_eq!(again.process_name(process), trace.process_name(process));
        }
        prop_assert_eq!(again.requests, trace.requests);
    }

    #[test]
    fn disksim_keeps_what_it_has_a_place_for(trace in trace(true)) {
        let mut text = Vec::new();
        let written = trace.write_disksim(&mut text).unwrap();
        let kept: Vec<TraceRequest> = trace
            .requests
            .iter()
            .filter(|request| matches!(request.op, Op::Read | Op::Write))
            .map(|request| TraceRequest {
                completion: None,
                process: None,
                flags: Flags::NONE,
                ..*request
            })
            .collect();
        prop_assert_eq!(written.requests, kept.len() as u64);
        prop_assert_eq!(written.left_out as usize, trace.requests.len() - kept.len());
        if !kept.is_empty() {
            let again = Trace::read("t", &text[..], &ReadOptions::default()).unwrap();
            prop_assert_eq!(again.requests, kept);
        }
    }

    #[test]
    fn requests_of_a_trace_are_in_order_of_arrival(trace in trace(false)) {
        let arrivals: Vec<Time> = trace.requests.iter().filter_map(|r| r.arrival).collect();
        prop_assert!(arrivals.is_sorted());
        let info = trace.info();
        prop_assert_eq!(info.total.requests(), trace.requests.len() as u64);
        let by_device: u64 = info.devices.iter().map(|device| device.figures.requests()).sum();
        prop_assert_eq!(by_device, info.total.requests());
        let by_size: u64 = info.sizes.iter().map(|bin| bin.requests).sum();
        prop_assert_eq!(by_size, info.total.reads + info.total.writes);
    }

    #[test]
    fn every_replay_makes_every_request_once(
        trace in trace(true),
        depth in 1..10_u32,
        service in 1..1_u64 << 42,
        speed in 0.01..100.0,
    ) {
        let script = script(&trace);
        let service = Nanos::from_nanos(service);
        let in_order: Vec<u64> = (0..trace.requests.len() as u64).collect();
        let mut closed = ClosedReplay::new(script.clone(), depth);
        prop_assert_eq!(&drain(&mut closed, service), &in_order);
        let speed = Speed::new(speed).unwrap();
        let mut open = OpenReplay::new(script.clone(), speed, Start::AtOnce).unwrap();
        prop_assert_eq!(&drain(&mut open, service), &in_order);

        let complete = trace.requests.iter().all(|r| r.completion.is_some() && r.process.is_some());
        prop_assert_eq!(ClosedPerProcess::new(script.clone()).is_ok(), complete);
        let mut whole = trace;
        for request in &mut whole.requests {
            request.process.get_or_insert(9);
            request.completion = request.completion.or(request.arrival);
        }
        let mut per_process = ClosedPerProcess::new(self::script(&whole)).unwrap();
        let mut made = drain(&mut per_process, service);
        made.sort_unstable();
        prop_assert_eq!(made, in_order);
    }

    /// Served exactly as recorded, a replay per process repeats the recorded arrivals.
    #[test]
    fn the_recorded_disk_gives_the_recorded_arrivals(trace in trace(true)) {
        let mut whole = trace;
        for request in &mut whole.requests {
            request.process.get_or_insert(9);
            request.completion = request.completion.or(request.arrival);
        }
        let script = script(&whole);
        let zero = script.requests()[0].arrival.unwrap();
        let recorded = |time: Time| Time::ZERO + (time - zero);
        let mut source = ClosedPerProcess::new(script.clone()).unwrap();
        let mut flying: Vec<(Time, u64)> = Vec::new();
        let mut made = 0;
        loop {
            let completion = flying.iter().min().copied();
            match (source.next_arrival(), completion) {
                (None, None) => break,
                // A completion at the same instant comes first: somebody may wait for it.
                (arrival, Some((end, cookie))) if arrival.is_none_or(|next| end <= next) => {
                    flying.retain(|other| *other != (end, cookie));
                    source.completed(end, cookie);
                }
                (Some(next), _) => {
                    let request = source.poll(next).unwrap();
                    let original = script.requests()[request.cookie as usize];
                    prop_assert_eq!(request.arrival, recorded(original.arrival.unwrap()));
                    flying.push((recorded(original.completion.unwrap()), request.cookie));
                    made += 1;
                }
                (None, Some(_)) => unreachable!(),
            }
        }
        prop_assert_eq!(made, script.requests().len());
    }

    #[test]
    fn no_text_makes_a_reader_panic(
        text in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..300),
            "([0-9a-zA-Z,.+-]{0,9}[ ,;\t\n]){0,60}".prop_map(String::into_bytes),
            "( a-[0-9] \\[0\\] [0-9]\\.[0-9]: block_(bio_queue|rq_(issue|complete)): 8,[0-9] [FWRDSN]{1,3} (8 )?(\\(\\) )?[0-9]{1,3} \\+ [0-9]{1,2} (\\[0\\])?\n){0,20}"
                .prop_map(String::into_bytes),
            "fio version [23] iolog\n([0-9]{0,3} ?[ab] (read|write|sync|trim|wait|add) [0-9]{1,9} [0-9]{0,5}\n){0,20}"
                .prop_map(String::into_bytes),
        ],
        format in prop::option::of(prop::sample::select(vec![
            Format::DiskSim, Format::Msr, Format::Blkparse, Format::Csv, Format::Ftrace, Format::Perf,
            Format::Iolog,
        ])),
        columns in prop::option::of(prop::sample::select(vec![
            "op=1,address=2:bytes,size=3:4KiB",
            "time=1:us,response=2:s,op=3:read1,address=4:sectors,size=5:bytes,device=6:name,process=7",
            "time=2:100ns,completion=1:ns,op=3,address=a:sectors,size=5:bytes,device=6,flags=9",
        ])),
    ) {
        let options = ReadOptions {
            columns: columns
                .filter(|_| format == Some(Format::Csv))
                .map(|columns| columns.parse().unwrap()),
            format,
            ..ReadOptions::default()
        };
        if let Ok(trace) = Trace::read("t", &text[..], &options) {
            prop_assert!(!trace.requests.is_empty());
            let _ = trace.info();
        }
    }
}
