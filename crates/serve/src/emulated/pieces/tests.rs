//! Tests of stores of one file and of several: found, made, half made, and made by racing servers.

use super::*;
use headtime_testkit::Folder;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Barrier;

/// Bytes of every file but the last.
const PIECE: u64 = 1 << 20;
const WAYS: [Way; 2] = [Way::Unnamed, Way::Named];

fn pieces(path: &Path, bytes: u64) -> Pieces<'_> {
    Pieces {
        path,
        bytes,
        file_bytes: PIECE,
        create: true,
    }
}

/// The names and sizes in a folder, in order.
fn left(folder: &Path) -> Vec<(String, u64)> {
    let entries = fs::read_dir(folder).expect("is there").flatten();
    let mut left: Vec<_> = entries
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, entry.metadata().expect("is there").len())
        })
        .collect();
    left.sort();
    left
}

fn have(names: &[(&str, u64)]) -> Vec<(String, u64)> {
    let owned = names
        .iter()
        .map(|(name, bytes)| ((*name).to_owned(), *bytes));
    owned.collect()
}

const WHOLE: [(&str, u64); 3] = [("store", PIECE), ("store.1", PIECE), ("store.2", PIECE / 2)];

fn error(pieces: &Pieces<'_>) -> String {
    let opened = pieces.open().expect_err("refused").to_string();
    // A check beforehand reports the same error.
    assert_eq!(pieces.look().expect_err("refused").to_string(), opened);
    opened
}

#[test]
fn a_store_is_recognised_by_its_size() {
    let folder = Folder::new();
    let path = folder.join("store");
    let open = |bytes| pieces(&path, bytes).open();
    let refused = |bytes| error(&pieces(&path, bytes));
    let shown = path.display();
    let store = open(3 * PIECE / 2).expect("opens");
    let first = File::from(store[0].file().try_clone().expect("is open"));
    first.write_at(&[7], PIECE - 1).expect("there is room");
    drop(first);
    assert_eq!(
        refused(3 * PIECE / 2),
        format!("{shown} is in use by another server")
    );
    drop(store);
    assert_eq!(
        refused(PIECE / 2),
        format!("{shown} is a store of 1048576 bytes, not of 524288")
    );
    assert_eq!(
        refused(PIECE),
        format!("{shown}.1 belongs to a larger store; this one ends before it")
    );
    assert_eq!(
        refused(5 * PIECE / 2),
        format!("{shown}.1 is a store of 524288 bytes, not of 1048576")
    );
    assert!(!folder.join("store.2").exists());
    drop(open(3 * PIECE / 2).expect("opens"));
    fs::remove_file(folder.join("store.1")).expect("is there");
    assert_eq!(
        refused(3 * PIECE / 2),
        format!("{shown} is there, but {shown}.1, which belongs to it, is not")
    );
    assert!(!folder.join("store.1").exists());
}

#[test]
fn nothing_is_made_that_is_not_asked_for() {
    let folder = Folder::new();
    let path = folder.join("store");
    let shown = path.display();
    let asked = Pieces {
        create: false,
        ..pieces(&path, 5 * PIECE / 2)
    };
    assert_eq!(
        error(&asked),
        format!("{shown} is not there; with create = true a file of 2560KiB is made")
    );
    assert_eq!(left(&folder), have(&[]));
    // An empty file is not made into a store either.
    File::create(&path).expect("is made");
    assert_eq!(
        error(&asked),
        format!("{shown} is empty; with create = true it becomes a file of 2560KiB")
    );
    File::create(folder.join("store.1"))
        .and_then(|file| file.set_len(PIECE))
        .expect("is made");
    assert_eq!(
        error(&asked),
        format!("{shown}.1 is there, but {shown}, which belongs to it, is not")
    );
    assert_eq!(left(&folder), have(&[("store", 0), ("store.1", PIECE)]));
    drop(pieces(&path, 5 * PIECE / 2).open().expect("is asked for"));
    assert_eq!(left(&folder), have(&WHOLE));
    drop(asked.open().expect("is there"));
}

#[test]
fn what_cannot_be_a_store() {
    let refused = |path: &str| error(&pieces(Path::new(path), 4096));
    assert_eq!(refused("/dev/null"), "/dev/null is not a regular file");
    assert_eq!(
        refused("/dev/headtime-store"),
        "/dev/headtime-store is not there, and no file is made under /dev"
    );
    let folder = Folder::new();
    let no = folder.join("no");
    assert_eq!(
        refused(&no.join("store").display().to_string()),
        format!("{}: No such file or directory (os error 2)", no.display())
    );
    let path = folder.join("store");
    let large = Pieces {
        file_bytes: 1 << 62,
        ..pieces(&path, 1 << 62)
    };
    let error = large.open().expect_err("too large");
    assert!(
        matches!(
            error,
            EmulateError::Make(MakeError::TooLarge { .. } | MakeError::Limit { .. })
        ),
        "{error}"
    );
    assert_eq!(left(&folder), have(&[]));
}

/// A server completes every state in which a killed server may leave a store.
#[test]
fn a_store_that_was_left_half_made_is_completed() {
    for way in WAYS {
        for half in [
            &[("store", 0)][..],
            &[("store", 0), ("store.1", PIECE)],
            &[("store", 0), ("store.2", PIECE / 2)],
            &[("store", 0), ("store.1", PIECE), ("store.2", PIECE / 2)],
            &[("store", 0), ("store.1", 0)],
            // The killed server was about to remove the files that it had made.
            &[("store.1", PIECE), ("store.2", PIECE / 2)],
            &[("store.2", PIECE / 2)],
        ] {
            let folder = Folder::new();
            let path = folder.join("store");
            for (name, bytes) in half {
                let file = File::create(folder.join(name)).expect("is made");
                file.set_len(*bytes).expect("grows");
            }
            let asked = pieces(&path, 5 * PIECE / 2);
            asked.look().expect("can be completed");
            assert_eq!(left(&folder), have(half));
            drop(asked.open_by(way).expect("is completed"));
            assert_eq!(left(&folder), have(&WHOLE), "{half:?}");
        }
    }
}

#[test]
fn a_piece_with_data_is_no_half_made_one() {
    let folder = Folder::new();
    let path = folder.join("store");
    let shown = path.display();
    let data = vec![7; PIECE as usize];
    fs::write(folder.join("store.1"), &data).expect("writes");
    let asked = pieces(&path, 5 * PIECE / 2);
    let refused = format!("{shown}.1 is there, but {shown}, which belongs to it, is not");
    assert_eq!(error(&asked), refused);
    File::create(&path).expect("is made");
    assert_eq!(error(&asked), refused);
    assert_eq!(left(&folder), have(&[("store", 0), ("store.1", PIECE)]));
    assert!(fs::read(folder.join("store.1")).expect("is there") == data);
}

#[test]
fn what_was_made_goes_if_a_piece_is_not_to_be_had() {
    for way in WAYS {
        let folder = Folder::new();
        let path = folder.join("store");
        // The file belongs to another server and holds no data yet.
        let second = folder.join("store.1");
        let other = pieces(&second, PIECE).open().expect("is made");
        let asked = pieces(&path, 5 * PIECE / 2);
        let refused = asked.open_by(way).expect_err("refused").to_string();
        assert_eq!(
            refused,
            format!("{} is in use by another server", second.display())
        );
        assert_eq!(left(&folder), have(&[("store.1", PIECE)]));
        assert_eq!(other[0].check(), Ok(()));
    }
}

/// Returns true if a name leads to a file that this process has open.
fn is_open_here(path: &Path) -> bool {
    let same = |other: fs::Metadata| {
        let found = fs::metadata(path).expect("is there");
        (found.dev(), found.ino()) == (other.dev(), other.ino())
    };
    let open = fs::read_dir("/proc/self/fd").expect("/proc").flatten();
    open.filter_map(|entry| fs::metadata(entry.path()).ok())
        .any(same)
}

/// Rounds that run at the same time. Each round has `SERVERS` servers.
const BESIDE: usize = 8;
const SERVERS: usize = 4;

#[test]
fn of_servers_that_start_at_once_one_has_the_store_and_the_others_leave_nothing() {
    for (bytes, way) in [PIECE, 5 * PIECE / 2]
        .into_iter()
        .flat_map(|bytes| WAYS.map(|way| (bytes, way)))
    {
        std::thread::scope(|scope| {
            for _ in 0..BESIDE {
                scope.spawn(move || {
                    for _ in 0..3 {
                        let folder = Folder::new();
                        race(&folder, bytes, way);
                    }
                });
            }
        });
    }
}

fn race(folder: &Folder, bytes: u64, way: Way) {
    let path = folder.join("store");
    let asked = pieces(&path, bytes);
    let barrier = Barrier::new(SERVERS);
    let results: Vec<_> = std::thread::scope(|scope| {
        let start = || {
            barrier.wait();
            asked.open_by(way)
        };
        let threads: Vec<_> = (0..SERVERS).map(|_| scope.spawn(start)).collect();
        let results = threads.into_iter().map(|thread| thread.join());
        results.map(|result| result.expect("no panic")).collect()
    });
    let (mut won, mut lost) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(claims) => won.push(claims),
            Err(error) => lost.push(error),
        }
    }
    assert_eq!(won.len(), 1, "{lost:?}");
    for error in &lost {
        assert!(matches!(error, EmulateError::Locked { .. }), "{error}");
    }
    let expected: Vec<_> = asked
        .all()
        .map(|(path, bytes)| {
            assert!(is_open_here(&path), "{} is another's", path.display());
            let name = path.file_name().expect("has one");
            (name.to_string_lossy().into_owned(), bytes)
        })
        .collect();
    assert_eq!(left(folder), expected);
    for claim in won.iter().flatten() {
        assert_eq!(claim.check(), Ok(()));
    }
}

/// Some servers cannot start and remove the files that they have made. Other servers come between and serve. The files
/// that these serve have their names all the time.
#[test]
fn a_server_that_cannot_start_after_all_takes_nothing_from_one_that_does() {
    for (bytes, way) in [PIECE, 5 * PIECE / 2]
        .into_iter()
        .flat_map(|bytes| WAYS.map(|way| (bytes, way)))
    {
        let folder = Folder::new();
        let path = folder.join("store");
        let asked = pieces(&path, bytes);
        std::thread::scope(|scope| {
            for number in 0..SERVERS {
                scope.spawn(move || come_and_go(&asked, way, number % 2 == 0));
            }
        });
        let names = left(&folder);
        assert!(
            names.is_empty() || names.len() == asked.all().count(),
            "{names:?}"
        );
    }
}

/// Opens the store 40 times and either serves it or removes the files that it has made. A serving thread continues
/// until it has served. Another thread can lose the processor while it holds the store, for as long as 40 tries take.
///
/// # Panics
///
/// If a serving thread has not opened the store after two million tries, which take at least ten seconds or so.
fn come_and_go(asked: &Pieces<'_>, way: Way, serves: bool) {
    let mut served = false;
    let mut tries = 0;
    while tries < 40 || (serves && !served) {
        tries += 1;
        let claims = match asked.open_by(way) {
            Ok(claims) => claims,
            Err(error) => {
                assert!(tries < 2_000_000, "{error}");
                std::thread::yield_now();
                continue;
            }
        };
        if serves {
            for _ in 0..20 {
                for claim in &claims {
                    assert_eq!(claim.check(), Ok(()));
                }
                std::thread::yield_now();
            }
            served = true;
        } else {
            crate::backing::Made::among(&claims).remove();
        }
    }
}
