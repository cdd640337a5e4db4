//! Requests that the machine did not serve while an environment was played. They say nothing about the environment.

use rlf_environments::environments::Environments;

/// The machine had no room or no time for some requests, so nothing is known about what was played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the machine was too busy for {requests} of the requests, so nothing is known about the environment; run the same \
     command again when less else runs"
)]
pub struct Unserved {
    requests: u64,
}

/// Fails if a request was not served since [`Environments::unserved`] was `before`.
pub(crate) fn check_served(environments: &Environments, before: u64) -> Result<(), Unserved> {
    match environments.unserved().saturating_sub(before) {
        0 => Ok(()),
        requests => Err(Unserved { requests }),
    }
}

/// Plays an environment; fails if a request was not served meanwhile.
pub(crate) async fn served<T>(
    environments: &Environments,
    play: impl Future<Output = T>,
) -> Result<T, Unserved> {
    let before = environments.unserved();
    let played = play.await;
    check_served(environments, before).map(|()| played)
}
