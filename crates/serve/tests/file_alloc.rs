//! A request to a file allocates nothing once things have their size.

mod common;

use common::Inbox;
use headtime_sched::{Class, Flags, NoPositioning, Op, Origin, Scheduler, Spec};
use headtime_serve::clock::Clock;
use headtime_serve::device::Device;
use headtime_serve::disk::{Disk, Options};
use headtime_serve::file;
use headtime_serve::request::{Data, Submission};
use headtime_units::{Extent, Lba, Sectors};
use std::path::Path;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

const OUT: u64 = 32;
const SECTORS: u64 = 16 << 11;

fn run(disk: &Disk, inbox: &Arc<Inbox>, requests: u64) {
    let mut out = 0;
    for number in 0..requests {
        if out == OUT {
            assert_eq!(inbox.wait().result, Ok(()));
            out -= 1;
        }
        let (op, data) = match number % 8 {
            0..4 => (Op::Read, Data::Buffer(disk.pool().take(4096))),
            4 => (Op::Write, Data::Zeroes { may_punch: false }),
            _ => (Op::Write, Data::Buffer(disk.pool().take(4096))),
        };
        // Pairs that merge, far apart.
        let lba = number / 2 * 7919 % (SECTORS / 16) * 16 + number % 2 * 8;
        disk.submit(Submission {
            cookie: number,
            op,
            extent: Extent::new(Lba::new(lba), Sectors::new(8)),
            flags: Flags::NONE,
            origin: Origin::default(),
            class: Class::default(),
            arrived: disk.now(),
            data,
            to: Arc::clone(inbox) as Arc<_>,
        })
        .expect("there is room");
        out += 1;
    }
    for _ in 0..out {
        assert_eq!(inbox.wait().result, Ok(()));
    }
}

#[test]
fn requests_do_not_allocate() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("file-alloc");
    let _ = std::fs::remove_file(&path);
    let build = || -> Box<dyn Scheduler> {
        let spec: Spec = "deadline".parse().expect("a scheduler");
        spec.build(None::<NoPositioning>).expect("needs nothing")
    };
    let mut options = Options::new(
        "test",
        Clock::start(),
        ("deadline".to_owned(), Box::new(build)),
    );
    options.engine.depth = 8;
    let mut opened = file::Options::new(&path);
    opened.create_size = Some(SECTORS * 512);
    opened.direct = false;
    let disk = Disk::start(options, move || {
        file::open(&opened).map(|file| Box::new(file) as Box<dyn Device>)
    })
    .expect("starts");
    let inbox = Inbox::new(OUT as usize);
    run(&disk, &inbox, 20_000);
    let before = dhat::HeapStats::get().total_blocks;
    run(&disk, &inbox, 100_000);
    let blocks = dhat::HeapStats::get().total_blocks - before;
    println!("{blocks} allocations for 100000 requests");
    // What still grows does so to a size that was not needed before, and stays there.
    assert!(blocks < 50, "{blocks} allocations for 100000 requests");
    disk.stop().expect("stops");
    std::fs::remove_file(&path).expect("is there");
}
