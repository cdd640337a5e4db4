//! Data that `init` accepts, and data that it refuses.

use rlf_plugin::serde_json::json;
use rlf_plugin::{error_message, testing};

use super::{bind, database};
use crate::Plugin;

fn init() -> String {
    let error = testing::init_environment::<Plugin>(json!({})).unwrap_err();
    error_message(&error).to_owned()
}

#[test]
fn data_that_is_not_bound_or_lacks_a_file_is_named() {
    assert_eq!(
        init(),
        "data `retail`, file orders.json: no data is bound to `retail`"
    );
    testing::bind("retail", "orders.json", "{}");
    assert_eq!(
        init(),
        "data `retail`, file products.json: it is missing; bind the folder that has it"
    );
}

#[test]
fn a_record_that_cannot_be_used_is_named_with_its_file() {
    let (orders, products, users) = database();
    let mut broken = orders.clone();
    broken["#1"]["items"] = json!("none");
    let reason = bind(&broken, &products, &users).unwrap_err();
    assert!(
        reason.starts_with("data `retail`, file orders.json: the record #1: "),
        "{reason}"
    );

    let mut lost = orders.clone();
    lost["#1"]["user_id"] = json!("eve");
    assert_eq!(
        bind(&lost, &products, &users).unwrap_err(),
        "data `retail`, file orders.json: the order #1 has the user eve, which is not there"
    );
    let mut lost = orders.clone();
    lost["#1"]["items"][0]["product_id"] = json!("p9");
    let reason = bind(&lost, &products, &users).unwrap_err();
    assert!(
        reason.ends_with("the order #1 has the product p9, which is not there"),
        "{reason}"
    );
    assert!(bind(&json!([]), &products, &users).is_err());
}

#[test]
fn a_tool_that_the_store_does_not_have_is_refused() {
    let (orders, products, users) = database();
    bind(&orders, &products, &users).unwrap();
    let tool = json!([{ "function": { "name": "fly", "description": "", "parameters": {} } }]);
    testing::bind("retail", "tools.json", tool.to_string());
    assert_eq!(
        init(),
        "data `retail`, file tools.json: there is no tool `fly` in this store"
    );
    testing::bind("retail", "tools.json", "[{}]");
    assert!(init().contains("missing field `function`"));
}

#[test]
fn a_tool_that_is_not_described_is_not_offered() {
    super::small();
    testing::bind("retail", "tools.json", "[]");
    testing::init_environment::<Plugin>(json!({})).unwrap();
    let (mut session, start) = testing::open::<Plugin>(json!({ "instruction": "" }), 0).unwrap();
    assert!(start.tools.is_empty());
    assert!(session.call("think", json!({ "thought": "" })).is_err());
}
