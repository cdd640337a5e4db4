//! Where in a trajectory calls are made.

/// Where in a trajectory some calls are made. The same in every replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnContext {
    /// Of the trajectory.
    pub trajectory_id: String,
    /// Index of the model's turn, from 0.
    pub turn: u32,
    /// Seed of the trajectory; each call gets one of its own, derived from it and the call's id.
    pub seed: u64,
}
