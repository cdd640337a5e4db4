//! Compares the hash with the direct computation: print the whole changed database, then hash.

use rlf_plugin::serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{bind, call, database, open, small};
use crate::python;

fn plain(orders: &Value, products: &Value, users: &Value) -> String {
    let whole = json!({ "users": users, "products": products, "orders": orders });
    let mut text = String::new();
    python::write_tuple(&mut text, &whole);
    format!("{:x}", Sha256::digest(text))
}

fn verdict(session: &super::Session, hash: &str) -> bool {
    session
        .verify(None, &json!({ "gold_hash": hash }))
        .unwrap()
        .success
}

/// The hash that CPython 3 gives for the small store.
const SMALL: &str = "d53f91239a9fd6e05dd5a7ea265e802c4ce0f7ff6ea82e4a4e06400dadb31370";

#[test]
fn an_unchanged_store_has_the_hash_that_python_gives_it() {
    let (orders, products, users) = database();
    assert_eq!(plain(&orders, &products, &users), SMALL);
    assert!(verdict(&small(), SMALL));
    assert!(!verdict(&small(), &SMALL.replace('a', "b")));
}

#[test]
fn changes_in_both_tables_give_the_hash_of_the_changed_whole() {
    let (mut orders, products, mut users) = database();
    let session = &mut small();
    for id in ["#3", "#1"] {
        let cancel = json!({ "order_id": id, "reason": "ordered by mistake" });
        assert!(!call(session, "cancel_pending_order", cancel).1);
        orders[id]["status"] = json!("cancelled");
        orders[id]["cancel_reason"] = json!("ordered by mistake");
        let mut refund = orders[id]["payment_history"][0].clone();
        refund["transaction_type"] = json!("refund");
        orders[id]["payment_history"]
            .as_array_mut()
            .unwrap()
            .push(refund);
    }
    users["zoe_1"]["payment_methods"]["gift_card_1"]["balance"] = json!(75.5);
    assert!(verdict(session, &plain(&orders, &products, &users)));
}

#[test]
fn a_change_anywhere_in_a_large_store_is_hashed_as_a_whole() {
    // Long enough that records are before, on and after the kept states.
    let (orders, products, users) = database();
    let mut many = orders.clone();
    for number in 0..400 {
        let mut order = orders["#1"].clone();
        order["order_id"] = json!(format!("#W{number:04}"));
        many[format!("#W{number:04}")] = order;
    }
    bind(&many, &products, &users).unwrap();
    for number in [0, 17, 18, 19, 20, 250, 399] {
        let mut session = open(json!({ "instruction": "" }));
        let mut changed = many.clone();
        for id in [format!("#W{number:04}"), format!("#W{:04}", 399 - number)] {
            let given = json!({
                "order_id": id, "address1": "ü", "address2": "it's", "city": "",
                "state": "", "country": "", "zip": "",
            });
            assert!(!call(&mut session, "modify_pending_order_address", given.clone()).1);
            changed[&id]["address"] = given;
            changed[&id]["address"]
                .as_object_mut()
                .unwrap()
                .remove("order_id");
        }
        assert!(
            verdict(&session, &plain(&changed, &products, &users)),
            "{number}"
        );
    }
}

#[test]
fn a_store_of_one_and_of_none_is_printed_with_pythons_commas() {
    let (_, _, users) = database();
    let none = json!({});
    bind(&none, &none, &none).unwrap();
    assert!(verdict(
        &open(json!({ "instruction": "" })),
        &plain(&none, &none, &none)
    ));
    let one = json!({ "zoe_1": users["zoe_1"] });
    bind(&none, &none, &one).unwrap();
    assert!(verdict(
        &open(json!({ "instruction": "" })),
        &plain(&none, &none, &one)
    ));
}
