//! Tests of names and files with one server at a time. Racing servers are in the tests of the modules that open files.

use super::*;
use headtime_testkit::Folder;
use rustix::fs::{AtFlags, CWD, linkat, unlinkat};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

const WAYS: [Way; 2] = [Way::Unnamed, Way::Named];
const BYTES: u64 = 1 << 20;

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("is there").flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Makes a file as for a disk.
fn make(path: &Path, mut way: Way) -> Claim {
    let place = Place::of(path).expect("a place");
    let new = New::file_in(&place, &mut way).expect("may be made");
    let new = new.expect("nothing is there");
    assert_eq!(new.locked, Ok(()));
    let file = Arc::clone(new.file());
    set_size(path, &file, BYTES).expect("there is room");
    assert!(new.publish(&mut way), "{way:?}");
    Claim::made(path, file, BYTES, true)
}

#[test]
fn a_file_is_locked_and_its_owners_and_whole_before_it_has_its_name() {
    for asked in WAYS {
        let folder = Folder::new();
        let path = folder.join("file");
        let mut way = asked;
        let place = Place::of(&path).expect("a place");
        let new = New::file_in(&place, &mut way).expect("may be made");
        let new = new.expect("nothing is there");
        assert_eq!(way, asked, "the file systems of tests have both");
        let len = fs::metadata(&path).map(|found| found.len()).ok();
        assert_eq!(len, (way == Way::Named).then_some(0));
        set_size(&path, new.file(), BYTES).expect("there is room");
        let file = Arc::clone(new.file());
        assert!(new.publish(&mut way));
        assert_eq!(names(&folder), ["file"], "{way:?}");
        let found = fs::metadata(&path).expect("is there");
        assert_eq!((found.len(), found.blocks()), (BYTES, 0));
        assert_eq!(found.permissions().mode() & 0o777, 0o600);
        assert_eq!(still_named(&path, &file), Ok(true));
        let other = File::open(&path).expect("is there");
        let shared = FlockOperation::NonBlockingLockShared;
        assert_eq!(flock(&other, shared), Err(Errno::WOULDBLOCK));
    }
}

#[test]
fn what_is_second_or_is_not_published_leaves_nothing() {
    for way in WAYS {
        let folder = Folder::new();
        let path = folder.join("file");
        let place = Place::of(&path).expect("a place");
        let new = || New::file_in(&place, &mut way.clone()).expect("may be made");
        drop(new().expect("nothing is there"));
        assert_eq!(names(&folder), [""; 0], "{way:?}");
        let first = match way {
            // The second file gets the name first.
            Way::Unnamed => {
                let first = new().expect("nothing is there");
                let second = make(&path, way);
                assert!(!first.publish(&mut way.clone()));
                second
            }
            Way::Named => {
                let first = make(&path, way);
                assert!(new().is_none());
                first
            }
        };
        assert_eq!(names(&folder), ["file"], "{way:?}");
        assert_eq!(first.check(), Ok(()));
    }
}

/// A file that takes the new file's place, or that another program has written to without a lock, is not removed.
#[test]
fn what_is_not_published_goes_only_if_it_is_what_was_made() {
    let folder = Folder::new();
    let path = folder.join("file");
    let place = Place::of(&path).expect("a place");
    let new = || {
        let new = New::file_in(&place, &mut { Way::Named }).expect("may be made");
        new.expect("nothing is there")
    };
    let first = new();
    fs::remove_file(&path).expect("is there");
    fs::write(&path, "").expect("writes");
    drop(first);
    assert_eq!(names(&folder), ["file"], "it is another's");
    fs::remove_file(&path).expect("is there");
    let second = new();
    fs::write(&path, "data").expect("writes");
    drop(second);
    assert_eq!(fs::read(&path).expect("is there"), b"data");
}

#[test]
fn a_file_of_which_the_name_is_taken_away_is_lost() {
    let folder = Folder::new();
    let (path, other) = (folder.join("file"), folder.join("other"));
    let claim = make(&path, Way::Unnamed);
    let shown = path.display();
    let lost = || claim.check().expect_err("lost").to_string();
    assert_eq!(claim.check(), Ok(()));

    fs::rename(&path, &other).expect("moves");
    assert_eq!(
        lost(),
        format!("{shown} was moved: the file that is served has another name")
    );
    fs::write(&path, "other").expect("writes");
    assert_eq!(lost(), format!("{shown} is another file now"));
    fs::rename(&other, &path).expect("moves back");
    assert_eq!(claim.check(), Ok(()), "and all is well again");

    let file = File::options().write(true).open(&path).expect("opens");
    file.set_len(BYTES + 512).expect("grows");
    assert_eq!(
        claim.check(),
        Ok(()),
        "what is longer holds all that is served"
    );
    file.set_len(BYTES - 1).expect("shrinks");
    let bytes = BYTES - 1;
    assert_eq!(
        lost(),
        format!("{shown} has {bytes} bytes, {BYTES} were served")
    );
    file.set_len(BYTES).expect("grows");
    assert_eq!(claim.check(), Ok(()));

    // The claim also holds if a link at the name leads to the file.
    fs::rename(&path, &other).expect("moves");
    symlink(&other, &path).expect("links");
    assert_eq!(claim.check(), Ok(()));
    fs::remove_file(&other).expect("is there");
    assert_eq!(lost(), format!("{shown} was deleted"));
    fs::remove_file(&path).expect("is there");
    assert_eq!(lost(), format!("{shown} was deleted"));
    fs::write(&path, "other").expect("writes");
    assert_eq!(lost(), format!("{shown} is another file now"));
    fs::remove_file(&path).expect("is there");
    fs::create_dir(&path).expect("is made");
    assert_eq!(lost(), format!("{shown} is another file now"));
}

#[test]
fn a_file_is_removed_by_who_made_it_while_it_is_empty_and_named() {
    let folder = Folder::new();
    let (path, other) = (folder.join("file"), folder.join("other"));
    let removed = |claim: &Arc<Claim>| {
        Made::among([claim]).remove();
        !path.exists()
    };
    let made = || Arc::new(make(&path, Way::Unnamed));
    assert!(removed(&made()));

    // The file was removed, and another server has made a new file at the path.
    let first = made();
    fs::remove_file(&path).expect("is there");
    assert!(!path.exists());
    Made::among([&first]).remove();
    let second = made();
    assert!(!removed(&first), "it is another's");
    assert_eq!(second.check(), Ok(()));
    // The file was moved, and a link at the path leads to it.
    fs::rename(&path, &other).expect("moves");
    symlink(&other, &path).expect("links");
    assert!(!removed(&second), "that is no name of its own");
    fs::remove_file(&path).expect("is there");
    fs::rename(&other, &path).expect("moves back");

    let file = File::options().write(true).open(&path).expect("opens");
    std::os::unix::fs::FileExt::write_at(&file, b"data", 0).expect("writes");
    assert!(!removed(&second), "it has data");
    file.set_len(0).expect("shrinks");
    assert!(removed(&second));

    // Once the device is dropped, the file is no longer locked.
    let third = made();
    let weak = Made::among([&third]);
    drop(third);
    weak.remove();
    assert!(path.exists());

    // A file that existed before is not removed. A file that could not be locked is not removed either.
    let file = Arc::new(OwnedFd::from(File::open(&path).expect("opens")));
    for claim in [
        Claim::found(&path, Arc::clone(&file), BYTES),
        Claim::made(&path, Arc::clone(&file), BYTES, false),
    ] {
        claim.remove();
        assert!(path.exists());
    }
}

#[test]
fn a_lock_on_a_file_without_its_name_is_worth_nothing() {
    let folder = Folder::new();
    let path = folder.join("file");
    let open = || OwnedFd::from(File::open(&path).expect("is there"));
    fs::write(&path, "one").expect("writes");
    let file = open();
    assert_eq!(still_named(&path, &file), Ok(true));
    fs::write(folder.join("two"), "two").expect("writes");
    fs::rename(folder.join("two"), &path).expect("replaces");
    assert_eq!(still_named(&path, &file), Ok(false));
    let file = open();
    fs::remove_file(&path).expect("is there");
    assert_eq!(still_named(&path, &file), Ok(false));
    // The name counts as lost even if the file has another name left.
    fs::write(&path, "three").expect("writes");
    let file = open();
    linkat(CWD, &path, CWD, folder.join("link"), AtFlags::empty()).expect("links");
    unlinkat(CWD, &path, AtFlags::empty()).expect("is there");
    assert_eq!(still_named(&path, &file), Ok(false));
    assert_eq!(still_named(&folder.join("link"), &file), Ok(true));
    assert_eq!(still_named(&path.join("below"), &file), Ok(false));
}

fn refusal(path: impl AsRef<Path>) -> String {
    match Place::of(path.as_ref()) {
        Ok(_) => panic!("{} is a place", path.as_ref().display()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn nothing_is_made_where_the_kernel_has_its_files() {
    let folder = Folder::new();
    let shown = folder.display();
    for root in ["dev", "proc", "sys"] {
        assert_eq!(
            refusal(format!("/{root}/sdz")),
            format!("/{root}/sdz is not there, and no file is made under /{root}")
        );
        // A path through a symbolic link is refused, too.
        symlink(format!("/{root}"), folder.join(root)).expect("links");
        assert_eq!(
            refusal(folder.join(root).join("sdz")),
            format!(
                "{shown}/{root}/sdz is not there, and no file is made under /{root}: its folder is /{root}"
            )
        );
        assert_eq!(
            refusal(format!("/usr/../{root}/./sdz")),
            format!(
                "/usr/../{root}/./sdz is not there, and no file is made under /{root}: its folder is /{root}"
            )
        );
    }
    if Path::new("/dev/shm").is_dir() {
        assert_eq!(
            refusal("/dev/shm/headtime-test"),
            "/dev/shm/headtime-test is not there, and no file is made under /dev"
        );
    }
    assert!(refusal("/proc/self/sdz").contains("no file is made under /proc"));
    // A folder whose name only begins like a forbidden folder is allowed.
    fs::create_dir(folder.join("devices")).expect("is made");
    assert!(Place::of(&folder.join("devices/sdz")).is_ok());
}

/// A file system mounted on a folder, and unmounted when dropped.
struct Mount(Folder);

impl Mount {
    fn new(arguments: &[&str]) -> Option<Mount> {
        let folder = Folder::new();
        let mounted = Command::new("mount").args(arguments).arg(&*folder).status();
        match mounted.is_ok_and(|status| status.success()) {
            true => Some(Mount(folder)),
            false => {
                println!("skipped: mount {arguments:?} is not permitted");
                None
            }
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&*self.0).status();
    }
}

#[test]
fn nothing_is_made_in_the_kernels_file_systems_wherever_they_are_mounted() {
    for (arguments, root) in [
        (&["--bind", "/dev"][..], "/dev"),
        (&["-t", "proc", "proc"], "/proc"),
        (&["-t", "sysfs", "sysfs"], "/sys"),
    ] {
        let Some(mount) = Mount::new(arguments) else {
            continue;
        };
        let refused = refusal(mount.0.join("sdz"));
        assert!(
            refused.ends_with(&format!("no file is made under {root}")),
            "{refused}"
        );
    }
    // A tmpfs other than /dev is allowed.
    if let Some(mount) = Mount::new(&["-t", "tmpfs", "tmpfs"]) {
        let path = mount.0.join("file");
        let claim = make(&path, Way::Unnamed);
        assert_eq!(claim.check(), Ok(()));
    }
}

#[test]
fn nothing_is_made_behind_a_link_or_without_a_folder_or_name() {
    let folder = Folder::new();
    let shown = folder.display();
    symlink("nowhere", folder.join("link")).expect("links");
    assert_eq!(
        refusal(folder.join("link")),
        format!(
            "{shown}/link is a link to nowhere, which is not there; no file is made behind a link"
        )
    );
    assert_eq!(
        refusal(folder.join("no/file")),
        format!("{shown}/no: No such file or directory (os error 2)")
    );
    fs::write(folder.join("file"), "").expect("writes");
    assert_eq!(
        refusal(folder.join("file/file")),
        format!("{shown}/file: Not a directory (os error 20)")
    );
    for path in ["new/", "new/.", ".."] {
        assert!(refusal(folder.join(path)).ends_with("is no name for a file"));
    }
}

#[test]
fn a_log_is_made_behind_links_but_not_in_dev() {
    let folder = Folder::new();
    let link = |from: &str, to: &str| symlink(to, folder.join(from)).expect("links");
    link("a", "b");
    link("b", "../c");
    assert!(may_make(&folder.join("a")).is_ok());
    link("d", "e");
    link("e", "/dev/sdz");
    let refused = may_make(&folder.join("d")).expect_err("under /dev");
    assert_eq!(
        refused.to_string(),
        "/dev/sdz is not there, and no file is made under /dev"
    );
    link("f", "f");
    assert!(may_make(&folder.join("f")).is_err());
}

#[test]
fn a_file_that_the_process_may_not_have_is_refused_without_being_made() {
    let folder = Folder::new();
    let path = folder.join("file");
    let place = Place::of(&path).expect("a place");
    for way in WAYS {
        let new = New::file_in(&place, &mut way.clone()).expect("may be made");
        let new = new.expect("nothing is there");
        let error = set_size(&path, new.file(), 1 << 62).expect_err("too large");
        assert!(
            matches!(error, MakeError::TooLarge { .. } | MakeError::Limit { .. }),
            "{error}"
        );
        drop(new);
        assert_eq!(names(&folder), [""; 0]);
    }
}
