//! Why files cannot be laid down.

use thiserror::Error;

/// Why files cannot be laid down.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// A block has to be a whole number of sectors.
    #[error("a sector of {sector_bytes} bytes does not divide a block of 4096 bytes")]
    Sector { sector_bytes: u32 },
    /// Not a size of an inode.
    #[error("an inode of {found} bytes: allowed are 128, 256, 512, 1024, 2048 and 4096")]
    InodeBytes { found: u32 },
    /// Not a density of inodes.
    #[error("one inode for {found} bytes: allowed are 1024 to 4194304")]
    BytesPerInode { found: u64 },
    /// The partition cannot be a file system.
    #[error("a partition of {bytes} bytes: allowed are about 300 KiB to 16 TiB")]
    PartitionSize { bytes: u64 },
    /// Nothing left.
    #[error("the file system has no free {what}")]
    Full {
        /// What ran out.
        what: &'static str,
    },
    /// A directory's index is full.
    #[error("the directory with inode {inode} has no room for another entry")]
    DirectoryFull {
        /// Its inode number.
        inode: u32,
    },
    /// Two levels of indirection do not reach that far.
    #[error("a file of {bytes} bytes: at most 4 GiB are laid down")]
    FileSize { bytes: u64 },
    /// Not a state of wear.
    #[error(
        "aged to {used} used with holes of {hole_blocks} blocks: allowed are 0 to 0.95 and 1 to 1000000"
    )]
    Age {
        /// Share of blocks taken.
        used: f64,
        /// Mean length of a hole in blocks.
        hole_blocks: f64,
    },
    /// A number of a tree is out of range.
    #[error("a tree with {key} = {found}: allowed are {allowed}")]
    Tree {
        key: &'static str,
        found: String,
        allowed: &'static str,
    },
}
