//! A request of HTTP at the control socket.

#![no_main]

headtime_fuzz::target!("http_control");
