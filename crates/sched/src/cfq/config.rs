//! The tunables, as set and in ticks.

use crate::jiffies::Hz;
use crate::policy::{OptionInfo, Options};
use headtime_units::Nanos;

/// Tunables of [`Cfq`](crate::Cfq). Durations count in whole ticks, rounded down. A duration counts as
/// at least one tick, unless the option may be 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CfqConfig {
    /// Tick rate of the kernel's timer.
    pub hz: Hz,
    /// Requests of one queue in the drive while others have requests. Four times this number while no
    /// other queue has requests. At least 1.
    pub quantum: u64,
    /// The slice of a process.
    pub slice_sync: Nanos,
    /// The slice of asynchronous requests.
    pub slice_async: Nanos,
    /// An eighth of the asynchronous requests that are handed out in one turn. At least 1.
    pub slice_async_rq: u64,
    /// Longest time for which the disk is kept free for a process; 0 for no wait.
    pub slice_idle: Nanos,
    /// The age at which a synchronous request expires.
    pub fifo_expire_sync: Nanos,
    /// The age at which an asynchronous request expires.
    pub fifo_expire_async: Nanos,
    /// Reach of a sweep backwards, in KiB.
    pub back_seek_max: u64,
    /// Cost of a sector behind, relative to a sector ahead. At least 1.
    pub back_seek_penalty: u64,
}

impl CfqConfig {
    /// Linux's initial values.
    pub const DEFAULT: CfqConfig = CfqConfig {
        hz: Hz::DEFAULT,
        quantum: 4,
        slice_sync: Nanos::from_millis(100),
        slice_async: Nanos::from_millis(40),
        slice_async_rq: 2,
        slice_idle: Nanos::from_millis(8),
        fifo_expire_sync: Nanos::from_millis(125),
        fifo_expire_async: Nanos::from_millis(250),
        back_seek_max: 16_384,
        back_seek_penalty: 2,
    };

    pub(crate) const OPTIONS: [OptionInfo; 10] = [
        OptionInfo::count(
            "hz",
            Self::DEFAULT.hz.get(),
            Hz::RANGE,
            "ticks of the kernel's timer per second, in which all times count; lower makes short \
             waits longer and all times coarser",
        ),
        OptionInfo::count(
            "quantum",
            Self::DEFAULT.quantum,
            (1, 1_000_000),
            "requests of one queue in the drive while others have requests, and four times as many \
             while none has; higher gives the drive more to choose from, lower makes a turn end \
             sooner",
        ),
        OptionInfo::duration(
            "slice_sync",
            Self::DEFAULT.slice_sync,
            "slice of a process, from its first completion; higher is more throughput, lower is \
             shorter waits; 0 is one tick",
        ),
        OptionInfo::duration(
            "slice_async",
            Self::DEFAULT.slice_async,
            "slice of what nobody waits for; higher favours background writes; 0 is one tick",
        ),
        OptionInfo::count(
            "slice_async_rq",
            Self::DEFAULT.slice_async_rq,
            (1, 1_000_000),
            "an eighth of the requests that nobody waits for in one turn while others have \
             requests; higher favours background writes",
        ),
        OptionInfo::duration(
            "slice_idle",
            Self::DEFAULT.slice_idle,
            "how long the disk is kept free for the next request of a process; higher keeps more \
             processes together and wastes more time on those that do not come; 0 never waits",
        ),
        OptionInfo::duration(
            "fifo_expire_sync",
            Self::DEFAULT.fifo_expire_sync,
            "age at which a request that somebody waits for begins the slice of its queue; lower \
             favours old requests over short seeks; 0 is one tick",
        ),
        OptionInfo::duration(
            "fifo_expire_async",
            Self::DEFAULT.fifo_expire_async,
            "age at which a request that nobody waits for begins the slice of its queue; lower \
             favours old requests over short seeks; 0 is one tick",
        ),
        OptionInfo::count(
            "back_seek_max",
            Self::DEFAULT.back_seek_max,
            (0, 1 << 40),
            "KiB that a sweep looks back; higher goes back more often, 0 never does",
        ),
        OptionInfo::count(
            "back_seek_penalty",
            Self::DEFAULT.back_seek_penalty,
            (1, 1_000_000),
            "how many times as much a sector behind costs as one ahead; higher goes back less often",
        ),
    ];

    pub(super) fn from_options(options: &Options<'_>) -> CfqConfig {
        CfqConfig {
            hz: Hz::new(options.count("hz")).expect("its range is that of the option"),
            quantum: options.count("quantum"),
            slice_sync: options.duration("slice_sync"),
            slice_async: options.duration("slice_async"),
            slice_async_rq: options.count("slice_async_rq"),
            slice_idle: options.duration("slice_idle"),
            fifo_expire_sync: options.duration("fifo_expire_sync"),
            fifo_expire_async: options.duration("fifo_expire_async"),
            back_seek_max: options.count("back_seek_max"),
            back_seek_penalty: options.count("back_seek_penalty"),
        }
    }
}

impl Default for CfqConfig {
    fn default() -> CfqConfig {
        CfqConfig::DEFAULT
    }
}

/// The longest wait for a seeking process (CFQ_MIN_TT); rounded up to ticks.
const SEEKY_IDLE: Nanos = Nanos::from_millis(2);

/// Delay of the idle class behind the last queue (CFQ_IDLE_DELAY).
const IDLE_CLASS_DELAY: Nanos = Nanos::from_millis(200);

/// The tunables in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct CfqTicks {
    slice_sync: i64,
    slice_async: i64,
    pub slice_idle: u64,
    pub seeky_idle: u64,
    pub fifo_expire: [u64; 2],
    pub idle_class_delay: i64,
}

impl CfqTicks {
    pub fn of(config: &CfqConfig) -> CfqTicks {
        let hz = config.hz;
        let some = |span| hz.ticks(span).max(1);
        let slice_idle = hz.ticks(config.slice_idle);
        CfqTicks {
            slice_sync: some(config.slice_sync) as i64,
            slice_async: some(config.slice_async) as i64,
            slice_idle,
            seeky_idle: slice_idle.min(hz.ticks_up(SEEKY_IDLE)),
            fifo_expire: [config.fifo_expire_async, config.fifo_expire_sync].map(some),
            idle_class_delay: some(IDLE_CLASS_DELAY) as i64,
        }
    }

    /// The slice of a queue of this kind and priority (cfq_prio_slice).
    pub fn slice(&self, sync: bool, priority: i64) -> i64 {
        let base = if sync {
            self.slice_sync
        } else {
            self.slice_async
        };
        base + base / 5 * (4 - priority)
    }

    /// Delay of a queue's key per other queue (cfq_slice_offset).
    pub fn offset(&self, sync: bool, priority: i64) -> i64 {
        self.slice(true, 0) - self.slice(sync, priority)
    }
}
