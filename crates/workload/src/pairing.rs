//! Pairs the events of a block layer that belong to one request.
//!
//! Linux's block layer reports the same request several times (linux: include/trace/events/block.h):
//! a *queue* event when a process hands it in, an *insert* when a scheduler takes it, an *issue*
//! when it goes to the driver, by now perhaps merged with others, and a *complete*. None of them
//! carries a number that says which belong together. [`Pairing`] finds that out from device,
//! operation and sectors.
//!
//! A completion belongs to the oldest request that begins where it begins. A longer completion
//! belongs to the following requests as well (they were merged). A shorter one belongs to a part of
//! a request (it was split); the request is complete with its last part.
//!
//! Flushes differ. A process submits an empty write with a flush ahead of it. For any number of
//! those together the block layer issues one request of its own. After that request's completion
//! comes one empty completion for each. So a flush completes on one of two [`Level`]s. A write with
//! a flush before it, or with one behind it in place of forced unit access, also completes twice:
//! for the drive when its sectors are written, and for the process at an empty completion at its
//! first sector. The second one counts.

use crate::{ArrivalEvent, TraceRequest};
use headtime_sched::{Flags, Op};
use std::collections::{BTreeMap, VecDeque};

/// What happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockAction {
    /// A process handed it to the block layer.
    Queue,
    /// A scheduler took it. Says who asked, if nothing else does.
    Insert,
    /// It was handed to the driver.
    Issue,
    /// The driver gave it back; it will be issued again.
    Requeue,
    /// It is complete, in full or in part.
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

/// Of what a completion is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Of a request as issued, and of what was queued and became part of it.
    Both,
    /// Of what was queued alone: the completion of a flush that a process asked for; of nothing, at the
    /// first sector of a write that had flushes around it; or of any request to a driver that works
    /// without requests (device mapper, md).
    Queued,
    /// Of what was issued alone: the flush that the block layer made.
    Issued,
}

/// An event of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEvent {
    /// What happened.
    pub action: BlockAction,
    /// To which request. The arrival is when the event happened, and is there always; the completion
    /// never; the process is the one that ran at the event, which for completions is any.
    pub request: TraceRequest,
}

/// Finds the requests behind block events, which must come in order of time.
///
/// The requests are the queue events, which is what a scheduler has to work on, or the issue events.
/// A request from an issue event takes its process from the queue or insert event that it goes back
/// to, where there is one: issuing is often left to a thread of the kernel.
#[derive(Debug, Default)]
pub struct Pairing {
    wanted: Option<ArrivalEvent>,
    queued: Requests,
    issued: Requests,
    /// Processes of requests that a scheduler holds.
    inserted: BTreeMap<Key, u32>,
}

/// What came out of a [`Pairing`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paired {
    /// Which events are the requests.
    pub arrival_event: ArrivalEvent,
    /// The requests in order of their events, each with the number that it was given with. Those that
    /// did not complete have no completion.
    pub requests: Vec<(u64, TraceRequest)>,
    /// Completions without a request, or before it.
    pub unpaired: u64,
    /// Requests that did not complete.
    pub unfinished: u64,
}

impl Pairing {
    /// Nothing yet. `wanted` chooses the events that are the requests; `None` takes queue events if
    /// there are any, else issue events.
    pub fn new(wanted: Option<ArrivalEvent>) -> Pairing {
        Pairing {
            wanted,
            ..Pairing::default()
        }
    }

    /// Requests so far, in memory: of queue events and of issue events.
    pub fn held(&self) -> usize {
        self.queued.list.len() + self.issued.list.len()
    }

    /// Takes the next event. `number` is the caller's, such as a line.
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

/// Requests by one kind of event, with their completions.
#[derive(Debug, Default)]
struct Requests {
    /// In order of the events.
    list: Vec<Begun>,
    /// Places in the list of those that are not complete, oldest first.
    open: BTreeMap<Key, VecDeque<usize>>,
    /// Issued requests that were put back and will be issued again.
    requeued: BTreeMap<Key, u32>,
    /// Completed writes with a flush before or forced unit access, which may complete once more.
    forced: BTreeMap<Key, usize>,
    /// Completions without a request, or before it.
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

    /// Who asked for the first sector of a request that was made of these.
    fn process_of(&self, request: &TraceRequest) -> Option<u32> {
        let (start, end) = (request.extent.start.get(), request.extent.end().get());
        let (_, index) = self.open_at(request, start, end)?;
        self.list[index].request.process
    }

    /// Completes what the extent of `done` covers.
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
                // Lines out of order may say that it ended before it began; then it is not known.
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
        // Flushes of one kind complete with those of another, so one without its request says nothing.
        self.unpaired += u64::from(!paired && done.op != Op::Flush);
    }

    /// Completes a write whose sectors were complete before; `false` if there is none. At sector 0 it
    /// may as well be a flush, which comes first if one is open.
    fn complete_again(&mut self, done: &TraceRequest) -> bool {
        let start = done.extent.start.get();
        if done.op == Op::Flush && self.open.contains_key(&key(done)) {
            return false;
        }
        let Some(index) = self.forced.remove(&(done.device, Op::Write, start)) else {
            // Without flushes in between there is no second completion, and none is missing.
            return done.op == Op::Write;
        };
        let request = &mut self.list[index].request;
        // As above.
        if request.arrival <= done.arrival {
            request.completion = request.completion.max(done.arrival);
        }
        true
    }

    /// The open request that covers sector `at`: the oldest that begins there, best one that does
    /// not reach past `end`, else the nearest below. With where it begins.
    fn open_at(&self, done: &TraceRequest, at: u64, end: u64) -> Option<(u64, usize)> {
        // A file may begin so many requests at one sector that to look at all of them for each
        // completion would not end. In a block layer they are few.
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
        // In order of their events, so of their places; mostly it is the first.
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

    /// To look at all of them for each completion took minutes.
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

    /// Arrival, completion and process of what comes of these events.
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
        // Two queued requests are issued as one by a thread of the kernel; of a third only the
        // insertion was seen, of a fourth nothing but the issue.
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
        // Two processes flush; the block layer makes one of it, then completes each.
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
    /// Found by fuzzing: the second completion of a forced write, before its beginning as the first
    /// was, made it end before it began.
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
