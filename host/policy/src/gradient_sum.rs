//! The sum of the gradients of micro-batches, while their backward passes still run.
//!
//! Every parameter's gradients are added in the order of the micro-batches, so the sum has the same bits for any number of
//! threads. A gradient is added as soon as it is its turn, and its memory is free. Gradients whose turn has not come are
//! held. If those held are as large as a whole set, a thread waits before it holds more.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use candle_core::{CpuStorage, Device, InplaceOp2, Layout, Tensor};

use crate::error::{PolicyError, Result};
use crate::ops::{numbers, numbers_mut};

/// The sum for each parameter.
pub(crate) struct GradientSum {
    sums: Vec<Mutex<Option<Tensor>>>,
    progress: Mutex<Progress>,
    changed: Condvar,
    /// Numbers in gradients that may be held.
    room: usize,
}

struct Progress {
    /// Number of micro-batches whose gradient was added, by parameter.
    added: Vec<usize>,
    /// Gradients whose turn has not come, by parameter and micro-batch.
    held: BTreeMap<(usize, usize), Tensor>,
    /// Numbers in them.
    held_numbers: usize,
    /// The first micro-batch that failed.
    failed: Option<usize>,
}

/// Gives the gradients of one micro-batch to a sum.
pub(crate) struct Contribution<'a> {
    sum: &'a GradientSum,
    batch: usize,
    whole: bool,
}

impl GradientSum {
    /// A sum of nothing, for parameters with so many numbers each.
    pub(crate) fn new(sizes: &[usize]) -> Self {
        Self {
            sums: sizes.iter().map(|_| Mutex::new(None)).collect(),
            progress: Mutex::new(Progress {
                added: vec![0; sizes.len()],
                held: BTreeMap::new(),
                held_numbers: 0,
                failed: None,
            }),
            changed: Condvar::new(),
            room: sizes.iter().sum(),
        }
    }

    /// The contribution of the micro-batch with this index. Every micro-batch has to give one, in any order.
    pub(crate) fn contribution(&self, batch: usize) -> Contribution<'_> {
        Contribution {
            sum: self,
            batch,
            whole: false,
        }
    }

    /// The sums, in the order of parameters.
    pub(crate) fn finish(self) -> Result<Vec<Tensor>> {
        let sums = self.sums.into_iter();
        sums.map(|sum| {
            let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
            sum.ok_or_else(|| PolicyError::Input("a parameter has no gradient".to_owned()))
        })
        .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        // A thread that panicked left a state from which the others can stop.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, batch: usize, parameter: usize, gradient: Tensor) -> Result<()> {
        let numbers = gradient.elem_count();
        let mut now = self.lock();
        while now.added[parameter] != batch {
            if now.failed.is_some_and(|failed| failed < batch) {
                return Err(PolicyError::Input(
                    "an earlier micro-batch failed".to_owned(),
                ));
            }
            if now.held_numbers + numbers <= self.room {
                now.held_numbers += numbers;
                now.held.insert((parameter, batch), gradient);
                return Ok(());
            }
            now = (self.changed.wait(now)).unwrap_or_else(PoisonError::into_inner);
        }
        drop(now);
        // No other thread adds to this parameter until its turn is over.
        let mut sum = (self.sums[parameter].lock()).unwrap_or_else(PoisonError::into_inner);
        let mut gradient = Some(gradient);
        while let Some(next) = gradient {
            match &mut *sum {
                Some(sum) => add(sum, next)?,
                nothing => *nothing = Some(next),
            }
            let mut now = self.lock();
            now.added[parameter] += 1;
            let due = (parameter, now.added[parameter]);
            gradient = now.held.remove(&due);
            now.held_numbers -= gradient.as_ref().map_or(0, Tensor::elem_count);
            drop(now);
            self.changed.notify_all();
        }
        Ok(())
    }
}

impl Contribution<'_> {
    /// Adds the gradient of the parameter with this index. It has to come once for each parameter, in any order.
    pub(crate) fn add(&self, parameter: usize, gradient: Tensor) -> Result<()> {
        self.sum.add(self.batch, parameter, gradient)
    }

    /// Says that nothing is missing.
    pub(crate) fn end(mut self) {
        self.whole = true;
    }
}

impl Drop for Contribution<'_> {
    /// Nobody waits for a contribution that will not be whole.
    fn drop(&mut self) {
        if !self.whole {
            let mut now = self.sum.lock();
            now.failed = Some(now.failed.map_or(self.batch, |first| first.min(self.batch)));
            drop(now);
            self.sum.changed.notify_all();
        }
    }
}

/// `sum += part`, in place, or with candle's operators in a copy.
pub(crate) fn add(sum: &mut Tensor, part: Tensor) -> candle_core::Result<()> {
    match sum.device() {
        Device::Cpu => sum.inplace_op2(&part, &Add)?,
        #[cfg(feature = "cuda")]
        Device::Cuda(_) => crate::cuda::optimizer::add(sum, &part)?,
        _ => *sum = (&*sum + part)?,
    }
    Ok(())
}

/// `sum += part` on the CPU.
struct Add;

impl InplaceOp2 for Add {
    fn name(&self) -> &'static str {
        "add-gradient"
    }

    fn cpu_fwd(
        &self,
        sum: &mut CpuStorage,
        of_sum: &Layout,
        part: &CpuStorage,
        of_part: &Layout,
    ) -> candle_core::Result<()> {
        let part = numbers(part, of_part)?;
        for (sum, part) in numbers_mut(sum, of_sum)?.iter_mut().zip(part) {
            *sum += part;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;

    use super::*;

    fn gradient(batch: usize, len: usize) -> Tensor {
        // Sums of these depend on their order.
        let numbers: Vec<f32> = (0..len)
            .map(|i| 0.1 + (batch * 7 + i) as f32 / 3.0)
            .collect();
        Tensor::from_vec(numbers, len, &Device::Cpu).unwrap()
    }

    /// Adds the gradients of batches on threads, batch `i` on thread `i % threads`, which goes through its parameters from
    /// one end or the other.
    fn summed(sizes: &[usize], batches: usize, threads: usize) -> Vec<Vec<f32>> {
        let sum = GradientSum::new(sizes);
        thread::scope(|scope| {
            for first in 0..threads {
                let sum = &sum;
                scope.spawn(move || {
                    for batch in (first..batches).step_by(threads) {
                        let contribution = sum.contribution(batch);
                        let mut order: Vec<usize> = (0..sizes.len()).collect();
                        if batch % 3 == 1 {
                            order.reverse();
                        }
                        for parameter in order {
                            let part = gradient(batch, sizes[parameter]);
                            contribution.add(parameter, part).unwrap();
                            let now = sum.lock();
                            assert!(now.held_numbers <= sum.room);
                        }
                        contribution.end();
                    }
                });
            }
        });
        let progress = sum.lock();
        assert!(progress.held.is_empty() && progress.held_numbers == 0);
        drop(progress);
        let sums = sum.finish().unwrap();
        sums.iter().map(|sum| sum.to_vec1().unwrap()).collect()
    }

    #[test]
    fn the_sum_is_that_of_one_thread_whoever_is_first() {
        let sizes = [5, 1, 40, 3];
        let alone = summed(&sizes, 30, 1);
        for threads in 2..6 {
            assert_eq!(summed(&sizes, 30, threads), alone, "{threads} threads");
        }
    }

    #[test]
    fn nobody_waits_for_a_contribution_that_ends_early() {
        let sizes = [4, 4];
        let sum = GradientSum::new(&sizes);
        thread::scope(|scope| {
            let later: Vec<_> = (1..6)
                .map(|batch| {
                    let sum = &sum;
                    scope.spawn(move || {
                        let contribution = sum.contribution(batch);
                        (0..2).try_for_each(|p| contribution.add(p, gradient(batch, 4)))
                    })
                })
                .collect();
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                let contribution = sum.contribution(0);
                contribution.add(0, gradient(0, 4)).unwrap();
                panic!("in the middle of a backward pass");
            }));
            assert!(panicked.is_err());
            let ended = later.into_iter().map(|thread| thread.join().unwrap());
            // Two gradients of the eleven could be held, and one was added.
            assert!(ended.filter(Result::is_err).count() >= 3);
        });
        assert!(sum.finish().is_err());
    }
}
