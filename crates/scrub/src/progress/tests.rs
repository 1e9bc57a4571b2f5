use super::*;
use headtime_testkit::Folder;

fn disk() -> Identity {
    Identity {
        device: "null".to_owned(),
        capacity: Sectors::new(1 << 20),
        sector_bytes: 512,
    }
}

fn plan() -> ScrubPlan {
    let identity = disk();
    ScrubPlan {
        range: Extent::at(0, identity.capacity.get()),
        part: ByteRange::whole(&identity),
        identity,
        block: Sectors::new(16),
        idle: None,
        keeps: None,
        promises: Promises::default(),
    }
}

/// Progress file with the first block done, an unreadable sector, eight changed sectors and a pause.
fn begun(path: &Path) -> ProgressFile {
    let none = FoundSectors::default();
    let says = Restored::new(plan(), &none, ScrubState::Running);
    let mut progress = ProgressFile::create(path, &says).unwrap();
    progress
        .found(Finding::Unreadable, Extent::at(5, 1))
        .unwrap();
    progress
        .found(Finding::Changed, Extent::at(800, 8))
        .unwrap();
    progress.state("paused").unwrap();
    progress.counts(LineCounts::of(&one(), &eleven())).unwrap();
    progress.changed(0);
    progress.write(|word| u64::from(word == 0)).unwrap();
    progress
}

fn found(extents: &[(u64, u64)]) -> FoundSectors {
    let mut found = FoundSectors::default();
    for (start, len) in extents {
        found.add(Extent::at(*start, *len));
    }
    found
}

fn one() -> FoundSectors {
    found(&[(5, 1)])
}

/// Eleven changed sectors. The addresses of three are unknown.
fn eleven() -> FoundSectors {
    let mut eleven = found(&[(800, 8)]);
    eleven.add_beyond(3);
    eleven
}

fn read_again(path: &Path) -> Restored {
    let (_, restored) = ProgressFile::open(path, &disk()).unwrap().unwrap();
    restored
}

fn is_whole(restored: &Restored) -> bool {
    restored.done[0] == 1
        && restored.unreadable.sectors() == 1
        && (restored.changed.sectors(), restored.changed.beyond()) == (8 + 3, 3)
        && restored.state == ScrubState::Paused
}

#[test]
fn what_the_kernel_could_not_write_is_written_again_bits_and_lines() {
    let folder = Folder::new();
    let path = folder.join("disk.scrub");
    let mut progress = begun(&path);
    // The medium has lost all data that were to be made durable.
    let lines_at = progress.pages.end();
    let length = progress.file.metadata().unwrap().len();
    assert!(length > lines_at);
    let zeroes = vec![0; (length - SUMMARY) as usize];
    progress.file.write_all_at(&zeroes, SUMMARY).unwrap();
    progress.all_changed();
    assert!(progress.is_dirty() && progress.is_behind());
    progress.counts(LineCounts::of(&one(), &eleven())).unwrap();
    progress.write(|word| u64::from(word == 0)).unwrap();
    assert_eq!(progress.file.metadata().unwrap().len(), length);
    drop(progress);
    assert!(is_whole(&read_again(&path)));
}

#[test]
fn lines_of_a_server_before_are_written_again_too() {
    let folder = Folder::new();
    let path = folder.join("disk.scrub");
    drop(begun(&path));
    let (mut progress, restored) = ProgressFile::open(&path, &disk()).unwrap().unwrap();
    assert!(is_whole(&restored));
    progress
        .found(Finding::Unreadable, Extent::at(7, 1))
        .unwrap();
    let lines_at = progress.pages.end();
    let length = progress.file.metadata().unwrap().len();
    let zeroes = vec![0; (length - lines_at) as usize];
    progress.file.write_all_at(&zeroes, lines_at).unwrap();
    progress.all_changed();
    progress.write(|word| u64::from(word == 0)).unwrap();
    drop(progress);
    assert_eq!(read_again(&path).unreadable.sectors(), 2);
}

#[test]
fn a_line_that_cannot_be_written_is_no_part_of_what_is_written_again() {
    let folder = Folder::new();
    let path = folder.join("disk.scrub");
    let mut progress = begun(&path);
    let writable = std::mem::replace(&mut progress.file, File::open(&path).unwrap());
    assert!(progress.done(Wall(1), None).is_err());
    // A finding is retained until it can be written.
    assert!(
        progress
            .found(Finding::Unreadable, Extent::at(9, 1))
            .is_err()
    );
    assert!(progress.is_behind());
    progress.file = writable;
    progress.all_changed();
    progress.write(|word| u64::from(word == 0)).unwrap();
    drop(progress);
    let restored = read_again(&path);
    assert_eq!(restored.unreadable.sectors(), 2);
    assert_eq!(
        (restored.state, restored.done_at),
        (ScrubState::Paused, None)
    );
}

/// A file of a finished scrub. Three sectors in two blocks cannot be read, and eight have changed.
fn all_done(path: &Path) -> u64 {
    let unreadable = found(&[(5, 1), (9, 1), (70, 1)]);
    let mut says = Restored::new(plan(), &found(&[(800, 8)]), ScrubState::Done);
    (says.unreadable, says.done_at) = (unreadable, Some(Wall(7)));
    says.done = vec![u64::MAX; 1 << 10];
    says.compared = Some((8, Some("a line\nand another".to_owned())));
    ProgressFile::create(path, &says).unwrap().pages.end()
}

/// Reads the file again after some of its bytes were changed.
fn damaged(path: &Path, damage: impl FnOnce(&mut Vec<u8>)) -> Restored {
    let mut bytes = std::fs::read(path).unwrap();
    damage(&mut bytes);
    std::fs::write(path, bytes).unwrap();
    let restored = read_again(path);
    // Damage is reported once, and the file is whole from then on.
    assert_eq!(read_again(path).damage, Damage::default());
    restored
}

fn not_done(restored: &Restored) -> Vec<u64> {
    let blocks = restored.plan.range_blocks();
    blocks.filter(|number| !restored.is_done(*number)).collect()
}

#[test]
fn what_is_whole_is_read_as_it_was_written() {
    let folder = Folder::new();
    let path = folder.join("disk.scrub");
    all_done(&path);
    let restored = damaged(&path, |_| {});
    assert_eq!((restored.damage.pages, not_done(&restored)), (0, vec![]));
    assert_eq!(restored.unreadable.sectors(), 3);
    assert_eq!(restored.done_at, Some(Wall(7)));
    let compared = (8, Some("a line\\nand another".to_owned()));
    assert_eq!(restored.compared, Some(compared));
}

#[test]
fn a_damaged_line_costs_the_block_that_it_is_of() {
    let folder = Folder::new();
    let path = folder.join("disk.scrub");
    for (line, blocks) in [
        ("unreadable 5 ", vec![0]),
        ("unreadable 70 ", vec![4]),
        ("looked 0 ", vec![0]),
        ("changed 800 ", vec![]),
    ] {
        all_done(&path);
        let restored = damaged(&path, |bytes| {
            let places = bytes.windows(line.len());
            let at = places
                .into_iter()
                .position(|bytes| bytes == line.as_bytes());
            bytes[at.unwrap() + line.len() - 2] ^= 1;
        });
        assert_eq!(restored.damage.pages, 1, "{line}");
        assert_eq!(not_done(&restored), blocks, "{line}");
        assert_eq!(restored.state.is_over(), blocks.is_empty(), "{line}");
        // The addresses of the changed sectors are lost, and their number is not.
        assert_eq!(restored.changed.sectors(), 8, "{line}");
    }
}

#[test]
fn a_damaged_page_costs_its_blocks_and_a_damaged_summary_nothing() {
    let folder = Folder::new();
    let path = folder.join("disk.scrub");
    let lines_at = all_done(&path) as usize;
    for damage in [&[1, 2][..], &[0; 4096]] {
        all_done(&path);
        let at = HEADER + PAGE;
        let restored = damaged(&path, |bytes| {
            bytes[at..at + damage.len()].copy_from_slice(damage)
        });
        let second: Vec<u64> = (4088 * 8..4088 * 16).collect();
        assert_eq!((restored.damage.pages, not_done(&restored)), (1, second));
        assert_eq!(restored.damage.sectors.sectors(), 4088 * 8 * 16);
    }
    all_done(&path);
    let restored = damaged(&path, |bytes| bytes[SUMMARY as usize] ^= 1);
    assert_eq!((restored.damage.pages, not_done(&restored)), (1, vec![]));
    // Blocks whose lines are lost are not done.
    all_done(&path);
    let restored = damaged(&path, |bytes| bytes.truncate(lines_at));
    assert_eq!(
        (restored.damage.pages, not_done(&restored)),
        (1, vec![0, 4])
    );
    assert_eq!(restored.changed.sectors(), 8);
}

#[test]
fn a_damaged_beginning_and_one_of_an_earlier_version_are_refused() {
    let folder = Folder::new();
    let path = folder.join("disk.scrub");
    for why in [
        "its beginning, the first 12288 bytes, is damaged",
        "of another version of headtime",
    ] {
        all_done(&path);
        let mut bytes = std::fs::read(&path).unwrap();
        let version = bytes.windows(7).position(|text| text == b"scrub 2");
        match why.contains("version") {
            true => bytes[version.unwrap() + 6] = b'1',
            false => bytes[9_000] ^= 1,
        }
        std::fs::write(&path, &bytes).unwrap();
        let refused = ProgressFile::open(&path, &disk()).unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
        assert!(refused.contains("move it away to begin anew"), "{refused}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
}
