//! `rlf-host plugin inspect` and `check`: print one plugin on one screen.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use console::{Term, style};
use rlf_plugins::manifest::{GateName, PluginKind, PluginManifest};
use rlf_plugins::plugin::Plugin;
use rlf_plugins::problem::Problem;
use rlf_plugins::programs::ProgramGrants;
use rlf_plugins::registry::PluginIdentity;
use rlf_plugins::report::PluginReport;
use rlf_sandbox::{ComponentInfo, InitMode, InstanceCost, Limits};
use serde::Serialize;
use serde_json::{Value, json};

use super::signature::signature;
use crate::display::printable;
use crate::operator::PluginSettings;

/// Time spent making instances to measure their cost.
const MEASURING: Duration = Duration::from_millis(50);
/// Width of the first column.
const LABEL: usize = 11;
/// Width of the output if it does not go to a terminal.
const USUAL_WIDTH: usize = 100;
/// Limits of calls that `programs` replaces by its own.
const NOT_OF_PROGRAMS: [&str; 4] = ["wall_ms", "cpu_ms", "memory_bytes", "output_bytes"];
/// Longer lists of tools are shown without descriptions.
const MAX_DESCRIBED: usize = 3;

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
    if let Some(servers) = &report.servers {
        let servers = if servers.is_empty() {
            "an environment of what each task brings".to_owned()
        } else {
            format!("an environment of {}", servers.join(", "))
        };
        screen.row("is", &servers);
    }
    asked(&screen, plugin.template().info(), plugin.manifest());
    granted(&screen, &configured);
    reaches(&screen, &report);
    let config = report
        .config
        .as_object()
        .filter(|config| !config.is_empty());
    if let Some(config) = config {
        let keys = config.iter().map(|(key, value)| format!("{key} = {value}"));
        screen.row("config", &keys.collect::<Vec<_>>().join(", "));
    }
    if let Some(programs) = &report.programs {
        limits(
            &screen,
            "programs",
            &program_limits(programs),
            &program_limits(&ProgramGrants::default()),
            &[],
        );
        limits(
            &screen,
            "limits",
            &report.limits,
            &Limits::default(),
            &NOT_OF_PROGRAMS,
        );
    } else {
        limits(&screen, "limits", &report.limits, &Limits::default(), &[]);
    }
    let preparation = &report.preparation;
    component(
        &screen,
        &report.component,
        plugin.template().info(),
        &pinned(&configured, &report.hash),
    );
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
    screen.row(
        "instance",
        &cost.map_or_else(|stopped| stopped.to_string(), |cost| instance(&cost)),
    );
    for notice in &report.notices {
        screen.row("note", notice);
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what the files of a plugin say if it does not load. Nothing of the plugin is run.
pub(super) fn refused(
    identity: &PluginIdentity,
    mut configured: PluginSettings,
    problem: &Problem,
    as_json: bool,
) -> anyhow::Result<()> {
    let PluginIdentity {
        path,
        component: info,
        manifest,
    } = identity;
    configured.withdraw_unless(&info.hash);
    let kinds = PluginKind::ALL.into_iter();
    let mut kinds = kinds.filter(|kind| info.exported_version(kind.interface()).is_some());
    let kind = manifest.kind.or_else(|| kinds.next());
    if as_json {
        let report = json!({
            "name": problem.plugin,
            "problem": problem,
            "kind": kind,
            "component": path,
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
        &problem.plugin,
        manifest.version.as_deref(),
        kind,
        &manifest.description,
    );
    asked(&screen, info, manifest);
    granted(&screen, &configured);
    component(&screen, path, info, &pinned(&configured, &info.hash));
    screen.row("size", &bytes(info.size));
    Ok(())
}

fn tools(screen: &Screen, report: &PluginReport) {
    let described = report.tools.len() <= MAX_DESCRIBED;
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
        if described {
            let first = tool.description.lines().next().unwrap_or_default();
            screen.row("", &style(printable(first)).dim().to_string());
            if !promised.is_empty() {
                screen.row("", &format!("says it is {}", promised.join(", ")));
            }
        }
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
        asks.push(format!("data {}", manifest.data.join(", ")));
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

fn component(screen: &Screen, path: &Path, info: &ComponentInfo, pinned: &str) {
    screen.row("component", &path.display().to_string());
    let (hash, pinned) = (&info.hash, printable(pinned));
    if hash.len() + 1 + pinned.len() <= screen.text_width() {
        line("hash", &format!("{hash} {pinned}"));
    } else {
        line("hash", hash);
        line("", &pinned);
    }
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

/// Formats a limit in its unit, which the end of its key names.
fn limit(key: &str, value: &Value) -> String {
    match (value, value.as_u64()) {
        (_, Some(number)) if key.ends_with("_ms") => format!("{} ms", grouped(number)),
        (_, Some(number)) if key.ends_with("bytes") => bytes(number),
        (_, Some(number)) => grouped(number),
        (Value::String(text), _) => text.clone(),
        (other, _) => other.to_string(),
    }
}

fn bytes(value: u64) -> String {
    let exact = |unit: u64| value >= unit && value.is_multiple_of(unit);
    match value {
        _ if exact(1 << 20) => format!("{} MiB", grouped(value >> 20)),
        _ if exact(1 << 10) && value < 1 << 20 => format!("{} KiB", value >> 10),
        _ if value >= 1 << 20 => format!("{:.1} MiB", value as f64 / f64::from(1 << 20)),
        _ if value >= 1 << 10 => format!("{:.1} KiB", value as f64 / 1024.0),
        _ => format!("{} bytes", grouped(value)),
    }
}

/// Formats a number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn list<T: AsRef<str>>(items: &[T]) -> String {
    if items.is_empty() {
        return "nothing".to_owned();
    }
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    items.join(", ")
}

/// Prints rows of a name and a text, wrapped at the width of the terminal.
struct Screen {
    width: usize,
}

impl Screen {
    fn from_terminal() -> Self {
        let terminal = Term::stdout();
        let columns = terminal.size_checked().map(|(_, columns)| columns.into());
        Self {
            width: columns
                .filter(|_| terminal.is_term())
                .unwrap_or(USUAL_WIDTH),
        }
    }

    fn text_width(&self) -> usize {
        self.width.saturating_sub(LABEL).max(40)
    }

    fn title(
        &self,
        name: &str,
        version: Option<&str>,
        kind: Option<PluginKind>,
        description: &str,
    ) {
        let mut title = style(printable(name)).cyan().bold().to_string();
        if let Some(version) = version {
            let _ = write!(title, " {}", printable(version));
        }
        if let Some(kind) = kind {
            let _ = write!(title, ", {} (world {})", kind.with_article(), kind.world());
        }
        say!("{title}");
        if !description.is_empty() {
            self.row("", &printable(description));
        }
    }

    fn row(&self, label: &str, text: &str) {
        for (index, part) in wrapped(text, self.text_width()).iter().enumerate() {
            line(if index == 0 { label } else { "" }, part);
        }
    }
}

fn line(label: &str, text: &str) {
    say!("{}{text}", style(format!("{label:<LABEL$}")).bold());
}

/// Splits text into lines of at most `width` characters, broken at spaces. A longer word gets its own line.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("never empty");
        let length = console::measure_text_width(last);
        if length > 0 && length + 1 + console::measure_text_width(word) > width {
            lines.push(word.to_owned());
        } else {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_at_a_glance_and_exact_ones_stay_exact() {
        for (value, expected) in [
            (0, "0 bytes"),
            (4_096, "4 KiB"),
            (999, "999 bytes"),
            (9_999, "9.8 KiB"),
            (364_345, "355.8 KiB"),
            (128 << 20, "128 MiB"),
            ((128 << 20) + 1, "128.0 MiB"),
        ] {
            assert_eq!(bytes(value), expected);
        }
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(limit("wall_ms", &json!(10_000)), "10,000 ms");
        assert_eq!(limit("log_level", &json!("info")), "info");
    }

    #[test]
    fn long_texts_are_broken_at_spaces() {
        assert_eq!(wrapped("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrapped("a toolong b", 4), ["a", "toolong", "b"]);
        assert_eq!(wrapped("", 4), [""]);
    }
}
