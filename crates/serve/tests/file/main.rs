//! A file or a block device as a disk.
//!
//! Tests that need loop devices or mounts are skipped, and say so, where these are not allowed.

#[path = "../common/mod.rs"]
mod common;
mod data;
mod making;
mod opening;
mod oracle;
mod stalls;
mod support;
