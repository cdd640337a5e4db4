//! The parts that turn messages into token ids: the tokenizer, the chat template and the ids that end a turn.

use std::path::Path;

use rlf_dialogue::dialogue::Dialogue;
use rlf_dialogue::protocol::Protocol;
use rlf_dialogue::template::ChatTemplate;
use rlf_dialogue::tokenizer::Tokenizer;
use rlf_policy::GenerationConfig;

use crate::config::{RunConfig, SMALL_TEMPLATE};
use crate::error::{ConfigurationError, RunFailure};
use crate::reporter::RunReporter;

/// Text to train a tokenizer on.
pub type Corpus<'t> = Box<dyn Iterator<Item = String> + Send + 't>;

/// Tokenizer, chat template and stop ids of a run.
pub(crate) struct TextParts {
    pub(crate) tokenizer: Tokenizer,
    pub(crate) template: ChatTemplate,
    pub(crate) stop_ids: Vec<u32>,
}

impl TextParts {
    /// Makes the parts that a configuration names. If the tokenizer is to be trained, it is trained on `corpus`.
    pub(crate) fn from_config<'t>(
        config: &RunConfig,
        corpus: impl FnOnce() -> Corpus<'t>,
    ) -> Result<Self, RunFailure> {
        Ok(Self {
            tokenizer: open_tokenizer(config, corpus)?,
            template: open_template(config)?,
            stop_ids: stop_ids(config.model.checkpoint.as_deref())?,
        })
    }

    /// Reads the parts that a run started with.
    pub(crate) fn from_run(run: &Path) -> Result<Self, RunFailure> {
        let assets = rlf_train::run::assets_path(run);
        Ok(Self {
            tokenizer: Tokenizer::load(&assets.join("tokenizer.json"))?,
            template: ChatTemplate::load(&assets)?,
            stop_ids: stop_ids(Some(&assets))?,
        })
    }
}

/// The ids that end a turn, from the folder's generation_config.json; empty if there is none.
fn stop_ids(folder: Option<&Path>) -> Result<Vec<u32>, RunFailure> {
    let config = folder.map(GenerationConfig::load).transpose()?.flatten();
    Ok(config.map_or_else(Vec::new, |config| config.stop_ids()))
}

/// The configured tokenizer, trained on `corpus` if the configuration says so.
pub(crate) fn open_tokenizer<'t>(
    config: &RunConfig,
    corpus: impl FnOnce() -> Corpus<'t>,
) -> Result<Tokenizer, RunFailure> {
    if let Some(options) = &config.tokenizer.train {
        let trained = Tokenizer::train_bpe(corpus(), options);
        return trained.map_err(RunFailure::table("tokenizer.train"));
    }
    let file = match (&config.tokenizer.file, &config.model.checkpoint) {
        (Some(file), _) => file.clone(),
        (None, Some(checkpoint)) => checkpoint.join("tokenizer.json"),
        (None, None) => {
            let problem = "no tokenizer is configured; set `tokenizer.file`";
            return Err(ConfigurationError::value("tokenizer", problem).into());
        }
    };
    Ok(Tokenizer::load(&file)?)
}

/// The chat template: `small`, a file, or the checkpoint's own.
fn open_template(config: &RunConfig) -> Result<ChatTemplate, RunFailure> {
    Ok(
        match (config.template.as_deref(), &config.model.checkpoint) {
            (Some(SMALL_TEMPLATE), _) | (None, None) => ChatTemplate::small(),
            (Some(path), _) => ChatTemplate::load(Path::new(path))?,
            (None, Some(checkpoint)) => ChatTemplate::load(checkpoint)?,
        },
    )
}

/// Warns if the template writes calls differently from how the protocol reads them, because a model then learns
/// neither.
pub(crate) fn warn_of_protocol(dialogue: &Dialogue, reporter: &dyn RunReporter) {
    let template = dialogue.template();
    let (used, written) = (dialogue.protocol(), Protocol::detect(template.source()));
    if let Some(written) = written.filter(|written| *written != used) {
        reporter.warn(&format!(
            "dialogue.protocol is {}, but the chat template {} writes calls as {}; leave dialogue.protocol out, or name \
             another `template`",
            used.as_str(),
            template.origin(),
            written.as_str()
        ));
    }
}
