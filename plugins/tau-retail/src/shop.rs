//! The data that `init` reads once and all sessions share: the database, the tools' definitions, the agent's rules.

use std::collections::BTreeMap;
use std::fmt;

use rlf_plugin::serde_json::{self, Map, Value};
use rlf_plugin::{ToolDefinition, data, error_message};
use serde::Deserialize;

use crate::digest::Printed;
use crate::python;
use crate::records::{Order, Product, User};
use crate::table::{Check, Table};
use crate::tool::Tool;

/// The slot of `plugin.toml`.
const SLOT: &str = "retail";

/// The store before any conversation.
#[derive(Debug)]
pub(crate) struct Shop {
    pub(crate) orders: Table,
    pub(crate) products: Table,
    pub(crate) users: Table,
    /// The first user with an address, in lower case.
    pub(crate) emails: BTreeMap<String, usize>,
    /// Users of a first and last name, in lower case, in the order of the file.
    pub(crate) names: BTreeMap<(String, String), Vec<usize>>,
    /// The text that `list_all_product_types` shows.
    pub(crate) product_types: String,
    pub(crate) printed: Printed,
    pub(crate) tools: Vec<ToolDefinition>,
    pub(crate) wiki: String,
}

/// The reason why the data cannot be used: the file, and its error.
#[derive(Debug)]
pub(crate) struct ShopError {
    file: &'static str,
    reason: String,
}

impl fmt::Display for ShopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "data `{SLOT}`, file {}: {}", self.file, self.reason)
    }
}

impl Shop {
    /// Reads the five files of the slot and ignores others.
    pub(crate) fn load() -> Result<Self, ShopError> {
        let orders = table("orders.json", |order| Order::deserialize(order).map(drop))?;
        let products = table("products.json", |product| {
            Product::deserialize(product).map(drop)
        })?;
        let users = table("users.json", |user| User::deserialize(user).map(drop))?;
        connect(&orders, &products, &users)?;
        let (emails, names) = find_users(&users);
        Ok(Self {
            emails,
            names,
            product_types: product_types(&products),
            printed: Printed::new(&orders, &products, &users),
            tools: definitions()?,
            wiki: file("wiki.md")?,
            orders,
            products,
            users,
        })
    }
}

fn file(name: &'static str) -> Result<String, ShopError> {
    let failed = |reason: &str| ShopError {
        file: name,
        reason: reason.to_owned(),
    };
    let entries = data::entries(SLOT).map_err(|error| failed(error_message(&error)))?;
    let entry = entries.iter().find(|entry| entry.path == name);
    let entry = entry.ok_or_else(|| failed("it is missing; bind the folder that has it"))?;
    data::read_text(SLOT, entry).map_err(|error| failed(error_message(&error)))
}

fn table(name: &'static str, check: Check) -> Result<Table, ShopError> {
    Table::parse(&file(name)?, check).map_err(|error| ShopError {
        file: name,
        reason: error.to_string(),
    })
}

/// Checks that every order's user and products exist, so that no call finds one missing.
fn connect(orders: &Table, products: &Table, users: &Table) -> Result<(), ShopError> {
    for (id, record) in orders.sorted() {
        let Ok(order) = Order::deserialize(record) else {
            continue;
        };
        let mut items = order.items.iter().map(|item| item.product_id);
        let lost = items.find(|id| products.row(id).is_none());
        let missing = match (users.row(order.user_id), lost) {
            (None, _) => format!("user {}", order.user_id),
            (_, Some(product)) => format!("product {product}"),
            (Some(_), None) => continue,
        };
        return Err(ShopError {
            file: "orders.json",
            reason: format!("the order {id} has the {missing}, which is not there"),
        });
    }
    Ok(())
}

type Found = (
    BTreeMap<String, usize>,
    BTreeMap<(String, String), Vec<usize>>,
);

fn find_users(users: &Table) -> Found {
    let (mut emails, mut names) = Found::default();
    for (row, record) in users.as_filed() {
        if let Ok(user) = User::deserialize(record) {
            emails.entry(user.email.to_lowercase()).or_insert(row);
            let name = (
                user.name.first_name.to_lowercase(),
                user.name.last_name.to_lowercase(),
            );
            names.entry(name).or_default().push(row);
        }
    }
    (emails, names)
}

fn product_types(products: &Table) -> String {
    let filed = products.as_filed();
    let types: BTreeMap<&str, &str> = filed
        .filter_map(|(_, record)| Product::deserialize(record).ok())
        .map(|product| (product.name, product.product_id))
        .collect();
    let types: Map<String, Value> = types
        .into_iter()
        .map(|(name, id)| (name.to_owned(), id.into()))
        .collect();
    python::dumps(&Value::Object(types))
}

/// A tool as `tools.json` describes it: the form of the chat completion interface.
#[derive(Deserialize)]
struct Described {
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    description: String,
    parameters: Map<String, Value>,
}

fn definitions() -> Result<Vec<ToolDefinition>, ShopError> {
    const FILE: &str = "tools.json";
    let failed = |reason: String| ShopError { file: FILE, reason };
    let described: Vec<Described> =
        serde_json::from_str(&file(FILE)?).map_err(|error| failed(error.to_string()))?;
    let define = |Described { function }| {
        let Function {
            name,
            description,
            parameters,
        } = function;
        let Some(tool) = Tool::named(&name) else {
            return Err(failed(format!("there is no tool `{name}` in this store")));
        };
        Ok(ToolDefinition {
            name,
            description,
            input_schema: Value::Object(parameters).to_string(),
            output_schema: None,
            hints: tool.hints(),
            extra: Vec::new(),
        })
    };
    described.into_iter().map(define).collect()
}
