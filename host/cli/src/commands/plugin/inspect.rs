//! `rlf-host plugin inspect` and `check`: print one plugin on one screen.

mod quantity;
mod screen;

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use console::style;
use rlf_plugins::manifest::{GateName, PluginManifest};
use rlf_plugins::plugin::Plugin;
use rlf_plugins::problem::{Problem, one_line};
use rlf_plugins::programs::ProgramGrants;
use rlf_plugins::registry::PluginOnDisk;
use rlf_plugins::report::PluginReport;
use rlf_plugins::script::ScriptLanguage;
use rlf_sandbox::{ComponentInfo, InitMode, InstanceCost, Limits};
use serde::Serialize;
use serde_json::{Value, json};

use self::quantity::limit;
pub(super) use self::quantity::{bytes, grouped};
use self::screen::{Screen, line};
use crate::commands::signature::signature;
use crate::display::printable;
use crate::operator::PluginSettings;

/// Time spent making instances to measure their cost.
const MEASURING: Duration = Duration::from_millis(50);
/// Limits of calls that `programs` replaces by its own.
const NOT_OF_PROGRAMS: [&str; 4] = ["wall_ms", "cpu_ms", "memory_bytes", "output_bytes"];

/// Prints a plugin that loads.
pub(super) fn loaded(
    plugin: &Plugin,
    mut configured: PluginSettings,
    as_json: bool,
    heading: Option<&str>,
) -> anyhow::Result<ExitCode> {
    let report = plugin.report();
    configured.withdraw_unless(&report.hash);
    let cost = crate::commands::runtime()?.block_on(plugin.template().instance_cost(MEASURING));
    if as_json {
        let mut all = serde_json::to_value(&report)?;
        all["entry"] = json!(configured.entry);
        all["settings"] = json!(configured.settings);
        all["instance"] = match &cost {
            Ok(cost) => json!(cost),
            Err(stopped) => json!({"error": stopped.to_string()}),
        };
        if heading.is_some() {
            all = json!({"ok": true, "plugin": all});
        }
        say!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(heading) = heading {
        say!("{} {heading}", style("ok").green().bold());
    }
    let screen = Screen::from_terminal();
    screen.title(
        &report.name,
        report.version.as_deref(),
        Some(report.kind),
        &report.description,
    );
    tools(&screen, &report);
    servers(&screen, &report);
    asked(&screen, plugin.template().info(), plugin.manifest());
    granted(&screen, &configured);
    reaches(&screen, &report);
    config(&screen, &report);
    all_limits(&screen, &report);
    component(&screen, &report.component, &report.hash, &configured);
    preparation(&screen, &report);
    screen.row(
        "instance",
        &cost.map_or_else(|stopped| stopped.to_string(), |cost| instance(&cost)),
    );
    for notice in &report.notices {
        screen.row("note", notice);
    }
    Ok(ExitCode::SUCCESS)
}

/// Describes a plugin that does not load, from its files. Nothing of the plugin is run.
pub(super) fn refused(
    found: &PluginOnDisk,
    mut configured: PluginSettings,
    problem: &Problem,
    as_json: bool,
) -> anyhow::Result<()> {
    let PluginOnDisk {
        files,
        kind,
        component: info,
        manifest,
    } = found;
    configured.withdraw_unless(&info.hash);
    if as_json {
        let report = json!({
            "name": problem.label(),
            "problem": problem,
            "kind": kind,
            "component": files.code(),
            "hash": info.hash,
            "bytes": info.size,
            "imports": info.imports,
            "exports": info.exports,
            "asked": manifest.gates,
            "data": manifest.data,
            "entry": configured.entry,
            "settings": configured.settings,
        });
        say!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(());
    }
    let screen = Screen::from_terminal();
    screen.title(
        problem.label(),
        manifest.version.as_deref(),
        *kind,
        &manifest.description,
    );
    asked(&screen, info, manifest);
    granted(&screen, &configured);
    component(&screen, files.code(), &info.hash, &configured);
    screen.row("size", &bytes(info.size));
    Ok(())
}

fn tools(screen: &Screen, report: &PluginReport) {
    for (index, tool) in report.tools.iter().enumerate() {
        let label = if index == 0 { "tools" } else { "" };
        screen.row(
            label,
            &printable(&signature(&tool.name, &tool.input_schema)),
        );
        let promised = [
            ("read-only", tool.hints.read_only),
            ("idempotent", tool.hints.idempotent),
            ("deterministic", tool.hints.deterministic),
            ("open-world", tool.hints.open_world),
        ];
        let promised: Vec<&str> = promised
            .into_iter()
            .filter_map(|(name, holds)| holds.then_some(name))
            .collect();
        if let Some(first) = tool.description.lines().next() {
            screen.row("", &style(printable(first)).dim().to_string());
        }
        if !promised.is_empty() {
            screen.row("", &format!("says it is {}", promised.join(", ")));
        }
    }
}

/// Says which environment an interpreter has loaded, if it has.
fn servers(screen: &Screen, report: &PluginReport) {
    if let Some(servers) = &report.servers {
        let servers = if servers.is_empty() {
            "an environment of what each task brings".to_owned()
        } else {
            format!("an environment of {}", servers.join(", "))
        };
        screen.row("is", &servers);
    }
}

fn asked(screen: &Screen, info: &ComponentInfo, manifest: &PluginManifest) {
    screen.row("exports", &list(&info.exports));
    let (wasi, ours): (Vec<&String>, Vec<&String>) = info
        .imports
        .iter()
        .partition(|import| import.starts_with("wasi:"));
    let mut imports = list(&ours);
    if !wasi.is_empty() {
        let _ = write!(imports, "; and {} of WASI", wasi.len());
    }
    screen.row("imports", &imports);
    let mut asks = Vec::new();
    if !manifest.gates.is_empty() {
        let gates: Vec<&str> = manifest.gates.iter().map(|gate| gate.as_str()).collect();
        asks.push(format!("gates {}", gates.join(", ")));
    }
    if !manifest.data.is_empty() {
        asks.push(format!("data {}", one_line(&manifest.data.join(", "))));
    }
    screen.row("asks for", &list(&asks).replace(", data ", "; data "));
}

/// Prints the operator's settings, each with its place as `FILE:LINE`.
fn granted(screen: &Screen, configured: &PluginSettings) {
    let PluginSettings {
        settings,
        entry,
        file,
        ..
    } = configured;
    let nothing = match (entry, file) {
        (Some(_), _) => None,
        (None, _) if !settings.is_empty() => None,
        (None, Some(file)) => Some(format!(
            "nothing: no entry in {}, so it loads with nothing granted",
            file.display()
        )),
        (None, None) => Some("nothing: no configuration was named".to_owned()),
    };
    if let Some(nothing) = nothing {
        screen.row("granted", &nothing);
        return;
    }
    if settings.is_empty() {
        let entry = entry.as_deref().unwrap_or_default();
        screen.row("granted", &format!("{entry}  nothing is set there"));
    }
    let width = settings.iter().map(|setting| setting.at.len()).max();
    for (index, setting) in settings.iter().enumerate() {
        let label = if index == 0 { "granted" } else { "" };
        let value = match &setting.value {
            // The full hash is printed below.
            toml::Value::String(hash) if setting.key == "hash" && hash.len() > 12 => {
                format!("\"{}…\"", printable(&hash[..hash.floor_char_boundary(12)]))
            }
            value => printable(&value.to_string()),
        };
        let withdrawn = if setting.withdrawn { "  withdrawn" } else { "" };
        let at = format!("{:<1$}", setting.at, width.unwrap_or(0));
        screen.row(
            label,
            &format!(
                "{}  {} = {value}{}",
                style(at).dim(),
                setting.key,
                style(withdrawn).yellow()
            ),
        );
    }
}

/// Prints what the plugin's calls can see and change outside the sandbox.
fn reaches(screen: &Screen, report: &PluginReport) {
    let open = |gate| report.granted.contains(&gate);
    let mut reached = Vec::new();
    for (slot, path) in &report.data {
        if let Some(path) = path {
            let slot = one_line(slot);
            reached.push(format!("data {slot}: {}, read-only", path.display()));
        }
    }
    if let Some(files) = &report.files {
        let kept = if files.outputs.is_empty() {
            "none kept".to_owned()
        } else {
            format!("{} kept", files.outputs.join(", "))
        };
        reached.push(format!(
            "scratch files at {}: {}, {} entries, {} deep, {kept}",
            files.at,
            bytes(files.bytes),
            grouped(files.entries),
            files.depth,
        ));
    }
    if let Some(path) = &report.unsandboxed_host_directory {
        reached.push(format!(
            "the machine's own directory {}, at /host, neither isolated nor limited",
            path.display()
        ));
    }
    if let (Some(http), true) = (&report.http, open(GateName::Http)) {
        for (host, rule) in &http.hosts {
            let ports: Vec<String> = rule.ports.iter().map(ToString::to_string).collect();
            let ports = if ports.is_empty() {
                String::new()
            } else {
                format!(":{}", ports.join(","))
            };
            let secrets: Vec<&str> = http
                .secrets
                .iter()
                .filter_map(|(name, rule)| (rule.host == *host).then_some(name.as_str()))
                .collect();
            let secrets = if secrets.is_empty() {
                String::new()
            } else {
                format!(" with secret {}", secrets.join(", "))
            };
            reached.push(format!("{}://{host}{ports}{secrets}", rule.scheme.as_str()));
        }
        reached.push(format!(
            "of HTTP {} fetches a call, {} at once, {} ms each, {} out, {} in",
            http.max_requests_per_call,
            http.max_concurrent,
            grouped(http.timeout.as_millis() as u64),
            bytes(http.max_request_bytes),
            bytes(http.max_response_bytes),
        ));
    }
    if open(GateName::Tools) {
        reached.push(format!(
            "tools: {}, and through them what these reach",
            report.callable.join(", ")
        ));
    }
    if open(GateName::Model) {
        reached.push(format!("models: {}", report.models.join(", ")));
    }
    if open(GateName::RealClock) {
        reached.push("the machine's clock: not deterministic, sleeping takes real time".to_owned());
    }
    if open(GateName::RealRandom) {
        reached.push("the machine's entropy: not deterministic".to_owned());
    }
    if reached.is_empty() {
        screen.row(
            "reaches",
            "nothing: no file, network, clock or entropy of the machine",
        );
    }
    for (index, reached) in reached.iter().enumerate() {
        screen.row(if index == 0 { "reaches" } else { "" }, reached);
    }
}

fn config(screen: &Screen, report: &PluginReport) {
    let config = report.config.as_object();
    if let Some(config) = config.filter(|config| !config.is_empty()) {
        let keys = config.iter().map(|(key, value)| format!("{key} = {value}"));
        screen.row("config", &one_line(&keys.collect::<Vec<_>>().join(", ")));
    }
}

/// Prints the limits of calls. For an interpreter, prints those of programs first.
fn all_limits(screen: &Screen, report: &PluginReport) {
    let usual = Limits::default();
    if let Some(programs) = &report.programs {
        let usual_programs = program_limits(&ProgramGrants::default());
        let programs = program_limits(programs);
        limits(screen, "programs", &programs, &usual_programs, &[]);
        limits(screen, "limits", &report.limits, &usual, &NOT_OF_PROGRAMS);
    } else {
        limits(screen, "limits", &report.limits, &usual, &[]);
    }
}

/// Prints the keys of a table of limits, except those in `hidden`. Values that differ from `usual` are marked.
fn limits<L: Serialize>(screen: &Screen, label: &str, limits: &L, usual: &L, hidden: &[&str]) {
    let values = |limits: &L| match serde_json::to_value(limits) {
        Ok(Value::Object(values)) => values,
        _ => serde_json::Map::new(),
    };
    let usual = values(usual);
    let mut changed = Vec::new();
    let cells: Vec<String> = values(limits)
        .iter()
        .filter(|(key, _)| !hidden.contains(&key.as_str()))
        .map(|(key, value)| {
            let mark = if usual.get(key) == Some(value) {
                " "
            } else {
                let usual = usual.get(key).map(|value| limit(key, value));
                changed.push(format!("{key} {}", usual.unwrap_or_default()));
                "*"
            };
            format!("{mark}{key:<18}{:<10}", limit(key, value))
        })
        .collect();
    let columns = (screen.text_width() / 30).clamp(1, 3);
    for (index, row) in cells.chunks(columns).enumerate() {
        let label = if index == 0 { label } else { "" };
        line(label, row.join(" ").trim_end());
    }
    if !changed.is_empty() {
        screen.row("", &format!("* by default {}", changed.join(", ")));
    }
}

/// The limits of programs, including the number of output bytes kept if the operator sets none.
fn program_limits(grants: &ProgramGrants) -> Value {
    let mut limits = json!(grants);
    if grants.output_bytes.is_none() {
        limits["output_bytes"] = json!(format!(
            "{} to {}",
            bytes(ProgramGrants::KEPT_BYTES),
            bytes(ProgramGrants::MAX_KEPT_BYTES)
        ));
    }
    limits
}

/// Says whether the operator pinned this component, and where.
fn pinned(configured: &PluginSettings, hash: &str) -> String {
    let mut settings = configured.settings.iter();
    match settings.find(|setting| setting.key == "hash") {
        None => "not pinned".to_owned(),
        Some(pin)
            if pin
                .value
                .as_str()
                .is_some_and(|pin| pin.eq_ignore_ascii_case(hash)) =>
        {
            format!("pinned by {}", pin.at)
        }
        Some(pin) => format!("not the one that {} pins", pin.at),
    }
}

fn component(screen: &Screen, path: &Path, hash: &str, configured: &PluginSettings) {
    if let Some(language) = ScriptLanguage::of(path) {
        screen.row(
            "file",
            &format!("{}, run by the {language} interpreter", path.display()),
        );
    } else {
        screen.row("component", &path.display().to_string());
    }
    let pinned = printable(&pinned(configured, hash));
    if hash.len() + 1 + pinned.len() <= screen.text_width() {
        line("hash", &format!("{hash} {pinned}"));
    } else {
        line("hash", hash);
        line("", &pinned);
    }
}

/// Prints the size of the prepared component, and how it was prepared.
fn preparation(screen: &Screen, report: &PluginReport) {
    let preparation = &report.preparation;
    screen.row(
        "size",
        &format!(
            "{}; {} with the memory that calls start from",
            bytes(report.bytes),
            bytes(preparation.prepared_bytes)
        ),
    );
    let took = preparation.prepare_ms + preparation.compile_ms;
    screen.row(
        "ready in",
        &format!(
            "{} ms, {}",
            grouped(took.ceil() as u64),
            if preparation.from_cache {
                "compiled before"
            } else {
                "checking and compiling included"
            },
        ),
    );
    screen.row(
        "init",
        &match &report.init {
            InitMode::None => "there is none".to_owned(),
            InitMode::Snapshot => "ran once; every call starts from the memory it left".to_owned(),
            InitMode::PerCall { reason } => format!("runs in every call, because {reason}"),
        },
    );
}

fn instance(cost: &InstanceCost) -> String {
    let own = match cost.own_bytes {
        Some(own) => format!(", {} of them its own", bytes(own)),
        None => String::new(),
    };
    format!(
        "{:.1} us, the median of {} fresh ones; {} of memory{own}",
        cost.median.as_nanos() as f64 / 1e3,
        grouped(cost.measured as u64),
        bytes(cost.memory_bytes),
    )
}

fn list<T: AsRef<str>>(items: &[T]) -> String {
    if items.is_empty() {
        return "nothing".to_owned();
    }
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    items.join(", ")
}
