//! The fields of an order, a user and a product that tools read. The records themselves stay JSON, so that they are
//! shown and hashed with all their keys in the original order.

#![allow(
    clippy::struct_field_names,
    reason = "fields are the keys of the files"
)]

use std::collections::BTreeMap;

use rlf_plugin::serde_json::{self, Value};
use rlf_plugin::{Error, internal};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(crate) struct Order<'a> {
    pub(crate) user_id: &'a str,
    pub(crate) status: &'a str,
    pub(crate) items: Vec<Item<'a>>,
    pub(crate) payment_history: Vec<Payment<'a>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Item<'a> {
    pub(crate) product_id: &'a str,
    pub(crate) item_id: &'a str,
    pub(crate) price: serde_json::Number,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Payment<'a> {
    pub(crate) transaction_type: &'a str,
    pub(crate) amount: serde_json::Number,
    pub(crate) payment_method_id: &'a str,
}

#[derive(Debug, Deserialize)]
pub(crate) struct User<'a> {
    pub(crate) name: Name<'a>,
    pub(crate) address: Address<'a>,
    pub(crate) email: &'a str,
    pub(crate) payment_methods: BTreeMap<&'a str, Method<'a>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Name<'a> {
    pub(crate) first_name: &'a str,
    pub(crate) last_name: &'a str,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Address<'a> {
    pub(crate) zip: &'a str,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Method<'a> {
    source: &'a str,
    balance: Option<serde_json::Number>,
}

impl Method<'_> {
    /// Its balance, if it is a gift card.
    pub(crate) fn gift_card(&self) -> Option<&serde_json::Number> {
        self.balance.as_ref().filter(|_| self.source == "gift_card")
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Product<'a> {
    pub(crate) name: &'a str,
    pub(crate) product_id: &'a str,
    pub(crate) variants: BTreeMap<&'a str, Variant>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Variant {
    pub(crate) available: bool,
    pub(crate) price: serde_json::Number,
    pub(crate) options: Value,
}

/// Reads a record. `init` and `restore` refuse unreadable records, so no later reading fails.
pub(crate) fn read<'a, T: Deserialize<'a>>(record: &'a Value) -> Result<T, Error> {
    T::deserialize(record).map_err(internal)
}
