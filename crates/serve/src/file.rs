//! A file or a block device.
