//! Hashes that identify runs, equal on every machine.

use headtime_workload::Trace;

/// The hash of one text.
pub fn hash_of(text: &str) -> String {
    let mut hash = Hash::default();
    hash.text(text);
    hash.finish()
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv): short, and the same everywhere.
#[derive(Debug)]
pub(crate) struct Hash(u64);

impl Default for Hash {
    fn default() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Adds a text and its end.
    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
        self.bytes(&[0]);
    }

    /// Adds the requests of a trace.
    pub(crate) fn trace(&mut self, trace: &Trace) {
        trace.iter().for_each(|request| {
            // One step for eight bytes: a trace may have millions of requests.
            for word in request.words() {
                self.0 = (self.0 ^ word)
                    .wrapping_mul(0x0000_0100_0000_01b3)
                    .rotate_left(23);
            }
        });
    }

    pub(crate) fn finish(self) -> String {
        format!("{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        let mut hash = Hash::default();
        hash.bytes(b"foobar");
        // Test vector of the draft.
        assert_eq!(hash.finish(), "85944171f73967e8");
    }
}
