//! Random commands and power cuts, compared with a list of possible contents of every sector.

use crate::host::{Folder, Host, emulate, profile, store_in};
use headtime_disk::profile::{Profile, ReadAhead, WriteBack};
use headtime_sched::{Flags, Op};
use headtime_serve::device::{Control, ControlError, Device, Done, Part};
use headtime_serve::emulated::StoreSpec;
use headtime_serve::request::{Data, Kind};
use headtime_units::{Extent, Nanos};
use headtime_workload::Random;

/// Sectors of the volume that commands go to.
const SECTORS: u64 = 4096;

/// Possible contents of a sector. Contents are version numbers, and 0 stands for zeroes.
#[derive(Clone, Debug, Default)]
struct Sector {
    /// Version that a read returns.
    current: u32,
    /// Version at the last certain durability, and versions written since then.
    possible: Vec<u32>,
}

impl Sector {
    fn settle(&mut self, version: u32) {
        self.current = version;
        self.possible.clear();
        self.possible.push(version);
    }
}

/// Results of a run, for the comparison of stores.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    /// Times of completions, and what reads returned.
    log: Vec<(u64, u32, u64)>,
    cuts: u32,
    /// Sectors that were acknowledged and lost.
    lost: u64,
    aborted: u32,
    undo_max: usize,
}

/// A command: its operation, its FUA flag, and the versions of its parts.
#[derive(Clone, Debug)]
struct Known {
    op: Op,
    fua: bool,
    versions: Vec<u32>,
}

struct Run {
    host: Host,
    with_fua: bool,
    random: Random,
    sectors: Vec<Sector>,
    version: u32,
    /// By tag, of the command that has it.
    commands: Vec<Known>,
    outcome: Outcome,
}

fn pattern(lba: u64, version: u32, bytes: usize) -> Vec<u8> {
    let word = match version {
        0 => 0,
        _ => lba << 32 | u64::from(version),
    };
    word.to_le_bytes().repeat(bytes / 8)
}

/// The version that a sector holds; a mix of two is none.
fn version_of(lba: u64, sector: &[u8]) -> u32 {
    let word = u64::from_le_bytes(sector[..8].try_into().expect("8 bytes"));
    let version = word as u32;
    assert_eq!(
        sector,
        pattern(lba, version, sector.len()),
        "sector {lba} is torn"
    );
    version
}

impl Run {
    fn new(profile: &Profile, store: StoreSpec, seed: u64) -> Run {
        let host = Host::new(emulate(profile, store, SECTORS));
        let depth = host.device.geometry().depth as usize;
        let sector = Sector {
            current: 0,
            possible: vec![0],
        };
        Run {
            host,
            with_fua: true,
            random: Random::new(seed, 0, 0),
            sectors: vec![sector; SECTORS as usize],
            version: 0,
            commands: vec![
                Known {
                    op: Op::Flush,
                    fua: false,
                    versions: Vec::new(),
                };
                depth
            ],
            outcome: Outcome::default(),
        }
    }

    /// An extent that often touches earlier ones, and its parts.
    fn extent(&mut self) -> Vec<Extent> {
        let hot = self.random.chance(0.6);
        let room = if hot { 96 } else { SECTORS };
        let len = 1 + match self.random.below(10) {
            0 => self.random.below(1500),
            1..4 => self.random.below(64),
            _ => self.random.below(12),
        };
        let len = len.min(room);
        let mut at = self.random.below(room - len + 1);
        let mut left = len;
        let mut parts = Vec::new();
        while left > 0 {
            let all = self.random.chance(0.7);
            let len = if all {
                left
            } else {
                1 + self.random.below(left)
            };
            parts.push(Extent::at(at, len));
            at += len;
            left -= len;
        }
        parts
    }

    fn submit(&mut self) {
        let extents = self.extent();
        let first = extents[0].start.get();
        let end = extents[extents.len() - 1].end().get();
        let mut whole = Extent::at(first, end - first);
        let (op, mut flags) = match self.random.below(100) {
            0..35 => (Op::Read, Flags::NONE),
            35..85 => (Op::Write, Flags::NONE),
            85..90 if self.with_fua => (Op::Write, Flags::FUA),
            90..96 => (Op::Discard, Flags::NONE),
            _ => (Op::Flush, Flags::NONE),
        };
        if op == Op::Read && self.random.chance(0.1) {
            flags = Flags::FUA;
        }
        if op == Op::Flush {
            whole = Extent::at(0, 0);
        }
        if !self.host.may_go(op, whole) {
            return;
        }
        let mut versions = Vec::new();
        let mut parts: Vec<Part> = Vec::new();
        for extent in extents {
            let mut data = match op {
                Op::Read => self.host.buffer(extent),
                Op::Write if self.random.chance(0.1) => Data::Zeroes {
                    may_punch: self.random.chance(0.5),
                },
                Op::Write => self.host.buffer(extent),
                Op::Flush | Op::Discard => Data::None,
            };
            let mut version = 0;
            if op == Op::Write
                && let Data::Buffer(buffer) = &mut data
            {
                self.version += 1;
                version = self.version;
                let bytes = self.host.sector_bytes();
                for (index, sector) in buffer.chunks_mut(bytes).enumerate() {
                    let lba = extent.start.get() + index as u64;
                    sector.copy_from_slice(&pattern(lba, version, bytes));
                }
            }
            if op.changes() {
                for sector in self.of(extent) {
                    sector.possible.push(version);
                }
            }
            versions.push(version);
            parts.push(self.host.part(extent, data));
        }
        if op == Op::Flush {
            parts = vec![self.host.part(whole, Data::None)];
        }
        let tag = self.host.submit(op, whole, flags, parts);
        self.commands[tag.index()] = Known {
            op,
            fua: flags.has(Flags::FUA),
            versions,
        };
    }

    fn of(&mut self, extent: Extent) -> &mut [Sector] {
        &mut self.sectors[extent.start.get() as usize..extent.end().get() as usize]
    }

    fn completed(&mut self, done: &Done) {
        assert_eq!(done.result, Ok(()));
        let Known { op, fua, versions } = self.commands[done.tag.index()].clone();
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        match op {
            Op::Flush => {
                for sector in &mut self.sectors {
                    sector.settle(sector.current);
                }
            }
            Op::Read => {
                for part in &done.parts {
                    let Data::Buffer(buffer) = &part.data else {
                        panic!("a read has lost its buffer");
                    };
                    let bytes = self.host.sector_bytes();
                    for (index, sector) in buffer.chunks(bytes).enumerate() {
                        let lba = part.extent.start.get() + index as u64;
                        let version = version_of(lba, sector);
                        assert_eq!(version, self.sectors[lba as usize].current, "sector {lba}");
                        hash = (hash ^ u64::from(version)).wrapping_mul(0x100_0000_01b3);
                    }
                }
            }
            Op::Write | Op::Discard => {
                for (part, version) in done.parts.iter().zip(versions) {
                    // Zeroes are durable when they complete.
                    let durable = fua || version == 0;
                    for sector in self.of(part.extent) {
                        sector.current = version;
                        if durable {
                            sector.settle(version);
                        }
                    }
                }
            }
        }
        let at = done.at.as_nanos();
        self.outcome.log.push((at, done.tag.0, hash));
    }

    /// Gives up on a command.
    fn abort(&mut self) {
        let Host { in_flight, .. } = &self.host;
        if in_flight.is_empty() {
            return;
        }
        let place = self.random.below(in_flight.len() as u64) as usize;
        let Some(parts) = self.host.abort(place) else {
            return;
        };
        self.outcome.aborted += 1;
        let tag = self.host.aborted;
        let Known { op, versions, .. } = self.commands[tag.index()].clone();
        if !op.changes() {
            return;
        }
        for (part, version) in parts.iter().zip(versions) {
            for sector in self.of(part.extent) {
                let place = sector.possible.iter().rposition(|v| *v == version);
                sector.possible.remove(place.expect("it was noted"));
            }
        }
    }

    fn cut(&mut self) {
        let idle = self.host.in_flight.is_empty();
        let said = self.host.control(Control::PowerCut);
        let again = self.host.device.control(self.host.now, &Control::PowerCut);
        assert_eq!(again, Err(ControlError::PowerIsOff));
        assert_eq!(self.host.device.undo_bytes(), 0);
        for done in self.host.drain() {
            let failure = done.result.expect_err("the power is off");
            assert_eq!(failure.kind, Kind::Offline);
        }
        self.host.read(0, 1);
        let refused = self.host.next().result.expect_err("the power is off");
        assert_eq!(refused.kind, Kind::Offline);
        self.host.pass(Nanos::from_millis(self.random.below(20)));
        self.host.control(Control::PowerOn);
        let again = self.host.device.control(self.host.now, &Control::PowerOn);
        assert_eq!(again, Err(ControlError::PowerIsOn));
        let mut lost = 0;
        let bytes = self.host.sector_bytes();
        let found = self.host.contents(0, SECTORS);
        for (lba, sector) in found.chunks(bytes).enumerate() {
            let version = version_of(lba as u64, sector);
            let known = &mut self.sectors[lba];
            assert!(
                known.possible.contains(&version),
                "sector {lba} holds {version} after a power cut, not one of {:?}",
                known.possible
            );
            lost += u64::from(version < known.current);
            known.settle(version);
        }
        // The drive also counts sectors of a finished write whose completion was not reported yet.
        assert!(
            lost <= said,
            "{lost} sectors are lost, {said} were said to be"
        );
        assert!(
            !idle || lost == said,
            "{lost} sectors are lost, {said} were said to be"
        );
        self.outcome.lost += lost;
        self.outcome.cuts += 1;
    }

    fn step(&mut self) {
        match self.random.below(1000) {
            0..600 => self.submit(),
            600..640 => self.abort(),
            640..645 => self.cut(),
            645..700 => {
                let span = Nanos::from_micros(self.random.below(200_000));
                self.host.pass(span);
                while let Some(done) = self.host.poll() {
                    self.completed(&done);
                }
            }
            _ if !self.host.in_flight.is_empty() => {
                let done = self.host.next();
                self.completed(&done);
            }
            _ => {}
        }
        let undo = self.host.device.undo_bytes();
        self.outcome.undo_max = self.outcome.undo_max.max(undo);
    }
}

fn run(profile: &Profile, store: StoreSpec, seed: u64, steps: u32) -> Outcome {
    Run::new(profile, store, seed).steps(steps)
}

impl Run {
    fn steps(mut self, steps: u32) -> Outcome {
        let run = &mut self;
        for _ in 0..steps {
            run.step();
        }
        for done in run.host.drain() {
            run.completed(&done);
        }
        run.cut();
        self.outcome
    }
}

fn with(name: &str, change: impl FnOnce(&mut headtime_disk::Spec)) -> Profile {
    profile(name).with(change).expect("it fits")
}

#[test]
fn random_commands_and_power_cuts() {
    let (mut lost, mut aborted) = (0, 0);
    let drives = [
        profile("wd5000aaks"),
        profile("atlas10k"),
        // Larger sectors on the medium, as of a drive of today.
        profile("exos-x18"),
        // Larger sectors at the interface.
        with("atlas10k", |spec| {
            spec.geometry.sector_bytes = 4096;
            spec.geometry.physical_sector_bytes = 4096;
            spec.cache.write_back = WriteBack::Full;
        }),
        // A buffer that lets the arm set out at once.
        with("wd5000aaks", |spec| {
            spec.cache.write_back = WriteBack::Flushed;
        }),
        with("wd5000aaks", |spec| spec.cache.write_back = WriteBack::Off),
        with("wd5000aaks", |spec| {
            spec.cache.enabled = false;
            spec.cache.read_ahead = ReadAhead::Off;
            (spec.cache.read_ahead_min, spec.cache.read_ahead_max) = (0, 0);
            spec.cache.read_free_sectors = false;
            spec.cache.write_back = WriteBack::Off;
        }),
    ];
    for (index, drive) in drives.iter().enumerate() {
        for seed in 1..=4 {
            println!("drive {index}, seed {seed}");
            let outcome = run(drive, StoreSpec::Memory, seed, 4000);
            assert!(outcome.cuts > 5);
            lost += outcome.lost;
            aborted += outcome.aborted;
        }
    }
    // Else there was nothing to be seen.
    assert!(lost > 1000, "{lost}");
    assert!(aborted > 100, "{aborted}");
}

#[test]
fn the_same_over_a_file() {
    for seed in 1..=4 {
        println!("seed {seed}");
        let folder = Folder::new();
        let outcome = run(&profile("wd5000aaks"), store_in(&folder), seed, 3000);
        assert!(outcome.lost > 10, "{}", outcome.lost);
    }
}

#[test]
fn memory_and_files_give_equal_results() {
    for seed in 1..=4 {
        println!("seed {seed}");
        let folder = Folder::new();
        let [memory, file] = [StoreSpec::Memory, store_in(&folder)].map(|store| {
            let mut run = Run::new(&profile("wd5000aaks"), store, seed);
            // The machine decides when a write with FUA is synced, and later commands depend on that. A flush is
            // alone.
            run.with_fua = false;
            run.steps(3000)
        });
        assert!(memory.log.len() > 1000);
        assert!(memory == file);
    }
}
