//! Promises of the policy, one file each.

mod checkpoints;
mod exactness;
mod gradients;
mod reference;
mod support;
mod values;
