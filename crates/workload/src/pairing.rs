//! Pairs the events of a block layer that belong to one request.
//!
//! Linux's block layer reports one request several times (linux: include/trace/events/block.h):
//! - *queue*: a process hands the request in,
//! - *insert*: a scheduler takes the request,
//! - *issue*: the request goes to the driver, perhaps merged with others,
//! - *complete*: the request is finished.
//!
//! No event carries a number that names its request. [`Pairing`] matches events by device, operation
//! and sectors.
//!
//! A completion belongs to the oldest request that begins at the completion's first sector. A longer
//! completion also belongs to the requests that follow on the disk, since they were merged. A shorter
//! completion belongs to a part of a request, since the request was split. A split request is complete
//! with its last part.
//!
//! Flushes differ. A process submits an empty write with a flush ahead. For any number of pending
//! flushes the block layer issues one request. After that request's completion each submitted flush
//! gets an empty completion. So a flush completes on one of two [`Level`]s.
//!
//! Some writes also complete twice: writes with a flush before them, and writes with a flush after them
//! in place of forced unit access. The first completion is the drive's, when the sectors are written.
//! The second is the process's: an empty completion at the first sector. The second one counts.

use crate::{ArrivalEvent, TraceRequest};
use headtime_sched::{Flags, Op};
use std::collections::{BTreeMap, VecDeque};

/// Event in the life of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockAction {
    /// A process handed the request to the block layer.
    Queue,
    /// A scheduler took the request. Gives the process if no queue event does.
    Insert,
    /// The request was handed to the driver.
    Issue,
    /// The driver gave the request back. The request will be issued again.
    Requeue,
    /// The request is complete, in full or in part.
    Complete(Level),
}

impl BlockAction {
    /// The action that a letter of blkparse stands for.
    #[inline]
    pub(crate) fn of_letter(letter: &[u8]) -> Option<BlockAction> {
        Some(match letter {
            b"Q" => BlockAction::Queue,
            b"I" => BlockAction::Insert,
            b"D" => BlockAction::Issue,
            b"R" => BlockAction::Requeue,
            b"C" => BlockAction::Complete(Level::Both),
            _ => return None,
        })
    }
}

/// Requests that a completion ends: queued ones, issued ones or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Completes an issued request and the queued requests in it.
    Both,
    /// Completes queued requests alone:
    /// - a flush that a process asked for,
    /// - the empty second completion of a write with flushes around it,
    /// - any request to a driver that works without requests (device mapper, md).
    Queued,
    /// Completes an issued request alone: the flush that the block layer made.
    Issued,
}

/// An event of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEvent {
    /// Kind of the event.
    pub action: BlockAction,
    /// Request of the event. `arrival` is the time of the event and always set. `completion` is never
    /// set. `process` is the process that ran at the event: at a completion it may be any process.
    pub request: TraceRequest,
}

/// Finds the requests behind block events. Events must come in order of time.
///
/// The requests are either the queue events or the issue events. A scheduler works on the queue events.
/// A request from an issue event takes its process from its queue or insert event, if there is one. The
/// process of the issue event itself is often a thread of the kernel.
#[derive(Debug, Default)]
pub struct Pairing {
    wanted: Option<ArrivalEvent>,
    queued: Requests,
    issued: Requests,
    /// Processes of requests that a scheduler holds.
    inserted: BTreeMap<Key, u32>,
}

/// Requests that a [`Pairing`] has found in block events, and the numbers of unmatched completions and of unfinished
/// requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paired {
    /// Kind of event that the requests are.
    pub arrival_event: ArrivalEvent,
    /// The requests in order of their events, each with the caller's number. Unfinished requests have
    /// no completion.
    pub requests: Vec<(u64, TraceRequest)>,
    /// Completions that match no request, or that precede their request.
    pub unpaired: u64,
    /// Requests that did not complete.
    pub unfinished: u64,
}

impl Pairing {
    /// Creates a pairing without events. `wanted` chooses the events that are the requests. `None`
    /// takes queue events if there are any, else issue events.
    pub fn new(wanted: Option<ArrivalEvent>) -> Pairing {
        Pairing {
            wanted,
            ..Pairing::default()
        }
    }

    /// Number of requests held in memory so far, from queue events and issue events together.
    pub fn held(&self) -> usize {
        self.queued.list.len() + self.issued.list.len()
    }

    /// Takes the next event. `number` is chosen by the caller, for example a line number.
    ///
    /// # Panics
    ///
    /// If the event has no time.
    pub fn event(&mut self, number: u64, event: &BlockEvent) {
        let request = event.request;
        assert!(request.arrival.is_some(), "an event happens at a time");
        match event.action {
            BlockAction::Queue => self.queued.begin(number, request),
            BlockAction::Insert => {
                if let Some(process) = request.process {
                    self.inserted.insert(key(&request), process);
                }
            }
            BlockAction::Issue if self.wanted == Some(ArrivalEvent::Queue) => {}
            BlockAction::Issue => {
                let inserted = self.inserted.remove(&key(&request));
                let process = self.queued.process_of(&request).or(inserted);
                self.issued.begin(
                    number,
                    TraceRequest {
                        process: process.or(request.process),
                        ..request
                    },
                );
            }
            BlockAction::Requeue => self.issued.put_back(&request),
            BlockAction::Complete(level) => {
                if level != Level::Issued {
                    self.queued.complete(&request);
                }
                if level != Level::Queued {
                    self.issued.complete(&request);
                }
            }
        }
    }

    /// The requests.
    pub fn finish(self) -> Paired {
        let arrival_event = self.wanted.unwrap_or(if self.queued.list.is_empty() {
            ArrivalEvent::Issue
        } else {
            ArrivalEvent::Queue
        });
        let requests = match arrival_event {
            ArrivalEvent::Queue => self.queued,
            ArrivalEvent::Issue => self.issued,
        };
        let unfinished = |request: &&Begun| request.request.completion.is_none();
        Paired {
            arrival_event,
            unpaired: requests.unpaired,
            unfinished: requests.list.iter().filter(unfinished).count() as u64,
            requests: requests
                .list
                .into_iter()
                .map(|begun| (begun.number, begun.request))
                .collect(),
        }
    }
}

/// Requests from one kind of event, with their completions.
#[derive(Debug, Default)]
struct Requests {
    /// All requests, in the order of their events.
    list: Vec<Begun>,
    /// Positions in `list` of the incomplete requests, oldest first.
    open: BTreeMap<Key, VecDeque<usize>>,
    /// Requests that the driver gave back and that will be issued again.
    requeued: BTreeMap<Key, u32>,
    /// Completed writes with a flush before or forced unit access. Each may complete once more.
    forced: BTreeMap<Key, usize>,
    /// Completions that match no request, or that precede their request.
    unpaired: u64,
}

/// A request of the list.
#[derive(Debug)]
struct Begun {
    number: u64,
    request: TraceRequest,
    /// Sectors that are not complete.
    left: u64,
}

/// Device, operation, first sector.
type Key = (u32, Op, u64);

fn key(request: &TraceRequest) -> Key {
    (request.device, request.op, request.extent.start.get())
}

impl Requests {
    fn begin(&mut self, number: u64, request: TraceRequest) {
        let key = key(&request);
        if let Some(again) = self.requeued.get_mut(&key) {
            *again -= 1;
            if *again == 0 {
                self.requeued.remove(&key);
            }
            return;
        }
        self.open.entry(key).or_default().push_back(self.list.len());
        self.list.push(Begun {
            number,
            request,
            left: request.extent.len.get(),
        });
    }

    fn put_back(&mut self, request: &TraceRequest) {
        let key = key(request);
        if self.open.contains_key(&key) {
            *self.requeued.entry(key).or_default() += 1;
        }
    }

    /// Process that asked for the first sector of an issued request, by the open requests in this list.
    fn process_of(&self, request: &TraceRequest) -> Option<u32> {
        let (start, end) = (request.extent.start.get(), request.extent.end().get());
        let (_, index) = self.open_at(request, start, end)?;
        self.list[index].request.process
    }

    /// Completes the sectors that `done` covers, in one or more requests.
    fn complete(&mut self, done: &TraceRequest) {
        if done.extent.is_empty() && self.complete_again(done) {
            return;
        }
        let mut at = done.extent.start.get();
        let end = done.extent.end().get();
        let mut paired = false;
        while let Some((start, index)) = self.open_at(done, at, end) {
            paired = true;
            let Begun { request, left, .. } = &mut self.list[index];
            let part = (request.extent.end().get().min(end)).saturating_sub(at);
            *left = left.saturating_sub(part);
            if *left == 0 {
                // If lines are out of order, the completion may precede the arrival. Then the
                // completion time is unknown.
                if request.arrival <= done.arrival {
                    request.completion = done.arrival;
                } else {
                    self.unpaired += 1;
                }
                let key = (done.device, done.op, start);
                if request.flags.has(Flags::PREFLUSH) || request.flags.has(Flags::FUA) {
                    self.forced.insert(key, index);
                }
                self.close(key, index);
            }
            at += part;
            if at >= end || part == 0 {
                break;
            }
        }
        // In some formats one completion of a flush counts for both lists, though only one list has the
        // request. So an unmatched completion of a flush is not counted.
        self.unpaired += u64::from(!paired && done.op != Op::Flush);
    }

    /// Completes a write for the second time, after its sectors. Returns `false` if `done` completes no
    /// such write. At sector 0 an empty completion may also belong to a flush. An open flush goes
    /// first.
    fn complete_again(&mut self, done: &TraceRequest) -> bool {
        let start = done.extent.start.get();
        if done.op == Op::Flush && self.open.contains_key(&key(done)) {
            return false;
        }
        let Some(index) = self.forced.remove(&(done.device, Op::Write, start)) else {
            // A write without flushes has no second completion to look for.
            return done.op == Op::Write;
        };
        let request = &mut self.list[index].request;
        // If lines are out of order, the completion may precede the arrival.
        if request.arrival <= done.arrival {
            request.completion = request.completion.max(done.arrival);
        }
        true
    }

    /// First sector and index of the open request that covers sector `at`. A request that begins at
    /// `at` goes first: the oldest that ends at `end` or before, or else the oldest. Otherwise the
    /// nearest start below `at` is searched.
    fn open_at(&self, done: &TraceRequest, at: u64, end: u64) -> Option<(u64, usize)> {
        // A file may have a huge number of requests at one sector. Checking all of them at each
        // completion would take too long. A real block layer has few.
        const LOOKED_AT: usize = 1024;
        let fits = |index: &&usize| self.list[**index].request.extent.end().get() <= end;
        let here = self.open.get(&(done.device, done.op, at));
        if let Some(queue) = here {
            let index = queue
                .iter()
                .take(LOOKED_AT)
                .find(fits)
                .or_else(|| queue.front())?;
            return Some((at, *index));
        }
        let below = (done.device, done.op, 0)..(done.device, done.op, at);
        let ((_, _, start), queue) = self.open.range(below).next_back()?;
        let covers = |index: &&usize| self.list[**index].request.extent.end().get() > at;
        let mut oldest = queue.iter().take(LOOKED_AT);
        oldest.find(covers).map(|index| (*start, *index))
    }

    fn close(&mut self, key: Key, index: usize) {
        let Some(queue) = self.open.get_mut(&key) else {
            return;
        };
        // Positions ascend with the events. The request is usually the first.
        if let Ok(at) = queue.binary_search(&index) {
            queue.remove(at);
        }
        if queue.is_empty() {
            self.open.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_units::{Extent, Time};

    fn event(at: u64, action: BlockAction, op: Op, extent: (u64, u64), process: u32) -> BlockEvent {
        BlockEvent {
            action,
            request: TraceRequest {
                arrival: Some(Time::from_nanos(at)),
                completion: None,
                device: 0,
                op,
                extent: Extent::at(extent.0, extent.1),
                process: Some(process),
                flags: Flags::NONE,
            },
        }
    }

    /// Without a limit on the requests checked at each completion, this test took minutes.
    #[test]
    fn as_many_requests_at_one_sector_as_a_file_may_have_are_paired() {
        const MANY: u64 = 50_000;
        for (len, completions) in [(8, 1), (16, 2)] {
            let begin = |at| event(at, BlockAction::Queue, Op::Read, (0, len), 1);
            let part = |at| {
                let done = BlockAction::Complete(Level::Both);
                event(MANY + at, done, Op::Read, (0, 8), 0)
            };
            let mut events: Vec<BlockEvent> = (0..MANY).map(begin).collect();
            events.extend((0..completions * MANY).map(part));
            let (made, paired) = pair(None, &events);
            assert_eq!((paired.unpaired, paired.unfinished), (0, 0));
            for (at, completion, _) in made {
                assert_eq!(completion, Some(MANY + completions * (at + 1) - 1));
            }
        }
    }

    /// Arrival, completion and process of the requests that these events make.
    fn pair(
        wanted: Option<ArrivalEvent>,
        events: &[BlockEvent],
    ) -> (Vec<(u64, Option<u64>, u32)>, Paired) {
        let mut pairing = Pairing::new(wanted);
        for (number, event) in events.iter().enumerate() {
            pairing.event(number as u64, event);
        }
        let paired = pairing.finish();
        let list = paired
            .requests
            .iter()
            .map(|(_, request)| {
                (
                    request.arrival.expect("from an event").as_nanos(),
                    request.completion.map(Time::as_nanos),
                    request.process.expect("given"),
                )
            })
            .collect();
        (list, paired)
    }

    const BOTH: BlockAction = BlockAction::Complete(Level::Both);
    const KWORKER: u32 = 58;

    #[test]
    fn who_asked_is_known_when_the_kernel_issues() {
        use BlockAction::{Insert, Issue, Queue};
        // A thread of the kernel issues two queued requests as one. A third request has only an insert
        // event before its issue. A fourth has nothing but its issue.
        let events = [
            event(1, Queue, Op::Read, (100, 8), 7),
            event(2, Queue, Op::Read, (108, 8), 8),
            event(3, Insert, Op::Read, (100, 16), KWORKER),
            event(4, Insert, Op::Write, (500, 8), 9),
            event(5, Issue, Op::Read, (100, 16), KWORKER),
            event(6, Issue, Op::Write, (500, 8), KWORKER),
            event(7, Issue, Op::Write, (900, 8), KWORKER),
            event(10, BOTH, Op::Read, (100, 16), 0),
            event(11, BOTH, Op::Write, (500, 8), 0),
            event(12, BOTH, Op::Write, (900, 8), 0),
        ];
        let (list, paired) = pair(Some(ArrivalEvent::Issue), &events);
        assert_eq!(
            list,
            [(5, Some(10), 7), (6, Some(11), 9), (7, Some(12), KWORKER)]
        );
        assert_eq!((paired.unpaired, paired.unfinished), (0, 0));
        let (list, paired) = pair(None, &events);
        assert_eq!(list, [(1, Some(10), 7), (2, Some(10), 8)]);
        assert_eq!(paired.unpaired, 2);
    }

    #[test]
    fn flushes_complete_on_their_own_level() {
        use BlockAction::{Issue, Queue};
        let queued = BlockAction::Complete(Level::Queued);
        let issued = BlockAction::Complete(Level::Issued);
        // Two processes flush. The block layer issues one flush, and then completes each of the two.
        let events = [
            event(1, Queue, Op::Flush, (0, 0), 7),
            event(2, Queue, Op::Flush, (0, 0), 8),
            event(3, Issue, Op::Flush, (0, 0), KWORKER),
            event(9, issued, Op::Flush, (0, 0), 0),
            event(10, queued, Op::Flush, (0, 0), 0),
            event(11, queued, Op::Flush, (0, 0), 0),
        ];
        let (list, paired) = pair(None, &events);
        assert_eq!(list, [(1, Some(10), 7), (2, Some(11), 8)]);
        assert_eq!(paired.unpaired, 0);
        let (list, _) = pair(Some(ArrivalEvent::Issue), &events);
        assert_eq!(list, [(3, Some(9), 7)]);
    }

    #[test]
    fn what_does_not_complete_is_counted() {
        use BlockAction::Queue;
        let events = [
            event(1, BOTH, Op::Read, (5, 8), 0),
            event(2, Queue, Op::Read, (100, 8), 7),
        ];
        let (list, paired) = pair(Some(ArrivalEvent::Queue), &events);
        assert_eq!(list, [(2, None, 7)]);
        assert_eq!((paired.unpaired, paired.unfinished), (1, 1));
    }
    /// Found by fuzzing: a forced write whose completions both precede its arrival. The second
    /// completion was once accepted, so the write ended before its arrival.
    #[test]
    fn a_write_does_not_end_before_it_began() {
        let mut begin = event(9, BlockAction::Queue, Op::Write, (320, 32), 7);
        begin.request.flags = Flags::FUA;
        let events = [
            begin,
            event(3, BOTH, Op::Write, (320, 32), 0),
            event(4, BOTH, Op::Write, (320, 0), 0),
        ];
        let (list, _) = pair(Some(ArrivalEvent::Queue), &events);
        assert_eq!(list, [(9, None, 7)]);
    }
}
