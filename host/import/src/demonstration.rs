//! Demonstrations: conversations whose turns of the model are imitated.

use rlf_dialogue::{Message, Role, ToolDefinition};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::conversation::Conversation;
use crate::error::RowError;
use crate::field::{Row, label};
use crate::options::Reasoning;
use crate::row_context::RowContext;

/// One row of a file of demonstrations (JSON lines). Its conversation can be played: every result has its call, results
/// are in the order of the calls, and the turns alternate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demonstration {
    /// Unique within its file.
    pub id: String,
    /// Name of the data set.
    pub source: String,
    /// The tools on offer.
    pub tools: Vec<ToolDefinition>,
    /// The conversation, from its prompt to the model's last turn, or to the results of its last calls.
    pub messages: Vec<Message>,
    /// Number of messages at the front that are the prompt. The model's turns among them are read, not imitated. The next
    /// message is the first that is imitated.
    pub given: usize,
    /// Indices of later messages of the model that are read and not imitated, such as mistakes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<usize>,
}

impl Demonstration {
    pub(crate) fn from_conversation(
        row: &Row,
        context: &RowContext,
        tools: Vec<ToolDefinition>,
        mut conversation: Conversation,
        given: usize,
    ) -> Result<Self, RowError> {
        conversation.check(&tools)?;
        if context.options.reasoning == Reasoning::Drop {
            for message in &mut conversation.messages {
                message.reasoning_content = None;
            }
        }
        let demonstration = Self {
            id: label(row, "id").unwrap_or_else(|| context.id()),
            source: label(row, "source").unwrap_or_else(|| context.stem.to_owned()),
            tools,
            messages: conversation.messages,
            given,
            left_out: Vec::new(),
        };
        demonstration.check_given()?;
        Ok(demonstration)
    }

    /// One row of a file of demonstrations.
    pub(crate) fn from_row(row: Row) -> Result<Self, RowError> {
        let read: Self = serde_path_to_error::deserialize(Value::Object(row))
            .map_err(|error| RowError::from_type(&error))?;
        read.check()?;
        Ok(read)
    }

    /// Checks whether the demonstration can be played. Demonstrations from a file have been checked. The error says
    /// which field is wrong.
    pub fn check(&self) -> Result<(), RowError> {
        let places = (0..self.messages.len()).map(|at| format!("messages[{at}]"));
        let conversation = Conversation {
            places: places.collect(),
            messages: self.messages.clone(),
        };
        conversation.check(&self.tools)?;
        self.check_given()
    }

    fn check_given(&self) -> Result<(), RowError> {
        let is_turn = |at: &usize| {
            let message = self.messages.get(*at);
            *at > self.given && message.is_some_and(|message| message.role == Role::Assistant)
        };
        if let Some(at) = self.left_out.iter().find(|at| !is_turn(at)) {
            return Err(RowError::field(
                "left_out",
                format!("message {at} is none of the model's turns after `given`"),
            ));
        }
        match self.messages.get(self.given) {
            Some(first) if first.role == Role::Assistant && self.given > 0 => Ok(()),
            Some(_) => Err(RowError::field(
                "given",
                format!("message {} is none of the model's turns", self.given),
            )),
            None => Err(RowError::field(
                "messages",
                "none of the model's turns is left to imitate",
            )),
        }
    }
}
