//! Files of scrubs that are damaged at random while no server runs. No image is wrong, each sector that cannot be read is named, no change is named falsely,
//! and the user is told.
//!
//! `HEADTIME_DAMAGES` says how many damages are tried; `HEADTIME_DAMAGE` tries one alone.

use super::rig::{options, soon};
use headtime_engine::DriveTag;
use headtime_sched::{Op, Request};
use headtime_serve::device::{Aborted, Device, Done, Geometry, Parts};
use headtime_serve::disk::Disk;
use headtime_serve::request::{Data, Failure, Kind};
use headtime_serve::scrub::{ScrubAsk, ScrubState, ScrubStatus, Scrubs};
use headtime_testkit::Folder;
use headtime_units::{Extent, Lba, Sectors, Time};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

const SECTORS: u64 = 1 << 13;

/// Sectors of a block. A page of hashes has 511 blocks.
const BLOCK: u64 = 2;

const PAGE: usize = 4096;

/// Sectors that cannot be read.
const UNREADABLE: [u64; 5] = [7, 8, 1_000, 3_333, 8_000];

/// Sectors that somebody changes behind the server's back.
const CHANGED: [u64; 4] = [20, 2_001, 4_444, 7_777];

type Bytes = Arc<Mutex<Vec<u8>>>;

/// A drive in memory that answers a limited number of commands, at once.
struct Ram {
    bytes: Bytes,
    done: VecDeque<Done>,
    allowed: Arc<AtomicU64>,
}

impl Device for Ram {
    fn geometry(&self) -> Geometry {
        Geometry {
            capacity: Sectors::new(SECTORS),
            sector_bytes: 512,
            depth: 1,
            read_only: false,
            discards: false,
        }
    }

    fn submit(&mut self, now: Time, command: &Request<DriveTag>, mut parts: Parts) {
        let bytes = self.bytes.lock().expect("no panic");
        let is_bad = |lba: &&u64| command.extent.contains(Lba::new(**lba));
        let bad = UNREADABLE.iter().find(is_bad);
        let result = match bad.filter(|_| command.op == Op::Read) {
            Some(_) => Err(Failure::new(Kind::Medium)),
            None => Ok(()),
        };
        for part in &mut parts {
            if let (Op::Read, Data::Buffer(buffer)) = (command.op, &mut part.data) {
                let at = part.extent.start.get() as usize * 512;
                let len = buffer.len();
                buffer.copy_from_slice(&bytes[at..at + len]);
            }
        }
        self.done.push_back(Done {
            tag: command.tag,
            at: now,
            result,
            parts,
        });
    }

    fn poll(&mut self, now: Time) -> Option<Done> {
        let allowed = self.allowed.load(Ordering::SeqCst);
        if allowed == 0 {
            return None;
        }
        let mut done = self.done.pop_front()?;
        self.allowed.store(allowed - 1, Ordering::SeqCst);
        done.at = now;
        Some(done)
    }

    fn abort(&mut self, _: Time, _: DriveTag) -> Aborted {
        Aborted::No
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Reads,
    Hashes,
    Copies,
}

/// Files of a scrub at one time.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// A disk and the files of its scrubs, as a server leaves them that is killed half-way; and what an earlier scrub has left.
struct Place {
    folder: Folder,
    does: Does,
    bytes: Bytes,
    killed: Files,
    earlier: Files,
}

struct Server {
    disk: Disk,
    scrubs: Scrubs,
    allowed: Arc<AtomicU64>,
}

impl Server {
    fn start(place: &Place, sole_writer: bool) -> Server {
        let allowed = Arc::new(AtomicU64::new(u64::MAX));
        let ram = Ram {
            bytes: Arc::clone(&place.bytes),
            done: VecDeque::new(),
            allowed: Arc::clone(&allowed),
        };
        let (options, _) = options(1, true);
        let disk = Disk::start(options, || Ok::<_, Infallible>(Box::new(ram) as Box<_>));
        let disk = disk.expect("starts");
        let scrubs = Scrubs::new(disk.clone(), "ram", None, Some(&place.folder.join("state")));
        Server {
            disk,
            scrubs: scrubs.with_sole_writer(sole_writer),
            allowed,
        }
    }

    fn wait(&self, until: impl Fn(&ScrubStatus) -> bool) -> ScrubStatus {
        let since = Instant::now();
        loop {
            let status = self.scrubs.status().expect("there is one");
            if until(&status) {
                return status;
            }
            let waited = since.elapsed();
            assert!(waited < Duration::from_secs(20), "{status:?}");
            sleep(Duration::from_micros(300));
        }
    }

    fn pass(&self, ask: &ScrubAsk) -> ScrubStatus {
        self.scrubs.begin(ask).expect("it begins");
        self.wait(|status| status.state == ScrubState::Done)
    }

    /// Begins, and stops half-way, with all on file that a kill would leave.
    fn halfway(&self, ask: &ScrubAsk, place: &Place) -> Files {
        self.allowed.store(400, Ordering::SeqCst);
        self.scrubs.begin(ask).expect("it begins");
        self.wait(|_| self.allowed.load(Ordering::SeqCst) == 0);
        // Progress is written every half a second.
        sleep(Duration::from_millis(700));
        let status = self.wait(|_| true);
        assert!((500..3_500).contains(&status.left), "{status:?}");
        let files = place.files();
        self.allowed.store(u64::MAX, Ordering::SeqCst);
        self.scrubs.stop().expect("under way");
        files
    }
}

impl Place {
    fn new(does: Does) -> Place {
        let bytes = (0..SECTORS * 512).map(|at| (at / 512 * 7 + at % 5) as u8);
        let mut place = Place {
            folder: Folder::new(),
            does,
            bytes: Arc::new(Mutex::new(bytes.collect())),
            killed: Files::new(),
            earlier: Files::new(),
        };
        let server = Server::start(&place, false);
        let ask = place.ask();
        match does {
            Does::Reads => place.earlier = server.halfway(&ask, &place),
            Does::Hashes => {
                server.pass(&ask);
                place.earlier = place.files();
                server.disk.stop().expect("stops");
            }
            Does::Copies => {
                let elsewhere = ScrubAsk {
                    copy: Some(place.folder.join("elsewhere")),
                    ..place.ask()
                };
                place.earlier = server.halfway(&elsewhere, &place);
            }
        }
        let server = match does {
            // Since others may have written, all is hashed anew.
            Does::Hashes => {
                drop(server);
                let server = Server::start(&place, false);
                server
                    .scrubs
                    .resume_unfinished()
                    .expect("nothing in the way");
                server.pass(&ask);
                for lba in CHANGED {
                    place.bytes.lock().expect("no panic")[lba as usize * 512] ^= 1;
                }
                server
            }
            _ => server,
        };
        place.killed = server.halfway(&ask, &place);
        server.disk.stop().expect("stops");
        place
    }

    fn file(&self) -> PathBuf {
        self.folder.join("file")
    }

    fn ask(&self) -> ScrubAsk {
        let file = |does| (self.does == does).then(|| self.file());
        ScrubAsk {
            block: Some(BLOCK * 512),
            hash: file(Does::Hashes),
            copy: file(Does::Copies),
            ..soon()
        }
    }

    fn files(&self) -> Files {
        let state = fs::read_dir(self.folder.join("state")).expect("there");
        let state = state.map(|entry| entry.expect("there").path());
        let all = state.chain(Some(self.file())).filter(|path| path.exists());
        all.map(|path| (path.clone(), fs::read(&path).expect("there")))
            .collect()
    }

    /// Writes the files of the killed server again, without replacing them.
    fn restore(&self) {
        for path in self.files().into_keys() {
            if !self.killed.contains_key(&path) {
                fs::remove_file(path).expect("there");
            }
        }
        for (path, bytes) in &self.killed {
            write(path, bytes);
        }
    }
}

fn write(path: &Path, bytes: &[u8]) {
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path);
    file.expect("room").write_all(bytes).expect("room");
}

/// Numbers at random, by splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ mixed >> 31) % bound as u64) as usize
    }
}

/// Damages one file. Returns a text for messages, and true if a server reads the bytes that have changed.
fn damage(place: &Place, random: &mut Random) -> (String, bool) {
    // The image has no checksums.
    let own = |path: &&PathBuf| place.does != Does::Copies || **path != place.file();
    let paths: Vec<&PathBuf> = place.killed.keys().filter(own).collect();
    let path = paths[random.below(paths.len())];
    let before = &place.killed[path];
    let mut bytes = before.clone();
    let pages = bytes.len().div_ceil(PAGE);
    let page = |number: usize, bytes: &[u8]| number * PAGE..bytes.len().min((number + 1) * PAGE);
    let what = match random.below(5) {
        0 => {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 + random.below(255) as u8;
            format!("byte {at} is another one")
        }
        1 => {
            let number = random.below(pages);
            let range = page(number, &bytes);
            bytes[range].fill(0);
            format!("page {number} has zeroes")
        }
        2 => {
            let len = random.below(bytes.len());
            bytes.truncate(len);
            format!("cut short to {len} bytes")
        }
        3 => {
            let (one, other) = (random.below(pages - 1), random.below(pages - 1));
            let (first, second) = (page(one, &bytes), page(other, &bytes));
            let len = first.len().min(second.len());
            let moved = bytes[first.start..first.start + len].to_vec();
            bytes.copy_within(second.start..second.start + len, first.start);
            bytes[second.start..second.start + len].copy_from_slice(&moved);
            format!("pages {one} and {other} are swapped")
        }
        _ => match place.earlier.get(path) {
            Some(earlier) => {
                let number = random.below(pages.min(earlier.len() / PAGE));
                let range = page(number, &bytes);
                let len = range.len().min(earlier.len() - number * PAGE);
                bytes[range.start..range.start + len]
                    .copy_from_slice(&earlier[number * PAGE..number * PAGE + len]);
                format!("page {number} is that of an earlier scrub")
            }
            None => "nothing".to_owned(),
        },
    };
    write(path, &bytes);
    // The last page of the beginning is unused in these files.
    let unread = match path.extension().is_some_and(|ending| ending == "scrub") {
        true => 0..0,
        false => 3 * PAGE..4 * PAGE,
    };
    let differs = |at: usize| !unread.contains(&at) && bytes[at] != before[at];
    let matters = bytes.len() < before.len() || (0..bytes.len()).any(differs);
    let name = path.file_name().expect("a file").display();
    (format!("{:?}: {name}: {what}", place.does), matters)
}

fn unreadable() -> Vec<Extent> {
    let mut all: Vec<Extent> = Vec::new();
    for lba in UNREADABLE {
        match all.last_mut() {
            Some(last) if last.end().get() == lba => last.len = Sectors::new(last.len.get() + 1),
            _ => all.push(Extent::at(lba, 1)),
        }
    }
    all
}

/// Goes on with damaged files, and holds what comes of that against the disk.
fn case(place: &Place, what: &str, matters: bool) {
    let server = Server::start(place, true);
    let ask = place.ask();
    let mut refused = server
        .scrubs
        .resume_unfinished()
        .map_err(|error| error.to_string());
    let mut is_refused = false;
    let mut begun = refused.clone().and_then(|()| {
        let begun = server.scrubs.begin(&ask);
        begun.map_err(|error| error.to_string())
    });
    // The user follows the message.
    for _ in 0..3 {
        let Err(problem) = &begun else { break };
        is_refused = true;
        refused = Err(problem.clone());
        let path = problem.split(": ").next().expect("a file");
        assert!(
            problem.contains("move it away") || problem.contains("it is there already"),
            "{what}: {problem}"
        );
        fs::remove_file(path).unwrap_or_else(|error| panic!("{what}: {problem}: {error}"));
        begun = server.scrubs.begin(&ask).map_err(|error| error.to_string());
    }
    begun.unwrap_or_else(|problem| panic!("{what}: {problem}"));
    let done = server.wait(|status| status.state == ScrubState::Done);
    assert_eq!(
        done.unreadable.extents(),
        unreadable(),
        "{what}: {refused:?} {done:?}"
    );
    let mut is_told = is_refused || done.damage.pages > 0;
    if let Some(copy) = &done.copy {
        is_told |= copy.why_anew.is_some();
        let mut disk = place.bytes.lock().expect("no panic").clone();
        for lba in UNREADABLE {
            disk[lba as usize * 512..][..512].fill(0);
        }
        let image = fs::read(place.file()).expect("there");
        assert!(image == disk, "{what}: the image is wrong: {done:?}");
    }
    if let Some(hashes) = &done.hashes {
        let is_anew = hashes.why_not.is_some() || is_refused;
        let blocks = CHANGED.map(|lba| Extent::at(lba / BLOCK * BLOCK, BLOCK));
        for extent in done.changed.extents() {
            assert!(
                blocks.contains(&extent),
                "{what}: {extent} has not changed: {done:?}"
            );
        }
        for block in blocks {
            let is_found = done.changed.extents().contains(&block) || done.changed.beyond() > 0;
            let is_excused = is_anew || done.damage.sectors.within(block) > 0;
            assert!(
                is_found || is_excused,
                "{what}: {block} is missed: {done:?}"
            );
        }
        let again = server.pass(&ask);
        assert_eq!(again.changed.sectors(), 0, "{what}: {again:?}");
        is_told |= is_anew || again.damage.pages > 0;
        let last = server.pass(&ask);
        let compared = last.hashes.as_ref().map(|hashes| hashes.compared);
        // All but the blocks with sectors that cannot be read.
        assert_eq!(compared, Some(SECTORS / BLOCK - 5), "{what}: {last:?}");
        assert_eq!(
            (last.changed.sectors(), last.damage.pages),
            (0, 0),
            "{what}"
        );
    }
    assert!(is_told || !matters, "{what}: nobody is told: {done:?}");
    server.disk.stop().expect("stops");
}

#[test]
fn damage_costs_the_blocks_that_it_is_about_and_is_told() {
    let number = |name| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<u64>().expect("a number"))
    };
    let cases = number("HEADTIME_DAMAGES").unwrap_or(30);
    let places = [Does::Reads, Does::Hashes, Does::Copies].map(Place::new);
    let cases = match number("HEADTIME_DAMAGE") {
        Some(one) => one..one + 1,
        None => 0..cases,
    };
    for nth in cases {
        let place = &places[(nth % 3) as usize];
        let mut random = Random(nth);
        place.restore();
        let (what, matters) = damage(place, &mut random);
        case(place, &format!("{nth}: {what}"), matters);
    }
}
