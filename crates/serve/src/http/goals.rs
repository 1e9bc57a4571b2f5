//! Goals of programs over HTTP.

use super::status;
use crate::goals::coordinator::Coordinator;
use crate::goals::exchange::Question;
use crate::goals::{Goals, RefusedGoal};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use headtime_linux::clock::Clock;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Goals of a server that has programs.
pub type SharedGoals = Option<Arc<Mutex<Goals>>>;

type GoalRefusal = (StatusCode, String);

/// Locks the goals. A panic of another thread does not matter.
pub(super) fn locked(goals: &Mutex<Goals>) -> MutexGuard<'_, Goals> {
    goals.lock().unwrap_or_else(PoisonError::into_inner)
}

fn there(goals: &SharedGoals) -> Result<MutexGuard<'_, Goals>, GoalRefusal> {
    let goals = goals.as_ref().map(|goals| locked(goals));
    goals.ok_or_else(|| {
        let problem = "no programs: the configuration has no [[qos.program]]\n".to_owned();
        (StatusCode::CONFLICT, problem)
    })
}

fn refused(refused: RefusedGoal) -> GoalRefusal {
    let status = match refused {
        RefusedGoal::NoProgram(_) => StatusCode::NOT_FOUND,
        RefusedGoal::Goal(..) => StatusCode::BAD_REQUEST,
        _ => StatusCode::CONFLICT,
    };
    (status, format!("{refused}\n"))
}

async fn state(State(goals): State<SharedGoals>) -> Result<Response, GoalRefusal> {
    let text = format!("{:#}\n", status::goals(&there(&goals)?.statuses()));
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

async fn set_goal(
    State(goals): State<SharedGoals>,
    Path(program): Path<String>,
    body: String,
) -> Result<(), GoalRefusal> {
    let goal = match body.trim() {
        "none" => None,
        text => {
            let goal = text.parse();
            Some(goal.map_err(|error| (StatusCode::BAD_REQUEST, format!("{error}; or none\n")))?)
        }
    };
    there(&goals)?.set_goal(&program, goal).map_err(refused)?;
    tracing::info!(program, goal = body.trim(), "the goal is set");
    Ok(())
}

async fn profile(
    State(goals): State<SharedGoals>,
    Path((program, verb)): Path<(String, String)>,
) -> Result<String, GoalRefusal> {
    let mut goals = there(&goals)?;
    match verb.as_str() {
        "start" => {
            goals.start_profile(&program).map_err(refused)?;
            tracing::info!(program, "its profile is recorded");
            Ok(String::new())
        }
        "stop" => {
            let profile = goals.stop_profile(&program).map_err(refused)?;
            tracing::info!(program, run = %profile.run, "its profile is recorded no longer");
            Ok(profile.to_text())
        }
        _ => {
            let problem = "allowed are start and stop\n".to_owned();
            Err((StatusCode::NOT_FOUND, problem))
        }
    }
}

/// Requests about programs at a control socket.
pub(super) fn controlling<S: Clone + Send + Sync + 'static>(goals: SharedGoals) -> Router<S> {
    Router::new()
        .route("/qos", get(state))
        .route("/qos/{program}/goal", post(set_goal))
        .route("/qos/{program}/profile/{verb}", post(profile))
        .with_state(goals)
}

/// Longest question of a coordinator: 63 programs in a few periods, with room to spare.
const QUESTION_MAX: usize = 256 << 10;

async fn coordinate(
    State((goals, clock)): State<(SharedGoals, Clock)>,
    body: String,
) -> Result<Response, GoalRefusal> {
    let malformed = |problem| (StatusCode::BAD_REQUEST, format!("{problem}\n"));
    let question = Question::from_text(&body).map_err(malformed)?;
    let mut goals = there(&goals)?;
    let answer = goals.coordinate(clock.now(), question).map_err(refused)?;
    drop(goals);
    Ok((
        [(header::CONTENT_TYPE, "application/json")],
        answer.to_text(),
    )
        .into_response())
}

/// Questions of a coordinator at a server's control socket.
pub(super) fn coordinated<S: Clone + Send + Sync + 'static>(
    goals: SharedGoals,
    clock: Clock,
) -> Router<S> {
    Router::new()
        .route("/qos/coordinate", post(coordinate))
        .layer(DefaultBodyLimit::max(QUESTION_MAX))
        .with_state((goals, clock))
}

/// A coordinator whose state is served.
type Coordinating = (Arc<Mutex<Coordinator>>, Clock);

async fn servers(State((coordinator, clock)): State<Coordinating>) -> Response {
    let coordinator = coordinator.lock().unwrap_or_else(PoisonError::into_inner);
    let (servers, goals) = (coordinator.statuses(clock.now()), coordinator.goals());
    drop(coordinator);
    let text = format!(
        "{:#}\n",
        status::servers(&servers, &locked(&goals).statuses())
    );
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// Requests at the control socket of a coordinator: requests about programs, and `GET /status` for the state of its
/// servers.
pub fn coordinating(coordinator: &Arc<Mutex<Coordinator>>, clock: Clock) -> Router {
    let locked = coordinator.lock().unwrap_or_else(PoisonError::into_inner);
    let goals = Some(locked.goals());
    drop(locked);
    Router::new()
        .route("/status", get(servers))
        .with_state((Arc::clone(coordinator), clock))
        .merge(controlling(goals))
}
