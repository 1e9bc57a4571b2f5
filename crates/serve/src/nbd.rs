//! Network Block Device: a disk for remote clients and virtual machines.
//!
//! Fixed newstyle handshake; structured replies; `base:allocation`; several exports, each with its class; several connections to one
//! export. TLS over TCP, if the server has certificates. Without client certificates no other machine connects, unless the network is
//! trusted.
//!
//! - [`wire`], [`handshake`], [`check`]: the protocol without I/O. Messages of a client become
//!   answers, or [`check::Action`].
//! - `negotiation`, `session`: one connection, one task. `stream`, `channel`, `inbox`, `patience`, `status`: parts of both.
//! - [`tls`]: encryption between socket and session.
//! - `budget`: bytes of all connections.
//! - `server`: limits, the end.
//!
//! ```text
//!  socket ─► input ─► wire ─► check ─► Submission ─► disk
//!     ▲                                                │
//!     └── one sendmsg ◄─ replies ◄─ inbox ◄─ Completion ┘
//! ```

mod budget;
mod channel;
pub mod check;
pub mod handshake;
mod inbox;
mod negotiation;
mod pace;
mod patience;
mod server;
mod session;
mod status;
mod stream;
pub mod tls;
pub mod wire;

pub use crate::listen::{Listen, ParseListenError};
pub use server::{Counts, Limits, Network, REMOTE, Server, SetupError};
pub use session::SessionError;
