//! Writes metrics in the encoder's form.

use crate::metrics::Times;
use headtime_units::Nanos;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use std::fmt;

/// Names and values of labels.
pub(super) type Labels<'a> = Vec<(&'a str, &'a str)>;

/// Writer of metrics, one after the other.
pub(super) struct Writer<'a>(pub(super) DescriptorEncoder<'a>);

impl Writer<'_> {
    /// Writes one metric with its values by labels. A metric without values is left out.
    pub(super) fn values<'l, M: EncodeMetric>(
        &mut self,
        (name, help, unit): (&str, &str, Option<Unit>),
        kind: MetricType,
        values: impl IntoIterator<Item = (Labels<'l>, M)>,
    ) -> fmt::Result {
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return Ok(());
        }
        let mut encoder = self.0.encode_descriptor(name, help, unit.as_ref(), kind)?;
        for (labels, value) in values {
            if labels.is_empty() {
                // An empty set of labels would be written as `{}`.
                return value.encode(encoder);
            }
            value.encode(encoder.encode_family(&labels.as_slice())?)?;
        }
        Ok(())
    }

    /// Writes counters.
    pub(super) fn counters<'l>(
        &mut self,
        what: (&str, &str, Option<Unit>),
        values: impl IntoIterator<Item = (Labels<'l>, u64)>,
    ) -> fmt::Result {
        let values = values.into_iter();
        let values = values.map(|(labels, value)| (labels, ConstCounter::new(value)));
        self.values(what, MetricType::Counter, values)
    }

    /// Writes sums of times.
    pub(super) fn seconds<'l>(
        &mut self,
        (name, help): (&str, &str),
        values: impl IntoIterator<Item = (Labels<'l>, Nanos)>,
    ) -> fmt::Result {
        let values = values.into_iter();
        let values = values.map(|(labels, value)| (labels, ConstCounter::new(value.as_secs_f64())));
        self.values(
            (name, help, Some(Unit::Seconds)),
            MetricType::Counter,
            values,
        )
    }

    /// Writes values that go up and down.
    pub(super) fn gauges<'l>(
        &mut self,
        what: (&str, &str, Option<Unit>),
        values: impl IntoIterator<Item = (Labels<'l>, f64)>,
    ) -> fmt::Result {
        let values = values.into_iter();
        let values = values.map(|(labels, value)| (labels, ConstGauge::new(value)));
        self.values(what, MetricType::Gauge, values)
    }

    /// Writes histograms of times, with bounds in microseconds.
    pub(super) fn times<'l>(
        &mut self,
        (name, help): (&str, &str),
        bounds_us: &[u64],
        values: impl IntoIterator<Item = (Labels<'l>, Times)>,
    ) -> fmt::Result {
        let bounds: Vec<Nanos> = bounds_us.iter().map(|us| Nanos::from_micros(*us)).collect();
        self.histograms(
            (name, help, Some(Unit::Seconds)),
            &bounds,
            Nanos::as_secs_f64,
            values,
        )
    }

    /// Writes histograms of counts.
    pub(super) fn counted<'l>(
        &mut self,
        (name, help): (&str, &str),
        bounds: &[u64],
        values: impl IntoIterator<Item = (Labels<'l>, Times)>,
    ) -> fmt::Result {
        let bounds: Vec<Nanos> = bounds
            .iter()
            .map(|count| Nanos::from_nanos(*count))
            .collect();
        let as_count = |count: Nanos| count.as_nanos() as f64;
        self.histograms((name, help, None), &bounds, as_count, values)
    }

    fn histograms<'l>(
        &mut self,
        (name, help, unit): (&str, &str, Option<Unit>),
        bounds: &[Nanos],
        shown: fn(Nanos) -> f64,
        values: impl IntoIterator<Item = (Labels<'l>, Times)>,
    ) -> fmt::Result {
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return Ok(());
        }
        let mut encoder =
            self.0
                .encode_descriptor(name, help, unit.as_ref(), MetricType::Histogram)?;
        for (labels, times) in values {
            // The encoder sums the buckets, so each bucket has only its own count.
            let mut before = 0;
            let mut buckets: Vec<(f64, u64)> = bounds
                .iter()
                .zip(times.not_above(bounds))
                .map(|(bound, count)| {
                    let more = count - before;
                    before = count;
                    (shown(*bound), more)
                })
                .collect();
            buckets.push((f64::INFINITY, times.len() - before));
            encoder
                .encode_family(&labels.as_slice())?
                .encode_histogram::<NoLabelSet>(shown(times.sum()), times.len(), &buckets, None)?;
        }
        Ok(())
    }
}
