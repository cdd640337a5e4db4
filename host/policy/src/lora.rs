//! LoRA (Hu et al., arXiv:2106.09685): adapters of low rank, which are trained instead of the weights beside them.
//!
//! A linear layer with an adapter computes `y = x W + s (x A) B`. `W` is frozen, `A` is `[in, rank]`, `B` is
//! `[rank, out]`, and `s = alpha / rank` (section 4.1). As in the paper, `A` begins with random numbers and `B` with
//! zeros, so a new adapter changes nothing.
//!
//! Projections that read the same input are one parameter here ([`crate::weights`]), and so are their adapters: `A` has
//! the columns of all of them side by side. `B` is block-diagonal: the rows of one projection reach its own columns
//! only, and all other numbers are zero.
//!
//! Products read `A` times `s`, and `B` as it is. So the gradient of a product's operand, times the same factor, is that
//! of the parameter. The factor of `B` is a mask, 1 in its blocks. It keeps the gradients of all other numbers at zero.

use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor, Var};
use serde::{Deserialize, Serialize};

use crate::error::InvalidSetting;
use crate::weights::{AdapterWeights, FactoredWeight, Parameter, Start, Stored, variable};

/// The file of the settings of saved adapters.
pub(crate) const ADAPTER_CONFIG: &str = "adapter_config.json";

/// True if a folder holds adapters, and no whole model.
pub fn holds_adapters(folder: &Path) -> bool {
    folder.join(ADAPTER_CONFIG).exists() && !folder.join("config.json").exists()
}

/// Prefix of the names in PEFT's files.
const PREFIX: &str = "base_model.model.";

/// The highest rank. More than the width of a model would be no low rank.
const MAX_RANK: usize = 4096;

/// A linear layer that can have an adapter, by its name in transformers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Projection {
    /// The queries of attention.
    QProj,
    /// The keys of attention.
    KProj,
    /// The values of attention.
    VProj,
    /// The output of attention.
    OProj,
    /// The gate of the gated linear unit.
    GateProj,
    /// The values of the gated linear unit.
    UpProj,
    /// The output of the gated linear unit.
    DownProj,
}

impl Projection {
    /// All of them, in the order of a layer.
    pub const ALL: [Self; 7] = [
        Self::QProj,
        Self::KProj,
        Self::VProj,
        Self::OProj,
        Self::GateProj,
        Self::UpProj,
        Self::DownProj,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::QProj => "q_proj",
            Self::KProj => "k_proj",
            Self::VProj => "v_proj",
            Self::OProj => "o_proj",
            Self::GateProj => "gate_proj",
            Self::UpProj => "up_proj",
            Self::DownProj => "down_proj",
        }
    }
}

/// `[model.lora]`: adapters of low rank, which are trained instead of the weights (arXiv:2106.09685).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoraConfig {
    /// Rank of each adapter. A higher one can learn more, and needs more memory. Default 16.
    pub rank: usize,
    /// An adapter's result is multiplied by `alpha / rank`. Default 32; PEFT's own default is 8.
    pub alpha: f64,
    /// The layers that have adapters. Default all seven: `q_proj`, `k_proj`, `v_proj`, `o_proj`, `gate_proj`, `up_proj`
    /// and `down_proj`.
    pub targets: Vec<Projection>,
    /// Folder of adapters in PEFT's format to begin with. The keys above must be those of its adapter_config.json. None
    /// by default: new adapters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapter: Option<PathBuf>,
}

impl Default for LoraConfig {
    fn default() -> Self {
        Self {
            rank: 16,
            alpha: 32.0,
            targets: Projection::ALL.to_vec(),
            adapter: None,
        }
    }
}

impl LoraConfig {
    /// Refuses settings that cannot be trained with.
    pub fn validate(&self) -> Result<(), InvalidSetting> {
        InvalidSetting::require(
            (1..=MAX_RANK).contains(&self.rank),
            "model.lora.rank",
            &self.rank,
            "is the rank of each adapter, from 1 to 4096; 16 is usual",
        )?;
        InvalidSetting::require(
            self.alpha.is_finite() && self.alpha > 0.0,
            "model.lora.alpha",
            &self.alpha,
            "must be a number above 0, such as 32",
        )?;
        let targets = self.sorted_targets();
        let distinct = targets.windows(2).all(|pair| pair[0] != pair[1]);
        InvalidSetting::require(
            !targets.is_empty() && distinct,
            "model.lora.targets",
            &format_args!("[{}]", names(&self.targets)),
            "names layers, each once; leave it out for all seven",
        )
    }

    /// The targets in the order of a layer.
    pub(crate) fn sorted_targets(&self) -> Vec<Projection> {
        let mut targets = self.targets.clone();
        targets.sort_unstable();
        targets
    }

    /// True if a linear layer, named as in a checkpoint without `.weight`, has an adapter.
    fn has_target(&self, layer: &str) -> bool {
        let last = layer.rsplit('.').next();
        self.targets
            .iter()
            .any(|target| last == Some(target.as_str()))
    }
}

/// The names of layers, for a message.
pub(crate) fn names(targets: &[Projection]) -> String {
    let names: Vec<&str> = targets.iter().map(|target| target.as_str()).collect();
    names.join(", ")
}

/// The adapters of a model.
#[derive(Clone)]
pub(crate) struct Adapters {
    pub(crate) config: LoraConfig,
    /// The folder of the frozen weights, as it is recorded beside saved adapters.
    pub(crate) base: PathBuf,
    /// The digest of the frozen weights.
    pub(crate) digest: String,
    layout: AdapterLayout,
    variables: Vec<Var>,
    factors: Vec<Option<Tensor>>,
}

/// The shapes and places of adapters, without their numbers.
#[derive(Debug, Clone)]
pub(crate) struct AdapterLayout {
    places: Vec<Place>,
    /// `A` and `B` of each place.
    parameters: Vec<Parameter>,
}

/// The adapter of one parameter of the model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Index of the parameter.
    base: usize,
    /// Ranks of its projections together.
    pub(crate) rank: usize,
    /// Index of `A` among the adapters' parameters. `B` is the next one.
    first: usize,
    /// Index of `A` among the operands of products, where adapters follow the weights. `B` is the next one.
    pub(crate) operand: usize,
}

impl AdapterLayout {
    /// The adapters of a model with the parameters `base`.
    pub(crate) fn new(config: &LoraConfig, base: &[Parameter]) -> Self {
        let (mut places, mut parameters) = (Vec::new(), Vec::new());
        for (index, parameter) in base.iter().enumerate() {
            if let Some(pair) = pair(parameter, config) {
                places.push(Place {
                    base: index,
                    rank: pair[0].shape[1],
                    first: parameters.len(),
                    operand: base.len() + parameters.len(),
                });
                parameters.extend(pair);
            }
        }
        Self { places, parameters }
    }

    /// `A` and `B` of each adapter.
    pub(crate) fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The adapter of the model's parameter with this index.
    pub(crate) fn of(&self, base: usize) -> Option<Place> {
        let found = self.places.binary_search_by_key(&base, |place| place.base);
        found.ok().map(|at| self.places[at])
    }
}

impl Adapters {
    /// New adapters for a model with the parameters `base`, whose weights are in `folder` and have this digest.
    pub(crate) fn new(
        config: &LoraConfig,
        seed: u64,
        base: &[Parameter],
        (folder, digest): (PathBuf, String),
        device: &Device,
    ) -> candle_core::Result<Self> {
        let layout = AdapterLayout::new(config, base);
        let parameters = layout.parameters();
        let variables = parameters
            .iter()
            .map(|parameter| variable(parameter, parameter.initial(seed), device))
            .collect::<candle_core::Result<_>>()?;
        let scale = (config.alpha / config.rank as f64) as f32;
        let factors = parameters
            .iter()
            .map(|parameter| match parameter.start {
                Start::Uniform { .. } => Tensor::full(scale, (1, 1), device).map(Some),
                _ => mask(parameter, device),
            })
            .collect::<candle_core::Result<_>>()?;
        Ok(Self {
            config: config.clone(),
            base: folder,
            digest,
            layout,
            variables,
            factors,
        })
    }

    /// Independent adapters with the same numbers.
    pub(crate) fn copy(&self) -> candle_core::Result<Self> {
        let variables = self
            .variables
            .iter()
            .map(|variable| Var::from_tensor(&variable.as_detached_tensor().copy()?))
            .collect::<candle_core::Result<_>>()?;
        Ok(Self {
            variables,
            ..self.clone()
        })
    }

    pub(crate) fn layout(&self) -> &AdapterLayout {
        &self.layout
    }

    pub(crate) fn parameters(&self) -> &[Parameter] {
        self.layout.parameters()
    }

    pub(crate) fn variables(&self) -> &[Var] {
        &self.variables
    }

    /// The factor of each parameter, if it has one.
    pub(crate) fn factors(&self) -> &[Option<Tensor>] {
        &self.factors
    }

    /// The adapter of the model's parameter with this index, for the plain network.
    pub(crate) fn weights(
        &self,
        base: usize,
        view: impl Fn(&Var) -> Tensor,
    ) -> Option<AdapterWeights> {
        let first = self.layout.of(base)?.first;
        let weight = |index: usize| FactoredWeight {
            w: view(&self.variables[index]),
            factor: self.factors[index].clone(),
        };
        Some(AdapterWeights {
            down: weight(first),
            up: weight(first + 1),
        })
    }
}

/// `A` and `B` of a parameter, if one of its projections has an adapter.
fn pair(parameter: &Parameter, config: &LoraConfig) -> Option<[Parameter; 2]> {
    let [inputs, outputs] = parameter.shape[..] else {
        return None;
    };
    let (mut down, mut up) = (Vec::new(), Vec::new());
    for stored in &parameter.stored {
        let layer = stored.name.strip_suffix(".weight")?;
        if !config.has_target(layer) {
            continue;
        }
        let first = down.len() * config.rank;
        down.push(Stored {
            name: format!("{PREFIX}{layer}.lora_A.weight"),
            offset: first,
            shape: vec![config.rank, inputs],
        });
        up.push(Stored {
            name: format!("{PREFIX}{layer}.lora_B.weight"),
            offset: first * outputs + stored.offset,
            shape: vec![stored.shape[0], config.rank],
        });
    }
    if down.is_empty() {
        return None;
    }
    let rank = down.len() * config.rank;
    let name = parameter.name.trim_end_matches(".weight");
    // The bound is that of PEFT: Kaiming's uniform distribution with a = sqrt(5).
    let bound = 1.0 / (inputs as f64).sqrt();
    Some([
        Parameter {
            name: format!("{name}.lora_A"),
            shape: vec![inputs, rank],
            start: Start::Uniform { bound },
            stored: down,
        },
        Parameter {
            name: format!("{name}.lora_B"),
            shape: vec![rank, outputs],
            start: Start::Zeros,
            stored: up,
        },
    ])
}

/// True if products read a parameter of adapters times a factor, and so a copy of it.
pub(crate) fn has_factor(parameter: &Parameter) -> bool {
    matches!(parameter.start, Start::Uniform { .. }) || has_zeros(parameter)
}

/// True if a parameter has numbers outside of its blocks.
fn has_zeros(parameter: &Parameter) -> bool {
    let blocks = parameter.stored.iter();
    let blocks = blocks.map(|stored| stored.shape.iter().product::<usize>());
    blocks.sum::<usize>() < parameter.len()
}

/// 1 in the blocks of `B`, and 0 elsewhere. None if there is nothing else.
fn mask(parameter: &Parameter, device: &Device) -> candle_core::Result<Option<Tensor>> {
    if !has_zeros(parameter) {
        return Ok(None);
    }
    let mut mask = vec![0.0f32; parameter.len()];
    for stored in &parameter.stored {
        let ones = vec![1.0; stored.shape.iter().product()];
        parameter.copy_into(stored, &ones, &mut mask);
    }
    Tensor::from_vec(mask, parameter.shape.clone(), device).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::quickstart_shape;
    use crate::weights::parameters;

    fn adapters(config: &LoraConfig) -> Adapters {
        let base = parameters(&quickstart_shape());
        let place = (PathBuf::from("base"), String::new());
        Adapters::new(config, 0, &base, place, &Device::Cpu).unwrap()
    }

    #[test]
    fn stored_tensors_are_those_of_peft() {
        let adapters = adapters(&LoraConfig::default());
        let stored: Vec<(&str, &[usize])> = adapters
            .parameters()
            .iter()
            .flat_map(|parameter| &parameter.stored)
            .map(|stored| (stored.name.as_str(), &stored.shape[..]))
            .collect();
        // Three layers of seven projections with two tensors each.
        assert_eq!(stored.len(), 3 * 7 * 2);
        let has = |name: &str, shape: [usize; 2]| {
            let name = format!("base_model.model.model.layers.2.{name}.weight");
            stored.contains(&(name.as_str(), &shape[..]))
        };
        assert!(has("self_attn.k_proj.lora_A", [16, 96]));
        assert!(has("self_attn.k_proj.lora_B", [48, 16]));
        assert!(has("mlp.down_proj.lora_A", [16, 256]));
        assert!(has("mlp.down_proj.lora_B", [96, 16]));
    }

    #[test]
    fn a_mask_has_the_blocks_of_its_targets_only() {
        let config = LoraConfig {
            rank: 2,
            targets: vec![Projection::VProj, Projection::QProj, Projection::DownProj],
            ..LoraConfig::default()
        };
        let adapters = adapters(&config);
        // Queries, keys and values of the quickstart have 96, 48 and 48 columns.
        let mask = adapters.factors()[1].as_ref().unwrap();
        let rows = mask.to_vec2::<f32>().unwrap();
        let expected: Vec<Vec<f32>> = (0..4)
            .map(|row| {
                let ones = if row < 2 { 0..96 } else { 144..192 };
                let number = |column: usize| f32::from(ones.contains(&column));
                (0..192).map(number).collect()
            })
            .collect();
        assert_eq!(rows, expected);
        assert!(adapters.factors()[3].is_none(), "down_proj has one block");
    }

    #[test]
    fn new_adapters_have_the_bounds_of_peft_and_change_nothing() {
        let adapters = adapters(&LoraConfig::default());
        let numbers = |index: usize| -> Vec<f32> {
            let variable = adapters.variables()[index].as_detached_tensor();
            variable.flatten_all().unwrap().to_vec1().unwrap()
        };
        let bound = 1.0 / 96f32.sqrt();
        let (down, up) = (numbers(0), numbers(1));
        assert!(down.iter().all(|x| x.abs() <= bound));
        let largest = down.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        assert!(largest > 0.99 * bound, "{largest}");
        assert!(up.iter().all(|x| *x == 0.0));
    }

    #[test]
    fn settings_that_train_nothing_are_refused_by_name() {
        let with = |change: fn(&mut LoraConfig)| {
            let mut config = LoraConfig::default();
            change(&mut config);
            config.validate().unwrap_err().to_string()
        };
        assert!(with(|config| config.rank = 0).starts_with("`model.lora.rank = 0`"));
        assert!(with(|config| config.alpha = f64::NAN).starts_with("`model.lora.alpha = NaN`"));
        let none = with(|config| config.targets.clear());
        assert!(none.starts_with("`model.lora.targets = []`"), "{none}");
        let twice = with(|config| config.targets = vec![Projection::QProj; 2]);
        assert!(
            twice.starts_with("`model.lora.targets = [q_proj, q_proj]`"),
            "{twice}"
        );
    }
}
