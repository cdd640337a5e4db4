//! Changes to records.

use rlf_plugin::Error;
use rlf_plugin::environment::arguments;
use rlf_plugin::serde_json::{Map, Value, json};
use serde::{Deserialize, Serialize};

use super::{Done, Stop, broken, refused};
use crate::number::Number;
use crate::python::dumps;
use crate::store::{Changes, Store};

/// Sets a key of a record. An existing key keeps its place, a new one comes last.
pub(super) fn set(record: &mut Value, key: &str, value: impl Into<Value>) -> Result<(), Stop> {
    let keys = record.as_object_mut().ok_or_else(|| broken(key))?;
    keys.insert(key.to_owned(), value.into());
    Ok(())
}

/// Adds a transaction to an order.
pub(super) fn pay(order: &mut Value, kind: &str, amount: Number, method: &str) -> Result<(), Stop> {
    let history = order.get_mut("payment_history");
    let history = history.and_then(Value::as_array_mut);
    history
        .ok_or_else(|| broken("payment history"))?
        .push(json!({
            "transaction_type": kind,
            "amount": Value::from(amount),
            "payment_method_id": method,
        }));
    Ok(())
}

/// Adds an amount to the balance of a user's gift card, in cents; a negative amount is taken from it.
pub(super) fn credit(user: &mut Value, method: &str, amount: Number) -> Result<(), Stop> {
    let methods = user.get_mut("payment_methods");
    let card = methods.and_then(|methods| methods.get_mut(method));
    let balance = card.and_then(|card| card.get_mut("balance"));
    let balance = balance.ok_or_else(|| refused("payment method not found"))?;
    let Value::Number(before) = &*balance else {
        return Err(broken("balance"));
    };
    *balance = Number::from(before).plus(amount).round_cents().into();
    Ok(())
}

/// An address. Its keys are shown in this order.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Address {
    address1: String,
    address2: String,
    city: String,
    state: String,
    country: String,
    zip: String,
}

/// Splits arguments into an address and the id of the record that gets it.
pub(super) fn addressed(mut given: Map<String, Value>, id: &str) -> Result<(String, Value), Error> {
    let Some(Value::String(owner)) = given.remove(id) else {
        return Err(Error::InvalidArguments(format!("`{id}` must be a string")));
    };
    let address: Address = arguments(given)?;
    Ok((owner, json!(address)))
}

pub(super) fn modify_user_address(store: &Store, given: Map<String, Value>) -> Result<Done, Stop> {
    let (id, address) = addressed(given, "user_id")?;
    let (row, user) = store.user(&id).ok_or_else(|| refused("user not found"))?;
    let mut user = user.clone();
    set(&mut user, "address", address)?;
    Ok(Done {
        shown: dumps(&user),
        changes: Changes {
            order: None,
            user: Some((row, user)),
        },
    })
}
