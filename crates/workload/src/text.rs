//! What stands as text in configuration.

use crate::{ArrivalEvent, Fit, Format, SizeDistribution, TimeDistribution, TimeUnit};
use headtime_units::serde_as_text;

serde_as_text!(
    TimeDistribution,
    "a duration or a distribution of durations, such as \"30ms\""
);
serde_as_text!(
    SizeDistribution,
    "a size or a distribution of sizes, such as \"4KiB\""
);
serde_as_text!(Format, "a trace format");
serde_as_text!(TimeUnit, "a unit of time");
serde_as_text!(ArrivalEvent, "\"queue\" or \"issue\"");
serde_as_text!(Fit, "\"error\" or \"wrap\"");
