//! Device that keeps data in memory and answers each command a fixed time after its arrival.

use headtime_engine::DriveTag;
use headtime_sched::{Op, Request};
use headtime_serve::device::{Aborted, Allocation, Device, Done, Geometry, Parts};
use headtime_serve::request::Data;
use headtime_units::{Extent, Nanos, Sectors, Time};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex};

/// Bytes of a piece of memory. Pieces that were never written are not allocated.
const PIECE: usize = 1 << 16;

#[derive(Debug, Default)]
struct Store(Mutex<BTreeMap<u64, Box<[u8]>>>);

pub struct Memory {
    geometry: Geometry,
    delay: Nanos,
    store: Arc<Store>,
    done: VecDeque<(Time, Done)>,
}

impl Memory {
    pub fn new(capacity: Sectors, sector_bytes: u32, delay: Nanos, discards: bool) -> Memory {
        Memory {
            geometry: Geometry {
                capacity,
                sector_bytes,
                depth: 256,
                read_only: false,
                discards,
            },
            delay,
            store: Arc::default(),
            done: VecDeque::new(),
        }
    }

    /// Calls `each` with each piece of an extent: its number, and the range of bytes within the piece.
    fn pieces(&self, extent: Extent, mut each: impl FnMut(u64, std::ops::Range<usize>)) {
        let bytes = u64::from(self.geometry.sector_bytes);
        let (mut at, end) = (extent.start.get() * bytes, extent.end().get() * bytes);
        while at < end {
            let from = (at % PIECE as u64) as usize;
            let to = (PIECE as u64).min(from as u64 + end - at) as usize;
            each(at / PIECE as u64, from..to);
            at += (to - from) as u64;
        }
    }

    fn execute(&mut self, op: Op, extent: Extent, data: &mut Data) {
        let mut store = self.store.0.lock().expect("no panic");
        let mut at = 0;
        match (op, data) {
            (Op::Read, Data::Buffer(buffer)) => self.pieces(extent, |piece, range| {
                let into = &mut buffer[at..at + range.len()];
                match store.get(&piece) {
                    Some(piece) => into.copy_from_slice(&piece[range.clone()]),
                    None => into.fill(0),
                }
                at += range.len();
            }),
            (Op::Write, Data::Buffer(buffer)) => self.pieces(extent, |piece, range| {
                let piece = store
                    .entry(piece)
                    .or_insert_with(|| vec![0; PIECE].into_boxed_slice());
                let from = &buffer[at..at + range.len()];
                at += range.len();
                piece[range].copy_from_slice(from);
            }),
            (Op::Discard, Data::None) | (Op::Write, Data::Zeroes { .. }) => {
                self.pieces(extent, |piece, range| {
                    if range.len() == PIECE {
                        store.remove(&piece);
                    } else if let Some(piece) = store.get_mut(&piece) {
                        piece[range].fill(0);
                    }
                });
            }
            (Op::Flush, Data::None) => {}
            (op, data) => panic!("{op:?} with {data:?}"),
        }
    }
}

impl Device for Memory {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn submit(&mut self, now: Time, command: &Request<DriveTag>, mut parts: Parts) {
        for part in &mut parts {
            self.execute(command.op, part.extent, &mut part.data);
        }
        let at = now + self.delay;
        let done = Done {
            tag: command.tag,
            at,
            result: Ok(()),
            parts,
        };
        self.done.push_back((at, done));
    }

    fn poll(&mut self, now: Time) -> Option<Done> {
        if self.next_event()? > now {
            return None;
        }
        self.done.pop_front().map(|(_, done)| done)
    }

    fn next_event(&self) -> Option<Time> {
        Some(self.done.front().map_or(Time::NEVER, |(at, _)| *at))
    }

    fn abort(&mut self, _: Time, _: DriveTag) -> Aborted {
        Aborted::No
    }

    fn discards_to_zeroes(&self) -> bool {
        true
    }

    fn allocation(&self) -> Option<Arc<dyn Allocation>> {
        Some(Arc::clone(&self.store) as Arc<_>)
    }
}

impl Allocation for Store {
    fn status(&self, offset: u64, len: u64) -> io::Result<(bool, u64)> {
        let piece = offset / PIECE as u64;
        let there = self.0.lock().expect("no panic").contains_key(&piece);
        let alike = (piece + 1) * PIECE as u64 - offset;
        Ok((there, alike.min(len)))
    }
}
