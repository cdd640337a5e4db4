//! Models with adapters: their beginning, and their end in a model without.

use std::path::{Path, absolute};

use candle_core::Var;

use super::{Model, views};
use crate::error::{PolicyError, Result};
use crate::lora::{Adapters, LoraConfig};
use crate::weights::Parameter;

/// Numbers that are hashed at once.
const CHUNK: usize = 1 << 14;

impl Model {
    /// Freezes the weights and puts new adapters beside them, which are trained instead. `A` is drawn from `seed`, and `B`
    /// is zero. `base` is the folder of the weights; saved adapters name it.
    ///
    /// # Errors
    /// If the settings cannot be used, or the model has adapters already.
    pub fn with_lora(mut self, config: &LoraConfig, seed: u64, base: &Path) -> Result<Self> {
        config.validate()?;
        if self.adapters.is_some() {
            return Err(PolicyError::Input("the model has adapters already".into()));
        }
        let base = absolute(base).unwrap_or_else(|_| base.to_owned());
        let digest = match &self.digest {
            Some(known) => known.clone(),
            None => self.compute_digest()?,
        };
        let place = (base, digest);
        let adapters = Adapters::new(config, seed, &self.parameters, place, &self.device)?;
        self.put_adapters(adapters)?;
        Ok(self)
    }

    /// Puts adapters in the place of those that it has, if any.
    pub(super) fn put_adapters(&mut self, adapters: Adapters) -> Result<()> {
        let (config, variables) = (&self.config, &self.variables);
        self.tracked = views(config, variables, Some(&adapters), |variable| {
            variable.as_tensor().clone()
        });
        self.frozen = views(config, variables, Some(&adapters), Var::as_detached_tensor);
        self.operands.truncate(variables.len());
        for (variable, factor) in Self::factored(&adapters) {
            let operand = self.operand(variable, factor)?;
            self.operands.push(operand);
        }
        self.adapters = Some(adapters);
        // Another thread, with another stream, may read them first.
        self.device.synchronize()?;
        Ok(())
    }

    /// The model without adapters that computes the same, within rounding: `W + s A B`, in f32.
    ///
    /// # Errors
    /// If the model has no adapters, or holds its weights in bf16 alone.
    pub fn merged(&self) -> Result<Self> {
        self.needs_f32("be merged with its adapters")?;
        let Some(adapters) = &self.adapters else {
            return Err(PolicyError::Input(
                "the model has no adapters to merge".into(),
            ));
        };
        let variables = self
            .variables
            .iter()
            .enumerate()
            .map(|(index, variable)| {
                let base = variable.as_detached_tensor();
                let Some(adapter) = adapters.weights(index, Var::as_detached_tensor) else {
                    return Var::from_tensor(&base.copy()?);
                };
                let part = adapter.down.product()?.matmul(&adapter.up.product()?)?;
                Var::from_tensor(&(base + part)?)
            })
            .collect::<candle_core::Result<_>>()?;
        let mut merged = Self::from_variables(&self.config, variables, &self.device);
        merged.operators = self.operators;
        merged.vocabulary = self.vocabulary;
        merged.use_precision(self.precision)?;
        Ok(merged)
    }

    fn compute_digest(&self) -> Result<String> {
        self.needs_f32("get adapters")?;
        let mut digest = WeightDigest::default();
        for (parameter, variable) in self.parameters.iter().zip(&self.variables) {
            let numbers = variable.as_detached_tensor().flatten_all()?;
            digest.add(parameter, &numbers.to_vec1::<f32>()?);
        }
        Ok(digest.finish())
    }
}

/// The BLAKE3 digest of a model's weights without adapters: of each tensor's name and its f32 numbers as in a checkpoint.
/// So it depends neither on how files are cut nor on how weights are laid out here.
#[derive(Default)]
pub(crate) struct WeightDigest(blake3::Hasher);

impl WeightDigest {
    /// Adds the next parameter.
    pub(crate) fn add(&mut self, parameter: &Parameter, numbers: &[f32]) {
        for stored in &parameter.stored {
            self.0.update(stored.name.as_bytes());
            for chunk in parameter.take(stored, numbers).chunks(CHUNK) {
                let bytes: Vec<u8> = chunk.iter().flat_map(|x| x.to_le_bytes()).collect();
                self.0.update(&bytes);
            }
        }
    }

    /// The digest, in hexadecimal.
    pub(crate) fn finish(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }
}
