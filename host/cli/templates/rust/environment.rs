//! A count that a model changes.

use rlf_plugin::environment::{self, Environment, Scenario, Start, Step};
use rlf_plugin::serde_json::{self, Map, Value, json};
use rlf_plugin::{CallContext, Error, Hints, Verdict, internal, plugin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of one session.
#[derive(Serialize, Deserialize)]
struct Counter {
    count: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// How much to add
    by: i64,
}

impl Environment for Counter {
    type Shared = ();

    // A task says in which state it begins: {"start": 1}.
    fn open((): &'static (), task: Value, _seed: u64) -> Result<(Self, Start), Error> {
        let count = task["start"].as_i64().unwrap_or_default();
        let tools = vec![environment::tool::<Add>("add", "Adds to the count.", Hints::empty())?];
        let messages = Vec::new();
        Ok((Self { count }, Start { messages, tools }))
    }

    fn restore((): &'static (), snapshot: &[u8]) -> Result<Self, Error> {
        serde_json::from_slice(snapshot).map_err(internal)
    }

    fn call(&mut self, name: &str, arguments: Map<String, Value>, _: &CallContext) -> Result<Step, Error> {
        match name {
            "add" => {
                let Add { by } = environment::arguments(arguments)?;
                let Some(count) = self.count.checked_add(by) else {
                    // The model reads this. A call that fails must have changed nothing.
                    return Ok(Step::failed("the count would be too large; add less"));
                };
                self.count = count;
                Ok(Step::observed(count))
            }
            _ => Err(environment::no_tool(name)),
        }
    }

    fn state(&self) -> Value {
        json!({ "count": self.count })
    }

    fn snapshot(&self) -> Result<Vec<u8>, Error> {
        serde_json::to_vec(self).map_err(internal)
    }

    fn verify(&self, _answer: Option<&str>, reference: &Value) -> Result<Verdict, Error> {
        let success = *reference == self.state();
        let reason = format!("the count is {}", self.count);
        Ok(Verdict { success, score: f64::from(u8::from(success)), reason })
    }

    // `rlf-host env check` and the test below play these.
    fn scenarios((): &'static ()) -> Vec<Scenario> {
        vec![Scenario {
            id: "add-two".into(),
            task: json!({ "start": 1 }),
            seed: 0,
            calls: vec![("add".into(), json!({ "by": 2 }))],
            expect: json!({ "count": 3 }),
        }]
    }
}

plugin!(environment: Counter);

#[cfg(test)]
mod tests {
    use rlf_plugin::serde_json::json;
    use rlf_plugin::testing;

    #[test]
    fn adding_changes_the_count() {
        testing::check_scenarios::<super::Plugin>().unwrap();
        let (mut counter, _) = testing::open::<super::Plugin>(json!({ "start": 1 }), 0).unwrap();
        counter.call("add", json!({ "by": 2 })).unwrap();
        assert!(counter.verify(None, &json!({ "count": 3 })).unwrap().success);
    }
}
