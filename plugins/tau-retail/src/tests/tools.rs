//! The effect of each tool, and the calls that it refuses.

use rlf_plugin::Error;
use rlf_plugin::serde_json::{Value, json};

use super::{Session, bind, call, database, open, record, refused, small};

#[test]
fn users_are_found_by_email_or_name_and_zip_whatever_the_case() {
    let session = &mut small();
    let found = |text: &str| (text.to_owned(), false);
    let email = |email: &str| json!({ "email": email });
    assert_eq!(
        call(session, "find_user_id_by_email", email("ZOE@example.COM")),
        found("zoe_1")
    );
    refused(
        session,
        "find_user_id_by_email",
        email("eve@example.com"),
        "user not found",
    );

    let name = "find_user_id_by_name_zip";
    let person =
        |first: &str, zip: &str| json!({ "first_name": first, "last_name": "STONE", "zip": zip });
    assert_eq!(
        call(session, name, person("adam", "30161")),
        found("adam_2")
    );
    refused(session, name, person("adam", "30162"), "user not found");
    refused(session, name, person("eve", "30161"), "user not found");
}

#[test]
fn a_user_who_moved_is_found_at_the_new_zip() {
    let session = &mut small();
    let user = record(session, "modify_user_address", address("user_id", "adam_2"));
    assert_eq!(user["address"]["zip"], "60601");
    let name = "find_user_id_by_name_zip";
    let person = |zip: &str| json!({ "first_name": "Adam", "last_name": "Stone", "zip": zip });
    assert_eq!(
        call(session, name, person("60601")),
        ("adam_2".to_owned(), false)
    );
    refused(session, name, person("30161"), "user not found");
    refused(
        session,
        "modify_user_address",
        address("user_id", "eve"),
        "user not found",
    );
}

fn address(key: &str, id: &str) -> Value {
    let mut given = json!({
        "address1": "2 Oak", "address2": "Flat 3", "city": "Chicago",
        "state": "IL", "country": "USA", "zip": "60601",
    });
    given[key] = json!(id);
    given
}

#[test]
fn details_are_shown_as_python_dumps_them_in_the_order_of_their_keys() {
    let session = &mut small();
    let (text, _) = call(session, "get_user_details", json!({ "user_id": "adam_2" }));
    assert_eq!(
        text,
        concat!(
            r#"{"name": {"first_name": "Adam", "last_name": "Stone"}, "address": {"address1": "1 Elm", "#,
            r#""address2": "", "city": "Rome", "country": "USA", "state": "GA", "zip": "30161"}, "#,
            r#""email": "adam@example.com", "payment_methods": {"paypal_2": {"source": "paypal", "#,
            r##""id": "paypal_2"}}, "orders": ["#5"]}"##,
        )
    );
    let (text, _) = call(
        session,
        "get_product_details",
        json!({ "product_id": "p1" }),
    );
    assert_eq!(
        text,
        concat!(
            r#"{"name": "Lamp", "product_id": "p1", "variants": {"l1": {"item_id": "l1", "#,
            r#""options": {"size": "tall"}, "available": true, "price": 99.99}}}"#,
        )
    );
    let (text, _) = call(session, "list_all_product_types", json!({}));
    assert_eq!(text, r#"{"Lamp": "p1", "Shirt": "p2"}"#);

    refused(
        session,
        "get_user_details",
        json!({ "user_id": "eve" }),
        "user not found",
    );
    refused(
        session,
        "get_product_details",
        json!({ "product_id": "l1" }),
        "product not found",
    );
    refused(
        session,
        "get_order_details",
        json!({ "order_id": "1" }),
        "order not found",
    );
}

#[test]
fn cancelling_refunds_every_payment_and_a_gift_card_at_once() {
    let session = &mut small();
    let cancel = |id: &str| json!({ "order_id": id, "reason": "no longer needed" });
    let order = record(session, "cancel_pending_order", cancel("#1"));
    assert_eq!(order["status"], "cancelled");
    assert_eq!(order["cancel_reason"], "no longer needed");
    assert_eq!(
        order["payment_history"][1],
        json!({ "transaction_type": "refund", "amount": 45.4, "payment_method_id": "paypal_1" })
    );
    assert_eq!(session.state()["users"], json!({}));

    record(session, "cancel_pending_order", cancel("#3"));
    let user = record(session, "get_user_details", json!({ "user_id": "zoe_1" }));
    assert_eq!(
        user["payment_methods"]["gift_card_1"]["balance"],
        json!(75.5)
    );
}

#[test]
fn what_cannot_be_cancelled_stays() {
    let session = &mut small();
    let cancel = |id: &str, reason: &str| json!({ "order_id": id, "reason": reason });
    let tool = "cancel_pending_order";
    refused(
        session,
        tool,
        cancel("#9", "no longer needed"),
        "order not found",
    );
    for id in ["#2", "#4", "#5"] {
        let reason = "non-pending order cannot be cancelled";
        refused(session, tool, cancel(id, "no longer needed"), reason);
    }
    refused(
        session,
        tool,
        cancel("#1", "changed my mind"),
        "invalid reason",
    );
}

#[test]
fn the_address_of_a_pending_order_changes_and_of_no_other() {
    let session = &mut small();
    let tool = "modify_pending_order_address";
    let order = record(session, tool, address("order_id", "#1"));
    assert_eq!(
        order["address"].to_string(),
        r#"{"address1":"2 Oak","address2":"Flat 3","city":"Chicago","state":"IL","country":"USA","zip":"60601"}"#
    );
    assert_eq!(order["status"], "pending");
    refused(session, tool, address("order_id", "#9"), "order not found");
    refused(
        session,
        tool,
        address("order_id", "#2"),
        "non-pending order cannot be modified",
    );
}

#[test]
fn another_payment_method_pays_and_the_first_one_is_refunded() {
    let session = &mut small();
    let tool = "modify_pending_order_payment";
    let pay = |id: &str, method: &str| json!({ "order_id": id, "payment_method_id": method });
    let order = record(session, tool, pay("#1", "gift_card_1"));
    assert_eq!(
        order["payment_history"],
        json!([
            { "transaction_type": "payment", "amount": 45.4, "payment_method_id": "paypal_1" },
            { "transaction_type": "payment", "amount": 45.4, "payment_method_id": "gift_card_1" },
            { "transaction_type": "refund", "amount": 45.4, "payment_method_id": "paypal_1" },
        ])
    );
    assert_eq!(balance(session), json!(4.6));
    let twice = "there should be exactly one payment for a pending order";
    refused(session, tool, pay("#1", "credit_card_1"), twice);

    record(session, tool, pay("#3", "paypal_1"));
    assert_eq!(balance(session), json!(30.1));
}

fn balance(session: &mut Session) -> Value {
    let user = record(session, "get_user_details", json!({ "user_id": "zoe_1" }));
    user["payment_methods"]["gift_card_1"]["balance"].clone()
}

#[test]
fn a_payment_method_that_does_not_fit_is_refused() {
    let session = &mut small();
    let tool = "modify_pending_order_payment";
    let pay = |id: &str, method: &str| json!({ "order_id": id, "payment_method_id": method });
    refused(session, tool, pay("#9", "paypal_1"), "order not found");
    refused(
        session,
        tool,
        pay("#4", "paypal_1"),
        "non-pending order cannot be modified",
    );
    refused(
        session,
        tool,
        pay("#1", "paypal_2"),
        "payment method not found",
    );
    let same = "the new payment method should be different from the current one";
    refused(session, tool, pay("#1", "paypal_1"), same);
    let (orders, products, mut users) = database();
    users["zoe_1"]["payment_methods"]["gift_card_1"]["balance"] = json!(45.39);
    bind(&orders, &products, &users).unwrap();
    let mut session = open(json!({ "instruction": "" }));
    let short = "insufficient gift card balance to pay for the order";
    refused(&mut session, tool, pay("#1", "gift_card_1"), short);
}

fn items(id: &str, old: &[&str], new: &[&str], method: &str) -> Value {
    json!({ "order_id": id, "item_ids": old, "new_item_ids": new, "payment_method_id": method })
}

#[test]
fn items_of_a_pending_order_are_replaced_once_and_the_difference_is_paid() {
    let session = &mut small();
    let tool = "modify_pending_order_items";
    let order = record(session, tool, items("#1", &["s1"], &["s2"], "gift_card_1"));
    assert_eq!(order["status"], "pending (item modified)");
    assert_eq!(order["items"][0]["item_id"], "s2");
    assert_eq!(order["items"][0]["price"], json!(25.5));
    assert_eq!(order["items"][0]["options"], json!({ "size": "M" }));
    assert_eq!(
        order["payment_history"][1],
        json!({ "transaction_type": "payment", "amount": 25.5 - 19.9, "payment_method_id": "gift_card_1" })
    );
    assert_ne!(
        order["payment_history"][1]["amount"],
        json!(5.6),
        "it is not rounded"
    );
    assert_eq!(balance(session), json!(44.4));
    let again = items("#1", &["s2"], &["s1"], "gift_card_1");
    refused(session, tool, again, "non-pending order cannot be modified");

    let order = record(session, tool, items("#3", &["s2"], &["s1"], "paypal_1"));
    assert_eq!(
        order["payment_history"][1],
        json!({ "transaction_type": "refund", "amount": 5.5, "payment_method_id": "paypal_1" })
    );
}

#[test]
fn no_items_at_all_leave_whole_numbers_whole() {
    let session = &mut small();
    let tool = "modify_pending_order_items";
    let order = record(session, tool, items("#1", &[], &[], "gift_card_1"));
    assert_eq!(order["payment_history"][1]["amount"].to_string(), "0");
    assert_eq!(balance(session).to_string(), "50");
}

#[test]
fn items_that_do_not_fit_are_refused_whether_exchanged_or_modified() {
    let session = &mut small();
    for (tool, id, action, price) in [
        ("modify_pending_order_items", "#1", "modified", "new item"),
        (
            "exchange_delivered_order_items",
            "#2",
            "exchanged",
            "price difference",
        ),
    ] {
        let mut refuse = |given, reason: &str| refused(session, tool, given, reason);
        refuse(items("#9", &[], &[], "paypal_1"), "order not found");
        let status = if id == "#1" {
            "non-pending"
        } else {
            "non-delivered"
        };
        refuse(
            items("#4", &[], &[], "paypal_1"),
            &format!("{status} order cannot be {action}"),
        );
        refuse(items(id, &["s3"], &["s1"], "paypal_1"), "s3 not found");
        refuse(
            items(id, &["s1", "s1", "s1"], &["s2", "s2", "s2"], "paypal_1"),
            "s1 not found",
        );
        refuse(
            items(id, &["s1"], &[], "paypal_1"),
            "the number of items to be exchanged should match",
        );
        refuse(
            items(id, &["s1"], &["s3"], "paypal_1"),
            "new item s3 not found or available",
        );
        refuse(
            items(id, &["s1"], &["l1"], "paypal_1"),
            "new item l1 not found or available",
        );
        refuse(
            items(id, &["s1"], &["s2"], "paypal_2"),
            "payment method not found",
        );
        let short = format!("insufficient gift card balance to pay for the {price}");
        refuse(items(id, &["s1"], &["s4"], "gift_card_1"), &short);
    }
}

#[test]
fn a_delivered_order_is_exchanged_once_and_nothing_is_paid_yet() {
    let session = &mut small();
    let tool = "exchange_delivered_order_items";
    let given = items(
        "#2",
        &["s1", "l1", "s1"],
        &["s2", "l1", "s1"],
        "gift_card_1",
    );
    let order = record(session, tool, given.clone());
    assert_eq!(order["status"], "exchange requested");
    assert_eq!(order["exchange_items"], json!(["l1", "s1", "s1"]));
    assert_eq!(order["exchange_new_items"], json!(["l1", "s1", "s2"]));
    assert_eq!(order["exchange_payment_method_id"], "gift_card_1");
    assert_eq!(order["exchange_price_difference"], json!(7.5));
    assert_eq!(balance(session), json!(50));
    refused(
        session,
        tool,
        given,
        "non-delivered order cannot be exchanged",
    );
}

#[test]
fn a_return_is_refunded_to_the_original_method_or_a_gift_card() {
    let give = |id: &str, items: &[&str], method: &str| json!({ "order_id": id, "item_ids": items, "payment_method_id": method });
    let tool = "return_delivered_order_items";
    for method in ["paypal_1", "gift_card_1"] {
        let session = &mut small();
        let order = record(session, tool, give("#2", &["s1", "l1"], method));
        assert_eq!(order["status"], "return requested");
        assert_eq!(order["return_items"], json!(["l1", "s1"]));
        assert_eq!(order["return_payment_method_id"], method);
        let again = give("#2", &["s1"], method);
        refused(
            session,
            tool,
            again,
            "non-delivered order cannot be returned",
        );
    }
    let session = &mut small();
    refused(
        session,
        tool,
        give("#9", &[], "paypal_1"),
        "order not found",
    );
    refused(
        session,
        tool,
        give("#2", &["s1"], "paypal_2"),
        "payment method not found",
    );
    let other = "payment method should be either the original payment method or a gift card";
    refused(session, tool, give("#2", &["s1"], "credit_card_1"), other);
    refused(
        session,
        tool,
        give("#2", &["s2"], "paypal_1"),
        "some item not found",
    );
    refused(
        session,
        tool,
        give("#2", &["l1", "l1"], "paypal_1"),
        "some item not found",
    );
}

#[test]
fn a_thought_shows_nothing_and_changes_nothing() {
    let session = &mut small();
    let before = session.state();
    assert_eq!(
        call(session, "think", json!({ "thought": "Hm." })),
        (String::new(), false)
    );
    assert_eq!(session.state(), before);
}

#[test]
fn arguments_that_do_not_fit_and_unknown_tools_are_the_callers_mistake() {
    let session = &mut small();
    let before = session.state();
    for (name, arguments) in [
        ("cancel_pending_order", json!({ "order_id": "#1" })),
        (
            "cancel_pending_order",
            json!({ "order_id": 1, "reason": "no longer needed" }),
        ),
        ("think", json!({ "thought": "a", "loud": true })),
        ("list_all_product_types", json!({ "page": 1 })),
        (
            "return_delivered_order_items",
            json!({ "order_id": "#2", "item_ids": "s1", "payment_method_id": "paypal_1" }),
        ),
        (
            "modify_user_address",
            json!({ "user_id": "zoe_1", "zip": "1" }),
        ),
        ("modify_user_address", json!({ "zip": "1" })),
    ] {
        let error = session.call(name, arguments).unwrap_err();
        assert!(
            matches!(error, Error::InvalidArguments(_)),
            "{name}: {error:?}"
        );
    }
    let mut extra = address("order_id", "#1");
    extra["phone"] = json!("1");
    let error = session
        .call("modify_pending_order_address", extra)
        .unwrap_err();
    assert!(matches!(error, Error::InvalidArguments(text) if text.contains("phone")));
    let error = session.call("refund", json!({})).unwrap_err();
    assert!(matches!(error, Error::NotFound(_)));
    assert_eq!(session.state(), before);
}
