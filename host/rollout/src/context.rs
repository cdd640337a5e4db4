//! The surroundings of an episode: everything except the model that writes its turns.

use std::sync::Arc;

use rlf_dialogue::dialogue::Dialogue;
use rlf_environments::environments::Environments;
use rlf_tools::tool_manager::ToolManager;

use crate::recorded::RecordedOutcomes;
use crate::shown_tools::ShownTools;
use crate::user::User;

/// Everything around an episode except the model that writes its turns. Cheap to clone.
#[derive(Debug, Clone)]
pub struct EpisodeContext {
    /// Template, protocol and budgets.
    pub dialogue: Arc<Dialogue>,
    /// Invokes the tools of plugins.
    pub tools: ToolManager,
    /// The environments that tasks may name.
    pub environments: Environments,
    /// Changes to the tools as the model sees them.
    pub shown: ShownTools,
    /// Plays the users of tasks that ask for a model as their user; none if no task does.
    pub user: Option<Arc<dyn User>>,
    /// Outcomes that calls take instead of being made, in a replay; none otherwise.
    pub recorded: Option<Arc<RecordedOutcomes>>,
}
