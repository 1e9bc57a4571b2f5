//! A connection with one client after the handshake: requests and replies.
//!
//! This module reads requests, `disk` submits them, and `replies` answers them.
//!
//! One task serves a connection, in rounds. A round takes completions from the disk, writes replies, reads requests and hands the requests
//! to the disk. If a round makes no progress, the task waits for the socket, the disk, or the order to end. The limits bound memory:
//! requests beyond the limits stay in the socket until the client has taken its replies.

mod disk;
mod replies;

use super::budget::{Budgets, Taking};
use super::channel::Channel;
use super::check::{Action, Durable, check};
use super::handshake::{Choice, HandshakeError, Offer};
use super::inbox::Inbox;
use super::pace::Pace;
use super::patience::Patience;
use super::stream::Moved;
use super::wire::{BadMagic, Error, Head, REQUEST_BYTES, Request};
use crate::buffer::Buffer;
use crate::disk::{Batch, Export};
use crate::request::{Cut, Data, Submission};
use headtime_sched::{Flags, Op};
use headtime_units::{Extent, Nanos, Time};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// The limits of a connection.
#[derive(Clone, Debug)]
pub(super) struct Share {
    /// Most unanswered requests.
    pub(super) requests: usize,
    /// Most bytes of the requests' data; one request alone may have more.
    pub(super) bytes: usize,
    /// Requests and bytes of the export, and bytes of all exports.
    pub(super) budgets: Budgets,
    /// Longest time without progress of a client that has to do something.
    pub(super) stalled: Duration,
    /// Longest gap between a client's requests in which the task watches the socket.
    pub(super) watch: Nanos,
}

/// The agreement with a client, and the client's limits.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) export: Export,
    /// Offer that the client got of the export.
    pub(super) offer: Offer,
    pub(super) choice: Choice,
    pub(super) share: Share,
    pub(super) inbox: Arc<Inbox>,
    /// Client that the requests are counted for, see [`Disk::client_of`](crate::disk::Disk).
    pub(super) client: u32,
}

/// Bytes that are read at a time, except for the data of large writes. The number is large enough for many requests, and small enough to
/// copy quickly.
const INPUT_BYTES: usize = 16 << 10;

/// Rounds after which other tasks get their turn.
const ROUNDS_AT_A_TIME: u32 = 16;

/// Reason why a connection ended against the wish of client and server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The handshake failed.
    #[error("handshake: {0}")]
    Handshake(#[from] HandshakeError),
    /// A message was not a request.
    #[error(transparent)]
    Magic(#[from] BadMagic),
    /// The client took too long for the handshake.
    #[error("handshake: not done within {0:?}")]
    HandshakeTimeout(Duration),
    /// TLS failed.
    #[error("TLS with {client}: {error}")]
    Tls {
        /// Address of the client.
        client: String,
        error: io::Error,
    },
    /// The client did not take its replies.
    #[error("replies waited for {0:?} and the client took nothing of them")]
    TakesNothing(Duration),
    /// The client began a write and did not send the data.
    #[error("the data of a write were waited for {0:?} and nothing of them came")]
    SendsNothing(Duration),
    /// The client sent a request beyond all limits.
    #[error("{0}")]
    Absurd(&'static str),
    /// There were more completions than requests.
    #[error("a bug in the server: a request was completed twice, so another has no answer")]
    Overflown,
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
}

/// Request that is not answered.
#[derive(Clone, Copy, Debug)]
struct Unanswered {
    request: Request,
    then: Then,
}

/// The next step of a request after the present one.
#[derive(Clone, Copy, Debug)]
enum Then {
    Reply,
    Flush,
}

/// Part of a message that is being read.
enum Receiving {
    Header,
    Payload {
        request: Request,
        extent: Extent,
        cut: Cut,
        durable: Durable,
        buffer: Buffer,
        /// End of the data that have arrived, and end of all data, in the buffer.
        filled: usize,
        end: usize,
    },
    /// Data of a refused write, which are skipped.
    Skip {
        cookie: u64,
        error: Error,
        text: &'static str,
        left: u32,
    },
}

/// Reply that is to be written.
struct Reply {
    head: Head,
    body: Option<Buffer>,
    /// Bytes of the body to send.
    sent: Range<usize>,
    /// Bytes that stay taken until the reply is written.
    held: usize,
}

impl Reply {
    fn parts(&self) -> [&[u8]; 2] {
        let body = self.body.as_deref().unwrap_or(&[]);
        [self.head.as_bytes(), &body[self.sent.clone()]]
    }

    fn len(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }
}

type Room = Pin<Box<dyn Future<Output = Result<(), Submission>> + Send>>;

/// Connection with one client.
///
/// Invariant: `start` is at most `end`, which is at most the length of `input`.
pub(super) struct Session {
    channel: Channel,
    terms: Terms,
    /// Buffer of the socket's bytes. The bytes from `start` to `end` are not parsed yet.
    input: Box<[u8]>,
    start: usize,
    end: usize,
    receiving: Receiving,
    /// True while more requests may be read.
    reading: bool,
    /// True if a request was read for which there is no room yet.
    held: bool,
    slots: Vec<Unanswered>,
    free: Vec<u32>,
    /// Number of requests whose replies are not written, and the bytes of their data.
    unanswered: usize,
    bytes: usize,
    /// Amounts that were taken for a request that waits for more.
    taking: Taking,
    /// Future that waits for room in the disk's full queue.
    room: Option<Room>,
    /// Requests behind the request that waits for room.
    backlog: VecDeque<Submission>,
    /// Requests that the disk has, and that [`Disk::run`](crate::disk::Disk) has to follow.
    batch: Batch,
    /// Queries about allocation. The first is being answered.
    queries: VecDeque<u32>,
    output: VecDeque<Reply>,
    /// Bytes of the first reply that are written.
    written: usize,
    /// Limits on the time that the client takes for replies, and for sending data.
    takes: Patience,
    sends: Patience,
    now: Time,
    pace: Pace,
}

impl Session {
    /// Makes the session after a handshake. `rest` has the bytes that follow the handshake.
    pub(super) fn new(channel: Channel, terms: Terms, rest: &[u8]) -> Session {
        let mut input = vec![0; INPUT_BYTES.max(rest.len())].into_boxed_slice();
        input[..rest.len()].copy_from_slice(rest);
        Session {
            now: terms.export.disk.now(),
            pace: Pace::new(terms.share.watch),
            takes: Patience::new(terms.share.stalled),
            sends: Patience::new(terms.share.stalled),
            channel,
            terms,
            input,
            start: 0,
            end: rest.len(),
            receiving: Receiving::Header,
            reading: true,
            held: false,
            slots: Vec::new(),
            free: Vec::new(),
            unanswered: 0,
            bytes: 0,
            taking: Taking::default(),
            room: None,
            backlog: VecDeque::new(),
            batch: Batch::default(),
            queries: VecDeque::new(),
            output: VecDeque::new(),
            written: 0,
        }
    }

    /// Serves the client until the client leaves, or the server has to end and all requests that were read are answered.
    pub(super) async fn run(mut self) -> Result<(), SessionError> {
        let mut rounds = 0;
        loop {
            self.terms.inbox.awake();
            if self.terms.inbox.is_draining() {
                self.reading = false;
            }
            if self.terms.inbox.is_overflown() {
                return Err(SessionError::Overflown);
            }
            let mut progress = self.take_completions();
            // Requests from earlier reads may have room now.
            progress |= self.parse()?;
            let waits = self.replies_may_wait();
            if !waits && self.write()? {
                self.takes.rest();
                progress = true;
            }
            if self.read()? {
                self.sends.rest();
                progress = true;
            }
            if !self.reading
                && !self.held
                && self.unanswered == self.incomplete()
                && !self.holds_output()
            {
                return Ok(());
            }
            let mut watches = waits;
            if progress {
                self.pace.asked(self.now);
            } else if self.unanswered == 0 {
                let now = self.terms.export.disk.now();
                watches = self.pace.is_quick(now);
                if !watches {
                    self.terms.inbox.idles(now);
                }
            }
            if !progress && !watches {
                poll_fn(|cx| self.wait(cx)).await?;
            }
            rounds += 1;
            if watches || rounds % ROUNDS_AT_A_TIME == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SessionError>> {
        let heard = !self.reading;
        if !self.terms.inbox.sleep(cx.waker(), heard) {
            return Poll::Ready(Ok(()));
        }
        if let Some(room) = &mut self.room
            && let Poll::Ready(result) = room.as_mut().poll(cx)
        {
            self.room = None;
            if let Err(submission) = result {
                self.stopped(&submission);
            }
            self.submit_backlog();
            self.run_batch();
            return Poll::Ready(Ok(()));
        }
        if self.wants_input()
            && let Poll::Ready(result) = self.channel.poll_read_ready(cx)
        {
            return Poll::Ready(Ok(result?));
        }
        if self.holds_output()
            && let Poll::Ready(result) = self.channel.poll_write_ready(cx)
        {
            return Poll::Ready(Ok(result?));
        }
        self.wait_for_client(cx)
    }

    /// Fails if the client takes too long for a step that only the client can do.
    fn wait_for_client(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SessionError>> {
        let stalled = self.terms.share.stalled;
        if !self.holds_output() {
            self.takes.rest();
        } else if self.takes.poll(cx).is_ready() {
            return Poll::Ready(Err(SessionError::TakesNothing(stalled)));
        }
        if self.incomplete() == 0 || !self.wants_input() {
            self.sends.rest();
        } else if self.sends.poll(cx).is_ready() {
            return Poll::Ready(Err(SessionError::SendsNothing(stalled)));
        }
        Poll::Pending
    }

    /// True if the client has to take bytes.
    fn holds_output(&self) -> bool {
        !self.output.is_empty() || self.channel.holds_output()
    }

    // Requests

    /// Number of requests whose data have not arrived completely.
    fn incomplete(&self) -> usize {
        usize::from(!matches!(self.receiving, Receiving::Header))
    }

    fn wants_input(&self) -> bool {
        self.reading && !self.held && self.room.is_none()
    }

    /// Reads once and parses the bytes. Returns true if the socket had any, or has ended.
    fn read(&mut self) -> Result<bool, SessionError> {
        if !self.wants_input() {
            return Ok(false);
        }
        self.input.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let free = IoSliceMut::new(&mut self.input[self.end..]);
        // Data of writes are read directly into the disk's buffer.
        let (moved, direct) = match &mut self.receiving {
            Receiving::Payload {
                buffer,
                filled,
                end,
                ..
            } => {
                let rest = &mut buffer[*filled..*end];
                let direct = rest.len();
                let moved = self.channel.read(&mut [IoSliceMut::new(rest), free])?;
                if let Moved::Bytes(moved) = moved {
                    *filled += moved.min(direct);
                }
                (moved, direct)
            }
            _ => (self.channel.read(&mut [free])?, 0),
        };
        match moved {
            Moved::Nothing => return Ok(false),
            Moved::Bytes(0) => self.reading = false,
            Moved::Bytes(moved) => self.end += moved.saturating_sub(direct),
        }
        self.now = self.terms.export.disk.now();
        self.parse()?;
        Ok(true)
    }

    /// Parses the input, and begins complete requests as long as there is room. Then runs the requests. Returns true if there
    /// may be more that have room.
    fn parse(&mut self) -> Result<bool, SessionError> {
        let result = self.parse_input();
        let is_full = self.batch.is_full();
        self.run_batch();
        result.map(|()| is_full)
    }

    fn run_batch(&mut self) {
        self.terms.export.disk.run(std::mem::take(&mut self.batch));
    }

    fn parse_input(&mut self) -> Result<(), SessionError> {
        self.held = false;
        loop {
            let input = &self.input[self.start..self.end];
            match &mut self.receiving {
                Receiving::Header => {
                    let Some(header) = input.first_chunk::<REQUEST_BYTES>() else {
                        return Ok(());
                    };
                    let request = Request::parse(header)?;
                    if !self.begin(&request)? {
                        self.held = true;
                        return Ok(());
                    }
                }
                Receiving::Payload {
                    buffer,
                    filled,
                    end,
                    ..
                } => {
                    let more = input.len().min(*end - *filled);
                    buffer[*filled..*filled + more].copy_from_slice(&input[..more]);
                    *filled += more;
                    self.start += more;
                    if *filled < *end {
                        return Ok(());
                    }
                    self.write_received();
                }
                Receiving::Skip {
                    cookie,
                    error,
                    text,
                    left,
                } => {
                    let more = input.len().min(*left as usize);
                    *left -= more as u32;
                    self.start += more;
                    if *left > 0 {
                        return Ok(());
                    }
                    let (cookie, error, text) = (*cookie, *error, *text);
                    self.receiving = Receiving::Header;
                    self.refuse(cookie, error, text);
                }
            }
        }
    }

    /// Takes a request with its bytes from the connection's share and from the budgets. Returns false if there is no
    /// room.
    fn hold(&mut self, bytes: usize) -> bool {
        let Terms { share, inbox, .. } = &self.terms;
        let fits = self.bytes == 0 || self.bytes + bytes <= share.bytes;
        let holds = fits && share.budgets.take(&mut self.taking, bytes, inbox);
        if holds {
            self.bytes += bytes;
        }
        holds
    }

    fn let_go(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.terms.share.budgets.give_back(0, bytes);
    }

    /// Begins the request whose header is next. Returns false if there is no room for the request.
    fn begin(&mut self, request: &Request) -> Result<bool, SessionError> {
        let action = check(request, &self.terms.offer, &self.terms.choice);
        let bytes = match action {
            Action::Read(_) | Action::Write(..) => request.len as usize,
            _ => 0,
        };
        let full = self.unanswered >= self.terms.share.requests
            || self.room.is_some()
            || self.batch.is_full();
        let ends = matches!(action, Action::Disconnect | Action::Drop(_));
        if full || !ends && !self.hold(bytes) {
            return Ok(false);
        }
        self.start += REQUEST_BYTES;
        match action {
            Action::Disconnect => {
                self.reading = false;
                self.start = self.end;
                return Ok(true);
            }
            Action::Drop(why) => return Err(SessionError::Absurd(why)),
            _ => self.unanswered += 1,
        }
        match action {
            Action::Read(extent) => {
                let data = Data::Buffer(self.buffer(extent));
                self.submit_new(request, Op::Read, (extent, Cut::NONE), Flags::NONE, data);
            }
            Action::Write(extent, cut, durable) => {
                let start = cut.head as usize;
                self.receiving = Receiving::Payload {
                    request: *request,
                    extent,
                    cut,
                    durable,
                    buffer: self.buffer(extent),
                    filled: start,
                    end: start + bytes,
                };
            }
            Action::Zeroes {
                extent,
                cut,
                may_punch,
                durable,
            } => {
                let data = Data::Zeroes { may_punch };
                self.submit_new(request, Op::Write, (extent, cut), flags(durable), data);
            }
            Action::Trim(extent, cut, durable) => {
                let then = if durable.0 { Then::Flush } else { Then::Reply };
                let slot = self.slot(request, then);
                self.submit(slot, Op::Discard, (extent, cut), Flags::NONE, Data::None);
            }
            // An export that takes no writes has nothing to flush.
            Action::Flush if self.terms.export.read_only => {
                let slot = self.slot(request, Then::Reply);
                self.answer(slot, Ok(()), Data::None);
            }
            Action::Flush => {
                let place = self.terms.offer.addresses.flush();
                self.submit_new(request, Op::Flush, place, Flags::NONE, Data::None);
            }
            Action::Status { .. } => {
                let slot = self.slot(request, Then::Reply);
                self.queries.push_back(slot);
                if self.queries.len() == 1 {
                    self.query(slot);
                }
            }
            Action::Refuse(refusal) if refusal.skip == 0 => {
                self.refuse(request.cookie, refusal.error, refusal.text);
            }
            Action::Refuse(refusal) => {
                self.receiving = Receiving::Skip {
                    cookie: request.cookie,
                    error: refusal.error,
                    text: refusal.text,
                    left: refusal.skip,
                };
            }
            Action::Disconnect | Action::Drop(_) => unreachable!("handled before"),
        }
        Ok(true)
    }

    /// Submits a write whose data are complete.
    fn write_received(&mut self) {
        let receiving = std::mem::replace(&mut self.receiving, Receiving::Header);
        let Receiving::Payload {
            request,
            extent,
            cut,
            durable,
            buffer,
            ..
        } = receiving
        else {
            unreachable!("data of a write were received");
        };
        let data = Data::Buffer(buffer);
        self.submit_new(&request, Op::Write, (extent, cut), flags(durable), data);
    }

    fn buffer(&self, extent: Extent) -> Buffer {
        let bytes = extent.len.bytes(self.terms.offer.addresses.sector_bytes());
        self.terms.export.disk.pool().take(bytes as usize)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.terms.export.disk.wake(self.batch);
        let Terms { share, inbox, .. } = &self.terms;
        share.budgets.leave(self.taking, inbox);
        inbox.leave(self.unanswered, self.bytes, &share.budgets);
    }
}

fn flags(durable: Durable) -> Flags {
    match durable {
        Durable(true) => Flags::FUA,
        Durable(false) => Flags::NONE,
    }
}
