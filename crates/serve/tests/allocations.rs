//! A request allocates nothing once things have their size: through a disk's thread to each device
//! that there is, and over NBD.
//!
//! Allocations of the whole process are counted, so this is one test in a process of its own.

mod common;

use common::{Inbox, submission};
use headtime_disk::profile::by_name;
use headtime_linux::clock::Clock;
use headtime_sched::{Class, Flags, NoPositioning, Op, Scheduler, Spec};
use headtime_serve::device::Device;
use headtime_serve::disk::{Disk, Export, ExportShare, Options, ShareBy};
use headtime_serve::emulated::{self, StoreSpec};
use headtime_serve::file;
use headtime_serve::goals::feed::feed;
use headtime_serve::nbd::wire::{self, REQUEST_BYTES, Request, command, option};
use headtime_serve::nbd::{Limits, Listen, Server};
use headtime_serve::null::Null;
use headtime_serve::request::{Data, Submission};
use headtime_testkit::Folder;
use headtime_units::{Extent, Lba, Nanos, Sectors};
use std::convert::Infallible;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use tokio::sync::oneshot;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Requests at a time.
const OUT: u64 = 32;

/// Number of sectors that requests address: 2 MiB.
const SECTORS: u64 = 2 << 11;

const PAGE: usize = 4096;

fn options() -> Options {
    let build = || -> Box<dyn Scheduler> {
        let spec: Spec = "deadline".parse().expect("a scheduler");
        spec.build(None::<NoPositioning>).expect("needs nothing")
    };
    let scheduler = ("deadline".to_owned(), Box::new(build) as Box<_>);
    let mut options = Options::new("test", Clock::start(), scheduler);
    options.engine.depth = 8;
    // The test drains no notes, so that their room is used up during the run.
    options.feed = Some(feed().0);
    let by = ShareBy::Export;
    options.shares = vec![ExportShare { weight: 1, by }];
    // Never reached, but kept account of for each command.
    options.timeout = Some(Nanos::from_secs(60));
    options
}

/// Page of a request. Pairs of requests merge, pairs are far apart, and the pages repeat after a while.
fn page(number: u64) -> u64 {
    let pages = SECTORS / 8;
    number / 2 * 7919 % (pages / 2) * 2 + number % 2
}

/// Reads, writes, and if `mixed` zeroes, discards and flushes as well.
fn run(disk: &Disk, inbox: &Arc<Inbox>, requests: u64, mixed: bool) {
    let mut out = 0;
    for number in 0..requests {
        if out == OUT {
            assert_eq!(inbox.wait().result, Ok(()));
            out -= 1;
        }
        let buffer = || Data::Buffer(disk.pool().take(PAGE));
        let (op, data) = match number % 32 {
            8 if mixed => (Op::Write, Data::Zeroes { may_punch: false }),
            16 if mixed => (Op::Discard, Data::None),
            24 if mixed => (Op::Flush, Data::None),
            number if number % 2 == 0 => (Op::Read, buffer()),
            _ => (Op::Write, buffer()),
        };
        let extent = match op {
            Op::Flush => Extent::at(0, 0),
            _ => Extent::new(Lba::new(page(number) * 8), Sectors::new(8)),
        };
        let flags = match number % 64 {
            31 if mixed => Flags::FUA,
            _ => Flags::NONE,
        };
        let to = Arc::clone(inbox) as Arc<_>;
        disk.submit(Submission {
            flags,
            ..submission(disk, number, op, extent, data, to)
        })
        .expect("there is room");
        out += 1;
    }
    for _ in 0..out {
        assert_eq!(inbox.wait().result, Ok(()));
    }
}

/// Fails if requests allocate. A few blocks may grow to a new record size and stay there, with any number of
/// requests.
fn count(what: &str, requests: u64, mut run: impl FnMut()) {
    let before = dhat::HeapStats::get();
    run();
    let after = dhat::HeapStats::get();
    let blocks = after.total_blocks - before.total_blocks;
    let bytes = after.total_bytes - before.total_bytes;
    println!("{what}: {blocks} allocations of {bytes} bytes for {requests} requests");
    assert!(
        blocks < 50.min(requests / 100),
        "{what}: {blocks} allocations"
    );
    assert!(bytes < 1 << 20, "{what}: {bytes} bytes allocated");
}

fn through<D: Device + 'static>(
    what: &str,
    requests: u64,
    open: impl FnOnce() -> D + Send + 'static,
) {
    let disk = Disk::start(options(), move || {
        Ok::<_, Infallible>(Box::new(open()) as Box<dyn Device>)
    })
    .expect("starts");
    let inbox = Inbox::new(OUT as usize);
    // A sparse store takes memory for a page the first time that it is written.
    run(&disk, &inbox, 2 * SECTORS / 8, false);
    run(&disk, &inbox, requests / 4, true);
    count(what, requests, || run(&disk, &inbox, requests, true));
    disk.stop().expect("stops");
}

fn drive(store: StoreSpec) -> emulated::Emulated {
    let profile = by_name("wd5000aaks").expect("it is shipped");
    emulated::open(emulated::EmulatedOptions {
        size: Some(SECTORS * 512),
        create: true,
        ..emulated::EmulatedOptions::new(profile, store)
    })
    .expect("opens")
}

/// A client that allocates nothing either.
struct Client {
    socket: UnixStream,
    output: Vec<u8>,
    input: Vec<u8>,
}

impl Client {
    fn connect(path: &std::path::Path) -> Client {
        let mut socket = UnixStream::connect(path).expect("the server listens");
        let mut greeting = [0; 18];
        socket.read_exact(&mut greeting).expect("greets");
        let mut go = vec![0, 0, 0, 3];
        go.extend(wire::IHAVEOPT.to_be_bytes());
        go.extend(option::EXPORT_NAME.to_be_bytes());
        go.extend(4u32.to_be_bytes());
        go.extend(b"disk");
        socket.write_all(&go).expect("reads");
        let mut size = [0; 10];
        socket.read_exact(&mut size).expect("agrees");
        Client {
            socket,
            output: Vec::with_capacity(OUT as usize * (REQUEST_BYTES + PAGE)),
            input: vec![0; OUT as usize * (16 + PAGE)],
        }
    }

    /// Rounds of as many requests as there may be at a time.
    fn run(&mut self, rounds: u64) {
        for round in 0..rounds {
            self.output.clear();
            let mut answer = 0;
            for number in 0..OUT {
                let command = match (round + number) % 8 {
                    0 => command::FLUSH,
                    1..4 => command::WRITE,
                    _ => command::READ,
                };
                let len = if command == command::FLUSH { 0 } else { PAGE };
                let request = Request {
                    flags: 0,
                    command,
                    cookie: number,
                    offset: if len == 0 {
                        0
                    } else {
                        page(number) * PAGE as u64
                    },
                    len: len as u32,
                };
                self.output.extend_from_slice(&request.to_bytes());
                if command == command::WRITE {
                    self.output.extend_from_slice(&[7; PAGE]);
                }
                answer += 16 + if command == command::READ { PAGE } else { 0 };
            }
            let Client {
                socket,
                output,
                input,
            } = self;
            socket.write_all(output).expect("the server reads");
            let answers = &mut input[..answer];
            socket.read_exact(answers).expect("the server answers");
            assert_eq!(answers[..4], wire::SIMPLE_REPLY_MAGIC.to_be_bytes());
            assert_eq!(answers[4..8], [0; 4], "succeeds");
        }
    }
}

fn over_nbd(folder: &Folder, requests: u64) {
    let disk = Disk::start(options(), || {
        let null = Null::new(Sectors::new(SECTORS), 32);
        Ok::<_, Infallible>(Box::new(null) as Box<dyn Device>)
    })
    .expect("starts");
    let path = folder.join("nbd");
    let export = Export {
        name: "disk".to_owned(),
        number: 0,
        class: Class::default(),
        read_only: false,
        addresses: disk.addresses(),
        program: 0,
        limits: Default::default(),
        disk: disk.clone(),
    };
    let listen = [Listen::unix(path.clone())];
    let server = Server::bind(&listen, vec![export], Limits::default()).expect("binds");
    let (end, ends) = oneshot::channel::<()>();
    let thread = std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        let served = runtime.block_on(server.run(async {
            let _ = ends.await;
        }));
        served.expect("serves");
    });
    let mut client = Client::connect(&path);
    let rounds = requests / OUT;
    client.run(rounds / 4);
    count("NBD", requests, || client.run(rounds));
    drop(client);
    let _ = end.send(());
    thread.join().expect("no panic");
    disk.stop().expect("stops");
}

#[test]
fn requests_do_not_allocate() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let folder = Folder::new();
    let mut opened = file::FileOptions::new(folder.join("disk"));
    opened.size = Some(SECTORS * 512);
    opened.create = true;
    opened.direct = false;
    through("file", 20_000, move || file::open(&opened).expect("opens"));
    // In real time, so there are fewer.
    through("emulated in memory", 1000, || drive(StoreSpec::Memory));
    let store = StoreSpec::File(folder.join("store"));
    through("emulated in a file", 1000, move || drive(store));
    over_nbd(&folder, 20_000);
}
