//! Scrubs: reads of a whole served disk while clients use it, to find unreadable sectors.
//!
//! The server implements [`Served`] for its disks. A scrub knows nothing else of the server.
//!
//! A scrub is a background job of its disk (`job`). The job reads (`reading`) in the gaps between clients' requests
//! ([`Freeblock`](headtime_gaps::Freeblock)), and in idle time. [`Scrubs`] begins, pauses and stops scrubs. The progress file (`progress`)
//! has a bit for each block that is done, so that the next server can continue.
//!
//! Gaps need an assumed profile, and a drive whose platter turns as the profile says. Otherwise only idle time is used. If a block cannot
//! be read, reads of halves of the block, in idle time, find the unreadable sectors.
//!
//! A scrub may compare the data with hashes of an earlier scrub (`hashes`), or copy the data as they are at one moment (`image`). Both are
//! behind a `taker`, which is notified when a block was read, and when a block will be written. A `watch` is notified of every write, also
//! between scrubs, and says which hashes or copies are current.
//!
//! # Threads
//!
//! The job runs on the disk's thread, and writes the pages of its progress there: the kernel takes them at once. A second thread makes the
//! pages durable, and a third one hashes or copies (`sink`). The caller that begins a scrub does the longer work, such as building the
//! state of a large disk's blocks.

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
mod reading;
mod seal;
mod served;
mod sink;
mod status;
mod taker;
mod watch;

pub use ask::{READ_BYTES_MAX, ScrubAsk, ScrubError};
pub use control::Scrubs;
pub use identity::ProgressError;
pub use promises::{FinishBy, PromiseStatus, Promises};
pub use served::{MakeJob, Served};
pub use status::{
    CopyStatus, Damage, FoundSectors, Gaps, HashStatus, Pace, ScrubState, ScrubStatus,
};
