//! One session's database: the shared one, and the records that the session changed.

use std::collections::BTreeMap;

use rlf_plugin::serde_json::{Map, Value};
use rlf_plugin::{Error, internal};

use crate::python;
use crate::records::{self, Order, Product, User};
use crate::shop::Shop;

/// Changed orders and users by row. Products never change, and nothing is added or removed.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) shop: &'static Shop,
    orders: BTreeMap<usize, Value>,
    users: BTreeMap<usize, Value>,
}

/// The changes of one tool call, applied as a whole or not at all.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) order: Option<(usize, Value)>,
    pub(crate) user: Option<(usize, Value)>,
}

impl Store {
    pub(crate) fn new(shop: &'static Shop) -> Self {
        Self {
            shop,
            orders: BTreeMap::new(),
            users: BTreeMap::new(),
        }
    }

    /// The row and the present record of an order.
    pub(crate) fn order(&self, id: &str) -> Option<(usize, &Value)> {
        let row = self.shop.orders.row(id)?;
        let original = || self.shop.orders.record(row);
        Some((row, self.orders.get(&row).unwrap_or_else(original)))
    }

    /// The row and the present record of a user.
    pub(crate) fn user(&self, id: &str) -> Option<(usize, &Value)> {
        let row = self.shop.users.row(id)?;
        Some((row, self.user_at(row)))
    }

    /// The present record of a user's row, which must exist.
    pub(crate) fn user_at(&self, row: usize) -> &Value {
        let original = || self.shop.users.record(row);
        self.users.get(&row).unwrap_or_else(original)
    }

    /// The user of an order.
    pub(crate) fn owner(&self, order: &Order<'_>) -> Result<(usize, &Value), Error> {
        let id = order.user_id;
        self.user(id)
            .ok_or_else(|| internal(format!("an order is of the user {id}, who is not there")))
    }

    /// The product of an item in an order.
    pub(crate) fn product(&self, id: &str) -> Result<Product<'_>, Error> {
        let products = &self.shop.products;
        let row = products.row(id).ok_or_else(|| {
            internal(format!("an order has the product {id}, which is not there"))
        })?;
        records::read(products.record(row))
    }

    pub(crate) fn apply(&mut self, changes: Changes) {
        self.orders.extend(changes.order);
        self.users.extend(changes.user);
    }

    /// The changed records by id, without those that equal their original again.
    pub(crate) fn changed(&self) -> (Map<String, Value>, Map<String, Value>) {
        let Shop { orders, users, .. } = self.shop;
        let (changed_orders, changed_users) = self.printed();
        let orders = changed_orders
            .into_iter()
            .filter_map(|(row, _)| {
                Some((orders.id(row).to_owned(), self.orders.get(&row)?.clone()))
            })
            .collect();
        let users = changed_users
            .into_iter()
            .filter_map(|(row, _)| Some((users.id(row).to_owned(), self.users.get(&row)?.clone())))
            .collect();
        (orders, users)
    }

    /// The hash of the whole database.
    pub(crate) fn hash(&self) -> String {
        let (orders, users) = self.printed();
        self.shop.printed.hash(&orders, &users)
    }

    /// Changed rows with their text, which differs from the original's.
    fn printed(&self) -> (Printed, Printed) {
        let printed = &self.shop.printed;
        let orders = print_changed(&self.orders, |row| printed.order(row));
        let users = print_changed(&self.users, |row| printed.user(row));
        (orders, users)
    }

    /// All records that the session holds, by id. They include records that equal the original except for the order
    /// of their keys, which the agent can see.
    pub(crate) fn held(&self) -> (BTreeMap<&str, &Value>, BTreeMap<&str, &Value>) {
        let Shop { orders, users, .. } = self.shop;
        let by_id = self
            .orders
            .iter()
            .map(|(row, record)| (orders.id(*row), record));
        let users_by_id = self
            .users
            .iter()
            .map(|(row, record)| (users.id(*row), record));
        (by_id.collect(), users_by_id.collect())
    }

    /// Takes the records that [`held`](Self::held) returned; refuses invalid ones.
    pub(crate) fn hold(
        &mut self,
        orders: BTreeMap<String, Value>,
        users: BTreeMap<String, Value>,
    ) -> Result<(), Error> {
        for (id, record) in orders {
            let row = self.shop.orders.row(&id);
            let row = row.ok_or_else(|| internal(format!("there is no order {id}")))?;
            let order: Order<'_> = records::read(&record)?;
            self.owner(&order)?;
            self.orders.insert(row, record);
        }
        for (id, record) in users {
            let row = self.shop.users.row(&id);
            let row = row.ok_or_else(|| internal(format!("there is no user {id}")))?;
            records::read::<User<'_>>(&record)?;
            self.users.insert(row, record);
        }
        Ok(())
    }
}

type Printed = Vec<(usize, String)>;

fn print_changed<'a>(
    records: &BTreeMap<usize, Value>,
    original: impl Fn(usize) -> &'a str,
) -> Printed {
    let print = |(row, record): (&usize, &Value)| {
        let mut text = String::new();
        python::write_tuple(&mut text, record);
        (text != original(*row)).then_some((*row, text))
    };
    records.iter().filter_map(print).collect()
}
