//! Scrubs: a served disk is read to its end while others use it, to find what cannot be read.
//!
//! A scrub is a job in the background of its disk (`job`), which reads in the gaps of what clients ask for
//! ([`Freeblock`](headtime_gaps::Freeblock)), and while nobody asks for anything. [`Scrubs`] begins, pauses and stops it; each block that is done is a
//! bit of a file (`progress`), by which the next server goes on.
//!
//! Gaps need a drive that is believed in, and one that is found to turn as it should; without that there is idle time. Of a block that
//! cannot be read it is found out by halves, in idle time, which of its sectors cannot.
//!
//! A scrub may compare what it reads with hashes of what was read before (`hashes`), or copy it (`image`). Which of these count says a `watch`, which
//! is told of every write, also between scrubs.
//!
//! # Threads
//!
//! The job lives on the disk's thread, and writes pages of its progress there, which the kernel takes at once. A thread of its own makes them
//! durable, and another one hashes or copies (`sink`). Whatever takes longer, such as building the account of a large disk's blocks, is done by who begins the scrub.

mod ask;
mod blocks;
mod byte_range;
mod control;
mod files;
mod flat;
mod hashes;
mod identity;
mod image;
mod job;
mod pages;
mod progress;
mod promises;
mod seal;
mod sink;
mod status;
mod watch;

pub use ask::{ScrubAsk, ScrubError};
pub use control::Scrubs;
pub use identity::ProgressError;
pub use promises::{FinishBy, PromiseStatus, Promises};
pub use status::{
    CopyStatus, Damage, FoundSectors, Gaps, HashStatus, Pace, ScrubState, ScrubStatus,
};
