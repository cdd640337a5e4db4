//! A checkpoint's `generation_config.json`: the ids that end generation, and the sampling of its authors.

use std::io::ErrorKind;
use std::path::Path;

use serde::Deserialize;

use crate::error::{PolicyError, Result};
use crate::sample::SamplingParams;

/// The used part of `generation_config.json`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
pub struct GenerationConfig {
    /// Ids that end generation.
    #[serde(default)]
    eos_token_id: Ids,
    /// True if the checkpoint's authors sample; if not, they decode greedily.
    #[serde(default)]
    do_sample: bool,
    #[serde(default)]
    temperature: Option<f32>,
    #[serde(default)]
    top_p: Option<f32>,
    #[serde(default)]
    top_k: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(untagged)]
enum Ids {
    #[default]
    None,
    One(u32),
    Many(Vec<u32>),
}

impl GenerationConfig {
    /// Reads `generation_config.json` in a checkpoint's folder. `None` if there is none.
    pub fn load(checkpoint: &Path) -> Result<Option<Self>> {
        let path = checkpoint.join("generation_config.json");
        let text = match rlf_files::read_text(&path, rlf_files::MAX_TEXT_BYTES) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            other => other.map_err(PolicyError::io(&path, "reading generation settings"))?,
        };
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| PolicyError::Config {
                origin: path.display().to_string(),
                message: error.to_string(),
            })
    }

    /// Ids that end generation, in the file's order.
    pub fn stop_ids(&self) -> Vec<u32> {
        match &self.eos_token_id {
            Ids::None => Vec::new(),
            Ids::One(id) => vec![*id],
            Ids::Many(ids) => ids.clone(),
        }
    }

    /// The sampling parameters of the checkpoint's authors, for evaluations that ask for them.
    pub fn sampling(&self) -> SamplingParams {
        if !self.do_sample {
            return SamplingParams::greedy();
        }
        SamplingParams {
            temperature: self.temperature.unwrap_or(1.0),
            top_p: self.top_p.unwrap_or(1.0),
            top_k: self.top_k.unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_published_file_of_qwen3_is_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(GenerationConfig::load(folder.path()).unwrap(), None);
        let file = folder.path().join("generation_config.json");
        // generation_config.json of Qwen/Qwen3-0.6B, as published.
        fs::write(
            &file,
            r#"{"bos_token_id":151643,"do_sample":true,"eos_token_id":[151645,151643],"pad_token_id":151643,
                "temperature":0.6,"top_k":20,"top_p":0.95,"transformers_version":"4.51.0"}"#,
        )
        .unwrap();
        let config = GenerationConfig::load(folder.path()).unwrap().unwrap();
        assert_eq!(config.stop_ids(), [151_645, 151_643]);
        assert_eq!(
            config.sampling(),
            SamplingParams {
                temperature: 0.6,
                top_p: 0.95,
                top_k: 20
            }
        );
        fs::write(&file, r#"{"eos_token_id":7}"#).unwrap();
        let config = GenerationConfig::load(folder.path()).unwrap().unwrap();
        assert_eq!(config.stop_ids(), [7]);
        assert_eq!(config.sampling(), SamplingParams::greedy());
        fs::write(&file, r#"{"eos_token_id":"end"}"#).unwrap();
        assert!(
            GenerationConfig::load(folder.path())
                .unwrap_err()
                .to_string()
                .contains("generation_config.json")
        );
    }
}
