//! Network Block Device: a disk for remote clients and virtual machines.
