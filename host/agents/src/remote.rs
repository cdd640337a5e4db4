//! Agents that fetch their tasks: a queue of trajectories that wait for one.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Notify, oneshot};

/// Time that a request for a task waits before it is answered without one.
const LONG_POLL: Duration = Duration::from_secs(20);

/// A trajectory that waits for an agent.
struct Waiting {
    task: Value,
    taken: oneshot::Sender<()>,
}

/// The trajectories that wait for an agent, in their order.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<VecDeque<Waiting>>,
    arrived: Notify,
}

impl Queue {
    /// Offers a task. The receiver learns when an agent has taken it. If it is dropped, nobody gets the task any more.
    pub(crate) fn offer(&self, task: Value) -> oneshot::Receiver<()> {
        let (taken, receiver) = oneshot::channel();
        self.lock().push_back(Waiting { task, taken });
        self.arrived.notify_one();
        receiver
    }

    /// The next task. None if none arrives for a while.
    pub(crate) async fn take(&self) -> Option<Value> {
        let wait = async {
            loop {
                if let Some(task) = self.pop() {
                    return task;
                }
                self.arrived.notified().await;
            }
        };
        tokio::time::timeout(LONG_POLL, wait).await.ok()
    }

    fn pop(&self) -> Option<Value> {
        let mut waiting = self.lock();
        while let Some(Waiting { task, taken }) = waiting.pop_front() {
            if taken.send(()).is_ok() {
                if !waiting.is_empty() {
                    self.arrived.notify_one();
                }
                return Some(task);
            }
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn tasks_are_taken_once_in_order_and_only_while_somebody_waits() {
        let queue = Queue::default();
        let (mut first, second) = (queue.offer(json!(1)), queue.offer(json!(2)));
        let third = queue.offer(json!(3));
        drop(second);
        assert!(first.try_recv().is_err());
        assert_eq!(queue.take().await, Some(json!(1)));
        assert!(first.try_recv().is_ok());
        assert_eq!(queue.take().await, Some(json!(3)));
        assert!(third.await.is_ok());
        // A request that comes first gets the next task that somebody waits for.
        let mut taking = std::pin::pin!(queue.take());
        let polled = tokio::time::timeout(Duration::ZERO, &mut taking).await;
        assert!(polled.is_err());
        drop(queue.offer(json!(4)));
        let _waiting = queue.offer(json!(5));
        assert_eq!(taking.await, Some(json!(5)));
    }
}
