//! A disk as a file.
