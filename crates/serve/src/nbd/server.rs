//! Server that accepts clients, with the state that all connections share.

use super::budget::{Budget, Budgets};
use super::channel::Channel;
use super::handshake::Offer;
use super::inbox::Inbox;
use super::negotiation::negotiate;
use super::session::{Session, SessionError, Share, Terms};
use super::tls::Tls;
use crate::disk::{Export, ExportLimits};
use crate::listen::{self, ACCEPT_AGAIN, Bound, Listen, Stream};
use crate::request::Completer as _;
use headtime_units::Nanos;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::task::JoinSet;

/// Limits of a server for its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most connections at a time of each kind of socket, 1 or more. A further one is closed at once, unless another is idle. 128 by
    /// default.
    pub connections: usize,
    /// Time without an unanswered request after which a connection may be closed for another one. 10 s by default.
    pub idle: Duration,
    /// Most unanswered requests of one connection, 1 or more. Beyond them, the server does not read the socket. 256 by default.
    pub requests: usize,
    /// Most bytes of one connection's unanswered requests; a single request may have more. 64 MiB by default.
    pub bytes: usize,
    /// Most bytes of all connections together. Beyond them, the server does not read the sockets. A single request may have more if there
    /// is no other, and so may a request of 1 MiB of an export that has no other. 256 MiB by default.
    pub max_bytes: usize,
    /// Longest time of a handshake. 10 s by default.
    pub handshake: Duration,
    /// Longest time without progress of a client that has replies to take, or a started write whose data are missing, since the client
    /// keeps memory taken. A client that only waits for replies, or requests nothing, may do so for ever. 60 s by default.
    pub stalled: Duration,
    /// Longest gap between a client's requests in which the server watches the socket and does not sleep. A client whose last gap was
    /// longer does not make it watch. 50 us by default, and 0 on a machine with one processor.
    pub watch: Duration,
    /// Longest time for answering all requests that were read when the server ends. 10 s by default.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Limits {
            connections: 128,
            idle: Duration::from_secs(10),
            requests: 256,
            bytes: 64 << 20,
            max_bytes: 256 << 20,
            handshake: Duration::from_secs(10),
            stalled: Duration::from_secs(60),
            watch: Duration::from_micros(if processors > 1 { 50 } else { 0 }),
            drain: Duration::from_secs(10),
        }
    }
}

/// Protection of a server's TCP sockets. The default has no TLS, and lets no other machine connect.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// Certificates. If present, each client at an address needs TLS.
    pub tls: Option<Tls>,
    /// True if other machines may connect without certificates.
    pub is_trusted: bool,
}

impl Network {
    /// True if other machines may reach a socket: clients have certificates, or the network is trusted.
    fn admits_others(&self) -> bool {
        self.is_trusted || self.tls.as_ref().is_some_and(Tls::has_authority)
    }
}

/// Reason why a server cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A socket cannot be opened.
    #[error(transparent)]
    Listen(#[from] listen::BindError),
    /// Other machines reach a socket whose clients need no certificate.
    #[error("{0}: other machines reach this address; allowed is {REMOTE}")]
    Beyond(Listen),
    /// Two exports have one name.
    #[error("two exports have the name \"{0}\"")]
    SameName(String),
    /// A name of an export is longer than the protocol allows.
    #[error("the name of an export has {0} bytes, of at most 4096")]
    NameTooLong(usize),
}

/// Advice on addresses that other machines reach.
pub const REMOTE: &str =
    "a loopback address, client certificates (listen.tls_ca), or listen.trusted_network = true";

/// Counts of a server, for metrics.
#[derive(Debug, Default)]
pub struct Counts {
    connected: AtomicU64,
    connections: AtomicU64,
    turned_away: AtomicU64,
    failed: AtomicU64,
    /// Clients with certificates. Each connection holds its client.
    certified: Mutex<Vec<Weak<CertifiedClient>>>,
}

/// Client with a certificate.
#[derive(Debug)]
struct CertifiedClient {
    export: String,
    /// Name in the certificate.
    name: String,
}

impl Counts {
    /// Number of present connections.
    pub fn connected(&self) -> u64 {
        self.connected.load(Ordering::Acquire)
    }

    /// Number of all connections up to now, including rejected ones.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Number of connections that were rejected, since there were too many.
    pub fn turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }

    /// Number of connections that ended with an error.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Names in the certificates of an export's clients, each with the number of connections.
    pub fn certified(&self, export: &str) -> BTreeMap<String, u64> {
        let mut names = BTreeMap::new();
        let clients = self
            .certified
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for client in clients.iter().filter_map(Weak::upgrade) {
            if client.export == export {
                *names.entry(client.name.clone()).or_default() += 1;
            }
        }
        names
    }

    /// Counts a client as connected as long as the result lives.
    fn certify(&self, export: String, name: String) -> Arc<CertifiedClient> {
        let client = Arc::new(CertifiedClient { export, name });
        let mut clients = self
            .certified
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        clients.retain(|client| client.strong_count() > 0);
        clients.push(Arc::downgrade(&client));
        client
    }
}

/// Kind of socket: a file or an address. Each has connections of its own.
type SocketKind = std::mem::Discriminant<Stream>;

/// State that all connections share.
#[derive(Debug)]
struct Common {
    exports: Vec<Export>,
    offers: Arc<[Offer]>,
    limits: Limits,
    tls: Option<Tls>,
    counts: Arc<Counts>,
    /// Unanswered requests and their bytes, by export.
    budgets: Vec<Budgets>,
    /// Inboxes of the connections by kind of socket, for the order to end.
    inboxes: Mutex<Vec<(SocketKind, Weak<Inbox>)>>,
}

/// Server of several exports on several sockets.
#[derive(Debug)]
pub struct Server {
    bound: Vec<Bound>,
    common: Arc<Common>,
}

impl Server {
    /// As [`Server::bind_to`], for clients of this machine alone and without TLS.
    ///
    /// # Errors
    ///
    /// As [`Server::bind_to`].
    pub fn bind(
        listen: &[Listen],
        exports: Vec<Export>,
        limits: Limits,
    ) -> Result<Server, SetupError> {
        Server::bind_to(Network::default(), listen, exports, limits)
    }

    /// Opens the sockets. From now on clients can connect, and wait until [`Server::run`] accepts them.
    ///
    /// An existing unix socket is replaced only if no server answers on it. The socket is removed when the server is dropped.
    ///
    /// # Errors
    ///
    /// If a socket cannot be opened or must not be reached, two exports have one name, or a name is too long.
    pub fn bind_to(
        network: Network,
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
        let beyond = listen.iter().find(|listen| listen.is_beyond());
        if let Some(beyond) = beyond.filter(|_| !network.admits_others()) {
            return Err(SetupError::Beyond(beyond.clone()));
        }
        let bound = listen
            .iter()
            .map(Listen::bind)
            .collect::<Result<_, listen::BindError>>()?;
        let offers = exports.iter().map(Offer::from).collect();
        let common = Arc::new(Budget::new(limits.max_bytes));
        let budgets = exports.iter().map(|export| {
            let Some(rate) = export.disk.rate_of(export.number) else {
                return Budgets::new(export.limits, &common);
            };
            // The common budget would be full of requests that wait for their rate.
            let second = (rate.0 as usize).max(1 << 20).min(limits.max_bytes);
            let bytes = export.limits.bytes.min(second);
            let limits = ExportLimits {
                bytes,
                ..export.limits
            };
            Budgets::new(limits, &Arc::new(Budget::new(second)))
        });
        let budgets = budgets.collect();
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
                tls: network.tls,
                counts: Arc::default(),
                budgets,
                inboxes: Mutex::default(),
            }),
        })
    }

    /// Sockets of the server. If the kernel chose a TCP port, the port is known here.
    pub fn listens(&self) -> impl Iterator<Item = &Listen> {
        self.bound.iter().map(Bound::listen)
    }

    /// Counts, which the running server updates.
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.common.counts)
    }

    /// Serves clients until `shutdown`. Then accepts no more clients, answers the requests that were read, and returns, within
    /// [`Limits::drain`].
    ///
    /// Needs a current-thread runtime of tokio with I/O and time. A second worker would only add cost.
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
        // From now on no client can connect, and none waits to be accepted.
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
        let kind = std::mem::discriminant(&stream);
        if !self.has_room(kind) {
            self.counts.turned_away.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                "a connection was turned away: there are {} already, none of them idle",
                self.limits.connections
            );
            return;
        }
        self.counts.connected.fetch_add(1, Ordering::Relaxed);
        let inbox = Arc::new(Inbox::new(self.limits.requests));
        let mut inboxes = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        inboxes.push((kind, Arc::downgrade(&inbox)));
        drop(inboxes);
        tasks.spawn(Arc::clone(self).serve(stream, inbox));
    }

    /// True if another connection of this kind of socket may come. At the limit the connection that was idle for longest is
    /// closed, so that idle clients lock nobody out.
    fn has_room(&self, kind: SocketKind) -> bool {
        let mut inboxes = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        inboxes.retain(|(_, inbox)| inbox.strong_count() > 0);
        let of_kind = inboxes.iter().filter(|(of, _)| *of == kind);
        let present: Vec<_> = of_kind
            .filter_map(|(_, inbox)| inbox.upgrade())
            .filter(|inbox| !inbox.is_draining() && !inbox.is_gone())
            .collect();
        if present.len() < self.limits.connections {
            return true;
        }
        let idle = present
            .iter()
            .filter_map(|inbox| Some((inbox.idle_since()?, inbox)));
        let longest = idle.min_by_key(|(since, _)| *since);
        let Some(((since, inbox), export)) = longest.zip(self.exports.first()) else {
            return false;
        };
        // All disks of a server have one clock.
        let idle = export.disk.now().saturating_since(since);
        let idle = Duration::from_nanos(idle.as_nanos());
        if idle < self.limits.idle {
            return false;
        }
        tracing::warn!(
            "a connection that was idle for {} s was closed for another one: there are {}",
            idle.as_secs(),
            present.len()
        );
        inbox.drain();
        true
    }

    /// Offers for a client that connects now. If a write to a disk has failed and the disk takes no more writes, its export is read-only
    /// for the whole connection.
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
        let tls = match &stream {
            Stream::Tcp(_) => self.tls.as_ref(),
            Stream::Unix(_) => None,
        };
        let mut channel = Channel::new(stream);
        let negotiation = negotiate(&mut channel, &offers, tls, &inbox);
        let agreed = match tokio::time::timeout(self.limits.handshake, negotiation).await {
            Ok(result) => result?,
            Err(_) => return Err(SessionError::HandshakeTimeout(self.limits.handshake)),
        };
        let Some((choice, rest)) = agreed else {
            return Ok(());
        };
        let export = &self.exports[choice.export];
        let client = export
            .disk
            .client_of(export.number, channel.socket().peer());
        let terms = Terms {
            client,
            export: self.exports[choice.export].clone(),
            offer: offers[choice.export].clone(),
            choice,
            share: Share {
                requests: self.limits.requests,
                bytes: self.limits.bytes,
                budgets: self.budgets[choice.export].clone(),
                stalled: self.limits.stalled,
                watch: Nanos::from_nanos(self.limits.watch.as_nanos() as u64),
            },
            inbox,
        };
        let certificate = channel.client_name();
        tracing::debug!(
            export = terms.export.name,
            ?choice,
            certificate,
            "a client has connected"
        );
        let export = &terms.export.name;
        let _connected = certificate.map(|name| self.counts.certify(export.clone(), name));
        Session::new(channel, terms, &rest).run().await
    }

    fn ended(&self, result: Result<Ended, tokio::task::JoinError>) {
        if has_failed(result) {
            self.counts.failed.fetch_add(1, Ordering::Relaxed);
        }
        // The count of connections changes last. A reader that sees the connection gone also sees its failure.
        self.counts.connected.fetch_sub(1, Ordering::Release);
    }

    async fn drain(&self, mut tasks: JoinSet<Ended>) {
        let inboxes =
            std::mem::take(&mut *self.inboxes.lock().unwrap_or_else(PoisonError::into_inner));
        for inbox in inboxes.iter().filter_map(|(_, inbox)| inbox.upgrade()) {
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

/// Returns true if a connection ended with an error, and logs the error.
fn has_failed(result: Result<Ended, tokio::task::JoinError>) -> bool {
    let error = match result {
        Ok(Ok(())) => return false,
        Ok(Err(SessionError::Io(error))) => {
            // A client that is killed breaks the connection.
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
