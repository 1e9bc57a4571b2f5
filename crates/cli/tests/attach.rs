//! `headtime attach` and `headtime detach`, with file systems on the attached disks.

#![cfg(feature = "fuse")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a server runs in real time"
)]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Says why a test is skipped, if this machine has no FUSE or no loop devices for us.
fn can_attach(test: &str) -> bool {
    let node = File::options().write(true).open("/dev/loop-control");
    let there = node.is_ok() && Path::new("/dev/fuse").exists() && has("mkfs.ext4");
    if !there {
        println!("{test}: skipped, as it takes root, FUSE, loop devices and mkfs.ext4");
    }
    there
}

fn has(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("-V").stdin(Stdio::null());
    command.output().is_ok()
}

fn headtime(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_headtime"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("runs")
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = text(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A place for a configuration, mountpoints and stores; it goes at the end, if nothing is mounted.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let name = format!("headtime-attach-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        for directory in ["disks", "data", "other"] {
            fs::create_dir_all(path.join(directory)).expect("a directory");
        }
        Place(path)
    }

    fn path(&self, name: &str) -> String {
        let path = self.0.join(name);
        path.to_str().expect("is UTF-8").to_owned()
    }

    /// Two exports of one emulated drive, and a file.
    fn config(&self) -> String {
        let path = self.path("disks.toml");
        let store = self.path("store");
        let text = format!(
            "[[disk]]\nname = \"drive\"\nemulate = \"atlas10k\"\nstore = \"{store}\"\n\
             size = \"256MiB\"\ncreate = true\nscheduler = \"deadline\"\n\
             [[disk.export]]\nname = \"first\"\n[[disk.export]]\nname = \"second\"\n\
             read_only = true\n"
        );
        fs::write(&path, text).expect("is written");
        path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for directory in ["data", "other", "disks"] {
            // Only empty directories are removed, since a mounted file system must not be emptied.
            let _ = fs::remove_dir(self.0.join(directory));
        }
        for file in ["disks.toml", "store"] {
            let _ = fs::remove_file(self.0.join(file));
        }
        let _ = fs::remove_dir(&self.0);
    }
}

/// A server that has said that it is ready.
struct Attached {
    server: Child,
    /// Loop devices, by export.
    devices: Vec<String>,
}

impl Attached {
    fn begin(arguments: &[&str]) -> Attached {
        let mut server = Command::new(env!("CARGO_BIN_EXE_headtime"))
            .arg("attach")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut devices = Vec::new();
        let lines = BufReader::new(server.stdout.take().expect("piped")).lines();
        for line in lines.map_while(Result::ok) {
            if line.starts_with("ready") {
                return Attached { server, devices };
            }
            devices.extend(line.split(' ').nth(2).map(str::to_owned));
        }
        let mut said = String::new();
        let mut stderr = server.stderr.take().expect("piped");
        stderr.read_to_string(&mut said).expect("is UTF-8");
        panic!("{arguments:?}: {:?}: {said}", server.wait());
    }

    /// Waits for the server's end. Returns its output.
    fn end(self) -> Output {
        self.server.wait_with_output().expect("is waited for")
    }
}

/// Mounts and loop devices that are left in a place.
fn left(place: &Place) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("/proc");
    let here = place.0.to_str().expect("is UTF-8");
    let mut left: Vec<_> = mounts
        .lines()
        .filter(|line| line.contains(here))
        .map(str::to_owned)
        .collect();
    for entry in fs::read_dir("/sys/block").expect("/sys") {
        let file = entry.expect("/sys").path().join("loop/backing_file");
        let file = fs::read_to_string(file).unwrap_or_default();
        if file.contains(here) {
            left.push(file);
        }
    }
    left
}

#[test]
fn a_file_system_from_mkfs_to_detach() {
    if !can_attach("a_file_system_from_mkfs_to_detach") {
        return;
    }
    let place = Place::new("whole");
    let (config, disks, data) = (place.config(), place.path("disks"), place.path("data"));
    let attached = Attached::begin(&[&config, &disks, "--loop", "--read-ahead", "512KiB"]);
    let [first, second] = &attached.devices[..] else {
        panic!("two devices: {:?}", attached.devices);
    };
    let queue = Path::new("/sys/block").join(first.trim_start_matches("/dev/"));
    let ahead = fs::read_to_string(queue.join("queue/read_ahead_kb")).expect("/sys");
    assert_eq!(ahead.trim(), "512");
    let read_only = Path::new("/sys/block").join(second.trim_start_matches("/dev/"));
    let read_only = fs::read_to_string(read_only.join("ro")).expect("/sys");
    assert_eq!(read_only.trim(), "1");

    run("mkfs.ext4", &["-q", "-F", first]);
    run("mount", &[first, &data]);
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    run("cp", &["-r", sources, &data]);
    run("sync", &["-f", &data]);

    // In use, it is not taken away.
    let refused = headtime(&["detach", &disks]);
    assert_eq!(refused.status.code(), Some(4));
    let said = text(&refused.stderr);
    assert!(
        said.contains(&format!("{first} is mounted on {data}")) && said.contains("--force"),
        "{said}"
    );
    run("umount", &[&data]);
    run("fsck.ext4", &["-fn", first]);
    let detached = headtime(&["detach", &disks]);
    assert!(detached.status.success(), "{}", text(&detached.stderr));
    let ended = attached.end();
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    assert_eq!(left(&place), [""; 0]);

    // The store has the written files.
    let again = Attached::begin(&[&config, &disks, "--loop"]);
    run("mount", &["-o", "ro", &again.devices[0], &data]);
    run("diff", &["-r", sources, &format!("{data}/src")]);
    // With force the server is detached despite the mount.
    let detached = headtime(&["detach", &disks, "--force"]);
    assert!(detached.status.success(), "{}", text(&detached.stderr));
    assert!(again.end().status.success());
    assert_eq!(left(&place), [""; 0]);
    let nothing = headtime(&["detach", &disks]);
    assert_eq!(nothing.status.code(), Some(4));
    assert!(text(&nothing.stderr).contains("nothing is attached"));
}

#[test]
fn a_file_system_on_an_array() {
    if !can_attach("a_file_system_on_an_array") {
        return;
    }
    let place = Place::new("array");
    let (config, disks, data) = (
        place.path("disks.toml"),
        place.path("disks"),
        place.path("data"),
    );
    let disk = |name: &str| {
        let drive = "emulate = \"atlas10k\"\nstore = \"memory\"\nsize = \"32MiB\"";
        format!("[[disk]]\nname = \"{name}\"\n{drive}\nscheduler = \"deadline\"\n")
    };
    let names = ["one", "two", "three"];
    let array = format!("[[array]]\nname = \"data\"\nmembers = {names:?}\n");
    fs::write(&config, names.map(disk).concat() + &array).expect("is written");
    let attached = Attached::begin(&[&config, &disks, "--loop"]);
    let device = attached.devices[0].clone();
    // Two stripes of three chunks.
    let queue = Path::new("/sys/block").join(device.trim_start_matches("/dev/"));
    let ahead = fs::read_to_string(queue.join("queue/read_ahead_kb")).expect("/sys");
    assert_eq!(ahead.trim(), "384");
    run("mkfs.ext4", &["-q", "-F", &device]);
    run("mount", &[&device, &data]);
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    run("cp", &["-r", sources, &data]);
    run("umount", &[&data]);
    run("fsck.ext4", &["-fn", &device]);
    run("mount", &["-o", "ro", &device, &data]);
    run("diff", &["-r", sources, &format!("{data}/src")]);
    run("umount", &[&data]);
    let detached = headtime(&["detach", &disks]);
    assert!(detached.status.success(), "{}", text(&detached.stderr));
    assert!(attached.end().status.success());
    assert_eq!(left(&place), [""; 0]);
}

/// Told to end while a file system is mounted, it waits, and serves it until that is unmounted.
#[test]
fn a_signal_waits_for_who_uses_it() {
    if !can_attach("a_signal_waits_for_who_uses_it") {
        return;
    }
    let place = Place::new("signal");
    let (config, disks, data) = (place.config(), place.path("disks"), place.path("data"));
    let mut attached = Attached::begin(&[&config, &disks, "--loop"]);
    let first = attached.devices[0].clone();
    run("mkfs.ext4", &["-q", "-F", &first]);
    run("mount", &[&first, &data]);
    let pid = attached.server.id().to_string();
    run("kill", &["-TERM", &pid]);
    // The message comes before the wait.
    let stderr = attached.server.stderr.take().expect("piped");
    let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
    let waits = lines.find(|line| line.contains("waiting"));
    assert!(waits.is_some_and(|line| line.contains(&data)));
    fs::write(format!("{data}/late"), vec![7; 1 << 20]).expect("is served still");
    run("sync", &["-f", &data]);
    run("umount", &[&data]);
    // Read to its end, so that the server can write.
    let rest: Vec<_> = lines.collect();
    assert!(attached.end().status.success(), "{rest:?}");
    assert_eq!(left(&place), [""; 0]);
}

#[test]
fn what_a_killed_server_leaves_is_cleared_away() {
    if !can_attach("what_a_killed_server_leaves_is_cleared_away") {
        return;
    }
    let place = Place::new("killed");
    let (config, disks, data) = (place.config(), place.path("disks"), place.path("data"));
    let mut attached = Attached::begin(&[&config, &disks, "--loop"]);
    let first = attached.devices[0].clone();
    run("mkfs.ext4", &["-q", "-F", &first]);
    run("mount", &[&first, &data]);
    fs::write(format!("{data}/synced"), vec![7; 1 << 20]).expect("writes");
    run("sync", &["-f", &data]);
    attached.server.kill().expect("is ours");
    attached.end();
    assert_ne!(left(&place), [""; 0]);
    // A second server is refused with a hint at the dead mount.
    let refused = headtime(&["attach", &config, &disks]);
    assert_eq!(refused.status.code(), Some(4));
    let said = text(&refused.stderr);
    assert!(said.contains("headtime detach"), "{said}");
    let refused = headtime(&["detach", &disks]);
    assert_eq!(refused.status.code(), Some(4), "a file system is mounted");
    let cleared = headtime(&["detach", &disks, "--force"]);
    assert!(cleared.status.success(), "{}", text(&cleared.stderr));
    assert_eq!(left(&place), [""; 0]);
    // Flushed data are there, and the journal repairs the file system.
    let again = Attached::begin(&[&config, &disks, "--loop"]);
    run("mount", &[&again.devices[0], &data]);
    let synced = fs::read(format!("{data}/synced")).expect("is there");
    assert_eq!(synced, vec![7; 1 << 20]);
    run("umount", &[&data]);
    run("fsck.ext4", &["-fn", &again.devices[0]]);
    assert!(headtime(&["detach", &disks]).status.success());
    assert!(again.end().status.success());
    assert_eq!(left(&place), [""; 0]);
}

/// Without loop devices; the second signal does not wait for open files, and leaves no dead mount.
#[test]
fn files_alone_and_a_second_signal() {
    if !can_attach("files_alone_and_a_second_signal") {
        return;
    }
    let place = Place::new("twice");
    let (config, disks) = (place.config(), place.path("disks"));
    let mut attached = Attached::begin(&[&config, &disks]);
    assert!(attached.devices.is_empty());
    let open = File::open(format!("{disks}/first")).expect("opens");
    let pid = attached.server.id().to_string();
    run("kill", &["-TERM", &pid]);
    let stderr = attached.server.stderr.take().expect("piped");
    let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
    let waits = lines.find(|line| line.contains("waiting"));
    assert!(waits.is_some_and(|line| line.contains("open")));
    run("kill", &["-TERM", &pid]);
    let rest: Vec<_> = lines.collect();
    assert_eq!(attached.end().status.code(), Some(5), "{rest:?}");
    assert_eq!(left(&place), [""; 0]);
    drop(open);
}

#[test]
fn what_is_attached_is_not_served_or_attached_as_well() {
    if !can_attach("what_is_attached_is_not_served_or_attached_as_well") {
        return;
    }
    let place = Place::new("both");
    let (config, disks) = (place.config(), place.path("disks"));
    let attached = Attached::begin(&[&config, &disks]);
    let ends = |arguments: &[&str], code: i32| {
        let ended = headtime(arguments);
        assert_eq!(ended.status.code(), Some(code), "{arguments:?}");
        let said = text(&ended.stderr);
        assert!(said.contains("is in use"), "{said}");
    };
    ends(&["attach", &config, &place.path("other")], 4);
    let store = place.path("store");
    let socket = place.path("socket");
    for backend in [
        format!("emulate = \"atlas10k\"\nsize = \"256MiB\"\ncreate = true\nstore = \"{store}\""),
        format!("device = \"{store}\""),
        format!("device = \"{store}\"\nread_only = true"),
    ] {
        let text = format!(
            "[[disk]]\nname = \"drive\"\nscheduler = \"noop\"\n{backend}\n\
             [listen]\nnbd = \"unix:{socket}\"\n"
        );
        fs::write(&config, text).expect("is written");
        ends(&["serve", &config], 4);
        // Beside the other server, the configuration can be checked.
        ends(&["serve", &config, "--check"], 0);
    }
    assert!(!Path::new(&socket).exists());
    let detached = headtime(&["detach", &disks]);
    assert!(detached.status.success(), "{}", text(&detached.stderr));
    assert!(attached.end().status.success());
    assert_eq!(left(&place), [""; 0]);
}

/// Files in a directory would be hidden while disks are mounted there.
#[test]
fn a_directory_that_is_not_empty_is_refused() {
    let place = Place::new("not-empty");
    let (config, disks) = (place.config(), place.path("disks"));
    let (hidden, store) = (place.path("disks/hidden"), place.path("store"));
    fs::write(&hidden, "kept").expect("is written");
    let refused = || {
        let refused = headtime(&["attach", &config, &disks]);
        assert_eq!(refused.status.code(), Some(4));
        text(&refused.stderr)
    };
    let said = refused();
    assert!(
        said.contains("is not empty: `hidden` and whatever"),
        "{said}"
    );
    assert!(!Path::new(&store).exists(), "nothing is made");
    assert_eq!(fs::read_to_string(&hidden).expect("is there"), "kept");
    fs::remove_file(&hidden).expect("is there");
    // A store in the directory would be hidden, too. Only the start would create it.
    let within = fs::read_to_string(&config).expect("is there");
    fs::write(&config, within.replace(&store, &hidden)).expect("is written");
    let said = refused();
    assert!(said.contains("is not empty: `hidden`"), "{said}");
    assert!(!Path::new(&hidden).exists(), "it goes again");
    assert_eq!(left(&place), [""; 0]);
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let root = headtime(&["detach", "/proc"]);
    assert_eq!(root.status.code(), Some(4));
    let said = text(&root.stderr);
    assert!(said.contains("none of ours"), "{said}");
    let place = Place::new("not-ours");
    let config = place.config();
    let nowhere = headtime(&["attach", &config, &place.path("nowhere")]);
    assert_eq!(nowhere.status.code(), Some(4));
}

/// Programs may use the files before anybody is told that they are there.
#[test]
fn disks_are_attached_and_flushed_if_nothing_can_be_printed() {
    if !can_attach("disks_are_attached_and_flushed_if_nothing_can_be_printed") {
        return;
    }
    let place = Place::new("unprinted");
    let (config, disks) = (place.config(), place.path("disks"));
    let first = format!("{disks}/first");
    let full = || File::options().write(true).open("/dev/full").expect("is");
    // The reader at the other end never reads, and the pipe is full.
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    rustix::io::ioctl_fionbio(&writer, true).expect("a pipe");
    while writer.write(&[b'x'; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).expect("a pipe");
    let stuck = || writer.try_clone().expect("a pipe");
    for (round, (out, err)) in [
        (Stdio::from(full()), Stdio::from(full())),
        (Stdio::from(stuck()), Stdio::from(stuck())),
    ]
    .into_iter()
    .enumerate()
    {
        let mut server = Command::new(env!("CARGO_BIN_EXE_headtime"))
            .args(["attach", &config, &disks])
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .expect("starts");
        wait_until(|| Path::new(&first).exists(), "the disk's file");
        let data = [round as u8 + 1; 4096];
        let mut file = File::options().write(true).open(&first).expect("opens");
        file.write_all(&data).expect("writes");
        drop(file);
        // It has had time to end of itself.
        let mut read = [0; 4096];
        let mut file = File::open(&first).expect("opens");
        file.read_exact(&mut read).expect("reads");
        drop(file);
        assert_eq!(read, data);
        run("kill", &["-TERM", &server.id().to_string()]);
        let mut status = None;
        wait_until(
            || {
                status = server.try_wait().expect("is ours");
                status.is_some()
            },
            "the end",
        );
        assert_eq!(status.and_then(|status| status.code()), Some(0));
        assert_eq!(left(&place), [""; 0]);
        let kept = fs::read(place.path("store")).expect("is there");
        assert_eq!(kept[..4096], data);
    }
    drop(reader);
}

/// Waits, half a minute at most.
fn wait_until(mut holds: impl FnMut() -> bool, what: &str) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(30), "no {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
