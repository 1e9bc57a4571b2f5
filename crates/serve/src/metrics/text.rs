//! The text that Prometheus reads, in the OpenMetrics format.

mod goals;
mod promises;
mod writer;

use super::{CLASS_NAMES, ExportMetrics, MemberSnapshot, OPS, Snapshot, Times};
use crate::disk::Addresses;
use crate::goals::ProgramStatus;
use crate::nbd::Counts;
use crate::scrub::{Gaps, ScrubState, ScrubStatus};
use headtime_units::Nanos;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::sync::Arc;
use writer::{Labels, Writer};

/// Content type of the text that [`render`] writes.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A disk's state, with the names of its parts.
#[derive(Clone, Debug)]
pub struct Labelled {
    /// The disk's name.
    pub disk: String,
    /// Description of the disk's device.
    pub backend: String,
    pub sector_bytes: u32,
    /// Names of the disk's exports, by number, each with the bytes of the disk that clients see.
    pub exports: Vec<(String, Addresses)>,
    /// Names of an array's members and descriptions of their devices; empty for one device.
    pub members: Vec<(String, String)>,
    /// Last scrub of the disk, if there was one.
    pub scrub: Option<Box<ScrubStatus>>,
    /// State of the disk.
    pub snapshot: Box<Snapshot>,
}

/// Bounds of a histogram. The first, 50 us, is less than a hit in a drive's cache takes. The last, 30 s, is Linux's
/// timeout.
const BOUNDS_US: [u64; 18] = [
    50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000, 2_000_000, 5_000_000, 10_000_000, 30_000_000,
];

/// Bounds for lateness, from the precision of a spinning thread to intolerable times.
const LATE_BOUNDS_US: [u64; 12] = [
    1, 5, 10, 20, 50, 100, 200, 500, 1_000, 5_000, 20_000, 100_000,
];

/// Bounds for delay counts, from zero to more than any useful threshold of a gate.
const OVERTAKEN_BOUNDS: [u64; 13] = [0, 1, 2, 5, 10, 20, 30, 50, 90, 120, 200, 500, 1000];

/// A server's state at one time.
#[derive(Debug)]
pub struct Page {
    /// Disks that have answered.
    pub disks: Vec<Labelled>,
    /// Names of disks that have not answered, because their thread has ended or is stuck in a device or store.
    pub silent: Vec<String>,
    /// The counts of the NBD server, if there is one.
    pub nbd: Option<Arc<Counts>>,
    /// Programs, if there are any, and the number of requests that bounds do not contain.
    pub programs: Option<(Vec<ProgramStatus>, u64)>,
    /// Number of messages that could not be written.
    pub messages_dropped: u64,
    /// Time since the start of the server.
    pub uptime: Nanos,
    /// The program's version.
    pub version: String,
}

/// Writes the state of a server.
///
/// # Panics
///
/// Never: writing to a string does not fail.
pub fn render(page: Page) -> String {
    let mut registry = Registry::with_prefix("headtime");
    registry.register_collector(Box::new(page));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)
        .expect("a string takes everything");
    text
}

impl Page {
    fn disks<'a, T: 'a>(
        &'a self,
        value: impl Fn(&'a Labelled) -> T + 'a,
    ) -> impl Iterator<Item = (Labels<'a>, T)> + 'a {
        self.disks
            .iter()
            .map(move |disk| (vec![("disk", disk.disk.as_str())], value(disk)))
    }

    /// Several values of each disk, distinguished by one more label.
    fn parts<'a, T: 'a, I: IntoIterator<Item = (&'a str, T)> + 'a>(
        &'a self,
        label: &'a str,
        values: impl Fn(&'a Labelled) -> I + 'a,
    ) -> impl Iterator<Item = (Labels<'a>, T)> + 'a {
        self.disks.iter().flat_map(move |disk| {
            let values = values(disk).into_iter();
            values.map(move |(part, value)| {
                (vec![("disk", disk.disk.as_str()), (label, part)], value)
            })
        })
    }

    /// Returns the devices with their labels and descriptions. A device is a disk, or a member of an array, which has
    /// one more label.
    fn labelled_devices(&self) -> impl Iterator<Item = (Labels<'_>, &str, &MemberSnapshot)> {
        self.disks.iter().flat_map(|disk| {
            let (name, snapshot) = (disk.disk.as_str(), &disk.snapshot);
            let one = disk.members.is_empty().then(|| {
                let labels = vec![("disk", name)];
                (labels, disk.backend.as_str(), &snapshot.whole)
            });
            let several = disk.members.iter().zip(&snapshot.members);
            let several = several.map(move |((member, backend), state)| {
                let labels = vec![("disk", name), ("member", member.as_str())];
                (labels, backend.as_str(), state)
            });
            one.into_iter().chain(several)
        })
    }

    fn devices<'a, T: 'a>(
        &'a self,
        value: impl Fn(&'a MemberSnapshot) -> T + 'a,
    ) -> impl Iterator<Item = (Labels<'a>, T)> + 'a {
        self.labelled_devices()
            .map(move |(labels, _, state)| (labels, value(state)))
    }

    /// Several values of each device, distinguished by one more label.
    fn device_parts<'a, T: 'a, I: IntoIterator<Item = (&'a str, T)> + 'a>(
        &'a self,
        label: &'a str,
        values: impl Fn(&'a MemberSnapshot) -> I + 'a,
    ) -> impl Iterator<Item = (Labels<'a>, T)> + 'a {
        self.labelled_devices().flat_map(move |(labels, _, state)| {
            values(state).into_iter().map(move |(part, value)| {
                let mut labels = labels.clone();
                labels.push((label, part));
                (labels, value)
            })
        })
    }

    fn exports<'a>(
        &'a self,
    ) -> impl Iterator<Item = (Labels<'a>, &'a Labelled, &'a ExportMetrics)> {
        self.disks.iter().flat_map(|disk| {
            let exports = disk.exports.iter().zip(&disk.snapshot.metrics.exports);
            exports.map(move |((name, _), export)| {
                let labels = vec![("disk", disk.disk.as_str()), ("export", name.as_str())];
                (labels, disk, export)
            })
        })
    }

    fn by_op<'a>(
        &'a self,
        counts: impl Fn(&'a ExportMetrics) -> [u64; 4] + 'a,
    ) -> impl Iterator<Item = (Labels<'a>, u64)> + 'a {
        self.exports().flat_map(move |(labels, _, export)| {
            OPS.into_iter()
                .zip(counts(export))
                .map(move |((_, op), count)| {
                    let mut labels = labels.clone();
                    labels.push(("op", op));
                    (labels, count)
                })
        })
    }

    fn write_exports(&self, out: &mut Writer<'_>) -> fmt::Result {
        out.counters(
            ("requests", "Requests finished, failed ones included", None),
            self.by_op(|export| export.requests),
        )?;
        out.counters(
            ("request_errors", "Requests that failed", None),
            self.by_op(|export| export.failed),
        )?;
        out.counters(
            (
                "requests_refused",
                "Requests turned away because the disk takes no writes",
                None,
            ),
            self.exports()
                .map(|(labels, _, export)| (labels, export.refused)),
        )?;
        out.counters(
            (
                "requests_expired",
                "Requests that failed since they waited for the device for longer than queue_timeout",
                None,
            ),
            self.exports()
                .map(|(labels, _, export)| (labels, export.expired)),
        )?;
        let bytes = self.exports().flat_map(|(labels, disk, export)| {
            let ops = OPS.into_iter().zip(export.sectors);
            ops.map(move |((_, op), sectors)| {
                let mut labels = labels.clone();
                labels.push(("op", op));
                (labels, sectors * u64::from(disk.sector_bytes))
            })
        });
        out.counters(
            (
                "data",
                "Data read and written without error",
                Some(Unit::Bytes),
            ),
            bytes,
        )?;
        out.gauges(
            (
                "unfinished_requests",
                "Requests that came and have not finished",
                None,
            ),
            self.exports()
                .map(|(labels, _, export)| (labels, export.unfinished as f64)),
        )?;
        type Of = fn(&ExportMetrics) -> Times;
        let times: [(&str, &str, Of); 3] = [
            (
                "request_queue",
                "From the arrival of a request to when its command goes to the device",
                |export| export.queue.read(),
            ),
            (
                "request_device",
                "From when a request's command goes to the device to its completion",
                |export| export.device.read(),
            ),
            (
                "request",
                "From the arrival of a request to its completion",
                |export| export.total.read(),
            ),
        ];
        for (name, help, of) in times {
            out.times(
                (name, help),
                &BOUNDS_US,
                self.exports()
                    .map(|(labels, _, export)| (labels, of(export))),
            )?;
        }
        Ok(())
    }

    fn write_disks(&self, out: &mut Writer<'_>) -> fmt::Result {
        let told = self.disks.iter().map(|disk| (disk.disk.as_str(), 1.0));
        let silent = self.silent.iter().map(|disk| (disk.as_str(), 0.0));
        let up = told.chain(silent);
        out.gauges(
            (
                "disk_up",
                "1 if the disk says how it is, 0 if its thread has ended or is stuck",
                None,
            ),
            up.map(|(disk, up)| (vec![("disk", disk)], up)),
        )?;
        let info = self.labelled_devices().map(|(mut labels, backend, state)| {
            labels.extend([
                ("backend", backend),
                ("scheduler", state.scheduler.as_str()),
                ("gate", state.gate.as_str()),
            ]);
            (labels, 1.0)
        });
        out.gauges(
            (
                "disk_info",
                "What a disk is, and which scheduler and gate it has; always 1",
                None,
            ),
            info,
        )?;
        out.gauges(
            ("disk_size", "Size of the disk", Some(Unit::Bytes)),
            self.disks(|disk| disk.snapshot.capacity.get() as f64 * f64::from(disk.sector_bytes)),
        )?;
        out.gauges(
            (
                "disk_failed",
                "1 if writes are refused because something failed, until that is cleared",
                None,
            ),
            self.disks(|disk| f64::from(u8::from(disk.snapshot.failure.is_some()))),
        )?;
        type Gauge = fn(&MemberSnapshot) -> f64;
        let gauges: [(&str, &str, Gauge); 5] = [
            ("commands_in_flight", "Commands in the device", |state| {
                f64::from(state.in_flight)
            }),
            (
                "requests_waiting",
                "Requests that wait for the device",
                |state| state.waiting as f64,
            ),
            (
                "requests_queued_max",
                "The most requests that were with the scheduler at once",
                |state| state.engine.queued_max as f64,
            ),
            (
                "scheduler_streams",
                "Streams that the scheduler takes to go on",
                |state| state.waits.streams as f64,
            ),
            (
                "commands_abandoned",
                "Commands given up on whose data the device still holds",
                |state| state.abandoned as f64,
            ),
        ];
        for (name, help, of) in gauges {
            out.gauges((name, help, None), self.devices(of))?;
        }
        type Counter = fn(&MemberSnapshot) -> u64;
        let counters: [(&str, &str, Counter); 7] = [
            ("commands", "Commands given to the device", |state| {
                state.engine.issued
            }),
            ("command_errors", "Commands that failed", |state| {
                state.errors
            }),
            (
                "command_timeouts",
                "Commands that were given up on",
                |state| state.timeouts,
            ),
            (
                "commands_split",
                "Merged commands that failed and were tried again part by part",
                |state| state.engine.split,
            ),
            (
                "scheduler_streams_established",
                "Streams that the scheduler came to wait for",
                |state| state.waits.streams_established,
            ),
            (
                "scheduler_waits",
                "Times that the scheduler held the disk for a request to come",
                |state| state.waits.waits,
            ),
            (
                "scheduler_idled",
                "Times that the scheduler chose to wait though requests were pending",
                |state| state.engine.idled,
            ),
        ];
        for (name, help, of) in counters {
            out.counters((name, help, None), self.devices(of))?;
        }
        out.counters(
            (
                "scheduler_waits_ended",
                "Waits by how they ended: won if the request came and was served",
                None,
            ),
            self.device_parts("how", |state| {
                let waits = &state.waits;
                [("won", waits.waits_won), ("lost", waits.waits_lost)]
            }),
        )?;
        out.counters(
            (
                "requests_merged",
                "Requests that became part of another: behind it, before it, or two that grew together",
                None,
            ),
            self.device_parts("how", |state| {
                let engine = &state.engine;
                [
                    ("back", engine.merged_back),
                    ("front", engine.merged_front),
                    ("fused", engine.fused),
                ]
            }),
        )?;
        out.counters(
            (
                "requests_held",
                "Requests that had to wait for one they overlap, or for a flush",
                None,
            ),
            self.device_parts("for", |state| {
                let engine = &state.engine;
                [
                    ("overlap", engine.held_overlap),
                    ("flush", engine.held_flush),
                ]
            }),
        )?;
        out.seconds(
            (
                "head_time",
                "Where the arm's time went, by the drive's model",
            ),
            self.device_parts("part", |state| {
                state.head_time.into_iter().flat_map(|head_time| {
                    let parts = headtime_disk::Part::ALL.into_iter();
                    parts.map(move |part| (part.name(), head_time.get(part)))
                })
            }),
        )?;
        out.seconds(
            (
                "disk_head_time_estimated",
                "Where the arm's time went, estimated from the assumed drive",
            ),
            self.device_parts("part", |state| {
                state.head_time_estimated.into_iter().flat_map(|estimated| {
                    crate::estimate::PARTS
                        .into_iter()
                        .map(move |part| (part.name(), estimated.get(part)))
                })
            }),
        )?;
        self.write_predictions(out)?;
        self.write_scrubs(out)?;
        self.write_promises(out)
    }

    fn write_scrubs(&self, out: &mut Writer<'_>) -> fmt::Result {
        type ScrubGauge = fn(&ScrubStatus) -> f64;
        let gauges: [(&str, &str, ScrubGauge); 7] = [
            (
                "scrub_damaged_pages",
                "Pages and lines of the files of the last scrub that were damaged and are made anew",
                |scrub| scrub.damage.pages as f64,
            ),
            (
                "scrub_changed_sectors",
                "Sectors that the last scrub found to be others than before, though nobody had written to them",
                |scrub| scrub.changed.sectors() as f64,
            ),
            (
                "scrub_running",
                "1 if a scrub of the disk reads, 0 if it rests or is over",
                |scrub| f64::from(u8::from(scrub.state == ScrubState::Running)),
            ),
            (
                "scrub_blocks",
                "Blocks of the last scrub of the disk",
                |scrub| scrub.blocks as f64,
            ),
            (
                "scrub_blocks_left",
                "Blocks that the last scrub has still to read",
                |scrub| scrub.left as f64,
            ),
            (
                "scrub_unreadable_sectors",
                "Sectors that the last scrub could not read",
                |scrub| scrub.unreadable.sectors() as f64,
            ),
            (
                "scrub_uses_gaps",
                "1 if the scrub reads while the head would wait, 0 if it is confined to idle time",
                |scrub| f64::from(u8::from(scrub.gaps == Gaps::Used)),
            ),
        ];
        for (name, help, of) in gauges {
            let scrubs = self.disks.iter().filter_map(move |disk| {
                let value = of(disk.scrub.as_deref()?);
                Some((vec![("disk", disk.disk.as_str())], value))
            });
            out.gauges((name, help, None), scrubs)?;
        }
        out.counters(
            (
                "scrub_blocks_read",
                "Blocks that the last scrub has read since the server started, by when: in the gaps of requests, in idle time, by others, or outright",
                None,
            ),
            self.parts("when", |disk| {
                disk.scrub.iter().flat_map(|scrub| {
                    [
                        ("gap", scrub.in_gaps),
                        ("idle", scrub.in_idle_time),
                        ("others", scrub.by_others),
                        ("outright", scrub.outright),
                    ]
                })
            }),
        )?;
        out.counters(
            (
                "scrub_blocks_compared",
                "Blocks of which the last scrub with hashes has compared since the server started whether they are what they were",
                None,
            ),
            self.disks.iter().filter_map(|disk| {
                let hashes = disk.scrub.as_ref()?.hashes.as_ref()?;
                Some((vec![("disk", disk.disk.as_str())], hashes.compared))
            }),
        )?;
        out.counters(
            (
                "scrub_blocks_wanted_again",
                "Blocks that the last scrub with a copy had read or was reading since the server started when somebody wrote to them",
                None,
            ),
            self.disks.iter().filter_map(|disk| {
                let copy = disk.scrub.as_ref()?.copy.as_ref()?;
                Some((vec![("disk", disk.disk.as_str())], copy.again))
            }),
        )?;
        out.counters(
            (
                "scrub_errors",
                "Reads of the last scrub that failed for something else than their sectors",
                None,
            ),
            self.disks.iter().filter_map(|disk| {
                let errors = disk.scrub.as_ref()?.errors;
                Some((vec![("disk", disk.disk.as_str())], errors))
            }),
        )
    }

    fn write_predictions(&self, out: &mut Writer<'_>) -> fmt::Result {
        out.counters(
            (
                "commands_predicted",
                "Commands of which the scheduler predicted when they end, and those that did within so many microseconds of it",
                None,
            ),
            self.device_parts("within_us", |state| {
                state.predictions.into_iter().flat_map(|all| {
                    let [near, off, far] = all.within;
                    [("50", near), ("150", off), ("300", far), ("any", all.commands)]
                })
            }),
        )?;
        out.counters(
            (
                "commands_surprising",
                "Commands that ended otherwise than predicted, and those behind them",
                None,
            ),
            self.device_parts("how", |state| {
                state.predictions.into_iter().flat_map(|all| {
                    [
                        ("turn-late", all.turns_late),
                        ("destaging", all.destaging),
                        ("turn-early", all.turns_early),
                        ("hit", all.hits),
                        ("elsewhere", all.elsewhere),
                        ("behind", all.after_surprise),
                    ]
                })
            }),
        )
    }

    fn write_coordinators(&self, out: &mut Writer<'_>) -> fmt::Result {
        out.counters(
            (
                "array_slices",
                "Slices in which all disks of an array served one stream, and those that ended early",
                None,
            ),
            self.parts("end", |disk| {
                let all = disk.snapshot.conducted.into_iter();
                all.flat_map(|all| [("any", all.slices), ("early", all.broken)])
            }),
        )?;
        let conducted = self.disks.iter().filter_map(|disk| {
            let labels = vec![("disk", disk.disk.as_str())];
            Some((labels, disk.snapshot.conducted?.dedicated))
        });
        out.seconds(
            (
                "array_coordinated",
                "Time of slices in which all disks of an array served one stream",
            ),
            conducted,
        )
    }

    fn by_class<'a, T: 'a>(
        &'a self,
        values: impl Fn(&'a MemberSnapshot) -> [T; CLASS_NAMES.len()] + 'a,
    ) -> impl Iterator<Item = (Labels<'a>, T)> + 'a {
        self.device_parts("class", move |state| {
            CLASS_NAMES.into_iter().zip(values(state))
        })
    }

    fn write_gates(&self, out: &mut Writer<'_>) -> fmt::Result {
        out.seconds(
            (
                "gate_plugged",
                "How long requests waited that nothing but the gate kept from the device",
            ),
            self.devices(|state| state.gating.plugged),
        )?;
        out.counters(
            (
                "gate_refusals",
                "Commands that the gate refused though the device had room",
                None,
            ),
            self.by_class(|state| state.gating.refused),
        )?;
        out.counters(
            (
                "commands_starved",
                "Commands that others in the device overtook more often than the gate allows",
                None,
            ),
            self.by_class(|state| state.gating.starved),
        )?;
        out.seconds(
            (
                "class_starved",
                "How long commands of a class starved in the device",
            ),
            self.by_class(|state| state.gating.starved_for),
        )?;
        out.counted(
            (
                "command_overtaken",
                "By how many later commands each was overtaken in the device",
            ),
            &OVERTAKEN_BOUNDS,
            self.parts("class", |disk| {
                let overtaken = &disk.snapshot.metrics.overtaken;
                let counts = overtaken.each_ref().map(|of| of.read());
                CLASS_NAMES.into_iter().zip(counts)
            }),
        )
    }

    fn write_nbd(&self, out: &mut Writer<'_>, counts: &Counts) -> fmt::Result {
        out.gauges(
            ("nbd_connections", "NBD clients that are connected", None),
            [(Vec::new(), counts.connected() as f64)],
        )?;
        for (name, help, count) in [
            (
                "nbd_connections_accepted",
                "NBD connections since the start, with those turned away",
                counts.connections(),
            ),
            (
                "nbd_connections_turned_away",
                "NBD connections that were one too many",
                counts.turned_away(),
            ),
            (
                "nbd_connections_failed",
                "NBD connections that ended with an error, as those of clients that are killed do",
                counts.failed(),
            ),
        ] {
            out.counters((name, help, None), [(Vec::new(), count)])?;
        }
        Ok(())
    }

    fn write_lateness(&self, out: &mut Writer<'_>) -> fmt::Result {
        let disks: Vec<(&str, &Labelled, Times)> = self
            .disks
            .iter()
            .filter(|disk| disk.snapshot.in_model_time)
            .map(|disk| {
                let times = disk.snapshot.metrics.lateness.read();
                (disk.disk.as_str(), disk, times)
            })
            .collect();
        out.times(
            (
                "lateness",
                "How much later than its drive's model says a completion was delivered",
            ),
            &LATE_BOUNDS_US,
            disks
                .iter()
                .map(|(disk, _, times)| (vec![("disk", *disk)], times.clone())),
        )?;
        let quantiles = [("0.5", 0.5), ("0.99", 0.99), ("0.999", 0.999), ("1", 1.0)];
        out.gauges(
            (
                "lateness_quantile",
                "Quantiles of the lateness since the start",
                Some(Unit::Seconds),
            ),
            disks.iter().flat_map(|(disk, _, times)| {
                quantiles.into_iter().map(|(name, quantile)| {
                    let labels = vec![("disk", *disk), ("quantile", name)];
                    (labels, times.quantile(quantile).as_secs_f64())
                })
            }),
        )?;
        out.gauges(
            (
                "late_ratio",
                "Share of completions more than 0.5 ms late; above 0.005 times are not to be trusted",
                None,
            ),
            disks
                .iter()
                .map(|(disk, labelled, _)| {
                    let share = labelled.snapshot.metrics.late_share();
                    (vec![("disk", *disk)], share)
                }),
        )
    }
}

impl Collector for Page {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Writer(encoder);
        out.gauges(
            ("build_info", "The version of the server; always 1", None),
            [(vec![("version", self.version.as_str())], 1.0)],
        )?;
        out.gauges(
            (
                "uptime",
                "Time since the server started",
                Some(Unit::Seconds),
            ),
            [(Vec::new(), self.uptime.as_secs_f64())],
        )?;
        out.counters(
            (
                "log_messages_dropped",
                "Messages that were dropped because standard error did not take them",
                None,
            ),
            [(Vec::new(), self.messages_dropped)],
        )?;
        if let Some(counts) = &self.nbd {
            self.write_nbd(&mut out, counts)?;
        }
        self.write_exports(&mut out)?;
        self.write_disks(&mut out)?;
        self.write_coordinators(&mut out)?;
        self.write_gates(&mut out)?;
        self.write_goals(&mut out)?;
        self.write_lateness(&mut out)
    }
}

#[cfg(test)]
mod tests;
