//! `headtime attach` and `headtime detach`

use super::Live;
use clap::Args;
use headtime_units::{Bytes, Nanos};
use std::path::PathBuf;

/// Serve disks as files, and as block devices on them
///
/// Mounts a directory (FUSE) with a file for each export of a configuration of `headtime serve`; with
/// --loop also sets up a loop device on each, for file systems and whatever else wants a block
/// device. Sockets under `[listen]` are served too. Runs until SIGTERM, SIGINT or `headtime detach`:
/// then it waits until no file system is mounted on a loop device and no file is open, writes back,
/// removes the loop devices, unmounts the directory and flushes. A second signal ends it at once
/// (exit code 5).
#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub struct Attach {
    /// What to serve; docs/serve.md explains it
    #[arg(value_name = "CONFIG.toml")]
    pub config: PathBuf,
    /// An empty directory for the files
    #[arg(value_name = "MOUNTPOINT")]
    pub mountpoint: PathBuf,
    /// Set up a loop device on each file; takes root
    ///
    /// With direct I/O and no scheduler of its own, so that what is scheduled here is what programs
    /// ask. Requests do not tell their processes then: those of a loop device come from the kernel's
    /// workers.
    #[arg(long = "loop")]
    pub loop_devices: bool,
    /// The readahead of Linux on the loop devices; 0B turns it off. By default 128KiB, and for an array at least two stripes
    #[arg(long, value_name = "SIZE", requires = "loop_devices")]
    pub read_ahead: Option<Bytes>,
    /// Let other users look into the directory; the files stay yours
    #[arg(long)]
    pub allow_other: bool,
    /// How its disks run
    #[command(flatten)]
    pub live: Live,
}

const HELP: &str = "\
Output:
  a line for each export, with its name, its file and its loop device, and at last one that begins
  with `ready`

Example:
  headtime attach disk.toml /mnt/disks --loop &
  mkfs.ext4 /dev/loop0
  mount /dev/loop0 /mnt/data
  ...
  umount /mnt/data
  headtime detach /mnt/disks

Environment:
  HEADTIME_LOG   which messages: error, warn, info (the default), debug";

/// Stop a `headtime attach`, or clean up after one that was killed
///
/// Takes the loop devices' files away, unmounts the directory, ends the server and waits for it.
#[derive(Debug, Args)]
pub struct Detach {
    /// The directory that was given to `attach`
    #[arg(value_name = "MOUNTPOINT")]
    pub mountpoint: PathBuf,
    /// Unmount file systems that are mounted on the loop devices, and end it even if files are open
    #[arg(long)]
    pub force: bool,
    /// How long to wait for the server to write back and flush
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    pub timeout: Nanos,
}
