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
use super::shared::{Shared, lock};
use crate::request::{Completer, Completion, Cut, Data, Failure, Submission};
use headtime_engine::{Broken, Core};
use headtime_linux::clock::timespec;
use headtime_sched::{Class, Flags, Op, Origin, WaitStats};
use headtime_units::{Extent, Nanos, Sectors, Time};
use live::{LAST_FLUSH, Live};
use rustix::event::{PollFd, PollFlags};
use rustix::time::Timespec;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

/// Time before a precise wake at which the thread stops sleeping and spins: with real-time priority, and without. A
/// thread that has to compete for the processor is woken later.
const SPIN_REAL_TIME: Nanos = Nanos::from_micros(150);
const SPIN: Nanos = Nanos::from_micros(300);

/// Completions of one round after which the front ends are woken. Without this bound the first client would wait for
/// the last.
const ROUND: u32 = 32;

/// Number of events after which the thread looks for orders, even if more events are due. A front end that runs the
/// engine then stops.
const ORDERS_EVERY: u32 = 1024;

/// Number of events that are handled by one reading of the clock. A reading costs a tenth of an event.
const CLOCK_EVERY: u32 = 8;

/// Time for which no front end runs the engine after a device has not completed a command at once. The kernel has to
/// wake the thread that submits a command when the command ends, so that should be the disk's thread.
const SLOW_DEVICE: Nanos = Nanos::from_secs(1);

/// Longest time until events reach the thread that writes the log. Events that fill a piece go at once. A killed server
/// loses only the events of this time.
const LOG_EVERY: Nanos = Nanos::from_millis(5);

/// Disk that has started: the state for front ends, and the thread's state, which front ends may borrow.
pub(super) type Started = (Arc<Shared>, Arc<Mutex<Option<Thread>>>);

pub(super) fn main<E>(
    options: Options,
    others: Vec<MemberOptions>,
    open: impl FnOnce() -> Result<Devices, E>,
    doorbell: OwnedFd,
    started: &Sender<Result<Started, StartError>>,
) -> io::Result<()>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (thread, ready) = match Thread::start(options, others, open, doorbell) {
        Ok(thread) => thread,
        Err(error) => {
            let _ = started.send(Err(error));
            return Ok(());
        }
    };
    let shared = Arc::clone(&thread.live.shared);
    let thread = Arc::new(Mutex::new(Some(thread)));
    // The starter of the disk waits for this message.
    let _ = started.send(Ok((Arc::clone(&shared), Arc::clone(&thread))));
    let closing = Closing(shared);
    let result = run_to_the_end(&thread, &ready);
    drop(closing);
    // Handles of the disk may live on, but the devices are closed now.
    drop(lock(&thread).take());
    result
}

/// Runs until the disk is stopped. `ready` has the descriptors of the devices.
///
/// # Errors
///
/// If the last flush or the log failed, or the thread panicked. After a panic every unfinished request has been
/// answered with an error, and no more requests are taken.
fn run_to_the_end(thread: &Mutex<Option<Thread>>, ready: &[OwnedFd]) -> io::Result<()> {
    loop {
        let mut guard = lock(thread);
        let thread = guard.as_mut().expect("only the caller takes it out");
        if let Some(bug) = thread.bug.take() {
            return Err(bug);
        }
        // State that a panic leaves half-done is not used again, only dropped.
        let ran = catch_unwind(AssertUnwindSafe(|| thread.run()));
        match ran {
            Ok(Ran::Ended(result)) => return result,
            Err(panic) => return Err(thread.end_by_a_bug(&*panic)),
            Ok(Ran::Sleep(sleep)) => {
                let shared = Arc::clone(&thread.live.shared);
                drop(guard);
                sleep.wait(&shared, ready);
            }
        }
    }
}

/// Runs the engine of an idle disk on the caller's thread, for `requests` that the caller has queued. Returns false if the disk's thread has to go on.
pub(super) fn run_for_guest(thread: &Mutex<Option<Thread>>, requests: u32) -> bool {
    let Ok(mut guard) = thread.try_lock() else {
        return false;
    };
    let Some(thread) = guard.as_mut().filter(|thread| thread.takes_guests) else {
        return false;
    };
    match catch_unwind(AssertUnwindSafe(|| thread.run_for_guest(requests))) {
        Ok(is_done) => is_done,
        Err(panic) => {
            // The thread ends even if answering the requests meets another bug.
            thread.bug = Some(io::Error::other("its thread ended by a bug"));
            thread.bug = Some(thread.end_by_a_bug(&*panic));
            false
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

/// State of a disk's thread. The thread holds the lock of this state while it is awake.
///
/// Invariants: `takes_guests` ⇒ no device is in model time, no export has a rate, and there is no log; `bug.is_some()` ⇒ the disk is `broken`.
pub(super) struct Thread {
    core: Core<LogThread>,
    live: Live,
    /// Schedulers and gates in force, by member.
    chosen: Vec<Chosen>,
    log_flushed: Time,
    spin: Nanos,
    /// True if front ends may run the engine while the thread sleeps.
    takes_guests: bool,
    /// Time at which the sleeping thread wakes by itself.
    wakes: Time,
    /// Time before which no front end may run the engine, because a device takes time for its commands.
    no_guests_before: Time,
    /// Reason for the end of the thread, if a front end met a bug while it ran the engine.
    bug: Option<io::Error>,
}

/// Sleep that a thread is about to start.
struct Sleep {
    timeout: Option<Timespec>,
    /// True if a device may wake the thread.
    hears_devices: bool,
}

/// Outcome of running the engine until nothing is due.
enum Ran {
    Sleep(Sleep),
    /// The disk has stopped. The error is of the last flush or of the log.
    Ended(io::Result<()>),
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
    /// Runs the engine until the thread has to wait.
    fn run(&mut self) -> Ran {
        loop {
            let real = self.handle_due();
            // Clients that keep the thread busy must not keep an order to stop from the thread.
            if self.live.shared.ordered.swap(false, Ordering::SeqCst) {
                self.obey(self.live.clock.now());
                continue;
            }
            let Some(real) = real else {
                continue;
            };
            if self.live.stopping && self.core.is_idle() && self.live.next.is_none() {
                match self.live.last_flush {
                    None if self.live.shared.queue.is_empty() => {
                        self.flush_at_the_end(real);
                        continue;
                    }
                    None => continue,
                    Some(result) => return Ran::Ended(self.end(result)),
                }
            }
            if let Some(sleep) = self.rest(real) {
                return Ran::Sleep(sleep);
            }
        }
    }

    /// Runs the engine of an idle disk for a front end, on the front end's thread. Returns false if the disk's thread
    /// has to go on.
    ///
    /// A request then costs no change of threads. Nothing waits here: the kernel only takes the commands.
    fn run_for_guest(&mut self, requests: u32) -> bool {
        let live = &self.live;
        let is_idle = self.core.is_idle() && live.next.is_none() && !live.stopping;
        // A request of another front end may take longer.
        let is_alone = live.shared.queue.len() == requests as usize;
        let is_slow = live.clock.now() < self.no_guests_before;
        if !is_idle
            || !is_alone
            || is_slow
            || self.core.has_jobs()
            || live.shared.ordered.load(Ordering::SeqCst)
        {
            return false;
        }
        let Some(real) = self.handle_due() else {
            return false;
        };
        if !self.core.is_idle() {
            // The sleeping thread hears no device.
            self.no_guests_before = real + SLOW_DEVICE;
            return false;
        }
        self.wake_time(real) >= self.wakes && !self.live.has_next()
    }

    /// Handles the events that are due. Returns the time after which no event was due, or `None` if there may be more.
    fn handle_due(&mut self) -> Option<Time> {
        let (mut real, mut events) = (self.live.clock.now(), 0);
        for _ in 0..ORDERS_EVERY {
            let mut step = match events < CLOCK_EVERY {
                true => self.step(real),
                false => Progress::Later,
            };
            events += 1;
            if step == Progress::Later {
                (real, events) = (self.live.clock.now(), 0);
                step = self.step(real);
            }
            if step == Progress::Done {
                if self.live.completions >= ROUND {
                    self.live.wake_front_ends();
                }
                continue;
            }
            self.live.kick();
            (real, events) = (self.live.clock.now(), 0);
            if self.step(real) != Progress::Done {
                // This step may have ended a request of several steps.
                self.live.wake_front_ends();
                return Some(real);
            }
        }
        self.live.kick();
        None
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

    /// Returns the time at which the thread has to wake by itself.
    fn wake_time(&mut self, real: Time) -> Time {
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
        let all = due.into_iter().chain(named);
        all.chain([self.live.expires(), self.live.opens(real)])
            .fold(until, Time::min)
    }

    /// Prepares the wait for the next event. Returns `None` if the thread has to go on.
    fn rest(&mut self, real: Time) -> Option<Sleep> {
        let until = self.wake_time(real);
        let live = &self.live;
        if until != Time::NEVER && until <= real + self.spin {
            // The time is too near for a sleep, so the thread watches the clock and the queue.
            while live.clock.now() < until && !live.has_next() {
                std::hint::spin_loop();
            }
            return None;
        }
        let shared = &*live.shared;
        shared.asleep.store(true, Ordering::SeqCst);
        std::sync::atomic::fence(Ordering::SeqCst);
        if live.has_next() || shared.ordered.load(Ordering::SeqCst) {
            shared.stay_awake(false);
            return None;
        }
        self.wakes = until;
        Some(Sleep {
            timeout: (until != Time::NEVER).then(|| timespec(until - real - self.spin)),
            // On an idle disk, a completion that a front end handles need not wake the thread.
            hears_devices: !self.takes_guests || !self.core.is_idle() || live.abandoned() > 0,
        })
    }
}

impl Sleep {
    /// Waits for the doorbell, for a device, or for the time of the next event.
    fn wait(&self, shared: &Shared, ready: &[OwnedFd]) {
        // After an interrupted sleep the thread looks for due events as after any other, so the error is ignored.
        let sleep = |fds: &mut [PollFd<'_>]| {
            let _ = rustix::event::poll(fds, self.timeout.as_ref());
            !fds[0].revents().is_empty()
        };
        let doorbell = PollFd::new(&shared.doorbell, PollFlags::IN);
        let devices = if self.hears_devices { ready } else { &[] };
        let fd = |device| PollFd::new(device, PollFlags::IN);
        let rings = match devices {
            [] => sleep(&mut [doorbell]),
            [device] => sleep(&mut [doorbell, fd(device)]),
            several => {
                let mut fds = vec![doorbell];
                fds.extend(several.iter().map(fd));
                sleep(&mut fds)
            }
        };
        shared.stay_awake(rings);
    }
}

/// Panics if an audit found a broken promise of an engine, which is a bug. Engines are audited only with
/// [`Options::audit`].
fn kept(promises: Result<(), Broken>) {
    if let Err(broken) = promises {
        panic!("{broken}");
    }
}
