//! Metrics of the promises of scrubs.

use super::writer::Writer;
use super::{Labelled, Page};
use crate::scrub::PromiseStatus;
use headtime_gaps::Verdict;
use headtime_linux::clock::Wall;
use headtime_units::MorePercent;
use prometheus_client::registry::Unit;
use std::fmt;

/// A metric: name, help, unit, and a function for the value, if there is a value.
type PromiseGauge = (
    &'static str,
    &'static str,
    Option<Unit>,
    fn(&PromiseStatus) -> Option<f64>,
);

impl Page {
    pub(super) fn write_promises(&self, out: &mut Writer<'_>) -> fmt::Result {
        out.gauges(
            (
                "scrub_promise",
                "1 for what is said of the promises of the last scrub: unknown, holds, late, slow or neither",
                None,
            ),
            self.parts("verdict", |disk| {
                let promise = promise_of(disk);
                promise.into_iter().flat_map(|promise| {
                    Verdict::ALL.map(|verdict| {
                        let is_it = verdict == promise.verdict;
                        (verdict.name(), f64::from(u8::from(is_it)))
                    })
                })
            }),
        )?;
        let gauges: [PromiseGauge; 6] = [
            (
                "scrub_finish_by_timestamp",
                "By when the last scrub has promised to be done, in seconds since 1970",
                Some(Unit::Seconds),
                |promise| Some(promise.promises.date?.at().as_secs_f64()),
            ),
            (
                "scrub_forecast_end_timestamp",
                "When the last scrub will be done by its forecast, or was, in seconds since 1970; only with promises",
                Some(Unit::Seconds),
                |promise| promise.ends.map(Wall::as_secs_f64),
            ),
            (
                "scrub_short_queue",
                "1 while the drive gets two commands at a time for the date of the last scrub, 0 otherwise; only with promises",
                None,
                |promise| Some(f64::from(u8::from(promise.short_queue))),
            ),
            (
                "scrub_p99_promised_ratio",
                "By which share the last scrub has promised to make the 99th percentile of latencies no longer",
                None,
                |promise| promise.promises.p99.map(MorePercent::share),
            ),
            (
                "scrub_p99",
                "The 99th percentile of clients' latencies since the last scrub began or the server started; only with promises",
                Some(Unit::Seconds),
                |promise| waited(promise).then(|| promise.waits.p99.as_secs_f64()),
            ),
            (
                "scrub_p99_without",
                "The same without the scrub, estimated",
                Some(Unit::Seconds),
                |promise| waited(promise).then(|| promise.waits.p99_without.as_secs_f64()),
            ),
        ];
        for (name, help, unit, of) in gauges {
            let values = self.disks.iter().filter_map(|disk| {
                let value = of(promise_of(disk)?)?;
                Some((vec![("disk", disk.disk.as_str())], value))
            });
            out.gauges((name, help, unit), values)?;
        }
        Ok(())
    }
}

fn promise_of(disk: &Labelled) -> Option<&PromiseStatus> {
    disk.scrub.as_ref()?.promise.as_ref()
}

fn waited(promise: &PromiseStatus) -> bool {
    promise.waits.requests > 0
}
