//! A file that does not answer, on a frozen file system. The kernel cannot be made to give back requests that it has
//! started there.

use crate::common::{Inbox, now, submit};
use crate::support::{Loop, Mounted, Place, disk_of, flush, pattern, read, request, run, write};
use headtime_disk::drive::Fault;
use headtime_engine::{DriveTag, EngineSpec, RequestId};
use headtime_linux::clock::Clock;
use headtime_sched::{Flags, Op, Request};
use headtime_serve::device::{Aborted, Control, Device, Part};
use headtime_serve::disk::{Disk, NotCleared};
use headtime_serve::emulated;
use headtime_serve::faulty::{Faulty, Switch};
use headtime_serve::file;
use headtime_serve::request::{Data, Kind, Submission};
use headtime_units::{Extent, Nanos, Sectors, Time};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MIB: u64 = 1 << 20;

/// A file system in a file, which can be frozen.
struct Ice {
    // In the order in which they have to go.
    frozen: bool,
    mounted: Mounted,
    _device: Loop,
    _place: Place,
}

impl Ice {
    fn new(name: &str) -> Option<Ice> {
        let place = Place::new(name);
        let image = place.file("image", 64 * MIB);
        run("mkfs.ext4", &["-q", "-F", image.to_str()?])?;
        let device = Loop::over(&image, &[])?;
        let mounted = Mounted::on(place.path("on"), &[&device.0])?;
        Some(Ice {
            frozen: false,
            mounted,
            _device: device,
            _place: place,
        })
    }

    fn file(&self) -> PathBuf {
        self.mounted.0.join("disk")
    }

    fn at(&self) -> &Path {
        &self.mounted.0
    }

    fn freeze(&mut self) -> Option<()> {
        run("fsfreeze", &["--freeze", self.at().to_str()?])?;
        self.frozen = true;
        Some(())
    }

    fn thaw(&mut self) {
        if std::mem::take(&mut self.frozen) {
            run(
                "fsfreeze",
                &["--unfreeze", self.at().to_str().unwrap_or_default()],
            );
        }
    }
}

impl Drop for Ice {
    fn drop(&mut self) {
        self.thaw();
    }
}

fn options(ice: &Ice) -> file::FileOptions {
    let mut options = file::FileOptions::new(ice.file());
    options.size = Some(8 * MIB);
    options.create = true;
    options
}

#[test]
fn a_write_that_the_kernel_keeps_is_given_up_on() {
    let Some(mut ice) = Ice::new("frozen") else {
        return;
    };
    let opened = options(&ice);
    let engine = EngineSpec {
        depth: 8,
        ..EngineSpec::default()
    };
    let disk = disk_of("noop", engine, move || file::open(&opened));
    let sector = u64::from(disk.sector_bytes());
    let before = pattern(1, 1 << 20);
    write(&disk, 0, &before, Flags::FUA).expect("writes");
    let Some(()) = ice.freeze() else { return };
    disk.set_timeout(Some(Nanos::from_millis(100)));
    let inbox = Inbox::new(1);
    let mut buffer = disk.pool().take(4096);
    buffer.copy_from_slice(&pattern(2, 4096));
    let data = Data::Buffer(buffer);
    let len = 4096 / sector;
    let new = Submission {
        data,
        ..request(&disk, 0, Op::Write, 0, len, &inbox)
    };
    submit(&disk, new);
    let done = inbox.wait();
    assert_eq!(done.result.expect_err("no answer").kind, Kind::TimedOut);
    assert!(done.data.into_buffer().is_none(), "the kernel has it");
    assert!(disk.has_failed());
    // Other data can be read.
    assert!(read(&disk, MIB / 2 / sector, len).as_deref() == Ok(&before[1 << 19..][..4096]));
    assert_eq!(now(disk.clear_failure()), Ok(Err(NotCleared::Abandoned(1))));
    ice.thaw();
    disk.set_timeout(None);
    while now(disk.clear_failure()) != Ok(Ok(())) {
        std::thread::yield_now();
    }
    // The write happened after all, which the failure had announced as possible.
    assert!(read(&disk, 0, len) == Ok(pattern(2, 4096)));
    write(&disk, 0, &before, Flags::NONE).expect("writes");
    flush(&disk).expect("flushes");
    disk.stop().expect("stops");
}

#[test]
fn a_device_that_goes_while_the_kernel_has_its_data() {
    let Some(mut ice) = Ice::new("dropped") else {
        return;
    };
    let mut options = options(&ice);
    drop(file::open(&options).expect("creates"));
    let mut device = file::open(&options).expect("opens");
    let sectors = 4096 / u64::from(device.geometry().sector_bytes);
    let Some(()) = ice.freeze() else { return };
    let pool = headtime_serve::buffer::Pool::new();
    let part = |id: u32, fill: u8| {
        let mut buffer = pool.take(4096);
        buffer.fill(fill);
        Part {
            id: RequestId::Client(u64::from(id)),
            extent: Extent::at(u64::from(id) * sectors, sectors),
            data: Data::Buffer(buffer),
        }
    };
    let start = |device: &mut file::File, id: u32| {
        let part = part(id, 7);
        let command = Request::new(DriveTag(id), Op::Write, part.extent, Time::ZERO);
        device.submit(Time::ZERO, &command, vec![part]);
        device.kick();
        assert!(device.poll(Time::ZERO).is_none());
    };
    // The loop ends when a kernel thread has started a command before the abort.
    loop {
        start(&mut device, 0);
        for _ in 0..1000 {
            std::thread::yield_now();
        }
        match device.abort(Time::ZERO, DriveTag(0)) {
            Aborted::Abandoned => break,
            Aborted::Undone(parts) => assert_eq!(parts.len(), 1),
            Aborted::No => panic!("nothing can be done on it"),
        }
    }
    assert_eq!(device.abandoned(), 1);
    for id in 0..4 {
        start(&mut device, id);
    }
    drop(device);
    // The kernel still writes the data of started commands. Their memory must not have been given to other requests.
    let others: Vec<_> = (0..64).map(|id| part(id, 9)).collect();
    ice.thaw();
    // Until then the file is locked.
    options.create = false;
    let device = loop {
        if let Ok(device) = file::open(&options) {
            break device;
        }
    };
    drop((device, others));
    let there = std::fs::read(ice.file()).expect("reads");
    for (id, bytes) in there.chunks(4096).enumerate().take(4) {
        // The kernel leaves off commands that it had not started.
        let undone = id > 0 && bytes.iter().all(|byte| *byte == 0);
        assert!(
            undone || bytes.iter().all(|byte| *byte == 7),
            "command {id}"
        );
    }
}

/// A file system within a file of a file system that can be frozen. Writes of programs are accepted, and syncs do not
/// end.
struct Sheet {
    // The fields are dropped in this order.
    mounted: Mounted,
    _device: Loop,
    ice: Ice,
}

impl Sheet {
    fn new(name: &str) -> Option<Sheet> {
        let ice = Ice::new(name)?;
        let image = ice.at().join("image");
        let file = std::fs::File::create_new(&image).expect("creates");
        file.set_len(32 * MIB).expect("grows");
        run("mkfs.ext4", &["-q", "-F", image.to_str()?])?;
        let device = Loop::over(&image, &[])?;
        let mounted = Mounted::on(ice._place.path("inner"), &[&device.0])?;
        Some(Sheet {
            mounted,
            _device: device,
            ice,
        })
    }
}

impl Drop for Sheet {
    fn drop(&mut self) {
        self.ice.thaw();
    }
}

#[test]
fn a_store_that_does_not_sync_is_given_up_on() {
    let Some(mut sheet) = Sheet::new("store") else {
        return;
    };
    let profile = headtime_disk::profile::by_name("wd5000aaks").expect("it is shipped");
    let store = emulated::StoreSpec::File(sheet.mounted.0.join("store"));
    let disk = disk_of("noop", EngineSpec::default(), move || {
        emulated::open(emulated::EmulatedOptions {
            size: Some(8 * MIB),
            create: true,
            ..emulated::EmulatedOptions::new(profile, store)
        })
    });
    let before = pattern(1, 1 << 20);
    write(&disk, 0, &before, Flags::FUA).expect("writes");
    flush(&disk).expect("flushes");
    let Some(()) = sheet.ice.freeze() else { return };
    disk.set_timeout(Some(Nanos::from_millis(200)));
    let timeouts = |disk: &Disk| now(disk.snapshot()).expect("runs").whole.timeouts;
    assert_eq!(timeouts(&disk), 0);
    write(&disk, 0, &pattern(2, 4096), Flags::NONE).expect("is in the drive's buffer");
    assert_eq!(flush(&disk).expect_err("no answer").kind, Kind::TimedOut);
    // Once, and not again for the same command.
    let later = disk.now() + Nanos::from_millis(600);
    while disk.now() < later {
        std::thread::yield_now();
    }
    let snapshot = now(disk.snapshot()).expect("runs");
    assert_eq!((snapshot.whole.timeouts, snapshot.whole.abandoned), (1, 1));
    assert!(disk.has_failed());
    // Existing data can be read, but no flush succeeds.
    assert!(read(&disk, 0, 8) == Ok(pattern(2, 4096)));
    assert_eq!(flush(&disk).expect_err("not again").kind, Kind::TimedOut);
    assert_eq!(now(disk.clear_failure()), Ok(Err(NotCleared::Abandoned(1))));
    sheet.ice.thaw();
    disk.set_timeout(None);
    while now(disk.clear_failure()) != Ok(Ok(())) {
        std::thread::yield_now();
    }
    flush(&disk).expect("flushes");
    disk.set_timeout(Some(Nanos::from_millis(200)));

    // A disk with a sync that never ends stops, and says that not all is safe.
    let Some(()) = sheet.ice.freeze() else { return };
    write(&disk, 0, &before[..4096], Flags::NONE).expect("is in the drive's buffer");
    let clock = Clock::start();
    assert!(disk.stop().is_err());
    let took = clock.now();
    assert!(took < Time::ZERO + Nanos::from_secs(20), "{took}");
}

#[test]
fn files_go_wrong_as_drives_do() {
    let place = Place::new("faulty");
    let options = file::FileOptions::new(place.file("disk", 8 * MIB));
    let switch = Arc::new(Switch::default());
    let shared = Arc::clone(&switch);
    let disk = disk_of("deadline", EngineSpec::default(), move || {
        file::open(&options).map(|file| Faulty::new(file, shared))
    });
    let bytes = pattern(1, 64 << 10);
    write(&disk, 0, &bytes, Flags::NONE).expect("writes");
    let inject = |fault| now(disk.control(Control::Fault(fault))).expect("runs");
    let extent = Extent::at(9, 1);
    assert_eq!(
        inject(Fault::Unreadable { extent, retries: 0 }),
        Ok(Sectors::ZERO)
    );
    let failure = read(&disk, 0, 16).expect_err("unreadable");
    assert_eq!(
        (failure.kind, failure.at),
        (Kind::Medium, Some(extent.start))
    );
    assert!(read(&disk, 10, 6).is_ok());
    write(
        &disk,
        9,
        &bytes[..disk.sector_bytes() as usize],
        Flags::NONE,
    )
    .expect("writes");
    assert!(read(&disk, 0, 16).is_ok());

    let before = disk.now();
    assert_eq!(
        inject(Fault::Stall(Nanos::from_millis(60))),
        Ok(Sectors::ZERO)
    );
    assert!(read(&disk, 0, 16).is_ok());
    assert!(disk.now() - before >= Nanos::from_millis(60));

    disk.set_timeout(Some(Nanos::from_millis(20)));
    assert_eq!(inject(Fault::LoseNext), Ok(Sectors::ZERO));
    let failure = read(&disk, 0, 16).expect_err("lost");
    assert_eq!(failure.kind, Kind::TimedOut);
    disk.set_timeout(None);

    switch.fail_flushes(1);
    assert_eq!(flush(&disk).expect_err("fails").errno, Some(5));
    assert_eq!(now(disk.clear_failure()), Ok(Ok(())));
    flush(&disk).expect("flushes");
    let outside = Extent::at(1 << 40, 1);
    let fault = Fault::Unreadable {
        extent: outside,
        retries: 0,
    };
    assert!(inject(fault).is_err());
    disk.stop().expect("stops");
}
