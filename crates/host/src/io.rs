//! Outstanding requests.

use crate::cache::PageId;
use crate::file::NONE;
use crate::waiters::Chain;

/// Purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Brings pages into memory.
    Read,
    /// Writes dirty pages of this file, or blocks if the number is [`NONE`]. No process waits for
    /// this request in particular.
    WriteBack(u32),
    /// Writes dirty pages of this file for a process that waits in a sync.
    Sync(u32),
    /// Bypasses the page cache, for this process.
    Direct(u32),
    /// Flushes the drive's cache, for this process.
    Flush(u32),
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Io {
    pub purpose: Purpose,
    /// First page of the request, and number of pages.
    pub first: PageId,
    pub pages: u32,
    /// Processes that sleep until the request completes.
    pub waiters: Chain,
    /// Distinguishes the request from others in the same slot; zero if the slot is free.
    serial: u64,
    next_free: u32,
}

/// All requests under way, by slot.
#[derive(Debug)]
pub(crate) struct Ios {
    slots: Vec<Io>,
    free: u32,
    serial: u64,
    pub outstanding: u64,
}

/// Bits of a cookie that name the slot.
const SLOT_BITS: u32 = 24;

impl Ios {
    pub fn new() -> Ios {
        Ios {
            slots: Vec::new(),
            free: NONE,
            serial: 0,
            outstanding: 0,
        }
    }

    /// Adds a request without pages. Returns its slot.
    pub fn add(&mut self, purpose: Purpose) -> u32 {
        self.serial += 1;
        self.outstanding += 1;
        let io = Io {
            purpose,
            first: 0,
            pages: 0,
            waiters: Chain::default(),
            serial: self.serial,
            next_free: NONE,
        };
        if self.free == NONE {
            assert!(
                self.slots.len() < 1 << SLOT_BITS,
                "too many requests at once"
            );
            self.slots.push(io);
            return self.slots.len() as u32 - 1;
        }
        let slot = self.free;
        self.free = self.slots[slot as usize].next_free;
        self.slots[slot as usize] = io;
        slot
    }

    pub fn get_mut(&mut self, slot: u32) -> &mut Io {
        &mut self.slots[slot as usize]
    }

    /// Cookie of the request in a slot.
    pub fn cookie(&self, slot: u32) -> u64 {
        let serial = self.slots[slot as usize].serial % (1 << (64 - SLOT_BITS));
        serial << SLOT_BITS | u64::from(slot)
    }

    /// Removes a completed request. Returns its slot and its data.
    pub fn remove(&mut self, cookie: u64) -> (u32, Io) {
        let slot = (cookie % (1 << SLOT_BITS)) as u32;
        let io = self
            .slots
            .get(slot as usize)
            .copied()
            .filter(|io| io.serial != 0 && self.cookie(slot) == cookie)
            .unwrap_or_else(|| panic!("no request {cookie} is under way"));
        self.outstanding -= 1;
        self.slots[slot as usize].serial = 0;
        self.slots[slot as usize].next_free = self.free;
        self.free = slot;
        (slot, io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_never_used_again() {
        let mut ios = Ios::new();
        let first = ios.add(Purpose::Read);
        let cookie = ios.cookie(first);
        assert_eq!(ios.remove(cookie).0, first);
        let second = ios.add(Purpose::Read);
        assert_eq!(second, first, "the slot is");
        assert_ne!(ios.cookie(second), cookie);
        assert_eq!(ios.outstanding, 1);
    }

    #[test]
    #[should_panic(expected = "is under way")]
    fn a_request_that_completes_twice_panics() {
        let mut ios = Ios::new();
        let slot = ios.add(Purpose::Read);
        let cookie = ios.cookie(slot);
        ios.remove(cookie);
        ios.remove(cookie);
    }
}
