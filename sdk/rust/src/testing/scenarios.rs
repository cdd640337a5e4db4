//! Tests the promises of an environment on its own scenarios.

use serde_json::Value;

use super::environment::{Session, open};
use crate::environment::{Environment, Scenario, Step, canonical};
use crate::{EnvironmentPlugin, Error};

/// Plays every scenario of an environment natively and checks that
///
/// - the state after the calls is the expected one,
/// - after every call the session rebuilt from its snapshot has the same state, and gives the same result for the
///   next call,
/// - another session opened with the same task and seed gives the same results,
/// - `state`, `snapshot` and `verify` change nothing.
///
/// The error names the scenario and the call. It is an error if a call returns `Err`, and if an environment has no
/// scenarios.
pub fn check_scenarios<P: EnvironmentPlugin>() -> Result<(), String> {
    let shared = P::shared().map_err(|error| format!("{error:?}"))?;
    let scenarios = P::Session::scenarios(shared);
    if scenarios.is_empty() {
        return Err("the environment has no scenarios to play".to_owned());
    }
    for scenario in scenarios {
        let mut played = String::new();
        play::<P>(&scenario, &mut played)
            .map_err(|why| format!("scenario `{}`, {played}: {why}", scenario.id))?;
    }
    Ok(())
}

fn play<P: EnvironmentPlugin>(scenario: &Scenario, played: &mut String) -> Result<(), String> {
    "when it is opened".clone_into(played);
    let start = || open::<P>(scenario.task.clone(), scenario.seed).map_err(told);
    // One session is inspected after every call, the other never.
    let (mut session, seen) = start()?;
    let (mut unseen, seen_again) = start()?;
    same("seed opens another session", &seen, &seen_again)?;
    let mut restored = inspect(&session)?;

    for (index, (name, arguments)) in scenario.calls.iter().enumerate() {
        *played = format!("call {index} (`{name}`)");
        let call = |session: &mut Session<P>| session.call(name, arguments.clone()).map_err(told);
        let step: Step = call(&mut session)?;
        same("seed shows something else", &step, &call(&mut unseen)?)?;
        same(
            "snapshot shows something else",
            &step,
            &call(&mut restored)?,
        )?;
        same(
            "snapshot leads to another state",
            &session.state(),
            &restored.state(),
        )?;
        restored = inspect(&session)?;
    }

    "after the calls".clone_into(played);
    same(
        "seed leads to another state",
        &session.state(),
        &unseen.state(),
    )?;
    let expected = canonical(scenario.expect.clone());
    let state = session.state();
    if state == expected {
        Ok(())
    } else {
        Err(format!("the state is {state}, not {expected}"))
    }
}

/// Inspects a session in every way that must change nothing, and rebuilds it.
fn inspect<P: EnvironmentPlugin>(session: &Session<P>) -> Result<Session<P>, String> {
    let before = session.state();
    let unchanged = |by: &str| {
        let after = session.state();
        if before == after {
            Ok(())
        } else {
            Err(format!("`{by}` changes the state from {before} to {after}"))
        }
    };
    unchanged("state")?;
    session.snapshot().map_err(told)?;
    unchanged("snapshot")?;
    // Whether this reference fits does not matter here: an error must change nothing either.
    for answer in [None, Some("")] {
        let verdict = session.verify(answer, &Value::Null);
        unchanged("verify")?;
        same(
            "state is judged differently",
            &verdict,
            &session.verify(answer, &Value::Null),
        )?;
    }
    let restored = session.restored().map_err(told)?;
    same("snapshot gives another state", &before, &restored.state())?;
    Ok(restored)
}

fn same<T: PartialEq + std::fmt::Debug>(otherwise: &str, one: &T, other: &T) -> Result<(), String> {
    if one == other {
        Ok(())
    } else {
        Err(format!("the same {otherwise}: {one:?} and {other:?}"))
    }
}

fn told(error: Error) -> String {
    format!("{error:?}")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::{Map, json};

    use super::*;
    use crate::environment::Start;
    use crate::{CallContext, Verdict};

    thread_local! {
        static UNSEEDED: Cell<u64> = const { Cell::new(0) };
    }

    /// The promise that each number breaks.
    const NOTHING: u8 = 0;
    const EXPECTATION: u8 = 1;
    const RESTORED_STATE: u8 = 2;
    const RESTORED_GENERATOR: u8 = 3;
    const SEED: u8 = 4;
    const STATE: u8 = 5;
    const SNAPSHOT: u8 = 6;
    const VERIFY: u8 = 7;
    const VERDICT: u8 = 8;
    const LOOKED_AT: u8 = 9;
    const CALL: u8 = 10;
    const NO_SCENARIO: u8 = 11;

    /// Counts its calls and shows a number that is not part of the state.
    struct Counter<const FLAW: u8> {
        count: Cell<u64>,
        drawn: Cell<u64>,
    }

    impl<const FLAW: u8> Counter<FLAW> {
        fn bump(&self, flaw: u8) {
            if FLAW == flaw {
                self.count.set(self.count.get() + 1);
            }
        }
    }

    impl<const FLAW: u8> Environment for Counter<FLAW> {
        type Shared = ();

        fn open((): &'static (), _task: Value, seed: u64) -> Result<(Self, Start), Error> {
            let start = Start {
                messages: Vec::new(),
                tools: Vec::new(),
            };
            let session = Self {
                count: Cell::new(0),
                drawn: Cell::new(seed),
            };
            Ok((session, start))
        }

        fn restore((): &'static (), snapshot: &[u8]) -> Result<Self, Error> {
            let (count, drawn) = serde_json::from_slice(snapshot).map_err(crate::internal)?;
            Ok(Self {
                count: Cell::new(if FLAW == RESTORED_STATE { 0 } else { count }),
                drawn: Cell::new(if FLAW == RESTORED_GENERATOR { 0 } else { drawn }),
            })
        }

        fn call(
            &mut self,
            name: &str,
            _arguments: Map<String, Value>,
            _context: &CallContext,
        ) -> Result<Step, Error> {
            if FLAW == CALL {
                return Err(crate::environment::no_tool(name));
            }
            self.count.set(self.count.get() + 1);
            self.drawn.set(self.drawn.get() + 1);
            let unseeded = UNSEEDED.get();
            UNSEEDED.set(unseeded + 1);
            Ok(Step::observed(if FLAW == SEED {
                unseeded
            } else {
                self.drawn.get()
            }))
        }

        fn state(&self) -> Value {
            self.bump(STATE);
            if FLAW == LOOKED_AT {
                self.drawn.set(self.drawn.get() + 1);
            }
            json!({ "count": self.count.get() })
        }

        fn snapshot(&self) -> Result<Vec<u8>, Error> {
            self.bump(SNAPSHOT);
            serde_json::to_vec(&(self.count.get(), self.drawn.get())).map_err(crate::internal)
        }

        fn verify(&self, _answer: Option<&str>, _reference: &Value) -> Result<Verdict, Error> {
            self.bump(VERIFY);
            let drawn = self.drawn.get();
            if FLAW == VERDICT {
                self.drawn.set(drawn + 1);
            }
            Ok(Verdict {
                success: false,
                score: 0.0,
                reason: drawn.to_string(),
            })
        }

        fn scenarios((): &'static ()) -> Vec<Scenario> {
            let call = || ("count".to_owned(), json!({}));
            let scenario = Scenario {
                id: "counts".to_owned(),
                task: json!({}),
                seed: 7,
                calls: vec![call(), call()],
                expect: json!({ "count": if FLAW == EXPECTATION { 3 } else { 2 } }),
            };
            if FLAW == NO_SCENARIO {
                Vec::new()
            } else {
                vec![scenario]
            }
        }
    }

    struct Plugin<const FLAW: u8>;

    impl<const FLAW: u8> EnvironmentPlugin for Plugin<FLAW> {
        type Session = Counter<FLAW>;

        fn init(config: &str) -> Result<(), Error> {
            crate::lifecycle::refuse_configuration(config)
        }

        fn shared() -> Result<&'static (), Error> {
            Ok(&())
        }
    }

    #[test]
    fn an_environment_that_keeps_its_promises_passes() {
        assert_eq!(check_scenarios::<Plugin<NOTHING>>(), Ok(()));
    }

    #[test]
    fn every_broken_promise_is_found_and_named() {
        for (found, named) in [
            (
                check_scenarios::<Plugin<EXPECTATION>>(),
                r#"scenario `counts`, after the calls: the state is {"count":2}, not {"count":3}"#,
            ),
            (
                check_scenarios::<Plugin<RESTORED_STATE>>(),
                "call 0 (`count`): the same snapshot gives another state",
            ),
            (
                check_scenarios::<Plugin<RESTORED_GENERATOR>>(),
                "call 0 (`count`): the same snapshot shows something else",
            ),
            (
                check_scenarios::<Plugin<SEED>>(),
                "call 0 (`count`): the same seed shows something else",
            ),
            (
                check_scenarios::<Plugin<STATE>>(),
                "when it is opened: `state` changes the state",
            ),
            (
                check_scenarios::<Plugin<SNAPSHOT>>(),
                "when it is opened: `snapshot` changes the state",
            ),
            (
                check_scenarios::<Plugin<VERIFY>>(),
                "when it is opened: `verify` changes the state",
            ),
            (
                check_scenarios::<Plugin<VERDICT>>(),
                "when it is opened: the same state is judged differently",
            ),
            // A change made by `state` is visible only beside a session that was not inspected.
            (check_scenarios::<Plugin<LOOKED_AT>>(), "the same"),
            (
                check_scenarios::<Plugin<CALL>>(),
                "call 0 (`count`): Error::NotFound",
            ),
            (check_scenarios::<Plugin<NO_SCENARIO>>(), "no scenarios"),
        ] {
            let error = found.unwrap_err();
            assert!(error.contains(named), "{error}\nis not about\n{named}");
        }
    }
}
