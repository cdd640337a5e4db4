//! `cargo xtask clients`: runs published clients from PyPI against our service; trains by agents that use published packages;
//! runs MCP clients and servers from PyPI and npm; those of OpenEnv, with TRL; servers of ORS; published trainers with
//! the Python package; PEFT with adapters of a run; or transformers with its models. It is not part of the tests, because
//! it needs the network and a Python.

use std::{
    fmt::Write as _,
    io::{BufRead, BufReader},
    net::TcpListener,
    path::PathBuf,
    process::{Child, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum as _;

use crate::{
    guests::Family,
    host,
    machine::{self, Need},
    package, plugins,
    project::Project,
    python,
    steps::{self, Steps},
};

/// SandboxFusion's SDK.
const SDK: &str = "sandbox-fusion==0.3.7";
/// Only verl's client of the service is used, so none of verl's dependencies are installed.
const VERL: &str = "verl==0.9.1";
/// tinker-cookbook's code grader, with the one package that it needs beside those of the SDK. It imports numpy in the
/// sandbox.
const TINKER: [&str; 2] = ["tinker-cookbook==0.6.1", "chz"];
/// The program that runs the clients.
const CASES: &str = "tests/clients/clients.py";
/// TRL, with what its GRPO with environments needs.
const TRL: [&str; 4] = [
    "torch==2.15.0",
    "transformers==5.24.0",
    "trl==1.16.0",
    "jmespath",
];
/// The other trainers that the Python package has adapters for, with what their parts need that are used.
const TRAINERS: [&str; 4] = ["verifiers==0.4.0", "ray", "tensordict", "omegaconf"];
/// The program that runs the trainers.
const TRAINER_CASES: &str = "tests/clients/trainers.py";

/// MCP's Python SDK, and a server that is written with it.
const MCP: [&str; 2] = ["mcp==2.3.0", "mcp-server-time==2026.10.19"];
/// MCP's conformance tests and its inspector, with a Node that is new enough for them.
const MCP_FROM_NPM: [&str; 3] = [
    "@modelcontextprotocol/conformance@0.1.16",
    "@modelcontextprotocol/inspector@2.12.0",
    "node@22.23.3",
];
/// The program that runs the MCP clients.
const MCP_CASES: &str = "tests/clients/mcp_clients.py";
/// The tools that the conformance tests call.
const MCP_TOOLS: &str = "tests/clients/mcp_tools";

/// Packages that agents are written with.
const AGENTS: [&str; 3] = [
    "openai==3.57.0",
    "anthropic==2.14.0",
    "openai-agents==0.24.0",
];
/// The program that trains by such agents.
const AGENT_CASES: &str = "tests/clients/agent_clients.py";

/// OpenEnv's package, with its clients and its server.
const OPENENV: &str = "openenv-core==0.3.0";
/// The program that runs them.
const OPENENV_CASES: &str = "tests/clients/openenv_clients.py";

/// The packages that servers of the Open Reward Standard are written with.
const ORS: [&str; 2] = ["openreward==0.1.167", "ors-sdk==0.1.0"];
/// The program that trains in their environments.
const ORS_CASES: &str = "tests/clients/ors_clients.py";

/// PEFT, with what its models need.
const PEFT: [&str; 3] = ["torch==2.15.0", "transformers==5.24.0", "peft==0.21.2"];
/// The environment that they are in.
const WITH_PEFT: &str = "peft";
/// The program that compares its adapters with ours.
const PEFT_CASES: &str = "tests/clients/peft_adapters.py";
/// The program that compares models of a run in transformers with what the run recorded.
const TRANSFORMERS_CASES: &str = "tests/clients/exported_models.py";

/// The clients to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Clients {
    /// Published clients of SandboxFusion's protocol, against our service
    #[default]
    Service,
    /// Agents that use the packages of OpenAI and Anthropic, and an agent framework; they are trained
    Agents,
    /// MCP's Python SDK, inspector and conformance tests, and a published MCP server; needs npm
    Mcp,
    /// OpenEnv's clients and TRL against our service, and training in environments of OpenEnv's server; downloads about
    /// 4 GB
    Openenv,
    /// Training in environments of servers of the Open Reward Standard
    Ors,
    /// PEFT, which loads adapters of a run, and whose adapters a run loads; downloads about 4 GB
    Peft,
    /// transformers, which loads models of a run and computes what the run recorded; downloads about 4 GB
    Transformers,
    /// TRL, verl and verifiers with the Python package; downloads about 4 GB
    Trainers,
    /// All of these, one after the other, with one table at the end
    All,
}

impl Clients {
    /// The kinds, in the order in which all of them are run.
    const ALL: [Self; 8] = [
        Self::Service,
        Self::Mcp,
        Self::Agents,
        Self::Ors,
        Self::Openenv,
        Self::Trainers,
        Self::Peft,
        Self::Transformers,
    ];

    /// The word on the command line.
    fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Builds everything, installs the clients in the target folder, and runs them.
pub fn run(project: &Project, clients: Clients) -> Result<()> {
    let mut steps = Steps::new();
    steps.take("make ready", || {
        machine::make_ready(project, &[Need::Wasm, Need::Native])
    })?;
    host::build(project, &mut steps)?;
    steps.take("build the plugins", || plugins::build(project))?;
    steps.take("build the Python interpreter", || {
        plugins::build_python(project)
    })?;
    if clients != Clients::All {
        return run_kind(project, clients, &mut steps);
    }
    let mut table = String::new();
    let mut failed = 0;
    for kind in Clients::ALL {
        let began = Instant::now();
        let ended = run_kind(project, kind, &mut steps);
        let seconds = began.elapsed().as_secs();
        let word = match ended {
            Ok(()) => "passed".to_owned(),
            Err(error) => {
                failed += 1;
                format!("FAILED: {error:#}")
            }
        };
        _ = writeln!(table, "  {:<10} {seconds:>5} s  {word}", kind.name());
    }
    println!("\nclients of other projects\n{table}");
    ensure!(failed == 0, "{failed} of {} failed", Clients::ALL.len());
    Ok(())
}

/// Installs and runs the clients of one kind.
fn run_kind(project: &Project, clients: Clients, steps: &mut Steps) -> Result<()> {
    match clients {
        Clients::All => bail!("the kinds are run one after the other"),
        Clients::Service => service(project, steps),
        Clients::Mcp => mcp(project, steps),
        Clients::Trainers => {
            let folder = package::lay_out_built(project)?;
            let packages: [&[&str]; 3] = [&TRL, &TRAINERS, &["--no-deps", VERL]];
            let python = installed(project, steps, "trainers", &packages)?;
            steps.run(
                "the adapters with the trainers",
                (project.command(&python).arg(TRAINER_CASES)).env("PYTHONPATH", folder),
                SEE,
            )
        }
        Clients::Agents => run_program(project, steps, ("agents", &[&AGENTS]), AGENT_CASES),
        Clients::Openenv => {
            let packages: [&[&str]; 2] = [&TRL, &[OPENENV]];
            run_program(project, steps, ("openenv", &packages), OPENENV_CASES)
        }
        Clients::Ors => run_program(project, steps, ("ors", &[&ORS]), ORS_CASES),
        Clients::Peft => run_program(project, steps, (WITH_PEFT, &[&PEFT]), PEFT_CASES),
        Clients::Transformers => {
            run_program(project, steps, (WITH_PEFT, &[&PEFT]), TRANSFORMERS_CASES)
        }
    }
}

/// The advice if a program of cases fails.
const SEE: &str = "see the first failed case above";

/// Installs packages, each call of pip with a list, in an environment of this name. Returns its Python.
fn installed(
    project: &Project,
    steps: &mut Steps,
    name: &str,
    packages: &[&[&str]],
) -> Result<PathBuf> {
    steps.take(&format!("{name} from PyPI"), || {
        environment(project, name, packages)
    })
}

/// Runs a program of cases that starts the built `rlf-host` by itself, in an environment of this name with these packages.
fn run_program(
    project: &Project,
    steps: &mut Steps,
    (name, packages): (&str, &[&[&str]]),
    cases: &str,
) -> Result<()> {
    let python = installed(project, steps, name, packages)?;
    let mut program = project.command(&python);
    let built = [project.binary(), project.root().join("target/plugins")];
    steps.run(cases, program.arg(cases).args(built), SEE)
}

/// Runs the clients of the service.
fn service(project: &Project, steps: &mut Steps) -> Result<()> {
    let packages: [&[&str]; 2] = [&[SDK], &["--no-deps", VERL, TINKER[0], TINKER[1]]];
    let python = installed(project, steps, "clients", &packages)?;
    let packages = steps::output(project.command(&python).args([
        "-c",
        "import sysconfig; print(sysconfig.get_paths()['purelib'])",
    ]))?;
    let service = Service::start(project, "127.0.0.1:0", &[])?;
    steps.run(
        "clients against the service",
        project
            .command(&python)
            .args([CASES, &service.url, packages.trim()]),
        SEE,
    )
}

fn mcp(project: &Project, steps: &mut Steps) -> Result<()> {
    let python = installed(project, steps, "mcp-clients", &[&MCP])?;
    let npm = steps.take("MCP's clients from npm", || from_npm(project))?;
    // The conformance tests name this origin, with the port.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let address = format!("127.0.0.1:{port}");
    let origin = format!("http://{address}");
    let more = ["--origin", &origin, "--plugins", MCP_TOOLS];
    let service = Service::start(project, &address, &more)?;
    let servers = python.parent().context("an environment has a folder")?;
    steps.run(
        "MCP's clients against the service",
        project
            .command(&python)
            .args([MCP_CASES, &service.url])
            .args([project.binary(), npm, servers.to_owned()]),
        SEE,
    )
}

/// The folder in the target folder in which npm has installed MCP's packages.
fn from_npm(project: &Project) -> Result<PathBuf> {
    let folder = project.root().join("target/mcp-npm");
    let ready = folder.join(MCP_FROM_NPM.join(" ").replace('/', "-"));
    if !ready.exists() {
        let mut npm = project.command("npm");
        npm.args(["install", "--silent", "--no-save", "--prefix"])
            .arg(&folder)
            .args(MCP_FROM_NPM);
        steps::output(&mut npm).context("npm is needed to install MCP's packages")?;
        std::fs::write(&ready, "").with_context(|| format!("cannot write {}", ready.display()))?;
    }
    Ok(folder)
}

/// The Python of an environment with torch, transformers and PEFT. It is about 4 GB: for Linux, PyPI has torch only
/// with CUDA.
pub(crate) fn with_transformers(project: &Project) -> Result<PathBuf> {
    environment(project, WITH_PEFT, &[&PEFT])
}

/// The Python of an environment in the target folder with the packages of each call of pip.
pub(crate) fn environment(project: &Project, name: &str, calls: &[&[&str]]) -> Result<PathBuf> {
    let folder = project.root().join("target").join(name);
    let python = folder.join("bin/python");
    let ready = folder.join(calls.concat().join(" "));
    if ready.exists() {
        return Ok(python);
    }
    steps::output(project.command("python3").args(["-m", "venv"]).arg(&folder))
        .context("python3 with its module venv is needed to make the environment")?;
    for packages in calls {
        let mut pip = project.command(&python);
        pip.args(["-m", "pip", "install", "--quiet"])
            .args(*packages);
        steps::output(&mut pip).with_context(|| format!("pip cannot install the {name}"))?;
    }
    std::fs::write(&ready, "").with_context(|| format!("cannot write {}", ready.display()))?;
    Ok(python)
}

/// A running service, which ends when this value is dropped.
struct Service {
    child: Child,
    url: String,
}

impl Service {
    fn start(project: &Project, listen: &str, more: &[&str]) -> Result<Self> {
        let mut serve = project.command(project.binary());
        serve.args(["serve", "--listen", listen]);
        serve.args(["--plugins", "target/plugins"]).args(more);
        // It is compiled when it is first loaded, which takes minutes.
        let science = Family::OnRequest.built(project);
        if science.join(python::SCIENCE).is_dir() {
            serve.arg("--plugins").arg(science);
        }
        let child = serve
            // Some clients provoke errors.
            .env("RLF_LOG", "warn,rmcp=off")
            .stdout(Stdio::piped())
            .spawn()
            .context("rlf-host cannot be started")?;
        let mut service = Self {
            url: String::new(),
            child,
        };
        let stdout = service.child.stdout.take().context("its output is piped")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        match line.trim_end().strip_prefix("listening on ") {
            Some(url) => url.clone_into(&mut service.url),
            None => bail!("rlf-host serve did not print its address: {line:?}"),
        }
        Ok(service)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
