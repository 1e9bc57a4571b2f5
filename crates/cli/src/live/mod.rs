//! Live servers: the configuration, the disks, and the server around them.

mod arrays;
pub mod assumed_drive;
pub mod child;
pub mod config;
pub mod disk;
pub mod disks;
pub mod front;
pub mod goals;
mod log_file;
pub mod messages;
mod reload;
pub mod server;
pub mod sockets;
