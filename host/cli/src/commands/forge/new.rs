//! `rlf-host forge env new`: a language model writes an environment.

mod shown;

use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use async_trait::async_trait;
use rlf_endpoint::Price;
use rlf_environments::environments::Environments;
use rlf_forge::ask::prompts::Prompts;
use rlf_forge::ask::{AskError, Question};
use rlf_forge::writer::{
    Estimate, Form, NotOpened, Opener, PROMPTS, Request, Stop, Thoroughness, WriteError, Writer,
    Written, estimate,
};
use rlf_plugins::problem::{Problem, ProblemKind};
use serde_json::json;

use super::asking::{self, Shown, TIMEOUT, asker, endpoint, price};
use super::interpreter::python;
use crate::arguments::{ForgeNew, GroupOptions, PluginBindings};
use crate::commands::env::find;
use crate::display::printable;
use crate::operator::Operator;

/// Default limit of an answer, in tokens. It is large, because an answer is a whole file.
const MAX_ANSWER_TOKENS: u32 = 16_384;

/// Advice in errors: the command that works without a model.
const WITHOUT: &str = "without a model, `rlf-host forge env compose` makes environments";

pub(super) fn run(new: &ForgeNew, options: &GroupOptions) -> anyhow::Result<ExitCode> {
    let operator = Operator::load(options.config.as_deref())?;
    if new.description.trim().is_empty() {
        bail!(
            "the description is empty; write what the environment is, such as \"a library that lends tools\""
        );
    }
    let request = Request {
        description: new.description.trim().to_owned(),
        form: new.form.into(),
        rounds: new.rounds,
        thoroughness: Thoroughness::for_seed(new.seed),
    };
    let work = new.work.clone().unwrap_or_else(|| beside(&new.output));
    apart(&work, &new.output)?;
    let price = price(&new.model.endpoint);
    let prompts = Prompts::load(PROMPTS, new.model.endpoint.prompts.as_deref())?;
    let (estimated, first) =
        estimate(&prompts, &request.description, request.form, request.rounds)?;
    if new.dry_run {
        return dry_run(&estimated, &first, price, options.json);
    }
    let limits = (MAX_ANSWER_TOKENS, TIMEOUT);
    let endpoint = endpoint(&new.model.endpoint, &operator, limits, WITHOUT)?;
    let opener = Plugins {
        added: &options.plugins.plugins,
        operator: &operator,
    };
    opener.probe(request.form)?;
    if !options.json {
        shown::estimate(&estimated, price);
    }
    let shown = Shown::new(options.json);
    let answers = request.answers(&work);
    let asker = asker(&new.model, &endpoint, &answers, new.seed, &shown);
    let writer = Writer {
        asker: &asker,
        prompts: &prompts,
        opener: &opener,
        output: new.output.clone(),
        folder: request.folder(&work),
        observer: &shown,
    };
    let written = crate::commands::runtime()?.block_on(writer.write(&request));
    let written = written.map_err(|error| explained(&error, &writer.folder))?;
    if options.json {
        let cost =
            price.map(|price| price.cost(written.spent.prompt_tokens, written.spent.answer_tokens));
        let report = json!({"written": written, "cost": cost, "work": writer.folder});
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        shown::written(&written, &writer.folder, price);
    }
    Ok(exit(&written))
}

/// The default folder of the work, beside a folder of environments.
fn beside(output: &Path) -> PathBuf {
    // Only the whole path of `.` ends in a name.
    let whole = match output.file_name() {
        Some(_) => output.to_owned(),
        None => output.canonicalize().unwrap_or_else(|_| output.to_owned()),
    };
    let mut name = whole.file_name().unwrap_or_default().to_owned();
    name.push("-work");
    whole.with_file_name(name)
}

/// Refuses a folder of the work that is the folder of environments or inside it. Its files would be taken for
/// environments.
fn apart(work: &Path, output: &Path) -> anyhow::Result<()> {
    if resolved(work)?.starts_with(resolved(output)?) {
        bail!(
            "--work {} is in --output {}, where its files would be taken for environments; name a folder outside of it",
            work.display(),
            output.display()
        );
    }
    Ok(())
}

/// The whole path of a folder that need not exist, without links, `.` and `..`.
fn resolved(folder: &Path) -> anyhow::Result<PathBuf> {
    let cannot = || format!("cannot resolve {}", folder.display());
    let whole = std::path::absolute(folder).with_context(cannot)?;
    let mut path = PathBuf::new();
    for part in whole.components() {
        if part == Component::ParentDir {
            path.pop();
        } else {
            path.push(part);
        }
        if let Ok(real) = path.canonicalize() {
            path = real;
        }
    }
    Ok(path)
}

fn exit(written: &Written) -> ExitCode {
    if written.stop == Stop::Sound {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn dry_run(
    estimated: &Estimate,
    first: &Question,
    price: Option<Price>,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    if as_json {
        let report = json!({
            "estimate": estimated,
            "least": estimated.total(0, price),
            "most": estimated.total(estimated.rounds, price),
            "first": {"stage": first.stage, "messages": first.messages},
        });
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        shown::stages(estimated);
        shown::estimate(estimated, price);
        asking::question(first);
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds to an error what is kept, and what to do next.
fn explained(error: &WriteError, folder: &Path) -> anyhow::Error {
    let advice = match error {
        WriteError::Ask(AskError::Unusable { .. }) => {
            "raise --attempts to ask again; another model, --seed or changed --prompts may do better"
        }
        WriteError::Ask(AskError::OutOfTokens { .. }) => {
            "raise --max-tokens-total, and the same command goes on from there"
        }
        WriteError::Ask(AskError::OutOfTime { .. }) => {
            "raise --max-time, and the same command goes on from there"
        }
        WriteError::InUse(_) => "when it has ended, the same command goes on from there",
        WriteError::Taken { .. } => "the same command puts it there without asking again",
        WriteError::Prompt(_) => "nothing is lost",
        WriteError::Ask(_) | WriteError::Disk { .. } | WriteError::Unplayable { .. } => {
            "when that is mended, the same command goes on from there"
        }
    };
    // It may quote the model.
    anyhow!("{}", printable(&error.to_string())).context(format!(
        "no environment was added; all answers so far are kept in {}; {advice}",
        folder.display()
    ))
}

/// Opens candidates with the plugins of this program.
struct Plugins<'a> {
    added: &'a [PathBuf],
    operator: &'a Operator,
}

impl Plugins<'_> {
    /// Loads a file. This must not run on a thread of a runtime, because loading waits for plugins.
    fn load(&self, file: &Path) -> anyhow::Result<Environments> {
        Ok(find(self.added, self.operator, file, &PluginBindings::NONE)?.environments)
    }

    /// Fails if environments of a form cannot be played here. Then no model is paid, and no candidate is blamed for it.
    fn probe(&self, form: Form) -> anyhow::Result<()> {
        let probed = match form {
            Form::Specification => self.probe_specification(),
            // The interpreter alone: one with a file in it would be compiled anew.
            Form::Python => python(self.added, self.operator).map(drop),
        };
        probed.context("environments of this form cannot be played here, so none was written")
    }

    /// Opens a specification that is known to be sound.
    fn probe_specification(&self) -> anyhow::Result<()> {
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let file = folder.path().join("Probe.toml");
        std::fs::write(&file, include_str!("new/probe.toml"))
            .with_context(|| format!("cannot write {}", file.display()))?;
        self.load(&file).map(drop)
    }
}

#[async_trait]
impl Opener for Plugins<'_> {
    async fn open(&self, file: &Path) -> Result<Environments, NotOpened> {
        let loaded = std::thread::scope(|scope| scope.spawn(|| self.load(file)).join());
        match loaded {
            Ok(loaded) => loaded.map_err(|error| not_opened(&error)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Decides whether the candidate or the machine is to blame for an error of loading. The code of a Python file runs in
/// `init`, and lists the tools, and a specification is read there: errors there are the candidate's fault. Everything
/// else is the machine's, such as a full disk, because a revision that cannot help would have to be paid for.
fn not_opened(error: &anyhow::Error) -> NotOpened {
    let why = format!("{error:#}");
    match error.downcast_ref::<Problem>().map(|problem| problem.kind) {
        Some(ProblemKind::Init | ProblemKind::Tools) => NotOpened::Faulty(why),
        _ => NotOpened::Unavailable(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_outside_of_the_folder_of_environments() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let output = place("environments");
        for work in [
            "environments",
            "environments/work",
            "x/../environments/y",
            "environments/.",
        ] {
            let refused = apart(&place(work), &output).unwrap_err().to_string();
            assert!(refused.contains("outside"), "{refused}");
        }
        for work in ["environments-work", "work", "environments/../work"] {
            apart(&place(work), &output).unwrap();
        }
        assert!(apart(&beside(&output), &output).is_ok());
    }

    #[test]
    fn only_what_the_code_of_a_candidate_does_is_its_fault() {
        let disk = anyhow!("no space left on device").context("cannot write the cache");
        let why = "cannot write the cache: no space left on device".to_owned();
        assert_eq!(not_opened(&disk), NotOpened::Unavailable(why));
        let problem = |kind| {
            let problem = Problem {
                plugin: Some("Doors".to_owned()),
                path: PathBuf::from("Doors.py"),
                kind,
                what: "it has no tools".to_owned(),
                mend: String::new(),
            };
            not_opened(&problem.into())
        };
        for kind in [ProblemKind::Init, ProblemKind::Tools] {
            assert!(matches!(problem(kind), NotOpened::Faulty(_)));
        }
        for kind in [ProblemKind::Data, ProblemKind::File, ProblemKind::Component] {
            assert!(matches!(problem(kind), NotOpened::Unavailable(_)));
        }
    }
}
