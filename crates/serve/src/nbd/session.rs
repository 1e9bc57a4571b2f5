//! A connection with one client after the handshake: requests and replies.
//!
//! This module reads requests, `disk` submits them, and `replies` answers them.
//!
//! One task does everything. A round takes completions from the disk, writes replies, reads
//! requests and hands them to the disk, until none of these makes progress. Then it waits for the
//! socket, the disk, or the order to end. The limits bound memory: requests beyond them stay in the
//! socket until the client has taken its replies.

mod disk;
mod replies;

use super::budget::Budget;
use super::check::{Action, Durable, check};
use super::handshake::{Choice, HandshakeError, Offer};
use super::inbox::Inbox;
use super::patience::Patience;
use super::stream::Moved;
use super::wire::{BadMagic, Error, Head, REQUEST_BYTES, Request};
use crate::buffer::Buffer;
use crate::disk::Export;
use crate::listen::Stream;
use crate::request::{Cut, Data, Submission};
use headtime_sched::{Flags, Op};
use headtime_units::{Extent, Lba, Sectors, Time};
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
    /// Requests that are not answered.
    pub(super) requests: usize,
    /// Bytes of their data; one request may have more.
    pub(super) bytes: usize,
    /// What all connections hold.
    pub(super) budget: Arc<Budget>,
    /// How long nothing may come of what the client has to do.
    pub(super) stalled: Duration,
}

/// The agreement with a client, and the client's limits.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) export: Export,
    /// What it was told of the export.
    pub(super) offer: Offer,
    pub(super) choice: Choice,
    pub(super) share: Share,
    pub(super) inbox: Arc<Inbox>,
}

/// Bytes that are read at a time, but for the data of large writes: many requests, and not much to
/// copy.
const INPUT_BYTES: usize = 16 << 10;

/// Rounds after which other tasks get their turn.
const ROUNDS_AT_A_TIME: u32 = 16;

/// Why a connection ended, if not because the client or the server wanted so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The client and the server did not come to terms.
    #[error("handshake: {0}")]
    Handshake(#[from] HandshakeError),
    /// There was something else in place of a request.
    #[error(transparent)]
    Magic(#[from] BadMagic),
    /// The client took too long over the handshake.
    #[error("handshake: not done within {0:?}")]
    HandshakeTimeout(Duration),
    /// The client left replies lying.
    #[error("replies waited for {0:?} and the client took nothing of them")]
    TakesNothing(Duration),
    /// The client began a write and did not go on.
    #[error("the data of a write were waited for {0:?} and nothing of them came")]
    SendsNothing(Duration),
    /// The client asked for something absurd.
    #[error("{0}")]
    Absurd(&'static str),
    /// There were more completions than requests.
    #[error("a bug in the server: a request was completed twice, so another has no answer")]
    Overflown,
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
}

/// A request that is not answered.
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

/// What is being read.
enum Receiving {
    Header,
    Payload {
        request: Request,
        extent: Extent,
        cut: Cut,
        durable: Durable,
        buffer: Buffer,
        /// End of the data that have come, in the buffer, and end of all data.
        filled: usize,
        end: usize,
    },
    /// Data of a write that is refused.
    Skip {
        cookie: u64,
        error: Error,
        text: &'static str,
        left: u32,
    },
}

/// The extent of a flush.
const NOWHERE: (Extent, Cut) = (Extent::new(Lba::ZERO, Sectors::ZERO), Cut::NONE);

/// A reply that is to be written.
struct Reply {
    head: Head,
    body: Option<Buffer>,
    /// The bytes of the body that are sent.
    sent: Range<usize>,
    /// Bytes that count as held until it is written.
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

/// Requests and replies.
pub(super) struct Session {
    stream: Stream,
    terms: Terms,
    /// What was read and not looked at lies from `start` to `end`.
    input: Box<[u8]>,
    start: usize,
    end: usize,
    receiving: Receiving,
    /// Whether more is to be read.
    reading: bool,
    /// A request has been read for which there is no room yet.
    held: bool,
    slots: Vec<Unanswered>,
    free: Vec<u32>,
    /// Requests whose replies are not written, and the bytes of their data.
    unanswered: usize,
    bytes: usize,
    /// The disk's queue is full: waits for room.
    room: Option<Room>,
    /// What comes after that.
    backlog: VecDeque<Submission>,
    /// Queries of what is allocated; the first is being answered.
    queries: VecDeque<u32>,
    output: VecDeque<Reply>,
    /// Bytes of the first reply that are written.
    written: usize,
    /// With a client that has replies to take, and with one that has data to send.
    takes: Patience,
    sends: Patience,
    now: Time,
}

impl Session {
    /// After a handshake that left `rest` unread.
    pub(super) fn new(stream: Stream, terms: Terms, rest: &[u8]) -> Session {
        let mut input = vec![0; INPUT_BYTES.max(rest.len())].into_boxed_slice();
        input[..rest.len()].copy_from_slice(rest);
        Session {
            now: terms.export.disk.now(),
            takes: Patience::new(terms.share.stalled),
            sends: Patience::new(terms.share.stalled),
            stream,
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
            room: None,
            backlog: VecDeque::new(),
            queries: VecDeque::new(),
            output: VecDeque::new(),
            written: 0,
        }
    }

    /// Serves the client until it leaves, or the server wants to end and everything that was read
    /// is answered.
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
            // What was read before, and had no room then.
            self.parse()?;
            if self.write()? {
                self.takes.rest();
                progress = true;
            }
            if self.read()? {
                self.sends.rest();
                progress = true;
            }
            if !self.reading && !self.held && self.unanswered == self.incomplete() {
                return Ok(());
            }
            if !progress {
                poll_fn(|cx| self.wait(cx)).await?;
            }
            rounds += 1;
            if rounds % ROUNDS_AT_A_TIME == 0 {
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
            return Poll::Ready(Ok(()));
        }
        if self.wants_input()
            && let Poll::Ready(result) = self.stream.poll_read_ready(cx)
        {
            return Poll::Ready(Ok(result?));
        }
        if !self.output.is_empty()
            && let Poll::Ready(result) = self.stream.poll_write_ready(cx)
        {
            return Poll::Ready(Ok(result?));
        }
        self.wait_for_client(cx)
    }

    /// Waits until the client has taken too long for something that only it can do.
    fn wait_for_client(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SessionError>> {
        let stalled = self.terms.share.stalled;
        if self.output.is_empty() {
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

    // Requests

    /// Requests whose data have not arrived.
    fn incomplete(&self) -> usize {
        usize::from(!matches!(self.receiving, Receiving::Header))
    }

    fn wants_input(&self) -> bool {
        self.reading && !self.held && self.room.is_none()
    }

    /// Reads once and looks at what came; whether anything did.
    fn read(&mut self) -> Result<bool, SessionError> {
        if !self.wants_input() {
            return Ok(false);
        }
        self.input.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let free = IoSliceMut::new(&mut self.input[self.end..]);
        // Data of writes go where the disk takes them from, without a detour.
        let (moved, direct) = match &mut self.receiving {
            Receiving::Payload {
                buffer,
                filled,
                end,
                ..
            } => {
                let rest = &mut buffer[*filled..*end];
                let direct = rest.len();
                let moved = self.stream.read(&mut [IoSliceMut::new(rest), free])?;
                if let Moved::Bytes(moved) = moved {
                    *filled += moved.min(direct);
                }
                (moved, direct)
            }
            _ => (self.stream.read(&mut [free])?, 0),
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

    /// Takes the requests that are complete and for which there is room.
    fn parse(&mut self) -> Result<(), SessionError> {
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

    /// Takes bytes from both shares, or from none.
    fn hold(&mut self, bytes: usize) -> bool {
        let Terms { share, inbox, .. } = &self.terms;
        let fits = self.bytes == 0 || self.bytes + bytes <= share.bytes;
        let holds = fits && share.budget.take(bytes, inbox);
        if holds {
            self.bytes += bytes;
        }
        holds
    }

    fn let_go(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.terms.share.budget.give_back(bytes);
    }

    /// Begins with the request whose header is next; `false` if there is no room for it.
    fn begin(&mut self, request: &Request) -> Result<bool, SessionError> {
        let action = check(request, &self.terms.offer, &self.terms.choice);
        let bytes = match action {
            Action::Read(_) | Action::Write(..) => request.len as usize,
            _ => 0,
        };
        let full = self.unanswered >= self.terms.share.requests || self.room.is_some();
        if full || !self.hold(bytes) {
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
            Action::Flush => self.submit_new(request, Op::Flush, NOWHERE, Flags::NONE, Data::None),
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

    /// The data of a write are complete.
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
        let Terms { share, inbox, .. } = &self.terms;
        share.budget.leave(inbox);
        inbox.leave(self.bytes, &share.budget);
    }
}

fn flags(durable: Durable) -> Flags {
    match durable {
        Durable(true) => Flags::FUA,
        Durable(false) => Flags::NONE,
    }
}
