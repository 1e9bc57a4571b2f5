//! Simulates the layers above a disk: programs, and the kernel that turns their calls into
//! requests.
//!
//! A [`Host`] is a [`Source`](headtime_workload::Source): a state machine that is notified when its
//! requests complete. The processes of a host run [`Step`]s. A buffered read goes through the page
//! cache and on-demand readahead ([`readahead`]). A window of readahead becomes one request for
//! each run of sectors. A reader sleeps until the whole request that brings its page is complete.
//! When it goes to sleep, the queue is unplugged. Writes reach the disk later. Time passes only in
//! thinking, copying and sleeping.
//!
//! The rules follow Linux 2.6.31 (`mm/filemap.c`, `mm/readahead.c`, `mm/page-writeback.c`,
//! `fs/mpage.c`, `fs/fs-writeback.c`, `fs/direct-io.c`).
//!
//! ```
//! use headtime_host::{DiskSize, File, HostBuilder, HostSpec, ProcessSpec, Step};
//! use headtime_units::{Extent, Nanos, Sectors, Time};
//! use headtime_workload::Source;
//!
//! // A file of 1 MiB, read 4 KiB at a time.
//! let disk = DiskSize { capacity: Sectors::new(1 << 20), sector_bytes: 512 };
//! let mut builder = HostBuilder::new(HostSpec::default(), disk)?;
//! let file = builder.add_file(File { extents: vec![Extent::at(4096, 2048)], size: 1 << 20 })?;
//! let mut offset = 0;
//! let reader = move || {
//!     let step = Step::Read { file, offset, len: 4096 };
//!     offset += 4096;
//!     if offset > 1 << 20 { Step::Exit } else { step }
//! };
//! builder.add_process(ProcessSpec {
//!     program: 1,
//!     behaviour: Box::new(reader),
//!     served_by: None,
//!     start: Time::ZERO,
//! });
//! let mut host = builder.build(1)?;
//!
//! // A disk that serves one request at a time, in 1 ms each.
//! let (mut now, mut sizes) = (Time::ZERO, Vec::new());
//! while !host.done() {
//!     while let Some(request) = host.poll(now) {
//!         sizes.push(request.extent.len.get() / 8);
//!         now = now + Nanos::from_millis(1);
//!         host.completed(now, request.cookie);
//!     }
//!     host.unplug();
//!     now = host.next_arrival().map_or(now, |at| at.max(now));
//! }
//! // The windows of readahead, in pages.
//! assert_eq!(sizes, [4, 8, 16, 32, 32, 32, 32, 32, 32, 32, 4]);
//! assert_eq!(host.outcome()[0].bytes_read, 1 << 20);
//! # Ok::<(), headtime_host::HostError>(())
//! ```
//!
//! # What is simplified
//!
//! - Every process has a processor of its own. The kernel's own work costs no time except
//!   [`HostSpec::copy_per_page`].
//! - A process runs ahead of simulated time, for at most a millisecond, over pages that it finds in
//!   memory. Effects on the disk and on other processes still happen at the right time. But a page
//!   that is evicted within this millisecond still counts as found. All pages of one write call
//!   become dirty when the call begins, unless the call has to wait in between.
//! - Readahead requests do not wait for one of the queue's 128 slots. Write-back requests do.
//! - There is no journal: blocks of metadata are written back like pages of files.
//! - There is one flusher. The kernel has two to eight, and most are idle.
//! - After the last process has ended, nothing more is written back.

mod ahead;
mod builder;
mod cache;
mod calls;
mod changes;
pub mod cluster;
mod file;
mod flusher;
pub mod guests;
mod host;
mod hosts;
mod io;
pub mod layout;
mod outcome;
mod pool;
mod process;
pub mod readahead;
mod returned;
mod source;
mod spec;
mod waiters;
pub mod workload;
mod writeback;

pub use builder::{HostBuilder, HostError, HostPlan};
pub use host::Host;
pub use outcome::{ProcessOutcome, ProgramOutcome};
pub use spec::{
    BarrierId, Behaviour, DiskSize, File, FileId, HostSpec, PAGE, PoolId, ProcessSpec, Step,
};
