//! The shape of a Qwen3 model, read from Hugging Face's `config.json`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{PolicyError, Result};

/// A Qwen3 model's shape. Field names are those of `config.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Qwen3Config {
    /// Rows of the embedding. May exceed the tokenizer's vocabulary; see [`crate::Model::limit_vocabulary`].
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width of the gated linear unit.
    pub intermediate_size: usize,
    /// Decoder layers.
    pub num_hidden_layers: usize,
    /// Query heads.
    pub num_attention_heads: usize,
    /// Key and value heads; divides the query heads.
    pub num_key_value_heads: usize,
    /// Width of one head.
    pub head_dim: usize,
    /// Length of the longest sequence that the model supports, in tokens.
    pub max_position_embeddings: usize,
    /// Added to the mean square in every norm. Default 1e-6.
    #[serde(default = "default_rms_norm_eps")]
    pub rms_norm_eps: f64,
    /// Base of the rotary frequencies. Default 10,000; Qwen3 has 1,000,000.
    #[serde(default = "default_rope_theta")]
    pub rope_theta: f64,
    /// True if the vocabulary head is the embedding. Default false, as in transformers.
    #[serde(default)]
    pub tie_word_embeddings: bool,
    /// Standard deviation of initial weights; those that write into the residual stream get this divided by
    /// sqrt(2 * layers) (GPT-2, section 2.3). Default 0.02. Small models learn faster with more: about
    /// 0.35 / sqrt(`hidden_size`).
    #[serde(default = "default_initializer_range")]
    pub initializer_range: f64,
}

fn default_rms_norm_eps() -> f64 {
    1e-6
}

fn default_rope_theta() -> f64 {
    10_000.0
}

fn default_initializer_range() -> f64 {
    0.02
}

impl Qwen3Config {
    /// Reads `config.json`, or the `config.json` of a checkpoint's folder.
    pub fn load(path: &Path) -> Result<Self> {
        let file = if path.is_dir() {
            path.join("config.json")
        } else {
            path.to_owned()
        };
        let text = rlf_files::read_text(&file, rlf_files::MAX_TEXT_BYTES)
            .map_err(PolicyError::io(&file, "reading the model's configuration"))?;
        Self::parse(&text, &file.display().to_string())
    }

    /// Reads the text of a `config.json`; `origin` is named in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        let bad = |message: String| PolicyError::Config {
            origin: origin.to_owned(),
            message,
        };
        let mut json: Value =
            serde_json::from_str(text).map_err(|error| bad(format!("not JSON: {error}")))?;
        let Some(fields) = json.as_object_mut() else {
            return Err(bad(
                "expected a JSON object, as in a Hugging Face checkpoint's config.json".to_owned(),
            ));
        };
        // transformers 5 writes the rotary settings as a group of their own.
        if let Some(Value::Object(rope)) = fields.get("rope_parameters").cloned() {
            let kind = rope
                .get("rope_type")
                .and_then(Value::as_str)
                .unwrap_or("default");
            if kind != "default" {
                return Err(bad(format!(
                    "rope_parameters.rope_type is \"{kind}\"; only \"default\" is supported"
                )));
            }
            if let Some(theta) = rope.get("rope_theta") {
                fields.insert("rope_theta".to_owned(), theta.clone());
            }
        }
        refuse_unsupported(fields).map_err(bad)?;
        let config: Self = serde_json::from_value(json).map_err(|error| bad(error.to_string()))?;
        config.check().map_err(|message| PolicyError::Config {
            origin: origin.to_owned(),
            message,
        })?;
        Ok(config)
    }

    /// Checks a configuration that was made in code. `parse` and `load` have done so already.
    pub fn validate(&self) -> Result<()> {
        self.check().map_err(|message| PolicyError::Config {
            origin: "model configuration".to_owned(),
            message,
        })
    }

    fn check(&self) -> Result<(), String> {
        let sizes = [
            ("hidden_size", self.hidden_size, 8, 1 << 16),
            ("intermediate_size", self.intermediate_size, 8, 1 << 18),
            ("head_dim", self.head_dim, 8, 256),
            ("vocab_size", self.vocab_size, 1, 1 << 24),
            ("num_hidden_layers", self.num_hidden_layers, 1, 1024),
            ("num_attention_heads", self.num_attention_heads, 1, 1024),
            ("num_key_value_heads", self.num_key_value_heads, 1, 1024),
            (
                "max_position_embeddings",
                self.max_position_embeddings,
                1,
                1 << 24,
            ),
        ];
        // Far above any model of the family: a typing error should not show up as a lack of memory.
        for (name, value, multiple, most) in sizes {
            if value == 0 || value % multiple != 0 || value > most {
                return Err(format!(
                    "{name} is {value}; it must be a positive multiple of {multiple}, at most {most}"
                ));
            }
        }
        if self.vocab_size < 8 {
            return Err(format!("vocab_size is {}; the least is 8", self.vocab_size));
        }
        if !self
            .num_attention_heads
            .is_multiple_of(self.num_key_value_heads)
        {
            return Err(format!(
                "num_attention_heads ({}) must be a multiple of num_key_value_heads ({})",
                self.num_attention_heads, self.num_key_value_heads
            ));
        }
        let numbers = [
            ("rms_norm_eps", self.rms_norm_eps),
            ("rope_theta", self.rope_theta),
            ("initializer_range", self.initializer_range),
        ];
        for (name, value) in numbers {
            if !(value.is_finite() && value > 0.0) {
                return Err(format!("{name} is {value}; it must be a positive number"));
            }
        }
        Ok(())
    }

    /// Width of the packed query, key and value projection.
    pub(crate) fn qkv_width(&self) -> usize {
        (self.num_attention_heads + 2 * self.num_key_value_heads) * self.head_dim
    }

    /// Width of all query heads together.
    pub(crate) fn attention_width(&self) -> usize {
        self.num_attention_heads * self.head_dim
    }

    /// Number of parameters of the model, with tied embeddings counted once.
    pub fn parameter_count(&self) -> usize {
        let embeddings = if self.tie_word_embeddings { 1 } else { 2 };
        let layer = self.hidden_size
            * (self.qkv_width() + self.attention_width() + 3 * self.intermediate_size)
            + 2 * self.hidden_size
            + 2 * self.head_dim;
        embeddings * self.vocab_size * self.hidden_size
            + self.num_hidden_layers * layer
            + self.hidden_size
    }

    /// The text of a `config.json` that transformers reads as this model. `dtype` is PyTorch's name for the type of its
    /// weights.
    pub(crate) fn to_json(&self, dtype: &str) -> String {
        let mut json = serde_json::json!({
            "architectures": ["Qwen3ForCausalLM"],
            "model_type": "qwen3",
            "hidden_act": "silu",
            "attention_bias": false,
            "attention_dropout": 0.0,
            "rope_scaling": null,
            "sliding_window": null,
            "use_sliding_window": false,
            "torch_dtype": dtype,
            "use_cache": true,
        });
        if let (Some(all), Ok(Value::Object(own))) =
            (json.as_object_mut(), serde_json::to_value(self))
        {
            all.extend(own);
        }
        format!("{json:#}\n")
    }
}

/// Refuses settings that change the arithmetic and that this implementation does not support.
fn refuse_unsupported(fields: &serde_json::Map<String, Value>) -> Result<(), String> {
    let on = |name: &str| fields.get(name).and_then(Value::as_bool).unwrap_or(false);
    if let Some(kind) = fields.get("model_type").and_then(Value::as_str)
        && kind != "qwen3"
    {
        return Err(format!(
            "model_type is \"{kind}\"; only \"qwen3\" (dense) is supported"
        ));
    }
    if let Some(activation) = fields.get("hidden_act").and_then(Value::as_str)
        && activation != "silu"
    {
        return Err(format!(
            "hidden_act is \"{activation}\"; only \"silu\" is supported"
        ));
    }
    if on("attention_bias") {
        return Err(
            "attention_bias is true; Qwen3 checkpoints have none, and it is not supported"
                .to_owned(),
        );
    }
    if on("use_sliding_window") {
        return Err("use_sliding_window is true; only full attention is supported".to_owned());
    }
    if let Some(Value::Object(scaling)) = fields.get("rope_scaling") {
        let kind = scaling
            .get("rope_type")
            .or_else(|| scaling.get("type"))
            .and_then(Value::as_str)
            .unwrap_or("unnamed");
        if kind != "default" {
            return Err(format!(
                "rope_scaling asks for \"{kind}\"; only unscaled rotary positions are supported (set it to null)"
            ));
        }
    }
    if fields.contains_key("quantization_config") {
        return Err("the checkpoint is quantised; use the bf16, f16 or f32 one".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// config.json of Qwen/Qwen3-0.6B, as published.
    const QWEN3_06B: &str = r#"{"architectures":["Qwen3ForCausalLM"],"attention_bias":false,"attention_dropout":0.0,
        "bos_token_id":151643,"eos_token_id":151645,"head_dim":128,"hidden_act":"silu","hidden_size":1024,
        "initializer_range":0.02,"intermediate_size":3072,"max_position_embeddings":40960,"max_window_layers":28,
        "model_type":"qwen3","num_attention_heads":16,"num_hidden_layers":28,"num_key_value_heads":8,
        "rms_norm_eps":1e-06,"rope_scaling":null,"rope_theta":1000000,"sliding_window":null,
        "tie_word_embeddings":true,"torch_dtype":"bfloat16","transformers_version":"4.51.0","use_cache":true,
        "use_sliding_window":false,"vocab_size":151936}"#;

    fn refusal(from: &str, to: &str) -> String {
        assert!(QWEN3_06B.contains(from));
        Qwen3Config::parse(&QWEN3_06B.replacen(from, to, 1), "config.json")
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_published_config_is_read() {
        let config = Qwen3Config::parse(QWEN3_06B, "config.json").unwrap();
        assert_eq!(config.qkv_width(), 4096);
        // 0.6B, as its model card says: 596,049,920 numbers.
        assert_eq!(config.parameter_count(), 596_049_920);
        assert_eq!(
            Qwen3Config::parse(&config.to_json("float32"), "again").unwrap(),
            config
        );
    }

    #[test]
    fn rotary_settings_are_read_where_transformers_5_writes_them() {
        let text = QWEN3_06B.replacen(
            "\"rope_theta\":1000000,",
            "\"rope_parameters\":{\"rope_theta\":5000000,\"rope_type\":\"default\"},",
            1,
        );
        assert_eq!(
            Qwen3Config::parse(&text, "config.json").unwrap().rope_theta,
            5e6
        );
    }

    #[test]
    fn what_is_not_supported_is_refused_by_name() {
        for (from, to, says) in [
            (
                "\"model_type\":\"qwen3\"",
                "\"model_type\":\"qwen3_moe\"",
                "qwen3_moe",
            ),
            ("\"hidden_act\":\"silu\"", "\"hidden_act\":\"gelu\"", "gelu"),
            (
                "\"attention_bias\":false",
                "\"attention_bias\":true",
                "attention_bias",
            ),
            (
                "\"use_sliding_window\":false",
                "\"use_sliding_window\":true",
                "use_sliding_window",
            ),
            (
                "\"rope_scaling\":null",
                "\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4}",
                "yarn",
            ),
            ("\"head_dim\":128", "\"head_dim\":100", "head_dim is 100"),
            (
                "\"num_key_value_heads\":8",
                "\"num_key_value_heads\":5",
                "multiple of num_key_value_heads",
            ),
            ("\"hidden_size\":1024,", "", "missing field `hidden_size`"),
            (
                "\"hidden_size\":1024",
                "\"hidden_size\":\"big\"",
                "invalid type",
            ),
            (
                "\"rms_norm_eps\":1e-06",
                "\"rms_norm_eps\":0",
                "rms_norm_eps",
            ),
            ("{", "[", "not JSON"),
        ] {
            let message = refusal(from, to);
            assert!(
                message.contains(says) && message.contains("config.json"),
                "{message}"
            );
        }
    }
}
