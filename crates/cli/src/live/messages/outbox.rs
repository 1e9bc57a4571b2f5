//! Lines on their way to standard error.
//!
//! Who has something to say hands it over and goes on, whatever becomes of it: a disk's thread must not
//! wait for a terminal that is stopped, nor a server for who has stopped reading its messages. A thread
//! of its own writes. What it cannot write it tries again; meanwhile lines wait, up to a bound, and those
//! beyond it are dropped and counted. Where lines are missing, one says how many.

use crossbeam_queue::ArrayQueue;
use headtime_linux::clock::Clock;
use headtime_units::{Nanos, Time};
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;

/// How much may wait to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// So many lines.
    pub(super) lines: usize,
    /// And so many bytes of them.
    pub(super) bytes: usize,
    /// What could not be written is tried again after this.
    pub(super) retry: Duration,
}

/// A burst of messages about every connection and every command there may be fits in.
pub(super) const BOUNDS: Bounds = Bounds {
    lines: 4096,
    bytes: 1 << 20,
    retry: Duration::from_millis(100),
};

/// Takes lines and never waits.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    shared: Arc<Shared>,
    writer: Thread,
}

/// A line, and how many were dropped before it.
#[derive(Debug)]
struct Entry {
    line: String,
    missing: u64,
}

#[derive(Debug)]
struct Shared {
    bounds: Bounds,
    // No lock: who holds one may be kept off its processor by those who want it.
    queue: ArrayQueue<Entry>,
    bytes: AtomicUsize,
    /// It has been full, and is not half empty yet. One line in two would be about what is missing.
    full: AtomicBool,
    /// Lines dropped of which none that follows has told yet.
    missing: AtomicU64,
    dropped: Arc<AtomicU64>,
    clock: Clock,
    state: Mutex<State>,
    changed: Condvar,
}

/// What the writer does.
#[derive(Debug)]
struct State {
    /// It waits for something to write.
    idle: bool,
    /// Else when something was last written, or begun to be.
    since: Time,
}

/// Says that so many lines are missing, in a line.
pub(super) type Missing = dyn Fn(u64) -> String + Send;

impl Outbox {
    /// Begins to write to `sink`.
    ///
    /// # Errors
    ///
    /// If there can be no thread.
    pub(super) fn start(
        sink: Box<dyn Write + Send>,
        bounds: Bounds,
        missing: Box<Missing>,
    ) -> io::Result<Outbox> {
        let shared = Arc::new(Shared {
            bounds,
            queue: ArrayQueue::new(bounds.lines),
            bytes: AtomicUsize::new(0),
            full: AtomicBool::new(false),
            missing: AtomicU64::new(0),
            dropped: Arc::default(),
            clock: Clock::start(),
            state: Mutex::new(State {
                idle: false,
                since: Time::ZERO,
            }),
            changed: Condvar::new(),
        });
        let its = Arc::clone(&shared);
        let writer = std::thread::Builder::new()
            .name("messages".to_owned())
            .spawn(move || its.write(sink, &missing))?;
        Ok(Outbox {
            shared,
            writer: writer.thread().clone(),
        })
    }

    /// Takes a line, with its end, or drops it.
    pub(super) fn put(&self, line: String) {
        self.shared.put(line);
        self.writer.unpark();
    }

    /// Lines dropped, which goes on counting.
    pub(super) fn dropped(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.shared.dropped)
    }

    /// Waits until everything is written, but no longer than this; whether it is.
    pub(super) fn empty(&self, within: Nanos) -> bool {
        self.shared.empty(self.shared.clock.now() + within)
    }

    /// As [`Outbox::empty`], but counts in the time for which nothing could be written before: of those
    /// who wait one after the other, only the first waits for what does not move.
    pub(super) fn empty_unless_stuck(&self, within: Nanos) -> bool {
        let since = {
            let state = self.shared.state();
            match state.idle {
                true => self.shared.clock.now(),
                false => state.since,
            }
        };
        self.shared.empty(since + within)
    }
}

/// For what writes a line at a time.
impl Write for Outbox {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.put(String::from_utf8_lossy(line).into_owned());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, line: String) {
        if !self.has_room_for(line.len()) {
            self.full.store(true, Ordering::Relaxed);
            return self.drop_one(0);
        }
        let missing = self.missing.swap(0, Ordering::Relaxed);
        if let Err(entry) = self.queue.push(Entry { line, missing }) {
            self.bytes.fetch_sub(entry.line.len(), Ordering::Relaxed);
            self.full.store(true, Ordering::Relaxed);
            self.drop_one(missing);
        }
    }

    /// Takes the room, if there is any.
    fn has_room_for(&self, bytes: usize) -> bool {
        let Bounds {
            lines, bytes: most, ..
        } = self.bounds;
        if self.full.load(Ordering::Relaxed) {
            if self.queue.len() > lines / 2 || self.bytes.load(Ordering::Relaxed) > most / 2 {
                return false;
            }
            self.full.store(false, Ordering::Relaxed);
        }
        let others = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let fits = others + bytes <= most;
        if !fits {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        fits
    }

    /// One more is missing, beside those of which nobody tells now after all.
    fn drop_one(&self, others: u64) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        self.missing.fetch_add(others + 1, Ordering::SeqCst);
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.missing.load(Ordering::SeqCst) == 0
    }

    /// Writes as long as the process lives.
    fn write(&self, mut sink: Box<dyn Write + Send>, missing: &Missing) {
        loop {
            {
                let mut state = self.state();
                state.idle = false;
                state.since = self.clock.now();
            }
            while !self.is_empty() {
                let entry = self.queue.pop();
                // What was dropped since the last line of all comes after it.
                let gap = match &entry {
                    Some(entry) => entry.missing,
                    None => self.missing.swap(0, Ordering::SeqCst),
                };
                if gap > 0 {
                    self.write_line(&mut sink, missing(gap).as_bytes());
                }
                if let Some(entry) = entry {
                    self.bytes.fetch_sub(entry.line.len(), Ordering::Relaxed);
                    self.write_line(&mut sink, entry.line.as_bytes());
                }
            }
            self.state().idle = true;
            self.changed.notify_all();
            // Whoever puts something in says so after that.
            std::thread::park();
        }
    }

    /// Writes a line to its end, however often that fails: half of it would be in the way of the next.
    fn write_line(&self, sink: &mut dyn Write, mut line: &[u8]) {
        while !line.is_empty() {
            match sink.write(line) {
                Ok(taken) if taken > 0 => {
                    line = &line[taken..];
                    self.state().since = self.clock.now();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A full file system, a pipe whose reader is gone: nobody to tell, but it may pass.
                Ok(_) | Err(_) => {
                    let retry = self.bounds.retry;
                    let state = self.state();
                    let waited = self.changed.wait_timeout_while(state, retry, |_| true);
                    drop(waited);
                }
            }
        }
    }

    /// Waits until everything is written, or that time has come; whether it is.
    fn empty(&self, until: Time) -> bool {
        let mut state = self.state();
        loop {
            if state.idle && self.is_empty() {
                return true;
            }
            let left = until.saturating_since(self.clock.now());
            if left == Nanos::ZERO {
                return false;
            }
            let left = Duration::from_nanos(left.as_nanos());
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests;
