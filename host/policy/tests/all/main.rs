//! Promises of the policy, one file each.

mod checkpoints;
mod exactness;
mod gradients;
mod lora;
mod reference;
mod support;
mod values;
