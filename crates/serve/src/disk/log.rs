//! Writes the log of a disk's events and decisions to a file.

use headtime_engine::log::{Sink, Writer};
use std::io::{self, ErrorKind, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Writes a log on a thread of its own. If the log is slower than the disk, the disk waits, because a log with gaps
/// could not be replayed. If nothing gets written for long, the log ends and the disk goes on.
pub(super) struct LogThread {
    /// Channel to the log's thread; `None` once the log has ended.
    pieces: Option<SyncSender<String>>,
    written: Receiver<String>,
    thread: Option<JoinHandle<io::Result<()>>>,
    patience: Duration,
    given_up: bool,
}

impl LogThread {
    /// Number of pieces that may wait to be written.
    const AHEAD: usize = 64;
    /// Longest time for which the disk waits for a piece to be written. A slow file system needs patience. The bound is
    /// for a pipe without a reader, and for a file on a disk that itself waits for this disk.
    const PATIENCE: Duration = Duration::from_secs(10);

    pub fn start(sink: Box<dyn Write + Send>) -> io::Result<LogThread> {
        LogThread::with_patience(sink, LogThread::PATIENCE)
    }

    fn with_patience(mut sink: Box<dyn Write + Send>, patience: Duration) -> io::Result<LogThread> {
        let (pieces, incoming) = sync_channel::<String>(LogThread::AHEAD);
        let (back, written) = sync_channel(LogThread::AHEAD + 2);
        let thread = std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || {
                let mut result = Ok(());
                while let Ok(mut piece) = incoming.recv() {
                    if result.is_ok() {
                        result = sink.write_all(piece.as_bytes());
                        if let Err(error) = &result {
                            tracing::error!("the log cannot be written and ends here: {error}");
                        }
                    }
                    piece.clear();
                    let _ = back.try_send(piece);
                }
                result.and_then(|()| sink.flush())
            })?;
        Ok(LogThread {
            pieces: Some(pieces),
            written,
            thread: Some(thread),
            patience,
            given_up: false,
        })
    }

    /// Ends the log. Pieces that were handed on may still be written, but no piece follows them.
    fn give_up(&mut self) {
        tracing::error!("the log ends here: {}", self.stuck());
        self.given_up = true;
        self.pieces = None;
    }

    fn stuck(&self) -> io::Error {
        let patience = self.patience.as_secs_f64();
        io::Error::new(
            ErrorKind::TimedOut,
            format!("nothing of it was taken for {patience} s"),
        )
    }

    /// Waits until everything is written.
    ///
    /// # Errors
    ///
    /// If the log could not be written. If writing makes no progress, the log's thread is left running.
    pub fn finish(mut self) -> io::Result<()> {
        self.pieces = None;
        while !self.given_up {
            match self.written.recv_timeout(self.patience) {
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => self.give_up(),
                // The thread has ended or is about to end, so the join below takes no time.
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        match self.thread.take() {
            _ if self.given_up => Err(self.stuck()),
            Some(thread) => thread.join().expect("the log's thread does not panic"),
            None => Ok(()),
        }
    }
}

impl Sink for LogThread {
    fn hand_on(&mut self, piece: &mut String) {
        let Some(pieces) = &self.pieces else {
            piece.clear();
            return;
        };
        let mut spare = self.written.try_recv().ok();
        let mut sent = pieces.try_send(std::mem::take(piece));
        while let Err(TrySendError::Full(piece)) = sent {
            // The queue has room once a piece has been written. The piece may also have been written before and not
            // been noticed.
            match self.written.recv_timeout(self.patience) {
                Ok(written) => {
                    spare = Some(written);
                    sent = pieces.try_send(piece);
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.give_up();
                    break;
                }
                // The log's thread has panicked. The panic is reported when the log is finished.
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        *piece = spare.unwrap_or_else(Writer::<LogThread>::piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};
    use std::sync::{Arc, Mutex};

    /// Longer than any test.
    const AGES: Duration = Duration::from_secs(3600);

    /// Sink that takes the number of bytes that the test sends. Waits for each number, and fails once the test has
    /// dropped the sender.
    struct Told {
        told: Receiver<usize>,
        taken: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Told {
        fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
            let most = self.told.recv().map_err(io::Error::other)?;
            let len = piece.len().min(most);
            self.taken.lock().unwrap().extend_from_slice(&piece[..len]);
            Ok(len)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn log(patience: Duration) -> (LogThread, Sender<usize>, Arc<Mutex<Vec<u8>>>) {
        let (tell, told) = channel();
        let taken = Arc::default();
        let sink = Told {
            told,
            taken: Arc::clone(&taken),
        };
        let log = LogThread::with_patience(Box::new(sink), patience).unwrap();
        (log, tell, taken)
    }

    /// Hands on one piece for each number of the range.
    fn fill(log: &mut LogThread, pieces: std::ops::Range<usize>) {
        for number in pieces {
            let mut piece = format!("{number} ");
            log.hand_on(&mut piece);
            assert!(piece.is_empty());
        }
    }

    #[test]
    fn a_log_that_nobody_takes_ends_and_the_disk_goes_on() {
        let (mut log, _tell, taken) = log(Duration::from_millis(20));
        fill(&mut log, 0..10 * LogThread::AHEAD);
        let error = log.finish().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert_eq!(error.to_string(), "nothing of it was taken for 0.02 s");
        assert!(taken.lock().unwrap().is_empty());
    }

    #[test]
    fn a_log_that_nobody_takes_at_the_end_is_left_behind() {
        let (mut log, _tell, _) = log(Duration::from_millis(20));
        log.hand_on(&mut "news".to_owned());
        assert_eq!(log.finish().unwrap_err().kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn a_log_that_is_taken_in_bits_is_waited_for_and_whole() {
        let (mut log, tell, taken) = log(AGES);
        let slow = std::thread::spawn(move || {
            // Sending fails once the log's thread has ended.
            while tell.send(3).is_ok() {
                std::thread::yield_now();
            }
        });
        fill(&mut log, 0..10 * LogThread::AHEAD);
        log.finish().unwrap();
        slow.join().unwrap();
        let whole: String = (0..10 * LogThread::AHEAD)
            .map(|number| format!("{number} "))
            .collect();
        let taken = String::from_utf8(taken.lock().unwrap().clone()).unwrap();
        assert_eq!(taken, whole);
    }

    #[test]
    fn a_log_that_cannot_be_written_is_not_waited_for() {
        let (mut log, tell, _) = log(AGES);
        drop(tell);
        fill(&mut log, 0..10 * LogThread::AHEAD);
        assert_eq!(log.finish().unwrap_err().kind(), ErrorKind::Other);
    }

    /// Pieces that were handed on before the log was given up on are written if possible. Later pieces are dropped, as
    /// they would leave a gap.
    #[test]
    fn a_log_that_was_given_up_on_has_no_gap() {
        let (mut log, tell, taken) = log(Duration::from_millis(20));
        fill(&mut log, 0..10 * LogThread::AHEAD);
        // The thread may end before it has received every number.
        while tell.send(usize::MAX).is_ok() {
            std::thread::yield_now();
        }
        // The thread ends when it has taken the last piece.
        let thread = log.thread.take().unwrap();
        thread.join().unwrap().unwrap();
        let taken = String::from_utf8(taken.lock().unwrap().clone()).unwrap();
        let mut whole = String::new();
        (0..10 * LogThread::AHEAD).for_each(|number| whole.push_str(&format!("{number} ")));
        assert!(whole.starts_with(&taken), "{taken}");
        let numbers = taken.split_terminator(' ').count();
        // There is one piece more if the thread took the first piece off the queue before the queue was full.
        assert!(
            (LogThread::AHEAD..=LogThread::AHEAD + 1).contains(&numbers),
            "{taken}"
        );
        assert_eq!(log.finish().unwrap_err().kind(), ErrorKind::TimedOut);
    }
}
