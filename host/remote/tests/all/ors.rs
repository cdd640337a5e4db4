//! Sessions on a server of ORS: their tools, rewards and verdicts, and their end when the server breaks.

mod scripted;

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

use scripted::Scripted;

/// Time after which a test gives up.
const PATIENCE: Duration = Duration::from_secs(30);

fn config(scripted: &Scripted, behaviour: &str) -> RemoteConfig {
    RemoteConfig {
        url: scripted.url(behaviour),
        connect: Duration::from_secs(5),
        deadline: Duration::from_millis(500),
        ..RemoteConfig::default()
    }
}

fn server(config: RemoteConfig) -> Result<Arc<dyn EnvironmentServer>, RemoteError> {
    let configs = BTreeMap::from([("it".to_owned(), config)]);
    let servers = connect([(Protocol::Ors, &configs)])?;
    Ok(servers.into_iter().next().expect("it is enabled"))
}

fn task() -> Value {
    json!({"split": "train", "index": 3})
}

async fn open(scripted: &Scripted, behaviour: &str) -> ServerStart {
    let server = server(config(scripted, behaviour)).expect("it answers");
    server.open(&task(), 0).await.expect("it opens")
}

/// The text that a model reads after a step.
fn seen(step: &ServerStep) -> String {
    let observation = step.end.observation.as_ref().expect("an observation");
    plain_text(&observation.content)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_episode_goes_from_its_task_to_the_sum_of_its_rewards() {
    let scripted = Scripted::start().await;
    let mut start = open(&scripted, "well").await;
    let created = json!({"env_name": "counting", "split": "train", "index": 3});
    assert_eq!(scripted.bodies("/well/create"), [created]);
    let tools: Vec<&str> = (start.tools.iter())
        .map(|tool| tool.definition.name.as_str())
        .collect();
    assert_eq!(tools, ["add"]);
    let said: Vec<String> = (start.messages.iter())
        .map(|message| plain_text(&message.content))
        .collect();
    assert_eq!(said, ["Count."]);
    let session = &mut start.session;
    assert_eq!(session.verify().expect("a verdict").score, 0.0);
    let half = session.call("add", &json!({"by": 1})).await;
    assert_eq!((half.end.ended, seen(&half).as_str()), (Ended::Ok, "1"));
    assert_eq!((half.reward, half.terminated), (Some(0.5), false));
    let call = json!({"name": "add", "input": {"by": 1}});
    assert_eq!(scripted.bodies("/well/counting/call"), [call]);
    let verdict = session.verify().expect("a verdict");
    assert_eq!((verdict.success, verdict.score), (false, 0.5));
    let whole = session.call("add", &json!({"by": 9})).await;
    assert_eq!((whole.reward, whole.terminated), (Some(0.5), true));
    let verdict = session.verify().expect("a verdict");
    assert_eq!((verdict.success, verdict.score), (true, 1.0));
    assert_eq!(session.state().await.expect("a state"), Value::Null);
    drop(start);
    let ended = timeout(PATIENCE, scripted.asked_for("/well/delete")).await;
    ended.expect("a dropped session ends on the server");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_breaks_loses_its_session_and_is_never_scored() {
    let scripted = Scripted::start().await;
    for (behaviour, says) in [
        ("hangs", "had not answered in full after"),
        ("dies", "closed the connection"),
        ("cuts", "no result of the call"),
        ("babbles", "does not follow ORS"),
        ("floods", "max_response_bytes"),
        ("redirects", "status 308"),
        ("forgets", "status 404: Active environment not found"),
        (
            "ends",
            "its episode had ended before this call: 'add' was not run",
        ),
    ] {
        let mut start = open(&scripted, behaviour).await;
        let step = start.session.call("add", &json!({"by": 1})).await;
        let lost = step.lost.expect("the session is lost");
        assert!(lost.contains(says), "{behaviour}: {lost}");
        assert_eq!(step.end.fault, Fault::Infrastructure, "{behaviour}");
        assert!(step.end.observation.is_none(), "{behaviour}");
        let calls = scripted.bodies(&format!("/{behaviour}/counting/call"));
        assert_eq!(calls.len(), 1, "{behaviour}: a call was repeated");
    }
    let mut start = open(&scripted, "overpays").await;
    start.session.call("add", &json!({"by": 1})).await;
    let why = start.session.verify().expect_err("no verdict").to_string();
    assert!(why.contains("7.5 is outside of `reward_range`"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_inside_the_environment_is_shown_and_leaves_no_verdict() {
    let scripted = Scripted::start().await;
    let mut start = open(&scripted, "raises").await;
    let step = start.session.call("add", &json!({"by": 1})).await;
    assert_eq!(step.end.ended, Ended::Failed);
    assert_eq!(seen(&step), "error: list index out of range");
    assert!(step.lost.is_none());
    let why = start.session.verify().expect_err("no verdict").to_string();
    assert!(why.contains("failed inside the environment"), "{why}");
    let mut start = open(&scripted, "picky").await;
    let step = start.session.call("add", &json!({"by": 1})).await;
    assert_eq!(step.end.ended, Ended::InvalidArguments);
    assert!(seen(&step).contains("by is too small"), "{}", seen(&step));
    assert_eq!(start.session.verify().expect("a verdict").score, 0.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_prepares_an_episode_is_asked_again_and_one_that_refuses_is_not() {
    let scripted = Scripted::start().await;
    open(&scripted, "prepares").await;
    assert_eq!(scripted.bodies("/prepares/counting/prompt").len(), 3);
    assert_eq!(scripted.bodies("/prepares/create").len(), 1);
    let refuses = server(config(&scripted, "refuses")).expect("it answers");
    let error = refuses.open(&task(), 0).await.expect_err("it refuses");
    assert!(matches!(error, OpenError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("Invalid split"), "{error}");
    assert_eq!(scripted.bodies("/refuses/create").len(), 1);
    let ended = timeout(PATIENCE, scripted.asked_for("/refuses/delete")).await;
    ended.expect("what was begun is ended");
    let error = refuses.open(&json!("train"), 0).await.expect_err("no task");
    assert!(error.to_string().contains("must be an object"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_sessions_are_open_than_the_configuration_allows() {
    let scripted = Scripted::start().await;
    let config = RemoteConfig {
        max_sessions: 2,
        ..config(&scripted, "well")
    };
    let server = server(config).expect("it answers");
    let task = task();
    let one = server.open(&task, 0).await.expect("it opens");
    let _two = server.open(&task, 0).await.expect("it opens");
    let waits = timeout(Duration::from_millis(100), server.open(&task, 0)).await;
    assert!(waits.is_err(), "a third session opened");
    drop(one);
    server.open(&task, 0).await.expect("it opens");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_token_goes_to_the_server_and_does_not_come_back() {
    let scripted = Scripted::start().await;
    for (behaviour, says) in [
        ("echoes", "error: you sent [secret token]"),
        ("splits", "you sent [secret token]"),
    ] {
        let config = RemoteConfig {
            // A variable that every process has.
            token_env: Some("PATH".to_owned()),
            ..config(&scripted, behaviour)
        };
        let server = server(config).expect("it answers");
        let mut start = server.open(&task(), 0).await.expect("it opens");
        let step = start.session.call("add", &json!({"by": 1})).await;
        assert_eq!(seen(&step), says, "{behaviour}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_environment_is_the_first_one_or_that_of_the_configuration() {
    let scripted = Scripted::start().await;
    let named = |environment: &str| RemoteConfig {
        environment: Some(environment.to_owned()),
        reward: Some(RewardOf::Last),
        ..config(&scripted, "well")
    };
    let first = server(config(&scripted, "well")).expect("it answers");
    let same = server(named("counting")).expect("it answers");
    let other = server(named("halving")).expect("it answers");
    assert_eq!(first.hash(), same.hash());
    assert_ne!(first.hash(), other.hash());
    other.open(&task(), 0).await.expect("it opens");
    let created = scripted.bodies("/well/create");
    assert_eq!(created[0]["env_name"], "halving");
    let error = server(named("nothing")).expect_err("there is none");
    assert_eq!(error.key(), "ors.it");
    let says = "status 404: unknown environment";
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
fn what_is_no_server_is_named_with_its_key() {
    let config = RemoteConfig {
        url: "http://127.0.0.1:1".to_owned(),
        connect: Duration::from_secs(5),
        ..RemoteConfig::default()
    };
    let error = server(config).expect_err("nobody listens");
    assert_eq!(error.key(), "ors.it");
    let says = "http://127.0.0.1:1/list_environments";
    assert!(error.to_string().contains(says), "{error}");
}
