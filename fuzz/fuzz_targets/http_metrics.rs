//! A request of HTTP at the address of metrics.

#![no_main]

headtime_fuzz::target!("http_metrics");
