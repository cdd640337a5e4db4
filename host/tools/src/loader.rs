//! Loading of a tool plugin, and calls of its tools, for the core.

use std::any::Any;
use std::sync::Arc;

use rlf_plugins::bindings::tool;
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::kind::{KindLoader, LoadPlan};
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::outcome::CallEnd;
use rlf_plugins::plugin::{Exports, Plugin, ToolList, ToolRequest};
use rlf_plugins::problem::{LoadRefusal, ProblemKind};
use rlf_sandbox::{BoxFuture, CallSpec, FilesReport, Pool};

/// The exports of a tool plugin, as returned by [`Plugin::exports`].
pub type ToolIndices = Arc<tool::GuestIndices>;

/// Loads plugins that offer tools.
#[derive(Debug)]
pub struct ToolLoader;

impl KindLoader for ToolLoader {
    fn kind(&self) -> PluginKind {
        PluginKind::Tool
    }

    fn plan(&self, _: &str, grants: &PluginGrants, _: u64) -> Result<LoadPlan, LoadRefusal> {
        Ok(LoadPlan::new(Pool::Calls, grants, |pre| {
            let indices = Arc::new(tool::GuestIndices::new(pre)?);
            Ok(Arc::new(ToolExports { indices }))
        }))
    }
}

struct ToolExports {
    indices: ToolIndices,
}

impl Exports for ToolExports {
    fn as_any(&self) -> &dyn Any {
        &self.indices
    }

    fn list<'a>(
        &'a self,
        plugin: &'a Plugin,
    ) -> BoxFuture<'a, Result<Option<ToolList>, LoadRefusal>> {
        let indices = Arc::clone(&self.indices);
        Box::pin(async move {
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
        })
    }

    fn call_tool<'a>(
        &'a self,
        plugin: &'a Arc<Plugin>,
        request: ToolRequest,
    ) -> BoxFuture<'a, (CallEnd, FilesReport)> {
        let indices = Arc::clone(&self.indices);
        Box::pin(async move {
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
        })
    }
}
