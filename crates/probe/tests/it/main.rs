//! Tests of probing from outside.

mod curves;
mod inside;
mod learned;
mod refused;
mod resumed;
mod wandering;
mod written;
