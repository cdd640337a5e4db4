//! Checks a fused operator against its twin, with gradients from candle's tape.

use candle_core::{Device, Result, Tensor, Var};

use rlf_random::{Key, Purpose};

/// Numbers for a test.
pub(super) fn random(seed: u64, n: usize) -> Vec<f32> {
    let key = Key::new(seed, Purpose::Test).named("twin");
    (0..n as u64).map(|i| key.normal(i) as f32).collect()
}

/// Runs `plain` on `operands` (numbers and shape), differentiates the sum of its result times `g`, and compares result
/// and gradients with `out` and `gradients`.
pub(super) fn check(
    operands: &[(&[f32], &[usize])],
    (g, out, gradients): (&[f32], &[f32], &[&[f32]]),
    plain: impl Fn(&[Tensor]) -> Result<Tensor>,
) {
    let leaves: Vec<Var> = operands
        .iter()
        .map(|(numbers, shape)| {
            Var::from_tensor(&Tensor::from_slice(numbers, *shape, &Device::Cpu).unwrap()).unwrap()
        })
        .collect();
    let tensors: Vec<Tensor> = leaves.iter().map(|leaf| leaf.as_tensor().clone()).collect();
    let result = plain(&tensors).unwrap();
    close("result", out, &numbers(&result));
    let g = Tensor::from_slice(g, result.shape(), &Device::Cpu).unwrap();
    let store = (&result * g)
        .unwrap()
        .sum_all()
        .unwrap()
        .backward()
        .unwrap();
    assert_eq!(gradients.len(), leaves.len());
    for (index, (leaf, gradient)) in leaves.iter().zip(gradients).enumerate() {
        close(
            &format!("gradient of operand {index}"),
            gradient,
            &numbers(store.get(leaf).unwrap()),
        );
    }
}

fn numbers(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().unwrap().to_vec1().unwrap()
}

/// Checks that numbers agree within rounding, relative to the largest number.
fn close(what: &str, ours: &[f32], theirs: &[f32]) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    let largest = theirs.iter().fold(0.0f32, |m, x| m.max(x.abs()));
    assert!(largest > 0.0, "{what} is all zero");
    for (index, (a, b)) in ours.iter().zip(theirs).enumerate() {
        assert!(
            (a - b).abs() < 1e-5 * largest,
            "{what}, element {index}: {a} and {b} of {largest}"
        );
    }
}
