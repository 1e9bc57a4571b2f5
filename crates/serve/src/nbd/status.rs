//! Block status: the allocated parts of an export, as the protocol encodes them.

use super::wire::{BASE_ALLOCATION_ID, state};
use crate::buffer::{Buffer, Pool};
use crate::device::Allocation;
use crate::request::{Failure, Kind};

/// Most descriptors in one reply. Each costs the device a search. A client that needs more asks again.
const DESCRIPTORS_MAX: usize = 128;

/// Question about the bytes from `offset` to `offset + len`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Query {
    pub(super) offset: u64,
    pub(super) len: u32,
    /// True if the client wants one descriptor only.
    pub(super) one: bool,
}

impl Query {
    /// Answer for a device that does not know: all bytes are data.
    pub(super) fn all_data(&self, pool: &Pool) -> Buffer {
        encode(&[(self.len, 0)], pool)
    }

    /// Answer by the device's allocation.
    pub(super) fn answer(
        &self,
        allocation: &dyn Allocation,
        pool: &Pool,
    ) -> Result<Buffer, Failure> {
        let failure = |errno| Failure {
            kind: Kind::Device,
            at: None,
            errno,
        };
        let mut descriptors: Vec<(u32, u32)> = Vec::new();
        let mut told = 0;
        while told < self.len {
            let left = self.len - told;
            let (allocated, alike) = allocation
                .status(self.offset + u64::from(told), left.into())
                .map_err(|error| failure(error.raw_os_error()))?;
            // The length is at most `left`, so it fits 32 bits.
            let (len, flags) = match (allocated, alike.min(left.into()) as u32) {
                (_, 0) => (left, 0),
                (true, len) => (len, 0),
                (false, len) => (len, state::HOLE | state::ZERO),
            };
            let full = descriptors.len() == self.descriptors_max();
            match descriptors.last_mut() {
                Some((last, same)) if *same == flags => *last += len,
                _ if full => break,
                _ => descriptors.push((len, flags)),
            }
            told += len;
        }
        Ok(encode(&descriptors, pool))
    }

    fn descriptors_max(&self) -> usize {
        if self.one { 1 } else { DESCRIPTORS_MAX }
    }
}

fn encode(descriptors: &[(u32, u32)], pool: &Pool) -> Buffer {
    let mut buffer = pool.take(4 + 8 * descriptors.len());
    let (id, rest) = buffer.split_at_mut(4);
    id.copy_from_slice(&BASE_ALLOCATION_ID.to_be_bytes());
    for (bytes, (len, flags)) in rest.chunks_exact_mut(8).zip(descriptors) {
        bytes[..4].copy_from_slice(&len.to_be_bytes());
        bytes[4..].copy_from_slice(&flags.to_be_bytes());
    }
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nbd::wire::u32_at;
    use std::io;

    /// Lengths of runs, alternately allocated and not, beginning with an allocated one.
    #[derive(Debug)]
    struct Runs(Vec<u64>);

    impl Allocation for Runs {
        fn status(&self, offset: u64, len: u64) -> io::Result<(bool, u64)> {
            let mut end = 0;
            for (index, run) in self.0.iter().enumerate() {
                end += run;
                if offset < end {
                    return Ok((index % 2 == 0, (end - offset).min(len)));
                }
            }
            Err(io::Error::from_raw_os_error(5))
        }
    }

    fn ask(runs: &[u64], offset: u64, len: u32, one: bool) -> Result<Vec<(u32, u32)>, Failure> {
        let query = Query { offset, len, one };
        let buffer = query.answer(&Runs(runs.to_vec()), &Pool::new())?;
        assert_eq!(u32_at(&buffer, 0), BASE_ALLOCATION_ID);
        let pairs = buffer[4..].chunks_exact(8);
        Ok(pairs
            .map(|pair| (u32_at(pair, 0), u32_at(pair, 4)))
            .collect())
    }

    #[test]
    fn status_tells_runs_of_data_and_holes() {
        let runs = [4096, 8192, 4096];
        let all = vec![(4096, 0), (8192, 3), (4096, 0)];
        assert_eq!(ask(&runs, 0, 16384, false), Ok(all));
        assert_eq!(ask(&runs, 0, 16384, true), Ok(vec![(4096, 0)]));
        assert_eq!(
            ask(&runs, 2048, 4096, false),
            Ok(vec![(2048, 0), (2048, 3)])
        );
    }

    #[test]
    fn status_is_told_to_the_byte() {
        assert_eq!(
            ask(&[100, 1024, 924], 3, 1200, false),
            Ok(vec![(97, 0), (1024, 3), (79, 0)])
        );
    }

    #[test]
    fn many_runs_are_told_in_part() {
        let runs = vec![512; 1000];
        let told = ask(&runs, 0, 512_000, false).expect("can be told");
        assert_eq!(told.len(), DESCRIPTORS_MAX);
        assert!(told.iter().all(|(len, _)| *len == 512));
    }

    #[test]
    fn a_device_that_cannot_tell() {
        let error = ask(&[512], 0, 1024, false).expect_err("beyond the runs");
        assert_eq!(error.errno, Some(5));
    }
}
