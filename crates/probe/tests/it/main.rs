//! Tests of probing from outside.

mod between;
mod curves;
mod inside;
mod late;
mod learned;
mod pieces;
mod refused;
mod restored;
mod resumed;
mod toys;
mod wandering;
mod written;
