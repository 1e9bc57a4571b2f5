//! Lays out files: places directories, inodes and data as a file system of the time places them.
//!
//! [`Ext3`] follows the allocation rules of ext3 in Linux 2.6.31 block by block. [`Tree`] is a tree of directories on
//! an [`Ext3`], such as the sources of that kernel ([`TreeSpec::default`]). [`Ffs`] places small files as the fast file
//! system of FreeBSD 4 does. Everything is a pure function of its arguments and a seed. Nothing here knows the time or
//! does I/O.

mod error;
mod ext3;
mod ffs;
mod tree;

pub use error::LayoutError;
pub use ext3::{BLOCK_BYTES, Directory, Ext3, Ext3Options, FileLayout, Indirect};
pub use ffs::{Ffs, FfsEntry};
pub use tree::{Entry, Tree, TreeDirectory, TreeFile, TreePlan, TreeSpec, Visit, Walk, Written};
