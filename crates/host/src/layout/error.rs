//! Reason why files cannot be laid out.

use thiserror::Error;

/// Reason why files cannot be laid out.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// A block has to be a whole number of sectors.
    #[error("a sector of {sector_bytes} bytes does not divide a block of 4096 bytes")]
    Sector { sector_bytes: u32 },
    /// The size of an inode is not allowed.
    #[error("an inode of {found} bytes: allowed are 128, 256, 512, 1024, 2048 and 4096")]
    InodeBytes { found: u32 },
    /// The density of inodes is not allowed.
    #[error("one inode for {found} bytes: allowed are 1024 to 4194304")]
    BytesPerInode { found: u64 },
    /// The partition is too small or too large for a file system.
    #[error("a partition of {bytes} bytes: allowed are about 300 KiB to 16 TiB")]
    PartitionSize { bytes: u64 },
    /// No inode or no block is free.
    #[error("the file system has no free {what}")]
    Full {
        /// Exhausted resource.
        what: &'static str,
    },
    /// A directory's index is full.
    #[error("the directory with inode {inode} has no room for another entry")]
    DirectoryFull {
        /// Inode number of the directory.
        inode: u32,
    },
    /// The file is larger than two levels of indirection can reach.
    #[error("a file of {bytes} bytes: at most 4 GiB are laid down")]
    FileSize { bytes: u64 },
    /// The parameters of aging are out of range.
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
