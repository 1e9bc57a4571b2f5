//! What an NBD client says before its first request.

#![no_main]

headtime_fuzz::target!("nbd_handshake");
