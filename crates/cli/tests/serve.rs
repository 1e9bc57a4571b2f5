//! A server as people and scripts meet it: sockets, signals, messages, exit codes.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a server runs in real time"
)]

#[path = "serve/access.rs"]
mod access;
#[path = "serve/arrays.rs"]
mod arrays;
#[path = "serve/beside.rs"]
mod beside;
#[path = "serve/check.rs"]
mod check;
#[path = "serve/common.rs"]
mod common;
#[path = "serve/control.rs"]
mod control;
#[path = "serve/coordinate.rs"]
mod coordinate;
#[path = "serve/copies.rs"]
mod copies;
#[path = "serve/file.rs"]
mod file;
#[path = "serve/gates.rs"]
mod gates;
#[path = "serve/goals.rs"]
mod goals;
#[path = "serve/life.rs"]
mod life;
#[path = "serve/losses.rs"]
mod losses;
#[path = "serve/messages.rs"]
mod messages;
#[path = "serve/nbd.rs"]
mod nbd;
#[path = "serve/probed.rs"]
mod probed;
#[path = "serve/promises.rs"]
mod promises;
#[path = "serve/races.rs"]
mod races;
#[path = "serve/ranges.rs"]
mod ranges;
#[path = "serve/rates.rs"]
mod rates;
#[path = "serve/scrub.rs"]
mod scrub;
#[path = "serve/starts.rs"]
mod starts;
#[path = "serve/swarm.rs"]
mod swarm;
#[path = "serve/top.rs"]
mod top;
#[path = "serve/versions.rs"]
mod versions;
