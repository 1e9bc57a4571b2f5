//! The questions.

use crate::rig::{Rig, Subject, first_bytes};
use headtime_engine::{DriveTag, RequestId};
use headtime_sched::{Flags, Op};
use headtime_serve::device::{Aborted, Control, ControlError, Part};
use headtime_serve::request::Data;
use headtime_units::{Extent, Nanos, Sectors};
use headtime_workload::Random;

pub fn run(subject: Subject) {
    geometry(&subject);
    everything_completes_once(&subject);
    parts_come_back_as_they_were(&subject);
    flushes_and_forced_unit_access(&subject);
    an_abort_says_what_became_of_it(&subject);
    control_answers(&subject);
    if !subject.forgets {
        what_is_written_is_read(&subject);
        zeroes_and_discards(&subject);
        allocation_covers_what_is_written(&subject);
        agrees_with_a_vector(&subject);
    }
}

fn geometry(subject: &Subject) {
    let rig = Rig::new(subject);
    let geometry = rig.device.geometry();
    assert!(geometry.capacity.get() > 0);
    assert!(geometry.sector_bytes.is_power_of_two());
    assert!((512..=4096).contains(&geometry.sector_bytes));
    assert!((1..=256).contains(&geometry.depth));
    assert_eq!(geometry, rig.device.geometry());
    assert_eq!(rig.device.abandoned(), 0);
    assert_eq!(rig.device.next_event(), None);
}

fn everything_completes_once(subject: &Subject) {
    let mut rig = Rig::new(subject);
    let depth = rig.device.geometry().depth as usize;
    let room = rig.device.geometry().capacity.get();
    let mut random = Random::new(11, 0, 0);
    let (mut submitted, mut back) = (0u64, vec![0; 600]);
    while submitted < 600 {
        while rig.in_flight.len() < depth && submitted < 600 {
            let (start, len) = (random.below(room - 16), 1 + random.below(16));
            let op = match random.below(2) {
                0 => Op::Read,
                _ => Op::Write,
            };
            if !rig.may_go(op, Extent::at(start, len)) {
                break;
            }
            let part = rig.part(submitted, start, len, 1);
            rig.submit(op, Flags::NONE, vec![part]);
            submitted += 1;
        }
        let done = rig.next();
        assert_eq!(done.result, Ok(()));
        back[place(&done.parts[0])] += 1;
    }
    for done in rig.drain() {
        back[place(&done.parts[0])] += 1;
    }
    assert!(back.iter().all(|times| *times == 1));
    assert!(rig.poll().is_none());
}

fn place(part: &Part) -> usize {
    match part.id {
        RequestId::Client(id) => id as usize,
        RequestId::Background(_) => unreachable!("nothing runs in the background"),
    }
}

fn parts_come_back_as_they_were(subject: &Subject) {
    let mut rig = Rig::new(subject);
    for op in [Op::Write, Op::Read] {
        let lens = [1, 7, 128, 3];
        let (mut parts, mut at) = (Vec::new(), 5);
        for (index, len) in lens.into_iter().enumerate() {
            parts.push(rig.part(100 + index as u64, at, len, 1 + index as u8));
            at += len;
        }
        let addresses: Vec<_> = parts.iter().map(address).collect();
        let done = rig.one(op, Flags::NONE, parts);
        assert_eq!(done.result, Ok(()));
        let ids: Vec<_> = done.parts.iter().map(|part| part.id).collect();
        assert_eq!(ids, [100, 101, 102, 103].map(RequestId::Client));
        let back: Vec<_> = done.parts.iter().map(address).collect();
        assert_eq!(addresses, back);
        if !subject.forgets {
            let bytes = rig.sector_bytes() as usize;
            for (index, part) in done.parts.iter().enumerate() {
                let wanted = vec![1 + index as u8; part.extent.len.get() as usize];
                assert_eq!(first_bytes(part, bytes), wanted);
            }
        }
    }
}

fn address(part: &Part) -> (Extent, *const u8, usize) {
    let Data::Buffer(buffer) = &part.data else {
        panic!("a part has lost its buffer");
    };
    (part.extent, buffer.as_ptr(), buffer.len())
}

fn flushes_and_forced_unit_access(subject: &Subject) {
    let mut rig = Rig::new(subject);
    let flush = |rig: &mut Rig| {
        let part = rig.without_data(0, 0, Data::None);
        let done = rig.one(Op::Flush, Flags::NONE, vec![part]);
        assert_eq!(done.result, Ok(()));
        assert_eq!(done.parts.len(), 1);
    };
    flush(&mut rig);
    rig.write(9, 4, 1, Flags::NONE);
    flush(&mut rig);
    rig.write(10, 1, 2, Flags::FUA);
    if !subject.forgets {
        assert_eq!(rig.read(8, 6), [0, 1, 2, 1, 1, 0]);
        // A read that asks for the medium.
        let part = rig.part(0, 8, 6, 0);
        let done = rig.one(Op::Read, Flags::FUA, vec![part]);
        let bytes = rig.sector_bytes() as usize;
        assert_eq!(first_bytes(&done.parts[0], bytes), [0, 1, 2, 1, 1, 0]);
    }
}

fn an_abort_says_what_became_of_it(subject: &Subject) {
    let mut rig = Rig::new(subject);
    // Nothing has these.
    assert!(matches!(
        rig.device.abort(rig.now(), DriveTag(0)),
        Aborted::No
    ));
    rig.write(0, 8, 1, Flags::NONE);
    assert!(matches!(
        rig.device.abort(rig.now(), DriveTag(0)),
        Aborted::No
    ));
    let depth = rig.device.geometry().depth as u64;
    let mut gone = 0;
    for round in 0..20 {
        let tags: Vec<_> = (0..depth)
            .map(|slot| {
                let part = rig.part(slot, (round * depth + slot) * 8, 8, 2);
                rig.submit(Op::Write, Flags::NONE, vec![part])
            })
            .collect();
        for tag in tags {
            gone += u64::from(rig.abort(tag));
        }
        rig.drain();
        assert!(rig.poll().is_none());
    }
    assert!(gone <= 20 * depth);
    // And it works on.
    let part = rig.without_data(0, 0, Data::None);
    let done = rig.one(Op::Flush, Flags::NONE, vec![part]);
    assert_eq!(done.result, Ok(()));
    // An abandoned command may end later than the flush. The device reports no completion then.
    let until = rig.now() + Nanos::from_secs(60);
    while rig.device.abandoned() > 0 {
        assert!(rig.poll().is_none(), "polled after it was given up on");
        assert!(rig.now() < until, "abandoned for ever");
        std::thread::yield_now();
    }
}

fn control_answers(subject: &Subject) {
    let mut rig = Rig::new(subject);
    let now = rig.now();
    match rig.device.control(now, &Control::PowerCut) {
        Err(ControlError::Unsupported) => {
            rig.write(0, 1, 1, Flags::NONE);
        }
        Ok(_) => {
            let part = rig.part(0, 0, 1, 1);
            let done = rig.one(Op::Read, Flags::NONE, vec![part]);
            assert!(done.result.is_err());
            assert_eq!(
                rig.device.control(now, &Control::PowerOn),
                Ok(Sectors::ZERO)
            );
            rig.write(0, 1, 1, Flags::NONE);
        }
        Err(error) => panic!("{error}"),
    }
}

fn what_is_written_is_read(subject: &Subject) {
    let mut rig = Rig::new(subject);
    let end = rig.device.geometry().capacity.get();
    assert_eq!(rig.read(0, 8), [0; 8]);
    rig.write(0, 8, 1, Flags::NONE);
    rig.write(3, 1, 2, Flags::NONE);
    rig.write(end - 1, 1, 3, Flags::NONE);
    assert_eq!(rig.read(0, 9), [1, 1, 1, 2, 1, 1, 1, 1, 0]);
    assert_eq!(rig.read(end - 2, 2), [0, 3]);
    // More than the buffer of a drive has in a segment.
    rig.write(100, 3000, 4, Flags::NONE);
    let back = rig.read(99, 3002);
    assert_eq!((back[0], back[3001]), (0, 0));
    assert!(back[1..3001].iter().all(|byte| *byte == 4));
}

fn zeroes_and_discards(subject: &Subject) {
    let mut rig = Rig::new(subject);
    for may_punch in [true, false] {
        rig.write(0, 64, 5, Flags::NONE);
        for (start, len, flags) in [(3, 20, Flags::NONE), (40, 9, Flags::FUA)] {
            let part = rig.without_data(start, len, Data::Zeroes { may_punch });
            let done = rig.one(Op::Write, flags, vec![part]);
            assert_eq!(done.result, Ok(()));
            assert!(matches!(done.parts[0].data, Data::Zeroes { may_punch: m } if m == may_punch));
        }
        let wanted: Vec<u8> = (0..64)
            .map(|lba| match lba {
                3..23 | 40..49 => 0,
                _ => 5,
            })
            .collect();
        assert_eq!(rig.read(0, 64), wanted);
        // Beside data in one command.
        let parts = vec![
            rig.part(0, 10, 4, 6),
            rig.without_data(14, 40, Data::Zeroes { may_punch }),
            rig.part(0, 54, 2, 7),
        ];
        assert_eq!(rig.one(Op::Write, Flags::NONE, parts).result, Ok(()));
        let back = rig.read(9, 48);
        assert_eq!(back[..6], [0, 6, 6, 6, 6, 0]);
        assert!(back[5..45].iter().all(|byte| *byte == 0));
        assert_eq!(back[45..], [7, 7, 5]);
    }
    if !rig.device.geometry().discards {
        return;
    }
    rig.write(0, 64, 8, Flags::NONE);
    let part = rig.without_data(5, 50, Data::None);
    assert_eq!(rig.one(Op::Discard, Flags::NONE, vec![part]).result, Ok(()));
    let back = rig.read(0, 64);
    assert_eq!(back[..5], [8; 5]);
    assert_eq!(back[55..], [8; 9]);
    let forgotten = &back[5..55];
    let zeroes = forgotten.iter().all(|byte| *byte == 0);
    assert!(zeroes || !rig.device.discards_to_zeroes());
}

fn allocation_covers_what_is_written(subject: &Subject) {
    let mut rig = Rig::new(subject);
    rig.write(64, 16, 1, Flags::FUA);
    let Some(allocation) = rig.device.allocation() else {
        return;
    };
    let sector = rig.sector_bytes();
    let end = rig.device.geometry().capacity.get() * sector;
    let mut at = 0;
    while at < end {
        let (allocated, len) = allocation.status(at, end - at).expect("it can tell");
        assert!(len > 0 && len <= end - at);
        let written = 64 * sector..80 * sector;
        assert!(allocated || at + len <= written.start || at >= written.end);
        at += len;
    }
    assert_eq!(at, end);
    let part = allocation.status(64 * sector, 512).expect("it can tell");
    assert_eq!(part, (true, 512));
}

fn agrees_with_a_vector(subject: &Subject) {
    let mut rig = Rig::new(subject);
    let mut random = Random::new(5, 0, 0);
    let mut wanted = vec![0u8; 512];
    let bytes = rig.sector_bytes() as usize;
    // Data of writes under way, by tag.
    let mut bringing = vec![0u8; 256];
    for step in 0..1500u32 {
        let start = random.below(wanted.len() as u64 - 40);
        let len = 1 + random.below(40);
        let byte = 1 + (step % 250) as u8;
        let (op, part) = match random.below(20) {
            0..9 => (Op::Read, rig.part(0, start, len, 0xee)),
            9..17 => (Op::Write, rig.part(0, start, len, byte)),
            17 => (
                Op::Write,
                rig.without_data(
                    start,
                    len,
                    Data::Zeroes {
                        may_punch: step % 2 == 0,
                    },
                ),
            ),
            _ => (Op::Flush, rig.without_data(0, 0, Data::None)),
        };
        let may_go = rig.may_go(op, part.extent);
        if may_go {
            let zeroes = matches!(part.data, Data::Zeroes { .. });
            let tag = rig.submit(op, Flags::NONE, vec![part]);
            bringing[tag.index()] = if zeroes { 0 } else { byte };
        }
        while !rig.in_flight.is_empty() && (!may_go || random.chance(0.4)) {
            let request = rig.in_flight.clone();
            let done = rig.next();
            assert_eq!(done.result, Ok(()));
            let request = request.iter().find(|request| request.tag == done.tag);
            let extent = done.parts[0].extent;
            let range = extent.start.get() as usize..extent.end().get() as usize;
            match request.expect("it was submitted").op {
                Op::Read => {
                    assert_eq!(
                        first_bytes(&done.parts[0], bytes),
                        wanted[range],
                        "step {step}"
                    );
                }
                Op::Write => wanted[range].fill(bringing[done.tag.index()]),
                Op::Flush | Op::Discard => {}
            }
            if !may_go {
                break;
            }
        }
    }
    rig.drain();
}
