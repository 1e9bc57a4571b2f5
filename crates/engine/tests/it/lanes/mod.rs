//! Lanes and gates, and requests that join staged ones: on toys, under the audit, with logs that replay.

mod asked;
mod in_flight;
mod ranks;
mod staged;
mod windows;
