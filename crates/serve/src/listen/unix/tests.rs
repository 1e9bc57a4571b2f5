use super::*;
use crate::listen::address::Access;
use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// A temporary folder, which is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("headtime-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).expect("makes a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running server may have a full queue of waiting clients. A second server must not wait in that queue.
#[test]
fn a_server_that_is_too_busy_to_answer_lives() {
    let folder = Folder::new("busy");
    let path = folder.0.join("socket");
    let address = SocketAddrUnix::new(&path).expect("short enough");
    let server =
        rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
    rustix::net::bind(&server, &address).expect("binds");
    rustix::net::listen(&server, 0).expect("listens");
    let _first = net::UnixStream::connect(&path).expect("waits to be accepted");
    let error = Listen::unix(&path).bind().expect_err("somebody listens");
    assert!(matches!(error, BindError::InUse(_)), "{error}");
    drop(server);
    Listen::unix(&path).bind().expect("nobody does any more");
}

#[test]
fn what_another_put_there_stays() {
    let folder = Folder::new("another");
    let path = folder.0.join("socket");
    let bound = Listen::unix(&path).bind().expect("binds");
    std::fs::remove_file(&path).expect("removes");
    std::fs::write(&path, "valuable").expect("writes");
    drop(bound);
    assert_eq!(std::fs::read(&path).expect("is there"), b"valuable");
    let error = Listen::unix(&path).bind().expect_err("a file");
    assert!(matches!(error, BindError::NotASocket(_)), "{error}");
}

#[test]
fn a_link_to_a_living_server_is_not_replaced() {
    let folder = Folder::new("link");
    let (path, link) = (folder.0.join("socket"), folder.0.join("link"));
    let _bound = Listen::unix(&path).bind().expect("binds");
    std::os::unix::fs::symlink(&path, &link).expect("links");
    let error = Listen::unix(&link).bind().expect_err("a link");
    assert!(matches!(error, BindError::NotASocket(_)), "{error}");
    assert!(link.exists());
}

/// Another server holds a folder's lock only briefly, but a different program may hold the lock for ever.
#[test]
fn a_folder_that_somebody_has_locked_is_waited_for_with_a_bound() {
    let folder = Folder::new("locked");
    let path = folder.0.join("socket");
    let lock = std::fs::File::open(&folder.0).expect("opens");
    rustix::fs::flock(&lock, FlockOperation::LockExclusive).expect("locks");
    let error = Listen::unix(&path).bind().expect_err("it is locked");
    assert!(matches!(error, BindError::FolderLocked(_)), "{error}");
    drop(lock);
    Listen::unix(&path).bind().expect("it is not any more");
}

/// A group to which no user here belongs.
const FOREIGN: u32 = 54_321;

fn socket(path: &Path, mode: u32, group: Option<u32>) -> UnixSocket {
    UnixSocket {
        path: path.to_owned(),
        access: Access { mode, group },
    }
}

/// Permissions and group of a file.
fn of(path: &Path) -> (u32, u32) {
    let found = std::fs::symlink_metadata(path).expect("is there");
    (found.mode() & 0o7777, found.gid())
}

/// Returns a group other than the process's own, to which the process may give a file. A user other than root who is in
/// one group only has no such group.
fn other_group() -> Option<u32> {
    if may_give_to(Gid::from_raw(FOREIGN)) {
        return Some(FOREIGN);
    }
    let groups = getgroups().expect("there are some");
    let other = groups.into_iter().find(|group| *group != getegid());
    other.map(Gid::as_raw)
}

/// Runs a test without the right to give files away.
fn without_the_right_to_give(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // Capabilities belong to the thread, so the other tests keep theirs.
            let mut sets = capabilities(None).expect("has some");
            sets.effective.remove(CapabilitySet::CHOWN);
            rustix::thread::set_capabilities(None, sets).expect("fewer are always allowed");
            test();
        });
        thread.join().expect("no panic");
    });
}

/// A watcher reads the file's attributes all the time, even before the file exists. The group has permissions only once
/// the file belongs to the group. Nobody ever has more permissions than were asked for.
#[test]
fn a_socket_has_no_more_permissions_than_asked_for_at_any_time() {
    let groups = [other_group(), None];
    for group in groups {
        let folder = Folder::new("watched");
        let path = folder.0.join("socket");
        let own = of(&folder.0.join(".")).1;
        let last = (0o660, group.unwrap_or(own));
        let (stop, seen) = (AtomicBool::new(false), Mutex::new(BTreeSet::new()));
        // The watcher has seen the file both while it was being made and afterwards.
        let has_seen_both = || {
            let seen = seen.lock().expect("no panic");
            seen.contains(&last) && seen.iter().any(|(mode, _)| *mode == 0o600)
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // The kernel does not read a file's attributes atomically. The group from before a change may come
                // together with the permissions from after the change. Attributes that are read twice in the same state
                // are real.
                let look = || std::fs::symlink_metadata(&path).ok();
                let facts = |found: Metadata| (found.ino(), found.mode() & 0o7777, found.gid());
                while !stop.load(Ordering::Relaxed) {
                    let (first, second) = (look().map(facts), look().map(facts));
                    if let Some((_, mode, group)) = first.filter(|_| first == second) {
                        seen.lock().expect("no panic").insert((mode, group));
                    }
                }
            });
            for round in 0..100_000 {
                let bound = socket(&path, last.0, group).bind().expect("binds");
                drop(bound);
                if round >= 5_000 && has_seen_both() {
                    break;
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        for found in seen.lock().expect("no panic").iter() {
            let (mode, group) = found;
            assert!(*mode == 0o600 || *found == last, "{mode:o} {group}");
        }
        assert!(has_seen_both(), "{seen:?}");
    }
}

#[test]
fn a_socket_is_given_to_its_group() {
    let Some(group) = other_group() else {
        println!("skipped: there is no other group");
        return;
    };
    let folder = Folder::new("given");
    let path = folder.0.join("socket");
    for mode in [0o660, 0o620, 0o600, 0o666] {
        let socket = socket(&path, mode, Some(group));
        assert!(socket.may_be_given());
        let _bound = socket.bind().expect("binds");
        assert_eq!(of(&path), (mode, group));
    }
}

#[test]
fn a_group_that_a_socket_cannot_be_given_to_is_an_error_that_says_what_to_do() {
    let folder = Folder::new("foreign");
    let path = folder.0.join("socket");
    let socket = socket(&path, 0o660, Some(FOREIGN));
    without_the_right_to_give(|| {
        assert!(!socket.may_be_given());
        let error = socket.bind().expect_err("not allowed");
        let expected = format!(
            "unix:{}: its file cannot be given to group {FOREIGN}: Operation not permitted (os error 1); \
             let the server's user join that group (in a systemd unit: SupplementaryGroups=), or give the server CAP_CHOWN",
            path.display()
        );
        assert_eq!(error.to_string(), expected);
    });
    assert!(!path.exists(), "what was made is removed");
}

/// Files in a directory with the setgid bit belong to the directory's group, for any maker.
#[test]
fn a_directory_gives_its_group_to_who_is_not_in_it() {
    let folder = Folder::new("setgid");
    let given = std::os::unix::fs::chown(&folder.0, None, Some(FOREIGN));
    if given.is_err() {
        println!("skipped: a directory cannot be given to another group");
        return;
    }
    let permissions = std::fs::Permissions::from_mode(0o2755);
    std::fs::set_permissions(&folder.0, permissions).expect("is ours");
    let path = folder.0.join("socket");
    without_the_right_to_give(|| {
        let socket = socket(&path, 0o660, Some(FOREIGN));
        assert!(socket.may_be_given());
        let _bound = socket.bind().expect("binds");
        assert_eq!(of(&path), (0o660, FOREIGN));
    });
}

/// A user with write access to the directory may replace the file before its permissions are set.
#[test]
fn what_has_taken_the_sockets_place_is_left_alone() {
    let folder = Folder::new("replaced");
    let (path, valuable) = (folder.0.join("socket"), folder.0.join("valuable"));
    std::fs::write(&valuable, "").expect("writes");
    let chown = std::os::unix::fs::chown;
    for what in ["a link to a file", "a file", "another's socket"] {
        match what {
            "a link to a file" => std::os::unix::fs::symlink(&valuable, &path).expect("links"),
            "a file" => std::fs::hard_link(&valuable, &path).expect("links"),
            _ => drop(net::UnixListener::bind(&path).expect("binds")),
        }
        if what == "another's socket" && chown(&path, Some(54_321), None).is_err() {
            println!("skipped: a socket cannot be given to another user");
            break;
        }
        let found = rustix::fs::lstat(&path).expect("is there");
        for group in [None, Some(getegid().as_raw().wrapping_add(1))] {
            let error = socket(&path, 0o666, group).missing(&found);
            let error = error.expect_err(what);
            assert!(matches!(error, BindError::Replaced(_)), "{what}: {error}");
        }
        std::fs::remove_file(&path).expect("is there");
    }
}

#[test]
fn a_directory_that_keeps_out_who_the_socket_lets_in_is_named() {
    let folder = Folder::new("closed");
    let inner = folder.0.join("inner");
    std::fs::create_dir(&inner).expect("makes a folder");
    let folder = std::fs::canonicalize(&folder.0).expect("is there");
    let inner = folder.join("inner");
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("is ours");
    };
    let closed = |mode, group| socket(&inner.join("socket"), mode, group).closed_by();
    mode(&folder, 0o711);
    mode(&inner, 0o711);
    if let Some(above) = closed(0o666, None) {
        println!("skipped: {} is closed", above.display());
        return;
    }
    let own = of(&inner).1;
    for (outer, within, socket, group, expected) in [
        (0o711, 0o711, 0o660, Some(FOREIGN), None),
        (0o711, 0o710, 0o660, Some(FOREIGN), Some(&inner)),
        (0o710, 0o700, 0o660, Some(FOREIGN), Some(&folder)),
        (0o711, 0o710, 0o660, Some(own), None),
        (0o711, 0o701, 0o660, Some(own), Some(&inner)),
        (0o711, 0o710, 0o666, Some(own), Some(&inner)),
        (0o701, 0o701, 0o666, None, None),
        (0o711, 0o2710, 0o660, None, None),
        (0o700, 0o700, 0o660, None, Some(&folder)),
        // Only the owner may connect anyway.
        (0o700, 0o700, 0o600, None, None),
    ] {
        mode(&folder, outer);
        mode(&inner, within);
        let found = closed(socket, group);
        assert_eq!(
            found.as_ref(),
            expected,
            "{outer:o} {within:o} {socket:o} {group:?}"
        );
    }
    mode(&folder, 0o711);
}
