//! Disks over NBD: an own client that looks at every byte, and the clients that people use.

mod bytes;
mod client;
mod device;
mod fixture;
mod garbage;
mod guest;
mod part;
mod protocol;
mod server;
#[cfg(feature = "tls")]
mod tls;
mod tools;
