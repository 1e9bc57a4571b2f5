//! Tests that no run is shorter than its bound.

mod by_hand;
mod draw;
mod exact;
mod free_sectors;
mod programs;
mod requests;
