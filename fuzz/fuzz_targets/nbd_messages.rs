//! Requests of an NBD client, over a socket.

#![no_main]

headtime_fuzz::target!(headtime_fuzz::nbd::messages);
