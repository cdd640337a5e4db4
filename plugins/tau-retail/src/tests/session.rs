//! A conversation: its start and end, its snapshot, and its verdict.

use rlf_plugin::serde_json::json;
use rlf_plugin::{Content, Error, Role, error_message, testing};

use super::{call, database, open, record, small};
use crate::Plugin;
use crate::session::{STOP, Session};
use crate::store::Store;

fn texts(start: &rlf_plugin::environment::Start) -> Vec<(Role, String)> {
    let text = |content: &Content| match content {
        Content::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    let messages = start.messages.iter();
    messages
        .map(|message| (message.role, message.content.iter().map(text).collect()))
        .collect()
}

#[test]
fn a_solo_task_begins_with_the_policy_and_all_the_user_has_to_say() {
    small();
    let task = json!({ "instruction": "You want your lamp." });
    let (_, start) = testing::open::<Plugin>(task, 7).unwrap();
    let [(Role::System, policy), (Role::User, said)] = &*texts(&start) else {
        panic!("{start:?}");
    };
    assert_eq!(policy, "# Policy\n");
    assert!(said.starts_with("I want my lamp.\n\nPlease "), "{said}");
    assert_eq!(start.tools.len(), 16);
    assert_eq!(start.tools[3].name, "find_user_id_by_email");
    assert_eq!(
        start.tools[3].input_schema,
        r#"{"type":"object","properties":{"email":{"type":"string"}},"required":["email"]}"#
    );
}

#[test]
fn the_hidden_instruction_is_given_to_nobody_where_a_model_plays_the_user() {
    small();
    let task = json!({ "instruction": "You want a secret.", "user": "model" });
    let (mut session, start) = testing::open::<Plugin>(task, 0).unwrap();
    assert_eq!(texts(&start), [(Role::System, "# Policy\n".to_owned())]);
    let step = session.say("How can I help?").unwrap();
    assert!(!step.terminated && step.observation.content.is_empty());
    assert!(session.say(STOP).unwrap().terminated);
    assert_eq!(session.state()["ended"], true);
}

#[test]
fn a_task_that_cannot_be_opened_says_why() {
    small();
    for (task, reason) in [
        (json!({}), "`instruction` is missing"),
        (json!({ "instruction": 1 }), "expected a string"),
        (
            json!({ "instruction": "", "user": "me" }),
            "unknown variant `me`",
        ),
        (
            json!({ "instruction": "", "goal": "" }),
            "unknown field `goal`",
        ),
        (json!("You"), "the task"),
    ] {
        let error = testing::open::<Plugin>(task, 0).map(drop).unwrap_err();
        assert!(
            matches!(&error, Error::InvalidArguments(text) if text.contains(reason)),
            "{error:?}"
        );
    }
}

#[test]
fn the_first_words_and_a_transfer_end_a_solo_conversation_and_nothing_follows() {
    let mut session = small();
    assert!(session.say("Done.").unwrap().terminated);
    let late = session.call("think", json!({ "thought": "" })).unwrap();
    assert!(late.terminated && late.observation.failed);

    let mut session = small();
    let step = session
        .call("transfer_to_human_agents", json!({ "summary": "" }))
        .unwrap();
    assert!(step.terminated && !step.observation.failed);
    assert_eq!(testing::text(&step.observation), "Transfer successful");
    let cancel = json!({ "order_id": "#1", "reason": "no longer needed" });
    session.call("cancel_pending_order", cancel).unwrap();
    assert_eq!(
        session.state(),
        json!({ "ended": true, "orders": {}, "users": {} })
    );
}

#[test]
fn only_changed_records_are_state_and_one_changed_back_is_not() {
    let mut session = small();
    assert_eq!(
        session.state(),
        json!({ "ended": false, "orders": {}, "users": {} })
    );
    let (_, _, users) = database();
    let mut address = users["adam_2"]["address"].clone();
    address["user_id"] = json!("adam_2");
    address["city"] = json!("Turin");
    record(&mut session, "modify_user_address", address.clone());
    assert_eq!(
        session.state()["users"]["adam_2"]["address"]["city"],
        "Turin"
    );
    address["city"] = json!("Rome");
    record(&mut session, "modify_user_address", address);
    assert_eq!(
        session.state(),
        json!({ "ended": false, "orders": {}, "users": {} })
    );
    // The agent sees the order of the keys that it gave, before and after the snapshot.
    let look = json!({ "user_id": "adam_2" });
    let (seen, _) = call(&mut session, "get_user_details", look.clone());
    assert!(
        seen.contains(r#""state": "GA", "country": "USA""#),
        "{seen}"
    );
    let mut restored = session.restored().unwrap();
    assert_eq!(call(&mut restored, "get_user_details", look).0, seen);
}

#[test]
fn sessions_share_every_record_but_those_they_changed() {
    let mut session = small();
    let shop = <Plugin as rlf_plugin::EnvironmentPlugin>::shared().unwrap();
    let other = Store::new(shop);
    let mut store = Store::new(shop);
    let changed = crate::store::Changes {
        order: Some((shop.orders.row("#1").unwrap(), json!({ "changed": true }))),
        user: None,
    };
    store.apply(changed);
    for (id, original) in shop.orders.sorted() {
        assert!(std::ptr::eq(other.order(id).unwrap().1, original));
        assert_eq!(
            std::ptr::eq(store.order(id).unwrap().1, original),
            id != "#1"
        );
    }
    for (id, original) in shop.users.sorted() {
        assert!(std::ptr::eq(store.user(id).unwrap().1, original));
    }
    // A session is a reference to the shop and a few empty collections.
    assert!(size_of::<Session>() <= 128, "{}", size_of::<Session>());
    let cancel = json!({ "order_id": "#1", "reason": "no longer needed" });
    record(&mut session, "cancel_pending_order", cancel);
    let untouched = open(json!({ "instruction": "" })).state();
    assert_eq!(untouched["orders"], json!({}));
}

#[test]
fn success_needs_the_database_and_every_output_in_one_message() {
    let mut session = small();
    let shop = <Plugin as rlf_plugin::EnvironmentPlugin>::shared().unwrap();
    let hash = Store::new(shop).hash();
    let reference = json!({ "gold_hash": hash, "outputs": ["1234.5", "Blue"], "actions": [] });
    let verdict = session.verify(None, &reference).unwrap();
    assert_eq!((verdict.success, verdict.score), (false, 0.0));
    assert_eq!(verdict.reason, "the user was not told 1234.5, Blue");
    assert!(
        session
            .verify(Some("1,234.5 and blue"), &reference)
            .unwrap()
            .success
    );
    session.say("It costs $1,234.50, in BLUE.").unwrap();
    let verdict = session
        .restored()
        .unwrap()
        .verify(None, &reference)
        .unwrap();
    assert_eq!((verdict.success, verdict.score), (true, 1.0));

    let wrong = json!({ "gold_hash": "0", "outputs": ["red"] });
    let verdict = session.verify(None, &wrong).unwrap();
    assert_eq!(
        verdict.reason,
        "the database is not as it should be; the user was not told red"
    );
    let error = session.verify(None, &json!({ "outputs": [] })).unwrap_err();
    assert!(error_message(&error).contains("missing field `gold_hash`"));
}

#[test]
fn what_the_users_model_says_to_stop_is_not_the_agents_word() {
    small();
    let shop = <Plugin as rlf_plugin::EnvironmentPlugin>::shared().unwrap();
    let reference = json!({ "gold_hash": Store::new(shop).hash(), "outputs": ["stop"] });
    let mut session = open(json!({ "user": "model" }));
    session.say("Hello.").unwrap();
    session.say(STOP).unwrap();
    assert!(!session.verify(None, &reference).unwrap().success);
}

#[test]
fn what_is_no_snapshot_is_refused_with_the_reason() {
    use rlf_plugin::environment::Environment;

    small();
    let shop = <Plugin as rlf_plugin::EnvironmentPlugin>::shared().unwrap();
    let with = |orders: &str| {
        format!(
            r#"{{"version":1,"user":"solo","ended":false,"said":[],"orders":{orders},"users":{{}}}}"#
        )
    };
    for (snapshot, reason) in [
        (String::new(), "EOF"),
        ("\u{0}garbage".to_owned(), "expected value"),
        (r#"{"version":2}"#.to_owned(), "it has version 2, not 1"),
        (r#"{"version":1}"#.to_owned(), "missing field"),
        (with(r##"{"#9":{}}"##), "there is no order #9"),
        (with(r##"{"#1":{"status":"pending"}}"##), "missing field"),
    ] {
        let error = Session::restore(shop, snapshot.as_bytes())
            .map(drop)
            .unwrap_err();
        let text = error_message(&error);
        assert!(text.starts_with("not a snapshot of this store: "), "{text}");
        assert!(text.contains(reason), "{text}");
    }
    assert!(Session::restore(shop, with("{}").as_bytes()).is_ok());
}

#[test]
fn the_scenarios_end_as_they_say() {
    small();
    assert_eq!(testing::check_scenarios::<Plugin>(), Ok(()));
}
