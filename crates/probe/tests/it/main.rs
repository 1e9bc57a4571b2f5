//! Tests of probing from outside.

mod between;
mod curves;
mod inside;
mod late;
mod learned;
mod refused;
mod resumed;
mod wandering;
mod written;
