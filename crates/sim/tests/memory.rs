//! Memory of a scan of a 20 TB disk.

use headtime_disk::Model;
use headtime_disk::profile;
use headtime_engine::{Background, Finished, Outcome};
use headtime_gaps::{Freeblock, FreeblockOptions};
use headtime_sched::{Op, Request};
use headtime_units::{Extent, Lba, Sectors, Time};
use std::sync::Arc;

#[global_allocator]
static COUNTING: dhat::Alloc = dhat::Alloc;

#[test]
fn a_copy_of_20_tb_beside_hashes_has_less_than_64_mb() {
    let profile = profile::by_name("nearline-20tb").expect("shipped");
    let capacity = profile.geometry.capacity;
    assert!(capacity.bytes(512) > 19_900_000_000_000);
    let model = Arc::new(Model::new(&profile));
    let _profiler = dhat::Profiler::builder().testing().build();
    let whole = Extent::new(Lba::ZERO, capacity);
    let options = FreeblockOptions {
        block: Sectors::new(512),
        ..FreeblockOptions::default()
    };
    let mut scan = Freeblock::new(model, capacity, whole, options).expect("it turns");
    // Blocks that clients read in parts take memory, too.
    for number in 0..200_000 {
        let extent = Extent::at(number * 100_000 + 3, 8);
        let request = Request::new((), Op::Read, extent, Time::ZERO);
        scan.seen(
            Time::from_nanos(number),
            &Finished {
                id: number,
                outcome: Outcome::Done,
                request,
                issued: Time::ZERO,
                surprise: None,
            },
        );
    }
    let now = dhat::HeapStats::get();
    let (kept, most) = (now.curr_bytes, now.max_bytes);
    // A server has two more bits for each block: for the block's hash, and for blocks that were copied.
    let marks = 2 * (capacity.get() / 512 / 8) as usize;
    assert!(kept + marks < 64_000_000, "{kept} and {marks} bytes");
    assert!(most < 128_000_000, "{most} bytes while it begins");
    assert!(kept > 9_500_000, "a bit for each block: {kept}");
    drop(scan);
}
