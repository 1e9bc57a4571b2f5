//! Requests of an NBD client, over a socket.

#![no_main]

headtime_fuzz::target!("nbd_messages");
