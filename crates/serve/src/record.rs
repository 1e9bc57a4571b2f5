//! Records the requests of a block device with their processes.
