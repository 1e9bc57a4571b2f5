//! Scrubs of a live disk beside clients, with unreadable sectors. The disk may fail, stop or be replaced by another
//! one. All runs are audited, and their logs replay.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a disk that is served runs in real time"
)]

#[path = "../common/mod.rs"]
mod common;
mod copy;
mod damage;
mod hash;
mod promises;
mod rig;

use common::{Inbox, request, submit};
use headtime_disk::profile::by_name;
use headtime_sched::Op;
use headtime_serve::device::{Control, Device};
use headtime_serve::disk::Disk;
use headtime_serve::null::Null;
use headtime_serve::scrub::{Gaps, ScrubAsk, ScrubError, ScrubState, Scrubs};
use headtime_testkit::Folder;
use headtime_units::{Extent, Nanos, Sectors};
use rig::{DRIVE, Of, Rig, USUAL, options, soon, unreadable};
use std::convert::Infallible;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Number of joins in a log.
fn joined(log: &str) -> usize {
    log.matches("\nJ ").count()
}

#[test]
fn without_a_belief_a_disk_is_read_in_order_while_nobody_asks() {
    let rig = Rig::emulated(Of {
        believes: false,
        ..USUAL
    });
    rig.begin(&soon());
    let done = rig.to_the_end();
    assert_eq!((done.left, done.blocks), (0, 2048));
    assert_eq!((done.in_gaps, done.in_idle_time), (0, 2048));
    assert_eq!(done.gaps, Gaps::NoBelief);
    assert!(done.unreadable.extents().is_empty());
    // 512 sectors at a time.
    assert_eq!(joined(&rig.stop()), 64);
}

#[test]
fn a_device_that_does_not_turn_is_read_in_idle_time_alone_whatever_is_believed() {
    let (options, _) = options(2, true);
    let disk = Disk::start(options, || {
        Ok::<_, Infallible>(Box::new(Null::new(Sectors::new(1 << 15), 32)) as Box<dyn Device>)
    });
    let disk = disk.expect("starts");
    let belief = by_name(DRIVE).expect("shipped").clone();
    let scrubs = Scrubs::new(disk.clone(), "null", Some(belief), None);
    scrubs.begin(&soon()).expect("it begins");
    let inbox = Inbox::new(64);
    for cookie in 0..200 {
        let lba = cookie * 7919 % 4000 * 8;
        let to = Arc::clone(&inbox) as Arc<_>;
        submit(&disk, request(&disk, cookie, Op::Read, lba, to));
        inbox.wait();
    }
    let since = Instant::now();
    let status = loop {
        let status = scrubs.status().expect("there is one");
        if status.state == ScrubState::Done {
            break status;
        }
        assert!(since.elapsed() < Duration::from_secs(60), "{status:?}");
    };
    assert_eq!((status.gaps, status.in_gaps), (Gaps::NotFound, 0));
    disk.stop().expect("stops");
}

#[test]
fn with_a_deep_queue_it_is_not_said_that_gaps_are_used_before_clients_have_shown_it() {
    for depth in [1, 2, 3, 32] {
        let rig = Rig::emulated(Of { depth, ..USUAL });
        rig.begin(&soon());
        let mut said = vec![rig.status().gaps];
        let done = rig.wait(|status| {
            said.push(status.gaps);
            status.state == ScrubState::Done
        });
        said.dedup();
        match depth {
            // Reads in idle time show where the platter is.
            1 | 2 => assert_eq!(done.gaps, Gaps::Used, "{depth}: {said:?}"),
            _ => assert_eq!(said, [Gaps::OtherOrder], "{depth}"),
        }
        rig.stop();
    }
}

#[test]
fn beside_clients_gaps_are_used_once_the_platter_is_found() {
    let rig = Rig::emulated(Of {
        // Over many tracks.
        sectors: 1 << 20,
        ..USUAL
    });
    rig.begin(&ScrubAsk {
        idle: Some(None),
        ..ScrubAsk::default()
    });
    let inbox = Inbox::new(64);
    let mut asked = 0;
    let ask = |nth: u64| {
        let lba = nth * 7_919_013 % (1 << 17) * 8;
        let to = Arc::clone(&inbox) as Arc<_>;
        submit(&rig.disk, request(&rig.disk, nth, Op::Read, lba, to));
    };
    (0..8).for_each(ask);
    let status = loop {
        asked += 1;
        inbox.wait();
        let status = rig.status();
        if status.in_gaps >= 50 || asked == 3_000 {
            break status;
        }
        ask(asked + 8);
    };
    for _ in 1..8 {
        inbox.wait();
    }
    assert!(status.in_gaps >= 50, "{asked}: {status:?}");
    assert_eq!((status.gaps, status.in_idle_time), (Gaps::Used, 0));
    rig.scrubs.stop().expect("under way");
    rig.wait(|status| status.state == ScrubState::Stopped);
    rig.stop();
}

#[test]
fn beside_clients_who_live_by_the_buffer_it_is_said_that_gaps_rest_for_that() {
    let rig = Rig::emulated(Of {
        sectors: 1 << 20,
        ..USUAL
    });
    rig.begin(&ScrubAsk {
        idle: Some(None),
        ..ScrubAsk::default()
    });
    let inbox = Inbox::new(64);
    let mut said = Vec::new();
    for nth in 0..3_000 {
        // Within some ten tracks.
        let lba = 500_000 + nth * 7_919 % 500 * 8;
        let to = Arc::clone(&inbox) as Arc<_>;
        submit(&rig.disk, request(&rig.disk, nth, Op::Read, lba, to));
        if nth >= 3 {
            inbox.wait();
        }
        said.push(rig.status().gaps);
        said.dedup();
        if said.contains(&Gaps::Costly) {
            break;
        }
    }
    for _ in 0..3 {
        inbox.wait();
    }
    assert!(said.contains(&Gaps::Costly), "{said:?}");
    rig.stop();
}

#[test]
fn sectors_that_cannot_be_read_are_found_one_by_one_and_the_rest_is_read() {
    let rig = Rig::emulated(USUAL);
    for (lba, sectors) in [(2048, 1), (5003, 7), (32_767, 1)] {
        rig.inject(unreadable(lba, sectors, 0));
    }
    rig.begin(&soon());
    let done = rig.to_the_end();
    let expected = [
        Extent::at(2048, 1),
        Extent::at(5003, 7),
        Extent::at(32_767, 1),
    ];
    assert_eq!(done.unreadable.extents(), expected);
    assert_eq!((done.left, done.errors), (0, 0));
    rig.stop();
}

#[test]
fn a_drive_that_takes_too_long_for_a_sector_holds_nothing_up_for_ever() {
    let rig = Rig::timed(USUAL, Some(Nanos::from_millis(100)));
    // 40 turns of 6 ms are more than the timeout.
    rig.inject(unreadable(2048, 1, 40));
    rig.begin(&soon());
    let done = rig.to_the_end();
    let extents = done.unreadable.extents();
    assert_eq!(extents.len(), 1, "{extents:?}");
    assert!(
        extents[0].contains(headtime_units::Lba::new(2048)),
        "{extents:?}"
    );
    rig.stop();
}

#[test]
fn a_power_cut_holds_a_scrub_up_and_loses_nothing_of_it() {
    let rig = Rig::emulated(USUAL);
    rig.begin(&soon());
    rig.wait(|status| status.left < 1_800);
    rig.inject(Control::PowerCut);
    let cut = rig.wait(|status| status.errors >= 2);
    assert_eq!(cut.state, ScrubState::Running);
    rig.inject(Control::PowerOn);
    let done = rig.to_the_end();
    assert!(done.unreadable.extents().is_empty());
    rig.stop();
}

#[test]
fn a_scrub_rests_goes_on_and_ends_as_it_is_told() {
    let rig = Rig::emulated(USUAL);
    assert!(matches!(rig.scrubs.pause(), Err(ScrubError::None)));
    rig.begin(&soon());
    rig.wait(|status| status.left < 2_000);
    rig.scrubs.pause().expect("under way");
    rig.wait(|status| status.state == ScrubState::Paused);
    // Reads under way may end.
    sleep(Duration::from_millis(60));
    let left = rig.status().left;
    sleep(Duration::from_millis(100));
    assert_eq!(rig.status().left, left);
    rig.scrubs.resume().expect("it rests");
    rig.wait(|status| status.left < left);
    rig.scrubs.stop().expect("under way");
    rig.wait(|status| status.state == ScrubState::Stopped);
    assert!(matches!(rig.scrubs.stop(), Err(ScrubError::None)));
    // Another one from the beginning, in the same place.
    rig.begin(&soon());
    rig.to_the_end();
    rig.begin(&soon());
    rig.to_the_end();
    rig.stop();
}

#[test]
fn a_disk_ends_though_its_scrub_has_much_to_do() {
    let rig = Rig::emulated(Of {
        sectors: 1 << 22,
        ..USUAL
    });
    rig.begin(&soon());
    rig.wait(|status| status.in_idle_time > 0);
    let since = Instant::now();
    rig.stop();
    assert!(since.elapsed() < Duration::from_secs(20));
}

#[test]
fn the_next_server_goes_on_where_the_last_one_was() {
    let folder = Folder::new();
    let of = Of {
        folder: Some(&folder),
        ..USUAL
    };
    let rig = Rig::emulated(of);
    rig.inject(unreadable(3, 1, 0));
    rig.begin(&soon());
    rig.wait(|status| status.left < 1_500 && status.unreadable.sectors() > 0);
    let before = rig.status();
    rig.stop();
    let rig = Rig::emulated(of);
    rig.scrubs.resume_unfinished().expect("it is there");
    let after = rig.status();
    assert!(after.state == ScrubState::Running, "{after:?}");
    let done = rig.to_the_end();
    // The sector can be read now, but nobody has looked again.
    assert_eq!(done.unreadable.extents(), [Extent::at(3, 1)]);
    // It had read more by its end than when it was asked.
    assert!(
        done.in_idle_time <= before.left,
        "{done:?} after {before:?}"
    );
    assert!(done.in_idle_time > 0);
    rig.stop();
    // A third one knows that it is over, and begins anew if it is told to.
    let rig = Rig::emulated(of);
    rig.scrubs.resume_unfinished().expect("it is there");
    let over = rig.status();
    assert_eq!((over.state.clone(), over.left), (ScrubState::Done, 0));
    assert_eq!(over.unreadable.sectors(), 1);
    rig.begin(&soon());
    let done = rig.to_the_end();
    assert_eq!((done.in_idle_time, done.unreadable.sectors()), (2048, 0));
    rig.stop();
}

#[test]
fn one_that_rests_rests_also_after_a_restart() {
    let folder = Folder::new();
    let of = Of {
        folder: Some(&folder),
        ..USUAL
    };
    let rig = Rig::emulated(of);
    rig.begin(&soon());
    rig.wait(|status| status.left < 2_000);
    rig.scrubs.pause().expect("under way");
    rig.wait(|status| status.state == ScrubState::Paused);
    // Reads under way may end.
    sleep(Duration::from_millis(60));
    let left = rig.status().left;
    rig.stop();
    let rig = Rig::emulated(of);
    rig.scrubs.resume_unfinished().expect("it is there");
    sleep(Duration::from_millis(50));
    let after = rig.status();
    assert_eq!((after.state, after.left), (ScrubState::Paused, left));
    rig.begin(&ScrubAsk::default());
    rig.to_the_end();
    rig.stop();
}

#[test]
fn the_progress_of_another_disk_is_refused() {
    let folder = Folder::new();
    let of = Of {
        folder: Some(&folder),
        ..USUAL
    };
    let rig = Rig::emulated(of);
    rig.begin(&soon());
    rig.wait(|status| status.left < 2_000);
    rig.stop();
    for (other, problem) in [
        (
            Of {
                device: "another drive",
                ..of
            },
            "it was a drive, and is another drive",
        ),
        (
            Of {
                sectors: 1 << 14,
                ..of
            },
            "it has shrunk from 16777216 bytes to 8388608",
        ),
        (
            Of {
                sectors: 1 << 16,
                ..of
            },
            "it has grown from 16777216 bytes to 33554432",
        ),
    ] {
        let rig = Rig::emulated(other);
        for refused in [rig.scrubs.resume_unfinished(), rig.scrubs.begin(&soon())] {
            let text = refused.expect_err("it is another disk").to_string();
            assert!(text.contains(problem), "{text}");
        }
        assert!(rig.scrubs.status().is_none());
        rig.stop();
    }
    // Refusals leave the scrub's file unchanged.
    let rig = Rig::emulated(of);
    rig.scrubs.resume_unfinished().expect("it is there");
    let done = rig.to_the_end();
    assert!(done.in_idle_time < 2_000);
    rig.stop();
}

#[test]
fn what_cannot_be_scrubbed_is_refused_with_a_reason() {
    let rig = Rig::emulated(USUAL);
    let refused = |ask: ScrubAsk| rig.scrubs.begin(&ask).expect_err("refused").to_string();
    let range = |start, end| ScrubAsk {
        range: Some((start, end)),
        ..ScrubAsk::default()
    };
    for ask in [range(0, (1 << 24) + 1), range(7, 7), range(9, 8)] {
        assert!(refused(ask).contains("allowed is a part of the disk's 0"));
    }
    let block = |bytes| ScrubAsk {
        block: Some(bytes),
        ..ScrubAsk::default()
    };
    for ask in [block(0), block(256), block(3 << 10), block(16 << 20)] {
        assert!(refused(ask).contains("allowed are powers of two"));
    }
    rig.begin(&ScrubAsk {
        range: Some((1 << 20, (1 << 20) + 1)),
        ..soon()
    });
    let done = rig.to_the_end();
    // The whole block in which that byte is.
    assert_eq!((done.range, done.blocks), (Extent::at(2048, 16), 1));
    rig.begin(&ScrubAsk::default());
    assert!(refused(range(0, 512)).contains("another range"));
    assert!(refused(block(64 << 10)).contains("another block"));
    rig.begin(&ScrubAsk::default());
    rig.stop();

    let rig = Rig::emulated(Of {
        believes: false,
        ..USUAL
    });
    let never = ScrubAsk {
        idle: Some(None),
        ..ScrubAsk::default()
    };
    let text = rig.scrubs.begin(&never).expect_err("refused").to_string();
    assert!(text.contains("nothing to read in"), "{text}");
    rig.stop();
}

#[test]
fn a_file_that_is_no_progress_is_refused_and_left_as_it_is() {
    let folder = Folder::new();
    let of = Of {
        folder: Some(&folder),
        ..USUAL
    };
    let state = folder.join("state");
    std::fs::create_dir(&state).expect("empty");
    let file = state.join("disk0.scrub");
    let rig = Rig::emulated(of);
    rig.begin(&soon());
    rig.wait(|status| status.left < 2_000);
    rig.scrubs.pause().expect("under way");
    rig.wait(|status| status.state == ScrubState::Paused);
    rig.stop();
    let whole = std::fs::read(&file).expect("there");
    let mut broken = vec![Vec::new(), whole[..10].to_vec()];
    broken.push([b"[1, 2]".as_slice(), &[0; 1 << 16]].concat());
    for bytes in broken {
        std::fs::write(&file, &bytes).expect("writable");
        let rig = Rig::emulated(of);
        let refused = rig.scrubs.begin(&soon()).expect_err("refused");
        assert!(
            refused.to_string().contains("not the progress"),
            "{refused}"
        );
        assert_eq!(std::fs::read(&file).expect("there"), bytes);
        rig.stop();
    }
    // Half a line does not count, and a line without a checksum is damage.
    for (line, pages) in [("unreadable 7", 0), ("unreadable 7 1\n", 1)] {
        std::fs::write(&file, [whole.as_slice(), line.as_bytes()].concat()).expect("writable");
        let rig = Rig::emulated(of);
        rig.begin(&ScrubAsk::default());
        let done = rig.to_the_end();
        assert_eq!((done.unreadable.sectors(), done.damage.pages), (0, pages));
        rig.stop();
    }
}

#[test]
fn a_scrub_whose_file_is_gone_is_held_and_begins_anew_when_it_is_told_to() {
    let folder = Folder::new();
    let rig = Rig::emulated(Of {
        folder: Some(&folder),
        ..USUAL
    });
    rig.begin(&soon());
    rig.wait(|status| status.left < 2_000);
    std::fs::remove_dir_all(folder.join("state")).expect("there");
    let held = rig.wait(|status| status.state != ScrubState::Running);
    let ScrubState::Held(why) = held.state else {
        panic!("{held:?}");
    };
    assert!(why.contains("disk0.scrub: it was removed"), "{why}");
    rig.scrubs.resume().expect("held");
    let done = rig.to_the_end();
    assert_eq!(done.in_idle_time, 2_048);
    rig.stop();
    assert!(folder.join("state/disk0.scrub").exists());
}
