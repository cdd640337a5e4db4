//! Random calls with random arguments: no panic, no partial change, and no loss in a snapshot.

use proptest::prelude::*;
use rlf_plugin::serde_json::{Value, json};

use super::{TOOLS, small};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("\\PC{0,6}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

fn choice(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(words).prop_map(str::to_owned)
}

/// Usually a value that fits somewhere in the small store.
fn argument(name: &'static str) -> BoxedStrategy<Value> {
    let fits: BoxedStrategy<Value> = match name {
        "order_id" => choice(&["#1", "#2", "#3", "#4", "#5", "#9"])
            .prop_map(Value::from)
            .boxed(),
        "user_id" => choice(&["zoe_1", "adam_2", "eve"])
            .prop_map(Value::from)
            .boxed(),
        "product_id" => choice(&["p1", "p2", "p3"]).prop_map(Value::from).boxed(),
        "payment_method_id" => choice(&["gift_card_1", "paypal_1", "credit_card_1", "paypal_2"])
            .prop_map(Value::from)
            .boxed(),
        "reason" => choice(&["no longer needed", "ordered by mistake", "?"])
            .prop_map(Value::from)
            .boxed(),
        "item_ids" | "new_item_ids" => {
            let item = choice(&["s1", "s2", "s3", "s4", "l1"]);
            prop::collection::vec(item, 0..3)
                .prop_map(Value::from)
                .boxed()
        }
        "expression" => "[0-9+*/(). -]{0,12}".prop_map(Value::from).boxed(),
        _ => "\\PC{0,8}".prop_map(Value::from).boxed(),
    };
    prop_oneof![30 => fits, 1 => any_json()].boxed()
}

fn any_call() -> impl Strategy<Value = (&'static str, Value)> {
    let kinds: Vec<_> = TOOLS
        .iter()
        .filter(|(name, _)| !name.starts_with("transfer"))
        .collect();
    prop::sample::select(kinds).prop_flat_map(|(name, arguments)| {
        let pairs: Vec<_> = arguments
            .split_whitespace()
            .map(|argument_name| (Just(argument_name.to_owned()), argument(argument_name)))
            .collect();
        let pair = |pairs: Vec<(String, Value)>| Value::Object(pairs.into_iter().collect());
        (Just(*name), pairs.prop_map(pair))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_session_restored_after_any_calls_cannot_be_told_from_it(
        calls in prop::collection::vec(any_call(), 0..12),
        later in any_call(),
        said in "\\PC{0,12}",
    ) {
        let mut session = small();
        for (name, arguments) in calls {
            let before = session.state();
            let refused = match session.call(name, arguments) {
                Ok(step) => step.observation.failed,
                Err(_) => true,
            };
            if refused {
                prop_assert_eq!(session.state(), before);
            }
        }
        let mut restored = session.restored().unwrap();
        prop_assert_eq!(restored.state(), session.state());
        let (name, arguments) = later;
        prop_assert_eq!(restored.call(name, arguments.clone()), session.call(name, arguments));
        prop_assert_eq!(restored.say(&said), session.say(&said));
        prop_assert_eq!(restored.state(), session.state());
        let reference = json!({ "gold_hash": "", "outputs": [said] });
        prop_assert_eq!(restored.verify(None, &reference), session.verify(None, &reference));
    }

    #[test]
    fn no_arguments_of_any_type_make_a_tool_panic(
        which in 0..TOOLS.len(),
        values in prop::collection::vec(any_json(), 8),
        whole in any_json(),
    ) {
        let mut session = small();
        let (name, arguments) = TOOLS[which];
        let given: Value = arguments
            .split_whitespace()
            .map(str::to_owned)
            .zip(values)
            .collect();
        let _ = session.call(name, given);
        let _ = session.call(name, whole);
    }
}
