//! Tools for delivered orders.

use rlf_plugin::serde_json::Value;
use serde::Deserialize;

use super::edit::set;
use super::items::{first_missing, replace};
use super::{Done, Stop, broken, refused};
use crate::number::Number;
use crate::python::dumps;
use crate::records::{self, Order, User};
use crate::store::{Changes, Store};

/// A delivered order; `action` names the action that is refused for other orders.
fn delivered<'a>(store: &'a Store, id: &str, action: &str) -> Result<(usize, &'a Value), Stop> {
    let (row, record) = store.order(id).ok_or_else(|| refused("order not found"))?;
    if records::read::<Order<'_>>(record)?.status != "delivered" {
        return Err(refused(format!("non-delivered order cannot be {action}")));
    }
    Ok((row, record))
}

fn done(row: usize, order: Value) -> Done {
    Done {
        shown: dumps(&order),
        changes: Changes {
            order: Some((row, order)),
            user: None,
        },
    }
}

fn sorted(ids: &[String]) -> Vec<String> {
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    sorted
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Return {
    order_id: String,
    item_ids: Vec<String>,
    payment_method_id: String,
}

/// The refund goes to the first payment's method or to a gift card. Nothing is paid yet.
pub(super) fn return_items(store: &Store, given: &Return) -> Result<Done, Stop> {
    let (row, record) = delivered(store, &given.order_id, "returned")?;
    let order: Order<'_> = records::read(record)?;
    let user: User<'_> = records::read(store.owner(&order)?.1)?;
    let method = given.payment_method_id.as_str();
    if !user.payment_methods.contains_key(method) {
        return Err(refused("payment method not found"));
    }
    if !method.contains("gift_card") {
        let first = order.payment_history.first();
        let first = first.ok_or_else(|| broken("payment"))?;
        if first.payment_method_id != method {
            return Err(refused(
                "payment method should be either the original payment method or a gift card",
            ));
        }
    }
    if first_missing(&order, &given.item_ids).is_some() {
        return Err(refused("some item not found"));
    }
    let mut returned = record.clone();
    set(&mut returned, "status", "return requested")?;
    set(&mut returned, "return_items", sorted(&given.item_ids))?;
    set(&mut returned, "return_payment_method_id", method)?;
    Ok(done(row, returned))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Exchange {
    order_id: String,
    item_ids: Vec<String>,
    new_item_ids: Vec<String>,
    payment_method_id: String,
}

/// Records the exchange. Nothing is paid yet, but a gift card must have a sufficient balance.
pub(super) fn exchange(store: &Store, given: &Exchange) -> Result<Done, Stop> {
    let (row, record) = delivered(store, &given.order_id, "exchanged")?;
    let order: Order<'_> = records::read(record)?;
    let (_, difference) = replace(store, &order, &given.item_ids, &given.new_item_ids)?;
    let difference = difference.round_cents();
    let user: User<'_> = records::read(store.owner(&order)?.1)?;
    let id = given.payment_method_id.as_str();
    let method = user.payment_methods.get(id);
    let method = method.ok_or_else(|| refused("payment method not found"))?;
    let balance = method.gift_card().map(Number::from);
    if balance.is_some_and(|balance| balance.less_than(difference)) {
        return Err(refused(
            "insufficient gift card balance to pay for the price difference",
        ));
    }
    let mut exchanged = record.clone();
    set(&mut exchanged, "status", "exchange requested")?;
    set(&mut exchanged, "exchange_items", sorted(&given.item_ids))?;
    set(
        &mut exchanged,
        "exchange_new_items",
        sorted(&given.new_item_ids),
    )?;
    set(&mut exchanged, "exchange_payment_method_id", id)?;
    set(&mut exchanged, "exchange_price_difference", difference)?;
    Ok(done(row, exchanged))
}
