//! Memory for the data of requests.

use crossbeam_queue::ArrayQueue;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Buffers begin at a multiple of this, which direct I/O asks for, and their lengths are rounded up
/// to it.
pub const ALIGNMENT: usize = 4096;

/// The largest buffer: for a request of 64 MiB that begins and ends within a sector.
pub const BUFFER_BYTES_MAX: usize = (64 << 20) + ALIGNMENT;

/// The smallest and the largest class: 2^12 to 2^26 bytes, and a sector more for requests that begin within one.
const CLASSES: std::ops::RangeInclusive<u32> = 12..=26;

/// The most bytes of buffers that a pool keeps for later, all sizes together: what FUSE may have in
/// flight
/// (128 requests of 1 MiB), and twice what a connection over NBD may by default. Load beyond that
/// goes back to the system and is allocated anew.
pub const KEPT_BYTES_MAX: usize = 128 << 20;

/// Of one class no more are kept than a disk has unfinished requests by default.
const KEPT_OF_CLASS: usize = 4096;

/// A pool of buffers. Requests do not allocate while the load fits the pool's bound. A clone is the
/// same pool.
///
/// The pool keeps returned buffers up to a bound in bytes. When it reaches the bound, it frees
/// buffers of other sizes than those in use now, the largest first.
#[derive(Clone)]
pub struct Pool(Arc<Kept>);

struct Kept {
    /// By class.
    classes: Vec<ArrayQueue<Vec<u8>>>,
    /// Never less than they have.
    bytes: AtomicUsize,
    max: usize,
}

impl Pool {
    /// An empty pool that keeps up to [`KEPT_BYTES_MAX`].
    pub fn new() -> Pool {
        Pool::keeping(KEPT_BYTES_MAX)
    }

    /// An empty pool that keeps up to `max` bytes for later.
    pub fn keeping(max: usize) -> Pool {
        // One that can have no buffers has a queue all the same.
        let most = |class: u32| (max / memory_of(class)).clamp(1, KEPT_OF_CLASS);
        Pool(Arc::new(Kept {
            classes: CLASSES.map(|class| ArrayQueue::new(most(class))).collect(),
            bytes: AtomicUsize::new(0),
            max,
        }))
    }

    /// Bytes that it keeps for later, at most; buffers that are in use are not among them.
    pub fn kept_bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// A buffer of `len` bytes. It contains zeroes, or data of an earlier request of the same
    /// server.
    ///
    /// # Panics
    ///
    /// If `len` is more than [`BUFFER_BYTES_MAX`].
    pub fn take(&self, len: usize) -> Buffer {
        assert!(len <= BUFFER_BYTES_MAX, "a buffer of {len} bytes");
        let most = len.saturating_sub(ALIGNMENT).max(ALIGNMENT);
        let class = most.next_power_of_two().trailing_zeros();
        let index = (class - CLASSES.start()) as usize;
        let memory = self
            .0
            .pop(index)
            .unwrap_or_else(|| vec![0; memory_of(class)]);
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        Buffer {
            memory,
            start,
            len,
            home: self.clone(),
        }
    }
}

/// Bytes of memory of a buffer: there is room to align in, in place of an allocator that does.
fn memory_of(class: u32) -> usize {
    (1 << class) + 2 * ALIGNMENT
}

impl Kept {
    fn pop(&self, index: usize) -> Option<Vec<u8>> {
        let memory = self.classes[index].pop()?;
        self.bytes.fetch_sub(memory.len(), Ordering::Relaxed);
        Some(memory)
    }

    /// Keeps a buffer if there is room, else frees it.
    fn put(&self, memory: Vec<u8>) {
        let len = memory.len();
        let index = ((len - 2 * ALIGNMENT).trailing_zeros() - CLASSES.start()) as usize;
        // It is counted before it is there: what is there is never more than what is counted.
        while self.bytes.fetch_add(len, Ordering::Relaxed) + len > self.max {
            self.bytes.fetch_sub(len, Ordering::Relaxed);
            let mut others = (0..self.classes.len())
                .rev()
                .filter(|other| *other != index);
            if len > self.max || others.find_map(|other| self.pop(other)).is_none() {
                return;
            }
        }
        if self.classes[index].push(memory).is_err() {
            self.bytes.fetch_sub(len, Ordering::Relaxed);
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
        write!(f, "Pool({} bytes kept)", self.kept_bytes())
    }
}

/// Memory for the data of one request, aligned to [`ALIGNMENT`]. Returns to its pool when dropped.
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
        self.home.0.put(std::mem::take(&mut self.memory));
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
    fn what_can_be_in_flight_is_kept_and_no_more() {
        let pool = Pool::new();
        let addresses = |pool: &Pool, count: usize, len: usize| {
            let buffers: Vec<Buffer> = (0..count).map(|_| pool.take(len)).collect();
            let mut all: Vec<_> = buffers.iter().map(|buffer| buffer.as_ptr()).collect();
            all.sort_unstable();
            all
        };
        // As many of 1 MiB as FUSE has at a time, but for what is lost to alignment.
        let first = addresses(&pool, 127, 1 << 20);
        assert_eq!(pool.kept_bytes(), 127 * memory_of(20));
        assert_eq!(addresses(&pool, 127, 1 << 20), first);
        // Small ones displace them.
        let small = addresses(&pool, 4096, 4096);
        assert_eq!(addresses(&pool, 4096, 4096), small);
        for (count, len) in [(400, 1 << 20), (9, BUFFER_BYTES_MAX), (5000, 4096), (3, 1)] {
            addresses(&pool, count, len);
            let there: usize = pool
                .0
                .classes
                .iter()
                .enumerate()
                .fold(0, |sum, (index, class)| {
                    sum + class.len() * memory_of(CLASSES.start() + index as u32)
                });
            assert_eq!(pool.kept_bytes(), there);
            assert!(there <= KEPT_BYTES_MAX, "{there} bytes");
        }
    }

    #[test]
    fn a_pool_that_keeps_nothing() {
        let pool = Pool::keeping(0);
        drop((pool.take(1), pool.take(BUFFER_BYTES_MAX)));
        assert_eq!(pool.kept_bytes(), 0);
    }

    #[test]
    fn threads_share_a_pool_within_its_bound() {
        let pool = Pool::keeping(1 << 20);
        std::thread::scope(|scope| {
            for thread in 0..4usize {
                let pool = &pool;
                scope.spawn(move || {
                    for round in 0..2000usize {
                        let kept: Vec<Buffer> = (0..round % 7)
                            .map(|n| pool.take(4096 << ((n + thread) % 6)))
                            .collect();
                        assert!(pool.0.classes.iter().all(|class| class.len() < 200));
                        drop(kept);
                    }
                });
            }
        });
        assert!(pool.kept_bytes() <= 1 << 20);
    }

    #[test]
    #[should_panic(expected = "a buffer of")]
    fn a_buffer_above_the_limit_panics() {
        Pool::new().take(BUFFER_BYTES_MAX + 1);
    }
}
