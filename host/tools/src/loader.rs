//! Loading of a tool plugin, and calls of its tools, for the core.

use std::sync::Arc;

use rlf_interpreters::requests::LoadedFile;
use rlf_plugins::bindings::tool;
use rlf_plugins::kind::{FindInInterpreter, FindIndices, Interface};
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::outcome::CallEnd;
use rlf_plugins::plugin::{Plugin, ToolList, ToolRequest};
use rlf_plugins::problem::{LoadRefusal, ProblemKind};
use rlf_sandbox::{CallSpec, FilesReport, Pool};

use crate::script::ScriptTools;

/// The exports of a tool plugin, as returned by [`Plugin::exports`].
pub type ToolIndices = Arc<tool::GuestIndices>;

/// Loads plugins that offer tools.
#[derive(Debug)]
pub struct ToolLoader;

impl Interface for ToolLoader {
    const KIND: PluginKind = PluginKind::Tool;
    const POOL: Pool = Pool::Calls;
    type Indices = tool::GuestIndices;
    const FIND: FindIndices<tool::GuestIndices> = tool::GuestIndices::new;
    const FIND_IN_INTERPRETER: Option<FindInInterpreter> =
        Some(|component| Ok(Arc::new(ScriptTools(LoadedFile::find(component)?))));

    async fn list(indices: ToolIndices, plugin: &Plugin) -> Result<Option<ToolList>, LoadRefusal> {
        let mend = "mend the plugin's list-tools".to_owned();
        let listed = plugin
            .ask("list-tools", move |store, instance| {
                Box::pin(async move {
                    let guest = indices.load(&mut *store, &instance)?;
                    guest.call_list_tools(store).await
                })
            })
            .await;
        match listed {
            Ok(listed) => Ok(Some(ToolList { listed, mend })),
            Err(stopped) => {
                let what = format!("list-tools did not return: {stopped}");
                Err(LoadRefusal::new(ProblemKind::Tools, what, mend))
            }
        }
    }

    async fn call_tool(
        indices: ToolIndices,
        plugin: &Plugin,
        request: ToolRequest,
    ) -> (CallEnd, FilesReport) {
        let spec = CallSpec {
            label: request.context.call_id.clone(),
            seed: request.context.seed,
            deadline: Some(request.deadline),
            caller: request.caller.clone(),
            context: request.nesting.clone().map(|nesting| nesting as _),
            ..CallSpec::default()
        };
        let mut report = plugin
            .template()
            .call(spec, move |store, instance| {
                Box::pin(async move {
                    let guest = indices.load(&mut *store, &instance)?;
                    let ToolRequest {
                        name,
                        arguments,
                        context,
                        ..
                    } = request;
                    guest.call_call(store, &name, &arguments, &context).await
                })
            })
            .await;
        let files = std::mem::take(&mut report.files);
        let end = match plugin.finish(report) {
            Ok(result) => CallEnd::from_result(result, plugin.grants().limits.result_bytes),
            Err(stopped) => CallEnd::from_stopped(&stopped),
        };
        (end, files)
    }
}
