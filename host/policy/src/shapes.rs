//! The shapes of published Qwen3 models, as their `config.json` has them.

use crate::config::Qwen3Config;

/// A published dense Qwen3 model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishedShape {
    /// Qwen/Qwen3-0.6B.
    Qwen3_0_6B,
    /// Qwen/Qwen3-1.7B.
    Qwen3_1_7B,
    /// Qwen/Qwen3-4B.
    Qwen3_4B,
    /// Qwen/Qwen3-8B.
    Qwen3_8B,
}

impl PublishedShape {
    /// All of them, from the smallest on.
    pub const ALL: [Self; 4] = [
        Self::Qwen3_0_6B,
        Self::Qwen3_1_7B,
        Self::Qwen3_4B,
        Self::Qwen3_8B,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Qwen3_0_6B => "qwen3-0.6b",
            Self::Qwen3_1_7B => "qwen3-1.7b",
            Self::Qwen3_4B => "qwen3-4b",
            Self::Qwen3_8B => "qwen3-8b",
        }
    }

    /// The shape with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|shape| shape.name() == name)
    }

    /// The configuration.
    pub fn config(self) -> Qwen3Config {
        let (hidden, inner, layers, heads) = match self {
            Self::Qwen3_0_6B => (1024, 3072, 28, 16),
            Self::Qwen3_1_7B => (2048, 6144, 28, 16),
            Self::Qwen3_4B => (2560, 9728, 36, 32),
            Self::Qwen3_8B => (4096, 12_288, 36, 32),
        };
        Qwen3Config {
            vocab_size: 151_936,
            hidden_size: hidden,
            intermediate_size: inner,
            num_hidden_layers: layers,
            num_attention_heads: heads,
            num_key_value_heads: 8,
            head_dim: 128,
            max_position_embeddings: 40_960,
            rms_norm_eps: 1e-6,
            rope_theta: 1e6,
            tie_word_embeddings: self != Self::Qwen3_8B,
            initializer_range: 0.02,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_have_as_many_parameters_as_their_model_cards_say() {
        // The files of weights on the Hub hold these numbers.
        let counts = PublishedShape::ALL.map(|shape| shape.config().parameter_count());
        assert_eq!(
            counts,
            [596_049_920, 1_720_574_976, 4_022_468_096, 8_190_735_360]
        );
        for shape in PublishedShape::ALL {
            assert!(shape.config().validate().is_ok());
            assert_eq!(PublishedShape::named(shape.name()), Some(shape));
        }
        assert_eq!(PublishedShape::named("qwen3-5b"), None);
    }
}
