//! Device that answers at once, to measure the cost of all other parts.

use crate::device::{Aborted, Device, Done, Geometry, Parts};
use crate::request::Data;
use headtime_engine::DriveTag;
use headtime_sched::{Op, Request};
use headtime_units::{Sectors, Time};
use std::collections::VecDeque;

/// Device that reads as zeroes and drops the data of writes.
#[derive(Debug)]
pub struct Null {
    geometry: Geometry,
    done: VecDeque<Done>,
}

impl Null {
    /// Makes a device with `capacity` sectors of 512 bytes that takes `depth` commands at a time.
    pub fn new(capacity: Sectors, depth: u32) -> Null {
        Null {
            geometry: Geometry {
                capacity,
                sector_bytes: 512,
                depth,
                read_only: false,
                discards: true,
            },
            done: VecDeque::with_capacity(depth as usize),
        }
    }
}

impl Device for Null {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn discards_to_zeroes(&self) -> bool {
        true
    }

    fn submit(&mut self, now: Time, command: &Request<DriveTag>, mut parts: Parts) {
        if command.op == Op::Read {
            for part in &mut parts {
                if let Data::Buffer(buffer) = &mut part.data {
                    buffer.fill(0);
                }
            }
        }
        self.done.push_back(Done {
            tag: command.tag,
            at: now,
            result: Ok(()),
            parts,
        });
    }

    fn poll(&mut self, now: Time) -> Option<Done> {
        let mut done = self.done.pop_front()?;
        done.at = now;
        Some(done)
    }

    fn abort(&mut self, _now: Time, _tag: DriveTag) -> Aborted {
        Aborted::No
    }
}
