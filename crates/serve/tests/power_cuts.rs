//! Power cuts at random moments between writes and flushes, in real time. Flushed data are there afterwards, and no
//! sector is torn. The disks of a volume are coordinated.
//!
//! `HEADTIME_POWER_CUTS` (5) is the number of cuts.

mod common;

use common::{Inbox, scheduler, submission, submit};
use headtime_array::Coordinator;
use headtime_disk::profile::by_name;
use headtime_engine::{Map, Member, Striped};
use headtime_linux::clock::Clock;
use headtime_sched::{
    Deadline, DeadlineConfig, Flags, Op, Scheduler, ServiceCurve, Stream, StreamConfig,
};
use headtime_serve::device::{Control, Device};
use headtime_serve::disk::{BuildScheduler, Disk, MemberOptions, Options};
use headtime_serve::emulated::{self, StoreSpec};
use headtime_serve::request::{Completion, Data, Kind, Submission};
use headtime_units::{Extent, Lba, Nanos, Sectors};
use headtime_workload::Random;
use std::sync::Arc;
use std::thread::yield_now;

/// Sectors that are written: few, so that they are written again and again.
const SECTORS: u64 = 4096;
const SECTOR: usize = 512;
const DEPTH: u64 = 16;
/// Sectors on a drive of a volume before the next drive's turn.
const CHUNK: u64 = 16;
/// Sectors of a reader's request: two chunks of each of three drives.
const READ: u64 = 6 * CHUNK;
/// Readers of a volume, enough that others are ready when the coordinator has lost some to a cut.
const READERS: usize = 6;

/// Versions of a sector. Versions grow, and writes to one sector keep their order.
#[derive(Clone, Copy, Default)]
struct Known {
    /// The last that was submitted.
    submitted: u32,
    /// The last whose write completed.
    completed: u32,
    /// The last that a flush, or its own forced unit access, made durable.
    durable: u32,
}

/// A request under way.
enum Under {
    Write {
        extent: Extent,
        version: u32,
        fua: bool,
    },
    /// A flush, with the versions that were complete at its submission.
    Flush(Vec<u32>),
    /// Read of this reader.
    Read(usize),
}

struct Test {
    disk: Disk,
    inbox: Arc<Inbox>,
    random: Random,
    known: Vec<Known>,
    /// Writes and flushes, then one read for each reader.
    under: Vec<Option<Under>>,
    /// Next address of each reader. Readers begin behind the sectors that are written.
    readers: Vec<u64>,
    version: u32,
    flushes: u32,
}

impl Test {
    fn submit(&mut self) {
        for reader in 0..self.readers.len() {
            let cookie = DEPTH as usize + reader;
            if self.under[cookie].is_none() {
                self.under[cookie] = Some(Under::Read(reader));
                let extent = Extent::at(self.readers[reader], READ);
                let data = Data::Buffer(self.disk.pool().take(READ as usize * SECTOR));
                self.hand_over(cookie as u64, Op::Read, extent, Flags::NONE, data);
            }
        }
        let mut writes = self.under[..DEPTH as usize].iter();
        let Some(cookie) = writes.position(Option::is_none) else {
            return;
        };
        let flush = self.random.below(12) == 0;
        let (op, extent, flags, data, under) = if flush {
            let complete = self.known.iter().map(|known| known.completed).collect();
            let none = Extent::new(Lba::ZERO, Sectors::ZERO);
            (
                Op::Flush,
                none,
                Flags::NONE,
                Data::None,
                Under::Flush(complete),
            )
        } else {
            self.version += 1;
            let version = self.version;
            let len = 1 + self.random.below(64);
            let extent = Extent::new(
                Lba::new(self.random.below(SECTORS - len)),
                Sectors::new(len),
            );
            let mut buffer = self.disk.pool().take(len as usize * SECTOR);
            for (sector, lba) in buffer.chunks_mut(SECTOR).zip(extent.start.get()..) {
                stamp(sector, lba, version);
                self.known[lba as usize].submitted = version;
            }
            let fua = self.random.below(16) == 0;
            let flags = if fua { Flags::FUA } else { Flags::NONE };
            let under = Under::Write {
                extent,
                version,
                fua,
            };
            (Op::Write, extent, flags, Data::Buffer(buffer), under)
        };
        self.under[cookie] = Some(under);
        self.hand_over(cookie as u64, op, extent, flags, data);
    }

    fn hand_over(&self, cookie: u64, op: Op, extent: Extent, flags: Flags, data: Data) {
        let to = Arc::clone(&self.inbox) as Arc<_>;
        let submission = Submission {
            flags,
            ..submission(&self.disk, cookie, op, extent, data, to)
        };
        submit(&self.disk, submission);
    }

    fn completed(&mut self, completion: Completion) {
        let under = self.under[completion.cookie as usize].take();
        if let Some(Under::Read(reader)) = under {
            // A reader goes on behind a read that failed, so that its stream survives a cut.
            let next = self.readers[reader] + READ;
            let is_end = next + READ > self.disk.geometry().capacity.get();
            self.readers[reader] = if is_end { SECTORS } else { next };
        }
        let Err(failure) = completion.result else {
            match under.expect("it was under way") {
                Under::Write {
                    extent,
                    version,
                    fua,
                } => {
                    for lba in extent.start.get()..extent.end().get() {
                        let known = &mut self.known[lba as usize];
                        known.completed = known.completed.max(version);
                        if fua {
                            known.durable = known.durable.max(version);
                        }
                    }
                }
                Under::Flush(complete) => {
                    self.flushes += 1;
                    for (known, version) in self.known.iter_mut().zip(complete) {
                        known.durable = known.durable.max(version);
                    }
                }
                Under::Read(_) => {}
            }
            return;
        };
        // A volume confirms no durable write after a flush has failed, not even on a drive that has power.
        let is_durable = matches!(
            under,
            Some(Under::Flush(_) | Under::Write { fua: true, .. })
        );
        let allowed = match failure.kind {
            Kind::Offline | Kind::ReadOnly | Kind::Lost => true,
            Kind::Device => is_durable && self.disk.members() > 1,
            _ => false,
        };
        assert!(allowed, "{failure}");
    }

    /// Reads everything, and takes the versions found for known. A drive that had no power cut may have them in its buffer.
    fn compare(&mut self, cut: u64, was_cut: impl Fn(u64) -> bool) -> u32 {
        let mut lost = 0;
        for start in (0..SECTORS).step_by(256) {
            let extent = Extent::new(Lba::new(start), Sectors::new(256));
            let buffer = self.disk.pool().take(256 * SECTOR);
            self.hand_over(0, Op::Read, extent, Flags::NONE, Data::Buffer(buffer));
            let done = self.inbox.wait();
            assert_eq!(done.result, Ok(()));
            let buffer = done.data.into_buffer().expect("a read has its buffer");
            for (sector, lba) in buffer.chunks(SECTOR).zip(start..) {
                let known = &mut self.known[lba as usize];
                let version = u32::from_le_bytes(sector[8..12].try_into().expect("four bytes"));
                let mut whole = [0; SECTOR];
                if version > 0 {
                    stamp(&mut whole, lba, version);
                }
                assert!(sector == whole, "cut {cut}: sector {lba} is torn");
                assert!(
                    (known.durable..=known.submitted).contains(&version),
                    "cut {cut}: sector {lba} is of version {version}; {} was flushed, {} submitted",
                    known.durable,
                    known.submitted
                );
                lost += u32::from(version < known.completed);
                *known = Known {
                    submitted: version,
                    completed: version,
                    durable: match was_cut(lba) {
                        true => version,
                        false => known.durable,
                    },
                };
            }
        }
        lost
    }
}

/// Fills a sector with data that only this version has.
fn stamp(sector: &mut [u8], lba: u64, version: u32) {
    let mut random = Random::keyed(lba, u64::from(version), 0);
    for bytes in sector.chunks_mut(4) {
        bytes.copy_from_slice(&random.bits().to_le_bytes());
    }
    sector[..8].copy_from_slice(&lba.to_le_bytes());
    sector[8..12].copy_from_slice(&version.to_le_bytes());
}

/// Number of power cuts.
#[expect(
    clippy::disallowed_methods,
    reason = "a test that can be made longer by hand"
)]
fn cuts() -> u64 {
    std::env::var("HEADTIME_POWER_CUTS").map_or(5, |cuts| cuts.parse().expect("a number"))
}

/// Cuts the power of a drive with this store; of several drives behind a volume, of all or of one.
fn power_cuts(stores: Vec<StoreSpec>, seed: u64) {
    let cuts = cuts();
    let profile = by_name("wd5000aaks").expect("a shipped profile");
    println!("seed {seed}, {cuts} cuts");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let members = stores.len() as u64;
    let points = [(0, 300), (1 << 10, 3_000), (64 << 11, 12_000)];
    let points =
        points.map(|(sectors, micros)| (Sectors::new(sectors), Nanos::from_micros(micros)));
    let curve = ServiceCurve::new(points.to_vec(), ServiceCurve::BACKWARD).expect("a curve");
    let curve = Arc::new(curve);
    let scheduler = || {
        let curve = Arc::clone(&curve);
        let build = move || -> Box<dyn Scheduler> {
            if members == 1 {
                return scheduler("mq-deadline");
            }
            let deadline = Deadline::new(DeadlineConfig::DEFAULT);
            let curve = Arc::clone(&curve);
            Box::new(Stream::new(deadline, StreamConfig::DEFAULT, curve))
        };
        ("of the test".to_owned(), Box::new(build) as BuildScheduler)
    };
    let mut options = Options::new("test", Clock::start(), scheduler());
    options.engine.depth = 8;
    let open = move |store| {
        let mut emulated = emulated::EmulatedOptions::new(profile.clone(), store);
        emulated.create = true;
        emulated.seed = seed;
        emulated.size = Some(64 << 20);
        emulated::open(emulated).map(|drive| Box::new(drive) as Box<dyn Device>)
    };
    let disk = match &stores[..] {
        [store] => {
            let store = store.clone();
            Disk::start(options, move || open(store))
        }
        several => {
            let coordinator =
                Coordinator::new(members as u16, &StreamConfig::DEFAULT, curve.clone());
            options.conductor = Some(Box::new(coordinator));
            let others = several[1..].iter().map(|_| MemberOptions {
                scheduler: scheduler(),
                estimate: None,
            });
            let others = others.collect();
            Disk::start_volume(options, others, move || {
                let sizes = vec![Sectors::new(64 << 11); stores.len()];
                let map = Striped::new(Sectors::new(CHUNK), &sizes).expect("fits");
                let drives: Result<_, _> = stores.into_iter().map(open).collect();
                drives.map(|drives| (drives, Box::new(map) as Box<dyn Map>))
            })
        }
    };
    let disk = disk.expect("starts");
    let apart = disk.geometry().capacity.get() / (READERS as u64 + 1);
    let readers: Vec<u64> = match members {
        1 => Vec::new(),
        _ => (1..=READERS as u64).map(|reader| reader * apart).collect(),
    };
    let mut test = Test {
        inbox: Inbox::new(DEPTH as usize + READERS),
        random: Random::keyed(seed, 0, 0),
        known: vec![Known::default(); SECTORS as usize],
        under: (0..DEPTH as usize + readers.len()).map(|_| None).collect(),
        readers,
        version: 0,
        flushes: 0,
        disk,
    };
    let slices = |disk: &Disk| {
        let snapshot = runtime.block_on(disk.snapshot()).expect("runs");
        snapshot.conducted.map_or(0, |all| all.slices)
    };
    let (mut lost, mut cut) = (0, 0);
    // On a busy machine little happens between two cuts: some more then, until something was at stake.
    let idle = |test: &Test, lost| {
        test.flushes == 0 || lost == 0 || (members > 1 && slices(&test.disk) == 0)
    };
    while cut < cuts || (cut < 20 * cuts && idle(&test, lost)) {
        // Short and long after the last one: with the buffer empty, and full.
        let until = test.disk.now()
            + Nanos::from_micros(1 << test.random.below(18))
            + Nanos::from_micros(500);
        // Every second cut of a volume comes while the coordinator has the drives serve one reader.
        let waits = members > 1 && cut % 2 == 1;
        let before = slices(&test.disk);
        let latest = until + Nanos::from_secs(2);
        while test.disk.now() < until
            || (waits && test.disk.now() < latest && slices(&test.disk) == before)
        {
            test.submit();
            while let Some(completion) = test.inbox.poll() {
                test.completed(completion);
            }
            yield_now();
        }
        let member = (test.random.below(2) == 0).then(|| test.random.below(members));
        let control = |disk: &Disk, what| {
            let done = match member {
                None => runtime.block_on(disk.control(what)),
                Some(member) => runtime.block_on(disk.control_of(Member(member as u16), what)),
            };
            done.expect("runs").expect("is emulated")
        };
        let taken_back = control(&test.disk, Control::PowerCut);
        while test.under.iter().any(Option::is_some) {
            let completion = test.inbox.wait();
            test.completed(completion);
        }
        control(&test.disk, Control::PowerOn);
        let was_cut = |lba| member.is_none_or(|member| lba / CHUNK % members == member);
        let found = test.compare(cut, was_cut);
        // The drive also counts sectors of an unfinished write that was taken back.
        assert!(
            u64::from(found) <= taken_back.get(),
            "cut {cut}: {found} sectors are lost, {taken_back} were said to be"
        );
        if taken_back > Sectors::ZERO {
            let none = Extent::new(Lba::ZERO, Sectors::ZERO);
            test.hand_over(0, Op::Flush, none, Flags::NONE, Data::None);
            let flushed = test.inbox.wait().result;
            assert_eq!(
                flushed.expect_err("not all is there").kind,
                Kind::Lost,
                "cut {cut}"
            );
        }
        if test.disk.has_failed() {
            let cleared = runtime.block_on(test.disk.clear_failure());
            assert_eq!(cleared, Ok(Ok(())));
        }
        lost += found;
        cut += 1;
    }
    let slices = slices(&test.disk);
    println!(
        "{} writes, {} flushes, {lost} sectors written and not flushed are lost; {slices} slices",
        test.version, test.flushes
    );
    assert!(test.flushes > 0 && lost > 0, "nothing was at stake");
    assert!(members == 1 || slices > 0, "nothing was coordinated");
    test.disk.stop().expect("stops");
}

#[test]
fn power_cuts_of_a_store_in_memory_keep_what_was_flushed() {
    power_cuts(vec![StoreSpec::Memory], 1);
}

#[test]
fn power_cuts_of_a_store_in_a_file_keep_what_was_flushed() {
    let path = std::env::temp_dir().join(format!("headtime-power-cuts-{}", std::process::id()));
    power_cuts(vec![StoreSpec::File(path.clone())], 2);
    std::fs::remove_file(path).expect("the store is there");
}

#[test]
fn power_cuts_of_one_or_all_disks_of_a_volume_keep_what_was_flushed() {
    power_cuts(vec![StoreSpec::Memory; 3], 3);
}
