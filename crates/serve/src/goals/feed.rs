//! Notes of a disk's requests, from the disk's thread to the planner.
//!
//! The thread never waits and never allocates. If there is no room for a request, neither the request nor its end is
//! noted, and the request is counted.

use crossbeam_queue::ArrayQueue;
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Sectors, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Largest number of notes that wait to be taken: 20 ms at 800,000 requests a second.
const NOTES_MAX: usize = 1 << 15;

/// Bytes of a sector in notes, for any sector size of the disk.
pub const SECTOR_BYTES: u32 = 512;

/// Event of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The request arrived at the disk.
    Asked {
        /// Kind of the request.
        op: Op,
        /// Sectors of [`SECTOR_BYTES`].
        extent: Extent,
    },
    /// The request is over.
    Done {
        /// Bytes that were read or written without error.
        bytes: u64,
    },
}

/// Note of an event of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Time of the disk's thread. Ascends within a disk.
    pub at: Time,
    /// Number of the program; 0 if none is known.
    pub program: u16,
    /// The event.
    pub what: What,
}

/// Sending end, for a disk's thread.
#[derive(Debug)]
pub struct Feed {
    notes: Arc<ArrayQueue<Note>>,
    unseen: Arc<AtomicU64>,
    /// Number of noted requests that are not over. There is room for the notes of their ends.
    noted: usize,
}

/// Receiving end, for the planner.
#[derive(Debug)]
pub struct Notes {
    notes: Arc<ArrayQueue<Note>>,
    unseen: Arc<AtomicU64>,
}

/// Makes both ends.
pub fn feed() -> (Feed, Notes) {
    feed_of(NOTES_MAX)
}

fn feed_of(notes_max: usize) -> (Feed, Notes) {
    let notes = Arc::new(ArrayQueue::new(notes_max));
    let unseen = Arc::new(AtomicU64::new(0));
    let feed = Feed {
        notes: Arc::clone(&notes),
        unseen: Arc::clone(&unseen),
        noted: 0,
    };
    (feed, Notes { notes, unseen })
}

impl Feed {
    /// Notes a request that arrives. Returns false if there is no room. In this case [`Feed::done`] must not be called
    /// for the request.
    pub fn asked(
        &mut self,
        at: Time,
        program: u16,
        op: Op,
        extent: Extent,
        sector_bytes: u32,
    ) -> bool {
        if self.notes.len() + self.noted + 2 > self.notes.capacity() {
            self.unseen.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        let scale = u64::from(sector_bytes / SECTOR_BYTES);
        let extent = Extent::new(
            Lba::new(extent.start.get() * scale),
            Sectors::new(extent.len.get() * scale),
        );
        let what = What::Asked { op, extent };
        self.note(Note { at, program, what });
        self.noted += 1;
        true
    }

    /// Notes the end of a request that was noted.
    pub fn done(&mut self, at: Time, program: u16, bytes: u64) {
        self.noted -= 1;
        let what = What::Done { bytes };
        self.note(Note { at, program, what });
    }

    fn note(&self, note: Note) {
        let noted = self.notes.push(note);
        noted.expect("there is room for the ends of all requests that were noted");
    }
}

impl Notes {
    /// Takes the notes that there are now.
    pub fn take(&self) -> impl Iterator<Item = Note> + '_ {
        (0..self.notes.len()).map_while(|_| self.notes.pop())
    }

    /// Number of requests so far for which there was no room.
    pub fn unseen(&self) -> u64 {
        self.unseen.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_without_room_stays_unknown_and_no_end_is_lost() {
        let (mut feed, notes) = feed_of(4);
        let at = Time::from_nanos;
        let ask = |feed: &mut Feed, time| feed.asked(at(time), 1, Op::Read, Extent::at(1, 2), 4096);
        assert!(ask(&mut feed, 1) && ask(&mut feed, 2));
        // Two notes, and room for two ends.
        assert!(!ask(&mut feed, 3));
        feed.done(at(4), 1, 8192);
        feed.done(at(5), 1, 8192);
        let taken: Vec<Note> = notes.take().collect();
        let times: Vec<u64> = taken.iter().map(|note| note.at.as_nanos()).collect();
        assert_eq!((times, notes.unseen()), (vec![1, 2, 4, 5], 1));
        let extent = Extent::at(8, 16);
        assert_eq!(
            taken[0].what,
            What::Asked {
                op: Op::Read,
                extent
            }
        );
        assert_eq!(taken[3].what, What::Done { bytes: 8192 });
        assert!(ask(&mut feed, 6));
    }
}
