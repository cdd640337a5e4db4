//! Work shared by threads with results taken in order, so that they are summed as if there were one worker.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::error::{PolicyError, Result};

/// The progress of [`run_in_order`].
struct Turn<T, F> {
    /// The next index to compute.
    next: usize,
    /// Number of results taken.
    taken: usize,
    waiting: BTreeMap<usize, T>,
    take: F,
    failed: Option<(usize, PolicyError)>,
}

impl<T, F> Turn<T, F> {
    /// Reports the failure with the lowest index, whichever came first in time.
    fn fail(&mut self, index: usize, error: PolicyError) {
        if self
            .failed
            .as_ref()
            .is_none_or(|(earlier, _)| index < *earlier)
        {
            self.failed = Some((index, error));
        }
    }
}

/// Computes `compute(0..count)` on `workers` threads and hands the results to `take` in the order of their indices. At
/// most one result more than workers exists at a time. With 0 workers everything runs on the calling thread, which
/// devices with a stream per thread need.
pub(crate) fn run_in_order<T: Send>(
    count: usize,
    workers: usize,
    compute: impl Fn(usize) -> Result<T> + Sync,
    mut take: impl FnMut(T) -> Result<()> + Send,
) -> Result<()> {
    if workers == 0 {
        return (0..count).try_for_each(|index| take(compute(index)?));
    }
    let workers = workers.min(count);
    let turn = Mutex::new(Turn {
        next: 0,
        taken: 0,
        waiting: BTreeMap::new(),
        take: &mut take,
        failed: None,
    });
    let changed = Condvar::new();
    let work = || {
        // The scope propagates a panic of another thread. The guarded state is still good enough to stop.
        let lock = || turn.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let index = {
                let mut now = lock();
                while now.failed.is_none() && now.next < count && now.next > now.taken + workers {
                    now = changed.wait(now).unwrap_or_else(PoisonError::into_inner);
                }
                if now.failed.is_some() || now.next >= count {
                    return;
                }
                now.next += 1;
                now.next - 1
            };
            let result = catch_unwind(AssertUnwindSafe(|| compute(index)));
            let mut now = lock();
            let result = result.unwrap_or_else(|panic| {
                // Other threads wait for this result; they must not wait for ever.
                now.fail(index, PolicyError::Input("a worker panicked".to_owned()));
                changed.notify_all();
                resume_unwind(panic)
            });
            match result {
                Err(error) => now.fail(index, error),
                Ok(value) => {
                    now.waiting.insert(index, value);
                    while now.failed.is_none() {
                        let due = now.taken;
                        let Some(value) = now.waiting.remove(&due) else {
                            break;
                        };
                        if let Err(error) = (now.take)(value) {
                            now.fail(due, error);
                        }
                        now.taken += 1;
                    }
                }
            }
            drop(now);
            changed.notify_all();
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    match turn
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .failed
    {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_taken_in_order_whoever_is_first() {
        for workers in 0..5 {
            let mut taken = Vec::new();
            run_in_order(
                20,
                workers,
                |index| {
                    // Uneven work, so that later ones finish first.
                    let spin = (20 - index as u64) * 2_000;
                    Ok((index, (0..spin).fold(0u64, |a, b| a.wrapping_mul(31) ^ b)))
                },
                |(index, _)| {
                    taken.push(index);
                    Ok(())
                },
            )
            .unwrap();
            assert_eq!(taken, (0..20).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_panic_is_passed_on_and_nobody_waits_for_ever() {
        for workers in 0..4 {
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                let compute = |index| {
                    assert_ne!(index, 0, "the first");
                    Ok(index)
                };
                run_in_order(40, workers, compute, |_| Ok(()))
            }));
            assert!(panicked.is_err());
        }
    }

    #[test]
    fn a_failure_ends_the_run_and_is_reported() {
        for workers in 0..4 {
            let error = run_in_order(
                10,
                workers,
                |index| {
                    if index == 3 {
                        Err(PolicyError::Input("the third".to_owned()))
                    } else {
                        Ok(index)
                    }
                },
                |_| Ok(()),
            );
            assert_eq!(error.unwrap_err().to_string(), "the third");
        }
    }
}
