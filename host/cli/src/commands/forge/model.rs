//! The language model of `forge env new` and `forge tasks`: its endpoint and its price.

use std::time::Duration;

use anyhow::bail;
use rlf_endpoint::EndpointConfig;
use rlf_forge::ask::Price;

use crate::arguments::ForgeModel;
use crate::operator::Operator;

/// Whether a model is named, on the command line or in the configuration.
pub(super) fn is_named(model: &ForgeModel, operator: &Operator) -> bool {
    model.url.is_some() || model.model.is_some() || operator.writer.is_some()
}

/// The endpoint of the table `[writer]`, with the options of the command line. The limits of a question count where the
/// configuration sets none. `otherwise` says what works without a model.
pub(super) fn endpoint(
    model: &ForgeModel,
    operator: &Operator,
    (max_tokens, timeout): (u32, Duration),
    otherwise: &str,
) -> anyhow::Result<EndpointConfig> {
    let mut config = operator.writer.clone().unwrap_or_default();
    if !operator.has(&["writer", "max_tokens"]) {
        config.max_tokens = max_tokens;
    }
    if !operator.has(&["writer", "timeout_ms"]) {
        config.timeout = timeout;
    }
    if let Some(url) = &model.url {
        config.url.clone_from(url);
    }
    if let Some(name) = &model.model {
        config.model.clone_from(name);
    }
    if let Some(key) = &model.key_env {
        config.key_env = Some(key.clone());
        config.key_file = None;
    }
    if let Some(temperature) = model.temperature {
        config.temperature = temperature;
    }
    if config.url.is_empty() || config.model.is_empty() {
        bail!(
            "no model is named; give --url and --model, or a table [writer] with `url` and `model` in the file of --config \
             ({otherwise})"
        );
    }
    Ok(config)
}

/// The price of the command line.
pub(super) fn price(model: &ForgeModel) -> Option<Price> {
    let price = model.price_prompt.zip(model.price_answer);
    price.map(|(prompt, answer)| Price { prompt, answer })
}
