//! Thread that makes progress durable, and the steps of a scrub's end.

use super::super::files::DurableFile;
use headtime_linux::shown::PathShown as _;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

/// Makes the progress durable on request, on a thread of its own. The thread ends when this value is dropped.
pub(super) struct Syncs {
    pub durable: Arc<DurableFile>,
    asks: SyncSender<()>,
}

impl Syncs {
    pub fn begin(durable: Arc<DurableFile>) -> io::Result<Syncs> {
        let (asks, told) = sync_channel(1);
        let file = Arc::clone(&durable);
        std::thread::Builder::new()
            .name("scrub-sync".to_owned())
            .spawn(move || {
                while told.recv().is_ok() {
                    if let Err(error) = file.sync() {
                        tracing::warn!("{}: {error}", file.path().shown());
                    }
                }
            })?;
        Ok(Syncs { durable, asks })
    }

    /// Requests a sync without waiting for it. Returns the error of an earlier sync.
    pub fn ask(&self) -> io::Result<()> {
        match self.asks.try_send(()) {
            // If a request is already queued, that one is enough.
            Ok(()) | Err(TrySendError::Full(())) => self.durable.problem(),
            Err(TrySendError::Disconnected(())) => Err(io::Error::other(
                "the thread that makes it durable has ended",
            )),
        }
    }
}

/// Step of the end of a scrub that hashes or copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Blocks are still to be done.
    NotYet,
    /// The sync of this number makes the results durable.
    Syncs(u64),
    /// The results are durable.
    Synced,
    /// The sync of this number makes the record of the end durable.
    Says(u64),
    /// The record of the end is durable.
    Said,
}

impl Ending {
    /// Next step after the sync `nth`. A sync that was requested before an error put the scrub on hold does not count.
    pub fn synced(self, nth: u64) -> Ending {
        match self {
            Ending::Syncs(asked) if asked == nth => Ending::Synced,
            Ending::Says(asked) if asked == nth => Ending::Said,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_that_was_asked_for_before_something_was_in_the_way_says_nothing() {
        for (ending, nth, then) in [
            (Ending::Syncs(2), 2, Ending::Synced),
            (Ending::Syncs(2), 1, Ending::Syncs(2)),
            (Ending::Says(3), 3, Ending::Said),
            (Ending::Says(3), 2, Ending::Says(3)),
            (Ending::NotYet, 1, Ending::NotYet),
            (Ending::Synced, 1, Ending::Synced),
        ] {
            assert_eq!(ending.synced(nth), then);
        }
    }
}
