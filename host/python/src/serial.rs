//! A notebook or a session: operations on it run one after the other, in the order in which Python asked for them.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, oneshot};

use crate::error::Failure;

/// A value whose operations run in order, until it is over.
pub(crate) struct Serial<T> {
    /// Its name in errors.
    what: &'static str,
    state: Arc<AsyncMutex<State<T>>>,
    /// Resolves when the operation that was asked for last has ended.
    last: Mutex<Option<oneshot::Receiver<()>>>,
}

enum State<T> {
    Open(T),
    /// The value takes no more operations, for this reason.
    Over(String),
}

/// The place of one operation in the order. Dropping it lets the next one begin.
pub(crate) struct Turn<T> {
    what: &'static str,
    state: Arc<AsyncMutex<State<T>>>,
    before: Option<oneshot::Receiver<()>>,
    _ended: oneshot::Sender<()>,
}

/// An operation under way. If it is dropped before it is done, it was cancelled. It may go on in the guest, so the value is
/// over.
pub(crate) struct Active<T> {
    state: OwnedMutexGuard<State<T>>,
    turn: Turn<T>,
    is_done: bool,
}

impl<T> Serial<T> {
    pub(crate) fn new(what: &'static str, value: T) -> Self {
        Self {
            what,
            state: Arc::new(AsyncMutex::new(State::Open(value))),
            last: Mutex::default(),
        }
    }

    /// The place of the next operation.
    pub(crate) fn turn(&self) -> Turn<T> {
        let (ended, next) = oneshot::channel();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        Turn {
            what: self.what,
            state: Arc::clone(&self.state),
            before: last.replace(next),
            _ended: ended,
        }
    }
}

impl<T> Turn<T> {
    async fn reached(&mut self) -> OwnedMutexGuard<State<T>> {
        if let Some(before) = self.before.take() {
            // The sender is dropped and never sends.
            let _ = before.await;
        }
        Arc::clone(&self.state).lock_owned().await
    }

    /// Waits until the earlier operations have ended. Fails if the value is over.
    pub(crate) async fn begin(mut self) -> Result<Active<T>, Failure> {
        let state = self.reached().await;
        if let State::Over(reason) = &*state {
            return Err(Failure::Session(reason.clone()));
        }
        Ok(Active {
            state,
            turn: self,
            is_done: false,
        })
    }

    /// Drops the value, once the earlier operations have ended.
    pub(crate) async fn close(mut self) {
        *self.reached().await = State::Over(format!("the {} is closed", self.what));
    }
}

impl<T> Active<T> {
    pub(crate) fn value(&mut self) -> Result<&mut T, Failure> {
        match &mut *self.state {
            State::Open(value) => Ok(value),
            State::Over(reason) => Err(Failure::Session(reason.clone())),
        }
    }

    /// Ends the operation. The value takes further ones.
    pub(crate) fn done(mut self) {
        self.is_done = true;
    }

    /// Ends the operation, and the value with it.
    pub(crate) fn end(mut self, reason: &str) {
        self.over(reason);
        self.is_done = true;
    }

    fn over(&mut self, reason: &str) {
        *self.state = State::Over(format!("the {} is over, because {reason}", self.turn.what));
    }
}

impl<T> Drop for Active<T> {
    fn drop(&mut self) {
        if !self.is_done {
            self.over("an operation on it was cancelled");
        }
    }
}
