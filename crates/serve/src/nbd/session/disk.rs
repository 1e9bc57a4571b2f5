//! Submits a connection's requests to its disk, and takes its completions.

use super::super::status;
use super::super::wire::{Request, flag};
use super::{Session, Then, Unanswered};
use crate::disk::Refused;
use crate::request::{Completer, Completion, Cut, Data, Failure, Kind, Submission};
use headtime_sched::{Flags, Op, Origin};
use headtime_units::Extent;
use std::sync::Arc;

impl Session {
    pub(super) fn slot(&mut self, request: &Request, then: Then) -> u32 {
        let slot = Unanswered {
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

    pub(super) fn submit_new(
        &mut self,
        request: &Request,
        op: Op,
        span: (Extent, Cut),
        flags: Flags,
        data: Data,
    ) {
        let slot = self.slot(request, Then::Reply);
        self.submit(slot, op, span, flags, data);
    }

    pub(super) fn submit(
        &mut self,
        slot: u32,
        op: Op,
        (extent, cut): (Extent, Cut),
        flags: Flags,
        data: Data,
    ) {
        let submission = Submission {
            cookie: slot.into(),
            op,
            extent,
            cut,
            flags,
            origin: Origin {
                process: self.terms.client,
                program: self.terms.export.program,
                export: self.terms.export.number,
            },
            class: self.terms.export.class,
            arrived: self.now,
            data,
            to: Arc::clone(&self.terms.inbox) as _,
        };
        match self.room {
            Some(_) => self.backlog.push_back(submission),
            None => self.hand_over(submission),
        }
    }

    fn hand_over(&mut self, submission: Submission) {
        let disk = &self.terms.export.disk;
        match disk.submit_in(&mut self.batch, submission) {
            Ok(()) => {}
            Err(Refused::Full(submission)) => {
                let disk = self.terms.export.disk.clone();
                let room = async move { disk.submit_when_room(submission).await };
                self.room = Some(Box::pin(room));
            }
            Err(Refused::Stopped(submission)) => self.stopped(&submission),
        }
    }

    pub(super) fn submit_backlog(&mut self) {
        while self.room.is_none()
            && let Some(submission) = self.backlog.pop_front()
        {
            self.hand_over(submission);
        }
    }

    pub(super) fn stopped(&mut self, submission: &Submission) {
        self.answer(
            submission.cookie as u32,
            Err(Failure::new(Kind::ShuttingDown)),
            Data::None,
        );
    }

    /// Answers a query about allocation, on another thread if that may take time.
    pub(super) fn query(&mut self, slot: u32) {
        let request = self.slots[slot as usize].request;
        let query = status::Query {
            offset: self.terms.offer.addresses.on_disk(request.offset),
            len: request.len,
            one: request.flags & flag::REQ_ONE != 0,
        };
        let pool = self.terms.export.disk.pool().clone();
        let cookie = slot.into();
        match self.terms.export.disk.allocation() {
            None => {
                self.terms.inbox.complete(Completion {
                    cookie,
                    result: Ok(()),
                    data: Data::Buffer(query.all_data(&pool)),
                });
            }
            Some(allocation) => {
                let (allocation, inbox) = (Arc::clone(allocation), Arc::clone(&self.terms.inbox));
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

    /// Takes the disk's completions. Returns true if there were any.
    pub(super) fn take_completions(&mut self) -> bool {
        let mut any = false;
        while let Some(Completion {
            cookie,
            result,
            data,
        }) = self.terms.inbox.pop()
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
                    let place = self.terms.offer.addresses.flush();
                    self.submit(slot, Op::Flush, place, Flags::NONE, Data::None);
                }
            }
        }
        any
    }
}
