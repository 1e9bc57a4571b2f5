//! The thread of a disk: the engine's loop in real time.
//!
//! The thread handles each event at the time at which the event was due, as in simulation. With a device in model time,
//! lateness therefore does not add up. The next command starts when the one before ended, and not when the thread
//! noticed the end.

mod admission;
mod bug;
mod latch;
mod live;
mod orders;
mod start;
mod steps;
mod unflushed;

use super::log::LogThread;
use super::options::{BuildScheduler, Devices, MemberOptions, Options, StartError};
use super::shared::Shared;
use crate::request::{Completer, Completion, Cut, Data, Failure, Submission};
use headtime_engine::{Broken, Core};
use headtime_linux::clock::timespec;
use headtime_sched::{Class, Flags, Op, Origin, WaitStats};
use headtime_units::{Extent, Nanos, Sectors, Time};
use live::{LAST_FLUSH, Live};
use rustix::event::{PollFd, PollFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

/// Time before a precise wake at which the thread stops sleeping and spins: with real-time priority, and without. A
/// thread that has to compete for the processor is woken later.
const SPIN_REAL_TIME: Nanos = Nanos::from_micros(150);
const SPIN: Nanos = Nanos::from_micros(300);

/// Completions of one round after which the front ends are woken. Without this bound the first client would wait for
/// the last.
const ROUND: u32 = 32;

/// Number of events after which the thread looks for orders, even if more events are due.
const ORDERS_EVERY: u32 = 1024;

/// Number of events that are handled by one reading of the clock. A reading costs a tenth of an event.
const CLOCK_EVERY: u32 = 8;

/// Longest time until events reach the thread that writes the log. Events that fill a piece go at once. A killed server
/// loses only the events of this time.
const LOG_EVERY: Nanos = Nanos::from_millis(5);

pub(super) fn main<E>(
    options: Options,
    others: Vec<MemberOptions>,
    open: impl FnOnce() -> Result<Devices, E>,
    doorbell: OwnedFd,
    started: &Sender<Result<Arc<Shared>, StartError>>,
) -> io::Result<()>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match Thread::start(options, others, open, doorbell) {
        Ok(mut thread) => {
            let shared = Arc::clone(&thread.live.shared);
            // The starter of the disk waits for this message.
            let _ = started.send(Ok(Arc::clone(&shared)));
            let _closing = Closing(shared);
            thread.run_to_the_end()
        }
        Err(error) => {
            let _ = started.send(Err(error));
            Ok(())
        }
    }
}

/// Closes the disk when the thread ends for any reason, so that no client waits for an ended thread.
struct Closing(Arc<Shared>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

struct Thread {
    core: Core<LogThread>,
    live: Live,
    /// Schedulers and gates in force, by member.
    chosen: Vec<Chosen>,
    log_flushed: Time,
    steps: u32,
    spin: Nanos,
}

/// Scheduler and gate in force at a member: the texts that name them, and a builder of more schedulers.
struct Chosen {
    scheduler: String,
    build: BuildScheduler,
    gate: String,
    /// Waits of the schedulers that were swapped out.
    waits_before: WaitStats,
}

/// Result of looking for the next event that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Done,
    /// The next event is due after the reading of the clock.
    Later,
    /// No next event is known.
    Nothing,
}

/// Client of the flush that ends a disk. Ignores the completion, since no front end has asked for that flush.
#[derive(Debug)]
struct Nobody;

impl Completer for Nobody {
    fn complete(&self, _: Completion) {}
}

impl Thread {
    fn run(&mut self) -> io::Result<()> {
        let (mut real, mut events) = (self.live.clock.now(), 0);
        loop {
            self.steps = self.steps.wrapping_add(1);
            // Clients that keep the thread busy must not keep an order to stop from the thread.
            let looks = !self.steps.is_multiple_of(ORDERS_EVERY);
            let mut step = match looks && events < CLOCK_EVERY {
                true => self.step(real),
                false => Progress::Later,
            };
            events += 1;
            if step == Progress::Later && looks {
                (real, events) = (self.live.clock.now(), 0);
                step = self.step(real);
            }
            if step == Progress::Done {
                if self.live.completions >= ROUND {
                    self.live.wake_front_ends();
                }
                continue;
            }
            for station in &mut self.live.stations {
                station.device.kick();
            }
            self.live.wake_front_ends();
            (real, events) = (self.live.clock.now(), 0);
            if self.live.shared.ordered.swap(false, Ordering::SeqCst) {
                self.obey(real);
                continue;
            }
            if self.step(real) == Progress::Done {
                continue;
            }
            if self.live.stopping && self.core.is_idle() && self.live.next.is_none() {
                match self.live.last_flush {
                    None if self.live.shared.queue.is_empty() => {
                        self.flush_at_the_end(real);
                        continue;
                    }
                    None => continue,
                    Some(result) => return self.end(result),
                }
            }
            self.rest(real);
        }
    }

    /// Handles the next event that is due by `real`.
    fn step(&mut self, real: Time) -> Progress {
        let Thread { core, live, .. } = self;
        if real >= live.expires() {
            live.expire(real.max(core.now()));
        }
        live.fetch(real.max(core.now()));
        if let Some(done) = live.poll_real_time(real.max(core.now())) {
            kept(core.completed(live, done));
            return Progress::Done;
        }
        let due = core.due(live);
        let Some(at) = due.at() else {
            return Progress::Nothing;
        };
        if at > real {
            return Progress::Later;
        }
        let at = at.max(core.now());
        kept(core.step(live, &due, at));
        Progress::Done
    }

    fn flush_at_the_end(&mut self, real: Time) {
        let live = &mut self.live;
        if live.shared.geometry.read_only {
            live.last_flush = Some(Ok(()));
            return;
        }
        if let Some(failure) = live.latch.flush_failure() {
            live.last_flush = Some(Err(failure));
            return;
        }
        live.next = Some(Submission {
            cookie: LAST_FLUSH,
            op: Op::Flush,
            extent: Extent::new(live.shared.flush_at(), Sectors::ZERO),
            cut: Cut::NONE,
            flags: Flags::NONE,
            origin: Origin::default(),
            class: Class::default(),
            arrived: real,
            data: Data::None,
            to: Arc::new(Nobody),
        });
    }

    fn end(&mut self, flushed: Result<(), Failure>) -> io::Result<()> {
        // The result of the flush is reported first, because lost data matter more than a lost log.
        let log = self.core.take_log();
        let log = log.map_or(Ok(()), |log| log.finish().finish());
        flushed.map_err(io::Error::other)?;
        log.map_err(|error| io::Error::new(error.kind(), format!("the log: {error}")))
    }

    /// Waits for the next event.
    fn rest(&mut self, real: Time) {
        let mut until = Time::NEVER;
        if let Some(log) = self.core.log()
            && log.has_news()
        {
            until = self.log_flushed + LOG_EVERY;
            // The log is not worth spinning for, so it is flushed at once if its time is that near.
            if until <= real + self.spin {
                log.flush();
                self.log_flushed = real;
                until = Time::NEVER;
            }
        }
        // A request may have arrived after the clock was read, and its front end does not ring again. A device in real
        // time may also name a time at which to poll it.
        let due = self.core.due(&self.live).at();
        let stations = self.live.stations.iter();
        let named = stations.filter_map(|station| station.device.next_event());
        for at in due
            .into_iter()
            .chain(named)
            .chain([self.live.expires(), self.live.opens(real)])
        {
            until = until.min(at);
        }
        let live = &self.live;
        if until != Time::NEVER && until <= real + self.spin {
            // The time is too near for a sleep, so the thread watches the clock and the queue.
            while live.clock.now() < until && !live.has_next() {
                std::hint::spin_loop();
            }
            return;
        }
        let shared = &*live.shared;
        let mut rings = false;
        shared.asleep.store(true, Ordering::SeqCst);
        std::sync::atomic::fence(Ordering::SeqCst);
        if !live.has_next() && !shared.ordered.load(Ordering::SeqCst) {
            let timeout = (until != Time::NEVER).then(|| timespec(until - real - self.spin));
            let doorbell = PollFd::new(&shared.doorbell, PollFlags::IN);
            let stations = live.stations.iter();
            let ready = stations.filter_map(|station| station.device.ready_fd());
            let mut ready = ready.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            // After an interrupted sleep the thread looks for due events as after any other, so the error is ignored.
            let sleep = |fds: &mut [PollFd<'_>]| {
                let _ = rustix::event::poll(fds, timeout.as_ref());
                !fds[0].revents().is_empty()
            };
            rings = match (ready.next(), ready.next()) {
                (None, _) => sleep(&mut [doorbell]),
                (Some(device), None) => sleep(&mut [doorbell, device]),
                (Some(one), Some(other)) => {
                    let mut fds = vec![doorbell, one, other];
                    fds.extend(ready);
                    sleep(&mut fds)
                }
            };
        }
        // A front end clears `asleep` and rings afterwards, so the ring may come after this thread has woken. A
        // doorbell that has not been read would end every later sleep at once.
        rings |= !shared.asleep.swap(false, Ordering::SeqCst);
        if rings {
            let mut rung = [0; 8];
            let _ = rustix::io::read(&shared.doorbell, &mut rung);
        }
    }
}

/// Panics if an audit found a broken promise of an engine, which is a bug. Engines are audited only with
/// [`Options::audit`].
fn kept(promises: Result<(), Broken>) {
    if let Err(broken) = promises {
        panic!("{broken}");
    }
}
