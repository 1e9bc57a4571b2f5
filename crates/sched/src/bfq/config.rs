//! The tunables.

use crate::CfqConfig;
use crate::policy::{OptionInfo, Options};
use headtime_units::Nanos;

/// Tunables of [`Bfq`](crate::Bfq), with Linux's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BfqConfig {
    /// True if new and long idle queues get more weight.
    pub low_latency: bool,
    /// Longest time for which the disk is kept free for a process; 0 for no wait.
    pub slice_idle: Nanos,
    /// Longest slot of a queue that is not raised. At least a millisecond.
    pub timeout_sync: Nanos,
    /// Largest budget in sectors; 0 for a budget that follows from the measured rate.
    pub max_budget: u64,
    /// True if the disk always waits for the queue in service, and takes one request at a time.
    pub strict_guarantees: bool,
    /// Ages at which asynchronous and synchronous requests expire.
    pub fifo_expire: [Nanos; 2],
    /// Reach of a sweep backwards, in KiB.
    pub back_seek_max: u64,
    /// Cost of a sector behind, relative to a sector ahead. At least 1.
    pub back_seek_penalty: u64,
}

impl BfqConfig {
    pub(super) const OPTIONS: [OptionInfo; 9] = {
        let [.., slice_idle, _, _, back_seek_max, back_seek_penalty] = CfqConfig::OPTIONS;
        [
            OptionInfo::flag(
                "low_latency",
                true,
                "whether a process that is new, or was idle for two seconds, gets 30 times the \
                 weight for some seconds; false gives full throughput from the start",
            ),
            slice_idle,
            OptionInfo::duration(
                "timeout_sync",
                Nanos::from_millis(125),
                "longest slot of a process, and the time that a largest budget is meant for; higher \
                 is more throughput, lower is shorter waits; 0 is a millisecond",
            ),
            OptionInfo::count(
                "max_budget",
                0,
                (0, (1 << 31) - 1),
                "sectors of a process in one slot; higher is more throughput, lower is shorter \
                 waits; 0 goes by the rate of the drive, which is measured",
            ),
            OptionInfo::flag(
                "strict_guarantees",
                false,
                "whether the drive has one request at a time, and always waits for the process in \
                 service; true shares exactly and is slow",
            ),
            OptionInfo::duration(
                "fifo_expire_sync",
                Nanos::from_millis(125),
                "age at which a request that somebody waits for goes second in the slot of its \
                 queue; lower favours old requests over short seeks; 0 is any age",
            ),
            OptionInfo::duration(
                "fifo_expire_async",
                Nanos::from_millis(250),
                "age at which a request that nobody waits for goes second in the slot of its \
                 queue; lower favours old requests over short seeks; 0 is any age",
            ),
            back_seek_max,
            back_seek_penalty,
        ]
    };

    pub(super) fn from_options(options: &Options<'_>) -> BfqConfig {
        let shortest = Nanos::from_millis(1);
        BfqConfig {
            low_latency: options.flag("low_latency"),
            slice_idle: options.duration("slice_idle"),
            timeout_sync: options.duration("timeout_sync").max(shortest),
            max_budget: options.count("max_budget"),
            strict_guarantees: options.flag("strict_guarantees"),
            fifo_expire: ["fifo_expire_async", "fifo_expire_sync"].map(|key| options.duration(key)),
            back_seek_max: options.count("back_seek_max"),
            back_seek_penalty: options.count("back_seek_penalty"),
        }
    }
}

impl Default for BfqConfig {
    /// Returns Linux's initial values.
    fn default() -> BfqConfig {
        BfqConfig::from_options(&Options::new(&super::INFO, None, &[]))
    }
}
