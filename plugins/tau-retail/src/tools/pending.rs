//! Tools for pending orders.

use rlf_plugin::serde_json::{Map, Value};
use serde::Deserialize;

use super::edit::{addressed, credit, pay, set};
use super::items::{Replacement, replace};
use super::{Done, Stop, broken, refused};
use crate::number::Number;
use crate::python::dumps;
use crate::records::{self, Order, User};
use crate::store::{Changes, Store};

/// A pending order; `action` names the action that is refused for other orders.
fn pending<'a>(store: &'a Store, id: &str, action: &str) -> Result<(usize, &'a Value), Stop> {
    let (row, record) = store.order(id).ok_or_else(|| refused("order not found"))?;
    if records::read::<Order<'_>>(record)?.status != "pending" {
        return Err(refused(format!("non-pending order cannot be {action}")));
    }
    Ok((row, record))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cancel {
    order_id: String,
    reason: String,
}

/// Refunds every payment; an amount paid by gift card returns to the card at once.
pub(super) fn cancel(store: &Store, given: &Cancel) -> Result<Done, Stop> {
    let (row, record) = pending(store, &given.order_id, "cancelled")?;
    if !["no longer needed", "ordered by mistake"].contains(&&*given.reason) {
        return Err(refused("invalid reason"));
    }
    let order: Order<'_> = records::read(record)?;
    let (user_row, owner) = store.owner(&order)?;
    let mut cancelled = record.clone();
    let mut user = None;
    set(&mut cancelled, "status", "cancelled")?;
    set(&mut cancelled, "cancel_reason", &*given.reason)?;
    for payment in &order.payment_history {
        let (amount, method) = (Number::from(&payment.amount), payment.payment_method_id);
        pay(&mut cancelled, "refund", amount, method)?;
        if method.contains("gift_card") {
            let (_, user) = user.get_or_insert_with(|| (user_row, owner.clone()));
            credit(user, method, amount)?;
        }
    }
    Ok(done((row, cancelled), user))
}

fn done(order: (usize, Value), user: Option<(usize, Value)>) -> Done {
    Done {
        shown: dumps(&order.1),
        changes: Changes {
            order: Some(order),
            user,
        },
    }
}

pub(super) fn modify_address(store: &Store, given: Map<String, Value>) -> Result<Done, Stop> {
    let (id, address) = addressed(given, "order_id")?;
    let (row, record) = pending(store, &id, "modified")?;
    let mut order = record.clone();
    set(&mut order, "address", address)?;
    Ok(done((row, order), None))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModifyPayment {
    order_id: String,
    payment_method_id: String,
}

/// Pays the order by another method and refunds the first one.
pub(super) fn modify_payment(store: &Store, given: &ModifyPayment) -> Result<Done, Stop> {
    let (row, record) = pending(store, &given.order_id, "modified")?;
    let order: Order<'_> = records::read(record)?;
    let (user_row, owner) = store.owner(&order)?;
    let user: User<'_> = records::read(owner)?;
    let new = given.payment_method_id.as_str();
    let method = user.payment_methods.get(new);
    let method = method.ok_or_else(|| refused("payment method not found"))?;
    let [payment] = &*order.payment_history else {
        return Err(not_one_payment());
    };
    if payment.transaction_type != "payment" {
        return Err(not_one_payment());
    }
    let old = payment.payment_method_id;
    if old == new {
        return Err(refused(
            "the new payment method should be different from the current one",
        ));
    }
    let amount = Number::from(&payment.amount);
    let balance = method.gift_card().map(Number::from);
    if balance.is_some_and(|balance| balance.less_than(amount)) {
        return Err(refused(
            "insufficient gift card balance to pay for the order",
        ));
    }

    let mut modified = record.clone();
    pay(&mut modified, "payment", amount, new)?;
    pay(&mut modified, "refund", amount, old)?;
    let mut credited = None;
    if balance.is_some() {
        let (_, user) = credited.get_or_insert_with(|| (user_row, owner.clone()));
        credit(user, new, amount.negate())?;
    }
    if old.contains("gift_card") {
        let (_, user) = credited.get_or_insert_with(|| (user_row, owner.clone()));
        credit(user, old, amount)?;
    }
    Ok(done((row, modified), credited))
}

fn not_one_payment() -> Stop {
    refused("there should be exactly one payment for a pending order")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModifyItems {
    order_id: String,
    item_ids: Vec<String>,
    new_item_ids: Vec<String>,
    payment_method_id: String,
}

/// Replaces items once. The price difference is paid or refunded without rounding, unlike that of an exchange: the
/// hashes of tau-bench's tasks depend on it.
pub(super) fn modify_items(store: &Store, given: &ModifyItems) -> Result<Done, Stop> {
    let (row, record) = pending(store, &given.order_id, "modified")?;
    let order: Order<'_> = records::read(record)?;
    let (replacements, difference) = replace(store, &order, &given.item_ids, &given.new_item_ids)?;
    let (user_row, owner) = store.owner(&order)?;
    let user: User<'_> = records::read(owner)?;
    let id = given.payment_method_id.as_str();
    let method = user.payment_methods.get(id);
    let method = method.ok_or_else(|| refused("payment method not found"))?;
    let balance = method.gift_card().map(Number::from);
    if balance.is_some_and(|balance| balance.less_than(difference)) {
        return Err(refused(
            "insufficient gift card balance to pay for the new item",
        ));
    }

    let mut modified = record.clone();
    let kind = if difference.is_positive() {
        "payment"
    } else {
        "refund"
    };
    pay(&mut modified, kind, difference.absolute(), id)?;
    let mut credited = None;
    if balance.is_some() {
        let (_, user) = credited.insert((user_row, owner.clone()));
        credit(user, id, difference.negate())?;
    }
    for (id, replacement) in given.item_ids.iter().zip(replacements) {
        put_in_place(&mut modified, id, replacement)?;
    }
    set(&mut modified, "status", "pending (item modified)")?;
    Ok(done((row, modified), credited))
}

/// Replaces the first item with this id. An item that has just replaced another one counts too, as in tau-bench,
/// whose hashes depend on it.
fn put_in_place(order: &mut Value, id: &str, replacement: Replacement) -> Result<(), Stop> {
    let items = order.get_mut("items").and_then(Value::as_array_mut);
    let mut items = items.into_iter().flatten();
    let item = items.find(|item| item.get("item_id").is_some_and(|other| other == id));
    let item = item.ok_or_else(|| broken(id))?;
    set(item, "item_id", replacement.id)?;
    set(item, "price", replacement.price)?;
    set(item, "options", replacement.options)
}
