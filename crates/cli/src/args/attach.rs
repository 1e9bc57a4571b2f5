//! `headtime attach` and `headtime detach`

use super::Live;
use clap::Args;
use headtime_units::{Bytes, Nanos};
use std::path::PathBuf;

/// Arguments of `headtime attach`.
#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub struct Attach {
    /// Configuration of the disks, as for `headtime serve`; docs/serve.md explains the keys
    #[arg(value_name = "CONFIG.toml")]
    pub config: PathBuf,
    /// Empty directory in which the files appear
    #[arg(value_name = "MOUNTPOINT")]
    pub mountpoint: PathBuf,
    /// Set up a loop device on each file; needs root
    ///
    /// Use this option for file systems and programs that need a block device. Loop devices use direct I/O and no
    /// scheduler of Linux, so that only the configured scheduler orders requests. Schedulers cannot tell processes
    /// apart then, since workers of the kernel send all requests of a loop device.
    #[arg(long = "loop")]
    pub loop_devices: bool,
    /// Readahead of Linux on the loop devices; by default 128KiB, and for an array at least two stripes
    ///
    /// 0B turns readahead off.
    #[arg(long, value_name = "SIZE", requires = "loop_devices")]
    pub read_ahead: Option<Bytes>,
    /// Let other users list the directory; the files stay accessible to you alone
    #[arg(long)]
    pub allow_other: bool,
    /// Options of the running disks.
    #[command(flatten)]
    pub live: Live,
}

const HELP: &str = "\
Output:
  a line for each export, with the export's name, file and loop device; then a line that begins
  with `ready`

Example:
  headtime attach disk.toml /mnt/disks --loop &
  mkfs.ext4 /dev/loop0
  mount /dev/loop0 /mnt/data
  ...
  umount /mnt/data
  headtime detach /mnt/disks

Environment:
  HEADTIME_LOG   least level of printed messages: error, warn, info (the default), debug";

/// Arguments of `headtime detach`.
#[derive(Debug, Args)]
pub struct Detach {
    /// Directory that was given to `attach`
    #[arg(value_name = "MOUNTPOINT")]
    pub mountpoint: PathBuf,
    /// Unmount file systems on the loop devices, and end the server even if files are open
    ///
    /// If files are still open after --timeout, the server ends at once. Data that were not flushed are lost then. The
    /// command waits for this second end up to --timeout again.
    #[arg(long)]
    pub force: bool,
    /// Longest wait for the server to write back, flush and end
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    pub timeout: Nanos,
}
