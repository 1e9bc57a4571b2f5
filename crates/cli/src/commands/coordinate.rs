//! `headtime qos coordinate`: one planner for several servers, over their control sockets.

use crate::args::QosCoordinate;
use crate::live::config::{LogConfig, programs};
use crate::live::goals::read_programs;
use crate::live::messages;
use headtime_lab::fault::Fault;
use headtime_linux::clock::{Clock, Wall, until};
use headtime_linux::shown::{PathShown as _, one_line};
use headtime_qos::TimeOfDay;
use headtime_serve::goals::coordinator::{Coordinator, NoAnswer, check_alike};
use headtime_serve::goals::exchange::{About, Question, ServerAnswer};
use headtime_serve::goals::{Goals, GoalsOptions};
use headtime_serve::http::client::ask_within;
use headtime_serve::http::{Sockets, coordinating};
use headtime_serve::listen::Listen;
use headtime_units::{Nanos, Time};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Number of questions to each server in a period.
const QUESTIONS_PER_PERIOD: u64 = 20;

/// Least time between two questions to a server.
const PACE_MIN: Nanos = Nanos::from_millis(20);

/// Longest wait for the first answer of a server.
const FIRST_WITHIN: Duration = Duration::from_secs(5);

/// Plans for several servers until a signal asks for the end.
///
/// # Errors
///
/// If a file cannot be read, a server does not answer at the start, or the servers do not fit together.
pub(super) fn coordinate(args: &QosCoordinate) -> Result<(), Fault> {
    let programs = programs(&args.programs)?;
    messages::begin(&LogConfig::default(), None)?;
    let clock = Clock::start();
    let number = (Wall::now().0 << 20) ^ u64::from(std::process::id());
    let mut servers: Vec<(String, About)> = Vec::with_capacity(args.servers.len());
    for path in &args.servers {
        let name = path.shown().to_string();
        if servers.iter().any(|(other, _)| *other == name) {
            return Err(Fault::Usage(format!(
                "{name}: is there twice; name each server once"
            )));
        }
        let about = meet(path, number, &clock).map_err(|fault| fault.of(&name))?;
        servers.push((name, about));
    }
    let names: Vec<String> = programs
        .iter()
        .map(|program| program.name.clone())
        .collect();
    check_alike(&servers, &names).map_err(Fault::Check)?;
    let first = &servers[0].1;
    let disks = servers.iter().flat_map(|(_, about)| about.disks.clone());
    let mut options = GoalsOptions::new(disks.collect(), &first.gate, first.seek.clone());
    read_programs(&mut options, &programs)?;
    let period = options.planning.period;
    let goals = Arc::new(Mutex::new(Goals::new(options, Vec::new())));
    let coordinator = Coordinator::new(number, servers, goals);
    run(args, Arc::new(Mutex::new(coordinator)), clock, period)
}

/// Asks a server for its disks and programs.
fn meet(path: &Path, number: u64, clock: &Clock) -> Result<About, Fault> {
    let question = Coordinator::first_question(number);
    match ask(path, &question, clock, FIRST_WITHIN) {
        (
            _,
            _,
            Ok(ServerAnswer {
                started: Some(about),
                ..
            }),
        ) => Ok(about),
        (_, _, Ok(_)) => Err(Fault::Check(
            "does not say what it serves; use the same version of headtime on both sides"
                .to_owned(),
        )),
        (_, _, Err(NoAnswer::Refused(why))) => Err(Fault::Check(why)),
        (_, _, Err(NoAnswer::Silent(why))) => Err(Fault::File(why)),
    }
}

/// Sends a question to a server. Also returns the times of question and answer.
fn ask(
    path: &Path,
    question: &Question,
    clock: &Clock,
    patience: Duration,
) -> (Time, Time, Result<ServerAnswer, NoAnswer>) {
    let text = question.to_text();
    let sent = clock.now();
    let answer = ask_within(patience, path, "POST", "/qos/coordinate", &text);
    let received = clock.now();
    let refused = |text: &str| NoAnswer::Refused(one_line(text).to_string());
    let answer = match answer {
        Ok(answer) if answer.status == 200 => {
            ServerAnswer::from_text(&answer.body).map_err(|problem| refused(&problem))
        }
        Ok(answer) if answer.body.trim().is_empty() => Err(refused(&format!(
            "refused with HTTP's {}, without a reason: the server cannot be coordinated; use the same version of headtime on both sides",
            answer.status
        ))),
        Ok(answer) => Err(refused(answer.body.trim())),
        Err(error) => Err(NoAnswer::Silent(match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                format!(
                    "{error}; no server listens there: give the path of `listen.control` of a server that runs"
                )
            }
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                format!(
                    "the answer was not there after {} s: the server or the way there is stuck",
                    patience.as_secs_f64()
                )
            }
            _ => error.to_string(),
        })),
    };
    (sent, received, answer)
}

fn locked(coordinator: &Mutex<Coordinator>) -> MutexGuard<'_, Coordinator> {
    coordinator.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends questions to one server without end, and plans after each answer.
async fn follow(
    coordinator: Arc<Mutex<Coordinator>>,
    server: usize,
    path: Arc<Path>,
    clock: Clock,
    period: Nanos,
) {
    let duration = |span: Nanos| Duration::from_nanos(span.as_nanos());
    let (pace, patience) = (
        duration((period / QUESTIONS_PER_PERIOD).max(PACE_MIN)),
        duration(period),
    );
    let until = |time: TimeOfDay| until(time.hour, time.minute);
    loop {
        let question = locked(&coordinator).question(server);
        let path = Arc::clone(&path);
        let asked =
            tokio::task::spawn_blocking(move || ask(&path, &question, &clock, patience)).await;
        let (sent, received, answer) = asked.expect("asking does not panic");
        {
            let mut coordinator = locked(&coordinator);
            coordinator.answered(server, sent, received, answer);
            coordinator.tick(clock.now(), &until);
        }
        tokio::time::sleep(pace).await;
    }
}

fn run(
    args: &QosCoordinate,
    coordinator: Arc<Mutex<Coordinator>>,
    clock: Clock,
    period: Nanos,
) -> Result<(), Fault> {
    let problem = |error: &dyn std::fmt::Display| Fault::File(error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| problem(&error))?;
    let ended = runtime.block_on(async {
        let of = |kind| signal(kind).map_err(|error| problem(&error));
        let (mut terminate, mut interrupt) = (of(SignalKind::terminate())?, of(SignalKind::interrupt())?);
        let control = args.control.as_deref().map(Listen::unix);
        let sockets = Sockets::bind(None, control).await;
        let sockets = sockets.map_err(|error| problem(&error).of("--control"))?;
        let listens = sockets.control().map_or(String::new(), |control| format!(" control={control}"));
        messages::announce(&format!("ready{listens}"));
        let (end, ended) = watch::channel(false);
        let served = tokio::spawn(sockets.serve_control(coordinating(&coordinator, clock), ended));
        let mut followers = tokio::task::JoinSet::new();
        for (server, path) in args.servers.iter().enumerate() {
            followers.spawn(follow(Arc::clone(&coordinator), server, Arc::from(path.as_path()), clock, period));
        }
        let result = tokio::select! {
            _ = terminate.recv() => Ok(()),
            _ = interrupt.recv() => Ok(()),
            Some(_) = followers.join_next() => Err(Fault::Check("a bug: a server is asked no longer".to_owned())),
        };
        tracing::info!("ending: servers keep the last plan for three periods, then their programs share");
        // Without a receiver, the task that serves the control socket has already ended.
        let _ = end.send(true);
        let _ = served.await;
        result
    });
    // A question under way is abandoned.
    runtime.shutdown_background();
    ended
}
