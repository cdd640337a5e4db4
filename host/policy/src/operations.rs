//! The floating-point operations of a policy, before anything is computed.
//!
//! A product of a row with a weight `[k, n]` takes `2 k n` operations. A query row at position p takes `4 p` of them for
//! each number of its heads: products with p keys and with p values. Norms and other operators are left out. (Kaplan et
//! al. 2020, "Scaling laws for neural language models", table 1, counts in the same way.)

use crate::config::Qwen3Config;

/// The operations of a model.
#[derive(Debug, Clone, Copy)]
pub struct Operations {
    /// Numbers in the products of all layers.
    layers: f64,
    /// Numbers in the vocabulary head.
    head: f64,
    /// Numbers of all query heads of all layers.
    heads: f64,
    /// True if weights get no gradients. The operations of adapters are left out.
    is_frozen: bool,
}

impl Operations {
    /// The operations of a model of this shape.
    pub fn new(config: &Qwen3Config) -> Self {
        let layer = config.hidden_size
            * (config.qkv_width() + config.attention_width() + 3 * config.intermediate_size);
        Self {
            layers: (config.num_hidden_layers * layer) as f64,
            head: (config.hidden_size * config.vocab_size) as f64,
            heads: (config.num_hidden_layers * config.attention_width()) as f64,
            is_frozen: false,
        }
    }

    /// The operations of training adapters beside frozen weights.
    #[must_use]
    pub fn with_frozen_weights(self) -> Self {
        Self {
            is_frozen: true,
            ..self
        }
    }

    /// A forward pass over one sequence of `length` tokens, with logits for `targets` of them.
    pub fn forward(&self, length: usize, targets: usize) -> f64 {
        self.layers_forward(length) + 2.0 * targets as f64 * self.head
    }

    /// A forward and a backward pass. The backward pass takes twice the forward pass, and once if weights are frozen. The
    /// head's logits are computed again in it, and with checkpointing the layers are, too.
    pub fn training(&self, length: usize, targets: usize, checkpointing: bool) -> f64 {
        let again = if checkpointing { 1.0 } else { 0.0 };
        let backward = if self.is_frozen { 1.0 } else { 2.0 };
        (1.0 + again + backward) * self.layers_forward(length)
            + 2.0 * (2.0 + backward) * targets as f64 * self.head
    }

    fn layers_forward(&self, length: usize) -> f64 {
        let length = length as f64;
        // Positions 1 to `length`, whose sum is about half its square.
        2.0 * length * self.layers + 2.0 * length * length * self.heads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::PublishedShape;

    #[test]
    fn a_token_takes_two_operations_for_each_number_and_six_in_training() {
        let config = PublishedShape::Qwen3_4B.config();
        let (operations, numbers) = (Operations::new(&config), config.parameter_count() as f64);
        // Norms have no products, and attention adds little to short sequences.
        let forward = operations.forward(16, 16) / 16.0 / numbers;
        assert!((2.0..2.01).contains(&forward), "{forward}");
        let training = operations.training(16, 16, false) / 16.0 / numbers;
        assert!((6.0..6.25).contains(&training), "{training}");
    }

    #[test]
    fn attention_grows_with_the_square_of_the_length() {
        let operations = Operations::new(&PublishedShape::Qwen3_0_6B.config());
        // 28 layers of 16 heads of 128 numbers.
        let twice = operations.forward(2048, 0) - 2.0 * operations.forward(1024, 0);
        assert_eq!(twice, 4.0 * 1024.0 * 1024.0 * 28.0 * 2048.0);
        let again = operations.training(1024, 0, true) - operations.training(1024, 0, false);
        assert_eq!(again, operations.forward(1024, 0));
    }
}
