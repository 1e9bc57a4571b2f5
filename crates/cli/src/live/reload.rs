//! Another reading of the configuration while a server runs.

use super::arrays;
use super::config::{Config, DiskConfig, ListenConfig, ProgramConfig};
use super::disks::Running;
use super::{goals, sockets};
use headtime_engine::{GateSpec, Member};
use headtime_lab::fault::Fault;
use headtime_serve::disk::{BuildScheduler, Disk};
use headtime_serve::http::snapshot;
use headtime_serve::nbd::Network;
use headtime_serve::nbd::tls::Tls;
use headtime_units::Nanos;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// A running disk, with its configuration.
#[derive(Clone)]
struct Current {
    disk: Disk,
    member: Member,
    /// The configuration in force.
    config: DiskConfig,
}

/// Changes of one disk by a reading of the configuration.
struct Change {
    disk: Disk,
    member: Member,
    config: DiskConfig,
    scheduler: Option<(String, BuildScheduler)>,
    gate: Option<GateSpec>,
    timeout: Option<Option<Nanos>>,
    queue_timeout: Option<Option<Nanos>>,
}

/// Changes by a reading of the configuration.
#[derive(Default)]
struct Changes {
    disks: Vec<Change>,
    /// Certificates for new connections.
    tls: Option<Tls>,
    /// Changes that take a restart, in words.
    fixed: Vec<String>,
}

/// Reads the configuration again while the server runs. The server does not wait meanwhile, since learning a drive for a scheduler
/// takes time.
pub(super) struct Reload {
    pub file: PathBuf,
    /// All disks, including the disks of arrays.
    current: Vec<Current>,
    pub listen: ListenConfig,
    pub network: Network,
    programs: Vec<ProgramConfig>,
    running: Arc<Vec<Running>>,
    under_way: Option<JoinHandle<Result<Changes, Fault>>>,
    again: bool,
}

impl Reload {
    pub fn new(
        file: &Path,
        (listen, network): (&ListenConfig, Network),
        programs: Vec<ProgramConfig>,
        running: &Arc<Vec<Running>>,
    ) -> Reload {
        let current = running.iter().flat_map(|running| {
            let members = (0..).map(Member).zip(&running.prepared.members);
            members.map(|(member, prepared)| Current {
                disk: running.disk.clone(),
                member,
                config: prepared.config.clone(),
            })
        });
        Reload {
            file: file.to_owned(),
            current: current.collect(),
            listen: listen.clone(),
            network,
            programs,
            running: Arc::clone(running),
            under_way: None,
            again: false,
        }
    }

    pub fn begin(&mut self) {
        if self.under_way.is_some() {
            self.again = true;
            return;
        }
        let (file, current) = (self.file.clone(), self.current.clone());
        let (listen, running) = (self.listen.clone(), Arc::clone(&self.running));
        let programs = self.programs.clone();
        self.under_way = Some(tokio::spawn(async move {
            // The control socket may have swapped a scheduler or a gate since the file was read.
            let mut in_force = Vec::with_capacity(current.len());
            for Current {
                disk,
                member,
                config,
            } in &current
            {
                let told = snapshot(disk).await;
                let told = told.map(|snapshot| {
                    let state = snapshot.member(*member);
                    (state.scheduler.clone(), state.gate.clone())
                });
                let read = || {
                    let stack = &config.stack;
                    (stack.scheduler.to_string(), stack.engine.gate.to_string())
                };
                in_force.push(told.unwrap_or_else(read));
            }
            let reading =
                move || changes(&file, &current, &in_force, (&listen, &programs), &running);
            let reading = tokio::task::spawn_blocking(reading);
            reading
                .await
                .expect("reading a configuration does not panic")
        }));
    }

    /// Waits for the current reading, and applies its changes. If no reading is under way, waits for ever.
    pub async fn done(&mut self) {
        let Some(reading) = &mut self.under_way else {
            return std::future::pending().await;
        };
        let result = reading
            .await
            .expect("reading a configuration does not panic");
        self.under_way = None;
        match result {
            Err(fault) => tracing::error!("nothing is changed: {fault}"),
            Ok(Changes { disks, tls, fixed }) => {
                for text in fixed {
                    tracing::warn!("{text}");
                }
                let nothing = disks.is_empty() && tls.is_none();
                if let (Some(new), Some(tls)) = (tls, &self.network.tls) {
                    tls.replace(&new);
                    tracing::info!("the certificates were read again, for new connections");
                }
                for change in disks {
                    self.apply(change);
                }
                if nothing {
                    tracing::info!("the configuration was read again; nothing to change");
                }
            }
        }
        if std::mem::take(&mut self.again) {
            self.begin();
        }
    }

    fn apply(&mut self, change: Change) {
        let Change {
            disk,
            member,
            config,
            scheduler,
            gate,
            timeout,
            queue_timeout,
        } = change;
        if let Some((text, build)) = scheduler {
            tracing::info!(
                disk = config.name,
                scheduler = text,
                "the scheduler is swapped"
            );
            disk.swap_scheduler_of(member, &text, build);
        }
        if let Some(gate) = gate {
            match disk.set_gate_of(member, &gate) {
                Ok(()) => tracing::info!(disk = config.name, %gate, "the gate is changed"),
                // The text was valid when the file was read, so an error is unexpected.
                Err(error) => tracing::error!(disk = config.name, "{error}"),
            }
        }
        if let Some(timeout) = timeout {
            let text = timeout.map_or("off".to_owned(), |timeout| timeout.to_string());
            tracing::info!(disk = config.name, timeout = text, "the timeout is changed");
            disk.set_timeout(timeout);
        }
        if let Some(timeout) = queue_timeout {
            let text = timeout.map_or("off".to_owned(), |timeout| timeout.to_string());
            tracing::info!(
                disk = config.name,
                queue_timeout = text,
                "the timeout of waiting requests is changed"
            );
            disk.set_queue_timeout(timeout);
        }
        for current in &mut self.current {
            if current.config.name == config.name {
                current.config = config.clone();
            }
        }
    }
}

/// Returns the changes that a configuration file demands, and the changes that require a restart. `in_force` are the current texts of
/// the disks' schedulers and gates.
fn changes(
    file: &Path,
    current: &[Current],
    in_force: &[(String, String)],
    (listen, programs): (&ListenConfig, &[ProgramConfig]),
    running: &[Running],
) -> Result<Changes, Fault> {
    let config = Config::open(file)?;
    let tls = listen.tls.as_ref().map(sockets::certificates).transpose()?;
    let mut changes = Changes {
        tls,
        ..Changes::default()
    };
    let fixed = &mut changes.fixed;
    let differences = listen.fixed_differences(&config.listen);
    if !differences.is_empty() {
        let keys = differences.join(", ");
        fixed.push(format!("listen: {keys}: another value takes a restart"));
    }
    fixed.extend(goals::fixed_difference(programs, &config.programs));
    for new in &config.disks {
        if !current
            .iter()
            .any(|current| current.config.name == new.name)
        {
            fixed.push(format!("disk {} is new; that takes a restart", new.name));
        }
    }
    let arrays = running
        .iter()
        .map(|running| running.prepared.array.as_ref());
    fixed.extend(arrays::fixed_differences(
        &arrays.flatten().collect::<Vec<_>>(),
        &config.arrays,
    ));
    let prepared = running.iter().flat_map(|running| &running.prepared.members);
    for ((current, (scheduler_in_force, gate_in_force)), prepared) in
        current.iter().zip(in_force).zip(prepared)
    {
        let Current {
            disk,
            member,
            config: old,
        } = current;
        let name = &old.name;
        let Some(new) = config.disk(name) else {
            fixed.push(format!("disk {name} is gone; that takes a restart"));
            continue;
        };
        let differences = old.fixed_differences(new);
        if !differences.is_empty() {
            let keys = differences.join(", ");
            fixed.push(format!(
                "disk {name}: {keys}: another value takes a restart"
            ));
        }
        let scheduler = match new.stack.scheduler.to_string() != *scheduler_in_force {
            false => None,
            true => {
                let build = prepared
                    .build(&new.stack.scheduler)
                    .map_err(|problem| new.error("scheduler", problem))?;
                Some((new.stack.scheduler.to_string(), build))
            }
        };
        let gate = &new.stack.engine.gate;
        gate.build(disk.engine_config())
            .map_err(|error| new.error("gate", error.problem.to_string()))?;
        let gate = (gate.to_string() != *gate_in_force).then(|| gate.clone());
        let timeout = (old.timeout != new.timeout).then_some(new.timeout);
        let queue_timeout = (old.queue_timeout != new.queue_timeout).then_some(new.queue_timeout);
        let times = timeout.is_some() || queue_timeout.is_some();
        if scheduler.is_some() || gate.is_some() || times {
            changes.disks.push(Change {
                disk: disk.clone(),
                member: *member,
                config: new.clone(),
                scheduler,
                gate,
                timeout,
                queue_timeout,
            });
        }
    }
    Ok(changes)
}
