//! From what a disk is to be to a thread that can run.

use super::super::log::Pieces;
use super::super::{Options, Shared, StartError};
use super::live::{Live, Station};
use super::{SPIN, SPIN_REAL_TIME, Thread};
use crate::buffer::Pool;
use crate::device::{Device, Geometry};
use crate::estimate::HeadTimeEstimate;
use crossbeam_queue::ArrayQueue;
use headtime_engine::log::Writer;
use headtime_engine::{Config, Core, Engine};
use headtime_linux::sys;
use headtime_sched::Scheduler;
use headtime_units::{Nanos, Sectors, Time};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

impl Thread {
    pub(super) fn start<E>(
        mut options: Options,
        open: impl FnOnce() -> Result<Box<dyn Device>, E>,
        doorbell: OwnedFd,
    ) -> Result<Thread, StartError>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let name = options.name;
        let mut device = open().map_err(|error| StartError::Device {
            name: name.clone(),
            error: error.into(),
        })?;
        let geometry = device.geometry();
        let (scheduler, build) = options.scheduler;
        let mut config = options.engine;
        if let Some(bytes) = options.merge_bytes_max {
            let sectors = bytes / u64::from(geometry.sector_bytes);
            config.merge_sectors_max = Sectors::new(sectors.max(1));
            for (key, value) in &mut options.log_settings {
                if key == "merge_sectors_max" {
                    *value = config.merge_sectors_max.to_string();
                }
            }
        }
        let (sink, settings) = (options.log, &options.log_settings);
        let (engine, log) = engine_and_log(&name, config, build(), &geometry, sink, settings)
            .inspect_err(|_| device.made().remove())?;
        let mut spin = Nanos::ZERO;
        if device.in_model_time() {
            sys::exact_timers();
            spin = SPIN;
            if options.real_time {
                match sys::real_time() {
                    Ok(()) => spin = SPIN_REAL_TIME,
                    Err(error) => tracing::info!(
                        disk = name,
                        "not ahead of ordinary threads, completions may come later: {error}"
                    ),
                }
            }
        }
        let estimate = options
            .estimate
            .filter(|_| device.head_time(Time::ZERO).is_none())
            .map(|profile| Box::new(HeadTimeEstimate::new(&profile, geometry.sector_bytes)));
        let shared = Arc::new(Shared {
            name,
            clock: options.clock,
            pool: Pool::new(),
            geometry,
            allocation: device.allocation(),
            discards_to_zeroes: device.discards_to_zeroes(),
            made: device.made(),
            exports: options.exports,
            queue: ArrayQueue::new(options.queue.max(1)),
            room: Notify::new(),
            was_full: AtomicBool::new(false),
            orders: Mutex::new(Vec::new()),
            ordered: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            doorbell,
            stopped: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            thread: Mutex::new(None),
        });
        let station = Station::new(device, estimate);
        Ok(Thread {
            core: Core::new(engine, log).with_timeout(options.timeout),
            live: Live::new(shared, station, options.unfinished),
            scheduler,
            log_flushed: Time::ZERO,
            steps: 0,
            spin,
        })
    }
}

/// What stands before the device, if it fits it.
fn engine_and_log(
    name: &str,
    config: Config,
    scheduler: Box<dyn Scheduler>,
    geometry: &Geometry,
    sink: Option<Box<dyn io::Write + Send>>,
    settings: &[(String, String)],
) -> Result<(Engine, Option<Writer<Pieces>>), StartError> {
    if config.depth > geometry.depth {
        return Err(StartError::Depth {
            name: name.to_owned(),
            depth: config.depth,
            device: geometry.depth,
        });
    }
    let engine = Engine::new(config, scheduler).map_err(|error| StartError::Config {
        name: name.to_owned(),
        error,
    })?;
    let log = sink
        .map(|sink| Pieces::start(sink).map(|pieces| Writer::new(settings, pieces)))
        .transpose()
        .map_err(|error| StartError::Machine {
            name: name.to_owned(),
            error,
        })?;
    Ok((engine, log))
}
