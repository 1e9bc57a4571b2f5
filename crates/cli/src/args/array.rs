//! `headtime array`

use clap::{Args, Subcommand};
use headtime_units::Bytes;
use std::path::PathBuf;

/// Headers of the disks of arrays.
#[derive(Debug, Subcommand)]
pub enum ArrayVerb {
    /// Write headers on files and block devices, to serve them as an array
    ///
    /// The header of a disk names the set of disks and the disk's place in the set. Servers read the headers, and refuse disks of another
    /// set or in another order. Emulated drives and disks in memory need no header. The header takes the first 1MiB of a disk. Nothing is
    /// written if one of the disks is unfit.
    Create(ArrayCreate),
    /// Print the headers of files and block devices
    Show(ArrayShow),
    /// Read md's superblocks, and print the configuration that coordinates the disks of the md array
    ///
    /// A client, such as a guest, makes an md array of served disks. The disks stay exported one by one, and the coordinator finds a reader's
    /// stream by the layout of the array. Nothing is written. Known are RAID 0, and RAID 5 with mdadm's default layout, with superblocks of
    /// version 1.0, 1.1 and 1.2.
    Detect(ArrayDetect),
}

/// Arguments of `headtime array create`.
#[derive(Debug, Args)]
#[command(after_help = CREATE_HELP)]
pub struct ArrayCreate {
    /// Disks of the array in their order, 2 to 64
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Bytes on one disk before the next disk's turn, a multiple of 4KiB; as `chunk` of [[array]]
    #[arg(long, value_name = "SIZE", default_value = "64KiB")]
    pub chunk: Bytes,
    /// Size of each file; creates missing files, and existing files must have this size
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// Overwrite headers and data, and write to block devices; the data on the disks are lost
    #[arg(long)]
    pub overwrite: bool,
    /// Open devices even if they are mounted, partitioned or otherwise in use
    #[arg(long)]
    pub force: bool,
}

const CREATE_HELP: &str = "\
Example:
  headtime array create --size 4GiB a.img b.img

  [[disk]]
  name = \"a\"
  device = \"a.img\"
  scheduler = \"deadline\"
  [[disk]]
  name = \"b\"
  device = \"b.img\"
  scheduler = \"deadline\"
  [[array]]
  name = \"data\"
  members = [\"a\", \"b\"]";

/// Arguments of `headtime array detect`.
#[derive(Debug, Args)]
pub struct ArrayDetect {
    /// All files or block devices of one md array, in any order
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Names of the disks that serve the files, in the order of the files; prints the array alone
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub names: Vec<String>,
}

/// Arguments of `headtime array show`.
#[derive(Debug, Args)]
pub struct ArrayShow {
    /// Files and block devices
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}
