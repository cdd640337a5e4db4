//! The trajectories that agents may ask, by their tokens.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rlf_rollout::agent::{AgentEnd, AgentTrajectory};
use tokio::sync::oneshot;

/// A trajectory that is open to its agent.
#[derive(Clone)]
pub(crate) struct Seat {
    pub(crate) trajectory: Arc<AgentTrajectory>,
    /// Takes the report of an agent that ends its trajectory over HTTP.
    end: Arc<Mutex<Option<oneshot::Sender<AgentEnd>>>>,
}

impl Seat {
    /// Ends the trajectory. Returns false if it has ended before.
    pub(crate) fn end(&self, end: AgentEnd) -> bool {
        self.trajectory.close("its agent has finished it");
        let sender = lock(&self.end).take();
        sender.is_some_and(|sender| sender.send(end).is_ok())
    }
}

/// All open trajectories.
#[derive(Clone, Default)]
pub(crate) struct Seats(Arc<Mutex<HashMap<String, Seat>>>);

/// An open trajectory. Dropping it closes the trajectory to its agent.
pub(crate) struct Open {
    seats: Seats,
    pub(crate) token: String,
}

impl Seats {
    /// Opens a trajectory under a new token. The receiver gets the report of an agent that ends it over HTTP.
    pub(crate) fn open(
        &self,
        trajectory: Arc<AgentTrajectory>,
    ) -> Result<(Open, oneshot::Receiver<AgentEnd>), getrandom::Error> {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret)?;
        let token = format!("{:032x}", u128::from_le_bytes(secret));
        let (sender, ended) = oneshot::channel();
        let seat = Seat {
            trajectory,
            end: Arc::new(Mutex::new(Some(sender))),
        };
        lock(&self.0).insert(token.clone(), seat);
        let open = Open {
            seats: self.clone(),
            token,
        };
        Ok((open, ended))
    }

    /// The trajectory with this token.
    pub(crate) fn find(&self, token: &str) -> Option<Seat> {
        lock(&self.0).get(token).cloned()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        lock(&self.seats.0).remove(&self.token);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
