//! Items of an order that are returned or replaced.

use rlf_plugin::serde_json::Value;

use super::{Stop, refused};
use crate::number::Number;
use crate::records::Order;
use crate::store::Store;

/// The replacement of an item.
pub(super) struct Replacement {
    pub(super) id: String,
    pub(super) price: Number,
    pub(super) options: Value,
}

/// The first item that was requested more often than the order contains it.
pub(super) fn first_missing<'a>(order: &Order<'_>, ids: &'a [String]) -> Option<&'a str> {
    let wanted = |id: &str| ids.iter().filter(|other| *other == id).count();
    let there = |id: &str| order.items.iter().filter(|item| item.item_id == id).count();
    let id = ids.iter().find(|id| wanted(id) > there(id))?;
    Some(id)
}

/// The replacement of each item, and the sum of new minus old prices, not rounded.
pub(super) fn replace(
    store: &Store,
    order: &Order<'_>,
    ids: &[String],
    new_ids: &[String],
) -> Result<(Vec<Replacement>, Number), Stop> {
    if let Some(id) = first_missing(order, ids) {
        return Err(refused(format!("{id} not found")));
    }
    if ids.len() != new_ids.len() {
        return Err(refused("the number of items to be exchanged should match"));
    }
    let mut replacements = Vec::with_capacity(ids.len());
    let mut difference = Number::ZERO;
    for (id, new_id) in ids.iter().zip(new_ids) {
        let item = order.items.iter().find(|item| item.item_id == id);
        let item = item.ok_or_else(|| refused(format!("{id} not found")))?;
        let mut product = store.product(item.product_id)?;
        let variant = product.variants.remove(new_id.as_str());
        let variant = variant.filter(|variant| variant.available);
        let variant =
            variant.ok_or_else(|| refused(format!("new item {new_id} not found or available")))?;
        let price = Number::from(&variant.price);
        difference = difference.plus(price.minus(Number::from(&item.price)));
        replacements.push(Replacement {
            id: new_id.clone(),
            price,
            options: variant.options,
        });
    }
    Ok((replacements, difference))
}
