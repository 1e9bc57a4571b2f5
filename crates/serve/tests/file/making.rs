//! Files that a server makes, and files that it leaves behind.

use crate::support::{Loop, Place, run};
use headtime_serve::backing::Lost;
use headtime_serve::device::Device;
use headtime_serve::disk::Addresses;
use headtime_serve::faulty::Faulty;
use headtime_serve::file::{self, File, FileOptions, OpenError};
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::sync::{Arc, Barrier};

const MIB: u64 = 1 << 20;

fn options(path: impl AsRef<Path>) -> FileOptions {
    FileOptions {
        size: Some(MIB),
        create: true,
        direct: false,
        ..FileOptions::new(path.as_ref())
    }
}

/// Error of opening a file. A look beforehand reports the same error.
fn refusal(options: &FileOptions) -> String {
    let opened = file::open(options).err().map(|error| error.to_string());
    let looked = file::look(options).err().map(|error| error.to_string());
    assert_eq!(opened, looked);
    opened.expect("it is refused")
}

/// The names in a folder.
fn names(place: &Place) -> Vec<String> {
    let entries = fs::read_dir(place.path(".")).expect("is there").flatten();
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(name).collect()
}

#[test]
fn a_file_is_made_if_that_is_asked_for_and_then_has_its_size() {
    let place = Place::new("create");
    let asked = FileOptions {
        size: Some(80 << 30),
        direct: true,
        ..options(place.path("new"))
    };
    assert_eq!(file::look(&asked).map(Addresses::bytes).ok(), asked.size);
    assert_eq!(names(&place), [""; 0], "who only looks makes nothing");
    let made = file::open(&asked).expect("is made");
    let bytes = |file: &File| {
        let geometry = file.geometry();
        geometry.capacity.bytes(geometry.sector_bytes)
    };
    assert_eq!(Some(bytes(&made)), asked.size);
    drop(made);
    let found = file::open(&asked).expect("it is there, of this size");
    assert_eq!(Some(bytes(&found)), asked.size);
    // A file that was there before is not removed.
    found.made().remove();
    drop(found);
    assert_eq!(file::look(&asked).map(Addresses::bytes).ok(), asked.size);
    let other = FileOptions {
        size: Some(MIB),
        ..asked
    };
    let shown = place.path("new").display().to_string();
    assert_eq!(
        refusal(&other),
        format!("{shown} exists and has 85899345920 bytes, not 1048576")
    );
}

#[test]
fn a_file_is_not_made_unless_that_is_asked_for() {
    let place = Place::new("not asked");
    let asked = options(place.path("new"));
    let shown = asked.path.display().to_string();
    let unasked = FileOptions {
        create: false,
        ..asked.clone()
    };
    assert_eq!(
        refusal(&unasked),
        format!("{shown} is not there; with create = true a file of 1MiB is made")
    );
    for create in [false, true] {
        let sizeless = FileOptions {
            size: None,
            create,
            ..asked.clone()
        };
        assert_eq!(
            refusal(&sizeless),
            format!("{shown} is not there; with size = \"4GiB\" and create = true a file is made")
        );
        let reading = FileOptions {
            read_only: true,
            create,
            ..asked.clone()
        };
        assert_eq!(refusal(&reading), format!("{shown} is not there"));
    }
    // An empty file of another owner is no disk, either.
    fs::write(&asked.path, "").expect("writes");
    assert_eq!(
        refusal(&unasked),
        format!("{shown} is empty; with create = true it becomes a file of 1MiB")
    );
    let sizeless = FileOptions {
        size: None,
        ..unasked.clone()
    };
    assert_eq!(
        refusal(&sizeless),
        format!("{shown} has 0 bytes; a disk has at least 1")
    );
    assert_eq!(file::look(&asked).map(Addresses::bytes).ok(), Some(MIB));
    assert_eq!(fs::metadata(&asked.path).expect("is there").len(), 0);
    drop(file::open(&asked).expect("becomes a disk"));
    drop(file::open(&unasked).expect("is one"));
    fs::remove_file(&asked.path).expect("is there");
    // An invalid size is reported before the file has a name.
    let odd = FileOptions {
        size: Some(0),
        ..asked.clone()
    };
    let error = file::open(&odd).expect_err("it has no bytes");
    assert!(matches!(error, OpenError::Nothing { .. }), "{error}");
    assert_eq!(names(&place), [""; 0]);
}

#[test]
fn a_file_is_not_made_in_dev_nor_behind_a_link() {
    let place = Place::new("dev");
    for (path, root) in [
        ("/dev/headtime-sdz", "/dev"),
        ("/dev/shm/headtime-sdz", "/dev"),
        ("/proc/headtime-sdz", "/proc"),
        ("/sys/headtime-sdz", "/sys"),
    ] {
        for (create, force) in [(false, false), (true, false), (true, true)] {
            let asked = FileOptions {
                create,
                force,
                ..options(path)
            };
            assert_eq!(
                refusal(&asked),
                format!("{path} is not there, and no file is made under {root}")
            );
            assert!(!Path::new(path).exists());
        }
    }
    let link = place.path("link");
    symlink("/dev/headtime-sdz", &link).expect("links");
    let refused = refusal(&options(&link));
    assert!(
        refused.ends_with("which is not there; no file is made behind a link"),
        "{refused}"
    );
    assert!(!Path::new("/dev/headtime-sdz").exists());
}

/// Number of rounds at a time, and number of servers in each round.
const BESIDE: usize = 8;
const SERVERS: usize = 4;

#[test]
fn of_servers_that_start_at_once_one_has_the_file_and_the_others_leave_nothing() {
    std::thread::scope(|scope| {
        for _ in 0..BESIDE {
            scope.spawn(|| (0..4).for_each(|_| race()));
        }
    });
}

fn race() {
    let place = Place::new("race");
    let asked = options(place.path("disk"));
    let barrier = Barrier::new(SERVERS);
    let winner = std::thread::scope(|scope| {
        let start = || {
            barrier.wait();
            let opened = file::open(&asked);
            // Until all have come to their end.
            barrier.wait();
            match opened {
                Ok(file) => Some(is_served(&file, &asked.path)),
                Err(OpenError::Locked { .. }) => None,
                Err(error) => panic!("{error}"),
            }
        };
        let threads: Vec<_> = (0..SERVERS).map(|_| scope.spawn(start)).collect();
        let ends = threads.into_iter().map(|thread| thread.join());
        ends.filter_map(|end| end.expect("no panic"))
            .collect::<Vec<_>>()
    });
    assert_eq!(winner, [true]);
    assert_eq!(names(&place), ["disk"]);
}

/// Returns true if the path leads to a file that this process has open, which only a winner has.
fn is_served(file: &File, path: &Path) -> bool {
    let inode = |path: &Path| {
        let found = fs::metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    };
    let open = fs::read_dir("/proc/self/fd").expect("/proc").flatten();
    let found = inode(path);
    found.is_some()
        && open
            .map(|entry| inode(&entry.path()))
            .any(|one| one == found)
        && file.check_backing() == Ok(())
}

/// Every second server that begins cannot start after all, and removes its file.
#[test]
fn a_server_that_cannot_start_after_all_takes_nothing_from_one_that_does() {
    let place = Place::new("give up");
    let asked = &options(place.path("disk"));
    let served: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..SERVERS)
            .map(|number| scope.spawn(move || come_and_go(asked, number % 2 == 0)))
            .collect();
        let served = threads.into_iter().map(|thread| thread.join());
        served.map(|served| served.expect("no panic")).sum()
    });
    assert!(served > 0, "nobody was to serve");
}

/// Number of times that the server has served.
fn come_and_go(asked: &FileOptions, serves: bool) -> usize {
    let mut served = 0;
    for _ in 0..40 {
        let Ok(file) = file::open(asked) else {
            continue;
        };
        match serves {
            true => {
                assert!(is_served(&file, &asked.path));
                std::thread::yield_now();
                assert_eq!(file.check_backing(), Ok(()));
                served += 1;
            }
            false => file.made().remove(),
        }
    }
    served
}

/// A server may wait for the lock of a file that then loses its name. The server then makes a new file.
#[test]
fn a_file_that_is_removed_while_another_server_waits_for_it_is_made_anew() {
    let place = Place::new("anew");
    let asked = options(place.path("disk"));
    let first = file::open(&asked).expect("is made");
    let alone = open_here(&asked.path);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                match file::open(&asked) {
                    Ok(second) => return assert!(is_served(&second, &asked.path)),
                    // It has waited its time, which the machine was busy otherwise.
                    Err(OpenError::Locked { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        // The second server waits for the lock at this point. It has opened the file twice: to look, and to lock.
        while open_here(&asked.path) < alone + 2 {
            std::thread::yield_now();
        }
        first.made().remove();
        assert!(!asked.path.exists());
        drop(first);
    });
}

/// Number of times that this process has a file open.
fn open_here(path: &Path) -> usize {
    let open = fs::read_dir("/proc/self/fd").expect("/proc").flatten();
    let same = |entry: &fs::DirEntry| fs::read_link(entry.path()).is_ok_and(|to| to == path);
    open.filter(same).count()
}

#[test]
fn a_file_that_is_deleted_replaced_or_cut_off_is_lost() {
    let place = Place::new("lost");
    let asked = options(place.path("disk"));
    let path = asked.path.clone();
    let open = || file::open(&asked).expect("opens");
    let file = open();
    assert_eq!(file.check_backing(), Ok(()));
    fs::remove_file(&path).expect("is there");
    let deleted = Lost::Deleted { path: path.clone() };
    assert_eq!(file.check_backing(), Err(deleted.clone()));
    assert_eq!(
        deleted.to_string(),
        format!("{} was deleted", path.display())
    );
    // A device in front of the file reports the loss, too.
    let faulty = Faulty::new(file, Arc::default());
    assert_eq!(faulty.check_backing(), Err(deleted));
    // Another server may serve there now; the two do not take each other's.
    let second = open();
    let replaced = Lost::Replaced { path: path.clone() };
    assert_eq!(faulty.check_backing(), Err(replaced));
    faulty.made().remove();
    assert_eq!(second.check_backing(), Ok(()));
    fs::File::options()
        .write(true)
        .open(&path)
        .and_then(|file| file.set_len(MIB / 2))
        .expect("shrinks");
    assert_eq!(
        second.check_backing().expect_err("too short").to_string(),
        format!("{} has 524288 bytes, 1048576 were served", path.display())
    );
}

#[test]
fn one_file_by_several_names_is_one_servers() {
    let place = Place::new("names");
    let asked = options(place.path("disk"));
    let file = file::open(&asked).expect("is made");
    let (hard, soft) = (place.path("hard"), place.path("soft"));
    fs::hard_link(&asked.path, &hard).expect("links");
    symlink("disk", &soft).expect("links");
    let bound = place.path("bound");
    fs::create_dir(&bound).expect("is made");
    let folder = place.path(".");
    let folder = folder.to_str().expect("UTF-8");
    let binding = run("mount", &["--bind", folder, bound.to_str().expect("UTF-8")]);
    let mut paths = vec![hard, soft];
    if binding.is_some() {
        paths.push(bound.join("disk"));
    }
    let claimed = |read_only: bool| {
        paths.iter().all(|path| {
            let again = FileOptions {
                read_only,
                ..options(path)
            };
            let refused = refusal(&again);
            refused.ends_with("another program has locked it")
        })
    };
    let refused = (claimed(false), claimed(true));
    drop(file);
    let reader = FileOptions {
        read_only: true,
        ..asked.clone()
    };
    let reader = file::open(&reader).expect("is there");
    let beside_reader = claimed(false);
    drop(reader);
    if binding.is_some() {
        run("umount", &[bound.to_str().expect("UTF-8")]);
    }
    assert_eq!(refused, (true, true));
    assert!(beside_reader, "what is read is not written by another");
}

#[test]
fn a_block_device_is_what_its_number_says() {
    let place = Place::new("block");
    let Some(device) = Loop::over(&place.file("image", MIB), &[]) else {
        return;
    };
    let link = place.path("disk");
    symlink(device.path(), &link).expect("links");
    let file = file::open(&FileOptions::new(&link)).expect("opens");
    assert_eq!(file.check_backing(), Ok(()));
    // The device's name goes when the device is removed. Another driver may then make a new device of that name.
    fs::remove_file(&link).expect("is there");
    assert_eq!(file.check_backing(), Ok(()));
    symlink("/dev/null", &link).expect("links");
    let replaced = Lost::Replaced { path: link.clone() };
    assert_eq!(file.check_backing(), Err(replaced.clone()));
    fs::remove_file(&link).expect("is there");
    fs::write(&link, "a file").expect("writes");
    assert_eq!(file.check_backing(), Err(replaced));
    fs::remove_file(&link).expect("is there");
    // Another node of the same number is the same device.
    let number = fs::metadata(device.path()).expect("is there").rdev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let [major, minor] = [major, minor].map(|number| number.to_string());
    let node = link.to_str().expect("UTF-8");
    if run("mknod", &[node, "b", &major, &minor]).is_some() {
        assert_eq!(file.check_backing(), Ok(()));
    }
}
