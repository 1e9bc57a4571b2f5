//! The sockets of HTTP, and limits for their clients.
//!
//! A connection serves one request, so no client can hold a connection for ever.

use super::peer::Peer;
use super::{Site, controlling, watching};
use crate::listen::{self, ACCEPT_AGAIN, BindError, Bound, Listen, Listener, Stream};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Limits for the clients of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Largest number of connections at a time, 1 or more. Watching and controlling clients have this number each, so
    /// neither keep the others out. Further clients wait until a connection ends. 32 by default.
    pub connections: usize,
    /// Time for sending a request without its body. 10 s by default.
    pub head: Duration,
    /// Time for a whole connection: sending the request, serving it and receiving the answer. Serving the swap of a
    /// scheduler may take a while. 60 s by default.
    pub whole: Duration,
    /// Time for ending requests under way when the server ends. 1 s by default.
    pub drain: Duration,
}

impl Default for HttpLimits {
    fn default() -> HttpLimits {
        HttpLimits {
            connections: 32,
            head: Duration::from_secs(10),
            whole: Duration::from_secs(60),
            drain: Duration::from_secs(1),
        }
    }
}

/// Largest size of a request without its body, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// A socket that is served.
#[derive(Debug)]
struct Endpoint {
    /// Removes the socket's file when dropped.
    bound: Bound,
    listener: Listener,
}

impl Endpoint {
    fn new(listen: Listen) -> Result<Endpoint, BindError> {
        let bound = listen.bind_here()?;
        let listener = bound
            .listener()
            .map_err(|error| BindError::Io { listen, error })?;
        Ok(Endpoint { bound, listener })
    }

    /// Serves clients until `ended`.
    async fn serve(self, app: Router, limits: HttpLimits, ended: watch::Receiver<bool>) {
        let mut connections = JoinSet::new();
        let mut end = pin!(over(ended.clone()));
        loop {
            let full = connections.len() >= limits.connections;
            tokio::select! {
                () = &mut end => break,
                accepted = listen::accept(std::slice::from_ref(&self.listener)), if !full => match accepted {
                    Ok(stream) => {
                        connections.spawn(talk(stream, app.clone(), limits, ended.clone()));
                    }
                    Err(error) => {
                        tracing::warn!("cannot accept a connection: {error}");
                        tokio::time::sleep(ACCEPT_AGAIN).await;
                    }
                },
                Some(result) = connections.join_next() => note(result),
            }
        }
        // The socket closes here, so no more clients connect.
        drop(self);
        let all_end = async {
            while let Some(result) = connections.join_next().await {
                note(result);
            }
        };
        // Connections that take longer are cut off when the set is dropped.
        let _ = tokio::time::timeout(limits.drain, all_end).await;
    }
}

/// Result of a connection, with the reason if it failed.
type Talked = Result<(), String>;

fn note(result: Result<Talked, tokio::task::JoinError>) {
    match result {
        Ok(Ok(())) => {}
        // Clients that leave early cause this.
        Ok(Err(problem)) => tracing::debug!("an HTTP client: {problem}"),
        Err(error) => tracing::error!("HTTP: a bug: {error}"),
    }
}

async fn talk(
    stream: Stream,
    app: Router,
    limits: HttpLimits,
    ended: watch::Receiver<bool>,
) -> Talked {
    let app = app.layer(axum::Extension(Peer::of(&stream)));
    let io: Pin<Box<dyn Connection>> = match stream {
        Stream::Unix(stream) => Box::pin(stream),
        Stream::Tcp(stream) => Box::pin(stream),
    };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(false)
        .header_read_timeout(limits.head)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(io), TowerToHyperService::new(app));
    let mut connection = pin!(connection);
    let talked = async {
        tokio::select! {
            result = connection.as_mut() => return result,
            () = over(ended) => connection.as_mut().graceful_shutdown(),
        }
        connection.await
    };
    match tokio::time::timeout(limits.whole, talked).await {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err(format!("not done within {} s", limits.whole.as_secs_f64())),
    }
}

trait Connection: AsyncRead + AsyncWrite + Send {}
impl<T: AsyncRead + AsyncWrite + Send> Connection for T {}

/// Sockets on which the server listens.
#[derive(Debug, Default)]
pub struct Sockets {
    metrics: Option<Endpoint>,
    control: Option<Endpoint>,
    limits: HttpLimits,
}

impl Sockets {
    /// Listens at a loopback address for watching clients, and at a unix socket for controlling clients. Must be called
    /// in the runtime that serves them.
    ///
    /// # Errors
    ///
    /// If the kernel refuses, the address is no loopback address, or another server listens there.
    pub async fn bind(
        metrics: Option<Listen>,
        control: Option<Listen>,
    ) -> Result<Sockets, BindError> {
        Ok(Sockets {
            metrics: metrics.map(Endpoint::new).transpose()?,
            control: control.map(Endpoint::new).transpose()?,
            limits: HttpLimits::default(),
        })
    }

    /// Changes the limits.
    #[cfg(test)]
    pub fn with_limits(self, limits: HttpLimits) -> Sockets {
        let connections = limits.connections.max(1);
        let limits = HttpLimits {
            connections,
            ..limits
        };
        Sockets { limits, ..self }
    }

    /// Address of the metrics. If port 0 was asked for, the address has the port that the kernel chose.
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics.as_ref()?.bound.listen().tcp()
    }

    /// Socket for controlling clients.
    pub fn control(&self) -> Option<&Listen> {
        Some(self.control.as_ref()?.bound.listen())
    }

    /// Serves clients until `ended` is true or its sender is dropped. Then ends requests under way within
    /// [`HttpLimits::drain`].
    pub async fn serve(self, site: Arc<Site>, ended: watch::Receiver<bool>) {
        let Sockets {
            metrics,
            control,
            limits,
        } = self;
        let serve = async |place: Option<Endpoint>, app: Router<Arc<Site>>| {
            if let Some(place) = place {
                let app = app.with_state(Arc::clone(&site));
                place.serve(app, limits, ended.clone()).await;
            }
        };
        let controlling = controlling(&site);
        tokio::join!(serve(metrics, watching()), serve(control, controlling));
    }
}

impl Sockets {
    /// Serves `app` instead of a site at the socket for controlling clients, until `ended`.
    pub async fn serve_control(self, app: Router, ended: watch::Receiver<bool>) {
        if let Some(place) = self.control {
            place.serve(app, self.limits, ended).await;
        }
    }
}

async fn over(mut ended: watch::Receiver<bool>) {
    // An error means that the sender is dropped, which ends the server as well.
    let _ = ended.wait_for(|ended| *ended).await;
}
