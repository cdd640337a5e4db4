//! A small store for these tests, and helpers that open its sessions. Tests of the published data are skipped without
//! it.

mod calculate;
#[path = "../../../tests/src/data.rs"]
mod data;
mod hash;
mod instruction;
mod published;
mod python;
mod random;
mod session;
mod shop;
mod tools;

use std::fs;
use std::path::PathBuf;

use rlf_plugin::environment::Step;
use rlf_plugin::serde_json::{self, Value, json};
use rlf_plugin::{error_message, testing};

use crate::Plugin;

pub(crate) type Session = testing::Session<Plugin>;

/// Five orders of two users: a shirt in three variants, and a lamp.
pub(crate) fn database() -> (Value, Value, Value) {
    let variant = |id: &str, size: &str, available: bool, price: f64| json!({ "item_id": id, "options": { "size": size }, "available": available, "price": price });
    let products = json!({
        "p2": { "name": "Shirt", "product_id": "p2", "variants": {
            "s1": variant("s1", "S", true, 20.0),
            "s2": variant("s2", "M", true, 25.5),
            "s3": variant("s3", "L", false, 30.0),
            "s4": variant("s4", "XL", true, 520.0),
        }},
        "p1": { "name": "Lamp", "product_id": "p1", "variants": { "l1": variant("l1", "tall", true, 99.99) } },
    });
    let user = |first: &str, email: &str, methods: Value, orders: Value| {
        json!({
            "name": { "first_name": first, "last_name": "Stone" },
            "address": { "address1": "1 Elm", "address2": "", "city": "Rome", "country": "USA", "state": "GA", "zip": "30161" },
            "email": email,
            "payment_methods": methods,
            "orders": orders,
        })
    };
    let users = json!({
        "zoe_1": user("Zoe", "Zoe@Example.com", json!({
            "gift_card_1": { "source": "gift_card", "balance": 50, "id": "gift_card_1" },
            "paypal_1": { "source": "paypal", "id": "paypal_1" },
            "credit_card_1": { "source": "credit_card", "brand": "visa", "last_four": "1234", "id": "credit_card_1" },
        }), json!(["#1", "#2", "#3", "#4"])),
        "adam_2": user("Adam", "adam@example.com", json!({
            "paypal_2": { "source": "paypal", "id": "paypal_2" },
        }), json!(["#5"])),
    });
    let order = |id: &str, owner: &str, status: &str, items: Value, payment: Value| {
        json!({
            "order_id": id, "user_id": owner,
            "address": { "address1": "1 Elm", "address2": "", "city": "Rome", "country": "USA", "state": "GA", "zip": "30161" },
            "items": items, "fulfillments": [], "status": status, "payment_history": [payment],
        })
    };
    let shirt = |id: &str, size: &str, price: f64| json!({ "name": "Shirt", "product_id": "p2", "item_id": id, "price": price, "options": { "size": size } });
    let lamp = json!({ "name": "Lamp", "product_id": "p1", "item_id": "l1", "price": 99.99, "options": { "size": "tall" } });
    let paid = |amount: f64, method: &str| json!({ "transaction_type": "payment", "amount": amount, "payment_method_id": method });
    let orders = json!({
        "#2": order("#2", "zoe_1", "delivered", json!([shirt("s1", "S", 19.0), shirt("s1", "S", 19.0), lamp]), paid(137.99, "paypal_1")),
        "#1": order("#1", "zoe_1", "pending", json!([shirt("s1", "S", 19.9), shirt("s2", "M", 25.5)]), paid(45.4, "paypal_1")),
        "#3": order("#3", "zoe_1", "pending", json!([shirt("s2", "M", 25.5)]), paid(25.5, "gift_card_1")),
        "#4": order("#4", "zoe_1", "processed", json!([lamp]), paid(99.99, "credit_card_1")),
        "#5": order("#5", "adam_2", "cancelled", json!([lamp]), paid(99.99, "paypal_2")),
    });
    (orders, products, users)
}

const TOOLS: [(&str, &str); 16] = [
    ("calculate", "expression"),
    ("cancel_pending_order", "order_id reason"),
    (
        "exchange_delivered_order_items",
        "order_id item_ids new_item_ids payment_method_id",
    ),
    ("find_user_id_by_email", "email"),
    ("find_user_id_by_name_zip", "first_name last_name zip"),
    ("get_order_details", "order_id"),
    ("get_product_details", "product_id"),
    ("get_user_details", "user_id"),
    ("list_all_product_types", ""),
    (
        "modify_pending_order_address",
        "order_id address1 address2 city state country zip",
    ),
    (
        "modify_pending_order_items",
        "order_id item_ids new_item_ids payment_method_id",
    ),
    ("modify_pending_order_payment", "order_id payment_method_id"),
    (
        "modify_user_address",
        "user_id address1 address2 city state country zip",
    ),
    (
        "return_delivered_order_items",
        "order_id item_ids payment_method_id",
    ),
    ("think", "thought"),
    ("transfer_to_human_agents", "summary"),
];

pub(crate) fn tool_file() -> String {
    let describe = |(name, arguments): &(&str, &str)| {
        let named = |argument: &str| {
            let items = json!({ "type": "array", "items": { "type": "string" } });
            let kind = if argument.ends_with("ids") {
                items
            } else {
                json!({ "type": "string" })
            };
            (argument.to_owned(), kind)
        };
        let properties: serde_json::Map<_, _> = arguments.split_whitespace().map(named).collect();
        let required: Vec<&str> = arguments.split_whitespace().collect();
        json!({ "type": "function", "function": {
            "name": name, "description": format!("Does {name}."),
            "parameters": { "type": "object", "properties": properties, "required": required },
        }})
    };
    TOOLS.iter().map(describe).collect::<Value>().to_string()
}

/// Binds a store's files and runs `init`.
pub(crate) fn bind(orders: &Value, products: &Value, users: &Value) -> Result<(), String> {
    testing::bind("retail", "orders.json", orders.to_string());
    testing::bind("retail", "products.json", products.to_string());
    testing::bind("retail", "users.json", users.to_string());
    testing::bind("retail", "tools.json", tool_file());
    testing::bind("retail", "wiki.md", "# Policy\n");
    testing::bind("retail", "tasks.json", "not read");
    testing::init_environment::<Plugin>(json!({})).map_err(|error| error_message(&error).to_owned())
}

pub(crate) fn small() -> Session {
    let (orders, products, users) = database();
    bind(&orders, &products, &users).unwrap();
    open(json!({ "instruction": "You want something." }))
}

pub(crate) fn open(task: Value) -> Session {
    testing::open::<Plugin>(task, 0).unwrap().0
}

/// The text that a call shows, and whether it was refused.
pub(crate) fn shown(step: &Step) -> (String, bool) {
    (testing::text(&step.observation), step.observation.failed)
}

pub(crate) fn call(session: &mut Session, name: &str, arguments: Value) -> (String, bool) {
    shown(&session.call(name, arguments).unwrap())
}

/// Makes a call that must be refused, change nothing, and say this after `Error: `.
pub(crate) fn refused(session: &mut Session, name: &str, arguments: Value, reason: &str) {
    let before = session.state();
    let expected = (format!("Error: {reason}"), true);
    assert_eq!(call(session, name, arguments), expected);
    assert_eq!(session.state(), before);
}

/// The text that a call shows, parsed as JSON.
pub(crate) fn record(session: &mut Session, name: &str, arguments: Value) -> Value {
    let (text, failed) = call(session, name, arguments);
    assert!(!failed, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// The published data, if it is there.
pub(crate) fn published() -> Option<PathBuf> {
    data::data("tau-retail")
}

/// Binds the published data and runs `init`; returns the tasks, which are not bound.
pub(crate) fn init_published() -> Option<Vec<Value>> {
    let folder = published()?;
    for name in [
        "orders.json",
        "products.json",
        "users.json",
        "tools.json",
        "wiki.md",
    ] {
        testing::bind("retail", name, fs::read(folder.join(name)).unwrap());
    }
    testing::init_environment::<Plugin>(json!({})).unwrap();
    let tasks = fs::read_to_string(folder.join("tasks_train_dev.json")).unwrap();
    Some(serde_json::from_str(&tasks).unwrap())
}
