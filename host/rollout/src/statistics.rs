//! Success rates and their uncertainty.

use serde::{Deserialize, Serialize};

/// A mean over tasks with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Mean over tasks of each task's mean; `None` (not 0) if there are no tasks.
    pub mean: Option<f64>,
    /// Lower end of the interval, at least 0.
    pub low: f64,
    /// Upper end of the interval, at most 1.
    pub high: f64,
    /// Number of tasks.
    pub tasks: usize,
}

impl Rate {
    /// The mean of `per_task` (each in 0..=1) and its 95 % normal interval **by task**.
    ///
    /// Samples of one task are not independent, so the standard error is that of the tasks' means,
    /// `s / sqrt(n)` with the unbiased deviation `s`. Without tasks the interval is 0 to 1. If all tasks failed, or all
    /// succeeded, that error would be 0, so the interval is the exact one of Clopper and Pearson (1934) for `n` tasks.
    pub fn by_task(per_task: &[f64]) -> Self {
        let n = per_task.len();
        if n == 0 {
            return Self {
                mean: None,
                low: 0.0,
                high: 1.0,
                tasks: 0,
            };
        }
        let mean = per_task.iter().sum::<f64>() / n as f64;
        let half = if n < 2 {
            1.0
        } else {
            let squares: f64 = per_task.iter().map(|x| (x - mean).powi(2)).sum();
            1.96 * (squares / (n - 1) as f64).sqrt() / (n as f64).sqrt()
        };
        let (mut low, mut high) = ((mean - half).max(0.0), (mean + half).min(1.0));
        if n >= 2 && mean == 0.0 {
            high = 1.0 - 0.025_f64.powf(1.0 / n as f64);
        } else if n >= 2 && mean == 1.0 {
            low = 0.025_f64.powf(1.0 / n as f64);
        }
        Self {
            mean: Some(mean),
            low,
            high,
            tasks: n,
        }
    }
}

/// Unbiased estimate of the probability that at least one of `k` samples succeeds, from `n` samples of which `c`
/// did: `1 - C(n-c, k) / C(n, k)` (Chen et al. 2021, "Evaluating Large Language Models Trained on
/// Code", equation 1). `None` if `k` exceeds `n`.
pub fn pass_at_k(n: usize, c: usize, k: usize) -> Option<f64> {
    if k > n || c > n {
        return None;
    }
    // C(n-c, k) / C(n, k) as a product of ratios, none of which overflows.
    let none_succeeds: f64 = (0..k)
        .map(|i| (n - c).saturating_sub(i) as f64 / (n - i) as f64)
        .product();
    Some(1.0 - none_succeeds)
}

/// Unbiased estimate of the probability that all of `k` samples succeed, from `n` samples of which `c` did: `C(c, k) / C(n, k)` (Yao et al.
/// 2024, "tau-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains", pass^k). `None` if `k` exceeds
/// `n`.
pub fn pass_hat_k(n: usize, c: usize, k: usize) -> Option<f64> {
    if k > n || c > n {
        return None;
    }
    // A product of ratios, none of which overflows. It is 0 if there are fewer than k successes.
    Some(
        (0..k)
            .map(|i| c.saturating_sub(i) as f64 / (n - i) as f64)
            .product(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pass_at_k_agrees_with_counting_subsets() {
        // By hand: 4 samples, 1 good: C(3,2)/C(4,2) = 3/6.
        assert_eq!(pass_at_k(4, 1, 2), Some(0.5));
        assert_eq!(pass_at_k(4, 0, 4), Some(0.0));
        assert_eq!(pass_at_k(4, 3, 2), Some(1.0));
        assert_eq!(pass_at_k(4, 2, 1), Some(0.5));
        assert_eq!(pass_at_k(4, 2, 5), None);
    }

    #[test]
    fn pass_hat_k_agrees_with_counting_subsets() {
        // By hand: 4 samples, 3 good: C(3,2)/C(4,2) = 3/6.
        assert_eq!(pass_hat_k(4, 3, 2), Some(0.5));
        assert_eq!(pass_hat_k(4, 4, 4), Some(1.0));
        assert_eq!(pass_hat_k(4, 1, 2), Some(0.0));
        assert_eq!(pass_hat_k(4, 2, 1), Some(0.5));
        assert_eq!(pass_hat_k(4, 2, 5), None);
        for (n, c) in [(5, 2), (8, 8), (7, 0)] {
            assert_eq!(pass_hat_k(n, c, 1), pass_at_k(n, c, 1));
        }
    }

    #[test]
    fn the_interval_is_that_of_task_means() {
        // Unbiased deviation of [0, 1, 1, 0] is sqrt(1/3); 1.96 * sqrt(1/3) / 2 = 0.5658.
        let rate = Rate::by_task(&[0.0, 1.0, 1.0, 0.0]);
        assert_eq!(rate.mean, Some(0.5));
        assert_eq!(rate.low, 0.0);
        assert_eq!(rate.high, 1.0);
        let many: Vec<f64> = (0..400).map(|i| f64::from(i % 2)).collect();
        let rate = Rate::by_task(&many);
        assert!((rate.high - 0.5 - 1.96 * (100.0_f64 / 399.0).sqrt() / 20.0).abs() < 1e-12);
    }

    #[test]
    fn tasks_that_all_fail_or_all_succeed_leave_room_for_others() {
        // The rule of three: about 3.7 / n. Clopper and Pearson: 1 - 0.025^(1/8) = 0.3694.
        let failed = Rate::by_task(&[0.0; 8]);
        assert_eq!(failed.low, 0.0);
        assert!((failed.high - 0.3694).abs() < 1e-4);
        let succeeded = Rate::by_task(&[1.0; 8]);
        assert!((succeeded.low - 0.6306).abs() < 1e-4);
        assert_eq!(succeeded.high, 1.0);
    }

    #[test]
    fn no_tasks_and_one_task_know_nothing() {
        let none = Rate::by_task(&[]);
        assert_eq!((none.mean, none.high), (None, 1.0));
        let one = Rate::by_task(&[1.0]);
        assert_eq!((one.low, one.high), (0.0, 1.0));
    }
}
