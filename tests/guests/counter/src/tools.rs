//! The tools: their definitions, and the actions of the misbehaving ones.

use std::hint::black_box;

use rlf_plugin::environment::tool;
use rlf_plugin::tool::NoArguments;
use rlf_plugin::{Error, Hints, ToolDefinition, schemars::JsonSchema};
use serde::Deserialize;

/// All tools that a task without its own list offers; `secret` appears only behind the door.
pub(crate) const OFFERED: [&str; 12] = [
    "add",
    "show",
    "draw",
    "open_door",
    "fail",
    "error",
    "trap",
    "spin",
    "grow",
    "sleep",
    "print",
    "flip",
];

pub(crate) fn definition(name: &str) -> Result<ToolDefinition, Error> {
    let none = Hints::empty();
    match name {
        "add" => tool::<Add>(name, "Adds to the count and returns it.", none),
        "show" => tool::<NoArguments>(name, "Shows the state.", Hints::READ_ONLY),
        "draw" => tool::<NoArguments>(name, "Draws a number and logs it.", none),
        "open_door" => tool::<NoArguments>(name, "Opens the door to a secret.", none),
        "secret" => tool::<NoArguments>(name, "Ends the episode.", none),
        "fail" => tool::<NoArguments>(name, "Fails.", none),
        "error" => tool::<Raise>(name, "Ends in an error.", none),
        "trap" => tool::<NoArguments>(name, "Changes the count and traps.", none),
        "spin" => tool::<NoArguments>(name, "Never ends.", none),
        "grow" => tool::<Grow>(name, "Takes memory and keeps it.", none),
        "sleep" => tool::<Sleep>(name, "Sleeps.", none),
        "print" => tool::<Print>(name, "Prints to standard output.", none),
        "flip" => tool::<NoArguments>(name, "Traps in the first attempt only.", none),
        _ => Err(Error::InvalidArguments(format!(
            "the environment has no tool `{name}` to offer"
        ))),
    }
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rlf_plugin::schemars")]
pub(crate) struct Add {
    pub(crate) by: i64,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rlf_plugin::schemars")]
pub(crate) struct Grow {
    pub(crate) mib: usize,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rlf_plugin::schemars")]
pub(crate) struct Sleep {
    pub(crate) ms: u64,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rlf_plugin::schemars")]
pub(crate) struct Print {
    pub(crate) bytes: usize,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rlf_plugin::schemars")]
pub(crate) struct Raise {
    pub(crate) kind: Kind,
}

/// The errors of the contract.
#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rlf_plugin::schemars")]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    InvalidArguments,
    NotFound,
    Denied,
    Exhausted,
    Unavailable,
    Cancelled,
    Internal,
}

impl Kind {
    pub(crate) fn error(self) -> Error {
        let text = "as asked".to_owned();
        match self {
            Self::InvalidArguments => Error::InvalidArguments(text),
            Self::NotFound => Error::NotFound(text),
            Self::Denied => Error::Denied(text),
            Self::Exhausted => Error::Exhausted(text),
            Self::Unavailable => Error::Unavailable(text),
            Self::Cancelled => Error::Cancelled,
            Self::Internal => Error::Internal(text),
        }
    }
}

pub(crate) fn spin() -> ! {
    let mut rounds = 0_u64;
    loop {
        rounds = black_box(rounds.wrapping_add(1));
    }
}

/// Allocates this much memory and touches every page of it. Traps if there is no more.
pub(crate) fn grow(mib: usize) -> Vec<Vec<u8>> {
    (0..mib).map(|_| black_box(vec![1; 1 << 20])).collect()
}

/// A number for each seed and position, below a million: splitmix64.
pub(crate) fn draw(seed: u64, position: u64) -> u64 {
    let mut mixed = seed.wrapping_add(position.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) % 1_000_000
}
