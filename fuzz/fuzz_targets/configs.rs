//! A configuration of a server, a curve, or a figure.

#![no_main]

headtime_fuzz::target!("configs");
