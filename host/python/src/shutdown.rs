//! The end of the Python interpreter: after it, no thread of ours may touch it.
//!
//! Before Python 3.13, a thread that takes the interpreter's lock while the interpreter shuts down is ended in the middle
//! of its work, which aborts the process. So the package registers [`close`] with `atexit`. It waits for the threads that
//! are taking the lock at that moment, and stops all others for good.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread::{self, ThreadId};

use pyo3::prelude::*;

use crate::fork::check_not_forked;

/// True once [`close`] has been called. Set while [`ATTACHED`] is locked.
static CLOSING: AtomicBool = AtomicBool::new(false);
/// The number of threads of ours that have the interpreter's lock or take it.
static ATTACHED: Mutex<usize> = Mutex::new(0);
/// Notified when a thread leaves.
static LEFT: Condvar = Condvar::new();
/// The thread that shuts the interpreter down. It goes on to run Python code.
static CLOSER: OnceLock<ThreadId> = OnceLock::new();

thread_local! {
    /// True while this thread has an [`Attaching`].
    static ATTACHING: Cell<bool> = const { Cell::new(false) };
}

/// True if the interpreter shuts down.
pub(crate) fn is_closing() -> bool {
    CLOSING.load(SeqCst)
}

fn attached() -> MutexGuard<'static, usize> {
    ATTACHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps [`close`] waiting while a thread takes the interpreter's lock.
pub(crate) struct Attaching {
    /// False if this thread has announced itself already, or shuts the interpreter down.
    is_counted: bool,
}

impl Attaching {
    /// Announces that this thread is about to take the interpreter's lock. Returns `None` if the interpreter shuts down.
    fn begin() -> Option<Self> {
        if ATTACHING.get() {
            return Some(Self { is_counted: false });
        }
        let mut attached = attached();
        if is_closing() {
            return None;
        }
        *attached += 1;
        ATTACHING.set(true);
        Some(Self { is_counted: true })
    }

    /// Like [`begin`](Self::begin), but stops this thread for good if the interpreter shuts down, unless it is the thread
    /// that shuts it down.
    pub(crate) fn begin_or_stop() -> Self {
        loop {
            if let Some(attaching) = Self::begin() {
                return attaching;
            }
            if CLOSER.get() == Some(&thread::current().id()) {
                return Self { is_counted: false };
            }
            thread::park();
        }
    }
}

impl Drop for Attaching {
    fn drop(&mut self) {
        if self.is_counted {
            ATTACHING.set(false);
            *attached() -= 1;
            LEFT.notify_all();
        }
    }
}

/// Waits until no other thread of ours has the interpreter's lock or takes it, and lets none take it from then on.
#[pyfunction]
pub(crate) fn close(py: Python<'_>) {
    // A forked child has none of our threads, and locks that one of them may hold.
    if check_not_forked().is_err() {
        return;
    }
    let _ = CLOSER.set(thread::current().id());
    py.detach(|| {
        let mut attached = attached();
        CLOSING.store(true, SeqCst);
        while *attached > 0 {
            attached = LEFT.wait(attached).unwrap_or_else(PoisonError::into_inner);
        }
    });
}

type Delivery = Box<dyn FnOnce(Python<'_>) + Send>;

/// The thread that calls back into Python.
///
/// It is one thread outside the runtime, so that a callback may itself wait for operations, and a slow callback delays no
/// operation.
pub(crate) struct Answers(Mutex<mpsc::Sender<Delivery>>);

impl Answers {
    pub(crate) fn start() -> std::io::Result<Self> {
        let (sender, deliveries) = mpsc::channel::<Delivery>();
        let answer = move || {
            while let Ok(delivery) = deliveries.recv() {
                let Some(attaching) = Attaching::begin() else {
                    // Nobody may drop the Python objects that are left.
                    std::mem::forget((delivery, deliveries));
                    return;
                };
                let _ = Python::try_attach(|py| {
                    delivery(py);
                    // As many as are ready, for one lock.
                    while !is_closing()
                        && let Ok(delivery) = deliveries.try_recv()
                    {
                        delivery(py);
                    }
                });
                drop(attaching);
            }
        };
        let named = thread::Builder::new().name("rlf_host answers".to_owned());
        named.spawn(answer)?;
        Ok(Self(Mutex::new(sender)))
    }

    /// Calls `delivery` with the interpreter's lock held, soon.
    pub(crate) fn deliver(&self, delivery: Delivery) {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Its thread ends only with the interpreter.
        if let Err(mpsc::SendError(delivery)) = sender.send(delivery) {
            std::mem::forget(delivery);
        }
    }
}
