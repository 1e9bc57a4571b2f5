//! Servers: pools of workers that carry out the calls of client processes.

use crate::waiters::Chain;
use headtime_workload::Random;

/// Separates the random numbers of pools from all others.
const PURPOSE: u32 = 0x706f_6f6c;

/// A server's workers.
#[derive(Debug)]
pub(crate) struct Pool {
    /// Idle workers, by the number that their requests carry.
    idle: Vec<u32>,
    /// Clients that wait for a worker.
    pub waiters: Chain,
    random: Random,
}

impl Pool {
    /// Makes a pool of workers that are numbered from `first` on. `seed` and the pool's `index`
    /// decide which worker takes a call.
    pub fn new(first: u32, workers: u32, seed: u64, index: u32) -> Pool {
        Pool {
            idle: (first..first + workers).collect(),
            waiters: Chain::default(),
            random: Random::new(seed, index, PURPOSE),
        }
    }

    /// Takes an idle worker at random, each with equal probability.
    pub fn take(&mut self) -> Option<u32> {
        let count = self.idle.len() as u64;
        if count == 0 {
            return None;
        }
        let at = self.random.below(count);
        Some(self.idle.swap_remove(at as usize))
    }

    /// Returns true if any worker is idle.
    pub fn has_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Notes that a worker has nothing to do.
    pub fn give_back(&mut self, worker: u32) {
        self.idle.push(worker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_idle_worker_is_as_likely_to_take_a_call() {
        let mut pool = Pool::new(10, 4, 1, 0);
        let mut counts = [0; 4];
        for _ in 0..4000 {
            let (one, other) = (pool.take().unwrap(), pool.take().unwrap());
            assert_ne!(one, other);
            counts[(one - 10) as usize] += 1;
            pool.give_back(one);
            pool.give_back(other);
        }
        // 1000 each, give or take five standard errors.
        assert!(
            counts.iter().all(|count| (863..=1137).contains(count)),
            "{counts:?}"
        );
        let taken: Vec<u32> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!(taken.len(), 4);
    }

    #[test]
    fn workers_are_drawn_by_seed_and_pool() {
        let draw = |seed, index| -> Vec<u32> {
            let mut pool = Pool::new(0, 8, seed, index);
            (0..20)
                .map(|_| {
                    let worker = pool.take().unwrap();
                    pool.give_back(worker);
                    worker
                })
                .collect()
        };
        assert_eq!(draw(1, 0), draw(1, 0));
        assert_ne!(draw(1, 0), draw(2, 0));
        assert_ne!(draw(1, 0), draw(1, 1));
    }
}
