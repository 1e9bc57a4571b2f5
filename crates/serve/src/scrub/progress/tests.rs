use super::*;
use headtime_testkit::Folder;

fn disk() -> Identity {
    Identity {
        device: "null".to_owned(),
        capacity: Sectors::new(1 << 20),
        sector_bytes: 512,
    }
}

fn plan() -> Plan {
    let identity = disk();
    Plan {
        range: Extent::new(Lba::ZERO, identity.capacity),
        part: ByteRange::whole(&identity),
        identity,
        block: Sectors::new(16),
        idle: None,
        keeps: None,
        promises: Promises::default(),
    }
}

/// A file whose first block is done, with a sector that cannot be read, eight that have changed, and a pause.
fn begun(path: &Path) -> ProgressFile {
    let none = FoundSectors::default();
    let made = ProgressFile::create(path, &plan(), &none, &ScrubState::Running);
    let mut progress = made.unwrap();
    progress
        .found(Finding::Unreadable, Extent::at(5, 1))
        .unwrap();
    progress
        .found(Finding::Changed, Extent::at(800, 8))
        .unwrap();
    progress.state("paused").unwrap();
    progress.beyond(0, 3).unwrap();
    progress.changed(0);
    progress.write(|word| u64::from(word == 0)).unwrap();
    progress
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
    // Of what was to be made durable the medium has nothing.
    let lines_at = plan().pages().end();
    let length = progress.file.metadata().unwrap().len();
    assert!(length > lines_at);
    let zeroes = vec![0; (length - BEYOND) as usize];
    progress.file.write_all_at(&zeroes, BEYOND).unwrap();
    progress.all_changed();
    assert!(progress.is_dirty() && progress.is_behind());
    progress.beyond(0, 3).unwrap();
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
    let lines_at = plan().pages().end();
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
    assert!(progress.done(Wall(1)).is_err());
    // What was found is kept until it can be.
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
