//! The live world: runs the same core as the simulation in front of a real disk, or of a disk that
//! is emulated in real time.
//!
//! ```text
//!  front ends            disk (one thread each)                      devices
//!  nbd ──┐  Submission   ┌──────────────────────────┐  Parts   ┌─ file: a file or block device
//!  fuse ─┼─────────────► │ queue ─► Engine ─► Device │ ───────► ┤  emulated: a drive's model in real time
//!  tests ┘ ◄───────────  │  log, metrics, timeouts   │ ◄─────── └─ null: answers at once
//!           Completion   └──────────────────────────┘  Done
//! ```
//!
//! - [`request`]: what passes between front ends and a disk, [`buffer`]: where the data lie.
//! - [`disk`]: the handle that front ends use, and its thread: events in, decisions out.
//! - [`device`]: what executes commands. [`null`], [`file`](mod@file) and [`emulated`] are such;
//!   [`faulty`] makes one go wrong.
//! - [`header`]: the first bytes of an array's disks.
//! - [`backing`]: the files behind them, made, locked, watched and removed.
//! - [`nbd`]: the front end; `headtime-attach` is another, through FUSE.
//! - [`metrics`], [`http`]: what a person watches it with; [`estimate`]: where the arm's time goes if the
//!   device does not tell.
//! - [`scrub`]: reads a disk to its end while others use it.
//! - [`probed`]: a device, or what is behind an NBD server, as a probe, to learn it.
//! - [`goals`]: run-time goals of programs, and the windows of time that keep them.
//! - [`listen`]: the sockets of all that listens.
//!
//! What is not here: policies, the disk model, arguments and configuration files, printing; what Linux
//! is asked (`headtime-linux`).
//!
//! # Threads
//!
//! Each disk has a thread that alone touches its engine and device, or those of all members if it is a volume. One more thread serves NBD and
//! HTTP, and one FUSE if it is in use. Bounded queues connect them. When a queue is full, its front
//! end stops reading from its client.

pub mod backing;
pub mod buffer;
pub mod device;
pub mod disk;
pub mod emulated;
pub mod estimate;
pub mod faulty;
pub mod file;
pub mod goals;
pub mod header;
pub mod http;
pub mod listen;
pub mod metrics;
pub mod nbd;
pub mod null;
pub mod probed;
pub mod request;
pub mod scrub;
