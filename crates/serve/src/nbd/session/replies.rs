//! Makes and writes the replies.

use super::super::stream::Moved;
use super::super::wire::{Error, Head, Request, command};
use super::{Reply, Session, Unanswered};
use crate::request::{Data, Failure, Kind};
use std::io::{self, IoSlice};

/// Most replies that are written at a time.
const REPLIES_AT_A_TIME: usize = 64;

impl Session {
    /// Queues the reply to a request that is over.
    pub(super) fn answer(&mut self, slot: u32, result: Result<(), Failure>, data: Data) {
        let Unanswered { request, .. } = self.slots[slot as usize];
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
        let mut start = 0;
        let (head, body, held) = match (result, request.command) {
            (Err(failure), command::READ | command::WRITE) => {
                self.let_go(len as usize);
                (self.failed(&request, &failure), None, 0)
            }
            (Err(failure), _) => (self.failed(&request, &failure), None, 0),
            (Ok(()), command::READ) => {
                let head = match self.terms.choice.structured {
                    true => Head::data(cookie, request.offset, len),
                    false => Head::simple(cookie, None),
                };
                start = (request.offset % u64::from(self.terms.offer.addresses.sector_bytes()))
                    as usize;
                (head, buffer, len as usize)
            }
            (Ok(()), command::BLOCK_STATUS) => {
                let len = buffer.as_ref().map_or(0, |buffer| buffer.len());
                (Head::block_status(cookie, len as u32), buffer, 0)
            }
            // A simple reply is allowed even if replies come in chunks, and is shorter.
            (Ok(()), command) => {
                if command == command::WRITE {
                    self.let_go(len as usize);
                }
                (Head::simple(cookie, None), None, 0)
            }
        };
        let all = body.as_ref().map_or(0, |body| body.len());
        let end = if held > 0 { start + held } else { all };
        self.output.push_back(Reply {
            head,
            body,
            sent: start..end,
            held,
        });
    }

    fn failed(&self, request: &Request, failure: &Failure) -> Head {
        let error = match failure.kind {
            Kind::NoSpace => Error::NoSpc,
            Kind::ReadOnly => Error::Perm,
            Kind::ShuttingDown => Error::Shutdown,
            _ => Error::Io,
        };
        match self.terms.choice.structured {
            false => Head::simple(request.cookie, Some(error)),
            true => {
                let addresses = self.terms.offer.addresses;
                let sector = u64::from(addresses.sector_bytes());
                let start = addresses.on_disk(request.offset);
                let end = start + u64::from(request.len);
                // The bad sector may belong to another request that went to the disk with this one.
                let at = failure
                    .at
                    .map(|lba| lba.get() * sector)
                    .filter(|at| at + sector > start && *at < end)
                    .map(|at| request.offset + at.saturating_sub(start))
                    .filter(|_| request.command != command::WRITE_ZEROES);
                Head::error(request.cookie, error, at, &failure.to_string())
            }
        }
    }

    /// Replies with an error to a request that the disk never saw.
    pub(super) fn refuse(&mut self, cookie: u64, error: Error, text: &'static str) {
        let head = match self.terms.choice.structured {
            true => Head::error(cookie, error, None, text),
            false => Head::simple(cookie, Some(error)),
        };
        self.output.push_back(Reply {
            head,
            body: None,
            sent: 0..0,
            held: 0,
        });
    }

    /// Returns true if the replies wait for more. While the disk has requests of the client, no reply waits: the task would
    /// take the processor's time from the disk.
    pub(super) fn replies_may_wait(&mut self) -> bool {
        if self.output.is_empty() {
            return false;
        }
        let is_all = self.written == 0 && self.unanswered == self.output.len();
        let (channel, replies) = (&self.channel, self.output.iter().map(Reply::len));
        let now = self.terms.export.disk.now();
        self.pace
            .may_wait(now, replies, || is_all && channel.holds_unread())
    }

    /// Writes replies. Returns true if any bytes were written.
    pub(super) fn write(&mut self) -> io::Result<bool> {
        let mut any = self.channel.flush()?;
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
            let Moved::Bytes(written) = self.channel.write(&slices[..count])? else {
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
            self.terms.share.budgets.give_back(1, 0);
            self.let_go(held);
        }
    }
}
