//! The sockets of HTTP, and what their clients may ask of the server.
//!
//! A connection serves one request, so no client can hold it for ever.

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

/// What clients may ask of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Connections at a time, 1 or more, of those who watch, and as many of those who control:
    /// neither keep the others out. Further ones wait until one ends. 32 by default.
    pub connections: usize,
    /// For sending what is asked, without a body. 10 s by default.
    pub head: Duration,
    /// For the whole of a connection: asking, doing what is asked, which for a scheduler may take a
    /// while, and taking the answer. 60 s by default.
    pub whole: Duration,
    /// For ending what is under way when the server ends. 1 s by default.
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

/// Bytes of a request without its body, at most.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// A socket, and how it is served.
#[derive(Debug)]
struct Endpoint {
    /// Removes its file in the end.
    bound: Bound,
    listener: Listener,
}

impl Endpoint {
    fn new(listen: Listen) -> Result<Endpoint, BindError> {
        let bound = listen.bind()?;
        let listener = bound
            .listener()
            .map_err(|error| BindError::Io { listen, error })?;
        Ok(Endpoint { bound, listener })
    }

    /// Serves until `ended`.
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
        // Nobody connects any more.
        drop(self);
        let all_end = async {
            while let Some(result) = connections.join_next().await {
                note(result);
            }
        };
        // Whoever takes longer is cut off, with the set.
        let _ = tokio::time::timeout(limits.drain, all_end).await;
    }
}

/// What becomes of a connection: why it failed, if it did.
type Talked = Result<(), String>;

fn note(result: Result<Talked, tokio::task::JoinError>) {
    match result {
        Ok(Ok(())) => {}
        // Clients that leave do that.
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
        Err(_) => Err(format!("not done within {:?}", limits.whole)),
    }
}

trait Connection: AsyncRead + AsyncWrite + Send {}
impl<T: AsyncRead + AsyncWrite + Send> Connection for T {}

/// Sockets that are listened at.
#[derive(Debug, Default)]
pub struct Sockets {
    metrics: Option<Endpoint>,
    control: Option<Endpoint>,
    limits: HttpLimits,
}

impl Sockets {
    /// Listens at a loopback address for those who watch, and at a unix socket for those who control.
    /// Wants the runtime that is to serve them.
    ///
    /// # Errors
    ///
    /// If the kernel refuses, the address is no loopback one, or another server listens there.
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

    /// With other limits than the usual ones.
    #[cfg(test)]
    pub fn with_limits(self, limits: HttpLimits) -> Sockets {
        let connections = limits.connections.max(1);
        let limits = HttpLimits {
            connections,
            ..limits
        };
        Sockets { limits, ..self }
    }

    /// The address of the metrics; with the port that the kernel chose if port 0 was asked for.
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics.as_ref()?.bound.listen().tcp()
    }

    /// Where who controls connects.
    pub fn control(&self) -> Option<&Listen> {
        Some(self.control.as_ref()?.bound.listen())
    }

    /// Serves until `ended` is true or its sender is gone. Then ends requests under way within
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
    /// Serves something else than a site at the socket for those who control, until `ended`.
    pub async fn serve_control(self, app: Router, ended: watch::Receiver<bool>) {
        if let Some(place) = self.control {
            place.serve(app, self.limits, ended).await;
        }
    }
}

async fn over(mut ended: watch::Receiver<bool>) {
    // An error is that nobody is left to end it.
    let _ = ended.wait_for(|ended| *ended).await;
}
