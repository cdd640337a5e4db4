//! Normalisation over all model tokens of a batch, as in verl's `masked_whiten`.

use super::Sample;

/// Added to the variance before its root.
const EPS: f64 = 1e-8;

/// Whitens values of model tokens, and gives all other tokens 0:
///
/// ```text
/// A_t = (G_t - mean(G)) / sqrt(var(G) + 1e-8)        over all model tokens of the batch
/// ```
///
/// with Bessel's correction. Excluded trajectories are in no statistic. All values are 0 if they do not differ.
pub(super) fn whitened(batch: &[Sample], values: &[Vec<f64>]) -> Vec<Vec<f32>> {
    let counts = |sample: &Sample, t: usize| sample.mask()[t] && !sample.excluded();
    let rows = batch.iter().zip(values);
    let counted: Vec<f64> = rows
        .clone()
        .flat_map(|(sample, values)| {
            let tokens = values.iter().enumerate();
            tokens.filter(move |(t, _)| counts(sample, *t))
        })
        .map(|(_, value)| *value)
        .collect();
    let differ = counted.iter().any(|value| *value != counted[0]);
    let n = counted.len() as f64;
    let mean = counted.iter().sum::<f64>() / n;
    let variance = counted.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let inverse_deviation = 1.0 / (variance + EPS).sqrt();
    rows.map(|(sample, values)| {
        let whiten = |(t, value): (usize, &f64)| {
            if differ && counts(sample, t) {
                ((value - mean) * inverse_deviation) as f32
            } else {
                0.0
            }
        };
        values.iter().enumerate().map(whiten).collect()
    })
    .collect()
}
