//! Metrics, status and control over HTTP.
//!
//! | request | at | |
//! |---|---|---|
//! | `GET /metrics` | both | for Prometheus, see [`metrics`] |
//! | `GET /status` | both | JSON, for people and scripts |
//! | `POST /disks/NAME/power-cut` | control | cuts the power of an emulated drive, which loses the data in its buffer; needs `faults` |
//! | `POST /disks/NAME/fault?..` | control | injects a fault, see [`fault`]; needs `faults` |
//! | `POST /disks/NAME/power-on` | control | switches the power on |
//! | `POST /disks/NAME/clear-failure` | control | clears a failure, so that the disk takes writes again |
//! | `POST /disks/NAME/scheduler` | control | swaps the scheduler; the body is its text |
//! | `POST /disks/NAME/gate` | control | changes the gate; the body is its text |
//! | `GET /disks/NAME/scrub` | control | JSON: the progress of the last [scrub](crate::scrub); `{"state": "none", "why": ..}` if the scrub of an earlier server does not continue; `null` if there was no scrub |
//! | `POST /disks/NAME/scrub` | control | starts or continues a scrub; the body is JSON, see [`scrub`] |
//! | `GET /qos` | control | JSON: the programs with their goals and their state |
//! | `POST /qos/PROGRAM/goal` | control | sets the goal of the next run; the body is its text, or `none` |
//! | `POST /qos/PROGRAM/profile/VERB` | control | `start`, or `stop`: the profile as text |
//! | `POST /qos/coordinate` | control | a [coordinator](crate::goals::coordinator) of several servers asks for requests and gives orders |
//! | `POST /disks/NAME/scrub/VERB` | control | `pause`, `resume` or `stop` |
//!
//! NAME is a disk, an array with all its members, or one disk of an array.
//!
//! Requests that change nothing are served at loopback addresses too. Requests that change something are served at a
//! unix socket only. The permissions of the socket's file decide who may connect, by default its owner alone. An answer
//! other than 200 has a line of text with the reason:
//!
//! - 400: the request is malformed.
//! - 403: faults are not allowed on the disk, or the user may not name a file for a scrub.
//! - 404: the disk, program or verb does not exist.
//! - 409: the disk cannot do this now.
//! - 413: the text is too long.
//! - 503: the disk has stopped.
//!
//! [`HttpLimits`] bounds the number of clients and their time.

pub mod client;
pub mod fault;
mod goals;
mod peer;
pub mod scrub;
mod sockets;
mod status;

use crate::device::Control;
use crate::disk::{Addresses, BuildScheduler, Disk};
use crate::metrics::{self, Labelled, Page, Snapshot};
use crate::nbd::Counts;
use crate::scrub::{ScrubError, Scrubs};
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use headtime_engine::{GateError, GateSpec, Member};
use headtime_linux::clock::Clock;
use headtime_linux::shown::Shown;
use headtime_units::Sectors;
use peer::Peer;
use serde_json::Value;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use goals::{SharedGoals, coordinating};
pub use sockets::{HttpLimits, Sockets};

/// Makes a scheduler from its text. Returns the text written out in full with the builder. An error names the problem
/// of the text.
pub type ParseScheduler =
    dyn Fn(&str) -> Result<(String, BuildScheduler), String> + Send + Sync + 'static;

/// A disk that is watched and controlled.
#[derive(Clone)]
pub struct Watched {
    pub disk: Disk,
    /// Description of the disk's device.
    pub backend: String,
    /// Names of the disk's exports, by number, each with the bytes of the disk that clients see.
    pub exports: Vec<(String, Addresses)>,
    /// The device of the disk, by the disk's name, or the device of each member of an array.
    pub members: Vec<WatchedMember>,
    /// Scrubs of the disk.
    pub scrubs: Arc<Scrubs>,
}

/// A device that is watched and controlled.
#[derive(Clone)]
pub struct WatchedMember {
    /// Name for control.
    pub name: String,
    /// Description of the device.
    pub backend: String,
    /// True if faults may be injected.
    pub faults: bool,
    /// Makes schedulers for the device.
    pub parse_scheduler: Arc<ParseScheduler>,
}

/// A disk with all its members, or one member of an array, as found by name.
struct Named<'a> {
    name: &'a str,
    watched: &'a Watched,
    members: Range<usize>,
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watched({:?}, {})", self.disk, self.backend)
    }
}

/// State that the server's HTTP addresses serve.
#[derive(Debug)]
pub struct Site {
    /// The disks, in order.
    pub disks: Vec<Watched>,
    /// The counts of the NBD server, if there is one.
    pub nbd: Option<Arc<Counts>>,
    /// Goals of programs, if there are programs.
    pub goals: SharedGoals,
    /// Number of messages that were dropped because standard error was blocked.
    pub messages_dropped: Arc<AtomicU64>,
    /// The server's time.
    pub clock: Clock,
    /// The program's version.
    pub version: String,
}

/// Largest size of a request's body, more than any text of a scheduler or a gate needs.
const BODY_MAX: usize = 16 << 10;

/// Longest wait for a disk's state. A stuck disk is missing from an answer, but does not delay the other disks.
const SNAPSHOT_WITHIN: Duration = Duration::from_secs(1);

/// Returns the state of a disk. Returns `None` if the disk has stopped. If the disk does not answer within a second,
/// logs a message and returns `None`.
pub async fn snapshot(disk: &Disk) -> Option<Box<Snapshot>> {
    match tokio::time::timeout(SNAPSHOT_WITHIN, disk.snapshot()).await {
        Ok(told) => told.ok(),
        Err(_) => {
            tracing::warn!(
                disk = disk.name(),
                "says nothing for {SNAPSHOT_WITHIN:?}: its thread is stuck in its device or store"
            );
            None
        }
    }
}

impl Site {
    /// Asks all disks at the same time, so that all stuck disks together cost one second.
    async fn page(&self) -> Page {
        let asked = self.disks.iter().map(|watched| {
            let disk = watched.disk.clone();
            tokio::spawn(async move { snapshot(&disk).await })
        });
        let asked: Vec<_> = asked.collect();
        let (mut disks, mut silent) = (Vec::new(), Vec::new());
        for (watched, told) in self.disks.iter().zip(asked) {
            match told.await.ok().flatten() {
                Some(snapshot) => disks.push(watched.label(snapshot)),
                None => silent.push(watched.disk.name().to_owned()),
            }
        }
        Page {
            disks,
            silent,
            nbd: self.nbd.clone(),
            programs: self.goals.as_ref().map(|goals| {
                let goals = goals::locked(goals);
                (goals.statuses(), goals.unseen())
            }),
            messages_dropped: self.messages_dropped.load(Ordering::Relaxed),
            uptime: self.clock.now() - headtime_units::Time::ZERO,
            version: self.version.clone(),
        }
    }

    fn find<'a>(&'a self, name: &'a str) -> Result<Named<'a>, HttpRefusal> {
        let found = self.disks.iter().find_map(|watched| {
            let members = &watched.members;
            let members = match watched.disk.name() == name {
                true => 0..members.len(),
                false => {
                    let at = members.iter().position(|member| member.name == name)?;
                    at..at + 1
                }
            };
            Some(Named {
                name,
                watched,
                members,
            })
        });
        found.ok_or_else(|| {
            let names = self.disks.iter().flat_map(|watched| {
                let of_array = watched.members.iter().filter(|_| watched.members.len() > 1);
                let of_array = of_array.map(|member| member.name.as_str());
                [watched.disk.name()].into_iter().chain(of_array)
            });
            let names: Vec<&str> = names.collect();
            let (name, are) = (Shown(name), if names.len() == 1 { "is" } else { "are" });
            let problem = format!("no disk `{name}`; there {are} {}", names.join(", "));
            HttpRefusal(StatusCode::NOT_FOUND, problem)
        })
    }
}

impl Watched {
    fn label(&self, snapshot: Box<Snapshot>) -> Labelled {
        Labelled {
            disk: self.disk.name().to_owned(),
            backend: self.backend.clone(),
            sector_bytes: self.disk.sector_bytes(),
            exports: self.exports.clone(),
            members: match &self.members[..] {
                [_] => Vec::new(),
                several => several
                    .iter()
                    .map(|member| (member.name.clone(), member.backend.clone()))
                    .collect(),
            },
            scrub: self.scrubs.status().map(Box::new),
            snapshot,
        }
    }
}

impl Named<'_> {
    fn members(&self) -> impl Iterator<Item = (Member, &WatchedMember)> {
        let members = self.members.clone();
        members.map(|index| (Member(index as u16), &self.watched.members[index]))
    }

    fn may_fail(&self) -> Result<(), HttpRefusal> {
        match self.members().find(|(_, member)| !member.faults) {
            None => Ok(()),
            Some((_, member)) => Err(HttpRefusal(
                StatusCode::FORBIDDEN,
                format!(
                    "faults are not allowed on disk {}; its configuration must say faults = true",
                    member.name
                ),
            )),
        }
    }

    /// Returns the member, if there is exactly one.
    fn only(&self) -> Option<Member> {
        (self.members.len() == 1).then_some(Member(self.members.start as u16))
    }

    /// Controls the drives. Returns the number of acknowledged sectors that are lost by this.
    async fn control(&self, what: Control) -> Result<Sectors, HttpRefusal> {
        let disk = &self.watched.disk;
        let answer = match self.only() {
            Some(member) => disk.control_of(member, what).await,
            None => disk.control(what).await,
        };
        let answer = answer.map_err(HttpRefusal::stopped)?;
        answer.map_err(|error| conflict(self.name, error))
    }
}

/// Refusal of a request that a disk cannot carry out now.
fn conflict(name: &str, error: impl fmt::Display) -> HttpRefusal {
    HttpRefusal(StatusCode::CONFLICT, format!("disk {name}: {error}"))
}

/// Refusal of a request: HTTP status and reason.
struct HttpRefusal(StatusCode, String);

impl HttpRefusal {
    fn stopped(error: impl fmt::Display) -> HttpRefusal {
        HttpRefusal(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
    }
}

impl IntoResponse for HttpRefusal {
    fn into_response(self) -> Response {
        (self.0, format!("{}\n", self.1)).into_response()
    }
}

type SiteState = State<Arc<Site>>;

async fn metrics(State(site): SiteState) -> Response {
    let text = metrics::render(site.page().await);
    ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response()
}

async fn status(State(site): SiteState) -> Response {
    let text = status::render(&site.page().await);
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

async fn power_cut(
    State(site): SiteState,
    Path(name): Path<String>,
) -> Result<String, HttpRefusal> {
    let named = site.find(&name)?;
    named.may_fail()?;
    let lost = named.control(Control::PowerCut).await?;
    tracing::warn!(disk = name, "the power is cut");
    Ok(match lost.get() {
        0 => String::new(),
        lost => format!("{lost} sectors that were acknowledged and not flushed are lost\n"),
    })
}

async fn power_on(State(site): SiteState, Path(name): Path<String>) -> Result<(), HttpRefusal> {
    site.find(&name)?.control(Control::PowerOn).await?;
    tracing::info!(disk = name, "the power is switched on");
    Ok(())
}

async fn inject(
    State(site): SiteState,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<(), HttpRefusal> {
    let named = site.find(&name)?;
    named.may_fail()?;
    let Some(member) = named.only() else {
        let names: Vec<&str> = named.members().map(|(_, of)| of.name.as_str()).collect();
        let problem = format!("is an array; name one of its disks: {}", names.join(", "));
        return Err(conflict(&name, problem));
    };
    let sectors = named.watched.disk.sectors_of(member);
    let query = query.unwrap_or_default();
    let fault = fault::from_query(&query, sectors)
        .map_err(|error| HttpRefusal(StatusCode::BAD_REQUEST, error.to_string()))?;
    tracing::warn!(disk = name, fault = query, "a fault is injected");
    named.control(Control::Fault(fault)).await?;
    Ok(())
}

async fn clear_failure(
    State(site): SiteState,
    Path(name): Path<String>,
) -> Result<(), HttpRefusal> {
    let watched = site.find(&name)?.watched;
    let answer = watched.disk.clear_failure().await;
    answer
        .map_err(HttpRefusal::stopped)?
        .map_err(|error| conflict(watched.disk.name(), error))?;
    tracing::info!(disk = name, "writes are taken again");
    Ok(())
}

async fn scheduler(
    State(site): SiteState,
    Path(name): Path<String>,
    body: String,
) -> Result<(), HttpRefusal> {
    let named = site.find(&name)?;
    // Either all members get a new scheduler or none does.
    let mut built = Vec::with_capacity(named.members.len());
    for (member, of) in named.members() {
        let (parse, body) = (Arc::clone(&of.parse_scheduler), body.clone());
        // Making a scheduler may take a while, if the scheduler has to learn the drive.
        let parsed = tokio::task::spawn_blocking(move || parse(body.trim())).await;
        let parsed = parsed.map_err(HttpRefusal::stopped)?;
        let refused = |problem| HttpRefusal(StatusCode::BAD_REQUEST, problem);
        built.push((member, &of.name, parsed.map_err(refused)?));
    }
    for (member, disk, (text, build)) in built {
        tracing::info!(disk, scheduler = text, "the scheduler is swapped");
        named.watched.disk.swap_scheduler_of(member, &text, build);
    }
    Ok(())
}

async fn gate(
    State(site): SiteState,
    Path(name): Path<String>,
    body: String,
) -> Result<(), HttpRefusal> {
    let named = site.find(&name)?;
    let refused = |error: GateError| HttpRefusal(StatusCode::BAD_REQUEST, error.to_string());
    let gate: GateSpec = body.trim().parse().map_err(refused)?;
    for (member, _) in named.members() {
        let set = named.watched.disk.set_gate_of(member, &gate);
        set.map_err(refused)?;
    }
    tracing::info!(disk = name, %gate, "the gate is changed");
    Ok(())
}

impl Watched {
    fn scrub_refused(&self, error: &ScrubError) -> HttpRefusal {
        match error {
            ScrubError::Value { .. } => HttpRefusal(StatusCode::BAD_REQUEST, error.to_string()),
            _ => conflict(self.disk.name(), error),
        }
    }

    /// Runs an action on the scrubs. The action reads files and counts much, so it does not run on the thread that
    /// serves the other clients.
    async fn scrubs(
        &self,
        what: impl FnOnce(&Scrubs) -> Result<(), ScrubError> + Send + 'static,
    ) -> Result<Response, HttpRefusal> {
        let scrubs = Arc::clone(&self.scrubs);
        let told = tokio::task::spawn_blocking(move || what(&scrubs)).await;
        let told = told.map_err(HttpRefusal::stopped)?;
        told.map_err(|error| self.scrub_refused(&error))?;
        Ok(self.scrub_status())
    }

    fn scrub_status(&self) -> Response {
        let sector_bytes = self.disk.sector_bytes();
        let status = self.scrubs.status();
        let obstacle = || {
            let why = self.scrubs.obstacle()?;
            Some(serde_json::json!({ "state": "none", "why": why }))
        };
        let status = status.map(|status| status::scrub(&status, sector_bytes));
        let status = status.or_else(obstacle).unwrap_or(Value::Null);
        let text = format!("{status:#}\n");
        ([(header::CONTENT_TYPE, "application/json")], text).into_response()
    }
}

async fn scrub_status(
    State(site): SiteState,
    Path(name): Path<String>,
) -> Result<Response, HttpRefusal> {
    Ok(site.find(&name)?.watched.scrub_status())
}

async fn begin_scrub(
    State(site): SiteState,
    Path(name): Path<String>,
    Extension(peer): Extension<Peer>,
    body: String,
) -> Result<Response, HttpRefusal> {
    let watched = site.find(&name)?.watched;
    let ask =
        scrub::ask_of(&body).map_err(|problem| HttpRefusal(StatusCode::BAD_REQUEST, problem))?;
    if (ask.hash.is_some() || ask.copy.is_some()) && !peer.is_trusted() {
        return Err(HttpRefusal(
            StatusCode::FORBIDDEN,
            "--hash and --copy are for root and the server's own user, as the server writes the file"
                .to_owned(),
        ));
    }
    // Parsing and printing the request puts it on one line.
    let said: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
    tracing::info!(disk = name, ask = %said, "scrub requested");
    watched.scrubs(move |scrubs| scrubs.begin(&ask)).await
}

async fn tell_scrub(
    State(site): SiteState,
    Path((name, verb)): Path<(String, String)>,
) -> Result<Response, HttpRefusal> {
    let watched = site.find(&name)?.watched;
    let told = match verb.as_str() {
        "pause" => Scrubs::pause,
        "resume" => Scrubs::resume,
        "stop" => Scrubs::stop,
        _ => {
            let problem = "allowed are pause, resume and stop".to_owned();
            return Err(HttpRefusal(StatusCode::NOT_FOUND, problem));
        }
    };
    watched.scrubs(told).await
}

fn watching() -> Router<Arc<Site>> {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/status", get(status))
}

fn controlling(site: &Site) -> Router<Arc<Site>> {
    watching()
        .merge(goals::controlling(site.goals.clone()))
        .merge(goals::coordinated(site.goals.clone(), site.clock))
        .route("/disks/{name}/power-cut", post(power_cut))
        .route("/disks/{name}/power-on", post(power_on))
        .route("/disks/{name}/fault", post(inject))
        .route("/disks/{name}/clear-failure", post(clear_failure))
        .route("/disks/{name}/scheduler", post(scheduler))
        .route("/disks/{name}/gate", post(gate))
        .route("/disks/{name}/scrub", get(scrub_status).post(begin_scrub))
        .route("/disks/{name}/scrub/{verb}", post(tell_scrub))
        .layer(DefaultBodyLimit::max(BODY_MAX))
}

#[cfg(test)]
mod tests;
