//! A connection with one client: the handshake, then requests and replies.
//!
//! One task does it all. A round takes what the disk has completed, writes replies, reads requests
//! and hands them to the disk, until none of that gets any further; then it waits for the socket,
//! the disk, or the order to end. Memory is bounded by the limits: requests beyond them stay in the
//! socket, until the client has taken its replies.

use super::check::{Action, Durable, check};
use super::handshake::{Choice, Handshake, HandshakeError, Offer, Step};
use super::inbox::Inbox;
use super::patience::Patience;
use super::status;
use super::stream::Moved;
use super::wire::{self, BadMagic, Error, Head, REQUEST_BYTES, Request, command};
use crate::buffer::{BUFFER_BYTES_MAX, Buffer};
use crate::disk::{Export, Refused};
use crate::listen::Stream;
use crate::request::{Completer, Completion, Data, Failure, Kind, Submission};
use headtime_sched::{Flags, Op, Origin};
use headtime_units::{Extent, Lba, Sectors, Time};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice, IoSliceMut};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

/// What a connection may hold.
#[derive(Clone, Debug)]
pub(super) struct Share {
    /// Requests that are not answered.
    pub(super) requests: usize,
    /// Bytes of their data; one request may have more.
    pub(super) bytes: usize,
    /// The same for all connections; each may have one request more, so nobody has to wait for
    /// others, nor to be woken by them.
    pub(super) bytes_total: usize,
    /// What all connections hold.
    pub(super) held: Arc<AtomicUsize>,
    /// How long nothing may come of what the client has to do.
    pub(super) stalled: Duration,
}

/// Bytes that are read at a time, but for the data of large writes: many requests, and not much to
/// copy.
const INPUT_BYTES: usize = 16 << 10;

/// Replies that are written at a time.
const REPLIES_AT_A_TIME: usize = 64;

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
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
}

/// The handshake: what was agreed on, and what the client sent after it; `None` if it left, or the
/// server ends.
pub(super) async fn negotiate(
    stream: &Stream,
    offers: &Arc<[Offer]>,
    inbox: &Inbox,
) -> Result<Option<(Choice, Vec<u8>)>, SessionError> {
    let mut handshake = Handshake::new(Arc::clone(offers));
    let (mut input, mut output) = (Vec::new(), Handshake::GREETING.to_vec());
    let mut piece = [0; 4096];
    loop {
        write_all(stream, &output).await?;
        output.clear();
        let (taken, step) = handshake.advance(&input, &mut output)?;
        input.drain(..taken);
        match step {
            Step::Again => {}
            Step::Transmission(choice) => {
                write_all(stream, &output).await?;
                return Ok(Some((choice, input)));
            }
            Step::End => {
                // Who asked to end need not wait for the answer.
                let _ = write_all(stream, &output).await;
                return Ok(None);
            }
            Step::NeedMore => {
                poll_fn(|cx| match inbox.sleep(cx.waker(), false) {
                    true => stream.poll_read_ready(cx),
                    false => Poll::Ready(Ok(())),
                })
                .await?;
                if inbox.is_draining() {
                    return Ok(None);
                }
                match stream.read(&mut [IoSliceMut::new(&mut piece)])? {
                    Moved::Bytes(0) => return Ok(None),
                    Moved::Bytes(more) => input.extend_from_slice(&piece[..more]),
                    Moved::Nothing => {}
                }
            }
        }
    }
}

async fn write_all(stream: &Stream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(&[IoSlice::new(bytes)])? {
            Moved::Bytes(written) => bytes = &bytes[written..],
            Moved::Nothing => poll_fn(|cx| stream.poll_write_ready(cx)).await?,
        }
    }
    Ok(())
}

/// A request that is not answered.
#[derive(Clone, Copy, Debug)]
struct Slot {
    request: Request,
    then: Then,
}

/// What is to be done for a request after what is being done now.
#[derive(Clone, Copy, Debug)]
enum Then {
    Reply,
    Flush,
    /// More zeroes.
    Zeroes {
        extent: Extent,
        may_punch: bool,
        flags: Flags,
    },
}

/// What is being read.
enum Receiving {
    Header,
    Payload {
        request: Request,
        extent: Extent,
        durable: Durable,
        buffer: Buffer,
        filled: usize,
    },
    /// Data of a write that is refused.
    Skip {
        cookie: u64,
        error: Error,
        text: &'static str,
        left: u32,
    },
}

/// A reply that is to be written.
struct Reply {
    head: Head,
    body: Option<Buffer>,
    /// Bytes that count as held until it is written.
    held: usize,
}

impl Reply {
    fn parts(&self) -> [&[u8]; 2] {
        [self.head.as_bytes(), self.body.as_deref().unwrap_or(&[])]
    }

    fn len(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }
}

type Room = Pin<Box<dyn Future<Output = Result<(), Submission>> + Send>>;

/// Requests and replies.
pub(super) struct Session {
    stream: Stream,
    export: Export,
    offer: Offer,
    choice: Choice,
    share: Share,
    inbox: Arc<Inbox>,
    /// What was read and not looked at lies from `start` to `end`.
    input: Box<[u8]>,
    start: usize,
    end: usize,
    receiving: Receiving,
    /// Whether more is to be read.
    reading: bool,
    /// A request has been read for which there is no room yet.
    held: bool,
    slots: Vec<Slot>,
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
    pub(super) fn new(
        stream: Stream,
        export: Export,
        offer: Offer,
        choice: Choice,
        share: Share,
        inbox: Arc<Inbox>,
        rest: &[u8],
    ) -> Session {
        let mut input = vec![0; INPUT_BYTES.max(rest.len())].into_boxed_slice();
        input[..rest.len()].copy_from_slice(rest);
        Session {
            now: export.disk.now(),
            takes: Patience::new(share.stalled),
            sends: Patience::new(share.stalled),
            stream,
            export,
            offer,
            choice,
            share,
            inbox,
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
            self.inbox.awake();
            if self.inbox.is_draining() {
                self.reading = false;
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
        if !self.inbox.sleep(cx.waker(), heard) {
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

    /// Waits until the client has not done for too long what nobody else can do.
    fn wait_for_client(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SessionError>> {
        let stalled = self.share.stalled;
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
            Receiving::Payload { buffer, filled, .. } => {
                let rest = &mut buffer[*filled..];
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
        self.now = self.export.disk.now();
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
                Receiving::Payload { buffer, filled, .. } => {
                    let more = input.len().min(buffer.len() - *filled);
                    buffer[*filled..*filled + more].copy_from_slice(&input[..more]);
                    *filled += more;
                    self.start += more;
                    if *filled < buffer.len() {
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

    fn fits(&self, bytes: usize) -> bool {
        let all = self.share.held.load(Ordering::Relaxed);
        self.bytes == 0
            || self.bytes + bytes <= self.share.bytes && all + bytes <= self.share.bytes_total
    }

    fn hold(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.share.held.fetch_add(bytes, Ordering::Relaxed);
    }

    fn let_go(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.share.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Begins with the request whose header is next; `false` if there is no room for it.
    fn begin(&mut self, request: &Request) -> Result<bool, SessionError> {
        let action = check(request, &self.offer, &self.choice);
        let bytes = match action {
            Action::Read(_) | Action::Write(..) => request.len as usize,
            _ => 0,
        };
        if self.unanswered >= self.share.requests || self.room.is_some() || !self.fits(bytes) {
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
        self.hold(bytes);
        match action {
            Action::Read(extent) => {
                let buffer = self.export.disk.pool().take(bytes);
                self.submit_new(request, Op::Read, extent, Flags::NONE, Data::Buffer(buffer));
            }
            Action::Write(extent, durable) => {
                self.receiving = Receiving::Payload {
                    request: *request,
                    extent,
                    durable,
                    buffer: self.export.disk.pool().take(bytes),
                    filled: 0,
                };
            }
            Action::Zeroes {
                extent,
                may_punch,
                durable,
            } => {
                let slot = self.slot(request, Then::Reply);
                self.zeroes(slot, extent, may_punch, flags(durable));
            }
            Action::Trim(extent, durable) => {
                let then = if durable.0 { Then::Flush } else { Then::Reply };
                let slot = self.slot(request, then);
                self.submit(slot, Op::Discard, extent, Flags::NONE, Data::None);
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
            durable,
            buffer,
            ..
        } = receiving
        else {
            unreachable!("data of a write were received");
        };
        let data = Data::Buffer(buffer);
        self.submit_new(&request, Op::Write, extent, flags(durable), data);
    }

    // The disk

    fn slot(&mut self, request: &Request, then: Then) -> u32 {
        let slot = Slot {
            request: *request,
            then,
        };
        match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        }
    }

    fn submit_new(&mut self, request: &Request, op: Op, extent: Extent, flags: Flags, data: Data) {
        let slot = self.slot(request, Then::Reply);
        self.submit(slot, op, extent, flags, data);
    }

    fn submit(&mut self, slot: u32, op: Op, extent: Extent, flags: Flags, data: Data) {
        let submission = Submission {
            cookie: slot.into(),
            op,
            extent,
            flags,
            origin: Origin {
                export: self.export.number,
                ..Origin::default()
            },
            class: self.export.class,
            arrived: self.now,
            data,
            to: Arc::clone(&self.inbox) as _,
        };
        match self.room {
            Some(_) => self.backlog.push_back(submission),
            None => self.hand_over(submission),
        }
    }

    fn hand_over(&mut self, submission: Submission) {
        match self.export.disk.submit(submission) {
            Ok(()) => {}
            Err(Refused::Full(submission)) => {
                let disk = self.export.disk.clone();
                let room = async move { disk.submit_when_room(submission).await };
                self.room = Some(Box::pin(room));
            }
            Err(Refused::Stopped(submission)) => self.stopped(&submission),
        }
    }

    fn submit_backlog(&mut self) {
        while self.room.is_none()
            && let Some(submission) = self.backlog.pop_front()
        {
            self.hand_over(submission);
        }
    }

    fn stopped(&mut self, submission: &Submission) {
        self.answer(
            submission.cookie as u32,
            Err(Failure::new(Kind::ShuttingDown)),
            Data::None,
        );
    }

    /// Writes as many zeroes as go at a time.
    fn zeroes(&mut self, slot: u32, extent: Extent, may_punch: bool, flags: Flags) {
        let most = Sectors::new(BUFFER_BYTES_MAX as u64 / u64::from(self.offer.sector_bytes));
        let now = Extent::new(extent.start, extent.len.min(most));
        let rest = Extent::new(now.end(), extent.len.saturating_sub(now.len));
        self.slots[slot as usize].then = match rest.is_empty() {
            true => Then::Reply,
            false => Then::Zeroes {
                extent: rest,
                may_punch,
                flags,
            },
        };
        self.submit(slot, Op::Write, now, flags, Data::Zeroes { may_punch });
    }

    /// Finds out what is allocated, elsewhere if that may take time.
    fn query(&mut self, slot: u32) {
        let request = self.slots[slot as usize].request;
        let query = status::Query {
            offset: request.offset,
            len: request.len,
            one: request.flags & wire::flag::REQ_ONE != 0,
            sector_bytes: self.offer.sector_bytes,
        };
        let pool = self.export.disk.pool().clone();
        let cookie = slot.into();
        match self.export.disk.allocation() {
            None => {
                self.inbox.complete(Completion {
                    cookie,
                    result: Ok(()),
                    data: Data::Buffer(query.all_data(&pool)),
                });
            }
            Some(allocation) => {
                let (allocation, inbox) = (Arc::clone(allocation), Arc::clone(&self.inbox));
                tokio::task::spawn_blocking(move || {
                    let (result, data) = match query.answer(&*allocation, &pool) {
                        Ok(buffer) => (Ok(()), Data::Buffer(buffer)),
                        Err(failure) => (Err(failure), Data::None),
                    };
                    inbox.complete(Completion {
                        cookie,
                        result,
                        data,
                    });
                    inbox.wake();
                });
            }
        }
    }

    /// Takes what the disk has completed; whether there was anything.
    fn take_completions(&mut self) -> bool {
        let mut any = false;
        while let Some(Completion {
            cookie,
            result,
            data,
        }) = self.inbox.pop()
        {
            any = true;
            let slot = cookie as u32;
            let then = match result {
                Ok(()) => self.slots[slot as usize].then,
                Err(_) => Then::Reply,
            };
            match then {
                Then::Reply => self.answer(slot, result, data),
                Then::Flush => {
                    self.slots[slot as usize].then = Then::Reply;
                    self.submit(slot, Op::Flush, NOWHERE, Flags::NONE, Data::None);
                }
                Then::Zeroes {
                    extent,
                    may_punch,
                    flags,
                } => self.zeroes(slot, extent, may_punch, flags),
            }
        }
        any
    }

    // Replies

    /// The request is over.
    fn answer(&mut self, slot: u32, result: Result<(), Failure>, data: Data) {
        let Slot { request, .. } = self.slots[slot as usize];
        self.free.push(slot);
        if request.command == command::BLOCK_STATUS {
            self.queries.pop_front();
            if let Some(next) = self.queries.front() {
                self.query(*next);
            }
        }
        let cookie = request.cookie;
        let buffer = data.into_buffer();
        let len = request.len;
        let (head, body, held) = match (result, request.command) {
            (Err(failure), command::READ | command::WRITE) => {
                self.let_go(len as usize);
                (self.failed(&request, &failure), None, 0)
            }
            (Err(failure), _) => (self.failed(&request, &failure), None, 0),
            (Ok(()), command::READ) => {
                let head = match self.choice.structured {
                    true => Head::data(cookie, request.offset, len),
                    false => Head::simple(cookie, None),
                };
                (head, buffer, len as usize)
            }
            (Ok(()), command::BLOCK_STATUS) => {
                let len = buffer.as_ref().map_or(0, |buffer| buffer.len());
                (Head::block_status(cookie, len as u32), buffer, 0)
            }
            // Allowed also where replies come in chunks, and shorter.
            (Ok(()), command) => {
                if command == command::WRITE {
                    self.let_go(len as usize);
                }
                (Head::simple(cookie, None), None, 0)
            }
        };
        self.output.push_back(Reply { head, body, held });
    }

    fn failed(&self, request: &Request, failure: &Failure) -> Head {
        let error = match failure.kind {
            Kind::NoSpace => Error::NoSpc,
            Kind::ReadOnly => Error::Perm,
            Kind::ShuttingDown => Error::Shutdown,
            _ => Error::Io,
        };
        match self.choice.structured {
            false => Head::simple(request.cookie, Some(error)),
            true => {
                let sector = u64::from(self.offer.sector_bytes);
                let end = request.offset + u64::from(request.len);
                // The sector may be of another request that went to the disk with this one.
                let at = failure
                    .at
                    .map(|lba| lba.get() * sector)
                    .filter(|at| (request.offset..end).contains(at))
                    .filter(|_| request.command != command::WRITE_ZEROES);
                Head::error(request.cookie, error, at, &failure.to_string())
            }
        }
    }

    /// Replies with an error to a request that the disk never saw.
    fn refuse(&mut self, cookie: u64, error: Error, text: &'static str) {
        let head = match self.choice.structured {
            true => Head::error(cookie, error, None, text),
            false => Head::simple(cookie, Some(error)),
        };
        self.output.push_back(Reply {
            head,
            body: None,
            held: 0,
        });
    }

    /// Writes replies; whether any of it went out.
    fn write(&mut self) -> io::Result<bool> {
        let mut any = false;
        while !self.output.is_empty() {
            let mut slices = [IoSlice::new(&[]); 2 * REPLIES_AT_A_TIME];
            let (mut count, mut skip, mut len) = (0, self.written, 0);
            for part in self
                .output
                .iter()
                .take(REPLIES_AT_A_TIME)
                .flat_map(Reply::parts)
            {
                let before = skip.min(part.len());
                skip -= before;
                if before < part.len() {
                    slices[count] = IoSlice::new(&part[before..]);
                    count += 1;
                    len += part.len() - before;
                }
            }
            let Moved::Bytes(written) = self.stream.write(&slices[..count])? else {
                break;
            };
            any = true;
            self.note_written(written);
            if written < len {
                break;
            }
        }
        Ok(any)
    }

    fn note_written(&mut self, written: usize) {
        self.written += written;
        while let Some(reply) = self.output.front()
            && self.written >= reply.len()
        {
            self.written -= reply.len();
            self.unanswered -= 1;
            let held = reply.held;
            self.output.pop_front();
            self.let_go(held);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.inbox.leave(self.bytes, &self.share.held);
    }
}

/// The extent of a flush.
const NOWHERE: Extent = Extent::new(Lba::ZERO, Sectors::ZERO);

fn flags(durable: Durable) -> Flags {
    match durable {
        Durable(true) => Flags::FUA,
        Durable(false) => Flags::NONE,
    }
}
