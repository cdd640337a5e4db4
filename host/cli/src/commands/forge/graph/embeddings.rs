//! Embeddings of the parameters of a graph, from the cache and an endpoint.

use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use rlf_endpoint::{Endpoint, EndpointConfig};
use rlf_forge::graph::{EmbedError, Embedder as _, Embeddings, Missing, Tool, Vectors};
use serde_json::json;

use crate::arguments::{ForgeGraph, GroupOptions};
use crate::display::printable;
use crate::operator::Operator;

/// The embeddings of the inputs and outputs of all tools. None after a dry run.
pub(super) fn fetch(
    options: &ForgeGraph,
    forge: &GroupOptions,
    tools: &[Tool],
) -> anyhow::Result<Option<Embeddings>> {
    let operator = Operator::load(forge.config.as_deref())?;
    let endpoint = Endpoint::open(endpoint(options, &operator)?)
        .map_err(|error| anyhow!("[embeddings] {error}"))?;
    let folder = match &options.cache {
        Some(folder) => folder.clone(),
        None => cache()
            .context("there is no folder for caches (HOME is not set); name one with --cache")?,
    };
    let mut vectors = Vectors::open(&folder, &endpoint.identity())?;
    let missing = Missing::new(tools, &vectors);
    if options.dry_run {
        show(&missing, &vectors, forge.json)?;
        return Ok(None);
    }
    let fetched = Embeddings::fetch(tools, &endpoint, &mut vectors, options.max_tokens_total);
    let fetched = crate::commands::runtime()?.block_on(fetched);
    let mut embeddings = fetched.map_err(|error| {
        let advice = match &error {
            EmbedError::TooMany { .. } => "no graph was made; raise --max-tokens-total".to_owned(),
            EmbedError::Endpoint(_) | EmbedError::Vectors(_) => format!(
                "no graph was made; all vectors so far are kept in {}, and the same command goes on from there",
                vectors.path().display()
            ),
        };
        // It may quote the endpoint.
        anyhow!("{}", printable(&error.to_string())).context(advice)
    })?;
    if let Some(threshold) = options.threshold {
        embeddings.threshold = threshold;
    }
    Ok(Some(embeddings))
}

/// The endpoint of the table `[embeddings]`, with the options of the command line.
fn endpoint(options: &ForgeGraph, operator: &Operator) -> anyhow::Result<EndpointConfig> {
    let mut config = operator.embeddings.clone().unwrap_or_default();
    if let Some(url) = &options.url {
        config.url.clone_from(url);
    }
    if let Some(model) = &options.model {
        config.model.clone_from(model);
    }
    if let Some(key) = &options.key_env {
        config.key_env = Some(key.clone());
        config.key_file = None;
    }
    if config.url.is_empty() || config.model.is_empty() {
        bail!(
            "no embedding model is named; give --url and --model, or a table [embeddings] with `url` and `model` in the file \
             of --config (without --embeddings, shared words are compared)"
        );
    }
    Ok(config)
}

/// The user's folder for embeddings.
fn cache() -> Option<PathBuf> {
    let components = rlf_sandbox::user_cache()?;
    Some(components.with_file_name("embeddings"))
}

fn show(missing: &Missing, vectors: &Vectors, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        let report = json!({
            "texts": missing.all, "missing": missing.texts.len(), "requests": missing.requests(),
            "tokens": missing.tokens(), "cache": vectors.path(),
        });
        say!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(());
    }
    say!(
        "{} texts, of which {} are not in {}: {} requests with about {} tokens",
        missing.all,
        missing.texts.len(),
        vectors.path().display(),
        missing.requests(),
        missing.tokens()
    );
    Ok(())
}
