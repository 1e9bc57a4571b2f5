//! The live world: runs the core of the simulation in front of a real disk, or of a disk that is emulated in real time.
//!
//! ```text
//!  front ends            disk (one thread each)                      devices
//!  nbd ──┐  Submission   ┌──────────────────────────┐  Parts   ┌─ file: a file or block device
//!  fuse ─┼─────────────► │ queue ─► Engine ─► Device │ ───────► ┤  emulated: a drive's model in real time
//!  tests ┘ ◄───────────  │  log, metrics, timeouts   │ ◄─────── └─ null: answers at once
//!           Completion   └──────────────────────────┘  Done
//! ```
//!
//! - [`request`]: requests and completions between front ends and a disk. [`buffer`]: memory for their data.
//! - [`disk`]: a disk's handle for front ends, and the disk's thread, which turns events into decisions.
//! - [`device`]: the interface of devices, which execute commands. [`null`], [`file`](mod@file) and [`emulated`] are
//!   devices. [`faulty`] injects faults into a device.
//! - [`header`]: the first bytes of an array's disks.
//! - [`backing`]: makes, locks, watches and removes the files behind disks.
//! - [`nbd`]: the front end for NBD. `headtime-attach` is another front end, through FUSE.
//! - [`metrics`], [`http`]: state for people and scripts. [`estimate`]: account of the arm's time for devices that do
//!   not report one.
//! - [`scrub`]: reads a disk to its end while clients use the disk.
//! - [`probed`]: a device, or an export of an NBD server, as a target of probes.
//! - [`goals`]: run-time goals of programs, and the windows of time that meet the goals.
//! - [`listen`]: the sockets of all servers.
//!
//! Other crates have the policies, the disk model, arguments and configuration files, printing, and the queries to
//! Linux (`headtime-linux`).
//!
//! # Threads
//!
//! Each disk has a thread of its own. Only this thread touches the disk's engine and device, or the engines and devices
//! of all members of a volume. One more thread serves NBD and HTTP, and another one FUSE if FUSE is in use. Bounded
//! queues connect the threads. When a queue is full, its front end stops reading from its client.

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
pub mod md;
pub mod metrics;
pub mod nbd;
pub mod null;
pub mod probed;
pub mod request;
pub mod scrub;
