//! A validated disk inside a deterministic simulator: a loop of commands, completions and virtual time.
//!
//! ```text
//! cargo run -p headtime-disk --example deterministic [PROFILE.toml] [SEED]
//! ```
//!
//! Two clients share the disk. One client reads 64 KiB at random, the other client reads 128 KiB in sequence. Each has four requests in the
//! drive, and a new request follows each completion. Runs with the same profile and seed print the same lines.

use headtime_disk::{Command, Drive, Profile};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Sectors, Time};
use rand_pcg::Pcg32;
use rand_pcg::rand_core::{RngCore, SeedableRng};
use std::collections::VecDeque;
use std::error::Error;
use std::path::PathBuf;

/// Requests of each client in the drive.
const OUTSTANDING: u32 = 4;
/// Length of the run, in virtual time.
const LENGTH: Nanos = Nanos::from_secs(10);

/// A client with the state of its addresses.
struct Client {
    name: &'static str,
    size: Sectors,
    /// Start of the next request; random if absent.
    next: Option<u64>,
    done: u64,
    waited: Nanos,
}

impl Client {
    /// Returns the extent of the next request, on a disk of `capacity` sectors.
    fn extent(&mut self, capacity: u64, random: &mut Pcg32) -> Extent {
        let last = capacity - self.size.get();
        let start = match &mut self.next {
            Some(next) => {
                let start = *next % last;
                *next = start + self.size.get();
                start
            }
            None => random.next_u64() % last,
        };
        Extent::at(start, self.size.get())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().map_or_else(
        || {
            PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../profiles/exos-x18.toml"
            ))
        },
        PathBuf::from,
    );
    let seed: u64 = arguments.next().map_or(Ok(1), |seed| seed.parse())?;
    let text = std::fs::read_to_string(&file)?;
    let profile = Profile::from_toml(&file.display().to_string(), &text)?;
    let mut drive = Drive::new(&profile, seed);
    let capacity = drive.capacity().get();
    let mut random = Pcg32::seed_from_u64(seed);
    let mut clients =
        [("random", 128, None), ("sequential", 256, Some(0))].map(|(name, size, next)| Client {
            name,
            size: Sectors::new(size),
            next,
            done: 0,
            waited: Nanos::ZERO,
        });

    // A tag names the client and its request. A drive without a queue takes a command at a time.
    let mut waiting: VecDeque<u32> = (0..2 * OUTSTANDING).collect();
    let mut sent = [Time::ZERO; 2 * OUTSTANDING as usize];
    let mut now = Time::ZERO;
    while now < Time::ZERO + LENGTH {
        while drive.in_flight() < drive.depth() as usize
            && let Some(tag) = waiting.pop_front()
        {
            let extent = clients[(tag / OUTSTANDING) as usize].extent(capacity, &mut random);
            sent[tag as usize] = now;
            drive.submit(
                now,
                Command {
                    tag,
                    op: Op::Read,
                    extent,
                    fua: false,
                    high: false,
                },
            );
        }
        // The simulator's other events would compete with this one for the next place in time.
        now = drive.next_event().ok_or("the drive has nothing to do")?;
        while let Some(completion) = drive.poll(now) {
            let client = &mut clients[(completion.tag / OUTSTANDING) as usize];
            completion
                .result
                .map_err(|error| format!("{}: {error:?}", client.name))?;
            client.done += 1;
            client.waited += completion.at - sent[completion.tag as usize];
            waiting.push_back(completion.tag);
        }
    }
    println!("{}, {LENGTH} of virtual time", profile.name);
    for client in &clients {
        let mean = client.waited.as_millis_f64() / client.done.max(1) as f64;
        println!(
            "{:10} {:6} reads, {mean:.2} ms each in the mean",
            client.name, client.done
        );
    }
    Ok(())
}
