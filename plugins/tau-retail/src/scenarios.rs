//! Short episodes, made from the bound database: each uses the first suitable record, by id, and states the expected
//! end by the store's rules.

use rlf_plugin::environment::Scenario;
use rlf_plugin::serde_json::{Map, Value, json};
use serde::Deserialize;

use crate::number::Number;
use crate::records::{Order, User};
use crate::shop::Shop;

/// The scenarios for which the database has a suitable record.
pub(crate) fn all(shop: &Shop) -> Vec<Scenario> {
    let scenarios = [
        Some(nothing_found()),
        Some(transfer()),
        cancel(shop, false),
        cancel(shop, true),
        refused_cancel(shop),
        refused_reason(shop),
        return_item(shop),
        move_house(shop),
    ];
    scenarios.into_iter().flatten().collect()
}

fn scenario(id: &str, calls: Vec<(&str, Value)>, expect: Value) -> Scenario {
    let calls = calls.into_iter();
    Scenario {
        id: id.to_owned(),
        task: json!({ "instruction": "You have a request." }),
        seed: 0,
        calls: calls
            .map(|(name, arguments)| (name.to_owned(), arguments))
            .collect(),
        expect,
    }
}

fn state(ended: bool, orders: Map<String, Value>, users: Map<String, Value>) -> Value {
    json!({ "ended": ended, "orders": orders, "users": users })
}

fn unchanged() -> Value {
    state(false, Map::new(), Map::new())
}

fn one(id: &str, record: Value) -> Map<String, Value> {
    Map::from_iter([(id.to_owned(), record)])
}

/// The first suitable order, with its id and its user.
fn first_order<'w>(
    shop: &'w Shop,
    fits: impl Fn(&Order<'w>, &User<'w>) -> bool,
) -> Option<(&'w str, &'w Value, Order<'w>, &'w Value)> {
    shop.orders.sorted().find_map(|(id, record)| {
        let order = Order::deserialize(record).ok()?;
        let owner = shop.users.record(shop.users.row(order.user_id)?);
        let user = User::deserialize(owner).ok()?;
        fits(&order, &user).then_some((id, record, order, owner))
    })
}

fn nothing_found() -> Scenario {
    let calls = vec![
        ("get_order_details", json!({ "order_id": "" })),
        ("find_user_id_by_email", json!({ "email": "" })),
        ("calculate", json!({ "expression": "(1 + 2) * 3 / 4" })),
        ("think", json!({ "thought": "There is nothing to do." })),
    ];
    scenario("looking-changes-nothing", calls, unchanged())
}

fn transfer() -> Scenario {
    let calls = vec![("transfer_to_human_agents", json!({ "summary": "" }))];
    let expect = state(true, Map::new(), Map::new());
    scenario("transfer-ends-the-conversation", calls, expect)
}

/// A pending order, paid once: by gift card or not.
fn cancel(shop: &Shop, by_gift_card: bool) -> Option<Scenario> {
    let (id, record, order, owner) = first_order(shop, |order, user| {
        let [payment] = &*order.payment_history else {
            return false;
        };
        let method = user.payment_methods.get(payment.payment_method_id);
        order.status == "pending"
            && method.is_some_and(|method| method.gift_card().is_some() == by_gift_card)
            && payment.payment_method_id.contains("gift_card") == by_gift_card
    })?;
    let payment = order.payment_history.first()?;
    let (amount, method) = (&payment.amount, payment.payment_method_id);
    let mut cancelled = record.clone();
    cancelled["status"] = json!("cancelled");
    cancelled["cancel_reason"] = json!("no longer needed");
    let refund =
        json!({ "transaction_type": "refund", "amount": amount, "payment_method_id": method });
    cancelled["payment_history"].as_array_mut()?.push(refund);
    let mut users = Map::new();
    if by_gift_card {
        let mut owner = owner.clone();
        let balance = &mut owner["payment_methods"][method]["balance"];
        let Value::Number(before) = &*balance else {
            return None;
        };
        let after = Number::from(before).plus(Number::from(amount));
        *balance = after.round_cents().into();
        users = one(order.user_id, owner);
    }
    let name = if by_gift_card {
        "a-gift-card-is-refunded-at-once"
    } else {
        "a-pending-order-is-cancelled"
    };
    let arguments = json!({ "order_id": id, "reason": "no longer needed" });
    let calls = vec![("cancel_pending_order", arguments)];
    Some(scenario(
        name,
        calls,
        state(false, one(id, cancelled), users),
    ))
}

fn refused_cancel(shop: &Shop) -> Option<Scenario> {
    let (id, ..) = first_order(shop, |order, _| order.status == "delivered")?;
    let arguments = json!({ "order_id": id, "reason": "ordered by mistake" });
    let calls = vec![("cancel_pending_order", arguments)];
    Some(scenario(
        "a-delivered-order-is-not-cancelled",
        calls,
        unchanged(),
    ))
}

fn refused_reason(shop: &Shop) -> Option<Scenario> {
    let (id, ..) = first_order(shop, |order, _| order.status == "pending")?;
    let arguments = json!({ "order_id": id, "reason": "too expensive" });
    let calls = vec![("cancel_pending_order", arguments)];
    Some(scenario("another-reason-is-refused", calls, unchanged()))
}

/// The refund goes to the payment's source; a second return is refused.
fn return_item(shop: &Shop) -> Option<Scenario> {
    let (id, record, order, _) = first_order(shop, |order, user| {
        let first = order.payment_history.first();
        let known = |method: &str| user.payment_methods.contains_key(method);
        order.status == "delivered"
            && !order.items.is_empty()
            && first.is_some_and(|payment| known(payment.payment_method_id))
    })?;
    let item = order.items.first()?.item_id;
    let method = order.payment_history.first()?.payment_method_id;
    let mut returned = record.clone();
    returned["status"] = json!("return requested");
    returned["return_items"] = json!([item]);
    returned["return_payment_method_id"] = json!(method);
    let arguments = json!({ "order_id": id, "item_ids": [item], "payment_method_id": method });
    let calls = vec![
        ("return_delivered_order_items", arguments.clone()),
        ("return_delivered_order_items", arguments),
    ];
    let expect = state(false, one(id, returned), Map::new());
    Some(scenario(
        "a-delivered-order-is-returned-once",
        calls,
        expect,
    ))
}

fn move_house(shop: &Shop) -> Option<Scenario> {
    let (id, record) = shop.users.sorted().next()?;
    let address = json!({
        "address1": "1 First Street",
        "address2": "",
        "city": "Springfield",
        "state": "IL",
        "country": "USA",
        "zip": "62701",
    });
    let mut arguments = address.clone();
    arguments["user_id"] = json!(id);
    let mut moved = record.clone();
    moved["address"] = address;
    let calls = vec![("modify_user_address", arguments)];
    let expect = state(false, Map::new(), one(id, moved));
    Some(scenario("a-user-moves", calls, expect))
}
