//! Comparison of blocks with their hashes. A scrub names blocks that changed without a write. It never names a block
//! that may have been written, after any failure of servers, files and the machine.

use super::common::{Inbox, request, submit};
use super::rig::{Hook, Of, Rig, USUAL, options, soon, write_page};
use headtime_sched::Op;
use headtime_serve::device::{Control, Device};
use headtime_serve::disk::Disk;
use headtime_serve::faulty::{Faulty, Switch};
use headtime_serve::null::Null;
use headtime_serve::scrub::{ScrubAsk, ScrubError, ScrubState, ScrubStatus, Scrubs};
use headtime_testkit::Folder;
use headtime_units::{Extent, Sectors};
use std::convert::Infallible;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

const SECTORS: u64 = 1 << 14;

/// Of 8 KiB.
const BLOCKS: u64 = SECTORS / 16;

/// Paths of the data, of their hashes, and of the scrub's files.
struct Place {
    folder: Folder,
    store: PathBuf,
    hashes: PathBuf,
    watch: PathBuf,
    /// Data of the next unnoticed change.
    changes: AtomicU8,
}

impl Place {
    fn new() -> Place {
        let folder = Folder::new();
        Place {
            store: folder.join("store.img"),
            hashes: folder.join("hashes"),
            watch: folder.join("state/disk0.watch"),
            changes: AtomicU8::new(100),
            folder,
        }
    }

    fn of(&self) -> Of<'_> {
        Of {
            sectors: SECTORS,
            folder: Some(&self.folder),
            store: Some(&self.store),
            sole_writer: true,
            ..USUAL
        }
    }

    fn ask(&self) -> ScrubAsk {
        ScrubAsk {
            hash: Some(self.hashes.clone()),
            ..soon()
        }
    }

    /// A server that continues the last server's scrubs.
    fn server(&self, of: Of<'_>) -> Rig {
        let rig = Rig::emulated(of);
        rig.scrubs.resume_unfinished().expect("nothing in the way");
        rig
    }

    /// Changes a sector in the file, unnoticed by the server.
    fn change(&self, lba: u64) {
        let file = File::options().write(true).open(&self.store);
        let byte = self.changes.fetch_add(1, Ordering::SeqCst);
        let written = file.expect("there").write_all_at(&[byte; 512], lba * 512);
        written.expect("written");
    }

    /// State that the watch's file names.
    fn state(&self) -> String {
        let bytes = fs::read(&self.watch).expect("there");
        let text = bytes[16 << 10..].split(|byte| *byte == 0).next();
        String::from_utf8(text.expect("there").to_owned()).expect("text")
    }

    fn say(&self, state: &str) {
        write_page(&self.watch, state, 16 << 10);
    }
}

/// Reads all of the disk and compares.
fn pass(rig: &Rig, place: &Place) -> ScrubStatus {
    rig.begin(&place.ask());
    rig.to_the_end()
}

fn compared(status: &ScrubStatus) -> u64 {
    status.hashes.as_ref().expect("it hashes").compared
}

fn why_not(status: &ScrubStatus) -> &str {
    let hashes = status.hashes.as_ref().expect("it hashes");
    hashes.why_not.as_deref().unwrap_or("")
}

fn block(number: u64) -> Extent {
    Extent::at(number * 16, 16)
}

/// A pass that compares nothing and gives the reason. Earlier changes are not named.
fn knows_nothing(rig: &Rig, place: &Place, why: &str) {
    place.change(5_000);
    let done = pass(rig, place);
    assert_eq!(
        (done.changed.sectors(), compared(&done)),
        (0, 0),
        "{done:?}"
    );
    assert!(why_not(&done).contains(why), "{done:?}");
    // The next pass compares all blocks.
    place.change(6_000);
    let done = pass(rig, place);
    assert_eq!(done.changed.extents(), [block(375)], "{done:?}");
    assert_eq!(compared(&done), BLOCKS);
}

#[test]
fn blocks_that_change_without_a_write_are_named_and_those_that_were_written_to_are_not() {
    let place = Place::new();
    let rig = place.server(place.of());
    (0..8).for_each(|nth| rig.write(nth * 1600, 1));
    let first = pass(&rig, &place);
    assert_eq!((first.changed.sectors(), compared(&first)), (0, 0));
    // Written after the pass, before the next server, and behind everybody's back.
    rig.write(1600, 2);
    rig.stop();
    let rig = place.server(place.of());
    assert_eq!(rig.status().state, ScrubState::Done);
    rig.write(3200, 3);
    place.change(4803);
    place.change(9_999);
    rig.begin(&place.ask());
    // A block that is written during the pass is not reported as changed.
    rig.write(6400, 4);
    let done = rig.to_the_end();
    assert_eq!(done.changed.extents(), [block(300), block(624)]);
    assert!(
        (BLOCKS - 3..=BLOCKS - 2).contains(&compared(&done)),
        "{done:?}"
    );
    // The new contents count from now on. A scrub without hashes still notes writes.
    rig.begin(&soon());
    rig.write(8000, 5);
    rig.to_the_end();
    let done = pass(&rig, &place);
    assert_eq!(done.changed.sectors(), 0);
    assert!(compared(&done) >= BLOCKS - 2, "{done:?}");
    // A stopped scrub notes writes, too.
    rig.begin(&place.ask());
    rig.scrubs.stop().expect("under way");
    rig.wait(|status| status.state == ScrubState::Stopped);
    rig.write(8000, 6);
    place.change(12);
    rig.stop();
    let rig = place.server(place.of());
    let done = pass(&rig, &place);
    assert_eq!(done.changed.extents(), [block(0)]);
    // A scrub with another block size cannot use the hashes.
    let refused = rig.scrubs.begin(&ScrubAsk {
        block: Some(64 << 10),
        ..place.ask()
    });
    let refused = refused.expect_err("another size").to_string();
    assert!(
        refused.contains("give --block 8KiB, or another file"),
        "{refused}"
    );
    assert!(compared(&pass(&rig, &place)) == BLOCKS);
    // Another file of hashes begins empty, and invalidates the first file's hashes.
    rig.begin(&ScrubAsk {
        hash: Some(place.folder.join("others")),
        ..soon()
    });
    assert_eq!(compared(&rig.to_the_end()), 0);
    knows_nothing(&rig, &place, "other hashes were kept meanwhile");
    rig.stop();
}

#[test]
fn what_changed_is_still_told_when_the_pass_goes_on_in_the_next_server() {
    let place = Place::new();
    let of = Of {
        sectors: 1 << 16,
        ..place.of()
    };
    let rig = place.server(of);
    pass(&rig, &place);
    place.change(3);
    rig.begin(&place.ask());
    rig.wait(|status| status.changed.sectors() > 0 && status.left < 4_000);
    rig.scrubs.pause().expect("under way");
    rig.wait(|status| status.state == ScrubState::Paused);
    rig.stop();
    let rig = place.server(of);
    let status = rig.status();
    assert_eq!(status.state, ScrubState::Paused);
    assert!(status.left > 0 && status.left < 4_096, "{status:?}");
    assert_eq!(status.changed.extents(), [block(0)]);
    rig.begin(&place.ask());
    let done = rig.to_the_end();
    assert_eq!(done.changed.extents(), [block(0)]);
    rig.stop();
}

#[test]
fn a_mark_is_gone_from_its_file_before_the_write_reaches_the_drive() {
    let place = Place::new();
    let (seen, marked) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let hook: Hook = {
        let (watch, seen, marked) = (place.watch.clone(), Arc::clone(&seen), Arc::clone(&marked));
        Arc::new(move |request| {
            let Ok(file) = File::open(&watch) else { return };
            if request.op != Op::Write {
                return;
            }
            let number = request.extent.start.get() / 16;
            let mut byte = [0];
            let at = (20 << 10) + number / 8;
            file.read_exact_at(&mut byte, at).expect("there");
            seen.fetch_add(1, Ordering::SeqCst);
            marked.fetch_add(u64::from(byte[0] >> (number % 8) & 1), Ordering::SeqCst);
        })
    };
    let of = Of {
        hook: Some(&hook),
        ..place.of()
    };
    let rig = place.server(of);
    pass(&rig, &place);
    let marks = |place: &Place| {
        let bytes = fs::read(&place.watch).expect("there");
        let marks = bytes[20 << 10..][..4088]
            .iter()
            .map(|byte| byte.count_ones());
        u64::from(marks.sum::<u32>())
    };
    assert_eq!(marks(&place), BLOCKS);
    for nth in 0..100 {
        rig.write(nth * 160, 1);
    }
    assert_eq!(marks(&place), BLOCKS - 100);
    // Writes remove marks during a pass, too. A block that is marked afterwards was read after the write.
    rig.begin(&place.ask());
    for nth in 0..200 {
        rig.write(nth * 7919 % 2048 * 8, nth as u8);
    }
    rig.to_the_end();
    assert_eq!(marked.load(Ordering::SeqCst), 0);
    assert_eq!(seen.load(Ordering::SeqCst), 300);
    rig.stop();
}

#[test]
fn no_block_is_named_falsely_whatever_is_written_during_passes_and_between() {
    let place = Place::new();
    let mut nth = 0_u64;
    for server in 0..3 {
        let rig = place.server(place.of());
        for round in 0..2 {
            rig.begin(&place.ask());
            while rig.status().state == ScrubState::Running {
                nth += 1;
                rig.write(nth * 7919 % 2048 * 8, nth as u8);
                if nth.is_multiple_of(8) {
                    // The pause gives the scrub idle time.
                    sleep(Duration::from_millis(5));
                }
            }
            let done = rig.to_the_end();
            assert_eq!(done.changed.sectors(), 0, "{server} {round}: {done:?}");
        }
        rig.write(nth * 31 % 2048 * 8, 1);
        rig.stop();
    }
    // The next server still compares blocks.
    let rig = place.server(place.of());
    assert!(compared(&pass(&rig, &place)) > BLOCKS / 2);
    rig.stop();
}

#[test]
fn after_a_restart_nothing_is_compared_unless_nobody_else_writes() {
    let place = Place::new();
    let rig = place.server(place.of());
    pass(&rig, &place);
    rig.stop();
    let rig = place.server(Of {
        sole_writer: false,
        ..place.of()
    });
    knows_nothing(&rig, &place, "sole_writer = true");
    rig.stop();
    // A pass that was under way begins anew.
    let others = Of {
        sole_writer: false,
        sectors: 1 << 16,
        ..USUAL
    };
    let folder = Folder::new();
    let of = Of {
        folder: Some(&folder),
        ..others
    };
    let ask = ScrubAsk {
        hash: Some(folder.join("hashes")),
        ..soon()
    };
    let rig = Rig::emulated(of);
    rig.begin(&ask);
    rig.wait(|status| status.left < 3_000);
    rig.stop();
    let rig = Rig::emulated(of);
    rig.scrubs.resume_unfinished().expect("nothing in the way");
    assert_eq!(rig.to_the_end().in_idle_time, 4_096);
    rig.stop();
}

#[test]
fn a_disk_that_ended_in_order_is_trusted_in_any_boot_and_one_that_did_not_only_in_the_same() {
    let place = Place::new();
    let rig = place.server(place.of());
    pass(&rig, &place);
    assert!(place.state().starts_with("watched "));
    rig.stop();
    assert_eq!(place.state(), "clean");
    // From before the first client on it is clean no more.
    let rig = place.server(place.of());
    let watched = place.state();
    assert!(watched.starts_with("watched "));
    assert_eq!(compared(&pass(&rig, &place)), BLOCKS);
    rig.stop();
    // Killed.
    place.say(&watched);
    let rig = place.server(place.of());
    assert_eq!(compared(&pass(&rig, &place)), BLOCKS);
    rig.stop();
    // The machine was.
    place.say("watched 00000000-0000-0000-0000-000000000000");
    let rig = place.server(place.of());
    assert!(place.state().starts_with("lost the machine went down"));
    rig.write(1600, 7);
    knows_nothing(&rig, &place, "the machine went down");
    rig.stop();
}

#[test]
fn a_server_that_could_not_notice_writes_is_not_forgotten_by_the_next_one() {
    let place = Place::new();
    let moved = place.folder.join("moved");
    for (what, why) in [
        (&place.hashes, "No such file"),
        (&place.watch, "nobody has noticed"),
    ] {
        let rig = place.server(place.of());
        pass(&rig, &place);
        rig.stop();
        // This one cannot find it, and has a block written to.
        fs::rename(what, &moved).expect("there");
        let rig = place.server(place.of());
        rig.write(1600, 0xA0);
        rig.stop();
        fs::rename(&moved, what).expect("there");
        let rig = place.server(place.of());
        if what == &place.hashes {
            knows_nothing(&rig, &place, why);
        }
        rig.stop();
    }
}

#[test]
fn a_watch_is_lost_if_its_disk_is_not_the_same_size_for_a_while() {
    let place = Place::new();
    let folder = &place.folder;
    let of = Of {
        store: None,
        ..place.of()
    };
    let rig = Rig::emulated(of);
    pass(&rig, &place);
    rig.stop();
    let rig = place_of_other_size(folder);
    rig.stop();
    assert!(place.state().starts_with("lost"), "{}", place.state());
    // Of another disk it says nothing, and is left as it is.
    place.say("clean");
    let rig = Rig::emulated(Of {
        device: "another drive",
        ..of
    });
    let refused = rig.scrubs.resume_unfinished().expect_err("another disk");
    assert!(refused.to_string().contains("of another disk"), "{refused}");
    rig.stop();
    assert_eq!(place.state(), "clean");
}

fn place_of_other_size(folder: &Folder) -> Rig {
    let rig = Rig::emulated(Of {
        sectors: SECTORS / 2,
        folder: Some(folder),
        sole_writer: true,
        ..USUAL
    });
    let refused = rig.scrubs.resume_unfinished().expect_err("another size");
    assert!(refused.to_string().contains("it has shrunk"), "{refused}");
    rig
}

/// Name of a damage, its action on the files, and the scrub's message.
type Damage<'a> = (&'a str, &'a dyn Fn(&Place), &'a str);

#[test]
fn files_that_are_not_what_they_were_are_not_believed() {
    let place = Place::new();
    let damage: [Damage<'_>; 5] = [
        (
            "a byte of the page that names the watch",
            &|place| {
                let mut bytes = fs::read(&place.hashes).expect("there");
                bytes[20_000] ^= 1;
                fs::write(&place.hashes, bytes).expect("room");
            },
            "its page 4, from byte 16384 on, is damaged",
        ),
        (
            "a copy of the hashes in their place",
            &|place| {
                let copy = place.folder.join("copy");
                fs::copy(&place.hashes, &copy).expect("room");
                fs::rename(&copy, &place.hashes).expect("there");
            },
            "another file than before",
        ),
        (
            "no marks at all",
            &|place| fs::write(&place.watch, "").expect("room"),
            "it is too short",
        ),
        (
            "a state that nobody has written",
            &|place| place.say("all is well"),
            "its page 4, from byte 16384 on, is damaged",
        ),
        (
            "a link in place of the hashes",
            &|place| {
                let real = place.folder.join("real");
                fs::rename(&place.hashes, &real).expect("there");
                std::os::unix::fs::symlink(&real, &place.hashes).expect("room");
            },
            "a symbolic link",
        ),
    ];
    for (what, damage, why) in damage {
        let rig = place.server(place.of());
        pass(&rig, &place);
        rig.stop();
        damage(&place);
        let rig = place.server(place.of());
        assert!(place.state().starts_with("lost"), "{what}");
        let is_link = fs::symlink_metadata(&place.hashes).expect("there");
        if is_link.is_symlink() {
            let refused = rig.scrubs.begin(&place.ask()).expect_err(what).to_string();
            assert!(refused.contains(why), "{refused}");
            fs::remove_file(&place.hashes).expect("there");
        } else {
            knows_nothing(&rig, &place, why);
        }
        rig.stop();
    }
}

#[test]
fn a_damaged_page_of_hashes_is_no_change_of_the_disk_and_costs_its_blocks() {
    let place = Place::new();
    let rig = place.server(place.of());
    pass(&rig, &place);
    let file = File::options().write(true).open(&place.hashes);
    let file = file.expect("there");
    file.write_all_at(b"damage", (24 << 10) + 40)
        .expect("there");
    let done = pass(&rig, &place);
    assert_eq!((done.changed.sectors(), compared(&done)), (0, BLOCKS - 511));
    assert_eq!(done.damage.pages, 1);
    assert_eq!(
        done.damage.sectors.extents(),
        [Extent::at(511 * 16, 511 * 16)]
    );
    let done = pass(&rig, &place);
    assert_eq!((compared(&done), done.damage.pages), (BLOCKS, 0));
    rig.stop();
}

#[test]
fn files_that_are_cut_short_cost_what_is_missing() {
    let place = Place::new();
    for (file, lost) in [(&place.hashes, BLOCKS - 2 * 511), (&place.watch, BLOCKS)] {
        let rig = place.server(place.of());
        pass(&rig, &place);
        rig.stop();
        let open = File::options().write(true).open(file).expect("there");
        let len = open.metadata().expect("there").len();
        open.set_len(len - 1).expect("shorter");
        let rig = place.server(place.of());
        let done = pass(&rig, &place);
        assert_eq!(compared(&done), BLOCKS - lost);
        assert_eq!((done.changed.sectors(), done.damage.pages), (0, 1));
        assert_eq!(compared(&pass(&rig, &place)), BLOCKS);
        rig.stop();
    }
}

#[test]
fn after_a_restart_it_is_still_known_how_many_blocks_were_compared() {
    let place = Place::new();
    let rig = place.server(place.of());
    pass(&rig, &place);
    pass(&rig, &place);
    rig.stop();
    let rig = place.server(place.of());
    let status = rig.status();
    assert_eq!((status.state.name(), compared(&status)), ("done", BLOCKS));
    rig.stop();
}

/// Nobody asks for anything between the power cut and its end. The drive may have written all before, and then nothing has failed.
#[test]
fn a_power_cut_of_an_idle_disk_is_noticed() {
    let mut noticed = 0;
    for _ in 0..5 {
        let place = Place::new();
        let rig = place.server(Of {
            store: None,
            ..place.of()
        });
        pass(&rig, &place);
        for nth in 0..40 {
            rig.write(nth * 397 * 8 % SECTORS, 1);
        }
        rig.inject(Control::PowerCut);
        rig.inject(Control::PowerOn);
        let state = place.state();
        let has_failed = rig.disk.stop().is_err();
        assert_eq!(state.starts_with("lost"), has_failed, "{state}");
        noticed += u32::from(has_failed);
        if noticed > 0 {
            return;
        }
    }
    panic!("nothing was lost in five power cuts");
}

#[test]
fn after_a_failure_of_the_disk_nothing_is_compared() {
    for _ in 0..5 {
        let place = Place::new();
        let rig = place.server(Of {
            store: None,
            ..place.of()
        });
        pass(&rig, &place);
        rig.begin(&place.ask());
        // So that it does not come to its end meanwhile on a busy machine.
        rig.scrubs.pause().expect("under way");
        // In the drive's buffer, and then gone with it.
        for nth in 0..40 {
            rig.write(nth * 397 * 8 % SECTORS, 1);
        }
        rig.scrubs.resume().expect("it rests");
        rig.inject(Control::PowerCut);
        if rig.disk.has_failed() {
            nothing_is_compared_after_a_failure(&place, rig);
            return;
        }
        // The drive had written all data before the cut.
        rig.inject(Control::PowerOn);
        rig.stop();
    }
    panic!("nothing was lost in five power cuts");
}

/// The power is off, and a scrub is under way.
fn nothing_is_compared_after_a_failure(place: &Place, rig: Rig) {
    let held = rig.wait(|status| matches!(status.state, ScrubState::Held(_)));
    let ScrubState::Held(why) = held.state else {
        unreachable!()
    };
    assert!(why.contains("the disk has failed"), "{why}");
    rig.inject(Control::PowerOn);
    assert!(place.state().starts_with("lost"), "{}", place.state());
    // Until the failure is cleared, the scrub fails again. Afterwards it begins anew.
    rig.scrubs.resume().expect("held");
    rig.wait(|status| matches!(status.state, ScrubState::Held(_)));
    crate::common::now(rig.disk.clear_failure())
        .expect("runs")
        .expect("cleared");
    rig.scrubs.resume().expect("held");
    let done = rig.to_the_end();
    assert_eq!((done.changed.sectors(), compared(&done)), (0, 0));
    assert_eq!(done.left, 0);
    let done = pass(&rig, place);
    assert_eq!((done.changed.sectors(), compared(&done)), (0, BLOCKS));
    rig.disk.stop().expect("stops");
}

#[test]
fn a_disk_whose_last_flush_fails_has_not_ended_in_order() {
    for fails in [0, 1] {
        let place = Place::new();
        let switch = Arc::<Switch>::default();
        let wrong = Arc::clone(&switch);
        let disk = Disk::start(options(1, false).0, || {
            let device = Faulty::new(Null::new(Sectors::new(SECTORS), 32), wrong);
            Ok::<_, Infallible>(Box::new(device) as Box<dyn Device>)
        });
        let disk = disk.expect("starts");
        let folder = place.folder.join("state");
        let scrubs = Scrubs::new(disk.clone(), "null", None, Some(&folder));
        scrubs.begin(&place.ask()).expect("it begins");
        while scrubs.status().expect("there is one").state != ScrubState::Done {
            sleep(Duration::from_millis(2));
        }
        switch.fail_flushes(fails);
        assert_eq!(disk.stop().is_err(), fails > 0);
        drop(scrubs);
        let state = if fails > 0 { "lost" } else { "clean" };
        assert!(place.state().starts_with(state), "{}", place.state());
    }
}

#[test]
fn hashes_are_refused_where_nothing_is_kept_and_nothing_of_others_is_touched() {
    let folder = Folder::new();
    let mine = folder.join("mine");
    fs::write(&mine, "mine").expect("room");
    let rig = Rig::emulated(USUAL);
    let hash = |path: PathBuf| ScrubAsk {
        hash: Some(path),
        ..soon()
    };
    let refused = rig.scrubs.begin(&hash(folder.join("hashes")));
    assert!(matches!(refused, Err(ScrubError::NotKept("hash"))));
    assert!(!folder.join("hashes").exists());
    rig.stop();
    let rig = Rig::emulated(Of {
        folder: Some(&folder),
        ..USUAL
    });
    for path in [&mine, &folder.join("."), Path::new("/dev/null")] {
        let refused = rig.scrubs.begin(&hash(path.to_owned()));
        let refused = refused.expect_err("not ours").to_string();
        assert!(
            refused.starts_with(&path.display().to_string()),
            "{refused}"
        );
    }
    assert_eq!(fs::read(&mine).expect("there"), b"mine");
    assert!(rig.scrubs.status().is_none());
    // Two disks do not share a file.
    rig.begin(&hash(folder.join("hashes")));
    rig.to_the_end();
    let elsewhere = Folder::new();
    let other = Rig::emulated(Of {
        folder: Some(&elsewhere),
        ..USUAL
    });
    let refused = other.scrubs.begin(&hash(folder.join("hashes")));
    let refused = refused.expect_err("in use").to_string();
    assert!(
        refused.contains("in use by this server, for another disk"),
        "{refused}"
    );
    other.stop();
    rig.stop();
}

#[test]
fn a_write_that_comes_as_soon_as_a_server_goes_on_is_noticed_though_the_disk_is_busy() {
    let place = Place::new();
    let rig = place.server(place.of());
    pass(&rig, &place);
    rig.stop();
    let hook: Hook = Arc::new(|request| {
        if request.op == Op::Read {
            // The disk's thread finds all there that comes meanwhile.
            sleep(Duration::from_millis(300));
        }
    });
    let rig = Rig::emulated(Of {
        hook: Some(&hook),
        ..place.of()
    });
    let inbox = Inbox::new(1);
    let read = request(&rig.disk, 0, Op::Read, 8, Arc::clone(&inbox) as Arc<_>);
    submit(&rig.disk, read);
    sleep(Duration::from_millis(50));
    rig.scrubs.resume_unfinished().expect("nothing in the way");
    rig.write(1600, 9);
    assert_eq!(inbox.wait().result, Ok(()));
    let mark = || fs::read(&place.watch).expect("there")[(20 << 10) + 12] >> 4 & 1;
    assert_eq!(mark(), 0);
    rig.stop();
}
