//! The place in a trajectory where calls are made.

/// The place in a trajectory where some calls are made. It is the same in every replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnContext {
    /// The trajectory's id.
    pub trajectory_id: String,
    /// Index of the model's turn, from 0.
    pub turn: u32,
    /// Seed of the trajectory. The seed of each call is derived from it and the call's id.
    pub seed: u64,
}
