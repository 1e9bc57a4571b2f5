//! Accepts clients, and holds what all connections share.

use super::budget::Budget;
use super::handshake::Offer;
use super::inbox::Inbox;
use super::negotiation::negotiate;
use super::session::{Session, SessionError, Share, Terms};
use crate::disk::Export;
use crate::listen::{self, ACCEPT_AGAIN, Bound, Listen, Stream};
use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::task::JoinSet;

/// What clients may ask of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time, 1 or more; further ones are closed at once. 128 by default.
    pub connections: usize,
    /// Requests of one connection that are not answered, 1 or more; with more its socket is not
    /// read. 256 by default.
    pub requests: usize,
    /// Bytes of their data; a single request may have more. 64 MiB by default.
    pub bytes: usize,
    /// Bytes of all connections together; with more, sockets are not read. A single request may have more if there is no
    /// other. 256 MiB by default.
    pub max_bytes: usize,
    /// For the whole of a handshake. 10 s by default.
    pub handshake: Duration,
    /// For taking some of the replies that wait, so much that the kernel has room for more, or for
    /// sending some of the data of a write that has begun: whoever does nothing of that for so long
    /// holds memory for nothing. A client that waits for replies, or asks nothing, may do so for ever.
    /// 60 s by default.
    pub stalled: Duration,
    /// For answering what was read when the server ends. 10 s by default.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 128,
            requests: 256,
            bytes: 64 << 20,
            max_bytes: 256 << 20,
            handshake: Duration::from_secs(10),
            stalled: Duration::from_secs(60),
            drain: Duration::from_secs(10),
        }
    }
}

/// Why a server cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A socket cannot be had.
    #[error(transparent)]
    Listen(#[from] listen::BindError),
    /// Two exports have one name.
    #[error("two exports have the name \"{0}\"")]
    SameName(String),
    /// A name of an export is longer than the protocol allows.
    #[error("the name of an export has {0} bytes, of at most 4096")]
    NameTooLong(usize),
}

/// Counts of a server, for metrics.
#[derive(Debug, Default)]
pub struct Counts {
    connected: AtomicU64,
    connections: AtomicU64,
    turned_away: AtomicU64,
    failed: AtomicU64,
}

impl Counts {
    /// Connections now.
    pub fn connected(&self) -> u64 {
        self.connected.load(Ordering::Acquire)
    }

    /// Connections up to now, with those turned away.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Connections that were one too many.
    pub fn turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }

    /// Connections that ended with an error.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}

/// What all connections share.
#[derive(Debug)]
struct Common {
    exports: Vec<Export>,
    offers: Arc<[Offer]>,
    limits: Limits,
    counts: Arc<Counts>,
    /// Bytes of data of requests that are not answered.
    budget: Arc<Budget>,
    /// Of connections that may have to be told to end.
    inboxes: Mutex<Vec<Weak<Inbox>>>,
}

/// A server of several exports on several sockets.
#[derive(Debug)]
pub struct Server {
    bound: Vec<Bound>,
    common: Arc<Common>,
}

impl Server {
    /// Takes the sockets; clients can connect from now on and wait for [`Server::run`].
    ///
    /// A unix socket whose server is gone is replaced, one that is answered is not. It is removed
    /// when the server is dropped.
    ///
    /// # Errors
    ///
    /// If a socket cannot be had, or names of exports are not clear.
    pub fn bind(
        listen: &[Listen],
        exports: Vec<Export>,
        limits: Limits,
    ) -> Result<Server, SetupError> {
        let mut names = BTreeSet::new();
        for export in &exports {
            if export.name.len() > super::wire::STRING_BYTES_MAX {
                return Err(SetupError::NameTooLong(export.name.len()));
            }
            if !names.insert(&export.name) {
                return Err(SetupError::SameName(export.name.clone()));
            }
        }
        let bound = listen
            .iter()
            .map(Listen::bind)
            .collect::<Result<_, listen::BindError>>()?;
        let offers = exports.iter().map(Offer::from).collect();
        Ok(Server {
            bound,
            common: Arc::new(Common {
                exports,
                offers,
                limits: Limits {
                    connections: limits.connections.max(1),
                    requests: limits.requests.max(1),
                    ..limits
                },
                counts: Arc::default(),
                budget: Arc::new(Budget::new(limits.max_bytes)),
                inboxes: Mutex::default(),
            }),
        })
    }

    /// Its sockets; the port of a TCP one that was left to the kernel is known here.
    pub fn listens(&self) -> impl Iterator<Item = &Listen> {
        self.bound.iter().map(Bound::listen)
    }

    /// Counts, which go on while it runs.
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.common.counts)
    }

    /// Serves clients until `shutdown`; then accepts no more, answers the requests that were read,
    /// and returns, within [`Limits::drain`].
    ///
    /// Wants a current-thread runtime of tokio with I/O and time: a second worker only costs.
    ///
    /// # Errors
    ///
    /// If the runtime refuses the sockets.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let Server { bound, common } = self;
        let mut tasks = JoinSet::new();
        let accepting = bound
            .iter()
            .map(Bound::listener)
            .collect::<io::Result<Vec<_>>>()?;
        let mut shutdown = pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                accepted = listen::accept(&accepting) => match accepted {
                    Ok(stream) => common.accepted(stream, &mut tasks),
                    Err(error) => {
                        tracing::warn!("cannot accept a connection: {error}");
                        tokio::time::sleep(ACCEPT_AGAIN).await;
                    }
                },
                Some(result) = tasks.join_next() => common.ended(result),
            }
        }
        // Nobody connects any more, and nobody waits to.
        drop(accepting);
        drop(bound);
        common.drain(tasks).await;
        Ok(())
    }
}

type Ended = Result<(), SessionError>;

impl Common {
    fn accepted(self: &Arc<Self>, stream: Stream, tasks: &mut JoinSet<Ended>) {
        self.counts.connections.fetch_add(1, Ordering::Relaxed);
        if tasks.len() >= self.limits.connections {
            self.counts.turned_away.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                "a connection was turned away: there are {} already",
                tasks.len()
            );
            return;
        }
        self.counts.connected.fetch_add(1, Ordering::Relaxed);
        let inbox = Arc::new(Inbox::new(self.limits.requests));
        {
            let mut inboxes = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
            inboxes.retain(|inbox| inbox.strong_count() > 0);
            inboxes.push(Arc::downgrade(&inbox));
        }
        tasks.spawn(Arc::clone(self).serve(stream, inbox));
    }

    /// The offers for a client that connects now. A disk that takes no writes since one failed is
    /// read-only to this client, and stays so for the whole connection.
    fn offers(&self) -> Arc<[Offer]> {
        if !self.exports.iter().any(|export| export.disk.has_failed()) {
            return Arc::clone(&self.offers);
        }
        let offers = self.offers.iter().zip(&self.exports);
        let offers = offers.map(|(offer, export)| Offer {
            read_only: offer.read_only || export.disk.has_failed(),
            ..offer.clone()
        });
        offers.collect()
    }

    async fn serve(self: Arc<Self>, stream: Stream, inbox: Arc<Inbox>) -> Ended {
        let offers = self.offers();
        let negotiation = negotiate(&stream, &offers, &inbox);
        let agreed = match tokio::time::timeout(self.limits.handshake, negotiation).await {
            Ok(result) => result?,
            Err(_) => return Err(SessionError::HandshakeTimeout(self.limits.handshake)),
        };
        let Some((choice, rest)) = agreed else {
            return Ok(());
        };
        let terms = Terms {
            export: self.exports[choice.export].clone(),
            offer: offers[choice.export].clone(),
            choice,
            share: Share {
                requests: self.limits.requests,
                bytes: self.limits.bytes,
                budget: Arc::clone(&self.budget),
                stalled: self.limits.stalled,
            },
            inbox,
        };
        tracing::debug!(
            export = terms.export.name,
            ?choice,
            "a client has connected"
        );
        Session::new(stream, terms, &rest).run().await
    }

    fn ended(&self, result: Result<Ended, tokio::task::JoinError>) {
        if has_failed(result) {
            self.counts.failed.fetch_add(1, Ordering::Relaxed);
        }
        // Last, so that nobody who sees it gone misses how it ended.
        self.counts.connected.fetch_sub(1, Ordering::Release);
    }

    async fn drain(&self, mut tasks: JoinSet<Ended>) {
        let inboxes =
            std::mem::take(&mut *self.inboxes.lock().unwrap_or_else(PoisonError::into_inner));
        for inbox in inboxes.iter().filter_map(Weak::upgrade) {
            inbox.drain();
        }
        let all_end = async {
            while let Some(result) = tasks.join_next().await {
                self.ended(result);
            }
        };
        if tokio::time::timeout(self.limits.drain, all_end)
            .await
            .is_err()
        {
            tasks.abort_all();
            while let Some(result) = tasks.join_next().await {
                self.ended(result);
            }
        }
    }
}

/// Returns true if a connection ended badly, which is said.
fn has_failed(result: Result<Ended, tokio::task::JoinError>) -> bool {
    let error = match result {
        Ok(Ok(())) => return false,
        Ok(Err(SessionError::Io(error))) => {
            // Clients that are killed do that.
            tracing::info!("a client has gone: {error}");
            return true;
        }
        Ok(Err(error)) => error.to_string(),
        Err(error) if error.is_cancelled() => "it took too long to end".to_owned(),
        Err(error) => format!("a bug: {error}"),
    };
    tracing::warn!("a connection was closed: {error}");
    true
}

impl From<&Export> for Offer {
    fn from(export: &Export) -> Offer {
        let geometry = export.disk.geometry();
        Offer {
            name: export.name.clone(),
            description: format!("disk {}", export.disk.name()),
            addresses: export.addresses,
            read_only: export.read_only || geometry.read_only,
            discards: geometry.discards,
        }
    }
}
