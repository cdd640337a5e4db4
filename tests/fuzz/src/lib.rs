//! Shared code of the fuzz targets.

use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// A value from a property test's generator, with the fuzzer's `bytes` instead of random numbers.
pub fn draw<S: Strategy>(strategy: &S, bytes: &[u8]) -> Option<S::Value> {
    let rng = TestRng::from_seed(RngAlgorithm::PassThrough, bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    Some(strategy.new_tree(&mut runner).ok()?.current())
}
