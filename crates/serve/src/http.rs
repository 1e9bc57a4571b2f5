//! Metrics, status and control over HTTP.
