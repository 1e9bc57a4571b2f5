//! The log of a disk's events and decisions on its way to a file.

use headtime_engine::log;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Writes on a thread of its own. If that is slower than the disk, the disk waits for it: a log
/// with gaps could not be replayed.
pub(super) struct Log {
    /// What comes next.
    pub text: String,
    /// How much of that is the header.
    header: usize,
    pieces: Option<SyncSender<String>>,
    written: Receiver<String>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Log {
    /// Handed on in pieces of about this size.
    const PIECE: usize = 1 << 16;
    /// So many pieces may wait to be written.
    const AHEAD: usize = 64;

    pub fn start(
        mut sink: Box<dyn Write + Send>,
        settings: &[(String, String)],
    ) -> io::Result<Log> {
        let (pieces, incoming) = sync_channel::<String>(Log::AHEAD);
        let (back, written) = sync_channel(Log::AHEAD + 2);
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
        let mut text = String::with_capacity(Log::PIECE + 4096);
        log::write_header(&mut text);
        for (key, value) in settings {
            log::write_setting(&mut text, key, value);
        }
        Ok(Log {
            header: text.len(),
            text,
            pieces: Some(pieces),
            written,
            thread: Some(thread),
        })
    }

    /// Whether there is more than a header: a disk that has done nothing may yet be given up.
    pub fn has_news(&self) -> bool {
        self.text.len() > self.header
    }

    pub fn flush_if_full(&mut self) {
        if self.text.len() >= Log::PIECE {
            self.flush();
        }
    }

    pub fn flush(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let next = self
            .written
            .try_recv()
            .unwrap_or_else(|_| String::with_capacity(Log::PIECE + 4096));
        let piece = std::mem::replace(&mut self.text, next);
        self.header = 0;
        if let Some(pieces) = &self.pieces {
            // It ends only after the sender is gone.
            let _ = pieces.send(piece);
        }
    }

    /// Writes what is left.
    pub fn finish(mut self) -> io::Result<()> {
        // Nobody was stopped while writing it.
        log::write_end(&mut self.text);
        self.flush();
        self.pieces = None;
        match self.thread.take() {
            Some(thread) => thread.join().expect("the log's thread does not panic"),
            None => Ok(()),
        }
    }
}
