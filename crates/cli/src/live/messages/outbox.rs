//! Lines on their way to standard error.
//!
//! Callers hand a line over and never wait. The reason: neither a disk's thread nor a server may wait for a stopped terminal or reader.
//! A writer thread writes the lines, and tries again after an error. Meanwhile lines wait, up to a limit. Lines beyond the limit are
//! dropped and counted, and a line at the gap reports the number.

use crossbeam_queue::ArrayQueue;
use headtime_linux::clock::Clock;
use headtime_units::{Nanos, Time};
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;

/// Limits of the waiting lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Largest number of waiting lines.
    pub(super) lines: usize,
    /// Largest number of bytes of the waiting lines.
    pub(super) bytes: usize,
    /// Time after which a failed write is tried again.
    pub(super) retry: Duration,
}

/// Limits that fit a burst of messages about every connection and every command.
pub(super) const BOUNDS: Bounds = Bounds {
    lines: 4096,
    bytes: 1 << 20,
    retry: Duration::from_millis(100),
};

/// Queue of lines whose callers never wait.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    shared: Arc<Shared>,
    writer: Thread,
}

/// A line, and the number of lines that were dropped just ahead.
#[derive(Debug)]
struct Entry {
    line: String,
    missing: u64,
}

#[derive(Debug)]
struct Shared {
    bounds: Bounds,
    // There is no lock, since waiting threads may keep a lock's holder off its processor.
    queue: ArrayQueue<Entry>,
    bytes: AtomicUsize,
    /// Becomes true when the queue is full, and false when the queue is half empty. Without this delay every second line would report
    /// missing lines.
    full: AtomicBool,
    /// Number of dropped lines that no queued line reports yet.
    missing: AtomicU64,
    dropped: Arc<AtomicU64>,
    clock: Clock,
    state: Mutex<State>,
    changed: Condvar,
}

/// State of the writer thread.
#[derive(Debug)]
struct State {
    /// True while the writer waits for lines.
    idle: bool,
    /// Time of the last write, or of the start of writing. Only valid while `idle` is false.
    since: Time,
}

/// Makes the line that reports a number of missing lines.
pub(super) type Missing = dyn Fn(u64) -> String + Send;

impl Outbox {
    /// Starts to write to `sink`.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
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

    /// Counter of dropped lines. The counter is updated as long as the process lives.
    pub(super) fn dropped(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.shared.dropped)
    }

    /// Waits until everything is written, but no longer than `within`. Returns true if everything is written.
    pub(super) fn empty(&self, within: Nanos) -> bool {
        self.shared.empty(self.shared.clock.now() + within)
    }

    /// Like [`Outbox::empty`], but the time since the last write counts towards `within`. If the sink is stuck, only the first of
    /// several callers waits.
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

/// Queues the bytes of each write as one line.
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

    /// Reserves room for `bytes`. Returns false if there is none.
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

    /// Counts one dropped line. Also puts back `others`, the number of missing lines that the dropped line would have reported.
    fn drop_one(&self, others: u64) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        self.missing.fetch_add(others + 1, Ordering::SeqCst);
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.missing.load(Ordering::SeqCst) == 0
    }

    /// Writes lines as long as the process lives.
    fn write(&self, mut sink: Box<dyn Write + Send>, missing: &Missing) {
        loop {
            {
                let mut state = self.state();
                state.idle = false;
                state.since = self.clock.now();
            }
            while !self.is_empty() {
                let entry = self.queue.pop();
                // Reports lines that were dropped after the last queued line.
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
            // A caller that queues a line unparks this thread afterwards.
            std::thread::park();
        }
    }

    /// Writes a line to its end, with any number of attempts. Half a line would spoil the next line.
    fn write_line(&self, sink: &mut dyn Write, mut line: &[u8]) {
        while !line.is_empty() {
            match sink.write(line) {
                Ok(taken) if taken > 0 => {
                    line = &line[taken..];
                    self.state().since = self.clock.now();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A full file system, or a pipe without a reader. The error cannot be reported, but may pass.
                Ok(_) | Err(_) => {
                    let retry = self.bounds.retry;
                    let state = self.state();
                    let waited = self.changed.wait_timeout_while(state, retry, |_| true);
                    drop(waited);
                }
            }
        }
    }

    /// Waits until everything is written, or until a time. Returns true if everything is written.
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
