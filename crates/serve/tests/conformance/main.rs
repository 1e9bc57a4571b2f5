//! Conformance suite of devices, with one line for each device.

mod rig;
mod suite;

use headtime_disk::profile::by_name;
use headtime_serve::device::Device;
use headtime_serve::emulated::{self, StoreSpec};
use headtime_serve::faulty::{Faulty, Switch};
use headtime_serve::file;
use headtime_serve::header::{self, CreateOptions, Header};
use headtime_serve::null::Null;
use headtime_units::Sectors;
use rig::{Folder, Subject};
use std::sync::Arc;

const SECTORS: u64 = 1 << 16;

fn emulate(drive: &str, store: StoreSpec) -> Box<dyn Device> {
    let profile = by_name(drive).expect("it is shipped");
    let size = SECTORS * u64::from(profile.geometry.sector_bytes);
    let options = emulated::EmulatedOptions {
        size: Some(size),
        create: true,
        ..emulated::EmulatedOptions::new(profile, store)
    };
    Box::new(emulated::open(options).expect("opens"))
}

fn file(folder: &Folder, direct: bool) -> file::File {
    file::open(&file::FileOptions {
        direct,
        size: Some(SECTORS * 4096),
        create: true,
        depth: 8,
        ..file::FileOptions::new(folder.join("disk"))
    })
    .expect("opens")
}

#[test]
fn the_null_device_is_a_device() {
    suite::run(Subject {
        open: &|_| Box::new(Null::new(Sectors::new(SECTORS), 16)),
        forgets: true,
    });
}

#[test]
fn an_emulated_drive_in_memory_is_a_device() {
    for drive in ["wd5000aaks", "atlas10k", "exos-x18"] {
        suite::run(Subject {
            open: &|_| emulate(drive, StoreSpec::Memory),
            forgets: false,
        });
    }
}

#[test]
fn an_emulated_drive_in_a_file_is_a_device() {
    suite::run(Subject {
        open: &|folder| emulate("wd5000aaks", StoreSpec::File(folder.join("store"))),
        forgets: false,
    });
}

#[test]
fn a_file_past_the_page_cache_is_a_device() {
    suite::run(Subject {
        open: &|folder| Box::new(file(folder, true)),
        forgets: false,
    });
}

#[test]
fn a_file_through_the_page_cache_is_a_device() {
    suite::run(Subject {
        open: &|folder| Box::new(file(folder, false)),
        forgets: false,
    });
}

/// A disk behind a header: the file of an array's first disk.
fn member(folder: &Folder, direct: bool) -> file::File {
    let paths = ["disk", "other"].map(|name| folder.join(name));
    let options = CreateOptions {
        chunk: 64 << 10,
        size: Some(Header::DATA + SECTORS * 4096),
        // Opened again, the disk is a new one.
        overwrite: true,
        force: false,
    };
    header::create(&paths, &options).expect("writes headers");
    file::open(&file::FileOptions {
        direct,
        depth: 8,
        member: true,
        ..file::FileOptions::new(&paths[0])
    })
    .expect("opens")
}

#[test]
fn a_file_of_an_array_is_a_device() {
    for direct in [true, false] {
        suite::run(Subject {
            open: &|folder| Box::new(member(folder, direct)),
            forgets: false,
        });
    }
}

#[test]
fn a_device_that_could_go_wrong_and_does_not_is_a_device() {
    suite::run(Subject {
        open: &|folder| Box::new(Faulty::new(file(folder, true), Arc::new(Switch::default()))),
        forgets: false,
    });
}
