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
use headtime_serve::nbd;
use headtime_units::Nanos;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

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
    /// Programs that share disks.
    pub programs: Vec<ProgramConfig>,
    /// Goals of these programs.
    pub goals: Option<GoalsOptions>,
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
            let Front { gone, end, abandon } = front;
            let goals = self.goals;
            let kept = goals.map(|options| Kept::new(options, &mut self.running));
            let running = Arc::new(self.running);
            let reload = Reload::new(&self.file, &self.listen, self.programs, &running);
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
        goals: kept.as_ref().map(|kept| Arc::clone(&kept.goals)),
        messages_dropped: messages::dropped(),
        clock,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    });
    let mut keeping = pin!(async {
        match &kept {
            Some(kept) => kept.keep(clock).await,
            None => std::future::pending().await,
        }
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
            () = &mut keeping => unreachable!("goals are kept to the end"),
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
