//! Stream Scheduling coordinated over the disks of an array.
//!
//! A volume stripes its addresses over *m* disks. Each disk sees every *m*-th request of a reader, so each alone waits for a
//! reader that another disk keeps busy. The [`Coordinator`] finds streams in the volume's addresses, and dedicates all disks
//! to one stream at a time.
//!
//! # Rule
//!
//! 1. The volume is one *virtual disk*. The rule of section 2.1 ([`StreamRule`]) runs over the clients' requests in its
//!    addresses. A new request has to beat the request that its disk would serve next. A virtual stream is established
//!    with *m* times the threshold of a disk.
//! 2. On each disk, the stream's requests form a *physical stream* by the rule and the threshold of a disk. Arrivals are
//!    optimistic: time in which any request of the stream was outstanding does not count as a wait.
//! 3. If each disk has an established physical stream, an established virtual stream is *ready*. When a request of a ready
//!    stream goes to a disk, the stream is *served*: all disks are dedicated to it, and its queued requests go next.
//! 4. When the last command of each disk is one of the stream, all heads are at the stream. From then on actual arrivals
//!    count.
//! 5. If a served stream's next request does not come in time on a disk, the stream is *unusable* for a second, and all
//!    disks are released. The stream is still followed, so that it does not begin anew.
//! 6. A slice ends on all disks at once, if requests of others wait. Then each disk serves what its elevator chooses. The
//!    first request of another ready stream begins the next slice.
//!
//! Unless `lost` is 1, the coordinator tries serving streams and not serving streams in turn
//! ([`Trials`](headtime_sched::Trials)). The coordinator keeps the choice that serves more sectors in the same time. This part is
//! not in the paper.
//!
//! A request that expires in a disk's elevator goes at once. The disk's scheduler ensures this.
//!
//! # Disks that clients make an array of
//!
//! With a [`Geometry`] the clients' requests have addresses of the disks, and the coordinator finds the addresses in the
//! array by the layout. A request over several chunks of a disk begins at the first chunk, and each chunk is a step.
//! Parity and sectors outside of the array belong to no stream.
//!
//! # Readings
//!
//! `docs/design/2026-11-28-array.md` has the questions that the paper leaves open, with the measured effect of each
//! answer.
//!
//! # Source
//!
//! Y. Xu and S. Jiang, "A Scheduling Framework that Makes any Disk Schedulers Non-work-conserving solely based on Request
//! Characteristics", FAST 2011, section 2.2.
//!
//! [`StreamRule`]: headtime_sched::StreamRule

#![warn(missing_docs)]

mod coordinator;
mod geometry;
mod streams;

pub use coordinator::Coordinator;
pub use geometry::Geometry;
