//! Tests of probing from outside.

mod between;
mod curves;
mod inside;
mod late;
mod learned;
mod refused;
mod restored;
mod resumed;
mod toys;
mod wandering;
mod written;
