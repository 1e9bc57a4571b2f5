//! Builds a disk's thread from its options.

use super::super::log::LogThread;
use super::super::options::{Devices, MemberOptions, Options, StartError};
use super::super::shared::Shared;
use super::live::{Live, Station};
use super::{Chosen, SPIN, SPIN_REAL_TIME, Thread};
use crate::backing::Made;
use crate::buffer::Pool;
use crate::device::{Device, Geometry};
use crate::estimate::HeadTimeEstimate;
use crossbeam_queue::ArrayQueue;
use headtime_engine::log::Writer;
use headtime_engine::{Core, Engine, Map, Member};
use headtime_linux::sys;
use headtime_sched::WaitStats;
use headtime_units::{Nanos, Time};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

impl Thread {
    pub(super) fn start<E>(
        mut options: Options,
        mut others: Vec<MemberOptions>,
        open: impl FnOnce() -> Result<Devices, E>,
        doorbell: OwnedFd,
    ) -> Result<(Thread, Vec<OwnedFd>), StartError>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let name = options.name.clone();
        let (mut devices, map) = open().map_err(|error| StartError::Device {
            name: name.clone(),
            error: error.into(),
        })?;
        let made: Vec<Made> = devices.iter().map(|device| device.made()).collect();
        let (clock, exports, real_time) = (options.clock, options.exports, options.real_time);
        let (queue, unfinished) = (options.queue, options.unfinished);
        let feed = options.feed.take();
        let queue_timeout = options.queue_timeout;
        let shares = std::mem::take(&mut options.shares);
        let rates = std::mem::take(&mut options.rates);
        let others_believed = others.iter_mut().map(|other| other.estimate.take());
        let believed: Vec<_> = [options.estimate.take()]
            .into_iter()
            .chain(others_believed)
            .collect();
        let stack = stack(options, map, others, &devices);
        let (mut core, geometry, chosen) =
            stack.inspect_err(|_| made.iter().for_each(Made::remove))?;
        let config = *core.engines()[0].config();
        let ready = devices.iter().filter_map(|device| device.ready_fd());
        let ready: io::Result<Vec<OwnedFd>> = ready.map(|fd| fd.try_clone_to_owned()).collect();
        let ready = ready.map_err(|error| {
            made.iter().for_each(Made::remove);
            let name = name.clone();
            StartError::Machine { name, error }
        })?;
        let mut spin = Nanos::ZERO;
        if devices.iter().any(|device| device.in_model_time()) {
            sys::exact_timers();
            spin = SPIN;
            if real_time {
                match sys::real_time() {
                    Ok(()) => spin = SPIN_REAL_TIME,
                    Err(error) => tracing::info!(
                        disk = name,
                        "not ahead of ordinary threads, completions may come later: {error}"
                    ),
                }
            }
        }
        let shared = Arc::new(Shared {
            name,
            clock,
            pool: Pool::new(),
            geometry,
            bytes: match &devices[..] {
                [device] => device.bytes(),
                _ => geometry.capacity.bytes(geometry.sector_bytes),
            },
            allocation: match &devices[..] {
                [device] => device.allocation(),
                _ => None,
            },
            discards_to_zeroes: devices.iter().all(|device| device.discards_to_zeroes()),
            made,
            exports,
            shares,
            rates,
            config,
            members: (devices.iter())
                .map(|device| device.geometry().capacity)
                .collect(),
            queue: ArrayQueue::new(queue.max(1)),
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
        let stations = devices
            .drain(..)
            .zip(&believed)
            .map(|(mut device, believed)| {
                let profile =
                    (believed.as_ref()).filter(|_| device.head_time(Time::ZERO).is_none());
                let estimate = profile
                    .map(|profile| Box::new(HeadTimeEstimate::new(profile, geometry.sector_bytes)));
                Station::new(device, estimate)
            });
        let stations = stations.collect();
        let mut live = Live::new(shared, stations, unfinished, feed);
        live.set_queue_timeout(queue_timeout);
        let has_rates = !live.shared.rates.is_empty();
        let in_model_time = live.stations.iter().any(|station| station.in_model_time);
        let thread = Thread {
            // A log may make its writer wait. At its rate, an export has requests of any length that wait.
            takes_guests: !in_model_time && !has_rates && core.log().is_none(),
            core,
            live,
            chosen,
            log_flushed: Time::ZERO,
            spin,
            wakes: Time::NEVER,
            no_guests_before: Time::ZERO,
            bug: None,
        };
        Ok((thread, ready))
    }
}

/// Returns true if the last sector of a device has as many bytes as the others.
fn is_whole(device: &dyn Device) -> bool {
    let geometry = device.geometry();
    device.bytes() == geometry.capacity.bytes(geometry.sector_bytes)
}

/// Builds the engines of a disk if they fit the devices. Also returns the geometry of the devices together, and the
/// scheduler and gate of each member.
fn stack(
    mut options: Options,
    map: Option<Box<dyn Map>>,
    others: Vec<MemberOptions>,
    devices: &[Box<dyn Device>],
) -> Result<(Core<LogThread>, Geometry, Vec<Chosen>), StartError> {
    let name = options.name.clone();
    let members = map.as_ref().map_or(1, |map| map.members());
    let first = devices.first().map(|device| device.geometry());
    let mut geometry = first
        .filter(|first| {
            devices.len() == usize::from(members)
                && devices.len() == 1 + others.len()
                && devices
                    .iter()
                    .all(|device| device.geometry().sector_bytes == first.sector_bytes)
                && (devices.len() == 1 || devices.iter().all(|device| is_whole(&**device)))
        })
        .ok_or_else(|| StartError::Volume {
            name: name.clone(),
            members,
        })?;
    let config = options.engine.config(geometry.sector_bytes);
    for device in devices {
        let of = device.geometry();
        geometry.depth = geometry.depth.min(of.depth);
        geometry.read_only |= of.read_only;
        geometry.discards &= of.discards;
    }
    if let Some(map) = &map {
        geometry.capacity = map.capacity();
    }
    if config.depth > geometry.depth {
        return Err(StartError::Depth {
            name: name.clone(),
            depth: config.depth,
            device: geometry.depth,
        });
    }
    for (key, value) in &mut options.log_settings {
        if key == "sector_bytes" {
            *value = geometry.sector_bytes.to_string();
        }
    }
    let gate = options.engine.gate;
    let mut chosen = Vec::with_capacity(1 + others.len());
    let mut engines: Vec<Engine> = Vec::with_capacity(1 + others.len());
    let others = others.into_iter().map(|other| other.scheduler);
    let schedulers = std::iter::once(options.scheduler).chain(others);
    for (member, (text, mut build)) in (0..).map(Member).zip(schedulers) {
        let gated = match &mut options.gate {
            Some(gate) => Some(gate(member)),
            None => {
                let built = gate.build(&config).map_err(|error| StartError::Gate {
                    name: name.clone(),
                    error: Box::new(error),
                })?;
                built.map(|gate| {
                    let others = (1..gate.lanes()).map(|_| build());
                    let others = others.collect();
                    (gate, others)
                })
            }
        };
        let engine = Engine::behind(config, build(), gated);
        engines.push(engine.map_err(|error| StartError::Config {
            name: name.clone(),
            error,
        })?);
        chosen.push(Chosen {
            scheduler: text,
            build,
            gate: gate.to_string(),
            waits_before: WaitStats::default(),
        });
    }
    let pieces = options.log.take().map(LogThread::start).transpose();
    let log = pieces
        .map_err(|error| StartError::Machine {
            name: name.clone(),
            error,
        })?
        .map(|pieces| Writer::new(&options.log_settings, pieces));
    let core = match map {
        Some(map) => Core::of_volume(engines, map, log),
        None => Core::new(engines.remove(0), log),
    };
    let mut core = core.with_timeout(options.timeout);
    if options.audit {
        core.audit();
    }
    if let Some(conductor) = options.conductor {
        core.conduct(conductor);
    }
    if let Some(mut job) = options.background {
        for member in (0..members).map(Member) {
            if let Some(job) = job(member) {
                core.run_in_background(member, job);
            }
        }
    }
    Ok((core, geometry, chosen))
}
