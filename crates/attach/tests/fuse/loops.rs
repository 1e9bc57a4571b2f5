//! Tests of a loop device on the file.

use crate::common::{Directory, Kind, One, can_loop, needs, requests, run};
use headtime_attach::loopdev::{self, LoopDevice, Settings, User};
use std::fs;
use std::io::Write as _;
use std::path::Path;

const SETTINGS: Settings = Settings {
    block_bytes: 512,
    read_only: false,
    read_ahead_bytes: 128 << 10,
    max_request_bytes: 1 << 20,
};

/// Guard that detaches a loop device, also after a failed test.
struct Guard(LoopDevice);

impl Drop for Guard {
    fn drop(&mut self) {
        // An error cannot be reported here. The device is usually detached already.
        let _ = self.0.detach();
    }
}

fn attach(one: &One, settings: &Settings) -> (LoopDevice, Guard) {
    let device = loopdev::attach(&one.file(), settings).expect("attaches");
    (device, Guard(device))
}

fn setting(device: LoopDevice, name: &str) -> String {
    let path = device.path();
    let node = path.file_name().expect("has a name");
    let sysfs = Path::new("/sys/block").join(node).join("queue").join(name);
    fs::read_to_string(sysfs)
        .expect("is there")
        .trim()
        .to_owned()
}

#[test]
fn a_loop_device_is_set_up_and_leaves_nothing() {
    if !can_loop("a_loop_device_is_set_up_and_leaves_nothing") {
        return;
    }
    for sector_bytes in [512, 4096] {
        let kind = Kind {
            sector_bytes,
            ..Kind::default()
        };
        let one = One::new("loop", kind);
        let settings = Settings {
            block_bytes: sector_bytes,
            ..SETTINGS
        };
        let (device, _guard) = attach(&one, &settings);
        assert_eq!(device.file(), Some(one.file()));
        let found = loopdev::backed_by(one.mounted.mountpoint()).expect("/sys");
        assert_eq!(found, [device]);
        assert!(setting(device, "scheduler").contains("[none]"));
        assert_eq!(setting(device, "max_sectors_kb"), "1024");
        assert_eq!(setting(device, "read_ahead_kb"), "128");
        assert_eq!(setting(device, "rotational"), "1");
        assert_eq!(setting(device, "nr_requests"), "128");
        let block = setting(device, "logical_block_size");
        assert_eq!(block, sector_bytes.to_string());
        assert_eq!(device.users().expect("/proc"), []);
        device.reset();
        device.flush().expect("flushes");
        assert!(device.detach().expect("detaches"));
        assert_eq!(device.file(), None);
        assert_eq!(
            loopdev::backed_by(one.mounted.mountpoint()).expect("/sys"),
            []
        );
        one.end();
    }
}

#[test]
fn a_file_system_on_it_is_clean() {
    let test = "a_file_system_on_it_is_clean";
    if !can_loop(test) || !needs(test, "mkfs.ext4") {
        return;
    }
    for discards in [true, false] {
        let kind = Kind {
            bytes: 512 << 20,
            discards,
            ..Kind::default()
        };
        let one = One::new("ext4", kind);
        let at = Directory::new("ext4-on");
        let (device, _guard) = attach(&one, &SETTINGS);
        let node = device.path().to_str().expect("is ASCII").to_owned();
        let place = at.0.to_str().expect("is ASCII");
        run("mkfs.ext4", &["-q", "-F", &node]);
        let [_, writes, _, discarded] = requests(&one);
        assert_eq!(discarded > 0, discards);
        // Without discards nothing is written in their place.
        assert!(writes < 1000, "{writes} writes");
        run("mount", &[&node, place]);
        assert_eq!(
            device.users().expect("/proc"),
            [User::Mounted(at.0.clone())]
        );
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let sources = sources.to_str().expect("is UTF-8");
        run("cp", &["-r", sources, place]);
        run("sync", &["-f", place]);
        // Unmounting drops the page cache, so the comparison reads from the disk.
        run("umount", &[place]);
        run("fsck.ext4", &["-fn", &node]);
        run("mount", &["-o", "ro", &node, place]);
        run("diff", &["-r", sources, &format!("{place}/src")]);
        // A device that is detached while in use goes when the use ends.
        assert!(!device.detach().expect("is noted"));
        run("umount", &[place]);
        assert!(device.detach().expect("has gone"));
        one.end();
    }
}

/// The number of a detached device may belong to another device when the first user closes it.
#[test]
fn a_device_of_another_is_left_alone() {
    if !can_loop("a_device_of_another_is_left_alone") {
        return;
    }
    let (first, second) = (
        One::new("first", Kind::default()),
        One::new("second", Kind::default()),
    );
    // Other tests also take numbers.
    const TRIES: u32 = 100;
    let mut same = false;
    for _ in 0..TRIES {
        let (before, _guard) = attach(&first, &SETTINGS);
        assert!(before.detach().expect("detaches"));
        let (after, _guard) = attach(&second, &SETTINGS);
        if before.path() == after.path() {
            same = true;
            before.reset();
            assert_eq!(setting(after, "rotational"), "1");
            assert_eq!(before.file(), None);
            assert!(before.detach().expect("has gone already"));
        }
        assert_eq!(after.file(), Some(second.file()));
        assert!(after.detach().expect("detaches"));
        if same {
            break;
        }
    }
    assert!(same, "another number each time");
    first.end();
    second.end();
}

/// The kernel's own request for zeroes, on a disk with discards and on a disk without.
#[test]
fn a_loop_device_is_zeroed() {
    let test = "a_loop_device_is_zeroed";
    if !can_loop(test) || !needs(test, "blkdiscard") {
        return;
    }
    for discards in [true, false] {
        let kind = Kind {
            discards,
            ..Kind::default()
        };
        let one = One::new("zero", kind);
        let (device, _guard) = attach(&one, &SETTINGS);
        let node = device.path().to_str().expect("is ASCII").to_owned();
        // Never creates a file in place of a device.
        let mut open = fs::OpenOptions::new()
            .write(true)
            .open(&node)
            .expect("opens");
        open.write_all(&vec![0xAA; 8 << 20]).expect("writes");
        drop(open);
        run("blkdiscard", &["-z", "-o", "1M", "-l", "2M", &node]);
        let image = fs::read(one.file()).expect("reads");
        let (one_mib, three_mib) = (1 << 20, 3 << 20);
        assert!(image[..one_mib].iter().all(|byte| *byte == 0xAA));
        assert!(image[one_mib..three_mib].iter().all(|byte| *byte == 0));
        assert!(image[three_mib..8 << 20].iter().all(|byte| *byte == 0xAA));
        assert!(device.detach().expect("detaches"));
        one.end();
    }
}
