//! Memory for the data of requests.

use bytes::BytesMut;
use crossbeam_queue::ArrayQueue;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Alignment of buffers, which direct I/O requires. The memory of a buffer is rounded up to a multiple of the
/// alignment.
pub const ALIGNMENT: usize = 4096;

/// The largest buffer: for a request of 64 MiB that begins and ends within a sector.
pub const BUFFER_BYTES_MAX: usize = (64 << 20) + ALIGNMENT;

/// Range of classes: 2^12 to 2^26 bytes, with room for one sector more for requests that begin within a sector.
const CLASSES: std::ops::RangeInclusive<u32> = 12..=26;

/// Largest number of bytes of unused buffers that a pool retains, all sizes together. FUSE may have this much in flight
/// (128 requests of 1 MiB). An NBD connection may have half as much in flight by default. Buffers beyond the bound are
/// freed and allocated anew.
pub const KEPT_BYTES_MAX: usize = 128 << 20;

/// Largest number of unused buffers of one class: the default of a disk's unfinished requests.
const KEPT_OF_CLASS: usize = 4096;

/// A pool of buffers. Requests do not allocate while the load fits the pool's bound. A clone is the
/// same pool.
///
/// The pool retains returned buffers up to a bound in bytes. At the bound, the pool frees unused buffers of other sizes
/// than the returned one, the largest first.
#[derive(Clone)]
pub struct Pool(Arc<Kept>);

struct Kept {
    /// Unused buffers, by class.
    classes: Vec<ArrayQueue<BytesMut>>,
    /// Bytes of the unused buffers. Never less than the buffers have.
    bytes: AtomicUsize,
    max: usize,
}

impl Pool {
    /// An empty pool that retains up to [`KEPT_BYTES_MAX`].
    pub fn new() -> Pool {
        Pool::keeping(KEPT_BYTES_MAX)
    }

    /// An empty pool that retains up to `max` bytes.
    pub fn keeping(max: usize) -> Pool {
        // A queue needs room for at least one buffer, even if the pool may retain none.
        let most = |class: u32| (max / memory_of(class)).clamp(1, KEPT_OF_CLASS);
        Pool(Arc::new(Kept {
            classes: CLASSES.map(|class| ArrayQueue::new(most(class))).collect(),
            bytes: AtomicUsize::new(0),
            max,
        }))
    }

    /// Upper bound of the bytes that the pool retains. Buffers in use do not count.
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
            .unwrap_or_else(|| BytesMut::zeroed(memory_of(class)));
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        Buffer {
            memory,
            start: start as u16,
            len: len as u32,
            is_whole: true,
            home: self.clone(),
        }
    }
}

/// Bytes of memory of a buffer, with room to align the buffer. The allocator need not align then.
fn memory_of(class: u32) -> usize {
    (1 << class) + 2 * ALIGNMENT
}

impl Kept {
    fn pop(&self, index: usize) -> Option<BytesMut> {
        let memory = self.classes[index].pop()?;
        self.bytes.fetch_sub(memory.len(), Ordering::Relaxed);
        Some(memory)
    }

    /// Retains a whole buffer if there is room, otherwise frees it.
    fn put(&self, memory: BytesMut) {
        let len = memory.len();
        let index = ((len - 2 * ALIGNMENT).trailing_zeros() - CLASSES.start()) as usize;
        // The buffer is counted first and queued afterwards, so the queues never hold more than the count.
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

/// Memory for the data of one request, aligned to [`ALIGNMENT`]. A dropped buffer returns to its pool, unless the buffer
/// is a part of another.
pub struct Buffer {
    memory: BytesMut,
    start: u16,
    len: u32,
    /// False if the buffer is a part of another.
    is_whole: bool,
    home: Pool,
}

impl Buffer {
    /// Takes the first `len` bytes out, without a copy.
    pub(crate) fn split_to(&mut self, len: usize) -> Buffer {
        let first = Buffer {
            memory: self.memory.split_to(self.start as usize + len),
            start: self.start,
            len: len as u32,
            is_whole: false,
            home: self.home.clone(),
        };
        (self.start, self.len) = (0, self.len - first.len);
        self.is_whole = false;
        first
    }

    /// Adds the bytes that followed these in one buffer, without a copy.
    pub(crate) fn join(&mut self, mut next: Buffer) {
        self.memory.unsplit(std::mem::take(&mut next.memory));
        self.len += next.len;
    }

    /// Notes that all parts were joined again, so that the buffer returns to its pool.
    pub(crate) fn into_whole(mut self) -> Buffer {
        self.is_whole = true;
        self
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start as usize..][..self.len as usize]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start as usize..][..self.len as usize]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.is_whole {
            self.home.0.put(std::mem::take(&mut self.memory));
        }
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
    fn a_split_buffer_comes_back_when_all_parts_are_joined() {
        let pool = Pool::new();
        let mut rest = pool.take(64 << 20);
        let mut all = rest.split_to(1 << 20);
        let last = rest.split_to(32 << 20);
        assert_eq!(
            (all.len(), last.len(), rest.len()),
            (1 << 20, 32 << 20, 31 << 20)
        );
        all.join(last);
        all.join(rest);
        assert_eq!((all.len(), pool.kept_bytes()), (64 << 20, 0));
        drop(all.into_whole());
        assert_eq!(pool.kept_bytes(), memory_of(26));
        drop(pool.take(64 << 20).split_to(32 << 20));
        assert_eq!(pool.kept_bytes(), 0, "parts are freed");
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
        // FUSE has 128 buffers of 1 MiB at a time. One fewer fits, because alignment takes some memory.
        let first = addresses(&pool, 127, 1 << 20);
        assert_eq!(pool.kept_bytes(), 127 * memory_of(20));
        assert_eq!(addresses(&pool, 127, 1 << 20), first);
        // Small buffers displace the buffers of 1 MiB.
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
