//! Runs many tasks on many threads, and hands their results to one thread. All runs of simulations are made this way.

use crate::fault::Fault;
use rayon::prelude::*;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Time without a result after which [`Taker::wait`] is called.
const PATIENCE: Duration = Duration::from_millis(100);

/// Receiver of results, on the calling thread.
pub trait Taker<R> {
    /// Takes the result of the task of this number as soon as the result is there, in any order.
    fn take(&mut self, number: usize, result: R) -> ControlFlow<()>;

    /// Called now and then while no result is there.
    fn wait(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Makes all tasks in their order on separate threads, `jobs` at a time or as many as there are processors. The calling thread takes the
/// results. After the taker breaks off, no further task starts, and running tasks are waited for.
///
/// # Errors
///
/// If threads cannot be started.
pub fn each<T: Send, R: Send>(
    jobs: Option<u16>,
    tasks: Vec<T>,
    make: impl Fn(T) -> R + Sync,
    taker: &mut impl Taker<R>,
) -> Result<(), Fault> {
    let pool = pool(jobs)?;
    let over = AtomicBool::new(false);
    let (results, made) = mpsc::channel();
    pool.in_place_scope_fifo(|scope| {
        for (number, task) in tasks.into_iter().enumerate() {
            let (results, make, over) = (results.clone(), &make, &over);
            scope.spawn_fifo(move |_| {
                if !over.load(Ordering::Relaxed) {
                    // The channel has no receiver once the taker has broken off.
                    let _ = results.send((number, make(task)));
                }
            });
        }
        // Without this the thread would wait for itself.
        drop(results);
        loop {
            let next = match made.recv_timeout(PATIENCE) {
                Ok((number, result)) => taker.take(number, result),
                Err(RecvTimeoutError::Timeout) => taker.wait(),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if next.is_break() {
                over.store(true, Ordering::Relaxed);
                break;
            }
        }
    });
    Ok(())
}

/// The results of all tasks, in the order of the tasks. One task, or one at a time, is made on the
/// calling thread.
///
/// # Errors
///
/// If threads cannot be started.
pub fn all<T: Send, R: Send>(
    jobs: Option<u16>,
    tasks: Vec<T>,
    make: impl Fn(T) -> R + Sync + Send,
) -> Result<Vec<R>, Fault> {
    if tasks.len() <= 1 || jobs == Some(1) {
        return Ok(tasks.into_iter().map(make).collect());
    }
    let tasks = tasks.into_par_iter().with_max_len(1);
    Ok(pool(jobs)?.install(|| tasks.map(make).collect()))
}

fn pool(jobs: Option<u16>) -> Result<rayon::ThreadPool, Fault> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(jobs.unwrap_or(0).into())
        .build()
        .map_err(|error| Fault::File(format!("cannot start threads: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn results_come_in_the_order_of_the_tasks_whatever_is_done_first() {
        for jobs in [Some(1), Some(3), None] {
            let spin = |number: usize| {
                // The first task takes longest.
                let rounds = (100 - number) * 1000;
                let sum = (0..rounds).fold(0_u64, |sum, step| sum.wrapping_mul(3) ^ step as u64);
                (number, sum)
            };
            let got = all(jobs, (0..100).collect(), spin).unwrap();
            let numbers: Vec<usize> = got.into_iter().map(|(number, _)| number).collect();
            assert_eq!(numbers, (0..100).collect::<Vec<_>>(), "{jobs:?}");
        }
        assert!(all(None, Vec::<u8>::new(), |task| task).unwrap().is_empty());
    }

    /// Hangs if the tasks are made one after the other.
    #[test]
    fn so_many_are_made_at_a_time() {
        let all_there = Barrier::new(3);
        let meet = |_: u8| all_there.wait().is_leader();
        let leaders = all(Some(3), vec![1, 2, 3], meet).unwrap();
        assert_eq!(leaders.into_iter().filter(|leader| *leader).count(), 1);
    }

    #[test]
    fn nothing_begins_once_the_taker_has_broken_off() {
        struct Three(usize);
        impl Taker<()> for Three {
            fn take(&mut self, _: usize, (): ()) -> ControlFlow<()> {
                self.0 += 1;
                match self.0 {
                    3 => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                }
            }
        }
        for jobs in [Some(1), Some(3)] {
            let begun = AtomicUsize::new(0);
            let mut taker = Three(0);
            let make = |_: usize| {
                begun.fetch_add(1, Ordering::Relaxed);
                // Gives the taker time to break off before all have begun.
                std::thread::yield_now();
                (0..20_000).fold((), |(), _| std::hint::spin_loop());
            };
            each(jobs, (0..10_000).collect(), make, &mut taker).unwrap();
            assert_eq!(taker.0, 3, "{jobs:?}");
            assert!(begun.load(Ordering::Relaxed) < 10_000, "{jobs:?}");
        }
    }

    #[test]
    fn a_taker_is_asked_while_a_task_takes_long() {
        struct Patient<'a>(&'a AtomicBool);
        impl Taker<()> for Patient<'_> {
            fn take(&mut self, _: usize, (): ()) -> ControlFlow<()> {
                ControlFlow::Continue(())
            }
            fn wait(&mut self) -> ControlFlow<()> {
                self.0.store(true, Ordering::Relaxed);
                ControlFlow::Continue(())
            }
        }
        let asked = AtomicBool::new(false);
        let until_asked = |_: u8| {
            while !asked.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        };
        // A single task behaves likewise.
        each(Some(1), vec![1], until_asked, &mut Patient(&asked)).unwrap();
    }
}
