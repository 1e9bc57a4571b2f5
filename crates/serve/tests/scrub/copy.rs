//! Copies that a scrub makes. The image is the disk at one moment between two writes. Clients write meanwhile, and
//! servers, files and the machine fail.

mod range;

use super::common::{Inbox, submission, submit};
use super::rig::{Hook, Of, Rig, USUAL, soon, unreadable, write_page};
use headtime_sched::Op;
use headtime_serve::device::Control;
use headtime_serve::request::Data;
use headtime_serve::scrub::{ScrubAsk, ScrubError, ScrubState, ScrubStatus};
use headtime_testkit::Folder;
use headtime_units::{Extent, Nanos};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

const SECTORS: u64 = 1 << 14;

/// Of 8 KiB.
const BLOCKS: u64 = SECTORS / 16;

/// Paths of the data, of their copy, and of the scrub's files.
struct Place {
    folder: Folder,
    store: PathBuf,
    image: PathBuf,
    watch: PathBuf,
}

impl Place {
    fn new() -> Place {
        let folder = Folder::new();
        Place {
            store: folder.join("store.img"),
            image: folder.join("image"),
            watch: folder.join("state/disk0.copy"),
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
            copy: Some(self.image.clone()),
            ..soon()
        }
    }

    /// A copy of a part of the disk, with or without whole pages.
    fn ask_for(&self, part: &Range<u64>) -> ScrubAsk {
        ScrubAsk {
            range: Some((part.start, part.end)),
            ..self.ask()
        }
    }

    /// A server that continues the last server's scrubs.
    fn server(&self, of: Of<'_>) -> Rig {
        let rig = Rig::emulated(of);
        rig.scrubs.resume_unfinished().expect("nothing in the way");
        rig
    }

    fn say(&self, state: &str) {
        write_page(&self.watch, state, 16 << 10);
    }

    /// Asserts that the image equals the disk, except for some sectors, and that no file of the copy is left. The
    /// disk has ended.
    fn is_the_disk_but_for(&self, but_for: &[Extent]) {
        let bytes = read(&self.store).len() as u64;
        self.is_the_part_but_for(0..bytes, but_for);
    }

    /// As `is_the_disk_but_for`, for a part of the disk.
    fn is_the_part_but_for(&self, part: Range<u64>, but_for: &[Extent]) {
        let (image, mut disk) = (read(&self.image), read(&self.store));
        assert_eq!(image.len() as u64, part.end - part.start);
        for extent in but_for {
            let bytes = extent.start.get() as usize * 512..extent.end().get() as usize * 512;
            disk[bytes].fill(0);
        }
        let disk = &disk[part.start as usize..part.end as usize];
        let differ = image.chunks(4096).zip(disk.chunks(4096));
        let differ: Vec<usize> = (differ.enumerate())
            .filter(|(_, (image, disk))| image != disk)
            .map(|(page, _)| page)
            .collect();
        assert!(differ.is_empty(), "pages of 4 KiB: {differ:?}");
        assert!(!self.watch.exists());
    }
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).expect("there")
}

fn again(status: &ScrubStatus) -> u64 {
    status.copy.as_ref().expect("it copies").again
}

fn held(rig: &Rig) -> String {
    match rig
        .wait(|status| matches!(status.state, ScrubState::Held(_)))
        .state
    {
        ScrubState::Held(why) => why,
        _ => unreachable!(),
    }
}

/// Stops halfway.
fn halfway(rig: &Rig, place: &Place) {
    halfway_as(rig, &place.ask());
}

fn halfway_as(rig: &Rig, ask: &ScrubAsk) {
    rig.begin(ask);
    rig.wait(|status| status.left < BLOCKS * 3 / 4);
    rig.scrubs.pause().expect("under way");
    rig.wait(|status| status.state == ScrubState::Paused);
    // Reads under way may end.
    sleep(Duration::from_millis(100));
    assert!(rig.status().left > 200, "{:?}", rig.status());
}

#[test]
fn what_another_server_keeps_of_a_copy_is_left_to_it() {
    let place = Place::new();
    let rig = place.server(place.of());
    halfway(&rig, &place);
    let other = Rig::emulated(Of {
        store: None,
        ..place.of()
    });
    let refused = other.scrubs.resume_unfinished().expect_err("in use");
    assert!(
        refused
            .to_string()
            .contains("in use by this server, for another disk"),
        "{refused}"
    );
    other.stop();
    assert!(place.watch.exists());
    rig.stop();
    // As if the other had never been.
    let rig = place.server(place.of());
    rig.scrubs.resume().expect("paused");
    let done = rig.to_the_end();
    assert_eq!(done.left, 0);
    rig.stop();
    place.is_the_disk_but_for(&[]);
}

#[test]
fn an_image_is_the_disk_with_holes_for_zeroes() {
    let place = Place::new();
    let rig = place.server(place.of());
    for nth in 0..40 {
        rig.write(nth * 397 * 8 % SECTORS, nth as u8 + 1);
    }
    rig.begin(&place.ask());
    let done = rig.to_the_end();
    assert_eq!((done.left, again(&done)), (0, 0));
    assert_eq!(done.in_idle_time + done.outright, BLOCKS);
    rig.stop();
    place.is_the_disk_but_for(&[]);
    let allocated = place.image.metadata().expect("there").blocks() * 512;
    assert!(allocated <= 40 * 4096 + (64 << 10), "{allocated}");
    // The copy is over for the next server, and no other copy overwrites the image.
    let rig = place.server(place.of());
    assert_eq!(rig.status().state, ScrubState::Done);
    let refused = rig.scrubs.begin(&place.ask()).expect_err("there already");
    assert!(
        refused.to_string().contains("it is there already"),
        "{refused}"
    );
    rig.stop();
    place.is_the_disk_but_for(&[]);
}

/// Writer of pages. Each write goes to a place of the list, and its data are its number, which ascends.
struct Writer {
    places: Vec<u64>,
    inbox: Arc<Inbox>,
    next: u64,
    under_way: u64,
}

impl Writer {
    const PLACES: u64 = SECTORS / 8;

    fn new() -> Writer {
        Writer::at((0..Writer::PLACES).collect())
    }

    fn at(places: Vec<u64>) -> Writer {
        Writer {
            places,
            inbox: Inbox::new(64),
            next: 0,
            under_way: 0,
        }
    }

    fn place(&self, nth: u64) -> u64 {
        self.places[nth as usize * 7919 % self.places.len()]
    }

    /// One more, when fewer than `most` are under way.
    fn write(&mut self, rig: &Rig, most: u64) {
        while self.under_way >= most {
            assert_eq!(self.inbox.wait().result, Ok(()));
            self.under_way -= 1;
        }
        self.next += 1;
        self.under_way += 1;
        let mut buffer = rig.disk.pool().take(4096);
        for word in buffer.chunks_exact_mut(8) {
            word.copy_from_slice(&self.next.to_le_bytes());
        }
        let extent = Extent::at(self.place(self.next) * 8, 8);
        let to = Arc::clone(&self.inbox) as Arc<_>;
        let data = Data::Buffer(buffer);
        submit(
            &rig.disk,
            submission(&rig.disk, self.next, Op::Write, extent, data, to),
        );
    }

    fn finish(&mut self) {
        while self.under_way > 0 {
            assert_eq!(self.inbox.wait().result, Ok(()));
            self.under_way -= 1;
        }
    }

    /// One more after the other until the scrub is done, fewer than `most` under way, with time to rest between.
    fn until_done(&mut self, rig: &Rig, most: u64) {
        while rig.status().state != ScrubState::Done {
            self.write(rig, most);
            if self.next.is_multiple_of(8) {
                self.finish();
                sleep(Duration::from_millis(8));
            }
            assert!(self.next < 50_000, "{:?}", rig.status());
        }
    }

    /// Asserts that an image of the places from `first` on has a prefix of the writes, and no others. Returns the
    /// prefix's length.
    fn holds(&self, image: &[u8], first: u64) -> u64 {
        let has = first..first + image.len() as u64 / 4096;
        let word = |place: u64| {
            let at = (place - first) as usize * 4096;
            let page = &image[at..at + 4096];
            assert!(page.chunks(8).all(|word| word == &page[..8]), "{place}");
            u64::from_le_bytes(page[..8].try_into().expect("eight bytes"))
        };
        let line = has.clone().map(word).max().expect("there are");
        let mut last = BTreeMap::new();
        for nth in 1..=line {
            last.insert(self.place(nth), nth);
        }
        for place in has {
            let expected = last.get(&place).copied().unwrap_or(0);
            assert_eq!(word(place), expected, "{place} at {line}");
        }
        line
    }
}

#[test]
fn what_is_written_meanwhile_is_in_the_image_up_to_one_write_and_no_further() {
    each_until_some_is_copied_again(&[1, 3, 8], |most| {
        let place = Place::new();
        let rig = place.server(place.of());
        let mut writer = Writer::new();
        for _ in 0..200 {
            writer.write(&rig, 8);
        }
        rig.begin(&place.ask());
        writer.until_done(&rig, most);
        let done = rig.status();
        // Later writes are not in the image.
        (0..100).for_each(|_| writer.write(&rig, 8));
        writer.finish();
        let line = writer.holds(&read(&place.image), 0);
        assert!(
            (200..=writer.next - 100).contains(&line),
            "{most}: {line} of {}",
            writer.next
        );
        rig.stop();
        again(&done)
    });
}

/// Copies beside writes, for each number of writes under way, until one copy has had more than five blocks again. On a busy machine a copy may see
/// few. `copy` says how many it had.
fn each_until_some_is_copied_again(numbers: &[u64], copy: impl Fn(u64) -> u64) {
    for &most in numbers {
        assert!((0..20).any(|_| copy(most) > 5), "{most} under way");
    }
}

#[test]
fn a_copy_ends_though_its_last_blocks_are_written_to_all_the_time() {
    let place = Place::new();
    let rig = place.server(place.of());
    rig.begin(&place.ask());
    rig.wait(|status| status.left < 300);
    // Never idle from here on, and blocks are written to faster than one could be read after the other.
    let mut writer = Writer::at((0..30).collect());
    while rig.status().state != ScrubState::Done {
        writer.write(&rig, 16);
        assert!(writer.next < 50_000, "{:?}", rig.status());
        if rig.status().left > 60 {
            writer.finish();
            sleep(Duration::from_millis(3));
        }
    }
    let done = rig.status();
    writer.finish();
    assert!(done.outright > 0, "{done:?}");
    let line = writer.holds(&read(&place.image), 0);
    assert!(line <= writer.next, "{line} of {}", writer.next);
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
    let rig = place.server(Of {
        hook: Some(&hook),
        ..place.of()
    });
    halfway(&rig, &place);
    let marks = || {
        let file = read(&place.watch);
        let marks = file[20 << 10..][..4088]
            .iter()
            .map(|byte| byte.count_ones());
        u64::from(marks.sum::<u32>())
    };
    // So that marks are on file.
    let left = rig.wait(|status| marks() == BLOCKS - status.left).left;
    assert!(marks() > 100, "{}", marks());
    for nth in 0..50 {
        rig.write(nth * 16, 1);
    }
    rig.wait(|status| again(status) == 50);
    assert_eq!(
        (marks(), rig.status().left),
        (BLOCKS - left - 50, left + 50)
    );
    rig.scrubs.resume().expect("it rests");
    for nth in 0..200 {
        rig.write(nth * 7919 % 2048 * 8, nth as u8);
    }
    rig.to_the_end();
    assert_eq!(marked.load(Ordering::SeqCst), 0);
    assert!(seen.load(Ordering::SeqCst) >= 50);
    rig.stop();
}

#[test]
fn the_next_server_goes_on_if_nobody_else_writes_and_else_begins_anew() {
    for (sole_writer, state) in [
        (true, None),
        (false, None),
        (true, Some("watched 00000000-0000-0000-0000-000000000000")),
        (true, Some("lost by a test")),
    ] {
        let place = Place::new();
        let rig = place.server(place.of());
        (0..60).for_each(|nth| rig.write(nth * 272, 7));
        halfway(&rig, &place);
        let left = rig.status().left;
        rig.stop();
        if let Some(state) = state {
            place.say(state);
        }
        // This change goes unnoticed.
        let counts = sole_writer && state.is_none();
        if !counts {
            let store = File::options().write(true).open(&place.store);
            let written = store.expect("there").write_all_at(&[0; 4096], 0);
            written.expect("room");
        }
        let rig = place.server(Of {
            sole_writer,
            ..place.of()
        });
        // A paused scrub stays paused.
        sleep(Duration::from_millis(50));
        let status = rig.status();
        assert_eq!(status.state, ScrubState::Paused);
        rig.write(272, 9);
        rig.begin(&ScrubAsk::default());
        let done = rig.to_the_end();
        let read = done.in_idle_time + done.outright + done.in_gaps;
        match counts {
            true => assert!(status.left == left && read <= left + 1, "{left} {done:?}"),
            false => assert!(status.left == BLOCKS && read >= BLOCKS, "{done:?}"),
        }
        rig.stop();
        place.is_the_disk_but_for(&[]);
    }
}

#[test]
fn an_image_that_is_not_the_one_it_was_is_not_gone_on_with() {
    for what in ["exchanged", "shorter", "gone", "a link", "another disk"] {
        let place = Place::new();
        let rig = place.server(place.of());
        halfway(&rig, &place);
        rig.stop();
        let moved = place.folder.join("moved");
        match what {
            "exchanged" => {
                fs::copy(&place.image, &moved).expect("room");
                fs::rename(&moved, &place.image).expect("there");
            }
            "shorter" => {
                let image = File::options().write(true).open(&place.image);
                image.expect("there").set_len(1 << 20).expect("shorter");
            }
            "gone" => fs::rename(&place.image, &moved).expect("there"),
            "a link" => {
                fs::rename(&place.image, &moved).expect("there");
                std::os::unix::fs::symlink(&moved, &place.image).expect("room");
            }
            _ => {}
        }
        let rig = Rig::emulated(Of {
            device: if what == "another disk" {
                what
            } else {
                "a drive"
            },
            ..place.of()
        });
        let resumed = rig.scrubs.resume_unfinished();
        match what {
            // These can be made anew.
            "gone" | "shorter" => {
                resumed.expect(what);
                rig.begin(&ScrubAsk::default());
                let done = rig.to_the_end();
                assert_eq!(done.in_idle_time + done.outright, BLOCKS, "{what}");
                rig.stop();
                place.is_the_disk_but_for(&[]);
            }
            _ => {
                let text = resumed.expect_err(what).to_string();
                let why = match what {
                    "another disk" => "of another disk",
                    _ => "it is there already",
                };
                assert!(text.contains(why), "{what}: {text}");
                let refused = rig.scrubs.begin(&place.ask()).expect_err(what).to_string();
                assert!(refused.contains(why), "{what}: {refused}");
                rig.stop();
            }
        }
    }
}

#[test]
fn a_damaged_beginning_is_named_and_the_image_is_left_until_it_is_moved_away() {
    let place = Place::new();
    let rig = place.server(place.of());
    halfway(&rig, &place);
    rig.stop();
    let mut bytes = read(&place.watch);
    bytes[100] ^= 1;
    fs::write(&place.watch, bytes).expect("room");
    let image = read(&place.image);
    let named = |text: String| {
        let damage = format!(
            "{}, the state of a copy: its beginning",
            place.watch.display()
        );
        let start = format!("{}: it is there already", place.image.display());
        assert!(text.contains(&damage) && text.starts_with(&start), "{text}");
        assert!(text.contains("move it away to begin anew"), "{text}");
    };
    // The next server knows it, too.
    for _ in 0..2 {
        let rig = Rig::emulated(place.of());
        named(
            rig.scrubs
                .resume_unfinished()
                .expect_err("lost")
                .to_string(),
        );
        named(rig.scrubs.obstacle().expect("lost"));
        named(
            rig.scrubs
                .begin(&place.ask())
                .expect_err("lost")
                .to_string(),
        );
        rig.stop();
        assert!(read(&place.image) == image, "it is left as it is");
    }
    let rig = Rig::emulated(place.of());
    rig.scrubs.resume_unfinished().expect_err("lost");
    fs::rename(&place.image, place.folder.join("moved")).expect("there");
    rig.begin(&place.ask());
    assert_eq!(rig.scrubs.obstacle(), None);
    let done = rig.to_the_end();
    let why = done.copy.and_then(|copy| copy.why_anew).expect("told");
    assert!(why.contains("its beginning"), "{why}");
    rig.stop();
    place.is_the_disk_but_for(&[]);
}

#[test]
fn a_file_that_was_given_the_number_of_an_unfinished_copy_is_left_as_it_is() {
    for (sole_writer, bytes) in [(false, SECTORS * 512), (true, SECTORS * 512), (true, 9000)] {
        let place = Place::new();
        let rig = place.server(place.of());
        halfway(&rig, &place);
        rig.stop();
        // Somebody's own, made later; the file system gives it the number that is free.
        let inode = place.image.metadata().expect("there").ino();
        let mine = place.folder.join("mine");
        fs::write(&mine, vec![5; bytes as usize]).expect("room");
        fs::rename(&mine, &place.image).expect("room");
        let given = place.image.metadata().expect("there").ino();
        let header = read(&place.watch);
        let text = header[..16 << 10].split(|byte| *byte == 0).next();
        let text = std::str::from_utf8(text.expect("a text")).expect("JSON");
        let (was, is) = (
            format!("\"copy_inode\":{inode}"),
            format!("\"copy_inode\":{given}"),
        );
        assert!(text.contains(&was), "{text}");
        let mut text = text.replace(&was, &is).into_bytes();
        text.resize(12 << 10, 0);
        let watch = File::options().write(true).open(&place.watch);
        let written = watch.expect("there").write_all_at(&text, 0);
        written.expect("room");
        let rig = Rig::emulated(Of {
            sole_writer,
            ..place.of()
        });
        let resumed = rig.scrubs.resume_unfinished();
        let text = resumed.expect_err("not ours").to_string();
        assert!(text.contains("it is there already"), "{text}");
        let refused = rig.scrubs.begin(&place.ask()).expect_err("not ours");
        assert!(
            refused.to_string().contains("it is there already"),
            "{refused}"
        );
        rig.stop();
        assert!(read(&place.image) == vec![5; bytes as usize]);
    }
}

#[test]
fn a_copy_is_not_done_if_its_file_is_not_there_as_a_whole() {
    for what in ["gone", "exchanged", "shorter"] {
        let place = Place::new();
        let rig = place.server(place.of());
        (0..40).for_each(|nth| rig.write(nth * 272, 7));
        rig.begin(&place.ask());
        rig.wait(|status| status.left < BLOCKS * 3 / 4);
        match what {
            "gone" => fs::remove_file(&place.image).expect("there"),
            "exchanged" => {
                let mine = place.folder.join("mine");
                fs::write(&mine, "mine").expect("room");
                fs::rename(&mine, &place.image).expect("room");
            }
            // Zeroes that are copied there are holes, which make it no longer.
            _ => {
                let image = File::options().write(true).open(&place.image);
                let cut = image.expect("there").set_len((SECTORS - 8) * 512);
                cut.expect("shorter");
            }
        }
        let (why, image) = (held(&rig), place.image.display().to_string());
        let problem = match what {
            "shorter" => "bytes, and what is copied",
            _ => "it was removed, or another file is in its place",
        };
        assert!(why.contains(&image) && why.contains(problem), "{why}");
        let ending = "; `headtime scrub .. resume` begins anew";
        rig.wait(|status| matches!(&status.state, ScrubState::Held(why) if why.ends_with(ending)));
        if what == "exchanged" {
            let refused = rig.scrubs.resume().expect_err("not ours").to_string();
            assert!(refused.contains("it is there already"), "{refused}");
            assert_eq!(read(&place.image), b"mine");
            fs::remove_file(&place.image).expect("there");
        }
        rig.scrubs.resume().expect(what);
        rig.to_the_end();
        rig.stop();
        place.is_the_disk_but_for(&[]);
    }
}

#[test]
fn what_is_in_the_way_of_a_copy_that_begins_leaves_no_file_in_the_way_of_the_next() {
    let place = Place::new();
    let rig = place.server(place.of());
    // The file that notes writes cannot be made.
    let way = place.folder.join("state/disk0.copy.new");
    fs::create_dir_all(&way).expect("room");
    rig.scrubs.begin(&place.ask()).expect_err("in the way");
    assert!(!place.image.exists());
    fs::remove_dir(&way).expect("empty");
    halfway(&rig, &place);
    rig.stop();
    // An image that was there before stays.
    fs::create_dir(&way).expect("room");
    let rig = Rig::emulated(Of {
        sole_writer: false,
        ..place.of()
    });
    rig.scrubs.resume_unfinished().expect_err("in the way");
    assert!(place.image.exists());
    fs::remove_dir(&way).expect("empty");
    rig.begin(&place.ask());
    rig.to_the_end();
    rig.stop();
    place.is_the_disk_but_for(&[]);
}

#[test]
fn what_cannot_be_read_is_a_hole_and_is_copied_when_it_was_written() {
    let place = Place::new();
    // So large that what cannot be read is found before the rest is read.
    let of = Of {
        sectors: 1 << 16,
        ..place.of()
    };
    let rig = place.server(of);
    for lba in (0..SECTORS).step_by(8) {
        rig.write(lba, (lba / 8 % 250) as u8 + 1);
    }
    for (lba, sectors) in [(2048, 1), (5003, 7), (9000, 1)] {
        rig.inject(unreadable(lba, sectors, 0));
    }
    rig.begin(&ScrubAsk {
        block: Some(256 << 10),
        ..place.ask()
    });
    rig.wait(|status| status.unreadable.sectors() == 9);
    // Written sectors become readable again.
    rig.write(9000, 77);
    let done = rig.to_the_end();
    let lost = [Extent::at(2048, 1), Extent::at(5003, 7)];
    assert_eq!(done.unreadable.extents(), lost, "{done:?}");
    assert!(again(&done) > 0);
    rig.stop();
    place.is_the_disk_but_for(&lost);
    // The next server knows the unreadable sectors, too.
    let rig = place.server(of);
    assert_eq!(rig.status().unreadable.extents(), lost);
    rig.stop();
}

#[test]
fn hashes_and_a_copy_both_notice_what_is_written() {
    let place = Place::new();
    let hash = ScrubAsk {
        hash: Some(place.folder.join("hashes")),
        ..soon()
    };
    let rig = place.server(place.of());
    rig.begin(&hash);
    rig.to_the_end();
    halfway(&rig, &place);
    rig.write(160, 1);
    rig.stop();
    // The next server continues both. It notes writes from its start, before it resumes either.
    let rig = place.server(place.of());
    rig.write(320, 2);
    rig.begin(&ScrubAsk::default());
    rig.write(480, 3);
    rig.to_the_end();
    rig.write(640, 4);
    rig.stop();
    let rig = place.server(place.of());
    rig.begin(&hash);
    let done = rig.to_the_end();
    let compared = done.hashes.as_ref().expect("it hashes").compared;
    assert_eq!((done.changed.sectors(), compared), (0, BLOCKS - 4));
    rig.stop();
    let image = read(&place.image);
    assert_eq!(
        [160, 320, 480, 640].map(|lba| image[lba * 512]),
        [1, 2, 3, 0]
    );
}

#[test]
fn after_a_failure_of_the_disk_all_is_copied_anew() {
    let place = Place::new();
    let rig = place.server(Of {
        store: None,
        ..place.of()
    });
    rig.begin(&place.ask());
    rig.wait(|status| status.left < BLOCKS * 3 / 4);
    // So that it does not come to its end meanwhile on a busy machine.
    rig.scrubs.pause().expect("under way");
    // In the drive's buffer, and then gone with it.
    for nth in 0..40 {
        rig.write(nth * 397 * 8 % SECTORS, 1);
    }
    rig.scrubs.resume().expect("it rests");
    rig.inject(Control::PowerCut);
    if rig.disk.has_failed() {
        let why = held(&rig);
        assert!(why.contains("the disk has failed"), "{why}");
        rig.inject(Control::PowerOn);
        super::common::now(rig.disk.clear_failure())
            .expect("runs")
            .expect("cleared");
        rig.scrubs.resume().expect("held");
    } else {
        rig.inject(Control::PowerOn);
    }
    let done = rig.to_the_end();
    assert_eq!(done.left, 0);
    let mut disk = Vec::new();
    let inbox = Inbox::new(1);
    for lba in (0..SECTORS).step_by(8) {
        let to = Arc::clone(&inbox) as Arc<_>;
        let data = Data::Buffer(rig.disk.pool().take(4096));
        let extent = Extent::at(lba, 8);
        submit(
            &rig.disk,
            submission(&rig.disk, lba, Op::Read, extent, data, to),
        );
        match inbox.wait().data {
            Data::Buffer(buffer) => disk.extend_from_slice(&buffer),
            _ => panic!("it was read"),
        }
    }
    assert!(read(&place.image) == disk);
    // The disk may have failed.
    let _ = rig.disk.stop();
}

#[test]
fn one_that_is_stopped_is_forgotten_and_its_file_is_nobody_s() {
    let place = Place::new();
    let rig = place.server(place.of());
    halfway(&rig, &place);
    rig.scrubs.stop().expect("under way");
    rig.wait(|status| status.state == ScrubState::Stopped);
    assert!(!place.watch.exists());
    let refused = rig.scrubs.begin(&place.ask()).expect_err("there");
    assert!(
        refused.to_string().contains("it is there already"),
        "{refused}"
    );
    fs::remove_file(&place.image).expect("there");
    rig.begin(&place.ask());
    rig.to_the_end();
    rig.stop();
    place.is_the_disk_but_for(&[]);
}

#[test]
fn what_cannot_be_copied_to_is_refused_and_left_as_it_is() {
    let place = Place::new();
    let folder = &place.folder;
    let copy = |path: &Path| ScrubAsk {
        copy: Some(path.to_owned()),
        ..soon()
    };
    let rig = Rig::emulated(USUAL);
    let refused = rig.scrubs.begin(&copy(&place.image));
    assert!(matches!(refused, Err(ScrubError::NotKept("copy"))));
    assert!(!place.image.exists());
    rig.stop();
    let rig = place.server(place.of());
    let refused = |ask: &ScrubAsk| rig.scrubs.begin(ask).expect_err("refused").to_string();
    let mine = folder.join("mine");
    fs::write(&mine, vec![1; SECTORS as usize * 512]).expect("room");
    let (link, fifo) = (folder.join("link"), folder.join("fifo"));
    std::os::unix::fs::symlink(folder.join("nowhere"), &link).expect("room");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("every machine has it").success());
    let own = folder.join("state/disk0.scrub");
    for path in [
        &mine,
        &link,
        &fifo,
        &folder.join("."),
        &place.store,
        Path::new("/dev/null"),
    ] {
        let text = refused(&copy(path));
        assert!(text.starts_with(&path.display().to_string()), "{text}");
        assert!(text.contains("it is there already"), "{text}");
    }
    assert!(!folder.join("nowhere").exists());
    assert_eq!(read(&mine), vec![1; SECTORS as usize * 512]);
    let text = refused(&copy(&folder.join("no/where")));
    assert!(text.contains("No such file"), "{text}");
    let both = ScrubAsk {
        hash: Some(folder.join("hashes")),
        ..place.ask()
    };
    assert!(refused(&both).contains("not both"));
    let over = SECTORS * 512 + 1;
    for part in [0..over, 4096..4096] {
        assert!(refused(&place.ask_for(&part)).contains("allowed is a part"));
        assert!(!place.image.exists());
    }
    assert!(rig.scrubs.status().is_none());
    // One at a time, and each its own.
    halfway(&rig, &place);
    assert!(refused(&copy(&folder.join("other"))).contains("another copy"));
    let text = refused(&ScrubAsk {
        hash: Some(folder.join("hashes")),
        ..ScrubAsk::default()
    });
    assert!(text.contains("another hash"), "{text}");
    let elsewhere = Folder::new();
    let other = Rig::emulated(Of {
        folder: Some(&elsewhere),
        store: None,
        ..place.of()
    });
    for path in [&place.image, &own] {
        let text = other
            .scrubs
            .begin(&copy(path))
            .expect_err("in use")
            .to_string();
        assert!(text.contains("it is there already"), "{text}");
    }
    other.stop();
    rig.begin(&ScrubAsk::default());
    rig.to_the_end();
    rig.stop();
    place.is_the_disk_but_for(&[]);
}

#[test]
fn the_line_is_before_what_is_written_while_all_is_made_durable() {
    // Without idle time, and without gaps: all is read outright, of a disk that has no more than that.
    let place = Place::new();
    let of = Of {
        sectors: 64 * 16,
        ..place.of()
    };
    let rig = place.server(of);
    rig.write(0, 1);
    rig.begin(&ScrubAsk {
        idle: Some(Some(Nanos::from_secs(60))),
        ..place.ask()
    });
    rig.wait(|status| status.copy.as_ref().is_some_and(|copy| copy.is_settled));
    rig.write(0, 2);
    let done = rig.to_the_end();
    assert_eq!((done.outright, again(&done)), (64, 0));
    assert_eq!(read(&place.image)[..4096], [1; 4096]);
    rig.stop();
}
