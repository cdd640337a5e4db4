//! Writing an environment by a script, with an opener that has no plugins.

use std::path::Path;

use async_trait::async_trait;
use rlf_environments::environments::Environments;
use rlf_forge::ask::prompts::Prompts;
use rlf_forge::ask::{Account, Limits, Silent};
use rlf_forge::writer::{
    Form, NotOpened, Opener, PROMPTS, Request, Thoroughness, WriteError, Writer, Written,
};

use crate::scripted::{Scripted, asker};

pub(crate) const SKETCH: &str = include_str!("../../../../tests/fixtures/tool-library/sketch.json");
pub(crate) const PLAN: &str = include_str!("../../../../tests/fixtures/tool-library/plan.json");
pub(crate) const SPECIFICATION: &str =
    include_str!("../../../../tests/fixtures/tool-library/specification.toml");
pub(crate) const SCENARIOS: &str =
    include_str!("../../../../tests/fixtures/tool-library/scenarios.toml");

/// Opens nothing, and says why not.
pub(crate) struct NoPlugins(pub(crate) fn(String) -> NotOpened);

#[async_trait]
impl Opener for NoPlugins {
    async fn open(&self, _: &Path) -> Result<Environments, NotOpened> {
        Err((self.0)("there are no plugins".to_owned()))
    }
}

/// Waits for ever.
pub(crate) struct Stalls;

#[async_trait]
impl Opener for Stalls {
    async fn open(&self, _: &Path) -> Result<Environments, NotOpened> {
        std::future::pending().await
    }
}

pub(crate) fn request(rounds: u32) -> Request {
    Request {
        description: "a library that lends tools".to_owned(),
        form: Form::Specification,
        rounds,
        thoroughness: Thoroughness::default(),
    }
}

/// Writes an environment into `output` with a script.
pub(crate) async fn write(
    model: &Scripted,
    rounds: u32,
    output: &Path,
) -> Result<Written, WriteError> {
    let opener = NoPlugins(NotOpened::Faulty);
    write_with(model, rounds, output, Limits::default(), &opener).await
}

/// As [`write`], within limits and with an opener.
pub(crate) async fn write_with(
    model: &Scripted,
    rounds: u32,
    output: &Path,
    limits: Limits,
    opener: &dyn Opener,
) -> Result<Written, WriteError> {
    let request = request(rounds);
    let work = output.join("work");
    let mut asker = asker(model, &request.answers(&work));
    asker.account = Account::new(limits);
    let prompts = Prompts::load(PROMPTS, None).unwrap();
    let writer = Writer {
        asker: &asker,
        prompts: &prompts,
        opener,
        output: output.to_owned(),
        folder: request.folder(&work),
        observer: &Silent,
    };
    writer.write(&request).await
}
