//! A server from its first socket to its last flush.

use super::config::{ListenConfig, ProgramConfig};
use super::disk::PreparedDisk;
use super::disks::{self, Running};
use super::front::{Front, Gone};
use super::goals::Kept;
use super::reload::Reload;
use super::{messages, sockets};
use headtime_lab::fault::Fault;
use headtime_linux::clock::Clock;
use headtime_linux::shown::{PathShown as _, one_line};
use headtime_serve::goals::GoalsOptions;
use headtime_serve::http::{Site, Sockets, Watched, WatchedMember, snapshot};
use headtime_serve::listen::{Inherited, Listen};
use headtime_serve::metrics::{LATE_SHARE_MAX, Snapshot};
use headtime_serve::nbd::{self, Network};
use headtime_units::Nanos;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Function that gets the text with the addresses once the server is ready. If passing the text on fails, the server continues, since
/// clients may have connected already.
pub type Ready<'a> = &'a mut dyn FnMut(&str);

/// A server whose disks run.
#[derive(Debug)]
pub struct Server {
    /// File of the configuration, to be read again.
    pub file: PathBuf,
    /// Sockets to listen at.
    pub listen: ListenConfig,
    /// Sockets that the process was started with, in place of configured ones.
    pub inherited: Inherited,
    /// Protection of the addresses.
    pub network: Network,
    /// Clock of the server.
    pub clock: Clock,
    /// Disks of the server.
    pub running: Vec<Running>,
    /// Programs that share disks.
    pub programs: Vec<ProgramConfig>,
    /// Goals of these programs.
    pub goals: Option<GoalsOptions>,
}

/// Outcome of a run.
#[derive(Debug, Default)]
pub struct Ended {
    /// States of the disks after their clients had left. A disk that did not answer is missing. Empty if the server was never ready.
    pub disks: Vec<(String, Box<Snapshot>)>,
}

/// Signals that a server handles.
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

    /// Waits for the next signal that asks for the end.
    async fn end(&mut self) {
        while self.next().await != Told::End {}
    }
}

/// Meaning of a signal.
#[derive(PartialEq, Eq)]
enum Told {
    End,
    ReadAgain,
}

async fn over(mut ended: watch::Receiver<bool>) {
    // An error means that the sender no longer exists and cannot end the server.
    let _ = ended.wait_for(|ended| *ended).await;
}

/// Ends the process at the second request to end. Unfinished work is lost.
fn at_once() -> ! {
    let fault = Fault::Interrupted;
    messages::say("error: ", &fault.to_string());
    messages::end();
    std::process::exit(fault.exit_code().into());
}

impl Server {
    /// Serves until a signal asks for the end. Then drains, flushes and stops the disks. `ready` gets the addresses of the server. The
    /// outcome is known even if something went wrong.
    ///
    /// # Errors
    ///
    /// If a socket cannot be had, or if a last flush or a log fails. The disks have stopped even then. A server that was never ready
    /// removes the files that it made.
    pub fn run(self, ready: Ready<'_>) -> (Ended, Result<(), Fault>) {
        self.run_behind(Front::none(), ready)
    }

    /// Like [`Server::run`], with another front to the disks. The front ends after the sockets' clients and before the disks.
    ///
    /// # Errors
    ///
    /// As [`Server::run`], and if the front cannot be ended.
    pub fn run_behind(mut self, front: Front, ready: Ready<'_>) -> (Ended, Result<(), Fault>) {
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
            tokio::spawn(tell_watchdog());
            let Front { gone, end, abandon } = front;
            let goals = self.goals;
            let kept = goals.map(|options| Kept::new(options, &mut self.running));
            let running = Arc::new(self.running);
            let reload = Reload::new(
                &self.file,
                (&self.listen, self.network),
                self.programs,
                &running,
            );
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
                (&running, kept),
                &mut signals,
                front,
                &mut ready,
            )
            .await;
            messages::notify("STOPPING=1");
            // The front's clients still use the disks.
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
                disk = stuck(&running) => {
                    tracing::error!(disk, "is stuck, so the last flush is not waited for");
                    at_once()
                }
            };
            (Ended { disks }, served.and(ended).and(stopped))
        })
    }
}

/// Runtime for futures, and signals that the futures wait for.
fn runtime() -> Result<(Runtime, Signals), Fault> {
    // At a limit of threads or memory, a runtime without a thread for blocking work would end the server at the next such work.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_keep_alive(Duration::MAX)
        .build()
        .map_err(|error| Fault::File(format!("cannot start the runtime: {error}")))?;
    runtime.spawn_blocking(|| ());
    let within = runtime.enter();
    let signals = Signals::new()?;
    drop(within);
    Ok((runtime, signals))
}

/// Tells the service manager's watchdog that this thread runs, which serves all clients. A disk's thread that is stuck in its device
/// does not count: a restart heals no device, and takes the other disks from their clients.
async fn tell_watchdog() {
    if let Some(within) = messages::watchdog() {
        loop {
            // A busy service manager must not hold this thread.
            let told = tokio::task::spawn_blocking(|| messages::notify("WATCHDOG=1"));
            told.await.expect("telling does not panic");
            tokio::time::sleep(within / 2).await;
        }
    }
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

/// Least time for which a disk that ends may complete nothing. A slow log has ten seconds.
const SILENT_MIN: Nanos = Nanos::from_secs(15);

/// This time for a disk without a timeout of commands.
const SILENT_OFF: Nanos = Nanos::from_secs(60);

/// Returns the name of a disk that ends, and has completed nothing for twice the timeout of commands. Commands in the
/// device have one timeout, and the last flush has one.
async fn stuck(running: &[Running]) -> &str {
    let begun = tokio::time::Instant::now();
    let mut seen = vec![(0, begun); running.len()];
    loop {
        for (running, (count, since)) in running.iter().zip(&mut seen) {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let asked = running.disk.snapshot();
            let done = match tokio::time::timeout(Duration::from_secs(1), asked).await {
                Ok(Ok(state)) => state.whole.engine.finished + state.whole.timeouts,
                // Other disks have not ended.
                Ok(Err(_)) => continue,
                Err(_) => *count,
            };
            if done != *count {
                (*count, *since) = (done, tokio::time::Instant::now());
            }
            let timeout = running.prepared.members[0].config.timeout;
            let patience = timeout.map_or(SILENT_OFF, |timeout| (timeout * 2).max(SILENT_MIN));
            if since.elapsed() >= Duration::from_nanos(patience.as_nanos()) {
                return running.disk.name();
            }
        }
        if seen.is_empty() {
            std::future::pending().await
        }
    }
}

/// Fault for a socket that cannot be opened. The text has paths of the configuration.
fn unheard(text: &str) -> Fault {
    Fault::File(one_line(text))
}

async fn serve(
    mut reload: Reload,
    inherited: Inherited,
    clock: Clock,
    (running, kept): (&Arc<Vec<Running>>, Option<Kept>),
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
    let network = reload.network.clone();
    let usual = nbd::Limits::default();
    let limits = nbd::Limits {
        max_bytes: listen.max_bytes.unwrap_or(usual.max_bytes),
        ..usual
    };
    let nbd = nbd::Server::bind_to(network, &clients, exports.collect(), limits)
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
    // Scrubs resume before any request, so that a scrub misses no write.
    resume_scrubs(&disks).await;
    let site = Arc::new(Site {
        disks,
        nbd: Some(nbd.counts()),
        goals: kept.as_ref().map(|kept| Arc::clone(&kept.goals)),
        messages_dropped: messages::dropped(),
        clock,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    });
    let mut keeping = pin!(async {
        if let Some(kept) = kept {
            let ended = tokio::spawn(async move { kept.keep(clock).await }).await;
            // Without new plans gates share their disks after a while.
            let error = ended.map_or_else(|error| error.to_string(), |()| String::new());
            tracing::error!("a bug: goals of programs are kept no longer: {error}");
        }
        std::future::pending().await
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
                    // Without a receiver there is nothing left to end.
                    let _ = end.send(true);
                }
            },
            () = reload.done() => {}
            () = &mut keeping => {}
            () = &mut gone, if !ending => {
                ending = true;
                tracing::info!("ending: what was in front of the disks has gone");
                let _ = end.send(true);
            }
        }
    }
}

/// Resumes scrubs that an earlier server has not finished. If a scrub cannot be resumed, a warning gives the reason, and the disk serves
/// nevertheless.
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
    let exports = running.exports.iter();
    let exports = exports.map(|export| (export.name.clone(), export.addresses));
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

impl Ended {
    /// Summary of the disks' work, for people.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        for disk in &self.disks {
            let (name, snapshot) = disk;
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
                if let Some((name, share)) = Ended::late(disk) {
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

    /// Name of an emulated drive whose times are not to be trusted, with the share of late completions.
    pub fn late((name, snapshot): &(String, Box<Snapshot>)) -> Option<(&str, f64)> {
        let share = snapshot.metrics.late_share();
        let is_late = snapshot.in_model_time && share > LATE_SHARE_MAX;
        is_late.then_some((name.as_str(), share))
    }
}
