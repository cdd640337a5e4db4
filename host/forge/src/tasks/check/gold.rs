//! The gold calls: they can be made, they give the results that the task has, and they lead to its goals.

use crate::tasks::environment::PlayError;
use crate::tasks::record::TaskRecord;
use crate::tasks::rejection::{Reason, Rejection};
use crate::tasks::suite::Suite;

/// Makes all gold calls, and compares results and states. Each turn begins in the saved state of the one before it, as
/// rows do. Also checks that the requests are for the requested calls, in their order.
pub(super) fn carried_out(suite: &Suite, task: &TaskRecord) -> Result<(), Rejection> {
    let diverged = |detail: String| Rejection::new(Reason::Diverged, detail);
    let broke = |error: PlayError| diverged(error.to_string());
    let mut session = suite.playable().open(&task.servers).map_err(broke)?;
    if session.state().map_err(broke)? != task.initial {
        return Err(diverged("the first state is another one".to_owned()));
    }
    for (number, turn) in task.turns.iter().enumerate() {
        let number = number + 1;
        let requested = turn.calls.iter().filter(|call| call.requested);
        if !requested
            .map(|call| &call.tool)
            .eq(turn.requests.iter().map(|request| &request.tool))
        {
            return Err(diverged(format!(
                "turn {number}: the requests are not for the requested calls"
            )));
        }
        for call in &turn.calls {
            let answer = session
                .call(&call.tool, &call.arguments)
                .map_err(|error| diverged(format!("turn {number}: {}: {error}", call.tool)))?;
            let result = &answer.result;
            if *result != call.result || answer.text != call.text {
                return Err(diverged(format!(
                    "turn {number}: {} gives {result}",
                    call.tool
                )));
            }
        }
        if session.state().map_err(broke)? != turn.goal {
            return Err(diverged(format!(
                "turn {number}: the state is not the goal"
            )));
        }
        // The rows of the next turn begin in this state.
        session.load(&turn.goal).map_err(broke)?;
    }
    Ok(())
}
