//! Tools that only read.

use serde::Deserialize;

use super::{Done, Stop, refused};
use crate::python::dumps;
use crate::records::{self, User};
use crate::store::Store;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ByEmail {
    email: String,
}

/// Upper and lower case are equal.
pub(super) fn user_by_email(store: &Store, given: &ByEmail) -> Result<Done, Stop> {
    let shop = store.shop;
    let row = shop.emails.get(&given.email.to_lowercase());
    let row = row.ok_or_else(|| refused("user not found"))?;
    Ok(Done::shown(shop.users.id(*row)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ByName {
    first_name: String,
    last_name: String,
    zip: String,
}

/// The first user of that name whose present address fits: the session may have changed addresses.
pub(super) fn user_by_name(store: &Store, given: &ByName) -> Result<Done, Stop> {
    let shop = store.shop;
    let name = (
        given.first_name.to_lowercase(),
        given.last_name.to_lowercase(),
    );
    for row in shop.names.get(&name).into_iter().flatten() {
        let user: User<'_> = records::read(store.user_at(*row))?;
        if user.address.zip == given.zip {
            return Ok(Done::shown(shop.users.id(*row)));
        }
    }
    Err(refused("user not found"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OrderId {
    order_id: String,
}

pub(super) fn order(store: &Store, given: &OrderId) -> Result<Done, Stop> {
    let order = store.order(&given.order_id);
    let (_, order) = order.ok_or_else(|| refused("order not found"))?;
    Ok(Done::shown(dumps(order)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProductId {
    product_id: String,
}

pub(super) fn product(store: &Store, given: &ProductId) -> Result<Done, Stop> {
    let products = &store.shop.products;
    let row = products.row(&given.product_id);
    let row = row.ok_or_else(|| refused("product not found"))?;
    Ok(Done::shown(dumps(products.record(row))))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UserId {
    user_id: String,
}

pub(super) fn user(store: &Store, given: &UserId) -> Result<Done, Stop> {
    let user = store.user(&given.user_id);
    let (_, user) = user.ok_or_else(|| refused("user not found"))?;
    Ok(Done::shown(dumps(user)))
}
