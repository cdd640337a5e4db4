//! An environment with a count, a log and a door, and tools that a session must not have. The host's tests play it to
//! show that a session survives, is rebuilt, or ends.

mod task;
#[cfg(test)]
mod tests;
mod tools;

use std::io::Write;
use std::time::Duration;

use rlf_plugin::environment::{self, Environment, Scenario, Start, Step, arguments};
use rlf_plugin::{CallContext, Content, Error, Message, Role, ToolDefinition, Verdict};
use rlf_plugin::{internal, plugin};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use task::{Say, Size, Task};
use tools::{Add, Grow, OFFERED, Print, Raise, Sleep};

#[derive(Serialize, Deserialize)]
struct Session {
    task: Task,
    seed: u64,
    count: i64,
    log: Vec<u64>,
    door: bool,
    /// The tools that the model has.
    offered: Vec<String>,
    /// Memory that `grow` took. It is not part of a snapshot.
    #[serde(skip)]
    grown: Vec<Vec<u8>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reference {
    count: i64,
    answer: Option<String>,
}

impl Session {
    fn definitions(&self) -> Result<Vec<ToolDefinition>, Error> {
        let definition = |name: &String| tools::definition(name);
        self.offered.iter().map(definition).collect()
    }

    fn add(&mut self, by: i64) -> Step {
        let Some(count) = self.count.checked_add(by) else {
            return Step::failed("the count would be too large; add less");
        };
        self.count = count;
        Step::observed(count).with_reward(by as f64)
    }

    fn draw(&mut self) -> Step {
        let drawn = tools::draw(self.seed, self.log.len() as u64);
        self.log.push(drawn);
        Step::observed(drawn)
    }

    fn open_door(&mut self) -> Result<Step, Error> {
        self.door = true;
        self.offered.retain(|name| name != "open_door");
        self.offered.push("secret".to_owned());
        Ok(Step::observed("open").with_tools(self.definitions()?))
    }

    /// Changes the count, a change that must never be visible.
    fn trap(&mut self) -> ! {
        self.count = self.count.wrapping_add(1);
        panic!("a trap at count {}", self.count);
    }
}

impl Environment for Session {
    type Shared = ();

    fn open((): &'static (), task: Value, seed: u64) -> Result<(Self, Start), Error> {
        let task: Task = serde_json::from_value(task)
            .map_err(|error| Error::InvalidArguments(format!("task: {error}")))?;
        task.open.strike("open")?;
        let all = || OFFERED.map(str::to_owned).to_vec();
        let session = Self {
            seed,
            count: task.start,
            log: Vec::new(),
            door: false,
            offered: task.tools.clone().unwrap_or_else(all),
            grown: Vec::new(),
            task,
        };
        let messages = vec![Message {
            role: Role::User,
            content: vec![Content::Text(format!("The count is {}.", session.count))],
        }];
        let tools = session.definitions()?;
        Ok((session, Start { messages, tools }))
    }

    fn restore((): &'static (), snapshot: &[u8]) -> Result<Self, Error> {
        let mut session: Self = serde_json::from_slice(snapshot).map_err(internal)?;
        session.task.restore.strike("restore")?;
        session.count = session.count.wrapping_add(session.task.drift);
        Ok(session)
    }

    fn call(
        &mut self,
        name: &str,
        given: Map<String, Value>,
        context: &CallContext,
    ) -> Result<Step, Error> {
        if !self.offered.iter().any(|offered| offered == name) {
            return Err(environment::no_tool(name));
        }
        match name {
            "add" => Ok(self.add(arguments::<Add>(given)?.by)),
            "show" => Ok(Step::observed(self.state())),
            "draw" => Ok(self.draw()),
            "open_door" => self.open_door(),
            "secret" => Ok(Step::observed("the end").and_terminate()),
            "fail" => Ok(Step::failed("it fails as asked")),
            "error" => Err(arguments::<Raise>(given)?.kind.error()),
            "trap" => self.trap(),
            "spin" => tools::spin(),
            "grow" => {
                let Grow { mib } = arguments(given)?;
                self.grown.extend(tools::grow(mib));
                Ok(Step::observed(format!("grew by {mib} MiB")))
            }
            "sleep" => {
                std::thread::sleep(Duration::from_millis(arguments::<Sleep>(given)?.ms));
                Ok(Step::observed("slept"))
            }
            "print" => {
                let Print { bytes } = arguments(given)?;
                let mut out = std::io::stdout();
                out.write_all(&vec![b'x'; bytes]).map_err(internal)?;
                out.flush().map_err(internal)?;
                Ok(Step::observed("printed"))
            }
            "flip" if context.attempt == 0 => self.trap(),
            "flip" => Ok(Step::observed("flipped")),
            // Not reached: every offered tool has a definition, and each definition an arm above.
            _ => Err(environment::no_tool(name)),
        }
    }

    fn say(&mut self, text: &str, _context: &CallContext) -> Result<Step, Error> {
        match self.task.say {
            Say::Answer if text != "end" => {
                Ok(Step::observed(format!("you said: {text}")).with_reward(0.25))
            }
            Say::Answer | Say::End => Ok(Step::terminated().with_reward(1.0)),
            Say::Error => Err(internal("say fails as the task asks")),
            Say::Trap => self.trap(),
        }
    }

    fn state(&self) -> Value {
        let mut state = json!({ "count": self.count, "log": self.log, "door": self.door });
        if self.task.state == Size::Big {
            state["padding"] = Value::String("x".repeat(self.task.mib << 20));
        }
        state
    }

    fn snapshot(&self) -> Result<Vec<u8>, Error> {
        self.task.snapshot.strike("snapshot")?;
        serde_json::to_vec(self).map_err(internal)
    }

    fn verify(&self, answer: Option<&str>, reference: &Value) -> Result<Verdict, Error> {
        self.task.verify.strike("verify")?;
        let reference = Reference::deserialize(reference)
            .map_err(|error| Error::InvalidArguments(format!("reference: {error}")))?;
        let counted = Some(reference.count == self.count);
        let answered = reference.answer.map(|right| answer == Some(&right));
        let parts: Vec<bool> = [counted, answered].into_iter().flatten().collect();
        let right = parts.iter().filter(|right| **right).count();
        Ok(Verdict {
            success: right == parts.len(),
            score: right as f64 / parts.len() as f64,
            reason: format!("{right} of {} are right", parts.len()),
        })
    }

    fn scenarios((): &'static ()) -> Vec<Scenario> {
        let call = |name: &str, arguments: Value| (name.to_owned(), arguments);
        vec![
            Scenario {
                id: "counts-and-draws".to_owned(),
                task: json!({ "start": 1 }),
                seed: 7,
                calls: vec![
                    call("add", json!({ "by": 2 })),
                    call("draw", json!({})),
                    call("fail", json!({})),
                    call("draw", json!({})),
                    call("show", json!({})),
                ],
                // Computed elsewhere with splitmix64.
                expect: json!({ "count": 3, "log": [374_487, 955_804], "door": false }),
            },
            Scenario {
                id: "finds-the-secret".to_owned(),
                task: json!({ "start": 0, "tools": ["open_door"] }),
                seed: 0,
                calls: vec![call("open_door", json!({})), call("secret", json!({}))],
                expect: json!({ "count": 0, "log": [], "door": true }),
            },
        ]
    }
}

plugin!(environment: Session);
