//! `rlf:plugin/process`: what a program in an interpreter needs of an operating system, in calls that
//! cost next to nothing. The same clock, randomness and output as behind WASI, and as virtual.

use wasmtime::component::HasSelf;
use wasmtime::component::Linker;
use wasmtime::{Result, bail};
use wasmtime_wasi::I32Exit;

use crate::bindings::rlf::plugin::process;
use crate::output::{Printed, Stream};
use crate::state::State;

pub(crate) fn link(linker: &mut Linker<State>) -> Result<()> {
    process::add_to_linker::<State, HasSelf<State>>(linker, |state| state)
}

impl process::Host for State {
    fn write(&mut self, fd: u8, data: Vec<u8>) -> Result<()> {
        let stream = match fd {
            1 => Stream::Stdout,
            2 => Stream::Stderr,
            other => bail!("the program wrote to descriptor {other}; there are 1 and 2"),
        };
        Ok(Printed::print_to(&self.record, stream, &data)?)
    }

    fn monotonic_now(&mut self) -> Result<u64> {
        self.clock().monotonic()
    }

    fn wall_now(&mut self) -> Result<u64> {
        let since_1970 = self.clock().wall()?;
        Ok(u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX))
    }

    fn random(&mut self) -> Result<u64> {
        self.randomness().next()
    }

    async fn sleep(&mut self, ns: u64) -> Result<()> {
        // Its own handle: what is awaited must not borrow the store.
        let (clock, record) = (self.clock().clone(), self.record.clone());
        clock.sleep(ns, &record).await
    }

    fn exit(&mut self, code: i32) -> Result<()> {
        Err(I32Exit(code).into())
    }
}
