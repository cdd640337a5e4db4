//! `rlf:plugin/process`: the operating system for a program in an interpreter, in calls that cost next to
//! nothing. It has the same virtual clock, randomness and output as WASI.

use std::sync::Arc;

use wasmtime::component::HasData;
use wasmtime::{Result, bail};
use wasmtime_wasi::I32Exit;

use super::clock::GuestClock;
use super::random::Randomness;
use super::stdout::GuestOutput;
use crate::bindings::rlf::plugin::process;
use crate::record::Record;
use crate::report::Stream;

/// View of a store for the process interface.
pub(crate) struct ProcessView<'a> {
    pub(crate) clock: &'a Arc<GuestClock>,
    pub(crate) randomness: &'a mut Randomness,
    pub(crate) record: &'a Record,
}

/// Gives the linker access to [`ProcessView`].
pub(crate) struct HasProcess;

impl HasData for HasProcess {
    type Data<'a> = ProcessView<'a>;
}

impl process::Host for ProcessView<'_> {
    fn write(&mut self, fd: u8, data: Vec<u8>) -> Result<()> {
        let stream = match fd {
            1 => Stream::Stdout,
            2 => Stream::Stderr,
            other => bail!("the program wrote to descriptor {other}; there are 1 and 2"),
        };
        Ok(GuestOutput::print_to(self.record, stream, &data)?)
    }

    fn monotonic_now(&mut self) -> Result<u64> {
        self.clock.monotonic()
    }

    fn wall_now(&mut self) -> Result<u64> {
        let since_1970 = self.clock.wall()?;
        Ok(u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX))
    }

    fn random(&mut self) -> Result<u64> {
        self.randomness.next()
    }

    async fn sleep(&mut self, ns: u64) -> Result<()> {
        self.clock.sleep(ns, self.record).await
    }

    fn exit(&mut self, code: i32) -> Result<()> {
        Err(I32Exit(code).into())
    }
}
