//! Measures the cost of FUSE: a disk that answers after a fixed time, as a file.
//!
//! `fuse_null MOUNTPOINT [MICROSECONDS]`. The program ends at the end of its input.

#[path = "../tests/fuse/memory.rs"]
mod memory;

use headtime_attach::fuse;
use headtime_linux::clock::Clock;
use headtime_sched::{Class, Noop, WorkConserving};
use headtime_serve::disk::{Disk, Export, Options};
use headtime_units::{Nanos, Sectors};
use memory::Memory;
use std::error::Error;
use std::io::Read;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mountpoint = arguments
        .next()
        .ok_or("fuse_null MOUNTPOINT [MICROSECONDS]")?;
    let delay = match arguments.next() {
        Some(text) => Nanos::from_micros(text.parse()?),
        None => Nanos::ZERO,
    };
    let build = || Box::new(WorkConserving::new(Noop::new())) as Box<_>;
    let mut options = Options::new(
        "disk0",
        Clock::start(),
        ("noop".to_owned(), Box::new(build)),
    );
    options.engine.depth = 256;
    let disk = Disk::start(options, move || {
        let device = Memory::new(Sectors::new(1 << 21), 512, delay, true);
        Ok::<_, std::convert::Infallible>(Box::new(device) as Box<_>)
    })?;
    let export = Export {
        name: "disk0".to_owned(),
        number: 0,
        class: Class::default(),
        read_only: false,
        addresses: disk.addresses(),
        program: 0,
        limits: Default::default(),
        disk: disk.clone(),
    };
    let mounted = fuse::mount(
        Path::new(&mountpoint),
        vec![export],
        &fuse::Options::default(),
    )?;
    println!("{}", mounted.file("disk0").display());
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input)?;
    mounted.end();
    disk.stop()?;
    Ok(())
}
