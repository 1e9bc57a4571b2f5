//! A drive's model in real time.
