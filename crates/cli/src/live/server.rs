//! A server from its first socket to its last flush.

use super::arrays;
use super::config::{Config, DiskConfig, ListenConfig};
use super::disks::{self, PreparedDisk, Running};
use super::front::{Front, Gone};
use super::{messages, sockets};
use headtime_engine::{GateSpec, Member};
use headtime_lab::fault::Fault;
use headtime_linux::clock::Clock;
use headtime_linux::shown::{PathShown as _, one_line};
use headtime_serve::disk::{BuildScheduler, Disk};
use headtime_serve::http::{Site, Sockets, Watched, WatchedMember, snapshot};
use headtime_serve::listen::{Inherited, Listen};
use headtime_serve::metrics::{LATE_SHARE_MAX, Snapshot};
use headtime_serve::nbd;
use headtime_units::Nanos;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Who learns that the server is ready. Not being able to pass that on is no reason to end: clients may
/// have come already.
pub type Ready<'a> = &'a mut dyn FnMut(&str);

/// A server whose disks run.
#[derive(Debug)]
pub struct Server {
    /// Where its configuration is, to be read again.
    pub file: PathBuf,
    /// Where it listens.
    pub listen: ListenConfig,
    /// Sockets that take the place of these.
    pub inherited: Inherited,
    /// Its time.
    pub clock: Clock,
    /// Its disks.
    pub running: Vec<Running>,
}

/// What came of a run.
#[derive(Debug, Default)]
pub struct Ended {
    /// The disks' states when their clients were gone; of one that did not answer nothing is known,
    /// nor of any if the server was never ready.
    pub disks: Vec<(String, Box<Snapshot>)>,
}

/// Signals that a server minds.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> Result<Signals, Fault> {
        let of = |kind| signal(kind).map_err(|error| Fault::File(format!("signals: {error}")));
        Ok(Signals {
            terminate: of(SignalKind::terminate())?,
            interrupt: of(SignalKind::interrupt())?,
            hang_up: of(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.terminate.recv() => Told::End,
            _ = self.interrupt.recv() => Told::End,
            _ = self.hang_up.recv() => Told::ReadAgain,
        }
    }

    /// The next that asks for the end.
    async fn end(&mut self) {
        while self.next().await != Told::End {}
    }
}

/// What a signal says.
#[derive(PartialEq, Eq)]
enum Told {
    End,
    ReadAgain,
}

async fn over(mut ended: watch::Receiver<bool>) {
    // An error is that nobody is left to end it.
    let _ = ended.wait_for(|ended| *ended).await;
}

/// The second request to end: whatever is under way is given up.
fn at_once() -> ! {
    let fault = Fault::Interrupted;
    messages::say("error: ", &fault.to_string());
    messages::end();
    std::process::exit(fault.exit_code().into());
}

impl Server {
    /// Serves until a signal says to end; then drains, flushes and stops the disks. `ready` is told
    /// where it listens. What was done is known even if something went wrong.
    ///
    /// # Errors
    ///
    /// If a socket cannot be had, or a last flush or a log fails. The disks have stopped then too, and
    /// of a server that was never ready the files are gone that it made.
    pub fn run(self, ready: Ready<'_>) -> (Ended, Result<(), Fault>) {
        self.run_behind(Front::none(), ready)
    }

    /// As [`Server::run`], with something else in front of the disks too, which ends after the
    /// sockets' clients and before the disks.
    ///
    /// # Errors
    ///
    /// As [`Server::run`], and if the front cannot be ended.
    pub fn run_behind(self, front: Front, ready: Ready<'_>) -> (Ended, Result<(), Fault>) {
        let (runtime, mut signals) = match runtime() {
            Ok(begun) => begun,
            Err(fault) => {
                // The first fault is the one to report.
                let _ = (front.end)();
                disks::give_up(&self.running);
                return (Ended::default(), Err(fault));
            }
        };
        runtime.block_on(async {
            let Front { gone, end, abandon } = front;
            let running = Arc::new(self.running);
            let reload = Reload::new(&self.file, &self.listen, &running);
            let front = (gone, &*abandon);
            let mut was_ready = false;
            let mut ready = |text: &str| {
                was_ready = true;
                ready(text);
            };
            let served = serve(
                reload,
                self.inherited,
                self.clock,
                &running,
                &mut signals,
                front,
                &mut ready,
            )
            .await;
            messages::notify("STOPPING=1");
            // Its clients still ask the disks.
            let mut ended = tokio::task::spawn_blocking(end);
            let ended = tokio::select! {
                ended = &mut ended => ended.expect("ending the front does not panic"),
                () = signals.end() => {
                    abandon();
                    at_once()
                }
            };
            let disks = if was_ready {
                tokio::select! {
                    disks = snapshots(&running) => disks,
                    () = signals.end() => at_once(),
                }
            } else {
                Vec::new()
            };
            let stopping = Arc::clone(&running);
            let mut stopped = tokio::task::spawn_blocking(move || match was_ready {
                true => disks::stop(&stopping),
                false => {
                    disks::give_up(&stopping);
                    Ok(())
                }
            });
            let stopped = tokio::select! {
                stopped = &mut stopped => stopped.expect("stopping disks does not panic"),
                () = signals.end() => at_once(),
            };
            (Ended { disks }, served.and(ended).and(stopped))
        })
    }
}

/// What futures run on, and the signals that they wait for.
fn runtime() -> Result<(Runtime, Signals), Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault::File(format!("cannot start the runtime: {error}")))?;
    let within = runtime.enter();
    let signals = Signals::new()?;
    drop(within);
    Ok((runtime, signals))
}

async fn snapshots(running: &[Running]) -> Vec<(String, Box<Snapshot>)> {
    let mut disks = Vec::with_capacity(running.len());
    for running in running {
        if let Some(snapshot) = snapshot(&running.disk).await {
            disks.push((running.disk.name().to_owned(), snapshot));
        }
    }
    disks
}

/// Nobody can be listened to; the text has paths of the configuration.
fn unheard(text: &str) -> Fault {
    Fault::File(one_line(text))
}

async fn serve(
    mut reload: Reload,
    inherited: Inherited,
    clock: Clock,
    running: &Arc<Vec<Running>>,
    signals: &mut Signals,
    (mut gone, abandon): (Gone, &dyn Fn()),
    ready: Ready<'_>,
) -> Result<(), Fault> {
    let listen = reload.listen.clone();
    let file = reload.file.shown().to_string();
    let exports = running.iter().flat_map(|disk| disk.exports.clone());
    let clients = match inherited.nbd.is_empty() {
        true => sockets::nbd(&listen),
        false => inherited.nbd,
    };
    let usual = nbd::Limits::default();
    let limits = nbd::Limits {
        max_bytes: listen.max_bytes.unwrap_or(usual.max_bytes),
        ..usual
    };
    let nbd = nbd::Server::bind(&clients, exports.collect(), limits)
        .map_err(|error| unheard(&format!("{file}: listen.nbd: {error}")))?;
    let metrics = inherited.metrics.or(listen.metrics.map(Listen::Tcp));
    let control = inherited.control.or(sockets::control(&listen));
    let http = Sockets::bind(metrics, control)
        .await
        .map_err(|error| unheard(&format!("{file}: listen: {error}")))?;
    let mut text = String::from("ready");
    for listen in nbd.listens() {
        let _ = write!(text, " nbd={listen}");
    }
    if let Some(address) = http.metrics() {
        let _ = write!(text, " metrics={address}");
    }
    if let Some(control) = http.control() {
        let _ = write!(text, " control={control}");
    }
    let disks: Vec<Watched> = running.iter().map(watched).collect();
    // Before anybody asks for anything, so that a scrub misses nothing.
    resume_scrubs(&disks).await;
    let site = Arc::new(Site {
        disks,
        nbd: Some(nbd.counts()),
        messages_dropped: messages::dropped(),
        clock,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    });
    let (end, ended) = watch::channel(false);
    let clients = nbd.run(over(ended.clone()));
    let watchers = http.serve(site, ended);
    let mut clients = pin!(async { tokio::join!(clients, watchers).0 });
    ready(&text);
    tracing::info!("{text}");
    messages::notify("READY=1");

    let mut ending = false;
    loop {
        tokio::select! {
            result = &mut clients => {
                return result.map_err(|error| Fault::File(format!("NBD: {error}")));
            }
            told = signals.next() => match told {
                Told::ReadAgain => reload.begin(),
                Told::End if ending => {
                    abandon();
                    at_once();
                }
                Told::End => {
                    ending = true;
                    tracing::info!("ending: no more clients; what was asked for is done");
                    // Nobody to tell is an end too.
                    let _ = end.send(true);
                }
            },
            () = reload.done() => {}
            () = &mut gone, if !ending => {
                ending = true;
                tracing::info!("ending: what was in front of the disks has gone");
                let _ = end.send(true);
            }
        }
    }
}

/// Goes on with scrubs that a former server has not finished. What is in the way of one is said, and the disk serves all the same.
async fn resume_scrubs(disks: &[Watched]) {
    for watched in disks {
        let scrubs = Arc::clone(&watched.scrubs);
        let resumed = tokio::task::spawn_blocking(move || scrubs.resume_unfinished()).await;
        if let Err(error) = resumed.expect("a scrub that is resumed does not panic") {
            let disk = watched.disk.name();
            tracing::warn!(disk, "its scrub does not go on: {error}");
        }
    }
}

fn watched(running: &Running) -> Watched {
    let exports = running.exports.iter().map(|export| export.name.clone());
    Watched {
        disk: running.disk.clone(),
        backend: running.prepared.backend(),
        exports: exports.collect(),
        members: running
            .prepared
            .members
            .iter()
            .map(watched_member)
            .collect(),
        scrubs: Arc::new(running.prepared.scrubs(&running.disk)),
    }
}

fn watched_member(disk: &PreparedDisk) -> WatchedMember {
    WatchedMember {
        name: disk.config.name.clone(),
        backend: disk.backend(),
        faults: disk.config.faults,
        parse_scheduler: disk.parser(),
    }
}

/// A disk of a configuration in what runs.
#[derive(Clone)]
struct Current {
    disk: Disk,
    member: Member,
    /// The configuration in force.
    config: DiskConfig,
}

/// What a reading of the configuration changes of one disk.
struct Change {
    disk: Disk,
    member: Member,
    config: DiskConfig,
    scheduler: Option<(String, BuildScheduler)>,
    gate: Option<GateSpec>,
    timeout: Option<Option<Nanos>>,
}

/// What a reading of the configuration changes.
#[derive(Default)]
struct Changes {
    disks: Vec<Change>,
    /// What takes a restart, in words.
    fixed: Vec<String>,
}

/// Reads the configuration again while the server runs, beside it: learning what a scheduler has to
/// know of a drive takes a while.
struct Reload {
    file: PathBuf,
    /// All disks, with the disks of arrays.
    current: Vec<Current>,
    listen: ListenConfig,
    running: Arc<Vec<Running>>,
    under_way: Option<JoinHandle<Result<Changes, Fault>>>,
    again: bool,
}

impl Reload {
    fn new(file: &Path, listen: &ListenConfig, running: &Arc<Vec<Running>>) -> Reload {
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
            running: Arc::clone(running),
            under_way: None,
            again: false,
        }
    }

    fn begin(&mut self) {
        if self.under_way.is_some() {
            self.again = true;
            return;
        }
        let (file, current) = (self.file.clone(), self.current.clone());
        let (listen, running) = (self.listen.clone(), Arc::clone(&self.running));
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
            let reading = move || changes(&file, &current, &in_force, &listen, &running);
            let reading = tokio::task::spawn_blocking(reading);
            reading
                .await
                .expect("reading a configuration does not panic")
        }));
    }

    /// Waits for the reading that is under way, for ever if there is none, and puts it in force.
    async fn done(&mut self) {
        let Some(reading) = &mut self.under_way else {
            return std::future::pending().await;
        };
        let result = reading
            .await
            .expect("reading a configuration does not panic");
        self.under_way = None;
        match result {
            Err(fault) => tracing::error!("nothing is changed: {fault}"),
            Ok(Changes { disks, fixed }) => {
                for text in fixed {
                    tracing::warn!("{text}");
                }
                let nothing = disks.is_empty();
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
                // It fitted when the file was read.
                Err(error) => tracing::error!(disk = config.name, "{error}"),
            }
        }
        if let Some(timeout) = timeout {
            let text = timeout.map_or("off".to_owned(), |timeout| timeout.to_string());
            tracing::info!(disk = config.name, timeout = text, "the timeout is changed");
            disk.set_timeout(timeout);
        }
        for current in &mut self.current {
            if current.config.name == config.name {
                current.config = config.clone();
            }
        }
    }
}

/// What a configuration file changes, and what it would change after a restart. `in_force` are the
/// texts of the disks' schedulers and gates.
fn changes(
    file: &Path,
    current: &[Current],
    in_force: &[(String, String)],
    listen: &ListenConfig,
    running: &[Running],
) -> Result<Changes, Fault> {
    let config = Config::open(file)?;
    let mut changes = Changes::default();
    let fixed = &mut changes.fixed;
    let differences = listen.fixed_differences(&config.listen);
    if !differences.is_empty() {
        let keys = differences.join(", ");
        fixed.push(format!("listen: {keys}: another value takes a restart"));
    }
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
        if scheduler.is_some() || gate.is_some() || timeout.is_some() {
            changes.disks.push(Change {
                disk: disk.clone(),
                member: *member,
                config: new.clone(),
                scheduler,
                gate,
                timeout,
            });
        }
    }
    Ok(changes)
}

impl Ended {
    /// What was done, for people.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        for (name, snapshot) in &self.disks {
            let metrics = &snapshot.metrics;
            let all = |of: fn(&headtime_serve::metrics::ExportMetrics) -> u64| {
                metrics.exports.iter().map(of).sum::<u64>()
            };
            let requests = all(|export| export.requests.iter().sum());
            let failed = all(|export| export.failed.iter().sum());
            let _ = write!(text, "disk {name}: {requests} requests, {failed} failed");
            let timeouts = snapshot.whole.timeouts;
            if timeouts > 0 {
                let _ = write!(text, ", {timeouts} timeouts");
            }
            if let Some(failure) = &snapshot.failure {
                let _ = write!(text, "; takes no writes: {failure}");
            }
            let lateness = metrics.lateness.read();
            if snapshot.in_model_time && !lateness.is_empty() {
                let us = |time: Nanos| time.as_nanos() as f64 / 1e3;
                let _ = write!(
                    text,
                    "; lateness p50 {:.1}, p99 {:.1}, p99.9 {:.1}, max {:.1} us",
                    us(lateness.quantile(0.5)),
                    us(lateness.quantile(0.99)),
                    us(lateness.quantile(0.999)),
                    us(lateness.max()),
                );
                let share = metrics.late_share();
                if share > LATE_SHARE_MAX {
                    let _ = write!(
                        text,
                        "\nwarning: disk {name}: {:.1} % of completions were more than 0.5 ms late; \
                         times of this run are not to be trusted",
                        share * 100.0
                    );
                }
            }
            text.push('\n');
        }
        text
    }
}
