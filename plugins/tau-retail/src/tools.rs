//! The tools of the store: their names, and the result of a call of each.
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

/// A tool by the name that `tools.json` gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Calculate,
    CancelPendingOrder,
    ExchangeDeliveredOrderItems,
    FindUserIdByEmail,
    FindUserIdByNameZip,
    GetOrderDetails,
    GetProductDetails,
    GetUserDetails,
    ListAllProductTypes,
    ModifyPendingOrderAddress,
    ModifyPendingOrderItems,
    ModifyPendingOrderPayment,
    ModifyUserAddress,
    ReturnDeliveredOrderItems,
    Think,
    TransferToHumanAgents,
}

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

impl Tool {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "calculate" => Self::Calculate,
            "cancel_pending_order" => Self::CancelPendingOrder,
            "exchange_delivered_order_items" => Self::ExchangeDeliveredOrderItems,
            "find_user_id_by_email" => Self::FindUserIdByEmail,
            "find_user_id_by_name_zip" => Self::FindUserIdByNameZip,
            "get_order_details" => Self::GetOrderDetails,
            "get_product_details" => Self::GetProductDetails,
            "get_user_details" => Self::GetUserDetails,
            "list_all_product_types" => Self::ListAllProductTypes,
            "modify_pending_order_address" => Self::ModifyPendingOrderAddress,
            "modify_pending_order_items" => Self::ModifyPendingOrderItems,
            "modify_pending_order_payment" => Self::ModifyPendingOrderPayment,
            "modify_user_address" => Self::ModifyUserAddress,
            "return_delivered_order_items" => Self::ReturnDeliveredOrderItems,
            "think" => Self::Think,
            "transfer_to_human_agents" => Self::TransferToHumanAgents,
            _ => return None,
        })
    }

    pub(crate) fn run(self, store: &Store, given: Map<String, Value>) -> Result<Done, Stop> {
        match self {
            Self::Calculate => {
                let Expression { expression } = arguments(given)?;
                calculate(&expression).map(Done::shown).map_err(refused)
            }
            Self::CancelPendingOrder => pending::cancel(store, &arguments(given)?),
            Self::ExchangeDeliveredOrderItems => delivered::exchange(store, &arguments(given)?),
            Self::FindUserIdByEmail => lookup::user_by_email(store, &arguments(given)?),
            Self::FindUserIdByNameZip => lookup::user_by_name(store, &arguments(given)?),
            Self::GetOrderDetails => lookup::order(store, &arguments(given)?),
            Self::GetProductDetails => lookup::product(store, &arguments(given)?),
            Self::GetUserDetails => lookup::user(store, &arguments(given)?),
            Self::ListAllProductTypes => {
                let Nothing {} = arguments(given)?;
                Ok(Done::shown(&store.shop.product_types))
            }
            Self::ModifyPendingOrderAddress => pending::modify_address(store, given),
            Self::ModifyPendingOrderItems => pending::modify_items(store, &arguments(given)?),
            Self::ModifyPendingOrderPayment => pending::modify_payment(store, &arguments(given)?),
            Self::ModifyUserAddress => edit::modify_user_address(store, given),
            Self::ReturnDeliveredOrderItems => delivered::return_items(store, &arguments(given)?),
            Self::Think => {
                let Thought { .. } = arguments(given)?;
                Ok(Done::default())
            }
            Self::TransferToHumanAgents => {
                let Summary { .. } = arguments(given)?;
                Ok(Done::shown("Transfer successful"))
            }
        }
    }
}
