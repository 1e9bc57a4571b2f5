//! Bounds of a run, from its goal.

use crate::features::Accumulator;
use crate::goal::GoalError;
use crate::model::Model;
use crate::profile::Profile;
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Rate};
use std::sync::Arc;

/// Ratio of the I/O times of a goal and of a profile: the paper's alpha. Above 0.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Alpha(f64);

impl Alpha {
    /// Ratio of the profile itself.
    pub(crate) const ONE: Alpha = Alpha(1.0);

    /// Ratio at which the rest of a run takes `left`, with `io` as its I/O time alone. `None` if the rest does not fit with
    /// all servers.
    pub(crate) fn of_rest(left: Nanos, io: Nanos) -> Option<Alpha> {
        let fits = left >= io && !io.is_zero();
        fits.then(|| Alpha(left.as_secs_f64() / io.as_secs_f64()))
    }

    /// Ratio for a program that must end after `run_time`: `(T_real - T_comp) / (T_profile - T_comp)`.
    ///
    /// # Errors
    ///
    /// If the program cannot end so early, or the profile has no I/O time.
    pub fn new(run_time: Nanos, profile: &Profile) -> Result<Alpha, GoalError> {
        let (compute, least) = (profile.compute(), profile.least());
        if profile.io.is_zero() {
            return Err(GoalError::NoIo);
        }
        if run_time <= compute {
            return Err(GoalError::BelowCompute {
                run_time,
                compute,
                least,
            });
        }
        if run_time < least {
            return Err(GoalError::Impossible { run_time, least });
        }
        let io = run_time - compute;
        Ok(Alpha(io.as_secs_f64() / profile.io.as_secs_f64()))
    }

    /// The ratio as a number.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// Derives the bounds of one program while it runs.
#[derive(Clone, Debug)]
pub struct Bounds {
    model: Arc<Model>,
    alpha: Alpha,
    /// Upper limit of the throughput with all servers. The model's predictions are cut to this limit.
    most: Option<Rate>,
    servers: Vec<ServerBound>,
    /// Requests on all servers.
    requests: u64,
}

/// Requests of the program on a server.
#[derive(Clone, Debug)]
struct ServerBound {
    epoch: Accumulator,
    /// Throughput by the last prediction. 0 if the program has left the server.
    rate: f64,
    /// Number of requests since the last prediction, at the end of the last epoch.
    seen: u64,
    /// Number of the last request at this server, among the requests at all servers.
    last: u64,
}

/// Number of requests per server after which the program has left a server without requests. A program that uses all servers
/// alike misses one server for such a time with a chance of 1 in 3,000.
const LEAVES_AFTER: u64 = 8;

impl Bounds {
    /// Creates bounds by a model, for servers whose sectors have `sector_bytes` bytes.
    ///
    /// # Panics
    ///
    /// If sectors have no bytes.
    pub fn new(model: Arc<Model>, alpha: Alpha, sector_bytes: u32) -> Bounds {
        let servers = usize::from(model.setting().servers);
        Bounds {
            model,
            alpha,
            most: None,
            servers: vec![
                ServerBound {
                    epoch: Accumulator::new(sector_bytes),
                    rate: 0.0,
                    seen: 0,
                    last: 0,
                };
                servers
            ],
            requests: 0,
        }
    }

    /// Sets another goal. The current epoch continues.
    pub fn set_alpha(&mut self, alpha: Alpha) {
        self.alpha = alpha;
    }

    /// Sets the measured upper limit of the throughput with all servers. `None` leaves the model's predictions as they are.
    pub(crate) fn set_most(&mut self, most: Option<Rate>) {
        self.most = most;
    }

    /// Share of the servers' time that the goal demands while the program has requests outstanding: 1 / alpha.
    pub fn share(&self) -> f64 {
        1.0 / self.alpha.0
    }

    /// Notes a request of the program that arrives at a server.
    ///
    /// # Panics
    ///
    /// If there is no such server.
    pub fn request(&mut self, server: u16, op: Op, extent: Extent) {
        self.requests += 1;
        let of = &mut self.servers[usize::from(server)];
        of.last = self.requests;
        of.epoch.add(op, extent);
    }

    /// Ends the epoch, whose length is [`Model::epoch`]. Returns the bound of the program for the next epoch: the sum over the
    /// servers that it uses. Returns `None` if no server had requests.
    ///
    /// A server keeps its last prediction until [enough](Model::enough) requests have come since then. A server without
    /// requests keeps its prediction until the program has made 8 requests per server elsewhere. The reason: a program that
    /// gets little service makes few requests in an epoch, at few servers. Without this rule its bound would fall. If one
    /// request is enough, each epoch counts by itself.
    pub fn epoch_ends(&mut self) -> Option<Rate> {
        let tree = self.model.tree();
        let enough = self.model.enough();
        let most = LEAVES_AFTER * self.servers.len() as u64;
        let mut any = false;
        for server in &mut self.servers {
            any |= server.epoch.requests() > server.seen;
            server.seen = server.epoch.requests();
            if server.seen >= enough
                && let Some(sums) = server.epoch.take()
            {
                server.rate = tree.predict(&sums.vector());
                server.seen = 0;
            } else if enough == 1 || self.requests - server.last > most {
                server.rate = 0.0;
            }
        }
        let rate: f64 = self.servers.iter().map(|server| server.rate).sum();
        let rate = self.most.map_or(rate, |most| rate.min(most.0 as f64));
        any.then(|| Rate((rate / self.alpha.0 + 0.5).max(1.0) as u64))
    }
}
