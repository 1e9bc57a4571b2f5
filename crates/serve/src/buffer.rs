//! Where the data of requests lie.

use crossbeam_queue::ArrayQueue;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Buffers begin at a multiple of this, which direct I/O asks for, and their lengths are rounded up
/// to it.
pub const ALIGNMENT: usize = 4096;

/// The largest buffer, and so the largest request: 32 MiB, what an NBD client may send at most
/// unless it is told otherwise.
pub const BUFFER_BYTES_MAX: usize = 32 << 20;

/// The smallest and the largest class: 2^12 to 2^25 bytes.
const CLASSES: std::ops::RangeInclusive<u32> = 12..=25;

/// So many bytes of each class of buffers are kept for later; what is beyond goes back to the
/// system.
const KEPT_BYTES: usize = 16 << 20;

/// A store of buffers, so that a request does not allocate. A clone is the same pool.
#[derive(Clone)]
pub struct Pool(Arc<Vec<ArrayQueue<Vec<u8>>>>);

impl Pool {
    /// An empty pool.
    pub fn new() -> Pool {
        let kept = |class: u32| (KEPT_BYTES >> class).clamp(2, 1024);
        Pool(Arc::new(
            CLASSES.map(|class| ArrayQueue::new(kept(class))).collect(),
        ))
    }

    /// A buffer of `len` bytes. Its contents are whatever was there before: from an earlier request
    /// of the same server, or zero.
    ///
    /// # Panics
    ///
    /// If `len` is more than [`BUFFER_BYTES_MAX`].
    pub fn take(&self, len: usize) -> Buffer {
        assert!(len <= BUFFER_BYTES_MAX, "a buffer of {len} bytes");
        let class = len.max(ALIGNMENT).next_power_of_two().trailing_zeros();
        let index = (class - CLASSES.start()) as usize;
        // Room to align in, in place of an allocator that does.
        let memory = self.0[index]
            .pop()
            .unwrap_or_else(|| vec![0; (1 << class) + ALIGNMENT]);
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        Buffer {
            memory,
            start,
            len,
            home: self.clone(),
        }
    }
}

impl Default for Pool {
    fn default() -> Pool {
        Pool::new()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept: usize = self.0.iter().map(ArrayQueue::len).sum();
        write!(f, "Pool({kept} kept)")
    }
}

/// Memory for the data of one request, aligned to [`ALIGNMENT`]. Goes back to its pool when dropped.
pub struct Buffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
    home: Pool,
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        let class = (memory.len() - ALIGNMENT).trailing_zeros();
        // One that finds no room goes back to the system.
        let _ = self.home.0[(class - CLASSES.start()) as usize].push(memory);
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_come_back() {
        let pool = Pool::new();
        for len in [1, 512, 4096, 4097, 1 << 20, BUFFER_BYTES_MAX] {
            let mut buffer = pool.take(len);
            assert_eq!(buffer.len(), len);
            assert_eq!(buffer.as_ptr() as usize % ALIGNMENT, 0);
            buffer[len - 1] = 7;
            let at = buffer.as_ptr();
            drop(buffer);
            assert_eq!(pool.take(len).as_ptr(), at);
        }
    }

    #[test]
    #[should_panic(expected = "a buffer of")]
    fn a_buffer_too_large() {
        Pool::new().take(BUFFER_BYTES_MAX + 1);
    }
}
