//! Network Block Device: a disk for remote clients and virtual machines.
//!
//! Fixed newstyle handshake; structured replies; `base:allocation`; several exports, each with its class; several connections to one
//! export. There is no TLS: the server listens only on unix sockets and loopback addresses.
//!
//! - [`wire`], [`handshake`], [`check`]: the protocol without I/O. Messages of a client become
//!   answers, or [`check::Action`].
//! - `negotiation`, `session`: one connection, one task. `stream`, `inbox`, `patience`, `status`: parts of both.
//! - `budget`: bytes of all connections.
//! - `server`: limits, the end.
//!
//! ```text
//!  socket ─► input ─► wire ─► check ─► Submission ─► disk
//!     ▲                                                │
//!     └── one sendmsg ◄─ replies ◄─ inbox ◄─ Completion ┘
//! ```

mod budget;
pub mod check;
pub mod handshake;
mod inbox;
mod negotiation;
mod patience;
mod server;
mod session;
mod status;
mod stream;
pub mod wire;

pub use crate::listen::{Listen, ParseListenError};
pub use server::{Counts, Limits, Server, SetupError};
pub use session::SessionError;
