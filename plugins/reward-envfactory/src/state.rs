//! Compares the final states of the servers with the expected ones.

use rlf_plugin::Trajectory;
use rlf_plugin::serde_json::{self, Map, Value};

use crate::config::Uncalled;
use crate::reference::Reference;
use crate::trace::Call;
use crate::value::equal;

/// Share of the reference's servers that ended in the state it names.
pub(crate) fn share(
    trajectory: &Trajectory,
    calls: &[Call<'_>],
    reference: &Reference<'_>,
    uncalled: Uncalled,
) -> Result<f64, String> {
    if reference.state.is_empty() {
        return Ok(1.0);
    }
    let ended = final_state(trajectory)?;
    let mut reached = 0;
    for (server, gold) in reference.state {
        let state = ended.get(server);
        let state = match uncalled {
            Uncalled::Mismatch => state.filter(|_| {
                let known = ended.keys().chain(reference.state.keys());
                was_called(server, calls, known.map(String::as_str))
            }),
            Uncalled::Initial => {
                let initial = || reference.initial?.get(server);
                Some(state.or_else(initial).ok_or_else(|| {
                    format!(
                        "neither the trajectory's final state nor the reference's `initial` has the state of `{server}`; name it \
                         under `initial`"
                    )
                })?)
            }
        };
        reached += usize::from(state.is_some_and(|state| equal(state, gold)));
    }
    Ok(reached as f64 / reference.state.len() as f64)
}

fn final_state(trajectory: &Trajectory) -> Result<Map<String, Value>, String> {
    let Some(state) = &trajectory.final_state else {
        return Err(match trajectory.unjudged() {
            Some(why) => format!("the environment told no final state: {why}"),
            None => {
                "the trajectory has no final state, which only an environment gives: name the task's environment in the \
                 configuration, or leave the task's `state` empty"
                    .to_owned()
            }
        });
    };
    serde_json::from_str(state).map_err(|error| {
        format!("the trajectory's final state is not an object of servers: {error}")
    })
}

/// True if a call's name is this server's name, `-` and a tool; a longer server name that fits is preferred.
fn was_called<'s>(server: &str, calls: &[Call<'_>], known: impl Iterator<Item = &'s str>) -> bool {
    let of = |server: &str, name: &str| {
        name.strip_prefix(server)
            .is_some_and(|tool| tool.starts_with('-'))
    };
    let longer: Vec<&str> = known.filter(|other| other.len() > server.len()).collect();
    calls
        .iter()
        .any(|call| of(server, call.name) && !longer.iter().any(|other| of(other, call.name)))
}
