//! Sessions on a server: their tools, rewards and verdicts, and their end when the server breaks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rlf_dialogue::message::plain_text;
use rlf_dialogue::tool::{Ended, Fault};
use rlf_environments::error::OpenError;
use rlf_environments::server::{EnvironmentServer, ServerStart, ServerStep};
use rlf_remote::{Protocol, RemoteConfig, RemoteError, RewardOf, connect};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::scripted::Scripted;

fn config(scripted: &Scripted, environment: &str) -> RemoteConfig {
    RemoteConfig {
        url: scripted.url(environment),
        connect: Duration::from_secs(5),
        deadline: Duration::from_millis(300),
        ..RemoteConfig::default()
    }
}

fn server(config: RemoteConfig) -> Result<Arc<dyn EnvironmentServer>, RemoteError> {
    let configs = BTreeMap::from([("it".to_owned(), config)]);
    let servers = connect([(Protocol::OpenEnv, &configs)])?;
    Ok(servers.into_iter().next().expect("it is enabled"))
}

async fn open(scripted: &Scripted, environment: &str) -> ServerStart {
    let server = server(config(scripted, environment)).expect("it answers");
    server.open(&json!({}), 3).await.expect("it opens")
}

/// Time after which a test gives up.
const PATIENCE: Duration = Duration::from_secs(30);

/// The text that a model reads after a step.
fn seen(step: &ServerStep) -> String {
    let observation = step.end.observation.as_ref().expect("an observation");
    plain_text(&observation.content)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_typed_action_is_a_tool_and_its_reward_the_verdict() {
    let scripted = Scripted::start().await;
    let mut start = open(&scripted, "guess").await;
    let tools: Vec<&str> = (start.tools.iter())
        .map(|tool| tool.definition.name.as_str())
        .collect();
    assert_eq!(tools, ["step"]);
    let said: Vec<String> = (start.messages.iter())
        .map(|message| plain_text(&message.content))
        .collect();
    assert_eq!(said, [r#"{"hint":"from 0 to 9","seed":3}"#]);
    let session = &mut start.session;
    let before = session.verify().expect("a verdict");
    assert_eq!((before.success, before.score), (false, 0.0));
    let wrong = session.call("step", &json!({"guess": 1})).await;
    assert_eq!((wrong.reward, wrong.terminated), (Some(0.0), false));
    assert_eq!(seen(&wrong), r#"{"right":false}"#);
    let right = session.call("step", &json!({"guess": 7})).await;
    assert_eq!((right.reward, right.terminated), (Some(1.0), true));
    let verdict = session.verify().expect("a verdict");
    assert_eq!((verdict.success, verdict.score), (true, 1.0));
    assert_eq!(
        session.state().await.expect("a state"),
        json!({"step_count": 1})
    );
    drop(start);
    let left = timeout(PATIENCE, scripted.all_left()).await;
    left.expect("a dropped session ends on the server");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_are_called_and_rewards_are_added_where_the_configuration_says_so() {
    let scripted = Scripted::start().await;
    let config = RemoteConfig {
        reward: Some(RewardOf::Sum),
        reward_range: [0.0, 0.5],
        ..config(&scripted, "calls")
    };
    let server = server(config).expect("it answers");
    let mut start = server.open(&Value::Null, 0).await.expect("it opens");
    assert_eq!(start.tools[0].definition.name, "add");
    let session = &mut start.session;
    let step = session.call("add", &json!({"by": 4})).await;
    assert_eq!((step.end.ended, seen(&step).as_str()), (Ended::Ok, "4"));
    assert_eq!(session.verify().expect("a verdict").score, 0.5);
    session.call("add", &json!({"by": 4})).await;
    let verdict = session.verify().expect("a verdict");
    assert_eq!((verdict.success, verdict.score), (true, 1.0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_breaks_loses_its_session_and_is_never_scored() {
    let scripted = Scripted::start().await;
    for (environment, says) in [
        ("hangs", "did not answer within 300 ms"),
        ("dies", "connection"),
        ("babbles", "none of OpenEnv's"),
        ("floods", "the connection broke"),
    ] {
        let mut start = open(&scripted, environment).await;
        let step = start.session.call("step", &json!({"guess": 7})).await;
        let lost = step.lost.expect("the session is lost");
        assert!(lost.contains(says), "{environment}: {lost}");
        let again = start.session.call("step", &json!({"guess": 7})).await;
        assert!(
            again.lost.is_some(),
            "{environment}: a late answer was read"
        );
        assert_eq!(step.end.fault, Fault::Infrastructure, "{environment}");
        assert!(step.end.observation.is_none(), "{environment}");
    }
    let mut start = open(&scripted, "overpays").await;
    start.session.call("step", &json!({"guess": 7})).await;
    let why = start.session.verify().expect_err("no verdict").to_string();
    assert!(why.contains("7.5 is outside of `reward_range`"), "{why}");
    let mut start = open(&scripted, "raises").await;
    let step = start.session.call("step", &json!({"guess": 7})).await;
    assert_eq!(step.end.ended, Ended::Failed);
    assert_eq!(seen(&step), "error: list index out of range");
    assert!(step.lost.is_none());
    let why = start.session.verify().expect_err("no verdict").to_string();
    assert!(why.contains("failed inside the environment"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_room_is_asked_again_and_one_that_refuses_is_not() {
    let scripted = Scripted::start().await;
    let full = open(&scripted, "full").await;
    assert_eq!(scripted.connections(), 3);
    drop(full);
    let server = server(config(&scripted, "refuses")).expect("it answers");
    let refused = server.open(&json!({"level": 9}), 0).await;
    let error = refused.expect_err("it refuses");
    assert!(matches!(error, OpenError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("no such level"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_sessions_are_open_than_the_configuration_allows() {
    let scripted = Scripted::start().await;
    let config = RemoteConfig {
        max_sessions: 2,
        ..config(&scripted, "guess")
    };
    let server = server(config).expect("it answers");
    let nothing = json!({});
    let one = server.open(&nothing, 0).await.expect("it opens");
    let _two = server.open(&nothing, 0).await.expect("it opens");
    let waits = timeout(Duration::from_millis(100), server.open(&nothing, 0)).await;
    assert!(waits.is_err(), "a third session opened");
    drop(one);
    server.open(&nothing, 0).await.expect("it opens");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pings_are_answered_while_the_policy_thinks() {
    let scripted = Scripted::start().await;
    let mut start = open(&scripted, "pings").await;
    let pong = timeout(PATIENCE, scripted.pong()).await;
    pong.expect("a ping is answered before the next step");
    let step = start.session.call("step", &json!({"guess": 7})).await;
    assert_eq!(seen(&step), r#"{"right":true}"#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_hash_of_an_environment_changes_with_the_tools_that_it_lists() {
    let scripted = Scripted::start().await;
    let hash = |environment: &str| {
        let server = server(config(&scripted, environment)).expect("it answers");
        server.hash().to_owned()
    };
    assert_eq!(hash("calls"), hash("calls"));
    // Their actions have the same schema.
    assert_ne!(hash("calls"), hash("described"));
    assert_ne!(hash("calls"), hash("unlisted"));
}

#[test]
fn what_is_no_server_is_named_with_its_key() {
    let config = |url: &str| RemoteConfig {
        url: url.to_owned(),
        connect: Duration::from_secs(5),
        ..RemoteConfig::default()
    };
    let error = server(config("http://127.0.0.1:1")).expect_err("nobody listens");
    assert_eq!(error.key(), "openenv.it");
    assert!(
        error.to_string().contains("http://127.0.0.1:1/schema"),
        "{error}"
    );
    let token = RemoteConfig {
        token_env: Some("RLF_NO_SUCH_TOKEN".to_owned()),
        ..config("http://127.0.0.1:1")
    };
    let error = server(token).expect_err("there is no token");
    assert_eq!(error.key(), "openenv.it.token_env");
}
