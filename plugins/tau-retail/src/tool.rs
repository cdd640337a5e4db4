//! The names of the tools, and their hints.

use rlf_plugin::Hints;

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

    /// The promises that a definition of this tool makes to the host.
    pub(crate) fn hints(self) -> Hints {
        match self {
            // Products never change, so these depend on their arguments alone.
            Self::Calculate | Self::Think | Self::ListAllProductTypes | Self::GetProductDetails => {
                Hints::READ_ONLY | Hints::IDEMPOTENT | Hints::DETERMINISTIC
            }
            Self::FindUserIdByEmail
            | Self::FindUserIdByNameZip
            | Self::GetOrderDetails
            | Self::GetUserDetails => Hints::READ_ONLY | Hints::IDEMPOTENT,
            Self::ModifyPendingOrderAddress | Self::ModifyUserAddress => Hints::IDEMPOTENT,
            _ => Hints::empty(),
        }
    }
}
