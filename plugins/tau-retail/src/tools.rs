//! Calls of the tools: what each shows and changes.
//!
//! A tool reads the session's store and returns its changes; it changes nothing itself. So a refused call leaves the
//! store unchanged, at whatever point it was refused.

mod delivered;
mod edit;
mod items;
mod lookup;
mod pending;

use rlf_plugin::environment::arguments;
use rlf_plugin::serde_json::{Map, Value};
use rlf_plugin::{Error, internal};
use serde::Deserialize;

use crate::calculate::calculate;
use crate::store::{Changes, Store};
use crate::tool::Tool;

/// The text that a call shows, and its changes.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) shown: String,
    pub(crate) changes: Changes,
}

impl Done {
    fn shown(shown: impl Into<String>) -> Self {
        Self {
            shown: shown.into(),
            changes: Changes::default(),
        }
    }
}

/// The reason why a call did nothing.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A message for the model, shown after `Error: `.
    Refused(String),
    /// An error for the host.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

fn refused(reason: impl Into<String>) -> Stop {
    Stop::Refused(reason.into())
}

/// The error for a record that `init` or `restore` accepted and that is invalid all the same.
fn broken(what: &str) -> Stop {
    Stop::Failed(internal(format!("a record has no {what}")))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expression {
    expression: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Thought {
    #[serde(rename = "thought")]
    _thought: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Summary {
    #[serde(rename = "summary")]
    _summary: String,
}

/// The arguments of a tool that takes none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Runs a call of `tool` with the arguments `given`.
pub(crate) fn run(tool: Tool, store: &Store, given: Map<String, Value>) -> Result<Done, Stop> {
    match tool {
        Tool::Calculate => {
            let Expression { expression } = arguments(given)?;
            calculate(&expression).map(Done::shown).map_err(refused)
        }
        Tool::CancelPendingOrder => pending::cancel(store, &arguments(given)?),
        Tool::ExchangeDeliveredOrderItems => delivered::exchange(store, &arguments(given)?),
        Tool::FindUserIdByEmail => lookup::user_by_email(store, &arguments(given)?),
        Tool::FindUserIdByNameZip => lookup::user_by_name(store, &arguments(given)?),
        Tool::GetOrderDetails => lookup::order(store, &arguments(given)?),
        Tool::GetProductDetails => lookup::product(store, &arguments(given)?),
        Tool::GetUserDetails => lookup::user(store, &arguments(given)?),
        Tool::ListAllProductTypes => {
            let Nothing {} = arguments(given)?;
            Ok(Done::shown(&store.shop.product_types))
        }
        Tool::ModifyPendingOrderAddress => pending::modify_address(store, given),
        Tool::ModifyPendingOrderItems => pending::modify_items(store, &arguments(given)?),
        Tool::ModifyPendingOrderPayment => pending::modify_payment(store, &arguments(given)?),
        Tool::ModifyUserAddress => edit::modify_user_address(store, given),
        Tool::ReturnDeliveredOrderItems => delivered::return_items(store, &arguments(given)?),
        Tool::Think => {
            let Thought { .. } = arguments(given)?;
            Ok(Done::default())
        }
        Tool::TransferToHumanAgents => {
            let Summary { .. } = arguments(given)?;
            Ok(Done::shown("Transfer successful"))
        }
    }
}
